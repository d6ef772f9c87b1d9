"""What may be wrong with the numbers of an expansion that was filled from a snapshot.

Thousands of small models are read from snapshots, and numpy would take a microsecond for each check of each array.
"""

import math

import numpy as np

from streamsvm.core.arguments import LARGEST_BOX
from streamsvm.core.blocks import LARGEST_FEATURE, LARGEST_SQUARED_NORM
from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.expansion import COLUMNS, COMPRESSED, FORBIDDEN, SLOTS, STORAGE, WIDTH
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, Kernel, self_product
from streamsvm.core.rounding import SUM_ROUNDING
from streamsvm.core.saving.snapshot import LARGEST_COUNT

LARGEST_MERGED_BOX = 1000 * LARGEST_BOX  # of a member that a thousand of the largest have joined
_FLOAT32 = np.finfo(np.float32)
SQ_ROUNDING, SQ_TINY = 100 * float(_FLOAT32.eps), float(_FLOAT32.tiny)  # of a squared norm, relative and absolute

# Of several faults, the first one of this list is told.
FAULTS = (
    "'alpha' holds numbers that are not finite",
    "'g' holds numbers that are not finite",
    "'lo' holds numbers that are not finite",
    "'hi' holds numbers that are not finite",
    "a label is neither -1 nor 1",
    "a box does not begin at 0",
    "a coefficient is outside its box",
    "a box is too large",
    "a hole has a box",
    "a gradient is too large",
    "an example's age is too large",
    "'up' does not fit the boxes",
    "'down' does not fit the boxes",
    "'losses' holds numbers that are not finite",
    "an unscaled feature is too large",
    "'features' holds numbers that are not finite",
    "a bit is neither 0 nor 1",
    "a feature is not among those that it counts",
    "'starts' does not fit the features",
    "a squared norm is negative or too large",
    "'sq' does not fit the features",
    "'self_k' does not fit the features and the kernel",
    "a kernel value is too large",
)
LOSSES, RAW, FEATURE, BIT, WIDER, START, SQUARED_NORM, SQ, SELF_K, KERNEL_VALUE, SOUND = range(13, len(FAULTS) + 1)


@by_class
@compiled
def fault_of_coefficients(s):
    """What is wrong with the coefficients, boxes and gradients: a place in `FAULTS`, or `SOUND`."""
    first = SOUND
    for k in range(s.losses.shape[0]):
        if not math.isfinite(s.losses[k]):
            first = LOSSES
    for t in range(s.counts[SLOTS]):
        first = min(first, _fault_of_slot(s, t))
    return first


@inner
def _fault_of_slot(s, t):
    """The first of the conditions on a slot that does not hold, in the order of `FAULTS`, which begins with these."""
    alpha, g, lo, hi, y = s.alpha[t], s.g[t], s.lo[t], s.hi[t], s.y[t]
    holds = (
        math.isfinite(alpha),
        math.isfinite(g),
        math.isfinite(lo),
        math.isfinite(hi),
        -1 <= y <= 1,
        lo <= 0.0 <= hi and (lo == 0.0 or hi == 0.0),
        lo <= alpha <= hi,
        hi - lo <= LARGEST_MERGED_BOX,
        y != 0 or lo >= hi,
        abs(g) < FORBIDDEN / 2,
        -LARGEST_COUNT <= s.born[t] <= LARGEST_COUNT,
        s.up[t] == (0.0 if alpha < hi else -FORBIDDEN),
        s.down[t] == (0.0 if alpha > lo else FORBIDDEN),
    )
    for k in range(len(holds)):
        if not holds[k]:
            return k
    return SOUND


@by_class
@compiled
def fault_of_examples(s, kernel):
    """What is wrong with the features, squared norms and kernel values: a place in `FAULTS`, or `SOUND`."""
    n = s.counts[SLOTS]
    for t in range(n):
        for p in range(s.raw.shape[1]):
            if not abs(s.raw[t, p]) < LARGEST_FEATURE:
                return RAW
    sums, nnz = np.zeros(n), np.zeros(n, np.int64)
    fault = _sum_squares(s, sums, nnz)
    if fault != SOUND:
        return fault
    for t in range(n):
        if nnz[t] != s.starts[t + 1] - s.starts[t]:
            return START
    for t in range(n):
        fault = min(fault, _fault_of_norm(s, kernel, t, sums[t]))
    return fault


@inner
def _sum_squares(s, sums, nnz):
    """For each slot, the sum of squares and the number of the features; or what is wrong with a feature."""
    if s.counts[STORAGE] == COMPRESSED:
        for t in range(s.counts[SLOTS]):
            for i in range(s.starts[t], s.starts[t + 1]):
                sums[t] += np.float64(s.sparse_values[i]) ** 2
            nnz[t] = s.starts[t + 1] - s.starts[t]
        return SOUND
    if s.counts[STORAGE] == COLUMNS:
        return _sum_rows(s.columns, s.counts[WIDTH], sums, nnz)
    for d in range(s.bits.shape[0]):
        for t in range(s.counts[SLOTS]):
            if s.bits[d, t] > 1:
                return BIT
    return _sum_rows(s.bits, s.counts[WIDTH], sums, nnz)


@inner
def _sum_rows(matrix, width, sums, nnz):
    first = SOUND
    for d in range(matrix.shape[0]):
        for t in range(sums.shape[0]):
            value = np.float64(matrix[d, t])
            if not math.isfinite(value):
                first = min(first, FEATURE)
            if value != 0.0 and d >= width:
                first = min(first, WIDER)
            sums[t] += value * value
            nnz[t] += value != 0.0
    return first


@inner
def _fault_of_norm(s, kernel, t, total):
    sq = np.float64(s.sq[t])
    if not 0.0 <= sq < LARGEST_SQUARED_NORM:
        return SQUARED_NORM
    if not abs(sq - total) <= SQ_ROUNDING * total + SQ_TINY:
        return SQ
    expected, self_k = self_product(kernel, sq), s.self_k[t]
    if not abs(self_k - expected) <= SUM_ROUNDING * _before_cancelling(kernel, sq):
        return SELF_K
    if not abs(self_k) <= LARGEST_KERNEL_VALUE:
        return KERNEL_VALUE
    return SOUND


@inner
def _before_cancelling(kernel, sq):
    """k(x, x) as it were if no terms of it cancelled each other."""
    return self_product(Kernel(kernel.kind, kernel.gamma, abs(kernel.coef0), kernel.degree), sq)
