"""A training set as `fit` needs it: classes as numbers, gamma from the data, equal examples as one."""

from typing import Any

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.blocks import LARGEST_SQUARED_NORM
from streamsvm.core.hashing import row_hashes
from streamsvm.core.inputs import narrow, squared_lengths, without_duplicates
from streamsvm.estimators.inputs.checks import culprit, not_finite

NO_WEIGHT = "Invalid input - all samples have zero or negative weights."  # SVC's words


def require_moderate(X: Any) -> None:
    """Raise a ValueError if the square of a feature is too large for single precision."""
    values = X.data if sp.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest * largest >= LARGEST_SQUARED_NORM:
        place = culprit(values.ravel())
        row, column = divmod(place, X.shape[1])
        if sp.issparse(X):
            row, column = int(np.searchsorted(X.indptr, place, "right")) - 1, int(X.indices[place])
        what = not_finite(column, values.flat[place], row)
        raise ValueError(f"The dual coefficients or intercepts are not finite for such features: {what}")  # as SVC says


def coded(y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes of the examples with a weight, and the number of each example's class; 0 without a weight."""
    counts = weights > 0.0
    classes, of_each = np.unique(y[counts], return_inverse=True)
    if not len(classes):
        raise ValueError(NO_WEIGHT)
    if len(classes) < 2:
        found = f"{len(classes)} class {classes.tolist()}"
        if not counts.all():
            found = f"all samples with positive weights belong to the same class: y has {found}"  # SVC's words
            raise ValueError(f"Invalid input - {found} among the examples of positive weight; at least 2 are needed")
        raise ValueError(f"y has {found}; at least 2 classes are needed")
    labels = np.zeros(len(y), np.int64)
    labels[counts] = of_each
    return classes, labels


def known_classes(before: np.ndarray | None, given: Any) -> np.ndarray:
    """The classes for `partial_fit`: those of the first call, compared with those given now."""
    if given is None:
        if before is None:
            raise ValueError("classes=None: the first call of partial_fit needs all labels that will occur")
        return before
    classes = np.unique(given)
    if before is not None and not np.array_equal(before, classes):
        raise ValueError(f"classes={classes.tolist()} are others than those of the first call, {before.tolist()}")
    if len(classes) < 2:
        raise ValueError(f"classes={classes.tolist()}: at least 2 classes are needed")
    return classes


def codes(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The number of each label's class."""
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise ValueError(f"y holds {y[unknown][:1].tolist()}, which is not among the classes {classes.tolist()}")
    return np.searchsorted(classes, y)


def gamma_of(gamma: Any, X: Any, weights: np.ndarray) -> float:
    """Gamma as a number.  An example of weight 2 counts twice in the variance."""
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        variance = _variance(X, weights)
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
    if isinstance(gamma, str):
        raise ValueError(f'gamma={gamma!r} must be "scale", "auto" or a positive number')
    return gamma


def _variance(X: Any, weights: np.ndarray) -> float:
    """The variance of all features together."""
    share = weights / (weights.sum() * X.shape[1])
    if sp.issparse(X):
        X = without_duplicates(narrow(X)[0])
        sums, squares = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel(), squared_lengths(X)
        return float(share @ squares - (share @ sums) ** 2)
    mean = share @ X.sum(axis=1, dtype=np.float64)
    return float(share @ np.square(X - mean).sum(axis=1))


def distinct(X: Any, labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each group of equal examples, and the weight of the group, without groups of weight 0.

    The groups are in the order of their hashes: a shuffle that does not depend on the order of the rows.
    """
    used = np.flatnonzero(weights > 0.0)
    X = without_duplicates(X) if sp.issparse(X) else X
    hashes = row_hashes(X, labels)[used]
    order = np.argsort(hashes, kind="stable")
    rows, hashes = used[order], hashes[order]
    again = np.append(False, hashes[1:] == hashes[:-1])
    again[again] = _are_equal(X, labels, rows[np.flatnonzero(again) - 1], rows[again])
    first = np.flatnonzero(~again)
    return rows[first], np.add.reduceat(weights[rows], first)


def _are_equal(X: Any, labels: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether pairs of examples with equal hashes are equal."""
    equal = labels[one] == labels[other]
    if not sp.issparse(X):
        return equal & (X[one] == X[other]).all(axis=1)
    X, _ = narrow(X)
    return equal & (np.diff((X[one] != X[other]).tocsr().indptr) == 0)
