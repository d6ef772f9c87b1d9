"""Small training sets are solved to rounding, and linear decision values are those of `coef_`."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_classification

from streamsvm.sklearn_api import LASVMClassifier
from streamsvm.sklearn_api.exact import solved_on

KERNELS = {"linear": {}, "rbf": {"gamma": 0.3}, "poly": {"gamma": 0.2, "degree": 2, "coef0": 1.0}}


def box_of(y, C):
    return np.where(y > 0.0, 0.0, -C), np.where(y > 0.0, C, 0.0)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 25), dimension=st.integers(1, 4), seed=st.integers(0, 999), C=st.sampled_from([0.01, 1.0, 30.0])
)
def test_the_optimum_is_that_of_the_slow_solver(n, dimension, seed, C):
    """Linear kernel matrices of few features are singular; then the coefficients may differ, and f(x) does not."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, dimension)), np.append([1.0, -1.0], rng.choice([-1.0, 1.0], n - 2))
    K, (lo, hi) = X @ X.T, box_of(y, C)
    slow = naive.solve(K, y, lo, hi, 1e-7)[0]
    exact = solved_on(K, y, lo, hi, slow)
    assert exact is not None
    alpha, g, _ = exact
    np.testing.assert_allclose(g, naive.gradient(alpha, y, K), atol=1e-9)
    assert ((alpha >= lo) & (alpha <= hi)).all()
    assert abs(alpha.sum()) < 1e-9
    assert naive.violation(alpha, g, lo, hi) < 1e-7  # the rounding of sums of C times kernel values
    assert naive.dual(alpha, y, K) >= naive.dual(slow, y, K) - 1e-9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_coefficients_do_not_depend_on_order_form_or_tolerance(kernel, n_classes):
    X, y = make_classification(120, 6, n_informative=4, n_classes=n_classes, random_state=1)
    weights, order = np.random.default_rng(0).uniform(0.5, 2.0, 120), np.random.default_rng(1).permutation(120)
    fits = [
        LASVMClassifier(kernel=kernel, C=2.0, **KERNELS[kernel]).fit(X, y, weights),
        LASVMClassifier(kernel=kernel, C=2.0, tol=0.05, **KERNELS[kernel]).fit(sp.csr_matrix(X), y, weights),
        LASVMClassifier(kernel=kernel, C=2.0, **KERNELS[kernel]).fit(X[order], y[order], weights[order]),
    ]
    fits += [LASVMClassifier(kernel=_function(kernel), C=2.0).fit(X, y, weights)]
    first = _coefficients(fits[0], np.arange(120))
    for other, rows in zip(fits[1:], [np.arange(120), order, np.arange(120)], strict=True):
        np.testing.assert_allclose(_coefficients(other, rows), first, atol=1e-7)
        np.testing.assert_allclose(other.intercept_, fits[0].intercept_, atol=1e-7)


def _function(kernel):
    if kernel == "rbf":
        return lambda A, B: np.exp(-0.3 * ((A[:, None] - B[None]) ** 2).sum(axis=2))
    return (lambda A, B: A @ B.T) if kernel == "linear" else (lambda A, B: (0.2 * A @ B.T + 1.0) ** 2)


def _coefficients(fit, rows):
    found = np.zeros((len(rows), len(fit.dual_coef_)))
    found[rows[fit.support_]] = fit.dual_coef_.T
    return found


def test_examples_without_features_have_the_larger_class_as_bias():
    model = LASVMClassifier(kernel="linear").fit(np.zeros((5, 2)), [0, 0, 1, 1, 1], [1.0, 1.0, 1.0, 1.0, 0.5])
    np.testing.assert_allclose(model.decision_function(np.zeros((1, 2))), 1.0)


@pytest.mark.parametrize("kernel", ["sigmoid", "linear"])
def test_hard_problems_are_solved_to_the_tolerance_at_least(kernel):
    """The sigmoid kernel is not positive semi-definite; equal examples of both classes make a singular matrix."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(150, 2)).astype(float)
    y = rng.integers(0, 2, 150)
    model = LASVMClassifier(kernel=kernel, C=1e3, gamma=0.7, coef0=-0.5).fit(X, y)
    margins = np.where(y > 0, 1.0, -1.0) * model.decision_function(X)
    free = np.isin(np.arange(150), model.support_[np.abs(model.dual_coef_[0]) < 900.0])
    np.testing.assert_allclose(margins[free], 1.0, atol=5e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_learning_goes_on_from_a_small_training_set(n_classes):
    X, y = make_blobs(300, centers=n_classes, cluster_std=3.0, random_state=0)
    model = LASVMClassifier(gamma=0.1).fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert model.score(X, y) >= LASVMClassifier(gamma=0.1).fit(X, y).score(X, y) - 0.02


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("algorithm", ["lasvm", "lasvm-g"])
def test_linear_decision_values_are_those_of_coef(form, n_classes, algorithm):
    X, y = make_classification(400, 8, n_informative=5, n_classes=n_classes, random_state=1)
    model = LASVMClassifier(algorithm, kernel="linear", decision_function_shape="ovo").fit(form(X), y)
    for queries in (X, sp.csr_matrix(X)):
        values = model.decision_function(queries)
        expected = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(values, expected if n_classes > 2 else expected[:, 0], atol=1e-10)
        by_model = model.model_.pair_values_many(X) if n_classes > 2 else model.model_.decision_function_many(X)
        np.testing.assert_allclose(values, by_model, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.model_.predict_many(X).astype(int)])


def test_linear_decision_values_follow_the_model():
    """The weights are not kept: a change of `model_` shows."""
    X, y = make_blobs(100, centers=2, cluster_std=3.0, random_state=0)
    model = LASVMClassifier(kernel="linear").fit(X, y)
    before = model.decision_function(X)
    model.model_.forget(model.support_[:5].tolist())
    assert not np.allclose(model.decision_function(X), before, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), model.model_.decision_function_many(X), atol=1e-4)
