"""The newest published models, which predict the tasks that Label Studio shows."""

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core.saving.snapshot import SnapshotError
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.online.outputs.sigmoid import on_side_of

from ...logs.transport import OffsetOutOfRange, Transport, Unavailable
from ...records.models import MulticlassModel, ServedModel, mean, scores, unpack_model
from ...records.people.questions import RECHECK, are_numbers
from ...records.predictions import class_predictions
from ...records.published import POLL_PIECES, Shelf, Snapshot, Withdrawn
from ...runtime.outage import Outage
from ...runtime.process import LOOK_SECONDS, POLL_SECONDS
from ...settings.opening import open_once
from ...settings.sections import Settings
from ...trainer.rows import unusable_rows
from .interface import MODEL, ClassScore

logger = logging.getLogger(__name__)

_NAME = re.compile("p[0-9]+")  # of the model of a partition


class PublishedModels:
    """Follows the topic log.model on a thread; predicts with the mean of the models of all partitions, as scorers do.

    Parameters
    ----------
    settings
        The configuration.  Without log.model, no model is used.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()  # guards the models
        self._models: dict[str, tuple[int, ServedModel]] = {}  # versions and models
        self._closing = threading.Event()
        self._outage = Outage(logger, "the models can be read again")
        self._thread = threading.Thread(target=self._run, name="models", daemon=True)

    def start(self) -> None:
        """Begin to follow the topic, if there is one."""
        if self._settings.log.model:
            self._thread.start()

    def close(self) -> None:
        """Stop, and wait for the thread to end."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    # --- predicting ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """The version of the models in use: the number of their lessons."""
        return self.predict(())[1]

    def predict(self, tasks: Sequence[Mapping[str, Any]]) -> tuple[list[Any], str]:
        """The scores of tasks, with more than two classes as `ClassScore`, and the version of the models.

        Parameters
        ----------
        tasks
            The data of each task; "x" has the features, "score" the model's score when the question was asked.

        Returns
        -------
        scores, version
            The score of each task: by the newest models, else the one in its data, which may be anything.
        """
        with self._lock:
            models = [model for _, model in self._models.values()]
            n_lessons = sum(version for version, _ in self._models.values())
            scores = [self._score(data, models) for data in tasks]
        return scores, f"{MODEL}-{n_lessons}" if models else MODEL

    def _score(self, data: Mapping[str, Any], models: Sequence[ServedModel]) -> Any:
        if data.get("reason") == RECHECK:
            return None
        x: Any = data.get("x")
        if (
            not models
            or self._settings.features.raw
            or not are_numbers(x)
            or len(x) > self._settings.limits.event_features
        ):
            return ClassScore(data["guess"], data.get("score")) if "guess" in data else data.get("score")
        parts = []
        for model, scaler, *_ in models:
            rows = NamedRows.of([scaler.transform_one(x) if scaler else x])
            if unusable_rows(rows, model):
                return None
            parts.append((model, rows))
        return _mean(parts)

    # --- following ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with open_once(self._settings) as log:
                    self._follow(log)
            except (Unavailable, OffsetOutOfRange) as error:  # the topic is compacted: begin again
                self._outage.goes_on(error)
                self._closing.wait(LOOK_SECONDS)
            except Exception as error:
                logger.error("the models cannot be read, predictions stay as they are: %s", error)
                return

    def _follow(self, log: Transport) -> None:
        topic, shelf = self._settings.log.model, Shelf()
        while not (starts := log.start_offsets(topic)):
            if self._closing.wait(LOOK_SECONDS):
                return
        for number, start in starts.items():
            log.seek(topic, number, start)
        while not self._closing.is_set():
            for record in log.poll(POLL_SECONDS, POLL_PIECES):
                found = shelf.put(record)
                if found is not None and _NAME.fullmatch(found.name):
                    self._take(found)
            self._outage.ends()

    def _take(self, found: Snapshot | Withdrawn) -> None:
        try:
            model = unpack_model(found.blob) if isinstance(found, Snapshot) else None
        except SnapshotError as error:
            logger.warning("refusing a version of model %r and keeping the old one: %s", found.name, error)
            return
        with self._lock:
            self._models.pop(found.name, None)
            if isinstance(found, Snapshot) and model is not None:
                self._models[found.name] = (found.manifest["ver"], model)


def _mean(parts: Sequence[tuple[Any, NamedRows]]) -> ClassScore | float:
    """What models say together about a task, each of which has its features as the only row."""
    if isinstance(parts[0][0], MulticlassModel):
        (said,) = class_predictions(mean([scores(model, rows) for model, rows in parts]))
        return ClassScore(said.label, None if said.label is None else said.probabilities[said.label])
    values = [model.decision_function_many(rows) for model, rows in parts]
    shares = [model.probability(own) for (model, _), own in zip(parts, values, strict=True)]
    return float(on_side_of(np.mean(values, axis=0), np.mean(shares, axis=0))[0])
