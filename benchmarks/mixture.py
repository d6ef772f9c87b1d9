"""`Mixture` beside the model in it, linear models and MOA's learners, on streams of many kinds.

    python benchmarks/mixture.py                                # 14 streams that river has or makes: ten minutes
    python benchmarks/mixture.py --data DIR --moa moa.jar       # 7 more, and MOA's learners: an hour
    python benchmarks/mixture.py --later --data DIR --moa moa.jar    # 15 streams that chose nothing
    python benchmarks/mixture.py --classes --data DIR           # six streams of several classes
    python benchmarks/mixture.py --limited --data DIR           # what 2000 members cost the model alone and within it
    python benchmarks/mixture.py --quick                        # the first records of two streams

Records are raw, each is predicted before it is learned, and nothing is tuned.  "linear" is the best of river's
logistic regression and two passive-aggressive models behind a scaler.  ARF, SRP, SGBT and SAMkNN are MOA's (see
shared/moa.py).  ECE is the calibration error in 15 bins, log loss cuts probabilities to 0.001; "us" are CPU
microseconds for predicting and learning a record.  Each line also goes to stderr as soon as it is known.
"""

import argparse
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from river import linear_model, preprocessing
from scipy.stats import rankdata
from shared.moa import LEARNERS, outcomes
from shared.streams import MADE, STORED, Record, of_classes, streams
from shared.tables import say, table
from tqdm import tqdm

from streamsvm import AutoLASVM, Mixture, OneVsRest

QUICK, WARM, BINS = 400, 1500, 15
OURS: dict[str, Callable[[], Any]] = {"AutoLASVM": AutoLASVM, "Mixture": Mixture}
LIMIT: dict[str, Any] = {"budget": 2000, "on_budget": "merge"}
LIMITED: dict[str, Callable[[], Any]] = {
    "AutoLASVM, limited": lambda: AutoLASVM(**LIMIT),
    "Mixture, limited": lambda: Mixture(AutoLASVM(**LIMIT)),
}


class Result(NamedTuple):
    """Of one model on one stream; MOA's learners have accuracy and time only."""

    accuracy: float  # percent
    microseconds: float
    log_loss: float = np.nan
    ece: float = np.nan


def behind_scaler(model: Any) -> Any:
    """As river's benchmarks have linear models."""
    return preprocessing.StandardScaler() | model


LINEAR: dict[str, Callable[[], Any]] = {
    "logistic regression": lambda: behind_scaler(linear_model.LogisticRegression()),
    "PA, C=1": lambda: behind_scaler(linear_model.PAClassifier(C=1.0)),
    "PA, C=0.01": lambda: behind_scaler(linear_model.PAClassifier(C=0.01)),
}


