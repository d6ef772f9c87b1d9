"""Where a training may start, and what all seeds share."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.batch.kernels.cache import NO_ROWS
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.batch.seeding.repair import is_settled, repair
from streamsvm.batch.solution import Solution
from streamsvm.batch.steps.pairs import View, subtract_rows


class Start(NamedTuple):
    """Where a training may start.

    Attributes
    ----------
    alpha, g
        Feasible coefficients, and y - K alpha.
    seed
        The method that made it; "avg" or "greedy" replaces a path that could not be followed.
    events
        Number of events of the path, also of one that was given up.
    """

    alpha: np.ndarray
    g: np.ndarray
    seed: str
    events: int

    def objective(self, y: np.ndarray) -> float:
        """The dual objective, alpha'(y + g) / 2."""
        return 0.5 * float(self.alpha @ (y + self.g))


def view_of(store: RowStore, g: np.ndarray) -> View:
    """A view of all examples, for changes of g only."""
    return View(np.arange(len(g)), g, g, g, g, g, g, store.diagonal, np.empty(2), NO_ROWS, True)


def moved(previous: Solution, alpha: np.ndarray, seed: str) -> Start:
    """The start at alpha, its gradient brought up to date from the previous one's."""
    store, g, change = previous.store, previous.g.copy(), alpha - previous.dual_coef
    ids = np.flatnonzero(change)
    store.fill(ids)
    subtract_rows(store.data, view_of(store, g), ids, change[ids])
    return Start(alpha, g, seed, 0)


def staying(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """M: the examples that were free and still have a box."""
    return np.flatnonzero(previous.free & (lo < hi))


def with_mass(previous: Solution, leaving: np.ndarray) -> np.ndarray:
    leaving = np.asarray(leaving, np.int64)
    return leaving[previous.dual_coef[leaving] != 0.0]


def violating(previous: Solution, entering: np.ndarray) -> np.ndarray:
    """The entering examples that 0 is not optimal for."""
    entering = np.asarray(entering, np.int64)
    return entering[previous.y[entering] * (previous.g[entering] - previous.bias) > 0.0]


def settled_start(previous, alpha, g, lo, hi, seed: str, events: int) -> Start:
    """The start at alpha with the gradient g, after a repair of rounding errors."""
    largest = float(np.abs(previous.dual_coef).max(initial=0.0))
    if not is_settled(alpha, lo, hi, largest):
        old, alpha = alpha, repair(alpha, [staying(previous, lo, hi)], lo, hi, largest)
        ids = np.flatnonzero(alpha != old)
        subtract_rows(previous.store.data, view_of(previous.store, g), ids, (alpha - old)[ids])
    return Start(alpha, g, seed, events)


def better(previous: Solution, starts: Sequence[Start]) -> Start:
    return max(starts, key=lambda start: start.objective(previous.y))
