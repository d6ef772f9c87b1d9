"""The trainings of a grid: for each gamma, the solutions along rising C.

Kernel rows depend on gamma alone.  So all folds and all values of C of one gamma share them.  Along C, a fold starts
from its own solution for the C before.  If no coefficient of that solution is at its bound, it solves the problem of
every larger C, and nothing is trained.

With many small folds another order is cheaper: the solution over all examples goes along C, and for each C the folds
start from it.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamsvm.batch import RowStore, Solution
from streamsvm.batch import seeding as seeds
from streamsvm.core.threads import chained, threads_for
from streamsvm.validation.held_out.folds import Folds
from streamsvm.validation.held_out.problem import NO_EXAMPLES, Problem, Setting
from streamsvm.validation.held_out.splits import outcome_of, plan_of, run
from streamsvm.validation.held_out.work import in_processes
from streamsvm.validation.results import Fold

OTHER_NAMES = {"single": "pairwise", "multiple": "averaged"}
WARM_STARTS = ("auto", "none", "single", "multiple", *seeds.C_SEEDS)
PAIR = 20.0  # nanoseconds that a pair of examples costs the grid for one gamma, at least
STOPPED = "no coefficient at its bound"  # the start of a fold that was not trained


class Examples(NamedTuple):
    """What all trainings share: the examples, and the model's setting."""

    setting: Setting
    X: Any
    y: np.ndarray
    weights: np.ndarray

    def store(self, gamma: float) -> RowStore:
        """Kernel rows for this gamma."""
        return self.setting._replace(gamma=gamma).store(self.X)

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


class Training(NamedTuple):
    """One training: its cell, its split (-1 for all examples) and its outcome."""

    C: float
    gamma: float
    split: int
    outcome: Fold
    seeding: str = "none"
    reason: str = ""


def trainings(tasks: list[Task], n_jobs: int | None, jobs: int) -> Iterator[Training]:
    """All trainings of the tasks, divided among the workers, or among threads if `n_jobs` is None."""
    if jobs == 1:
        yield from chained(_trainings, tasks, 1 if n_jobs == 1 else _threads_for(tasks))
        return
    for found in in_processes(_list_of_trainings, tasks, n_jobs):
        yield from found


def _threads_for(tasks: list[Task]) -> int:
    """The number of threads: one where a device computes kernel values."""
    on_device = tasks[0].examples.setting.options.device != "cpu"
    return 1 if on_device else threads_for(PAIR * len(tasks) * tasks[0].folds.n ** 2, len(tasks))


def _list_of_trainings(task: Task) -> list[Training]:
    return list(_trainings(task))


def _trainings(task: Task) -> Iterator[Training]:
    """All trainings of a task; with `seeding` "none" every fold goes along C by itself."""
    store = task.examples.store(task.gamma)
    if task.seeding != "none":
        yield from _from_full(task, store)
        return
    for i in task.splits:
        test, out = task.folds.tests[i], task.folds.left_out[i]
        for C, (_, solution, cost) in zip(task.Cs, _along(task, store, out), strict=True):
            f = solution.decision_values[test]
            yield Training(C, task.gamma, i, cost._replace(test=test, decision_values=f, predictions=f > 0.0))


def _from_full(task: Task, store: RowStore) -> Iterator[Training]:
    """The full solution along C, and for each C the folds that start from it."""
    for C, (problem, full, cost) in zip(task.Cs, _along(task, store, NO_EXAMPLES), strict=True):
        plan, reason = plan_of(problem, task.folds, full, task.seeding)
        yield Training(C, task.gamma, -1, cost, plan.seeding, reason)
        for i, outcome in zip(task.splits, run(plan, task.splits), strict=True):
            yield Training(C, task.gamma, i, outcome, plan.seeding, reason)


def _along(task: Task, store: RowStore, out: np.ndarray) -> Iterator[tuple[Problem, Solution, Fold]]:
    """For each C: the problem, its solution without these examples, and the cost of this."""
    solution: Solution | None = None
    for C in task.Cs:
        begin, rows = time.perf_counter(), store.rows_computed
        problem = task.examples.problem(store, C)
        start, solution = _next(problem, solution, out, task.warm_start)
        cost = outcome_of(solution, NO_EXAMPLES, start, store.rows_computed - rows)
        yield problem, solution, cost._replace(seconds=time.perf_counter() - begin)


def _next(problem: Problem, before: Solution | None, out: np.ndarray, warm_start: str) -> tuple[str, Solution]:
    """The start of the training, and the solution without these examples."""
    if before is None or warm_start == "none":
        return "cold", problem.solve(out)
    lo, hi = problem.boxes_without(out)
    if before.converged and seeds.along_c.optimal_for_larger_boxes(before):
        same = replace(before, lo=lo, hi=hi, iterations=0, planned=0, newton_steps=0, rows_computed=0)
        return STOPPED, same
    seed = seeds.C_SEEDS[_picked(before) if warm_start == "auto" else warm_start]
    start = seed(before, lo, hi)
    return start.seed, seeds.solve_from(before, start, lo, hi, problem.options)


def _picked(before: Solution) -> str:
    """The warm start of "auto".

    Scaling is by far the best where most support vectors are at their bounds, and spoils the solution where few are.
    """
    return "scaled" if 2 * np.count_nonzero(before.free) < len(before.support) else "best"
