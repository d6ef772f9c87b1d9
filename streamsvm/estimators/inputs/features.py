"""Names and columns: the one place where examples with named features become the engine's queries.

- A feature has a name.  When it is first learned, it gets the next column.
- The new names of one example get their columns in order, numbers first and then strings: the order inside a dict does
  not matter.
- A feature that an example lacks is 0, or unknown if the model scales; see `core.scaling.gaps`.
- A feature whose name begins with ``~`` stands apart: it is never scaled.  See `core.scaling`.
- A feature without a column counts in a query's squared norm only.  It adds to the distance from every member.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import blocks
from streamsvm.core import sparse as sp
from streamsvm.core.blocks import Queries
from streamsvm.core.inputs import csr_of_frame, floats_of, has_sparse_columns, is_apart, plain, without_duplicates
from streamsvm.core.saving.snapshot import SnapshotError
from streamsvm.core.scaling import NO_MARKS, RawRows
from streamsvm.estimators.inputs import raw_rows
from streamsvm.estimators.inputs.checks import (
    culprit,
    culprit_of,
    frame_of,
    named_columns,
    not_finite,
    shown,
    table_of,
    too_large,
    values_of,
)
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.inputs.sample import Rows, RowsOf, dense_rows, listed_rows, sparse_rows

MAX_FEATURES = 2**20  # of a model
PLAIN = (str, int, float, bool)  # types of names that a snapshot holds
# Of examples with fewer features, so many times as many make a block: it costs more to prepare than to compute.
NARROW_BELOW, NARROW = 64, 4
LONGEST_NUMBER, EXACT = 15, 2**53  # digits and size of a name that is ordered as a number


class TooManyFeatures(ValueError):  # noqa: N818 - names the condition
    """An example has so many new features that the model would exceed `max_features`."""


class _Example(NamedTuple):
    """The features of the last example, which most examples share."""

    names: tuple[Hashable, ...]
    columns: np.ndarray
    known: bool  # whether all of them have a column


NOTHING = _Example((), np.empty(0, np.int64), True)


class FeatureTable:
    """The columns of the features that were learned.

    New columns are provisional until their example has been learned (`n_kept`).  If the example is refused, or learning
    is interrupted, the table takes them back when it is used next.

    Attributes
    ----------
    columns
        The column of each name.
    n_kept
        Number of columns that are no longer provisional.
    growth
        Number of columns after each example of the last block to learn.
    marks
        Whether each example of the last block marks a gap, as in `RawRows`.
    rows_of
        The columns and the values, as they were given, of each example of the last block.
    raw_of
        Gives the last block as it was given, unscaled.
    max_features
        Largest number of features.  An example that would exceed it is refused.
    takes_gaps
        Whether a value in a dict may be None or NaN: the example then lacks the feature.
    told_of_lacking
        Whether the user was told that examples lack a feature; see `lacking`.
    """

    max_features = MAX_FEATURES
    takes_gaps = False
    told_of_lacking = False

    def __init__(self) -> None:
        self.columns: dict[Hashable, int] = {}
        self.n_kept = 0
        self.growth = np.empty(0, np.int64)
        self.marks = NO_MARKS
        self.rows_of: RowsOf = _no_rows
        self.raw_of: Callable[[], RawRows] = _no_raw
        self._last = NOTHING

    def __len__(self) -> int:
        return len(self.columns)

    def add(self, names: Sequence[Hashable]) -> None:
        """Give columns to the names that have none.

        Raises
        ------
        ValueError
            If a name is NaN or infinite, or if the table would exceed `max_features`.  It then stays as it was.
        """
        new = self._new(names)
        if new:
            self._last = NOTHING
        for name in sorted(new, key=_order):
            self.columns[name] = len(self.columns)

    def require_room(self, names: Iterable[Hashable]) -> None:
        """Raise what `add` would raise."""
        self.settle()
        self._new(names)

    def _new(self, names: Iterable[Hashable]) -> list[Hashable]:
        new = [name for name in names if name not in self.columns]
        _require_names(new)
        if new and len(self.columns) + len(new) > self.max_features:
            raise TooManyFeatures(
                f"{len(new)} new features, such as {shown(new[0])}, beside {len(self.columns)} known ones: "
                f"a model has at most {self.max_features} (max_features)"
            )
        return new

    def copy(self) -> FeatureTable:
        """A table of its own, which can learn other names."""
        self.settle()
        table = FeatureTable()
        table.columns, table.max_features, table.n_kept = self.columns.copy(), self.max_features, self.n_kept
        table.takes_gaps = self.takes_gaps
        return table

    def settle(self) -> None:
        """Take back the provisional columns."""
        while len(self.columns) > self.n_kept:
            self._last = NOTHING
            self.columns.popitem()

    def learned(self) -> list[Hashable]:
        """The names, in the order of their columns, without provisional ones."""
        self.settle()
        return list(self.columns)

    def provisional_apart(self) -> list[bool]:
        """For each provisional column, whether its feature stands apart."""
        return [is_apart(name) for name in itertools.islice(self.columns, self.n_kept, None)]

    def lookup(self, names: tuple[Hashable, ...]) -> np.ndarray:
        """The column of each name; -1 for a name without one."""
        if names != self._last.names:
            columns = np.fromiter((self.columns.get(name, -1) for name in names), np.int64, len(names))
            known = bool((columns >= 0).all())
            if not known:
                _require_names([names[d] for d in np.flatnonzero(columns < 0)])
            self._last = _Example(names, columns, known)
        return self._last.columns

    def is_whole(self, columns: np.ndarray) -> bool:
        """Whether the last example, which has these columns, names all features."""
        return len(columns) >= len(self.columns) and (self._last.known or (columns >= 0).sum() >= len(self.columns))

    def _are_strange(self, names: tuple[Hashable, ...], may_be_new: bool) -> bool:
        """Whether the columns of a batch are surely others than those that were learned: none of them is known.

        New ones are strange only if they are numbers and the known ones are not, or the other way round.  An array
        names its columns 0, 1, 2, ...: the model would take the features that it knows for new ones.
        """
        if not names or not self.columns or any(name in self.columns for name in names):
            return False
        kinds = [set(map(_is_number, of)) for of in (names, self.columns)]
        return not may_be_new or (len(kinds[0]) == len(kinds[1]) == 1 and kinds[0] != kinds[1])

    def _unfamiliar(self, names: tuple[Hashable, ...]) -> ValueError:
        self.settle()
        given, known = (", ".join(map(shown, itertools.islice(of, 3))) for of in (names, self.columns))
        return ValueError(
            f"the columns of X are {given} ({len(names)} in all), and the model knows none of them, but {known} "
            f"({len(self)} in all); give a dataframe or dicts with these names, or an array if it has learned arrays"
        )

    # ------------------------------------------------------------------------------------------------------ examples

    def example(self, x: Mapping[Hashable, Any], learning: bool) -> tuple[np.ndarray, np.ndarray]:
        """The columns and the values of one example: float64, not yet checked to be finite."""
        self.settle()
        return self._example(x, learning)

    def _example(self, x: Mapping[Hashable, Any], learning: bool) -> tuple[np.ndarray, np.ndarray]:
        values = values_of(x, self.takes_gaps)
        names = tuple(x)
        if learning and not (names == self._last.names and self._last.known):
            self.add(names)
        columns, values = self.lookup(names), values if values.dtype == np.float64 else values.astype(np.float64)
        if self.takes_gaps and math.isnan(values.dot(values)):
            known = ~np.isnan(values)
            return columns[known], values[known]
        return columns, values

    # -------------------------------------------------------------------------------------------------------- batches

    def batches(self, X: Any, learning: bool, at_once: int = blocks.BLOCK) -> Iterator[tuple[slice, Queries]]:
        """X in blocks of at most `at_once` queries, each with its place in X."""
        return self._batches(X, learning, at_once, blocks)

    def raw_batches(
        self, X: Any, learning: bool, notice: Callable[[np.ndarray, int], None] | None = None
    ) -> Iterator[tuple[slice, RawRows]]:
        """X in blocks of examples as the user gave them, each with its place in X.

        `notice` is told of blocks whose examples lack features, once they have been used: the columns that the examples
        name, and their number.
        """
        is_sparse = sp.issparse(X) or has_sparse_columns(X)
        for rows, raw in self._batches(X, learning, blocks.BLOCK, raw_rows):
            n_known = len(raw.columns) if learning else np.count_nonzero(raw.columns >= 0)
            gaps = bool(not is_sparse and n_known < len(raw.sq) * len(self.columns))
            yield rows, raw._replace(gaps=gaps, marks=self.marks)
            if notice is not None and gaps:
                notice(raw.columns, len(raw.sq))

    def _batches(self, X: Any, learning: bool, at_once: int, form: Any) -> Iterator[tuple[slice, Any]]:
        """X in blocks; `form` makes a block of dense or of compressed rows."""
        self.settle()
        self.marks = NO_MARKS
        if sp.issparse(X):
            yield from self._sparse_batches(without_duplicates(sp.csr_matrix(X)), learning, at_once, form)
        elif has_sparse_columns(X):
            names = tuple(frame_of(X).columns)
            yield from self._sparse_batches(csr_of_frame(X), learning, at_once, form, names)
        elif isinstance(X, NamedRows):
            yield from self._row_batches(X, learning, at_once, form)
        elif isinstance(X, list | tuple):
            yield from self._dict_batches(X, learning, at_once, form)
        else:
            yield from self._dense_batches(*named_columns(X), learning, at_once, form)

    def _made(self, form: Any, way: str, *given: Any) -> Any:
        """A block of this form."""
        self.raw_of = partial(getattr(raw_rows, way), *given)
        return getattr(form, way)(*given)

    def table(self, X: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """The numbers of an array or a dataframe, and the column of each feature; None for other kinds of X."""
        if isinstance(X, list | tuple | NamedRows) or sp.issparse(X) or has_sparse_columns(X):
            return None
        self.settle()
        names, values = named_columns(X)
        return None if self._are_strange(names, may_be_new=False) else (values, self.lookup(names))

    def _dense_batches(
        self, names: tuple, X: np.ndarray, learning: bool, at_once: int, form: Any
    ) -> Iterator[tuple[slice, Any]]:
        if len(X) == 0:
            return
        are_strange = self._are_strange(names, may_be_new=learning)
        if learning:
            self.add(names)
        columns = self.lookup(names)
        if len(names) < NARROW_BELOW:
            at_once *= NARROW
        for b in range(0, len(X), at_once):
            block = plain(X[b : b + at_once])
            q = self._made(form, "from_dense", block, columns)
            self.growth = np.full(len(q.sq), len(self))
            self.rows_of = partial(dense_rows, columns, block)
            if too_large(q.sq):
                t = int(np.argmax(~(q.sq < blocks.LARGEST_SQUARED_NORM)))
                d = culprit(X[b + t])
                raise not_finite(names[d], X[b + t, d], b + t)
            if are_strange:
                raise self._unfamiliar(names)
            yield slice(b, b + len(q.sq)), q

    def _sparse_batches(
        self, X: sp.csr_matrix, learning: bool, at_once: int, form: Any, of_columns: tuple | None = None
    ) -> Iterator[tuple[slice, Any]]:
        data = floats_of(X.data)
        if learning and X.nnz < NARROW_BELOW * X.shape[0]:
            at_once *= NARROW
        for b in range(0, X.shape[0], at_once):
            starts = X.indptr[b : b + at_once + 1].astype(np.int64)
            inputs, values = X.indices[starts[0] : starts[-1]], data[starts[0] : starts[-1]]
            starts -= starts[0]
            used, first, compact = np.unique(inputs, return_index=True, return_inverse=True)
            names = tuple(used.tolist()) if of_columns is None else tuple(of_columns[d] for d in used)
            are_strange = self._are_strange(names, may_be_new=True)
            if learning:
                self._add_by_row(names, np.searchsorted(starts, first, side="right") - 1, len(starts) - 1)
            q = self._of_sparse(form, b, names, starts, compact, values)
            if are_strange:
                raise self._unfamiliar(names)
            yield slice(b, b + len(q.sq)), q

    def _of_sparse(self, form: Any, first: int, names: tuple, *rows: np.ndarray) -> Any:
        """A block of compressed rows: their starts, for each value the place of its name, and the values."""
        starts, inputs, values = rows
        columns = self.lookup(names)
        q = self._made(form, "from_sparse", starts, inputs, plain(values), columns)
        self.rows_of = partial(sparse_rows, starts, columns[inputs], values)
        if too_large(q.sq):
            t = int(np.argmax(~(q.sq < blocks.LARGEST_SQUARED_NORM)))
            p = int(starts[t]) + culprit(values[starts[t] : starts[t + 1]])
            raise not_finite(names[inputs[p]], values[p], first + t)
        return q

    def _add_by_row(self, names: tuple, rows: np.ndarray, n_rows: int) -> None:
        """Give columns to new names in the order of the rows in which they first occur, as single examples would."""
        new = [t for t, name in enumerate(names) if name not in self.columns]
        self.growth = len(self) + np.bincount(rows[new], minlength=n_rows).cumsum()
        for _, group in itertools.groupby(sorted(new, key=lambda t: rows[t]), key=lambda t: rows[t]):
            self.add([names[t] for t in group])

    def _row_batches(self, X: NamedRows, learning: bool, at_once: int, form: Any) -> Iterator[tuple[slice, Any]]:
        for first, part in X.blocks(at_once):
            if learning:
                self._add_by_row(part.names, part.first_rows(), len(part))
            q = self._of_sparse(form, first, part.names, part.starts, part.inputs, part.values)
            yield slice(first, first + len(part)), q

    def _dict_batches(
        self, X: Sequence[Mapping[Hashable, Any]], learning: bool, at_once: int, form: Any
    ) -> Iterator[tuple[slice, Any]]:
        for b in range(0, len(X), at_once):
            q = self._of_dicts(X[b : b + at_once], b, learning, form)
            yield slice(b, b + len(q.sq)), q

    def _of_dicts(self, rows: Sequence[Mapping[Hashable, Any]], first: int, learning: bool, form: Any) -> Any:
        table = table_of(rows)
        self.marks = NO_MARKS
        if table is not None:
            names, values = table
            if learning:
                self.add(names)
            self.growth = np.full(len(rows), len(self))
            starts = np.arange(0, values.size + 1, len(names))
            self.rows_of = partial(dense_rows, self.lookup(names), values)
            columns = np.tile(self.lookup(names), len(values))
            return self._made(form, "from_sparse", starts, np.arange(values.size), values.ravel(), columns)
        parts, growth, marks = [], [], []
        for t, x in enumerate(rows):
            if not isinstance(x, Mapping):
                raise TypeError(
                    f"X[{first + t}] is {x!r}; a batch is a frame, a 2-D array, a sparse matrix or a list of dicts"
                )
            columns, values = self._example(x, learning)
            with np.errstate(over="ignore", invalid="ignore"):
                sq = values @ values
            if too_large(sq):
                name = culprit_of(x, values)
                raise not_finite(name, x[name], first + t)
            parts.append((columns, values))
            growth.append(len(self))
            marks.append(len(columns) < len(x))
        self.growth, self.marks = np.array(growth, np.int64), np.array(marks, bool)
        self.rows_of = partial(listed_rows, parts)
        starts = np.cumsum([0] + [len(columns) for columns, _ in parts])
        columns = np.concatenate([columns for columns, _ in parts])
        values = np.concatenate([values for _, values in parts])
        return self._made(form, "from_sparse", starts, np.arange(len(columns)), values, columns)

    # ------------------------------------------------------------------------------------------------------ snapshots

    def names(self) -> list[Any]:
        """The names in the order of their columns; a SnapshotError if a snapshot cannot hold one."""
        self.settle()
        for name in self.columns:
            if type(name) not in PLAIN:
                raise SnapshotError(
                    f"the feature name {name!r} is a {type(name).__name__}; str, int, float and bool names can be saved"
                )
        return list(self.columns)

    @classmethod
    def of_names(cls, names: list[Any]) -> FeatureTable:
        """The table whose `names` these are.

        Raises
        ------
        SnapshotError
            If a name is not a string, a finite number or a boolean, or if it occurs twice.
        """
        table = cls()
        for name in names:
            if type(name) not in PLAIN or (type(name) is float and not math.isfinite(name)):
                raise SnapshotError(f"the feature name {shown(name)} is not a string, a number or a boolean")
        table.columns = {name: column for column, name in enumerate(names)}
        table.n_kept = len(table.columns)
        if table.n_kept != len(names):
            raise SnapshotError(f"{len(names)} columns have {table.n_kept} different feature names")
        table._last = _Example(tuple(names), np.arange(len(names)), True)  # Most examples have them in this order.
        return table

    def __getstate__(self) -> dict:
        """Everything except the last block."""
        return {**self.__dict__, "rows_of": _no_rows, "raw_of": _no_raw}

    def __setstate__(self, state: dict) -> None:
        """Forget the last look-up: its arrays may be mapped from a read-only file."""
        self.__dict__.update(state, _last=NOTHING)


def _no_rows(places: np.ndarray) -> Rows:
    raise IndexError(places)


def _no_raw() -> RawRows:
    raise IndexError


def _require_names(names: Sequence[Hashable]) -> None:
    """Raise a ValueError for NaN, which is not equal to itself, and for infinity: no snapshot can hold them."""
    for name in names:
        if isinstance(name, float | np.floating) and not math.isfinite(name):
            raise ValueError(f"a feature is named {name!r}; a number that names a feature must be finite")


def _is_number(name: Hashable) -> bool:
    return isinstance(name, int | float | np.number) and not isinstance(name, bool)


def _order(name: Hashable) -> tuple[bool, float, str, str]:
    """Sort key of a name: numbers by size, also if written as strings of digits; then all other names as strings."""
    text, kind = str(name), type(name).__name__
    if isinstance(name, str):
        is_number = len(text) <= LONGEST_NUMBER and text.isascii() and text.isdecimal()
    else:
        is_number = isinstance(name, int | float | np.integer | np.floating) and bool(-EXACT < name < EXACT)
    return (False, float(name), text, kind) if is_number else (True, 0.0, text, kind)  # type: ignore[arg-type]
