"""The learner that tunes itself: the best of several LASVM models with different settings predicts.

`candidates` has the models, and `tuner` decides.
"""

from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.fixed import fixed_parameters
from streamsvm.core.saving import snapshot
from streamsvm.core.scaling.moments import WARM
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner.copies import Content
from streamsvm.estimators.learner.prediction import Predictor
from streamsvm.estimators.learner.snapshots import arrays_of, restore_arrays
from streamsvm.estimators.learner.state import State
from streamsvm.estimators.tuned.candidates import CandidateModels
from streamsvm.estimators.tuned.tuner import Tuner
from streamsvm.estimators.tuned.tuning import STARTS, Promotion, Setting
from streamsvm.estimators.tuned.weights import WeighedScale, stored_weights

ACCURACY, GMEAN = "accuracy", "gmean"
LEAST_MEMORY = int(WARM)  # examples: the deviation of fewer is wrong by a sixth or more


@fixed_parameters
@dataclass(eq=False, repr=False)
class AutoLASVM(Predictor, CandidateModels):
    """A `LASVM` that chooses C, gamma and the window while it learns, and follows a stream that changes.

    Four settings learn the first 1000 examples side by side.  From then on, the best one predicts: the *champion*.  Two
    challengers learn beside it.  One has a neighbouring setting, or learned weights of the features, and begins with
    the champion's members.  The other has the champion's setting and begins without members, and at first without
    weights, so it knows nothing outdated.  A challenger that predicts better for long enough becomes champion.  If the
    champion's error jumps, a challenger without members begins at once.

    Parameters
    ----------
    pos_weight
        Factor on C for examples of the positive class, as of `LASVM`.
    tol
        Tolerance of `finish`, as of `LASVM`.
    budget
        Largest number of members of each model, as of `LASVM`.  With a budget, three of the four first settings have
        C = 1, not two: a large C fills it with wrong labels.
    on_budget
        What happens to a support vector that leaves, as of `LASVM`.
    cache_mb
        Memory for cached kernel rows, in megabytes; each model has a quarter.  It changes the speed, never the result.
        A much larger cache costs more to fill than it saves, because challengers come and go.
    device
        Where kernel values are computed, as of `LASVM`.
    metric
        What the models are judged by: ``"accuracy"``, or ``"gmean"``, the geometric mean of both classes' recalls, for
        a rare class.  With ``"gmean"``, as many examples of one class count as of the other, and each model learns its
        threshold, as `LASVM` does with ``threshold="gmean"``.
    scale_memory
        Number of latest examples from which the scale of the features is computed, at least 20; default: 2000, as for
        `LASVM`.  A smaller number follows features that move fast.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    **Features.**  The models scale the features themselves, all alike; see `LASVM`.  So do not scale them before.  A
    challenger may weigh them by how much the champion's f(x) depends on each: where few of many features count, this
    saved four errors in ten.  `feature_weights_` has the weights in use.

    **Cost.**  Four models learn the first 1000 examples, then at most three.  The challengers together do at most
    about 1.1 times the champion's work; beyond that, new ones wait.  In a loop of `learn_one`, the model that predicts
    learns each example at once.  The others learn up to 50 together, which is faster and gives the same models.

    **Replay.**  The model decides after every 50th example, and its decisions depend on the examples alone.  So the
    same stream gives the same model, bit for bit, however it is cut into batches, and a saved model goes on as the
    original.

    **Several classes.**  ``OneVsRest(AutoLASVM())`` tunes the model of each class, by accuracy.

    Members, support vectors, bias and probabilities are those of the model that predicts.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import AutoLASVM
    >>> model = AutoLASVM()
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2000), model, metrics.Accuracy())
    Accuracy: 89...%
    >>> model.champion_
    Setting(C=1.0, gamma=4.0, window=None, weights=0)
    >>> model.history_
    [Promotion(n_seen=1000, way='warm-up', setting=Setting(C=1.0, gamma=4.0, window=None, weights=0))]
    """

    _: KW_ONLY
    pos_weight: float | str = 1.0
    tol: float = 1e-3
    budget: int | None = None
    on_budget: str = "remove"
    cache_mb: float = 64.0
    device: str = "cpu"
    metric: str = ACCURACY
    scale_memory: int = 2000

    def __post_init__(self) -> None:
        if self.metric not in (ACCURACY, GMEAN):
            raise ValueError(f'metric={self.metric!r} must be "{ACCURACY}" or "{GMEAN}"')
        arguments.require_count("scale_memory", self.scale_memory, LEAST_MEMORY)
        super().__init__(int(self.scale_memory), judges_evenly=self.metric == GMEAN)

    def _new(self, setting: Setting) -> LASVM:
        """A model with the C and the window of this setting that has learned nothing."""
        return LASVM(
            setting.C,
            window=setting.window,
            pos_weight=self.pos_weight,
            threshold=self.threshold,
            tol=self.tol,
            budget=self.budget,
            on_budget=self.on_budget,
            reservoir=0,
            cache_mb=self.cache_mb / len(STARTS),
            device=self.device,
        )

    @property
    def threshold(self) -> float | str:
        """The threshold of each model, as of `LASVM`."""
        return GMEAN if self.metric == GMEAN else 0.0

    # -------------------------------------------------------------------------------------------------- what was found

    @property
    def champion_(self) -> Setting:
        """The champion's setting: C, gamma in units of the gamma that ``"scale"`` stands for, and the window."""
        return self._tuner.candidates[self._tuner.champion].setting

    @property
    def history_(self) -> list[Promotion]:
        """The last 200 changes of the champion: after how many examples, how, and to which setting."""
        return list(self._tuner.history)

    @property
    def feature_weights_(self) -> dict[Hashable, float]:
        """How much each feature counts, from 0 to 1, the largest; empty while all count alike."""
        weight_of, names = self._state.scale.weight_of, self.feature_names
        return {name: weight_of(column) for column, name in enumerate(names)} if self._state.scale.weighs else {}

    @property
    def class_counts(self) -> tuple[int, int]:
        """Numbers of negative and of positive examples learned so far, as of `LASVM`."""
        return self._common.class_counts

    kernel, degree, coef0 = "rbf", 3, 0.0  # of all models, as of `LASVM`

    @property
    def _state(self) -> State:  # type: ignore[override]  # it changes with the model that predicts
        """The state of the model that predicts."""
        self._features.settle()
        return self._models[self._tuner.predicting]

    @property
    def _seen(self) -> State:
        return self._state

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _content(self) -> Content:
        self._settle()
        return self._content_with(self._get_params())

    def _states(self) -> Content:
        arrays: dict[str, np.ndarray] = {}
        for number, state in self._models.items():
            own = arrays_of(state) | state.scale.weights_to_store()
            arrays |= {f"{number}.{name}": array for name, array in own.items()}
        return {"kernel_values_before": self._kernel_values_before, "tuner": self._tuner.to_plain()}, arrays

    @classmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        instead = {"cache_mb": cache_mb, "device": device}
        parameters = snapshot.field(meta, "parameters", dict)
        return cls(**parameters | {name: value for name, value in instead.items() if value is not None})

    def _restore_states(self, meta: Mapping[str, Any], parts: Mapping[str, dict[str, np.ndarray]]) -> None:
        before = snapshot.field(meta, "kernel_values_before", int)  # below 0 in some snapshots of older versions
        snapshot.require(abs(before) <= snapshot.LARGEST_COUNT, "the number of kernel values")
        self._kernel_values_before = before
        self._tuner = Tuner.of_plain(snapshot.field(meta, "tuner", dict))
        learned = n_seen, *_ = self.n_seen, self.next_id, self._common.class_counts
        most = len(STARTS) + n_seen  # A check, after 50 records, adds three at most.
        snapshot.require(self._tuner.next_number <= most, f"it has made more than {most} learners")
        models = {}
        for number, candidate in self._tuner.candidates.items():
            own, scale = parts.get(str(number), {}), self._common.scale
            if candidate.setting.weights:
                scale = WeighedScale(scale, stored_weights(own, scale.n_places))
            models[number] = self._begun(candidate.setting, scale, *learned)
            restore_arrays(models[number], own)
        self._models = models

    def _learned_content(self) -> Content:
        self._settle()
        of = self._tuner.candidates
        meta = {
            "n_seen": self.n_seen,
            "next_id": self.next_id,
            "tuner": self._tuner.to_plain(),
            "digests": [self._new(of[number].setting)._over(own).digest() for number, own in self._models.items()],
        }
        return meta, {}
