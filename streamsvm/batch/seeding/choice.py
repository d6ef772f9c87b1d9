"""The choice of a seed: the start whose expected cost for a fold is the lowest."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.batch.costs import (
    SECONDS_PER_ELEMENT,
    SECONDS_PER_FOLD,
    SECONDS_PER_SHARE,
    SECONDS_PER_SYSTEM,
    WORTH,
    events_of,
    path_seconds,
    step_seconds,
)
from streamsvm.batch.solution import Solution
from streamsvm.batch.working_set.solver import SPARED

WORTHLESS = 4  # folds; up to so many, a seed saves nothing
MOST_OF_STEPS, SHARE_OF_STEPS, DECAY = 0.9, 1.3, 0.27  # that a seed leaves to do, if a quarter of all is free
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

    - A path of E events costs 0.25 ns E (2 m^2 + 2 n m), and a share of the factor, m^3.  It has about 1.4 events for
      each free support vector that leaves, and 10 sqrt(b) events for b bounded ones.
    - A training from AVG costs a share s of a cold one.  s falls from 0.9 for 5 folds to 0.2 for single examples.  It
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
    active = min(float(n), SPARED * support)
    newton = known.newton_steps * (SECONDS_PER_SYSTEM * m**3 + SECONDS_PER_ELEMENT * (m * m + m * active))
    steps = step_seconds(known.iterations, active) + newton
    share = min(MOST_OF_STEPS, SHARE_OF_STEPS / effective**DECAY)
    share *= IF_BOUNDED + (IF_FREE - IF_BOUNDED) * m / max(1, support)
    cold = SECONDS_PER_FOLD + steps
    path = path_seconds(events, m, n, k)
    avg = SECONDS_PER_FOLD + SECONDS_PER_SHARE * n * m + share * steps
    costs = (
        f"expected seconds a fold: cold {cold:.2g}, path {path:.2g}, avg {avg:.2g} "
        f"(members={n}, free={m}, leaving={r:.3g})"
    )
    if effective <= WORTHLESS + 0.5:
        seed, why = "cold", f"with {effective:.0f} folds, a seed saves less than the full solution costs"
    elif path < min(WORTH * cold, avg) and m + 2 <= known.store.capacity:
        seed, why = "path", "the exact path is the cheapest start"
    elif avg < WORTH * cold:
        seed, why = "avg", "it saves more steps than it costs, and a path costs more"
    else:
        seed, why = "cold", "a start from 0 costs hardly more than one from a seed"
    return Choice(seed, cold, path, avg, int(4 * events) + 50, f"{why}; {costs}")
