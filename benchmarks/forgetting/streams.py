"""Streams, with fresh examples that stand for the moment.

Fresh examples are 5000 of the concept of the moment (synthetic), or the next 500 (elec2, which resemble those just
learned less than these resemble each other; in a random order they do not).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import Task, load_first

ELEC2 = Task("elec2", 10.0, 0.5, "1", "standard", 6000, "electricity", "UP")
BATCH, POINT, MEMORY, FOLDS = 100, 500, 500, 5
FRESH = 5000
N_DRIFT, TURN = 6000, 2.0  # examples; radians by which the boundary turns in the middle


class Stream(NamedTuple):
    """Examples in their order, and those that stand for the moment after the first n."""

    name: str
    X: np.ndarray
    y: np.ndarray
    fresh: Any  # n -> X, y
    C: float
    gamma: float
    n_fresh: int
    change: int | None = None


def concept(n: int, angle: float, rng: np.random.Generator, noise: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """Normal examples in four dimensions, parted by a curve that is turned by an angle, labels blurred near it."""
    X = rng.normal(size=(n, 4))
    side = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 0.5 * X[:, 2] ** 2 - 0.5
    return X, side + noise * rng.normal(size=n) > 0.0


def drifting(n: int = N_DRIFT, seed: int = 0) -> Stream:
    """A concept that changes at once, half-way."""
    rng, half = np.random.default_rng(seed), n // 2
    parts = concept(half, 0.0, rng), concept(n - half, TURN, rng)
    X, y = (np.concatenate(both) for both in zip(*parts, strict=True))

    def fresh(begin: int) -> tuple[np.ndarray, np.ndarray]:
        return concept(FRESH, 0.0 if begin <= half else TURN, np.random.default_rng([seed, begin]))

    return Stream("drifting", X, y, fresh, 10.0, 0.2, FRESH, half)


def opposite(n: int, seed: int = 0) -> Stream:
    """A concept that becomes its opposite half-way; a quarter of all labels is wrong at any time."""
    rng, half = np.random.default_rng(seed), n // 2
    X, y = concept(n, 0.0, rng, noise=0.0)
    truth = y ^ (np.arange(n) >= half)

    def fresh(begin: int) -> tuple[np.ndarray, np.ndarray]:
        X, y = concept(FRESH, 0.0, np.random.default_rng([seed, begin]), noise=0.0)
        return X, y if begin <= half else ~y

    return Stream("opposite", X, truth ^ (rng.random(n) < 0.25), fresh, 1.0, 0.2, FRESH, half)


def elec2(folder: Path | None, n: int, shuffled: bool = False) -> Stream:
    """The first examples of elec2, in the order of time, or in a random one."""
    X, y = load_first(ELEC2._replace(n_train=n + POINT), folder)
    if shuffled:
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]

    def fresh(begin: int) -> tuple[np.ndarray, np.ndarray]:
        return X[begin : begin + POINT], y[begin : begin + POINT] > 0

    name = "elec2-shuffled" if shuffled else "elec2"
    return Stream(name, X[:n], y[:n] > 0, fresh, ELEC2.C, ELEC2.gamma, POINT)


def records(n: int, noise: float, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of a long stream."""
    rng = np.random.default_rng(seed)
    for _ in range(n // BATCH):
        yield concept(BATCH, 0.0, rng, noise)
