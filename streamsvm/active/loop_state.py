"""The state of a labelling loop, and its form in a checkpoint: questions, answers, pool, rules and random state."""

from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np

from streamsvm.active.answers.events import CurvePoint, Label, LoopCounts, Missed, Question
from streamsvm.active.answers.progress import Progress
from streamsvm.active.answers.questions import Questions
from streamsvm.active.choosing.audited import missed_at_most
from streamsvm.active.choosing.recall_rule import ToRecall
from streamsvm.active.choosing.selection import Selection
from streamsvm.active.choosing.stopping import StoppingRule, Verdict

EACH_CLASS = 3  # labels, until which some questions are still of the start: one positive says little about the others


class LoopState:
    """The part of `LabellingLoop` that decides nothing."""

    _pool: Any
    _selection: Selection
    _stopping: StoppingRule | None
    _seeds: int
    _is_several: bool
    _name: str
    _rng: np.random.Generator
    _questions: Questions
    _progress: Progress
    _suggested: list[int]  # keys to ask about first
    _promise: ToRecall | None  # the rule that promises a recall
    _looked_at: tuple[Any, ...] = ()  # what that rule has seen

    @property
    def counts(self) -> LoopCounts:
        """What became of examples, questions and answers."""
        return self._questions.counts

    def curve(self) -> list[CurvePoint]:
        """Agreement and support vectors over the answered questions: at most 256 points, the last one of now."""
        return self._progress.curve(self.counts.n_answered)

    def verdict(self) -> Verdict:
        """Whether to stop, and why, in a sentence for the annotators."""
        verdict = self._judge()
        if verdict.stop or self._promise is not None or not self._is_seeding():
            return verdict
        counts, n = self.counts, self._seeds
        if self._is_several:
            known = sum(labels > 0 for _, labels in counts.of_classes)
            of_which, so_far = "two classes", f"{known} classes have labels so far"
        else:
            of_which, so_far = "both classes", f"{counts.n_positive} positive, {counts.n_negative} negative so far"
        labels = "a label" if n <= 1 else f"{n} labels"
        return Verdict(False, False, f"the model first needs {labels} of {of_which}: {so_far}")

    def missed(self, disputed: Container[int] = ()) -> Missed:
        """How many positives the model may still miss.

        The answers to random questions ("audit") bound those of the pool.  An example that was asked about and has no
        label counts as missed: its question is open, was skipped, or is over.  So does one whose label, which was not
        asked for, was retracted.  A random question that was skipped, or
        that annotators dispute, counts as one that found a positive.

        Near-duplicates that got their label with another example still count as examples of the pool: random questions
        no longer reach them, and what is left may hold more positives than what was there before.

        Parameters
        ----------
        disputed
            Keys of examples with an open question about which annotators disagree.
        """
        n, lost = len(self._pool), self._questions.n_without_label()
        doubtful = sum(
            question.reason == "audit" and question.margin <= 0.0 and (status == "skipped" or question.key in disputed)
            for question, status in self._questions.unanswered()
        )
        audited, found = self.counts.audited + doubtful, self.counts.audit_positive + doubtful
        most = missed_at_most(n + self.counts.alike, audited, found) + lost if audited else None
        return Missed(most, audited, found, n + lost)

    def _judge(self) -> Verdict:
        if self._stopping is None:
            return Verdict(False, False, self._selection.why)
        self._stopping.offered(self.counts.n_offered)
        if self._promise is not None:
            self._look(self._promise)
        return self._stopping.verdict()

    def _look(self, promise: ToRecall) -> None:
        """Show the labels to a rule that promises a recall, if any has changed."""
        counts = self.counts
        seen = (len(self._pool), counts.n_changes, counts.n_open, counts.ignored, counts.elsewhere, promise.phase)
        if seen != self._looked_at:
            n_doubtful = self._questions.n_without_label() - promise.n_taken(self._questions.is_without_label)
            promise.look(len(self._pool), counts.n_open, n_doubtful, self._questions.said)
            self._looked_at = seen

    def remaining(self) -> int | None:
        """Number of labels left in the quota, including those that open questions reserve; None without a quota."""
        if self._stopping is None:
            return None
        self._stopping.offered(self.counts.n_offered)
        return self._stopping.remaining()

    def open_questions(self) -> list[Question]:
        """The questions that wait for an answer, oldest first."""
        return [record.question for record in self._questions.open.values() if record.question is not None]

    def open_question(self, key: int) -> Question | None:
        """The question about this example that waits for an answer; None if there is none."""
        record = self._questions.open.get(key)
        return None if record is None else record.question

    def label_of(self, key: int) -> Label | None:
        """The label of an example that holds; None if there is none, or if the example is forgotten."""
        record = self._questions.find(key)
        return None if record is None else record.y

    def answered(self, most: int) -> dict[int, Label]:
        """The labels that hold, by key, of the examples whose questions were answered last: `most` at most."""
        return self._questions.answered(most)

    def labels(self, *, alike: bool = True) -> dict[int, Label]:
        """The labels that hold, by key, asked for or not: of 10,000 examples of each kind at most.

        Parameters
        ----------
        alike
            Whether with those of near-duplicates, see `Answer`.
        """
        return self._questions.labels(alike=alike)

    def row(self, key: int) -> Any:
        """The example of an open question, as the pool's `rows` gave it; None if it was lost in a restart.

        Raises
        ------
        KeyError
            If there is no open question about it.
        """
        return self._questions.row(key)

    def _is_seeding(self) -> bool:
        if self._is_several:
            return self._seeds > 0 and sum(n >= self._seeds for _, n in self.counts.of_classes) < 2
        return min(self.counts.n_positive, self.counts.n_negative) < self._seeds

    def _knows_few(self) -> bool:
        """Whether a class of two has so few labels that some questions are still of the start."""
        few = min(self.counts.n_positive, self.counts.n_negative) < EACH_CLASS
        return few and self._seeds > 0 and self._selection.explores and not self._is_several

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything except the examples themselves, as JSON can hold it."""
        return {
            "name": self._name,
            "rng": _rng_state(self._rng),
            **self._questions.state(),
            **self._progress.state(),
            "selection": self._selection.state(),
            "stopping": None if self._stopping is None else self._stopping.state(),
            "pool": self._pool.state(),
            "suggested": list(self._suggested),
        }

    def restore(self, state: Mapping[str, Any], x_of: Callable[[int], Any] | None = None) -> None:
        """Continue where `state` was taken, in a new loop with an empty `StreamPool`, or an `ArrayPool` of the same X.

        Parameters
        ----------
        state
            What `state` gave, also after a round trip through JSON.
        x_of
            Gives the example of a key as it was offered, or None if it is lost.  A lost example leaves the pool; if its
            question is open, it stays open but is not looked at again.  An `ArrayPool` needs no `x_of`.

        Raises
        ------
        ValueError
            If the state is that of a loop with another name, or of another stopping rule.
        """
        if state["name"] != self._name:
            raise ValueError(f"name={self._name!r}: the state is that of the loop {state['name']!r}")
        self._progress.restore(state)
        if state.get("selection"):  # version 0.1.0 had none
            self._selection.restore(state["selection"])
        if self._stopping is not None and state["stopping"] is not None:
            self._stopping.restore(state["stopping"])
        self._questions.restore_all(state, lambda key: self._row_again(key, x_of))
        self._pool.restore(state["pool"], x_of)
        self._suggested = list(state.get("suggested", ()))  # version 1.0 had none
        self._rng.bit_generator.state = _rng_of(state["rng"])

    def _row_again(self, key: int, x_of: Callable[[int], Any] | None) -> Any:
        """The example of an open question, by way of the pool, which can make a row of it."""
        if x_of is not None:
            x = x_of(key)
            if x is None:
                return None
            self._pool.add(key, x, 0, self._rng)  # The pool is empty, so nothing is drawn.
        row = self._pool.rows([key])
        self._pool.discard(key)
        return row


def _rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """The generator's state, its 128-bit numbers as text, which every reader of JSON can hold."""
    state: Any = rng.bit_generator.state
    return {**state, "state": {name: str(number) for name, number in state["state"].items()}}


def _rng_of(stored: dict[str, Any]) -> dict[str, Any]:
    return {**stored, "state": {name: int(number) for name, number in stored["state"].items()}}
