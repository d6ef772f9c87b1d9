"""Cross-validation: scikit-learn's models refitted for each split, whatever the folds, the start and the workers."""

import builtins
import functools
import math
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import wide
from hypothesis import given, settings
from hypothesis import strategies as st
from river import metrics
from sklearn import metrics as of_sklearn
from sklearn.datasets import load_breast_cancer, load_iris, make_circles, make_moons
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, OneVsOne, OneVsRest, StreamWarning, WarmupScaler
from streamsvm.batch import RowStore, SmoothSVM, SolverOptions, smo
from streamsvm.core.kernels import RBF
from streamsvm.metrics import prbep_score
from streamsvm.validation import Comparison, compare, cross_validate, grid_search, leave_one_out
from streamsvm.validation.held_out import folds, given_folds, splits
from streamsvm.validation.held_out.splits import SEEDINGS
from streamsvm.validation.scores import greater_is_better, measure


def noisy(n=120, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, -1] ** 2 + 0.3 * rng.normal(size=n) > 0.7


def moons():
    X, y = make_moons(150, noise=0.3, random_state=0)
    return X, y == 1


def circles():
    X, y = make_circles(150, noise=0.2, factor=0.5, random_state=0)
    return X, y == 1


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], y[:200] == 1


def iris():
    X, y = load_iris(return_X_y=True)
    return X, y == 1


def identity():
    """Examples so far apart that K = I, where every coefficient is free or at its bound alike."""
    X, y = noisy(80)
    return 1e3 * X, y


def duplicates():
    X, y = noisy(60)
    return np.vstack([X, X]), np.concatenate([y, ~y[:30], y[30:]])


