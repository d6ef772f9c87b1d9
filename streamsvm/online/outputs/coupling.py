"""Probabilities of several classes from those of all pairs of classes.

r_ij estimates the probability of class i, given that the class is i or j.  The probabilities p of the classes minimise

    sum_i sum_{j != i} (r_ji p_i - r_ij p_j)^2,   subject to sum_i p_i = 1

With Q_ii = sum_{s != i} r_si^2 and Q_ij = -r_ji r_ij, the optimum has (Q p)_t = p' Q p for every t.  One class after
another is given the p_t that fulfils its own equation, and p is scaled to the sum 1:

    p_t <- (p' Q p - sum_{j != t} Q_tj p_j) / Q_tt

========  ===================================================  ==========  =======
symbol    name                                                 shape       dtype
========  ===================================================  ==========  =======
r         r_ij of the pairs i < j, in lexicographic order      (B, pairs)  float64
p         probabilities                                        (B, K)      float64
Q         the quadratic form of one example                    (K, K)      float64
Qp, pQp   Q p, and p' Q p, kept up to date                     (K,)        float64
========  ===================================================  ==========  =======

Source: Wu, Lin, Weng, "Probability estimates for multi-class classification by pairwise coupling", JMLR 5 (2004), their
second method and its algorithm 2.  Deviations: r is kept away from 0 and 1, where Q_tt could be 0, and the equations
are solved more exactly.
"""

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.rounding import PRECISION, ROUNDS, SUM_ROUNDING


@inner
def quadratic_form(r, Q):
    """Q for the pairs' probabilities r of one example."""
    n_classes, pair = Q.shape[0], 0
    Q[:] = 0.0
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            r_ij = min(max(r[pair], PRECISION), 1.0 - PRECISION)
            r_ji = 1.0 - r_ij
            Q[i, i] += r_ji * r_ji
            Q[j, j] += r_ij * r_ij
            Q[i, j] = Q[j, i] = -r_ji * r_ij
            pair += 1


@inner
def _couple_one(Q, p, Qp):
    """Solve for the p of one example."""
    n_classes = Q.shape[0]
    p[:] = 1.0 / n_classes
    for _ in range(ROUNDS):
        pQp = 0.0
        for t in range(n_classes):
            Qp[t] = 0.0
            for j in range(n_classes):
                Qp[t] += Q[t, j] * p[j]
            pQp += p[t] * Qp[t]
        worst = 0.0
        for t in range(n_classes):
            worst = max(worst, abs(Qp[t] - pQp))
        if worst < SUM_ROUNDING:
            return
        for t in range(n_classes):
            change = (pQp - Qp[t]) / Q[t, t]
            pQp += change * (2.0 * Qp[t] + change * Q[t, t])
            p[t] += change
            total = 1.0 + change
            pQp /= total * total
            for j in range(n_classes):
                Qp[j] = (Qp[j] + change * Q[j, t]) / total
                p[j] /= total


@compiled
def _couple(r, p):
    n_classes = p.shape[1]
    Q, Qp = np.empty((n_classes, n_classes)), np.empty(n_classes)
    for b in range(p.shape[0]):
        quadratic_form(r[b], Q)
        _couple_one(Q, p[b], Qp)


def coupled(r: np.ndarray, n_classes: int) -> np.ndarray:
    """The probabilities of the classes, (B, n_classes), from those of the pairs, (B, n_pairs)."""
    p = np.empty((len(r), n_classes))
    _couple(np.ascontiguousarray(r), p)
    return p


def led_by(best: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The nearest probabilities of which that of the class `best` is the largest, (B, n_classes).

    Where another class has a larger one, the class shares with all that are above a common level.
    """
    rows = np.flatnonzero(p.argmax(axis=1) != best)
    if not len(rows):
        return p
    leading, others, every = best[rows], p[rows], np.arange(len(rows))
    own = others[every, leading]
    others[every, leading] = -1.0
    above = np.sort(others, axis=1)[:, :0:-1]  # the other classes, largest first
    levels = (own[:, np.newaxis] + np.cumsum(above, axis=1)) / np.arange(2.0, p.shape[1] + 1.0)
    level = levels.max(axis=1)
    p = p.copy()
    p[rows] = np.minimum(others, level[:, np.newaxis])
    p[rows, leading] = np.nextafter(level, 1.0)
    return p
