"""Repairs coefficients: finds the nearest ones that are inside their boxes and have the sum 0."""

from collections.abc import Sequence

import numpy as np

from streamsvm.batch.problem import settled
from streamsvm.core.rounding import DUST


def _shift(alpha: np.ndarray, lo: np.ndarray, hi: np.ndarray, amount: float) -> np.ndarray:
    """clip(alpha + theta, lo, hi) with the theta for which the sum grows by `amount`, or by as much as it can."""
    if amount >= (hi - alpha).sum():
        return hi.copy()
    if amount <= (lo - alpha).sum():
        return lo.copy()
    theta = np.concatenate([lo - alpha, hi - alpha])  # where each coefficient starts and stops to move
    order = np.argsort(theta, kind="stable")
    theta, slope = theta[order], np.cumsum(np.where(order < len(alpha), 1, -1))
    grown = (lo - alpha).sum() + np.append(0.0, np.cumsum(slope[:-1] * np.diff(theta)))
    k = min(int(np.searchsorted(grown, amount, side="right")), len(theta) - 1) - 1
    step = (amount - grown[k]) / slope[k] if slope[k] > 0 else 0.0
    return np.clip(alpha + (theta[k] + step), lo, hi)


def repair(
    alpha: np.ndarray, groups: Sequence[np.ndarray], lo: np.ndarray, hi: np.ndarray, largest: float = 0.0
) -> np.ndarray:
    """Cut coefficients to their boxes; then move one group after the other by a common amount, until the sum is 0.

    Within a group this is the nearest point with the sum.  All coefficients take what the groups cannot take.

    Parameters
    ----------
    alpha
        Coefficients, (n,).
    groups
        Numbers of the examples that move first, second and so on.
    lo, hi
        Box of each coefficient, (n,).
    largest
        Size of a coefficient that `alpha` comes from, if it was larger than all of `alpha`; it scales the rounding.

    Examples
    --------

    >>> repair(np.array([0.0, 0.5, -1.0]), [np.array([0])], np.array([0, 0, -1.0]), np.array([0.2, 1, 0]))
    array([ 0.2 ,  0.65, -0.85])
    """
    largest = max(largest, float(np.abs(alpha).max(initial=0.0)))
    alpha = np.clip(alpha, lo, hi)
    rounding = DUST * float(np.abs(alpha).sum())
    for group in (*groups, np.flatnonzero(lo < hi)):
        missing = -float(alpha.sum())
        if abs(missing) <= rounding:
            break
        alpha[group] = _shift(alpha[group], lo[group], hi[group], missing)
    alpha = settled(alpha, lo, hi, largest)  # rounding must not make a coefficient free
    for only_free in (True, False):  # one coefficient takes the rest, so that only one kernel row is needed
        rest = float(alpha.sum())
        if abs(rest) > 0.1 * rounding:
            up, down = hi - alpha, alpha - lo
            widest = int(np.argmax(np.minimum(up, down) if only_free else down if rest > 0.0 else up))
            alpha[widest] = min(max(alpha[widest] - rest, lo[widest]), hi[widest])
    return alpha
