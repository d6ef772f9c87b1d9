"""Two classes with noise, and a model that has learned them to a tight tolerance."""

import numpy as np

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM

TIGHT = 1e-7
LEARNERS = [LASVM, LASVMG, LASVMI, LASVMNC, FullSVM]


def noisy(n=120, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    return X, X[:, 0] + X[:, -1] ** 2 + 0.4 * rng.normal(size=n) > 0.7


def learned(learner, X, y, finish_tol=TIGHT, **parameters):
    """A model that has learned these and knows only its members; it is not finished if `finish_tol` is None."""
    model = learner(**{"C": 5.0, "gamma": 0.3, "reservoir": 0} | parameters)
    model.learn_many(X, y)
    if finish_tol:
        model.finish(finish_tol)
    return model
