"""Linear experts, in standardised features: two that are passive-aggressive, two that are Bayesian, and the last label.

    z = (x - mean) / deviation of each column, 0 if it is missing; of the records before to predict, with x to learn
    passive-aggressive:  (w, b) += tau y (z, 1),  tau = min(C, max(0, 1 - y f) / |z|^2)
    Bayesian:            one extended Kalman step of logistic regression; the weights walk
        s = S v,  h = v s,  f = m v,  p = sigmoid(f),  q = p (1 - p),  c = q / (1 + q h)
        S -= c s s^T,  S_aa += walk,  m += (y - p) S v                        y is 0 or 1 here
    last label:          p(y | the label before) by fading counts

========= ==================================================== ============ =======
symbol    name                                                 shape        dtype
========= ==================================================== ============ =======
moments   per column: values so far, their mean, their squares (3, D)       float64
passive   w, and b in the last place, of both                  (2, D + 1)   float64
means     m of both                                            (2, E)       float64
spreads   S of both, one below the other                       (2 E, E)     float64
labels    the `LAGS` latest labels as +1 and -1, newest first  (LAGS,)      float64
chain     fading counts: of label j after label i              (2, 2)       float64
v         1, the latest labels (only of the second), z         (E,)         float64
========= ==================================================== ============ =======

Sources: Crammer et al., "Online passive-aggressive algorithms" (2006), PA-I; the Kalman step is that of Gaussian
approximations to Bayesian logistic regression, as in Spiegelhalter and Lauritzen (1990), with weights that walk.
Deviation: a variance S_aa stops walking at `LARGEST_VARIANCE`, so that a column that stays 0 does not become wild.
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._jit import inner
from streamsvm.core.compiling._reference import by_reference
from streamsvm.online.outputs.past import WINDOW

LAGS = 2  # latest labels that the second Bayesian expert sees
FIXED = 1 + LAGS  # places of v before the columns
C_OF_PASSIVE = (1.0, 0.01)  # for clean streams and for noisy ones
WALKS = (1e-5, 1e-3)  # variance that a weight gains with each record: it moves by 1 in 300 and in 30 records
MEMORY = 1.0 - 1.0 / WINDOW  # about as many records count as decisions are remembered
PROBIT = 0.3927  # pi / 8: a sigmoid of a Gaussian f is about sigmoid(f / sqrt(1 + pi / 8 variance))


@by_reference
class Linear(NamedTuple):
    """The state of the linear experts."""

    moments: np.ndarray
    passive: np.ndarray
    means: np.ndarray
    spreads: np.ndarray
    labels: np.ndarray
    chain: np.ndarray


def new_linear(d: int) -> Linear:
    """The state before the first record, for so many columns."""
    e = FIXED + d
    spreads = np.tile(prior_variance(d) * np.eye(e), (2, 1))
    return Linear(np.zeros((3, d)), np.zeros((2, d + 1)), np.zeros((2, e)), spreads, np.zeros(LAGS), np.ones((2, 2)))


def prior_variance(d: int) -> float:
    """The variance of each weight before the first record: f has a deviation of about 2 with 30 columns or more."""
    return 1.0 / math.sqrt(max(min(d, 30), 1))


LARGEST_VARIANCE = prior_variance(1)  # of a weight, whose column is standardised: as that of a single one at first


def widened(state: Linear, d: int) -> Linear:
    """The same state with room for more columns."""
    wide, old = new_linear(d), state.moments.shape[1]
    wide.moments[:, :old] = state.moments
    wide.passive[:, :old], wide.passive[:, d] = state.passive[:, :old], state.passive[:, old]
    e = FIXED + old
    wide.means[:, :e] = state.means
    wide.spreads.reshape(2, FIXED + d, FIXED + d)[:, :e, :e] = state.spreads.reshape(2, e, e)
    wide.labels[:] = state.labels
    wide.chain[:] = state.chain
    return wide


@inner
def sigmoid(f):
    """1 / (1 + exp(-f)), for f of any size."""
    return 0.5 + 0.5 * math.tanh(0.5 * f)


@inner
def note_moments(moments, x):
    """Take the values of a record into the moments of their columns."""
    for j in range(x.shape[0]):
        if not np.isnan(x[j]):
            moments[0, j] += 1.0
            change = x[j] - moments[1, j]
            moments[1, j] += change / moments[0, j]
            moments[2, j] += change * (x[j] - moments[1, j])


@inner
def standardise(moments, x, z):
    """Write the standardised values of a record: 0 for what is missing, and for a column that has not varied."""
    for j in range(x.shape[0]):
        z[j] = 0.0
        if moments[2, j] > 0.0 and not np.isnan(x[j]):
            z[j] = (x[j] - moments[1, j]) / math.sqrt(moments[2, j] / moments[0, j])


@inner
def _margin(w, z):
    f = w[z.shape[0]]
    for j in range(z.shape[0]):
        f += w[j] * z[j]
    return f


@inner
def _inputs(state, k, z, v):
    """Write v of the Bayesian expert k."""
    v[0] = 1.0
    for t in range(LAGS):
        v[1 + t] = state.labels[t] if k == 1 else 0.0
    v[FIXED:] = z


@inner
def matrix_of(matrices, k):
    """The k-th of square matrices that lie below each other."""
    e = matrices.shape[1]
    return matrices[k * e : (k + 1) * e]


@inner
def _spread(own, v, s):
    """Write s = S v, by the columns of S, which are its rows; return v s."""
    s[: v.shape[0]] = 0.0
    for a in range(v.shape[0]):
        row, own_v = own[a], v[a]
        for b in range(v.shape[0]):
            s[b] += row[b] * own_v
    total = 0.0
    for a in range(v.shape[0]):
        total += s[a] * v[a]
    return total


@inner
def _product(m, v):
    f = 0.0
    for a in range(v.shape[0]):
        f += m[a] * v[a]
    return f


@inner
def predict_bayesian(m, S, v, s):
    """The probability of True by the weights m, whose covariance is S; s is room of the size of v or more."""
    return sigmoid(_product(m, v) / math.sqrt(1.0 + PROBIT * _spread(S, v, s)))


@inner
def learn_bayesian(m, S, v, target, walk, s):
    """Take one extended Kalman step, to a label of 0 or 1."""
    h, p = _spread(S, v, s), sigmoid(_product(m, v))
    q = p * (1.0 - p)
    c = q / (1.0 + q * h)
    for a in range(v.shape[0]):
        row, factor = S[a], c * s[a]
        for b in range(v.shape[0]):
            row[b] -= factor * s[b]
        step = max(min(walk, LARGEST_VARIANCE - row[a]), 0.0)
        row[a] += step
        m[a] += (target - p) * (s[a] * (1.0 - c * h) + step * v[a])  # S v after both changes


@inner
def predict_linear(state, z, v, s, out):
    """Write the probabilities of the linear experts."""
    for k in range(2):
        out[k] = sigmoid(_margin(state.passive[k], z))
    for k in range(2):
        _inputs(state, k, z, v)
        out[2 + k] = predict_bayesian(state.means[k], matrix_of(state.spreads, k), v, s)
    counts = state.chain[1 if state.labels[0] > 0.0 else 0]
    out[4] = counts[1] / (counts[0] + counts[1])


@inner
def learn_linear(state, z, y, v, s):
    """Learn a record, standardised with itself, with label y, +1 or -1."""
    square = 0.0
    for j in range(z.shape[0]):
        square += z[j] * z[j]
    for k in range(2):
        w = state.passive[k]
        loss = 1.0 - y * _margin(w, z)
        if loss > 0.0 and square > 0.0:
            tau = y * min(C_OF_PASSIVE[k], loss / square)
            for j in range(z.shape[0]):
                w[j] += tau * z[j]
            w[z.shape[0]] += tau
    for k in range(2):
        _inputs(state, k, z, v)
        learn_bayesian(state.means[k], matrix_of(state.spreads, k), v, 1.0 if y > 0.0 else 0.0, WALKS[k], s)
    counts = state.chain[1 if state.labels[0] > 0.0 else 0]
    counts *= MEMORY
    counts[1 if y > 0.0 else 0] += 1.0
    for t in range(LAGS - 1, 0, -1):
        state.labels[t] = state.labels[t - 1]
    state.labels[0] = y
