"""Scaling examples: raw features to the values that the kernel sees."""

import numpy as np

from streamsvm.core.blocks import Queries, cut, room, sort_features
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.scaling.state import CUT, PLACES, RawRows, Scaling


@inner
def clipped(c, v):
    """A value as far as the kernel sees it while the scale is active."""
    return min(max(v, -c.limits[CUT]), c.limits[CUT])


@inner
def scatter(c, columns, values):
    """Put the features of one example that have a place into `x`, and 0 for those that it lacks; how many it has."""
    n = 0
    for p in range(c.counts[PLACES]):
        c.x[p] = 0.0
    for t in range(columns.shape[0]):
        if columns[t] >= 0 and c.place[columns[t]] >= 0:
            c.x[c.place[columns[t]]] = values[t]
            n += 1
    return n


@inner
def scaled(c, p, v):
    """The value that the kernel sees for the value v of the feature in place p, while the scale is active."""
    return np.float32(clipped(c, (v - c.shift[p]) * c.factor[p]))


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
        d, v = columns[t], np.float32(clipped(c, values[t]))
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
