"""Rare classes beside imbalanced-learn: balanced forest, RUSBoost, and SMOTE with a support vector machine.

    python benchmarks/imbalanced.py --data DIR           # five sets, three splits: some minutes
    python benchmarks/imbalanced.py --data DIR --quick   # two sets, one split

A third of each set is the test part, stratified, drawn anew for each split; features have mean 0 and standard deviation
1 in the training part, but those of w8a, which are 0 or 1.  The support vector machines have C = 1 and gamma = 1 /
number of features, w8a's 0.05; the ensembles are imbalanced-learn's as they come.  `LASVM` makes one pass and finishes;
"balanced" weights its rare class by the root of the classes' ratio, and SVC's by the ratio; the threshold "gmean" is
learned on the way.  Seconds are CPU seconds of training on one thread, compiled code loaded before; g-mean, PRBEP and
AUC are of the test part.

Abalone-19 and creditcard come whole, the latter as a subset with all frauds and 3 % positives; of the others a random
part is used that has all positives.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from gap.fits import scores
from shared.tables import table
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import streamsvm

FIGURES = ("g-means", "PRBEP", "AUC")
QUICK = ("abalone-19", "creditcard")


class Source(NamedTuple):
    """Where a set is, which classes are the rare one, and its gamma if that is not 1 / number of features.

    `most` is how many of its examples are used; all positives stay.
    """

    stored: str
    positive: tuple[int, ...]
    gamma: float | None = None
    most: int = 17_000


SETS = {
    "creditcard": Source("creditcard_subset", (1,)),
    "abalone-19": Source("abalone", (19,)),
    "letter-A": Source("letter", (0,)),
    "w8a": Source("w8a", (1,), 0.05),
    "kdd_http": Source("kdd_http", (1,), most=100_000),
}


class Split(NamedTuple):
    """Training and test part; y is bool."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    gamma: float


def load(name: str, folder: Path, seed: int) -> Split:
    """One split of a set."""
    source = SETS[name]
    z = np.load(folder / source.stored / f"{source.stored}.npz", allow_pickle=False)
    y = np.isin(z["y"], source.positive)
    is_sparse = "indptr" in z.files
    X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])) if is_sparse else z["X"]
    X = X.astype(np.float64)
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(~y))[: max(0, source.most - int(y.sum()))]
    rows = np.sort(np.concatenate([rows, np.flatnonzero(y)]))
    X, y = X[rows], y[rows]
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    if not is_sparse:
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        deviation[deviation == 0.0] = 1.0
        X, X_test = (X - mean) / deviation, (X_test - mean) / deviation
    return Split(X, y, X_test, y_test, source.gamma or 1 / X.shape[1])


# ------------------------------------------------------------------------------------------------------------ learners

# Each fits the training part and gives decision values of the test part that are positive for the rare class.
Fit = Callable[[Split, int], tuple[float, Callable[[], np.ndarray]]]


def online(**parameters: Any) -> Fit:
    """One pass of LASVM, and FINISH."""

    def fit(s: Split, seed: int) -> tuple[float, Callable[[], np.ndarray]]:
        model = streamsvm.LASVM(C=1.0, gamma=s.gamma, scaling=None, pos_weight="balanced", **parameters)
        order = np.random.default_rng(seed).permutation(len(s.y))
        start = time.process_time()
        model.learn_many(s.X[order], s.y[order])
        model.finish()
        seconds = time.process_time() - start
        return seconds, lambda: model.decision_function_many(s.X_test) - model.decision_threshold

    return fit


def machine(smote: bool) -> Fit:
    """SVC with balanced weights, or behind SMOTE."""

    def fit(s: Split, seed: int) -> tuple[float, Callable[[], np.ndarray]]:
        from imblearn.over_sampling import SMOTE

        start = time.process_time()
        X, y = SMOTE(random_state=seed).fit_resample(s.X, s.y) if smote else (s.X, s.y)
        model = SVC(C=1.0, gamma=s.gamma, class_weight=None if smote else "balanced").fit(X, y)
        return time.process_time() - start, lambda: model.decision_function(s.X_test)

    return fit


def trees(kind: str) -> Fit:
    """An ensemble of imbalanced-learn; its score is the share of votes beyond a half."""

    def fit(s: Split, seed: int) -> tuple[float, Callable[[], np.ndarray]]:
        from imblearn import ensemble

        model = getattr(ensemble, kind)(random_state=seed)
        start = time.process_time()
        model.fit(s.X, s.y)
        return time.process_time() - start, lambda: model.predict_proba(s.X_test)[:, 1] - 0.5

    return fit


LEARNERS: dict[str, Fit] = {
    "LASVM, balanced": online(),
    "LASVM, balanced, gmean": online(threshold="gmean"),
    "SVC, balanced": machine(smote=False),
    "SMOTE + SVC": machine(smote=True),
    "balanced forest": trees("BalancedRandomForestClassifier"),
    "RUSBoost": trees("RUSBoostClassifier"),
}


def measured(fit: Fit, s: Split, seed: int) -> dict:
    """Seconds and test figures."""
    seconds, values = fit(s, seed)
    return {"seconds": seconds} | scores(values(), s.y_test)


def rows_of(name: str, folder: Path, seeds: int) -> list[list[str]]:
    """The rows of one set."""
    splits = [load(name, folder, seed) for seed in range(seeds)]
    share = 100 * float(splits[0].y.mean())
    rows = []
    for title, fit in tqdm(LEARNERS.items(), desc=name, leave=False):
        runs = [measured(fit, split, seed) for seed, split in enumerate(splits)]
        mean = {key: statistics.fmean(run[key] for run in runs) for key in runs[0]}
        cells = [f"{mean[key]:.3f}" if key == "AUC" else f"{mean[key]:.1f}" for key in FIGURES]
        rows.append([f"{name}, {share:.2g} %", title, *cells, f"{mean['seconds']:.2f}"])
    return rows


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; the sets are not fetched")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3, help="splits to average over")
    parser.add_argument("--quick", action="store_true", help="two sets, one split")
    arguments = parser.parse_args()
    if arguments.data is None:
        print("imbalanced.py needs --data DIR: nothing is measured")
        return
    names, seeds = (QUICK, 1) if arguments.quick else (arguments.sets, arguments.seeds)
    streamsvm.warmup(streamsvm.LASVM)
    with threadpool_limits(1):
        rows = [row for name in names for row in rows_of(name, arguments.data, seeds)]
    print(table("set, positives|learner|g-mean %|PRBEP %|AUC|CPU s", rows))


if __name__ == "__main__":
    main()
