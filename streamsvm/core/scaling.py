"""The scale of a stream's features: running moments, and the copy of them that is in use.

A model that scales keeps raw features beside the scaled ones.  While a stream goes on, the scale in use stays as it is,
so that new examples and members are scaled alike.  When the running moments have moved far from it, the scale is *due*:
the model takes a new copy and scales its members anew.

    w_p <- w_p (1 - 1/M) + 1                                        weight of the examples so far, the newest counts 1
    e = x_p - m_p, cut to +-5 deviations, at first to +-20          an outlier moves the moments a little only
    m_p <- m_p + e / w_p,    S_p <- S_p (1 - 1/M) + e (x_p - m_p)   S_p / w_p is the variance

    z_p = clip((x_p - shift_p) factor_p, -3, 3)                     a scaled feature

Which features are scaled?

- Those with a *place*: the first example named them, or at least half of the examples do since one did.  A hostile
  example with many names costs no more than its own features.
- Of these, all that had another value than 0 and 1.  The others are left alone.
- None while the input is *sparse*: its examples name few of the features that the example before named, as in text.

A feature that an example does not name is 0; one that gets a place late was 0 before.  The spread V is the sum of the
variances of the features as the kernel sees them, and of the mean square of those without a place, of which an example
adds 25 V at most once w > 20.  ``gamma="scale"`` is 1 / V.  V is the first example's square to begin with, and stays as
it is while nothing varies: so no kernel value is ever huge because the features are.

The scale is due when

- a feature that was 0 or 1 has another value, or the input has become sparse or ceased to be, at once;
- it rests on fewer than 500 examples, and there have been four times as many; the deviation of one scaled feature in
  20 has moved by a factor 2, or its mean by a deviation; V has moved by a factor 1.5; or a feature deserves a place;
  but not before as many examples have passed since the last time as the model had members then.  This bounds the work.

It depends on the raw features and on that count only, not on how a stream is cut into batches.

========= ========================================================== ======= ==========================
symbol    name                                                       shape   dtype
========= ========================================================== ======= ==========================
place     place of a feature's moments, or -1                        (D,)    int64
began     number of the first example that named the feature         (D,)    int64
named     number of the last one, counted from 1                     (D,)    int64
times     number of examples that named it                           (D,)    int64
feature   the feature that has a place                               (P,)    int64
w, m, S   weight, running mean, running variance times w             (P,)    float64
shift     mean in use; 0 for a feature that is left alone            (P,)    float64
factor    1 / deviation in use; 1 for one that is left alone         (P,)    float64
spread    variance in use; 0 for one that is left alone              (P,)    float64
varied    whether the feature had another value than 0 and 1         (P,)    uint8
x         the raw features of one example that have a place          (P,)    float64, scratch
totals    see the names below                                        (4,)    float64
counts    see the names below                                        (9,)    int64
========= ========================================================== ======= ==========================
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.core.blocks import Queries, cut, room, sort_features
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.compiling._reference import by_reference

MEMORY = 2000  # examples, M
OUTLIER = 5.0  # deviations
EARLY_OUTLIER = 20.0  # deviations, until the weight is `WARM`; the `FIRST` examples are not cut
FIRST, WARM = 3.0, 20.0
CLIP = 3.0
FACTOR = 2.0  # by which a deviation has moved
SPREAD_FACTOR = 1.5
FEW = 20  # One feature in so many hardly changes a distance.
CONSTANT = 1e-9  # a deviation, relative to the mean or to 1, below which a feature is constant
SPARSE_BELOW, DENSE_ABOVE = 0.4, 0.6  # share of an example's features that the example before it named too
YOUNG = 4  # A scale of n examples is renewed after n times as many, until n is large.
JUDGED_AFTER = 8  # examples: whether input is sparse
OLD_ENOUGH = 16  # examples since the first that named a feature: whether it deserves a place
AT_ONCE = 4096  # features that get a place when the stream begins; more have to deserve it

# totals; NORM: running mean of the squares that have no moments; its WEIGHT; SPREAD: V in use
WEIGHT, SHARE, NORM, SPREAD = range(4)
# counts; WAIT: examples before which the scale is not due, except at once; TRACKS: whether moments are kept at all;
# SCALES: whether features are scaled, or only V is of interest; ACTIVE: whether a feature is scaled by the scale in use
SEEN, WAIT, PLACES, TRACKS, SCALES, SPARSE, DUE, ACTIVE, RENEWED, COUNTS = range(10)


@by_reference
class Scaling(NamedTuple):
    """Running moments of features, and the scale in use; the symbol table is in the module's docstring."""

    place: np.ndarray
    began: np.ndarray
    named: np.ndarray
    times: np.ndarray
    feature: np.ndarray
    w: np.ndarray
    m: np.ndarray
    S: np.ndarray
    shift: np.ndarray
    factor: np.ndarray
    spread: np.ndarray
    varied: np.ndarray
    x: np.ndarray
    totals: np.ndarray
    counts: np.ndarray


