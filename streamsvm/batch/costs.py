"""What the work of the solvers costs on one processor: every measured time in one table.

The times decide between ways to the same solution, never about the solution.  They were measured on one core of a
server of 2020 at 2.5 GHz.  Twice or half of each changes the choice only where both ways cost about the same.

===================== ================================================================ =====================
name                  the cost of                                                      measured by
===================== ================================================================ =====================
SECONDS_PER_PRODUCT   a number of a path's matrices with vectors                       paths of 100 events
SECONDS_PER_STEP      a pair step, for any number of active examples                   `smo.train`, n = 50
SECONDS_PER_ELEMENT   a pair step, for each active example                             `smo.train`, n = 5000
SECONDS_PER_SYSTEM    a Newton step, for each m^3 of m free examples                   `newton`, m = 1000
SECONDS_PER_COLD, ... a start from 0, along a path and by AVG, for any size            folds of 50 examples
SECONDS_PER_SHARE     AVG, for each free support vector and each example               `full.avg`, n = 5000
===================== ================================================================ =====================
"""

import math

SECONDS_PER_PRODUCT = 0.25e-9
SECONDS_PER_STEP, SECONDS_PER_ELEMENT = 0.7e-6, 1.3e-9
SECONDS_PER_SYSTEM = 8e-12
SECONDS_PER_COLD, SECONDS_PER_PATH, SECONDS_PER_AVG = 1e-4, 1e-4, 2e-4
SECONDS_PER_SHARE = 0.4e-9
EVENTS_OF_FREE, EVENTS_OF_BOUNDED = 1.4, 10.0  # of a path: per leaving free one, and per root of the bounded ones


def events_of(r_free: float, r_bounded: float) -> float:
    """The expected number of events of a path on which so many free and bounded support vectors leave."""
    return EVENTS_OF_FREE * r_free + EVENTS_OF_BOUNDED * math.sqrt(r_bounded)


def step_seconds(steps: float, active: float) -> float:
    """The expected cost of pair steps over so many active examples."""
    return steps * (SECONDS_PER_STEP + SECONDS_PER_ELEMENT * active)


def path_seconds(events: float, m: int, n: int, k: int) -> float:
    """The expected cost of a path among n examples, of which m are free, if k paths share the factor."""
    return SECONDS_PER_PATH + SECONDS_PER_PRODUCT * (events * (2.0 * m * m + 2.0 * n * m) + m**3 / max(1, k))
