"""The cores that batches use: one limit for the whole process, and work shared among threads.

Work is shared where a batch divides into parts that do not depend on each other, such as blocks of rows to predict.
Compiled code runs without the GIL, so threads are enough, and nothing is copied or pickled.  Results are the same for
every number of threads.

Learning from a stream stays on one thread: each example depends on the one before.
"""

import itertools
import math
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from streamsvm.core.costs import TASK

T = TypeVar("T")
R = TypeVar("R")

VARIABLE = "STREAMSVM_NUM_THREADS"
OTHERS = "OMP_NUM_THREADS"  # joblib sets it in its workers, so that they do not crowd each other out
MIN_WORK = 32 * TASK  # nanoseconds of one core for each thread: its tasks, `SHARES` of them, cost an eighth of that
SHARES = 4  # tasks for each thread, so that all threads end together; as many are prepared before their turn
CGROUP = Path("/sys/fs/cgroup")

_chosen: list[int] = []  # what `set_num_threads` was given last, if anything
_worker = threading.local()
_controllers: dict[bool, ThreadpoolController] = {}  # of BLAS without scipy's own, and with it
_limited: list[bool] = []  # not empty while the main thread limits BLAS


def set_num_threads(n: int | None) -> None:
    """Limit the threads that batches may use: predictions of many rows, folds, grids and classes.

    The limit is that of the whole process.  Results do not depend on it, not even to the bit.  Small batches use one
    thread in any case, and so does learning from a stream.

    Parameters
    ----------
    n
        Largest number of threads, at least 1; 1 means that no thread is started.  None, as at the start: the number in
        the environment variable STREAMSVM_NUM_THREADS, otherwise as many as the process has cores, and at most the
        number in OMP_NUM_THREADS.

    Raises
    ------
    ValueError
        If n is not a whole number of at least 1.

    Examples
    --------
    >>> import streamsvm
    >>> streamsvm.set_num_threads(1)
    >>> streamsvm.get_num_threads()
    1
    >>> streamsvm.set_num_threads(None)
    """
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise ValueError(
            f"n={n!r} must be a whole number of at least 1, or None for as many threads as there are cores"
        )
    _chosen[:] = [] if n is None else [int(n)]


def get_num_threads() -> int:
    """The largest number of threads that a batch may use; see `set_num_threads`.

    Raises
    ------
    ValueError
        If STREAMSVM_NUM_THREADS is in use and is not a whole number of at least 1.

    Examples
    --------
    >>> import streamsvm
    >>> streamsvm.get_num_threads() >= 1
    True
    """
    if getattr(_worker, "is_busy", False):
        return 1  # what shares its work is itself a share
    if _chosen:
        return _chosen[0]
    given = os.environ.get(VARIABLE, "").strip()
    if given:
        if not (given.isdecimal() and int(given) >= 1):
            raise ValueError(f"{VARIABLE}={given!r} must be a whole number of at least 1")
        return int(given)
    others = os.environ.get(OTHERS, "").partition(",")[0].strip()
    return min(n_cores(), int(others)) if others.isdecimal() and int(others) >= 1 else n_cores()


def n_cores() -> int:
    """The cores that this process may use: those it is bound to, and no more than its control group's quota."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, _quota())))


def _quota() -> float:
    """The cores that a container's quota allows; infinite without one."""
    v2, v1 = CGROUP / "cpu.max", CGROUP / "cpu" / "cpu.cfs_quota_us"
    try:
        if v2.exists():
            quota, period = v2.read_text().split()
        elif v1.exists():
            quota, period = v1.read_text().strip(), v1.with_name("cpu.cfs_period_us").read_text().strip()
        else:
            return math.inf
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 else math.inf
    except (OSError, ValueError):  # an unreadable or unknown form: then the bound cores count
        return math.inf


def threads_for(work: float, tasks: int | None = None) -> int:
    """The number of threads for so many nanoseconds of work, in at most so many tasks."""
    wanted = int(min(work / MIN_WORK, 1e6))
    if tasks is not None:
        wanted = min(wanted, tasks)
    return 1 if wanted <= 1 else min(wanted, get_num_threads())


def in_order(work: Callable[[T], R], tasks: Iterable[T], n_threads: int) -> Iterator[R]:
    """The results of work(task) in the order of the tasks.

    The caller's thread makes the tasks, a few ahead of their turn.  The first error ends it: tasks that have not begun
    are dropped, those that have are waited for.  So it is after Ctrl-C.

    Parameters
    ----------
    work
        A function that several threads may call at once.
    tasks
        Its arguments.
    n_threads
        Number of threads; with 1, the caller's thread does the work.
    """
    if n_threads == 1:
        return map(work, tasks)
    return (result for (result,) in _shared(lambda task: (work(task) for _ in range(1)), tasks, n_threads))


def chained(work: Callable[[T], Iterator[R]], tasks: Iterable[T], n_threads: int) -> Iterator[R]:
    """The values of all iterators work(task), one iterator after the other, in the order of the tasks.

    It is for long tasks: after an error, those that have begun stop before their next value.  For the arguments see
    `in_order`.
    """
    parts = map(work, tasks) if n_threads == 1 else _shared(work, tasks, n_threads)
    return (value for part in parts for value in part)


def _shared(work: Callable[[T], Iterator[R]], tasks: Iterable[T], n_threads: int) -> Iterator[list[R]]:
    """The values of each iterator work(task), in the order of the tasks."""
    ended = threading.Event()

    def values_of(task: T) -> list[R]:
        _worker.is_busy = True
        return list(itertools.takewhile(lambda _: not ended.is_set(), work(task)))

    waiting: deque[Future[list[R]]] = deque()
    with one_blas_thread():
        pool = ThreadPoolExecutor(n_threads, "streamsvm")
        try:
            for task in tasks:
                waiting.append(pool.submit(values_of, task))
                if len(waiting) > SHARES * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            ended.set()
            pool.shutdown(cancel_futures=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: its systems are small, and sums then do not depend on the load.

    It works in the main thread only: from another one, OpenBLAS neither takes a limit nor lifts one.  Within another
    such limit it costs nothing.
    """
    if threading.current_thread() is not threading.main_thread() or _limited:
        yield
        return
    has_scipy = "scipy.linalg.blas" in sys.modules
    if has_scipy not in _controllers:  # a controller knows the libraries that were loaded before it
        _controllers[has_scipy] = ThreadpoolController()
    try:
        _limited.append(True)  # inside: an interruption right after it runs `finally`, too
        with _controllers[has_scipy].limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.clear()
