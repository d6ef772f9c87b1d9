"""Ten digits, one against the rest: the MNIST experiments of the LASVM paper, and what the classes' sharing saves.

    python benchmarks/mnist.py --data DIR                    # everything on 10000 digits
    python benchmarks/mnist.py --data DIR --quick            # 3000 digits
    python benchmarks/mnist.py --data DIR --parts digits --full      # all 60000, about an hour; it says how far it is
    python benchmarks/mnist.py --data DIR --plot DIR         # and pictures of the curves; needs matplotlib

`digits`: error, seconds and support vectors of LASVM after one epoch and after two, each finished, beside LIBSVM
(scikit-learn's SVC), one model for each digit, and seconds over support vectors.  An example comes with the same id
again in the second epoch: who has it as a member does not learn it again.  `epochs`: how many epochs it takes until
FINISH finds nothing to do.  `sharing`: one model of ten classes against ten models of one.  `cache`: seconds against
the row cache, for one digit.  `delta`: banana, with REPROCESS repeated until the violation is at most `delta_max`.

Every fit runs in a process of its own with one thread; seconds are CPU seconds of the fit alone, with compiled code
loaded before.

Source: Bordes, Ertekin, Weston, Bottou, "Fast kernel classifiers with online and active learning", JMLR 6 (2005),
section 3.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from datasets import TASKS, Data, Task, load, load_digits
from lasvm import AS_PRINTED, THREADS
from papers.printed import DIGITS as SOURCE
from papers.tables import table
from sklearn.svm import SVC
from tqdm import tqdm

import streamsvm

C, GAMMA = 1000.0, 0.005
CACHE_MB = 256.0
DIGITS = range(10)
CACHES = (1, 2, 4, 8, 16, 64, 256)  # MB; the kernel matrix of 10000 digits has 400, that of their members 8
DELTAS = (1000.0, 100.0, 10.0, 5.0, 2.0, 1.0, 0.5)
SHUFFLES = 3  # of banana
MOST_EPOCHS = 12
SHARING = {  # parameters, and the share of the digits that it learns: FULL keeps all of them, in every class
    "LASVM": ({"C": C, "gamma": GAMMA}, 1.0),
    "LASVMG": ({"C": C, "gamma": GAMMA}, 0.5),
    "FullSVM": ({"C": C, "gamma": GAMMA}, 0.2),
}


# ---------------------------------------------------------------------------------------------------------------- jobs


def warm_up(model) -> None:
    """Load the compiled code that a model needs."""
    rng = np.random.default_rng(0)
    X = rng.random((600, 784)) * (rng.random((600, 784)) < 0.2)
    y = np.arange(600) % 2
    several = isinstance(model, streamsvm.OneVsRest)
    small = model.clone() if not several else streamsvm.OneVsRest(model.model)
    small.learn_many(X, y, ids=np.arange(600))
    small.learn_many(X, y, ids=np.arange(600))
    small.finish()
    small.decision_function_many(X)


def scores(data: Data, values: np.ndarray) -> dict:
    """Errors in percent: of all classes together, and of each against the rest."""
    of_digits = (values > 0) != (data.y_test[:, np.newaxis] == np.array(DIGITS))
    return {
        "error": 100 * float(np.mean(values.argmax(axis=1) != data.y_test)),
        "errors": (100 * of_digits.mean(axis=0)).tolist(),
    }


def fit_lasvm(data: Data, reprocess: str | int) -> dict[str, dict]:
    """One epoch, and two; both finished."""
    how = AS_PRINTED if reprocess == 1 else {"reprocess": reprocess}
    epochs = ("1 epoch", "2 epochs")
    values: dict[str, list] = {name: [] for name in epochs}
    seconds: dict[str, list[float]] = {name: [] for name in epochs}
    support: dict[str, list[np.ndarray]] = {name: [] for name in epochs}
    warm_up(streamsvm.LASVM(C, gamma=GAMMA, **how))
    for digit in tqdm(DIGITS, desc=f"LASVM, reprocess={reprocess}, {len(data.y)} examples"):
        model, learning = streamsvm.LASVM(C, gamma=GAMMA, cache_mb=CACHE_MB, **how), 0.0
        for name in epochs:
            learning += timed(model.learn_many, data.X, data.y == digit, ids=np.arange(len(data.y)))
            finished = copy.deepcopy(model)
            seconds[name].append(learning + timed(finished.finish))
            support[name].append(finished.support_ids)
            values[name].append(finished.decision_function_many(data.X_test))
    return {name: figures(data, values[name], seconds[name], support[name]) for name in epochs}


def fit_libsvm(data: Data) -> dict:
    """One SVC for each digit."""
    values, seconds, support = [], [], []
    for digit in tqdm(DIGITS, desc=f"LIBSVM, {len(data.y)} examples"):
        model = SVC(C=C, gamma=GAMMA, cache_size=CACHE_MB)
        seconds.append(timed(model.fit, data.X, data.y == digit))
        support.append(model.support_)
        values.append(model.decision_function(data.X_test))
    return figures(data, values, seconds, support)


def timed(call, *arguments, **named) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    call(*arguments, **named)
    return time.process_time() - start


def figures(data: Data, values: list[np.ndarray], seconds: list[float], support: list[np.ndarray]) -> dict:
    """Of ten models, each of a digit against the rest."""
    return {
        "seconds": sum(seconds),
        "of each": seconds,
        "support": len(np.unique(np.concatenate(support))),
        "each": [len(ids) for ids in support],
        **scores(data, np.column_stack(values)),
    }


def epochs_until_exact(data: Data) -> list[dict]:
    """8 against the rest, epoch after epoch without FINISH, until its violation is at most the tolerance."""
    model = streamsvm.LASVM(C, gamma=GAMMA, cache_mb=CACHE_MB, **AS_PRINTED)
    warm_up(model)
    found: list[dict] = []
    seconds, y = 0.0, data.y == 8
    while len(found) < MOST_EPOCHS and (not found or found[-1]["left"] > 0):
        seconds += timed(model.learn_many, data.X, y, ids=np.arange(len(y)))
        finished = copy.deepcopy(model)
        finishing = timed(finished.finish)
        error = 100 * float(np.mean(model.predict_many(data.X_test) != (data.y_test == 8)))
        outside = model.decision_function_many(data.X) * np.where(y, 1, -1)
        members = np.zeros(len(y), bool)
        members[model.support_ids] = True
        found.append(
            {
                "seconds": seconds,
                "finishing": finishing,
                "error": error,
                "support": model.n_support,
                "delta": model.delta,
                "left": int((~members & (outside < 1 - 2 * model.tol)).sum()),
            }
        )
    return found


def share(data: Data, algorithm: str) -> dict:
    """The same ten models, together and one by one."""
    parameters, part = SHARING[algorithm]
    n = int(part * len(data.y))
    prototype = getattr(streamsvm, algorithm)(cache_mb=CACHE_MB, **parameters)
    models = {"together": [streamsvm.OneVsRest(prototype, [*DIGITS])], "apart": [prototype.clone() for _ in DIGITS]}
    results, values = {"n": n}, {}
    for how, several in models.items():
        warm_up(several[0])
        start = time.process_time()
        for digit, model in enumerate(several):
            model.learn_many(data.X[:n], data.y[:n] if how == "together" else data.y[:n] == digit)
        learned = time.process_time()
        evaluations = sum(model.kernel_evaluations for model in several)
        values[how] = np.column_stack([model.decision_function_many(data.X_test) for model in several])
        seconds = learned - start, time.process_time() - learned
        results[how] = {"learning": seconds[0], "prediction": seconds[1], "evaluations": evaluations / 1e6}
    one = models["together"][0]
    results["members"] = sum(model.n_members for model in models["apart"]) / one.n_members
    results["difference"] = float(np.abs(values["together"] - values["apart"]).max())
    return results


def fit_cached(data: Data, engine: str) -> list[dict]:
    """One digit against the rest, with each size of the row cache."""
    y, results = data.y == 8, []
    if engine == "LASVM":
        warm_up(streamsvm.LASVM(C, gamma=GAMMA))
    for cache_mb in CACHES:
        start = time.process_time()
        if engine == "LASVM":
            model = streamsvm.LASVM(C, gamma=GAMMA, cache_mb=cache_mb)
            model.learn_many(data.X, y)
            model.finish()
            seconds, predicted = time.process_time() - start, model.predict_many(data.X_test)
        else:
            svc = SVC(C=C, gamma=GAMMA, cache_size=cache_mb).fit(data.X, y)
            seconds, predicted = time.process_time() - start, svc.predict(data.X_test)
        results.append({"seconds": seconds, "error": 100 * float(np.mean(predicted != (data.y_test == 8)))})
    return results


def fit_banana(folder: Path | None) -> list[dict]:
    """One epoch with REPROCESS repeated until each `delta_max`, before FINISH and after it: means over the shuffles."""
    task = TASKS["banana"]
    shuffles = [load(task, folder, seed) for seed in range(SHUFFLES)]
    warm_up(streamsvm.LASVM(task.C, gamma=task.gamma, reprocess=1))
    means = []
    for delta_max in DELTAS:
        runs = [learn_banana(data, task, delta_max) for data in shuffles]
        means.append({name: statistics.fmean(run[name] for run in runs) for name in runs[0]})
    return means


def learn_banana(data: Data, task: Task, delta_max: float) -> dict:
    """One epoch, and FINISH."""
    paper_s = {"reprocess": 1, "admission": "violation"}
    model = streamsvm.LASVM(task.C, gamma=task.gamma, delta_max=delta_max, **paper_s)
    start = time.process_time()
    model.learn_many(data.X, data.y)
    results = {"learning": time.process_time() - start, **_now(model, data, "before")}
    start = time.process_time()
    model.finish()
    return {**results, "finishing": time.process_time() - start, **_now(model, data, "after")}


def _now(model, data: Data, when: str) -> dict:
    wrong = model.predict_many(data.X_test) != (data.y_test > 0)
    return {f"error {when}": 100 * float(wrong.mean()), f"support {when}": model.n_support}


def run_here(job: list, folder: Path | None) -> None:
    """Run one fit in this process, and print its figures as JSON."""
    what, n, *rest = job
    if what == "banana":
        print(json.dumps(fit_banana(folder)))
    else:
        jobs = {
            "lasvm": fit_lasvm,
            "libsvm": fit_libsvm,
            "share": share,
            "cached": fit_cached,
            "epochs": epochs_until_exact,
        }
        print(json.dumps(jobs[what](load_digits(folder, n, 10000), *rest)))


def elsewhere(arguments: argparse.Namespace, what: str, *rest) -> Any:
    """Run one fit in a process of its own, with one thread."""
    command = [sys.executable, __file__, "--job", json.dumps([what, arguments.n, *rest])]
    command += ["--data", str(arguments.data)] if arguments.data else []
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


# -------------------------------------------------------------------------------------------------------------- tables


def digits(arguments: argparse.Namespace) -> None:
    """LASVM beside LIBSVM, all digits together and each by itself."""
    runs = {"LIBSVM": elsewhere(arguments, "libsvm")}
    for name, reprocess in (("LASVM", 1), ("LASVM, adaptive", "adaptive")):
        of_epochs = elsewhere(arguments, "lasvm", reprocess)
        runs |= {f"{name}, {epochs}": run for epochs, run in of_epochs.items()}
    reference = runs["LIBSVM"]["seconds"]
    rows = []
    for name, run in runs.items():
        error, seconds = SOURCE.get(name, (None, None))
        theirs = ["-", "-"] if error is None else [f"{error:.2f}", f"{seconds / SOURCE['LIBSVM'][1]:.2f}"]
        ours = [f"{run['error']:.2f}", f"{run['seconds']:.1f}", f"{run['seconds'] / reference:.2f}"]
        rows.append([name, *ours, str(run["support"]), str(sum(run["each"])), *theirs])
    print(f"\nTen digits, {arguments.n} examples, C = {C:g}, gamma = {GAMMA:g}; the paper's are of 60000\n")
    titles = "|error %|seconds|of LIBSVM|support vectors|sum of the classes'|paper's error %|paper's of LIBSVM"
    print(table(titles, rows))
    print("\nEach digit against the rest: error in percent, support vectors, and seconds\n")
    rows = []
    for digit in DIGITS:
        cells = [
            f"{run['errors'][digit]:.2f}, {run['each'][digit]}, {run['of each'][digit]:.2f}" for run in runs.values()
        ]
        rows.append([str(digit), *cells])
    print(table("digit|" + "|".join(runs), rows), flush=True)
    if arguments.plot:
        draw_seconds(arguments.plot / "mnist-seconds.png", runs)


def epochs(arguments: argparse.Namespace) -> None:
    """Epoch after epoch."""
    rows = [
        [
            str(n + 1),
            *(f"{run[key]:.{d}f}" for key, d in (("seconds", 2), ("finishing", 2), ("error", 2))),
            *(f"{run[key]:.{d}f}" for key, d in (("support", 0), ("delta", 3), ("left", 0))),
        ]
        for n, run in enumerate(elsewhere(arguments, "epochs"))
    ]
    print(f"\nEpochs of 8 against the rest, {arguments.n} examples: figures before FINISH, and what FINISH would do\n")
    titles = "epoch|seconds so far|FINISH, s|error %|support vectors|violation among members|violators outside"
    print(table(titles, rows), flush=True)


def sharing(arguments: argparse.Namespace) -> None:
    """One model of ten classes against ten models."""
    rows = []
    for algorithm in SHARING:
        run = elsewhere(arguments, "share", algorithm)
        together, apart = run["together"], run["apart"]
        cells = [f"{apart[what] / together[what]:.2f}" for what in ("evaluations", "learning", "prediction")]
        seconds = f"{together['learning']:.1f} / {apart['learning']:.1f}"
        rows.append([algorithm, str(run["n"]), f"{run['members']:.2f}", *cells, seconds, f"{run['difference']:g}"])
    print("\nTen models apart, over the same together: how many times the work\n")
    titles = "|examples|members|kernel values|learning|prediction|seconds together / apart|largest difference of f"
    print(table(titles, rows), flush=True)


def cache(arguments: argparse.Namespace) -> None:
    """Seconds against the size of the row cache."""
    runs = {engine: elsewhere(arguments, "cached", engine) for engine in ("LASVM", "LIBSVM")}
    most = {engine: run[-1]["seconds"] for engine, run in runs.items()}
    rows = []
    for k, mb in enumerate(CACHES):
        cells = [f"{runs[engine][k]['seconds']:.2f}" for engine in runs]
        cells += [f"{runs[engine][k]['seconds'] / most[engine]:.2f}" for engine in runs]
        rows.append([f"{mb} MB", *cells, *(f"{runs[engine][k]['error']:.2f}" for engine in runs)])
    print(f"\nRow cache: 8 against the rest, {arguments.n} examples\n")
    titles = "cache|LASVM, seconds|LIBSVM, seconds|of the largest cache's|LIBSVM|LASVM, error %|LIBSVM, error %"
    print(table(titles, rows), flush=True)
    if arguments.plot:
        lines = {engine: [run["seconds"] for run in runs[engine]] for engine in runs}
        draw(arguments.plot / "mnist-cache.png", "row cache, MB", "CPU seconds", CACHES, lines)


def delta(arguments: argparse.Namespace) -> None:
    """Banana: how far REPROCESS goes after each example."""
    rows, lines = [], {"before FINISH": [], "after FINISH": []}
    for delta_max, mean in zip(DELTAS, elsewhere(arguments, "banana"), strict=True):
        cells = [
            f"{mean[f'{what} {when}']:.{d}f}"
            for when in ("before", "after")
            for what, d in (("error", 2), ("support", 0))
        ]
        rows.append([f"{delta_max:g}", *cells, f"{mean['learning']:.2f}", f"{mean['finishing']:.2f}"])
        for when, line in lines.items():
            line.append(mean[f"error {when.split()[0]}"])
    print(f"\nbanana, REPROCESS until delta <= delta_max; shuffles: {SHUFFLES}\n")
    titles = "delta_max|error % before FINISH|support|error % after|support|seconds online|FINISH"
    print(table(titles, rows), flush=True)
    if arguments.plot:
        draw(arguments.plot / "mnist-delta.png", "delta_max", "test error, %", DELTAS, lines)


def draw(path: Path, x_label: str, y_label: str, x, lines: dict[str, list[float]]) -> None:
    """Draw some curves over a logarithmic scale."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6, 4), layout="constrained").subplots()
    for name, y in lines.items():
        axes.plot(x, y, "o-", markersize=4, label=name)
    axes.set(xscale="log", xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path, dpi=110)


def draw_seconds(path: Path, runs: dict[str, dict]) -> None:
    """Seconds over support vectors, a point for each digit: the paper's Figure 3."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6, 4), layout="constrained").subplots()
    for name in ("LIBSVM", "LASVM, 1 epoch"):
        axes.plot(runs[name]["each"], runs[name]["of each"], "o", label=name)
    axes.set(xlabel="support vectors", ylabel="CPU seconds", yscale="log", title="ten digits, each against the rest")
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path, dpi=80)


PARTS = {"digits": digits, "epochs": epochs, "sharing": sharing, "cache": cache, "delta": delta}


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_const", const=3000, dest="n", help="3000 digits")
    size.add_argument("--full", action="store_const", const=60000, dest="n", help="all 60000 digits")
    parser.add_argument("--plot", type=Path, help="folder for pictures; default: none are drawn")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    parser.set_defaults(n=10000)
    arguments = parser.parse_args()
    if arguments.job:
        run_here(arguments.job, arguments.data)
        return
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
