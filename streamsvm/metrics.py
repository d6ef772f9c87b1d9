"""The precision-recall break-even point, a metric for rare classes that river does not have.

`streamsvm.ranking` has the formula.
"""

import math
from collections import Counter
from typing import Any

import numpy as np
from river import metrics

from streamsvm.ranking import break_even, prbep_score

__all__ = ["PRBEP", "prbep_score"]


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
        return break_even(positive > 0, score, weight)

    def _example(self, y_true: Any, y_pred: bool | float | dict[Any, float], w: float) -> tuple[bool, float, float]:
        score = float(y_pred.get(self.pos_val, 0.0) if isinstance(y_pred, dict) else y_pred)
        if math.isnan(score):
            raise ValueError(f"y_pred must not be NaN, got {y_pred!r}")
        if not 0 <= w < math.inf:
            raise ValueError(f"w must be a finite weight of at least 0, got {w!r}")
        return bool(y_true == self.pos_val), score, float(w)
