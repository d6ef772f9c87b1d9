"""The scale of a stream's features: running moments, and the copy of them that is in use.

A model that scales keeps raw features beside the scaled ones.  While a stream goes on, the scale in use stays as it is,
so that new examples and members are scaled alike.  When the running moments have moved far from it, the scale is *due*:
the model takes a new copy and scales its members anew.

    w <- w (1 - 1/M) + 1                                            weight of the examples so far, newest counts 1
    e = x_d - m_d, cut to +-5 deviations once w > 20                an outlier moves the moments a little only
    m_d <- m_d + e / w,    S_d <- S_d (1 - 1/M) + e (x_d - m_d)     S_d / w is the variance

    z_d = clip((x_d - shift_d) factor_d, -3, 3)                     a scaled feature
    z_d = x_d                                                       a feature that is left alone

Features that were only 0 or 1 so far are left alone.  So are all features of *sparse* input, whose examples name few of
the features that the example before them named; text is like that.  A feature that an example does not name is 0.

The spread V is the sum of the variances of the features as the kernel sees them.  ``gamma="scale"`` is 1 / V.

The scale is due when

- a feature that was 0 or 1 has another value, or the input has become sparse or ceased to be, at once;
- a deviation has moved by a factor 2, a mean by a deviation, or V by a factor 1.5, but not before as many examples have
  passed since the last time as the model had members then.  This bounds the work.

It depends on the raw features and on that count only, not on how a stream is cut into batches.

========= ========================================================== ======= ==========================
symbol    name                                                       shape   dtype
========= ========================================================== ======= ==========================
m, S      running mean; running variance times w                     (D,)    float64
shift     mean in use; 0 for a feature that is left alone            (D,)    float64
factor    1 / deviation in use; 1 for one that is left alone         (D,)    float64
spread    variance in use; 0 for one that is left alone              (D,)    float64
varied    whether the feature had another value than 0 and 1         (D,)    uint8
named     number of the last example that named the feature          (D,)    int64
x         the raw features of one example                            (D,)    float64, scratch
totals    see the names below                                        (4,)    float64
counts    see the names below                                        (8,)    int64
========= ========================================================== ======= ==========================
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.core._jit import compiled, inner
from streamsvm.core._reference import by_reference
from streamsvm.core.blocks import Queries, cut, room

MEMORY = 2000  # examples, M
OUTLIER = 5.0  # deviations
WARM = 20.0  # weight before which nothing is cut
CLIP = 3.0
FACTOR = 2.0  # by which a deviation has moved
SPREAD_FACTOR = 1.5
CONSTANT = 1e-9  # a deviation, relative to the mean or to 1, below which a feature is constant
SPARSE_BELOW, DENSE_ABOVE = 0.4, 0.6  # share of an example's features that the example before it named too
JUDGED_AFTER = 8  # examples

# totals
WEIGHT, SHARE, NORM, SPREAD = range(4)  # NORM: running mean of the squared norm, kept for sparse input only
# counts; WAIT: examples before which the scale is not due, except at once; TRACKS: whether moments are kept at all;
# SCALES: whether features are scaled, or only V is of interest; ACTIVE: whether a feature is scaled by the scale in use
SEEN, WAIT, WIDTH, TRACKS, SCALES, SPARSE, DUE, ACTIVE = range(8)


@by_reference
class Scaling(NamedTuple):
    """Running moments of features, and the scale in use; the symbol table is in the module's docstring."""

    m: np.ndarray
    S: np.ndarray
    shift: np.ndarray
    factor: np.ndarray
    spread: np.ndarray
    varied: np.ndarray
    named: np.ndarray
    x: np.ndarray
    totals: np.ndarray
    counts: np.ndarray


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


def empty(tracks: bool, scales: bool, n_features: int = 4) -> Scaling:
    """A scale before the first example.

    Parameters
    ----------
    tracks
        Whether the moments are kept at all.
    scales
        Whether features are scaled; otherwise only their spread is of interest.
    n_features
        Room for so many features.
    """
    D = n_features
    c = Scaling(
        m=np.zeros(D),
        S=np.zeros(D),
        shift=np.zeros(D),
        factor=np.ones(D),
        spread=np.zeros(D),
        varied=np.zeros(D, np.uint8),
        named=np.zeros(D, np.int64),
        x=np.zeros(D),
        totals=np.zeros(4),
        counts=np.zeros(8, np.int64),
    )
    c.counts[TRACKS], c.counts[SCALES] = tracks, scales
    return c


