"""User input besides features: parameters, labels, weights, ids and times, checked and converted."""

import datetime
import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

LARGEST = sys.float_info.max
LARGEST_BOX = 1e15  # of a coefficient: beyond it, sums in float64 lose a single example
LARGEST_ID = int(np.iinfo(np.int64).max)
LARGEST_CACHE_MB = LARGEST_ID >> 20  # whose bytes fit into 63 bits
OTHERS = "; OneVsRest takes others"


def is_number(value: Any) -> bool:
    """Whether this is a finite real number and not a bool."""
    if isinstance(value, float | np.floating):
        return math.isfinite(value)
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(-LARGEST <= value <= LARGEST)


def require_positive(name: str, value: Any) -> None:
    """Raise a ValueError that names the parameter unless it is a positive finite number."""
    if not (is_number(value) and value > 0):
        raise ValueError(f"{name}={value!r} must be a positive finite number")


def require_threshold(value: Any) -> None:
    """Raise a ValueError unless this is a threshold for f(x): a finite number, or "gmean"."""
    if value != "gmean" if isinstance(value, str) else not is_number(value):
        raise ValueError(f'threshold={value!r} must be a finite number or "gmean"')


def require_at_most_1(name: str, value: Any) -> None:
    """Raise a ValueError that names the parameter unless it is a finite number, at most 1."""
    if not (is_number(value) and value <= 1):
        raise ValueError(f"{name}={value!r} must be a finite number, at most 1")


def require_share(name: str, value: Any) -> None:
    """Raise a ValueError that names the parameter unless it is a number from 0 to 1, both excluded."""
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{name}={value!r} must be a number between 0 and 1")


def require_cache(value: Any) -> None:
    """Raise a ValueError unless this is a size for a cache, in megabytes."""
    if not (is_number(value) and 0 < value <= LARGEST_CACHE_MB):
        raise ValueError(f"cache_mb={value!r} must be a positive number of megabytes, at most {LARGEST_CACHE_MB:g}")


def require_count(name: str, value: Any, minimum: int) -> None:
    """Raise a ValueError that names the parameter unless it is a whole number of at least `minimum`, below 2^63."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not minimum <= value < 2**63:
        raise ValueError(f"{name}={value!r} must be a whole number, at least {minimum} and below 2^63")


def require_bool(name: str, value: Any) -> None:
    """Raise a ValueError that names the parameter unless it is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}={value!r} must be True or False")


def require_a(name: str, value: Any, kind: type, wanted: str) -> None:
    """Raise a TypeError that names the parameter unless the value is of this class; `wanted` says what is right."""
    if not isinstance(value, kind):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise TypeError(f"{name} is {what}; it must be {wanted}")


def require_seed(value: Any) -> None:
    """Raise a ValueError unless this is a seed: a signed 64-bit integer."""
    if not _is_int64(value):
        raise ValueError(f"seed={value!r} must be a signed 64-bit integer")


def _is_int64(value: Any) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and bool(-(2**63) <= value <= LARGEST_ID)


