"""Exact forgetting: the model without some of its members, from the model with them.

Members c leave.  While their coefficients are driven to 0 by degrees, those of the free members M move so that no
condition of optimality is lost; see `batch.path`, which follows such paths, with a bias and without:

    d_alpha_M = -K_MM^-1 K_Mc d_alpha_c        (without a bias; with one, the inverse is bordered)
    d_g       = -(K_.c d_alpha_c + K_.M d_alpha_M)

Events are a free member that meets a bound, a bounded one whose gradient meets the bias, and the end, alpha_c = 0.
What was optimal to some tolerance before is so, to the same tolerance, without them.

A member with alpha = 0 leaves at the cost of a look-up.  Steps replace the path where it would cost more (many free
members) or cannot be followed (equal members: K_MM is singular).  The coefficients are then handed back by forced pair
steps (`batch.seeding`) or, without a bias, set to 0, and the rest is solved again to the tolerance that it had.

========= ======================================================== ================
symbol    name                                                     shape, dtype
========= ======================================================== ================
leaving   slots of the members to be forgotten                     (r,) int64
M         free members that stay, lo < alpha < hi                  (m,) int64
P         inverse of the (bordered) kernel among M                 (m+1, m+1)
========= ======================================================== ================

Sources: algorithm of Karasuyama and Takeuchi as in `batch.path`; decremental removal goes back to Cauwenberghs, Poggio,
"Incremental and decremental support vector machine learning", NIPS 2000.  Deviations: all members leave together, along
one path; and the model need not be optimal, only the violations that it has do not grow.
"""

from typing import NamedTuple

import numpy as np

from streamsvm.batch import path
from streamsvm.batch.cache import adds_by_four, diagonal_of, places_of, row_at, rows_of
from streamsvm.batch.seeding import choice
from streamsvm.batch.seeding.exact import survey
from streamsvm.batch.seeding.greedy import forced_steps
from streamsvm.batch.steps import penalties, settled
from streamsvm.core.compiling._jit import compiled, compiled_for
from streamsvm.core.expansion import AGAIN, G_DOWN, G_UP, SLOTS, Expansion, bury
from streamsvm.core.kernels import Kernel
from streamsvm.core.rows import member_row
from streamsvm.online.finish import Problem, balance, move_members, solve_again
from streamsvm.online.removal.near import near_members, number_near

LOOKED_UP, FOLLOWED, HANDED_BACK = "looked up", "followed", "handed back"

JITTER = 1e-7  # on the diagonal of K_MM, relative to it: what float32 kernel values leave
SECONDS_PER_CUBE = 0.12e-9  # of the inverse
ENTERING = 0.12  # of the steps after a removal, for a box and kernel values of 1; more by the root of their product
STEPS_OF_ONE, STEPS_PER_FREE = 50, 2  # to solve again to 1e-3, after one member has left; see `_note_steps`
MAX_PATHS = 3  # for members that violate after a path
WELL_WITHIN = 0.98  # of the tolerance: rounding must not pass for a violation
UNIT, MEMORY = 1000, 4  # of the steps that were expected; removals over which the running mean goes


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


@compiled_for(adds_by_four, Members)
def _adds_by_four(members):
    return False  # or a model would depend on what is cached


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


class Known(NamedTuple):
    """The inverse at the end of a path.  Another path that begins there need not compute it.

    P
        The inverse, in the first m + 1 rows and columns.
    slots, serials
        The free members in the order of P, (m,).
    jitter
        What was added to the diagonal of K_MM.
    """

    P: np.ndarray
    slots: np.ndarray
    serials: np.ndarray
    jitter: float

    def fits(self, s: Expansion, M: np.ndarray) -> bool:
        """Whether these are the free members of the expansion."""
        same = np.array_equal(np.sort(self.slots), M)
        return same and np.array_equal(s.serial[self.slots], self.serials)


