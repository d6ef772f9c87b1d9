"""What surrounds the loop of a process: its log, its metrics over HTTP, and a watchdog."""

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from tqdm import tqdm

from ..logs.transport import OutputsLost, PositionRefused, Record, Transport, Unavailable
from ..runtime.health import Health
from ..runtime.metrics import Metrics
from ..runtime.outage import Outage
from ..runtime.process import LOOK_SECONDS, POLL_SECONDS, Stop, pause
from ..runtime.status_server import StatusServer
from ..runtime.watchdog import Watchdog
from ..settings.opening import open_log
from ..settings.sections import ConfigError, Settings

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Loop(Generic[Result]):
    """What a process does with a log until it is told to stop, as an `Ownership` of its share of the partitions.

    Parameters
    ----------
    settings
        The configuration.
    log
        Has the inputs, and takes the outputs.
    stop
        Asked between cycles; the loop ends cleanly once it says True.
    health, metrics
        Show how the process is.
    """

    def __init__(self, settings: Settings, log: Transport, stop: Stop, health: Health, metrics: Metrics) -> None:
        self._settings, self._log, self._stop = settings, log, stop
        self._health, self._metrics = health, metrics
        self._reading = Outage(logger, "reading again")
        self._cannot_write: str | None = None  # the reason

    def run(self) -> Result:
        """Work until stopped, or to the end of the log."""
        raise NotImplementedError

    def _seek(self) -> None:
        """Read on where the log can: it has refused a position."""

    def _poll(self, timeout: float, limit: int) -> list[Record]:
        """The records that have come; none while the log is away, or if it refused a position."""
        try:
            records = self._log.poll(timeout, limit)
            self._reading.ends()
            return records
        except PositionRefused as error:
            logger.warning("%s", error)
            self._seek()
        except Unavailable as error:
            self._reading.goes_on(error)
            self._health.unready = str(error)
            time.sleep(POLL_SECONDS)
        return []

    def _flush(self, what: str) -> bool:
        """Make all outputs durable; return whether that succeeded.  `what` begins the warning: what waits for them."""
        try:
            self._log.flush()
            self._cannot_write = None
        except Unavailable as error:
            self._cannot_write = str(error)
            self._health.unready = self._cannot_write
            logger.warning("%s are not durable yet: %s", what, error)
        return self._cannot_write is None

    def _show(self, waits_for: str | None = None) -> None:
        """Show whether the loop is ready; if not, why."""
        if reason := self._reading.reason or self._cannot_write or waits_for:
            self._health.unready = reason
        else:
            self._health.unready = None

    def _wait(self, reason: str) -> None:
        """Something cannot be read or written yet: stay alive, unless the process has to end."""
        self._health.wait(reason)
        if self._stop():
            raise Unavailable(reason)
        time.sleep(POLL_SECONDS)


def progress_bar(description: str, total: int | None, done: int) -> "tqdm[Any]":
    """A progress bar on a terminal; silent elsewhere."""
    return tqdm(desc=description, total=total, initial=done, unit=" records", disable=None, dynamic_ncols=True)


def operate(
    loop: Callable[[Settings, Transport, Stop, Health, Metrics], Loop[Result]],
    settings: Settings,
    stop: Stop,
    group: str,
) -> Result | None:
    """Run a loop over a log, serve its metrics, and watch over it.

    A broker may go away at any question, and outputs may be lost.  Then a loop that follows its log begins again in
    this process, as after a kill: from what it saved last, once a broker answers.

    Parameters
    ----------
    loop
        Makes the loop, from the arguments of `Loop`.
    settings
        The configuration.
    stop
        Asked between cycles whether to end.
    group
        The consumer group.

    Returns
    -------
    object
        What the loop returns; None if it was stopped while no broker answered.
    """
    health, metrics, outage = Health(), Metrics(), Outage(logger)
    with ExitStack() as stack:
        if settings.http.port:
            stack.enter_context(_serve(settings, health, metrics))
        while True:
            with ExitStack() as attempt:
                try:
                    log = attempt.enter_context(open_log(settings, stop, health.wait, group))
                except Unavailable:
                    if stop():
                        return None
                    raise
                attempt.enter_context(Watchdog(health.heartbeat, settings.daemon.watchdog_seconds))
                try:
                    return loop(settings, log, stop, health, metrics).run()
                except (Unavailable, OutputsLost) as error:
                    if stop() or not settings.daemon.follow:
                        raise
                    outage.goes_on(error)
                    health.unready = str(error)
            logger.info("beginning again where the state was saved last")
            pause(LOOK_SECONDS, stop)


def _serve(settings: Settings, health: Health, metrics: Metrics) -> StatusServer:
    try:
        return StatusServer(health, metrics, **asdict(settings.http))
    except OSError as error:
        raise ConfigError(
            f"http.port = {settings.http.port}: {error}; give each process its own port, or 0 to serve nothing"
        ) from None
