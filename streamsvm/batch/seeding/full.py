"""Seeds from the solution over all examples: AVG, TOP, and BEST, the better of AVG and GREEDY."""

import numpy as np

from streamsvm.batch.seeding.greedy import greedy
from streamsvm.batch.seeding.repair import repair
from streamsvm.batch.seeding.start import Start, better, leaving, moved, staying
from streamsvm.batch.solution import Solution


def avg(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """AVG: the free examples share the leaving coefficients equally, as far as each has room."""
    alpha = repair(previous.dual_coef, [staying(previous, lo, hi)], lo, hi)
    return moved(previous, alpha, "avg")


def top(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """TOP: each leaving coefficient goes to the most similar examples with room, one after the other."""
    alpha = previous.dual_coef.copy()
    R, S = leaving(previous, lo, hi), np.flatnonzero(lo < hi)
    for r, row in zip(R, previous.store.rows(R)[:, S], strict=True):
        order = S[np.argsort(-row, kind="stable")]
        rises = alpha[r] > 0.0
        room = hi[order] - alpha[order] if rises else alpha[order] - lo[order]
        taken = np.clip(abs(alpha[r]) - (np.cumsum(room) - room), 0.0, room)
        alpha[order] += taken if rises else -taken
    return moved(previous, repair(alpha, [], lo, hi), "top")


def best(previous: Solution, lo: np.ndarray, hi: np.ndarray) -> Start:
    """BEST: AVG or GREEDY, whichever has the larger dual objective."""
    return better(previous, [f(previous, lo, hi) for f in (avg, greedy)])
