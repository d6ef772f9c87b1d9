"""How a challenger does beside the model that serves, on the labels of events that both have predicted.

Each label is counted once, with the predictions from before it was learned, however late it comes.  A correction does
not count again.  A gain is positive where the challenger is better.  Its interval holds at all times together; see
`streamsvm.validation.AlwaysValidMean`.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from streamsvm.validation import AlwaysValidMean, Interval

from ....records.classes import ClassLabel
from ....records.predictions import Said
from .losses import DECIDED, ERROR, G_MEAN, Losses


class Difference(NamedTuple):
    """One metric of the model that serves and of a challenger, and the challenger's gain."""

    metric: str
    champion: float
    challenger: float
    gain: Interval

    @property
    def says(self) -> str:
        """What the interval says of the challenger."""
        return "better" if self.gain.low > 0.0 else "worse" if self.gain.high < 0.0 else "open"


class Comparison:
    """The labels so far, and the gain of a challenger in each metric.

    Parameters
    ----------
    error
        Largest probability that the interval of one metric is ever wrong.
    losses
        What a prediction loses; with two classes, `g-mean` is compared, too.
    """

    def __init__(self, error: float, losses: Losses) -> None:
        self._losses = losses
        self._gains = {name: AlwaysValidMean(error=error) for name in losses.names}
        self._totals = {name: [0.0, 0.0] for name in losses.names}  # of the model that serves, and of the challenger
        # On negative, then on positive events: the accuracy of the model that serves, and the challenger's gain.
        self._recalls = [AlwaysValidMean(low, 1.0, error / 4) for low in (0.0, -1.0) * 2] if losses.are_two else []

    @property
    def n(self) -> int:
        """Number of labels so far."""
        return self._gains[ERROR].n

    def observe(self, y: ClassLabel, champion: Said, challenger: Said) -> None:
        """Take the label of an event, and what both models said about it."""
        before, after = self._losses.of(y, champion), self._losses.of(y, challenger)
        if self._recalls:
            self._recalls[2 * bool(y)].observe(1.0 - before[ERROR])
            self._recalls[2 * bool(y) + 1].observe(before[ERROR] - after[ERROR])
        for name, gain in self._gains.items():
            gain.observe(before[name] - after[name])
            self._totals[name][0] += before[name]
            self._totals[name][1] += after[name]

    def is_better(self, metric: str) -> bool:
        """Whether the gain's interval lies above 0."""
        if metric == G_MEAN:
            return self._g_mean().says == "better"
        gain = self._gains[metric]
        return gain.is_above(0.0, gain.error / 2)

    def gain(self, metric: str) -> float:
        """The mean gain in a metric."""
        return self._g_mean().gain.value if metric == G_MEAN else self._gains[metric].mean

    def differences(self) -> Iterator[Difference]:
        """Each metric; without a label there is none."""
        if not self.n:
            return
        for name, gain in self._gains.items():
            scale = self._losses.scale(name)
            means = [total / self.n for total in self._totals[name]]
            if name == DECIDED:  # what was counted is the share that is left open
                means = [1.0 - mean for mean in means]
            yield Difference(
                name, means[0] * scale, means[1] * scale, Interval(*(bound * scale for bound in gain.interval()))
            )
            if name == ERROR and self._recalls:
                yield self._g_mean()

    def _g_mean(self) -> Difference:
        """The geometric mean of the accuracies on both classes; its interval is made of four intervals."""
        negative, lost, positive, won = (recall.interval() for recall in self._recalls)
        champion = math.sqrt(negative.value * positive.value)
        challenger = math.sqrt(max(0.0, (negative.value + lost.value) * (positive.value + won.value)))
        low = min(_gains(negative, positive, lost.low, won.low))
        high = max(_gains(negative, positive, lost.high, won.high))
        return Difference(G_MEAN, champion, challenger, Interval(challenger - champion, max(-1.0, low), min(1.0, high)))

    def to_json(self) -> dict[str, Any]:
        """What was counted, for a checkpoint."""
        return {
            "gains": {name: gain.to_state() for name, gain in self._gains.items()},
            "totals": self._totals,
            "recalls": [recall.to_state() for recall in self._recalls],
        }

    def restore(self, stored: Mapping[str, Any]) -> bool:
        """Go on from what `to_json` gave; False if other metrics were counted, so that the comparison begins anew."""
        if stored["gains"].keys() != self._gains.keys() or len(stored["recalls"]) != len(self._recalls):
            return False
        for name, gain in self._gains.items():
            gain.restore(stored["gains"][name])
            self._totals[name] = [*map(float, stored["totals"][name])]
        for recall, state in zip(self._recalls, stored["recalls"], strict=True):
            recall.restore(state)
        return True


def _gains(negative: Interval, positive: Interval, lost: float, won: float) -> list[float]:
    """Gains of the g-mean, among which are the smallest and the largest, where the accuracies gain just this much.

    The gain sqrt((n + lost) (p + won)) - sqrt(n p) has no slope only where n / p = lost / won, which is a ray.  So in a
    box of accuracies n and p, the extremes are at corners, where the ray meets an edge, or where n + lost or p + won
    reaches 0.
    """
    sides = [
        (each.low, each.high, min(max(each.low, -by), each.high)) for each, by in ((negative, lost), (positive, won))
    ]
    points = [(n, p) for n in sides[0] for p in sides[1]]
    if lost and won:
        points += [(n, n * won / lost) for n in sides[0] if positive.low <= n * won / lost <= positive.high]
        points += [(p * lost / won, p) for p in sides[1] if negative.low <= p * lost / won <= negative.high]
    return [math.sqrt(max(0.0, n + lost) * max(0.0, p + won)) - math.sqrt(n * p) for n, p in points]
