"""Cross-validation beside scikit-learn's and LIBSVM's, from every start: Tables 1 and 3 and the leave-one-out figure of
the paper on alpha seeding.

    python benchmarks/crossval.py --data DIR --out FILE.json         # everything; without --data, from OpenML
    python benchmarks/crossval.py --data DIR --quick                 # the smallest sets, 10 folds and leave-one-out
    python benchmarks/crossval.py --data DIR --sets pima --folds 10  # one of them
    python benchmarks/crossval.py --report FILE.json                 # the tables of a run that was kept

Source: Wen, Li, Ramamohanarao, J. Chen, Y. Chen, Zhang, "Improving Efficiency of SVM k-fold Cross-validation by Alpha
Seeding".  Below the tables of its sets stand its figures, which are of the whole sets.
Data and parameters are `VALIDATION_TASKS` in datasets.py; of large sets the first rows, as stored.

Rows of a table:

    scikit-learn   SVC refitted for each fold, with the decision values of its test part: what the others are compared
                   with.  On sparse data it gets the faster of the dense and the sparse form.
    cross_val_score  scikit-learn's own loop around the same fits
    libsvm -v      LIBSVM's cross-validation, with stratified folds of its own (pip install libsvm-official)
    none           the kernel rows of all folds shared, every fold started from 0: the honest baseline
    skip, avg, ..  the other starts, see `streamsvm.validation.cross_validate`; auto picks one
    .., right?     leave-one-out with values=False: only whether each prediction is right

Each set is measured in a process of its own with one thread (`OMP_NUM_THREADS=1` and the like), after compiled code was
loaded by a small problem.  Methods take turns, in each of which they run once or for a fifth of a second; the fastest
turn counts, by the mean of its runs, for clocks of CPU time may tick every 4 ms only.  Seconds are CPU seconds of the
process and those of the wall clock.  One that exceeds `--max-seconds` of CPU time is cut off ("-"); the two that train
fold by fold without sharing anything are measured on as many of the folds as that allows, LIBSVM's on one training if
need be, and multiplied ("~").

"differ": predictions that are not scikit-learn's among the examples with |f| > 0.01, of which there are "of".

The last table has one training on all examples: |f - f of SVC| at most, the relative difference of the dual objectives,
support vectors and iterations.  LIBSVM's kernel rows are float32, which puts a floor of 6e-8 sum |alpha| under its f.
"""

import argparse
import contextlib
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from datasets import VALIDATION_TASKS, Task, load_first
from lasvm import THREADS
from papers.printed import SEEDING
from papers.tables import shown, table
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from streamsvm import LASVM
from streamsvm.batch import SolverOptions, smo
from streamsvm.validation import cross_validate, folds
from streamsvm.validation.held_out.splits import SEEDINGS

PRINTED = {"a9a-2000": "a9a", "a9a-5000": "a9a", "w8a-2000": "w8a", "w8a-5000": "w8a", "mnistraw-2000": "mnist"}
LEAVE_ONE_OUT = "loo"
FOLDS = ("3", "10", "100", LEAVE_ONE_OUT)
AIMED = ("heart", "ionosphere", "pima", "madelon", "a9a-2000", "w8a-2000", "mnist-2000")  # at for 10 folds
LOO_AIMS = {"heart": 30, "ionosphere": 30, "pima": 80, "banana-1000": 80}  # times as fast as scikit-learn
QUICK = ("heart", "ionosphere")
TENFOLD_AIM, TENFOLD_SETS, LIBSVM_AIM = 5, 4, 10
NOISE = 0.95  # of the speed of "none", to count as not slower
SURE = 1e-2  # |f| from which a prediction has to be the same
TURN = 0.2  # seconds for which a fast method runs again and again
ENOUGH = 10.0  # seconds after which a method is not repeated
FLOAT32 = 6e-8  # relative error of LIBSVM's kernel rows
REFERENCE, LIBSVM, COLD, AUTO = "scikit-learn", "libsvm -v", "none", "auto"


class Setting(NamedTuple):
    """A task with its data."""

    task: Task
    X: np.ndarray | sp.csr_matrix
    y: np.ndarray  # -1 and +1
    X_svc: np.ndarray | sp.csr_matrix  # in the form in which SVC is faster

    def svc(self, **options: Any) -> SVC:
        """scikit-learn's model for it."""
        return SVC(C=self.task.C, gamma=self.task.gamma, **options)


