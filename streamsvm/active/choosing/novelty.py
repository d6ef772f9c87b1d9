"""How new an example of a stream is: its distance from the labelled examples, and from their span in feature space.

`space` has the same measures for all examples of a pool.  Here unlabelled examples pass by and are not kept.  Of the
labelled examples, the newest 250 to 500 are kept.
"""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from streamsvm.active.choosing.space import View, scales
from streamsvm.active.choosing.vectors import Scale, Table, Vectors, scale_by
from streamsvm.core import sparse as sp

LABELLED = 500  # labelled examples; when there are more, the older half is forgotten

Features = Mapping[Hashable, Any]


class Passing:
    """The labelled examples of a stream, and the spread of the features where the model does not say it."""

    def __init__(self) -> None:
        self._examples: list[Features] = []
        self._begin()

    def _begin(self) -> None:
        """Forget everything but the labelled examples."""
        self._vectors = Vectors({})
        self._view = View()
        self._table = Table(np.empty((0, 0)))
        self._mean, self._squares, self._count = np.empty(0), np.empty(0), 0  # of the examples that passed by
        self._spread, self._measured = Scale(), 0  # and what was taken from how many of them

    def add(self, x: Features) -> None:
        """Take in a labelled example, as the learner sees it."""
        if len(self._examples) == LABELLED:
            del self._examples[: LABELLED // 2]
            self._begin()
        self._examples.append(_usable(x))

    def distance(self, x: Features, learner: Any) -> float:
        """The squared Euclidean distance to the nearest labelled example; infinity without any."""
        if not self._examples:
            return math.inf
        asked = self._look(x, learner)
        return float(self._table.distances(asked).min())

    def novelty(self, x: Features, learner: Any) -> float:
        """How much of an example the labelled ones do not explain, from 0 to 1: sigma, see `span`."""
        asked = self._look(x, learner)
        return float(self._view.novelty(self._table, asked)[0])

    def _look(self, x: Features, learner: Any) -> Table:
        """The example as the kernel sees it, when the labelled ones have been brought up to date."""
        query = Vectors(dict(self._vectors.columns))  # a copy: passing examples may have any number of features
        new = self._examples[len(self._vectors) :]
        if new:
            self._vectors.add(new)
            query = Vectors(dict(self._vectors.columns))
        query.add([_usable(x)])
        query.become_like(self._vectors)
        if not (scales(learner) and hasattr(learner, "scale_of")):
            if not self._count:
                self._measure(self._vectors.matrix)
            self._measure(query.matrix)
        if new or self._count >= 2 * self._measured > 0:
            self._see(learner)
        return Table(self._view.scale.of(query.matrix))

    def _see(self, learner: Any) -> None:
        """Scale the labelled examples as the kernel sees them now."""
        if self._count >= max(1, 2 * self._measured):
            self._measured = self._count
            self._spread = scale_by(self._mean, np.sqrt(self._squares / self._count), scales(learner))
        self._view.renew(learner, self._vectors.columns, self._spread)
        self._table = Table(self._view.scale.of(self._vectors.matrix))

    def _measure(self, matrix: Any) -> None:
        """Take the first row into the mean and the squared deviations, by Welford's recursion."""
        if sp.issparse(matrix):
            return
        width = len(self._vectors.columns)
        missing = width - len(self._mean)
        self._mean, self._squares = np.pad(self._mean, (0, missing)), np.pad(self._squares, (0, missing))
        self._count += 1
        before = matrix[0, :width] - self._mean
        self._mean += before / self._count
        self._squares += before * (matrix[0, :width] - self._mean)


def _usable(x: Features) -> Features:
    """The features that have a distance: texts and finite numbers."""
    return {name: value for name, value in x.items() if isinstance(value, str) or _is_finite(value)}


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)
