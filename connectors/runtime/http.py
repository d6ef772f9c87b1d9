"""What a daemon shows while it runs: ``/metrics`` for Prometheus, ``/healthz`` and ``/readyz`` for its supervisor.

One thread, the loop's, writes `Health` and `Metrics`; those of the HTTP server only read them.  There is no lock that
the loop could wait for: a writer replaces single values, a reader begins with a copy.

`HTTPServer` is also the server of the labelling page, and of Label Studio's answers.  It bounds what a client may take:
connections, time and bytes.  Each connection carries one request.
"""

import http.client
import http.server
import io
import ipaddress
import json
import logging
import math
import platform
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from streamsvm import __version__

from ..settings.sections import HttpSettings

logger = logging.getLogger(__name__)

Kind = Literal["counter", "gauge", "histogram"]
Labels = tuple[tuple[str, str], ...]  # names and values, sorted

_POLL_SECONDS = 0.1  # until the end of serving is noticed, at most
_FULL = (
    b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\nRetry-After: 1\r\n"
    b"Connection: close\r\n\r\ntoo many connections\n"
)


class Metric(NamedTuple):
    """What is known of a metric before it has a value."""

    name: str
    kind: Kind
    help: str
    buckets: tuple[float, ...] = ()  # upper bounds; the last bucket, without one, goes without saying


_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONG = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0)

METRICS = (
    Metric("streamsvm_up", "gauge", "1 while the loop is alive, as /healthz says."),
    Metric("streamsvm_ready", "gauge", "1 while records are consumed, as /readyz says."),
    Metric("streamsvm_build_info", "gauge", "Always 1; the labels say what is running."),
    Metric("streamsvm_records_total", "counter", "Records taken from the input topics."),
    Metric("streamsvm_predictions_total", "counter", "Events that were predicted."),
    Metric("streamsvm_learned_total", "counter", "Labelled events that were learned, again for each correction."),
    Metric("streamsvm_bad_records_total", "counter", "Records that were refused, by reason."),
    Metric("streamsvm_lost_records_total", "counter", "Records that were gone from the log before they were read."),
    Metric("streamsvm_labels_total", "counter", "Labels, by what became of them."),
    Metric(
        "streamsvm_late_labels_total",
        "counter",
        "Labels and retractions whose event was gone, followed by a model that still had the example.",
    ),
    Metric(
        "streamsvm_stranger_labels_total",
        "counter",
        "Labels whose id is a string where those of events are integers, or the reverse: they never meet.",
    ),
    Metric("streamsvm_questions_total", "counter", "Questions for labels, by what became of them."),
    Metric("streamsvm_open_questions", "gauge", "Questions that wait for an answer."),
    Metric("streamsvm_pending_events", "gauge", "Events and labels kept by the join."),
    Metric("streamsvm_pending_bytes", "gauge", "Memory that the join takes."),
    Metric("streamsvm_models", "gauge", "Models that there are, in memory and on disk."),
    Metric("streamsvm_dropped_models_total", "counter", "Models of keys that made room for others: daemon.max_keys."),
    Metric("streamsvm_support_vectors", "gauge", "Support vectors of the model."),
    Metric("streamsvm_members", "gauge", "Examples that the model holds, support vectors or not."),
    Metric("streamsvm_kernel_evaluations_total", "counter", "Values of the kernel that were computed."),
    Metric("streamsvm_lag_records", "gauge", "Records between the next one to consume and the end of the log."),
    Metric("streamsvm_rolling_error", "gauge", "Error of the predictions over the last labelled events."),
    Metric("streamsvm_rolling_g_mean", "gauge", "Geometric mean of the accuracies on the two classes, likewise."),
    Metric("streamsvm_rolling_auc", "gauge", "Area under the ROC curve, likewise."),
    Metric("streamsvm_rolling_prbep", "gauge", "Precision-recall break-even point, likewise."),
    Metric("streamsvm_estimated_error", "gauge", "Error of the model on events that it was taught, without these."),
    Metric("streamsvm_estimated_g_mean", "gauge", "Geometric mean of the accuracies on the two classes, likewise."),
    Metric("streamsvm_estimated_prbep", "gauge", "Precision-recall break-even point, likewise."),
    Metric("streamsvm_estimates_share", "gauge", "Time for these estimates, as a share of that for learning."),
    Metric("streamsvm_checkpoints_total", "counter", "Checkpoints written."),
    Metric("streamsvm_checkpoint_seconds", "histogram", "Time that a checkpoint took.", _SHORT),
    Metric("streamsvm_checkpoint_bytes", "gauge", "Size of the last checkpoint."),
    Metric("streamsvm_checkpoint_age_seconds", "gauge", "Time since the last checkpoint."),
    Metric("streamsvm_rebalances_total", "counter", "Changes of the partitions assigned to this process."),
    Metric("streamsvm_published_total", "counter", "Models published."),
    Metric("streamsvm_unpublished_total", "counter", "Models that were too large to publish."),
    Metric("streamsvm_refused_snapshots_total", "counter", "Published models, or parts of them, that were of no use."),
    Metric("streamsvm_model_age_seconds", "gauge", "Time since the model in use was published."),
    Metric("streamsvm_cut_seconds", "histogram", "Time that a cut of the stream took.", _SHORT),
    Metric("streamsvm_label_delay_seconds", "histogram", "Event time from an event to its label.", _LONG),
    Metric("streamsvm_feature_drift", "gauge", "Largest shift of a feature's mean, in deviations of the warm-up."),
)


