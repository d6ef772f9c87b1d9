"""How well scores rank positives before negatives: the break-even point of precision and recall, the area under ROC.

Rank the examples by score, the highest first, and look at the first P of them, where P is the number of positives.
There, precision and recall are the same number: true positives / P.
"""

import math

import numpy as np
import numpy.typing as npt

from streamsvm.core import arguments


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
    return break_even(y > 0, s, np.ones(len(s)))


def break_even(positive: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
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


def roc_auc(y: np.ndarray, y_score: np.ndarray) -> float:
    """The area under the ROC curve; NaN if `y` has one class only."""
    n_positive = np.count_nonzero(y)
    n_pairs = n_positive * (len(y) - n_positive)
    if n_pairs == 0:
        return math.nan
    _, group, sizes = np.unique(y_score, return_inverse=True, return_counts=True)
    ranks = np.cumsum(sizes) - (sizes - 1) / 2  # equal scores share the mean of their ranks, which start at 1
    return float((ranks[group][y].sum() - n_positive * (n_positive + 1) / 2) / n_pairs)
