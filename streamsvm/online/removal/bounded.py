"""Budgets: which members leave when they are too many.

When `budget` is reached, a twentieth of the members leaves at once.  Members with alpha = 0 leave first,
beginning with those that are farthest from becoming violators; nothing else changes.  If more have to leave:

- *remove* takes the members farthest on the wrong side (y f(x) smallest), and forgets them exactly, see `forget`.
- *project* takes the same members.  Each gives its coefficient and its box to the nearest member j of its class: the
  one with the smallest distance in feature space, so the smallest K_jj - 2 K_ij.
- *merge* takes a quarter by the same rule, and the rest by the smallest alpha_i^2 K_ii.  Each joins the nearest member
  j of its class.  Both become z = h x_i + (1 - h) x_j, with the h for which w moves least.

Among equals, the oldest leave first.  Each class keeps at least a tenth of the members, if it has as many.

    alpha_j += alpha_i,  lo_j += lo_i,  hi_j += hi_i,  g -= alpha_i (K_j - K_i)                                (project)
    alpha_z = alpha_i + alpha_j,  ...                  g -= alpha_z K_z - alpha_i K_i - alpha_j K_j              (merge)
    h = argmax m k(x_i, z) + (1 - m) k(x_j, z),        m = alpha_i / alpha_z

For the RBF kernel, the maximised term is m kappa^((1-h)^2) + (1-m) kappa^(h^2) with kappa = K_ij.  For the linear
kernel h = m, and w does not move.  The sums of coefficients and boxes stay the same.  So the model remains a support
vector machine, over weighted examples, some of which never occurred.  The steps for the next examples re-balance it.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
alpha, g coefficients and gradient, see `expansion`                   (N,) float64
born     number of the example, or its time in microseconds; a merged (N,) int64
         member has that of its oldest part
leaving  slots of the members that leave                              (r,) int64
stays    whether a slot's member may receive                          (N,) bool
======== ============================================================ ================

Source of projection and merging: Wang, Crammer, Vucetic, "Breaking the curse of kernelization: budgeted stochastic
gradient descent for large-scale SVM training", JMLR 13 (2012).  Deviations:

- The source chooses the alpha_z for which w moves least, so the sum of the coefficients changes.  It has no boxes.
- The source always takes the smallest alpha_i^2 K_ii.  That keeps members far on the wrong side, which are at their
  bound, and takes the members that carry the boundary.  Where classes overlap, only noise is left soon.  Where they
  hardly overlap, this choice moves w least.  So *merge* takes a quarter from the wrong side, enough to remove the
  noise.
"""

import math

import numpy as np

from streamsvm.core.blocks import expansion_sum
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.expansion import COMPRESSED, G_DOWN, G_UP, SLOTS, STORAGE, Expansion, append, bury, set_penalties
from streamsvm.core.kernels import LINEAR_KIND, Kernel
from streamsvm.core.rounding import KERNEL_ROUNDING
from streamsvm.core.rows import gather, kernel_row, member_row, store_row
from streamsvm.core.storage import copy, live_slots, n_members, reserve, with_own_coefficients
from streamsvm.online.finish import Problem
from streamsvm.online.lasvm import midpoint
from streamsvm.online.removal.forget import forget

REMOVE, MERGE = "remove", "merge"  # or "project"
AT_ONCE = 20  # a full budget loses one member in 20
WRONG_SHARE = 0.25  # of the support vectors that merge, those farthest on the wrong side; the others are the lightest
OF_A_CLASS = 10  # each class keeps at least a tenth of the members, if it has as many
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
SECTIONS = math.ceil(math.log(2.0 * KERNEL_ROUNDING) / math.log(GOLDEN))  # of an interval of length 1/2


# --------------------------------------------------------------------------------------------------------- which leave


