"""A piece of the exact path: where the solution goes, and the event that ends the piece; see `follow`.

The arrays are those of `follow`.  As in `steps.pairs`, functions take single arrays.
"""

import numpy as np

from streamsvm.batch.kernels.cache import NO_ROW, places_of, row_at, rows_of
from streamsvm.batch.path.factor import add_multiple
from streamsvm.core.compiling._jit import inner, inner_fma, shared
from streamsvm.core.rounding import SINGULAR

OUT, FREE, AT_LOWER, AT_UPPER, DRIVEN = np.int8(0), np.int8(1), np.int8(2), np.int8(3), np.int8(4)
END, MET_BOUND, BECAME_FREE, ENTERED = range(4)


@inner_fma
def _add_in_turn(out, a, b, c, d, row_a, row_b, row_c, row_d):
    """out += a row_a, += b row_b and so on, with the rounding of four calls of `add_multiple`."""
    for t in range(out.shape[0]):
        out[t] = (((out[t] + a * row_a[t]) + b * row_b[t]) + c * row_c[t]) + d * row_d[t]


@inner
def rates(store, members, m, change, k, rate):
    """d_g = -(k + K_M d_alpha_M).

    Rows at hand are added four at a time.  The result does not depend on which ones are.
    """
    rows, at = rows_of(store), places_of(store)
    for s in range(k.shape[0]):
        rate[s] = -k[s]
    p = 0
    while p < m:
        if p + 4 <= m:
            a, b, c, d = at[members[p]], at[members[p + 1]], at[members[p + 2]], at[members[p + 3]]
            if min(a, b, c, d) >= 0:
                w = change[p + 1 : p + 5]
                _add_in_turn(rate, -w[0], -w[1], -w[2], -w[3], rows[a], rows[b], rows[c], rows[d])
                p += 4
                continue
        r = at[members[p]]
        if r < 0:
            r = row_at(store, members[p], NO_ROW)
        add_multiple(rate, -change[p + 1], rows[r])
        p += 1


@inner
def _first_bound(alpha, lo, hi, members, m, change):
    """The share of the way after which a free example meets its bound, and its place in M, from 1; -1 if none does."""
    share, first = 1.0, -1
    for p in range(1, m + 1):
        i, rate = members[p - 1], change[p]
        if rate != 0.0:
            room = hi[i] - alpha[i] if rate > 0.0 else alpha[i] - lo[i]
            if room < share * abs(rate):
                share, first = max(room, 0.0) / abs(rate), p
    return share, first


@inner
def _first_gradient(g, rate, place, tabu, mu, d_mu, above, below, share):
    """The share after which a bounded example's gradient meets the bias, and the example; -1 if none does."""
    first = -1
    for i in range(g.shape[0]):
        if place[i] == AT_LOWER and not tabu[i]:
            speed, room = rate[i] - d_mu, mu + above - g[i]
        elif place[i] == AT_UPPER and not tabu[i]:
            speed, room = d_mu - rate[i], g[i] - mu + below
        else:
            continue
        if speed > SINGULAR and room < share * speed:
            share, first = max(room, 0.0) / speed, i
    return share, first


@inner
def _first_entering(g, rate, driven, d, place, tabu, mu, d_mu, above, below, share):
    """The share after which an entering example meets its conditions, and its place in `driven`; -1 if none does."""
    first = -1
    for c in range(driven.shape[0]):
        i = driven[c]
        if place[i] != DRIVEN or tabu[i]:
            continue
        speed, room = (d_mu - rate[i], g[i] - mu - above) if d[c] > 0.0 else (rate[i] - d_mu, mu - below - g[i])
        if speed > SINGULAR and room < share * speed:
            share, first = max(room, 0.0) / speed, c
    return share, first


@inner
def counterpart(g, place, tabu, rises):
    """The first example to become free when the bias comes down (rises) or goes up; -1 if there is none."""
    first = -1
    for i in range(g.shape[0]):
        if place[i] != (AT_LOWER if rises else AT_UPPER) or tabu[i]:
            continue
        if first < 0 or (g[i] > g[first] if rises else g[i] < g[first]):
            first = i
    return first


@shared
def next_event(biased, g, alpha, lo, hi, place, tabu, members, m, driven, d, change, rate, mu, above, below):
    """The share of the way up to the next event, the event, and its example: a place in M or `driven`, or i."""
    t, first = _first_bound(alpha, lo, hi, members, m, change)
    what, who = (MET_BOUND, first) if first >= 0 else (END, -1)
    if m > 0 or not biased:
        t, first = _first_gradient(g, rate, place, tabu, mu, change[0], above, below, t)
        if first >= 0:
            what, who = BECAME_FREE, first
        t, first = _first_entering(g, rate, driven, d, place, tabu, mu, change[0], above, below, t)
        if first >= 0:
            what, who = ENTERED, first
    return t, what, who
