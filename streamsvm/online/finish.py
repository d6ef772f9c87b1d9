"""FINISH: REPROCESS until no member violates, which is SMO over the expansion, with a bias and without.

Three techniques make it fast.  None of them changes the solution:

- *Working sets of two*.  With a bias: by second order and along conjugate directions, see `batch.steps.conjugate`.
  Without: see `gap`.
- *Shrinking*: members at a bound that cannot be part of a violation now are moved behind the active ones.  Steps read
  the active members only.  At the end, the gradients of the others are rebuilt from the coefficients that changed.
- *Newton steps on the free set*, as in the batch solver, see `batch.steps.newton`.

Source: the LASVM paper, see `lasvm`, and those that `batch.smo` names.  Deviations from the batch solver:

- The kernel rows are those of the expansion: float32, over the active members, and many are known from learning.  With
  float64 rows from a `RowStore`, four times as many kernel values are computed when few rows fit into the cache.
- Because of float32, a Newton step adds a jitter, larger than the rounding, to the diagonal of its kernel and to its
  curvature.
- Shrinking permutes the members, so that a new kernel row only has to reach the last active one.
- Whether a Newton step is taken does not depend on how many rows fit, so the model does not depend on its cache.
"""

import numpy as np

from streamsvm.batch.costs import WORTH
from streamsvm.batch.options import STEPS_PER_EXAMPLE
from streamsvm.batch.problem import penalties, settled
from streamsvm.batch.seeding.repair import repair
from streamsvm.batch.steps.conjugate import MAX_MOVED, conjugate_step
from streamsvm.batch.steps.newton import MAX_FREE, Newton
from streamsvm.batch.steps.pairs import newton_partner, update
from streamsvm.batch.working_set.members import AT_ONCE
from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.expansion import G_DOWN, G_UP, NEGATIVE, POSITIVE, ROWS, SLOTS, Expansion, set_penalties
from streamsvm.core.kernels import Kernel
from streamsvm.core.rounding import KERNEL_ROUNDING, SUM_ROUNDING
from streamsvm.core.rows import gather, kernel_row, member_row
from streamsvm.core.storage import at_least, copy, find_extremes, keep, live_slots, row_width
from streamsvm.online import gap, gap_steps, lasvm


@by_class
@compiled
def note(s, biased):
    """Note anew what depends on the coefficients and the gradient of the active members; return the violation."""
    if biased:
        find_extremes(s)
        return s.extremes[G_UP] - s.extremes[G_DOWN]
    s.counts[POSITIVE] = s.counts[NEGATIVE] = 0
    for t in range(s.counts[SLOTS]):
        if s.alpha[t] != 0.0:
            s.counts[POSITIVE if s.y[t] > 0 else NEGATIVE] += 1
    gap_steps.rescan(s)
    return max(s.extremes[G_UP], -s.extremes[G_DOWN])


@by_class
@compiled
def solve_active(s, kernel, tol, max_steps):
    """Take pair steps over the active members until the extremes differ by at most tol; return how many.

    This is `batch.working_set.members.take_steps` with other rows.
    """
    n, self_k, extremes, rows = s.counts[SLOTS], s.self_k, s.extremes, s.rows
    alpha, g, lo, hi, up, down = s.alpha[:n], s.g[:n], s.lo, s.hi, s.up[:n], s.down[:n]
    places, parts, product = np.empty(MAX_MOVED + 2, np.int64), np.empty(MAX_MOVED + 2), np.zeros(n)
    count, curvature = 0, 0.0
    i = update(g, up, down, 0.0, g, g, extremes)
    for step in range(max_steps):
        if not extremes[G_UP] - extremes[G_DOWN] > tol:
            return step
        r_i = member_row(s, kernel, i, -1)
        j, _ = newton_partner(g, down, self_k, i, rows[r_i])
        if j < 0:
            return step
        r_j = member_row(s, kernel, j, r_i)
        K_i, K_j = rows[r_i], rows[r_j]
        i, count, curvature = conjugate_step(
            alpha, g, lo, hi, up, down, self_k, i, j, K_i, K_j, extremes, places, parts, product, count, curvature
        )
        if i < 0:
            return step
    return max_steps


class WithBias:
    """sum alpha = 0: a pair violates."""

    fixed_sum = True

    def violation(self, s: Expansion) -> float:
        """The largest violation among the active members."""
        return float(s.extremes[G_UP] - s.extremes[G_DOWN])

    def solve(self, s: Expansion, kernel: Kernel, tol: float, max_steps: int) -> int:
        """Take steps until the violation is at most `tol`; return how many, at most `max_steps`."""
        return solve_active(s, kernel, tol, max_steps)

    def may_move(self, s: Expansion) -> np.ndarray:
        """Which of the active members can be part of a violation before others have changed, (n,) bool."""
        n = int(s.counts[SLOTS])
        may_rise = (s.up[:n] == 0.0) & (s.g[:n] >= s.extremes[G_DOWN])
        return may_rise | ((s.down[:n] == 0.0) & (s.g[:n] <= s.extremes[G_UP]))

    def note(self, s: Expansion) -> None:
        """Note anew what depends on the coefficients and the gradient."""
        note(s, True)

    def bias(self, s: Expansion) -> float:
        """The constant term of the decision function."""
        return lasvm.midpoint(s.extremes)

    def finish(self, s: Expansion, kernel: Kernel, tol: float) -> tuple[Expansion, int]:
        """Optimise over all members, and let useless ones go; the expansion, and the number of steps."""
        return finish(s, kernel, tol)


