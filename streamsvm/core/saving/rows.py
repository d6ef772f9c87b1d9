"""The check of stored examples in compressed rows, like those of `integrity` for an expansion."""

import numpy as np

from streamsvm.core.blocks import LARGEST_SQUARED_NORM, squared_norms
from streamsvm.core.saving.snapshot import Arrays, every, require, require_array


def require_rows(arrays: Arrays, n: int, n_features: int) -> np.ndarray:
    """Check `starts`, `columns` and `values` of n examples, or raise a SnapshotError; return the squared norms, (n,).

    The columns of an example must rise, and its values must be features other than 0 of a permitted size.
    """
    starts = require_array(arrays, "starts", np.int64, (n + 1,))
    columns = require_array(arrays, "columns", np.int64, (int(starts[-1]),))
    values = require_array(arrays, "values", np.float64, (int(starts[-1]),))
    require(starts[0] == 0 and every(starts[1:] >= starts[:-1]), "'starts' does not rise from 0")
    require_places(starts, columns, n_features, "an example")
    sq = np.empty(n)
    squared_norms(starts, values, sq)
    require(every(values != 0.0) and every(sq < LARGEST_SQUARED_NORM), "a feature is 0, not a number, or too large")
    return sq


def require_places(starts: np.ndarray, columns: np.ndarray, n_features: int, owner: str) -> None:
    """Raise a SnapshotError unless compressed rows have these many features at most, each row's rising."""
    require(every((columns >= 0) & (columns < n_features)), f"a feature is not among {n_features}")
    begins = np.zeros(len(columns) + 1, bool)
    begins[starts] = True
    require(every((columns[1:] > columns[:-1]) | begins[1:-1]), f"the features of {owner} are not in order")
