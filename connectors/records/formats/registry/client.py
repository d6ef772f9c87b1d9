"""Calls of a schema registry's REST API.

Routes: `GET /schemas/ids/{id}` and `GET /subjects/{subject}/versions/{version}`, as Confluent documents them.
"""

import base64
import http.client
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import quote

from streamsvm import __version__

from ....logs.transport import AccessDenied, Unavailable
from ....runtime.numbers import MAX_INT32

_ANSWER_BYTES = 10 << 20  # of an answer
_NOT_FOUND = {40401: "subject", 40402: "version", 40403: "schema"}


class Place(NamedTuple):
    """Where a registry is, and how to ask it."""

    url: str
    user: str = ""
    password: str = ""
    seconds: float = 10.0  # for an answer


class Unknown(LookupError):  # noqa: N818 - named for the condition
    """The registry does not have what was asked for."""


class Reference(NamedTuple):
    """A schema that another one refers to by a name."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    """A schema as the registry has it."""

    kind: str  # AVRO, PROTOBUF or JSON
    text: str
    references: tuple[Reference, ...]


class Client:
    """Asks a registry.

    Parameters
    ----------
    place
        The registry.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        # No handler of files, of FTP or of redirects: only this address is asked.
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            self._opener.add_handler(handler)

    def by_id(self, id_: int, format: str = "") -> Schema:
        """The schema with an id; `format` as in `referred`.

        Raises
        ------
        Unknown
            If the registry has no such schema.
        Unavailable
            If it gives no valid answer.
        AccessDenied
            If it refuses us.
        """
        return _schema(self._get(f"/schemas/ids/{id_}{_query(format)}"))

    def answers(self) -> bool:
        """Whether the registry answers a question about another schema."""
        try:
            self.by_id(MAX_INT32)  # which no registry has given to a schema yet
        except Unknown:
            pass
        except (AccessDenied, Unavailable):
            return False
        return True

    def referred(self, reference: Reference, format: str = "") -> Schema:
        """A schema that another one refers to, in a format: ``"serialized"`` is a descriptor of Protobuf in base64."""
        subject = quote(reference.subject, safe="")
        return _schema(self._get(f"/subjects/{subject}/versions/{reference.version}{_query(format)}"))

    def _get(self, path: str) -> Any:
        place = self._place
        headers = {
            "Accept": "application/vnd.schemaregistry.v1+json, application/json",
            "User-Agent": f"streamsvm/{__version__}",
        }
        if place.user:
            credentials = base64.b64encode(f"{place.user}:{place.password}".encode()).decode()
            headers["Authorization"] = f"Basic {credentials}"
        request = urllib.request.Request(place.url.rstrip("/") + path, headers=headers)  # noqa: S310 - see __init__
        try:
            with self._opener.open(request, timeout=place.seconds) as response:
                content = response.read(_ANSWER_BYTES + 1)
            if len(content) > _ANSWER_BYTES:
                raise ValueError(f"it has more than {_ANSWER_BYTES} bytes")
            return json.loads(content)
        except urllib.error.HTTPError as error:
            with error:
                raise self._translated(error, path) from None
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise Unavailable(f"the schema registry at {place.url} gives no valid answer: {path}: {error}") from None

    def _translated(self, error: urllib.error.HTTPError, path: str) -> Exception:
        detail = error.read(500).decode(errors="replace")
        what = f"the schema registry at {self._place.url} answers {error.code} to {path}: {detail}"
        if error.code in (401, 403):
            return AccessDenied(f"{what}: check schema.user and schema.password")
        missing = _NOT_FOUND.get(_code(detail), "") if error.code == 404 else ""
        if missing:
            return Unknown(f"the schema registry has no such {missing}: {path}")
        return Unavailable(f"{what}: check schema.registry" if error.code < 500 and error.code != 429 else what)


def _query(format: str) -> str:
    return f"?format={format}" if format else ""


def _code(detail: str) -> int:
    """The registry's own code of an error; 0 if it is missing, so the answer is not the registry's."""
    try:
        code = json.loads(detail)["error_code"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return 0
    return code if type(code) is int else 0


def _schema(answer: Any) -> Schema:
    try:
        kind, text = answer.get("schemaType", "AVRO"), answer["schema"]
        references = tuple(
            Reference(str(item["name"]), str(item["subject"]), int(item["version"]))
            for item in answer.get("references") or ()
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise Unavailable(f"the schema registry gives no valid answer: {answer!r:.200}: {error!r}") from None
    if not isinstance(text, str):
        raise Unavailable(f"the schema registry gives no valid answer: 'schema' must be text: {answer!r:.200}")
    return Schema(str(kind), text, references)
