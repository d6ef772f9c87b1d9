"""Examples as vectors: rows of any kind become one matrix, and many inner products are taken at once.

A pool's examples are few features of many rows, or many features of which each row has few.  The first kind becomes an
array, the second compressed rows.  Inner products do not depend on what else is in the matrix, to the bit: a loop that
was restored chooses the same examples as one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from river.utils import dataframe

from streamsvm.batch.kernels.rows import feature_major
from streamsvm.core import sparse as sp
from streamsvm.core.blocks import BLOCK, LARGEST_SQUARED_NORM, MIN_QUERIES
from streamsvm.core.inputs import is_apart, squared_lengths, without_duplicates
from streamsvm.core.mixed import apart_of, is_dense, numbers_of, with_columns
from streamsvm.core.products import add_rows, products
from streamsvm.core.scaling.state import CLIP, FAR

LARGEST_SCALED = math.sqrt(LARGEST_SQUARED_NORM)  # of a scaled feature; the deviation may be tiny


class Vectors:
    """Examples as rows of a matrix, in the order in which they came.

    Parameters
    ----------
    columns
        The column of each feature, which several matrices may share; new features are added.
    """

    def __init__(self, columns: dict[Hashable, int]) -> None:
        self.columns = columns
        self.matrix: Any = None
        self._room = np.empty((0, 0))  # an array that begins with the matrix

    def __len__(self) -> int:
        return 0 if self.matrix is None else self.matrix.shape[0]

    def add(self, rows: Any) -> None:
        """Append examples: a 2-D array, a sparse matrix, a frame, or a list of dicts or of rows of numbers."""
        new, width = self._matrix_of(rows), len(self.columns)
        if self.matrix is None:
            self.matrix = new.toarray() if sp.issparse(new) and is_dense(new) else new
        elif sp.issparse(self.matrix):
            self.matrix = sp.vstack([_wide(self.matrix, width), sp.csr_matrix(new)], format="csr")
        else:
            self._append(new.toarray() if sp.issparse(new) else new, width)

    def _append(self, new: np.ndarray, width: int) -> None:
        """Append rows of an array; the room for them doubles, so that adding one does not copy all others."""
        n, end = len(self), len(self) + len(new)
        if self.matrix.base is not self._room or len(self._room) < end or self._room.shape[1] < width:
            self._room = np.zeros((2 * end, width))
            self._room[:n, : self.matrix.shape[1]] = self.matrix
        self._room[n:end, : new.shape[1]] = new
        self.matrix = self._room[:end]

    def restore(self, matrix: sp.csr_matrix) -> None:
        """Take over compressed rows, whose columns are those of `columns`."""
        self.matrix = matrix.toarray() if is_dense(matrix) else matrix

    def keep(self, places: np.ndarray) -> None:
        """Keep only the examples at these places, in this order."""
        self.matrix = self.matrix[places]

    def become_like(self, other: Vectors) -> None:
        """Take the kind of matrix that other examples have."""
        if self.matrix is None or other.matrix is None or sp.issparse(self.matrix) == sp.issparse(other.matrix):
            return
        self.matrix = sp.csr_matrix(self.matrix) if sp.issparse(other.matrix) else self.matrix.toarray()

    def _matrix_of(self, rows: Any) -> Any:
        if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
            return self._matrix_of_dicts(rows)
        if sp.issparse(rows):
            return self._matrix_of_sparse(sp.csr_matrix(rows, dtype=np.float64))
        names: Any = range(np.shape(rows)[1])
        if hasattr(rows, "columns"):
            rows = dataframe.into_frame(rows)
            names, rows = rows.columns, rows.to_numpy()
        for name in names:
            self.columns.setdefault(name, len(self.columns))
        return np.asarray(rows, np.float64)

    def _matrix_of_sparse(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        """Only columns with entries are features."""
        used, places = np.unique(rows.indices, return_inverse=True)
        own = np.array([self.columns.setdefault(name, len(self.columns)) for name in used.tolist()], np.int64)
        return sp.csr_matrix((rows.data, own[places], rows.indptr), shape=(rows.shape[0], len(self.columns)))

    def _matrix_of_dicts(self, rows: list[Mapping[Hashable, Any]]) -> sp.csr_matrix:
        """A text is a feature of its own, which is 1."""
        pairs = [
            ((name, value), 1.0) if isinstance(value, str) else (name, float(value))
            for row in rows
            for name, value in row.items()
        ]
        places = [self.columns.setdefault(name, len(self.columns)) for name, _ in pairs]
        starts = np.cumsum([0, *map(len, rows)])
        values = np.array([value for _, value in pairs])
        return sp.csr_matrix((values, places, starts), shape=(len(rows), len(self.columns)))


@dataclass(frozen=True, eq=False)
class Scale:
    """What is done to each feature: (x - shift) * factor, cut to -clip..clip where it is scaled.

    by
        Shift and factor of each column, (2, d) float64; None: features stay as they are.
    clip
        The largest size of a scaled feature.
    """

    by: np.ndarray | None = None
    clip: float = np.inf

    def is_like(self, other: Scale) -> bool:
        """Whether it does the same."""
        if self.by is None or other.by is None:
            return self.by is other.by
        return np.array_equal(self.by, other.by)

    def of(self, matrix: Any) -> Any:
        """The scaled matrix."""
        if self.by is None:
            return matrix
        d = matrix.shape[1]
        missing = max(0, d - self.by.shape[1])  # features that came later
        shift = np.pad(self.by[0, :d], (0, missing))
        factor = np.pad(self.by[1, :d], (0, missing), constant_values=1.0)
        is_scaled = (shift != 0.0) | (factor != 1.0)
        if sp.issparse(matrix):
            own = np.flatnonzero(is_scaled)
            part = Scale(np.array([shift[own], factor[own]]), self.clip).of(matrix[:, own].toarray())
            return with_columns(matrix, own, part) if len(own) else matrix
        with np.errstate(over="ignore"):
            scaled = (matrix - shift) * factor
        return np.where(is_scaled, np.clip(scaled, -self.clip, self.clip), scaled)


def scale_in_use(learner: Any, names: Iterable[Hashable]) -> Scale:
    """The scale of these columns that a learner uses at present."""
    if not getattr(learner, "is_scaling", True):
        return Scale()
    own = [(0.0, 1.0) if is_apart(name) else learner.scale_of(name) for name in names]
    return Scale(np.array(own).reshape(-1, 2).T, CLIP)


def spread_of(matrix: Any, names: Iterable[Hashable], standardise: bool) -> Scale:
    """The scale for distances between these examples, see `scale_by`; columns apart stay as they are."""
    apart = apart_of(names)
    numbers = numbers_of(matrix, apart)
    if not len(numbers):
        return Scale()
    part = matrix[:, numbers].toarray() if sp.issparse(matrix) else matrix[:, numbers]
    own = scale_by(part.mean(axis=0), part.std(axis=0), standardise).by
    if own is None:
        return Scale()
    by = np.array([np.zeros(len(apart)), np.ones(len(apart))])
    by[:, numbers] = own
    return Scale(by, LARGEST_SCALED)


def scale_by(mean: np.ndarray, deviation: np.ndarray, standardise: bool) -> Scale:
    """The scale by these moments: all features are standardised, or those far from 0 shifted, which keeps distances.

    Distances are computed in single precision, see `core.scaling`.
    """
    if standardise:
        return Scale(np.array([mean, 1.0 / np.where(deviation > 0.0, deviation, 1.0)]), LARGEST_SCALED)
    far = np.square(mean) > FAR * np.square(deviation)
    return Scale(np.array([np.where(far, mean, 0.0), np.ones(len(mean))])) if far.any() else Scale()


class Table:
    """Scaled examples, ready for inner products with others: arrays in single precision, as models see them."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self._columns: np.ndarray | None = None
        if sp.issparse(matrix):
            self.sq = squared_lengths(without_duplicates(matrix))
        else:
            self._columns = feature_major(matrix, np.float32)
            self.sq = np.add.reduce(np.square(self._columns, dtype=np.float64), axis=0)[: len(matrix)]

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def products(self, others: Table) -> np.ndarray:
        """Inner products, (len(others), len(self)) float64."""
        if self._columns is None:
            width = max(self.matrix.shape[1], others.matrix.shape[1])
            return np.asarray((_wide(others.matrix, width) @ _wide(self.matrix, width).T).toarray())
        n, (height, width) = len(others), self._columns.shape
        out = np.empty((n, len(self)))
        for first in range(0, n, BLOCK):
            part = others.matrix[first : first + BLOCK, :height]
            queries = np.zeros((len(part), height), np.float32)
            queries[:, : part.shape[1]] = part
            P = np.empty((len(part), width), np.float32)
            if len(part) >= MIN_QUERIES:
                products(queries, self._columns, P)
            else:
                for query, row in zip(queries, P, strict=True):
                    used = np.flatnonzero(query)
                    add_rows(self._columns, used, query[used], row)
            out[first : first + len(part)] = P[:, : len(self)]
        return out

    def distances(self, others: Table) -> np.ndarray:
        """Squared Euclidean distances, (len(others), len(self))."""
        return np.maximum(others.sq[:, None] + self.sq - 2.0 * self.products(others), 0.0)


def _wide(matrix: sp.csr_matrix, width: int) -> sp.csr_matrix:
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))
