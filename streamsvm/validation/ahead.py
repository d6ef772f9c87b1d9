"""What cross-validation and grids need, compiled ahead of its first use."""

import numpy as np
import scipy.sparse as sp

from streamsvm.validation.crossval import SEEDINGS, cross_validate
from streamsvm.validation.search import grid_search


def compile_ahead() -> None:
    """Run every start on a few examples, dense and sparse: what was compiled stays in the disk cache."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 10))
    y = X[:, 0] * X[:, 1] + rng.normal(size=40) > 0
    for seeding in SEEDINGS:
        cross_validate(X, y, C=1.0, gamma=0.1, k=5, seeding=seeding)
    sparse = sp.csr_matrix(X * (rng.random(X.shape) < 0.1))
    search = grid_search(sparse, y, Cs=[0.1, 1.0])
    assert search.solution is not None
    search.solution.decision_function(sparse)
