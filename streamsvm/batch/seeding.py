"""Seeds: the solution of one problem as a start for the next, when examples leave and enter or C changes.

    maximise  y'beta - 1/2 beta'K beta    subject to    sum_i beta_i = 0,   lower_i <= beta_i <= upper_i

The problems of a cross-validation differ in whose boxes are empty: those of the examples R that *leave* the training
set become empty, those of the examples T that *enter* it open, all others S stay.  Along a path in C all boxes grow.  A
seed makes of the solution of one problem a feasible beta for the next, with g = y - K beta brought up to date by the
coefficients that changed.  From there `smo.train` goes on to the tolerance, so that a seed decides how long a training
takes but not where it ends.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
beta, g   coefficients and gradient                                        (n,) float64
mu        bias of the previous solution                                    float
R, T      numbers of the examples that leave, that enter                   (r,), (t,) int64
S         those that stay                                                  --
M         the free ones among S                                            (m,) int64
C, C'     bound before and after                                           float
========= ================================================================ ================

Sources.  Wen et al., "Improving Efficiency of SVM k-fold Cross-validation by Alpha Seeding": ATO (Algorithm 1), MIR
(equation (17)) and SIR (Algorithm 3) for k-fold; AVG and TOP for leave-one-out, which it takes from earlier work.
Bin Li, chapter on parameter selection, 4.2.1 and 4.2.2: along C, reuse, scaling, Single, Multiple.  Deviations:

- "Adjust uniformly" is a projection on the sum (`repair`).  It goes to T first, but T may be unable to take it all,
  which the source forgets; what does not fit goes to M, then to all of S.
- SIR loops over the support vectors of R only, since an example with beta = 0 would waste a partner, and looks for the
  largest kernel value from -inf on, not from 0: values underflow, and may be negative.
- MIR as printed asks every example of the old training set to move to the margin, non-support vectors as well, and has
  no equation for those of T.  Here the equations are those of M, which is to stay where it is, and of the entering
  examples that violate their conditions, which alone are moved.
- ATO is followed to its end, see `path`; one step of it and a repair is no better than a cold start.
- TOP and AVG take k folds as well as single examples.
- GREEDY, ours: a forced pair step.  The leaving example with the most to give gives it to the example with which the
  objective changes best per unit moved, which may be a leaving one of the other sign.  The positive coefficients go
  first, then the negative ones.  BEST is the better of AVG and GREEDY by the dual objective.
- Along C: scaling moves the bounded coefficients only (scaling all destroys a solution that is still optimal); a pair
  (u, v) moves by (g_u - g_v) / q, and only if g_u > g_v: the source's objective changes are not those of a pair step.

What to expect, as measured: sharing kernel rows between the folds is worth more than any seed.  For k <= 4 no seed is
better than a cold start; for k = 10 they save a quarter of the steps, for leave-one-out three quarters; the exact path
saves all of them, where it is affordable.  `choose` knows.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from streamsvm.batch import path as exact
from streamsvm.batch import smo
from streamsvm.batch.options import DEFAULTS, SolverOptions
from streamsvm.batch.rows import NO_ROWS, NOBODY, ROWS_FOR_PRODUCT, RowStore, diagonal_of, row_at, rows_of
from streamsvm.batch.smo import Solution
from streamsvm.batch.steps import BLOCK, View, kernel_among, subtract_rows
from streamsvm.core._jit import compiled, inner
from streamsvm.core._simd import fmax, fmin
from streamsvm.core.expansion import FORBIDDEN


class Start(NamedTuple):
    """Where a training may start.

    Attributes
    ----------
    beta, g
        Feasible coefficients, and y - K beta.
    seed
        What made it; a path that could not be followed is replaced by "avg" or "greedy".
    events
        Of the path, also of one that was given up.
    rows_computed
        Kernel rows that were not in the store.
    """

    beta: np.ndarray
    g: np.ndarray
    seed: str
    events: int
    rows_computed: int

    def objective(self, y: np.ndarray) -> float:
        """The dual objective, beta'(y + g) / 2."""
        return 0.5 * float(self.beta @ (y + self.g))


ROUNDING = 1e-12  # of the largest coefficient
ROOM = 80  # for examples that become free on the path of a few leaving ones

