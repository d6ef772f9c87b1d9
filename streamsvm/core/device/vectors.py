"""Examples on the device, and fused kernels that turn inner products into kernel values.

    f(x_t) = sum_s alpha_s k(x_s, x_t),     K_ts = k(x_s, x_t)

Inner products are one matrix product (GEMM).  One fused kernel then turns them into kernel values, or into the weighted
sums f, so that no block of kernel values is written.  Sums are in float64.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
X         features of the members, or of the examples                      (n, D)
sq        their squared norms                                              (n,)
Q, sq_q   features and squared norms of a block of queries                 (B, D), (B, 1)
P         inner products, then kernel values                               (B, n)
========= ================================================================ ================

All arrays are on the device: float32 for models, float64 for training sets, as on the CPU.

Deviation from `blocks`: a GEMM adds in its own order, so values agree with the CPU's to rounding only.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from streamsvm.core.device.gpu import Gpu
from streamsvm.core.kernels import FORMULAS, Kernel

REALS = {"float32": "float", "float64": "double"}


@functools.cache
def kernel_values(xp: Any, kind: int, dtype: str) -> Callable[..., Any]:
    """The fused kernel (p, sq, sq_q, gamma, coef0, degree) -> k, elementwise."""
    formula = FORMULAS[kind].format(real=REALS[dtype])
    return xp.ElementwiseKernel(_arguments(dtype), f"{dtype} k", f"k = {formula}", f"kernel_values_{kind}_{dtype}")


@functools.cache
def weighted_sum(xp: Any, kind: int, dtype: str) -> Callable[..., Any]:
    """The fused kernel (p, sq, sq_q, gamma, coef0, degree, alpha) -> sum_s alpha_s k_s in float64, along an axis."""
    formula = FORMULAS[kind].format(real=REALS[dtype])
    return xp.ReductionKernel(
        f"{_arguments(dtype)}, float64 alpha",
        "float64 f",
        f"alpha * double({formula})",
        "a + b",
        "f = a",
        "0",
        f"weighted_sum_{kind}_{dtype}",
    )


def _arguments(dtype: str) -> str:
    return ", ".join(f"{dtype} {name}" for name in ("p", "sq", "sq_q", "gamma", "coef0", "degree"))


class Vectors(NamedTuple):
    """Examples on the device, and the kernel between them and others."""

    gpu: Gpu
    kernel: Kernel
    X: Any
    sq: Any

    @property
    def _constants(self) -> tuple[Any, ...]:
        real = self.sq.dtype.type
        return real(self.kernel.gamma), real(self.kernel.coef0), real(self.kernel.degree)

    def kernel_values(self, Q: Any, sq_q: Any) -> Any:
        """K, (B, n)."""
        P = Q @ self.X.T
        fused = kernel_values(self.gpu.xp, self.kernel.kind, self.sq.dtype.name)
        return fused(P, self.sq, sq_q, *self._constants, P)

    def weighted_sum(self, Q: Any, sq_q: Any, alpha: Any) -> Any:
        """sum_s alpha_s k(x_s, x_t) for each query, (B,) float64."""
        fused = weighted_sum(self.gpu.xp, self.kernel.kind, self.sq.dtype.name)
        # CuPy lays a reduction out for the inputs that lie dense along its results.  If the norms lay so, it would
        # read the products down their columns.
        spread = self.gpu.xp.zeros((len(sq_q), 2), sq_q.dtype)
        spread[:, :1] = sq_q
        return fused(Q @ self.X.T, self.sq, spread[:, :1], *self._constants, alpha, axis=1)

    @property
    def bytes_each(self) -> int:
        """Memory for one query: its row of products twice, its features, and their transfer."""
        return int(self.sq.dtype.itemsize * (2 * len(self.X) + self.X.shape[1]) + 32 * self.X.shape[1])
