"""Tuning: the kernel's width and the threshold of a partition's model, chosen again and again as labels come.

Both are chosen by exact leave-one-out of the labels that hold, see `streamsvm.active`.  With another gamma the model
learns all of them again.  So the join must still have their events; otherwise gamma stays.

A small model is finished before its threshold is chosen.  By a finished copy alone, the threshold would suit another
model than the one that predicts: that cost 1.5 points of g-mean on abalone, and 0.2 in the mean of 8 sets.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.active import LabellingLoop
from streamsvm.active.choosing.cut import LOWEST, PoolCut, cut_of, objective_of
from streamsvm.active.choosing.kernel_width import GammaTuner
from streamsvm.active.run import finish_if_small
from streamsvm.estimators.leave_one_out import left_out_positives

from ...settings.sections import Settings
from .join import Join
from .models import SingleModel

logger = logging.getLogger(__name__)

MOST = 1_000  # labels, beyond which leaving each of them out takes more than a second or two

Features = Callable[[Sequence[bytes]], list[dict[str, float]]]  # of events, from their records' values


class _Labelled(NamedTuple):
    """The labelled events that the join has, with what the model learned of them."""

    keys: list[int]
    values: list[bytes]
    y: list[bool]
    weights: np.ndarray


class Tuning:
    """Chooses gamma and the threshold.

    Parameters
    ----------
    settings
        The configuration.
    is_scaled
        Whether features are scaled before the model takes them, as in a run that 0.1.0 began.
    """

    def __init__(self, settings: Settings, *, is_scaled: bool) -> None:
        labelling, estimates = settings.labelling, settings.estimates
        self._is_on = settings.label.vocabulary is None
        model = settings.model.made() if self._is_on else None
        # An example of a window needs its time, and an estimate follows one model: neither learns anew.
        # What decides goes on with its model.
        stays = settings.model.window is not None or estimates.loo or bool(estimates.folds) or is_scaled
        stays = stays or bool(settings.decide.error)
        self._stays = stays
        self._gamma = GammaTuner(model, 0 if stays else labelling.tune_gamma)
        self._cut = PoolCut(objective_of(model, labelling.threshold) if self._is_on and labelling.threshold else None)

    def step(self, models: SingleModel, join: Join, loop: LabellingLoop, features: Features, finished: Any) -> None:
        """Choose what it is time to choose.

        Parameters
        ----------
        models
            Holds the model, which may get another gamma, or another threshold.
        join
            Has the labelled events.
        loop
            Knows the labels.
        features
            Reads events.
        finished
            Gives a finished copy, to judge the pool by if the model itself must stay as it is.
        """
        n = loop.counts.n_labels
        if not self._is_on or not 0 < n <= MOST:
            return
        if self._gamma.may_be_due(n):
            self._tune(models, _labelled(join, loop), n, features)
        if self._cut.is_due(loop.counts.n_changes):
            self._choose_cut(models.model, _labelled(join, loop, alike=False), loop, features, finished)

    def _tune(self, models: SingleModel, labelled: _Labelled, n: int, features: Features) -> None:
        if len(labelled.keys) < n or not self._gamma.is_due(labelled.y, labelled.weights):
            return
        rows = features(labelled.values)
        fresh = self._gamma.choose(rows, labelled.y, labelled.weights)
        if fresh is None:
            return
        fresh.learn_many(rows, np.array(labelled.y), labelled.weights, np.array(labelled.keys, np.int64))
        models.replace(fresh)
        self._cut.forget()
        logger.info("gamma is now %s, by leave-one-out of %d labels, which the model has learned again", fresh.gamma, n)

    def _choose_cut(
        self, model: Any, labelled: _Labelled, loop: LabellingLoop, features: Features, finished: Any
    ) -> None:
        assert self._cut.objective is not None  # it is due
        y, cut = np.array(labelled.y, bool), 0.0
        if min(np.count_nonzero(y), np.count_nonzero(~y)) >= 2:
            rows = features(labelled.values)
            left_out = left_out_positives(model, rows, labelled.y, labelled.weights)
            if not self._stays:
                finish_if_small(model)
            cut = cut_of(left_out, loop.pool_values(finished(model) if self._stays else model), self._cut.objective)
        model.set_threshold(cut)

    def line(self, model: Any, join: Join, loop: LabellingLoop, features: Features) -> float:
        """The decision value above which a promise of recall reviews all events, as `pool_cut` for the recall."""
        labelled = _labelled(join, loop, alike=False)
        y = np.array(labelled.y, bool)
        if min(np.count_nonzero(y), np.count_nonzero(~y)) < 2 or len(y) > MOST:
            return LOWEST
        return cut_of(
            left_out_positives(model, features(labelled.values), labelled.y, labelled.weights), np.zeros(1), "recall"
        )

    @property
    def objective(self) -> str | None:
        """What the threshold is chosen for; None: it is not chosen."""
        return self._cut.objective

    def state(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        return {"gamma": self._gamma.state(), "cut": self._cut.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._gamma.restore(state["gamma"])
        self._cut.restore(state["cut"])


def _labelled(join: Join, loop: LabellingLoop, *, alike: bool = True) -> _Labelled:
    """The labelled events that the join has and the model has learned.

    Without `alike` there are no near-duplicates: a positive that is left out has none that speaks for it.
    """
    found = [
        (key, value, y, weight)
        for key, y in loop.labels(alike=alike).items()
        if (value := join.event_of(key)) is not None and (weight := join.weight_of(key)) is not None
    ]
    keys, values, ys, weights = zip(*found, strict=True) if found else ((), (), (), ())
    return _Labelled(list(keys), list(values), [bool(y) for y in ys], np.array(weights, np.float64))
