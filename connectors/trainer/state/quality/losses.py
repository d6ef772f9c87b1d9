"""What a prediction loses in each metric, as a number from 0 to 1."""

import math

from streamsvm.validation import Interval

from ....records.classes import ClassLabel
from ....records.predictions import Said
from ....records.said import answer_of, probability_of

ERROR, G_MEAN, LOG_LOSS, COST, DECIDED = "error", "g-mean", "log loss", "cost", "decided"

_LEAST_P = 0.01  # a smaller probability of the true label counts as this: the log loss stays bounded
_MOST_LOSS = -math.log(_LEAST_P)


class Losses:
    """The losses of predictions.

    Parameters
    ----------
    miss_cost
        What it costs to predict a positive event as negative, where the other error costs 1.
    are_two
        Whether there are two classes; `cost` needs that.
    decides
        Whether predictions say what is decided.

    Attributes
    ----------
    names : list of str
        The metrics.
    are_two : bool
        Whether there are two classes.
    """

    def __init__(self, miss_cost: float, *, are_two: bool, decides: bool) -> None:
        self._miss_cost, self.are_two = miss_cost, are_two
        self._has_cost, self._decides = are_two and miss_cost != 1.0, decides
        self.names = [ERROR, LOG_LOSS, *([COST] if self._has_cost else []), *([DECIDED] if decides else [])]

    def of(self, y: ClassLabel, said: Said) -> dict[str, float]:
        """What a prediction loses if this is the label, by metric."""
        is_wrong = float(answer_of(said) != y)
        found = {ERROR: is_wrong, LOG_LOSS: -math.log(max(probability_of(said, y), _LEAST_P)) / _MOST_LOSS}
        if self._has_cost:
            found[COST] = is_wrong * (self._miss_cost if y else 1.0) / max(self._miss_cost, 1.0)
        if self._decides:
            found[DECIDED] = float(said.verdict is None or not said.verdict.decided)
        return found

    def scale(self, name: str) -> float:
        """What a loss of 1 is in the unit of the metric."""
        return {LOG_LOSS: _MOST_LOSS, COST: max(self._miss_cost, 1.0)}.get(name, 1.0)

    def shown(self, name: str, mean: Interval) -> Interval:
        """A mean loss in the unit of the metric; `decided` is the share that is not left open."""
        value, low, high = (bound * self.scale(name) for bound in mean)
        return Interval(1.0 - value, 1.0 - high, 1.0 - low) if name == DECIDED else Interval(value, low, high)
