"""The learner that asks others: a kernel learner, simple experts beside it, and one probability made of all."""

import math
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.fixed import fixed_parameters
from streamsvm.estimators.inputs.checks import frame_like, series_like
from streamsvm.estimators.learner import late
from streamsvm.estimators.learners import LEARNERS
from streamsvm.estimators.mixture.asking import Asking
from streamsvm.estimators.mixture.classes import MixtureOfClasses
from streamsvm.estimators.mixture.experts import NONE
from streamsvm.estimators.multiclass.several import MulticlassSVM
from streamsvm.online.mixture.experts import K


@fixed_parameters
class Mixture(Asking):
    """A kernel learner with simple experts beside it; what predicts is nearly never behind the best of them.

    Eight experts learn each example beside the model: two passive-aggressive ones, two Bayesian logistic regressions
    (one sees the latest labels, too), the last label, bins of each feature and of each pair of features, and two kernel
    expansions that learn how much each feature matters.  Their probabilities and that of the model are calibrated,
    stacked at two speeds, weighted by how well each has predicted lately, and calibrated once more.

    Parameters
    ----------
    model
        The learner: an `AutoLASVM`, a `LASVM`, or one of its variants; or, for several classes, a `OneVsRest` or a
        `OneVsOne` of one.  Default: ``AutoLASVM()``.

    Raises
    ------
    TypeError
        If `model` is none of these.

    Notes
    -----
    **When.**  The experts help where the labels depend on each other in time, where a linear rule moves, where few of
    many features count, and where a model learns slowly.  They cost as much as the model, or less.  Where the kernel
    alone is right, they change little.  `docs/mixture.md` has the figures.

    **Features.**  The experts look at the first 128 features.  None and NaN are missing for them.  A feature that an
    example lacks is 0 for them, also where the model guesses it.

    **Label.**  The more probable label is predicted, so the `threshold` and the weights of the model do not decide it.

    **Memory** is bounded but for the model's: about 1.5 MB with few features, and 4 MB with 128.  Each further class
    takes 0.3 to 0.7 MB.

    **Several classes.**  ``Mixture(OneVsRest(AutoLASVM()))`` has experts for each class.  One softmax, which learns
    too, makes the probabilities of the classes of all their answers.  `decision_function_one` then has the logs of the
    probabilities by class.

    **Replay.**  The same examples give the same mixture, bit for bit, on one machine with one version of BLAS, however
    they are cut into batches.

    **Forgetting.**  `forget` takes examples out of the model, exactly.  Traces stay in the experts: in their weights,
    and among the latest 2048 examples until newer ones take their places.

    **Weights.**  The experts count each example once, whatever its weight.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import Mixture
    >>> evaluate.progressive_val_score(datasets.Phishing(), Mixture(), metrics.Accuracy())
    Accuracy: 91...%
    """

    def __new__(cls, model: Any = None) -> "Mixture":
        """Several classes have experts each; see `classes`."""
        return super().__new__(MulticlassMixture if isinstance(model, MulticlassSVM) else cls)

    def __init__(self, model: Any = None) -> None:
        super().__init__(model)

    # ----------------------------------------------------------------------------------------------------- prediction

    decision_threshold = 0.0

    def decision_function_one(self, x: dict) -> float:
        """The log of the odds of True: above 0, True is more probable."""
        return _log_odds(self._probability(x))

    def decision_function_many(self, X: Any) -> np.ndarray:
        """The log of the odds of True for all rows, (n,)."""
        return np.array([_log_odds(p) for p in self._answers(X)])

    def probability_one(self, margin: float) -> float:
        """The probability of True that belongs to these log odds."""
        return 1.0 / (1.0 + math.exp(-margin))

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of True that belong to these log odds, an array of the same shape."""
        return 1.0 / (1.0 + np.exp(-np.asarray(margins)))

    def margins_one(self, x: dict) -> tuple[float, ...]:
        """What the mixture, its experts and the model say of an example whose label will come late.

        Keep it, and give it to `learn_one` when the label has come: see `AutoLASVM.margins_one`.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        tuple of float
            The log odds, the probabilities of the model and of the experts, and what the model takes as its `margin`.
        """
        of_model = self._model.margins_one(x) if self._is_tuned else (self._model.decision_function_one(x),)
        return (self.decision_function_one(x), *self._experts.probabilities[0].tolist(), *of_model)

    def margins_many(self, X: Any) -> np.ndarray:
        """What `margins_one` returns for each row, as a row of an array."""
        return np.array([self.margins_one(x) for x in self._rows(X)])

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probabilities of False and True."""
        p = self._probability(x)
        return {False: 1.0 - p, True: p}

    def predict_one(self, x: dict, **kwargs: Any) -> bool:
        """The more probable label."""
        return self._probability(x) > 0.5

    def _probability(self, x: dict) -> float:
        answer: float = self._ask(x)
        return answer

    def _together(self, x: dict) -> Any:
        return self._experts.predict(x, [self._model.predict_proba_one(x)[True]])[0]

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of False and True for all rows: a dataframe for a dataframe, otherwise an array (n, 2)."""
        p = np.array(self._answers(X))
        return frame_like(X, [False, True], np.column_stack([1.0 - p, p]))

    def predict_many(self, X: Any) -> Any:
        """The more probable labels of all rows: a series for a dataframe, otherwise an array (n,) of bool."""
        return series_like(X, np.array([p > 0.5 for p in self._answers(X)], bool), self._y_name)

    def _said(self, margin: Any) -> tuple[Any, Any]:
        """What `margins_one` returned: the part of the experts, (1, K), and that of the model."""
        if not isinstance(margin, list | tuple | np.ndarray):
            raise TypeError(f"margin={margin!r:.100} must be what margins_one or margins_many returned")
        values = np.array([late.finite(value) for value in margin])
        if len(values) <= 1 + K or ((values[1 : 1 + K] < 0.0) | (values[1 : 1 + K] > 1.0)).any():
            raise ValueError(f"margin={margin!r} must be what margins_one or margins_many returned")
        rest = values[1 + K :].tolist()
        return values[np.newaxis, 1 : 1 + K], tuple(rest) if self._is_tuned else rest[0]

    def _have_experts_learn(self, x: dict, y: Any, said: Any) -> None:
        self._experts.know(x)
        self._experts.learn(0 if arguments.label_of(y) else NONE, said)


class MulticlassMixture(MixtureOfClasses, Mixture):  # type: ignore[misc]  # its answers are by class
    """What ``Mixture(OneVsRest(AutoLASVM()))`` makes."""


# The learners for two classes: those of the table of algorithms, and the one that asks simple experts beside them.
FOR_TWO_CLASSES: dict[str, Any] = {**LEARNERS, "mixture": Mixture}


def _log_odds(p: float) -> float:
    return math.log(p / (1.0 - p))
