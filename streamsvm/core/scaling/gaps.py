"""Gaps: an example lacks a feature whose value is unknown, and not 0.  The better of two guesses stands for it.

    r = max(1/200, 1/w_p)
    E_p <- E_p + r ((x_p - last_p)^2 - (x_p - m_p)^2 - E_p)   how much worse a guess the last value is than the mean
    last_p <- x_p
    guess = last_p if E_p < 0, else m_p

A feature is unknown where it is lacking, if

- it is scaled, and is no bit: it had another value than 0 and 1;
- at least half of the examples name it, since one did;
- 0 is not what is left out: this example or an earlier one marks a gap, by None or NaN, or named a feature of 0 or
  less, or all values of this one are far from 0.

Otherwise it is 0 there: a word that does not occur, a bit, a count, a pixel of an image whose zeros are left out.

A gap moves neither the moments nor the guesses.  No gap is filled before it is known whether the input is sparse.
"""

from streamsvm.core.compiling._jit import inner
from streamsvm.core.scaling.state import CLIP, JUDGED_AFTER, MEMORY, PLACES, SCALES, SEEN, SPARSE, ZEROS

RATE = 10.0 / MEMORY  # of a guess's running error: about the last 200 values count


@inner
def is_unknown(c, p, marked):
    """Whether the feature in place p is unknown in an example that lacks it, and that marks a gap or does not."""
    d, w, m = c.feature[p], c.w[p], c.m[p]
    is_scaled = c.counts[SCALES] == 1 and c.varied[p] == 1 and w > 0.0
    if not is_scaled or 2 * c.times[d] < c.counts[SEEN] - c.began[d]:
        return False
    return marked or c.counts[ZEROS] == 1 or m * m * w > CLIP * CLIP * c.S[p]


@inner
def _excess(w, m, last, excess, v):
    """E of a feature with the value v, before its mean takes it in."""
    by_last, by_mean = v - last, v - m
    return excess + max(RATE, 1.0 / (w + 1.0)) * (by_last * by_last - by_mean * by_mean - excess) if w > 0.0 else excess


@inner
def note_value(c, p, v):
    """Let the guesses for the feature in place p take in a value, before its mean does."""
    if v <= 0.0:
        c.counts[ZEROS] = 1
    c.excess[p] = _excess(c.w[p], c.m[p], c.last[p], c.excess[p], v)
    c.last[p] = v


@inner
def note_values(c):
    """Do what `note_value` does for all places, whose values are in `x`; a loop over plain arrays is faster."""
    w, m, last, excess, x, zeros = c.w, c.m, c.last, c.excess, c.x, False
    for p in range(c.counts[PLACES]):
        excess[p] = _excess(w[p], m[p], last[p], excess[p], x[p])
        zeros |= x[p] <= 0.0
        last[p] = x[p]
    if zeros:
        c.counts[ZEROS] = 1


@inner
def fill(c, columns, values, marked, filled_columns, filled_values):
    """Copy the features of an example, followed by guesses for its unknown ones; return how many these are."""
    n = columns.shape[0]
    for t in range(n):
        filled_columns[t], filled_values[t] = columns[t], values[t]
    if c.counts[SPARSE] == 1 or c.counts[SEEN] < JUDGED_AFTER:
        return n
    is_named = c.x
    for p in range(c.counts[PLACES]):
        is_named[p] = 0.0
    for t in range(columns.shape[0]):
        if columns[t] >= 0 and c.place[columns[t]] >= 0:
            is_named[c.place[columns[t]]] = 1.0
    for p in range(c.counts[PLACES]):
        if is_named[p] == 0.0 and is_unknown(c, p, marked):
            filled_columns[n], filled_values[n] = c.feature[p], c.last[p] if c.excess[p] < 0.0 else c.m[p]
            n += 1
    return n
