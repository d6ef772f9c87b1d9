"""Which members leave before the next example: those with its id, those too old, and some if the budget is reached."""

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.core import arguments, storage
from streamsvm.core.expansion import SLOTS
from streamsvm.core.ids import are_among
from streamsvm.estimators.learner.examples import Examples
from streamsvm.estimators.learner.prediction import Prediction
from streamsvm.online.removal import bounded

AT_LEAST = 16  # With a budget, prepare this many examples together,
EXPECTED = 2  # or this many for each member that there is still room for.

NO_SLOTS = np.empty(0, np.int64)
SMALLEST = np.iinfo(np.int64).min  # of all ids


class Leaving(Prediction):
    """Members that leave to make way for examples."""

    def _replaced(
        self, number: int, lo: float, hi: float, features: Callable[[], tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """The slots of the members that an example replaces: those with its id, unless the one member is equal to it.

        An example with an empty box is not kept, and replaces no member.
        """
        if not lo < hi:
            return NO_SLOTS
        s, n = self._expansion, int(self._expansion.counts[SLOTS])
        slots = np.flatnonzero((s.ids[:n] == number) & (s.y[:n] != 0))
        if len(slots) == 1:
            i = int(slots[0])
            same_box = (s.y[i] > 0) == (hi > 0.0) and s.hi[i] - s.lo[i] == hi - lo
            if same_box and storage.is_stored(s, i, *features()):
                return NO_SLOTS
        return slots

    def _replaced_by(self, block: Examples, t: int) -> np.ndarray:
        """The slots of the members that the t-th example of a block replaces."""
        own = slice(block.q.indptr[t], block.q.indptr[t + 1])
        features = block.q.indices[own], block.q.values[own]
        return self._replaced(int(block.ids[t]), block.lo[t], block.hi[t], lambda: features)

    def _returning(self, block: Examples) -> np.ndarray:
        """The places in a block of the examples whose id a member has, or an earlier example of the block."""
        if not block.own_ids:
            return NO_SLOTS
        ids, known = block.ids, self._expansion.ids[: self._expansion.counts[SLOTS]]
        if (ids[:1] > known.max(initial=SMALLEST)).all() and (ids[1:] > ids[:-1]).all():
            return NO_SLOTS  # the usual case, and much quicker: ids that rise above all others
        again = are_among(ids, self._expansion.ids[storage.live_slots(self._expansion)])
        order = np.argsort(ids, kind="stable")
        again[order[1:]] |= np.diff(ids[order]) == 0
        return np.flatnonzero(again)

    def _until_replaced(self, block: Examples, t: int, end: int, returning: np.ndarray) -> int:
        """The end of the part that begins with the t-th example of a block: before one that replaces a member.

        An example also ends the part if its id occurs in it.  Which members it replaces is only known afterwards.
        """
        for i in returning[(returning > t) & (returning < end)].tolist():
            if (block.ids[t:i] == block.ids[i]).any() or len(self._replaced_by(block, i)):
                return i
        return end

    def _age_of(self, t: Any) -> tuple[int, int]:
        """The number or time of the next example, and the largest so far with it."""
        if self._window is None:
            return self._n_seen, self._n_seen
        born = arguments.time_of(t) if self._window.by_time else self._n_seen
        return born, max(born, self._window.latest)

    def _ages_of(self, t: Any, n: int) -> np.ndarray:
        """The numbers or times of the next examples."""
        if self._window and self._window.by_time:
            return arguments.times_of(t, n)
        return np.arange(self._n_seen, self._n_seen + n)

    def _is_due(self, now: int) -> bool:
        """Whether members may have to leave before the next example."""
        too_many = self.budget is not None and storage.n_members(self._expansion) >= self.budget
        return too_many or (self._window is not None and now >= self._window.due)

    def _make_way(self, now: int) -> None:
        """Before an example is learned: let the members that are too old leave, then some more at the budget."""
        engine = (self._kernel, self._problem, self.tol)
        if self._window and now >= self._window.due:
            self._expansion = self._window.forget_old(self._expansion, *engine, now)
            self._window.look(self._expansion)
        if self.budget is not None and storage.n_members(self._expansion) >= self.budget:
            bounds = (int(self.budget), self.on_budget, len(self._features))
            self._expansion = bounded.reduce_members(self._expansion, *engine, *bounds)

    def _fitting(self, born: np.ndarray, now: np.ndarray) -> int:
        """How many of these examples to prepare: until a member may be too old, or there may be too many."""
        n = self._window.lasts(born, now) if self._window else len(born)
        if self.budget is None:
            return n
        return min(n, max(AT_LEAST, EXPECTED * (int(self.budget) - storage.n_members(self._expansion))))
