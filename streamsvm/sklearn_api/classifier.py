"""The classifier: its parameters, `fit` and `partial_fit`."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from streamsvm.core import arguments, storage
from streamsvm.estimators.inputs.training_set import coded, codes, distinct, gamma_of, known_classes
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learner.model import NEVER
from streamsvm.estimators.learners import ALGORITHMS
from streamsvm.estimators.several.multiclass import OneVsRest
from streamsvm.online.lasvm import keep_block
from streamsvm.sklearn_api.fitted import FORM, FittedModel
from streamsvm.sklearn_api.optimum import Examples, learn_to_optimum

RAMP = ("lasvm-nc", "lasvm-i")  # These give examples up on purpose.
ONE_PASS = ("full", *RAMP)  # FULL keeps all examples.


class LASVMClassifier(FittedModel, ClassifierMixin, BaseEstimator):
    """Kernel support vector machine that learns online, for scikit-learn.

    `partial_fit` learns from one batch after another; no batch needs to be kept.  `fit` solves over the whole training
    set.  For two classes its model is that of `sklearn.svm.SVC` up to the tolerance.  More classes are separated
    one-versus-rest, by a `streamsvm.OneVsRest`.

    Scale the features first.  They are stored in single precision.

    Parameters
    ----------
    algorithm
        ``"lasvm"``: with a bias.  ``"lasvm-g"``: without a bias.  ``"lasvm-nc"`` and ``"lasvm-i"``: without a bias, and
        with the ramp loss, which gives up examples that look like noise.  ``"full"``: without a bias, and keeps every
        example.
    C
        Largest coefficient of one example: how much an example on the wrong side may count.  Positive.
    kernel
        ``"rbf"``, ``"linear"``, ``"poly"`` or ``"sigmoid"``.
    degree
        Degree of the polynomial kernel.
    gamma
        Factor in the kernel: a positive number; ``"scale"``: 1 / (n_features * variance of X); ``"auto"``:
        1 / n_features.  X is the training set, or the first batch of `partial_fit`.
    coef0
        Constant of the polynomial and sigmoid kernels.
    class_weight
        Factors on C by class; a class that is not named has 1.  ``"balanced"``: inversely proportional to the class's
        frequency, for `fit` only.
    tol
        Tolerance of the optimality conditions; positive.
    ramp_s
        For ``"lasvm-nc"`` and ``"lasvm-i"``: where the ramp begins.  The loss is at most 1 - ramp_s.
    max_iter
        Largest number of passes that `fit` makes; at least 1.  1 is the online algorithm: one pass, then the model is
        optimised over its members, which is about as accurate.  ``"lasvm-nc"``, ``"lasvm-i"`` and ``"full"`` always
        make one pass.
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
    n_iter_ : int
        Number of passes over the data, including the last one, which changed nothing.
    n_samples_seen_ : int
        Number of examples given to `fit` and `partial_fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X has string column names.
    model_ : LASVM, LASVMG, LASVMNC, LASVMI, FullSVM or OneVsRest
        The learner, which can also `finish`, `forget` and `save`.

    Notes
    -----
    The order of the examples does not matter to `fit`, and two fits give the same model: it learns the examples in an
    order that depends on their hashes.  Equal examples of one class are learned as one,
    with their weights added up; in `support_` the first of them stands for all.  So an example of weight 2 is the same
    as two examples.

    `fit` of ``"lasvm"`` multiplies matrices by BLAS, whose rounding depends on the processor.  Models from different
    processors agree within the tolerance.

    There is no `pos_weight`: use `class_weight`.  There is no `budget` and no `window`, because `fit` finds the optimum
    of the whole training set.  For bounded memory, use `streamsvm.LASVM`.

    Scale the features first, as for `sklearn.svm.SVC`: this classifier takes them as they come.

    Probabilities come from a sigmoid that is fitted while learning, at no extra cost, to decision values of examples
    that were not yet learned.  Several classes share the mean
    of their sigmoids, so that the most probable class is the predicted one.  For better probabilities use
    `sklearn.calibration.CalibratedClassifierCV`.

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

    def __init__(
        self,
        algorithm: str = "lasvm",
        *,
        C: float = 1.0,
        kernel: str = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        class_weight: dict | str | None = None,
        tol: float = 1e-3,
        ramp_s: float = -1.0,
        max_iter: int = 100,
        cache_mb: float = 256.0,
        device: str = "cpu",
    ) -> None:
        self.algorithm = algorithm
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.class_weight = class_weight
        self.tol = tol
        self.ramp_s = ramp_s
        self.max_iter = max_iter
        self.cache_mb = cache_mb
        self.device = device

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
            Factors on C; an example of weight 0 is left out.

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
        X, y, weights = self._checked(X, y, sample_weight, first=True)
        self.classes_, labels = coded(y, weights)
        rows, weights = distinct(X, labels, weights)
        X_once, labels = X[rows], labels[rows]
        factors = self._class_factors(labels, weights)
        self._start(X_once, weights)
        weights = weights * factors[labels]
        if self.algorithm == "lasvm" and self.max_iter > 1:
            examples = Examples(X_once, labels, weights, rows)
            self.n_iter_, reached = learn_to_optimum(self.model_, examples, self.max_iter)
            if not reached:
                self._warn_of_max_iter()
        else:
            self.model_.learn_many(X_once, labels, w=weights, ids=rows)
            self.model_.finish()
            self.n_iter_ = 1 if self.algorithm in ONE_PASS else self._learn_the_rest(X_once, labels, weights, rows)
        self.n_samples_seen_ = X.shape[0]
        return self

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
            Factors on C; an example of weight 0 is left out.

        Returns
        -------
        LASVMClassifier
            This classifier.

        Raises
        ------
        ValueError
            As for `fit`.  Also if `classes` is missing in the first call or different later, if y has another label, or
            if `class_weight` is "balanced": the frequencies are unknown.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs all examples, and partial_fit has only some: give the weights as a dict'
            )
        first = not hasattr(self, "model_")
        X, y, weights = self._checked(X, y, sample_weight, first)
        known = known_classes(None if first else self.classes_, classes)
        labels = codes(known, y)
        self.classes_ = known
        factors = self._class_factors(labels, weights)
        if first:
            self._start(X, weights)
            self.n_samples_seen_ = 0
        ids = self.n_samples_seen_ + np.arange(X.shape[0])
        self.model_.learn_many(X, labels, w=weights * factors[labels], ids=ids)
        self.n_samples_seen_ += X.shape[0]
        return self

    def _checked(self, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Any, np.ndarray, np.ndarray]:
        for name, values in (("X", X), ("y", y), ("sample_weight", sample_weight)):
            arguments.require_unmasked(name, values)
        X, y = validate_data(self, X, y, reset=first, **FORM)
        check_classification_targets(y)
        return X, y, _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _start(self, X: Any, weights: np.ndarray) -> None:
        """Make the model for these first examples."""
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm={self.algorithm!r} is unknown; use one of {', '.join(map(repr, ALGORITHMS))}")
        self.gamma_ = gamma_of(self.gamma, X, weights)
        ramp: dict[str, Any] = {"ramp_s": self.ramp_s} if self.algorithm in RAMP else {}
        model = ALGORITHMS[self.algorithm](
            C=self.C,
            kernel=self.kernel,
            gamma=self.gamma_,
            degree=self.degree,
            coef0=self.coef0,
            tol=self.tol,
            reservoir=0,  # `fit` looks at all examples again
            cache_mb=self.cache_mb,
            device=self.device,
            **ramp,
        )
        model._next_look = NEVER  # A training set may be sorted, and has no run of predictions.
        n_classes = len(self.classes_)
        self.model_ = model if n_classes == 2 else OneVsRest(model, classes=range(n_classes))

    def _class_factors(self, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if self.class_weight is None:  # scikit-learn's function takes as long as a fit of a small set
            return np.ones(len(self.classes_))
        y = self.classes_[labels]
        return compute_class_weight(self.class_weight, classes=self.classes_, y=y, sample_weight=weights)

    def _learn_the_rest(self, X: Any, labels: np.ndarray, weights: np.ndarray, ids: np.ndarray) -> int:
        """Make violating examples members and optimise, until no example violates; return the number of passes.

        Learning them like new examples would go wrong.  If no coefficient is between its bounds, an example with
        coefficient 0 may fix the bias, and an online learner drops such examples.  The sigmoid would also be fitted to
        the worst margins only.
        """
        for n_passes in range(2, self.max_iter + 1):
            late = self._violators(X, labels, weights, ids)
            if not len(late):
                return n_passes
            with _keeping_all(self._models):
                self.model_.learn_many(X[late], labels[late], w=weights[late], ids=ids[late])
            self.model_.finish()
        if self.max_iter > 1:
            self._warn_of_max_iter()
        return self.max_iter

    def _warn_of_max_iter(self) -> None:
        warnings.warn(
            f"fit stopped after {self.n_iter_} passes (max_iter={self.max_iter}), before every example met the margin "
            "or was kept; scale the features, or raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _violators(self, X: Any, labels: np.ndarray, weights: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Numbers of the examples that should be support vectors of a model and are not."""
        values = self.model_.decision_function_many(X).reshape(len(ids), -1)
        late = np.zeros(len(ids), bool)
        for k, support in enumerate(self._support):
            positive = labels == (1 if len(self.classes_) == 2 else k)
            margins = np.where(positive, 1.0, -1.0) * values[:, k]
            late |= (margins < 1.0 - self.tol) & ~np.isin(ids, support)
        return np.flatnonzero(late & (weights > 0.0))

    def __setstate__(self, state: dict) -> None:
        """Copy read-only arrays of the model: joblib maps large ones from files."""
        super().__setstate__({name: storage.owned(value) for name, value in state.items()})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@contextmanager
def _keeping_all(models: list[OnlineSVM]) -> Iterator[None]:
    """Let these models make every example a member, without optimisation steps; `finish` must follow."""
    for model in models:
        model._learn_block = keep_block
    try:
        yield
    finally:
        for model in models:
            del model._learn_block
