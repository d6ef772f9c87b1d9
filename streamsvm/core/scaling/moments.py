"""Observing examples: the running moments, and whether the scale is due."""

import math

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner, shared
from streamsvm.core.rounding import SUM_ROUNDING
from streamsvm.core.scaling.gaps import fill, is_unknown, note_value, note_values
from streamsvm.core.scaling.state import (
    ACTIVE,
    APART,
    DUE,
    FAR_SPREADS,
    FAR_SQUARE,
    JUDGED_AFTER,
    MEMORY,
    NORM,
    OLD_ENOUGH,
    PLACES,
    RENEWED,
    SCALES,
    SEEN,
    SHARE,
    SPAN,
    SPARSE,
    SPREAD,
    TRACKS,
    WAIT,
    WEIGHT,
    ZEROS,
)
from streamsvm.core.scaling.values import clipped, scatter

FACTOR = 2.0  # by which a deviation has moved
YOUNG = int(FACTOR**2)  # A scale is renewed after so many times its examples: a mean's error has fallen by `FACTOR`.
OUTLIER = 5.0  # deviations
FIRST, WARM = 3.0, 20.0  # weights: up to the first nothing is cut, and up to the second a deviation may be too small
EARLY_OUTLIER = YOUNG * OUTLIER
SPREAD_FACTOR = 1.5  # by which V has moved; with 1.25 or 2, predictions are mostly within half a point
FEW = 20  # One feature in so many hardly changes a distance.
SPARSE_BELOW = 0.4  # share of an example's features that the example before it named too


@inner
def _deserves_place(c, d):
    """Whether feature d, which has no place, is named often enough; asked while its latest example is taken in."""
    age = c.counts[SEEN] - c.began[d]
    return age >= OLD_ENOUGH and 2 * c.times[d] >= age


@inner
def _note_names(c, columns):
    """Note which features an example names, except those apart.

    Returns the share that the last example named too, and whether one deserves a place.
    """
    seen, n, again, deserving = c.counts[SEEN], 0, 0, False
    for t in range(columns.shape[0]):
        d = columns[t]
        if c.place[d] == APART:
            continue
        n += 1
        if c.times[d] == 0:
            c.began[d] = seen
        again += c.named[d] == seen
        c.named[d] = seen + 1
        c.times[d] += 1
        deserving = deserving or (c.place[d] < 0 and _deserves_place(c, d))
    return again / n if n > 0 else 1.0, deserving


@inner
def _is_sparse(c, share):
    """Whether input counts as sparse, after an example with this share; the moments begin anew when that changes."""
    seen, before = c.counts[SEEN], c.counts[SPARSE]
    c.totals[SHARE] += (share - c.totals[SHARE]) / min(seen + 1.0, MEMORY)
    if seen < JUDGED_AFTER:
        return before
    now = np.int64(c.totals[SHARE] < (1.0 - SPARSE_BELOW if before == 1 else SPARSE_BELOW))
    if now != before:
        c.totals[WEIGHT] = 0.0
        for p in range(c.counts[PLACES]):
            c.w[p], c.m[p], c.S[p] = 0.0, 0.0, 0.0
    return now


@inner
def _squares_without_place(c, columns, values):
    """The sum of squares of the features without moments, as the kernel sees them; an outlier's is cut.

    In single precision, so that the order of the features does not matter.
    """
    total, most = 0.0, OUTLIER * OUTLIER * c.totals[SPREAD]
    for t in range(columns.shape[0]):
        if c.counts[SPARSE] == 1 or c.place[columns[t]] < 0:
            v = clipped(c, values[t]) if c.counts[ACTIVE] == 1 else values[t]
            total += v * v
    if c.totals[WEIGHT] > WARM and most > 0.0:
        total = min(total, most)
    return np.float64(np.float32(total))


@inner
def _move_moments(c, is_whole, gaps):
    """Let the moments take in the example in `x`; whether a feature is to be scaled that was left alone so far."""
    keep, new, scales = 1.0 - 1.0 / c.counts[SPAN], False, c.counts[SCALES] == 1
    weights, means, S, x, varied = c.w, c.m, c.S, c.x, c.varied
    if is_whole and scales:
        note_values(c)
    for p in range(c.counts[PLACES]):
        v = x[p]
        if not is_whole:
            if c.named[c.feature[p]] != c.counts[SEEN] + 1:
                if gaps and is_unknown(c, p, False):
                    continue
            elif scales:
                note_value(c, p, v)
        if varied[p] == 0 and v != 0.0 and v != 1.0:
            varied[p], new = 1, scales
        w, e = weights[p] * keep + 1.0, v - means[p]
        most = OUTLIER if w > WARM else EARLY_OUTLIER
        if w > FIRST and e * e * w > most * most * S[p] and S[p] > 0.0:
            e = math.copysign(most * math.sqrt(S[p] / w), e)
            v = means[p] + e
        weights[p] = w
        means[p] += e / w
        S[p] = S[p] * keep + e * (v - means[p])
    return new


@inner
def is_far(c, off):
    """Whether a mean this far from the shift costs digits of distances that the kernel sees."""
    limit = c.limits[FAR_SQUARE] + c.limits[FAR_SPREADS] * c.totals[SPREAD]
    return off * off > limit > 0.0


