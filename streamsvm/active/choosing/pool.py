"""Pools: the examples without a label, from which the next question is chosen.

A pool hands out the *keys* of its examples, and the rows of those that are scored together.  A call that draws takes
the random generator: the outcome depends on the states of the pool and the generator only.
"""

from abc import ABC, abstractmethod
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.validation.rows import indexable, picked

EMPTY = "the pool is empty: there is no example left to ask about"


class Pool(ABC):
    """The examples without a label: their keys, and the rows that belong to them.

    A pool of another kind says what `rows` are.  The keys have an order, which is part of the pool's state.
    """

    def __init__(self) -> None:
        self._fill(())

    def _fill(self, keys: Iterable[int]) -> None:
        self._keys: Any = list(keys)
        self._slot: Any = {key: place for place, key in enumerate(self._keys)}

    @abstractmethod
    def rows(self, keys: Sequence[int]) -> Any:
        """The examples with these keys, as `decision_function_many` takes them; a KeyError if one is missing."""

    def __len__(self) -> int:
        """Number of examples."""
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        """Whether the pool has an example with this key."""
        return key in self._slot

    def keys(self) -> list[int]:
        """The keys in the order of their places.  A key that leaves gives its place to the last one."""
        return list(self._keys)

    def draw(self, n: int, rng: np.random.Generator) -> list[int]:
        """The keys of `n` different random examples in random order; of all examples if there are fewer."""
        arguments.require_count("n", n, 0)
        return [self._keys[place] for place in rng.choice(len(self), min(n, len(self)), replace=False).tolist()]

    def discard(self, key: int) -> bool:
        """Take an example out; return whether it was there."""
        slot = self._slot.pop(key, None)
        if slot is None:
            return False
        last = self._keys.pop()
        if last != key:
            self._keys[slot], self._slot[last] = last, slot
        return True


class _Places:
    """The place of each row among the keys, as a dictionary would hold it, in 8 bytes."""

    def __init__(self, n: int) -> None:
        self.of = np.full(n, -1, np.int64)  # -1: not in the pool

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int | np.integer) and bool(0 <= key < len(self.of) and self.of[key] >= 0)

    def __setitem__(self, key: Any, place: Any) -> None:
        self.of[key] = place

    def pop(self, key: int, default: None) -> int | None:
        if key not in self:
            return default
        place, self.of[key] = int(self.of[key]), -1
        return place


class ArrayPool(Pool):
    """Examples in memory: a key is the number of a row.

    Parameters
    ----------
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix, a dataframe or a list of dicts.
    keys
        Numbers of the rows without a label; default: all.

    Raises
    ------
    ValueError
        If `X` does not have two dimensions, or if a key is not the number of a row, or occurs twice.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm.active import ArrayPool
    >>> pool = ArrayPool(np.eye(4))
    >>> pool.discard(2), pool.discard(2), len(pool), pool.keys()
    (True, False, 3, [0, 1, 3])
    """

    def __init__(self, X: Any, keys: Iterable[int] | None = None) -> None:
        self._X, self._n_rows = indexable(X)
        self._fill(range(self._n_rows) if keys is None else keys)

    def _fill(self, keys: Iterable[int]) -> None:
        rows = np.fromiter(keys, np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= self._n_rows):
            bad = rows[(rows < 0) | (rows >= self._n_rows)][0]
            raise ValueError(f"keys holds {bad}; keys are the numbers of the {self._n_rows} rows of X, from 0")
        if len(np.unique(rows)) < len(rows):
            raise ValueError(f"keys holds {np.sort(rows)[:-1][np.diff(np.sort(rows)) == 0][0]} twice")
        self._keys, self._slot = array("q", rows.tobytes()), _Places(self._n_rows)
        self._slot[rows] = np.arange(len(rows))

    def rows(self, keys: Sequence[int]) -> Any:
        """The rows with these numbers, of the kind of X; a KeyError if one is not in the pool."""
        places, n = np.fromiter(keys, np.int64, len(keys)), self._n_rows
        if len(places) and (places.min() < 0 or places.max() >= n or self._slot.of[places].min() < 0):
            raise KeyError(next(key for key in keys if key not in self))
        return picked(self._X, keys)

    def state(self) -> dict[str, Any]:
        """The rows that are left, in their order, as JSON can hold them."""
        return {"keys": self.keys()}

    def restore(self, state: Mapping[str, Any], x_of: Callable[[int], Any] | None = None) -> None:
        """Continue where `state` was taken, with the same X.

        Parameters
        ----------
        state
            What `state` gave.
        x_of
            As in `StreamPool.restore`.  It is not used: this pool has its rows.
        """
        self._fill(state["keys"])


