"""Exact forgetting: the model without some of its members, from the model with them.

Members c leave.  While their coefficients are driven to 0 by degrees, those of the free members M move so that no
condition of optimality is lost; see `batch.path`, which follows such paths, with a bias and without:

    d_alpha_M = -K_MM^-1 K_Mc d_alpha_c        (without a bias; with one, the matrix is bordered)
    d_g       = -(K_.c d_alpha_c + K_.M d_alpha_M)

There are three kinds of events: a free member meets a bound, the gradient of a bounded one meets the bias, and the end,
alpha_c = 0.  A model that was optimal to some tolerance is optimal to the same tolerance without the members.

A member with alpha = 0 leaves at the cost of a look-up.  The path is not followed where it would cost more than steps
(many free members), or where K_MM is singular (equal members).  Then forced pair steps (`batch.seeding`) bring the
coefficients to 0; without a bias they are set to 0.  The rest is solved again, to the tolerance that it had.

========= ======================================================== ================
symbol    name                                                     shape, dtype
========= ======================================================== ================
leaving   slots of the members to be forgotten                     (r,) int64
M         free members that stay, lo < alpha < hi                  (m,) int64
F, w      factor of the kernel among M, see `batch.path.factor`         (m, m), (m,)
========= ======================================================== ================

Sources: algorithm of Karasuyama and Takeuchi as in `batch.path`; decremental removal goes back to Cauwenberghs, Poggio,
"Incremental and decremental support vector machine learning", NIPS 2000.  Deviations: all members leave together, along
one path; and the model need not be optimal, only the violations that it has do not grow.
"""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.batch import costs
from streamsvm.batch.costs import SECONDS_PER_PRODUCT
from streamsvm.batch.kernels.cache import diagonal_of, places_of, row_at, rows_of
from streamsvm.batch.path import follow as path
from streamsvm.batch.path.factor import OWN_LOOP, decompose, factorise, solve_forward
from streamsvm.batch.problem import settle, survey
from streamsvm.batch.seeding.greedy import forced_steps
from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, compiled_for, inner, shared
from streamsvm.core.costs import SECONDS_PER_CUBE
from streamsvm.core.expansion import (
    AGAIN,
    G_DOWN,
    G_UP,
    SLOTS,
    Expansion,
    bury,
    set_penalties,
)
from streamsvm.core.kernels import Kernel
from streamsvm.core.rounding import PRECISION
from streamsvm.core.rows import member_row
from streamsvm.online.finish import Problem, balance, kernel_among, move_members, note, put_kernel_among, solve_again

LOOKED_UP, FOLLOWED, HANDED_BACK, TOO_MANY = range(4)  # how members left; or that LAPACK has to make the factor

ENTERING = 0.12  # of the steps after a removal, for a box and kernel values of 1; more by the root of their product
STEPS_OF_ONE, STEPS_PER_FREE = 50, 2  # to solve again to 1e-3, after one member has left; see `note_steps`
# The least share of the steps to 1e-3 that a removal is taken to need.  A loose model needs few, but they disturb more
# than a path does.  So only a window, which forgets without being asked, takes them for what they are.
ASKED, AGED = 1.0, 0.05
NO_FACTOR = np.empty((0, 0)), np.empty(0)
UNIT, REMOVALS = 1000, 4  # of the steps that were expected; removals over which the running mean goes


class Members(NamedTuple):
    """An expansion as what paths and forced steps go over."""

    s: Expansion
    kernel: Kernel


@compiled_for(row_at, Members)
def _row_at(members, i, pinned):
    return member_row(members.s, members.kernel, i, pinned)


@compiled_for(places_of, Members)
def _places_of(members):
    return members.s.row_of  # complete, if they were asked for since members were added last


@compiled_for(rows_of, Members)
def _rows_of(members):
    return members.s.rows


@compiled_for(diagonal_of, Members)
def _diagonal_of(members):
    return members.s.self_k


# -------------------------------------------------------------------------------------------------- what ways cost


def seconds_along(n: int, m: int, events: float) -> float:
    """What so many events of a path are expected to take among n members, m of them free, when there is a factor."""
    return SECONDS_PER_PRODUCT * events * (2.0 * m * m + 2.0 * n * m)


