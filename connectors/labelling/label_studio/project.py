"""Keeps the questions and the tasks of a Label Studio project together.

Questions become tasks over Label Studio's REST API. In the other direction, Label Studio 1.x calls this process, as an
"ML backend" of its project or with webhooks (labelstud.io/guide/ml_create, labelstud.io/guide/webhook_reference):

=================  =====================================================================================================
``GET /health``    Says that this process is running.
``GET /versions``  The version of the models in use.
``POST /setup``    Label Studio connects; the labels of the project are checked.
``POST /predict``  Returns a prediction of each task by the newest published models; without log.model, the one of the
                   time when its question was asked.
``POST /webhook``  ANNOTATION_CREATED and ANNOTATION_UPDATED are answers and corrections, ANNOTATION_DELETED (or
                   ANNOTATIONS_DELETED) takes an answer back, an annotation that is cancelled or has no known label is a
                   skip.  After TASKS_DELETED, open questions get new tasks.
``POST /train``    Reads all annotations again soon, as START_TRAINING does. Nothing else is needed: the trainer learns
                   each answer when it comes.
=================  =====================================================================================================

Label Studio sends each webhook only once, so webhooks get lost. To make up for them, all tasks of the project are read
with their annotations at the start and every few minutes. Annotations that were heard before change nothing. An open
question that Label Studio no longer shows, because its task was deleted or has annotations that do not count, gets a
new task.

The data of a task is the event's fields, for the labelling interface (``$text``), and these: ``query_id``,
``event_id``, ``partition``, ``x`` (for a Table), ``score``, ``margin``, ``reason``, and ``streamsvm``, which marks the
tasks of this configuration. When a question is withdrawn, its task is deleted, unless an annotator has begun with it.
"""

import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ...logs.transport import Unavailable
from ...records.classes import ClassLabel
from ...records.labels import Place
from ...records.people.questions import Question
from ...runtime.outage import Outage
from ...runtime.process import POLL_SECONDS, Stop, pause
from ...settings.sections import ConfigError, Settings
from ..service import LabellingService
from .api import Api, Gone, RequestRefused, member, time_of
from .checks import check_project, too_few
from .interface import Interface
from .predictor import Predictor
from .server import Server

logger = logging.getLogger(__name__)

_SYNC_SECONDS = 300.0
_RETRY_SECONDS = 5.0
_PAGE = 100  # tasks in one reply
_WHO = "label-studio:"  # begins the names of annotators
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Task(NamedTuple):
    """A task that was made of a question."""

    id: int
    query_id: str
    place: Place


def _is_of(data: Any, task: _Task) -> bool:
    """Whether these are the data of a task that was made of the same question."""
    return isinstance(data, dict) and data.get("query_id") == task.query_id


class _Annotation(NamedTuple):
    """An answer in Label Studio."""

    query_id: str
    place: Place
    who: str
    y: ClassLabel | None  # None: skipped


class _Listed(NamedTuple):
    """What the project has of a question."""

    place: Place
    annotations: frozenset[Any] = frozenset()  # their numbers
    is_shown: bool = False  # whether one of its tasks has no annotation yet, so that annotators get it


