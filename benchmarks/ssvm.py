"""Cross-validation of smooth SVMs: every solver beside models fitted anew for each fold and scikit-learn's SVC, and how
far updated inverses drift: Tables 2 and 3 of the paper on rank-r updates.

    python benchmarks/ssvm.py --data DIR                        # everything, the drift included
    python benchmarks/ssvm.py --data DIR --sets pima --kernels rbf
    python benchmarks/ssvm.py --data DIR --drift FILE.png       # the drift alone, and a picture of it
    python benchmarks/ssvm.py --data DIR --steps                # Newton's steps alone, as in Figure 1
    python benchmarks/ssvm.py --quick                           # a set of scikit-learn's, ten folds

Source: Tseng, Lee, "Rank-r Updating Techniques for Fast Exact Cross-Validation".  Data are `SMOOTH_TASKS` in
datasets.py; without --data, from OpenML as far as it has them.

Rows of a table:

    newton, anew     the source's baseline: a model for each fold, from 0, the p x p Hessian factored in each step
    cholesky, anew   the same over features or support vectors, whatever are fewer
    newton, strategy-1, strategy-2, cholesky, shared    `streamsvm.validation.smooth`, from the model of all examples
    SVC              scikit-learn's, refitted for each fold; another loss, and a bias that is not regularised

Each set is measured in this process with one thread; methods take turns, and the fastest turn counts.  One that would
exceed `--max-seconds` of CPU time is measured on as many of the folds as that allows, and multiplied ("~"); one that
exceeds it on three folds is left out ("-").  "max df" is the largest difference to the decision values of "cholesky,
anew", relative to the largest of these; more than 1e-6 ends the run with an error.
"""

import argparse
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from datasets import SMOOTH_TASKS, Task, load_first
from papers.printed import RANK_R
from seeding.measuring import thinned
from shared.clock import TooSlowError, limit, timed
from shared.tables import shown, table
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from streamsvm.batch import SmoothSVM
from streamsvm.batch.ssvm import model as smooth
from streamsvm.batch.ssvm.systems import Cholesky, InverseOfH, InverseOnS, Rows, System
from streamsvm.validation import cross_validate, folds

SOLVERS = ("newton", "strategy-1", "strategy-2", "cholesky", "shared")
BASELINE, REFERENCE = "newton, anew", "cholesky, anew"
EQUAL = 1e-6  # of the largest decision value
PROBE = 3  # folds by which a method's time is guessed
UPDATES = (0, 10, 100, 1000, 4000)
COSTS = (1.0, 100.0, 1e4)
RIGHT_SIDES = 20
STEPPED = ("ionosphere", "pima")


class Outcome(NamedTuple):
    """What a method found on some folds; NaN where nothing was tested."""

    f: np.ndarray
    steps: int | None = None
    copied: int | None = None
    fixed: float = 0.0  # seconds that do not grow with the number of folds


Method = Callable[[np.ndarray, np.ndarray, folds.Folds], Outcome]


# ------------------------------------------------------------------------------------------------------------- methods


def anew(task: Task, kernel: str, solver: str) -> Method:
    """A model for each fold, from 0."""

    def method(X: np.ndarray, y: np.ndarray, splits: folds.Folds) -> Outcome:
        f, steps = np.full(len(y), np.nan), 0
        for train, test in splits:
            model = SmoothSVM(task.C, kernel, gamma=task.gamma, solver=solver).fit(X[train], y[train])
            f[test] = model.decision_function(X[test])
            steps += model.n_iter_
        return Outcome(f, steps)

    return method


def from_full(task: Task, kernel: str, solver: str) -> Method:
    """All folds from the model of all examples."""

    def method(X: np.ndarray, y: np.ndarray, splits: folds.Folds) -> Outcome:
        model = SmoothSVM(task.C, kernel, gamma=task.gamma, solver=solver)
        result = cross_validate(model, X, y, folds=splits)
        copied = sum(part.start == "copied" for part in result.per_fold)
        return Outcome(result.decision_values, result.iterations, copied, result.first.seconds)

    return method