def run(model: Any, records: list[Record]) -> Result:
    """Predict and learn each record."""
    p, start = np.zeros(len(records)), time.process_time()
    for i, (x, y) in enumerate(records):
        found = model.predict_proba_one(x) if hasattr(model, "predict_proba_one") else {}
        p[i] = found.get(True, 0.5)
        model.learn_one(x, y)
    seconds, y = time.process_time() - start, np.array([y for _, y in records])
    likely, bins = np.clip(np.where(y, p, 1.0 - p), 1e-3, 1.0), np.minimum((p * BINS).astype(int), BINS - 1)
    ece = sum(abs(p[bins == b].mean() - y[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins))
    accuracy = 100.0 * float(np.mean((p > 0.5) == y))
    return Result(accuracy, 1e6 * seconds / len(records), float(-np.log(likely).mean()), float(ece))


def results(records: list[Record], moa: Path | None, limited: bool) -> dict[str, Result]:
    """Every model on one stream, or ours without and with a limit."""
    found = {name: run(make(), records) for name, make in (OURS | LIMITED if limited else OURS).items()}
    if limited:
        return found
    linear = [run(make(), records) for make in LINEAR.values()]
    found["linear"] = max(linear, key=lambda result: result.accuracy)
    if moa:
        found |= {name: Result(*outcome) for name, outcome in zip(LEARNERS, outcomes(moa, records), strict=True)}
    return found


def cells(found: dict[str, Result]) -> list[str]:
    """What a line says of the models."""
    ours, moas = ([found[name] for name in names if name in found] for names in (OURS | LIMITED, LEARNERS))

    def each(results: list[Result], part: str, form: str) -> str:
        return ", ".join(form.format(getattr(result, part)) for result in results)

    return [
        *(f"{result.accuracy:.2f}" for result in found.values()),
        *(each(ours, part, "{:.3f}") for part in ("log_loss", "ece")),
        each(ours, "microseconds", "{:.0f}"),
        *([each(moas, "microseconds", "{:.0f}")] if moas else []),
    ]


def of_several(model: Any, records: list[tuple[dict, Any]]) -> tuple[float, float, float]:
    """Predict and learn each record of several classes: accuracy in percent, log loss, CPU microseconds."""
    right, lost, start = 0, 0.0, time.process_time()
    for x, y in records:
        p = model.predict_proba_one(x)
        right += bool(p) and max(p, key=p.__getitem__) == y
        lost -= float(np.log(max(p.get(y, 0.0), 1e-3)))
        model.learn_one(x, y)
    n, seconds = len(records), time.process_time() - start
    return 100.0 * right / n, lost / n, 1e6 * seconds / n


def classes(folder: Path | None, most: int | None) -> None:
    """The table of streams of several classes."""
    lines, makes = [], (lambda: OneVsRest(AutoLASVM()), lambda: Mixture(OneVsRest(AutoLASVM())))
    for name, stream in tqdm(of_classes(folder).items(), leave=False):
        records = list(islice(stream(), most))
        for make in makes:
            of_several(make(), records[:QUICK])  # code is compiled
        parts = list(zip(*(of_several(make(), records) for make in makes), strict=True))
        figures = [
            ", ".join(map(form.format, own)) for form, own in zip(("{:.2f}", "{:.3f}", "{:.0f}"), parts, strict=True)
        ]
        lines.append([name, str(len(records)), str(len({y for _, y in records})), *figures])
        tqdm.write(" | ".join(lines[-1]), file=sys.stderr)
    titles = "stream|records|classes|accuracy: OneVsRest(AutoLASVM()), Mixture of it|log loss: both|us: both"
    print(table(titles, lines) + "\n", flush=True)


def aims(found: dict[str, dict[str, Result]], mean: dict[str, Result]) -> None:
    """What `Mixture` must reach on the streams on which its rules were chosen."""
    ours = mean["Mixture"]
    say("mean accuracy at least 88.2", f"{ours.accuracy:.2f}", ours.accuracy >= 88.2)
    say("mean log loss at most 0.287", f"{ours.log_loss:.3f}", ours.log_loss <= 0.287)
    say("mean calibration error at most 0.013", f"{ours.ece:.3f}", ours.ece <= 0.013)
    worst = max(results["Mixture"].ece for results in found.values())
    say("calibration error at most 0.03 on each stream", f"{worst:.3f}", worst <= 0.03)


def behind(found: dict[str, dict[str, Result]]) -> None:
    """How far `Mixture` is behind another model, at most."""
    for other, most in {"linear": 0.5, "ARF": 0.6, "SRP": 0.6, "SGBT": 0.6, "SAMkNN": 0.6}.items():
        gaps = {
            name: results[other].accuracy - results["Mixture"].accuracy
            for name, results in found.items()
            if other in results
        }
        if gaps:
            worst = max(gaps, key=lambda name: gaps[name])
            say(f"at most {most} points behind {other}", f"{gaps[worst]:.2f}, {worst}", gaps[worst] <= most)


def limits(found: dict[str, dict[str, Result]]) -> None:
    """What each model loses by the limit."""
    for name in OURS:
        lost = {stream: own[name].accuracy - own[f"{name}, limited"].accuracy for stream, own in found.items()}
        worst = max(lost, key=lambda stream: lost[stream])
        print(f"- {name} loses {np.mean(list(lost.values())):.2f} points, and at most {lost[worst]:.2f} ({worst})")


def summary(found: dict[str, dict[str, Result]], lines: list[list[str]]) -> dict[str, Result]:
    """Print the lines with the mean of each model below, and its rank by accuracy; returns the means."""
    models = list(next(iter(found.values())))
    figures = np.array([[results[model] for model in models] for results in found.values()])  # (streams, models, parts)
    mean = {model: Result(*parts) for model, parts in zip(models, figures.mean(axis=0), strict=True)}
    ranks = [f"{rank:.2f}" for rank in rankdata(-figures[:, :, 0].round(6), axis=1).mean(axis=0)]
    titles = ["stream", "records", *models, "log loss: ours", "ECE: ours", "us: ours"]
    titles += ["us: MOA's"] if LEARNERS.keys() <= set(models) else []
    below = [["mean", "", *cells(mean)], ["mean rank", "", *ranks, *[""] * (len(titles) - 2 - len(ranks))]]
    print(table("|".join(titles), [*lines, *below]) + "\n", flush=True)
    return mean


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files")
    parser.add_argument("--later", action="store_true", help="streams that were not used to choose the rules")
    parser.add_argument("--classes", action="store_true", help="streams of several classes")
    parser.add_argument("--limited", action="store_true", help="our models without and with 2000 members, no others")
    parser.add_argument("--only", nargs="+", metavar="STREAM", help="some streams, by their names in the table")
    parser.add_argument("--moa", type=Path, metavar="JAR", help="run MOA's learners as well, with Java")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK} records of two streams")
    arguments = parser.parse_args()
    if arguments.classes:
        classes(arguments.data, QUICK if arguments.quick else None)
        return
    chosen = streams(arguments.data, arguments.later)
    names = arguments.only or list(chosen)[: 2 if arguments.quick else None]
    if unknown := set(names) - set(chosen):
        parser.error(f"--only: no stream {'; '.join(sorted(unknown))}; there are {'; '.join(chosen)}")
    for make in OURS.values():
        run(make(), list(islice(next(iter(chosen.values()))(), WARM)))  # code is compiled
    lines, found = [], {}
    for name in tqdm(names, leave=False):
        records = list(islice(chosen[name](), QUICK if arguments.quick else None))
        found[name] = results(records, arguments.moa, arguments.limited)
        lines.append([name, str(len(records)), *cells(found[name])])
        tqdm.write(" | ".join(lines[-1]), file=sys.stderr)
    mean = summary(found, lines)
    if arguments.limited:
        limits(found)
        return
    if len(found) == len(MADE) + len(STORED):
        aims(found, mean)
    behind(found)


if __name__ == "__main__":
    main()
