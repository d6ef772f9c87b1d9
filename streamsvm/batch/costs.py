"""What the work of the solvers costs on one processor: every measured time of batch/ in one table.

The times decide between ways to the same solution, never about the solution.  They are rough: of one core at about
3 GHz, fitted to the seconds of whole folds over eleven data sets with 10 and 30 folds, so that the way chosen was the
fastest one or within a tenth of it.  Twice or half of each changes the choice only where both ways cost about the same.

===================== =========================================================================
name                  the cost of
===================== =========================================================================
SECONDS_PER_PRODUCT   a number of a path's matrices in a product with a vector
SECONDS_PER_STEP      a pair step, for any number of active examples
SECONDS_PER_ELEMENT   a pair step, for each active example
SECONDS_PER_SYSTEM    a Newton step, for each m^3 of m free examples
SECONDS_PER_FOLD      a start from 0, by a path or by AVG, for any size
SECONDS_PER_SHARE     AVG, for each free support vector and each example
EVENTS_OF_FREE        events of a path, for each free support vector that leaves
EVENTS_OF_BOUNDED     events of a path, for the root of the bounded support vectors that leave
UNITS_PER_ELEMENT     a pair step, for each active example, in units of a number of a linear system
UNITS_PER_SYSTEM      a linear system, for m^3 and for m^2, in the same units
WORTH                 another start, or a move of the active examples, as a share of what it saves
===================== =========================================================================
"""

import math

SECONDS_PER_PRODUCT = 0.25e-9
SECONDS_PER_STEP, SECONDS_PER_ELEMENT = 0.7e-6, 1.3e-9
SECONDS_PER_SYSTEM = 8e-12
SECONDS_PER_FOLD = 1e-4
SECONDS_PER_SHARE = 0.4e-9
EVENTS_OF_FREE, EVENTS_OF_BOUNDED = 1.4, 10.0
UNITS_PER_ELEMENT = 3.0
UNITS_PER_SYSTEM = 1.0 / 12.0, 4.0
WORTH = 0.8


def events_of(r_free: float, r_bounded: float) -> float:
    """The expected number of events of a path on which so many free and bounded support vectors leave."""
    return EVENTS_OF_FREE * r_free + EVENTS_OF_BOUNDED * math.sqrt(r_bounded)


def step_seconds(steps: float, active: float) -> float:
    """The expected cost of pair steps over so many active examples."""
    return steps * (SECONDS_PER_STEP + SECONDS_PER_ELEMENT * active)


def path_seconds(events: float, m: int, n: int, k: int) -> float:
    """The expected cost of a path among n examples, of which m are free, if k paths share the factor."""
    return SECONDS_PER_FOLD + SECONDS_PER_PRODUCT * (events * (2.0 * m * m + 2.0 * n * m) + m**3 / max(1, k))


def system_units(m: int) -> float:
    """The cost of a linear system of m free examples, in units."""
    cubes, squares = UNITS_PER_SYSTEM
    return cubes * m**3 + squares * m * m
