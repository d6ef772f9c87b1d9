"""The page on which people answer questions: a small HTTP server, and one HTML file without anything from elsewhere.

========================  ==============================================================================================
``GET /``                 The page, which has no secret and asks for everything below.
``GET /api/next``         ``{"question": {...} or null, "stats": {...}, "labels": [positive, negative], "seen": N}``;
                          with ``?wait=S&seen=N``, once anything is new since N, or after S seconds.
``GET /api/stats``        The stats alone.
``POST /api/answer``      ``{"query_id": ..., "label": one of the labels}``: 200 when the answer is durable.
``POST /api/skip``        ``{"query_id": ...}``: the person cannot tell.
``POST /api/ignore``      ``{"query_id": ...}``: the record is of no use.
``POST /api/undo``        ``{}``: take the last label back; says of which question, or 404.
========================  ==============================================================================================

Requests to ``/api/`` carry the token, as ``Authorization: Bearer TOKEN``.  The header X-Tab says which tab asks, so
that two tabs get different questions, and X-Annotator (percent-encoded) names the person in front of it.  An error is
``{"error": "..."}``.  403 is a wrong token, 503 means: ask again.  A client that heard no reply asks again as well, for
the same answer twice counts once.

The page has the token from the fragment of its address, ``/#token=...``, which browsers send to no server.  It keeps
the token in the storage of its tab and gives it to other tabs of its own origin.  There is no cookie: a browser sends
cookies to every port of a host, so also to a server that an event's image names.  Images are fetched without a referrer
and without the cookies of others (Cross-Origin-Embedder-Policy).

Other pages in the same browser must neither answer nor read: they do not have the token, are refused by their Origin,
and cannot pretend to be this host by a name of their own, since only the host's address, ``localhost`` and the
configured name are believed.  The token stays the same when the server is started again, so that open pages go on.
"""

import base64
import hashlib
import hmac
import html
import importlib.resources
import json
import logging
import math
import re
import secrets
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from ..logs.transport import Unavailable
from ..records.labels import MAX_QUERY_ID
from ..records.questions import Question
from ..runtime.folders import make_private, write_private
from ..runtime.http import Handler, HTTPServer, Refused, is_own_name
from ..settings.sections import LabellingSettings, Settings
from .book import UnknownQuestion
from .service import LabellingService

logger = logging.getLogger(__name__)

MAX_BODY = 4096  # bytes of a request
MAX_WAIT = 20.0  # seconds for a question to come

_CLOSING_SECONDS = 0.5  # for a request that waits to notice the end of the block
_MAX_NAME = 40
_MAX_TABS = 1000  # of which it is known who sits there
_TAB = re.compile(r"[0-9A-Za-z]{1,32}")
_WILDCARDS = ("", "0.0.0.0", "::")  # noqa: S104 - recognised, not chosen
_TOKEN_FILE = "page-key"  # noqa: S105 - a file's name; version 0.1.0 had "page-token", which images may have leaked
_DOOR_FILE = "open-page.html"


