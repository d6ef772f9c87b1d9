"""Time limits of tests that follow the load: a busy machine is slow, and nothing is wrong."""

import os
import time


class Patience:
    """A time limit that counts a second less where several processes share each core.

    Parameters
    ----------
    seconds
        The limit on a machine that has nothing else to do.
    """

    def __init__(self, seconds):
        self._left = seconds
        self._looked_at = time.monotonic()

    @property
    def lasts(self):
        """Whether there is time left."""
        now = time.monotonic()
        self._left -= (now - self._looked_at) / max(1.0, os.getloadavg()[0] / os.cpu_count())
        self._looked_at = now
        return self._left > 0


def exit_code(process, seconds):
    """The exit code of a process; None if it has not ended in time."""
    patience = Patience(seconds)
    while (code := process.poll()) is None and patience.lasts:
        time.sleep(0.01)
    return code
