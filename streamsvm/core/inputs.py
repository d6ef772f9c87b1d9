"""Features as users give them, checked and as matrices of numbers.

The batch solvers and the named features of `estimators` share these conversions: what counts as a number, as a matrix,
as a finite value, and what a sparse matrix means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.core import sparse as sp

APART = "~"  # begins the name of a feature that stands apart


def is_apart(name: Any) -> bool:
    """Whether a feature of this name stands apart: models do not scale it, as a hashed word or a 0/1 column."""
    return isinstance(name, str) and name.startswith(APART)


def require_matrix(X: Any) -> None:
    """Raise unless this array or sparse matrix has two dimensions and holds unmasked numbers."""
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; it must be 2-D: (examples, features)")
    arguments.require_unmasked("X", X)
    require_numbers(X)


def require_numbers(X: Any) -> None:
    """Raise a TypeError unless the dtype of this array or sparse matrix is one of numbers."""
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {X.dtype}; features must be numbers")


def floats_of(X: np.ndarray) -> np.ndarray:
    """The array as float32 or float64, copied only if it is neither."""
    require_numbers(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def plain(X: np.ndarray) -> np.ndarray:
    """The array in C order and writable, which is the one kind that compiled code is compiled for; a copy if needed."""
    return np.require(X, requirements=("C", "W"))


def matrix_of(X: Any) -> Any:
    """Convert an array, a frame of numbers or a SciPy sparse matrix to an array or to compressed rows.

    Parameters
    ----------
    X
        The examples as rows.

    Returns
    -------
    numpy.ndarray or scipy.sparse.csr_matrix
        The numbers in their own dtype.

    Raises
    ------
    ValueError
        If `X` has not two dimensions, or masked entries.
    TypeError
        If `X` does not hold numbers.

    Examples
    --------
    >>> matrix_of([[1, 2], [3, 4]])
    array([[1, 2],
           [3, 4]])
    """
    if has_sparse_columns(X):
        X = csr_of_frame(X)
    if not sp.issparse(X):
        arguments.require_unmasked("X", X)  # before the mask is lost
        given, X = X, np.asarray(X)
        if X.dtype == object and X.ndim == 0:
            raise TypeError(
                f"X is a {type(given).__name__}; it must be an array, a frame or a sparse matrix of numbers"
            )
    require_matrix(X)
    return sp.csr_matrix(X) if sp.issparse(X) else X


def finite_matrix_of(X: Any) -> Any:
    """Convert `X` as `matrix_of` does, to float64.

    Raises
    ------
    ValueError, TypeError
        As by `matrix_of`; also if `X` is empty, or holds NaN or infinity.
    """
    matrix = matrix_of(X)
    if 0 in matrix.shape:
        raise ValueError(f"X has shape {matrix.shape}; there must be at least one example and one feature")
    matrix = matrix.astype(np.float64)
    if sp.issparse(matrix):
        matrix = without_duplicates(matrix)
    if not np.isfinite(matrix.data if sp.issparse(matrix) else matrix).all():
        cells = sp.coo_matrix(matrix)
        t = int(np.argmin(np.isfinite(cells.data)))
        raise ValueError(f"X[{cells.row[t]}, {cells.col[t]}] is {cells.data[t]}; features must be finite numbers")
    return matrix


def are_dicts(X: Any) -> bool:
    """Whether these examples are dicts of named features."""
    return isinstance(X, list | tuple) and all(isinstance(x, Mapping) for x in X)


def matrix_of_dicts(X: Sequence[Mapping], columns: Mapping) -> tuple[sp.csr_matrix, dict]:
    """Convert dicts to compressed rows; new names get the columns after those that `columns` lists.

    Parameters
    ----------
    X
        The examples, each a dict from names to numbers.
    columns
        The column of each known name.

    Returns
    -------
    scipy.sparse.csr_matrix, dict
        The matrix, and the column of every name.

    Raises
    ------
    TypeError
        If a value is not a number.
    """
    columns = dict(columns)
    starts, indices, values = [0], [], []
    for row, x in enumerate(X):
        for name, value in x.items():
            if isinstance(value, str | bytes) or np.ndim(value) != 0:
                raise TypeError(f"feature {name!r} in row {row} is {value!r}; features must be numbers")
            indices.append(columns.setdefault(name, len(columns)))
            values.append(float(value))
        starts.append(len(indices))
    return sp.csr_matrix((np.array(values, float), indices, starts), shape=(len(X), len(columns))), columns


def has_sparse_columns(X: Any) -> bool:
    """Whether this is a pandas frame with sparse columns, as river's `BagOfWords` and `OneHotEncoder` return."""
    is_of_pandas = hasattr(type(X), "iloc") and X.ndim == 2
    return is_of_pandas and any(hasattr(dtype, "fill_value") for dtype in X.dtypes)


