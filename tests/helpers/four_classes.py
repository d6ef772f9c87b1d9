"""Examples of four classes, and the models of classes or pairs that are tried on them."""

import numpy as np
import scipy.sparse as sp

from streamsvm import LASVM, LASVMG, LASVMNC, OneVsOne, OneVsRest

NAMES = ["red", "green", "blue", "gold"]


def problem(seed=0, n=600, d=20, noise=0.5):
    """Four classes around four centres."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(4, size=n)
    X = rng.normal(size=(4, d))[classes] + noise * rng.normal(size=(n, d))
    return X, np.array(NAMES)[classes]


def binary(seed=1):
    """Features that are 0 or 1."""
    X, y = problem(seed, d=40, noise=1.0)
    return (X > 0.0).astype(float), y


def text(seed=2):
    """Wide and sparse: compressed after some hundred examples."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(4, size=400)
    X = sp.random(400, 12_000, 0.002, format="lil", random_state=rng)
    X[np.arange(400), classes * 3 + rng.integers(6, size=400)] = 1.0
    return X.tocsr(), np.array(NAMES)[classes]


DATA = {"dense": problem(), "few features": problem(d=3), "binary": binary(), "text": text()}
ALONE = {"reservoir": 0}  # The models of classes and pairs have none.
COMMON = {
    "LASVM": LASVM(**ALONE, C=10.0, gamma=0.05),
    "LASVM, linear": LASVM(**ALONE, C=1.0, kernel="linear", scaling=None),
    "LASVM, budget": LASVM(**ALONE, C=10.0, gamma=0.05, budget=40),
    "LASVM, window": LASVM(**ALONE, C=10.0, gamma=0.05, window=150),
    "G": LASVMG(**ALONE, C=10.0, gamma=0.05, clean_every=50, max_non_sv=20),
    "NC": LASVMNC(**ALONE, C=10.0, gamma=0.05, clean_every=30, max_non_sv=10, ramp_warmup=50),
}
OF_CLASSES = COMMON | {
    "LASVM, one REPROCESS": LASVM(**ALONE, C=10.0, gamma=0.05, reprocess=1, pos_weight=2.0, cache_mb=0.01),
    "LASVM, projecting": LASVM(**ALONE, C=10.0, gamma=0.05, budget=60, on_budget="project"),
}
OF_PAIRS = COMMON | {"LASVM, balanced": LASVM(**ALONE, C=10.0, gamma=0.05, pos_weight="balanced")}
MODELS = {OneVsRest: OF_CLASSES, OneVsOne: OF_PAIRS}


def together(wrapper, model, X, y, cut=None, classes=NAMES, **others):
    """A model of several classes that has learned the examples, `cut` of them at once."""
    several = wrapper(model, classes=classes)
    n = X.shape[0]
    for b in range(0, n, cut or n):
        e = b + (cut or n)
        several.learn_many(X[b:e], y[b:e], **{name: values[b:e] for name, values in others.items()})
    return several
