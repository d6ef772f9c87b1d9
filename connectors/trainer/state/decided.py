"""How decisions fared along the stream: counts of each class, over all models of a partition.

They are here and not in the models, because a model of a key may be dropped, and what it decided remains.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamsvm.conformal import Tally
from streamsvm.core.saving.snapshot import require_array

from ...records.classes import ClassLabel, KnownClasses
from .course import Course

Tallies = Mapping[Any, Tally]

_LENGTH = 256  # points of the course
_MOST_CLASSES = 30  # whose course is kept, the first ones
_NOTHING = Tally(0, 0, 0)


def shares(tallies: Iterable[Tally], audit: float) -> tuple[float, float]:
    """The shares of events that were decided, and decided wrongly; NaN without a labelled event.

    Parameters
    ----------
    tallies
        The counts of labelled events.
    audit
        The share of the decided events whose labels come: each of these stands for 1 / audit events.
    """
    n, decided, wrong = (sum(column) for column in zip(*tallies, strict=True)) if (tallies := [*tallies]) else (0, 0, 0)
    every = n - decided + decided / audit
    return (decided / audit / every, wrong / audit / every) if every else (math.nan, math.nan)


class Point(NamedTuple):
    """The counts after so many records."""

    n: int
    tallies: Tallies


class Decided:
    """The counts, and their course.

    Parameters
    ----------
    classes
        The classes of the partition.
    tallies
        The counts at the beginning; default: none.

    Attributes
    ----------
    tallies : dict
        The counts of each class so far.
    course : Course
        The counts at regular intervals.
    """

    def __init__(self, classes: KnownClasses, tallies: Tallies | None = None) -> None:
        self._classes = classes
        self.tallies: dict[ClassLabel, Tally] = dict(tallies or {})
        self.course = Course[Point](_LENGTH)

    def change(self, before: Tallies, after: Tallies) -> None:
        """Take in what a model has learned: its counts before and after."""
        for label, tally in after.items():
            old = before.get(label, _NOTHING)
            if tally != old:
                columns = zip(self.tallies.get(label, _NOTHING), tally, old, strict=True)
                self.tallies[label] = Tally(*(total + new - gone for total, new, gone in columns))

    def note(self, n: int) -> None:
        """Keep the counts after n records, if it is time."""
        if self.course.is_due(n):
            self.course.add(Point(n, dict(list(self.tallies.items())[:_MOST_CLASSES])))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All of it, for a checkpoint; nothing if nothing was counted."""
        if not self.tallies:
            return {}
        return {
            "counts": self._table([self.tallies])[0],
            "course": self._table([point.tallies for point in self.course.rows])[:, :_MOST_CLASSES],
            "n": np.array([point.n for point in self.course.rows], np.int64),
            "every": np.array(self.course.every),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint, which has no arrays if it is older than they are."""
        if arrays:
            self.tallies = self._tallies(require_array(arrays, "counts", "i", (None, 3)))
            n = require_array(arrays, "n", "i", (None,)).tolist()
            points = require_array(arrays, "course", "i", (len(n), None, 3))
            self.course.rows = [Point(at, self._tallies(rows)) for at, rows in zip(n, points, strict=True)]
            self.course.every = max(1, int(require_array(arrays, "every", "i", ())))

    def _table(self, rows: list[Tallies]) -> np.ndarray:
        """Counts by the numbers of the classes."""
        counts = np.zeros((len(rows), len(self._classes), 3), np.int64)
        for row, tallies in zip(counts, rows, strict=True):
            for label, tally in tallies.items():
                row[self._classes.number_of(label)] = tally
        return counts

    def _tallies(self, counts: np.ndarray) -> dict[ClassLabel, Tally]:
        if counts.min(initial=0) < 0:
            raise ValueError(f"a checkpoint's counts of decisions hold {counts.min()}: no counts")
        return {self._classes.label_of(number): Tally(*row) for number, row in enumerate(counts.tolist()) if any(row)}
