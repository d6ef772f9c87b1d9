"""The exact path from the solution of one problem to that of another: examples leave and enter by degrees.

Examples that leave are driven to 0, and examples that enter to their bounds.  The solution is a piecewise linear
function of how far they have come.  Along a piece, the free examples and the bias keep their conditions,

    [ 0   1'           ] [d_mu    ]       [ h   ]
    [ 1   K_MM + eps I ] [d_alpha_M]  =  - [ k_M ],      h = sum_D d_i,   k = K_D d,   d_i = target_i - alpha_i
    d_g = -(k + K_M d_alpha_M)

and a piece ends with an *event*: a free coefficient meets its bound, or the gradient of a bounded or entering one
meets the bias.  M then changes by one example, and with it the factor of the matrix, see `factor`.  At the end of the
path, the next problem is solved.

In a problem without a bias (the gap family), mu is 0.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
alpha, g   coefficients and gradient, see `smo`                             (n,) float64
place     OUT (no box, or leaving), FREE, AT_LOWER, AT_UPPER or DRIVEN     (n,) int8
members   the free examples M, in the order of the factor                  (m,) int64
F, w      the factor, see `factor`                                         (m, m), (m,) float64
mu        the bias: the common gradient of M                               float
above,    how far gradients were from mu in the solution: the tolerance    float
below     to which it was solved, within which nothing is an event
driven, d examples that are driven, and the rest of their way             (D,) int64, float64
t         length of a piece, as a share of the rest of the way             float
left      the rest of the whole way, 1 .. 0                                float
eps       jitter, 1e-5 / C                                                 float
========= ================================================================ ================

Sources: the multiple incremental and decremental path of Karasuyama and Takeuchi, as in Wen et al., "Improving
Efficiency of SVM k-fold Cross-validation by Alpha Seeding", equations (9) and (10) of ATO.  `seeding.ato` is that
algorithm as printed.  Deviations from it:

- (10) is printed without the column of the bias, which leaves a matrix that is not square; above it is bordered.  So
  the end of the path is the solution, and SMO has nothing left to do.
- Only entering examples that violate their conditions are driven; the others are optimal at 0 from the start.
- *Singular matrices* (equal examples): eps is in F only; g belongs to the true kernel.  So the equations have an error
  of eps d_alpha <= 1e-5.  A second solve removes it; otherwise a violation of exactly tol would grow.
- *Events of length 0* could repeat for ever.  So an example that took part in one cannot become free again before
  something has moved.
- *A coefficient that is set to its bound or target* changes g as well.
- *No free example* (not treated in the source): if the driven examples need a counterpart, the bias moves to where the
  first of the others may become free.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.batch.kernels.cache import NO_ROW, diagonal_of, row_at, rows_of
from streamsvm.batch.path.events import AT_LOWER as AT_LOWER
from streamsvm.batch.path.events import AT_UPPER as AT_UPPER
from streamsvm.batch.path.events import DRIVEN as DRIVEN
from streamsvm.batch.path.events import (
    END,
    ENTERED,
    MET_BOUND,
    counterpart,
    next_event,
    rates,
)
from streamsvm.batch.path.events import FREE as FREE
from streamsvm.batch.path.events import OUT as OUT
from streamsvm.batch.path.factor import add_multiple, directions, enter, leave
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.rounding import DUST

COMPLETE, TOO_LONG, SINGULAR, STUCK = range(4)

PATH_JITTER = 1e-5  # over C, on the diagonal: an error of the path that the end of it takes back


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
    """The factor and its members, of which the first m count, where a path begins; the arrays have room for more."""

    F: np.ndarray
    w: np.ndarray
    members: np.ndarray
    m: int
    mu: float
    above: float
    below: float
    jitter: float


class Factor(NamedTuple):
    """The common beginning of all paths from one solution; the symbol table is in the module's docstring."""

    F: np.ndarray
    w: np.ndarray
    members: np.ndarray
    jitter: float
    above: float
    below: float
    workspace: np.ndarray  # for the F of a short path

    def beginning(self, size: int, mu: float) -> Beginning:
        """The beginning of a path on which at most `size` examples are free; the next one may overwrite it."""
        m = len(self.members)
        F = self.workspace if size <= len(self.workspace) else np.empty((size, size))
        w, members = np.empty(len(F)), np.zeros(len(F), np.int64)
        F[:m, :m], w[:m], members[:m] = self.F, self.w, self.members
        return Beginning(F, w, members, m, mu, self.above, self.below, self.jitter)


