"""The remembered examples, and what the model would predict for each of them without having learned it.

A *margin* is above 0 where an example is predicted right, and below 0 where not: y f(x) with two classes; with more,
half the lead of the example's class over the best other one.  Two classes have one model.  With more, each model has
all examples: its members, and the others beside them.  An example of a class that a model does not learn has an empty
box there.

========= ================================================================================ ===================
symbol    name                                                                             shape, dtype
========= ================================================================================ ===================
F         f(x) of each example by each model                                               (n, n_models) float64
lead      half the lead of an example's class over the best other one; above 0 where the   (n,) float64
          class is predicted
========= ================================================================================ ===================

Without an example, no model becomes surer of the example's class (see `online.removal.leave_one_out`), so its lead
cannot rise.  An example that is predicted wrong stays wrong, up to the models' violations.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from streamsvm.core.costs import REMOVED
from streamsvm.core.rounding import DUST
from streamsvm.online.removal.leave_one_out import RIGHT, UNCHANGED, UNKNOWN, WRONG, LeaveOut
from streamsvm.validation.streaming import cost

Leads = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Part(NamedTuple):
    """One model.

    model
        The model with all examples.
    slots
        The slot of each example, (n,).
    slot_of
        The slot of each member and each example, by the user's id.
    signs
        1, -1, or 0 if the model does not learn the example, (n,).
    """

    model: LeaveOut
    slots: np.ndarray
    slot_of: dict[int, int]
    signs: np.ndarray


class LeftOut:
    """Margins of examples by the models without them.

    Parameters
    ----------
    parts
        The models.
    ids
        The user's ids of the examples.
    places
        The class of each example, (n,); with two classes 0 and 1.
    leads
        The lead of each example's class, from F and the classes; None: two classes, which have one model.
    """

    def __init__(self, parts: list[Part], ids: np.ndarray, places: np.ndarray, leads: Leads | None = None) -> None:
        self.parts, self.places = parts, places
        self._row_of = {number: row for row, number in enumerate(ids.tolist())}
        self._are_two, self._leads = leads is None, leads or margins_of_two
        self._F = np.column_stack([part.model.decision_values()[part.slots] for part in parts])
        self._known = [part.model.bounds() for part in parts]
        self._signs = np.column_stack([part.signs for part in parts])

    @property
    def ids(self) -> list[int]:
        """The user's ids of all examples and members."""
        return list(dict.fromkeys(number for part in self.parts for number in part.slot_of))

    @property
    def masses(self) -> np.ndarray:
        """The sizes of each example's coefficients, (n, n_models)."""
        return np.abs(np.column_stack([part.model.alpha[part.slots] for part in self.parts]))

    @property
    def slack(self) -> float:
        """How much a margin may at most rise without its example."""
        return max(part.model.slack for part in self.parts)

    def margins(self) -> np.ndarray:
        """By the models as they are, (n,)."""
        return self._leads(self._F, self.places)

    def bounds(self) -> np.ndarray:
        """What is known of each example without leaving it out: UNKNOWN, UNCHANGED, WRONG or RIGHT, (n,) int8.

        An example is right if all models that learned it are right about it, since only its class has all of them.
        """
        bounds = np.column_stack([known[part.slots] for known, part in zip(self._known, self.parts, strict=True)])
        if self._are_two:
            return bounds[:, 0]
        unchanged, known_right = bounds == UNCHANGED, bounds == RIGHT
        certain = (self._signs == 0) | known_right | (unchanged & (self._signs * self._F > 0.0))
        doubts = np.array([2.0 * part.model.slack for part in self.parts])
        found = np.full(len(self.places), UNKNOWN, np.int8)
        if np.isfinite(doubts).all():
            at_best = self._leads(self._F + doubts * self._signs, self.places)
            found[at_best < 0.0] = WRONG
        found[certain.all(axis=1)] = RIGHT
        found[unchanged.all(axis=1)] = UNCHANGED
        return found

    def without(self, ids: Iterable[int]) -> np.ndarray:
        """The margins of these examples by the models without these examples and members; NaN for the others, (n,)."""
        gone = list(ids)
        rows = np.array([self._row_of[number] for number in gone if number in self._row_of], np.int64)
        F = self._F[rows]
        for column, (part, known) in enumerate(zip(self.parts, self._known, strict=True)):
            slots = np.array([part.slot_of[number] for number in gone if number in part.slot_of], np.int64)
            if (known[slots] != UNCHANGED).any():
                f = dict(zip(slots.tolist(), part.model.without(slots).tolist(), strict=True))
                F[:, column] = [f[slot] for slot in part.slots[rows].tolist()]
        found = np.full(len(self.places), np.nan)
        found[rows] = self._leads(F, self.places[rows])
        return found

    def cost_of_one(self) -> float:
        """Expected seconds of leaving out an example that is a support vector."""
        masses = self.masses
        held = np.count_nonzero(masses, axis=0).tolist()  # examples that each model has as support vectors
        each = [n * cost.of_removal(part.model, 1) for n, part in zip(held, self.parts, strict=True)]
        return max(REMOVED, math.fsum(each) / max(1, int(np.count_nonzero(masses.any(axis=1)))))

    def cost_of_fold(self, k: int) -> float:
        """Expected seconds of leaving out one of k folds."""
        return sum(cost.of_removal(part.model, n_support(part.model, k)) for part in self.parts)

    def prepare(self, times: int, k: int | None = None) -> None:
        """Prepare to leave out so many single examples, or so many of k folds, if that pays."""
        for part in self.parts:
            if cost.is_tight(part.model):
                part.model.prepare(times, 1 if k is None else n_support(part.model, k))


def of_two(found: tuple[LeaveOut, np.ndarray], ids: np.ndarray, places: np.ndarray) -> LeftOut:
    """Examples of two classes, which have one model and a slot each in it."""
    model, slots = found
    slot_of = {number: slot for slot, number in enumerate(model.ids.tolist())}
    return LeftOut([Part(model, slots, slot_of, np.where(places > 0, 1.0, -1.0))], ids, places)


def margins_of_two(F: np.ndarray, places: np.ndarray) -> np.ndarray:
    """y f(x) of examples of two classes, given f(x) by their model, (n, 1): 0 is the value of a negative example."""
    f = np.where(F[:, 0] == 0.0, -DUST, F[:, 0])
    return np.where(places > 0, f, -f)


def n_support(model: LeaveOut, k: int) -> int:
    """Support vectors of one of k folds."""
    return -(-int(np.count_nonzero(model.alpha)) // k)
