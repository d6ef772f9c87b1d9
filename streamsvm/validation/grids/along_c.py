"""The trainings of a grid: for each gamma, the solutions along rising C.

Kernel values depend on gamma alone.  So all folds and all values of C of one gamma share them.  If the matrix of all
examples fits into the cache, the folds are solved on it, in single precision: see `on_matrix`.

If it does not, if single precision is not enough, or if a warm start is asked for, all folds are solved in double
precision.  For each C, a rough solution over all examples tells the members among which they are solved.  Along C, a
fold starts from its own solution for the C before.  If no coefficient of that solution is at its bound, it solves the
problem of every larger C, and nothing is trained.

With many small folds another order is cheaper: the solution over all examples goes along C, and for each C the folds
start from it.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamsvm.batch import RowStore, Solution
from streamsvm.batch import seeding as seeds
from streamsvm.batch.kernels.matrix import Matrices
from streamsvm.batch.working_set.series import Series
from streamsvm.core.costs import PAIR
from streamsvm.core.threads import chained, threads_for
from streamsvm.validation.grids.on_matrix import STOPPED, along
from streamsvm.validation.held_out.folds import Folds
from streamsvm.validation.held_out.outcome import Fold
from streamsvm.validation.held_out.parallel import in_processes
from streamsvm.validation.held_out.problem import NO_EXAMPLES, Problem, Setting
from streamsvm.validation.held_out.splits import outcome_of, plan_of, run

OTHER_NAMES = {"single": "pairwise", "multiple": "averaged"}
WARM_STARTS = ("auto", "none", "single", "multiple", *seeds.C_SEEDS)


class Examples(NamedTuple):
    """What all trainings share: the examples, and the model's setting."""

    setting: Setting
    rows: RowStore  # of any gamma
    y: np.ndarray
    weights: np.ndarray

    def store(self, gamma: float) -> RowStore:
        """Kernel rows for this gamma."""
        return self.rows.with_kernel(self.rows.kernel._replace(gamma=gamma))

    def problem(self, store: RowStore, C: float) -> Problem:
        """The problem for this C."""
        return self.setting._replace(C=C).problem(store, self.y, self.weights)


class Task(NamedTuple):
    """Some splits for one gamma and every C."""

    examples: Examples
    folds: Folds
    gamma: float
    Cs: list[float]
    splits: range
    warm_start: str
    seeding: str
    matrices: Matrices | None = None  # None: they do not fit, or are not to be used
    problems: tuple[Problem, ...] = ()  # on the matrices, for each C


class Training(NamedTuple):
    """One training: its cell, its split (-1 for all examples), its outcome, and on a matrix its coefficients."""

    C: float
    gamma: float
    split: int
    outcome: Fold
    seeding: str = "none"
    reason: str = ""
    alpha: np.ndarray | None = None


def trainings(tasks: list[Task], n_jobs: int | None, jobs: int) -> Iterator[Training]:
    """All trainings of the tasks, divided among the workers, or among threads if `n_jobs` is None."""
    if jobs == 1:
        yield from chained(_trainings, tasks, 1 if n_jobs == 1 else _threads_for(tasks))
        return
    yield from in_processes(_trainings, tasks, n_jobs)


def _threads_for(tasks: list[Task]) -> int:
    """The number of threads: one where a device computes kernel values."""
    on_device = tasks[0].examples.setting.options.device != "cpu"
    return 1 if on_device else threads_for(PAIR * len(tasks) * tasks[0].folds.n ** 2, len(tasks))


def _trainings(task: Task) -> Iterator[Training]:
    """All trainings of a task; with `seeding` "none" every fold goes along C by itself."""
    follow = _on_matrix if task.matrices is not None else _folds_along if task.seeding == "none" else _full_along
    return follow(task)