def grown(c: Scaling, n_features: int) -> Scaling:
    """The scale with room for more features."""
    fresh = empty(bool(c.counts[TRACKS]), bool(c.counts[SCALES]), n_features)
    for name in PER_FEATURE:
        getattr(fresh, name)[: len(c.m)] = getattr(c, name)
    return fresh._replace(totals=c.totals, counts=c.counts)


PER_FEATURE = ("m", "S", "shift", "factor", "spread", "varied", "named")


def copy(c: Scaling) -> Scaling:
    """A copy that can observe more while `c` stays as it is."""
    return Scaling(*(array.copy() for array in c))


# ----------------------------------------------------------------------------------------------------------- observing


@inner
def _share_named_before(c, columns):
    """The share of these features that the last example named too; note that this one names them."""
    seen, again = c.counts[SEEN], 0
    for t in range(columns.shape[0]):
        d = columns[t]
        again += c.named[d] == seen
        c.named[d] = seen + 1
        c.counts[WIDTH] = max(c.counts[WIDTH], d + 1)
    return again / columns.shape[0] if columns.shape[0] > 0 else 1.0


@inner
def _is_sparse(c, share):
    """Whether input counts as sparse, after an example with this share; the moments begin anew when that changes."""
    seen, before = c.counts[SEEN], c.counts[SPARSE]
    c.totals[SHARE] += (share - c.totals[SHARE]) / min(seen + 1.0, MEMORY)
    if seen < JUDGED_AFTER:
        return before
    limit = DENSE_ABOVE if before == 1 else SPARSE_BELOW
    now = np.int64(c.totals[SHARE] < limit)
    if now != before:
        c.totals[WEIGHT] = 0.0
        c.m[:], c.S[:] = 0.0, 0.0
    return now


@inner
def _move_moments(c, w):
    """Let the moments take in the example in `x`."""
    keep = 1.0 - 1.0 / MEMORY
    for d in range(c.counts[WIDTH]):
        v, e = c.x[d], c.x[d] - c.m[d]
        if w > WARM and e * e * w > OUTLIER * OUTLIER * c.S[d] and c.S[d] > 0.0:
            e = math.copysign(OUTLIER * math.sqrt(c.S[d] / w), e)
            v = c.m[d] + e
        c.m[d] += e / w
        c.S[d] = c.S[d] * keep + e * (v - c.m[d])


@inner
def _wanted_spread(c, d, w):
    """The variance by which to scale feature d now; 1 for a constant one, 0 to leave it alone."""
    if c.counts[SCALES] == 0 or c.counts[SPARSE] == 1 or c.varied[d] == 0:
        return 0.0
    variance = c.S[d] / w
    floor = CONSTANT * max(1.0, abs(c.m[d]))
    return variance if variance > floor * floor else 1.0


@inner
def _spread(c, w):
    """V: the sum of the variances of the features, scaled as they would be now."""
    if c.counts[SPARSE] == 1:
        return c.totals[NORM]
    total = 0.0
    for d in range(c.counts[WIDTH]):
        wanted = _wanted_spread(c, d, w)
        total += c.S[d] / w if wanted == 0.0 else c.S[d] / w / wanted
    return total


@inner
def _has_moved(c, w):
    """Whether a feature's scale has moved far from the one in use."""
    for d in range(c.counts[WIDTH]):
        used = c.spread[d]
        if used > 0.0:
            wanted, off = _wanted_spread(c, d, w), c.m[d] - c.shift[d]
            if wanted > FACTOR * FACTOR * used or FACTOR * FACTOR * wanted < used or off * off > used:
                return True
    return False


