"""Probabilities from margins: a sigmoid fitted online.

    p(y = +1 | f) = 1 / (1 + exp(-a f)),   a = a_+ for f > 0 and a_- for f <= 0

It passes through 1/2 at f = 0, so the more probable label is always the predicted one.  Each side has its own slope,
because on imbalanced streams the two sides are not equally reliable.  Newton steps move the slopes towards a smaller
log-loss.  The margins are computed before their examples are learned, and the sums forget the past slowly.

========  ====================================  =====  =======
symbol    name                                  shape  dtype
========  ====================================  =====  =======
sigmoid   a_-, curvature of a_-, a_+, likewise  (4,)   float64
========  ====================================  =====  =======

Source: Platt, "Probabilistic outputs for support vector machines" (1999), without its offset (with an offset, the
probability could contradict the prediction) and fitted online.
"""

import math

import numpy as np

from streamsvm.core.compiling._jit import inner
from streamsvm.online.outputs.past import WINDOW

DECAY = 1.0 - 1.0 / WINDOW  # weight of the past at each new margin: about as many count as decisions are remembered
MAX_SLOPE, MAX_MARGIN = 50.0, 10.0  # One outlier moves a slope by little.
MIN_SLOPE = 1.0 / MAX_SLOPE  # A slope stays positive.
LARGEST = MAX_SLOPE * MAX_MARGIN
ABOVE_HALF = math.nextafter(0.5, 1.0)


def new_sigmoid() -> np.ndarray:
    """Slopes before any margin was seen."""
    return np.array([2.0, 1.0, 2.0, 1.0])


@inner
def note_slope(sigmoid, positive, margin):
    """Move the slope of the margin's side towards the smaller log-loss."""
    side = 2 if margin > 0.0 else 0
    f = min(max(margin, -MAX_MARGIN), MAX_MARGIN)
    p = 1.0 / (1.0 + np.exp(-sigmoid[side] * f))
    sigmoid[side + 1] = DECAY * sigmoid[side + 1] + f * f * p * (1.0 - p) + 1e-6
    target = 1.0 if positive else 0.0
    slope = sigmoid[side] + (target - p) * f / sigmoid[side + 1]
    sigmoid[side] = min(max(slope, MIN_SLOPE), MAX_SLOPE)


def probabilities(sigmoid: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """p(y = +1) for each margin; above 1/2 exactly where the margin is positive.

    With a sigmoid for each column of the margins, (K, 4), each column has its own.
    """
    slope = np.where(margins > 0.0, sigmoid[..., 2], sigmoid[..., 0])
    p = 1.0 / (1.0 + np.exp(-np.clip(slope * margins, -LARGEST, LARGEST)))
    return on_side_of(margins, p)


def on_side_of(margins: np.ndarray, p: np.ndarray) -> np.ndarray:
    """These probabilities, or the nearest that are above 1/2 exactly where the margin is positive."""
    return np.where(margins > 0.0, np.maximum(p, ABOVE_HALF), np.minimum(p, 0.5))


def probability(sigmoid: np.ndarray, margin: float) -> float:
    """p(y = +1) for one margin, bit for bit as `probabilities` has it, which takes ten times as long for one."""
    slope = float(sigmoid[2] if margin > 0.0 else sigmoid[0])
    p = 1.0 / (1.0 + float(np.exp(-min(max(slope * margin, -LARGEST), LARGEST))))
    return max(p, ABOVE_HALF) if margin > 0.0 else min(p, 0.5)
