"""The gap family beside Table 3 of its source, and what it costs.

    python benchmarks/gap_family.py --data DIR                      # everything, in about a quarter of an hour
    python benchmarks/gap_family.py --data DIR --quick              # usps with wrong labels in one shuffle: a minute
    python benchmarks/gap_family.py --data DIR --parts table --tasks mnist --repeats 1     # all 60000 digits

Table 3 of Ertekin, Bottou, Giles, "Ignorance is Bliss: Non-Convex Online Support Vector Machines" (a manuscript; the
published form is "Nonconvex online support vector machines", IEEE TPAMI 33, 2011), has the figures after one epoch
without FINISH; so have ours.  `SVC` is scikit-learn's, as a reference for all four.  Then follow:
which of the source's claims hold, `sparsify`, steps of two members against steps of one, speed, and sparse input.
Without --data, the sets come from OpenML; reuters is not there.

Every fit runs in a process of its own with one thread; seconds are CPU seconds of the fit alone, with compiled code
loaded before.  Kernel values count again when they are computed again, because their row had to leave the row cache of
256 MB (`--cache-mb`).
"""

import argparse
import functools
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from datasets import GAP_TASKS, Data, Task, load
from lasvm import THREADS, peak_mb
from numba import njit
from papers.printed import GAP
from pieces import _microseconds, _rows, _sums

import streamsvm
from streamsvm.core import expansion, storage
from streamsvm.core.rows import member_row
from streamsvm.metrics import prbep_score
from streamsvm.online import arrival, gap_steps

CACHE_MB = 256.0
FAMILY = {"FULL": streamsvm.FullSVM, "G": streamsvm.LASVMG, "NC": streamsvm.LASVMNC, "I": streamsvm.LASVMI}
BATCH = ("SVC", "intelex")
DEFAULT = ("banana", "a9a", "usps", "usps+N", "mnist-20k", "reuters")
QUICK = ("usps+N",)
NOISY = ("banana", "a9a", "usps+N")

COLUMNS = {  # of the table: width and digits
    "accuracy": (5, 2),
    "PRBEP": (5, 2),
    "AUC": (5, 3),
    "g-means": (5, 2),
    "support": (5, 0),
    "K values M": (6, 1),
    "seconds": (6, 2),
}


# --------------------------------------------------------------------------------------------- in a process of its own


def fit(data: Data, task: Task, engine: str, n: int | None = None, **parameters) -> dict:
    """One pass without FINISH, over the first n examples if given; or the fit of a batch solver."""
    if engine in BATCH:
        return fit_batch(data, task, engine)
    model = new_model(task, engine, **parameters)
    seconds = timed(model.learn_many, data.X[:n], data.y[:n])
    figures = {"K values M": model.kernel_evaluations / 1e6, "reprocess": model.n_reprocess, "seconds": seconds}
    return figures | quality(model, data)


def new_model(task: Task, engine: str, cache_mb: float = CACHE_MB, **parameters):
    """A model with the task's hyper-parameters; compiled code is loaded."""
    streamsvm.warmup(FAMILY[engine])
    return FAMILY[engine](C=task.C, gamma=task.gamma, cache_mb=cache_mb, **parameters)


def timed(call, *arguments) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start


def quality(model, data: Data) -> dict:
    """Support vectors, and the test figures of a model of the family."""
    return {"support": model.n_support} | scores(model.decision_function_many(data.X_test), data.y_test > 0)


def scores(f: np.ndarray, positive: np.ndarray) -> dict:
    """Test figures of the decision values f, in percent but for the AUC."""
    recalls = (f[positive] > 0).mean(), (f[~positive] <= 0).mean()
    return {
        "accuracy": 100 * float(((f > 0) == positive).mean()),
        "PRBEP": 100 * prbep_score(positive, f),
        "AUC": area_under_roc(f, positive),
        "g-means": 100 * float(np.sqrt(recalls[0] * recalls[1])),
    }


