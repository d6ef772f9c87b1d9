"""An `AutoLASVM` for each class, and how all of them learn the same examples.

The classes share the columns and the scale, and no kernel values: their models have different kernels.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

import numpy as np

from streamsvm.core import storage
from streamsvm.core.blocks import Queries
from streamsvm.core.saving import snapshot
from streamsvm.core.scaling.state import RawRows
from streamsvm.estimators.learner.copies import Content
from streamsvm.estimators.learner.examples import LabelledBlock, joined_blocks
from streamsvm.estimators.learner.sharing import to_the_end, use_scales
from streamsvm.estimators.learner.snapshots import by_prefix, restore_counts
from streamsvm.estimators.learner.state import State, class_weight, in_room, note, slots_of
from streamsvm.estimators.multiclass.binary_models import BinaryModels
from streamsvm.estimators.tuned.auto import AutoLASVM
from streamsvm.estimators.tuned.said import Said
from streamsvm.estimators.tuned.tuning import Promotion, Setting


class TunedClasses(BinaryModels):
    """The models of all classes."""

    model: AutoLASVM

    @property
    def champions_(self) -> dict[Hashable, Setting]:
        """The champion's setting of each class; see `AutoLASVM.champion_`."""
        return {label: model.champion_ for label, model in self._models.items()}

    @property
    def histories_(self) -> dict[Hashable, list[Promotion]]:
        """What became champion of each class, and when; see `AutoLASVM.history_`."""
        return {label: model.history_ for label, model in self._models.items()}

    @property
    def class_counts(self) -> dict[Hashable, int]:
        """Number of examples of each class learned so far."""
        return {label: model._common.class_counts[1] for label, model in self._models.items()}

    def _common_of(self, model: AutoLASVM) -> State:
        return model.clone()._common

    def _binary(self, key: Any) -> AutoLASVM:
        return self._models[key]

    def _start(self, label: Hashable) -> None:
        others = next((sum(other._common.class_counts) for other in self._models.values()), 0)
        self._models[label] = model = self.model.clone()
        model._join(self._common, (others, 0))

    # ------------------------------------------------------------------------------------------------------- learning

    def _learn_example(
        self, raw: RawRows, label: Hashable, w: float, number: int, own_id: bool, born: int, said: list
    ) -> None:
        """Learn one example: with the models that predict at once, with the others later; see `tuned.waiting`."""
        self._rescale_if_due()
        scale, n_seen, n_columns = self._common.scale, self.n_seen + 1, len(self._features)
        scale.fit_room(self._features)
        still, (filled, after) = scale.still(), scale.ahead(raw, np.array([w > 0.0]))
        waiting = [model._waiting_for(filled, k == label, w, number, born) for k, model in self._models.items()]
        if own_id or said or label not in self._models or None in waiting:
            super()._learn_example(raw, label, w, number, own_id, born, said)
            return

        def step() -> None:
            for model, example in zip(self._models.values(), waiting, strict=True):
                if example:
                    model._take(example, still)
            note(self._common, n_seen, (0, 0), number, n_columns, 0, 0)
            scale.state = after

        to_the_end(step)
        self._rescale_if_due()

    def _learn(self, block: LabelledBlock) -> None:
        """Learn a block, the first example of a new class alone."""
        while len(block.labels):
            new = [t for t, label in enumerate(block.labels) if label not in self._models]
            n = max(1, new[0]) if new else len(block.labels)
            part, block = block.part(0, n), block.part(n, len(block.labels))
            to_the_end(partial(self._have_classes_learn, part, self.n_seen, part.labels[0] not in self._models, {}))

    def _have_classes_learn(self, part: LabelledBlock, n_seen: int, begins_class: bool, margins: dict) -> None:
        """Let all classes learn a part of a block, before which so many examples had been learned.

        A second call goes on where the first was interrupted.
        """
        if begins_class and part.labels[0] not in self._models:
            self._start(part.labels[0])
        n = len(part.labels)
        for label, model in self._models.items():
            rest = part.part(model.n_seen - n_seen, n)
            said = [Said(one[label]) if one and label in one else None for one in rest.said]
            model._learn(rest._replace(labels=[other == label for other in rest.labels], said=said))
        if begins_class:
            self._teach(part.labels[0], int(part.ids[0]), margins)
        note(self._common, n_seen + n, (0, 0), int(part.ids.max()), int(part.growth[-1]), 0, 0)

    def _teach(self, label: Hashable, own: int, margins: dict[Any, Any]) -> None:
        """Let the model of a new class learn the members of the others as negatives, except its first example."""
        if "members" not in margins:
            numbers, _ = self._members()
            margins["members"] = self._stored(numbers[numbers != own], False)
        if margins["members"]:
            self._models[label]._teach(margins["members"], margins)

    def _stored(self, numbers: np.ndarray, positive: bool) -> LabelledBlock | None:
        """The members with these ids as examples with this label, each as the first model knows it; None for no id."""
        parts, left = [], numbers
        for state in self._known_states():
            slots = slots_of(state, left)
            if len(slots):
                parts.append(_examples_of(state, slots, positive, len(self._features)))
                left = left[~np.isin(left, parts[-1].ids)]
        return joined_blocks(parts) if parts else None

    def _look(self) -> None:
        """Do nothing: its models scale, and so have their digits."""

    def _rescaling(self) -> Callable[[], None]:
        for model in self._models.values():
            model._catch_up()
        common = self._common
        scale = common.scale.renewed(max((model._most_members for model in self._models.values()), default=0))
        unit = scale.adapted(common.kernel)
        new = [(common, scale, unit, common.expansion)]
        for model in self._models.values():
            new += model._rescaled(scale, unit)
        return partial(use_scales, new)

    # ----------------------------------------------------------------------------------------------------- all classes

    def _predicting(self) -> list[State]:
        return [model._state for model in self._models.values()]

    def _all_states(self) -> list[State]:
        self._settle()
        return self._known_states()

    def _known_states(self) -> list[State]:
        """The models of all classes, in each class the one that predicts first."""
        found = []
        for model in self._models.values():
            predicting = model._state
            found += [predicting, *(state for state in model._models.values() if state is not predicting)]
        return found

    def _settle(self) -> None:
        """Let all models know all examples, and do what an interruption may have left undone."""
        self._features.settle()
        self._rescale_if_due()
        for model in self._models.values():
            model._settle()

    def _ids_of(self, numbers: np.ndarray) -> np.ndarray:
        return numbers

    def _numbers_of(self, ids: np.ndarray) -> np.ndarray:
        return ids

    def sparsify(self, ramp_s: float | None = None, tol: float | None = None) -> None:
        """Raise a TypeError: an `AutoLASVM` has no `sparsify`."""
        raise TypeError("AutoLASVM has no sparsify; use LASVM, LASVMG, LASVMNC, LASVMI or FullSVM")

    def _example_of(self, number: int) -> LabelledBlock | None:
        self._settle()
        return self._stored(np.array([number]), True)

    def _correct(self, number: int, label: Hashable, example: LabelledBlock, margins: dict[Any, Any]) -> None:
        for other, model in self._models.items():
            model.relabel(number, other == label)
        self._models[label]._teach(example, margins.setdefault("example", {}))

    def _decide(self, q: Queries) -> np.ndarray:
        """f(x) of each query for each class, (B, n_classes)."""
        out = np.empty((len(self._models), len(q.sq)))
        for f, own in zip(out, self._predicting(), strict=True):
            f[:] = own.evaluator.decide(in_room(own), own.kernel, q, own.bias)
        return out.T

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values that all models have computed so far, while learning and predicting."""
        return sum(model.kernel_evaluations for model in self._models.values())

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _states(self) -> Content:
        """What the models of all classes have learned."""
        self._settle()
        states, arrays = [], dict[str, np.ndarray]()
        for k, model in enumerate(self._models.values()):
            state, own = model._states()
            states.append(state | {"class_counts": list(model._common.class_counts)})
            arrays |= {f"{k}.{name}": array for name, array in own.items()}
        return {"states": states}, arrays

    def _restore_models(self, states: Mapping[Hashable, Any], parts: Mapping[str, dict[str, np.ndarray]]) -> None:
        counted = {"n_seen": self.n_seen, "next_id": self.next_id}
        for k, (label, state) in enumerate(states.items()):
            self._models[label] = model = self.model.clone()
            restore_counts(model._common, counted | {"class_counts": snapshot.field(state, "class_counts", list)})
            model._join(self._common, model._common.class_counts)
            model._restore_states(state, by_prefix(parts.get(str(k), {})))

    def _learned_content(self) -> Content:
        self._settle()
        meta = {
            "labels": [repr(label) for label in self._models],
            "n_seen": self.n_seen,
            "next_id": self.next_id,
            "digests": [model.digest() for model in self._models.values()],
        }
        return meta, {}


def _examples_of(state: State, slots: np.ndarray, positive: bool, n_features: int) -> LabelledBlock:
    """Members as examples with this label; their weights follow from their boxes and their classes' weights."""
    s = state.expansion
    rows = storage.rows_of(s, slots, n_features)
    q = Queries(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, s.sq[slots])
    factors = np.where(s.y[slots] > 0, class_weight(state, True), class_weight(state, False))
    weights = (s.hi[slots] - s.lo[slots]) / (state.C * factors)
    labels: list[Hashable] = [positive] * len(slots)
    of_user = (labels, weights, s.ids[slots], True, s.born[slots], np.full(len(slots), n_features))
    return LabelledBlock(q, *of_user, storage.raw_rows_of(s, slots))
