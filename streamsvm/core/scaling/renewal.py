"""Taking the running moments into use as the scale of new examples and members."""

from __future__ import annotations

import math

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.scaling.moments import observe_block, sum_of_spreads, wanted_spread
from streamsvm.core.scaling.state import (
    ACTIVE,
    DUE,
    NORM,
    OLD_ENOUGH,
    PLACES,
    RENEWED,
    SCALES,
    SEEN,
    SPARSE,
    SPREAD,
    TRACKS,
    WAIT,
    WEIGHT,
    Scaling,
    with_room,
)

AT_ONCE = 4096  # features that get a place when the stream begins; more have to deserve it


def awakened(c: Scaling, X: sp.csr_matrix) -> Scaling:
    """A copy that keeps moments from now on, as if it had observed these examples, which are not scaled."""
    c = with_room(c, max(len(c.place), X.shape[1]), len(c.m))
    c.counts[TRACKS], c.counts[DUE] = 1, 0
    indptr, columns = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    t, counted = 0, np.ones(X.shape[0], bool)
    while t < len(counted):
        t += observe_block(c, indptr[t:], columns, X.data, counted[t:], False)
        c = renewed(c, 0) if c.counts[DUE] else c
    return c


def renewed(c: Scaling, n_members: int) -> Scaling:
    """A copy whose running moments are in use, until at least as many examples have passed as there are members."""
    n_places, was_active = c.counts[PLACES], c.counts[ACTIVE] == 1
    c = _with_new_places(c)
    _take_into_use(c, n_members)
    cuts = c.counts[SCALES] == 1 and c.counts[ACTIVE] == 1
    if not was_active and (cuts or c.counts[PLACES] > n_places):
        c.totals[NORM] = c.totals[WEIGHT] = 0.0  # Squares as they came, of features that are cut or have a place now.
        if cuts:
            _take_into_use(c, n_members)
    return c


def _with_new_places(c: Scaling) -> Scaling:
    """A copy with places for the features that deserve one."""
    n, latest = int(c.counts[PLACES]), int(c.counts[SEEN]) - 1
    without = np.flatnonzero((c.place == -1) & (c.times > 0))
    age = latest - c.began[without]
    deserving = (age >= OLD_ENOUGH) & (2 * c.times[without] >= age)
    if latest == 0 and len(without) <= AT_ONCE:
        deserving[:] = True
    if c.counts[SPARSE] == 1:
        deserving[:] = False
    new, own = without[deserving], slice(n, n + int(np.count_nonzero(deserving)))
    c = with_room(c, len(c.place), len(c.m) if own.stop <= len(c.m) else 2 * own.stop)
    c.place[new], c.feature[own] = np.arange(own.start, own.stop), new
    c.counts[PLACES] = own.stop
    return c


@compiled
def _take_into_use(c, n_members):
    c.counts[ACTIVE] = 0
    V = sum_of_spreads(c)  # first: whether a feature is far from 0 may depend on it
    c.totals[SPREAD] = V if V > 0.0 else c.totals[SPREAD]
    for p in range(c.counts[PLACES]):
        wanted = wanted_spread(c, p)
        c.spread[p] = wanted
        c.shift[p] = c.m[p] if wanted > 0.0 else 0.0
        c.factor[p] = 1.0 / math.sqrt(wanted) if wanted > 0.0 else 1.0
        c.counts[ACTIVE] |= wanted > 0.0
    c.counts[DUE], c.counts[RENEWED] = 0, c.counts[SEEN]
    c.counts[WAIT] = c.counts[SEEN] + max(1, n_members)
