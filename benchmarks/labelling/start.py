"""How many labels it takes until both classes have one, by the way of starting."""

import argparse
import itertools

import numpy as np

from labelling.kept import Kept
from labelling.sets import RARE, Part, chosen, rare
from streamsvm import LASVM
from streamsvm.active import ArrayPool, MixedSelection

STARTS = ("random", "distance")
REPEATS = 10  # starts from each division into pool and test


def simulate(part: Part, start: str, seed: int) -> list[int]:
    """The labels of each of some starts."""
    model, found = LASVM(C=part.C, gamma=part.gamma), []
    for repeat in range(REPEATS):
        pool, selection, rng = ArrayPool(part.X), MixedSelection(start=start), np.random.default_rng([seed, repeat])
        seen: list[bool] = []
        while len(set(seen)) < 2:
            key = selection.begin(pool, model, rng).key
            selection.note(key, pool.rows([key]))
            pool.discard(key)
            seen.append(bool(part.y[key]))
        found.append(len(seen))
    return found


def run(arguments: argparse.Namespace, runs: Kept) -> None:
    """Run all that is missing, and print the table."""
    for seed, name in itertools.product(range(arguments.seeds), chosen(RARE, arguments)):
        part = None
        for start in STARTS:
            if runs.misses("start", name, start, seed):
                part = part or rare(name, arguments.data, seed)
                runs.put("start", name, start, seed, simulate(part, start, seed))
    report(arguments, runs)


def report(arguments: argparse.Namespace, runs: Kept) -> None:
    """The geometric means, by set and of all sets."""
    print("\n## Labels until both classes have one\n\nGeometric means.\n")
    print("| set | " + " | ".join(STARTS) + " | starts |\n" + "|---" * (2 + len(STARTS)) + "|")
    logs = []
    for name in chosen(RARE, arguments):
        kept = [[runs.get("start", name, start, seed) for start in STARTS] for seed in range(arguments.seeds)]
        whole = [row for row in kept if None not in row]
        if whole:
            logs.append(np.log(whole).mean(axis=(0, 2)))
            print(f"| {name} | {_cells(logs[-1])} | {REPEATS * len(whole)} |")
    if logs:
        print(f"| all | {_cells(np.mean(logs, axis=0))} | |")


def _cells(logs: np.ndarray) -> str:
    return " | ".join(f"{labels:.1f}" for labels in np.exp(logs))
