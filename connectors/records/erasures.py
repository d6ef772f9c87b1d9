"""Requests on the topic log.erasures: what the trainer of a partition has to forget, and the model that replaces it.

A request is JSON, on the partition of the events that it is about::

    {"op": "erase", "events": [OFFSET, ...], "labels": [OFFSET, ...],
     "examples": [[KEY, [ID, ...]], ...], "models": [KEY, ...]}
    {"op": "swap", "app": NAME}

Offsets are those of the records in log.topic and log.labels.  An ID is an event's id as 64 bits.  A KEY is the record
key of the events if each key has its own model, in base64, otherwise null.  ``models`` names the keys whose models go
as a whole.  ``swap`` names a rebuilt state, which takes the place of the trainer's own.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..logs.transport import TOPIC_NAME, Record
from .formats.base import BadRecord

_AT_ONCE = 20_000  # numbers in a record, which so stays below half a megabyte


class Erasure(NamedTuple):
    """Records to forget, all of one partition.

    Attributes
    ----------
    events, labels
        Offsets of the events and of the labels, ascending.
    examples
        The events' ids as 64 bits, by the key whose model has learned them; None if there is one model.
    models
        Keys whose models go as a whole.
    """

    events: tuple[int, ...]
    labels: tuple[int, ...]
    examples: dict[bytes | None, tuple[int, ...]]
    models: tuple[bytes, ...] = ()

    def to_values(self) -> Iterator[bytes]:
        """The erasure as values of records: one, or several if it is large."""
        numbered = [
            *(("events", None, at) for at in self.events),
            *(("labels", None, at) for at in self.labels),
            *(("examples", key, number) for key, numbers in self.examples.items() for number in numbers),
            *(("models", None, _text(key)) for key in self.models),
        ]
        for start in range(0, len(numbered), _AT_ONCE):
            chosen: dict[bytes | None, list] = {}
            fields: dict[str, Any] = {"op": "erase", "events": [], "labels": [], "examples": [], "models": []}
            for what, key, item in numbered[start : start + _AT_ONCE]:
                (chosen.setdefault(key, []) if what == "examples" else fields[what]).append(item)
            fields["examples"] = [[_text(key), numbers] for key, numbers in chosen.items()]
            yield json.dumps(fields, separators=(",", ":")).encode()


class Swap(NamedTuple):
    """A rebuilt state to go on with: the name of the run that has rebuilt it."""

    app: str

    def to_values(self) -> Iterator[bytes]:
        """The request as the value of one record."""
        yield json.dumps({"op": "swap", "app": self.app}).encode()


def read_request(record: Record) -> Erasure | Swap:
    """The request of a record; BadRecord if it is none."""
    try:
        fields = json.loads(record.value or b"")
        if fields["op"] == "swap":
            if not TOPIC_NAME.fullmatch(fields["app"]):
                raise ValueError("the name of a run must be 1 to 200 letters, digits, '.', '_' or '-'")
            return Swap(fields["app"])
        if fields["op"] != "erase":
            raise ValueError("op must be 'erase' or 'swap'")
        return _erasure(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadRecord("bad-erasure", f"no request to forget: {error!r:.200}") from None


def _erasure(fields: dict[str, Any]) -> Erasure:
    examples = {_key(key): tuple(numbers) for key, numbers in fields["examples"]}
    models = [_key(key) for key in fields["models"]]
    found = Erasure(
        tuple(fields["events"]), tuple(fields["labels"]), examples, tuple(key for key in models if key is not None)
    )
    for numbers in (found.events, found.labels, *examples.values()):
        if not all(type(number) is int and -(1 << 63) <= number < 1 << 63 for number in numbers):
            raise ValueError("offsets and ids must be signed 64-bit integers")
    return found


def _text(key: bytes | None) -> str | None:
    return None if key is None else b64encode(key).decode()


def _key(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)
