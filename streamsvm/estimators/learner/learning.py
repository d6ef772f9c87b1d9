"""How examples come into a model: one at a time or in blocks, within its budget and window.

`learn_batch` gives what a loop of `learn` gives, bit for bit.  Compiled code learns a block in parts.
A part ends where a member has to leave first: because it is too old, because the budget is reached, or because the next
example has its id.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from streamsvm.core import arguments, blocks, class_weights, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.expansion import Expansion, is_binary
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, largest_self_product, self_products
from streamsvm.core.scaling.state import RawRows, Scaling
from streamsvm.estimators.inputs.checks import n_rows
from streamsvm.estimators.inputs.raw_rows import one_row, with_gaps
from streamsvm.estimators.learner import eviction, validation
from streamsvm.estimators.learner.advice import look
from streamsvm.estimators.learner.examples import Examples, n_learned
from streamsvm.estimators.learner.state import (
    State,
    age_of,
    ages_of,
    class_weight,
    clock_of,
    forget_slots,
    in_room,
    is_full,
    members_of,
    note,
    notice_lacking,
    raw_batches,
    recover,
    rescale_if_due,
)
from streamsvm.online import arrival
from streamsvm.online.arrival import NOTHING_SAID, learn_example
from streamsvm.online.removal.window import FAR

# The kernel values of a part of a block with an expansion, if they are known already; see `online.arrival`.
ValuesOf = Callable[[Expansion, slice], tuple[np.ndarray, np.ndarray, bool]]

# ---------------------------------------------------------------------------------------------------------- one example


def learn(state: State, x: dict, y: Any, w: float, id: int | None, t: Any, said: float = math.nan) -> None:
    """Learn one example, completely or not at all; for `said` see `online.arrival`."""
    # 1. What the user gave, and what follows from it: the box, the id and the age.
    positive = arguments.label_of(y)
    box = arguments.box_of(state.C, w, class_weight(state, positive, arriving=True))
    number = number_of(state, id)
    born, now = age_of(state, t)
    if state.window and now - born >= state.window.span:  # The example came too late to be kept.
        box, born = 0.0, now
    lo, hi = (0.0, box) if positive else (-box, 0.0)
    # 2. The features, in columns that stay provisional until the example has been learned.
    rescale_if_due(state)
    columns, values = state.features.example(x, learning=True)
    n_columns = len(state.features.columns)
    state.scale.fit_room(state.features)
    scale, after = state.scale.state, None
    if not state.features.is_whole(columns):
        notice_lacking(state, columns, 1)
        marked = len(columns) < len(x)
        if marked or state.scale.has_gaps(columns, 1):
            # The scale takes in what was given, and the model what is filled in.
            scale, given = state.scale.still(), one_row(columns, values)
            raw, after = state.scale.ahead(with_gaps(given, marked), np.array([lo < hi]))
            columns, values = raw.columns, raw.values
    # 3. Which members leave before.  None does for an example that is refused afterwards.
    leaving = eviction.NO_SLOTS
    if id is not None:
        leaving = eviction.replaced(state, number, lo, hi, lambda: _stored(state, columns, values))
    full = is_full(state)
    if full or len(leaving):
        validation.require_learnable(state, x, columns, values)
    # 4. What to note once the margin is there, and what to go back to as long as it is not.
    counts = state.class_counts[False] + (lo < 0.0), state.class_counts[True] + (hi > 0.0)
    learned = (state.n_seen + 1, counts, number, n_columns, born, now)
    noted = (state.n_seen, number, born, now, positive, hi - lo, columns, values)
    before, margin = members_of(state), np.array([math.nan, said])

    def note_all() -> None:
        note(state, *learned)
        state.reservoir.note(*noted)
        if after is not None:
            state.scale.state = after

    # 5. Learn.  An interruption may come anywhere.
    try:
        if len(leaving):
            forget_slots(state, leaving)
        if full:
            eviction.make_way(state, now)
        example = (lo, hi, number, born, id is not None)
        status = learn_values(state, scale, columns, values, example, margin)
        if status == arrival.LEARNED:
            note_all()
    except BaseException:
        if n_learned(margin):
            note_all()
        recover(state, before, n_learned(margin))
        raise
    if status != arrival.LEARNED:
        is_kernel = status != arrival.NOT_FINITE
        raise validation.kernel_overflow(state, state.n_seen) if is_kernel else validation.too_large_feature(state, x)
    # 6. What the example changed for the next one.
    rescale_if_due(state)
    if state.n_seen == state.next_look:
        look(state)


def number_of(state: State, id: Any) -> int:
    """The id of the next example, given or not."""
    if id is not None:
        return arguments.id_of(id)
    arguments.require_ids_left(state.next_id, 1)
    return state.next_id


def learn_values(
    state: State, scale: Scaling, columns: np.ndarray, values: np.ndarray, example: tuple, margin: np.ndarray
) -> int:
    """Learn one example unless it is refused; return the status of its arrival."""
    features, notes = arrival.Features(columns, values), arrival.Notes(state.calibration, clock_of(state), margin)
    given = (scale, state.kernel, state.rule, features, *example, notes)
    if len(state.features.columns) > len(state.expansion.member_indices):
        make_room(state, values, is_binary(state.expansion))  # If the example is refused, its storage stays.
    status = learn_example(in_room(state), *given)
    if status == arrival.NO_ROOM:
        stored = _stored(state, columns, values)[1] if state.scale.is_active else values.astype(np.float32)
        ones = bool(np.isin(stored, (0.0, 1.0)).all())
        make_room(state, values, is_binary(state.expansion) and ones)
        status = learn_example(in_room(state), *given)
    return status


def _stored(state: State, columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The features of one example as an expansion stores them: non-zero, in single precision, in order."""
    with np.errstate(over="ignore"):
        q = state.scale.queries(one_row(columns, values))
    return q.indices, q.values


