"""An HTTP server that bounds what a client may take: connections, time and bytes.

Each connection carries one request.
"""

import http.client
import http.server
import io
import ipaddress
import json
import logging
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import urlsplit

from streamsvm import __version__

from .process import POLL_SECONDS

logger = logging.getLogger(__name__)

REQUEST_SECONDS = 10.0  # that a client has to send a whole request, and then to take the answer
HEADER_BYTES = 32 << 10  # of a request line with its headers

_FULL = (
    b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 21\r\nRetry-After: 1\r\n"
    b"Connection: close\r\n\r\ntoo many connections\n"
)


class Refused(Exception):  # noqa: N818 - never seen outside
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Request(io.RawIOBase):
    """The bytes of a request as they come in, limited in number and in time.

    Parameters
    ----------
    connection
        The client's socket.
    seconds
        Time for the whole request, from now on.
    n_bytes
        Size of the request line with the headers.
    """

    def __init__(self, connection: socket.socket, seconds: float, n_bytes: int) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + seconds
        self._n_left = n_bytes

    def expect_body(self, n_bytes: int) -> None:
        """Take this many bytes more; the time stays the same."""
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
        self._request = _Request(self.connection, REQUEST_SECONDS, HEADER_BYTES)
        self.rfile.close()
        self.rfile = io.BufferedReader(self._request)

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except http.client.HTTPException:  # The request line is too long; super() answers too long headers itself.
            self.requestline = self.request_version = self.command = ""
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)

    def send_response(self, code: int, message: str | None = None) -> None:
        self.connection.settimeout(REQUEST_SECONDS)
        super().send_response(code, message)

    def json_body(self, n_bytes: int) -> dict[str, Any]:
        """The request's body, a JSON object.

        Parameters
        ----------
        n_bytes
            Size of the largest body that is accepted.

        Raises
        ------
        Refused
            If the body is missing, too long, too slow or not a JSON object.
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

    def reply(
        self, status: HTTPStatus, body: bytes, content_type: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Send an answer."""
        self.send_response(status)
        for name, value in {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def reply_json(
        self, status: HTTPStatus, content: Mapping[str, Any], headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Send an answer in JSON."""
        self.reply(status, json.dumps(content).encode(), "application/json", headers)

    def log_message(self, *_: object) -> None:
        """Log no requests, because an address may hold a secret."""


def is_own_name(host: str, names: Iterable[str]) -> bool:
    """Whether a Host header holds one of our names, or an address, which no foreign name service can point here."""
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


class HTTPServer(socketserver.ThreadingTCPServer):  # http.server's class asks the name service for its own name.
    """An HTTP server on a thread of its own, with another one for each connection.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0: any free one, see the attribute `port`.
    handler
        Answers requests.
    connections
        Number of connections at once.

    Raises
    ------
    OSError
        If the server cannot listen on the address; the message names it.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 50

    def __init__(self, host: str, port: int, handler: type[Handler], connections: int) -> None:
        self._places = threading.BoundedSemaphore(connections)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), handler)
        except OSError as error:
            raise OSError(f"cannot listen on {host}, port {port}: {error}") from error
        self._thread = threading.Thread(target=self.serve_forever, args=(POLL_SECONDS,), name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self.server_address[1])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving, and free the address."""
        if self._thread.is_alive():
            self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on another thread, or refuse at once if there are too many connections."""
        if not self._places.acquire(blocking=False):
            request.settimeout(0)
            with suppress(OSError):
                request.send(_FULL)
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # The thread has not begun.
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), OSError):  # An OSError is a client that went away.
            logger.exception("a request failed")
