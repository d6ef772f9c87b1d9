"""Judge labelled examples by a model's kernel, C and scaling, each by the solution for all others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from streamsvm.active.answers.suspects import left_out_leads, left_out_values
from streamsvm.batch import RowStore
from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest

_CACHE_MB = 64.0


def left_out_margins(model: Any, X: Any, y: Sequence[Any], sample_weight: np.ndarray) -> np.ndarray:
    """Margins of labelled examples, each by the exact solution for all others.

    Parameters
    ----------
    model
        A binary model or a `OneVsRest`, whose scaling, kernel and C apply; it need not have learned the examples.
    X
        The examples, as the model takes them.
    y
        Their labels: bool for a binary model.
    sample_weight
        Their weights, (n,).

    Returns
    -------
    numpy.ndarray
        y f(x); with several classes, half the lead of the example's class over the best other one.
    """
    if isinstance(model, OneVsRest):
        return _leads(model, X, y, sample_weight)
    learner, positive = _learner_of(model), np.array(y, bool)
    boxes = _boxes(learner, positive, sample_weight)
    values = left_out_values(_store(learner, X), np.where(positive, 1.0, -1.0), boxes)
    return np.where(positive, values, -values)


def _leads(model: OneVsRest, X: Any, y: Sequence[Any], weights: np.ndarray) -> np.ndarray:
    labels = list(dict.fromkeys(y))
    places = np.array([labels.index(label) for label in y])
    learners = [_learner_of(model._models.get(label, model._blank)) for label in labels]
    stores: dict[Any, RowStore] = {}
    for learner in learners:  # classes that tune themselves have kernels of their own; the others share one
        if learner._kernel not in stores:
            stores[learner._kernel] = _store(learner, X)
    boxes = [_boxes(learner, places == k, weights) for k, learner in enumerate(learners)]
    return left_out_leads([stores[learner._kernel] for learner in learners], places, boxes)


def _learner_of(model: Any) -> Any:
    """The model itself; of one that tunes itself, the candidate that predicts."""
    return getattr(model, "_predicting", model)


def _boxes(model: Any, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The largest size of each coefficient."""
    return model.C * weights * np.where(positive, model._class_weight(True), model._class_weight(False))


def _store(model: Any, X: Any) -> RowStore:
    """Examples as the model's kernel sees them."""
    n_features = len(model.feature_names)
    parts = [
        sp.csr_matrix((queries.values, queries.indices, queries.indptr), shape=(len(queries.sq), n_features))
        for _, queries in model._batches(X, learning=False)
    ]
    return RowStore(sp.vstack(parts, format="csr"), model._kernel, _CACHE_MB)
