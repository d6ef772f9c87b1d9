"""Newton's method with Armijo's rule on the smooth support vector machine, and on parts of its examples and features.

    minimise  f(u) = 1/2 u'u + 1/2 sum_{i trained} (e_i - d_i'u)_+^2      over u with u_j = 0 for j in held

`model` names the sources.  f is strictly convex, and quadratic while the support set S stays the same.  So Newton's
method ends after finitely many steps, and the last one is exact.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
D         rows d_i = sqrt(c_i) y_i (1, features of example i)              (n, p) float64
e         sqrt(c_i)                                                        (n,) float64
u         (bias, weights of the features)                                  (p,) float64
v         e - D u; positive: the example is in the margin, or wrong        (n,) float64
S         trained examples with v > 0, as a mask                           (n,) bool
g         gradient u - D_S' v_S, 0 where u is held                         (p,) float64
z         Newton's direction -H^-1 g, H = I + D_S' D_S                     (p,) float64
held      features that are held at 0 in the part                          (h,) int64
========= ================================================================ ================

An example of weight 0 is never trained on.  Its row is that of weight 1, so that v still has its decision value.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import NamedTuple

import numpy as np

from streamsvm.batch.costs import SECONDS_PER_PRODUCT
from streamsvm.batch.solution import CONVERGED, MAX_ITERATIONS, NO_PROGRESS
from streamsvm.batch.ssvm.systems import NONE, Cholesky, System
from streamsvm.core.costs import TASK
from streamsvm.core.rounding import DUST
from streamsvm.core.threads import one_blas_thread

MAX_NEWTON_STEPS = 200  # of Newton's method; three to nine are usual
ONE_THREAD = int(TASK * 1e-9 / SECONDS_PER_PRODUCT)  # numbers in D: a product of fewer is done before a thread begins
RESIDUAL = 1e-8  # relative, about eps |H|: a direction with a larger one is refined, and then computed anew


class Problem:
    """The rows d_i with their costs and labels.

    Parameters
    ----------
    features
        (n, p - 1).
    y
        Labels, -1.0 and +1.0.
    costs
        c_i, C times the weight of an example, (n,).
    """

    def __init__(self, features: np.ndarray, y: np.ndarray, costs: np.ndarray) -> None:
        self.y, self.trained = y, costs > 0.0
        self.e = np.sqrt(np.where(self.trained, costs, 1.0))
        self.D = np.empty((len(y), features.shape[1] + 1))
        self.D[:, 0], self.D[:, 1:] = 1.0, features
        with np.errstate(over="ignore"):
            self.D *= (self.e * y)[:, None]
        if not np.isfinite(np.vdot(self.D, self.D)):
            raise ValueError("C times the square of a feature or kernel value overflows; scale the features")

    @cached_property
    def scale(self) -> float:
        """The scale of gradients: the sum of e_i |d_i| over trained examples, at least |g| at u = 0."""
        return float(np.where(self.trained, self.e, 0.0) @ np.sqrt(np.einsum("ij,ij->i", self.D, self.D)))

    def decision_values(self, v: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """f(x_i) of these examples."""
        return self.y[ids] * (1.0 - v[ids] / self.e[ids])

    def threads(self) -> AbstractContextManager[None]:
        """Limit BLAS to one thread if the systems are too small for more."""
        return one_blas_thread() if self.D.size <= ONE_THREAD else nullcontext()

    def part(self, out: np.ndarray = NONE, held: np.ndarray = NONE) -> "Part":
        """The problem without these examples and features."""
        trained = self.trained.copy()
        trained[out] = False
        return Part(trained, held)


class Part(NamedTuple):
    """Which examples are trained on, (n,) bool, and which features are held at 0, by number."""

    trained: np.ndarray
    held: np.ndarray


class Minimum(NamedTuple):
    """The end of Newton's method; see the symbol table of the module, and `SmoothSVM.status_`."""

    u: np.ndarray
    v: np.ndarray
    support: np.ndarray
    steps: int
    status: str

    @property
    def converged(self) -> bool:
        """Whether the gradient is small enough."""
        return self.status == CONVERGED


