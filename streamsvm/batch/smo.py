"""SMO: the support vector machine over a fixed set of examples.

    maximise  W(alpha) = sum_i y_i alpha_i - 1/2 sum_ij alpha_i alpha_j k(x_i, x_j)
    subject to  sum_i alpha_i = 0,   lo_i <= alpha_i <= hi_i

Coefficients carry the signs of their labels, so lo_i = min(0, y_i C_i) and hi_i = max(0, y_i C_i).  The problem is
solved when no pair violates the optimality conditions by more than tol:

    max {g_i : alpha_i < hi_i} - min {g_j : alpha_j > lo_j} <= tol,       g = y - K alpha

The bias is the mean gradient of the free examples, lo < alpha < hi, and f(x_i) = y_i - g_i + bias.

Every example has its own C.  One with C = 0 is *held out*: its alpha stays 0, but its gradient is kept, and with it the
decision value of a model that has not seen it.  Any feasible alpha is a start.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
alpha     coefficients with their labels' signs                            (n,) float64
g         gradient y - K alpha, of held-out examples as well               (n,) float64
y         labels, -1 or +1                                                 (n,) float64
lo, hi    box                                                              (n,) float64
K_i       kernel row, see `kernels`                                          (n,) float64
bias      the constant b of f(x) = sum_i alpha_i k(x_i, x) + b             float
view      the active examples and their rows, see `steps`                  (m,) arrays
========= ================================================================ ================

Four techniques make it fast.  None of them changes the solution:

- *Second-order working sets* and *planning-ahead steps*, see `steps.pairs`.
- *Newton steps* on the free set, see `steps.newton`.
- *Shrinking*: bounded examples that cannot be part of a violating pair now are set aside.  The arrays and rows of the
  others become contiguous.  When their problem is solved, the gradients of all examples are brought up to date.
- *Kernel rows on demand*, shared by all problems over the same examples, see `kernels.cache`.

`solve` and `train_anew` start large problems from a solution in single precision, see `working_set.single_precision`.

Sources: Fan, Chen, Lin, "Working set selection using second order information for training support vector machines",
JMLR 6 (2005), WSS 2, and its stopping condition; Chang, Lin, "LIBSVM: a library for support vector machines", section
4, for shrinking; Glasmachers, "The Planning-Ahead SMO Algorithm".  Deviations:

- The signed form: boxes carry the labels, and a pair step has no cases.
- A shrunk problem is solved to tol before all examples come back, and again if necessary.  LIBSVM also brings them back
  when it has reached 10 tol.
- Kernel rows are float64.  With LIBSVM's float32 rows, the objective at C = 1e6 is 3e-4 off at tol = 1e-3.
"""

import warnings
from typing import Any

import numpy as np

from streamsvm.batch.costs import WORTH
from streamsvm.batch.kernels.cache import NO_ROWS, Cache
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.batch.options import DEFAULTS, SolverOptions
from streamsvm.batch.problem import penalties, settled, solution_of
from streamsvm.batch.solution import CONVERGED, MAX_ITERATIONS, NO_PROGRESS, Solution
from streamsvm.batch.steps.newton import MAX_FREE, Newton
from streamsvm.batch.steps.pairs import (
    BOTTOM,
    KINDS,
    PLANNED,
    STEPS,
    TOP,
    View,
    iterate,
    kernel_among,
    subtract_from,
    subtract_rows,
)
from streamsvm.batch.working_set import single_precision
from streamsvm.batch.working_set.members import AT_ONCE
from streamsvm.core import arguments
from streamsvm.core.kernels import make_kernel
from streamsvm.core.rounding import SUM_ROUNDING

MIN_CHUNK = 200  # pair steps before the first look at the free set, which a start from 0 has not yet

# ------------------------------------------------------------------------------------------------------- the active set


