"""The trainings of one gamma on one kernel matrix: every fold along rising C by itself, see `batch.working_set.series`.

A fold starts from its own solution for the C before.  If most support vectors of that are at their bounds, all
coefficients grow with C.  If none is, it solves the problem of every larger C, and nothing is trained.

The solution over all examples starts from the folds' coefficients, see `refitted`.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from streamsvm.batch import Solution, smo
from streamsvm.batch.kernels.matrix import Matrices
from streamsvm.batch.problem import too_coarse
from streamsvm.batch.solution import NO_PROGRESS
from streamsvm.batch.working_set.series import Series, scaled
from streamsvm.batch.working_set.single_precision import CLOSER, checked
from streamsvm.core.kernels import is_positive_semidefinite
from streamsvm.validation.held_out.outcome import Fold
from streamsvm.validation.held_out.problem import Problem
from streamsvm.validation.held_out.splits import outcome_of

STOPPED = "no coefficient at its bound"  # the start of a fold that was not trained


def refitted(matrices: Matrices, problem: Problem, alphas: list[np.ndarray]) -> Solution | None:
    """The solution over all examples, from its folds' coefficients; None without a matrix, or if it is too coarse.

    The start is the sum of the coefficients, divided by the largest number of folds that have one example as a support
    vector.  So it is inside the box, and its sum is 0.  A kernel that is not positive semi-definite has several optima:
    its solution must not depend on a start.
    """
    store, y, lo, hi, options = problem
    if not is_positive_semidefinite(store.kernel) or not matrices.are_at_hand:
        return None
    gram = matrices.of(store.kernel)
    alpha = np.clip(np.sum(alphas, axis=0) / max(1, np.count_nonzero(alphas, axis=0).max()), lo, hi)
    series = Series(gram, replace(options, tol=CLOSER * options.tol))
    if too_coarse(alpha, gram.diagonal, options.tol):
        return None
    found = series.solve(y, lo, hi, alpha)
    if not found.converged or too_coarse(found.dual_coef, gram.diagonal, options.tol):
        return None
    return smo.refined(checked(store, replace(found, values_computed=gram.n**2), options), options)


def along(
    series: Series, problems: tuple[Problem, ...], Cs: list[float], test: np.ndarray, out: np.ndarray
) -> Iterator[tuple[Fold, np.ndarray]]:
    """One fold along rising C: each outcome and its coefficients, (n,), while single precision is enough.

    Parameters
    ----------
    series
        The problems on the kernel matrix.  The folds of one matrix share its memory, one after another.
    problems, Cs
        The problem over all examples for each C, rising.
    test, out
        Numbers of the examples that the fold tests, and that it leaves out.
    """
    series.restart()
    before, last = None, Cs[0]
    for C, problem in zip(Cs, problems, strict=True):
        begin = time.perf_counter()
        start, before = _solved(series, problem.y, *problem.boxes_without(out), before, C / last)
        if before is None:
            return
        yield outcome_of(before, test, start, 0)._replace(seconds=time.perf_counter() - begin), before.dual_coef
        last = C


def _solved(
    series: Series, y: np.ndarray, lo: np.ndarray, hi: np.ndarray, before: Solution | None, growth: float
) -> tuple[str, Solution | None]:
    """The start of the training, and the solution; C has grown by so much since the one before."""
    if before is None:
        return "cold", _solution(series, y, lo, hi)
    at_bound = np.count_nonzero(before.at_bound)
    if before.converged and not at_bound:
        return STOPPED, replace(before, lo=lo, hi=hi, iterations=0, newton_steps=0)
    if 2 * at_bound > np.count_nonzero(before.dual_coef):
        grown = scaled(before, growth)
        return "scaled", _solution(series, y, grown.lo, grown.hi, grown.dual_coef, grown.g)
    return "direct", _solution(series, y, lo, hi, before.dual_coef, before.g)


def _solution(series: Series, y: np.ndarray, lo: np.ndarray, hi: np.ndarray, *start: np.ndarray) -> Solution | None:
    """The solution; None if single precision is not enough for it, or for the start."""
    if too_coarse(start[0] if start else hi - lo, series.gram.diagonal, series.options.tol):
        return None
    solved = series.solve(y, lo, hi, *start)
    is_coarse = too_coarse(solved.dual_coef, series.gram.diagonal, series.options.tol)
    return None if is_coarse or solved.status == NO_PROGRESS else solved
