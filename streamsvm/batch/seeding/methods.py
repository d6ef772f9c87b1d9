"""The tables of all seeds, and the training from one."""

from collections.abc import Callable

import numpy as np

from streamsvm.batch import smo
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.batch.options import DEFAULTS, SolverOptions
from streamsvm.batch.problem import solution_of
from streamsvm.batch.seeding.along_c import averaged, best_reuse, direct, pairwise, scaled
from streamsvm.batch.seeding.ato import ato
from streamsvm.batch.seeding.chains import mir, reuse, sir
from streamsvm.batch.seeding.exact import path
from streamsvm.batch.seeding.full import avg, best, top
from streamsvm.batch.seeding.greedy import greedy
from streamsvm.batch.seeding.start import Start
from streamsvm.batch.solution import CONVERGED, Solution

Seed = Callable[[Solution, np.ndarray, np.ndarray], Start]  # from a solution and the next boxes

# For another training set.
SEEDS: dict[str, Seed] = {
    "reuse": reuse,
    "sir": sir,
    "mir": mir,
    "ato": ato,
    "chained": path,
    "avg": avg,
    "top": top,
    "greedy": greedy,
    "best": best,
    "path": path,
}

# For another C.
C_SEEDS: dict[str, Seed] = {
    "direct": direct,
    "scaled": scaled,
    "pairwise": pairwise,
    "averaged": averaged,
    "best": best_reuse,
}


def solve_from(
    previous: Solution, start: Start, lo: np.ndarray, hi: np.ndarray, options: SolverOptions = DEFAULTS
) -> Solution:
    """Train from a start; one that is optimal already costs one pass over its gradient."""
    return solved(previous.store, previous.y, lo, hi, start.alpha, start.g, options)


def solved(
    store: RowStore,
    y: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    alpha: np.ndarray,
    g: np.ndarray,
    options: SolverOptions = DEFAULTS,
) -> Solution:
    """The solution from a start; if it is one already, no kernel row is needed."""
    found = solution_of(store, y, lo, hi, alpha, g, CONVERGED)
    return smo.train(store, y, lo, hi, alpha, g, options) if found.violation > options.tol else found
