"""Pair steps over the active examples of a problem: which pair, how far, and the gradient after it.

    alpha_i += mu,   alpha_j -= mu,   g -= mu (K_i - K_j)

Second order chooses the working set B = (i, j): i has the largest gradient that may rise, j the largest Newton gain
w^2 / (2 q) among those that may fall.  After a free step of this kind, the next one may *plan ahead*: it takes the step
on B with the best gain of B and a recent working set together, as if that set were to follow.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
members   numbers of the active examples; the arrays below are theirs      (m,) int64
alpha, g   coefficients and gradient                                        (m,) float64
lo,    box                                                              (m,) float64
hi
up, down  penalty: 0 if alpha may rise (fall), else -/+ FORBIDDEN           (m,) float64
diagonal  k(x_i, x_i)                                                      (m,) float64
short     rows over the active examples; unused if all are active          Cache
extremes  largest g that may rise, smallest g that may fall                (2,) float64
v         e_i - e_j for a working set B                                    --
w         v'g, the slope along B                                           float64
q         Q_BB = v'Kv, the curvature along B                               float64
mu        step size; w / q without bounds                                  float64
room      the longest step within the bounds                               float64
recent_*  i, j and q of the last working sets, the latest first            (4,)
tally     counts of steps of several kinds                                 (KINDS,) int64
========= ================================================================ ================

Sources: Fan, Chen, Lin, "Working set selection using second order information for training support vector machines",
JMLR 6 (2005), WSS 2.  Glasmachers, "The Planning-Ahead SMO Algorithm", Algorithms 3 to 5: when to plan, how far to
go, and the choice of the working set after a planned step.  Deviations:

- Algorithm 5's branch is printed the wrong way round.  As in the text, the set that was planned for is an extra
  candidate *after a planned step only*; the other reading takes up to 1.4 times as many steps.
- A planned step may gain nothing if it differs from the Newton step by more than ETA of it.  Then the gain within the
  bounds chooses the next working set, not the Newton gain, as the source's proof needs it.
- Of several recent working sets, it plans with the one of the largest common gain that no bound disturbs.  The source
  recommends N = 1; the default here is 2, which takes 0.50 to 0.63 times as many steps as none on the chess board and
  banana, and 1 takes 0.58 to 0.68.
- A recent working set whose slope has become negative is turned round; the source's step along it would be backwards.
- The over-step mu = 1.1 w / q, with which the source compares, is an option for steps that are not planned.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.batch.kernels.cache import CLOCK, NO_ROW, Cache, add_four, find_row, stored_row
from streamsvm.core.compiling._dispatch import of_numbers
from streamsvm.core.compiling._jit import compiled, inner, shared
from streamsvm.core.compiling._simd import fmax, fmin
from streamsvm.core.expansion import FORBIDDEN, set_penalties
from streamsvm.core.rounding import DUST

ETA = 0.9  # the source's
BLOCK = 64  # examples; the search for an extreme's place covers one block
TOP, BOTTOM = range(2)
STEPS, PLANNED, KINDS = range(3)
MAX_PLANNING = 3  # recent sets; more gain nothing


class View(NamedTuple):
    """A problem restricted to its active examples; the symbol table is in the module's docstring."""

    members: np.ndarray
    alpha: np.ndarray
    g: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    up: np.ndarray
    down: np.ndarray
    diagonal: np.ndarray
    extremes: np.ndarray
    short: Cache
    whole: bool  # whether all examples are active; then the rows are the store's


@of_numbers
class Rule(NamedTuple):
    """The options that pair steps need: the tolerance, the planning, and the factor of an over-step."""

    tol: float
    planning: int
    over_step: float


# ----------------------------------------------------------------------------------------------------------------- rows


@shared
def view_row(store, view, i, pinned):
    """The place in the rows of `view_cache` of the i-th active example's kernel values with all active ones."""
    if view.whole:
        return stored_row(store, i, pinned)
    r, missing = find_row(view.short, i, pinned)
    if missing:
        row, source = view.short.rows[r], store.cache.rows[stored_row(store, view.members[i], NO_ROW)]
        for t in range(row.shape[0]):
            row[t] = source[view.members[t]]
    return r


@inner
def view_cache(store, view):
    """The cache that has the rows of a view."""
    return store.cache if view.whole else view.short


# ------------------------------------------------------------------------------------------------------------- gradient
#
# From here on, functions take single arrays.  Compiled code counts the references to every array of a tuple, which
# costs more than a step over few examples.


