"""The solution of each split: where its training starts, and when it needs none.

The examples that a split leaves out stay in the problem with an empty box, lo = hi = 0.  They never move, but
their gradient is kept, and f(x_i) = y_i - g_i + bias is the decision value of a model that has not seen them.  So all
folds share the kernel rows, and a fold needs no second pass over the kernel.  All folds are solved among the same
*members*, the support vectors of all examples and the examples next to the margin: see
`streamsvm.batch.seeding.members`.

A training starts from one of these:

- the *full* solution, over all examples (AVG, TOP, GREEDY, BEST, the exact path).  If no left-out example is a support
  vector of it, it is the fold's solution too, and nothing is trained;
- the solution of the *fold before* (SIR, MIR, ATO, the chained path), among all examples;
- 0.

`streamsvm.batch.seeding` makes these starts.  Every start is then solved to the tolerance.  So the start changes the
time and not the result, if the kernel is positive semi-definite.  (Sigmoid kernels are not, and have several optima.)
"""

import copy
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from streamsvm.batch import Solution
from streamsvm.batch import seeding as seeds
from streamsvm.batch.options import STEPS_PER_EXAMPLE
from streamsvm.batch.path.follow import Factor
from streamsvm.batch.problem import SPARE
from streamsvm.batch.seeding import Members
from streamsvm.core.kernels import is_positive_semidefinite, largest_difference
from streamsvm.validation.held_out.folds import Folds
from streamsvm.validation.held_out.outcome import Fold
from streamsvm.validation.held_out.parallel import in_parts, in_processes, workers
from streamsvm.validation.held_out.problem import NO_EXAMPLES, Problem

CERTAIN = 10.0  # A bound must hold by as many tolerances before it decides a sign.
MANY_FOLDS = 30  # From as many folds on, the folds of a grid start from the full solution.
HOPELESS = STEPS_PER_EXAMPLE // 20  # for a split, if all of them did not solve the full problem

CHAINS = ("reuse", "sir", "mir", "ato", "chained")  # from the fold before
FROM_FULL = ("skip", "avg", "top", "greedy", "best", "path")  # from the full solution
SEEDINGS = ("auto", "none", *CHAINS, *FROM_FULL)


class Plan(NamedTuple):
    """How the folds are to be solved: what a worker needs."""

    problem: Problem
    folds: Folds
    full: Solution | None
    members: Members | None  # all examples for chains; None on the way to a worker
    seeding: str  # other than "auto"
    factor: Factor | None  # for "path", among the members
    max_events: int | None
    values: bool


def require_seeding(seeding: str) -> None:
    """Raise a ValueError if the seeding is unknown."""
    if seeding not in SEEDINGS:
        raise ValueError(f"seeding={seeding!r} is unknown; use one of {', '.join(map(repr, SEEDINGS))}")


def plan_of(
    problem: Problem, folds: Folds, full: Solution, members: Members, seeding: str, values: bool = True
) -> tuple[Plan, str]:
    """The plan for folds that start from the full solution, and why its seeding was chosen."""
    reason, max_events, factor = "as asked for", None, None
    part = members.part(full)
    if seeding == "auto":
        choice = seeds.choose(part, seeds.choice.effective_folds(folds.n, folds.left_out), len(folds))
        seeding, reason, max_events = choice.seed, choice.reason, choice.max_events
        seeding = "skip" if seeding == "cold" else seeding  # The full solution is known, so folds may be copied.
    if seeding == "path":
        factor = seeds.exact.factor_of(part)
        if factor is None:
            seeding, reason = "best", f"{reason}; but no path can begin at this solution"
    return Plan(problem, folds, full, members, seeding, factor, max_events, values), reason


def prepared(problem: Problem, folds: Folds, seeding: str, values: bool) -> tuple[Plan, Fold | None, str]:
    """The plan, the cost of its full solution, and why its seeding was chosen."""
    require_seeding(seeding)
    reason = "as asked for"
    effective = seeds.choice.effective_folds(folds.n, folds.left_out)
    if seeding == "auto" and effective <= seeds.choice.WORTHLESS + 0.5:
        seeding, reason = "none", f"splits leave out {1.0 / effective:.0%} of the examples: no seed is better than 0"
    if seeding in CHAINS:
        every = Members(problem.store, np.arange(folds.n))
        return Plan(problem, folds, None, every, seeding, None, None, values), None, reason
    begin, rows = time.perf_counter(), problem.store.rows_computed
    members, rough = problem.members()
    full = rough
    if seeding != "none":
        members, full = seeds.refined(members, rough, problem.options)
    cost = outcome_of(full, NO_EXAMPLES, "rough" if seeding == "none" else "cold", problem.store.rows_computed - rows)
    cost = cost._replace(seconds=time.perf_counter() - begin)
    if seeding == "none":
        return Plan(problem, folds, None, members, seeding, None, None, values), cost, reason
    if not full.converged:
        most = min(problem.options.limit(folds.n), HOPELESS * folds.n)
        problem = problem._replace(options=replace(problem.options, max_iterations=most))
    plan, reason = plan_of(problem, folds, full, members, seeding, values)
    return plan, cost, reason


