"""Rows per second of `decision_function`, beside scikit-learn's SVC and its Intel extension, on one core and on two.

    python benchmarks/predict.py                # tables drawn at random, dense and sparse
    python benchmarks/predict.py --data DIR     # and w8a and a9a
    python benchmarks/predict.py --quick        # the small ones
    python benchmarks/predict.py --shapes 100x5000 w8a --engines streamsvm

A shape is COLUMNSxROWS, with an s behind it for compressed rows.  All engines train on the same rows, of random labels
and a small C, so that every row becomes a support vector.  Dense tables are float32, the faster form of all three; the
Intel extension gets float32 everywhere.

Each engine runs in a process of its own, which may use one core or two (where there are two).  On one core seconds are
CPU seconds, on two they are those of the clock: nothing else should run then.  The fastest of several calls counts.
"""

import argparse
import json
import os
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from datasets import ORDINARY_TASKS, load
from shared.elsewhere import elsewhere
from shared.tables import table as markdown
from tqdm import tqdm

DENSE = [f"{d}x{n}" for d in (2, 20, 100, 784) for n in (50, 5000)] + ["20x10000", "100x10000"]
SPARSE = ["1000x5000s", "20000x5000s"]
REAL = ["w8a", "a9a"]
QUICK = ["20x50", "20x1000", "1000x1000s"]
ENGINES = ("streamsvm", "SVC", "intelex")
NON_ZERO = 20  # features of a compressed row
REPEATS, SECONDS = 3, 0.6  # calls at least, and their time together
VALUES = 4e8  # numbers multiplied in one call, about


def table(shape: str, rows: int, seed: int) -> Any:
    """Rows of this shape, drawn at random."""
    rng, d = np.random.default_rng(seed), int(shape.split("x")[0])
    if not shape.endswith("s"):
        return rng.normal(size=(rows, d)).astype(np.float32)
    columns = np.sort(rng.integers(0, d, size=(rows, NON_ZERO)), axis=1)
    values = rng.random(columns.size).astype(np.float32) + np.float32(0.5)
    X = sp.csr_matrix((values, columns.ravel(), np.arange(0, columns.size + 1, NON_ZERO)), shape=(rows, d))
    X.sum_duplicates()
    return X


def problem(shape: str, folder: Path | None) -> tuple[Any, np.ndarray, Any, dict[str, float]]:
    """The training part, its labels, the rows to predict, and C and gamma."""
    if shape in REAL:
        task = ORDINARY_TASKS[shape]
        data = load(task, folder)
        return data.X, data.y, data.X_test, {"C": task.C, "gamma": task.gamma}
    d, n = (int(number) for number in shape.rstrip("s").split("x"))
    X, width = table(shape, n, 0), NON_ZERO if shape.endswith("s") else d
    rows = int(np.clip(VALUES / (n * (width + 20)), 1000, 50_000))
    y = np.random.default_rng(1).permutation(np.arange(n) % 2)
    return X, y, table(shape, rows, 2), {"C": 1e-3, "gamma": 0.5 / width}


def classifier(engine: str, parameters: dict[str, float]) -> Any:
    """An engine's classifier."""
    if engine == "streamsvm":
        from streamsvm.sklearn_api import LASVMClassifier

        return LASVMClassifier(**parameters)
    if engine == "SVC":
        from sklearn.svm import SVC

        return SVC(**parameters)
    from sklearnex.svm import SVC

    return SVC(**parameters)


def measured(shape: str, engine: str, cores: int, folder: Path | None, store: Path) -> dict[str, float]:
    """Rows per second, support vectors, and the first decision value."""
    X, y, queries, parameters = problem(shape, folder)
    if engine == "intelex":
        X, queries = X.astype(np.float32), queries.astype(np.float32)
    kept = store / f"{engine}-{shape}"
    if kept.exists():
        model = pickle.loads(kept.read_bytes())  # noqa: S301 - written below
    else:
        model = classifier(engine, parameters).fit(X, y)
        kept.write_bytes(pickle.dumps(model))
    clock = time.process_time if cores == 1 else time.perf_counter
    f, seconds = model.decision_function(queries), []
    while len(seconds) < REPEATS or sum(seconds) < SECONDS:
        begin = clock()
        model.decision_function(queries)
        seconds.append(clock() - begin)
    return {"rate": queries.shape[0] / min(seconds), "support": len(model.support_), "f": float(f[0])}


def compare(shapes: list[str], engines: list[str], cores: list[int], folder: Path | None) -> None:
    """Print a row for each shape and number of cores, and how many times faster ours is."""
    names = [engine for engine in engines if engine != "streamsvm"]
    every: dict[tuple[str, int], list[float]] = {}
    rows = []
    with tempfile.TemporaryDirectory() as store:
        for shape, count in tqdm([(shape, count) for shape in shapes for count in cores], leave=False):
            jobs = {engine: ("--only", shape, engine, count, store) for engine in engines}
            found = {e: elsewhere(__file__, *job, data=folder, threads=count) for e, job in jobs.items()}
            ours = found.get("streamsvm")
            if ours is None:
                continue
            rows.append([shape, f"{count}", f"{ours['support']:.0f}", f"{ours['rate']:,.0f}"])
            for name in names:
                theirs = found[name]
                if theirs is None:
                    rows[-1] += ["-", "-", "-"]
                    continue
                ratio = ours["rate"] / theirs["rate"]
                every.setdefault((name, count), []).append(ratio)
                rows[-1] += [f"{theirs['rate']:,.0f}", f"{ratio:.2f}", f"{abs(ours['f'] - theirs['f']):.0e}"]
    titles = ["columns x rows", "cores", "support vectors", "ours, rows/s"]
    print(markdown("|".join(titles + [f"{name}|times|f differs by" for name in names]), rows) + "\n")
    for (name, count), ratios in every.items():
        mean, on = np.exp(np.mean(np.log(ratios))), f"{count} {'core' if count == 1 else 'cores'}"
        print(f"- {on}: {mean:.2f} times as fast as {name} in the geometric mean, {min(ratios):.2f} times at least.")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files, for w8a and a9a")
    parser.add_argument("--shapes", nargs="+", help=f"such as {DENSE[0]}, {SPARSE[0]} or {REAL[0]}; default: all")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--cores", nargs="+", type=int, help="default: 1, and 2 if there are so many; with --quick, 1")
    parser.add_argument("--quick", action="store_true", help="small tables only, on one core")
    parser.add_argument("--only", nargs=4, metavar=("SHAPE", "ENGINE", "CORES", "STORE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))
    if arguments.only:
        shape, engine, cores, store = arguments.only
        os.sched_setaffinity(0, allowed[: int(cores)])
        print(json.dumps(measured(shape, engine, int(cores), arguments.data, Path(store))))
        return
    shapes = DENSE + SPARSE + (REAL if arguments.data else [])
    cores = arguments.cores or ([1] if arguments.quick else [1, 2][: len(allowed)])
    compare(arguments.shapes or (QUICK if arguments.quick else shapes), arguments.engines, cores, arguments.data)


if __name__ == "__main__":
    main()
