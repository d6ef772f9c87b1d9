"""The examples of a chunked solver in single precision, and what it computes from their features.

Two things are needed: the kernel values of some examples with others, and the sums

    out_t = sum_s c_s k(x_t, x_s)

over a block of examples t at a time.  A block of inner products P is computed first, then mapped to kernel values and
summed in float64.  There are three ways to P; which one is the fastest depends on the examples only:

- *BLAS*: the product of two dense matrices, if there are many features and most of them are not 0;
- *columns*: for each example, a few long vector additions, one for each feature that is not 0;
- *lists*: for each feature that is not 0, the examples that have it, if a matrix of columns would be large.

BLAS adds up in an order that depends on the processor.  So results agree to rounding in single precision, not to the
bit.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
X         dense examples; empty if they are compressed                     (n, D) float32
starts,   compressed examples: the features of example i are those from    (n+1,) int64,
indices,  starts[i] to starts[i+1], without zeros                          (nnz,) int32,
values                                                                     (nnz,) float32
sq        squared norms                                                    (n,) float32
columns   features of the examples s, feature-major                        (D, m) float32
lists,    where the examples s with a feature begin in the two below,      (D+1,) int64,
list_*    these examples and the feature's values                          int32, float32
P         inner products, then kernel values                               (B, m) float32
c         coefficients                                                     (m,) float64
========= ================================================================ ================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.blocks import BLOCK, expansion_sum
from streamsvm.core.centring import centre_of, centred
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.costs import SECOND_LEVEL
from streamsvm.core.inputs import narrow, without_duplicates
from streamsvm.core.kernels import Kernel, map_row, self_products
from streamsvm.core.mixed import DENSE_ENOUGH
from streamsvm.core.rows import add_columns, add_lists

MAX_COLUMNS = 4096  # features; a matrix of more columns would not stay in the cache
BLOCK_COLUMNS = SECOND_LEVEL // (2 * 4 * BLOCK)  # of P, which then fills half of the second-level cache
NO_COLUMNS = np.zeros((0, 0), np.float32)


class Others(NamedTuple):
    """The examples s, as one of the three ways to P needs them."""

    columns: np.ndarray
    lists: np.ndarray
    list_slots: np.ndarray
    list_values: np.ndarray


@compiled
def _multiply(starts, indices, values, rows, others, P):
    """P[t, s] = <x_t, x_s> for the examples t of `rows`."""
    for t in range(rows.shape[0]):
        begin, end = starts[rows[t]], starts[rows[t] + 1]
        x, v, out = indices[begin:end], values[begin:end], P[t]
        if others.columns.shape[0] > 0:
            add_columns(others.columns, x, v, 0, out.shape[0], out)
        else:
            out[:] = np.float32(0.0)
            add_lists(others.lists, others.list_slots, others.list_values, x, v, 0, out.shape[0], out)


@compiled
def _map_block(kernel, P, rows_sq, sq):
    """Turn inner products into kernel values."""
    for t in range(P.shape[0]):
        map_row(kernel, P[t], sq, rows_sq[t])


@compiled
def _add_sums(P, c, rows, out):
    """out_t += sum_s c_s k(x_t, x_s) for the examples t of `rows`."""
    for t in range(P.shape[0]):
        out[rows[t]] += expansion_sum(c, P[t])


@compiled
def _put_block(K, P, r, c):
    """Store kernel values whose first one is that of the members r and c, with r >= c at least; above and below."""
    above, below = K[r : r + P.shape[0], c : c + P.shape[1]], K[c : c + P.shape[1], r : r + P.shape[0]]
    for t in range(P.shape[0]):
        for s in range(P.shape[1]):
            above[t, s] = P[t, s]
    for s in range(P.shape[1]):
        for t in range(P.shape[0]):
            below[s, t] = P[t, s]


class Features:
    """The examples of one training set.

    Parameters
    ----------
    X
        Examples as rows: a 2-D array or a SciPy sparse matrix, finite numbers.
    kernel
        The kernel.
    """

    def __init__(self, X: Any, kernel: Kernel) -> None:
        self.kernel = kernel
        X, _ = narrow(X)
        self.n, self.n_features = X.shape
        self.kernel_evaluations = 0
        self._memory = np.empty(BLOCK * BLOCK_COLUMNS, np.float32)
        self._X = NO_COLUMNS
        if sp.issparse(X):
            X = without_duplicates(sp.csr_matrix(X))
        X = centred(X, centre_of(X, kernel))
        if sp.issparse(X) and X.nnz < DENSE_ENOUGH * self.n * self.n_features:
            self._compress(X)
        else:
            X = X.toarray() if sp.issparse(X) else X
            self._X = X = np.ascontiguousarray(X, np.float32)
            self.sq = np.einsum("ij,ij->i", X, X, dtype=np.float64).astype(np.float32)
            if np.count_nonzero(X) < DENSE_ENOUGH * X.size:
                self._X = NO_COLUMNS
                self._compress(sp.csr_matrix(X))
        self.diagonal = self_products(kernel, self.sq)

    def _compress(self, X: sp.csr_matrix) -> None:
        self._compressed = X = X.astype(np.float32, copy=False)
        self._lists = X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data
        squares = np.append(0.0, np.cumsum(np.square(X.data, dtype=np.float64)))
        self.sq = np.diff(squares[X.indptr]).astype(np.float32)

    def part(self, ids: np.ndarray) -> Features:
        """These examples alone."""
        return Features(self._X[ids] if len(self._X) else self._compressed[ids], self.kernel)

    def _others(self, ids: np.ndarray) -> Any:
        if len(self._X):
            return np.ascontiguousarray(self._X[ids].T)
        if self.n_features > MAX_COLUMNS:
            by_feature = self._compressed[ids].tocsc()
            lists = by_feature.indptr.astype(np.int64), by_feature.indices.astype(np.int32), by_feature.data
            return Others(NO_COLUMNS, *lists)
        some = self._compressed[ids]
        columns = np.zeros((max(self.n_features, 1), len(ids)), np.float32)
        columns[some.indices, np.repeat(np.arange(len(ids)), np.diff(some.indptr))] = some.data
        return Others(columns, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))

    def kernel_values(self, rows: np.ndarray, ids: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
        """k(x_t, x_s) for the examples t of `rows` and s of `ids`, in blocks: where each begins, and its values.

        The memory of a block is that of the block before.
        """
        parts = [(c, ids[c : c + BLOCK_COLUMNS]) for c in range(0, len(ids), BLOCK_COLUMNS)]
        tiles = [(c, self._others(part), self.sq[part]) for c, part in parts]
        at_once = BLOCK * max(1, BLOCK_COLUMNS // max(len(ids), 1))  # narrow blocks may be long
        for b in range(0, len(rows), at_once):
            part = rows[b : b + at_once]
            X = self._X[part] if len(self._X) else None
            for c, others, sq in tiles:
                P = self._memory[: len(part) * len(sq)].reshape(len(part), len(sq))
                if X is not None:
                    np.matmul(X, others, out=P)
                else:
                    _multiply(*self._lists, part, others, P)
                self.kernel_evaluations += P.size
                _map_block(self.kernel, P, self.sq[part], sq)
                yield b, c, P

    def put_square(self, ids: np.ndarray, first: int, K: np.ndarray) -> None:
        """Put the kernel values of these examples with each other into K, except those among the first ones."""
        for b, c, P in self.kernel_values(ids[first:], ids):
            _put_block(K, P, first + b, c)

    def sums(self, rows: np.ndarray, ids: np.ndarray, c: np.ndarray) -> np.ndarray:
        """sum_s c_s k(x_t, x_s) over the examples s of `ids`, (n,): for the examples t of `rows`, 0 for others."""
        out = np.zeros(self.n)
        for b, first, P in self.kernel_values(rows, ids):
            _add_sums(P, c[first : first + P.shape[1]], rows[b : b + len(P)], out)
        return out
