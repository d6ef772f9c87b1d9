"""The gap family on its way: Figures 1, 2, 4, 6 and 7 and Table 1 of its source.

    python benchmarks/traces.py --data DIR --plot DIR    # tables, and a picture of the curves; needs matplotlib
    python benchmarks/traces.py --data DIR --tasks a9a   # one set
    python benchmarks/traces.py --data DIR --quick       # usps with wrong labels

Each learner makes one pass over a set, in one shuffle.  At twenty points of it these are noted: PRBEP and error of the
test part, support vectors, kernel values, and the primal-dual gap for each example so far.  LASVM, with one REPROCESS
after each example, is finished at the end.

Table 1 counts, for a9a, where examples lay when they came: left of the ramp (y f < -1) and right of it (y f > 1), and
how many of them are no support vectors at the end.  Source: Ertekin, Bottou, Giles, "Ignorance is Bliss: Non-Convex
Online Support Vector Machines".
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from datasets import GAP_TASKS, Data, Task, load
from gap.fits import CACHE_MB, FAMILY, scores
from lasvm import AS_PRINTED
from papers.printed import ADMITTED
from shared.elsewhere import needed
from shared.tables import table
from tqdm import tqdm

import streamsvm
from streamsvm.estimators.learner.learning import learn_batch

POINTS = 20
LEARNERS = ("LASVM", *FAMILY)
SHOWN = (0.25, 0.5, 1.0)  # of the pass: what the table has
TASKS = ("banana", "usps", "usps+N", "reuters", "a9a")
QUICK = ("usps+N",)
COLORS = dict(zip(LEARNERS, ("#8c8c8c", "#8172b3", "#4c72b0", "#c44e52", "#dd8452"), strict=True))
CURVES = {
    "PRBEP": "PRBEP, %",
    "support": "support vectors",
    "K values M": "kernel values, millions",
    "error": "error, %",
}

Trace = list[dict[str, float]]


def new_model(task: Task, learner: str) -> Any:
    """A learner with the task's hyper-parameters."""
    if learner == "LASVM":
        return streamsvm.LASVM(C=task.C, gamma=task.gamma, cache_mb=CACHE_MB, **AS_PRINTED)
    return FAMILY[learner](C=task.C, gamma=task.gamma, cache_mb=CACHE_MB)


def noted(model: Any, data: Data, n: int) -> dict[str, float]:
    """The figures after n examples."""
    figures = scores(model.decision_function_many(data.X_test), data.y_test > 0)
    return {
        "examples": n,
        "PRBEP": figures["PRBEP"],
        "error": 100 - figures["accuracy"],
        "support": model.n_support,
        "gap": getattr(model, "gap", float("nan")) / n,
    }


def traced(data: Data, task: Task, learner: str) -> dict:
    """One pass with its trace; and where examples lay when they came."""
    model, trace, margins = new_model(task, learner), [], []
    predicted = 0  # kernel values of the test figures do not count
    for begin, end in itertools.pairwise(np.linspace(0, len(data.y), POINTS + 1).astype(int)):
        margins.append(learn_batch(model._state, data.X[begin:end], data.y[begin:end], None, None) * data.y[begin:end])
        evaluations = model.kernel_evaluations - predicted
        trace.append(noted(model, data, int(end)) | {"K values M": evaluations / 1e6})
        predicted = model.kernel_evaluations - evaluations
    if learner == "LASVM":
        model.finish()
        trace.append(noted(model, data, len(data.y)) | {"K values M": (model.kernel_evaluations - predicted) / 1e6})
    return {"trace": trace, **sides(np.concatenate(margins), model.support_ids), "support": model.n_support}


def sides(margins: np.ndarray, support: np.ndarray) -> dict[str, int]:
    """How many examples lay left and right of the ramp, and how many of these are no support vectors."""
    out = ~np.isin(np.arange(len(margins)), support)
    left, right = margins < -1, margins > 1
    return {
        "admitted left": int(left.sum()),
        "admitted right": int(right.sum()),
        "cleaned left": int((left & out).sum()),
        "cleaned right": int((right & out).sum()),
    }


def show(task: str, found: dict[str, dict]) -> None:
    """Print the table of one set."""
    print(f"\n### {task}\n")
    print("PRBEP %, error %, support vectors, millions of kernel values, and the gap for each example:\n")
    rows = []
    for learner, run in found.items():
        cells = []
        for share in SHOWN:
            point = run["trace"][round(share * POINTS) - 1]
            gap = "" if learner == "LASVM" else f", {point['gap']:.2g}"
            figures = f"{point['PRBEP']:.1f}, {point['error']:.2f}, {point['support']}, {point['K values M']:.1f}"
            cells.append(figures + gap)
        last = run["trace"][-1]
        cells.append(f"{last['PRBEP']:.1f}, {last['error']:.2f}, {last['support']}" if learner == "LASVM" else "-")
        rows.append([learner, *cells])
    print(table("|" + "|".join(f"{share:.0%} of the pass" for share in SHOWN) + "|finished", rows), flush=True)


def show_sides(found: dict[str, dict]) -> None:
    """Print Table 1."""
    print("\n### Table 1\n")
    print("a9a: where examples lay when they came, and which of them are no support vectors at the end:\n")
    keys = ("admitted left", "admitted right", "cleaned left", "cleaned right", "support")
    theirs = ADMITTED["G"]
    rows = [
        [learner, *(f"{found[learner][key]}" + (f" / {theirs[key]}" if learner == "G" else "") for key in keys)]
        for learner in ("FULL", "G")
    ]
    print(table("|came left|came right|left, no support vector|right, no support vector|support vectors", rows))


def draw(found: dict[str, dict[str, dict]], path: Path) -> None:
    """A row for each set, a column for each figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(CURVES), 2.3 * len(found)), layout="constrained")
    grid = figure.subplots(len(found), len(CURVES), squeeze=False)
    for row, (task, runs) in zip(grid, found.items(), strict=True):
        for axes, (key, label) in zip(row, CURVES.items(), strict=True):
            for learner, run in runs.items():
                points = run["trace"]
                x, y = [point["examples"] for point in points], [point[key] for point in points]
                axes.plot(x, y, color=COLORS[learner], linewidth=1.2, label=learner)
            axes.set(ylabel=label, yscale="log" if key in ("error", "K values M") else "linear")
            axes.tick_params(labelsize=7)
            axes.grid(alpha=0.3)
        row[0].set_title(task, loc="left", fontsize=9)
    grid[0, 0].legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=65)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--tasks", nargs="+", choices=list(GAP_TASKS), default=list(TASKS))
    parser.add_argument("--quick", action="store_true", help=" and ".join(QUICK))
    parser.add_argument("--plot", type=Path, help="folder for the picture; default: none is drawn")
    parser.add_argument("--job", nargs=2, metavar=("TASK", "LEARNER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        task = GAP_TASKS[arguments.job[0]]
        print(json.dumps(traced(load(task, arguments.data), task, arguments.job[1])))
        return
    found: dict[str, dict[str, dict]] = {}
    for task in tqdm(QUICK if arguments.quick else arguments.tasks):
        jobs = {learner: ("--job", task, learner) for learner in LEARNERS}
        found[task] = {learner: needed(__file__, *job, data=arguments.data) for learner, job in jobs.items()}
        show(task, found[task])
        if task == "a9a":
            show_sides(found[task])
    if arguments.plot:
        draw(found, arguments.plot / "traces.png")


if __name__ == "__main__":
    main()
