"""The CCCP polish of a model: fewer support vectors at equal accuracy, by the ramp loss.

The ramp loss is the hinge loss minus another hinge loss.  The concave-convex procedure (CCCP) fixes the slope beta of
the second one, solves the convex problem that remains, and repeats until beta no longer changes:

    beta_i = C_i if y_i f(x_i) < s, else 0,     alpha_i in [min(0, C_i y_i) - beta_i y_i, max(0, C_i y_i) - beta_i y_i]

In a stream, LASVM-NC fixes beta when an example arrives: estimating it again in a young model destroys the model.  In
a converged model it is safe.

At the end beta_i = C_i means alpha_i = 0: such a member's gradient points out of its box.  So LASVM needs no shifted
boxes.  It forgets the members with y_i f(x_i) < s, solves again, and repeats; examples of its reservoir with
s <= y_i f(x_i) < 1 come back.

Source: Collobert, Sinz, Weston, Bottou, "Trading convexity for scalability", ICML 2006, algorithm 1.
"""

import numpy as np

from streamsvm.batch.problem import penalties
from streamsvm.core.expansion import SLOTS, Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.rounding import ROUNDS
from streamsvm.core.storage import find_extremes, keep, live_slots
from streamsvm.online.finish import WithoutBias, add_to_gradient, finish, finish_without_bias


def sparsify(s: Expansion, kernel: Kernel, tol: float, max_non_sv: int | None, ramp_s: float) -> tuple[Expansion, int]:
    """Repeat FINISH and new boxes until the boxes stay; return the expansion and the number of steps.

    Every round lowers the ramp loss.  The loop also ends after `ROUNDS`, where rounding moves a member over the ramp
    and back, or when a FINISH gives up above `tol`.
    """
    steps, left = 0, tol
    for _ in range(ROUNDS):
        s, more = finish_without_bias(s, kernel, tol, None)
        steps, left = steps + more, max(tol, WithoutBias().violation(s))
        if left > tol or not _new_boxes(s, kernel, ramp_s):
            break
    s, more = finish_without_bias(s, kernel, left, max_non_sv)
    return s, steps + more


def without_noise(s: Expansion, kernel: Kernel, tol: float, noise: np.ndarray) -> tuple[Expansion, int]:
    """FINISH with a bias without the members in these slots; the number of steps, too."""
    add_to_gradient(s, kernel, noise, -s.alpha[noise], 0, int(s.counts[SLOTS]))
    s = keep(s, np.setdiff1d(live_slots(s), noise))
    find_extremes(s)
    return finish(s, kernel, tol)


def _new_boxes(s: Expansion, kernel: Kernel, ramp_s: float) -> bool:
    """Give every member the box of its y f(x), and clip its coefficient; return whether a box has changed."""
    n = int(s.counts[SLOTS])
    y = s.y[:n].astype(np.float64)
    C = s.hi[:n] - s.lo[:n]
    beta = np.where(y * (y - s.g[:n]) < ramp_s, C, 0.0)
    lo, hi = np.minimum(0.0, C * y) - beta * y, np.maximum(0.0, C * y) - beta * y
    changed = bool((lo != s.lo[:n]).any() or (hi != s.hi[:n]).any())
    alpha = np.clip(s.alpha[:n], lo, hi)
    moved = np.flatnonzero(alpha != s.alpha[:n])
    add_to_gradient(s, kernel, moved, alpha[moved] - s.alpha[moved], 0, n)
    s.lo[:n], s.hi[:n], s.alpha[:n] = lo, hi, alpha
    s.up[:n], s.down[:n] = penalties(alpha, lo, hi)
    return changed
