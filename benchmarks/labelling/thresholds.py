"""The threshold from the pool, on sets with a rare class and on texts: g-means with it and at 0, same questions.

`--texts DIR` has a file NAME.tsv for each set of texts, with a line `0` or `1`, a tab and the text for each; the first
half is the pool.  `words.json` there may have seed words.  The model has TF-IDF, a linear kernel and C = 10.
"""

import argparse
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelling.kept import Kept
from labelling.policies import MARKS, POLICIES
from labelling.sets import RARE, Part, chosen, rare
from streamsvm import LASVM
from streamsvm.active import label_pool, rows_with_words

NEW, WITH_WORDS = "mixed, gamma", "mixed, seed words"
WAYS = ("random", "10 random, closest", "closest", "59", NEW)
HALF = {name: slice(*span) for name, span in {"20-300": (0, 9), "30-300": (1, 9), "50": (3, 4), "100": (5, 6)}.items()}


class Task(NamedTuple):
    """A pool with a test part, its model, and the rows of its pool that hold a seed word."""

    part: Part
    model: Callable[[], Any]
    seeded: list[int]


def task(name: str, arguments: argparse.Namespace, seed: int) -> Task:
    """A set of numbers or of texts."""
    if name in RARE:
        part = rare(name, arguments.data, seed)
        return Task(part, lambda: LASVM(C=part.C, gamma=part.gamma, pos_weight=part.pos_weight, threshold="gmean"), [])
    texts, words = _texts(arguments.texts / f"{name}.tsv"), _words(arguments.texts)
    from sklearn.feature_extraction.text import TfidfVectorizer

    X = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform([text for _, text in texts]).tocsr()
    y, n = np.array([positive for positive, _ in texts]), len(texts) // 2
    part = Part(X[:n], y[:n], X[n:], y[n:], 10.0, 1.0)
    seeded = rows_with_words([text for _, text in texts[:n]], words[name], seed=seed) if name in words else []
    return Task(part, lambda: LASVM(C=10.0, kernel="linear", pos_weight=part.pos_weight, threshold="gmean"), seeded)


def _texts(path: Path) -> list[tuple[bool, str]]:
    lines = (line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return [(label == "1", text) for label, text in lines]


def _words(folder: Path) -> dict[str, list[str]]:
    path = folder / "words.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def simulate(of: Task, way: str, seed: int) -> list[list[float]]:
    """At each of `MARKS`: g-mean at 0 and with the learned threshold, in percent, and the positives that are known."""
    part, model, found, n_positive = of.part, of.model(), [], 0
    options = {"tune_gamma": 0, **POLICIES[NEW if way == WITH_WORDS else way](part, seed)}
    options["first"] = of.seeded if way == WITH_WORDS else ()
    steps = label_pool(model, part.X, lambda row: bool(part.y[row]), seed=seed, **options)
    for step in itertools.islice(steps, MARKS[-1]):
        n_positive += step.y
        if step.n_labels in MARKS:
            f = model.decision_function_many(part.X_test)
            found.append([_g_mean(f > 0.0, part), _g_mean(f > model.decision_threshold, part), float(n_positive)])
    return found


def _g_mean(said: np.ndarray, part: Part) -> float:
    recalls = said[part.y_test].mean(), 1.0 - said[~part.y_test].mean()
    return 100.0 * float(np.sqrt(recalls[0] * recalls[1]))


def names_of(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """The sets of each kind."""
    texts = sorted(path.stem for path in arguments.texts.glob("*.tsv")) if arguments.texts else []
    return {"sets": chosen(RARE, arguments) if arguments.data else [], "texts": texts}


def run(arguments: argparse.Namespace, runs: Kept) -> None:
    """Run all that is missing, and print the tables."""
    every = [name for names in names_of(arguments).values() for name in names]
    for seed, name in itertools.product(range(arguments.seeds), every):
        of = None
        for way in (NEW, WITH_WORDS, *WAYS[:-1]):
            if runs.misses("threshold", name, way, seed):
                of = of or task(name, arguments, seed)
                if way != WITH_WORDS or of.seeded:
                    runs.put("threshold", name, way, seed, simulate(of, way, seed))
    report(arguments, runs)


def report(arguments: argparse.Namespace, runs: Kept) -> None:
    """Means of each kind of set, at 0 and with the learned threshold, and the default's lead over each other way."""
    for kind, names in names_of(arguments).items():
        found = {
            way: np.array(rows)
            for way in (*WAYS, WITH_WORDS)
            if (rows := [row for name in names for row in [_mean(runs, name, way, arguments.seeds)] if row is not None])
        }
        if not found:
            continue
        print(f"\n## Thresholds, {kind}: mean g-mean %, at 0 / with the learned threshold\n")
        print("| way | sets | " + " | ".join(HALF) + " | lead of the default |\n" + "|---" * (3 + len(HALF)) + "|")
        for way, rows in found.items():
            cells = [f"{rows[:, :, span, 0].mean():.1f} / {rows[:, :, span, 1].mean():.1f}" for span in HALF.values()]
            print(f"| {way} | {len(rows)} | " + " | ".join(cells) + f" | {_lead(found, way)} |")
        print("\n| set | " + " | ".join(found) + " |\n" + "|---" * (1 + len(found)) + "|")
        for name in names:
            own = [_mean(runs, name, way, arguments.seeds) for way in found]
            cells = ["" if row is None else f"{row[..., 0].mean():.1f} / {row[..., 1].mean():.1f}" for row in own]
            print(f"| {name} | " + " | ".join(cells) + " |")


def _mean(runs: Kept, name: str, way: str, seeds: int) -> np.ndarray | None:
    """The runs of a way on a set, (seeds, marks, 3); None if one is missing."""
    rows = [runs.get("threshold", name, way, seed) for seed in range(seeds)]
    return None if None in rows else np.array(rows)


def _lead(found: dict[str, np.ndarray], way: str) -> str:
    """By how much the default is better, both with the learned threshold, and the standard error of that."""
    if way == NEW or NEW not in found or found[way].shape != found[NEW].shape:
        return ""
    lead = (found[NEW][..., 1] - found[way][..., 1]).mean(axis=2).ravel()
    return f"{lead.mean():+.1f} ({lead.std(ddof=1) / np.sqrt(len(lead)):.1f})" if len(lead) > 1 else f"{lead[0]:+.1f}"
