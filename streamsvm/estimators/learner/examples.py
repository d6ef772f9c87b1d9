"""A block of examples on its way from the input to compiled code."""

from typing import NamedTuple

import numpy as np

from streamsvm.core.blocks import Queries
from streamsvm.core.scaling import NO_ROWS, RawRows
from streamsvm.online.arrival import Block


class Examples(NamedTuple):
    """A block of examples to learn.

    `own_ids` says whether the user gave the ids.  `born` holds each example's number, or its time.  `raw` has the
    features before they are scaled; it is empty if the scale does not change them.
    """

    q: Queries
    lo: np.ndarray
    hi: np.ndarray
    ids: np.ndarray
    own_ids: bool
    born: np.ndarray
    raw: RawRows = NO_ROWS

    def part(self, t: int, end: int) -> "Examples":
        """The examples from t on, before `end`."""
        own = slice(t, end)
        raw = self.raw.part(t, end) if len(self.raw.sq) else self.raw
        others = (self.lo[own], self.hi[own], self.ids[own], self.own_ids, self.born[own], raw)
        return Examples(self.q.part(t, end), *others)

    def compiled(self) -> Block:
        """The block for compiled code."""
        return Block(*self.q, self.lo, self.hi, self.ids, self.born, *self.raw[:3])


def block_of(
    q: Queries,
    rows: slice,
    lo: np.ndarray,
    hi: np.ndarray,
    ids: np.ndarray,
    own_ids: bool,
    born: np.ndarray,
) -> Examples:
    """These rows of a batch."""
    return Examples(q, lo[rows], hi[rows], ids[rows], own_ids, born[rows])
