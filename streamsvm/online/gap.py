"""The gap family: online support vector machines without a bias, which work until the primal-dual gap is small.

    maximise  W(alpha) = sum_s alpha_s y_s - 1/2 sum_rs alpha_r alpha_s k(x_r, x_s)
    subject to  lo_s <= alpha_s <= hi_s

over the members of the expansion, while examples arrive and members leave.  Without a bias there is no sum to keep, so
every coefficient can move on its own: member s violates if alpha_s may rise and g_s > tau, or may fall and g_s < -tau.

PROCESS makes the example a member and moves its coefficient; REPROCESS moves the member that violates most, until
gap <= max(C, target); CLEAN forgets, every so often, the members with alpha = 0 that are farthest from being able to
move.  Both move a second member along, the one with which the dual grows most.  The four learners are:

- LASVM-G: as said.
- LASVM-NC: the ramp loss, which counts an example on the wrong side no more than 1 - s.  An example with y f(x) < s at
  its arrival gets the box that the concave part of the ramp leaves it (online CCCP): beta = C, otherwise 0.
- LASVM-I: an example with y f(x) < s is ignored, and one with y f(x) > 1 too, before any other work.
- FULL: LASVM-G without CLEAN.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
alpha, g coefficients and gradient y - f(x), see `expansion`          (N,) float64
lo, hi   box: min(0, C y) - beta y and max(0, C y) - beta y           (N,) float64
K_i, K_j kernel rows of the members that move                         (n,) float32
d_i, d_j by how much they move                                        float64
gap      primal minus dual: sum max((lo - alpha) g, (hi - alpha) g)   float64
h        loss of a member: max(lo g, hi g)                            (n,) float64
target   spread of the primal, sqrt(sum h^2 - (sum h)^2 / l)          float64
l        number of support vectors                                    int64
s        where the ramp begins, `ramp_s`                              float64
======== ============================================================ ================

Source: Ertekin, Bottou, Giles, "Nonconvex online support vector machines", IEEE TPAMI 33 (2011), sections 4 to 6;
the ramp loss is that of Collobert, Sinz, Weston, Bottou, "Trading convexity for scalability", ICML 2006.
Deviations; the first six are corrections:

- PROCESS, for g >= 0: the step is min(hi - alpha, g / K); the source prints max.
- REPROCESS moves the member that it has chosen; the source prints i in both branches.
- REPROCESS ends when no member violates by itself.  The source asks whether two members form a violating pair, as if
  there were a bias: all g = 1/2 passes that test, and its loop would not end.
- The gap is sum max(lo g, hi g) - alpha g, which uses the shifted boxes; the source's equation 9 has wrong signs for
  y = -1, and with C y g in place of the boxes the gap of members with beta = C never closes.
- The target's terms are the losses max(lo g, hi g), and the maximum with 0 is taken inside the root.  The C of
  max(C, target) is the mean box of the members, C where there are no weights.
- CLEAN sorts by the distance from being able to move; the source's |g| would drop a violator first.
- `joint`: the source moves one coefficient at a time, by at most |g| / K, so that at C = 100 a bounded support vector
  takes a hundred steps.  Here a step moves two, jointly and exactly: on a9a at C = 100 REPROCESS is 30 times rarer, and
  the model is the same.  The partner is chosen by second-order information, as Fan, Chen and Lin do with a bias
  (JMLR 6, 2005); it need not violate itself.
- The ramp is not active before `ramp_warmup` examples were admitted and both classes have support vectors.  f(x) says
  nothing at first, and what is ignored then never comes back: NC loses 1 % of AUC, and s >= 0 learns nothing at all.
- An example ends after `MAX_REPROCESS` steps at the latest, which bounds the time of one call.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.blocks import expansion_sum
from streamsvm.core.compiling._jit import compiled, compiled_for, inner
from streamsvm.core.compiling._simd import fmax
from streamsvm.core.expansion import (
    ADMITTED,
    BOXES,
    FORBIDDEN,
    G_DOWN,
    G_UP,
    GAP,
    HOLES,
    LOSS,
    NEGATIVE,
    POSITIVE,
    REPROCESSED,
    SINCE_EVICTION,
    SLOT_DOWN,
    SLOT_UP,
    SLOTS,
    SQUARED_LOSS,
    append,
    bury,
    set_penalties,
)
from streamsvm.core.rows import member_row, store_row
from streamsvm.online.arrival import is_member, learn_query
from streamsvm.online.outputs.calibration import note_margin
from streamsvm.online.scan import BLOCK, note_extremes, sum_losses, update_block

MAX_REPROCESS = 1000
NO_CURVATURE = 1e-12
SINGULAR = 1e-6  # of K_ii K_jj: a smaller determinant is the rounding of a float32 kernel value

CONVEX, CONCAVE, IGNORE = range(3)  # what is done with an example on the wrong side of the ramp


class Rule(NamedTuple):
    """What an algorithm of the family does.

    tau
        A member is worth a step if it violates by more than this.
    joint
        Whether a step moves two members.
    clean_every, max_non_sv
        Examples that are admitted between two calls of CLEAN (0: no CLEAN), and members with alpha = 0 that it leaves.
    ramp, ramp_s, ramp_warmup
        CONVEX: no ramp.  CONCAVE: an example with y f(x) < ramp_s gets the concave box.  IGNORE: it is ignored, as is
        one with y f(x) > 1.  The ramp waits for `ramp_warmup` admitted examples.
    """

    tau: float
    joint: bool
    clean_every: int
    max_non_sv: int
    ramp: int
    ramp_s: float
    ramp_warmup: int


# ------------------------------------------------------------------------------------------------------------ one pass


@inner
def scan(s, c_i, c_j, K_i, K_j):
    """g -= c_i K_i + c_j K_j; note the extremes of g, the gap and the sums of the losses."""
    n = s.counts[SLOTS]
    g, up, down, alpha, lo, hi = s.g[:n], s.up[:n], s.down[:n], s.alpha[:n], s.lo[:n], s.hi[:n]
    top, bottom, top_block, bottom_block = -FORBIDDEN, FORBIDDEN, 0, 0
    gap, loss, squares, boxes = 0.0, 0.0, 0.0, 0.0
    for b in range(0, n, BLOCK):
        e = min(b + BLOCK, n)
        largest, smallest = update_block(g[b:e], up[b:e], down[b:e], c_i, c_j, K_i[b:e], K_j[b:e])
        if largest > top:
            top, top_block = largest, b
        if smallest < bottom:
            bottom, bottom_block = smallest, b
        of_block = sum_losses(g[b:e], alpha[b:e], lo[b:e], hi[b:e])
        gap, loss, squares, boxes = gap + of_block[0], loss + of_block[1], squares + of_block[2], boxes + of_block[3]
    note_extremes(s.counts, s.extremes, g, up, down, top, top_block, bottom, bottom_block, 0.0)
    s.losses[GAP], s.losses[LOSS], s.losses[SQUARED_LOSS], s.losses[BOXES] = gap, loss, squares, boxes


@compiled
def rescan(s):
    """Note extremes, gap and losses anew, after members have left or coefficients were set from outside."""
    zeros = s.scratch[: s.counts[SLOTS]]
    zeros[:] = np.float32(0.0)  # what a query left there may be infinite
    scan(s, 0.0, 0.0, zeros, zeros)


@inner
def small_gap(counts, losses, box):
    """The gap that is not worth work: the spread of the primal's terms, at least the mean box of the members.

    Without members, the box of the example.
    """
    support, members = counts[POSITIVE] + counts[NEGATIVE], counts[SLOTS] - counts[HOLES]
    if members == 0:
        return box
    target = 0.0
    if support > 0:
        target = np.sqrt(max(0.0, losses[SQUARED_LOSS] - losses[LOSS] * losses[LOSS] / support))
    return max(losses[BOXES] / members, target)


# --------------------------------------------------------------------------------------------------------------- steps


@inner
def best_move(g, K, lowest, highest):
    """The d in [lowest, highest] with the largest g d - K d^2 / 2; 0 lies between the ends."""
    if g > 0.0:
        return min(highest, g / K) if K > NO_CURVATURE else highest
    if g < 0.0:
        return max(lowest, g / K) if K > NO_CURVATURE else lowest
    return 0.0


@inner
def gain(d_i, d_j, g_i, g_j, K_ii, K_jj, K_ij):
    """How much the dual grows."""
    return g_i * d_i + g_j * d_j - 0.5 * (K_ii * d_i * d_i + K_jj * d_j * d_j) - K_ij * d_i * d_j


@inner
def best_joint_move(g_i, g_j, K_ii, K_jj, K_ij, low_i, high_i, low_j, high_j):
    """The best (d_i, d_j) in the box: the stationary point if it is inside, otherwise the best of the four edges."""
    determinant = K_ii * K_jj - K_ij * K_ij
    if K_ii > 0.0 and determinant > SINGULAR * K_ii * K_jj:
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
    for b in range(0, n, BLOCK):
        e = min(b + BLOCK, n)
        gb, up_b, down_b, self_b, k_i = g[b:e], up[b:e], down[b:e], self_k[b:e], K_i[b:e]
        largest = 0.0
        for t in range(gb.shape[0]):
            largest = fmax(largest, partner_gain(g_i, K_ii, gb[t], self_b[t], np.float64(k_i[t]), up_b[t], down_b[t]))
        if largest > best:
            best, best_block = largest, b
    if best_block >= 0:
        for t in range(best_block, min(best_block + BLOCK, n)):
            if partner_gain(g_i, K_ii, g[t], self_k[t], np.float64(K_i[t]), up[t], down[t]) == best:
                return t if t != i else -1
    return -1


@inner
def partner_gain(g_i, K_ii, g_j, K_jj, K_ij, up_j, down_j):
    """The gain of `second_order_partner`, times 2 K_ii."""
    product = K_ii * K_jj
    determinant = fmax(product - K_ij * K_ij, SINGULAR * product + NO_CURVATURE)
    d_j = K_ii * g_j - K_ij * g_i
    allowed = fmax(d_j, 0.0) if up_j == 0.0 else 0.0
    allowed += fmax(-d_j, 0.0) if down_j == 0.0 else 0.0
    return allowed * allowed / determinant


@inner
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


@inner
def violator(counts, extremes, tau):
    """The member that violates most, by more than `tau`; -1 for none."""
    rise, fall = extremes[G_UP], -extremes[G_DOWN]
    if not (rise > tau or fall > tau):
        return -1
    return counts[SLOT_UP] if rise >= fall else counts[SLOT_DOWN]


# ------------------------------------------------------------------------------------------- PROCESS, REPROCESS, CLEAN


@inner
def process(s, kernel, e, lo, hi, f):
    """PROCESS up to its step: make the example whose row is in `scratch` a member, with this box.

    Returns its slot, and whether it moves.  A member that cannot move has max(lo g, hi g) = 0: it changes no more than
    the sum of the boxes and, perhaps, an extreme.
    """
    g = e.y - f
    k = append(s, kernel, e.indices, e.values, e.sq, e.y, lo, hi, e.id, e.born, g)
    s.scratch[k] = np.float32(s.self_k[k])
    s.counts[ADMITTED] += 1
    if (g > 0.0 and hi > 0.0) or (g < 0.0 and lo < 0.0):
        store_row(s, k)
        return k, True
    s.losses[BOXES] += hi - lo
    if hi > 0.0 and g > s.extremes[G_UP]:
        s.extremes[G_UP], s.counts[SLOT_UP] = g, k
    if lo < 0.0 and g < s.extremes[G_DOWN]:
        s.extremes[G_DOWN], s.counts[SLOT_DOWN] = g, k
    return k, False


@inner
def reprocess(counts, extremes, losses, rule, enough, steps):
    """REPROCESS up to its step: the member to move after these steps; -1 when the gap is small enough."""
    if not losses[GAP] > enough or steps >= MAX_REPROCESS:
        return -1
    return violator(counts, extremes, rule.tau)


@inner
def distance(s, t):
    """How far the gradient of a member with alpha = 0 is from letting it move; infinite for all others."""
    if s.y[t] == 0 or s.alpha[t] != 0.0:
        return np.inf
    return max(0.0, -s.g[t] if s.hi[t] > 0.0 else s.g[t])


@inner
def select(a, n):
    """The n-th smallest of `a`, from 0, which is reordered: Hoare's FIND (numba's sort takes seconds to compile)."""
    low, high = 0, a.shape[0] - 1
    while low < high:
        pivot, i, j = a[(low + high) // 2], low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            return a[n]
    return a[n]


@compiled
def clean(s, max_non_sv):
    """Bury the members with alpha = 0 beyond `max_non_sv`, those first that are farthest from being able to move.

    Of equals the younger ones go; one that violates never does.
    """
    n = s.counts[SLOTS]
    away, idle = np.empty(n), 0
    for t in range(n):
        d = distance(s, t)
        if d < np.inf:
            away[idle] = d
            idle += 1
    if idle <= max_non_sv:
        return
    limit = select(away[:idle], max_non_sv)  # the nearest of those that are too many
    room = max_non_sv
    for t in range(idle):
        room -= away[t] < limit
    for t in range(n):
        d = distance(s, t)
        if d == limit:
            room -= 1
        if 0.0 < d < np.inf and (d > limit or (d == limit and room < 0)):
            bury(s, t)
    rescan(s)


@inner
def ramp_is_active(counts, rule):
    """Whether f(x) can be trusted enough to give an example up."""
    return (
        rule.ramp != CONVEX and counts[ADMITTED] >= rule.ramp_warmup and counts[POSITIVE] > 0 and counts[NEGATIVE] > 0
    )


# ------------------------------------------------------------------------------------------------------------ learning


@compiled_for(learn_query, Rule)
def _learn_query(rule, s, kernel, e, own_id, calibration):
    n, y, lo, hi = s.counts[SLOTS], e.y, e.lo, e.hi
    f = expansion_sum(s.alpha[:n], s.scratch[:n])
    if not lo < hi or (own_id and is_member(s.ids[:n], s.y[:n], e.id)):
        return f, -1
    if s.counts[POSITIVE] > 0 and s.counts[NEGATIVE] > 0:
        note_margin(calibration, y > 0.0, f)
    beyond = y * f < rule.ramp_s and ramp_is_active(s.counts, rule)
    if rule.ramp == IGNORE and (beyond or y * f > 1.0):
        return f, -1
    if rule.ramp == CONCAVE and beyond:
        lo, hi = lo - y * (hi - lo), hi - y * (hi - lo)
    enough = small_gap(s.counts, s.losses, hi - lo)
    slot, moves = process(s, kernel, e, lo, hi, f)
    i, steps = slot if moves else -1, 0
    while True:
        if i >= 0:
            take_step(s, kernel, i, rule.joint, slot)
        i = reprocess(s.counts, s.extremes, s.losses, rule, enough, steps)
        if i < 0:
            break
        steps += 1
    s.counts[REPROCESSED] += steps
    s.counts[SINCE_EVICTION] += 1
    if s.counts[SINCE_EVICTION] == rule.clean_every:
        s.counts[SINCE_EVICTION] = 0
        clean(s, rule.max_non_sv)
    return f, slot


@compiled
def optimise_active(s, kernel, tol, max_steps):
    """REPROCESS over the active members until none violates by more than `tol`, at most `max_steps`; how many."""
    for step in range(max_steps):
        i = violator(s.counts, s.extremes, tol)
        if i < 0:
            return step
        take_step(s, kernel, i, True, -1)
    return max_steps
