"""Decision values of examples beside a model, kept up to date while its coefficients change.

After a removal, few coefficients have changed, mostly those of free members.  The decision values of other examples
follow at the cost of one kernel row for each of these, over the examples beside:

    f(x) = sum_s alpha_s k(x_s, x),     d_f = sum_C d_alpha_C k(x_C, x)

Rows of free members are kept, since these change again and again.  If more rows are to be computed than the model has
support vectors, all values are computed anew.

========== ============================================================ ================
symbol     name                                                         shape, dtype
========== ============================================================ ================
f          decision values of the examples beside, without the bias     (n,) float64
C          members whose coefficients have changed                      (c,) int64
d_alpha    their changes                                                (c,) float64
rows       kept kernel rows k(x_s, .); the first one is for those that  (R, n) float32
           are not kept
places     the row of each member of C                                  (c,) int64
========== ============================================================ ================

Source: none.  The kernel values have the bits of `core.decision`.  But a sum of changes has another order than a sum
over the members, so `f` is right up to `doubt` only.  Values that are in doubt are computed by `core.decision` where
the bits matter.
"""

from collections.abc import Callable

import numpy as np

from streamsvm.batch.kernels.cache import add_four
from streamsvm.batch.path.factor import add_multiple
from streamsvm.core import storage
from streamsvm.core.blocks import Queries
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.expansion import CACHE_BYTES, EVALUATIONS, MIN_CACHED_ROWS, SLOTS, Expansion
from streamsvm.core.kernels import Kernel, largest_self_product
from streamsvm.core.rounding import SUM_ROUNDING
from streamsvm.core.rows import gather, kernel_row

MAX_ADDITIONS = int(SUM_ROUNDING / np.finfo(float).eps) // 4  # for which the rounding of a sum stays below that

Decide = Callable[[Expansion, Kernel, Queries, float], np.ndarray]  # as `Decision.of_queries`
Slots = np.ndarray | slice


@compiled
def add_rows(beside, kernel, s, slots, change, places, is_known, rows, f):
    """f += sum_c change_c k(x_c, .) for these slots of `s`; computes the rows that are not known yet.

    Rows that are kept are added four at a time, which reads and writes f a quarter as often.
    """
    n, kept, count = f.shape[0], np.empty(slots.shape[0], np.int64), 0
    for c in range(slots.shape[0]):
        i, row = slots[c], rows[places[c]]
        if not is_known[c]:
            nnz = gather(s, i)
            kernel_row(beside, kernel, s.member_indices[:nnz], s.member_values[:nnz], s.sq[i], 0, n, row)
        if places[c] == 0:
            add_multiple(f, change[c], row)
        else:
            kept[count] = c
            count += 1
    t = 0
    while t + 4 <= count:
        a, b, c, d = kept[t], kept[t + 1], kept[t + 2], kept[t + 3]
        own = rows[places[a]], rows[places[b]], rows[places[c]], rows[places[d]]
        add_four(f, change[a], change[b], change[c], change[d], own[0], own[1], own[2], own[3])
        t += 4
    while t < count:
        add_multiple(f, change[kept[t]], rows[places[kept[t]]])
        t += 1


