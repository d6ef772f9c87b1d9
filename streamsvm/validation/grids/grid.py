"""The outcome of a search on a grid."""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamsvm.validation.held_out.folds import Folds
from streamsvm.validation.held_out.given_folds import splits_of
from streamsvm.validation.held_out.parallel import warn_of_one_class
from streamsvm.validation.results import DIGITS, frame

NO_SCORE = (
    "no setting has a score, because the metric is not defined on some of the folds; use larger or stratified folds, "
    "or the metric over all tests: result.score(metric) of each cell"
)


@dataclass(frozen=True, eq=False)
class Cell:
    """One setting of the grid.

    Attributes
    ----------
    C, gamma
        The setting.
    score
        Mean of the metric over the splits.
    spread
        Standard deviation of the metric over the splits.
    result
        The cross-validation, a `Result` or a `ClassResult`.
    degree, coef0
        The setting, if the grid has such an axis; otherwise None.
    """

    C: float
    gamma: float
    score: float
    spread: float
    result: Any
    degree: int | None = None
    coef0: float | None = None

    def __repr__(self) -> str:
        more = {"degree": self.degree, "coef0": self.coef0}
        return (
            f"Cell(C={self.C:g}, gamma={self.gamma:g}, "
            + "".join(f"{name}={value:g}, " for name, value in more.items() if value is not None)
            + f"score={self.score:.4f}, spread={self.spread:.4f}, "
            f"{len(self.result.per_fold)} splits)"
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What searches for two and for several classes have in common."""

    _COSTS: ClassVar[tuple[str, ...]] = ("seconds",)  # of a cell's `result`, for the frame

    Cs: list[float]
    gammas: list[float]
    table: list[Cell]
    greater_is_better: bool
    refitted: Any
    seconds: float
    degrees: list[int] = field(default_factory=list, kw_only=True)
    coef0s: list[float] = field(default_factory=list, kw_only=True)
    coarse: Any = field(default=None, kw_only=True)

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each cell.

        Its columns are C, gamma, score, spread and seconds; for two classes also iterations and kernel_evaluations; and
        degree and coef0, if the grid has these axes.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        axes = [name for name in ("degree", "coef0") if getattr(self, f"{name}s")]
        names = ("C", "gamma", *axes, "score", "spread")
        columns = {name: [getattr(cell, name) for cell in self.table] for name in names}
        return frame(columns | {name: [getattr(cell.result, name) for cell in self.table] for name in self._COSTS})

    @property
    def best(self) -> Cell:
        """The cell with the best score; of equal ones, that of the smallest C and then of the smallest gamma.

        Raises
        ------
        ValueError
            If no cell has a score.
        """
        return best_of(self.table, self.greater_is_better)

    @property
    def _best_if_any(self) -> Cell | None:
        return self.best if has_scores(self.table) else None

    @property
    def solution(self) -> Any:
        """The model of the best cell, trained on all examples: a `Solution`, a `SmoothSVM` or a `OneVsOne`.

        A `OneVsOne` can go on learning.  It takes arrays and sparse matrices with the columns of X.

        Raises
        ------
        ValueError
            If there is none: with ``refit=False``, if no cell has a score, if the search scaled the features, or if X
            is a frame of several classes.  The message says what to do.
        """
        if isinstance(self.refitted, str):
            raise ValueError(f"the search has no solution: {self.refitted}")
        return self.refitted

    @property
    def scores(self) -> np.ndarray:
        """The mean score of each C and gamma, (len(Cs), len(gammas)), after the axes of degree and coef0, if any."""
        axes = [axis for axis in (self.degrees, self.coef0s, self.Cs, self.gammas) if axis]
        return np.array([cell.score for cell in self.table]).reshape([len(axis) for axis in axes])


@dataclass(frozen=True, eq=False)
class Search(Outcome):
    """The outcome of a search on a grid.

    Attributes
    ----------
    Cs, gammas
        The grid's values, ascending.
    table
        The cells: all values of gamma for the first C, then those for the second C, and so on.
    greater_is_better
        Whether a larger value of the metric is better.
    refitted
        The model of the best cell, trained on all examples.  Or, as text, why there is none; see `solution`.
    warm_start, seeding
        Where the trainings started; the `result` of a cell has its own choice.
    seconds
        Wall-clock time of the whole search.
    degrees, coef0s
        The grid's other values, ascending; empty without such an axis.  The table has the cells of the first degree and
        coef0 first.
    coarse
        With ``fine``, the search before, on the grid that was given; otherwise None.  It has its own seconds and costs.
    """

    _COSTS = ("iterations", "kernel_evaluations", "seconds")

    warm_start: str
    seeding: str

    def __repr__(self) -> str:
        return (
            f"Search({len(self.table)} cells, best={self._best_if_any}, status={dict(self.status)}, "
            f"seconds={self.seconds:.3f})\nscores, a row for each C and a column for each gamma:\n"
            + np.array2string(self.scores, precision=4, threshold=200, edgeitems=4, max_line_width=100)
        )

    @property
    def status(self) -> Counter[str]:
        """Why the solver stopped, with the number of folds of all cells for each reason; see `Fold`."""
        return Counter(status for cell in self.table for status in cell.result.status)

    @property
    def iterations(self) -> int:
        """Pair steps of all trainings except that of `solution`."""
        return sum(cell.result.iterations for cell in self.table)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed for all trainings except that of `solution`."""
        return sum(cell.result.kernel_evaluations for cell in self.table)


class Grid(NamedTuple):
    """What is tried, and on which folds."""

    X: Any
    y: Any
    Cs: list[float]
    gammas: list[float]
    k: int
    folds: Any
    seed: int | None
    sample_weight: Any
    progress: bool

    @property
    def settings(self) -> list[tuple[float, float]]:
        """Each C with each gamma."""
        return list(itertools.product(self.Cs, self.gammas))

    def splits(self, positive: np.ndarray, trained: np.ndarray) -> Folds:
        """The folds of all cells; a warning if some train on one class only."""
        made = splits_of(self.folds, positive, self.k, self.seed)
        warn_of_one_class(made, positive, trained, stacklevel=4)
        return made


class Found(NamedTuple):
    """The cross-validation of each (C, gamma), how to train the model of a cell, and the starts."""

    results: dict[tuple[float, float], Any]
    train: Callable[[Cell], Any]
    warm_start: str
    seeding: str


def cell_of(C: float, gamma: float, result: Any, metric: Any) -> Cell:
    """The cell of a setting, from its cross-validation."""
    scores = result.scores(metric)
    return Cell(C, gamma, float(scores.mean()), float(scores.std()), result)


def best_of(table: list[Cell], greater: bool) -> Cell:
    """The first cell with the best score; a cell without a score is never better.

    Scores are rounded first.  The same fold scores in another order have a mean with other last digits, and these must
    not decide.

    Raises
    ------
    ValueError
        If no cell has a score.
    """
    if not has_scores(table):
        raise ValueError(NO_SCORE)
    sign = 1.0 if greater else -1.0
    return max(table, key=lambda cell: -np.inf if np.isnan(cell.score) else round(sign * cell.score, DIGITS))


def has_scores(table: list[Cell]) -> bool:
    """Whether some cell has a score."""
    return not all(np.isnan(cell.score) for cell in table)


def why_not(refit: bool, table: list[Cell], given: Any, used: Any, kind: str) -> str:
    """Why no model is trained on all examples; empty if one is.  X is as it was `given`, and as it was `used`."""
    if not refit:
        return "refit=False"
    if not has_scores(table):
        return NO_SCORE
    if used is not given:
        return (
            "the search scaled the features, and the solution would be one for scaled features; scale X and give "
            f"gammas, or let {kind} with the best C learn X"
        )
    return ""
