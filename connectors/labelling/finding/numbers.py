"""The numbers of the events that can be found, by name, in columns."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

MOST_NAMES = 256  # columns; 100,000 events with so many numbers take 230 MB

_FIRST_ROWS = 1024
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Numbers:
    """Columns of numbers, each with the rows that have one.

    The first 256 names get columns; a number of another name can be neither compared nor found alike.
    """

    def __init__(self) -> None:
        self._values: dict[str, np.ndarray] = {}  # 0 where there is no number, as for the model
        self._is_there: dict[str, np.ndarray] = {}
        self._n_rows = _FIRST_ROWS
        self._scales: dict[str, float] = {}
        self._n_scaled = 0  # rows that the scales were computed from

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self._values)

    def put(self, row: int, numbers: Mapping[str, float]) -> None:
        """Set the numbers of a row, in the place of earlier ones."""
        if row >= self._n_rows:
            self._grow(row)
        for is_there in self._is_there.values():
            is_there[row] = False
        for values in self._values.values():
            values[row] = 0.0
        for name, number in numbers.items():
            if name not in self._values:
                if len(self._values) >= MOST_NAMES:
                    continue
                self._values[name] = np.zeros(self._n_rows)
                self._is_there[name] = np.zeros(self._n_rows, bool)
            self._values[name][row] = number
            self._is_there[name][row] = True

    def _grow(self, row: int) -> None:
        while self._n_rows <= row:
            self._n_rows *= 2
        for columns in (self._values, self._is_there):
            for name, column in columns.items():
                columns[name] = np.concatenate([column, np.zeros(self._n_rows - len(column), column.dtype)])

    def where(self, name: str, comparison: str, number: float, n: int) -> np.ndarray:
        """Which of the first `n` rows have a number of this name for which the comparison holds."""
        holds = _COMPARISONS[comparison](self._values[name][:n], number)
        return np.asarray(holds & self._is_there[name][:n])

    def distances(self, row: int, n: int) -> np.ndarray:
        """The squared distances of the first `n` rows from a row, in standard deviations of each column."""
        self._rescale(n)
        total = np.zeros(n)
        for name, scale in self._scales.items():
            column = self._values[name][:n]
            step = (column - column[row]) * scale
            step *= step
            total += step
        return total

    def _rescale(self, n: int) -> None:
        """Compute the scales anew if many rows, or a name, have come since."""
        if n < 1.1 * self._n_scaled and len(self._scales) == len(self._values):
            return
        self._n_scaled = n
        for name, column in self._values.items():
            deviation = float(column[:n].std())
            self._scales[name] = 1.0 / deviation if deviation > 0.0 else 0.0