# ------------------------------------------------------------------------------------------------------------- the path


@inner
def _take(store, g, i, change):
    """Bring g up to date with a change of alpha_i."""
    add_multiple(g, -change, rows_of(store)[row_at(store, i, NO_ROW)])


@inner
def _take_leave(F, w, members, m, driven):
    """Take the driven examples out of M; the size of M then."""
    for i in driven:
        for p in range(1, m + 1):
            if members[p - 1] == i:
                leave(F, w, members, m, p)
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
    F, w, members, m, mu, above, below, jitter = beginning
    n = g.shape[0]
    d, k, rate = target - alpha[driven], np.zeros(n), np.empty(n)
    change, v = np.empty(F.shape[0] + 1), np.empty(F.shape[0])
    tabu, any_tabu = np.zeros(n, np.bool_), False
    # 1. What the driven examples change on their whole way; they leave M.
    mass, left, events = np.abs(d).sum(), 1.0, 0
    for c in range(driven.shape[0]):
        _take(store, k, driven[c], -d[c])
    m = _take_leave(F, w, members, m, driven)
    while True:
        # 2. Without a free example, the bias moves to where the first one becomes free.
        h = d.sum()
        if biased and m == 0 and abs(h) > DUST * mass:
            s = counterpart(g, place, tabu, h < 0.0)
            if s < 0:
                return STUCK, events
            events += 1
            row_at(store, s, NO_ROW)  # as for all members: `places_of` knows only rows that were asked for
            enter(F, w, members, 0, s, g, diagonal_of(store)[s] + jitter)
            place[s], mu, m = FREE, g[s], 1
        # 3. Go along the piece, up to the event that ends it.
        directions(F, w, members, m, biased, h, k, jitter, change, v)
        rates(store, members, m, change, k, rate)
        t, what, who = next_event(
            biased, g, alpha, lo, hi, place, tabu, members, m, driven, d, change, rate, mu, above, below
        )
        _go(g, alpha, members, m, driven, d, change, rate, k, t)
        mu += t * change[0]
        if what == END:
            break
        # 4. The event: an example leaves M or enters it, and with it the factor.
        events += 1
        if events > limit:
            return TOO_LONG, events
        if t * left > DUST and any_tabu:
            tabu[:] = False
            any_tabu = False
        if what == MET_BOUND:
            i, rises = members[who - 1], change[who] > 0.0
            _assign(store, g, alpha, i, hi[i] if rises else lo[i])
            place[i] = AT_UPPER if rises else AT_LOWER
            leave(F, w, members, m, who)
            m -= 1
        else:
            i = who
            if what == ENTERED:
                i = driven[who]
                _take(store, k, i, d[who])
                d[who] = 0.0
            if m + 1 > F.shape[0]:
                return TOO_LONG, events
            row = rows_of(store)[row_at(store, i, NO_ROW)]
            if not enter(F, w, members, m, i, row, diagonal_of(store)[i] + jitter):
                return SINGULAR, events
            place[i] = FREE
            m += 1
        if t * left <= DUST:
            tabu[i] = any_tabu = True
        left *= 1.0 - t
    # 5. At the end, the driven examples are exactly where they were to go.
    for c in range(driven.shape[0]):
        if place[driven[c]] == OUT or place[driven[c]] == DRIVEN:
            _assign(store, g, alpha, driven[c], target[c])
    return COMPLETE, events
