"""The choice of C and of the kernel's gamma by cross-validation on a grid."""

import copy
import time
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from streamsvm.batch import RowStore, SmoothSVM, Solution, SolverOptions, smo
from streamsvm.batch import seeding as seeds
from streamsvm.batch.kernels.matrix import Matrices
from streamsvm.core import arguments
from streamsvm.core.threads import SHARES, one_blas_thread
from streamsvm.validation import smooth
from streamsvm.validation.grids.along_c import OTHER_NAMES, WARM_STARTS, Examples, Task, Training, trainings
from streamsvm.validation.grids.grid import NO_SCORE, Cell, Found, Grid, Search, best_of, cell_of, has_scores, why_not
from streamsvm.validation.grids.multiclass import ClassSearch, of_classes
from streamsvm.validation.grids.on_matrix import refitted
from streamsvm.validation.grids.widened import ascending, require_of_kernel, widened
from streamsvm.validation.held_out.folds import Folds
from streamsvm.validation.held_out.parallel import in_parts, warn_of_failures, with_progress, workers
from streamsvm.validation.held_out.problem import Setting, is_one_vs_one, labelled, setting_of, signs_of
from streamsvm.validation.held_out.splits import CHAINS, MANY_FOLDS, require_seeding
from streamsvm.validation.multiclass import require_plain
from streamsvm.validation.results import Result
from streamsvm.validation.scale import resolve_scaling
from streamsvm.validation.scores import greater_is_better


