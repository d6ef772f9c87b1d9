"""The learner that tunes itself: the best of several LASVM models with different settings predicts.

`estimators.candidates` has the models, and `estimators.tuner` decides.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from streamsvm.core import arguments
from streamsvm.core.fixed import fixed_parameters
from streamsvm.core.saving import snapshot
from streamsvm.estimators.inputs.checks import series_like
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner.composite import CommonColumns, by_prefix
from streamsvm.estimators.learner.copies import Content
from streamsvm.estimators.learner.state import NEVER
from streamsvm.estimators.tuned.candidates import CandidateModels
from streamsvm.estimators.tuned.tuner import Tuner
from streamsvm.estimators.tuned.tuning import STARTS, Promotion, Setting

MOST_MODELS = len(STARTS)
LEAST_MEMORY = 20


@fixed_parameters
class AutoLASVM(CandidateModels):
    """A `LASVM` that chooses C, gamma and the window while it learns, and follows a stream that changes.

    Four settings learn the first 1000 examples side by side.  From then on, the best one predicts: the *champion*.  Two
    challengers learn beside it.  One has a neighbouring setting and begins with the champion's members.  The other has
    the champion's setting and begins without members, so it knows no outdated ones.  A challenger that predicts better
    for long enough becomes champion.  If the champion's error jumps, a challenger without members begins at once.

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
        Memory for cached kernel rows, in megabytes; each model has a quarter.  It changes the speed, never the result.
        A much larger cache costs more to fill than it saves, because challengers come and go.
    device
        Where kernel values are computed, as of `LASVM`.
    scale_memory
        Number of latest examples from which the scale of the features is computed, at least 20; default: 2000, as for
        `LASVM`.  A smaller number follows features that move fast.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    **Features.**  The models scale the features themselves, all alike; see `LASVM`.  So do not scale them before.

    **Cost.**  Four models learn the first 1000 examples, then at most three.  The challengers together do at most
    about 1.1 times the champion's work; beyond that, new ones wait.  In a loop of `learn_one`, the model that predicts
    learns each example at once.  The others learn up to 50 together, which is faster and gives the same models.

    **Replay.**  The model decides after every 50th example, and its decisions depend on the examples alone.  So the
    same stream gives the same model, bit for bit, however it is cut into batches, and a saved model goes on as the
    original.

    **Several classes.**  ``OneVsRest(AutoLASVM())`` tunes the model of each class.

    Members, support vectors, bias and probabilities are those of the model that predicts.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import AutoLASVM
    >>> model = AutoLASVM()
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2000), model, metrics.Accuracy())
    Accuracy: 89...%
    >>> model.champion_
    Setting(C=1.0, gamma=4.0, window=None)
    >>> model.history_
    [Promotion(n_seen=1000, way='warm-up', setting=Setting(C=1.0, gamma=4.0, window=None))]
    """

    def __init__(
        self,
        *,
        pos_weight: float | str = 1.0,
        tol: float = 1e-3,
        budget: int | None = None,
        on_budget: str = "remove",
        cache_mb: float = 64.0,
        device: str = "cpu",
        scale_memory: int = 2000,
    ) -> None:
        self.pos_weight = pos_weight
        self.tol = tol
        self.budget = budget
        self.on_budget = on_budget
        self.cache_mb = cache_mb
        self.device = device
        self.scale_memory = scale_memory
        arguments.require_count("scale_memory", scale_memory, LEAST_MEMORY)
        super().__init__(int(scale_memory))

    def _new(self, setting: Setting) -> LASVM:
        """A model with the C and the window of this setting that has learned nothing."""
        return LASVM(
            setting.C,
            window=setting.window,
            pos_weight=self.pos_weight,
            tol=self.tol,
            budget=self.budget,
            on_budget=self.on_budget,
            reservoir=0,
            cache_mb=self.cache_mb / MOST_MODELS,
            device=self.device,
        )

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
    def decision_threshold(self) -> float:
        """Above this f(x) the prediction is True: 0."""
        return self._predicting.decision_threshold

    @property
    def _predicting(self) -> LASVM:
        """The model that predicts."""
        self._features.settle()
        return self._models[self._tuner.predicting]

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

    def probability_one(self, margin: float) -> float:
        """The probability of True that belongs to this decision value."""
        return self._predicting.probability_one(margin)

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of True that belong to these decision values, an array of the same shape."""
        return self._predicting.probability(margins)

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def n_members(self) -> int:
        """Number of members of the model that predicts."""
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

    def support_vectors_of(self, ids: Sequence[int] | np.ndarray) -> sp.csr_matrix:
        """The rows of `support_vectors` with these ids, in the order of `support_ids`; others are left out."""
        return self._predicting.support_vectors_of(ids)

    @property
    def bias(self) -> float:
        """The constant term b of the decision function f(x)."""
        return self._predicting.bias

    @property
    def kernel(self) -> str:
        """The name of the kernel, with `degree` and `coef0` as of `LASVM`."""
        return self._predicting.kernel

    @property
    def degree(self) -> int:
        """Degree, which the RBF kernel does not use."""
        return self._predicting.degree

    @property
    def coef0(self) -> float:
        """Constant, which the RBF kernel does not use."""
        return self._predicting.coef0

    @property
    def gamma_in_use(self) -> float:
        """The kernel's factor at present."""
        return self._predicting.gamma_in_use

    @property
    def slopes(self) -> tuple[float, float]:
        """Slopes of the probability; see `LASVM.slopes`."""
        return self._predicting.slopes

    @property
    def _sigmoid(self) -> np.ndarray:
        return self._predicting._sigmoid

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _content(self) -> Content:
        self._settle()
        common, _ = self._blank._state()
        own, arrays = self._models_content()
        scale = self._blank._scale.dump(len(self._features))
        meta = {**common, "parameters": self._plain_parameters(), **own}
        return meta, arrays | {f"common.{name}": array for name, array in scale.items()}

    def _plain_parameters(self) -> dict[str, Any]:
        """The parameters as a snapshot holds them."""
        common, _ = self._blank._state()
        own = {"cache_mb": self.cache_mb, "scale_memory": self.scale_memory}
        return {name: own.get(name, common["parameters"].get(name)) for name in self._get_params()}

    def _models_content(self) -> Content:
        """What the models and the tuner have learned."""
        arrays: dict[str, np.ndarray] = {}
        for number, model in self._models.items():
            _, own = model._state()
            arrays |= {f"{number}.{name}": array for name, array in own.items()}
        return {"kernel_values_before": self._kernel_values_before, "tuner": self._tuner.to_plain()}, arrays

    @classmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        instead = {"cache_mb": cache_mb, "device": device}
        parameters = snapshot.field(meta, "parameters", dict)
        return cls(**parameters | {name: value for name, value in instead.items() if value is not None})

    def _take_over(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._blank._features = self._features = FeatureTable.of_names(snapshot.field(meta, "features", list))
        self._blank._restore_counts(meta)
        parts = by_prefix(arrays)
        self._blank._restore_scale(parts.get("common", {}))
        self._restore_models(meta, parts)

    def _restore_models(self, meta: Mapping[str, Any], parts: Mapping[str, dict[str, np.ndarray]]) -> None:
        """Take over what `_models_content` gave, with the arrays of each model by its number."""
        self._kernel_values_before = snapshot.count(meta, "kernel_values_before")
        self._tuner = Tuner.of_plain(snapshot.field(meta, "tuner", dict))
        n_seen, counts = self.n_seen, list(self._blank.class_counts)
        most = len(STARTS) + n_seen  # A check, after 50 records, adds three at most.
        snapshot.require(self._tuner.next_number <= most, f"it has made more than {most} learners")
        models = {}
        for number, candidate in self._tuner.candidates.items():
            models[number] = model = self._new(candidate.setting)
            state = {"n_seen": n_seen, "class_counts": counts, "next_id": self.next_id, "latest": n_seen - 1}
            model._features = CommonColumns(self._features)
            model._scale, model._kernel = self._blank._scale, self._kernel_for(candidate.setting)
            model._restore(state, parts.get(str(number), {}))
            model._next_look = NEVER
        self._models = models

    def _learned_content(self) -> Content:
        self._settle()
        meta = {
            "n_seen": self.n_seen,
            "next_id": self.next_id,
            "tuner": self._tuner.to_plain(),
            "digests": [model.digest() for model in self._models.values()],
        }
        return meta, {}
