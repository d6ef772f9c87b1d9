"""What a fitted classifier says: labels, probabilities, and the attributes of a support vector machine."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from streamsvm.core import arguments
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.several.multiclass import OneVsRest
from streamsvm.online.outputs.sigmoid import probabilities

# The engine is compiled for writable arrays; joblib maps read-only ones from files.
FORM = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C", "force_writeable": True}


class FittedModel:
    """Predictions of a classifier, and what it has learned."""

    model_: Any
    classes_: np.ndarray

    # ----------------------------------------------------------------------------------------------------- prediction

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive for ``classes_[1]``.  For more, a column for each class; the largest value wins.
        """
        X = self._queries(X)
        return self.model_.decision_function_many(X)

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
        """
        values = self.decision_function(X)
        return self.classes_[values.argmax(axis=1) if values.ndim == 2 else (values > 0.0).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        values = self.decision_function(X)
        # One sigmoid for all classes: with one each, the most probable class could differ from the predicted one.
        p = probabilities(np.mean([model._sigmoid for model in self._models], axis=0), values)
        return p / p.sum(axis=1, keepdims=True) if p.ndim == 2 else np.column_stack([1.0 - p, p])

    def _queries(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        arguments.require_unmasked("X", X)
        return validate_data(self, X, reset=False, **FORM)

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def support_(self) -> np.ndarray:
        """Row numbers of the support vectors, rising: ndarray of shape (n_SV,).

        They count the rows of the training set, or of all batches given to `partial_fit`.
        """
        return np.unique(np.concatenate(self._support))

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the support vectors: ndarray of shape (1, n_SV), positive for examples of ``classes_[1]``.

        For more than two classes, of shape (n_classes, n_SV): a row for each class against the others.
        """
        support = self.support_
        coefficients = np.zeros((len(self._models), len(support)))
        for row, model, own in zip(coefficients, self._models, self._support, strict=True):
            row[np.searchsorted(support, own)] = model.dual_coef
        return coefficients

    @property
    def intercept_(self) -> np.ndarray:
        """Constant terms of the decision functions: ndarray of shape (1,), or (n_classes,) if more than two."""
        return np.array([model.bias for model in self._models])

    @property
    def n_support_(self) -> np.ndarray:
        """Number of support vectors of each class: ndarray of shape (n_classes,).

        For more than two classes, the number in each class's model against the others.
        """
        if isinstance(self.model_, OneVsRest):
            return np.array([model.n_support for model in self._models])
        s = self.model_._expansion
        return np.bincount(s.y[np.flatnonzero(s.alpha)] > 0, minlength=2)

    @property
    def _models(self) -> list[OnlineSVM]:
        """The binary models: one for two classes, else one for each class."""
        return list(self.model_._models.values()) if isinstance(self.model_, OneVsRest) else [self.model_]

    @property
    def _support(self) -> list[np.ndarray]:
        """The row numbers of the support vectors of each binary model."""
        if not isinstance(self.model_, OneVsRest):
            return [self.model_.support_ids]
        return [self.model_._ids_of(model.support_ids) for model in self._models]