Seed = Callable[[Solution, np.ndarray, np.ndarray, np.ndarray, np.ndarray], Start]
CSeed = Callable[[Solution, np.ndarray, np.ndarray], Start]


# --------------------------------------------------------------------------------------------------------------- repair


def _shift(beta: np.ndarray, lower: np.ndarray, upper: np.ndarray, amount: float) -> np.ndarray:
    """clip(beta + theta, lower, upper) with the theta for which the sum grows by `amount`, or by as much as it can."""
    if amount >= (upper - beta).sum():
        return upper.copy()
    if amount <= (lower - beta).sum():
        return lower.copy()
    theta = np.concatenate([lower - beta, upper - beta])  # where a coefficient starts and stops to move
    order = np.argsort(theta, kind="stable")
    theta, slope = theta[order], np.cumsum(np.where(order < len(beta), 1, -1))
    grown = (lower - beta).sum() + np.append(0.0, np.cumsum(slope[:-1] * np.diff(theta)))
    k = min(int(np.searchsorted(grown, amount, side="right")), len(theta) - 1) - 1
    step = (amount - grown[k]) / slope[k] if slope[k] > 0 else 0.0
    return np.clip(beta + (theta[k] + step), lower, upper)


def repair(
    beta: np.ndarray, groups: Sequence[np.ndarray], lower: np.ndarray, upper: np.ndarray, largest: float = 0.0
) -> np.ndarray:
    """The coefficients cut to their boxes and, group after group, moved by the same amount until they sum to 0.

    Within a group this is the nearest point with the sum.  What the groups cannot take goes to everyone.  Rounding is
    that of the largest coefficient, or of one that there was.

    >>> repair(np.array([0.0, 0.5, -1.0]), [np.array([0])], np.array([0, 0, -1.0]), np.array([0.2, 1, 0]))
    array([ 0.2 ,  0.65, -0.85])
    """
    largest = max(largest, float(np.abs(beta).max(initial=0.0)))
    beta = np.clip(beta, lower, upper)
    rounding = 1e-12 * float(np.abs(beta).sum())
    for group in (*groups, np.flatnonzero(lower < upper)):
        missing = -float(beta.sum())
        if abs(missing) <= rounding:
            break
        beta[group] = _shift(beta[group], lower[group], upper[group], missing)
    near = ROUNDING * np.minimum(upper - lower, largest)  # not even this may make one free
    beta = np.where(beta - lower <= near, lower, np.where(upper - beta <= near, upper, beta))
    for only_free in (True, False):  # one coefficient takes the rest, so that only one row is needed
        rest = float(beta.sum())
        if abs(rest) > 1e-2 * rounding:
            up, down = upper - beta, beta - lower
            widest = int(np.argmax(np.minimum(up, down) if only_free else down if rest > 0.0 else up))
            beta[widest] = min(max(beta[widest] - rest, lower[widest]), upper[widest])
    return beta


# ------------------------------------------------------------------------------------------------------ starts and rows


def _view(store: RowStore, g: np.ndarray) -> View:
    """All examples, for changes of g only."""
    return View(np.arange(len(g)), g, g, g, g, g, g, store.diagonal, np.empty(2), NO_ROWS, True)


def _moved(previous: Solution, beta: np.ndarray, seed: str, rows_before: int) -> Start:
    """The start at beta, its gradient brought up to date from the previous one's."""
    store, g, change = previous.store, previous.g.copy(), beta - previous.beta
    ids = np.flatnonzero(change)
    store.fill(ids)
    subtract_rows(store.data, _view(store, g), ids, change[ids])
    return Start(beta, g, seed, 0, store.rows_computed - rows_before)


