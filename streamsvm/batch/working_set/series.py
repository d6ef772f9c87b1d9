"""A series of problems over the same examples, solved one after another on one kernel matrix.

The problems are those of `batch.smo`: folds have empty boxes where they leave examples out, and C sets the sizes of all
boxes.  Each is solved by `solver.Training` from a start, with the members of the problem before: the problems of a
series have nearly the same members.

From one C to the next, all coefficients and y - g grow alike: `scaled`.  That costs no kernel value.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
K         kernel matrix                                                    (n, n) float32
y, lo, hi labels, -1 or +1, and box                                        (n,) float64
alpha, g  coefficients with their labels' signs, and gradient y - K alpha  (n,) float64
========= ================================================================ ================
"""

from dataclasses import replace

import numpy as np

from streamsvm.batch.kernels.matrix import Gram
from streamsvm.batch.kernels.square import subtract_rows
from streamsvm.batch.options import DEFAULTS, SolverOptions
from streamsvm.batch.solution import Solution
from streamsvm.batch.working_set.members import Members
from streamsvm.batch.working_set.solver import Training


def scaled(before: Solution, factor: float) -> Solution:
    """The solution with all boxes and coefficients multiplied, and its gradient."""
    alpha, lo, hi, y = factor * before.dual_coef, factor * before.lo, factor * before.hi, before.y
    upper, lower = before.dual_coef == before.hi, before.dual_coef == before.lo
    alpha[upper], alpha[lower] = hi[upper], lo[lower]
    return replace(before, dual_coef=alpha, g=y - factor * (y - before.g), lo=lo, hi=hi)


class Series:
    """The problems over the examples of one kernel matrix.

    Parameters
    ----------
    gram
        The kernel matrix.
    options
        `tol`, `max_iterations` and `max_passes` count.

    Examples
    --------
    >>> K = np.exp(-np.square(np.subtract.outer(np.arange(4.0), np.arange(4.0)))).astype(np.float32)
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0])
    >>> found = Series(Gram(K, np.ones(4))).solve(y, np.minimum(10 * y, 0), np.maximum(10 * y, 0))
    >>> found.dual_coef.round(2)
    array([-0.55, -1.28,  1.28,  0.55])
    """

    def __init__(self, gram: Gram, options: SolverOptions = DEFAULTS) -> None:
        self.gram, self.options = gram, options
        self._members = Members(gram, 4 * gram.n**2 / 2**20)

    def restart(self) -> None:
        """Let all members leave: the problems to come have little in common with those before."""
        self._members.keep(np.zeros(0, np.int64))

    def solve(
        self,
        y: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
        alpha: np.ndarray | None = None,
        g: np.ndarray | None = None,
    ) -> Solution:
        """Solve a problem, from any feasible start.

        Parameters
        ----------
        y
            Labels -1.0 and +1.0, (n,).
        lo, hi
            Box of each coefficient, (n,); both are 0 for a held-out example.
        alpha, g
            Start, (n,), and y - K alpha if it is known.  Default: 0.
        """
        training = Training(self._members, y, lo, hi, self.options)
        alpha = np.zeros(len(y)) if alpha is None else alpha
        if g is None:
            g, support = y.copy(), np.flatnonzero(alpha)
            subtract_rows(self.gram.K, support, alpha[support], g)
        return training.solution(alpha, g)
