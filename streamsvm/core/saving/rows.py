"""The check of stored examples in compressed rows, like those of `integrity` for an expansion."""

import numpy as np

from streamsvm.core.blocks import LARGEST_SQUARED_NORM
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.saving.snapshot import Arrays, require, require_array

FAULTS = (
    "'starts' does not rise from 0",
    "a feature of an example is not among those with a name",
    "the features of an example are not in order",
    "a feature of an example is 0, not a number, or too large",
)
START, COLUMN, ORDER, VALUE, SOUND = range(len(FAULTS) + 1)


def require_rows(arrays: Arrays, n: int, n_features: int) -> None:
    """Check `starts`, `columns` and `values` of n examples, or raise a SnapshotError.

    The columns of an example must rise, and its values must be features other than 0 of a permitted size.
    """
    starts = require_array(arrays, "starts", np.int64, (n + 1,))
    columns = require_array(arrays, "columns", np.int64, (int(starts[-1]),))
    values = require_array(arrays, "values", np.float64, (int(starts[-1]),))
    fault = fault_of_rows(starts, columns, values, n_features)
    require(fault == SOUND, (*FAULTS, "")[fault])


@compiled
def fault_of_rows(starts, columns, values, n_features):
    """What is wrong with compressed rows: a place in `FAULTS`, or `SOUND`."""
    first = SOUND if starts[0] == 0 else START
    for t in range(starts.shape[0] - 1):
        if starts[t + 1] < starts[t]:
            first = START
    if first == START:
        return START
    for t in range(starts.shape[0] - 1):
        sq = 0.0
        for k in range(starts[t], starts[t + 1]):
            if not 0 <= columns[k] < n_features:
                first = min(first, COLUMN)
            if k > starts[t] and columns[k] <= columns[k - 1]:
                first = min(first, ORDER)
            sq += values[k] * values[k] if values[k] != 0.0 else LARGEST_SQUARED_NORM
        if not sq < LARGEST_SQUARED_NORM:
            first = min(first, VALUE)
    return first
