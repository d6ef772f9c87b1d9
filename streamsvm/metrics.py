"""The precision-recall break-even point, a metric for rare classes that river does not have.

Rank the examples by score, the highest first, and look at the first P of them, where P is the number of positives.
There, precision and recall are the same number: true positives / P.
"""

import math
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from river import metrics

from streamsvm.core import arguments

__all__ = ["PRBEP", "prbep_score"]


def prbep_score(y_true: npt.ArrayLike, scores: npt.ArrayLike) -> float:
    """Precision-recall break-even point: the precision among the P highest scores, for P positives.

    If rank P falls into a group of equal scores, the group counts with its expected precision over all its orders.  So
    the result does not depend on the order of the examples.

    Parameters
    ----------
    y_true
        Labels, shape (n,): bool, 0/1 or -1/+1.
    scores
        Scores of the positive class, shape (n,), on any scale; higher means more positive.

    Returns
    -------
    float
        In [0, 1]; 0.0 if there is no positive.

    Raises
    ------
    ValueError
        If the shapes differ, if a label is not binary, or if a score is NaN.

    Examples
    --------
    >>> from streamsvm.metrics import prbep_score
    >>> prbep_score([True, False, True, False], [0.9, 0.8, 0.7, 0.1])
    0.5
    >>> prbep_score([1, -1, -1, -1], [2.0, 2.0, 0.0, -1.0])  # one of two equal scores is the positive
    0.5
    """
    arguments.require_unmasked("y_true", y_true)
    arguments.require_unmasked("scores", scores)
    y, s = np.asarray(y_true), np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or y.shape != s.shape:
        raise ValueError(f"y_true and scores must be one-dimensional and equally long, got {y.shape} and {s.shape}")
    if not np.isin(y, (-1, 0, 1)).all():
        raise ValueError(f"y_true must be bool, 0/1 or -1/+1, got the values {np.unique(y)}")
    if np.isnan(s).any():
        raise ValueError(f"scores must not be NaN, got {np.isnan(s).sum()} of them")
    return _break_even(y > 0, s, np.ones(len(s)))


class PRBEP(metrics.base.BinaryMetric):
    """Precision-recall break-even point: the precision among the P highest scores, for P positives.

    The value is exact, which needs all scores: memory grows with every distinct (label, score, weight).  For a stream
    without end, wrap the metric: ``utils.Rolling(PRBEP, window_size=1000)``.

    Equal scores at rank P count with their expected precision over all orders, so the order of the examples does not
    matter.  A weight counts as that many equal examples.  Without positives the value is 0.

    Parameters
    ----------
    pos_val
        Label of the positive class.

    Notes
    -----
    `update` and `revert` take constant time; `get` sorts the scores.

    Examples
    --------
    >>> from river import utils
    >>> from streamsvm.metrics import PRBEP
    >>> metric = PRBEP()
    >>> for y, score in zip([False, True, True, False], [0.6, 0.9, 0.4, 0.1]):
    ...     metric.update(y, score)
    >>> metric
    PRBEP: 50.00%

    >>> rolling = utils.Rolling(PRBEP, window_size=3)
    >>> for y, p in zip([False, True, True, False], [0.6, 0.9, 0.4, 0.1]):
    ...     rolling.update(y, {False: 1 - p, True: p})
    >>> rolling
    PRBEP: 100.00%
    """

    def __init__(self, pos_val: Any = True) -> None:
        self.pos_val = pos_val
        self._seen: Counter[tuple[bool, float, float]] = Counter()

    @property
    def requires_labels(self) -> bool:
        return False

    def update(self, y_true: Any, y_pred: bool | float | dict[Any, float], w: float = 1.0) -> None:
        """Add an example.

        Parameters
        ----------
        y_true
            Its label.
        y_pred
            Score of the positive class, or a dict with the probabilities of the classes.
        w
            Its weight; at least 0.

        Raises
        ------
        ValueError
            If the score is NaN, or the weight is negative or not finite.
        """
        self._seen[self._example(y_true, y_pred, w)] += 1

    def revert(self, y_true: Any, y_pred: bool | float | dict[Any, float], w: float = 1.0) -> None:
        """Take an example out again, exactly as if it had never been added.

        Parameters
        ----------
        y_true, y_pred, w
            As in the `update` to undo.

        Raises
        ------
        ValueError
            If no such example has been added.
        """
        example = self._example(y_true, y_pred, w)
        if example not in self._seen:
            raise ValueError(f"cannot revert y_true={y_true!r}, y_pred={y_pred!r}, w={w!r}: it has not been added")
        self._seen[example] -= 1
        if not self._seen[example]:
            del self._seen[example]

    def get(self) -> float:
        """The break-even point of all examples added so far, in [0, 1]."""
        examples = sorted(self._seen.items())  # Sums of weights in a fixed order give fixed results.
        rows = np.array([(positive, score, w * count) for (positive, score, w), count in examples], dtype=np.float64)
        positive, score, weight = rows.reshape(-1, 3).T
        return _break_even(positive > 0, score, weight)

    def _example(self, y_true: Any, y_pred: bool | float | dict[Any, float], w: float) -> tuple[bool, float, float]:
        score = float(y_pred.get(self.pos_val, 0.0) if isinstance(y_pred, dict) else y_pred)
        if math.isnan(score):
            raise ValueError(f"y_pred must not be NaN, got {y_pred!r}")
        if not 0 <= w < math.inf:
            raise ValueError(f"w must be a finite weight of at least 0, got {w!r}")
        return bool(y_true == self.pos_val), score, float(w)


def _break_even(positive: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    """Share of positive weight within the first P by rank, where P is the weight of all positives."""
    total = weights[positive].sum()
    if total == 0:
        return 0.0
    _, group = np.unique(-scores, return_inverse=True)  # groups of equal scores, highest first
    group_weight = np.bincount(group, weights)
    group_positive = np.bincount(group, weights * positive)
    above = np.cumsum(group_weight) - group_weight
    inside = np.clip(total - above, 0.0, group_weight)
    precision = np.divide(group_positive, group_weight, out=np.zeros_like(group_weight), where=group_weight > 0)
    return float(inside @ precision / total)
