"""The labelling loop: what is asked, what is answered, what becomes of both.  Events go in, actions come out.

The rules, whose outcome depends on nothing but the sequence of calls and the seed:

Questions
    A question is about one example, which leaves the pool when it is asked and is never asked about again.  It is open
    until it is answered, skipped or ignored, until its time is over, or until it is withdrawn: because the model has
    become sure of the answer, because the example is gone, because the budget went to late answers, or because the
    stopping rule has fired.  Its id is computed from the loop's name and the key, so that a replay asks under the same
    id.
Reasons
    "seed": at random, until examples of both classes are labelled.  "audit": at random, when the stopping rule wants to
    see what the selection does not look at.  "explore": at random, one in ten by default, for the same reason.
    "boundary": by the selection.
Budget
    An open question reserves one label of the stopping rule's budget.  The first label that is given for it spends it,
    however many follow, and a retraction gives nothing back.  A question that ends without a label gives its
    reservation back; a label that still comes is taken, and spent.  A label for an example that was not asked about
    costs nothing.
Labels
    Of the labels and retractions of an example the one that was given last holds, whoever gave it and in whatever order
    they arrive; of two that were given at the same moment the one that arrives last.  The stopping rule sees the first
    answer of each question, once.
Memory
    The last 10,000 examples that were asked about are remembered, and as many whose labels came from elsewhere.  One
    that is forgotten is treated as if it had never been seen.
"""

import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from streamsvm.active.pool import Pool
from streamsvm.active.selection import ActiveSelection, Choice, RandomSelection, Selection, margins
from streamsvm.active.stopping import Answered, StoppingRule, Verdict

MEMORY = 10_000  # examples that are remembered: those asked about, and as many others
RECENT = 59  # answers over which agreement is measured
CURVE = 256  # points of the curve at most

Reason = Literal["seed", "boundary", "explore", "audit"]
Status = Literal["label", "skip", "ignore", "retract"]

_NEVER = -(1 << 63)  # before all times
_NAMESPACE = uuid.UUID("5f0c8a0e-6f0b-4b52-9d3c-5a0d6f5d8f11")  # of the loops' names
_RANDOM = RandomSelection()


class Question(NamedTuple):
    """Which class is this example of?"""

    id: str
    key: int  # of the example
    reason: Reason
    margin: float  # f(x) when it was asked
    asked: int  # in milliseconds, as `expires`
    expires: int


class Answer(NamedTuple):
    """What somebody said about an example, asked or not."""

    key: int
    status: Status  # "skip": I cannot tell; "ignore": nobody should; "retract": what was said does not hold
    y: bool | None  # of a label
    annotator: str
    time: int  # when it was given, in milliseconds


class Ask(NamedTuple):
    """Put this question to somebody."""

    question: Question


class Withdraw(NamedTuple):
    """This question is no longer open, and that is not because of a label."""

    question: Question
    why: str


class SetLabel(NamedTuple):
    """This label holds from now on: teach it."""

    key: int
    y: bool
    annotator: str
    is_correction: bool  # another one has held until now


class Retract(NamedTuple):
    """The label that held does not hold any more, and no other does."""

    key: int
    annotator: str


class Refuse(NamedTuple):
    """This answer changes no label."""

    key: int
    why: str


Action = Ask | Withdraw | SetLabel | Retract | Refuse


class CurvePoint(NamedTuple):
    """How well the model knew the answers after some number of labels."""

    n_labels: int  # questions answered
    n_support: int
    agreement_random: float | None  # share of the last 59 random questions that the model would have answered so
    agreement_chosen: float | None  # the same for those the selection chose


@dataclass
class LoopCounts:
    """What became of examples, questions and answers."""

    n_offered: int = 0  # examples that were in the pool at the start, or offered
    n_asked: int = 0
    n_open: int = 0
    n_answered: int = 0  # questions with at least one label: the part of the budget that is spent
    late: int = 0  # of these, questions that were not open any more
    skipped: int = 0
    ignored: int = 0
    expired: int = 0
    withdrawn: int = 0
    n_positive: int = 0  # labels that hold, asked for or not
    n_negative: int = 0
    corrected: int = 0
    retracted: int = 0
    refused: int = 0  # answers that changed no label
    elsewhere: int = 0  # examples that were never asked about, and labelled all the same
    gone: int = 0  # examples that were chosen but not there any more

    @property
    def n_labels(self) -> int:
        """Labels that hold, of both classes."""
        return self.n_positive + self.n_negative