class LabellingPage:
    """Serves the page, inside a ``with`` block or between `start` and `close`.

    Parameters
    ----------
    service
        Has the questions, takes the answers; inside its own ``with`` block.
    settings
        The configuration: labelling.host and labelling.port, the fields to show, the names of the labels.  The token
        lies in daemon.state_dir, readable by its owner only.

    Raises
    ------
    OSError
        If the address cannot be had, or the token can neither be read nor written.
    """

    def __init__(self, service: LabellingService, settings: Settings) -> None:
        token = _token(settings.daemon.state_dir)
        self._server = _Server(service, settings, token)
        host = settings.labelling.host
        shown = _own_address(self._server.address_family) if host in _WILDCARDS else host
        shown = f"[{shown}]" if ":" in shown else shown
        self.url = f"http://{shown}:{self._server.port}/#token={token}"
        self._door = settings.daemon.state_dir / _DOOR_FILE

    def door(self) -> str:
        """The address of a file that leads to the page: other users see a browser's arguments, but not this file."""
        target = html.escape(self.url)
        write_private(self._door, f'<!doctype html><meta http-equiv="refresh" content="0; url={target}">\n'.encode())
        return self._door.resolve().as_uri()

    def start(self) -> None:
        """Serve, on a thread of its own."""
        self._server.start()
        logger.info("serving the labelling page on %s, port %d", *self._server.server_address[:2])

    def close(self) -> None:
        """Stop; what was acknowledged is durable."""
        self._door.unlink(missing_ok=True)
        self._server.closing.set()
        self._server.close()

    def __enter__(self) -> "LabellingPage":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _own_address(family: int) -> str:
    """The address of this machine on its network, for a server that listens on all; without a network, its own only.

    Connecting a datagram socket sends nothing; it asks for the way to an address, here one of the documentation's.
    """
    there, loopback = ("2001:db8::1", "::1") if family == socket.AF_INET6 else ("192.0.2.1", "127.0.0.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((there, 9))
        except OSError:
            return loopback
        return str(probe.getsockname()[0])


def _token(folder: Path) -> str:
    """The token of this folder, which is made the first time."""
    path = folder / _TOKEN_FILE
    if path.exists():
        token = path.read_text(encoding="ascii").strip()
        if len(token) >= 32:
            return token
    token = secrets.token_urlsafe(24)
    make_private(folder)
    write_private(path, f"{token}\n".encode())
    return token


def _page() -> tuple[bytes, str]:
    """The page, and a policy under which it can run nothing but its own script and load nothing but images."""
    text = importlib.resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    script, style = (
        f"'sha256-{_digest(text.partition(f'<{tag}>')[2].partition(f'</{tag}>')[0])}'" for tag in ("script", "style")
    )
    rules = {
        "default-src": "'none'",
        "script-src": script,
        "style-src": style,
        "img-src": "http: https: data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
    }
    return text.encode(), "; ".join(f"{name} {value}" for name, value in rules.items())


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def question(shown: Question, labelling: LabellingSettings) -> dict[str, Any]:
    """A question as the page's script takes it: numbers and texts only, each of the kind that it expects."""
    text, image, series = (shown.event.get(name) for name in (labelling.text, labelling.image, labelling.series))
    return {
        "query_id": shown.query_id,
        "id": str(shown.id),  # JavaScript would round a large number
        "x": dict(shown.x),
        "text": text if isinstance(text, str) and text else None,
        "image": image if isinstance(image, str) and image else None,
        "series": series if _is_series(series) else None,
        "margin": shown.margin,
        "score": shown.score,
        "reason": shown.reason,
        "unusual": dict(shown.unusual),
    }


def _is_series(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_number, value))


