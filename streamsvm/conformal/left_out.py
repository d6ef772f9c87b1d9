"""Scores while labels are few: what the model without a member says about this member.

The scores of the stream come from a model that knew less than the one that decides, so they are too low at first.
Leave-one-out asks a model that knows as much.  Source: Vovk, "Cross-conformal predictors" (2015); Barber, Candes,
Ramdas, Tibshirani, "Predictive inference with the jackknife+" (2021).
"""

from typing import Any

import numpy as np

from streamsvm.estimators.learners import ALGORITHMS
from streamsvm.online.removal.leave_one_out import UNCHANGED

_KINDS: Any = tuple(ALGORITHMS.values())


def can_leave_out(model: Any) -> bool:
    """Whether a model of two classes keeps what it learned so far, so that each example can be left out."""
    if not isinstance(model, _KINDS):
        return False
    limits = [limit for limit in (model.budget, model.window) if limit is not None]
    return all(isinstance(limit, int) and model.n_seen <= limit for limit in limits)  # not a window of time


def left_out_scores(model: Any) -> dict[Any, list[float]]:
    """For False and True, in order, the probability that each member's label gets from the model without it."""
    left_out, _ = model.leave_out([], [], ids=[])
    f, changed = left_out.decision_values(), np.flatnonzero(left_out.bounds() != UNCHANGED)
    left_out.prepare(len(changed))
    for place in changed:
        f[place] = left_out.without(np.array([place]))[0]
    p, positive = model.probability(f), left_out.s.y[: left_out.n] > 0
    return {False: np.sort(1.0 - p[~positive]).tolist(), True: np.sort(p[positive]).tolist()}