class StreamPool(Pool):
    """A bounded pool of a stream's examples, which prefers recent ones.

    When the pool is full, a new example replaces a random one.  So the chance that an example is still there falls
    exponentially with its age: by a factor e for every `capacity` examples.  Streams drift, and a uniform sample would
    consist of the past.  Every operation on one example takes constant time.

    Parameters
    ----------
    capacity
        Largest number of examples; at least 1.
    expiry
        How long an example may stay, in the unit of `now`; positive; default: for ever.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    [^1]: Aggarwal, C. C., 2006. On biased reservoir sampling in the presence of stream evolution. VLDB 2006, 607-618.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm.active import StreamPool
    >>> pool, rng = StreamPool(capacity=100, expiry=60), np.random.default_rng(0)
    >>> for t in range(0, 90, 10):
    ...     pool.add(t, {"a": float(t)}, now=t, rng=rng)
    >>> pool.expire(now=90), len(pool)
    ([0, 10, 20, 30], 5)
    """

    def __init__(self, capacity: int = 10_000, expiry: float | None = None) -> None:
        arguments.require_count("capacity", capacity, 1)
        if expiry is not None:
            arguments.require_positive("expiry", expiry)
        super().__init__()
        self.capacity = capacity
        self.expiry = expiry
        self._examples: OrderedDict[int, tuple[Any, float]] = OrderedDict()  # each with its time, the oldest first

    def add(self, key: int, x: Any, now: float, rng: np.random.Generator) -> None:
        """Take in an example.  If the pool is full, it replaces a random one.

        Parameters
        ----------
        key
            Its key.  If the pool has it already, nothing changes.
        x
            Its features.
        now
            The time.  It should not go back: an example expires no sooner than the ones that came before it.
        rng
            Chooses the example that is replaced; not used while there is room.
        """
        if key in self._slot:
            return
        if len(self._keys) >= self.capacity:
            self.discard(self._keys[int(rng.integers(len(self._keys)))])
        self._slot[key] = len(self._keys)
        self._keys.append(key)
        self._examples[key] = x, now

    def discard(self, key: int) -> bool:
        self._examples.pop(key, None)
        return super().discard(key)

    def expire(self, now: float) -> list[int]:
        """Take out the examples that came `expiry` or longer ago; return their keys, oldest first."""
        expired: list[int] = []
        while self.expiry is not None and self._examples:
            key, (_, time) = next(iter(self._examples.items()))
            if now - time < self.expiry:
                break
            self.discard(key)
            expired.append(key)
        return expired

    def oldest(self) -> Iterator[int]:
        """The keys in the order of coming."""
        return iter(self._examples)

    def rows(self, keys: Sequence[int]) -> list[Any]:
        """The examples with these keys."""
        return [self._examples[key][0] for key in keys]

    def state(self) -> dict[str, Any]:
        """Everything except the features, as JSON can hold it."""
        return {"keys": self.keys(), "times": [[key, time] for key, (_, time) in self._examples.items()]}

    def restore(self, state: Mapping[str, Any], x_of: Callable[[int], Any]) -> None:
        """Continue where `state` was taken.

        If the capacity is now smaller, the oldest examples are left out.

        Parameters
        ----------
        state
            What `state` gave.
        x_of
            Gives the features that belong to a key; None if they are lost, and the example is left out.
        """
        found = {key: x for key in state["keys"] if (x := x_of(key)) is not None}
        self._fill(found)
        self._examples = OrderedDict((key, (found[key], time)) for key, time in state["times"] if key in found)
        for key in list(self._examples)[: max(0, len(self) - self.capacity)]:
            self.discard(key)
