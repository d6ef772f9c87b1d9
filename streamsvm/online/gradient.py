"""One pass over the gradient: update it, and find what the next step needs.

    g -= c_i K_i + c_j K_j,     i = argmax g over those that may rise,     j = argmin g over those that may fall

The pass goes block by block.  It keeps only the extremes of each block, so that the compiler can vectorise it.  Their
slots are looked up afterwards.  Learners that stop by the primal-dual gap sum over a block while it is in the cache:

    gap = sum_s max((lo_s - alpha_s) g_s, (hi_s - alpha_s) g_s),     h_s = max(lo_s g_s, hi_s g_s)

======== ============================================================ =============
symbol   name                                                         shape, dtype
======== ============================================================ =============
g        gradient                                                     (n,) float64
up, down penalties, see `expansion`                                   (n,) float64
K_i, K_j kernel rows of the members whose coefficients have changed   (n,) float32
c_i, c_j how much they have changed                                   float64
h        loss of a member, as the primal problem counts it            (n,) float64
======== ============================================================ =============
"""

import numpy as np

from streamsvm.core.compiling._jit import inner, inner_sum
from streamsvm.core.compiling._simd import fmax, fmin
from streamsvm.core.costs import FIRST_LEVEL
from streamsvm.core.expansion import FORBIDDEN, G_DOWN, G_UP, SLOT_DOWN, SLOT_UP

SLOT_BLOCK = FIRST_LEVEL // 64  # slots whose g, up, down, K_i and K_j take half of the cache


@inner
def update_block(g, up, down, c_i, c_j, K_i, K_j):
    """Update a block of the gradient; return the largest g that may rise and the smallest that may fall."""
    largest, smallest = -FORBIDDEN, FORBIDDEN
    for t in range(g.shape[0]):
        v = g[t] - (c_i * np.float64(K_i[t]) + c_j * np.float64(K_j[t]))
        g[t] = v
        largest = fmax(largest, v + up[t])
        smallest = fmin(smallest, v + down[t])
    return largest, smallest


@inner_sum
def sum_losses(g, alpha, lo, hi):
    """Sums over a block: gap, whose terms are never negative, h, h squared, and the boxes hi - lo."""
    gap, loss, squares, boxes = 0.0, 0.0, 0.0, 0.0
    for t in range(g.shape[0]):
        h = fmax(lo[t] * g[t], hi[t] * g[t])
        gap += fmax((lo[t] - alpha[t]) * g[t], (hi[t] - alpha[t]) * g[t])
        loss += h
        squares += h * h
        boxes += hi[t] - lo[t]
    return gap, loss, squares, boxes


@inner
def first_slot(extreme, g, penalty, block, tie):
    """The first slot in the block where g + penalty is the extreme, up to `tie`."""
    for t in range(block, min(block + SLOT_BLOCK, g.shape[0])):
        if abs(g[t] + penalty[t] - extreme) <= tie:
            return t
    return -1


@inner
def note_extremes(counts, extremes, g, up, down, top, top_block, bottom, bottom_block, tie):
    """Look up the slots of the extremes that a pass has found, and note both."""
    i = first_slot(top, g, up, top_block, tie) if top > -FORBIDDEN / 2 else -1
    j = first_slot(bottom, g, down, bottom_block, tie) if bottom < FORBIDDEN / 2 else -1
    counts[SLOT_UP], extremes[G_UP] = i, g[i] if i >= 0 else -FORBIDDEN
    counts[SLOT_DOWN], extremes[G_DOWN] = j, g[j] if j >= 0 else FORBIDDEN
