"""`Mixture` beside the model in it, linear models and forests, on streams of many kinds.

    python benchmarks/mixture.py                        # 14 streams that river has or makes: half an hour
    python benchmarks/mixture.py --data DIR             # 7 more, from DIR/NAME/NAME.npz
    python benchmarks/mixture.py --forests              # river's ARF and SRP, too: hours
    python benchmarks/mixture.py --quick                # the first records of two streams

Records are raw, each is predicted before it is learned, and nothing is tuned.  "best linear" is the better of river's
logistic regression and passive-aggressive models behind a scaler.  ECE is the calibration error in 15 bins, log loss
cuts probabilities to 0.001; "us" are CPU microseconds for predicting and learning a record.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from river import datasets, ensemble, forest, linear_model, preprocessing
from river.datasets import synth
from shared.tables import shown, table
from tqdm import tqdm

from streamsvm import AutoLASVM, Mixture

N, QUICK, BINS = 10_000, 400, 15
Record = tuple[dict, bool]
Stream = Callable[[], Iterator[Record]]


class Result(NamedTuple):
    """Of one model on one stream."""

    accuracy: float  # percent
    log_loss: float
    ece: float
    microseconds: float


def rows(X: np.ndarray, y: np.ndarray) -> Iterator[Record]:
    """Records of arrays."""
    names = [f"f{j}" for j in range(X.shape[1])]
    return ((dict(zip(names, x, strict=True)), bool(label)) for x, label in zip(X.tolist(), y.tolist(), strict=True))


def drifting(parts: list[Any], width: int = 1, positive: Callable[[Any], bool] = bool) -> Iterator[Record]:
    """Equal shares of some concepts, each of which takes over within so many records."""
    rng, streams = np.random.default_rng(3), [iter(part) for part in parts]
    for i in range(N):
        concept = 0
        for c in range(1, len(parts)):
            over = (i - N * c / len(parts)) / width
            concept = c if rng.random() < 1.0 / (1.0 + np.exp(-4.0 * np.clip(over, -9.0, 9.0))) else concept
        x, y = next(streams[concept])
        yield x, positive(y)


def linear(noise: float, d: int, turns: bool, seed: int) -> Iterator[Record]:
    """A linear rule, which may turn by half a circle, and wrong labels."""
    rng = np.random.default_rng(seed)
    X, (a, b) = rng.normal(size=(N, d)), rng.normal(size=(2, d))
    angle = np.linspace(0.0, np.pi if turns else 0.0, N)
    return rows(X, (X @ a * np.cos(angle) + X @ b * np.sin(angle) > 0.0) ^ (rng.random(N) < noise))


def sine() -> Iterator[Record]:
    """Three of ten features count, by a curved rule; a tenth of the labels is wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 10))
    return rows(X, (np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] > 0.0) ^ (rng.random(N) < 0.1))


def remembering() -> Iterator[Record]:
    """Half of the evidence is the last label."""
    rng = np.random.default_rng(72)
    X, w, y, last = rng.normal(size=(N, 8)), rng.normal(size=8) * 0.5, np.zeros(N, bool), 0.0
    for i in range(N):
        y[i] = rng.random() < 1.0 / (1.0 + np.exp(-(X[i] @ w + 2.0 * last)))
        last = 1.0 if y[i] else -1.0
    return rows(X, y)


def sea(width: int) -> Iterator[Record]:
    """River's SEA with four concepts."""
    return drifting([synth.SEA(variant=v, noise=0.1, seed=10 + v) for v in (0, 3, 1, 0)], width)


def agrawal(width: int) -> Iterator[Record]:
    """River's Agrawal with three concepts."""
    return drifting(
        [synth.Agrawal(classification_function=f, seed=20 + f, perturbation=0.05) for f in (0, 3, 6)], width
    )


