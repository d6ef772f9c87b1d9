"""Inner products of many dense queries with many members: a matrix product that keeps the order of additions.

    P_ts = sum_d X_td x_sd,     d rising

Members are packed into *panels*: as many slots as a tile is wide (see `_tiles`), feature after feature, so that a tile
reads memory in order.  The last panel is as narrow as whole vectors allow.  Every product has the bits of `kernel_row`,
and so does not depend on how queries are put together; it is as fast as BLAS, whose order depends on the shapes.

======== ============================================ ================ ==================
symbol   name                                         shape            dtype
======== ============================================ ================ ==================
X        queries                                      (B, D or more)   float32 or float64
columns  features of the members, by slot             (D or more, N)   as X
panels   those of the slots in use, packed            (D * padded,)    as X
out      P                                            (B, n or more)   as X
======== ============================================ ================ ==================
"""

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner, shared
from streamsvm.core.compiling._tiles import TILE_ROWS, TILE_VECTORS, VECTOR_BYTES, put_tile
from streamsvm.core.costs import SECOND_LEVEL
from streamsvm.core.rows import add_columns


def padded(n: int, itemsize: int) -> int:
    """The number of slots in panels of n slots: a whole number of vectors."""
    lanes = VECTOR_BYTES // itemsize
    return -(-n // lanes) * lanes


@compiled
def pack(columns, n_features, first, end, panels):
    """Pack the slots first..end, from the beginning of `panels` on; zeros fill the last panel up."""
    lanes = VECTOR_BYTES // panels.itemsize
    for slot in range(first, end, TILE_VECTORS * lanes):
        n = min(TILE_VECTORS * lanes, end - slot)
        width, begin = -(-n // lanes) * lanes, (slot - first) * n_features
        for k in range(n_features):
            # Slices, as indices that are sums keep the compiler from copying a vector at a time.
            source, target = columns[k, slot : slot + n], panels[begin + k * width : begin + (k + 1) * width]
            for s in range(n):
                target[s] = source[s]
            for s in range(n, width):
                target[s] = 0.0


@inner
def _put_edge(X, t, end, panels, begin, n_features, n_vectors, edge_rows, edge, out, slot, n):
    """The tile of queries t..end and n members, where X or `out` ends before a whole tile does."""
    if end - t < TILE_ROWS:
        edge_rows[:, :] = 0.0
        for r in range(end - t):
            for k in range(n_features):
                edge_rows[r, k] = X[t + r, k]
        put_tile(edge_rows, 0, panels, begin, n_features, n_vectors, edge, 0, 0)
    else:
        put_tile(X, t, panels, begin, n_features, n_vectors, edge, 0, 0)
    for r in range(end - t):
        for s in range(n):
            out[t + r, slot + s] = edge[r, s]


@inner
def _multiply_panel(X, panels, begin, n_features, slot, n, edge_rows, edge, out):
    """The products of all queries with the n members of a panel."""
    lanes = VECTOR_BYTES // panels.itemsize
    n_vectors = -(-n // lanes)
    fits = slot + n_vectors * lanes <= out.shape[1]
    for t in range(0, X.shape[0], TILE_ROWS):
        end = min(t + TILE_ROWS, X.shape[0])
        if fits and end - t == TILE_ROWS:
            put_tile(X, t, panels, begin, n_features, n_vectors, out, t, slot)
        else:
            _put_edge(X, t, end, panels, begin, n_features, n_vectors, edge_rows, edge, out, slot, n)


@shared
def multiply(X, panels, n_features, first, n, edge_rows, edge, out):
    """Put the products with n packed members into `out` from column `first` on; where it is padded, zeros follow."""
    slots = TILE_VECTORS * VECTOR_BYTES // panels.itemsize
    for slot in range(0, n, slots):
        begin, members = slot * n_features, min(slots, n - slot)
        _multiply_panel(X, panels, begin, n_features, first + slot, members, edge_rows, edge, out)


@compiled
def products(X, columns, out):
    """out[t, s] = <X[t], columns[:, s]>; the arrays have one precision, and `columns` all features of X."""
    n, n_features, slots = out.shape[1], X.shape[1], TILE_VECTORS * VECTOR_BYTES // out.itemsize
    at_once = max(1, SECOND_LEVEL // max(1, slots * n_features * out.itemsize)) * slots  # packed, they stay in a cache
    panels, edge = np.empty(min(at_once, n + slots) * n_features, out.dtype), np.empty((TILE_ROWS, slots), out.dtype)
    edge_rows = np.empty((TILE_ROWS, n_features), out.dtype)
    for first in range(0, n, at_once):
        end = min(first + at_once, n)
        pack(columns, n_features, first, end, panels)
        multiply(X, panels, n_features, first, end - first, edge_rows, edge, out)


@compiled
def add_rows(rows, places, weights, out):
    """out = sum_k weights[k] rows[places[k]]: of one query's features and their columns, what `products` has."""
    add_columns(rows, places, weights, 0, out.shape[0], out)
