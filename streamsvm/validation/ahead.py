"""What cross-validation, grids, forgetting and streaming estimates need, compiled ahead of its first use."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from streamsvm.validation.crossval import SEEDINGS, cross_validate
from streamsvm.validation.search import grid_search
from streamsvm.validation.streaming import StreamingKFold, StreamingLOO


def compile_ahead() -> None:
    """Run every start of cross-validation on a few examples, dense and sparse; what was compiled stays on disk."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 10))
    y = X[:, 0] * X[:, 1] + rng.normal(size=40) > 0
    for seeding in SEEDINGS:
        cross_validate(X, y, C=1.0, gamma=0.1, k=5, seeding=seeding)
    sparse = sp.csr_matrix(X * (rng.random(X.shape) < 0.1))
    search = grid_search(sparse, y, Cs=[0.1, 1.0])
    assert search.solution is not None
    search.solution.decision_function(sparse)


def compile_removal(algorithm: Any) -> None:
    """Teach models of a class some examples, leave them out and forget them: along paths, by steps, within bounds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=400) > 0
    model = algorithm()
    loo = StreamingLOO(model, memory=100, share=0)
    loo.learn_many(X[:120], y[:120])
    model.finish()
    loo.estimate()  # paths pay for so many,
    loo.estimate(removals=1)  # and hardly for one
    folds = StreamingKFold(model, 2, memory=100, share=0)
    folds.learn_many(X[120:240], y[120:240])
    folds.estimate()
    model.forget(model.support_ids[:1])
    model.forget(model.support_ids[::2])
    for how in ("remove", "merge"):
        algorithm(budget=40, on_budget=how).learn_many(X, y)
