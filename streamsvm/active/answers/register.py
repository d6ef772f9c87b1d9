"""The register of examples that were asked about or answered: what the loop knows of each.

It remembers the open questions, the last 10,000 examples whose question has ended, and the last 10,000 that were
labelled without a question.  An example that is forgotten counts as never seen.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from streamsvm.active.answers.events import Label, Question
from streamsvm.core.newest import Newest

LATER = "later"
ALIKE = "alike"
ENDED = 10_000  # examples whose question has ended, and as many that were labelled without one

_NEVER = -(1 << 63)  # before all times
_NAMESPACE = uuid.UUID("5f0c8a0e-6f0b-4b52-9d3c-5a0d6f5d8f11")  # of the loops' names


@dataclass(slots=True)
class Record:
    """What is known of an example that was asked about or answered.

    question
        None if it was never asked about.
    status
        "open", or how the question ended; "elsewhere" if there was none, or `LATER` if the example came when a promise
        of recall took in no examples any more, or `ALIKE` if it is a near-duplicate of one that was asked about.
    y
        The label that holds.
    time
        When the newest label or retraction was given.
    """

    question: Question | None
    status: str
    y: Label | None = None
    time: int = _NEVER


class Register:
    """The records of examples, by key.

    Parameters
    ----------
    name
        Part of the questions' ids: two loops whose keys may be equal need different names.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.open: dict[int, Record] = {}  # oldest first
        self._closed: Newest[int, Record] = Newest(ENDED)
        self._elsewhere: Newest[int, Record] = Newest(ENDED)

    def question_id(self, key: int) -> str:
        """The id of the question about an example, the same in every replay."""
        return question_id(self._name, key)

    def find(self, key: int) -> Record | None:
        """The record of an example; None if it was never seen, or is forgotten."""
        return self.open.get(key) or self._closed.get(key) or self._elsewhere.get(key)

    def add_open(self, question: Question) -> None:
        """Enter a question."""
        self.open[question.key] = Record(question, "open")

    def add_elsewhere(self, key: int) -> Record:
        """Enter an example that gets an answer without a question."""
        self._elsewhere[key] = record = Record(None, "elsewhere")
        return record

    def forget_alike(self, key: int) -> bool:
        """Forget a near-duplicate whose label was taken back; return whether it is one."""
        record = self._elsewhere.get(key)
        if record is None or record.status != ALIKE or record.y is not None:
            return False
        del self._elsewhere[key]
        return True

    def close(self, key: int) -> bool:
        """Close the question about an example; return whether it was open."""
        record = self.open.pop(key, None)
        if record is None:
            return False
        self._closed[key] = record
        return True

    def answered(self, most: int) -> dict[int, Label]:
        """The labels that hold of the `most` examples whose questions were answered last, by key, the oldest first."""
        closed = reversed(self._closed.items())
        newest = ((key, record.y) for key, record in closed if record.status == "answered" and record.y is not None)
        return dict(list(islice(newest, most))[::-1])

    def labels(self, *, alike: bool = True) -> dict[int, Label]:
        """All labels that hold and are remembered, asked for or not, by key; without near-duplicates unless `alike`."""
        records = {**self._elsewhere, **self._closed, **self.open}
        return {
            key: record.y
            for key, record in records.items()
            if record.y is not None and (alike or record.status != ALIKE)
        }

    def unanswered(self) -> list[tuple[Question, str]]:
        """The questions about examples that have no label and are not to be ignored, and how they ended, or "open"."""
        return [
            (record.question, record.status)
            for record in (*self.open.values(), *self._closed.values())
            if record.question is not None and record.y is None and record.status != "ignored"
        ]

    def n_unasked(self) -> int:
        """Number of examples that got an answer without a question, and that have no label any more."""
        return sum(record.y is None for record in self._elsewhere.values())

    def state(self) -> dict[str, Any]:
        """Everything except the questions' ids, as JSON can hold it."""
        return {"open": _stored(self.open), "closed": _stored(self._closed), "elsewhere": _stored(self._elsewhere)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        self.open = dict(self._records_of(state["open"]))
        self._closed = Newest(ENDED, self._records_of(state["closed"]))
        self._elsewhere = Newest(ENDED, self._records_of(state["elsewhere"]))

    def _records_of(self, stored: list[list[Any]]) -> list[tuple[int, Record]]:
        return [(key, Record(self._question_of(key, about), *rest)) for key, about, *rest in stored]

    def _question_of(self, key: int, about: list[Any] | None) -> Question | None:
        return None if about is None else Question(self.question_id(key), key, *about)


def question_id(name: str, key: int) -> str:
    """The id of the question that a loop of this name asks about an example, now or ever."""
    return str(uuid.uuid5(_namespace(name), str(key)))


@lru_cache(64)
def _namespace(name: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, name)


def _stored(records: dict[int, Record]) -> list[list[Any]]:
    return [
        [key, None if r.question is None else list(r.question[2:]), r.status, r.y, r.time] for key, r in records.items()
    ]
