"""`merge`: one model from several that learned parts of a stream."""

import datetime

import numpy as np
import pytest
from sklearn.svm import SVC

from streamsvm import LASVM, LASVMG, merge
from streamsvm.estimators.inputs.raw_rows import from_rows
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.estimators.learner.merging import pooled_samples
from streamsvm.estimators.learners import ALGORITHMS

FIXED = {"C": 5.0, "gamma": 0.5}


def stream(n=900, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + shift
    return X, np.sin(1.5 * (X[:, 0] - shift)) + 0.5 * (X[:, 1] - shift) + 0.3 * rng.normal(size=n) > 0


def learned(X, y, ids, kind=LASVM, **parameters):
    model = kind(**(parameters or FIXED))
    model.learn_many(X, y, ids=ids)
    return model


def parts_of(X, y, n_parts=3, kind=LASVM, **parameters):
    rows = [np.arange(len(X))[k::n_parts] for k in range(n_parts)]
    return [learned(X[own], y[own], own, kind, **parameters) for own in rows]


def agreement(model, expected, X):
    return np.mean((np.asarray(model.decision_function_many(X)) > 0) == (np.asarray(expected) > 0))


@pytest.mark.parametrize("kind", ALGORITHMS.values(), ids=ALGORITHMS)
def test_a_merged_model_is_close_to_one_that_learned_everything(kind):
    X, y = stream()
    whole = learned(X, y, np.arange(len(X)), kind)
    whole.finish()
    merged = merge(parts_of(X, y, kind=kind))
    assert merged.delta <= merged.tol
    assert (merged.n_seen, merged.class_counts) == (900, whole.class_counts)
    fresh = stream(seed=1)[0]
    assert agreement(merged, whole.decision_function_many(fresh), fresh) > 0.97


def test_parts_that_met_different_regions_make_the_model_of_all_regions():
    X, y = stream()
    order = np.argsort(X[:, 1])
    X, y = X[order], y[order]
    parts = [learned(X[k : k + 300], y[k : k + 300], np.arange(k, k + 300)) for k in (0, 300, 600)]
    fresh = stream(seed=1)[0]
    optimum = SVC(**FIXED).fit(X, y).decision_function(fresh)
    means = np.mean([part.decision_function_many(fresh) for part in parts], axis=0)
    merged = merge(parts)
    assert agreement(merged, optimum, fresh) > 0.97 > np.mean((means > 0) == (optimum > 0))


def test_the_order_of_the_models_does_not_matter_beyond_the_tolerance():
    X, y = stream()
    parts = parts_of(X, y)
    fresh = stream(seed=1)[0]
    one, other = merge(parts), merge(parts[::-1])
    assert np.abs(one.decision_function_many(fresh) - np.asarray(other.decision_function_many(fresh))).max() < 0.1


def test_the_models_stay_as_they_are():
    parts = parts_of(*stream())
    before = [part.digest() for part in parts]
    merge(parts)
    assert [part.digest() for part in parts] == before


def test_ids_survive_so_that_examples_can_be_forgotten_and_relabelled():
    X, y = stream()
    merged = merge(parts_of(X, y))
    leaving = merged.support_ids[:20]
    assert set(leaving) <= set(range(900))
    assert merged.relabel(int(leaving[0]), not y[leaving[0]]) == 1
    assert merged.forget(leaving) == 20
    assert not np.isin(merged.support_ids, leaving).any()
    assert merged.next_id == 900


def test_features_are_aligned_by_name():
    X, y = stream()
    names = [["a", "b", "c"], ["c", "a", "b"]]
    parts = []
    for k, own in enumerate(names):
        parts.append(LASVM(**FIXED))
        for t in range(k, len(X), 2):
            x = dict(zip("abc", X[t].tolist(), strict=True))
            parts[k].learn_one({name: x[name] for name in own}, y[t], id=t)
    plain = merge(parts_of(X, y, 2))
    merged = merge(parts)
    for x in X[:50]:
        expected = plain.decision_function_one(dict(enumerate(x.tolist())))
        assert merged.decision_function_one(dict(zip("abc", x.tolist(), strict=True))) == pytest.approx(
            expected, abs=0.05
        )


def test_a_feature_that_one_model_never_met_was_0_there():
    parts = [LASVM(C=10.0, gamma=1.0), LASVM(C=10.0, gamma=1.0)]
    for t, (x, y) in enumerate([({"a": 2.0}, True), ({"a": -2.0}, False)]):
        parts[0].learn_one(x, y, id=t)
    for t, (x, y) in enumerate([({"b": 2.0}, True), ({"b": -2.0}, False)]):
        parts[1].learn_one(x, y, id=2 + t)
    merged = merge(parts)
    assert merged.feature_names == ["a", "b"]
    assert [merged.predict_one({name: value}) for name in "ab" for value in (2.0, -2.0)] == [True, False, True, False]


def test_running_scales_are_pooled():
    parts, every = [], []
    for k, shift in enumerate((0.0, 10.0)):
        X, y = stream(600, k, shift)
        parts.append(learned(X, y, np.arange(600) + 600 * k, C=5.0))
        every.append((X, y))
    merged = merge(parts)
    X = np.concatenate([X for X, _ in every])
    for column in range(3):
        shift, factor = merged.scale_of(column)
        assert shift == pytest.approx(X[:, column].mean(), abs=0.1 * X[:, column].std())
        assert 1 / factor == pytest.approx(X[:, column].std(), rel=0.1)
    correct = [np.mean(merged.predict_many(X) == y) for X, y in every]
    assert min(correct) > 0.85


@pytest.mark.parametrize("parameters", [FIXED, {"C": 5.0}], ids=["given", "scaled"])
def test_a_merged_model_is_saved_and_goes_on_as_if_it_had_not_been(parameters):
    X, y = stream()
    merged = merge(parts_of(X, y, reservoir=100, **parameters))
    loaded = type(merged).from_bytes(merged.to_bytes())
    assert loaded.digest() == merged.digest()
    more = stream(300, seed=2)
    for model in (merged, loaded):
        model.learn_many(*more)
        model.finish()
    assert loaded.digest() == merged.digest()


def test_equal_examples_under_one_id_are_there_once():
    X, y = stream(300)
    part = learned(X, y, np.arange(300))
    merged = merge([part, part])
    assert len(np.unique(merged.support_ids)) == merged.n_support
    fresh = stream(seed=1)[0]
    part.finish()
    assert agreement(merged, part.decision_function_many(fresh), fresh) > 0.97


def test_where_models_know_different_labels_the_first_one_counts():
    X, y = stream(300)
    part = learned(X, y, np.arange(300))
    corrected = type(part).from_bytes(part.to_bytes())
    (turned,) = part.support_ids[:1].tolist()
    corrected.relabel(turned, not y[turned])
    for models, label in (([part, corrected], y[turned]), ([corrected, part], not y[turned])):
        merged = merge(models)
        at = np.flatnonzero(merged.support_ids == turned)
        assert ((merged.dual_coef[at] > 0) == label).all()
        assert merged.relabel(turned, label) == len(at)
    assert len(at) == 1, "a wrong label makes a support vector"


def test_an_example_that_two_scales_have_rounded_is_one_example():
    """One model went on learning on another scale from a copy of the other, far from 0 compared with its spread."""
    X, y = stream(300)
    part = learned(X + 1000.0, y, np.arange(300), C=5.0)
    other = type(part).from_bytes(part.to_bytes())
    other.learn_many(3.0 * X + 1000.0, y, ids=np.arange(300, 600))
    merged = merge([part, other])
    assert len(np.unique(merged.support_ids)) == merged.n_support


def test_one_model_is_its_finished_copy():
    X, y = stream()
    part = learned(X, y, np.arange(900))
    merged = merge([part])
    part.finish()
    assert agreement(merged, part.decision_function_many(X), X) > 0.99


def test_models_that_learned_nothing_or_one_class():
    assert merge([LASVM(), LASVM()]).n_members == 0
    X, y = stream(200)
    parts = [learned(X[own], y[own], np.flatnonzero(own)) for own in (y, ~y)]
    assert np.mean(merge([*parts, LASVM(**FIXED)]).predict_many(X) == y) > 0.9


def test_ids_of_two_examples_are_refused_or_given_anew():
    X, y = stream(400)
    parts = [learned(X[:200], y[:200], None), learned(X[200:], y[200:], None)]
    with pytest.raises(ValueError, match=r"names different examples of two models.*renumber=True"):
        merge(parts)
    merged = merge(parts, renumber=True)
    assert len(np.unique(merged.support_ids)) == merged.n_support
    assert np.mean(merged.predict_many(X) == y) > 0.85


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([], ValueError, "at least one model"),
        ([LASVM(C=1.0), LASVM(C=2.0)], ValueError, r"C=1\.0 and C=2\.0"),
        ([LASVM(kernel="linear"), LASVM()], ValueError, "kernel='linear' and kernel='rbf'"),
        ([LASVM(), LASVMG()], TypeError, "LASVM and LASVMG cannot be merged"),
        ([LASVM(), 3], TypeError, "int cannot be merged"),
    ],
)
def test_models_that_do_not_fit_are_refused(models, error, message):
    with pytest.raises(error, match=message):
        merge(models)


