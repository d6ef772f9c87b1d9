"""Whether a process's loop is alive and ready: the loop writes it; the status server and the watchdog read it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Heartbeat:
    """The loop's sign of life.

    One thread, the loop's, beats; any thread may read.
    """

    def __init__(self) -> None:
        self.count = 0  # of beats
        self.allowance = 0.0  # seconds that may pass without a beat, beyond the readers' own limits
        self._at = time.monotonic()

    def beat(self) -> None:
        """Say that the loop is alive."""
        self._at = time.monotonic()
        self.count += 1

    @contextmanager
    def allow(self, seconds: float) -> Iterator[None]:
        """Let readers wait `seconds` for the next beat, if that is longer than their limit; for a long phase."""
        before = self.allowance
        self.beat()
        self.allowance = max(before, seconds)
        try:
            yield
        finally:
            self.beat()  # The watchdog reads the allowance first, so it cannot see it fall without this beat.
            self.allowance = before

    def alive(self, limit_seconds: float) -> bool:
        """Whether the last beat is younger than the limit, or than the allowance if that is longer."""
        return time.monotonic() - self._at < max(limit_seconds, self.allowance)


class Health:
    """The loop's heartbeat, and whether it is ready.

    Attributes
    ----------
    unready : str or None
        Why no record is consumed; None if records are.
    """

    def __init__(self) -> None:
        self.heartbeat = Heartbeat()
        self.unready: str | None = "starting"

    def wait(self, reason: str) -> None:
        """Say why no record is consumed, and that the loop is alive all the same."""
        self.unready = reason
        self.heartbeat.beat()
