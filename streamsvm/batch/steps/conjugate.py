"""Pair steps along conjugate directions: fewer steps where many coefficients are free.

A plain step goes along its pair, v = e_i - e_j, and so spoils what the step before has gained along another pair.  Here
the direction of the last step is taken out of it:

    p <- v - gamma p,   Kp <- K_i - K_j - gamma Kp,   gamma = v'Kp / p'Kp        (the new p'K times the old p is 0)
    alpha += mu p,   g -= mu Kp,   mu = v'g / p'Kp,   p'Kp = Q_BB - gamma^2 (the old p'Kp)

After a full step along the old p, the slope along it is 0.  So the slope along the new p is v'g, the pair's, while the
curvature is at most Q_BB.  The gain is at least the Newton gain of the pair, and plain steps converge.

The direction begins anew with a pair if a bound would cut the step short, if the pair depends on the direction up to
rounding, and if the direction moves more than MAX_MOVED examples.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
places    examples that p moves; the first `count` of them are in use      (MAX_MOVED+2,) int64
parts     their parts of p                                                 (MAX_MOVED+2,) float64
product   Kp                                                               (m,) float64
curvature p'Kp                                                             float64
gamma     share of the old p that is taken out                             float64
others    as in `pairs`
========= ================================================================ ================

Source: Torres-Barran, Alaiz, Dorronsoro, "Faster SVM training via conjugate SMO", Pattern Recognition 111 (2021).
Deviations: the bound on the number of examples, because each step looks at all that p moves; and a step that a bound
would cut short is a plain one.
"""

import math

import numpy as np

from streamsvm.batch.steps.pairs import BLOCK, BOTTOM, TOP, first_of_block, move_within, room_of, update
from streamsvm.core.compiling._jit import inner, shared
from streamsvm.core.compiling._simd import fmax, fmin
from streamsvm.core.expansion import FORBIDDEN, set_penalties
from streamsvm.core.rounding import DUST, KERNEL_ROUNDING

MAX_MOVED = 16  # with 64 or 256, as many steps of a higher cost
LEAST_CURVATURE = math.sqrt(KERNEL_ROUNDING)  # of the pair's: half of the digits of kernel values are left then


@inner
def _places_of(alpha, lo, hi, places, parts, count, i, j, gamma, mu):
    """The places of i and j in the new direction, which begin at `count`; -1 if a step mu leaves a box."""
    at_i, at_j = -1, -1
    for a in range(count):
        t, part = places[a], -gamma * parts[a]
        if t == i:
            at_i, part = a, part + 1.0
        if t == j:
            at_j, part = a, part - 1.0
        if not lo[t] < alpha[t] + mu * part < hi[t]:
            return -1, -1
    if at_i < 0:
        if not alpha[i] + mu < hi[i]:
            return -1, -1
        at_i = count
    if at_j < 0:
        if not alpha[j] - mu > lo[j]:
            return -1, -1
        at_j = max(count, at_i + 1)
    return at_i, at_j


@inner
def _turn(alpha, places, parts, count, at_i, at_j, i, j, gamma, mu):
    """p <- v - gamma p, and a step mu along it; return how many examples it moves."""
    for a, t in ((at_i, i), (at_j, j)):
        if a >= count:
            places[a], parts[a] = t, 0.0
    count = max(count, at_i + 1, at_j + 1)
    for a in range(count):
        parts[a] *= -gamma
    parts[at_i] += 1.0
    parts[at_j] -= 1.0
    for a in range(count):
        alpha[places[a]] += mu * parts[a]
    return count


@inner
def _update_block(g, up, down, product, gamma, mu, K_i, K_j):
    """Update a block of Kp and the gradient; return the largest g that may rise and the smallest that may fall."""
    largest, smallest = -FORBIDDEN, FORBIDDEN
    for t in range(g.shape[0]):
        k = np.float64(K_i[t]) - np.float64(K_j[t]) - gamma * product[t]
        product[t] = k
        v = g[t] - mu * k
        g[t] = v
        largest = fmax(largest, v + up[t])
        smallest = fmin(smallest, v + down[t])
    return largest, smallest


@inner
def _update(g, up, down, product, gamma, mu, K_i, K_j, extremes):
    """Update Kp, and the gradient as `pairs.update` does."""
    top, bottom, top_block = -FORBIDDEN, FORBIDDEN, 0
    for b in range(0, g.shape[0], BLOCK):
        e = min(b + BLOCK, g.shape[0])
        largest, smallest = _update_block(g[b:e], up[b:e], down[b:e], product[b:e], gamma, mu, K_i[b:e], K_j[b:e])
        bottom = fmin(bottom, smallest)
        if largest > top:
            top, top_block = largest, b
    extremes[TOP], extremes[BOTTOM] = top, bottom
    return first_of_block(g, up, top_block, top)


@shared
def conjugate_step(
    alpha, g, lo, hi, up, down, diagonal, i, j, K_i, K_j, extremes, places, parts, product, count, curvature
):
    """Take the best step along a pair, made conjugate to the last one where that is possible.

    Return the first example of the next pair, -1 if nothing has changed; how many examples the direction moves, 0 if
    the next one has to begin anew; and its curvature.
    """
    w, q = g[i] - g[j], max(diagonal[i] + diagonal[j] - 2.0 * np.float64(K_i[j]), DUST)
    if 0 < count <= MAX_MOVED:
        gamma = (product[i] - product[j]) / curvature
        rest = q - gamma * gamma * curvature
        mu = w / rest
        if rest > LEAST_CURVATURE * q:
            at_i, at_j = _places_of(alpha, lo, hi, places, parts, count, i, j, gamma, mu)
            if at_i >= 0:
                count = _turn(alpha, places, parts, count, at_i, at_j, i, j, gamma, mu)
                set_penalties(alpha, lo, hi, up, down, i)
                set_penalties(alpha, lo, hi, up, down, j)
                return _update(g, up, down, product, gamma, mu, K_i, K_j, extremes), count, rest
    room = room_of(alpha, lo, hi, i, j)
    mu = min(w / q, room)
    if not move_within(alpha, lo, hi, up, down, i, j, mu, room):
        return -1, 0, 0.0
    if not mu < room:
        return update(g, up, down, mu, K_i, K_j, extremes), 0, 0.0
    places[0], places[1], parts[0], parts[1] = i, j, 1.0, -1.0
    return _update(g, up, down, product, 0.0, mu, K_i, K_j, extremes), 2, q
