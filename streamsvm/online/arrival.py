"""How an example arrives at a learner: checks, its kernel row, and the loop over a block of examples.

`learn_example` and `learn_block` serve every algorithm.  `learn_query` is the algorithm's own: `lasvm` and `gap` each
implement it for their class of rule.

`learn_block` stops before an example for which there is no room, and returns how many examples it has learned.  So
holes are squeezed out and features compressed at the same examples however a stream is cut into blocks, and sums are
made in the same order.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
x        features of one example, in the order of `columns`           (d,) float64
lo, hi   boxes of the examples; lo = hi: the example is not learned   (B,) float64
P, G     inner products with the members, and within the block, or    see `blocks`
         kernel values already, if `mapped`
arrivals the example of the block that is in slot first + k           (B,) int64
margins  f(x) of each example before it was learned                   (B,) float64
before   what the model said of each example before it was learned:   (B, 1 + k)
         f(x), and the first k numbers of the calibration             float64
c        the scale of the features, see `scaling`                     `Scaling`
said     f(x) of each example when it was predicted, if its label     (B,) float64
         came late, otherwise NaN; empty if none did
own_id   whether the user gave the id: a member that has it already   bool
         makes the example a repetition
clock    of a window, see `removal.window`; empty without one         (3,) int64
======== ============================================================ ================
"""

from typing import Any, NamedTuple

import numpy as np

from streamsvm.core.blocks import LARGEST_SQUARED_NORM, Queries, compress_example, expansion_sum, is_binary_block
from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner, shared
from streamsvm.core.compiling._reference import by_reference
from streamsvm.core.expansion import (
    BITS,
    COMPRESSED,
    EVALUATIONS,
    HOLES,
    SLOTS,
    STORAGE,
    WIDE,
    WIDTH,
    Expansion,
    is_binary,
    is_wide,
    needs_reserve,
    note_features,
    store_raw,
    wants_rows,
)
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, map_row, self_product
from streamsvm.core.rows import all_ones, kernel_row
from streamsvm.core.scaling.moments import observe
from streamsvm.core.scaling.state import ACTIVE
from streamsvm.core.scaling.values import compress_scaled
from streamsvm.core.storage import reserve

MAX_REPROCESS = 1000  # steps on one example, which bounds the time of one call; the next example goes on
LEARNED, NO_ROOM, NOT_FINITE, OVERFLOW = range(4)
NOTHING_BEFORE = np.zeros((0, 0))
SPAN, LATEST, DUE = range(3)  # of a clock
NO_CLOCK = np.empty(0, np.int64)  # of a learner without a window
NOTHING_SAID = np.empty(0)  # of a block without late labels


class Example(NamedTuple):
    """One example in compiled code.

    indices, values, sq
        Its non-zero features in order, and its squared norm.
    y, lo, hi
        Its label, -1.0 or 1.0, and its box.
    id, born
        Its id, and its number or time; see `expansion`.
    said
        f(x) to note in the calibration, if its label came late.  NaN: the margin that it has now.
    """

    indices: np.ndarray
    values: np.ndarray
    sq: float
    y: float
    lo: float
    hi: float
    id: int
    born: int
    said: float


@by_reference
class Features(NamedTuple):
    """The features of one example as Python hands them over: int64 columns in any order, and float64 values."""

    columns: np.ndarray
    values: np.ndarray


@by_reference
class Notes(NamedTuple):
    """What learning one example writes: the calibration, the clock, and the example's margin before.

    `margin` is (2,) float64.  It receives the margin at [0], and brings `Example.said` at [1]: an argument more would
    take time.
    """

    calibration: np.ndarray
    clock: np.ndarray
    margin: np.ndarray


