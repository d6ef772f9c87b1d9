"""The checks of a stored scale, like those of `integrity` for an expansion."""

import math

from streamsvm.core.blocks import LARGEST_SQUARED_NORM
from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.saving.snapshot import LARGEST_COUNT, require
from streamsvm.core.scaling import ACTIVE, APART, PLACES, SPAN, Scaling

LARGEST_MEAN = math.sqrt(LARGEST_SQUARED_NORM)
LARGEST_VARIANCE = 4.0 * LARGEST_SQUARED_NORM

# What may be wrong with the numbers of a scale.  Of several faults, the first one of this list is told.
OUT_OF_RANGE = ("m", "shift", "spread", "last", "excess", "S", "w", "began", "named", "times", "totals")
FAULTS = (
    *(f"{name} of the scale is negative, not a number, or too large" for name in OUT_OF_RANGE),
    "'varied' of the scale is neither 0 nor 1",
    "w of the scale is too large",
    "a variance of the scale is too large",
    "the factors of the scale do not fit its variances",
    "the scale is active without a scaled feature, or the reverse",
    "a place belongs to no feature",
    "a place belongs to another feature",
    "a feature has no such place",
)
M, SHIFT, SPREAD, LAST, EXCESS, S, W, BEGAN, NAMED, TIMES, TOTALS = range(11)
VARIED, LARGE_W, VARIANCE, FACTOR, IDLE, NO_FEATURE, OTHER_FEATURE, NO_PLACE, SOUND = range(11, len(FAULTS) + 1)


def require_scale(c: Scaling) -> None:
    """Raise a SnapshotError unless features of a permitted size make such numbers.  The flags were checked before."""
    fault = fault_of_scale(c)
    require(fault == SOUND, (*FAULTS, "")[fault])


@by_class
@compiled
def fault_of_scale(c):
    """What is wrong with the numbers of a scale: a place in `FAULTS`, or `SOUND`."""
    first, n_places, is_active = SOUND, 0, False
    for k in range(c.totals.shape[0]):
        if not 0.0 <= c.totals[k] <= LARGEST_VARIANCE * LARGEST_COUNT:
            first = min(first, TOTALS)
    for p in range(c.w.shape[0]):
        first = min(first, _fault_of_moments(c, p))
        is_active = is_active or c.spread[p] > 0.0
    if is_active != (c.counts[ACTIVE] == 1):
        first = min(first, IDLE)
    for p in range(c.counts[PLACES]):
        d = c.feature[p]
        if not 0 <= d < c.place.shape[0]:
            first = min(first, NO_FEATURE)
        elif c.place[d] != p:
            first = min(first, OTHER_FEATURE)
    for d in range(c.place.shape[0]):
        first = min(first, _fault_of_names(c, d))
        n_places += c.place[d] >= 0
    return first if n_places == c.counts[PLACES] else min(first, NO_PLACE)


@inner
def _fault_of_moments(c, p):
    if not abs(c.m[p]) <= LARGEST_MEAN:
        return M
    if not abs(c.shift[p]) <= LARGEST_MEAN:
        return SHIFT
    if not 0.0 <= c.spread[p] <= LARGEST_VARIANCE:
        return SPREAD
    if not abs(c.last[p]) <= LARGEST_MEAN:
        return LAST
    if not abs(c.excess[p]) <= LARGEST_VARIANCE:
        return EXCESS
    if not c.S[p] >= 0.0:
        return S
    if not c.w[p] >= 0.0:
        return W
    if c.varied[p] > 1:
        return VARIED
    if not c.w[p] <= 2 * c.counts[SPAN]:
        return LARGE_W
    if not c.S[p] <= LARGEST_VARIANCE * c.w[p]:
        return VARIANCE
    if c.factor[p] != (1.0 / math.sqrt(c.spread[p]) if c.spread[p] > 0.0 else 1.0):
        return FACTOR
    return SOUND


@inner
def _fault_of_names(c, d):
    if not 0 <= c.began[d] <= LARGEST_COUNT:
        return BEGAN
    if not 0 <= c.named[d] <= LARGEST_COUNT:
        return NAMED
    if not 0 <= c.times[d] <= LARGEST_COUNT:
        return TIMES
    return SOUND if c.place[d] >= APART else NO_PLACE
