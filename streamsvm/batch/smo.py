"""SMO: the support vector machine over a fixed set of examples.

    maximise  W(beta) = sum_i y_i beta_i - 1/2 sum_ij beta_i beta_j k(x_i, x_j)
    subject to  sum_i beta_i = 0,   lower_i <= beta_i <= upper_i

in the signed form beta_i = y_i alpha_i, so that lower_i = min(0, y_i C_i) and upper_i = max(0, y_i C_i).  It is solved
when no pair violates the optimality conditions by more than tol:

    max {g_i : beta_i < upper_i} - min {g_j : beta_j > lower_j} <= tol,       g = y - K beta

The bias is the mean gradient of the free examples, lower < beta < upper, and f(x_i) = y_i - g_i + bias.

Every example has its own C, and one with C = 0 is *held out*: it never moves, but its gradient is kept, and with it the
decision value of a model that was trained without it.  Any feasible beta is a start.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
beta      coefficients with their labels' signs                            (n,) float64
g         gradient y - K beta, of held-out examples as well                (n,) float64
y         labels, -1 or +1                                                 (n,) float64
lower,    box                                                              (n,) float64
upper
K_i       kernel row, see `rows`                                           (n,) float64
bias      the constant b of f(x) = sum_i beta_i k(x_i, x) + b               float
view      the active examples and their rows, see `steps`                  (m,) arrays
========= ================================================================ ================

What makes it fast, none of which changes where it ends:

- *Second-order working sets* and *planning-ahead steps*, see `steps`.
- *Newton steps* on the free set, see `newton`.
- *Shrinking*: bounded examples that cannot be part of a violating pair now are left out, and the others' arrays and
  rows made contiguous.  When these are solved, all gradients are brought up to date from the coefficients that changed.
- *Rows on demand*, shared by all problems over the same examples and kernel, see `rows`.

Sources: Fan, Chen, Lin, "Working set selection using second order information for training support vector machines",
JMLR 6 (2005), WSS 2, and the stopping condition stated there; section 4 of Chang, Lin, "LIBSVM: a library for support
vector machines", for what may be shrunk; Glasmachers, "The Planning-Ahead SMO Algorithm".  Deviations:

- The signed form, in which boxes carry the labels and a pair step has no cases.
- Shrunk problems are solved to tol before they grow back, and again if they must be; LIBSVM grows back at 10 tol too.
- Kernel rows are float64; LIBSVM's float32 rows end 3e-4 off in the objective at C = 1e6, while "converged at 1e-3".
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsvm.batch.newton import MAX_FREE, Newton
from streamsvm.batch.options import DEFAULTS, SolverOptions
from streamsvm.batch.rows import NO_ROWS, Cache, RowStore
from streamsvm.batch.steps import (
    BOTTOM,
    KINDS,
    PLANNED,
    STEPS,
    TOP,
    View,
    iterate,
    kernel_among,
    penalties,
    settled,
    subtract_from,
    subtract_rows,
)
from streamsvm.core import arguments
from streamsvm.core.expansion import FORBIDDEN
from streamsvm.core.kernels import make_kernel

MIN_CHUNK, MAX_CHUNK = 200, 1000  # pair steps between two looks at what may be shrunk
WORTH_SHRINKING = 0.8  # the share of active examples up to which it pays to move them together


@dataclass(frozen=True, eq=False)
class Solution:
    """A solved problem; every array has one value for each example, held out or not.

    Attributes
    ----------
    beta, g, bias
        See the symbol table of the module.
    y, lower, upper
        The problem.
    violation
        The largest violation by a pair, at most tol if `converged`.
    iterations
        Pair steps; `planned` of them were planned.
    newton_steps
        Linear systems solved on the free set.
    rows_computed, kernel_evaluations
        What this training added to the store, not what it found there.
    """

    store: RowStore
    y: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    beta: np.ndarray
    g: np.ndarray
    bias: float
    violation: float
    converged: bool
    iterations: int
    planned: int
    newton_steps: int
    rows_computed: int

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed in this training."""
        return self.rows_computed * len(self.beta)

    @property
    def objective(self) -> float:
        """W(beta) = beta'(y + g) / 2."""
        return 0.5 * float(self.beta @ (self.y + self.g))

    @property
    def decision_values(self) -> np.ndarray:
        """f(x_i) of every example: for the held-out ones that of a model which has not seen them."""
        return self.y - self.g + self.bias

    @property
    def alpha(self) -> np.ndarray:
        """Dual coefficients without their signs."""
        return np.abs(self.beta)

    @property
    def free(self) -> np.ndarray:
        """Which examples are free, lower < beta < upper."""
        return (self.lower < self.beta) & (self.beta < self.upper)

    @property
    def support(self) -> np.ndarray:
        """Numbers of the support vectors."""
        return np.flatnonzero(self.beta)

    def decision_function(self, X: Any) -> np.ndarray:
        """f(x) of new examples."""
        return self.store.expand(X, self.beta) + self.bias


