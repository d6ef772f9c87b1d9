"""A sample of the examples that were learned, half of it for each class.

`finish` and `forget` look there for examples that the members no longer represent.  `sample` has the symbol table.

The examples of a class with the smallest priorities stay.  So each example of a class is as likely to stay as any
other, and the sample depends neither on a random state nor on how the stream was cut into batches.  An example that is
forgotten, or too old for the window, leaves room for the next one of its class.

Examples that come in batches are kept as arrays, in parts.  The parts are joined and cut to size when the sample is
read, or when they hold twice as many examples as may stay.  Examples that come one by one are objects in a dict.  So
are those of a window for which there may be no room.  The arrays of earlier batches then become objects, too.

An interruption may come at any moment.  The interrupted example is then noted again, which changes nothing more.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter

import numpy as np

from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, Kernel, self_products
from streamsvm.core.saving.faults import LARGEST_MERGED_BOX
from streamsvm.core.saving.rows import require_rows
from streamsvm.core.saving.snapshot import LARGEST_COUNT, Arrays, every, require, require_array
from streamsvm.core.scaling.state import RawRows
from streamsvm.estimators.inputs.sample import (
    MAX_VALUES,
    ClassSample,
    Kept,
    Parts,
    Sample,
    examples_of,
    of_examples,
    priorities,
    priority_of,
    sparse_rows,
)

PREFIX = "reservoir."  # of the arrays in a snapshot
SAVED = ("numbers", "ids", "born", "positive", "boxes", "starts", "columns", "values")  # those of `Sample`, in order

Row = tuple[np.ndarray, np.ndarray]  # columns, rising, and values other than 0


class Reservoir:
    """A sample of the examples that were learned.

    Parameters
    ----------
    size
        Number of examples, half of them for each class; 0 and 1: none.
    span
        The age at which examples leave, as a count or in microseconds; None: they stay.
    by_time
        Whether it is in microseconds.

    Attributes
    ----------
    n_put
        How often examples were added: as long as that does not change, examples only leave.
    """

    def __init__(self, size: int, span: int | None = None, by_time: bool = True) -> None:
        self._classes = tuple(ClassSample(size // 2, span is not None) for _ in range(2))
        self._span, self._by_time = span, by_time
        self._edge = -LARGEST_COUNT  # number or time up to which examples are too old, by the last block
        self._parts = Parts()  # examples beside those of `_classes`, not all of which stay
        self.n_put = 0
        self._n_noted = 0
        self._is_pooled = False  # whether priorities do not follow from the numbers
        self._last = (np.zeros(0, np.int64),) * 3  # the columns of the last example, their order, in this order

    def __len__(self) -> int:
        return self.sample().size

    def __iter__(self) -> Iterator[Kept]:
        """The examples in the order in which they were learned."""
        return examples_of(self.sample())

    def sample(self) -> Sample:
        """The examples in the order in which they were learned, as arrays."""
        if self._join():
            return self._parts.joined()
        self._settle()
        examples = [example for own in self._classes for example in own.kept.values()]
        return of_examples(sorted(examples, key=attrgetter("number")))

    def _join(self) -> bool:
        """Make one part of all, of the examples that stay; only if there are none beside the parts."""
        if any(own.kept for own in self._classes):
            return False
        every = self._young()
        stay = np.zeros(every.size, bool)
        for positive, own in enumerate(self._classes):
            places = np.flatnonzero(every.positive == bool(positive))
            if len(places) > own.room or (len(places) == own.room and self._span is None):
                places = places[np.argsort(every.priority[places])[: own.room]]
                own.limit = int(every.priority[places[-1]]) if own.room else 0
            own.n_values = 0
            stay[places] = True
        self._parts = Parts(every if stay.all() else every.take(stay))
        return True

    def _young(self) -> Sample:
        """The examples in parts, without those that are too old."""
        every = self._parts.joined()
        stay = every.born > self._edge
        return every if stay.all() else every.take(stay)

    def _settle(self) -> None:
        """Make objects of the examples in parts, and drop those that are too old."""
        self._drop_old(self._edge)
        if self._parts.size:
            self._make_objects(self._young())
            self._parts = Parts()

    def _make_objects(self, sample: Sample) -> None:
        examples = list(examples_of(sample))
        for positive, own in enumerate(self._classes):
            own.put([example for example in examples if example.positive == bool(positive)])

    def holds(self, examples: Sample, places: np.ndarray) -> np.ndarray:
        """Which of the examples in these places are here, (n,) bool."""
        self._settle()
        rows = zip(
            *(field[places].tolist() for field in (examples.number, examples.id, examples.positive)), strict=True
        )
        own = [(number, self._classes[positive].kept.get(of_id)) for number, of_id, positive in rows]
        return np.array([kept is not None and kept.number == number for number, kept in own], bool)

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
        if number < self._n_noted:
            return
        if self._parts.size:
            self._settle()
        if self._span is not None:
            self._drop_old(now - self._span)
        if box > 0.0:
            self._drop(id)
            own, priority = self._classes[positive], priority_of(number)
            if priority < own.limit:
                self.n_put += 1
                own.put([Kept(number, priority, id, born, positive, float(box), *self._compact(columns, values))])
        self._n_noted = number + 1

    def note_block(
        self,
        first: int,
        ids: np.ndarray,
        born: np.ndarray,
        now: np.ndarray,
        lo: np.ndarray,
        hi: np.ndarray,
        rows: RawRows,
    ) -> None:
        """Note examples that were learned, from number `first` on, each as `note` would."""
        positive, box, numbers = hi > 0.0, hi - lo, first + np.arange(len(ids))
        if self._stay_together() and self._are_new(ids):
            order = priorities(numbers)
            limits = np.array([own.limit for own in self._classes], np.uint64)
            counted = (order < limits[positive.astype(np.int64)]) & (box > 0.0) & (numbers >= self._n_noted)
            places = np.flatnonzero(counted)
            fields = (array[places] for array in (numbers, order, ids, born, positive, box))
            part = Sample._make([*fields, *sparse_rows(*rows[:3], places)])
            if self._has_room(part):
                self.n_put += part.size
                self._parts.add(part)
                self._n_noted = max(self._n_noted, first + len(ids))
                if self._span is not None and len(ids):
                    self._edge = int(now[-1]) - self._span
                return
        for t, own_id in enumerate(ids.tolist()):  # Examples leave meanwhile, so there will be more room.
            age, latest, label, largest = born[t].item(), now[t].item(), bool(positive[t]), box[t].item()
            own = slice(rows.indptr[t], rows.indptr[t + 1])
            self.note(first + t, own_id, age, latest, label, largest, rows.columns[own], rows.values[own])

    def _stay_together(self) -> bool:
        """Whether it does not matter when old examples leave: there is no window, or room for all examples of it."""
        return self._span is None or (not self._by_time and self._span <= min(own.room for own in self._classes))

    def _are_new(self, ids: np.ndarray) -> bool:
        """Whether no example has one of these ids, and none of them is there twice."""
        twice = not (np.diff(ids) > 0).all() and len(np.unique(ids)) < len(ids)
        if twice or self._parts.holds(ids):
            return False
        return all(own.kept.keys().isdisjoint(ids.tolist()) for own in self._classes if own.kept)

    def _has_room(self, part: Sample) -> bool:
        """Whether a part fits beside the others, which are joined or become objects if they are many.

        It does not if a class can have more than `MAX_VALUES` features with it.
        """
        n, room = self._parts.size + part.size, sum(own.room for own in self._classes)
        many = n > 2 * (room if self._span is None else min(room, self._span))
        if (many or not self._fits(part)) and not self._join():
            self._settle()
            for own in self._classes:
                own.narrow()
        return self._fits(part)

    def _fits(self, part: Sample) -> bool:
        """Whether neither class can have more than `MAX_VALUES` features with this part."""
        if max(own.n_values for own in self._classes) + self._parts.n_values + len(part.values) <= MAX_VALUES:
            return True
        parts = self._parts.joined(), part
        return all(
            own.n_values + sum(other.n_values(bool(positive)) for other in parts) <= MAX_VALUES
            for positive, own in enumerate(self._classes)
        )

    def _compact(self, columns: np.ndarray, values: np.ndarray) -> Row:
        """The features other than 0 in the order of their columns.  Examples with the same columns share theirs."""
        if columns is not self._last[0]:
            order = np.argsort(columns)
            self._last = (columns, order, columns[order].astype(np.int64))
        _, order, rising = self._last
        ordered = values[order].astype(np.float64, copy=False)
        if np.count_nonzero(ordered) == len(ordered):
            return rising, ordered
        used = ordered != 0.0
        return rising[used], ordered[used]

    # ------------------------------------------------------------------------------------------- what leaves or changes

    def forget(self, ids: np.ndarray) -> None:
        """Drop the examples with these ids."""
        self._settle()
        for own_id in ids.tolist():
            self._drop(own_id)

    def relabel(self, id: int, positive: bool, factor: float) -> None:
        """Move an example to this class if it is in the other one, its box times `factor`."""
        self._settle()
        example = self._classes[not positive].kept.get(id)
        if example is not None:
            if example.priority < self._classes[positive].limit:
                self.n_put += 1
                self._classes[positive].put([example._replace(positive=positive, box=example.box * factor)])
            self._classes[not positive].drop(id)

    def _drop(self, id: int) -> None:
        for own in self._classes:
            own.drop(id)

    def _drop_old(self, edge: int) -> None:
        """Drop the objects with a number or time up to `edge`."""
        for own in self._classes:
            own.drop_old(edge)

    # --------------------------------------------------------------------------------------------------------- pooling

    def pool(self, reservoirs: Sequence["Reservoir"], examples: Sample, n_noted: int) -> None:
        """Take over the samples of other reservoirs, as one sample of all the `n_noted` examples that they have noted.

        Each of them holds the examples of its stream with the smallest priorities.  So all of them together hold those
        of the whole stream, up to the smallest limit of one.  `examples` are theirs, in a form that suits this one.
        """
        reached = [other._reached() for other in reservoirs]
        for own, limits in zip(self._classes, zip(*reached, strict=True), strict=True):
            own.most = own.limit = min(own.most, *limits)
        most = np.array([own.most for own in self._classes], np.uint64)
        chosen = examples.take(examples.priority < most[examples.positive.astype(np.int64)])
        chosen = chosen.take(np.lexsort((chosen.id, chosen.priority)))
        self._put(chosen._replace(number=np.arange(chosen.size)))
        self._n_noted, self._is_pooled = n_noted, True

    def _reached(self) -> list[int]:
        """For each class, the priority below which all its examples have stayed."""
        positive = self.sample().positive
        counts = np.count_nonzero(~positive), np.count_nonzero(positive)
        return [own.limit if n >= own.room else own.most for own, n in zip(self._classes, counts, strict=True)]

    def _put(self, sample: Sample) -> None:
        self._make_objects(sample)
        self.n_put += sample.size

    # ------------------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> dict[str, np.ndarray]:
        """The arrays of a snapshot."""
        sample = self.sample()
        arrays = {"rooms": np.array([own.room for own in self._classes])}
        arrays |= dict(zip(SAVED, (*sample[:1], *sample[2:]), strict=True))
        if self._is_pooled:
            arrays["priorities"] = sample.priority
            arrays["most"] = np.array([own.most for own in self._classes], np.uint64)
        return {PREFIX + name: array for name, array in arrays.items()}

    def restore(self, arrays: Arrays, kernel: Kernel | None, n_features: int, n_seen: int) -> None:
        """Take over the examples of a snapshot; `kernel` is None if it sees other features than the reservoir.

        Raises
        ------
        SnapshotError
            If these are not the arrays of a reservoir of this size.
        """
        names = ("rooms", *SAVED, "priorities", "most")
        own = {name: arrays[PREFIX + name] for name in names if PREFIX + name in arrays}
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
        numbers, *others = (own[name] for name in SAVED)
        sample = Sample._make([numbers, own["priorities"] if self._is_pooled else priorities(numbers), *others])
        self._put(sample)
        rooms = [of_class.room for of_class in self._classes]
        n_kept = sum(len(of_class.kept) for of_class in self._classes)
        require(n_kept == sample.size and rooms == own["rooms"].tolist(), "its reservoir has too many examples")


def _validate(arrays: Arrays, kernel: Kernel | None, n_features: int, n_seen: int) -> None:
    """Check that these are the arrays of a reservoir, as `integrity` does for those of an expansion."""
    numbers = require_array(arrays, "numbers", np.int64, (None,))
    n = len(numbers)
    for name, dtype in (("ids", np.int64), ("born", np.int64), ("positive", np.bool_), ("boxes", np.float64)):
        require_array(arrays, name, dtype, (n,))
    require_array(arrays, "rooms", np.int64, (2,))
    if "priorities" in arrays:
        priority = require_array(arrays, "priorities", np.uint64, (n,))
        most = require_array(arrays, "most", np.uint64, (2,))
        require(
            (priority < most[arrays["positive"].astype(np.int64)]).all(), "a priority of its reservoir is too large"
        )
    require(every(numbers[1:] > numbers[:-1]), "the numbers of its reservoir do not rise")
    is_past = n == 0 or (numbers[0] >= 0 and numbers[-1] < n_seen)
    require(is_past, f"an example's number is not below n_seen={n_seen}")
    require(len(set(arrays["ids"].tolist())) == n, "an id is twice in its reservoir")
    require(every(np.abs(arrays["born"].astype(np.float64)) <= LARGEST_COUNT), "an example's age is too large")
    boxes = arrays["boxes"]
    require(every((boxes > 0.0) & (boxes <= LARGEST_MERGED_BOX)), "a box of its reservoir is invalid")
    sq = require_rows(arrays, n, n_features)
    if kernel is not None:
        require(every(np.abs(self_products(kernel, sq)) <= LARGEST_KERNEL_VALUE), "a kernel value is too large")
