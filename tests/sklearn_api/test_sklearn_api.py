"""The scikit-learn front: its checks, the same solution as SVC, weights with a meaning, and who it works with."""

import pickle
import re
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import wide
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import estimator_checks_generator
from states import binaries_of

from streamsvm import LASVM, OneVsOne
from streamsvm.sklearn_api import LASVMClassifier

NAMES = ("lasvm", "lasvm-g", "lasvm-nc", "lasvm-i", "full")


@pytest.fixture
def moons():
    return make_moons(400, noise=0.3, random_state=0)


# -------------------------------------------------------------------------------------------------------------- checks


def checks_of(model):
    """scikit-learn's checks of a model, each with its name; how many there are depends on scikit-learn's version."""
    return [(check.func.__name__, partial(check, model)) for _, check in estimator_checks_generator(model)]


CHECKS = [
    pytest.param(check, id=f"{name}-{what}-{i}")
    for name in NAMES
    for i, (what, check) in enumerate(checks_of(LASVMClassifier(name)))
]


@pytest.mark.long
@pytest.mark.parametrize("check", CHECKS)
def test_every_check_of_scikit_learn_passes(check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it one check leaves itself out
    try:
        check()
    except SkipTest as reason:
        pytest.fail(f"left out: {reason}")


@pytest.mark.parametrize("name", NAMES)
def test_there_are_all_the_checks(name):
    """Those of SVC.  For dense and sparse data, a weight of n must be n examples, which SVC does not pass."""
    names = [what for what, _ in checks_of(LASVMClassifier(name))]
    assert Counter(names) == Counter(what for what, _ in checks_of(SVC()))
    assert sum(name.startswith("check_sample_weight_equivalence") for name in names) == 2


# -------------------------------------------------------------------------------------------------------- the solution


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 1.0},
        {"C": 0.01},
        {"C": 30.0, "gamma": 0.5},
        {"C": 5.0, "gamma": "auto"},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"C": 3.0, "class_weight": {0: 0.2, 1: 4.0}},
        {"class_weight": "balanced"},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_matrix, sp.csr_array], ids=lambda f: f.__name__)
def test_fit_gives_the_solution_of_svc(moons, parameters, form):
    X, y = moons
    uneven = (y == 0) | (np.arange(len(y)) % 3 > 0)
    X, y = form(X[uneven]), y[uneven]
    model = LASVMClassifier(tol=1e-4, **parameters).fit(X, y)
    reference = SVC(tol=1e-6, **parameters).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=2e-3)
    assert model.n_iter_ > 1


def test_fit_gives_the_solution_of_svc_where_the_online_pass_dropped_examples(moons):
    X, y = moons
    reference = SVC(C=10.0, gamma=1.0, tol=1e-6).fit(X, y).decision_function(X)
    one_pass = LASVMClassifier(C=10.0, gamma=1.0, tol=1e-4, max_iter=1).fit(X, y)
    all_passes = LASVMClassifier(C=10.0, gamma=1.0, tol=1e-4).fit(X, y)
    assert one_pass.n_iter_ == 1
    assert abs(one_pass.decision_function(X) - reference).max() > 1e-2
    assert abs(all_passes.decision_function(X) - reference).max() < 2e-3


@pytest.mark.parametrize(("n", "seed", "C"), [(100, 0, 0.003), (100, 0, 0.01), (400, 2, 0.01), (400, 3, 0.01)])
def test_the_bias_where_every_coefficient_is_at_its_bound(n, seed, C):
    """It is anywhere in a range then, in the middle of which SVC puts it."""
    X, y = make_moons(n, noise=0.3, random_state=seed)
    model = LASVMClassifier(C=C, gamma=0.5).fit(X, y)
    assert model.n_support_.sum() == n
    np.testing.assert_allclose(
        model.decision_function(X), SVC(C=C, gamma=0.5).fit(X, y).decision_function(X), atol=1e-5
    )