def require_unmasked(name: str, values: Any) -> None:
    """Raise a ValueError that names the argument if it is a masked array with masked entries."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        places = np.argwhere(np.ma.getmaskarray(values))
        raise ValueError(
            f"{name} is a masked array with {len(places)} masked entries, the first at {places[0].tolist()}; "
            "fill them in, or leave these examples out"
        )


def require_order(name: str, values: Any) -> None:
    """Raise a TypeError that names the argument if it is a dict or a set.

    numpy would take one for a single value, and a loop would take the keys of a dict.
    """
    if isinstance(values, Mapping | Set):
        raise TypeError(
            f"{name} is a {type(values).__name__}; it must be a list, an array or a series, with an entry for each "
            "example in their order"
        )


def vector_of(name: str, values: Any) -> np.ndarray:
    """What an argument has for each example, as an array whose shape is not checked yet; neither a dict nor a set."""
    require_order(name, values)
    require_unmasked(name, values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} holds sequences of different lengths; each example needs one value") from error


def require_bounds(budget: Any, on_budget: Any, window: Any, kernel: str) -> None:
    """Raise a ValueError that names the parameter unless these are valid bounds of a model."""
    if budget is not None:
        require_count("budget", budget, 3)
    if on_budget not in ("remove", "project", "merge"):
        raise ValueError(f'on_budget={on_budget!r} must be "remove", "project" or "merge"')
    if on_budget == "merge" and kernel not in ("rbf", "linear"):
        raise ValueError(f'on_budget="merge" is for the kernels "rbf" and "linear", not {kernel!r}; use "project"')
    if isinstance(window, datetime.timedelta):
        if window <= datetime.timedelta(0):
            raise ValueError(f"window={window!r} must be a positive time")
    elif not (window is None or (isinstance(window, int | np.integer) and window >= 1 and window is not True)):
        raise ValueError(f"window={window!r} must be a whole number of examples, at least 1, or a timedelta")


def label_of(y: Any) -> bool:
    """Whether a label is that of the positive class."""
    if isinstance(y, bool | np.bool_):
        return bool(y)
    if isinstance(y, int | float | np.number) and y in (0, 1, -1):
        return bool(y == 1)
    raise ValueError(f"y={y!r} is not a binary label; use True and False, 1 and 0, 1 and -1, or OneVsRest")


def labels_of(X: Any, y: Any, n: int, of: str = "rows of X") -> np.ndarray:
    """Labels as an array (n,) of bool.

    Parameters
    ----------
    X
        The batch, which must have two dimensions; None: the labels are those of ids.
    y
        The labels.
    n
        How many there must be.
    of
        What the labels belong to, in the plural, for the error message.

    Raises
    ------
    ValueError
        If the shape of X or y is wrong, or if a label is not binary.
    """
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X has shape {X.shape}; a batch is a 2-D array (examples, features)")
    labels = vector_of("y", y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape} for {n} {of}; one label for each is needed")
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind == "O":
        for row, label in enumerate(labels):
            if not isinstance(label, bool | np.bool_ | int | float | np.number):
                raise ValueError(
                    f"y holds {label!r} in row {row}; labels must be True and False, 1 and 0, or 1 and -1{OTHERS}"
                )
        return np.fromiter((label_of(label) for label in labels), bool, n)
    positive = labels == 1
    if labels.dtype.kind in "fiu" and ((positive | (labels == 0)).all() or (positive | (labels == -1)).all()):
        return positive
    values = np.unique(labels).tolist()
    shown = ", ".join(map(repr, itertools.islice(sorted(values, key=str), 5)))
    raise ValueError(f"y holds {shown}; labels must be True and False, 1 and 0, or 1 and -1{OTHERS}")


def is_missing(label: Any) -> bool:
    """Whether this is no label: None, NaN, NaT, or pandas' NA, for which even the question has no answer."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def classes_of(y: Any, n: int) -> np.ndarray:
    """Labels of any classes as an array (n,); an error if one is missing."""
    labels = vector_of("y", y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}; it must have one label for each of {n} examples")
    require_labels(labels)
    return labels


def require_labels(labels: np.ndarray) -> None:
    """Raise a ValueError that names the row if a label of this array (n,) is missing."""
    missing = np.flatnonzero(_are_missing(labels))
    if len(missing):
        raise ValueError(f"y has no label in row {missing[0]}: {labels[missing[0]]!r}")


def signs_of(y: Any, n: int) -> np.ndarray:
    """Labels as an array (n,) of -1.0 and +1.0: bool, -1 and +1, 0 and 1, or any two classes in order."""
    labels = classes_of(y, n)
    classes = np.unique(labels)
    if len(classes) == 2 and set(classes.tolist()) not in ({-1, 1}, {0, 1}):
        return np.where(labels == classes[1], 1.0, -1.0)
    return np.where(labels_of(None, labels, n), 1.0, -1.0)


def _are_missing(labels: np.ndarray) -> Any:
    """Which labels are missing."""
    if labels.dtype.kind == "O":
        return np.fromiter(map(is_missing, labels), bool, len(labels))
    return labels != labels


def weights_of(w: Any, n: int, name: str = "w") -> np.ndarray:
    """Weights as an array (n,); errors call them `name`."""
    weights = numbers_in(name, 1.0 if w is None else w)
    weights = np.broadcast_to(weights, (n,)) if weights.ndim == 0 else weights
    if weights.shape != (n,):
        raise ValueError(f"{name} has shape {weights.shape}; it must be one weight, or one for each of {n} rows of X")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise ValueError(f"{name} holds {weights[bad][0]}; weights must be finite and at least 0")
    return weights


