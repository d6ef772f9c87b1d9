"""Kernels: their formulas for compiled code, for numpy and for a GPU.

`kernel_table` lists them.  A kernel is a function of the inner product and, for RBF, of the squared norms, because
||x - z||^2 = <x, x> + <z, z> - 2 <x, z>.  So a row of kernel values is a row of inner products, mapped elementwise.
All kernels are of one type, `Kernel`, with a number for the kind.  Compiled code then exists once for all kinds, and
tests the number once per row.

A new kernel needs a line in `kernel_table`, a number here, and its formula in `map_row`, `self_product` and
`kernel_values`.  ``tests/core/test_kernels.py`` compares them all with the twin, and finds texts without its name.

========  ============================================  ==========  ==================
symbol    name                                          shape       dtype
========  ============================================  ==========  ==================
row       inner products, then kernel values            (n,)        float32 or float64
sq        squared norms of the row's examples           (n,)        as the row
sq_x      squared norm of the query                     scalar      as the row
========  ============================================  ==========  ==================
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._dispatch import of_numbers
from streamsvm.core.compiling._jit import inner_fma
from streamsvm.core.compiling._simd import fmax
from streamsvm.core.exponentials import exp
from streamsvm.core.kernel_table import KERNELS, About

RBF_KIND, LINEAR_KIND, POLYNOMIAL_KIND, SIGMOID_KIND = range(
    len(KERNELS)
)  # A kernel's number is its place in `KERNELS`.
NAMES = tuple(KERNELS)
FORMULAS = tuple(about.on_gpu for about in KERNELS.values())

LARGEST_DEGREE = 1000  # each degree costs a multiplication for each kernel value
LARGEST_KERNEL_VALUE = 1e30  # k(x, x), and of a parameter: finite in float32, and sums are far from overflow in float64
TANH_MAX = float(math.ceil(0.5 * math.log(8.0 / np.finfo(float).eps)))  # beyond, 1 - 2 e^(-2x) is 1 when rounded


@of_numbers
class Kernel(NamedTuple):
    """A kernel and its parameters; make one with `RBF`, `Linear`, `Polynomial`, `Sigmoid` or `make_kernel`."""

    kind: int
    gamma: float
    coef0: float
    degree: int


def about(name: str) -> About:
    """What `KERNELS` says of this kernel, or a ValueError that names the kernels."""
    if name not in KERNELS:
        raise ValueError(f"kernel={name!r} is unknown; use one of {', '.join(map(repr, NAMES))}")
    return KERNELS[name]


def is_positive_semidefinite(kernel: Kernel) -> bool:
    """Whether every matrix of this kernel's values is positive semi-definite, which bounds on decision values need."""
    return kernel.kind in (RBF_KIND, LINEAR_KIND) or (kernel.kind == POLYNOMIAL_KIND and kernel.coef0 >= 0.0)


def RBF(gamma: float = 1.0) -> Kernel:
    """Gaussian kernel exp(-gamma ||x - z||^2)."""
    return make_kernel("rbf", gamma=gamma)


def Linear() -> Kernel:
    """Inner product <x, z>."""
    return make_kernel("linear")


def Polynomial(degree: int = 3, gamma: float = 1.0, coef0: float = 0.0) -> Kernel:
    """(gamma <x, z> + coef0)^degree."""
    return make_kernel("poly", gamma=gamma, degree=degree, coef0=coef0)


def Sigmoid(gamma: float = 1.0, coef0: float = 0.0) -> Kernel:
    """tanh(gamma <x, z> + coef0)."""
    return make_kernel("sigmoid", gamma=gamma, coef0=coef0)


