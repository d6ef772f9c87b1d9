"""A sample of the examples that were learned, half of it for each class.

`finish` and `forget` look there for examples that the members no longer represent.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
number   how many examples had been learned before this one           int
priority pseudorandom number that belongs to this number; distinct    int below 2^64
columns  columns of the features other than 0, rising                 (d,) int64
values   their values, as the user gave them                          (d,) float64
box      what the example's coefficient may grow to, without its sign float
======== ============================================================ ================

The examples of a class with the smallest priorities stay.  So each example of a class is as likely to stay as any
other, and the sample depends neither on a random state nor on how the stream was cut into batches.  An example that is
forgotten, or too old for the window, leaves room for the next one of its class.

An interruption may come at any moment.  The example that it met is then noted again: this changes nothing more.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple, Self

import numpy as np

from streamsvm.core.blocks import LARGEST_SQUARED_NORM
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, Kernel, self_products
from streamsvm.core.saving.integrity import LARGEST_BOX
from streamsvm.core.saving.snapshot import LARGEST_COUNT, Arrays, require, require_array, require_finite

MAX_VALUES = 2**21  # of each class: 32 MB.  Where features are many, fewer examples stay.
AHEAD = 256  # numbers whose priorities are computed together
ANY = 2**64 - 1  # an upper limit of priorities that keeps none out
_FIRST = np.zeros(1, np.int64)  # the place of the first row
PREFIX = "reservoir."  # of the arrays in a snapshot

Row = tuple[np.ndarray, np.ndarray]  # columns, rising, and values other than 0
RowsOf = Callable[[np.ndarray], list[Row]]  # the rows of the examples in these places of a block


class Kept(NamedTuple):
    """An example of the reservoir; the symbol table is in the module's docstring."""

    priority: int
    number: int
    id: int
    born: int
    positive: bool
    box: float
    columns: np.ndarray
    values: np.ndarray

    def __deepcopy__(self, memo: dict) -> Self:
        """Copies of a model share the examples, which never change."""
        return self


def priorities(numbers: np.ndarray) -> np.ndarray:
    """The priority of each number, (n,) uint64: SplitMix64, which gives different numbers different ones."""
    z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class _Class:
    """The sample of one class.

    Attributes
    ----------
    kept
        The examples by id.
    room
        How many there may be.
    most
        The priority below which examples stay even if there is room: above it, a pooled sample has none.
    limit
        The priority below which the next example stays; after an interruption it may be too large, which `put` mends.
    n_put
        How often an example was added.
    """

    def __init__(self, room: int) -> None:
        self.kept: dict[int, Kept] = {}
        self.room = room
        self.most = ANY if room else 0
        self.limit = self.most
        self.n_put = 0
        self._largest: list[tuple[int, int]] = []  # a heap of -priority and id, also of some that have left
        self._n_values = 0  # at least as many as there are

    def put(self, example: Kept) -> None:
        """Add an example, and let those with the largest priorities leave if there is no room."""
        kept = self.kept
        self.n_put += 1
        self._n_values += len(example.values)
        heapq.heappush(self._largest, (-example.priority, example.id))
        kept[example.id] = example
        if self._n_values > MAX_VALUES:
            self._narrow()
        while len(kept) > self.room:
            del kept[self._last().id]
        if len(self._largest) > 2 * len(kept) + AHEAD:
            self._largest = sorted((-other.priority, other.id) for other in kept.values())
        self.limit = self.most if len(kept) < self.room else self._last().priority if kept else 0

    def drop(self, id: int) -> None:
        """Drop the example with this id, if there is one."""
        if id in self.kept:
            self.limit = self.most
            del self.kept[id]

    def reach(self) -> int:
        """The priority below which every example of the stream has stayed."""
        return self.most if len(self.kept) < self.room else self.limit

    def _last(self) -> Kept:
        """The example with the largest priority."""
        while True:
            priority, of_id = self._largest[0]
            example = self.kept.get(of_id)
            if example is not None and example.priority == -priority:
                return example
            heapq.heappop(self._largest)

    def _narrow(self) -> None:
        """Leave room for as many examples as `MAX_VALUES` allows, for good."""
        by_priority = sorted(self.kept.values(), key=lambda example: example.priority)
        sizes = np.cumsum([len(example.values) for example in by_priority])
        fitting = int(np.searchsorted(sizes, MAX_VALUES, "right"))
        if fitting < len(sizes):
            self.room = fitting
        self._n_values = int(sizes[fitting - 1]) if fitting else 0


