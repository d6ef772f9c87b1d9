"""Newton steps on the free set: they cut the long tail of pair steps when C is large.

With the bounded coefficients fixed, the free ones solve a linear system.  The step towards its solution is

    K_F z_1 = g_F,   K_F z_2 = 1,   d = z_1 - (1'z_1 / 1'z_2) z_2        (so that sum d = 0; without a bias, d = z_1)
    t = min(1, g_F'd / d'K_F d),   alpha_F += t d

If the solution is outside the box, the step goes to the first bound that it meets.  That coefficient is fixed, and the
system of the others solved again, at most MAX_TRIES times.

With `inside`, the coefficients that are farthest outside are put onto their bounds, and the system of the others is
solved again, until all are inside.  The box is convex, so the whole way to that point is inside it.  A wrong bound may
have been chosen.  The step is then short (t < SHORT), and goes to the first bounds instead, as above.

No step lowers the dual objective, so pair steps still converge.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
F         places of the free active examples, lo < alpha < hi         (m,) int64
K_F       kernel among them                                                (m, m) float64
g_F       their gradient                                                   (m,) float64
d         direction                                                        (m,) float64
patience  seconds of pair steps between two tries, in terms of a try's     float
========= ================================================================ ================

The step is our own.  A try is due when the pair steps since the last one have cost `patience` times what a try costs.
The patience doubles after a try that was cut short by a bound, and halves after one that was not.
"""

from typing import Protocol

import numpy as np

from streamsvm.batch.costs import SECONDS_PER_ELEMENT, newton_seconds, system_seconds
from streamsvm.batch.kernels.square import square_of
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.rounding import SINGULAR
from streamsvm.core.threads import one_blas_thread

MAX_FREE = 1500  # a larger system costs more than the steps it saves
MAX_TRIES, MAX_ROUNDS = 5, 12  # linear systems: with a step to the first bound after each, and for one step
OUTSIDE = 0.65  # of the largest share of a step that is outside the box; from there on, coefficients get their bounds
SHORT = 0.5  # of a step; a shorter one helps little
MIN_WAIT = 20  # pair steps between two tries, which cost as much as the calls of one
MIN_PATIENCE, MAX_PATIENCE = 0.25, 64.0  # so that tries neither crowd nor end


class ActiveSet(Protocol):
    """The active examples of a problem, by their places in its arrays."""

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """alpha, g, lo and hi."""

    @property
    def max_free(self) -> int:
        """The largest number of free examples for a Newton step."""

    def kernel_among(self, places: np.ndarray) -> np.ndarray:
        """The kernel among the examples in these places; positive definite up to rounding in float64."""

    def move(self, places: np.ndarray, alpha: np.ndarray) -> None:
        """Give the examples in these places other coefficients, and update the gradient of all."""


def direction(K_F: np.ndarray, g_F: np.ndarray, fixed_sum: bool = True, others: float = 0.0) -> np.ndarray | None:
    """d for the free set; None if its kernel matrix with the jitter is not positive definite.

    `others` is the sum of the other coefficients' changes.
    """
    from scipy.linalg import lapack  # loads as long as numpy; only some learners need it

    m = len(g_F)
    A, sides = K_F.copy(), np.ones((2, m))
    A.reshape(-1)[:: m + 1] += SINGULAR * (1.0 + np.abs(K_F.diagonal()))
    sides[0] = g_F
    # A.T and sides.T are as LAPACK wants them: nothing is copied.
    _, z, failed = lapack.dposv(A.T, sides.T, lower=True, overwrite_a=True, overwrite_b=True)
    if failed:
        return None
    d = z[:, 0] - (z[:, 0].sum() + others) / z[:, 1].sum() * z[:, 1] if fixed_sum else z[:, 0]
    return d if np.isfinite(d).all() else None


def inside_step(alpha, g_F, K_F, lo, hi, fixed_sum=True) -> tuple[int, float, bool]:
    """As `free_step`, with the whole way to a solution inside the box where that helps."""
    tries, cost, d, inside = _way_inside(alpha, g_F, K_F, lo, hi, fixed_sum)
    if d is not None:
        ascent, curvature = float(g_F @ d), float(d @ K_F @ d)
        t = min(1.0, ascent / curvature) if curvature > 0.0 else 0.0
        if t > SHORT:
            new = alpha + t * d
            if t == 1.0:
                new[~inside] = np.where(d > 0.0, hi, lo)[~inside]  # exactly, not up to rounding
            np.clip(new, lo, hi, out=new)
            g_F -= K_F @ (new - alpha)
            alpha[:] = new
            return tries, cost, t == 1.0
    more, further, full = free_step(alpha, g_F, K_F, lo, hi, fixed_sum)
    return tries + more, cost + further, full


