"""Reports an outage of another service once, and not at every attempt."""

import logging


class Outage:
    """Whether something cannot be reached at the moment, and why.

    Parameters
    ----------
    logger
        Says when it begins, and when it ends.
    over
        What to say when it ends; empty: nothing.
    """

    def __init__(self, logger: logging.Logger, over: str = "") -> None:
        self._logger = logger
        self._over = over
        self.reason: str | None = None

    def goes_on(self, error: Exception) -> None:
        """An attempt has failed."""
        if self.reason != str(error):
            self._logger.warning("%s", error)
        self.reason = str(error)

    def ends(self) -> None:
        """An attempt has succeeded, maybe the first one."""
        if self.reason and self._over:
            self._logger.info("%s", self._over)
        self.reason = None
