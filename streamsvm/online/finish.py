"""FINISH: REPROCESS until no member violates, which is SMO over the expansion, with a bias and without.

Three things make it fast; none changes where it ends.

- *Working sets of two*.  With a bias: i is the member with the largest gradient that may rise, j the one that promises
  the largest gain (g_i - g_j)^2 / (K_ii + K_jj - 2 K_ij) among those that may fall.  Without: see `gap`.
- *Shrinking*: members at a bound that cannot be part of a violation now are moved behind the active ones, and
  steps pass over the active prefix only.  Before the end their gradients are rebuilt from the coefficients that
  changed.
- *Newton steps on the free set*: with the bounded members fixed, the free coefficients solve a linear system; a step
  towards its solution, cut at the first bound, removes the long tail that pair steps have when C is large.

========= ======================================================== ================
symbol    name                                                     shape, dtype
========= ======================================================== ================
F         free members, lo < alpha < hi                            (m,) int64
K_F       kernel among the free members                            (m, m) float64
z         Newton direction on F; with a bias, sum z = 0            (m,) float64
========= ======================================================== ================

Source: Fan, Chen, Lin, "Working set selection using second order information", JMLR 6 (2005), equations 11 and 12; the
shrinking rule is section 4 of Chang, Lin, "LIBSVM: a library for support vector machines".  The Newton step is our own.
"""

from typing import Protocol

import numpy as np
from threadpoolctl import ThreadpoolController

