"""A block of examples on its way from the input to compiled code."""

import math
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core.blocks import Queries
from streamsvm.core.scaling.state import NO_ROWS, RawRows
from streamsvm.estimators.inputs.named_rows import joined_rows, rows_at
from streamsvm.online.arrival import NOTHING_SAID, Block


class Examples(NamedTuple):
    """A block of examples to learn.

    `own_ids` says whether the user gave the ids.  `born` holds each example's number, or its time.  `raw` has the
    features before they are scaled; it is empty if the scale does not change them.  For `said` see `online.arrival`.
    """

    q: Queries
    lo: np.ndarray
    hi: np.ndarray
    ids: np.ndarray
    own_ids: bool
    born: np.ndarray
    raw: RawRows = NO_ROWS
    said: np.ndarray = NOTHING_SAID

    def part(self, t: int, end: int) -> "Examples":
        """The examples from t on, before `end`."""
        own = slice(t, end)
        raw = self.raw.part(t, end) if len(self.raw.sq) else self.raw
        others = (self.lo[own], self.hi[own], self.ids[own], self.own_ids, self.born[own], raw, self.said[own])
        return Examples(self.q.part(t, end), *others)

    def compiled(self) -> Block:
        """The block for compiled code."""
        return Block(*self.q, self.lo, self.hi, self.ids, self.born, self.said, *self.raw[:3])


class LabelledBlock(NamedTuple):
    """Examples to learn.

    `own_ids` says whether the user gave the ids, `born` holds numbers or times, and `growth` the number of columns
    after each example.  `raw` has the features before they are scaled, as in `Examples`, and `given` by column.
    `said` has what the models said of each example, if its label came late, otherwise None; see `late`.  It is empty if
    no label did.
    """

    q: Queries
    labels: list[Hashable]
    weights: np.ndarray
    ids: np.ndarray
    own_ids: bool
    born: np.ndarray
    growth: np.ndarray
    raw: RawRows = NO_ROWS
    given: RawRows = NO_ROWS
    said: Sequence[Any] = ()

    def part(self, t: int, end: int) -> "LabelledBlock":
        """The examples from t on, before `end`."""
        if end - t == len(self.labels):
            return self
        own = slice(t, end)
        raw, given = (rows.part(t, end) if len(rows.sq) else rows for rows in (self.raw, self.given))
        of_user = (self.labels[own], self.weights[own], self.ids[own], self.own_ids)
        return LabelledBlock(
            self.q.part(t, end), *of_user, self.born[own], self.growth[own], raw, given, self.said[own]
        )

    def rows(self, rows: np.ndarray) -> "LabelledBlock":
        """These examples, in rising order."""
        if len(rows) == len(self.labels):
            return self
        raw = RawRows(*chosen_rows(self.raw, rows)) if len(self.raw.sq) else self.raw
        of_user = ([self.labels[t] for t in rows], self.weights[rows], self.ids[rows], self.own_ids)
        q = Queries(*chosen_rows(self.q, rows))
        said = [self.said[t] for t in rows] if self.said else ()
        return LabelledBlock(q, *of_user, self.born[rows], self.growth[rows], raw, said=said)


def chosen_rows(q: Any, rows: np.ndarray) -> tuple[Any, ...]:
    """The fields of these queries, or of these raw rows."""
    return *rows_at(q.indptr, q[1], q[2], rows), q.sq[rows]


def all_rows(parts: list[Any]) -> tuple[Any, ...]:
    """The fields of queries, or of raw rows, that follow one another."""
    return *joined_rows([part[:3] for part in parts]), np.concatenate([part.sq for part in parts])


def joined_blocks(parts: list[LabelledBlock]) -> LabelledBlock:
    """Blocks that follow one another."""
    labels = [label for part in parts for label in part.labels]
    weights, ids, born, growth = (
        np.concatenate(arrays) for arrays in zip(*((p.weights, p.ids, p.born, p.growth) for p in parts), strict=True)
    )
    q, raw = Queries(*all_rows([p.q for p in parts])), RawRows(*all_rows([p.raw for p in parts]))
    return LabelledBlock(q, labels, weights, ids, parts[0].own_ids, born, growth, raw)


def n_learned(margins: np.ndarray) -> int:
    """How many of these examples have been learned: the first one without a margin, and all after it, have not."""
    missing = np.isnan(margins)
    return int(np.argmax(missing)) if missing.any() else len(margins)


def no_margins(n: int) -> np.ndarray:
    """Margins of n examples before they are learned."""
    return np.full(n, math.nan)
