"""Rare classes: accuracy against the geometric mean of both recalls, with balanced weights and a learned threshold.

    python benchmarks/rare.py --data DIR             # the table; without a folder from OpenML, which lacks a set
    python benchmarks/rare.py --data DIR --quick     # two sets, 3000 records each

Each record is predicted, then learned.  Features have mean 0 and standard deviation 1, C = 1 and gamma is 1 / their
number.  At most 12,000 records, in a random order except those of creditcard, which have times.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from datasets import Task, load_first
from river.metrics import Accuracy, GeometricMean
from tqdm import tqdm

from streamsvm import LASVM

TASKS = {
    "creditcard": Task("creditcard", 1.0, 1 / 30, "1", "as is", None, None, stored="creditcard_subset"),
    "letter A": Task("letter", 1.0, 1 / 16, "0", "as is", None, "letter", "A"),
    "ijcnn1": Task("ijcnn1", 1.0, 1 / 22, "1", "as is", None, "ijcnn"),
    "abalone 19-23": Task("abalone", 1.0, 1 / 8, "19 20 21 22 23", "as is", None, "abalone"),
}
WAYS = {
    "weight 1": {},
    "balanced": {"pos_weight": "balanced"},
    "balanced, gmean": {"pos_weight": "balanced", "threshold": "gmean"},
}
QUICK = ("letter A", "abalone 19-23")
IN_TIME = ("creditcard",)


def stream(name: str, folder: Path | None, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features and labels of a task, in the order of the stream."""
    X, y = load_first(TASKS[name], folder)
    X = X.toarray() if sp.issparse(X) else X
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    rows = np.sort(rows) if name in IN_TIME else rows
    X, y = X[rows], y[rows] > 0
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), y


def scores(task: Task, X: np.ndarray, y: np.ndarray, **way) -> tuple[float, float]:
    """Accuracy and geometric mean in percent, of predictions made before learning."""
    model = LASVM(C=task.C, gamma=task.gamma, scaling=None, **way)
    accuracy, g_mean = Accuracy(), GeometricMean()
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(enumerate(row))
        predicted = model.predict_one(x)
        accuracy.update(label, predicted)
        g_mean.update(label, predicted)
        model.learn_one(x, label)
    return 100 * accuracy.get(), 100 * g_mean.get()


def lines(names: list[str], folder: Path | None, n: int) -> Iterator[str]:
    """The rows of the table."""
    yield " | ".join(["accuracy / g-mean %", *WAYS])
    for name in tqdm(names):
        try:
            X, y = stream(name, folder, n)
        except FileNotFoundError as error:
            yield f"{name}: {error}"
            continue
        found = (scores(TASKS[name], X, y, **way) for way in WAYS.values())
        yield " | ".join([f"{name}, {100 * y.mean():.0f} %", *(f"{a:.2f} / {g:.1f}" for a, g in found)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--quick", action="store_true", help="two sets, 3000 records each")
    options = parser.parse_args()
    for line in lines(list(QUICK if options.quick else TASKS), options.data, 3000 if options.quick else 12000):
        print(line)
