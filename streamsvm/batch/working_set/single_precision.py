"""A start from single precision: the solution by `solver`, with gradients in double precision.

`solver` solves most large problems of `smo` in less time, but rounds kernel values to single precision.
`smo` goes on from there.  As a rule it takes no step, because the gradients below show that the tolerance is reached:

1. The gradients of the support vectors, and of all examples within a tolerance of a violation, are computed anew.
2. The largest change tells how much rounding there was, and a bound how much there may be elsewhere.  If both are at
   most NEGLIGIBLE tolerances, no other example violates, and the others keep their gradients.
3. Otherwise all gradients are computed anew.

A grid has its own solutions in single precision, see `validation.grids.on_matrix`; `checked` does the same for them.

The rounding of a gradient grows with the coefficients, see `problem`.  So single precision solves to the tolerance
of `smo`, or to the rounding that the boxes allow if that is more; with very large boxes it is not asked.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
alpha     coefficients with their labels' signs                            (n,) float64
g         gradient y - K alpha, of held-out examples as well               (n,) float64
y, lo, hi labels, -1 or +1, and box                                        (n,) float64
P         inner products, then kernel values                               (b, m) float64
========= ================================================================ ================
"""

from dataclasses import replace
from typing import Any

import numpy as np

from streamsvm.batch.kernels.features import BLOCK_COLUMNS, MAX_COLUMNS, Features
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.batch.options import DEFAULTS, FEW_STEPS, SolverOptions
from streamsvm.batch.problem import violations
from streamsvm.batch.solution import Solution
from streamsvm.batch.working_set.solver import LOOSE, optimum
from streamsvm.core import sparse as sp
from streamsvm.core.blocks import BLOCK
from streamsvm.core.kernels import is_positive_semidefinite, kernel_values
from streamsvm.core.rounding import PRECISION
from streamsvm.core.threads import one_blas_thread

WORTH_TWICE = 2000  # examples; with fewer, `smo` alone takes about as long
ZEROS = 200  # of an example; with more, `smo` alone is as fast (mnist, w8a), with fewer it is not (usps, a9a)
ROWS_AT_HAND = 0.1  # of all kernel rows, that fit into the cache; with fewer, `smo` computes some again and again
NEGLIGIBLE = 0.2  # rounding that was seen, as a share of the tolerance: elsewhere it may be twice as large
CLOSER = 1.0 - NEGLIGIBLE  # share of the tolerance: what rounding adds must not make `smo` take a step
METHOD = ("planning", "over_step", "newton", "shrinking")  # options of the pair steps of `smo`


def pays(store: RowStore, lo: np.ndarray, hi: np.ndarray, options: SolverOptions) -> bool:
    """Whether a start from single precision saves time.

    It does not if the examples are few or their kernel rows known, if a device computes the rows, or if the boxes are
    too large.  Nor if many features are 0 and enough rows fit into the cache: `smo` skips zeros, and to check the
    gradients takes as long as its rows.  A kernel that is not positive semi-definite has several optima, and options of
    the pair steps are wishes for these steps: both are for `smo` alone.
    """
    return (
        int(np.count_nonzero(lo < hi)) >= WORTH_TWICE
        and store.on_cpu
        and store.rows_computed == 0
        and not (store.zeros > ZEROS and store.capacity >= ROWS_AT_HAND * len(store))
        and is_positive_semidefinite(store.kernel)
        and all(getattr(options, name) == getattr(DEFAULTS, name) for name in METHOD)
        and _tolerance(store, lo, hi, options) <= LOOSE
    )


def _tolerance(store: RowStore, lo: np.ndarray, hi: np.ndarray, options: SolverOptions) -> float:
    """The tolerance in single precision."""
    return max(CLOSER * options.tol, _rounding(store, hi - lo))


def _rounding(store: RowStore, alpha: np.ndarray) -> float:
    """How far single precision may round a gradient with these coefficients, see `problem`."""
    return PRECISION * float(store.diagonal.max() * np.linalg.norm(alpha))


def start(store: RowStore, y: np.ndarray, lo: np.ndarray, hi: np.ndarray, options: SolverOptions) -> Solution:
    """Solve in single precision, and check it in double precision; the arguments are those of `smo.train`."""
    X, trained = store.examples, np.flatnonzero(lo < hi)
    features = Features(X if len(trained) == len(y) else X[trained], store.kernel)
    own = replace(
        options,
        tol=_tolerance(store, lo, hi, options),
        cache_mb=8 * store.cache_floats / 2**20,
        max_iterations=min(options.limit(len(y)), FEW_STEPS * len(y)),
    )
    found, _ = optimum(features, y[trained], lo[trained], hi[trained], own)
    alpha, g = np.zeros(len(y)), np.full(len(y), np.nan)
    alpha[trained], g[trained] = found.dual_coef, found.g
    return checked(store, replace(found, y=y, lo=lo, hi=hi, dual_coef=alpha, g=g), options)


def checked(store: RowStore, rough: Solution, options: SolverOptions) -> Solution:
    """A solution in single precision with gradients in double precision; those that are NaN are not known."""
    X, y, alpha, g = store.examples, rough.y, rough.dual_coef, rough.g.copy()
    support = rough.support

    def exact(rows: np.ndarray) -> np.ndarray:
        return np.asarray(y[rows] - _sums(store, X, rows, support, alpha[support]))

    beyond = violations(alpha, g, rough.lo, rough.hi, rough.bias, rough.bias)
    is_near = (beyond > -options.tol) | (alpha != 0.0) | np.isnan(g)
    near, others = np.flatnonzero(is_near), np.flatnonzero(~is_near)
    before, g[near] = g[near], exact(near)
    anew = len(near)
    rounding = max(_rounding(store, alpha), float(np.nanmax(np.abs(g[near] - before), initial=0.0)))
    if len(others) and not rounding <= NEGLIGIBLE * options.tol:
        g[others] = exact(others)
        anew = len(y)
    return replace(rough, store=store, g=g, values_computed=rough.values_computed + anew * len(support))


def _sums(store: RowStore, X: Any, rows: np.ndarray, ids: np.ndarray, c: np.ndarray) -> np.ndarray:
    """sum_s c_s k(x_t, x_s), for the examples t of `rows` and s of `ids`."""
    out, sq = np.zeros(len(rows)), store.data.sq
    with one_blas_thread():
        for s in range(0, len(ids), BLOCK_COLUMNS):
            part = ids[s : s + BLOCK_COLUMNS]
            others = X[part].T
            if sp.issparse(others) and others.shape[0] <= MAX_COLUMNS:  # a product with a dense matrix is faster
                others = others.toarray()
            for t in range(0, len(rows), BLOCK):
                block = rows[t : t + BLOCK]
                P = X[block] @ others
                P = P if isinstance(P, np.ndarray) else P.toarray()
                K = kernel_values(store.kernel, P, sq[part], sq[block][:, np.newaxis])
                out[t : t + BLOCK] += K @ c[s : s + BLOCK_COLUMNS]
    return out