@dataclass(slots=True)
class _Record:
    """What is known of an example that was asked about or answered."""

    question: Question | None  # None: never asked
    status: str  # "open", or how the question ended; "elsewhere" without one
    y: bool | None = None  # the label that holds
    time: int = _NEVER  # when the newest label or retraction was given


class LabellingLoop:
    """Asks for the labels of well-chosen examples and keeps account of what is answered.

    Parameters
    ----------
    pool
        The examples without a label.  `offer` needs one with the methods of `StreamPool`.
    selection
        How an example is chosen.  Default: of 59 random ones the nearest to the boundary.
    stopping
        When to stop, and the budget.  Default: never.
    explore
        Share of questions about random examples, in [0, 1].  Some positives lie where no selection looks for them.
    seeds
        Questions are random until so many examples of each class have a label.
    n_open
        Questions that are open at a time, at most.
    expiry
        How long a question stays open, in the unit of `now`: milliseconds in the daemon, where the default is a day.
    name
        Part of the questions' ids: two loops whose keys may be equal need different names.
    seed
        Of the random choices.
    is_alive
        Says whether an example can still be learned.  One that cannot is not asked about, and a question about it is
        withdrawn.  Default: all can.

    Raises
    ------
    ValueError
        If a number is out of its range.
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
            raise ValueError(f"explore={explore!r} must be a share between 0 and 1")
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
        self._namespace = uuid.uuid5(_NAMESPACE, name)
        self._rng = np.random.default_rng(seed)
        self._is_alive = is_alive
        self._open: dict[int, _Record] = {}  # by key, oldest first
        self._rows: dict[int, Any] = {}  # examples of the open questions
        self._closed: OrderedDict[int, _Record] = OrderedDict()
        self._elsewhere: OrderedDict[int, _Record] = OrderedDict()
        self._recent: tuple[deque[bool], deque[bool]] = (deque(maxlen=RECENT), deque(maxlen=RECENT))  # random, chosen
        self._curve: list[CurvePoint] = []
        self._stride = 1  # answers from one point of the curve to the next
        self._n_support = 0  # at the last answer
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
        Whether it is new: False if it is in the pool, or was asked about or answered before.
        """
        if key in self._pool or self._find(key) is not None:
            return False
        self._pool.add(key, x, now, self._rng)
        self.counts.n_offered += 1
        return True

    def choose(self, model: Any, now: int) -> list[Action]:
        """Withdraw what is over and ask until enough questions are open.

        Parameters
        ----------
        model
            Any with `decision_function_many`, or a pipeline that ends in one.
        now
            The time.

        Returns
        -------
        Withdrawals first, then questions.
        """
        actions = self._expire(now)
        if hasattr(self._pool, "expire"):
            self._pool.expire(now)
        verdict = self._judge()
        if verdict.stop:
            return actions + [self._withdraw(record, verdict.why) for record in list(self._open.values())]
        room = self._room()
        newest = list(self._open.values())[::-1]
        actions += [self._withdraw(record, "the budget is spent") for record in newest[: max(0, -room)]]
        for _ in range(room):
            question = self._ask(model, verdict.audit, now)
            if question is None:
                break
            actions.append(Ask(question))
        return actions

    def refresh(self, model: Any) -> list[Action]:
        """Withdraw the questions that are no longer worth an answer.

        These are the ones that were asked because the example was within the margin (|f| < 1), if it is not any more,
        and those whose example is gone.  One that was outside from the start stays: such answers are what a stopping
        rule counts.
        """
        actions: list[Action] = []
        for key, record in list(self._open.items()):
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
        return allowed - len(self._open)

    def _ask(self, model: Any, audit: bool, now: int) -> Question | None:
        if not len(self._pool):
            return None  # nothing is drawn for nothing: to ask again changes nothing
        reason = self._reason(audit)
        choice = self._choice(model, self._selection if reason == "boundary" else _RANDOM)
        if choice is None:
            return None
        key = choice.key
        question = Question(self._id(key), key, reason, float(choice.margin), now, now + self._expiry)
        self._rows[key] = self._pool.rows([key])
        self._pool.discard(key)
        self._open[key] = _Record(question, "open")
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
        over = [record for record in self._open.values() if record.question and record.question.expires <= now]
        return [self._end(record, "expired", "expired") for record in over]

    def _withdraw(self, record: _Record, why: str) -> Action:
        return self._end(record, "withdrawn", why)

    def _end(self, record: _Record, status: str, why: str) -> Action:
        """The end of an open question without a label."""
        assert record.question is not None
        self._close(record, status)
        setattr(self.counts, status, getattr(self.counts, status) + 1)
        return Withdraw(record.question, why)

    def _close(self, record: _Record, status: str) -> None:
        assert record.question is not None
        key = record.question.key
        record.status = status
        if self._open.pop(key, None) is not None:
            del self._rows[key]
            self.counts.n_open -= 1
            _remember(self._closed, key, record)

    # --- answers ------------------------------------------------------------------------------------------------------

    def answer(self, answer: Answer, n_support: int, now: int) -> list[Action]:
        """Enter what somebody said.

        Parameters
        ----------
        answer
            A label, a skip, an ignore or a retraction.
        n_support
            Support vectors of the model before it learns from this answer.
        now
            The time.  Other questions whose time is over are withdrawn; this one is answered.

        Returns
        -------
        What becomes of the answer, and withdrawals.

        Raises
        ------
        ValueError
            If the status is unknown, or a label without True or False.
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
        record = self._find(answer.key) or self._add_elsewhere(answer.key)
        status, question = record.status, record.question
        action = self._set(record, answer)
        if question is None or status == "answered":
            return [action]
        self._close(record, "answered")
        self._count_answer(question, answer.y, n_support, was_open=status == "open")
        if status == "open" and isinstance(action, Refuse):
            return [Withdraw(question, "its answer was retracted before it came"), action]
        return [action]

    def _set(self, record: _Record, answer: Answer) -> Action:
        """The label that holds, if it is this one."""
        assert answer.y is not None
        if answer.time < record.time:
            return self._refuse(answer.key, "stale: a later one holds")
        record.time = answer.time
        if answer.y == record.y:
            return self._refuse(answer.key, "repeated: this label holds already")
        is_correction = record.y is not None
        self._count_label(record.y, -1)
        self._count_label(answer.y, 1)
        record.y = answer.y
        self.counts.corrected += is_correction
        return SetLabel(answer.key, answer.y, answer.annotator, is_correction)

    def _retract(self, answer: Answer) -> Action:
        record = self._find(answer.key) or self._add_elsewhere(answer.key)
        if answer.time < record.time:
            return self._refuse(answer.key, "stale: a later one holds")
        record.time = answer.time
        if record.y is None:
            return self._refuse(answer.key, "there is no label to retract")
        self._count_label(record.y, -1)
        record.y = None
        self.counts.retracted += 1
        return Retract(answer.key, answer.annotator)

    def _dismiss(self, answer: Answer, status: str) -> Action:
        record = self._open.get(answer.key)
        if record is None:
            if self._find(answer.key) is None:
                self._add_elsewhere(answer.key)
            return self._refuse(answer.key, "there is no open question about it")
        return self._end(record, status, f"{status} by {answer.annotator}")

    def _refuse(self, key: int, why: str) -> Refuse:
        self.counts.refused += 1
        return Refuse(key, why)

    def _find(self, key: int) -> _Record | None:
        return self._open.get(key) or self._closed.get(key) or self._elsewhere.get(key)

    def _add_elsewhere(self, key: int) -> _Record:
        """Somebody has looked at this example: it is not asked about any more."""
        self._pool.discard(key)
        record = _Record(None, "elsewhere")
        _remember(self._elsewhere, key, record)
        self.counts.elsewhere += 1
        return record

    # --- accounts -----------------------------------------------------------------------------------------------------

    def _count_label(self, y: bool | None, change: int) -> None:
        if y is True:
            self.counts.n_positive += change
        elif y is False:
            self.counts.n_negative += change

    def _count_answer(self, question: Question, y: bool, n_support: int, was_open: bool) -> None:
        """The first answer to a question."""
        counts = self.counts
        counts.n_answered += 1
        counts.late += not was_open
        self._n_support = n_support
        self._recent[question.reason == "boundary"].append((question.margin > 0.0) == y)
        if counts.n_answered % self._stride == 0:
            self._curve.append(self._point())
        if len(self._curve) == CURVE:
            self._curve = self._curve[1::2]
            self._stride *= 2
        if self._stopping is not None:
            self._stopping.observe(
                Answered(question.margin, y, question.reason, n_support, counts.n_labels, counts.n_offered)
            )

    def _point(self) -> CurvePoint:
        random, chosen = (sum(answers) / len(answers) if answers else None for answers in self._recent)
        return CurvePoint(self.counts.n_answered, self._n_support, random, chosen)

    def curve(self) -> list[CurvePoint]:
        """Agreement and support vectors over the answered questions, at most 256 points, the last of them now."""
        if not self.counts.n_answered or (self._curve and self._curve[-1].n_labels == self.counts.n_answered):
            return list(self._curve)
        return [*self._curve, self._point()]

    def verdict(self) -> Verdict:
        """Whether to stop, and why, in a sentence for the people who label."""
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
        """Labels left in the budget, those of open questions included; None without a budget."""
        if self._stopping is None:
            return None
        self._stopping.offered(self.counts.n_offered)
        return self._stopping.remaining()

    def open_questions(self) -> list[Question]:
        """The questions that wait for an answer, oldest first."""
        return [record.question for record in self._open.values() if record.question is not None]

    def open_question(self, key: int) -> Question | None:
        """The question about this example that waits for an answer; None if there is none."""
        record = self._open.get(key)
        return None if record is None else record.question

    def label_of(self, key: int) -> bool | None:
        """The label that holds of an example; None if there is none, or the example is not remembered."""
        record = self._find(key)
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
        """All but the examples themselves, as JSON can hold it."""
        return {
            "name": self._name,
            "rng": _rng_state(self._rng),
            "counts": asdict(self.counts),
            "open": _stored(self._open),
            "closed": _stored(self._closed),
            "elsewhere": _stored(self._elsewhere),
            "recent": [list(answers) for answers in self._recent],
            "curve": [list(point) for point in self._curve],
            "stride": self._stride,
            "n_support": self._n_support,
            "stopping": None if self._stopping is None else self._stopping.state(),
            "pool": self._pool.state(),
        }

    def restore(self, state: Mapping[str, Any], x_of: Callable[[int], Any] | None = None) -> None:
        """Continue where `state` was taken, in a new loop with an empty `StreamPool`, or an `ArrayPool` of the same X.

        Parameters
        ----------
        state
            What `state` gave, also after a way through JSON.
        x_of
            Gives the example of a key as it was offered, or None if it is lost: then it is not in the pool any more, or
            its question stays open but is not looked at again.  An `ArrayPool` needs none.

        Raises
        ------
        ValueError
            If the state is that of a loop with another name, or of another stopping rule.
        """
        if state["name"] != self._name:
            raise ValueError(f"name={self._name!r}: the state is that of the loop {state['name']!r}")
        self.counts = LoopCounts(**state["counts"])
        self._open = dict(self._records_of(state["open"]))
        self._closed = OrderedDict(self._records_of(state["closed"]))
        self._elsewhere = OrderedDict(self._records_of(state["elsewhere"]))
        for answers, stored in zip(self._recent, state["recent"], strict=True):
            answers.extend(stored)
        self._curve = [CurvePoint(*point) for point in state["curve"]]
        self._stride, self._n_support = state["stride"], state["n_support"]
        if self._stopping is not None and state["stopping"] is not None:
            self._stopping.restore(state["stopping"])
        self._rows = {key: self._row_again(key, x_of) for key in self._open}
        self._pool.restore(state["pool"], x_of)
        self._rng.bit_generator.state = _rng_of(state["rng"])

    def _records_of(self, stored: list[list[Any]]) -> list[tuple[int, _Record]]:
        return [(key, _Record(self._question_of(key, about), *rest)) for key, about, *rest in stored]

    def _question_of(self, key: int, about: list[Any] | None) -> Question | None:
        return None if about is None else Question(self._id(key), key, *about)

    def _id(self, key: int) -> str:
        return str(uuid.uuid5(self._namespace, str(key)))

    def _row_again(self, key: int, x_of: Callable[[int], Any] | None) -> Any:
        """The example of an open question, by way of the pool, which knows how to make a row of it."""
        if x_of is not None:
            x = x_of(key)
            if x is None:
                return None
            self._pool.add(key, x, 0, self._rng)  # which has room: nothing random happens
        row = self._pool.rows([key])
        self._pool.discard(key)
        return row


def _remember(memory: OrderedDict[int, _Record], key: int, record: _Record) -> None:
    memory[key] = record
    if len(memory) > MEMORY:
        memory.popitem(last=False)


def _stored(records: dict[int, _Record]) -> list[list[Any]]:
    """Ids are computed again."""
    return [
        [key, None if r.question is None else list(r.question[2:]), r.status, r.y, r.time] for key, r in records.items()
    ]


def _rng_state(rng: np.random.Generator) -> dict[str, Any]:
    """With its 128-bit numbers as text, which every reader of JSON can hold."""
    state: Any = rng.bit_generator.state
    return {**state, "state": {name: str(number) for name, number in state["state"].items()}}


def _rng_of(stored: dict[str, Any]) -> dict[str, Any]:
    return {**stored, "state": {name: int(number) for name, number in stored["state"].items()}}
