"""Streaming estimates of models of several classes: they are those of models that have forgotten, and they go on."""

import copy
import math
from unittest import mock

import numpy as np
import pytest

from streamsvm import LASVM, AutoLASVM, FullSVM, OneVsOne, OneVsRest
from streamsvm.validation import StreamingKFold, StreamingLOO, streaming

KINDS = [OneVsRest, OneVsOne]
WRAPPERS = [StreamingLOO, StreamingKFold]
CLASSES = np.array(["bird", "cat", "dog"])


def noisy(n=120, seed=0):
    """Three classes that overlap, the last of them rare."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.35, 0.15])
    return np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[y] + 0.8 * rng.normal(size=(n, 2)), CLASSES[y]


def taught(kind, wrapper=StreamingLOO, learner=FullSVM, n=120, tol=1e-6, seed=0, **parameters):
    X, y = noisy(n, seed)
    estimate = wrapper(kind(learner(C=5.0, gamma=0.5)), **{"share": 0, "memory": n} | parameters)
    estimate.learn_many(X, y)
    if tol:
        estimate.model.finish(tol)
    return estimate, X, y


def without(model, ids, X):
    """What the model predicts for these examples after it has forgotten them."""
    rest = copy.copy(model)
    rest.forget(ids)
    return rest.predict_many(X[ids])


@pytest.mark.parametrize("kind", KINDS)
def test_leave_one_out_is_the_error_of_models_that_have_forgotten(kind):
    loo, X, y = taught(kind)
    right = np.array([without(loo.model, [i], X)[0] == y[i] for i in range(len(y))])
    estimate = loo.estimate()
    assert (estimate.n, estimate.n_undecided) == (120, 0)
    assert 0 < estimate.n_removed < 120
    assert abs(estimate.error.value - np.mean(~right)) <= 1 / 120
    assert estimate.error.low == estimate.error.value == estimate.error.high
    recalls = [np.mean(right[y == label]) for label in CLASSES]
    assert estimate.g_mean.value == pytest.approx(np.prod(recalls) ** (1 / 3), abs=0.03)
    assert math.isnan(estimate.prbep.value)
    assert "PRBEP" not in str(estimate)


@pytest.mark.parametrize("kind", KINDS)
def test_folds_are_predicted_by_models_that_have_forgotten_them(kind):
    folds, X, y = taught(kind, StreamingKFold, k=4)
    estimate = folds.estimate()
    of_fold = np.array([folds.fold_of(i) for i in range(len(y))])
    right = np.empty(len(y), bool)
    for fold in range(4):
        own = np.flatnonzero(of_fold == fold)
        right[own] = without(folds.model, own, X) == y[own]
        assert folds.fold_errors[fold] == pytest.approx(np.mean(~right[own]), abs=1.01 / len(own))
    assert abs(estimate.error.value - np.mean(~right)) <= 2 / 120
    assert estimate.n == 120


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", [LASVM, FullSVM])
@pytest.mark.parametrize("tol", [1e-5, None])
def test_the_interval_covers_what_was_not_decided(kind, learner, tol):
    loo, _, _ = taught(kind, learner=learner, n=80, tol=tol, seed=3)
    everything = loo.estimate()
    for removals in (0, 3, 15):
        with mock.patch.object(streaming.loo, "FEWEST_REMOVED", removals):
            some = loo.estimate(seconds=0.0)
        assert some.n_removed <= removals
        assert some.n_removed + some.n_undecided == everything.n_removed
        for name in ("error", "g_mean"):
            value, low, high = getattr(some, name)
            whole = getattr(everything, name)
            assert low <= value <= high
            assert low - 1e-9 <= whole.low
            assert whole.high <= high + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_stored_one_goes_on_as_if_it_had_not_been(kind, wrapper):
    X, y = noisy(200)
    given = {"every": 50, "memory": 60, "share": 1e9, "keep": "sample"}
    whole = wrapper(kind(LASVM(C=5.0, gamma=0.5)), **given)
    whole.learn_many(X[:130], y[:130])
    again = wrapper.from_bytes(whole.to_bytes(), type(whole.model).from_bytes(whole.model.to_bytes()))
    assert again.latest is not None
    assert again.latest.error == whole.latest.error
    for estimate in (whole, again):
        estimate.learn_many(X[130:], y[130:])
    assert again.latest._replace(seconds=0.0) == whole.latest._replace(seconds=0.0)
    assert again.to_bytes() == whole.to_bytes() or wrapper is StreamingLOO  # which stores the seconds


@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_corrected_and_forgotten_here_too(kind):
    loo, _, y = taught(kind)
    assert loo.relabel([0, 1], ["dog", "dog"]) == 2
    assert [CLASSES[example.y] for example in loo._memory.of([0, 1, 2])] != list(y[:3])
    labels = loo.model.labels
    assert [labels[example.y] for example in loo._memory.of([0, 1, 2])] == ["dog", "dog", y[2]]
    assert loo.forget([2]) == 1
    loo.corrected([3], ["a class that the model has never met"])
    assert not {2, 3} & set(loo._memory.ids)
    assert loo.estimate().n == 118


def test_one_class_is_always_right():
    loo = StreamingLOO(OneVsRest(LASVM()), share=0)
    loo.learn_many(np.eye(3), ["a"] * 3)
    assert loo.estimate().error.value == 0.0


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_models_that_tune_themselves_are_refused(wrapper):
    with pytest.raises(TypeError, match="it must be an online classifier such as"):
        wrapper(OneVsRest(AutoLASVM()))
