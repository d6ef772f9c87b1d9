"""What the machines of all pairs of classes say together, as those of SVC do.

Column p of `margins` is f(x) of the p-th pair in the order (0, 1), (0, 2), ..., (1, 2), ...  It is above 0 for the
pair's first class.  If f(x) is exactly 0, the vote goes to the first class in decision values, and to the second in
predictions.
"""

import functools

import numpy as np


def best_classes(margins: np.ndarray, n_classes: int) -> np.ndarray:
    """The class with the most votes, the first of equal ones, (n,)."""
    return _votes(margins > 0.0, n_classes).argmax(axis=1)


def class_values(margins: np.ndarray, n_classes: int) -> np.ndarray:
    """For each class its votes, and a fraction of a vote by the sum of its pairs' f(x), (n, n_classes)."""
    first, second = _sides(n_classes)
    sums = _sums(first, margins, n_classes) - _sums(second, margins, n_classes)
    return _votes(margins >= 0.0, n_classes) + sums / (3.0 * (np.abs(sums) + 1.0))


def _votes(for_first: np.ndarray, n_classes: int) -> np.ndarray:
    """The votes for each class, (n, n_classes), from whether each pair votes for its first class."""
    first, second = _sides(n_classes)
    return _sums(np.where(for_first, first, second), np.ones(for_first.shape), n_classes)


@functools.cache
def _sides(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and the second class of each pair; a class that is alone makes a pair with itself."""
    return np.triu_indices(n_classes, 1) if n_classes != 1 else (np.zeros(1, int),) * 2


def _sums(classes: np.ndarray, values: np.ndarray, n_classes: int) -> np.ndarray:
    """For each example the sum of the values of each class, added up in the order of the pairs."""
    n = len(values)
    cells = classes + n_classes * np.arange(n)[:, np.newaxis]
    return np.bincount(cells.ravel(), weights=values.ravel(), minlength=n * n_classes).reshape(n, n_classes)