class _Training:
    """One problem while it is being solved."""

    def __init__(self, store: RowStore, lo, hi, alpha, g, options: SolverOptions) -> None:
        self.store, self.options = store, options
        self.lo, self.hi, self.alpha, self.g = lo, hi, alpha, g
        self.outer: list[tuple[np.ndarray, np.ndarray]] = []  # the ids set aside at each shrinking, and alpha then
        self.tally = np.zeros(KINDS, np.int64)
        self.newton = Newton()
        self.view = self._view_of_all()

    def _view_of_all(self) -> View:
        up, down = penalties(self.alpha, self.lo, self.hi)
        every = np.arange(len(self.alpha))
        diagonal = self.store.diagonal
        return View(every, self.alpha, self.g, self.lo, self.hi, up, down, diagonal, np.empty(2), NO_ROWS, True)

    def _view_of(self, ids: np.ndarray, short: Cache) -> View:
        alpha, lo, hi = self.alpha[ids], self.lo[ids], self.hi[ids]
        up, down = penalties(alpha, lo, hi)
        diagonal = self.store.diagonal[ids]
        return View(ids, alpha, self.g[ids], lo, hi, up, down, diagonal, np.empty(2), short, False)

    @property
    def violation(self) -> float:
        return float(self.view.extremes[TOP] - self.view.extremes[BOTTOM])

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.view.alpha, self.view.g, self.view.lo, self.view.hi

    @property
    def max_free(self) -> int:
        """The largest free set whose rows fit into the cache."""
        cache = self.store.data.cache if self.view.whole else self.view.short
        return min(MAX_FREE, len(cache.rows))

    def kernel_among(self, places: np.ndarray) -> np.ndarray:
        K = np.empty((len(places), len(places)))
        kernel_among(self.store.data, self.view, places, K)
        return K

    def move(self, places: np.ndarray, alpha: np.ndarray) -> None:
        view = self.view
        change = alpha - view.alpha[places]
        moved = change != 0.0
        subtract_rows(self.store.data, view, places[moved], change[moved])
        view.alpha[places] = alpha
        view.up[places], view.down[places] = penalties(alpha, view.lo[places], view.hi[places])

    def shrink(self) -> None:
        """Set aside the active examples that cannot be in a violating pair, if they are many."""
        view = self.view
        may_rise = (view.up == 0.0) & (view.g >= view.extremes[BOTTOM])
        active = may_rise | ((view.down == 0.0) & (view.g <= view.extremes[TOP]))
        if np.count_nonzero(active) > WORTH * len(active):
            return
        self._write_back()
        self.outer.append((view.members[~active], self.alpha.copy()))
        ids = view.members[active]
        self.view = self._view_of(ids, self.store.short_rows(len(ids)))

    def _write_back(self) -> None:
        if not self.view.whole:
            self.alpha[self.view.members] = self.view.alpha
            self.g[self.view.members] = self.view.g

    def grow_back(self) -> None:
        """Make all examples active again, with their gradients brought up to date."""
        if self.view.whole:
            return
        self._write_back()
        for ids, alpha in self.outer:
            change = self.alpha - alpha
            moved = np.flatnonzero(change)
            subtract_from(self.store.data, moved, change[moved], ids, self.g)
        self.outer.clear()
        self.view = self._view_of_all()

    def _settle(self) -> None:
        alpha = settled(self.alpha, self.lo, self.hi)
        if np.array_equal(alpha, self.alpha):
            return
        self.alpha[:] = alpha
        self.view = view = self._view_of_all()
        view.extremes[[TOP, BOTTOM]] = (self.g + view.up).max(), (self.g + view.down).min()

    def run(self) -> str:
        """Solve; return why the solver stopped."""
        tol, limit, rule = self.options.tol, self.options.limit(len(self.alpha)), self.options.rule
        done_since, chunk = 0, MIN_CHUNK
        while True:
            chunk = min(chunk, limit - int(self.tally[STEPS]))
            done = iterate(self.store.data, self.view, rule, chunk, self.tally)
            done_since += done
            if not self.violation > tol:
                if self.view.whole:
                    self._settle()
                    return CONVERGED
                self.grow_back()
                continue
            stuck, at_limit = done < chunk, bool(self.tally[STEPS] >= limit)
            if stuck or at_limit:
                whole = self.view.whole
                self.grow_back()
                if whole or at_limit:
                    iterate(self.store.data, self.view, rule, 0, self.tally)  # for the extremes
                    return CONVERGED if not self.violation > tol else MAX_ITERATIONS if at_limit else NO_PROGRESS
                continue
            if self.options.shrinking and done_since >= min(len(self.view.g), AT_ONCE):
                self.shrink()
                done_since = 0
            chunk = AT_ONCE
            if self.options.newton:
                self.newton.after(self, done)
                chunk = min(chunk, self.newton.wait(self))


