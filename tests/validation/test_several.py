"""Cross-validation and grids of several classes: the predictions of models that are trained anew without each split."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import confusion_matrix, f1_score
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC

from streamsvm import LASVM, OneVsOne, OneVsRest
from streamsvm.batch import RowStore
from streamsvm.core.kernels import RBF
from streamsvm.validation import cross_validate, folds, grid_search, leave_one_out

NAMES = np.array(["red", "green", "blue", "gold"])


def problem(n=160, noise=0.6):
    rng = np.random.default_rng(0)
    classes = np.concatenate([np.arange(4), np.minimum(rng.geometric(0.4, n - 4) - 1, 3)])
    return rng.normal(size=(4, 3))[classes] + noise * rng.normal(size=(n, 3)), NAMES[classes]


X, Y = problem()
MODEL = OneVsOne(LASVM(C=5.0, gamma=0.4, tol=1e-5))


def predictions(result):
    found = np.empty(len(Y), Y.dtype)
    for part in result.per_fold:
        found[part.test] = part.predictions
    return found


@pytest.mark.parametrize("cache_mb", [256.0, 0.01])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_predictions_are_those_of_models_trained_without_each_fold(cache_mb, form):
    """With little memory the splits share no kernel matrix."""
    weights = np.random.default_rng(1).integers(0, 3, len(Y))
    model = OneVsOne(LASVM(C=5.0, gamma=0.4, tol=1e-5, cache_mb=cache_mb))
    result = cross_validate(model, form(X), Y, k=5, sample_weight=weights)
    expected = np.empty_like(Y)
    for train, test in result.folds:
        svc = SVC(C=5.0, gamma=0.4, tol=1e-6).fit(X[train], Y[train], weights[train])
        expected[test] = svc.predict(X[test])
    assert (predictions(result) != expected).sum() <= 1  # a vote may hang on the last digit
    assert result.classes.tolist() == sorted(NAMES)
    assert all(part.converged for part in result.per_fold)


def test_scores_and_confusion():
    result = cross_validate(MODEL, X, Y, k=4)
    found = predictions(result)
    np.testing.assert_array_equal(result.confusion, confusion_matrix(Y, found))
    assert result.accuracy == round(np.mean(found == Y), 3)
    np.testing.assert_allclose(result.scores().mean(), np.mean(found == Y), atol=0.01)
    test = result.per_fold[0].test
    f1 = result.scores(lambda y, predicted: f1_score(y, predicted, average="macro"))
    assert f1[0] == f1_score(Y[test], found[test], average="macro")
    np.testing.assert_allclose(result.recalls, result.confusion.diagonal() / np.unique(Y, return_counts=True)[1])


def test_decision_values_are_those_of_models_trained_without_each_fold():
    result = cross_validate(MODEL, X, Y, k=4)
    for train, test in result.folds:
        svc = SVC(C=5.0, gamma=0.4, tol=1e-6).fit(X[train], Y[train])
        np.testing.assert_allclose(result.decision_values[test], svc.decision_function(X[test]), atol=1e-3)
    half = cross_validate(MODEL, X, Y, folds=[(np.arange(80), np.arange(80, 160)), (np.arange(80), np.arange(80, 120))])
    assert np.isnan(half.decision_values[:80]).all()
    np.testing.assert_allclose(half.decision_values[80:120], half.per_fold[1].decision_values, atol=1e-12)


def test_leave_one_out_is_exact():
    few = np.arange(70)
    result = leave_one_out(MODEL, X[few], Y[few])
    expected = cross_val_predict(SVC(C=5.0, gamma=0.4, tol=1e-6), X[few], Y[few], cv=[*folds.leave_one_out(70)])
    found = np.array([part.predictions[0] for part in result.per_fold])
    assert (found != expected).sum() <= 1


def test_a_grid_has_the_cells_of_single_cross_validations():
    search = grid_search(MODEL, X, Y, Cs=[10.0, 0.1], gammas=[0.5, 0.05], k=3)
    assert search.scores.shape == (2, 2)
    for cell in search.table:
        alone = cross_validate(OneVsOne(LASVM(C=cell.C, gamma=cell.gamma, tol=1e-5)), X, Y, k=3)
        assert cell.score == alone.scores().mean()
        np.testing.assert_allclose(cell.result.decision_values, alone.decision_values, atol=1e-3)
    assert search.best.score == search.scores.max()
    frame = search.to_frame()
    assert list(frame) == ["C", "gamma", "score", "spread", "seconds"]
    assert frame.score.tolist() == [cell.score for cell in search.table]
    assert grid_search(MODEL, X, Y, Cs=[5.0], k=3).gammas == [0.4]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_workers_and_starts_change_the_time_and_not_the_result(form):
    """Four folds lose support vectors of all pairs, forty do not; a worker has arrays that it maps from a file."""
    alone = cross_validate(MODEL, form(X), Y, k=4)
    shared = cross_validate(MODEL, form(X), Y, k=4, n_jobs=2)
    for one, other in zip(alone.per_fold, shared.per_fold, strict=True):
        np.testing.assert_array_equal(one.test, other.test)
        np.testing.assert_allclose(one.decision_values, other.decision_values, atol=1e-4)
    splits = folds.stratified(Y == "gold", 20)
    anew = cross_validate(MODEL, form(X), Y, folds=splits, seeding="none")
    copied = cross_validate(MODEL, form(X), Y, folds=splits, seeding="skip", n_jobs=2)
    np.testing.assert_allclose(copied.decision_values, anew.decision_values, atol=1e-3)


@pytest.mark.parametrize("labels", [Y, Y == "red"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_best_cell_is_trained_on_all_examples(form, labels):
    weights = np.random.default_rng(1).integers(0, 3, len(Y))
    found = {"Cs": [10.0, 0.1], "gammas": [0.5, 0.05], "k": 3, "sample_weight": weights}
    search = grid_search(OneVsOne(LASVM(tol=1e-5)), form(X), labels, n_jobs=2, **found)
    alone = grid_search(OneVsOne(LASVM(tol=1e-5)), form(X), labels, refit=False, **found)
    np.testing.assert_array_equal(search.scores, alone.scores)
    svc = SVC(C=search.best.C, gamma=search.best.gamma, tol=1e-6).fit(X, labels, weights)
    model = search.solution
    np.testing.assert_array_equal(model.predict_many(form(X)), svc.predict(X))
    if len(model.labels) > 2:
        np.testing.assert_allclose(model.decision_function_many(form(X)), svc.decision_function(X), atol=1e-3)
    model.learn_many(form(X[:5] + 30.0), ["new"] * 5)
    assert list(model.predict_many(form(X[:5] + 30.0))) == ["new"] * 5
    assert (np.asarray(model.predict_many(form(X))) == svc.predict(X)).mean() > 0.95


def test_why_a_search_has_no_solution_is_said():
    scaled = grid_search(OneVsOne(LASVM()), X * [1.0, 1000.0, 0.01], Y, Cs=[1.0], k=3)
    with pytest.raises(ValueError, match="the search scaled the features"):
        _ = scaled.solution
    frame = grid_search(MODEL, pd.DataFrame(X, columns=["a", "b", "c"]), Y, Cs=[1.0], k=3)
    with pytest.raises(ValueError, match="X is a frame"):
        _ = frame.solution
    with pytest.raises(ValueError, match="refit=False"):
        _ = grid_search(MODEL, X, Y, Cs=[1.0], k=3, refit=False).solution


def test_the_model_scales_the_features_if_it_is_told():
    raw = X * np.array([1.0, 1000.0, 0.01])
    assert cross_validate(OneVsOne(LASVM()), raw, Y, k=4).accuracy > 0.7


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("scaling", ["standard", None])
def test_features_that_are_not_finite_are_refused(bad, form, scaling):
    Z = X.copy()
    Z[7, 1] = bad
    model = OneVsOne(LASVM(scaling=scaling))
    if bad == 1e30 and scaling and form is np.asarray:
        assert cross_validate(model, form(Z), Y, k=3).accuracy > 0.5  # an outlier is clipped
        return
    with pytest.raises(ValueError, match=r"X holds NaN.* in row 7"):
        cross_validate(model, form(Z), Y, k=3)
    with pytest.raises(ValueError, match=r"X holds NaN.* in row 7"):
        grid_search(model, form(Z), Y, Cs=[1.0], gammas=[0.5], k=3)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (X[:, 0], "it must be 2-D"),
        (np.ma.array(X, mask=X > 1.0), "X is a masked array"),
        (X.astype(str), "features must be numbers"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(bad, why):
    with pytest.raises((TypeError, ValueError), match=why):
        cross_validate(OneVsOne(LASVM(gamma=0.4, scaling=None)), bad, Y, k=3)


def test_what_is_not_offered_is_named():
    with pytest.raises(ValueError, match=r"OneVsOne\(LASVM\(...\)\)"):
        cross_validate(OneVsRest(LASVM()), X, Y)
    with pytest.raises(
        ValueError, match="seeding='best' is not offered for several classes; use one of 'auto', 'none'"
    ):
        cross_validate(MODEL, X, Y, k=3, seeding="best")
    with pytest.raises(ValueError, match="warm_start='best' is for two classes"):
        grid_search(MODEL, X, Y, Cs=[1.0], warm_start="best")
    with pytest.raises(ValueError, match="the linear kernel has no gamma"):
        grid_search(OneVsOne(LASVM(kernel="linear")), X, Y, Cs=[1.0], gammas=[0.1, 1.0])
    with pytest.raises(ValueError, match="n_jobs=0 must be a whole number other than 0"):
        cross_validate(MODEL, X, Y, k=3, n_jobs=0)
    with pytest.raises(ValueError, match="X is a RowStore"):
        cross_validate(MODEL, RowStore(X, RBF(0.4)), Y)
    with pytest.raises(ValueError, match="pos_weight='balanced' is not offered"):
        cross_validate(OneVsOne(LASVM(gamma=0.4, pos_weight="balanced")), X, Y)
    with pytest.raises(ValueError, match=r"split 0 trains on the classes \['blue', 'green', 'red'\] only"):
        cross_validate(MODEL, X, Y, folds=[(np.flatnonzero(Y != "gold"), np.flatnonzero(Y == "gold"))])
    with pytest.raises(ValueError, match=r"y has shape \(3,\); it must have one label for each of 160 examples"):
        cross_validate(MODEL, X, Y[:3], folds=[0, 1, 0])
    with pytest.raises(ValueError, match="metric='roc_auc' is for two classes"):
        cross_validate(MODEL, X, Y, k=3).scores("roc_auc")