def area_under_roc(f: np.ndarray, positive: np.ndarray) -> float:
    """Share of pairs in the right order; from mean ranks, so that half of the equal pairs count."""
    _, group, size = np.unique(f, return_inverse=True, return_counts=True)
    ranks, p = (np.cumsum(size) - (size - 1) / 2)[group], int(positive.sum())
    return float((ranks[positive].sum() - p * (p + 1) / 2) / (p * (len(f) - p)))


def fit_batch(data: Data, task: Task, engine: str) -> dict:
    """scikit-learn's SVC with its default cache of 200 MB; or scikit-learn-intelex's, on dense float32."""
    if engine == "SVC":
        from sklearn.svm import SVC

        X, X_test = data.X, data.X_test
    else:
        from sklearnex.svm import SVC

        X, X_test = dense(data.X), dense(data.X_test)
    model = SVC(C=task.C, gamma=task.gamma)
    seconds = timed(model.fit, X, data.y)
    figures = {"support": int(model.n_support_.sum()), "seconds": seconds}
    return figures | scores(model.decision_function(X_test), data.y_test > 0)


def dense(X) -> np.ndarray:
    """The matrix as an array of float32."""
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), np.float32)


def polish(data: Data, task: Task, engine: str) -> dict:
    """A model after one pass, and after `sparsify`."""
    model = new_model(task, engine)
    learning = timed(model.learn_many, data.X, data.y)
    before = quality(model, data)
    polishing = timed(model.sparsify)
    return {"before": before, "after": quality(model, data), "learning": learning, "polishing": polishing}


FORMS = ("sparse, compressed when wide", "sparse, compressed from the start", "sparse, never compressed", "dense array")


def fit_form(data: Data, task: Task, engine: str, form: str) -> dict:
    """One pass over sparse data in one of the forms; what it takes beyond the data and an empty model."""
    storage.members.WIDE_BYTES = {FORMS[0]: storage.members.WIDE_BYTES, FORMS[1]: 0}.get(form, 1 << 60)
    X, model = dense(data.X) if form == FORMS[3] else data.X, new_model(task, engine)
    before = peak_mb()
    seconds = timed(model.learn_many, X, data.y)
    kind = ("bytes", "dense", "compressed")[model._expansion.counts[expansion.STORAGE]]
    return {"seconds": seconds, "MB": peak_mb() - before, "data MB": before, "kind": kind} | quality(model, data)


PIECES = ("row of the example", "f = sum alpha K", "rows of members", "second-order partner", "gradient, extremes, gap")


