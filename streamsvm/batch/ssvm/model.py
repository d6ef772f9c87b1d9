"""The smooth support vector machine: the squared hinge, with the bias regularised like every weight.

    minimise  f(b, w) = 1/2 (b^2 + w'w) + 1/2 sum_i c_i (1 - y_i (x_i'w + b))_+^2,       c_i = C times the weight of i

Unlike the problem of `smo`, it has no constraints and is strictly convex.  Newton's method reaches its minimum in a few
steps.

With a kernel, an example's features are its kernel values with the examples of a *basis*.  The basis is all training
examples (the full kernel), or some of them drawn at random (the reduced kernel).  w'w stays the plain sum of squares.

With u = (b, w) and rows d_i = sqrt(c_i) y_i (1, x_i) this is the problem of `newton`:

    f = 1/2 u'u + 1/2 |(e - D u)_+|^2,   g = u - D_S' (e - D u)_S,   H = I + D_S' D_S,   e_i = sqrt(c_i)

S are the support vectors, with y_i f(x_i) < 1.  The Newton direction needs H^-1: `systems` has four ways to it.
`removal` has the minimum without some examples, for cross-validation (`streamsvm.validation.smooth`).

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
c         cost of a squared loss, C times the weight                       (n,) float64
b, w      bias, weights of features or of basis examples                   float, (p-1,) float64
D, e, u,  see `newton`
v, g, S, z
========= ================================================================ ================

Sources: Lee, Mangasarian, "SSVM: A Smooth Support Vector Machine for Classification", for the objective, Newton's
method with Armijo's rule and kernel values as features; Tseng, Lee, "Rank-r Updating Techniques for Fast Exact
Cross-Validation", for the limit in which the smoothing is the squared hinge itself, and for the updates.  Deviations
from the latter:

- Its gradient (2) lacks the factor c of the loss, which finite differences show.
- Each example has its own cost, folded into its row like its label.
- Its nonlinear cross-validation leaves the examples of a fold out as rows only, and skips folds without support
  vectors.  Here a left-out example leaves the basis too: its column goes as well.  No w_j is 0, so no fold can be
  skipped.  With a reduced kernel, whose basis is drawn once, skipping is exact, as for linear models.
"""

import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from streamsvm.batch.ssvm.newton import Minimum, Problem, minimise
from streamsvm.batch.ssvm.systems import Cholesky, InverseOfH, InverseOnS, Recomputed, Rows, System
from streamsvm.core import arguments
from streamsvm.core.inputs import dense, finite_matrix_of, in_columns, narrow, squared_lengths
from streamsvm.core.kernels import LINEAR_KIND, Kernel, kernel_values, make_kernel

SOLVERS: dict[str, type[System]] = {
    "newton": Recomputed,
    "strategy-1": InverseOfH,
    "strategy-2": InverseOnS,
    "cholesky": Cholesky,
}
DEFAULT_SOLVER = "cholesky"  # of "auto", and after "shared"
PARAMETERS = ("C", "kernel", "gamma", "degree", "coef0", "reduced", "solver", "tol", "seed")


class Prepared(NamedTuple):
    """A model's problem over some examples.

    Attributes
    ----------
    problem
        The problem to minimise.
    basis
        Basis examples, (m, d); None for a linear kernel.
    classes
        The user's names of the negative and the positive class.
    n_features
        Number of features of an example.
    columns
        Those that a linear problem is about; None: all.
    """

    problem: Problem
    basis: Any
    classes: np.ndarray
    n_features: int
    columns: np.ndarray | None = None


