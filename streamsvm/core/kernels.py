"""Kernels: what they are, and their evaluation over a whole row at once.

A kernel of this engine is a function of the inner product and, for RBF, of the squared norms:

    RBF         k(x, z) = exp(-gamma ||x - z||^2),   ||x - z||^2 = <x, x> + <z, z> - 2 <x, z>
    Linear      k(x, z) = <x, z>
    Polynomial  k(x, z) = (gamma <x, z> + coef0)^degree
    Sigmoid     k(x, z) = tanh(gamma <x, z> + coef0)       (not positive definite for every gamma and coef0)

So a row of kernel values is a row of inner products mapped elementwise.  All four are one type, `Kernel`, told apart by
a number: compiled code then exists once, not once for each kernel, which keeps the first call short; the test on the
number is made once per row.

========  ===========================  ==========  =======
symbol    name                         shape       dtype
========  ===========================  ==========  =======
row       inner products, then values  (n,)        float32
sq        squared norms of the rows'   (n,)        float32
          examples
sq_x      squared norm of the query    scalar      float32
========  ===========================  ==========  =======
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.core._jit import inner_fma
from streamsvm.core._simd import float32_bits, float32_from_bits, fmax

RBF_KIND, LINEAR_KIND, POLYNOMIAL_KIND, SIGMOID_KIND = 0, 1, 2, 3
NAMES = ("rbf", "linear", "poly", "sigmoid")


class Kernel(NamedTuple):
    """A kernel and its parameters; make one with `RBF`, `Linear`, `Polynomial`, `Sigmoid` or `make_kernel`."""

    kind: int
    gamma: float
    coef0: float
    degree: int


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
    """The kernel of that name.

    Parameters
    ----------
    name
        ``"rbf"``, ``"linear"``, ``"poly"`` or ``"sigmoid"``.
    gamma
        Scale of the inner product or of the squared distance; positive.
    degree
        Degree of the polynomial; an integer from 1 to 1000.
    coef0
        Constant term of the polynomial and the sigmoid.

    Raises
    ------
    ValueError
        If the name is unknown or a parameter is out of its range.

    Examples
    --------
    >>> make_kernel("rbf", gamma=0.5)
    Kernel(kind=0, gamma=0.5, coef0=0.0, degree=3)
    """
    if name not in NAMES:
        raise ValueError(f"kernel={name!r} is unknown; use one of {', '.join(map(repr, NAMES))}")
    for parameter, value in (("gamma", gamma), ("degree", degree), ("coef0", coef0)):
        if not isinstance(value, int | float | np.number) or isinstance(value, bool | np.complexfloating):
            raise TypeError(f"{parameter}={value!r} must be a number")
    if not 0 < gamma <= LARGEST_PARAMETER:
        raise ValueError(f"gamma={gamma!r} must be a positive finite number, at most {LARGEST_PARAMETER:g}")
    if not (1 <= degree <= LARGEST_DEGREE and degree == int(degree)):
        raise ValueError(f"degree={degree!r} must be an integer from 1 to {LARGEST_DEGREE}")
    if not abs(coef0) <= LARGEST_PARAMETER:
        raise ValueError(f"coef0={coef0!r} must be a finite number, of size {LARGEST_PARAMETER:g} at most")
    return Kernel(NAMES.index(name), float(gamma), float(coef0), int(degree))


LOG2_E = np.float32(1.44269504088896341)
LN2_HIGH = np.float32(0.693359375)  # few bits, so that k * LN2_HIGH is exact
LN2_LOW = np.float32(-2.12194440e-4)
ROUND = np.float32(12582912.0)  # 1.5 * 2^23: adding it rounds to an integer in the low bits
# e^f = 1 + f + f^2 P(f) on |f| <= ln(2)/2, relative error below 1e-7
P0, P1, P2 = np.float32(5.0000001201e-1), np.float32(1.6666665459e-1), np.float32(4.1665795894e-2)
P3, P4, P5 = np.float32(8.3334519073e-3), np.float32(1.3981999507e-3), np.float32(1.9875691500e-4)
EXP_MIN = np.float32(-87.0)  # e^-87 is still a normal number; smaller arguments are rounded up to it
ONE, TWO = np.float32(1.0), np.float32(2.0)
LARGEST_KERNEL_VALUE = 1e30  # of an example with itself; sums of such values are far from overflow in float64
LARGEST_DEGREE = 1000  # each costs a multiplication for each kernel value
LARGEST_PARAMETER = 1e30  # of a kernel: finite in float32
TANH_MAX = np.float32(10.0)  # tanh is 1 in float32 beyond


@inner_fma
def exp32(x):
    """e^x in float32 for x in [-87, 87], as plain arithmetic that vectorises."""
    x = fmax(x, EXP_MIN)
    k = x * LOG2_E + ROUND
    f = x - (k - ROUND) * LN2_HIGH
    f = f - (k - ROUND) * LN2_LOW
    p = P5 * f + P4
    p = p * f + P3
    p = p * f + P2
    p = p * f + P1
    p = p * f + P0
    e = p * f * f + f + ONE
    return float32_from_bits(np.int32(float32_bits(e) + (float32_bits(k) << np.int32(23))))


@inner_fma
def map_row(kernel, row, sq, sq_x):
    """Turn a row of inner products <x, z_s> into kernel values k(x, z_s), in place."""
    gamma, coef0 = np.float32(kernel.gamma), np.float32(kernel.coef0)
    n = row.shape[0]
    if kernel.kind == RBF_KIND:
        for s in range(n):
            distance = fmax(sq_x + sq[s] - TWO * row[s], np.float32(0.0))
            row[s] = exp32(-gamma * distance)
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
            z = fmax(-TANH_MAX, -fmax(-TANH_MAX, -z))
            row[s] = ONE - TWO / (exp32(z + z) + ONE)


def largest_self_product(kernel: Kernel, sq: np.ndarray) -> float:
    """The largest |k(x, x)| among examples of these squared norms; it bounds every kernel value between them."""
    if kernel.kind == LINEAR_KIND:
        return float(np.max(sq, initial=0.0))
    if kernel.kind == POLYNOMIAL_KIND:
        with np.errstate(over="ignore"):
            return float(
                np.max(np.abs((kernel.gamma * sq.astype(np.float64) + kernel.coef0) ** kernel.degree), initial=0.0)
            )
    return 1.0


@inner_fma
def self_product(kernel, sq_x):
    """k(x, x) from the squared norm of x."""
    if kernel.kind == RBF_KIND:
        return 1.0
    if kernel.kind == LINEAR_KIND:
        return np.float64(sq_x)
    z = kernel.gamma * sq_x + kernel.coef0
    if kernel.kind == POLYNOMIAL_KIND:
        return z**kernel.degree
    return math.tanh(z)
