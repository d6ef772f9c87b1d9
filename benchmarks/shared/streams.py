"""Streams of many kinds: what river has or makes, and sets from a folder, DIR/NAME/NAME.npz.

The rules of `Mixture` were chosen on the 21 streams of `MADE` and `STORED`.  `MADE_LATER` and `STORED_LATER` came
later, and chose nothing.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from river import datasets
from river.datasets import synth

N = 10_000  # records of a generated stream
Record = tuple[dict, bool]
Stream = Callable[[], Iterator[Record]]


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


def ringnorm() -> Iterator[Record]:
    """Breiman's: a wide normal distribution against a narrow one within it."""
    rng, d = np.random.default_rng(80), 20
    y = rng.random(N) < 0.5
    X = rng.normal(size=(N, d))
    return rows(np.where(y[:, None], X + 2.0 / np.sqrt(d), 2.0 * X), y)


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
MADE_LATER: dict[str, Stream] = {
    "STAGGER, abrupt": lambda: drifting([synth.STAGGER(f, seed=81 + f) for f in (0, 1, 2)]),
    "river's Sine, gradual": lambda: drifting([synth.Sine(f, seed=84 + f, has_noise=True) for f in (0, 2)], 2000),
    "Mixed, abrupt": lambda: drifting([synth.Mixed(f, seed=87 + f) for f in (0, 1)]),
    "random tree": lambda: drifting([synth.RandomTree(seed_tree=89, seed_sample=90, n_classes=2)]),
    "ringnorm": ringnorm,
}
Chosen = tuple[tuple[int, ...], int | None, bool]  # the positive classes, how many records, and whether to shuffle them
STORED: dict[str, Chosen] = {
    "elec2": ((1,), None, False),
    "letter": ((0,), N, False),
    "satimage": ((4,), None, True),
    "covtype_subset": ((2,), N, False),
    "a9a": ((1,), N, False),
    "spambase": ((1,), None, True),
    "ijcnn1": ((1,), 15_000, False),
}
STORED_LATER: dict[str, Chosen] = {
    "krkopt": (tuple(range(13, 18)), N, True),
    "waveform": ((0,), None, False),
    "german": ((1,), None, False),
    "pima": ((1,), None, False),
    "abalone": (tuple(range(10, 30)), None, False),
    "creditcard_subset": ((1,), N, True),
    "usps": ((0, 2, 4, 6, 8), 5000, False),
    "w8a": ((1,), N, True),
    "kdd_http": ((1,), 2 * N, True),
    "splice": ((2,), None, True),
}


CLASSES: dict[str, Chosen] = {  # sets of several classes; none of them is positive
    "satimage": ((), None, True),
    "waveform": ((), None, False),
    "letter": ((), 5000, False),
    "krkopt": ((), 5000, True),
    "usps": ((), 3000, False),
}


def arrays(folder: Path, name: str, n: int | None, shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """The first records of a set of a folder, and their classes."""
    with np.load(folder / name / f"{name}.npz") as data:
        if "X" in data:
            X, y = data["X"], data["y"]
        else:
            from scipy.sparse import csr_matrix

            X, y = csr_matrix((data["data"], data["indices"], data["indptr"]), data["shape"]).toarray(), data["y"]
    if shuffled:
        order = np.random.default_rng(1).permutation(len(y))
        X, y = X[order], y[order]
    return X[:n].astype(float), y[:n]


def stored(folder: Path, name: str) -> Iterator[Record]:
    """A set of a folder with two classes."""
    positive, n, shuffled = (STORED | STORED_LATER)[name]
    X, y = arrays(folder, name, n, shuffled)
    return rows(X, np.isin(y, positive))


def of_classes(folder: Path | None) -> dict[str, Callable[[], Iterator[tuple[dict, Any]]]]:
    """Streams of several classes; with a folder, its sets as well."""

    def labelled(name: str) -> Iterator[tuple[dict, Any]]:
        _, n, shuffled = CLASSES[name]
        X, y = arrays(folder or Path(), name, n, shuffled)
        return ((dict(enumerate(x)), label) for x, label in zip(X.tolist(), y.tolist(), strict=True))

    found = {"ImageSegments": lambda: iter(datasets.ImageSegments())}
    return found | {name: lambda name=name: labelled(name) for name in CLASSES if folder}


def streams(folder: Path | None, later: bool) -> dict[str, Stream]:
    """The streams on which the rules were chosen, or those that chose nothing; with a folder, its sets as well."""
    found = dict(MADE_LATER if later else MADE)
    if folder:
        names = STORED_LATER if later else STORED
        found |= {name: lambda name=name: stored(folder, name) for name in names}
    return found
