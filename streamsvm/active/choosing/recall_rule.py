"""The stopping rule of `LabellingLoop` that promises a recall: what to ask until it is proved.

1. So many questions, as without a promise.
2. The review: all examples of the pool above a line, the highest first.
3. The rest of the pool stays the same from now on: no example is taken in.  Random ones of it are asked about until
   the promise is proved.  A positive among them starts a hunt for its likes.

Answers may be late, corrected or retracted: the proof is made anew from the labels that hold.  Meanwhile a random
question without a label counts as a positive that was found and is not known.  That only delays the proof, so it may be
looked at after each answer, in whatever order they come.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from streamsvm.active.choosing.recall import RecallProof, answers_for_recall
from streamsvm.active.choosing.stopping import Answered, StoppingRule, Verdict
from streamsvm.core import arguments

Phase = Literal["questions", "review", "random"]


@dataclass
class ToRecall(StoppingRule):
    """Stop when a share of all positives is known, with 95 % confidence.

    The loop tells it what leaves the pool, and shows it the labels before each verdict.

    Parameters
    ----------
    recall
        The share, between 0 and 1.
    n_questions
        Number of answered questions before the review; at least 2.
    hunt
        Number of questions after each positive that a random question finds; at least 0.

    Attributes
    ----------
    phase
        What is asked now.
    proof : RecallProof
        What is proved so far; None before the first random question.
    """

    recall: float = 0.8
    n_questions: int = 150
    hunt: int = 10
    phase: Phase = field(default="questions", init=False)
    _answered: int = field(default=0, init=False, repr=False)
    _review: list[int] = field(default_factory=list, init=False, repr=False)  # keys that are left, the highest first
    _n_frozen: int = field(default=0, init=False, repr=False)
    # The key of each, None if it left without being asked about, and whether it was random:
    _taken: list[list[Any]] = field(default_factory=list, init=False, repr=False)
    _hunted: list[int] = field(default_factory=list, init=False, repr=False)  # random positives that started a hunt
    _to_hunt: int = field(default=0, init=False, repr=False)
    proof: RecallProof | None = field(default=None, init=False, repr=False)
    _n_known: int = field(default=0, init=False, repr=False)  # positives
    _n_left: int = field(default=0, init=False, repr=False)  # examples in the pool
    _is_empty: bool = field(default=False, init=False, repr=False)  # whether nothing is left to ask or to answer

    def __post_init__(self) -> None:
        arguments.require_share("recall", self.recall)
        arguments.require_count("n_questions", self.n_questions, 2)
        arguments.require_count("hunt", self.hunt, 0)

    def _observed(self) -> list[str]:
        made_anew = ("proof", "_n_left", "_is_empty", "phase")
        return [name for name in super()._observed() if name not in made_anew]

    def state(self) -> dict[str, Any]:
        return super().state() | {"phase": self.phase}

    def restore(self, state: Any) -> None:
        super().restore(state)
        self.phase = state["phase"]

    # --- what the loop tells ------------------------------------------------------------------------------------------

    def observe(self, answered: Answered) -> None:
        self._answered += 1

    def is_review_due(self) -> bool:
        """Whether the loop shall say which examples to review."""
        return self.phase == "questions" and self._answered >= self.n_questions

    def begin_review(self, keys: Sequence[int]) -> None:
        """Review these examples, in this order."""
        self.phase, self._review = "review", list(keys)

    def freeze(self, n: int) -> None:
        """The review is over, and the pool of `n` examples stays the same but for those that `take` names."""
        self.phase, self._n_frozen = "random", n

    def note(self, n_more: int) -> None:
        """So many more positives are known, among the examples that the promise is about."""
        self._n_known += n_more

    def take(self, key: int, *, is_random: bool) -> None:
        """An example has left the pool for a question or a label."""
        if self.phase == "random":
            self._taken.append([key, int(is_random)])

    def look(self, n_pool: int, n_open: int, n_doubtful: int, said: Callable[[int], bool | None]) -> None:
        """Make the proof anew.

        Parameters
        ----------
        n_pool
            Number of examples in the pool.
        n_open
            Number of open questions.
        n_doubtful
            Number of examples outside the frozen set that have no label and may be positive.
        said
            The label of an example that was taken; None: it may be positive.
        """
        self._n_left, self._is_empty = n_pool, not n_pool and not n_open
        if self.phase != "random":
            return
        gone = self._n_frozen - len(self._taken) - n_pool
        self._taken += [[None, 0]] * gone
        labels = [said(key) for key, _ in self._taken]
        proof = RecallProof(self.recall)
        proof.begin(self._n_frozen, self._n_known - sum(y is True for y in labels), n_doubtful)
        for (key, is_random), y in zip(self._taken, labels, strict=True):
            (proof.random if is_random else proof.chosen)(y)
            if is_random and y and key not in self._hunted:
                self._hunted.append(key)
                self._to_hunt = self.hunt
        self.proof = proof

    def n_taken(self, holds: Callable[[int], bool]) -> int:
        """Number of examples that were taken and for which this holds."""
        return sum(holds(key) for key, _ in self._taken)

    # --- what the loop asks -------------------------------------------------------------------------------------------

    def next_review(self) -> int | None:
        """The next example to review; None: there is none left."""
        return self._review.pop(0) if self._review else None

    def hunts(self) -> bool:
        """Whether the next question belongs to a hunt, which it then does."""
        hunts = self._to_hunt > 0
        self._to_hunt -= hunts
        return hunts

    def verdict(self) -> Verdict:
        wanted = f"{100 * self.recall:g} % of the positives"
        if self.phase == "random" and self.proof is not None:
            if self.proof.holds():
                return Verdict(True, False, self.proof.why())
            if self._is_empty:
                return Verdict(True, False, f"{self.proof.why()}; no event is left to ask about")
            return Verdict(False, True, f"{self.proof.why()}; for {wanted} at least {self.proof.cost()} more answers")
        least = answers_for_recall(max(0, self._n_left - len(self._review)), self._n_known, self.recall)
        if self.phase == "review":
            now = f"the review: {len(self._review)} events above the line are left"
        else:
            now = f"{min(self._answered, self.n_questions)} of {self.n_questions} questions, then a review"
        return Verdict(False, False, f"{now}; to prove that {wanted} are known takes at least {least} random answers")
