"""Blocks of examples as the user gave them."""

import numpy as np

from streamsvm.core.blocks import squared_norms
from streamsvm.core.scaling.state import RawRows
from streamsvm.estimators.inputs.named_rows import NamedRows


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
