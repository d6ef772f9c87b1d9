"""Features far from 0, in units that people use: a kernel of distances does not depend on a constant."""

import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsOne, OneVsRest, merge
from streamsvm.active import MaxLabels, label_pool
from streamsvm.batch.kernels.features import Features
from streamsvm.core.kernels import RBF, Linear
from streamsvm.core.scaling.state import FAR, PLACES, SEEN, TRACKS
from streamsvm.estimators.learner.advice import StreamWarning
from streamsvm.sklearn_api import LASVMClassifier
from streamsvm.validation import cross_validate

LEARNERS = {
    "LASVM": LASVM(C=10, gamma=0.5),
    "G": LASVMG(C=10, gamma=0.5),
    "NC": LASVMNC(C=10, gamma=0.5),
    "I": LASVMI(C=10, gamma=0.5),
    "FULL": FullSVM(C=10, gamma=0.5),
    "gamma follows": LASVM(C=10, scaling=None),
    "budget": LASVM(C=10, gamma=0.5, budget=60),
    "rest": OneVsRest(LASVM(C=10, gamma=0.5)),
    "pairs": OneVsOne(LASVM(C=10, gamma=0.5)),
}


def ball(n=250, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X**2).sum(axis=1) < 2.4


def rows_of(X):
    return [dict(enumerate(x)) for x in X.tolist()]


def accuracy(model, X, y):
    return float(np.mean(np.asarray(model.predict_many(X)).astype(bool) == y))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("mean", [1e3, 1e9])
def test_a_constant_costs_no_accuracy(name, mean):
    X, y = ball()
    near, far = LEARNERS[name].clone(), LEARNERS[name].clone()
    near.learn_many(X, y)
    far.learn_many(X + mean, y)
    for model in (near, far):
        model.finish()
    assert accuracy(far, X + mean, y) > accuracy(near, X, y) - 0.02 > 0.93
    assert type(far).from_bytes(far.to_bytes()).digest() == far.digest()


def test_ordinary_units():
    """A year, a pressure in hPa and a temperature in kelvin."""
    Z, y = ball(600)
    X = Z * [3.0, 5.0, 4.0] + [2015.0, 1013.0, 295.0]
    for model in (LASVM(C=10, gamma=0.02), LASVM(C=10, gamma=0.02, kernel="rbf", scaling=None)):
        model.learn_many(X[:400], y[:400])
        assert accuracy(model, X[400:], y[400:]) > 0.93
    found = LASVMClassifier(C=10, gamma=0.02).fit(X[:400], y[:400])
    assert found.score(X[400:], y[400:]) > 0.93


def two_halves(distance):
    """A stream that is near 0, and then goes away; an outlier comes before."""
    X, y = ball()
    X[125:] += distance
    X[60] = 1e6
    return X, y


@pytest.mark.parametrize("name", ["LASVM", "budget", "rest", "gamma follows"])
def test_however_it_is_cut_it_is_the_loop(name):
    X, y = two_halves(1e3)
    alone = LEARNERS[name].clone()
    for x, label in zip(rows_of(X), y.tolist(), strict=True):
        alone.learn_one(x, label)
    for cut in (1, 40, 250):
        model = LEARNERS[name].clone()
        for b in range(0, len(X), cut):
            model.learn_many(X[b : b + cut] if cut > 1 else rows_of(X[b : b + cut]), y[b : b + cut])
            model = type(model).from_bytes(model.to_bytes())
        assert model.digest() == alone.digest(), cut
    one = [alone.predict_one(x) for x in rows_of(X)]
    assert np.array_equal(np.asarray(alone.predict_many(X)).astype(bool), np.array(one).astype(bool))


def test_a_block_wakes_at_the_value_at_which_an_example_does():
    """A square that single precision would round away."""
    edge = np.float32(np.sqrt(FAR / 0.5))
    for value in (np.nextafter(edge, np.float32(0)), edge, np.nextafter(edge, np.float32(99))):
        X, y = np.array([[1.0], [float(value)], [2.0]]), [True, False, True]
        alone, batch = LASVM(gamma=0.5), LASVM(gamma=0.5)
        for x, label in zip(rows_of(X), y, strict=True):
            alone.learn_one(x, label)
        batch.learn_many(X, y)
        assert state_of(alone).scale.tracks == state_of(batch).scale.tracks == (float(value) ** 2 > FAR / 0.5)
        assert alone.digest() == batch.digest()


