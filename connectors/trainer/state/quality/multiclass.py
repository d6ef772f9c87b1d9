"""Prequential metrics of more than two classes.

Every labelled event is predicted before it is learned.  An event that came before the model knew any class has no
prediction and does not count.  river computes the metrics from the confusion matrix of the last events.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core.saving.snapshot import require_array

from ....records.classes import ClassLabel, KnownClasses

Arrays = dict[str, np.ndarray]


class ClassScores(NamedTuple):
    """How well the model knows one class: `n` of the events were of it."""

    n: int
    precision: float
    recall: float
    f1: float


class Confusion:
    """The confusion matrix of some events, and the metrics that follow from it.

    Parameters
    ----------
    labels
        The classes.
    counts
        Number of events of each class (rows) that were predicted as each class (columns).
    """

    def __init__(self, labels: Sequence[ClassLabel], counts: np.ndarray) -> None:
        self.labels = list(labels)
        self.counts = counts

    @cached_property
    def _matrix(self) -> Any:
        matrix = _metrics().ConfusionMatrix()
        for row, column in zip(*np.nonzero(self.counts), strict=True):
            matrix.update(self.labels[row], self.labels[column], int(self.counts[row, column]))
        return matrix

    @property
    def n(self) -> int:
        """Number of events."""
        return int(self.counts.sum())

    def overall(self) -> dict[str, float]:
        """Accuracy, macro and weighted F1, and Cohen's kappa, by name; NaN without events."""
        metrics = _metrics()
        found = {
            "accuracy": metrics.Accuracy(self._matrix),
            "macro_f1": metrics.MacroF1(self._matrix),
            "weighted_f1": metrics.WeightedF1(self._matrix),
            "kappa": metrics.CohenKappa(self._matrix),
        }
        return {name: metric.get() if self.n else np.nan for name, metric in found.items()}

    def of_classes(self) -> dict[ClassLabel, ClassScores]:
        """The metrics of each class that the events have, or were predicted as."""
        metrics = _metrics()
        actual, predicted = self.counts.sum(axis=1).tolist(), self.counts.sum(axis=0).tolist()
        return {
            label: ClassScores(
                actual[k],
                metrics.Precision(self._matrix, label).get() if predicted[k] else np.nan,
                metrics.Recall(self._matrix, label).get() if actual[k] else np.nan,
                metrics.F1(self._matrix, label).get(),
            )
            for k, label in enumerate(self.labels)
            if actual[k] or predicted[k]
        }


class ClassPrequential:
    """Metrics over the last `window` labelled events, and errors over all, in constant memory.

    Parameters
    ----------
    window
        Number of events.
    classes
        The classes so far; more may come.
    """

    def __init__(self, window: int, classes: KnownClasses) -> None:
        self._window = window
        self._classes = classes
        self._pairs = np.empty((0, 2), np.int16)  # numbers of the class and of the predicted one
        self.n = 0
        self.n_errors = 0

    def update(self, labels: Sequence[ClassLabel], predicted: Sequence[ClassLabel | None]) -> None:
        """Add a batch of labels, and the classes predicted for them."""
        number = self._classes.number_of
        both = zip(labels, predicted, strict=True)
        pairs = np.array([(number(y), number(guess)) for y, guess in both if guess is not None], np.int16)
        pairs = pairs.reshape(-1, 2)
        self.n += len(pairs)
        self.n_errors += int((pairs[:, 0] != pairs[:, 1]).sum())
        self._pairs = np.concatenate([self._pairs, pairs])[-self._window :]

    def rename_class(self, old: ClassLabel, new: ClassLabel | None) -> None:
        """Count the events of a class as those of another one; None: count them no longer."""
        number = self._classes.number_of
        if new is None:
            self._pairs = self._pairs[self._pairs[:, 0] != number(old)]
        else:
            self._pairs = np.where(self._pairs == number(old), number(new), self._pairs).astype(np.int16)

    def rolling(self) -> Confusion:
        """The confusion matrix of the last `window` events."""
        n, pairs = len(self._classes), self._pairs.astype(np.int64)
        counts = np.bincount(pairs[:, 0] * n + pairs[:, 1], minlength=n * n).reshape(n, n)
        return Confusion(self._classes.labels, counts)

    def rolling_error(self) -> float:
        """Error over the last `window` events."""
        return float((self._pairs[:, 0] != self._pairs[:, 1]).mean()) if len(self._pairs) else np.nan

    def summary(self) -> dict[str, float]:
        """The error over all events, and the other metrics over the last ones, by their names in tables."""
        found = self.rolling().overall()
        error = self.n_errors / self.n if self.n else np.nan
        return {
            "error": error,
            "macro F1": found["macro_f1"],
            "weighted F1": found["weighted_f1"],
            "kappa": found["kappa"],
        }

    @property
    def n_window(self) -> int:
        """Number of events that the rolling metrics look at."""
        return len(self._pairs)

    def of_history(self) -> dict[str, float]:
        """The metrics beside the error that a row of the history has, by its fields."""
        return {"g_mean": np.nan, "macro_f1": self.rolling().overall()["macro_f1"]}

    def gauges(self) -> dict[str, float]:
        """The metrics over the last `window` events, as monitoring shows them."""
        return {"error": self.rolling_error(), **self.rolling().overall()}

    def to_arrays(self) -> Arrays:
        """The state, for a checkpoint."""
        return {"pairs": self._pairs, "counts": np.array([self.n, self.n_errors])}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint, possibly with another window."""
        pairs = require_array(arrays, "pairs", "i", (None, 2))
        self.n, self.n_errors = require_array(arrays, "counts", "i", (2,)).tolist()
        if not 0 <= self.n_errors <= self.n or (
            len(pairs) and not 0 <= pairs.min() <= pairs.max() < len(self._classes)
        ):
            raise ValueError(
                f"a checkpoint counts {self.n_errors} errors of {self.n} events, or classes that are unknown"
            )
        self._pairs = pairs[-self._window :]


def _metrics() -> ModuleType:
    from river import metrics  # takes 0.6 s to load, which a trainer of two classes need not wait for

    return metrics