def make_kernel(name: str, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Kernel:
    """Make a kernel by its name.

    Parameters
    ----------
    name
        ``"rbf"``, ``"linear"``, ``"poly"`` or ``"sigmoid"``.
    gamma
        Scale of the inner product or of the squared distance; positive, at most 1e30.
    degree
        Degree of the polynomial; an integer from 1 to 1000.
    coef0
        Constant term of the polynomial and the sigmoid; from -1e30 to 1e30.

    Raises
    ------
    ValueError
        If the name is unknown or a parameter is out of its range.
    TypeError
        If a parameter is not a number.

    Examples
    --------
    >>> make_kernel("rbf", gamma=0.5)
    Kernel(kind=0, gamma=0.5, coef0=0.0, degree=3)
    """
    about(name)
    for parameter, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0)):
        if not isinstance(value, int | float | np.number) or isinstance(value, bool | np.complexfloating):
            raise TypeError(f"{parameter}={value!r} must be a number")
    if not 0 < gamma <= LARGEST_KERNEL_VALUE:
        raise ValueError(f"gamma={gamma!r} must be a positive finite number, at most {LARGEST_KERNEL_VALUE:g}")
    if not (1 <= degree <= LARGEST_DEGREE and degree == int(degree)):
        raise ValueError(f"degree={degree!r} must be an integer from 1 to {LARGEST_DEGREE}")
    if not abs(coef0) <= LARGEST_KERNEL_VALUE:
        raise ValueError(f"coef0={coef0!r} must be a finite number, of size {LARGEST_KERNEL_VALUE:g} at most")
    return Kernel(NAMES.index(name), float(gamma), float(coef0), int(degree))


# ---------------------------------------------------------------------------------------------------- in compiled code


@inner_fma
def map_row(kernel, row, sq, sq_x):
    """Turn a row of inner products <x, z_s> into kernel values k(x, z_s), in place and in the row's precision."""
    real = row.dtype.type
    gamma, coef0, largest = real(kernel.gamma), real(kernel.coef0), real(TANH_MAX)
    n, zero, one, two = row.shape[0], real(0.0), real(1.0), real(2.0)
    if kernel.kind == RBF_KIND:
        for s in range(n):
            row[s] = exp(-gamma * fmax(sq_x + sq[s] - two * row[s], zero))
    elif kernel.kind == POLYNOMIAL_KIND:
        for s in range(n):
            base = gamma * row[s] + coef0
            power = base
            for _ in range(kernel.degree - 1):
                power = power * base
            row[s] = power
    elif kernel.kind == SIGMOID_KIND:
        for s in range(n):
            z = gamma * row[s] + coef0
            z = fmax(-largest, -fmax(-largest, -z))
            row[s] = one - two / (exp(z + z) + one)


@inner_fma
def self_product(kernel, sq_x):
    """k(x, x) from the squared norm of x, in float64."""
    if kernel.kind == RBF_KIND:
        return 1.0
    if kernel.kind == LINEAR_KIND:
        return np.float64(sq_x)
    z = kernel.gamma * sq_x + kernel.coef0
    if kernel.kind == POLYNOMIAL_KIND:
        return z**kernel.degree
    return math.tanh(z)


# ------------------------------------------------------------------------------------------------------------ in numpy


def kernel_values(kernel: Kernel, P: np.ndarray, sq: np.ndarray, sq_x: np.ndarray) -> np.ndarray:
    """Kernel values from float64 inner products P and the squared norms of both sides; may overwrite P."""
    if kernel.kind == LINEAR_KIND:
        return P
    with np.errstate(over="ignore", invalid="ignore"):
        if kernel.kind == RBF_KIND:
            P *= -2.0
            P += sq_x
            P += sq
            np.maximum(P, 0.0, out=P)
            P *= -kernel.gamma
            return np.exp(P, out=P)
        P = kernel.gamma * P + kernel.coef0
        return P**kernel.degree if kernel.kind == POLYNOMIAL_KIND else np.tanh(P)


def self_products(kernel: Kernel, sq: np.ndarray) -> np.ndarray:
    """k(x, x) in float64 for examples of these squared norms."""
    if kernel.kind == RBF_KIND:
        return np.ones(len(sq))
    sq = np.array(sq, np.float64)
    return kernel_values(kernel, sq, sq, sq)


def largest_difference(kernel: Kernel, largest: float) -> float:
    """A bound on k(x, x) - k(x, z), where no k(x, x) is above `largest`; for positive semi-definite kernels."""
    return largest if kernel.kind == RBF_KIND else 2.0 * largest


def is_bounded(kernel: Kernel) -> bool:
    """Whether |k(x, z)| is at most 1 for all examples."""
    return kernel.kind in (RBF_KIND, SIGMOID_KIND)


def largest_self_product(kernel: Kernel, sq: np.ndarray) -> float:
    """The largest |k(x, x)| among examples of these squared norms; it bounds every kernel value between them."""
    if is_bounded(kernel):
        return 1.0
    return float(np.max(np.abs(self_products(kernel, sq)), initial=0.0))