def expected_steps(m: int, r: int, tol: float, least: float) -> float:
    """How many steps it is expected to take to solve again to `tol` after r members have left, with m free ones."""
    digits = max(least, -math.log10(tol) / 3.0)
    return digits * math.sqrt(r) * (STEPS_OF_ONE + STEPS_PER_FREE * m)


def seconds_by_steps(n: int, m: int, r: int, tol: float) -> float:
    """What it is expected to take then, with n members."""
    return costs.step_seconds(expected_steps(m, r, tol, ASKED), n)


_seconds_along, _expected_steps = inner(seconds_along), inner(expected_steps)
_events_of, _step_seconds = inner(costs.events_of), inner(costs.step_seconds)


@inner
def _path_pays(s, m, r_free, r_bounded, steps):
    """Whether a path is expected to cost less than steps that are as many as the last removals took of the expected."""
    n, remembered = s.counts[SLOTS], s.counts[AGAIN] / UNIT if s.counts[AGAIN] > 0 else 1.0
    along = _seconds_along(n, m, _events_of(float(r_free), float(r_bounded))) + SECONDS_PER_CUBE * float(m) ** 3
    return along < remembered * _step_seconds(steps, float(n))


@by_class
@compiled
def note_steps(s, steps, expected):
    """Heed the steps of a removal.  They are stored with the model, so that a copy goes on as the model does."""
    share, before = round(UNIT * steps / expected), s.counts[AGAIN] if s.counts[AGAIN] > 0 else UNIT
    s.counts[AGAIN] = max(1, ((REMOVALS - 1) * before + share) // REMOVALS)


# --------------------------------------------------------------------------------------------------------- forgetting


@shared
def forget_here(s, kernel, biased, leaving, tol, least):
    """Take members out: how it was done, the violation that is good enough now, and the steps that were expected.

    If there are TOO_MANY free ones, nothing has been done.
    """
    tol = max(tol, note(s, biased))
    free, r, r_free = 0, 0, 0
    for t in range(s.counts[SLOTS]):
        free += s.lo[t] < s.alpha[t] < s.hi[t]
    for i in leaving:
        r += s.alpha[i] != 0.0
        r_free += s.alpha[i] != 0.0 and s.lo[i] < s.alpha[i] < s.hi[i]
    how, expected = LOOKED_UP, 1.0
    if r > 0:
        how, expected, m = HANDED_BACK, _expected_steps(free, r, tol, least), free - r_free
        if _path_pays(s, m, r_free, r - r_free, _expected_steps(m, r, tol, least)):
            if m > OWN_LOOP:
                return TOO_MANY, tol, expected
            if leave_along(s, kernel, biased, leaving, np.empty((0, 0)), np.empty(0)):
                how = FOLLOWED
    take_out(s, kernel, biased, leaving, how == HANDED_BACK)
    return how, tol, expected


@compiled
def take_out(s, kernel, biased, leaving, hands_back):
    """Bury members, after they have handed back what they have."""
    for i in leaving:
        s.lo[i] = s.hi[i] = 0.0
    if hands_back:
        hand_back(s, kernel, biased, leaving)
    for t in range(s.counts[SLOTS]):
        set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, t)
    for i in leaving:
        bury(s, i)
    note(s, biased)


@compiled
def _forget(s, kernel, biased, leaving, tol):
    return forget_here(s, kernel, biased, leaving, tol, ASKED)


def forget(s: Expansion, kernel: Kernel, problem: Problem, leaving: np.ndarray, tol: float) -> tuple[Expansion, int]:
    """Take members out, in place, and keep the others as near to their optimum as before, or within `tol` of it.

    Parameters
    ----------
    s, kernel
        The expansion.  Its features stay as they are.
    problem
        With or without a bias.
    leaving
        Slots of the members to be forgotten.
    tol
        The violation that is always good enough.

    Returns
    -------
    tuple
        The expansion, whose slots may be others, and how it was done.
    """
    biased = problem.fixed_sum
    how, tol, expected = _forget(s, kernel, biased, leaving, float(tol))
    if how == TOO_MANY:
        free = _is_free(s)
        free[leaving] = False
        found = _factor(s, kernel, np.flatnonzero(free))
        how = FOLLOWED if found and leave_along(s, kernel, biased, leaving, *found) else HANDED_BACK
        take_out(s, kernel, biased, leaving, how == HANDED_BACK)
    s, steps = mended(s, kernel, problem, tol)
    if how == HANDED_BACK:
        note_steps(s, steps, expected)
    return s, how


