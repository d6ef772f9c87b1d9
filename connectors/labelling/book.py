"""What the labelling service knows: open and closed questions, the answers to them, and how far the trainer is.

A `Book` has no lock, no thread and no log of its own: `LabellingService` guards it and feeds it with records. The
`History` of answers goes further back than the book's memory.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from streamsvm.active import QuestionBook

from ..logs.transport import Record
from ..records.class_changes import ClassChange, ClassChanges
from ..records.classes import ClassLabel
from ..records.codec import Codec
from ..records.formats.base import BadRecord
from ..records.labels import Label, Place
from ..records.people.annotators import MAX_NAME, agreement
from ..records.people.questions import (
    COUNTS,
    STATUS,
    Question,
    read_query_id,
    read_question,
    read_status,
    write_question,
)
from ..records.times import is_known
from .answer import Given
from .ballots import KEPT_QUESTIONS, Ballots
from .history import History

logger = logging.getLogger(__name__)


_KEPT_QUESTIONS = 1_000  # closed questions: a late answer or an undo may come
_KEPT_BYTES = 16 << 20  # of the records of all closed questions
_SILENT_SECONDS = 60  # without a reaction of the trainer to an answer


class UnknownQuestion(LookupError):  # noqa: N818 - named for the condition
    """No question has this id, or it was closed so long ago that it is forgotten."""


class Book:
    """Questions and answers, as the two topics and this process's own answers tell them.

    Parameters
    ----------
    lease
        Milliseconds that a question stays reserved for one annotator.
    answers
        Number of answers, each by another person, that a question wants.
    codec
        Reads labels.
    clock
        Seconds since the epoch.
    history
        Remembers the answers, and the questions that this book has forgotten.
    """

    def __init__(self, lease: int, answers: int, codec: Codec, clock: Callable[[], float], history: History) -> None:
        self.queue = QuestionBook(lease)
        self.changes = ClassChanges()
        self.ballots = Ballots(answers, lambda word: self.changes.meaning(word))
        self.open: dict[str, Question] = {}
        self._codec = codec
        self._clock = clock
        self._history = history
        self._closed: dict[str, tuple[Question, int]] = {}  # answered or withdrawn, with their bytes, oldest first
        self._asked: dict[str, int] = {}  # questions that the topic holds open, and the times of their records
        self._back: set[str] = set()  # questions that are open because their answer was retracted
        self._unheard: dict[str, float] = {}  # answers without a reaction of the trainer, and their times
        self._status: dict[int, dict[str, Any]] = {}  # by partition
        self._heard: int | None = None  # time of the trainer's newest record
        self._refused: set[tuple[str, int, int]] = set()  # topic, partition and offset of damaged records

    def place(self, query_id: str) -> Place | None:
        """Where an answer to a question goes; None if the question is unknown."""
        shown = self._shown(query_id)
        if shown is not None:
            return shown.place
        newest = self.ballots.newest(query_id)
        return None if newest is None else newest.place

    def _shown(self, query_id: str) -> Question | None:
        return self.open.get(query_id) or self._closed.get(query_id, (None, 0))[0]

    def question(self, query_id: str) -> Question | None:
        """A question, open or closed; None if its contents are not known."""
        return self._shown(query_id) or self._history.question(query_id)

    def recall(self, query_id: str) -> None:
        """Take a question that this book has forgotten, and its answers, from the history."""
        self._recall_answers(query_id)
        if self._shown(query_id) is None and (shown := self._history.question(query_id)) is not None:
            self.keep(shown)

    # --- what the trainer writes --------------------------------------------------------------------------------------

    def begin_questions(self) -> None:
        """Prepare for reading the topic of questions from its start."""
        self._asked.clear()

    def end_questions(self) -> int | None:
        """Close the open questions that the topic no longer mentions: they were withdrawn and then deleted.

        Returns
        -------
        int or None
            Time of the oldest record of an open question; None if none is open.
        """
        for query_id in self.open.keys() - self._asked.keys() - self._back:
            self.close(query_id)
        return min(self._asked.values(), default=None)

    def read_question(self, record: Record) -> None:
        """Take up a record of the topic of questions: a question, the end of one, or the trainer's status.

        Raises
        ------
        BadRecord
            If the record is damaged.
        """
        self._heard = max(record.timestamp, self._heard or 0)
        if record.key == STATUS:
            self._status[record.partition] = status = read_status(record)
            for change in status.get("changes", ()):
                self.note_change(ClassChange(*change))
            return
        if record.value is None:
            query_id = read_query_id(record)
            self._unheard.pop(query_id, None)
            if query_id not in self._back:
                self.close(query_id)
            return
        shown = read_question(record)
        query_id = shown.query_id
        self._asked[query_id] = record.timestamp
        self.open[query_id] = shown
        if self.ballots.answers > 1:
            self._recall_answers(query_id)
        if self.ballots.is_decided(query_id):
            self.close(query_id)
        else:
            self._closed.pop(query_id, None)
            self._offer(shown)

    def set_aside(self, record: Record, error: BadRecord) -> None:
        """Count a damaged record; warn of it once, although it is read again whenever the log is opened."""
        place = (record.topic, record.partition, record.offset)
        if place not in self._refused:
            logger.warning("%s-%d: passing over offset %d: %s", *place, error)
        if len(self._refused) < KEPT_QUESTIONS:
            self._refused.add(place)

    # --- answers ------------------------------------------------------------------------------------------------------

    def read_label(self, record: Record) -> None:
        """Take up a record of the topic of labels; a label that no question asked for changes nothing.

        Raises
        ------
        BadRecord
            If the record is damaged.
        """
        value = record.value or b""
        if b'"query_id"' not in value and b'"from"' not in value:  # most labels; this saves reading them
            return
        label = self._codec.decode_label(record)
        if isinstance(label, ClassChange):
            self.note_change(label)
        elif label.query_id is not None:
            self._take(record, label, label.query_id)

    def _take(self, record: Record, label: Label, query_id: str) -> None:
        """Take up the answer to a question."""
        who = (label.source or "")[:MAX_NAME]
        rev = label.rev  # those of our own answers are their times
        if rev is None:
            rev = record.timestamp if is_known(record.timestamp) else record.offset
        given = Given(label.op, label.y, who, rev, Place(record.partition, label.id), like=label.like)
        last = self.last(query_id, who)
        if last is None or last.rev < given.rev:
            self.note(query_id, given)
        else:
            self._write_down(query_id, given)

    def note_change(self, change: ClassChange) -> None:
        """Take up a change of the classes, once: every partition has it."""
        if change not in self.changes.all:
            self.changes = ClassChanges(sorted([*self.changes.all, change], key=attrgetter("rev")))

    def last(self, query_id: str, who: str) -> Given | None:
        """The answer that another one of `who` would replace: the newest one, or their own if several are wanted."""
        if self.ballots.answers > 1:
            self._recall_answers(query_id)
        return self.ballots.of(query_id, who)

    def _recall_answers(self, query_id: str) -> None:
        """Take the answers to a question from the history if none is known; one that no longer counts may be newest."""
        if self.ballots.newest(query_id) is None:
            found = self._history.answers(query_id) if self.ballots.answers > 1 else []
            for step in found or self._history.newest(query_id):
                self.ballots.note(query_id, step.given)

    def assign(self, who: str, now: int) -> str | None:
        """A question for `who` that they have not answered yet, which is then reserved for them."""
        return self.queue.assign(self.ballots.voter(who), now, self.ballots.answered(who, self.open))

    def pass_on(self, who: str, to: str, now: int) -> None:
        """Reserve the question of `who` for `to`, unless they have answered it or have another one."""
        voters = self.ballots.voter(who), self.ballots.voter(to)
        self.queue.pass_on(*voters, now, self.ballots.answered(to, self.open))

    def note(self, query_id: str, given: Given) -> None:
        """Remember a durable answer.  It closes its question unless more are wanted; a retraction opens it again."""
        self._write_down(query_id, given)
        if given.op != "retract":  # this may come twice: by our own call, and from the log
            self._back.discard(query_id)
        self.ballots.note(query_id, given)
        if self.ballots.is_decided(query_id):
            if query_id in self._asked:
                self._unheard[query_id] = self._clock()
            self.close(query_id)
            return
        self._unheard.pop(query_id, None)
        if given.op == "retract":
            self.queue.withdraw(query_id)
        else:  # this does nothing if the queue has the answer already
            self.queue.passed(query_id, self.ballots.voter(given.who))
        if (shown := self._shown(query_id)) is not None:
            self._reopen(shown)

    def close(self, query_id: str) -> None:
        """Stop showing a question."""
        self.queue.withdraw(query_id)
        self._asked.pop(query_id, None)
        shown = self.open.pop(query_id, None)
        if shown is not None:
            self.keep(shown)

    def keep(self, shown: Question) -> None:
        """Remember a question that is not open, and forget the oldest ones if there are too many."""
        self._closed[shown.query_id] = shown, len(write_question(shown))
        while len(self._closed) > _KEPT_QUESTIONS or sum(size for _, size in self._closed.values()) > _KEPT_BYTES:
            del self._closed[next(iter(self._closed))]

    def _offer(self, shown: Question) -> None:
        self.queue.add(shown.query_id, shown.asked_at, self.ballots.missing(shown.query_id))

    def _reopen(self, shown: Question) -> None:
        if shown.query_id not in self.open:
            self._closed.pop(shown.query_id, None)
            self.open[shown.query_id] = shown
            self._back.add(shown.query_id)
        self._offer(shown)

    def open_again(self) -> None:
        """After a restart, open the questions whose answers had been taken back."""
        for shown in self._history.opened_again():
            if shown.query_id not in self.open and not self.ballots.is_decided(shown.query_id):
                self._reopen(shown)

    def _write_down(self, query_id: str, given: Given) -> None:
        """Add an answer to the history; it counts even if that fails."""
        try:
            self._history.add(query_id, given, self._shown(query_id))
        except OSError as error:
            logger.warning("an answer counts, but will be missing in the history: %s", error)

    # --- how far the labelling is -------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Counts, quota, verdict and curve of all partitions, and this book's own counts."""
        parts = [self._status[number] for number in sorted(self._status)]
        counts = {name: sum(int(part.get(name) or 0) for part in parts) for name in COUNTS}
        quotas = [part["remaining"] for part in parts if part.get("remaining") is not None]
        fullest = max(parts, key=lambda part: int(part.get("labels") or 0), default={})
        return {
            **counts,
            **_people(parts),
            **_classes(parts),
            "changes": self.changes.all,
            "remaining": sum(quotas) if quotas else None,
            "verdict": _verdict(self._status),
            "missed": _missed(self._status),
            "recall": next((part["recall"] for part in parts if "recall" in part), None),
            "curve": fullest.get("curve", []),
            "waiting": len(self.open),
            "unheard": len(self._unheard),
            "refused": len(self._refused),
            "heard_at": self._heard,
        }

    def missing_trainer(self) -> str | None:
        """A sentence if the trainer has written nothing, or does not react to answers."""
        if self._heard is None:
            return "no trainer has asked a question yet: `streamsvm run` asks as soon as it has read enough events"
        silent = self._clock() - min(self._unheard.values(), default=math.inf)
        if silent < _SILENT_SECONDS:
            return None
        return f"the trainer has not reacted to an answer for {silent:.0f} seconds: is `streamsvm run` running?"


