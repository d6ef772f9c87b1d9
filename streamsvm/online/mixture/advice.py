"""One probability from those of K experts, which is nearly never behind the best of them.

    x_j = logit of the probability of expert j, cut to [`LEAST`, 1 - `LEAST`]
    1. calibrated experts:  p_j = sigmoid(a_j x_j + b_j)              each a Bayesian logistic regression
    2. stacks:              q_i = sigmoid(w_i x + c_i)                two of them, which move at different speeds
    3. fixed share:         p = sum of u_i over all q and p
                            u_i <- u_i sqrt(probability of the label), and then `MEMORY` u_i + (1 - `MEMORY`) / (K + 2)
    4. calibration:         p <- p + the mean error of its bin, shrunk by `BINS` records, but never across 1/2

Each regression takes one extended Kalman step a record, as in `linear`, with the walks of the experts there.

========= ==================================================== ===================== =======
symbol    name                                                 shape                 dtype
========= ==================================================== ===================== =======
slopes    a and b of each expert                               (K, 2)                float64
errors    their covariances, below each other                  (2 K, 2)              float64
stacks    w, and c in the last place, of both                  (2, K + 1)            float64
spreads   their covariances, below each other                  (2 (K + 1), K + 1)    float64
shares    u: of the stacks, then of the experts                (2 + K,)              float64
bins      per bin: fading sums of y - p, and of records        (2, `BINS`)           float64
========= ==================================================== ===================== =======

Sources: Herbster and Warmuth, "Tracking the best expert" (1998), fixed share on the log loss; Platt (1999) for step 1.
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._jit import inner
from streamsvm.core.compiling._reference import by_reference
from streamsvm.online.mixture.linear import MEMORY, WALKS, learn_bayesian, matrix_of, predict_bayesian
from streamsvm.online.outputs.threshold import DECAY

LEAST = 0.02  # probability of an expert: a single one never rules a label out
VARIANCE = 0.05  # of each weight at first; with 0.02 or 0.1, the errors are the same
BINS = 20  # 0.05 wide
LEAST_ANSWER = 1e-6  # probability, so that a log loss stays finite


@by_reference
class Advice(NamedTuple):
    """The state of the rule."""

    slopes: np.ndarray
    errors: np.ndarray
    stacks: np.ndarray
    spreads: np.ndarray
    shares: np.ndarray
    bins: np.ndarray


def new_advice(k: int) -> Advice:
    """The state before the first record, for k experts: the stacks begin with the mean logit."""
    slopes, stacks = np.zeros((k, 2)), np.zeros((2, k + 1))
    slopes[:, 0], stacks[:, :k] = 1.0, 1.0 / k
    errors, spreads = np.tile(VARIANCE * np.eye(2), (k, 1)), np.tile(VARIANCE * np.eye(k + 1), (2, 1))
    return Advice(slopes, errors, stacks, spreads, np.full(k + 2, 1.0 / (k + 2)), np.zeros((2, BINS)))


@inner
def logits(p, x):
    """Write the logits of the experts' probabilities, and 1 behind them."""
    for j in range(p.shape[0]):
        cut = min(max(p[j], LEAST), 1.0 - LEAST)
        x[j] = math.log(cut / (1.0 - cut))
    x[p.shape[0]] = 1.0


@inner
def answers(state, x, pair, out, s):
    """Write the probabilities of the stacks and of the calibrated experts; s is room for a row of the stacks."""
    pair[1] = 1.0
    for i in range(2):
        out[i] = predict_bayesian(state.stacks[i], matrix_of(state.spreads, i), x, s)
    for j in range(x.shape[0] - 1):
        pair[0] = x[j]
        out[2 + j] = predict_bayesian(state.slopes[j], matrix_of(state.errors, j), pair, s)


@inner
def _mean(shares, out):
    p = 0.0
    for i in range(shares.shape[0]):
        p += shares[i] * out[i]
    return p


@inner
def _bin(p):
    return min(int(p * BINS), BINS - 1)


@inner
def calibrated(state, out):
    """The mean of the answers by the shares, with the mean error of its bin, on its own side of 1/2."""
    p = _mean(state.shares, out)
    b = _bin(p)
    q = p + state.bins[0, b] / (state.bins[1, b] + BINS)
    if p > 0.5:
        return min(max(q, math.nextafter(0.5, 1.0)), 1.0 - LEAST_ANSWER)
    return max(min(q, 0.5), LEAST_ANSWER)


@inner
def learn_advice(state, x, pair, out, y, s):
    """Learn which answers were right: `x` and `out` as `answers` had and gave them, y is +1 or -1."""
    target, shares, bins = 1.0 if y > 0.0 else 0.0, state.shares, state.bins
    p = _mean(shares, out)
    for b in range(bins.shape[1]):
        bins[0, b] *= DECAY
        bins[1, b] *= DECAY
    bins[0, _bin(p)] += target - p
    bins[1, _bin(p)] += 1.0
    total = 0.0
    for i in range(shares.shape[0]):
        likely = out[i] if y > 0.0 else 1.0 - out[i]
        shares[i] *= math.sqrt(max(likely, LEAST))
        total += shares[i]
    for i in range(shares.shape[0]):
        shares[i] = MEMORY * shares[i] / total + (1.0 - MEMORY) / shares.shape[0]
    for i in range(2):
        learn_bayesian(state.stacks[i], matrix_of(state.spreads, i), x, target, WALKS[i], s)
    for j in range(x.shape[0] - 1):
        pair[0] = x[j]
        learn_bayesian(state.slopes[j], matrix_of(state.errors, j), pair, target, WALKS[0], s)
