"""FINISH: REPROCESS until no pair of members is tau-violating, which is SMO over the expansion.

Three things make it fast; none changes where it ends.

- *Second-order working sets*: i is the member with the largest gradient that may rise, j the one that promises the
  largest gain (g_i - g_j)^2 / (K_ii + K_jj - 2 K_ij) among those that may fall.
- *Shrinking*: members at a bound that cannot be part of a violating pair now are moved behind the active ones, and
  steps pass over the active prefix only.  Before the end their gradients are rebuilt from the coefficients that
  changed.
- *Newton steps on the free set*: with the bounded members fixed, the free coefficients solve a linear system; a step
  towards its solution, cut at the first bound, removes the long tail that pair steps have when C is large.

========= ======================================================== ================
symbol    name                                                     shape, dtype
========= ======================================================== ================
F         free members, lo < alpha < hi                            (m,) int64
K_F       kernel among the free members                            (m, m) float64
z         Newton direction on F, sum z = 0                         (m,) float64
========= ======================================================== ================

Source: Fan, Chen, Lin, "Working set selection using second order information", JMLR 6 (2005), equations 11 and 12; the
shrinking rule is section 4 of Chang, Lin, "LIBSVM: a library for support vector machines".  The Newton step is our own.
"""

import numpy as np

from streamsvm._jit import compiled
from streamsvm.blocks import one_thread
from streamsvm.expansion import (
    G_DOWN,
    G_UP,
    ROWS,
    SLOT_UP,
    SLOTS,
    Expansion,
    gather,
    kernel_row,
    member_row,
    set_penalties,
)
from streamsvm.kernels import Kernel
from streamsvm.online.lasvm import delta, evict, take_step
from streamsvm.storage import find_extremes, keep, live_slots, row_width

MIN_CHUNK = 200  # pair steps between two looks at what may be shrunk
JITTER = 1e-7  # on the diagonal, of the size of the rounding in float32 kernel values
MAX_STEPS = 10_000  # per member, beyond which rounding is all that moves
MAX_TRIES = 5  # Newton steps in a row, each without the members that met a bound in the one before
MAX_NEWTON = 1500  # free members beyond which a linear system costs more than the steps it saves


@compiled
def solve_active(s, kernel, tol, max_steps):
    """Second-order pair steps over the active members until delta <= tol or `max_steps` are done; return how many."""
    for step in range(max_steps):
        if not delta(s) > tol:
            return step
        take_step(s, kernel, s.counts[SLOT_UP], -1, -1)
    return max_steps


@compiled
def add_to_gradient(s, kernel, slots, change, begin, end):
    """g_s -= sum_c change_c k(x_c, x_s) for the slots begin..end."""
    for c in range(slots.shape[0]):
        i = slots[c]
        nnz = gather(s, i)
        kernel_row(s, kernel, s.member_indices[:nnz], s.member_values[:nnz], s.sq[i], begin, end, s.scratch)
        g, row, a = s.g[begin:end], s.scratch[begin:end], change[c]
        for t in range(g.shape[0]):
            g[t] -= a * np.float64(row[t])


class _ActiveSet:
    """The active prefix of an expansion that is being finished, and what is needed to undo the shrinking."""

    def __init__(self, s: Expansion) -> None:
        self.s = s
        self.outer: list[tuple[int, np.ndarray]] = []  # slots before each shrinking, and alpha at that time

    def shrink(self) -> None:
        """Move the members that cannot be part of a violating pair behind the others, if they are many."""
        s, n = self.s, int(self.s.counts[SLOTS])
        g = s.g[:n]
        may_rise = (s.up[:n] == 0.0) & (g >= s.extremes[G_DOWN])
        may_fall = (s.down[:n] == 0.0) & (g <= s.extremes[G_UP])
        active = may_rise | may_fall
        if np.count_nonzero(active) > 0.8 * n:
            return
        order = np.concatenate([np.flatnonzero(active), np.flatnonzero(~active)])
        for _, alpha in self.outer:
            alpha[:n] = alpha[order]
        keep(s, order)
        self.outer.append((n, s.alpha.copy()))
        self.set_active(int(np.count_nonzero(active)))

    def grow_back(self, kernel: Kernel) -> None:
        """Make all members active again, with their gradients brought up to date."""
        while self.outer:
            n, alpha = self.outer.pop()
            s, begin = self.s, int(self.s.counts[SLOTS])
            change = s.alpha - alpha
            moved = np.flatnonzero(change)
            add_to_gradient(s, kernel, moved, change[moved], begin, n)
            s.counts[SLOTS] = n
        self.set_active(int(self.s.counts[SLOTS]))

    def set_active(self, n: int) -> None:
        """Let the first n slots be the active ones."""
        self.s.counts[SLOTS] = n
        self.s = row_width(self.s, n, n)
        find_extremes(self.s)


@compiled
def _free_kernel(s, kernel, F, K_F):
    """K_F = k(x_f, x_h) for the free members f, h."""
    for a in range(F.shape[0]):
        r = member_row(s, kernel, F[a], -1)
        for b in range(F.shape[0]):
            K_F[a, b] = s.rows[r, F[b]]


