"""What a single call costs, and what one pass is made of.

    python benchmarks/pieces.py                        # microseconds per call, no data needed
    python benchmarks/pieces.py --parts records        # CPU microseconds of records with named features, one by one
    python benchmarks/pieces.py --parts learn_many     # CPU microseconds of an example in a batch
    python benchmarks/pieces.py --data DIR a9a usps    # where the time of one pass over these tasks goes
    python benchmarks/pieces.py --data DIR --quick     # both, of banana

Run it with one thread (OPENBLAS_NUM_THREADS=1) on a quiet machine.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import TASKS, load
from numba import njit
from river import linear_model, preprocessing
from shared.clock import cpu_seconds

import streamsvm
from streamsvm.core import blocks, expansion
from streamsvm.core.rows import kernel_row
from streamsvm.estimators.learner.learning import make_room
from streamsvm.estimators.learner.state import batches
from streamsvm.online import arrival, lasvm

REPEATS = 256
RUNS = 3  # of which the fastest counts


def curved(rng: np.random.Generator, n: int, d: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Examples with a curved border between the classes, and a share of wrong labels."""
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) / np.sqrt(d) + 0.3 * (X[:, 0] ** 2 - 1.0) > 0.0
    return X, y ^ (rng.random(n) < noise)


def learn_many(n: int = 20_000) -> None:
    """Print microseconds of an example in a batch, before `finish`."""
    print(f"{'columns':>7} {'wrong %':>7} {'learner':18} {'members':>8} {'support':>8} {'CPU us':>7}")
    learners: dict[str, Callable[..., Any]] = {
        "LASVM": streamsvm.LASVM,
        "LASVM(window=2000)": partial(streamsvm.LASVM, window=2000),
        "LASVMI": streamsvm.LASVMI,
    }
    for d, noise in ((3, 0.0), (5, 0.005), (10, 0.0), (8, 0.01)):
        X, y = curved(np.random.default_rng(0), n, d, noise)
        for name, make in learners.items():
            seconds = []
            for _ in range(RUNS):
                model = make(C=10.0, gamma=0.5 / d)
                seconds.append(cpu_seconds(model.learn_many, X, y))
            sizes = f"{model.n_members:8} {model.n_support:8}"
            print(f"{d:7} {100 * noise:7.1f} {name:18} {sizes} {1e6 * min(seconds) / n:7.2f}", flush=True)


def records(n: int = 3000) -> None:
    """Print microseconds of records with named features, each predicted and then learned, beside river's learner."""
    print(f"{'features':>8} {'learner':20} {'predict_one':>12} {'learn_one':>10}  CPU us")
    for d in (2, 5, 20, 100):
        learners: dict[str, Callable[[], Any]] = {
            "LASVM()": streamsvm.LASVM,
            "LASVM(gamma=1/d)": lambda gamma=1.0 / d: streamsvm.LASVM(gamma=gamma),
            "LogisticRegression": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        }
        X, y = curved(np.random.default_rng(0), n, d, 0.02)
        rows = [{f"f{k}": value for k, value in enumerate(row)} for row in X.tolist()]
        for name, make in learners.items():
            predict, learn = np.min([_of_records(make(), rows, y.tolist()) for _ in range(RUNS)], axis=0)
            print(f"{d:8} {name:20} {1e6 * predict / n:12.1f} {1e6 * learn / n:10.1f}", flush=True)


def _of_records(model: Any, rows: list[dict], labels: list[bool]) -> tuple[float, float]:
    """CPU seconds of all predictions, and of learning all records."""
    clock, predict, learn = time.process_time, 0.0, 0.0
    for x, y in zip(rows, labels, strict=True):
        begin = clock()
        model.predict_one(x)
        between = clock()
        model.learn_one(x, y)
        predict, learn = predict + between - begin, learn + clock() - between
    return predict, learn


