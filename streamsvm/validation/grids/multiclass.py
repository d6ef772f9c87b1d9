"""A grid of settings for several classes: `validation.multiclass` for each C with each gamma."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.inputs import matrix_of
from streamsvm.validation.grids.grid import Cell, Found, Grid, Outcome
from streamsvm.validation.held_out.given_folds import splits_of
from streamsvm.validation.held_out.problem import Setting
from streamsvm.validation.multiclass import problems_of, validated


@dataclass(frozen=True, eq=False)
class ClassSearch(Outcome):
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
    refitted
        The model of the best cell, trained on all examples: a `OneVsOne`.  Or, as text, why there is none; see
        `solution`.
    seconds
        Wall-clock time of the whole search.
    degrees, coef0s, coarse
        As in `Search`.
    """

    def __repr__(self) -> str:
        return f"ClassSearch({len(self.table)} cells, best={self._best_if_any}, seconds={self.seconds:.3f})"


def of_classes(kind: Any, binary: Any, setting: Setting, grid: Grid, seeding: str, n_jobs: int | None) -> Found:
    """The cells of a model of this kind, such as a `OneVsOne`, of models like `binary`."""
    splits = splits_of(grid.folds, arguments.vector_of("y", grid.y), grid.k, grid.seed)
    results: dict[tuple[float, float], Any] = {}
    for gamma in grid.gammas:
        of_gamma: Setting = setting._replace(gamma=gamma)
        problems, classes = problems_of(of_gamma, grid.Cs, grid.X, grid.y, grid.sample_weight)
        found = validated(problems, np.asarray(grid.y), classes, splits, seeding, n_jobs)
        results |= {(C, gamma): result for C, result in zip(grid.Cs, found, strict=True)}

    def train(best: Cell) -> Any:
        if hasattr(grid.X, "columns"):
            return "X is a frame, whose column names a solution would not know; give X.to_numpy()"
        return _refitted(kind, binary, grid, setting._replace(gamma=best.gamma), best.C)

    return Found({cell: results[cell] for cell in grid.settings}, train, "auto", seeding)


def _refitted(kind: Any, binary: Any, grid: Grid, setting: Setting, C: float) -> Any:
    """The model of this kind whose pairs are solved over all examples."""
    labels, given = np.asarray(grid.y), grid.sample_weight
    used = np.flatnonzero(arguments.weights_of(given, len(labels), "sample_weight") > 0.0)
    X = matrix_of(grid.X)[used]
    weights = None if given is None else np.asarray(given, np.float64)[used]
    problems, classes = problems_of(setting, [C], X, labels[used], weights)
    (found,) = problems.solve(np.zeros(0, np.int64))
    model = kind(binary.clone({"C": C, "gamma": setting.gamma, "scaling": None}), classes=classes.tolist())
    model.take_solutions(X, problems.places, problems.weights, used, found, problems.source.kernel_evaluations)
    return model
