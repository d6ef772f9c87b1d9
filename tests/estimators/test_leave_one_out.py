"""Margins of labelled examples without themselves: those of a model that learns all the others."""

import numpy as np
import pytest
from sklearn.svm import SVC

from streamsvm import LASVM, OneVsRest
from streamsvm.estimators.leave_one_out import left_out_margins


def problem(n=24):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    return X, np.digitize(X[:, 0], [-0.4, 0.4]), rng.uniform(0.5, 2.0, n)


def taught(model, X, y, w):
    model = model.clone()
    model.learn_many(X, y, w=w)
    return model


def without_each(X, positive, w, pos_weight=1.0):
    """f of each example by an SVC that was fitted to all others."""
    values = []
    for i, others in enumerate(~np.eye(len(X), dtype=bool)):
        svc = SVC(C=2.0, gamma=0.5, tol=1e-6, class_weight={True: pos_weight})
        svc.fit(X[others], positive[others], sample_weight=w[others])
        values.append(svc.decision_function(X[i : i + 1])[0])
    return np.array(values)


@pytest.mark.parametrize("pos_weight", [1.0, 3.0])
def test_margins_are_those_of_a_model_of_the_others(pos_weight):
    X, classes, w = problem()
    y = classes > 0
    model = taught(LASVM(C=2.0, gamma=0.5, pos_weight=pos_weight), X, y, w)
    expected = np.where(y, 1.0, -1.0) * without_each(X, y, w, pos_weight)
    np.testing.assert_allclose(left_out_margins(model, X, y.tolist(), w), expected, atol=5e-3)


def test_leads_are_those_of_a_model_of_the_others():
    X, y, w = problem()
    model = taught(OneVsRest(LASVM(C=2.0, gamma=0.5)), X, y, w)
    values = np.stack([without_each(X, y == label, w) for label in range(3)], axis=1)
    own = values[np.arange(len(y)), y]
    values[np.arange(len(y)), y] = -np.inf
    expected = 0.5 * (own - values.max(axis=1))
    np.testing.assert_allclose(left_out_margins(model, X, y.tolist(), w), expected, atol=5e-3)
