"""Judge labelled examples by a model's kernel, C and scaling, each by the solution for all others."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamsvm.active.answers.suspects import left_out_leads, left_out_values
from streamsvm.batch import RowStore
from streamsvm.core import sparse as sp
from streamsvm.core.kernels import Kernel
from streamsvm.estimators.learner.state import State, batches, class_weight
from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest


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
    state, positive = model._state, np.array(y, bool)
    boxes = _boxes(state, positive, sample_weight)
    values = left_out_values(_store(state, X), np.where(positive, 1.0, -1.0), boxes)
    return np.where(positive, values, -values)


def left_out_positives(model: Any, X: Any, y: Sequence[Any], sample_weight: np.ndarray) -> np.ndarray:
    """f of the positive examples, each by the exact solution for all others; parameters as of `left_out_margins`."""
    state, positive = model._state, np.array(y, bool)
    boxes = _boxes(state, positive, sample_weight)
    return left_out_values(_store(state, X), np.where(positive, 1.0, -1.0), boxes, np.flatnonzero(positive))


def _leads(model: OneVsRest, X: Any, y: Sequence[Any], weights: np.ndarray) -> np.ndarray:
    labels = list(dict.fromkeys(y))
    places = np.array([labels.index(label) for label in y])
    states = [model._binary(label)._state if label in model.labels else model._common for label in labels]
    stores: dict[Kernel, RowStore] = {}
    for state in states:  # classes that tune themselves have kernels of their own; the others share one
        if state.kernel not in stores:
            stores[state.kernel] = _store(state, X)
    boxes = [_boxes(state, places == k, weights) for k, state in enumerate(states)]
    return left_out_leads([stores[state.kernel] for state in states], places, boxes)


def _boxes(state: State, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The largest size of each coefficient."""
    return state.C * weights * np.where(positive, class_weight(state, True), class_weight(state, False))


def _store(state: State, X: Any) -> RowStore:
    """Examples as the model's kernel sees them."""
    n_features = len(state.features.learned())
    parts = [
        sp.csr_matrix((queries.values, queries.indices, queries.indptr), shape=(len(queries.sq), n_features))
        for _, queries in batches(state, X, learning=False)
    ]
    return RowStore(sp.vstack(parts, format="csr"), state.kernel)
