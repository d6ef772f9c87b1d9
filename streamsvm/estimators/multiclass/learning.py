"""How the models of several classes learn: all of them in one call of compiled code, or one after another.

After an interruption (Ctrl-C), some models may be ahead.  The others then first learn what they have missed.
"""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import blocks, storage
from streamsvm.core.blocks import Queries
from streamsvm.estimators.learner import forgetting, late, learning
from streamsvm.estimators.learner.examples import Examples, LabelledBlock, n_learned, no_margins
from streamsvm.estimators.learner.sharing import to_the_end
from streamsvm.estimators.learner.state import State, note, slots_of
from streamsvm.estimators.multiclass.binary_models import BinaryModels
from streamsvm.estimators.multiclass.joint import JointModels, Lecture
from streamsvm.online import arrival, union

ARRIVING = "arriving"  # the lecture of a lesson's examples
NO_VALUES = np.empty((0, 0), np.float32)


class _Lesson(NamedTuple):
    """What all models learn.

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
    begins
        Which examples are the first of their classes.  If the models do not learn together, only the first may be.
    margins
        Margins of the examples that each model has learned, and of the members that a new model has been taught.
    lectures
        What the models learn together: the examples, and what the models of each class that begins are taught.
    done, places
        The parts of the lectures that all models have learned, and how far they are with each part.
    """

    part: LabelledBlock
    numbers: np.ndarray
    replaced: np.ndarray
    W: np.ndarray
    first: int
    n_seen: int
    begins: list[int]
    margins: dict[Any, np.ndarray]
    lectures: dict[Any, Lecture]
    done: set[Any]
    places: dict[Any, np.ndarray]

    def place_of(self, key: Any) -> np.ndarray:
        """How far the models are with a part of the lesson."""
        return self.places.setdefault(key, np.zeros(2, np.int64))


