"""The results of the join of events and labels: lessons, and counts."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from streamsvm.conformal import Decision

from ...records.classes import ClassLabel
from ...records.predictions import Said

ABSENT = -1  # in a checkpoint: no label, or no bytes; of a lesson: no offset


class Told(NamedTuple):
    """What was said of an event before its label came, as far as the label needs it.

    Attributes
    ----------
    margin
        The decision value minus the threshold; with more than two classes, the lead of the predicted one.
    predicted
        The predicted class, if there are more than two; None if the model knew no class.
    decision
        The decision values, in the order of the model's classes, if the label came late; None if the event was
        predicted just now, or if they are not known.
    verdict
        What was decided; None without [decide].
    """

    margin: float = 0.0
    predicted: ClassLabel | None = None
    decision: tuple[float, ...] | None = None
    verdict: Decision | None = None

    @classmethod
    def of(cls, said: Said, *, is_late: bool) -> Self:
        """What a prediction said; `is_late` says whether the label comes late."""
        return cls(said.margin, said.class_label, said.decision if is_late else None, said.verdict)


NOTHING_TOLD = Told()


class Lesson(NamedTuple):
    """Learn this event with this label, in the place of its last lesson.

    Attributes
    ----------
    key
        The event's id as 64 bits.
    value
        The event, as the value of its record; None if it is forgotten.
    y, w
        Label and weight; y is None if the model should only forget the example.
    told
        What was said before the event was first learned.
    entity
        The key whose model learns.
    is_first
        Whether this is the event's first lesson.
    at
        Offset of the event's record.
    waited
        Milliseconds that the event has waited, by the clock of the join.
    """

    key: int
    value: bytes | None
    y: ClassLabel | None
    w: float
    told: Told
    entity: bytes | None
    is_first: bool
    at: int = ABSENT
    waited: int = 0

    @property
    def is_wrong(self) -> bool:
        """Whether another label was predicted."""
        return (self.told.margin > 0.0) != self.y if isinstance(self.y, bool) else self.told.predicted != self.y


@dataclass
class JoinCounters:
    """What became of all events and labels so far; the module explains the outcomes."""

    matched: int = 0  # events that were learned
    expired: int = 0  # events that expired before they were learned
    dropped: int = 0  # events that were dropped before they were learned
    duplicate_events: int = 0
    corrected: int = 0  # labels that replaced one that was learned
    confirmed: int = 0  # newer labels that said the same as the last lesson
    stale: int = 0  # labels that are older than a known one
    duplicate_labels: int = 0
    retracted: int = 0  # retractions before the event was learned
    not_undone: int = 0  # retractions after it; only in old checkpoints
    unmatched: int = 0  # labels and retractions whose event did not come before they expired
    undone: int = 0  # retractions after the event was learned
    dropped_labels: int = 0  # labels and retractions that were dropped before their event came