def svc(task: Task, kernel: str) -> Method:
    """scikit-learn's, for each fold."""

    def method(X: np.ndarray, y: np.ndarray, splits: folds.Folds) -> Outcome:
        f = np.full(len(y), np.nan)
        for train, test in splits:
            f[test] = SVC(C=task.C, kernel=kernel, gamma=task.gamma).fit(X[train], y[train]).decision_function(X[test])
        return Outcome(f)

    return method


def methods_of(task: Task, kernel: str) -> dict[str, Method]:
    """By name."""
    return {
        BASELINE: anew(task, kernel, "newton"),
        REFERENCE: anew(task, kernel, "cholesky"),
        **{solver: from_full(task, kernel, solver) for solver in SOLVERS},
        "SVC": svc(task, kernel),
    }


# --------------------------------------------------------------------------------------------------------- measurement


class Run:
    """A method on one set and one kind of folds."""

    def __init__(self, method: Method, X: np.ndarray, y: np.ndarray, splits: folds.Folds, most: float) -> None:
        self.method, self.X, self.y, self.splits, self.most = method, X, y, splits, most
        self.seconds: list[float] = []
        self.outcome: Outcome | None = None
        self.share = 1.0
        try:
            with limit(most):
                few = thinned(splits, min(PROBE, len(splits)))
                outcome, cpu, _ = timed(lambda: method(X, y, few))
        except TooSlowError:
            self.share = 0.0
            return
        each = max(cpu - outcome.fixed, 1e-9) / len(few)
        affordable = max(len(few), int((most - outcome.fixed) / each))
        if affordable < len(splits):
            self.share, self.splits = affordable / len(splits), thinned(splits, affordable)

    def turn(self) -> None:
        """Run it, unless that takes too long."""
        if self.share > 0.0 and sum(self.seconds) <= self.most:
            outcome, cpu, _ = timed(lambda: self.method(self.X, self.y, self.splits))
            self.outcome = outcome
            self.seconds.append(outcome.fixed + max(cpu - outcome.fixed, 0.0) / self.share)

    @property
    def cpu(self) -> float | None:
        """CPU seconds of all folds."""
        return min(self.seconds) if self.seconds else None


def compare(task: Task, kernel: str, kind: str, folder: Path | None, options: argparse.Namespace) -> bool:
    """Print a table of all methods; whether all solvers agree."""
    X, y = load_first(task, folder)
    splits = folds.leave_one_out(len(y)) if kind == "loo" else folds.stratified(y, int(kind))
    methods = {
        name: method
        for name, method in methods_of(task, kernel).items()
        if name == REFERENCE or name in options.methods
    }
    runs = {name: Run(method, X, y, splits, options.max_seconds) for name, method in methods.items()}
    for _ in range(options.repeats):
        for run in runs.values():
            run.turn()
    reference = runs[REFERENCE].outcome
    assert reference is not None
    full = SmoothSVM(task.C, kernel, gamma=task.gamma).fit(X, y)
    name = "leave-one-out" if kind == "loo" else f"{kind} folds"
    p = (X.shape[1] if kernel == "linear" else len(y)) + 1
    print(
        f"\n### {task.name}, {kernel}, {name}: n = {len(y)}, p = {p}, {len(full.support_)} support vectors, "
        f"C = {task.C:g}" + (f", gamma = {task.gamma:.3g}" if kernel == "rbf" else "")
    )
    rows, agree = [], True
    for method, run in runs.items():
        row, right = row_of(method, run, reference.f, y, [runs.get(BASELINE), runs[REFERENCE]])
        rows.append(row)
        agree &= right
    print()
    print(table("method|CPU s|x newton, anew|x cholesky, anew|Newton steps|copied|max df|accuracy %", rows), flush=True)
    if printed := RANK_R.get((task.name, kernel, kind)):
        names = ("anew", "strategy I", "strategy II", "LIBSVM")
        seconds = ", ".join(f"{name} {s:g} s" for name, s in zip(names, printed.seconds, strict=True))
        print(
            f"\nThe source: {seconds}; accuracy {printed.accuracy:.2f} %, of LIBSVM {printed.libsvm:.2f} %", flush=True
        )
    return agree


