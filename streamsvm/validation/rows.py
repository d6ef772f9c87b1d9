"""Rows of examples, whatever kind X is: an array, a sparse matrix, a dataframe or a list of dicts."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from river.utils import dataframe

from streamsvm.core import sparse as sp
from streamsvm.core.inputs import csr_of_frame, has_sparse_columns, without_duplicates


def indexable(X: Any) -> tuple[Any, int]:
    """X in a form whose rows can be picked quickly, and their number.

    Raises
    ------
    ValueError
        If X does not have two dimensions.
    """
    if isinstance(X, list | tuple):
        return list(X), len(X)
    if not hasattr(X, "columns") and getattr(X, "ndim", None) != 2:
        shape = getattr(X, "shape", type(X).__name__)
        raise ValueError(f"X is {shape}; it must be a 2-D array, a sparse matrix, a frame or a list of dicts")
    if sp.issparse(X):
        return sp.csr_matrix(X), X.shape[0]
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X)
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64), len(X)
    frame = dataframe.into_frame(X)
    return frame, len(frame)


def picked(X: Any, places: Sequence[int]) -> Any:
    """Some rows of what `indexable` gave, of the kind that X was."""
    if isinstance(X, list):
        return [X[place] for place in places]
    rows = np.fromiter(places, np.int64, len(places))
    if isinstance(X, np.ndarray):
        return X.take(rows, axis=0)
    return X[rows] if sp.issparse(X) else X[rows.tolist(), :].to_native()


def dicts_of(X: Any) -> Iterator[Any]:
    """Rows as dicts, one at a time: columns of arrays and sparse matrices are named 0, 1, 2, ..."""
    if sp.issparse(X) or has_sparse_columns(X):
        names = np.array(X.columns, object) if hasattr(X, "columns") else np.arange(X.shape[1])
        X = csr_of_frame(X) if hasattr(X, "columns") else without_duplicates(sp.csr_matrix(X))
        for own in map(slice, X.indptr[:-1], X.indptr[1:]):
            yield dict(zip(names[X.indices[own]].tolist(), X.data[own].tolist(), strict=True))
    elif isinstance(X, np.ndarray):
        yield from (dict(enumerate(row.tolist())) for row in X)
    else:
        yield from dataframe.into_frame(X).iter_rows(named=True) if hasattr(X, "columns") else X
