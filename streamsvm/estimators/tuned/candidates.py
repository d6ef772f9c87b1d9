"""LASVM models with different settings that learn the same examples; `tuner` decides which settings.

After an interruption (Ctrl-C), some models may be ahead.  The others then first learn what they have missed.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from streamsvm.core import arguments, storage
from streamsvm.core.blocks import BLOCK
from streamsvm.core.class_weights import Counts
from streamsvm.core.expansion import Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.scaling.state import RawRows, Scaling
from streamsvm.estimators.inputs.checks import n_rows
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner import eviction, forgetting, learning
from streamsvm.estimators.learner.composite import CompositeModel
from streamsvm.estimators.learner.examples import Examples, LabelledBlock, n_learned, no_margins
from streamsvm.estimators.learner.prediction import decide, decide_one
from streamsvm.estimators.learner.sharing import begin_beside, to_the_end, use_scales
from streamsvm.estimators.learner.state import State, class_weight, note, rescaled
from streamsvm.estimators.tuned.said import Said, rows_of
from streamsvm.estimators.tuned.tuner import Tuner, candidates_with
from streamsvm.estimators.tuned.tuning import CHECK, LARGEST_C, LIMITED_STARTS, STARTS, Setting
from streamsvm.estimators.tuned.waiting import Waiting, block_of
from streamsvm.estimators.tuned.weights import learned_scale
from streamsvm.online.arrival import NOTHING_SAID
from streamsvm.online.outputs.calibration import CUT
from streamsvm.online.rescale import features_anew
from streamsvm.online.warm_start import descendant


@dataclass(eq=False)
class _Lesson:
    """A block of examples that all models learn, at most up to the next check.

    Attributes
    ----------
    block
        The examples.
    n_seen, next_id
        Number of examples and next id afterwards.
    class_counts
        Numbers of examples of the negative and of the positive class afterwards.
    margins
        Margins of the examples that each model has learned.
    after
        The tuner and the models afterwards, once all models have learned the examples.
    """

    block: LabelledBlock
    n_seen: int
    next_id: int
    class_counts: Counts
    margins: dict[int, np.ndarray] = field(default_factory=dict)
    after: tuple[Tuner, dict[int, State]] | None = None

    @property
    def positive(self) -> np.ndarray:
        """Whether each example is of the positive class."""
        return np.array(self.block.labels, bool)


class CandidateModels(CompositeModel):
    """The models by number, and the tuner that asks for them."""

    def __init__(self, scale_memory: int, judges_evenly: bool) -> None:
        model = self._new(Setting(LARGEST_C, 1.0))
        super().__init__(model._state)
        self._common.scale = RunningScale(model.kernel, model.gamma, model.scaling, scale_memory)
        self._judges_evenly = judges_evenly
        self._may_weigh = True
        self._tuner = Tuner(candidates_with(STARTS if model.budget is None else LIMITED_STARTS))
        self._kernel_values_before = 0  # of models that were dropped
        self._waiting: list[Waiting] = []
        self._models = self._models_for(self._tuner, {}, (0, 0, (0, 0)))

    @abstractmethod
    def _new(self, setting: Setting) -> LASVM:
        """A model with the C and the window of this setting that has learned nothing."""

    # ------------------------------------------------------------------------------------------------------- learning

    def _label_of(self, y: Any) -> Hashable:
        return arguments.label_of(y)

    def _said_of(self, margin: Any) -> Said:
        return Said.of(margin)

    def _learn(self, block: LabelledBlock) -> None:
        """Learn a block, in parts that end at checks."""
        self._catch_up()
        while len(block.labels):
            n = min(len(block.labels), CHECK - self.n_seen % CHECK)
            part, block = block.part(0, n), block.part(n, len(block.labels))
            n_seen, weighty = self.n_seen + n, part.weights > 0.0
            next_id = max(self.next_id, n_seen, int(part.ids.max()) + 1)
            counts = self._counts_with(np.array(part.labels, bool), weighty)
            to_the_end(partial(self._have_all_learn, _Lesson(part, n_seen, next_id, counts)))

    def _learn_example(
        self, raw: RawRows, label: Hashable, w: float, number: int, own_id: bool, born: int, said: list
    ) -> None:
        """Learn one example: the model that predicts at once, the others at the next check, many together."""
        self._rescale_if_due()
        scale = self._common.scale
        scale.fit_room(self._features)
        state, after, filled = scale.state, None, raw
        if raw.gaps and (raw.marks.any() or scale.has_gaps(raw.columns, 1)):
            # The scale takes in what was given, and the models what is filled in.
            state, (filled, after) = scale.still(), scale.ahead(raw, np.array([w > 0.0]))
        waiting = None if own_id or said else self._waiting_for(filled, bool(label), w, number, born)
        if waiting is None:
            super()._learn_example(raw, label, w, number, own_id, born, said)
            return

        def step() -> None:
            self._take(waiting, state)
            scale.state = after or scale.state

        to_the_end(step)
        self._rescale_if_due()

    def _waiting_for(self, raw: RawRows, positive: bool, w: float, number: int, born: int) -> Waiting | None:
        """An example that the model which predicts can learn at once; None if a member may have to leave first."""
        state = self._models[self._tuner.predicting]
        box = arguments.box_of(state.C, w, class_weight(state, positive, arriving=True))
        if eviction.is_due(state, born) or (w > 0.0 and box == 0.0):
            return None
        counts = self._counts_with(np.array([positive]), np.array([w > 0.0]))
        afterwards = len(self._features), self.n_seen + 1, counts
        return Waiting(raw, positive, w, number, born, state, box, *afterwards, no_margins(2))

    def _take(self, waiting: Waiting, scale: Scaling) -> None:
        """Learn an example with the model that predicts; at a check, with the others too.

        A second call goes on where the first was interrupted.
        """
        waiting.learn(scale)
        if self.n_seen < waiting.n_seen:
            if waiting not in self._waiting[-1:]:
                self._waiting.append(waiting)
            note(self._common, waiting.n_seen, waiting.class_counts, waiting.number, waiting.n_columns, 0, 0)
        if self.n_seen % CHECK == 0:
            self._catch_up()

    def _counts_with(self, positive: np.ndarray, weighty: np.ndarray) -> Counts:
        """Numbers of examples of both classes with these examples, of which those with a weight count."""
        (negatives, positives), n_positive = self._common.class_counts, int(np.count_nonzero(weighty & positive))
        return negatives + int(np.count_nonzero(weighty)) - n_positive, positives + n_positive

    # ------------------------------------------------------------------------------------------------------ late labels

    def margins_one(self, x: dict) -> tuple[float, ...]:
        """What all models say of an example whose label will come late: keep it, and give it to `learn_one`.

        With it, the models are judged by what they said before the example was learned.  By then they have learned its
        neighbours, and those that remember them best would seem to be the best.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        tuple of float
            The decision value, how many examples have been learned, then the number and the decision value of each
            model.

        Examples
        --------
        >>> from streamsvm import AutoLASVM
        >>> model = AutoLASVM()
        >>> said = model.margins_one({"a": 1.0})
        >>> model.learn_one({"a": 1.0}, True, margin=said)  # when the label has come
        """
        self._settle()
        values = {n: decide_one(s, x) if s.n_members else 0.0 for n, s in self._models.items()}
        pairs = (float(number) for pair in values.items() for number in pair)
        return (values[self._tuner.predicting], float(self.n_seen), *pairs)

    def margins_many(self, X: Any) -> np.ndarray:
        """What `margins_one` returns for each row, as a row of an array, for `learn_many`."""
        self._settle()
        values = {n: decide(s, X) if s.n_members else np.zeros(n_rows(X)) for n, s in self._models.items()}
        return rows_of(values[self._tuner.predicting], self.n_seen, values)

    def _catch_up(self) -> None:
        """Let the other models learn what the one that predicts has learned already."""
        if not self._waiting:
            return
        block, last = block_of(self._waiting, self._common.scale), self._waiting[-1]
        margins = {self._tuner.predicting: np.array([waiting.margin[0] for waiting in self._waiting])}
        lesson = _Lesson(block, last.n_seen, self.next_id, last.class_counts, margins)

        def step() -> None:
            self._have_all_learn(lesson)
            self._waiting = []

        to_the_end(step)

    def _have_all_learn(self, lesson: _Lesson) -> None:
        """Let all models learn a lesson, then judge them.  A second call goes on where the first was interrupted."""
        n = len(lesson.block.labels)
        if lesson.after is None:
            for number, state in self._models.items():
                margins = lesson.margins.setdefault(number, no_margins(n))
                if n_learned(margins) < n:
                    said = [math.nan if one is None else one.of_model(number) for one in lesson.block.said]
                    _learn_rest(lesson.block, state, margins, said=np.array(said))
            lesson.after = self._judged(lesson)
        dropped = {number: state for number, state in self._models.items() if number not in lesson.after[1]}
        self._kernel_values_before += _kernel_values(dropped)
        self._tuner, self._models = lesson.after
        n_columns = int(lesson.block.growth[-1])
        note(self._common, lesson.n_seen, lesson.class_counts, lesson.next_id - 1, n_columns, 0, 0)

    def _judged(self, lesson: _Lesson) -> tuple[Tuner, dict[int, State]]:
        """The tuner and the models after a lesson."""
        positive, weighty = lesson.positive, lesson.block.weights > 0.0
        tuner = self._tuner
        if self._judges_evenly:
            tuner, weighty[weighty] = tuner.evenly(positive[weighty])
        for rows, margins, lags in _alike(lesson):
            cuts = {n: candidate.cut for n, candidate in tuner.candidates.items() if n in margins}
            wrong = {n: ((margins[n] > cut) != positive[rows]) & weighty[rows] for n, cut in cuts.items()}
            tuner = tuner.counted(wrong, lags)
        if lesson.n_seen % CHECK:
            return tuner, self._models
        n_members = {number: state.n_members for number, state in self._models.items()}
        scale = self._common.scale
        tuner = tuner.checked(lesson.n_seen, n_members, self._may_weigh and scale.is_active and scale.n_places > 1)
        for number in tuner.candidates.keys() & self._models.keys():
            tuner.candidates[number].cut_at(float(self._models[number].calibration[CUT]))
        return tuner, self._models_for(tuner, self._models, (lesson.n_seen, lesson.next_id, lesson.class_counts))

    def _models_for(
        self, tuner: Tuner, models: Mapping[int, State], learned: tuple[int, int, Counts]
    ) -> dict[int, State]:
        """The models that a tuner asks for: those that there are, and new ones.

        `learned` has the number of examples, the next id and the numbers of examples by class.
        """
        found = {}
        for number, candidate in tuner.candidates.items():
            if number in models:
                found[number] = models[number]
                continue
            scale = self._scale_for(candidate.setting, tuner, models)
            found[number] = state = self._begun(candidate.setting, scale, *learned)
            if number == tuner.tuning.number:
                _begin_as(state, models[tuner.champion], learned[0])
        return found

    def _scale_for(self, setting: Setting, tuner: Tuner, models: Mapping[int, State]) -> RunningScale:
        """The scale of a new model: that of all, with no weights, with the champion's, or with new ones."""
        if not setting.weights:
            return self._common.scale
        champion = models[tuner.champion]
        if setting.weights == tuner.candidates[tuner.champion].setting.weights:
            return champion.scale
        return learned_scale(self._common.scale, champion)

    def _begun(self, setting: Setting, scale: RunningScale, n_seen: int, next_id: int, counts: Counts) -> State:
        """A model with this setting that begins now."""
        kernel = _with_factor(self._common.kernel, setting, scale)
        state = begin_beside(self._new(setting)._state, self._common, kernel, n_seen, next_id, counts)
        state.scale = scale
        return state

    def _rescaling(self) -> Callable[[], None]:
        self._catch_up()
        scale = self._common.scale.renewed(self._most_members)
        return partial(use_scales, self._rescaled(scale, scale.adapted(self._common.kernel)))

    @property
    def _most_members(self) -> int:
        """Number of members of the largest model."""
        return max(state.n_members for state in self._models.values())

    def _rescaled(self, scale: RunningScale, unit: Kernel) -> list[tuple[State, RunningScale, Kernel, Expansion]]:
        """Each model with its kernel and its members at another scale; `unit` is the kernel with a factor of 1."""
        new = [(self._common, scale, unit, self._common.expansion)]
        for number, state in self._models.items():
            own = state.scale.over(scale)
            kernel = _with_factor(unit, self._tuner.candidates[number].setting, own)
            new.append((state, own, kernel, rescaled(state, own, kernel)))
        return new

    # --------------------------------------------------------------------------------------------- beside other classes

    def _join(self, common: State, counts: Counts) -> None:
        """Begin now to learn what the models of other classes learn, with their columns and their scale."""
        learned = common.n_seen, common.next_id, counts
        begin_beside(self._common, common, common.kernel, *learned)
        self._may_weigh = False  # An exported model of several classes has one scale.
        self._models = self._models_for(self._tuner, {}, learned)

    def _teach(self, block: LabelledBlock, margins: dict[Any, np.ndarray]) -> None:
        """Let all models learn examples that are known from other classes; they do not count.

        A second call with the same margins goes on where the first was interrupted.
        """
        for number, state in self._models.items():
            _learn_rest(block, state, margins.setdefault(number, no_margins(len(block.labels))), counts=False)

    def _settle(self) -> None:
        """Let all models know all examples, and do what an interruption may have left undone."""
        self._features.settle()
        self._catch_up()
        self._rescale_if_due()

    def _all_states(self) -> Collection[State]:
        self._settle()
        return self._models.values()

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
        numbers, labels = forgetting.labels_for(ids, y)
        known = self._members_among(numbers)
        to_the_end(lambda: self._of_each(lambda state: forgetting.relabel(state, numbers, labels)))
        return int(np.isin(numbers, known).sum())

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values that all models have computed so far, while learning and predicting."""
        self._settle()
        return self._kernel_values_before + _kernel_values(self._models)


def _alike(lesson: _Lesson) -> Iterator[tuple[slice, Mapping[int, np.ndarray], Sequence[int]]]:
    """The examples of a lesson in runs that the same models are judged by.

    Yields where they are, the models' margins, and how many examples had been learned since their predictions.
    """
    n, end = len(lesson.block.labels), 0
    if not lesson.block.said:
        yield slice(n), lesson.margins, ()
    for judged, run in groupby(lesson.block.said, lambda one: one and one.judged):
        said = list(run)
        begin, end = end, end + len(said)
        if judged is None:
            yield slice(begin, end), {n: own[begin:end] for n, own in lesson.margins.items()}, ()
            continue
        margins = {number: np.array([one.by_number[number] for one in said]) for number in judged}
        first = lesson.n_seen - n
        yield slice(begin, end), margins, [max(0, t - one.n_seen) for t, one in enumerate(said, first + begin)]


def _learn_rest(
    block: LabelledBlock,
    state: State,
    margins: np.ndarray,
    counts: bool = True,
    said: np.ndarray = NOTHING_SAID,
) -> None:
    """Let a model learn those examples of a block that have no margin yet."""
    for done in range(n_learned(margins), len(margins), BLOCK):
        part = block.part(done, min(done + BLOCK, len(margins)))
        lo, hi, born = learning.boxes_of(state, np.array(part.labels, bool), part.weights, part.born)
        q = state.scale.queries(part.given) if state.scale.weighs else part.q
        examples = Examples(q, lo, hi, part.ids, part.own_ids, born, part.raw, said[done : done + BLOCK])
        learning.learn_queries(state, examples, margins[done : done + BLOCK], counts=counts)


def _begin_as(state: State, parent: State, n_seen: int) -> None:
    """Let a new model begin with those members of another one that are within its window."""
    s = parent.expansion
    if state.scale is not parent.scale:
        s = features_anew(s, state.scale.state, parent.scale.n_places, state.kernel)
    slots = storage.live_slots(s)
    if state.window:
        slots = slots[s.born[slots] > n_seen - state.window.span]
    state.expansion = descendant(s, slots, state.kernel, state.problem, state.C / parent.C)


def _with_factor(kernel: Kernel, setting: Setting, scale: RunningScale) -> Kernel:
    """The kernel with a gamma of so many units, at this scale."""
    return kernel._replace(gamma=kernel.gamma * setting.gamma * scale.gamma_factor)


def _kernel_values(models: Mapping[int, State]) -> int:
    return sum(state.kernel_evaluations for state in models.values())
