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
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import blocks
from streamsvm.core.inputs import is_apart
from streamsvm.core.scaling.state import RawRows
from streamsvm.estimators.inputs.checks import (
    culprit,
    named_columns,
    not_finite,
    require_plain,
    shown,
    too_large,
    values_and_gaps,
)
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.inputs.raw_rows import from_named, is_named, is_sparse, named_blocks, without_missing

MAX_FEATURES = 2**20  # of a model
EXACT = 2**sys.float_info.mant_dig  # Smaller whole numbers are floats without rounding.


class TooManyFeatures(ValueError):  # noqa: N818 - names the condition
    """An example has so many new features that the model would exceed `max_features`."""


class _Example(NamedTuple):
    """The features of the last example, which most examples share."""

    names: tuple[Hashable, ...]
    columns: np.ndarray
    known: bool  # whether all of them have a column


NOTHING = _Example((), np.empty(0, np.int64), True)
NO_GROWTH = np.empty(0, np.int64)


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
    max_features
        Largest number of features.  An example that would exceed it is refused.
    takes_gaps
        Whether a value in a dict may be None or NaN: the example then lacks the feature.
    told_of_lacking
        Whether the user was told that examples lack a feature; see `notice_lacking`.
    """

    max_features = MAX_FEATURES
    takes_gaps = False
    told_of_lacking = False

    def __init__(self) -> None:
        self.columns: dict[Hashable, int] = {}
        self.n_kept = 0
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

    def _are_strange(self, X: Any, part: NamedRows, learning: bool) -> bool:
        """Whether the columns of a batch, one of whose blocks is `part`, are surely others than those learned.

        New ones are strange only if they are numbers and the known ones are not, or the other way round.  An array
        names its columns 0, 1, 2, ...: the model would take the features that it knows for new ones.
        """
        if not self._knows_none(part.names) or is_named(X):
            return False
        kinds = [set(map(_is_number, of)) for of in (part.names, self.columns)]
        return not (learning or is_sparse(X)) or (len(kinds[0]) == len(kinds[1]) == 1 and kinds[0] != kinds[1])

    def _knows_none(self, names: tuple[Hashable, ...]) -> bool:
        """Whether features were learned, and these are all others."""
        return bool(names and self.columns) and self.columns.keys().isdisjoint(names)

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
        values, may_lack = values_and_gaps(x, self.takes_gaps)
        values = values if values.dtype == np.float64 else values.astype(np.float64)
        names, last = tuple(x), self._last
        if names == last.names and (last.known or not learning):
            columns = last.columns
        else:
            if learning:
                self.add(names)
            columns = self.lookup(names)
        if may_lack:
            known = ~np.isnan(values)
            return columns[known], values[known]
        return columns, values

    # -------------------------------------------------------------------------------------------------------- batches

    def raw_batches(
        self,
        X: Any,
        learning: bool,
        notice: Callable[[np.ndarray, int], None] | None = None,
        at_once: int = blocks.BLOCK,
    ) -> Iterator[tuple[slice, RawRows, np.ndarray]]:
        """X in blocks of examples as the user gave them.

        Yields the place of each block in X, its examples, and, if they are to be learned, the number of columns after
        each of them.  `notice` is told of blocks whose examples lack features, once they have been used: the columns
        that the examples name, and their number.
        """
        self.settle()
        first, takes_gaps = 0, self.takes_gaps and isinstance(X, list | tuple)
        for part in named_blocks(X, learning, takes_gaps, at_once):
            are_strange = self._are_strange(X, part, learning)
            growth = self._add_by_row(part) if learning else NO_GROWTH
            raw = self._raw(part, first, takes_gaps)
            if are_strange:  # A bad value is told first.
                raise self._unfamiliar(part.names)
            n_known = len(raw.columns) if learning else np.count_nonzero(raw.columns >= 0)
            gaps = bool(n_known < len(part) * len(self.columns)) and not is_sparse(X)
            rows = slice(first, first + len(part))
            yield rows, raw._replace(gaps=True) if gaps else raw, growth
            if notice is not None and gaps:
                notice(raw.columns, len(part))
            first = rows.stop

    def rows(self, X: Any, learning: bool) -> Iterator[dict]:
        """The examples of a batch one by one, by name; errors are those of `raw_batches` for columns."""
        self.settle()
        for part in named_blocks(X, learning, self.takes_gaps):
            if self._are_strange(X, part, learning):
                raise self._unfamiliar(part.names)
            yield from part

    def _raw(self, part: NamedRows, first: int, takes_gaps: bool) -> RawRows:
        """A block whose first row is `first`; with `takes_gaps`, a value that is NaN is missing."""
        raw, values = from_named(part, self.lookup(part.names)), part.values
        if takes_gaps and np.isnan(raw.sq).any():
            raw, values = without_missing(raw), np.where(np.isnan(values), 0.0, values)
        if too_large(raw.sq):
            t = int(np.argmax(~(raw.sq < blocks.LARGEST_SQUARED_NORM)))
            p = int(part.starts[t]) + culprit(values[part.starts[t] : part.starts[t + 1]])
            raise not_finite(part.names[part.inputs[p]], values[p], first + t)
        return raw

    def _add_by_row(self, part: NamedRows) -> np.ndarray:
        """Give columns to new names in the order of the rows in which they first occur, as single examples would.

        Returns the number of columns after each row.
        """
        if part.names == self._last.names and self._last.known:
            return np.full(len(part), len(self))
        rows = part.first_rows()
        new = [t for t, name in enumerate(part.names) if name not in self.columns]
        growth: np.ndarray = len(self) + np.bincount(rows[new], minlength=len(part)).cumsum()
        for _, group in itertools.groupby(sorted(new, key=lambda t: rows[t]), key=lambda t: rows[t]):
            self.add([part.names[t] for t in group])
        return growth

    def table(self, X: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """The numbers of an array or a dataframe, and the column of each feature; None for other kinds of X."""
        if is_named(X) or is_sparse(X):
            return None
        self.settle()
        names, values = named_columns(X)
        return None if self._knows_none(names) else (values, self.lookup(names))

    # ------------------------------------------------------------------------------------------------------ snapshots

    def names(self) -> list[Any]:
        """The names in the order of their columns; a SnapshotError if a snapshot cannot hold one."""
        self.settle()
        require_plain("the feature name", self.columns)
        return list(self.columns)

    @classmethod
    def of_names(cls, names: list[Any]) -> FeatureTable:
        """The table whose `names` these are."""
        table = cls()
        table.columns = {name: column for column, name in enumerate(names)}
        table.n_kept = len(names)
        table._last = _Example(tuple(names), np.arange(len(names)), True)  # Most examples have them in this order.
        return table

    def __setstate__(self, state: dict) -> None:
        """Forget the last look-up: its arrays may be mapped from a read-only file."""
        self.__dict__.update(state, _last=NOTHING)


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
        is_number = len(text) <= sys.float_info.dig and text.isascii() and text.isdecimal()
    else:
        is_number = isinstance(name, int | float | np.integer | np.floating) and bool(-EXACT < name < EXACT)
    return (False, float(name), text, kind) if is_number else (True, 0.0, text, kind)  # type: ignore[arg-type]
