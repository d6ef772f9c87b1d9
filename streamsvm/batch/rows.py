"""Kernel rows on demand: computed when a solver first asks for them, kept while they fit, shared by all problems.

A row K_i = (k(x_i, x_1), .., k(x_i, x_n)) depends on the examples and on the kernel, but not on labels, boxes or folds.
One `RowStore` therefore serves every problem over the same examples and kernel: all folds of a cross-validation, all
values of C along a path.  Rows are float64: float32 ones put a floor of 6e-8 sum |beta| under the accuracy of every
decision value, which at C = 1e6 is far above any tolerance.

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
row_of    where in `rows` an example's row is, -1: nowhere                 (n,) int64
member_of whose row it is                                                  (R,) int64
used      when a row was last asked for                                    (R,) int64
========= ================================================================ ================

An inner product is one chain of fused additions in the order of the features, for one row as for a block of them and
for a squared norm: the distance between equal examples is then exactly 0, and a row does not depend on how it was
computed.
When the bytes are used up, the row that has not been asked for the longest goes.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from streamsvm.core import arguments, inputs
from streamsvm.core._jit import compiled, compiled_for, inner, inner_fma, inner_sum
from streamsvm.core._simd import rounded_product
from streamsvm.core.blocks import by_fours, products
from streamsvm.core.device.choice import Device, is_worth_it, require_device
from streamsvm.core.device.gpu import Gpu
from streamsvm.core.device.gram import Gram
from streamsvm.core.kernels import (
    LARGEST_KERNEL_VALUE,
    RBF_KIND,
    Kernel,
    largest_self_product,
    make_kernel,
    map_row64,
)
from streamsvm.core.rows import add_columns
from streamsvm.core.storage import owned

MIN_ROWS = 4  # a step needs two at a time
MIN_DENSITY = 0.15  # of non-zero features, below which lists of them are faster than columns
FEATURES_FOR_PRODUCT, ROWS_FOR_PRODUCT = 8, 8  # below, a product of blocks gains nothing over single rows
DENSITY_FOR_PRODUCT = 0.5  # below, single rows, which skip zeros, are faster
ROWS_AT_ONCE = 64  # of a product

FILLED, CLOCK, COMPUTED, COUNTS = 0, 1, 2, 3
NOBODY = np.int64(-1)  # a literal -1 would have everything compiled twice


class Cache(NamedTuple):
    """Rows and who they belong to; the symbol table is in the module's docstring."""

    rows: np.ndarray
    row_of: np.ndarray
    member_of: np.ndarray
    used: np.ndarray
    counts: np.ndarray


class Store(NamedTuple):
    """What compiled code needs to find or compute a row."""

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
    """out = <x, x_s> for all s, from the examples that each feature of x is in."""
    for s in range(out.shape[0]):
        out[s] = 0.0
    for t in range(indices.shape[0]):
        v = values[t]
        for k in range(lists[indices[t]], lists[indices[t] + 1]):
            out[list_slots[k]] += v * list_values[k]


@inner_fma
def _squared_norm(values):
    """<x, x>, added up as `add_columns` and `_add_lists` do."""
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
    map_row64(store.kernel, out, store.sq, sq)


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
        out[s] += ((a * row_a[s] + rounded_product(b, row_b[s])) + c * row_c[s]) + d * row_d[s]


@inner
def find_row(cache, i, pinned):
    """Where the row of i is or is to be put, and whether it must be filled.  The row `pinned` stays."""
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


@inner
def stored_row(store, i, pinned):
    """Where in the store's rows the row of i is, computed if it is missing."""
    r, missing = find_row(store.cache, i, pinned)
    if missing:
        compute_row(store, i, store.cache.rows[r])
    return r


# ------------------------------------------------------------------------------------- rows, whoever keeps the examples
#
# Paths and forced steps go over the examples of a store, or over the members of an expansion (`online.forget`).


def row_at(examples: Any, i: Any, pinned: Any) -> int:
    """Where in `rows_of` the row of i is, computed if it is missing; the row `pinned` stays where it is."""
    raise NotImplementedError


def places_of(examples: Any) -> np.ndarray:
    """Where the rows that were asked for are, (at least n,) integers; -1 where one would have to be computed."""
    raise NotImplementedError


def adds_by_four(examples: Any) -> bool:
    """Whether rows are added four at a time, where these are at hand: the rounding then depends on which are."""
    raise NotImplementedError


