"""The alarms of a partition: errors that become frequent, and features that move; `streamsvm.alarms` has the bets.

What they say follows from the events and labels alone.  So a repetition after a restart has the same alarms.
"""

import json
import logging
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from streamsvm.alarms import ErrorAlarm, InputAlarm
from streamsvm.alarms.alarm import MOST_NAMES
from streamsvm.estimators.inputs.named_rows import NamedRows

from ...records.classes import ClassLabel
from .lesson import Lesson

logger = logging.getLogger(__name__)

ERRORS, INPUTS = "errors", "inputs"


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

    def see(self, rows: NamedRows, offsets: Sequence[int]) -> Iterator[Alert]:
        """Take in the numbers of events, given the offsets of their records."""
        for place in self.inputs.update_many(rows):
            if self.inputs.muted:
                logger.warning("features move all the time: no further alarm of them is reported until they calm down")
            yield Alert(INPUTS, self.inputs.cause, offsets[place])

    def learn(self, lessons: Sequence[Lesson]) -> Iterator[Alert]:
        """Take in the first labels of events."""
        labels = [lesson.y for lesson in lessons]
        are_wrong = np.array([lesson.is_wrong for lesson in lessons], bool)
        for place in self.errors.update_many(are_wrong, labels):
            yield Alert(ERRORS, self.errors.cause, lessons[place].at)

    def to_blobs(self) -> dict[str, bytes]:
        """Both alarms, for a checkpoint."""
        return {"alarms.errors": self.errors.to_bytes(), "alarms.inputs": self.inputs.to_bytes()}

    def restore(self, blobs: Mapping[str, bytes]) -> None:
        """Go on with the alarms of a checkpoint, which has none if it is older than they are."""
        if "alarms.errors" in blobs:
            self.errors = ErrorAlarm.from_bytes(blobs["alarms.errors"])
            self.inputs = InputAlarm.from_bytes(blobs["alarms.inputs"])


def numbers_of(xs: Iterable[Mapping[Any, Any]]) -> NamedRows:
    """What `InputAlarm` takes in of events: their numbers, of the first 256 features at most."""
    return NamedRows.of([{name: v for name, v in islice(x.items(), MOST_NAMES) if _is_number(v)} for x in xs])


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) <= sys.float_info.max)
