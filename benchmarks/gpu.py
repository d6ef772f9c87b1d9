"""Kernel values on a GPU beside the CPU, in one run.

    python benchmarks/gpu.py                     # predictions, folds, the threshold of device="auto"
    python benchmarks/gpu.py --data DIR          # and learning on mnist's digit 8
    python benchmarks/gpu.py --quick             # small sizes
    python benchmarks/gpu.py --check FILE        # tests/gpu first, then all of this; what is printed goes to FILE too

Predictions are of float32 rows that lie in the host's memory, so that the way to the device and back counts.  `limit`
is what a matrix product of the same shape gets when everything is on the device already.  The best of several runs
counts; the CPU has all cores that the process may use.  cuML and ThunderSVM are measured where they can be imported,
with models that they have trained on noise, in which nearly every example is a support vector.

The threshold: device="auto" should begin where the device is the faster.  Without a GPU only the CPU's columns are
printed, and why.
"""

import argparse
import contextlib
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TextIO

import numpy as np
from datasets import TASKS, load

import streamsvm
from streamsvm.batch import SolverOptions, smo
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.batch.problem import penalties
from streamsvm.core import storage
from streamsvm.core.device.choice import AUTO_WORK
from streamsvm.core.device.evaluator import QUERIES_AT_ONCE
from streamsvm.core.device.gpu import CHUNK_BYTES, Gpu, NoDevice, find_gpu
from streamsvm.core.expansion import SLOTS
from streamsvm.core.kernels import make_kernel
from streamsvm.core.threads import get_num_threads
from streamsvm.estimators.learner.state import batches
from streamsvm.online.lasvm import append_block
from streamsvm.validation import cross_validate

SIZES = ((1000, 20), (10_000, 20), (50_000, 20), (1000, 784), (10_000, 784), (50_000, 784))
QUICK = ((1000, 20), (1000, 784))
SECONDS = 0.5  # of repetitions, for each figure
N_SOLVED = 20_000  # examples of mnist for smo.solve
CACHE_MB = 5000.0  # takes all of their kernel rows
TESTS = Path(__file__).parent.parent / "tests" / "gpu"


def gpu() -> Gpu | None:
    """The GPU; without one, None, after the reason was printed."""
    try:
        found = find_gpu()
    except NoDevice as error:
        print(f"no GPU ({error}): only what the CPU does\n")
        return None
    print(f"GPU: {found.name}, {found.xp.cuda.runtime.memGetInfo()[0] / 2**30:.0f} GiB free\n")
    return found


def best_seconds(call) -> float:
    """The shortest of several runs."""
    call()
    times: list[float] = []
    while sum(times) < SECONDS or len(times) < 3:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def model_of(n: int, d: int, name: str = "cpu") -> streamsvm.LASVM:
    """A model with n support vectors, drawn at random."""
    rng = np.random.default_rng(0)
    model = streamsvm.LASVM(gamma=1.0 / d, device=name)
    s = model._state.expansion
    for _, q in batches(model._state, rng.normal(size=(n, d)).astype(np.float32), learning=True):
        signs = np.where(rng.random(len(q.sq)) < 0.5, -1.0, 1.0)
        s = append_block(s, model._state.kernel, q, d, np.minimum(signs, 0.0), np.maximum(signs, 0.0))
    model._features.n_kept = len(model._features)
    used = int(s.counts[SLOTS])
    s.alpha[:used] = rng.random(used) * (s.lo + s.hi)[:used]
    s.up[:used], s.down[:used] = penalties(s.alpha[:used], s.lo[:used], s.hi[:used])
    storage.find_extremes(s)
    model._state.expansion = s
    return model


