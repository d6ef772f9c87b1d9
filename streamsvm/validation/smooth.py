"""Cross-validation of the smooth SVM: every fold starts from the model of all examples, and is solved exactly.

The examples that a split leaves out stay in the problem, but are not trained on; so their decision values are at hand.

- With a full kernel they leave the basis too, and their weights are held at 0.  The model of a fold is then the one
  that `SmoothSVM.fit` makes of the fold's training part alone.
- The basis of a reduced kernel is drawn once, from all examples without their labels, and stays.

A fold is copied, and not trained, if its minimum is known to be the one over all examples: no left-out example is a
support vector, and every held weight is 0 already.  (With a full kernel, no weight is 0.)  All others are solved to
`tol`.

The solvers are those of `SmoothSVM`, started from the model of all examples, and one more:

================ =================================================================================================
solver           a fold
================ =================================================================================================
``"shared"``     Newton points of rank r from one factor, see `streamsvm.batch.ssvm.removal`.  They are checked, and
                 finished by ``"cholesky"`` if need be
``"auto"``       ``"shared"``, or ``"cholesky"`` with four folds or fewer
================ =================================================================================================

``"shared"`` keeps one more matrix of the size of the features or kernel values; with a full kernel, two.
"""

import copy
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamsvm.batch.seeding.choice import WORTHLESS
from streamsvm.batch.ssvm.model import Prepared, SmoothSVM
from streamsvm.batch.ssvm.newton import Minimum, Problem, minimise
from streamsvm.batch.ssvm.removal import Removal, without
from streamsvm.batch.ssvm.systems import System
from streamsvm.validation.held_out.folds import Folds
from streamsvm.validation.held_out.outcome import Fold
from streamsvm.validation.held_out.parallel import with_progress
from streamsvm.validation.held_out.problem import NO_EXAMPLES
from streamsvm.validation.results import Result


class Plan(NamedTuple):
    """How the folds are to be solved."""

    problem: Problem
    minimum: Minimum  # over all examples
    system: System  # at that minimum
    removal: Removal | None  # for "shared"
    is_full_kernel: bool
    tol: float


def require_only_auto(n_jobs: int | None, options: Any, **given: Any) -> None:
    """Raise a ValueError for arguments that a smooth SVM has no use for: its solver decides on the starts."""
    if n_jobs not in (None, 1):
        raise ValueError(f"n_jobs={n_jobs!r}: a SmoothSVM is validated in one process; leave n_jobs out")
    if options is not None:
        raise ValueError(f"options={options!r}: a SmoothSVM has its own tol and solver; leave options out")
    for name, value in given.items():
        if value not in ("auto", True):
            raise ValueError(f"{name}={value!r}: the solver= of a SmoothSVM decides on the starts; leave {name} out")


def validated(
    model: SmoothSVM, X: Any, y: Any, splits: Folds, sample_weight: Any = None, progress: bool = False
) -> Result:
    """Test every example by a smooth SVM that has not seen it.

    Parameters
    ----------
    model
        Its parameters are used; it is not trained itself.
    X, y, sample_weight
        As for `SmoothSVM.fit`.
    splits
        The folds.
    progress
        Whether to show a progress bar, if standard error is a terminal.
    """
    begin = time.perf_counter()
    full = copy.copy(model)
    prepared = full.prepare(X, y, sample_weight)
    problem = prepared.problem
    with problem.threads():
        plan, first, solver, reason = _prepared(full, prepared, splits)
        per_fold = list(with_progress(_outcomes(plan, splits), len(splits), "folds", progress))
    seconds = time.perf_counter() - begin
    return Result(problem.y > 0.0, prepared.classes, splits, per_fold, full, first, solver, reason, seconds)


def _prepared(full: SmoothSVM, prepared: Prepared, splits: Folds) -> tuple[Plan, Fold, str, str]:
    """The plan, the cost of the model of all examples, the solver, and why it was chosen."""
    begin, problem = time.perf_counter(), prepared.problem
    system = full.system(problem)
    minimum = full.minimum(problem, system)
    full.take(prepared, minimum)
    is_full_kernel = prepared.basis is not None and full.reduced is None
    solver, reason = full.solver, "as asked for"
    if solver == "auto":
        solver, reason = "shared", "folds share the factor of the Hessian over all examples"
        if len(splits) <= WORTHLESS:
            solver, reason = "cholesky", "few folds do not pay for a factor to share"
    system.move(minimum.support)
    removal = Removal(problem, minimum, system, holds=is_full_kernel) if solver == "shared" else None
    first = _fold(problem, minimum, NO_EXAMPLES, "cold")
    rows = 0 if prepared.basis is None else len(problem.y)
    first = first._replace(
        rows_computed=rows, kernel_evaluations=rows * (len(minimum.u) - 1), seconds=time.perf_counter() - begin
    )
    return Plan(problem, minimum, system, removal, is_full_kernel, full.tol), first, solver, reason


def _outcomes(plan: Plan, splits: Folds) -> Iterator[Fold]:
    for test, out in zip(splits.tests, splits.left_out, strict=True):
        begin = time.perf_counter()
        outcome = _outcome(plan, test, out)
        yield outcome._replace(seconds=time.perf_counter() - begin)


def _outcome(plan: Plan, test: np.ndarray, out: np.ndarray) -> Fold:
    problem, full = plan.problem, plan.minimum
    held = out + 1 if plan.is_full_kernel else NO_EXAMPLES
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
    costs = {"iterations": minimum.steps, "newton_steps": minimum.steps}
    return Fold.of(test, f, start, minimum.status, minimum.support, **costs)
