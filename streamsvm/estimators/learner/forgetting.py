"""How examples leave a model: for good, for another label, or only in a copy that answers without them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.batch.problem import penalties
from streamsvm.core import arguments, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.expansion import G_DOWN, G_UP, SLOTS, Expansion
from streamsvm.estimators.learner.examples import Examples, n_learned, no_margins
from streamsvm.estimators.learner.finishing import solve_with, uncovered, watch
from streamsvm.estimators.learner.learning import learn_queries
from streamsvm.estimators.learner.prediction import decide
from streamsvm.estimators.learner.state import (
    State,
    batches,
    class_weight,
    forget_slots,
    members_of,
    recover,
    slots_of,
)
from streamsvm.online.from_batch import append_block
from streamsvm.online.removal.forget import admit
from streamsvm.online.removal.leave_one_out import LeaveOut


def forget(state: State, numbers: np.ndarray) -> int:
    """Take the examples with these ids out of the model and its reservoir; return the number of members that left."""
    slots = slots_of(state, numbers)
    if state.expansion.alpha[slots].any():  # Otherwise no decision value changes.
        before, bias, watched = state.expansion, state.bias, watch(state)
        tol = max(state.tol, state.problem.violation(before))
        _forget_everywhere(state, slots, numbers)
        late = uncovered(state, watched, before, bias)
        if late.size:
            solve_with(state, late, lambda s: admit(s, state.kernel, state.problem, late.size, tol), stay=True)
    else:
        _forget_everywhere(state, slots, numbers)
    return len(slots)


def _forget_everywhere(state: State, slots: np.ndarray, ids: np.ndarray) -> None:
    """Forget the members in these slots, which have these ids, and the examples of the reservoir that have them."""
    try:
        forget_slots(state, slots)
        state.reservoir.forget(ids)
    except BaseException:
        if not len(slots_of(state, ids)):
            state.reservoir.forget(ids)
        raise


def labels_for(ids: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The ids of examples to relabel, and the right label of each."""
    numbers = arguments.numbers_of(ids, in_order=np.ndim(y) > 0)
    return numbers, arguments.labels_of(None, np.full(len(numbers), y) if np.ndim(y) == 0 else y, len(numbers), "ids")


def relabel(state: State, numbers: np.ndarray, labels: np.ndarray) -> int:
    """Correct the labels of the examples with these ids; return how many of the ids belong to members."""
    found = 0
    for number, positive in zip(numbers.tolist(), labels.tolist(), strict=True):
        found += bool(len(slots_of(state, number)))
        try:
            while len(wrong := _of_label(state, slots_of(state, number), not positive)):
                _learn_anew(state, int(wrong[0]), positive)  # Members may change their slots.
            _relabel_in_reservoir(state, number, positive)
        except BaseException:
            if not len(_of_label(state, slots_of(state, number), not positive)):
                _relabel_in_reservoir(state, number, positive)
            raise
    return found


def _relabel_in_reservoir(state: State, number: int, positive: bool) -> None:
    state.reservoir.relabel(number, positive, class_weight(state, positive) / class_weight(state, not positive))


def _of_label(state: State, slots: np.ndarray, positive: bool) -> np.ndarray:
    return slots[(state.expansion.y[slots] > 0) == positive]


def _learn_anew(state: State, slot: int, positive: bool) -> None:
    """Forget the member in this slot, and learn its example with the other label and the weight it had."""
    s = state.expansion
    indices, values = storage.features_of(s, slot)
    q = Queries(np.array([0, len(indices)]), indices, values, s.sq[slot : slot + 1].copy())
    before, after = class_weight(state, not positive), class_weight(state, positive)
    box = np.array([(s.hi[slot] - s.lo[slot]) / before * after])
    lo, hi = (np.zeros(1), box) if positive else (-box, np.zeros(1))
    raw = storage.raw_rows_of(s, np.array([slot]))
    block = Examples(q, lo, hi, s.ids[[slot]], False, s.born[[slot]], raw)
    members, margin = members_of(state), no_margins(1)
    try:
        forget_slots(state, np.array([slot]))
        learn_queries(state, block, margin, counts=False)
    except BaseException:
        recover(state, members, n_learned(margin))
        raise


# ---------------------------------------------------------------------------------------------------------- leaving out


def leave_out(
    state: State, examples: Sequence[Mapping], y: Any, w: Any = None, ids: Any = None
) -> tuple[LeaveOut, np.ndarray]:
    """Learned examples beside the members of a copy, and the slot of each there.

    Examples that are not members get coefficient 0, which may change if another member is left out.  If such an example
    violates the margin, it is held at 0: the model has not learned from it either.
    """
    n = len(examples)
    positive, numbers = arguments.labels_of(None, y, n), arguments.ids_of(ids, n)
    factors = np.where(positive, class_weight(state, True), class_weight(state, False))
    box = arguments.boxes_of(state.C, arguments.weights_of(w, n), factors)
    s = storage.copy(storage.without_rows(state.expansion))
    s = storage.keep(s, storage.live_slots(s))
    slot_of = {number: slot for slot, number in enumerate(s.ids[: s.counts[SLOTS]].tolist())}
    new = [i for i, number in enumerate(numbers.tolist()) if number not in slot_of]
    slot_of |= {int(numbers[i]): len(slot_of) + t for t, i in enumerate(new)}
    if new:
        lo, hi = np.where(positive, 0.0, -box)[new], np.where(positive, box, 0.0)[new]
        s = _beside_members(state, s, [examples[i] for i in new], lo, hi, numbers[new])
    left_out = LeaveOut(s, state.kernel, state.problem, state.tol)
    return left_out, np.array([slot_of[number] for number in numbers.tolist()], np.int64)


def _beside_members(
    state: State, s: Expansion, examples: list[Mapping], lo: np.ndarray, hi: np.ndarray, ids: np.ndarray
) -> Expansion:
    """Append examples with alpha = 0 to the members.  The box of one that violates is empty."""
    state.problem.note(s)
    b, first = state.bias, int(s.counts[SLOTS])
    top, bottom = max(s.extremes[G_UP], b + state.tol), min(s.extremes[G_DOWN], b - state.tol)
    margins = decide(state, examples)
    for rows, q in batches(state, examples, learning=False):
        s = append_block(s, state.kernel, q, len(state.features), lo[rows], hi[rows])
    own = slice(first, int(s.counts[SLOTS]))
    s.ids[own] = ids
    s.g[own] -= margins - b
    violates = np.where(s.y[own] > 0, s.g[own] > top, s.g[own] < bottom)
    s.lo[own][violates] = s.hi[own][violates] = 0.0
    s.up[own], s.down[own] = penalties(s.alpha[own], s.lo[own], s.hi[own])
    return s
