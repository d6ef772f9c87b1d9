"""Predictions of a fitted classifier, and the attributes of a support vector machine."""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from streamsvm.core import arguments, storage
from streamsvm.core.centring import Centre, centred
from streamsvm.core.inputs import in_columns
from streamsvm.core.threads import one_blas_thread
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.online.outputs.coupling import led_by
from streamsvm.online.outputs.votes import best_classes, class_values
from streamsvm.sklearn_api.given_kernel import KernelMachines, kernel_values

# The engine is compiled for writable arrays; joblib maps read-only ones from files.
FORM = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C", "force_writeable": True}


SHAPES = ("ovr", "ovo")


def is_given(kernel: Any) -> bool:
    """Whether the user computes the kernel values."""
    return callable(kernel) or (isinstance(kernel, str) and kernel == "precomputed")


class _Machine(NamedTuple):
    """A binary machine: the places of its classes in `classes_`, and its support vectors' numbers and coefficients."""

    positive: int
    negative: int
    numbers: np.ndarray
    alpha: np.ndarray
    bias: float


class FittedModel:
    """Predictions of a classifier, and what it has learned."""

    model_: Any
    classes_: np.ndarray
    n_features_in_: int
    kernel: Any
    decision_function_shape: str
    break_ties: bool
    _begun_with: dict[str, Any]  # the parameters when learning began
    _is_sparse: bool
    _centre: Centre | None = None
    _X_fit: Any

    @property
    def _kernel(self) -> Any:
        """The kernel of the model: the parameter may have been set since, for the next `fit`."""
        check_is_fitted(self, "model_")
        return self._begun_with["kernel"]

    def _require_shape(self) -> None:
        if self.decision_function_shape not in SHAPES:
            shapes = " or ".join(map(repr, SHAPES))
            raise ValueError(f"decision_function_shape={self.decision_function_shape!r} must be {shapes}")

    # ----------------------------------------------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes * (n_classes - 1) / 2)
            For two classes, positive for ``classes_[1]``.  For more, a column for each class, or for each pair with
            ``decision_function_shape="ovo"``: it is positive for the first class of the pair.
        """
        self._require_shape()
        margins, n_classes = self._margins(X), len(self.classes_)
        if n_classes == 2:
            return margins[:, 0]
        return margins if self.decision_function_shape == "ovo" else class_values(margins, n_classes)

    def predict(self, X: Any) -> np.ndarray:
        """Labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from `classes_`.

        Raises
        ------
        ValueError
            If ties are to be broken by decision values of pairs.
        """
        check_is_fitted(self, "model_")
        if self.break_ties and self.decision_function_shape == "ovo" and len(self.classes_) > 2:
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo': pairs have no largest value"
            )
        return self.classes_[self._places(self._margins(X))]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes; the predicted class has the largest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        margins = self._margins(X)
        if len(self.classes_) == 2:
            p = self.model_.probability(margins[:, 0])
            return np.column_stack([1.0 - p, p])
        return led_by(self._places(margins), self.model_._probabilities(margins))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes; see `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.log(self.predict_proba(X))

    def _margins(self, X: Any) -> np.ndarray:
        """f(x) of each machine, (m, n_machines)."""
        X = self._queries(X)
        if self._kernel == "linear":
            return self._linear_values(X)
        several = isinstance(self.model_, OneVsOne | KernelMachines)
        return self.model_.pair_values_many(X) if several else self.model_.decision_function_many(X)[:, np.newaxis]

    def _places(self, margins: np.ndarray) -> np.ndarray:
        """The places in `classes_` of the predicted classes, from f(x) of each machine."""
        n_classes = len(self.classes_)
        if n_classes == 2:
            return (margins[:, 0] > 0.0).astype(int)
        return class_values(margins, n_classes).argmax(axis=1) if self.break_ties else best_classes(margins, n_classes)

    def _queries(self, X: Any) -> Any:
        arguments.require_unmasked("X", X)
        if not is_given(self._kernel):
            return centred(validate_data(self, X, reset=False, **FORM), self._centre)
        K = kernel_values(self._kernel, X, self._X_fit)
        if K.shape[1] != self.model_.n:
            raise ValueError(
                f"X has {K.shape[1]} kernel values for each example; there must be one for each of the "
                f"{self.model_.n} examples of the training set"
            )
        return K

    def _linear_values(self, X: Any) -> np.ndarray:
        """The linear machines' f(x), (m, n_machines), as `coef_` and `intercept_` give them in double precision."""
        if not sp.issparse(X):
            with one_blas_thread():
                return X @ self.coef_.T + self.intercept_
        columns = self._columns
        rising = np.argsort(columns)
        values = in_columns(X, columns[rising]) @ self._weights[:, rising].T
        return values.toarray() + self.intercept_

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def support_(self) -> np.ndarray:
        """Row numbers of the support vectors, class by class, rising in each: ndarray of shape (n_SV,).

        They count the rows of the training set, or of all batches given to `partial_fit`.
        """
        return self._ids_of(np.concatenate(self._support))

    @property
    def support_vectors_(self) -> Any:
        """Features of the support vectors, in the order of `support_`: (n_SV, n_features), sparse if X was.

        The model stores them in single precision.
        """
        if is_given(self._kernel):
            raise AttributeError("support_vectors_ has features, and a given kernel has none; support_ has row numbers")
        own = self._vectors(np.concatenate(self._support)).tocoo()
        places = (own.row, self._columns[own.col])
        X = sp.csr_matrix((own.data, places), shape=(own.shape[0], self.n_features_in_))
        if self._centre is not None:
            X = centred(X, self._centre.negative())
        return X if self._is_sparse else X.toarray()

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the support vectors: ndarray of shape (n_classes - 1, n_SV), columns as in `support_`.

        For two classes, positive for examples of ``classes_[1]``.  For more, a support vector has a coefficient for
        each other class, in the order of `classes_`; it is positive for the first class of the pair.
        """
        support = self._support
        n_classes, begin = len(support), np.cumsum([0, *map(len, support)])
        coefficients = np.zeros((n_classes - 1, begin[-1]))
        for machine in self._machines:
            places, values = (machine.positive, machine.negative), machine.alpha
            for place, other, own in zip(places, places[::-1], (values > 0.0, values < 0.0), strict=True):
                columns = begin[place] + np.searchsorted(support[place], machine.numbers[own])
                coefficients[other - (other > place), columns] = values[own]
        return coefficients

    @property
    def intercept_(self) -> np.ndarray:
        """Constant terms of the decision functions: ndarray of shape (n_classes * (n_classes - 1) / 2,)."""
        return np.array([machine.bias for machine in self._machines])

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features: ndarray of shape (n_classes * (n_classes - 1) / 2, n_features).

        Only the linear kernel has them: with another one this attribute is missing.
        """
        if self._kernel != "linear":
            raise AttributeError(f"coef_ exists for the linear kernel only, and this one is {self._kernel!r}")
        weights = np.zeros((len(self._machines), self.n_features_in_))
        weights[:, self._columns] = self._weights.toarray()
        weights.flags.writeable = False  # A change would not reach the model.
        return weights

    @property
    def _weights(self) -> sp.csr_matrix:
        """The weights of the model's features, in double precision; all machines share the support vectors."""
        machines = self._machines
        numbers = np.concatenate([machine.numbers for machine in machines])
        own = np.repeat(np.arange(len(machines)), [len(machine.numbers) for machine in machines])
        every, places = np.unique(numbers, return_inverse=True)
        alpha = np.concatenate([machine.alpha for machine in machines])
        return sp.csr_matrix((alpha, (own, places)), shape=(len(machines), len(every))) @ self._vectors(every)

    @property
    def _columns(self) -> np.ndarray:
        """The columns of X that the model knows, in its order: the name of a feature is its place in X."""
        return np.array(self.model_.feature_names, np.int64)

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors of each class: ndarray of shape (n_classes,)."""
        return np.array([len(numbers) for numbers in self._support], np.int32)

    @property
    def _machines(self) -> list[_Machine]:
        """The binary machines, as the model knows their support vectors."""
        check_is_fitted(self, "model_")
        model = self.model_
        if not isinstance(model, OneVsOne | KernelMachines):
            return [_Machine(1, 0, model.support_ids, model.dual_coef, model.bias)]
        classes = combinations(range(len(self.classes_)), 2) if len(self.classes_) > 2 else [(1, 0)]
        pairs = zip(classes, model._parts(), strict=True)
        return [
            _Machine(*classes, numbers[alpha != 0.0], alpha[alpha != 0.0], bias)
            for classes, (numbers, alpha, bias) in pairs
        ]

    @property
    def _support(self) -> list[np.ndarray]:
        """For each class the numbers by which the machines know its support vectors, rising."""
        found: list[list[np.ndarray]] = [[] for _ in self.classes_]
        for machine in self._machines:
            found[machine.positive].append(machine.numbers[machine.alpha > 0.0])
            found[machine.negative].append(machine.numbers[machine.alpha < 0.0])
        return [np.unique(np.concatenate(of_class)) for of_class in found]

    def _vectors(self, numbers: np.ndarray) -> sp.csr_matrix:
        """The features of support vectors, float64, in the model's columns."""
        pairs = isinstance(self.model_, OneVsOne)
        s = self.model_._union.vectors if pairs else self.model_._state.expansion
        scale = (self.model_._common if pairs else self.model_._state).scale
        live = storage.live_slots(s)
        order = live[np.argsort(s.ids[live])]
        slots = order[np.searchsorted(s.ids[order], numbers)]
        return scale.unshifted(storage.rows_of(s, slots, len(self.model_.feature_names)).astype(np.float64))

    def _ids_of(self, numbers: np.ndarray) -> np.ndarray:
        return self.model_._ids_of(numbers) if isinstance(self.model_, OneVsOne) else numbers
