"""A thread that follows topics for as long as the labelling runs."""

import logging
import threading
from abc import ABC, abstractmethod

from ..logs.transport import OffsetOutOfRange, Transport, Unavailable
from ..runtime.outage import Outage
from ..runtime.process import LOOK_SECONDS
from ..settings.opening import open_once
from ..settings.sections import Settings

logger = logging.getLogger(__name__)


class LogThread(ABC):
    """Reads with a log of its own, which it opens again after an outage; another error ends it.

    Parameters
    ----------
    settings
        The configuration.
    what
        What is read, for messages, such as "the questions".
    """

    def __init__(self, settings: Settings, what: str) -> None:
        self._settings = settings
        self._what = what
        self._closing = threading.Event()
        self._outage = Outage(logger, f"{what} can be read again")
        self._starting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=what.rpartition(" ")[2], daemon=True)

    def start(self) -> None:
        """Begin to read, unless it has begun."""
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()

    def close(self) -> None:
        """Stop, and wait for the thread to end."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    @abstractmethod
    def _follow(self, log: Transport) -> None:
        """Read until the thread is closing; called again, with a new log, after an outage."""

    def _trouble(self, error: Exception) -> None:
        """Wait a moment for a log that cannot be read now."""
        self._outage.goes_on(error)
        self._closing.wait(LOOK_SECONDS)

    def _failed(self, error: Exception) -> None:
        """Note that reading has ended for good."""
        self._outage.reason = str(error)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with open_once(self._settings) as log:
                    self._follow(log)
            except (Unavailable, OffsetOutOfRange) as error:
                self._trouble(error)
            except Exception as error:
                logger.error("%s cannot be read: %s", self._what, error)
                self._failed(error)
                return
