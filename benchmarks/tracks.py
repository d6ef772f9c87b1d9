"""River's published tracks: its own models, MOA's and ours on the same records, beside river's published figures.

    python benchmarks/tracks.py                                 # Bananas, Phishing and ImageSegments: some minutes
    python benchmarks/tracks.py --data DIR --tracks elec2       # Elec2, if DIR/elec2/elec2.npz is there: half an hour
    python benchmarks/tracks.py --moa moa.jar                   # and MOA's learners, with Java: see shared/moa.py
    python benchmarks/tracks.py --quick                         # the first records of two tracks
    python benchmarks/tracks.py --plot DIR                      # and pictures of accuracy against time (matplotlib)

Records come as river has them, unscaled, and each is predicted before it is learned.  River's models are those of its
benchmark page, with the parameters there: linear models behind a StandardScaler, ensembles as they are.  MOA's have
its defaults.  Ours are untuned: `LASVM()`, `AutoLASVM`, which tunes itself as the stream runs, and `Mixture`, which
has simple experts beside that; and the same for several classes.  The best of nine fixed settings in hindsight (see
defaults.py) has no time.  "us" are CPU microseconds for predicting and learning a record; MB is the model at the end,
as river measures it.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from defaults import hindsight, of_folder, of_records
from river import datasets, ensemble, forest, linear_model, optim, preprocessing, tree
from shared.moa import LEARNERS, outcomes
from shared.tables import shown, table
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from streamsvm import LASVM, AutoLASVM, Mixture, OneVsOne, OneVsRest

WARM = 1500  # records that load compiled code before the clock runs
QUICK = 500

Record = tuple[dict, Any]


class Result(NamedTuple):
    """Of one model on one track."""

    accuracy: float  # percent
    auc: float | None
    microseconds: float | None
    megabytes: float | None


def behind_scaler(model: Any) -> Any:
    """As river's benchmarks have linear models."""
    return preprocessing.StandardScaler() | model


RIVERS: dict[str, Callable[[], Any]] = {
    "Logistic regression": lambda: behind_scaler(linear_model.LogisticRegression(optim.SGD(0.005))),
    "ALMA": lambda: behind_scaler(linear_model.ALMAClassifier()),
    "Passive-Aggressive": lambda: behind_scaler(linear_model.PAClassifier()),
    "Adaptive Random Forest": lambda: forest.ARFClassifier(seed=42),
    "Aggregated Mondrian Forest": lambda: forest.AMFClassifier(seed=42),
    "Streaming Random Patches": lambda: ensemble.SRPClassifier(seed=42),
    "Leveraging Bagging": lambda: ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=42),
}
OURS: dict[str, Callable[[], Any]] = {"LASVM()": LASVM, "AutoLASVM": AutoLASVM, "Mixture": Mixture}
OURS_OF_SEVERAL: dict[str, Callable[[], Any]] = {
    "OneVsOne(LASVM())": lambda: OneVsOne(LASVM()),
    "OneVsRest(LASVM())": lambda: OneVsRest(LASVM()),
    "OneVsRest(AutoLASVM())": lambda: OneVsRest(AutoLASVM()),
    "Mixture(OneVsRest(AutoLASVM()))": lambda: Mixture(OneVsRest(AutoLASVM())),
}
BINARY_ONLY = ("Logistic regression", "ALMA", "Passive-Aggressive")
HINDSIGHT = "best fixed setting, in hindsight"
PUBLISHED = {  # accuracy in percent, from river's documentation of its benchmarks
    "bananas": {
        "Logistic regression": 54.32,
        "ALMA": 50.64,
        "Adaptive Random Forest": 88.70,
        "Aggregated Mondrian Forest": 88.94,
        "Streaming Random Patches": 87.17,
        "Leveraging Bagging": 82.83,
    },
    "phishing": {
        "Logistic regression": 88.72,
        "ALMA": 82.56,
        "Adaptive Random Forest": 90.79,
        "Aggregated Mondrian Forest": 90.47,
        "Streaming Random Patches": 91.35,
        "Leveraging Bagging": 89.43,
    },
    "elec2": {
        "Logistic regression": 82.21,
        "ALMA": 90.64,
        "Adaptive Random Forest": 87.66,
        "Aggregated Mondrian Forest": 84.99,
        "Streaming Random Patches": 86.89,
        "Leveraging Bagging": 89.27,
    },
    "segments": {
        "Adaptive Random Forest": 81.85,
        "Aggregated Mondrian Forest": 90.17,
        "Streaming Random Patches": 76.70,
        "Leveraging Bagging": 77.83,
    },
}


def elec2(folder: Path | None) -> Iterator[Record]:
    """The electricity market, from a folder."""
    stream = of_folder(folder, "elec2", (1,), 0, in_order=True)
    for x, y in zip(stream.X.tolist(), stream.y.tolist(), strict=True):
        yield dict(enumerate(x)), y


