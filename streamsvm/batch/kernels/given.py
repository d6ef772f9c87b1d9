"""Stands in for `features` when the kernel matrix exists already: a user computed it, or several fits share it."""

import numpy as np

from streamsvm.batch.kernels.features import Features
from streamsvm.batch.kernels.matrix import Gram


class GivenMatrix(Gram):
    """The examples of a training set, of which only kernel values are known.

    It has the attributes and methods of `Features` that the solvers use.

    Parameters
    ----------
    K
        Kernel values of all examples with each other, (n, n), finite and symmetric; stored in single precision.
    """

    def __init__(self, K: np.ndarray) -> None:
        K = np.ascontiguousarray(K, np.float32)
        super().__init__(K, K.diagonal().astype(np.float64))
        self.kernel_evaluations = 0

    def part(self, ids: np.ndarray) -> "GivenMatrix":
        """These examples alone."""
        return GivenMatrix(self.K[np.ix_(ids, ids)])

    def sums(self, rows: np.ndarray, ids: np.ndarray, c: np.ndarray) -> np.ndarray:
        """sum_s c_s k(x_t, x_s), for the examples t of `rows` and s of `ids`."""
        return self.K[np.ix_(rows, ids)].astype(np.float64) @ c


KernelSource = Features | GivenMatrix  # the examples of a training set, as the solvers need them
