"""One number from labels and decision values, by a metric's name, a metric of scikit-learn or river, or a function.

Labels are bool here, True for the positive class.  Metrics that need probabilities get 1 / (1 + exp(-f)).  It has the
order of the decision values f, but is not calibrated: use it for areas under curves, not for a log loss.
"""

import functools
import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np

from streamsvm.ranking import prbep_score, roc_auc

DECISIONS = {"y_score", "scores", "pred_decision", "decision_values"}  # second arguments that take decision values
PROBABILITIES = {"y_prob", "y_proba"}  # second arguments that take probabilities
TAKES_PROBABILITIES = {  # functions that take probabilities, whatever the name of their second argument
    "log_loss",
    "brier_score_loss",
    "d2_log_loss_score",
    "d2_brier_score",
}
LOSS_ENDINGS = ("_loss", "_error")  # scikit-learn's convention for functions of which less is better


def measure(metric: Any, y: np.ndarray, f: np.ndarray) -> float:
    """The value of a metric.

    Parameters
    ----------
    metric
        One of these:

        - a name: ``"accuracy"``, ``"g_mean"`` (of the recalls of both classes), ``"roc_auc"``, ``"prbep"``, ``"f1"``,
          ``"precision"``, ``"recall"``, ``"balanced_accuracy"`` or ``"mcc"``;
        - a metric of river, or its class;
        - a scorer of scikit-learn, such as ``get_scorer("neg_log_loss")``;
        - a function of labels and predictions.  If its second argument has scikit-learn's name ``y_score``, it gets the
          decision values instead.
    y
        Labels, (n,) bool.
    f
        Decision values, (n,).

    Raises
    ------
    TypeError, ValueError
        If the metric is none of these.

    Examples
    --------
    >>> measure("accuracy", np.array([True, True, False]), np.array([0.3, -2.0, -1.0]))
    0.667
    """
    if isinstance(metric, str):
        if metric not in BY_NAME:
            known = ", ".join(map(repr, BY_NAME))
            raise ValueError(f"metric={metric!r} is unknown; use {known}, or sklearn.metrics.get_scorer({metric!r})")
        if callable(BY_NAME[metric]):
            return float(BY_NAME[metric](y, f if needs_values(metric) else f > 0.0))
        from river import metrics  # takes 0.6 s to load, which most programs need not wait for

        metric = getattr(metrics, BY_NAME[metric])
    if _is_rivers(metric):
        return _by_river(metric, y, f)
    if not callable(metric):
        raise TypeError(f"metric={metric!r} must be a name, a metric of river, a scorer of scikit-learn or a function")
    names = _names_of_arguments(metric)
    if names[:1] == ["estimator"]:
        return float(metric(_Answers(f), np.arange(len(f))[:, None], y))
    second = names[1] if len(names) > 1 else ""
    if second in PROBABILITIES or _name_of(metric) in TAKES_PROBABILITIES:
        return float(metric(y, probabilities(f)))
    return float(metric(y, f if second in DECISIONS else f > 0.0))


def greater_is_better(metric: Any) -> bool:
    """Whether a larger value is better: as a metric of river says, or by the name of a function."""
    if _is_rivers(metric):
        return bool(metric().bigger_is_better if isinstance(metric, type) else metric.bigger_is_better)
    return not _name_of(metric).endswith(LOSS_ENDINGS)


def needs_values(metric: Any) -> bool:
    """Whether a metric may depend on the decision values beyond their signs."""
    return not isinstance(metric, str) or BY_NAME.get(metric) in (roc_auc, prbep_score)


def _name_of(function: Any) -> str:
    """The name of a function, also of one with some arguments given."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", ""))


def probabilities(f: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-f))."""
    return 0.5 * (1.0 + np.tanh(0.5 * f))


def accuracy(y: np.ndarray, predicted: np.ndarray) -> float:
    """The share of right predictions."""
    return float(np.mean(y == predicted))


def g_mean(y: np.ndarray, predicted: np.ndarray) -> float:
    """The geometric mean of the recalls of the classes that occur."""
    recalls = recalls_of(y, predicted)
    return float(np.prod(recalls) ** (1.0 / len(recalls)))


def mean_recall(y: np.ndarray, predicted: np.ndarray) -> float:
    """The mean of the recalls of the classes that occur."""
    return float(np.mean(recalls_of(y, predicted)))


def recalls_of(y: np.ndarray, predicted: np.ndarray) -> list[float]:
    """The share of right predictions of each class that occurs."""
    return [float(np.mean(predicted[y == label] == label)) for label in np.unique(y)]


BY_NAME: dict[str, Any] = {  # A larger value is better for all of them.
    "accuracy": accuracy,
    "g_mean": g_mean,
    "roc_auc": roc_auc,
    "prbep": prbep_score,
    "f1": "F1",  # a text is the name of river's metric
    "precision": "Precision",
    "recall": "Recall",
    "balanced_accuracy": "BalancedAccuracy",
    "mcc": "MCC",
}


OF_CLASSES: dict[str, Any] = {  # for several classes
    "accuracy": accuracy,
    "g_mean": g_mean,
    "balanced_accuracy": mean_recall,
}


def _is_rivers(metric: Any) -> bool:
    return hasattr(metric, "update") and hasattr(metric, "get")


def _by_river(metric: Any, y: np.ndarray, f: np.ndarray) -> float:
    metric = metric() if isinstance(metric, type) else metric.clone()
    if getattr(metric, "requires_labels", True):
        for label, predicted in zip(y.tolist(), (f > 0.0).tolist(), strict=True):
            metric.update(label, predicted)
    else:
        for label, p in zip(y.tolist(), probabilities(f).tolist(), strict=True):
            metric.update(label, {False: 1.0 - p, True: p})
    return float(metric.get())


def _names_of_arguments(metric: Any) -> list[str]:
    try:
        return list(inspect.signature(metric).parameters)
    except (TypeError, ValueError):  # Compiled functions have no signature.
        return []


class _Answers:
    """An estimator for scorers of scikit-learn that answers from known decision values."""

    classes_ = np.array([False, True])

    def __init__(self, f: np.ndarray) -> None:
        self._f = f

    def __sklearn_tags__(self) -> SimpleNamespace:
        return SimpleNamespace(estimator_type="classifier")

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._f[X[:, 0]] > 0.0)

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._f[X[:, 0]])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        p = probabilities(self._f[X[:, 0]])
        return np.column_stack([1.0 - p, p])
