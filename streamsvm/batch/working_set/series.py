"""A series of problems over the same examples, solved one after another on one kernel matrix.

The problems are those of `batch.smo`: folds have empty boxes where they leave examples out, and C sets the sizes of all
boxes.  Each is solved among *members* first, the examples that are near the margin; the others are at a bound:

1. `near` is computed for each example: how far its gradient is past the middle of the extremes, on the side where it
   would violate; negative on the other side.  Examples with near > -SLACK become members; the nearest, if these are
   many more than the support vectors.  Members of the problem before stay, if they are not too many: the problems of a
   series have nearly the same members.
2. The members are solved to the tolerance, on their own kernel matrix.
3. The gradients of all examples are brought up to date by rows of the whole matrix.
4. If a pair of examples violates the conditions by more than tol, all examples past the middle of the *members'*
   extremes become members, and so on from 2.  That middle is their bias.  The middle of the extremes of all examples
   would not do: one violator moves it far, and then most examples are past it.

From one C to the next, all coefficients and y - g grow alike: `scaled`.  That costs no kernel value.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
K         kernel matrix                                                    (n, n) float32
y, lo, hi labels, -1 or +1, and box                                        (n,) float64
alpha, g  coefficients with their labels' signs, and gradient y - K alpha  (n,) float64
near      how far a gradient is past a middle of extremes                  (n,) float64
========= ================================================================ ================

Source: working sets that violators join, as in Osuna, Freund, Girosi, "An improved training algorithm for support
vector machines", 1997.
"""

import functools
from dataclasses import replace

import numpy as np

from streamsvm.batch.kernels.matrix import Gram
from streamsvm.batch.kernels.square import subtract_rows
from streamsvm.batch.options import DEFAULTS, SolverOptions
from streamsvm.batch.problem import settled, survey, violations
from streamsvm.batch.solution import CONVERGED, MAX_ITERATIONS, NO_PROGRESS, Solution
from streamsvm.batch.working_set.members import Members
from streamsvm.batch.working_set.solver import SLACK, SPARED, spread
from streamsvm.core.threads import one_blas_thread

SPARE = 100  # members beside `SPARED` for each support vector, and before any leaves for each one needed
WHOLE_MATRIX = 0.7  # of all examples; with more members, the steps are taken on the whole matrix
FIRST, FIRST_SHARE = 150, 8  # members of a problem without a start: at least, and one for so many examples


@functools.lru_cache(maxsize=64)  # the folds of a grid, which are the same for all gammas
def _spread(positive: bytes) -> np.ndarray:
    return spread(np.frombuffer(positive, bool))


def scaled(before: Solution, factor: float) -> Solution:
    """The solution with all boxes and coefficients multiplied, and its gradient."""
    alpha, lo, hi, y = factor * before.dual_coef, factor * before.lo, factor * before.hi, before.y
    upper, lower = before.dual_coef == before.hi, before.dual_coef == before.lo
    alpha[upper], alpha[lower] = hi[upper], lo[lower]
    return replace(before, dual_coef=alpha, g=y - factor * (y - before.g), lo=lo, hi=hi)


class Series:
    """The problems over the examples of one kernel matrix.

    Parameters
    ----------
    gram
        The kernel matrix.
    options
        `tol` and `max_iterations` count.

    Examples
    --------
    >>> K = np.exp(-np.square(np.subtract.outer(np.arange(4.0), np.arange(4.0)))).astype(np.float32)
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> found = Series(Gram(K, np.ones(4))).solve(y, np.minimum(10 * y, 0), np.maximum(10 * y, 0))
    >>> found.dual_coef.round(2)
    array([-0.55, -1.28,  1.28,  0.55])
    """

    def __init__(self, gram: Gram, options: SolverOptions = DEFAULTS) -> None:
        self.gram, self.options = gram, options
        self._few, self._all = Members(gram, 4 * gram.n**2 / 2**20), Members.of_all(gram, gram.K)
        self._is_member = np.zeros(gram.n, bool)

    def restart(self) -> None:
        """Let all members leave: the problems to come have little in common with those before."""
        self._is_member[self._few.ids] = False
        self._few.keep(np.zeros(0, np.int64))

    def solve(
        self,
        y: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
        alpha: np.ndarray | None = None,
        g: np.ndarray | None = None,
    ) -> Solution:
        """Solve a problem, from any feasible start.

        Parameters
        ----------
        y
            Labels -1.0 and +1.0, (n,).
        lo, hi
            Box of each coefficient, (n,); both are 0 for a held-out example.
        alpha, g
            Start, (n,), and y - K alpha if it is known.  Default: 0.
        """
        with one_blas_thread():
            return _Training(self, y, lo, hi, alpha, g).run()

    def members_for(self, wanted: np.ndarray) -> Members:
        """Members that hold at least these examples, (n,) bool; their state is unknown."""
        count = int(np.count_nonzero(wanted))
        if count > WHOLE_MATRIX * self.gram.n:
            return self._all
        few = self._few
        if len(few) > SPARED * count + SPARE:
            stays = wanted[few.ids]
            self._is_member[few.ids[~stays]] = False
            few.keep(np.flatnonzero(stays))
        self.join(few, np.flatnonzero(wanted & ~self._is_member))
        return few

    def join(self, members: Members, ids: np.ndarray) -> None:
        """Make members of these examples."""
        if len(ids):
            nothing = np.zeros(len(ids))
            members.add(ids, nothing, nothing, nothing, nothing)
            self._is_member[ids] = True

    def others(self, members: Members) -> np.ndarray:
        """Which examples are no members, (n,) bool."""
        return ~self._is_member if members is self._few else np.zeros(self.gram.n, bool)


