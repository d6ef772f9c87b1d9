"""The tasks that a Label Studio project has of our questions."""

import base64
import logging
import math
import threading
import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

from ...logs.transport import Unavailable
from ...records.labels import Place
from ...records.people.questions import Question
from ...settings.labelling import LabellingSettings
from ...settings.sections import ConfigError
from ..web.images import file_of
from .api import Api, Gone, RequestRefused, member

logger = logging.getLogger(__name__)

SYNC_SECONDS = 300.0  # between two readings of all tasks, and until a task that Label Studio makes later is missed

_PAGE = 100  # tasks in one reply


class Task(NamedTuple):
    """A task that was made of a question."""

    id: int
    query_id: str
    place: Place

    def is_of(self, data: Any) -> bool:
        """Whether these are the data of a task that was made of the same question."""
        return isinstance(data, dict) and data.get("query_id") == self.query_id


class Tasks:
    """Makes, finds and deletes tasks.

    Parameters
    ----------
    api
        Calls Label Studio.
    project
        Number of the project.
    mark
        Marks the tasks of this configuration.
    labelling
        Says which images are files of a folder: Label Studio gets them inside the task.
    """

    def __init__(self, api: Api, project: int, mark: str, labelling: LabellingSettings) -> None:
        self._api = api
        self._project = project
        self._mark = mark
        self._labelling = labelling
        self._lock = threading.Lock()  # guards the next three
        self._tasks: dict[int, Task] = {}
        self._pushed: dict[str, float] = {}  # questions that have a task, or will have one before this time
        self._tidied: set[str] = set()  # closed questions

    def get(self, number: Any) -> Task | None:
        """The task of this number, as far as we know."""
        with self._lock:
            return self._tasks.get(number)

    def has_any(self, numbers: set[int]) -> bool:
        """Whether one of these numbers is that of a task of ours."""
        with self._lock:
            return bool(numbers & self._tasks.keys())

    def listed(self) -> Iterator[dict[str, Any]]:
        """All tasks of the project with their annotations."""
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

    def learn(self, number: Any, data: Any) -> Task | None:
        """Remember a task; None if it was not made of a question of this configuration."""
        if not isinstance(data, dict) or data.get("streamsvm") != self._mark:
            with self._lock:  # Label Studio on SQLite gives the number of a deleted task to the next one
                self._tasks.pop(number, None)
            return None
        try:
            task = Task(int(number), str(data["query_id"]), Place(int(data["partition"]), data["event_id"]))
        except (KeyError, TypeError, ValueError) as error:
            logger.warning("the data of task %s in Label Studio was changed: %r", number, error)
            return None
        with self._lock:
            self._tasks[task.id] = task
            self._pushed[task.query_id] = 0.0
        return task

    def find(self, task: Task) -> dict[str, Any] | None:
        """A task as Label Studio has it; one that was deleted is forgotten, also if another task has its number now."""
        try:
            found = self._api.call("GET", f"/api/tasks/{task.id}/")
        except Gone:
            found = None
        if isinstance(found, dict) and task.is_of(found.get("data")):
            return found
        self._forget(task)
        return None

    def renew(self, query_id: str) -> None:
        """Let an open question get a new task, if Label Studio does not show the one that it should have."""
        with self._lock:
            is_due = self._pushed.get(query_id, math.inf) < time.monotonic()
            tasks = [task for task in self._tasks.values() if task.query_id == query_id]
        if is_due and not any(self._is_waiting(task) for task in tasks):
            with self._lock:
                self._pushed.pop(query_id, None)

    def _is_waiting(self, task: Task) -> bool:
        """Whether a task has no annotation yet."""
        found = self.find(task)
        return found is not None and not found.get("annotations")

    def push(self, questions: Collection[Question]) -> bool:
        """Make tasks of the questions that have none; return whether Label Studio has told their numbers."""
        with self._lock:
            new = [shown for shown in questions if shown.query_id not in self._pushed]
        if not new:
            return True
        tasks = [{"data": self._data(shown)} for shown in new]
        try:
            answer = self._api.call("POST", f"/api/projects/{self._project}/import?return_task_ids=true", tasks)
        except (RequestRefused, Gone) as error:
            raise ConfigError(str(error)) from None
        numbers = (answer.get("task_ids") if isinstance(answer, dict) else None) or []
        is_told = isinstance(numbers, list) and [type(number) for number in numbers] == [int] * len(new)
        until = 0.0 if is_told else time.monotonic() + SYNC_SECONDS  # Label Studio may make the tasks later
        with self._lock:
            self._pushed |= {shown.query_id: until for shown in new}
            if is_told:
                self._tasks |= {
                    number: Task(number, shown.query_id, shown.place)
                    for number, shown in zip(numbers, new, strict=True)
                }
        return is_told

    def _data(self, shown: Question) -> dict[str, Any]:
        return {
            **shown.event,
            **self._image(shown),
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

    def _image(self, shown: Question) -> dict[str, str]:
        """The image of a question if it is a file."""
        field = self._labelling.image
        found = file_of(str(shown.event.get(field, "")), self._labelling)
        if found is None:
            return {}
        path, media = found
        try:
            content = path.read_bytes()
        except OSError as error:
            logger.warning("the task of event %s has no image: %s", shown.id, error)
            return {}
        return {field: f"data:{media};base64,{base64.b64encode(content).decode()}"}

    def tidy(self, still: set[str], answered: set[str]) -> None:
        """Delete the tasks of questions that are not open any more, unless an annotator has begun with them."""
        with self._lock:
            closed = [task for task in self._tasks.values() if task.query_id not in still | self._tidied]
            self._tidied = (self._tidied - still) | {task.query_id for task in closed}
        for task in closed:
            if task.query_id not in answered:
                self._remove(task)

    def _remove(self, task: Task) -> None:
        try:
            found = self.find(task)
            if found is not None and not found.get("annotations") and not found.get("drafts"):
                self._forget(task)
                with self._lock:  # the question may be opened again
                    self._pushed.pop(task.query_id, None)
                self._api.call("DELETE", f"/api/tasks/{task.id}/")
        except Gone:
            pass
        except (Unavailable, RequestRefused) as error:
            logger.warning("task %d could not be deleted from Label Studio: %s", task.id, error)

    def _forget(self, task: Task) -> None:
        with self._lock:
            if self._tasks.get(task.id) == task:
                del self._tasks[task.id]
