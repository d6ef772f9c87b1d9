"""The labels that a log has: every answer in its order, which label holds, and what the model had said at the time.

`LabelHistory` applies the rules of the trainer's join (see `trainer.state.join`): of the labels of an event the last
one holds, by revision and then by offset, and a retraction removes it.  What several answers to a question mean
together, the caller's `Hear` says.
"""

import math
from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

import orjson

from ..logs.reading import read_all
from ..logs.transport import Record, Transport
from .annotators import person
from .codec import Codec
from .formats.base import BadRecord
from .labels import Label, Place, answered_question
from .questions import STATUS, read_question
from .times import event_time

_MAX_SKEW = 50 * 366 * 86_400_000  # milliseconds; it only keeps times in the range of dates


class Entry(NamedTuple):
    """A record of the topic of labels.

    Attributes
    ----------
    label
        What it says.
    place
        The event that it is about.
    rev
        Its revision; of a record without one, the highest revision before it.
    time
        When it was given, in milliseconds since 1970.
    query_id
        The question that it answers, or None.
    is_change
        Whether it changed which label holds of the event.
    """

    label: Label
    place: Place
    rev: int
    time: int
    query_id: str | None
    is_change: bool

    @property
    def annotator(self) -> str:
        """The person who gave it, or another source; empty if the label names none."""
        return person(self.label.source or "")


Hear = Callable[[Place, str | None, Label, bool | None], Label | None]


class LabelHistory:
    """Reads a topic of labels.  Its memory grows with the number of labelled events, not with that of records.

    Parameters
    ----------
    codec
        Reads labels.
    hear
        Says what a label means for its event, given the event, the question and the label that holds; None: nothing
        new.  See `trainer.state.answers.hearing`.

    Attributes
    ----------
    holding : dict of Place to Entry
        The newest label or retraction of each event.
    n_refused : int
        Records that are no labels.
    """

    def __init__(self, codec: Codec, hear: Hear) -> None:
        self._codec = codec
        self._hear = hear
        self.holding: dict[Place, Entry] = {}
        self.n_refused = 0

    def read(self, log: Transport, topic: str) -> Iterator[Entry]:
        """Yield what the topic says now, one partition after the other."""
        for record in read_all(log, topic):
            try:
                yield self._enter(record)
            except BadRecord:
                self.n_refused += 1

    def labels(self) -> Iterator[Entry]:
        """The labels that hold, those of events that were labelled first come first."""
        return (entry for entry in self.holding.values() if entry.label.op == "set")

    def _enter(self, record: Record) -> Entry:
        label = self._codec.decode_label(record)
        place = Place(record.partition, label.id)
        before = self.holding.get(place)
        said_before, query_id = None if before is None else before.label.y, answered_question(record)
        together = self._hear(place, query_id, label, said_before)
        rev = _revision(label, before)
        time = event_time(label.ts, record.timestamp, _MAX_SKEW)
        if together is None or together.op not in ("set", "retract"):
            return Entry(label, place, rev, time, query_id, is_change=False)
        holds = before is None or before.rev <= _revision(together, before)
        if holds:
            self.holding[place] = Entry(together, place, _revision(together, before), time, query_id, is_change=True)
        return Entry(label, place, rev, time, query_id, is_change=holds and together.y is not said_before)


def _revision(label: Label, before: Entry | None) -> int:
    """The revision of a label; without one, that of the label before it."""
    if label.rev is not None:
        return label.rev
    return before.rev if before else 0


class Guess(NamedTuple):
    """What the model said about an event before its label came.

    Attributes
    ----------
    margin, score
        Decision value, and probability of the positive class or None.
    reason
        Why it was asked about; None if it was not.
    asked_at
        When it was asked about, in milliseconds; None if it was not.
    """

    margin: float
    score: float | None
    reason: str | None = None
    asked_at: int | None = None


def read_guesses(log: Transport, questions: str, predictions: str, wanted: Container[Place]) -> dict[Place, Guess]:
    """What the model said when it asked about these events, or else when they came.

    Parameters
    ----------
    log
        The log.
    questions, predictions
        Topics; empty: there is none.
    wanted
        The events.
    """
    found: dict[Place, Guess] = {}
    for record in read_all(log, predictions) if predictions else ():
        said = _prediction(record)
        if said is not None and said[0] in wanted:
            found[said[0]] = said[1]
    for record in read_all(log, questions) if questions else ():
        if record.value is None or record.key == STATUS:
            continue
        try:
            asked = read_question(record)
        except BadRecord:
            continue
        if asked.place in wanted:
            found[asked.place] = Guess(asked.margin, asked.score, asked.reason, asked.asked_at)
    return found


def _prediction(record: Record) -> tuple[Place, Guess] | None:
    """The event of a prediction, and what it says; None for a record of another kind."""
    try:
        fields = orjson.loads(record.value or b"")
        place, margin, score = Place(record.partition, fields["id"]), float(fields["margin"]), float(fields["score"])
    except (ValueError, TypeError, KeyError):
        return None
    is_right = type(place.id) in (int, str) and math.isfinite(margin) and math.isfinite(score)
    return (place, Guess(margin, score)) if is_right else None
