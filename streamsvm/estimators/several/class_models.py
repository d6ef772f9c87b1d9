"""The models of several classes, and how all of them learn the same examples together.

There is one model for each class, or for each pair of classes.  The kernel values of an example with the members of all
models are computed once, in the `online.union` of their vectors.  The models know a vector by its *number*: how many
examples had been learned before it.  The union also keeps the id that the user gave it.

An interruption (Ctrl-C) may find some models ahead of the others.  The rest then first learn what these have learned.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import blocks, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import SLOTS, Expansion
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learner.examples import Examples
from streamsvm.estimators.learner.model import NEVER, n_learned, no_margins
from streamsvm.estimators.several.shared import CommonColumns, LabelledBlock, SeveralModels, to_the_end
from streamsvm.estimators.several.together import Together
from streamsvm.online import arrival, union
from streamsvm.online.rescale import rescale


class _Lesson(NamedTuple):
    """What all models learn together.

    Attributes
    ----------
    part, numbers
        The examples and their numbers.
    replaced
        Numbers of the vectors that the first example replaces; its own is among them if it was learned before.
    W, first
        See `online.union`.
    n_seen
        Number of examples learned before.
    begins_class
        Whether the first example, then the only one, is the first of its class.
    margins
        Margins of the examples that each model has learned, and of the members that a new model has been taught.
    together
        How far the models are if they learn together; empty before they begin.
    """

    part: LabelledBlock
    numbers: np.ndarray
    replaced: np.ndarray
    W: np.ndarray
    first: int
    n_seen: int
    begins_class: bool
    margins: dict[Any, np.ndarray]
    together: list[Together]


class ClassModels(SeveralModels):
    """The models by their keys, the union of their vectors, and the columns they share.

    A key says what a model tells apart: one class from all others, or two classes from each other.  `_blank` is a model
    that learns nothing.  It holds what is the same for all models.
    """

    def __init__(self, model: OnlineSVM) -> None:
        super().__init__(model)
        self._union = union.empty()
        self._evaluator = Evaluator(model.device)
        self._models: dict[Any, Any] = {}
        self._terms: union.Terms | None = None  # What each model makes of kernel values; None: ask the models.

    @property
    @abstractmethod
    def labels(self) -> list[Hashable]:
        """The classes so far."""

    @abstractmethod
    def _start(self, label: Hashable) -> Any:
        """Make the models that another class needs."""

    @abstractmethod
    def _signs(self) -> np.ndarray:
        """The sign of each class for each model, (n_models, n_classes) int8: 1, -1, or 0 if it does not learn them."""

    @abstractmethod
    def _own_classes(self, key: Any) -> tuple:
        """The classes whose examples a model must know, rather than only tell from its own."""

    @abstractmethod
    def _to_teach(self, label: Hashable) -> list[tuple[Any, np.ndarray, np.ndarray, bool]]:
        """What the models of a new class learn of the past.

        For each of these models: its key, the numbers and ages of members of the others, and whether these are
        positive examples to it.
        """

    @cached_property
    def _parameters(self) -> dict[str, Any]:
        """The parameters of each model: to read a signature takes longer than to make a model."""
        return self._blank._get_params()

    def _new_model(self, counts: tuple[int, int]) -> OnlineSVM:
        """A model that begins now; so many examples of either sign went before."""
        model = type(self._blank)(**self._parameters)
        model._features = CommonColumns(self._features)
        model._share_scale(self._blank._scale, self._blank._kernel)
        model._n_seen = model._next_id = self._blank.n_seen
        model._next_look = NEVER
        model._class_counts = counts
        if model._window and self._blank._window:
            model._window.latest = self._blank._window.latest
        return model

    # --------------------------------------------------------------------------------------------------------- a block

    def _rescale_if_due(self) -> RunningScale:
        """Take the running scale into use if it is due, and scale the members of all models anew; the scale."""
        if not self._blank._scale.is_due:
            return self._blank._scale
        models = list(self._models.values())
        n_known = self._blank._scale.n_places
        scale = self._blank._scale.renewed(max((model.n_members for model in models), default=0))
        kernel = scale.adapted(self._blank._kernel)
        vectors = union.rescaled(self._union, scale.state, n_known, kernel)
        expansions = [rescale(model._expansion, scale.state, n_known, kernel, model._problem) for model in models]

        def step() -> None:
            self._union, self._terms = vectors, None
            for model, s in zip(models, expansions, strict=True):
                model.__dict__.update(_scale=scale, _kernel=kernel, _expansion=s)
            self._blank.__dict__.update(_scale=scale, _kernel=kernel)

        to_the_end(step)
        return scale

    def _learn(self, block: LabelledBlock) -> None:
        """Learn a block, in parts whose examples can be learned together."""
        while len(block.labels):
            self._union = union.make_room(self._union, block.q, len(self._features))
            n_fitting = arrival.n_fitting(self._union.vectors, block.q)
            numbers, replaced = self._numbered(block.part(0, self._together(block.labels[:n_fitting])))
            part, block = block.part(0, len(numbers)), block.part(len(numbers), len(block.labels))
            self._learn_part(part, numbers, replaced)

    def _together(self, labels: Sequence[Hashable]) -> int:
        """How many of the next examples to learn together: as many as fit, but the first one of a new class alone."""
        room = min(len(labels), len(self._union.user_ids) - self._union.n_slots)
        known = set(self.labels)
        begins = next((t for t, label in enumerate(labels[:room]) if label not in known), room)
        return max(1, begins)

    def _numbered(self, part: LabelledBlock) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of these examples, and those of the vectors that the first example replaces.

        An example that equals a vector of the union, by id and features, keeps its number.  A model that has this
        vector as a member, with the same label and weight, does not learn it again.  One that does not learn such an
        example forgets the vector.

        There are fewer numbers than examples if an id belongs to another vector, occurs twice, or belongs to a vector
        that a model must forget.  Which vectors that example replaces is only known after the examples before it.
        """
        first = self._blank.n_seen
        numbers = np.arange(first, first + len(part.labels))
        slots = self._slots_of(part.ids) if part.own_ids else {}
        seen: set[int] = set()
        for t, user_id in enumerate(part.ids.tolist() if part.own_ids else ()):
            known = slots.get(user_id, [])
            same = [slot for slot in known if self._is_stored(slot, part, t)]
            others = user_id in seen or len(known) > 1 or len(same) < len(known)
            if t and (others or any(self._is_stray(self._union.numbers[slot], part.labels[t]) for slot in same)):
                numbers = numbers[:t]
                break
            if same:
                numbers[t] = self._union.numbers[same[0]]
            seen.add(user_id)
        lo, hi, _ = self._blank._boxes_of(np.ones(1, bool), part.weights[:1], part.born[:1])
        return numbers, self._union.numbers[slots.get(int(part.ids[0]), []) if lo[0] < hi[0] else []]

    def _is_stray(self, number: int, label: Hashable) -> bool:
        """Whether a vector is a member of a model that does not learn the examples with this label."""
        if label not in self.labels:
            return False
        signs = self._signs()[:, self._places([label])[0]]
        strangers = [model for sign, model in zip(signs, self._models.values(), strict=True) if sign == 0]
        return any(len(model._slots_of(number)) for model in strangers)

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

    def _is_stored(self, slot: int, part: LabelledBlock, t: int) -> bool:
        """Whether the union's vector in a slot has the features of the t-th of these examples."""
        own = slice(part.q.indptr[t], part.q.indptr[t + 1])
        return storage.is_stored(self._union.vectors, slot, part.q.indices[own], part.q.values[own])

    def _learn_part(self, part: LabelledBlock, numbers: np.ndarray, replaced: np.ndarray) -> None:
        """Let all models learn these examples, and the union keep those that a model keeps."""
        U, kernel, first = self._union, self._blank._kernel, self._union.n_slots
        fresh = self._blank.n_seen + np.arange(len(numbers))
        self._terms = None
        try:
            storage.require_room(U.vectors, len(self._features))
            union.add_block(U, kernel, part.q, part.raw, fresh, part.ids, part.weights)
            W = union.kernel_values(U, kernel, part.q, first, self._evaluator)
            begins_class = part.labels[0] not in self.labels
            lesson = _Lesson(part, numbers, replaced, W, first, self._blank.n_seen, begins_class, {}, [])
            to_the_end(partial(self._have_all_learn, lesson))
            self._settle_block(part, first)
        except BaseException:
            self._settle_block(part, first)
            raise

    def _have_all_learn(self, lesson: _Lesson) -> None:
        """Let all models learn a lesson.  A second call goes on where the first was interrupted."""
        part, numbers, margins = lesson.part, lesson.numbers, lesson.margins
        if lesson.begins_class and part.labels[0] not in self.labels:
            self._start(part.labels[0])
        if self._can_learn_together(lesson):
            self._have_learn_together(lesson)
        else:
            signs = self._signs()[:, self._places(part.labels)]
            for (key, model), own in zip(self._models.items(), signs, strict=True):
                self._have_one_learn(key, model, lesson, own)
        if lesson.begins_class:
            self._teach(part.labels[0], int(numbers[0]), margins)
        again = (numbers < lesson.n_seen) & (part.weights > 0.0)
        self._union.weights[self._union.slots_of(numbers[again])] = part.weights[again]
        window, oldest = self._blank._window, int(part.born.min())
        latest = int(window.now(part.born)[-1]) if window else oldest
        n_seen = lesson.n_seen + len(numbers)
        self._blank._note(n_seen, (0, 0), int(part.ids.max()), int(part.growth[-1]), oldest, latest)

    def _can_learn_together(self, lesson: _Lesson) -> bool:
        """Whether no member has to leave before an example: none is too old or one too many, and none is replaced."""
        bounded = self._blank._window is not None or self._blank.budget is not None
        return not bounded and len(lesson.replaced) == 0 and bool((lesson.numbers >= lesson.n_seen).all())

    def _have_learn_together(self, lesson: _Lesson) -> None:
        """Let all models learn the examples of a lesson that they have not learned yet."""
        if not lesson.together:
            of_part = lesson.part, lesson.numbers, self._places(lesson.part.labels)
            of_union = self._union, lesson.W, lesson.first
            lesson.together.append(Together(list(self._models.values()), self._signs(), *of_part, *of_union))
        lesson.together[0].learn(len(self._features))

    def _have_one_learn(self, key: Any, model: OnlineSVM, lesson: _Lesson, signs: np.ndarray) -> None:
        """Let a model learn the examples of a lesson that it has not learned yet.

        The examples with sign 0 do not concern the model.  With a window they do: its clock goes on.
        """
        if len(lesson.replaced):
            model.forget(lesson.replaced[lesson.replaced != lesson.numbers[0]] if signs[0] else lesson.replaced)
        rows = np.arange(len(signs)) if model._window else np.flatnonzero(signs)
        margins = lesson.margins.setdefault(("example", key), no_margins(len(rows)))
        done = n_learned(margins)
        if done == len(rows):
            return
        rows = rows[done:]
        part, signs = lesson.part.rows(rows), signs[rows]
        lo, hi, born = model._boxes_of(signs > 0, np.where(signs, part.weights, 0.0), part.born)
        block = Examples(part.q, lo, hi, lesson.numbers[rows], part.own_ids, born, part.raw)
        values_of = partial(union.values_of, self._union, lesson.W, lesson.first, rows)
        model._learn_queries(block, margins[done:], values_of=values_of)

    def _teach(self, label: Hashable, own: int, margins: dict[Any, np.ndarray]) -> None:
        """Let the models of a new class learn members of the others, except the class's first example."""
        for key, numbers, born, positive in self._to_teach(label):
            others = numbers != own
            taught = margins.setdefault(("members", key), no_margins(int(others.sum())))
            self._teach_members(self._models[key], numbers[others], born[others], positive, taught)

    def _teach_members(
        self, model: OnlineSVM, numbers: np.ndarray, born: np.ndarray, positive: bool, taught: np.ndarray
    ) -> None:
        """Let a model learn members of others as examples of one sign."""
        for b in range(n_learned(taught), len(numbers), blocks.BLOCK):
            chunk = slice(b, b + blocks.BLOCK)
            slots = self._union.slots_of(numbers[chunk])
            lo, hi, ages = model._boxes_of(np.full(len(slots), positive), self._union.weights[slots], born[chunk])
            raw = self._union.raw(slots)
            block = Examples(self._union.queries(slots), lo, hi, numbers[chunk], False, ages, raw)
            model._learn_queries(block, taught[chunk], counts=False)

    # ------------------------------------------------------------------------------------------------------ all models

    def _settle_block(self, part: LabelledBlock, first: int) -> None:
        union.settle_block(self._union, self._blank._kernel, part.q, part.raw, first, self._expansions())

    def _expansions(self) -> list[Expansion]:
        return [model._expansion for model in self._models.values()]

    def _members(self, support: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of all members, or of the support vectors, rising, and their ages."""
        return known_once([(s, s.alpha != 0.0 if support else s.y != 0) for s in self._expansions()])

    def _of_each(self, step: Callable[[Any], Any]) -> None:
        """Take a step with each model, after which members may have left."""
        self._terms = None
        try:
            for model in self._models.values():
                step(model)
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
        models = [(model._expansion, model.bias) for model in self._models.values()]
        return [(s.ids[: s.counts[SLOTS]], s.alpha[: s.counts[SLOTS]], bias) for s, bias in models]

    def _decide(self, q: Queries) -> np.ndarray:
        """f(x) of each query by each model, (B, n_models)."""
        U = self._union
        storage.require_room(U.vectors, len(self._features))
        if self._terms is None:
            self._terms = union.terms_of(U, self._parts())
        W = union.kernel_values(U, self._blank._kernel, q, U.n_slots, self._evaluator)
        out = np.empty((len(self._terms.bias), len(q.sq)))
        union.decide(W, self._terms, out)
        return out.T

    # ---------------------------------------------------------------------------------------------------------- copies

    def __getstate__(self) -> dict:
        """Everything except what lies on a device, and what can be asked of the models again."""
        return {**self.__dict__, "_evaluator": Evaluator(self._blank.device), "_terms": None}


def known_once(kept: list[tuple[Expansion, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of these slots of several expansions, rising, each once, and their ages."""
    numbers = np.concatenate([np.zeros(0, np.int64), *(s.ids[own] for s, own in kept)])
    born = np.concatenate([np.zeros(0, np.int64), *(s.born[own] for s, own in kept)])
    numbers, first = np.unique(numbers, return_index=True)
    return numbers, born[first]
