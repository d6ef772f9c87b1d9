"""Label Studio as the desk: it shows the questions that the trainer has chosen, and its annotations are the answers.

Questions become tasks over Label Studio's REST API.  The other way round we are an "ML backend" of its project, or the
target of its webhooks (Label Studio 1.x, see labelstud.io/guide/ml_create and labelstud.io/guide/webhook_reference):

=================  =====================================================================================================
``GET /health``    That we are here.
``POST /setup``    Label Studio connects; the labels of the project are checked.
``POST /predict``  What the model said of each task when it was asked.
``POST /webhook``  ANNOTATION_CREATED and ANNOTATION_UPDATED are answers and corrections, ANNOTATION_DELETED (or
                   ANNOTATIONS_DELETED) takes one back, a cancelled annotation is a skip.
=================  =====================================================================================================

Webhooks that are lost, for Label Studio sends them once, are made up for: at the start, and every few minutes, all
annotations of the project are read, and those that were heard before change nothing.

The data of a task has what the event has, for the labelling interface (``$text``), and of ours ``query_id``,
``event_id``, ``partition``, ``x`` (for a Table), ``score``, ``margin``, ``reason`` and ``streamsvm``, which tells whose
task it is.  A question that is withdrawn takes its task along, unless somebody has begun with it.
"""

import base64
import hmac
import http.client
import json
import logging
import math
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from streamsvm import __version__

from ..logs.transport import AccessDenied, Unavailable
from ..runtime.http import Handler, HTTPServer, Refused
from ..runtime.process import POLL_SECONDS, Stop
from ..settings.sections import ConfigError, LabelSettings, Settings
from .oracles import read_label
from .service import LabellingService, Place, Shown, UnknownQuestion

logger = logging.getLogger(__name__)

MODEL = "streamsvm"  # name of the model's version, as Label Studio shows it
EXAMPLE = """<View><Table name="record" value="$x"/>
<Choices name="label" toName="record"><Choice value="{0}"/><Choice value="{1}"/></Choices></View>"""

_SYNC_SECONDS = 300.0
_RETRY_SECONDS = 5.0
_REQUEST_SECONDS = 30.0
_PAGE = 100  # tasks
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_WORDS = {"positive": True, "yes": True, "negative": False, "no": False}


class _Gone(LookupError):  # noqa: N818 - named for the condition
    """Label Studio does not have that."""


class _Refused(RuntimeError):  # noqa: N818 - named for the condition
    """Label Studio does not take what it was sent."""


class Api:
    """Label Studio's REST API.

    Parameters
    ----------
    url
        Where Label Studio is.
    token
        A personal access token, or a legacy token of a user.

    Raises
    ------
    ConfigError
        If the URL is none.
    Unavailable
        By `call`, if Label Studio does not answer, or says that the trouble is its own.
    AccessDenied
        By `call`, if it does not know us.
    """

    def __init__(self, url: str, token: str) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise ConfigError([f"--label-studio {url!r} must be an address such as http://localhost:8080"])
        self._url = url.rstrip("/")
        self._token = token
        self._is_personal = token.count(".") == 2  # a JSON web token, for which there is one to work with
        self._access: str | None = None
        self._opener = urllib.request.build_opener(_NoRedirects)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """What Label Studio answers."""
        try:
            return self._call(method, path, body, self._authorization())
        except AccessDenied:
            if self._access is None:
                raise
        self._access = None  # it lives for a few minutes
        return self._call(method, path, body, self._authorization())

    def _authorization(self) -> str:
        if not self._is_personal:
            return f"Token {self._token}"
        if self._access is None:
            answer = self._call("POST", "/api/token/refresh", {"refresh": self._token}, None)
            self._access = str(_member(answer, "access", str))
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
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise Unavailable(f"Label Studio at {self._url} does not answer as it should: {error}") from None

    def _translated(self, error: urllib.error.HTTPError, what: str) -> Exception:
        detail = error.read(500).decode(errors="replace")
        if error.code in (401, 403):
            return AccessDenied(f"Label Studio refuses us, see --token-file: {what}: {error.code} {detail}")
        if error.code == 404:
            return _Gone(f"Label Studio has no {what}")
        if 300 <= error.code < 400:
            return ConfigError([f"Label Studio is elsewhere: {what} leads to {error.headers.get('Location')}"])
        if error.code >= 500 or error.code == 429:
            return Unavailable(f"Label Studio is in trouble: {what}: {error.code} {detail}")
        return _Refused(f"Label Studio refuses {what}: {error.code} {detail}")


