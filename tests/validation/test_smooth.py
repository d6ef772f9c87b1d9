"""Cross-validation of smooth SVMs: that of models fitted anew for each split, whatever the solver, folds and kernel."""

import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from streamsvm import LASVM
from streamsvm.batch import SmoothSVM, SolverOptions
from streamsvm.batch.ssvm.model import SOLVERS, kernel_matrix
from streamsvm.core.kernels import make_kernel
from streamsvm.validation import compare, cross_validate, leave_one_out
from streamsvm.validation.held_out import folds, given_folds

EVERY_SOLVER = ("auto", "shared", *SOLVERS)


def noisy(n=90, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, -1] ** 2 + 0.3 * rng.normal(size=n) > 0.7


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:150], y[:150] == 1


def wide():
    """Far more features than examples, as of genes."""
    X, y = noisy(40, 300)
    X[y] += 0.1
    return X, y


def duplicates():
    X, y = noisy(40)
    return np.vstack([X, X]), np.concatenate([y, ~y[:20], y[20:]])


SETS = {f.__name__: f for f in (noisy, breast_cancer, wide, duplicates)}
KINDS = {
    "hold-out": lambda y: folds.hold_out(len(y), 0.3, y=y),
    "3-fold": lambda y: folds.v_fold(len(y), 3),
    "10-fold": lambda y: folds.stratified(y, 10),
    "groups": lambda y: folds.grouped(np.arange(len(y)) // 7, 6),
    "pairs": lambda y: [(np.arange(0, len(y), 2), [1, 5, 9]), (np.arange(1, len(y), 2), [0, 2])],
}


def refitted(model, X, y, splits, weights=None):
    """The decision values of every split's tests, by models that know nothing of each other."""
    for train, test in splits:
        one = SmoothSVM(**model.get_params() | {"solver": "newton"})
        yield one.fit(X[train], y[train], None if weights is None else weights[train]).decision_function(X[test])


def agree(result, expected, atol=1e-6):
    for part, f in zip(result.per_fold, expected, strict=True):
        np.testing.assert_allclose(part.decision_values, f, rtol=1e-6, atol=atol)
        assert part.converged


# ------------------------------------------------------------------------------------------------------------ equality


@pytest.mark.long
@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_ten_folds_and_leave_one_out_are_those_of_models_fitted_anew(data, kernel, C):
    X, y = SETS[data]()
    gamma = 0.5 / X.shape[1]
    for splits in (folds.stratified(y, 10), folds.leave_one_out(len(y))):
        some = folds.Folds(len(y), splits.tests[:20])
        expected = list(refitted(SmoothSVM(C, kernel, gamma=gamma), X, y, some))
        for solver in EVERY_SOLVER:
            agree(cross_validate(SmoothSVM(C, kernel, gamma=gamma, solver=solver), X, y, folds=some), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_folds(kind):
    X, y = noisy()
    made = given_folds.folds_of(KINDS[kind](y), y)
    for kernel in ("linear", "rbf"):
        expected = list(refitted(SmoothSVM(5.0, kernel, gamma=0.5), X, y, made))
        for solver in EVERY_SOLVER:
            agree(cross_validate(SmoothSVM(5.0, kernel, gamma=0.5, solver=solver), X, y, folds=made), expected)


def test_by_a_slow_twin():
    X, y = noisy(30)
    signs, kernel = np.where(y, 1.0, -1.0), make_kernel("rbf", 0.5)
    result = leave_one_out(SmoothSVM(10.0, "rbf", gamma=0.5), X, y)
    for i in range(30):
        rest = np.arange(30) != i
        K = kernel_matrix(kernel, X, X[rest])
        w, b = naive.smooth_svm(K[rest], signs[rest], np.full(29, 10.0))
        assert result.decision_values[i] == pytest.approx(K[i] @ w + b, abs=1e-7)


def test_a_reduced_kernel_keeps_its_basis():
    X, y = noisy()
    model = SmoothSVM(5.0, "rbf", gamma=0.5, reduced=12)
    splits = folds.leave_one_out(len(y))
    F = kernel_matrix(make_kernel("rbf", 0.5), X, SmoothSVM(**model.get_params()).fit(X, y).basis_)
    expected = list(refitted(SmoothSVM(5.0), F, y, splits))
    for solver in EVERY_SOLVER:
        result = leave_one_out(model.set_params(solver=solver), X, y)
        agree(result, expected)
        assert sum(part.start == "copied" for part in result.per_fold) > 10


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["linear", "rbf", "poly", "sigmoid"]),
    st.floats(-3, 3),
    st.sampled_from(EVERY_SOLVER),
    st.integers(2, 8),
)
def test_any_weights_and_splits(seed, kernel, power, solver, k):
    X, y = noisy(24, 3, seed)
    y[0], y[1] = False, True
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, 0.5, 1.0, 4.0], 24)
    splits = folds.from_numbers(rng.permutation(np.arange(24) % k))
    model = SmoothSVM(10.0**power, kernel, gamma=0.4, degree=2, coef0=0.5 * (kernel == "poly"), solver=solver)
    pairs = [(train, test) for train, test in splits if len(set(y[train].tolist())) == 2]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*train on one class only", RuntimeWarning)
        result = cross_validate(model, X, y, sample_weight=weights, folds=pairs)
    scale = 1.0 + max(np.abs(part.decision_values).max() for part in result.per_fold)
    agree(result, refitted(model, X, y, result.folds, weights), atol=1e-5 * scale)


# ------------------------------------------------------------------------------------------------------------ skipping


