"""What a model without some of its members says about them.

A member c with alpha_c = 0 changes nothing: the model says the same.  For support vectors the coefficients follow a
path to the model without them, as in `forget`, and f(x_c) = y_c - g_c + b is read off at its end.  The model itself
stays as it is.  All paths begin at the same solution, so the factor that they need is computed once.

========= ======================================================== ================
symbol    name                                                     shape, dtype
========= ======================================================== ================
c         slots of the members that are left out together          (r,) int64
M         free members, lo < alpha < hi                            (m,) int64
F, w      factor of the kernel among M, see `batch.path.factor`         (m, m), (m,)
v         violation of the model as it is                          float
========= ======================================================== ================

If the kernel is positive semi-definite, bounds decide many cases without following a path.  Leaving an example out
cannot raise its y f(x): once its loss no longer counts, this loss cannot become smaller.  With R^2 >= k(x, x) - k(x,
z),

    y f(x) - |alpha_c| R^2 > 0         without a bias: predicted right without it      (Jaakkola, Haussler)
    2 |alpha_c| R^2 + xi_c < 1         with a bias:    the same                        (Joachims' xi-alpha)

Sources: Jaakkola, Haussler, "Probabilistic kernel regression models", AISTATS 1999; Joachims, "Estimating the
generalization performance of an SVM efficiently", ICML 2000.  Deviation: the sources assume a solved problem.  A
running model is solved up to v only, so each bound has to hold by more than v.
"""

import numpy as np

from streamsvm.batch import costs
from streamsvm.batch.path import follow as path
from streamsvm.batch.path.factor import factorise
from streamsvm.batch.problem import SPARE, penalties, survey
from streamsvm.core.costs import SECONDS_PER_CUBE
from streamsvm.core.expansion import FORBIDDEN, SLOT_DOWN, SLOT_UP, SLOTS, Expansion
from streamsvm.core.kernels import Kernel, is_positive_semidefinite, largest_difference
from streamsvm.core.rounding import ROUNDS
from streamsvm.core.storage import keep, live_slots, row_width
from streamsvm.online.finish import Problem, balance, kernel_among
from streamsvm.online.removal import forget

UNKNOWN, UNCHANGED, WRONG, RIGHT = range(4)  # what bounds say of a member without itself
FEW_FREE = 2  # up to which xi-alpha, which assumes that some support vector stays free, is not trusted


