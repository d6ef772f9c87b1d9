"""The solver to the optimum: the problem of `batch.smo`, over more examples than a kernel matrix could have.

Most examples of a training set are never in a violating pair near the solution.  So the kernel matrix is that of the
*members* only, see `members`: the examples with coefficients between the bounds, and those near the margin.

1. *Chunks*.  The examples are shuffled, with the classes evenly spread.  The first few become members, and their
   problem is solved.  Then the number of examples grows by `GROWTH`: f(x) of the next chunk is computed, the examples
   that violate the margin become members, and the members' problem is solved to a loose tolerance.  A rest of less than
   half a chunk joins the chunk before.
2. *Rounds*.  f(x) of all examples is computed.  Those within `NEAR` of a violation are candidates.  A round makes the
   worst violating candidates members, solves, and brings f(x) of the other candidates up to date by the coefficients
   that have changed.
3. When no candidate violates, f(x) of all examples is brought up to date the same way, until no pair of examples
   violates the conditions by more than tol.

From a start there are no chunks.  Its first members are the examples near the margin, and those of the problem before.
All other examples are candidates, and all that violate become members at once: there is a kernel matrix of all
examples, so their f(x) costs little (`series`).

An example *violates* if alpha_i may rise and g_i > bias + tol / 2, or if it may fall and g_i < bias - tol / 2.  The
bias is the middle of the members' extremes.  If no example violates, no pair violates by more than tol.  The middle of
the extremes of all examples would not do: one violator moves it far, and then most examples are past it.

Members at a bound leave when their gradients are `SLACK` away from a violation, those of alpha = 0 and those on the
other bound alike, whose coefficients then stay as they are.  If the matrix has no room left, others leave as well.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
alpha     coefficients with their labels' signs                            (n,) float64
y, lo, hi labels, -1 or +1, and box                                        (n,) float64
f         sum_s alpha_s k(x_s, x_i), by the coefficients `f_alpha` for     (n,) float64
          candidates; unknown for other examples
base      the same for all examples, by the coefficients `base_alpha`      (n,) float64
violation how far the gradient is from where it does not violate           float
========= ================================================================ ================

The decision values of a chunk are those of a model that has not seen it.  They are kept: a sigmoid can be fitted to
them.

Sources: Osuna, Freund, Girosi, "An improved training algorithm for support vector machines" (1997), for working sets
that violators join; Joachims, "Making large-scale SVM learning practical" (1999), for solving while the others are
fixed; Fan, Chen, Lin (2005), for the pair steps, see `steps.pairs`.  Chunks and candidates are ours.
"""

import functools
import math

import numpy as np

from streamsvm.batch.kernels.matrix import KernelSource
from streamsvm.batch.options import DEFAULTS, SolverOptions
from streamsvm.batch.problem import GROWTH, SPARE, solution_of, survey, violations
from streamsvm.batch.solution import CONVERGED, MAX_ITERATIONS, MAX_PASSES, NO_PROGRESS, Arrivals, Solution
from streamsvm.batch.working_set.members import Members
from streamsvm.core.threads import one_blas_thread

FIRST_CHUNK = 500  # examples, at most; violating examples that become members in a round, at least
LOOSE = 0.1  # tolerance while examples are coming; then share of the worst violation, which a round leaves alone
SLACK = 0.5  # how far a member must be from a violation for it to leave
NEAR = 0.3  # how far a candidate may be from one
FIRST = 150  # members of a problem without a start, at least
SHARE = 8  # examples of such a problem for each of its first members, and members for each that joins in a round


def optimum(
    features: KernelSource,
    y: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    options: SolverOptions = DEFAULTS,
) -> tuple[Solution, Arrivals]:
    """Solve a problem with a bias over all examples; the first chunk does not count as arrived.

    Parameters
    ----------
    features
        The examples and the kernel.
    y
        Labels -1.0 and +1.0, (n,).
    lo, hi
        Box of each coefficient, (n,).
    options
        `tol`, `cache_mb` (of the kernel matrix), `max_iterations` and `max_passes` count.

    Examples
    --------
    >>> from streamsvm.batch.kernels.features import Features
    >>> from streamsvm.core.kernels import Linear
    >>> examples = Features(np.array([[0.0], [1.0], [2.0], [3.0]]), Linear())
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> found, _ = optimum(examples, y, np.minimum(10 * y, 0), np.maximum(10 * y, 0))
    >>> found.dual_coef.round(3)
    array([ 0., -2.,  2.,  0.])
    """
    training = Training(Members(features, options.cache_mb), y, lo, hi, options)
    found = training.solution()
    return found, Arrivals(*(np.concatenate(parts) for parts in zip(*training.arrived, strict=True)))


def spread(positive: np.ndarray) -> np.ndarray:
    """A random order of the examples, always the same one, in which the classes are evenly spread."""
    order = np.random.default_rng(0).permutation(len(positive))
    place = np.empty(len(order))
    for of_class in (positive[order], ~positive[order]):
        n = int(np.count_nonzero(of_class))
        place[of_class] = np.arange(n) / max(n, 1)  # both classes are in the first chunk, however rare one is
    return order[np.argsort(place, kind="stable")]


