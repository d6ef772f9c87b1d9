"""A model warns of a stream from which it cannot learn, once, and is silent about others."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from streamsvm import LASVM, LASVMG, OneVsRest
from streamsvm.estimators.learner.advice import StreamWarning
from streamsvm.sklearn_api import LASVMClassifier

NAMES = ["a", "b", "c"]


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=n) > 0


def learn(model, X, y, batch):
    """Learn all at once, in batches, or one by one; return the warnings, each with how many had been learned."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: found.append((model.n_seen, message))
        for begin in range(0, len(y), batch or 1):
            if batch:
                model.learn_many(X[begin : begin + batch], y[begin : begin + batch])
            else:
                model.learn_one(dict(enumerate(X[begin].tolist())), bool(y[begin]))
    assert all(isinstance(message, StreamWarning) for _, message in found)
    return [(n, str(message)) for n, message in found]


@pytest.mark.parametrize("algorithm", [LASVM, LASVMG])
def test_a_stream_that_is_fine_has_none(algorithm):
    X, y = stream(5000)
    X[:, 1] = X[:, 1] > 0.3  # 0 and 1
    X[:, 2] = 10.0
    X[:, 0] *= 3.0
    assert learn(algorithm(C=1.0, gamma=0.5), X, y, 700) == []


def test_features_of_different_scales():
    X, y = stream(2500)
    X *= [1.0, 2e-3, 500.0]
    ((n, text),) = learn(LASVM(C=1.0, gamma=0.5), X, y, 900)
    assert n == 1000
    assert text.startswith("the features have very different scales")
    assert "deviation of 1 is 0.0019, that of 2 5.2e+02" in text
    assert 'scaling="standard"' in text


@pytest.mark.parametrize(("scaling", "gamma"), [("standard", 0.5), ("auto", "scale")])
def test_a_model_that_scales_does_not_mind(scaling, gamma):
    X, y = stream(1200)
    assert learn(LASVM(C=1.0, gamma=gamma, scaling=scaling), X * [1.0, 2e-3, 500.0], y, 100) == []


def test_features_that_are_0_or_1_may_be_rare():
    X, y = stream(1500)
    X[:, 1] = np.arange(1500) % 500 == 0
    X[:, 2] *= 30.0
    assert learn(LASVM(C=1.0, gamma=0.5), X, y, 100) == []


def test_features_that_are_rare_may_be_small():
    X, y = stream(1500)
    X[np.arange(1500) % 3 > 0, 1] = 0.0
    X[:, 1] *= 1e-3
    assert learn(LASVM(C=1.0, gamma=0.5), X, y, 100) == []
    X[:, 1] += 1e-3 * X[:, 0]
    assert len(learn(LASVM(C=1.0, gamma=0.5), X, y, 100)) == 1


@pytest.mark.parametrize("label", [False, True])
def test_one_class(label):
    X, _ = stream(2100)
    ((n, text),) = learn(LASVM(), X, np.full(2100, label), 450)
    assert n == 1000
    assert text.startswith(f"the first 1000 examples have the label {label} only")


def test_a_class_that_comes_in_time():
    X, _ = stream(1500)
    assert learn(LASVM(), X, np.arange(1500) >= 999, 300) == []


def noise(n):
    """Labels that features do not tell: one of ten is positive."""
    return np.random.default_rng(5).normal(size=(n, 3)), np.arange(n) % 10 == 3


def test_equal_predictions():
    X, y = noise(5000)
    ((n, text),) = learn(LASVM(C=0.01, gamma=1e-4), X, y, 830)
    assert 2000 <= n <= 4000
    assert n % 1000 == 0
    assert "predictions were all False, although" in text
    assert 'pos_weight="balanced"' in text


def test_equal_predictions_of_one_class():
    X, _ = noise(4500)
    y = np.arange(4500) < 5
    assert learn(LASVM(), X, y, 500) == []


@pytest.mark.long
def test_a_batch_warns_as_a_loop_does():
    X, y = noise(4100)
    X *= [1.0, 1e-3, 500.0]
    found = [learn(LASVM(C=0.01, gamma=1e-9), X, y, batch) for batch in (None, 640, 4100)]
    assert len(found[0]) == 2
    assert found[0] == found[1]
    assert [text for _, text in found[2]] == [text for _, text in found[0]]


def test_a_warning_that_is_an_error_leaves_a_whole_model():
    X, _ = stream(1300)
    model = LASVM()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StreamWarning):
            model.learn_many(X, np.ones(1300, bool))
    assert model.n_seen == 1000
    model.learn_many(X, np.zeros(1300, bool))
    whole = LASVM()
    learn(whole, X[:1000], np.ones(1000, bool), 1000)
    whole.learn_many(X, np.zeros(1300, bool))
    assert model.digest() == whole.digest()


def test_a_restored_model_looks_when_it_would_have():
    X, y = noise(4500)
    model = LASVM(C=0.01, gamma=1e-4)
    learn(model, X[:950], y[:950], 950)
    again = LASVM.from_bytes(model.to_bytes())
    assert [n for n, _ in learn(again, X[950:], y[950:], 50)] == [3000]


def test_several_classes_and_training_sets_have_none():
    X, y = noise(5000)
    X *= [1.0, 1e-3, 500.0]
    model = OneVsRest(LASVM(C=0.01, gamma=1e-9), classes=[False, True, "never"])
    model.learn_many(X[:2500], y[:2500])
    again = OneVsRest.from_bytes(model.to_bytes())
    again.learn_many(X[2500:], y[2500:])
    LASVMClassifier(C=0.01, gamma=1e-9, max_iter=10).fit(X, y)


def named(X):
    """Rows as dicts of the features other than 0."""
    return [{d: v for d, v in enumerate(x) if v} for x in X.tolist()]


@pytest.mark.parametrize("as_given", [sp.csr_matrix, named])
def test_a_look_within_a_block_leaves_the_block_its_new_features(as_given):
    X = np.random.default_rng(0).normal(size=(1100, 4))
    X[:1020, 2] = X[1024:, 2] = X[:1060, 3] = 0.0  # Feature 2 occurs after the look, and only in its block.
    y = X[:, 0] > 0
    block, parts = LASVM(gamma=0.5), LASVM(gamma=0.5)
    block.learn_many(as_given(X), y)
    for own in (slice(0, 1000), slice(1000, 1100)):
        parts.learn_many(as_given(X[own]), y[own])
    assert block.feature_names == parts.feature_names == [0, 1, 2, 3]
    assert block.digest() == parts.digest()
