"""An expert that sees what trees see: logistic regression on the bins of each column, and of each pair of columns.

    f = b + sum of w over the bins of all columns and over the cells of all pairs;  w -= rate g / sqrt(sum of g^2)

A column has `BINS` bins of equally many values, and one for a missing value.  Cells of pairs share `PLACES` weights by
a hash.  The steps are AdaGrad's (Duchi, Hazan and Singer 2011).

========= ==================================================== ==================== =======
symbol    name                                                 shape                dtype
========= ==================================================== ==================== =======
edges     between the bins of each column                      (D, BINS - 1)        float64
weights   w, and the sum of g^2                                (2, PLACES)          float32
cells     receives the places in use                           (1 + D (D + 1) / 2,) int64
========= ==================================================== ==================== =======
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.compiling._reference import by_reference
from streamsvm.core.hashed_text import MIXER
from streamsvm.online.mixture.linear import sigmoid

BINS = 8  # of a column: 64 cells of a pair get enough records soon
MISSING = BINS  # the bin of a missing value
MOST_PAIRED = 32  # columns
PLACES = MOST_PAIRED**2 // 2 * BINS**2  # one for each cell of two bins, about; a power of 2, and 256 KiB
RATE = 0.1  # the first step of a weight
FACTORS = (0x9E3779B1, MIXER)  # odd numbers of 32 bits, without a pattern


@by_reference
class Pairs(NamedTuple):
    """The state of the expert."""

    edges: np.ndarray
    weights: np.ndarray


def new_pairs(d: int) -> Pairs:
    """The state before the first record: without edges, all values of a column are in one bin."""
    return Pairs(np.full((min(d, MOST_PAIRED), BINS - 1), np.inf), np.zeros((2, PLACES), np.float32))


def widened(state: Pairs, d: int) -> Pairs:
    """The same state with room for more columns."""
    wide = new_pairs(d)
    wide.edges[: len(state.edges)] = state.edges
    return wide._replace(weights=state.weights)


def binned(X: np.ndarray) -> Pairs:
    """A state that has learned nothing, with the bins of these records, (n, D)."""
    state = new_pairs(X.shape[1])
    for j in range(len(state.edges)):
        values = X[:, j][~np.isnan(X[:, j])]
        if len(values):
            state.edges[j] = np.quantile(values, np.arange(1, BINS) / BINS)
    return state


def room(d: int) -> np.ndarray:
    """Room for the cells of a record."""
    d = min(d, MOST_PAIRED)
    return np.zeros(1 + d * (d + 1) // 2, np.int64)


@inner
def _bin(edges, v):
    if np.isnan(v):
        return MISSING
    b = 0
    for k in range(edges.shape[0]):
        b += v > edges[k]
    return b


@inner
def find_cells(edges, x, cells):
    """Write the places of a record: of the constant, of its bins, and of its pairs."""
    d, n = edges.shape[0], 1
    cells[0] = 0
    for j in range(d):
        own = (j * (BINS + 1) + _bin(edges[j], x[j]) + 1) * FACTORS[0]
        cells[n] = own
        n += 1
        for k in range(j):
            h = own ^ (cells[1 + k * (k + 1) // 2] * FACTORS[1])
            cells[n] = h
            n += 1
    for k in range(1, n):
        h = cells[k] & 0xFFFFFFFF
        cells[k] = (h ^ (h >> 15)) & (PLACES - 1)


@inner
def predict_pairs(state, cells):
    """The probability of True of a record with these cells."""
    w, f = state.weights[0], 0.0
    for cell in cells:
        f += w[cell]
    return sigmoid(f)


@inner
def learn_pairs(state, cells, y):
    """Learn a record with these cells and the label y, +1 or -1."""
    g = predict_pairs(state, cells) - (1.0 if y > 0.0 else 0.0)
    w, sums = state.weights[0], state.weights[1]
    for cell in cells:
        sums[cell] += g * g
        if sums[cell] > 0.0:
            w[cell] -= RATE * g / math.sqrt(sums[cell])


@compiled
def learn_all_pairs(state, X, y, cells):
    """Learn these records in order; `cells` is room."""
    for t in range(X.shape[0]):
        find_cells(state.edges, X[t], cells)
        learn_pairs(state, cells, y[t])
