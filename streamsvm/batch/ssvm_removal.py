"""What the minimum becomes without some examples and features: Newton points of rank r from one shared factor.

Between two changes of the support set f is quadratic, so the point that Newton's method aims at depends on the support
set S alone, not on where it is.  Let u0, v0, S0 and H belong to the minimum over all examples, and

    V     the rows d_i that enter (sigma_i = +1) or leave (sigma_i = -1) S0 to make S, then unit rows, sigma = 0,
          for the features that are held at 0
    W     H^-1 V'
    rho   v0 in the rows of V; minus u0 in the features that are held

Then the aim for S is

    u = u0 + W t,        (diag(sigma) + V W) t = rho,

from  (H + V_x' diag(sigma) V_x) u = H u0 + V_x' diag(sigma) e_x  for the x that change, with V_x u replaced by
e_x - sigma t, and the multipliers of u_held = 0 as the rest of t.  H^-1 D' is computed once from the factor of H and
shared by all folds; an aim costs r^2 p + n p, and no p^3.  One that has the support set it was made for is the minimum.
With one example leaving and no other change, t is a number, and this is the closed form of leave-one-out.

The source (see `ssvm_systems`) updates the inverse itself, step by step, so that its rounding errors add up.  Here
every fold and every step start from the same factor, and `ssvm_newton.minimise` has the last word: it measures the
gradient.
"""

import numpy as np

from streamsvm.batch.ssvm_newton import Minimum, Part, Problem
from streamsvm.batch.ssvm_systems import System, factor_of, solve_by

AIMS = 20  # before Newton's method with its line search takes over
PRECISE = 1e-8  # relative error of an aim, about eps |H|, up to which it counts as exact
LARGEST = 0.5  # r / p above which a factor of one's own is cheaper


class Removal:
    """The minimum over all examples, ready to lose some.

    Parameters
    ----------
    problem, minimum
        Over all examples.
    system
        Knows the Hessian there.
    holds
        Whether parts may hold features at 0.
    """

    def __init__(self, problem: Problem, minimum: Minimum, system: System, *, holds: bool) -> None:
        self._problem, self._minimum = problem, minimum
        system.move(minimum.support)
        self._W = system.solve(problem.D.T).T  # (n, p)
        A = problem.D[minimum.support]
        self._is_precise = np.finfo(float).eps * np.vdot(A, A) <= PRECISE
        if len(A) < A.shape[1]:  # then H^-1 A' is A' (I + A A')^-1, where solve() takes a difference
            self._W[minimum.support] = solve_by(factor_of(A.T), A)
        self._W_held = system.solve(np.eye(problem.D.shape[1])) if holds else np.empty((0, problem.D.shape[1]))

    def start(self, part: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
        """u and v of the minimum over this part, or of the last aim; the support set it is for; how many there were.

        The support set is None where rounding makes u so wrong that Newton's method is to take a step of its own.
        """
        D, e, (u0, v0, S0, *_) = self._problem.D, self._problem.e, self._minimum
        support = S0 & part.trained
        (u, v), aimed, aims = without(self._problem, u0, v0, part), None, 0
        while aims < AIMS:
            changed = np.flatnonzero(support != S0)
            if len(changed) + len(part.held) > LARGEST * D.shape[1]:
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
    """u with 0 where it is held, and the v that belongs to it."""
    if len(part.held) == 0:
        return u, v
    rest = u.copy()
    rest[part.held] = 0.0
    return rest, v + problem.D[:, part.held] @ u[part.held]