def _staying(previous: Solution, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """M: who was free and has a box."""
    return np.flatnonzero(previous.free & (lower < upper))


def _with_mass(previous: Solution, leaving: np.ndarray) -> np.ndarray:
    leaving = np.asarray(leaving, np.int64)
    return leaving[previous.beta[leaving] != 0.0]


def _violating(previous: Solution, entering: np.ndarray) -> np.ndarray:
    """The entering examples that 0 is not optimal for."""
    entering = np.asarray(entering, np.int64)
    return entering[previous.y[entering] * (previous.g[entering] - previous.bias) > 0.0]


# ------------------------------------------------------------------------------------------------------ k folds, chains


def reuse(previous: Solution, leaving, entering, lower: np.ndarray, upper: np.ndarray) -> Start:
    """Nothing but the repair: on the entering examples first, then on the free ones, then on all."""
    rows_before = previous.store.rows_computed
    groups = [np.asarray(entering, np.int64), _staying(previous, lower, upper)]
    return _moved(previous, repair(previous.beta, groups, lower, upper), "reuse", rows_before)


def sir(previous: Solution, leaving, entering, lower: np.ndarray, upper: np.ndarray) -> Start:
    """SIR: each leaving support vector hands its coefficient to the most similar entering example of its label."""
    rows_before = previous.store.rows_computed
    beta, y = previous.beta.copy(), previous.y
    entering = np.asarray(entering, np.int64)
    unused = np.ones(len(entering), bool)
    R = _with_mass(previous, leaving)
    for r, row in zip(R, previous.store.rows(R)[:, entering], strict=True):
        partners = unused & (y[entering] == y[r])
        if not unused.any():
            break
        if not partners.any():
            partners = unused
        q = int(np.argmax(np.where(partners, row, -np.inf)))
        unused[q] = False
        beta[entering[q]] = y[entering[q]] * abs(previous.beta[r])
    beta = repair(beta, [entering, _staying(previous, lower, upper)], lower, upper)
    return _moved(previous, beta, "sir", rows_before)


def mir(previous: Solution, leaving, entering, lower: np.ndarray, upper: np.ndarray) -> Start:
    """MIR, corrected: entering coefficients that leave f of M where it is and move the violating ones to the margin.

    Least squares in beta_V for the violating V among T, with rows = M and V, Delta f = 0 for M and g - mu for V:

        || K_rows,V beta_V - (Delta f + K_rows,R beta_R) ||^2 + (1'beta_V - 1'beta_R)^2
    """
    rows_before, store = previous.store.rows_computed, previous.store
    beta = previous.beta.copy()
    R, V = _with_mass(previous, leaving), _violating(previous, entering)
    M = _staying(previous, lower, upper)
    if len(V):
        places = np.concatenate([M, V])
        wanted = np.concatenate([np.zeros(len(M)), previous.g[V] - previous.bias])
        wanted += previous.beta[R] @ store.rows(R)[:, places]
        A = np.vstack([store.rows(V)[:, places].T, np.ones(len(V))])
        normal, b = A.T @ A, A.T @ np.append(wanted, previous.beta[R].sum())
        normal[np.diag_indices(len(V))] += 1e-10 * np.trace(normal) / len(V)
        _, x, failed = lapack.dposv(normal, b)
        if not failed and np.isfinite(x).all():
            beta[V] = x
    beta = repair(beta, [np.asarray(entering, np.int64), M], lower, upper)
    return _moved(previous, beta, "mir", rows_before)


# --------------------------------------------------------------------------------------------- from the full solution


def avg(previous: Solution, leaving, entering, lower: np.ndarray, upper: np.ndarray) -> Start:
    """AVG: what leaves is shared equally among the free examples, as far as each can take it."""
    rows_before = previous.store.rows_computed
    beta = repair(previous.beta, [_staying(previous, lower, upper)], lower, upper)
    return _moved(previous, beta, "avg", rows_before)


def top(previous: Solution, leaving, entering, lower: np.ndarray, upper: np.ndarray) -> Start:
    """TOP: each leaving coefficient goes to the most similar free examples, one after the other."""
    rows_before = previous.store.rows_computed
    beta = previous.beta.copy()
    R, M = _with_mass(previous, leaving), _staying(previous, lower, upper)
    for r, row in zip(R, previous.store.rows(R)[:, M], strict=True):
        order = M[np.argsort(-row, kind="stable")]
        rises = beta[r] > 0.0
        room = upper[order] - beta[order] if rises else beta[order] - lower[order]
        taken = np.clip(abs(beta[r]) - (np.cumsum(room) - room), 0.0, room)
        beta[order] += taken if rises else -taken
    return _moved(previous, repair(beta, [M], lower, upper), "top", rows_before)


@inner
def _gain(sign, mass, g_r, K_rr, g_i, beta_i, lower_i, upper_i, K_ii, K_ri):
    """What the objective gains per unit that the leaving r gives to i; -FORBIDDEN if i has no room."""
    room = upper_i - beta_i if sign > 0.0 else beta_i - lower_i
    gained = sign * (g_i - g_r) - 0.5 * fmin(mass, room) * (K_rr + K_ii - 2.0 * K_ri)
    return gained if room > 0.0 else -FORBIDDEN


@inner
def _largest_gain(sign, mass, g_r, K_rr, g, beta, lower, upper, diagonal, K_r):
    """The largest of a block."""
    largest = -FORBIDDEN
    for i in range(g.shape[0]):
        gained = _gain(sign, mass, g_r, K_rr, g[i], beta[i], lower[i], upper[i], diagonal[i], K_r[i])
        largest = fmax(largest, gained)
    return largest


@inner
def _receiver(sign, mass, r, g, beta, lower, upper, diagonal, K_r):
    """To whom the leaving r gives with the largest gain per unit; -1 if nobody has room."""
    g_r, K_rr, best, best_block = g[r], diagonal[r], -FORBIDDEN, 0
    for b in range(0, g.shape[0], BLOCK):
        e = min(b + BLOCK, g.shape[0])
        largest = _largest_gain(
            sign, mass, g_r, K_rr, g[b:e], beta[b:e], lower[b:e], upper[b:e], diagonal[b:e], K_r[b:e]
        )
        if largest > best:
            best, best_block = largest, b
    if best > -FORBIDDEN:
        for i in range(best_block, g.shape[0]):
            if _gain(sign, mass, g_r, K_rr, g[i], beta[i], lower[i], upper[i], diagonal[i], K_r[i]) == best:
                return i
    return -1


@inner
def _largest(sign, beta, leaving):
    """The leaving coefficient of this sign with the largest size; -1 if all are empty."""
    r, largest = -1, 0.0
    for i in leaving:
        if sign * beta[i] > largest:
            r, largest = i, sign * beta[i]
    return r


@compiled
def forced_steps(store, beta, g, lower, upper, leaving):
    """Pair steps that empty the leaving coefficients, each with the best gain per unit moved.

    The leaving boxes must be [0, 0].  Hence a leaving coefficient has room for what brings it nearer to 0.

    Two phases, of at most n steps each for n coefficients: the positive leaving coefficients fall, then the negative
    ones rise.  A step of the first phase empties its giver or fills its receiver.  All receivers of a phase move the
    same way, so one that is full stays full, and the phase ends.  If sum beta = 0 and every box holds 0, there is room
    for everything: the positive ones give P = N - sum_S beta, where N is the size of the negative ones and S are those
    that stay, and the room is N + sum_S (upper - beta) >= P.  The same holds for the second phase.  So nothing but
    rounding is left.
    """
    diagonal, rows = diagonal_of(store)[: g.shape[0]], rows_of(store)
    for sign in (1.0, -1.0):
        while True:
            r = _largest(sign, beta, leaving)
            if r < 0:
                break
            mass, at_r = abs(beta[r]), row_at(store, r, NOBODY)
            K_r = rows[at_r]
            j = _receiver(sign, mass, r, g, beta, lower, upper, diagonal, K_r)
            if j < 0:
                break
            K_j = rows[row_at(store, j, at_r)]
            room = upper[j] - beta[j] if sign > 0.0 else beta[j] - lower[j]
            step = min(mass, room)
            beta[j] = (upper[j] if sign > 0.0 else lower[j]) if step >= room else beta[j] + sign * step
            beta[r] = 0.0 if step >= mass else beta[r] - sign * step
            for i in range(g.shape[0]):
                g[i] -= sign * step * (K_j[i] - K_r[i])


def greedy(previous: Solution, leaving, entering, lower: np.ndarray, upper: np.ndarray) -> Start:
    """GREEDY: what leaves goes where the objective loses least, in forced pair steps."""
    rows_before, store = previous.store.rows_computed, previous.store
    beta, g, R = previous.beta.copy(), previous.g.copy(), _with_mass(previous, leaving)
    store.fill(R)
    if len(R):
        forced_steps(store.data, beta, g, lower, upper, R)
    return _settled(previous, beta, g, lower, upper, "greedy", 0, rows_before)


@compiled
def is_settled(beta, lower, upper, largest):
    """Whether beta needs no repair: inside its box, sum 0, nothing at a bound but for rounding."""
    total = mass = 0.0
    for i in range(beta.shape[0]):
        near = ROUNDING * min(upper[i] - lower[i], largest)
        for bound in (lower[i], upper[i]):
            if beta[i] != bound and abs(beta[i] - bound) <= near:
                return False
        if not lower[i] <= beta[i] <= upper[i]:
            return False
        total += beta[i]
        mass += abs(beta[i])
    return abs(total) <= 1e-14 * mass


def _settled(previous, beta, g, lower, upper, seed: str, events: int, rows_before: int) -> Start:
    """The start at beta, of which g is the gradient, after the repair of what rounding has left."""
    largest = float(np.abs(previous.beta).max(initial=0.0))
    if not is_settled(beta, lower, upper, largest):
        old, beta = beta, repair(beta, [_staying(previous, lower, upper)], lower, upper, largest)
        ids = np.flatnonzero(beta != old)
        subtract_rows(previous.store.data, _view(previous.store, g), ids, (beta - old)[ids])
    return Start(beta, g, seed, events, previous.store.rows_computed - rows_before)


def best(previous: Solution, leaving, entering, lower: np.ndarray, upper: np.ndarray) -> Start:
    """BEST: AVG or GREEDY, whichever has the larger dual objective."""
    rows_before = previous.store.rows_computed
    return _better(previous, [f(previous, leaving, entering, lower, upper) for f in (avg, greedy)], rows_before)


def _better(previous: Solution, starts: Sequence[Start], rows_before: int) -> Start:
    start = max(starts, key=lambda start: start.objective(previous.y))
    return start._replace(rows_computed=previous.store.rows_computed - rows_before)


# ------------------------------------------------------------------------------------------------------- the exact path


def inverse_of(previous: Solution) -> exact.Inverse | None:
    """What all paths from this solution begin with; None if no path can begin: too many free examples, or singular."""
    store, members = previous.store, np.flatnonzero(previous.free)
    if len(members) + 2 > store.capacity:
        return None
    store.fill(members)
    K_M = np.empty((len(members), len(members)))
    kernel_among(store.data, _view(store, previous.g), members, K_M)
    jitter = exact.JITTER / max(float((previous.upper - previous.lower).max(initial=0.0)), 1e-300)
    P = exact.bordered_inverse(K_M, jitter)
    if P is None:
        return None
    room = len(members) + ROOM
    return exact.Inverse(P, members, jitter, *_tolerances(previous), np.empty((room, room)))


def path(
    previous: Solution,
    leaving,
    entering,
    lower: np.ndarray,
    upper: np.ndarray,
    inverse: exact.Inverse | None = None,
    max_events: int | None = None,
) -> Start:
    """ATO to its end: the exact path to the next solution, from which no step is left to be done; else BEST.

    Parameters
    ----------
    inverse
        Of the previous solution, by `inverse_of`, if several paths begin there.  Default: computed.
    max_events
        When to give up; None: after 4 r + 50 events, r of the examples being driven.
    """
    rows_before = previous.store.rows_computed
    inverse = inverse_of(previous) if inverse is None else inverse
    events = 0
    if inverse is not None:
        outcome, events, beta, g = _followed(previous, inverse, entering, lower, upper, max_events)
        if outcome == exact.COMPLETE and np.isfinite(g).all():
            return _settled(previous, beta, g, lower, upper, "path", events, rows_before)
    start = best(previous, leaving, entering, lower, upper)
    return start._replace(events=events, rows_computed=previous.store.rows_computed - rows_before)


def _followed(previous, inverse: exact.Inverse, entering, lower, upper, max_events: int | None):
    """The path's outcome, its events, and beta and g at its end."""
    store, beta, g, mu = previous.store, previous.beta.copy(), previous.g.copy(), previous.bias
    target = np.clip(beta, lower, upper)
    entering = np.asarray(entering, np.int64)
    y_T = previous.y[entering]
    V = entering[y_T * (g[entering] - mu) > np.where(y_T > 0.0, inverse.above, inverse.below)]
    driven = np.concatenate([np.flatnonzero(target != beta), V])
    if len(driven) == 0:
        return exact.COMPLETE, 0, beta, g
    place = np.where(beta >= upper, exact.AT_UPPER, np.where(beta <= lower, exact.AT_LOWER, exact.FREE))
    place[lower >= upper] = exact.OUT
    place[driven] = exact.OUT
    place[V] = exact.DRIVEN
    target[V] = np.where(previous.y[V] > 0.0, upper[V], lower[V])
    limit = 4 * len(driven) + 50 if max_events is None else max_events
    m = len(inverse.members)
    P, members = inverse.copy(min(m + limit, len(beta)) + 2)
    if len(driven) >= ROWS_FOR_PRODUCT:
        store.fill(driven)
    outcome, events = exact.follow(
        store.data,
        True,
        beta,
        g,
        lower,
        upper,
        place.astype(np.int8),
        driven,
        target[driven],
        P,
        members,
        m,
        mu,
        inverse.above,
        inverse.below,
        inverse.jitter,
        limit,
    )
    return outcome, events, beta, g


def _tolerances(previous: Solution) -> tuple[float, float]:
    """How far above the bias a gradient is that might rise, and how far below it one that might fall."""
    top, bottom, bias, free = survey(previous.beta, previous.g, previous.lower, previous.upper)
    return (max(0.0, top - bias), max(0.0, bias - bottom)) if free else (0.0, 0.0)


@compiled
def survey(beta, g, lower, upper):
    """The largest gradient that may rise, the smallest that may fall, the bias, and the number of free examples."""
    top, bottom, total, free = -FORBIDDEN, FORBIDDEN, 0.0, 0
    for i in range(g.shape[0]):
        if beta[i] < upper[i]:
            top = max(top, g[i])
        if beta[i] > lower[i]:
            bottom = min(bottom, g[i])
        if lower[i] < beta[i] < upper[i]:
            total += g[i]
            free += 1
    if free > 0:
        return top, bottom, total / free, free
    if top == -FORBIDDEN or bottom == FORBIDDEN:
        return top, bottom, top if top != -FORBIDDEN else bottom if bottom != FORBIDDEN else 0.0, free
    return top, bottom, 0.5 * (top + bottom), free


SEEDS: dict[str, Seed] = {
    "reuse": reuse,
    "sir": sir,
    "mir": mir,
    "ato": path,
    "avg": avg,
    "top": top,
    "greedy": greedy,
    "best": best,
    "path": path,
}


# -------------------------------------------------------------------------------------------------------------- along C


def optimal_for_larger_boxes(previous: Solution) -> bool:
    """Whether the solution is that of every larger C as well: no support vector is at its bound."""
    at_bound = (previous.beta == previous.lower) | (previous.beta == previous.upper)
    return not bool((at_bound & (previous.beta != 0.0)).any())


def direct(previous: Solution, lower: np.ndarray, upper: np.ndarray) -> Start:
    """The same coefficients, cut to the boxes if these have shrunk."""
    rows_before = previous.store.rows_computed
    beta = repair(previous.beta, [_staying(previous, lower, upper)], lower, upper)
    return _moved(previous, beta, "direct", rows_before)


def scaled(previous: Solution, lower: np.ndarray, upper: np.ndarray) -> Start:
    """Coefficients at their bounds go to the new bounds; the free ones make up for it."""
    rows_before, beta = previous.store.rows_computed, previous.beta.copy()
    bounded = (beta != 0.0) & ~previous.free
    beta[bounded] = np.where(beta > 0.0, upper, lower)[bounded]
    beta = repair(beta, [_staying(previous, lower, upper)], lower, upper)
    return _moved(previous, beta, "scaled", rows_before)


def _bounded(previous: Solution, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Support vectors at their bounds that have room now, positive and negative, the most violating first."""
    beta, g = previous.beta, previous.g
    bounded = (beta != 0.0) & ~previous.free
    positive = np.flatnonzero(bounded & (beta > 0.0) & (upper > beta))
    negative = np.flatnonzero(bounded & (beta < 0.0) & (lower < beta))
    return positive[np.argsort(-g[positive], kind="stable")], negative[np.argsort(g[negative], kind="stable")]


def pairwise(previous: Solution, lower: np.ndarray, upper: np.ndarray) -> Start:
    """Single: one exact step for each pair of the most violating bounded examples, down both lists once."""
    rows_before, store = previous.store.rows_computed, previous.store
    start = direct(previous, lower, upper)
    beta, g, diagonal = start.beta, start.g, store.diagonal
    positive, negative = _bounded(previous, lower, upper)
    for u, v in zip(positive, negative, strict=False):
        w = g[u] - g[v]
        if not w > 0.0:
            break
        row = store.rows(np.array([u]))[0]
        q = max(diagonal[u] + diagonal[v] - 2.0 * row[v], 1e-12)
        step = min(w / q, upper[u] - beta[u], beta[v] - lower[v])
        beta[u] += step
        beta[v] -= step
        subtract_rows(store.data, _view(store, g), np.array([u, v]), np.array([step, -step]))
    return _settled(previous, beta, g, lower, upper, "pairwise", 0, rows_before)


def averaged(previous: Solution, lower: np.ndarray, upper: np.ndarray) -> Start:
    """Multiple: one exact step that moves all bounded positive examples alike, and all negative ones."""
    rows_before, store = previous.store.rows_computed, previous.store
    start = direct(previous, lower, upper)
    beta, g = start.beta, start.g
    positive, negative = _bounded(previous, lower, upper)
    if len(positive) and len(negative):
        moving = np.concatenate([positive, negative])
        d = np.repeat([1.0 / len(positive), -1.0 / len(negative)], [len(positive), len(negative)])
        K_d = np.zeros(len(g))
        store.fill(moving)
        subtract_rows(store.data, _view(store, K_d), moving, -d)
        ascent, curvature = float(g[moving] @ d), max(float(K_d[moving] @ d), 1e-300)
        room = np.where(d > 0.0, upper[moving] - beta[moving], beta[moving] - lower[moving]) / np.abs(d)
        step = max(0.0, min(ascent / curvature, float(room.min())))
        beta[moving] += step * d
        g -= step * K_d
    return _settled(previous, beta, g, lower, upper, "averaged", 0, rows_before)


def best_reuse(previous: Solution, lower: np.ndarray, upper: np.ndarray) -> Start:
    """Direct or scaled, whichever has the larger dual objective."""
    rows_before = previous.store.rows_computed
    return _better(previous, [f(previous, lower, upper) for f in (direct, scaled)], rows_before)


C_SEEDS: dict[str, CSeed] = {
    "direct": direct,
    "scaled": scaled,
    "pairwise": pairwise,
    "averaged": averaged,
    "best": best_reuse,
}


# ------------------------------------------------------------------------------------------------------- from the start


def solve_from(
    previous: Solution, start: Start, lower: np.ndarray, upper: np.ndarray, options: SolverOptions = DEFAULTS
) -> Solution:
    """Train from a start.  One that is optimal already costs one look at its gradient."""
    top, bottom, bias, _ = survey(start.beta, start.g, lower, upper)
    if top - bottom > options.tol:
        return smo.train(previous.store, previous.y, lower, upper, start.beta, start.g, options)
    return Solution(
        store=previous.store,
        y=previous.y,
        lower=lower,
        upper=upper,
        beta=start.beta,
        g=start.g,
        bias=bias,
        violation=max(0.0, top - bottom),
        converged=True,
        iterations=0,
        planned=0,
        newton_steps=0,
        rows_computed=0,
    )


# -------------------------------------------------------------------------------------------------------- which of them


SECONDS_PER_PRODUCT = 0.25e-9  # of a path's matrices with vectors; as all of these, measured
SECONDS_PER_STEP, SECONDS_PER_ELEMENT = 0.7e-6, 3e-9  # of a pair step, and per active example
SECONDS_PER_SYSTEM = 8e-12  # of a Newton step, per m^3
ACTIVE = 1.5  # examples for each support vector
SECONDS_PER_COLD, SECONDS_PER_PATH, SECONDS_PER_BEST = 1e-4, 1e-4, 3e-4  # whatever the size
FORCED_STEP, SHARED = 4e-9, 0.4e-9  # of GREEDY and AVG, per leaving and per free support vector and per example
WORTH = 0.8  # of the cost from 0, below which a seed is chosen
WORTHLESS = 4  # folds, up to which a seed saves nothing
FOLDS = (2.0, 5.0, 10.0, 100.0, 1000.0)
SHARES = (0.9, 0.9, 0.75, 0.4, 0.2)  # of the steps, that a seed leaves to be done
EVENTS_OF_FREE, EVENTS_OF_BOUNDED = 1.4, 10.0  # per leaving free one, and per root of the leaving bounded ones


class Choice(NamedTuple):
    """What `choose` picked, and why.

    Attributes
    ----------
    seed
        "cold", "path" or "best".
    cold_seconds, path_seconds, best_seconds
        What a fold is expected to cost from 0, with the path and with BEST, within a factor of two; the full solution,
        if it is yet to be computed, is shared among the folds.
    max_events
        Twice the events that the path is expected to have, to be given to `path`.
    reason
        The same in words.
    """

    seed: str
    cold_seconds: float
    path_seconds: float
    best_seconds: float
    max_events: int
    reason: str


def effective_folds(n: int, folds: Sequence[np.ndarray]) -> float:
    """As many folds as there would be of this size; a seed is worth as much as it would be with these."""
    return n / max(1.0, sum(len(fold) for fold in folds) / max(1, len(folds)))


def events_of(r_free: float, r_bounded: float) -> float:
    """How many events a path is expected to have by which so many free and bounded support vectors leave."""
    return EVENTS_OF_FREE * r_free + EVENTS_OF_BOUNDED * float(np.sqrt(r_bounded))


def choose(known: Solution, folds: Sequence[np.ndarray]) -> Choice:
    """Which seed from the full solution the folds are solved with soonest, if any.

    A path of E events costs 0.25 ns E (2 m^2 + 2 n m), and each fold its share of the inverse, m^3; it has about 1.4
    events for each free support vector that leaves, and ten for the root of the number of bounded ones.  A seeded
    training costs a share s of a cold one; s falls from 0.9 for 5 folds to 0.2 for single examples.  A seed has to be
    expected to save a fifth of the cost, so that what these rules get wrong costs nothing.

    Parameters
    ----------
    known
        The full solution; or that of one of the folds, if the full one is yet to be computed.
    folds
        Numbers of the examples that each fold leaves out.
    """
    n, m, k = len(known.beta), int(np.count_nonzero(known.free)), max(1, len(folds))
    trained = int(np.count_nonzero(known.lower < known.upper))
    support = int(np.count_nonzero(known.beta))
    effective = effective_folds(n, folds)
    r = support / max(1, trained) * n / effective
    r_free = m / max(1, support) * r
    events = events_of(r_free, r - r_free)
    active = min(float(n), ACTIVE * support)
    newton = known.newton_steps * (SECONDS_PER_SYSTEM * m**3 + SECONDS_PER_ELEMENT * (m * m + m * active))
    steps = known.iterations * (SECONDS_PER_STEP + SECONDS_PER_ELEMENT * active) + newton
    share = float(np.interp(np.log(effective), np.log(FOLDS), SHARES))
    full = share * steps / k if trained < n else 0.0
    cold = SECONDS_PER_COLD + steps
    path = full + SECONDS_PER_PATH + SECONDS_PER_PRODUCT * (events * (2.0 * m * m + 2.0 * n * m) + m**3 / k)
    best = full + SECONDS_PER_BEST + n * (FORCED_STEP * r + SHARED * m) + share * steps
    costs = f"seconds a fold: cold {cold:.2g}, path {path:.2g}, best {best:.2g} (n={n}, free={m}, leaving={r:.3g})"
    if effective <= WORTHLESS + 0.5:
        seed, why = "cold", f"with {effective:.0f} folds a seed saves less than the full solution costs"
    elif path < min(WORTH * cold, best) and m + 2 <= known.store.capacity:
        seed, why = "path", "the exact path is the cheapest start"
    elif best < WORTH * cold:
        seed, why = "best", "a seed saves more steps than it costs, and a path costs more"
    else:
        seed, why = "cold", "steps from 0 cost hardly more than a seed"
    return Choice(seed, cold, path, best, int(2 * events) + 50, f"{why}; {costs}")