@inner
def _update_block(g, up, down, mu, K_i, K_j):
    """Update a block of the gradient; return the largest g that may rise and the smallest that may fall."""
    largest, smallest = -FORBIDDEN, FORBIDDEN
    for t in range(g.shape[0]):
        v = g[t] - mu * (np.float64(K_i[t]) - np.float64(K_j[t]))  # exact for rows in float32 too
        g[t] = v
        largest = fmax(largest, v + up[t])
        smallest = fmin(smallest, v + down[t])
    return largest, smallest


@inner
def update(g, up, down, mu, K_i, K_j, extremes):
    """g -= mu (K_i - K_j); note the new extremes, and return the first example with the largest g that may rise."""
    top, bottom, top_block = -FORBIDDEN, FORBIDDEN, 0
    for b in range(0, g.shape[0], BLOCK):
        e = min(b + BLOCK, g.shape[0])
        largest, smallest = _update_block(g[b:e], up[b:e], down[b:e], mu, K_i[b:e], K_j[b:e])
        bottom = fmin(bottom, smallest)
        if largest > top:
            top, top_block = largest, b
    extremes[TOP], extremes[BOTTOM] = top, bottom
    return first_of_block(g, up, top_block, top)


@inner
def first_of_block(g, up, begin, top):
    """The first example of a block with this gradient, which may rise; 0 if there is none."""
    for t in range(begin, min(begin + BLOCK, g.shape[0])):
        if g[t] + up[t] == top:
            return t
    return 0


# ---------------------------------------------------------------------------------------------------------- working set


@inner
def _largest_gain(g_i, K_ii, g, down, diagonal, K_i):
    """Twice the largest Newton gain along i and an example of a block."""
    largest = 0.0
    for t in range(g.shape[0]):
        w = fmax(g_i - g[t] - down[t], 0.0)
        largest = fmax(largest, w * w / fmax(K_ii + diagonal[t] - 2.0 * K_i[t], DUST))
    return largest


@inner
def newton_partner(g, down, diagonal, i, K_i):
    """The j that may fall with the largest Newton gain along (i, j), and twice that gain; -1 if no g_j < g_i."""
    g_i, K_ii = g[i], diagonal[i]
    best, best_block = 0.0, -1
    for b in range(0, g.shape[0], BLOCK):
        e = min(b + BLOCK, g.shape[0])
        largest = _largest_gain(g_i, K_ii, g[b:e], down[b:e], diagonal[b:e], K_i[b:e])
        if largest > best:
            best, best_block = largest, b
    if best_block >= 0:
        for t in range(best_block, min(best_block + BLOCK, g.shape[0])):
            w = fmax(g_i - g[t] - down[t], 0.0)
            if w * w >= (1.0 - 1e-14) * best * fmax(K_ii + diagonal[t] - 2.0 * K_i[t], DUST):
                return t, best
    return -1, 0.0


@inner
def gain(w, q, room):
    """Twice the gain of the best step along a working set, as far as its bounds allow."""
    mu = min(w / q, room)
    return mu * (2.0 * w - q * mu)


@inner
def room_of(alpha, lo, hi, i, j):
    """The longest step by which alpha_i may rise and alpha_j fall."""
    return min(hi[i] - alpha[i], alpha[j] - lo[j])


@inner
def exact_partner(alpha, g, lo, hi, diagonal, i, K_i):
    """The j that may fall with the largest gain along (i, j) within the bounds, and twice that gain; -1 if none."""
    best, found = 0.0, -1
    for j in range(g.shape[0]):
        w = g[i] - g[j]
        if alpha[j] > lo[j] and w > 0.0:
            q = max(diagonal[i] + diagonal[j] - 2.0 * K_i[j], DUST)
            gained = gain(w, q, room_of(alpha, lo, hi, i, j))
            if gained > best:
                best, found = gained, j
    return found, best


@inner
def again(alpha, g, lo, hi, i, j, q, exact):
    """A recent working set in the direction of ascent, and twice its gain; -1 if its bounds forbid the step."""
    if g[i] < g[j]:
        i, j = j, i
    w, room = g[i] - g[j], room_of(alpha, lo, hi, i, j)
    if not room > 0.0:
        return i, j, -1.0
    return i, j, gain(w, q, room) if exact else w * w / q


# ------------------------------------------------------------------------------------------------------- planning ahead