def test_without_a_bias_every_way_to_the_optimum_is_the_same(moons):
    X, y = moons
    gap, full = (LASVMClassifier(name, C=10.0, gamma=1.0, tol=1e-4).fit(X, y) for name in ("lasvm-g", "full"))
    np.testing.assert_allclose(gap.decision_function(X), full.decision_function(X), atol=2e-3)
    assert full.model_.n_members == len(X)
    assert gap.intercept_ == full.intercept_ == 0.0


def test_without_a_bias_an_example_counts_once_whatever_the_passes():
    X, y = make_moons(1000, noise=0.3, random_state=0)
    model = LASVMClassifier("lasvm-g", C=1000.0, gamma=1.0).fit(X, y)
    assert model.n_iter_ > 2
    assert model.model_.n_seen == len(y)


@pytest.mark.long
def test_the_ramp_gives_examples_up():
    X, y = make_moons(2000, noise=0.3, random_state=0)
    y = np.where(np.random.default_rng(0).random(len(y)) < 0.1, 1 - y, y)
    convex, ramp = (
        LASVMClassifier("lasvm-g", C=10.0).fit(X, y),
        LASVMClassifier("lasvm-nc", C=10.0, ramp_s=0.0).fit(X, y),
    )
    assert ramp.n_support_.sum() < 0.8 * convex.n_support_.sum()


def test_it_warns_if_there_are_not_enough_passes(moons):
    X, y = moons
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = LASVMClassifier(C=10.0, gamma=1.0, max_iter=2).fit(X, y)
    assert model.n_iter_ == 2


def test_attributes_are_those_of_the_decision_function(moons):
    X, y = moons
    labels = np.where(y == 1, "up", "down")
    model = LASVMClassifier(C=10.0).fit(X, labels)
    assert model.classes_.tolist() == ["down", "up"]
    assert model.gamma_ == pytest.approx(1.0 / (2 * X.var()))
    assert (np.diff(model.support_)[np.diff(y[model.support_]) == 0] > 0).all()
    values = model.dual_coef_ @ rbf_kernel(X[model.support_], X, gamma=model.gamma_) + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), values[0], atol=1e-4)
    assert (y[model.support_] == (model.dual_coef_[0] > 0)).all()
    assert model.n_support_.tolist() == np.bincount(y[model.support_]).tolist()
    assert (model.predict(X) == model.classes_[(values[0] > 0).astype(int)]).all()


def test_probabilities_go_with_the_decision_values(moons):
    X, y = moons
    model = LASVMClassifier(C=10.0).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (np.diff(p[np.argsort(model.decision_function(X)), 1]) >= 0).all()
    assert (p.argmax(axis=1) == model.predict(X)).all()
    assert -np.log(p[np.arange(len(y)), y]).mean() < 0.4  # log(2) would be no information