def make_room(state: State, values: np.ndarray, binary: bool) -> None:
    nnz = len(state.features) if state.scale.is_active else int(np.count_nonzero(values))
    state.expansion = storage.reserve(state.expansion, 1, len(state.features), binary, nnz, 0)


# -------------------------------------------------------------------------------------------------------------- a batch


def learn_batch(
    state: State,
    X: Any,
    y: Any,
    w: Any = None,
    ids: Any = None,
    t: Any = None,
    before: np.ndarray | None = None,
    said: np.ndarray = NOTHING_SAID,
) -> np.ndarray:
    """Learn a batch of examples in sequence; return the margin of each before it was learned, (n,).

    `before` receives what the model says of each, and `said` has what it said long ago; see `online.arrival`.
    """
    n = n_rows(X)
    positive = arguments.labels_of(X, y, n)
    lo, hi, born = boxes_of(state, positive, arguments.weights_of(w, n), ages_of(state, t, n))
    numbers = arguments.next_ids(state.next_id, n) if ids is None else arguments.ids_of(ids, n)
    margins = np.empty(n)

    def learn(first: int, growth: np.ndarray, part: slice, q: Queries, filled: RawRows) -> None:
        rows = slice(first + part.start, first + part.stop)
        raw = state.scale.kept(filled)
        block = Examples(q, lo[rows], hi[rows], numbers[rows], ids is not None, born[rows], raw, said[rows])
        learn_queries(state, block, margins[rows], growth[part], noted=filled, before=_part_of(before, rows))

    for rows, raw, growth in raw_batches(state, X, learning=True):
        rescale, learn_part = partial(rescale_if_due, state), partial(learn, rows.start, growth)
        in_parts(state, rows.start, raw, lo[rows] < hi[rows], rescale, learn_part)
    return margins


def _part_of(before: np.ndarray | None, rows: slice) -> np.ndarray | None:
    return None if before is None else before[rows]


def in_parts(
    state: State,
    first: int,
    raw: RawRows,
    counted: np.ndarray,
    rescale: Callable[[], None],
    learn: Callable[[slice, Queries, RawRows], None],
) -> None:
    """Learn a block in parts between two changes of the scale.

    Parameters
    ----------
    state
        The one whose scale takes the examples in, and whose `n_seen` tells how many have been learned.
    first
        The number of the first example, for error messages.
    raw, counted
        The examples, and which of them the scale takes in.
    rescale
        Takes the scale into use if it is due.
    learn
        Learns a part, given its place in the block, its queries, and its examples with their gaps filled.
    """
    state.scale.fit_room(state.features)
    done, n = 0, len(raw.sq)
    while done < n:
        rescale()
        q, filled, after = _until_change(state, first + done, raw.part(done, n), counted[done:])
        n_seen = state.n_seen
        try:
            learn(slice(done, done + len(q.sq)), q, filled)
            state.scale.state = after
        except BaseException:
            learned = slice(done, done + state.n_seen - n_seen)
            state.scale.state = state.scale.ahead(raw.part(learned.start, learned.stop), counted[learned])[1]
            raise
        done += len(q.sq)
    rescale()


def _until_change(state: State, first: int, raw: RawRows, counted: np.ndarray) -> tuple[Queries, RawRows, Scaling]:
    """The examples to learn until the scale is due, as queries and with their gaps filled, and the scale after them.

    They end before an example whose kernel with itself is too large.  If that is the next one, it is refused.  Without
    moments, which may still make it small, all of them are refused.
    """
    part, after = state.scale.ahead(raw, counted)
    q = state.scale.queries(part)
    if not largest_self_product(state.kernel, q.sq) > LARGEST_KERNEL_VALUE:
        return q, part, after
    n_fitting = int(np.argmax(np.abs(self_products(state.kernel, q.sq)) > LARGEST_KERNEL_VALUE))
    if n_fitting == 0 or not state.scale.tracks:
        raise validation.kernel_overflow(state, first + n_fitting)
    after = state.scale.ahead(raw.part(0, n_fitting), counted[:n_fitting])[1]
    return q.part(0, n_fitting), part.part(0, n_fitting), after


