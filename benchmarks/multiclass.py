"""Several classes: one pass and a fit to the optimum, beside SVC and intelex on one thread.

    python benchmarks/multiclass.py --data DIR            # seven sets, river's track, and grids
    python benchmarks/multiclass.py --data DIR --quick    # the small ones

The first table is river's ImageSegments track: each example is predicted, then learned.  In the second one, every fit
runs in a process of its own with one thread, so that seconds are CPU seconds of that fit alone.  "pass" learns the
training part once as a stream; "fit" is `LASVMClassifier.fit`.  A fit that takes less than a second is repeated, and
the fastest counts.  "predict" is for the test part.  "Errors and sizes" has
the test error in percent, millions of kernel values, members, and support vectors.  Below are the times in shares of
SVC's.  At the end is the time of
a (C, gamma) grid over up to seven classes, in shares of the mean time of the same grid for one class against the rest.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import Data, prepared
from ordinary import ENOUGH, REPEATS, Engines, Trained, trained_fit, trained_intelex, trained_svc
from shared.elsewhere import elsewhere
from shared.tables import shown, table
from tqdm import tqdm


class Task(NamedTuple):
    """A set with several classes; C and gamma are ours, and plain."""

    name: str
    C: float
    gamma: float
    prepare: str  # "as is", "standard", "pixels" (/ 255), "sixteenths" (/ 16) or "unit rows"
    n_train: int | None  # split by permutation, or so many of the published training part; None: the published split
    openml: str | None  # data set name on OpenML; None: it comes with scikit-learn


TASKS = {
    task.name: task
    for task in (
        Task("digits", 10.0, 0.05, "sixteenths", 1200, None),
        Task("segment", 10.0, 0.1, "standard", 1540, "segment"),
        Task("satimage", 10.0, 0.05, "standard", None, "satimage"),
        Task("usps", 10.0, 2.0, "unit rows", None, "USPS"),
        Task("letter", 10.0, 0.1, "standard", 13000, "letter"),
        Task("krkopt", 10.0, 0.5, "standard", 9000, "kropt"),
        Task("mnist", 10.0, 0.02, "pixels", 10000, "mnist_784"),
    )
}
QUICK = ("digits", "segment")
GRIDS = ("segment", "satimage", "digits")
MOST_CLASSES = 7  # of a grid
CS, FACTORS = (0.1, 1.0, 10.0, 100.0), (0.25, 1.0, 4.0)  # of a grid: C, and gamma in terms of the task's


def load(task: Task, folder: Path | None) -> Data:
    """The data of a task; y as the set has it."""
    X_test = y_test = None
    if task.openml is None:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
    elif folder:
        z = np.load(folder / task.name / f"{task.name}.npz", allow_pickle=False)
        X, y = z["X"], z["y"]
        if "X_test" in z.files:
            X_test, y_test = z["X_test"].astype(np.float32), z["y_test"]
    else:
        from sklearn.datasets import fetch_openml

        bunch = fetch_openml(task.openml, version=1, as_frame=False, parser="liac-arff")
        X, y = bunch.data, bunch.target
    X, order = X.astype(np.float32), np.random.default_rng(0).permutation(len(X))
    train = order[: task.n_train or (len(X) if X_test is not None else int(0.8 * len(X)))]
    if X_test is None:
        test = order[len(train) :][:5000]
        X_test, y_test = X[test], y[test]
    X, y = X[train], y[train]
    if task.prepare == "sixteenths":
        return Data(X / 16, y, X_test / 16, y_test)
    X, X_test = prepared(X, X_test, task.prepare)
    return Data(X, y, X_test, y_test)


def trained_pass(several: str, data: Data, task: Task) -> Trained:
    """One pass of `OneVsOne` or `OneVsRest`, and `finish`."""
    import streamsvm

    model = getattr(streamsvm, several)(streamsvm.LASVM(C=task.C, gamma=task.gamma))
    model.learn_many(data.X, data.y)
    model.finish()
    return Trained(model.predict_many, model.n_members, model.n_support, model.kernel_evaluations)


ENGINES: dict[str, Callable[[Data, Task], Trained]] = {
    "pass, one-vs-one": lambda data, task: trained_pass("OneVsOne", data, task),
    "pass, one-vs-rest": lambda data, task: trained_pass("OneVsRest", data, task),
    "fit": trained_fit,
    "SVC": trained_svc,
    "intelex": trained_intelex,
}


def measured(task: Task, engine: str, folder: Path | None) -> dict[str, float]:
    """The figures of one engine on one set; compiled code is loaded before the clock starts."""
    data, train = load(task, folder), ENGINES[engine]
    first = np.sort(np.unique(data.y, return_index=True)[1])
    few = np.unique(np.concatenate([first, np.arange(200)]))
    train(data._replace(X=data.X[few], y=data.y[few]), task)
    seconds: list[float] = []
    while len(seconds) < REPEATS and (not seconds or seconds[-1] < ENOUGH):
        start = time.process_time()
        model = train(data, task)
        seconds.append(time.process_time() - start)
    model.predict(data.X_test[:300])
    start = time.process_time()
    said = np.asarray(model.predict(data.X_test))
    return {
        "seconds": min(seconds),
        "predict": time.process_time() - start,
        "error": 100.0 * float(np.mean(said != data.y_test)),
        "kernel values": model.kernel_values / 1e6,
        "members": model.members,
        "support": model.support,
        "rows": len(data.y),
        "classes": len(first),
    }


def grid_seconds(model: Any, X: np.ndarray, y: np.ndarray, gamma: float) -> float:
    """CPU time of a grid with three folds, the fastest of some."""
    from streamsvm.validation import grid_search

    seconds: list[float] = []
    for _ in range(REPEATS):
        start = time.process_time()
        grid_search(model, X, y, Cs=CS, gammas=[gamma * factor for factor in FACTORS], refit=False, n_jobs=1)
        seconds.append(time.process_time() - start)
    return min(seconds)


def measured_grids(task: Task, folder: Path | None) -> dict[str, float]:
    """The time of a grid over several classes, and the mean time of one for a class against the rest."""
    from streamsvm import LASVM, OneVsOne

    data = load(task, folder)
    classes = np.unique(data.y)[:MOST_CLASSES]
    X, y = data.X[np.isin(data.y, classes)], data.y[np.isin(data.y, classes)]
    several = grid_seconds(OneVsOne(LASVM()), X, y, task.gamma)
    two = [grid_seconds(LASVM(), X, y == label, task.gamma) for label in classes]
    return {"classes": len(classes), "rows": len(y), "several": several, "two": float(np.mean(two))}


def grids(names: list[str], folder: Path | None) -> None:
    """Print what a grid over several classes costs, beside one over two."""
    rows = []
    for name in tqdm(names, leave=False):
        f = elsewhere(__file__, "--only", name, "grid", data=folder)
        if f:
            cells = [f"{f['several']:.3f}", f"{f['two']:.3f}", f"{f['several'] / f['two']:.2f}"]
            rows.append([name, f"{f['rows']:.0f}", f"{f['classes']:.0f}", *cells])
    print("\n## Grids\n\n" + table("grid|rows|classes|several classes, s|two classes, s|ratio", rows), flush=True)


def compare(names: list[str], folder: Path | None) -> None:
    """Print the tables of seconds, of errors, and of the shares of SVC's time."""
    every: dict[str, Engines] = {}
    for name in tqdm(names, leave=False):
        of_set = {engine: elsewhere(__file__, "--only", name, engine, data=folder) for engine in ENGINES}
        every[name] = {engine: figures for engine, figures in of_set.items() if figures}
    print("\n## CPU seconds\n")
    rows = [_seconds(name, of_set) for name, of_set in every.items()]
    print(table("|".join(["set: rows, classes", *ENGINES, "predict: fit, SVC"]), rows))
    print("\n## Errors and sizes\n")
    print(table("|".join(["set", *ENGINES]), [_sizes(name, of_set) for name, of_set in every.items()]))
    print("\n## Shares of SVC's time\n")
    rows = [[engine, *(_share(of_set, engine) for of_set in every.values())] for engine in list(ENGINES)[:3]]
    print(table("|".join(["", *every]), rows), flush=True)


