"""What a model says about an example: its decision values as `learn_one` takes them back, and its probabilities."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.estimators.learner.prediction import Predictor
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.estimators.multiclass.several import MulticlassSVM


def said_of(model: Any, x: dict) -> tuple[Any, dict[Any, float]]:
    """The margin and the probabilities; a model of another library has no margin."""
    if isinstance(model, Predictor):
        margin = model.decision_function_one(x)
        p = model.probability_one(margin)
        return margin, {False: 1.0 - p, True: p}
    if isinstance(model, MulticlassSVM):
        margins: Mapping = model.pair_values_one(x) if isinstance(model, OneVsOne) else model.decision_function_one(x)
        found = model._probabilities(np.array([list(margins.values())])) if len(model.labels) > 1 else np.ones((1, 1))
        return margins, dict(zip(model.labels, found[0].tolist(), strict=False))
    return None, dict(model.predict_proba_one(x))


def takes_margins(model: Any) -> bool:
    """Whether the model learns from the margin of the prediction."""
    return isinstance(model, Predictor | MulticlassSVM)
