"""The exact path from the solution of one problem to that of another: examples leave and enter by degrees.

Examples that leave are driven to 0, and examples that enter to their bounds.  The solution is a piecewise linear
function of how far they have come.  Along a piece, the free examples and the bias keep their conditions,

    [ 0   1'           ] [d_mu    ]       [ h   ]
    [ 1   K_MM + eps I ] [d_alpha_M]  =  - [ k_M ],      h = sum_D d_i,   k = K_D d,   d_i = target_i - alpha_i
    d_g = -(k + K_M d_alpha_M)

and a piece ends with an *event*: a free coefficient meets its bound, or the gradient of a bounded or entering one
meets the bias.  M then changes by one example, and the inverse P of the matrix by a bordering or a contraction.  At the
end of the path, the next problem is solved.

In a problem without a bias (the gap family), mu is 0, and the row and the column of the bias are 0 in P.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
alpha, g   coefficients and gradient, see `smo`                             (n,) float64
place     OUT (no box, or leaving), FREE, AT_LOWER, AT_UPPER or DRIVEN     (n,) int8
members   the free examples M, in the order of P                           (m,) int64
P         inverse of the bordered matrix; its first row is the bias's      (m+1, m+1) float64
mu        the bias: the common gradient of M                               float
above,    how far gradients were from mu in the solution: the tolerance    float
below     to which it was solved, within which nothing is an event
driven, d examples that are driven, and the rest of their way             (D,) int64, float64
t         length of a piece, as a share of the rest of the way             float
left      the rest of the whole way, 1 .. 0                                float
eps       jitter, 1e-5 / C                                                 float
========= ================================================================ ================

Sources: the multiple incremental and decremental path of Karasuyama and Takeuchi, as in Wen et al., "Improving
Efficiency of SVM k-fold Cross-validation by Alpha Seeding", equations (9) and (10) (ATO).  Deviations:

- (10) is printed without the row of the bias, which leaves a matrix that is not square; above it is bordered.
- Only entering examples that violate their conditions are driven; the others are optimal at 0 from the start.
- The path is followed to its end.  The source's ATO takes one step and adjusts the rest, which gains nothing.
- *Singular matrices* (equal examples): eps is in P only; g belongs to the true kernel.  So the equations have an error
  of eps d_alpha <= 1e-5.  A second solve removes it; otherwise a violation of exactly tol would grow.
- *Events of length 0* could repeat for ever.  So an example that took part in one cannot become free again before
  something has moved.
- *A coefficient that is set to its bound or target* changes g as well.
- *No free example* (not treated in the source): if the driven examples need a counterpart, the bias moves to where the
  first of the others may become free.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from streamsvm.batch.cache import NO_ROW, diagonal_of, row_at, rows_of
from streamsvm.batch.piece import AT_LOWER as AT_LOWER
from streamsvm.batch.piece import AT_UPPER as AT_UPPER
from streamsvm.batch.piece import DRIVEN as DRIVEN
from streamsvm.batch.piece import (
    END,
    ENTERED,
    MET_BOUND,
    add_multiple,
    add_product,
    counterpart,
    directions,
    next_event,
    rates,
)
from streamsvm.batch.piece import FREE as FREE
from streamsvm.batch.piece import OUT as OUT
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.threads import one_blas_thread

COMPLETE, TOO_LONG, SINGULAR, STUCK = 0, 1, 2, 3

JITTER = 1e-5
NO_COMPLEMENT = 1e-10  # an example with a smaller Schur complement depends on those of M
NO_LENGTH = 1e-13
NO_MASS = 1e-14  # of the driven examples, relative to their coefficients


class State(NamedTuple):
    """The problem and its solution, which a path changes in place; the symbol table is in the module's docstring."""

    biased: bool
    alpha: np.ndarray
    g: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    place: np.ndarray


class Way(NamedTuple):
    """The examples that are driven, their coefficients at the end of the path, and its largest number of events."""

    driven: np.ndarray
    target: np.ndarray
    limit: int


