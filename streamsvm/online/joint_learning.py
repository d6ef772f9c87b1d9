"""Several learners learn the same examples in one call of compiled code.

A block of examples comes with its kernel values W over a union of vectors, see `union`.  Without W, rows are computed
from the features.  That is for a new learner, which learns the few members of the others first.

============ ======================================================================= ===================
symbol       name                                                                    shape, dtype
============ ======================================================================= ===================
C w          bound on the coefficient of each example, before its class's factor     (B,) float64
classes      the place of each example's class                                       (B,) int64
at           the union's slot of each example                                        (B,) int64
signs        the sign of each class for each learner; 0: it does not learn the class (K, n_classes) int8
said         f(x) of each learner when the example was predicted, if its     (B, K) float64
             label came late, otherwise NaN; empty if none did
tables       where each learner's arrays are: its expansion's, then its seat's; see  (K, WORDS) int64
             `_reference`
place        the learner whose turn it is, and its next example                      (2,) int64
slots        the union's slot of each of a learner's slots                           (N,) int64
calibration  what the learner notes of margins, see `outputs.calibration`            (n,) float64
clock        of the learner's window, see `removal.window`; empty without one        (3,) int64
counts       examples that the learner has learned, negative and positive; all of    (6,) int64
             them; the number of the newest; examples that it is being taught,
             negative and positive
============ ======================================================================= ===================
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.compiling._reference import by_reference, keep_reference, n_words, reference_at
from streamsvm.core.expansion import SLOTS, Expansion
from streamsvm.core.rows import first_from, kernel_row
from streamsvm.online.arrival import example_of, lacks_room, learn_query, make_way, pass_on, store_raw_of

LEARNED, NEWEST, TAUGHT = range(2, 5)
COUNTS = TAUGHT + 2


@by_reference
class Seat(NamedTuple):
    """What a learner has beside its expansion; the symbol table is in the module's docstring."""

    slots: np.ndarray
    calibration: np.ndarray
    clock: np.ndarray
    counts: np.ndarray


@by_reference
class Course(NamedTuple):
    """What learners learn together, and how far they are; the symbol table is in the module's docstring."""

    W: np.ndarray
    boxes: np.ndarray
    classes: np.ndarray
    at: np.ndarray
    signs: np.ndarray
    said: np.ndarray
    tables: np.ndarray
    place: np.ndarray


OF_EXPANSION = n_words(Expansion)
WORDS = OF_EXPANSION + n_words(Seat)


@compiled
def enter(tables, k, s, seat, numbers):
    """Let learner k, with these arrays, take part; `numbers` are those of the union's vectors."""
    keep_reference(s, tables[k, :OF_EXPANSION])
    keep_reference(seat, tables[k, OF_EXPANSION:])
    for t in range(s.counts[SLOTS]):
        seat.slots[t] = first_from(numbers, s.ids[t])


@inner
def _box(box, pos_weight, counts, positive):
    """The bound on an example's coefficient for a learner; `pos_weight` 0 stands for balanced weights."""
    if pos_weight == 0.0:
        own, other = int(positive), int(not positive)
        n_own, n_other = counts[own] + counts[TAUGHT + own], counts[other] + counts[TAUGHT + other]
        return box * np.sqrt(max(n_other / max(n_own, 1), 1.0))
    return box * (pos_weight if positive else 1.0)


@inner
def _learn_one(course, s, seat, kernel, rule, block, t, box, positive):
    """Let a learner learn the block's t-th example, after the members that are too old for it have left."""
    make_way(rule, s, kernel, seat.clock, block.born[t])
    lo, hi = (0.0, box) if positive else (-box, 0.0)
    said = course.said[t, course.place[0]] if course.said.shape[0] > 0 else np.nan
    e, n, W = example_of(block, t, lo, hi, said), s.counts[SLOTS], course.W
    if W.shape[0] > 0:
        own, row, out = seat.slots[:n], W[t], s.scratch[:n]
        for j in range(n):
            out[j] = row[own[j]]
    else:
        kernel_row(s, kernel, e.indices, e.values, e.sq, 0, n, s.scratch)
    _, slot = learn_query(rule, s, kernel, e, False, seat.calibration)
    pass_on(seat.clock, block.born[t])
    if slot >= 0:
        seat.slots[slot] = course.at[t]
        store_raw_of(s, slot, block, t)


