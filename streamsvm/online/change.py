"""Bets that a stream has changed, on the ranks of new values among earlier ones; `streamsvm.alarms` has the theory.

A feature's first values are only stored.  They then give `EDGES` edges.  Later values are counted in bins: bin 2 e is
between the edges e - 1 and e, bin 2 e - 1 on edge e - 1.  Let n earlier values be counted, `above` of them in higher
bins and `equal` of them in the bin of the new value, and let u be random between 0 and 1:

    p = (above + u (equal + 1)) / (n + 1)           uniform, independent of earlier ones if the records are exchangeable
    R <- (1 + R) a p^(a - 1),  a = 1/2, 3/4, 7/8    for p, which is small for large values, or for 1 - p

R is a Shiryaev-Roberts sum of bets.  Its expectation after n records is n at most.  Square roots give the powers of p:
they are rounded alike on every processor.

====== ============================================================ ============= =======
symbol name                                                         shape         dtype
====== ============================================================ ============= =======
table  a feature's first values, then its edges and counts          (F, FIRST)    float64
seen   number of its values                                         (F,)          int64
sums   R for large and for small values, three powers each          (F, 6)        float64
means  mean of a feature's R                                        (F,)          float64
drawn  number of random numbers so far                              (1,)          int64
====== ============================================================ ============= =======
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.compiling._reference import by_reference
from streamsvm.core.hashing import STEP, spread
from streamsvm.core.rounding import SUM_ROUNDING

FIRST = 100  # values that give the edges, about four for each bin
EDGES = 23  # an odd number, so that the median is one
BINS = 2 * EDGES + 1
SUMS = 6  # of a feature: three for values that become larger, three for smaller ones

_spread = inner(spread)


@by_reference
class Watched(NamedTuple):
    """The state of all features; the symbol table is in the module's docstring."""

    table: np.ndarray
    seen: np.ndarray
    sums: np.ndarray
    means: np.ndarray
    drawn: np.ndarray


@by_reference
class Values(NamedTuple):
    """Records: the rows of their features in the state, one for all records or one for each, and the values."""

    rows: np.ndarray
    values: np.ndarray


def nothing(n: int) -> Watched:
    """The state of features that have had no value."""
    return Watched(np.zeros((n, FIRST)), np.zeros(n, np.int64), np.zeros((n, SUMS)), np.zeros(n), np.zeros(1, np.int64))


@inner
def _uniform(number):
    """A random number above 0, below 1 or 1 itself, from its number in the sequence (SplitMix64)."""
    z = _spread((np.uint64(number) + np.uint64(1)) * STEP)
    return (np.float64(z >> np.uint64(11)) + 0.5) / 9007199254740992.0


@inner
def _set_edges(row):
    """Turn a feature's first values into edges, and begin to count."""
    for k in range(1, FIRST):  # np.sort would take half a second to compile
        value, place = row[k], k
        while place > 0 and row[place - 1] > value:
            row[place] = row[place - 1]
            place -= 1
        row[place] = value
    for e in range(EDGES):
        row[e] = row[(e + 1) * FIRST // (EDGES + 1)]
    row[EDGES:] = 0.0


@inner
def _rank(row, v, n, u):
    """The value's p, and count it; n values were counted before."""
    e = 0
    while e < EDGES and row[e] < v:
        e += 1
    own = EDGES + 2 * e + int(e < EDGES and row[e] == v)
    is_low = e < EDGES // 2
    begin, end = (EDGES, own) if is_low else (own + 1, EDGES + BINS)
    side = 0.0
    for k in range(begin, end):  # the shorter side, which gives the other one, too: counts are whole, so sums are exact
        side += row[k]
    equal = row[own]
    row[own] += 1.0
    above = n - side - equal if is_low else side
    return (above + u * (equal + 1.0)) / (n + 1.0)


@inner
def _bet(sums, k, p):
    """Three sums of bets that p is small."""
    half = np.sqrt(max(p, SUM_ROUNDING))  # so that a bet, whose expectation is 1, stays finite
    quarter = np.sqrt(half)
    sums[k] = (1.0 + sums[k]) * 0.5 / half
    sums[k + 1] = (1.0 + sums[k + 1]) * 0.75 / quarter
    sums[k + 2] = (1.0 + sums[k + 2]) * 0.875 / np.sqrt(quarter)


@inner
def _count(w, d, v, both_sides):
    """Take in a value of the feature in row d."""
    if d < 0 or not abs(v) < np.inf:  # It is not watched, or the value is missing.
        return
    n = w.seen[d]
    w.seen[d] += 1
    if n < FIRST:
        w.table[d, n] = v
        if n == FIRST - 1:
            _set_edges(w.table[d])
        return
    p = _rank(w.table[d], v, np.float64(n - FIRST), _uniform(w.drawn[0]))
    w.drawn[0] += 1
    _bet(w.sums[d], 0, p)
    if both_sides:
        _bet(w.sums[d], SUMS // 2, 1.0 - p)
    n_sums = SUMS if both_sides else SUMS // 2
    total = 0.0
    for t in range(n_sums):
        total += w.sums[d, t]
    w.means[d] = total / n_sums


@inner
def _winnings(w):
    """The mean of all features' R, and the row of the largest one; 0 and -1 if no feature has enough values."""
    total, n, loudest = 0.0, 0, -1
    for d in range(w.means.shape[0]):
        if w.seen[d] > FIRST:
            total, n = total + w.means[d], n + 1
            if loudest < 0 or w.means[d] > w.means[loudest]:
                loudest = d
    return total / max(n, 1), loudest


@by_class
@compiled
def observe(w, given, both_sides, limit):
    """Take in records, up to one after which the mean of all features' R is not below the limit.

    Return the number of records that were taken in, and then the row of the largest R, or -1 below the limit.
    Without `both_sides` the bets are that values become larger.
    """
    n_records, shared = given.values.shape[0], given.rows.shape[0] - 1
    for r in range(n_records):
        for k in range(given.values.shape[1]):
            _count(w, given.rows[min(r, shared), k], given.values[r, k], both_sides)
        mean, loudest = _winnings(w)
        if mean >= limit:
            return r + 1, loudest
    return n_records, -1