def boxes_of(
    state: State, positive: np.ndarray, weights: np.ndarray, born: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The boxes and ages of the next examples.  The box is empty if the example came too late for the window."""
    with np.errstate(over="ignore"):  # `arguments.boxes_of` refuses what is too large
        kept = state.C * weights > 0.0
    if state.window and state.window.by_time:
        now = state.window.now(born)
        too_late = now - born >= state.window.span
        kept, born = kept & ~too_late, np.where(too_late, now, born)
    factors = class_weights.class_weights(state.pos_weight, state.class_counts, positive, kept)
    box = np.where(kept, arguments.boxes_of(state.C, weights, factors), 0.0)
    return np.where(positive, 0.0, -box), np.where(positive, box, 0.0), born


# -------------------------------------------------------------------------------------------------------------- a block


def learn_queries(
    state: State,
    block: Examples,
    margins: np.ndarray,
    growth: np.ndarray | None = None,
    values_of: ValuesOf | None = None,
    counts: bool = True,
    noted: RawRows | None = None,
    before: np.ndarray | None = None,
) -> None:
    """Learn a block.

    Parameters
    ----------
    state
        The model.
    block
        The examples.
    margins
        Receives each example's margin before it was learned; NaN means that it has not been learned.
    growth
        Number of columns after each example; default: as many as before.
    values_of
        Gives the kernel values of a part of the block with the slots, if they are known.
    counts
        Whether the examples count in `n_seen` and `class_counts`.
    noted
        The examples as the reservoir notes them; default: it does not note the block.
    before
        Receives what the model says of each example before it is learned; see `online.arrival`.
    """
    # 1. What does not change while the block is learned.
    now = state.window.now(block.born) if state.window else block.born
    n_seen, n_kept, (negatives, positives) = state.n_seen, state.features.n_kept, state.class_counts
    largest = np.maximum.accumulate(block.ids)
    returning, done = eviction.returning_in(state, block), 0
    margins[:] = math.nan

    def learned(done: int, n: int) -> int:
        """Note that the examples from `done` on, before the n-th, have been learned."""
        if n > done:
            counted = slice(n if counts else 0)
            of_classes = negatives + (block.lo[counted] < 0.0).sum(), positives + (block.hi[counted] > 0.0).sum()
            seen, last = (n_seen + n, int(largest[n - 1])) if counts else (n_seen, -1)
            n_columns = n_kept if growth is None else int(growth[n - 1])
            note(state, seen, of_classes, last, n_columns, int(block.born[done:n].min()), int(now[n - 1]))
        return n

    def note_in_reservoir() -> None:
        """Note the examples that have been learned."""
        if noted is not None and done:
            own = (block.ids[:done], block.born[:done], now[:done], block.lo[:done], block.hi[:done])
            state.reservoir.note_block(n_seen, *own, noted)

    try:
        while done < len(margins):
            members = members_of(state)
            try:
                # 2. Members leave that the next example replaces, or that are too many; compiled code lets old ones go.
                full = is_full(state)
                leaving = before is not None and (done in returning or full)
                own_value = _value_of(state, block.part(done, done + 1)) if leaving else math.nan
                if done in returning:
                    forget_slots(state, eviction.replaced_by(state, block, done))
                if full:
                    eviction.make_way(state, int(now[done]))
                # 3. The part ends before the next one that lets a member leave, and at the next look.
                end = done + eviction.fitting(state, len(margins) - done)
                end = min(end, done + state.next_look - state.n_seen)
                end = eviction.until_replaced(state, block, done, end, returning)
                # 4. Compiled code learns it, or as much as there is room for.
                more = _part_of(before, slice(done, end))
                n = _learn_part(state, block.part(done, end), margins[done:end], done, values_of, more)
                if more is not None and leaving and n:
                    more[0, 0] = own_value  # what it says with the members that have left
                done = learned(done, done + n)
            except BaseException:
                before_it, done = done, learned(done, done + n_learned(margins[done:]))
                recover(state, members, done - before_it)
                raise
            if state.n_seen == state.next_look:
                look(state)
        note_in_reservoir()
    except BaseException:
        note_in_reservoir()
        raise


def _value_of(state: State, example: Examples) -> float:
    """f(x) of one example."""
    decided = state.evaluator.decide_blocks(in_room(state), state.kernel, [example.q], state.bias)
    return float(next(decided)[0])


def _learn_part(
    state: State,
    part: Examples,
    margins: np.ndarray,
    first: int,
    values_of: ValuesOf | None,
    before: np.ndarray | None,
) -> int:
    """Learn a part of a block as far as there is room; return the number of examples learned."""
    if values_of is None and blocks.prefers_product(state.expansion, part.q, within=True):
        margins = margins[: blocks.BLOCK]
        part = part.part(0, len(margins))
    state.expansion = arrival.make_room(state.expansion, part.q, len(state.features))
    if values_of is None:
        products = (*state.evaluator.products(state.expansion, part.q), False)
    else:
        products = values_of(state.expansion, slice(first, first + len(margins)))
    limit = FAR if state.budget is None else int(state.budget)
    s, block = in_room(state), part.compiled()
    notes, noted = (state.calibration, clock_of(state)), arrival.NOTHING_BEFORE if before is None else before
    return arrival.learn_block(
        s, state.kernel, state.rule, block, part.own_ids, *products, *notes, limit, margins, noted
    )
