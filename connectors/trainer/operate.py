"""What surrounds the loop of a process: its log, its metrics over HTTP, and a watchdog."""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol, TypeVar

from ..logs.transport import OutputsLost, Transport, Unavailable
from ..runtime.health import Health
from ..runtime.metrics import Metrics
from ..runtime.outage import Outage
from ..runtime.process import LOOK_SECONDS, Stop, pause
from ..runtime.status_server import StatusServer
from ..runtime.watchdog import Watchdog
from ..settings.opening import open_log
from ..settings.sections import ConfigError, Settings

logger = logging.getLogger(__name__)

Result = TypeVar("Result", covariant=True)


class Loop(Protocol[Result]):
    """Consumes a log until it is told to stop."""

    def run(self) -> Result: ...


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
        Makes the loop, from the arguments of `Trainer`.
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
                    health.set_unready(str(error))
            logger.info("beginning again where the state was saved last")
            pause(LOOK_SECONDS, stop)


def _serve(settings: Settings, health: Health, metrics: Metrics) -> StatusServer:
    try:
        return StatusServer(health, metrics, settings.http)
    except OSError as error:
        raise ConfigError(
            f"http.port = {settings.http.port}: {error}; give each process its own port, or 0 to serve nothing"
        ) from None
