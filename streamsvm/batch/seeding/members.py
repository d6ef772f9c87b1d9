"""Members: the few examples among which the folds of a problem are solved.

The solution of a fold has the support vectors of the full solution, except those that leave, and a few others.  So all
folds are solved among the same *members*: the support vectors and the examples nearest to the margin.  The kernel among
the members is one dense matrix, for all folds and all C of a grid.  A pair step then costs the number of members, and
not n.

    K_M = K(M, M)                        for the pair steps, seeds and paths among the members
    g  -= K(., M) (alpha' - alpha)_M     for all examples, after the members are solved; rows of the store
    v_i = g_i - bottom  or  top - g_i    for the other examples, that may rise or fall

Other examples with v_i > tol become members of this fold, the worst first, and the training goes on: along the exact
path if that costs less than the steps before.  It ends when no pair of all examples violates the conditions by more
than tol.  So the members change the time and not the result, and no fold depends on those before it.

The members are those of the full problem, solved among all examples to a loose tolerance.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
ids       numbers of the members M, in the order in which they came        (m,) int64
K         kernel among them, K_M, with room for more                       (R, R) float64
alpha, g  coefficients and gradient of all examples                        (n,) float64
top,      the largest gradient that may rise, and the smallest that may    float
bottom    fall
========= ================================================================ ================

Source: working sets that violators join, as in Osuna, Freund, Girosi, "An improved training algorithm for support
vector machines", 1997.  Deviation: the members serve many problems,
so none of them leaves.
"""

import copy
import math
from dataclasses import replace

import numpy as np

from streamsvm.batch import smo
from streamsvm.batch.costs import WORTH, events_of, path_seconds, step_seconds
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.batch.options import DEFAULTS, SolverOptions
from streamsvm.batch.problem import GROWTH, SPARE, solution_of, survey, violations
from streamsvm.batch.seeding.exact import path
from streamsvm.batch.seeding.start import Seed, Start
from streamsvm.batch.solution import CONVERGED, Solution
from streamsvm.batch.working_set.solver import LOOSE, at_once, worst