@functools.lru_cache(maxsize=64)  # the folds of a grid, which are the same for all gammas
def _spread(positive: bytes) -> np.ndarray:
    return spread(np.frombuffer(positive, bool))


def worst(v: np.ndarray, bad: np.ndarray, room: int) -> np.ndarray:
    """Of the examples `bad`, those with the largest violations v, as many as there is room for."""
    return bad if len(bad) <= room else bad[np.argpartition(-v[bad], max(room - 1, 0))[:room]]


def at_once(alpha: np.ndarray) -> int:
    """How many violating examples become members in a round."""
    return max(FIRST_CHUNK, int(np.count_nonzero(alpha)) // SHARE)


class Training:
    """One problem while it is being solved, among members that may be those of the problem before."""

    def __init__(self, members: Members, y: np.ndarray, lo: np.ndarray, hi: np.ndarray, options: SolverOptions) -> None:
        self.members, self.features = members, members.features
        self.y, self.lo, self.hi, self.tol = y, lo, hi, options.tol
        n = len(y)
        self.limit, self.max_passes, self.n_passes = options.limit(n), options.max_passes, 1
        self.is_member = np.zeros(n, bool)
        self.is_member[members.ids] = True
        self.alpha, self.f = np.zeros(n), np.zeros(n)
        self.base = self.base_alpha = self.f_alpha = np.zeros(n)
        self.arrived = [Arrivals(np.empty(0, np.int64), np.empty(0))]
        self.is_stuck = False

    def solution(self, *start: np.ndarray) -> Solution:
        """The solution, from the coefficients and the gradient of a start; without one, from chunks."""
        members, systems = self.members, self.members.newton_steps
        members.steps = 0
        with one_blas_thread():
            status = self._from(*start) if start else self._from_chunks()
        costs = members.steps, 0, members.newton_steps - systems, 0, self.features.kernel_evaluations, self.n_passes
        where = self.features, self.y, self.lo, self.hi, self.alpha, self.y - self.base, status
        return solution_of(*where, *costs)

    def _from_chunks(self) -> str:
        """Learn chunk after chunk, and solve in rounds over candidates; return why the solver stopped."""
        self._learn_chunks()
        self._drop(SLACK)
        tol = LOOSE
        while not (status := self._status_after_pass()):
            tol = self._rounds(self._outside(-NEAR), tol)
        return status

    def _from(self, alpha: np.ndarray, g: np.ndarray) -> str:
        """Solve from a start, in rounds over all examples; return why the solver stopped."""
        self.alpha, self.base_alpha, self.base = alpha.copy(), alpha, self.y - g
        top, bottom, _, _ = survey(alpha, g, self.lo, self.hi)
        if not top - bottom > self.tol:
            return CONVERGED
        self._begin(alpha, g, 0.5 * (top + bottom))
        while not (status := self._status_after_pass()):
            new = self._outside(0.0)
            self._add(new, self.f[new])
            self._solve(self.tol)
        return status

    def _status_after_pass(self) -> str:
        """Pass over all examples; return why the solver stops then, or nothing if it goes on."""
        self.n_passes += 1
        self._check_all()
        top, bottom, _, _ = survey(self.alpha, self.y - self.f, self.lo, self.hi)
        if not top - bottom > self.tol:
            self.members.settle()
            self.alpha[self.members.ids] = self.members.alpha
            return CONVERGED
        if self.is_stuck:
            return MAX_ITERATIONS if self.members.steps >= self.limit else NO_PROGRESS
        return MAX_PASSES if self.n_passes >= self.max_passes else ""

    def _outside(self, least: float) -> np.ndarray:
        """The examples that violate by more than this and are not members."""
        bias = self.members.middle
        v = violations(self.alpha, self.y - self.f, self.lo, self.hi, bias, bias)
        return np.flatnonzero((v > least) & ~self.is_member)

    # --------------------------------------------------------------------------------------------------------- members

    def _violations(self, ids: np.ndarray, f: np.ndarray) -> np.ndarray:
        """How far the gradients of these examples are from where they do not violate; negative if they do not."""
        bias = self.members.middle
        return violations(self.alpha[ids], self.y[ids] - f, self.lo[ids], self.hi[ids], bias, bias)

    def _add(self, ids: np.ndarray, f: np.ndarray) -> None:
        """Make members of these examples."""
        self.members.add(ids, self.alpha[ids], self.y[ids] - f, self.lo[ids], self.hi[ids])
        self.is_member[ids] = True

    def _solve(self, tol: float) -> None:
        """Solve over the members."""
        self.is_stuck = not self.members.solve(tol, self.limit)
        self.alpha[self.members.ids] = self.members.alpha

    def _drop(self, slack: float) -> np.ndarray:
        """Let members leave that are far from a violation, if they are many; return them."""
        members = self.members
        stays = self._violations(members.ids, self.y[members.ids] - members.g) > -slack
        return self._leave(stays) if np.count_nonzero(stays) * GROWTH <= len(stays) else np.empty(0, np.int64)

    def _make_room(self, n_new: int) -> np.ndarray:
        """Let members leave until there is room for others, for half of the members at most; return them.

        The members that hold the extremes stay, so that a step follows.
        """
        members = self.members
        excess = min(len(members) + n_new, len(members) + members.room // 2) - members.room
        if excess <= 0:
            return np.empty(0, np.int64)
        v = self._violations(members.ids, self.y[members.ids] - members.g)
        v[list(members.holders)] = np.inf
        stays = np.ones(len(members), bool)
        stays[np.argsort(v, kind="stable")[:excess]] = False
        return self._leave(stays)

    def _leave(self, stays: np.ndarray) -> np.ndarray:
        """Let the other members leave, with f up to date; return them."""
        members, leaving = self.members, self.members.ids[~stays]
        self.f[leaving] = self.y[leaving] - members.g[~stays]
        self.is_member[leaving] = False
        members.keep(np.flatnonzero(stays))
        return leaving

    # ----------------------------------------------------------------------------------------------------------- start

    def _begin(self, alpha: np.ndarray, g: np.ndarray, bias: float) -> None:
        """Solve among the examples near the margin, and the members so far if they are not many more."""
        near, n_support = violations(alpha, g, self.lo, self.hi, bias, bias), np.count_nonzero(alpha)
        wanted, most = near > -SLACK, int(GROWTH * n_support) + SPARE
        if not n_support:
            wanted[:] = False
            order = self._order()
            wanted[order[: max(FIRST, len(order) // SHARE)]] = True
        elif np.count_nonzero(wanted) > most:
            wanted[:] = False
            wanted[np.argpartition(-near, most)[:most]] = True
        if len(self.members) > GROWTH * np.count_nonzero(wanted) + SPARE:
            self._leave(wanted[self.members.ids])
        new = np.flatnonzero(wanted & ~self.is_member)
        if len(new):
            self._add(new, self.base[new])
        ids = self.members.ids
        self.members.start(alpha[ids], g[ids], self.lo[ids], self.hi[ids])
        self._solve(self.tol)

    # ---------------------------------------------------------------------------------------------------------- chunks

    def _order(self) -> np.ndarray:
        """The examples that have a box, in the order in which they come."""
        open_ = np.flatnonzero(self.lo < self.hi)
        return open_[_spread((self.y[open_] > 0.0).tobytes())]

    def _learn_chunks(self) -> None:
        """Learn all examples, chunk after chunk."""
        order = self._order()
        n = len(order)
        done = min(n, self.members.room, FIRST_CHUNK, -(-n // 4))
        self._add(order[:done], np.zeros(done))
        self._solve(LOOSE)
        while done < n:
            self._drop(SLACK)
            end = math.ceil(GROWTH * done)
            rows = order[done : end if n > 0.5 * (1.0 + GROWTH) * end else n]  # half a chunk joins the one before it
            done += len(rows)
            f = self._sums(rows, self.alpha)[rows]
            self.arrived.append(Arrivals(rows, f + self.members.middle))
            v = self._violations(rows, f)
            new = worst(v, np.flatnonzero(v > LOOSE), self.members.room - len(self.members))
            self._add(rows[new], f[new])
            self._solve(LOOSE)

    def _sums(self, rows: np.ndarray, change: np.ndarray) -> np.ndarray:
        """sum_s change_s k(x_s, x) of these examples, (n,); others may be among them."""
        moved = np.flatnonzero(change)
        return self.features.sums(rows, moved, change[moved])

    # ---------------------------------------------------------------------------------------------------------- rounds

    def _check_all(self) -> None:
        """Bring f of all examples up to date."""
        members, outside = self.members, np.flatnonzero(~self.is_member)
        self.f = self.base + self._sums(outside, self.alpha - self.base_alpha)
        self.f[members.ids] = self.y[members.ids] - members.g
        self.base, self.base_alpha = self.f.copy(), self.alpha.copy()
        self.f_alpha = self.base_alpha

    def _check(self, candidates: np.ndarray) -> None:
        """Bring f of the candidates up to date."""
        self.f += self._sums(candidates, self.alpha - self.f_alpha)
        self.f_alpha = self.alpha.copy()

    def _rounds(self, candidates: np.ndarray, tol: float) -> float:
        """Solve over members and candidates, from this tolerance on; return the tolerance to go on with."""
        while not self.is_stuck:
            v = self._violations(candidates, self.f[candidates])
            largest = v.max(initial=0.0)
            if not largest > 0.5 * self.tol:
                if not self.members.violation > self.tol:
                    break
                self._solve(self.tol)
            else:
                bad = np.flatnonzero(v > max(0.5 * self.tol, LOOSE * largest))
                bad = worst(v, bad, at_once(self.members.alpha))
                left = [self._drop(SLACK), self._make_room(len(bad))]
                bad = worst(v, bad, self.members.room - len(self.members))
                new, candidates = candidates[bad], np.concatenate([np.delete(candidates, bad), *left])
                self._add(new, self.f[new])
                tol = max(self.tol, min(tol, LOOSE * largest))
                self._solve(tol)
            self._check(candidates)
        return tol