def split(data: Data, task: Task, engine: str, parts: int = 16) -> dict:
    """Where the time of a pass goes: what each piece takes at the sizes the model has had, times how often it ran.

    After each sixteenth of the pass, the pieces are timed by themselves at the size of that moment; but squeezing holes
    out and growing are clocked where they happen.  What is left are copies of rows into the cache, the first touch of
    its memory, CLEAN, and the steps themselves.
    """
    model, n, clock = new_model(task, engine), data.X.shape[0], Clock(arrival.reserve)
    arrival.reserve = clock
    s_min = model._rule.ramp_s if model._rule.ramp else -np.inf
    pieces, seconds, steps = dict.fromkeys(PIECES, 0.0), 0.0, 0
    for begin, end in itertools.pairwise(np.linspace(0, n, parts + 1).astype(int)):
        values, reprocessed, start = model.kernel_evaluations, model.n_reprocess, time.process_time()
        margins = model._learn_many(data.X[begin:end], data.y[begin:end], None, None) * data.y[begin:end]
        seconds += time.process_time() - start
        processed, reprocessed = int(((margins < 1) & (margins >= s_min)).sum()), model.n_reprocess - reprocessed
        fetched, size = processed + 2 * reprocessed, int(model._expansion.counts[expansion.SLOTS])
        missing = max(1, (model.kernel_evaluations - values - (end - begin) * size) // fetched)
        counts = (end - begin, end - begin, fetched, reprocessed, processed + reprocessed)
        for piece, count, took in zip(PIECES, counts, piece_times(model, data.X[begin], missing), strict=True):
            pieces[piece] += count * took / n
        steps += processed + reprocessed
    each, pieces["squeezing and growing"] = 1e6 * seconds / n, 1e6 * clock.seconds / n
    return {"each": each, **pieces, "rest": each - sum(pieces.values()), "slots": size, "steps": steps / n}


class Clock:
    """A function that adds up the CPU seconds it takes."""

    def __init__(self, call) -> None:
        self.call, self.seconds = call, 0.0

    def __call__(self, *arguments):
        start = time.process_time()
        answer = self.call(*arguments)
        self.seconds += time.process_time() - start
        return answer


def piece_times(model, x, missing: int) -> list[float]:
    """Microseconds of each piece, at random members with cached rows: most of those are not in the processor's cache.

    The end of a member's row is completed, by so many `missing` values.
    """
    s, kernel = model._expansion, model._kernel
    n, evaluations = int(s.counts[expansion.SLOTS]), int(s.counts[expansion.EVALUATIONS])
    _, q = next(model._features.batches(x.reshape(1, -1), learning=False))
    members = np.random.default_rng(0).permutation(np.flatnonzero(s.row_of[:n] >= 0))[:4096]
    took = [
        _microseconds(_rows, s, kernel, q.indices, q.values, q.sq[0], n),
        _microseconds(_sums, s.alpha[:n], s.scratch[:n]),
        *(_microseconds_each(piece, s, kernel, members, missing) for piece in (_completions, _partners, _scans)),
    ]
    s.counts[expansion.EVALUATIONS] = evaluations
    return took


def _microseconds_each(piece, s, kernel, members, missing) -> float:
    """Microseconds for one of the members; the fastest of a few passes over all of them."""
    piece(s, kernel, members[:1], missing)
    return 1e6 * min(timed(piece, s, kernel, members, missing) for _ in range(5)) / len(members)


@njit(nogil=True)
def _completions(s, kernel, members, missing):
    n = s.counts[expansion.SLOTS]
    for i in members:
        r = s.row_of[i]
        s.row_length[r] = min(s.row_length[r], max(n - missing, 0))
        member_row(s, kernel, i, -1)


@njit(nogil=True)
def _partners(s, kernel, members, missing):
    n, total = s.counts[expansion.SLOTS], 0
    for i in members:
        row = s.rows[s.row_of[i], :n]
        total += gap_steps.second_order_partner(s.g[:n], s.up[:n], s.down[:n], s.self_k[:n], i, row)
    return total


@njit(nogil=True)
def _scans(s, kernel, members, missing):
    n = s.counts[expansion.SLOTS]
    for i in members:
        gap_steps.scan(s, 0.0, 0.0, s.scratch[:n], s.rows[s.row_of[i], :n])


JOBS = {"fit": fit, "polish": polish, "form": fit_form, "split": split}


def run_here(request: dict) -> None:
    """Do one job in this process and print its figures as JSON."""
    task, folder = GAP_TASKS[request.pop("task")], request.pop("data")
    job, seed = JOBS[request.pop("job")], request.pop("seed")
    print(json.dumps(job(load(task, folder and Path(folder), seed), task, **request)))


@functools.cache
def elsewhere(data: Path | None, job: str, task: str, engine: str, seed: int = 0, **parameters) -> dict | None:
    """Do one job in a process of its own, once; None if it failed, which is said."""
    request = {"data": data and str(data), "job": job, "task": task, "engine": engine, "seed": seed, **parameters}
    command = [sys.executable, __file__, "--job", json.dumps(request)]
    done = subprocess.run(command, env=os.environ | dict.fromkeys(THREADS, "1"), capture_output=True, text=True)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
        print(f"{task} {engine}: not measured: {reason}", flush=True)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


# --------------------------------------------------------------------------------------------------------------- parts


def means(arguments: argparse.Namespace, task: str, engine: str) -> dict | None:
    """Mean figures over the shuffles.  A batch solver does not depend on the order: one run, if the split is fixed."""
    once = engine in BATCH and not GAP_TASKS[task].anew
    cache = {} if engine in BATCH or arguments.cache_mb == CACHE_MB else {"cache_mb": arguments.cache_mb}
    seeds = range(1 if once else arguments.repeats)
    runs = [run for seed in seeds if (run := elsewhere(arguments.data, "fit", task, engine, seed, **cache))]
    return {key: statistics.fmean(run[key] for run in runs) for key in runs[0]} if runs else None


def table(arguments: argparse.Namespace) -> None:
    """Table 3, ours / the source's, and which of its claims hold."""
    print(f"\nTable 3 (ours / the source's), shuffles: {arguments.repeats}, one epoch, no FINISH\n")
    titles = "  ".join(f"{name:>{2 * width + 3}}" for name, (width, _) in COLUMNS.items())
    print(f"{'task':9} {'':4}  {titles}")
    for task in arguments.tasks:
        rows = {engine: means(arguments, task, engine) for engine in (*FAMILY, "SVC")}
        for engine, figures in rows.items():
            if figures:
                print(row_of_table(task, engine, figures), flush=True)
        if all(rows.values()):
            claims(task, rows)


def row_of_table(task: str, engine: str, figures: dict) -> str:
    """One row: ours / the source's."""
    known = dict(zip(COLUMNS, GAP.get((task, engine), ()), strict=False))

    def number(x: float | None, width: int, digits: int) -> str:
        return f"{x:{width}.{digits}f}" if x is not None else f"{'-':>{width}}"

    cells = [f"{number(figures.get(name), *form)} / {number(known.get(name), *form)}" for name, form in COLUMNS.items()]
    return f"{task:9} {engine:4}  {'  '.join(cells)}"


def claims(task: str, rows: dict[str, dict]) -> None:
    """Print which of the source's claims hold on this task."""

    def say(holds: bool, claim: str) -> None:
        print(f"    {'holds' if holds else 'does not hold':13}  {claim}", flush=True)

    for engine in ("NC", "I") if task in NOISY else ():
        share = rows[engine]["support"] / rows["G"]["support"]
        theirs = GAP[task, engine].support / GAP[task, "G"].support
        better = rows[engine]["g-means"] - rows["G"]["g-means"]
        say(share < 0.5, f"{engine} needs under half of G's support vectors: {share:.2f} of them (source {theirs:.2f})")
        say(better > -0.3, f"{engine} has g-means no worse than G's: {better:+.2f} points")
    least = min(FAMILY, key=lambda engine: rows[engine]["K values M"])
    say(least == "I", f"I computes the fewest kernel values: {least} does")
    off = {engine: rows[engine]["accuracy"] - rows["SVC"]["accuracy"] for engine in FAMILY}
    furthest = max(FAMILY, key=lambda engine: abs(off[engine]))
    say(abs(off[furthest]) <= 0.5, f"accuracy within 0.5 of SVC's: furthest is {furthest} with {off[furthest]:+.2f}")


def sparsify(arguments: argparse.Namespace) -> None:
    """What `sparsify` gives up."""
    print("\nsparsify: before and after, one pass (first shuffle)\n")
    print(
        f"{'task':9} {'':4}  {'support':>14}  {'ratio':>5}  {'accuracy':>14}  {'g-means':>12}  seconds: pass, sparsify"
    )
    for task, engine in itertools.product(("usps+N", "banana"), ("G", "NC")):
        run = elsewhere(arguments.data, "polish", task, engine)
        if run:
            a, b = run["before"], run["after"]
            print(
                f"{task:9} {engine:4}  {a['support']:5} -> {b['support']:5}  {b['support'] / a['support']:5.2f}  "
                f"{a['accuracy']:5.2f} -> {b['accuracy']:5.2f}  {a['g-means']:4.1f} -> {b['g-means']:4.1f}  "
                f"{run['learning']:.2f}, {run['polishing']:.2f}",
                flush=True,
            )


def steps(arguments: argparse.Namespace) -> None:
    """Steps of two members against steps of one."""
    n = None if arguments.full else 5000
    print(f"\nSteps of two members and of one: G on {n or 'all'} examples of a9a, C = 100 (first shuffle)\n")
    runs = {kind: elsewhere(arguments.data, "fit", "a9a", "G", n=n, steps=kind) for kind in ("pair", "single")}
    for kind, run in runs.items():
        if run:
            print(
                f"{kind:6}  accuracy {run['accuracy']:.2f}  support {run['support']:5}  "
                f"REPROCESS {run['reprocess']:8}  K values {run['K values M']:.1f} M  {run['seconds']:.2f} s",
                flush=True,
            )
    if all(runs.values()):
        ratios = [runs["single"][key] / runs["pair"][key] for key in ("reprocess", "seconds")]
        print(f"single / pair: REPROCESS {ratios[0]:.1f}, seconds {ratios[1]:.1f}")


def speed(arguments: argparse.Namespace) -> None:
    """One epoch over a9a beside batch solvers, and where its time goes."""
    print(f"\nSpeed on a9a: CPU seconds of one epoch; shuffles: {arguments.repeats}, for batch solvers 1\n")
    runs = {engine: means(arguments, "a9a", engine) for engine in (*FAMILY, *BATCH)}
    peers = [engine for engine in BATCH if runs[engine]]
    for engine, run in runs.items():
        if run:
            ratios = [f"{runs[peer]['seconds'] / run['seconds']:6.1f} times as fast as {peer}" for peer in peers]
            ratios = "  ".join(ratios if engine in FAMILY else [])
            print(f"{engine:8} {run['seconds']:6.2f} s  accuracy {run['accuracy']:.2f}  {ratios}", flush=True)
    print("\nMicroseconds per example: each piece timed by itself after every sixteenth of the pass, times its count\n")
    runs = {engine: elsewhere(arguments.data, "split", "a9a", engine) for engine in ("G", "NC", "I")}
    for what in ("each", *PIECES, "squeezing and growing", "rest", "slots", "steps"):
        print(f"{what:24} {'  '.join(f'{engine} {run[what]:8.2f}' for engine, run in runs.items() if run)}")


def sparse(arguments: argparse.Namespace) -> None:
    """Sparse input against dense."""
    print("\nSparse input: one pass over reuters (first shuffle); MB beyond data and an empty model\n")
    print(
        f"{'':5} {'features':33} {'at the end':10}  {'seconds':>7}  {'MB':>5}  {'data MB':>7}  {'support':>7}  accuracy"
    )
    for engine, form in itertools.product(("FULL", "G", "I"), FORMS):
        run = elsewhere(arguments.data, "form", "reuters", engine, form=form)
        if run:
            print(
                f"{engine:5} {form:33} {run['kind']:10}  {run['seconds']:7.2f}  {run['MB']:5.0f}  "
                f"{run['data MB']:7.0f}  {run['support']:7}  {run['accuracy']:8.2f}",
                flush=True,
            )


PARTS = {"table": table, "sparsify": sparsify, "steps": steps, "speed": speed, "sparse": sparse}
QUICK_PARTS = ("table", "sparsify", "steps")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--tasks", nargs="+", default=list(DEFAULT), choices=list(GAP_TASKS), help="of the table")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5, help="shuffles to average over")
    parser.add_argument("--cache-mb", type=float, default=CACHE_MB, help="row cache of the table's models")
    parser.add_argument("--quick", action="store_true", help="usps+N in one shuffle, no part that takes minutes")
    parser.add_argument("--full", action="store_true", help="all of a9a for the steps of one member")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        run_here(arguments.job)
        return
    if arguments.quick:
        arguments.tasks, arguments.parts, arguments.repeats = list(QUICK), list(QUICK_PARTS), 1
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
