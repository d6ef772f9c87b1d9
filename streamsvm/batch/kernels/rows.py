"""`RowStore`: the examples of a training set and their kernel rows, shared by every problem over them.

One store serves all folds of a cross-validation and all values of C along a path.  `cache` finds and computes single
rows; the store adds input conversion, blocks of rows, a device, and predictions.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.batch.kernels.cache import (
    CLOCK,
    COMPUTED,
    COUNTS,
    FILLED,
    NO_ROWS,
    Cache,
    Store,
    compute_rows,
    copy_rows,
    empty_cache,
    expand,
    keep_products,
    put_square,
    self_products,
)
from streamsvm.core import arguments, inputs
from streamsvm.core import sparse as sp
from streamsvm.core.blocks import MIN_QUERIES, by_fours
from streamsvm.core.device.choice import Device, is_worth_it, require_device
from streamsvm.core.device.gpu import Gpu
from streamsvm.core.device.gram import Gram
from streamsvm.core.expansion import MIN_CACHED_ROWS
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, Kernel, largest_self_product, make_kernel
from streamsvm.core.mixed import DENSE_ENOUGH
from streamsvm.core.products import products
from streamsvm.core.storage import owned

DENSITY_FOR_PRODUCT = 0.5  # below it, single rows, which skip zeros, are faster: by a quarter on usps, at 0.4
ROWS_AT_ONCE = 64  # of a product
NO_LISTS = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)


class RowStore:
    """The kernel rows of n examples, at most `cache_mb` megabytes of them at a time.

    Threads must not share a store.  A pickled copy has the examples, but no rows yet.

    Parameters
    ----------
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix, a frame of numbers or a list of dicts.
    kernel
        The kernel, by `streamsvm.core.kernels.make_kernel`.
    cache_mb
        Megabytes for rows.  A third of them is for the shortened rows of a solver that has shrunk its problem.
    device
        Where rows are computed.  ``"cpu"``: on the CPU.  ``"cuda"``: on a GPU; all rows before a solver starts if they
        fit into `cache_mb`, else the rows that are asked for together.  ``"auto"``: on a GPU if there is one and the
        work is worth it.  Results agree up to rounding.  If the device fails, a warning says so and the CPU goes on.

    Raises
    ------
    ValueError
        If `X` is not 2-D, holds NaN or infinity, or has kernel values that are too large.
    TypeError
        If `X` does not hold numbers.

    Examples
    --------
    >>> from streamsvm.core.kernels import RBF
    >>> RowStore([[0.0], [1.0]], RBF(gamma=1.0)).rows([0])
    array([[1.   , 0.368]])
    """

    def __init__(self, X: Any, kernel: Kernel, cache_mb: float = 256.0, device: str = "cpu") -> None:
        require_device(device)
        arguments.require_cache(cache_mb)
        matrix, self._names = _matrix_of(X, {})
        self._columns = list(X.columns) if hasattr(X, "columns") else None
        self.kernel = kernel
        self.shape = matrix.shape
        matrix, self._used = inputs.narrow(matrix)
        n, D = matrix.shape
        self._width = D
        starts, indices, values = _entries_of(matrix)
        sq, diagonal = np.empty(n), np.empty(n)
        self_products(kernel, starts, values, sq, diagonal)
        require_small(sq, kernel)
        dense = len(values) >= DENSE_ENOUGH * n * D
        self._multiplies = D >= MIN_QUERIES and len(values) >= DENSITY_FOR_PRODUCT * n * D
        lists, list_slots, list_values = (
            NO_LISTS if dense else _lists(sp.csr_matrix((values, indices, starts), shape=matrix.shape))
        )
        self._floats = int(cache_mb * 2**20) // 8
        self._workspace = np.empty(0)
        self._device = Device(device)
        self._gram: Gram | None = None
        self._has_warned = False
        self.data = Store(
            kernel=kernel,
            columns=feature_major(matrix) if dense else np.zeros((0, 0)),
            starts=starts,
            indices=indices,
            values=values,
            lists=lists,
            list_slots=list_slots,
            list_values=list_values,
            sq=sq,
            diagonal=diagonal,
            cache=self._no_rows(),
        )

    def _no_rows(self) -> Cache:
        n = len(self)
        R = max(MIN_CACHED_ROWS, min(n, self._floats * 2 // 3 // max(n, 1)))
        return empty_cache(np.empty((R, n)), n)  # untouched memory is not taken

    def __getstate__(self) -> dict[str, Any]:
        own = {"data": self.data._replace(cache=NO_ROWS), "_workspace": np.empty(0)}
        return self.__dict__ | own | {"_device": Device(self._device.choice), "_gram": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.data = owned(self.data)._replace(cache=self._no_rows())  # for read-only arrays numba would compile anew

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i), (n,)."""
        return self.data.diagonal

    @property
    def rows_computed(self) -> int:
        """The number of rows computed so far."""
        return int(self.data.cache.counts[COMPUTED])

    @property
    def kernel_evaluations(self) -> int:
        """The number of kernel values computed so far."""
        return self.rows_computed * len(self)

    @property
    def capacity(self) -> int:
        """The number of rows that fit into the cache."""
        return len(self.data.cache.rows)

    def drop_rows(self) -> None:
        """Give the memory of all rows back, also on a device; later uses compute the rows again."""
        self.data, self._workspace = self.data._replace(cache=self._no_rows()), np.empty(0)
        self._drop_gram()
        self._device.release()

    def fill(self, ids: Any) -> None:
        """Compute the rows of these examples, as many as fit; together they cost less than one by one."""
        ids, cache = np.asarray(ids, np.int64), self.data.cache
        rows = cache.row_of[ids]
        there = rows >= 0
        cache.counts[CLOCK] += 1
        cache.used[rows[there]] = cache.counts[CLOCK]  # so that they stay
        if there.all():
            return
        missing = np.unique(ids[~there])
        missing = missing[: max(0, self.capacity - len(np.unique(rows[there])))]
        if self._fill_on_device(missing):
            return
        if len(missing) < MIN_QUERIES or not self._multiplies:
            compute_rows(self.data, missing)
            return
        columns = self.data.columns
        for b in range(0, len(missing), ROWS_AT_ONCE):
            block = missing[b : b + ROWS_AT_ONCE]
            queries = np.zeros((by_fours(len(block)), len(columns)))
            queries[: len(block)] = columns[:, block].T
            P = np.zeros((len(queries), len(self)))
            products(queries, columns, P)
            keep_products(self.data, block, P)

    def prepare(self) -> None:
        """Compute all rows if a device does it and they fit, because a solver asks for them one at a time."""
        if not self._device.works or self.data.cache.counts[FILLED] >= min(len(self), self.capacity):
            return
        if self.capacity >= len(self):
            self._fill_on_device(np.flatnonzero(self.data.cache.row_of < 0))
        elif self._device.choice == "cuda" and not self._has_warned:
            self._has_warned = True
            needed = math.ceil(12 * len(self) ** 2 / 2**20)
            warnings.warn(
                f"cache_mb holds only {self.capacity} of {len(self)} kernel rows, so the CPU computes most rows; "
                f"with cache_mb={needed} the device computes them all at once",
                RuntimeWarning,
                stacklevel=2,
            )

    def _fill_on_device(self, ids: np.ndarray) -> bool:
        """Compute rows on the device; False if it has failed or is not worth it."""
        if len(ids) == 0 or not self._pays(len(ids)):
            return False
        linear = self.data._replace(kernel=make_kernel("linear"))  # it keeps the values as they are

        def compute(gram: Gram) -> bool:
            gram.rows(ids, lambda part, rows: keep_products(linear, part, rows))
            return True

        return bool(self._attempt(compute))

    def _pays(self, n_rows: int) -> bool:
        """Whether to try the device for this number of rows."""
        n, D = self.shape
        nnz = n_rows * len(self.data.values) // max(n, 1)
        return self._device.works and (self._device.choice == "cuda" or is_worth_it(n, nnz, n_rows * D))

    def _attempt(self, compute: Callable[[Gram], Any]) -> Any:
        return self._device.attempt(lambda gpu: compute(self._gram_on(gpu)), self._drop_gram)

    def _drop_gram(self) -> None:
        self._gram = None

    def _gram_on(self, gpu: Gpu) -> Gram:
        if self._gram is None:
            data = self.data
            shape = len(self), self._width
            examples = sp.csr_matrix((data.values, data.indices, data.starts), shape=shape, copy=False)
            self._gram = Gram(gpu, self.kernel, examples, data.sq)
        return self._gram

    def put_square(self, ids: np.ndarray, first: int, K: np.ndarray) -> None:
        """Put the kernel values of these examples with each other into K, except those among the first ones.

        Values are copied from rows.  Of examples with few features, only missing values are computed, and no row.
        """
        columns = self.data.columns
        if self.on_cpu and len(columns) and self._width < MIN_QUERIES:
            columns = columns.take(ids, axis=1)  # columns[:, ids] would not lie in C order
        else:
            columns = columns[:0]
            self.fill(ids[first:])
        put_square(self.data, self.data._replace(columns=columns, sq=self.data.sq[ids]), ids, first, K)

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """A copy of the rows of these examples, (len(ids), n)."""
        ids = np.asarray(ids, np.int64)
        self.fill(ids)
        out = np.empty((len(ids), len(self)))
        copy_rows(self.data, ids, out)
        return out

    def expand(self, X: Any, alpha: np.ndarray) -> np.ndarray:
        """sum_s alpha_s k(x, x_s) for each row x of X; X must have the features of the store's examples."""
        X = self._in_order(X)
        matrix, names = _matrix_of(X, self._names or {})
        if (names is None) != (self._names is None):
            raise TypeError(f"X holds {_form(names)}; the solution was trained on {_form(self._names)}")
        unknown = matrix.shape[1] - self.shape[1]
        if names is None and unknown:
            raise ValueError(f"X has {matrix.shape[1]} features; the solution was trained on {self.shape[1]}")
        csr = inputs.compressed(matrix)
        starts, sq, out = csr.indptr.astype(np.int64), np.empty(csr.shape[0]), np.empty(csr.shape[0])
        self_products(self.kernel, starts, csr.data, sq, out)
        require_small(sq, self.kernel)
        known = inputs.in_columns(csr[:, : self.shape[1]] if unknown else csr, self._used)
        if self._pays(csr.shape[0]):
            values = self._attempt(lambda gram: gram.expand(known, sq, alpha))
            if values is not None:
                return np.asarray(values)
        expand(self.data, known.indptr.astype(np.int64), known.indices.astype(np.int32), known.data, sq, alpha, out)
        return out

    def _in_order(self, X: Any) -> Any:
        """Put the columns of a frame into the order of the store's examples; other input stays as it is."""
        if self._columns is None or not hasattr(X, "columns") or list(X.columns) == self._columns:
            return X
        missing = [name for name in self._columns if name not in list(X.columns)]
        if missing or len(X.columns) != len(self._columns):
            raise ValueError(f"X has the columns {list(X.columns)}; the solution was trained on {self._columns}")
        return X[self._columns]

    @property
    def cache_floats(self) -> int:
        """The number of kernel values that fit into the cache."""
        return self._floats

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU computes the rows, and no device was asked for."""
        return self._device.choice == "cpu"

    @property
    def zeros(self) -> float:
        """The number of an example's features that a row skips because they are 0, on average."""
        return self._width - len(self.data.values) / max(1, len(self))

    @property
    def examples(self) -> Any:
        """The examples as rows, float64: an array, or compressed rows if most features are 0; see `inputs.narrow`."""
        n, D = len(self), self._width
        if len(self.data.columns):
            return np.ascontiguousarray(self.data.columns[:D, :n].T)
        return sp.csr_matrix((self.data.values, self.data.indices, self.data.starts), shape=(n, D))

    def with_kernel(self, kernel: Kernel) -> RowStore:
        """A store of the same examples for another kernel, without rows; both share the memory of the examples."""
        require_small(self.data.sq, kernel)
        other = object.__new__(RowStore)
        other.__dict__.update(self.__dict__)
        sq, diagonal = np.empty(len(self)), np.empty(len(self))
        self_products(kernel, self.data.starts, self.data.values, sq, diagonal)
        other.kernel, other.data = kernel, self.data._replace(kernel=kernel, diagonal=diagonal, cache=self._no_rows())
        other._device, other._gram, other._workspace = Device(self._device.choice), None, np.empty(0)
        return other

    def among(self, ids: np.ndarray, rows: np.ndarray) -> RowStore:
        """A store of some of the examples, whose kernel rows are all at hand.

        It shares the memory of `rows`, and takes no other examples: `expand` is for the whole store.

        Parameters
        ----------
        ids
            Numbers of its examples, (m,).
        rows
            Their kernel values among each other, at least (m, m).
        """
        part, m = object.__new__(RowStore), len(ids)
        part.__dict__.update(self.__dict__)
        counts = np.zeros(COUNTS, np.int64)
        counts[FILLED] = m
        cache = Cache(rows, np.arange(m), np.arange(len(rows)), np.zeros(len(rows), np.int64), counts)
        own = {"sq": self.data.sq[ids], "diagonal": self.data.diagonal[ids], "cache": cache}
        part.shape, part.data = (m, self.shape[1]), self.data._replace(**own)
        part._device, part._gram, part._workspace = Device("cpu"), None, np.empty(0)
        return part

    def short_rows(self, m: int) -> Cache:
        """An empty cache for rows of m values each; it replaces the one before."""
        if len(self._workspace) == 0:
            enough = min(self._floats // 3, len(self) ** 2)
            self._workspace = np.empty(max(enough, MIN_CACHED_ROWS * len(self)))
        R = min(m, len(self._workspace) // m)
        return empty_cache(self._workspace[: R * m].reshape(R, m), m)


# ---------------------------------------------------------------------------------------------------------------- input


def _form(names: dict | None) -> str:
    return "rows of numbers" if names is None else "dicts"


def feature_major(matrix: Any, dtype: type = np.float64) -> np.ndarray:
    """(D, N) with D a multiple of 4, N an odd multiple of 64: one example's features must not share a cache set."""
    n, D = matrix.shape
    columns = np.zeros((max(by_fours(D), 4), (n // 64 + 1 | 1) * 64), dtype)
    columns[:D, :n] = inputs.dense(matrix.T)
    return columns


def _entries_of(matrix: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the entries of each row begin, their columns in order, and their values; without zeros if these are many.

    Zeros do not change an inner product, and where they are few, leaving them out costs more than it saves.
    """
    n, D = matrix.shape
    if not sp.issparse(matrix) and np.count_nonzero(matrix) >= DENSITY_FOR_PRODUCT * n * D:
        every = np.tile(np.arange(D, dtype=np.int32), n)
        return np.arange(n + 1, dtype=np.int64) * D, every, np.array(matrix, np.float64).ravel()
    csr = inputs.compressed(matrix)
    return csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data


def _lists(csr: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    by_feature = csr.tocsc()
    return by_feature.indptr.astype(np.int64), by_feature.indices.astype(np.int32), by_feature.data


def _matrix_of(X: Any, columns: dict) -> tuple[Any, dict | None]:
    """X as a matrix of numbers; for dicts also the column of each feature, beginning with the given ones."""
    return inputs.matrix_of_dicts(X, columns) if inputs.are_dicts(X) else (inputs.matrix_of(X), None)


def require_small(sq: np.ndarray, kernel: Kernel) -> None:
    """Raise a ValueError for features that are not finite, or whose kernel values are too large to add up."""
    bad = ~np.isfinite(sq)
    if bad.any():
        raise ValueError(f"X holds NaN, infinity or a number too large to be squared in row {int(np.argmax(bad))}")
    largest = largest_self_product(kernel, sq)
    if not largest <= LARGEST_KERNEL_VALUE:
        raise ValueError(f"X holds a row whose kernel value with itself is {largest:.3g}; scale the features")