# -------------------------------------------------------------------------------------------------------------- solving


def train(
    store: RowStore,
    y: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    alpha: np.ndarray | None = None,
    g: np.ndarray | None = None,
    options: SolverOptions = DEFAULTS,
) -> Solution:
    """Solve a problem over the examples of a row store, from any feasible start.

    Parameters
    ----------
    store
        The examples, with the kernel rows of earlier problems over them.
    y
        Labels -1.0 and +1.0, (n,).
    lo, hi
        Box of each coefficient, (n,); both are 0 for a held-out example.
    alpha
        Start, (n,): inside the box, with sum 0.  Default: 0.
    g
        y - K alpha if it is known, (n,); it is not checked.  Default: computed from the rows of the non-zero alpha.
    options
        How to solve; `cache_mb` and `device` are the store's.

    Raises
    ------
    ValueError
        If the start is not feasible.
    """
    rows_before = store.rows_computed
    store.prepare()
    lo, hi = np.ascontiguousarray(lo, np.float64), np.ascontiguousarray(hi, np.float64)
    y = np.asarray(y, np.float64)
    alpha = _feasible(np.zeros(len(y)) if alpha is None else alpha, lo, hi)
    g = _gradient(store, y, alpha) if g is None else np.array(g, np.float64)
    training = _Training(store, lo, hi, alpha, g, options)
    status = training.run()
    steps, planned = training.tally[[STEPS, PLANNED]].tolist()
    costs = steps, planned, training.newton.steps, store.rows_computed - rows_before
    return solution_of(store, y, lo, hi, alpha, g, status, *costs)


def train_anew(
    store: RowStore, y: np.ndarray, lo: np.ndarray, hi: np.ndarray, options: SolverOptions = DEFAULTS
) -> Solution:
    """As `train`, from 0; by a start from single precision where that saves time."""
    if not single_precision.pays(store, lo, hi, options):
        return train(store, y, lo, hi, options=options)
    return refined(single_precision.start(store, y, lo, hi, options), options)


def refined(known: Solution, options: SolverOptions = DEFAULTS) -> Solution:
    """As `train`, from what single precision has found, with its gradients in double precision."""
    rest = options.left(len(known.y), known.iterations)
    return known.then(train(known.store, known.y, known.lo, known.hi, known.dual_coef, known.g, rest))


