"""Which members leave before the next example: those with its id, those too old, and some if the budget is reached."""

from collections.abc import Callable

import numpy as np

from streamsvm.core import storage
from streamsvm.core.expansion import SLOTS
from streamsvm.estimators.learner.examples import Examples
from streamsvm.estimators.learner.state import State, is_full
from streamsvm.online.removal import bounded
from streamsvm.online.removal.window import let_old_leave

PREPARED = 16  # examples that are prepared together at a budget: compiled code then runs for longer than the call

NO_SLOTS = np.empty(0, np.int64)


def replaced(
    state: State, number: int, lo: float, hi: float, features: Callable[[], tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """The slots of the members that an example replaces: those with its id, unless the one member is equal to it.

    An example with an empty box is not kept, and replaces no member.
    """
    if not lo < hi:
        return NO_SLOTS
    s, n = state.expansion, int(state.expansion.counts[SLOTS])
    slots = np.flatnonzero((s.ids[:n] == number) & (s.y[:n] != 0))
    if len(slots) == 1:
        i = int(slots[0])
        same_box = (s.y[i] > 0) == (hi > 0.0) and s.hi[i] - s.lo[i] == hi - lo
        if same_box and storage.is_stored(s, i, *features()):
            return NO_SLOTS
    return slots


def replaced_by(state: State, block: Examples, t: int) -> np.ndarray:
    """The slots of the members that the t-th example of a block replaces."""
    own = slice(block.q.indptr[t], block.q.indptr[t + 1])
    features = block.q.indices[own], block.q.values[own]
    return replaced(state, int(block.ids[t]), block.lo[t], block.hi[t], lambda: features)


def returning_in(state: State, block: Examples) -> np.ndarray:
    """The places in a block of the examples whose id a member has, or an earlier example of the block."""
    if not block.own_ids:
        return NO_SLOTS
    ids, known = block.ids, state.expansion.ids[: state.expansion.counts[SLOTS]]
    if (ids[:1] > known.max(initial=np.iinfo(np.int64).min)).all() and (ids[1:] > ids[:-1]).all():
        return NO_SLOTS  # the usual case, and much quicker: ids that rise above all others
    held = state.expansion.ids[storage.live_slots(state.expansion)]
    order, again = np.argsort(ids, kind="stable"), np.zeros(len(ids), bool)
    ordered = ids[order]
    places = np.searchsorted(ordered[:-1], held)  # of equal ones, the first; `np.isin` takes three times as long
    again[order[places[ordered[places] == held]]] = True
    again[order[1:]] |= np.diff(ordered) == 0
    return np.flatnonzero(again)


def until_replaced(state: State, block: Examples, t: int, end: int, returning: np.ndarray) -> int:
    """The end of the part that begins with the t-th example of a block: before one that replaces a member.

    An example also ends the part if its id occurs in it.  Which members it replaces is only known afterwards.
    """
    for i in returning[(returning > t) & (returning < end)].tolist():
        if (block.ids[t:i] == block.ids[i]).any() or len(replaced_by(state, block, i)):
            return i
    return end


def is_due(state: State, now: int) -> bool:
    """Whether members may have to leave before the next example."""
    return is_full(state) or (state.window is not None and now >= state.window.due)


def make_way(state: State, now: int) -> None:
    """Before an example is learned: let the members that are too old leave, then some more at the budget."""
    if state.window and now >= state.window.due:
        s = storage.with_own_coefficients(state.expansion)
        let_old_leave(state.rule, s, state.kernel, state.window.clock, now)
        state.expansion = s
    if is_full(state):
        engine = (state.kernel, state.problem, state.tol)
        bounds = (int(state.budget), state.on_budget, len(state.features))
        state.expansion = bounded.reduce_members(state.expansion, *engine, *bounds)


def fitting(state: State, n: int) -> int:
    """How many of n examples to prepare: until there may be too many members."""
    return n if state.budget is None else min(n, max(PREPARED, int(state.budget) - state.n_members))
