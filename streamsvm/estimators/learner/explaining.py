"""Why a model answers as it does: the members that carry a decision, and the features that would change it.

    margin = side (f(x) - cut) = side (b - cut) + sum_s c_s,    c_s = side alpha_s k(x_s, x)

`side` is 1 if the predicted label is the positive one and -1 otherwise, so a positive c_s speaks for the answer.  The
slope of a feature is the derivative of the margin by its value as the kernel sees it:

    RBF          2 gamma (sum_s c_s x_s - x sum_s c_s)      linear     sum_s side alpha_s x_s
    polynomial   sum_s side alpha_s gamma degree (gamma <x_s, x> + coef0)^(degree - 1) x_s
    sigmoid      sum_s side alpha_s gamma (1 - k^2) x_s

With several models, the margin is a difference of decision values, and the terms of a member add up.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.expansion import COMPRESSED, SLOTS, STORAGE, WIDTH
from streamsvm.core.storage.members import feature_matrix, live_slots
from streamsvm.estimators.learner.state import State, asked, in_room
from streamsvm.estimators.learner.validation import too_large_a_kernel, validate_one
from streamsvm.online.outputs.calibration import CUT
from streamsvm.online.outputs.influence import Parts, explain_example, largest


class Influence(NamedTuple):
    """How much a member speaks for or against a prediction.

    Attributes
    ----------
    id
        The member's id.
    label
        Its label; None if it is of another class than the two that the explanation compares.
    share
        Its part of the sum of all members' influences, each counted as positive: from 0 to 1.
    """

    id: int
    label: Hashable
    share: float


class Sensitivity(NamedTuple):
    """How much a feature moves a prediction.

    Attributes
    ----------
    name
        The feature's name.
    slope
        How fast the margin grows with the feature: for each standard deviation if the model scales the feature, and for
        each unit otherwise.  Below 0: a larger value speaks against the answer.
    change
        How much must be added to the feature, in its own units, to turn the answer if the slope stayed the same.
    """

    name: Hashable
    slope: float
    change: float


class Explanation(NamedTuple):
    """Why a model gives an answer.

    Attributes
    ----------
    label
        The predicted label.
    rival
        The label it is compared with: the other one of two, or the second most probable; None if there is no other.
    margin
        How far the decision value is on the predicted label's side.
    members
        The members that speak most for the answer, the strongest first.
    against
        The members that speak most against it.
    features
        The features with the steepest slopes, the steepest first.
    """

    label: Hashable
    rival: Hashable
    margin: float
    members: list[Influence]
    against: list[Influence]
    features: list[Sensitivity]


NEITHERS, OWN, RIVALS = range(-1, 2)  # whose a member is, the predicted label's, its rival's: places in `labels` below


class Part(NamedTuple):
    """One of the states that decide between two classes.

    Attributes
    ----------
    state
        The state.
    side
        1 if a larger decision value speaks for the predicted class, otherwise -1.
    positive, negative
        Whose members its positive and its negative ones are.
    """

    state: State
    side: float
    positive: int
    negative: int


class Terms(NamedTuple):
    """What a decision value is made of.

    Attributes
    ----------
    ids, y, c
        For each member the id, the label (-1 or 1), and alpha_s k(x_s, x).
    value
        The decision value.
    slopes
        Its derivative by each column, as the kernel sees it.
    """

    ids: np.ndarray
    y: np.ndarray
    c: np.ndarray
    value: float
    slopes: np.ndarray


def terms_of(state: State, x: dict) -> Terms:
    """The terms of a state's decision value; a ValueError or a TypeError if x is invalid."""
    s, n = in_room(state), int(state.expansion.counts[SLOTS])
    features = asked(state, x)
    parts = Parts(np.empty(n), np.empty(n, np.float32), np.zeros(len(state.features.columns)))
    value = explain_example(s, state.scale.state, state.kernel, features, state.bias, parts)
    if not math.isfinite(value):
        validate_one(state, x)
        raise too_large_a_kernel(state, f"x={x!r}")
    if s.counts[STORAGE] == COMPRESSED:
        shape = n, len(parts.slopes)
        of_members = sp.csr_matrix((s.sparse_values, s.sparse_indices, s.starts[: n + 1]), shape=shape, copy=False).T
    else:
        of_members = feature_matrix(s)[: min(int(s.counts[WIDTH]), len(parts.slopes)), :n]
    parts.slopes[: of_members.shape[0]] += of_members @ parts.factors
    live = live_slots(s)
    return Terms(s.ids[live], s.y[live], parts.terms[live], value, parts.slopes)


