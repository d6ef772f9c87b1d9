"""The last decisions on the true members of a class, and the probabilities that the class got then."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from streamsvm.conformal.decision import Decision
from streamsvm.online.outputs import past as rows
from streamsvm.online.outputs.past import ALONE, ORDERED, SAID, SCORE, WINDOW


class Past:
    """The last decisions, and their scores in order.

    Parameters
    ----------
    columns
        The numbers of the labels; more may be added, see `widen`.

    Attributes
    ----------
    ids, table : numpy.ndarray
        Ids of the examples, and all else; see `online.outputs.past`.  They have room for one more decision, and grow to
        `WINDOW`: models of keys are many, and most have few labels.
    n, place, n_scores : int
        Number of decisions, where the next one is written, and number of scores.
    """

    __slots__ = ("_cells", "_columns", "_id_cells", "ids", "n", "n_scores", "place", "table")

    def __init__(self, columns: Mapping[Hashable, int]) -> None:
        self._columns = columns
        self.take(np.empty(0, np.int64), np.empty((SAID + len(columns), 0)))

    def take(self, ids: np.ndarray, table: np.ndarray) -> None:
        """Let these be the decisions, oldest first."""
        n = self.n = len(ids)
        self._use(*_with_room(ids, table, min(n + 1, WINDOW)))
        self.place = n % WINDOW
        scores = np.sort(table[SCORE][~np.isnan(table[SCORE])])
        self.n_scores = len(scores)
        self.table[ORDERED, : self.n_scores] = scores

    def _use(self, ids: np.ndarray, table: np.ndarray) -> None:
        self.ids, self.table = ids, table
        self._id_cells: Any = ids.data  # quicker to write than arrays
        self._cells: dict[Any, Any] = {c: table[SAID + k].data for c, k in self._columns.items()}

    def __getstate__(self) -> tuple[Any, ...]:
        return self._columns, self.ids, self.table, self.n, self.place, self.n_scores

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._columns, ids, table, self.n, self.place, self.n_scores = state
        self._use(ids, table)

    def widen(self) -> None:
        """Make room for the probabilities of labels that are new."""
        more = np.full((SAID + len(self._columns) - len(self.table), len(self.ids)), math.nan)
        self._use(self.ids, np.concatenate([self.table, more]))

    def write(self, id: int, p: Mapping[Hashable, float]) -> int:
        """Write a decision, at last over the oldest; return its place, at which `note_decision` writes the rest."""
        place = self.place
        if place == len(self._id_cells):
            self._use(*_with_room(self.ids, self.table, min(2 * place, WINDOW)))
        cells = self._cells
        if len(p) < len(cells):
            self.table[SAID:, place] = math.nan
        for c, value in p.items():
            cells[c][place] = value
        self._id_cells[place] = id
        self.place = (place + 1) % WINDOW
        if self.n < WINDOW:
            self.n += 1
        return place

    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """The decisions, oldest first, as `take` takes them."""
        order = (np.arange(self.n) + (self.place if self.n == WINDOW else 0)) % WINDOW
        return self.ids[order], self.table[:, order]

    def threshold(self, level: float) -> float:
        """The score below which a share `level` of the scores lies; -1 if there are too few scores to say."""
        return rows.threshold(self.table, self.n_scores, level)

    def take_out(self, id: int) -> np.ndarray:
        """Remove the decisions on an example; return them as columns."""
        ids, columns = self.given()
        here = ids == id
        if here.any():
            self.take(ids[~here], columns[:, ~here])
        return columns[:, here]


def _with_room(ids: np.ndarray, table: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Copies with room for n decisions."""
    more = n - len(ids)
    return np.append(ids, np.zeros(more, np.int64)), np.pad(table, ((0, 0), (0, more)), constant_values=math.nan)


def decision_of(column: np.ndarray, labels: Mapping[Hashable, int]) -> Decision:
    """What was said, from a column of a table."""
    p = {c: float(column[SAID + k]) for c, k in labels.items() if not math.isnan(column[SAID + k])}
    alone = [c for c, k in labels.items() if k == column[ALONE]]
    return Decision(tuple(alone or p), p, None, None, 0)
