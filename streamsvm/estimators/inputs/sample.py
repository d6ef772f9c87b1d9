"""Examples of the reservoir: several as arrays, one as an object, and those of a class with the smallest priorities.

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

import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from streamsvm.core.blocks import BLOCK, compress
from streamsvm.core.hashing import STEP, spread
from streamsvm.estimators.inputs.named_rows import Rows, joined_rows, rows_at

MAX_VALUES = 2**21  # of each class: 32 MB.  Where features are many, fewer examples stay.
ANY = int(np.iinfo(np.uint64).max)  # an upper limit of priorities that keeps none out
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


# ------------------------------------------------------------------------------------------------------------ one class


def priorities(numbers: np.ndarray) -> np.ndarray:
    """The priority of each number, (n,) uint64: SplitMix64, which gives different numbers different ones."""
    return spread((numbers.astype(np.uint64) + np.uint64(1)) * STEP)


def priority_of(number: int) -> int:
    """The priority of one number."""
    return _priorities_of_block(number // BLOCK)[number % BLOCK]


@lru_cache(maxsize=256)
def _priorities_of_block(block: int) -> list[int]:
    """The priorities of a block of numbers, which thousands of models by key share."""
    return priorities(np.arange(BLOCK) + block * BLOCK).tolist()


class ClassSample:
    """The sample of one class; `ages` tells whether `drop_old` will be called.

    Attributes
    ----------
    kept
        The examples by id.
    room
        How many there may be.
    most
        The priority below which examples stay even if there is room: above it, a pooled sample has none.
    limit
        The priority below which the next example stays; it may be too large, which `put` mends.
    n_values
        Number of their features; it may be too large, which `narrow` mends.
    """

    def __init__(self, room: int, ages: bool) -> None:
        self.kept: dict[int, Kept] = {}
        self.room = room
        self.most = ANY if room else 0
        self.limit = self.most
        self._largest: list[tuple[int, int]] = []  # a heap of -priority and id, also of some that have left
        self._oldest: list[tuple[int, int]] = []  # the same of ages and ids, if the old ones leave
        self._ages = ages
        self.n_values = 0

    def put(self, examples: Iterable[Kept]) -> None:
        """Add examples, and let those with the largest priorities leave if there is no room."""
        kept = self.kept
        for example in examples:
            self.n_values += len(example.values)
            heapq.heappush(self._largest, (-example.priority, example.id))
            if self._ages:
                heapq.heappush(self._oldest, (example.born, example.id))
            kept[example.id] = example
        if self.n_values > MAX_VALUES:
            self.narrow()
        while len(kept) > self.room:
            del kept[self._last().id]
        if max(len(self._largest), len(self._oldest)) > 2 * self.room:
            self._largest = sorted((-other.priority, other.id) for other in kept.values())
            self._oldest = sorted((other.born, other.id) for other in kept.values() if self._ages)
        self.limit = self.most if len(kept) < self.room else self._last().priority if kept else 0

    def drop(self, id: int) -> None:
        """Drop the example with this id, if there is one."""
        if id in self.kept:
            self.limit = self.most
            del self.kept[id]

    def drop_old(self, edge: int) -> None:
        """Drop the examples with a number or time up to `edge`."""
        while self._oldest and self._oldest[0][0] <= edge:
            example = self.kept.get(self._oldest[0][1])
            if example is not None and example.born <= edge:
                self.drop(example.id)
            heapq.heappop(self._oldest)

    def _last(self) -> Kept:
        """The example with the largest priority."""
        while True:
            priority, of_id = self._largest[0]
            example = self.kept.get(of_id)
            if example is not None and example.priority == -priority:
                return example
            heapq.heappop(self._largest)

    def narrow(self) -> None:
        """Leave room for as many examples as `MAX_VALUES` allows, for good."""
        by_priority = sorted(self.kept.values(), key=lambda example: example.priority)
        sizes = np.cumsum([len(example.values) for example in by_priority])
        fitting = int(np.searchsorted(sizes, MAX_VALUES, "right"))
        if fitting < len(sizes):
            self.room = fitting
        self.n_values = int(sizes[fitting - 1]) if fitting else 0


# ---------------------------------------------------------------------------------------------------- rows of a block


def sparse_rows(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, places: np.ndarray) -> Rows:
    """Some rows of compressed ones, each with features in any order."""
    n, nnz = len(places), int(np.diff(starts)[places].sum())
    ends, rising, used = np.zeros(n + 1, np.int64), np.empty(nnz, np.int64), np.empty(nnz)
    nnz = compress(starts, columns, values, places, ends, rising, used, np.empty(n))
    return ends, rising[:nnz], used[:nnz]
