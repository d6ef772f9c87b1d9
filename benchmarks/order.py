"""Does the order of the stream matter?  All learners on six orders of five sets, beside scikit-learn's SVC.

    python benchmarks/order.py --data DIR            # minutes; without --data, from OpenML
    python benchmarks/order.py --data DIR --quick

One pass, then `finish`.  The same examples come in another order each time:

    shuffled    as a permutation
    file        as in the file
    feature     sorted by the feature with the most different values
    bursts      the classes take turns, in runs of 1000 on average
    negatives   all negatives, then all positives
    positives   all positives, then all negatives

A cell is error % / members / CPU seconds.  The error is balanced: the mean of both classes' errors on a test part.
`*` marks an error that is more than 1.5 points above that of the shuffled stream.  "LASVM, no reservoir" shows
what the reservoir is worth.  SVC is trained once: it sees no order.  The features are standardised, C = 10 and
gamma = 1 / the number of features that vary.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from datasets import Data, Task, load_first
from sklearn.svm import SVC

import streamsvm
from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM

C = 10.0
TOLERATED = 1.5  # points of error above the shuffled stream's
BURST = 1000
TEST_SHARE = 0.25
TASKS = [
    Task("letter", C, 0.0, "0 1 2 3 4 5 6 7 8 9 10 11 12", "as is", 12000, "letter", "A B C D E F G H I J K L M"),
    Task("usps", C, 0.0, "0 1 2 3 4", "as is", 7291, "USPS", "1 2 3 4 5"),
    Task("covtype", C, 0.0, "2", "as is", 12000, "covertype", "2", stored="covtype_subset"),
    Task("spambase", C, 0.0, "1", "as is", 4601, "spambase"),
    Task("ijcnn1", C, 0.0, "1", "as is", 20000, "ijcnn"),
]
QUICK, QUICK_ROWS = ("letter", "spambase"), 3000
LEARNERS: dict[str, Callable] = {
    "LASVM": LASVM,
    "LASVM, no reservoir": partial(LASVM, reservoir=0),
    "LASVM-G": LASVMG,
    "LASVM-NC": LASVMNC,
    "LASVM-I": LASVMI,
    "FULL": FullSVM,
}


def prepared(task: Task, folder: Path | None, n: int) -> Data:
    """A random part of a set, in the order of its file, standardised; a quarter of it to test on."""
    X, y = load_first(task._replace(n_train=None), folder)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(y))[:n]
    test, train = rows[: int(TEST_SHARE * len(rows))], np.sort(rows[int(TEST_SHARE * len(rows)) :])
    X, X_test = (np.asarray(X[part].todense() if hasattr(X, "todense") else X[part]) for part in (train, test))
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    varies = deviation > 0.0
    scaled = [(part[:, varies] - mean[varies]) / deviation[varies] for part in (X, X_test)]
    return Data(scaled[0], y[train], scaled[1], y[test])


def bursts(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Runs of one class, then of the other, as long on average as `BURST` and in proportion to the classes."""
    order, left = [], [rng.permutation(np.flatnonzero(y == sign)) for sign in (-1, 1)]
    lengths = [max(1, round(2 * BURST * len(part) / len(y))) for part in left]
    while any(map(len, left)):
        for k, length in enumerate(lengths):
            order.append(left[k][:length])
            left[k] = left[k][length:]
    return np.concatenate(order)


def orders(data: Data) -> dict[str, np.ndarray]:
    """The orders of the stream."""
    rng, y = np.random.default_rng(1), data.y
    richest = int(np.argmax([len(np.unique(column)) for column in data.X.T]))
    shuffled = rng.permutation(len(y))
    return {
        "shuffled": shuffled,
        "file": np.arange(len(y)),
        "feature": shuffled[np.argsort(data.X[shuffled, richest], kind="stable")],
        "bursts": bursts(y, rng),
        "negatives": shuffled[np.argsort(y[shuffled], kind="stable")],
        "positives": shuffled[np.argsort(-y[shuffled], kind="stable")],
    }


def balanced_error(predicted: np.ndarray, y: np.ndarray) -> float:
    """The mean of both classes' errors, in %."""
    return 100 * float(np.mean([np.mean(predicted[y == sign] != (sign > 0)) for sign in (-1, 1)]))


def run(make: Callable, data: Data, order: np.ndarray, gamma: float) -> tuple[float, int, float]:
    """Error, members and seconds of one learner on one stream."""
    model = make(C=C, gamma=gamma)
    start = time.process_time()
    model.learn_many(data.X[order], data.y[order] > 0)
    model.finish()
    seconds = time.process_time() - start
    return balanced_error(model.predict_many(data.X_test), data.y_test), model.n_members, seconds


def compare(task: Task, data: Data) -> None:
    """Print the rows of one set."""
    gamma = 1.0 / data.X.shape[1]
    print(f"\n{task.name}: {len(data.y)} examples, {np.mean(data.y > 0):.0%} positive, {data.X.shape[1]} features")
    start = time.process_time()
    svc = SVC(C=C, gamma=gamma).fit(data.X, data.y)
    seconds = time.process_time() - start
    error = balanced_error(svc.predict(data.X_test) > 0, data.y_test)
    print(f"{'SVC':20} {error:5.1f}  / {len(svc.support_):5d} / {seconds:5.2f}")
    streams = orders(data)
    print(" " * 20, *(f"{name:>22}" for name in streams))
    for learner, make in LEARNERS.items():
        print(f"{learner:20}", end="", flush=True)
        shuffled = None
        for order in streams.values():
            error, members, seconds = run(make, data, order, gamma)
            shuffled = error if shuffled is None else shuffled
            mark = "*" if error > shuffled + TOLERATED else " "
            print(f" {error:5.1f}{mark} / {members:5d} / {seconds:5.2f}", end="", flush=True)
        print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the data; default: OpenML")
    parser.add_argument("--tasks", nargs="*", choices=[task.name for task in TASKS], help="default: all")
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}, {QUICK_ROWS} examples each")
    arguments = parser.parse_args()
    names = arguments.tasks or (QUICK if arguments.quick else [task.name for task in TASKS])
    for learner in (LASVM, LASVMG, LASVMNC, LASVMI, FullSVM):
        streamsvm.warmup(learner)
    for task in TASKS:
        if task.name in names:
            n = QUICK_ROWS if arguments.quick else task.n_train
            compare(task, prepared(task, arguments.data, n))


if __name__ == "__main__":
    main()
