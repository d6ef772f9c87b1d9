"""The command ``streamsvm dlq``: list the dead letters, or put them back where they came from.

A dead letter is a record that a trainer or a scorer refused; its headers say why (see `records.dead_letters`).
"""

import argparse
import json
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from tqdm import tqdm

from streamsvm.core.newest import Newest

from ...logs.reading import POLL_RECORDS, read, read_one
from ...logs.segments import LogCorruption
from ...logs.transport import Committed, Headers, Record, Transport
from ...records.codec import MAX_BYTES
from ...records.dead_letters import PREFIX
from ...runtime.text import plural
from ...settings.opening import backend_of, open_once
from ...settings.sections import Settings
from ..shared.configuration import read_config
from ..shared.log_access import flush

logger = logging.getLogger(__name__)

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)  # of a partition or an offset in a header
_SHOWN_BYTES = 80  # of each dead letter
_SEEN = 100_000  # newest dead letters; two letters about one record are at most a checkpoint's records apart


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, with_model=False)
    if arguments.action == "list":
        list_dead_letters(settings, arguments.reason, arguments.first)
    else:
        replay_dead_letters(settings, arguments.reason, arguments.first, is_dry=arguments.dry_run)


class DeadLetter(NamedTuple):
    """A record that was refused, and why."""

    record: Record
    why: dict[str, str]  # by the header's name, without its prefix

    @classmethod
    def read(cls, record: Record) -> "DeadLetter":
        prefix = len(PREFIX)
        ours = [header for header in record.headers if header[0].startswith(PREFIX)]
        return cls(record, {name[prefix:]: value.decode(errors="replace") for name, value in ours})

    @property
    def reason(self) -> str:
        return self.why.get("reason", "?")

    @property
    def source(self) -> tuple[str, ...]:
        """Topic, partition and offset of the record that was refused."""
        return tuple(self.why.get(name, "?") for name in ("topic", "partition", "offset"))

    @property
    def is_shortened(self) -> bool:
        """Whether the letter holds only a part of the record (see `records.dead_letters`)."""
        return "sha256" in self.why

    def is_of(self, original: Record) -> bool:
        """Whether this shortened letter is about that record."""
        return self.why.get("sha256") == sha256(original.value or b"").hexdigest()

    @property
    def home(self) -> tuple[str, int]:
        """Topic and partition of the record that was refused; the partition is -1 if the letter does not say it."""
        partition = self.why.get("partition", "")
        return self.why.get("topic", "?"), int(partition) if _NUMBER.fullmatch(partition) else -1

    def __str__(self) -> str:
        where = "-".join(self.source)
        what = f"{self.reason}: {self.why.get('error', '?')}"
        value = self.record.value or b""
        shown = f"{self.record.offset}\t{where}\t{what}\t{value[:_SHOWN_BYTES]!r}"
        if self.is_shortened:
            shown += f" (shortened: {len(value)} of {self.why.get('bytes', '?')} bytes; replay takes it from {where})"
        return shown


# --- list -------------------------------------------------------------------------------------------------------------


def list_dead_letters(settings: Settings, reason: str | None, first: int | None) -> None:
    """Print the dead letters from offset `first` on, or only those with one reason."""
    with open_once(settings) as log:
        topic = settings.log.dlq
        ends = log.end_offsets(topic)
        starts = {
            number: min(max(start, first or 0), ends[number]) for number, start in log.start_offsets(topic).items()
        }
        found: Counter[str] = Counter()
        for letter in map(DeadLetter.read, read(log, topic, starts, ends)):
            found[letter.reason] += 1
            if reason in (None, letter.reason):
                print(letter)
    if not found[reason] if reason else not found:
        others = f"; there are {', '.join(f'{n} {name}' for name, n in found.most_common())}" if found else ""
        why = f" that was refused for {reason!r}" if reason else ""
        after = f" from offset {first} on" if first else ""
        print(f"topic {topic!r} has no dead letter{why}{after}{others}", file=sys.stderr)


# --- replay -----------------------------------------------------------------------------------------------------------


class Replayed(NamedTuple):
    """The offset before which the dead letters of a partition were put back."""

    offset: int
    by_reason: dict[str, int]  # larger offsets, of replays with --reason

    @classmethod
    def from_commit(cls, committed: Committed | None) -> "Replayed":
        """Read what `to_commit` wrote.

        Raises
        ------
        LogCorruption
            If the commit's note was written by something else.
        """
        if committed is None:
            return cls(0, {})
        try:
            by_reason = json.loads(committed.note or "{}")
        except (ValueError, RecursionError):
            by_reason = None
        if type(by_reason) is not dict or not all(type(at) is int and 0 <= at < 1 << 63 for at in by_reason.values()):
            raise LogCorruption(f"the committed position of `dlq replay` cannot be read: {committed.note!r:.200}")
        return cls(committed.offset, by_reason)

    def to_commit(self) -> Committed:
        return Committed(self.offset, json.dumps({name: at for name, at in self.by_reason.items() if at > self.offset}))

    def covers(self, letter: DeadLetter) -> bool:
        return letter.record.offset < max(self.offset, self.by_reason.get(letter.reason, 0))

    def up_to(self, offset: int, reason: str | None) -> "Replayed":
        if reason is None:
            return self._replace(offset=max(self.offset, offset))
        return self._replace(by_reason={**self.by_reason, reason: max(self.by_reason.get(reason, 0), offset)})


