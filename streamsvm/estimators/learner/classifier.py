"""The class that all online classifiers share: a river classifier over a kernel expansion."""

from abc import abstractmethod

from streamsvm.estimators.learner.forgetting import Forgetting
from streamsvm.estimators.learner.snapshots import Snapshots


class OnlineSVM(Forgetting, Snapshots):
    """An online support vector machine: a river classifier that learns, forgets, predicts and can be saved.

    `estimators.lasvm` and `estimators.gap_family` have the algorithms.  Each says what its bias, its problem and its
    compiled functions are, and how it finishes.
    """

    @abstractmethod
    def finish(self, tol: float | None = None) -> None:
        """Optimise over the members until no violation is above `tol`; default: the model's `tol`."""
