"""How a process waits, and how it is stopped."""

import signal
import threading
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


@contextmanager
def stop_on_signals(on_signal: Callable[[], None] = lambda: None) -> Iterator[Stop]:
    """A `Stop` that says True after SIGTERM or SIGINT.  A second signal ends the process at once."""
    requested = threading.Event()
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(*_: object) -> None:
        for number in previous:
            signal.signal(number, signal.SIG_DFL)
        requested.set()
        on_signal()

    for number in previous:
        signal.signal(number, handle)
    try:
        yield requested.is_set
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
