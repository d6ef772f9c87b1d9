"""Records on the topics of control: which model serves, in each partition of the events.

A request on log.control is JSON, one on each partition::

    {"op": "promote", "name": NAME}       this challenger serves
    {"op": "rollback"}                    the model that served before serves again

The trainer of the partition answers, on a topic of its own, from which records on it follows::

    {"op": "serve", "name": NAME, "request": OFFSET, "events": OFFSET, "labels": OFFSET}

and, where a challenger begins that the trainer did not have before::

    {"op": "begin", "name": NAME, "events": OFFSET, "labels": OFFSET}

and, where challengers answer other shares of the events than before::

    {"op": "divide", "shares": {NAME: SHARE, ...}, "by_key": true, "events": OFFSET, "labels": OFFSET}

`request` is the offset of the request, or null if the trainer has promoted a challenger by itself.  Whenever the log is
read again, all this happens at the same records.  A request that cannot be followed is answered with the model that
goes on.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from ..logs.reading import read
from ..logs.transport import Record, Transport
from .codec import readable
from .formats.base import BadRecord
from .split import Split


class Request(NamedTuple):
    """A model to serve; None: the one that served before."""

    name: str | None


class Served(NamedTuple):
    """A model that serves from these records on: the offsets of the next event and of the next label."""

    name: str
    request: int | None
    events: int
    labels: int


class Begun(NamedTuple):
    """A challenger that begins with these records: the offsets of the next event and of the next label."""

    name: str
    events: int
    labels: int


class Divided(NamedTuple):
    """The shares of challengers from these records on, and whether all events of a key go to one model."""

    shares: dict[str, float]
    by_key: bool
    events: int
    labels: int

    @property
    def split(self) -> Split:
        """Which challenger answers an event."""
        return Split(self.shares, by_key=self.by_key)


_OPS = {"promote": Request, "serve": Served, "begin": Begun, "divide": Divided}

Promotion = Request | Served | Begun | Divided


def write_promotion(said: Promotion) -> bytes:
    """A request, an answer or a note as the value of a record."""
    [op] = [op for op, kind in _OPS.items() if isinstance(said, kind)]
    return json.dumps({"op": "rollback"} if said == Request(None) else {"op": op, **said._asdict()}).encode()


def read_promotion(record: Record) -> Promotion:
    """A request, an answer or a note; BadRecord if a record is neither."""
    try:
        fields = json.loads(record.value or b"")
        op = fields.pop("op")
        if op == "rollback" and not fields:
            return Request(None)
        if op not in _OPS or type(fields.get("name", "")) is not str:
            raise ValueError("op must be 'promote' with a name, 'rollback', 'serve', 'begin' or 'divide'")
        found = _OPS[op](**fields)
        if isinstance(found, Divided):
            _check_shares(found)
        places = found[2:] if isinstance(found, Divided) else found[1:]
        numbers = [number for number in places if not (op == "serve" and number is None)]
        if not all(type(number) is int and 0 <= number < 1 << 63 for number in numbers):
            raise ValueError("offsets must be integers from 0 to 2^63 - 1")
        return found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadRecord("bad-promotion", f"no request to serve a model: {error!r:.200}") from None


def _check_shares(found: Divided) -> None:
    if not all(type(share) in (int, float) and 0 <= share <= 1 for share in found.shares.values()):
        raise ValueError("shares must be numbers from 0 to 1")
    if (total := sum(found.shares.values())) > 1.0 + 1e-9:  # as the settings check them
        raise ValueError(f"shares must add up to at most 1, not to {total:g}")
    if type(found.by_key) is not bool:
        raise ValueError("by_key must be true or false")


def answered(log: Transport, requests: str, answers: str, ends: Mapping[int, int]) -> dict[int, int]:
    """Offset after the last request that has an answer before these ends, by partition.

    A run that follows only what was followed ends there.
    """
    found = dict(log.start_offsets(requests))
    for record, said in readable(read(log, answers, log.start_offsets(answers), ends), read_promotion):
        if isinstance(said, Served) and said.request is not None:
            found[record.partition] = max(found.get(record.partition, 0), said.request + 1)
    return found
