"""The labelled examples of a file as one matrix, for the batch solvers."""

import warnings
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from streamsvm import StreamWarning, WarmupScaler
from streamsvm.core.inputs import APART, matrix_of_dicts
from streamsvm.features import Records
from streamsvm.features.values import GIVEN, IGNORE

from ...records.columns import Columns
from ...records.files import Example, read_examples
from ...records.formats.base import show
from ...records.raw import Reading
from ...records.tables import format_of
from ...records.text_files import csv_header, listed
from ...runtime.folders import FileError
from ..shared.log_access import watched

FEWEST_NUMBERED = 20  # In fewer rows, whole numbers may rise by chance.
AS_IT_IS = Reading()  # of a record, without a function of the user
LARGEST_RATIO = 10.0  # Above this ratio of two features' sizes, scaling is advised.


class TrainingSet(NamedTuple):
    """Labelled examples.

    Attributes
    ----------
    X
        Features of the examples, (n, D); missing features are 0.
    y
        Labels, (n,) bool; with more than two classes the classes, (n,) whole numbers or texts.
    w
        Weights, (n,); None if all are 1.
    ids
        Ids from the file.
    groups
        Group of each example; None without a group column.
    features
        Names of the columns, in the order of the file; sorted as numbers if all names are numbers.
    n_complete
        Number of examples that have all features.
    n_fields
        Number of raw fields of which `Records` made the features; 0 if these are the file's own.
    """

    X: sp.csr_matrix
    y: np.ndarray
    w: np.ndarray | None
    ids: list[str | int]
    groups: list[str] | None
    features: list[str]
    n_complete: int
    n_fields: int = 0

    @property
    def is_multiclass(self) -> bool:
        """Whether the labels are those of more than two classes."""
        return self.y.dtype != bool


def read_training_set(
    path: Path,
    file_format: str,
    columns: Columns,
    scale: str,
    numbering: Collection[str] = (),
    records: Records | None = None,
    reading: Reading = AS_IT_IS,
) -> TrainingSet:
    """Read a file of labelled examples.

    Parameters
    ----------
    path, file_format, columns
        As for `records.files.read_examples`.
    scale
        ``"none"``, or the kind of a `WarmupScaler` that learns from all examples.
    numbering
        Names of features that are allowed to number the examples.
    records
        Makes the features of raw records, as new; None: features are numbers.
    reading
        Makes what `records` gets, by the function of the user if there is one.

    Raises
    ------
    FileError, OSError
        If the file cannot be read, or if it has examples of one class only.
    """
    _require_label(path, file_format, columns)
    examples = list(watched(read_examples(path, file_format, columns), "reading"))
    events = [example.event for example in examples]
    y = _labels(path, [event.y for event in events], columns)
    rows: list[Any] = [event.x for event in events]
    if records is not None:
        try:
            rows = _numbers([reading.made(x) for x in rows], records)
        except ValueError as error:  # of the user's function, or of two fields with one name
            raise FileError(f"{path}: {error}") from None
    _refuse_numbering(path, rows, numbering)
    if scale != "none":
        rows = _scaled(rows, scale)
    features = _names(rows)
    w = np.array([event.w for event in events])
    return TrainingSet(
        _matrix(rows, features),
        y,
        None if (w == 1.0).all() else w,
        [event.id for event in events],
        _groups(examples),
        features,
        sum(len(x) == len(features) for x in rows),
        0 if records is None else len(records.summary()),
    )


def _labels(path: Path, labels: list[Any], columns: Columns) -> np.ndarray:
    """The labels as an array; a FileError if all are of one class."""
    if columns.classes:
        is_whole = all(isinstance(label, int) for label in labels)
        y = np.array(labels if is_whole else [str(label) for label in labels])
        needed, all_are = "two classes", "of one class"
    else:
        y = np.array(labels, bool)
        needed, all_are = "both classes", "positive" if y.any() else "negative"
    if len(np.unique(y)) < 2:
        found = f"all {len(y)} labels are {all_are}" if len(y) else "no examples"
        raise FileError(f"{path}: {found}; examples of {needed} are needed")
    return y


