"""LASVM models with different settings that learn the same examples; `estimators.tuner` decides which there are.

An interruption (Ctrl-C) may find some models ahead of the others.  The rest then first learn what these have learned.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from streamsvm.core import arguments, storage
from streamsvm.core.class_weights import Counts
from streamsvm.core.kernels import Kernel
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learning import Examples
from streamsvm.estimators.model import NEVER, n_learned, no_margins
from streamsvm.estimators.scaling import RunningScale
from streamsvm.estimators.several import CommonColumns, LabelledBlock, SeveralModels, to_the_end
from streamsvm.estimators.tuner import Tuner
from streamsvm.estimators.tuning import CHECK, LARGEST_C, Setting
from streamsvm.online.descend import descendant
from streamsvm.online.rescale import rescale


@dataclass
class _Lesson:
    """What all models learn together.

    Attributes
    ----------
    part
        The examples; none after the first is the first one after a check.
    n_seen
        Number of examples learned before.
    class_counts
        Numbers of examples of the negative and of the positive class learned afterwards.
    margins
        Margins of the examples that each model has learned.
    after
        The tuner and the models afterwards, once all models have learned the examples.
    """

    part: LabelledBlock
    n_seen: int
    class_counts: Counts
    margins: dict[int, np.ndarray] = field(default_factory=dict)
    after: tuple[Tuner, dict[int, LASVM]] | None = None

    @property
    def end(self) -> int:
        """Number of examples learned afterwards."""
        return self.n_seen + len(self.part.labels)


class CandidateModels(SeveralModels):
    """The models by number, and the tuner that asks for them."""

    def __init__(self) -> None:
        super().__init__(self._new(Setting(LARGEST_C, 1.0)))
        self._tuner = Tuner()
        self._kernel_values_before = 0  # of models that were dropped
        self._models = self._models_for(self._tuner, {}, (0, 0, (0, 0)))

    @abstractmethod
    def _new(self, setting: Setting) -> LASVM:
        """A model with the C and the window of this setting that has learned nothing."""

    # ------------------------------------------------------------------------------------------------------- learning

    def _label_of(self, y: Any) -> Hashable:
        return arguments.label_of(y)

    def _labels_of(self, X: Any, y: Any, n: int) -> list[Hashable]:
        return arguments.labels_of(X, y, n).tolist()

    def _learn(self, block: LabelledBlock) -> None:
        """Learn a block, in parts that end at checks."""
        while len(block.labels):
            n = min(len(block.labels), CHECK - self.n_seen % CHECK)
            to_the_end(partial(self._have_all_learn, self._lesson(block.part(0, n))))
            block = block.part(n, len(block.labels))

    def _lesson(self, part: LabelledBlock) -> _Lesson:
        positive = np.array(part.labels, bool)[part.weights > 0.0]
        negatives, positives = self._blank.class_counts
        n = int(np.count_nonzero(positive))
        return _Lesson(part, self.n_seen, (negatives + len(positive) - n, positives + n))

    def _have_all_learn(self, lesson: _Lesson) -> None:
        """Let all models learn a lesson, then judge them.  A second call goes on where the first was interrupted."""
        part = lesson.part
        if lesson.after is None:
            for number, model in self._models.items():
                margins = lesson.margins.setdefault(number, no_margins(len(part.labels)))
                _have_one_learn(model, part, margins)
            lesson.after = self._judged(lesson)
        self._kernel_values_before = self.kernel_evaluations - _kernel_values(lesson.after[1])
        self._tuner, self._models = lesson.after
        self._blank._note(lesson.end, lesson.class_counts, int(part.ids.max()), int(part.growth[-1]), 0, 0)

    def _judged(self, lesson: _Lesson) -> tuple[Tuner, dict[int, LASVM]]:
        """The tuner and the models after a lesson."""
        positive, counts = np.array(lesson.part.labels, bool), lesson.part.weights > 0.0
        tuner = self._tuner.counted({n: ((f > 0.0) != positive) & counts for n, f in lesson.margins.items()})
        if lesson.end % CHECK:
            return tuner, self._models
        tuner = tuner.checked(lesson.end, {number: model.n_members for number, model in self._models.items()})
        next_id = max(self.next_id, lesson.end, int(lesson.part.ids.max()) + 1)
        return tuner, self._models_for(tuner, self._models, (lesson.end, next_id, lesson.class_counts))

    def _models_for(
        self, tuner: Tuner, models: Mapping[int, LASVM], learned: tuple[int, int, Counts]
    ) -> dict[int, LASVM]:
        """The models that a tuner asks for: those that there are, and new ones.

        `learned` has the number of examples, the next id and the numbers of examples by class.
        """
        found = {}
        for number, candidate in tuner.candidates.items():
            if number in models:
                found[number] = models[number]
                continue
            found[number] = model = self._new(candidate.setting)
            model._features = CommonColumns(self._features)
            model._share_scale(self._blank._scale, self._kernel_for(candidate.setting))
            model._n_seen, model._next_id, model._class_counts = learned
            model._next_look = NEVER
            if model._window:
                model._window.latest = learned[0] - 1
            if number == tuner.tuning.number:
                _begin_as(model, models[tuner.champion], learned[0])
        return found

    def _kernel_for(self, setting: Setting) -> Kernel:
        """The kernel of a model with this setting, at the scale in use."""
        return _with_factor(self._blank._kernel, setting)

    def _rescale_if_due(self) -> RunningScale:
        """Take the running scale into use if it is due, and scale the members of all models anew; the scale."""
        if not self._blank._scale.is_due:
            return self._blank._scale
        scale = self._blank._scale.renewed(max(model.n_members for model in self._models.values()))
        unit, n_known = scale.adapted(self._blank._kernel), self._blank._scale.n_places
        new = []
        for number, model in self._models.items():
            kernel = _with_factor(unit, self._tuner.candidates[number].setting)
            new.append((model, kernel, rescale(model._expansion, scale.state, n_known, kernel, model._problem)))

        def step() -> None:
            for model, kernel, s in new:
                model.__dict__.update(_scale=scale, _kernel=kernel, _expansion=s)
            self._blank.__dict__.update(_scale=scale, _kernel=unit)

        to_the_end(step)
        return scale

    def finish(self, tol: float | None = None) -> None:
        """Optimise each model over its members; see `LASVM.finish`."""
        arguments.require_positive("tol", self._blank.tol if tol is None else tol)
        for model in self._models.values():
            model.finish(tol)

    def _of_each(self, step: Callable[[LASVM], Any]) -> None:
        """Take a step, which a second call does not repeat, with each model."""

        def steps() -> None:
            for model in self._models.values():
                step(model)

        to_the_end(steps)

    def forget(self, ids: Any) -> int:
        """Take examples out of all models exactly, as if they had never kept them; see `LASVM.forget`.

        Parameters
        ----------
        ids
            One id, or several.

        Returns
        -------
        int
            Number of members that left.  An example counts once, however many models had it.
        """
        numbers = arguments.numbers_of(ids)
        leaving = [model._expansion.ids[model._slots_of(numbers)] for model in self._models.values()]
        self._of_each(lambda model: model.forget(numbers))
        return len(np.unique(np.concatenate(leaving)))

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct the labels of examples that were learned; see `LASVM.relabel`.

        Parameters
        ----------
        ids
            One id, or several.
        y
            The right label: one for all ids, or one for each.

        Returns
        -------
        int
            How many of the ids belong to members of at least one model.  Learn the other examples again if they matter.
        """
        numbers = arguments.numbers_of(ids)
        known = [model._expansion.ids[model._slots_of(numbers)] for model in self._models.values()]
        arguments.labels_of(None, np.full(len(numbers), y) if np.ndim(y) == 0 else y, len(numbers))
        self._of_each(lambda model: model.relabel(numbers, y))
        return int(np.isin(numbers, np.concatenate(known)).sum())

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values that all models have computed so far, while learning and predicting."""
        return self._kernel_values_before + _kernel_values(self._models)


def _have_one_learn(model: LASVM, part: LabelledBlock, margins: np.ndarray) -> None:
    """Let a model learn the examples that have no margin yet."""
    done, n = n_learned(margins), len(margins)
    if done == n:
        return
    part = part.part(done, n)
    lo, hi, born = model._boxes_of(np.array(part.labels, bool), part.weights, part.born)
    model._learn_queries(Examples(part.q, lo, hi, part.ids, part.own_ids, born, part.raw), margins[done:])


def _begin_as(model: LASVM, parent: LASVM, n_seen: int) -> None:
    """Let a new model begin with those members of another one that are within its window."""
    s = parent._expansion
    slots = storage.live_slots(s)
    if model._window:
        slots = slots[s.born[slots] > n_seen - model._window.span]
    model._expansion = descendant(s, slots, model._kernel, model._problem, model.C / parent.C)


def _with_factor(kernel: Kernel, setting: Setting) -> Kernel:
    """The kernel with a gamma of so many units."""
    return kernel._replace(gamma=kernel.gamma * setting.gamma)


def _kernel_values(models: Mapping[int, LASVM]) -> int:
    return sum(model.kernel_evaluations for model in models.values())
