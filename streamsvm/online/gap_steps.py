"""One step of the gap family: move one member or two to where the dual is largest, and pass over the gradients.

`online.gap` has the symbols and the sources.
"""

import numpy as np

from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner, shared
from streamsvm.core.compiling._simd import fmax
from streamsvm.core.expansion import BOXES, FORBIDDEN, GAP, LOSS, NEGATIVE, POSITIVE, SLOTS, SQUARED_LOSS, set_penalties
from streamsvm.core.rounding import DUST, KERNEL_ROUNDING
from streamsvm.core.rows import member_row
from streamsvm.online.gradient import SLOT_BLOCK, note_extremes, sum_losses, update_block


@shared
def scan(s, c_i, c_j, K_i, K_j):
    """g -= c_i K_i + c_j K_j; note the extremes of g, the gap and the sums of the losses."""
    n = s.counts[SLOTS]
    g, up, down, alpha, lo, hi = s.g[:n], s.up[:n], s.down[:n], s.alpha[:n], s.lo[:n], s.hi[:n]
    top, bottom, top_block, bottom_block = -FORBIDDEN, FORBIDDEN, 0, 0
    gap, loss, squares, boxes = 0.0, 0.0, 0.0, 0.0
    for b in range(0, n, SLOT_BLOCK):
        e = min(b + SLOT_BLOCK, n)
        largest, smallest = update_block(g[b:e], up[b:e], down[b:e], c_i, c_j, K_i[b:e], K_j[b:e])
        if largest > top:
            top, top_block = largest, b
        if smallest < bottom:
            bottom, bottom_block = smallest, b
        of_block = sum_losses(g[b:e], alpha[b:e], lo[b:e], hi[b:e])
        gap, loss, squares, boxes = gap + of_block[0], loss + of_block[1], squares + of_block[2], boxes + of_block[3]
    note_extremes(s.counts, s.extremes, g, up, down, top, top_block, bottom, bottom_block, 0.0)
    s.losses[GAP], s.losses[LOSS], s.losses[SQUARED_LOSS], s.losses[BOXES] = gap, loss, squares, boxes


@by_class
@compiled
def rescan(s):
    """Note extremes, gap and losses anew, after members have left or coefficients were set from outside."""
    zeros = s.scratch[: s.counts[SLOTS]]
    zeros[:] = np.float32(0.0)  # what a query left there may be infinite
    scan(s, 0.0, 0.0, zeros, zeros)


@inner
def best_move(g, K, lowest, highest):
    """The d in [lowest, highest] with the largest g d - K d^2 / 2; 0 lies between the ends."""
    if g > 0.0:
        return min(highest, g / K) if K > DUST else highest
    if g < 0.0:
        return max(lowest, g / K) if K > DUST else lowest
    return 0.0


@inner
def gain(d_i, d_j, g_i, g_j, K_ii, K_jj, K_ij):
    """How much the dual grows."""
    return g_i * d_i + g_j * d_j - 0.5 * (K_ii * d_i * d_i + K_jj * d_j * d_j) - K_ij * d_i * d_j


@inner
def best_joint_move(g_i, g_j, K_ii, K_jj, K_ij, low_i, high_i, low_j, high_j):
    """The best (d_i, d_j) in the box: the stationary point if it is inside, otherwise the best of the four edges."""
    determinant = K_ii * K_jj - K_ij * K_ij
    if K_ii > 0.0 and determinant > KERNEL_ROUNDING * K_ii * K_jj:
        d_i, d_j = (K_jj * g_i - K_ij * g_j) / determinant, (K_ii * g_j - K_ij * g_i) / determinant
        if low_i <= d_i <= high_i and low_j <= d_j <= high_j:
            return d_i, d_j
    best_i, best_j = best_move(g_i, K_ii, low_i, high_i), 0.0
    best = gain(best_i, best_j, g_i, g_j, K_ii, K_jj, K_ij)
    for edge in range(4):
        if edge < 2:
            d_i = low_i if edge == 0 else high_i
            d_j = best_move(g_j - K_ij * d_i, K_jj, low_j, high_j)
        else:
            d_j = low_j if edge == 2 else high_j
            d_i = best_move(g_i - K_ij * d_j, K_ii, low_i, high_i)
        gained = gain(d_i, d_j, g_i, g_j, K_ii, K_jj, K_ij)
        if gained > best:
            best_i, best_j, best = d_i, d_j, gained
    return best_i, best_j


