"""What Label Studio asks a model: to set it up, and to predict tasks."""

import logging
from collections.abc import Mapping
from typing import Any

from ...settings.sections import Settings
from .interface import Interface, no_prediction
from .models import PublishedModels

logger = logging.getLogger(__name__)


class Predictor:
    """Answers ``/setup``, ``/versions`` and ``/predict``; follows the published models inside a ``with`` block.

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
        self.interface: Interface | None = None
        self._labels = settings.label
        self._models = PublishedModels(settings)

    def __enter__(self) -> "Predictor":
        self._models.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._models.close()

    def setup(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Check the labelling interface when Label Studio connects."""
        if Interface.read(str(body.get("schema") or ""), self._labels) is None:
            logger.warning("the labelling interface that Label Studio sent has no Choices with both labels")
        return {"model_version": self._models.version}

    def versions(self) -> dict[str, Any]:
        """The versions that people can choose from: the newest one."""
        return {"versions": [self._models.version]}

    def predict(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The model's predictions of tasks."""
        interface = Interface.read(str(body.get("label_config") or ""), self._labels) or self.interface
        scores, version = self._models.predict([task.get("data") or {} for task in body.get("tasks") or []])
        results = [interface.prediction(score, version) if interface else no_prediction(version) for score in scores]
        return {"results": results, "model_version": version}
