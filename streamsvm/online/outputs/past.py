"""What is remembered of the last decisions on the members of a class: an array that a label changes in one call.

========== ====================================================================== ======
row        what it has                                                            type
========== ====================================================================== ======
ORDERED    the scores that count, in ascending order                              float
SCORE      of each decision, the probability of its class; NaN: it does not count float
STEP       what its label added to the logarithm of the class's level             float
ALONE      the number of the label that was decided alone; -1: none               float
SAID ...   the probability of each label, by number; NaN: it was not known        float
========== ====================================================================== ======

Decisions are in a ring: the next one is written over the oldest.
"""

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.rows import first_from
from streamsvm.online.outputs.recent import is_better, note_label

WINDOW = 1000  # decisions on the members of a class
ORDERED, SCORE, STEP, ALONE, SAID = range(5)


_ONE = np.uintp(1)  # with places that have no sign, the compiler moves several scores at once


@inner
def _exchange(ordered, n, old, new):
    """Take one of n scores out and another one in, where NaN is none; return how many there are then."""
    leaves, comes = old == old, new == new
    free = np.uintp(first_from(ordered[:n], old) if leaves else n)
    place = np.uintp(first_from(ordered[:n], new) if comes else n)
    if place > free:
        place -= _ONE
        for k in range(free, place):
            ordered[k] = ordered[k + _ONE]
    else:
        for k in range(free - place):
            ordered[free - k] = ordered[free - k - _ONE]
    if comes:
        ordered[place] = new
    return n + comes - leaves


@compiled
def threshold(past, n, level):
    """The score below which a share `level` of the n scores lies; -1 if there are too few scores to say."""
    k = int(level * (n + 1))
    return past[ORDERED, min(k, n) - 1] if k > 0 and n > 0 else -1.0


@compiled
def note_decision(past, place, n, recent, score, step, alone, level, p, said, positive):
    """Remember a decision at a place of the ring, and let its label correct the probabilities of two classes.

    Return the number of scores, the threshold at this level, and whether corrected probabilities were lately better.
    `recent`, `p`, `said` and `positive` are those of `note_label`; a `p` of NaN corrects nothing.
    """
    n = _exchange(past[ORDERED], n, past[SCORE, place], score)
    past[SCORE, place], past[STEP, place], past[ALONE, place] = score, step, alone
    better = note_label(recent, p, said, positive) if p == p else is_better(recent)
    return n, threshold(past, n, level), better