class Outcome(NamedTuple):
    """What a cross-validation found; None: it does not say."""

    predictions: np.ndarray | None = None  # -1 and +1; 0: not tested
    f: np.ndarray | None = None  # decision values; NaN: not known
    accuracy: float | None = None  # percent
    iterations: int | None = None
    newton: int | None = None
    rows: int | None = None
    note: str = ""


Method = Callable[[Setting, folds.Folds], Outcome]


class TooSlowError(Exception):
    """A method has used up its seconds."""


# ------------------------------------------------------------------------------------------------------------- methods


def refitted(setting: Setting, splits: folds.Folds) -> Outcome:
    """SVC for each fold."""
    f, iterations = np.full(len(setting.y), np.nan), 0
    for train, test in splits:
        model = setting.svc().fit(setting.X_svc[train], setting.y[train])
        f[test] = model.decision_function(setting.X_svc[test])
        iterations += int(model.n_iter_.sum())
    tested = ~np.isnan(f)
    predictions = np.where(tested, np.where(f > 0, 1, -1), 0)
    return Outcome(predictions, f, 100 * float((predictions == setting.y)[tested].mean()), iterations)


def scored(setting: Setting, splits: folds.Folds) -> Outcome:
    """scikit-learn's `cross_val_score`."""
    scores = cross_val_score(setting.svc(), setting.X_svc, setting.y, cv=list(splits))
    return Outcome(accuracy=100 * float(np.average(scores, weights=[len(test) for test in splits.tests])))


def seeded(seeding: str, values: bool = True) -> Method:
    """This project's, from one of its starts."""

    def method(setting: Setting, splits: folds.Folds) -> Outcome:
        task = setting.task
        result = cross_validate(
            LASVM(C=task.C, gamma=task.gamma), setting.X, setting.y, folds=splits, seeding=seeding, values=values
        )
        events = sum(part.events for part in result.per_fold)
        note = (result.seeding if seeding == AUTO else "") + (f" {events} events" if events else "")
        return Outcome(
            result.predictions,
            result.decision_values,
            100 * result.accuracy,
            result.iterations,
            result.newton_steps,
            result.rows_computed,
            note.strip(),
        )

    return method


def libsvm(setting: Setting) -> Method | None:
    """LIBSVM's `-v`, its data converted beforehand; None if it is not installed."""
    try:
        from libsvm.svmutil import svm_problem, svm_train
    except ImportError:
        return None
    problem = svm_problem(setting.y.astype(float), setting.X)

    def method(setting: Setting, splits: folds.Folds) -> Outcome:
        options = f"-q -c {setting.task.C} -g {setting.task.gamma} -v {len(splits)}"
        with contextlib.redirect_stdout(io.StringIO()):  # it says what it returns
            return Outcome(accuracy=float(svm_train(problem, options)))

    return method


def libsvm_once(setting: Setting, k: int) -> float:
    """CPU seconds of k trainings by LIBSVM on 1 - 1/k of the examples, of which one is measured."""
    from libsvm.svmutil import svm_problem, svm_train

    some = np.random.default_rng(0).permutation(len(setting.y))[: math.ceil(len(setting.y) * (1 - 1 / k))]
    problem = svm_problem(setting.y[some].astype(float), setting.X[some])
    begin = time.process_time()
    svm_train(problem, f"-q -c {setting.task.C} -g {setting.task.gamma}")
    return k * (time.process_time() - begin)