def mended(s: Expansion, kernel: Kernel, problem: Problem, tol: float) -> tuple[Expansion, int]:
    """Solve again if that is needed, as after steps that only emptied coefficients; the number of steps."""
    if problem.fixed_sum:
        balance(s, kernel)
        problem.note(s)
    return solve_again(s, kernel, problem, tol) if problem.violation(s) > tol else (s, 0)


def admit(s: Expansion, kernel: Kernel, problem: Problem, count: int, tol: float) -> tuple[Expansion, int]:
    """Solve with the last `count` members too, whose coefficients are 0, until the violation is at most `tol`.

    The others are optimal to some tolerance.  As in `forget`, a path replaces steps where it is cheaper: the new ones
    are driven towards their bounds until they meet their conditions.  Returns the expansion and the number of steps.
    """
    if problem.fixed_sum:
        _enter(s, kernel, int(s.counts[SLOTS]) - count, float(tol))
    problem.note(s)
    return solve_again(s, kernel, problem, tol)


def _enter(s: Expansion, kernel: Kernel, first: int, tol: float) -> bool:
    """Drive the members from slot `first` on along a path, with a bias, if it is cheaper than steps; whether it was."""
    how = enter_along(s, kernel, first, tol, *NO_FACTOR)
    if how == TOO_MANY and (found := _factor(s, kernel, np.flatnonzero(_is_free(s)))):
        how = enter_along(s, kernel, first, tol, *found)
    return bool(how == FOLLOWED)


