"""Learning again those examples of the reservoir that the members no longer represent.

They become members with coefficient 0, and the solver does the rest.  They do not count as new examples.  The sigmoid
of the probabilities ignores them, because they are the worst examples only and would bias it.
"""

import math
import warnings
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
from streamsvm.estimators.learner.advice import StreamWarning
from streamsvm.estimators.learner.examples import Examples
from streamsvm.estimators.learner.learning import Learning
from streamsvm.estimators.learner.state import no_margins
from streamsvm.online import arrival
from streamsvm.online.lasvm import keep_block
from streamsvm.online.removal import bounded
from streamsvm.online.removal.beside import Beside

MAX_ROUNDS = 100  # of looking at the reservoir: about 5 are needed, and up to 20 after streams that are sorted by class

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
        """Solve over the members and the examples of the reservoir, until none of either violates by more than `tol`.

        An example with y f(x) < `least_margin` counts as noise; default: the model's own.
        """
        examples = self._reservoir.sample() if self._reservoir.n_put else NOTHING
        steps = self._solve_with_all(tol, examples, solver, least_margin)
        self._warn_unless_reached(tol, self._problem.violation(self._expansion), steps)

    def _solve_with_all(self, tol: float, examples: Sample, solver: Solver, least_margin: float | None) -> int:
        """Solve with those of these examples that violate, until none does; return the number of steps.

        Where no step moves anything, it is rounding that makes an example violate.
        """
        late = self._violators(tol, examples, least_margin)
        steps = done = self._solve_with(late, solver)
        for _ in range(MAX_ROUNDS):
            late = self._violators(tol, examples, least_margin)
            if not done or not late.size:
                return steps
            done = self._solve_with(late, solver)
            steps += done
        warnings.warn(
            f"finish looked at the reservoir {MAX_ROUNDS} times, and {late.size} of its examples still violate the "
            f'margin by more than tol={tol:g}; use a larger tol, or another kernel than "sigmoid"',
            StreamWarning,
            stacklevel=4,
        )
        return steps

    def _violators(self, tol: float, examples: Sample, least_margin: float | None) -> Sample:
        """Those of these examples that are no members and violate, without noise, shuffled.

        They are no more than the budget has room for.
        """
        if not examples.size:
            return examples
        least = self._least_margin if least_margin is None else least_margin
        slack = 0.5 * tol if self._problem.fixed_sum else tol  # the bias is half-way between two members
        margins = self._margins_of(examples, self._in_room, self.bias)
        places = np.flatnonzero((margins < 1.0 - slack) & (margins >= least))
        return self._shuffled(examples.take(places[~self._are_members(examples.id[places])]))

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


def raw_features(examples: Sample) -> RawRows:
    """The features of examples of the reservoir."""
    return raw_rows.from_rows(examples.starts, examples.columns, examples.values)