def least_harmful(s: Expansion, problem: Problem, how: str, count: int) -> np.ndarray:
    """Return the slots of `count` members, the least harmful first."""
    live = live_slots(s)
    alpha, g = s.alpha[live], s.g[live]
    low, high = (s.extremes[G_DOWN], s.extremes[G_UP]) if problem.fixed_sum else (0.0, 0.0)
    bias = midpoint(s.extremes) if problem.fixed_sum else 0.0
    distance = np.where(s.hi[live] > 0.0, low - g, g - high)
    harm = np.where(alpha == 0.0, -distance, -s.y[live] * (g - bias))
    order = live[np.lexsort((s.born[live], harm, alpha != 0.0))]
    if how == MERGE:
        idle = min(count, int(np.count_nonzero(alpha == 0.0)))
        first = _within_quotas(s, order, count)[: idle + math.ceil(WRONG_SHARE * (count - idle))]
        lightest = live[np.lexsort((s.born[live], alpha**2 * s.self_k[live]))]
        order = np.concatenate([first, lightest[~np.isin(lightest, first)]])
    return _within_quotas(s, order, count)


def _within_quotas(s: Expansion, order: np.ndarray, count: int) -> np.ndarray:
    """Return the first `count` members of this order that their class can spare."""
    is_positive = s.y[order] > 0
    kept = max(1, (len(order) - count) // OF_A_CLASS)
    spare = np.zeros(len(order), bool)
    for of_class in (is_positive, ~is_positive):
        spare |= of_class & (np.cumsum(of_class) <= np.count_nonzero(of_class) - kept)
    return order[spare][:count]


# ------------------------------------------------------------------------------------------------------- how it leaves


def reduce_members(
    s: Expansion, kernel: Kernel, problem: Problem, tol: float, budget: int, how: str, n_features: int
) -> Expansion:
    """A copy with room for more, of an expansion that has as many members as its budget allows."""
    most = budget - max(1, budget // AT_ONCE)
    if how == REMOVE:
        leaving = least_harmful(s, problem, how, n_members(s) - most)
        return forget(with_own_coefficients(s), kernel, problem, leaving, tol)[0]
    s = copy(s)
    while n_members(s) > most:
        count = n_members(s) - most
        if how == MERGE:
            longest = int(np.diff(s.starts[: s.counts[SLOTS] + 1]).max())
            s = reserve(s, count, n_features, False, 2 * longest * count, 0)
        s = _hand_over(s, kernel, problem, least_harmful(s, problem, how, count), how == MERGE, tol)
    return s


def _hand_over(
    s: Expansion, kernel: Kernel, problem: Problem, leaving: np.ndarray, merges: bool, tol: float
) -> Expansion:
    """Have as many of these members leave as there is room for; those without a partner are forgotten."""
    done = hand_over(s, kernel, leaving, merges)
    problem.note(s)
    alone = leaving[:done][s.y[leaving[:done]] != 0]
    return forget(s, kernel, problem, alone, tol)[0] if len(alone) else s


@compiled
def hand_over(s, kernel, leaving, merges):
    """Give what these members carry to their partners; return how many did so before the room ran out.

    Those without a partner stay as they are.
    """
    stays = s.y != 0
    for i in leaving:
        stays[i] = False
    for t in range(leaving.shape[0]):
        i, n = leaving[t], s.counts[SLOTS]
        if s.alpha[i] == 0.0:
            bury(s, i)
            continue
        r_i = member_row(s, kernel, i, -1)
        j = nearest(s, i, s.rows[r_i, :n], stays)
        if j < 0:
            continue
        r_j = member_row(s, kernel, j, r_i)
        if not merges:
            project(s, i, j, s.rows[r_i, :n], s.rows[r_j, :n])
        elif has_room(s, i, j):
            stays[merge(s, kernel, i, j, s.rows[r_i, :n], s.rows[r_j, :n])] = True
            stays[j] = False
        else:
            return t
    return leaving.shape[0]


@inner
def nearest(s, i, K_i, stays):
    """The member that stays, of the class of i and on the same side of its box's 0, closest to it; -1 if none is."""
    best, j = np.inf, -1
    for t in range(K_i.shape[0]):
        if stays[t] and s.y[t] == s.y[i] and (s.hi[t] > 0.0) == (s.hi[i] > 0.0):
            distance = s.self_k[t] - 2.0 * np.float64(K_i[t])
            if distance < best:
                best, j = distance, t
    return j


@inner
def has_room(s, i, j):
    """Whether the features of i and j together fit into another slot."""
    n = s.counts[SLOTS]
    nnz = s.starts[i + 1] - s.starts[i] + s.starts[j + 1] - s.starts[j]
    fits = s.counts[STORAGE] != COMPRESSED or s.starts[n] + nnz <= s.sparse_indices.shape[0]
    return n < s.alpha.shape[0] and fits


@inner
def project(s, i, j, K_i, K_j):
    """Give coefficient and box of i to j."""
    a = s.alpha[i]
    for t in range(K_i.shape[0]):
        s.g[t] -= a * (np.float64(K_j[t]) - np.float64(K_i[t]))
    s.lo[j] += s.lo[i]
    s.hi[j] += s.hi[i]
    s.alpha[j] = min(max(s.alpha[j] + a, s.lo[j]), s.hi[j])
    s.born[j] = min(s.born[i], s.born[j])
    set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, j)
    bury(s, i)


@inner
def merge(s, kernel, i, j, K_i, K_j):
    """Make one member of i and j, between them; its slot."""
    n, a_i, a_j = s.counts[SLOTS], s.alpha[i], s.alpha[j]
    a, share = a_i + a_j, a_i / (a_i + a_j)
    h = share if kernel.kind == LINEAR_KIND else best_place(share, np.float64(K_i[j]))
    indices, values, sq = between(s, i, j, h)
    K_z = s.scratch[:n]
    kernel_row(s, kernel, indices, values, sq, 0, n, s.scratch)
    for t in range(n):
        s.g[t] -= a * np.float64(K_z[t]) - a_i * np.float64(K_i[t]) - a_j * np.float64(K_j[t])
    lo, hi, y = s.lo[i] + s.lo[j], s.hi[i] + s.hi[j], np.float64(s.y[i])
    larger, born = i if abs(a_i) > abs(a_j) else j, min(s.born[i], s.born[j])
    bury(s, i)
    bury(s, j)
    k = append(s, kernel, indices, values, sq, y, lo, hi, s.ids[larger], born, y - expansion_sum(s.alpha[:n], K_z))
    for d in range(s.raw.shape[1]):
        s.raw[k, d] = h * s.raw[i, d] + (1.0 - h) * s.raw[j, d]
    s.alpha[k] = min(max(a, lo), hi)
    s.scratch[k] = np.float32(s.self_k[k])
    s.g[k] -= s.alpha[k] * np.float64(s.scratch[k])
    set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, k)
    store_row(s, k)
    return k


