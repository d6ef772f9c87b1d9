"""`merge` of models of several classes."""

import numpy as np
import pytest
from sklearn.svm import SVC

from streamsvm import LASVM, AutoLASVM, FullSVM, OneVsOne, OneVsRest, merge

KINDS = pytest.mark.parametrize("kind", [OneVsRest, OneVsOne])
FIXED = {"C": 5.0, "gamma": 0.5}


def stream(n=600, seed=0):
    """Three classes around a centre, on scales far from each other."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    z = np.stack([X[:, 0], X[:, 1], -X[:, 0] - X[:, 1]], axis=1)
    return X * [1.0, 20.0] + [0.0, 100.0], np.array(["a", "b", "c"])[z.argmax(axis=1)]


def learned(kind, X, y, ids, learner=LASVM, **parameters):
    model = kind(learner(**parameters))
    model.learn_many(X, y.tolist(), ids=ids)
    return model


def parts_of(kind, masks, X, y, **parameters):
    return [learned(kind, X[own], y[own], np.flatnonzero(own), **parameters) for own in masks]


def at_random(y):
    return [np.arange(len(y)) % 3 == k for k in range(3)]


def by_class(y):
    """The first part meets one class, and none of the parts meets many of all."""
    few = np.arange(len(y)) % 5 == 0
    return [y == "a", (y == "b") | few, (y == "c") | few]


@KINDS
@pytest.mark.parametrize("split", [at_random, by_class])
def test_a_merged_model_is_close_to_one_that_learned_everything(kind, split):
    X, y = stream()
    parts = parts_of(kind, split(y), X, y)
    merged = merge(parts)
    whole = learned(kind, X, y, np.arange(len(X)))
    whole.finish()
    fresh, truth = stream(seed=1)
    right = [np.mean(model.predict_many(fresh) == truth) for model in (whole, merged, *parts)]
    assert merged.n_seen == sum(part.n_seen for part in parts)
    assert right[1] > right[0] - 0.02
    assert right[1] > max(right[2:])
    assert set(merged.labels) == {"a", "b", "c"}


@KINDS
def test_each_model_is_at_the_optimum_over_what_its_parts_kept(kind):
    """With `FullSVM`, every example is kept, and the first part has met all classes."""
    X, y = stream(150)
    X = (X - [0.0, 100.0]) / [1.0, 20.0]
    parts = parts_of(kind, at_random(y), X, y, learner=FullSVM, **FIXED)
    merged, whole = merge(parts), learned(kind, X, y, np.arange(len(X)), FullSVM, **FIXED)
    merged.finish(1e-5)
    whole.finish(1e-5)
    order = [whole.labels.index(label) for label in merged.labels]
    values = merged.decision_function_many(X)
    np.testing.assert_allclose(values, whole.decision_function_many(X)[:, order], atol=1e-3)
    assert np.mean(merged.predict_many(X) == SVC(**FIXED).fit(X, y).predict(X)) > 0.98


@KINDS
def test_it_goes_on_as_if_it_had_been_saved(kind):
    X, y = stream(300)
    merged = merge(parts_of(kind, by_class(y), X, y))
    loaded = kind.from_bytes(merged.to_bytes())
    more, labels = stream(200, seed=2)
    for model in (merged, loaded):
        model.learn_many(more, labels.tolist(), ids=np.arange(300, 500))
    assert loaded.digest() == merged.digest()


@KINDS
def test_ids_survive_so_that_examples_can_be_forgotten_and_relabelled(kind):
    X, y = stream(300)
    merged = merge(parts_of(kind, at_random(y), X, y))
    leaving = merged.support_ids[:10]
    assert set(leaving.tolist()) <= set(range(300))
    assert merged.forget(leaving) == 10
    assert not np.isin(merged.support_ids, leaving).any()
    assert merged.relabel(int(merged.support_ids[0]), "c") == 1
    assert merged.next_id == 300


@KINDS
def test_ids_of_two_examples_are_refused_or_given_anew(kind):
    X, y = stream(200)
    parts = [learned(kind, X[own], y[own], None) for own in (slice(100), slice(100, 200))]
    with pytest.raises(ValueError, match=r"names different examples of two models.*renumber=True"):
        merge(parts)
    merged = merge(parts, renumber=True)
    assert len(np.unique(merged.support_ids)) == merged.n_support
    assert np.mean(merged.predict_many(X) == y) > 0.9


@KINDS
def test_copies_of_one_model_are_that_model(kind):
    X, y = stream(200)
    part = learned(kind, X, y, np.arange(200))
    merged = merge([part, kind.from_bytes(part.to_bytes())])
    part.finish()
    assert len(np.unique(merged.support_ids)) == merged.n_support
    assert np.mean(merged.predict_many(X) == part.predict_many(X)) > 0.97


@KINDS
def test_the_parts_stay_as_they_are(kind):
    X, y = stream(200)
    parts = parts_of(kind, at_random(y), X, y)
    before = [part.digest() for part in parts]
    merge(parts)
    assert [part.digest() for part in parts] == before


@KINDS
def test_models_that_learned_nothing_or_one_class(kind):
    assert merge([kind(LASVM()), kind(LASVM())]).labels == []
    X, y = stream(60)
    parts = [learned(kind, X[y == label], y[y == label], np.flatnonzero(y == label)) for label in "abc"]
    merged = merge([kind(LASVM()), *parts])
    assert merged.labels == ["a", "b", "c"]
    assert np.mean(merged.predict_many(X) == y) > 0.9


def test_a_pair_that_another_part_has_the_other_way_round():
    X, y = stream(200)
    first, other = y == "b", y != "b"
    parts = [learned(OneVsOne, X[order], y[order], order) for order in (np.argsort(~first), np.argsort(~other))]
    assert parts[0].labels != parts[1].labels
    merged = merge([parts[0], parts[1]])
    assert np.mean(merged.predict_many(X) == y) > 0.9


@KINDS
def test_ages_count_back_from_the_newest_example_of_each_model(kind):
    X, y = stream(300)
    parts = [learned(kind, X[own], y[own], own, window=50) for own in (np.arange(100), np.arange(100, 300))]
    merged = merge(parts)
    assert set(merged.support_ids.tolist()) <= set(range(50, 100)) | set(range(250, 300))


def test_what_cannot_be_merged_is_named():
    with pytest.raises(ValueError, match=r"C=1\.0 and C=2\.0"):
        merge([OneVsRest(LASVM(C=1.0)), OneVsRest(LASVM(C=2.0))])
    with pytest.raises(ValueError, match="class='LASVM' and class='FullSVM'"):
        merge([OneVsRest(LASVM()), OneVsRest(FullSVM())])
    with pytest.raises(TypeError, match="OneVsRest and OneVsOne"):
        merge([OneVsRest(LASVM()), OneVsOne(LASVM())])
    with pytest.raises(TypeError, match="TunedOneVsRest cannot be merged"):
        merge([OneVsRest(AutoLASVM())])
