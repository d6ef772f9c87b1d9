"""The checks of a stored scale, like those of `faults` for an expansion."""

import math

import numpy as np

from streamsvm.core.blocks import LARGEST_FEATURE, LARGEST_SQUARED_NORM
from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.saving.snapshot import LARGEST_COUNT, require
from streamsvm.core.scaling.state import ACTIVE, APART, PLACES, SPAN, Scaling

LARGEST_VARIANCE = 4.0 * LARGEST_SQUARED_NORM
RANGES = {
    **dict.fromkeys(("m", "shift", "last"), (-LARGEST_FEATURE, LARGEST_FEATURE)),
    "spread": (0.0, LARGEST_VARIANCE),
    "excess": (-LARGEST_VARIANCE, LARGEST_VARIANCE),
    **dict.fromkeys(("S", "w"), (0.0, math.inf)),
    **dict.fromkeys(("began", "named", "times"), (0, LARGEST_COUNT)),
    "totals": (0.0, LARGEST_VARIANCE * LARGEST_COUNT),
}
LIMITS = np.array([*RANGES.values()])

# Of several faults, the first one of this list is told.
FAULTS = (
    *(f"{name} of the scale is negative, not a number, or too large" for name in RANGES),
    "'varied' of the scale is neither 0 nor 1",
    "w of the scale is too large",
    "a variance of the scale is too large",
    "the factors of the scale do not fit its variances",
    "the scale is active without a scaled feature, or the reverse",
    "a place belongs to no feature",
    "a place belongs to another feature",
    "a feature has no such place",
)
BEGAN, TOTALS, VARIED = len(RANGES) - 4, len(RANGES) - 1, len(RANGES)
IDLE, NO_FEATURE, OTHER_FEATURE, NO_PLACE, SOUND = range(VARIED + 4, len(FAULTS) + 1)


def require_scale(c: Scaling) -> None:
    """Raise a SnapshotError unless features of a permitted size make such numbers.  The flags were checked before."""
    fault = fault_of_scale(c)
    require(fault == SOUND, (*FAULTS, "")[fault])


@by_class
@compiled
def fault_of_scale(c):
    """What is wrong with the numbers of a scale: a place in `FAULTS`, or `SOUND`."""
    reals = (c.m, c.shift, c.last, c.spread, c.excess, c.S, c.w)
    for k in range(len(reals)):
        if not _is_within(reals[k], k):
            return k
    counts = (c.began, c.named, c.times)
    for k in range(len(counts)):
        for count in counts[k]:
            if not 0 <= count <= LARGEST_COUNT:
                return BEGAN + k
    if not _is_within(c.totals, TOTALS):
        return TOTALS
    first, is_active = SOUND, False
    for p in range(c.w.shape[0]):
        holds = (
            c.varied[p] <= 1,
            c.w[p] <= 2 * c.counts[SPAN],
            c.S[p] <= LARGEST_VARIANCE * c.w[p],
            c.factor[p] == (1.0 / math.sqrt(c.spread[p]) if c.spread[p] > 0.0 else 1.0),
        )
        for k in range(len(holds)):
            if not holds[k]:
                first = min(first, VARIED + k)
        is_active = is_active or c.spread[p] > 0.0
    return min(first, _fault_of_places(c)) if is_active == (c.counts[ACTIVE] == 1) else min(first, IDLE)


@inner
def _is_within(values, k):
    """Whether all of these are within the k-th of `LIMITS`."""
    for value in values:
        if not LIMITS[k, 0] <= value <= LIMITS[k, 1]:
            return False
    return True


@inner
def _fault_of_places(c):
    """What is wrong with the places: each belongs to one feature, which knows it."""
    first, n_places = SOUND, 0
    for p in range(c.counts[PLACES]):
        if not 0 <= c.feature[p] < c.place.shape[0]:
            return NO_FEATURE
        if c.place[c.feature[p]] != p:
            first = OTHER_FEATURE
    for place in c.place:
        if place < APART:
            first = min(first, NO_PLACE)
        n_places += place >= 0
    return first if n_places == c.counts[PLACES] else min(first, NO_PLACE)