# ------------------------------------------------------------------------------------------------------- the active set


class _Training:
    """One problem while it is being solved."""

    def __init__(self, store: RowStore, lower, upper, beta, g, options: SolverOptions) -> None:
        self.store, self.options = store, options
        self.lower, self.upper, self.beta, self.g = lower, upper, beta, g
        self.outer: list[tuple[np.ndarray, np.ndarray]] = []  # who left at each shrinking, and beta at that time
        self.tally = np.zeros(KINDS, np.int64)
        self.newton = Newton()
        self.view = self._view_of_all()

    def _view_of_all(self) -> View:
        up, down = penalties(self.beta, self.lower, self.upper)
        every = np.arange(len(self.beta))
        diagonal = self.store.diagonal
        return View(every, self.beta, self.g, self.lower, self.upper, up, down, diagonal, np.empty(2), NO_ROWS, True)

    def _view_of(self, ids: np.ndarray, short: Cache) -> View:
        beta, lower, upper = self.beta[ids], self.lower[ids], self.upper[ids]
        up, down = penalties(beta, lower, upper)
        diagonal = self.store.diagonal[ids]
        return View(ids, beta, self.g[ids], lower, upper, up, down, diagonal, np.empty(2), short, False)

    @property
    def violation(self) -> float:
        return float(self.view.extremes[TOP] - self.view.extremes[BOTTOM])

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.view.beta, self.view.g, self.view.lower, self.view.upper

    @property
    def max_free(self) -> int:
        """As many as there are rows for."""
        cache = self.store.data.cache if self.view.whole else self.view.short
        return min(MAX_FREE, len(cache.rows))

    def kernel_among(self, places: np.ndarray) -> np.ndarray:
        K = np.empty((len(places), len(places)))
        kernel_among(self.store.data, self.view, places, K)
        return K

    def move(self, places: np.ndarray, beta: np.ndarray) -> None:
        view = self.view
        change = beta - view.beta[places]
        moved = change != 0.0
        subtract_rows(self.store.data, view, places[moved], change[moved])
        view.beta[places] = beta
        view.up[places], view.down[places] = penalties(beta, view.lower[places], view.upper[places])

    def shrink(self) -> None:
        """Leave out the active examples that cannot be part of a violating pair, if they are many."""
        view = self.view
        may_rise = (view.up == 0.0) & (view.g >= view.extremes[BOTTOM])
        active = may_rise | ((view.down == 0.0) & (view.g <= view.extremes[TOP]))
        if np.count_nonzero(active) > WORTH_SHRINKING * len(active):
            return
        self._write_back()
        self.outer.append((view.members[~active], self.beta.copy()))
        ids = view.members[active]
        self.view = self._view_of(ids, self.store.short_rows(len(ids)))

    def _write_back(self) -> None:
        if not self.view.whole:
            self.beta[self.view.members] = self.view.beta
            self.g[self.view.members] = self.view.g

    def grow_back(self) -> None:
        """Make all examples active again, with their gradients brought up to date."""
        if self.view.whole:
            return
        self._write_back()
        for ids, beta in self.outer:
            change = self.beta - beta
            moved = np.flatnonzero(change)
            subtract_from(self.store.data, moved, change[moved], ids, self.g)
        self.outer.clear()
        self.view = self._view_of_all()

    def _settle(self) -> None:
        """Put coefficients that rounding has left beside a bound there.

        Where all others are at their bounds, one of them would be the only free one and decide on the bias.
        """
        beta = settled(self.beta, self.lower, self.upper, np.abs(self.beta).max(initial=0.0))
        if np.array_equal(beta, self.beta):
            return
        self.beta[:] = beta
        self.view = view = self._view_of_all()
        view.extremes[[TOP, BOTTOM]] = (self.g + view.up).max(), (self.g + view.down).min()

    def run(self) -> bool:
        """Solve; whether the tolerance was reached."""
        tol, limit, rule = self.options.tol, self.options.limit(len(self.beta)), self.options.rule
        done_since, chunk = 0, MIN_CHUNK
        while True:
            chunk = min(chunk, limit - int(self.tally[STEPS]))
            before = int(self.tally[STEPS])
            stuck = iterate(self.store.data, self.view, rule, chunk, self.tally) < chunk
            done = int(self.tally[STEPS]) - before
            done_since += done
            if not self.violation > tol:
                if self.view.whole:
                    self._settle()
                    return True
                self.grow_back()
                continue
            if stuck or self.tally[STEPS] >= limit:
                whole = self.view.whole
                self.grow_back()
                if whole or self.tally[STEPS] >= limit:
                    iterate(self.store.data, self.view, rule, 0, self.tally)  # for the extremes
                    return not self.violation > tol
                continue
            if self.options.shrinking and done_since >= min(len(self.view.g), MAX_CHUNK):
                self.shrink()
                done_since = 0
            chunk = MAX_CHUNK
            if self.options.newton:
                self.newton.after(self, done)
                chunk = min(chunk, self.newton.wait(self))


