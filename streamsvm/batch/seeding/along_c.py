"""Seeds along C: all boxes grow or shrink.

Deviations from the source: scaling moves the bounded coefficients only, since scaling all destroys a solution that is
still optimal.  A pair (u, v) moves by (g_u - g_v) / q, and only if g_u > g_v: the source's objective changes are not
those of a pair step.
"""

import numpy as np

from streamsvm.batch.seeding.full import avg
from streamsvm.batch.seeding.repair import repair
from streamsvm.batch.seeding.start import Start, better, moved, settled_start, staying
from streamsvm.batch.smo import subtract
from streamsvm.batch.solution import Solution
from streamsvm.core.rounding import DUST


def direct(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """The same coefficients, cut to the boxes if these have shrunk."""
    return avg(previous, lo, hi)._replace(seed="direct")


def scaled(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """Coefficients at their bounds go to the new bounds; the free ones make up for it."""
    alpha = previous.dual_coef.copy()
    bounded = (alpha != 0.0) & ~previous.free
    alpha[bounded] = np.where(alpha > 0.0, hi, lo)[bounded]
    alpha = repair(alpha, [staying(previous, lo, hi)], lo, hi)
    return moved(previous, alpha, "scaled")


def _bounded(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Support vectors at their bounds that have room now, positive and negative, the most violating first."""
    alpha, g = previous.dual_coef, previous.g
    bounded = (alpha != 0.0) & ~previous.free
    positive = np.flatnonzero(bounded & (alpha > 0.0) & (hi > alpha))
    negative = np.flatnonzero(bounded & (alpha < 0.0) & (lo < alpha))
    return positive[np.argsort(-g[positive], kind="stable")], negative[np.argsort(g[negative], kind="stable")]


def pairwise(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """Single: one exact step for each pair of the most violating bounded examples, down both lists once."""
    store = previous.store
    start = direct(previous, lo, hi)
    alpha, g, diagonal = start.alpha, start.g, store.diagonal
    positive, negative = _bounded(previous, lo, hi)
    for u, v in zip(positive, negative, strict=False):
        w = g[u] - g[v]
        if not w > 0.0:
            break
        row = store.rows(np.array([u]))[0]
        q = max(diagonal[u] + diagonal[v] - 2.0 * row[v], DUST)
        step = min(w / q, hi[u] - alpha[u], alpha[v] - lo[v])
        alpha[u] += step
        alpha[v] -= step
        subtract(store, np.array([u, v]), np.array([step, -step]), g)
    return settled_start(previous, alpha, g, lo, hi, "pairwise", 0)


def averaged(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """Multiple: one exact step that moves all bounded positive examples alike, and all negative ones."""
    store = previous.store
    start = direct(previous, lo, hi)
    alpha, g = start.alpha, start.g
    positive, negative = _bounded(previous, lo, hi)
    if len(positive) and len(negative):
        moving = np.concatenate([positive, negative])
        d = np.repeat([1.0 / len(positive), -1.0 / len(negative)], [len(positive), len(negative)])
        K_d = np.zeros(len(g))
        subtract(store, moving, -d, K_d)
        ascent, curvature = float(g[moving] @ d), max(float(K_d[moving] @ d), 1e-300)
        room = np.where(d > 0.0, hi[moving] - alpha[moving], alpha[moving] - lo[moving]) / np.abs(d)
        step = max(0.0, min(ascent / curvature, float(room.min())))
        alpha[moving] += step * d
        g -= step * K_d
    return settled_start(previous, alpha, g, lo, hi, "averaged", 0)


def best_reuse(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """Direct or scaled, whichever has the larger dual objective."""
    return better(previous, [f(previous, lo, hi) for f in (direct, scaled)])