def forget(
    s: Expansion, kernel: Kernel, problem: Problem, leaving: np.ndarray, tol: float
) -> tuple[Expansion, str, Known | None]:
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
        The expansion, whose slots may be others, how it was done, and what `admit` may use.
    """
    n, biased, known = int(s.counts[SLOTS]), problem.fixed_sum, None
    problem.note(s)
    tol, how = max(tol, problem.violation(s)), LOOKED_UP
    mass = leaving[s.alpha[leaving] != 0.0]
    if len(mass):
        expected = expected_steps(int(np.count_nonzero(_is_free(s))), len(mass), tol)
        stays = np.ones(n, bool)
        stays[leaving] = False
        beside = tolerances(s, s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n], biased)
        known = _leave(s, kernel, biased, mass, stays, tol, beside)
        how = HANDED_BACK if known is None else FOLLOWED
        s.lo[leaving] = s.hi[leaving] = 0.0
        if known is None:
            hand_back(s, kernel, biased, mass)
        else:
            known = _meet(s, kernel, biased, tol, beside, known)
        s.up[:n], s.down[:n] = penalties(s.alpha[:n], s.lo[:n], s.hi[:n])
    _bury_all(s, leaving)
    problem.note(s)
    steps = 0
    if problem.violation(s) > tol:  # after steps that only emptied coefficients, or by the rounding of many paths
        s, steps = solve_again(s, kernel, problem, tol)
    if how == HANDED_BACK:
        _note_steps(s, steps, expected)
    return s, how, known


def admit(
    s: Expansion, kernel: Kernel, problem: Problem, count: int, tol: float, known: Known | None = None
) -> tuple[Expansion, int]:
    """Solve with the last `count` members too, whose coefficients are 0, until the violation is at most `tol`.

    The others are optimal to some tolerance.  As in `forget`, a path replaces steps where it is cheaper: the new ones
    are driven towards their bounds until they meet their conditions.  `known` is what `forget` returned, if only these
    members have come since.  Returns the expansion and the number of steps.
    """
    n = int(s.counts[SLOTS])
    if problem.fixed_sum:
        of_others = s.lo[:n].copy(), s.hi[:n].copy()
        for bound in of_others:
            bound[n - count :] = 0.0
        _meet(s, kernel, True, tol, tolerances(s, s.alpha[:n], s.g[:n], *of_others, True), known)
        s.up[:n], s.down[:n] = penalties(s.alpha[:n], s.lo[:n], s.hi[:n])
    problem.note(s)
    return solve_again(s, kernel, problem, tol)


def _leave(
    s: Expansion,
    kernel: Kernel,
    biased: bool,
    mass: np.ndarray,
    stays: np.ndarray,
    tol: float,
    beside: tuple[float, float, float],
) -> Known | None:
    """Drive `mass` out along a path, if it is cheaper than steps.  None: it is not, and nothing has changed."""
    n, free = len(stays), _is_free(s)
    M, leaves_free = np.flatnonzero(free & stays), int(np.count_nonzero(free[mass]))
    events = choice.events_of(leaves_free, len(mass) - leaves_free)
    expected = _remembered(s) * seconds_by_steps(n, len(M), len(mass), tol)
    if not _path_pays(n, len(M), len(mass), events, expected, False):
        return None
    place = _places(s)
    place[~stays] = path.OUT
    return _follow(s, kernel, biased, M, place, mass, np.zeros(len(mass)), beside, None)


def _meet(
    s: Expansion, kernel: Kernel, biased: bool, tol: float, beside: tuple[float, float, float], known: Known | None
) -> Known | None:
    """Drive members at a bound that violate, until none does or steps are cheaper; the inverse at the end.

    The members that a path has left out may violate at its end, and so do new ones.
    """
    for _ in range(MAX_PATHS):
        found = _enter(s, kernel, biased, tol, beside, known)
        if found is None:
            break
        known = found
    return known


def _enter(
    s: Expansion, kernel: Kernel, biased: bool, tol: float, beside: tuple[float, float, float], known: Known | None
) -> Known | None:
    """Drive the members at a bound that violate along a path.  None: there are none, or steps are cheaper."""
    n, (above, below, mu) = int(s.counts[SLOTS]), beside
    alpha, g, lo, hi = s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n]
    top, bottom, mu = survey(alpha, g, lo, hi)[:3]
    mu, spare = mu if biased else 0.0, 0.5 * max(0.0, WELL_WITHIN * tol - above - below)
    if top - mu <= above + spare and mu - bottom <= below + spare:
        return None
    place = _places(s)
    rises = (place == path.AT_LOWER) & (g - mu > above + spare)
    falls = (place == path.AT_UPPER) & (mu - g > below + spare)
    driven, M = np.flatnonzero(rises | falls), np.flatnonzero(place == path.FREE)
    if not len(driven):
        return None
    steps = ENTERING * np.sqrt(float((hi - lo).max()) * float(s.self_k[:n].max()))
    expected = steps * _remembered(s) * seconds_by_steps(n, len(M), len(driven), tol)
    known = known if known is not None and known.fits(s, M) else None
    if not _path_pays(n, len(M), len(driven), choice.events_of(len(driven), 0.0), expected, known is not None):
        return None
    place[driven] = path.DRIVEN
    target = np.where(rises, hi, lo)[driven]
    return _follow(s, kernel, biased, M, place, driven, target, (above, below, mu), known)


def _is_free(s: Expansion) -> np.ndarray:
    """Which members are at no bound, (n,) bool."""
    n = int(s.counts[SLOTS])
    return np.asarray((s.lo[:n] < s.alpha[:n]) & (s.alpha[:n] < s.hi[:n]))


def _places(s: Expansion) -> np.ndarray:
    """Where on a path the members begin, (n,) int8."""
    n = int(s.counts[SLOTS])
    alpha, lo, hi = s.alpha[:n], s.lo[:n], s.hi[:n]
    place = np.where(alpha >= hi, path.AT_UPPER, np.where(alpha <= lo, path.AT_LOWER, path.FREE)).astype(np.int8)
    place[lo >= hi] = path.OUT
    return place


def _follow(
    s: Expansion,
    kernel: Kernel,
    biased: bool,
    M: np.ndarray,
    place: np.ndarray,
    driven: np.ndarray,
    target: np.ndarray,
    beside: tuple[float, float, float],
    known: Known | None,
) -> Known | None:
    """Follow a path to its end, and return the inverse there.  None: that was not possible, and nothing has changed.

    `beside` is what `tolerances` returns, and `known` the inverse at the beginning; for the others see `path`.
    """
    M, m, limit = M if known is None else known.slots, len(M), 4 * len(driven) + 50
    near = near_members(s, kernel, M, place, driven, beside)
    q, (above, below, mu) = near.slots, beside
    alpha, lo, hi, places = s.alpha[q], s.lo[q], s.hi[q], place[q]
    if known is None:
        jitter = path.JITTER / float((hi - lo).max()) + JITTER * float(near.diagonal.max())
        P = path.bordered_inverse(near.rows[:m, :m].astype(np.float64), jitter, biased)
        if P is None:
            return None
    else:
        jitter, P = known.jitter, known.P[: m + 1, : m + 1]
    size = min(m + limit, len(q)) + 2
    room, members = np.empty((size, size)), np.zeros(size, np.int64)
    room[: m + 1, : m + 1], members[:m] = P, np.arange(m)
    state = path.State(biased, alpha, s.g[q], lo, hi, places)
    way = path.Way(m + np.arange(len(driven)), target, limit)
    outcome, _ = path.follow(near, state, way, path.Beginning(room, members, m, mu, above, below, jitter))
    if outcome != path.COMPLETE or not np.isfinite(alpha).all():
        return None
    goal = settled(alpha, lo, hi, np.abs(s.alpha[: len(place)]).max())
    moved = np.flatnonzero(goal != s.alpha[q])
    move_members(s, kernel, q[moved], goal[moved])
    free = q[members[: np.count_nonzero(places == path.FREE)]]
    return Known(room, free, s.serial[free], jitter)


def _path_pays(n: int, m: int, r: int, events: float, by_steps: float, is_known: bool) -> bool:
    """Whether a path that drives r members is expected to cost less than steps that take so many seconds.

    If the inverse is known, it costs nothing.
    """
    products = events * (2.0 * m * m + 2.0 * number_near(n, m, r) * m) + 2.0 * n * m
    along = choice.SECONDS_PER_PRODUCT * products + (0.0 if is_known else SECONDS_PER_CUBE * m**3)
    return bool(along < by_steps)


def seconds_by_steps(n: int, m: int, r: int, tol: float) -> float:
    """What it is expected to take to solve again to `tol` after r of n members have left, with m free ones."""
    return choice.step_seconds(expected_steps(m, r, tol), n)


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
    s.counts[AGAIN] = max(1, ((MEMORY - 1) * (int(s.counts[AGAIN]) or UNIT) + share) // MEMORY)


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
