"""The benchmarks' data: from a folder of npz files, or from OpenML.

A folder holds NAME/NAME.npz with dense X, y (and X_test, y_test), or compressed rows data, indices, indptr, shape, y
(and the same with _test).  Without a folder, the sets that OpenML has are fetched by scikit-learn and split by a
fixed permutation.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class Task(NamedTuple):
    """A binary classification task with the hyper-parameters of the source."""

    name: str
    C: float
    gamma: float
    positive: str  # the class taken as positive, as text
    prepare: str  # "as is", "standard", "pixels" (divided by 255) or "unit rows"
    n_train: int | None  # split by permutation; None: the published split
    openml: str | None  # data set name on OpenML


TASKS = {
    task.name: task
    for task in (
        Task("banana", 316.0, 0.5, "1", "as is", 4000, "banana"),
        Task("waveform", 1.0, 0.05, "0", "standard", 4000, "waveform-5000"),
        Task("letter", 10.0, 0.01, "0", "as is", 16000, "letter"),
        Task("usps", 1000.0, 2.0, "8", "unit rows", None, "USPS"),
        Task("a9a", 100.0, 0.005, "1", "as is", None, "a9a"),
        Task("mnist", 1000.0, 0.02, "8", "pixels", None, "mnist_784"),
    )
}
OPENML_POSITIVE = {"banana": "1", "letter": "A", "usps": "9", "mnist": "8", "a9a": "1", "waveform": "0"}


class Data(NamedTuple):
    """Training and test part; y is -1 or +1."""

    X: np.ndarray | sp.csr_matrix
    y: np.ndarray
    X_test: np.ndarray | sp.csr_matrix
    y_test: np.ndarray


def load(name: str, folder: Path | None, seed: int = 0) -> Data:
    """The task's data, its training part in the order that `seed` gives."""
    task = TASKS[name]
    X, y, X_test, y_test = _from_folder(task, folder) if folder else _from_openml(task)
    rng = np.random.default_rng(seed)
    if X_test is None:
        order = np.random.default_rng(0).permutation(X.shape[0])
        n = task.n_train or int(0.8 * X.shape[0])
        X, y, X_test, y_test = X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]
    X, X_test = _prepared(X, X_test, task.prepare)
    order = rng.permutation(X.shape[0])
    return Data(X[order], y[order], X_test, y_test)


def _signs(y: np.ndarray, positive: str) -> np.ndarray:
    return np.where(np.char.strip(y.astype(str)) == positive, 1, -1)


def _from_folder(task: Task, folder: Path):
    z = np.load(folder / task.name / f"{task.name}.npz", allow_pickle=False)

    def part(suffix: str):
        if "y" + suffix not in z.files:
            return None, None
        if "indptr" + suffix in z.files:
            rows = (z["data" + suffix].astype(np.float32), z["indices" + suffix], z["indptr" + suffix])
            X = sp.csr_matrix(rows, shape=tuple(z["shape" + suffix]))
        else:
            X = z["X" + suffix].astype(np.float32)
        return X, _signs(z["y" + suffix], task.positive)

    X, y = part("")
    return X, y, *part("_test")


def _from_openml(task: Task):
    from sklearn.datasets import fetch_openml

    bunch = fetch_openml(task.openml, version=1, as_frame=False, parser="liac-arff")
    X = bunch.data.astype(np.float32)
    return X, _signs(np.asarray(bunch.target), OPENML_POSITIVE[task.name]), None, None


def _prepared(X, X_test, how: str):
    if how == "pixels":
        return X / np.float32(255), X_test / np.float32(255)
    if how == "unit rows":
        return tuple(part / np.linalg.norm(part, axis=1, keepdims=True) for part in (X, X_test))
    if how == "standard":
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        return (X - mean) / deviation, (X_test - mean) / deviation
    return X, X_test
