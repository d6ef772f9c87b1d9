"""Examples of a stream that are kept to be predicted again: the most recent ones, or a uniform sample of all.

======== ======================================================================== ================
symbol   name                                                                     shape, dtype
======== ======================================================================== ================
n        examples seen so far                                                     int
h(n)     a number that looks random, from n and the seed                          int below n
======== ======================================================================== ================

The sample is a reservoir (Vitter, "Random sampling with a reservoir", ACM TOMS 11, 1985, algorithm R): the n-th example
takes the place h(n) if there is one.  As h is a function, a memory that was restored goes on as the stored one would.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm import arguments

KEEP = ("recent", "sample")
MASK = 2**64 - 1


class Example(NamedTuple):
    """An example as it was learned."""

    x: Mapping
    y: bool
    w: float


def mixed(number: int, seed: int) -> int:
    """A 64-bit number that looks random, from two others (the finaliser of SplitMix64)."""
    z = (number + (seed + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Memory:
    """At most `size` examples by id.

    Parameters
    ----------
    size
        How many are kept.
    keep
        ``"recent"`` or ``"sample"``.
    seed
        Of the sample.
    """

    def __init__(self, size: int, keep: str, seed: int) -> None:
        arguments.require_count("memory", size, 1)
        if keep not in KEEP:
            raise ValueError(f'keep={keep!r} must be "recent" or "sample"')
        self.size, self.keep, self.seed = size, keep, seed
        self.n_seen = 0
        self._examples: dict[int, Example] = {}
        self._ids: list[int] = []  # in the order of their places

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> list[int]:
        """Those of the examples."""
        return self._ids.copy()

    def of(self, ids: Sequence[int]) -> list[Example]:
        """The examples that have these ids."""
        return [self._examples[number] for number in ids]

    def add(self, id: int, example: Example) -> None:
        """An example has come; it may be kept, and another one may go.  One id is not kept twice."""
        self.n_seen += 1
        if id in self._examples:
            return
        if len(self._ids) < self.size:
            self._ids.append(id)
        elif self.keep == "recent":
            del self._examples[self._ids.pop(0)]
            self._ids.append(id)
        else:
            place = mixed(self.n_seen, self.seed) % self.n_seen
            if place >= self.size:
                return
            del self._examples[self._ids[place]]
            self._ids[place] = id
        self._examples[id] = example

    def of_interest(self, arrivals: Sequence[int]) -> Sequence[int]:
        """Those of some arrivals that must be added: of a long batch the recent ones are the last."""
        if self.keep == "sample" or len(arrivals) <= self.size:
            return arrivals
        self.n_seen += len(arrivals) - self.size
        return arrivals[-self.size :]

    def drop(self, id: int) -> None:
        """Forget an example, if it is there."""
        if self._examples.pop(id, None) is not None:
            self._ids.remove(id)

    def relabel(self, id: int, y: bool) -> None:
        """Correct the label of an example, if it is there."""
        if id in self._examples:
            self._examples[id] = self._examples[id]._replace(y=y)

    # ------------------------------------------------------------------------------------------------------- snapshots

    def to_arrays(self) -> tuple[list[Any], dict[str, np.ndarray]]:
        """The names of the features, and arrays from which `restore` makes an equal memory."""
        examples = self.of(self._ids)
        column_of = {name: column for column, name in enumerate(dict.fromkeys(name for e in examples for name in e.x))}
        return list(column_of), {
            "n_seen": np.array([self.n_seen]),
            "ids": np.array(self._ids, np.int64),
            "y": np.array([e.y for e in examples], bool),
            "w": np.array([e.w for e in examples], np.float64),
            "starts": np.cumsum([0, *(len(e.x) for e in examples)]),
            "columns": np.array([column_of[name] for e in examples for name in e.x], np.int64),
            "values": np.array([float(value) for e in examples for value in e.x.values()], np.float64),
        }

    def restore(self, names: Sequence[Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `to_arrays` gave."""
        self.n_seen, self._ids = int(arrays["n_seen"][0]), arrays["ids"].tolist()
        starts, columns, values = (arrays[name].tolist() for name in ("starts", "columns", "values"))
        rows = [
            {names[c]: v for c, v in zip(columns[begin:end], values[begin:end], strict=True)}
            for begin, end in itertools.pairwise(starts)
        ]
        labelled = zip(rows, arrays["y"].tolist(), arrays["w"].tolist(), strict=True)
        self._examples = dict(zip(self._ids, (Example(*item) for item in labelled), strict=True))
