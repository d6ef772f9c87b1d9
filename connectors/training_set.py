"""The labelled examples of a file as one matrix, for the solvers that want all of them at once."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from streamsvm import WarmupScaler

from .readers import Columns, Example, FileError, read_examples

LARGEST_RATIO = 10.0  # of two features' sizes, above which scaling is advised


class TrainingSet(NamedTuple):
    """Labelled examples.

    Attributes
    ----------
    X
        The examples, (n, D); a feature that an example lacks is 0.
    y
        Labels, (n,) bool.
    w
        Weights, (n,); None if all are 1.
    ids
        Ids, as the file has them.
    groups
        Whose the examples are; None if that was not asked for.
    features
        Names of the columns: as they first occur in the file, or by number if all are numbers.
    n_complete
        How many examples have all features.
    """

    X: sp.csr_matrix
    y: np.ndarray
    w: np.ndarray | None
    ids: list[str | int]
    groups: list[str] | None
    features: list[str]
    n_complete: int


def read_training_set(path: Path, file_format: str, columns: Columns, scale: str) -> TrainingSet:
    """Read a file of labelled examples.

    Parameters
    ----------
    path, file_format, columns
        As for `readers.read_examples`.
    scale
        ``"none"``, or a kind of `WarmupScaler`, which then learns from all examples.

    Raises
    ------
    FileError, OSError
        If the file cannot be read or used, or has no examples of both classes.
    """
    bar = tqdm(read_examples(path, file_format, columns), "reading", unit=" records", disable=None)
    examples = list(bar)
    events = [example.event for example in examples]
    y = np.array([event.y for event in events], bool)
    n_positive = int(y.sum())
    if n_positive in (0, len(y)):
        found = f"all {len(y)} labels are {'positive' if n_positive else 'negative'}" if examples else "no examples"
        raise FileError(f"{path}: {found}; examples of both classes are needed")
    rows = [event.x for event in events]
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
    )


def _groups(examples: Sequence[Example]) -> list[str] | None:
    groups = [example.group for example in examples if example.group is not None]
    return groups or None


def _scaled(rows: list[dict[str, float]], kind: str) -> list[dict[str, float]]:
    scaler = WarmupScaler(kind, warmup=len(rows))
    for x in rows:
        scaler.learn_one(x)
    return scaler.transform_many(rows)


def _names(rows: Iterable[dict[str, float]]) -> list[str]:
    names = list(dict.fromkeys(name for x in rows for name in x))
    return sorted(names, key=int) if all(name.isdecimal() for name in names) else names


def _matrix(rows: list[dict[str, float]], features: list[str]) -> sp.csr_matrix:
    column_of = {name: column for column, name in enumerate(features)}
    starts = np.cumsum([0] + [len(x) for x in rows])
    columns = np.fromiter((column_of[name] for x in rows for name in x), np.int64, starts[-1])
    values = np.fromiter((value for x in rows for value in x.values()), np.float64, starts[-1])
    matrix = sp.csr_matrix((values, columns, starts), shape=(len(rows), len(features)))
    matrix.sort_indices()
    matrix.eliminate_zeros()
    return matrix


def advice(examples: TrainingSet, scale: str) -> str | None:
    """What is unwise about the way the examples are scaled, if anything is."""
    return _uneven(examples) if scale == "none" else _sparse(examples)


def _sparse(examples: TrainingSet) -> str | None:
    if examples.n_complete == len(examples.y):
        return None
    return (
        f"{len(examples.y) - examples.n_complete} examples lack features; these stay 0, and the others are scaled by "
        "what is there, as by the daemon: leave --scale out if the file leaves out zeros"
    )


def _uneven(examples: TrainingSet) -> str | None:
    """The largest feature decides on every distance."""
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
