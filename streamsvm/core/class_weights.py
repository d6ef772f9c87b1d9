"""Factors on C by class: a number for the positive class, or weights that follow the classes' counts."""

import math
from typing import Any

import numpy as np

from streamsvm.core.arguments import LARGEST_BOX, require_positive

BALANCED = "balanced"

Counts = tuple[int, int]  # examples of the negative and of the positive class


def require_pos_weight(pos_weight: Any) -> None:
    """Raise a ValueError unless this is a factor on C for the positive class, or "balanced"."""
    if isinstance(pos_weight, str):
        if pos_weight != BALANCED:
            raise ValueError(f'pos_weight={pos_weight!r} must be a positive finite number or "balanced"')
    else:
        require_positive("pos_weight", pos_weight)


def largest_weight(pos_weight: float | str, n: int) -> float:
    """The largest factor that one of n examples can have."""
    return math.sqrt(n) if isinstance(pos_weight, str) else max(1.0, pos_weight)


def require_box(C: float, pos_weight: float | str) -> None:
    """Raise a ValueError if the bound on the coefficient of an example of weight 1 is too large."""
    if not C * largest_weight(pos_weight, 1) <= LARGEST_BOX:
        raise ValueError(
            f"C={C!r} with pos_weight={pos_weight!r} is too large: a coefficient is at most {LARGEST_BOX:g}"
        )


def class_weight(pos_weight: float | str, counts: Counts, positive: bool) -> float:
    """The factor of a class.

    Balanced, it is the root of the classes' ratio for the rarer class, and 1 for the other.
    """
    if not isinstance(pos_weight, str):
        return pos_weight if positive else 1.0
    own, other = counts[positive], counts[not positive]
    return math.sqrt(other / max(own, 1)) if other > own else 1.0


def class_weights(pos_weight: float | str, counts: Counts, positive: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """The factors of the next examples, (n,), each with the counts up to itself.

    Parameters
    ----------
    pos_weight
        As of `class_weight`.
    counts
        The counts before these examples.
    positive
        Whether each example is of the positive class.
    counted
        Whether it counts.
    """
    if not isinstance(pos_weight, str):
        return np.where(positive, pos_weight, 1.0)
    negatives = counts[False] + np.cumsum(counted & ~positive)
    positives = counts[True] + np.cumsum(counted & positive)
    own, other = np.where(positive, (positives, negatives), (negatives, positives))
    return np.sqrt(np.maximum(other / np.maximum(own, 1), 1.0))
