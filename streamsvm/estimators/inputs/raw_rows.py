"""Examples as the user gave them: a batch of any kind block by block, as names and arrays, and as compressed rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.blocks import BLOCK, squared_norms
from streamsvm.core.costs import FEW_FEATURES
from streamsvm.core.inputs import csr_of_frame, floats_of, has_sparse_columns, without_duplicates
from streamsvm.core.scaling.state import RawRows
from streamsvm.estimators.inputs.checks import frame_of, named_columns, table_of, values_of
from streamsvm.estimators.inputs.named_rows import NamedRows

NARROW = 4  # so many times as many examples of few features make a block, which costs more to prepare than to compute


def is_sparse(X: Any) -> bool:
    """Whether a feature that an example of X does not name is 0, and not lacking."""
    return not is_named(X) and (sp.issparse(X) or has_sparse_columns(X))


def is_named(X: Any) -> bool:
    """Whether each example of X names its features."""
    return isinstance(X, list | tuple | NamedRows)


def named_blocks(X: Any, learning: bool, takes_gaps: bool, at_once: int = BLOCK) -> Iterator[NamedRows]:
    """X in blocks of about `at_once` examples; a value of a dict that is missing is NaN, if a dict may lack one."""
    if isinstance(X, NamedRows):
        yield from X.blocks(at_once)
    elif isinstance(X, list | tuple):
        for b in range(0, len(X), at_once):
            yield _of_dicts(X[b : b + at_once], b, takes_gaps)
    elif sp.issparse(X):
        yield from _of_sparse(without_duplicates(sp.csr_matrix(X)), None, learning, at_once)
    elif has_sparse_columns(X):
        yield from _of_sparse(csr_of_frame(X), tuple(frame_of(X).columns), learning, at_once)
    else:
        names, values = named_columns(X)
        at_once *= NARROW if len(names) < FEW_FEATURES else 1
        for b in range(0, len(values), at_once):
            yield NamedRows.table(names, np.asarray(values[b : b + at_once], np.float64))


def _of_sparse(X: Any, columns: tuple | None, learning: bool, at_once: int) -> Iterator[NamedRows]:
    """Blocks of a sparse matrix, whose columns have names or are numbers."""
    data = floats_of(X.data)
    if learning and X.nnz < FEW_FEATURES * X.shape[0]:
        at_once *= NARROW
    for b in range(0, X.shape[0], at_once):
        starts = X.indptr[b : b + at_once + 1].astype(np.int64)
        own = slice(starts[0], starts[-1])
        used, inputs = np.unique(X.indices[own], return_inverse=True)
        names = tuple(used.tolist()) if columns is None else tuple(columns[d] for d in used)
        yield NamedRows(names, starts - starts[0], inputs, data[own].astype(np.float64))


def _of_dicts(rows: Sequence[Mapping], first: int, takes_gaps: bool) -> NamedRows:
    table = table_of(rows)
    if table is not None:
        return NamedRows.table(*table)
    for t, x in enumerate(rows):
        if not isinstance(x, Mapping):
            raise TypeError(
                f"X[{first + t}] is {x!r}; a batch is a frame, a 2-D array, a sparse matrix or a list of dicts"
            )
    return NamedRows.listed(rows, np.concatenate([values_of(x, takes_gaps) for x in rows], dtype=np.float64))


# ------------------------------------------------------------------------------------------------------ compressed rows


def from_named(rows: NamedRows, columns: np.ndarray) -> RawRows:
    """Rows whose feature d, in the order of their names, has the column columns[d]."""
    own = columns[None].repeat(len(rows), axis=0).reshape(-1) if rows.is_table else columns[rows.inputs]
    return from_rows(rows.starts, own, np.require(rows.values, np.float64, ("C", "W")))


def from_rows(starts: np.ndarray, columns: np.ndarray, values: np.ndarray) -> RawRows:
    """Compressed rows whose features have these columns."""
    sq = np.empty(len(starts) - 1)
    squared_norms(starts, values, sq)
    return RawRows(starts, columns, values, sq)


def one_row(columns: np.ndarray, values: np.ndarray) -> RawRows:
    """One example."""
    return from_rows(np.array([0, len(values)]), columns, values)


def with_gaps(raw: RawRows, marked: bool) -> RawRows:
    """One example that lacks features, and marks such a gap or does not."""
    return raw._replace(gaps=True, marks=np.array([marked]))


def without_missing(raw: RawRows) -> RawRows:
    """Examples without their values that are NaN, each of which marks a gap."""
    known = ~np.isnan(raw.values)
    starts = np.append(0, np.cumsum(known))[raw.indptr]
    rows = from_rows(starts, raw.columns[known], raw.values[known])
    return rows._replace(marks=np.diff(starts) < np.diff(raw.indptr))