MADE: dict[str, Stream] = {
    "phishing": lambda: iter(datasets.Phishing()),
    "bananas": lambda: iter(datasets.Bananas()),
    "SEA, abrupt": lambda: sea(1),
    "SEA, gradual": lambda: sea(2000),
    "Agrawal, abrupt": lambda: agrawal(1),
    "Agrawal, gradual": lambda: agrawal(2000),
    "waveform, abrupt": lambda: drifting(
        [synth.Waveform(seed=30), ((x, y - 1) for x, y in synth.Waveform(seed=31))], 1, lambda y: y == 0
    ),
    "LED, gradual": lambda: drifting(
        [synth.LEDDrift(seed=40, noise_percentage=0.1, irrelevant_features=True, n_drift_features=f) for f in (0, 5)],
        2000,
        lambda y: y >= 5,
    ),
    "hyperplane": lambda: drifting(
        [synth.Hyperplane(seed=50, n_features=10, n_drift_features=5, mag_change=0.001, noise_percentage=0.05)]
    ),
    "moving RBF": lambda: drifting(
        [
            synth.RandomRBFDrift(
                seed_model=60,
                seed_sample=61,
                n_classes=2,
                n_features=10,
                n_centroids=50,
                change_speed=0.001,
                n_drift_centroids=25,
            )
        ]
    ),
    "linear, noisy": lambda: linear(0.2, 30, False, 70),
    "linear, turning": lambda: linear(0.1, 20, True, 71),
    "sine, noisy": sine,
    "labels with a memory": remembering,
}
STORED = {  # name: the positive classes, the number of records, and whether to shuffle them
    "elec2": ((1,), None, False),
    "letter": ((0,), N, False),
    "satimage": ((4,), None, True),
    "covtype_subset": ((2,), N, False),
    "a9a": ((1,), N, False),
    "spambase": ((1,), None, True),
    "ijcnn1": ((1,), 15_000, False),
}


def stored(folder: Path, name: str) -> Iterator[Record]:
    """A set of a folder."""
    positive, n, shuffled = STORED[name]
    with np.load(folder / name / f"{name}.npz") as data:
        if "X" in data:
            X, y = data["X"], data["y"]
        else:
            from scipy.sparse import csr_matrix

            X, y = csr_matrix((data["data"], data["indices"], data["indptr"]), data["shape"]).toarray(), data["y"]
    if shuffled:
        order = np.random.default_rng(1).permutation(len(y))
        X, y = X[order], y[order]
    return rows(X[:n].astype(float), np.isin(y[:n], positive))


def behind_scaler(model: Any) -> Any:
    """As river's benchmarks have linear models."""
    return preprocessing.StandardScaler() | model


LINEAR: dict[str, Callable[[], Any]] = {
    "logistic regression": lambda: behind_scaler(linear_model.LogisticRegression()),
    "PA, C=1": lambda: behind_scaler(linear_model.PAClassifier(C=1.0)),
    "PA, C=0.01": lambda: behind_scaler(linear_model.PAClassifier(C=0.01)),
}
FORESTS: dict[str, Callable[[], Any]] = {
    "ARF": lambda: forest.ARFClassifier(seed=42),
    "SRP": lambda: ensemble.SRPClassifier(seed=42),
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
    return Result(100.0 * np.mean((p > 0.5) == y), -np.log(likely).mean(), float(ece), 1e6 * seconds / len(records))


def row(name: str, records: list[Record], forests: bool) -> tuple[list[str], list[Result]]:
    """One line of the table: the model, the mixture, the best linear model, and forests."""
    for model in (AutoLASVM(), Mixture()):
        run(model, records[:100])
    ours = [run(AutoLASVM(), records), run(Mixture(), records)]
    best = max(run(make(), records).accuracy for make in LINEAR.values())
    others = [run(make(), records).accuracy for make in FORESTS.values()] if forests else []
    cells = [name, str(len(records)), *(f"{result.accuracy:.2f}" for result in ours), f"{best:.2f}"]
    cells += [f"{accuracy:.2f}" for accuracy in others]
    for part, form in (("log_loss", "{:.3f}"), ("ece", "{:.3f}"), ("microseconds", "{:.0f}")):
        cells.append(", ".join(shown(getattr(result, part), form) for result in ours))
    return cells, ours


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of npz files")
    parser.add_argument("--forests", action="store_true", help="run river's ARF and SRP as well")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK} records of two streams")
    arguments = parser.parse_args()
    streams = dict(list(MADE.items())[:2]) if arguments.quick else dict(MADE)
    if arguments.data and not arguments.quick:
        streams |= {name: lambda name=name: stored(arguments.data, name) for name in STORED}
    lines, ours = [], []
    for name, make in tqdm(streams.items(), leave=False):
        records = list(islice(make(), QUICK if arguments.quick else None))
        cells, found = row(name, records, arguments.forests)
        lines.append(cells)
        ours.append(found)
    both = np.array(ours)  # (streams, 2, parts)
    mean = both.mean(axis=0)
    rest = [""] * (1 + 2 * arguments.forests)
    lines.append(
        [
            "mean",
            "",
            *(f"{value:.2f}" for value in mean[:, 0]),
            *rest,
            *(
                ", ".join(form.format(value) for value in mean[:, part])
                for part, form in ((1, "{:.3f}"), (2, "{:.3f}"), (3, "{:.0f}"))
            ),
        ]
    )
    titles = "stream|records|AutoLASVM|Mixture|best linear|" + ("ARF|SRP|" if arguments.forests else "")
    print(table(titles + "log loss: both|ECE: both|us: both", lines), flush=True)


if __name__ == "__main__":
    main()
