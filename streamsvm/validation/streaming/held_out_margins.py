"""The remembered examples, and what the model would predict for each of them without having learned it.

A *margin* is above 0 where an example is predicted right: y f(x) with two classes; with more, half the lead of the
example's class over the best other one.  Both kinds of models answer the same questions here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from streamsvm.core.costs import REMOVED
from streamsvm.online.removal.leave_one_out import LeaveOut
from streamsvm.validation.streaming import cost


class LeftOut(ABC):
    """A copy of a model with the remembered examples.

    Attributes
    ----------
    places
        The class of each example, (n,); with two classes 0 and 1.
    signs
        1.0, or -1.0 for a negative one of two classes, (n,): the margin times the sign is what a prediction is read
        from.
    """

    places: np.ndarray
    signs: np.ndarray

    @property
    @abstractmethod
    def ids(self) -> list[int]:
        """Ids of all examples and members."""

    @property
    @abstractmethod
    def mass(self) -> np.ndarray:
        """The size of each example's coefficient, (n,); with several models, the sum."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """How much a margin may at most rise without its example."""

    @abstractmethod
    def margins(self) -> np.ndarray:
        """By the model as it is, (n,)."""

    @abstractmethod
    def bounds(self) -> np.ndarray:
        """What is known of each example without leaving it out; see `online.removal.leave_one_out`."""

    @abstractmethod
    def without(self, ids: Iterable[int]) -> np.ndarray:
        """The margins of these examples by the model without these examples and members; NaN for the others, (n,)."""

    @abstractmethod
    def cost_of_one(self) -> float:
        """Expected seconds of leaving out an example that is a support vector."""

    @abstractmethod
    def cost_of_fold(self, k: int) -> float:
        """Expected seconds of leaving out one of k folds."""

    @abstractmethod
    def prepare(self, times: int, k: int | None = None) -> None:
        """Prepare to leave out so many single examples, or so many of k folds, if that pays."""


class LeftOutOfTwo(LeftOut):
    """Of a model of two classes; `slots` are those of the examples, `positive` their labels."""

    def __init__(self, model: LeaveOut, slots: np.ndarray, positive: np.ndarray) -> None:
        self._model, self._slots = model, slots
        self.places = positive.astype(np.int64)
        self.signs = np.where(positive, 1.0, -1.0)

    @property
    def ids(self) -> list[int]:
        return self._model.ids.tolist()

    @property
    def mass(self) -> np.ndarray:
        return np.abs(self._model.alpha[self._slots])

    @property
    def slack(self) -> float:
        return self._model.slack

    def margins(self) -> np.ndarray:
        return self.signs * self._model.decision_values()[self._slots]

    def bounds(self) -> np.ndarray:
        return self._model.bounds()[self._slots]

    def without(self, ids: Iterable[int]) -> np.ndarray:
        slots = np.flatnonzero(np.isin(self._model.ids, list(ids)))
        f = np.full(self._model.n, np.nan)
        f[slots] = self._model.without(slots)
        return self.signs * f[self._slots]

    def cost_of_one(self) -> float:
        return cost.of_removal(self._model, 1)

    def cost_of_fold(self, k: int) -> float:
        return cost.of_removal(self._model, n_support(self._model, k))

    def prepare(self, times: int, k: int | None = None) -> None:
        if cost.is_tight(self._model):
            self._model.prepare(times, 1 if k is None else n_support(self._model, k))


class LeftOutOfSeveral(LeftOut):
    """Of models of several classes; `model` is what their `leave_out` has made."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.places = model.places
        self.signs = np.ones(len(self.places))

    @property
    def ids(self) -> list[int]:
        return self._model.ids

    @property
    def mass(self) -> np.ndarray:
        return self._model.mass.sum(axis=1)

    @property
    def slack(self) -> float:
        return self._model.slack

    def margins(self) -> np.ndarray:
        return self._model.margins()

    def bounds(self) -> np.ndarray:
        return self._model.bounds()

    def without(self, ids: Iterable[int]) -> np.ndarray:
        return self._model.without(ids)

    def cost_of_one(self) -> float:
        mass = self._model.mass
        held = np.count_nonzero(mass, axis=0).tolist()  # examples that each model has as support vectors
        each = [n * cost.of_removal(part.model, 1) for n, part in zip(held, self._model.parts, strict=True)]
        n_held = int(np.count_nonzero(mass.any(axis=1)))
        return max(REMOVED, math.fsum(each) / max(1, n_held))

    def cost_of_fold(self, k: int) -> float:
        return sum(cost.of_removal(part.model, n_support(part.model, k)) for part in self._model.parts)

    def prepare(self, times: int, k: int | None = None) -> None:
        for part in self._model.parts:
            if cost.is_tight(part.model):
                part.model.prepare(times, 1 if k is None else n_support(part.model, k))


def n_support(model: LeaveOut, k: int) -> int:
    """Support vectors of one of k folds."""
    return -(-int(np.count_nonzero(model.alpha)) // k)
