"""A grid of C and gamma beside scikit-learn's GridSearchCV, with every warm start along C.

    python benchmarks/search.py --data DIR --pictures DIR --out FILE.json   # without --data, from OpenML
    python benchmarks/search.py --data DIR --sets w8a-3000 --repeats 1
    python benchmarks/search.py --data DIR --quick                          # 1000 rows of ijcnn1 in one turn
    python benchmarks/search.py --report FILE.json                          # the tables of a run that was kept

Ten values of C (1 to 512, as in the thesis), five of gamma (1/32 to 8), three stratified folds, which all share; at the
end the best cell is trained on all examples.  The sets are those of `SEARCH_TASKS` of datasets.py, 3000 random rows.

Rows of a table:

    GridSearchCV   with SVC, which gets the faster of the dense and the sparse form of the data
    none           kernel rows shared by the folds and values of C, every training started from 0
    direct, ..     the other starts, see `streamsvm.validation.grid_search`; auto picks one; single and multiple are
                   the thesis' names of pairwise and averaged
    pairwise, avg  the full solution goes along C, and each fold starts from it by alpha seeding (avg, skip)
    pairwise > sir as the thesis has it: the first fold goes along C, each other one starts from the fold before it by
                   alpha seeding (reuse, sir, mir); none > sir: the first fold starts from 0 (seeding/along.py)
    .., n_jobs=2   in two worker processes, which were started beforehand

Each set is measured in a process of its own with one thread (`OMP_NUM_THREADS=1` and the like), after compiled code was
loaded by a small problem.  Methods take turns; the fastest run counts.  Seconds are CPU seconds of the process, those
of workers by the wall clock only.

"cells": how many cells have another accuracy than with GridSearchCV, and by how many predictions at most.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasets import SEARCH_TASKS, load
from seeding.along import Chained, chained
from seeding.methods import Setting, setting_of
from shared.clock import timed
from shared.elsewhere import needed
from shared.tables import say, shown, table
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from streamsvm import LASVM
from streamsvm.validation import Search, folds, grid_search

SETS, QUICK = ["ijcnn1-3000", "w8a-3000"], ["ijcnn1-1000"]
CS = [2.0**i for i in range(10)]
GAMMAS = [2.0**i for i in (-5, -3, -1, 1, 3)]
FOLDS, JOBS = 3, 2
WARM_STARTS = ("auto", "none", "direct", "scaled", "best", "pairwise", "averaged")
SEEDED = (("pairwise", "avg"), ("pairwise", "skip"))  # starts along C, and of the folds
CHAINED = (("none", "sir"), ("pairwise", "reuse"), ("pairwise", "sir"), ("pairwise", "mir"), ("averaged", "sir"))
REFERENCE, IN_PARALLEL = "GridSearchCV", f", n_jobs={JOBS}"
AIM = 6  # times as fast as GridSearchCV

Table = dict[tuple[float, float], np.ndarray]  # right predictions of each split, by C and gamma
Found = Table | Search | Chained


def refitted(setting: Setting, splits: folds.Folds, n_jobs: int = 1) -> Table:
    """By GridSearchCV."""
    search = GridSearchCV(SVC(), {"C": CS, "gamma": GAMMAS}, cv=list(splits), n_jobs=n_jobs)
    found = search.fit(setting.X_svc, setting.y).cv_results_
    shares = np.array([found[f"split{i}_test_score"] for i in range(len(splits))]).T
    right = np.rint(shares * [len(test) for test in splits.tests]).astype(int)
    return {(cell["C"], cell["gamma"]): counts for cell, counts in zip(found["params"], right, strict=True)}


def searched(setting: Setting, splits: folds.Folds, warm_start: str = "auto", **options: Any) -> Search:
    """By this project."""
    parameters = {"Cs": CS, "gammas": GAMMAS, "folds": splits, "warm_start": warm_start, "n_jobs": 1} | options
    return grid_search(LASVM(), setting.X, setting.y, **parameters)


def table_of(search: Search) -> Table:
    """The right predictions of each cell."""
    sizes = [len(test) for test in search.table[0].result.folds.tests]
    return {(cell.C, cell.gamma): np.rint(cell.result.scores() * sizes).astype(int) for cell in search.table}


# --------------------------------------------------------------------------------------------------------- measurement


def methods_of(setting: Setting, splits: folds.Folds) -> dict[str, Callable[[], Found]]:
    """What is measured."""
    methods: dict[str, Callable[[], Found]] = {REFERENCE: lambda: refitted(setting, splits)}
    methods |= {warm: lambda warm=warm: searched(setting, splits, warm) for warm in WARM_STARTS}
    methods |= {
        f"{warm}, {start}": lambda w=warm, s=start: searched(setting, splits, w, seeding=s) for warm, start in SEEDED
    }
    for warm, start in CHAINED:
        methods[f"{warm} > {start}"] = lambda w=warm, s=start: chained(setting, splits, CS, GAMMAS, w, s)
    methods[REFERENCE + IN_PARALLEL] = lambda: refitted(setting, splits, JOBS)
    methods["auto" + IN_PARALLEL] = lambda: searched(setting, splits, n_jobs=JOBS)
    return methods


def warm_up(setting: Setting) -> None:
    """Load the compiled code, here and in the workers, with 40 examples of each class."""
    some = np.concatenate([np.flatnonzero(setting.y == label)[:40] for label in (-1, 1)])
    small = Setting(setting.task, setting.X[some], setting.y[some], setting.X_svc[some])
    for method in methods_of(small, folds.stratified(small.y, FOLDS)).values():
        method()


def compare(setting: Setting, repeats: int) -> tuple[dict, Search]:
    """All methods on one set, taking turns, and what "auto" found."""
    splits = folds.stratified(setting.y, FOLDS)
    methods, outcomes, spent = methods_of(setting, splits), {}, {}
    for _ in range(repeats):
        for name, method in methods.items():
            outcomes[name], *seconds = timed(method)
            spent.setdefault(name, []).append(seconds)
    reference = outcomes[REFERENCE]
    rows = []
    for name, outcome in outcomes.items():
        cpu, wall = np.min(spent[name], axis=0).tolist()
        row = {"method": name, "cpu": None if name.endswith(IN_PARALLEL) else cpu, "wall": wall}
        rows.append(row | figures(outcome, reference))
    task = setting.task
    right = {f"{C:g} {gamma:g}": int(counts.sum()) for (C, gamma), counts in reference.items()}
    about = {"set": task.name, "n": len(setting.y), "d": setting.X.shape[1]}
    return about | {"right": right, "rows": rows}, outcomes["auto"]


def figures(outcome: Found, reference: Table) -> dict:
    """What it took, and how it compares with GridSearchCV."""
    found: dict[str, Any] = {}
    if isinstance(outcome, Search):
        results = [cell.result for cell in outcome.table]
        found = {
            key: sum(getattr(one, key) for one in results) for key in ("iterations", "newton_steps", "rows_computed")
        }
        found["along C"] = [sum(cell.result.iterations for cell in outcome.table if cell.C == C) for C in CS]
        outcome = table_of(outcome)
    elif isinstance(outcome, Chained):
        found = {"iterations": sum(outcome.iterations), "along C": outcome.iterations}
        found |= {"newton_steps": outcome.newton_steps, "rows_computed": outcome.rows_computed}
        outcome = outcome.right
    apart = [int(np.abs(outcome[cell] - counts).sum()) for cell, counts in reference.items()]
    totals = {cell: int(counts.sum()) for cell, counts in outcome.items()}
    best = max(totals, key=lambda cell: (totals[cell], -cell[0], -cell[1]))
    return found | {"differ": sum(count > 0 for count in apart), "by": max(apart), "best": best}


def draw(search: Search, path: Path) -> None:
    """Save the heat map."""
    from streamsvm.connectors.report.charts import draw_grid

    path.parent.mkdir(parents=True, exist_ok=True)
    draw_grid(search, path)


# -------------------------------------------------------------------------------------------------------------- tables


def show_comparison(one: dict) -> None:
    """Print the tables of one set."""
    print(f"\n### {one['set']}: n = {one['n']}, d = {one['d']}, {len(CS)} x {len(GAMMAS)} cells, {FOLDS} folds\n")
    wall = {row["method"]: row["wall"] for row in one["rows"]}
    rows = []
    for row in one["rows"]:
        parallel = row["method"].endswith(IN_PARALLEL)
        ratio = wall[REFERENCE + IN_PARALLEL * parallel] / row["wall"] if parallel else gain(one, row["method"])
        rows.append(
            [
                row["method"],
                shown(row["cpu"], "{:.3g}"),
                shown(row["wall"], "{:.3g}"),
                f"{ratio:.2f}",
                *(shown(row.get(key)) for key in ("iterations", "newton_steps", "rows_computed")),
                f"{row['differ']} by {row['by']}",
                "C {:g}, gamma {:g}".format(*row["best"]),
            ]
        )
    print(table("start|CPU s|wall s|x GridSearchCV|iterations|Newton|rows|cells|best", rows))
    print("\nIterations at each C, of all values of gamma, and their mean without the first C, which starts from 0:\n")
    cells = [
        [row["method"], *map(str, row["along C"]), f"{statistics.fmean(row['along C'][1:]):.0f}"]
        for row in one["rows"]
        if "along C" in row and not row["method"].endswith(IN_PARALLEL)
    ]
    print(table("|".join(["start", *(f"{C:g}" for C in CS), "mean"]), cells))
    print("\nAccuracy of GridSearchCV in percent:\n")
    share = {cell: 100 * right / one["n"] for cell, right in one["right"].items()}
    cells = [[f"{C:g}", *(f"{share[f'{C:g} {gamma:g}']:.2f}" for gamma in GAMMAS)] for C in CS]
    print(table("|".join(["C", *(f"gamma {gamma:g}" for gamma in GAMMAS)]), cells), flush=True)


def gain(one: dict, method: str) -> float:
    """How many times as fast as GridSearchCV, by CPU seconds."""
    cpu = {row["method"]: row["cpu"] for row in one["rows"]}
    return cpu[REFERENCE] / cpu[method]


def show_aims(comparisons: list[dict]) -> None:
    """Print which aims are met."""
    print("\n## Aims\n")
    for one in comparisons:
        value = gain(one, "auto")
        say(f"{one['set']}, {AIM} times as fast as GridSearchCV", f"{value:.1f}", value >= AIM)
        differ = {
            row["method"]: f"{row['differ']} cells by {row['by']} at most" for row in one["rows"] if row["differ"]
        }
        listed = ", ".join(f"{name}: {found}" for name, found in differ.items()) or "the same"
        alike = all(row["by"] <= 1 for row in one["rows"])
        say(f"{one['set']}, the table of GridSearchCV to a prediction, which the tolerance decides", listed, alike)


# ------------------------------------------------------------------------------------------------------------- running


def measure_here(options: argparse.Namespace) -> None:
    """Measure one set in this process and print it as JSON."""
    task = SEARCH_TASKS[options.sets[0]]
    data = load(task, options.data)
    setting = setting_of(task, data.X.astype(np.float64), data.y)
    warm_up(setting)
    found, search = compare(setting, options.repeats)
    print(json.dumps(found), flush=True)
    if options.pictures:
        draw(search, options.pictures / f"search-{task.name}.png")


def measure_elsewhere(options: argparse.Namespace, name: str) -> dict:
    """One set, measured in a process with one thread."""
    pictures = ["--pictures", options.pictures] if options.pictures else []
    words = ["--here", "--sets", name, "--repeats", options.repeats, *pictures]
    return needed(__file__, *words, data=options.data)


def measure_all(options: argparse.Namespace) -> list[dict]:
    """All sets, with the tables as they come."""
    comparisons: list[dict] = []
    for name in options.sets:
        one = measure_elsewhere(options, name)
        comparisons.append(one)
        show_comparison(one)
        if options.out:
            options.out.write_text(json.dumps(comparisons, indent=1))
    return comparisons


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=list(SEARCH_TASKS))
    parser.add_argument("--repeats", type=int, default=3, help="turns of each method")
    parser.add_argument("--quick", action="store_true", help="1000 rows of ijcnn1 in one turn")
    parser.add_argument("--pictures", type=Path, help="folder for the heat maps; default: none are drawn")
    parser.add_argument("--out", type=Path, help="file for the figures, as JSON")
    parser.add_argument("--report", type=Path, help="print the tables of such a file instead of measuring")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.sets, options.repeats = QUICK, 1
    if options.here:
        measure_here(options)
        return
    if options.report:
        comparisons = json.loads(options.report.read_text())
        for one in comparisons:
            show_comparison(one)
    else:
        comparisons = measure_all(options)
    show_aims(comparisons)


if __name__ == "__main__":
    main()