def _classes(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The labels of each class over all partitions, with more than two classes."""
    found: Counter[ClassLabel] = Counter()
    for part in parts:
        found.update(dict(part.get("classes", ())))
    return {"classes": [[label, n] for label, n in found.items()]} if found else {}


def _people(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The annotators and their agreement, over all partitions: sums, and means by number of shared events."""
    found = [part["agreement"] for part in parts if "agreement" in part]
    whole = dict(max(found, key=lambda each: int(each["n_shared"]), default=agreement(())._asdict()))
    whole["n_shared"] = sum(each["n_shared"] for each in found)
    for name in ("share", "kappa"):
        whole[name] = _mean([(each[name], each["n_shared"]) for each in found])
    people: dict[str, list[Mapping[str, Any]]] = {}
    for one in (one for part in parts for one in part.get("annotators", ())):
        people.setdefault(one["name"], []).append(one)
    return {"agreement": whole, "annotators": [_person(people[name]) for name in sorted(people)]}


def _person(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The statistics of one annotator, over all partitions."""
    sums = {name: sum(part[name] for part in parts) for name in parts[0] if name.startswith("n_")}
    rates = [part["per_hour"] for part in parts if part["per_hour"] is not None]
    share = _mean([(part["agreement"], part["n_labels"]) for part in parts])
    return {**parts[0], **sums, "agreement": share, "per_hour": sum(rates) if rates else None}


def _mean(values: Sequence[tuple[float | None, int]]) -> float | None:
    """The mean of the known values, by their weights."""
    known = [(value, n) for value, n in values if value is not None and n]
    return sum(value * n for value, n in known) / sum(n for _, n in known) if known else None


def _verdict(parts: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """One verdict for all partitions: stop if all of them say so, audit if any does.

    Where all have stopped and one of them only because its quota is spent, the quota is spent: that is no success.
    """
    verdicts = {number: part["verdict"] for number, part in sorted(parts.items()) if part.get("verdict")}
    reasons: dict[str, list[int]] = {}
    for number, verdict in verdicts.items():
        reasons.setdefault(str(verdict.get("why") or ""), []).append(number)
    if len(reasons) > 1:
        why = "; ".join(f"partition {', '.join(map(str, numbers))}: {text}" for text, numbers in reasons.items())
    else:
        why = next(iter(reasons), "")
    stop = bool(verdicts) and all(verdict.get("stop") for verdict in verdicts.values())
    return {
        "stop": stop,
        "audit": any(verdict.get("audit") for verdict in verdicts.values()),
        "why": why,
        "spent": stop and any(verdict.get("spent") for verdict in verdicts.values()),
    }


def _missed(parts: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """How many positives are at most missed in all partitions; None where a partition has no random answer yet."""
    found = [part["missed"] for part in parts.values() if part.get("missed")]
    bounds = [missed["at_most"] for missed in found]
    return {
        "at_most": None if not bounds or None in bounds else sum(bounds),
        "n_unlabelled": sum(missed["n_unlabelled"] for missed in found),
    }