def rows_of(examples: Any) -> np.ndarray:
    """All rows that are kept, (R, at least n)."""
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


@compiled_for(adds_by_four, Store)
def _adds_by_four(store):
    return True


@compiled_for(rows_of, Store)
def _rows_of(store):
    return store.cache.rows


@compiled_for(diagonal_of, Store)
def _diagonal_of(store):
    return store.diagonal


# --------------------------------------------------------------------------------------------------- called from Python


@compiled
def _self_products(kernel, starts, values, sq, diagonal):
    """Squared norms and k(x_i, x_i), with the rounding of the rows."""
    for i in range(sq.shape[0]):
        sq[i] = _squared_norm(values[starts[i] : starts[i + 1]])
        diagonal[i] = 1.0 if kernel.kind == RBF_KIND else sq[i]
    if kernel.kind != RBF_KIND:
        map_row64(kernel, diagonal, sq, 0.0)


@compiled
def _compute_rows(store, ids):
    """Have the rows of `ids` in the cache, one after the other."""
    for i in ids:
        stored_row(store, i, NOBODY)


@compiled
def _keep_products(store, ids, P):
    """Have the rows of `ids` in the cache, from their inner products P with all examples."""
    for t in range(ids.shape[0]):
        r, missing = find_row(store.cache, ids[t], NOBODY)
        if missing:
            map_row64(store.kernel, P[t], store.sq, store.sq[ids[t]])
            store.cache.rows[r, :] = P[t]
            store.cache.counts[COMPUTED] += 1


@compiled
def _copy_rows(store, ids, out):
    for t in range(ids.shape[0]):
        out[t, :] = store.cache.rows[stored_row(store, ids[t], NOBODY)]


@inner_sum
def _dot(a, row):
    total = 0.0
    for t in range(a.shape[0]):
        total += a[t] * row[t]
    return total


@compiled
def _expand(store, starts, indices, values, sq, beta, out):
    """out_t = sum_s beta_s k(x_t, x_s) for new examples x_t."""
    row = np.empty(beta.shape[0])
    for t in range(sq.shape[0]):
        query_row(store, indices[starts[t] : starts[t + 1]], values[starts[t] : starts[t + 1]], sq[t], row)
        out[t] = _dot(beta, row)


def empty_cache(rows: np.ndarray, n: int) -> Cache:
    """A cache over these rows for n members, none of whose rows it has."""
    R = len(rows)
    return Cache(
        rows, np.full(n, -1, np.int64), np.zeros(R, np.int64), np.zeros(R, np.int64), np.zeros(COUNTS, np.int64)
    )


NO_ROWS = empty_cache(np.empty((0, 0)), 0)


