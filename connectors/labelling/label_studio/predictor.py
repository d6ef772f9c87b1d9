"""What Label Studio asks a model: to set it up, and to predict tasks; the newest published models answer."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ...logs.transport import Transport
from ...records.formats.base import BadRecord
from ...records.people.questions import RECHECK, are_numbers
from ...records.predictions import ClassPrediction
from ...records.published import POLL_PIECES, Snapshot, Withdrawn
from ...runtime.process import LOOK_SECONDS, POLL_SECONDS
from ...scorer.committee import ModelTopic, PartitionModels, misfit, unpack
from ...settings.sections import Settings
from ..log_thread import LogThread
from .interface import MODEL, ClassScore, Interface, no_prediction

logger = logging.getLogger(__name__)


class Predictor(LogThread):
    """Answers ``/setup``, ``/versions`` and ``/predict``; follows the topic log.model between `start` and `close`.

    It predicts with the mean of the models of all partitions, as scorers do.

    Parameters
    ----------
    settings
        The configuration.

    Attributes
    ----------
    interface
        The project's labelling interface, for requests that do not contain it; None: not known yet.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, "the models")
        self.interface: Interface | None = None
        self._lock = threading.Lock()  # guards the models
        self._models = PartitionModels()

    # --- what Label Studio asks ---------------------------------------------------------------------------------------

    def setup(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Check the labelling interface when Label Studio connects."""
        if Interface.read(str(body.get("schema") or ""), self._settings.label) is None:
            logger.warning("the labelling interface that Label Studio sent has no Choices with both labels")
        return {"model_version": self._version}

    def versions(self) -> dict[str, Any]:
        """The versions that people can choose from: the newest one."""
        return {"versions": [self._version]}

    def predict(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The model's predictions of tasks."""
        interface = Interface.read(str(body.get("label_config") or ""), self._settings.label) or self.interface
        scores, version = self._predict([task.get("data") or {} for task in body.get("tasks") or []])
        results = [interface.prediction(score, version) if interface else no_prediction(version) for score in scores]
        return {"results": results, "model_version": version}

    # --- predicting ---------------------------------------------------------------------------------------------------

    @property
    def _version(self) -> str:
        """The version of the models in use: the number of their lessons."""
        return self._predict(())[1]

    def _predict(self, tasks: Sequence[Mapping[str, Any]]) -> tuple[list[Any], str]:
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
            scores = [self._score(data) for data in tasks]
            n_lessons = self._models.choose(None).version.ver
            return scores, f"{MODEL}-{n_lessons}" if self._models else MODEL

    def _score(self, data: Mapping[str, Any]) -> Any:
        if data.get("reason") == RECHECK:
            return None
        x: Any = data.get("x")
        if (
            not self._models
            or self._settings.features.raw
            or not are_numbers(x)
            or len(x) > self._settings.limits.event_features
        ):
            return ClassScore(data["guess"], data.get("score")) if "guess" in data else data.get("score")
        (said,) = self._models.choose(None).predict([x])
        if isinstance(said, ClassPrediction):
            return ClassScore(said.label, None if said.label is None else said.probabilities[said.label])
        return None if isinstance(said, BadRecord) else said.score

    # --- following ----------------------------------------------------------------------------------------------------

    def _follow(self, log: Transport) -> None:
        topic = ModelTopic(log, self._settings.log.model)
        while not log.start_offsets(topic.name):
            if self._closing.wait(LOOK_SECONDS):
                return
        topic.follow()
        while not self._closing.is_set():
            for record in log.poll(POLL_SECONDS, POLL_PIECES):
                topic.put(record)
            self._outage.ends()
            while topic.arrived:
                name, found = topic.arrived.popitem()
                if self._models.knows(name):
                    self._take(name, found)

    def _take(self, name: str, found: Snapshot | Withdrawn) -> None:
        if isinstance(found, Withdrawn):
            with self._lock:
                self._models.drop(name)
            return
        try:
            member = unpack(found)
            reason = misfit(member.served, self._settings)
        except ValueError as error:
            reason = str(error)
        if reason:
            logger.warning("refusing a version of model %r and keeping the old one: %s", name, reason)
            return
        with self._lock:
            self._models.put(found, member)
