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
from collections.abc import Mapping
from typing import Any

from ...logs.transport import Unavailable
from ...records.labels import Place
from ...runtime.outage import Outage
from ...runtime.process import POLL_SECONDS, Stop, pause
from ...settings.sections import ConfigError, Settings
from ..service import LabellingService
from .annotations import Annotations
from .api import Api, time_of
from .checks import check_project, too_few
from .interface import Interface
from .predictor import Predictor
from .server import Server
from .tasks import SYNC_SECONDS, Task, Tasks

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0  # each try reads all tasks again
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


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
                f"labelling.host = {host!r}: give --auth-file, or any machine that reaches it could send answers"
            )
        self._service = service
        self._settings = settings
        self._api = api
        self._project = project
        self._tasks = Tasks(api, project, f"{settings.group.id}/{settings.log.questions}", settings.labelling)
        self._annotations = Annotations(service)
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
        if self._settings.log.model:
            self._predictor.start()
        try:
            self._work(stop)
        finally:
            self._predictor.close()
            self._server.close()

    def _work(self, stop: Stop) -> None:
        outage = Outage(logger)
        synced_at = -math.inf
        seen = 0
        while not stop():
            self._service.check()
            try:
                if time.monotonic() - synced_at > SYNC_SECONDS or self._must_sync.is_set():
                    self._must_sync.clear()
                    self._check_project()
                    self._sync()
                    synced_at, seen = time.monotonic(), -1
                now = self._service.wait(POLL_SECONDS, seen)
                if now != seen:
                    self._show()
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

    def _show(self) -> None:
        """Make tasks of the new questions, and delete those of closed ones."""
        questions = self._service.open()
        if not self._tasks.push(questions):
            self._must_sync.set()
        answered = {item.query_id for item in self._annotations.known().values()}
        self._tasks.tidy({shown.query_id for shown in questions}, answered)

    def _sync(self) -> None:
        """Read all tasks with their annotations, and take the answers that were missed."""
        if not self._service.stats()["loaded"]:
            raise Unavailable("the questions are still being read")
        known = self._annotations.known()  # one that is made from now on may be missing from the list
        places: dict[str, Place] = {}  # of the questions that have a task
        numbers: set[Any] = set()  # of annotations
        waiting: set[str] = set()  # questions with a task without an annotation, which annotators get
        for task in self._tasks.listed():
            try:
                ours = self._tasks.learn(task.get("id"), task.get("data"))
                if ours is None:
                    continue
                annotations = sorted(task.get("annotations") or [], key=time_of)
                for annotation in annotations:
                    self._hear(ours, annotation, int(1000 * time_of(annotation)) or None)
            except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
                logger.warning("passing over a task of an unknown form: %r: %.200r", error, task)
                continue
            places[ours.query_id] = ours.place
            numbers.update(annotation.get("id") for annotation in annotations)
            if not annotations:
                waiting.add(ours.query_id)
        for number, item in known.items():
            if item.query_id in places and number not in numbers:
                self._take_back(number)
        for query_id, place in places.items():
            self._annotations.look_for_lost_labels(query_id, place)
        for question in self._service.open():
            if question.query_id not in waiting and not self._annotations.count_for(question.query_id):
                self._tasks.renew(question.query_id)

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
                    if self._tasks.has_any({int(task["id"]) for task in body["tasks"]}):
                        self._must_sync.set()
                case "START_TRAINING":
                    self.train(body)
        except Unavailable:
            self._must_sync.set()
            raise

    def _hear_live(self, annotation: Mapping[str, Any], told: Any) -> None:
        """Hear an annotation; Label Studio mostly tells its task, too."""
        number = annotation["task"]
        task = self._tasks.get(number["id"] if isinstance(number, dict) else number)
        if task is not None and isinstance(told, dict) and not task.is_of(told.get("data")):
            task = task if self._tasks.find(task) else None
        if task is None:
            self._must_sync.set()  # a task may have been made meanwhile
        else:
            self._hear(task, annotation, None)

    def _hear(self, task: Task, annotation: Mapping[str, Any], at: int | None) -> None:
        if self._interface is None:
            self._must_sync.set()
        else:
            self._annotations.hear(task, annotation, self._interface, at)

    def _take_back(self, number: int) -> None:
        if not self._annotations.take_back(number):
            self._must_sync.set()

    def train(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """Read all annotations again soon.  What a request to train says is not used: Label Studio knows better."""
        self._must_sync.set()
        return {"status": "ok", "job": "sync"}
