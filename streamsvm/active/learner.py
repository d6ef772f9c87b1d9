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

WINDOW = 300  # distances to compare with; the model grows more certain all the time, and old ones are soon too small


class ActiveLearner(base.Wrapper, base.Classifier):
    """Ask for the labels of the examples that a classifier is least sure about, within a budget.

    The stream goes by once: whether to ask for an example's label is decided when it arrives.  `ask` says so if the
    example is among those nearest to the decision boundary, compared with the 300 before it.  Everything else is the
    classifier's: `learn_one` learns what has a label, whoever asked for it, and predictions are plain predictions.

    Parameters
    ----------
    model
        A binary classifier, or a pipeline that ends in one.  The distance from the boundary is
        ``|decision_function_one(x)|``; of a classifier that has none, how far its probability is from one half.
    budget
        The share of the stream that may be asked about: above 0, at most 1.  After every call of `ask`, questions by
        examples is at most this number.
    explore
        The share of the questions that are asked about an example drawn at random, from 0 to 1.  Examples far from the
        boundary, on its wrong side, are found by these only.
    seed
        For the random draws; None: other draws each time.

    Raises
    ------
    ValueError
        If `budget` or `explore` is out of its range; the message names it.

    Notes
    -----
    Until labels of two classes have been learned, a boundary means nothing: questions are drawn at random.

    As long as nothing changes, `ask` uses up the budget: an example's rank among the last 300, with ties broken at
    random, is uniform, so it is among the nearest `budget` with probability `budget`.  Where that asks less, because
    the model grows more certain, the share rises by what is left of the budget, spread over 300 examples.

    river's `progressive_val_score` knows nothing of `ask` and learns every label: write the loop, as below.

    `ask` has to see every example once, those that it will not be asked about too.  It does not learn; a label may
    come late, or never.

    Where the unlabelled examples can be kept, `streamsvm.active.ActiveSelection` chooses among 59 of them for each
    question, instead of deciding about each as it passes.

    References
    ----------
    [^1]: Ertekin, S., Huang, J., Bottou, L., Giles, C. L., 2007. Learning on the border: active learning in imbalanced
    data classification. CIKM 2007, 127-136.

    Examples
    --------
    >>> from river import datasets, metrics
    >>> from streamsvm import LASVM, WarmupScaler
    >>> from streamsvm.active import ActiveLearner
    >>> model = ActiveLearner(WarmupScaler() | LASVM(C=10, gamma=1.0), budget=0.1, seed=1)
    >>> accuracy = metrics.Accuracy()
    >>> for x, y in datasets.Bananas():
    ...     accuracy.update(y, model.predict_one(x))
    ...     if model.ask(x):
    ...         model.learn_one(x, y)
    >>> accuracy.get() > 0.85, model.n_asked / model.n_seen <= 0.1
    (True, True)
    """

    def __init__(
        self, model: base.Classifier, budget: float = 0.1, explore: float = 0.1, seed: int | None = None
    ) -> None:
        if not (arguments.is_number(budget) and 0 < budget <= 1):
            raise ValueError(f"budget={budget!r} must be a share of the stream: above 0, at most 1")
        if not (arguments.is_number(explore) and 0 <= explore <= 1):
            raise ValueError(f"explore={explore!r} must be a share of the questions: from 0 to 1")
        if seed is not None:
            arguments.require_seed(seed)
        self.model = model
        self.budget = budget
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
        """A copy that shares nothing: neither the model nor the distances to compare with."""
        return copy.deepcopy(self)

    @property
    def n_seen(self) -> int:
        """How many examples `ask` has been called for."""
        return self._n_seen

    @property
    def n_asked(self) -> int:
        """For how many of them it said yes."""
        return self._n_asked

    def ask(self, x: dict) -> bool:
        """Whether the label of this example, the next of the stream, should be asked for.

        Parameters
        ----------
        x
            Features by name.
        """
        self._n_seen += 1
        wanted = self._is_wanted(x)  # even with the budget spent, for the example's distance is one to compare with
        if not wanted or (self._n_asked + 1) / self._n_seen > self.budget:
            return False
        self._n_asked += 1
        return True

    def _is_wanted(self, x: dict) -> bool:
        """Whether to ask if the budget allows it."""
        left = self.budget * self._n_seen - self._n_asked
        share = min(1.0, self.budget + left / WINDOW)
        if len(self._labels) < 2:
            return self._rng.random() < share
        rank = self._rank(self._distance(x))
        at_random = self.explore * share
        if self._rng.random() < at_random:
            return True
        return rank * (1.0 - at_random) < share - at_random  # with this, `share` in all

    def _rank(self, distance: float) -> float:
        """The share of recent examples that are nearer to the boundary, ties broken at random; take note of this one.

        Uniform on [0, 1) if the example comes from where those came from, however few they are.
        """
        first, last = bisect_left(self._sorted, distance), bisect_right(self._sorted, distance)
        rank = (first + self._rng.random() * (last - first + 1)) / (len(self._sorted) + 1)
        if len(self._recent) == WINDOW:
            del self._sorted[bisect_left(self._sorted, self._recent[0])]
        self._recent.append(distance)
        insort(self._sorted, distance)
        return rank

    def _distance(self, x: dict) -> float:
        """How far the example is from the decision boundary."""
        model: Any = self.model
        if isinstance(model, compose.Pipeline):
            x, model = model.transform_one(x), model[-1]
        if hasattr(model, "decision_function_one"):
            return abs(model.decision_function_one(x))
        distance = abs(model.predict_proba_one(x).get(True, 0.0) - 0.5)
        return distance if math.isfinite(distance) else 0.0

    def learn_one(self, x: dict, y: Any, **kwargs: Any) -> None:
        """Learn an example; other arguments, such as the weight `w`, go to the model."""
        self.model.learn_one(x, y, **kwargs)
        if len(self._labels) < 2 and y not in self._labels:
            self._labels.append(y)

    def predict_one(self, x: dict, **kwargs: Any) -> Any:
        """The model's answer."""
        return self.model.predict_one(x, **kwargs)

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The model's answer."""
        return self.model.predict_proba_one(x, **kwargs)
