"""What a model learns from the margins that its examples had before they were learned.

They show how probable a label is (`sigmoid`), where to cut f(x) (`threshold`), and whether all predictions are equal,
for a warning.  All of it is in one array, because each argument of a compiled function takes time.

===========  ================================================  ===================  =======
symbol       name                                              shape                dtype
===========  ================================================  ===================  =======
calibration  the sigmoid; from `RUN` on, the last prediction   (4 + 3 + threshold)  float64
             (0 or 1), and the examples of the negative and
             of the positive class since predictions are all
             equal to it; from `THRESHOLD` on, the threshold
===========  ================================================  ===================  =======
"""

from collections.abc import Sequence

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.online.outputs.sigmoid import new_sigmoid, note_slope
from streamsvm.online.outputs.threshold import VALUE, new_threshold, note_class, pooled_threshold

RUN = len(new_sigmoid())
THRESHOLD = RUN + 3
CUT = THRESHOLD + VALUE  # the place of the threshold itself


def new_calibration(threshold: float | str) -> np.ndarray:
    """The state before any margin was seen, for a threshold that is a number or learned."""
    return np.concatenate([new_sigmoid(), np.zeros(THRESHOLD - RUN), new_threshold(threshold)])


def pooled_calibration(calibrations: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """The state of a model that learned what several did; each counts with its weight."""
    shares = weights / weights.sum() if weights.any() else np.full(len(weights), 1.0 / len(weights))
    pooled = np.zeros_like(calibrations[0])
    pooled[:RUN] = shares @ [state[:RUN] for state in calibrations]
    pooled[THRESHOLD:] = pooled_threshold([state[THRESHOLD:] for state in calibrations], shares)
    return pooled


@inner
def note_margin(calibration, positive, margin):
    """Learn from the margin of an example of this class."""
    prediction = 1.0 if margin > calibration[CUT] else 0.0
    run = calibration[RUN:THRESHOLD]
    if prediction != run[0]:
        run[0], run[1], run[2] = prediction, 0.0, 0.0
    run[2 if positive else 1] += 1.0
    note_slope(calibration[:RUN], positive, margin)
    note_class(calibration[THRESHOLD:], positive, margin)


@compiled
def note_margins(calibration, positive, margins):
    """Learn from the margins of many examples, in this order."""
    for t in range(margins.shape[0]):
        note_margin(calibration, positive[t], margins[t])
