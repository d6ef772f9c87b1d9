"""Which example LASVM takes next: section 4 of its source, Figures 11 to 16.

    python benchmarks/selection.py --data DIR --plot DIR     # tables and pictures: some minutes
    python benchmarks/selection.py --data DIR --full         # all of a9a, all examples of 60000 digits: hours
    python benchmarks/selection.py --data DIR --quick        # the first hundreds of examples
    python benchmarks/selection.py --data DIR --parts adult --runs 5

`adult`: error of the test part, support vectors and CPU seconds on the way through a9a.  `digits`: the same for 8 of
mnist against the rest, as it is and with 10 % of the training labels wrong, for which the source prints no C: here it
is the C that it has for usps with wrong labels.  `retraining`: usps and reuters, by LASVM
with one iteration for each label, and by an SVM that is trained anew after each label from the solution before.  Each
run has another order; those of `adult` and `retraining` have another split of the data, too.

RANDOM takes any example; ACTIVE the one closest to the boundary among 50 random ones, or among all; GRADIENT the one of
50 with the smallest y f(x); AUTOACTIVE draws until 5 are close.  LASVM does one REPROCESS after each example; figures
are those of a copy after FINISH, whose time counts.  "SVM" is `LASVMClassifier.fit` on all examples, which finds the
same optimum as SVC, and counts equal examples of one class as one support vector.  Source: Bordes, Ertekin, Weston,
Bottou, "Fast kernel classifiers with online and active learning", JMLR 6 (2005).
"""

import argparse
import copy
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import TASKS, Data, Task, load
from lasvm import AS_PRINTED
from papers.printed import RETRAINING
from shared.tables import table
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import streamsvm
from streamsvm.active import (
    ActiveSelection,
    ArrayPool,
    AutoActiveSelection,
    GradientSelection,
    RandomSelection,
    Selection,
)
from streamsvm.batch import RowStore, smo
from streamsvm.core.kernels import RBF
from streamsvm.sklearn_api import LASVMClassifier

POOL, SEEDS = 50, 5  # candidates; examples of each class to begin with
DIGITS_OF = {"quick": 1500, "default": 60_000, "full": 60_000}
MOST = {  # examples that are taken
    "adult": {"quick": 600, "default": 8000, "full": 32561},
    "digits": {"quick": 300, "default": 5000, "full": 60_000},
    "retraining": {"quick": 40, "default": 500, "full": 500},
}
SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)  # of MOST: where figures are taken
CHOICES: dict[str, Callable[[np.ndarray], Selection]] = {
    "RANDOM": lambda positive: RandomSelection(),
    "GRADIENT": lambda positive: GradientSelection(positive, pool=POOL),
    "ACTIVE": lambda positive: ActiveSelection(POOL),
    "AUTOACTIVE": lambda positive: AutoActiveSelection(),
    "ACTIVE, all": lambda positive: ActiveSelection(None),
}
ADULT = TASKS["a9a"]._replace(n_train=32561, anew=True)
USPS = TASKS["usps 0"]
USPS_NOISE = TASKS["usps 0+N"]
REUTERS = TASKS["reuters"]._replace(n_train=7770, anew=True)
DIGIT = Task("mnist", 1000.0, 0.005, "8", "pixels", None, "mnist_784")


class Point(NamedTuple):
    """After so many examples: test error in percent, support vectors, CPU seconds so far; or means of several runs."""

    examples: float
    error: float
    support: float
    seconds: float


Curves = dict[str, list[Point]]


def marks_of(most: int) -> list[int]:
    """Where figures are taken."""
    return sorted({max(2 * SEEDS + 1, int(share * most)) for share in SHARES})


def first_of_each(y: np.ndarray) -> np.ndarray:
    """A few examples of each class."""
    return np.concatenate([np.flatnonzero(y > 0)[:SEEDS], np.flatnonzero(y < 0)[:SEEDS]])


def error_of(f: np.ndarray, data: Data) -> float:
    """Of the test part, in percent."""
    return 100 * float(np.mean((f > 0) != (data.y_test > 0)))


def chosen(pool: ArrayPool, model: Any, selection: Selection, seed: int) -> Iterator[int]:
    """One example after the other, each taken out of the pool."""
    rng = np.random.default_rng(seed)
    while len(pool):
        key = selection.choose(pool, model, rng).key
        yield key
        pool.discard(key)


