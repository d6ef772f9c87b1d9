"""The server that Label Studio calls, as an "ML backend" of a project and as the target of its webhooks."""

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from ...logs.transport import Unavailable
from ...runtime.http import Handler, HTTPServer, Refused
from ...settings.sections import Settings
from ..book import UnknownQuestion
from .interface import MODEL

_MAX_BODY = 16 << 20  # bytes of a request, which may hold many tasks

Route = Callable[[Mapping[str, Any]], Any]
Page = Callable[[], Any]


class Server(HTTPServer):
    """Answers Label Studio's requests.

    Parameters
    ----------
    settings
        The configuration: labelling.host and labelling.port.
    auth
        "USER:PASSWORD" that every request must carry (basic authentication), or a token: the header Authorization is
        then "Bearer TOKEN" or "Token TOKEN", or has it as a password.  None: nothing is required.
    routes
        What handles the body of a POST request, by path; its result is the reply.
    pages
        What replies to a GET request, by path, beside /health.
    """

    def __init__(
        self, settings: Settings, auth: str | None, routes: Mapping[str, Route], pages: Mapping[str, Page]
    ) -> None:
        self.routes = routes
        self.pages = {"/": _health, "/health": _health, **pages}
        self.auth = auth
        super().__init__(settings.labelling.host, settings.labelling.port, _Handler, settings.http)


def is_secret(header: str, secret: str) -> bool:
    """Whether the header Authorization carries the secret: "USER:PASSWORD", or a token, which has no colon."""
    scheme, _, given = header.partition(" ")
    if scheme == "Basic":
        try:
            given = base64.b64decode(given, validate=True).decode(errors="replace")
        except ValueError:
            return False
        given = given if ":" in secret else given.partition(":")[2]
    elif scheme not in ("Bearer", "Token") or ":" in secret:
        return False
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def _health() -> dict[str, str]:
    return {"status": "UP", "model_class": MODEL}


class _Handler(Handler):
    server: Server

    def do_GET(self) -> None:  # noqa: N802 - a name of http.server's
        page = self.server.pages.get(self.path.partition("?")[0])
        if not self._is_welcome():
            return
        if page is None:
            self._not_found()
        else:
            self._answer(HTTPStatus.OK, page())

    def do_POST(self) -> None:  # noqa: N802 - a name of http.server's
        route = self.server.routes.get(self.path.partition("?")[0])
        if not self._is_welcome() or (body := self._body()) is None:
            return
        if route is None:
            self._not_found()
            return
        try:
            self._answer(HTTPStatus.OK, route(body) or {"status": "ok"})
        except (Unavailable, UnknownQuestion) as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": f"Label Studio sends no such request: {error!r:.200}"})

    def _is_welcome(self) -> bool:
        """Refuse pages in a browser, which name their origin, and requests without the password."""
        given = self.headers.get("Authorization", "")
        if self.headers.get("Origin") is not None:
            self._answer(HTTPStatus.FORBIDDEN, {"error": "this server is for Label Studio, not for browsers"})
        elif self.server.auth is not None and not is_secret(given, self.server.auth):
            self._answer(HTTPStatus.UNAUTHORIZED, {"error": "the password or the token is wrong"})
        else:
            return True
        return False

    def _body(self) -> Mapping[str, Any] | None:
        try:
            return self.json_body(_MAX_BODY)
        except Refused as refusal:
            self._answer(refusal.status, {"error": str(refusal)})
            return None

    def _not_found(self) -> None:
        paths = ", ".join([*self.server.pages, *self.server.routes])
        self._answer(HTTPStatus.NOT_FOUND, {"error": f"this server has only {paths}"})

    def _answer(self, status: HTTPStatus, content: Any) -> None:
        wanted = {"WWW-Authenticate": 'Basic realm="streamsvm"'} if status == HTTPStatus.UNAUTHORIZED else {}
        self.reply(status, json.dumps(content).encode(), "application/json", wanted)