class LabelStudio:
    """Shows the questions in a project of Label Studio, and hands in its annotations as answers.

    Parameters
    ----------
    service
        Has the questions and takes the answers; inside its own ``with`` block.
    settings
        The configuration: the names of the labels, and labelling.host and labelling.port, which Label Studio calls.
    api
        Calls Label Studio.
    project
        Number of the project.
    auth
        "USER:PASSWORD" that Label Studio must send (basic authentication), or a token; None: nothing is required.

    Raises
    ------
    ConfigError
        If other machines could send answers without a password.
    """

    def __init__(
        self, service: LabellingService, settings: Settings, api: Api, project: int, auth: str | None = None
    ) -> None:
        host = settings.labelling.host
        if auth is None and host not in _LOOPBACK:
            raise ConfigError(
                [f"labelling.host = {host!r}: give --auth-file, or any machine that reaches it could send answers"]
            )
        self._service = service
        self._settings = settings
        self._api = api
        self._project = project
        self._mark = f"{settings.group.id}/{settings.log.questions}"
        self._lock = threading.Lock()  # guards the next four
        self._tasks: dict[int, _Task] = {}
        self._pushed: dict[str, float] = {}  # questions that have a task, or will have one before this time
        self._tidied: set[str] = set()  # closed questions
        self._annotations: dict[int, _Annotation] = {}
        self._must_sync = threading.Event()
        self._interface: Interface | None = None
        self._n_asked: int | None = None  # annotations of a task, of which Label Studio is content with so many
        self._predictor = Predictor(settings)
        own = {"/setup": self._predictor.setup, "/predict": self._predictor.predict}
        routes = {**own, "/webhook": self.webhook, "/train": self.train}
        self._server = Server(settings, auth, routes, {"/versions": self._predictor.versions})

    @property
    def port(self) -> int:
        """The port that Label Studio calls."""
        return self._server.port

    def run(self, stop: Stop) -> None:
        """Show questions and take answers until `stop` returns True.

        Raises
        ------
        ConfigError
            If there is no such project, or its interface does not offer both labels.
        AccessDenied
            If Label Studio does not accept the token.
        """
        self._server.start()
        try:
            with self._predictor:
                self._work(stop)
        finally:
            self._server.close()

    def _work(self, stop: Stop) -> None:
        outage = Outage(logger)
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
                seen = now
                outage.ends()
            except Unavailable as error:
                outage.goes_on(error)
                synced_at = -math.inf
                pause(_RETRY_SECONDS, stop)

    # --- what Label Studio has ----------------------------------------------------------------------------------------

    def _check_project(self) -> None:
        self._interface, n_asked = check_project(self._api, self._project, self._settings)
        self._predictor.interface = self._interface
        if n_asked != self._n_asked and (few := too_few(self._project, n_asked, self._settings)):
            logger.warning("%s", few)
        self._n_asked = n_asked

    def _sync(self) -> None:
        """Read all tasks with their annotations, and take the answers that were missed."""
        if not self._service.stats()["loaded"]:
            raise Unavailable("the questions are still being read")
        with self._lock:
            known = dict(self._annotations)  # one that is made from now on may be missing from the list
        listed: dict[str, _Listed] = {}
        for task in self._list():
            try:
                self._sync_task(task, listed)
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
                logger.warning("passing over a task of an unknown form: %r: %.200r", error, task)
        for number, item in known.items():
            if item.query_id in listed and number not in listed[item.query_id].annotations:
                self._take_back(number)
        for query_id, found in listed.items():
            self._look_for_lost_labels(query_id, found.place)
        self._look_for_lost_tasks({query_id for query_id, found in listed.items() if found.is_shown})

    def _sync_task(self, task: Mapping[str, Any], listed: dict[str, _Listed]) -> None:
        ours = self._learn(task.get("id"), task.get("data"))
        if ours is None:
            return
        annotations = sorted(task.get("annotations") or [], key=time_of)
        for annotation in annotations:
            self._hear(ours, annotation, int(1000 * time_of(annotation)) or None)
        before = listed.get(ours.query_id, _Listed(ours.place))
        numbers = before.annotations | {annotation.get("id") for annotation in annotations}
        listed[ours.query_id] = _Listed(ours.place, numbers, before.is_shown or not annotations)

    def _list(self) -> Iterator[dict[str, Any]]:
        page, n_seen = 1, 0
        while True:
            query = urlencode({"project": self._project, "page": page, "page_size": _PAGE, "fields": "all"})
            try:
                answer = self._api.call("GET", f"/api/tasks/?{query}")
            except Gone:  # the page after the last one
                return
            tasks = member(answer, "tasks", list)
            yield from tasks
            n_seen += len(tasks)
            page += 1
            if not tasks or n_seen >= member({"total": n_seen, **answer}, "total", int):
                return

    def _learn(self, task_id: Any, data: Any) -> _Task | None:
        """Remember a task; None if it was not made of a question of this configuration."""
        if not isinstance(data, dict) or data.get("streamsvm") != self._mark:
            with self._lock:  # Label Studio on SQLite gives the number of a deleted task to the next one
                self._tasks.pop(task_id, None)
            return None
        try:
            task = _Task(int(task_id), str(data["query_id"]), Place(int(data["partition"]), data["event_id"]))
        except (KeyError, TypeError, ValueError) as error:
            logger.warning("the data of task %s in Label Studio was changed: %r", task_id, error)
            return None
        with self._lock:
            self._tasks[task.id] = task
            self._pushed[task.query_id] = 0.0
        return task

    def _look_for_lost_labels(self, query_id: str, place: Place) -> None:
        """Retract an answer whose annotation is gone or has lost its label, maybe before our start.

        An annotation that is left holds again.
        """
        last = self._service.last_word(query_id)
        if last is None or not last[2].startswith(_WHO):
            return
        left = self._answers_to(query_id)
        if last[0] == "set" and not any(item.who == last[2] and item.y is not None for item in left):
            self._service.retract(query_id, last[2], place=place)
        elif last[0] != "retract":
            return
        if left:
            self._answer(left[-1])

    def _answers_to(self, query_id: str) -> list[_Annotation]:
        with self._lock:
            return [item for item in self._annotations.values() if item.query_id == query_id]

    def _look_for_lost_tasks(self, shown: set[str]) -> None:
        """Forget that the open questions have tasks which Label Studio does not show, so that they get new ones."""
        for question in self._service.open():
            query_id = question.query_id
            with self._lock:
                is_due = query_id not in shown and self._pushed.get(query_id, math.inf) < time.monotonic()
                tasks = [task for task in self._tasks.values() if task.query_id == query_id]
            if not is_due or any(self._counts(item) for item in self._answers_to(query_id)):
                continue
            if not any(self._is_waiting(task) for task in tasks):
                with self._lock:
                    self._pushed.pop(query_id, None)

    def _counts(self, item: _Annotation) -> bool:
        """Whether an annotation is one of several answers that an open question wants."""
        last = self._service.last_word(item.query_id, item.who)
        return last is not None and last[0] != "retract"

    def _is_waiting(self, task: _Task) -> bool:
        """Whether a task has no annotation yet."""
        found = self._find(task)
        return found is not None and not found.get("annotations")

    def _find(self, task: _Task) -> dict[str, Any] | None:
        """A task as Label Studio has it; one that was deleted is forgotten, also if another task has its number now."""
        try:
            found = self._api.call("GET", f"/api/tasks/{task.id}/")
        except Gone:
            found = None
        if isinstance(found, dict) and _is_of(found.get("data"), task):
            return found
        self._forget(task)
        return None

    def _forget(self, task: _Task) -> None:
        with self._lock:
            if self._tasks.get(task.id) == task:
                del self._tasks[task.id]

    # --- questions ----------------------------------------------------------------------------------------------------

    def _push(self) -> None:
        with self._lock:
            new = [shown for shown in self._service.open() if shown.query_id not in self._pushed]
        if not new:
            return
        tasks = [{"data": self._data(shown)} for shown in new]
        try:
            answer = self._api.call("POST", f"/api/projects/{self._project}/import?return_task_ids=true", tasks)
        except (RequestRefused, Gone) as error:
            raise ConfigError([str(error)]) from None
        numbers = (answer.get("task_ids") if isinstance(answer, dict) else None) or []
        with self._lock:
            self._pushed |= {shown.query_id: 0.0 for shown in new}
            if isinstance(numbers, list) and [type(number) for number in numbers] == [int] * len(new):
                for number, shown in zip(numbers, new, strict=True):
                    self._tasks[number] = _Task(number, shown.query_id, shown.place)
            else:  # Label Studio has not made the tasks yet
                self._pushed |= {shown.query_id: time.monotonic() + _SYNC_SECONDS for shown in new}
                self._must_sync.set()

    def _data(self, shown: Question) -> dict[str, Any]:
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
            **({"guess": shown.guess} if shown.probabilities else {}),
        }

    def _tidy(self) -> None:
        """Delete the tasks of closed questions, unless an annotator has begun with them."""
        still = {shown.query_id for shown in self._service.open()}
        with self._lock:
            answered = {item.query_id for item in self._annotations.values()}
            closed = [task for task in self._tasks.values() if task.query_id not in still | self._tidied]
            self._tidied = (self._tidied - still) | {task.query_id for task in closed}
        for task in closed:
            if task.query_id not in answered:
                self._remove(task)

    def _remove(self, task: _Task) -> None:
        try:
            found = self._find(task)
            if found is not None and not found.get("annotations") and not found.get("drafts"):
                self._forget(task)
                with self._lock:  # the question may be opened again
                    self._pushed.pop(task.query_id, None)
                self._api.call("DELETE", f"/api/tasks/{task.id}/")
        except Gone:
            pass
        except (Unavailable, RequestRefused) as error:
            logger.warning("task %d could not be deleted from Label Studio: %s", task.id, error)

    # --- answers ------------------------------------------------------------------------------------------------------

    def webhook(self, body: Mapping[str, Any]) -> None:
        """Take a webhook.

        Raises
        ------
        Unavailable
            If the answer cannot be written now; the annotation will be read again soon.
        """
        project = body.get("project")
        if isinstance(project, dict) and project.get("id") not in (None, self._project):
            return
        try:
            match body.get("action"):
                case "ANNOTATION_CREATED" | "ANNOTATION_UPDATED":
                    self._hear_live(body["annotation"], body.get("task"))
                case "ANNOTATIONS_CREATED":
                    for annotation in body["annotations"]:
                        self._hear_live(annotation, None)
                case "ANNOTATION_DELETED" | "ANNOTATIONS_DELETED":
                    gone = body.get("annotations") or [body.get("annotation") or body]
                    for annotation in gone:
                        self._take_back(int(annotation["id"]))
                case "TASKS_DELETED":
                    self._hear_deletion({int(task["id"]) for task in body["tasks"]})
                case "START_TRAINING":
                    self.train(body)
        except Unavailable:
            self._must_sync.set()
            raise

    def _hear_live(self, annotation: Mapping[str, Any], told: Any) -> None:
        """Hear an annotation; Label Studio mostly tells its task, too."""
        number = annotation["task"]
        with self._lock:
            task = self._tasks.get(number["id"] if isinstance(number, dict) else number)
        if task is not None and isinstance(told, dict) and not _is_of(told.get("data"), task):
            task = task if self._find(task) else None
        if task is None:
            self._must_sync.set()  # a task may have been made meanwhile
        else:
            self._hear(task, annotation, None)

    def _hear_deletion(self, numbers: set[int]) -> None:
        with self._lock:
            if numbers & self._tasks.keys():
                self._must_sync.set()

    def _hear(self, task: _Task, annotation: Mapping[str, Any], at: int | None) -> None:
        """Answer with an annotation, made at the time `at`; None: now."""
        if self._interface is None:
            self._must_sync.set()
            return
        user = annotation.get("completed_by")
        who = f"{_WHO}{user.get('id') if isinstance(user, dict) else user}"
        number, is_skip = int(annotation["id"]), bool(annotation.get("was_cancelled"))
        y = None if is_skip else self._interface.label_of(annotation.get("result"))
        item = _Annotation(task.query_id, task.place, who, y)
        with self._lock:
            before = self._annotations.get(number)
        if y is None and not is_skip and before != item:
            logger.warning("annotation %d of task %d has no known label: it counts as a skip", number, task.id)
        if y is None and before is not None and before.y is not None and before.query_id == task.query_id:
            self._take_back(number)
        with self._lock:
            self._annotations[number] = item
        self._answer(item, at)

    def _answer(self, item: _Annotation, at: int | None = None) -> None:
        if item.y is None:
            self._service.skip(item.query_id, item.who, at=at, place=item.place)
        else:
            self._service.answer(item.query_id, item.y, item.who, at=at, place=item.place)

    def _take_back(self, number: int) -> None:
        """Retract the answer of a deleted annotation; another annotation of the same question holds again."""
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
        if self._service.last_word(item.query_id, item.who) == ("set", item.y, item.who):
            self._service.retract(item.query_id, item.who, place=item.place)
            if left:
                self._answer(left[-1])
        with self._lock:
            self._annotations.pop(number, None)

    def train(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Read all annotations again soon.  What a request to train says is not used: Label Studio knows better."""
        self._must_sync.set()
        return {"status": "ok", "job": "sync"}
