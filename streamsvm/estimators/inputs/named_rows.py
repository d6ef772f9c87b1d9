"""Examples by feature name, turned into arrays once, for callers that hand the same examples to several methods.

`validate_many`, `decision_function_many` and `learn_many` each turn a list of dicts into arrays anew.  That takes
longer than a small model's arithmetic.  `NamedRows` is a batch after the conversion: these methods take it in the place
of a list of dicts, and scalers return it scaled.  Commands that read a log import this file, so it loads no engine.

======== ========================================================== ====================
symbol   name                                                       shape, dtype
======== ========================================================== ====================
names    features that occur                                        tuple of strings, d
starts   where each row begins                                      (n + 1,) int64
inputs   place of each value's feature in `names`                   (nnz,) int64
values   the values, row after row                                  (nnz,) float64
======== ========================================================== ====================
"""

from collections.abc import Callable, Hashable, ItemsView, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # starts, columns and values of some examples


class NamedValues(Mapping):
    """An example as names and an array of values, which becomes a dict only when code looks a feature up.

    A dict of 784 features takes longer to make than the model takes to predict.  `NamedRows.of` needs no dict.
    """

    def __init__(self, names: tuple[Hashable, ...], array: np.ndarray) -> None:
        self.names = names
        self.array = array

    @cached_property
    def _dict(self) -> dict[Hashable, float]:
        return dict(zip(self.names, self.array.tolist(), strict=True))

    def __getitem__(self, name: Hashable) -> float:
        return self._dict[name]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def items(self) -> ItemsView:
        """The names with their values."""
        return self._dict.items()

    def __repr__(self) -> str:
        return repr(self._dict)


