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
        self._values: dict[str, np.ndarray] = {}  # NaN where there is no number
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
        for values in self._values.values():
            values[row] = np.nan
        for name, number in numbers.items():
            if name not in self._values:
                if len(self._values) >= MOST_NAMES:
                    continue
                self._values[name] = np.full(self._n_rows, np.nan)
            self._values[name][row] = number

    def _grow(self, row: int) -> None:
        while self._n_rows <= row:
            self._n_rows *= 2
        for name, column in self._values.items():
            self._values[name] = np.concatenate([column, np.full(self._n_rows - len(column), np.nan)])

    def where(self, name: str, comparison: str, number: float, n: int) -> np.ndarray:
        """Which of the first `n` rows have a number of this name for which the comparison holds."""
        column = self._values[name][:n]
        return np.asarray(_COMPARISONS[comparison](column, number) & ~np.isnan(column))

    def distances(self, row: int, n: int) -> np.ndarray:
        """The squared distances of the first `n` rows from a row, in standard deviations of each column."""
        self._rescale(n)
        total = np.zeros(n)
        for name, scale in self._scales.items():
            column = self._with_zeros(name, n)
            step = (column - column[row]) * scale
            step *= step
            total += step
        return total

    def _rescale(self, n: int) -> None:
        """Compute the scales anew if many rows, or a name, have come since."""
        if n < 1.1 * self._n_scaled and len(self._scales) == len(self._values):
            return
        self._n_scaled = n
        for name in self._values:
            deviation = float(self._with_zeros(name, n).std())
            self._scales[name] = 1.0 / deviation if deviation > 0.0 else 0.0

    def _with_zeros(self, name: str, n: int) -> np.ndarray:
        """The first rows of a column; a number that is missing is 0, as for the model."""
        column = self._values[name][:n]
        return np.where(np.isnan(column), 0.0, column)