def _is_number(value: Any) -> bool:
    """Whether it is one to JavaScript too, which knows floats only and takes no NaN from JSON."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


class _Server(HTTPServer):
    request_queue_size = 50

    def __init__(self, service: LabellingService, settings: Settings, token: str) -> None:
        self.service = service
        self.labelling = settings.labelling
        # The positive class first: it is mostly the rare one, and the one that is looked for.
        self.labels = {settings.label.positive or "positive": True, settings.label.negative or "negative": False}
        self.token = token
        self.page, self.policy = _page()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._sitting: dict[str, str] = {}  # by tab, the one that asked last at the end
        super().__init__(settings.labelling.host, settings.labelling.port, _Handler, settings.http)

    def arrive(self, tab: str, who: str) -> str:
        """Whoever sits in front of a tab now; the question of somebody who sat there before is free again."""
        with self._lock:
            before, self._sitting[tab] = self._sitting.pop(tab, who), who
            if len(self._sitting) > _MAX_TABS:
                del self._sitting[next(iter(self._sitting))]
        if before != who:
            self.service.release(before)
        return who


class _Handler(Handler):
    server: _Server

    # --- what is there ------------------------------------------------------------------------------------------------

    def do_GET(self) -> None:  # noqa: N802 - a name of http.server's
        self._guarded(self._get)

    def _get(self) -> None:
        routes = {"/api/next": self._next, "/api/stats": self._stats}
        path = self._address().path
        if path == "/":
            self._show_page()
        elif path in routes:
            self._send_json(HTTPStatus.OK, routes[path]())
        else:
            self._not_found()

    def do_POST(self) -> None:  # noqa: N802 - a name of http.server's
        routes = {
            "/api/answer": self._answer,
            "/api/skip": lambda body: self._without_label(self.server.service.skip, body),
            "/api/ignore": lambda body: self._without_label(self.server.service.ignore, body),
            "/api/undo": self._undo,
        }
        route = routes.get(self.path)
        if route is None:
            self._guarded(self._not_found)
        else:
            self._guarded(lambda: self._send_json(HTTPStatus.OK, route(self._body())))

    def _show_page(self) -> None:
        self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")

    def _next(self) -> dict[str, Any]:
        who, service = self._who(), self.server.service
        patience = min(MAX_WAIT, self.server.labelling.lease_seconds / 3)  # each look prolongs the lease
        deadline, seen = time.monotonic() + self._number("wait", patience), int(self._number("seen"))
        while service.wait(0) == seen and not self.server.closing.is_set() and time.monotonic() < deadline:
            service.wait(min(deadline - time.monotonic(), _CLOSING_SECONDS), seen)
        self._check_connection()
        seen = service.wait(0)  # before the rest, of which nothing may be missed
        shown = service.next(who)
        return {
            "question": None if shown is None else question(shown, self.server.labelling),
            "stats": service.stats(),
            "labels": list(self.server.labels),
            "seen": seen,
        }

    def _check_connection(self) -> None:
        """A page that waits no more must not get a question: it would be kept from others."""
        if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionAbortedError("the client went away")

    def _stats(self) -> dict[str, Any]:
        return self.server.service.stats()

    def _answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        label = body.get("label")
        if not isinstance(label, str) or label not in self.server.labels:
            known = ", ".join(map(repr, self.server.labels))
            raise Refused(HTTPStatus.BAD_REQUEST, f"label must be one of {known}, got {label!r:.100}")
        y = self.server.labels[label]
        return {"outcome": self.server.service.answer(_query_id(body), y, self._who())}

    def _without_label(self, say: Callable[[str, str], str], body: Mapping[str, Any]) -> dict[str, Any]:
        return {"outcome": say(_query_id(body), self._who())}

    def _undo(self, _: Mapping[str, Any]) -> dict[str, Any]:
        query_id = self.server.service.undo(self._who())
        if query_id is None:
            raise Refused(HTTPStatus.NOT_FOUND, "no answer of the last minute, or another annotator has changed it")
        return {"query_id": query_id}

    def _not_found(self) -> None:
        raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")

    # --- what is asked ------------------------------------------------------------------------------------------------

    def _who(self) -> str:
        tab = self.headers.get("X-Tab", "")
        if not _TAB.fullmatch(tab):
            raise Refused(HTTPStatus.BAD_REQUEST, "the header X-Tab must be 1 to 32 letters or digits")
        name = unquote(self.headers.get("X-Annotator", ""), errors="replace")
        name = "".join(character for character in name if character.isprintable()).strip()[:_MAX_NAME]
        return self.server.arrive(tab, f"page:{name}#{tab[:8]}")

    def _address(self) -> SplitResult:
        try:
            return urlsplit(self.path)
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "this is no address") from None

    def _number(self, name: str, most: float = math.inf) -> float:
        """A parameter of the address; -1 if there is none, and never above `most`."""
        given = parse_qs(self._address().query).get(name, ["-1"])[0]
        if not re.fullmatch(r"-1|\d{1,9}", given):
            raise Refused(HTTPStatus.BAD_REQUEST, f"{name} must be a whole number, got {given!r:.100}")
        return min(float(given), most)

    def _body(self) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")
        return self.json_body(MAX_BODY)

    # --- who may ask --------------------------------------------------------------------------------------------------

    def _guarded(self, respond: Callable[[], None]) -> None:
        try:
            self._check_sender()
            respond()
        except Refused as refusal:
            self._send_error(refusal.status, str(refusal))
        except UnknownQuestion as error:
            self._send_error(HTTPStatus.NOT_FOUND, str(error))
        except Unavailable as error:
            self._send_error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except OSError:
            raise  # the client went away
        except Exception as error:
            logger.exception("a request failed")
            self._send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"the server failed: {type(error).__name__}")

    def _check_sender(self) -> None:
        host = self.headers.get("Host", "")
        if not is_own_name(host, (self.server.labelling.host,)):
            raise Refused(HTTPStatus.FORBIDDEN, "this server is not known by that name: use its address")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise Refused(HTTPStatus.FORBIDDEN, "another page must not ask")
        if self._address().path != "/" and not self._has_token():
            raise Refused(HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the address that was printed")

    def _has_token(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(errors="replace"), self.server.token.encode())

    # --- replies ------------------------------------------------------------------------------------------------------

    def _send_json(self, status: HTTPStatus, content: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(content, ensure_ascii=True).encode(), "application/json")

    def _send_error(self, status: HTTPStatus, reason: str) -> None:
        if self.path.startswith("/api/"):
            self._send_json(status, {"error": reason})
        else:
            self._send(status, f"{reason}\n".encode(errors="replace"), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": self.server.policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",  # images come from elsewhere
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Embedder-Policy": "credentialless",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _query_id(body: Mapping[str, Any]) -> str:
    query_id = body.get("query_id")
    if not isinstance(query_id, str) or not 0 < len(query_id) <= MAX_QUERY_ID:
        raise Refused(HTTPStatus.BAD_REQUEST, f"query_id must be the id of a question, got {query_id!r:.100}")
    return query_id
