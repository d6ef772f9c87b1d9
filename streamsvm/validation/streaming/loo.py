"""Leave-one-out estimates of a model, while it learns.

Each remembered example is predicted by the model without it:

- An example that is not a support vector is predicted by the model as it is.
- Bounds decide many support vectors.
- The others are left out one by one (`online.removal`), in a random order, as many as `share` allows.  The estimate
  infers the rest from these, and an interval covers all outcomes of the rest.

========= ============================================================== ================
symbol    name                                                           shape, dtype
========= ============================================================== ================
f         decision values by the model as it is                          (n,) float64
m         margins y f                                                    (n,) float64
low, high bounds on the margin without the example                       (n,) float64
guess     its probable value: m - r |alpha|                              (n,) float64
r         fall of a margin per unit of alpha, as measured before         float
U, S      examples undecided by bounds; those of them that were left out sets
L         the 200 left out last, by this estimate and earlier ones       set
========= ============================================================== ================

The guesses are a control variate.  The number of errors in U is estimated for each class by

    sum_S error + sum_U-S guessed error + |U-S| mean_L (error - guessed error),

the difference estimator of Cochran, "Sampling techniques", section 7.  It is unbiased over the random order if r does
not depend on that order.  So r comes from the estimate before; only the first estimate uses its own, with a little
bias.  A running model affords few removals for each estimate.  So L includes outcomes of earlier estimates, whose model
was nearly the same.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.core.fixed import fixed_parameters
from streamsvm.core.rounding import DUST
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import LARGEST_COUNT, require
from streamsvm.online.removal.leave_one_out import RIGHT, UNCHANGED, UNKNOWN, WRONG
from streamsvm.ranking import prbep_score
from streamsvm.validation.streaming.estimates import NOTHING, Estimate, Interval, g_mean_of_errors, values_of
from streamsvm.validation.streaming.held_out_margins import LeftOut
from streamsvm.validation.streaming.wrapper import StreamingEstimate, Tested

OUTCOMES = 200  # outcomes that measure how good the guesses are
FEWEST_REMOVED = 10  # support vectors that the smallest estimate leaves out


@fixed_parameters
class StreamingLOO(StreamingEstimate):
    """Leave-one-out estimates of a model, while it learns.

    The wrapper learns and predicts as the model does, and takes its place in a pipeline.

    Parameters
    ----------
    model
        An online classifier of streamsvm.  For several classes: `OneVsRest` or `OneVsOne`, but not of an `AutoLASVM`.
        Other steps of a pipeline go before the wrapper.
    every
        Number of examples between two estimates, at least 1.
    memory
        Number of examples that are remembered, and predicted at each estimate; at least 1.
    keep
        ``"recent"``: remember the last examples, so that the estimate is about the stream as it is now.  ``"sample"``:
        remember a uniform sample of the whole stream.
    share
        Cost of an estimate, as a share of the cost of learning since the last one, at least 0.  An estimate leaves out
        as many support vectors as this allows, but at least 10.  If even these 10 would cost more than learning did,
        the estimate comes later; expect this if `every` is below about 500.  Costs are computed from counts, not by a
        clock, so a repetition has the same estimates.  0: `estimate` makes all estimates.
    seed
        Seed of the sample, and of the order in which undecided examples are left out.

    Attributes
    ----------
    latest : Estimate or None
        The last estimate.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range, or the model is not an online classifier of streamsvm.

    Notes
    -----
    The estimate is about a copy of the model, solved over its members to violations of 0.1.  The `reservoir` takes no
    part: the estimate does not know which examples `finish` would bring back.  A model that learns has violations up to
    `delta_max`.  With those, the bounds would decide little, and the error would come out too low.

    The error also comes out too low in these cases:

    - Examples resemble their neighbours in the stream, as in a time series.  Then watch the error of predictions made
      before learning.
    - The model has a `budget` that projects or merges members.  An example that has joined another one cannot be left
      out.

    An estimate from 500 examples has the sampling error of 500 examples.  The interval does not include this error.  It
    covers the outcomes that were not computed.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVM
    >>> loo = StreamingLOO(LASVM(), share=0)
    >>> for x, y in datasets.Bananas().take(1000):
    ...     loo.learn_one(x, y)
    >>> estimate = loo.estimate()
    >>> estimate.n, estimate.n_undecided, 0.05 < estimate.error.value < 0.15
    (500, 0, True)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._slope: float | None = None  # r
        self._surprises: deque[tuple[int, int]] = deque(maxlen=OUTCOMES)  # of L: the class, and error - guessed error

    def _tested(self, model: LeftOut, allowed: float) -> Tested:
        margin, bounds = model.margins(), model.bounds()
        found = np.where(bounds == UNCHANGED, margin, np.nan)
        undecided = np.flatnonzero(bounds == UNKNOWN)
        order = np.random.default_rng([self.seed % 2**63, self._n_turns]).permutation(undecided)
        each = model.cost_of_one()
        removed = order[: max(FEWEST_REMOVED, math.floor(min(allowed / each, len(order))))]
        model.prepare(len(removed))
        ids = self._memory.ids
        for i in removed:
            found[i] = model.without([ids[i]])[i]
        alpha = model.masses.sum(axis=1)
        fall = alpha * self._slope_for(margin - found, alpha, removed)
        score = _Scores(model, margin, found, bounds, fall, removed)
        self._surprises.extend(score.surprises())
        score.pool = list(self._surprises)
        scores = score.error(), score.g_mean(), NOTHING if self._is_several else score.prbep()
        n, n_removed = len(margin), len(removed)
        estimate = Estimate(self.model.n_seen, n, *scores, n_removed, len(undecided) - n_removed)
        return Tested(estimate, each * min(FEWEST_REMOVED, len(undecided)))

    def _slope_for(self, falls: np.ndarray, alpha: np.ndarray, removed: np.ndarray) -> float:
        """r for this estimate: the one measured before, if there is one.  Also measure r for the next estimate."""
        before, total = self._slope, float(alpha[removed].sum())
        if total > 0.0:
            self._slope = max(0.0, float(falls[removed].sum()) / total)
        return (self._slope or 0.0) if before is None else before

    def _own_state(self) -> dict[str, Any]:
        surprises = [list(surprise) for surprise in self._surprises]
        return {"slope": self._slope, "surprises": surprises, "latest": _plain(self.latest)}

    def _take_state(self, meta: Mapping[str, Any]) -> None:
        self._slope = snapshot.field(meta, "slope", float, type(None))
        require(self._slope is None or 0.0 <= self._slope < math.inf, f"slope={self._slope}")
        for label, surprise in snapshot.field(meta, "surprises", list):
            is_place = type(label) is int and 0 <= label <= (LARGEST_COUNT if self._is_several else 1)
            require(is_place and surprise in (-1, 0, 1), f"a surprise of {surprise!r} for the label {label!r}")
            self._surprises.append((label, int(surprise)))
        latest = snapshot.field(meta, "latest", dict, type(None))
        if latest:
            given: dict[str, Any] = {name: _interval(latest[name]) for name in ("error", "g_mean", "prbep")}
            given["seconds"] = snapshot.field(latest, "seconds", float)
            given |= {name: snapshot.count(latest, name) for name in Estimate._fields if name not in given}
            self.latest = Estimate(**given)


