"""The annotations of a Label Studio project as answers to our questions."""

import logging
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...records.classes import ClassLabel
from ...records.labels import Place
from ...records.people.annotators import MAX_NAME
from ..service import LabellingService
from .interface import Interface
from .tasks import Task

logger = logging.getLogger(__name__)

_WHO = "label-studio:"  # begins the names of annotators


class Annotation(NamedTuple):
    """An answer in Label Studio."""

    query_id: str
    place: Place
    who: str
    y: ClassLabel | None  # None: skipped


class Annotations:
    """Hands annotations in as answers, and takes them back.

    Parameters
    ----------
    service
        Takes the answers.
    """

    def __init__(self, service: LabellingService) -> None:
        self._service = service
        self._lock = threading.Lock()  # guards the next one
        self._annotations: dict[int, Annotation] = {}

    def known(self) -> dict[int, Annotation]:
        """The annotations so far, by their numbers."""
        with self._lock:
            return dict(self._annotations)

    def hear(self, task: Task, annotation: Mapping[str, Any], interface: Interface, at: int | None = None) -> None:
        """Answer with an annotation, made at the time `at`; None: now."""
        user = annotation.get("completed_by")
        who = f"{_WHO}{user.get('id') if isinstance(user, dict) else user}"[:MAX_NAME]
        number, is_skip = int(annotation["id"]), bool(annotation.get("was_cancelled"))
        y = None if is_skip else interface.label_of(annotation.get("result"))
        item = Annotation(task.query_id, task.place, who, y)
        with self._lock:
            before = self._annotations.get(number)
        if y is None and not is_skip and before != item:
            logger.warning("annotation %d of task %d has no known label: it counts as a skip", number, task.id)
        if y is None and before is not None and before.y is not None and before.query_id == task.query_id:
            self.take_back(number)
        with self._lock:
            self._annotations[number] = item
        self._answer(item, at)

    def take_back(self, number: int) -> bool:
        """Retract the answer of a deleted annotation; another annotation of the same question holds again.

        Returns
        -------
        bool
            Whether the annotation is known.
        """
        item = self.known().get(number)
        if item is None:
            return False
        left = [other for n, other in self.known().items() if n != number and other.query_id == item.query_id]
        if self._service.last_word(item.query_id, item.who) == ("set", item.y, item.who):
            self._service.retract(item.query_id, item.who, place=item.place)
            if left:
                self._answer(left[-1])
        with self._lock:
            self._annotations.pop(number, None)
        return True

    def look_for_lost_labels(self, query_id: str, place: Place) -> None:
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

    def count_for(self, query_id: str) -> bool:
        """Whether an annotation is one of several answers that an open question wants."""
        words = (self._service.last_word(query_id, item.who) for item in self._answers_to(query_id))
        return any(last is not None and last[0] != "retract" for last in words)

    def _answers_to(self, query_id: str) -> list[Annotation]:
        return [item for item in self.known().values() if item.query_id == query_id]

    def _answer(self, item: Annotation, at: int | None = None) -> None:
        self._service.answer(item.query_id, item.y, item.who, at=at, place=item.place)