class WithoutBias:
    """Every member violates by itself; `max_non_sv` members with coefficient 0 stay after `finish` (None: all)."""

    fixed_sum = False

    def __init__(self, max_non_sv: int | None = None) -> None:
        self.max_non_sv = max_non_sv

    def violation(self, s: Expansion) -> float:
        return float(max(s.extremes[G_UP], -s.extremes[G_DOWN]))

    def solve(self, s: Expansion, kernel: Kernel, tol: float, max_steps: int) -> int:
        return gap.optimise_active(s, kernel, tol, max_steps)

    def may_move(self, s: Expansion) -> np.ndarray:
        n, largest = int(s.counts[SLOTS]), self.violation(s)
        return ((s.up[:n] == 0.0) & (s.g[:n] >= -largest)) | ((s.down[:n] == 0.0) & (s.g[:n] <= largest))

    def note(self, s: Expansion) -> None:
        note(s, False)

    def bias(self, s: Expansion) -> float:
        return 0.0

    def finish(self, s: Expansion, kernel: Kernel, tol: float) -> tuple[Expansion, int]:
        return finish_without_bias(s, kernel, tol, self.max_non_sv)


Problem = WithBias | WithoutBias


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


@compiled
def put_kernel_among(s, kernel, members, K):
    """K = k(x_f, x_h) for these members f, h."""
    for a in range(members.shape[0]):
        r = member_row(s, kernel, members[a], -1)
        for b in range(members.shape[0]):
            K[a, b] = s.rows[r, members[b]]


def kernel_among(s: Expansion, kernel: Kernel, members: np.ndarray) -> np.ndarray:
    """k(x_f, x_h) for these members f, h."""
    K = np.empty((len(members), len(members)))
    put_kernel_among(s, kernel, members, K)
    return K


@compiled
def move_members(s, kernel, members, goal):
    """Give these members other coefficients, and all active ones the gradient that goes with them."""
    n = s.counts[SLOTS]
    for a in range(members.shape[0]):
        i = members[a]
        c = goal[a] - s.alpha[i]
        if c == 0.0:
            continue
        r = member_row(s, kernel, i, -1)
        g, row = s.g[:n], s.rows[r, :n]
        for t in range(n):
            g[t] -= c * np.float64(row[t])
        s.alpha[i] = goal[a]
        set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, i)


def begun_with(s: Expansion, kernel: Kernel, problem: Problem, alpha: np.ndarray) -> Expansion:
    """The members with these coefficients, (n,), and their gradients anew, as for another kernel or other features."""
    n, support = int(s.counts[SLOTS]), np.flatnonzero(alpha)
    s.alpha[:n], s.g[:n] = 0.0, s.y[:n]
    s.up[:n], s.down[:n] = penalties(s.alpha[:n], s.lo[:n], s.hi[:n])
    s = row_width(s, len(s.alpha), n)
    move_members(s, kernel, support, alpha[support])
    problem.note(s)
    return s


class _ActiveSet:
    """The active members, the first slots of an expansion; and the notes that undo the shrinking."""

    max_free = MAX_FREE  # whatever the cache, so that the model does not depend on it

    def __init__(self, s: Expansion, kernel: Kernel, problem: Problem) -> None:
        self.s, self.kernel, self.problem = s, kernel, problem
        self.outer: list[tuple[int, np.ndarray]] = []  # slots before each shrinking, and alpha at that time
        self.set_active(int(s.counts[SLOTS]))

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        s, n = self.s, int(self.s.counts[SLOTS])
        return s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n]

    def kernel_among(self, places: np.ndarray) -> np.ndarray:
        K = kernel_among(self.s, self.kernel, places)
        K[np.diag_indices_from(K)] += KERNEL_ROUNDING * (1.0 + np.abs(K.diagonal()))
        return K

    def move(self, places: np.ndarray, alpha: np.ndarray) -> None:
        move_members(self.s, self.kernel, places, alpha)
        self.problem.note(self.s)

    def shrink(self) -> None:
        """Move the members that cannot be part of a violating pair behind the others, if they are many."""
        s, n = self.s, int(self.s.counts[SLOTS])
        active = self.problem.may_move(s)
        if np.count_nonzero(active) > WORTH * n:
            return
        order = np.concatenate([np.flatnonzero(active), np.flatnonzero(~active)])
        for _, alpha in self.outer:
            alpha[:n] = alpha[order]
        self.s = s = keep(s, order)
        self.outer.append((n, s.alpha.copy()))
        self.set_active(int(np.count_nonzero(active)))

    def grow_back(self) -> None:
        """Make all members active again, with their gradients brought up to date."""
        while self.outer:
            n, alpha = self.outer.pop()
            s, begin = self.s, int(self.s.counts[SLOTS])
            change = s.alpha - alpha
            moved = np.flatnonzero(change)
            add_to_gradient(s, self.kernel, moved, change[moved], begin, n)
            s.counts[SLOTS] = n
        self.set_active(int(self.s.counts[SLOTS]))

    def set_active(self, n: int) -> None:
        """Let the first n slots be the active ones."""
        self.s.counts[SLOTS] = n
        self.s = at_least(self.s, n, n)
        self.problem.note(self.s)


