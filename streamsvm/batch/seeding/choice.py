"""The choice of a seed: the start whose expected cost for a fold is the lowest."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.batch.costs import (
    SECONDS_PER_PRODUCT,
    WORTH,
    events_of,
    newton_seconds,
    path_seconds,
    step_seconds,
)
from streamsvm.batch.problem import GROWTH
from streamsvm.batch.solution import Solution

WORTHLESS = 4  # folds; up to so many, a seed saves nothing
DECAY = 0.2  # of the share of the steps that a seed leaves to do, as a power of the folds, if a quarter of all is free
IF_BOUNDED, IF_FREE = 0.67, 2.0  # times as much, if none is free and if all are


class Choice(NamedTuple):
    """The seed that `choose` picked, and why.

    Attributes
    ----------
    seed
        "cold", "path" or "avg".
    cold_seconds, path_seconds, avg_seconds
        Expected cost of a fold from 0, with the path and with AVG, within a factor of two.
    max_events
        Four times the expected number of events of the path, for `exact.path`.
    reason
        The reason in words.
    """

    seed: str
    cold_seconds: float
    path_seconds: float
    avg_seconds: float
    max_events: int
    reason: str


def effective_folds(n: int, folds: Sequence[np.ndarray]) -> float:
    """The number of folds of this size that would cover all examples; it decides what a seed is worth."""
    return n / max(1.0, sum(len(fold) for fold in folds) / max(1, len(folds)))


def choose(known: Solution, effective: float, k: int) -> Choice:
    """Choose the seed from the full solution that solves the folds soonest, or none.

    - A path of E events costs 0.25 ns E (2 m^2 + 2 n m), and a share of the factor, m^3.  It has about one event
      for each free support vector that leaves, and 10 sqrt(b) events for b bounded ones.
    - A training from AVG costs a share s of a cold one.  s falls from 0.7 for 5 folds to 0.2 for single examples.  It
      rises with the share of the support vectors that are free, because all of these move when one leaves.

    These rules are rough, so a seed is chosen only if it promises to save a fifth of the cost.

    Parameters
    ----------
    known
        The full solution; of the members, if the folds are solved among them.
    effective
        The result of `effective_folds`.
    k
        The number of folds.
    """
    n, m = len(known.dual_coef), int(np.count_nonzero(known.free))
    support = int(np.count_nonzero(known.dual_coef))
    r = support / effective
    r_free = m / max(1, support) * r
    events = events_of(r_free, r - r_free)
    active = min(float(n), GROWTH * support)
    cold = step_seconds(known.iterations, active) + known.newton_steps * newton_seconds(m, active)
    share = effective**-DECAY * (IF_BOUNDED + (IF_FREE - IF_BOUNDED) * m / max(1, support))
    path = path_seconds(events, m, n, k)
    avg = SECONDS_PER_PRODUCT * n * m + share * cold
    costs = (
        f"expected seconds a fold: cold {cold:.2g}, path {path:.2g}, avg {avg:.2g} "
        f"(members={n}, free={m}, leaving={r:.3g})"
    )
    if path < min(WORTH * cold, avg) and m + 2 <= known.store.capacity:
        seed, why = "path", "the exact path is the cheapest start"
    elif avg < WORTH * cold:
        seed, why = "avg", "it saves more steps than it costs, and a path costs more"
    else:
        seed, why = "cold", "a start from 0 costs hardly more than one from a seed"
    return Choice(seed, cold, path, avg, int(4 * events) + 50, f"{why}; {costs}")
