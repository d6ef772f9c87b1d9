"""Pools: the examples without a label, from which the next question is chosen.

A pool hands out the *keys* of its members, and their features for as many as are to be scored at once.  Nothing here is
random by itself: a generator comes with each call that needs one, so that what is drawn is a function of the pool's
state and the generator's.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from river.utils import dataframe

from streamsvm.core import arguments

EMPTY = "the pool is empty: there is no example left to ask about"


class Pool(Protocol):
    """What a selection needs of the examples without a label."""

    def __len__(self) -> int:
        """How many examples there are."""

    def __contains__(self, key: object) -> bool:
        """Whether an example with this key is there."""

    def keys(self) -> list[int]:
        """The keys of all examples, in an order that is part of the pool's state."""

    def draw(self, n: int, rng: np.random.Generator) -> list[int]:
        """The keys of `n` different examples, each order of each choice as likely; of all if there are no more."""

    def rows(self, keys: Sequence[int]) -> Any:
        """The examples with these keys as `decision_function_many` takes them; KeyError if one is not there."""

    def discard(self, key: int) -> bool:
        """Take an example out; whether it was there."""


class ArrayPool:
    """Examples in memory: a key is the number of a row.

    Parameters
    ----------
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix, a dataframe or a list of dicts.
    keys
        Numbers of the rows that have no label yet; default: all.

    Raises
    ------
    ValueError
        If `X` has not two dimensions, or a key is no row of it or comes twice.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm.active import ArrayPool
    >>> pool = ArrayPool(np.eye(4))
    >>> pool.discard(2), pool.discard(2), len(pool), pool.keys()
    (True, False, 3, [0, 1, 3])
    """

    def __init__(self, X: Any, keys: Iterable[int] | None = None) -> None:
        self._X, n = _indexable(X)
        self._slot = np.full(n, -1, np.int64)  # where a row stands among the keys; -1: it is not in the pool
        self._keys = np.empty(n, np.int64)
        self._n = 0
        self._fill(range(n) if keys is None else keys)

    def _fill(self, keys: Iterable[int]) -> None:
        rows = np.fromiter(keys, np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self._slot)):
            bad = rows[(rows < 0) | (rows >= len(self._slot))][0]
            raise ValueError(f"keys holds {bad}; keys are the numbers of the {len(self._slot)} rows of X, from 0")
        if len(np.unique(rows)) < len(rows):
            raise ValueError(f"keys holds {np.sort(rows)[:-1][np.diff(np.sort(rows)) == 0][0]} twice")
        self._n = len(rows)
        self._keys[: self._n] = rows
        self._slot[:] = -1
        self._slot[rows] = np.arange(self._n)

    def __len__(self) -> int:
        return self._n

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int | np.integer) and bool(0 <= key < len(self._slot) and self._slot[key] >= 0)

    def keys(self) -> list[int]:
        """The rows without a label; sorted until the first was discarded: the last then takes the place."""
        return self._keys[: self._n].tolist()

    def draw(self, n: int, rng: np.random.Generator) -> list[int]:
        """`n` different rows in random order; all if there are no more."""
        return self._keys[_places(self._n, n, rng)].tolist()

    def rows(self, keys: Sequence[int]) -> Any:
        """The rows, of the kind of X."""
        places = np.fromiter(keys, np.int64, len(keys))
        if len(places) and (places.min() < 0 or places.max() >= len(self._slot) or self._slot[places].min() < 0):
            raise KeyError(next(key for key in keys if key not in self))
        if isinstance(self._X, list):
            return [self._X[key] for key in keys]
        if isinstance(self._X, np.ndarray):
            return self._X.take(places, axis=0)
        return self._X[places] if sp.issparse(self._X) else self._X[places.tolist(), :].to_native()

    def discard(self, key: int) -> bool:
        """Take a row out; whether it was there."""
        if key not in self:
            return False
        slot, last = self._slot[key], self._keys[self._n - 1]
        self._keys[slot], self._slot[last] = last, slot
        self._slot[key] = -1
        self._n -= 1
        return True

    def state(self) -> dict[str, Any]:
        """What `restore` needs, as JSON can hold it: which rows are left, in their order."""
        return {"keys": self.keys()}

    def restore(self, state: Mapping[str, Any], x_of: Callable[[int], Any] | None = None) -> None:
        """Be as the pool over the same X whose `state` this was.

        Parameters
        ----------
        state
            What `state` gave.
        x_of
            As in `StreamPool.restore`; not used, as this pool has its rows.
        """
        self._fill(state["keys"])


