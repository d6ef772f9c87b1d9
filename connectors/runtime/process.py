"""How a process waits, and how it is stopped."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_SECONDS = 0.2  # a signal is noticed at least this often
Stop = Callable[[], bool]


@contextmanager
def killable() -> Iterator[None]:
    """Let Ctrl-C end the process at once, since nothing is lost yet: the compiler swallows what Python makes of it."""
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
