"""One model for each class, and how all of them learn the same examples together.

The kernel values of an example with the members of all classes are computed once, in the `online.union` of their
vectors.  The classes know a vector by its *number*: how many examples had been learned before it.  The union also keeps
the id that the user gave it.

An interruption (Ctrl-C) may find some classes ahead of the others.  The rest then first learn what these have learned.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import arguments, blocks, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import Expansion
from streamsvm.estimators.inputs.checks import label_of, labels_of
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learner.examples import Examples
from streamsvm.estimators.learner.model import NEVER, n_learned, no_margins
from streamsvm.estimators.several.shared import CommonColumns, LabelledBlock, SeveralModels, to_the_end
from streamsvm.online import arrival, union
from streamsvm.online.rescale import rescale


class _Lesson(NamedTuple):
    """What all classes learn together.

    Attributes
    ----------
    part, numbers
        The examples and their numbers.
    replaced
        Numbers of the vectors that the first example replaces.
    W, first
        See `online.union`.
    n_seen
        Number of examples learned before.
    begins_class
        Whether the first example, then the only one, is the first of its class.
    margins
        Margins of the examples that each class has learned, and of the members that a new class has been taught.
    """

    part: LabelledBlock
    numbers: np.ndarray
    replaced: np.ndarray
    W: np.ndarray
    first: int
    n_seen: int
    begins_class: bool
    margins: dict[Any, np.ndarray]


class ClassModels(SeveralModels):
    """The models of all classes, the union of their vectors, and the columns they share.

    `_blank` is a model that learns nothing.  It holds what is the same for all classes.
    """

    def __init__(self, model: OnlineSVM) -> None:
        super().__init__(model)
        self._union = union.empty()
        self._evaluator = Evaluator(model.device)
        self._models: dict[Hashable, Any] = {}
        self._columns: list[np.ndarray] | None = None  # The union's slots of each model; None: look them up.

    def _start(self, label: Hashable) -> Any:
        """A model for another class."""
        model = self._blank.clone()
        model._features = CommonColumns(self._features)
        model._share_scale(self._blank._scale, self._blank._kernel)
        model._n_seen = model._next_id = self._blank.n_seen
        model._next_look = NEVER
        others = next((sum(other.class_counts) for other in self._models.values()), 0)
        model._class_counts = (others, 0)
        if model._window and self._blank._window:
            model._window.latest = self._blank._window.latest
        self._models[label] = model
        return model

    # --------------------------------------------------------------------------------------------------------- a block

    def _rescale_if_due(self) -> RunningScale:
        """Take the running scale into use if it is due, and scale the members of all classes anew; the scale."""
        if not self._blank._scale.is_due:
            return self._blank._scale
        models = list(self._models.values())
        n_known = self._blank._scale.n_places
        scale = self._blank._scale.renewed(max((model.n_members for model in models), default=0))
        kernel = scale.adapted(self._blank._kernel)
        vectors = union.rescaled(self._union, scale.state, n_known, kernel)
        expansions = [rescale(model._expansion, scale.state, n_known, kernel, model._problem) for model in models]

        def step() -> None:
            self._union, self._columns = vectors, None
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
        begins = next((t for t in range(room) if labels[t] not in self._models), room)
        return max(1, begins)

    def _numbered(self, part: LabelledBlock) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of these examples, and those of the vectors that the first example replaces.

        An example that equals a vector of the union, by id and features, keeps its number.  A class that has this
        vector as a member, with the same label and weight, does not learn it again.

        There are fewer numbers than examples if an id belongs to another vector, or occurs twice.  Which vectors that
        example replaces is only known after the examples before it.
        """
        first = self._blank.n_seen
        numbers = np.arange(first, first + len(part.labels))
        slots = self._slots_of(part.ids) if part.own_ids else {}
        seen: set[int] = set()
        for t, user_id in enumerate(part.ids.tolist() if part.own_ids else ()):
            known = slots.get(user_id, [])
            same = [slot for slot in known if self._is_stored(slot, part, t)]
            if t and (user_id in seen or len(known) > 1 or len(same) < len(known)):
                numbers = numbers[:t]
                break
            if same:
                numbers[t] = self._union.numbers[same[0]]
            seen.add(user_id)
        others = self._union.numbers[slots.get(int(part.ids[0]), [])]
        return numbers, others[others != numbers[0]]

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
        """Let all classes learn these examples, and the union keep those that a class keeps."""
        U, kernel, first = self._union, self._blank._kernel, self._union.n_slots
        fresh = self._blank.n_seen + np.arange(len(numbers))
        self._columns = None
        try:
            storage.require_room(U.vectors, len(self._features))
            union.add_block(U, kernel, part.q, part.raw, fresh, part.ids, part.weights)
            W = union.kernel_values(U, kernel, part.q, first, self._evaluator)
            begins_class = part.labels[0] not in self._models
            lesson = _Lesson(part, numbers, replaced, W, first, self._blank.n_seen, begins_class, {})
            to_the_end(partial(self._have_all_learn, lesson))
            self._settle_block(part, first)
        except BaseException:
            self._settle_block(part, first)
            raise

    def _have_all_learn(self, lesson: _Lesson) -> None:
        """Let all classes learn a lesson.  A second call goes on where the first was interrupted."""
        part, numbers, margins = lesson.part, lesson.numbers, lesson.margins
        if lesson.begins_class and part.labels[0] not in self._models:
            self._start(part.labels[0])
        for label, model in self._models.items():
            own = margins.setdefault(("example", label), no_margins(len(numbers)))
            self._have_one_learn(label, model, lesson, n_learned(own), own)
        if lesson.begins_class:
            self._teach_members(self._models[part.labels[0]], int(numbers[0]), margins)
        again = (numbers < lesson.n_seen) & (part.weights > 0.0)
        self._union.weights[self._union.slots_of(numbers[again])] = part.weights[again]
        window, oldest = self._blank._window, int(part.born.min())
        latest = int(window.now(part.born)[-1]) if window else oldest
        n_seen = lesson.n_seen + len(numbers)
        self._blank._note(n_seen, (0, 0), int(part.ids.max()), int(part.growth[-1]), oldest, latest)

    def _have_one_learn(
        self, label: Hashable, model: OnlineSVM, lesson: _Lesson, done: int, margins: np.ndarray
    ) -> None:
        """Let the model of a class learn the examples of a lesson, after the first `done` ones."""
        part, n = lesson.part.part(done, len(margins)), len(margins)
        if done == n:
            return
        positive = np.array([other == label for other in part.labels])
        lo, hi, born = model._boxes_of(positive, part.weights, part.born)
        if done == 0 and len(lesson.replaced) and lo[0] < hi[0]:
            model.forget(lesson.replaced)
        block = Examples(part.q, lo, hi, lesson.numbers[done:], part.own_ids, born, part.raw)
        values_of = partial(union.values_of, self._union, lesson.W[done:], lesson.first + done)
        model._learn_queries(block, margins[done:], values_of=values_of)

    def _teach_members(self, model: OnlineSVM, own: int, margins: dict[Any, np.ndarray]) -> None:
        """Let the model of a new class learn the other classes' members as negatives, except its own example."""
        numbers, born = self._members()
        numbers, born = numbers[numbers != own], born[numbers != own]
        taught = margins.setdefault("members", no_margins(len(numbers)))
        for b in range(n_learned(taught), len(numbers), blocks.BLOCK):
            chunk = slice(b, b + blocks.BLOCK)
            slots = self._union.slots_of(numbers[chunk])
            negative = np.zeros(len(slots), bool)
            lo, hi, ages = model._boxes_of(negative, self._union.weights[slots], born[chunk])
            raw = self._union.raw(slots)
            block = Examples(self._union.queries(slots), lo, hi, numbers[chunk], False, ages, raw)
            model._learn_queries(block, taught[chunk], counts=False)

    # ----------------------------------------------------------------------------------------------------- all classes

    def _settle_block(self, part: LabelledBlock, first: int) -> None:
        union.settle_block(self._union, self._blank._kernel, part.q, part.raw, first, self._expansions())

    def _expansions(self) -> list[Expansion]:
        return [model._expansion for model in self._models.values()]

    def _members(self, support: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of all members, or of the support vectors, rising, and their ages."""
        kept = [(s, s.alpha != 0.0 if support else s.y != 0) for s in self._expansions()]
        numbers = np.concatenate([np.zeros(0, np.int64), *(s.ids[own] for s, own in kept)])
        born = np.concatenate([np.zeros(0, np.int64), *(s.born[own] for s, own in kept)])
        numbers, first = np.unique(numbers, return_index=True)
        return numbers, born[first]

    def _of_each(self, step: Callable[[Any], Any]) -> None:
        """Take a step with the model of each class, after which members may have left."""
        self._columns = None
        try:
            for model in self._models.values():
                step(model)
            self._settle()
        except BaseException:
            self._settle()
            raise

    def _settle(self) -> None:
        """Let the union keep what a class keeps."""
        union.settle(self._union, self._expansions())

    @property
    def n_members(self) -> int:
        """Number of examples that the model of at least one class stores."""
        return len(self._members()[0])

    def finish(self, tol: float | None = None) -> None:
        """Optimise the model of each class over its members; see `LASVM.finish`."""
        arguments.require_positive("tol", self._blank.tol if tol is None else tol)
        self._of_each(lambda model: model.finish(tol))

    def sparsify(self, ramp_s: float | None = None, tol: float | None = None) -> None:
        """Give up the support vectors of each class that the ramp loss does not need; see `LASVM.sparsify`."""
        self._of_each(lambda model: model.sparsify(ramp_s, tol))

    def forget(self, ids: Any) -> int:
        """Take examples out of the models of all classes exactly, as if they had never kept them; see `LASVM.forget`.

        Parameters
        ----------
        ids
            One id, or several.

        Returns
        -------
        int
            Number of members that left.  An example counts once, however many classes had it.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer.
        """
        slots = self._slots_of(arguments.numbers_of(ids))
        numbers = self._union.numbers[[slot for of_id in slots.values() for slot in of_id]]
        before = self.n_members
        to_the_end(lambda: self._of_each(lambda model: model.forget(numbers)))
        return before - self.n_members

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct the labels of examples that were learned; see `LASVM.relabel`.

        A class whose model has the example under the wrong sign forgets it and learns it again.  The right class learns
        it if its model does not have it.  A new class begins as in `learn_one`.

        Parameters
        ----------
        ids
            One id, or several.
        y
            The right label: one for all ids, or a list or array with one for each.

        Returns
        -------
        int
            How many of the ids belong to members of at least one class.  Learn the other examples again if they matter.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer, or if a label is invalid.  The model then stays as it was.
        """
        numbers = arguments.numbers_of(ids)
        several = isinstance(y, list | np.ndarray) or hasattr(y, "to_list")
        labels = labels_of(y, len(numbers)) if several else [label_of(y)] * len(numbers)
        found = 0
        for user_id, label in zip(numbers.tolist(), labels, strict=True):
            known = self._slots_of(np.array([user_id])).get(user_id, [])
            relabelled = [self._relabel(number, label) for number in self._union.numbers[known].tolist()]
            found += any(relabelled)
        return found

    def _relabel(self, number: int, label: Hashable) -> bool:
        """Give the vector with this number another label, if a class has it: the union may keep it for longer."""
        numbers, born = self._members()
        if number not in numbers:
            return False
        slots = self._union.slots_of(np.array([number]))
        margins: dict[Any, np.ndarray] = {"example": no_margins(1)}
        example = (
            self._union.queries(slots),
            self._union.raw(slots),
            self._union.weights[slots],
            born[numbers == number],
        )
        begins_class = label not in self._models

        def step() -> None:
            model = self._models.get(label) or self._start(label)
            for other in self._models.values():
                other.relabel(number, other is model)
            if not len(model._slots_of(number)) and not n_learned(margins["example"]):
                q, raw, weights, ages = example
                lo, hi, ages = model._boxes_of(np.ones(1, bool), weights, ages)
                block = Examples(q, lo, hi, np.array([number]), False, ages, raw)
                model._learn_queries(block, margins["example"], counts=False)
            if begins_class:
                self._teach_members(model, number, margins)
            self._settle()

        self._columns = None
        to_the_end(step)
        return True

    def _decide(self, q: Queries) -> np.ndarray:
        """f(x) of each query for each class, (B, n_classes)."""
        U = self._union
        storage.require_room(U.vectors, len(self._features))
        if self._columns is None:
            self._columns = [union.columns_of(U, s) for s in self._expansions()]
        W = union.kernel_values(U, self._blank._kernel, q, U.n_slots, self._evaluator)
        out = np.empty((len(self._models), len(q.sq)))
        for k, (model, columns) in enumerate(zip(self._models.values(), self._columns, strict=True)):
            union.decide(W, columns, model._expansion.alpha[: len(columns)], model.bias, out[k])
        return out.T

    # ---------------------------------------------------------------------------------------------------------- copies

    def __getstate__(self) -> dict:
        """Everything except what lies on a device."""
        return {**self.__dict__, "_evaluator": Evaluator(self._blank.device)}