class StreamPool:
    """The examples of a stream, as many as fit: a reservoir that prefers the recent.

    When the pool is full, a new example takes the place of a member chosen at random, so that the chance to be still
    there falls exponentially with age, by a factor e with every `capacity` examples: a stream drifts, and a uniform
    sample would consist of the past (Aggarwal, "On biased reservoir sampling in the presence of stream evolution", VLDB
    2006).  Every operation on one example takes constant time.

    Parameters
    ----------
    capacity
        How many examples are kept, at least 1.
    expiry
        How long an example may stay, in the unit of `now`; positive; default: for ever.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

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
        self.capacity = capacity
        self.expiry = expiry
        self._keys: list[int] = []
        self._xs: list[Any] = []
        self._slot: dict[int, int] = {}  # where a key stands in the two lists
        self._times: OrderedDict[int, float] = OrderedDict()  # when each came, in the order of coming

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._slot

    def add(self, key: int, x: Any, now: float, rng: np.random.Generator) -> None:
        """Take in an example; when the pool is full, a member chosen at random goes.

        Parameters
        ----------
        key
            Its key; one that is there already stays as it is.
        x
            Its features.
        now
            The time; it should not go back: an example leaves no sooner than those that came before it.
        rng
            Chooses the member that goes; not used while there is room.
        """
        if key in self._slot:
            return
        if len(self._keys) >= self.capacity:
            self.discard(self._keys[int(rng.integers(len(self._keys)))])
        self._append(key, x, now)

    def _append(self, key: int, x: Any, time: float) -> None:
        self._slot[key] = len(self._keys)
        self._keys.append(key)
        self._xs.append(x)
        self._times[key] = time

    def discard(self, key: int) -> bool:
        """Take an example out; whether it was there."""
        slot = self._slot.pop(key, None)
        if slot is None:
            return False
        del self._times[key]
        last, x = self._keys.pop(), self._xs.pop()
        if last != key:
            self._keys[slot], self._xs[slot], self._slot[last] = last, x, slot
        return True

    def expire(self, now: float) -> list[int]:
        """Take out what came `expiry` or longer ago; the keys, oldest first."""
        expired: list[int] = []
        while self.expiry is not None and self._times:
            key, time = next(iter(self._times.items()))
            if now - time < self.expiry:
                break
            self.discard(key)
            expired.append(key)
        return expired

    def keys(self) -> list[int]:
        """The keys in the order of their places; one that leaves gives its place to the last."""
        return list(self._keys)

    def draw(self, n: int, rng: np.random.Generator) -> list[int]:
        """The keys of `n` different examples in random order; of all if there are no more."""
        return [self._keys[place] for place in _places(len(self._keys), n, rng).tolist()]

    def rows(self, keys: Sequence[int]) -> list[Any]:
        """The examples with these keys."""
        return [self._xs[self._slot[key]] for key in keys]

    def state(self) -> dict[str, Any]:
        """What `restore` needs besides the features, as JSON can hold it."""
        return {"keys": self.keys(), "times": [[key, time] for key, time in self._times.items()]}

    def restore(self, state: Mapping[str, Any], x_of: Callable[[int], Any]) -> None:
        """Be as the pool whose `state` this was.

        Parameters
        ----------
        state
            What `state` gave.
        x_of
            The features that belong to a key; None if they are lost: the example is then left out.  So are the oldest
            of more than the capacity.
        """
        self._keys, self._xs, self._slot, self._times = [], [], {}, OrderedDict()
        for key in state["keys"]:
            x = x_of(key)
            if x is not None:
                self._append(key, x, 0)
        self._times = OrderedDict((key, time) for key, time in state["times"] if key in self._slot)
        for key in list(self._times)[: max(0, len(self) - self.capacity)]:
            self.discard(key)


def _places(n: int, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """`wanted` different places of n in random order; all of them if there are no more."""
    arguments.require_count("n", wanted, 0)
    return rng.choice(n, min(n, wanted), replace=False)


def _indexable(X: Any) -> tuple[Any, int]:
    """X in a form whose rows can be picked quickly, and their number."""
    if isinstance(X, list | tuple):
        return list(X), len(X)
    if not hasattr(X, "columns") and getattr(X, "ndim", None) != 2:
        shape = getattr(X, "shape", type(X).__name__)
        raise ValueError(f"X is {shape}; it must be a 2-D array, a sparse matrix, a frame or a list of dicts")
    if sp.issparse(X):
        return sp.csr_matrix(X), X.shape[0]
    if isinstance(X, np.ndarray):
        X = np.ascontiguousarray(X)
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64), len(X)
    frame = dataframe.into_frame(X)
    return frame, len(frame)