def optimise(s: Expansion, kernel: Kernel, problem: Problem, tol: float) -> tuple[Expansion, int]:
    """Solve over the members of the expansion until the violation is at most `tol`.

    It gives up after `STEPS_PER_EXAMPLE` for each member, and where no step moves anything; the violation tells.
    Returns the expansion, its slots without holes, and the number of steps.
    """
    active, newton, steps = _ActiveSet(keep(s, live_slots(s)), kernel, problem), Newton(problem.fixed_sum), 0
    limit = STEPS_PER_EXAMPLE * int(active.s.counts[SLOTS])
    while steps < limit:
        chunk = max(AT_ONCE, int(active.s.counts[SLOTS]) // 2)
        done = problem.solve(active.s, kernel, tol, chunk)
        steps += done
        if done == chunk and problem.violation(active.s) > tol:
            active.shrink()
            newton.after(active, done)
        elif active.outer:
            active.grow_back()
        else:
            break
    active.grow_back()
    return active.s, steps


def finish(s: Expansion, kernel: Kernel, tol: float) -> tuple[Expansion, int]:
    """Solve with a bias until delta <= tol, then evict.

    Members that eviction leaves with alpha = 0 hold an extreme of the gradient, and with it the bias.
    """
    balance(s, kernel)
    s, steps = optimise(s, kernel, WithBias(), tol)
    meet_bounds(s)
    lasvm.evict(s, 0.0)
    return squeezed(s), steps


def solve_again(s: Expansion, kernel: Kernel, problem: Problem, tol: float) -> tuple[Expansion, int]:
    """Solve from near a solution until the violation is at most `tol`; the expansion, and the number of steps."""
    # A plain solver is cheaper than to move rows for shrinking, and mostly reaches the end.
    steps = problem.solve(s, kernel, tol, AT_ONCE)
    problem.note(s)
    if problem.violation(s) <= tol:
        return s, steps
    s, more = optimise(copy(s), kernel, problem, tol)  # members move; others may share the features of these
    return squeezed(s), steps + more


@compiled
def is_balanced(alpha):
    """Whether coefficients sum to 0, up to rounding."""
    total, size = 0.0, 0.0
    for t in range(alpha.shape[0]):
        total, size = total + alpha[t], size + abs(alpha[t])
    return abs(total) <= SUM_ROUNDING * size


def balance(s: Expansion, kernel: Kernel) -> None:
    """Make the coefficients sum to 0 where they do not, which steps keep and cannot mend.

    Models that version 0.1.0 has stored may need it.
    """
    n = int(s.counts[SLOTS])
    alpha, lo, hi = s.alpha[:n], s.lo[:n], s.hi[:n]
    if is_balanced(alpha):
        return
    goal = repair(alpha, [np.flatnonzero((lo < alpha) & (alpha < hi))], lo, hi)
    moved = np.flatnonzero(goal != alpha)
    move_members(s, kernel, moved, goal[moved])


def meet_bounds(s: Expansion) -> None:
    """Put the coefficients on their bounds that miss them by rounding, as when two that move together are as far away.

    Where all others are on their bounds, such a one would seem to be free, and the bias be at the end of its range.
    """
    n = int(s.counts[SLOTS])
    alpha, lo, hi = s.alpha[:n], s.lo[:n], s.hi[:n]
    alpha[:] = settled(alpha, lo, hi)
    s.up[:n], s.down[:n] = penalties(alpha, lo, hi)
    find_extremes(s)


def finish_without_bias(s: Expansion, kernel: Kernel, tol: float, max_non_sv: int | None) -> tuple[Expansion, int]:
    """Solve without a bias until no member violates by more than `tol`, then CLEAN (None: all members stay)."""
    s, steps = optimise(s, kernel, WithoutBias(), tol)
    if max_non_sv is not None:
        gap.clean(s, max_non_sv)
    s = squeezed(s)
    gap_steps.rescan(s)  # over slots without holes: the sums of a finished model are those of finishing it again
    return s, steps


def squeezed(s: Expansion) -> Expansion:
    """The expansion without holes, its cached rows wide enough for new members again."""
    s = keep(s, live_slots(s))
    return row_width(s, s.alpha.shape[0], int(s.counts[ROWS]))
