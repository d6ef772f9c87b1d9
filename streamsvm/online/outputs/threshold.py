"""A threshold for f(x), learned online, that makes the recalls of both classes large together.

Margins are computed before their examples are learned.  Two histograms, one of each class, hold those from -3 to 3 and
forget the past slowly.  Every `PERIOD` margins, the threshold becomes the edge between two bins with the largest
product of both classes' recalls; of equal ones, the edge that is closest to 0.

Margins do not decay: each new one counts more than the one before.  Only a sum over both histograms has to be divided
by the weight of the newest margin.

=========  ==========================================================================  =====================  =======
symbol     name                                                                        shape                  dtype
=========  ==========================================================================  =====================  =======
threshold  the threshold, the newest margin's weight, margins since the last choice,   (HEAD + 2 BINS,), or   float64
           number of margins of the negative and of the positive class; then the       (HEAD,) if it is not
           histograms of the negative and of the positive class                        learned
=========  ==========================================================================  =====================  =======
"""

import math
import sys
from collections.abc import Sequence

import numpy as np

from streamsvm.core.compiling._jit import inner
from streamsvm.core.rounding import SUM_ROUNDING

VALUE, WEIGHT, SINCE, NEGATIVES, POSITIVES, HEAD = range(6)
PER_UNIT = 20  # bins per unit of margin
BINS = 6 * PER_UNIT  # from -3 to 3
DECAY = 0.9998  # weight of the past at each new margin: about the last 5000 count
PERIOD = 20  # margins from one choice to the next
ENOUGH = PERIOD // 2  # margins of each class before the first choice: a period's, if both are as frequent
LARGEST_WEIGHT = sys.float_info.max ** (1 / 3)  # of a margin, so that products of two sums stay far from overflow
LARGEST = (BINS // 2 - 1) / PER_UNIT  # threshold that can be learned
EQUAL = 1.0 + SUM_ROUNDING  # products that differ by less are equal: rounding must not choose


def new_threshold(given: float | str) -> np.ndarray:
    """A threshold that stays, if it is a number; otherwise one that is learned."""
    threshold = np.zeros(HEAD + 2 * BINS if isinstance(given, str) else HEAD)
    threshold[VALUE], threshold[WEIGHT] = 0.0 if isinstance(given, str) else given, 1.0
    return threshold


def pooled_threshold(thresholds: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """The mean of several thresholds and the sum of their histograms; a choice follows with the next margin."""
    pooled = np.sum([state / state[WEIGHT] for state in thresholds], axis=0)
    pooled[VALUE], pooled[WEIGHT] = shares @ [state[VALUE] for state in thresholds], 1.0
    for count in (NEGATIVES, POSITIVES):
        pooled[count] = sum(state[count] for state in thresholds)
    pooled[SINCE] = PERIOD - 1
    return pooled


@inner
def edge(b):
    """The lower end of bin b."""
    return (b - BINS // 2) / PER_UNIT


@inner
def bin_of(margin):
    """The bin of a margin: margins above `edge(b)`, up to the next edge; the outermost bins take what is beyond."""
    if not margin > edge(1):
        return 0
    return BINS - 1 if margin > edge(BINS - 1) else math.ceil(margin * PER_UNIT) - 1 + BINS // 2


@inner
def best_edge(negatives, positives, one):
    """The edge with the largest product of recalls; a margin weighs `one`, and each class has one more than it has."""
    above, below = positives.sum() - positives[0] + one, negatives[0] + one
    best, at = 0.0, 0.0
    for b in range(1, BINS):
        product = above * below
        if product > best * EQUAL or (product * EQUAL >= best and abs(edge(b)) < abs(at)):
            best, at = product, edge(b)
        above -= positives[b]
        below += negatives[b]
    return at


@inner
def note_class(threshold, positive, margin):
    """Put a margin into its class's histogram, and choose the threshold anew when it is time; unless it stays."""
    if threshold.shape[0] == HEAD:
        return
    threshold[WEIGHT] /= DECAY
    side = 1 if positive else 0
    threshold[HEAD + side * BINS + bin_of(margin)] += threshold[WEIGHT]
    threshold[NEGATIVES + side] += 1.0
    threshold[SINCE] += 1.0
    if threshold[SINCE] < PERIOD:
        return
    threshold[SINCE] = 0.0
    if min(threshold[NEGATIVES], threshold[POSITIVES]) >= ENOUGH:
        negatives, positives = threshold[HEAD : HEAD + BINS], threshold[HEAD + BINS :]
        threshold[VALUE] = best_edge(negatives, positives, threshold[WEIGHT])
    if threshold[WEIGHT] > LARGEST_WEIGHT:
        for k in range(HEAD, threshold.shape[0]):
            threshold[k] /= threshold[WEIGHT]
        threshold[WEIGHT] = 1.0
