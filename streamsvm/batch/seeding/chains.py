"""Seeds from the solution of the fold before: REUSE, SIR and MIR.

Deviations from the source:

- SIR loops over the support vectors of R only, since an example with alpha = 0 would waste a partner.  It looks for the
  largest kernel value from -inf on, not from 0: values underflow, and may be negative.
- MIR as printed asks every example of the old training set to move to the margin, non-support vectors as well, and has
  no equation for those of T.  Here the equations are those of M, which is to stay where it is, and of the entering
  examples that violate their conditions, which alone are moved.
"""

import numpy as np

from streamsvm.batch.seeding.repair import repair
from streamsvm.batch.seeding.start import Start, entering, leaving, moved, staying, violating
from streamsvm.batch.solution import Solution


def reuse(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """REUSE: only the repair, on the entering examples first, then on the free ones, then on all."""
    groups = [entering(previous, lo, hi), staying(previous, lo, hi)]
    return moved(previous, repair(previous.dual_coef, groups, lo, hi), "reuse")


def sir(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """SIR: each leaving support vector hands its coefficient to the most similar entering example of its label."""
    alpha, y = previous.dual_coef.copy(), previous.y
    R, new = leaving(previous, lo, hi), entering(previous, lo, hi)
    unused = np.ones(len(new), bool)
    for r, row in zip(R, previous.store.rows(R)[:, new], strict=True):
        partners = unused & (y[new] == y[r])
        if not unused.any():
            break
        if not partners.any():
            partners = unused
        q = int(np.argmax(np.where(partners, row, -np.inf)))
        unused[q] = False
        alpha[new[q]] = y[new[q]] * abs(previous.dual_coef[r])
    alpha = repair(alpha, [new, staying(previous, lo, hi)], lo, hi)
    return moved(previous, alpha, "sir")


def mir(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """MIR, corrected: entering coefficients that leave f of M where it is and move the violating ones to the margin.

    Least squares in alpha_V for the violating V among T, with rows = M and V, Delta f = 0 for M and g - mu for V:

        || K_rows,V alpha_V - (Delta f + K_rows,R alpha_R) ||^2 + (1'alpha_V - 1'alpha_R)^2
    """
    from scipy.linalg import lapack  # loads as long as numpy; only some learners need it

    store = previous.store
    alpha = previous.dual_coef.copy()
    R, M, new = leaving(previous, lo, hi), staying(previous, lo, hi), entering(previous, lo, hi)
    V = violating(previous, new)
    if len(V):
        places = np.concatenate([M, V])
        wanted = np.concatenate([np.zeros(len(M)), previous.g[V] - previous.bias])
        wanted += previous.dual_coef[R] @ store.rows(R)[:, places]
        A = np.vstack([store.rows(V)[:, places].T, np.ones(len(V))])
        normal, b = A.T @ A, A.T @ np.append(wanted, previous.dual_coef[R].sum())
        normal[np.diag_indices(len(V))] += 1e-10 * np.trace(normal) / len(V)
        _, x, failed = lapack.dposv(normal, b)
        if not failed and np.isfinite(x).all():
            alpha[V] = x
    alpha = repair(alpha, [new, M], lo, hi)
    return moved(previous, alpha, "mir")
