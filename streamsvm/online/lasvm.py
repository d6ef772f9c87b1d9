"""LASVM: an online solver for the support vector machine with a bias.

    maximise  W(alpha) = sum_s alpha_s y_s - 1/2 sum_rs alpha_r alpha_s k(x_r, x_s)
    subject to  sum_s alpha_s = 0,   lo_s <= alpha_s <= hi_s

over the members of the expansion, while examples arrive and members leave.  (i, j) is a tau-violating pair if alpha_i
may rise, alpha_j may fall and g_i - g_j > tau; a step along it raises W.  PROCESS steps along the best pair that
holds the new example, REPROCESS along the most violating pair of all; FINISH repeats REPROCESS until no pair is
tau-violating.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
alpha, g coefficients and gradient, see `expansion`                   (N,) float64
K_i, K_j kernel rows of the pair                                      (n,) float32
step     lambda of the source                                         float64
delta    g_i - g_j for the most violating pair                        float64
margins  f(x) of each incoming example before it was learned          (B,) float64
======== ============================================================ ================

Source: Bordes, Ertekin, Weston, Bottou, "Fast kernel classifiers with online and active learning", JMLR 6 (2005),
section 3 (PROCESS, REPROCESS, FINISH).  `Rule.printed` follows it: the first `SEEDS` examples of each
class join without a step, then every example joins, each step of REPROCESS is one of the most violating pair, and
evicts.  Otherwise there are these deviations:

- The gradient does not include the bias (the source's equation 9 mixes both conventions); b = (g_i + g_j) / 2.
- The source inserts every example, and the next step of REPROCESS evicts the useless ones.  Here PROCESS inserts an
  example only if eviction would keep it: if it forms a tau-violating pair, if there is no partner for it yet, if it
  narrows the interval in which the bias is free, or if it is needed as a reserve (see below).
- The source keeps each example that violates, and its extremes are up to `delta_max` apart.  So an example with
  y f(x) near 2 enters with a small coefficient, which FINISH takes away: where one class is rare and labels are noisy,
  there are five times as many members as support vectors.  `Rule.margin` keeps such examples out.
- Where C is small or rows are equal, all members are at their bounds.  Only a member with alpha = 0 can then become the
  partner of a newcomer, and the bias lies where such members are.  The source keeps them, because it evicts only
  after a step.  Here PROCESS and eviction see to it that `RESERVE` members are off their far bound, if there are so
  many near the margin.  Where members are free, as in most models, these are enough.
- REPROCESS is repeated until delta <= delta_max, see `Rule`; the source's single one leaves banana at C = 316 with 28 %
  error before FINISH.  From its second step on, the partner is the one with the largest gain (second order).
- Members with alpha = 0 that cannot join a violating pair are evicted after every `EVICTION_PERIOD` examples.  The
  source does it after every example, but the scan costs as much as a step.
- The source's extremes are far apart (delta is 5 on banana at C = 316), so that its eviction spares what may yet be
  needed. When REPROCESS is repeated they are close, and evicting right beyond them costs 0.4 points of error on
  banana: members within `slack` are spared while they are few.
- A step that no bound cuts makes g_i and g_j equal, so rounding would decide which is the next extreme.  Among extremes
  that are equal up to the rounding of the step, the first slot is taken.  So another processor gets the same model.
- One pass over g updates it and finds the extremes i, j, g_i, g_j.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.batch.problem import middle
from streamsvm.batch.steps.pairs import newton_partner
from streamsvm.core.blocks import expansion_sum
from streamsvm.core.compiling._dispatch import by_class, of_numbers
from streamsvm.core.compiling._jit import compiled, compiled_for, inner, shared
from streamsvm.core.expansion import (
    FORBIDDEN,
    G_DOWN,
    G_UP,
    HOLES,
    SINCE_EVICTION,
    SLOT_DOWN,
    SLOT_UP,
    SLOTS,
    append,
    bury,
    find_extremes,
    set_penalties,
)
from streamsvm.core.rounding import DUST, KERNEL_ROUNDING
from streamsvm.core.rows import member_row, store_row
from streamsvm.online.arrival import (
    MAX_REPROCESS,
    example_of,
    has_room,
    is_member,
    learn_query,
    row_of_block,
    store_raw_of,
)
from streamsvm.online.gradient import SLOT_BLOCK, note_extremes, update_block
from streamsvm.online.outputs.calibration import note_margin

EVICTION_PERIOD = 300  # examples, so that the scan, which costs as much as a step, costs next to nothing
SEEDS = 5  # of each class, the source's "a few"
# Members beyond which those with alpha = 0 go: while one class has been seen, all have the same gradient, and more say
# nothing new; with both, there are candidates enough without slack, and each costs time.
ENOUGH_MEMBERS = 3000
SPARED = 0.1  # share of the members that eviction leaves for the slack: more would cost more than they are worth
RESERVE = 20  # members off their far bound without which those with alpha = 0 near the margin are kept, too
# How far beyond the extremes a member with alpha = 0 may be that is spared; the margin is 2 wide.  From 0.25 to 1, the
# error on banana is within 0.25 points of a batch solution.
NEAR_MARGIN = 0.5


@of_numbers
class Rule(NamedTuple):
    """When to stop working on an example.

    tau
        A pair is worth a step if its gradients differ by more than this.
    reprocess
        REPROCESS steps after each PROCESS; -1: at least one, then until delta <= delta_max.
    delta_max
        Where repeated REPROCESS stops.
    slack
        How far beyond the extremes the gradient of a member with alpha = 0 must be for its eviction.
    margin
        An example with y (f(x) + b) of this or more stays out although it violates; infinity: none does.
    printed
        The source's algorithm; then slack and margin are not used.
    """

    tau: float
    reprocess: int
    delta_max: float
    slack: float
    margin: float
    printed: bool


@inner
def update_and_scan(g, up, down, step, K_i, K_j, tie):
    """g -= step (K_i - K_j); return the extremes of the new g and the blocks of slots they are in, up to `tie`."""
    top, bottom, top_block, bottom_block = -FORBIDDEN, FORBIDDEN, 0, 0
    for b in range(0, g.shape[0], SLOT_BLOCK):
        e = min(b + SLOT_BLOCK, g.shape[0])
        largest, smallest = update_block(g[b:e], up[b:e], down[b:e], step, -step, K_i[b:e], K_j[b:e])
        if largest > top + tie:
            top, top_block = largest, b
        if smallest < bottom - tie:
            bottom, bottom_block = smallest, b
    return top, top_block, bottom, bottom_block


@inner
def step_gradient(s, step, K_i, K_j, tie):
    """g -= step (K_i - K_j), and note the new most violating pair."""
    n = s.counts[SLOTS]
    g, up, down = s.g[:n], s.up[:n], s.down[:n]
    top, top_block, bottom, bottom_block = update_and_scan(g, up, down, step, K_i, K_j, tie)
    note_extremes(s.counts, s.extremes, g, up, down, top, top_block, bottom, bottom_block, tie)


@compiled
def midpoint(extremes):
    """b, half-way between the extremes; with one class only, the gradient of that class."""
    return middle(extremes[G_UP], extremes[G_DOWN])


@inner
def _delta(counts, extremes):
    if counts[SLOT_UP] < 0 or counts[SLOT_DOWN] < 0:
        return -np.inf
    return extremes[G_UP] - extremes[G_DOWN]


@by_class
@compiled
def delta(s):
    """g_i - g_j of the most violating pair; minus infinity if there is no pair."""
    return _delta(s.counts, s.extremes)


@inner
def pair_step(s, i, j, K_i, K_j):
    """The best step along (i, j): the unconstrained one, cut at the first bound, which is then met exactly."""
    room_i, room_j = s.hi[i] - s.alpha[i], s.alpha[j] - s.lo[j]
    curvature = s.self_k[i] + s.self_k[j] - 2.0 * np.float64(K_i[j])
    step = min(room_i, room_j)
    if curvature > DUST:
        step = min(step, (s.g[i] - s.g[j]) / curvature)
    s.alpha[i] = s.hi[i] if step == room_i else s.alpha[i] + step
    s.alpha[j] = s.lo[j] if step == room_j else s.alpha[j] - step
    set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, i)
    set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, j)
    step_gradient(s, step, K_i, K_j, KERNEL_ROUNDING * step * (abs(s.self_k[i]) + abs(s.self_k[j])))


@inner
def take_step(s, kernel, i, j, current):
    """A step along (i, j), or along i and its second-order partner if j is -1.

    Rows come from the cache, or from `scratch` for the example that has just arrived.
    """
    n = s.counts[SLOTS]
    r_i = -1 if i == current else member_row(s, kernel, i, -1)
    K_i = s.scratch[:n] if r_i < 0 else s.rows[r_i, :n]
    if j < 0:
        j, _ = newton_partner(s.g[:n], s.down[:n], s.self_k[:n], i, K_i)
    if j < 0:
        j = s.counts[SLOT_DOWN]
    r_j = -1 if j == current else member_row(s, kernel, j, r_i)
    K_j = s.scratch[:n] if r_j < 0 else s.rows[r_j, :n]
    pair_step(s, i, j, K_i, K_j)


@inner
def range_of_bias(extremes):
    """Between what the bias may be: the extremes, in rising order."""
    return min(extremes[G_UP], extremes[G_DOWN]), max(extremes[G_UP], extremes[G_DOWN])


@inner
def beyond(low, high, y, g):
    """How far an example with alpha = 0 and this gradient is from violating, for any bias from low to high."""
    return low - g if y > 0 else g - high


@inner
def off_far_bound(y, up, down):
    """Whether a member has not given all it has: alpha < hi for y = +1, alpha > lo for y = -1."""
    return (y > 0 and up == 0.0) or (y < 0 and down == 0.0)


@inner
def has_reserve(y, up, down):
    """Whether `RESERVE` of these members are off their far bound."""
    count = 0
    for t in range(y.shape[0]):
        count += off_far_bound(y[t], up[t], down[t])
        if count == RESERVE:
            return True
    return False


@inner
def is_seeding(y, alpha):
    """Whether examples only join, as the source's seeds: no step was taken, and a class has fewer than `SEEDS`."""
    positive = negative = 0
    for t in range(y.shape[0]):
        if alpha[t] != 0.0:
            return False
        positive += y[t] > 0
        negative += y[t] < 0
    return min(positive, negative) < SEEDS and y.shape[0] < ENOUGH_MEMBERS