def test_caches_may_differ():
    assert merge([LASVM(cache_mb=1.0), LASVM(cache_mb=2.0)]).cache_mb == 1.0


def test_the_budget_holds():
    X, y = stream()
    parts = parts_of(X, y, budget=40, **FIXED)
    merged = merge(parts)
    assert merged.n_members <= 40
    assert np.mean(merged.predict_many(X) == y) > 0.7


def test_ages_count_back_from_the_newest_example_of_each_model():
    X, y = stream()
    parts = [learned(X[own], y[own], own, window=100, **FIXED) for own in (np.arange(300), np.arange(300, 900))]
    young = set(range(200, 300)) | set(range(800, 900))
    merged = merge(parts)
    assert set(merged.support_ids.tolist()) <= young
    merged.learn_many(X[:60], y[:60], ids=np.arange(1000, 1060))
    assert set(merged.support_ids.tolist()) <= set(range(260, 300)) | set(range(860, 900)) | set(range(1000, 1060))


def test_what_is_too_old_beside_the_newest_model_stays_behind():
    X, y = stream(200)
    begin, hour = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(hours=1)
    parts = [LASVM(window=10 * hour, **FIXED) for _ in range(2)]
    parts[0].learn_many(X[:100], y[:100], ids=np.arange(100), t=begin)
    parts[1].learn_many(X[100:], y[100:], ids=np.arange(100, 200), t=begin + 20 * hour)
    assert min(merge(parts).support_ids) >= 100


def test_pooled_reservoirs_are_one_sample_of_both_streams():
    def noted(size, first, n):
        reservoir = Reservoir(size)
        ones = from_rows(np.arange(n + 1), np.zeros(n, np.int64), np.ones(n))
        reservoir.note_block(0, np.arange(first, first + n), *[np.arange(n)] * 2, np.zeros(n), np.ones(n), ones)
        return reservoir

    parts = [noted(200, 0, 5000), noted(200, 5000, 500), noted(200, 6000, 20)]
    pooled = Reservoir(200)
    pooled.pool(parts, pooled_samples([part.sample() for part in parts]), 5520)
    counts = [sum(low <= example.id < high for example in pooled) for low, high in ((0, 5000), (5000, 5500))]
    assert 80 <= sum(counts) <= 100
    assert counts[1] <= 25  # of 100, about a tenth