def test_folds_without_support_vectors_are_copied_where_that_is_exact():
    X, y = breast_cancer()
    for model in (SmoothSVM(), SmoothSVM(kernel="rbf", gamma=0.03, reduced=0.2)):
        result = leave_one_out(model, X, y)
        copied = np.array([part.start == "copied" for part in result.per_fold])
        support = np.zeros(len(y), bool)
        support[result.full.support_] = True
        np.testing.assert_array_equal(copied, ~support)
        assert copied.sum() > 50
        f = result.full.decision_function(X)
        np.testing.assert_allclose(result.decision_values[copied], f[copied], atol=1e-9)
        assert not np.allclose(result.decision_values[~copied], f[~copied], atol=1e-3)


def test_a_full_kernel_skips_nothing_and_skipping_would_be_wrong():
    """The source copies such folds."""
    X, y = noisy(120)
    model = SmoothSVM(1.0, "rbf", gamma=0.5)
    result = leave_one_out(model, X, y)
    assert {part.start for part in result.per_fold} == {"full"}
    outside = np.setdiff1d(np.arange(120), result.full.support_)
    changes = np.abs(result.decision_values - result.full.decision_function(X))[outside]
    assert len(outside) > 20
    assert changes.min() > 1e-8
    assert changes.max() > 1e-2


def test_folds_cost_few_steps():
    X, y = noisy(200)
    cold = sum(SmoothSVM(10.0).fit(X[train], y[train]).n_iter_ for train, _ in folds.stratified(y, 40))
    for solver in EVERY_SOLVER:
        result = cross_validate(SmoothSVM(10.0, solver=solver), X, y, k=40)
        assert result.iterations - result.first.iterations < 0.6 * cold


# -------------------------------------------------------------------------------------------------------------- result


def test_the_result_is_that_of_the_other_cross_validation():
    X, y = noisy()
    names = np.where(y, "spam", "ham")
    splits = folds.stratified(y, 5)
    ours = cross_validate(SmoothSVM(5.0, "rbf", gamma=0.5), X, names, folds=splits)
    theirs = cross_validate(LASVM(C=5.0, gamma=0.5), X, names, folds=splits)
    assert type(ours) is type(theirs)
    assert set(ours.predictions.tolist()) == {"ham", "spam"}
    assert ours.accuracy == np.mean(ours.predictions == names)
    assert len(ours.scores("g_mean")) == 5
    assert ours.score(roc_auc_score) == pytest.approx(roc_auc_score(y, ours.decision_values))
    assert isinstance(ours.full, SmoothSVM)
    assert ours.full.score(X, names) > 0.8
    assert (ours.seeding, theirs.seeding != "shared") == ("shared", True)
    assert (ours.rows_computed, ours.kernel_evaluations) == (90, 90 * 90)
    assert ours.newton_steps == ours.iterations > 0
    assert sum(compare(ours, theirs).wins) == 5


def test_the_model_given_is_left_alone():
    X, y = noisy()
    model = SmoothSVM(C=5.0)
    cross_validate(model, X, y)
    assert not hasattr(model, "coef_")


def test_auto_takes_what_is_fast():
    X, y = noisy()
    assert cross_validate(SmoothSVM(), X, y, k=3).seeding == "cholesky"
    assert cross_validate(SmoothSVM(), X, y, k=10).seeding == "shared"
    assert cross_validate(SmoothSVM(solver="strategy-1"), X, y, k=10).seeding == "strategy-1"


def test_a_parameter_that_is_set_later_is_for_the_next_fit():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = SmoothSVM(kernel="rbf", gamma=1.0).fit(X, X[:, 0] > 0)
    before = model.decision_function(X)
    model.set_params(gamma=0.01)
    assert np.array_equal(model.decision_function(X), before)
    assert not np.array_equal(model.fit(X, X[:, 0] > 0).decision_function(X), before)


def test_sparse_examples():
    X, y = noisy(60, 6)
    X[np.abs(X) < 0.8] = 0.0
    for kernel in ("linear", "rbf"):
        model = SmoothSVM(5.0, kernel, gamma=0.3)
        dense, sparse = cross_validate(model, X, y), cross_validate(model, sp.csr_matrix(X), y)
        np.testing.assert_allclose(sparse.decision_values, dense.decision_values, atol=1e-8)


def test_a_class_that_is_missing_is_said():
    X, y = noisy(20)
    y[:], y[0] = False, True
    with pytest.warns(RuntimeWarning, match=r"1 of 20 splits, the first being split 0, train on one class only"):
        result = leave_one_out(SmoothSVM(), X, y)
    assert np.isfinite(result.decision_values).all()


def test_what_the_solver_decides_cannot_be_asked_for():
    X, y = noisy()
    for asked in ({"seeding": "path"}, {"values": False}, {"n_jobs": 2}, {"options": SolverOptions()}):
        with pytest.raises(ValueError, match=f"{next(iter(asked))}=.*SmoothSVM"):
            cross_validate(SmoothSVM(), X, y, **asked)


def test_mistakes():
    X, y = noisy()
    with pytest.raises(ValueError, match="examples of two classes are needed"):
        cross_validate(SmoothSVM(), X, np.ones(90, bool))
    with pytest.raises(ValueError, match="k=200 folds"):
        cross_validate(SmoothSVM(), X, y, k=200)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        cross_validate(SmoothSVM(), X, y, sample_weight=[1.0])
    with pytest.warns(RuntimeWarning, match="the solver gave up on"):
        cross_validate(SmoothSVM(C=1e3, tol=1e-300), X, y)
