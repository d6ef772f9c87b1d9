"""Named features and columns: what users hand over, as the engine's queries.

A feature is known by its name; when it is first learned from, it gets the next column.  New names of one example get
theirs in order, numbers first and then strings, so that the order inside a dict does not matter.  A feature that an
example lacks is 0.  A feature that is not known counts in the squared norm of a query (it is a distance to every
member), and nowhere else.
"""

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from river.utils import dataframe

from streamsvm import blocks
from streamsvm.blocks import Queries
from streamsvm.snapshot import SnapshotError

MAX_FEATURES = 2**20  # of a model
PLAIN = (str, int, float, bool)  # types of names that a snapshot holds
LONGEST_NUMBER, EXACT = 15, 2**53  # digits and size of a name that is ordered as a number


class TooManyFeatures(ValueError):  # noqa: N818 - names the condition
    """An example whose new features would give the model more than it may have."""


class FeatureTable:
    """The columns of the features seen in learning.

    Attributes
    ----------
    max_features
        The largest number of features.  An example that would bring more is refused.
    """

    max_features = MAX_FEATURES

    def __init__(self) -> None:
        self.columns: dict[Hashable, int] = {}
        self._names: tuple[Hashable, ...] = ()  # of the last example, and its columns: most examples have the same
        self._columns = np.empty(0, np.int64)
        self._known = True  # whether all of them have a column

    def __len__(self) -> int:
        return len(self.columns)

    def add(self, names: Sequence[Hashable]) -> None:
        """Give columns to the names that have none.

        Raises
        ------
        TooManyFeatures
            If there would be more than `max_features`.  No name has got a column then.
        """
        new = self._new(names)
        for name in sorted(new, key=_order):
            self.columns[name] = len(self.columns)
        if new:
            self._names = ()

    def require_room(self, names: Iterable[Hashable]) -> None:
        """Raise what `add` would raise."""
        self._new(names)

    def _new(self, names: Iterable[Hashable]) -> list[Hashable]:
        new = [name for name in names if name not in self.columns]
        if new and len(self.columns) + len(new) > self.max_features:
            raise TooManyFeatures(
                f"{len(new)} new features, such as {_shown(new[0])}, beside {len(self.columns)} known ones: "
                f"a model has at most {self.max_features} (max_features)"
            )
        return new

    def copy(self) -> "FeatureTable":
        """A table that may learn other names."""
        table = FeatureTable()
        table.columns, table.max_features = self.columns.copy(), self.max_features
        return table

    def truncate(self, n: int) -> None:
        """Take back the columns from the n-th on, which an example that was refused had been given."""
        while len(self.columns) > n:
            self.columns.popitem()
            self._known, self._names = False, ()

    def lookup(self, names: tuple[Hashable, ...]) -> np.ndarray:
        """The column of each name, -1 if it has none."""
        if names != self._names or len(names) != len(self._columns):
            self._columns = np.fromiter((self.columns.get(name, -1) for name in names), np.int64, len(names))
            self._names, self._known = names, bool((self._columns >= 0).all())
        return self._columns

    # ------------------------------------------------------------------------------------------------------ examples

    def example(self, x: Mapping[Hashable, Any], learning: bool) -> tuple[np.ndarray, np.ndarray]:
        """The columns and values (float64, not yet checked to be finite) of one example."""
        if not isinstance(x, Mapping):
            raise TypeError(f"x={x!r} must be a dict of features")
        names = tuple(x)
        try:
            values = np.array(list(x.values()))
        except ValueError:  # sequences among the values
            values = np.empty((0, 0))
        if values.ndim != 1 or values.dtype.kind not in "fiub":
            values = _numbers(x)
        if learning and not (names == self._names and self._known):
            self.add(names)
        return self.lookup(names), values.astype(np.float64)

    # -------------------------------------------------------------------------------------------------------- batches

    def batches(self, X: Any, learning: bool, at_once: int = blocks.BLOCK) -> Iterator[tuple[slice, Queries]]:
        """X in blocks of at most so many queries, each with its place in X.

        A block that is refused leaves no new columns.
        """
        blocks_of_X = self._blocks_of(X, learning, at_once)
        while True:
            n_features = len(self)
            try:
                block = next(blocks_of_X, None)
            except (TypeError, ValueError):
                self.truncate(n_features)
                raise
            if block is None:
                return
            yield block

    def table(self, X: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """The numbers of an array or a frame, and the column of each of its features; None for anything else."""
        if isinstance(X, list | tuple) or sp.issparse(X):
            return None
        names, values = _named(X)
        return values, self.lookup(names)

    def _blocks_of(self, X: Any, learning: bool, at_once: int) -> Iterator[tuple[slice, Queries]]:
        if sp.issparse(X):
            return self._sparse_batches(_canonical(sp.csr_matrix(X)), learning, at_once)
        if isinstance(X, list | tuple):
            return self._dict_batches(X, learning, at_once)
        return self._dense_batches(*_named(X), learning, at_once)

    def _dense_batches(
        self, names: tuple, X: np.ndarray, learning: bool, at_once: int
    ) -> Iterator[tuple[slice, Queries]]:
        if len(X) == 0:
            return
        if learning:
            self.add(names)
        columns = self.lookup(names)
        for b in range(0, len(X), at_once):
            q = blocks.from_dense(X[b : b + at_once], columns)
            if too_large(q.sq):
                t = int(np.argmax(~(q.sq < blocks.LARGEST_SQUARED_NORM)))
                d = culprit(X[b + t])
                raise not_finite(names[d], X[b + t, d], b + t)
            yield slice(b, b + len(q.sq)), q

    def _sparse_batches(self, X: sp.csr_matrix, learning: bool, at_once: int) -> Iterator[tuple[slice, Queries]]:
        data = _float_array(X.data)
        for b in range(0, X.shape[0], at_once):
            starts = X.indptr[b : b + at_once + 1].astype(np.int64)
            inputs, values = X.indices[starts[0] : starts[-1]], data[starts[0] : starts[-1]]
            starts -= starts[0]
            used, first, compact = np.unique(inputs, return_index=True, return_inverse=True)
            names = tuple(used.tolist())
            if learning:
                self._add_by_row(names, np.searchsorted(starts, first, side="right"))
            q = blocks.from_sparse(starts, compact, values, self.lookup(names))
            if too_large(q.sq):
                t = int(np.argmax(~(q.sq < blocks.LARGEST_SQUARED_NORM)))
                p = int(starts[t]) + culprit(values[starts[t] : starts[t + 1]])
                raise not_finite(int(inputs[p]), values[p], b + t)
            yield slice(b, b + len(q.sq)), q

    def _add_by_row(self, names: tuple, rows: np.ndarray) -> None:
        """Give columns to new names in the order of the rows they first occur in, as example after example would."""
        new = [t for t, name in enumerate(names) if name not in self.columns]
        for _, group in itertools.groupby(sorted(new, key=lambda t: rows[t]), key=lambda t: rows[t]):
            self.add([names[t] for t in group])

    def _dict_batches(
        self, X: Sequence[Mapping[Hashable, Any]], learning: bool, at_once: int
    ) -> Iterator[tuple[slice, Queries]]:
        for b in range(0, len(X), at_once):
            q = self._of_dicts(X[b : b + at_once], b, learning)
            yield slice(b, b + len(q.sq)), q

    def _of_dicts(self, rows: Sequence[Mapping[Hashable, Any]], first: int, learning: bool) -> Queries:
        table = _table_of(rows)
        if table is not None:
            names, values = table
            if learning:
                self.add(names)
            starts = np.arange(0, values.size + 1, len(names))
            columns = np.tile(self.lookup(names), len(values))
            return blocks.from_sparse(starts, np.arange(values.size), values.ravel(), columns)
        parts = []
        for t, x in enumerate(rows):
            if not isinstance(x, Mapping):
                raise TypeError(
                    f"X[{first + t}] is {x!r}; a batch is a frame, a 2-D array, a sparse matrix or a list of dicts"
                )
            columns, values = self.example(x, learning)
            with np.errstate(over="ignore", invalid="ignore"):
                sq = values @ values
            if too_large(sq):
                name = list(x)[culprit(values)]
                raise not_finite(name, x[name], first + t)
            parts.append((columns, values))
        starts = np.cumsum([0] + [len(columns) for columns, _ in parts])
        columns = np.concatenate([columns for columns, _ in parts])
        values = np.concatenate([values for _, values in parts])
        return blocks.from_sparse(starts, np.arange(len(columns)), values, columns)

    # ------------------------------------------------------------------------------------------------------ snapshots

    def names(self) -> list[Any]:
        """The names in the order of their columns, as a snapshot can hold them: strings and numbers."""
        for name in self.columns:
            if type(name) not in PLAIN:
                raise SnapshotError(
                    f"the feature name {name!r} is a {type(name).__name__}; str, int, float and bool names can be saved"
                )
        return list(self.columns)

    @classmethod
    def of_names(cls, names: list[Any]) -> "FeatureTable":
        """The table that `names` came from.

        Raises
        ------
        SnapshotError
            If a name is not plain, or there twice.
        """
        table = cls()
        for name in names:
            if type(name) not in PLAIN or (type(name) is float and not math.isfinite(name)):
                raise SnapshotError(f"the feature name {_shown(name)} is not a string, a number or a boolean")
        table.columns = {name: column for column, name in enumerate(names)}
        if len(table.columns) != len(names):
            raise SnapshotError(f"{len(names)} columns have {len(table.columns)} different feature names")
        return table


def _order(name: Hashable) -> tuple[bool, float, str, str]:
    """Numbers by size, whether they are written as numbers or as strings of digits; then all other names as strings."""
    text, kind = str(name), type(name).__name__
    if isinstance(name, str):
        is_number = len(text) <= LONGEST_NUMBER and text.isascii() and text.isdecimal()
    else:
        is_number = isinstance(name, int | float | np.integer | np.floating) and bool(-EXACT < name < EXACT)
    return (False, float(name), text, kind) if is_number else (True, 0.0, text, kind)  # type: ignore[arg-type]


def _shown(name: Hashable) -> str:
    """A name as an error shows it: a hostile one may be long."""
    text = repr(name)
    return text if len(text) <= 100 else f"{text[:100]}..."


def not_finite(name: Hashable, value: Any, row: int | None = None) -> ValueError:
    """The error for a feature that is NaN, infinite, or too large for float32."""
    value = value.item() if isinstance(value, np.generic) else value
    where = f" in row {row}" if row is not None else ""
    return ValueError(
        f"feature {name!r}{where} is {value!r}; features must be finite numbers whose squares fit into float32"
    )


def n_rows(X: Any) -> int:
    """How many examples a batch has."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def too_large(sq: Any) -> bool:
    """Whether a squared norm is NaN, infinite, or too large for kernel values in float32."""
    return not np.all(sq < blocks.LARGEST_SQUARED_NORM)


def culprit(values: np.ndarray) -> int:
    """The place of the value that makes an example too large: the first NaN, or the largest."""
    sizes = np.abs(values)
    return int(np.argmax(np.where(np.isnan(sizes), np.inf, sizes)))


def _canonical(X: sp.csr_matrix) -> sp.csr_matrix:
    """The matrix with each entry once: SciPy lets entries of one place add up."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _table_of(rows: Sequence[Any]) -> tuple[tuple[Hashable, ...], np.ndarray] | None:
    """Names and values of dicts with the same features in the same order; None for others, or if a value is no good.

    Most batches are of this kind, and one conversion of all their numbers takes a tenth of the time of many small ones.
    """
    names = tuple(rows[0]) if type(rows[0]) is dict else ()
    if not names or not all(type(x) is dict and tuple(x) == names for x in rows):
        return None
    try:
        values = np.array([list(x.values()) for x in rows])
    except ValueError:  # sequences among the values
        return None
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        return None
    values = values.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return None if too_large(np.einsum("ij,ij->i", values, values)) else (names, values)


def _numbers(x: Mapping[Hashable, Any]) -> np.ndarray:
    """The values of a dict that numpy found no number type for (Decimal, Fraction); the culprit is named."""
    numbers = []
    for name, value in x.items():
        if isinstance(value, str | bytes | np.datetime64 | np.timedelta64) or np.ndim(value) != 0:
            raise TypeError(f"feature {name!r} is {value!r} ({type(value).__name__}); features must be numbers")
        try:
            numbers.append(float(value))
        except OverflowError as error:
            raise not_finite(name, value) from error
        except TypeError as error:
            raise TypeError(
                f"feature {name!r} is {value!r} ({type(value).__name__}); features must be numbers"
            ) from error
    return np.array(numbers)


def _float_array(X: np.ndarray) -> np.ndarray:
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {X.dtype}; features must be numbers")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _named(X: Any) -> tuple[tuple, np.ndarray]:
    """Names and values of the columns of an array or a frame."""
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}; a batch is a 2-D array (examples, features)")
        return tuple(range(X.shape[1])), _float_array(X)
    frame = dataframe.into_frame(X)
    return tuple(frame.columns), _frame_values(frame)


def _frame_values(frame: Any) -> np.ndarray:
    for column in frame.iter_columns():
        if not (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
            raise TypeError(f"column {column.name!r} has dtype {column.dtype}; features must be numbers")
    return _float_array(dataframe.to_numpy(frame))