class _Training:
    """One problem while it is being solved."""

    def __init__(self, series: Series, y, lo, hi, alpha, g) -> None:
        self.series, self.lo, self.hi = series, lo, hi
        self.is_cold = alpha is None
        self.alpha = np.zeros(len(y)) if alpha is None else alpha.copy()
        self.g = y.copy() if g is None else g.copy()
        if g is None and alpha is not None:
            support = np.flatnonzero(alpha)
            subtract_rows(series.gram.K, support, alpha[support], self.g)
        self.y = y
        self.steps = self.newton_steps = 0

    def run(self) -> Solution:
        """Solve."""
        tol, limit = self.series.options.tol, self.series.options.limit(len(self.y))
        top, bottom, bias, _ = survey(self.alpha, self.g, self.lo, self.hi)
        status = CONVERGED
        if top - bottom > tol:
            wanted = self._first() if self.is_cold else self._nearest(0.5 * (top + bottom))
            members = self.series.members_for(wanted)
            while True:
                is_solved = self._solve(members, limit)
                top, bottom, bias, _ = survey(self.alpha, self.g, self.lo, self.hi)
                if not top - bottom > tol:
                    break
                new = np.flatnonzero(self.series.others(members) & (self._near(members.middle) > 0.0))
                if not is_solved or not len(new):
                    status = MAX_ITERATIONS if self.steps >= limit else NO_PROGRESS
                    break
                self.series.join(members, new)
        self.alpha = settled(self.alpha, self.lo, self.hi)
        where = self.series.gram, self.y, self.lo, self.hi, self.alpha, self.g
        return Solution(*where, bias, max(0.0, top - bottom), status, self.steps, 0, self.newton_steps)

    def _first(self) -> np.ndarray:
        """The first members of a problem that starts from 0."""
        open_ = np.flatnonzero(self.lo < self.hi)
        wanted = np.zeros(len(self.y), bool)
        wanted[open_[_spread((self.y[open_] > 0.0).tobytes())[: max(FIRST, len(open_) // FIRST_SHARE)]]] = True
        return wanted

    def _nearest(self, middle: float) -> np.ndarray:
        """The first members of a problem that has a start."""
        near = self._near(middle)
        wanted = near > -SLACK
        most = int(SPARED * np.count_nonzero(self.alpha)) + SPARE
        if np.count_nonzero(wanted) > most:
            wanted[:] = False
            wanted[np.argpartition(-near, most)[:most]] = True
        return wanted

    def _near(self, middle: float) -> np.ndarray:
        """How far each gradient is beyond the middle of the extremes; negative if it does not violate."""
        return violations(self.alpha, self.g, self.lo, self.hi, middle, middle)

    def _solve(self, members: Members, limit: int) -> bool:
        """Solve among the members, and bring all gradients up to date; False if that did not succeed."""
        ids = members.ids
        members.start(self.alpha[ids], self.g[ids], self.lo[ids], self.hi[ids])
        systems = members.newton_steps
        is_solved = members.solve(self.series.options.tol, limit - self.steps)
        self.steps += members.steps
        self.newton_steps += members.newton_steps - systems
        change = members.alpha - self.alpha[ids]
        moved = np.flatnonzero(change)
        if len(ids) < len(self.g):
            subtract_rows(self.series.gram.K, ids[moved], change[moved], self.g)
        self.alpha[ids], self.g[ids] = members.alpha, members.g
        return is_solved
