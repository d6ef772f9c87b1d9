"""The cache of kernel rows: computed when a solver first asks for them, and kept while they fit.

A row K_i = (k(x_i, x_1), .., k(x_i, x_n)) depends on the examples and on the kernel, but not on labels, boxes or folds.
So one cache serves every problem over the same examples.  Rows are float64: float32 rows put a floor of
6e-8 sum |alpha| under the accuracy of every decision value, which at C = 1e6 is far above any tolerance.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
columns   features of dense examples, feature-major, zeros up to 4 | D     (D, N) float64
starts    where the non-zero features of a sparse example begin            (n+1,) int64
indices,  their numbers (rising) and values                                (nnz,) int32,
values                                                                     float64
lists     where the examples with a feature begin in the two below         (D+1,) int64
list_*    those examples and their values, feature after feature           (nnz,) int32, float64
sq        squared norms <x_i, x_i>                                         (n,) float64
diagonal  k(x_i, x_i)                                                      (n,) float64
rows      the rows that are kept                                           (R, n) float64
row_of    the place of an example's row in `rows`, -1: none                (n,) int64
member_of the example of a row                                             (R,) int64
used      the time of a row's last use                                     (R,) int64
========= ================================================================ ================

An inner product is one chain of fused additions in the order of the features: for one row, for a block of rows and for
a squared norm alike.  So the distance between equal examples is exactly 0, and a row does not depend on how it was
computed.  When the memory is full, the row that was not used for the longest time goes.
"""

from typing import Any, NamedTuple

import numpy as np

from streamsvm.core.compiling._jit import compiled, compiled_for, inner, inner_fma, inner_sum, shared
from streamsvm.core.compiling._simd import rounded_product
from streamsvm.core.kernels import RBF_KIND, Kernel, map_row
from streamsvm.core.rows import add_columns

FILLED, CLOCK, COMPUTED, COUNTS = range(4)
NO_ROW = np.int64(-1)  # a literal -1 would make numba compile everything twice


class Cache(NamedTuple):
    """Rows and the examples they belong to; the symbol table is in the module's docstring."""

    rows: np.ndarray
    row_of: np.ndarray
    member_of: np.ndarray
    used: np.ndarray
    counts: np.ndarray


class Store(NamedTuple):
    """Everything that compiled code needs to find or compute a row."""

    kernel: Kernel
    columns: np.ndarray
    starts: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    lists: np.ndarray
    list_slots: np.ndarray
    list_values: np.ndarray
    sq: np.ndarray
    diagonal: np.ndarray
    cache: Cache


# ---------------------------------------------------------------------------------------------------------------- a row


@inner_fma
def _add_lists(lists, list_slots, list_values, indices, values, out):
    """out = <x, x_s> for all s, from the list of examples of each feature of x."""
    for s in range(out.shape[0]):
        out[s] = 0.0
    for t in range(indices.shape[0]):
        v = values[t]
        for k in range(lists[indices[t]], lists[indices[t] + 1]):
            out[list_slots[k]] += v * list_values[k]


@inner_fma
def _squared_norm(values):
    """<x, x>, added up as in `add_columns` and `_add_lists`."""
    total = 0.0
    for t in range(values.shape[0]):
        total += values[t] * values[t]
    return total


@inner
def query_row(store, indices, values, sq, out):
    """out = k(x, x_s) for all s, for an x given by its non-zero features in order."""
    if store.columns.shape[0] > 0:
        add_columns(store.columns, indices, values, 0, out.shape[0], out)
    else:
        _add_lists(store.lists, store.list_slots, store.list_values, indices, values, out)
    map_row(store.kernel, out, store.sq, sq)


@inner
def compute_row(store, i, out):
    """out = k(x_i, x_s) for all s."""
    begin, end = store.starts[i], store.starts[i + 1]
    query_row(store, store.indices[begin:end], store.values[begin:end], store.sq[i], out)
    store.cache.counts[COMPUTED] += 1


@inner_fma
def add_four(out, a, b, c, d, row_a, row_b, row_c, row_d):
    """out += a row_a + b row_b + c row_c + d row_d."""
    for s in range(out.shape[0]):
        out[s] += ((a * row_a[s] + rounded_product(b, np.float64(row_b[s]))) + c * row_c[s]) + d * row_d[s]


@inner
def find_row(cache, i, pinned):
    """The place of the row of i, and whether it must be filled first.  The row `pinned` is not evicted."""
    cache.counts[CLOCK] += 1
    r = cache.row_of[i]
    if r >= 0:
        cache.used[r] = cache.counts[CLOCK]
        return r, False
    if cache.counts[FILLED] < cache.rows.shape[0]:
        r = cache.counts[FILLED]
        cache.counts[FILLED] += 1
    else:
        oldest = cache.counts[CLOCK]
        for q in range(cache.rows.shape[0]):
            if cache.used[q] < oldest and q != pinned:
                r, oldest = q, cache.used[q]
        cache.row_of[cache.member_of[r]] = -1
    cache.row_of[i], cache.member_of[r], cache.used[r] = r, i, cache.counts[CLOCK]
    return r, True


