"""The values of a span: an expert that is a kernel expansion over at most some hundred records, fitted elsewhere.

    f(x) = sum over i of a_i exp(-gamma |u - l_i|^2),   u = T^T ((x - mean) / deviation)

A missing value has its mean.

========= ==================================================== ================= =======
symbol    name                                                 shape             dtype
========= ==================================================== ================= =======
mean      of each column                                       (D,)              float64
factor    1 / deviation of each column                         (D,)              float64
metric    T                                                    (D, D)            float64
basis     the l_i, transposed                                  (D, M)            float64
squares   |l_i|^2                                              (M,)              float64
coef      a, for each strength of the ridge                    (3, M)            float64
gamma     gamma, and the strength in use                       (2,)              float64
block     kernel rows of the records since the last block      (`BLOCK`, M)      float64
========= ==================================================== ================= =======
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner
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


def new_span(d: int) -> Span:
    """A span without a basis: f is 0."""
    z = np.zeros
    return Span(z(d), np.ones(d), np.eye(d), z((d, 0)), z(0), z((3, 0)), z(2), z((BLOCK, 0)))


@inner
def place(span, x, z, u):
    """Write u, the record in the span's coordinates; z is room of its size or more; return |u|^2."""
    mean, factor, metric = span.mean, span.factor, span.metric
    d, total = x.shape[0], 0.0
    for j in range(d):
        z[j] = 0.0 if np.isnan(x[j]) else (x[j] - mean[j]) * factor[j]
        u[j] = 0.0
    for j in range(d):
        row, v = metric[j], z[j]
        for c in range(d):
            u[c] += v * row[c]
    for j in range(d):
        total += u[j] * u[j]
    return total


@inner
def write_kernel_row(span, u, square, row):
    """Write the kernel values of a record with all of the basis."""
    gamma, basis, squares = span.gamma[0], span.basis, span.squares
    row[:] = 0.0
    for j in range(u.shape[0]):
        own, v = basis[j], u[j]
        for i in range(row.shape[0]):
            row[i] += own[i] * v
    for i in range(row.shape[0]):
        row[i] = exp64(-gamma * max(square + squares[i] - 2.0 * row[i], 0.0))


@inner
def look(span, x, z, u, row):
    """Write the kernel row of a record; z and u are room of its size or more, and of its size."""
    write_kernel_row(span, u, place(span, x, z, u), row)


@inner
def predict_span(span, row):
    """The probability of True, (1 + f) / 2, of a record with this kernel row."""
    coef, f = span.coef[int(span.gamma[1])], 0.0
    for i in range(row.shape[0]):
        f += coef[i] * row[i]
    return min(max(0.5 + 0.5 * f, 0.0), 1.0)


@compiled
def place_all(span, X, z, U):
    """Write the records X, (n, D), in the span's coordinates."""
    for t in range(X.shape[0]):
        place(span, X[t], z, U[t])


@compiled
def kernel_rows(span, U, K):
    """Write the kernel values of records in the span's coordinates with the basis, (n, M)."""
    for t in range(U.shape[0]):
        square = 0.0
        for j in range(U.shape[1]):
            square += U[t, j] * U[t, j]
        write_kernel_row(span, U[t], square, K[t])
