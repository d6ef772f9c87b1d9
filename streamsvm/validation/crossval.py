"""Cross-validation of the batch solver, over kernel rows that all folds share.

The examples that a split leaves out stay in the problem with an empty box, lower = upper = 0: they never move, but
their gradient is kept, and f(x_i) = y_i - g_i + bias is the decision value of a model that has not seen them.  So a
fold costs no matrix of its own and no second pass of the kernel.

Starts, which change how soon a fold is solved, and not where it ends, if the kernel is positive semi-definite (sigmoid
kernels are not, and have several optima):

- from the *full* solution, that of all examples (AVG, TOP, GREEDY, BEST, the exact path).  A fold whose left-out
  examples are no support vectors has that very solution, and nothing is trained;
- from the solution of the *fold before* (SIR, MIR, ATO);
- from 0.

`streamsvm.batch.seeding` makes them.

Every start is solved to the tolerance afterwards, which is its proof.
"""

import copy
import itertools
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from streamsvm.batch import Solution, SolverOptions, smo
from streamsvm.batch import seeding as seeds
from streamsvm.batch.path import Inverse
from streamsvm.batch.rows import RowStore
from streamsvm.core import arguments
from streamsvm.core.kernels import LINEAR_KIND, POLYNOMIAL_KIND, RBF_KIND, Kernel, make_kernel
from streamsvm.validation import folds as kinds
from streamsvm.validation.scores import greater_is_better, measure, needs_values

CERTAIN = 10.0  # tolerances by which a bound must hold before it decides a sign
DIGITS = 12  # of a score; what is beyond is rounding
MANY_FOLDS = 30  # of the size from which a seed always pays

CHAINS = ("reuse", "sir", "mir", "ato")  # from the fold before
FROM_FULL = ("skip", "avg", "top", "greedy", "best", "path")  # from the full solution
SEEDINGS = ("auto", "none", *CHAINS, *FROM_FULL)