def of_two_labels(state: State, x: dict, n: int) -> Explanation:
    """Why a state says True or False."""
    terms, cut = terms_of(state, x), float(state.calibration[CUT])
    label = terms.value > cut
    part = Part(state, 1.0, OWN, RIVALS) if label else Part(state, -1.0, RIVALS, OWN)
    return _explained([part], [terms], n, (label, not label, None), lambda ids: ids, part.side * cut)


def of_classes(
    duel: Sequence[Part], x: dict, n: int, labels: tuple[Hashable, ...], ids_of: Callable[[np.ndarray], np.ndarray]
) -> Explanation:
    """Why one class is predicted and not another.

    Parameters
    ----------
    duel
        The states whose decision values add up to the margin.
    x
        The example.
    n
        How many members on either side, and how many features to name.
    labels
        The predicted class, the other one, and None.
    ids_of
        The ids that the user knows members by, from those of the states.
    """
    return _explained(duel, [terms_of(part.state, x) for part in duel], n, labels, ids_of, 0.0)


def _explained(
    duel: Sequence[Part],
    terms: Sequence[Terms],
    n: int,
    labels: tuple[Hashable, ...],
    ids_of: Callable[[np.ndarray], np.ndarray],
    cut: float,
) -> Explanation:
    """The explanation by the terms of these parts, whose label is predicted above this cut."""
    numbers, places = np.unique(np.concatenate([of.ids for of in terms]), return_inverse=True)
    c = np.bincount(places, np.concatenate([part.side * of.c for part, of in zip(duel, terms, strict=True)]))
    classes = np.full(len(numbers), NEITHERS)
    own = [np.where(of.y > 0, part.positive, part.negative) for part, of in zip(duel, terms, strict=True)]
    np.maximum.at(classes, places, np.concatenate(own))
    total = float(np.abs(c).sum())

    def influences(places: np.ndarray) -> list[Influence]:
        found = zip(ids_of(numbers[places]).tolist(), classes[places].tolist(), np.abs(c[places]).tolist(), strict=True)
        return [Influence(number, labels[of], size / total) for number, of, size in found]

    margin = sum(part.side * of.value for part, of in zip(duel, terms, strict=True)) - cut
    slopes = np.sum([part.side * of.slopes for part, of in zip(duel, terms, strict=True)], axis=0)
    members, against = influences(_largest(c, 1.0, n)), influences(_largest(c, -1.0, n))
    label, rival, _ = labels
    return Explanation(label, rival, margin, members, against, _sensitivities(duel[0].state, slopes, margin, n))


def _largest(values: np.ndarray, side: float, n: int) -> np.ndarray:
    """The places of the n largest positive values of side * values, the largest first."""
    places = np.empty(min(n, len(values)), np.int64)
    return places[: largest(values, side, places)]


def _sensitivities(state: State, slopes: np.ndarray, margin: float, n: int) -> list[Sensitivity]:
    names, found = state.features.learned(), []
    for column in _largest(np.abs(slopes), 1.0, n).tolist():
        slope, (_, factor) = float(slopes[column]), state.scale.of(column)
        change = -margin / (slope * factor)
        found.append(Sensitivity(names[column], slope * state.scale.weight_of(column), change))
    return found
