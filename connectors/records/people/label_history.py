"""The labels that a log has: every answer in its order, which label holds, and what the model had said at the time.

`LabelHistory` applies the rules of the trainer's join (see `trainer.state.join`): of the labels of an event the last
one holds, by revision and then by offset, and a retraction removes it.  Where a question wants the answers of several
annotators, they decide together first (see `votes`).
"""

import math
from collections import defaultdict
from collections.abc import Container, Iterator
from functools import partial
from typing import NamedTuple

import orjson

from ...logs.reading import read_all
from ...logs.transport import Record, Transport
from ..class_changes import ClassChange, ClassChanges, rename_values
from ..classes import ClassLabel
from ..codec import Codec, readable
from ..formats.base import BadRecord
from ..labels import Label, Place, as_set
from ..times import event_time
from .annotators import person
from .questions import STATUS, is_recheck, read_question
from .votes import Votes


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
        When it was given, in milliseconds since 1970; None if neither the label nor its record says it.
    before, after
        The label of the event that held before this record, and after it; None if there was none.
    """

    label: Label
    place: Place
    rev: int
    time: int | None
    before: ClassLabel | None
    after: ClassLabel | None

    @property
    def annotator(self) -> str:
        """The person who gave it, or another source; empty if the label names none."""
        return person(self.label.source or "")


class _Heard:
    """What the labels of a partition have said."""

    def __init__(self, answers: int) -> None:
        self.changes = ClassChanges()
        self.votes = Votes(answers)
        self.before: dict[Place, ClassLabel] = {}  # the labels of the events that were asked about again

    def take(self, place: Place, label: Label, holding: ClassLabel | None, time: int) -> Label | None:
        """What a label means for an event whose label `holding` holds; None: nothing new, or too few answers so far."""
        if label.query_id is None or not label.source:
            return as_set(label)
        if is_recheck(label.query_id) and self.votes.answers == 1:
            if label.op == "retract":
                return label._replace(op="set", y=self.before[place]) if place in self.before else label
            if holding is not None:
                self.before.setdefault(place, holding)
        return self.votes.hear(label, holding, time)


class LabelHistory:
    """Reads a topic of labels.  Its memory grows with the number of labelled events, not with that of records.

    Parameters
    ----------
    codec
        Reads labels.
    answers
        Number of answers, each by another person, that a question wants.

    Attributes
    ----------
    holding : dict of Place to Entry
        The newest label or retraction of each event.
    n_refused : int
        Records that are no labels.
    """

    def __init__(self, codec: Codec, answers: int) -> None:
        self._codec = codec
        self._heard: defaultdict[int, _Heard] = defaultdict(partial(_Heard, answers))  # by partition
        self.holding: dict[Place, Entry] = {}
        self.n_refused = 0

    def read(self, log: Transport, topic: str) -> Iterator[Entry]:
        """Yield what the topic says now, one partition after the other."""
        for record in read_all(log, topic):
            if record.value is None:
                continue
            try:
                said = self._codec.decode_label(record)
                if isinstance(said, ClassChange):
                    self._change(record.partition, said)
                else:
                    yield self._enter(record, said)
            except BadRecord:
                self.n_refused += 1

    def labels(self) -> Iterator[Entry]:
        """The labels that hold, those of events that were labelled first come first."""
        return (entry for entry in self.holding.values() if entry.label.op == "set")

    def _change(self, partition: int, change: ClassChange) -> None:
        """Let the labels of a class be those of another one; None: as if they had been taken back."""
        heard = self._heard[partition]
        heard.changes.add(change)
        heard.votes.rename_class(change.old, change.new)
        rename_values(heard.before, change.old, change.new)
        for place, entry in self.holding.items():
            if place.partition == partition and entry.after == change.old:
                op = "retract" if change.new is None else entry.label.op
                label = entry.label._replace(y=change.new, op=op)
                self.holding[place] = entry._replace(label=label, after=change.new)

    def _enter(self, record: Record, said: Label) -> Entry:
        heard = self._heard[record.partition]
        label = heard.changes.as_now(said)
        place = Place(record.partition, label.id)
        held = self.holding.get(place)
        before = held.label.y if held else None
        time = event_time(label.time, record.timestamp)
        decided = heard.take(place, label, before, label.rev or max(record.timestamp, 0))
        entry = Entry(said, place, _revision(label, held), time, before, before)
        if decided is None or decided.op not in ("set", "retract"):
            return entry
        rev = _revision(decided, held)
        if held is None or held.rev <= rev:
            self.holding[place] = entry._replace(label=decided, rev=rev, after=decided.y)
            return entry._replace(after=decided.y)
        return entry


def _revision(label: Label, held: Entry | None) -> int:
    """The revision of a label; without one, that of the label that holds."""
    if label.rev is not None:
        return label.rev
    return held.rev if held else 0


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
    label
        The predicted class, as the record names it.
    """

    margin: float
    score: float | None
    reason: str | None = None
    asked_at: int | None = None
    label: ClassLabel | None = None


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
    records = read_all(log, questions) if questions else ()
    told = (record for record in records if record.value is not None and record.key != STATUS)
    for _, asked in readable(told, read_question):
        if asked.place in wanted and not is_recheck(asked.query_id):
            found[asked.place] = Guess(asked.margin, asked.score, asked.reason, asked.asked_at, asked.guess)
    return found


def _prediction(record: Record) -> tuple[Place, Guess] | None:
    """The event of a prediction, and what it says; None for a record of another kind."""
    try:
        fields = orjson.loads(record.value or b"")
        place, margin, score = Place(record.partition, fields["id"]), float(fields["margin"]), float(fields["score"])
    except (ValueError, TypeError, KeyError):
        return None
    is_right = type(place.id) in (int, str) and math.isfinite(margin) and math.isfinite(score)
    return (place, Guess(margin, score, label=fields.get("label"))) if is_right else None
