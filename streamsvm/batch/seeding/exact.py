"""The exact path from one solution to the next, see `batch.path`; BEST takes over where it cannot be followed.

It starts from the full solution ("path") or from that of the fold before ("chained").  `ato` is the algorithm that
its source prints, which follows such a path roughly.
"""

import numpy as np

from streamsvm.batch.path import follow as exact
from streamsvm.batch.path.factor import factorise
from streamsvm.batch.problem import SPARE, survey
from streamsvm.batch.seeding.full import best
from streamsvm.batch.seeding.start import Start, entering, settled_start
from streamsvm.batch.smo import view_of
from streamsvm.batch.solution import Solution
from streamsvm.batch.steps.pairs import kernel_among
from streamsvm.core.blocks import MIN_QUERIES
from streamsvm.core.compiling._jit import compiled


def factor_of(previous: Solution) -> exact.Factor | None:
    """The common beginning of all paths from this solution; None if the free set is too large or singular."""
    store, members = previous.store, np.flatnonzero(previous.free)
    if len(members) + 2 > store.capacity:
        return None
    store.fill(members)
    K_M = np.empty((len(members), len(members)))
    kernel_among(store.data, view_of(store, previous.g), members, K_M)
    jitter = exact.PATH_JITTER / max(float((previous.hi - previous.lo).max(initial=0.0)), 1e-300)
    found = factorise(K_M, jitter)
    if found is None:
        return None
    room = len(members) + SPARE
    return exact.Factor(*found, members, jitter, *_tolerances(previous), np.empty((room, room)))


def path(
    previous: Solution,
    lo: np.ndarray,
    hi: np.ndarray,
    factor: exact.Factor | None = None,
    max_events: int | None = None,
) -> Start:
    """Follow the exact path to the next solution, which leaves no step to do; BEST if that fails.

    Parameters
    ----------
    previous
        The solution to start from.
    lo, hi
        Boxes of the next problem, (n,).
    factor
        The result of `factor_of(previous)`, if several paths begin there.  Default: computed.
    max_events
        Limit on the events of the path.  None: 4 r + 50, if r examples are driven.
    """
    factor = factor_of(previous) if factor is None else factor
    events = 0
    if factor is not None:
        outcome, events, alpha, g = _followed(previous, factor, lo, hi, max_events)
        if outcome == exact.COMPLETE and np.isfinite(g).all():
            return settled_start(previous, alpha, g, lo, hi, "path", events)
    return best(previous, lo, hi)._replace(events=events)


def _followed(previous, factor: exact.Factor, lo, hi, max_events: int | None):
    """The path's outcome, its number of events, and alpha and g at its end."""
    store, alpha, g, mu = previous.store, previous.dual_coef.copy(), previous.g.copy(), previous.bias
    place, target = np.empty(len(alpha), np.int8), np.empty(len(alpha))
    _put_places(alpha, lo, hi, place, target)
    new = entering(previous, lo, hi)
    y_T = previous.y[new]
    V = new[y_T * (g[new] - mu) > np.where(y_T > 0.0, factor.above, factor.below)]
    driven = np.concatenate([np.flatnonzero(target != alpha), V])
    if len(driven) == 0:
        return exact.COMPLETE, 0, alpha, g
    place[driven] = exact.OUT
    place[V] = exact.DRIVEN
    target[V] = np.where(previous.y[V] > 0.0, hi[V], lo[V])
    limit = 4 * len(driven) + 50 if max_events is None else max_events
    beginning = factor.beginning(min(len(factor.members) + limit, len(alpha)) + 2, mu)
    if len(driven) >= MIN_QUERIES:
        store.fill(driven)
    state = exact.State(True, alpha, g, lo, hi, place)
    outcome, events = exact.follow(store.data, state, exact.Way(driven, target[driven], limit), beginning)
    return outcome, events, alpha, g


def _tolerances(previous: Solution) -> tuple[float, float]:
    """The largest distances of a gradient above the bias that may rise, and of one below it that may fall."""
    top, bottom, bias, free = survey(previous.dual_coef, previous.g, previous.lo, previous.hi)
    return (max(0.0, top - bias), max(0.0, bias - bottom)) if free else (0.0, 0.0)


@compiled
def _put_places(alpha, lo, hi, place, target):
    """Where on a path the examples begin, and the values nearest to their coefficients inside the boxes."""
    for i in range(alpha.shape[0]):
        place[i] = exact.AT_UPPER if alpha[i] >= hi[i] else exact.AT_LOWER if alpha[i] <= lo[i] else exact.FREE
        if lo[i] >= hi[i]:
            place[i] = exact.OUT
        target[i] = min(max(alpha[i], lo[i]), hi[i])