@inner
def process(s, kernel, rule, e, f, seeding):
    """PROCESS up to its step: keep the example whose row is in `scratch` if it violates with some member, or may soon.

    Returns its slot (-1: not kept) and the pair (i, j) to step along (i is -1 if there is none yet, or for a seed).
    """
    y, g = e.y, e.y - f
    partner = s.counts[SLOT_DOWN] if y > 0.0 else s.counts[SLOT_UP]
    violation = g - s.extremes[G_DOWN] if y > 0.0 else s.extremes[G_UP] - g
    violates = partner >= 0 and violation > rule.tau and not seeding
    if partner < 0:
        keeps = s.counts[SLOTS] < ENOUGH_MEMBERS
    elif rule.printed:
        keeps = True
    else:
        n, (low, high) = s.counts[SLOTS], range_of_bias(s.extremes)
        away = beyond(low, high, y, g)
        narrows = away < -rule.tau and _delta(s.counts, s.extremes) <= 0.0
        counts = y * (f + midpoint(s.extremes)) < rule.margin
        near = away < NEAR_MARGIN
        keeps = (violates and counts) or narrows or (near and not has_reserve(s.y[:n], s.up[:n], s.down[:n]))
    if not keeps:
        return -1, -1, -1
    k = append(s, kernel, e.indices, e.values, e.sq, y, e.lo, e.hi, e.id, e.born, g)
    s.scratch[k] = np.float32(s.self_k[k])
    if violates:
        return k, (k if y > 0.0 else partner), (partner if y > 0.0 else k)
    if y > 0.0 and g > s.extremes[G_UP]:
        s.extremes[G_UP], s.counts[SLOT_UP] = g, k
    if y < 0.0 and g < s.extremes[G_DOWN]:
        s.extremes[G_DOWN], s.counts[SLOT_DOWN] = g, k
    return k, -1, -1