@inner
def move(s, i, d, lowest, highest):
    """alpha_i += d; a bound that is reached is met exactly."""
    old = s.alpha[i]
    new = s.hi[i] if d == highest else s.lo[i] if d == lowest else min(max(old + d, s.lo[i]), s.hi[i])
    s.alpha[i] = new
    set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, i)
    s.counts[POSITIVE if s.y[i] > 0 else NEGATIVE] += (new != 0.0) - (old != 0.0)


@inner
def second_order_partner(g, up, down, self_k, i, K_i):
    """The member j whose joint step with i, cut by no bound, gains most over the step of i alone; -1 if none gains.

    That is (K_ii g_j - K_ij g_i)^2 / (2 K_ii (K_ii K_jj - K_ij^2)), where j may move the way it would.
    """
    n, g_i, K_ii = g.shape[0], g[i], self_k[i]
    best, best_block = 0.0, -1
    for b in range(0, n, SLOT_BLOCK):
        e = min(b + SLOT_BLOCK, n)
        gb, up_b, down_b, self_b, k_i = g[b:e], up[b:e], down[b:e], self_k[b:e], K_i[b:e]
        largest = 0.0
        for t in range(gb.shape[0]):
            largest = fmax(largest, partner_gain(g_i, K_ii, gb[t], self_b[t], np.float64(k_i[t]), up_b[t], down_b[t]))
        if largest > best:
            best, best_block = largest, b
    if best_block >= 0:
        for t in range(best_block, min(best_block + SLOT_BLOCK, n)):
            if partner_gain(g_i, K_ii, g[t], self_k[t], np.float64(K_i[t]), up[t], down[t]) == best:
                return t if t != i else -1
    return -1


@inner
def partner_gain(g_i, K_ii, g_j, K_jj, K_ij, up_j, down_j):
    """The gain of `second_order_partner`, times 2 K_ii."""
    product = K_ii * K_jj
    determinant = fmax(product - K_ij * K_ij, KERNEL_ROUNDING * product + DUST)
    d_j = K_ii * g_j - K_ij * g_i
    allowed = fmax(d_j, 0.0) if up_j == 0.0 else 0.0
    allowed += fmax(-d_j, 0.0) if down_j == 0.0 else 0.0
    return allowed * allowed / determinant


@shared
def take_step(s, kernel, i, joint, current):
    """Move member i to where the dual is largest, and with it, if `joint`, its second-order partner j.

    Rows come from the cache, or from `scratch` for the example that has just arrived.
    """
    n = s.counts[SLOTS]
    r_i = -1 if i == current else member_row(s, kernel, i, -1)
    K_i = s.scratch[:n] if r_i < 0 else s.rows[r_i, :n]
    j = second_order_partner(s.g[:n], s.up[:n], s.down[:n], s.self_k[:n], i, K_i) if joint else -1
    K_j, d_j = K_i, 0.0
    low_i, high_i = s.lo[i] - s.alpha[i], s.hi[i] - s.alpha[i]
    if j < 0:
        d_i = best_move(s.g[i], s.self_k[i], low_i, high_i)
    else:
        r_j = -1 if j == current else member_row(s, kernel, j, r_i)
        K_j = s.scratch[:n] if r_j < 0 else s.rows[r_j, :n]
        low_j, high_j = s.lo[j] - s.alpha[j], s.hi[j] - s.alpha[j]
        K_ii, K_jj, K_ij = s.self_k[i], s.self_k[j], np.float64(K_i[j])
        d_i, d_j = best_joint_move(s.g[i], s.g[j], K_ii, K_jj, K_ij, low_i, high_i, low_j, high_j)
        move(s, j, d_j, low_j, high_j)
    move(s, i, d_i, low_i, high_i)
    scan(s, d_i, d_j, K_i, K_j)
