"""The course of a run: what was true at regular intervals."""

from typing import Any, Generic, TypeVar

_EVERY = 50  # records, at first: a short run has a course, too
AnyRow = TypeVar("AnyRow", bound=tuple[Any, ...])  # its first field is the number of records before it


class Course(Generic[AnyRow]):
    """Rows at regular intervals, which grow as the course does.

    Parameters
    ----------
    most
        The largest number of rows.

    Attributes
    ----------
    rows : list
        The rows.
    every : int
        Number of records between two of them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.rows: list[AnyRow] = []
        self.every = _EVERY

    def is_due(self, n: int) -> bool:
        """Whether there should be a row after so many records."""
        return n >= (self.rows[-1][0] if self.rows else 0) + self.every

    def add(self, row: AnyRow) -> None:
        """Add the next row."""
        self.rows.append(row)
        if len(self.rows) > self._most:
            self.rows = self.rows[1::2]
            self.every *= 2
