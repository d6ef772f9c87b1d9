"""Examples that were learned and let go, and that the members no longer represent: the model learns them again.

It finds them in its reservoir.  They become members with coefficient 0, and the solver does the rest.  They do not
count as seen once more, and the sigmoid of the probabilities does not heed them: they are the worst ones only.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from streamsvm.core import blocks, storage
from streamsvm.core.expansion import Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.scaling import RawRows
from streamsvm.estimators.inputs import raw_rows
from streamsvm.estimators.inputs.reservoir import Kept, priorities
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
ENOUGH = 20  # If one example in 20 violates, hardly another one does after solving with these.

Solver = Callable[[Expansion], tuple[Expansion, int]]


class _Watched(NamedTuple):
    """Examples of the reservoir beside the model, and the state for which they were looked up."""

    state: tuple[int, int, RunningScale, Kernel]
    examples: list[Kept]
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
        examples = list(self._reservoir)
        some = examples[:: max(1, len(examples) // FIRST_LOOK)]
        late, lost = self._violators(tol, some, least_margin)
        if len(late) <= len(some) // FEW:
            steps = self._solve_with(late, solver)
        else:
            rounds = 1 if _are_few(lost, some) else MAX_ROUNDS
            steps = self._solve_with_all(tol, examples, solver, rounds, least_margin)
        self._warn_unless_reached(tol, self._problem.violation(self._expansion), steps)

    def _solve_with_all(
        self, tol: float, examples: list[Kept], solver: Solver, rounds: int, least_margin: float | None
    ) -> int:
        """Look at all these examples and solve with those that violate, so many times; return the number of steps."""
        steps = 0
        for _ in range(rounds):
            late, _ = self._violators(tol, examples, least_margin)
            steps += self._solve_with(late, solver)
            if len(late) <= len(examples) // ENOUGH:
                break
        return steps

    def _violators(
        self, tol: float, examples: list[Kept], least_margin: float | None = None
    ) -> tuple[list[Kept], list[Kept]]:
        """Those of these examples that are no members and violate, without noise; and those of them that are lost.

        The first are shuffled, and no more than the budget has room for.
        """
        least = self._least_margin if least_margin is None else least_margin
        late, margins = self._violating(self._in_room, self.bias, tol, self._others(examples), least)
        lost = [example for example, margin in zip(late, margins, strict=True) if margin < LOST]
        return self._shuffled(late), lost

    def _watch(self) -> _Watched | None:
        """The examples of the reservoir, with decision values by the model as it is; None if there are none.

        `_uncovered` keeps them for the next time.  If it is interrupted before, they are found anew.
        """
        state = self._reservoir.n_put, len(self._features.columns), self._scale, self._kernel
        watched, self._watched = self._watched, None
        if watched is None or any(a is not b and a != b for a, b in zip(watched.state, state, strict=True)):
            examples = list(self._reservoir)
            if not examples:
                return None
            self._features.settle()
            q = self._scale.queries(_raw(examples))
            sign = np.where([example.positive for example in examples], 1.0, -1.0)
            watched = _Watched(state, examples, sign, Beside(q, state[1], self._kernel, self._evaluator.decide))
        watched.beside.follow(self._in_room)
        return watched

    def _uncovered(self, watched: _Watched | None, before: Expansion, bias: float) -> list[Kept]:
        """Those of the reservoir that are no members and violate the margin, but did not before, shuffled.

        `before` is the expansion with the members that have left since, by which the decision values of `watched` are.
        Only examples that may violate now, and may not have violated before, are looked at.
        """
        if watched is None:
            return []
        beside, sign, least = watched.beside, watched.sign, self._least_margin
        doubt = beside.doubt

        def may_violate(margins: np.ndarray, doubt: float) -> np.ndarray:
            return (margins < 1.0 - self.tol + doubt) & (margins >= least - doubt)

        surely_did = may_violate(sign * (beside.f + bias), -doubt)
        before = storage.require_room(before, len(self._features.columns))
        beside.follow(self._in_room, before)
        suspects = np.flatnonzero(~surely_did & may_violate(sign * (beside.f + self.bias), doubt))
        self._watched = watched
        if not len(suspects):
            return []
        examples = [watched.examples[t] for t in suspects.tolist()]
        others = self._others(example for example in examples if example in self._reservoir)
        late, _ = self._violating(self._in_room, self.bias, self.tol, others, least)
        known = {example.id for example in self._violating(before, bias, self.tol, late, least)[0]}
        return self._shuffled([example for example in late if example.id not in known])

    def _others(self, examples: Iterable[Kept]) -> list[Kept]:
        """Those of these examples that are no members."""
        examples, ids = list(examples), self._expansion.ids[self._expansion.y != 0]
        is_member = np.isin(np.array([example.id for example in examples], np.int64), ids)
        return [example for example, member in zip(examples, is_member.tolist(), strict=True) if not member]

    def _violating(
        self, s: Expansion, bias: float, tol: float, examples: list[Kept], least_margin: float
    ) -> tuple[list[Kept], np.ndarray]:
        """Those of these examples that violate the margin of a model with these members, and their y f(x)."""
        if not examples:
            return [], np.empty(0)
        margins = self._margins_of(examples, s, bias)
        late = np.flatnonzero((margins < 1.0 - tol) & (margins >= least_margin))
        return [examples[t] for t in late], margins[late]

    def _margins_of(self, examples: list[Kept], s: Expansion, bias: float) -> np.ndarray:
        """y f(x) of these examples by a model with these members."""
        self._features.settle()
        f = self._evaluator.decide(s, self._kernel, self._scale.queries(_raw(examples)), bias)
        return np.where([example.positive for example in examples], f, -f)

    def _shuffled(self, examples: list[Kept]) -> list[Kept]:
        """As many of these examples as the budget has room for, in an order that the stream does not know."""
        order = np.argsort(priorities(np.array([example.priority for example in examples], np.uint64)))
        room = len(order) if self.budget is None else max(0, int(self.budget) - self.n_members)
        return [examples[t] for t in order[:room]]

    def _solve_with(self, examples: list[Kept], solver: Solver) -> int:
        """Solve with these examples as further members; return the number of steps."""
        if self._window and examples:
            self._window.passed(min(example.born for example in examples), self._window.latest)
        return self._solve(lambda s: solver(self._with(s, examples) if examples else s))

    def _with(self, s: Expansion, examples: list[Kept]) -> Expansion:
        """The expansion with these examples as members, with coefficient 0; the solver must follow."""
        raw, n = _raw(examples), len(examples)
        q = self._scale.queries(raw)
        positive = np.array([example.positive for example in examples])
        box = np.array([example.box for example in examples])
        lo, hi = np.where(positive, 0.0, -box), np.where(positive, box, 0.0)
        ids = np.array([example.id for example in examples], np.int64)
        born = np.array([example.born for example in examples], np.int64)
        margins, t = no_margins(n), 0
        while t < n:
            part = slice(t, min(t + blocks.BLOCK, n))
            q_part = q.part(part.start, part.stop)
            s = arrival.make_room(s, q_part, len(self._features))
            products = self._evaluator.products(s, q_part)
            kept = self._scale.kept(raw.part(part.start, part.stop))
            block = Examples(q_part, lo[part], hi[part], ids[part], False, born[part], kept).compiled()
            given = (block, False, *products, False, self._calibration, bounded.FAR)
            t += keep_block(s, self._kernel, self._rule, *given, margins[part])
        return s


def _are_few(lost: list[Kept], examples: list[Kept]) -> bool:
    """Whether the lost ones are few among the examples of either class."""
    of_classes = [[example.positive for example in part] for part in (lost, examples)]
    return all(FEW_LOST * of_classes[0].count(label) <= of_classes[1].count(label) for label in (False, True))


def _raw(examples: list[Kept]) -> RawRows:
    """The features of examples of the reservoir."""
    columns = np.concatenate([example.columns for example in examples])
    values = np.concatenate([example.values for example in examples])
    starts = np.cumsum([0] + [len(example.values) for example in examples])
    return raw_rows.from_sparse(starts, np.arange(len(columns)), values, columns)
