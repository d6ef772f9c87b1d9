"""LASVM beside LIBSVM and its faster relatives, in one run on one thread.

    python benchmarks/lasvm.py --data DIR            # every task; without --data, from OpenML; SVC on mnist: --full
    python benchmarks/lasvm.py --data DIR --quick    # the small ones
    python benchmarks/lasvm.py --data DIR --along    # how the error before FINISH varies at the end of a pass

Figures 8 and 9 of Bordes, Ertekin, Weston, Bottou, "Fast kernel classifiers with online and active learning", JMLR 6
(2005): its figures stand behind ours, after a slash.  Every fit runs in a process of its own with one thread, so that
seconds are CPU seconds of that fit alone and the peak memory is that process's.  `streamsvm` makes one pass and
finishes; `as printed` does so with one REPROCESS after each example, as the source has it.  "What FINISH changes" is in
percent.  LIBSVM does not count kernel values; `libsvm (counted)` runs its algorithm (second-order pairs from
zero, no shrinking, a row cache of 200 MB) in this engine and counts them.  Its iterations stand beside those of
`SVC(shrinking=False)`, which shows that it is the same algorithm.
"""

import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from datasets import TASKS, Task, load
from papers import printed
from shared.elsewhere import elsewhere
from shared.tables import shown, table

ENGINES = ("streamsvm", "as printed", "libsvm", "intelex", "libsvm (counted)")
AS_PRINTED: dict = {"reprocess": 1, "admission": "violation"}
SOURCE = {"as printed": printed.LASVM, "libsvm": printed.LIBSVM, "libsvm (counted)": printed.LIBSVM}
BESIDE, BATCH = ("streamsvm", "libsvm", "intelex"), ("libsvm", "intelex", "libsvm (counted)")
QUICK = ("banana", "waveform")
LONG = {("mnist", "libsvm"), ("mnist", "libsvm (counted)")}  # many minutes each: only with --full
ALONG, ENDS, APART, TESTED = "along", 40, 10, 3000  # ends of a pass, so many examples apart, and test examples


def peak_mb() -> float:
    """Largest resident size of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit_streamsvm(data, task, cache_mb: float, **parameters) -> dict:
    """One pass and finish; compiled code is loaded before the clock starts."""
    import streamsvm

    streamsvm.warmup(streamsvm.LASVM)
    model = streamsvm.LASVM(C=task.C, gamma=task.gamma, cache_mb=cache_mb, **parameters)
    start = time.process_time()
    model.learn_many(data.X, data.y)
    online = time.process_time() - start
    learned = model.kernel_evaluations
    before = {"error before": _error(model, data), "support before": model.n_support}
    predicted = model.kernel_evaluations - learned
    start = time.process_time()
    model.finish()
    finishing = time.process_time() - start
    learned = model.kernel_evaluations - predicted
    start = time.process_time()
    error = _error(model, data)
    return before | {
        "seconds": online + finishing,
        "online": online,
        "error": error,
        "support": model.n_support,
        "evaluations": learned,
        "rows_per_second": len(data.y_test) / (time.process_time() - start),
    }


def _error(model, data) -> float:
    return 100 * float(((model.decision_function_many(data.X_test) > 0) != (data.y_test > 0)).mean())


def fit_as_printed(data, task, cache_mb: float) -> dict:
    """The same with the source's REPROCESS and admission."""
    return fit_streamsvm(data, task, cache_mb, **AS_PRINTED)


def fit_along(data, task, cache_mb: float) -> dict:
    """The errors without FINISH, had the pass ended at one of the last examples; of some test examples."""
    import streamsvm

    data = data._replace(X_test=data.X_test[:TESTED], y_test=data.y_test[:TESTED])
    model, n = streamsvm.LASVM(C=task.C, gamma=task.gamma, cache_mb=cache_mb, **AS_PRINTED), len(data.y) - ENDS * APART
    model.learn_many(data.X[:n], data.y[:n])
    errors = []
    for k in range(n, len(data.y), APART):
        model.learn_many(data.X[k : k + APART], data.y[k : k + APART])
        errors.append(_error(model, data))
    return {"errors": errors}


def fit_libsvm(data, task, cache_mb: float) -> dict:
    """scikit-learn's SVC, with its default cache of 200 MB."""
    from sklearn.svm import SVC

    return _fit_sklearn(SVC(C=task.C, gamma=task.gamma), data)


def fit_intelex(data, task, cache_mb: float) -> dict:
    """scikit-learn-intelex's SVC on dense float32, the faster of its two forms on these sets."""
    import scipy.sparse as sp
    from sklearnex.svm import SVC

    dense = [np.asarray(X.todense() if sp.issparse(X) else X, np.float32) for X in (data.X, data.X_test)]
    return _fit_sklearn(SVC(C=task.C, gamma=task.gamma), data._replace(X=dense[0], X_test=dense[1]))


