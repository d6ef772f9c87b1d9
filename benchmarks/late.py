"""Labels that come late: the error when each label comes so many records after its event.

    python benchmarks/late.py --data DIR    # labels 100, 1000 and 10 000 records late; two sets from DIR/NAME/NAME.npz
    python benchmarks/late.py --quick       # the first records of one stream, labels 100 late

Each record is predicted when it comes, and learned when its label has come.  Records are raw, and nothing is tuned.
"told" is AutoLASVM with `margin=`: what its candidates said at the time of the prediction.  "not told" judges them by
what they would say at the time of the label, when they have learned the record's neighbours.  "last label" predicts the
newest label that has come.  Percent of all records; "us" are CPU microseconds of a record for AutoLASVM, told.

The delays are those of Grzenda, Gomes and Bifet, "Delayed labelling evaluation for data streams" (2020), whose idea it
is to evaluate predictions at the time that they are made.
"""

import argparse
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from shared.streams import MADE, Record, stored
from shared.tables import say, table
from tqdm import tqdm

from streamsvm import LASVM, AutoLASVM

DELAYS, QUICK = (100, 1000, 10_000), 600
N = 20_000  # records of a stream, at most
STREAMS = ("SEA, abrupt", "hyperplane", "moving RBF", "Agrawal, gradual")


class Result(NamedTuple):
    """Of one model with one delay."""

    error: float  # percent
    microseconds: float


class LastLabel:
    """Predicts the newest label that it knows."""

    def __init__(self) -> None:
        self.y = False

    def predict_one(self, x: dict) -> bool:
        """The newest label."""
        return self.y

    def learn_one(self, x: dict, y: bool, margin: Any = None) -> None:
        """Note the label."""
        self.y = y


def decision_value(model: Any, x: dict) -> float:
    """What a single model says."""
    value: float = model.decision_function_one(x)
    return value


def of_candidates(model: AutoLASVM, x: dict) -> tuple[float, ...]:
    """What the candidates say."""
    return model.margins_one(x)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[Any, dict], Any]]] = {
    "last label": (LastLabel, lambda model, x: None),
    "LASVM()": (LASVM, decision_value),
    "LASVM(C=1)": (lambda: LASVM(C=1.0), decision_value),
    "AutoLASVM, not told": (AutoLASVM, decision_value),
    "AutoLASVM, told": (AutoLASVM, of_candidates),
}


def run(model: Any, said: Callable[[Any, dict], Any], records: list[Record], delay: int) -> Result:
    """Predict each record, and learn it when so many others have come."""
    waiting: deque[tuple[dict, bool, Any]] = deque()
    wrong, start = 0, time.process_time()
    for x, y in records:
        wrong += model.predict_one(x) != y
        waiting.append((x, y, said(model, x)))
        if len(waiting) > delay:
            x, y, margin = waiting.popleft()
            model.learn_one(x, y, margin=margin)
    seconds = time.process_time() - start
    return Result(100.0 * wrong / len(records), 1e6 * seconds / len(records))


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK} records of one stream")
    arguments = parser.parse_args()
    streams = {name: MADE[name] for name in (STREAMS[:1] if arguments.quick else STREAMS)}
    if arguments.data and not arguments.quick:
        streams |= {name: lambda name=name: stored(arguments.data, name) for name in ("elec2", "covtype_subset")}
    lines, ahead = [], []
    for name, make in tqdm(streams.items(), leave=False):
        records = list(islice(make(), QUICK if arguments.quick else N))
        for delay in DELAYS[:1] if arguments.quick else DELAYS:
            if 2 * delay > len(records):
                continue
            found = {model: run(new(), said, records, delay) for model, (new, said) in MODELS.items()}
            told = found["AutoLASVM, told"]
            ahead.append(found["LASVM()"].error - told.error)
            errors = [f"{result.error:.1f}" for result in found.values()]
            lines.append([f"{name}, {len(records)}", str(delay), *errors, f"{told.microseconds:.0f}"])
    print(table("stream, records|late by|" + "|".join(MODELS) + "|us", lines), flush=True)
    print()
    say(
        "AutoLASVM, told, errs no more than LASVM(), in the mean",
        f"{sum(ahead) / len(ahead):+.1f} points",
        sum(ahead) >= 0,
    )
    say("and at most 0.5 points more on each", f"{min(ahead):+.1f} points", min(ahead) >= -0.5)


if __name__ == "__main__":
    main()
