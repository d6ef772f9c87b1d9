"""Wrong answers: how many of them are among the suspects, by three ways of ranking, and their seconds."""

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from labelling.kept import Kept
from labelling.sets import Part, rare
from streamsvm import LASVM
from streamsvm.active import MixedSelection, RandomSelection, label_pool, suspects
from streamsvm.validation import cross_validate

NAMES = ("letter A", "usps 8", "creditcard", "abalone 15", "a9a", "segment 3", "spambase", "waveform 0")
ANSWERS = 250
RATES = (0.05, 0.1)
COLLECTED = {"random": RandomSelection, "mixed": MixedSelection}


def by_leave_one_out(X: Any, y: np.ndarray, part: Part, weights: np.ndarray) -> np.ndarray:
    """Exact leave-one-out margins."""
    margins = np.empty(len(y))
    for place, margin in suspects(X, y, part.C, part.gamma, sample_weight=weights):
        margins[place] = margin
    return margins


def by_folds(repeats: int) -> Callable[..., np.ndarray]:
    """Margins by models of four fifths of the answers, the mean of some divisions."""

    def margins(X: Any, y: np.ndarray, part: Part, weights: np.ndarray) -> np.ndarray:
        k = max(2, min(5, int(y.sum()), int((~y).sum())))
        model = LASVM(C=part.C, gamma=part.gamma)
        f = [cross_validate(model, X, y, k=k, seed=s, sample_weight=weights).decision_values for s in range(repeats)]
        return np.where(y, 1.0, -1.0) * np.mean(f, axis=0)

    return margins


RANKINGS = {"leave-one-out": by_leave_one_out, "5-fold": by_folds(1), "5-fold, 10 times": by_folds(10)}


def simulate(part: Part, how: str, rate: float, seed: int) -> dict[str, list[float]] | None:
    """The share of flips among as many suspects, and the seconds, of each ranking; None with too few positives."""
    rng, flipped = np.random.default_rng(seed + 5), []

    def oracle(row: int) -> bool:
        flipped.append(bool(rng.random() < rate))
        return bool(part.y[row]) ^ flipped[-1]

    model = LASVM(C=part.C, gamma=part.gamma, pos_weight=part.pos_weight)
    steps = label_pool(model, part.X, oracle, selection=COLLECTED[how](), seed=seed, tune_gamma=0)
    taken = list(itertools.islice(steps, ANSWERS))
    X, y, wrong = part.X[[step.key for step in taken]], np.array([step.y for step in taken]), np.array(flipped)
    wrong = wrong[: len(y)]
    if min(y.sum(), (~y).sum()) < 5 or wrong.sum() < 3:
        return None
    weights = np.where(y, part.pos_weight, 1.0)
    return {name: _score(ranking, X, y, part, weights, wrong) for name, ranking in RANKINGS.items()}


def _score(ranking: Any, X: Any, y: np.ndarray, part: Part, weights: np.ndarray, wrong: np.ndarray) -> list[float]:
    start = time.process_time()
    margins = ranking(X, y, part, weights)
    seconds = time.process_time() - start
    first = np.argsort(margins, kind="stable")[: int(wrong.sum())]
    return [100.0 * float(wrong[first].mean()), seconds]


def run(arguments: argparse.Namespace, runs: Kept) -> None:
    """Run all that is missing, and print the table."""
    for seed, name, how, rate in itertools.product(range(arguments.seeds), NAMES, COLLECTED, RATES):
        if runs.misses("flips", name, f"{how} {rate}", seed):
            found = simulate(rare(name, arguments.data, seed), how, rate, seed)
            runs.put("flips", name, f"{how} {rate}", seed, found)
    report(arguments, runs)


def report(arguments: argparse.Namespace, runs: Kept) -> None:
    """The share of flips in percent, and the seconds."""
    columns = [f"{how} {100 * rate:g} %" for how, rate in itertools.product(COLLECTED, RATES)]
    print("\n## Wrong answers\n\n| ranking | " + " | ".join(columns) + " | seconds |")
    print("|---" * (2 + len(columns)) + "|")
    for ranking in RANKINGS:
        cells, seconds = [], []
        for how, rate in itertools.product(COLLECTED, RATES):
            kept = [runs.get("flips", name, f"{how} {rate}", s) for name in NAMES for s in range(arguments.seeds)]
            found = [result[ranking] for result in kept if result]
            cells.append(f"{np.mean([share for share, _ in found]):.0f}" if found else "-")
            seconds += [spent for _, spent in found]
        print(f"| {ranking} | " + " | ".join(cells) + f" | {np.mean(seconds or [np.nan]):.3f} |")
