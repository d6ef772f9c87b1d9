"""What surrounds the loop of a process: its log, its metrics over HTTP, and a watchdog."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol, TypeVar

from ..logs.transport import Transport, Unavailable
from ..runtime.http import Health, Metrics, Server
from ..runtime.process import Stop
from ..runtime.watchdog import Watchdog
from ..settings.opening import open_log
from ..settings.sections import ConfigError, Settings

Result = TypeVar("Result", covariant=True)


class Loop(Protocol[Result]):
    """Consumes a log until it is told to stop."""

    def run(self) -> Result: ...


def operate(
    loop: Callable[[Settings, Transport, Stop, Health, Metrics, Watchdog], Loop[Result]],
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
        watchdog = stack.enter_context(Watchdog(settings.daemon.watchdog_seconds))
        return loop(settings, log, stop, health, metrics, watchdog).run()


def _serve(settings: Settings, health: Health, metrics: Metrics) -> Server:
    try:
        return Server(health, metrics, settings.http)
    except OSError as error:
        raise ConfigError(
            [f"http.port = {settings.http.port}: {error}; give each process its own port, or 0 to serve nothing"]
        ) from None
