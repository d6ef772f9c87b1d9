"""The alarms of a partition: errors that become frequent, and features that move; `streamsvm.alarms` has the bets.

What they say follows from the events and labels alone.  So a repetition after a restart has the same alarms.
"""

import json
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from streamsvm.alarms import ErrorAlarm, InputAlarm
from streamsvm.alarms.alarm import MOST_NAMES

from ...records.classes import ClassLabel

logger = logging.getLogger(__name__)

ERRORS, INPUTS = "errors", "inputs"
_NUMBERS = frozenset({float, int, bool})  # the usual features, which are looked at in less time


class Alert(NamedTuple):
    """An alarm that has spoken.

    Attributes
    ----------
    kind
        ``"errors"`` or ``"inputs"``.
    cause
        The class that is predicted worse, or the feature that has moved.
    offset
        Offset of the event, or of the event whose label came.
    """

    kind: str
    cause: Hashable
    offset: int

    def named(self, name_of: Callable[[Any], ClassLabel]) -> "Alert":
        """The alert with the class's name in the place of the class."""
        return self._replace(cause=name_of(self.cause)) if self.kind == ERRORS else self

    def encode(self, partition: int) -> bytes:
        """The alert as the value of a record."""
        return json.dumps({"partition": partition, **self._asdict()}, allow_nan=False).encode()

    def __str__(self) -> str:
        if self.kind == ERRORS:
            return f"class {self.cause!r} is predicted worse than before"
        return f"feature {self.cause!r} has moved"


class Alarms:
    """Both alarms of a partition."""

    def __init__(self) -> None:
        self.errors, self.inputs = ErrorAlarm(), InputAlarm()

    def see(self, x: Mapping[Any, Any], offset: int) -> list[Alert]:
        """Take in the features of an event; those that are no numbers, or beyond the 256th, are passed over."""
        was_muted = self.inputs.muted
        if len(x) > MOST_NAMES or not _NUMBERS.issuperset(map(type, x.values())):
            x = {name: v for name, v in islice(x.items(), MOST_NAMES) if isinstance(v, float | int)}
        self.inputs.update(x)
        if self.inputs.muted and not was_muted:
            logger.warning("features move all the time: no further alarm of them is reported until they calm down")
        return _heard(self.inputs, INPUTS, offset)

    def learn(self, answers: Iterable[tuple[bool, ClassLabel, int]]) -> list[Alert]:
        """Take in labels: whether the prediction was wrong, the class, and the offset of the event."""
        found = []
        for is_wrong, label, offset in answers:
            self.errors.update(is_wrong, label)
            found += _heard(self.errors, ERRORS, offset)
        return found

    def to_blobs(self) -> dict[str, bytes]:
        """Both alarms, for a checkpoint."""
        return {"alarms.errors": self.errors.to_bytes(), "alarms.inputs": self.inputs.to_bytes()}

    def restore(self, blobs: Mapping[str, bytes]) -> None:
        """Go on with the alarms of a checkpoint, which has none if it is older than they are."""
        if "alarms.errors" in blobs:
            self.errors = ErrorAlarm.from_bytes(blobs["alarms.errors"])
            self.inputs = InputAlarm.from_bytes(blobs["alarms.inputs"])


def _heard(alarm: ErrorAlarm | InputAlarm, kind: str, offset: int) -> list[Alert]:
    return [Alert(kind, alarm.cause, offset)] if alarm.drift_detected else []
