"""The labelling loop: what to ask, and what becomes of questions and answers.  Events go in, actions come out.

Its outcome depends on nothing but the sequence of calls and the seed.  These are the rules:

Questions
    A question is about one example.  The example leaves the pool when it is asked about, and is never asked about
    again.  A question is open until it is answered, skipped or ignored, until it expires, or until it is withdrawn.  It
    is withdrawn when the model has become sure of the answer, when the example is gone, when late answers have used up
    the quota, or when the stopping rule has fired.  Its id is computed from the loop's name and the key, so that a
    replay asks under the same id.
Reasons
    "seed": at random, until examples of both classes are labelled.  "audit": at random, when the stopping rule wants to
    check what the selection does not look at.  "explore": at random, one in ten by default, for the same purpose.
    "boundary": by the selection.
Quota
    An open question reserves one label of the stopping rule's quota.  The first label for it spends the reservation;
    the next ones cost nothing, and a retraction gives nothing back.  A question that ends without a label gives its
    reservation back.  A label that comes later is still taken, and spent.  A label for an example that was not asked
    about costs nothing.
Labels
    Of an example's labels and retractions, the one that was given last holds, in whatever order they arrive.  Of two
    that were given at the same moment, the one that arrives last holds.  The stopping rule sees the first answer of
    each question, once.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from streamsvm.active.events import (
    Action,
    Answer,
    Ask,
    CurvePoint,
    LoopCounts,
    Question,
    Reason,
    Refuse,
    Retract,
    SetLabel,
    Withdraw,
)
from streamsvm.active.pool import Pool
from streamsvm.active.progress import Progress
from streamsvm.active.register import Record, Register
from streamsvm.active.selection import ActiveSelection, Choice, RandomSelection, Selection, margins
from streamsvm.active.stopping import Answered, StoppingRule, Verdict

_RANDOM = RandomSelection()


class LabellingLoop:
    """Asks for the labels of well-chosen examples and keeps account of the answers.

    Parameters
    ----------
    pool
        The examples without a label.  `offer` needs a pool with the methods of `StreamPool`.
    selection
        How an example is chosen; default: the nearest to the boundary of 59 random ones.
    stopping
        When to stop, and the label quota; default: never.
    explore
        Share of questions about random examples, from 0 to 1.  Some positives lie where no selection looks for them.
    seeds
        Number of labels of each class until which all questions are random; at least 0.
    n_open
        Largest number of open questions; at least 1.
    expiry
        How long a question stays open, in the unit of `now`; at least 1.  The trainer uses milliseconds, in which the
        default is a day.
    name
        Part of the questions' ids: two loops whose keys may be equal need different names.
    seed
        Of the random choices.
    is_alive
        Says whether an example can still be learned.  If not, it is not asked about, and its question is withdrawn.
        Default: every example can.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import Answer, ArrayPool, LabellingLoop
    >>> loop = LabellingLoop(ArrayPool(np.arange(10.0)[:, np.newaxis]), seed=1)
    >>> (ask,) = loop.choose(LASVM(), now=0)
    >>> ask.question.reason
    'seed'
    >>> loop.answer(Answer(ask.question.key, "label", True, "ann", time=5), n_support=0, now=5)
    [SetLabel(key=..., y=True, annotator='ann', is_correction=False)]
    """

    def __init__(
        self,
        pool: Pool,
        *,
        selection: Selection | None = None,
        stopping: StoppingRule | None = None,
        explore: float = 0.1,
        seeds: int = 1,
        n_open: int = 1,
        expiry: int = 86_400_000,
        name: str = "streamsvm",
        seed: int = 0,
        is_alive: Callable[[int], bool] | None = None,
    ) -> None:
        if not 0.0 <= explore <= 1.0:
            raise ValueError(f"explore={explore!r} must be a share from 0 to 1")
        for argument, value, least in (("seeds", seeds, 0), ("n_open", n_open, 1), ("expiry", expiry, 1)):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{argument}={value!r} must be an integer of at least {least}")
        self._pool: Any = pool
        self._selection = ActiveSelection() if selection is None else selection
        self._stopping = stopping
        self._explore = explore
        self._seeds = seeds
        self._n_open = n_open
        self._expiry = expiry
        self._name = name
        self._rng = np.random.default_rng(seed)
        self._is_alive = is_alive
        self._register = Register(name)
        self._rows: dict[int, Any] = {}  # examples of the open questions
        self._progress = Progress()
        self.counts = LoopCounts(n_offered=len(pool))

    # --- questions ----------------------------------------------------------------------------------------------------

    def offer(self, key: int, x: Any, now: int) -> bool:
        """Put an example without a label into the pool.

        Parameters
        ----------
        key
            Its id.
        x
            What the pool keeps of it.
        now
            The time, which never goes back from call to call.

        Returns
        -------
        bool
            Whether the example is new: not in the pool, and neither asked about nor answered before.
        """
        if key in self._pool or self._register.find(key) is not None:
            return False
        self._pool.add(key, x, now, self._rng)
        self.counts.n_offered += 1
        return True

    def choose(self, model: Any, now: int) -> list[Action]:
        """Withdraw the questions that are over, and ask until enough are open.

        Parameters
        ----------
        model
            A learner with `decision_function_many`, or a pipeline that ends in one.
        now
            The time.

        Returns
        -------
        list of Action
            Withdrawals first, then questions.
        """
        actions = self._expire(now)
        if hasattr(self._pool, "expire"):
            self._pool.expire(now)
        verdict = self._judge()
        if verdict.stop:
            return actions + [self._withdraw(record, verdict.why) for record in list(self._register.open.values())]
        room = self._room()
        newest = list(self._register.open.values())[::-1]
        actions += [self._withdraw(record, "the label quota is spent") for record in newest[: max(0, -room)]]
        for _ in range(room):
            question = self._ask(model, verdict.audit, now)
            if question is None:
                break
            actions.append(Ask(question))
        return actions

    def refresh(self, model: Any) -> list[Action]:
        """Withdraw the questions that are no longer worth an answer.

        A question is withdrawn if its example is gone.  It is also withdrawn if its example was inside the margin (|f|
        < 1) when it was chosen, and no longer is.  A question that was outside from the start stays: stopping rules
        count such answers.
        """
        actions: list[Action] = []
        for key, record in list(self._register.open.items()):
            question = record.question
            assert question is not None
            if not self._can_learn(key):
                actions.append(self._withdraw(record, "the example is gone"))
            elif self._is_settled(question, model):
                actions.append(self._withdraw(record, "no longer needed: the model is sure"))
        return actions

    def _is_settled(self, question: Question, model: Any) -> bool:
        row = self._rows[question.key]
        if question.reason != "boundary" or abs(question.margin) >= 1.0 or row is None:
            return False
        return bool(abs(margins(model, row)[0]) >= 1.0)

    def _room(self) -> int:
        """How many questions may be added; negative if too many are open."""
        left = self.remaining()
        allowed = self._n_open if left is None else min(self._n_open, left)
        return allowed - len(self._register.open)

    def _ask(self, model: Any, audit: bool, now: int) -> Question | None:
        if not len(self._pool):
            return None  # Nothing is drawn, so that asking again changes nothing.
        reason = self._reason(audit)
        choice = self._choice(model, self._selection if reason == "boundary" else _RANDOM)
        if choice is None:
            return None
        key, question_id = choice.key, self._register.question_id(choice.key)
        question = Question(question_id, key, reason, float(choice.margin), now, now + self._expiry)
        self._rows[key] = self._pool.rows([key])
        self._pool.discard(key)
        self._register.add_open(question)
        self.counts.n_asked += 1
        self.counts.n_open += 1
        return question

    def _reason(self, audit: bool) -> Reason:
        if self._is_seeding():
            return "seed"
        if audit:
            return "audit"
        return "explore" if self._rng.random() < self._explore else "boundary"

    def _is_seeding(self) -> bool:
        return min(self.counts.n_positive, self.counts.n_negative) < self._seeds

    def _choice(self, model: Any, selection: Selection) -> Choice | None:
        """An example that can still be learned; None if there is none left."""
        while len(self._pool):
            choice = selection.choose(self._pool, model, self._rng)
            if self._can_learn(choice.key):
                return choice
            self._pool.discard(choice.key)
            self.counts.gone += 1
        return None

    def _can_learn(self, key: int) -> bool:
        return self._is_alive is None or self._is_alive(key)

    def _expire(self, now: int) -> list[Action]:
        records = self._register.open.values()
        over = [record for record in records if record.question and record.question.expires <= now]
        return [self._end(record, "expired", "expired") for record in over]

    def _withdraw(self, record: Record, why: str) -> Action:
        return self._end(record, "withdrawn", why)

    def _end(self, record: Record, status: str, why: str) -> Action:
        """End an open question without a label."""
        assert record.question is not None
        self._close(record, status)
        setattr(self.counts, status, getattr(self.counts, status) + 1)
        return Withdraw(record.question, why)

    def _close(self, record: Record, status: str) -> None:
        assert record.question is not None
        record.status = status
        if self._register.close(record.question.key):
            del self._rows[record.question.key]
            self.counts.n_open -= 1

    # --- answers ------------------------------------------------------------------------------------------------------

    def answer(self, answer: Answer, n_support: int, now: int) -> list[Action]:
        """Enter what a person said.

        Parameters
        ----------
        answer
            A label, a skip, an ignore or a retraction.
        n_support
            Support vectors of the model before it learns from this answer.
        now
            The time.  Other questions that have expired are withdrawn; the one that is answered is not.

        Returns
        -------
        list of Action
            What becomes of the answer, then withdrawals.

        Raises
        ------
        ValueError
            If the status is unknown, or if a label is neither True nor False.
        """
        if answer.status == "label":
            actions = self._label(answer, n_support)
        elif answer.status == "retract":
            actions = [self._retract(answer)]
        elif answer.status == "skip":
            actions = [self._dismiss(answer, "skipped")]
        elif answer.status == "ignore":
            actions = [self._dismiss(answer, "ignored")]
        else:
            raise ValueError(f"status={answer.status!r} is unknown; use 'label', 'skip', 'ignore' or 'retract'")
        return actions + self._expire(now)

    def _label(self, answer: Answer, n_support: int) -> list[Action]:
        if not isinstance(answer.y, bool):
            raise ValueError(f"y={answer.y!r} of a label must be True or False")
        record = self._register.find(answer.key) or self._add_elsewhere(answer.key)
        status, question = record.status, record.question
        action = self._set(record, answer)
        if question is None or status == "answered":
            return [action]
        self._close(record, "answered")
        self._count_answer(question, answer.y, n_support, was_open=status == "open")
        if status == "open" and isinstance(action, Refuse):
            return [Withdraw(question, "its answer was retracted before it came"), action]
        return [action]

    def _set(self, record: Record, answer: Answer) -> Action:
        """Let this label hold, unless a later one does."""
        assert answer.y is not None
        if answer.time < record.time:
            return self._refuse(answer.key, "stale: a later one holds")
        record.time = answer.time
        if answer.y == record.y:
            return self._refuse(answer.key, "repeated: this label holds already")
        is_correction = record.y is not None
        self.counts.change_labels(record.y, -1)
        self.counts.change_labels(answer.y, 1)
        record.y = answer.y
        self.counts.corrected += is_correction
        return SetLabel(answer.key, answer.y, answer.annotator, is_correction)

    def _retract(self, answer: Answer) -> Action:
        record = self._register.find(answer.key) or self._add_elsewhere(answer.key)
        if answer.time < record.time:
            return self._refuse(answer.key, "stale: a later one holds")
        record.time = answer.time
        if record.y is None:
            return self._refuse(answer.key, "there is no label to retract")
        self.counts.change_labels(record.y, -1)
        record.y = None
        self.counts.retracted += 1
        return Retract(answer.key, answer.annotator)

    def _dismiss(self, answer: Answer, status: str) -> Action:
        record = self._register.open.get(answer.key)
        if record is None:
            if self._register.find(answer.key) is None:
                self._add_elsewhere(answer.key)
            return self._refuse(answer.key, "there is no open question about it")
        return self._end(record, status, f"{status} by {answer.annotator}")

    def _refuse(self, key: int, why: str) -> Refuse:
        self.counts.refused += 1
        return Refuse(key, why)

    def _add_elsewhere(self, key: int) -> Record:
        """Enter an example that a person has seen without being asked: it is not asked about any more."""
        self._pool.discard(key)
        self.counts.elsewhere += 1
        return self._register.add_elsewhere(key)

    def _count_answer(self, question: Question, y: bool, n_support: int, was_open: bool) -> None:
        """Count the first answer to a question."""
        counts = self.counts
        counts.n_answered += 1
        counts.late += not was_open
        is_right, is_chosen = (question.margin > 0.0) == y, question.reason == "boundary"
        self._progress.answered(counts.n_answered, is_right, is_chosen, n_support)
        if self._stopping is not None:
            self._stopping.observe(
                Answered(question.margin, y, question.reason, n_support, counts.n_labels, counts.n_offered)
            )

    # --- looking at it ------------------------------------------------------------------------------------------------

    def curve(self) -> list[CurvePoint]:
        """Agreement and support vectors over the answered questions: at most 256 points, the last one of now."""
        return self._progress.curve(self.counts.n_answered)

    def verdict(self) -> Verdict:
        """Whether to stop, and why, in a sentence for the annotators."""
        verdict = self._judge()
        if verdict.stop or not self._is_seeding():
            return verdict
        counts = self.counts
        so_far = f"{counts.n_positive} positive and {counts.n_negative} negative so far"
        return Verdict(False, False, f"random questions until {self._seeds} of each class are labelled: {so_far}")

    def _judge(self) -> Verdict:
        if self._stopping is None:
            return Verdict(False, False, "there is no stopping rule")
        self._stopping.offered(self.counts.n_offered)
        return self._stopping.verdict()

    def remaining(self) -> int | None:
        """Number of labels left in the quota, including those that open questions reserve; None without a quota."""
        if self._stopping is None:
            return None
        self._stopping.offered(self.counts.n_offered)
        return self._stopping.remaining()

    def open_questions(self) -> list[Question]:
        """The questions that wait for an answer, oldest first."""
        return [record.question for record in self._register.open.values() if record.question is not None]

    def open_question(self, key: int) -> Question | None:
        """The question about this example that waits for an answer; None if there is none."""
        record = self._register.open.get(key)
        return None if record is None else record.question

    def label_of(self, key: int) -> bool | None:
        """The label of an example that holds; None if there is none, or if the example is forgotten."""
        record = self._register.find(key)
        return None if record is None else record.y

    def row(self, key: int) -> Any:
        """The example of an open question, as the pool's `rows` gave it; None if it was lost in a restart.

        Raises
        ------
        KeyError
            If there is no open question about it.
        """
        return self._rows[key]

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything except the examples themselves, as JSON can hold it."""
        return {
            "name": self._name,
            "rng": _rng_state(self._rng),
            "counts": asdict(self.counts),
            **self._register.state(),
            **self._progress.state(),
            "stopping": None if self._stopping is None else self._stopping.state(),
            "pool": self._pool.state(),
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
        self.counts = LoopCounts(**state["counts"])
        self._register.restore(state)
        self._progress.restore(state)
        if self._stopping is not None and state["stopping"] is not None:
            self._stopping.restore(state["stopping"])
        self._rows = {key: self._row_again(key, x_of) for key in self._register.open}
        self._pool.restore(state["pool"], x_of)
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
