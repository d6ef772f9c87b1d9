"""Learning again those examples of the reservoir that the members no longer represent.

They become members with coefficient 0, and the solver does the rest.  They do not count as new examples.  The sigmoid
of the probabilities ignores them, because they are the worst examples only and would bias it.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from streamsvm.core import blocks, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.expansion import Expansion
from streamsvm.core.ids import are_among
from streamsvm.core.kernels import Kernel
from streamsvm.core.scaling import RawRows
from streamsvm.estimators.inputs import raw_rows
from streamsvm.estimators.inputs.class_sample import priorities
from streamsvm.estimators.inputs.sample import NOTHING, Sample
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.examples import Examples
from streamsvm.estimators.learner.learning import Learning
from streamsvm.estimators.learner.model import no_margins
from streamsvm.online import arrival
from streamsvm.online.lasvm import keep_block
from streamsvm.online.removal import bounded
from streamsvm.online.removal.beside import Beside

MAX_ROUNDS = 10  # of looking at the reservoir
FIRST_LOOK = 500  # examples that tell whether it is worth looking at all, and how often
FEW = 50  # It is not if one of these in 50 violates.
LOST = 0.5  # y f(x) below which the model has lost an example; near 1, some violate after any stream
FEW_LOST = 20  # of a class: 1 in 25 after shuffled streams, 1 in 18 to 1 after streams that are sorted by class
ENOUGH = 100  # If one example in 100 violates, hardly another one does after solving with these.

Solver = Callable[[Expansion], tuple[Expansion, int]]


class _Watched(NamedTuple):
    """Examples of the reservoir beside the model, and the state for which they were looked up."""

    state: tuple[int, int, RunningScale, Kernel]
    examples: Sample
    sign: np.ndarray
    beside: Beside


class Rechecking(Learning):
    """Looking at the reservoir."""

    _least_margin = -math.inf  # y f(x) below which an example counts as noise
    _watched: _Watched | None = None

    @abstractmethod
    def _solver(self, tol: float) -> Solver:
        """What optimises over the members of an expansion."""

    def _finish(self, solver: Solver, tol: float, least_margin: float | None = None) -> None:
        """Solve over the members and the examples of the reservoir that violate, until hardly another one does.

        A part of the reservoir shows first what the stream was like.  If hardly any example violates, that part is
        enough.  If the model has lost few of either class, as after a shuffled stream, one look at all of them is.
        An example with y f(x) < `least_margin` counts as noise; default: the model's own.
        """
        examples = self._reservoir.sample() if self._reservoir.n_put else NOTHING
        if not examples.size:
            steps = self._solve(solver)
            self._warn_unless_reached(tol, self._problem.violation(self._expansion), steps)
            return
        some = examples.take(np.arange(0, examples.size, max(1, examples.size // FIRST_LOOK)))
        late, lost = self._violators(tol, some, least_margin)
        if late.size <= some.size // FEW:
            steps = self._solve_with(late, solver)
        else:
            rounds = 1 if _are_few(lost, some) else MAX_ROUNDS
            steps = self._solve_with_all(tol, examples, solver, rounds, least_margin)
        self._warn_unless_reached(tol, self._problem.violation(self._expansion), steps)

    def _solve_with_all(
        self, tol: float, examples: Sample, solver: Solver, rounds: int, least_margin: float | None
    ) -> int:
        """Look at all these examples and solve with those that violate, so many times; return the number of steps."""
        steps = 0
        for _ in range(rounds):
            late, _ = self._violators(tol, examples, least_margin)
            steps += self._solve_with(late, solver)
            if late.size <= examples.size // ENOUGH:
                break
        return steps

    def _violators(self, tol: float, examples: Sample, least_margin: float | None = None) -> tuple[Sample, Sample]:
        """Those of these examples that are no members and violate, without noise; and those of them that are lost.

        The first are shuffled, and no more than the budget has room for.
        """
        if not examples.size:
            return examples, examples
        least = self._least_margin if least_margin is None else least_margin
        margins = self._margins_of(examples, self._in_room, self.bias)
        places = np.flatnonzero((margins < 1.0 - tol) & (margins >= least))
        places = places[~self._are_members(examples.id[places])]
        late = examples.take(places)
        return self._shuffled(late), late.take(np.flatnonzero(margins[places] < LOST))

    def _watch(self) -> _Watched | None:
        """The examples of the reservoir, with decision values by the model as it is; None if there are none.

        `_uncovered` keeps them for the next time.  If it is interrupted before, they are found anew.
        """
        state = self._reservoir.n_put, len(self._features.columns), self._scale, self._kernel
        watched, self._watched = self._watched, None
        if watched is None or any(a is not b and a != b for a, b in zip(watched.state, state, strict=True)):
            examples = self._reservoir.sample()
            if not examples.size:
                return None
            q = self._queries_of(examples)
            sign = np.where(examples.positive, 1.0, -1.0)
            watched = _Watched(state, examples, sign, Beside(q, state[1], self._kernel, self._evaluator.decide))
        watched.beside.follow(self._in_room)
        return watched

    def _uncovered(self, watched: _Watched | None, before: Expansion, bias: float) -> Sample:
        """Those of the reservoir that are no members and violate the margin, but did not before, shuffled.

        `before` is the expansion with the members that have left since, by which the decision values of `watched` are.
        Where the rounding of these values leaves a doubt, the decision values are computed.
        """
        if watched is None:
            return NOTHING
        beside, sign = watched.beside, watched.sign
        margins, doubt = sign * (beside.f + bias), beside.doubt
        before = storage.require_room(before, len(self._features.columns))
        beside.follow(self._in_room, before)
        self._watched = watched
        now, doubt = sign * (beside.f + self.bias), max(doubt, beside.doubt)
        suspects = np.flatnonzero(self._may_violate(now, doubt) & ~self._may_violate(margins, -doubt))
        suspects = suspects[~self._are_members(watched.examples.id[suspects])]
        violates, violated = self._may_violate(now[suspects], -doubt), self._may_violate(margins[suspects], doubt)
        in_doubt = np.flatnonzero(~violates | violated)
        if len(in_doubt):
            others = watched.examples.take(suspects[in_doubt])
            violated[in_doubt] = self._may_violate(self._margins_of(others, before, bias), 0.0)
            violates[in_doubt] = self._may_violate(self._margins_of(others, self._in_room, self.bias), 0.0)
        suspects = suspects[violates & ~violated]
        if not len(suspects):
            return NOTHING
        late = watched.examples.take(suspects)
        return self._shuffled(late.take(self._reservoir.holds(late)))

    def _may_violate(self, margins: np.ndarray, doubt: float) -> np.ndarray:
        """Which of these y f(x), right up to `doubt`, may be those of violators that are no noise, (n,) bool.

        With -doubt: which surely are.
        """
        return (margins < 1.0 - self.tol + doubt) & (margins >= self._least_margin - doubt)

    def _are_members(self, ids: np.ndarray) -> np.ndarray:
        """Which of these ids members have, (n,) bool."""
        return are_among(ids, self._expansion.ids[self._expansion.y != 0])

    def _margins_of(self, examples: Sample, s: Expansion, bias: float) -> np.ndarray:
        """y f(x) of these examples by a model with these members."""
        if not examples.size:
            return np.empty(0)
        f = self._evaluator.decide(s, self._kernel, self._queries_of(examples), bias)
        return np.where(examples.positive, f, -f)

    def _queries_of(self, examples: Sample) -> Queries:
        """These examples as the kernel sees them."""
        self._features.settle()
        return self._scale.queries(raw_features(examples))

    def _shuffled(self, examples: Sample) -> Sample:
        """As many of these examples as the budget has room for, in an order that the stream does not know."""
        if not examples.size:
            return examples
        order = np.argsort(priorities(examples.priority))
        return examples.take(order if self.budget is None else order[: max(0, int(self.budget) - self.n_members)])

    def _solve_with(self, examples: Sample, solver: Solver) -> int:
        """Solve with these examples as further members; return the number of steps."""
        if self._window and examples.size:
            self._window.passed(int(examples.born.min()), self._window.latest)
        return self._solve(lambda s: solver(self._with(s, examples) if examples.size else s))

    def _with(self, s: Expansion, examples: Sample) -> Expansion:
        """The expansion with these examples as members, with coefficient 0; the solver must follow."""
        raw, n = raw_features(examples), examples.size
        q = self._scale.queries(raw)
        lo, hi = np.where(examples.positive, 0.0, -examples.box), np.where(examples.positive, examples.box, 0.0)
        margins, t = no_margins(n), 0
        while t < n:
            part = slice(t, min(t + blocks.BLOCK, n))
            q_part = q.part(part.start, part.stop)
            s = arrival.make_room(s, q_part, len(self._features))
            products = self._evaluator.products(s, q_part)
            kept = self._scale.kept(raw.part(part.start, part.stop))
            block = Examples(q_part, lo[part], hi[part], examples.id[part], False, examples.born[part], kept).compiled()
            given = (block, False, *products, False, self._calibration, bounded.FAR)
            t += keep_block(s, self._kernel, self._rule, *given, margins[part])
        return s


def _are_few(lost: Sample, examples: Sample) -> bool:
    """Whether the lost ones are few among the examples of either class."""
    of_classes = [np.bincount(part.positive, minlength=2) for part in (lost, examples)]
    return bool((FEW_LOST * of_classes[0] <= of_classes[1]).all())


def raw_features(examples: Sample) -> RawRows:
    """The features of examples of the reservoir."""
    return raw_rows.from_rows(examples.starts, examples.columns, examples.values)
