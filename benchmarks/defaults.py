"""What learners reach without tuning, beside the best fixed setting in hindsight, on 17 streams as they come: unscaled.

    python benchmarks/defaults.py --data DIR                       # all parts, streams and learners: an hour
    python benchmarks/defaults.py --data DIR --streams elec2 sea   # some streams
    python benchmarks/defaults.py --data DIR --parts starts        # one part
    python benchmarks/defaults.py --quick                          # two short streams that need no data

accuracy   share of right predictions in percent, and CPU microseconds a record; each learner predicts a record and
           then learns it
starts     the share of right predictions of AutoLASVM that begins 0, 11, 22, ... records later: how much is chance
cost       CPU microseconds in batches of 100, for which Python's own cost hardly counts; "late" is AutoLASVM's cost in
           those of `LASVM()` and of the champion's setting alone, from record 5000 on

The streams are bananas and phishing from river, three synthetic ones that drift, and sets from
a folder, at most 20,000 records each.  Sets without an order in time are shuffled once.

"Hindsight" is the best of 9 fixed settings: C in 1, 10, 100 and gamma in 1/4, 1, 4, in units of what "scale" stands
for.  Where a stream drifts, each setting also has windows of 2000, 500 and 125 records.  All settings share one scale.
"frozen" is the default of version 0.1.0: a scaler that stops moving after its warm-up, C = 1 and gamma = 1.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from river import datasets, ensemble, forest, linear_model, preprocessing, tree
from river.datasets import synth
from shared.tables import shown, table
from tqdm import tqdm

from streamsvm import LASVM, AutoLASVM, WarmupScaler
from streamsvm.estimators.tuned.candidates import _Lesson
from streamsvm.estimators.tuned.tuner import Tuner
from streamsvm.estimators.tuned.tuning import Candidate, Setting

LONGEST = 20_000  # records
QUICK = 1200
BATCH, LATE = 100, 5000
N_STARTS, APART = 5, 11  # starts, and records from one to the next
SETTINGS = [Setting(C, gamma) for C, gamma in product((1.0, 10.0, 100.0), (0.25, 1.0, 4.0))]
WINDOWS = (2000, 500, 125)
HINDSIGHT = "hindsight"
PARTS = ["accuracy", "starts", "cost"]


class Stream(NamedTuple):
    """Records in their order, and whether the concept changes."""

    X: np.ndarray
    y: np.ndarray
    drifts: bool = False

    def first(self, n: int | None) -> "Stream":
        """The first records."""
        return self._replace(X=self.X[:n], y=self.y[:n])


# ------------------------------------------------------------------------------------------------------------- streams


def of_records(records: Iterable[tuple[dict, Any]], drifts: bool = False) -> Stream:
    """A stream from river's records."""
    rows = list(records)
    X = np.array([[float(value) for value in x.values()] for x, _ in rows])
    return Stream(X, np.array([bool(y) for _, y in rows]), drifts)


def of_folder(folder: Path | None, name: str, positive: Iterable[int], n: int, in_order: bool = False) -> Stream:
    """A stream from a set in a folder: some of its classes against the others, shuffled unless they are in order."""
    if folder is None:
        raise FileNotFoundError(f"{name} needs --data, a folder with {name}/{name}.npz")
    z = np.load(folder / name / f"{name}.npz", allow_pickle=False)
    y = np.isin(z["y"], list(positive))
    order = np.arange(len(y)) if in_order else np.random.default_rng(0).permutation(len(y))[:n]
    if "X" in z.files:
        return Stream(z["X"][order].astype(float), y[order])
    X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
    return Stream(X[order].toarray().astype(float), y[order])


def sea(_: Path | None) -> Stream:
    """Four concepts of 5000 records each, with a tenth of the labels wrong."""
    parts = [synth.SEA(variant=v, seed=7 + v, noise=0.1).take(5000) for v in range(4)]
    return of_records((record for part in parts for record in part), drifts=True)


def hyperplane(_: Path | None) -> Stream:
    """A hyperplane that turns slowly."""
    kind = {"n_features": 10, "n_drift_features": 5, "mag_change": 0.005, "noise_percentage": 0.05}
    return of_records(synth.Hyperplane(seed=3, **kind).take(LONGEST), drifts=True)