class NamedRows(Sequence):
    """A batch of examples as names and arrays; a row, when it is asked for, is a dict.

    Parameters
    ----------
    names, starts, inputs, values
        The arrays; see the module.  `inputs` is None if every row has all features in the order of `names`.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> rows = NamedRows.of([{"a": 0.0, "b": 1.0}, {"b": 2.0}])
    >>> rows[1], rows.take([1, 0])[1]
    ({'b': 2.0}, {'a': 0.0, 'b': 1.0})
    >>> model = LASVM()
    >>> model.learn_many(rows, [True, False])
    >>> model.predict_many(rows)
    array([ True, False])
    """

    def __init__(
        self, names: tuple[Hashable, ...], starts: np.ndarray, inputs: np.ndarray | None, values: np.ndarray
    ) -> None:
        self.names = names
        self.starts = starts
        self._inputs = inputs
        self.values = values

    @classmethod
    def of(cls, rows: Sequence[Mapping[Any, float]]) -> "NamedRows":
        """The batch of these dicts, whose values must be numbers."""
        if rows and all(type(x) is NamedValues and x.names is rows[0].names for x in rows):  # type: ignore[attr-defined]
            return cls.table(rows[0].names, np.stack([x.array for x in rows]))  # type: ignore[attr-defined]
        first = tuple(rows[0]) if rows else ()
        if first and all(tuple(x) == first for x in rows):
            return cls.table(first, np.array([list(x.values()) for x in rows], np.float64))
        return cls.listed(rows, np.array([value for x in rows for value in x.values()], np.float64))

    @classmethod
    def table(cls, names: tuple[Hashable, ...], values: np.ndarray) -> "NamedRows":
        """The rows of a matrix whose columns have these names."""
        n, d = values.shape
        return cls(names, np.arange(n + 1) * d, None, values.reshape(-1))

    @classmethod
    def listed(cls, rows: Sequence[Mapping[Any, Any]], values: np.ndarray) -> "NamedRows":
        """The batch of dicts of any features, whose values in turn are these."""
        places: dict[Hashable, int] = {}
        inputs = [places.setdefault(name, len(places)) for x in rows for name in x]
        starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(tuple(places), starts, np.array(inputs, np.int64), values)

    @property
    def is_table(self) -> bool:
        """Whether every row has all features in the order of `names`."""
        return self._inputs is None

    @property
    def inputs(self) -> np.ndarray:
        """The place of each value's feature in `names`."""
        return np.tile(np.arange(len(self.names)), len(self)) if self._inputs is None else self._inputs

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, i: int) -> dict[Any, float]:  # type: ignore[override] # a slice is `take`'s business
        own = slice(self.starts[i], self.starts[i + 1])
        if self.is_table:
            return dict(zip(self.names, self.values[own].tolist(), strict=True))
        names = [self.names[d] for d in self.inputs[own].tolist()]
        return dict(zip(names, self.values[own].tolist(), strict=True))

    def __iter__(self) -> Iterator[dict[Any, float]]:
        return map(self.__getitem__, range(len(self)))

    def take(self, places: Sequence[int]) -> "NamedRows":
        """The rows at these places, in this order."""
        if len(places) == len(self) and list(places) == list(range(len(self))):
            return self
        if self.is_table:
            return self.table(self.names, self.values.reshape(-1, len(self.names))[places])
        starts, inputs, values = rows_at(self.starts, self.inputs, self.values, np.asarray(places, np.int64))
        used, inputs = np.unique(inputs, return_inverse=True)
        names = tuple(self.names[d] for d in used.tolist())
        return NamedRows(names, starts, inputs.astype(np.int64), values)

    def beside(self, others: "NamedRows") -> "NamedRows":
        """These rows, and then others."""
        if not len(others) or not len(self):
            return self if len(self) else others
        if self.is_table and others.is_table and self.names == others.names:
            d = len(self.names)
            return self.table(self.names, np.concatenate([self.values, others.values]).reshape(-1, d))
        places = {name: d for d, name in enumerate(self.names)}
        renamed = np.array([places.setdefault(name, len(places)) for name in others.names], np.int64)
        own, other = (self.starts, self.inputs, self.values), (others.starts, renamed[others.inputs], others.values)
        return NamedRows(tuple(places), *joined_rows([own, other]))

    def scaled(self, scale_of: Callable[[Hashable], tuple[float, float]]) -> "NamedRows":
        """The rows with `(value - shift) * factor` in the place of each value; `scale_of` gives both for a name."""
        scales = np.array([scale_of(name) for name in self.names], np.float64).reshape(-1, 2)[self.inputs]
        with np.errstate(over="ignore"):
            values = (self.values - scales[:, 0]) * scales[:, 1]
        return NamedRows(self.names, self.starts, self._inputs, values)

    def blocks(self, at_once: int) -> Iterator["NamedRows"]:
        """The rows in parts of at most `at_once`."""
        for first in range(0, len(self), at_once):
            yield self.take(range(first, min(first + at_once, len(self))))

    def first_rows(self) -> np.ndarray:
        """The row in which each feature occurs first, (d,) int64."""
        if self.is_table:
            return np.zeros(len(self.names), np.int64)
        first = np.empty(len(self.names), np.int64)
        first[self.inputs[::-1]] = np.arange(len(self.inputs))[::-1]  # of several assignments, the last one stays
        return np.searchsorted(self.starts, first, side="right") - 1


def rows_at(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, places: np.ndarray) -> Rows:
    """The rows in these places, or those that a mask tells."""
    lengths = np.diff(starts)[places]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    own = np.repeat(starts[:-1][places] - ends[:-1], lengths) + np.arange(ends[-1])
    return ends, columns[own], values[own]


def joined_rows(parts: Sequence[Sequence[np.ndarray]]) -> Rows:
    """Rows that follow one another, from the starts, the columns and the values of each part."""
    starts, columns, values = zip(*parts, strict=True)
    ends = np.cumsum([0, *(own[-1] for own in starts)])
    after = [own[1:] + end for own, end in zip(starts, ends, strict=False)]
    return np.concatenate([ends[:1], *after]), np.concatenate(columns), np.concatenate(values)