def _on_matrix(task: Task) -> Iterator[Training]:
    """Every fold along C by itself, in single precision, and in double precision from where that is needed."""
    assert task.matrices is not None
    store = task.matrices.store
    gram = task.matrices.of(store.kernel._replace(gamma=task.gamma))
    series = Series(gram, task.examples.setting.options)
    for i in task.splits:
        left = task.Cs
        for outcome, alpha in along(series, task.problems, task.Cs, task.folds.tests[i], task.folds.left_out[i]):
            if i == 0 and left is task.Cs:  # The matrix counts for one training, however many workers compute it.
                outcome = outcome._replace(rows_computed=gram.n, kernel_evaluations=gram.n**2)
            yield Training(left[0], task.gamma, i, outcome, alpha=alpha)
            left = left[1:]
        if left:
            yield from _folds_along(task._replace(Cs=left, splits=range(i, i + 1)))


def _folds_along(task: Task) -> Iterator[Training]:
    """Every fold along C by itself; for each C, all folds have the same members."""
    store = task.examples.store(task.gamma)
    rough: Solution | None = None
    before: dict[int, Solution] = {}
    for C in task.Cs:
        begin, rows = time.perf_counter(), store.rows_computed
        problem = task.examples.problem(store, C)
        members, rough = _members(problem, None if task.warm_start == "none" else rough)
        for i in task.splits:
            test, out = task.folds.tests[i], task.folds.left_out[i]
            start, solution = _next(problem, members, before.get(i), out, task.warm_start)
            cost = outcome_of(solution, test, start, store.rows_computed - rows)
            if i == 0:  # The rough solution counts for one fold, however many workers compute it.
                steps, systems = cost.iterations + rough.iterations, cost.newton_steps + rough.newton_steps
                cost = cost._replace(iterations=steps, newton_steps=systems)
            yield Training(C, task.gamma, i, cost._replace(seconds=time.perf_counter() - begin))
            before[i], begin, rows = solution, time.perf_counter(), store.rows_computed


def _full_along(task: Task) -> Iterator[Training]:
    """The full solution along C, and for each C the folds that start from it."""
    store = task.examples.store(task.gamma)
    rough: Solution | None = None
    for C in task.Cs:
        begin, rows = time.perf_counter(), store.rows_computed
        problem = task.examples.problem(store, C)
        members, rough = _members(problem, rough)
        members, full = seeds.refined(members, rough, problem.options)
        cost = outcome_of(full, NO_EXAMPLES, "cold", store.rows_computed - rows)
        plan, reason = plan_of(problem, task.folds, full, members, task.seeding)
        yield Training(C, task.gamma, -1, cost._replace(seconds=time.perf_counter() - begin), plan.seeding, reason)
        for i, outcome in zip(task.splits, run(plan, task.splits), strict=True):
            yield Training(C, task.gamma, i, outcome, plan.seeding, reason)


def _members(problem: Problem, before: Solution | None) -> tuple[seeds.Members, Solution]:
    """The members for this C, and the rough solution over all examples, which starts from that of the C before."""
    if before is None:
        return problem.members()
    return problem.members(seeds.C_SEEDS[_picked(before)](before, problem.lo, problem.hi))


def _next(
    problem: Problem, members: seeds.Members, before: Solution | None, out: np.ndarray, warm_start: str
) -> tuple[str, Solution]:
    """The start of the training, and the solution without these examples."""
    lo, hi = problem.boxes_without(out)
    if before is None or warm_start == "none":
        return "cold", seeds.train(members, problem.y, lo, hi, options=problem.options)
    if before.converged and not before.at_bound.any():  # It solves the problem of every larger C, too.
        same = replace(before, lo=lo, hi=hi, iterations=0, planned=0, newton_steps=0, rows_computed=0)
        return STOPPED, same
    members = members.joined_by(np.setdiff1d(before.support, members.ids))
    seed = seeds.C_SEEDS[_picked(before) if warm_start == "auto" else warm_start]
    start = members.start(seed, before, lo, hi)
    return start.seed, seeds.train(members, problem.y, lo, hi, before, problem.options, start)


def _picked(before: Solution) -> str:
    """The warm start of "auto".

    Scaling is by far the best where most support vectors are at their bounds, and spoils the solution where few are.
    """
    return "scaled" if 2 * np.count_nonzero(before.free) < len(before.support) else "best"
