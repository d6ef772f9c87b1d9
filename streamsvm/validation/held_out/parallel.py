"""The work on many folds: its division among joblib's workers, its progress bar, its warnings."""

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from tqdm import tqdm

from streamsvm.validation.held_out.folds import Folds


def in_processes(work: Callable[[Any], Iterable[Any]], tasks: list[Any], n_jobs: int | None) -> Iterator[Any]:
    """The results of work(task) one after the other, in the order of the tasks, computed by joblib's workers.

    Parameters
    ----------
    work
        A function of a module, so that other processes can import it.
    tasks
        The arguments, one for each call.
    n_jobs
        Number of workers, as for `joblib.Parallel`.
    """
    joblib = _joblib(n_jobs)
    backend, _ = joblib.parallel.get_active_backend()
    as_they_come = "generator" if backend.supports_return_generator else "list"  # which Ray's backend does not
    parallel, results = joblib.Parallel(n_jobs=n_jobs, return_as=as_they_come), joblib.delayed(_results_of)
    yield from itertools.chain.from_iterable(parallel(results(work, task) for task in tasks))


def _results_of(work: Callable[[Any], Iterable[Any]], task: Any) -> list[Any]:
    return list(work(task))


def in_parts(count: int, parts: int) -> list[range]:
    """The numbers up to `count` as consecutive ranges of about equal length; no range is empty."""
    bounds = np.linspace(0, count, min(parts, count) + 1).astype(int).tolist()
    return [range(a, b) for a, b in itertools.pairwise(bounds)]


def workers(n_jobs: int | None) -> int:
    """The number of workers; 1 means this process alone."""
    if n_jobs is not None and (not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} must be a whole number other than 0, or None for joblib's own choice")
    unconfigured = n_jobs is None and "joblib" not in sys.modules
    return 1 if n_jobs == 1 or unconfigured else int(_joblib(n_jobs).effective_n_jobs(n_jobs))


def _joblib(n_jobs: int | None) -> Any:
    """The joblib package, which only several processes need."""
    try:
        import joblib
    except ImportError:
        raise ImportError(
            f"n_jobs={n_jobs!r} needs joblib: pip install 'streamsvm[parallel]'; n_jobs=1 does not"
        ) from None
    return joblib


def with_progress(values: Iterator[Any], total: int, unit: str, progress: bool) -> Iterator[Any]:
    """The values; with `progress`, a bar shows how many of them have come, if standard error is a terminal."""
    return tqdm(values, total=total, unit=f" {unit}", disable=None) if progress else values


def warn_of_failures(count: int, of: int, what: str, stacklevel: int) -> None:
    """Warn of problems that the solver gave up; `stacklevel` is that of `warnings.warn`, seen from the caller."""
    if count:
        warnings.warn(
            f"the solver gave up on {count} of {of} {what}; scale the features, or use a larger tol or a smaller C",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )


def warn_of_one_class(folds: Folds, positive: np.ndarray, trained: np.ndarray, stacklevel: int) -> None:
    """Warn of splits that train on one class only: their models predict that class."""
    alone = folds.of_one_class(positive, trained)
    if alone:
        warnings.warn(
            f"{len(alone)} of {len(folds)} splits, the first being split {alone[0]}, train on one class only; use "
            "stratified folds, fewer of them, or more examples of the smaller class",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )
