"""A grid of settings for several classes: `validation.multiclass` for each C with each gamma."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsvm.batch import SolverOptions
from streamsvm.core import arguments
from streamsvm.validation.grids.grid import Cell, Outcome, best_of, cell_of, warn_without_scores, why_not
from streamsvm.validation.held_out.given_folds import splits_of
from streamsvm.validation.held_out.problem import Setting, setting_of
from streamsvm.validation.multiclass import problems_of, rows_of, validated
from streamsvm.validation.scale import resolve_scaling


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

    @property
    def solution(self) -> Any:
        """The model of the best cell, trained on all examples: a `OneVsOne`, which can go on learning.

        It takes arrays and sparse matrices with the columns of X.

        Raises
        ------
        ValueError
            If there is none: with ``refit=False``, if no cell has a score, if the search scaled the features, or if X
            is a frame.  The message says what to do.
        """
        return self._solution


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
    seeding: str,
    refit: bool,
    n_jobs: int | None,
    options: SolverOptions | None,
) -> ClassSearch:
    """`grid_search` for a `OneVsOne`; `gammas` is None for the model's own."""
    begin, given = time.perf_counter(), X
    binary, X = resolve_scaling(model.model, X, has_gamma=gammas is not None)
    setting, gammas = setting_of(binary, options), [binary.gamma] if gammas is None else gammas
    splits = splits_of(folds, arguments.vector_of("y", y), k, seed)
    cells: dict[tuple[float, float], Cell] = {}
    for gamma in gammas:
        of_gamma: Setting = setting._replace(gamma=gamma)
        problems, classes = problems_of(of_gamma, Cs, X, y, sample_weight)
        results = validated(problems, np.asarray(y), classes, splits, seeding, n_jobs)
        for C, result in zip(Cs, results, strict=True):
            cells[C, gamma] = cell_of(C, gamma, result, metric)
    table = [cells[C, gamma] for C in Cs for gamma in gammas]
    warn_without_scores(table, stacklevel=4)
    refitted: Any = why_not(refit, table, given, X, "a OneVsOne")
    if not refitted and hasattr(X, "columns"):
        refitted = "X is a frame, whose column names a solution would not know; give X.to_numpy()"
    if not refitted:
        best = best_of(table, greater)
        of_best = setting._replace(gamma=best.gamma)
        refitted = _refitted(type(model), binary, X, y, sample_weight, of_best, best.C)
    return ClassSearch(Cs, gammas, table, greater, refitted, time.perf_counter() - begin)


def _refitted(kind: Any, binary: Any, X: Any, y: Any, sample_weight: Any, setting: Setting, C: float) -> Any:
    """The model of this kind whose pairs are solved over all examples."""
    labels = np.asarray(y)
    used = np.flatnonzero(arguments.weights_of(sample_weight, len(labels), "sample_weight") > 0.0)
    X = rows_of(X)[used]
    weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)[used]
    problems, classes = problems_of(setting, [C], X, labels[used], weights)
    (found,) = problems.solve(np.zeros(0, np.int64))
    model = kind(binary.clone({"C": C, "gamma": setting.gamma, "scaling": None}), classes=classes.tolist())
    model.take_solutions(X, problems.places, problems.weights, used, found, problems.source.kernel_evaluations)
    return model
