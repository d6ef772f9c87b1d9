"""The problem of a support vector machine, and its conditions of optimality.

    maximise  W(alpha) = sum_i y_i alpha_i - 1/2 sum_ij alpha_i alpha_j k(x_i, x_j)
    subject to  sum_i alpha_i = 0,   lo_i <= alpha_i <= hi_i

With g = y - K alpha, a coefficient *may rise* if alpha_i < hi_i, and *may fall* if alpha_i > lo_i.  The *extremes* are
the largest g that may rise, `top`, and the smallest that may fall, `bottom`.  A pair violates the conditions by at most
top - bottom, and alpha is a solution up to tol if that is at most tol.

Single precision has a limit.  A kernel value is rounded by at most 2^-24 of it, and so a gradient by about

    rounding = 2^-24 max_i k(x_i, x_i) sqrt(sum_i alpha_i^2)

Where this is more than half of the tolerance, `too_coarse` tells; such problems are for `smo`, in double precision.
"""

import math
from typing import Any

import numpy as np

from streamsvm.batch.solution import Solution
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.expansion import FORBIDDEN
from streamsvm.core.rounding import DUST, PRECISION

SPARE = 100  # examples beside those that are counted on: for more that become members, or free
GROWTH = 1.5  # times as many as there are have room, or come next: to grow more often would cost more


def penalties(alpha: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`up` and `down` of these coefficients."""
    return np.where(alpha < hi, 0.0, -FORBIDDEN), np.where(alpha > lo, 0.0, FORBIDDEN)


@compiled
def settle(alpha, lo, hi, largest):
    """Put coefficients onto the bounds that they are very near to."""
    for i in range(alpha.shape[0]):
        largest = max(largest, abs(alpha[i]))
    for i in range(alpha.shape[0]):
        near = DUST * min(hi[i] - lo[i], largest)
        if hi[i] - alpha[i] <= near:
            alpha[i] = hi[i]
        if alpha[i] - lo[i] <= near:
            alpha[i] = lo[i]


def settled(alpha: np.ndarray, lo: np.ndarray, hi: np.ndarray, largest: float = 0.0) -> np.ndarray:
    """Put the coefficients that rounding has left beside a bound onto it.

    Otherwise such a coefficient could be the only free one, and decide on the bias.  Rounding scales with the largest
    coefficient so far, since a box may be far larger than all coefficients; `largest` is one that `alpha` comes from.
    """
    alpha = alpha.copy()
    settle(alpha, lo, hi, float(largest))
    return alpha


@compiled
def middle(top, bottom):
    """The middle of the extremes, or the one that exists; 0 if none does."""
    if not abs(top) < 0.5 * FORBIDDEN:
        top = bottom
    if not abs(bottom) < 0.5 * FORBIDDEN:
        bottom = top
    return 0.5 * (top + bottom) if abs(top) < 0.5 * FORBIDDEN else 0.0


@compiled
def survey(alpha, g, lo, hi):
    """The extremes of the gradient, the bias, and the number of free examples.

    The bias is the mean gradient of the free examples; without any, the middle of the extremes.
    """
    top, bottom, total, free = -FORBIDDEN, FORBIDDEN, 0.0, 0
    for i in range(g.shape[0]):
        if alpha[i] < hi[i]:
            top = max(top, g[i])
        if alpha[i] > lo[i]:
            bottom = min(bottom, g[i])
        if lo[i] < alpha[i] < hi[i]:
            total += g[i]
            free += 1
    return top, bottom, total / free if free > 0 else middle(top, bottom), free


@compiled
def _put_violations(alpha, g, lo, hi, top, bottom, out):
    for i in range(g.shape[0]):
        rises = g[i] - bottom if alpha[i] < hi[i] else -FORBIDDEN
        falls = top - g[i] if alpha[i] > lo[i] else -FORBIDDEN
        out[i] = max(rises, falls)


def solution_of(store: Any, y: Any, lo: Any, hi: Any, alpha: Any, g: Any, status: str, *costs: int) -> Solution:
    """The solution with these coefficients, gradients and costs, see `solution.COSTS`."""
    top, bottom, bias, _ = survey(alpha, g, lo, hi)
    return Solution(store, y, lo, hi, alpha, g, bias, max(0.0, top - bottom), status, *costs)


def violations(
    alpha: np.ndarray, g: np.ndarray, lo: np.ndarray, hi: np.ndarray, top: float, bottom: float
) -> np.ndarray:
    """How far each example violates the conditions with those that hold the extremes; below 0, how far it does not.

    With a bias in the place of both extremes: how far its gradient is beyond the bias.
    """
    out = np.empty(len(g))
    _put_violations(alpha, g, lo, hi, top, bottom, out)
    return out


def members_of(alpha: np.ndarray, g: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Numbers of the examples that a solution rests on, rising: with a coefficient, or holding an extreme of g."""
    holders = []
    if (rising := np.flatnonzero(alpha < hi)).size:
        holders.append(rising[np.argmax(g[rising])])
    if (falling := np.flatnonzero(alpha > lo)).size:
        holders.append(falling[np.argmin(g[falling])])
    return np.union1d(np.flatnonzero(alpha), np.array(holders, np.int64))


def too_coarse(alpha: np.ndarray, diagonal: np.ndarray, tol: float) -> bool:
    """Whether rounding to single precision matters for coefficients of this size."""
    rounding = PRECISION * float(diagonal.max()) * math.sqrt(alpha @ alpha)
    return rounding > 0.5 * tol  # at half of it, a pair violates by at most twice the tolerance