@inner
def stays_free(alpha, lo, hi, a, i, j, mu, nu):
    """Whether the second step nu leaves alpha_a inside its box, after the first step mu along (i, j)."""
    value = alpha[a] + nu
    if a == i:
        value += mu
    if a == j:
        value -= mu
    return lo[a] < value < hi[a]


@inner
def plan(alpha, g, lo, hi, planning, recent_i, recent_j, recent_q, i, j, q, K_i, K_j):
    """The recent set with which a step along (i, j) gains most, and that step; -1 if bounds disturb all sets.

    Common gain of mu and of the Newton step nu = w_2' / q_2 that follows, w_2' = w_2 - c mu with c = v'K v_2:
    w mu - q mu^2 / 2 + q_2 nu^2 / 2.
    """
    chosen, best, best_mu = -1, -np.inf, 0.0
    w = g[i] - g[j]
    low, high = -room_of(alpha, lo, hi, j, i), room_of(alpha, lo, hi, i, j)
    for k in range(planning):
        a, b, q_2 = recent_i[k], recent_j[k], recent_q[k]
        if a < 0:
            break
        c = K_i[a] - K_i[b] - K_j[a] + K_j[b]
        determinant = q * q_2 - c * c
        if not determinant > DUST * q * q_2:
            continue
        w_2 = g[a] - g[b]
        mu = (q_2 * w - c * w_2) / determinant
        nu = (w_2 - c * mu) / q_2
        if not low < mu < high:
            continue
        if stays_free(alpha, lo, hi, a, i, j, mu, nu) and stays_free(alpha, lo, hi, b, i, j, mu, -nu):
            gained = w * mu - 0.5 * q * mu * mu + 0.5 * q_2 * nu * nu
            if gained > best:
                chosen, best, best_mu = k, gained, mu
    return chosen, best_mu


@inner
def no_recent_sets():
    """Room for the latest working sets: i, j and q of each; i is -1 in empty places."""
    return np.full(MAX_PLANNING + 1, -1), np.full(MAX_PLANNING + 1, -1), np.zeros(MAX_PLANNING + 1)


@inner
def remember(recent_i, recent_j, recent_q, i, j, q):
    """Make (i, j) the latest working set."""
    for k in range(recent_i.shape[0] - 1, 0, -1):
        recent_i[k], recent_j[k], recent_q[k] = recent_i[k - 1], recent_j[k - 1], recent_q[k - 1]
    recent_i[0], recent_j[0], recent_q[0] = i, j, q


# ---------------------------------------------------------------------------------------------------------------- steps


@inner
def move(alpha, lo, hi, i, j, mu, room):
    """alpha_i += mu, alpha_j -= mu, exactly onto a bound that is met; return whether anything changed."""
    old_i, old_j = alpha[i], alpha[j]
    alpha[i] = hi[i] if mu >= hi[i] - old_i else max(old_i + mu, lo[i])
    alpha[j] = lo[j] if mu >= old_j - lo[j] else min(old_j - mu, hi[j])
    return alpha[i] != old_i or alpha[j] != old_j


@inner
def move_within(alpha, lo, hi, up, down, i, j, mu, room):
    """`move`, and note which of the two may rise and fall then; return whether anything changed."""
    moved = move(alpha, lo, hi, i, j, mu, room)
    set_penalties(alpha, lo, hi, up, down, i)
    set_penalties(alpha, lo, hi, up, down, j)
    return moved


@inner
def step_along(alpha, g, lo, hi, up, down, diagonal, i, j, K_i, K_j, extremes):
    """Take the best step along a pair; the first example of the next one, or -1 if nothing has changed."""
    q = max(diagonal[i] + diagonal[j] - 2.0 * np.float64(K_i[j]), DUST)
    room = room_of(alpha, lo, hi, i, j)
    mu = min((g[i] - g[j]) / q, room)
    if not move_within(alpha, lo, hi, up, down, i, j, mu, room):
        return -1
    return update(g, up, down, mu, K_i, K_j, extremes)


