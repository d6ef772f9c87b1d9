"""e^x in plain arithmetic, which the compiler vectorises.  The C library's exp() would be called for each single value.

    x = k ln 2 + f,  |f| <= ln(2)/2:     e^x = 2^k (1 + f + f^2 P(f))

Adding 1.5 * 2^23 (2^52 in float64) rounds k to an integer in the low bits of the number; a shift of these bits by 23
(52) then multiplies by 2^k.  ln 2 is split in two so that k times its first part, of 9 bits (16), is exact.
"""

import math
import sys
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np

from streamsvm.core.compiling._jit import compiled_for, inner_fma
from streamsvm.core.compiling._simd import float32_bits, float32_from_bits, fmax
from streamsvm.core.rounding import DUST


def _split(bits: int) -> tuple[float, float]:
    """ln 2 rounded to so many bits, and the rest."""
    with localcontext(Context(prec=40)):  # that of the user's program may have few digits
        exact = Decimal(2).ln()
        high = round(exact * 2**bits) / 2**bits
        return high, float(exact - Decimal(high))


LOG2_E = 1 / math.log(2.0)
LOG2_E_32, ROUND_32, ROUND = np.float32(LOG2_E), np.float32(1.5 * 2**23), 1.5 * 2**52
LN2_HIGH_32, LN2_LOW_32 = map(np.float32, _split(9))
# with a relative error below 1e-7
P = tuple(
    map(np.float32, (0.50000001201, 0.16666665459, 0.041665795894, 8.3334519073e-3, 1.3981999507e-3, 1.98756915e-4))
)
EXP_MIN_32 = np.ceil(np.log(np.finfo(np.float32).tiny))  # smaller arguments are rounded up to it

LN2_HIGH, LN2_LOW = _split(16)
E = tuple(1 / math.factorial(k) for k in range(14))  # Taylor's series, whose remainder is below 1e-17
EXP_MIN = math.log(sys.float_info.min / DUST)  # below, e^x counts as 0: products with it would be denormal, thus slow


def exp(x: Any) -> Any:
    """e^x in the precision of x."""
    raise NotImplementedError


@compiled_for(exp, np.float32)
def _exp_of_float32(x):
    return exp32(x)


@compiled_for(exp, np.float64)
def _exp_of_float64(x):
    return exp64(x)


@inner_fma
def exp32(x):
    """e^x in float32 for x up to 87."""
    x = fmax(x, EXP_MIN_32)
    k = x * LOG2_E_32 + ROUND_32
    f = x - (k - ROUND_32) * LN2_HIGH_32
    f = f - (k - ROUND_32) * LN2_LOW_32
    p = P[5]
    for t in range(4, -1, -1):
        p = p * f + P[t]
    e = p * f * f + f + np.float32(1.0)
    return float32_from_bits(np.int32(float32_bits(e) + (float32_bits(k) << np.int32(23))))


@inner_fma
def exp64(x):
    """e^x in float64 for x up to 708."""
    z = fmax(x, EXP_MIN)
    k = z * LOG2_E + ROUND
    f = z - (k - ROUND) * LN2_HIGH
    f = f - (k - ROUND) * LN2_LOW
    p = E[13]
    for t in range(12, 1, -1):
        p = p * f + E[t]
    e = p * f * f + f + 1.0
    e = np.int64(np.float64(e).view(np.int64) + (np.float64(k).view(np.int64) << 52)).view(np.float64)
    return e if x > EXP_MIN else 0.0
