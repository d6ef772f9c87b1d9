"""Checks what users give (dicts, arrays, sparse matrices, data frames), and turns it into names, numbers and labels.

`features` gives the names columns.  Arguments beside the features are the job of `core.arguments`.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from river.utils import dataframe

from streamsvm.core import arguments, blocks
from streamsvm.core.inputs import floats_of
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import SnapshotError

PLAIN = (str, int, float, bool)  # types of names and labels that a snapshot holds
LONGEST_SHOWN = 100  # characters of a feature's name in an error message
NOT_NUMBERS = "features must be numbers; streamsvm.features.Records() in front of the model makes them"

# --------------------------------------------------------------------------------------------------- kinds of batches


def n_rows(X: Any) -> int:
    """Number of examples in a batch; an error for an array of another dimension than 2."""
    if hasattr(X, "shape"):
        if len(X.shape) != 2:
            raise _not_2d(X)
        return int(X.shape[0])
    if isinstance(X, Sized):
        return len(X)
    raise _no_batch(X)


def _not_2d(X: Any) -> ValueError:
    return ValueError(f"X has shape {X.shape}; a batch is a 2-D array (examples, features)")


def _no_batch(X: Any) -> TypeError:
    return TypeError(
        f"X is a {type(X).__name__}; a batch is a dataframe (of a lazy one call collect(), of a RecordBatch make a "
        "Table), a 2-D array, a sparse matrix or a list of dicts"
    )


def is_frame(X: Any) -> bool:
    """Whether a batch is a dataframe."""
    return not isinstance(X, np.ndarray | list | tuple) and hasattr(X, "columns")


def frame_of(X: Any) -> Any:
    """A dataframe of any library as one of narwhals, which knows them all."""
    try:
        return dataframe.into_frame(X)
    except TypeError as error:
        raise _no_batch(X) from error


def series_like(X: Any, values: np.ndarray, name: Any) -> Any:
    """Values of a batch: as a series of the frame's kind if X is a dataframe, otherwise as they are."""
    return dataframe.to_native_series(values, name=name, like=frame_of(X)) if is_frame(X) else values


def frame_like(X: Any, labels: Sequence[Any], values: np.ndarray) -> Any:
    """Values by label, (n, K), as a dataframe like X; as they are if X is another kind of batch."""
    if not is_frame(X):
        return values
    return dataframe.to_native_frame({label: values[:, k] for k, label in enumerate(labels)}, like=frame_of(X))


