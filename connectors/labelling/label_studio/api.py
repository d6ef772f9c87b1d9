"""Calls of Label Studio's REST API."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from streamsvm import __version__

from ...logs.transport import AccessDenied, Unavailable
from ...settings.sections import ConfigError

_REQUEST_SECONDS = 30.0  # an import of many tasks takes Label Studio long


class Gone(LookupError):  # noqa: N818 - named for the condition
    """Label Studio does not have what was asked for."""


class RequestRefused(RuntimeError):  # noqa: N818 - named for the condition
    """Label Studio rejects what it was sent."""


class Api:
    """Label Studio's REST API.

    Parameters
    ----------
    url
        Address of Label Studio.
    token
        A personal access token, or a legacy token of a user.

    Raises
    ------
    ConfigError
        If `url` is not an http or https address.
    """

    def __init__(self, url: str, token: str) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise ConfigError(f"--label-studio {url!r} must be an address such as http://localhost:8080")
        self._url = url.rstrip("/")
        self._token = token
        self._is_personal = token.count(".") == 2  # a JSON web token, which is exchanged for an access token
        self._access: str | None = None
        self._opener = urllib.request.build_opener(_NoRedirects)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return Label Studio's answer.

        Raises
        ------
        Unavailable
            If Label Studio does not answer, or reports a failure of its own.
        AccessDenied
            If Label Studio does not accept the token.
        Gone
            If there is nothing at `path`.
        RequestRefused
            If Label Studio rejects the request.
        ConfigError
            If Label Studio redirects to another address.
        """
        try:
            return self._call(method, path, body, self._authorization())
        except AccessDenied:
            if self._access is None:
                raise
        self._access = None  # access tokens expire after a few minutes
        return self._call(method, path, body, self._authorization())

    def _authorization(self) -> str:
        if not self._is_personal:
            return f"Token {self._token}"
        if self._access is None:
            answer = self._call("POST", "/api/token/refresh", {"refresh": self._token}, None)
            self._access = str(member(answer, "access", str))
        return f"Bearer {self._access}"

    def _call(self, method: str, path: str, body: Any, authorization: str | None) -> Any:
        headers = {"Content-Type": "application/json", "User-Agent": f"streamsvm/{__version__}"}
        if authorization is not None:
            headers["Authorization"] = authorization
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)  # noqa: S310 - see __init__
        try:
            with self._opener.open(request, timeout=_REQUEST_SECONDS) as response:
                content = response.read()
            return json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            raise self._translated(error, f"{method} {path}") from None
        except urllib.error.URLError as error:
            raise Unavailable(f"Label Studio at {self._url} does not answer: {error.reason}") from None
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise Unavailable(f"Label Studio at {self._url} gives no valid answer: {error}") from None

    def _translated(self, error: urllib.error.HTTPError, what: str) -> Exception:
        detail = error.read(500).decode(errors="replace")
        if error.code in (401, 403):
            return AccessDenied(f"Label Studio denies access, check --token-file: {what}: {error.code} {detail}")
        if error.code == 404:
            return Gone(f"Label Studio has no {what}")
        if 300 <= error.code < 400:
            where = error.headers.get("Location")
            return ConfigError(f"Label Studio has another address, correct --label-studio: {what} leads to {where}")
        if error.code >= 500 or error.code == 429:
            return Unavailable(f"Label Studio reports a failure: {what}: {error.code} {detail}")
        return RequestRefused(f"Label Studio rejects {what}: {error.code} {detail}")


def member(answer: Any, name: str, kind: type) -> Any:
    """A member of an answer of Label Studio; raises `Unavailable` if it is missing or has another type."""
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise Unavailable(f"Label Studio gives no valid answer: there is no {name!r} in {answer!r:.200}")
    return value


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would send the token to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


def time_of(annotation: Mapping[str, Any]) -> float:
    """Time of an annotation in seconds since the epoch; 0 if it is unknown."""
    text = annotation.get("updated_at") or annotation.get("created_at")
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
