"""The checks of a stored scale, like those of `integrity` for an expansion."""

import math

import numpy as np

from streamsvm.core.blocks import LARGEST_FEATURE, LARGEST_SQUARED_NORM
from streamsvm.core.saving.snapshot import LARGEST_COUNT, every, require
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


# Arrays of one length and type, which are compared together: thousands of models by key have a few features each.
ALIKE = ("m", "shift", "last", "spread", "excess", "S", "w"), ("began", "named", "times"), ("totals",)
LIMITS = [np.array([RANGES[name] for name in names]).T[..., np.newaxis] for names in ALIKE]


def require_scale(c: Scaling) -> None:
    """Raise a SnapshotError unless features of a permitted size make such numbers.  The flags were checked before."""
    for names, (lowest, largest) in zip(ALIKE, LIMITS, strict=True):
        own = np.array([getattr(c, name) for name in names])
        fits = (own >= lowest) & (own <= largest)
        if not every(fits):
            name = names[int(np.argmin(fits.all(axis=1)))]
            require(False, f"{name} of the scale is negative, not a number, or too large")
    require(every(c.varied <= 1), "'varied' of the scale is neither 0 nor 1")
    require(every(c.w <= 2 * c.counts[SPAN]), "w of the scale is too large")
    require(every(LARGEST_VARIANCE * c.w >= c.S), "a variance of the scale is too large")
    is_scaled = c.spread > 0.0
    fits = every(c.factor == 1.0 / np.sqrt(np.where(is_scaled, c.spread, 1.0)))
    require(fits, "the factors of the scale do not fit its variances")
    fits = is_scaled.any() == (c.counts[ACTIVE] == 1)
    require(fits, "the scale is active without a scaled feature, or the reverse")
    n_places, (features,) = int(c.counts[PLACES]), c.place.shape
    own = c.feature[:n_places]
    require(every((own >= 0) & (own < features)), "a place belongs to no feature")
    require(every(c.place[own] == np.arange(n_places)), "a place belongs to another feature")
    fits = every(c.place >= APART) and np.count_nonzero(c.place >= 0) == n_places
    require(fits, "a feature has no such place")
