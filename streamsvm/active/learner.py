"""A river classifier that says which examples of a stream are worth a label.

`choosing.mixed` says why there are three kinds of questions.  It compares the examples of a pool.  Here each example
passes once, so it is compared with the examples before it.  The kind is drawn at random, and decides which score is
compared:

| way      | share | score: the smallest are asked about                                                    |
|----------|-------|----------------------------------------------------------------------------------------|
| boundary | 0.6   | |f|                                                                                    |
| novel    | 0.3   | min(|f|, 1) - sigma, sigma as in `span`                                                |
| far      | 0.1   | -log(u) / d^2, u uniform, d the Euclidean distance from the nearest labelled example   |

The smallest of the last scores are a sample in proportion to d^2, without replacement: Efraimidis, Spirakis, "Weighted
random sampling with a reservoir", Information Processing Letters 97 (2006).  Until two classes are known, the
third kind is used for all examples.

Measured on 9 data sets as streams, against questions nearest to the boundary with one in ten at random: the mean
g-means rise by 8 to 11 points.  They rise most where random questions miss a rare class; see benchmarks/README.md.
"""

import copy
import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Self

from river import base, compose, utils

from streamsvm.active.choosing.novelty import Passing
from streamsvm.core import arguments
from streamsvm.core.fixed import fixed_parameters

WINDOW = 300  # Scores to compare with.  The model grows more certain, so old scores are soon too small.
BOUNDARY, NOVEL, FAR = range(3)


class _Scores(utils.SortedWindow):
    """The last scores of a way, in order."""

    def rank(self, score: float, u: float) -> float:
        """The share of these scores that are smaller, where `u` breaks ties; remember this one.

        In a stable stream it is uniform on [0, 1), however few scores there are.
        """
        first, last = bisect_left(self.data, score), bisect_right(self.data, score)
        rank = (first + u * (last - first + 1)) / (len(self) + 1)
        self.append(score)
        return rank


@fixed_parameters
class ActiveLearner(base.Wrapper, base.Classifier):
    """Ask for the labels that teach a classifier most, for at most a share of the stream.

    The stream goes by once: `ask` decides about each example when it arrives, compared with examples before it.  Some
    questions are about examples near the decision boundary, some about examples unlike the labelled ones.  Learning and
    predicting are the classifier's own.

    Parameters
    ----------
    model
        A binary classifier, or a pipeline that ends in one.  The distance from the boundary is
        ``|decision_function_one(x)|``.  If the classifier does not have that, it is twice the distance of its
        probability from one half.
    share
        Share of the stream that may be asked about; above 0, at most 1.  It is never exceeded: after each call of
        `ask`, the number of questions is at most `share` times the number of examples.
    explore
        Share of the questions about examples that are drawn in proportion to their squared distance from the nearest
        labelled example, from 0 to 1.  Of the others, two thirds are about examples near the boundary.  One third is
        about examples that are uncertain, or outside the margin, and that the labelled ones explain least.
    seed
        For the random draws; None: other draws each time.

    Raises
    ------
    ValueError
        If `share` or `explore` is out of its range; the message names it.
    TypeError
        If `model` is no classifier.

    Notes
    -----
    Call `ask` once for every example of the stream.  It does not learn.  A label may come late, or never.

    river's `progressive_val_score` does not know `ask` and learns every label: write the loop as below.

    Until labels of two classes have been learned, there is no boundary, and all questions are about distant examples.
    This finds a rare class sooner than random questions.

    `ask` says yes if the example's score is among the best `share` of the last 300 examples with the same kind of
    score.  In a stable stream this uses up the share.  If the model grows more certain, fewer examples are among the
    best.  The unused part of the share is then spread over the next 300 examples.

    Distances are in standard deviations of the features if the classifier scales them, or if it is not of this package;
    otherwise the features are taken as they are.  The newest 250 to 500 labelled examples are remembered for the
    distances.  Features that are neither finite numbers nor texts are left out.

    If you can keep the unlabelled examples, use `streamsvm.active.MixedSelection`: it chooses from all of them for each
    question.

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
    >>> accuracy.get() > 0.8, model.n_asked / model.n_seen <= 0.1
    (True, True)
    """

    def __init__(
        self, model: base.Classifier, share: float = 0.1, explore: float = 0.1, seed: int | None = None
    ) -> None:
        if not hasattr(model, "learn_one"):
            raise TypeError(f"model={model!r:.60} must be a classifier such as LASVM(), or a pipeline that ends in one")
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
        self._scores = tuple(_Scores(WINDOW) for _ in (BOUNDARY, NOVEL, FAR))
        self._passing = Passing()

    @property
    def _wrapped_model(self) -> base.Classifier:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict]:
        from river import linear_model  # takes 0.6 s to load

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
        way = self._drawn_way()
        return self._scores[way].rank(self._score(way, x), self._rng.random()) < share

    def _drawn_way(self) -> int:
        if len(self._labels) < 2:
            return FAR
        u = self._rng.random()
        return FAR if u < self.explore else NOVEL if u < self.explore + (1.0 - self.explore) / 3.0 else BOUNDARY

    def _score(self, way: int, x: dict) -> float:
        x, learner = self._as_seen(x)
        if way == FAR:
            near, key = self._passing.distance(x, learner), -math.log(1.0 - self._rng.random())
            return key / near if near > 0.0 else math.inf
        distance = _distance(x, learner)
        return distance if way == BOUNDARY else min(distance, 1.0) - self._passing.novelty(x, learner)

    def _as_seen(self, x: dict) -> tuple[dict, Any]:
        """The example as the learner itself sees it, and the learner."""
        model: Any = self.model
        return (model.transform_one(x), model[-1]) if isinstance(model, compose.Pipeline) else (x, model)

    def learn_one(self, x: dict, y: Any, **kwargs: Any) -> None:
        """Learn an example.  Further arguments, such as the weight `w`, go to the model."""
        self.model.learn_one(x, y, **kwargs)
        self._passing.add(self._as_seen(x)[0])
        if len(self._labels) < 2 and y not in self._labels:
            self._labels.append(y)

    def predict_one(self, x: dict, **kwargs: Any) -> Any:
        """The label that the model predicts."""
        return self.model.predict_one(x, **kwargs)

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probabilities that the model predicts."""
        return self.model.predict_proba_one(x, **kwargs)


def _distance(x: dict, learner: Any) -> float:
    """The distance of the example from the decision boundary; the margin ends at 1."""
    if hasattr(learner, "decision_function_one"):
        return abs(learner.decision_function_one(x) - getattr(learner, "decision_threshold", 0.0))
    distance = abs(2.0 * learner.predict_proba_one(x).get(True, 0.0) - 1.0)
    return distance if math.isfinite(distance) else 0.0
