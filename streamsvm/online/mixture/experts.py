"""All experts that stand beside the model, and the answer of all: one call to predict a record, and one to learn it.

With several classes, each has such experts, which tell it from the others, and each gets its calls.  What does not
depend on the class is shared: the moments, the edges of the bins, the spans' places, and of the room all but p and its
logits and answers.  The calls of the first class write it.

Learning takes the kernel rows of the record into the blocks of the spans.  The caller fits the spans anew, at the
latest when a block is full.

========= ==================================================== ============ =======
symbol    name                                                 shape        dtype
========= ==================================================== ============ =======
x         values of a record by column; NaN if missing         (D,)         float64
p         probabilities of the experts: 0 is the model's       (K,)         float64
rows      kernel rows of both spans                            (2, M)       float64
========= ==================================================== ============ =======

The rest of `Room` is room for what is computed of one record.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.compiling._reference import by_reference
from streamsvm.online.mixture import advice, linear, pairs, spans

NAMES = (
    *("model", "passive-aggressive C=1", "passive-aggressive C=0.01", "Bayesian", "Bayesian with latest labels"),
    *("last label", "pairs of bins", "span, full metric", "span, latest records"),
)
K = len(NAMES)
PAIRS, FIRST_SPAN = NAMES.index("pairs of bins"), K - 2


@by_reference
class Room(NamedTuple):
    """One record, and the answers to it until it is learned."""

    x: np.ndarray  # (D,)
    p: np.ndarray  # (K,)
    z: np.ndarray  # (D,)
    u: np.ndarray  # (D,)
    v: np.ndarray  # (E,)
    s: np.ndarray  # (max(E, K + 1),)
    cells: np.ndarray
    rows: np.ndarray  # (2, M)
    logits: np.ndarray  # (K + 1,)
    pair: np.ndarray  # (2,)
    answers: np.ndarray  # (K + 2,)


def new_room(d: int, m: int) -> Room:
    """Room for records of so many columns, and spans of so many records."""
    z, e = np.zeros, linear.FIXED + d
    of_spans = z((2, m))
    return Room(z(d), z(K), z(d), z(d), z(e), z(max(e, K + 1)), pairs.room(d), of_spans, z(K + 1), z(2), z(K + 2))


@by_class
@compiled
def predict(is_first, lines, of_pairs, first, second, rule, room):
    """Write the probabilities of all experts but the model; return that of all together."""
    x, p = room.x, room.p
    if is_first:
        linear.standardise(lines.moments, x, room.z)
        pairs.find_cells(of_pairs.edges, x, room.cells)
        spans.look(first, x, room.v, room.u, room.rows[0])
        spans.look(second, x, room.v, room.u, room.rows[1])
    linear.predict_linear(lines, room.z, room.v, room.s, p[1:])
    p[PAIRS] = pairs.predict_pairs(of_pairs, room.cells)
    p[FIRST_SPAN] = spans.predict_span(first, room.rows[0])
    p[FIRST_SPAN + 1] = spans.predict_span(second, room.rows[1])
    return _together(rule, room)


@inner
def _together(rule, room):
    advice.logits(room.p, room.logits)
    advice.answers(rule, room.logits, room.pair, room.answers, room.s)
    return advice.calibrated(rule, room.answers)


@by_class
@compiled
def judge(rule, room):
    """What the rule makes of the probabilities p, which may be those of an earlier prediction of the record."""
    return _together(rule, room)


@by_class
@compiled
def learn(is_first, y, at, lines, of_pairs, first, second, rule, room):
    """Learn the record that was predicted or judged last, with label y, +1 or -1; the spans have it at `at`."""
    x = room.x
    advice.learn_advice(rule, room.logits, room.pair, room.answers, y, room.s)
    pairs.learn_pairs(of_pairs, room.cells, y)
    if is_first:
        linear.note_moments(lines.moments, x)
        linear.standardise(lines.moments, x, room.z)
        first.block[at] = room.rows[0]
        second.block[at] = room.rows[1]
    linear.learn_linear(lines, room.z, y, room.v, room.s)