def online(data: Data, task: Task, name: str, most: int, seed: int = 0) -> list[Point]:
    """LASVM, with one iteration for each example that is chosen."""
    model, y = streamsvm.LASVM(C=task.C, gamma=task.gamma, **AS_PRINTED), data.y
    begin, marks, points = first_of_each(y), marks_of(most), []
    pool = ArrayPool(data.X)
    start = time.process_time()
    for key in begin:
        model.learn_many(data.X[key : key + 1], y[key : key + 1])
        pool.discard(int(key))
    for n, key in enumerate(chosen(pool, model, CHOICES[name](y > 0), seed), start=len(begin) + 1):
        model.learn_many(data.X[key : key + 1], y[key : key + 1])
        if n in marks:
            finished, learned = copy.deepcopy(model), time.process_time()
            finished.finish()
            seconds = time.process_time() - start
            error = error_of(finished.decision_function_many(data.X_test), data)
            points.append(Point(n, error, finished.n_support, seconds))
            start += time.process_time() - learned  # the copy is for the figures
        if n >= most:
            return points
    return points


def retrained(data: Data, task: Task, searched: int | None, most: int, seed: int = 0) -> list[Point]:
    """An SVM that is trained after each label, from its solution before; it asks among `searched` examples, or all."""
    rng, marks, points = np.random.default_rng(seed), marks_of(most), []
    labelled = np.zeros(len(data.y), bool)
    labelled[first_of_each(data.y)] = True
    X = data.X.astype(np.float64)
    store = RowStore(X, RBF(gamma=task.gamma), cache_mb=512)
    start, alpha, spent = time.process_time(), None, 0.0
    while True:
        solution = smo.solve(store, data.y, task.C, held_out=~labelled, start=alpha)
        alpha, n = solution.dual_coef, int(labelled.sum())
        if n in marks:
            before = time.process_time()
            model = SVC(C=task.C, gamma=task.gamma).fit(X[labelled], data.y[labelled])
            error = error_of(model.decision_function(data.X_test), data)
            points.append(Point(n, error, len(solution.support), before - start - spent))
            spent += time.process_time() - before
        if n >= most:
            return points
        left = np.flatnonzero(~labelled)
        left = left if searched is None else rng.choice(left, min(searched, len(left)), replace=False)
        labelled[left[np.argmin(np.abs(solution.decision_values[left]))]] = True


def reference(data: Data, task: Task) -> Point:
    """The optimum on all examples."""
    start = time.process_time()
    model = LASVMClassifier(C=task.C, gamma=task.gamma, cache_mb=1000).fit(data.X, data.y)
    seconds = time.process_time() - start
    error = error_of(model.decision_function(data.X_test), data)
    return Point(len(data.y), error, model.model_.n_support, seconds)


Run = tuple[Curves, Point | None]  # the points of each way, and the SVM on all examples if it was trained


def means(runs: list[Run]) -> tuple[Curves, Point]:
    """Of several runs; what only the first has is as it is."""

    def mean(points: Iterable[Point]) -> Point:
        return Point(*np.mean(list(points), axis=0))

    curves = {
        name: [mean(points) for points in zip(*(own[name] for own, _ in runs if name in own), strict=True)]
        for name in runs[0][0]
    }
    return curves, mean(svm for _, svm in runs if svm)


# --------------------------------------------------------------------------------------------------------------- tables


def told(point: Point) -> str:
    """Its figures but the examples."""
    return f"{point.error:.2f}, {point.support:.0f}, {point.seconds:.1f}"


def show(title: str, runs: list[Run]) -> None:
    """Print error, support vectors and seconds where they were taken."""
    curves, svm = means(runs)
    marks = [point.examples for point in next(iter(curves.values()))]
    print(f"\n### {title}\n\nRuns: {len(runs)}; error %, support vectors, and CPU seconds after so many choices:\n")
    rows = [[name, *map(told, points)] + ["-"] * (len(marks) - len(points)) for name, points in curves.items()]
    print(table("|".join(["", *(f"{mark:.0f}" for mark in marks)]), rows))
    print(f"\n- SVM on all {svm.examples:.0f}: {told(svm)}", flush=True)
    for name, points in curves.items():
        good = next((p for p in points if p.error <= svm.error), None)
        if good:
            print(f"- {name} has the SVM's error after {good.examples:.0f}: {told(good)}")