class JointLearning(BinaryModels):
    """The models of several classes, which learn."""

    def _learn(self, block: LabelledBlock) -> None:
        """Learn a block, in parts whose examples can be learned together."""
        while len(block.labels):
            self._make_room(block.q)
            n_fitting = arrival.n_fitting(self._union.vectors, block.q)
            room = min(n_fitting, len(self._union.user_ids) - self._union.n_slots)
            numbers, replaced = self._numbered(block.part(0, max(1, room)))
            begins = self._begins(block.labels[: len(numbers)])
            together = self._can_learn_together(numbers, replaced)
            if not together:  # the first example of a class alone
                numbers = numbers[: max(1, begins[0]) if begins else None]
            part, block = block.part(0, len(numbers)), block.part(len(numbers), len(block.labels))
            self._learn_part(part, numbers, replaced, [t for t in begins if t < len(numbers)], together)

    def _make_room(self, q: Queries) -> None:
        """Make room in the union for the first of these examples at least."""
        vectors = union.make_room(self._union, q, len(self._features))
        if vectors.n_slots != self._union.n_slots:
            self._learn_apart()  # its slots have moved
        self._union = vectors

    def _begins(self, labels: Sequence[Hashable]) -> list[int]:
        """Which of the next examples are the first of their classes."""
        known = set(self.labels)
        if known.issuperset(labels):
            return []
        first = {label: t for t, label in reversed(list(enumerate(labels)))}
        return sorted(t for label, t in first.items() if label not in known)

    def _numbered(self, part: LabelledBlock) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of these examples, and those of the vectors that the first example replaces.

        An example that equals a vector of the union, by id and features, keeps its number.  A model that has this
        vector as a member, with the same label and weight, does not learn it again.  One that does not learn such an
        example forgets the vector.

        There are fewer numbers than examples if an id belongs to another vector, occurs twice, or belongs to a vector
        that a model must forget.  Which vectors that example replaces is only known after the examples before it.
        """
        first = self._common.n_seen
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
        replaced = slots.get(int(part.ids[0]), [])
        if replaced:
            lo, hi, _ = learning.boxes_of(self._common, np.ones(1, bool), part.weights[:1], part.born[:1])
            replaced = replaced if lo[0] < hi[0] else []
        return numbers, self._union.numbers[replaced]

    def _is_stray(self, number: int, label: Hashable) -> bool:
        """Whether a vector is a member of a model that does not learn the examples with this label."""
        if label not in self.labels:
            return False
        signs = self._signs()[:, self._places([label])[0]]
        strangers = [state for sign, state in zip(signs, self._models.values(), strict=True) if sign == 0]
        return any(len(slots_of(state, number)) for state in strangers)

    def _is_stored(self, slot: int, part: LabelledBlock, t: int) -> bool:
        """Whether the union's vector in a slot has the features of the t-th of these examples."""
        own = slice(part.q.indptr[t], part.q.indptr[t + 1])
        return storage.is_stored(self._union.vectors, slot, part.q.indices[own], part.q.values[own])

    def _learn_part(
        self, part: LabelledBlock, numbers: np.ndarray, replaced: np.ndarray, begins: list[int], together: bool
    ) -> None:
        """Let all models learn these examples, and the union keep those that a model keeps."""
        U, kernel, first = self._union, self._common.kernel, self._union.n_slots
        fresh = self._common.n_seen + np.arange(len(numbers))
        self._terms = None
        try:
            storage.require_room(U.vectors, len(self._features))
            union.add_block(U, kernel, part.q, part.raw, fresh, part.ids, part.weights)
            W = union.kernel_values(U, kernel, part.q, first, self._common.evaluator)
            lesson = _Lesson(part, numbers, replaced, W, first, self._common.n_seen, begins, {}, {}, set(), {})
            to_the_end(partial(self._have_all_learn, lesson, together))
            self._settle_block(part, first)
        except BaseException:
            self._learn_apart()  # what an interruption has left is found anew
            self._settle_block(part, first)
            raise

    def _have_all_learn(self, lesson: _Lesson, together: bool) -> None:
        """Let all models learn a lesson.  A second call goes on where the first was interrupted."""
        part, numbers = lesson.part, lesson.numbers
        if together:
            self._have_learn_together(lesson)
        else:
            self._have_learn_one_by_one(lesson)
        again = (numbers < lesson.n_seen) & (part.weights > 0.0)
        if again.any():
            self._union.weights[self._union.slots_of(numbers[again])] = part.weights[again]
        self._note(lesson, len(numbers))

    def _note(self, lesson: _Lesson, n: int) -> None:
        """Note that the first n examples of a lesson have been learned."""
        if n:
            born = lesson.part.born[:n]
            oldest, latest = int(born.min()), int(born.max())
            largest, n_columns = int(lesson.part.ids[:n].max()), int(lesson.part.growth[n - 1])
            note(self._common, lesson.n_seen + n, (0, 0), largest, n_columns, oldest, latest)

    # ---------------------------------------------------------------------------------------- all models in one call

    def _can_learn_together(self, numbers: np.ndarray, replaced: np.ndarray) -> bool:
        """Whether compiled code can let members leave between two examples: none is one too many, or replaced."""
        if self._common.budget is not None or len(replaced) or (numbers < self._common.n_seen).any():
            return False
        return self._common.window is None or not self._common.window.by_time  # which refuses late examples

    def _have_learn_together(self, lesson: _Lesson) -> None:
        """Let all models learn the examples of a lesson that they have not learned yet."""
        part, learned = lesson.part, 0
        if not lesson.lectures:
            places = {
                label: place for place, label in enumerate([*self.labels, *(part.labels[t] for t in lesson.begins)])
            }
            classes = np.array([places[label] for label in part.labels])
            at, boxes = lesson.first + np.arange(len(classes)), self._common.C * part.weights
            lesson.lectures[ARRIVING] = Lecture(
                part.q, part.raw, lesson.numbers, part.born, lesson.W, boxes, classes, at
            )
        try:
            for t in lesson.begins:
                self._have_learn_until(lesson, learned, t)
                self._begin(lesson, t)
                learned = t + 1
            self._have_learn_until(lesson, learned, len(lesson.numbers))
        except BaseException:
            self._learn_apart()  # the second call finds anew what has been left
            raise

    def _have_learn_until(self, lesson: _Lesson, begin: int, end: int) -> None:
        """Let all models learn the examples from `begin` on, before `end`, of classes that have begun."""
        if begin < end and begin not in lesson.done:
            given, place = lesson.lectures[ARRIVING], lesson.place_of(begin)
            if lesson.part.said:
                given = given._replace(said=late.columns(lesson.part.said, self._current()))
            self._all_jointly().learn(given, place, begin, end, self._union, len(self._features))
            lesson.done.add(begin)

    def _begin(self, lesson: _Lesson, t: int) -> None:
        """Let a class begin with an example: its models learn the example, then they are taught members of others."""
        label, key = lesson.part.labels[t], ("members", t)
        if label not in self.labels:
            self._all_know()
            self._note(lesson, t)  # its models begin with the number of examples before
            self._start(label)
        self._have_learn_until(lesson, t, t + 1)
        if key in lesson.done:
            return
        together, pupils = self._all_jointly(), set(self._pupils(label))
        if pupils and key not in lesson.lectures:
            lesson.lectures[key] = self._past(together, int(lesson.numbers[t]))
        if pupils:
            chosen = np.array([own in pupils for own in self._current()])
            together.teach(lesson.lectures[key], lesson.place_of(key), chosen, self._union, len(self._features))
        lesson.done.add(key)

    def _past(self, together: JointModels, own: int) -> Lecture:
        """The members of all models but the one with this number, as examples of the classes before the newest."""
        U = self._union
        classes, born = together.members(U, len(self.labels) - 1)
        slots = np.flatnonzero((classes >= 0) & (U.numbers != own))
        given = U.numbers[slots], born[slots], NO_VALUES, self._common.C * U.weights[slots], classes[slots], slots
        return Lecture(U.queries(slots), U.raw(slots), *given)

    # ------------------------------------------------------------------------------------------ one model after another

    def _have_learn_one_by_one(self, lesson: _Lesson) -> None:
        """Let each model learn the examples of a lesson that it has not learned yet."""
        label, begins = lesson.part.labels[0], bool(lesson.begins)
        if begins and label not in self.labels:
            self._start(label)
        signs = self._signs()[:, self._places(lesson.part.labels)]
        for (key, state), own in zip(self._models.items(), signs, strict=True):
            self._have_one_learn(key, state, lesson, own)
        if begins:
            self._teach(label, int(lesson.numbers[0]), lesson.margins)

    def _have_one_learn(self, key: Any, state: State, lesson: _Lesson, signs: np.ndarray) -> None:
        """Let a model learn the examples of a lesson that it has not learned yet.

        The examples with sign 0 do not concern the model.  With a window they do: its clock goes on.
        """
        if len(lesson.replaced):
            others = lesson.replaced[lesson.replaced != lesson.numbers[0]]
            forgetting.forget(state, others if signs[0] else lesson.replaced)
        rows = np.arange(len(signs)) if state.window else np.flatnonzero(signs)
        margins = lesson.margins.setdefault(("example", key), no_margins(len(rows)))
        done = n_learned(margins)
        if done == len(rows):
            return
        rows = rows[done:]
        part, signs = lesson.part.rows(rows), signs[rows]
        lo, hi, born = learning.boxes_of(state, signs > 0, np.where(signs, part.weights, 0.0), part.born)
        said = late.columns(part.said, [key]).ravel()
        block = Examples(part.q, lo, hi, lesson.numbers[rows], part.own_ids, born, part.raw, said)
        values_of = partial(union.values_of, self._union, lesson.W, lesson.first, rows)
        learning.learn_queries(state, block, margins[done:], values_of=values_of)

    def _teach(self, label: Hashable, own: int, margins: dict[Any, np.ndarray]) -> None:
        """Let the models of a new class learn members of the others, except the class's first example."""
        for key, numbers, born, positive in self._to_teach(label):
            state, numbers, born = self._models[key], numbers[numbers != own], born[numbers != own]
            taught = margins.setdefault(("members", key), no_margins(len(numbers)))
            for b in range(n_learned(taught), len(numbers), blocks.BLOCK):
                chunk = slice(b, b + blocks.BLOCK)
                slots = self._union.slots_of(numbers[chunk])
                signs, weights = np.full(len(slots), positive), self._union.weights[slots]
                lo, hi, ages = learning.boxes_of(state, signs, weights, born[chunk])
                q, raw = self._union.queries(slots), self._union.raw(slots)
                block = Examples(q, lo, hi, numbers[chunk], False, ages, raw)
                learning.learn_queries(state, block, taught[chunk], counts=False)
