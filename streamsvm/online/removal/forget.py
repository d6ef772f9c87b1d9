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

from typing import NamedTuple

import numpy as np

from streamsvm.batch import costs
from streamsvm.batch.kernels.cache import diagonal_of, places_of, row_at, rows_of
from streamsvm.batch.path import follow as path
from streamsvm.batch.path.factor import factorise
from streamsvm.batch.problem import penalties, settled, survey
from streamsvm.batch.seeding.greedy import forced_steps
from streamsvm.core.compiling._jit import compiled, compiled_for
from streamsvm.core.costs import SECONDS_PER_CUBE
from streamsvm.core.expansion import AGAIN, G_DOWN, G_UP, SLOTS, Expansion, bury
from streamsvm.core.kernels import Kernel
from streamsvm.core.rows import member_row
from streamsvm.online.finish import Problem, balance, kernel_among, move_members, solve_again

LOOKED_UP, FOLLOWED, HANDED_BACK = "looked up", "followed", "handed back"

JITTER = 1e-7  # on the diagonal of K_MM, relative to it: what float32 kernel values leave
ENTERING = 0.12  # of the steps after a removal, for a box and kernel values of 1; more by the root of their product
STEPS_OF_ONE, STEPS_PER_FREE = 50, 2  # to solve again to 1e-3, after one member has left; see `_note_steps`
NO_WORKSPACE = np.empty((0, 0))
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


@compiled
def _bury_all(s, slots):
    for i in slots:
        bury(s, i)


def forget(s: Expansion, kernel: Kernel, problem: Problem, leaving: np.ndarray, tol: float) -> tuple[Expansion, str]:
    """Take members out, in place, and keep the others as near to their optimum as before, or within `tol` of it.

    Parameters
    ----------
    s, kernel
        The expansion.
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
    n = int(s.counts[SLOTS])
    problem.note(s)
    tol, how = max(tol, problem.violation(s)), LOOKED_UP
    mass = leaving[s.alpha[leaving] != 0.0]
    if len(mass):
        expected = expected_steps(int(np.count_nonzero(_is_free(s))), len(mass), tol)
        stays = np.ones(n, bool)
        stays[leaving] = False
        how = FOLLOWED if _leave(s, kernel, problem.fixed_sum, mass, stays, tol) else HANDED_BACK
        s.lo[leaving] = s.hi[leaving] = 0.0
        if how == HANDED_BACK:
            hand_back(s, kernel, problem.fixed_sum, mass)
        s.up[:n], s.down[:n] = penalties(s.alpha[:n], s.lo[:n], s.hi[:n])
    _bury_all(s, leaving)
    problem.note(s)
    steps = 0
    if problem.violation(s) > tol:  # after steps that only emptied coefficients, or by the rounding of many paths
        s, steps = solve_again(s, kernel, problem, tol)
    if how == HANDED_BACK:
        _note_steps(s, steps, expected)
    return s, how


def admit(s: Expansion, kernel: Kernel, problem: Problem, count: int, tol: float) -> tuple[Expansion, int]:
    """Solve with the last `count` members too, whose coefficients are 0, until the violation is at most `tol`.

    The others are optimal to some tolerance.  As in `forget`, a path replaces steps where it is cheaper: the new ones
    are driven towards their bounds until they meet their conditions.  Returns the expansion and the number of steps.
    """
    n = int(s.counts[SLOTS])
    if problem.fixed_sum and _enter(s, kernel, np.arange(n - count, n), tol):
        s.up[:n], s.down[:n] = penalties(s.alpha[:n], s.lo[:n], s.hi[:n])
    problem.note(s)
    return solve_again(s, kernel, problem, tol)


def _leave(s: Expansion, kernel: Kernel, biased: bool, mass: np.ndarray, stays: np.ndarray, tol: float) -> bool:
    """Drive `mass` out along a path, if it is cheaper than steps; whether it was done.  If not, nothing has changed."""
    n = len(stays)
    alpha, g, lo, hi = s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n]
    free = _is_free(s)
    M, leaves_free = np.flatnonzero(free & stays), int(np.count_nonzero(free[mass]))
    events = costs.events_of(leaves_free, len(mass) - leaves_free)
    if not _path_pays(n, len(M), events, _remembered(s) * seconds_by_steps(n, len(M), len(mass), tol)):
        return False
    place = places(alpha, lo, hi)
    place[~stays] = path.OUT
    return _follow(s, kernel, biased, M, place, mass, np.zeros(len(mass)), tolerances(s, alpha, g, lo, hi, biased))


def _enter(s: Expansion, kernel: Kernel, entering: np.ndarray, tol: float) -> bool:
    """Drive those that enter along a path, with a bias, if it is cheaper than steps; whether it was done."""
    n = int(s.counts[SLOTS])
    alpha, g, lo, hi = s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n]
    of_others = lo.copy(), hi.copy()
    for bound in of_others:
        bound[entering] = 0.0
    above, below, mu = tolerances(s, alpha, g, *of_others, True)
    rises = s.y[entering] > 0
    violates = np.where(rises, g[entering] - mu > above, mu - g[entering] > below)
    driven, M = entering[violates], np.flatnonzero(_is_free(s))
    steps = ENTERING * np.sqrt(float((hi - lo).max()) * float(s.self_k[:n].max()))
    expected = steps * _remembered(s) * seconds_by_steps(n, len(M), len(driven), tol)
    if not len(driven) or not _path_pays(n, len(M), costs.events_of(len(driven), 0.0), expected):
        return False
    place = places(alpha, lo, hi)
    place[driven] = path.DRIVEN
    target = np.where(rises, hi[entering], lo[entering])[violates]
    return _follow(s, kernel, True, M, place, driven, target, (above, below, mu))


def _is_free(s: Expansion) -> np.ndarray:
    """Which members are at no bound, (n,) bool."""
    n = int(s.counts[SLOTS])
    return np.asarray((s.lo[:n] < s.alpha[:n]) & (s.alpha[:n] < s.hi[:n]))


def places(alpha: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Where on a path the members begin, (n,) int8."""
    place = np.where(alpha >= hi, path.AT_UPPER, np.where(alpha <= lo, path.AT_LOWER, path.FREE)).astype(np.int8)
    place[lo >= hi] = path.OUT
    return place


