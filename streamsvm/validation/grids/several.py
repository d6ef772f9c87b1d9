"""A grid of settings for several classes: `validation.several` for each C with each gamma."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsvm.batch import SolverOptions
from streamsvm.validation.grids.grid import Cell, best_of, cell_of
from streamsvm.validation.held_out.given_folds import splits_of
from streamsvm.validation.held_out.problem import Setting, setting_of
from streamsvm.validation.scale import with_numbers
from streamsvm.validation.several import problems_of, validated


@dataclass(frozen=True, eq=False)
class ClassSearch:
    """The outcome of a search on a grid, for several classes.

    Attributes
    ----------
    Cs, gammas
        The grid's values, ascending.
    table
        The cells: all values of gamma for the first C, then those for the second C, and so on.  The `result` of a cell
        is a `ClassResult`.
    greater_is_better
        Whether a larger value of the metric is better.
    seconds
        Wall-clock time of the whole search.
    """

    Cs: list[float]
    gammas: list[float]
    table: list[Cell]
    greater_is_better: bool
    seconds: float

    def __repr__(self) -> str:
        return f"ClassSearch({len(self.table)} cells, best={self.best}, seconds={self.seconds:.3f})"

    @property
    def best(self) -> Cell:
        """The cell with the best score; of equal ones, that of the smallest C and then of the smallest gamma."""
        return best_of(self.table, self.greater_is_better)

    @property
    def scores(self) -> np.ndarray:
        """The mean score of each C and gamma, (len(Cs), len(gammas))."""
        return np.array([cell.score for cell in self.table]).reshape(len(self.Cs), len(self.gammas))


def search_classes(
    model: Any,
    X: Any,
    y: Any,
    Cs: list[float],
    gammas: list[float] | None,
    k: int,
    folds: Any,
    seed: int | None,
    sample_weight: Any,
    metric: Any,
    greater: bool,
    options: SolverOptions | None,
) -> ClassSearch:
    """`grid_search` for a `OneVsOne`; `gammas` is None for the model's own."""
    begin = time.perf_counter()
    binary, X = with_numbers(model.model, X, has_gamma=gammas is not None)
    setting, gammas = setting_of(binary, options), [binary.gamma] if gammas is None else gammas
    splits = splits_of(folds, np.asarray(y), k, seed)
    cells: dict[tuple[float, float], Cell] = {}
    for gamma in gammas:
        of_gamma: Setting = setting._replace(gamma=gamma)
        problems, classes = problems_of(of_gamma, Cs, X, y, sample_weight)
        for C, result in zip(Cs, validated(problems, np.asarray(y), classes, splits), strict=True):
            cells[C, gamma] = cell_of(C, gamma, result, metric)
    table = [cells[C, gamma] for C in Cs for gamma in gammas]
    return ClassSearch(Cs, gammas, table, greater, time.perf_counter() - begin)
