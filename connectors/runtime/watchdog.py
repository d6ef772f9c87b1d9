"""Ends a daemon that hangs, so that whatever started it can start it again.

The watchdog is a thread, and sees a hang wherever other threads can run: in Python, and in C that releases the
interpreter's lock, as compiled models and every blocking call of the standard library do.  Where nothing else can run,
``/healthz`` does not answer either.
"""

import faulthandler
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h
LAST_WORDS_SECONDS = 5

_TICK = 1.0  # seconds between two looks, at most


def abort(why: str) -> None:
    """Write the stacks of all threads to standard error, log `why`, and end the process with `EXIT_CODE`."""
    signal.alarm(LAST_WORDS_SECONDS)  # the kernel ends it if the words do: into a full pipe, or for a lock that hangs
    try:
        faulthandler.dump_traceback(file=2, all_threads=True)  # not sys.stderr, which may be closed
        logger.critical("%s: ending the process with exit code %d", why, EXIT_CODE)
    finally:
        os._exit(EXIT_CODE)


class Watchdog:
    """Watches a loop, from another thread, inside a ``with`` block.

    Time in which the whole process was stopped does not count: the limit is in looks of the watchdog's, not by a clock.

    Parameters
    ----------
    limit_seconds
        How long the loop may go without a beat; 0 for ever.
    on_expiry
        Called once, with the reason, by the watchdog's thread.

    Examples
    --------
    ::

        with Watchdog(60) as watchdog:
            with watchdog.allow(600):
                model = load()
            while not stop():
                watchdog.beat()
                consume(poll())
    """

    def __init__(self, limit_seconds: float, *, on_expiry: Callable[[str], None] = abort) -> None:
        self._limit = limit_seconds or math.inf
        self._on_expiry = on_expiry
        self._tick = min(_TICK, self._limit / 10)
        self._beats = 0
        self._deadline = math.inf
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def beat(self) -> None:
        """Say that the loop is alive; by the loop only."""
        self._beats += 1

    @contextmanager
    def allow(self, seconds: float) -> Iterator[None]:
        """Give the loop `seconds` without a beat, if that is more than the limit, for what is known to take long."""
        limit = self._limit
        self.beat()
        self._limit = max(limit, seconds)
        try:
            yield
        finally:
            self.beat()  # before the limit falls: see _watch
            self._limit = limit

    def deadline(self, seconds: float) -> None:
        """End the process in `seconds` unless it ends by itself; beats do not matter any more.

        The deadline outlives the ``with`` block, for it is the process that must be gone; infinity withdraws it. No
        lock is taken, so a signal's handler may call this.
        """
        self._deadline = time.monotonic() + seconds

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def _watch(self) -> None:
        seen, idle = self._beats, 0.0
        while not self._closed.wait(self._tick) and math.isinf(self._deadline):
            limit, beats = self._limit, self._beats  # in this order: a limit that fell comes with the beat before it
            idle = idle + self._tick if beats == seen else 0.0
            seen = beats
            if idle >= limit:
                self._on_expiry(f"the loop has not beaten for {limit:g} seconds")
                return
        while math.isfinite(self._deadline):
            left = self._deadline - time.monotonic()
            if left <= 0:
                self._on_expiry("the process has not ended in the time given after the request to stop")
                return
            time.sleep(min(left, _TICK))