@compiled
def _move_free(s, kernel, F, goal):
    """alpha_F = goal, and the gradient of all active members with it."""
    n = s.counts[SLOTS]
    for a in range(F.shape[0]):
        i = F[a]
        c = goal[a] - s.alpha[i]
        r = member_row(s, kernel, i, -1)
        g, row = s.g[:n], s.rows[r, :n]
        for t in range(n):
            g[t] -= c * np.float64(row[t])
        s.alpha[i] = goal[a]
        set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, i)


def _direction(K_F: np.ndarray, g_F: np.ndarray) -> np.ndarray:
    """The change of the free coefficients that solves for them, with their sum kept."""
    ones = np.ones(len(g_F))
    with one_thread():
        to_zero, to_shift = np.linalg.solve(K_F, np.stack([g_F, ones], axis=1)).T
    return to_zero - to_zero.sum() / to_shift.sum() * to_shift


class _Newton:
    """Newton steps on the free set, taken when pair steps have cost as much as the next try will.

    `patience` is the factor on that cost: it doubles after a step that a bound cut short, and halves after a full one.
    """

    def __init__(self) -> None:
        self.patience = 1.0
        self.work = 0.0

    def after(self, s: Expansion, kernel: Kernel, steps: int) -> None:
        """Note the pair steps done, and take Newton steps if they are due."""
        n = int(s.counts[SLOTS])
        F = np.flatnonzero((s.up[:n] == 0.0) & (s.down[:n] == 0.0))
        cost = len(F) ** 3 / 24 + 3.0 * len(F) * n
        self.work += 3.0 * n * steps
        if not 2 <= len(F) <= MAX_NEWTON or self.work < self.patience * cost:
            return
        K_F = np.empty((len(F), len(F)))
        _free_kernel(s, kernel, F, K_F)
        K_F[np.diag_indices_from(K_F)] = s.self_k[F] * (1.0 + JITTER) + JITTER
        full, tries = False, 0
        while not full and tries < MAX_TRIES and len(F) >= 2:
            full = _newton_step(s, kernel, F, K_F)
            free = (s.up[F] == 0.0) & (s.down[F] == 0.0)
            F, K_F, tries = F[free], K_F[np.ix_(free, free)], tries + 1
            if free.all():
                break
        find_extremes(s)
        self.work = -(tries - 1) * cost
        self.patience = min(max(self.patience * (0.5 if full else 2.0), 0.25), 64.0)


def _newton_step(s: Expansion, kernel: Kernel, F: np.ndarray, K_F: np.ndarray) -> bool:
    """Move the free coefficients towards their solution, as far as the first bound; whether that was the full way."""
    g_F = s.g[F]
    try:
        z = _direction(K_F, g_F)
    except np.linalg.LinAlgError:  # singular in spite of the jitter: pair steps go on without help
        return False
    ascent, curvature = float(g_F @ z), float(z @ K_F @ z)
    if not (np.isfinite(z).all() and ascent > 0.0 and curvature > 0.0):
        return False
    with np.errstate(divide="ignore"):
        room = np.where(z > 0.0, s.hi[F] - s.alpha[F], s.alpha[F] - s.lo[F]) / np.abs(z)
    length = min(1.0, ascent / curvature, float(room.min()))
    goal = s.alpha[F] + length * z
    at_bound = room <= length
    goal[at_bound] = np.where(z > 0.0, s.hi[F], s.lo[F])[at_bound]  # met exactly, not up to rounding
    freest = int(np.argmax(np.minimum(s.hi[F] - goal, goal - s.lo[F])))
    goal[freest] -= (goal - s.alpha[F]).sum()  # the sum is kept exactly, however ill-conditioned the system
    _move_free(s, kernel, F, goal)
    return not at_bound.any()


def finish(s: Expansion, kernel: Kernel, tol: float) -> tuple[Expansion, int]:
    """Solve over the members of the expansion until delta <= tol, then evict.

    It gives up after `MAX_STEPS` per member; delta tells.  Members that eviction leaves with alpha = 0 hold an
    extreme of the gradient, and with it the bias.
    Returns the expansion, its slots without holes, and the number of pair steps.
    """
    evict(s, 0.0)
    s = keep(s, live_slots(s))
    active, newton, steps = _ActiveSet(s), _Newton(), 0
    active.set_active(int(s.counts[SLOTS]))
    limit = MAX_STEPS * max(100, int(s.counts[SLOTS]))
    while delta(active.s) > tol and steps < limit:
        done = solve_active(active.s, kernel, tol, max(MIN_CHUNK, int(active.s.counts[SLOTS]) // 2))
        steps += done
        if delta(active.s) > tol:
            active.shrink()
            newton.after(active.s, kernel, done)
        if not delta(active.s) > tol:
            active.grow_back(kernel)
    active.grow_back(kernel)
    s = active.s
    evict(s, 0.0)
    s = keep(s, live_slots(s))
    return row_width(s, s.alpha.shape[0], int(s.counts[ROWS])), steps