@inner
def best_place(m, kappa):
    """The h in [0, 1] with the largest m kappa^((1-h)^2) + (1-m) kappa^(h^2), in the larger one's half."""
    low, high = (0.5, 1.0) if m >= 0.5 else (0.0, 0.5)
    if kappa <= 0.0:  # so far apart that float32 has no number for it; what is in between is far from both
        return high if m >= 0.5 else low
    log = math.log(min(kappa, 1.0))
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = nearness(m, log, a), nearness(m, log, b)
    for _ in range(SECTIONS):
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = nearness(m, log, a)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = nearness(m, log, b)
    return 0.5 * (low + high)


@inner
def nearness(m, log, h):
    """What `best_place` maximises; `log` is that of kappa."""
    return m * math.exp(log * (1.0 - h) * (1.0 - h)) + (1.0 - m) * math.exp(log * h * h)


@inner
def between(s, i, j, h):
    """The features of h x_i + (1 - h) x_j, without zeros, and the squared norm."""
    n_i = gather(s, i)
    indices_i, values_i = s.member_indices[:n_i].copy(), s.member_values[:n_i].copy()
    n_j = gather(s, j)
    indices, values = np.empty(n_i + n_j, np.int32), np.empty(n_i + n_j, np.float32)
    p, q, nnz, total = 0, 0, 0, 0.0
    while p < n_i or q < n_j:
        d_i = indices_i[p] if p < n_i else s.member_indices.shape[0]
        d_j = s.member_indices[q] if q < n_j else s.member_indices.shape[0]
        v = 0.0
        if d_i <= d_j:
            v += h * np.float64(values_i[p])
            p += 1
        if d_j <= d_i:
            v += (1.0 - h) * np.float64(s.member_values[q])
            q += 1
        indices[nnz], values[nnz] = min(d_i, d_j), np.float32(v)
        if values[nnz] != 0.0:
            total += np.float64(values[nnz]) * np.float64(values[nnz])
            nnz += 1
    return indices[:nnz], values[:nnz], np.float32(total)
