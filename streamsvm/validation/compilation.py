"""Compilation ahead of the first use: what cross-validation, grids, forgetting and streaming estimates need."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from streamsvm.validation.crossval import cross_validate
from streamsvm.validation.grids.search import grid_search
from streamsvm.validation.held_out.splits import SEEDINGS
from streamsvm.validation.streaming import StreamingKFold, StreamingLOO


def compile_ahead(algorithm: Any) -> None:
    """Run every start of cross-validation on a few examples, dense and sparse; compiled code stays on disk.

    Parameters
    ----------
    algorithm
        The class of a learner with a bias: `LASVM`.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 10))
    y = X[:, 0] * X[:, 1] + rng.normal(size=40) > 0
    for seeding in SEEDINGS:
        cross_validate(algorithm(gamma=0.1), X, y, k=5, seeding=seeding)
    sparse = sp.csr_matrix(X * (rng.random(X.shape) < 0.1))
    search = grid_search(algorithm(), sparse, y, Cs=[0.1, 1.0])
    assert search.solution is not None
    search.solution.decision_function(sparse)
    many = rng.normal(size=(1200, 10))  # so many that not all are members
    grid_search(algorithm(), many, many[:, 0] * many[:, 1] > 0, Cs=[0.1, 1.0, 100.0], refit=False)
    for some in (many, many[:300]):
        cross_validate(algorithm(gamma=0.1), some, some[:, 0] > 0, k=3)


def compile_removal(algorithm: Any) -> None:
    """Teach models some examples, leave examples out, and forget them: along paths, by steps, and within a budget.

    Parameters
    ----------
    algorithm
        The class of a learner.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=400) > 0
    model = algorithm()
    loo = StreamingLOO(model, memory=100, share=0)
    loo.learn_many(X[:120], y[:120])
    model.finish()
    loo.estimate()  # So many removals take paths,
    loo.estimate(seconds=0.0)  # and a few take steps.
    folds = StreamingKFold(model, 2, memory=100, share=0)
    folds.learn_many(X[120:240], y[120:240])
    folds.estimate()
    model.forget(model.support_ids[:1])
    model.forget(model.support_ids[::2])
    for how in ("remove", "merge"):
        algorithm(budget=40, on_budget=how).learn_many(X, y)
    narrow = algorithm(gamma=100.0)  # nearly all members are free, which is too dear for paths
    narrow.learn_many(X, y)
    narrow.forget(narrow.support_ids[::2])