OF_FEATURES = ("place", "began", "named", "times")
OF_PLACES = ("feature", "w", "m", "S", "shift", "factor", "spread", "varied")


class RawRows(NamedTuple):
    """A block of examples as the user gave them: unscaled, in compressed rows.

    indptr
        Where each example begins, (B+1,) int64.
    columns, values
        The features that it names, in any order: int64 columns, -1 for one without, and float64 values.
    sq
        Squared norms, (B,) float64.
    """

    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    sq: np.ndarray

    def part(self, t: int, end: int) -> "RawRows":
        """The examples t..end."""
        own = slice(self.indptr[t], self.indptr[end])
        return RawRows(self.indptr[t : end + 1] - own.start, self.columns[own], self.values[own], self.sq[t:end])


NO_ROWS = RawRows(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def empty(tracks: bool, scales: bool, n_features: int = 4, n_places: int = 4) -> Scaling:
    """A scale before the first example.

    Parameters
    ----------
    tracks
        Whether the moments are kept at all.
    scales
        Whether features are scaled; otherwise only their spread is of interest.
    n_features, n_places
        Room for so many features, and for so many that have a place.
    """
    D, P = n_features, n_places
    c = Scaling(
        place=np.full(D, -1, np.int64),
        **{name: np.zeros(D, np.int64) for name in ("began", "named", "times")},
        feature=np.zeros(P, np.int64),
        **{name: np.zeros(P) for name in ("w", "m", "S", "shift", "spread", "x")},
        factor=np.ones(P),
        varied=np.zeros(P, np.uint8),
        totals=np.zeros(4),
        counts=np.zeros(COUNTS, np.int64),
    )
    c.counts[TRACKS], c.counts[SCALES] = tracks, scales
    return c


def with_room(c: Scaling, n_features: int, n_places: int) -> Scaling:
    """A copy with room for so many features and places."""
    fresh = empty(bool(c.counts[TRACKS]), bool(c.counts[SCALES]), n_features, n_places)
    for names, used in ((OF_FEATURES, len(c.place)), (OF_PLACES, int(c.counts[PLACES]))):
        for name in names:
            getattr(fresh, name)[:used] = getattr(c, name)[:used]
    return fresh._replace(totals=c.totals.copy(), counts=c.counts.copy())


def copy(c: Scaling) -> Scaling:
    """A copy that can observe more while `c` stays as it is."""
    return Scaling(*(array.copy() for array in c))


# ----------------------------------------------------------------------------------------------------------- observing


@inner
def clipped(v):
    """A value as far as the kernel sees it while the scale is active."""
    return min(max(v, -CLIP), CLIP)


@inner
def _deserves_place(c, d):
    """Whether feature d, which has no place, is named often enough; asked while its latest example is taken in."""
    age = c.counts[SEEN] - c.began[d]
    return age >= OLD_ENOUGH and 2 * c.times[d] >= age


@inner
def _note_names(c, columns):
    """Note which features an example names.

    Returns the share that the last example named too, and whether one deserves a place.
    """
    seen, again, deserving = c.counts[SEEN], 0, False
    for t in range(columns.shape[0]):
        d = columns[t]
        if c.times[d] == 0:
            c.began[d] = seen
        again += c.named[d] == seen
        c.named[d] = seen + 1
        c.times[d] += 1
        deserving = deserving or (c.place[d] < 0 and _deserves_place(c, d))
    return again / columns.shape[0] if columns.shape[0] > 0 else 1.0, deserving


@inner
def _is_sparse(c, share):
    """Whether input counts as sparse, after an example with this share; the moments begin anew when that changes."""
    seen, before = c.counts[SEEN], c.counts[SPARSE]
    c.totals[SHARE] += (share - c.totals[SHARE]) / min(seen + 1.0, MEMORY)
    if seen < JUDGED_AFTER:
        return before
    now = np.int64(c.totals[SHARE] < (DENSE_ABOVE if before == 1 else SPARSE_BELOW))
    if now != before:
        c.totals[WEIGHT] = 0.0
        for p in range(c.counts[PLACES]):
            c.w[p], c.m[p], c.S[p] = 0.0, 0.0, 0.0
    return now


@inner
def scatter(c, columns, values):
    """Put the features of one example that have a place into `x`, and 0 for those that it does not name."""
    for p in range(c.counts[PLACES]):
        c.x[p] = 0.0
    for t in range(columns.shape[0]):
        if columns[t] >= 0 and c.place[columns[t]] >= 0:
            c.x[c.place[columns[t]]] = values[t]


@inner
def _squares_without_place(c, columns, values):
    """The sum of squares of the features without moments, as the kernel sees them; an outlier's is cut.

    In single precision, so that the order of the features does not matter.
    """
    total, most = 0.0, OUTLIER * OUTLIER * c.totals[SPREAD]
    for t in range(columns.shape[0]):
        if c.counts[SPARSE] == 1 or c.place[columns[t]] < 0:
            v = clipped(values[t]) if c.counts[ACTIVE] == 1 else values[t]
            total += v * v
    if c.totals[WEIGHT] > WARM and most > 0.0:
        total = min(total, most)
    return np.float64(np.float32(total))


@inner
def _move_moments(c):
    """Let the moments take in the example in `x`; whether a feature is to be scaled that was left alone so far."""
    keep, new = 1.0 - 1.0 / MEMORY, False
    for p in range(c.counts[PLACES]):
        v = c.x[p]
        if c.varied[p] == 0 and v != 0.0 and v != 1.0:
            c.varied[p], new = 1, c.counts[SCALES] == 1
        w, e = c.w[p] * keep + 1.0, v - c.m[p]
        most = OUTLIER if w > WARM else EARLY_OUTLIER
        if w > FIRST and e * e * w > most * most * c.S[p] and c.S[p] > 0.0:
            e = math.copysign(most * math.sqrt(c.S[p] / w), e)
            v = c.m[p] + e
        c.w[p] = w
        c.m[p] += e / w
        c.S[p] = c.S[p] * keep + e * (v - c.m[p])
    return new


@inner
def _wanted_spread(c, p):
    """The variance by which to scale the feature in place p now; 1 for a constant one, 0 to leave it alone."""
    if c.counts[SCALES] == 0 or c.counts[SPARSE] == 1 or c.varied[p] == 0:
        return 0.0
    variance, floor = c.S[p] / c.w[p], CONSTANT * max(1.0, abs(c.m[p]))
    return variance if variance > floor * floor else 1.0


@inner
def _spread(c):
    """V, if the features are scaled as they would be now."""
    total = c.totals[NORM]
    if c.counts[SPARSE] == 0:
        for p in range(c.counts[PLACES]):
            if c.w[p] > 0.0:
                wanted, variance = _wanted_spread(c, p), c.S[p] / c.w[p]
                total += variance if wanted == 0.0 else variance / wanted
    return total


@inner
def _has_moved(c):
    """Whether V, or the moments of one feature in `FEW`, have moved far from the scale in use."""
    V, V_used = _spread(c), c.totals[SPREAD]
    if SPREAD_FACTOR * V_used < V or V_used > SPREAD_FACTOR * V > 0.0:
        return True
    n_moved, n_scaled = 0, 0
    for p in range(c.counts[PLACES]):
        used = c.spread[p]
        if used > 0.0:
            wanted, off = _wanted_spread(c, p), c.m[p] - c.shift[p]
            n_scaled += 1
            n_moved += wanted > FACTOR * FACTOR * used or FACTOR * FACTOR * wanted < used or off * off > used
    return FEW * n_moved > n_scaled


@inner
def _is_too_young(c):
    """Whether the scale in use rests on few examples, of which there are many more by now."""
    seen, renewed = c.counts[SEEN], c.counts[RENEWED]
    return c.counts[SCALES] == 1 and renewed < MEMORY / YOUNG and seen >= YOUNG * renewed


@inner
def observe(c, columns, values):
    """Take in one learned example; the flag DUE tells afterwards whether to take a new scale into use."""
    if c.counts[TRACKS] == 0:
        return
    share, deserving = _note_names(c, columns)
    sparse = _is_sparse(c, share)
    at_once = sparse != c.counts[SPARSE] or c.counts[SEEN] == 0
    c.counts[SPARSE] = sparse
    c.totals[WEIGHT] = c.totals[WEIGHT] * (1.0 - 1.0 / MEMORY) + 1.0
    c.totals[NORM] += (_squares_without_place(c, columns, values) - c.totals[NORM]) / c.totals[WEIGHT]
    if sparse == 0:
        scatter(c, columns, values)
        at_once |= _move_moments(c)
    c.counts[SEEN] += 1
    if at_once:
        c.counts[DUE] = 1
    elif c.counts[SEEN] >= c.counts[WAIT]:
        c.counts[DUE] = np.int64(_has_moved(c) or _is_too_young(c) or (deserving and sparse == 0))


@compiled
def observe_block(c, indptr, columns, values, counted):
    """Take in those of a block's examples that count, until the scale is due; return how many examples were passed."""
    for t in range(counted.shape[0]):
        if counted[t]:
            observe(c, columns[indptr[t] : indptr[t + 1]], values[indptr[t] : indptr[t + 1]])
            if c.counts[DUE] == 1:
                return t + 1
    return counted.shape[0]


# ---------------------------------------------------------------------------------------------------- a scale into use


def renewed(c: Scaling, n_members: int) -> Scaling:
    """A copy whose running moments are in use, until at least as many examples have passed as there are members."""
    c = _with_new_places(c)
    _take_into_use(c, n_members)
    if c.counts[SEEN] == 1 and c.counts[PLACES] > 0:
        c.totals[NORM] = 0.0  # what it holds are the squares of features that have a place now
    return c


def _with_new_places(c: Scaling) -> Scaling:
    """A copy with places for the features that deserve one."""
    n, latest = int(c.counts[PLACES]), int(c.counts[SEEN]) - 1
    without = np.flatnonzero((c.place < 0) & (c.times > 0))
    age = latest - c.began[without]
    deserving = (age >= OLD_ENOUGH) & (2 * c.times[without] >= age)
    if latest == 0 and len(without) <= AT_ONCE:
        deserving[:] = True
    if c.counts[SPARSE] == 1:
        deserving[:] = False
    new, own = without[deserving], slice(n, n + int(np.count_nonzero(deserving)))
    c = with_room(c, len(c.place), len(c.m) if own.stop <= len(c.m) else 2 * own.stop)
    c.place[new], c.feature[own] = np.arange(own.start, own.stop), new
    c.w[own] = np.minimum(age[deserving], MEMORY)
    c.counts[PLACES] = own.stop
    return c


@compiled
def _take_into_use(c, n_members):
    c.counts[ACTIVE] = 0
    for p in range(c.counts[PLACES]):
        wanted = _wanted_spread(c, p)
        c.spread[p] = wanted
        c.shift[p] = c.m[p] if wanted > 0.0 else 0.0
        c.factor[p] = 1.0 / math.sqrt(wanted) if wanted > 0.0 else 1.0
        c.counts[ACTIVE] |= wanted > 0.0
    V = _spread(c)
    c.totals[SPREAD] = V if V > 0.0 else c.totals[SPREAD]
    c.counts[DUE], c.counts[RENEWED] = 0, c.counts[SEEN]
    c.counts[WAIT] = c.counts[SEEN] + max(1, n_members)


# ------------------------------------------------------------------------------------------------------------- scaling


@inner
def scaled(c, p, v):
    """The value that the kernel sees for the value v of the feature in place p, while the scale is active."""
    return np.float32(clipped((v - c.shift[p]) * c.factor[p]))


@inner
def compress_scaled(c, columns, values, indices, scaled_values):
    """Scale one query and compress it; return its number of features that are not 0, and its squared norm.

    A feature without a place is clipped.  One without a column counts in the norm only.
    """
    scatter(c, columns, values)
    nnz, rising, unknown = 0, True, 0.0
    for p in range(c.counts[PLACES]):
        v = scaled(c, p, c.x[p])
        if v != 0.0:
            rising = rising and (nnz == 0 or indices[nnz - 1] < c.feature[p])
            indices[nnz], scaled_values[nnz] = c.feature[p], v
            nnz += 1
    for t in range(columns.shape[0]):
        d, v = columns[t], np.float32(clipped(values[t]))
        if d < 0:
            unknown += np.float64(v) * np.float64(v)
        elif c.place[d] < 0 and v != 0.0:
            rising = rising and (nnz == 0 or indices[nnz - 1] < d)
            indices[nnz], scaled_values[nnz] = d, v
            nnz += 1
    if not rising:
        sort_features(indices[:nnz], scaled_values[:nnz])
    total = 0.0
    for k in range(nnz):
        total += np.float64(scaled_values[k]) * np.float64(scaled_values[k])
    return nnz, np.float32(total + unknown)


@compiled
def _scale_block(c, raw_indptr, columns, raw_values, indptr, indices, values, sq):
    nnz = 0
    for t in range(sq.shape[0]):
        begin, end = raw_indptr[t], raw_indptr[t + 1]
        n, sq[t] = compress_scaled(c, columns[begin:end], raw_values[begin:end], indices[nnz:], values[nnz:])
        nnz += n
        indptr[t + 1] = nnz
    return nnz


def scale_block(c: Scaling, raw: RawRows) -> Queries:
    """A block of examples as the engine's queries, while the scale is active."""
    q = room(len(raw.sq), len(raw.sq) * int(c.counts[PLACES]) + len(raw.columns))
    return cut(q, _scale_block(c, raw.indptr, raw.columns, raw.values, *q))