def _bias(training: _Training) -> float:
    """The mean gradient of the free examples, else half-way between the extremes, else the one there is."""
    free = (training.lower < training.beta) & (training.beta < training.upper)
    if free.any():
        return float(training.g[free].mean())
    top, bottom = training.view.extremes.tolist()
    found = [extreme for extreme in (top, bottom) if abs(extreme) < FORBIDDEN / 2]
    return float(np.mean(found)) if found else 0.0


# -------------------------------------------------------------------------------------------------------------- solving


def train(
    store: RowStore,
    y: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    beta: np.ndarray | None = None,
    g: np.ndarray | None = None,
    options: SolverOptions = DEFAULTS,
) -> Solution:
    """Solve a problem over the examples of a row store, from any feasible start.

    Parameters
    ----------
    store
        Kernel rows, which may come from and go to other problems over the same examples.
    y
        Labels -1.0 and +1.0, (n,).
    lower, upper
        Box of each coefficient; both are 0 for a held-out example.
    beta
        Start: within the box, sum 0.  Default: 0.
    g
        y - K beta, if it is known; it is not checked.  Default: computed from the rows of the non-zero beta.
    options
        How to solve.

    Raises
    ------
    ValueError
        If the start is not feasible.
    """
    rows_before = store.rows_computed
    store.prepare()
    lower, upper = np.ascontiguousarray(lower, np.float64), np.ascontiguousarray(upper, np.float64)
    y = np.asarray(y, np.float64)
    beta = _feasible(np.zeros(len(y)) if beta is None else beta, lower, upper)
    g = _gradient(store, y, beta) if g is None else np.array(g, np.float64)
    training = _Training(store, lower, upper, beta, g, options)
    converged = training.run()
    return Solution(
        store=store,
        y=y,
        lower=lower,
        upper=upper,
        beta=beta,
        g=g,
        bias=_bias(training),
        violation=max(0.0, training.violation),
        converged=converged,
        iterations=int(training.tally[STEPS]),
        planned=int(training.tally[PLANNED]),
        newton_steps=training.newton.steps,
        rows_computed=store.rows_computed - rows_before,
    )