def test_near_0_nothing_is_kept_for_it():
    X, y = ball()
    model = LASVM(C=10, gamma=0.5)
    model.learn_many(X, y)
    assert not state_of(model).scale.tracks
    assert not [name for name in model._content()[1] if name.startswith("scale.")]


def test_an_outlier_alone_shifts_nothing():
    X, y = ball()
    model = LASVM(C=10, gamma=0.5)
    model.learn_many(X[:100], y[:100])
    model.learn_one({0: 1e7, 1: -1e7, 2: 1e7}, True)
    assert state_of(model).scale.tracks
    assert not model.is_scaling or np.abs(state_of(model).scale.state.shift[:3]).max() < 1e6
    model.learn_many(X[100:], y[100:])
    assert accuracy(model, X, y) > 0.93


def test_the_moments_begin_with_those_of_the_members():
    X, y = ball()
    model = FullSVM(C=10, gamma=0.5)
    model.learn_many(X[:30], y[:30])
    model.learn_one({0: 100.0, 1: 0.5, 2: -60.0}, True)
    c = state_of(model).scale.state
    assert (c.counts[SEEN], c.counts[TRACKS], c.counts[PLACES]) == (31, 1, 3)
    np.testing.assert_allclose(c.m[:3], X[:30].mean(axis=0), atol=0.5)  # the last one is cut


def test_support_vectors_are_given_as_they_came():
    X, y = ball()
    far = X + np.array([1e3, 0.0, -2e3])
    for model in (LASVM(C=10, gamma=0.5), OneVsOne(LASVM(C=10, gamma=0.5))):
        model.learn_many(far, y.astype(int))
        assert model.scale_of(0) == (0.0, 1.0)
        if isinstance(model, LASVM):
            np.testing.assert_allclose(model.support_vectors.toarray(), far[model.support_ids], atol=1e-4)
    found = LASVMClassifier(C=10, gamma=0.5).fit(far, y)
    np.testing.assert_allclose(found.support_vectors_, far[found.support_], atol=1e-4)
    found = LASVMClassifier(C=10, gamma=0.5).partial_fit(far, y, classes=[False, True])
    np.testing.assert_allclose(found.support_vectors_, far[found.support_], atol=1e-4)


def test_forgetting_takes_out_exactly():
    X, y = ball(120)
    model = FullSVM(C=2.0, gamma=0.5, tol=1e-6)
    model.learn_many(X + 1e3, y)
    assert model.forget(range(0, 120, 5)) == 24
    model.finish(1e-6)
    kept = np.setdiff1d(np.arange(120), np.arange(0, 120, 5))
    K = naive.gram(RBF(0.5), X[kept], X[kept])
    alpha = naive.solve_box(K, np.where(y[kept], 1.0, -1.0), *_boxes(y[kept], 2.0), 1e-6)
    alpha = alpha[0] if isinstance(alpha, tuple) else alpha
    np.testing.assert_allclose(model.decision_function_many(X[kept] + 1e3), K @ alpha, atol=2e-3)


def _boxes(y, C):
    return np.where(y, 0.0, -C), np.where(y, C, 0.0)


def test_merging_pools_what_was_near_with_what_was_far():
    X, y = ball(400)
    X[200:] += 1e3
    parts = [LASVM(C=10, gamma=0.5) for _ in range(2)]
    for part, own in zip(parts, (slice(200), slice(200, 400)), strict=True):
        part.learn_many(X[own], y[own])
    for of in (parts, parts[::-1]):
        assert accuracy(merge(of, renumber=True), X, y) > 0.9
    assert not state_of(merge([parts[0], parts[0].clone()], renumber=True)).scale.tracks


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_scikit_learns_front_is_the_same_near_and_far(sparse, classes):
    X, _ = ball(300)
    y = np.digitize((X**2).sum(axis=1), [1.5, 3.5][: classes - 1])
    form = sp.csr_matrix if sparse else np.asarray
    near = LASVMClassifier(C=10, gamma=0.5).fit(form(X), y)
    far = LASVMClassifier(C=10, gamma=0.5).fit(form(X + np.array([1e4, -3e3, 0.0])), y)
    assert np.mean(near.predict(form(X)) == far.predict(form(X + np.array([1e4, -3e3, 0.0])))) > 0.99
    later = LASVMClassifier(C=10, gamma=0.5)
    for own in (slice(100), slice(100, 300)):
        later.partial_fit(form(X[own] + 1e4), y[own], classes=range(classes))
    assert later.score(form(X + 1e4), y) > near.score(form(X), y) - 0.06


