"""The classifier: its parameters, `fit` and `partial_fit`."""

import math
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from streamsvm.batch.options import SolverOptions
from streamsvm.core import arguments, storage
from streamsvm.core.centring import centre_of, centred
from streamsvm.estimators.inputs.training_set import (
    NO_WEIGHT,
    coded,
    codes,
    distinct,
    gamma_of,
    known_classes,
    require_moderate,
)
from streamsvm.estimators.learner.advice import warn_of_lost_digits
from streamsvm.estimators.learner.state import NEVER
from streamsvm.estimators.learners import ALGORITHMS
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.sklearn_api.fitted import FORM, FittedModel, is_given
from streamsvm.sklearn_api.given_kernel import KernelMachines, kernel_values, require_square
from streamsvm.sklearn_api.optimum import train_all

RAMP = ("lasvm-nc", "lasvm-i")  # These give examples up on purpose.
ONE_PASS = ("full", *RAMP)  # FULL keeps all examples.
OF_THE_MODEL = ("algorithm", "C", "kernel", "degree", "gamma", "coef0", "tol", "ramp_s", "cache_mb", "device")
HARD_MARGIN = 1e10  # the C that stands for infinity


@dataclass(eq=False, repr=False)
class LASVMClassifier(FittedModel, ClassifierMixin, BaseEstimator):
    """Kernel support vector machine that learns online, for scikit-learn.

    `partial_fit` learns from one batch after another; no batch needs to be kept.  `fit` solves over the whole training
    set.  Its model is that of `sklearn.svm.SVC` up to the tolerance.  More than two classes are separated
    one-versus-one, by a `streamsvm.OneVsOne`.

    Scale the features first.  They are stored in single precision, for the RBF kernel minus a constant.

    Parameters
    ----------
    algorithm
        ``"lasvm"``: with a bias.  ``"lasvm-g"``: without a bias.  ``"lasvm-nc"`` and ``"lasvm-i"``: without a bias, and
        with the ramp loss, which gives up examples that look like noise.  ``"full"``: without a bias, and keeps every
        example.
    C
        Largest coefficient of one example: how much an example on the wrong side may count.  Positive; infinity stands
        for 1e10.
    kernel
        ``"rbf"``, ``"linear"``, ``"poly"`` or ``"sigmoid"``.  ``"precomputed"``: X has kernel values with the training
        set instead of features.  A function: ``kernel(A, B)`` returns the kernel values of the examples of A with those
        of B.  The last two are for `fit` of ``"lasvm"`` only, as a stream has no kernel matrix.
    degree
        Degree of the polynomial kernel.
    gamma
        Factor in the kernel: a positive number; ``"scale"``: 1 / (n_features * variance of X); ``"auto"``:
        1 / n_features.  X is the training set, or the first batch of `partial_fit`.
    coef0
        Constant of the polynomial and sigmoid kernels.
    class_weight
        Factors on C by class, at least 0; a class that is not named has 1, and one of weight 0 is never predicted.
        ``"balanced"``: inversely proportional to the class's frequency, for `fit` only.
    tol
        Tolerance of the optimality conditions; positive.
    ramp_s
        For ``"lasvm-nc"`` and ``"lasvm-i"``: where the ramp begins.  The loss is at most 1 - ramp_s.
    decision_function_shape
        For more than two classes.  ``"ovr"``: `decision_function` has a value for each class, its votes and a fraction
        of a vote by the sum of its pairs' values.  ``"ovo"``: it has a value for each pair of classes.
    break_ties
        For more than two classes and ``"ovr"``: whether `predict` breaks a tie of votes by the decision values, as
        opposed to predicting the first of the classes.
    max_iter
        Largest number of passes that `fit` makes for a pair of classes; at least 1.  1 is the online algorithm: one
        pass, then the model is optimised over its members, which is about as accurate.  ``"lasvm-nc"``, ``"lasvm-i"``
        and ``"full"`` always make one pass.
    cache_mb
        Memory for kernel values, in megabytes; positive.  `fit` needs it for a kernel matrix, and gives it back.
    device
        Where kernel values are computed: ``"cpu"``, ``"cuda"`` or ``"auto"``, as for `streamsvm.LASVM`.  `fit` of
        ``"lasvm"`` in more than one pass uses the CPU.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    gamma_ : float
        The gamma in use.
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Number of passes of `fit` over the data of each pair of classes, including the last one, which changed nothing.
    n_samples_seen_ : int
        Number of examples given to `fit` and `partial_fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has string column names.
    model_ : LASVM, LASVMG, LASVMNC, LASVMI, FullSVM or OneVsOne
        The learner, which can also `finish`, `forget` and `save`.

    Notes
    -----
    The order of the examples does not matter to `fit`, and two fits give the same model: it learns the examples in an
    order that depends on their hashes.  Equal examples of one class are learned as one,
    with their weights added up; in `support_` the first of them stands for all.  So an example of weight 2 is the same
    as two examples.

    `fit` of ``"lasvm"`` multiplies matrices by BLAS, whose rounding depends on the processor.  Models from different
    processors agree within the tolerance.

    `fit` of ``"lasvm"`` solves on in double precision if there are at most 256 examples.  Then coefficients and
    intercepts are exact to about nine digits, whatever the order of the examples, if the optimum is unique.  Decision
    values of the linear kernel are ``X @ coef_.T + intercept_`` in double precision.

    There is no `pos_weight`: use `class_weight`.  There is no `budget` and no `window`, because `fit` finds the optimum
    of the whole training set.  For bounded memory, use `streamsvm.LASVM`.

    Scale the features first, as for `sklearn.svm.SVC`: this classifier takes them as they come.

    Probabilities come from a sigmoid that is fitted while learning, at no extra cost, to decision values of examples
    that were not yet learned.  For several classes, those of the pairs are coupled, then moved by as little as makes
    the predicted class the most probable.  For better probabilities use `sklearn.calibration.CalibratedClassifierCV`.

    For one-versus-rest, use ``sklearn.multiclass.OneVsRestClassifier(LASVMClassifier())``.

    References
    ----------
    [^1]: Bordes, A., Ertekin, S., Weston, J., Bottou, L., 2005. Fast kernel classifiers with online and active
    learning. Journal of Machine Learning Research 6, 1579-1619.
    [^2]: Ertekin, S., Bottou, L., Giles, C. L., 2011. Nonconvex online support vector machines. IEEE Transactions on
    Pattern Analysis and Machine Intelligence 33(2), 368-381.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from streamsvm.sklearn_api import LASVMClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bool(cross_val_score(make_pipeline(StandardScaler(), LASVMClassifier()), X, y).mean() > 0.95)
    True
    """

    algorithm: str = "lasvm"
    _: KW_ONLY
    C: float = 1.0
    kernel: str | Callable[[Any, Any], Any] = "rbf"
    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0
    class_weight: dict | str | None = None
    tol: float = 1e-3
    ramp_s: float = -1.0
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    max_iter: int = 100
    cache_mb: float = 256.0
    device: str = "cpu"

    # ------------------------------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn a training set, and forget what was learned before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,)
            Factors on C; an example of weight 0 or below is left out, as by `sklearn.svm.SVC`.

        Returns
        -------
        LASVMClassifier
            This classifier.

        Raises
        ------
        ValueError
            If a parameter is out of its range, if X, y and the weights do not match, or if there is only one class.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` passes did not reach the optimum.
        """
        arguments.require_count("max_iter", self.max_iter, 1)
        checked, y, weights = self._checked(X, y, sample_weight, first=True)
        weights = np.maximum(weights, 0.0)
        self.classes_, labels = coded(y, weights)
        if is_given(self.kernel):
            self._X_fit = X if callable(self.kernel) else None
            outcomes = self._fit_to_kernel(checked, labels, weights)
        else:
            outcomes = self._fit_to_features(checked, labels, weights)
        self.n_iter_ = np.array([passes for passes, _ in outcomes], np.int32)
        if not all(reached for _, reached in outcomes):
            warnings.warn(
                f"fit stopped after max_iter={self.max_iter} passes, before every example met the margin or was kept; "
                "scale the features, or raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.n_samples_seen_ = checked.shape[0]
        return self

    def _fit_to_features(self, X: Any, labels: np.ndarray, weights: np.ndarray) -> list[tuple[int, bool]]:
        """Train a model; the number of passes for each pair of classes, and whether they sufficed."""
        require_moderate(X)
        rows, weights = distinct(X, labels, weights)
        X, labels = X[rows], labels[rows]
        factors = self._class_factors(labels, weights)
        self._start(X, weights)
        X = centred(X, self._centre)
        max_passes = 1 if self.algorithm in ONE_PASS else self.max_iter
        outcomes = train_all(self.model_, X, labels, weights * factors[labels], rows, max_passes=max_passes)
        self._warn_of_lost_digits()
        return outcomes

    def _fit_to_kernel(self, K: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> list[tuple[int, bool]]:
        """The same for kernel values that the user computes."""
        factors = self._class_factors(labels, weights)[labels]
        arguments.require_positive("C", self._bound)
        box = arguments.boxes_of(self._bound, weights, factors, "sample_weight")
        self.n_features_in_, self._begun_with = K.shape[1], self.get_params(deep=False)
        options = SolverOptions(tol=self.tol, cache_mb=self.cache_mb, max_passes=max(self.max_iter, 2))
        used = np.flatnonzero(weights > 0.0)
        self.model_ = KernelMachines(K, labels, used, box, options)
        return self.model_.outcomes

    def _warn_of_lost_digits(self) -> None:
        if isinstance(self.model_, OneVsOne):
            self.model_._look()
        else:
            s = self.model_._state.expansion
            warn_of_lost_digits(s, self.model_._state.kernel, float(np.linalg.norm(s.alpha)))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn the next batch of examples in their order, in one pass.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The examples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,)
            All labels that will occur; required in the first call.
        sample_weight : array-like of shape (n_samples,)
            Factors on C; an example of weight 0 or below is left out, as by `sklearn.svm.SVC`.

        Returns
        -------
        LASVMClassifier
            This classifier.

        Raises
        ------
        ValueError
            As for `fit`.  Also if `classes` is missing in the first call or different later, if y has another label, if
            `class_weight` is "balanced", because the frequencies are unknown, or if a parameter of the model has been
            set since the first call.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs all examples, and partial_fit has only some: give the weights as a dict'
            )
        if is_given(self.kernel):
            raise ValueError(f"kernel={self.kernel!r} is for fit only: partial_fit needs features of later examples")
        first = not hasattr(self, "model_")
        if not first:
            self._require_unchanged()
        X, y, weights = self._checked(X, y, sample_weight, first)
        arguments.weights_of(weights, len(weights), "sample_weight")
        known = known_classes(None if first else self.classes_, classes)
        labels = codes(known, y)
        self.classes_ = known
        factors = self._class_factors(labels, weights)
        if first:
            self._start(X, weights)
            self.n_samples_seen_ = 0
        ids = self.n_samples_seen_ + np.arange(X.shape[0])
        self.model_.learn_many(centred(X, self._centre), labels, w=weights * factors[labels], ids=ids)
        self.n_samples_seen_ += X.shape[0]
        return self

    def _checked(self, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Any, np.ndarray, np.ndarray]:
        for name, values in (("X", X), ("sample_weight", sample_weight)):
            arguments.require_unmasked(name, values)
        _require_labels(y)
        if first:
            self._require_shape()
        if is_given(self.kernel):
            if self.algorithm != "lasvm":
                raise ValueError(
                    f'kernel={self.kernel!r} needs algorithm="lasvm", not {self.algorithm!r}, which learns online'
                )
            X, y = kernel_values(self.kernel, X, X), column_or_1d(y, warn=True)
            require_square(X, y)
        else:
            X, y = validate_data(self, X, y, reset=first, **FORM)
        check_classification_targets(y)
        return X, y, _weights_of(sample_weight, X)

    def _start(self, X: Any, weights: np.ndarray) -> None:
        """Make the model for these first examples."""
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm={self.algorithm!r} is unknown; use one of {', '.join(map(repr, ALGORITHMS))}")
        self.gamma_ = gamma_of(self.gamma, X, weights)
        own = {name: getattr(self, name) for name in OF_THE_MODEL[1:] if name != "ramp_s" or self.algorithm in RAMP}
        own |= {"C": self._bound, "gamma": self.gamma_, "reservoir": 0}  # `fit` looks at all examples again
        model = ALGORITHMS[self.algorithm](**own)
        model._state.next_look = NEVER  # A training set may be sorted, and has no run of predictions.
        self._centre = centre_of(X, model._state.kernel)
        n_classes = len(self.classes_)
        self.model_ = model if n_classes == 2 else OneVsOne(model, classes=range(n_classes))
        self._is_sparse = sp.issparse(X)
        self._begun_with = self.get_params(deep=False)

    def _require_unchanged(self) -> None:
        """Raise a ValueError if a parameter of the model has been set since it began to learn."""
        for name in OF_THE_MODEL:
            now, before = getattr(self, name), self._begun_with[name]
            if now != before:
                raise ValueError(
                    f"{name}={now!r} was set after learning began with {name}={before!r}, and partial_fit goes on with "
                    f"that model; set {name} back, or learn the examples anew: with fit, or with a clone"
                )

    @property
    def _bound(self) -> float:
        """C, or a number that stands for infinity."""
        return HARD_MARGIN if isinstance(self.C, float) and math.isinf(self.C) and self.C > 0 else self.C

    def _class_factors(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if self.class_weight is None:  # scikit-learn's function takes as long as a fit of a small set
            return np.ones(len(self.classes_))
        if isinstance(self.class_weight, dict):
            for label, weight in self.class_weight.items():
                if not (arguments.is_number(weight) and weight >= 0):
                    raise ValueError(f"class_weight[{label!r}]={weight!r} must be a finite number, at least 0")
        y = self.classes_[labels]
        factors = compute_class_weight(self.class_weight, classes=self.classes_, y=y, sample_weight=weights)
        if not factors.any():
            raise ValueError(
                f"class_weight={self.class_weight!r} gives every class the weight 0, so nothing is learned"
            )
        arguments.boxes_of(self._bound, factors, np.ones(len(factors)), "class_weight")
        return factors

    def __setstate__(self, state: dict) -> None:
        """Copy read-only arrays of the model: joblib maps large ones from files."""
        super().__setstate__({name: storage.owned(value) for name, value in state.items()})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not is_given(self.kernel)
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _require_labels(y: Any) -> None:
    """Refuse what scikit-learn stumbles over: a dict, a set, and pandas' NA."""
    labels = arguments.vector_of("y", y)
    if labels.dtype == object and labels.ndim == 1:
        arguments.require_labels(labels)


def _weights_of(sample_weight: Any, X: Any) -> np.ndarray:
    """The weights of the examples, not all of them 0."""
    given = np.ones(1) if sample_weight is None else arguments.numbers_in("sample_weight", sample_weight)
    if given.size > 0 and not np.count_nonzero(given):
        raise ValueError(NO_WEIGHT)
    return _check_sample_weight(sample_weight, X, dtype=np.float64)
