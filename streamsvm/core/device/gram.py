"""Kernel values of a training set on the device, among its examples and with others, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.device.gpu import Gpu, by_halves
from streamsvm.core.device.vectors import Vectors
from streamsvm.core.kernels import Kernel


class Gram:
    """Kernel values of a training set, among its examples and with others, in float64.

    Parameters
    ----------
    gpu
        The device.
    kernel
        The kernel.
    examples
        The training set in compressed rows, (n, D) float64.
    sq
        Its squared norms, (n,).
    """

    def __init__(self, gpu: Gpu, kernel: Kernel, examples: sp.csr_matrix, sq: np.ndarray) -> None:
        X = gpu.xp.zeros(examples.shape, np.float64)
        self._gpu = gpu
        self._vectors = Vectors(gpu, kernel, X, gpu.xp.asarray(sq))

        def send(begin: int, end: int) -> None:
            X[begin:end] = self._dense(examples[begin:end])

        by_halves(gpu, send, 0, len(sq), gpu.chunk(32 * X.shape[1]))

    def _dense(self, examples: sp.csr_matrix) -> Any:
        return self._gpu.dense(examples.indptr, examples.indices, examples.data, examples.shape[1], np.float64)

    def rows(self, ids: np.ndarray, keep: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Compute the kernel rows of these examples; `keep` gets a few at a time, as ids (b,) and rows (b, n)."""
        X, sq = self._vectors.X, self._vectors.sq

        def compute(begin: int, end: int) -> None:
            part = self._gpu.xp.asarray(ids[begin:end])
            keep(ids[begin:end], self._gpu.xp.asnumpy(self._vectors.kernel_values(X[part], sq[part][:, None])))

        by_halves(self._gpu, compute, 0, len(ids), self._gpu.chunk(self._vectors.bytes_each))

    def expand(self, examples: sp.csr_matrix, sq: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """sum_s beta_s k(x_s, x_t) for other examples of the same width, (B,)."""
        out, coefficients = np.empty(len(sq)), self._gpu.xp.asarray(beta)

        def compute(begin: int, end: int) -> None:
            sq_q = self._gpu.xp.asarray(sq[begin:end])[:, None]
            values = self._vectors.weighted_sum(self._dense(examples[begin:end]), sq_q, coefficients)
            out[begin:end] = self._gpu.xp.asnumpy(values)

        by_halves(self._gpu, compute, 0, len(sq), self._gpu.chunk(self._vectors.bytes_each))
        return out