def _member(answer: Any, name: str, kind: type) -> Any:
    """A member of what Label Studio answers; raises `Unavailable` if it is missing or of another kind."""
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise Unavailable(f"Label Studio does not answer as it should: no {name!r} in {answer!r:.200}")
    return value


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token is for nobody else."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Task(NamedTuple):
    """A task of ours."""

    id: int
    query_id: str
    place: Place


class _Annotation(NamedTuple):
    """An answer as Label Studio has it."""

    query_id: str
    place: Place
    who: str
    y: bool | None  # None: skipped


class LabelStudio:
    """Keeps a project of Label Studio and the questions together.

    Parameters
    ----------
    service
        Has the questions, takes the answers; inside its own ``with`` block.
    settings
        The configuration: names of the labels, and labelling.host and labelling.port, where Label Studio finds us.
    api
        Where Label Studio is.
    project
        Number of the project.
    auth
        "USER:PASSWORD" that Label Studio gives (basic authentication); None: nobody is asked.

    Raises
    ------
    ConfigError
        If others than this machine could send answers, and nobody is asked for a password.
    """

    def __init__(
        self, service: LabellingService, settings: Settings, api: Api, project: int, auth: str | None = None
    ) -> None:
        host = settings.labelling.host
        if auth is None and host not in _LOOPBACK:
            raise ConfigError([f"labelling.host = {host!r}: give --auth-file, or everybody there could send answers"])
        self._service = service
        self._settings = settings
        self._api = api
        self._project = project
        self._mark = f"{settings.group.id}/{settings.log.questions}"
        self._lock = threading.Lock()  # guards what follows
        self._tasks: dict[int, _Task] = {}
        self._pushed: set[str] = set()  # questions
        self._tidied: set[str] = set()  # questions that are closed
        self._annotations: dict[int, _Annotation] = {}
        self._must_sync = threading.Event()
        self._interface: Interface | None = None
        self._server = _Server(self, settings, auth)

    @property
    def port(self) -> int:
        """Where Label Studio finds us."""
        return self._server.port

    def run(self, stop: Stop) -> None:
        """Push questions and hear answers until `stop` says True.

        Raises
        ------
        ConfigError
            If there is no such project, or its labels are not ours.
        AccessDenied
            If Label Studio refuses us.
        """
        self._server.start()
        try:
            self._work(stop)
        finally:
            self._server.close()

    def _work(self, stop: Stop) -> None:
        complaint = None
        synced_at = -math.inf
        seen = 0
        while not stop():
            self._service.check()
            try:
                if time.monotonic() - synced_at > _SYNC_SECONDS or self._must_sync.is_set():
                    self._must_sync.clear()
                    self._check_project()
                    self._sync()
                    synced_at, seen = time.monotonic(), -1
                now = self._service.wait(POLL_SECONDS, seen)
                if now != seen:
                    self._push()
                    self._tidy()
                seen, complaint = now, None
            except Unavailable as error:
                if str(error) != complaint:
                    logger.warning("%s", error)
                complaint = str(error)
                synced_at = -math.inf
                _pause(_RETRY_SECONDS, stop)

    # --- what Label Studio has ----------------------------------------------------------------------------------------

    def _check_project(self) -> None:
        try:
            project = self._api.call("GET", f"/api/projects/{self._project}/")
        except _Gone:
            raise ConfigError([f"--project {self._project}: Label Studio has no such project, or hides it"]) from None
        self._interface = Interface.read(_member(project, "label_config", str), self._settings.label)
        if self._interface is None:
            names = self._settings.label.positive or "positive", self._settings.label.negative or "negative"
            raise ConfigError(
                [
                    f"--project {self._project}: its labelling interface has no Choices for {names[0]!r} and "
                    f"{names[1]!r}; for example:\n{EXAMPLE.format(*names)}"
                ]
            )

    def _sync(self) -> None:
        """Read all tasks with their annotations, and hear what was not heard."""
        if not self._service.stats()["loaded"]:
            raise Unavailable("the questions are still being read")
        for task in self._list():
            try:
                self._sync_task(task)
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
                logger.warning("passing over a task that is not as Label Studio sends it: %r: %.200r", error, task)

    def _sync_task(self, task: Mapping[str, Any]) -> None:
        ours = self._learn(task.get("id"), task.get("data"))
        if ours is None:
            return
        annotations = sorted(task.get("annotations") or [], key=_time_of)
        for annotation in annotations:
            self._hear(ours, annotation, int(1000 * _time_of(annotation)) or None)
        self._look_for_deletions(ours, {annotation.get("id") for annotation in annotations})

    def _list(self) -> Iterator[dict[str, Any]]:
        page, n_seen = 1, 0
        while True:
            query = urlencode({"project": self._project, "page": page, "page_size": _PAGE, "fields": "all"})
            try:
                answer = self._api.call("GET", f"/api/tasks/?{query}")
            except _Gone:  # behind the last page
                return
            tasks = _member(answer, "tasks", list)
            yield from tasks
            n_seen += len(tasks)
            page += 1
            if not tasks or n_seen >= _member({"total": n_seen, **answer}, "total", int):
                return

    def _learn(self, task_id: Any, data: Any) -> _Task | None:
        """A task, if it is ours."""
        if not isinstance(data, dict) or data.get("streamsvm") != self._mark:
            return None
        try:
            task = _Task(int(task_id), str(data["query_id"]), Place(int(data["partition"]), data["event_id"]))
        except (KeyError, TypeError, ValueError) as error:
            logger.warning("task %s of Label Studio is not as we made it: %r", task_id, error)
            return None
        with self._lock:
            self._tasks[task.id] = task
            self._pushed.add(task.query_id)
        return task

    def _look_for_deletions(self, task: _Task, present: set[Any]) -> None:
        """Take back what was said here and is gone: also before our start, as far as the desk remembers."""
        with self._lock:
            gone = [
                number
                for number, item in self._annotations.items()
                if item.query_id == task.query_id and number not in present
            ]
        for number in gone:
            self._take_back(number)
        last = self._service.last_word(task.query_id)
        if not present and last is not None and last[0] == "set" and last[2].startswith("label-studio:"):
            self._service.retract(task.query_id, last[2], place=task.place)

    # --- questions ----------------------------------------------------------------------------------------------------

    def _push(self) -> None:
        with self._lock:
            new = [shown for shown in self._service.open() if shown.query_id not in self._pushed]
        if not new:
            return
        tasks = [{"data": self._data(shown)} for shown in new]
        try:
            answer = self._api.call("POST", f"/api/projects/{self._project}/import?return_task_ids=true", tasks)
        except (_Refused, _Gone) as error:
            raise ConfigError([str(error)]) from None
        numbers = (answer.get("task_ids") if isinstance(answer, dict) else None) or []
        with self._lock:
            self._pushed |= {shown.query_id for shown in new}
            if isinstance(numbers, list) and [type(number) for number in numbers] == [int] * len(new):
                for number, shown in zip(numbers, new, strict=True):
                    self._tasks[number] = _Task(number, shown.query_id, shown.place)
            else:  # it works on them still
                self._must_sync.set()

    def _data(self, shown: Shown) -> dict[str, Any]:
        return {
            **shown.event,
            "streamsvm": self._mark,
            "query_id": shown.query_id,
            "event_id": shown.id,
            "partition": shown.partition,
            "x": dict(shown.x),
            "score": shown.score,
            "margin": shown.margin,
            "reason": shown.reason,
        }

    def _tidy(self) -> None:
        """Remove tasks whose questions are closed, if nobody has begun with them."""
        still = {shown.query_id for shown in self._service.open()}
        with self._lock:
            answered = {item.query_id for item in self._annotations.values()}
            closed = [task for task in self._tasks.values() if task.query_id not in still | self._tidied]
            self._tidied |= {task.query_id for task in closed}
        for task in closed:
            if task.query_id not in answered:
                self._remove(task)

    def _remove(self, task: _Task) -> None:
        try:
            found = self._api.call("GET", f"/api/tasks/{task.id}/")
            if isinstance(found, dict) and not found.get("annotations") and not found.get("drafts"):
                self._api.call("DELETE", f"/api/tasks/{task.id}/")
        except _Gone:
            pass
        except (Unavailable, _Refused) as error:
            logger.warning("task %d stays in Label Studio: %s", task.id, error)

    # --- answers ------------------------------------------------------------------------------------------------------

    def webhook(self, body: Mapping[str, Any]) -> None:
        """Hear what Label Studio tells.

        Raises
        ------
        Unavailable
            If it cannot be written now; it is read again soon.
        """
        project = body.get("project")
        if isinstance(project, dict) and project.get("id") not in (None, self._project):
            return
        try:
            match body.get("action"):
                case "ANNOTATION_CREATED" | "ANNOTATION_UPDATED":
                    self._hear_live(body["annotation"])
                case "ANNOTATIONS_CREATED":
                    for annotation in body["annotations"]:
                        self._hear_live(annotation)
                case "ANNOTATION_DELETED" | "ANNOTATIONS_DELETED":
                    gone = body.get("annotations") or [body.get("annotation") or body]
                    for annotation in gone:
                        self._take_back(int(annotation["id"]))
        except Unavailable:
            self._must_sync.set()
            raise

    def _hear_live(self, annotation: Mapping[str, Any]) -> None:
        number = annotation["task"]
        with self._lock:
            task = self._tasks.get(number["id"] if isinstance(number, dict) else number)
        if task is None:
            self._must_sync.set()  # it may be ours all the same
        else:
            self._hear(task, annotation, None)

    def _hear(self, task: _Task, annotation: Mapping[str, Any], at: int | None) -> None:
        """Answer with an annotation; `at` if that is when it was made, and not now."""
        if self._interface is None:
            self._must_sync.set()
            return
        user = annotation.get("completed_by")
        who = f"label-studio:{user.get('id') if isinstance(user, dict) else user}"
        if annotation.get("was_cancelled"):
            y = None
        else:
            y = self._interface.label_of(annotation.get("result"))
            if y is None:
                logger.warning("annotation %s of task %d has no label that we know", annotation.get("id"), task.id)
                return
        item = _Annotation(task.query_id, task.place, who, y)
        with self._lock:
            self._annotations[int(annotation["id"])] = item
        self._answer(item, at)

    def _answer(self, item: _Annotation, at: int | None = None) -> None:
        if item.y is None:
            self._service.skip(item.query_id, item.who, at=at, place=item.place)
        else:
            self._service.answer(item.query_id, item.y, item.who, at=at, place=item.place)

    def _take_back(self, number: int) -> None:
        """Of an annotation that is gone; one that is left for the same question holds again."""
        with self._lock:
            item = self._annotations.get(number)
            left = [
                other
                for n, other in self._annotations.items()
                if item and n != number and other.query_id == item.query_id
            ]
        if item is None:
            self._must_sync.set()
            return
        if self._service.last_word(item.query_id) == ("set", item.y, item.who):
            self._service.retract(item.query_id, item.who, place=item.place)
            if left:
                self._answer(left[-1])
        with self._lock:
            self._annotations.pop(number, None)

    def predict(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the model said of tasks."""
        interface = Interface.read(str(body.get("label_config") or ""), self._settings.label) or self._interface
        results = [_prediction(task.get("data") or {}, interface) for task in body.get("tasks") or []]
        return {"results": results, "model_version": MODEL}

    def setup(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Label Studio connects."""
        interface = Interface.read(str(body.get("schema") or ""), self._settings.label)
        if interface is None:
            logger.warning("the labelling interface that Label Studio has sent has no Choices for our labels")
        return {"model_version": MODEL}


def _prediction(data: Mapping[str, Any], interface: "Interface | None") -> dict[str, Any]:
    score = data.get("score")
    if interface is None or not isinstance(score, int | float) or not 0 <= score <= 1:
        return {"result": [], "score": 0.0, "model_version": MODEL}
    choice = {
        "from_name": interface.name,
        "to_name": interface.target,
        "type": "choices",
        "value": {"choices": [interface.choice(score >= 0.5)]},
    }
    return {"result": [choice], "score": max(score, 1 - score), "model_version": MODEL}


def _time_of(annotation: Mapping[str, Any]) -> float:
    """When an annotation was made, in seconds since the epoch; 0 if that is not told."""
    text = annotation.get("updated_at") or annotation.get("created_at")
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _pause(seconds: float, stop: Stop) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stop():
        time.sleep(POLL_SECONDS)


class Interface(NamedTuple):
    """What people choose from in a labelling interface."""

    name: str  # of the Choices tag
    target: str  # of the tag that is labelled
    meanings: dict[str, bool]

    @classmethod
    def read(cls, config: str, labels: LabelSettings) -> "Interface | None":
        """The first Choices tag that has both labels; None if there is none."""
        try:
            root = ElementTree.fromstring(config)  # noqa: S314 - expat limits the growth of entities
        except (ElementTree.ParseError, ValueError):
            return None
        for tag in root.iter("Choices"):
            texts = [choice.get("alias") or choice.get("value") or "" for choice in tag.iter("Choice")]
            meanings = {text: y for text in texts if (y := _meaning(text, labels)) is not None}
            if set(meanings.values()) == {True, False}:
                return cls(tag.get("name") or "", tag.get("toName") or "", meanings)
        return None

    def label_of(self, result: Any) -> bool | None:
        """The label in the result of an annotation; None if there is none, or more than one."""
        labels = {
            self.meanings.get(choice)
            for item in result or []
            if item.get("from_name") == self.name
            for choice in item.get("value", {}).get("choices", [])
        }
        return labels.pop() if len(labels) == 1 else None

    def choice(self, y: bool) -> str:
        """How a label is called."""
        return next(text for text, meaning in self.meanings.items() if meaning is y)


def _meaning(text: str, labels: LabelSettings) -> bool | None:
    known = read_label(text, labels)
    return _WORDS.get(text.strip().lower()) if known is None else known


# --- the server -------------------------------------------------------------------------------------------------------


class _Server(HTTPServer):
    def __init__(self, desk: LabelStudio, settings: Settings, auth: str | None) -> None:
        self.desk = desk
        self.auth = None if auth is None else b"Basic " + base64.b64encode(auth.encode())
        super().__init__(settings.labelling.host, settings.labelling.port, _Handler, settings.http)


class _Handler(Handler):
    server: _Server

    def do_GET(self) -> None:  # noqa: N802 - a name of http.server's
        if not self._is_welcome():
            return
        if self.path.partition("?")[0] in ("/", "/health"):
            self._answer(HTTPStatus.OK, {"status": "UP", "model_class": MODEL})
        else:
            self._answer(HTTPStatus.NOT_FOUND, {"error": "there are /health, /setup, /predict and /webhook"})

    def do_POST(self) -> None:  # noqa: N802 - a name of http.server's
        desk = self.server.desk
        routes: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "/setup": desk.setup,
            "/predict": desk.predict,
            "/webhook": desk.webhook,
        }
        route = routes.get(self.path.partition("?")[0])
        if not self._is_welcome() or (body := self._body()) is None:
            return
        if route is None:
            self._answer(HTTPStatus.NOT_FOUND, {"error": "there are /health, /setup, /predict and /webhook"})
            return
        try:
            self._answer(HTTPStatus.OK, route(body) or {"status": "ok"})
        except (Unavailable, UnknownQuestion) as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)})
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            self._answer(HTTPStatus.BAD_REQUEST, {"error": f"not as Label Studio sends it: {error!r:.200}"})

    def _is_welcome(self) -> bool:
        """No page of a browser, which would name its origin, and nobody without the password."""
        given, auth = self.headers.get("Authorization", "").encode(), self.server.auth
        if self.headers.get("Origin") is not None:
            self._answer(HTTPStatus.FORBIDDEN, {"error": "this is for Label Studio, not for browsers"})
        elif auth is not None and not hmac.compare_digest(given, auth):
            self._answer(HTTPStatus.UNAUTHORIZED, {"error": "the user or the password is wrong"})
        else:
            return True
        return False

    def _body(self) -> Mapping[str, Any] | None:
        try:
            return self.json_body(self.server.limits.body_bytes)
        except Refused as refusal:
            self._answer(refusal.status, {"error": str(refusal)})
            return None

    def _answer(self, status: HTTPStatus, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="streamsvm"')
        self.end_headers()
        self.wfile.write(body)
