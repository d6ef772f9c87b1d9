"""What a record costs after many: microseconds and bytes after 10 000 and 100 000 records of a stream.

    python benchmarks/growth.py                # half an hour
    python benchmarks/growth.py --million      # and a million records, for the models whose size is bounded
    python benchmarks/growth.py --quick        # 500 and 1000 records

Streams: ten features, of which three decide by a curved rule; "noisy" has a tenth of the labels wrong.  Each record is
predicted, then learned.  "us" are CPU microseconds a record over the last tenth before that many records; "MB" is the
size of the snapshot, which holds all that grows; "error" is over the same records, against the labels as they came.
A model stops where it has used up its minutes.  Each line also goes to stderr as soon as it is known.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from shared.tables import say, table
from tqdm import tqdm

from streamsvm import LASVM, LASVMI, LASVMNC, AutoLASVM, Mixture

AT, MILLION, QUICK = (10_000, 100_000), 1_000_000, (500, 1000)
MINUTES = 3.0  # CPU minutes of a model on a stream
FLAT = 1.3  # times the cost of a record ten times earlier

BOUNDED: dict[str, Callable[[], Any]] = {
    "LASVM(C=1, budget=500, merge)": lambda: LASVM(C=1.0, budget=500, on_budget="merge"),
    "LASVM(C=1, budget=2000, merge)": lambda: LASVM(C=1.0, budget=2000, on_budget="merge"),
    "LASVM(C=1, window=2000)": lambda: LASVM(C=1.0, window=2000),
    "AutoLASVM(budget=2000, merge)": lambda: AutoLASVM(budget=2000, on_budget="merge"),
    "Mixture of it": lambda: Mixture(AutoLASVM(budget=2000, on_budget="merge")),
}
MODELS: dict[str, Callable[[], Any]] = {
    "LASVM()": LASVM,
    "LASVMNC()": LASVMNC,
    "LASVMI()": LASVMI,
    "AutoLASVM()": AutoLASVM,
    **BOUNDED,
}


class Point(NamedTuple):
    """Of a model after so many records."""

    n: int
    microseconds: float
    megabytes: float
    error: float  # percent


def stream(n: int, noise: float) -> Iterator[tuple[dict, bool]]:
    """The records, made in blocks."""
    rng = np.random.default_rng(0)
    for begin in range(0, n, 1000):
        X = rng.normal(size=(min(1000, n - begin), 10))
        y = (np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] > 0.0) ^ (rng.random(len(X)) < noise)
        yield from zip((dict(enumerate(row)) for row in X.tolist()), y.tolist(), strict=True)


def run(model: Any, noise: float, at: tuple[int, ...]) -> list[Point]:
    """Predict and learn; a point for each of these numbers of records that the model reaches in its minutes."""
    found: list[Point] = []
    watched, wrong, spent, begin = max(1, at[0] // 10), 0, 0.0, time.process_time()
    for i, (x, y) in enumerate(stream(at[-1], noise), 1):
        if i % watched == 1 % watched:
            spent, wrong, begin = spent + time.process_time() - begin, 0, time.process_time()
            if spent > 60.0 * MINUTES:
                break
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
        if i in at:
            seconds = time.process_time() - begin
            size = len(model.to_bytes()) / 1e6
            found.append(Point(i, 1e6 * seconds / watched, size, 100.0 * wrong / watched))
            begin = time.process_time() - seconds  # the snapshot's time does not count
    return found


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", action="store_true", help="and a million records, for bounded models")
    parser.add_argument("--quick", action="store_true", help="500 and 1000 records")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help=f"some of: {', '.join(MODELS)}")
    arguments = parser.parse_args()
    at = QUICK if arguments.quick else AT
    lines, grows = [], {}
    for name in tqdm(arguments.only or list(MODELS), leave=False):
        for kind, noise in (("clean", 0.0), ("noisy", 0.1)):
            run(MODELS[name](), noise, (200,))  # the code is compiled
            longest = (*at, MILLION) if arguments.million and name in BOUNDED else at
            points = run(MODELS[name](), noise, longest)
            grows[name, kind] = points[-1].microseconds / points[0].microseconds if len(points) > 1 else np.inf
            cells = [f"{p.microseconds:.0f}, {p.megabytes:.1f}, {p.error:.1f}" for p in points]
            lines.append([name, kind, *cells, *["-"] * (2 + arguments.million - len(cells))])
            tqdm.write(" | ".join(lines[-1]), file=sys.stderr)
    heads = [f"{n:,}".replace(",", " ") for n in (*at, *([MILLION] if arguments.million else []))]
    print(table("model|labels|" + "|".join(f"{head}: us, MB, error" for head in heads), lines), flush=True)
    bounded = {key: ratio for key, ratio in grows.items() if key[0] in BOUNDED}
    if bounded and not arguments.quick:
        print()
        worst = max(bounded, key=lambda key: bounded[key])
        aim = f"a record of a bounded model costs at most {FLAT} times what it cost {at[-1] // at[0]} times earlier"
        say(aim, f"{bounded[worst]:.2f}, {worst[0]}", bounded[worst] <= FLAT)


if __name__ == "__main__":
    main()