class Reservoir:
    """A sample of the examples that were learned.

    Parameters
    ----------
    size
        Number of examples, half of them for each class; 0 and 1: none.
    span
        The age at which examples leave, as a count or in microseconds; None: they stay.
    """

    def __init__(self, size: int, span: int | None = None) -> None:
        self._classes = (_Class(size // 2), _Class(size // 2))
        self._span = span
        self._oldest: list[tuple[int, int]] = []  # a heap of ages and ids, also of some that have left
        self._n_noted = 0
        self._is_pooled = False  # whether priorities do not follow from the numbers
        self._ahead: tuple[int, list[int]] = (-1, [])  # a number, and the priorities from it on
        self._last = (np.zeros(0, np.int64),) * 3  # the columns of the last example, their order, in this order

    def __len__(self) -> int:
        return sum(len(own.kept) for own in self._classes)

    def __iter__(self) -> Iterator[Kept]:
        """The examples in the order in which they were learned."""
        every = [example for own in self._classes for example in own.kept.values()]
        return iter(sorted(every, key=attrgetter("number")))

    def __contains__(self, example: Kept) -> bool:
        return self._classes[example.positive].kept.get(example.id) is example

    @property
    def n_put(self) -> int:
        """How often an example was added: as long as that does not change, examples only leave."""
        return sum(own.n_put for own in self._classes)

    # ---------------------------------------------------------------------------------------------- what was learned

    def note(
        self,
        number: int,
        id: int,
        born: int,
        now: int,
        positive: bool,
        box: float,
        columns: np.ndarray,
        values: np.ndarray,
    ) -> None:
        """Note an example that was learned, unless it has been noted.  Its features may be in any order.

        `born` and `now` are its number or time, and the largest so far.  An example with an empty box is not kept.
        """
        self._note(number, id, born, now, positive, box, lambda: self._compact(columns, values))

    def _note(
        self, number: int, id: int, born: int, now: int, positive: bool, box: float, row: Callable[[], Row]
    ) -> None:
        if number < self._n_noted:
            return
        if self._span is not None:
            self._drop_old(now - self._span)
        if box > 0.0:
            self._drop(id)
            own, priority = self._classes[positive], self._priority(number)
            if priority < own.limit:
                if self._span is not None:
                    self._push_age(born, id)
                own.put(Kept(priority, number, id, born, positive, float(box), *row()))
        self._n_noted = number + 1

    def note_block(
        self,
        first: int,
        ids: np.ndarray,
        born: np.ndarray,
        now: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
        rows_of: RowsOf,
    ) -> None:
        """Note examples that were learned, from number `first` on, each as `note` would.  Their ids are distinct."""
        positive, box, numbers = hi > 0.0, hi - lo, first + np.arange(len(ids))
        own_ids = ids.tolist()
        if self._span is not None or any(not own.kept.keys().isdisjoint(own_ids) for own in self._classes):
            for t, own_id in enumerate(own_ids):  # Examples leave meanwhile, so there will be more room.
                age, latest, label, largest = born[t].item(), now[t].item(), bool(positive[t]), box[t].item()
                self._note(first + t, own_id, age, latest, label, largest, partial(_row_at, rows_of, t))
            return
        order = priorities(numbers)
        limits = np.array([own.limit for own in self._classes], np.uint64)
        heeded = (order < limits[positive.astype(np.int64)]) & (box > 0.0) & (numbers >= self._n_noted)
        places = np.flatnonzero(heeded)
        columns, values = zip(*rows_of(places), strict=True) if len(places) else ((), ())
        fields = [array[places].tolist() for array in (order, numbers, ids, born, positive, box)]
        for example in map(Kept, *fields, columns, values):
            self._classes[example.positive].put(example)
        self._n_noted = max(self._n_noted, first + len(ids))

    def _compact(self, columns: np.ndarray, values: np.ndarray) -> Row:
        """The features other than 0 in the order of their columns.  Examples with the same columns share theirs."""
        if columns is not self._last[0]:
            order = np.argsort(columns)
            self._last = (columns, order, columns[order].astype(np.int64))
        _, order, rising = self._last
        return _without_zeros(rising, values[order].astype(np.float64, copy=False))

    def _priority(self, number: int) -> int:
        first, ahead = self._ahead
        if not 0 <= number - first < len(ahead):
            first, ahead = self._ahead = number, priorities(np.arange(number, number + AHEAD)).tolist()
        return ahead[number - first]

    # ------------------------------------------------------------------------------------------- what leaves or changes

    def forget(self, ids: np.ndarray) -> None:
        """Drop the examples with these ids."""
        for own_id in ids.tolist():
            self._drop(own_id)

    def relabel(self, id: int, positive: bool, factor: float) -> None:
        """Move an example to this class if it is in the other one, its box times `factor`."""
        example = self._classes[not positive].kept.get(id)
        if example is not None:
            if example.priority < self._classes[positive].limit:
                self._classes[positive].put(example._replace(positive=positive, box=example.box * factor))
            self._classes[not positive].drop(id)

    def _drop(self, id: int) -> None:
        for own in self._classes:
            own.drop(id)

    def _push_age(self, born: int, id: int) -> None:
        heapq.heappush(self._oldest, (born, id))
        if len(self._oldest) > 2 * len(self) + AHEAD:
            self._oldest = sorted([(born, id), *((example.born, example.id) for example in self)])

    def _drop_old(self, edge: int) -> None:
        """Drop the examples with a number or time up to `edge`."""
        while self._oldest and self._oldest[0][0] <= edge:
            for own in self._classes:
                example = own.kept.get(self._oldest[0][1])
                if example is not None and example.born <= edge:
                    own.drop(example.id)
            heapq.heappop(self._oldest)

    # --------------------------------------------------------------------------------------------------------- pooling

    def pool(self, reservoirs: Sequence[Self], examples: Sequence[Kept], n_noted: int) -> None:
        """Take over the samples of other reservoirs, as one sample of all the `n_noted` examples that they have noted.

        Each of them holds the examples of its stream with the smallest priorities.  So all of them together hold those
        of the whole stream, up to the smallest limit of one.  `examples` are theirs, in a form that suits this one.
        """
        for positive, own in enumerate(self._classes):
            own.most = min([own.most, *(other._classes[positive].reach() for other in reservoirs)])
            own.limit = own.most
        for number, example in enumerate(sorted(examples, key=attrgetter("priority", "id"))):
            own = self._classes[example.positive]
            if example.priority < own.limit:
                own.put(example._replace(number=number))
                if self._span is not None:
                    self._push_age(example.born, example.id)
        self._n_noted, self._is_pooled = n_noted, True

    # ------------------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> dict[str, np.ndarray]:
        """The arrays of a snapshot."""
        examples = list(self)
        arrays = {
            "rooms": np.array([own.room for own in self._classes]),
            "numbers": np.array([example.number for example in examples], np.int64),
            "ids": np.array([example.id for example in examples], np.int64),
            "born": np.array([example.born for example in examples], np.int64),
            "positive": np.array([example.positive for example in examples], bool),
            "boxes": np.array([example.box for example in examples], np.float64),
            "starts": np.cumsum([0, *(len(example.values) for example in examples)], dtype=np.int64),
            "columns": np.concatenate([np.zeros(0, np.int64), *(example.columns for example in examples)]),
            "values": np.concatenate([np.zeros(0), *(example.values for example in examples)]),
        }
        if self._is_pooled:
            arrays["priorities"] = np.array([example.priority for example in examples], np.uint64)
            arrays["most"] = np.array([own.most for own in self._classes], np.uint64)
        return {PREFIX + name: array for name, array in arrays.items()}

    def restore(self, arrays: Arrays, kernel: Kernel | None, n_features: int, n_seen: int) -> None:
        """Take over the examples of a snapshot; `kernel` is None if it sees other features than the reservoir.

        Raises
        ------
        SnapshotError
            If these are not the arrays of a reservoir of this size.
        """
        own = {name.removeprefix(PREFIX): array for name, array in arrays.items() if name.startswith(PREFIX)}
        self._n_noted = n_seen
        if not own:  # written by version 0.1.0
            return
        _validate(own, kernel, n_features, n_seen)
        for of_class, room in zip(self._classes, own["rooms"].tolist(), strict=True):
            require(0 <= room <= of_class.room, f"its reservoir has room for {room} examples of a class")
            of_class.room = room
        self._is_pooled = "priorities" in own
        if self._is_pooled:
            for of_class, most in zip(self._classes, own["most"].tolist(), strict=True):
                of_class.most = min(of_class.most, most)
        places = (own["priorities"] if self._is_pooled else priorities(own["numbers"])).tolist()
        starts = own["starts"].tolist()
        names = ("numbers", "ids", "born", "positive", "boxes")
        numbers, ids, born, positive, boxes = (own[name].tolist() for name in names)
        for t, priority in enumerate(places):
            row = slice(starts[t], starts[t + 1])
            features = own["columns"][row].copy(), own["values"][row].copy()
            example = Kept(priority, numbers[t], ids[t], born[t], positive[t], boxes[t], *features)
            self._classes[example.positive].put(example)
            if self._span is not None:
                self._push_age(example.born, example.id)
        rooms = [of_class.room for of_class in self._classes]
        require(len(self) == len(starts) - 1 and rooms == own["rooms"].tolist(), "its reservoir has too many examples")


def _row_at(rows_of: RowsOf, t: int) -> Row:
    return rows_of(np.array([t]))[0]


def _without_zeros(columns: np.ndarray, values: np.ndarray) -> Row:
    """The features other than 0; with all of them, these arrays themselves."""
    if np.count_nonzero(values) == len(values):
        return columns, values
    used = values != 0.0
    return columns[used], values[used]


def dense_rows(columns: np.ndarray, block: np.ndarray, places: np.ndarray) -> list[Row]:
    """Rows of a block whose input d is the feature columns[d].  They share the columns where no value is 0."""
    order = np.argsort(columns)
    rising = columns[order].astype(np.int64)
    rows = block[places][:, order].astype(np.float64)
    is_full = (rows != 0.0).all(axis=1).tolist()
    return [
        (rising, values.copy()) if full else _without_zeros(rising, values)
        for full, values in zip(is_full, rows, strict=True)
    ]


def listed_rows(rows: Sequence[tuple[np.ndarray, np.ndarray]], places: np.ndarray) -> list[Row]:
    """Some of these rows, each with features in any order."""
    return [dense_rows(columns, values[None], _FIRST)[0] for columns, values in (rows[t] for t in places.tolist())]


def sparse_rows(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, places: np.ndarray) -> list[Row]:
    """Some rows of compressed ones, each with features in any order."""
    owns = [slice(starts[t], starts[t + 1]) for t in places.tolist()]
    return listed_rows([(columns[own], values[own]) for own in owns], np.arange(len(owns)))


def _validate(arrays: Arrays, kernel: Kernel | None, n_features: int, n_seen: int) -> None:
    """Check that these are the arrays of a reservoir, as `integrity.validate` does for those of an expansion."""
    numbers = require_array(arrays, "numbers", np.int64, (None,))
    n = len(numbers)
    for name, dtype in (("ids", np.int64), ("born", np.int64), ("positive", np.bool_), ("boxes", np.float64)):
        require_array(arrays, name, dtype, (n,))
    require_array(arrays, "rooms", np.int64, (2,))
    if "priorities" in arrays:
        require_array(arrays, "priorities", np.uint64, (n,))
        most = require_array(arrays, "most", np.uint64, (2,))
        of_class = most[arrays["positive"].astype(np.int64)]
        require(np.all(arrays["priorities"] < of_class), "a priority of its reservoir is above the largest")
    starts = require_array(arrays, "starts", np.int64, (n + 1,))
    require(starts[0] == 0 and np.all(np.diff(starts) >= 0), "'starts' of its reservoir does not rise from 0")
    columns = require_array(arrays, "columns", np.int64, (int(starts[-1]),))
    values = require_array(arrays, "values", np.float64, (int(starts[-1]),))
    require(np.all(np.diff(numbers) > 0), "the numbers of its reservoir do not rise")
    require(n == 0 or (numbers[0] >= 0 and numbers[-1] < n_seen), f"an example's number is not below n_seen={n_seen}")
    require(len(np.unique(arrays["ids"])) == n, "an id is twice in its reservoir")
    require(np.all(np.abs(arrays["born"].astype(np.float64)) <= LARGEST_COUNT), "an example's age is too large")
    require_finite(arrays, "boxes", "values")
    require(np.all((arrays["boxes"] > 0.0) & (arrays["boxes"] <= LARGEST_BOX)), "a box of its reservoir is invalid")
    require(np.all((columns >= 0) & (columns < n_features)), f"a feature is not among {n_features}")
    row = np.repeat(np.arange(n), np.diff(starts))
    require(np.all((np.diff(columns) > 0) | (np.diff(row) > 0)), "the features of an example are not in order")
    sq = np.bincount(row, values**2, n)
    require(np.all(values != 0.0) and np.all(sq < LARGEST_SQUARED_NORM), "a feature is 0 or too large")
    if kernel is not None:
        require(np.all(np.abs(self_products(kernel, sq)) <= LARGEST_KERNEL_VALUE), "a kernel value is too large")
