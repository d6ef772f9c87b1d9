"""Blocks of queries: from features to kernel values.

A block of queries is in compressed rows (`Queries`): without explicit zeros, feature numbers rising.  If most features
are not 0, one float32 matrix product gives the inner products with all members.  If more than half are 0 (measured),
the long vector additions of `rows` are faster.  Both give the same bits, so a model does not depend on how
a stream is cut into blocks.

========  ============================================  =======  ================
symbol    name                                          shape    dtype
========  ============================================  =======  ================
columns   feature number of each input, -1: unknown     (d,)     int64
indptr    where each query begins                       (B+1,)   int64
indices   feature numbers                               (nnz,)   int32
values    feature values                                (nnz,)   float32
sq        squared norms, unknown features included      (B,)     float32
P         inner products of the block with the members  (B, n)   float32
G         inner products within the block               (B, B)   float32
========  ============================================  =======  ================
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner, inner_sum
from streamsvm.core.costs import FEW_FEATURES, SECOND_LEVEL
from streamsvm.core.expansion import COLUMNS, SLOTS, STORAGE, Expansion
from streamsvm.core.products import products

BLOCK = 256  # queries per block
LARGEST_SQUARED_NORM = 1e36  # of a query: twice a sum of two must stay below float32's 3e38
LARGEST_FEATURE = math.sqrt(LARGEST_SQUARED_NORM)
MIN_QUERIES = 8  # for fewer, or fewer features, packing costs more than a matrix product gains
MIN_DENSITY = 0.3  # of non-zero features: at 0.2 both ways take equally long, at 0.5 a product takes half the time
MIN_MEMBERS = SECOND_LEVEL // 16  # features of all members; fewer stay in the cache while a block is learned row by row


class Queries(NamedTuple):
    """A block of queries in compressed rows; the symbol table is in the module's docstring."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    sq: np.ndarray

    def part(self, t: int, end: int) -> "Queries":
        """The queries t..end."""
        if end - t == len(self.sq):
            return self
        own = slice(self.indptr[t], self.indptr[end])
        return Queries(self.indptr[t : end + 1] - own.start, self.indices[own], self.values[own], self.sq[t:end])

    @property
    def width(self) -> int:
        """The lowest feature number above those of all queries."""
        return int(self.indices.max(initial=-1)) + 1

    def n_within(self, width: int) -> int:
        """The number of queries before the first with a feature number of at least `width`."""
        beyond = self.indices >= width
        return int(np.searchsorted(self.indptr, np.argmax(beyond), "right")) - 1 if beyond.any() else len(self.sq)


# ----------------------------------------------------------------------------------------------------- features to rows


@inner
def sort_features(indices, values):
    """Put the features of a query into order; counting bytes takes long, however few there are."""
    if indices.shape[0] <= FEW_FEATURES:
        insert_features(indices, values)
    else:
        sort_by_bytes(indices, values)


@inner
def insert_features(indices, values):
    """Insertion sort."""
    for t in range(1, indices.shape[0]):
        column, value, k = indices[t], values[t], t
        while k > 0 and indices[k - 1] > column:
            indices[k], values[k] = indices[k - 1], values[k - 1]
            k -= 1
        indices[k], values[k] = column, value


@inner
def sort_by_bytes(indices, values):
    """Radix sort, the lowest byte first: its time does not depend on the order."""
    n, largest, shift = indices.shape[0], 0, 0
    for t in range(n):
        largest = max(largest, indices[t])
    from_indices, from_values = np.empty(n, indices.dtype), np.empty(n, values.dtype)
    while largest >> shift > 0:
        places = np.zeros(257, np.int64)
        for t in range(n):
            from_indices[t], from_values[t] = indices[t], values[t]
            places[((indices[t] >> shift) & 255) + 1] += 1
        for b in range(256):
            places[b + 1] += places[b]
        for t in range(n):
            b = (from_indices[t] >> shift) & 255
            indices[places[b]], values[places[b]] = from_indices[t], from_values[t]
            places[b] += 1
        shift += 8


@inner
def compress_example(s, columns, x):
    """Compress one query into the expansion's member buffers; return its number of features and squared norm."""
    indices, values = s.member_indices, s.member_values
    nnz, total, rising = 0, 0.0, True
    for d in range(x.shape[0]):
        v = np.float32(x[d])
        if v != 0.0:
            total += np.float64(v) * np.float64(v)
            if columns[d] >= 0:
                rising = rising and (nnz == 0 or indices[nnz - 1] < columns[d])
                indices[nnz], values[nnz] = columns[d], v
                nnz += 1
    if not rising:
        sort_features(indices[:nnz], values[:nnz])
    return nnz, np.float32(total)


@inner_sum
def _sum_of_squares(values):
    total = 0.0
    for t in range(values.shape[0]):
        total += values[t] * values[t]
    return total


