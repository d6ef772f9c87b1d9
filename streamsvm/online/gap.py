"""The gap family: online support vector machines without a bias, which work until the primal-dual gap is small.

    maximise  W(alpha) = sum_s alpha_s y_s - 1/2 sum_rs alpha_r alpha_s k(x_r, x_s)
    subject to  lo_s <= alpha_s <= hi_s

over the members of the expansion, while examples arrive and members leave.  Without a bias there is no sum to keep, so
every coefficient can move on its own: member s violates if alpha_s may rise and g_s > tau, or may fall and g_s < -tau.

- PROCESS makes the example a member and moves its coefficient.
- REPROCESS moves the member that violates most, and repeats this until gap <= max(C, target).
- CLEAN forgets, every so often, the members with alpha = 0 that are farthest from violating.

PROCESS and REPROCESS also move a second member in the same step: the one with which the dual grows most.  The four
learners are:

- LASVM-G: exactly this.
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

Source: Ertekin, Bottou, Giles, "Ignorance is Bliss: Non-Convex Online Support Vector Machines", sections 4 to 6;
the ramp loss is that of Collobert, Sinz, Weston, Bottou, "Trading convexity for scalability", ICML 2006.
Deviations; the first six are corrections:

- PROCESS, for g >= 0: the step is min(hi - alpha, g / K); the source prints max.
- REPROCESS moves the member that it has chosen; the source prints i in both branches.
- REPROCESS ends when no member violates by itself.  The source tests whether two members form a violating pair, as if
  there were a bias.  If all g = 1/2, there is no such pair but the gap stays open, and its loop would not end.
- The gap is sum max(lo g, hi g) - alpha g, which uses the shifted boxes; the source's equation 9 has wrong signs for
  y = -1, and with C y g in place of the boxes the gap of members with beta = C never closes.
- The target's terms are the losses max(lo g, hi g), and the maximum with 0 is taken inside the root.  The C of
  max(C, target) is the mean box of the members, C where there are no weights.
- CLEAN sorts by the distance from violating; by |g|, as in the source, a violator would be dropped first.
- `joint`: the source moves one coefficient at a time, by at most |g| / K, so that at C = 100 a bounded support vector
  takes a hundred steps.  Here a step moves two, jointly and exactly: on a9a at C = 100 REPROCESS is 30 times rarer, and
  the model is the same.  The partner is chosen by second-order information, as Fan, Chen and Lin do with a bias
  (JMLR 6, 2005); it need not violate itself.
- The ramp is not active before `ramp_warmup` examples were admitted and both classes have support vectors.  f(x) means
  little at first, and an example that is ignored never comes back.  Without this warm-up, NC loses 1 % of AUC, and with
  s >= 0 nothing is learned at all.
- An example causes at most `MAX_REPROCESS` steps, which bounds the time of one call.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.blocks import expansion_sum
from streamsvm.core.compiling._dispatch import by_class, of_numbers
from streamsvm.core.compiling._jit import compiled, compiled_for, inner, shared
from streamsvm.core.expansion import (
    ADMITTED,
    BOXES,
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
)
from streamsvm.core.rows import store_row
from streamsvm.online.arrival import MAX_REPROCESS, is_member, learn_query
from streamsvm.online.gap_steps import rescan, take_step
from streamsvm.online.outputs.calibration import note_margin

CONVEX, CONCAVE, IGNORE = range(3)  # what is done with an example on the wrong side of the ramp


@of_numbers
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


@inner
def violator(counts, extremes, tau):
    """The member that violates most, by more than `tau`; -1 for none."""
    rise, fall = extremes[G_UP], -extremes[G_DOWN]
    if not (rise > tau or fall > tau):
        return -1
    return counts[SLOT_UP] if rise >= fall else counts[SLOT_DOWN]


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


@by_class
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
    limit = select(away[:idle], max_non_sv)  # the distance of the nearest of those that are too many
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


@compiled_for(learn_query, Rule)
def _learn_query(rule, s, kernel, e, own_id, calibration):
    return _learn(rule, s, kernel, e, own_id, calibration)


@shared
def _learn(rule, s, kernel, e, own_id, calibration):
    n, y, lo, hi = s.counts[SLOTS], e.y, e.lo, e.hi
    # 1. What the model says of the example, before it is learned.
    f = expansion_sum(s.alpha[:n], s.scratch[:n])
    if not lo < hi or (own_id and is_member(s.ids[:n], s.y[:n], e.id)):
        return f, -1
    if s.counts[POSITIVE] > 0 and s.counts[NEGATIVE] > 0:
        note_margin(calibration, y > 0.0, f if np.isnan(e.said) else e.said)
    # 2. The ramp: on its flat side, the example is ignored or gets the concave box.
    beyond = y * f < rule.ramp_s and ramp_is_active(s.counts, rule)
    if rule.ramp == IGNORE and (beyond or y * f > 1.0):
        return f, -1
    if rule.ramp == CONCAVE and beyond:
        lo, hi = lo - y * (hi - lo), hi - y * (hi - lo)
    # 3. PROCESS makes it a member; steps follow until the gap is small.
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
    # 4. CLEAN, now and then.
    s.counts[SINCE_EVICTION] += 1
    if s.counts[SINCE_EVICTION] == rule.clean_every:
        s.counts[SINCE_EVICTION] = 0
        clean(s, rule.max_non_sv)
    return f, slot


@by_class
@compiled
def optimise_active(s, kernel, tol, max_steps):
    """REPROCESS over the active members until none violates by more than `tol`, at most `max_steps`; how many."""
    for step in range(max_steps):
        i = violator(s.counts, s.extremes, tol)
        if i < 0:
            return step
        take_step(s, kernel, i, True, -1)
    return max_steps
