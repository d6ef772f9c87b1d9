"""The choice of C and of the kernel's gamma by cross-validation on a grid.

Kernel rows depend on gamma alone, so all folds and all values of C of one gamma share them.  Along C, which rises, the
training of a fold starts from its own solution for the C before.  If none of its coefficients is at its bound, that one
is the solution for every larger C, and nothing is trained.

With many small folds it is better to go along C with the solution over all examples, and to start the folds from that.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from streamsvm.batch import Solution, SolverOptions
from streamsvm.batch import seeding as seeds
from streamsvm.batch.rows import RowStore
from streamsvm.core import arguments
from streamsvm.core.kernels import make_kernel
from streamsvm.validation import crossval
from streamsvm.validation import folds as kinds
from streamsvm.validation.crossval import NOBODY, Fold, Problem, Result
from streamsvm.validation.scores import greater_is_better

OTHER_NAMES = {"single": "pairwise", "multiple": "averaged"}
WARM_STARTS = ("auto", "none", "single", "multiple", *seeds.C_SEEDS)
NO_SCORE = (
    "no setting has a score, since the metric is not defined on some of the folds; use larger or stratified folds, or "
    "the metric over all tests, result.score(metric) of each cell"
)
STOPPED = "no coefficient at its bound"  # the start of what was not trained


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
        Its standard deviation over the splits.
    result
        The cross-validation, which has decision values, other metrics and costs.
    """

    C: float
    gamma: float
    score: float
    spread: float
    result: Result

    def __repr__(self) -> str:
        return (
            f"Cell(C={self.C:g}, gamma={self.gamma:g}, score={self.score:.4f}, spread={self.spread:.4f}, "
            f"{len(self.result.per_fold)} splits)"
        )


