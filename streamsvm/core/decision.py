"""Decision values of many queries on the CPU: f(x) = sum_s alpha_s k(x_s, x) + b.

Queries with few zeros go through a matrix product.  The members are packed for it once, and a group of queries is taken
from its features to its decision values while both stay in the cache.  All other queries go row by row; for many of
them, the features of all compressed members are listed first.  Every way has the bits of a single prediction.

A `Decision` may be used by several threads at once: compiled code gets scratch memory of its own in every call.
"""

import threading

import numpy as np

from streamsvm.core import blocks
from streamsvm.core.blocks import LARGEST_SQUARED_NORM, Queries, expansion_sum, is_dense, prefers_product
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.compiling._tiles import TILE_ROWS, TILE_VECTORS, VECTOR_BYTES
from streamsvm.core.costs import ENTRY, LISTING, PRODUCT, SECOND_LEVEL, VALUE
from streamsvm.core.expansion import COLUMNS, COMPRESSED, EVALUATIONS, LISTED, SLOTS, STORAGE, WIDTH, Expansion
from streamsvm.core.inputs import plain
from streamsvm.core.kernels import Kernel, map_row
from streamsvm.core.products import multiply, pack, padded
from streamsvm.core.rows import kernel_row
from streamsvm.core.storage import list_features
from streamsvm.core.threads import SHARES, in_order, threads_for

# Of a group's inner products, and of twice a part of a table: a quarter and eight times as much take equally long.
GROUP_BYTES = SECOND_LEVEL


@compiled
def _decide_rows(s, kernel, indptr, indices, values, sq, b, out):
    n = s.counts[SLOTS]
    row = np.empty(n, np.float32)
    for t in range(sq.shape[0]):
        kernel_row(s, kernel, indices[indptr[t] : indptr[t + 1]], values[indptr[t] : indptr[t + 1]], sq[t], 0, n, row)
        out[t] = expansion_sum(s.alpha[:n], row) + b


