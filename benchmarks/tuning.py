"""The choice of C by ten folds: 50 values of C on 10,000 examples with 1000 Gaussian columns, one gamma.

    python benchmarks/tuning.py               # ours on one core and on two; about two minutes
    python benchmarks/tuning.py --quick       # 1000 examples, 100 columns, 20 values of C; and GridSearchCV
    python benchmarks/tuning.py --reference   # GridSearchCV on the whole job: hours

The job has the shape of that of TorchKM's authors (arXiv 2606.06742, table 2: synthetic, 10,000 examples, 1000 columns,
10 folds, 50 values, one gamma).  They do not give their data; ours are two Gaussian clouds whose best error is about
10 %.  So their seconds are of another problem.

Without `--reference`, scikit-learn's SVC is fitted for the first fold at our best C.  Its predictions are compared with
ours, and its seconds are multiplied by the number of fits ("~").

Each run has a process of its own, and begins after compiled code was loaded.  CPU seconds are those of all threads.
"""

import argparse
import json
from typing import Any, NamedTuple

import numpy as np
from shared.clock import timed
from shared.elsewhere import needed
from shared.tables import table
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import streamsvm
from streamsvm import LASVM
from streamsvm.validation import Search, folds, grid_search

PUBLISHED = {"TorchKM on an L40S": 37.7, "ThunderSVM on an L40S": 279.0, "scikit-learn": 14323.0}
AIM = 60.0  # CPU seconds on one core
CORES = (1, 2)
CACHE_MB = 2000.0
DISTANCE = 2.56  # between the clouds' centres, in standard deviations: their best error is 10 %


class Job(NamedTuple):
    """The size of the job."""

    n: int = 10_000
    columns: int = 1000
    values: int = 50
    n_folds: int = 10

    @property
    def grid(self) -> np.ndarray:
        """The values of C."""
        return np.logspace(-2, 3, self.values)

    @property
    def gamma(self) -> float:
        """The one gamma."""
        return 0.5 / self.columns

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """The examples and their labels."""
        rng = np.random.default_rng(0)
        y = rng.random(self.n) < 0.5
        centre = rng.normal(size=self.columns)
        centre *= 0.5 * DISTANCE / np.linalg.norm(centre)
        return rng.normal(size=(self.n, self.columns)) + np.where(y, 1, -1)[:, None] * centre, y


QUICK = Job(n=1000, columns=100, values=20)


def ours(job: Job, cores: int) -> dict[str, Any]:
    """The job on so many cores."""
    X, y = job.data()
    streamsvm.warmup()
    streamsvm.set_num_threads(cores)
    _searched(QUICK._replace(n=200, values=2), *QUICK._replace(n=200).data())
    search, cpu, wall = timed(lambda: _searched(job, X, y))
    first = search.best.result.per_fold[0]
    return {
        "name": f"ours, {cores} {'core' if cores == 1 else 'cores'}",
        "cpu": cpu,
        "wall": wall,
        "C": search.best.C,
        "error": 100.0 - 100.0 * search.best.score,
        "steps": search.iterations,
        "first": first.decision_values.tolist(),
    }


def _searched(job: Job, X: np.ndarray, y: np.ndarray) -> Search:
    model = LASVM(gamma=job.gamma, cache_mb=CACHE_MB)
    return grid_search(model, X, y, Cs=job.grid, folds=folds.stratified(y, job.n_folds), refit=False)


def one_fit(job: Job, C: float, f: list[float]) -> dict[str, Any]:
    """SVC for the first fold, beside our decision values."""
    X, y = job.data()
    test = folds.stratified(y, job.n_folds).tests[0]
    train = np.setdiff1d(np.arange(job.n), test)
    model, cpu, wall = timed(lambda: SVC(C=C, gamma=job.gamma, cache_size=CACHE_MB).fit(X[train], y[train]))
    theirs, fits = model.decision_function(X[test]), job.values * job.n_folds
    apart, near = (theirs > 0.0) != (np.array(f) > 0.0), np.abs(theirs) <= 0.01
    return {"cpu": fits * cpu, "wall": fits * wall, "differ": int(np.count_nonzero(apart & ~near)), "of": len(test)}


def reference(job: Job) -> dict[str, Any]:
    """GridSearchCV on the job."""
    X, y = job.data()
    search = GridSearchCV(
        SVC(gamma=job.gamma, cache_size=CACHE_MB),
        {"C": job.grid},
        cv=list(folds.stratified(y, job.n_folds)),
        refit=False,
    )
    _, cpu, wall = timed(lambda: search.fit(X, y))
    C, error = search.best_params_["C"], 100.0 - 100.0 * search.best_score_
    return {"name": "GridSearchCV", "cpu": cpu, "wall": wall, "C": C, "error": error}


def show(job: Job, runs: list[dict[str, Any]], fit: dict[str, Any] | None) -> None:
    """The table, and what was compared."""
    print(f"{job.n} examples, {job.columns} columns, {job.n_folds} folds, {job.values} values of C\n")
    rows = [[r["name"], f"{r['cpu']:.1f}", f"{r['wall']:.1f}", f"{r['C']:.4g}", f"{r['error']:.2f}"] for r in runs]
    if fit is not None:
        rows.append(["scikit-learn", f"~{fit['cpu']:.0f}", f"~{fit['wall']:.0f}", "", ""])
    if job == Job():
        rows += [[f"{name}, published", "", f"{seconds:g}", "", ""] for name, seconds in PUBLISHED.items()]
    print(table("run|CPU s|seconds|best C|error %", rows))
    if fit is not None:
        print("\npredictions of the first fold at the best C that differ from SVC's, where |f| > 0.01: ", end="")
        print(f"{fit['differ']} of {fit['of']}")
    chosen = {run["C"] for run in runs}
    print(f"\nbest C: {'the same in all runs' if len(chosen) == 1 else sorted(chosen)}")
    if job == Job():
        print(f"CPU seconds on one core: {runs[0]['cpu']:.1f} (aim: {AIM:g})")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small job, with GridSearchCV")
    parser.add_argument("--reference", action="store_true", help="GridSearchCV on the whole job")
    parser.add_argument("--data", help="accepted as by the other benchmarks; the data are made")
    parser.add_argument("--cores", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    job = QUICK if options.quick else Job()
    if options.cores:
        print(json.dumps(ours(job, options.cores)))
        return
    size = ["--quick"] if options.quick else []
    runs = [needed(__file__, "--cores", cores, *size, threads=cores) for cores in CORES]
    if options.quick or options.reference:
        show(job, [*runs, reference(job)], None)
    else:
        show(job, runs, one_fit(job, runs[0]["C"], runs[0]["first"]))


if __name__ == "__main__":
    main()