def objective(u: np.ndarray, v: np.ndarray, trained: np.ndarray) -> float:
    """f(u)."""
    return 0.5 * float(u @ u) + 0.5 * float(np.sum(np.maximum(v[trained], 0.0) ** 2))


def gradient(D: np.ndarray, u: np.ndarray, v: np.ndarray, support: np.ndarray, held: np.ndarray) -> np.ndarray:
    """g."""
    g = u - D.T @ np.where(support, v, 0.0)
    g[held] = 0.0
    return g


def minimise(
    problem: Problem,
    part: Part,
    system: System,
    u: np.ndarray,
    v: np.ndarray,
    tol: float,
    aimed: np.ndarray | None = None,
) -> Minimum:
    """Newton's method from u, with v = e - D u, until |g| is at most tol times the problem's scale.

    If H is ill-conditioned, a small gradient may hide a large error in u.  So it takes one more step, unless the last
    one was a full step for the present support set, which is exact.

    Parameters
    ----------
    problem
        The problem over all examples.
    part
        The examples to train on and the features to hold.
    system
        Solves for directions; it keeps its knowledge of the Hessian from one support set to the next.
    u, v
        The start, with u = 0 in the held features.
    tol
        Stopping tolerance, relative to the problem's scale.
    aimed
        The support set for which u is already a full Newton step.  None: there is none.
    """
    D, is_last, steps, status = problem.D, False, 0, CONVERGED
    while True:
        support = (v > 0.0) & part.trained
        g = gradient(D, u, v, support, part.held)
        is_small = bool(np.linalg.norm(g) <= tol * problem.scale)
        is_exact = aimed is not None and np.array_equal(aimed, support)
        if is_small and (is_exact or is_last):
            break
        if steps == MAX_NEWTON_STEPS:
            status = MAX_ITERATIONS
            break
        z, Dz = direction(system, D, support, g, part.held)
        step = _armijo(u, v, z, Dz, g, part.trained)
        if step == 0.0:
            status = NO_PROGRESS
            break
        u, v, steps = u + step * z, v - step * Dz, steps + 1
        is_last, aimed = is_small, support if step == 1.0 else None
    return Minimum(u, v, support, steps, CONVERGED if is_small else status)


def direction(
    system: System, D: np.ndarray, support: np.ndarray, g: np.ndarray, held: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """z and D z.  If the residual stays large, the system is made anew; if it still does, `Cholesky` solves."""
    system.move(support)
    z, Dz, is_good = _refined(system, D, support, g, held)
    if not is_good and not system.is_fresh:
        system.refresh()
        z, Dz, is_good = _refined(system, D, support, g, held)
    if not is_good and not isinstance(system, Cholesky):
        last = Cholesky(system.rows, held)
        last.move(support)
        z, Dz, _ = _refined(last, D, support, g, held)
    return z, Dz


def _refined(
    system: System, D: np.ndarray, support: np.ndarray, g: np.ndarray, held: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool]:
    """z and D z, refined once if the residual H z + g is large; and whether the residual is small in the end."""
    z, small = -system.solve(g), RESIDUAL * np.linalg.norm(g)
    for is_refined in (False, True):
        Dz = D @ z
        residual = z + D.T @ np.where(support, Dz, 0.0) + g
        residual[held] = 0.0
        if is_refined or np.linalg.norm(residual) <= small:
            break
        z -= system.solve(residual)
    return z, Dz, bool(np.linalg.norm(residual) <= small)


def _armijo(u: np.ndarray, v: np.ndarray, z: np.ndarray, Dz: np.ndarray, g: np.ndarray, trained: np.ndarray) -> float:
    """The largest step of 1, 1/2, 1/4, .. that decreases f; 0 if none does.  Armijo's share is what rounding allows."""
    slope, before = float(g @ z), objective(u, v, trained)
    if not slope < 0.0:
        return 0.0
    if -slope <= DUST * before:  # a smaller decrease cannot be seen
        return 1.0
    step = 1.0
    while step > DUST:
        if objective(u + step * z, v - step * Dz, trained) <= before + DUST * step * slope:
            return step
        step *= 0.5
    return 0.0