def draw(path: Path, title: str, curves: Curves, svm: Point) -> None:
    """Error over examples, seconds and support vectors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axes, key in zip(figure.subplots(1, 3, sharey=True), ("examples", "seconds", "support"), strict=True):
        for name, points in curves.items():
            axes.plot([getattr(p, key) for p in points], [p.error for p in points], "o-", markersize=3, label=name)
        axes.axhline(svm.error, color="black", linestyle="--", linewidth=1, label="SVM, all examples")
        label = {"examples": "examples taken", "seconds": "CPU seconds", "support": "support vectors"}[key]
        axes.set(xlabel=label, xscale="log")
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("test error, %")
    figure.axes[0].legend(fontsize=7)
    figure.suptitle(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=65)


def run_part(arguments: argparse.Namespace, name: str, title: str, one: Callable[[int], Run]) -> None:
    """Make the runs of one set, print its table, and draw it."""
    runs = [one(seed) for seed in tqdm(range(arguments.runs), desc=name, leave=False)]
    show(title, runs)
    if arguments.plot:
        draw(arguments.plot / f"selection-{name}.png", title, *means(runs))


# ---------------------------------------------------------------------------------------------------------------- parts


def adult(arguments: argparse.Namespace) -> None:
    """Figures 11 and 12."""
    most, quick = MOST["adult"][arguments.size], arguments.size == "quick"

    def one(seed: int) -> Run:
        data = load(ADULT, arguments.data, seed)
        data = data._replace(X=data.X[:3000], y=data.y[:3000]) if quick else data
        names = ("RANDOM", "GRADIENT", "ACTIVE", "AUTOACTIVE")
        return {name: online(data, ADULT, name, most, seed) for name in names}, reference(data, ADULT)

    run_part(arguments, "adult", "a9a", one)


def digits(arguments: argparse.Namespace) -> None:
    """Figures 13 to 15."""
    for noise, C in ((0.0, DIGIT.C), (0.1, USPS_NOISE.C)):
        task = DIGIT._replace(n_train=DIGITS_OF[arguments.size], noise=noise, C=C)
        title = f"mnist, 8 against the rest, {task.n_train} examples" + (", 10 % of the labels wrong" if noise else "")
        run_part(
            arguments, "digits" + ("-noise" if noise else ""), title, lambda seed, t=task: of_digits(arguments, t, seed)
        )


def of_digits(arguments: argparse.Namespace, task: Task, seed: int) -> Run:
    """One run; the SVM is trained in the first one only, as this takes long."""
    data = load(task, arguments.data, seed)
    if arguments.size == "quick":
        data = data._replace(X_test=data.X_test[:2000], y_test=data.y_test[:2000])
    names, most = ("RANDOM", "GRADIENT", "ACTIVE"), MOST["digits"][arguments.size]
    return {name: online(data, task, name, most, seed) for name in names}, None if seed else reference(data, task)


def retraining(arguments: argparse.Namespace) -> None:
    """Figure 16."""
    for task in (USPS,) if arguments.size == "quick" else (USPS, REUTERS):
        name = f"labels-{task.stored or task.name}"
        run_part(arguments, name, f"{task.name}, labels", lambda seed, t=task: of_labels(arguments, t, seed))
    listed = ", ".join(f"{name} {seconds:g} s" for name, seconds in RETRAINING.items())
    print(f"\nThe source, 500 labels of reuters: {listed}")


def of_labels(arguments: argparse.Namespace, task: Task, seed: int) -> Run:
    """One run; LASVM searches everything in the first one only, as this takes long."""
    data, most = load(task, arguments.data, seed), MOST["retraining"][arguments.size]
    curves = {
        "retrained, all": retrained(data, task, None, most, seed),
        "retrained, 50": retrained(data, task, POOL, most, seed),
        "LASVM, 50": online(data, task, "ACTIVE", most, seed),
        "random": online(data, task, "RANDOM", most, seed),
    }
    if seed == 0:
        curves["LASVM, all"] = online(data, task, "ACTIVE, all", most, seed)
    return curves, reference(data, task)


PARTS = {"adult": adult, "digits": digits, "retraining": retraining}


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML, which has no reuters")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_const", const="quick", dest="size", help="the first hundreds of examples"
    )
    size.add_argument("--full", action="store_const", const="full", dest="size", help="all examples are taken: hours")
    parser.add_argument("--runs", type=int, default=1, help="to average over")
    parser.add_argument("--plot", type=Path, help="folder for pictures; default: none are drawn")
    parser.set_defaults(size="default")
    arguments = parser.parse_args()
    streamsvm.warmup(streamsvm.LASVM)
    with threadpool_limits(1):
        for part in arguments.parts:
            PARTS[part](arguments)


if __name__ == "__main__":
    main()
