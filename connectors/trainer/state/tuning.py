"""Tuning: the kernel's width and the threshold of a partition's model, chosen again and again as labels come.

Both are chosen by exact leave-one-out of the labels that hold, see `streamsvm.active`.  With another gamma the model
learns all of them again.  So the join must still have their events; otherwise gamma stays.

A small model is finished before its threshold is chosen.  By a finished copy alone, the threshold would suit another
model than the one that predicts: that cost 1.5 points of g-mean on abalone, and 0.2 in the mean of 8 sets.
"""

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.active import LabellingLoop
from streamsvm.active.choosing.cut import LOWEST, PoolCut, cut_of, objective_of
from streamsvm.active.choosing.kernel_width import GammaTuner
from streamsvm.active.choosing.space import LABELLED
from streamsvm.active.run import finish_if_small
from streamsvm.estimators.leave_one_out import left_out_positives

from ...records.models import Model
from ...settings.sections import Settings
from .join import Join
from .models import SingleModel

logger = logging.getLogger(__name__)

MOST_LEFT_OUT = 1_000  # labels: leaving out each of more takes more than a second or two

Features = Callable[[Sequence[bytes]], list[dict[str, float]]]  # of events, from their records' values


class Labelled(NamedTuple):
    """The labelled events that the join has, with what the model learned of them."""

    keys: list[int]
    values: list[bytes]
    y: list[Any]
    weights: np.ndarray


class Tuning:
    """Chooses gamma and the threshold.

    Parameters
    ----------
    settings
        The configuration.
    join
        Has the labelled events.
    loop
        Knows the labels.
    features
        Reads events.
    is_scaled
        Whether features are scaled before the model takes them, as in a run that 0.1.0 began.
    """

    def __init__(
        self, settings: Settings, join: Join, loop: LabellingLoop, features: Features, *, is_scaled: bool
    ) -> None:
        self._join, self._loop, self._features = join, loop, features
        labelling, estimates = settings.labelling, settings.estimates
        self._is_on = settings.label.vocabulary is None
        model = settings.model.made() if self._is_on else None
        # An example of a window needs its time, and an estimate follows one model: neither learns anew.
        # What decides goes on with its model.
        stay = settings.model.window is not None, estimates.loo, estimates.folds, is_scaled, settings.decide.error
        self._stays = any(stay)
        self._gamma = GammaTuner(model, 0 if self._stays else labelling.tune_gamma)
        self._cut = PoolCut(objective_of(model, labelling.threshold) if self._is_on and labelling.threshold else None)

    def step(self, models: SingleModel) -> None:
        """Choose what it is time to choose; the model may get another gamma, or another threshold."""
        n = self._loop.counts.n_labels
        if not self._is_on or not 0 < n <= MOST_LEFT_OUT:
            return
        if self._gamma.may_be_due(n):
            self._tune(models, self.labelled(self._loop.labels()), n)
        if self._cut.is_due(self._loop.counts.n_changes):
            self._choose_cut(models.model)

    def _tune(self, models: SingleModel, labelled: Labelled, n: int) -> None:
        if len(labelled.keys) < n or not self._gamma.is_due(labelled.y, labelled.weights):
            return
        rows = self._features(labelled.values)
        fresh = self._gamma.choose(rows, labelled.y, labelled.weights)
        if fresh is None:
            return
        fresh.learn_many(rows, np.array(labelled.y), labelled.weights, np.array(labelled.keys, np.int64))
        models.replace(fresh)
        self._cut.forget()
        logger.info("gamma is now %s, by leave-one-out of %d labels, which the model has learned again", fresh.gamma, n)

    def _choose_cut(self, model: Any) -> None:
        assert self._cut.objective is not None  # it is due
        left_out, cut = self._left_out(model), 0.0
        if left_out is not None:
            if not self._stays:
                finish_if_small(model)
            values = self._loop.pool_values(finished(model) if self._stays else model)
            cut = cut_of(left_out, values, self._cut.objective)
        model.set_threshold(cut)

    def line(self, model: Any) -> float:
        """The decision value above which a promise of recall reviews all events, as `pool_cut` for the recall."""
        left_out = self._left_out(model)
        return LOWEST if left_out is None else cut_of(left_out, np.zeros(1), "recall")

    def _left_out(self, model: Any) -> Any:
        """What the model would say of its positives without each; None with too few of a class, or too many labels."""
        labelled = self.labelled(self._loop.labels(alike=False))  # a near-duplicate would speak for a positive
        n, n_positive = len(labelled.y), sum(labelled.y)
        if min(n_positive, n - n_positive) < 2 or n > MOST_LEFT_OUT:
            return None
        return left_out_positives(model, self._features(labelled.values), labelled.y, labelled.weights)

    def labelled(self, labels: Mapping[int, Any]) -> Labelled:
        """The events with these labels that the join has and the model has learned."""
        found = [
            (key, entry.value, y, entry.taught[1])
            for key, y in labels.items()
            if (entry := self._join.entry_of(key)) is not None and entry.taught is not None
        ]
        keys, values, ys, weights = zip(*found, strict=True) if found else ((), (), (), ())
        return Labelled(list(keys), list(values), list(ys), np.array(weights, np.float64))

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


def finished(model: Model) -> Model:
    """A finished copy to choose by, if the model is small; the model itself learns as without questions."""
    if model.n_members >= LABELLED:
        return model
    model = copy.deepcopy(model)
    finish_if_small(model)
    return model
