"""Exact cross-validation of the smooth support vector machine: every fold starts from the model of all examples.

What a split leaves out stays in the problem, but is not trained on, so that its decision values are at hand.  With a
full kernel it leaves the basis as well, and its weight is held at 0: the model of a fold is that which `SmoothSVM.fit`
makes of the fold's training part alone.  A reduced kernel's basis is drawn once, from all examples without their
labels, and stays.

A fold is not trained, but copied, where its minimum is known to be that over all examples: nobody who is left out is a
support vector, and no weight but 0 is held.  (With a full kernel no weight is 0.)  All others are solved to `tol`.
"""

import copy
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsvm.batch.ssvm.model import Prepared, SmoothSVM
from streamsvm.batch.ssvm.newton import Minimum, Problem, minimise
from streamsvm.batch.ssvm.removal import Removal, without
from streamsvm.batch.ssvm.systems import NONE, System
from streamsvm.validation import folds as kinds
from streamsvm.validation.crossval import Fold, Result, warn_unless, with_progress

FEW = 4  # splits that do not pay for a shared factor


class Plan(NamedTuple):
    """How the folds are to be solved."""

    problem: Problem
    minimum: Minimum  # over all examples
    system: System  # as it is there
    removal: Removal | None  # for "shared"
    is_full_kernel: bool
    tol: float


def cross_validate(
    model: SmoothSVM,
    X: Any,
    y: Any,
    *,
    weights: Any = None,
    k: int = 10,
    folds: Any = None,
    seed: int | None = 0,
    progress: bool = False,
) -> Result:
    """Test every example by a smooth support vector machine that has not seen it.

    Parameters
    ----------
    model
        Its parameters are used; it is not trained itself.
    X, y
        As for `SmoothSVM.fit`.
    weights
        Factor on C for each example.
    k
        Number of stratified folds, if `folds` is None.
    folds
        `Folds` of another kind, fold numbers, pairs (train, test), or one of scikit-learn's splitters.
    seed
        Of the stratified folds; None: dealt out as the examples come.
    progress
        Whether to show a progress bar, if standard error is a terminal.

    Returns
    -------
    Result
        As that of `streamsvm.validation.cross_validate`, with the model of all examples as `full`, the solver as
        `seeding`, and Newton steps as iterations.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range, or all examples are of one class.

    Notes
    -----
    Solvers are those of `SmoothSVM`, here started from the model of all examples, and one more:

    ================ =================================================================================================
    solver           a fold
    ================ =================================================================================================
    ``"shared"``     Newton points of rank r from one factor, see `streamsvm.batch.ssvm.removal`; checked, and if need
                     be finished, by ``"cholesky"``
    ``"auto"``       ``"shared"``, or ``"cholesky"`` if there are four folds or fewer
    ================ =================================================================================================

    Beside the matrix of features or kernel values, ``"shared"`` keeps one more of that size, with a full kernel two.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> y = X[:, 0] + X[:, 1] > 0.2
    >>> result = cross_validate(SmoothSVM(C=10.0), X, y, k=5)
    >>> result.accuracy > 0.9
    True
    >>> result.iterations < 30
    True
    """
    begin = time.perf_counter()
    full = copy.copy(model)
    prepared = full.prepare(X, y, weights)
    problem = prepared.problem
    positive = problem.y > 0.0
    splits = kinds.stratified(positive, k, seed=seed) if folds is None else kinds.folds_of(folds, positive)
    _warn_of_one_class(splits, problem)
    with problem.threads():
        plan, first, solver, reason = _prepared(full, prepared, splits)
        per_fold = list(with_progress(_outcomes(plan, splits), len(splits), "folds", progress))
    warn_unless(sum(not part.converged for part in (first, *per_fold)), len(per_fold) + 1, "folds")
    seconds = time.perf_counter() - begin
    return Result(positive, prepared.classes, splits, per_fold, full, first, solver, reason, seconds)


