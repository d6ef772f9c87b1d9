"""Where the training of a large problem begins: at its solution in single precision, found in chunks.

A pair step costs the number of active examples.  `smo` begins with all of them, `solver` with few.  So a problem of
`FEWEST` examples or more that has no start is solved in chunks first.  `smo` then goes on in double precision: from
exact gradients, and mostly without a step.

Rounding may leave a violation of 2^-24 k(x, x) C for each coefficient.  Where that is not below the tolerance, the
solution in single precision would not be a good start, and the problem begins at 0.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.batch.chunks.features import Features
from streamsvm.batch.chunks.solver import optimum
from streamsvm.batch.options import SolverOptions
from streamsvm.batch.rows import RowStore
from streamsvm.batch.steps import settled

FEWEST = 2000  # examples; fewer are solved as soon by pair steps over all of them
PRECISION = 2.0**-24
FRACTION = 0.5  # of the tolerance, that rounding of one coefficient may take


class Beginning(NamedTuple):
    """A start for `smo`: signed coefficients, (n,), and the pair steps and kernel values that they took."""

    alpha: np.ndarray
    steps: int
    kernel_evaluations: int


def beginning(
    store: RowStore, y: np.ndarray, lo: np.ndarray, hi: np.ndarray, options: SolverOptions
) -> Beginning | None:
    """The solution in single precision; None if the problem is small, or if single precision is not enough for it.

    Parameters
    ----------
    store, y, lo, hi
        The problem, as for `smo.train`.
    options
        `chunks`, `tol`, `cache_mb` and `max_iterations` count.
    """
    trained = np.flatnonzero(lo < hi)
    if not (options.chunks and store.on_cpu and len(trained) >= FEWEST):
        return None
    if PRECISION * float(store.diagonal.max()) * float((hi - lo).max()) > FRACTION * options.tol:
        return None
    lo, hi = lo[trained], hi[trained]
    found = optimum(Features(store.examples[trained], store.kernel), y[trained], lo, hi, options)
    alpha = np.zeros(len(y))
    alpha[trained] = settled(found.alpha, lo, hi, np.abs(found.alpha).max(initial=0.0))
    return Beginning(alpha, found.steps, found.kernel_evaluations)