@dataclass(frozen=True, eq=False)
class Search:
    """The outcome of a search on a grid.

    Attributes
    ----------
    Cs, gammas
        The grid's values, rising.
    table
        The cells; those of the first C, then those of the second, and so on.
    greater_is_better
        Whether more of the metric is better.
    solution
        The model of the best cell, trained on all examples; None if it was not asked for.
    warm_start, seeding
        Where trainings were to start; the `result` of a cell says what was picked.
    seconds
        Of the whole search, by the wall clock.
    """

    Cs: list[float]
    gammas: list[float]
    table: list[Cell]
    greater_is_better: bool
    solution: Solution | None
    warm_start: str
    seeding: str
    seconds: float

    def __repr__(self) -> str:
        has_scores = not np.isnan(self.scores).all()
        return (
            f"Search({len(self.table)} cells, best={self.best if has_scores else None}, seconds={self.seconds:.3f})\n"
            "scores, a line for each C and a column for each gamma:\n"
            + np.array2string(self.scores, precision=4, threshold=200, edgeitems=4, max_line_width=100)
        )

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each cell.

        Its columns are C, gamma, score, spread, iterations, kernel_evaluations and seconds.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = {name: [getattr(cell, name) for cell in self.table] for name in ("C", "gamma", "score", "spread")}
        costs = ("iterations", "kernel_evaluations", "seconds")
        return crossval.frame(columns | {name: [getattr(cell.result, name) for cell in self.table] for name in costs})

    @property
    def best(self) -> Cell:
        """The cell with the best score; of several, that of the smallest C and then of the smallest gamma."""
        return best_of(self.table, self.greater_is_better)

    @property
    def scores(self) -> np.ndarray:
        """The mean score of each C and gamma, (len(Cs), len(gammas)), as a heat map shows it."""
        return np.array([cell.score for cell in self.table]).reshape(len(self.Cs), len(self.gammas))

    @property
    def iterations(self) -> int:
        """Pair steps of all trainings but that of `solution`."""
        return sum(cell.result.iterations for cell in self.table)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed for all trainings but that of `solution`."""
        return sum(cell.result.kernel_evaluations for cell in self.table)


def best_of(table: list[Cell], greater: bool) -> Cell:
    """The first cell with the best score; one without a score is never better.

    The same scores of folds in another order have another mean in the last digits, which is to decide nothing.

    Raises
    ------
    ValueError
        If no cell has a score.
    """
    if all(np.isnan(cell.score) for cell in table):
        raise ValueError(NO_SCORE)
    sign = 1.0 if greater else -1.0
    return max(table, key=lambda cell: -np.inf if np.isnan(cell.score) else round(sign * cell.score, 12))


# ------------------------------------------------------------------------------------------------------------- the path


class _Setting(NamedTuple):
    """The problem but for its C and gamma."""

    X: Any
    y: np.ndarray
    weights: np.ndarray
    kernel: str
    degree: int
    coef0: float
    options: SolverOptions
    cache_mb: float
    device: str

    def store(self, gamma: float) -> RowStore:
        kernel = make_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)
        return RowStore(self.X, kernel, self.cache_mb, self.device)

    def problem(self, store: RowStore, C: float) -> Problem:
        boxes = arguments.boxes_of(C, self.weights, np.ones(len(self.y)))
        lower, upper = np.minimum(0.0, self.y * boxes), np.maximum(0.0, self.y * boxes)
        return Problem(store, self.y, lower, upper, self.options)


class _Task(NamedTuple):
    """Some splits for one gamma and every C."""

    setting: _Setting
    folds: kinds.Folds
    gamma: float
    Cs: list[float]
    splits: range
    warm: str
    seeding: str


class _Found(NamedTuple):
    """One training: its cell, its split (-1: all examples) and what became of it."""

    C: float
    gamma: float
    split: int
    outcome: Fold
    seeding: str = "none"
    reason: str = ""


def _along(task: _Task, store: RowStore, out: np.ndarray) -> Iterator[tuple[Problem, Solution, Fold]]:
    """For each C the problem, its solution without these examples, and what this took."""
    solution: Solution | None = None
    for C in task.Cs:
        begin, rows = time.perf_counter(), store.rows_computed
        problem = task.setting.problem(store, C)
        start, solution = _next(problem, solution, out, task.warm)
        took = crossval.outcome_of(solution, NOBODY, start, store.rows_computed - rows)
        yield problem, solution, took._replace(seconds=time.perf_counter() - begin)


def _next(problem: Problem, before: Solution | None, out: np.ndarray, warm: str) -> tuple[str, Solution]:
    """Where the training started, and the solution without these examples."""
    if before is None or warm == "none":
        return "cold", problem.solve(out)
    lower, upper = problem.boxes_without(out)
    if before.converged and seeds.along_c.optimal_for_larger_boxes(before):
        same = replace(before, lo=lower, hi=upper, iterations=0, planned=0, newton_steps=0, rows_computed=0)
        return STOPPED, same
    seed = seeds.C_SEEDS[_picked(before) if warm == "auto" else warm]
    start = seed(before, lower, upper)
    return start.seed, seeds.solve_from(before, start, lower, upper, problem.options)


def _picked(before: Solution) -> str:
    """Scaling is best by far where most support vectors are at their bounds, and spoils a solution where few are."""
    return "scaled" if 2 * np.count_nonzero(before.free) < len(before.support) else "best"


def _trainings(task: _Task) -> Iterator[_Found]:
    """All trainings of a task; `seeding` "none": every fold goes along C by itself."""
    store = task.setting.store(task.gamma)
    if task.seeding != "none":
        yield from _from_full(task, store)
        return
    for i in task.splits:
        test, out = task.folds.tests[i], task.folds.left_out[i]
        for C, (_, solution, took) in zip(task.Cs, _along(task, store, out), strict=True):
            f = solution.decision_values[test]
            yield _Found(C, task.gamma, i, took._replace(test=test, decision_values=f, predictions=f > 0.0))


def _from_full(task: _Task, store: RowStore) -> Iterator[_Found]:
    """The full solution along C, and for each C the folds from there."""
    for C, (problem, full, took) in zip(task.Cs, _along(task, store, NOBODY), strict=True):
        plan, reason = crossval.plan_of(problem, task.folds, full, task.seeding)
        yield _Found(C, task.gamma, -1, took, plan.seeding, reason)
        for i, outcome in zip(task.splits, crossval.run(plan, task.splits), strict=True):
            yield _Found(C, task.gamma, i, outcome, plan.seeding, reason)


def _list_of_trainings(task: _Task) -> list[_Found]:
    return list(_trainings(task))


def _all_trainings(tasks: list[_Task], n_jobs: int | None, jobs: int) -> Iterator[_Found]:
    if jobs == 1:
        for task in tasks:
            yield from _trainings(task)
        return
    for found in crossval.in_processes(_list_of_trainings, tasks, n_jobs):
        yield from found


# ------------------------------------------------------------------------------------------------------------ for users


def grid_search(
    X: Any,
    y: Any,
    *,
    Cs: Iterable[float],
    gammas: Iterable[float] = (1.0,),
    kernel: str = "rbf",
    degree: int = 3,
    coef0: float = 0.0,
    weights: Any = None,
    k: int = 3,
    folds: Any = None,
    metric: Any = "accuracy",
    greater: bool | None = None,
    warm_start: str = "auto",
    seeding: str = "auto",
    tol: float = 1e-3,
    refit: bool = True,
    n_jobs: int | None = 1,
    progress: bool = False,
    seed: int | None = 0,
    cache_mb: float = 256.0,
    device: str = "cpu",
) -> Search:
    """Cross-validate every C with every gamma, and train the best one.

    Parameters
    ----------
    X, y
        As for `cross_validate`; no `RowStore`, for its rows are those of one gamma.
    Cs, gammas
        The values to try; for the linear kernel leave `gammas` out.
    kernel, degree, coef0, weights
        As for `streamsvm.batch.smo.solve`.
    k, folds, seed, tol, progress, cache_mb, device
        As for `cross_validate`; the same folds serve every cell.
    metric
        What to choose by: see `streamsvm.validation.scores.measure`.
    greater
        Whether more of it is better; default: see `streamsvm.validation.compare`.
    warm_start
        Where training starts, given the solution for the C before: ``"direct"``: there; ``"scaled"``: with its bounded
        coefficients at the new bounds; ``"best"``: at the better of these two; ``"pairwise"`` or ``"single"``,
        ``"averaged"`` or ``"multiple"``: with exact steps of the bounded coefficients, pair by pair or of all of them;
        ``"none"``: at 0; ``"auto"``: ``"scaled"`` if most support vectors are at their bounds, else ``"best"``.
    n_jobs
        As for `cross_validate`; where folds start from the full solution, only the values of gamma are divided.
    seeding
        ``"none"``: every fold goes along C by itself; another one of `cross_validate` from the full solution: this one
        goes along C, and the folds start from it; ``"auto"``: the latter if splits leave out at most 1 in 30.
    refit
        Whether to train the best cell's model on all examples.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range, or all examples are of one class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> search = grid_search(X, y, Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0])
    >>> search.scores.shape
    (3, 2)
    >>> search.best
    Cell(C=10, gamma=1, score=0.93..., 3 splits)
    >>> search.solution.decision_function([[1.0, 1.0], [-1.0, 1.0]]) > 0
    array([ True, False])
    """
    begin = time.perf_counter()
    values, widths = _rising("Cs", Cs), _rising("gammas", gammas)
    warm = _chosen(X, kernel, widths, warm_start)
    problem, classes = crossval.problem_of(
        X, y, values[-1], widths[0], kernel, degree, coef0, weights, tol, cache_mb, device
    )
    positive = problem.y > 0.0
    splits = kinds.stratified(positive, k, seed=seed) if folds is None else kinds.folds_of(folds, positive)
    crossval.warn_of_one_class(splits, problem)
    seeded = _chosen_seeding(seeding, splits)
    w = arguments.weights_of(weights, len(positive))
    setting = _Setting(X, problem.y, w, kernel, degree, coef0, problem.options, cache_mb, device)

    jobs = crossval.workers(n_jobs)
    parts = crossval.in_parts(len(splits), -(-jobs // len(widths)) if seeded == "none" else 1)
    tasks = [_Task(setting, splits, gamma, values, part, warm, seeded) for gamma in widths for part in parts]
    total = len(widths) * len(values) * (len(splits) + (seeded != "none"))
    trainings = crossval.with_progress(_all_trainings(tasks, n_jobs, jobs), total, "trainings", progress)
    cells: dict[tuple[float, float], dict[int, _Found]] = {(C, gamma): {} for C in values for gamma in widths}
    for found in trainings:
        cells[found.C, found.gamma][found.split] = found
    crossval.warn_unless(
        sum(not one.outcome.converged for cell in cells.values() for one in cell.values()), total, "trainings"
    )
    table = []
    for (C, gamma), cell in cells.items():
        outcomes = {split: one.outcome for split, one in cell.items()}
        per_fold, first = [outcomes[i] for i in range(len(splits))], outcomes.get(-1)
        reason = "; ".join(filter(None, [cell[0].reason, f"warm start along C: {warm}"]))
        seconds = sum(one.seconds for one in outcomes.values())
        result = Result(positive, classes, splits, per_fold, None, first, cell[0].seeding, reason, seconds)
        scores = result.scores(metric)
        table.append(Cell(C, gamma, float(scores.mean()), float(scores.std()), result))
    up = greater_is_better(metric) if greater is None else greater
    if all(np.isnan(cell.score) for cell in table):
        warnings.warn(NO_SCORE, RuntimeWarning, stacklevel=2)
        refit = False
    solution = _refitted(setting, best_of(table, up)) if refit else None
    return Search(values, widths, table, up, solution, warm, seeded, time.perf_counter() - begin)


def _refitted(setting: _Setting, best: Cell) -> Solution:
    return setting.problem(setting.store(best.gamma), best.C).solve(NOBODY)


def _rising(name: str, values: Iterable[float]) -> list[float]:
    """The values in ascending order."""
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}={values!r} must be a list of numbers; for one setting there is cross_validate")
    given = list(values)
    if not given:
        raise ValueError(f"{name} is empty; at least one value is needed")
    for value in given:
        arguments.require_positive(f"a value of {name}", value)
    if len(set(given)) < len(given):
        raise ValueError(f"{name}={given!r} has a value twice")
    return sorted(float(value) for value in given)


def _chosen(X: Any, kernel: str, gammas: list[float], warm_start: str) -> str:
    """The warm start that was picked."""
    if isinstance(X, RowStore):
        raise TypeError("X is a RowStore, whose rows are those of one gamma; give the examples")
    if kernel == "linear" and len(gammas) > 1:
        raise ValueError(f"gammas={gammas!r}: the linear kernel has none; leave gammas out")
    if warm_start not in WARM_STARTS:
        raise ValueError(f"warm_start={warm_start!r} is unknown; use one of {', '.join(map(repr, WARM_STARTS))}")
    return OTHER_NAMES.get(warm_start, warm_start)


def _chosen_seeding(seeding: str, folds: kinds.Folds) -> str:
    """Whether folds start from the full solution: by "auto", if they are many and small."""
    crossval.require_seeding(seeding)
    if seeding in crossval.CHAINS:
        raise ValueError(f"seeding={seeding!r} leads from fold to fold, but along C every fold has its own start")
    if seeding == "auto":
        return "auto" if seeds.choice.effective_folds(folds.n, folds.left_out) >= crossval.MANY_FOLDS else "none"
    return seeding
