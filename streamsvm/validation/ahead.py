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


def compile_removal(model: Any) -> None:
    """Teach a new model some examples, leave them out and forget them, along paths and by steps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] * X[:, 1] + rng.normal(size=120) > 0
    loo = StreamingLOO(model, memory=100, share=0)
    loo.learn_many(X, y)
    model.finish()
    loo.estimate()  # paths pay for so many,
    loo.estimate(removals=1)  # and hardly for one
    folds = StreamingKFold(model, 2, memory=100, share=0)
    folds.learn_many(X, y, ids=np.arange(1000, 1120))
    folds.estimate()
    model.forget(model.support_ids[:1])
    model.forget(model.support_ids[::2])
