"""The factor of the kernel among the free examples of a path, which examples enter and leave.

    L L' = K_MM + eps I,       L w = 1

It solves the equations of `follow`, with A = K_MM + eps I:

    [ 0  1' ] [ mu ]   [ h ]
    [ 1  A  ] [ x  ] = [ v ],       mu = (w' L^-1 v - h) / w'w,       x = L'^-1 (L^-1 v - mu w)

An example that enters adds a row to L.  One that leaves takes its row out; rotations of the columns behind it make the
rest triangular again.  To start a path, a factor takes a fifth of the time of an inverse.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
F         L by columns: F[j, i] = L_ij for i >= j; the rest is not used    (at least m, m) float64
w         the solution of L w = 1, which belongs to the bias               (at least m,) float64
members   the free examples M, in the order of L                           (at least m,) int64
eps       jitter, see `follow`                                               float
========= ================================================================ ================

Source: Golub, Van Loan, "Matrix Computations", on updating factorisations.
"""

import math

import numpy as np

from streamsvm.batch.kernels.cache import add_four, dot
from streamsvm.core.compiling._jit import compiled, inner, inner_fma, inner_sum, shared
from streamsvm.core.rounding import SINGULAR
from streamsvm.core.threads import one_blas_thread

OWN_LOOP = 200  # members; up to so many, to call LAPACK and to hold its threads takes longer than it gains


@inner_fma
def add_multiple(out, a, row):
    """out += a row."""
    for t in range(out.shape[0]):
        out[t] += a * row[t]


@inner_sum
def _four_dots(x, a, b, c, d):
    """The products of x with four rows."""
    of_a, of_b, of_c, of_d = 0.0, 0.0, 0.0, 0.0
    for t in range(x.shape[0]):
        of_a += a[t] * x[t]
        of_b += b[t] * x[t]
        of_c += c[t] * x[t]
        of_d += d[t] * x[t]
    return of_a, of_b, of_c, of_d


@inner
def forward(F, m, x):
    """x = L^-1 x, four columns at a time."""
    j = 0
    while j + 4 <= m:
        a, b, c, d = F[j], F[j + 1], F[j + 2], F[j + 3]
        x_a = x[j] / a[j]
        x_b = (x[j + 1] - x_a * a[j + 1]) / b[j + 1]
        x_c = (x[j + 2] - x_a * a[j + 2] - x_b * b[j + 2]) / c[j + 2]
        x_d = (x[j + 3] - x_a * a[j + 3] - x_b * b[j + 3] - x_c * c[j + 3]) / d[j + 3]
        x[j], x[j + 1], x[j + 2], x[j + 3] = x_a, x_b, x_c, x_d
        j += 4
        add_four(x[j:m], -x_a, -x_b, -x_c, -x_d, a[j:m], b[j:m], c[j:m], d[j:m])
    while j < m:
        x[j] /= F[j, j]
        add_multiple(x[j + 1 : m], -x[j], F[j, j + 1 : m])
        j += 1


@inner
def backward(F, m, x):
    """x = L'^-1 x, four columns at a time."""
    j = m
    while j % 4 > 0:
        j -= 1
        x[j] = (x[j] - dot(x[j + 1 : m], F[j, j + 1 : m])) / F[j, j]
    while j > 0:
        a, b, c, d = F[j - 4], F[j - 3], F[j - 2], F[j - 1]
        of_a, of_b, of_c, of_d = _four_dots(x[j:m], a[j:m], b[j:m], c[j:m], d[j:m])
        j -= 4
        x[j + 3] = (x[j + 3] - of_d) / d[j + 3]
        x[j + 2] = (x[j + 2] - of_c - c[j + 3] * x[j + 3]) / c[j + 2]
        x[j + 1] = (x[j + 1] - of_b - b[j + 3] * x[j + 3] - b[j + 2] * x[j + 2]) / b[j + 1]
        x[j] = (x[j] - of_a - a[j + 3] * x[j + 3] - a[j + 2] * x[j + 2] - a[j + 1] * x[j + 1]) / a[j]


@compiled
def solve_forward(F, m, x):
    """x = L^-1 x."""
    forward(F, m, x)