def replay_dead_letters(settings: Settings, reason: str | None, first: int | None, *, is_dry: bool) -> None:
    """Put dead letters back where they came from, each once.

    The position is committed for the group ``ID-dlq`` after every few hundred letters. If the process is killed, the
    letters since the last commit are put back twice. Instead of a shortened letter, the record itself is put back, if
    its topic still has it.

    Parameters
    ----------
    settings
        The configuration.
    reason
        Put back only the records that were refused for this reason; None: all.
    first
        Begin at this offset, even if letters after it were put back before; None: begin at the committed position.
    is_dry
        Print what would be put back, and write nothing.
    """
    with open_once(settings, _group(settings)) as log, open_once(settings) as another:
        replay = _Replay(settings, log, another, reason, is_dry=is_dry)
        replay.run(first)
    print(f"{'would put' if is_dry else 'put'} {plural(replay.n_replayed, 'record')} back", end="")
    print(f", and passed over {replay.n_homeless} from elsewhere" if replay.n_homeless else "", end="")
    print(f", and passed over {replay.n_impossible} that cannot be put back" if replay.n_impossible else "")


def _group(settings: Settings) -> str:
    return f"{settings.group.id}-dlq"


class _Replay:
    """One pass over the dead letters; counts what it does."""

    def __init__(
        self, settings: Settings, log: Transport, another: Transport, reason: str | None, *, is_dry: bool
    ) -> None:
        self._settings = settings
        self._log = log
        self._another = another  # for records that letters were shortened of, while the first one is read
        self._reason = reason
        self._is_dry = is_dry
        self._homes = {(name, number) for name in settings.log.inputs for number in log.start_offsets(name)}
        self._seen: Newest[tuple[str, ...], None] = Newest(_SEEN)  # a restarted trainer refuses a record again
        self.n_replayed = self.n_homeless = self.n_impossible = 0

    def run(self, first: int | None) -> None:
        log, topic = self._log, self._settings.log.dlq
        committed, ends = log.committed(topic), log.end_offsets(topic)
        for number, start in log.start_offsets(topic).items():
            replayed = Replayed.from_commit(committed.get(number))
            begin = min(max(start, replayed.offset if first is None else first), ends[number])
            letters = self._wanted(number, begin, ends, replayed if first is None else None)
            self._put_back_all(number, letters, replayed)
            self._commit(number, replayed.up_to(ends[number], self._reason))

    def _wanted(
        self, partition: int, begin: int, ends: dict[int, int], replayed: Replayed | None
    ) -> Iterator[DeadLetter]:
        """The letters with the reason, without repetitions and without those that were put back before."""
        topic = self._settings.log.dlq
        records = read(self._log, topic, {partition: begin}, ends)
        for record in tqdm(records, "replaying", total=ends[partition] - begin, disable=None):
            letter = DeadLetter.read(record)
            if self._reason not in (None, letter.reason) or (replayed is not None and replayed.covers(letter)):
                continue
            if letter.source in self._seen:
                continue
            self._seen[letter.source] = None
            yield letter

    def _put_back_all(self, partition: int, letters: Iterator[DeadLetter], replayed: Replayed) -> None:
        n_waiting = 0
        for letter in letters:
            original = self._original(letter)
            if original is None:
                continue
            self.n_replayed += 1
            if self._is_dry:
                print(letter)
                continue
            self._put_back(letter, original)
            n_waiting += 1
            if n_waiting == POLL_RECORDS:
                self._commit(partition, replayed.up_to(letter.record.offset + 1, self._reason))
                n_waiting = 0

    def _original(self, letter: DeadLetter) -> Record | None:
        """The record that a letter is about; None, and a warning that says why, if it cannot be put back."""
        here, there = "-".join(map(str, letter.record[:3])), "-".join(letter.source)
        if letter.home not in self._homes:
            self.n_homeless += 1
            logger.warning("%s comes from a topic that this configuration does not read", here)
            return None
        original = _whole(self._another, letter) if letter.is_shortened else letter.record
        if original is None:
            logger.warning("%s is shortened, and %s is gone", here, there)
        elif original.nbytes > MAX_BYTES:  # its topic may refuse it, and no trainer reads it
            logger.warning("%s is about %s, which has %d bytes, too many to be read", here, there, original.nbytes)
            original = None
        self.n_impossible += original is None
        return original

    def _put_back(self, letter: DeadLetter, original: Record) -> None:
        """Append the record to its topic unchanged, with headers that tell how often it was refused."""
        own = [header for header in original.headers if not header[0].startswith(PREFIX)]
        ours: Headers = [
            (f"{PREFIX}replayed", str(letter.record.offset).encode()),
            (f"{PREFIX}attempts", letter.why.get("attempts", "1").encode()),
        ]
        topic, partition = letter.home
        self._log.produce(topic, original.value, key=original.key, headers=[*own, *ours], partition=partition)

    def _commit(self, partition: int, replayed: Replayed) -> None:
        if self._is_dry:
            return
        flush(self._log)
        offsets = {(self._settings.log.dlq, partition): replayed.to_commit()}
        backend_of(self._settings).commit(_group(self._settings), offsets)


def _whole(log: Transport, letter: DeadLetter) -> Record | None:
    """The record that a shortened letter is about, if its topic still has it."""
    offset = letter.why.get("offset", "")
    found = read_one(log, *letter.home, int(offset)) if _NUMBER.fullmatch(offset) else None
    return found if found is not None and letter.is_of(found) else None
