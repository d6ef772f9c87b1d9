"""The kernel matrix of all examples in single precision, for one gamma after another.

The kernels are functions of the inner product and of the squared norms.  So what takes time is computed once:

    S_ij = |x_i - x_j|^2    for the RBF kernel
    S_ij = <x_i, x_j>       for all others

in float64, and kept in float32.  A distance is rounded after the subtraction, so it is as exact where examples are far
from the origin.  The kernel matrix for a gamma is then a function of S, value by value.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
X         examples                                                         (n, D) float64
sq        squared norms                                                    (n,) float64
S         squared distances, or inner products                             (n, n) float32
K         kernel matrix                                                    (n, n) float32
========= ================================================================ ================

BLAS adds up in an order that depends on the processor.  So results agree to rounding in single precision, not to the
bit.
"""

import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamsvm.batch.kernels.features import Features
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.batch.kernels.square import put_square, subtract_rows
from streamsvm.core.blocks import BLOCK
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.exponentials import exp32
from streamsvm.core.kernels import RBF_KIND, Kernel, map_row, self_products
from streamsvm.core.threads import one_blas_thread

BYTES_EACH = 10  # for a pair of examples: S, K, and the members' part of K


@compiled
def _map_matrix(kernel, S, sq, K):
    """Turn squared distances or inner products into kernel values."""
    gamma = np.float32(-kernel.gamma)
    for i in range(S.shape[0]):
        row, out = S[i], K[i]
        if kernel.kind == RBF_KIND:
            for j in range(row.shape[0]):
                out[j] = exp32(gamma * row[j])
        else:
            for j in range(row.shape[0]):
                out[j] = row[j]
            map_row(kernel, out, sq, sq[i])


@compiled
def _gather(K, rows, ids, out):
    """out = the values of these rows and columns."""
    for a in range(rows.shape[0]):
        row = K[rows[a]]
        for b in range(ids.shape[0]):
            out[a, b] = row[ids[b]]


@compiled
def _put_block(P, sq, first, is_distance, S):
    """Put inner products of the examples from `first` on, with all up to the last of these, into S and its mirror."""
    for a in range(P.shape[0]):
        row, out, own = P[a], S[first + a], sq[first + a]
        if is_distance:
            for t in range(row.shape[0]):
                out[t] = max(own + sq[t] - 2.0 * row[t], 0.0)
        else:
            for t in range(row.shape[0]):
                out[t] = row[t]
    for t in range(first):
        out = S[t]
        for a in range(P.shape[0]):
            out[first + a] = S[first + a, t]


class Gram:
    """The kernel matrix of all examples, with the attributes and methods of `Features` that the solvers use.

    Parameters
    ----------
    K
        Kernel values, (n, n), finite and symmetric; stored in single precision.
    diagonal
        k(x_i, x_i), (n,) float64.  Default: that of K.
    """

    def __init__(self, K: np.ndarray, diagonal: np.ndarray | None = None) -> None:
        self.K, self.n, self.kernel_evaluations = np.ascontiguousarray(K, np.float32), len(K), 0
        self.diagonal = K.diagonal().astype(np.float64) if diagonal is None else diagonal

    def part(self, ids: np.ndarray) -> "Gram":
        """These examples alone."""
        return Gram(self.K[np.ix_(ids, ids)], self.diagonal[ids])

    def kernel_values(self, rows: np.ndarray, ids: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
        """k(x_t, x_s) for the examples t of `rows` and s of `ids`, in blocks: where each begins, and its values."""
        for b in range(0, len(rows), BLOCK):
            part = rows[b : b + BLOCK]
            P = np.empty((len(part), len(ids)), np.float32)
            _gather(self.K, part, ids, P)
            yield b, 0, P

    def put_square(self, ids: np.ndarray, first: int, K: np.ndarray) -> None:
        """Put the kernel values of these examples with each other into K, except those among the first ones."""
        put_square(self.K, ids, first, K)

    def sums(self, rows: np.ndarray, ids: np.ndarray, c: np.ndarray) -> np.ndarray:
        """sum_s c_s k(x_t, x_s) over the examples s of `ids`, (n,): for all examples t, not only those of `rows`."""
        out = np.zeros(self.n)
        subtract_rows(self.K, ids, -c, out)
        return out


KernelSource = Features | Gram  # the examples of a training set, as the solvers need them


class Matrices:
    """The kernel matrices of the same examples for several gammas; threads may share it.

    A matrix is kept as long as it is in use, and its memory for the next one.  A pickled copy computes them anew.

    Parameters
    ----------
    store
        The examples.

    Examples
    --------
    >>> from streamsvm.core.kernels import RBF
    >>> Matrices(RowStore([[0.0], [1.0]], RBF())).of(RBF(gamma=2.0)).K
    array([[1.   , 0.135],
           [0.135, 1.   ]], dtype=float32)
    """

    def __init__(self, store: RowStore) -> None:
        self.store = store
        self._forget()

    def _forget(self) -> None:
        self._S: np.ndarray | None = None
        self._lock = threading.Lock()
        self._known: weakref.WeakValueDictionary[Kernel, Gram] = weakref.WeakValueDictionary()
        self._unused: list[np.ndarray] = []  # fresh memory costs as much as the matrix that is written to it

    def __getstate__(self) -> dict[str, Any]:
        return {"store": self.store}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    @staticmethod
    def fit_into(store: RowStore) -> bool:
        """Whether the matrices fit into the cache of the store, and the CPU computes them."""
        return store.on_cpu and BYTES_EACH * len(store) ** 2 <= 8 * store.cache_floats

    @property
    def are_at_hand(self) -> bool:
        """Whether a matrix takes no inner products any more."""
        return self._S is not None

    def of(self, kernel: Kernel) -> Gram:
        """The matrix of this kernel, which differs from that of the store in gamma at most."""
        with self._lock:
            found = self._known.get(kernel)
            if found is None:
                found = self._known[kernel] = self._made(kernel)
            return found

    def _made(self, kernel: Kernel) -> Gram:
        sq = self.store.data.sq
        S = self._S = _shared_part(self.store) if self._S is None else self._S
        K = self._unused.pop() if self._unused else np.empty_like(S)
        _map_matrix(kernel, S, sq.astype(np.float32), K)
        diagonal = self_products(kernel, sq)
        np.fill_diagonal(K, diagonal)
        gram = Gram(K, diagonal)
        weakref.finalize(gram, self._unused.append, K)
        return gram


def _shared_part(store: RowStore) -> np.ndarray:
    """S of all examples."""
    X, sq, n = store.examples, store.data.sq, len(store)
    S, memory = np.empty((n, n), np.float32), np.empty(BLOCK * n)  # fresh memory costs as much as a product
    with one_blas_thread():
        for b in range(0, n, BLOCK):
            e = min(b + BLOCK, n)
            P = memory[: (e - b) * e].reshape(e - b, e)
            if isinstance(X, np.ndarray):
                np.matmul(X[b:e], X[:e].T, out=P)
            else:
                (X[b:e] @ X[:e].T).toarray(out=P)
            _put_block(P, sq, b, store.kernel.kind == RBF_KIND, S)
    return S