@inner
def observe(c, columns, values):
    """Take in one learned example; the flag DUE tells afterwards whether to take a new scale into use."""
    if c.counts[TRACKS] == 0:
        return
    now = _is_sparse(c, _share_named_before(c, columns))
    changed = now != c.counts[SPARSE]
    c.counts[SPARSE] = now
    w = c.totals[WEIGHT] * (1.0 - 1.0 / MEMORY) + 1.0
    c.totals[WEIGHT] = w
    if now == 1:
        sq = 0.0
        for t in range(values.shape[0]):
            sq += values[t] * values[t]
        c.totals[NORM] += (np.float64(np.float32(sq)) - c.totals[NORM]) / w
    else:
        scatter(c, columns, values)
        changed |= _note_varied(c, columns, values)
        _move_moments(c, w)
    c.counts[SEEN] += 1
    V, used = _spread(c, w), c.totals[SPREAD]
    waited = c.counts[SEEN] >= c.counts[WAIT]
    if changed or (waited and (SPREAD_FACTOR * used < V or used > SPREAD_FACTOR * V or _has_moved(c, w))):
        c.counts[DUE] = 1


@inner
def scatter(c, columns, values):
    """Put one example's features into `x`.

    Returns the number of features so far, with those that this example brings, and the sum of squares of its features
    without a column, clipped.
    """
    width, unknown = c.counts[WIDTH], 0.0
    c.x[:width] = 0.0
    for t in range(columns.shape[0]):
        d = columns[t]
        if d < 0:
            v = min(max(values[t], -CLIP), CLIP)
            unknown += v * v
            continue
        while width <= d:
            c.x[width] = 0.0
            width += 1
        c.x[d] = values[t]
    return width, unknown


@inner
def _note_varied(c, columns, values):
    """Note the features that are not only 0 or 1; whether there is a new one that is to be scaled."""
    new = False
    for t in range(columns.shape[0]):
        if c.varied[columns[t]] == 0 and values[t] != 0.0 and values[t] != 1.0:
            c.varied[columns[t]] = 1
            new = c.counts[SCALES] == 1
    return new


@compiled
def observe_block(c, indptr, columns, values):
    """Take in a block of examples until the scale is due; return how many."""
    for t in range(indptr.shape[0] - 1):
        observe(c, columns[indptr[t] : indptr[t + 1]], values[indptr[t] : indptr[t + 1]])
        if c.counts[DUE] == 1:
            return t + 1
    return indptr.shape[0] - 1


@compiled
def take_into_use(c, n_members):
    """Let the running moments be the scale in use, until at least as many examples have passed as there are members."""
    w = c.totals[WEIGHT]
    c.totals[SPREAD] = _spread(c, w)
    c.counts[ACTIVE] = 0
    for d in range(c.counts[WIDTH]):
        wanted = _wanted_spread(c, d, w)
        c.spread[d] = wanted
        c.shift[d] = c.m[d] if wanted > 0.0 else 0.0
        c.factor[d] = 1.0 / math.sqrt(wanted) if wanted > 0.0 else 1.0
        c.counts[ACTIVE] |= wanted > 0.0
    c.counts[DUE] = 0
    c.counts[WAIT] = c.counts[SEEN] + max(1, n_members)


# ------------------------------------------------------------------------------------------------------------- scaling


@inner
def scaled(c, d, v):
    """The value that the kernel sees for the value v of feature d, while the scale is active.

    A feature that is left alone is 0 or 1, or has just ceased to be.
    """
    return np.float32(min(max((v - c.shift[d]) * c.factor[d], -CLIP), CLIP))


@inner
def compress_scaled(c, columns, values, out_indices, out_values):
    """Scale one query and compress it; return its number of features that are not 0, and its squared norm."""
    width, total = scatter(c, columns, values)
    nnz = 0
    for d in range(width):
        v = scaled(c, d, c.x[d])
        if v != 0.0:
            total += np.float64(v) * np.float64(v)
            out_indices[nnz], out_values[nnz] = d, v
            nnz += 1
    return nnz, np.float32(total)


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
    width = max(int(c.counts[WIDTH]), int(raw.columns.max(initial=-1)) + 1)
    q = room(len(raw.sq), len(raw.sq) * width)
    return cut(q, _scale_block(c, raw.indptr, raw.columns, raw.values, *q))


@compiled
def scale_members(c, raw, Z, sq):
    """Scale the raw features of members, (n, D), into Z; and their squared norms."""
    for t in range(Z.shape[0]):
        total = 0.0
        for d in range(Z.shape[1]):
            v = scaled(c, d, raw[t, d])
            Z[t, d] = v
            total += np.float64(v) * np.float64(v)
        sq[t] = total
