"""The questions of a labelling loop: which are open, which examples they are about, and how they end.

A question is about one example.  The example leaves the pool when it is asked about, and is never asked about again.  A
question is open until it is answered, skipped or ignored, until it expires, or until it is withdrawn.

It remembers the open questions, the last 10,000 examples whose question has ended, and the last 10,000 that were
labelled without a question.  An example that is forgotten counts as never seen.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import asdict
from itertools import chain, islice
from typing import Any

from streamsvm.active.answers.events import Action, Label, LoopCounts, Question, Withdraw
from streamsvm.active.answers.register import ALIKE, ENDED, Record, question_id
from streamsvm.active.choosing.decisions import margins
from streamsvm.active.choosing.pool import Pool
from streamsvm.active.choosing.selection import Choice
from streamsvm.core.newest import Newest


class Questions:
    """The pool, the examples that have left it for a question, and the counts of both.

    Parameters
    ----------
    pool
        The examples without a label.
    name
        Part of the questions' ids.
    is_alive
        Says whether an example can still be learned; None: every example can.
    """

    def __init__(self, pool: Pool, name: str, is_alive: Callable[[int], bool] | None) -> None:
        self._name = name
        self.open: dict[int, Record] = {}  # oldest first
        self._closed: Newest[int, Record] = Newest(ENDED)
        self._elsewhere: Newest[int, Record] = Newest(ENDED)
        self._pool: Any = pool
        self._is_alive = is_alive
        self._rows: dict[int, Any] = {}  # examples of the open questions
        self.counts = LoopCounts(n_offered=len(pool))

    def find(self, key: int) -> Record | None:
        """The record of an example; None if it was never seen, or is forgotten."""
        return self.open.get(key) or self._closed.get(key) or self._elsewhere.get(key)

    def record_of(self, key: int, *, is_alike: bool = False) -> Record:
        """The record of an example.  If a person has seen it without being asked, it is not asked about any more."""
        record = self.find(key)
        if record is None:
            was_there = self._pool.discard(key)
            self.counts.elsewhere += 1
            self._elsewhere[key] = record = Record(None, "elsewhere")
            if is_alike and was_there:
                record.status = ALIKE
                self.counts.alike += 1
        return record

    def forget_alike(self, key: int) -> bool:
        """Forget a near-duplicate whose label was taken back; return whether it is one."""
        record = self._elsewhere.get(key)
        if record is None or record.status != ALIKE or record.y is not None:
            return False
        del self._elsewhere[key]
        self.counts.alike -= 1
        self.counts.elsewhere -= 1
        return True

    def n_without_label(self) -> int:
        """Number of examples that have left the pool and have no label, except those to be ignored."""
        records = chain(self.open.values(), self._closed.values(), self._elsewhere.values())
        return sum(record.is_without_label for record in records)

    def is_without_label(self, key: int) -> bool:
        """Whether `n_without_label` counts this example."""
        record = self.find(key)
        return record is not None and record.is_without_label

    def said(self, key: int) -> bool | None:
        """What is known of an example: whether it is positive; None if it may be.  An ignored one is not."""
        record = self.find(key)
        if record is None:
            return None
        return False if record.status == "ignored" else None if record.y is None else record.y is True

    def row(self, key: int) -> Any:
        """The example of an open question; None if it was lost in a restart."""
        return self._rows[key]

    def known_row(self, key: int) -> Any:
        """An example of the pool or of an open question; None if it is neither, or was lost in a restart."""
        if key in self._rows:
            return self._rows[key]
        return self._pool.rows([key]) if key in self._pool else None

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
            for record in chain(self.open.values(), self._closed.values())
            if record.question is not None and record.is_without_label
        ]

    # --- asking -------------------------------------------------------------------------------------------------------

    def choose(self, draw: Callable[[], Choice]) -> Choice | None:
        """An example that can still be learned; None if there is none left."""
        while len(self._pool):
            choice = draw()
            if self._can_learn(choice.key):
                return choice
            self._pool.discard(choice.key)
            self.counts.gone += 1
        return None

    def ask(self, choice: Choice, now: int, expires: int, guess: Label | None = None) -> Question:
        """Open a question about an example of the pool."""
        key = choice.key
        question = Question(question_id(self._name, key), key, choice.reason, float(choice.margin), now, expires, guess)
        self._rows[key] = self._pool.rows([key])
        self._pool.discard(key)
        self.open[key] = Record(question, "open")
        self.counts.n_asked += 1
        self.counts.n_open += 1
        return question

    def _can_learn(self, key: int) -> bool:
        return self._is_alive is None or self._is_alive(key)

    # --- ending -------------------------------------------------------------------------------------------------------

    def expire(self, now: int) -> list[Action]:
        """Withdraw the questions whose time is over."""
        over = [record for record in self.open.values() if record.question and record.question.expires <= now]
        return [self.end(record, "expired", "expired") for record in over]

    def refresh(self, model: Any, keep: Container[int]) -> list[Action]:
        """Withdraw the questions whose example is gone, or whose answer the model is sure of unless `keep` has them."""
        actions: list[Action] = []
        for key, record in list(self.open.items()):
            if not self._can_learn(key):
                actions.append(self.end(record, "withdrawn", "the example is gone"))
            elif key not in keep and self._is_settled(record.question, model):
                actions.append(self.end(record, "withdrawn", "no longer needed: the model is sure"))
        return actions

    def _is_settled(self, question: Question | None, model: Any) -> bool:
        assert question is not None
        row = self._rows[question.key]
        if question.reason != "boundary" or abs(question.margin) >= 1.0 or row is None:
            return False
        return bool(abs(margins(model, row)[0]) >= 1.0)

    def withdraw(self, records: Iterable[Record], why: str) -> list[Action]:
        """Withdraw open questions."""
        return [self.end(record, "withdrawn", why) for record in records]

    def end(self, record: Record, status: str, why: str) -> Action:
        """End an open question without a label."""
        assert record.question is not None
        self.close_as(record, status)
        setattr(self.counts, status, getattr(self.counts, status) + 1)
        return Withdraw(record.question, why)

    def close_as(self, record: Record, status: str) -> None:
        """Note how a question has ended, which may be open or closed."""
        assert record.question is not None
        record.status, key = status, record.question.key
        if self.open.pop(key, None) is not None:
            self._closed[key] = record
            del self._rows[key]
            self.counts.n_open -= 1

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything except the examples, as JSON can hold it."""
        kinds = {"open": self.open, "closed": self._closed, "elsewhere": self._elsewhere}
        return {"counts": asdict(self.counts), **{kind: _stored(records) for kind, records in kinds.items()}}

    def restore(self, state: Mapping[str, Any], row_of: Callable[[int], Any]) -> None:
        """Continue where `state` was taken; `row_of` gives the examples of the open questions."""
        self.counts = LoopCounts(**state["counts"])
        self.open = dict(self._records_of(state["open"]))
        self._closed = Newest(ENDED, self._records_of(state["closed"]))
        self._elsewhere = Newest(ENDED, self._records_of(state["elsewhere"]))
        self._rows = {key: row_of(key) for key in self.open}

    def _records_of(self, stored: list[list[Any]]) -> list[tuple[int, Record]]:
        return [(key, Record(self._question_of(key, about), *rest)) for key, about, *rest in stored]

    def _question_of(self, key: int, about: list[Any] | None) -> Question | None:
        return None if about is None else Question(question_id(self._name, key), key, *about)


def _stored(records: dict[int, Record]) -> list[list[Any]]:
    return [
        [key, None if r.question is None else list(r.question[2:]), r.status, r.y, r.time] for key, r in records.items()
    ]
