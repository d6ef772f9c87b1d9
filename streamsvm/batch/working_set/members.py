"""The members: the examples that are being solved for, and the kernel matrix among them.

All others are fixed meanwhile, at a bound as a rule.  They are in the members' gradients:

    g_s = y_s - sum_t alpha_t k(x_t, x_s)        over all examples t, members or not

Members come and go.  Each has a row and a column of the matrix, so a step reads two rows and computes nothing.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
ids       numbers of the members                                           (m,) int64
alpha, g  coefficients and gradient                                        (m,) float64
lo, hi    box                                                              (m,) float64
up, down  penalty: 0 if alpha may rise (fall), else -/+ FORBIDDEN          (m,) float64
diagonal  k(x_s, x_s)                                                      (m,) float64
K         kernel matrix; its first m rows and columns are in use           (M, M) float32
========= ================================================================ ================

The matrix lies in one piece of memory that is reserved once and taken as it is needed: fresh memory costs more than the
arithmetic on it.
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.batch.kernels.matrix import KernelSource
from streamsvm.batch.kernels.square import square_of, subtract_rows
from streamsvm.batch.problem import GROWTH, SPARE, middle, settled
from streamsvm.batch.steps.conjugate import MAX_MOVED, conjugate_step
from streamsvm.batch.steps.newton import MAX_FREE, Newton
from streamsvm.batch.steps.pairs import BOTTOM, TOP, newton_partner, update
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.expansion import FORBIDDEN, set_penalties
from streamsvm.core.rounding import KERNEL_ROUNDING

AT_ONCE = 1000  # pair steps at least, from one look at the free set to the next: a look costs as much as some hundreds


class Active(NamedTuple):
    """The members for compiled code."""

    alpha: np.ndarray
    g: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    up: np.ndarray
    down: np.ndarray
    diagonal: np.ndarray


@compiled
def take_steps(K, active, tol, max_steps, extremes):
    """Take pair steps by second order until the extremes differ by at most tol, or none helps; return how many."""
    alpha, g, lo, hi = active.alpha, active.g, active.lo, active.hi
    up, down, diagonal = active.up, active.down, active.diagonal
    places, parts, product = np.empty(MAX_MOVED + 2, np.int64), np.empty(MAX_MOVED + 2), np.zeros(g.shape[0])
    count, curvature = 0, 0.0
    i = update(g, up, down, 0.0, g, g, extremes)
    for step in range(max_steps):
        if not extremes[TOP] - extremes[BOTTOM] > tol:
            return step
        j, _ = newton_partner(g, down, diagonal, i, K[i])
        if j < 0:
            return step
        i, count, curvature = conjugate_step(
            alpha, g, lo, hi, up, down, diagonal, i, j, K[i], K[j], extremes, places, parts, product, count, curvature
        )
        if i < 0:
            return step
    return max_steps


@compiled
def _note_bounds(active, extremes):
    """Note which coefficients may rise and fall, and the extremes of the gradient."""
    alpha, g, lo, hi, up, down = active.alpha, active.g, active.lo, active.hi, active.up, active.down
    extremes[TOP], extremes[BOTTOM] = -FORBIDDEN, FORBIDDEN
    for i in range(alpha.shape[0]):
        set_penalties(alpha, lo, hi, up, down, i)
        extremes[TOP] = max(extremes[TOP], g[i] + up[i])
        extremes[BOTTOM] = min(extremes[BOTTOM], g[i] + down[i])


@compiled
def _restride(flat, n_rows, old, new):
    """Move the rows of a square matrix from a distance of `old` values to one of `new`."""
    for k in range(n_rows):
        r = k if new < old else n_rows - 1 - k
        source, target = flat[r * old : r * old + n_rows], flat[r * new : r * new + n_rows]
        for t in range(n_rows):
            c = t if new < old else n_rows - 1 - t
            target[c] = source[c]


@compiled
def _squeeze(K, kept):
    """Keep these rows and columns, whose numbers rise, in place."""
    for a in range(kept.shape[0]):
        row, out = K[kept[a]], K[a]
        for b in range(kept.shape[0]):
            out[b] = row[kept[b]]


class Members:
    """The members of a problem, an active set for `newton.Newton`.

    Parameters
    ----------
    features
        The examples.
    cache_mb
        Megabytes for the matrix.
    """

    def __init__(self, features: KernelSource, cache_mb: float) -> None:
        self.features = features
        largest = math.isqrt(int(cache_mb * 2**20) // 4)
        self.room = min(max(SPARE, largest), features.n)
        self._memory = np.empty(self.room * self.room, np.float32)  # untouched memory is not taken
        self._width = 0
        self._state = np.zeros((len(Active._fields), self.room))
        self._take(np.zeros(0, np.int64))
        self.extremes = np.array([-FORBIDDEN, FORBIDDEN])
        self.steps = 0
        self._newton = Newton(inside=True)

    def __len__(self) -> int:
        return len(self.ids)

    def _take(self, ids: np.ndarray) -> None:
        """Let these be the members."""
        self.ids, self._active = ids, Active(*self._state[:, : len(ids)])

    @property
    def alpha(self) -> np.ndarray:
        return self._active.alpha

    @property
    def g(self) -> np.ndarray:
        return self._active.g

    @property
    def matrix(self) -> np.ndarray:
        return self._memory[: self._width**2].reshape(self._width, self._width)

    @property
    def violation(self) -> float:
        """The largest violation by a pair of members."""
        return float(self.extremes[TOP] - self.extremes[BOTTOM])

    @property
    def middle(self) -> float:
        """The middle of the extremes, or the one that exists; 0 if none does."""
        return float(middle(*self.extremes))

    @property
    def holders(self) -> tuple[int, int]:
        """The places of the members that hold the extremes."""
        active = self._active
        return int(np.argmax(active.g + active.up)), int(np.argmin(active.g + active.down))

    @property
    def newton_steps(self) -> int:
        """The number of linear systems solved so far."""
        return self._newton.steps

    # ---------------------------------------------------------------------------------------------- coming and leaving

    def start(self, alpha: np.ndarray, g: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> None:
        """Give the members another problem, and a start."""
        own = self._active
        own.alpha[:], own.g[:], own.lo[:], own.hi[:] = alpha, g, lo, hi
        _note_bounds(own, self.extremes)

    def add(self, ids: np.ndarray, alpha: np.ndarray, g: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> None:
        """Make members of these examples."""
        first, every = len(self.ids), np.concatenate([self.ids, ids])
        self._widen(len(every))
        self._take(every)
        own, K = Active(*self._state[:, first : len(every)]), self.matrix
        own.alpha[:], own.g[:], own.lo[:], own.hi[:] = alpha, g, lo, hi
        own.diagonal[:] = self.features.diagonal[ids]
        _note_bounds(own, np.empty(2))
        self.features.put_square(every, first, K)
        places = np.arange(first, len(every))
        K[places, places] = own.diagonal

    def _widen(self, m: int) -> None:
        if m <= self._width:
            return
        width = min(max(int(GROWTH * m), 2 * SPARE), self.room)
        _restride(self._memory, len(self.ids), self._width, width)
        self._width = width

    def keep(self, kept: np.ndarray) -> None:
        """Keep the members in these places, in order."""
        _squeeze(self.matrix, kept)
        self._state[:, : len(kept)] = self._state[:, kept]
        self._take(self.ids[kept])

    # -------------------------------------------------------------------------------------------------------- solving

    def solve(self, tol: float, limit: int) -> bool:
        """Take steps until the violation is at most `tol`; False if there are more than `limit` or none helps."""
        while True:
            at_once = max(0, min(max(AT_ONCE, self._newton.wait(self)), limit - self.steps))
            done = take_steps(self.matrix, self._active, tol, at_once, self.extremes)
            self.steps += done
            if not self.violation > tol:
                return True
            if done < at_once or self.steps >= limit:
                return False
            self._newton.after(self, done)

    def settle(self) -> None:
        """Put coefficients that rounding has left beside a bound onto it."""
        own = self._active
        own.alpha[:] = settled(own.alpha, own.lo, own.hi)
        _note_bounds(own, self.extremes)

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self._active[:4]

    @property
    def max_free(self) -> int:
        return MAX_FREE

    def kernel_among(self, places: np.ndarray) -> np.ndarray:
        K = square_of(self.matrix, places)
        diagonal = K.reshape(-1)[:: len(places) + 1]
        diagonal += KERNEL_ROUNDING * (1.0 + np.abs(diagonal))
        return K

    def move(self, places: np.ndarray, alpha: np.ndarray) -> None:
        own = self._active
        subtract_rows(self.matrix, places, alpha - own.alpha[places], own.g)
        own.alpha[places] = alpha
        _note_bounds(own, self.extremes)