from streamsvm._jit import compiled
from streamsvm.expansion import (
    G_DOWN,
    G_UP,
    NEGATIVE,
    POSITIVE,
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
from streamsvm.online import gap, lasvm
from streamsvm.storage import find_extremes, keep, live_slots, row_width

MIN_CHUNK = 200  # pair steps between two looks at what may be shrunk
JITTER = 1e-7  # on the diagonal, of the size of the rounding in float32 kernel values
MAX_STEPS = 10_000  # per member, beyond which rounding is all that moves
MAX_TRIES = 5  # Newton steps in a row, each without the members that met a bound in the one before
MAX_NEWTON = 1500  # free members beyond which a linear system costs more than the steps it saves


class Problem(Protocol):
    """What differs between the problems with and without a bias."""

    def violation(self, s: Expansion) -> float:
        """The largest violation among the active members."""

    def solve(self, s: Expansion, kernel: Kernel, tol: float, max_steps: int) -> int:
        """Steps until the violation is at most `tol` or `max_steps` are done; how many."""

    def may_move(self, s: Expansion) -> np.ndarray:
        """Which of the active members can be part of a violation before others have changed, (n,) bool."""

    def direction(self, K_F: np.ndarray, g_F: np.ndarray) -> np.ndarray:
        """The change of the free coefficients that solves for them."""

    def restore_sum(self, goal: np.ndarray, change: float, room: np.ndarray) -> None:
        """Undo the rounding of a step of the free coefficients, where their sum is fixed; `room` to their bounds."""

    def note(self, s: Expansion) -> None:
        """Note anew what depends on the coefficients and the gradient."""


@compiled
def solve_active(s, kernel, tol, max_steps):
    """Second-order pair steps over the active members until delta <= tol or `max_steps` are done; return how many."""
    for step in range(max_steps):
        if not lasvm.delta(s) > tol:
            return step
        lasvm.take_step(s, kernel, s.counts[SLOT_UP], -1, -1)
    return max_steps


class WithBias:
    """sum alpha = 0: a pair violates."""

    def violation(self, s: Expansion) -> float:
        return float(lasvm.delta(s))

    def solve(self, s: Expansion, kernel: Kernel, tol: float, max_steps: int) -> int:
        return solve_active(s, kernel, tol, max_steps)

    def may_move(self, s: Expansion) -> np.ndarray:
        n = int(s.counts[SLOTS])
        may_rise = (s.up[:n] == 0.0) & (s.g[:n] >= s.extremes[G_DOWN])
        return may_rise | ((s.down[:n] == 0.0) & (s.g[:n] <= s.extremes[G_UP]))

    def direction(self, K_F: np.ndarray, g_F: np.ndarray) -> np.ndarray:
        to_zero, to_shift = np.linalg.solve(K_F, np.stack([g_F, np.ones(len(g_F))], axis=1)).T
        return to_zero - to_zero.sum() / to_shift.sum() * to_shift

    def restore_sum(self, goal: np.ndarray, change: float, room: np.ndarray) -> None:
        goal[int(np.argmax(room))] -= change

    def note(self, s: Expansion) -> None:
        find_extremes(s)


class WithoutBias:
    """Every member violates by itself."""

    def violation(self, s: Expansion) -> float:
        return float(max(s.extremes[G_UP], -s.extremes[G_DOWN]))

    def solve(self, s: Expansion, kernel: Kernel, tol: float, max_steps: int) -> int:
        return gap.optimise_active(s, kernel, tol, max_steps)

    def may_move(self, s: Expansion) -> np.ndarray:
        n, largest = int(s.counts[SLOTS]), self.violation(s)
        return ((s.up[:n] == 0.0) & (s.g[:n] >= -largest)) | ((s.down[:n] == 0.0) & (s.g[:n] <= largest))

    def direction(self, K_F: np.ndarray, g_F: np.ndarray) -> np.ndarray:
        return np.linalg.solve(K_F, g_F)

    def restore_sum(self, goal: np.ndarray, change: float, room: np.ndarray) -> None:
        """There is no sum to keep."""

    def note(self, s: Expansion) -> None:
        support = s.y[: s.counts[SLOTS]][s.alpha[: s.counts[SLOTS]] != 0.0]
        s.counts[[POSITIVE, NEGATIVE]] = np.count_nonzero(support > 0), np.count_nonzero(support < 0)
        gap.rescan(s)


@compiled
def add_to_gradient(s, kernel, slots, change, begin, end):
    """g_s -= sum_c change_c k(x_c, x_s) for the slots begin..end."""
    for c in range(slots.shape[0]):
        i = slots[c]
        nnz = gather(s, i)
        kernel_row(s, kernel, s.member_indices[:nnz], s.member_values[:nnz], s.sq[i], begin, end, s.scratch)
        if begin <= i < end:
            s.scratch[i] = np.float32(s.self_k[i])  # as in every cached row
        g, row, a = s.g[begin:end], s.scratch[begin:end], change[c]
        for t in range(g.shape[0]):
            g[t] -= a * np.float64(row[t])


class _ActiveSet:
    """The active prefix of an expansion that is being finished, and what is needed to undo the shrinking."""

    def __init__(self, s: Expansion, problem: Problem) -> None:
        self.s, self.problem = s, problem
        self.outer: list[tuple[int, np.ndarray]] = []  # slots before each shrinking, and alpha at that time

    def shrink(self) -> None:
        """Move the members that cannot be part of a violating pair behind the others, if they are many."""
        s, n = self.s, int(self.s.counts[SLOTS])
        active = self.problem.may_move(s)
        if np.count_nonzero(active) > 0.8 * n:
            return
        order = np.concatenate([np.flatnonzero(active), np.flatnonzero(~active)])
        for _, alpha in self.outer:
            alpha[:n] = alpha[order]
        self.s = s = keep(s, order)
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
        self.problem.note(self.s)


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


_threads: list[ThreadpoolController] = []


def _one_thread():
    """One BLAS thread: the systems are too small for more, and it gives the same sums on every machine load."""
    if not _threads:
        _threads.append(ThreadpoolController())
    return _threads[0].limit(limits=1, user_api="blas")


class _Newton:
    """Newton steps on the free set, taken when pair steps have cost as much as the next try will.

    `patience` is the factor on that cost: it doubles after a step that a bound cut short, and halves after a full one.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
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
            full = _newton_step(s, kernel, self.problem, F, K_F)
            free = (s.up[F] == 0.0) & (s.down[F] == 0.0)
            F, K_F, tries = F[free], K_F[np.ix_(free, free)], tries + 1
            if free.all():
                break
        self.problem.note(s)
        self.work = -(tries - 1) * cost
        self.patience = min(max(self.patience * (0.5 if full else 2.0), 0.25), 64.0)


def _newton_step(s: Expansion, kernel: Kernel, problem: Problem, F: np.ndarray, K_F: np.ndarray) -> bool:
    """Move the free coefficients towards their solution, as far as the first bound; whether that was the full way."""
    g_F = s.g[F]
    try:
        with _one_thread():
            z = problem.direction(K_F, g_F)
    except np.linalg.LinAlgError:  # singular in spite of the jitter: pair steps go on without help
        return False
    ascent, curvature = float(g_F @ z), float(z @ K_F @ z)
    if not (np.isfinite(z).all() and ascent > 0.0 and curvature > 0.0):
        return False
    with np.errstate(divide="ignore", over="ignore"):
        room = np.where(z > 0.0, s.hi[F] - s.alpha[F], s.alpha[F] - s.lo[F]) / np.abs(z)
    length = min(1.0, ascent / curvature, float(room.min()))
    goal = s.alpha[F] + length * z
    at_bound = room <= length
    goal[at_bound] = np.where(z > 0.0, s.hi[F], s.lo[F])[at_bound]  # met exactly, not up to rounding
    room = np.minimum(s.hi[F] - goal, goal - s.lo[F])
    problem.restore_sum(goal, (goal - s.alpha[F]).sum(), room)  # exactly, however ill-conditioned the system
    _move_free(s, kernel, F, goal)
    return not at_bound.any()


def optimise(s: Expansion, kernel: Kernel, problem: Problem, tol: float) -> tuple[Expansion, int]:
    """Solve over the members of the expansion until the violation is at most `tol`.

    It gives up after `MAX_STEPS` per member; the violation tells.  Returns the expansion, its slots without holes, and
    the number of steps.
    """
    active, newton, steps = _ActiveSet(keep(s, live_slots(s)), problem), _Newton(problem), 0
    active.set_active(int(active.s.counts[SLOTS]))
    limit = MAX_STEPS * max(100, int(active.s.counts[SLOTS]))
    while problem.violation(active.s) > tol and steps < limit:
        done = problem.solve(active.s, kernel, tol, max(MIN_CHUNK, int(active.s.counts[SLOTS]) // 2))
        steps += done
        if problem.violation(active.s) > tol:
            active.shrink()
            newton.after(active.s, kernel, done)
        if not problem.violation(active.s) > tol:
            active.grow_back(kernel)
    active.grow_back(kernel)
    return active.s, steps


def finish(s: Expansion, kernel: Kernel, tol: float) -> tuple[Expansion, int]:
    """Solve with a bias until delta <= tol, and evict before and after.

    Members that eviction leaves with alpha = 0 hold an extreme of the gradient, and with it the bias.
    """
    lasvm.evict(s, 0.0)
    s, steps = optimise(s, kernel, WithBias(), tol)
    lasvm.evict(s, 0.0)
    return _squeezed(s), steps


def finish_without_bias(s: Expansion, kernel: Kernel, tol: float, max_non_sv: int | None) -> tuple[Expansion, int]:
    """Solve without a bias until no member violates by more than `tol`, then CLEAN (None: all members stay)."""
    s, steps = optimise(s, kernel, WithoutBias(), tol)
    if max_non_sv is not None:
        gap.clean(s, max_non_sv)
    s = _squeezed(s)
    gap.rescan(s)  # over slots without holes: the sums of a finished model are those of finishing it again
    return s, steps


def _squeezed(s: Expansion) -> Expansion:
    s = keep(s, live_slots(s))
    return row_width(s, s.alpha.shape[0], int(s.counts[ROWS]))