class Health:
    """Whether the loop is alive, and whether it is ready: written by the loop, read by the server."""

    def __init__(self) -> None:
        self._beaten = time.monotonic()
        self._unready: str | None = "starting"

    def beat(self, grace: float = 0.0) -> None:
        """Say that the loop is alive, and that its next beat may come `grace` seconds later than usual."""
        self._beaten = time.monotonic() + grace

    def alive(self, limit_seconds: float) -> bool:
        """Whether the last beat is younger than that."""
        return time.monotonic() - self._beaten < limit_seconds

    def set_ready(self) -> None:
        self._unready = None

    def set_unready(self, reason: str) -> None:
        self._unready = reason

    @property
    def unready(self) -> str | None:
        """Why the daemon is not ready; None if it is."""
        return self._unready


class Histogram(NamedTuple):
    """A histogram is replaced, never changed, so that a reader sees all of an update or nothing."""

    counts: npt.NDArray[np.int64]  # of each bucket alone
    sum: float


class Metrics:
    """Values of the metrics in `METRICS`, each under any number of sets of labels.

    Every method but `render` is for one thread only.

    Raises
    ------
    ValueError
        By any method that is given a name not in `METRICS`, or one of another kind.
    """

    def __init__(self) -> None:
        self._metrics = {metric.name: metric for metric in METRICS}
        self._series: dict[str, dict[Labels, Any]] = {name: {} for name in self._metrics}

    def set(self, name: str, value: float | Callable[[], float], /, **labels: object) -> None:
        """Set a gauge to a number, or to a function that tells it, called by the server at each scrape."""
        self._check(name, "gauge")
        self._series[name][_key(labels)] = value

    def add(self, name: str, value: float = 1, /, **labels: object) -> None:
        """Increase a counter; by 0 to show it before there is anything to count."""
        self._check(name, "counter")
        if value < 0:
            raise ValueError(f"value is {value!r}, but the counter {name} can only increase")
        series, key = self._series[name], _key(labels)
        series[key] = series.get(key, 0) + value

    def begin(self, *names: str, **labels: object) -> None:
        """Show these counters and histograms before there is anything to count."""
        for name in names:
            if self._metrics[name].kind == "histogram":
                self.observe(name, (), **labels)
            else:
                self.add(name, 0, **labels)

    def observe(self, name: str, values: npt.ArrayLike, /, **labels: object) -> None:
        """Add a value, or several at once, to a histogram."""
        bounds = self._check(name, "histogram").buckets
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
        series, key = self._series[name], _key(labels)
        counts = np.bincount(np.searchsorted(bounds, numbers), minlength=len(bounds) + 1)
        before = series.get(key, Histogram(np.zeros_like(counts), 0.0))
        series[key] = Histogram(before.counts + counts, before.sum + float(numbers.sum()))

    def drop(self, **labels: object) -> None:
        """Forget all that has these labels, as when a partition goes to another process."""
        gone = set(_key(labels))
        for series in self._series.values():
            for key in [key for key in series if gone <= set(key)]:
                del series[key]

    def render(self) -> str:
        """All values in Prometheus' text format, version 0.0.4; by any thread."""
        lines: list[str] = []
        for name, metric in self._metrics.items():
            series = self._series[name].copy()  # one step of the interpreter, whatever the loop does meanwhile
            if series:
                lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
            for labels, value in sorted(series.items()):
                if isinstance(value, Histogram):
                    lines += _histogram_samples(metric, labels, value)
                else:
                    lines.append(_sample(name, labels, value() if callable(value) else value))
        return "".join(line + "\n" for line in lines)

    def _check(self, name: str, kind: Kind) -> Metric:
        metric = self._metrics.get(name)
        if metric is None:
            raise ValueError(f"name is {name!r}, which METRICS does not declare")
        if metric.kind != kind:
            raise ValueError(f"name is {name!r}, which is a {metric.kind} and no {kind}")
        return metric


