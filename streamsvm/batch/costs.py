"""What the work of the solvers costs on one processor: every measured time of batch/ in one table.

The times decide between ways to the same solution, never about the solution.  They are rough: of one core at about
3 GHz, fitted to the seconds of whole folds over eleven data sets with 10 and 30 folds, so that the way chosen was the
fastest one or within a tenth of it.  Twice or half of each changes the choice only where both ways cost about the same.

===================== =========================================================================
name                  the cost of
===================== =========================================================================
SECONDS_PER_PRODUCT   a number of a matrix in a product with a vector, of a path or of AVG
SECONDS_PER_STEP      a pair step, for any number of active examples
SECONDS_PER_ELEMENT   a pair step, for each active example
SECONDS_PER_SYSTEM    a linear system of a Newton step, for m^3 and for m^2
EVENTS_OF_BOUNDED     events of a path, for the root of the bounded support vectors that leave; a free one has one
WORTH                 another start, or a move of the active examples, as a share of what it saves
===================== =========================================================================
"""

import math

SECONDS_PER_PRODUCT = 0.25e-9
SECONDS_PER_STEP, SECONDS_PER_ELEMENT = 0.7e-6, 1.3e-9
# A pair step's element is the unit, as it was when these were fitted.  With half of them, a9a takes half as long again.
SECONDS_PER_SYSTEM = SECONDS_PER_ELEMENT / 36.0, SECONDS_PER_ELEMENT * 4.0 / 3.0
EVENTS_OF_BOUNDED = 10.0
WORTH = 0.8


def events_of(r_free: float, r_bounded: float) -> float:
    """The expected number of events of a path on which so many free and bounded support vectors leave."""
    return r_free + EVENTS_OF_BOUNDED * math.sqrt(r_bounded)


def step_seconds(steps: float, active: float) -> float:
    """The expected cost of pair steps over so many active examples."""
    return steps * (SECONDS_PER_STEP + SECONDS_PER_ELEMENT * active)


def path_seconds(events: float, m: int, n: int, k: int) -> float:
    """The expected cost of a path among n examples, of which m are free, if k paths share the factor."""
    return SECONDS_PER_PRODUCT * (events * (2.0 * m * m + 2.0 * n * m) + m**3 / max(1, k))


def system_seconds(m: int) -> float:
    """The expected cost of a linear system of m free examples."""
    cubes, squares = SECONDS_PER_SYSTEM
    return cubes * m**3 + squares * m * m


def newton_seconds(m: int, active: float) -> float:
    """The expected cost of a Newton step of m free examples among the active ones."""
    return system_seconds(m) + SECONDS_PER_ELEMENT * m * active