def row_of(
    method: str, run: Run, reference: np.ndarray, y: np.ndarray, others: list[Run | None]
) -> tuple[list[str], bool]:
    """Cells of a method's row, and whether it agrees with the reference."""
    if run.outcome is None or run.cpu is None:
        return [method, *["-"] * 7], True
    f, is_whole = run.outcome.f, run.share == 1.0
    both = ~np.isnan(f) & ~np.isnan(reference)
    apart = float(np.abs(f - reference)[both].max() / np.abs(reference[both]).max())
    ratios = [None if other is None or other.cpu is None else other.cpu / run.cpu for other in others]
    cells = [
        method,
        ("" if is_whole else "~") + f"{run.cpu:.3g}",
        *(shown(ratio, "{:.3g}") for ratio in ratios),
        shown(run.outcome.steps if is_whole else None),
        shown(run.outcome.copied if is_whole else None),
        "-" if method == "SVC" else f"{apart:.0e}",
        shown(100 * float(np.mean((f > 0) == (y > 0))) if is_whole else None, "{:.2f}"),
    ]
    return cells, method == "SVC" or apart <= EQUAL


# --------------------------------------------------------------------------------------------------------------- drift


def exact(D: np.ndarray, support: np.ndarray, R: np.ndarray) -> np.ndarray:
    """H^-1 R, refined with residuals in extended precision."""
    system = Cholesky(Rows(D))
    system.move(support)
    A = D[support].astype(np.longdouble)
    Z = system.solve(R).astype(np.longdouble)
    for _ in range(5):
        Z += system.solve((R - Z - A.T @ (A @ Z)).astype(float))
    return Z.astype(float)


def drift(system: type[System], D: np.ndarray, support: np.ndarray, seed: int = 0) -> tuple[list[float], int]:
    """The relative errors of H^-1 R after so many updates, each of which lets one example leave or enter."""
    rng = np.random.default_rng(seed)
    R = D.T @ rng.normal(size=(len(D), RIGHT_SIDES))  # as gradients are
    one, support, members, errors = system(Rows(D)), support.copy(), support.copy(), []
    one.move(support)
    one.is_fresh = False  # errors are those of the explicit inverse
    for update in range(max(UPDATES) + 1):
        if update in UPDATES:
            Z = exact(D, support, R)
            errors.append(float(np.linalg.norm(one.solve(R) - Z) / np.linalg.norm(Z)))
        support = support.copy()
        missing = np.flatnonzero(members & ~support)
        leaves = len(missing) == 0 or (rng.random() < 0.5 and len(missing) < 0.2 * members.sum())
        support[rng.choice(np.flatnonzero(support) if leaves else missing)] ^= True
        one.move(support)
    return errors, one.refreshed - 1


# --------------------------------------------------------------------------------------------------------------- steps