def numbers_in(name: str, w: Any) -> np.ndarray:
    """One weight or several as an array of float64, whose shape and values are not checked yet."""
    require_order(name, w)
    require_unmasked(name, w)
    try:
        return np.asarray(w, np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise TypeError(f"{name} {_stumble(vector_of(name, w))}; weights must be numbers") from error


def _stumble(values: np.ndarray) -> str:
    """Which of these values is not a number."""
    for row, value in enumerate(values.tolist() if values.ndim == 1 else ()):
        try:
            float(value)
        except (OverflowError, TypeError, ValueError):
            return f"holds {value!r:.100} in row {row}"
    return f"is {values.tolist()!r:.100}"


def box_of(C: float, weight: Any, factor: float) -> float:
    """The bound on the coefficient of one example."""
    if not (is_number(weight) and weight >= 0.0):
        raise ValueError(f"w={weight!r} must be a finite number, at least 0")
    box = C * weight * factor
    if not box <= LARGEST_BOX:
        raise ValueError(
            f"w={weight!r} is too large: with C={C!r} the bound on the coefficient is above {LARGEST_BOX:g}"
        )
    return box


def boxes_of(C: float, weights: np.ndarray, factors: np.ndarray, name: str = "w") -> np.ndarray:
    """The bounds on the coefficients of a batch, (n,); errors call the weights `name`."""
    with np.errstate(over="ignore"):
        boxes = C * weights * factors
    if not (boxes <= LARGEST_BOX).all():
        largest = weights.max().item()
        raise ValueError(
            f"{name} holds {largest!r}, too large: with C={C!r} a coefficient's bound is above {LARGEST_BOX:g}"
        )
    return boxes


def id_of(id: Any) -> int:
    """One id."""
    if not _is_int64(id):
        raise ValueError(f"id={id!r} must be a signed 64-bit integer")
    return int(id)


def ids_of(ids: Any, n: int) -> np.ndarray:
    """Ids as an array (n,) int64."""
    numbers = vector_of("ids", ids)
    if numbers.shape == (0,) and n == 0:
        return np.zeros(0, np.int64)
    if numbers.dtype.kind == "O" and numbers.shape == (n,):  # as from a column of pandas that may lack some
        return np.fromiter(map(id_of, numbers), np.int64, n)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise ValueError(f"ids has shape {numbers.shape} and dtype {numbers.dtype}; {n} integers are needed")
    if numbers.dtype == np.uint64 and (numbers > LARGEST_ID).any():
        raise ValueError(f"ids holds {numbers.max()}; ids are signed 64-bit integers, at most {LARGEST_ID}")
    return numbers.astype(np.int64)


def numbers_of(ids: Any, in_order: bool = False) -> np.ndarray:
    """One id or several, as an array (n,) int64; `in_order` refuses a set: something else follows the ids' order."""
    if isinstance(ids, str | bytes | bytearray | memoryview):
        raise ValueError(f"ids={ids!r} must be a signed 64-bit integer, or several")
    if in_order or isinstance(ids, Mapping):
        require_order("ids", ids)
    if isinstance(ids, np.ndarray) or getattr(ids, "shape", None):
        several = np.atleast_1d(vector_of("ids", ids))
        return ids_of(several, len(several))
    if not isinstance(ids, Iterable):
        return np.array([id_of(ids)])
    given = list(ids)
    return ids_of(given, len(given))


def next_ids(first: int, n: int) -> np.ndarray:
    """The ids of n examples that came without ids, from `first` on."""
    require_ids_left(first, n)
    return np.arange(n) + first


def require_ids_left(first: int, n: int) -> None:
    """Raise a ValueError unless there are n ids from `first` on."""
    if first + n - 1 > LARGEST_ID:
        raise ValueError(f"ids=None: no ids are left above the largest one, {first - 1}; give the examples ids")


EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def time_of(t: Any) -> int:
    """A time in microseconds since 1970; a time without a zone counts as UTC."""
    if isinstance(t, np.datetime64) and not np.isnat(t):
        return int(t.astype("datetime64[us]").astype(np.int64))
    if not isinstance(t, datetime.datetime) or t != t:
        raise TypeError(f"t={t!r} must be a datetime: with a window of time every example needs one")
    since = (t if t.tzinfo else t.replace(tzinfo=datetime.UTC)) - EPOCH
    return since // datetime.timedelta(microseconds=1)


def times_of(t: Any, n: int) -> np.ndarray:
    """The times of a batch in microseconds since 1970, (n,) int64."""
    if isinstance(t, datetime.datetime | np.datetime64) or np.ndim(t) == 0:
        return np.full(n, time_of(t))
    times = vector_of("t", t)
    if times.shape != (n,):
        raise ValueError(f"t has shape {times.shape} for {n} rows of X; one time, or one for each row, is needed")
    if times.dtype.kind == "M" and not np.isnat(times).any():
        return times.astype("datetime64[us]").astype(np.int64)
    return np.fromiter(map(time_of, times), np.int64, n)