class Members:
    """Some examples of a store, with the kernel among them at hand.

    Parameters
    ----------
    all_rows
        The kernel rows of all examples.
    ids
        Numbers of the members, each once.  If they are most examples, or if the kernel among them does not fit into the
        cache, all examples are members.

    Attributes
    ----------
    store
        The kernel rows of the members.
    """

    def __init__(self, all_rows: RowStore, ids: np.ndarray) -> None:
        self.all_rows, self.store = all_rows, all_rows
        self.ids = np.zeros(0, np.int64)
        self._K = np.empty((0, 0))
        if len(ids) < WORTH * len(all_rows) and self.has_room(len(ids)):
            self._add(ids)
        else:
            self.ids = np.arange(len(all_rows))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def are_all(self) -> bool:
        """Whether all examples are members; their rows are then those of the store."""
        return self.store is self.all_rows

    @property
    def places(self) -> np.ndarray | slice:
        """Their places among all examples."""
        return slice(None) if self.are_all else self.ids

    def has_room(self, count: int) -> bool:
        """Whether the rows of so many more members, and the kernel among all members, fit into the cache."""
        most = min(self.all_rows.capacity, math.isqrt(self.all_rows.cache_floats // 3))
        return len(self.ids) + count <= most

    def joined_by(self, ids: np.ndarray) -> "Members":
        """These members and after them other examples, until this method is called again."""
        if len(ids) == 0:
            return self
        if self.are_all or not self.has_room(len(ids)):
            return Members(self.all_rows, np.arange(len(self.all_rows)))
        joined = copy.copy(self)
        joined._add(ids)
        return joined

    def _add(self, ids: np.ndarray) -> None:
        begin, m = len(self.ids), len(self.ids) + len(ids)
        self.ids = np.concatenate([self.ids, ids])
        if m > len(self._K):
            room = min(int(GROWTH * m) + SPARE, len(self.all_rows))
            K, self._K = self._K, np.empty((room, room))
            self._K[:begin, :begin] = K[:begin, :begin]
        self.all_rows.put_square(self.ids, begin, self._K)
        self.store = self.all_rows.among(self.ids, self._K)

    def part(self, solution: Solution) -> Solution:
        """A solution over all examples as one over the members, which must hold its support vectors."""
        if self.are_all:
            return solution
        own = {name: getattr(solution, name)[self.ids] for name in ("y", "lo", "hi", "dual_coef", "g")}
        return replace(solution, store=self.store, **own)

    def start(self, seed: Seed, before: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
        """A seed's start among the members, from a solution over all examples to these boxes."""
        return seed(self.part(before), lo[self.ids], hi[self.ids])


def _nearest(solution: Solution) -> np.ndarray:
    """Numbers of the support vectors, and of a third as many examples that are next to the margin."""
    top, bottom, _, _ = survey(solution.dual_coef, solution.g, solution.lo, solution.hi)
    near = violations(solution.dual_coef, solution.g, solution.lo, solution.hi, top, bottom)
    near[solution.support] = np.inf
    wanted = min(len(near), 4 * len(solution.support) // 3 + SPARE)  # half as many cost each fold more than they save
    return np.sort(np.argpartition(-near, wanted - 1)[:wanted])


# ------------------------------------------------------------------------------------------------------------- training


class _Training:
    """A problem over all examples while it is solved among members."""

    def __init__(self, members: Members, y, lo, hi, alpha, g, options: SolverOptions) -> None:
        self.members, self.options = members, options
        self.y, self.lo, self.hi, self.alpha, self.g = y, lo, hi, alpha.copy(), g.copy()
        self.rows_before = members.all_rows.rows_computed
        self.status = CONVERGED
        self.iterations = self.planned = self.newton_steps = 0
        self.path_seconds = 0.0  # expected ones, of all paths so far

    def solve(self, tol: float, start: Start | None) -> tuple[float, float]:
        """Solve among the members, and bring all gradients up to date; return the extremes of the members."""
        M = self.members.places
        alpha, g = (self.alpha[M], self.g[M]) if start is None else (start.alpha, start.g)
        lo, hi = self.lo[M], self.hi[M]
        top, bottom, _, _ = survey(alpha, g, lo, hi)
        self.status = CONVERGED
        if top - bottom > tol:
            alpha, g = self._trained(alpha, g, lo, hi, tol)
            top, bottom, _, _ = survey(alpha, g, lo, hi)
        if not self.members.are_all:
            self._update_others(alpha)
        self.alpha[M], self.g[M] = alpha, g
        return top, bottom

    def _trained(self, alpha, g, lo, hi, tol: float) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients and gradients of the members after a training from these."""
        options = self.options.left(len(self.y), self.iterations, tol)
        part = smo.train(self.members.store, self.y[self.members.places], lo, hi, alpha, g, options)
        self.iterations += part.iterations
        self.planned += part.planned
        self.newton_steps += part.newton_steps
        self.status = part.status
        return part.dual_coef, part.g

    def _update_others(self, alpha_M: np.ndarray) -> None:
        """Bring the gradients of all examples up to date with other coefficients of the members."""
        M, all_rows = self.members.ids, self.members.all_rows
        change = alpha_M - self.alpha[M]
        moved = np.flatnonzero(change)
        smo.subtract(all_rows, M[moved], change[moved], self.g)

    def recruits(self, top: float, bottom: float) -> tuple[np.ndarray, float]:
        """The worst violators among the examples that are no members, and the largest violation."""
        away = violations(self.alpha, self.g, self.lo, self.hi, top, bottom)
        away[self.members.ids] = -np.inf
        largest = float(away.max())
        bad = np.flatnonzero(away > max(self.options.tol, LOOSE * largest))
        return worst(away, bad, at_once(self.alpha)), max(0.0, largest)

    def run(self, loose: float, start: Start | None = None) -> Solution:
        """Solve to the tolerance; the members to a loose one first."""
        tol = self.options.tol
        while True:
            if start is not None:
                self.path_seconds += path_seconds(start.events, self.free, len(self.members), 1)
            extremes = self.solve(loose, start)
            top, bottom, _, _ = survey(self.alpha, self.g, self.lo, self.hi)
            if self.status != CONVERGED or top - bottom <= tol:
                break
            bad, largest = self.recruits(*((top, bottom) if loose <= tol else extremes))
            if not self.members.has_room(len(bad)):
                return self._among_all()
            self.members = self.members.joined_by(bad)
            loose = max(tol, min(loose, LOOSE * largest))
            start = self.path_to(len(bad)) if loose <= tol and len(bad) and self.path_pays(len(bad)) else None
        return self.solution()

    @property
    def free(self) -> int:
        """The number of free examples."""
        return int(np.count_nonzero((self.lo < self.alpha) & (self.alpha < self.hi)))

    def path_pays(self, entering: int) -> bool:
        """Whether the path to so many new members costs less than the steps and the path that led here."""
        spent = step_seconds(self.iterations, len(self.members)) + self.path_seconds
        return path_seconds(events_of(entering, 0.0), self.free, len(self.members), 1) < spent

    def path_to(self, entering: int) -> Start:
        """The start that the exact path leads to, when the latest members enter the problem."""
        part, latest = self.members.part(self.solution()), np.arange(len(self.members))[-entering:]
        lo, hi = part.lo.copy(), part.hi.copy()
        lo[latest] = hi[latest] = 0.0
        return path(replace(part, lo=lo, hi=hi), part.lo, part.hi)

    def solution(self) -> Solution:
        """The problem as it is solved so far."""
        all_rows = self.members.all_rows
        costs = self.iterations, self.planned, self.newton_steps, all_rows.rows_computed - self.rows_before
        return solution_of(all_rows, self.y, self.lo, self.hi, self.alpha, self.g, self.status, *costs)

    def _among_all(self) -> Solution:
        """Go on among all examples."""
        options = self.options.left(len(self.y), self.iterations)
        so_far = self.solution()
        return so_far.then(smo.train(so_far.store, self.y, self.lo, self.hi, self.alpha, self.g, options))


def train(
    members: Members,
    y: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    before: Solution | None = None,
    options: SolverOptions = DEFAULTS,
    start: Start | None = None,
) -> Solution:
    """Solve a problem over all examples among the members.

    Parameters
    ----------
    members
        The members; violators join them for this training only.
    y, lo, hi
        The problem, as for `smo.train`.
    before
        A solution whose support vectors are members.  The training starts from its coefficients, which must be inside
        the boxes without `start`.  Default: from 0.
    options
        How to solve.
    start
        Another start among the members: each of them has a coefficient and a gradient there.
    """
    if before is None:
        return _Training(members, y, lo, hi, np.zeros(len(y)), y, options).run(max(options.tol, LOOSE))
    return _Training(members, y, lo, hi, before.dual_coef, before.g, options).run(options.tol, start)


def members_of(
    store: RowStore,
    y: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    options: SolverOptions = DEFAULTS,
    start: Start | None = None,
) -> tuple[Members, Solution]:
    """The members for a problem and for others that leave some of its examples out, and its rough solution.

    Parameters
    ----------
    store, y, lo, hi, options
        As for `smo.train`.
    start
        Where the training starts.  Default: 0.
    """
    alpha, g = (np.zeros(len(y)), y) if start is None else (start.alpha, start.g)
    rough = smo.train(store, y, lo, hi, alpha, g, replace(options, tol=max(options.tol, LOOSE)))
    return Members(store, _nearest(rough)), rough


def refined(members: Members, rough: Solution, options: SolverOptions = DEFAULTS) -> tuple[Members, Solution]:
    """The solution of a problem from a rough one, and the members with all its support vectors.

    Parameters
    ----------
    members
        Members that hold the support vectors of the rough solution.
    rough, options
        The result of `members_of`, and the options that it had.
    """
    if not rough.converged:
        return members, rough
    rest = options.left(len(rough.y), rough.iterations)
    found = train(members, rough.y, rough.lo, rough.hi, rough, rest)
    return members.joined_by(np.setdiff1d(found.support, members.ids)), rough.then(found)
