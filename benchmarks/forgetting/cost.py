"""What the estimates along a stream cost: CPU seconds beyond those of learning, in shares of them.

Streams of 5000 examples of one concept, with more or fewer wrong labels, for models with few and with many support
vectors.  Both estimates may take `share` of the cost of learning, and take more where even the smallest one does.
"""

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
from shared.tables import table

from forgetting.streams import FOLDS, MEMORY, concept
from streamsvm import LASVM
from streamsvm.validation import StreamingKFold, StreamingLOO

N, BATCH, SHARE, REPEATS = 5000, 50, 0.2, 3


class Case(NamedTuple):
    """A model and its stream."""

    noise: float
    every: int
    window: int | None = None


CASES = (Case(0.15, 250, 500), Case(0.15, 250), Case(0.15, 1000), Case(0.9, 250))


def learned(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, int]:
    """CPU seconds of learning the stream in batches, and how many estimates came."""
    estimates, latest, begin = 0, None, time.process_time()
    for k in range(0, len(y), BATCH):
        model.learn_many(X[k : k + BATCH], y[k : k + BATCH])
        if (found := getattr(model, "latest", None)) is not latest:
            estimates, latest = estimates + 1, found
    return time.process_time() - begin, estimates


def row_of(case: Case) -> list[str]:
    """A row of the table; the fastest of several runs counts."""
    X, y = concept(N, 0.0, np.random.default_rng(0), case.noise)

    def model() -> LASVM:
        return LASVM(C=10.0, gamma=0.2, window=case.window)

    alone = model()
    seconds = min(learned(one, X, y)[0] for one in (alone, *(model() for _ in range(REPEATS - 1))))
    cells = []
    for make in (
        lambda: StreamingLOO(model(), every=case.every, memory=MEMORY, share=SHARE),
        lambda: StreamingKFold(model(), k=FOLDS, every=case.every, memory=MEMORY, share=SHARE),
    ):
        runs = [learned(make(), X, y) for _ in range(REPEATS)]
        cells += [f"{runs[0][1]}", f"{max(0.0, min(run[0] for run in runs) / seconds - 1.0):.1f}"]
    window = f" (`window={case.window}`)" if case.window else ""
    return [f"{alone.n_support}{window}", f"{case.every}", *cells]


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    print(f"## Cost of estimates\n\n`share={SHARE}`, streams of {N} examples.\n")
    titles = "support vectors|`every`|estimates of `StreamingLOO`|CPU time, learning = 1|of `StreamingKFold`|CPU time"
    print(table(titles, [row_of(case) for case in CASES]), flush=True)


def add_command(kinds: Any) -> None:
    """The command line of this part."""
    one = kinds.add_parser("cost", help="CPU time of estimates along a stream")
    one.set_defaults(run=run)