def _numbers(rows: Sequence[Any], records: Records) -> list[dict[str, float]]:
    """The features that `Records` makes of raw records.

    All records decide which kinds the fields are.  Then each record is transformed as in a stream: a missing value is
    guessed by the records before it.  Labels have no influence.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamWarning)  # of values that the summary counts
        records.learn_many(rows)
        kinds = {f.name: f.kind if f.kind in GIVEN else IGNORE for f in records.summary()}
        stream = records.clone({"kinds": kinds})
        found = []
        for x in rows:
            stream.learn_one(x)
            found.append({str(name): value for name, value in stream.transform_one(x).items() if value})
    return found


def _require_label(path: Path, file_format: str, columns: Columns) -> None:
    """Ask for the label's column of a CSV file before its text is refused as a feature that is not a number."""
    if columns.raw:
        if columns.label is None and path.suffix != ".jsonl":
            raise FileError(f"{path}: --label is missing: it names the field of the label")
        return
    if format_of(path, file_format) == "csv" and columns.label is None:
        header = csv_header(path)
        named = f"; there are {listed(header)}" if header else ""
        raise FileError(f"{path}: --label is missing: it names the column of the label{named}")


def _refuse_numbering(path: Path, rows: list[dict[str, float]], allowed: Collection[str]) -> None:
    """Refuse an id among the features: in a file that is sorted by class it would predict the labels."""
    if len(rows) < FEWEST_NUMBERED:
        return
    for name in rows[0].keys() - set(allowed):
        if all(name in x for x in rows) and _numbers_rows(np.array([x[name] for x in rows])):
            raise FileError(
                f"{path}: {show(name)} numbers the examples: each has another whole number. If it is the id, use "
                f"--id {name} (CSV and flat JSON lines) or remove it; if it is a feature, use --feature {name}"
            )


def _numbers_rows(values: np.ndarray) -> bool:
    """Whether the values are whole numbers that rise or fall from row to row, or have no gap in any order."""
    if (values != np.floor(values)).any():
        return False
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return True
    return len(np.unique(values)) == len(values) == values.max() - values.min() + 1


def _groups(examples: Sequence[Example]) -> list[str] | None:
    groups = [example.group for example in examples if example.group is not None]
    return groups or None


def _scaled(rows: list[dict[str, float]], kind: str) -> list[dict[str, float]]:
    """The rows with scaled numbers; features that stand apart stay as they are."""
    scaler = WarmupScaler(kind, warmup=len(rows))
    numbers = [{name: value for name, value in x.items() if not name.startswith(APART)} for x in rows]
    for x in numbers:
        scaler.learn_one(x)
    return [x | scaled for x, scaled in zip(rows, scaler.transform_many(numbers), strict=True)]


def _names(rows: Iterable[dict[str, float]]) -> list[str]:
    names = list(dict.fromkeys(name for x in rows for name in x))
    return sorted(names, key=int) if all(name.isdecimal() for name in names) else names


def _matrix(rows: list[dict[str, float]], features: list[str]) -> sp.csr_matrix:
    matrix, _ = matrix_of_dicts(rows, {name: column for column, name in enumerate(features)})
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


def advice(examples: TrainingSet, scale: str) -> str | None:
    """A warning about the scaling of the examples, if one is due."""
    if examples.n_fields:
        return None
    return _uneven(examples) if scale == "none" else _sparse(examples)


def _sparse(examples: TrainingSet) -> str | None:
    if examples.n_complete == len(examples.y):
        return None
    return (
        f"{len(examples.y) - examples.n_complete} examples lack features; missing features stay 0, and the others are "
        "scaled by the values in the file: leave --scale out if the file leaves zeros out"
    )


def _uneven(examples: TrainingSet) -> str | None:
    """A warning if one feature is so large that it decides every distance."""
    sizes = abs(examples.X).max(axis=0).toarray().ravel()
    used = np.flatnonzero(sizes)
    if len(used) == 0:
        return None
    small, large = used[np.argmin(sizes[used])], used[np.argmax(sizes[used])]
    if sizes[large] <= LARGEST_RATIO * sizes[small]:
        return None
    names = examples.features
    return (
        f"feature {names[large]!r} goes up to {sizes[large]:.3g} and {names[small]!r} to {sizes[small]:.3g}; "
        "--scale standard or --scale minmax puts them on an equal footing"
    )
