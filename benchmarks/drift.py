"""How learners follow a stream that changes: the error along it, as pictures for the guide to drift.

    python benchmarks/drift.py --data DIR --plot docs    # both streams, and docs/drift-STREAM.svg; needs matplotlib
    python benchmarks/drift.py --quick                   # the short beginning of a stream that needs no data

Each learner predicts a record and then learns it.  The error at a point is that of the predictions since the point
before.  A line of the table has the error over the whole stream in percent, and CPU microseconds a record.

elec2      45,312 records of the electricity market of New South Wales, in the order of time, as they come: unscaled
abrupt     8000 records of two features; one label in ten is wrong, and the concept turns into its opposite half-way
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from defaults import Stream, of_folder
from river import linear_model, preprocessing
from shared.tables import table
from tqdm import tqdm

from streamsvm import LASVM, LASVMNC, AutoLASVM, WarmupScaler

QUICK = 1000
POINTS = 40  # of a curve

Learners = dict[str, Callable[[], Any]]

STREAMS: dict[str, Learners] = {
    "elec2": {
        "LASVM(window=500) behind a frozen scale": lambda: WarmupScaler() | LASVM(window=500, scaling=None),
        "LASVM()": LASVM,
        "LASVM(window=500)": lambda: LASVM(window=500),
        "AutoLASVM()": AutoLASVM,
        "logistic regression": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    },
    "abrupt": {
        "LASVMNC()": LASVMNC,
        "LASVM()": LASVM,
        "LASVM(window=1000)": lambda: LASVM(window=1000),
        "LASVM(budget=300)": lambda: LASVM(budget=300),
        "AutoLASVM()": AutoLASVM,
    },
}


def abrupt(n: int = 8000) -> Stream:
    """Opposite quarters of a plane against the others, and the reverse from the middle on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.1)
    return Stream(X, y ^ (np.arange(n) >= n // 2), drifts=True)


def errors(model: Any, stream: Stream) -> tuple[np.ndarray, float]:
    """Whether each prediction was wrong, and CPU microseconds a record."""
    wrong, begin = np.empty(len(stream.y), bool), time.process_time()
    for i, (row, y) in enumerate(zip(stream.X.tolist(), stream.y.tolist(), strict=True)):
        x = dict(enumerate(row))
        wrong[i] = bool(model.predict_one(x)) != y
        model.learn_one(x, y)
    return wrong, 1e6 * (time.process_time() - begin) / len(wrong)


def draw(path: Path, curves: dict[str, np.ndarray]) -> None:
    """The error of each learner, over the records."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": path.stem})
    figure = Figure(figsize=(7.5, 3.4), layout="constrained")
    axes = figure.add_subplot()
    for name, wrong in curves.items():
        parts = np.array_split(wrong, POINTS)
        ends = np.cumsum([len(part) for part in parts])
        axes.plot(ends, [100 * part.mean() for part in parts], label=name, linewidth=1.3)
    axes.set(xlabel="records", ylabel="% wrong", ylim=(0, None))
    figure.legend(loc="outside upper center", ncols=2, fontsize="small", frameon=False)
    figure.savefig(path, metadata={"Date": None})


def run(name: str, stream: Stream, folder: Path | None) -> None:
    """Let all learners of a stream learn it: print their errors, and draw them."""
    curves, costs = {}, {}
    for learner, make in tqdm(STREAMS[name].items(), leave=False):
        curves[learner], costs[learner] = errors(make(), stream)
    ranked = sorted(curves, key=lambda learner: curves[learner].mean())
    rows = [[learner, f"{100 * curves[learner].mean():.2f}", f"{costs[learner]:.0f}"] for learner in ranked]
    print(f"\n## {name}\n\n" + table("learner|% wrong|us a record", rows), flush=True)
    if folder:
        draw(folder / f"drift-{name}.svg", curves)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with elec2/elec2.npz; default: only the other stream")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="folder for the pictures")
    parser.add_argument("--quick", action="store_true", help="the beginning of a stream")
    arguments = parser.parse_args()
    if arguments.quick:
        run("abrupt", abrupt(QUICK), arguments.plot)
        return
    run("abrupt", abrupt(), arguments.plot)
    if arguments.data:
        run("elec2", of_folder(arguments.data, "elec2", (1,), 0, in_order=True), arguments.plot)


if __name__ == "__main__":
    main()