def product_seconds(found: Gpu, n: int, d: int, rows: int) -> float:
    """Of the matrix products alone, in chunks of the size that predictions use."""
    xp = found.xp
    at_once = min(rows, QUERIES_AT_ONCE, CHUNK_BYTES // (8 * n))
    Q, X = xp.ones((at_once, d), np.float32), xp.ones((n, d), np.float32)

    def multiply():
        for _ in range(rows // at_once):
            Q @ X.T
        xp.cuda.Device().synchronize()

    return best_seconds(multiply) * rows / (rows // at_once * at_once)


def peers(n: int, d: int, rows: np.ndarray) -> list[tuple[str, int, float]]:
    """Name, support vectors and rows per second of other libraries that are installed."""
    rng, found = np.random.default_rng(0), []
    X, y = rng.normal(size=(n, d)).astype(np.float32), rng.random(n) < 0.5
    for name, module in (("cuML", "cuml.svm"), ("ThunderSVM", "thundersvm")):
        try:
            library = __import__(module, fromlist=["SVC"])
        except ImportError:
            continue
        model = library.SVC(C=1.0, gamma=1.0 / d).fit(X, y.astype(np.float32))
        seconds = best_seconds(lambda model=model: model.decision_function(rows))
        found.append((name, int(np.sum(model.n_support_)), len(rows) / seconds))
    return found


def predictions(found: Gpu | None, sizes) -> None:
    """Rows per second of decision_function_many."""
    print("decision_function_many, rows per second")
    columns = f"{'CPU':>12} {'GPU':>12} {'ratio':>7} {'limit':>12} {'of it':>6} {'|difference|':>13}"
    print(f"{'SVs':>7} {'features':>9} {columns}")
    for n, d in sizes:
        here = model_of(n, d)
        X = np.random.default_rng(1).normal(size=(200_000 if d < 100 else 40_000, d)).astype(np.float32)
        few = X[: max(256, min(len(X), int(4e9 / (n * d))))]
        cpu = len(few) / best_seconds(lambda model=here, few=few: model.decision_function_many(few))
        line = f"{n:7,} {d:9} {cpu:12,.0f}"
        if found is not None:
            there = streamsvm.LASVM.from_bytes(here.to_bytes(), device="cuda")
            rate = len(X) / best_seconds(lambda model=there, X=X: model.decision_function_many(X))
            limit = len(X) / product_seconds(found, n, d, len(X))
            f, f_here = there.decision_function_many(few), here.decision_function_many(few)
            difference = np.abs(f - f_here).max() / np.abs(f_here).max()
            line += f" {rate:12,.0f} {rate / cpu:7.1f} {limit:12,.0f} {rate / limit:6.0%} {difference:13.1e}"
            for name, n_support, peer in peers(n, d, X):
                line += f"\n{'':18}{name} ({n_support:,} SVs): {peer:,.0f}"
        print(line, flush=True)


def threshold(found: Gpu | None) -> None:
    """From which number of products on the device is the faster."""
    print(f'\nthreshold of device="auto": {AUTO_WORK:.0e} products. Milliseconds of one call:')
    print(f"{'products':>9} {'features':>9} {'SVs':>7} {'rows':>6} {'CPU':>9} {'GPU':>9}")
    for d, n in ((20, 1000), (20, 10_000), (100, 1000), (784, 1000), (784, 10_000)):
        here, there = model_of(n, d), model_of(n, d, "cuda")
        for rows in (1, 3, 10, 30, 100, 300, 1000, 8000):
            X = np.random.default_rng(1).normal(size=(rows, d)).astype(np.float32)
            times = [
                best_seconds(lambda m=m, X=X: m.decision_function_many(X)) for m in (here, there)[: 1 + bool(found)]
            ]
            shown = " ".join(f"{1e3 * seconds:9.2f}" for seconds in times)
            print(f"{float(n * d * rows):9.0e} {d:9} {n:7,} {rows:6,} {shown}", flush=True)


def folds(found: Gpu | None, n: int) -> None:
    """Ten folds over kernel rows that are computed in advance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 100))
    y = X[:, :3].sum(axis=1) + rng.normal(size=n) > 0
    print(f"\ncross_validate, 10 folds of {n:,} examples with 100 features, seconds:", end=" ", flush=True)
    for name in ("cpu", "cuda")[: 1 + bool(found)]:
        begin = time.perf_counter()
        result = cross_validate(streamsvm.LASVM(C=1.0, gamma=0.01, device=name, cache_mb=13e-6 * n * n), X, y)
        print(f"{name} {time.perf_counter() - begin:.2f} (accuracy {result.accuracy:.4f})", end="  ", flush=True)
    print()


def passed(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, C: float, gamma: float, device: str) -> np.ndarray:
    """Decision values after one pass and finish."""
    model = streamsvm.LASVM(C=C, gamma=gamma, device=device)
    model.learn_many(X, y)
    model.finish()
    return model.decision_function_many(X_test)


def solved(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, C: float, gamma: float, device: str) -> np.ndarray:
    """Decision values of the solution for all examples."""
    options = SolverOptions(cache_mb=CACHE_MB, device=device)
    store = RowStore(X, make_kernel("rbf", gamma=gamma), options.cache_mb, device)
    return smo.solve(store, y, C=C, options=options).decision_function(X_test)


def learning(found: Gpu | None, data_dir: Path | None, quick: bool) -> None:
    """mnist's digit 8: one pass and finish, as in benchmarks/lasvm.py; and the solution for all examples."""
    task = TASKS["mnist"]
    data = load("mnist", data_dir, 0)
    for name, train, n in (("learn_many and finish", passed, len(data.y)), ("smo.solve", solved, N_SOLVED)):
        n = 5000 if quick else n
        print(f"\n{name}, mnist digit 8, {n:,} examples: seconds with the predictions, error")
        for device in ("cpu", "cuda")[: 1 + bool(found)]:
            begin = time.perf_counter()
            f = train(data.X[:n], data.y[:n], data.X_test, task.C, task.gamma, device)
            seconds = time.perf_counter() - begin
            print(f"{device:>6} {seconds:8.2f} {np.mean((f > 0) != (data.y_test > 0)):8.2%}", flush=True)


def run_tests() -> None:
    """Print what tests/gpu say, while they run."""
    command = [sys.executable, "-m", "pytest", str(TESTS), "-q", "-rs", "--durations=5", "-p", "no:cacheprovider"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
    print()
    if process.returncode:
        raise SystemExit("tests/gpu failed; the table would say little")


class Both:
    """Writes to two streams."""

    def __init__(self, *streams: TextIO) -> None:
        self.streams = streams

    def write(self, text: str) -> None:
        for stream in self.streams:
            stream.write(text)

    def flush(self) -> None:
        for stream in self.streams:
            stream.flush()


def measure(arguments: argparse.Namespace) -> None:
    """Print all tables."""
    print(f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {get_num_threads()} cores")
    streamsvm.warmup()
    found = gpu()
    predictions(found, QUICK if arguments.quick else SIZES)
    threshold(found)
    folds(found, 1000 if arguments.quick else 4000)
    if arguments.data or arguments.check:
        learning(found, arguments.data, arguments.quick)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with NAME/NAME.npz")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--check", type=Path, metavar="FILE", help="run tests/gpu first, and save what is printed")
    arguments = parser.parse_args()
    if not arguments.check:
        return measure(arguments)
    with arguments.check.open("w") as file, contextlib.redirect_stdout(Both(sys.stdout, file)):  # type: ignore[type-var]
        run_tests()
        measure(arguments)
    return None


if __name__ == "__main__":
    main()
