"""What a single call costs, and what one pass is made of.

    python benchmarks/pieces.py                        # microseconds per call, no data needed
    python benchmarks/pieces.py --data DIR a9a usps    # where the time of one pass over these tasks goes
    python benchmarks/pieces.py --data DIR --quick     # both, of banana

Run it with one thread (OPENBLAS_NUM_THREADS=1) on a quiet machine.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from datasets import TASKS, load
from numba import njit

import streamsvm
from streamsvm.core import blocks, expansion
from streamsvm.core.rows import kernel_row
from streamsvm.online import arrival, lasvm

REPEATS = 256


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
        engine, margins = (model._scale.state, model._kernel, model._rule), np.empty(1)

        def learn_engine(t, model=model, X=X, y=y, columns=columns, engine=engine, margins=margins):
            box = (0.0, 1.0) if y[t] else (-1.0, 0.0)
            example = (columns, X[t], *box, t, t, False)
            status = arrival.learn_example(model._expansion, *engine, *example, model._calibration, margins)
            if status == arrival.NO_ROOM:
                model._make_room(X[t], binary=False)

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
    s, kernel, examples = model._expansion, model._kernel, data.X.shape[0]
    n = int(s.counts[expansion.SLOTS])
    print(
        f"{name}: {examples} examples in {seconds:.2f} s, {1e6 * seconds / examples:.1f} us each; {n} slots at the end;"
    )
    print(f"  {model.kernel_evaluations / examples / n:.2f} rows of that length computed per example.")
    _, q = next(model._features.batches(data.X[:REPEATS], learning=False))
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


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="tasks to take apart; none: single calls")
    parser.add_argument("--data", type=Path, help="folder of npz files; default: OpenML")
    parser.add_argument("--cache-mb", type=float, default=64.0, help="streamsvm's row cache")
    parser.add_argument("--quick", action="store_true", help="single calls, and banana taken apart")
    arguments = parser.parse_args()
    for name in ["banana"] if arguments.quick else arguments.tasks:
        split(name, arguments.data, arguments.cache_mb)
    if arguments.quick or not arguments.tasks:
        latency()


if __name__ == "__main__":
    main()
