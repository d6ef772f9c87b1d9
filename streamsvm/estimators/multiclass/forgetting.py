"""What is done to all models after learning: optimise, forget examples, correct labels."""

import copy
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from streamsvm.active.choosing.decisions import leads_of
from streamsvm.core import arguments
from streamsvm.core.rounding import DUST
from streamsvm.core.storage import live_slots
from streamsvm.estimators.inputs.checks import labels_for
from streamsvm.estimators.learner import finishing, learning
from streamsvm.estimators.learner.examples import Examples, n_learned, no_margins
from streamsvm.estimators.learner.forgetting import forget, leave_out, relabel
from streamsvm.estimators.learner.sharing import to_the_end
from streamsvm.estimators.learner.state import State, slots_of
from streamsvm.estimators.multiclass.learning import JointLearning
from streamsvm.validation.streaming.held_out_margins import LeftOut, Part


class ForgettingModels(JointLearning):
    """The models of several classes, which can be optimised and corrected."""

    @abstractmethod
    def _values(self, margins: np.ndarray) -> np.ndarray:
        """A decision value for each class, (B, n_classes), from f(x) by each model, (B, n_models)."""

    @abstractmethod
    def _best(self, margins: np.ndarray) -> np.ndarray:
        """The places in `labels` of the predicted classes, (B,)."""

    def sparsify(self, ramp_s: float | None = None, tol: float | None = None) -> None:
        """Give up the support vectors of each model that the ramp loss does not need; see `LASVM.sparsify`."""
        ramp = self.model._ramp_of(ramp_s, tol)
        self._of_each(lambda state: finishing.sparsify(state, *ramp))

    def _without_reservoir(self) -> Self:
        """A copy: these models have no reservoirs; see `OnlineSVM._without_reservoir`."""
        return copy.copy(self)

    def leave_out(self, examples: Sequence[Mapping], y: Any, w: Any = None, ids: Any = None) -> LeftOut:
        """Prepare to predict learned examples by the models without them; `validation.streaming` uses it.

        Parameters
        ----------
        examples
            Features by name.
        y, w, ids
            As for `learn_many`; the labels are known ones.  An id that a member has stands for that member.
        """
        n = len(examples)
        numbers, weights, places = arguments.ids_of(ids, n), arguments.weights_of(w, n), self._places(list(y))
        self._settle()
        signs_of = self._signs()[:, places]
        parts = [
            self._part(state, signs, examples, numbers, weights)
            for state, signs in zip(self._models.values(), signs_of, strict=True)
        ]
        return LeftOut(parts, numbers, places, self._leads)

    def _part(
        self, state: State, signs: np.ndarray, examples: Sequence[Mapping], ids: np.ndarray, weights: np.ndarray
    ) -> Part:
        """A copy of a model with examples beside its members; it knows vectors by their numbers."""
        members = state.expansion.ids[live_slots(state.expansion)]
        number_of = dict(zip(self._ids_of(members).tolist(), members.tolist(), strict=True))
        first = self._common.n_seen
        numbers = np.array([number_of.get(user_id, first + i) for i, user_id in enumerate(ids.tolist())], np.int64)
        left_out, slots = leave_out(state, examples, signs > 0, np.where(signs, weights, 0.0), numbers)
        slot_of_number = {number: slot for slot, number in enumerate(left_out.ids.tolist())}
        slot_of = {user_id: slot_of_number[number] for user_id, number in number_of.items()}
        slot_of |= dict(zip(ids.tolist(), slots.tolist(), strict=True))
        return Part(left_out, slots, slot_of, signs)

    def _ids_of(self, numbers: np.ndarray) -> np.ndarray:
        """The ids that the user knows the vectors with these numbers by."""
        return self._union.user_ids[self._union.slots_of(numbers)]

    def _leads(self, margins: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Half the lead of each example's class over the best other one; above 0 where the class is predicted."""
        leads = leads_of(places, self._values(margins))
        is_right = self._best(margins) == places  # which the values alone do not tell
        return np.where(is_right, np.maximum(leads, DUST), np.minimum(leads, -DUST))

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct the labels of examples that were learned; see `LASVM.relabel`.

        A model that has the example under the wrong sign forgets it and learns it again.  The models of the right class
        learn it if they do not have it.  A new class begins as in `learn_one`.

        Parameters
        ----------
        ids
            One id, or several.
        y
            The right label: one for all ids, or a list or array with one for each.

        Returns
        -------
        int
            How many of the ids belong to members of at least one model.  Learn the other examples again if they matter.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer, or if a label is invalid.  The model then stays as it was.
        """
        found = 0
        for user_id, label in labels_for(ids, y):
            relabelled = [self._relabel(n, label) for n in self._numbers_of(np.array([user_id])).tolist()]
            found += any(relabelled)
        return found

    def _relabel(self, number: int, label: Hashable) -> bool:
        """Give the example with this number another label, if a model has it."""
        example, begins_class, margins = self._example_of(number), label not in self.labels, dict[Any, Any]()
        if example is None:
            return False

        def step() -> None:
            if label not in self.labels:
                self._start(label)
            self._correct(number, label, example, margins)
            if begins_class:
                self._teach(label, number, margins)
            self._settle()

        self._terms = None
        to_the_end(step)
        return True

    def _example_of(self, number: int) -> Any:
        """What `_correct` needs of a member; None if no model has it."""
        numbers, born = self._members()
        if number not in numbers:
            return None
        slots = self._union.slots_of(np.array([number]))
        return self._union.queries(slots), self._union.raw(slots), self._union.weights[slots], born[numbers == number]

    def _correct(self, number: int, label: Hashable, example: Any, margins: dict[Any, Any]) -> None:
        """Give an example another label in all models."""
        one, (q, raw, weights, born) = np.array([number]), example
        signs = self._signs()[:, self._places([label])[0]]
        for (key, state), sign in zip(self._models.items(), signs.tolist(), strict=True):
            if sign == 0:
                forget(state, one)
                continue
            relabel(state, one, np.array([sign > 0]))
            margin = margins.setdefault(("example", key), no_margins(1))
            if label in self._own_classes(key) and not len(slots_of(state, one)) and not n_learned(margin):
                lo, hi, ages = learning.boxes_of(state, np.array([sign > 0]), weights, born)
                learning.learn_queries(state, Examples(q, lo, hi, one, False, ages, raw), margin, counts=False)