def _feasible(alpha: Any, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """A copy of the start, cut to its box where rounding has left it."""
    alpha = np.array(alpha, np.float64)
    if alpha.shape != lo.shape:
        raise ValueError(f"start has shape {alpha.shape}; {len(lo)} coefficients are needed")
    inside = np.clip(alpha, lo, hi)
    rounding = SUM_ROUNDING * (np.abs(alpha).sum() + np.finfo(float).tiny)
    outside = np.abs(alpha - inside).sum()
    if not (outside <= rounding and abs(inside.sum()) <= rounding):
        raise ValueError(
            f"start is not feasible: it is outside its box by {outside:.3g} and sums to {alpha.sum():.3g}; "
            "every coefficient must be inside its box, and their sum 0"
        )
    return inside


def _gradient(store: RowStore, y: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    support, g = np.flatnonzero(alpha), y.copy()
    subtract(store, support, alpha[support], g)
    return g


def subtract(store: RowStore, ids: np.ndarray, change: np.ndarray, g: np.ndarray) -> None:
    """Bring the gradients g of all examples up to date with a change of some coefficients."""
    store.fill(ids)
    subtract_rows(store.data, view_of(store, g), ids, change)


def view_of(store: RowStore, g: np.ndarray) -> View:
    """A view of all examples, for changes of g only."""
    return View(np.arange(len(g)), g, g, g, g, g, g, store.diagonal, np.empty(2), NO_ROWS, True)


def solve(
    X: Any,
    y: Any,
    C: float = 1.0,
    kernel: str = "rbf",
    *,
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 0.0,
    sample_weight: Any = None,
    held_out: Any = None,
    start: Any = None,
    options: SolverOptions = DEFAULTS,
) -> Solution:
    """Train a support vector machine on all examples but the held-out ones.

    Parameters
    ----------
    X
        The examples as rows: a 2-D array, a SciPy sparse matrix, a frame of numbers or a list of dicts.  Or a
        `RowStore`: then its kernel, cache and device are used, and those given here are not.
    y
        Labels, (n,): bool, -1 and +1, 0 and 1, or any two classes, of which the second in order is the positive one.
    C
        Weight of the losses, and the bound on a coefficient's size; positive.
    kernel, gamma, degree, coef0
        The kernel, see `streamsvm.core.kernels.make_kernel`.
    sample_weight
        Factor on C for each example, (n,) or one number; at least 0.  Default: 1.
    held_out
        Examples to leave out, as a mask (n,) or as numbers.  `Solution.decision_values` has their decision values too.
    start
        Signed coefficients to start from, (n,), such as another solution's `dual_coef`.  Default: 0, or for large
        problems a solution in single precision, see `streamsvm.batch.working_set.single_precision`.
    options
        How to solve: the tolerance, the size of the cache, the device and more.

    Returns
    -------
    Solution
        The coefficients, the bias, decision values, and why the solver stopped.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range or of the wrong shape.

    Warns
    -----
    RuntimeWarning
        If the solver stopped before it reached its tolerance.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [False, False, True, True]
    >>> solution = solve(X, y, C=10.0, held_out=[3])
    >>> solution.status, solution.support
    ('converged', array([0, 1, 2]))
    >>> solution.decision_values > 0  # by a model that has not seen the last example
    array([False, False, True, True])
    >>> solution.decision_function([[1.2], [1.8]]) > 0
    array([False, True])
    """
    arguments.require_positive("C", C)
    store = X if isinstance(X, RowStore) else _store(X, kernel, gamma, degree, coef0, options)
    signs = arguments.signs_of(y, len(store))
    weights = arguments.weights_of(sample_weight, len(store), "sample_weight")
    boxes = arguments.boxes_of(float(C), weights, np.ones(len(store)), "sample_weight")
    boxes[_mask(held_out, len(store))] = 0.0
    lo, hi = np.minimum(0.0, signs * boxes), np.maximum(0.0, signs * boxes)
    if start is None:
        solution = train_anew(store, signs, lo, hi, options)
    else:
        solution = train(store, signs, lo, hi, start, options=options)
    if not solution.converged:
        warnings.warn(
            f"the solver stopped ({solution.status}) after {solution.iterations} steps with a violation of "
            f"{solution.violation:.3g}, tol={options.tol!r}; scale the features, or use a larger tol or a smaller C",
            RuntimeWarning,
            stacklevel=2,
        )
    return solution


def _store(X: Any, kernel: str, gamma: float, degree: int, coef0: float, options: SolverOptions) -> RowStore:
    made = make_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0)
    return RowStore(X, made, options.cache_mb, options.device)


def _mask(held_out: Any, n: int) -> np.ndarray:
    """Which examples are held out, (n,) bool."""
    mask = np.zeros(n, bool)
    chosen = np.asarray([] if held_out is None else held_out)
    if chosen.dtype == bool:
        if chosen.shape != (n,):
            raise ValueError(f"held_out has shape {chosen.shape}; a mask must have one value for each of {n} examples")
        return chosen
    if chosen.size:
        if chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= n:
            raise ValueError(f"held_out={held_out!r} must be a mask, or numbers of examples from 0 to {n - 1}")
        mask[chosen] = True
    return mask