def _factor(s: Expansion, kernel: Kernel, M: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    return factorise(kernel_among(s, kernel, M), jitter_of(s))


def _is_free(s: Expansion) -> np.ndarray:
    """Which members are at no bound, (n,) bool."""
    n = int(s.counts[SLOTS])
    return np.asarray((s.lo[:n] < s.alpha[:n]) & (s.alpha[:n] < s.hi[:n]))


# ---------------------------------------------------------------------------------------------------------- the paths


@compiled
def put_places(s, place):
    """Note where on a path the members begin, in `place`, (n,) int8."""
    for t in range(place.shape[0]):
        at = path.AT_UPPER if s.alpha[t] >= s.hi[t] else path.AT_LOWER if s.alpha[t] <= s.lo[t] else path.FREE
        place[t] = path.OUT if s.lo[t] >= s.hi[t] else at


@compiled
def jitter_of(s):
    """What is added to the diagonal of K_MM, so that it has a factor: more than the rounding of float32."""
    widest, largest = 1e-300, 0.0
    for t in range(s.counts[SLOTS]):
        widest, largest = max(widest, s.hi[t] - s.lo[t]), max(largest, s.self_k[t])
    return path.PATH_JITTER / widest + 2.0 * PRECISION * largest


@compiled
def tolerances(s, lo, hi, biased):
    """How far above the bias a gradient is that might rise, how far below it one that might fall; the bias."""
    n = lo.shape[0]
    if not biased:
        return max(0.0, s.extremes[G_UP]), max(0.0, -s.extremes[G_DOWN]), 0.0
    top, bottom, mu, free = survey(s.alpha[:n], s.g[:n], lo, hi)
    if free == 0:
        return 0.0, 0.0, mu
    return max(0.0, top - mu), max(0.0, mu - bottom), mu


@compiled
def leave_along(s, kernel, biased, leaving, F, w):
    """Drive what members have out along a path; whether that was possible.  If not, nothing has changed."""
    n, r = s.counts[SLOTS], 0
    place, mass = np.empty(n, np.int8), leaving.copy()
    put_places(s, place)
    for i in leaving:
        place[i] = path.OUT
        if s.alpha[i] != 0.0:
            mass[r] = i
            r += 1
    beside = tolerances(s, s.lo[:n], s.hi[:n], biased)
    return along(s, kernel, biased, F, w, place, mass[:r], np.zeros(r), beside[0], beside[1], beside[2]) >= 0


@compiled
def enter_along(s, kernel, first, tol, F, w):
    """Drive the members from slot `first` on towards their bounds, along a path, if it is cheaper than steps; how."""
    n, r, free = s.counts[SLOTS], 0, 0
    lo, hi, place = s.lo[:n].copy(), s.hi[:n].copy(), np.empty(n, np.int8)
    lo[first:] = 0.0
    hi[first:] = 0.0
    above, below, mu = tolerances(s, lo, hi, True)
    put_places(s, place)
    driven, target, widest, largest = np.empty(n - first, np.int64), np.empty(n - first), 0.0, 0.0
    for t in range(n):
        widest, largest = max(widest, s.hi[t] - s.lo[t]), max(largest, s.self_k[t])
        free += s.lo[t] < s.alpha[t] < s.hi[t]
        if t >= first and (s.g[t] - mu > above if s.y[t] > 0 else mu - s.g[t] > below):
            place[t] = path.DRIVEN
            driven[r], target[r] = t, s.hi[t] if s.y[t] > 0 else s.lo[t]
            r += 1
    steps = ENTERING * math.sqrt(widest * largest) * _expected_steps(free, r, tol, ASKED)
    if r == 0 or not _path_pays(s, free, r, 0, steps):
        return HANDED_BACK
    if free > max(OWN_LOOP, F.shape[0]):
        return TOO_MANY
    done = along(s, kernel, True, F, w, place, driven[:r], target[:r], above, below, mu) >= 0
    return FOLLOWED if done else HANDED_BACK


@shared
def along(s, kernel, biased, F, w, place, driven, target, above, below, mu):
    """Follow a path to its end; the number of its events, or -1 if that was not possible, and nothing has changed.

    F and w are the factor among the free members.  If they are empty it is found here, which takes longer than LAPACK
    for many.  For the others see `batch.path.follow`.
    """
    n, m, limit, jitter = place.shape[0], 0, 4 * driven.shape[0] + 50, jitter_of(s)
    M = np.empty(n, np.int64)
    for t in range(n):
        if place[t] == path.FREE:
            M[m] = t
            m += 1
    # 1. The factor, with room for more.
    size, K = min(m + limit, n) + 1, F
    room, ones, members = np.empty((size, size)), np.ones(size), np.zeros(size, np.int64)
    if F.shape[0] < m:
        K, w = np.empty((m, m)), np.ones(m)
        put_kernel_among(s, kernel, M[:m], K)
        for a in range(m):
            K[a, a] += jitter
        if not decompose(K):
            return -1
        solve_forward(K, m, w)
    for a in range(m):
        if not np.isfinite(w[a]):
            return -1
        members[a], ones[a] = M[a], w[a]
        for b in range(m):
            room[a, b] = K[a, b]
    # 2. The path, on copies.
    alpha, g, lo, hi = s.alpha[:n].copy(), s.g[:n].copy(), s.lo[:n].copy(), s.hi[:n].copy()
    state, way = path.State(biased, alpha, g, lo, hi, place), path.Way(driven, target, limit)
    beginning = path.Beginning(room, ones, members, m, mu, above, below, jitter)
    outcome, events = path.follow(Members(s, kernel), state, way, beginning)
    if outcome != path.COMPLETE:
        return -1
    # 3. Its end.
    largest = 0.0
    for t in range(n):
        if not np.isfinite(g[t]):
            return -1
        largest = max(largest, abs(s.alpha[t]))
    settle(alpha, lo, hi, largest)
    for t in range(n):
        s.alpha[t], s.g[t] = alpha[t], g[t]
        set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, t)
    return events


@compiled
def hand_back(s, kernel, biased, leaving):
    """Empty the leaving coefficients, whose boxes are [0, 0], at any cost to the objective; `balance` must follow."""
    n = s.counts[SLOTS]
    if biased:
        forced_steps(Members(s, kernel), s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n], leaving)
    move_members(s, kernel, leaving, np.zeros(leaving.shape[0]))  # without a bias all; with one, what rounding has left
