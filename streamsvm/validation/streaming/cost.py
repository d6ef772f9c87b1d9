"""The time that learning and estimates are expected to take, computed from counts.

No clock is asked.  So the same stream has the same estimates at the same examples, on a busy machine, after a restart
and when it is learned again.  Expected times are right within a factor of two; only ratios of them count, which vary
less.
"""

import numpy as np

from streamsvm.batch.working_set.solver import LOOSE
from streamsvm.core.costs import COPIED, LEARNED, PER_MEMBER, REMEMBERED, REMOVED, SOLVED
from streamsvm.online.removal.forget import seconds_by_steps
from streamsvm.online.removal.leave_one_out import LeaveOut

FINISHED = LOOSE  # A copy's largest violation: to reach a hundredth of it takes two to five times as long.
FEWER_STEPS = 0.14  # of those to a hundredth of it


def of_learning(n: int, n_members: int, n_models: int = 1) -> float:
    """Of learning n examples by a model with so many members; by several models, which share kernel values."""
    return n * (n_models * LEARNED + PER_MEMBER * n_members)


def of_copying(n: int, evaluations: int, n_models: int = 1) -> float:
    """Of a solved copy with n remembered examples, for which so many kernel values were computed."""
    return n_models * (COPIED + REMEMBERED * n) + SOLVED * evaluations


def of_removal(model: LeaveOut, r: int) -> float:
    """Of leaving r support vectors out together."""
    steps = seconds_by_steps(model.n, int(np.count_nonzero(model.free)), r, model.tol)
    return REMOVED + (steps if is_tight(model) else FEWER_STEPS * steps)


def is_tight(model: LeaveOut) -> bool:
    """Whether the model had been finished before it was copied: then paths may cost less than steps."""
    return model.tol < 0.1 * FINISHED
