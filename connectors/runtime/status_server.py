"""The status of a process over HTTP: ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz`` for a supervisor."""

import ipaddress
import logging
import platform
from collections.abc import Sequence
from http import HTTPStatus

from prometheus_client import ProcessCollector

from streamsvm import __version__

from .health import Health
from .http import Handler, HTTPServer, is_own_name
from .metrics import Metrics

logger = logging.getLogger(__name__)

_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"  # the content type of `Metrics.render`


class StatusServer(HTTPServer):
    """``/metrics``, ``/healthz`` and ``/readyz`` over HTTP, inside a ``with`` block.

    Parameters
    ----------
    health
        Answers ``/healthz`` and ``/readyz``.
    metrics
        Answers ``/metrics``; this adds metrics of the build, of `health` and of the process's memory and files.
    host, port
        The address to listen on.  Port 0: any free one.
    names
        Names that the server answers to beside its host.
    connections
        Number of connections at once.
    limit_seconds
        Age of the last heartbeat at which ``/healthz`` begins to answer with the status 503.

    Raises
    ------
    OSError
        If the server cannot listen on the address.
    """

    def __init__(
        self,
        health: Health,
        metrics: Metrics,
        host: str,
        port: int,
        names: Sequence[str],
        connections: int,
        limit_seconds: float = 60.0,
    ) -> None:
        metrics.set("streamsvm_build_info", 1, version=__version__, python=platform.python_version())
        metrics.set("streamsvm_up", lambda: health.heartbeat.alive(limit_seconds))
        metrics.set("streamsvm_ready", lambda: health.unready is None)
        self.health, self.metrics, self.limit_seconds = health, metrics, limit_seconds
        super().__init__(host, port, _Handler, connections)
        is_local = ipaddress.ip_address(str(self.server_address[0])).is_loopback
        self._names = (host, *names) if names or is_local else None
        ProcessCollector(registry=metrics.registry)

    def start(self) -> None:
        """Begin to serve."""
        super().start()
        logger.info("serving /metrics, /healthz and /readyz on %s, port %d", *self.server_address[:2])

    def answers_to(self, host: str | None) -> bool:
        """Whether this server is meant by a request with this Host header.

        Another site may let its own name lead here (DNS rebinding), so that its page can read our answers.  A request
        without the header is no browser's.
        """
        return host is None or self._names is None or is_own_name(host, self._names)


class _Handler(Handler):
    server: StatusServer

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command not in ("GET", "HEAD"):
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD\n")
            return False
        if not self.server.answers_to(self.headers.get("Host")):
            self._answer(
                HTTPStatus.FORBIDDEN, "this server does not have that name: use its address, or set http.names\n"
            )
            return False
        return True

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        health, limit = self.server.health, self.server.limit_seconds
        match self.path.partition("?")[0]:
            case "/metrics":
                self._show(self.server.metrics)
            case "/healthz" if health.heartbeat.alive(limit):
                self._answer(HTTPStatus.OK, "alive\n")
            case "/healthz":
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"the loop has not beaten for {limit:g} seconds\n")
            case "/readyz":
                reason = health.unready
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK, f"{reason or 'ready'}\n")
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "use /metrics, /healthz or /readyz\n")

    def _show(self, metrics: Metrics) -> None:
        try:
            text = metrics.render()
        except Exception as error:  # A gauge may be a function, which may fail.
            logger.exception("a request for /metrics failed")
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"the metrics failed: {type(error).__name__}\n")
        else:
            self._answer(HTTPStatus.OK, text, _EXPOSITION)

    def do_HEAD(self) -> None:  # noqa: N802
        self.do_GET()

    def _answer(self, status: HTTPStatus, text: str, content_type: str = "text/plain; charset=utf-8") -> None:
        body = text.encode(errors="replace")  # A reason may hold a file's name, which may not be valid text.
        allowed = {"Allow": "GET, HEAD"} if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        self.reply(status, body, content_type, allowed)
