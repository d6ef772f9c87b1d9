"""Examples of the reservoir as arrays, and one of them as an object.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
number   how many examples had been learned before this one           (n,) int64
priority pseudorandom number that belongs to this number; distinct    (n,) uint64
id       the id                                                       (n,) int64
born     number or time of the example                                (n,) int64
positive whether it is of the positive class                          (n,) bool
box      what the coefficient may grow to, without its sign           (n,) float64
starts   example t has the features starts[t]..starts[t+1]            (n+1,) int64
columns  columns of the features other than 0, rising                 (m,) int64
values   their values, as the user gave them                          (m,) float64
======== ============================================================ ================
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from streamsvm.core.blocks import compress
from streamsvm.estimators.inputs.named_rows import Rows, joined_rows, rows_at

NO_FEATURES = np.zeros(0, np.int64), np.zeros(0)


class Kept(NamedTuple):
    """One example; the symbol table is in the module's docstring."""

    number: int
    priority: int
    id: int
    born: int
    positive: bool
    box: float
    columns: np.ndarray
    values: np.ndarray

    def __deepcopy__(self, memo: dict) -> Self:
        """Copies of a model share the examples, which never change."""
        return self


class Sample(NamedTuple):
    """Several examples; the symbol table is in the module's docstring."""

    number: np.ndarray
    priority: np.ndarray
    id: np.ndarray
    born: np.ndarray
    positive: np.ndarray
    box: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @property
    def size(self) -> int:
        """Number of examples."""
        return len(self.number)

    def n_values(self, positive: bool) -> int:
        """Number of features of the examples of a class."""
        return int(np.diff(self.starts)[self.positive == positive].sum())

    def take(self, places: np.ndarray) -> "Sample":
        """The examples in these places, or those that a mask tells."""
        fields = (field[places] for field in self[:6])
        return Sample._make([*fields, *rows_at(self.starts, self.columns, self.values, places)])

    def __deepcopy__(self, memo: dict) -> Self:
        """Copies of a model share the examples, which never change."""
        return self


_DTYPES = np.int64, np.uint64, np.int64, np.int64, bool, float  # of the fields before the rows
NOTHING = Sample._make([*(np.zeros(0, dtype) for dtype in _DTYPES), np.zeros(1, np.int64), *NO_FEATURES])


def joined(parts: Sequence[Sample]) -> Sample:
    """All examples of these parts in the order of their numbers, each number once."""
    if not parts:
        return NOTHING
    fields = [np.concatenate([part[k] for part in parts]) for k in range(6)]
    every = Sample._make([*fields, *joined_rows([part[6:] for part in parts])])
    if (np.diff(every.number) > 0).all():
        return every
    return every.take(np.unique(every.number, return_index=True)[1])


class Parts:
    """Samples that wait to be joined.

    Attributes
    ----------
    size, n_values
        Number of their examples, and of the features of these.
    largest_id
        The largest id, or one below all ids.
    """

    def __init__(self, *samples: Sample) -> None:
        self._samples: list[Sample] = []
        self.size, self.n_values, self.largest_id = 0, 0, -(2**63)
        self._ids: set[int] = set()  # of the first samples, as many as `_n_searched`
        self._n_searched = 0
        for sample in samples:
            self.add(sample)

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        if sample.size:
            self._samples.append(sample)
            self.size, self.n_values = self.size + sample.size, self.n_values + len(sample.values)
            self.largest_id = max(self.largest_id, int(sample.id.max()))

    def joined(self) -> Sample:
        """All examples in the order of their numbers, each number once."""
        return self._samples[0] if len(self._samples) == 1 else joined(self._samples)

    def holds(self, ids: np.ndarray) -> bool:
        """Whether an example has one of these ids."""
        if not self.size or ids.min(initial=self.largest_id + 1) > self.largest_id:
            return False
        for sample in self._samples[self._n_searched :]:
            self._ids.update(sample.id.tolist())
        self._n_searched = len(self._samples)
        return not self._ids.isdisjoint(ids.tolist())


def of_examples(examples: Sequence[Kept]) -> Sample:
    """These examples as arrays."""
    if not examples:
        return NOTHING
    *fields, columns, values = zip(*examples, strict=True)
    arrays = [np.array(field, dtype) for field, dtype in zip(fields, _DTYPES, strict=True)]
    starts = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return Sample._make([*arrays, starts, np.concatenate(columns), np.concatenate(values)])


def examples_of(sample: Sample) -> Iterator[Kept]:
    """The examples of a sample one by one, with arrays of their own."""
    fields = [field.tolist() for field in sample[:6]]
    ends = list(itertools.pairwise(sample.starts.tolist()))
    rows = [[array[begin:end].copy() for begin, end in ends] for array in (sample.columns, sample.values)]
    return map(Kept, *fields, *rows) if sample.size else iter(())


# ---------------------------------------------------------------------------------------------------- rows of a block


def sparse_rows(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, places: np.ndarray) -> Rows:
    """Some rows of compressed ones, each with features in any order."""
    n, nnz = len(places), int(np.diff(starts)[places].sum())
    ends, rising, used = np.zeros(n + 1, np.int64), np.empty(nnz, np.int64), np.empty(nnz)
    nnz = compress(starts, columns, values, places, ends, rising, used, np.empty(n))
    return ends, rising[:nnz], used[:nnz]