@inner
def _lacks_room(s, block, t, n_features):
    own = slice(block.indptr[t], block.indptr[t + 1])
    return s.member_indices.shape[0] < n_features or lacks_room(s, block.indices[own], block.values[own])


@by_class
@compiled
def learn_together(like, like_seat, kernel, rule, block, course, begin, end, pos_weight, n_features, arriving):
    """Let the learners learn the examples from `begin` on, before `end`, from `course.place` on.

    Returns the first learner that lacks room for its next example, or the number of learners.  `like` is one of the
    expansions, `like_seat` one of the seats.  Examples that are not `arriving` do not count: the learners are taught
    them.
    """
    place, learner, example = course.place, 0, 1
    while place[learner] < course.signs.shape[0]:
        # 1. The learner whose turn it is, from its addresses.
        table = course.tables[place[learner]]
        s, seat = reference_at(like, table[:OF_EXPANSION]), reference_at(like_seat, table[OF_EXPANSION:])
        signs, counts = course.signs[place[learner]], seat.counts
        counted = 0 if arriving else TAUGHT
        # 2. It learns the examples of its classes, from where it stopped for room.
        while begin + place[example] < end:
            t = begin + place[example]
            sign = signs[course.classes[t]]
            if sign != 0 or (arriving and seat.clock.shape[0] > 0):  # a clock goes on with all examples
                if _lacks_room(s, block, t, n_features):
                    return place[learner]
                box = course.boxes[t] if sign != 0 else 0.0
                if box > 0.0:
                    counts[counted + int(sign > 0)] += 1
                box = _box(box, pos_weight, counts, sign > 0)
                _learn_one(course, s, seat, kernel, rule, block, t, box, sign > 0)
                if arriving:
                    counts[LEARNED] += 1
                    counts[NEWEST] = block.ids[t]
            place[example] += 1
        # 3. The next learner begins with the first example.
        counts[TAUGHT:] = 0
        place[learner], place[example] = place[learner] + 1, 0
    return place[learner]


@compiled
def mark_members(like, like_seat, tables, signs, classes, born):
    """For each vector of the union that is a member: the place of its class in `classes`, and its age in `born`."""
    for k in range(tables.shape[0]):
        s, seat = reference_at(like, tables[k, :OF_EXPANSION]), reference_at(like_seat, tables[k, OF_EXPANSION:])
        of_sign = np.full(3, -1)
        for c in range(signs.shape[1] - 1, -1, -1):
            of_sign[signs[k, c] + 1] = c
        for t in range(s.counts[SLOTS]):
            place = of_sign[s.y[t] + 1]
            if s.y[t] != 0 and place >= 0:
                classes[seat.slots[t]], born[seat.slots[t]] = place, s.born[t]


@compiled
def mark_used(like, like_seat, tables, used):
    """Note which of the union's vectors have a slot in one of the expansions, holes included."""
    for k in range(tables.shape[0]):
        s, seat = reference_at(like, tables[k, :OF_EXPANSION]), reference_at(like_seat, tables[k, OF_EXPANSION:])
        for t in range(s.counts[SLOTS]):
            used[seat.slots[t]] = True


@compiled
def move_slots(like, like_seat, tables, first, moved):
    """The union's slot first + t has become slot moved[t]."""
    for k in range(tables.shape[0]):
        s, seat = reference_at(like, tables[k, :OF_EXPANSION]), reference_at(like_seat, tables[k, OF_EXPANSION:])
        for t in range(s.counts[SLOTS]):
            if seat.slots[t] >= first:
                seat.slots[t] = moved[seat.slots[t] - first]
