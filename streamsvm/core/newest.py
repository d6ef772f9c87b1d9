"""A dict that keeps only its newest entries: memory over a stream has a limit."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Newest(OrderedDict[K, V]):
    """A dict in which an entry that is set becomes the newest one; beyond the limit, the oldest one goes.

    Parameters
    ----------
    limit
        Largest number of entries; at least 1.
    entries
        The first entries, oldest first; default: none.

    Examples
    --------
    >>> from streamsvm.core.newest import Newest
    >>> words = Newest(2, {"ann": 1, "bob": 2})
    >>> words["ann"] = 3
    >>> words["cem"] = 4
    >>> dict(words)
    {'ann': 3, 'cem': 4}
    """

    def __init__(self, limit: int, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._limit = limit
        super().__init__(entries)

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)

    def __reduce__(self) -> tuple:
        """Copies have the same limit."""
        return type(self), (self._limit, dict(self))
