"""How examples leave a model: for good, for another label, or only in a copy that answers without them."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from streamsvm.batch.problem import penalties
from streamsvm.core import arguments, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.expansion import G_DOWN, G_UP, SLOTS, Expansion
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.estimators.learner.examples import Examples
from streamsvm.estimators.learner.model import n_learned, no_margins
from streamsvm.estimators.learner.rechecking import Rechecking
from streamsvm.online.lasvm import append_block
from streamsvm.online.removal.forget import admit
from streamsvm.online.removal.leave_out import LeaveOut


class Forgetting(Rechecking):
    """Forgetting, correcting and leaving out."""

    def forget(self, ids: Any) -> int:
        """Take examples out of the model and its reservoir.

        The other members get the coefficients that they would have without these examples.  After `finish`, this is
        exact up to `tol`; before it, violations stay as large as they were.

        Some examples were dropped because of the forgotten ones.  Those of the reservoir that now violate the margin
        become members.  The reservoir is a sample, so the model is close to one that never met the forgotten examples,
        but not equal.  These keep what the examples contributed: `n_seen`, `class_counts`, the order and the scale of
        the features, the sigmoid behind `predict_proba_one`, and the threshold.

        Forgetting an example that is not a support vector costs a look-up.  The first support vector that is forgotten
        after learning costs a pass over the reservoir; further ones cost less.  Ids that no member has are skipped.

        Parameters
        ----------
        ids
            One id, or several; see `learn_one`.

        Returns
        -------
        int
            Number of members that left.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> X = [{"a": 0.0}, {"a": 1.0}, {"a": 2.0}, {"a": 3.0}]
        >>> model.learn_many(X, [False, False, True, True], ids=[10, 11, 12, 13])
        >>> model.forget([12, 99])
        1
        >>> 12 in model.support_ids
        False
        """
        numbers = arguments.numbers_of(ids)
        slots = self._slots_of(numbers)
        if self._expansion.alpha[slots].any():  # Otherwise no decision value changes.
            before, bias, watched = self._expansion, self.bias, self._watch()
            tol = max(self.tol, self._problem.violation(before))
            self._forget_everywhere(slots, numbers)
            late = self._uncovered(watched, before, bias)
            if late.size:
                self._solve_with(late, lambda s: admit(s, self._kernel, self._problem, late.size, tol))
        else:
            self._forget_everywhere(slots, numbers)
        return len(slots)

    def _forget_everywhere(self, slots: np.ndarray, ids: np.ndarray) -> None:
        """Forget the members in these slots, which have these ids, and the examples of the reservoir that have them."""
        try:
            self._forget_slots(slots)
            self._reservoir.forget(ids)
        except BaseException:
            if not len(self._slots_of(ids)):
                self._reservoir.forget(ids)
            raise

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct the labels of examples that were learned.

        A member with another label is forgotten and learned again with the right one, at its old weight.  With
        ``pos_weight="balanced"``, the classes' weights are those of now.

        Parameters
        ----------
        ids
            One id, or several.
        y
            The right label: one for all ids, or one for each.

        Returns
        -------
        int
            How many of the ids belong to members, whose labels are now right.  The model no longer stores the other
            examples; learn them again if they matter.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer, or a label is invalid.  The model then stays as it was.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> X = [{"a": 0.0}, {"a": 1.0}, {"a": 2.0}, {"a": 3.0}]
        >>> model.learn_many(X, [False, False, True, False], ids=[10, 11, 12, 13])
        >>> model.relabel(13, True), model.predict_one({"a": 3.0})
        (1, True)
        """
        numbers = arguments.numbers_of(ids, in_order=np.ndim(y) > 0)
        labels = arguments.labels_of(None, np.full(len(numbers), y) if np.ndim(y) == 0 else y, len(numbers), "ids")
        found = 0
        for number, positive in zip(numbers.tolist(), labels.tolist(), strict=True):
            found += bool(len(self._slots_of(number)))
            try:
                while len(wrong := self._of_label(self._slots_of(number), not positive)):
                    self._learn_anew(int(wrong[0]), positive)  # Members may change their slots.
                self._relabel_in_reservoir(number, positive)
            except BaseException:
                if not len(self._of_label(self._slots_of(number), not positive)):
                    self._relabel_in_reservoir(number, positive)
                raise
        return found

    def _relabel_in_reservoir(self, number: int, positive: bool) -> None:
        factor = self._class_weight(positive) / self._class_weight(not positive)
        self._reservoir.relabel(number, positive, factor)

    def _of_label(self, slots: np.ndarray, positive: bool) -> np.ndarray:
        return slots[(self._expansion.y[slots] > 0) == positive]

    def _learn_anew(self, slot: int, positive: bool) -> None:
        """Forget the member in this slot, and learn its example with the other label and the weight it had."""
        s = self._expansion
        indices, values = storage.features_of(s, slot)
        q = Queries(np.array([0, len(indices)]), indices, values, s.sq[slot : slot + 1].copy())
        before, after = self._class_weight(not positive), self._class_weight(positive)
        box = np.array([(s.hi[slot] - s.lo[slot]) / before * after])
        lo, hi = (np.zeros(1), box) if positive else (-box, np.zeros(1))
        raw = storage.raw_rows_of(s, np.array([slot]))
        block = Examples(q, lo, hi, s.ids[[slot]], False, s.born[[slot]], raw)
        members, margin = self._members, no_margins(1)
        try:
            self._forget_slots(np.array([slot]))
            self._learn_queries(block, margin, counts=False)
        except BaseException:
            self._recover(members, n_learned(margin))
            raise

    # ----------------------------------------------------------------------------------------------------- leaving out

    def _without_reservoir(self) -> Self:
        """A copy that stores its members only, so that `finish` brings no examples back.

        `validation.streaming` leaves examples out of it.
        """
        return copy.deepcopy(self, {id(self._reservoir): Reservoir(0)})

    def leave_out(
        self, examples: Sequence[Mapping], y: Any, w: Any = None, ids: Any = None
    ) -> tuple[LeaveOut, np.ndarray]:
        """Prepare to predict learned examples by the model without them; `validation.streaming` uses it.

        Examples that are not members are put beside them with coefficient 0, which may change if another member is left
        out.  If such an example violates the margin, it is held at 0: the model has not learned from it either.

        Parameters
        ----------
        examples
            Features by name.
        y, w, ids
            As for `learn_many`.  An id that a member has stands for that member.

        Returns
        -------
        tuple
            The object that answers, and the slots of the examples in it.
        """
        n = len(examples)
        positive, numbers = arguments.labels_of(None, y, n), arguments.ids_of(ids, n)
        factors = np.where(positive, self._class_weight(True), self._class_weight(False))
        box = arguments.boxes_of(self.C, arguments.weights_of(w, n), factors)
        s = storage.copy(storage.without_rows(self._expansion))
        s = storage.keep(s, storage.live_slots(s))
        slot_of = {number: slot for slot, number in enumerate(s.ids[: s.counts[SLOTS]].tolist())}
        new = [i for i, number in enumerate(numbers.tolist()) if number not in slot_of]
        slot_of |= {int(numbers[i]): len(slot_of) + t for t, i in enumerate(new)}
        if new:
            lo, hi = np.where(positive, 0.0, -box)[new], np.where(positive, box, 0.0)[new]
            s = self._beside_members(s, [examples[i] for i in new], lo, hi, numbers[new])
        leave_out = LeaveOut(s, self._kernel, self._problem, self.tol)
        return leave_out, np.array([slot_of[number] for number in numbers.tolist()], np.int64)

    def _beside_members(
        self, s: Expansion, examples: list[Mapping], lo: np.ndarray, hi: np.ndarray, ids: np.ndarray
    ) -> Expansion:
        """Append examples with alpha = 0 to the members.  The box of one that violates is empty."""
        self._problem.note(s)
        b, first = self.bias, int(s.counts[SLOTS])
        top, bottom = max(s.extremes[G_UP], b + self.tol), min(s.extremes[G_DOWN], b - self.tol)
        margins = self._decide_many(examples)
        for rows, q in self._batches(examples, learning=False):
            s = append_block(s, self._kernel, q, len(self._features), lo[rows], hi[rows])
        own = slice(first, int(s.counts[SLOTS]))
        s.ids[own] = ids
        s.g[own] -= margins - b
        violates = np.where(s.y[own] > 0, s.g[own] > top, s.g[own] < bottom)
        s.lo[own][violates] = s.hi[own][violates] = 0.0
        s.up[own], s.down[own] = penalties(s.alpha[own], s.lo[own], s.hi[own])
        return s