def _fit_sklearn(model, data) -> dict:
    start = time.process_time()
    model.fit(data.X, data.y)
    seconds = time.process_time() - start
    wrong = model.predict(data.X_test) != data.y_test
    return {"seconds": seconds, "error": 100 * float(wrong.mean()), "support": int(model.n_support_.sum())}


def fit_counted(data, task, cache_mb: float) -> dict:
    """LIBSVM's algorithm in this engine, for its kernel values; and SVC's iterations without shrinking."""
    from sklearn.svm import SVC

    import streamsvm
    from streamsvm.batch.steps.pairs import Rule
    from streamsvm.core import expansion, storage
    from streamsvm.estimators.learner.state import batches
    from streamsvm.online import finish, lasvm

    model = streamsvm.LASVM(C=task.C, gamma=task.gamma, cache_mb=200)
    s = model._state.expansion
    box = task.C * data.y.astype(float)
    for rows, q in batches(model._state, data.X, learning=True):
        bounds = np.minimum(box[rows], 0), np.maximum(box[rows], 0)
        s = lasvm.append_block(s, model._state.kernel, q, len(model._features), *bounds)
    storage.find_extremes(s)
    n = int(s.counts[expansion.SLOTS])
    s = storage.row_width(s, n, n)
    s.counts[expansion.EVALUATIONS] = 0
    start = time.process_time()
    steps = finish.solve_active(s, model._state.kernel, Rule(1e-3, 0, 1.0), 1 << 40)
    seconds = time.process_time() - start
    reference = SVC(C=task.C, gamma=task.gamma, shrinking=False).fit(data.X, data.y)
    return {
        "seconds": seconds,
        "support": int(np.count_nonzero(s.alpha)),
        "evaluations": int(s.counts[expansion.EVALUATIONS]),
        "iterations": f"{steps} iterations, SVC(shrinking=False) {int(np.sum(reference.n_iter_))}",
    }


FITS = dict(zip(ENGINES, (fit_streamsvm, fit_as_printed, fit_libsvm, fit_intelex, fit_counted), strict=True))
FITS[ALONG] = fit_along


def fit_here(arguments: argparse.Namespace) -> None:
    """Run one fit in this process and print its figures as JSON."""
    data = load(arguments.task, arguments.data, arguments.seed)
    before = peak_mb()
    figures = FITS[arguments.engine](data, TASKS[arguments.task], arguments.cache_mb)
    print(json.dumps({**figures, "peak_mb": peak_mb(), "data_mb": before}))


def fit_elsewhere(arguments: argparse.Namespace, task: str, engine: str, seed: int) -> dict | None:
    """Run one fit in a process of its own; None if the engine is not installed or the run failed."""
    words = ["--task", task, "--engine", engine, "--seed", seed, "--cache-mb", arguments.cache_mb]
    return elsewhere(__file__, *words, data=arguments.data)


def compare(arguments: argparse.Namespace) -> None:
    """Print the tables."""
    found: dict[str, dict[str, dict]] = {}
    for task in arguments.tasks:
        for engine in arguments.engines:
            repeats = 1 if engine in BATCH else arguments.repeats
            if (task, engine) in LONG and not arguments.full:
                continue
            runs = [fit_elsewhere(arguments, task, engine, seed) for seed in range(repeats)]
            if runs := [run for run in runs if run]:
                found.setdefault(task, {})[engine] = figures = _mean(runs)
                print(f"{task}, {engine}: {figures['seconds']:.3f} s", file=sys.stderr, flush=True)
    titles = "task|engine|seconds|of SVC|error %|support vectors|K values, M|peak MB|online s|rows/s|iterations"
    rows = [
        _row(task, engine, figures, of_task.get("libsvm"))
        for task, of_task in found.items()
        for engine, figures in of_task.items()
    ]
    print("## Every figure\n\n" + table(titles, rows))
    if {*BESIDE} <= {*arguments.engines}:
        rows = [_beside(TASKS[task], of_task) for task, of_task in found.items()]
        print("\n## Beside SVC and intelex\n\n" + table("data (C, gamma)|streamsvm|SVC|intelex|error %: each", rows))
    if "as printed" in arguments.engines:
        every = [(task, of_task) for task, of_task in found.items() if "as printed" in of_task]
        titles = "data (C, gamma)|error %|support vectors|kernel values, M"
        titles += "|LIBSVM: error %|support vectors|seconds of LIBSVM's"
        print("\n## One epoch and FINISH, as printed\n\n" + table(titles, [_as_printed(*one) for one in every]))
        titles = "data|error|support vectors|seconds|error before, %|support vectors before"
        print("\n## What FINISH changes\n\n" + table(titles, [_changes(*one) for one in every]))


def _mean(runs: list[dict]) -> dict:
    """Mean figures; words are those of the first run."""
    numbers = {key: statistics.fmean(run[key] for run in runs) for key, v in runs[0].items() if not isinstance(v, str)}
    return runs[0] | numbers


