"""Clocks of CPU seconds, and a limit of them."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any


class TooSlowError(Exception):
    """A method has used up its seconds."""


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TooSlowError when so much CPU time is over."""

    def stop(*_: Any) -> None:
        raise TooSlowError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it returns, CPU seconds and seconds by the wall clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    outcome = work()
    return outcome, time.process_time() - cpu, time.perf_counter() - wall


def cpu_seconds(call: Callable[..., Any], *arguments: Any, **named: Any) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    call(*arguments, **named)
    return time.process_time() - start