def run(plan: Plan, splits: range) -> Iterator[Fold]:
    """Solve some of the splits, one after the other."""
    previous: Solution | None = None
    may_copy = plan.full is not None and bool(plan.full.free.any())  # without free examples only the bias may change
    for i in splits:
        test, out = plan.folds.tests[i], plan.folds.left_out[i]
        begin, before = time.perf_counter(), plan.problem.store.rows_computed
        outcome = _without_training(plan, test, out, may_copy)
        if outcome is None:
            start, events, previous = _trained(plan, out, previous if plan.seeding in CHAINS else plan.full)
            rows = plan.problem.store.rows_computed - before
            outcome = outcome_of(previous, test, start, rows)._replace(events=events)
        yield outcome._replace(seconds=time.perf_counter() - begin)


def _trained(plan: Plan, out: np.ndarray, before: Solution | None) -> tuple[str, int, Solution]:
    """The start of the training, the events of a path, and the solution; `before` is what a seed starts from."""
    members, problem, (lo, hi) = plan.members, plan.problem, plan.problem.boxes_without(out)
    assert members is not None
    if before is not None and before is plan.full and not before.dual_coef[out].any():  # The bias alone may change.
        return "full", 0, seeds.train(members, problem.y, lo, hi, before, problem.options)
    if before is None or plan.seeding == "skip":
        return "cold", 0, seeds.train(members, problem.y, lo, hi, options=problem.options)
    seed = seeds.SEEDS[plan.seeding]
    if plan.factor is not None:
        seed = partial(seeds.exact.path, factor=plan.factor, max_events=plan.max_events)
    start = members.start(seed, before, lo, hi)
    return start.seed, start.events, seeds.train(members, problem.y, lo, hi, before, problem.options, start)


def outcome_of(solution: Solution, test: np.ndarray, start: str, rows: int) -> Fold:
    """The outcome of a split that was trained."""
    f = solution.y[test] - solution.g[test] + solution.bias
    costs = {"rows_computed": rows, "kernel_evaluations": rows * len(solution.y)}
    costs |= {"iterations": solution.iterations, "newton_steps": solution.newton_steps}
    return Fold.of(test, f, start, solution.status, solution.dual_coef, **costs)


# ----------------------------------------------------------------------------------------------------- without training


def _without_training(plan: Plan, test: np.ndarray, out: np.ndarray, may_copy: bool) -> Fold | None:
    """The outcome, if it follows from the full solution."""
    full = plan.full
    if full is None:
        return None
    if may_copy and not full.dual_coef[out].any():
        f = full.y[test] - full.g[test] + full.bias
        return _copied(full, test, f, f > 0.0, "copied")
    if plan.values or len(test) != 1 or len(out) != 1 or not is_positive_semidefinite(plan.problem.store.kernel):
        return None
    return _by_bounds(full, int(test[0]), test, plan)


def _by_bounds(full: Solution, i: int, test: np.ndarray, plan: Plan) -> Fold | None:
    """The leave-one-out prediction of a support vector, where the full solution bounds its decision value.

    - An error of the model that has seen the example stays one without it: its loss cannot fall when it is left out.
    - If 2 alpha R^2 + xi < 1, where R^2 bounds k(x, x) - k(x, z), the example is predicted right without it (Joachims,
      "Estimating the generalization performance of an SVM efficiently").  This assumes that some support vector stays
      free.
    """
    tol = CERTAIN * plan.problem.options.tol
    margin = float(full.y[i] * (full.y[i] - full.g[i] + full.bias))
    unknown, is_positive = np.array([np.nan]), full.y[i] > 0.0
    if margin < -tol:
        wrong = np.array([not is_positive])
        return _copied(full, test, unknown, wrong, "training error")
    R2 = largest_difference(plan.problem.store.kernel, float(plan.problem.store.diagonal.max()))
    if np.count_nonzero(full.free) > 2 and 2.0 * abs(full.dual_coef[i]) * R2 + max(0.0, 1.0 - margin) < 1.0 - tol:
        return _copied(full, test, unknown, np.array([is_positive]), "xi-alpha")
    return None


def _copied(full: Solution, test: np.ndarray, f: np.ndarray, predictions: np.ndarray, start: str) -> Fold:
    return Fold(test, f, predictions, start, full.status, int(np.count_nonzero(full.dual_coef)))


# ---------------------------------------------------------------------------------------------------------- in parallel


def outcomes(plan: Plan, n_jobs: int | None) -> Iterator[Fold]:
    """The outcomes of all splits in their order, divided among the workers."""
    count, jobs = len(plan.folds), workers(n_jobs)
    if jobs == 1:
        yield from run(plan, range(count))
        return
    factor, members = plan.factor, plan.members
    if factor is not None:  # The workspace is scratch space, which need not be sent to other processes.
        factor = factor._replace(workspace=_square(0))
    assert members is not None
    tasks = [(plan._replace(factor=factor, members=None), members.ids, splits) for splits in in_parts(count, jobs)]
    yield from in_processes(_run_part, tasks, n_jobs)


def _run_part(task: tuple[Plan, np.ndarray, range]) -> list[Fold]:
    """Solve some splits in a worker, over kernel rows of its own: threads must not share them."""
    plan, ids, splits = task
    store = copy.copy(plan.problem.store)
    full = None if plan.full is None else replace(plan.full, store=store)
    members, factor = Members(store, ids), plan.factor
    if factor is not None:
        factor = factor._replace(workspace=_square(len(factor.members) + SPARE))
    own = plan._replace(problem=plan.problem._replace(store=store), full=full, members=members, factor=factor)
    first, *others = run(own, splits)
    rows = first.rows_computed + store.rows_computed - sum(part.rows_computed for part in (first, *others))
    return [first._replace(rows_computed=rows, kernel_evaluations=rows * len(store)), *others]


def _square(size: int) -> np.ndarray:
    return np.empty((size, size))
