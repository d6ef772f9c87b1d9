"""Dead letters on the topic log.dlq: refused records, with headers that say why each was refused.

A dead letter has the record's key, value and headers.  Headers whose names begin with ``sv-dlq-`` tell where the record
came from and what was wrong with it.  A large record is shortened: then ``sv-dlq-bytes`` and ``sv-dlq-sha256`` describe
its whole value.
"""

from hashlib import sha256
from typing import NamedTuple

from ..logs.transport import Headers, Record
from .formats.base import BadRecord

PREFIX = "sv-dlq-"  # of the headers that say why a record was refused

_MAX_DETAIL = 1000  # characters
# What a shortened letter keeps at most:
_VALUE_BYTES = 64 << 10  # of a shortened record
_KEY_BYTES = 1 << 10  # of a longer key, its beginning
_N_HEADERS = 100  # of the record's own
_HEADER_BYTES = 4 << 10  # all headers together


class DeadLetter(NamedTuple):
    """What goes to the dead-letter topic."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def dead_letter(record: Record, why: Headers, max_bytes: int, *, is_whole: bool = True) -> DeadLetter:
    """A refused record, with the reason.

    Parameters
    ----------
    record
        The record.
    why
        The reason, from `dead_letter_headers`.
    max_bytes
        A record with more bytes than this, in key, value and headers together, is shortened.
    is_whole
        Whether `record` is complete.  If not, the letter is marked like a shortened one.
    """
    own = [header for header in record.headers if not header[0].startswith(PREFIX)]
    mark = () if is_whole else _mark(record.value)
    if record.nbytes <= max_bytes and len(own) <= _N_HEADERS:
        return DeadLetter(record.key, record.value, [*own, *why, *mark])
    value = record.value and record.value[: min(_VALUE_BYTES, max_bytes)]
    return DeadLetter(record.key and record.key[:_KEY_BYTES], value, [*_first(own), *why, *_mark(record.value)])


def dead_letter_headers(record: Record, stage: str, error: BadRecord, app: str) -> Headers:
    """The headers that say where a refused record came from and why it was refused.

    Parameters
    ----------
    record
        The record.  Headers of an earlier refusal count: ``sv-dlq-attempts`` is one more than they say.
    stage
        What was being done with it: "decode", "predict" or "learn".
    error
        What is wrong with it.
    app
        The consumer group that refuses it.
    """
    content = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "stage": stage,
        "reason": error.reason,
        "error": error.detail[:_MAX_DETAIL],
        "attempts": _n_refusals(record) + 1,
        "app": app,
    }
    return [(f"{PREFIX}{name}", str(value).encode(errors="backslashreplace")) for name, value in content.items()]


def _n_refusals(record: Record) -> int:
    """How often a record was refused before, by the headers of a replayed dead letter."""
    text = dict(record.headers).get(f"{PREFIX}attempts", b"")
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _mark(value: bytes | None) -> Headers:
    """The headers of a shortened letter: size and digest of the record's whole value."""
    whole = value or b""
    content = {"bytes": str(len(whole)), "sha256": sha256(whole).hexdigest()}
    return [(f"{PREFIX}{name}", text.encode()) for name, text in content.items()]


def _first(headers: Headers) -> Headers:
    """The first headers, as many as a shortened letter has room for."""
    kept, room = [], _HEADER_BYTES
    for name, value in headers[:_N_HEADERS]:
        room -= len(name.encode()) + len(value)
        if room < 0:
            break
        kept.append((name, value))
    return kept