def jitter_of(s: Expansion) -> float:
    """What is added to the diagonal of K_MM, so that it has a factor."""
    n = int(s.counts[SLOTS])
    widest = float((s.hi[:n] - s.lo[:n]).max(initial=0.0))
    return path.PATH_JITTER / max(widest, 1e-300) + JITTER * float(s.self_k[:n].max(initial=0.0))


def _follow(
    s: Expansion,
    kernel: Kernel,
    biased: bool,
    M: np.ndarray,
    place: np.ndarray,
    driven: np.ndarray,
    target: np.ndarray,
    beside: tuple[float, float, float],
) -> bool:
    """Follow a path to its end; whether that was possible.  If not, nothing has changed.

    `beside` is what `tolerances` returns; for the others see `batch.path.follow`.
    """
    n, limit = len(place), 4 * len(driven) + 50
    alpha, g, lo, hi = s.alpha[:n].copy(), s.g[:n].copy(), s.lo[:n].copy(), s.hi[:n].copy()
    above, below, mu = beside
    jitter = jitter_of(s)
    found = factorise(kernel_among(s, kernel, M), jitter)
    if found is None:
        return False
    factor = path.Factor(*found, M, jitter, above, below, NO_WORKSPACE)
    state, way = path.State(biased, alpha, g, lo, hi, place), path.Way(driven, target, limit)
    outcome, _ = path.follow(Members(s, kernel), state, way, factor.beginning(min(len(M) + limit, n) + 1, mu))
    if outcome != path.COMPLETE or not np.isfinite(g).all():
        return False
    s.alpha[:n], s.g[:n] = settled(alpha, lo, hi, np.abs(s.alpha[:n]).max()), g
    return True


def _path_pays(n: int, m: int, events: float, by_steps: float) -> bool:
    """Whether a path is expected to cost less than steps that take so many seconds."""
    return bool(seconds_along(n, m, events) + SECONDS_PER_CUBE * m**3 < by_steps)


def seconds_along(n: int, m: int, events: float) -> float:
    """What so many events of a path are expected to take among n members, m of them free, when there is a factor."""
    return costs.SECONDS_PER_PRODUCT * events * (2.0 * m * m + 2.0 * n * m)


def seconds_by_steps(n: int, m: int, r: int, tol: float) -> float:
    """What it is expected to take to solve again to `tol` after r of n members have left, with m free ones."""
    return costs.step_seconds(expected_steps(m, r, tol), n)


def expected_steps(m: int, r: int, tol: float) -> float:
    """How many steps it is expected to take then."""
    digits = max(1.0, -np.log10(tol) / 3.0)
    return float(digits * np.sqrt(r) * (STEPS_OF_ONE + STEPS_PER_FREE * m))


def _remembered(s: Expansion) -> float:
    """How many times as many steps the last removals took as was expected; 1 if there were none."""
    return (int(s.counts[AGAIN]) or UNIT) / UNIT


def _note_steps(s: Expansion, steps: int, expected: float) -> None:
    """Heed the steps of a removal.  They are stored with the model, so that a copy goes on as the model does."""
    share = round(UNIT * steps / expected)
    s.counts[AGAIN] = max(1, ((REMOVALS - 1) * (int(s.counts[AGAIN]) or UNIT) + share) // REMOVALS)


def tolerances(s: Expansion, alpha, g, lo, hi, biased: bool) -> tuple[float, float, float]:
    """How far above the bias a gradient is that might rise, how far below it one that might fall; the bias."""
    if not biased:
        return max(0.0, float(s.extremes[G_UP])), max(0.0, -float(s.extremes[G_DOWN])), 0.0
    top, bottom, mu, free = survey(alpha, g, lo, hi)
    return (max(0.0, top - mu), max(0.0, mu - bottom), mu) if free else (0.0, 0.0, mu)


def hand_back(s: Expansion, kernel: Kernel, biased: bool, mass: np.ndarray) -> None:
    """Empty the leaving coefficients, whose boxes are [0, 0], at whatever cost to the objective."""
    n = int(s.counts[SLOTS])
    if biased:
        forced_steps(Members(s, kernel), s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n], mass)
    rest = mass[s.alpha[mass] != 0.0]  # without a bias all; with one, what rounding has left
    move_members(s, kernel, rest, np.zeros(len(rest)))
    if biased:
        balance(s, kernel)
