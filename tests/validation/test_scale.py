"""Models with a running scale, over given examples."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from streamsvm import LASVM
from streamsvm.batch import RowStore
from streamsvm.core.kernels import RBF
from streamsvm.validation import cross_validate, grid_search
from streamsvm.validation.scale import resolve_scaling, standardised


def raw(n=150, seed=0):
    """Features of very different sizes, and one that is 0 or 1."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, (n, 3)) * [1.0, 1000.0, 1e-3] + [0.0, 5000.0, 1.0], rng.random(n) < 0.3])
    return X, X[:, 0] + (X[:, 1] - 5000.0) / 1000.0 > 0.2


def test_features_are_scaled_by_the_moments_of_all_examples():
    X, y = raw()
    model, Z = resolve_scaling(LASVM(C=5.0), X)
    np.testing.assert_allclose(Z[:, :3], StandardScaler().fit_transform(X[:, :3]))  # uniform: nothing is clipped
    np.testing.assert_array_equal(Z[:, 3], X[:, 3])
    assert model.gamma == pytest.approx(1.0 / Z.var(axis=0).sum())
    result = cross_validate(LASVM(C=5.0, tol=1e-5), X, y, k=3)
    out = np.empty(len(y))
    for train, test in StratifiedKFold(3).split(Z, y):
        out[test] = SVC(C=5.0, gamma=model.gamma, tol=1e-5).fit(Z[train], y[train]).decision_function(Z[test])
    assert result.accuracy > 0.9
    assert np.mean((out > 0) == y) > 0.9


def test_an_outlier_is_clipped_and_a_constant_is_0():
    X = np.random.default_rng(0).normal(size=(100, 2))
    X[0, 0], X[:, 1] = 1e6, 7.0
    Z = standardised(X)
    assert Z[0, 0] == 3.0
    assert not Z[:, 1].any()


def test_a_number_for_gamma_means_the_features_as_they_come():
    X, _ = raw()
    for model in (LASVM(gamma=0.5), LASVM(gamma=0.5, scaling=None)):
        assert resolve_scaling(model, X) == (model, X)
    forced, Z = resolve_scaling(LASVM(gamma=0.5, scaling="standard"), X)
    assert forced.gamma == 0.5
    np.testing.assert_array_equal(Z, standardised(X))


def test_sparse_features_are_left_alone():
    X = sp.csr_matrix(np.random.default_rng(0).random((50, 20)) * (np.random.default_rng(1).random((50, 20)) < 0.1))
    model, Z = resolve_scaling(LASVM(), X)
    assert Z is X
    assert model.gamma == pytest.approx(50.0 / X.multiply(X).sum())


def test_gammas_that_are_given_are_for_the_features_as_they_come():
    X, y = raw()
    search = grid_search(LASVM(), X, y, Cs=[1.0], gammas=[0.5], refit=False)
    assert search.best.score == pytest.approx(cross_validate(LASVM(C=1.0, gamma=0.5), X, y, k=3).accuracy)
    scaled = grid_search(LASVM(), X, y, Cs=[1.0], refit=False)
    assert scaled.best.score == pytest.approx(cross_validate(LASVM(C=1.0), X, y, k=3).accuracy)
    assert scaled.best.score > search.best.score


def test_the_features_of_a_store_cannot_be_scaled():
    X, y = raw()
    with pytest.raises(ValueError, match="give the model a number for gamma"):
        cross_validate(LASVM(), RowStore(X, RBF(1.0)), y)


@pytest.mark.parametrize("form", ["sparse", "frame"])
def test_what_stands_apart_is_left_alone(form):
    """As by the model: the numbers beside it are scaled, and gamma is the model's."""
    rng = np.random.default_rng(0)
    words = 0.7 * (rng.random((300, 60)) < 0.05)
    words[:, 0] *= 3.0
    numbers = rng.normal(size=(300, 2)) * [1.0, 1000.0] + [0.0, 5000.0]
    names = [*(f"~{j}" for j in range(60)), "a", "b"]
    frame = pd.DataFrame(np.column_stack([words, numbers]), columns=names)
    own = {"names": names} if form == "sparse" else {}
    resolved, Z = resolve_scaling(LASVM(), sp.csr_matrix(frame) if form == "sparse" else frame, **own)
    Z = Z.toarray() if form == "sparse" else Z
    np.testing.assert_array_equal(Z[:, :60], words)
    np.testing.assert_allclose(Z[:, 60:], standardised(numbers))
    model = LASVM()
    model.learn_many(frame, numbers[:, 0] > 0)
    model.finish()
    assert resolved.gamma == pytest.approx(model.gamma_in_use, rel=0.1)
