"""The learner that tunes itself: LASVM models with different settings learn the same examples, and the best predicts.

`estimators.tuner` decides.  This file has the models: it lets them learn, teaches new ones, and drops old ones.

An interruption (Ctrl-C) may find some models ahead of the others.  The rest then first learn what these have learned.
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from streamsvm.core import arguments, snapshot, storage
from streamsvm.core.class_weights import Counts
from streamsvm.core.kernels import Kernel
from streamsvm.estimators.class_models import CommonColumns, LabelledBlock, to_the_end
from streamsvm.estimators.features import FeatureTable
from streamsvm.estimators.inputs import series_like
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learning import Examples
from streamsvm.estimators.model import NEVER, n_learned, no_margins
from streamsvm.estimators.scaling import RunningScale
from streamsvm.estimators.several import SeveralModels, by_prefix
from streamsvm.estimators.tuner import Tuner
from streamsvm.estimators.tuning import CHECK, LARGEST_C, Promotion, Setting
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


class AutoLASVM(SeveralModels):
    """A `LASVM` that chooses C, gamma and the window while it learns, and follows a stream that changes.

    Four settings learn the first 1000 examples side by side.  From then on, the best one predicts: the *champion*.  Two
    challengers take turns beside it.  One has a neighbouring setting and the champion's members.  The other has the
    champion's setting and begins without members, so it knows no outdated ones.  A challenger that predicts better for
    long enough becomes champion.  If the champion's error jumps, a challenger without members begins at once.

    Parameters
    ----------
    pos_weight
        Factor on C for examples of the positive class, as of `LASVM`.
    tol
        Tolerance of `finish`, as of `LASVM`.
    budget
        Largest number of members of each model, as of `LASVM`.
    on_budget
        What happens to a support vector that leaves, as of `LASVM`.
    cache_mb
        Memory for cached kernel rows of each model, in megabytes.  It changes the speed, never the result.
    device
        Where kernel values are computed, as of `LASVM`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    **Cost.**  Four models learn the first 1000 examples, then at most three.  The challengers together may do at most
    0.7 of the champion's work; a challenger that would exceed that has to wait.

    **Replay.**  Decisions fall after every 50th example and depend on the examples alone.  So the same stream gives the
    same model, bit for bit, however it is cut into batches, and a saved model goes on as the original.

    Members, support vectors, bias and probabilities are those of the model that predicts.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import AutoLASVM, WarmupScaler
    >>> model = WarmupScaler() | AutoLASVM()
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2000), model, metrics.Accuracy())
    Accuracy: 88.75%
    >>> model["AutoLASVM"].champion_
    Setting(C=1.0, gamma=4.0, window=None)
    """

    def __init__(
        self,
        *,
        pos_weight: float | str = 1.0,
        tol: float = 1e-3,
        budget: int | None = None,
        on_budget: str = "remove",
        cache_mb: float = 256.0,
        device: str = "cpu",
    ) -> None:
        self.pos_weight = pos_weight
        self.tol = tol
        self.budget = budget
        self.on_budget = on_budget
        self.cache_mb = cache_mb
        self.device = device
        super().__init__(self._new(Setting(LARGEST_C, 1.0)))
        self._tuner = Tuner()
        self._kernel_values_before = 0  # of models that were dropped
        self._models = self._models_for(self._tuner, {}, (0, 0, (0, 0)))

    def _new(self, setting: Setting) -> LASVM:
        """A model with the C and the window of this setting that has learned nothing."""
        return LASVM(
            setting.C,
            window=setting.window,
            pos_weight=self.pos_weight,
            tol=self.tol,
            budget=self.budget,
            on_budget=self.on_budget,
            cache_mb=self.cache_mb,
            device=self.device,
        )

    # -------------------------------------------------------------------------------------------------- what was found

    @property
    def champion_(self) -> Setting:
        """The champion's setting: C, gamma in units of the gamma that ``"scale"`` stands for, and the window."""
        return self._tuner.candidates[self._tuner.champion].setting

    @property
    def history_(self) -> list[Promotion]:
        """Who became champion: after how many examples, by which way, with which setting; at most the last 200."""
        return list(self._tuner.history)

    @property
    def _predicting(self) -> LASVM:
        """The model that predicts, without columns that an interruption has left in the table."""
        self._features.settle()
        return self._models[self._tuner.predicting]

    # ------------------------------------------------------------------------------------------------------- learning

    def _label_of(self, y: Any) -> Hashable:
        return arguments.label_of(y)

    def _labels_of(self, X: Any, y: Any, n: int) -> list[Hashable]:
        return arguments.labels_of(X, y, n).tolist()

    def _learn(self, block: LabelledBlock) -> np.ndarray:
        """Learn a block, in parts that end at checks; return the margins by which it would have been predicted."""
        margins = []
        while len(block.labels):
            n = min(len(block.labels), CHECK - self.n_seen % CHECK)
            lesson, predicting = self._lesson(block.part(0, n)), self._tuner.predicting
            to_the_end(partial(self._have_all_learn, lesson))
            margins.append(lesson.margins[predicting])
            block = block.part(n, len(block.labels))
        return np.concatenate(margins)

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
        arguments.require_positive("tol", self.tol if tol is None else tol)
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

    # ----------------------------------------------------------------------------------------------------- prediction

    def decision_function_one(self, x: dict) -> float:
        """The decision value f(x): above 0 for the positive class, and beyond 1 or -1 outside the margin."""
        return self._predicting.decision_function_one(x)

    def predict_one(self, x: dict, **kwargs: Any) -> bool:
        """The predicted label: True if f(x) > 0.  False before anything was learned."""
        return self._predicting.predict_one(x)

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probabilities of False and True; see `LASVM.predict_proba_one`."""
        return self._predicting.predict_proba_one(x)

    def decision_function_many(self, X: Any) -> Any:
        """The decision values of all rows: a series for a dataframe, otherwise an array (n,)."""
        return self._predicting.decision_function_many(X)

    def predict_many(self, X: Any) -> Any:
        """The predicted labels of all rows: a series for a dataframe, otherwise an array (n,) of bool."""
        return series_like(X, self._predicting._decide_many(X) > 0.0, self._y_name)

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of False and True for all rows: a dataframe for a dataframe, otherwise an array (n, 2)."""
        return self._predicting.predict_proba_many(X)

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of True that belong to these decision values, an array of the same shape."""
        return self._predicting.probability(margins)

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def n_members(self) -> int:
        """Number of examples that the model stores which predicts."""
        return self._predicting.n_members

    @property
    def n_support(self) -> int:
        """Number of support vectors of the model that predicts."""
        return self._predicting.n_support

    @property
    def support_ids(self) -> np.ndarray:
        """Ids of the support vectors, (n_support,) int64."""
        return self._predicting.support_ids

    @property
    def dual_coef(self) -> np.ndarray:
        """Coefficients of the support vectors, (n_support,) float64, in the order of `support_ids`."""
        return self._predicting.dual_coef

    @property
    def support_vectors(self) -> sp.csr_matrix:
        """Features of the support vectors, float32: rows as in `support_ids`, columns as in `feature_names`."""
        return self._predicting.support_vectors

    @property
    def bias(self) -> float:
        """The constant term b of the decision function f(x)."""
        return self._predicting.bias

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values that all models have computed so far, while learning and predicting."""
        return self._kernel_values_before + _kernel_values(self._models)

    # ------------------------------------------------------------------------------------------------------- snapshots

    def to_bytes(self) -> bytes:
        """The model as a snapshot; see `streamsvm.core.snapshot` for the format.

        Raises
        ------
        SnapshotError
            If a feature's name is not a str, int, float or bool.
        """
        common, _ = self._blank._state()
        meta: dict[str, Any] = {
            **common,
            "parameters": {name: common["parameters"][name] for name in self._get_params()},
            "kernel_values_before": self._kernel_values_before,
            "tuner": self._tuner.to_plain(),
        }
        arrays: dict[str, np.ndarray] = {}
        for number, model in self._models.items():
            _, own = model._state()
            arrays |= {f"{number}.{name}": array for name, array in own.items()}
        arrays |= {f"common.{name}": array for name, array in self._blank._scale.dump(len(self._features)).items()}
        return snapshot.pack(type(self).__name__, meta, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, cache_mb: float | None = None, device: str | None = None) -> Self:
        """Read a model that `to_bytes` wrote.  It goes on bit for bit as the stored model would.

        Parameters
        ----------
        data
            A snapshot.
        cache_mb
            Size of each model's row cache in megabytes; default: the stored one.
        device
            Where kernel values are computed; default: the stored device.

        Raises
        ------
        SnapshotError
            If the snapshot is damaged, of another class, or from a newer format.
        """
        meta, arrays = snapshot.unpack(data, cls.__name__)
        with snapshot.reading(cls.__name__):
            instead = {"cache_mb": cache_mb, "device": device}
            parameters = snapshot.field(meta, "parameters", dict)
            model = cls(**parameters | {name: value for name, value in instead.items() if value is not None})
            model._restore(meta, arrays)
        return model

    def _restore(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take over what was learned, as `to_bytes` stored it."""
        self._blank._features = self._features = FeatureTable.of_names(snapshot.field(meta, "features", list))
        self._blank._restore_counts(meta)
        self._kernel_values_before = snapshot.count(meta, "kernel_values_before")
        self._tuner = Tuner.of_plain(snapshot.field(meta, "tuner", dict))
        parts = by_prefix(arrays)
        self._blank._restore_scale(parts.get("common", {}))
        n_seen, counts = self.n_seen, list(self._blank.class_counts)
        for number, candidate in self._tuner.candidates.items():
            self._models[number] = model = self._new(candidate.setting)
            state = {"n_seen": n_seen, "class_counts": counts, "next_id": self.next_id, "latest": n_seen - 1}
            model._restore(state, parts.get(str(number), {}), CommonColumns(self._features))
            model._scale, model._kernel = self._blank._scale, self._kernel_for(candidate.setting)
            model._next_look = NEVER
        self._models = {number: self._models[number] for number in self._tuner.candidates}

    def digest(self) -> str:
        """SHA-256 of what was learned.

        Two models with the same digest continue alike.  Caches, devices and counters do not change it.
        """
        self._features.settle()
        meta = {
            "n_seen": self.n_seen,
            "next_id": self.next_id,
            "tuner": self._tuner.to_plain(),
            "digests": [model.digest() for model in self._models.values()],
        }
        return hashlib.sha256(snapshot.pack(type(self).__name__, meta, {})).hexdigest()


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
