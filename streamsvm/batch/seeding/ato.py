"""ATO as printed: eta steps from the solution of the fold before, until no example with a coefficient is left in R.

Each step moves the leaving examples R towards 0 and the entering ones T that violate their conditions towards their
bound, by the same share eta of the rest of their way.  The free examples M answer, and b stays:

    d_R = -alpha_R,     d_T = bound - alpha_T,     h = sum_D d,     k = K_D d      (D: R and T)
    [ 1'   ]              [ h   ]
    [ K_MM ] d_M    =   - [ k_M ]

eta is as large as the boxes of M allow, and stops where the gradient of a bounded example or of one of T meets b.

Source: Wen et al., "Improving Efficiency of SVM k-fold Cross-validation by Alpha Seeding", Algorithm 1, with the
equations (9) to (11).  Equation (10) has one equation more than unknowns, because b may not move.  So d_M is its least
squares solution, the examples of M drift from b, and SMO has something left to do.  `batch.path` moves b, and arrives
at the solution.  One deviation: where steps of length 0 could repeat for ever, an example that took part in one waits
until something has moved.
"""

import numpy as np

from streamsvm.batch.seeding.repair import repair
from streamsvm.batch.seeding.start import Start, entering, leaving, moved, staying, violating
from streamsvm.batch.solution import Solution
from streamsvm.core.rounding import DUST, SUM_ROUNDING


def ato(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """ATO: step by step towards the optimum of the next problem; `events` is the number of steps."""
    store = previous.store
    alpha, g = previous.dual_coef.copy(), previous.g.copy()
    target = np.where(previous.y > 0.0, hi, lo)  # of R: 0
    R, M, new = leaving(previous, lo, hi), staying(previous, lo, hi), entering(previous, lo, hi)
    T = violating(previous, new)
    waiting, steps = np.zeros(len(alpha), bool), 0
    while len(R):
        D = np.concatenate([R, T])
        d = target[D] - alpha[D]
        k = d @ store.rows(D)
        rows = store.rows(M)
        d_M = _answer(rows[:, M], d.sum(), k[M])
        d_g = -(k + d_M @ rows)
        eta, who = _step_size(previous, (alpha, g, lo, hi), (M, T), d_M, d_g, waiting)
        alpha[D] += eta * d
        alpha[M] += eta * d_M
        g += eta * d_g
        steps += 1
        waiting &= eta <= DUST
        if who < 0:
            alpha[D] = target[D]
            break
        waiting[who] = eta <= DUST
        if who in M:
            place = int(np.argmax(np.equal(M, who)))
            alpha[who] = hi[who] if d_M[place] > 0.0 else lo[who]
            M = np.delete(M, place)
        else:
            M, T = np.append(M, who), np.setdiff1d(T, who)
    alpha = repair(alpha, [new, staying(previous, lo, hi)], lo, hi)
    return moved(previous, alpha, "ato")._replace(events=steps)


def _answer(K_M: np.ndarray, h: float, k_M: np.ndarray) -> np.ndarray:
    """The least squares solution of equation (10)."""
    from scipy.linalg import lstsq  # loads as long as numpy; only some learners need it

    if not len(k_M):
        return np.zeros(0)
    return lstsq(np.vstack([np.ones(len(k_M)), K_M]), -np.append(h, k_M), check_finite=False, lapack_driver="gelsy")[0]


def _step_size(previous, problem, sets, d_M, d_g, waiting) -> tuple[float, int]:
    """eta, and the example that ends the step; -1 if none does before the end of the way."""
    (alpha, g, lo, hi), (M, T) = problem, sets
    side = np.where(alpha >= hi, 1.0, -1.0)  # of b, on which the gradient of a bounded example is
    side[T] = previous.y[T]
    gap, rate = side * (g - previous.bias), side * d_g
    # Examples that meet b together must all be seen to meet it.
    may_meet = (lo < hi) & (gap > -SUM_ROUNDING) & (rate < 0.0) & ~waiting
    may_meet[M] = False
    eta = np.full(len(alpha), np.inf)
    with np.errstate(over="ignore"):  # of rates below 1e-308: never
        eta[may_meet] = np.maximum(gap[may_meet], 0.0) / -rate[may_meet]
    room, moves = np.where(d_M > 0.0, hi[M] - alpha[M], alpha[M] - lo[M]), d_M != 0.0
    eta[M[moves]] = room[moves] / np.abs(d_M[moves])
    who = int(np.argmin(eta))
    return (float(eta[who]), who) if eta[who] < 1.0 else (1.0, -1)
