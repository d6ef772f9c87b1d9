"""Numbers and columns that stand apart in one matrix: which columns a model scales, and how compressed rows hold them.

A text has many columns, of which each row has few, and beside them numbers that every row has.  So the matrix is
sparse, and a model scales some of its columns all the same.  `core.scaling` says which ones a model on a stream scales;
here the same is said of a matrix.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.costs import FEW_FEATURES
from streamsvm.core.inputs import is_apart

DENSE_ENOUGH = 0.15  # share of features other than 0 from which an array is the better matrix


def is_dense(matrix: sp.csr_matrix) -> bool:
    """Whether these compressed rows are better held as an array."""
    n, d = matrix.shape
    return bool(d <= FEW_FEATURES or matrix.nnz >= DENSE_ENOUGH * n * d)


def apart_of(names: Iterable[Hashable]) -> np.ndarray:
    """Whether the column of each name stands apart, (d,) bool."""
    return np.fromiter(map(is_apart, names), bool)


def numbers_of(matrix: Any, apart: np.ndarray) -> np.ndarray:
    """The columns that a model which scales may scale, rising: none of those apart, and none of sparse input.

    Whether input is sparse, the columns apart do not say.
    """
    numbers = np.flatnonzero(~apart)
    if not sp.issparse(matrix):
        return numbers
    return numbers if len(numbers) < len(apart) and is_dense(sp.csr_matrix(matrix)[:, numbers]) else numbers[:0]


def with_columns(matrix: sp.csr_matrix, columns: np.ndarray, values: np.ndarray) -> sp.csr_matrix:
    """Compressed rows with other values in these columns, (n, len(columns))."""
    others, is_own, (n, k) = sp.csr_matrix(matrix, copy=True), np.zeros(matrix.shape[1], bool), values.shape
    is_own[columns] = True
    others.data[is_own[others.indices]] = 0.0
    own = (values.ravel(), np.tile(columns, n), np.arange(n + 1) * k)
    return others + sp.csr_matrix(own, shape=matrix.shape)
