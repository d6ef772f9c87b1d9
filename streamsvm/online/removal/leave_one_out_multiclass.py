"""What the models of several classes say about examples without some of them.

Each model has all examples: its members, and the others beside them.  An example of a class that the model does not
learn has an empty box; the model only computes f(x) of it.

========= ================================================================================ ===================
symbol    name                                                                             shape, dtype
========= ================================================================================ ===================
F         f(x) of each example by each model                                               (n, n_models) float64
lead      half the lead of an example's class over the best other one; above 0 where the   (n,) float64
          class is predicted
========= ================================================================================ ===================

Without an example, no model becomes surer of the example's class (see `leave_one_out`), so its lead cannot rise.  An
example that is predicted wrong stays wrong, up to the models' violations.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from streamsvm.online.removal.leave_one_out import RIGHT, UNCHANGED, UNKNOWN, WRONG, LeaveOut

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


class LeaveOutSeveral:
    """Predictions for examples of several classes, by the models without them.

    Parameters
    ----------
    parts
        The models.
    ids
        The user's ids of the examples.
    places
        The class of each example, (n,).
    leads
        The lead of each example's class, from F and the classes.
    """

    def __init__(self, parts: list[Part], ids: np.ndarray, places: np.ndarray, leads: Leads) -> None:
        self.parts, self.places = parts, places
        self._row_of = {number: row for row, number in enumerate(ids.tolist())}
        self._leads = leads
        self._F = np.column_stack([part.model.decision_values()[part.slots] for part in parts])
        self._bounds = np.column_stack([part.model.bounds()[part.slots] for part in parts])
        self._signs = np.column_stack([part.signs for part in parts])

    @property
    def ids(self) -> list[int]:
        """The user's ids of all examples and members."""
        return list(dict.fromkeys(number for part in self.parts for number in part.slot_of))

    @property
    def mass(self) -> np.ndarray:
        """The sizes of each example's coefficients, (n, n_models)."""
        return np.abs(np.column_stack([part.model.alpha[part.slots] for part in self.parts]))

    @property
    def slack(self) -> float:
        """How much a lead may at most rise without its example."""
        return max(part.model.slack for part in self.parts)

    def margins(self) -> np.ndarray:
        """The leads by the models as they are, (n,)."""
        return self._leads(self._F, self.places)

    def bounds(self) -> np.ndarray:
        """What is known of each example without leaving it out: UNKNOWN, UNCHANGED, WRONG or RIGHT, (n,) int8.

        An example is right if all models that learned it are right about it, since only its class has all of them.
        """
        unchanged, known_right = self._bounds == UNCHANGED, self._bounds == RIGHT
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
        """The lead of each of these examples, by the models without them and without the members with these ids.

        Of the other examples, NaN; (n,).
        """
        gone = list(ids)
        rows = np.array([self._row_of[number] for number in gone if number in self._row_of], np.int64)
        F = self._F[rows]
        for column, part in enumerate(self.parts):
            slots = np.array([part.slot_of[number] for number in gone if number in part.slot_of], np.int64)
            if (part.model.alpha[slots] != 0.0).any() or (self._bounds[rows, column] != UNCHANGED).any():
                f = dict(zip(slots.tolist(), part.model.without(slots).tolist(), strict=True))
                F[:, column] = [f[slot] for slot in part.slots[rows].tolist()]
        found = np.full(len(self.places), np.nan)
        found[rows] = self._leads(F, self.places[rows])
        return found