class Beginning(NamedTuple):
    """P and the members, of which the first m count, where a path begins; the arrays have room for more."""

    P: np.ndarray
    members: np.ndarray
    m: int
    mu: float
    above: float
    below: float
    jitter: float


class Inverse(NamedTuple):
    """The common beginning of all paths from one solution; the symbol table is in the module's docstring."""

    P: np.ndarray
    members: np.ndarray
    jitter: float
    above: float
    below: float
    workspace: np.ndarray  # for the P of a short path

    def beginning(self, size: int, mu: float) -> Beginning:
        """The beginning of a path on which at most `size` examples are free; the next one may overwrite it."""
        m = len(self.members)
        P = self.workspace if size <= len(self.workspace) else np.empty((size, size))
        members = np.zeros(len(P), np.int64)
        P[: m + 1, : m + 1], members[:m] = self.P, self.members
        return Beginning(P, members, m, mu, self.above, self.below, self.jitter)


def bordered_inverse(K_M: np.ndarray, jitter: float, biased: bool = True) -> np.ndarray | None:
    """The inverse of [[0, 1'], [1, K_M + jitter I]]; None if K_M + jitter I is not positive definite.

    Without a bias: the inverse of K_M + jitter I, bordered by zeros.
    """
    m = len(K_M)
    P = np.zeros((m + 1, m + 1))
    if m == 0:
        return P
    A = K_M.copy()
    A[np.diag_indices(m)] += jitter
    with one_blas_thread():
        L, failed = lapack.dpotrf(A.T, lower=True, overwrite_a=True)  # A.T is as LAPACK wants it: nothing is copied
        if failed:
            return None
        lower, _ = lapack.dpotri(L, lower=True, overwrite_c=True)
    inverse = P[1:, 1:]
    inverse[:] = lower.T
    np.copyto(inverse, lower, where=np.tri(m, k=-1, dtype=bool))
    if not biased:
        return P if np.isfinite(inverse).all() else None
    z = inverse.sum(axis=1)
    total = z.sum()
    if not (np.isfinite(total) and total > 0.0):
        return None
    P[0, 0], P[0, 1:], P[1:, 0] = -1.0 / total, z / total, z / total
    inverse -= np.outer(z, z / total)
    return P


# ------------------------------------------------------------------------------------------------------------------- P


@inner
def contract(P, members, m, p):
    """Take the p-th of m members, counted from 1, out of P, and put the last one in its place; False if it fails."""
    place = m  # number of the last row and column
    if m == 1:
        return True
    pivot = P[p, p]
    if not pivot > 0.0:
        return False
    for i in range(m + 1):
        if i != p and P[i, p] != 0.0:
            add_multiple(P[i, : m + 1], -P[i, p] / pivot, P[p, : m + 1])
    if p != place:
        P[p, : m + 1] = P[place, : m + 1]
        for i in range(m):
            P[i, p] = P[i, place]
        members[p - 1] = members[m - 1]
    return True


@inner
def border(P, members, m, s, row, diagonal, biased):
    """Add example s, with this kernel row and this diagonal entry, to P; False if it fails."""
    if m == 0:
        P[:2, :2] = 0.0
        if biased:
            P[0, 0], P[0, 1], P[1, 0] = -diagonal, 1.0, 1.0
        else:
            P[1, 1] = 1.0 / diagonal
        members[0] = s
        return True
    v, w = np.ones(m + 1), np.zeros(m + 1)
    for p in range(m):
        v[p + 1] = row[members[p]]
    add_product(P, m + 1, v, w)
    complement = diagonal - w[0]
    for p in range(m):
        complement -= row[members[p]] * w[p + 1]
    if not complement > NO_COMPLEMENT:
        return False
    for i in range(m + 1):
        add_multiple(P[i, : m + 1], w[i] / complement, w)
        P[i, m + 1] = P[m + 1, i] = -w[i] / complement
    P[m + 1, m + 1] = 1.0 / complement
    members[m] = s
    return True


# ------------------------------------------------------------------------------------------------------------- the path


