"""Where a training may start, and what all seeds share."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.batch.seeding.repair import repair
from streamsvm.batch.smo import subtract
from streamsvm.batch.solution import Solution
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.rounding import DUST


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


Seed = Callable[[Solution, np.ndarray, np.ndarray], Start]  # from a solution and the next boxes


def moved(previous: Solution, alpha: np.ndarray, seed: str) -> Start:
    """The start at alpha, its gradient brought up to date from the previous one's."""
    g, change = previous.g.copy(), alpha - previous.dual_coef
    ids = np.flatnonzero(change)
    subtract(previous.store, ids, change[ids], g)
    return Start(alpha, g, seed, 0)


def staying(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """M: the examples that were free and still have a box."""
    return np.flatnonzero(previous.free & (lo < hi))


def leaving(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """R: the support vectors that have no box any more."""
    return np.flatnonzero((previous.dual_coef != 0.0) & (lo >= hi))


def entering(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """The examples that had no box and have one now."""
    return np.flatnonzero((previous.lo >= previous.hi) & (lo < hi))


def violating(previous: Solution, entering: np.ndarray) -> np.ndarray:
    """T: the entering examples that 0 is not optimal for."""
    return entering[previous.y[entering] * (previous.g[entering] - previous.bias) > 0.0]


def settled_start(previous, alpha, g, lo, hi, seed: str, events: int) -> Start:
    """The start at alpha with the gradient g, after a repair of rounding errors."""
    largest = float(np.abs(previous.dual_coef).max(initial=0.0))
    if not is_settled(alpha, lo, hi, largest):
        old, alpha = alpha, repair(alpha, [staying(previous, lo, hi)], lo, hi, largest)
        ids = np.flatnonzero(alpha != old)
        subtract(previous.store, ids, (alpha - old)[ids], g)
    return Start(alpha, g, seed, events)


@compiled
def is_settled(alpha, lo, hi, largest):
    """Whether alpha needs no repair: it is inside its box, sums to 0, and no rounding keeps it off a bound."""
    total = mass = 0.0
    for i in range(alpha.shape[0]):
        near = DUST * min(hi[i] - lo[i], largest)
        for bound in (lo[i], hi[i]):
            if alpha[i] != bound and abs(alpha[i] - bound) <= near:
                return False
        if not lo[i] <= alpha[i] <= hi[i]:
            return False
        total += alpha[i]
        mass += abs(alpha[i])
    return abs(total) <= 0.1 * DUST * mass


def better(previous: Solution, starts: Sequence[Start]) -> Start:
    return max(starts, key=lambda start: start.objective(previous.y))