# --------------------------------------------------------------------------------------------------------- measurement


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooSlowError when so much CPU time is over."""

    def stop(*_: Any) -> None:
        raise TooSlowError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it returns, CPU seconds and seconds by the wall clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    outcome = work()
    return outcome, time.process_time() - cpu, time.perf_counter() - wall


class Run:
    """A method on one set and one kind of folds."""

    def __init__(self, name: str, method: Method, setting: Setting, splits: folds.Folds, most: float = 0.0) -> None:
        self.name, self.method, self.setting, self.splits = name, method, setting, splits
        self.share = 1.0  # of the folds that are trained
        self.most = most  # CPU seconds of a run after which it is cut off; 0: none
        self.cpu: list[float] = []
        self.wall: list[float] = []
        self.outcome: Outcome | None = None
        self.cut = False

    def thin(self, seconds: float) -> "Run":
        """Train on so many of the folds as that takes, at least three."""
        few = min(3, len(self.splits))
        _, cpu, _ = timed(lambda: self.method(self.setting, thinned(self.splits, few)))
        affordable = max(few, int(few * seconds / cpu))
        if affordable < len(self.splits):
            self.share = affordable / len(self.splits)
            self.splits = thinned(self.splits, affordable)
        return self

    def turn(self) -> None:
        """Run it once, or again and again if it is fast; a turn counts as the mean of its runs."""
        cpu: list[float] = []
        wall: list[float] = []
        while not self.cut and sum(cpu) < TURN and sum(self.cpu) < ENOUGH:
            try:
                with limit(self.most):
                    self.outcome, *seconds = timed(lambda: self.method(self.setting, self.splits))
            except TooSlowError:
                self.cut = True
                return
            cpu.append(seconds[0])
            wall.append(seconds[1])
        if cpu:
            self.cpu.append(float(np.mean(cpu)))
            self.wall.append(float(np.mean(wall)))

    def figures(self, reference: np.ndarray) -> dict:
        """As the tables need them."""
        found: dict[str, Any] = {"method": self.name, "share": self.share, "runs": len(self.cpu)}
        if self.outcome is None:
            return found
        found |= {"cpu": min(self.cpu) / self.share, "wall": min(self.wall) / self.share}
        found |= {key: getattr(self.outcome, key) for key in ("accuracy", "iterations", "newton", "rows", "note")}
        if self.share < 1:
            found["note"] = f"{len(self.splits)} folds"
            found["accuracy"] = None
        if self.outcome.iterations is not None:
            found["iterations"] = round(self.outcome.iterations / self.share)
        if self.outcome.predictions is not None:
            found |= differences(self.outcome, reference)
        return found


def differences(outcome: Outcome, reference: np.ndarray) -> dict:
    """How it compares with the decision values of SVC, which may be those of some of the examples."""
    sure = np.abs(reference) > SURE  # False where NaN
    differ = np.sign(reference[sure]) != outcome.predictions[sure]
    apart = np.abs(outcome.f - reference)
    known = ~np.isnan(apart)
    return {
        "differ": int(differ.sum()),
        "of": int(sure.sum()),
        "max_df": float(apart[known].max()) if known.any() else None,
    }


def thinned(splits: folds.Folds, count: int) -> folds.Folds:
    """So many of the folds, evenly spread."""
    some = np.linspace(0, len(splits) - 1, count).astype(int)
    return folds.Folds(splits.n, [splits.tests[i] for i in some], [splits.left_out[i] for i in some])


def splits_of(kind: str, y: np.ndarray) -> folds.Folds | None:
    """The folds; None if there are too few examples."""
    if kind == LEAVE_ONE_OUT:
        return folds.leave_one_out(len(y))
    return folds.stratified(y, int(kind)) if int(kind) <= min((y > 0).sum(), (y < 0).sum()) else None


def methods_of(kind: str, seedings: tuple[str, ...]) -> dict[str, Method]:
    """This project's methods."""
    named = {seeding: seeded(seeding) for seeding in seedings}
    if kind == LEAVE_ONE_OUT:
        named |= {f"{name}, right?": seeded(name, values=False) for name in (AUTO, "path", "best") if name in seedings}
    return named


def compare(setting: Setting, kind: str, options: argparse.Namespace) -> dict | None:
    """All methods on one set and one kind of folds, taking turns."""
    splits = splits_of(kind, setting.y)
    if splits is None:
        return None
    most = options.max_seconds
    baseline = Run(REFERENCE, refitted, setting, splits).thin(most)
    runs = [baseline, Run("cross_val_score", scored, setting, splits).thin(most)]
    runs += [Run(name, method, setting, splits, most) for name, method in methods_of(kind, options.seedings).items()]
    peer, guess = libsvm(setting), None
    if peer is not None:
        guess = libsvm_once(setting, len(splits))
        if guess <= most:
            runs.insert(2, Run(LIBSVM, peer, setting, splits))
    for _ in range(options.repeats):
        for run in runs:
            run.turn()
    rows = [run.figures(baseline.outcome.f) for run in runs]
    if guess is not None and guess > most:
        rows.insert(2, {"method": LIBSVM, "share": 1 / len(splits), "cpu": guess, "note": "one training"})
    task = setting.task
    about = {"set": task.name, "n": len(setting.y), "d": setting.X.shape[1], "C": task.C, "gamma": task.gamma}
    return about | {"folds": kind, "k": len(splits), "libsvm": peer is not None, "rows": rows}