def flipped(folder: Path | None) -> Stream:
    """Letters whose labels are exchanged half-way."""
    X, y, _ = of_folder(folder, "letter", range(13), 16_000)
    return Stream(X, y ^ (np.arange(len(y)) >= len(y) // 2), drifts=True)


STREAMS: dict[str, Callable[[Path | None], Stream]] = {
    "bananas": lambda _: of_records(datasets.Bananas()),
    "phishing": lambda _: of_records(datasets.Phishing()),
    "segment": lambda folder: of_folder(folder, "segment", (3, 4, 5), LONGEST),
    "spambase": lambda folder: of_folder(folder, "spambase", (1,), LONGEST),
    "abalone": lambda folder: of_folder(folder, "abalone", range(10, 40), LONGEST),
    "usps": lambda folder: of_folder(folder, "usps", (0, 2, 4, 6, 8), LONGEST),
    "letter": lambda folder: of_folder(folder, "letter", range(13), 15_000),
    "creditcard": lambda folder: of_folder(folder, "creditcard_subset", (1,), LONGEST, in_order=True),
    "ijcnn1": lambda folder: of_folder(folder, "ijcnn1", (1,), LONGEST),
    "kdd_http": lambda folder: of_folder(folder, "kdd_http", (1,), LONGEST),
    "covtype": lambda folder: of_folder(folder, "covtype_subset", (2,), 15_000),
    "a9a": lambda folder: of_folder(folder, "a9a", (1,), 15_000),
    "w8a": lambda folder: of_folder(folder, "w8a", (1,), LONGEST),
    "letter-flipped": flipped,
    "sea": sea,
    "hyperplane": hyperplane,
    "elec2": lambda folder: of_folder(folder, "elec2", (1,), 0, in_order=True)._replace(drifts=True),
}


# ------------------------------------------------------------------------------------------------------------ learners


class Judged(AutoLASVM):
    """Counts the right predictions of each of its learners, and of the one that predicts."""

    def __init__(self) -> None:
        super().__init__()
        self.right_of: Counter[int] = Counter()
        self.right = 0

    def _judged(self, lesson: _Lesson) -> tuple[Tuner, dict[int, LASVM]]:
        found = {n: np.count_nonzero((margins > 0.0) == lesson.positive) for n, margins in lesson.margins.items()}
        self.right_of.update(found)
        self.right += found[self._tuner.predicting]
        return super()._judged(lesson)


class Hindsight(Judged):
    """Many fixed settings that learn the same stream at the same scale; none is chosen."""

    def __init__(self, settings: list[Setting]) -> None:
        super().__init__()
        self._tuner = Tuner(candidates={number: Candidate(setting) for number, setting in enumerate(settings)})
        self._models = self._models_for(self._tuner, {}, (0, 0, (0, 0)))

    def _judged(self, lesson: _Lesson) -> tuple[Tuner, dict[int, LASVM]]:
        super()._judged(lesson)
        return self._tuner, self._models


def hindsight(stream: Stream) -> tuple[float, Setting]:
    """The accuracy in percent of the best fixed setting, and that setting."""
    windows = (None, *WINDOWS) if stream.drifts else (None,)
    settings = [setting._replace(window=window) for setting in SETTINGS for window in windows]
    model = Hindsight(settings)
    model.learn_many(stream.X, stream.y)
    ((best, right),) = model.right_of.most_common(1)
    return 100 * right / len(stream.y), settings[best]


LEARNERS: dict[str, Callable[[], Any]] = {
    "Auto": AutoLASVM,
    "LASVM()": LASVM,
    "frozen": lambda: WarmupScaler() | LASVM(C=1.0, gamma=1.0),
    "LogReg": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "ARF": lambda: forest.ARFClassifier(seed=0),
    "SRP": lambda: ensemble.SRPClassifier(seed=0),
    "LevBag": lambda: ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=0),
}


def prequential(model: Any, stream: Stream) -> tuple[float, float]:
    """Accuracy in percent, and CPU microseconds a record."""
    records = [(dict(enumerate(x)), y) for x, y in zip(stream.X.tolist(), stream.y.tolist(), strict=True)]
    right, begin = 0, time.process_time()
    for x, y in records:
        right += bool(model.predict_one(x)) == y
        model.learn_one(x, y)
    return 100 * right / len(records), 1e6 * (time.process_time() - begin) / len(records)


def in_batches(model: Any, stream: Stream) -> np.ndarray:
    """CPU microseconds of each record, learned in batches."""
    spent = np.empty(len(stream.y))
    for b in range(0, len(stream.y), BATCH):
        own, begin = slice(b, b + BATCH), time.process_time()
        model.learn_many(stream.X[own], stream.y[own])
        spent[own] = 1e6 * (time.process_time() - begin) / len(spent[own])
    return spent


# --------------------------------------------------------------------------------------------------------------- lines


def accuracy_line(stream: Stream, learners: list[str]) -> list[str]:
    """The accuracy of hindsight, with its setting, or of a learner, with its CPU microseconds a record."""
    cells = []
    for learner in learners:
        if learner == HINDSIGHT:
            accuracy, (C, gamma, window) = hindsight(stream)
            cells.append(f"{accuracy:.2f} ({C:g}, {gamma:g}{f', {window}' if window else ''})")
            continue
        prequential(LEARNERS[learner](), stream.first(50))  # Compile before the clock runs.
        found, spent = prequential(LEARNERS[learner](), stream)
        cells.append(f"{found:.2f}, {spent:.0f} us")
    return cells


def starts_line(stream: Stream) -> list[str]:
    """The accuracies of `AutoLASVM` that begins a little later: mean, standard deviation, least and largest."""
    found = []
    for begin in range(0, N_STARTS * APART, APART):
        model = Judged()
        model.learn_many(stream.X[begin:], stream.y[begin:])
        found.append(100 * model.right / (len(stream.y) - begin))
    return [f"{value:.2f}" for value in (np.mean(found), np.std(found, ddof=1), min(found), max(found))]


def cost_line(stream: Stream) -> list[str]:
    """CPU microseconds in batches, and AutoLASVM's cost in those of one learner."""
    auto = AutoLASVM()
    spent = in_batches(auto, stream)
    alone = in_batches(LASVM(), stream)
    champion = in_batches(Hindsight([auto.champion_._replace(weights=0)]), stream)
    late, known = slice(LATE, None), len(spent) > LATE
    ratios = [spent[late].mean() / other[late].mean() if known else None for other in (alone, champion)]
    return [f"{part.mean():.0f}" for part in (spent, alone)] + [shown(ratio, "{:.2f}") for ratio in ratios]


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files; default: only streams that need none")
    parser.add_argument("--streams", nargs="+", choices=list(STREAMS))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--learners", nargs="+", choices=[HINDSIGHT, *LEARNERS], default=[HINDSIGHT, *LEARNERS])
    parser.add_argument("--quick", action="store_true", help="two short streams")
    arguments = parser.parse_args()
    without_data = ["bananas", "phishing", "sea", "hyperplane"]
    chosen = arguments.streams or (list(STREAMS) if arguments.data else without_data)
    names = ["bananas", "sea"] if arguments.quick else chosen
    lines: dict[str, tuple[list[str], Callable[[Stream], list[str]]]] = {
        "accuracy": (arguments.learners, lambda stream: accuracy_line(stream, arguments.learners)),
        "starts": (["mean", "sd", "least", "most"], starts_line),
        "cost": (["Auto us", "LASVM() us", "late: of LASVM()", "of the champion"], cost_line),
    }
    for part in arguments.parts:
        titles, line_of = lines[part]
        rows = []
        for name in tqdm(names, desc=part, leave=False):
            stream = STREAMS[name](arguments.data).first(QUICK if arguments.quick else None)
            rows.append([name, f"{len(stream.y)}", *line_of(stream)])
        print(f"\n## {part}\n\n" + table("|".join(["stream", "n", *titles]), rows), flush=True)


if __name__ == "__main__":
    main()
