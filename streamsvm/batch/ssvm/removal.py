"""The minimum without some examples and features: Newton points of rank r from one shared factor.

Between two changes of the support set f is quadratic.  So the point that Newton's method aims at depends on the support
set S alone.  Let u0, v0, S0 and H belong to the minimum over all examples, and

    V     the rows d_i that enter (sigma_i = +1) or leave (sigma_i = -1) S0 to make S, then unit rows, sigma = 0,
          for the features that are held at 0
    W     H^-1 V'
    rho   v0 in the rows of V; minus u0 in the features that are held

Then the aim for S is

    u = u0 + W t,        (diag(sigma) + V W) t = rho,

from  (H + V_x' diag(sigma) V_x) u = H u0 + V_x' diag(sigma) e_x  for the x that change, with V_x u replaced by
e_x - sigma t, and the multipliers of u_held = 0 as the rest of t.  H^-1 D' is computed once from the factor of H and
shared by all folds; an aim costs r^2 p + n p, and no p^3.  An aim with the support set that it was made for is the
minimum.  If one example leaves and nothing else changes, t is a number: the closed form of leave-one-out.

Deviation from the source (see `systems`): it updates the inverse step by step, so that rounding errors add up.  Here
every fold and every step start from the same factor, and `newton.minimise` checks the gradient at the end.
"""

import numpy as np

from streamsvm.batch.ssvm.newton import RESIDUAL, Minimum, Part, Problem
from streamsvm.batch.ssvm.systems import WORTH_UPDATING, System, factor_of, solve_by
from streamsvm.core.rounding import ROUNDS


class Removal:
    """The minimum over all examples, ready to lose some.

    Parameters
    ----------
    problem
        The problem over all examples.
    minimum
        Its minimum.
    system
        A system that solves with the Hessian there.
    holds
        Whether parts may hold features at 0.
    """

    def __init__(self, problem: Problem, minimum: Minimum, system: System, *, holds: bool) -> None:
        self._problem, self._minimum = problem, minimum
        system.move(minimum.support)
        self._W = system.solve(problem.D.T).T  # (n, p)
        A = problem.D[minimum.support]
        self._is_precise = np.finfo(float).eps * np.vdot(A, A) <= RESIDUAL
        if len(A) < A.shape[1]:  # then H^-1 A' is A' (I + A A')^-1, where solve() takes a difference
            self._W[minimum.support] = solve_by(factor_of(A.T), A)
        self._W_held = system.solve(np.eye(problem.D.shape[1])) if holds else np.empty((0, problem.D.shape[1]))

    def start(self, part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
        """u and v of the minimum over this part, or of the last aim; its support set; the number of aims.

        The support set is None if rounding makes u so wrong that Newton's method must take a step.
        """
        D, e, (u0, v0, S0, *_) = self._problem.D, self._problem.e, self._minimum
        support = S0 & part.trained
        (u, v), aimed, aims = without(self._problem, u0, v0, part), None, 0
        while aims < ROUNDS:  # then Newton's method with its line search takes over
            changed = np.flatnonzero(support != S0)
            if len(changed) + len(part.held) > WORTH_UPDATING * D.shape[1]:
                break
            W = np.concatenate([self._W[changed], self._W_held[part.held]])
            M = np.concatenate([D[changed] @ W.T, W[:, part.held].T])
            M.flat[: len(changed) * (len(M) + 1) : len(M) + 1] += np.where(support[changed], 1.0, -1.0)
            try:
                t = np.linalg.solve(M, np.concatenate([v0[changed], -u0[part.held]]))
            except np.linalg.LinAlgError:
                break
            u = u0 + t @ W
            u[part.held] = 0.0
            v, aims = e - D @ u, aims + 1
            aimed, support = support, (v > 0.0) & part.trained
            if np.array_equal(aimed, support):
                break
        return u, v, aimed if self._is_precise else None, aims


def without(problem: Problem, u: np.ndarray, v: np.ndarray, part: Part) -> tuple[np.ndarray, np.ndarray]:
    """u with 0 in the held features, and the v that goes with it."""
    if len(part.held) == 0:
        return u, v
    rest = u.copy()
    rest[part.held] = 0.0
    return rest, v + problem.D[:, part.held] @ u[part.held]
