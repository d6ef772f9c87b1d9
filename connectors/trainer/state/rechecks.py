"""Rechecks: questions that ask again about answers that look wrong.

After every so many answers, the answers that the model of all others contradicts are asked again, the worst first, and
none of them twice.  The outcome depends on the sequence of calls alone.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamsvm.active.answers.suspects import ranked
from streamsvm.estimators.leave_one_out import left_out_margins

from ...records.class_changes import rename_values
from ...records.classes import ClassLabel
from ...records.labels import Label
from ...records.models import Model
from ...records.people.votes import MEMORY

FEWEST = 20  # below this, the others say too little about an answer


class Recheck(NamedTuple):
    """An open question that asks again: the event, the label that holds, and when it expires."""

    key: int
    y: ClassLabel
    expires: int


class Rechecks:
    """The open questions that ask again, and the events that were asked about again.

    Parameters
    ----------
    every
        Number of answers between two looks; 0: never look.
    most
        Largest number of open questions.
    """

    def __init__(self, every: int, most: int) -> None:
        self._every = every
        self._most = most
        self._looked_at = 0
        self.open: dict[str, Recheck] = {}  # by the question's id
        self._past: OrderedDict[int, ClassLabel] = OrderedDict()  # the label before, by event
        self._closed: list[str] = []
        self.counts = {"rechecks": 0, "confirmed": 0, "revised": 0}  # what became of the questions

    def is_due(self, n_answered: int) -> bool:
        """Whether it is time to look, with so many answers; this counts as a look."""
        if not self._every or n_answered - self._looked_at < self._every or len(self.open) >= self._most:
            return False
        self._looked_at = n_answered
        return True

    def choose(self, answers: Mapping[int, ClassLabel], rows: Any, weights: Any, model: Model) -> list[int]:
        """The events to ask about again.

        Parameters
        ----------
        answers
            Labels that hold, by event.
        rows
            The features of these events, in the same order.
        weights
            The weights of these events, in the same order.
        model
            The model, whose scaling, kernel and C apply.
        """
        y = list(answers.values())
        if len(y) < FEWEST or len(set(y)) < 2:
            return []
        suspects = ranked(left_out_margins(model, rows, y, np.array(weights)))
        keys, open_ = list(answers), {recheck.key for recheck in self.open.values()}
        doubtful = [keys[suspect.place] for suspect in suspects if suspect.margin < 0]
        new = [key for key in doubtful if key not in self._past and key not in open_]
        return new[: self._most - len(self.open)]

    def ask(self, query_id: str, recheck: Recheck) -> None:
        """Enter a question that asks again."""
        self.open[query_id] = recheck
        self.counts["rechecks"] += 1

    def hear(self, query_id: str, label: Label) -> Label:
        """Take an answer; return what it says about its event.

        Taking back the answer to a question that asks again does not take back the answer before it.
        """
        recheck = self.open.get(query_id)
        if recheck is not None:
            self._end(query_id)
            self.counts["confirmed"] += label.y == recheck.y
            self.counts["revised"] += label.y is not None and label.y != recheck.y
        if label.op == "retract" and label.key in self._past:
            return label._replace(op="set", y=self._past[label.key])
        return label

    def rename_class(self, old: ClassLabel, new: ClassLabel | None) -> None:
        """Let the answers of a class be those of another one; None: doubts about them are over."""
        if new is None:
            self._end_where(lambda recheck: recheck.y == old)
        else:
            renamed = {query_id: each._replace(y=new) for query_id, each in self.open.items() if each.y == old}
            self.open.update(renamed)
        rename_values(self._past, old, new)

    def erase(self, keys: Iterable[int]) -> None:
        """Close the questions about these events, and forget what was answered before."""
        gone = set(keys)
        self._end_where(lambda recheck: recheck.key in gone)
        for key in gone:
            self._past.pop(key, None)

    def expire(self, now: int) -> None:
        """Close the questions whose time is over; their answers are not asked about again."""
        self._end_where(lambda recheck: recheck.expires <= now)

    def take_closed(self) -> list[str]:
        """The questions that were closed since the last call."""
        closed, self._closed = self._closed, []
        return closed

    def _end_where(self, is_over: Callable[[Recheck], bool]) -> None:
        for query_id in [query_id for query_id, recheck in self.open.items() if is_over(recheck)]:
            self._end(query_id)

    def _end(self, query_id: str) -> None:
        recheck = self.open.pop(query_id)
        self._closed.append(query_id)
        self._past[recheck.key] = recheck.y
        if len(self._past) > MEMORY:
            self._past.popitem(last=False)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything, as JSON can hold it; between two cuts, all closed questions were taken."""
        return {
            "looked_at": self._looked_at,
            "open": [[query_id, *recheck] for query_id, recheck in self.open.items()],
            "past": list(map(list, self._past.items())),
            "counts": self.counts,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._looked_at = state["looked_at"]
        self.open = {query_id: Recheck(*rest) for query_id, *rest in state["open"]}
        self._past = OrderedDict((key, y) for key, y in state["past"])
        self.counts |= state["counts"]
