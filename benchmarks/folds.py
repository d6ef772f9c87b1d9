"""Folds on ordinary tables beside scikit-learn on one thread: ten folds, leave-one-out, and a grid.

    python benchmarks/folds.py --data DIR               # sixteen sets; without --data, those that OpenML has
    python benchmarks/folds.py --data DIR --quick       # the small ones, without the grid

For each set of `ORDINARY_TASKS` in datasets.py, with the first rows of its training part:

    ten folds      4000 rows; `SVC` trained anew for each fold
    leave-one-out  1000 rows; `SVC` trained anew without some of the examples, evenly spread, and multiplied ("~")
    grid           2000 rows, 5 values of C x 5 of gamma around the task's, 3 folds; `GridSearchCV`

Each set is measured in a process of its own with one thread, after compiled code was loaded.  Seconds are CPU seconds,
the least of some runs.  On sparse data SVC gets the faster of the dense and the sparse form.

"differ": predictions that are not scikit-learn's among those with |f| > 0.01; in the grid, the number of cells with
another accuracy, and by how many predictions at most.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasets import ORDINARY_TASKS, load
from seeding.measuring import differences, splits_of, thinned
from seeding.methods import Outcome, Setting, refitted, seeded, setting_of
from shared.clock import timed
from shared.elsewhere import elsewhere
from shared.tables import table
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import streamsvm
from streamsvm import LASVM
from streamsvm.validation import folds, grid_search

QUICK = ("banana", "segment", "abalone")
JOBS = ("10", "loo", "grid")
ROWS = {"10": 4000, "loo": 1000, "grid": 2000}
FACTORS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)  # on the task's C and gamma
GRID_FOLDS, REFITS = 3, 40
REPEATS, ENOUGH = 3, 2.0  # runs at most, and seconds after which one is enough
AIMS = {"10": (7.0, 5.0), "loo": (50.0, 50.0), "grid": (15.0, 15.0)}  # in the geometric mean, and on every set


def fastest(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the least CPU seconds of some runs."""
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < ENOUGH:
        outcome, cpu, _ = timed(work)
        seconds.append(cpu)
    return outcome, min(seconds)


def of_folds(setting: Setting, kind: str) -> dict[str, Any]:
    """Ten folds or leave-one-out."""
    splits = splits_of(kind, setting.y)
    assert splits is not None
    some = thinned(splits, REFITS) if kind == "loo" else splits
    (ours, cpu), (theirs, theirs_cpu) = (
        fastest(lambda: seeded("auto")(setting, splits)),
        fastest(lambda: refitted(setting, some)),
    )
    found = {"ours": cpu, "theirs": theirs_cpu * len(splits) / len(some), "note": ours.note}
    return found | _equality(ours, theirs)


def _equality(ours: Outcome, theirs: Outcome) -> dict[str, Any]:
    assert theirs.f is not None
    found = differences(ours, theirs.f)
    return {"differ": f"{found['differ']} of {found['of']}", "max_df": found["max_df"], "steps": ours.iterations}


def of_grid(setting: Setting) -> dict[str, Any]:
    """A grid of C and gamma."""
    task, X, y = setting.task, setting.X, setting.y
    splits = folds.stratified(y, GRID_FOLDS)
    Cs, gammas = [task.C * f for f in FACTORS], [task.gamma * f for f in FACTORS]
    search, cpu = fastest(lambda: grid_search(LASVM(), X, y, Cs=Cs, gammas=gammas, folds=splits, refit=True))
    theirs, theirs_cpu = fastest(
        lambda: GridSearchCV(SVC(), {"C": Cs, "gamma": gammas}, cv=list(splits)).fit(setting.X_svc, y)
    )
    sizes = np.array([len(test) for test in splits.tests])
    shares = np.array([theirs.cv_results_[f"split{i}_test_score"] for i in range(GRID_FOLDS)]).T
    right = [int(np.rint(row @ sizes)) for row in shares]
    cells = {(cell.C, cell.gamma): int(np.rint(cell.result.scores() @ sizes)) for cell in search.table}
    apart = [
        abs(cells[one["C"], one["gamma"]] - count)
        for one, count in zip(theirs.cv_results_["params"], right, strict=True)
    ]
    best = f"{max(cells.values())} / {max(right)}"
    differ = f"{sum(count > 0 for count in apart)} cells by {max(apart)}"
    return {"ours": cpu, "theirs": theirs_cpu, "note": best, "differ": differ, "steps": search.iterations}


def measured(name: str, jobs: list[str], folder: Path | None) -> dict[str, Any]:
    """The figures of one set."""
    task = ORDINARY_TASKS[name]
    data = load(task, folder)
    streamsvm.warmup()
    found: dict[str, Any] = {"set": name}
    for job in jobs:
        setting = setting_of(task, data.X[: ROWS[job]].astype(np.float64), data.y[: ROWS[job]])
        found[job] = of_grid(setting) if job == "grid" else of_folds(setting, job)
    return found


def show(job: str, every: list[dict[str, Any]]) -> None:
    """The table of a job, with the geometric mean and the worst set below it."""
    print(f"\n### {'leave-one-out' if job == 'loo' else job + ' folds' if job == '10' else job}\n")
    rows, ratios = [], {}
    for one in every:
        f, mark = one[job], "~" if job == "loo" else ""
        ratios[one["set"]] = ratio = f["theirs"] / f["ours"]
        figures = [f"{f['ours']:.3f}", f"{mark}{f['theirs']:.3f}", f"{ratio:.1f}"]
        rows.append([one["set"], *figures, f"{f['steps']}", f["differ"], f["note"]])
    print(table("set|ours s|scikit-learn s|times|steps|differ|note", rows))
    worst = min(ratios, key=lambda name: ratios[name])
    mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
    print(f"\n{mean:.1f} times in the geometric mean (aim: {AIMS[job][0]:g}), ", end="")
    print(f"{ratios[worst]:.1f} on {worst}, the worst set (aim: {AIMS[job][1]:g})", flush=True)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML, which has most of the sets")
    parser.add_argument("--sets", nargs="+", default=list(ORDINARY_TASKS), choices=list(ORDINARY_TASKS))
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=JOBS)
    parser.add_argument("--quick", action="store_true", help="the small sets, without the grid")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.sets, options.jobs = list(QUICK), ["10", "loo"]
    if options.here:
        print(json.dumps(measured(options.sets[0], options.jobs, options.data)))
    else:
        words = ["--jobs", *options.jobs, "--here", "--sets"]
        found = [elsewhere(__file__, *words, name, data=options.data) for name in options.sets]
        for job in options.jobs:
            show(job, [one for one in found if one])


if __name__ == "__main__":
    main()
