"""The server that Label Studio calls, as an "ML backend" of a project and as the target of its webhooks."""

import base64
import hmac
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
        super().__init__(settings.labelling.host, settings.labelling.port, _Handler, settings.http.connections)


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
        self._answer(lambda: self._found(self.server.pages)())

    def do_POST(self) -> None:  # noqa: N802 - a name of http.server's
        self._answer(self._taken)

    def _taken(self) -> Any:
        body = self.json_body(_MAX_BODY)
        return self._found(self.server.routes)(body) or {"status": "ok"}

    def _found(self, at: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
        found = at.get(self.path.partition("?")[0])
        if found is None:
            paths = ", ".join([*self.server.pages, *self.server.routes])
            raise Refused(HTTPStatus.NOT_FOUND, f"this server has only {paths}")
        return found

    def _check_sender(self) -> None:
        """Refuse pages in a browser, which name their origin, and requests without the password."""
        given = self.headers.get("Authorization", "")
        if self.headers.get("Origin") is not None:
            raise Refused(HTTPStatus.FORBIDDEN, "this server is for Label Studio, not for browsers")
        if self.server.auth is not None and not is_secret(given, self.server.auth):
            raise Refused(HTTPStatus.UNAUTHORIZED, "the password or the token is wrong")

    def _answer(self, respond: Callable[[], Any]) -> None:
        status, wanted = HTTPStatus.OK, {}
        try:
            self._check_sender()
            content = respond()
        except Refused as refusal:
            status, content = refusal.status, {"error": str(refusal)}
        except (Unavailable, UnknownQuestion) as error:
            status, content = HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            status = HTTPStatus.BAD_REQUEST
            content = {"error": f"Label Studio sends no such request: {error!r:.200}"}
        if status == HTTPStatus.UNAUTHORIZED:
            wanted = {"WWW-Authenticate": 'Basic realm="streamsvm"'}
        self.reply_json(status, content, wanted)
