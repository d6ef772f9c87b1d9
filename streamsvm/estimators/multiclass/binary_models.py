"""The models of several classes, and the union of their vectors; `learning` has how they learn.

There is one model for each class, or for each pair of classes.  The kernel values of an example with the members of all
models are computed once, in the `online.union` of their vectors.  The models know a vector by its *number*: how many
examples had been learned before it.  The union also keeps the id that the user gave it.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from streamsvm.core import storage
from streamsvm.core.blocks import Queries
from streamsvm.core.expansion import SLOTS, Expansion
from streamsvm.estimators.learner.advice import warn_of_lost_digits
from streamsvm.estimators.learner.composite import CompositeModel
from streamsvm.estimators.learner.examples import LabelledBlock
from streamsvm.estimators.learner.sharing import begin_beside, use_scales
from streamsvm.estimators.learner.state import State, rescaled
from streamsvm.estimators.multiclass.joint import JointModels
from streamsvm.online import union


class BinaryModels(CompositeModel):
    """The models by their keys, the union of their vectors, and the columns they share.

    A key says what a model tells apart: one class from all others, or two classes from each other.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(self._common_of(model))
        self.model = model
        self._union = union.empty()
        self._made: dict[Any, State] = {}
        self._joint: JointModels | None = None
        self._terms: union.Terms | None = None  # What each model makes of kernel values; None: ask the models.
        self._told_of_lost_digits = False

    def _common_of(self, model: Any) -> State:
        """The state of a model that learns nothing, for what is the same for all models."""
        state: State = model.clone()._state
        return state

    @property
    @abstractmethod
    def labels(self) -> list[Hashable]:
        """The classes so far."""

    @abstractmethod
    def _start(self, label: Hashable) -> None:
        """Make the models that another class needs."""

    @abstractmethod
    def _signs(self) -> np.ndarray:
        """The sign of each class for each model, (n_models, n_classes) int8: 1, -1, or 0 if it does not learn them."""

    @abstractmethod
    def _own_classes(self, key: Any) -> tuple:
        """The classes whose examples a model must know, rather than only tell from its own."""

    @abstractmethod
    def _pupils(self, label: Hashable) -> list:
        """The keys of the models of a new class that learn members of the others."""

    @abstractmethod
    def _to_teach(self, label: Hashable) -> list[tuple[Any, np.ndarray, np.ndarray, bool]]:
        """What the models of a new class learn of the past.

        For each of these models: its key, the numbers and ages of members of the others, and whether these are
        positive examples to it.
        """

    # ------------------------------------------------------------------------------------------------------ the models

    @property
    def _models(self) -> dict[Any, Any]:
        """The models, which know all examples.  They may be changed: the next examples find them as they are then."""
        self._learn_apart()
        return self._current()

    @_models.setter
    def _models(self, models: dict[Any, Any]) -> None:
        self._joint = None
        self._take(models)

    def _current(self) -> dict[Any, State]:
        """The models.  They may not know yet how many examples they have learned, and must not be changed."""
        return self._made

    def _predicting(self) -> Iterable[State]:
        """The states that predict, one for each model."""
        return self._current().values()

    def _take(self, models: dict[Any, State]) -> None:
        """Let these be the models."""
        self._made = models

    def _binary(self, key: Any) -> Any:
        """The model with this key, as a learner of its own that shares its state."""
        return self.model._over(self._models[key])

    def _new_model(self, counts: tuple[int, int]) -> State:
        """A model that begins now; so many examples of either sign went before."""
        common, n_seen = self._common, self.n_seen
        return begin_beside(self.model._untaught(), common, common.kernel, n_seen, n_seen, counts)

    def _all_jointly(self) -> JointModels:
        """All models as they learn together."""
        if self._joint is None or self._joint.signs.shape[1] != len(self.labels):
            models = list(self._current().values())
            self._joint = JointModels(models, self._signs(), self._union, self._joint)
        return self._joint

    def _learn_apart(self) -> None:
        """End what the models learn together; the next lesson finds anew where their arrays are."""
        self._all_know()
        self._joint = None

    def _all_know(self) -> None:
        """Let the models know how many examples they have learned."""
        if self._joint is not None:
            self._joint.note()

    def _look(self) -> None:
        if not self._told_of_lost_digits:
            size = max((float(np.linalg.norm(alpha)) for _, alpha, _ in self._parts()), default=0.0)
            self._told_of_lost_digits = warn_of_lost_digits(self._union.vectors, self._common.kernel, size)

    def _rescaling(self) -> Callable[[], None]:
        common, states = self._common, list(self._models.values())
        scale = common.scale.renewed(max((state.n_members for state in states), default=0), self._union.vectors)
        kernel, vectors = scale.adapted(common.kernel), self._union
        if kernel != common.kernel or not scale.sees_like(common.scale):
            vectors = union.rescaled(vectors, scale.state, common.scale.n_places, kernel)
        new = [(state, scale, kernel, rescaled(state, scale, kernel)) for state in states]
        new.append((common, scale, kernel, common.expansion))

        def step() -> None:
            self._union, self._terms = vectors, None
            use_scales(new)

        return step

    def _places(self, labels: Sequence[Hashable]) -> np.ndarray:
        """The place of each label in `labels`."""
        place_of = {label: place for place, label in enumerate(self.labels)}
        return np.array([place_of[label] for label in labels])

    def _slots_of(self, ids: np.ndarray) -> dict[int, list[int]]:
        """The union's slots of the examples that the user knows by these ids."""
        live, user_ids = self._union.live_slots(), self._union.user_ids
        slots: dict[int, list[int]] = {}
        for slot in live[np.isin(user_ids[live], ids)].tolist():
            slots.setdefault(int(user_ids[slot]), []).append(slot)
        return slots

    def _numbers_of(self, ids: np.ndarray) -> np.ndarray:
        return self._union.numbers[[slot for of_id in self._slots_of(ids).values() for slot in of_id]]

    # ------------------------------------------------------------------------------------------------------ all models

    def _settle_block(self, part: LabelledBlock, first: int) -> None:
        U, joint = self._union, self._joint
        used = union.used_by(U, self._expansions()) if joint is None else joint.used(U)
        union.settle_block(U, self._common.kernel, part.q, part.raw, first, used)
        if joint is not None:
            joint.moved(first, used)

    def _expansions(self) -> list[Expansion]:
        return [state.expansion for state in self._predicting()]

    def _members(self, support: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of all members, or of the support vectors, rising, and their ages."""
        return known_once([(s, s.alpha != 0.0 if support else s.y != 0) for s in self._expansions()])

    def _all_states(self) -> Collection[State]:
        return self._models.values()

    def _of_each(self, step: Callable[[State], Any]) -> None:
        self._terms = None
        try:
            super()._of_each(step)
            self._settle()
        except BaseException:
            self._settle()
            raise

    def _settle(self) -> None:
        """Let the union keep what a model keeps."""
        union.settle(self._union, self._expansions())

    @property
    def n_members(self) -> int:
        """Number of examples that at least one model stores."""
        return len(self._members()[0])

    def _parts(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """The numbers of the members, their coefficients and the constant, of each model."""
        states = [(state.expansion, state.bias) for state in self._predicting()]
        return [(s.ids[: s.counts[SLOTS]], s.alpha[: s.counts[SLOTS]], bias) for s, bias in states]

    def _decide(self, q: Queries) -> np.ndarray:
        """f(x) of each query by each model, (B, n_models)."""
        U = self._union
        storage.require_room(U.vectors, len(self._features))
        if self._terms is None:
            self._terms = union.terms_of(U, self._parts())
        W = union.kernel_values(U, self._common.kernel, q, U.n_slots, self._common.evaluator)
        out = np.empty((len(q.sq), len(self._terms.bias)))
        union.decide(W, self._terms, out)
        return out

    # ---------------------------------------------------------------------------------------------------------- copies

    def __getstate__(self) -> dict:
        """Everything except what can be asked of the models again."""
        self._all_know()
        return {**self.__dict__, "_terms": None, "_joint": None}


def known_once(kept: list[tuple[Expansion, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of these slots of several expansions, rising, each once, and their ages."""
    numbers = np.concatenate([np.zeros(0, np.int64), *(s.ids[own] for s, own in kept)])
    born = np.concatenate([np.zeros(0, np.int64), *(s.born[own] for s, own in kept)])
    numbers, first = np.unique(numbers, return_index=True)
    return numbers, born[first]