class RowStore:
    """The kernel rows of n examples, at most `cache_mb` megabytes of them at a time.

    Not for several threads at once.  A copy by pickle has the examples, but no rows yet.

    Parameters
    ----------
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix, a frame of numbers or a list of dicts.
    kernel
        As `streamsvm.core.kernels.make_kernel` makes it.
    cache_mb
        Megabytes for rows.  A third of them is for the shortened rows of a solver that has shrunk its problem.
    device
        Where rows are computed: ``"cpu"``; ``"cuda"``: on a GPU, all of them before a solver starts if `cache_mb` has
        room, else those that are asked for together; ``"auto"``: on a GPU where there is one and the work is worth it.
        Results agree up to rounding.  If the device fails, a warning says so, and the CPU goes on.

    Raises
    ------
    ValueError
        If `X` has not two dimensions, holds NaN or infinity, or numbers whose kernel values are too large.
    TypeError
        If `X` does not hold numbers.
    """

    def __init__(self, X: Any, kernel: Kernel, cache_mb: float = 256.0, device: str = "cpu") -> None:
        require_device(device)
        arguments.require_cache(cache_mb)
        matrix, self._names = _matrix_of(X, {})
        self._columns = list(X.columns) if hasattr(X, "columns") else None
        self.kernel = kernel
        self.shape = matrix.shape
        n, D = matrix.shape
        csr = inputs.compressed(matrix)
        starts, sq, diagonal = csr.indptr.astype(np.int64), np.empty(n), np.empty(n)
        _self_products(kernel, starts, csr.data, sq, diagonal)
        _require_small(sq, kernel)
        dense = csr.nnz >= MIN_DENSITY * n * D
        self._multiplies = D >= FEATURES_FOR_PRODUCT and csr.nnz >= DENSITY_FOR_PRODUCT * n * D
        lists, list_slots, list_values = _lists(csr[:0] if dense else csr)
        self._floats = int(cache_mb * 2**20) // 8
        self._workspace = np.empty(0)
        self._device = Device(device)
        self._gram: Gram | None = None
        self._has_warned = False
        self.data = Store(
            kernel=kernel,
            columns=_feature_major(matrix) if dense else np.zeros((0, 0)),
            starts=starts,
            indices=csr.indices.astype(np.int32),
            values=csr.data,
            lists=lists,
            list_slots=list_slots,
            list_values=list_values,
            sq=sq,
            diagonal=diagonal,
            cache=self._no_rows(),
        )

    def _no_rows(self) -> Cache:
        n = len(self)
        R = max(MIN_ROWS, min(n, self._floats * 2 // 3 // max(n, 1)))
        return empty_cache(np.empty((R, n)), n)  # memory that no row has used is not taken

    def __getstate__(self) -> dict[str, Any]:
        own = {"data": self.data._replace(cache=NO_ROWS), "_workspace": np.empty(0)}
        return self.__dict__ | own | {"_device": Device(self._device.choice), "_gram": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.data = owned(self.data)._replace(cache=self._no_rows())  # arrays that joblib maps would be compiled for

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i), (n,)."""
        return self.data.diagonal

    @property
    def rows_computed(self) -> int:
        """How many rows have been computed so far."""
        return int(self.data.cache.counts[COMPUTED])

    @property
    def kernel_evaluations(self) -> int:
        """How many kernel values have been computed so far."""
        return self.rows_computed * len(self)

    @property
    def capacity(self) -> int:
        """How many rows it can keep."""
        return len(self.data.cache.rows)

    def drop_rows(self) -> None:
        """Give the memory of all rows back, and that on a device; they are computed again when they are needed."""
        self.data, self._workspace = self.data._replace(cache=self._no_rows()), np.empty(0)
        self._drop_gram()
        self._device.release()

    def fill(self, ids: Any) -> None:
        """Have the rows of these examples at hand, as many as it can keep; many cost less together than one by one."""
        ids, cache = np.unique(ids).astype(np.int64), self.data.cache
        there = cache.row_of[ids] >= 0
        cache.counts[CLOCK] += 1
        cache.used[cache.row_of[ids[there]]] = cache.counts[CLOCK]  # so that they stay
        if there.all():
            return
        missing = ids[~there][: max(0, self.capacity - np.count_nonzero(there))]
        if self._fill_on_device(missing):
            return
        if len(missing) < ROWS_FOR_PRODUCT or not self._multiplies:
            _compute_rows(self.data, missing)
            return
        columns = self.data.columns
        for b in range(0, len(missing), ROWS_AT_ONCE):
            block = missing[b : b + ROWS_AT_ONCE]
            queries = np.zeros((by_fours(len(block)), len(columns)))
            queries[: len(block)] = columns[:, block].T
            P = np.zeros((len(queries), len(self)))
            products(queries, columns, P)
            _keep_products(self.data, block, P)

    def prepare(self) -> None:
        """Have all rows, if a device computes them and they fit: a solver will ask for them one at a time."""
        if not self._device.works or self.data.cache.counts[FILLED] >= min(len(self), self.capacity):
            return
        if self.capacity >= len(self):
            self._fill_on_device(np.flatnonzero(self.data.cache.row_of < 0))
        elif self._device.choice == "cuda" and not self._has_warned:
            self._has_warned = True
            needed = math.ceil(12 * len(self) ** 2 / 2**20)
            warnings.warn(
                f"cache_mb holds {self.capacity} of {len(self)} kernel rows, so that the CPU computes those that a "
                f"solver asks for one by one; with cache_mb={needed} the device computes them all before",
                RuntimeWarning,
                stacklevel=2,
            )

    def _fill_on_device(self, ids: np.ndarray) -> bool:
        """Have the rows of these examples from the device, unless it has failed or is not worth it."""
        if len(ids) == 0 or not self._pays(len(ids)):
            return False
        linear = self.data._replace(kernel=make_kernel("linear"))  # whose products are kept as they are

        def compute(gram: Gram) -> bool:
            gram.rows(ids, lambda part, rows: _keep_products(linear, part, rows))
            return True

        return bool(self._attempt(compute))

    def _pays(self, n_rows: int) -> bool:
        """Whether the device is to be tried for so many rows with all examples."""
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
            examples = sp.csr_matrix((data.values, data.indices, data.starts), shape=self.shape, copy=False)
            self._gram = Gram(gpu, self.kernel, examples, data.sq)
        return self._gram

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """A copy of the rows of these examples, (len(ids), n)."""
        ids = np.asarray(ids, np.int64)
        self.fill(ids)
        out = np.empty((len(ids), len(self)))
        _copy_rows(self.data, ids, out)
        return out

    def expand(self, X: Any, beta: np.ndarray) -> np.ndarray:
        """sum_s beta_s k(x, x_s) for each row x of X, which has the features that the store's examples have."""
        X = self._in_order(X)
        matrix, names = _matrix_of(X, self._names or {})
        if (names is None) != (self._names is None):
            raise TypeError(f"X is {_form(names)}; the examples of the solution were {_form(self._names)}")
        unknown = matrix.shape[1] - self.shape[1]
        if names is None and unknown:
            raise ValueError(f"X has {matrix.shape[1]} features; the examples of the solution have {self.shape[1]}")
        csr = inputs.compressed(matrix)
        starts, sq, out = csr.indptr.astype(np.int64), np.empty(csr.shape[0]), np.empty(csr.shape[0])
        _self_products(self.kernel, starts, csr.data, sq, out)
        _require_small(sq, self.kernel)
        known = csr[:, : self.shape[1]] if unknown else csr
        if self._pays(csr.shape[0]):
            values = self._attempt(lambda gram: gram.expand(known, sq, beta))
            if values is not None:
                return np.asarray(values)
        _expand(self.data, known.indptr.astype(np.int64), known.indices.astype(np.int32), known.data, sq, beta, out)
        return out

    def _in_order(self, X: Any) -> Any:
        """A frame with the columns of the store's examples in their order; anything else as it is."""
        if self._columns is None or not hasattr(X, "columns") or list(X.columns) == self._columns:
            return X
        missing = [name for name in self._columns if name not in list(X.columns)]
        if missing or len(X.columns) != len(self._columns):
            raise ValueError(f"X has the columns {list(X.columns)}; the examples of the solution have {self._columns}")
        return X[self._columns]

    def short_rows(self, m: int) -> Cache:
        """An empty cache for rows of m values each; there is one at a time."""
        if len(self._workspace) == 0:
            enough = min(self._floats // 3, len(self) ** 2)
            self._workspace = np.empty(max(enough, MIN_ROWS * len(self)))
        R = min(m, len(self._workspace) // m)
        return empty_cache(self._workspace[: R * m].reshape(R, m), m)


# ---------------------------------------------------------------------------------------------------------------- input


def _form(names: dict | None) -> str:
    return "rows of numbers" if names is None else "dicts"


def _feature_major(matrix: Any) -> np.ndarray:
    """(D, N) with D a multiple of four, and N an odd one of 64: features of one example must not share a cache set."""
    n, D = matrix.shape
    columns = np.zeros((max(by_fours(D), 4), (n // 64 + 1 | 1) * 64))
    columns[:D, :n] = inputs.dense(matrix.T)
    return columns


def _lists(csr: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    by_feature = csr.tocsc()
    return by_feature.indptr.astype(np.int64), by_feature.indices.astype(np.int32), by_feature.data


def _matrix_of(X: Any, columns: dict) -> tuple[Any, dict | None]:
    """X as a matrix of numbers; for dicts also the column of each feature, beginning with the given ones."""
    return inputs.matrix_of_dicts(X, columns) if inputs.are_dicts(X) else (inputs.matrix_of(X), None)


def _require_small(sq: np.ndarray, kernel: Kernel) -> None:
    """Refuse features that are not finite or make kernel values too large to be added up."""
    bad = ~np.isfinite(sq)
    if bad.any():
        raise ValueError(f"X holds NaN, infinity or a number too large to be squared in row {int(np.argmax(bad))}")
    largest = largest_self_product(kernel, sq)
    if not largest <= LARGEST_KERNEL_VALUE:
        raise ValueError(f"X holds a row whose kernel value with itself is {largest:.3g}; scale the features")