def _seconds(name: str, of_set: Engines) -> list[str]:
    f = next(iter(of_set.values()))
    seconds = [shown(of_set.get(engine, {}).get("seconds"), "{:.3f}") for engine in ENGINES]
    predict = ", ".join(shown(of_set.get(engine, {}).get("predict"), "{:.3f}") for engine in ("fit", "SVC"))
    return [f"{name}: {f['rows']:.0f}, {f['classes']:.0f}", *seconds, predict]


def _sizes(name: str, of_set: Engines) -> list[str]:
    cells = []
    for engine in ENGINES:
        f = of_set.get(engine, {})
        values = f"; {f['kernel values']:.1f}; {f['members']:.0f}" if f.get("kernel values") else ""
        cells.append(shown(f.get("error"), "{:.2f}") + values + f"; {shown(f.get('support'))}")
    return [name, *cells]


def _share(of_set: Engines, engine: str) -> str:
    return f"{of_set[engine]['seconds'] / of_set['SVC']['seconds']:.2f}" if {engine, "SVC"} <= {*of_set} else "-"


def track() -> None:
    """River's ImageSegments track, as it is."""
    from river import datasets, evaluate, metrics

    from streamsvm import LASVM, OneVsOne, OneVsRest

    learners = {
        "OneVsOne": lambda: OneVsOne(LASVM()),
        "OneVsRest": lambda: OneVsRest(LASVM()),
        "OneVsRest, window=500": lambda: OneVsRest(LASVM(window=500)),
    }
    rows = []
    for name, make in learners.items():
        evaluate.progressive_val_score(datasets.ImageSegments().take(600), make(), metrics.Accuracy())
        model, start = make(), time.process_time()
        accuracy = evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy())
        seconds, values = time.process_time() - start, model.kernel_evaluations / 1e6
        sizes = [f"{values:.1f}", f"{model.n_members}", f"{model.n_support}"]
        rows.append([name, f"{seconds:.3f}", f"{100.0 * (1.0 - accuracy.get()):.2f}", *sizes])
    print("## ImageSegments\n")
    print(table("model|CPU s|error %|kernel values, M|members|support vectors", rows), flush=True)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--quick", action="store_true", help="the small sets only")
    parser.add_argument("--only", nargs=2, metavar=("SET", "ENGINE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        name, engine = arguments.only
        task, folder = TASKS[name], arguments.data
        print(json.dumps(measured_grids(task, folder) if engine == "grid" else measured(task, engine, folder)))
        return
    names = list(QUICK) if arguments.quick else arguments.tasks
    track()
    compare(names, arguments.data)
    grids([name for name in GRIDS if name in names], arguments.data)


if __name__ == "__main__":
    main()
