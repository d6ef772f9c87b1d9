"""LASVM beside LIBSVM and its faster relatives, in one run on one thread.

    python benchmarks/lasvm.py --data DIR            # every task; without --data, from OpenML
    python benchmarks/lasvm.py --data DIR --quick    # the small ones

Every fit runs in a process of its own with one thread, so that seconds are CPU seconds of that fit alone and the peak
memory is that process's.  `streamsvm` makes one pass and finishes.  LIBSVM does not count kernel values; `libsvm
(counted)` runs its algorithm (second-order pairs from zero, no shrinking, a row cache of 200 MB) in this engine and
counts them.  Its iterations stand beside those of `SVC(shrinking=False)`, which shows that it is the same algorithm.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from datasets import TASKS, load

ENGINES = ("streamsvm", "libsvm", "intelex", "libsvm (counted)")
QUICK = ("banana", "waveform", "letter", "usps")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "TBB_NUM_THREADS")


def peak_mb() -> float:
    """Largest resident size of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fit_streamsvm(data, task, cache_mb: float) -> dict:
    """One pass and finish; compiled code is loaded before the clock starts."""
    import streamsvm

    streamsvm.warmup(streamsvm.LASVM)
    model = streamsvm.LASVM(C=task.C, gamma=task.gamma, cache_mb=cache_mb)
    start = time.process_time()
    model.learn_many(data.X, data.y)
    middle = time.process_time()
    model.finish()
    end = time.process_time()
    learned = model.kernel_evaluations
    wrong = (model.decision_function_many(data.X_test) > 0) != (data.y_test > 0)
    predicted = time.process_time()
    return {
        "seconds": end - start,
        "online": middle - start,
        "error": 100 * float(wrong.mean()),
        "support": model.n_support,
        "evaluations": learned,
        "rows_per_second": len(wrong) / (predicted - end),
    }


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
    from streamsvm.batch.steps import Rule
    from streamsvm.core import expansion, storage
    from streamsvm.online import finish, lasvm

    model = streamsvm.LASVM(C=task.C, gamma=task.gamma, cache_mb=200)
    s = model._expansion
    box = task.C * data.y.astype(float)
    for rows, q in model._features.batches(data.X, learning=True):
        binary = expansion.is_binary(s) and bool((q.values == 1).all())
        s = storage.reserve(s, len(q.sq), len(model._features), binary, len(q.indices))
        lasvm.append_block(s, model._kernel, *q, np.minimum(box[rows], 0), np.maximum(box[rows], 0))
    storage.find_extremes(s)
    n = int(s.counts[expansion.SLOTS])
    s = storage.row_width(s, n, n)
    s.counts[expansion.EVALUATIONS] = 0
    start = time.process_time()
    steps = finish.solve_active(s, model._kernel, Rule(1e-3, 0, 1.0), 1 << 40)
    seconds = time.process_time() - start
    reference = SVC(C=task.C, gamma=task.gamma, shrinking=False).fit(data.X, data.y)
    return {
        "seconds": seconds,
        "support": int(np.count_nonzero(s.alpha)),
        "evaluations": int(s.counts[expansion.EVALUATIONS]),
        "iterations": f"{steps} iterations, SVC(shrinking=False) {int(np.sum(reference.n_iter_))}",
    }


FITS = dict(zip(ENGINES, (fit_streamsvm, fit_libsvm, fit_intelex, fit_counted), strict=True))


def fit_here(arguments: argparse.Namespace) -> None:
    """Run one fit in this process and print its figures as JSON."""
    data = load(arguments.task, arguments.data, arguments.seed)
    before = peak_mb()
    figures = FITS[arguments.engine](data, TASKS[arguments.task], arguments.cache_mb)
    print(json.dumps({**figures, "peak_mb": peak_mb(), "data_mb": before}))


def fit_elsewhere(arguments: argparse.Namespace, task: str, engine: str, seed: int) -> dict | None:
    """Run one fit in a process of its own; None if the engine is not installed or the run failed."""
    command = [sys.executable, __file__, "--task", task, "--engine", engine, "--seed", str(seed)]
    command += ["--cache-mb", str(arguments.cache_mb)] + (["--data", str(arguments.data)] if arguments.data else [])
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
        print(f"{task:9} {engine:17} not measured: {reason}", flush=True)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(arguments: argparse.Namespace) -> None:
    """Print the table."""
    titles, widths = ("of SVC", "error %", "support", "K values M", "peak MB"), (7, 8, 8, 10, 8)
    rest = " ".join(f"{title:>{width}}" for title, width in zip(titles, widths, strict=True))
    print(f"{'task':9} {'engine':17} {'seconds':>8} {rest}")
    for task in arguments.tasks:
        reference = None
        for engine in sorted(arguments.engines, key=lambda engine: engine != "libsvm"):
            runs = [fit_elsewhere(arguments, task, engine, seed) for seed in range(arguments.repeats)]
            runs = [run for run in runs if run]
            if not runs:
                continue
            mean = {
                key: statistics.fmean(run[key] for run in runs) for key in runs[0] if not isinstance(runs[0][key], str)
            }
            reference = mean["seconds"] if engine == "libsvm" else reference
            print(_row(task, engine, mean, reference, runs[0]), flush=True)


def _row(task: str, engine: str, mean: dict, reference: float | None, first: dict) -> str:
    ratio = f"{mean['seconds'] / reference:7.3f}" if reference else " " * 7
    error = f"{mean['error']:8.2f}" if "error" in mean else " " * 8
    evaluations = f"{mean['evaluations'] / 1e6:10.2f}" if "evaluations" in mean else " " * 10
    notes = (
        f"  online {mean['online']:.2f} s, predicts {mean['rows_per_second']:.0f} rows/s" if "online" in mean else ""
    )
    notes += f"  {first['iterations']}" if "iterations" in first else ""
    return (
        f"{task:9} {engine:17} {mean['seconds']:8.3f} {ratio} {error} {mean['support']:8.0f} {evaluations} "
        f"{mean['peak_mb']:8.0f}{notes}"
    )


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--repeats", type=int, default=1, help="orders of the training data to average over")
    parser.add_argument("--cache-mb", type=float, default=64.0, help="streamsvm's row cache")
    parser.add_argument("--quick", action="store_true", help="the small tasks only")
    parser.add_argument("--task", choices=list(TASKS), help=argparse.SUPPRESS)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        fit_here(arguments)
    else:
        arguments.tasks = list(QUICK) if arguments.quick else arguments.tasks
        compare(arguments)


if __name__ == "__main__":
    main()
