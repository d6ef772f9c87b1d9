"""`Solution`: what the solvers return, in double precision and in single precision."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

CONVERGED, MAX_ITERATIONS, MAX_PASSES, NO_PROGRESS = "converged", "max_iterations", "max_passes", "no_progress"
COSTS = ("iterations", "planned", "newton_steps", "rows_computed", "values_computed")  # of a training


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A solved problem; every array has one value for each example, held out or not.

    Attributes
    ----------
    store
        The examples and their kernel rows, a `RowStore`; in single precision, where the kernel values came from.
    y
        Labels, -1.0 and +1.0, (n,).
    lo, hi
        Box of each coefficient, (n,); both are 0 for a held-out example.
    dual_coef
        Coefficients with their labels' signs, (n,).
    g
        Gradient y - K dual_coef, (n,).
    bias
        The constant b of f(x) = sum_i dual_coef_i k(x_i, x) + b.
    violation
        The largest violation of the optimality conditions by a pair; at most `tol` if the solver converged.
    status
        Why the solver stopped, see Notes.
    iterations
        Number of pair steps, with those in single precision.
    planned
        Number of pair steps that were planned ahead.
    newton_steps
        Number of linear systems solved on the free set.
    rows_computed
        Number of kernel rows that this training added to the store.
    values_computed
        Number of kernel values that it computed besides these rows.
    n_passes
        Number of passes over all examples (`working_set` only).

    Notes
    -----
    ==================== ============================================================================================
    status               the solver stopped because
    ==================== ============================================================================================
    ``"converged"``      no pair violates the optimality conditions by more than `tol`
    ``"max_iterations"`` it had taken `max_iterations` pair steps
    ``"max_passes"``     it had passed over all examples `max_passes` times (`working_set` only)
    ``"no_progress"``    the best step was too small to change a coefficient in float64: `tol` is below the rounding
    ==================== ============================================================================================
    """

    store: Any
    y: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    dual_coef: np.ndarray
    g: np.ndarray
    bias: float
    violation: float
    status: str
    iterations: int = 0
    planned: int = 0
    newton_steps: int = 0
    rows_computed: int = 0
    values_computed: int = 0
    n_passes: int = 0

    @property
    def converged(self) -> bool:
        """Whether the solver reached its tolerance."""
        return self.status == CONVERGED

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values computed in this training."""
        return self.rows_computed * len(self.y) + self.values_computed

    @property
    def objective(self) -> float:
        """The dual objective, dual_coef'(y + g) / 2."""
        return 0.5 * float(self.dual_coef @ (self.y + self.g))

    @property
    def decision_values(self) -> np.ndarray:
        """f(x_i) of every example; the model has not seen the held-out ones."""
        return self.y - self.g + self.bias

    @property
    def free(self) -> np.ndarray:
        """Which coefficients are inside their boxes, (n,) bool."""
        return (self.lo < self.dual_coef) & (self.dual_coef < self.hi)

    @property
    def at_bound(self) -> np.ndarray:
        """Which support vectors are at their bounds, (n,) bool."""
        return (self.dual_coef != 0.0) & ((self.dual_coef == self.lo) | (self.dual_coef == self.hi))

    @property
    def support(self) -> np.ndarray:
        """Numbers of the support vectors."""
        return np.flatnonzero(self.dual_coef)

    def then(self, later: "Solution") -> "Solution":
        """A solution that was found from this one, with the costs of both."""
        return replace(later, **{name: getattr(self, name) + getattr(later, name) for name in COSTS})

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) of new examples, (len(X),)."""
        return self.store.expand(X, self.dual_coef) + self.bias

    def __repr__(self) -> str:
        return (
            f"Solution({self.status}: {len(self.y)} examples, {len(self.support)} support vectors, "
            f"objective={self.objective:.6g}, violation={self.violation:.2g}, iterations={self.iterations})"
        )


class Arrivals(NamedTuple):
    """Examples in the order in which they were learned, and f(x) of each by a model that had not seen it."""

    ids: np.ndarray
    decision_values: np.ndarray
