"""What is read from a kernel matrix: the values of some examples with each other, and sums of rows."""

import numpy as np

from streamsvm.batch.kernels.cache import add_four
from streamsvm.core.compiling._jit import compiled


@compiled
def put_square(K, ids, first, out):
    """out = the values among these examples, except those among the first ones.

    Only rows of K are read: a column of a large matrix lies on as many pages as it has rows.  Four rows at a time keep
    the processor busy while it waits for memory.
    """
    m = ids.shape[0]
    a = first
    while a + 4 <= m:
        row_0, row_1, row_2, row_3 = K[ids[a]], K[ids[a + 1]], K[ids[a + 2]], K[ids[a + 3]]
        out_0, out_1, out_2, out_3 = out[a], out[a + 1], out[a + 2], out[a + 3]
        for b in range(m):
            t = np.uint64(ids[b])  # never negative
            out_0[b], out_1[b], out_2[b], out_3[b] = row_0[t], row_1[t], row_2[t], row_3[t]
        a += 4
    while a < m:
        row, target = K[ids[a]], out[a]
        for b in range(m):
            target[b] = row[ids[b]]
        a += 1
    for a in range(first):
        target = out[a]
        for b in range(first, m):
            target[b] = out[b, a]


def square_of(K: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """K[np.ix_(ids, ids)] of a symmetric matrix, in float64; several times as fast."""
    out = np.empty((len(ids), len(ids)))
    put_square(K, ids, 0, out)
    return out


@compiled
def subtract_rows(K, places, change, g):
    """g -= sum_c change_c K_c, four rows at a time; rows may be longer than g."""
    c = 0
    while c + 4 <= places.shape[0]:
        a, b, d, e = places[c], places[c + 1], places[c + 2], places[c + 3]
        add_four(g, -change[c], -change[c + 1], -change[c + 2], -change[c + 3], K[a], K[b], K[d], K[e])
        c += 4
    while c < places.shape[0]:
        row, a = K[places[c]], change[c]
        for t in range(g.shape[0]):
            g[t] -= a * np.float64(row[t])
        c += 1
