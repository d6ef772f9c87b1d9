"""A river classifier that says which examples of a stream are worth a label."""

import copy
import math
import random
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator
from typing import Any, Self

from river import base, compose, linear_model

from streamsvm.core import arguments

WINDOW = 300  # Distances to compare with.  The model grows more certain, so old distances are soon too small.


class ActiveLearner(base.Wrapper, base.Classifier):
    """Ask for the labels that a classifier is least sure about, for at most a share of the stream.

    The stream goes by once: `ask` decides about each example when it arrives.  It says yes if the example is among the
    nearest to the decision boundary, compared with the 300 examples before it.  Learning and predicting are the
    classifier's own.

    Parameters
    ----------
    model
        A binary classifier, or a pipeline that ends in one.  The distance from the boundary is
        ``|decision_function_one(x)|``.  If the classifier does not have that, it is the distance of its probability
        from one half.
    share
        Share of the stream that may be asked about; above 0, at most 1.  It is never exceeded: after each call of
        `ask`, the number of questions is at most `share` times the number of examples.
    explore
        Share of the questions about random examples, from 0 to 1.  Only random questions can find confident mistakes.
    seed
        For the random draws; None: other draws each time.

    Raises
    ------
    ValueError
        If `share` or `explore` is out of its range; the message names it.

    Notes
    -----
    Call `ask` once for every example of the stream.  It does not learn.  A label may come late, or never.

    river's `progressive_val_score` does not know `ask` and learns every label: write the loop as below.

    Until labels of two classes have been learned, there is no boundary, and questions are random.

    In a stable stream, `ask` uses up the share: the rank of an example among the last 300 is uniform, so it is among
    the nearest `share` with that probability.  If the model grows more certain, fewer examples are near.  The unused
    part of the share is then spread over the next 300 examples.

    If you can keep the unlabelled examples, use `streamsvm.active.ActiveSelection`: it chooses among 59 of them for
    each question.

    References
    ----------
    [^1]: Ertekin, S., Huang, J., Bottou, L., Giles, C. L., 2007. Learning on the border: active learning in imbalanced
    data classification. CIKM 2007, 127-136.

    Examples
    --------
    >>> from river import datasets, metrics
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import ActiveLearner
    >>> model = ActiveLearner(LASVM(), share=0.1, seed=1)
    >>> accuracy = metrics.Accuracy()
    >>> for x, y in datasets.Bananas():
    ...     accuracy.update(y, model.predict_one(x))
    ...     if model.ask(x):
    ...         model.learn_one(x, y)
    >>> accuracy.get() > 0.85, model.n_asked / model.n_seen <= 0.1
    (True, True)
    """

    def __init__(
        self, model: base.Classifier, share: float = 0.1, explore: float = 0.1, seed: int | None = None
    ) -> None:
        if not (arguments.is_number(share) and 0 < share <= 1):
            raise ValueError(f"share={share!r} must be a share of the stream: above 0, at most 1")
        if not (arguments.is_number(explore) and 0 <= explore <= 1):
            raise ValueError(f"explore={explore!r} must be a share of the questions: from 0 to 1")
        if seed is not None:
            arguments.require_seed(seed)
        self.model = model
        self.share = share
        self.explore = explore
        self.seed = seed
        self._rng = random.Random(seed)  # noqa: S311 - draws of examples, not secrets
        self._n_seen = 0
        self._n_asked = 0
        self._labels: list[Any] = []  # of the first two classes
        self._recent: deque[float] = deque(maxlen=WINDOW)  # distances from the boundary
        self._sorted: list[float] = []  # the same

    @property
    def _wrapped_model(self) -> base.Classifier:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict]:
        yield {"model": linear_model.LogisticRegression()}

    def __copy__(self) -> Self:
        """A deep copy: of the model, and of the distances to compare with."""
        return copy.deepcopy(self)

    @property
    def n_seen(self) -> int:
        """Number of examples that `ask` has seen."""
        return self._n_seen

    @property
    def n_asked(self) -> int:
        """Number of examples for which `ask` said yes."""
        return self._n_asked

    def ask(self, x: dict) -> bool:
        """Decide whether to ask for the label of this example, the next of the stream.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        bool
            Whether to ask.
        """
        self._n_seen += 1
        wanted = self._is_wanted(x)  # Even if the share is spent: later examples are compared with this one.
        if not wanted or (self._n_asked + 1) / self._n_seen > self.share:
            return False
        self._n_asked += 1
        return True

    def _is_wanted(self, x: dict) -> bool:
        """Whether the example is worth a question, if the share allows one."""
        left = self.share * self._n_seen - self._n_asked
        share = min(1.0, self.share + left / WINDOW)
        if len(self._labels) < 2:
            return self._rng.random() < share
        rank = self._rank(self._distance(x))
        at_random = self.explore * share
        if self._rng.random() < at_random:
            return True
        return rank * (1.0 - at_random) < share - at_random  # With the random ones this makes `share` in all.

    def _rank(self, distance: float) -> float:
        """The share of recent examples that are nearer to the boundary, ties broken at random; remember this one.

        In a stable stream it is uniform on [0, 1), however few examples there are.
        """
        first, last = bisect_left(self._sorted, distance), bisect_right(self._sorted, distance)
        rank = (first + self._rng.random() * (last - first + 1)) / (len(self._sorted) + 1)
        if len(self._recent) == WINDOW:
            del self._sorted[bisect_left(self._sorted, self._recent[0])]
        self._recent.append(distance)
        insort(self._sorted, distance)
        return rank

    def _distance(self, x: dict) -> float:
        """The distance of the example from the decision boundary."""
        model: Any = self.model
        if isinstance(model, compose.Pipeline):
            x, model = model.transform_one(x), model[-1]
        if hasattr(model, "decision_function_one"):
            return abs(model.decision_function_one(x))
        distance = abs(model.predict_proba_one(x).get(True, 0.0) - 0.5)
        return distance if math.isfinite(distance) else 0.0

    def learn_one(self, x: dict, y: Any, **kwargs: Any) -> None:
        """Learn an example.  Further arguments, such as the weight `w`, go to the model."""
        self.model.learn_one(x, y, **kwargs)
        if len(self._labels) < 2 and y not in self._labels:
            self._labels.append(y)

    def predict_one(self, x: dict, **kwargs: Any) -> Any:
        """The label that the model predicts."""
        return self.model.predict_one(x, **kwargs)

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probabilities that the model predicts."""
        return self.model.predict_proba_one(x, **kwargs)