@by_reference
class Block(NamedTuple):
    """A block of examples to learn: queries, boxes, ids, numbers or times, `said`, and the features before scaling.

    The last three are those of `RawRows` with places instead of columns.  They are empty if no feature is scaled.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    sq: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    ids: np.ndarray
    born: np.ndarray
    said: np.ndarray
    raw_indptr: np.ndarray
    raw_places: np.ndarray
    raw_values: np.ndarray


@inner
def said_of(block, t):
    """What was said of the t-th example of a block; NaN for nothing."""
    return block.said[t] if block.said.shape[0] > 0 else np.nan


@inner
def example_of(block, t, lo, hi, said):
    """The t-th example of a block, with this box."""
    own = slice(block.indptr[t], block.indptr[t + 1])
    indices, values = block.indices[own], block.values[own]
    return Example(indices, values, block.sq[t], label_of(hi), lo, hi, block.ids[t], block.born[t], said)


@inner
def store_raw_of(s, slot, block, t):
    """Keep the unscaled features of the t-th example of a block, which is in this slot."""
    if s.raw.shape[1] > 0:
        begin, end = block.raw_indptr[t], block.raw_indptr[t + 1]
        store_raw(s, slot, block.raw_places[begin:end], block.raw_values[begin:end])


@inner
def label_of(hi):
    """The label of an example that may be learned, from the upper end of its box: C or 0."""
    return 1.0 if hi > 0.0 else -1.0


def learn_query(rule: Any, s: Any, kernel: Any, e: Any, own_id: Any, calibration: Any) -> tuple[float, int]:
    """Learn the example e, whose kernel row is in `scratch`; return its margin before, and its slot or -1."""
    raise NotImplementedError


def forget_old(rule: Any, s: Any, kernel: Any, clock: Any, now: Any) -> None:
    """Let the members leave that are too old for a window by now; see `removal.window`."""
    raise NotImplementedError


@inner
def is_due(clock, born):
    """Whether a member may be too old before an example of this number or time."""
    return clock.shape[0] > 0 and max(born, clock[LATEST]) >= clock[DUE]


@inner
def make_way(rule, s, kernel, clock, born):
    """Before an example of this number or time is learned, let the members leave that are too old then."""
    if is_due(clock, born):
        forget_old(rule, s, kernel, clock, max(born, clock[LATEST]))


@inner
def pass_on(clock, born):
    """Note that an example of this number or time has been learned."""
    if clock.shape[0] > 0:
        clock[LATEST], clock[DUE] = max(clock[LATEST], born), min(clock[DUE], born + clock[SPAN])


@inner
def lacks_room(s, indices, values):
    """Whether `reserve` must run before an example with these features."""
    note_features(s, indices)
    return (
        needs_reserve(s)
        or wants_rows(s.counts, s.rows)
        or (s.counts[STORAGE] == BITS and not all_ones(values))
        or (
            s.counts[STORAGE] == COMPRESSED and s.starts[s.counts[SLOTS]] + indices.shape[0] > s.sparse_indices.shape[0]
        )
    )


@shared
def prepare(s, c, columns, x):
    """Scale one example and compress it into the member buffers; its number of features and squared norm.

    The norm is NaN or too large if that of the unscaled features is.
    """
    if c.counts[ACTIVE] == 0:
        return compress_example(s, columns, x)
    total = 0.0
    for d in range(x.shape[0]):
        total += x[d] * x[d]
    if not total < LARGEST_SQUARED_NORM:  # true for NaN as well
        return 0, np.float32(np.inf)
    return compress_scaled(c, columns, x, s.member_indices, s.member_values)


@inner
def arrive(s, c, kernel, columns, x):
    """Scale and compress one example into the member buffers.

    Returns a status, the number of its non-zero features and its squared norm.  LEARNED: the example can be learned.
    NO_ROOM: call `reserve`, then this again.  NOT_FINITE: a feature.  OVERFLOW: the kernel's value.  The model has not
    changed.
    """
    nnz, sq = prepare(s, c, columns, x)
    if not sq < LARGEST_SQUARED_NORM:  # true for NaN as well
        return NOT_FINITE, nnz, sq
    if abs(self_product(kernel, sq)) > LARGEST_KERNEL_VALUE:
        return OVERFLOW, nnz, sq
    if lacks_room(s, s.member_indices[:nnz], s.member_values[:nnz]):
        return NO_ROOM, nnz, sq
    return LEARNED, nnz, sq


@inner
def is_member(ids, y, id):
    """Whether a live member has this id."""
    for t in range(ids.shape[0]):
        if ids[t] == id and y[t] != 0:
            return True
    return False


@inner
def row_of_block(s, kernel, indices, values, sq, P, G, mapped, arrivals, t, first):
    """Put the kernel row of the block's t-th example into `scratch`.

    P has the products with the slots before `first`.  Members that joined during the block are examples of the block:
    G has the products with them.  Without P and G the row is added up, to the same bits.  Values that are `mapped` are
    kernel values already.
    """
    n = s.counts[SLOTS]
    if G.shape[0] == 0:
        kernel_row(s, kernel, indices, values, sq, 0, n, s.scratch)
        return
    for k in range(first):
        s.scratch[k] = P[t, k]
    for k in range(first, n):
        s.scratch[k] = G[t, arrivals[k - first]]
    if not mapped:
        map_row(kernel, s.scratch[:n], s.sq[:n], sq)
        s.counts[EVALUATIONS] += n


@by_class
@compiled
def learn_example(s, c, kernel, rule, features, lo, hi, id, born, own_id, notes):
    """Learn one example; return the status of its arrival.

    If it was learned, `notes` has its margin before, and the scale has taken its features in, unless its box is empty.
    """
    columns, x = features.columns, features.values
    status, nnz, sq = arrive(s, c, kernel, columns, x)
    if status == LEARNED:
        if is_due(notes.clock, born):
            make_way(rule, s, kernel, notes.clock, born)
            prepare(s, c, columns, x)  # members may have been gathered where it was
        indices, values = s.member_indices[:nnz], s.member_values[:nnz]
        kernel_row(s, kernel, indices, values, sq, 0, s.counts[SLOTS], s.scratch)
        e = Example(indices, values, sq, label_of(hi), lo, hi, id, born, notes.margin[1])
        notes.margin[0], slot = learn_query(rule, s, kernel, e, own_id, notes.calibration)
        pass_on(notes.clock, born)
        if slot >= 0 and s.raw.shape[1] > 0:
            store_raw(s, slot, c.place[columns], x)
        if lo < hi:
            observe(c, columns, x, True)
    return status


@compiled
def learn_block(s, kernel, rule, block, own_ids, P, G, mapped, calibration, clock, limit, margins, before):
    """Learn a block of examples in sequence, while there is room and there are fewer members than `limit`; how many.

    Members that are too old leave in between.  Without rows, `before` notes nothing.
    """
    first = s.counts[SLOTS]
    arrivals = np.empty(block.sq.shape[0], np.int64)
    for t in range(block.sq.shape[0]):
        e = example_of(block, t, block.lo[t], block.hi[t], said_of(block, t))
        if not has_room(s, e, limit):
            return t
        notes, due = before.shape[0] > 0, is_due(clock, e.born)
        if notes and due:  # what it says with the members that leave now
            evaluations = s.counts[EVALUATIONS]
            row_of_block(s, kernel, e.indices, e.values, e.sq, P, G, mapped, arrivals, t, first)
            unlearned = example_of(block, t, 0.0, 0.0, np.nan)
            before[t, 0], _ = learn_query(rule, s, kernel, unlearned, own_ids, calibration)
            s.counts[EVALUATIONS] = evaluations  # a model does not depend on what is asked of it
        make_way(rule, s, kernel, clock, e.born)
        row_of_block(s, kernel, e.indices, e.values, e.sq, P, G, mapped, arrivals, t, first)
        if notes:
            for k in range(1, before.shape[1]):
                before[t, k] = calibration[k - 1]
        margins[t], slot = learn_query(rule, s, kernel, e, own_ids, calibration)
        pass_on(clock, e.born)
        if notes and not due:
            before[t, 0] = margins[t]
        if slot >= 0:
            arrivals[slot - first] = t
            store_raw_of(s, slot, block, t)
    return block.sq.shape[0]


@inner
def has_room(s, e, limit):
    """Whether there is room for an example, and there are fewer members than `limit`."""
    if s.counts[SLOTS] - s.counts[HOLES] >= limit:
        return False
    note_features(s, e.indices)
    return not needs_reserve(s)


@by_class
@compiled
def decide_example(s, c, kernel, features, b):
    """Return f(x) + b for one query; NaN if a feature is not finite."""
    n = s.counts[SLOTS]
    nnz, sq = prepare(s, c, features.columns, features.values)
    if not sq < LARGEST_SQUARED_NORM:
        return np.nan
    kernel_row(s, kernel, s.member_indices[:nnz], s.member_values[:nnz], sq, 0, n, s.scratch)
    return expansion_sum(s.alpha[:n], s.scratch[:n]) + b


def make_room(s: Expansion, q: Queries, n_features: int, n_new: int = 1) -> Expansion:
    """Reserve room for these examples, or for some of them; `n_features` is the number of features known so far.

    `n_new` is the number of slots to add, if more examples than these are to come.

    Room for all would make the feature matrix wide in some cases (see `is_wide`).  Then there is room for at least one:
    members may be compressed before the other slots and rows are needed.
    """
    s = s._replace(counts=s.counts.copy())
    n, nnz, width = int(s.counts[SLOTS]), len(q.indices), q.width
    s.counts[WIDTH] = max(int(s.counts[WIDTH]), q.part(0, 1).width)
    n_new, widest = max(n_new, len(q.sq)), max(width, int(s.counts[WIDTH]))
    if is_wide(s.counts, n + n_new, widest, s.starts[n] + nnz):
        n_new, width = min(n_new, max(1, int(s.counts[WIDE]) // widest - n)), 0
    return reserve(s, n_new, n_features, is_binary(s) and is_binary_block(q), nnz, width)


def n_fitting(s: Expansion, q: Queries) -> int:
    """Return how many examples come before the first with a feature that the matrix has no row for."""
    return len(q.sq) if s.counts[STORAGE] == COMPRESSED else q.n_within(max(len(s.bits), len(s.columns)))
