"""The learner that asks others: a kernel learner, simple experts beside it, and one probability made of all."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from river import base
from river.utils import dataframe

from streamsvm.core import arguments
from streamsvm.core import sparse as sp
from streamsvm.core.fixed import fixed_parameters
from streamsvm.core.saving import snapshot
from streamsvm.estimators.gap_family import LASVMG, LASVMI, LASVMNC, FullSVM
from streamsvm.estimators.inputs.checks import is_frame, n_rows, series_like
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner import late
from streamsvm.estimators.learner.copies import Content, Storable
from streamsvm.estimators.learner.explaining import Explanation
from streamsvm.estimators.mixture.experts import Experts
from streamsvm.estimators.tuned.auto import AutoLASVM
from streamsvm.online.mixture.experts import NAMES, K

KINDS = {kind.__name__: kind for kind in (AutoLASVM, LASVM, LASVMG, LASVMNC, LASVMI, FullSVM)}
OF_THE_MODEL = (
    *(
        "feature_names",
        "scale_of",
        "is_scaling",
        "class_counts",
        "max_features",
        "validate_one",
        "validate_many",
        "_features",
    ),
    *(
        "n_members",
        "n_support",
        "support_ids",
        "dual_coef",
        "kernel_evaluations",
        "next_id",
        "champion_",
        "feature_weights_",
    ),
)


@fixed_parameters
class Mixture(Storable, base.MiniBatchClassifier):
    """A kernel learner with simple experts beside it; what predicts is nearly never behind the best of them.

    Eight experts learn each example beside the model: two passive-aggressive ones, two Bayesian logistic regressions
    (one sees the latest labels, too), the last label, bins of each feature and of each pair of features, and two kernel
    expansions that learn how much each feature matters.  Their probabilities and that of the model are calibrated,
    stacked at two speeds, weighted by how well each has predicted lately, and calibrated once more.

    Parameters
    ----------
    model
        The learner for two classes: an `AutoLASVM`, a `LASVM`, or one of its variants.  Default: ``AutoLASVM()``.

    Raises
    ------
    TypeError
        If `model` is none of these.

    Notes
    -----
    **When.**  The experts help where the labels depend on each other in time, where a linear rule moves, where few of
    many features count, and where a model learns slowly.  They cost as much as the model, or less.  Where the kernel
    alone is right, they change little.  `docs/mixture.md` has the figures.

    **Features.**  The experts look at the first 128 features.  None and NaN are missing for them.  A feature that an
    example lacks is 0 for them, also where the model guesses it.

    **Label.**  The more probable label is predicted, so the `threshold` and the weights of the model do not decide it.

    **Memory** is bounded but for the model's: about 3 MB with few features, and 6 MB with 128.

    **Replay.**  The same examples give the same mixture, bit for bit, on one machine with one version of BLAS, however
    they are cut into batches.

    **Forgetting.**  `forget` takes examples out of the model, exactly.  Traces stay in the experts: in their weights,
    and among the latest 2048 examples until newer ones take their places.

    **Weights.**  The experts count each example once, whatever its weight.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import Mixture
    >>> evaluate.progressive_val_score(datasets.Phishing(), Mixture(), metrics.Accuracy())
    Accuracy: 91...%
    """

    def __init__(self, model: Any = None) -> None:
        if model is not None and not isinstance(model, tuple(KINDS.values())):
            names = ", ".join(KINDS)
            raise TypeError(f"model={model!r:.60} must be a learner for two classes: one of {names}")
        self.model = model
        self._model: Any = AutoLASVM() if model is None else model
        self._experts = Experts()
        self._asked: dict[Hashable, Any] | None = None  # the features that were predicted last
        self._answer = 0.5
        self._y_name: Any = None  # of the labels learned last, if they were a series

    def __getattr__(self, name: str) -> Any:
        """What only the model has: members, columns, counts; see `OF_THE_MODEL`."""
        if name in OF_THE_MODEL:
            return getattr(self._model, name)
        raise AttributeError(f"a {type(self).__name__} has no {name!r}")

    # ----------------------------------------------------------------------------------------------------- prediction

    decision_threshold = 0.0

    def decision_function_one(self, x: dict) -> float:
        """The log of the odds of True: above 0, True is more probable."""
        return _log_odds(self._probability(x))

    def decision_function_many(self, X: Any) -> np.ndarray:
        """The log of the odds of True for all rows, (n,)."""
        return np.array([self.decision_function_one(x) for x in _dicts(X)])

    def probability_one(self, margin: float) -> float:
        """The probability of True that belongs to these log odds."""
        return 1.0 / (1.0 + math.exp(-margin))

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of True that belong to these log odds, an array of the same shape."""
        return 1.0 / (1.0 + np.exp(-np.asarray(margins)))

    def margins_one(self, x: dict) -> tuple[float, ...]:
        """What the mixture, its experts and the model say of an example whose label will come late.

        Keep it, and give it to `learn_one` when the label has come: see `AutoLASVM.margins_one`.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        tuple of float
            The log odds, the probabilities of the model and of the experts, and what the model takes as its `margin`.
        """
        of_model = self._model.margins_one(x) if self._is_tuned else (self._model.decision_function_one(x),)
        return (self.decision_function_one(x), *self._experts.probabilities.tolist(), *of_model)

    def margins_many(self, X: Any) -> np.ndarray:
        """What `margins_one` returns for each row, as a row of an array."""
        return np.array([self.margins_one(x) for x in _dicts(X)])

    @property
    def _is_tuned(self) -> bool:
        return isinstance(self._model, AutoLASVM)

    def explain_one(self, x: dict, n: int = 3) -> Explanation:
        """Explain the answer of the model, as `LASVM.explain_one`: it may be another than that of all experts.

        Its `label` is the model's.  No expert can be explained by members.
        """
        why: Explanation = self._model.explain_one(x, n)
        return why

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probabilities of False and True."""
        p = self._probability(x)
        return {False: 1.0 - p, True: p}

    def predict_one(self, x: dict, **kwargs: Any) -> bool:
        """The more probable label."""
        return self._probability(x) > 0.5

    def _probability(self, x: dict) -> float:
        if x != self._asked:
            self._asked = None
            self._answer = self._experts.predict(x, self._model.predict_proba_one(x)[True])
            self._asked = dict(x)
        return self._answer

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of False and True for all rows: a dataframe for a dataframe, otherwise an array (n, 2)."""
        p = np.array([self._probability(x) for x in _dicts(X)])
        if is_frame(X):
            return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=dataframe.into_frame(X))
        return np.column_stack([1.0 - p, p])

    def predict_many(self, X: Any) -> Any:
        """The more probable labels of all rows: a series for a dataframe, otherwise an array (n,) of bool."""
        return series_like(X, np.array([self.predict_one(x) for x in _dicts(X)], bool), self._y_name)

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(
        self, x: dict, y: Any, w: float = 1.0, id: int | None = None, t: Any = None, margin: Any = None
    ) -> None:
        """Learn one example.

        Parameters
        ----------
        x, y, w, id, t
            As for `LASVM.learn_one`.
        margin
            If the label came late: what `margins_one` returned when the example was predicted.

        Raises
        ------
        ValueError, TypeError
            As `LASVM.learn_one`.
        """
        label, p, of_model = arguments.label_of(y), None, None
        if margin is not None:
            said = np.array([late.finite(value) for value in margin])
            if len(said) <= 1 + K or ((said[1 : 1 + K] < 0.0) | (said[1 : 1 + K] > 1.0)).any():
                raise ValueError(f"margin={margin!r} must be what margins_one or margins_many returned")
            p, rest = said[1 : 1 + K], said[1 + K :]
            of_model = tuple(rest.tolist()) if self._is_tuned else float(rest[0])
        self._probability(x)
        self._model.learn_one(x, y, w, id, t, of_model)
        self._experts.know(x)
        self._experts.learn(label, p)
        self._asked = None

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, t: Any = None, margins: Any = None) -> None:
        """Learn a batch of examples in sequence, as a loop of `learn_one`; see `LASVM.learn_many`."""
        n = n_rows(X)
        weights, said = arguments.weights_of(w, n), [None] * n if margins is None else list(margins)
        self._y_name = getattr(y, "name", None)
        for i, (x, label) in enumerate(zip(_dicts(X), y, strict=True)):
            when = t if t is None or np.ndim(t) == 0 else t[i]
            self.learn_one(x, label, float(weights[i]), None if ids is None else int(ids[i]), when, said[i])

    def forget(self, ids: int | Iterable[int]) -> int:
        """Take examples out of the model, exactly; for what stays in the experts see the notes of the class."""
        self._asked = None
        left: int = self._model.forget(ids)
        return left

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct the labels of examples in the model, as `LASVM.relabel`; the experts keep what they have learned."""
        self._asked = None
        known: int = self._model.relabel(ids, y)
        return known

    @property
    def n_seen(self) -> int:
        """Number of examples learned so far."""
        n: int = self._model.n_seen
        return n

    @property
    def shares_(self) -> dict[str, float]:
        """How much each part counts: the two stacks, which see all experts, and each expert alone."""
        names = ("stack, slow", "stack, fast", *NAMES)
        return dict(zip(names, self._experts.rule.shares.tolist(), strict=True))

    # ------------------------------------------------------------------------------------------------------ snapshots

    def _content(self) -> Content:
        (meta, arrays), (own, of_model) = self._experts.dump(), self._model._content()
        meta |= {"kind": type(self._model).__name__, "is_given": self.model is not None, "model": own}
        return meta, arrays | {f"model.{name}": array for name, array in of_model.items()}

    def _learned_content(self) -> Content:
        meta, arrays = self._experts.dump()
        return meta | {"model": self._model.digest()}, arrays

    @classmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        kind = snapshot.field(meta, "kind", str)
        snapshot.require(kind in KINDS, f"a model of kind {kind!r}")
        model: Any = KINDS[kind]._of_meta(snapshot.field(meta, "model", dict), cache_mb, device)
        mixture = cls(model if snapshot.field(meta, "is_given", bool) else None)
        mixture._model = model
        return mixture

    def _take_over(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        of_model = {name[len("model.") :]: array for name, array in arrays.items() if name.startswith("model.")}
        self._model._take_over(meta["model"], of_model)
        self._experts.restore(meta, arrays)


def _log_odds(p: float) -> float:
    return math.log(p / (1.0 - p))


def _dicts(X: Any) -> Iterable[Any]:
    """The rows of a batch as dicts."""
    if isinstance(X, np.ndarray):
        return (dict(enumerate(row)) for row in X.tolist())
    if sp.issparse(X):
        csr = X.tocsr()
        parts = (slice(*csr.indptr[i : i + 2]) for i in range(csr.shape[0]))
        return (dict(zip(csr.indices[part].tolist(), csr.data[part].tolist(), strict=True)) for part in parts)
    if isinstance(X, Sequence):
        return X
    rows: Any = dataframe.into_frame(X).iter_rows(named=True)
    return rows