def test_probabilities_are_fitted_to_examples_that_were_not_yet_learned():
    """The margins of learned examples would promise certainty, where a label is as good as random."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(800, 2)), rng.integers(0, 2, 800)
    model = LASVMClassifier(C=100.0, gamma=10.0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.predict_proba(rng.normal(size=(800, 2))).max(axis=1).mean() < 0.6


# ------------------------------------------------------------------------------------------------------ several classes


@pytest.fixture
def blobs():
    """Four classes that overlap."""
    return make_blobs(300, centers=4, cluster_std=2.0, random_state=1)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_several_classes_are_those_of_svc(blobs, form, shape):
    X, y = blobs
    given = {"C": 3.0, "gamma": 0.1, "decision_function_shape": shape}
    model, reference = LASVMClassifier(**given, tol=1e-4).fit(form(X), y), SVC(**given, tol=1e-6).fit(X, y)
    values = reference.decision_function(X)
    clear = abs(SVC(**given | {"decision_function_shape": "ovo"}).fit(X, y).decision_function(X)).min(axis=1) > 5e-3
    np.testing.assert_allclose(model.decision_function(form(X))[clear], values[clear], atol=2e-3)
    assert (model.predict(X) == reference.predict(X))[clear].all()
    assert model.n_iter_.shape == (6,)
    assert (model.n_iter_ > 1).all()


def test_ties_of_votes_are_broken_by_decision_values_if_told(blobs):
    X, y = blobs
    breaking = LASVMClassifier(gamma=50.0, break_ties=True).fit(X, y)
    assert (breaking.predict(X) == breaking.decision_function(X).argmax(axis=1)).all()
    breaking.set_params(decision_function_shape="ovo")
    with pytest.raises(ValueError, match="break_ties must be False"):
        breaking.predict(X)


def test_attributes_of_several_classes(blobs):
    X, y = blobs
    model = LASVMClassifier(C=3.0, gamma=0.1).fit(X, np.array(["a", "b", "c", "d"])[y])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.n_support_.tolist() == np.bincount(y[model.support_]).tolist()
    assert (np.diff(y[model.support_]) >= 0).all()
    np.testing.assert_allclose(model.support_vectors_, X[model.support_], rtol=1e-6)
    with pytest.raises(AttributeError, match="linear kernel only"):
        _ = model.coef_


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_attributes_have_the_shapes_and_values_of_those_of_svc(n_classes, form):
    X, y = make_blobs(200, centers=n_classes, cluster_std=2.0, random_state=3, n_features=5)
    X = form(np.round(X, 2))
    model = LASVMClassifier(kernel="linear", C=0.1, tol=1e-6).fit(X, y)
    svc = SVC(kernel="linear", C=0.1, tol=1e-8).fit(X, y)
    assert model.support_.tolist() == svc.support_.tolist()
    assert model.n_support_.tolist() == svc.n_support_.tolist()
    assert sp.issparse(model.support_vectors_) == sp.issparse(svc.support_vectors_)
    assert model.n_iter_.shape == svc.n_iter_.shape
    for name in ("dual_coef_", "coef_", "intercept_", "support_vectors_"):
        values = (getattr(fitted, name) for fitted in (model, svc))
        ours, theirs = (value.toarray() if sp.issparse(value) else value for value in values)
        np.testing.assert_allclose(ours, theirs, atol=2e-4)
    assert model.partial_fit(X, y).dual_coef_.shape[0] == n_classes - 1


def test_the_models_of_pairs_are_made_when_they_are_needed_and_say_the_same(blobs):
    X, y = blobs
    model = LASVMClassifier(C=3.0, gamma=0.1).fit(X, y)
    early = pickle.loads(pickle.dumps(model))  # noqa: S301
    attributes = ("dual_coef_", "intercept_", "support_", "support_vectors_", "n_support_")
    before = [model.decision_function(X), *(getattr(model, name) for name in attributes)]
    pairs = model.model_.pair_values_many(X)
    model.model_.finish(1e9)  # needs the models, and changes nothing
    after = [model.decision_function(X), *(getattr(model, name) for name in attributes)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    for (first, second), values in zip(model.model_.pairs, pairs.T, strict=True):
        alone = binaries_of(model.model_)[first, second]
        np.testing.assert_array_equal(alone.decision_function_many(X), values)
    assert early.model_.digest() == model.model_.digest() == OneVsOne.from_bytes(model.model_.to_bytes()).digest()
    assert_same(early.partial_fit(X, y), model.partial_fit(X, y), X)


@pytest.mark.parametrize(
    "given",
    [{}, {"kernel": "linear"}, {"kernel": linear_kernel}, {"break_ties": True}],
    ids=lambda given: str([*given]),
)
def test_the_predicted_class_is_the_most_probable_one(given):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4))
    for n_classes in (2, 6):
        y = np.digitize(X[:, 0] + rng.normal(size=300), np.linspace(-1.0, 1.0, n_classes - 1))
        model = LASVMClassifier(**given).fit(X, y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))


def test_probabilities_of_several_classes(blobs):
    X, y = blobs
    model = LASVMClassifier(C=3.0).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(np.log(p), model.predict_log_proba(X))
    assert -np.log(p[np.arange(len(y)), y]).mean() < 0.8  # log(4) would be no information


def test_weights_of_several_classes(blobs):
    X, y = blobs
    factors = np.array([1.0, 4.0, 0.5, 1.0])
    by_class = LASVMClassifier(class_weight={1: 4.0, 2: 0.5}, gamma=0.1).fit(X, y)
    assert_same(by_class, LASVMClassifier(gamma=0.1).fit(X, y, sample_weight=factors[y]), X)


def test_several_classes_online(blobs):
    """A class that comes late is known from the beginning."""
    X, y = blobs
    order = np.argsort(y == 2, kind="stable")
    X, y = X[order], y[order]
    model, online = LASVMClassifier(C=3.0, gamma=0.1), OneVsOne(LASVM(C=3.0, gamma=0.1), classes=range(4))
    for part in np.split(np.arange(300), [1, 70]):
        model.partial_fit(X[part], y[part], classes=[3, 2, 1, 0])
    online.learn_many(X, y, ids=np.arange(300))
    np.testing.assert_array_equal(model.decision_function(X), online.decision_function_many(X))
    assert sorted(model.support_) == sorted(online.support_ids)
    assert_same(model, pickle.loads(pickle.dumps(model)), X)  # noqa: S301


# ------------------------------------------------------------------------------------------------------------- weights


def assert_same(one, other, X):
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_order_of_the_examples_does_not_matter(moons, name, form):
    X, y = moons
    order = np.random.default_rng(0).permutation(len(X))
    one, other = LASVMClassifier(name).fit(form(X), y), LASVMClassifier(name).fit(form(X[order]), y[order])
    assert_same(one, other, X)
    assert set(one.support_) == set(order[other.support_])


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_of_n_is_n_examples_and_a_weight_of_0_is_none(moons, name):
    X, y = moons
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = LASVMClassifier(name).fit(X, y, sample_weight=weights)
    assert_same(weighted, LASVMClassifier(name).fit(X.repeat(weights, axis=0), y.repeat(weights)), X)
    assert weights[weighted.support_].min() > 0


def test_the_optimum_itself_does_not_tell_twice_an_example_from_twice_its_weight(moons):
    """SVC is the judge: it does not know that equal examples are learned as one."""
    X, y = moons
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    model = LASVMClassifier(C=2.0, gamma=1.0, tol=1e-4).fit(X, y, sample_weight=weights)
    reference = SVC(C=2.0, gamma=1.0, tol=1e-6).fit(X.repeat(weights, axis=0), y.repeat(weights))
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=2e-3)


def test_equal_examples_are_one_support_vector(moons):
    X, y = moons
    twice = LASVMClassifier(C=1.0).fit(np.vstack([X, X]), np.hstack([y, y]))
    assert twice.support_.max() < len(X)
    assert_same(twice, LASVMClassifier(C=1.0).fit(X, y, sample_weight=np.full(len(X), 2.0)), X)


def test_equal_examples_of_two_classes_are_two(moons):
    X, y = moons
    X, y = np.vstack([X, X[:50]]), np.hstack([y, 1 - y[:50]])
    model = LASVMClassifier(gamma=1.0, tol=1e-4).fit(X, y)
    reference = SVC(gamma=1.0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), reference.decision_function(X), atol=2e-3)


def test_class_weights_are_weights_of_examples(moons):
    X, y = moons
    by_class = LASVMClassifier(class_weight={0: 0.5, 1: 3.0}, gamma=1.0).fit(X, y)
    assert_same(by_class, LASVMClassifier(gamma=1.0).fit(X, y, sample_weight=np.where(y == 1, 3.0, 0.5)), X)


def test_balanced_classes_weigh_the_same(moons):
    X, y = moons
    X, y = X[:250], np.sort(y)[:250]
    share = np.bincount(y) / len(y)
    balanced = LASVMClassifier(class_weight="balanced").fit(X, y)
    assert_same(balanced, LASVMClassifier(class_weight=dict(enumerate(0.5 / share))).fit(X, y), X)


def test_a_class_of_weight_0_is_never_predicted(moons):
    X, y = moons
    model = LASVMClassifier(class_weight={0: 0.0}).fit(X, y)
    assert model.classes_.tolist() == [0, 1]
    assert (model.predict(X) == 1).all()


def test_a_class_of_weight_0_in_a_small_training_set(moons):
    X, y = (part[:60] for part in moons)
    for without in (0, 1):
        model = LASVMClassifier(class_weight={without: 0}).fit(X, y)
        assert set(model.predict(X)) == {1 - without}


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), "2", None, pd.NA])
def test_a_weight_of_a_class_is_a_number(moons, weight):
    X, y = (part[:30] for part in moons)
    model = LASVMClassifier(class_weight={1: weight})
    for attempt in (lambda: model.fit(X, y), lambda: model.partial_fit(X, y, classes=[0, 1])):
        with pytest.raises(ValueError, match=r"class_weight\[1\]=.* must be a finite number, at least 0"):
            attempt()
    for of_all, problem in (
        ({0: 0, 1: 0}, "gives every class the weight 0"),
        ({1: 1e300}, r"holds 1e\+300, too large"),
    ):
        with pytest.raises(ValueError, match=f"class_weight.*{problem}"):
            LASVMClassifier(class_weight=of_all).fit(X, y)


def test_a_higher_weight_of_a_class_finds_more_of_it(moons):
    X, y = moons
    found = [LASVMClassifier(class_weight={1: w}).fit(X, y).predict(X)[y == 1].mean() for w in (0.1, 1.0, 10.0)]
    assert found == sorted(found)
    assert found[0] < found[-1]


# --------------------------------------------------------------------------------------------------- one batch and more


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_partial_fit_is_the_online_learner(moons, form):
    X, y = moons
    X = form(X)
    model = LASVMClassifier(C=10.0, gamma=0.5, class_weight={1: 2.0})
    for part in np.split(np.arange(400), [1, 100, 101]):
        model.partial_fit(X[part], y[part], classes=[1, 0])
    online = LASVM(C=10.0, gamma=0.5)
    online.learn_many(X, y, w=np.where(y == 1, 2.0, 1.0), ids=np.arange(400))
    np.testing.assert_array_equal(model.decision_function(X), online.decision_function_many(X))
    assert model.n_samples_seen_ == 400
    assert set(model.support_) == set(online.support_ids)


def test_partial_fit_goes_on_after_fit(moons):
    X, y = moons
    model = LASVMClassifier(C=10.0).fit(X[:300], y[:300])
    gamma = model.gamma_
    model.partial_fit(X[300:], y[300:])
    model.model_.finish()
    assert model.gamma_ == gamma
    assert model.support_.max() >= 300
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "changed",
    [
        {"C": 3.0},
        {"kernel": "linear"},
        {"kernel": "poly"},
        {"gamma": 2.0},
        {"degree": 2},
        {"coef0": 1.0},
        {"tol": 0.1},
        {"algorithm": "full"},
        {"ramp_s": 0.0},
        {"cache_mb": 1.0},
    ],
    ids=str,
)
def test_a_parameter_that_is_set_later_changes_no_model(moons, begin, changed):
    X, y = (part[:40] for part in moons)
    model = LASVMClassifier(gamma=1.0)
    getattr(model, begin)(X, y, **({} if begin == "fit" else {"classes": [0, 1]}))
    before = model.decision_function(X)
    model.set_params(**changed)
    np.testing.assert_array_equal(model.decision_function(X), before)
    np.testing.assert_array_equal(model.predict(X), before > 0)
    assert not hasattr(model, "coef_")
    (name,) = changed
    with pytest.raises(ValueError, match=f"{name}=.* was set after learning began with {name}=.*; set {name} back"):
        model.partial_fit(X, y)
    assert_same(clone(model).fit(X, y), model.fit(X, y), X)


def test_parameters_that_the_model_does_not_hold_may_change(moons):
    X, y = (part[:40] for part in moons)
    model = LASVMClassifier().partial_fit(X, y, classes=[0, 1])
    model.set_params(class_weight={1: 2.0}, max_iter=3, decision_function_shape="ovo").partial_fit(X, y)
    model.set_params(decision_function_shape="other")
    with pytest.raises(ValueError, match="decision_function_shape='other' must be"):
        model.decision_function(X)


def test_fit_forgets_what_was_learned_before(moons):
    X, y = moons
    model = LASVMClassifier().partial_fit(X[:, :1], y, classes=[0, 1, 2])
    assert_same(model.fit(X, y), LASVMClassifier().fit(X, y), X)
    assert model.n_features_in_ == 2


# ------------------------------------------------------------------------------------------------------------- company


@pytest.fixture
def pipeline():
    return make_pipeline(StandardScaler(), LASVMClassifier())


def test_labels_and_weights_are_one_for_each_example_in_order(moons):
    X, y = (part[:10] for part in moons)
    missing = [pd.NA, *y[1:]]
    for model in (LASVMClassifier(), LASVMClassifier(kernel=rbf_kernel)):
        for labels, problem in (
            (dict(enumerate(y)), "y is a dict"),
            (set(y), "y is a set"),
            (missing, "in row 0: <NA>"),
        ):
            with pytest.raises((TypeError, ValueError), match=problem):
                model.fit(X, labels)
        for weights, problem in (
            ({0: 1.0}, "is a dict"),
            ([1.0, pd.NA, *y[2:]], "holds <NA> in row 1; weights must be"),
        ):
            with pytest.raises(TypeError, match=f"sample_weight {problem}"):
                model.fit(X, y, sample_weight=weights)


def test_in_a_pipeline_with_frames(moons, pipeline):
    X, y = moons
    frame = pd.DataFrame(X, columns=["a", "b"])
    pipeline.set_output(transform="pandas").fit(frame, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["a", "b"]
    assert pipeline.score(frame, y) > 0.9
    with pytest.raises(ValueError, match="feature names"):
        pipeline[-1].predict(frame[["b", "a"]])


@pytest.mark.long
def test_in_a_grid_search_with_two_processes(moons, pipeline):
    X, y = moons
    grid = {"lasvmclassifier__C": [0.01, 10.0], "lasvmclassifier__algorithm": ["lasvm", "lasvm-nc"]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2, error_score="raise").fit(X, y)
    assert search.best_params_["lasvmclassifier__C"] == 10.0
    assert search.best_score_ > 0.85


def test_calibrated(moons, pipeline):
    X, y = moons
    calibrated = CalibratedClassifierCV(pipeline, ensemble=False).fit(X, y)
    p = calibrated.predict_proba(X)
    assert -np.log(p[np.arange(len(y)), y]).mean() < 0.4


def test_cross_validated(moons, pipeline):
    assert cross_val_score(pipeline, *moons, scoring="roc_auc").mean() > 0.9


def test_cloned_and_pickled(moons):
    X, y = moons
    model = LASVMClassifier("lasvm-nc", C=2.0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert_same(model, again, X)
    assert_same(model.partial_fit(X, y), again.partial_fit(X, y), X)
    assert not hasattr(clone(model), "model_")
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-1, 1], [2.0, 7.0]], ids=str)
def test_labels_of_any_kind(moons, labels):
    X, y = moons
    named = np.array(labels)[y]
    model = LASVMClassifier().fit(X, named)
    assert model.classes_.tolist() == labels
    assert model.predict(X).dtype == named.dtype
    assert model.score(X, named) > 0.9


# ------------------------------------------------------------------------------------------------------- given kernels


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_a_given_kernel_is_as_good_as_a_built_in_one(n_classes, shape):
    X, y = make_blobs(300, centers=n_classes, cluster_std=2.0, random_state=1)
    weights = np.random.default_rng(0).integers(-1, 3, len(y))
    others = {"C": 3.0, "tol": 1e-5, "decision_function_shape": shape, "class_weight": {1: 2.0}}
    built_in = LASVMClassifier(gamma=0.1, **others).fit(X, y, weights)
    K = rbf_kernel(X, gamma=0.1)
    for kernel, given in (("precomputed", K), (lambda A, B: rbf_kernel(A, B, gamma=0.1), X)):
        model = LASVMClassifier(kernel=kernel, **others).fit(given, y, weights)
        clear = np.abs(built_in.decision_function(X)).reshape(len(X), -1).min(axis=1) > 1e-3
        np.testing.assert_allclose(model.decision_function(given), built_in.decision_function(X), atol=2e-3)
        assert (model.predict(given) == built_in.predict(X))[clear].all()
        assert model.dual_coef_.shape == (n_classes - 1, len(model.support_))
        assert set(model.support_) == set(built_in.support_)
        np.testing.assert_allclose(model.intercept_, built_in.intercept_, atol=2e-3)
        np.testing.assert_allclose(model.predict_proba(given).sum(axis=1), 1.0)
        with pytest.raises(AttributeError, match="a given kernel has none"):
            _ = model.support_vectors_


@pytest.mark.parametrize("without", [0, 1, 3])
def test_a_class_of_several_that_has_weight_0_is_never_predicted(blobs, without):
    X, y = blobs
    for kernel in ("rbf", rbf_kernel):
        model = LASVMClassifier(kernel=kernel, class_weight={without: 0.0}).fit(X, y)
        assert set(model.predict(X)) == {0, 1, 2, 3} - {without}


def test_a_given_kernel_is_cut_by_cross_validation_and_refuses_what_does_not_fit(moons):
    X, y = moons
    K, model = rbf_kernel(X, gamma=1.0), LASVMClassifier(kernel="precomputed")
    assert cross_val_score(model, K, y).mean() > 0.85
    model.fit(K, y)
    with pytest.raises(
        ValueError, match=r"X has 2 kernel values for each example; there must be one for each of the 400"
    ):
        model.predict(X)
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
        model.fit(sp.csr_matrix(K), y)
    with pytest.raises(ValueError, match="needs algorithm=\"lasvm\", not 'lasvm-g'"):
        LASVMClassifier("lasvm-g", kernel=rbf_kernel).fit(X, y)
    with pytest.raises(ValueError, match=r"C=-1\.0 must be a positive finite number"):
        LASVMClassifier(C=-1.0, kernel=rbf_kernel).fit(X, y)
    with pytest.raises(ValueError, match="is for fit only"):
        model.partial_fit(K, y, classes=[0, 1])
    assert_same(model, pickle.loads(pickle.dumps(model)), K)  # noqa: S301


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"algorithm": "SVM"},
            "algorithm='SVM' is unknown; use one of 'lasvm', 'lasvm-g', 'lasvm-nc', 'lasvm-i', 'full'",
        ),
        ({"C": 0.0}, "C=0.0 must be a positive finite number"),
        ({"kernel": "laplace"}, "kernel='laplace' is unknown"),
        (
            {"kernel": "precomputed"},
            r"X has shape \(400, 2\): a precomputed kernel of a training set is a square matrix",
        ),
        ({"decision_function_shape": "votes"}, "decision_function_shape='votes' must be 'ovr' or 'ovo'"),
        ({"gamma": "wide"}, 'gamma=\'wide\' must be "scale", "auto" or a positive number'),
        ({"gamma": -1.0}, "gamma=-1.0 must be a positive finite number"),
        ({"tol": 0}, "tol=0 must be a positive finite number"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number, at least 1"),
        ({"algorithm": "lasvm-nc", "ramp_s": 2.0}, "ramp_s=2.0 must be a finite number, at most 1"),
        ({"class_weight": "equal"}, "class_weight"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_named(moons, parameters, message):
    model = LASVMClassifier(**parameters)  # scikit-learn wants no error before fit
    with pytest.raises(ValueError, match=message):
        model.fit(*moons)
    with pytest.raises(NotFittedError):
        model.predict(moons[0])


def test_training_sets_that_make_no_sense(moons):
    X, y = moons
    with pytest.raises(ValueError, match=r"1 class .1. among the examples of positive weight; at least 2"):
        LASVMClassifier().fit(X, y, sample_weight=y)
    for kernel in ("rbf", rbf_kernel):
        for weight in (0.0, -1.0):
            with pytest.raises(ValueError, match="all samples have zero or negative weights"):
                LASVMClassifier(kernel=kernel).fit(X, y, sample_weight=np.full(len(y), weight))
    with pytest.raises(ValueError, match="continuous"):
        LASVMClassifier().fit(X, X[:, 0])


@pytest.mark.parametrize("gamma", ["scale", 1.0])
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
@pytest.mark.filterwarnings("error")
def test_a_feature_that_is_too_large_is_named(moons, form, gamma):
    X, y = moons
    X = X.copy()
    X[7, 1] = -1e300
    with pytest.raises(ValueError, match=r"not finite .* feature 1 in row 7 is -1e\+300; features must be finite"):
        LASVMClassifier(gamma=gamma).fit(form(X), y)


def test_classes_that_make_no_sense(moons):
    X, y = moons
    with pytest.raises(ValueError, match="sample_weight"):
        LASVMClassifier().partial_fit(X, y, classes=[0, 1], sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="classes=None: the first call of partial_fit needs all labels"):
        LASVMClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        LASVMClassifier().partial_fit(X, y, classes=[0])
    with pytest.raises(ValueError, match=r"y holds \[1\], which is not among the classes \[0, 2\]"):
        LASVMClassifier().partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="others than those of the first call"):
        LASVMClassifier().fit(X, y).partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match='class_weight="balanced" needs all examples'):
        LASVMClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])


@pytest.mark.long
def test_without_scikit_learn_the_message_says_what_to_install():
    script = "import sys; sys.modules['sklearn'] = None; import streamsvm; import streamsvm.sklearn_api"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.returncode == 1
    assert 'ImportError: streamsvm.sklearn_api needs scikit-learn: pip install "streamsvm[sklearn]"' in answer.stderr


NOTHING_LEFT_TO_COMPILE = """
import numpy as np
from streamsvm.core.compiling import _jit
from streamsvm.sklearn_api import LASVMClassifier
from streamsvm.sklearn_api.ahead import compile_fits