TRACKS: dict[str, Callable[[Path | None], Iterator[Record]]] = {
    "bananas": lambda _: iter(datasets.Bananas()),
    "phishing": lambda _: iter(datasets.Phishing()),
    "segments": lambda _: iter(datasets.ImageSegments()),
    "elec2": elec2,
}


def scored(model: Any, x: dict, binary: bool) -> tuple[Any, float]:
    """The predicted class, and a score of the positive one if there are two."""
    if not binary:
        return model.predict_one(x), 0.0
    if hasattr(model, "decision_function_one"):
        f = model.decision_function_one(x)
        return f > 0.0, f
    share = model.predict_proba_one(x).get(True, 0.0)
    return share > 0.5, share


def run(model: Any, records: list[Record], binary: bool) -> Result:
    """Predict and learn each record."""
    right, scores, start = 0, np.zeros(len(records)), time.process_time()
    for n, (x, y) in enumerate(records):
        predicted, scores[n] = scored(model, x, binary)
        right += predicted == y
        model.learn_one(x, y)
    seconds = time.process_time() - start
    auc = float(roc_auc_score([y for _, y in records], scores)) if binary else None
    megabytes = model._raw_memory_usage / 2**20
    return Result(100 * right / len(records), auc, 1e6 * seconds / len(records), megabytes)


def results(records: list[Record], moa: Path | None) -> dict[str, Result]:
    """Every model on one track."""
    binary = len({y for _, y in records}) == 2
    ours = OURS if binary else OURS_OF_SEVERAL
    models = {name: make for name, make in (ours | RIVERS).items() if binary or name not in BINARY_ONLY}
    found = {}
    if binary:
        found[HINDSIGHT] = Result(hindsight(of_records(records))[0], None, None, None)
    for name, make in tqdm(models.items(), leave=False):
        if name in ours:
            run(make(), records[:WARM], binary)
        found[name] = run(make(), records, binary)
    if moa:
        for name, outcome in zip(LEARNERS, outcomes(moa, records), strict=True):
            found[f"MOA's {name}"] = Result(outcome.accuracy, None, outcome.microseconds, None)
    return found


def show(track: str, n: int, found: dict[str, Result]) -> None:
    """Print the table of a track."""
    print(f"\n### {track}, {n} records\n")
    binary = any(result.auc is not None for result in found.values())
    rows = []
    for name, result in sorted(found.items(), key=lambda item: -item[1].accuracy):
        published = PUBLISHED[track].get(name)
        accuracy = f"{result.accuracy:.2f}" + (f" / {published:.2f}" if published else "")
        auc = [shown(result.auc, "{:.3f}")] if binary else []
        rows.append([name, accuracy, *auc, shown(result.microseconds), shown(result.megabytes, "{:.3f}")])
    print(table("model|accuracy % / published|" + ("AUC|" if binary else "") + "us|MB", rows), flush=True)


def draw(track: str, found: dict[str, Result], folder: Path) -> None:
    """Accuracy against time."""
    from matplotlib.figure import Figure

    axes = Figure(figsize=(7, 4.5), layout="constrained").subplots()
    for name, result in found.items():
        if result.microseconds is None:
            axes.axhline(result.accuracy, color="black", linestyle=":", linewidth=1)
            axes.annotate(name, (0.02, result.accuracy), xycoords=("axes fraction", "data"), fontsize=8)
            continue
        color = "#c44e52" if "LASVM" in name or "Mixture" in name else "#4c72b0"
        axes.plot(result.microseconds, result.accuracy, "o", color=color)
        side = {"xytext": (-4, 4), "ha": "right"} if name.startswith("MOA") else {"xytext": (4, 4)}
        axes.annotate(name, (result.microseconds, result.accuracy), textcoords="offset points", fontsize=8, **side)
    axes.set(xscale="log", xlabel="CPU microseconds a record", ylabel="accuracy, %", title=f"river's track {track}")
    axes.margins(x=0.2)
    axes.grid(alpha=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(folder / f"tracks-{track}.png", dpi=80)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files, for Elec2")
    parser.add_argument("--tracks", nargs="+", choices=list(TRACKS), default=["bananas", "phishing", "segments"])
    parser.add_argument("--moa", type=Path, metavar="JAR", help="run MOA's learners as well, with Java")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK} records of bananas and segments")
    parser.add_argument("--plot", type=Path, help="folder for pictures; default: none are drawn")
    arguments = parser.parse_args()
    for track in ["bananas", "segments"] if arguments.quick else arguments.tracks:
        records = list(islice(TRACKS[track](arguments.data), QUICK if arguments.quick else None))
        found = results(records, arguments.moa)
        show(track, len(records), found)
        if arguments.plot:
            draw(track, found, arguments.plot)


if __name__ == "__main__":
    main()
