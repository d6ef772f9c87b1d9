"""Training of a learner to the optimum over a whole training set."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.sklearn_api.optimum import learn_pairs_to_optimum, learn_to_optimum


def train(
    model: OnlineSVM, X: Any, positive: np.ndarray, weights: np.ndarray, ids: np.ndarray, *, tol: float, max_passes: int
) -> tuple[int, bool]:
    """Make a learner, which has learned nothing, the optimum over these examples.

    Returns
    -------
    tuple
        The number of passes, and whether no example violated in the last one, of several.

    Notes
    -----
    A `LASVM` gets the batch solver's solution.  A learner without a bias learns the examples.  After one pass, those
    that violate become members, and the model is optimised, until no example violates.  To learn them like new
    examples would fit the sigmoid to the worst margins only.
    """
    positive = positive.astype(bool)
    if isinstance(model, LASVM) and max_passes > 1:
        return learn_to_optimum(model, X, positive, weights, ids, max_passes)
    model.learn_many(X, positive, w=weights, ids=ids)
    model.finish()
    for n_passes in range(2, max_passes + 1):
        late = _violators(model, X, positive, weights, ids, tol)
        if not len(late):
            return n_passes, True
        with _keeping_all(model):
            model.learn_many(X[late], positive[late], w=weights[late], ids=ids[late])
        model.finish()
    return max_passes, max_passes == 1  # no more was asked for


def train_pairs(
    model: OneVsOne,
    X: Any,
    places: np.ndarray,
    weights: np.ndarray,
    ids: np.ndarray,
    *,
    tol: float,
    max_passes: int,
) -> list[tuple[int, bool]]:
    """Make a `OneVsOne`, which has learned nothing, the optimum over these examples; what `train` says of each pair."""
    if isinstance(model.model, LASVM) and max_passes > 1:
        return learn_pairs_to_optimum(model, X, places, weights, ids, max_passes)
    return model.train_pairs(X, places, weights, ids, partial(train, tol=tol, max_passes=max_passes))


def _violators(
    model: OnlineSVM, X: Any, positive: np.ndarray, weights: np.ndarray, ids: np.ndarray, tol: float
) -> np.ndarray:
    """The rows of the examples that should be support vectors and are not."""
    margins = np.where(positive, 1.0, -1.0) * model.decision_function_many(X)
    return np.flatnonzero((margins < 1.0 - tol) & ~np.isin(ids, model.support_ids) & (weights > 0.0))


@contextmanager
def _keeping_all(model: OnlineSVM) -> Iterator[None]:
    """Let a model make every example a member, without optimisation steps; `finish` must follow."""
    model._state.keeps_all = True
    try:
        yield
    finally:
        model._state.keeps_all = False