def named_columns(X: Any) -> tuple[tuple, np.ndarray]:
    """The column names and the numbers of an array or a dataframe."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise _not_2d(X)
        arguments.require_unmasked("X", X)
        return tuple(range(X.shape[1])), floats_of(np.asarray(X))
    frame = frame_of(X)
    for column in frame.iter_columns():
        if not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
            raise TypeError(f"column {column.name!r} has dtype {column.dtype}; {NOT_NUMBERS}")
    return tuple(frame.columns), floats_of(dataframe.to_numpy(frame))


# --------------------------------------------------------------------------------------------------------------- dicts


def values_of(x: Any, takes_gaps: bool = False) -> np.ndarray:
    """The values of one example, (d,) numbers of any kind, not yet checked to be finite.

    `takes_gaps` tells whether a value may be missing; then it is NaN.
    """
    return values_and_gaps(x, takes_gaps)[0]


def values_and_gaps(x: Any, takes_gaps: bool) -> tuple[np.ndarray, bool]:
    """The values of one example, and whether one may be missing."""
    if type(x) is not dict and not isinstance(x, Mapping):  # The first is faster, for one record.
        raise TypeError(f"x={x!r} must be a dict of features")
    given = list(x.values())
    try:
        values = np.array(given)
    except ValueError:  # A value is a sequence.
        values = np.zeros((0, 0))
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        return _numbers(x, takes_gaps), takes_gaps
    return values, takes_gaps and not math.isfinite(math.hypot(*given))  # of few numbers, faster than numpy


def _numbers(x: Mapping[Hashable, Any], takes_gaps: bool) -> np.ndarray:
    """The values of a dict for which numpy has no number type, such as Decimal; an error names the feature."""
    numbers = []
    for name, value in x.items():
        if isinstance(value, str | bytes | np.datetime64 | np.timedelta64) or np.ndim(value) != 0:
            raise not_a_number(name, value)
        try:
            numbers.append(math.nan if takes_gaps and arguments.is_missing(value) else float(value))
        except OverflowError as error:
            raise not_finite(name, value) from error
        except TypeError as error:
            raise not_a_number(name, value) from error
    return np.array(numbers)


def not_a_number(name: Hashable, value: Any) -> TypeError:
    """The error for a feature that is not a number."""
    return TypeError(f"feature {name!r} is {value!r} ({type(value).__name__}); {NOT_NUMBERS}")


def table_of(rows: Sequence[Any]) -> tuple[tuple[Hashable, ...], np.ndarray] | None:
    """The names and values of dicts that have the same features in the same order; None otherwise, or for bad values.

    Most batches are of this kind.  Converting all numbers at once takes a tenth of the time.
    """
    names = tuple(rows[0]) if type(rows[0]) is dict else ()
    if not names or not all(type(x) is dict and tuple(x) == names for x in rows):
        return None
    try:
        values = np.array([list(x.values()) for x in rows])
    except ValueError:  # A value is a sequence.
        return None
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        return None
    values = values.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return None if too_large(np.einsum("ij,ij->i", values, values)) else (names, values)


# ------------------------------------------------------------------------------------------------- values and labels


def too_large(sq: np.ndarray) -> bool:
    """Whether a squared norm is NaN, infinite, or too large for kernel values in float32."""
    return not (sq < blocks.LARGEST_SQUARED_NORM).all()


def culprit_of(x: Mapping[Hashable, Any], values: np.ndarray) -> Hashable:
    """The name of the feature that makes an example too large; `values` may lack those that are missing."""
    names = list(x)
    if len(values) < len(names):
        names = [name for name, value in x.items() if not arguments.is_missing(value)]
    return names[culprit(values)]


def culprit(values: np.ndarray) -> int:
    """The place of the value that makes an example too large: the first NaN, or else the largest value."""
    sizes = np.abs(values)
    return int(np.argmax(np.where(np.isnan(sizes), np.inf, sizes)))


def not_finite(name: Hashable, value: Any, row: int | None = None) -> ValueError:
    """The error for a feature that is NaN, infinite, or too large for float32."""
    value = value.item() if isinstance(value, np.generic) else value
    where = f" in row {row}" if row is not None else ""
    is_cell = row is not None and value != value  # a NaN of an array or a data frame
    wanted = (
        "; leave a missing value out of a dict, or let streamsvm.features.Records() take the rows" if is_cell else ""
    )
    return ValueError(
        f"feature {name!r}{where} is {value!r}; features must be finite numbers whose squares fit into float32{wanted}"
    )


def require_plain(what: str, values: Iterable[Hashable]) -> None:
    """Raise a SnapshotError for the first name or label that a snapshot cannot hold."""
    for value in values:
        if type(value) not in PLAIN:
            raise SnapshotError(f"{what} {value!r} is a {type(value).__name__}; str, int, float and bool can be saved")


def plain_names(meta: Mapping[str, Any], what: str) -> list[Any]:
    """The names or labels in a snapshot's meta, which `require_plain` let pass, each once; or a SnapshotError."""
    names: list[Any] = snapshot.field(meta, what, list)
    for name in names:
        if type(name) not in PLAIN or (type(name) is float and not math.isfinite(name)):
            raise SnapshotError(f"{shown(name)} among the {what} of a snapshot is not a string, a number or a boolean")
    if len(set(names)) < len(names):
        raise SnapshotError(f"the {len(names)} {what} of a snapshot are {len(set(names))} different ones")
    return names


def shown(name: Hashable) -> str:
    """A feature's name for an error message, shortened: a hostile name may be long."""
    text = repr(name)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def label_of(label: Any, where: str = "y is") -> Hashable:
    """A label of one of several classes, in Python's own type.

    Raises
    ------
    TypeError, ValueError
        If the label is not hashable, or is missing.
    """
    label = label.item() if isinstance(label, np.generic) else label
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"{where} {label!r}, a {type(label).__name__}; labels must be hashable") from None
    if arguments.is_missing(label):
        raise ValueError(f"{where} {label!r}; a label is anything hashable but None and NaN, or pandas' NA")
    return label


def labels_of(y: Any, n: int) -> list[Hashable]:
    """The labels of a batch of n examples; errors as in `label_of`, or if the number of labels is wrong."""
    if isinstance(y, str | bytes) or not isinstance(y, Iterable):
        raise TypeError(f"y={y!r} must be a sequence of labels, one for each row of X")
    arguments.require_order("y", y)
    arguments.require_unmasked("y", y)
    shape = getattr(y, "shape", (n,))
    if len(shape) != 1:
        raise ValueError(f"y has shape {tuple(shape)}; it must have one label for each of {n} rows of X")
    if hasattr(y, "to_pylist"):  # of pyarrow, whose own entries are no labels
        y = y.to_pylist()
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuU":  # numpy knows that they are valid
        labels = y.tolist()
    else:
        labels = [label_of(label, f"y[{row}] is") for row, label in enumerate(y)]
    if len(labels) != n:
        raise ValueError(f"y has {len(labels)} labels for {n} rows of X; one label for each row is needed")
    return labels


def labels_for(ids: Any, y: Any) -> list[tuple[int, Hashable]]:
    """Each id with its label; y is one label for all ids, or a list of one for each."""
    several = isinstance(y, list | np.ndarray) or hasattr(y, "to_list")
    numbers = arguments.numbers_of(ids, in_order=several)
    labels = labels_of(y, len(numbers)) if several else [label_of(y)] * len(numbers)
    return list(zip(numbers.tolist(), labels, strict=True))


def array_of_labels(labels: Sequence[Any]) -> np.ndarray:
    """Labels as an array (n,): of their own type if they share one that numpy knows, otherwise of objects."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.array(labels)
    array = np.empty(len(labels), object)
    array[:] = labels
    return array