@compiled
def iterate(store, view, rule, max_steps, tally):
    """Take steps until the extremes differ by at most tol, `max_steps` are done, or none helps; return how many."""
    cache = view_cache(store, view)
    rows, row_of, used, counts = cache.rows, cache.row_of, cache.used, cache.counts
    alpha, g, lo, hi = view.alpha, view.g, view.lo, view.hi
    up, down, diagonal, extremes = view.up, view.down, view.diagonal, view.extremes
    recent_i, recent_j, recent_q = no_recent_sets()
    planned, exact, free = -1, False, False
    i = update(g, up, down, 0.0, g, g, extremes)
    for step in range(max_steps):
        if not extremes[TOP] - extremes[BOTTOM] > rule.tol:
            return step
        # 1. The partner of i with the largest gain.
        r_i = row_of[i] if row_of[i] >= 0 else view_row(store, view, i, NO_ROW)
        if exact:
            j, gained = exact_partner(alpha, g, lo, hi, diagonal, i, rows[r_i])
        else:
            j, gained = newton_partner(g, down, diagonal, i, rows[r_i])
        # 2. After a planned step, the set that was planned for is a candidate too.
        if planned >= 0:
            k = planned + 1
            a, b, gained_again = again(alpha, g, lo, hi, recent_i[k], recent_j[k], recent_q[k], exact)
            if gained_again > gained:
                i, j = a, b
                r_i = row_of[i] if row_of[i] >= 0 else view_row(store, view, i, NO_ROW)
        if j < 0:
            return step
        r_j = row_of[j] if row_of[j] >= 0 else view_row(store, view, j, r_i)
        counts[CLOCK] += 1
        used[r_i] = used[r_j] = counts[CLOCK]
        K_i, K_j = rows[r_i], rows[r_j]
        # 3. How far: the Newton step, or one that plans for a recent set to follow.
        w, room = g[i] - g[j], room_of(alpha, lo, hi, i, j)
        q = max(diagonal[i] + diagonal[j] - 2.0 * K_i[j], DUST)
        planned, mu = -1, min(rule.over_step * w / q, room)
        if free and rule.planning > 0:
            planned, mu_planned = plan(alpha, g, lo, hi, rule.planning, recent_i, recent_j, recent_q, i, j, q, K_i, K_j)
            if planned >= 0:
                mu = mu_planned
        exact = planned >= 0 and not abs(mu * q - w) <= ETA * w
        free = planned < 0 and mu < room
        # 4. Take it, and find the next i while the gradient is updated.
        moved = move_within(alpha, lo, hi, up, down, i, j, mu, room)
        remember(recent_i, recent_j, recent_q, i, j, q)
        tally[STEPS] += 1
        tally[PLANNED] += int(planned >= 0)
        i = update(g, up, down, mu, K_i, K_j, extremes)
        if not moved and planned < 0:
            return step
    return max_steps


# ------------------------------------------------------------------------------------------------ many rows in one call


@compiled
def subtract_rows(store, view, places, change):
    """g -= sum_c change_c K_c over the active examples, for the active examples in these places."""
    g, rows, row_of = view.g, view_cache(store, view).rows, view_cache(store, view).row_of
    c = 0
    while c < places.shape[0]:
        if c + 4 <= places.shape[0]:
            i, j, k, h = row_of[places[c]], row_of[places[c + 1]], row_of[places[c + 2]], row_of[places[c + 3]]
            if min(i, j, k, h) >= 0:
                w = change[c : c + 4]
                add_four(g, -w[0], -w[1], -w[2], -w[3], rows[i], rows[j], rows[k], rows[h])
                c += 4
                continue
        i, a = places[c], change[c]
        row = rows[row_of[i] if row_of[i] >= 0 else view_row(store, view, i, NO_ROW)]
        for t in range(g.shape[0]):
            g[t] -= a * row[t]
        c += 1


@compiled
def subtract_from(store, ids, change, targets, g):
    """g_t -= sum_c change_c k(x_c, x_t) for the examples t in `targets`."""
    rows, row_of = store.cache.rows, store.cache.row_of
    for c in range(ids.shape[0]):
        i, a = ids[c], change[c]
        row = rows[row_of[i] if row_of[i] >= 0 else stored_row(store, i, NO_ROW)]
        for t in targets:
            g[t] -= a * row[t]


@compiled
def kernel_among(store, view, places, out):
    """out = k(x_f, x_h) for the active examples in these places."""
    rows, row_of = view_cache(store, view).rows, view_cache(store, view).row_of
    for a in range(places.shape[0]):
        i = places[a]
        row = rows[row_of[i] if row_of[i] >= 0 else view_row(store, view, i, NO_ROW)]
        for b in range(places.shape[0]):
            out[a, b] = row[places[b]]