class Fold(NamedTuple):
    """What became of one split.

    Attributes
    ----------
    test
        Numbers of the tested examples.
    decision_values
        Theirs, by the model that has not seen them; NaN where only the sign was asked for and a bound gave it.
    predictions
        Whether they are of the positive class, as bool.
    start
        The seed, ``"full"`` (of a smooth SVM), or ``"cold"``; if nothing was trained ``"copied"``,
        ``"training error"`` or ``"xi-alpha"``.
    events
        Of an exact path, also of one that was given up.
    iterations, newton_steps, rows_computed, kernel_evaluations
        What it took; rows that were there already are not counted.  The iterations of a smooth SVM are Newton steps.
    n_support
        Support vectors of the model.
    converged
        Whether the tolerance was reached.
    seconds
        By the wall clock.
    """

    test: np.ndarray
    decision_values: np.ndarray
    predictions: np.ndarray
    start: str
    events: int
    iterations: int
    newton_steps: int
    rows_computed: int
    kernel_evaluations: int
    n_support: int
    converged: bool
    seconds: float

    def __repr__(self) -> str:
        return (
            f"Fold({len(self.test)} tested, start={self.start!r}, iterations={self.iterations}, "
            f"n_support={self.n_support}, seconds={self.seconds:.3f})"
        )


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a cross-validation.

    Attributes
    ----------
    y
        Labels, (n,) bool.
    classes
        What the user calls False and True.
    folds
        The splits.
    per_fold
        A `Fold` for each.
    full
        The solution over all examples, if `cross_validate` started from it; None otherwise.  Of a smooth SVM, the
        model.
    first
        What that one took; its `test` is empty.
    seeding
        Which start was picked; of a smooth SVM, which solver.
    reason
        Why.
    seconds
        Of the whole cross-validation, by the wall clock; those of a fold are in `per_fold`.
    """

    y: np.ndarray
    classes: np.ndarray
    folds: kinds.Folds
    per_fold: list[Fold]
    full: Any
    first: Fold | None
    seeding: str
    reason: str
    seconds: float

    @property
    def iterations(self) -> int:
        """Pair steps, those of the full solution included."""
        return sum(part.iterations for part in self._parts)

    @property
    def newton_steps(self) -> int:
        """Linear systems solved, those of the full solution included."""
        return sum(part.newton_steps for part in self._parts)

    @property
    def rows_computed(self) -> int:
        """Kernel rows computed, by all processes."""
        return sum(part.rows_computed for part in self._parts)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed, by all processes."""
        return sum(part.kernel_evaluations for part in self._parts)

    @property
    def _parts(self) -> list[Fold]:
        return [*self.per_fold, *([] if self.first is None else [self.first])]

    @property
    def decision_values(self) -> np.ndarray:
        """The mean over the splits that test an example, (n,); NaN if there is none."""
        return self._mean([part.decision_values for part in self.per_fold])

    @property
    def predictions(self) -> np.ndarray:
        """The class of each example by the majority of the splits that test it, the first class in a tie, (n,).

        A ValueError is raised if an example is not tested.
        """
        share = self._mean([part.predictions for part in self.per_fold])
        if np.isnan(share).any():
            raise ValueError(f"no split tests {np.isnan(share).sum()} of the examples; see per_fold for the others")
        return np.asarray(self.classes[(share > 0.5).astype(int)])

    def _mean(self, values: list[np.ndarray]) -> np.ndarray:
        ids = np.concatenate([part.test for part in self.per_fold])
        total = np.bincount(ids, np.concatenate(values).astype(float), minlength=len(self.y))
        times = np.bincount(ids, minlength=len(self.y))
        return np.asarray(np.divide(total, times, out=np.full(len(self.y), np.nan), where=times > 0))

    @property
    def accuracy(self) -> float:
        """Share of right predictions over the tests of all splits."""
        y, f = self._tests
        return measure("accuracy", y, f)

    @property
    def g_mean(self) -> float:
        """Geometric mean of the recalls of both classes over the tests of all splits."""
        y, f = self._tests
        return measure("g_mean", y, f)

    @property
    def _tests(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and decision values of all tests; -1 and +1 where a bound decided."""
        return (
            np.concatenate([self.y[part.test] for part in self.per_fold]),
            np.concatenate([_known(part) for part in self.per_fold]),
        )

    def __repr__(self) -> str:
        return (
            f"Result({len(self.y)} examples, {len(self.per_fold)} splits, accuracy={self.accuracy:.4f}, "
            f"g_mean={self.g_mean:.4f}, seeding={self.seeding!r}, iterations={self.iterations}, "
            f"seconds={self.seconds:.3f})"
        )

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each test of an example.

        Its columns are split, example (its number), y, prediction (both as the user calls the classes) and
        decision_value (NaN where only the sign is known).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = {
            "split": np.repeat(np.arange(len(self.per_fold)), [len(part.test) for part in self.per_fold]),
            "example": np.concatenate([part.test for part in self.per_fold]),
            "decision_value": np.concatenate([part.decision_values for part in self.per_fold]),
        }
        predicted = np.concatenate([part.predictions for part in self.per_fold])
        names = {
            "y": self.classes[self.y[columns["example"]].astype(int)],
            "prediction": self.classes[predicted.astype(int)],
        }
        order = ("split", "example", "y", "prediction", "decision_value")
        return frame({name: (columns | names)[name] for name in order})

    def score(self, metric: Any) -> float:
        """A metric over the tests of all splits together, which a curve needs if folds are small.

        Parameters
        ----------
        metric
            See `streamsvm.validation.scores.measure`.
        """
        self._require_values(metric)
        return measure(metric, *self._tests)

    def scores(self, metric: Any = "accuracy") -> np.ndarray:
        """A metric for each split; the mean is what `sklearn.model_selection.cross_val_score` would give.

        Parameters
        ----------
        metric
            See `streamsvm.validation.scores.measure`.
        """
        self._require_values(metric)
        return np.array([measure(metric, self.y[part.test], _known(part)) for part in self.per_fold])

    def _require_values(self, metric: Any) -> None:
        if needs_values(metric) and any(np.isnan(part.decision_values).any() for part in self.per_fold):
            raise ValueError("decision values are missing; use leave_one_out(..., values=True)")


def frame(columns: dict[str, Any]) -> Any:
    """A pandas data frame of these columns; ImportError if there is no pandas."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame() needs pandas: pip install pandas") from None
    return pandas.DataFrame(columns)