def _way_inside(alpha, g_F, K_F, lo, hi, fixed_sum) -> tuple[int, float, np.ndarray | None, np.ndarray]:
    """The way to a solution inside the box, and which coefficients that leaves free; no way if none was found."""
    d, inside, cost = np.zeros(len(alpha)), np.ones(len(alpha), bool), 0.0
    for tries in range(1, MAX_ROUNDS + 1):
        F, B = np.flatnonzero(inside), np.flatnonzero(~inside)
        cost += system_seconds(len(F))
        K, g = (K_F, g_F) if len(B) == 0 else (square_of(K_F, F), (g_F - K_F @ np.where(inside, 0.0, d))[F])
        part = direction(K, g, fixed_sum, float(d[B].sum()))
        if part is None:
            break
        d[F] = part
        new = alpha + d
        outside = np.where(inside, np.maximum(lo - new, new - hi) / np.maximum(np.abs(d), 1e-300), 0.0)
        largest = outside.max()
        if not largest > 0.0:
            if fixed_sum:  # exactly, however ill-conditioned the system
                room = np.where(inside, np.minimum(hi - new, new - lo), -np.inf)
                d[np.argmax(room)] -= d.sum()
            return tries, cost, d, inside
        met = outside >= OUTSIDE * largest
        d[met] = (np.where(d > 0.0, hi, lo) - alpha)[met]
        inside &= ~met
        if np.count_nonzero(inside) < 2:
            break
    return tries, cost, None, inside


def free_step(alpha, g_F, K_F, lo, hi, fixed_sum=True) -> tuple[int, float, bool]:
    """Change the free coefficients and gradient in place; the number of systems, their cost, and if it was full."""
    inside, cost = np.arange(len(alpha)), 0.0
    for tries in range(1, MAX_TRIES + 1):
        cost += system_seconds(len(inside))
        K = K_F if len(inside) == len(alpha) else square_of(K_F, inside)
        d = direction(K, g_F[inside], fixed_sum)
        if d is None:
            return tries, cost, False
        ascent, curvature = float(g_F[inside] @ d), float(d @ K @ d)
        if not (ascent > 0.0 and curvature > 0.0):
            return tries, cost, False
        old = alpha[inside]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            room = np.where(d > 0.0, hi[inside] - old, old - lo[inside]) / np.abs(d)
        room[d == 0.0] = np.inf
        t = min(1.0, ascent / curvature, float(room.min()))
        new, met = old + t * d, room <= t
        new[met] = np.where(d > 0.0, hi[inside], lo[inside])[met]  # exactly, not up to rounding
        if fixed_sum:  # exactly, however ill-conditioned the system
            widest = int(np.argmax(np.minimum(hi[inside] - new, new - lo[inside])))
            new[widest] -= (new - old).sum()
        np.clip(new, lo[inside], hi[inside], out=new)
        alpha[inside] = new
        g_F -= K_F[:, inside] @ (new - old)
        if not met.any():
            return tries, cost, True
        inside = inside[(lo[inside] < new) & (new < hi[inside])]
        if len(inside) < 2:
            break
    return tries, cost, False


class Newton:
    """Newton steps, taken when they are due.

    Parameters
    ----------
    fixed_sum
        Whether the sum of the coefficients must not change, as in a problem with a bias.
    inside
        Whether to go the whole way inside the box.  On ten folds by `smo`, whose steps are planned, that saved nothing.
    """

    def __init__(self, fixed_sum: bool = True, inside: bool = False) -> None:
        self._fixed_sum, self._inside = fixed_sum, inside
        self._work, self._patience = 0.0, 1.0
        self.steps = 0

    def wait(self, active: ActiveSet) -> int:
        """The number of pair steps until the next try; very large if the free set is too large or too small."""
        alpha, _, lo, hi = active.state
        m, n = _count_free(alpha, lo, hi), len(alpha)
        if not 2 <= m <= active.max_free:
            return 2**31
        return max(MIN_WAIT, int((self._patience * newton_seconds(m, n) - self._work) / (SECONDS_PER_ELEMENT * n)))

    def after(self, active: ActiveSet, steps: int) -> None:
        """Count the pair steps, and take a Newton step if it is due."""
        alpha, g, lo, hi = active.state
        F, n = _free(active), len(alpha)
        self._work += SECONDS_PER_ELEMENT * n * steps
        if not 2 <= len(F) <= active.max_free:
            return
        if steps < MIN_WAIT or self._work < 0.999 * self._patience * newton_seconds(len(F), n):
            return
        K_F, alpha_F = active.kernel_among(F), alpha[F]
        step = inside_step if self._inside else free_step
        with one_blas_thread():
            tries, cost, full = step(alpha_F, g[F], K_F, lo[F], hi[F], self._fixed_sum)
        active.move(F, alpha_F)
        self.steps += tries
        self._work = system_seconds(len(F)) - cost  # the wait covered the first system, not the others
        self._patience = min(max(self._patience * (0.5 if full else 2.0), MIN_PATIENCE), MAX_PATIENCE)


@compiled
def _count_free(alpha, lo, hi):
    """The number of coefficients inside their boxes."""
    count = 0
    for i in range(alpha.shape[0]):
        count += lo[i] < alpha[i] < hi[i]
    return count


def _free(active: ActiveSet) -> np.ndarray:
    alpha, _, lo, hi = active.state
    return np.flatnonzero((lo < alpha) & (alpha < hi))