@inner
def reprocess(counts, extremes, rule, steps):
    """REPROCESS up to its step: the pair (i, j) to step along after these steps; i is -1 when they are enough.

    j is -1 for the second-order partner of i.
    """
    at_least = rule.reprocess if rule.reprocess >= 0 else 1
    violation = _delta(counts, extremes)
    if not violation > rule.tau or (steps >= at_least and not violation > rule.delta_max) or steps >= MAX_REPROCESS:
        return -1, -1
    second_order = rule.reprocess < 0 and steps >= 1 and not rule.printed
    return counts[SLOT_UP], -1 if second_order else counts[SLOT_DOWN]


@by_class
@compiled
def evict(s, slack):
    """Bury the members with alpha = 0 that cannot be part of a violating pair.

    Those within `slack` of it are spared while they are few, in an expansion that is not large.  So are the nearest
    that the reserve needs.
    """
    i, j, n = s.counts[SLOT_UP], s.counts[SLOT_DOWN], s.counts[SLOTS]
    if i < 0 or j < 0:
        return
    y, g, alpha, up, down = s.y[:n], s.g[:n], s.alpha[:n], s.up[:n], s.down[:n]
    # 1. No member is spared for the slack where too many would be.
    (low, high), near = range_of_bias(s.extremes), 0
    for t in range(n):
        if y[t] != 0 and alpha[t] == 0.0 and 0.0 <= beyond(low, high, y[t], g[t]) < slack:
            near += 1
    members = n - s.counts[HOLES]
    if near > SPARED * members or members > ENOUGH_MEMBERS:
        slack = 0.0
    # 2. Who goes, and how many of the reserve stay.
    goes, stay = np.zeros(n, np.bool_), 0
    for t in range(n):
        goes[t] = y[t] != 0 and alpha[t] == 0.0 and beyond(low, high, y[t], g[t]) >= slack and t != i and t != j
        if not goes[t] and off_far_bound(y[t], up[t], down[t]):
            stay += 1
    # 3. The nearest stay after all, until the reserve is full.
    for _ in range(stay, RESERVE):
        nearest, distance = -1, NEAR_MARGIN
        for t in range(n):
            if goes[t] and beyond(low, high, y[t], g[t]) < distance:
                nearest, distance = t, beyond(low, high, y[t], g[t])
        if nearest < 0:
            break
        goes[nearest] = False
    for t in range(n):
        if goes[t]:
            bury(s, t)


