"""What a `ConformalClassifier` decides with, as it is at the time of an export."""

from collections.abc import Hashable
from typing import NamedTuple

from streamsvm.conformal.classifier import ConformalClassifier
from streamsvm.conformal.guard import TWO
from streamsvm.online.outputs.recent import USUAL_ERROR, B, E, W


class Guarantee(NamedTuple):
    """Which labels cannot be excluded.

    Attributes
    ----------
    error
        Largest share of each class that may be decided wrongly.
    thresholds
        A label is excluded if its probability is below its threshold, and it is not the one that is predicted.  0: it
        is never excluded.
    correction
        Recent errors correct the probabilities of two labels, with this intercept a and slope b; None: they do not.
        Of the second label, p becomes::

            1 / (1 + exp(-cut(a + b cut(log(p / (1 - p)), 8), 12))),      cut(v, c) = min(max(v, -c), c)
    """

    error: float
    thresholds: list[float]
    correction: tuple[float, float] | None


def guarantee_of(model: ConformalClassifier, labels: list[Hashable]) -> Guarantee:
    """The guarantee about these labels, in their order."""
    thresholds = [max(0.0, model._guard.threshold(label)) for label in labels]
    if set(labels) != TWO or not model._guard.is_better:
        return Guarantee(float(model.error), thresholds, None)
    intercept, slope = _line(model._guard.recent.tolist())
    return Guarantee(float(model.error), thresholds, (intercept if labels[1] else -intercept, slope))


def _line(recent: list[float]) -> tuple[float, float]:
    """The corrected log odds of True as a line over the model's own; see `online.outputs.recent`."""
    w = recent[W:]
    fast, slow = recent[B : B + 2]
    intercept = w[0] + 3.0 * (w[2] * fast + w[3] * slow)
    fast, slow = recent[E : E + 2]
    return intercept, w[1] + 3.0 * (w[4] * (fast - USUAL_ERROR) + w[5] * (slow - USUAL_ERROR))