def latency() -> None:
    """Print median and 99th percentile of single calls."""

    def timed(call, items) -> str:
        times = []
        for item in items:
            start = time.perf_counter()
            call(item)
            times.append(time.perf_counter() - start)
        return f"{1e6 * np.median(times):8.1f} {1e6 * np.percentile(times, 99):8.1f}"

    print(f"{'call':44} {'median':>8} {'p99':>8}  microseconds")
    rng = np.random.default_rng(0)
    for members, d in ((20, 2), (2000, 22), (2000, 123), (2000, 784), (11000, 123)):
        X = rng.normal(size=(members + 600, d)) / np.sqrt(d)
        y = rng.random(members + 600) < 0.5  # noise: every example becomes a support vector
        model = streamsvm.LASVM(C=1.0, gamma=1.0)
        rows = [dict(enumerate(x)) for x in X]
        model.learn_many(rows[:members], y[:members])
        title = f"{model.n_support} support vectors, {d} features"
        columns = model._features.lookup(tuple(range(d)))
        fresh = range(members, members + 400)
        engine = model._state.scale.state, model._state.kernel, model._state.rule
        notes = arrival.Notes(model._state.calibration, arrival.NO_CLOCK, np.full(2, np.nan))

        def learn_engine(t, model=model, X=X, y=y, columns=columns, engine=engine, notes=notes):
            box = (0.0, 1.0) if y[t] else (-1.0, 0.0)
            example = (arrival.Features(columns, X[t]), *box, t, t, False)
            status = arrival.learn_example(model._state.expansion, *engine, *example, notes)
            if status == arrival.NO_ROOM:
                make_room(model._state, X[t], binary=False)

        print(f"{'predict_one: ' + title:44} {timed(lambda t, m=model, r=rows: m.predict_one(r[t]), fresh)}")
        print(f"{'learn, engine alone: ' + title:44} {timed(learn_engine, fresh)}")
        more = range(members + 400, members + 600)
        print(
            f"{'learn_one: ' + title:44} {timed(lambda t, m=model, r=rows, y=y: m.learn_one(r[t], bool(y[t])), more)}"
        )


@njit(nogil=True)
def _rows(s, kernel, indices, values, sq, n):
    for _ in range(REPEATS):
        kernel_row(s, kernel, indices, values, sq, 0, n, s.scratch)


@njit(nogil=True)
def _updates(g, up, down, row):
    for _ in range(REPEATS):
        lasvm.update_and_scan(g, up, down, 0.0, row, row, 0.0)


@njit(nogil=True)
def _partners(g, down, self_k, row):
    for _ in range(REPEATS):
        lasvm.second_order_partner(g, down, self_k, 0, row)


@njit(nogil=True)
def _sums(alpha, row):
    total = 0.0
    for _ in range(REPEATS):
        total += blocks.expansion_sum(alpha, row)
    return total


def _microseconds(piece, *arguments) -> float:
    piece(*arguments)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        piece(*arguments)
        times.append(time.perf_counter() - start)
    return 1e6 * min(times) / REPEATS


def split(name: str, folder: Path | None, cache_mb: float) -> None:
    """Print the time of each piece of a pass at its final size."""
    data, task = load(name, folder), TASKS[name]
    streamsvm.warmup()
    model = streamsvm.LASVM(C=task.C, gamma=task.gamma, cache_mb=cache_mb)
    start = time.process_time()
    model.learn_many(data.X, data.y)
    seconds = time.process_time() - start
    s, kernel, examples = model._state.expansion, model._state.kernel, data.X.shape[0]
    n = int(s.counts[expansion.SLOTS])
    print(
        f"{name}: {examples} examples in {seconds:.2f} s, {1e6 * seconds / examples:.1f} us each; {n} slots at the end;"
    )
    print(f"  {model.kernel_evaluations / examples / n:.2f} rows of that length computed per example.")
    _, q = next(batches(model._state, data.X[:REPEATS], learning=False))
    first = slice(0, int(q.indptr[1]))
    g, row = s.g[:n].copy(), s.scratch[:n]
    pieces = [
        (f"kernel row, {q.indptr[1]} features", _rows, (s, kernel, q.indices[first], q.values[first], q.sq[0], n)),
        ("f = sum alpha K", _sums, (s.alpha[:n], row)),
        ("gradient update with both extremes", _updates, (g, s.up[:n], s.down[:n], row)),
        ("second-order partner", _partners, (g, s.down[:n], s.self_k[:n], row)),
    ]
    if blocks.prefers_product(s, q):
        pieces.append(("row of a matrix product", blocks.inner_products, (s, q, False)))
    for title, piece, arguments in pieces:
        took = _microseconds(piece, *arguments)
        print(f"  {title:40} {took:8.2f} us {1e3 * took / n:7.3f} ns per slot")


PARTS = {"calls": latency, "records": records, "learn_many": learn_many}


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="tasks to take apart; none: single calls")
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--cache-mb", type=float, default=64.0, help="streamsvm's row cache")
    parser.add_argument("--quick", action="store_true", help="single calls, and banana taken apart")
    parser.add_argument("--parts", nargs="+", default=[], choices=PARTS, help="these instead; they need no data")
    arguments = parser.parse_args()
    for part in arguments.parts:
        PARTS[part]()
    if arguments.parts:
        return
    for name in ["banana"] if arguments.quick else arguments.tasks:
        split(name, arguments.data, arguments.cache_mb)
    if arguments.quick or not arguments.tasks:
        latency()


if __name__ == "__main__":
    main()
