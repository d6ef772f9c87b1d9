"""How each model does on the events that it has answered, where challengers answer a share of the stream.

Each label counts once, for the model that answered its event, with what it said then.  The intervals hold at all times
together; see `streamsvm.validation.AlwaysValidMean`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from streamsvm.validation import AlwaysValidMean, Interval

from ....records.classes import ClassLabel
from ....records.predictions import Said
from .losses import Losses


class Arm(NamedTuple):
    """What a model has answered: the number of events and of their labels, and its metrics."""

    name: str
    n_events: int
    n_labels: int
    metrics: dict[str, Interval]


class Arms:
    """The answers of all models.

    Parameters
    ----------
    losses
        What a prediction loses.
    error
        Largest probability that any model's interval of one metric is ever wrong.
    names
        The models.
    """

    def __init__(self, losses: Losses, error: float, names: list[str]) -> None:
        self._losses = losses
        self._n_events = dict.fromkeys(names, 0)
        self._means = {
            name: {metric: AlwaysValidMean(0.0, 1.0, error / len(names)) for metric in losses.names} for name in names
        }

    def answer(self, name: str) -> None:
        """Count an event that this model has answered."""
        self._n_events[name] += 1

    def observe(self, name: str, y: ClassLabel, said: Said) -> None:
        """Take the label of an event that this model has answered, and what it said."""
        for metric, loss in self._losses.of(y, said).items():
            self._means[name][metric].observe(loss)

    def __iter__(self) -> Iterator[Arm]:
        """Those that have answered."""
        for name, means in self._means.items():
            if self._n_events[name]:
                shown = {metric: self._losses.shown(metric, mean.interval()) for metric, mean in means.items()}
                yield Arm(name, self._n_events[name], next(iter(means.values())).n, shown)

    def to_json(self) -> dict[str, Any]:
        """What was counted, for a checkpoint, and what it shows."""
        return {
            arm.name: {
                "events": arm.n_events,
                "means": {metric: mean.to_state() for metric, mean in self._means[arm.name].items()},
                "shown": {metric: [*mean] for metric, mean in arm.metrics.items()},
            }
            for arm in self
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Go on from what `to_json` gave; a model that is gone, or had other metrics, is left out."""
        for name, counted in stored.items():
            if name in self._means and counted["means"].keys() == self._means[name].keys():
                self._n_events[name] = int(counted["events"])
                for metric, state in counted["means"].items():
                    self._means[name][metric].restore(state)


def read_arms(stored: Mapping[str, Any]) -> list[Arm]:
    """What `Arms.to_json` shows."""
    return [
        Arm(
            name,
            int(counted["events"]),
            int(next(iter(counted["means"].values()))[0]),
            {metric: Interval(*shown) for metric, shown in counted["shown"].items()},
        )
        for name, counted in stored.items()
    ]