class _Scores:
    """Estimates with intervals, from margins that are known, bounded or guessed."""

    def __init__(
        self,
        model: LeftOut,
        margin: np.ndarray,
        found: np.ndarray,  # margins without the example, NaN where unknown
        bounds: np.ndarray,
        fall: np.ndarray,  # guessed falls of the margins
        removed: np.ndarray,
    ) -> None:
        self.places = model.places
        known, wrong, right = ~np.isnan(found), bounds == WRONG, bounds == RIGHT
        low, high = np.where(right, DUST, -np.inf), np.where(wrong, -DUST, margin + model.slack)
        self.low, self.high = np.where(known, found, low), np.where(known, found, high)
        guess = np.where(wrong, np.minimum(margin - fall, -DUST), margin - fall)
        guess = np.where(right, np.maximum(guess, DUST), guess)
        self.guess = np.where(known, found, guess)
        self.unknown, self.removed = (bounds == UNKNOWN) & ~known, removed
        self.first_guess = guess
        self.pool: list[tuple[int, int]] = []  # surprises, including those of earlier estimates

    def surprises(self) -> list[tuple[int, int]]:
        """For each example that was left out: its class, and the error minus the guessed error."""
        surprise = (self.guess <= 0.0).astype(int) - (self.first_guess <= 0.0)
        return list(zip(self.places[self.removed].tolist(), surprise[self.removed].tolist(), strict=True))

    def _errors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimated, smallest and largest number of errors of each class."""
        n_classes = int(self.places.max(initial=0)) + 1
        estimated, fewest, most = (np.empty(n_classes) for _ in range(3))
        for c in range(n_classes):
            own, surprises = self.places == c, [surprise for place, surprise in self.pool if place == c]
            fewest[c], most[c] = (self.high[own] <= 0.0).sum(), (self.low[own] <= 0.0).sum()
            unknown = np.count_nonzero(self.unknown & own)
            total = (self.guess[own] <= 0.0).sum() + unknown * float(np.mean(surprises or [0]))
            estimated[c] = np.clip(total, fewest[c], most[c])
        return estimated, fewest, most

    def error(self) -> Interval:
        n = len(self.places)
        return Interval(*(float(errors.sum()) / n for errors in self._errors()))

    def g_mean(self) -> Interval:
        sizes = np.bincount(self.places)
        estimated, fewest, most = self._errors()
        return Interval(*(g_mean_of_errors(errors, sizes) for errors in (estimated, most, fewest)))

    def prbep(self) -> Interval:
        margins = (self.guess, self.low, self.high)
        value, low, high = (prbep_score(self.places > 0, values_of(self.places, m)) for m in margins)
        return Interval(min(max(value, low), high), low, high)


def _plain(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate in types that JSON has."""
    if estimate is None:
        return None
    return {name: _plain_interval(v) if isinstance(v, Interval) else v for name, v in estimate._asdict().items()}


def _plain_interval(interval: Interval) -> list[float] | None:
    return None if interval is NOTHING else list(interval)


def _interval(value: Any) -> Interval:
    """The interval that `_plain` wrote."""
    if value is None:
        return NOTHING
    value, low, high = (float(number) for number in value)
    require(math.isfinite(value) and math.isfinite(low) and math.isfinite(high), "an interval is not finite")
    return Interval(value, low, high)