SETS = {f.__name__: f for f in (noisy, moons, circles, breast_cancer, iris, identity, duplicates)}
KINDS = {
    "hold-out": lambda y: folds.hold_out(len(y), 0.3, y=y),
    "3-fold": lambda y: folds.v_fold(len(y), 3),
    "10-fold": lambda y: folds.stratified(y, 10),
    "groups": lambda y: folds.grouped(np.arange(len(y)) // 7, 6),
    "repeated": lambda y: folds.repeated(lambda seed: folds.hold_out(len(y), 0.1, seed=seed), 4),
    "pairs": lambda y: [(np.arange(0, len(y), 2), [1, 5, 9]), (np.arange(1, len(y), 2), [0, 2])],
}


def refitted(X, y, splits, **parameters):
    """The decision values by scikit-learn of every split's tests."""
    for train, test in splits:
        yield SVC(tol=1e-4, **parameters).fit(X[train], y[train]).decision_function(X[test])


def agree(result, expected, atol=1e-2):
    clear = 0
    for part, f in zip(result.per_fold, expected, strict=True):
        np.testing.assert_allclose(part.decision_values, f, rtol=0, atol=atol)
        sure = np.abs(f) > atol
        np.testing.assert_array_equal(part.predictions[sure], f[sure] > 0)
        clear += sure.sum()
    assert clear > 0


# ---------------------------------------------------------------------------------------------------------- equality


@pytest.mark.parametrize("data", SETS)
@pytest.mark.parametrize("C", [0.5, 50.0])
def test_ten_folds_are_those_of_svc(data, C):
    X, y = SETS[data]()
    parameters = {"C": C, "gamma": 0.5 if X.shape[1] < 10 else 0.03}
    made = folds.stratified(y, 10)
    expected = list(refitted(X, y, made, **parameters))
    for seeding in SEEDINGS:
        agree(cross_validate(LASVM(tol=1e-4, **parameters), X, y, folds=made, seeding=seeding), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_folds(kind):
    X, y = noisy()
    made = given_folds.folds_of(KINDS[kind](y), y)
    expected = list(refitted(X, y, made, C=5.0, gamma=0.5))
    for seeding in SEEDINGS:
        agree(cross_validate(LASVM(C=5.0, gamma=0.5, tol=1e-4), X, y, folds=made, seeding=seeding), expected)


@pytest.mark.long
@pytest.mark.parametrize("data", ["noisy", "moons", "iris", "identity", "duplicates"])
@pytest.mark.parametrize("C", [0.1, 20.0])
def test_leave_one_out(data, C):
    X, y = SETS[data]()
    X, y = X[:90], y[:90]
    result = leave_one_out(LASVM(C=C, gamma=0.5, tol=1e-4), X, y)
    agree(result, refitted(X, y, result.folds, C=C, gamma=0.5))
    skipped = [part.start == "copied" for part in result.per_fold]
    np.testing.assert_array_equal(skipped, (result.full.dual_coef == 0.0) & result.full.free.any())
    copied = np.flatnonzero(skipped)
    np.testing.assert_array_equal(result.decision_values[copied], result.full.decision_values[copied])
    signs = leave_one_out(LASVM(C=C, gamma=0.5, tol=1e-4), X, y, values=False)
    clear = np.abs(result.decision_values) > 1e-3
    np.testing.assert_array_equal(signs.predictions[clear], result.predictions[clear])
    assert signs.iterations <= result.iterations


def test_bounds_decide_many_signs():
    X, y = noisy(200, d=5)
    result = leave_one_out(LASVM(C=1.0, gamma=0.1), X, y, values=False)
    starts = [part.start for part in result.per_fold]
    assert {"copied", "training error", "xi-alpha"} <= set(starts)
    assert starts.count("training error") > 5
    for part in result.per_fold:
        assert np.isnan(part.decision_values).all() == (part.start in ("training error", "xi-alpha"))
    everything = leave_one_out(LASVM(C=1.0, gamma=0.1), X, y)
    assert result.accuracy == everything.accuracy
    assert result.g_mean == everything.g_mean
    np.testing.assert_array_equal(result.scores(), everything.scores())
    with pytest.raises(ValueError, match="values=True"):
        result.score(of_sklearn.roc_auc_score)


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.integers(12, 50),
    st.sampled_from([1e-3, 1.0, 100.0]),
    st.sampled_from([0.01, 1.0, 1e4]),
    st.integers(2, 12),
    st.booleans(),
)
def test_no_start_changes_where_it_ends(seed, n, C, gamma, k, duplicates):
    X, y = noisy(n, seed)
    y[:4] = [True, False, True, False]
    if duplicates:
        X[n // 2 :] = X[: n - n // 2]
    k = min(k, int(y.sum()), int((~y).sum()))
    cold = cross_validate(LASVM(C=C, gamma=gamma, tol=1e-5), X, y, k=k, seeding="none")
    for seeding in SEEDINGS:
        other = cross_validate(LASVM(C=C, gamma=gamma, tol=1e-5), X, y, k=k, seeding=seeding)
        assert other.seeding != "auto"
        clear = np.abs(cold.decision_values) > 1e-3 * max(0.1, np.sqrt(C))
        np.testing.assert_array_equal(other.predictions[clear], cold.predictions[clear])


def test_without_a_free_support_vector_the_bias_is_that_of_the_fold():
    """At a tiny C all coefficients are at their bounds, and the bias lies between gradients of trained examples."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [9.0], [10.0]]), np.array([0, 0, 0, 1, 1, 1])
    w = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0]
    full, cold = (leave_one_out(LASVM(C=1e-3, gamma=0.1), X, y, sample_weight=w, seeding=s) for s in ("skip", "none"))
    assert not full.full.free.any()
    np.testing.assert_array_equal(full.decision_values, cold.decision_values)


@pytest.mark.parametrize("seeding", SEEDINGS)
def test_dust_beside_a_bound_is_no_free_support_vector(seeding):
    """With equally many examples of both classes all are at their bounds; one at 1e-18 of it would be the bias."""
    X, y = noisy(43)
    y[:4] = [True, False, True, False]
    cold, other = (cross_validate(LASVM(C=1e-3, tol=1e-5), X, y, k=2, seeding=s) for s in ("none", seeding))
    np.testing.assert_allclose(other.decision_values, cold.decision_values, rtol=0, atol=1e-5)


def test_weights_and_kernels():
    X, y = noisy()
    w = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    parameters = {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0, "C": 1.0}
    result = cross_validate(LASVM(tol=1e-4, **parameters), X, y, sample_weight=w, k=4)
    for (train, test), part in zip(result.folds, result.per_fold, strict=True):
        svc = SVC(tol=1e-4, **parameters).fit(X[train], y[train], w[train])
        np.testing.assert_allclose(part.decision_values, svc.decision_function(X[test]), rtol=0, atol=1e-2)


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("seeding", ["none", "skip", "path", "best", "auto"])
def test_workers_give_the_same_values(n_jobs, seeding):
    from joblib import parallel_config

    X, y = noisy()
    alone = cross_validate(LASVM(C=5.0, gamma=0.5), X, y, seeding=seeding)
    with parallel_config(backend="threading"):
        several = cross_validate(LASVM(C=5.0, gamma=0.5), X, y, seeding=seeding, n_jobs=n_jobs)
    np.testing.assert_allclose(several.decision_values, alone.decision_values, rtol=0, atol=1e-12)
    if alone.seeding != "path":  # whose sums are BLAS's, in an order that depends on where arrays begin
        np.testing.assert_array_equal(several.decision_values, alone.decision_values)
    assert several.iterations == alone.iterations
    assert several.rows_computed > alone.rows_computed  # every worker has rows of its own
    assert [part.test.tolist() for part in several.per_fold] == [part.test.tolist() for part in alone.per_fold]


def test_other_processes():
    X, y = noisy(40)
    alone = cross_validate(LASVM(C=5.0), X, y, k=4)
    several = cross_validate(LASVM(C=5.0), X, y, k=4, n_jobs=2)
    np.testing.assert_array_equal(several.decision_values, alone.decision_values)


def test_joblib_is_named_if_it_is_missing(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name == "joblib":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    X, y = noisy(40)
    assert len(cross_validate(LASVM(C=1.0), X, y, k=2).per_fold) == 2
    with pytest.raises(ImportError, match="n_jobs=2 needs joblib"):
        cross_validate(LASVM(C=1.0), X, y, n_jobs=2)


# ------------------------------------------------------------------------------------------------------------- models


def test_the_weight_of_the_positive_class_is_the_models():
    X, y = noisy()
    ours = cross_validate(LASVM(C=2.0, pos_weight=4.0), X, y, k=4)
    by_hand = cross_validate(LASVM(C=2.0), X, y, k=4, sample_weight=np.where(y, 4.0, 1.0))
    np.testing.assert_array_equal(ours.decision_values, by_hand.decision_values)
    assert ours.predictions.sum() > cross_validate(LASVM(C=2.0), X, y, k=4).predictions.sum()
    search = grid_search(LASVM(pos_weight=4.0), X, y, Cs=[2.0], k=4, warm_start="none")
    np.testing.assert_allclose(search.best.result.decision_values, ours.decision_values, atol=1e-2)


def test_the_model_is_left_alone_and_what_it_learned_plays_no_part():
    X, y = noisy()
    model = LASVM(C=5.0, budget=20, window=50)
    model.learn_many(X, ~y)
    before = model.digest()
    result = cross_validate(model, X, y)
    assert model.digest() == before
    np.testing.assert_array_equal(result.decision_values, cross_validate(LASVM(C=5.0), X, y).decision_values)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LASVM, TypeError, r"model=LASVM is a class; an instance is needed, such as LASVM\(C=1.0\)"),
        (LASVMG(), ValueError, r"LASVMG\(...\) has no bias.*use LASVM\(...\).*StreamingKFold\(LASVMG"),
        (LASVMNC(), ValueError, "LASVMNC.* has no bias"),
        (LASVMI(), ValueError, "LASVMI.* has no bias"),
        (FullSVM(), ValueError, "FullSVM.* has no bias"),
        (
            OneVsRest(LASVMG()),
            ValueError,
            r"several classes.*one class at a time: model=LASVM\(...\) with y == label",
        ),
        (
            WarmupScaler() | LASVM(),
            TypeError,
            r"model is of type Pipeline; it must be LASVM\(...\) or SmoothSVM\(...\)",
        ),
        (5.0, TypeError, "model is of type float; it must be LASVM"),
        # It has a gamma and a scale of the same names, but it is no learner.
        (
            SimpleNamespace(gamma="scale", scaling="auto"),
            TypeError,
            "model is of type SimpleNamespace; it must be LASVM",
        ),
    ],
    ids=["class", "LASVMG", "LASVMNC", "LASVMI", "FullSVM", "OneVsRest", "pipeline", "number", "other"],
)
def test_a_model_that_cannot_be_solved_is_told_what_would_work(model, error, message):
    X, y = noisy(40)
    for validate in (cross_validate, leave_one_out, functools.partial(grid_search, Cs=[1.0])):
        with pytest.raises(error, match=message):
            validate(model, X, y)


def test_options_of_the_solver():
    X, y = noisy()
    model = LASVM(C=50.0, tol=1e-4)
    plain = cross_validate(model, X, y, seeding="none", options=SolverOptions(planning=0, newton=False))
    usual = cross_validate(model, X, y, seeding="none")
    assert plain.iterations != usual.iterations
    np.testing.assert_allclose(plain.decision_values, usual.decision_values, rtol=0, atol=1e-2)
    with pytest.raises(ValueError, match=r"options.tol=0.1 contradicts tol=0.0001 of the model"):
        cross_validate(model, X, y, options=SolverOptions(tol=0.1))
    with pytest.raises(TypeError, match="must be SolverOptions"):
        cross_validate(model, X, y, options={"planning": 0})


def test_status_says_why_the_solver_stopped():
    X, y = noisy()
    model = LASVM(C=100.0)
    assert set(cross_validate(model, X, y).status) == {"converged"}
    with pytest.warns(RuntimeWarning, match="gave up on 10 of 10 folds"):
        result = cross_validate(model, X, y, seeding="none", options=SolverOptions(max_iterations=3))
    assert result.status == ["max_iterations"] * 10
    assert "status='max_iterations'" in repr(result)
    assert "status={" not in repr(result)


# -------------------------------------------------------------------------------------------------------------- cost


def test_seeds_save_steps():
    """Of ten folds some, of leaving one out most; after an exact path none is left."""
    X, y = noisy(200)
    cold, auto, path, sir = (
        cross_validate(LASVM(C=50.0, gamma=1.0), X, y, seeding=s) for s in ("none", "auto", "path", "sir")
    )
    assert path.iterations < 0.2 * cold.iterations
    assert auto.iterations <= cold.iterations
    assert sir.iterations < 1.2 * cold.iterations
    assert [part.iterations for part in path.per_fold] == [0] * 10
    assert sum(part.events for part in path.per_fold) > 10
    cold, skip, auto, top = (
        leave_one_out(LASVM(C=50.0, gamma=1.0), X, y, seeding=s) for s in ("none", "skip", "auto", "top")
    )
    assert skip.iterations < 0.7 * cold.iterations
    assert top.iterations < 0.7 * skip.iterations
    assert auto.iterations < 0.05 * cold.iterations


def test_auto_picks_the_start_by_the_full_solution():
    X, y = noisy(200)
    easy, cold = (cross_validate(LASVM(C=5.0, gamma=50.0), X, y, seeding=s) for s in ("auto", "none"))
    assert easy.seeding == "skip"
    assert "cold" in easy.reason
    np.testing.assert_allclose(easy.decision_values, cold.decision_values, atol=5e-3)
    hard, cold = (cross_validate(LASVM(C=500.0), X, y, seeding=s) for s in ("auto", "none"))
    assert hard.seeding == "path"
    assert [part.start for part in hard.per_fold] == ["path"] * 10
    assert hard.full.converged
    assert hard.iterations < 0.5 * cold.iterations
    np.testing.assert_allclose(hard.decision_values, cold.decision_values, atol=0.1)


def test_a_chain_starts_from_the_fold_before(monkeypatch):
    calls = []
    sir = splits.seeds.chains.sir
    monkeypatch.setitem(splits.seeds.SEEDS, "sir", lambda *all_of: calls.append(all_of) or sir(*all_of))
    X, y = noisy(60)
    w = np.where(np.arange(60) % 10 == 7, 0.0, 1.0)  # those without weight never enter
    result = cross_validate(LASVM(C=5.0), X, y, k=4, seeding="sir", sample_weight=w)
    assert [part.start for part in result.per_fold] == ["cold", "sir", "sir", "sir"]
    assert result.first is None
    tests = [test[w[test] > 0] for test in result.folds.tests]
    for i, (before, lo, hi) in enumerate(calls):
        np.testing.assert_array_equal(np.flatnonzero((before.lo < before.hi) & (lo >= hi)), tests[i + 1])
        np.testing.assert_array_equal(np.flatnonzero((before.lo >= before.hi) & (lo < hi)), tests[i])


def test_a_path_that_cannot_begin_is_said(monkeypatch):
    monkeypatch.setattr(splits.seeds.exact, "factor_of", lambda full: None)
    X, y = noisy(60)
    result = cross_validate(LASVM(C=5.0), X, y, seeding="path")
    assert result.seeding == "best"
    assert "no path can begin" in result.reason


def test_rows_are_shared_between_folds():
    X, y = noisy(300)
    result = cross_validate(LASVM(C=5.0, gamma=0.5), X, y)
    assert result.rows_computed < 300
    assert result.kernel_evaluations == 300 * result.rows_computed
    by_themselves = sum(smo.solve(X, y, C=5.0, gamma=0.5, held_out=test).rows_computed for test in result.folds.tests)
    assert result.rows_computed < 0.3 * by_themselves


def test_totals_are_those_of_the_parts():
    X, y = noisy()
    result = cross_validate(LASVM(C=5.0), X, y, seeding="skip")
    for name in ("iterations", "newton_steps", "rows_computed", "kernel_evaluations"):
        assert getattr(result, name) == sum(getattr(part, name) for part in [*result.per_fold, result.first])
    assert result.seconds > sum(part.seconds for part in result.per_fold) > 0
    cold = cross_validate(LASVM(C=5.0), X, y, seeding="none")
    assert cold.full is None
    assert cold.iterations == sum(part.iterations for part in [*cold.per_fold, cold.first])
    assert cold.iterations > cold.first.iterations > 0  # the rough solution, and the folds


def test_a_store_may_be_shared_by_several_cross_validations():
    X, y = noisy()
    store = RowStore(X, RBF(0.5))
    model = LASVM(C=5.0, gamma=0.5)
    first = cross_validate(model, store, y)
    again = cross_validate(model, store, y)
    assert first.rows_computed > 0 == again.rows_computed
    np.testing.assert_array_equal(again.decision_values, first.decision_values)
    np.testing.assert_array_equal(cross_validate(model, X, y).decision_values, first.decision_values)
    with pytest.raises(ValueError, match="both need the same kernel"):
        cross_validate(LASVM(C=5.0, gamma=1.0), store, y)
    with pytest.raises(ValueError, match="cannot be scaled"):
        cross_validate(LASVM(C=5.0), store, y)
    np.testing.assert_allclose(
        cross_validate(LASVM(C=5.0, gamma=0.5), sp.csr_matrix(X), y).decision_values, first.decision_values, atol=1e-9
    )


def test_auto_says_what_it_picked():
    X, y = noisy()
    three, ten = cross_validate(LASVM(C=1.0), X, y, k=3), cross_validate(LASVM(C=1.0), X, y)
    assert three.seeding == "none"
    assert "33%" in three.reason
    assert "path" in ten.reason
    assert "avg" in ten.reason
    assert {part.start for part in ten.per_fold} <= {"cold", "path", "avg", "greedy", "copied"}
    assert cross_validate(LASVM(C=1.0), X, y, seeding="none").reason == "as asked for"


# ------------------------------------------------------------------------------------------------------------ scores


def test_scores_are_those_of_scikit_learn():
    X, y = noisy(200)
    result = cross_validate(LASVM(C=5.0, gamma=0.5, tol=1e-4), X, y, k=5)
    svc = SVC(C=5.0, gamma=0.5, tol=1e-4)
    for name in ("accuracy", "f1", "roc_auc", "average_precision", "balanced_accuracy", "neg_log_loss"):
        scorer = of_sklearn.get_scorer(name)
        if name != "neg_log_loss":
            theirs = cross_val_score(svc, X, y, cv=result.folds, scoring=scorer)
            np.testing.assert_allclose(result.scores(scorer), theirs, atol=1e-2)
        assert math.isfinite(result.score(scorer))
    f = result.decision_values
    assert result.score(of_sklearn.roc_auc_score) == of_sklearn.roc_auc_score(y, f)
    assert result.score(of_sklearn.f1_score) == of_sklearn.f1_score(y, f > 0)
    assert result.score(of_sklearn.log_loss) == pytest.approx(of_sklearn.log_loss(y, 1 / (1 + np.exp(-f))))
    assert result.score(of_sklearn.brier_score_loss) == pytest.approx(np.mean((y - 1 / (1 + np.exp(-f))) ** 2))
    assert result.score(of_sklearn.hinge_loss) == pytest.approx(np.maximum(0, 1 - np.where(y, f, -f)).mean())
    assert result.score(prbep_score) == prbep_score(y, f)
    assert result.accuracy == result.score("accuracy") == np.mean(result.predictions == y)
    assert result.g_mean == pytest.approx(math.sqrt(np.mean(f[y] > 0) * np.mean(f[~y] <= 0)))


def test_scores_are_those_of_river():
    X, y = noisy(200)
    result = cross_validate(LASVM(C=5.0, gamma=0.5), X, y, k=5)
    f1 = metrics.F1()
    assert result.score(f1) == pytest.approx(of_sklearn.f1_score(y, result.predictions))
    assert f1.get() == 0.0  # a copy was updated
    assert result.score(metrics.Accuracy) == result.accuracy
    auc = of_sklearn.roc_auc_score(y, result.decision_values)
    assert result.score(metrics.ROCAUC(n_thresholds=500)) == pytest.approx(auc, abs=0.02)
    assert len(result.scores(metrics.LogLoss)) == 5


def test_a_function_with_some_arguments_given_is_what_it_was():
    fixed = functools.partial(of_sklearn.log_loss, labels=[False, True])
    assert not greater_is_better(fixed)
    y, f = np.array([True, False, True]), np.array([2.0, -1.0, 0.5])
    assert measure(fixed, y, f) == measure(of_sklearn.log_loss, y, f)


def test_directions_and_names():
    assert greater_is_better("accuracy")
    assert not greater_is_better(of_sklearn.zero_one_loss)
    assert not greater_is_better(metrics.LogLoss)
    assert not greater_is_better(metrics.LogLoss())
    assert measure("g_mean", np.array([True, True]), np.array([1.0, -1.0])) == 0.5  # of the class there is
    with pytest.raises(ValueError, match="metric='auc' is unknown"):
        measure("auc", np.array([True]), np.array([1.0]))
    with pytest.raises(TypeError, match="metric=3"):
        measure(3, np.array([True]), np.array([1.0]))


def test_examples_tested_often_and_never():
    X, y = noisy(60)
    made = folds.repeated(lambda seed: folds.stratified(y, 4, seed=seed), 3)
    result = cross_validate(LASVM(C=5.0), X, y, folds=made)
    values = np.array([[p.decision_values[p.test == i] for p in result.per_fold if i in p.test] for i in range(60)])
    np.testing.assert_allclose(result.decision_values, values.mean(axis=1)[:, 0])
    np.testing.assert_array_equal(result.predictions, (values > 0).mean(axis=1)[:, 0] > 0.5)
    assert result.accuracy == pytest.approx(result.scores().mean())  # parts of equal size
    once = cross_validate(LASVM(C=5.0), X, y, folds=folds.hold_out(60, 20, y=y))
    assert np.isnan(once.decision_values).sum() == 40
    assert 0 < once.accuracy <= 1
    with pytest.raises(ValueError, match="no split tests 40 of the examples"):
        once.predictions  # noqa: B018


def test_settings_are_compared_by_averaging_and_by_voting():
    """One large win can outweigh many small losses; voting counts the losses."""
    first, second = np.array([0.9, 0.5, 0.5, 0.5]), np.array([0.1, 0.6, 0.6, 0.5])
    comparison = Comparison(first, second, True)
    assert comparison.wins == (1, 2, 1)
    assert comparison.by_averaging == "first"
    assert comparison.by_voting is None  # two of four are no majority
    assert comparison.means == pytest.approx((0.6, 0.45))
    comparison = Comparison(first[:3], second[:3], False)  # losses
    assert (comparison.by_averaging, comparison.by_voting) == ("second", "first")
    same = Comparison(first, first, True)
    assert (same.by_averaging, same.by_voting, same.wins) == (None, None, (0, 0, 4))

    X, y = noisy(100)
    good, poor = cross_validate(LASVM(C=5.0), X, y), cross_validate(LASVM(C=5.0, kernel="linear"), X, y)
    assert compare(good, poor).by_voting == "first"
    assert compare(poor, good, of_sklearn.zero_one_loss).by_averaging == "second"
    assert compare(poor, good, of_sklearn.zero_one_loss, greater=True).by_averaging == "first"
    with pytest.raises(ValueError, match="same splits"):
        compare(good, cross_validate(LASVM(C=5.0), X, y, seed=1))
    with pytest.raises(ValueError, match="same splits"):
        compare(good, cross_validate(LASVM(C=5.0), X, y, k=5))


# --------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("labels", [(False, True), (-1, 1), (0, 1), ("ham", "spam"), (3, 7)])
def test_predictions_have_the_names_of_the_classes(labels):
    X, y = noisy(60)
    named = np.array(labels)[y.astype(int)]
    result = cross_validate(LASVM(C=5.0), X, named, k=4)
    assert set(result.predictions.tolist()) == set(labels)
    assert np.mean(result.predictions == named) == result.accuracy > 0.7


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"seeding": "lucky"}, "seeding='lucky' is unknown"),
        ({"k": 4}, "k=4 folds of 3 examples of the smallest class"),
        ({"k": 1}, "k=1"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"n_jobs": 1.5}, "n_jobs=1.5"),
        ({"sample_weight": -1.0}, "sample_weight holds -1"),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight has shape"),
        ({"folds": folds.v_fold(7, 2)}, "those of 7 examples; there are 8"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(bad, message):
    X, y = np.arange(16.0).reshape(8, 2), [True] * 3 + [False] * 5
    with pytest.raises(ValueError, match=message):
        cross_validate(LASVM(), X, y, **{"k": 2} | bad)


@pytest.mark.parametrize(
    ("name", "value"), [("C", 0.0), ("pos_weight", -1.0), ("tol", 0), ("gamma", -1.0), ("cache_mb", 0)]
)
def test_parameters_of_the_model_are_those_that_were_checked(name, value):
    model = LASVM()
    with pytest.warns(StreamWarning, match=f"{name} stays .*, and {value} is not used"):
        setattr(model, name, value)
    assert getattr(model, name) == getattr(LASVM(), name)


def test_several_classes_are_refused():
    for model in (LASVM(), SmoothSVM()):
        for names in ([0, 1, 2], ["a", "b", "c"], [0.0, 1.0, 2.0], np.array(["a", "b", "c"], object)):
            with pytest.raises(ValueError, match=r"y holds 3 classes, such as .*one class at a time with y == label"):
                cross_validate(model, np.eye(6), np.tile(names, 2), k=2)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="examples of two classes"):
        cross_validate(LASVM(C=1.0), np.eye(4), [True] * 4, k=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'k'"):
        leave_one_out(LASVM(C=1.0), np.eye(4), [True, False] * 2, k=3)


@pytest.mark.parametrize("seeding", SEEDINGS)
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_a_split_that_trains_on_one_class_predicts_it(seeding, C):
    X, y = noisy(30)
    rare = np.arange(30) == 7
    with pytest.warns(RuntimeWarning, match=r"1 of 30 splits, the first being split 7, train on one class only"):
        result = leave_one_out(LASVM(C=C), X, rare, seeding=seeding)
    assert result.predictions[7] == 0
    assert result.decision_values[7] == pytest.approx(-1.0)
    order = np.argsort(y, kind="stable")
    with pytest.warns(RuntimeWarning, match="1 of 2 splits"):
        result = cross_validate(
            LASVM(C=C), X, y, folds=[(order[5:], order[:5]), (order[:5], order[5:])], seeding=seeding
        )
    assert not result.per_fold[1].predictions.any()
    with pytest.warns(RuntimeWarning, match="1 of 30 splits, the first being split 3"):  # the others have no weight
        leave_one_out(LASVM(C=C), X, np.arange(30) < 4, sample_weight=np.arange(30) > 2, seeding=seeding)


def test_one_class_in_a_test_part_is_no_trouble():
    X, y = noisy(30)
    order = np.argsort(y, kind="stable")
    result = cross_validate(LASVM(C=1.0), X, y, folds=[(np.setdiff1d(order, order[:5]), order[:5])])
    assert 0 <= result.scores("g_mean")[0] <= 1


def test_constant_features_have_an_answer():
    y = np.arange(12) % 3 == 0
    for seeding in SEEDINGS:
        result = cross_validate(LASVM(C=2.0), np.ones((12, 2)), y, k=4, seeding=seeding)
        assert result.accuracy == pytest.approx(8 / 12)


def test_giving_up_is_said():
    X, y = noisy()
    with pytest.warns(RuntimeWarning, match="gave up on 4 of 4 folds"):
        result = cross_validate(LASVM(C=100.0), X, y, k=4, options=SolverOptions(max_iterations=0))
    assert not any(part.converged for part in result.per_fold)


@pytest.mark.filterwarnings("ignore:the solver gave up")
@pytest.mark.parametrize("seeding", ["auto", "none", "top"])
def test_no_fold_takes_more_steps_than_allowed(seeding):
    result = cross_validate(LASVM(C=100.0), *noisy(), seeding=seeding, options=SolverOptions(max_iterations=3))
    assert max(part.iterations for part in result.per_fold) == 3


def test_a_bar_is_for_terminals_only(capfd):
    X, y = noisy(40)
    cross_validate(LASVM(C=1.0), X, y, k=2, progress=True)
    assert capfd.readouterr() == ("", "")


def test_results_can_be_kept():
    X, y = noisy(60)
    result = cross_validate(LASVM(C=1.0), X, y, seeding="skip")
    copied = pickle.loads(pickle.dumps(result))  # noqa: S301
    np.testing.assert_array_equal(copied.decision_values, result.decision_values)


def test_unscaled_examples_are_not_copied():
    """Coefficients of 1e-13 are support vectors: a model that has seen an example must not predict it."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 16, (90, 20)) * 16.0
    y = (X[:, 0] > X[:, 1]) ^ (rng.random(90) < 0.15)
    made = folds.stratified(y, 10)
    cold = cross_validate(LASVM(C=1.0, kernel="poly", degree=3), X, y, folds=made, seeding="none")
    for seeding in ("auto", "path", "best", "top"):
        other = cross_validate(LASVM(C=1.0, kernel="poly", degree=3), X, y, folds=made, seeding=seeding)
        assert abs(other.accuracy - cold.accuracy) <= 2 / 90
    assert cold.accuracy < 0.9


@pytest.mark.parametrize("model", [LASVM(gamma=1.0), OneVsOne(LASVM(gamma=1.0)), SmoothSVM(gamma=1.0)], ids=str)
@pytest.mark.parametrize(
    "what", [cross_validate, leave_one_out, functools.partial(grid_search, Cs=[1.0], gammas=[1.0])]
)
def test_labels_are_one_for_each_row_in_order(model, what):
    X, y = noisy(20)[0], np.arange(20) % 2 > 0
    missing = y.astype(object)
    missing[5] = pd.NA
    for labels, problem in (
        (set(y), "y is a set"),
        (dict(enumerate(y)), "y is a dict"),
        (pd.DataFrame({"y": y}), r"y has shape \(20, 1\)"),
        (missing, "y has no label in row 5: <NA>"),
        (np.where(np.arange(20) == 5, np.nan, y), "y has no label in row 5"),
    ):
        with pytest.raises((TypeError, ValueError), match=problem):
            what(model, X, labels)
    with pytest.raises(TypeError, match="sample_weight is a dict"):
        what(model, X, y, sample_weight=dict.fromkeys(range(20), 1.0))


@pytest.mark.parametrize(
    "model", [LASVM(), LASVM(gamma=1.0), OneVsOne(LASVM(gamma=1.0)), SmoothSVM(gamma=1.0)], ids=str
)
def test_sparse_columns_of_pandas(model):
    X, y = noisy(40, d=3)
    X = sp.csr_matrix(np.where(X > 0, X, 0.0))
    frame = pd.DataFrame.sparse.from_spmatrix(X).assign(number=1.0)
    result = cross_validate(model, frame, y, k=3)
    plain = cross_validate(model, frame.to_numpy(), y, k=3)
    np.testing.assert_allclose(result.decision_values, plain.decision_values, atol=1e-5)


def test_bounds_are_for_positive_kernels():
    X, y = noisy(80)
    with_values, without = (
        leave_one_out(LASVM(C=10.0, kernel="sigmoid", gamma=0.05, coef0=-2.0), X, y, seeding="skip", values=values)
        for values in (True, False)
    )
    np.testing.assert_array_equal(without.predictions, with_values.predictions)
    assert not {part.start for part in without.per_fold} & {"xi-alpha", "training error"}


def test_equal_scores_in_another_order_decide_nothing():
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = rng.random(7)
        both = Comparison(scores, rng.permutation(scores), True)
        assert both.by_averaging is None
    with_gap = Comparison(np.array([0.5, np.nan, 0.7]), np.array([0.6, 0.9, 0.6]), True)
    assert with_gap.means == (pytest.approx(0.6), pytest.approx(0.6))
    assert with_gap.by_averaging is None
    assert with_gap.wins == (1, 1, 1)


def test_results_keep_no_rows_but_those_of_a_given_store():
    X, y = noisy(60)
    result = leave_one_out(LASVM(C=5.0, gamma=1.0), X, y)
    assert result.full.store.rows_computed == 0
    np.testing.assert_allclose(result.full.decision_function(X), result.full.decision_values, atol=1e-9)
    store = RowStore(X, RBF(1.0))
    assert leave_one_out(LASVM(C=5.0, gamma=1.0), store, y).full.store is store
    assert store.rows_computed > 0


def test_a_result_is_one_line_and_becomes_a_frame():
    X, y = noisy()
    names = np.where(y, "spam", "ham")
    result = cross_validate(LASVM(C=1.0), X, names, k=5)
    assert repr(result).startswith(f"Result({len(y)} examples, 5 splits, accuracy={result.accuracy:.4f}, ")
    assert "\n" not in repr(result)
    assert repr(result.per_fold[0]).startswith("Fold(")
    frame = result.to_frame()
    assert list(frame) == ["split", "example", "y", "prediction", "decision_value"]
    assert (frame.y == frame.prediction).mean() == pytest.approx(result.accuracy)
    assert set(frame.prediction) == {"ham", "spam"}
    by_example = frame.set_index("example").sort_index()
    np.testing.assert_array_equal(by_example.decision_value, result.decision_values)
    np.testing.assert_array_equal(by_example.y, names)
    left_out = leave_one_out(LASVM(C=1.0), X, names)
    assert len(left_out.to_frame()) == len(y)
    assert "\n" not in repr(left_out)


def test_a_frame_needs_pandas(monkeypatch):
    X, y = noisy()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        cross_validate(LASVM(C=1.0), X, y, k=2).to_frame()


@pytest.mark.parametrize("name", ["roc_auc", "f1", "balanced_accuracy", "precision", "recall"])
def test_metrics_go_by_scikit_learns_names(name):
    X, y = noisy()
    result = cross_validate(LASVM(C=1.0), X, y, k=3)
    np.testing.assert_allclose(result.scores(name), result.scores(of_sklearn.get_scorer(name)), atol=1e-12)


def test_a_curve_needs_decision_values_by_whatever_name():
    X, y = noisy()
    result = leave_one_out(LASVM(C=1.0), X, y, values=False)
    with pytest.raises(ValueError, match="values=True"):
        result.score("roc_auc")
    assert result.score("f1") == pytest.approx(of_sklearn.f1_score(y, result.predictions))


@pytest.mark.long
def test_folds_are_soon_given_up_where_the_full_problem_was():
    """Kernel values of 1e7 and labels at random: no fold would be solved by twenty times as many steps either."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(32, 2)), rng.random(32) < 0.5
    with pytest.warns(RuntimeWarning, match="folds"):
        result = leave_one_out(LASVM(C=100.0, kernel="poly", gamma=45.0, degree=3, coef0=1.0), X, y)
    assert not result.full.converged
    trained = [part for part in result.per_fold if not part.converged]
    assert trained
    assert max(part.iterations for part in trained) <= 100_000


@pytest.mark.parametrize("model", [LASVM(gamma=0.5), LASVM(), SmoothSVM(), OneVsOne(LASVM(gamma=0.5))], ids=repr)
def test_the_number_of_columns_of_a_sparse_matrix_costs_nothing(model):
    many, few, y = wide.matrices()
    y = np.arange(len(y)) % 3 if isinstance(model, OneVsOne) else y
    one, other = (cross_validate(model, X, y, k=4).decision_values for X in (many, few))
    atol = 1e-6 if isinstance(model, OneVsOne) else 1e-9  # its pairs are solved in single precision
    np.testing.assert_allclose(one, other, atol=atol)