def _known(part: Fold) -> np.ndarray:
    return np.where(np.isnan(part.decision_values), np.where(part.predictions, 1.0, -1.0), part.decision_values)


# ---------------------------------------------------------------------------------------------------------- one problem


class Problem(NamedTuple):
    """A support vector machine over all examples, of which each split leaves some out."""

    store: RowStore
    y: np.ndarray  # -1.0 and +1.0
    lower: np.ndarray
    upper: np.ndarray
    options: SolverOptions

    def boxes_without(self, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Boxes in which these examples are held out."""
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[out] = upper[out] = 0.0
        return lower, upper

    def solve(self, out: np.ndarray, beta: np.ndarray | None = None, g: np.ndarray | None = None) -> Solution:
        """Train without these examples."""
        return smo.train(self.store, self.y, *self.boxes_without(out), beta, g, self.options)


NOBODY = np.zeros(0, np.int64)
HOPELESS = 1000  # pair steps per example for a split, where twenty times as many did not solve the full problem


class Plan(NamedTuple):
    """How the folds are to be solved; what a worker needs."""

    problem: Problem
    folds: kinds.Folds
    full: Solution | None
    seeding: str  # but "auto"
    inverse: Inverse | None  # for "path"
    max_events: int | None
    values: bool
    first: Fold | None  # the outcome of the first split, if that is known


def plan_of(
    problem: Problem,
    folds: kinds.Folds,
    full: Solution | None,
    seeding: str,
    values: bool = True,
    first: Fold | None = None,
    choice: seeds.Choice | None = None,
) -> tuple[Plan, str]:
    """The plan, and the reason why its seeding was picked; "auto" needs the full solution."""
    reason, max_events, inverse = "as asked for", None, None
    if full is not None and seeding == "auto":
        choice = seeds.choose(full, folds.left_out) if choice is None else choice
        seeding, reason, max_events = choice.seed, choice.reason, choice.max_events
        seeding = "skip" if seeding == "cold" else seeding  # the full solution is there
    if full is not None and seeding == "path":
        inverse = seeds.exact.inverse_of(full)
        if inverse is None:
            seeding, reason = "best", f"{reason}; but no path can begin at this solution"
    return Plan(problem, folds, full, seeding, inverse, max_events, values, first), reason


def prepared(problem: Problem, folds: kinds.Folds, seeding: str, values: bool) -> tuple[Plan, Fold | None, str]:
    """The plan, what its full solution took, and the reason why its seeding was picked."""
    require_seeding(seeding)
    effective = seeds.choice.effective_folds(folds.n, folds.left_out)
    if seeding == "auto" and effective <= seeds.choice.WORTHLESS + 0.5:
        reason = f"splits leave out {1.0 / effective:.0%} of the examples: no seed is better than 0 then"
        return plan_of(problem, folds, None, "none", values)[0], None, reason
    known, outcome, choice = None, None, None
    if seeding == "auto" and effective < MANY_FOLDS:
        known, outcome = _first_split(problem, folds)
        choice = seeds.choose(known, folds.left_out)
        if choice.seed == "cold":
            return plan_of(problem, folds, None, "none", values, outcome)[0], None, choice.reason
    full, took = (None, None) if seeding in ("none", *CHAINS) else full_of(problem, known)
    if full is not None and not full.converged:
        problem = problem._replace(options=replace(problem.options, max_iterations=HOPELESS * max(100, folds.n)))
    plan, reason = plan_of(problem, folds, full, seeding, values, outcome, choice)
    return plan, took, reason


def _first_split(problem: Problem, folds: kinds.Folds) -> tuple[Solution, Fold]:
    """The first split from 0: it shows whether a seed will pay, and costs nothing if none does."""
    begin = time.perf_counter()
    solution = problem.solve(folds.left_out[0])
    outcome = outcome_of(solution, folds.tests[0], "cold", solution.rows_computed)
    return solution, outcome._replace(seconds=time.perf_counter() - begin)


def full_of(problem: Problem, known: Solution | None = None) -> tuple[Solution, Fold]:
    """The solution over all examples, from that of a split if one is known, and what it took."""
    begin, rows = time.perf_counter(), problem.store.rows_computed
    if known is None:
        start, full = "cold", problem.solve(NOBODY)
    else:
        entering = np.flatnonzero((known.lo == known.hi) & (problem.lower < problem.upper))
        reused = seeds.chains.reuse(known, NOBODY, entering, problem.lower, problem.upper)
        start, full = "reuse", seeds.solve_from(known, reused, problem.lower, problem.upper, problem.options)
    took = outcome_of(full, NOBODY, start, problem.store.rows_computed - rows)
    return full, took._replace(seconds=time.perf_counter() - begin)


def require_seeding(seeding: str) -> None:
    """Raise a ValueError if there is no such seeding."""
    if seeding not in SEEDINGS:
        raise ValueError(f"seeding={seeding!r} is unknown; use one of {', '.join(map(repr, SEEDINGS))}")


def run(plan: Plan, splits: range) -> Iterator[Fold]:
    """Solve some of the splits, one after the other."""
    previous: Solution | None = None
    for i in splits:
        if i == 0 and plan.first is not None:
            yield plan.first
            continue
        test, out = plan.folds.tests[i], plan.folds.left_out[i]
        begin, before = time.perf_counter(), plan.problem.store.rows_computed
        outcome = _without_training(plan, test, out)
        if outcome is None:
            start, events, previous = _trained(plan, out, previous)
            outcome = outcome_of(previous, test, start, plan.problem.store.rows_computed - before)._replace(
                events=events
            )
        yield outcome._replace(seconds=time.perf_counter() - begin)


def _trained(plan: Plan, out: np.ndarray, before: Solution | None) -> tuple[str, int, Solution]:
    """Where the training started, the events of a path, and the solution."""
    problem, source = plan.problem, before if plan.seeding in CHAINS else plan.full
    lower, upper = problem.boxes_without(out)
    if source is not None and source is plan.full and not source.dual_coef[out].any():
        start = seeds.Start(
            source.dual_coef, source.g, "full", 0, 0
        )  # without free examples its bias is to be found anew
    elif source is None or plan.seeding in ("none", "skip"):
        return "cold", 0, problem.solve(out)
    else:
        start = _seeded(plan, source, lower, upper)
    return start.seed, start.events, seeds.solve_from(source, start, lower, upper, problem.options)


def _seeded(plan: Plan, source: Solution, lower: np.ndarray, upper: np.ndarray) -> seeds.Start:
    trained, trained_before = lower < upper, source.lo < source.hi
    leaving, entering = np.flatnonzero(trained_before & ~trained), np.flatnonzero(trained & ~trained_before)
    if plan.inverse is not None:
        return seeds.exact.path(source, leaving, entering, lower, upper, plan.inverse, plan.max_events)
    return seeds.SEEDS[plan.seeding](source, leaving, entering, lower, upper)


def outcome_of(solution: Solution, test: np.ndarray, start: str, rows: int) -> Fold:
    """What became of a split that was trained."""
    f = solution.decision_values[test]
    return Fold(
        test=test,
        decision_values=f,
        predictions=f > 0.0,
        start=start,
        events=0,
        iterations=solution.iterations,
        newton_steps=solution.newton_steps,
        rows_computed=rows,
        kernel_evaluations=rows * len(solution.y),
        n_support=len(solution.support),
        converged=solution.converged,
        seconds=0.0,
    )


def _without_training(plan: Plan, test: np.ndarray, out: np.ndarray) -> Fold | None:
    """The outcome, if the full solution tells it."""
    full = plan.full
    if full is None:
        return None
    if full.free.any() and not full.dual_coef[out].any():
        f = full.y[test] - full.g[test] + full.bias
        return _untrained(test, f, f > 0.0, "copied", full)
    if plan.values or len(test) != 1 or len(out) != 1 or not _is_positive(plan.problem.store.kernel):
        return None
    return _by_bounds(full, int(test[0]), test, plan)


def _is_positive(kernel: Kernel) -> bool:
    """Whether its matrices are positive semi-definite, as the bounds need."""
    return kernel.kind in (RBF_KIND, LINEAR_KIND) or (kernel.kind == POLYNOMIAL_KIND and kernel.coef0 >= 0.0)


def _by_bounds(full: Solution, i: int, test: np.ndarray, plan: Plan) -> Fold | None:
    """The leave-one-out prediction of a support vector, where the full solution bounds it.

    An error on an example that was trained on is one without it too: its loss cannot fall when it is left out.  And if
    2 alpha R^2 + xi < 1, where R^2 bounds k(x, x) - k(x, z), it is predicted right without it (Joachims, "Estimating
    the generalization performance of an SVM efficiently"; it assumes that some support vector stays free).
    """
    tol = CERTAIN * plan.problem.options.tol
    margin = float(full.y[i] * (full.y[i] - full.g[i] + full.bias))
    if margin < -tol:
        wrong = np.array([full.y[i] < 0.0])
        return _untrained(test, np.array([np.nan]), wrong, "training error", full)
    largest = float(plan.problem.store.diagonal.max())
    R2 = largest if plan.problem.store.kernel.kind == RBF_KIND else 2.0 * largest
    if np.count_nonzero(full.free) > 2 and 2.0 * abs(full.dual_coef[i]) * R2 + max(0.0, 1.0 - margin) < 1.0 - tol:
        return _untrained(test, np.array([np.nan]), np.array([full.y[i] > 0.0]), "xi-alpha", full)
    return None


def _untrained(test: np.ndarray, f: np.ndarray, predictions: np.ndarray, why: str, full: Solution) -> Fold:
    return Fold(test, f, predictions, why, 0, 0, 0, 0, 0, len(full.support), full.converged, 0.0)


# ---------------------------------------------------------------------------------------------------------- in parallel


def in_processes(work: Any, tasks: list[Any], n_jobs: int | None) -> Iterator[Any]:
    """The results of work(task) in the order of the tasks, by joblib's workers.

    Parameters
    ----------
    work
        A function of a module.
    tasks
        Its argument, task by task.
    n_jobs
        How many workers, as for `joblib.Parallel`.
    """
    joblib = joblib_for(n_jobs)
    yield from joblib.Parallel(n_jobs=n_jobs, return_as="generator")(joblib.delayed(work)(task) for task in tasks)


def in_parts(count: int, parts: int) -> list[range]:
    """The numbers up to `count` as consecutive ranges of about equal length, none of them empty."""
    bounds = np.linspace(0, count, min(parts, count) + 1).astype(int).tolist()
    return [range(a, b) for a, b in itertools.pairwise(bounds)]


def workers(n_jobs: int | None) -> int:
    """How many workers there are to be; 1: none but this process."""
    if n_jobs is not None and (not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be a whole number but 0, or None for joblib's own choice")
    return 1 if n_jobs == 1 else int(joblib_for(n_jobs).effective_n_jobs(n_jobs))


def joblib_for(n_jobs: int | None) -> Any:
    """joblib, or an error that says what needs it."""
    try:
        import joblib
    except ImportError:
        raise ImportError(
            f"n_jobs={n_jobs!r} needs joblib: pip install 'streamsvm[parallel]'; n_jobs=1 does not"
        ) from None
    return joblib


def _run_chunk(task: tuple[Plan, range]) -> list[Fold]:
    """Solve some splits in a worker, over kernel rows of its own: threads must not share them."""
    plan, splits = task
    store = copy.copy(plan.problem.store)
    full = None if plan.full is None else replace(plan.full, store=store)
    inverse = plan.inverse
    if inverse is not None:
        inverse = inverse._replace(workspace=_square(len(inverse.members) + seeds.exact.ROOM))
    own = plan._replace(problem=plan.problem._replace(store=store), full=full, inverse=inverse)
    return list(run(own, splits))


def _square(size: int) -> np.ndarray:
    return np.empty((size, size))


def _outcomes(plan: Plan, n_jobs: int | None) -> Iterator[Fold]:
    count, jobs = len(plan.folds), workers(n_jobs)
    if jobs == 1:
        yield from run(plan, range(count))
        return
    if plan.inverse is not None:  # the workspace is not to travel
        plan = plan._replace(inverse=plan.inverse._replace(workspace=_square(0)))
    tasks = [(plan, splits) for splits in in_parts(count, jobs)]
    for outcomes in in_processes(_run_chunk, tasks, n_jobs):
        yield from outcomes


# ------------------------------------------------------------------------------------------------------------ for users


def cross_validate(
    X: Any,
    y: Any,
    *,
    C: float,
    gamma: float = 1.0,
    kernel: str = "rbf",
    degree: int = 3,
    coef0: float = 0.0,
    weights: Any = None,
    k: int = 10,
    folds: Any = None,
    seeding: str = "auto",
    values: bool = True,
    tol: float = 1e-3,
    n_jobs: int | None = 1,
    progress: bool = False,
    seed: int | None = 0,
    cache_mb: float = 256.0,
    device: str = "cpu",
) -> Result:
    """Test every example by a support vector machine that has not seen it.

    Parameters
    ----------
    X
        Examples as rows, as for `streamsvm.batch.smo.solve`; or a `RowStore`, whose kernel and rows are then used.
    y
        Labels: bool, -1 and +1, 0 and 1, or any two classes (of which the second in order is the positive one).
    C, gamma, kernel, degree, coef0, weights
        As for `streamsvm.batch.smo.solve`.
    k
        Number of stratified folds, if `folds` is None.
    folds
        `Folds` of another kind, fold numbers, pairs (train, test), or one of scikit-learn's splitters.
    seeding
        Where the training of a fold starts, see the table.
    values
        False, with folds of one example each and a positive semi-definite kernel: where a bound on the full solution
        tells whether an example is predicted right without it, its decision value is not computed.
    tol
        How much a pair may violate the optimality conditions.
    n_jobs
        Processes among which the folds are divided, each with kernel rows of its own; None: as `joblib` is configured.
    progress
        Whether to show a progress bar, if standard error is a terminal.
    seed
        Of the stratified folds; None: dealt out as the examples come.
    cache_mb
        Megabytes for kernel rows, in every process.
    device
        Where kernel rows are computed, by every process: see `streamsvm.batch.rows.RowStore`.  With a GPU, let
        `cache_mb` be 12e-6 n² or more, so that the rows of n examples fit.

    Returns
    -------
    Result
        Decision values and predictions, scores, and what it took.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range, or all examples are of one class.

    Notes
    -----
    ============== ==================================================================================================
    seeding        start of a fold
    ============== ==================================================================================================
    ``"auto"``     ``"none"`` if splits leave out more than two ninths of the examples, as up to four folds do; else
                   ``"none"``, ``"path"`` or ``"best"``, by what `streamsvm.batch.seeding.choose` expects them to cost
                   when it has seen the first split solved; from thirty folds on the full solution is there, and
                   ``"skip"`` takes the place of ``"none"``
    ``"none"``     0, and the full solution is not computed
    ``"skip"``     0
    ``"avg"``      the full solution; what leaves is shared equally among the free examples
    ``"top"``      the full solution; what leaves goes to the most similar free examples
    ``"greedy"``   the full solution; what leaves goes where the objective loses least
    ``"best"``     the better of ``"avg"`` and ``"greedy"``
    ``"path"``     the full solution, followed exactly to that of the fold; ``"best"`` where this takes too long
    ``"sir"``      the fold before; what leaves goes to the most similar examples that enter
    ``"mir"``      the fold before; what enters keeps the free examples where they are
    ``"ato"``      the fold before, followed exactly
    ``"reuse"``    the fold before, as it is
    ============== ==================================================================================================

    Where the full solution is the start, and in ``"skip"``, folds without support vectors of it are not trained.

    Where the solver gives the full problem up, the features are not scaled or C is far too large.  It then gives each
    fold up after a twentieth of the steps.  A warning says how many folds that were.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = X[:, 0] > 0
    >>> result = cross_validate(X, y, C=10.0, gamma=0.5, k=5)
    >>> result.accuracy > 0.9
    True
    >>> len(result.scores("g_mean"))
    5
    """
    begin = time.perf_counter()
    problem, classes = problem_of(X, y, C, gamma, kernel, degree, coef0, weights, tol, cache_mb, device)
    positive = problem.y > 0.0
    splits = kinds.stratified(positive, k, seed=seed) if folds is None else kinds.folds_of(folds, positive)
    warn_of_one_class(splits, problem)
    plan, first, reason = prepared(problem, splits, seeding, bool(values))
    per_fold = list(with_progress(_outcomes(plan, n_jobs), len(splits), "folds", progress))
    warn_unless(sum(not part.converged for part in per_fold), len(per_fold), "folds")
    if problem.store is not X:
        problem.store.drop_rows()  # or every result that is kept would keep them
    seconds = time.perf_counter() - begin
    return Result(positive, classes, splits, per_fold, plan.full, first, plan.seeding, reason, seconds)


def leave_one_out(X: Any, y: Any, *, C: float, **others: Any) -> Result:
    """Test every example by a support vector machine trained on all others.

    Examples that are no support vectors of the full solution cost nothing: without them it stays as it is.

    Parameters
    ----------
    X, y, C
        As for `cross_validate`.
    others
        As for `cross_validate`, but `k`, `folds` and `seed`.

    Examples
    --------
    >>> X, y = np.arange(40.0)[:, None], np.arange(40) > 19
    >>> result = leave_one_out(X, y, C=10.0, gamma=0.01)
    >>> result.accuracy
    0.95
    >>> sum(part.start == "copied" for part in result.per_fold) > 20
    True
    """
    unwanted = {"k", "folds", "seed"} & set(others)
    if unwanted:
        raise TypeError(f"leave_one_out() takes no {', '.join(sorted(unwanted))}; use cross_validate()")
    return cross_validate(X, y, C=C, folds=kinds.leave_one_out(len(np.asarray(y))), **others)


def problem_of(
    X: Any,
    y: Any,
    C: float,
    gamma: float,
    kernel: str,
    degree: int,
    coef0: float,
    weights: Any,
    tol: float,
    cache_mb: float,
    device: str,
) -> tuple[Problem, np.ndarray]:
    """The problem over all examples, and what the user calls its classes."""
    for name, value in (("C", C), ("tol", tol)):
        arguments.require_positive(name, value)
    store = X
    if not isinstance(X, RowStore):
        store = RowStore(X, make_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0), cache_mb, device)
    signs = arguments.signs_of(y, len(store))
    classes = np.unique(np.asarray(y))
    if len(classes) != 2:
        raise ValueError(f"y holds {classes.tolist()}; examples of two classes are needed")
    boxes = arguments.boxes_of(float(C), arguments.weights_of(weights, len(store)), np.ones(len(store)))
    lower, upper = np.minimum(0.0, signs * boxes), np.maximum(0.0, signs * boxes)
    return Problem(store, signs, lower, upper, SolverOptions(tol=float(tol))), classes


def with_progress(values: Iterator[Any], total: int, unit: str, progress: bool) -> Iterator[Any]:
    """The values, with a bar on a terminal if there is to be one."""
    return tqdm(values, total=total, unit=f" {unit}", disable=None) if progress else values


def warn_unless(count: int, of: int, what: str) -> None:
    """Warn of problems that were given up."""
    if count:
        warnings.warn(
            f"the solver gave up on {count} of {of} {what}; scale the features, or use a larger tol or a smaller C",
            RuntimeWarning,
            stacklevel=3,
        )


def warn_of_one_class(folds: kinds.Folds, problem: Problem) -> None:
    """Warn of splits that train on one class only, which they then predict."""
    alone = folds.of_one_class(problem.y > 0.0, problem.upper > problem.lower)
    if alone:
        warnings.warn(
            f"{len(alone)} of {len(folds)} splits, the first being split {alone[0]}, train on one class only and "
            "predict it; use stratified folds, fewer of them, or more examples of the smaller class",
            RuntimeWarning,
            stacklevel=3,
        )


# ----------------------------------------------------------------------------------------------------------- comparison


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two settings over the same splits.

    Attributes
    ----------
    first, second
        Scores of each split.
    greater_is_better
        Whether more is better.
    """

    first: np.ndarray
    second: np.ndarray
    greater_is_better: bool

    @property
    def means(self) -> tuple[float, float]:
        """The mean score of each setting, over the splits in which both have one; NaN if there is none."""
        both = np.isfinite(self.first) & np.isfinite(self.second)
        if not both.any():
            return float("nan"), float("nan")
        return float(self.first[both].mean()), float(self.second[both].mean())

    @property
    def wins(self) -> tuple[int, int, int]:
        """In how many splits the first is better, the second is, and neither."""
        gain = np.round(self._gain, DIGITS)
        return int(np.sum(gain > 0)), int(np.sum(gain < 0)), int(np.sum(gain == 0))

    @property
    def _gain(self) -> np.ndarray:
        """By how much the first is better; splits without a value count for neither."""
        sign = 1.0 if self.greater_is_better else -1.0
        return np.asarray(sign * np.nan_to_num(self.first - self.second))

    @property
    def by_averaging(self) -> str | None:
        """``"first"`` or ``"second"``, whose mean score is better; None if they are equal."""
        gain = round(float(np.sum(self._gain)), DIGITS)
        return None if gain == 0.0 else "first" if gain > 0.0 else "second"

    @property
    def by_voting(self) -> str | None:
        """``"first"`` or ``"second"``, which is better in more than half of the splits; None if neither is."""
        first, second, ties = self.wins
        half = (first + second + ties) / 2
        return "first" if first > half else "second" if second > half else None


def compare(first: Result, second: Result, metric: Any = "accuracy", *, greater: bool | None = None) -> Comparison:
    """Which of two settings is better, by the mean of its scores and by the number of splits that it wins.

    Parameters
    ----------
    first, second
        Results over the same splits.
    metric
        See `streamsvm.validation.scores.measure`.
    greater
        Whether more of the metric is better.  Default: what a metric of river says; for functions, unless the name ends
        with ``_loss`` or ``_error``.

    Raises
    ------
    ValueError
        If the splits or labels differ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> curved, flat = (cross_validate(X, y, C=1.0, kernel=kernel) for kernel in ("rbf", "linear"))
    >>> comparison = compare(curved, flat)
    >>> comparison.by_averaging, comparison.by_voting
    ('first', 'first')
    """
    same = len(first.folds) == len(second.folds) and np.array_equal(first.y, second.y)
    pairs = zip(
        [*first.folds.tests, *first.folds.left_out], [*second.folds.tests, *second.folds.left_out], strict=False
    )
    if not (same and all(np.array_equal(a, b) for a, b in pairs)):
        raise ValueError("the results are not over the same splits of the same examples; give both the same folds")
    up = greater_is_better(metric) if greater is None else greater
    return Comparison(first.scores(metric), second.scores(metric), up)