def grid_search(
    model: Any,
    X: Any,
    y: Any,
    *,
    Cs: Iterable[float],
    gammas: Iterable[float] | None = None,
    degrees: Iterable[int] | None = None,
    coef0s: Iterable[float] | None = None,
    fine: int = 0,
    k: int = 3,
    folds: Any = None,
    metric: Any = "accuracy",
    greater: bool | None = None,
    warm_start: str = "auto",
    seeding: str = "auto",
    sample_weight: Any = None,
    refit: bool = True,
    n_jobs: int | None = None,
    progress: bool = False,
    seed: int | None = 0,
    options: SolverOptions | None = None,
) -> Any:
    """Cross-validate every C with every gamma, and train a model with the best setting.

    Parameters
    ----------
    model
        As for `cross_validate`; its own C and gamma are not used.
    X, y
        As for `cross_validate`, but X cannot be a `RowStore`, which has the kernel rows of one gamma only.
    Cs
        Values of C to try, positive, in any order.
    gammas
        Values of gamma to try, positive, in any order.  Default: the model's gamma.  Leave it out with the linear
        kernel.
    degrees, coef0s
        Values of the kernel's degree and coef0 to try, in any order.  Default: the model's own.  Each pair of them has
        kernel values of its own.
    fine
        Number of steps of a second, finer grid between the best setting of the first one and its neighbours, for C and
        gamma.  4 makes steps of 2^0.5 out of steps of 2^2.  Beyond the edge of the first grid, there are as many.  0:
        no second grid.
    k, folds, seed, sample_weight, progress, options
        As for `cross_validate`; all cells have the same folds.
    metric
        The metric to choose by: see `streamsvm.validation.scores.measure`.
    greater
        Whether a larger value of the metric is better.  Default: see `streamsvm.validation.compare`.
    warm_start
        Where a training starts, given the solution for the C before; it changes the time and not the result, see
        Notes.  A `SmoothSVM` takes ``"auto"`` only.
    seeding
        Where the folds start.  ``"none"``: each fold starts from its own solution for the previous C.  A start from the
        full solution (see `cross_validate`): the full solution is solved along C, and the folds of each C start from
        it.  ``"auto"``, the default: such a start if splits leave out at most 1 in 30 examples, else ``"none"``.  A
        `SmoothSVM` takes ``"auto"`` only.
    refit
        Whether to train the best cell's model on all examples.  For several classes that is a `OneVsOne` whose features
        are named 0, 1, 2, ...  If the search scales the features, there is no such model: see `Search.solution`.
    n_jobs
        Number of processes, as for `cross_validate`.  Where folds start from the full solution, only the values of
        gamma are divided.  None (default): as `joblib` is configured; if it is not, threads share the values of gamma,
        see `streamsvm.set_num_threads`.  Each process and each thread has its own cache.  A `SmoothSVM` takes None or
        1.

    Returns
    -------
    Search or ClassSearch
        The best cell, the table of all cells, and the model of the best one.  For several classes the metric is one of
        those of `ClassResult.scores`.  With `fine`, this is the search on the finer grid, and
        its `coarse` is the first one.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range, or as for `cross_validate`.

    Warns
    -----
    RuntimeWarning
        If no cell has a score, or as `cross_validate` does.

    Notes
    -----
    ================================ =================================================================================
    warm_start                       start, from the solution for the C before
    ================================ =================================================================================
    ``"auto"``                       ``"scaled"`` if most support vectors are at their bounds, else ``"best"``
    ``"none"``                       0
    ``"direct"``                     that solution
    ``"scaled"``                     that solution, with its bounded coefficients moved to the new bounds
    ``"best"``                       the better of ``"direct"`` and ``"scaled"``
    ``"pairwise"``, ``"single"``     exact steps of the bounded coefficients, pair by pair
    ``"averaged"``, ``"multiple"``   exact steps of the bounded coefficients, all together
    ================================ =================================================================================

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> search = grid_search(LASVM(), X, y, Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0])
    >>> search.scores.shape
    (3, 2)
    >>> search.best
    Cell(C=10, gamma=1, score=0.9333, spread=0.0471, 3 splits)
    >>> search.solution.decision_function([[1.0, 1.0], [-1.0, 1.0]]) > 0
    array([ True, False])
    >>> finer = grid_search(LASVM(), X, y, Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], fine=2)
    >>> finer.gammas, finer.best.score >= finer.coarse.best.score
    ([0.3162277660168379, 1.0, 3.1622776601683795], True)
    """
    if fine or degrees is not None or coef0s is not None:
        if seed is None:  # All grids have the same folds.
            seed = int(np.random.default_rng().integers(2**32))
        folds = list(folds) if isinstance(folds, Iterator) else folds
        common = {"k": k, "folds": folds, "seed": seed, "sample_weight": sample_weight, "options": options}
        common |= {"metric": metric, "greater": greater, "warm_start": warm_start, "seeding": seeding}
        search = partial(grid_search, X=X, y=y, n_jobs=n_jobs, progress=progress, **common)
        Cs, gammas = ascending("Cs", Cs), None if gammas is None else ascending("gammas", gammas)
        return widened(search, model, Cs, gammas, degrees, coef0s, fine, refit)
    begin, given = time.perf_counter(), X
    up = greater_is_better(metric) if greater is None else greater
    several = is_one_vs_one(model)
    if several:
        require_plain({"warm_start": warm_start})
    binary = model.model if several else model
    if not isinstance(binary, SmoothSVM):
        binary, X = resolve_scaling(binary, X, has_gamma=gammas is not None)
    setting = None if isinstance(binary, SmoothSVM) else setting_of(binary, options)
    values = ascending("Cs", Cs), ascending("gammas", [binary.gamma] if gammas is None else gammas)
    if len(values[1]) > 1:  # One value may be the model's own.
        require_of_kernel(binary.kernel, "gamma", values[1])
    grid = Grid(X, y, *values, k, folds, seed, sample_weight, progress)
    if setting is None:
        smooth.require_only_auto(n_jobs, options, warm_start=warm_start, seeding=seeding)
        found = _of_smooth(binary, grid)
    elif several:
        found = of_classes(type(model), binary, setting, grid, seeding, n_jobs)
    else:
        found = _of_learner(setting, grid, warm_start, seeding, n_jobs)
    table = [cell_of(C, gamma, result, metric) for (C, gamma), result in found.results.items()]
    if not has_scores(table):
        warnings.warn(NO_SCORE, RuntimeWarning, stacklevel=2)
    reason = why_not(refit, table, given, X, "a OneVsOne" if several else "an LASVM")
    refitted = reason or found.train(best_of(table, up))
    seconds = time.perf_counter() - begin
    if several:
        return ClassSearch(grid.Cs, grid.gammas, table, up, refitted, seconds)
    return Search(grid.Cs, grid.gammas, table, up, refitted, seconds, found.warm_start, found.seeding)