compile_fits()
asked, load = [], _jit._CodeCache.load_overload
_jit._CodeCache.load_overload = lambda of, *others: asked.append(of._py_func.__name__) or load(of, *others)
X = np.random.default_rng(1).normal(size=(300, 30))
for n_classes in (2, 4):
    LASVMClassifier(gamma=0.1).fit(X, np.arange(300) % n_classes).predict(X)
print(asked)
"""


@pytest.mark.long
def test_warmup_compiles_what_the_first_fit_needs():
    done = subprocess.run([sys.executable, "-c", NOTHING_LEFT_TO_COMPILE], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.long
def test_tests_of_scikit_learn_for_svc_pass():
    """Those that are not deselected; the list of the others has a reason for each."""
    script = Path(__file__).with_name("svm_of_sklearn.py")
    done = subprocess.run([sys.executable, str(script), "-q"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    n_tests, passed = map(int, re.search(r"of (\d+) tests of classification, (\d+) pass", done.stdout).groups())
    assert passed >= 0.9 * n_tests


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_number_of_columns_of_a_sparse_matrix_costs_nothing(kernel):
    many, few, y = wide.matrices()
    for gamma in ("scale", 0.5):
        LASVMClassifier(kernel=kernel, gamma=gamma).fit(many, y).predict_proba(many)
    one, other = (LASVMClassifier(kernel=kernel, gamma=0.5).fit(X, y) for X in (many, few))
    np.testing.assert_allclose(one.decision_function(many), other.decision_function(few), atol=1e-6)
    np.testing.assert_array_equal(one.predict(many), other.predict(few))
    assert one.support_vectors_.shape == (len(one.support_), wide.WIDTH)