class SmoothSVM:
    """A classifier by the squared hinge loss, linear or with a kernel.

    Parameters
    ----------
    C
        Weight of the losses; positive.
    kernel, gamma, degree, coef0
        The kernel, see `streamsvm.core.kernels.make_kernel`.
    reduced
        Size of the basis, drawn at random: a share above 0 and up to 1, or a whole number.  None: all examples.
    solver
        How Newton directions are found, see Notes.
    tol
        Stopping tolerance: the length of the gradient, relative to the sum of the examples' gradients at 0; positive.
    seed
        Seed for drawing the basis; a whole number, at least 0.

    Attributes
    ----------
    coef_, intercept_
        Weights of the features or of the basis examples, and the bias.
    classes_
        The two classes; the second one has positive decision values.
    basis_
        The basis examples; None for a linear model.
    support_
        Numbers of the support vectors, the examples with a loss.
    n_iter_
        Number of Newton steps.
    status_
        Why Newton's method stopped: ``"converged"``; ``"max_iterations"``, after 200 steps; or ``"no_progress"``, if no
        step decreased the objective, because `tol` is below the rounding.
    n_features_in_
        Number of features of an example.

    Notes
    -----
    ================ =================================================================================================
    solver           Newton's linear system
    ================ =================================================================================================
    ``"auto"``       ``"cholesky"``; in cross-validation ``"shared"``, unless the folds are few
    ``"shared"``     in cross-validation one factor for all folds, see `streamsvm.validation.smooth`; else
                     ``"cholesky"``
    ``"cholesky"``   over the features or the support vectors, whichever are fewer, factored for each step
    ``"strategy-1"`` the inverse over the features, updated by the support vectors that come and go
    ``"strategy-2"`` the inverse over the support vectors, updated likewise
    ``"newton"``     over the features, factored for each step
    ================ =================================================================================================

    All solvers end at the same minimum.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X**2).sum(axis=1) > 1.4
    >>> model = SmoothSVM(C=10.0, kernel="rbf", gamma=0.5).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.predict([[0.0, 0.0], [2.0, 2.0]])
    array([False,  True])
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: str = "linear",
        *,
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        reduced: float | int | None = None,
        solver: str = "auto",
        tol: float = 1e-12,
        seed: int = 0,
    ) -> None:
        self.C, self.kernel, self.gamma, self.degree, self.coef0 = C, kernel, gamma, degree, coef0
        self.reduced, self.solver, self.tol, self.seed = reduced, solver, tol, seed
        self._check()

    def _check(self) -> None:
        for name in ("C", "tol"):
            arguments.require_positive(name, getattr(self, name))
        arguments.require_count("seed", self.seed, 0)
        linear = make_kernel(self.kernel, self.gamma, self.degree, self.coef0).kind == LINEAR_KIND
        solvers = ("auto", "shared", *SOLVERS)
        if self.solver not in solvers:
            raise ValueError(f"solver={self.solver!r} is unknown; use one of {', '.join(map(repr, solvers))}")
        if self.reduced is None:
            return
        if linear:
            raise ValueError(f"reduced={self.reduced!r} needs a kernel; a linear model must have reduced=None")
        if isinstance(self.reduced, float | np.floating):
            if not 0.0 < self.reduced <= 1.0:
                raise ValueError(f"reduced={self.reduced!r} must be a share above 0 and up to 1, or a whole number")
        else:
            arguments.require_count("reduced", self.reduced, 1)

    # ------------------------------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SmoothSVM":
        """Learn from all examples at once.

        Parameters
        ----------
        X
            The examples as rows: a 2-D array, a SciPy sparse matrix or a frame of numbers.
        y
            Labels, (n,): bool, -1 and +1, 0 and 1, or any two classes, of which the second in order is the positive
            one.
        sample_weight
            Factor on C for each example, (n,) or one number; at least 0.  Default: 1.

        Raises
        ------
        ValueError, TypeError
            If an argument is out of its range, or all examples have one class.
        """
        prepared = self.prepare(X, y, sample_weight)
        problem = prepared.problem
        with problem.threads():
            minimum = self.minimum(problem, self.system(problem))
        if not minimum.converged:
            warnings.warn(
                f"Newton's method stopped ({minimum.status}) before tol={self.tol!r}; "
                "scale the features, or use a smaller C",
                RuntimeWarning,
                stacklevel=2,
            )
        return self.take(prepared, minimum)

    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        """The problem over these examples."""
        self._check()
        matrix = finite_matrix_of(X)
        n = matrix.shape[0]
        signs = arguments.signs_of(y, n)
        classes = np.unique(arguments.classes_of(y, n))
        if len(classes) != 2:
            raise ValueError(f"y holds {classes.tolist()}; there must be examples of two classes")
        costs = arguments.boxes_of(
            float(self.C), arguments.weights_of(sample_weight, n, "sample_weight"), np.ones(n), "sample_weight"
        )
        kernel = self._kernel
        if kernel.kind == LINEAR_KIND:
            used, columns = narrow(matrix)
            return Prepared(Problem(dense(used), signs, costs), None, classes, matrix.shape[1], columns)
        basis = matrix if self.reduced is None else matrix[self._drawn(n)]
        return Prepared(Problem(kernel_matrix(kernel, matrix, basis), signs, costs), basis, classes, matrix.shape[1])

    @property
    def _kernel(self) -> Kernel:
        return make_kernel(self.kernel, self.gamma, self.degree, self.coef0)

    def _drawn(self, n: int) -> np.ndarray:
        """Draw the numbers of the basis examples."""
        assert self.reduced is not None
        is_share = isinstance(self.reduced, float | np.floating)
        count = max(1, round(n * self.reduced)) if is_share else int(self.reduced)
        if count > n:
            raise ValueError(
                f"reduced={self.reduced!r} exceeds the {n} examples; it must be at most {n}, or a share up to 1"
            )
        return np.sort(np.random.default_rng(self.seed).choice(n, count, replace=False))

    def system(self, problem: Problem) -> System:
        """The solver of Newton directions."""
        return SOLVERS.get(self.solver, SOLVERS[DEFAULT_SOLVER])(Rows(problem.D))

    def minimum(self, problem: Problem, system: System) -> Minimum:
        """The minimum over all examples, from 0."""
        return minimise(problem, problem.part(), system, np.zeros(problem.D.shape[1]), problem.e.copy(), self.tol)

    def take(self, prepared: Prepared, minimum: Minimum) -> "SmoothSVM":
        """Become the model of this minimum."""
        self.intercept_, self._weights, self._columns = float(minimum.u[0]), minimum.u[1:], prepared.columns
        self.classes_, self.basis_, self.n_features_in_ = prepared.classes, prepared.basis, prepared.n_features
        self.support_, self.n_iter_ = np.flatnonzero(minimum.support), minimum.steps
        self.status_ = minimum.status
        self._fitted_kernel = self._kernel  # parameters that are set later are those of the next `fit`
        return self

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features or of the basis examples."""
        if self._columns is None:
            return self._weights
        coef = np.zeros(self.n_features_in_)
        coef[self._columns] = self._weights
        return coef

    # ----------------------------------------------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) of each example, (n,); positive for the second class."""
        if not hasattr(self, "intercept_"):
            raise RuntimeError("this SmoothSVM is not fitted; call fit() first")
        matrix = finite_matrix_of(X)
        if matrix.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {matrix.shape[1]} features; the model was fitted on {self.n_features_in_}")
        if self.basis_ is None:
            features = in_columns(matrix, self._columns)
        else:
            features = kernel_matrix(self._fitted_kernel, matrix, self.basis_)
        return np.asarray(features @ self._weights) + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """The class of each example, (n,)."""
        positive = self.decision_function(X) > 0.0
        return np.asarray(self.classes_[positive.astype(int)])

    def score(self, X: Any, y: Any) -> float:
        """The share of correct predictions."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    # ---------------------------------------------------------------------------------------- as scikit-learn wants it

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` is there for scikit-learn and changes nothing."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **parameters: Any) -> "SmoothSVM":
        """Change some of the parameters, for the next `fit`."""
        unknown = set(parameters) - set(PARAMETERS)
        if unknown:
            raise ValueError(f"unknown parameters {', '.join(sorted(unknown))}; SmoothSVM has {', '.join(PARAMETERS)}")
        for name, value in parameters.items():
            setattr(self, name, value)
        self._check()
        return self

    def __sklearn_tags__(self) -> SimpleNamespace:
        return SimpleNamespace(estimator_type="classifier", input_tags=SimpleNamespace(pairwise=False, sparse=True))

    def __repr__(self) -> str:
        return f"SmoothSVM({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"


# ------------------------------------------------------------------------------------------------------------ features


def kernel_matrix(kernel: Kernel, X: Any, Z: Any) -> np.ndarray:
    """k(x, z) for each row of X with each row of Z, in float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        sq_X, sq_Z = squared_lengths(X), squared_lengths(Z)
        Z, columns = narrow(Z)
        K = kernel_values(kernel, dense(in_columns(X, columns) @ Z.T), sq_Z, sq_X[:, None])
    if not np.isfinite(K).all():
        raise ValueError("X holds numbers whose kernel values overflow; scale the features")
    return K
