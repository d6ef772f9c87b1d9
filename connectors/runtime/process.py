"""How a process waits, and how signals stop it."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

POLL_SECONDS = 0.2  # A process that waits looks for a signal at least this often.
LOOK_SECONDS = 1.0  # between two tries, or two looks at what seldom changes
Stop = Callable[[], bool]  # Says True when the process has to end.

_RESTART_SECONDS = 60.0  # as long as a broker may take to restart


def pause(seconds: float, stop: Stop) -> None:
    """Wait, but no longer than until `stop` says True."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not stop():
        time.sleep(min(left, POLL_SECONDS))


def insist(step: Callable[[], object], may_pass: Callable[[Exception], bool]) -> object:
    """What a step returns; while its error may pass, it is taken again, as long as a broker may take to restart."""
    until = time.monotonic() + _RESTART_SECONDS
    while True:
        try:
            return step()
        except Exception as error:
            if not may_pass(error) or time.monotonic() > until:
                raise
        time.sleep(POLL_SECONDS)


@contextmanager
def killable() -> Iterator[None]:
    """Let Ctrl-C end the process at once, before there is anything to lose.

    The compiler would swallow Python's KeyboardInterrupt.
    """
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def stop_on_signals(on_signal: Callable[[], None] = lambda: None) -> Iterator[Stop]:
    """A `Stop` that becomes true with SIGTERM or SIGINT; a second signal ends the process at once.

    Parameters
    ----------
    on_signal
        Called by the first signal's handler.
    """
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
