"""How far rounding may move a number: what every test for 0 or for equality rests on.

A factor of 2 either way changes no decision but those that rounding makes anyway: the next cause of a difference, a
step or a violation, is a thousand times as large.
"""

import numpy as np

KERNEL_ROUNDING = 1e-6  # of a float32 kernel value, relative: eight units in the last place
SUM_ROUNDING = 1e-9  # of a sum in float64, relative to the sum of the sizes: far above that of a million additions
SINGULAR = 1e-10  # beside 1: a smaller diagonal of a factor, or rate, is rounding; so much more makes it regular
DUST = 1e-13  # what is left of a whole by the rounding of sums in float64, as the curvature of a pair of equal members
PRECISION = float(np.finfo(np.float32).epsneg)  # of a number in float32, relative to its size
ROUNDS = 100  # of a loop that comes nearer to its end with each: 20 are many, and only rounding would ask for more