def _key(labels: dict[str, object]) -> Labels:
    return tuple(sorted((name, str(value)) for name, value in labels.items()))


def _histogram_samples(metric: Metric, labels: Labels, histogram: Histogram) -> list[str]:
    bounds, totals = (*metric.buckets, math.inf), histogram.counts.cumsum().tolist()
    return [
        *(
            _sample(f"{metric.name}_bucket", (*labels, ("le", _number(bound))), total)
            for bound, total in zip(bounds, totals, strict=True)
        ),
        _sample(f"{metric.name}_sum", labels, histogram.sum),
        _sample(f"{metric.name}_count", labels, totals[-1]),
    ]


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{inside}}} {_number(value)}" if inside else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if isinstance(value, int | np.integer) else repr(float(value))


class Refused(Exception):  # noqa: N818 - never seen outside
    """A request that is answered by an error."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Request(io.RawIOBase):
    """The bytes of a request as they come in: at most so many, and all of them within a time.

    Parameters
    ----------
    connection
        Where they come from.
    seconds
        From now until the last byte.
    n_bytes
        Of the request line and the headers.
    """

    def __init__(self, connection: socket.socket, seconds: float, n_bytes: int) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + seconds
        self._n_left = n_bytes

    def expect_body(self, n_bytes: int) -> None:
        """Take so many bytes more; the time stays the same."""
        self._n_left = n_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        if self._n_left <= 0:
            raise http.client.HTTPException("the headers are too long")
        self._connection.settimeout(left)
        n_read = self._connection.recv_into(memoryview(buffer)[: self._n_left])
        self._n_left -= n_read
        return n_read


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the request of a connection to an `HTTPServer`."""

    server: "HTTPServer"
    server_version = f"streamsvm/{__version__}"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        limits = self.server.limits
        self._request = _Request(self.connection, limits.request_seconds, limits.header_bytes)
        self.rfile.close()
        self.rfile = io.BufferedReader(self._request)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except http.client.HTTPException:  # of the request line; too long headers are answered there
            self.requestline = self.request_version = self.command = ""
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)

    def send_response(self, code: int, message: str | None = None) -> None:
        self.connection.settimeout(self.server.limits.request_seconds)  # for the client to take the answer
        super().send_response(code, message)

    def json_body(self, n_bytes: int) -> dict[str, Any]:
        """The JSON object that is the request's body.

        Parameters
        ----------
        n_bytes
            The most that it may have.

        Raises
        ------
        Refused
            If it is missing, too long, too slow or something else.
        """
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length must say how long the body is")
        if len(length) > 9 or int(length) > n_bytes:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {n_bytes} bytes")
        self._request.expect_body(int(length))
        try:
            body = json.loads(self.rfile.read(int(length)))
        except TimeoutError:
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body took too long") from None
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body must be a JSON object")
        return body

    def log_message(self, *_: object) -> None:
        """Requests are not logged: an address may have a secret."""