@compiled
def decompose(F):
    """Make the symmetric F the factor of its matrix; False if that is not positive definite."""
    m = F.shape[0]
    for j in range(m):
        column, k = F[j, j:m], 0
        while k + 4 <= j:
            a, b, c, d = F[k], F[k + 1], F[k + 2], F[k + 3]
            add_four(column, -a[j], -b[j], -c[j], -d[j], a[j:m], b[j:m], c[j:m], d[j:m])
            k += 4
        while k < j:
            add_multiple(column, -F[k, j], F[k, j:m])
            k += 1
        if not column[0] > 0.0:
            return False
        root = math.sqrt(column[0])
        for i in range(m - j):
            column[i] /= root
    return True


def factorise(K_M: np.ndarray, jitter: float) -> tuple[np.ndarray, np.ndarray] | None:
    """F and w, of K_M + jitter I, in the memory of K_M; None if that matrix is not positive definite."""
    from scipy.linalg import lapack  # loads as long as numpy; only some learners need it

    m = len(K_M)
    w = np.ones(m)
    K_M.reshape(-1)[:: m + 1] += jitter
    if m <= OWN_LOOP:
        failed = not decompose(K_M)
    else:
        with one_blas_thread():  # K_M.T is as LAPACK wants it, so nothing is copied.
            _, failed = lapack.dpotrf(K_M.T, lower=True, clean=False, overwrite_a=True)
    if failed:
        return None
    solve_forward(K_M, m, w)
    return (K_M, w) if np.isfinite(w).all() else None


@inner
def _add_solution(F, w, m, biased, h, v, out):
    """[out_0; out_1..m] += [mu; x]; v is used up."""
    v = v[:m]
    forward(F, m, v)
    if biased:
        mu = (dot(w[:m], v) - h) / dot(w[:m], w[:m])
        out[0] += mu
        add_multiple(v, -mu, w[:m])
    backward(F, m, v)
    for p in range(m):
        out[p + 1] += v[p]


@shared
def directions(F, w, members, m, biased, h, k, jitter, change, v):
    """[d_mu; d_alpha_M] for -[h; k_M], and once more for the rest of the jitter, -eps d_alpha_M."""
    change[: m + 1] = 0.0
    if m == 0:
        return
    for p in range(m):
        v[p] = -k[members[p]]
    _add_solution(F, w, m, biased, -h, v, change)
    for p in range(m):
        v[p] = jitter * change[p + 1]
    _add_solution(F, w, m, biased, 0.0, v, change)


@shared
def enter(F, w, members, m, s, row, diagonal):
    """Add example s, with this kernel row and this diagonal entry, to the m members; False if it fails."""
    v = np.empty(m)
    for p in range(m):
        v[p] = row[members[p]]
    forward(F, m, v)
    complement = diagonal - dot(v, v)
    if not complement > SINGULAR:  # the example depends on those of M
        return False
    for p in range(m):
        F[p, m] = v[p]
    F[m, m] = math.sqrt(complement)
    w[m] = (1.0 - dot(w[:m], v)) / F[m, m]
    members[m] = s
    return True


@inner
def _rotate(target, column, row, c, s):
    """Rotate a column of L and the row that leaves."""
    for t in range(column.shape[0]):
        a, b = column[t], row[t]
        target[t] = c * a + s * b
        row[t] = c * b - s * a


@shared
def leave(F, w, members, m, p):
    """Take the p-th of m members, counted from 1, out."""
    k, row, w_k = p - 1, F[p - 1, p:m].copy(), w[p - 1]
    for j in range(k):
        column = F[j]
        for i in range(k, m - 1):
            column[i] = column[i + 1]
    for j in range(k, m - 1):
        a, b = F[j + 1, j + 1], row[j - k]
        r = math.sqrt(a * a + b * b)
        c, s = a / r, b / r
        F[j, j] = r
        _rotate(F[j, j + 1 : m - 1], F[j + 1, j + 2 : m], row[j - k + 1 :], c, s)
        w[j], w_k = c * w[j + 1] + s * w_k, c * w_k - s * w[j + 1]
        members[j] = members[j + 1]
