"""Several learners learn the same examples in one call of compiled code.

A block of examples comes with its kernel values W over a union of vectors, see `union`.

============ ======================================================================= ===================
symbol       name                                                                    shape, dtype
============ ======================================================================= ===================
C w          bound on the coefficient of each example, before its class's factor     (B,) float64
classes      the place of each example's class                                       (B,) int64
signs        the sign of each class for each learner; 0: it does not learn the class (K, n_classes) int8
tables       where each learner's arrays are, see `_reference`                       (K, n_words) int64
slots        the union's slot of each learner's slots, from firsts[k] on             int64
calibrations what each learner notes of margins, see `outputs.calibration`           (K, n) float64
counts       examples that each learner has learned, negative and positive           (K, 2) int64
done         examples of the block that each learner has learned                     (K,) int64
newest       the last of them                                                        (K,) int64
place        the learner whose turn it is, and its next example                      (2,) int64
============ ======================================================================= ===================
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.compiling._reference import by_reference, keep_reference, n_words, reference_at
from streamsvm.core.expansion import SLOTS, Expansion
from streamsvm.core.rows import first_from
from streamsvm.online.arrival import Example, lacks_room, learn_query, store_raw_of

TABLE = n_words(Expansion)
ALL = -1  # all learners have learned all examples


@by_reference
class Course(NamedTuple):
    """What learners learn together, and how far they are; the symbol table is in the module's docstring."""

    W: np.ndarray
    boxes: np.ndarray
    classes: np.ndarray
    signs: np.ndarray
    tables: np.ndarray
    slots: np.ndarray
    firsts: np.ndarray
    calibrations: np.ndarray
    counts: np.ndarray
    done: np.ndarray
    newest: np.ndarray
    place: np.ndarray


@compiled
def enter(course, k, s, numbers):
    """Let learner k's expansion take part; `numbers` are those of the union's vectors."""
    keep_reference(s, course.tables[k])
    own = course.slots[course.firsts[k] : course.firsts[k + 1]]
    for t in range(s.counts[SLOTS]):
        own[t] = first_from(numbers, s.ids[t])


@inner
def _box(box, pos_weight, counts, positive):
    """The bound on an example's coefficient for a learner; `pos_weight` 0 stands for balanced weights."""
    if pos_weight == 0.0:
        own, other = counts[int(positive)], counts[int(not positive)]
        return box * np.sqrt(max(other / max(own, 1), 1.0))
    return box * (pos_weight if positive else 1.0)


@inner
def _example(block, t, box, positive):
    own = slice(block.indptr[t], block.indptr[t + 1])
    lo, hi = (0.0, box) if positive else (-box, 0.0)
    of_user = block.ids[t], block.born[t]
    return Example(block.indices[own], block.values[own], block.sq[t], 1.0 if hi > 0.0 else -1.0, lo, hi, *of_user)


@inner
def _learn_one(course, k, s, kernel, rule, block, t, box, positive, first):
    """Let learner k learn the block's t-th example, whose slot in the union is first + t."""
    e = _example(block, t, box, positive)
    own, row = course.slots[course.firsts[k] : course.firsts[k + 1]], course.W[t]
    for j in range(s.counts[SLOTS]):
        s.scratch[j] = row[own[j]]
    _, slot = learn_query(rule, s, kernel, e, False, course.calibrations[k])
    if slot >= 0:
        own[slot] = first + t
        store_raw_of(s, slot, block, t)


@inner
def _lacks_room(s, block, t, n_features):
    own = slice(block.indptr[t], block.indptr[t + 1])
    return s.member_indices.shape[0] < n_features or lacks_room(s, block.indices[own], block.values[own])


@compiled
def learn_together(like, kernel, rule, block, course, first, pos_weight, n_features):
    """Let the learners learn the examples from `course.place` on.

    Returns the first learner that lacks room for its next example, or ALL.  `like` is one of the expansions.
    """
    place, learner, example = course.place, 0, 1
    while place[learner] < course.signs.shape[0]:
        k = place[learner]
        s, counts = reference_at(like, course.tables[k]), course.counts[k]
        while place[example] < block.sq.shape[0]:
            t = place[example]
            sign = course.signs[k, course.classes[t]]
            if sign != 0:
                if _lacks_room(s, block, t, n_features):
                    return k
                if course.boxes[t] > 0.0:
                    counts[int(sign > 0)] += 1
                box = _box(course.boxes[t], pos_weight, counts, sign > 0)
                _learn_one(course, k, s, kernel, rule, block, t, box, sign > 0, first)
                course.done[k] += 1
                course.newest[k] = t
            place[example] = t + 1
        place[learner], place[example] = k + 1, 0
    return ALL