def show_along(arguments: argparse.Namespace) -> None:
    """Print how the error without FINISH varies."""
    rows = []
    for task in arguments.tasks:
        runs = [fit_elsewhere(arguments, task, ALONG, seed) for seed in range(arguments.repeats)]
        errors = [error for run in runs if run for error in run["errors"]]
        cells = [f"{figure(errors):.2f}" for figure in (min, statistics.median, max)]
        theirs = "-"
        if task in printed.FINISH:
            theirs = f"{printed.LASVM[task].error / (1 + printed.FINISH[task][0] / 100):.1f}"
        rows.append([task, *cells, theirs])
    print(f"## Error without FINISH\n\nIn percent, had the pass ended at one of {ENDS} examples, {APART} apart.\n")
    print(table("data|least|median|most|the source's", rows))


def _beside_source(figures: dict | None, theirs: printed.Fit | None) -> list[str]:
    """Error, support vectors and kernel values, each with the source's."""

    def cell(key: str, form: str, factor: float = 1.0) -> str:
        if figures is None or key not in figures:
            return "-"
        return form.format(factor * figures[key]) + (f" / {getattr(theirs, key):g}" if theirs else "")

    return [cell("error", "{:.2f}"), cell("support", "{:.0f}"), cell("evaluations", "{:.2f}", 1e-6)]


def _share(figures: dict, libsvm: dict | None, theirs: printed.Fit | None, task: str) -> str:
    """Seconds as a share of LIBSVM's."""
    ratio = f"{figures['seconds'] / libsvm['seconds']:.3f}" if libsvm else "-"
    return ratio + (f" / {theirs.seconds / printed.LIBSVM[task].seconds:.2f}" if theirs else "")


def _row(task: str, engine: str, figures: dict, libsvm: dict | None) -> list[str]:
    theirs = SOURCE.get(engine, {}).get(task)
    rest = [f"{figures['peak_mb']:.0f}", "-", "-"]
    if "online" in figures:
        rest[1:] = [f"{figures['online']:.2f}", f"{figures['rows_per_second']:.0f}"]
    cells = [f"{figures['seconds']:.3f}", _share(figures, libsvm, theirs, task), *_beside_source(figures, theirs)]
    return [task, engine, *cells, *rest, figures.get("iterations", "-")]


def _named(task: Task) -> str:
    words = f"{task.name} {task.positive}" if task.name in ("usps", "mnist") else task.name
    return f"{words} ({task.C:g}, {task.gamma:g})"


def _beside(task: Task, of_task: dict[str, dict]) -> list[str]:
    """Seconds and errors of our default beside the other engines."""
    every = [of_task.get(engine, {}) for engine in BESIDE]
    seconds = [shown(one.get("seconds"), "{:.2f}") for one in every]
    return [
        _named(task),
        f"**{seconds[0]}**",
        *seconds[1:],
        ", ".join(shown(one.get("error"), "{:.2f}") for one in every),
    ]


def _as_printed(task: str, of_task: dict[str, dict]) -> list[str]:
    """Figure 8: ours and LIBSVM's, with the source's."""
    ours, libsvm, theirs = of_task["as printed"], of_task.get("libsvm"), printed.LASVM.get(task)
    cells = [*_beside_source(ours, theirs), *_beside_source(libsvm, printed.LIBSVM.get(task))[:2]]
    return [_named(TASKS[task]), *cells, _share(ours, libsvm, theirs, task)]


def _changes(task: str, of_task: dict[str, dict]) -> list[str]:
    ours, theirs = of_task["as printed"], printed.FINISH.get(task)
    before = ours["error before"], ours["support before"], ours["online"]
    after = ours["error"], ours["support"], ours["seconds"]
    cells = [f"{100 * (b / a - 1):+.0f}" for a, b in zip(before, after, strict=True)]
    rest = [f"{before[0]:.2f}", f"{before[1]:.0f}"]
    if theirs:
        cells = [f"{ours} / {source:+d}" for ours, source in zip(cells, theirs, strict=True)]
        source = printed.LASVM[task]
        rest[0] += f" / {source.error / (1 + theirs[0] / 100):.1f}"
        rest[1] += f" / {source.support / (1 + theirs[1] / 100):.0f}"
    return [task, *cells, *rest]


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--repeats", type=int, default=1, help="orders to average over; batch solvers learn the first")
    parser.add_argument("--cache-mb", type=float, default=64.0, help="streamsvm's row cache")
    parser.add_argument("--quick", action="store_true", help="the small tasks only")
    parser.add_argument("--full", action="store_true", help="SVC on mnist, too: many minutes")
    parser.add_argument("--along", action="store_true", help="the error without FINISH at the end of a pass")
    parser.add_argument("--task", choices=list(TASKS), help=argparse.SUPPRESS)
    parser.add_argument("--engine", choices=list(FITS), help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        fit_here(arguments)
    else:
        arguments.tasks = list(QUICK) if arguments.quick else arguments.tasks
        (show_along if arguments.along else compare)(arguments)


if __name__ == "__main__":
    main()
