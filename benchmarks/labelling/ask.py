"""What one question costs: milliseconds with 10,000 examples and 300 labels."""

import time

import numpy as np

from streamsvm import LASVM
from streamsvm.active import ArrayPool, MixedSelection
from streamsvm.active.choosing.selection import Choice

EXAMPLES, LABELS, MOST = 10_000, 300, 5.0


def run() -> None:
    """Print the time of the last hundred questions, by the number of features."""
    print("\n| features | support vectors | ms a question: median | nine tenths below |\n|---|---|---|---|")
    for features in (10, 30, 100, 784):
        n_support, took = measure(features)
        middle, high = np.quantile(took[-100:], (0.5, 0.9))
        print(f"| {features} | {n_support} | {middle:.2f} | {high:.2f} |")
        print(f"{'holds' if middle <= MOST else 'does not hold'}: at most {MOST:g} ms", flush=True)


def measure(features: int) -> tuple[int, list[float]]:
    """Support vectors at the end, and CPU milliseconds of each choice and of noting its label."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(EXAMPLES + LABELS, features))
    y = X[:, 0] + X[:, 1] ** 2 > 2.5
    model, pool, selection = LASVM(C=10.0, gamma=0.5 / features), ArrayPool(X), MixedSelection()
    seen: set[bool] = set()
    took = []
    for _ in range(LABELS):
        start = time.process_time()
        choose = selection.choose if len(seen) == 2 else selection.begin
        choice: Choice = choose(pool, model, rng)
        row = pool.rows([choice.key])
        selection.note(choice.key, row)
        took.append(1e3 * (time.process_time() - start))
        pool.discard(choice.key)
        seen.add(bool(y[choice.key]))
        model.learn_many(row, y[choice.key : choice.key + 1], 1.0, np.array([choice.key]))
        model.finish()
    return model.n_support, took
