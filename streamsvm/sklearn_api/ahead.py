"""Compilation ahead of the first use: what `LASVMClassifier` needs."""

import numpy as np
import scipy.sparse as sp

from streamsvm.sklearn_api.classifier import LASVMClassifier


def compile_fits() -> None:
    """Fit some examples of two and of three classes, dense and sparse; compiled code stays on disk."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 40))  # so many that members come and go, and there are Newton steps
    sparse, few = sp.csr_matrix(X * (rng.random(X.shape) < 0.05)), slice(200)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    LASVMClassifier(C=10.0).fit(X[:, :3], y ^ (rng.random(len(y)) < 0.1))
    for labels in (y[few], y[few] + (X[few, 2] > 0)):
        for examples in (X[few], X[few, :3], sparse[few]):
            LASVMClassifier().fit(examples, labels).predict(examples)
        LASVMClassifier(kernel="precomputed").fit(X[few] @ X[few].T, labels)
