"""The remembered examples of a stream: the most recent ones, or a uniform sample of all.

======== ======================================================================== ================
symbol   name                                                                     shape, dtype
======== ======================================================================== ================
n        number of examples that the sample represents                            int
h(n, i)  pseudorandom number from the seed and i, the number of examples so far   int below n
a, b     examples forgotten from the sample, and from the others, that no later   int
         example has replaced
======== ======================================================================== ================

The sample is a reservoir (Vitter, "Random sampling with a reservoir", ACM TOMS 11, 1985, algorithm R): the n-th example
takes place h, if the sample has such a place.  Once examples were forgotten, it is random pairing (Gemulla, Lehner,
Haas, "A dip in the reservoir", VLDB 2006): the next examples replace them, and enter the sample with probability
a / (a + b).  h is a function, so a restored memory goes on as the stored one would.  When examples grow too old, the
others are assumed to grow old in the same proportion.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.saving.snapshot import LARGEST_COUNT, require, require_array, require_finite
from streamsvm.validation.streaming.held_out_margins import margins_of_two

KEEP = ("recent", "sample")
MASK = int(np.iinfo(np.uint64).max)


UNKNOWN_AGE = -LARGEST_COUNT  # of examples that version 0.1.0 stored without an age: older than any window


class Example(NamedTuple):
    """An example as it was learned, with the place of its class, and its margin when it was tested last.

    `born` is its number, or its time if the model's window is a time.
    """

    x: Mapping
    y: int
    w: float
    born: int = 0
    margin: float = math.nan


def mixed(number: int, seed: int) -> int:
    """A pseudorandom 64-bit number from two others (the finaliser of SplitMix64)."""
    z = (number + (seed + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Memory:
    """At most `size` examples by id.

    Parameters
    ----------
    size
        Largest number of examples, at least 1.
    keep
        ``"recent"``: the last examples.  ``"sample"``: a uniform sample of all.
    seed
        Seed of the sample.
    """

    def __init__(self, size: int, keep: str, seed: int) -> None:
        arguments.require_count("memory", size, 1)
        if keep not in KEEP:
            raise ValueError(f'keep={keep!r} must be "recent" or "sample"')
        self.size, self.keep, self.seed = size, keep, seed
        self.n_seen = 0
        self._n_sampled = 0  # n
        self._missed = [0, 0]  # a, b
        self._examples: dict[int, Example] = {}
        self._ids: list[int] = []  # by place
        self._oldest: float = math.inf  # a lower bound on every `born`

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> list[int]:
        """The ids of the examples, by place."""
        return self._ids.copy()

    def of(self, ids: Sequence[int]) -> list[Example]:
        """The examples with these ids."""
        return [self._examples[number] for number in ids]

    def add(self, id: int, example: Example) -> None:
        """Take an example in, or pass it over; another one may have to go.  It replaces one with the same id."""
        self.n_seen += 1
        if id in self._examples:
            self._examples[id] = example
            if self.keep == "recent":
                self._ids.remove(id)
                self._ids.append(id)
            return
        place = self._place()
        if place == len(self._ids):
            self._ids.append(id)
        elif place is not None:
            del self._examples[self._ids[place]]
            self._ids[place] = id
        if place is not None:
            self._examples[id] = example
            self._oldest = min(self._oldest, example.born)

    def _place(self) -> int | None:
        """The place of a new example; None if it is passed over."""
        if self.keep == "recent":
            if len(self._ids) == self.size:
                del self._examples[self._ids.pop(0)]
            return len(self._ids)
        if any(self._missed):
            gets_in = mixed(self.n_seen, self.seed) % sum(self._missed) < self._missed[0]
            self._missed[0 if gets_in else 1] -= 1
            return len(self._ids) if gets_in else None
        self._n_sampled += 1
        if len(self._ids) < self.size:
            return len(self._ids)
        place = mixed(self.n_seen, self.seed) % self._n_sampled
        return place if place < self.size else None

    def of_interest(self, arrivals: Sequence[int]) -> Sequence[int]:
        """The arrivals that must be added: only the last ones of a long batch, if recent examples are kept."""
        if self.keep == "sample" or len(arrivals) <= self.size:
            return arrivals
        self.n_seen += len(arrivals) - self.size
        return arrivals[-self.size :]

    def drop(self, id: int) -> None:
        """Forget an example, whether it is kept or was passed over."""
        is_here = self._examples.pop(id, None) is not None
        if is_here:
            self._ids.remove(id)
        if self.keep == "sample" and sum(self._missed) < self._n_sampled:
            self._missed[0 if is_here else 1] += 1

    def expire(self, born: int) -> None:
        """Forget the examples that are as old as `born` or older."""
        if born < self._oldest:
            return
        sampled, kept = self._n_sampled - sum(self._missed), len(self._ids)
        old = [number for number in self._ids if self._examples[number].born <= born]
        for number in old:
            self.drop(number)
        if self.keep == "sample" and old:
            self._missed[1] += len(old) * (sampled - kept) // kept
        self._oldest = min((example.born for example in self._examples.values()), default=math.inf)

    def relabel(self, id: int, y: int, factor: float) -> None:
        """Correct the label of an example, if it is kept; its margin for the other class is so many times the old one.

        NaN: it is not known, until the example is tested again.
        """
        own = self._examples.get(id)
        if own is not None and own.y != y:
            self._examples[id] = own._replace(y=y, margin=factor * own.margin)

    def note_tests(self, margins: Sequence[float]) -> None:
        """Note new margins of the examples, in the order of `ids`; NaN for those that were not tested now."""
        for number, value in zip(self._ids, margins, strict=True):
            if not math.isnan(value):
                self._examples[number] = self._examples[number]._replace(margin=value)

    def tested(self) -> Iterator[tuple[int, Example]]:
        """The examples with a margin, and their ids."""
        known = ((number, self._examples[number]) for number in self._ids)
        return ((number, example) for number, example in known if not math.isnan(example.margin))

    # ------------------------------------------------------------------------------------------------------- snapshots

    def to_arrays(self) -> tuple[list[Any], dict[str, np.ndarray]]:
        """The names of the features, and the arrays that `restore` takes."""
        examples = self.of(self._ids)
        column_of = {name: column for column, name in enumerate(dict.fromkeys(name for e in examples for name in e.x))}
        return list(column_of), {
            "counts": np.array([self.n_seen, self._n_sampled, *self._missed]),
            "ids": np.array(self._ids, np.int64),
            "y": np.array([e.y for e in examples], np.int64),
            "w": np.array([e.w for e in examples], np.float64),
            "born": np.array([e.born for e in examples], np.int64),
            "margin": np.array([e.margin for e in examples], np.float64),
            "starts": np.cumsum([0, *(len(e.x) for e in examples)]),
            "columns": np.array([column_of[name] for e in examples for name in e.x], np.int64),
            "values": np.array([value for e in examples for value in e.x.values()], np.float64),
        }

    def restore(self, names: Sequence[Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `to_arrays` gave; SnapshotError if the arrays are invalid."""
        if "margin" not in arrays:
            arrays = _renewed(arrays)
        self._require_valid(names, arrays)
        self.n_seen, self._n_sampled, *self._missed = arrays["counts"].tolist()
        starts, columns, values = (arrays[name].tolist() for name in ("starts", "columns", "values"))
        rows = [
            {names[c]: v for c, v in zip(columns[begin:end], values[begin:end], strict=True)}
            for begin, end in itertools.pairwise(starts)
        ]
        self._ids, *others = (arrays[name].tolist() for name in ("ids", *Example._fields[1:]))
        self._examples = dict(zip(self._ids, map(Example, rows, *others), strict=True))
        self._oldest = min(arrays["born"].tolist(), default=math.inf)

    def _require_valid(self, names: Sequence[Any], arrays: Mapping[str, np.ndarray]) -> None:
        n, nnz = len(arrays["ids"]), len(arrays["values"])
        dtypes = dict.fromkeys(("w", "margin", "values"), np.float64)
        sizes = {"counts": 4, "starts": n + 1, "columns": nnz, "values": nnz}
        for name in ("counts", "ids", "starts", "columns", "values", *Example._fields[1:]):
            require_array(arrays, name, dtypes.get(name, np.int64), (sizes.get(name, n),))
        counts, starts, columns = arrays["counts"], arrays["starts"], arrays["columns"]
        require(((counts >= 0) & (counts <= LARGEST_COUNT)).all(), f"the memory has the counts {counts}")
        require((arrays["y"] >= 0).all(), "the place of a class is negative")
        require(n <= self.size and len(np.unique(arrays["ids"])) == n, "it remembers too many examples, or one twice")
        require(starts[0] == 0 and starts[-1] == nnz and (np.diff(starts) >= 0).all(), "'starts' does not rise from 0")
        require(((columns >= 0) & (columns < len(names))).all(), f"a feature is not among {len(names)}")
        require_finite(arrays, "w")
        require((arrays["w"] > 0.0).all(), "an example has no weight")
        for name in ("margin", "values"):  # NaN: it was not tested, or is missing
            require(not np.isinf(arrays[name]).any(), f"{name!r} holds infinity")


def _renewed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of an older snapshot, which has f(x) of two classes; that of version 0.1.0 has neither this nor the ages."""
    n = len(arrays["ids"])
    arrays = {"born": np.full(n, UNKNOWN_AGE), "f": np.full(n, math.nan), **arrays}
    y, f = arrays["y"], arrays["f"]
    if y.dtype != bool:
        return {**arrays, "margin": f}
    return {**arrays, "y": y.astype(np.int64), "margin": margins_of_two(f[:, np.newaxis], y)}
