"""GREEDY, our own seed: a forced pair step for each leaving coefficient.

The leaving example with the largest coefficient gives it to the example with which the objective changes best per unit
moved.  This may be a leaving example of the other sign.  The positive coefficients go first, then the negative ones.
"""

import numpy as np

from streamsvm.batch.kernels.cache import NO_ROW, diagonal_of, row_at, rows_of
from streamsvm.batch.seeding.start import Start, leaving, settled_start
from streamsvm.batch.solution import Solution
from streamsvm.batch.steps.pairs import BLOCK
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.compiling._simd import fmax, fmin
from streamsvm.core.expansion import FORBIDDEN


@inner
def _gain(sign, mass, g_r, K_rr, g_i, alpha_i, lo_i, hi_i, K_ii, K_ri):
    """The gain of the objective per unit that the leaving r gives to i; -FORBIDDEN if i has no room."""
    room = hi_i - alpha_i if sign > 0.0 else alpha_i - lo_i
    gained = sign * (g_i - g_r) - 0.5 * fmin(mass, room) * (K_rr + K_ii - 2.0 * K_ri)
    return gained if room > 0.0 else -FORBIDDEN


@inner
def _largest_gain(sign, mass, g_r, K_rr, g, alpha, lo, hi, diagonal, K_r):
    """The largest gain of a block."""
    largest = -FORBIDDEN
    for i in range(g.shape[0]):
        gained = _gain(sign, mass, g_r, K_rr, g[i], alpha[i], lo[i], hi[i], diagonal[i], K_r[i])
        largest = fmax(largest, gained)
    return largest


@inner
def _receiver(sign, mass, r, g, alpha, lo, hi, diagonal, K_r):
    """The example to which the leaving r gives with the largest gain per unit; -1 if none has room."""
    g_r, K_rr, best, best_block = g[r], diagonal[r], -FORBIDDEN, 0
    for b in range(0, g.shape[0], BLOCK):
        e = min(b + BLOCK, g.shape[0])
        largest = _largest_gain(sign, mass, g_r, K_rr, g[b:e], alpha[b:e], lo[b:e], hi[b:e], diagonal[b:e], K_r[b:e])
        if largest > best:
            best, best_block = largest, b
    if best > -FORBIDDEN:
        for i in range(best_block, g.shape[0]):
            if _gain(sign, mass, g_r, K_rr, g[i], alpha[i], lo[i], hi[i], diagonal[i], K_r[i]) == best:
                return i
    return -1


@inner
def _largest(sign, alpha, R):
    """The example with the largest leaving coefficient of this sign; -1 if all are empty."""
    r, largest = -1, 0.0
    for i in R:
        if sign * alpha[i] > largest:
            r, largest = i, sign * alpha[i]
    return r


@compiled
def forced_steps(store, alpha, g, lo, hi, R):
    """Empty the leaving coefficients by pair steps, each with the best gain per unit moved.

    The leaving boxes must be [0, 0].  Hence a leaving coefficient has room for what brings it nearer to 0.

    Two phases, of at most n steps each for n coefficients: the positive leaving coefficients fall, then the negative
    ones rise.  A step of the first phase empties its giver or fills its receiver.  All receivers of a phase move the
    same way, so one that is full stays full, and the phase ends.  If sum alpha = 0 and every box holds 0, there is room
    for everything: the positive ones give P = N - sum_S alpha, where N is the size of the negative ones and S are those
    that stay, and the room is N + sum_S (hi - alpha) >= P.  The same holds for the second phase.  So nothing but
    rounding is left.
    """
    diagonal, rows = diagonal_of(store)[: g.shape[0]], rows_of(store)
    for sign in (1.0, -1.0):
        while True:
            r = _largest(sign, alpha, R)
            if r < 0:
                break
            mass, at_r = abs(alpha[r]), row_at(store, r, NO_ROW)
            K_r = rows[at_r]
            j = _receiver(sign, mass, r, g, alpha, lo, hi, diagonal, K_r)
            if j < 0:
                break
            K_j = rows[row_at(store, j, at_r)]
            room = hi[j] - alpha[j] if sign > 0.0 else alpha[j] - lo[j]
            step = min(mass, room)
            alpha[j] = (hi[j] if sign > 0.0 else lo[j]) if step >= room else alpha[j] + sign * step
            alpha[r] = 0.0 if step >= mass else alpha[r] - sign * step
            for i in range(g.shape[0]):
                g[i] -= sign * step * (K_j[i] - K_r[i])


def greedy(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """GREEDY: the leaving coefficients go where the objective loses least, in forced pair steps."""
    store = previous.store
    alpha, g, R = previous.dual_coef.copy(), previous.g.copy(), leaving(previous, lo, hi)
    store.fill(R)
    if len(R):
        forced_steps(store.data, alpha, g, lo, hi, R)
    return settled_start(previous, alpha, g, lo, hi, "greedy", 0)
