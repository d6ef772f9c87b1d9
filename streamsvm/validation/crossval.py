"""Cross-validation of a model: for each fold, its problem is solved exactly over the other examples."""

import time
from typing import Any

import numpy as np

from streamsvm.batch import RowStore, SmoothSVM, SolverOptions
from streamsvm.core import arguments
from streamsvm.core.threads import one_blas_thread
from streamsvm.validation import multiclass, smooth
from streamsvm.validation.held_out import folds as kinds
from streamsvm.validation.held_out.given_folds import splits_of
from streamsvm.validation.held_out.parallel import warn_of_failures, warn_of_one_class, with_progress
from streamsvm.validation.held_out.problem import is_one_vs_one, labelled, setting_of, signs_of
from streamsvm.validation.held_out.splits import outcomes, prepared
from streamsvm.validation.results import Result
from streamsvm.validation.scale import resolve_scaling


def cross_validate(
    model: Any,
    X: Any,
    y: Any,
    *,
    k: int = 10,
    folds: Any = None,
    seeding: str = "auto",
    sample_weight: Any = None,
    n_jobs: int | None = 1,
    progress: bool = False,
    values: bool = True,
    seed: int | None = 0,
    options: SolverOptions | None = None,
) -> Any:
    """Test every example by a model that has not seen it.

    For each fold, the batch solver solves the model's problem over the other examples, to the model's `tol`.  The model
    itself is not trained.

    Parameters
    ----------
    model
        `LASVM(...)`, `SmoothSVM(...)`, or ``OneVsOne(LASVM(...))`` for several classes, with the default of `values`.
        Of a `LASVM`, the parameters for streams, such as `budget` and `window`, are not used.
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix or a frame of numbers.  For `LASVM` also a list of dicts,
        or a `RowStore` of the model's kernel, whose kernel rows are then shared.
    y
        Labels: bool, -1 and +1, 0 and 1, or any two classes; the second in order is the positive one.
    k
        Number of stratified folds, at least 2 and at most as many as the smaller class has examples.  Not used with
        `folds`.
    folds
        Ready-made folds: `Folds` (see `streamsvm.validation.folds`), fold numbers, pairs (train, test), or a splitter
        of scikit-learn.
    seeding
        Where the training of a fold starts, see Notes; it changes the time and not the result.  A `SmoothSVM` takes
        ``"auto"`` only, a `OneVsOne` also ``"none"`` and ``"skip"``.
    sample_weight
        Factor on C for each example, at least 0.  Default: 1.
    n_jobs
        Number of processes that share the folds; each has its own cache.  Default: one, because folds in one process
        share kernel values, which saves about as much as a second core would.  None: as `joblib` is configured.  A
        `SmoothSVM` takes None or 1.
    progress
        Whether to show a progress bar, if standard error is a terminal.
    values
        If False, leave-one-out may skip decision values that bounds can decide.  The kernel must be positive
        semi-definite.
    seed
        Seed of the stratified folds.  None: the examples of each class are dealt out in their order.
    options
        Options of the batch solver that are not the model's, such as `max_iterations`.

    Returns
    -------
    Result or ClassResult
        Decision values, predictions, scores and costs.  For several classes, predictions, accuracy and confusion.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range; if `y` has more than two classes and the model is not a `OneVsOne`; or if
        the batch solver cannot solve the model's problem.  It cannot for learners without a bias (`LASVMG`, `FullSVM`)
        and for `OneVsRest`.

    Warns
    -----
    RuntimeWarning
        If the solver gave up on some folds: the features are not scaled, or C is far too large.  Also if a split trains
        on one class.

    Notes
    -----
    ============== ==================================================================================================
    seeding        start of a fold
    ============== ==================================================================================================
    ``"auto"``     ``"skip"``, ``"path"`` or ``"avg"``: the one that `streamsvm.batch.seeding.choose` expects to be
                   cheapest, given the full solution.  ``"none"`` if splits leave out more than two ninths of the
                   examples, as up to four folds do
    ``"none"``     coefficients 0; a rough solution of the full problem shows which examples are near the margin
    ``"skip"``     coefficients 0
    ``"avg"``      the full solution; the free examples share the coefficients of the left-out ones equally
    ``"top"``      the full solution; the most similar examples with room get these coefficients
    ``"greedy"``   the full solution; each coefficient goes where the objective loses least
    ``"best"``     the better of ``"avg"`` and ``"greedy"``
    ``"path"``     the full solution, followed exactly to that of the fold; ``"best"`` where this takes too long
    ``"sir"``      the solution of the fold before; the most similar entering examples get the coefficients
    ``"mir"``      the solution of the fold before; entering examples get coefficients that leave the free ones in place
    ``"ato"``      the solution of the fold before, moved towards that of the fold in many steps, as in its source
    ``"chained"``  the solution of the fold before, followed exactly to that of the fold; ``"best"`` as with ``"path"``
    ``"reuse"``    the solution of the fold before, as it is
    ============== ==================================================================================================

    The *full* solution is that over all examples.  With a start from it, and with ``"skip"``, a fold that leaves out
    none of its support vectors is copied from it.

    Each step of ``"ato"`` solves a least squares problem of all free examples.  The solver then has steps left to do,
    where ``"chained"`` leaves none: 167 and 0 for a fold of ten of ionosphere, and 380 from 0.

    If the solver gave up on the full problem, it gives up on each fold after a twentieth of the usual steps, or after
    `max_iterations` of them.

    A `OneVsOne` with ``"skip"`` copies the pairs that lose no support vector.  With ``"auto"``, it does so if each
    split leaves out one example; otherwise it uses ``"none"``, which then is faster.

    For a `SmoothSVM`, `streamsvm.validation.smooth` describes the starts.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = X[:, 0] > 0
    >>> result = cross_validate(LASVM(C=10.0, gamma=0.5), X, y, k=5)
    >>> result.accuracy
    0.983
    >>> len(result.scores("g_mean"))
    5
    """
    if is_one_vs_one(model):
        multiclass.require_plain({"values": values})
        binary, X = resolve_scaling(model.model, X)
        setting, labels = setting_of(binary, options), np.asarray(y)
        problems, classes = multiclass.problems_of(setting, [float(setting.C)], X, y, sample_weight)
        splits = splits_of(folds, labels, k, seed)
        result: Any = multiclass.validated(problems, labels, classes, splits, seeding, n_jobs)[0]
    elif isinstance(model, SmoothSVM):
        smooth.require_only_auto(n_jobs, options, seeding=seeding, values=values)
        positive = signs_of(y, len(arguments.vector_of("y", y)))[0] > 0.0
        splits = splits_of(folds, positive, k, seed)
        warn_of_one_class(
            splits, positive, arguments.weights_of(sample_weight, len(positive), "sample_weight") > 0.0, stacklevel=2
        )
        result = smooth.validated(model, X, y, splits, sample_weight, progress)
    else:
        begin = time.perf_counter()
        given, (model, X) = X, resolve_scaling(model, X)
        problem, classes = labelled(X, y, sample_weight, setting_of(model, options))
        positive = problem.y > 0.0
        splits = splits_of(folds, positive, k, seed)
        warn_of_one_class(splits, positive, problem.hi > problem.lo, stacklevel=2)
        with one_blas_thread():  # once: each linear system alone would set the limit and lift it
            plan, first, reason = prepared(problem, splits, seeding, bool(values))
            per_fold = list(with_progress(outcomes(plan, n_jobs), len(splits), "folds", progress))
        if not isinstance(given, RowStore):
            problem.store.drop_rows()  # A result that is kept must not keep the rows.
        seconds = time.perf_counter() - begin
        result = Result(positive, classes, splits, per_fold, plan.full, first, plan.seeding, reason, seconds)
    warn_of_failures(sum(not part.converged for part in result.per_fold), len(splits), "folds", stacklevel=2)
    return result


def leave_one_out(
    model: Any,
    X: Any,
    y: Any,
    *,
    seeding: str = "auto",
    sample_weight: Any = None,
    n_jobs: int | None = 1,
    progress: bool = False,
    values: bool = True,
    options: SolverOptions | None = None,
) -> Any:
    """Test every example by a model trained on all others.

    An example that is not a support vector of the full solution costs nothing: without it, the solution is the same.

    Parameters
    ----------
    model, X, y, seeding, sample_weight, n_jobs, progress, values, options
        As for `cross_validate`.

    Returns
    -------
    Result or ClassResult
        As for `cross_validate`; there is one split for each example, in their order.

    Raises
    ------
    ValueError, TypeError
        As for `cross_validate`.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> X, y = np.arange(40.0)[:, None], np.arange(40) > 19
    >>> result = leave_one_out(LASVM(C=10.0, gamma=0.01), X, y)
    >>> result.accuracy
    0.95
    >>> sum(part.start == "copied" for part in result.per_fold) > 20
    True
    """
    return cross_validate(
        model,
        X,
        y,
        folds=kinds.leave_one_out(len(arguments.vector_of("y", y))),
        seeding=seeding,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        progress=progress,
        values=values,
        options=options,
    )
