"""Hashed words and n-grams of a text: the columns and values of one block of features, whose squared norm is fixed.

    c_j = words of column j,  d_j = n-grams of column j          of `width` columns, chosen by a hash (FNV-1a)
    x_j = a log(1 + c_j) + b log(1 + d_j)                        a and b share the squared norm: see `SHARE_OF_WORDS`

========= ========================================================== ========== ========
symbol    name                                                       shape      dtype
========= ========================================================== ========== ========
letters   the words in UTF-8, with a space around each               (L,)       uint8
counts    0; room for c and d                                        (2, D)     int32
columns   receives the columns j, first the most ordinary ones       (3 L,)     int64
values    receives x_j                                               (3 L,)     float64
========= ========================================================== ========== ========
"""

import math

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.scaling.state import CLIP

SQUARED_NORM = CLIP**2  # so that a text of one word is not cut
SHARE_OF_WORDS = 0.6  # of the squared norm; n-grams have the rest
SHORTEST_GRAM, LONGEST_GRAM = 3, 4
BASIS, PRIME, MIXER, MASK = 0x811C9DC5, 0x01000193, 0x85EBCA6B, int(np.iinfo(np.uint32).max)
SPACE = ord(" ")
LOGS = tuple(math.log1p(count) for count in range(16))  # of nearly all counts


@inner
def _step(h, letter):
    """The hash with one more letter."""
    return ((h ^ letter) * PRIME) & MASK


@inner
def _note(counts, kind, h, columns, n):
    """Count a hash in its column; return how many columns are in use."""
    h = ((h ^ (h >> 16)) * MIXER) & MASK
    j = np.uint32(h ^ (h >> 13)) % np.uint32(counts.shape[1])
    if counts[0, j] == 0 and counts[1, j] == 0:
        columns[n] = j
        n += 1
    counts[kind, j] += 1
    return n


@inner
def _log(count):
    return LOGS[count] if count < len(LOGS) else math.log1p(count)


@inner
def _factor(counts, kind, columns, n, share):
    """What to multiply log(1 + count) by, so that these squares add up to this share."""
    total = 0.0
    for k in range(n):
        total += _log(counts[kind, columns[k]]) ** 2
    return math.sqrt(SQUARED_NORM * share / total) if total > 0.0 else 0.0


@compiled
def hash_text(letters, counts, columns, values):
    """Write the columns and values of a text; return how many there are, and how many of them have the first value.

    Those are the columns of one n-gram, which are most: what reads the values need not look at each.
    """
    n, length, h = 0, letters.shape[0], BASIS
    for t in range(1, length):
        letter = int(letters[t])
        if letter == SPACE:
            n = _note(counts, 0, h, columns, n)
            h = BASIS
        else:
            h = _step(h, letter)
    for size in range(SHORTEST_GRAM, LONGEST_GRAM + 1):
        for t in range(length - size + 1):
            h = BASIS + size
            for k in range(t, t + size):
                h = _step(h, int(letters[k]))
            n = _note(counts, 1, h, columns, n)
    a = _factor(counts, 0, columns, n, SHARE_OF_WORDS)
    b = _factor(counts, 1, columns, n, 1.0 - SHARE_OF_WORDS)
    n_ordinary = 0
    for k in range(n):
        j = columns[k]
        if counts[0, j] == 0 and counts[1, j] == 1:
            columns[k], columns[n_ordinary] = columns[n_ordinary], j
            n_ordinary += 1
    for k in range(n):
        j = columns[k]
        values[k] = a * _log(counts[0, j]) + b * _log(counts[1, j])
    return n, n_ordinary
