"""Starts along C and from fold to fold together, as Bin Li's thesis has them (5.3.3).

The first fold of each C starts from its solution for the C before, by a seed of `C_SEEDS`; every other fold starts from
the fold before at the same C, by a seed of `SEEDS`.  `grid_search` has no such order: there, each fold goes along C by
itself, so that all starts lead along C.
"""

from typing import NamedTuple

import numpy as np

from seeding.methods import Setting
from streamsvm import LASVM
from streamsvm.batch import Solution, smo
from streamsvm.batch.seeding import C_SEEDS, SEEDS
from streamsvm.validation import folds
from streamsvm.validation.held_out.problem import Problem, setting_of


class Chained(NamedTuple):
    """What a grid found and took."""

    right: dict[tuple[float, float], np.ndarray]  # right predictions of each split, by C and gamma
    iterations: list[int]  # iterations at each C, of all values of gamma
    newton_steps: int
    rows_computed: int


def chained(
    setting: Setting, splits: folds.Folds, Cs: list[float], gammas: list[float], along: str, chain: str
) -> Chained:
    """The grid, with these starts along C ("none": from 0) and from fold to fold."""
    right, steps, newton, rows = {}, dict.fromkeys(Cs, 0), 0, 0
    for gamma in gammas:
        model = setting_of(LASVM(gamma=gamma, cache_mb=setting.cache_mb), None)
        store, first = model.store(setting.X), None
        for C in Cs:
            problem = model._replace(C=C).problem(store, setting.y.astype(np.float64), np.ones(len(setting.y)))
            solutions = _folds(problem, splits, first if along != "none" else None, along, chain)
            first = solutions[0]
            steps[C] += sum(one.iterations for one in solutions)
            newton += sum(one.newton_steps for one in solutions)
            signs = [one.decision_values[test] > 0.0 for one, test in zip(solutions, splits.tests, strict=True)]
            counts = [np.sum(said == (setting.y[test] > 0)) for said, test in zip(signs, splits.tests, strict=True)]
            right[C, gamma] = np.array(counts)
        rows += store.rows_computed
    return Chained(right, list(steps.values()), newton, rows)


def _folds(problem: Problem, splits: folds.Folds, first: Solution | None, along: str, chain: str) -> list[Solution]:
    """The solutions of all folds at one C; `first` is that of the first fold at the C before."""
    found: list[Solution] = []
    for out in splits.left_out:
        lo, hi = problem.boxes_without(out)
        begin: list[np.ndarray] = []
        if found:
            begin += SEEDS[chain](found[-1], lo, hi)[:2]
        elif first is not None:
            begin += C_SEEDS[along](first, lo, hi)[:2]
        found.append(smo.train(problem.store, problem.y, lo, hi, *begin, options=problem.options))
    return found
