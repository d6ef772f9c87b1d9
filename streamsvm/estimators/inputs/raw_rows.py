"""Blocks of examples as the user gave them, from dense and from compressed rows."""

import numpy as np

from streamsvm.core.scaling import RawRows


def from_dense(X: np.ndarray, columns: np.ndarray) -> RawRows:
    """The rows of a dense matrix (B, d) whose input d is the feature columns[d]."""
    n, d = X.shape
    indptr = np.arange(n + 1, dtype=np.int64) * d
    values = np.ascontiguousarray(X, np.float64).reshape(-1)
    return _with_norms(indptr, np.tile(columns, n), values)


def from_sparse(starts: np.ndarray, inputs: np.ndarray, data: np.ndarray, columns: np.ndarray) -> RawRows:
    """Compressed rows (starts, inputs, data) whose input d is the feature columns[d]."""
    values = np.ascontiguousarray(data, np.float64)
    return _with_norms(np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(columns[inputs]), values)


def from_rows(starts: np.ndarray, columns: np.ndarray, values: np.ndarray) -> RawRows:
    """Compressed rows whose features have these columns."""
    return _with_norms(starts, columns, values)


def one_row(columns: np.ndarray, values: np.ndarray) -> RawRows:
    """One example."""
    return _with_norms(np.array([0, len(values)]), columns, values)


def with_gaps(raw: RawRows, marked: bool) -> RawRows:
    """One example that lacks features, and marks such a gap or does not."""
    return raw._replace(gaps=True, marks=np.array([marked]))


def _with_norms(indptr: np.ndarray, columns: np.ndarray, values: np.ndarray) -> RawRows:
    squares = np.zeros(len(values) + 1)  # the last one ends an empty last row
    with np.errstate(over="ignore", invalid="ignore"):
        np.square(values, out=squares[:-1])
        sums = np.add.reduceat(squares, indptr[:-1]) if len(indptr) > 1 else np.zeros(0)
    sums[indptr[1:] == indptr[:-1]] = 0.0
    return RawRows(indptr, columns, values, sums)