def supports_of(task: Task, kernel: str, X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """The support vectors of each Newton step, as masks."""
    found: list[np.ndarray] = []

    class Watched(Cholesky):
        def move(self, support: np.ndarray) -> None:
            found.append(support.copy())
            super().move(support)

    smooth.SOLVERS["watched"] = Watched
    try:
        SmoothSVM(task.C, kernel, gamma=task.gamma, solver="watched").fit(X, y)
    finally:
        del smooth.SOLVERS["watched"]
    return found


def show_steps(folder: Path | None) -> None:
    """Print how many support vectors each Newton step has, and how many of them came or went with it."""
    rows = []
    for name in STEPPED:
        task = SMOOTH_TASKS[name]
        X, y = load_first(task, folder)
        for kernel in ("linear", "rbf"):
            supports = supports_of(task, kernel, X, y)
            moved = [int((a != b).sum()) for a, b in itertools.pairwise(supports)]
            sizes = [int(support.sum()) for support in supports]
            listed = [str(sizes[0]), *(f"{size} ({r})" for size, r in zip(sizes[1:], moved, strict=True))]
            rows.append([f"{name}, {kernel}", ", ".join(listed)])
    print("\n## Newton's steps: support vectors, and in brackets how many examples came or went\n")
    print(table("set, kernel|from the first step to the last", rows), flush=True)


def show_drift(folder: Path | None, picture: Path | None) -> None:
    """Print the relative errors of both strategies on ionosphere, where support vectors are more and fewer than p."""
    task = SMOOTH_TASKS["ionosphere"]
    X, y = load_first(task, folder)
    rows, curves = [], []
    for kernel in ("linear", "rbf"):
        for C in COSTS:
            prepared = SmoothSVM(C, kernel, gamma=task.gamma).prepare(X, y)
            model = SmoothSVM(C, kernel, gamma=task.gamma).fit(X, y)
            support = np.isin(np.arange(len(y)), model.support_)
            for name, system in (("I", InverseOfH), ("II", InverseOnS)):
                errors, refreshed = drift(system, prepared.problem.D, support)
                shape = "p < l" if prepared.problem.D.shape[1] < support.sum() else "p > l"
                title = [f"{kernel}, {shape}", f"{C:g}", name]
                rows.append([*title, *(f"{error:.0e}" for error in errors), str(refreshed)])
                curves.append((" ".join(title), errors))
    print("\n## Drift: relative error of H^-1 r by an inverse that is updated and never made anew, ionosphere\n")
    print(table("set|C|strategy|" + "|".join(f"{u} updates" for u in UPDATES) + "|made anew", rows), flush=True)
    if picture is not None:
        draw(curves, picture)


def draw(curves: list[tuple[str, list[float]]], picture: Path) -> None:
    """Errors against updates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    for i, (title, errors) in enumerate(curves):
        axes.plot([max(u, 1) for u in UPDATES], errors, ["-", "--"][i % 2], color=f"C{i // 2}", marker=".", label=title)
    axes.set(xscale="log", yscale="log", xlabel="updates", ylabel="relative error of H⁻¹r")
    axes.legend(fontsize=8, title="kernel, shape, C, strategy", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(picture, dpi=100)
    print(f"\nwrote {picture}")


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--sets", nargs="+", choices=list(SMOOTH_TASKS), default=list(SMOOTH_TASKS))
    parser.add_argument("--kernels", nargs="+", choices=["linear", "rbf"], default=["linear", "rbf"])
    every = [BASELINE, REFERENCE, *SOLVERS, "SVC"]
    parser.add_argument("--methods", nargs="+", choices=every, default=every, metavar="METHOD")
    parser.add_argument("--folds", nargs="+", default=["10", "loo"], help="numbers of folds, or loo")
    parser.add_argument("--repeats", type=int, default=3, help="turns")
    parser.add_argument("--max-seconds", type=float, default=10.0, help="CPU time of a method in a turn")
    parser.add_argument("--drift", type=Path, metavar="FILE.png", help="only the drift, with a picture")
    parser.add_argument("--steps", action="store_true", help="only Newton's steps")
    parser.add_argument("--quick", action="store_true", help="wdbc, ten folds")
    options = parser.parse_args()
    if options.drift:
        show_drift(options.data, options.drift)
        return 0
    if options.steps:
        show_steps(options.data)
        return 0
    if options.quick:
        options.sets, options.folds = ["wdbc"], ["10"]
    agree = [
        compare(SMOOTH_TASKS[name], kernel, kind, options.data, options)
        for name in options.sets
        for kernel in options.kernels
        for kind in options.folds
    ]
    if not options.quick and set(options.sets) == set(SMOOTH_TASKS):
        show_drift(options.data, None)
    print(f"\n{sum(agree)} of {len(agree)} tables: every solver gives what models fitted anew do")
    return 0 if all(agree) else 1


if __name__ == "__main__":
    with threadpool_limits(1):
        sys.exit(main())
