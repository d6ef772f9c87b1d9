"""What surrounds the loop of a process: its log, its metrics over HTTP, and a watchdog."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol, TypeVar

from ..logs.transport import Transport, Unavailable
from ..runtime.health import Health
from ..runtime.metrics import Metrics
from ..runtime.process import Stop
from ..runtime.status_server import StatusServer
from ..runtime.watchdog import Watchdog
from ..settings.opening import open_log
from ..settings.sections import ConfigError, Settings

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
        What the loop returns; None if it was stopped before a broker answered.
    """
    health, metrics = Health(), Metrics()
    with ExitStack() as stack:
        if settings.http.port:
            stack.enter_context(_serve(settings, health, metrics))
        try:
            log = stack.enter_context(open_log(settings, stop, health.set_unready, group))
        except Unavailable:
            if stop():
                return None
            raise
        stack.enter_context(Watchdog(health.heartbeat, settings.daemon.watchdog_seconds))
        return loop(settings, log, stop, health, metrics).run()


def _serve(settings: Settings, health: Health, metrics: Metrics) -> StatusServer:
    try:
        return StatusServer(health, metrics, settings.http)
    except OSError as error:
        raise ConfigError(
            [f"http.port = {settings.http.port}: {error}; give each process its own port, or 0 to serve nothing"]
        ) from None