def _of_smooth(model: SmoothSVM, grid: Grid) -> Found:
    """Every cell by itself: smooth SVMs share no kernel values."""
    positive = signs_of(grid.y, len(arguments.vector_of("y", grid.y)))[0] > 0.0
    splits = grid.splits(positive, arguments.weights_of(grid.sample_weight, len(positive), "sample_weight") > 0.0)

    def of(C: float, gamma: float) -> SmoothSVM:
        return copy.copy(model).set_params(C=C, gamma=gamma)

    validated = (
        smooth.validated(of(C, gamma), grid.X, grid.y, splits, grid.sample_weight) for C, gamma in grid.settings
    )
    results = list(with_progress(validated, len(grid.settings), "settings", grid.progress))
    failed = sum(not fold.converged for result in results for fold in result.per_fold)
    warn_of_failures(failed, len(results) * len(splits), "trainings", stacklevel=3)
    return Found(
        dict(zip(grid.settings, results, strict=True)),
        lambda best: of(best.C, best.gamma).fit(grid.X, grid.y, grid.sample_weight),
        "auto",
        "auto",
    )


def _of_learner(setting: Setting, grid: Grid, warm_start: str, seeding: str, n_jobs: int | None) -> Found:
    """All cells of one gamma together: they share the kernel rows."""
    if isinstance(grid.X, RowStore):
        raise TypeError("X is a RowStore, whose rows are those of one gamma; give the examples themselves")
    if warm_start not in WARM_STARTS:
        raise ValueError(f"warm_start={warm_start!r} is unknown; use one of {', '.join(map(repr, WARM_STARTS))}")
    warm_start = OTHER_NAMES.get(warm_start, warm_start)
    largest = setting._replace(C=grid.Cs[-1], gamma=grid.gammas[0])
    problem, classes = labelled(grid.X, grid.y, grid.sample_weight, largest)
    positive = problem.y > 0.0
    splits = grid.splits(positive, problem.hi > problem.lo)
    seeding = _chosen_seeding(seeding, splits)
    examples = Examples(
        setting, problem.store, problem.y, arguments.weights_of(grid.sample_weight, len(positive), "sample_weight")
    )

    jobs = workers(n_jobs)
    on_matrix = seeding == "none" and warm_start == "auto" and Matrices.fit_into(problem.store)
    matrices = Matrices(problem.store) if on_matrix else None
    problems = tuple(examples.problem(problem.store, C) for C in grid.Cs) if on_matrix else ()
    sharing = max(jobs, SHARES if on_matrix else 1)
    parts = in_parts(len(splits), -(-sharing // len(grid.gammas)) if seeding == "none" else 1)
    tasks = [
        Task(examples, splits, gamma, grid.Cs, part, warm_start, seeding, matrices, problems)
        for gamma in grid.gammas
        for part in parts
    ]
    total = len(grid.settings) * (len(splits) + (seeding != "none"))
    cells: dict[tuple[float, float], dict[int, Training]] = {cell: {} for cell in grid.settings}
    with one_blas_thread():  # once: each training alone would set the limit and lift it
        for training in with_progress(trainings(tasks, n_jobs, jobs), total, "trainings", grid.progress):
            cells[training.C, training.gamma][training.split] = training
    failed = sum(not training.outcome.converged for cell in cells.values() for training in cell.values())
    warn_of_failures(failed, total, "trainings", stacklevel=3)

    def result_of(cell: dict[int, Training]) -> Result:
        outcomes = {split: training.outcome for split, training in cell.items()}
        per_fold, full = [outcomes[i] for i in range(len(splits))], outcomes.get(-1)
        reason = "; ".join(filter(None, [cell[0].reason, f"warm start along C: {warm_start}"]))
        seconds = sum(outcome.seconds for outcome in outcomes.values())
        return Result(positive, classes, splits, per_fold, None, full, cell[0].seeding, reason, seconds)

    def train(best: Cell) -> Solution:
        of_best = examples.problem(examples.store(best.gamma), best.C)
        alphas = [training.alpha for training in cells[best.C, best.gamma].values() if training.alpha is not None]
        found = refitted(matrices, of_best, alphas) if matrices and len(alphas) == len(splits) else None
        return found or smo.train_anew(*of_best)

    return Found({key: result_of(cell) for key, cell in cells.items()}, train, warm_start, seeding)


def _chosen_seeding(seeding: str, folds: Folds) -> str:
    """The seeding: "auto" starts folds from the full solution if they are many and small."""
    require_seeding(seeding)
    if seeding in CHAINS:
        raise ValueError(f"seeding={seeding!r} leads from fold to fold, but along C every fold has its own start")
    if seeding == "auto":
        return "auto" if seeds.choice.effective_folds(folds.n, folds.left_out) >= MANY_FOLDS else "none"
    return seeding
