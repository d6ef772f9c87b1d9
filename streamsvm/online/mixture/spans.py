"""The values of a span: an expert that is a kernel expansion over at most some hundred records, fitted elsewhere.

    f(x) = sum over i of a_i exp(-gamma |u - l_i|^2),   u = T^T ((x - mean) / deviation)

A missing value has its mean.

========= ==================================================== ================= =======
symbol    name                                                 shape             dtype
========= ==================================================== ================= =======
mean      of each column                                       (D,)              float64
factor    1 / deviation of each column                         (D,)              float64
metric    T, or its diagonal if there is no more               (D, D), (1, D)    float64
basis     the l_i, transposed                                  (D, M)            float64
squares   |l_i|^2                                              (M,)              float64
coef      a, for each strength of the ridge                    (3, M)            float64
gamma     gamma, and the strength in use                       (2,)              float64
block     kernel rows of the records since the last block      (`BLOCK`, M)      float64
========= ==================================================== ================= =======
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._jit import inner
from streamsvm.core.compiling._reference import by_reference
from streamsvm.core.exponentials import exp64

BLOCK = 128  # records that are taken into the sums together, at most: these are in no near memory by then


@by_reference
class Span(NamedTuple):
    """What it takes to evaluate a span."""

    mean: np.ndarray
    factor: np.ndarray
    metric: np.ndarray
    basis: np.ndarray
    squares: np.ndarray
    coef: np.ndarray
    gamma: np.ndarray
    block: np.ndarray


def new_span(is_full: bool) -> Span:
    """A span without columns and without a basis, so f is 0; with a full metric or a diagonal."""
    z = np.zeros
    return Span(z(0), z(0), z((0 if is_full else 1, 0)), z((0, 0)), z(0), z((3, 0)), z(2), z((BLOCK, 0)))


@inner
def look(span, x, z, u, row):
    """Write the kernel row of a record; z and u are room of its size or more, and of its size."""
    mean, factor, metric = span.mean, span.factor, span.metric
    d, square = x.shape[0], 0.0
    for j in range(d):
        z[j] = 0.0 if np.isnan(x[j]) else (x[j] - mean[j]) * factor[j]
        u[j] = 0.0
    if metric.shape[0] == 1:
        for j in range(d):
            u[j] = z[j] * metric[0, j]
    else:
        for j in range(d):
            own, v = metric[j], z[j]
            for c in range(d):
                u[c] += v * own[c]
    for j in range(d):
        square += u[j] * u[j]
    gamma, basis, squares = span.gamma[0], span.basis, span.squares
    row[:] = 0.0
    for j in range(d):
        own, v = basis[j], u[j]
        for i in range(row.shape[0]):
            row[i] += own[i] * v
    for i in range(row.shape[0]):
        row[i] = exp64(-gamma * max(square + squares[i] - 2.0 * row[i], 0.0))


@inner
def predict_span(span, row):
    """The probability of True, (1 + f) / 2, of a record with this kernel row."""
    coef, f = span.coef[int(span.gamma[1])], 0.0
    for i in range(row.shape[0]):
        f += coef[i] * row[i]
    return min(max(0.5 + 0.5 * f, 0.0), 1.0)