def csr_of_frame(X: Any) -> sp.csr_matrix:
    """The compressed rows of a pandas frame with sparse columns; its other columns keep their zeros.

    Raises
    ------
    TypeError
        If a column does not hold numbers; the message names it.
    """
    rows, values = [], []
    for name, column in X.items():
        is_sparse = hasattr(column.dtype, "fill_value") and column.dtype.fill_value == 0
        own = column.array.sp_values if is_sparse else column.to_numpy()
        if own.dtype.kind not in "fiub":
            raise TypeError(f"column {name!r} has dtype {column.dtype}; features must be numbers")
        rows.append(column.array.sp_index.to_int_index().indices if is_sparse else np.arange(len(own)))
        values.append(own)
    columns = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    places = (np.concatenate(rows), columns)
    return sp.csr_matrix((np.concatenate(values), places), shape=X.shape)


def without_duplicates(X: sp.csr_matrix) -> sp.csr_matrix:
    """The matrix with each entry once: SciPy lets several entries of one place add up."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def narrow(X: Any) -> tuple[Any, np.ndarray | None]:
    """The matrix without most of its empty columns if it is sparse and has more columns than entries.

    So memory and time follow the contents.  Inner products of its rows stay as they are.

    Returns
    -------
    matrix, columns
        Compressed rows, and which columns they are, rising; otherwise the matrix itself, and None.
    """
    if not sp.issparse(X) or X.shape[1] <= X.nnz + 1:
        return X, None
    X = sp.csr_matrix(X)
    columns = np.union1d(X.indices, 0)  # at least one
    places = np.searchsorted(columns, X.indices).astype(np.int32)
    return sp.csr_matrix((X.data, places, X.indptr), shape=(X.shape[0], len(columns))), columns


def in_columns(X: Any, columns: np.ndarray | None) -> Any:
    """These columns alone, which rise, of an array or of compressed rows; None: all."""
    if columns is None or not sp.issparse(X):
        return X if columns is None else X[:, columns]
    known = np.isin(X.indices, columns)
    starts = np.append(0, np.cumsum(known))[X.indptr]
    places = np.searchsorted(columns, X.indices[known]).astype(np.int32)
    return sp.csr_matrix((X.data[known], places, starts), shape=(X.shape[0], len(columns)))


def squared_lengths(X: Any) -> np.ndarray:
    """The sum of the squares of each row, (n,) float64; of compressed rows, each entry must be there once."""
    if not sp.issparse(X):
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(rows, np.square(X.data, dtype=np.float64), X.shape[0])


def compressed(matrix: Any) -> sp.csr_matrix:
    """The matrix as float64 compressed rows: each entry once, without zeros, features in order."""
    csr = sp.csr_matrix(matrix, dtype=np.float64, copy=sp.issparse(matrix))
    csr.sum_duplicates()
    csr.eliminate_zeros()
    csr.sort_indices()
    return csr


def dense(matrix: Any) -> np.ndarray:
    """The matrix as an array."""
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)