@compiled
def _decide_products(kernel, panels, n_features, sq, alpha, X, sq_x, b, out):
    """Decide dense queries, group by group; one whose squared norm is too large, or NaN, gets NaN."""
    n, width, slots = alpha.shape[0], sq.shape[0], TILE_VECTORS * VECTOR_BYTES // 4
    fitting = min(out.shape[0], blocks.BLOCK, GROUP_BYTES // (4 * max(n_features, width, 1)))
    B = max(1, fitting // TILE_ROWS) * TILE_ROWS
    P = np.empty((B, width), np.float32)
    edge_rows, edge = np.empty((TILE_ROWS, n_features), np.float32), np.empty((TILE_ROWS, slots), np.float32)
    for first in range(0, out.shape[0], B):
        end = min(first + B, out.shape[0])
        multiply(X[first:end], panels, n_features, 0, n, edge_rows, edge, P)
        for t in range(first, end):
            if sq_x[t] < LARGEST_SQUARED_NORM:
                map_row(kernel, P[t - first], sq, sq_x[t])
                out[t] = expansion_sum(alpha, P[t - first, :n]) + b
            else:
                out[t] = np.nan


@compiled
def _squared_norms(table, sq_x):
    """Four chains of additions at a time; each is the one of a single query."""
    for t in range(0, table.shape[0] - 3, 4):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        r0, r1, r2, r3 = table[t], table[t + 1], table[t + 2], table[t + 3]
        for k in range(table.shape[1]):
            v0, v1 = np.float64(r0[k]), np.float64(r1[k])
            v2, v3 = np.float64(r2[k]), np.float64(r3[k])
            a, b, c, d = a + v0 * v0, b + v1 * v1, c + v2 * v2, d + v3 * v3
        sq_x[t], sq_x[t + 1], sq_x[t + 2], sq_x[t + 3] = a, b, c, d
    for t in range(table.shape[0] // 4 * 4, table.shape[0]):
        total = 0.0
        for k in range(table.shape[1]):
            v = np.float64(table[t, k])
            total += v * v
        sq_x[t] = total


Members = tuple[np.ndarray, int, np.ndarray, np.ndarray]


class Decision:
    """The decision function of an expansion.

    Parameters
    ----------
    s
        The expansion.
    kernel
        Its kernel.
    b
        The constant term.
    """

    def __init__(self, s: Expansion, kernel: Kernel, b: float) -> None:
        self.s, self.kernel, self.b = s, kernel, b
        self._lock = threading.Lock()
        self._packed: Members | None = None
        self._listed: Expansion | None = None

    @property
    def n_slots(self) -> int:
        """The kernel values of a query."""
        return int(self.s.counts[SLOTS])

    def of_queries(self, q: Queries) -> np.ndarray:
        """f(x) of each query, (B,) float64."""
        out = np.empty(len(q.sq))
        if prefers_product(self.s, q):
            members = self._members()
            _decide_products(self.kernel, *members, blocks.dense(q, members[1]), q.sq, self.b, out)
        else:
            s = self._with_lists(len(out))
            own = s._replace(counts=s.counts.copy(), query=np.zeros_like(s.query), sums=np.empty_like(s.sums))
            _decide_rows(own, self.kernel, *q, self.b, out)
        self._count(len(out))
        return out

    def takes(self, table: np.ndarray) -> bool:
        """Whether `of_table` is the faster way for these rows."""
        return self.s.counts[STORAGE] == COLUMNS and len(table) >= blocks.MIN_QUERIES and is_dense(table)

    def of_table(self, table: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """f(x) of the rows of a table whose features have these columns; NaN for too large rows.  On several cores."""
        out, members = np.empty(len(table)), self._members()
        n_features = members[1]
        source = None
        if not np.array_equal(columns[:n_features], np.arange(n_features)):
            known = np.flatnonzero((columns >= 0) & (columns < n_features))
            source = np.full(n_features, -1)
            source[columns[known]] = known

        def decide(begin: int) -> None:
            own = slice(begin, begin + at_once)
            with np.errstate(over="ignore"):  # of float64; such a row's norm is too large
                X = part = plain(table[own].astype(np.float32, copy=False))
            sq = np.empty(len(part), np.float32)
            _squared_norms(part, sq)
            if source is not None:
                X = part.take(source, axis=1)
                X[:, source < 0] = 0.0
            _decide_products(self.kernel, *members, X, sq, self.b, out[own])

        work = len(table) * (self.n_slots * (VALUE + PRODUCT * n_features) + ENTRY * table.shape[1])
        n_threads = threads_for(work)
        share = len(table) if n_threads == 1 else len(table) // (SHARES * n_threads)
        at_once = max(blocks.MIN_QUERIES, min(share, GROUP_BYTES // (8 * max(table.shape[1], 1))))
        for _ in in_order(decide, range(0, len(table), at_once), n_threads):
            pass
        self._count(len(out))
        return out

    def _with_lists(self, n_queries: int) -> Expansion:
        """The expansion; if it is compressed and there are many queries, with lists for all of its slots."""
        s, starts = self.s, self.s.starts
        n, listed = s.counts[SLOTS], s.counts[LISTED]
        if s.counts[STORAGE] != COMPRESSED or n_queries * (starts[n] - starts[listed]) < LISTING * starts[n]:
            return s
        with self._lock:
            if self._listed is None:
                self._listed = list_features(s._replace(counts=s.counts.copy()))
            return self._listed

    def _count(self, n_queries: int) -> None:
        with self._lock:
            self.s.counts[EVALUATIONS] += n_queries * self.n_slots

    def _members(self) -> Members:
        """The panels, their number of features, squared norms up to the panels' end, and coefficients."""
        with self._lock:
            if self._packed is None:
                s, n = self.s, self.n_slots
                n_features = min(int(s.counts[WIDTH]), len(s.columns))
                panels, sq = np.empty(n_features * padded(n, 4), np.float32), np.zeros(padded(n, 4), np.float32)
                pack(s.columns, n_features, 0, n, panels)
                sq[:n] = s.sq[:n]
                self._packed = panels, n_features, sq, s.alpha[:n]
            return self._packed