def leave_one_out(model: SmoothSVM, X: Any, y: Any, *, weights: Any = None, progress: bool = False) -> Result:
    """Test every example by a smooth support vector machine trained on all others.

    Parameters
    ----------
    model, X, y, weights, progress
        As for `cross_validate`.

    Examples
    --------
    >>> X, y = np.arange(40.0)[:, None] / 40.0, np.arange(40) > 19
    >>> leave_one_out(SmoothSVM(C=100.0), X, y).accuracy
    0.975
    """
    splits = kinds.leave_one_out(len(np.asarray(y)))
    return cross_validate(model, X, y, weights=weights, folds=splits, progress=progress)


def _warn_of_one_class(folds: kinds.Folds, problem: Problem) -> None:
    alone = folds.of_one_class(problem.y > 0.0, problem.trained)
    if alone:
        warnings.warn(
            f"{len(alone)} of {len(folds)} splits, the first being split {alone[0]}, train on one class only; use "
            "stratified folds, fewer of them, or more examples of the smaller class",
            RuntimeWarning,
            stacklevel=3,
        )


def _prepared(full: SmoothSVM, prepared: Prepared, splits: kinds.Folds) -> tuple[Plan, Fold, str, str]:
    """The plan, what the model of all examples took, and the solver and why it was picked."""
    begin, problem = time.perf_counter(), prepared.problem
    system = full.system(problem)
    minimum = full.minimum(problem, system)
    full.take(prepared, minimum)
    is_full_kernel = prepared.basis is not None and full.reduced is None
    solver, reason = full.solver, "as asked for"
    if solver == "auto":
        solver, reason = "shared", "folds share the factor of the Hessian over all examples"
        if len(splits) <= FEW:
            solver, reason = "cholesky", "few folds do not pay for a factor to share"
    system.move(minimum.support)
    removal = Removal(problem, minimum, system, holds=is_full_kernel) if solver == "shared" else None
    first = _fold(problem, minimum, NONE, "cold")
    rows = 0 if prepared.basis is None else len(problem.y)
    first = first._replace(
        rows_computed=rows, kernel_evaluations=rows * len(full.coef_), seconds=time.perf_counter() - begin
    )
    return Plan(problem, minimum, system, removal, is_full_kernel, full.tol), first, solver, reason


def _outcomes(plan: Plan, splits: kinds.Folds) -> Iterator[Fold]:
    for test, out in zip(splits.tests, splits.left_out, strict=True):
        begin = time.perf_counter()
        outcome = _outcome(plan, test, out)
        yield outcome._replace(seconds=time.perf_counter() - begin)


def _outcome(plan: Plan, test: np.ndarray, out: np.ndarray) -> Fold:
    problem, full = plan.problem, plan.minimum
    held = out + 1 if plan.is_full_kernel else NONE
    if not full.support[out].any() and not full.u[held].any():
        return _fold(problem, full._replace(steps=0), test, "copied")
    part = problem.part(out, held)
    if plan.removal is None:
        (u, v), aimed, aims = without(problem, full.u, full.v, part), None, 0
    else:
        u, v, aimed, aims = plan.removal.start(part)
    minimum = minimise(problem, part, plan.system.holding(held), u, v, plan.tol, aimed)
    return _fold(problem, minimum._replace(steps=aims + minimum.steps), test, "full")


def _fold(problem: Problem, minimum: Minimum, test: np.ndarray, start: str) -> Fold:
    f = problem.decision_values(minimum.v, test)
    return Fold(
        test=test,
        decision_values=f,
        predictions=f > 0.0,
        start=start,
        events=0,
        iterations=minimum.steps,
        newton_steps=minimum.steps,
        rows_computed=0,
        kernel_evaluations=0,
        n_support=int(np.count_nonzero(minimum.support)),
        converged=minimum.converged,
        seconds=0.0,
    )