def setting_of(task: Task, X: np.ndarray | sp.csr_matrix, y: np.ndarray) -> Setting:
    """The task with its data, for SVC in the form in which one training is faster."""
    setting = Setting(task, X, y, X)
    if not sp.issparse(X):
        return setting
    dense = setting._replace(X_svc=X.toarray())
    return min((setting, dense), key=lambda one: timed(lambda: one.svc().fit(one.X_svc, y))[1])


def warm_up(setting: Setting, seedings: tuple[str, ...]) -> None:
    """Load the compiled code that the methods need, with 40 examples of each class."""
    some = np.concatenate([np.flatnonzero(setting.y == label)[:40] for label in (-1, 1)])
    small = Setting(setting.task, setting.X[some], setting.y[some], setting.X_svc[some])
    for kind in ("10", LEAVE_ONE_OUT):
        splits = splits_of(kind, small.y)
        for method in (refitted, scored, *methods_of(kind, seedings).values()):
            method(small, splits)


# ------------------------------------------------------------------------------------------------------------ equality


def equality(setting: Setting, tol: float) -> dict:
    """One training on all examples, by SVC and here."""
    task, y = setting.task, setting.y.astype(float)
    model = setting.svc(tol=tol).fit(setting.X_svc, y)
    ours = smo.solve(setting.X, y, C=task.C, gamma=task.gamma, options=SolverOptions(tol=tol))
    beta, ids = model.dual_coef_, model.support_
    beta = (beta.toarray() if sp.issparse(beta) else beta).ravel()
    objective = float(beta @ y[ids] - 0.5 * beta @ rbf_kernel(setting.X[ids], gamma=task.gamma) @ beta)
    apart = np.abs(model.decision_function(setting.X_svc) - ours.decision_values)
    return {
        "set": task.name,
        "tol": tol,
        "max_df": float(apart.max()),
        "floor": FLOAT32 * float(np.abs(ours.dual_coef).sum()),
        "objective": ours.objective,
        "gain": (ours.objective - objective) / abs(objective),
        "support": len(ours.support),
        "support_svc": len(ids),
        "iterations": ours.iterations,
        "newton": ours.newton_steps,
        "iterations_svc": int(model.n_iter_.sum()),
    }


# -------------------------------------------------------------------------------------------------------------- tables


def seconds_of(row: dict | None, key: str = "cpu") -> str:
    """Three digits of it, marked if it was multiplied up."""
    if row is None or row.get(key) is None:
        return "-"
    return ("~" if row["share"] < 1 else "") + f"{row[key]:.3g}"


def times(slow: dict | None, fast: dict | None) -> float | None:
    """How many times as fast one row is."""
    both = slow and fast and slow.get("cpu") and fast.get("cpu")
    return slow["cpu"] / fast["cpu"] if both else None


def by_method(comparison: dict) -> dict[str, dict]:
    """Its rows."""
    return {row["method"]: row for row in comparison["rows"]}


def show_comparison(one: dict) -> None:
    """Print the table of one set and one kind of folds."""
    name = "leave-one-out" if one["folds"] == LEAVE_ONE_OUT else f"{one['folds']} folds"
    print(f"\n### {one['set']}, {name}: n = {one['n']}, d = {one['d']}, C = {one['C']:g}, gamma = {one['gamma']:g}\n")
    rows, named = [], by_method(one)
    for row in one["rows"]:
        ratios = [shown(times(named.get(other), row), "{:.2f}") for other in (REFERENCE, LIBSVM, COLD)]
        equal = f"{row['differ']} of {row['of']}" if "differ" in row else "-"
        figures = [shown(row.get("iterations")), shown(row.get("newton")), shown(row.get("rows")), equal]
        rows.append(
            [
                row["method"],
                seconds_of(row),
                seconds_of(row, "wall"),
                *ratios,
                *figures,
                shown(row.get("max_df"), "{:.0e}"),
                shown(row.get("accuracy"), "{:.2f}"),
                row.get("note") or "",
            ]
        )
    titles = "start|CPU s|wall s|x scikit-learn|x libsvm|x none|iterations|Newton|rows|differ|max df|accuracy %|note"
    print(table(titles, rows), flush=True)
    if not one["libsvm"]:
        print("\nlibsvm -v: not installed (pip install libsvm-official)")
    show_source(one)


