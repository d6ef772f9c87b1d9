"""A probability of two classes, corrected by the recent errors.

An online logistic regression predicts the label from the log odds of the model's own probability, from the mean of its
recent residuals, and from the products of the log odds with the mean size of these residuals:

    q = sigmoid(w x),   x = (1, z, 3 b_fast, 3 b_slow, 3 z (e_fast - .1), 3 z (e_slow - .1)),   z = log p / (1 - p)

Each label moves w by a Newton step whose curvature H forgets slowly and has a prior.  The correction is worth its use
while its log loss, the sum of both classes' recent means, is smaller by 3 %.  Without this gate it harms rare classes.

======== ==================================================================== ====== =======
symbol   name                                                                 shape  dtype
======== ==================================================================== ====== =======
recent   w; H; b, e: means of the residual and of its size, fast and slow;    (50,)  float64
         L: mean losses of p and of q for the negative and the positive class
======== ==================================================================== ====== =======
"""

import itertools
import math

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.rounding import DUST
from streamsvm.core.scaling.gaps import RATE
from streamsvm.core.scaling.state import MEMORY

N = 6  # numbers in x
W, H, B, E, L, SIZE = itertools.accumulate((0, N, N * N, 2, 2, 4))
FAST = 0.1  # rate of the fast means; the slow ones and those of the losses have `RATE`, over some 200 labels
KEPT = 1.0 - 1.0 / MEMORY  # of the curvature, at each label: about as many labels count as examples for a scale
BETTER = 0.97  # a smaller gain may be chance
USUAL_ERROR = 0.1
PRIOR = 5.0  # the curvature before any label; with 50 for the slope z alone, errors and losses are the same
LARGEST_Z, LARGEST_SUM = 8.0, 12.0  # cuts of z and w x: one label moves w by little, however sure the model was
LEAST_PROBABILITY = math.exp(-LARGEST_SUM)


def new_recent() -> np.ndarray:
    """The state before any label: the correction is the probability itself."""
    recent = np.zeros(SIZE)
    recent[W + 1] = 1.0
    recent[H : H + N * N : N + 1] = PRIOR
    recent[E : E + 2], recent[L : L + 4] = USUAL_ERROR, 0.5
    return recent


@compiled
def is_better(recent):
    """Whether the corrected probability was lately better than the model's own."""
    return recent[L + 2] + recent[L + 3] < BETTER * (recent[L] + recent[L + 1])


@inner
def _features(recent, p):
    z = math.log(max(p, DUST) / max(1.0 - p, DUST))
    z = min(max(z, -LARGEST_Z), LARGEST_Z)
    x = np.empty(N)
    x[0], x[1] = 1.0, z
    for k in range(2):
        x[2 + k] = 3.0 * recent[B + k]
        x[4 + k] = 3.0 * z * (recent[E + k] - USUAL_ERROR)
    return x


@inner
def _probability(recent, x):
    total = 0.0
    for i in range(N):
        total += recent[W + i] * x[i]
    return 1.0 / (1.0 + math.exp(-min(max(total, -LARGEST_SUM), LARGEST_SUM)))


@inner
def _newton_step(recent, x, gradient):
    """w += H^-1 gradient x, by the Cholesky factor of H."""
    root, v = np.zeros((N, N)), np.empty(N)
    for i in range(N):
        for j in range(i + 1):
            total = recent[H + i * N + j]
            for k in range(j):
                total -= root[i, k] * root[j, k]
            root[i, j] = math.sqrt(total) if i == j else total / root[j, j]
    for i in range(N):
        total = gradient * x[i]
        for k in range(i):
            total -= root[i, k] * v[k]
        v[i] = total / root[i, i]
    for i in range(N - 1, -1, -1):
        for k in range(i + 1, N):
            v[i] -= root[k, i] * v[k]
        v[i] /= root[i, i]
        recent[W + i] += v[i]


@compiled
def corrected(recent, p):
    """The corrected probability of the positive class."""
    return _probability(recent, _features(recent, p))


@compiled
def note_label(recent, p, said, positive):
    """Learn a label from the model's own probability and from what `corrected` said when it was predicted.

    Return whether the corrected one was lately better; see `is_better`.
    """
    y = 1.0 if positive else 0.0
    for k in range(2):
        value = p if k == 0 else said
        loss = -math.log(max(value if positive else 1.0 - value, LEAST_PROBABILITY))
        place = L + 2 * k + int(y)
        recent[place] += RATE * (loss - recent[place])
    x = _features(recent, p)
    q = _probability(recent, x)
    curvature = q * (1.0 - q)
    for i in range(N):
        for j in range(N):
            recent[H + i * N + j] = KEPT * recent[H + i * N + j] + curvature * x[i] * x[j]
        recent[H + i * N + i] += (1.0 - KEPT) * PRIOR
    _newton_step(recent, x, y - q)
    for k in range(2):
        rate = FAST if k == 0 else RATE
        recent[B + k] += rate * (y - p - recent[B + k])
        recent[E + k] += rate * (abs(y - p) - recent[E + k])
    return is_better(recent)