@shared
def stored_row(store, i, pinned):
    """The place of the row of i in the store's rows; computes the row if it is missing."""
    r, missing = find_row(store.cache, i, pinned)
    if missing:
        compute_row(store, i, store.cache.rows[r])
    return r


# -------------------------------------------------------------------------------------------- rows of a Store or others
#
# Paths and forced steps go over the examples of a store, or over the members of an expansion (`online.removal.forget`).


def row_at(examples: Any, i: Any, pinned: Any) -> int:
    """The place of the row of i in `rows_of`; computes a missing row, and does not evict the row `pinned`."""
    raise NotImplementedError


def places_of(examples: Any) -> np.ndarray:
    """The places of the rows that were asked for, (at least n,) integers; -1 for a missing row."""
    raise NotImplementedError


def rows_of(examples: Any) -> np.ndarray:
    """All rows in the cache, (R, at least n)."""
    raise NotImplementedError


def diagonal_of(examples: Any) -> np.ndarray:
    """k(x_i, x_i), (at least n,)."""
    raise NotImplementedError


@compiled_for(row_at, Store)
def _row_at(store, i, pinned):
    return stored_row(store, i, pinned)


@compiled_for(places_of, Store)
def _places_of(store):
    return store.cache.row_of


@compiled_for(rows_of, Store)
def _rows_of(store):
    return store.cache.rows


@compiled_for(diagonal_of, Store)
def _diagonal_of(store):
    return store.diagonal


# --------------------------------------------------------------------------------------------------- called from Python


@compiled
def self_products(kernel, starts, values, sq, diagonal):
    """Squared norms and k(x_i, x_i), with the rounding of the rows."""
    for i in range(sq.shape[0]):
        sq[i] = _squared_norm(values[starts[i] : starts[i + 1]])
        diagonal[i] = 1.0 if kernel.kind == RBF_KIND else sq[i]
    if kernel.kind != RBF_KIND:
        map_row(kernel, diagonal, sq, 0.0)


@compiled
def compute_rows(store, ids):
    """Bring the rows of `ids` into the cache, one by one."""
    for i in ids:
        stored_row(store, i, NO_ROW)


@compiled
def keep_products(store, ids, P):
    """Bring the rows of `ids` into the cache, from their inner products P with all examples."""
    for t in range(ids.shape[0]):
        r, missing = find_row(store.cache, ids[t], NO_ROW)
        if missing:
            map_row(store.kernel, P[t], store.sq, store.sq[ids[t]])
            for j in range(P.shape[1]):
                store.cache.rows[r, j] = P[t, j]
            store.cache.counts[COMPUTED] += 1


@compiled
def copy_rows(store, ids, out):
    for t in range(ids.shape[0]):
        r = stored_row(store, ids[t], NO_ROW)
        for j in range(out.shape[1]):
            out[t, j] = store.cache.rows[r, j]


@compiled
def put_square(store, part, ids, first, K):
    """Put the kernel values of these examples with each other into K, except those among the first ones.

    `part` has the features of these examples alone, for what no row has; without columns, whole rows are computed.
    """
    for a in range(first, ids.shape[0]):
        i = ids[a]
        r = store.cache.row_of[i]
        if r < 0 and part.columns.shape[0] > 0:
            begin, end = store.starts[i], store.starts[i + 1]
            query_row(part, store.indices[begin:end], store.values[begin:end], store.sq[i], K[a, : ids.shape[0]])
        else:
            row = store.cache.rows[r if r >= 0 else stored_row(store, i, NO_ROW)]
            for b in range(ids.shape[0]):
                K[a, b] = row[ids[b]]
    for a in range(first):
        for b in range(first, ids.shape[0]):
            K[a, b] = K[b, a]


@inner_sum
def dot(a, row):
    """The inner product; its order depends on the length only."""
    total = 0.0
    for t in range(a.shape[0]):
        total += a[t] * row[t]
    return total


@compiled
def expand(store, starts, indices, values, sq, alpha, out):
    """out_t = sum_s alpha_s k(x_t, x_s) for new examples x_t."""
    row = np.empty(alpha.shape[0])
    for t in range(sq.shape[0]):
        query_row(store, indices[starts[t] : starts[t + 1]], values[starts[t] : starts[t + 1]], sq[t], row)
        out[t] = dot(alpha, row)


def empty_cache(rows: np.ndarray, n: int) -> Cache:
    """An empty cache with this memory for the rows of n examples."""
    R = len(rows)
    return Cache(
        rows, np.full(n, -1, np.int64), np.zeros(R, np.int64), np.zeros(R, np.int64), np.zeros(COUNTS, np.int64)
    )


NO_ROWS = empty_cache(np.empty((0, 0)), 0)
