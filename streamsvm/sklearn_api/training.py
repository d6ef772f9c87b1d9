"""Training of a learner to the optimum over a whole training set."""

from functools import partial
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.estimators.inputs.class_sample import priorities
from streamsvm.estimators.inputs.sample import Sample
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner import finishing
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learner.examples import all_rows
from streamsvm.estimators.learner.state import raw_batches
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.sklearn_api.optimum import learn_pairs_to_optimum, learn_to_optimum


def train(
    model: OnlineSVM, X: Any, positive: np.ndarray, weights: np.ndarray, ids: np.ndarray, *, max_passes: int
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
    if max_passes == 1:
        return 1, True  # no more was asked for
    state, examples = model._state, _sample_of(model, X, positive, weights, ids)
    for n_passes in range(2, max_passes + 1):
        late = finishing.violators(state, state.tol, examples)
        if not late.size:
            return n_passes, True
        state.expansion = finishing.with_examples(state, state.expansion, late)
        model.finish()
    return max_passes, False


def train_all(
    model: OnlineSVM | OneVsOne, X: Any, places: np.ndarray, weights: np.ndarray, ids: np.ndarray, *, max_passes: int
) -> list[tuple[int, bool]]:
    """The same of a learner of two classes or of pairs; what `train` says of each machine."""
    if isinstance(model, OnlineSVM):
        return [train(model, X, places, weights, ids, max_passes=max_passes)]
    if isinstance(model.model, LASVM) and max_passes > 1:
        return learn_pairs_to_optimum(model, X, places, weights, ids, max_passes)
    return model.train_pairs(X, places, weights, ids, partial(train, max_passes=max_passes))


def _sample_of(model: OnlineSVM, X: Any, positive: np.ndarray, weights: np.ndarray, ids: np.ndarray) -> Sample:
    """The examples that have a weight, as those of a reservoir."""
    used = np.flatnonzero(weights > 0.0)
    raw = all_rows([raw for _, raw, _ in raw_batches(model._state, X[used], learning=False)])
    box = arguments.boxes_of(model.C, weights[used], np.ones(len(used)))
    return Sample(used, priorities(used), ids[used], used, positive[used], box, *raw[:3])