@inner
def _take(store, g, i, change):
    """Bring g up to date with a change of alpha_i."""
    add_multiple(g, -change, rows_of(store)[row_at(store, i, NO_ROW)])


@inner
def _take_leave(P, members, m, driven):
    """Take the driven examples out of M; the size of M then, -1 if it fails."""
    for i in driven:
        for p in range(1, m + 1):
            if members[p - 1] == i:
                if not contract(P, members, m, p):
                    return -1
                m -= 1
                break
    return m


@inner
def _go(g, alpha, members, m, driven, d, change, rate, k, t):
    """Go this share of the rest of the way."""
    for p in range(m):
        alpha[members[p]] += t * change[p + 1]
    add_multiple(g, t, rate)
    for c in range(driven.shape[0]):
        alpha[driven[c]] += t * d[c]
        d[c] *= 1.0 - t
    for i in range(k.shape[0]):
        k[i] *= 1.0 - t


@inner
def _assign(store, g, alpha, i, value):
    """Set alpha_i exactly, and update g."""
    if alpha[i] != value:
        _take(store, g, i, value - alpha[i])
        alpha[i] = value


@compiled
def follow(store, state, way, beginning):
    """Follow the path to its end, in place; the outcome, and the number of events."""
    biased, alpha, g, lo, hi, place = state
    driven, target, limit = way
    P, members, m, mu, above, below, jitter = beginning
    n = g.shape[0]
    d, k, rate = target - alpha[driven], np.zeros(n), np.empty(n)
    change, residual = np.empty(P.shape[0]), np.empty(P.shape[0])
    tabu, any_tabu = np.zeros(n, np.bool_), False
    mass, left, events = np.abs(d).sum(), 1.0, 0
    for c in range(driven.shape[0]):
        _take(store, k, driven[c], -d[c])
    m = _take_leave(P, members, m, driven)
    if m < 0:
        return SINGULAR, 0
    while True:
        h = d.sum()
        if biased and m == 0 and abs(h) > NO_MASS * mass:
            s = counterpart(g, place, tabu, h < 0.0)
            if s < 0:
                return STUCK, events
            events += 1
            row_at(store, s, NO_ROW)  # as for all members: `places_of` knows only rows that were asked for
            border(P, members, 0, s, g, diagonal_of(store)[s] + jitter, biased)
            place[s], mu, m = FREE, g[s], 1
        directions(P, members, m, h, k, jitter, change, residual)
        rates(store, members, m, change, k, rate)
        t, what, who = next_event(
            biased, g, alpha, lo, hi, place, tabu, members, m, driven, d, change, rate, mu, above, below
        )
        _go(g, alpha, members, m, driven, d, change, rate, k, t)
        mu += t * change[0]
        if what == END:
            break
        events += 1
        if events > limit:
            return TOO_LONG, events
        if t * left > NO_LENGTH and any_tabu:
            tabu[:] = False
            any_tabu = False
        if what == MET_BOUND:
            i, rises = members[who - 1], change[who] > 0.0
            _assign(store, g, alpha, i, hi[i] if rises else lo[i])
            place[i] = AT_UPPER if rises else AT_LOWER
            if not contract(P, members, m, who):
                return SINGULAR, events
            m -= 1
        else:
            i = who
            if what == ENTERED:
                i = driven[who]
                _take(store, k, i, d[who])
                d[who] = 0.0
            if m + 2 > P.shape[0]:
                return TOO_LONG, events
            row = rows_of(store)[row_at(store, i, NO_ROW)]
            if not border(P, members, m, i, row, diagonal_of(store)[i] + jitter, biased):
                return SINGULAR, events
            place[i] = FREE
            m += 1
        if t * left <= NO_LENGTH:
            tabu[i] = any_tabu = True
        left *= 1.0 - t
    for c in range(driven.shape[0]):
        if place[driven[c]] == OUT or place[driven[c]] == DRIVEN:
            _assign(store, g, alpha, driven[c], target[c])
    return COMPLETE, events
