"""How well the model does: prequential metrics, their history, and drift.

Prequential means that every labelled event is predicted before it is learned.  So each prediction is an honest one.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streamsvm.core.saving.snapshot import require_array
from streamsvm.ranking import break_even, prbep_score

from ..course import Course

_MAX_COUNT = 1 << 50  # of events: sums over all bins stay exact
_BINS = 2048  # of the histogram of margins, which are mapped to (-1, 1)
_HISTORY_LENGTH = 1024  # points of a curve: more than a picture shows
_DRIFT_RATE = 1 / 256  # weight of the newest event in the running mean
_DRIFT_FEATURES = 1000  # the largest number of features that are watched

Arrays = dict[str, np.ndarray]


class Scores(NamedTuple):
    """Metrics over labelled events; a metric is NaN if it needs a class that did not occur."""

    n: int
    error: float
    g_mean: float  # geometric mean of the accuracies on the two classes
    auc: float  # area under the ROC curve
    prbep: float  # precision among the P highest margins, for P positives


class Prequential:
    """Metrics over all labelled events so far, and over the last `window` of them, in constant memory.

    The rolling scores are exact.  The cumulative AUC and PRBEP come from a histogram of margins with 2048 bins for each
    class, so margins in the same bin count as ties.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._margins = np.empty(0)
        self._labels = np.empty(0, dtype=bool)
        self._histogram = np.zeros((2, _BINS), dtype=np.int64)
        self._confusion = np.zeros((2, 2), dtype=np.int64)  # [label, prediction]

    def update(self, labels: npt.NDArray[np.bool_], margins: npt.NDArray[np.float64]) -> None:
        """Add a batch of labels, and the margins predicted for them."""
        rows = labels.astype(np.intp)
        np.add.at(self._confusion, (rows, (margins > 0).astype(np.intp)), 1)
        squashed = margins / (1 + np.abs(margins))
        bins = ((squashed + 1) * (_BINS / 2)).astype(np.intp).clip(0, _BINS - 1)
        np.add.at(self._histogram, (rows, bins), 1)
        self._margins = np.concatenate([self._margins, margins])[-self._window :]
        self._labels = np.concatenate([self._labels, labels])[-self._window :]

    @property
    def n(self) -> int:
        """Number of labelled events so far."""
        return int(self._confusion.sum())

    @property
    def n_errors(self) -> int:
        """Number of labelled events that were predicted wrongly."""
        return int(self._confusion[0, 1] + self._confusion[1, 0])

    def cumulative(self) -> Scores:
        """Metrics over all events so far."""
        label, margin = np.nonzero(self._histogram)
        prbep = break_even(label > 0, margin, self._histogram[label, margin])
        return _scores(self._confusion, self._histogram[0], self._histogram[1], prbep)

    def rolling(self) -> Scores:
        """Metrics over the last `window` events."""
        margins, labels = self._margins, self._labels
        ranks = np.unique(margins, return_inverse=True)[1]
        negatives = np.bincount(ranks[~labels], minlength=len(margins))
        positives = np.bincount(ranks[labels], minlength=len(margins))
        return _scores(self._rolling_confusion(), negatives, positives, prbep_score(labels, margins))

    def rolling_error(self) -> float:
        """Error over the last `window` events; it needs no sorting, unlike the other metrics."""
        confusion = self._rolling_confusion()
        return _ratio(confusion[0, 1] + confusion[1, 0], confusion.sum())

    def summary(self) -> dict[str, float]:
        """The metrics over all events, by their names in tables."""
        scores = self.cumulative()
        return {"error": scores.error, "g-mean": scores.g_mean, "AUC": scores.auc, "PRBEP": scores.prbep}

    @property
    def n_window(self) -> int:
        """Number of events that the rolling metrics look at."""
        return len(self._margins)

    def of_history(self) -> dict[str, float]:
        """The metrics beside the error that a row of the history has, by its fields."""
        return {"g_mean": _g_mean(self._rolling_confusion())}

    def gauges(self) -> dict[str, float]:
        """The metrics over the last `window` events, as monitoring shows them."""
        scores = self.rolling()
        return {"error": scores.error, "g_mean": scores.g_mean, "auc": scores.auc, "prbep": scores.prbep}

    def to_arrays(self) -> Arrays:
        """The state, for a checkpoint."""
        return {
            "margins": self._margins,
            "labels": self._labels,
            "histogram": self._histogram.copy(),  # they go on counting
            "confusion": self._confusion.copy(),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint, possibly with another window."""
        self._histogram = require_array(arrays, "histogram", "i", (2, _BINS))
        self._confusion = require_array(arrays, "confusion", "i", (2, 2))
        margins = require_array(arrays, "margins", "f", (None,))
        for counts in (self._histogram, self._confusion):
            if counts.min() < 0 or counts.max() > _MAX_COUNT:
                raise ValueError(
                    f"a checkpoint's histogram or confusion matrix holds {counts.min()} to {counts.max()}: no counts"
                )
        if not np.isfinite(margins).all():
            raise ValueError("a checkpoint's margins hold NaN or infinity; they must be finite")
        labels = require_array(arrays, "labels", "b", (len(margins),))
        self._margins, self._labels = margins[-self._window :], labels[-self._window :]

    def _rolling_confusion(self) -> npt.NDArray[np.int64]:
        return np.bincount(2 * self._labels + (self._margins > 0), minlength=4).reshape(2, 2)


def _scores(confusion: np.ndarray, negatives: np.ndarray, positives: np.ndarray, prbep: float) -> Scores:
    """`negatives` and `positives` count the classes by ascending margin."""
    n = int(confusion.sum())
    error = _ratio(confusion[0, 1] + confusion[1, 0], n)
    below = np.cumsum(negatives) - negatives
    auc = _ratio((positives * (below + negatives / 2)).sum(), float(negatives.sum()) * float(positives.sum()))
    return Scores(n, error, _g_mean(confusion), auc, prbep if positives.sum() else math.nan)


def _g_mean(confusion: np.ndarray) -> float:
    return math.sqrt(_ratio(confusion[0, 0], confusion[0].sum()) * _ratio(confusion[1, 1], confusion[1].sum()))


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else math.nan


class Snapshot(NamedTuple):
    """A row of the history; fields that an older version has not recorded are NaN."""

    n: int  # records so far
    error: float  # over the last `window` labelled events, as g_mean
    g_mean: float
    n_support: int
    seconds: float
    n_members: float = math.nan
    n_labels: float = math.nan  # labelled events so far
    n_errors: float = math.nan  # labelled events that were predicted wrongly
    lag: float = math.nan  # records that were known to wait
    age: float = math.nan  # seconds from the newest record's time to this row
    shift: float = math.nan  # see `Drift`
    macro_f1: float = math.nan  # of more than two classes, over the last `window` labelled events, as error


_FIRST_FIELDS = 5  # the fields that older versions read


class History(Course[Snapshot]):
    """The course of a run, for charts.

    Attributes
    ----------
    latest : Snapshot or None
        The row of the last checkpoint.
    """

    def __init__(self) -> None:
        super().__init__(_HISTORY_LENGTH)
        self.latest: Snapshot | None = None

    def to_arrays(self) -> Arrays:
        rows = _as_array(self.rows)
        return {
            "rows": rows[:, :_FIRST_FIELDS],
            "more": rows[:, _FIRST_FIELDS:],
            "latest": _as_array([self.latest] if self.latest else []),
            "every": np.array(self.every),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        rows = require_array(arrays, "rows", "f", (None, _FIRST_FIELDS))
        if "more" in arrays:
            rows = np.hstack([rows, require_array(arrays, "more", "f", (len(rows), None))])
        self.rows = _as_snapshots(rows)
        if "latest" in arrays:
            self.latest = next(iter(_as_snapshots(require_array(arrays, "latest", "f", (None, None)))), None)
        self.every = max(1, int(require_array(arrays, "every", "i", ())))


def _as_array(rows: list[Snapshot]) -> np.ndarray:
    return np.array(rows, dtype=np.float64).reshape(-1, len(Snapshot._fields))


def _as_snapshots(rows: np.ndarray) -> list[Snapshot]:
    if not _FIRST_FIELDS <= rows.shape[1] <= len(Snapshot._fields):
        raise ValueError(f"a checkpoint's history has {rows.shape[1]} columns, not {len(Snapshot._fields)} or fewer")
    return [Snapshot(int(n), e, g, int(s), t, *more) for n, e, g, s, t, *more in rows.tolist()]


class Drift:
    """How far the features have moved away from the scale in use: running means over some events."""

    def __init__(self) -> None:
        self._means: dict[str, float] = {}

    def observe(self, x: Mapping[str, float]) -> None:
        """Take an event's features, scaled to mean 0 and standard deviation 1."""
        for name, value in x.items():
            if name in self._means or len(self._means) < _DRIFT_FEATURES:
                mean = self._means.get(name, 0.0)
                self._means[name] = mean + (value - mean) * _DRIFT_RATE

    def largest(self) -> float:
        """The largest shift of a mean, in standard deviations; NaN if no feature is scaled."""
        return max(map(abs, self._means.values()), default=math.nan)
