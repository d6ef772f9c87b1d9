"""The probabilities that the last true members of a class got when they were predicted."""

from bisect import bisect_left, insort
from collections import deque
from typing import NamedTuple

from streamsvm.conformal.decision import Decision

WINDOW = 1000  # scores kept for each class


class Record(NamedTuple):
    """A labelled example.

    Attributes
    ----------
    id
        Its id.
    said
        What was said about it.
    p
        The probability that its own class got; None if the model was too young for it to count.
    step
        What its label added to the logarithm of the class's level.
    """

    id: int
    said: Decision
    p: float | None
    step: float


class Scores:
    """The last scores, in order and as they arrived."""

    def __init__(self) -> None:
        self.arrived: deque[tuple[int, float]] = deque()  # ids and scores
        self.ordered: list[float] = []

    def __len__(self) -> int:
        return len(self.ordered)

    def add(self, id: int, p: float) -> None:
        """Add a score, in the place of the oldest if there are too many."""
        arrived, ordered = self.arrived, self.ordered
        arrived.append((id, p))
        insort(ordered, p)
        if len(ordered) > WINDOW:
            del ordered[bisect_left(ordered, arrived.popleft()[1])]

    def remove(self, id: int) -> None:
        """Remove the scores of an example."""
        for _, p in [score for score in self.arrived if score[0] == id]:
            del self.ordered[bisect_left(self.ordered, p)]
        self.arrived = deque(score for score in self.arrived if score[0] != id)

    def threshold(self, level: float) -> float:
        """The score below which a share `level` of the scores lies; -1 if there are too few scores to say."""
        ordered = self.ordered
        n = len(ordered)
        k = int(level * (n + 1))
        return ordered[(k if k < n else n) - 1] if k and n else -1.0
