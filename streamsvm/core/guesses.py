"""Guesses for missing numbers: for each field its running mean, or its last value, whichever has been closer.

    r = max(1/200, 1/n)                                          n values so far
    E_mean <- E_mean + r ((v - mean)^2 - E_mean)                 running squared error of the guess before v came
    E_last <- E_last + r ((v - last)^2 - E_last)
    mean <- mean + max(1/2000, 1/n) (v - mean),   last <- v

A missing value moves nothing.  A row of the state has the five numbers of one field, by the names below.
"""

import numpy as np

from streamsvm.core.compiling._jit import compiled
from streamsvm.core.scaling.gaps import RATE
from streamsvm.core.scaling.state import MEMORY

N, MEAN, LAST, ERROR_OF_MEAN, ERROR_OF_LAST, NUMBERS = range(6)


@compiled
def learn_values(state, values):
    """Take in the values of one record, (F,) with NaN for a missing one; `state` is (F, 5) or longer."""
    for f in range(values.shape[0]):
        v = values[f]
        if np.isnan(v):
            continue
        own = state[f]
        own[N] += 1.0
        if own[N] > 1.0:
            rate = max(RATE, 1.0 / own[N])
            own[ERROR_OF_MEAN] += rate * ((v - own[MEAN]) ** 2 - own[ERROR_OF_MEAN])
            own[ERROR_OF_LAST] += rate * ((v - own[LAST]) ** 2 - own[ERROR_OF_LAST])
        own[MEAN] += max(1.0 / MEMORY, 1.0 / own[N]) * (v - own[MEAN])
        own[LAST] = v


def guess(row: np.ndarray) -> float:
    """What to take for a missing value of the field that has this row of the state."""
    _, mean, last, of_mean, of_last = row.tolist()  # faster than to ask the array for each
    return last if of_last < of_mean else mean