class Beside:
    """Examples beside a model, and their decision values.

    Parameters
    ----------
    q
        The examples as the model's kernel sees them, at least one.
    n_features
        The number of features of the model.
    kernel
        The model's kernel.
    decide
        Computes decision values.

    Attributes
    ----------
    f : ndarray of shape (n,)
        Decision values without the bias, by the expansion that was followed last.
    """

    def __init__(self, q: Queries, n_features: int, kernel: Kernel, decide: Decide) -> None:
        n = len(q.sq)
        s = storage.empty(0, n, max(1, n_features))
        s.counts[SLOTS] = n
        self._s, self._q, self._kernel, self._decide = storage.with_features(s, q), q, kernel, decide
        self._rows, self._n_rows = np.empty((1, n), np.float32), 1
        self._serial, self._alpha, self._places = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)  # of slots
        self._n_additions, self._mass = MAX_ADDITIONS, 0.0
        self._largest = largest_self_product(kernel, q.sq)
        self.f = np.zeros(n)

    @property
    def doubt(self) -> float:
        """How far the values may be from sums over the members."""
        return SUM_ROUNDING * self._mass

    def follow(self, s: Expansion, before: Expansion | None = None) -> None:
        """Bring the values up to date with an expansion.

        Parameters
        ----------
        s
            The expansion.
        before
            The one that was followed last, as it was then: it has the features of members that have left since.
        """
        n = int(s.counts[SLOTS])
        serial, alpha, places = s.serial[:n].copy(), s.alpha[:n].copy(), np.zeros(n, np.int64)
        old, new = self._common_slots(serial)
        if len(alpha) == len(self._alpha) and isinstance(new, slice) and np.array_equal(alpha, self._alpha):
            return
        change, left = alpha.copy(), self._alpha.copy()
        change[new] -= self._alpha[old]
        places[new] = self._places[old]
        left[old] = 0.0
        gone, moved, n_support = np.flatnonzero(left), np.flatnonzero(change), int(np.count_nonzero(alpha))
        self._n_additions += len(gone) + len(moved)
        largest = max(self._largest, largest_self_product(self._kernel, s.sq[:n]))
        mass = float(np.abs(alpha).sum()) * largest
        self._mass = max(self._mass, mass)
        is_lost = len(gone) > 0 and before is None
        n_rows = np.count_nonzero(places[moved] == 0) + np.count_nonzero(self._places[gone] == 0)
        if is_lost or n_rows > n_support + len(gone) or self._n_additions > MAX_ADDITIONS:
            self.f = self._decide(s, self._kernel, self._q, 0.0)
            self._n_additions, self._mass = 0, mass
        else:
            if before is not None and len(gone):
                self._add(before, gone, -left[gone], self._places[gone], self._places[gone] > 0)
            is_known = self._keep_rows(s, moved, places)
            self._add(s, moved, change[moved], places[moved], is_known)
            s.counts[EVALUATIONS] += self._s.counts[EVALUATIONS]
            self._s.counts[EVALUATIONS] = 0
        self._serial, self._alpha, self._places = serial, alpha, places

    def _common_slots(self, serial: np.ndarray) -> tuple[Slots, Slots]:
        """The slots of the members that were there before: then, and now."""
        n = len(self._serial)
        if np.array_equal(serial[:n], self._serial):
            return slice(n), slice(n)
        _, old, new = np.intersect1d(self._serial, serial, assume_unique=True, return_indices=True)
        return old, new

    def _keep_rows(self, s: Expansion, moved: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Find places for the rows of the members that have moved and are free; which rows are known, (m,) bool."""
        free = (s.lo[: len(places)] < s.alpha[: len(places)]) & (s.alpha[: len(places)] < s.hi[: len(places)])
        n, new = self._rows.shape[1], moved[free[moved] & (places[moved] == 0)]
        most = 1 + min(2 * int(np.count_nonzero(free)) + MIN_CACHED_ROWS, int(s.counts[CACHE_BYTES]) // (4 * n))
        if self._n_rows + len(new) > most:
            places[:], self._n_rows = 0, 1
            new = moved[free[moved]][: most - 1]
        is_known = places[moved] > 0
        places[new] = self._n_rows + np.arange(len(new))
        used, self._n_rows = self._n_rows, self._n_rows + len(new)
        if self._n_rows > len(self._rows):
            rows = np.empty((min(2 * self._n_rows, most), n), np.float32)
            rows[:used] = self._rows[:used]
            self._rows = rows
        return np.asarray(is_known)

    def _add(
        self, s: Expansion, slots: np.ndarray, change: np.ndarray, places: np.ndarray, is_known: np.ndarray
    ) -> None:
        add_rows(self._s, self._kernel, s, slots, change, places, is_known, self._rows, self.f)