def show_source(one: dict) -> None:
    """Print what the paper has for this set, whole, and these folds."""
    printed = SEEDING.get(PRINTED.get(one["set"], one["set"]))
    if printed is not None and one["folds"] == "10":
        of = dict(
            zip(("LIBSVM", "ATO", "MIR", "SIR"), zip(printed.iterations, printed.seconds, strict=True), strict=True)
        )
        listed = ", ".join(f"{name} {iterations} and {seconds:g} s" for name, (iterations, seconds) in of.items())
        print(f"\nThe source, whole set: iterations and seconds of {listed}; accuracy {printed.accuracy:.2f} %")
    elif printed is not None and one["folds"] in printed.by_folds:
        print("\nThe source, whole set: LIBSVM {:g} s, SIR {:g} s".format(*printed.by_folds[one["folds"]]))


def show_summary(comparisons: list[dict]) -> None:
    """Print what "auto" gains, for every set and kind of folds."""
    print("\n## Summary: CPU seconds, and how many times as fast `auto` is\n")
    rows = []
    for one in comparisons:
        named = by_method(one)
        auto = named.get(AUTO)
        best = min((row for name, row in named.items() if name in SEEDINGS and row.get("cpu")), key=lambda r: r["cpu"])
        cells = [seconds_of(named.get(name)) for name in (REFERENCE, LIBSVM, COLD, AUTO)]
        ratios = [shown(times(named.get(name), auto), "{:.2f}") for name in (REFERENCE, LIBSVM, COLD)]
        fastest = f"{best['method']} {seconds_of(best)}"
        rows.append([f"{one['set']} {one['folds']}", *cells, *ratios, (auto or {}).get("note") or "", fastest])
    print(table("set, folds|scikit-learn|libsvm -v|none|auto|x scikit-learn|x libsvm|x none|picked|fastest", rows))


def show_equality(rows: list[dict]) -> None:
    """Print how one training compares with SVC's."""
    print("\n## One training on all examples, beside SVC\n")
    titles = "set|tol|max df|float32 floor|objective|relative gain|support|of SVC|iterations|Newton|of SVC"
    cells = [
        [
            row["set"],
            f"{row['tol']:g}",
            f"{row['max_df']:.1e}",
            f"{row['floor']:.0e}",
            f"{row['objective']:.8g}",
            f"{row['gain']:+.0e}",
            *(str(row[key]) for key in ("support", "support_svc", "iterations", "newton", "iterations_svc")),
        ]
        for row in rows
    ]
    print(table(titles, cells), flush=True)


def show_aims(comparisons: list[dict], equal: list[dict]) -> None:
    """Print which aims are met."""
    found = {(one["set"], one["folds"]): by_method(one) for one in comparisons}

    def gain(name: str, kind: str, over: str) -> float | None:
        named = found.get((name, kind), {})
        return times(named.get(over), named.get(AUTO))

    print("\n## Aims\n")
    tenfold = {name: gain(name, "10", REFERENCE) for name in AIMED if (name, "10") in found}
    fast = sum(value is not None and value >= TENFOLD_AIM for value in tenfold.values())
    listed = ", ".join(f"{name} {shown(value, '{:.1f}')}" for name, value in tenfold.items())
    aim = f"10 folds, {TENFOLD_AIM} times as fast as scikit-learn on {TENFOLD_SETS} of the source's sets"
    if len(tenfold) >= TENFOLD_SETS:
        say(aim, f"{fast} of {len(tenfold)}: {listed}", fast >= TENFOLD_SETS)
    for name, wanted in LOO_AIMS.items():
        for over, least in ((REFERENCE, wanted), (LIBSVM, LIBSVM_AIM)):
            value = gain(name, LEAVE_ONE_OUT, over)
            if value is not None:
                say(f"leave-one-out, {name}, {least} times as fast as {over}", f"{value:.1f}", value >= least)
    against = {f"{name} {kind}": gain(name, kind, COLD) for name, kind in found}
    slower = {key: value for key, value in against.items() if value is not None and value < NOISE}
    listed = ", ".join(f"{key} {value:.2f}" for key, value in slower.items()) or "nowhere"
    say(f"never slower than shared rows and a cold start (by more than {1 - NOISE:.0%})", listed, not slower)
    differ = {
        f"{one['set']} {one['folds']} {row['method']}": row["differ"]
        for one in comparisons
        for row in one["rows"]
        if row.get("differ")
    }
    listed = ", ".join(f"{key}: {count}" for key, count in differ.items()) or "none differ"
    say(f"the predictions of scikit-learn wherever |f| > {SURE:g}", listed, not differ)
    if equal:
        far = [f"{row['set']} at {row['tol']:g}" for row in equal if row["max_df"] > 20 * row["tol"] + row["floor"]]
        aim = f"decision values of SVC within 20 tol and the float32 floor, {len({row['set'] for row in equal})} sets"
        say(aim, ", ".join(far) or "all", not far)


