"""The pairs of classes of a training set that a batch solver has solved.

Votes and decision values need the solutions only.  So the model of a pair is made when it is first needed: to learn
more, to forget, for probabilities or for a snapshot.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from streamsvm.batch.multiclass.class_pairs import PairOptimum
from streamsvm.core import arguments
from streamsvm.core.class_weights import Counts
from streamsvm.estimators.learner.state import State, note
from streamsvm.online.from_batch import Members, with_members
from streamsvm.online.outputs.calibration import new_calibration, note_margins
from streamsvm.online.union import Union


class TrainedPair(NamedTuple):
    """What the model of a pair has learned.

    Attributes
    ----------
    optimum
        Its solution.
    numbers
        The numbers by which the union knows the members.
    counts
        Numbers of negative and of positive examples.
    largest
        The largest number of an example.
    """

    optimum: PairOptimum
    numbers: np.ndarray
    counts: Counts
    largest: int

    @property
    def function(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The numbers and the coefficients of the members, and the constant of f(x)."""
        return self.numbers, self.optimum.alpha, self.optimum.bias

    @property
    def calibration(self) -> np.ndarray:
        """What the margins told; see `online.outputs.calibration`."""
        calibration = new_calibration(0.0)
        note_margins(calibration, self.optimum.positive, self.optimum.decision_values)
        return calibration


def trained(found: Iterable[PairOptimum], ids: np.ndarray, counts: list[int], largest: list[int]) -> list[TrainedPair]:
    """Solved pairs; `counts` and `largest` have the number of examples and the largest id of each class."""
    return [
        TrainedPair(p, ids[p.members], (counts[p.second], counts[p.first]), max(largest[p.first], largest[p.second]))
        for p in found
    ]


def give_solution(state: State, pair: TrainedPair, U: Union) -> None:
    """Let a new model be this solution, whose members are in the union."""
    slots, n_features = U.slots_of(pair.numbers), len(state.features)
    box = arguments.boxes_of(state.C, U.weights[slots], np.ones(len(slots)))
    places = pair.optimum.places
    positive = places < pair.counts[True]
    lo, hi = np.where(positive, 0.0, -box), np.where(positive, box, 0.0)
    members = Members(lo, hi, pair.optimum.alpha, pair.optimum.g, pair.numbers, places)
    state.expansion = with_members(state.expansion, state.kernel, [U.queries(slots)], n_features, members)
    state.calibration = pair.calibration
    n = sum(pair.counts)
    note(state, n, pair.counts, pair.largest, n_features, 0, n - 1)
