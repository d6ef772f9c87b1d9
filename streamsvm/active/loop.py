"""The labelling loop: what to ask, and what becomes of questions and answers.  Events go in, actions come out.

Its outcome depends on nothing but the sequence of calls and the seed.  These are the rules, beside those of `questions`
and `labels`:

Questions
    A question is withdrawn when the model has become sure of the answer, when the example is gone, when late answers
    have used up the quota, or when the stopping rule has fired.  Its id is computed from the loop's name and the key,
    so that a replay asks under the same id.
Reasons
    "seed": until examples of both classes are labelled, far from the labelled examples or at random.  "boundary": near
    the decision boundary.  "novel": unlike the labelled examples.  "explore": far from them or at random, to find what
    the model does not suspect.  "audit": at random, to check the model.  The selection decides; beside its questions
    there may be random ones, which explore if the selection does not, and audit if it does.  "review" and "hunt": for
    a promise of recall, see `choosing.recall_rule`.
Quota
    An open question reserves one label of the stopping rule's quota.  The first label for it spends the reservation;
    the next ones cost nothing, and a retraction gives nothing back.  A question that ends without a label gives its
    reservation back.  A label that comes later is still taken, and spent.  A label for an example that was not asked
    about costs nothing.
Answers
    The stopping rule sees the first answer of each question, once.
Classes
    The stopping rule may wait for answers about certain classes only.  Then the questions are about examples that the
    model predicts as these classes.  The rule is told which classes have no such example left.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Literal

import numpy as np

from streamsvm.active.answers import labels
from streamsvm.active.answers.events import (
    Action,
    Answer,
    Ask,
    CurvePoint,
    Label,
    LoopCounts,
    Missed,
    Question,
    Refuse,
    Retract,
    SetLabel,
    Withdraw,
)
from streamsvm.active.answers.progress import CHOSEN, RANDOM, Progress
from streamsvm.active.answers.questions import Questions
from streamsvm.active.answers.register import LATER
from streamsvm.active.choosing.audited import missed_at_most
from streamsvm.active.choosing.decisions import guesses, margins
from streamsvm.active.choosing.mixed import MixedSelection
from streamsvm.active.choosing.pool import Pool
from streamsvm.active.choosing.recall_rule import ToRecall
from streamsvm.active.choosing.selection import EACH_CLASS, Choice, RandomSelection, Reason, Selection, chosen
from streamsvm.active.choosing.stopping import Answered, StoppingRule, Verdict
from streamsvm.core import arguments

DISMISSED = {"skip": "skipped", "ignore": "ignored"}  # how a question ends with such an answer

_RANDOM = RandomSelection()


class LabellingLoop:
    """Asks for the labels of well-chosen examples and keeps account of the answers.

    Parameters
    ----------
    pool
        The examples without a label.  `offer` needs a pool with the methods of `StreamPool`.
    selection
        How an example is chosen; default: `MixedSelection`.  A selection remembers, so it belongs to one loop.
    stopping
        When to stop, and the label quota; default: never.
    explore
        Share of questions about random examples, from 0 to 1, beside those of the selection.  Their reason is
        "explore", or "audit" if the selection itself explores.  Default: 0.1, or 0 if the selection explores.
    seeds
        Number of labels of each class until which all questions are random; at least 0.
    n_open
        Largest number of open questions; at least 1.  The attribute `n_open` may change at any time.
    expiry
        How long a question stays open, in the unit of `now`; at least 1.  The trainer uses milliseconds, in which the
        default is a day.
    name
        Part of the questions' ids: two loops whose keys may be equal need different names.
    seed
        Seed of the generator that draws the random examples.
    is_alive
        Says whether an example can still be learned.  If not, it is not asked about, and its question is withdrawn.
        Default: every example can.
    is_several
        Whether there are more than two classes.  Labels are then strings or integers, and the model is a `OneVsRest`,
        or another that has `labels`.  Questions are random until two classes have `seeds` labels.

    Raises
    ------
    ValueError
        If a number is out of its range.
    TypeError
        If `selection` or `stopping` is something else, such as a class or a number.

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
        explore: float | None = None,
        seeds: int = 1,
        n_open: int = 1,
        expiry: int = 86_400_000,
        name: str = "streamsvm",
        seed: int = 0,
        is_alive: Callable[[int], bool] | None = None,
        is_several: bool = False,
    ) -> None:
        selection = MixedSelection() if selection is None else selection
        arguments.require_a("selection", selection, Selection, "a selection such as MixedSelection()")
        if stopping is not None:
            arguments.require_a("stopping", stopping, StoppingRule, "a stopping rule such as MaxLabels(100)")
        if explore is None:
            explore = 0.0 if selection.explores else MixedSelection.explore
        if not 0.0 <= explore <= 1.0:
            raise ValueError(f"explore={explore!r} must be a share from 0 to 1")
        for argument, value, least in (("seeds", seeds, 0), ("n_open", n_open, 1), ("expiry", expiry, 1)):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{argument}={value!r} must be an integer of at least {least}")
        self._pool: Any = pool
        self._selection = selection
        self._stopping = stopping
        # The rule that promises a recall, if there is one, and what it has seen:
        singles = stopping.singles() if stopping else ()
        self._promise = next((rule for rule in singles if isinstance(rule, ToRecall)), None)
        self._looked_at: tuple[Any, ...] = ()
        self._explore = explore
        self._seeds = seeds
        self._is_several = is_several
        self.n_open = n_open
        self._expiry = expiry
        self._name = name
        self._rng = np.random.default_rng(seed)
        self._questions = Questions(pool, name, is_alive)
        self._progress = Progress()
        self._suggested: list[int] = []  # keys to ask about first

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
            Whether the example is new: not in the pool, and neither asked about nor answered before.  A rule that
            promises a recall takes in no examples from its review on.
        """
        if self._promise is not None and self._promise.phase != "questions":
            return False
        if key in self._pool or self._questions.find(key) is not None:
            return False
        self._pool.add(key, x, now, self._rng)
        self.counts.n_offered += 1
        return True

    def put_back(self, key: int, x: Any, now: int) -> bool:
        """Put a near-duplicate whose label was taken back into the pool again; return whether it is one.

        A rule that promises a recall goes on without it.
        """
        if self._promise is not None or not self._questions.forget_alike(key):
            return False
        self._pool.add(key, x, now, self._rng)
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
        actions = self._questions.expire(now)
        if hasattr(self._pool, "expire"):
            self._pool.expire(now)
        verdict, wanted = self._judge_by(model)
        if verdict.stop:
            return actions + self._questions.withdraw(list(self._questions.open.values()), verdict.why)
        room = self._room()
        newest = list(self._questions.open.values())[::-1]
        left = self.remaining()
        surplus = 0 if left is None else max(0, len(newest) - left)
        actions += self._questions.withdraw(newest[:surplus], "the label quota is spent")
        for _ in range(room):
            question = self._ask(model, verdict.audit, wanted, now)
            if question is None:
                break
            actions.append(Ask(question))
        return actions

    def suggest(self, keys: Iterable[int]) -> None:
        """Ask about these examples first, in this order: a person suspects that they are positive.

        Their reason is "seed", since they were not drawn at random.  Keys that are not in the pool are left out.
        """
        self._suggested += [key for key in keys if key in self._pool and key not in self._suggested]

    def is_review_due(self) -> bool:
        """Whether the stopping rule waits for `review`."""
        self._judge()
        return self._promise is not None and self._promise.is_review_due()

    def review(self, model: Any, line: float) -> None:
        """Ask about all examples of the pool with a decision value above a line from now on, the highest first.

        Only a rule that promises a recall asks for it (`is_review_due`).
        """
        assert self._promise is not None
        keys = self._pool.keys()
        f = margins(model, self._pool.rows(keys)) if keys else np.empty(0)
        order = np.argsort(-f, kind="stable")[: np.count_nonzero(f > line)]
        self._promise.begin_review([keys[i] for i in order.tolist()])

    def pool_values(self, model: Any) -> np.ndarray:
        """The decision values of the pool, or of some examples that are spread over it, as `pool_cut` takes them."""
        return self._selection.values(self._pool, model)

    def refresh(self, model: Any, keep: Container[int] = ()) -> list[Action]:
        """Withdraw the questions that are no longer worth an answer.

        A question is withdrawn if its example is gone.  It is also withdrawn if its example was inside the margin (|f|
        < 1) when it was chosen, and no longer is.  A question that was outside from the start stays: stopping rules
        count such answers.

        Parameters
        ----------
        model
            As for `choose`.
        keep
            Keys of examples whose questions stay, however sure the model is: an annotator has begun with them.
        """
        return self._questions.refresh(model, keep)

    def wanted(self) -> int:
        """How many questions `choose` would ask now, at most."""
        return 0 if self._judge().stop else max(0, min(self._room(), len(self._pool)))

    def _room(self) -> int:
        """How many questions may be added."""
        left = self.remaining()
        allowed = self.n_open if left is None else min(self.n_open, left)
        return allowed - len(self._questions.open)

    def _judge_by(self, model: Any) -> tuple[Verdict, list[Choice]]:
        """The verdict, and the examples of the classes that it waits for, least certain first.

        A class without an example is used up, so that the rule does not wait for it.
        """
        stopping, verdict = self._stopping, self._judge()
        waits_for = stopping.waits_for() if stopping and not verdict.stop and self._room() > 0 else ()
        if stopping is None or not waits_for:
            return verdict, []
        keys, choices, left = self._pool.keys(), [], {question.guess for question in self.open_questions()}
        if keys:
            rows = self._pool.rows(keys)
            said, f = guesses(model, rows), margins(model, rows)
            own = [i for i in np.argsort(f, kind="stable").tolist() if said[i] in waits_for]
            choices = [Choice(keys[i], float(f[i]), len(keys)) for i in own]
            left.update(said)
        for label in waits_for:
            if label not in left:
                stopping.used_up(label)
        return self._judge(), choices

    def _ask(self, model: Any, audit: bool, wanted: list[Choice], now: int) -> Question | None:
        if not len(self._pool):
            return None  # Nothing is drawn, so that asking again changes nothing.
        choice = self._questions.choose(lambda: self._choice(model, audit, wanted))
        if choice is None:
            return None
        guess = guesses(model, self._pool.rows([choice.key]))[0] if self._is_several else None
        return self._questions.ask(choice, now, now + self._expiry, guess)

    def _choice(self, model: Any, audit: bool, wanted: list[Choice]) -> Choice:
        """The next example to ask about, which may have become unable to be learned; of `wanted` if there are any."""
        about = self._pool, model, self._rng
        while self._suggested:
            key = self._suggested.pop(0)
            if key in self._pool:
                return self._chosen(model, key, "seed")
        if self._promise is not None and self._promise.phase != "questions":
            return self._promised(model, self._promise)
        if self._is_seeding():
            return self._selection.begin(*about)
        if wanted:
            return wanted.pop(0)
        if audit:
            return _RANDOM.choose(*about)._replace(reason="audit")
        if self._knows_few() and self._rng.random() < MixedSelection.novel:  # so many of the others look for new kinds
            return self._selection.begin(*about)
        if self._rng.random() < self._explore:
            return _RANDOM.choose(*about)._replace(reason="audit" if self._selection.explores else "explore")
        return self._selection.choose(*about)

    def _promised(self, model: Any, promise: ToRecall) -> Choice:
        """The next example of a rule that promises a recall: of the review, of a hunt, or a random one."""
        while (key := promise.next_review()) is not None:
            if key in self._pool:
                return self._chosen(model, key, "review")
        if promise.phase == "review":
            promise.freeze(len(self._pool))
        if promise.hunts():
            keys = self._pool.keys()
            best = keys[int(np.argmax(margins(model, self._pool.rows(keys))))]
            return self._chosen(model, best, "hunt")
        (key,) = self._pool.draw(1, self._rng)
        return self._chosen(model, key, "audit")

    def _chosen(self, model: Any, key: int, reason: Reason) -> Choice:
        """The choice of an example; it is no longer of the set that a promise is about."""
        if self._promise is not None:
            self._promise.take(key, is_random=reason == "audit")
        return chosen(self._pool, model, key, 1, reason)

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
        if self._promise is not None:
            return self._answer_of_promise(answer, n_support, now, self._promise)
        return self._answer(answer, n_support, now)

    def _answer_of_promise(self, answer: Answer, n_support: int, now: int, promise: ToRecall) -> list[Action]:
        """Enter an answer, and tell the rule whether one more positive is known among the examples of its promise."""
        n_positive, is_there = self.counts.n_positive, answer.key in self._pool
        is_later = promise.phase == "random" and not is_there and self._questions.find(answer.key) is None
        if is_there:
            promise.take(answer.key, is_random=False)  # a person has found it
        actions = self._answer(answer, n_support, now)
        record = self._questions.record_of(answer.key)
        if is_later:
            record.status = LATER
        if record.status != LATER:
            promise.note(self.counts.n_positive - n_positive)
        return actions

    def _answer(self, answer: Answer, n_support: int, now: int) -> list[Action]:
        if answer.status == "label":
            actions = self._label(answer, n_support)
        elif answer.status == "retract":
            actions = [labels.enter(self._questions.record_of(answer.key), answer, self.counts)]
            if isinstance(actions[0], Retract):
                self._selection.drop(answer.key)
        elif answer.status in DISMISSED:
            actions = [self._dismiss(answer, DISMISSED[answer.status])]
        else:
            raise ValueError(f"status={answer.status!r} is unknown; use 'label', 'skip', 'ignore' or 'retract'")
        return actions + self._questions.expire(now)

    def rename_class(self, label: Label, new: Label | None, n_support: int, now: int) -> list[Action]:
        """Let the labels of a class be those of another one; None: take them back.

        Returns
        -------
        list of Action
            What becomes of the labels, as `answer` returns it.
        """
        status: Literal["label", "retract"] = "retract" if new is None else "label"
        mine = [key for key, y in self._questions.labels().items() if y == label]
        actions: list[Action] = []
        for key in mine:
            answer = Answer(key, status, new, "", self._questions.record_of(key).time)
            actions += self.answer(answer, n_support, now)
        self.counts.of_classes = [pair for pair in self.counts.of_classes if pair[0] != label]
        if self._stopping is not None:
            self._stopping.drop_class(label)
        return actions

    def _label(self, answer: Answer, n_support: int) -> list[Action]:
        if isinstance(answer.y, bool) is self._is_several or answer.y is None:
            wanted = "a string or an integer" if self._is_several else "True or False"
            raise ValueError(f"y={answer.y!r} of a label must be {wanted}")
        row = self._questions.known_row(answer.key)
        record = self._questions.record_of(answer.key, is_alike=answer.is_alike)
        status, question = record.status, record.question
        action = labels.enter(record, answer, self.counts)
        if row is not None and isinstance(action, SetLabel):
            self._selection.note(answer.key, row)
        if question is None or status == "answered":
            return [action]
        self._questions.close_as(record, "answered")
        self._count_answer(question, answer.y, n_support, was_open=status == "open")
        if status == "open" and isinstance(action, Refuse):
            return [Withdraw(question, "its answer was retracted before it came"), action]
        return [action]

    def _dismiss(self, answer: Answer, status: str) -> Action:
        record = self._questions.record_of(answer.key)
        if record.status != "open":
            return labels.refuse(answer.key, "there is no open question about it", self.counts)
        return self._questions.end(record, status, f"{status} by {answer.annotator}")

    def _count_answer(self, question: Question, y: Label, n_support: int, was_open: bool) -> None:
        """Count the first answer to a question."""
        counts = self.counts
        counts.n_answered += 1
        counts.late += not was_open
        is_positive = y if isinstance(y, bool) else y == question.guess  # of the class that the margin speaks for
        if question.reason == "audit" and question.margin <= 0.0 and not self._is_several:
            counts.audited += 1
            counts.audit_positive += is_positive
        is_right = is_positive if self._is_several else (question.margin > 0.0) == is_positive
        self._progress.answered(counts.n_answered, is_right, self._kind_of(question.reason), n_support)
        if self._stopping is not None:
            about = (question.margin, is_positive, question.reason, n_support, counts.n_labels, counts.n_offered)
            several = (y, question.guess) if self._is_several else ()
            classes = tuple(label for label in dict.fromkeys(several) if label is not None)
            self._stopping.observe(Answered(*about, classes))

    def _kind_of(self, reason: Reason) -> int | None:
        """Of a question: random, chosen, or neither, as one that looks far from the labelled examples."""
        if reason == "audit" or (reason == "explore" and not self._selection.explores):
            return RANDOM
        return CHOSEN if reason in ("boundary", "novel") else None

    # --- how far it is ------------------------------------------------------------------------------------------------

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
        self._questions.restore(state, lambda key: self._row_again(key, x_of))
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
