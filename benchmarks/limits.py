"""What a limit costs in errors: percent wrong with 500 or 2000 members and without a limit.

    python benchmarks/limits.py --data DIR    # four more streams, from DIR/NAME/NAME.npz: five minutes
    python benchmarks/limits.py --quick       # the first records of one stream

Each record is predicted, then learned, at most 40 000 of a stream.  Columns: AutoLASVM with merge, which may learn
weights of the features, Mixture of it, and LASVM(C=1) with each `on_budget`.  "all, second half" of the records.
"""

import argparse
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from growth import stream
from shared.streams import Record, stored
from shared.tables import table
from tqdm import tqdm

from streamsvm import LASVM, AutoLASVM, Mixture

N, QUICK = 40_000, 600
SETS = ("ijcnn1", "a9a", "covtype_subset", "elec2")
MEMBERS = (500, 2000, None)
MODELS: dict[str, Callable[..., Any]] = {
    "AutoLASVM, merge": lambda budget: AutoLASVM(budget=budget, on_budget="merge"),
    "Mixture, merge": lambda budget: Mixture(AutoLASVM(budget=budget, on_budget="merge")),
    "LASVM, merge": lambda budget: LASVM(C=1.0, budget=budget, on_budget="merge"),
    "project": lambda budget: LASVM(C=1.0, budget=budget, on_budget="project"),
    "remove": lambda budget: LASVM(C=1.0, budget=budget, on_budget="remove"),
}
ALIKE = ("project", "remove")  # without a limit, as the column before


def errors(model: Any, records: list[Record]) -> str:
    """Percent of all records, and of the second half."""
    wrong = np.zeros(len(records), bool)
    for i, (x, y) in enumerate(records):
        wrong[i] = model.predict_one(x) != y
        model.learn_one(x, y)
    return f"{100.0 * wrong.mean():.1f}, {100.0 * wrong[len(wrong) // 2 :].mean():.1f}"


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files")
    parser.add_argument("--quick", action="store_true", help="the first records of one stream")
    arguments = parser.parse_args()
    n = QUICK if arguments.quick else N
    streams = {"curved rule, a tenth wrong": lambda: stream(n, 0.1)}
    if arguments.data:
        streams |= {name: lambda name=name: stored(arguments.data, name) for name in SETS}
    lines = []
    for name, make in tqdm(streams.items(), leave=False):
        records = list(islice(make(), n))
        for members in MEMBERS:
            models = {title: make for title, make in MODELS.items() if members or title not in ALIKE}
            found = [errors(make(members), records) for make in models.values()]
            lines.append([name, str(members or "no limit"), *found, *[""] * (len(MODELS) - len(found))])
            tqdm.write(" | ".join(lines[-1]), file=sys.stderr)
    print(table("stream|members|" + "|".join(MODELS), lines))


if __name__ == "__main__":
    main()
