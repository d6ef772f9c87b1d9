"""The data sets of the labelling benchmarks: a pool and a test part, drawn anew for each seed."""

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

POOL, TEST = 3000, 2500  # examples of the sets with rare classes
PROTOCOL_TEST = 0.4  # share of the examples of the published protocol


class Part(NamedTuple):
    """A pool with labels, a test part, and the parameters of the model."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    C: float
    gamma: float

    @property
    def pos_weight(self) -> float:
        """The root of negatives for each positive."""
        share = float(self.y.mean())
        return math.sqrt((1.0 - share) / share)


class Source(NamedTuple):
    """Where a set is stored, which classes are positive, how features are scaled, C and gamma."""

    stored: str
    positive: tuple[int, ...]
    scaling: str
    C: float
    gamma: float


RARE = {
    "letter A": Source("letter", (0,), "none", 10, 0.01),
    "letter H": Source("letter", (7,), "none", 10, 0.01),
    "usps 8": Source("usps", (8,), "unit", 1000, 2.0),
    "reuters": Source("reuters_moneyfx", (1,), "none", 1, 1.0),
    "w8a": Source("w8a", (1,), "none", 10, 0.05),
    "ijcnn1": Source("ijcnn1", (1,), "none", 32, 2.0),
    "covtype 5": Source("covtype_subset", (5,), "standard", 10, 0.1),
    "creditcard": Source("creditcard_subset", (1,), "standard", 10, 0.02),
    "kdd_http": Source("kdd_http", (1,), "standard", 10, 1.0),
    "abalone 15": Source("abalone", tuple(range(15, 40)), "standard", 10, 0.1),
    "a9a": Source("a9a", (1,), "none", 1, 0.05),
    "segment 3": Source("segment", (3,), "standard", 10, 0.05),
    "mnist 8": Source("mnist", (8,), "pixels", 10, 0.02),
    "spambase": Source("spambase", (1,), "standard", 10, 0.005),
    "waveform 0": Source("waveform", (0,), "standard", 1, 0.05),
    "trap": Source("trap", (1,), "none", 10, 1.0),
}
BALANCED = {"banana": Source("banana", (1,), "standard", 10, 0.5)}
STREAMS = ("letter A", "usps 8", "creditcard", "kdd_http", "segment 3", "spambase", "waveform 0", "a9a", "banana")
PROTOCOL = {
    "heart": ("heart", (1,)),
    "ionosphere": ("ionosphere", (1,)),
    "wdbc": ("wdbc", (1,)),
    "diabetes": ("pima", (1,)),
    "german": ("german", (1,)),
    "tictactoe": ("tictactoe", (1,)),
    "checkerboard": ("checkerboard", (1,)),
    "twonorm": ("twonorm", (1,)),
    "splice": ("splice", (0, 1)),
    "banana": ("banana", (1,)),
    "spambase": ("spambase", (1,)),
}


def chosen(sets: Iterable[str], arguments: argparse.Namespace) -> list[str]:
    """Those of these sets that the command line names."""
    return [name for name in sets if name in arguments.sets]


def rare(name: str, folder: Path, seed: int, most: int = POOL) -> Part:
    """A set with a rare class, or a balanced one, and at most so many examples in the pool."""
    source = (RARE | BALANCED)[name]
    X, y = _raw(source.stored, source.positive, folder, seed)
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(most, len(y) * 3 // 5)
    pool, test = order[:n], order[n : n + TEST]
    return Part(*_scaled(X[pool], y[pool], X[test], y[test], source.scaling), source.C, source.gamma)


def protocol(name: str, folder: Path, seed: int) -> Part:
    """A set of the published protocol: 60 % in the pool, C = 1, gamma = 1 / features."""
    X, y = _raw(*PROTOCOL[name], folder, 5)
    order = np.random.default_rng(seed).permutation(len(y))
    n = int(len(y) * (1 - PROTOCOL_TEST))
    pool, test = order[:n], order[n:]
    parts = _scaled(_dense(X[pool]), y[pool], _dense(X[test]), y[test], "standard")
    return Part(*parts, 1.0, 1.0 / X.shape[1])


def _raw(stored: str, positive: tuple[int, ...], folder: Path, seed: int) -> tuple[Any, np.ndarray]:
    if stored in MADE:
        return MADE[stored](np.random.default_rng(1000 + seed))
    z = np.load(folder / stored / f"{stored}.npz", allow_pickle=False)
    if "indptr" in z.files:
        X = sp.csr_matrix((z["data"].astype(np.float64), z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    else:
        X = z["X"].astype(np.float64)
    return X, np.isin(z["y"], positive)


def _scaled(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray, how: str) -> tuple[Any, ...]:
    if how == "standard":
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        deviation[deviation == 0.0] = 1.0
        X, X_test = (X - mean) / deviation, (X_test - mean) / deviation
    if how == "pixels":
        X, X_test = X / 255, X_test / 255
    if how == "unit":
        X, X_test = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (X, X_test))
    return X, y, X_test, y_test


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


# --------------------------------------------------------------------------------------------------------- made up sets


def _trap(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters of positives, two of them small and apart."""
    n, u = 6000, rng.random(6000)
    X, y = 1.6 * rng.normal(size=(n, 2)), u < 0.07
    for center, low, high in (((2.5, 2.5), 0.0, 0.04), ((-1.5, -1.0), 0.04, 0.055), ((0.5, -2.5), 0.055, 0.07)):
        own = (low <= u) & (u < high)
        X[own] = center + 0.25 * rng.normal(size=(own.sum(), 2))
    return X, y


def _checkerboard(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = 4.0 * rng.random((1600, 2))
    return X, np.floor(X).sum(axis=1) % 2 > 0


def _twonorm(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.random(2000) < 0.5
    return rng.normal(size=(2000, 20)) + np.where(y, 1.0, -1.0)[:, None] * 2.0 / math.sqrt(20), y


def _wdbc(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Not made up, but part of scikit-learn."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return bunch.data, bunch.target > 0


MADE = {"wdbc": _wdbc, "trap": _trap, "checkerboard": _checkerboard, "twonorm": _twonorm}