@compiled
def squared_norms(indptr, values, sq):
    """Put the squared norm of each of some compressed rows into `sq`."""
    for t in range(sq.shape[0]):
        sq[t] = _sum_of_squares(values[indptr[t] : indptr[t + 1]])


@compiled
def compress(raw_indptr, columns, raw_values, rows, indptr, indices, values, sq):
    """Compress some rows: without zeros, in the order of the columns, without features whose column is -1.

    Branches on no value: where zeros and others alternate, wrong branch guesses take longer than the work.  What is
    read and written begins at 0: the compiler checks a computed index for being negative, which takes longer, too.
    """
    nnz = 0
    for t in range(rows.shape[0]):
        given, end = raw_indptr[rows[t]], raw_indptr[rows[t] + 1]
        own_columns, own_values = columns[given:end], raw_values[given:end]
        kept, kept_values = indices[nnz:], values[nnz:]
        n, total, last, falls = 0, 0.0, -1, False
        for p in range(end - given):
            kept[n], kept_values[n] = own_columns[p], own_values[p]
            v = np.float64(kept_values[n])
            total += v * v
            n += int(v != 0.0) & int(own_columns[p] >= 0)
        for k in range(n):
            falls |= kept[k] <= last
            last = kept[k]
        if falls:
            sort_features(kept[:n], kept_values[:n])
        nnz += n
        indptr[t + 1], sq[t] = nnz, total
    return nnz


def room(n_queries: int, nnz: int) -> Queries:
    """Queries yet to be written, with room for `nnz` features."""
    return Queries(
        np.zeros(n_queries + 1, np.int64),
        np.empty(nnz, np.int32),
        np.empty(nnz, np.float32),
        np.empty(n_queries, np.float32),
    )


def cut(q: Queries, nnz: int) -> Queries:
    """The queries without the room that was not needed."""
    return Queries(q.indptr, q.indices[:nnz], q.values[:nnz], q.sq)


def queries_of(indptr: np.ndarray, columns: np.ndarray, values: np.ndarray) -> Queries:
    """Rows whose features have these columns, as queries; -1 is the column of an unknown feature."""
    n = len(indptr) - 1
    q = room(n, len(columns))
    return cut(q, compress(indptr, columns, values, np.arange(n), *q))


def is_binary_block(q: Queries) -> bool:
    """Whether every feature of every query is 0 or 1."""
    return bool(np.all(q.values == 1.0))


# ------------------------------------------------------------------------------------------------------ inner products


NO_PRODUCTS = np.empty((0, 0), np.float32)


def by_fours(n: int) -> int:
    """The next multiple of four."""
    return -(-n // 4) * 4


@compiled
def _put_dense(indptr, indices, values, X):
    """Put compressed rows into the rows of a matrix, without features beyond it."""
    X[:, :] = 0.0
    for t in range(indptr.shape[0] - 1):
        for k in range(indptr[t], indptr[t + 1]):
            if indices[k] < X.shape[1]:
                X[t, indices[k]] = values[k]


def dense(q: Queries, n_features: int) -> np.ndarray:
    """The queries as a matrix."""
    X = np.empty((len(q.sq), n_features), np.float32)
    _put_dense(q.indptr, q.indices, q.values, X)
    return X


def is_dense(table: np.ndarray) -> bool:
    """Whether so few numbers in the first rows of a table are 0 that a matrix product is the faster way."""
    first = table[:BLOCK]
    return bool(np.count_nonzero(first) >= MIN_DENSITY * first.size)


def prefers_product(s: Expansion, q: Queries, within: bool = False) -> bool:
    """Whether a matrix product is the faster way to the inner products of these queries, and `within` them."""
    if s.counts[STORAGE] != COLUMNS or q.sq.shape[0] < MIN_QUERIES:
        return False
    used = q.width
    if within and used * s.counts[SLOTS] < MIN_MEMBERS:
        return False
    return used > 0 and len(q.indices) >= MIN_DENSITY * used * q.sq.shape[0]


def inner_products(s: Expansion, q: Queries, within: bool) -> tuple[np.ndarray, np.ndarray]:
    """P and, if `within`, G for a block of queries; G is empty otherwise."""
    X = dense(q, q.width)
    P = np.empty((len(X), int(s.counts[SLOTS])), np.float32)
    products(np.ascontiguousarray(X[:, : s.columns.shape[0]]), s.columns, P)
    if not within:
        return P, NO_PRODUCTS
    G = np.empty((len(X), len(X)), np.float32)
    products(X, np.ascontiguousarray(X.T), G)
    return P, G


# ----------------------------------------------------------------------------------------------------- decision values


@inner_sum
def expansion_sum(alpha, row):
    """sum_s alpha_s K_s."""
    f = 0.0
    for t in range(row.shape[0]):
        f += alpha[t] * np.float64(row[t])
    return f
