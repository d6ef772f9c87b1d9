"""Rare classes among several: labels until each class has some, and macro F1, with and without `rare_first`.

A part of the classes, drawn by the seed, is thinned out in the pool.  krkopt's classes are rare by themselves;
segment's are all equally common.  The test part is as the set has it; its examples are weighted, so that the classes
have the pool's shares.  The model is exact after each label.  "random" asks about random examples, "mixed" is the
default.
"""

import argparse
import itertools
from typing import Any, NamedTuple

import numpy as np
from datasets import Data
from multiclass import TASKS, load

from labelling.kept import Kept
from labelling.sets import chosen
from streamsvm import LASVM, OneVsRest
from streamsvm.active import ActiveSelection, MixedSelection, RandomSelection, label_pool
from streamsvm.active.choosing.selection import Selection

MARKS = (50, 100, 200, 400, 600)
SEEN = (1, 5)  # labels that each class should have
TEST = 3000  # examples of the test part


class Thinned(NamedTuple):
    """How a set is thinned: examples of a common class, of a rare one, and how many classes are rare."""

    common: int
    rare: int
    n_rare: int


SEVERAL = {
    "digits": Thinned(110, 8, 4),
    "letter": Thinned(150, 10, 10),
    "krkopt": Thinned(3000, 0, 0),
    "segment": Thinned(1500, 0, 0),
}
LEAST = 8  # examples that a class of the pool has; krkopt's smallest classes are left out


def ways() -> dict[str, Selection]:
    """New selections by the name of their way."""
    return {
        "random": RandomSelection(),
        "59": ActiveSelection(),
        "59, rare first": ActiveSelection(rare_first=True),
        "mixed": MixedSelection(),
        "mixed, rare first": MixedSelection(rare_first=True),
    }


def part_of(name: str, arguments: argparse.Namespace, seed: int) -> Data:
    """A pool and a test part: other examples for each seed, and other rare classes."""
    rng, how = np.random.default_rng(seed), SEVERAL[name]
    whole = load(TASKS[name], arguments.data)
    X, y = np.concatenate([whole.X, whole.X_test]), np.concatenate([whole.y, whole.y_test])
    order = rng.permutation(len(y))
    classes = rng.permutation(np.unique(y))
    if how.n_rare:
        most = dict.fromkeys(classes, how.common) | dict.fromkeys(classes[: how.n_rare], how.rare)
        pool = np.concatenate([order[y[order] == label][:n] for label, n in most.items()])
    else:
        pool = order[: how.common]
    known = [label for label in classes if np.sum(y[pool] == label) >= LEAST]
    pool = rng.permutation(pool[np.isin(y[pool], known)])
    test = np.setdiff1d(order[np.isin(y[order], known)], pool)
    test = rng.permutation(test)[:TEST]
    return Data(X[pool].astype(np.float64), y[pool], X[test].astype(np.float64), y[test])


def simulate(part: Data, task: Any, way: str, seed: int) -> dict[str, list[float]]:
    """Labels until each class has `SEEN` of them, the length of the run if that is more, and macro F1 at `MARKS`."""
    model = OneVsRest(LASVM(C=task.C, gamma=task.gamma))
    classes = np.unique(part.y).tolist()
    counts, until, scores = dict.fromkeys(classes, 0), [float(MARKS[-1])] * len(SEEN), []
    steps = label_pool(model, part.X, lambda row: part.y[row], selection=ways()[way], seed=seed, tune_gamma=0)
    for step in itertools.islice(steps, MARKS[-1]):
        counts[step.y] += 1
        least = min(counts.values())
        until = [min(n, step.n_labels) if least >= wanted else n for n, wanted in zip(until, SEEN, strict=True)]
        if step.n_labels in MARKS:
            scores.append(macro_f1(model, part))
    return {"until": until, "f1": scores}


def macro_f1(model: Any, part: Data) -> float:
    """Macro F1 in percent of the test part, weighted to the shares of the pool."""
    from sklearn.metrics import f1_score

    classes = np.unique(part.y)
    shares = {label: np.mean(part.y == label) / np.mean(part.y_test == label) for label in classes.tolist()}
    weights = np.array([shares[label] for label in part.y_test.tolist()])
    said = np.asarray(model.predict_many(part.X_test))
    return 100.0 * float(
        f1_score(part.y_test, said, average="macro", labels=classes, sample_weight=weights, zero_division=0)
    )


def run(arguments: argparse.Namespace, runs: Kept) -> None:
    """Run all that is missing, and print the tables."""
    for seed, name in itertools.product(range(arguments.seeds), chosen(SEVERAL, arguments)):
        part = None
        for way in ways():
            if runs.misses("several", name, way, seed):
                part = part or part_of(name, arguments, seed)
                runs.put("several", name, way, seed, simulate(part, TASKS[name], way, seed))
    report(arguments, runs)


def report(arguments: argparse.Namespace, runs: Kept) -> None:
    """Means and the standard errors of the difference that `rare_first` makes."""
    columns = [f"each class has {n}" for n in SEEN] + [f"F1 at {n}" for n in MARKS]
    print("\n## Rare classes among several\n\nLabels until each class has some, and macro F1 %.\n")
    print("| set | way | " + " | ".join(columns) + " | runs |\n" + "|---" * (3 + len(columns)) + "|")
    for name in chosen(SEVERAL, arguments):
        found = {way: _table(runs, name, way, arguments.seeds) for way in ways()}
        for way, table in found.items():
            if len(table):
                print(f"| {name} | {way} | " + " | ".join(f"{value:.1f}" for value in table.mean(axis=0)), end="")
                print(f" | {len(table)} |")
            plain = found.get(way.removesuffix(", rare first"))
            if plain is not table and len(plain) == len(table) > 1:
                gain = table - plain
                error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
                cells = " | ".join(f"{m:+.1f} ({e:.1f})" for m, e in zip(gain.mean(axis=0), error, strict=True))
                print(f"| {name} | difference | {cells} | |")


def _table(runs: Kept, name: str, way: str, seeds: int) -> np.ndarray:
    kept = [found for seed in range(seeds) if (found := runs.get("several", name, way, seed))]
    return np.array([[*found["until"], *found["f1"]] for found in kept])
