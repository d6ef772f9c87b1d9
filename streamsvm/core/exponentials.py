"""e^x in plain arithmetic, which the compiler vectorises.  The C library's exp() would be called for each single value.

    x = k ln 2 + f,  |f| <= ln(2)/2:     e^x = 2^k (1 + f + f^2 P(f))

Adding 1.5 * 2^23 (2^52 in float64) rounds k to an integer in the low bits of the number; a shift of these bits by 23
(52) then multiplies by 2^k.  ln 2 is split in two so that k times its first part is exact.
"""

import numpy as np

from streamsvm.core.compiling._jit import inner_fma
from streamsvm.core.compiling._simd import float32_bits, float32_from_bits, fmax

LOG2_E_32 = np.float32(1.44269504088896341)
LN2_HIGH_32, LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
ROUND_32 = np.float32(12582912.0)
# P with a relative error below 1e-7
P0, P1, P2 = np.float32(5.0000001201e-1), np.float32(1.6666665459e-1), np.float32(4.1665795894e-2)
P3, P4, P5 = np.float32(8.3334519073e-3), np.float32(1.3981999507e-3), np.float32(1.9875691500e-4)
EXP_MIN_32 = np.float32(-87.0)  # e^-87 is still a normal number; smaller arguments are rounded up to it
ONE = np.float32(1.0)

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6
ROUND = 6755399441055744.0
# Taylor's series, whose remainder is below 1e-17
E2, E3, E4, E5, E6, E7 = 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040
E8, E9, E10, E11, E12, E13 = 1 / 40320, 1 / 362880, 1 / 3628800, 1 / 39916800, 1 / 479001600, 1 / 6227020800
EXP_MIN = -600.0  # below, e^x counts as 0: its products with coefficients would be denormal, which is slow


@inner_fma
def exp32(x):
    """e^x in float32 for x up to 87."""
    x = fmax(x, EXP_MIN_32)
    k = x * LOG2_E_32 + ROUND_32
    f = x - (k - ROUND_32) * LN2_HIGH_32
    f = f - (k - ROUND_32) * LN2_LOW_32
    p = P5 * f + P4
    p = p * f + P3
    p = p * f + P2
    p = p * f + P1
    p = p * f + P0
    e = p * f * f + f + ONE
    return float32_from_bits(np.int32(float32_bits(e) + (float32_bits(k) << np.int32(23))))


@inner_fma
def exp64(x):
    """e^x in float64 for x up to 708."""
    z = fmax(x, EXP_MIN)
    k = z * LOG2_E + ROUND
    f = z - (k - ROUND) * LN2_HIGH
    f = f - (k - ROUND) * LN2_LOW
    p = E13 * f + E12
    p = p * f + E11
    p = p * f + E10
    p = p * f + E9
    p = p * f + E8
    p = p * f + E7
    p = p * f + E6
    p = p * f + E5
    p = p * f + E4
    p = p * f + E3
    p = p * f + E2
    e = p * f * f + f + 1.0
    e = np.int64(np.float64(e).view(np.int64) + (np.float64(k).view(np.int64) << 52)).view(np.float64)
    return e if x > EXP_MIN else 0.0
