"""Training of a learner to the optimum over a whole training set, from where it can go on learning.

The batch solver finds the coefficients; `exact` refines those of a small training set.  The examples that they rest on
become the model's members, as if it had learned all examples and finished: the support vectors, and the examples that
hold the extremes of the gradient, which fix the bias where no coefficient is between its bounds.
"""

from functools import partial
from typing import Any

import numpy as np

from streamsvm.batch.kernels.features import Features
from streamsvm.batch.multiclass.class_pairs import optima
from streamsvm.batch.options import SolverOptions
from streamsvm.batch.problem import members_of
from streamsvm.batch.solution import Solution
from streamsvm.batch.working_set.solver import optimum
from streamsvm.core import arguments
from streamsvm.core.blocks import LARGEST_SQUARED_NORM
from streamsvm.core.expansion import EVALUATIONS
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, largest_self_product
from streamsvm.estimators.inputs.sample import Sample, priorities
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner import finishing
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learner.examples import all_rows
from streamsvm.estimators.learner.state import batches, note, raw_batches
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.online.from_batch import Members, with_members
from streamsvm.online.outputs.calibration import note_margins
from streamsvm.sklearn_api.exact import LARGEST, exact_optimum, exact_pair, matrix_of


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


def learn_to_optimum(
    model: LASVM, X: Any, positive: np.ndarray, weights: np.ndarray, ids: np.ndarray, max_passes: int
) -> tuple[int, bool]:
    """Let a new model learn a training set up to its tolerance; return the number of passes, and whether that sufficed.

    Raises
    ------
    ValueError
        If a feature or a kernel value is too large.
    """
    features, box, options = _given(model, X, weights, max_passes)
    y, lo, hi = np.where(positive, 1.0, -1.0), np.where(positive, 0.0, -box), np.where(positive, box, 0.0)
    found, arrived = optimum(features, y, lo, hi, options)
    if len(y) <= LARGEST:
        found = exact_optimum(found, matrix_of(X, model._state.kernel))
    note_margins(model._state.calibration, positive[arrived.ids], arrived.decision_values)
    _place_members(model, X, found, ids)
    return found.n_passes, found.converged


def _given(model: LASVM, X: Any, weights: np.ndarray, max_passes: int) -> tuple[Features, np.ndarray, SolverOptions]:
    """The examples, which are not too large, the size of each box, and how to solve."""
    features, kernel = Features(X, model._state.kernel), model._state.kernel
    largest = features.sq.max(initial=0.0)
    if not (largest < LARGEST_SQUARED_NORM and largest_self_product(kernel, features.sq) <= LARGEST_KERNEL_VALUE):
        model.validate_many(X)  # it names the row
    box = arguments.boxes_of(model.C, weights, np.ones(len(weights)))
    return features, box, SolverOptions(tol=model.tol, cache_mb=model.cache_mb, max_passes=max_passes)


def _place_members(model: LASVM, X: Any, found: Solution, ids: np.ndarray) -> None:
    """Make the members of a solution those of a model without members."""
    lo, hi = found.lo, found.hi
    kept = members_of(found.dual_coef, found.g, lo, hi)
    members = Members(lo[kept], hi[kept], found.dual_coef[kept], found.g[kept], ids[kept], kept)
    state = model._state
    blocks = [q for _, q in batches(state, X[kept], learning=True)]
    state.expansion = with_members(state.expansion, state.kernel, blocks, len(state.features), members)
    state.expansion.counts[EVALUATIONS] += found.kernel_evaluations
    counts = int(np.count_nonzero(lo < 0.0)), int(np.count_nonzero(hi > 0.0))
    last = len(ids) - 1
    note(state, last + 1, counts, int(ids.max()), len(state.features), 0, last)


def learn_pairs_to_optimum(
    model: OneVsOne, X: Any, places: np.ndarray, weights: np.ndarray, ids: np.ndarray, max_passes: int
) -> list[tuple[int, bool]]:
    """Let a new model of pairs learn a training set up to its tolerance; see `learn_to_optimum`."""
    features, box, options = _given(model.model, X, weights, max_passes)
    found = list(optima(features, places, box, options))
    if len(places) <= LARGEST:
        K = matrix_of(X, model.model._state.kernel)
        found = [exact_pair(pair, K, places, box) for pair in found]
    model.take_solutions(X, places, weights, ids, found, features.kernel_evaluations)
    return [(pair.n_passes, pair.converged) for pair in found]
