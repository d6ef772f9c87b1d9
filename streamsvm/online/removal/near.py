"""The members that a path touches: the free and the driven ones, and those at a bound that may soon become free.

A removal moves decision values by little: in the median by less than a tenth of the margin.  So a path among a thousand
members need only heed the nearest of those at a bound.  It goes over a small matrix of their kernel values.  At its end
the gradient of all members follows the changed coefficients, and tells whether another member violates.

========= ======================================================== ================
symbol    name                                                     shape, dtype
========= ======================================================== ================
slots     the members: free ones, driven ones, the nearest others  (q,) int64
rows      k(x_i, x_j) among them, filled row by row                (q, q) float32
at        the row of each; -1 if it is not filled yet              (q,) int64
diagonal  k(x_i, x_i)                                              (q,) float64
slack     how far a bounded gradient is from violating             (n,) float64
========= ======================================================== ================

Source: none.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.batch.cache import adds_by_four, diagonal_of, places_of, row_at, rows_of
from streamsvm.batch.piece import AT_LOWER, AT_UPPER
from streamsvm.core.compiling._jit import compiled, compiled_for, inner
from streamsvm.core.expansion import Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.rows import member_row

NEAREST, PER_FREE, PER_DRIVEN = 100, 0.5, 10  # members at a bound, beside free and driven ones


class Near(NamedTuple):
    """These members of an expansion, as what paths go over; the symbol table is in the module's docstring."""

    s: Expansion
    kernel: Kernel
    slots: np.ndarray
    rows: np.ndarray
    at: np.ndarray
    diagonal: np.ndarray


@inner
def _filled_row(near, i):
    if near.at[i] < 0:
        row = near.s.rows[member_row(near.s, near.kernel, near.slots[i], -1)]
        for t in range(near.slots.shape[0]):
            near.rows[i, t] = row[near.slots[t]]
        near.at[i] = i
    return i


@compiled_for(row_at, Near)
def _row_at(near, i, pinned):
    return _filled_row(near, i)


@compiled_for(places_of, Near)
def _places_of(near):
    return near.at


@compiled_for(adds_by_four, Near)
def _adds_by_four(near):
    return True  # which rows are filled depends on the path only, not on what the expansion has cached


@compiled_for(rows_of, Near)
def _rows_of(near):
    return near.rows


@compiled_for(diagonal_of, Near)
def _diagonal_of(near):
    return near.diagonal


@compiled
def fill_rows(near, count):
    """Fill the first rows."""
    for i in range(count):
        _filled_row(near, i)


def number_near(n: int, m: int, r: int) -> int:
    """How many members a path goes over, with n members, m free ones and r driven ones."""
    return min(n, m + r + NEAREST + int(PER_FREE * m) + PER_DRIVEN * r)


def near_members(
    s: Expansion,
    kernel: Kernel,
    M: np.ndarray,
    place: np.ndarray,
    driven: np.ndarray,
    beside: tuple[float, float, float],
) -> Near:
    """The free members M, the driven ones, and the nearest others, in this order; `place` and `beside` as for paths."""
    above, below, mu = beside
    g = s.g[: len(place)]
    slack = np.where(place == AT_LOWER, mu + above - g, np.where(place == AT_UPPER, g - mu + below, np.inf))
    slack[driven] = np.inf
    count = number_near(len(place), len(M), len(driven)) - len(M) - len(driven)
    nearest = np.argpartition(slack, count - 1)[:count] if 0 < count < len(slack) else np.arange(len(slack))
    slots = np.concatenate([M, driven, nearest[np.isfinite(slack[nearest])]])
    q = len(slots)
    near = Near(s, kernel, slots, np.empty((q, q), np.float32), np.full(q, -1, np.int64), s.self_k[slots])
    fill_rows(near, len(M))
    return near