class LeaveOut:
    """Predictions for members of a model, by the model without them.

    Parameters
    ----------
    s
        The expansion.  It is changed in place, and slots may be others afterwards.
    kernel, problem
        Its kernel, and the problem that it solves.
    tol
        Violations up to this one are good enough.
    """

    def __init__(self, s: Expansion, kernel: Kernel, problem: Problem, tol: float) -> None:
        s = keep(s, live_slots(s))
        self.s = s = row_width(s, s.alpha.shape[0], len(s.alpha))
        self.kernel, self.problem = kernel, problem
        self.n = int(s.counts[SLOTS])
        problem.note(s)
        self.tol = max(tol, problem.violation(s))
        alpha, lo, hi = s.alpha[: self.n], s.lo[: self.n], s.hi[: self.n]
        self.free = (lo < alpha) & (alpha < hi)
        self._factor: path.Factor | None = None

    @property
    def alpha(self) -> np.ndarray:
        """Coefficients of the members, (n,)."""
        return self.s.alpha[: self.n]

    @property
    def ids(self) -> np.ndarray:
        """Ids of the members, (n,)."""
        return self.s.ids[: self.n]

    @property
    def slack(self) -> float:
        """How much a margin may at most rise without its example: the violation, or infinity where nothing is known."""
        return self.tol if is_positive_semidefinite(self.kernel) else np.inf

    # ---------------------------------------------------------------------------------------------------------- bounds

    def decision_values(self) -> np.ndarray:
        """f of the members by the model as it is, (n,)."""
        s, n = self.s, self.n
        return s.y[:n] - s.g[:n] + self._bias(s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n])

    def bounds(self) -> np.ndarray:
        """What is known of each member without leaving it out: UNKNOWN, UNCHANGED, WRONG or RIGHT, (n,) int8."""
        s, n = self.s, self.n
        alpha = np.abs(s.alpha[:n])
        known = np.where(alpha == 0.0, UNCHANGED, UNKNOWN).astype(np.int8)
        if self.problem.fixed_sum:
            holders = s.counts[[SLOT_UP, SLOT_DOWN]]
            known[holders[holders >= 0]] = UNKNOWN  # they hold the bias
        if not is_positive_semidefinite(self.kernel):
            return known
        margin = s.y[:n] * self.decision_values()
        plain = (alpha > 0.0) & (np.where(s.y[:n] > 0, s.lo[:n], s.hi[:n]) == 0.0)  # a ramp's box is elsewhere
        R2 = largest_difference(self.kernel, float(s.self_k[:n].max(initial=0.0)))
        doubt = 2.0 * self.tol  # the solution at hand may miss by the violation, and the one without a member as well
        if not self.problem.fixed_sum:
            safe = margin - alpha * s.self_k[:n] > doubt
        elif np.count_nonzero(self.free) > FEW_FREE:
            safe = 2.0 * alpha * R2 + np.maximum(0.0, 1.0 - margin) < 1.0 - doubt
        else:
            safe = np.zeros(n, bool)
        known[plain & safe] = RIGHT
        known[plain & (margin < -doubt)] = WRONG
        return known

    # --------------------------------------------------------------------------------------------------- some at a time

    def prepare(self, times: int, r: int = 1, seconds: float = np.inf) -> None:
        """Prepare paths, if they pay for leaving out r support vectors `times` times, within `seconds`."""
        self._factor = self._where_paths_begin() if self._paths_pay(times, r, seconds) else None

    def without(self, c: np.ndarray) -> np.ndarray:
        """f(x_c) by the model without the members in the slots c, (r,)."""
        s, n = self.s, self.n
        alpha, g, lo, hi = (a[:n].copy() for a in (s.alpha, s.g, s.lo, s.hi))
        mass = c[alpha[c] != 0.0]
        if len(mass) and not self._follow(mass, c, alpha, g, lo, hi):
            alpha, g = self._solved_without(mass, c)
        lo[c] = hi[c] = 0.0
        return np.asarray(s.y[c] - g[c] + self._bias(alpha, g, lo, hi))

    def _bias(self, alpha: np.ndarray, g: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> float:
        """Half-way between the extremes, as the model has it; where only one class is left, the one there is."""
        if not self.problem.fixed_sum:
            return 0.0
        top, bottom, mean, _ = survey(alpha, g, lo, hi)
        both = abs(top) < FORBIDDEN and abs(bottom) < FORBIDDEN
        return 0.5 * (top + bottom) if both else float(mean)

    # ------------------------------------------------------------------------------------------------------- the paths

    def _paths_pay(self, times: float, r: int, seconds: float) -> bool:
        """Whether paths, and the factor, are expected to cost less than steps."""
        n, m = self.n, int(np.count_nonzero(self.free))
        r_free = r * m / max(1, int(np.count_nonzero(self.s.alpha[:n])))
        events = costs.events_of(r_free, r - r_free)
        along, by_steps = forget.seconds_along(n, m, events), forget.seconds_by_steps(n, m, r, self.tol)
        times = min(times, seconds / max(by_steps, 1e-9))
        saved = times * (by_steps - along)
        return bool(saved > SECONDS_PER_CUBE * m**3) and m + 2 <= len(self.s.rows)

    def _where_paths_begin(self) -> path.Factor | None:
        s, n = self.s, self.n
        lo, hi = s.lo[:n], s.hi[:n]
        M = np.flatnonzero(self.free)
        above, below, self._mu = forget.tolerances(s, lo, hi, self.problem.fixed_sum)
        jitter = forget.jitter_of(s)
        found = factorise(kernel_among(s, self.kernel, M), jitter)
        self._place = np.empty(n, np.int8)
        forget.put_places(s, self._place)
        room = len(M) + SPARE
        return None if found is None else path.Factor(*found, M, jitter, above, below, np.empty((room, room)))

    def _follow(self, mass: np.ndarray, c: np.ndarray, alpha, g, lo, hi) -> bool:
        """Follow the path that drives `mass`, those of c with mass, out, in alpha and g; whether that was possible."""
        factor = self._factor
        if factor is None:
            return False
        place, limit = self._place.copy(), 4 * len(mass) + 50
        place[c] = path.OUT
        state = path.State(self.problem.fixed_sum, alpha, g, lo, hi, place)
        way = path.Way(mass, np.zeros(len(mass)), limit)
        beginning = factor.beginning(len(factor.members) + limit + 2, self._mu)
        outcome, _ = path.follow(forget.Members(self.s, self.kernel), state, way, beginning)
        return outcome == path.COMPLETE and bool(np.isfinite(g).all())

    # ------------------------------------------------------------------------------------------------------- the steps

    def _solved_without(self, mass: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """alpha and g after `mass` was handed back and the rest solved again; the model is as before."""
        s, n, names = self.s, self.n, ("alpha", "g", "lo", "hi", "up", "down")
        before = {name: getattr(s, name)[:n].copy() for name in names}
        s.lo[c] = s.hi[c] = 0.0
        forget.hand_back(s, self.kernel, self.problem.fixed_sum, mass)
        if self.problem.fixed_sum:
            balance(s, self.kernel)
        s.up[:n], s.down[:n] = penalties(s.alpha[:n], s.lo[:n], s.hi[:n])
        self.problem.note(s)
        for _ in range(ROUNDS):
            if self.problem.solve(s, self.kernel, self.tol, n) < n:
                break
        found = s.alpha[:n].copy(), s.g[:n].copy()
        for name, array in before.items():
            getattr(s, name)[:n] = array
        self.problem.note(s)
        return found