def test_other_doors_are_the_same_near_and_far():
    X, y = ball(120)
    three = np.digitize((X**2).sum(axis=1), [1.5, 3.5])
    for model, labels in ((LASVM(C=10, gamma=0.5), y), (OneVsOne(LASVM(C=10, gamma=0.5)), three)):
        found = [cross_validate(model, X + mean, labels, k=3).accuracy for mean in (0.0, 3e3)]
        assert found[0] == pytest.approx(found[1], abs=0.01)
    chosen = []
    for mean in (0.0, 3e3):
        model = LASVM(C=10, gamma=0.5)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chosen.append([step.key for step in label_pool(model, X + mean, y.__getitem__, stopping=MaxLabels(40))])
        assert accuracy(model, X + mean, y) > 0.85
    assert len(set(chosen[0]) & set(chosen[1])) > 30


def test_the_examples_of_a_batch_solver_are_shifted_for_distances_only():
    X, _ = ball(50)
    near, far = Features(X, RBF(0.5)), Features(X + 1e4, RBF(0.5))
    ids = np.arange(50)
    blocks = zip(near.kernel_values(ids, ids), far.kernel_values(ids, ids), strict=True)
    assert all(np.abs(K - L).max() < 1e-4 for (_, _, K), (_, _, L) in blocks)
    np.testing.assert_allclose(Features(X + 1e4, Linear()).sq, np.square(X + 1e4).sum(axis=1), rtol=1e-6)


def learned(door, own, X, y):
    if door.startswith("fit"):
        return LASVMClassifier(**own).fit(
            X, np.digitize(y * X[:, 0], [2e3]) + 2 * (X[:, 1] > 3e3) if "classes" in door else y
        )
    model = LASVM(**own, scaling=None)
    model = OneVsRest(model) if door == "classes" else model
    model.learn_many(X, y.astype(int))
    for _ in range(2 if door != "look" else 0):
        model.finish()
    return model


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("door", ["look", "finish", "classes", "fit", "fit of classes"])
def test_kernels_that_depend_on_the_origin_say_once_that_digits_are_lost(kernel, door):
    X, y = ball(1000 if door == "look" else 200)
    with pytest.warns(StreamWarning, match="single precision leaves an error") as told:
        learned(door, {"kernel": kernel, "gamma": 0.5, "coef0": 1.0}, X + 3e3, y)
    assert len([w for w in told if "single precision" in str(w.message)]) == 1


def test_scaled_models_have_their_digits():
    X, y = ball(1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in ("linear", "rbf"):
            model = LASVM(kernel=kernel)
            model.learn_many(X + 3e3, y)
            model.finish()


@pytest.mark.parametrize("unit", [1.0, 1e-8, 1e-12, 1e-100])
def test_units_do_not_matter(unit):
    X = np.random.default_rng(0).normal(size=(400, 2)) * [unit, 1.0]
    y = X[:, 0] > 0.0
    for model in (LASVM(), OneVsRest(LASVM()), AutoLASVM()):
        model.learn_many(X[:300], y[:300])
        assert accuracy(model, X[300:], y[300:]) > 0.9
    assert cross_validate(LASVM(), X[:150], y[:150], k=3).accuracy > 0.9


def test_a_constant_feature_in_large_units_stays_constant():
    """Rounding of a mean of 1e9 is no deviation."""
    X, y = ball(200)
    plain, with_it = LASVM(), LASVM()
    plain.learn_many(X, y)
    with_it.learn_many(np.c_[X, 1e9 + 1e-7 * np.random.default_rng(0).normal(size=200)], y)
    assert with_it.scale_of(3)[1] == 1.0


def test_features_too_small_for_any_gamma_are_told():
    X, y = ball(1000)
    model = LASVM(scaling=None)
    with pytest.warns(StreamWarning, match="so small"):
        model.learn_many(X * 1e-17, y)