def say(aim: str, found: str, met: bool) -> None:
    """Print one aim."""
    print(f"- {'met' if met else 'NOT MET'}: {aim}: {found}")


def show(results: dict) -> None:
    """Print everything."""
    for one in results["comparisons"]:
        show_comparison(one)
    show_end(results)


def show_end(results: dict) -> None:
    """Print what is about all sets together."""
    if results["equality"]:
        show_equality(results["equality"])
    show_summary(results["comparisons"])
    show_aims(results["comparisons"], results["equality"])


# ------------------------------------------------------------------------------------------------------------- running


def measure_here(options: argparse.Namespace) -> None:
    """Measure one set in this process, a line of JSON for each part."""
    task = VALIDATION_TASKS[options.sets[0]]
    setting = setting_of(task, *load_first(task, options.data))
    warm_up(setting, tuple(options.seedings))
    for tol in (1e-3, 1e-6):
        print(json.dumps({"equality": equality(setting, tol)}), flush=True)
    for kind in options.folds:
        found = compare(setting, kind, options)
        if found is not None:
            print(json.dumps({"comparison": found}), flush=True)


def measure_elsewhere(options: argparse.Namespace, name: str) -> Iterator[dict]:
    """The parts of one set, measured in a process with one thread."""
    command = [sys.executable, __file__, "--here", "--sets", name, "--folds", *options.folds]
    command += ["--seedings", *options.seedings, "--repeats", str(options.repeats)]
    command += ["--max-seconds", str(options.max_seconds)] + (["--data", str(options.data)] if options.data else [])
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        raise SystemExit(f"{name}: not measured to its end, exit {process.returncode}")


def measure_all(options: argparse.Namespace) -> dict:
    """All sets, with the tables as they come."""
    results: dict[str, list] = {"equality": [], "comparisons": []}
    for name in options.sets:
        for part in measure_elsewhere(options, name):
            if "equality" in part:
                results["equality"].append(part["equality"])
            else:
                results["comparisons"].append(part["comparison"])
                show_comparison(part["comparison"])
            if options.out:
                options.out.write_text(json.dumps(results, indent=1))
    return results


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--sets", nargs="+", default=list(VALIDATION_TASKS), choices=list(VALIDATION_TASKS))
    parser.add_argument("--folds", nargs="+", default=list(FOLDS), choices=FOLDS)
    parser.add_argument("--seedings", nargs="+", default=list(SEEDINGS), choices=SEEDINGS)
    parser.add_argument("--repeats", type=int, default=5, help="turns of each method")
    parser.add_argument("--max-seconds", type=float, default=20.0, help="for one run of a method")
    parser.add_argument(
        "--quick", action="store_true", help="the smallest sets, 10 folds and leave-one-out, in one turn"
    )
    parser.add_argument("--out", type=Path, help="file for the figures, as JSON")
    parser.add_argument("--report", type=Path, help="print the tables of such a file instead of measuring")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.sets, options.folds, options.repeats = QUICK, ("10", LEAVE_ONE_OUT), 1
    if options.here:
        measure_here(options)
    elif options.report:
        show(json.loads(options.report.read_text()))
    else:
        show_end(measure_all(options))


if __name__ == "__main__":
    main()