@inner
def wanted_spread(c, p):
    """The variance by which to scale the feature in place p now; 1 for one to shift only, 0 to leave it alone."""
    if c.counts[SPARSE] == 1 or c.varied[p] == 0:
        return 0.0
    if c.counts[SCALES] == 0:
        return 1.0 if is_far(c, c.m[p]) else 0.0
    variance, floor = c.S[p] / c.w[p], SUM_ROUNDING * c.m[p]  # of a constant feature, rounding
    return variance if variance > floor * floor else 1.0


@inner
def sum_of_spreads(c):
    """V, if the features are scaled as they would be now."""
    total = c.totals[NORM]
    if c.counts[SPARSE] == 0:
        for p in range(c.counts[PLACES]):
            if c.w[p] > 0.0:
                wanted, variance = wanted_spread(c, p), c.S[p] / c.w[p]
                total += variance if wanted == 0.0 else variance / wanted
    return total


@inner
def keeps_gamma(c):
    """Whether features are shifted for a gamma that is a number: V does not matter then."""
    return 0.0 < c.limits[FAR_SQUARE] < np.inf


@inner
def _has_moved(c):
    """Whether V, or the moments of one feature in `FEW`, have moved far from the scale in use."""
    V, V_used = sum_of_spreads(c), c.totals[SPREAD]
    if not keeps_gamma(c) and (SPREAD_FACTOR * V_used < V or V_used > SPREAD_FACTOR * V > 0.0):
        return True
    if c.counts[SCALES] == 0:
        return _is_far_from_shift(c)
    n_moved, n_scaled = 0, 0
    for p in range(c.counts[PLACES]):
        used = c.spread[p]
        if used > 0.0:
            wanted, off = wanted_spread(c, p), c.m[p] - c.shift[p]
            n_scaled += 1
            n_moved += wanted > FACTOR * FACTOR * used or FACTOR * FACTOR * wanted < used or off * off > used
    return FEW * n_moved > n_scaled


@inner
def _is_far_from_shift(c):
    """Whether the mean of a feature is so far from its shift that distances lose digits."""
    for p in range(c.counts[PLACES]):
        if wanted_spread(c, p) > 0.0 and is_far(c, c.m[p] - c.shift[p]):
            return True
    return False


@inner
def _is_far_example(c, values):
    """Whether a feature of an example is far from 0, in single precision, so that it counts as one of a block."""
    for t in range(values.shape[0]):
        if is_far(c, np.float64(np.float32(values[t]))):
            return True
    return False


@inner
def _is_too_young(c):
    """Whether the scale in use rests on few examples, of which there are many more by now."""
    seen, renewed = c.counts[SEEN], c.counts[RENEWED]
    return c.counts[SCALES] == 1 and renewed < MEMORY / YOUNG and seen >= YOUNG * renewed


@shared
def observe(c, columns, values, gaps):
    """Take in one learned example; the flag DUE tells afterwards whether to take a new scale into use.

    `gaps` tells whether a feature that it does not name may be unknown.
    While no moments are kept, it is due when the first example far from 0 has come.
    """
    if c.counts[TRACKS] == 0:
        if keeps_gamma(c) and _is_far_example(c, values):
            c.counts[DUE] = 1
        return
    share, deserving = _note_names(c, columns)
    sparse = _is_sparse(c, share)
    at_once = sparse != c.counts[SPARSE] or c.counts[SEEN] == 0
    c.counts[SPARSE] = sparse
    c.totals[WEIGHT] = c.totals[WEIGHT] * (1.0 - 1.0 / c.counts[SPAN]) + 1.0
    c.totals[NORM] += (_squares_without_place(c, columns, values) - c.totals[NORM]) / c.totals[WEIGHT]
    if sparse == 0:
        is_whole = scatter(c, columns, values) == c.counts[PLACES]
        at_once |= _move_moments(c, is_whole, gaps)
    c.counts[SEEN] += 1
    if at_once:
        c.counts[DUE] = 1
    elif c.counts[SEEN] >= c.counts[WAIT]:
        c.counts[DUE] = np.int64(_has_moved(c) or _is_too_young(c) or (deserving and sparse == 0))


@compiled
def observe_block(c, indptr, columns, values, counted, gaps):
    """Take in those of a block's examples that count, until the scale is due; return how many examples were passed."""
    for t in range(counted.shape[0]):
        if counted[t]:
            observe(c, columns[indptr[t] : indptr[t + 1]], values[indptr[t] : indptr[t + 1]], gaps)
            if c.counts[DUE] == 1:
                return t + 1
    return counted.shape[0]


@compiled
def fill_block(c, indptr, columns, values, counted, marks, filled_indptr, filled_columns, filled_values):
    """Do what `observe_block` does, and fill the gaps of each example before it is taken in.

    `marks` tells for each example whether it marks a gap.
    """
    for t in range(counted.shape[0]):
        own, n = slice(indptr[t], indptr[t + 1]), filled_indptr[t]
        filled_indptr[t + 1] = n + fill(c, columns[own], values[own], marks[t], filled_columns[n:], filled_values[n:])
        if counted[t]:
            c.counts[ZEROS] |= marks[t]
            observe(c, columns[own], values[own], True)
            if c.counts[DUE] == 1:
                return t + 1
    return counted.shape[0]