@inner
def evict_as_printed(s):
    """Bury the members with alpha = 0 whose gradient is beyond the other extreme, even if they are extremes."""
    n, g_i, g_j, found = s.counts[SLOTS], s.extremes[G_UP], s.extremes[G_DOWN], False
    if s.counts[SLOT_UP] < 0 or s.counts[SLOT_DOWN] < 0:
        return
    for t in range(n):
        if s.alpha[t] == 0.0 and ((s.y[t] < 0 and s.g[t] >= g_i) or (s.y[t] > 0 and s.g[t] <= g_j)):
            found = found or t == s.counts[SLOT_UP] or t == s.counts[SLOT_DOWN]
            bury(s, t)
    if found:
        find_extremes(s)


@compiled_for(learn_query, Rule)
def _learn_query(rule, s, kernel, e, own_id, calibration):
    return _learn(rule, s, kernel, e, own_id, calibration)


@shared
def _learn(rule, s, kernel, e, own_id, calibration):
    n = s.counts[SLOTS]
    # 1. What the model says of the example, before it is learned.
    f = expansion_sum(s.alpha[:n], s.scratch[:n])
    margin = f + midpoint(s.extremes)
    slot = -1
    if e.lo < e.hi and not (own_id and is_member(s.ids[:n], s.y[:n], e.id)):
        if s.counts[SLOT_UP] >= 0 and s.counts[SLOT_DOWN] >= 0:
            note_margin(calibration, e.y > 0.0, margin if np.isnan(e.said) else e.said)
        # 2. PROCESS: the example becomes a member if it matters.
        seeding = rule.printed and is_seeding(s.y[:n], s.alpha[:n])
        slot, i, j = process(s, kernel, rule, e, f, seeding)
        if slot >= 0:
            store_row(s, slot)
        # 3. Steps: that of PROCESS along the pair that holds the example, if there is one, then REPROCESS.
        steps = 0
        while not seeding:
            if i >= 0:
                take_step(s, kernel, i, j, slot)
                if rule.printed and steps > 0:
                    evict_as_printed(s)
            i, j = reprocess(s.counts, s.extremes, rule, steps)
            if i < 0:
                break
            steps += 1
        # 4. Eviction, now and then.
        s.counts[SINCE_EVICTION] += 1
        if s.counts[SINCE_EVICTION] >= EVICTION_PERIOD and not rule.printed:
            s.counts[SINCE_EVICTION] = 0
            evict(s, rule.slack)
    return margin, slot


@compiled
def keep_block(s, kernel, block, own_ids, P, G, mapped, limit, margins):
    """`learn_block` without steps: every example becomes a member, with alpha = 0; FINISH must follow.

    It is for examples that are learned once more.  PROCESS would refuse one that violates with no member, though it may
    hold an extreme that decides the bias.  The margins are those without the bias.
    """
    first = s.counts[SLOTS]
    arrivals = np.empty(block.sq.shape[0], np.int64)
    for t in range(block.sq.shape[0]):
        e, n = example_of(block, t, block.lo[t], block.hi[t], np.nan), s.counts[SLOTS]
        if not has_room(s, e, limit):
            return t
        row_of_block(s, kernel, e.indices, e.values, e.sq, P, G, mapped, arrivals, t, first)
        margins[t] = expansion_sum(s.alpha[:n], s.scratch[:n])
        if not e.lo < e.hi or (own_ids and is_member(s.ids[:n], s.y[:n], e.id)):
            continue
        k = append(s, kernel, e.indices, e.values, e.sq, e.y, e.lo, e.hi, e.id, e.born, e.y - margins[t])
        arrivals[k - first] = t
        store_raw_of(s, k, block, t)
        s.scratch[k] = np.float32(s.self_k[k])
        store_row(s, k)
        s.extremes[G_UP], s.extremes[G_DOWN] = FORBIDDEN, -FORBIDDEN  # unknown: no member may be evicted
    return block.sq.shape[0]
