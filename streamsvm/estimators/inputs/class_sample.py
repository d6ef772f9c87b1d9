"""The sample of one class: its examples with the smallest priorities."""

import heapq
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from streamsvm.core.blocks import BLOCK
from streamsvm.core.hashing import STEP, spread
from streamsvm.estimators.inputs.sample import Kept

MAX_VALUES = 2**21  # of each class: 32 MB.  Where features are many, fewer examples stay.
ANY = int(np.iinfo(np.uint64).max)  # an upper limit of priorities that keeps none out


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