def is_own_name(host: str, names: Iterable[str]) -> bool:
    """Whether a Host header has an address, which no foreign name service can point here, or one of our own names."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name in ("localhost", *map(str.lower, names)):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class HTTPServer(socketserver.ThreadingTCPServer):  # that of http.server asks the name service for its own name first
    """An HTTP server on a thread of its own, with another one for each connection.

    Parameters
    ----------
    host
        Address to listen on.
    port
        0 for one that is free, see `port`.
    handler
        Answers requests.
    limits
        What a client may take of us; its `host` and `port` do not matter.

    Raises
    ------
    OSError
        If the address cannot be had; the message names it.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 50

    def __init__(self, host: str, port: int, handler: type[Handler], limits: HttpSettings) -> None:
        self.limits = limits
        self._places = threading.BoundedSemaphore(limits.connections)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), handler)
        except OSError as error:
            raise OSError(f"cannot listen on {host}, port {port}: {error}") from error
        self._thread = threading.Thread(target=self.serve_forever, args=(_POLL_SECONDS,), name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self.server_address[1])

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """Serve no more, and give the address back."""
        if self._thread.is_alive():
            self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on another thread, or say at once that there are too many of them."""
        if not self._places.acquire(blocking=False):
            request.settimeout(0)
            with suppress(OSError):
                request.send(_FULL)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # the thread has not begun
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):  # which is a client that went away
            logger.exception("a request failed")


class Server:
    """``/metrics``, ``/healthz`` and ``/readyz`` over HTTP, inside a ``with`` block.

    Parameters
    ----------
    health
        What ``/healthz`` and ``/readyz`` say.
    metrics
        What ``/metrics`` says.
    settings
        The address, the names that it answers to, and what a client may take; port 0 is one that is free, see `port`.
    limit_seconds
        Age of the last beat from which on ``/healthz`` says 503.

    Raises
    ------
    OSError
        If the address cannot be had.
    """

    def __init__(
        self, health: Health, metrics: Metrics, settings: HttpSettings | None = None, *, limit_seconds: float = 60.0
    ) -> None:
        metrics.set("streamsvm_build_info", 1, version=__version__, python=platform.python_version())
        metrics.set("streamsvm_up", lambda: health.alive(limit_seconds))
        metrics.set("streamsvm_ready", lambda: health.unready is None)
        self._server = _HealthServer(health, metrics, settings or HttpSettings(), limit_seconds)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._server.port

    def __enter__(self) -> "Server":
        self._server.start()
        logger.info("serving /metrics, /healthz and /readyz on %s, port %d", *self._server.server_address[:2])
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()


class _HealthServer(HTTPServer):
    def __init__(self, health: Health, metrics: Metrics, settings: HttpSettings, limit_seconds: float) -> None:
        self.health = health
        self.metrics = metrics
        self.limit_seconds = limit_seconds
        super().__init__(settings.host, settings.port, _Handler, settings)
        self._is_local = ipaddress.ip_address(str(self.server_address[0])).is_loopback

    def answers_to(self, host: str | None) -> bool:
        """Whether a request with this Host header is for us.

        Another site may point its own name here (DNS rebinding); its page could then read this server's answers.
        No browser leaves the header out.
        """
        is_open = not self._is_local and not self.limits.names
        return host is None or is_open or is_own_name(host, (self.limits.host, *self.limits.names))


class _Handler(Handler):
    server: _HealthServer

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command not in ("GET", "HEAD"):
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD\n")
            return False
        if not self.server.answers_to(self.headers.get("Host")):
            self._answer(
                HTTPStatus.FORBIDDEN, "this server is not known by that name: use its address, or http.names\n"
            )
            return False
        return True

    def do_GET(self) -> None:
        metrics, health, limit = self.server.metrics, self.server.health, self.server.limit_seconds
        match self.path.partition("?")[0]:
            case "/metrics":
                self._show(metrics)
            case "/healthz" if health.alive(limit):
                self._answer(HTTPStatus.OK, "alive\n")
            case "/healthz":
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"the loop has not beaten for {limit:g} seconds\n")
            case "/readyz":
                reason = health.unready
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK, f"{reason or 'ready'}\n")
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "there are /metrics, /healthz and /readyz\n")

    def _show(self, metrics: Metrics) -> None:
        try:
            text = metrics.render()
        except Exception as error:  # of a gauge that is a function
            logger.exception("a request failed")
            self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"the metrics failed: {type(error).__name__}\n")
        else:
            self._answer(HTTPStatus.OK, text, "text/plain; version=0.0.4; charset=utf-8")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: HTTPStatus, text: str, content_type: str = "text/plain; charset=utf-8") -> None:
        body = text.encode(errors="replace")  # a file's name in a reason may be no text
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