def _feasible(beta: Any, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """A copy of the start, cut to its box where rounding has left it."""
    beta = np.array(beta, np.float64)
    if beta.shape != lower.shape:
        raise ValueError(f"beta has shape {beta.shape}; {len(lower)} coefficients are needed")
    inside = np.clip(beta, lower, upper)
    scale = np.abs(beta).sum() + np.finfo(float).tiny
    outside = np.abs(beta - inside).sum()
    if not (outside <= 1e-9 * scale and abs(inside.sum()) <= 1e-9 * scale):
        raise ValueError(
            f"beta is not a feasible start: it is outside its box by {outside:.3g} and sums to {beta.sum():.3g}"
        )
    return inside


def _gradient(store: RowStore, y: np.ndarray, beta: np.ndarray) -> np.ndarray:
    support, g = np.flatnonzero(beta), y.copy()
    if len(support) == 0:
        return g
    store.fill(support)
    everyone = _Training(store, beta, beta, beta, g, DEFAULTS).view
    subtract_rows(store.data, everyone, support, beta[support])
    return g


def solve(
    X: Any,
    y: Any,
    *,
    C: float,
    kernel: str = "rbf",
    gamma: float = 1.0,
    degree: int = 3,
    coef0: float = 0.0,
    weights: Any = None,
    alpha0: Any = None,
    held_out: Any = None,
    tol: float = 1e-3,
    planning: int = 2,
    over_step: float = 1.0,
    newton: bool = True,
    shrinking: bool = True,
    max_iterations: int | None = None,
    cache_mb: float = 256.0,
    device: str = "cpu",
) -> Solution:
    """Train a support vector machine on all examples but the held-out ones.

    Parameters
    ----------
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix, a frame of numbers, a list of dicts; or a `RowStore`,
        whose kernel and rows are then used (`kernel`, `gamma`, `degree`, `coef0`, `cache_mb` and `device` are not).
    y
        Labels: bool, -1 and +1, 0 and 1, or any two classes (of which the second in order is the positive one).
    C
        Weight of a loss; the bound on a coefficient.
    kernel, gamma, degree, coef0
        As for `streamsvm.LASVM`.
    weights
        Factor on C for each example.
    alpha0
        Start: dual coefficients without their signs, such as `Solution.alpha`.
    held_out
        Examples to train without, as a mask or as numbers; `Solution.decision_values` has their decision values too.
    tol, planning, over_step, newton, shrinking, max_iterations
        See `SolverOptions`.
    cache_mb
        Megabytes for kernel rows.
    device
        Where kernel rows are computed: see `streamsvm.batch.rows.RowStore`.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range, or of the wrong shape.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [False, False, True, True]
    >>> solution = solve(X, y, C=10.0, held_out=[3])
    >>> solution.decision_values > 0  # of a model that has not seen the last example
    array([False, False, True, True])
    >>> solution.decision_function([[1.2], [1.8]]) > 0
    array([False, True])
    """
    arguments.require_positive("C", C)
    options = SolverOptions(
        tol=tol,
        cache_mb=cache_mb,
        device=device,
        planning=planning,
        over_step=over_step,
        newton=newton,
        shrinking=shrinking,
        max_iterations=max_iterations,
    )
    store = X if isinstance(X, RowStore) else _store(X, kernel, gamma, degree, coef0, cache_mb, device)
    signs = signs_of(y, len(store))
    boxes = _boxes(float(C), weights, len(store))
    boxes[_mask(held_out, len(store))] = 0.0
    lower, upper = np.minimum(0.0, signs * boxes), np.maximum(0.0, signs * boxes)
    beta0 = None if alpha0 is None else signs * _alphas(alpha0, len(store))
    solution = train(store, signs, lower, upper, beta0, None, options)
    if not solution.converged:
        warnings.warn(
            f"the solver stopped after {solution.iterations} steps with a pair that violates by "
            f"{solution.violation:.3g}, tol={tol!r}; scale the features, or use a larger tol or a smaller C",
            RuntimeWarning,
            stacklevel=2,
        )
    return solution


def _store(X: Any, kernel: str, gamma: float, degree: int, coef0: float, cache_mb: float, device: str) -> RowStore:
    return RowStore(X, make_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0), cache_mb, device)


def signs_of(y: Any, n: int) -> np.ndarray:
    """Labels as an array (n,) of -1.0 and +1.0: bool, -1 and +1, 0 and 1, or any two classes in their order."""
    arguments.require_unmasked("y", y)
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape} for {n} examples; one label for each is needed")
    missing = [i for i, label in enumerate(labels.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"y has no label in row {missing[0]}: {labels[missing[0]]!r}")
    classes = np.unique(labels)
    if len(classes) == 2 and set(classes.tolist()) not in ({-1, 1}, {0, 1}):
        return np.where(labels == classes[1], 1.0, -1.0)
    return np.where(arguments.labels_of(None, labels, n), 1.0, -1.0)


def _boxes(C: float, weights: Any, n: int) -> np.ndarray:
    """The bounds on the coefficients without their signs, (n,)."""
    arguments.require_unmasked("weights", weights)
    w = np.asarray(1.0 if weights is None else weights, np.float64)
    if w.shape not in ((), (n,)):
        raise ValueError(f"weights has shape {w.shape}; one weight, or one for each of {n} examples, is needed")
    with np.errstate(over="ignore"):
        boxes = np.full(n, C) * w
    bad = ~(np.isfinite(boxes) & (boxes >= 0.0))
    if bad.any():
        worst = np.broadcast_to(w, (n,))[bad][0]
        raise ValueError(f"weights holds {worst}; weights are at least 0, and C times a weight is finite")
    return boxes


def _mask(held_out: Any, n: int) -> np.ndarray:
    """Which examples are held out, (n,) bool."""
    mask = np.zeros(n, bool)
    chosen = np.asarray([] if held_out is None else held_out)
    if chosen.dtype == bool:
        if chosen.shape != (n,):
            raise ValueError(f"held_out has shape {chosen.shape}; a mask has one value for each of {n} examples")
        return chosen
    if chosen.size:
        if chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= n:
            raise ValueError(f"held_out={held_out!r} is no mask, and not numbers of examples from 0 to {n - 1} either")
        mask[chosen] = True
    return mask


def _alphas(alpha0: Any, n: int) -> np.ndarray:
    alpha = np.asarray(alpha0, np.float64)
    if alpha.shape != (n,):
        raise ValueError(f"alpha0 has shape {alpha.shape}; one coefficient for each of {n} examples is needed")
    return alpha
