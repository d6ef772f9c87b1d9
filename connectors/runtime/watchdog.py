"""Ends a process that hangs, so that its supervisor can start it again.

The watchdog is a thread.  It notices a hang wherever other threads can run: in Python, and in C code that releases the
interpreter's lock, as compiled models and blocking calls of the standard library do.  Where no thread can run,
``/healthz`` does not answer either.
"""

import faulthandler
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable

from .exit_codes import STALLED
from .health import Heartbeat

logger = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 5  # to write the stacks

_TICK = 1.0  # seconds between two looks, at most


def abort(why: str) -> None:
    """Write the stacks of all threads to standard error, log `why`, and end the process with `STALLED`."""
    signal.alarm(LAST_WORDS_SECONDS)  # The kernel ends the process if a full pipe or a held lock stops the next lines.
    try:
        faulthandler.dump_traceback(file=2, all_threads=True)  # sys.stderr may be closed.
        logger.critical("%s: ending the process with exit code %d", why, STALLED)
    finally:
        os._exit(STALLED)


class Watchdog:
    """Watches a loop's heartbeat from another thread, inside a ``with`` block.

    The watchdog counts its own looks instead of reading a clock, so time in which the whole process was stopped does
    not count.

    Parameters
    ----------
    heartbeat
        The loop's.
    limit_seconds
        Seconds that the loop may go without a beat; 0: any time.
    on_expiry
        Called once, with the reason, by the watchdog's thread.

    Examples
    --------
    ::

        heartbeat = Heartbeat()
        with Watchdog(heartbeat, 60):
            with heartbeat.allow(600):
                model = load()
            while not stop():
                heartbeat.beat()
                consume(poll())
    """

    def __init__(self, heartbeat: Heartbeat, limit_seconds: float, *, on_expiry: Callable[[str], None] = abort) -> None:
        self._heartbeat = heartbeat
        self._limit = limit_seconds or math.inf
        self._on_expiry = on_expiry
        self._tick = min(_TICK, self._limit / 10)
        self._deadline = math.inf
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def deadline(self, seconds: float) -> None:
        """End the process in `seconds` unless it ends by itself; beats no longer matter.

        The deadline outlives the ``with`` block, because it is for the whole process; infinity withdraws it.  This
        takes no lock, so a signal's handler may call it.
        """
        self._deadline = time.monotonic() + seconds

    def __enter__(self) -> "Watchdog":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def _watch(self) -> None:
        heartbeat = self._heartbeat
        seen, idle = heartbeat.count, 0.0
        while not self._closed.wait(self._tick) and math.isinf(self._deadline):
            limit = max(self._limit, heartbeat.allowance)  # read before the beats, see `Heartbeat.allow`
            count = heartbeat.count
            idle = idle + self._tick if count == seen else 0.0
            seen = count
            if idle >= limit:
                self._on_expiry(f"the loop has not beaten for {limit:g} seconds")
                return
        while math.isfinite(self._deadline):
            left = self._deadline - time.monotonic()
            if left <= 0:
                self._on_expiry("the process has not ended in the time given after the request to stop")
                return
            time.sleep(min(left, _TICK))
