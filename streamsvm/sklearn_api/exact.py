"""Solves small problems to rounding, starting from a solution to a tolerance.

The batch solvers stop at the tolerance, and their kernel values are in single precision.  So coefficients of the same
problem differ in the third digit or so, depending on the order of the examples and on how the kernel is given.  A small
problem is cheap to finish in double precision: an active-set method takes Newton steps of the free coefficients.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
K         kernel matrix                                                    (n, n) float64
y, lo, hi labels, -1 or +1, and box                                        (n,) float64
alpha     coefficients with their labels' signs                            (n,) float64
g         gradients y - K alpha                                            (n,) float64
free      whether a coefficient takes part in the steps                    (n,) bool
========= ================================================================ ================

Source: Nocedal and Wright, Numerical Optimization, second edition, section 16.5.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from streamsvm.batch.multiclass.class_pairs import PairOptimum
from streamsvm.batch.problem import members_of
from streamsvm.batch.solution import Solution
from streamsvm.core.inputs import narrow
from streamsvm.core.kernels import Kernel, kernel_values
from streamsvm.core.rounding import DUST, SINGULAR

LARGEST = 256  # examples of a small training set, and steps: one frees or binds an example


def matrix_of(X: Any, kernel: Kernel) -> np.ndarray:
    """The kernel matrix of some examples, in double precision."""
    X, _ = narrow(X)
    X = (X.toarray() if sp.issparse(X) else X).astype(np.float64, copy=False)
    P = X @ X.T
    sq = P.diagonal().copy()
    return kernel_values(kernel, P, sq, sq[:, np.newaxis])


def exact_optimum(found: Solution, K: np.ndarray) -> Solution:
    """The solution of one problem to rounding, from one to the tolerance."""
    exact = solved_on(K, found.y, found.lo, found.hi, found.dual_coef) if found.converged else None
    if exact is None:
        return found
    alpha, g, bias = exact
    return replace(found, dual_coef=alpha, g=g, bias=bias)


def exact_pair(pair: PairOptimum, K: np.ndarray, classes: np.ndarray, box: np.ndarray) -> PairOptimum:
    """The solution of a pair of classes to rounding; K is that of all classes, for the other arguments see `optima`."""
    rows = np.concatenate([np.flatnonzero(classes == c) for c in (pair.first, pair.second)])
    y, alpha = np.where(classes[rows] == pair.first, 1.0, -1.0), np.zeros(len(rows))
    alpha[pair.places] = pair.alpha
    lo, hi = np.minimum(0.0, y * box[rows]), np.maximum(0.0, y * box[rows])
    exact = solved_on(K[np.ix_(rows, rows)], y, lo, hi, alpha) if pair.converged else None
    if exact is None:
        return pair
    alpha, g, bias = exact
    kept = members_of(alpha, g, lo, hi)
    return pair._replace(members=rows[kept], places=kept, alpha=alpha[kept], g=g[kept], bias=bias)


def solved_on(
    K: np.ndarray, y: np.ndarray, lo: np.ndarray, hi: np.ndarray, alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """The optimum of a problem, from coefficients near it: the coefficients, their gradients, and the bias.

    None if that takes more than `LARGEST` steps, or if a step has a singular matrix, which a kernel that is not
    positive semi-definite may have.  Also if one of the classes has the weight 0: then any bias from 1 on is optimal.

    Examples
    --------
    >>> K, y = np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([-1.0, 1.0])
    >>> alpha, _, bias = solved_on(K, y, np.array([-9.0, 0.0]), np.array([0.0, 9.0]), np.array([-1.9, 1.9]))
    >>> alpha.round(6), round(bias, 6)
    (array([-2.,  2.]), -1.0)
    """
    if not (lo.any() and hi.any()):
        return None
    alpha, free = alpha.copy(), (lo < alpha) & (alpha < hi)
    ridge = SINGULAR * (float(np.abs(K).max()) or 1.0)
    for _ in range(LARGEST):
        g = y - K @ alpha
        bias = _bias(alpha, g, lo, hi, free)
        violation = np.where(free, np.abs(g - bias), np.where(alpha < hi, g - bias, bias - g))
        rounding = DUST * max(1.0, float((np.abs(K) @ np.abs(alpha)).max()))
        if not (violation[free] > rounding).any():
            worst = int(violation.argmax())
            if violation[worst] <= rounding:
                return alpha, g, bias
            free[worst] = True
        try:
            alpha = _stepped(K, g, lo, hi, alpha, free, ridge)
        except np.linalg.LinAlgError:
            return None
    return None


def _bias(alpha: np.ndarray, g: np.ndarray, lo: np.ndarray, hi: np.ndarray, free: np.ndarray) -> float:
    """The constant of f(x): the free examples' gradient, or the middle of what the others allow."""
    if free.any():
        return float(g[free].mean())
    return 0.5 * float(g[alpha < hi].max() + g[alpha > lo].min())


def _stepped(
    K: np.ndarray, g: np.ndarray, lo: np.ndarray, hi: np.ndarray, alpha: np.ndarray, free: np.ndarray, ridge: float
) -> np.ndarray:
    """The coefficients after a Newton step of the free ones, up to the box; one that meets it is no longer free."""
    F = np.flatnonzero(free)
    bordered = np.ones((len(F) + 1,) * 2)
    bordered[:-1, :-1] = K[np.ix_(F, F)] + ridge * np.eye(len(F))
    bordered[-1, -1] = 0.0
    step = np.linalg.solve(bordered, np.append(g[F], 0.0))[:-1]
    room = np.where(step > 0.0, hi[F] - alpha[F], lo[F] - alpha[F])
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.where(step != 0.0, room / step, np.inf)
    first, after = int(lengths.argmin()), alpha.copy()
    after[F] = np.clip(alpha[F] + min(1.0, lengths[first]) * step, lo[F], hi[F])
    if lengths[first] <= 1.0:
        after[F[first]] = hi[F[first]] if step[first] > 0.0 else lo[F[first]]
        free[F[first]] = False
    return after
