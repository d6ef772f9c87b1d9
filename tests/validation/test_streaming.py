"""Estimates of the running model's error: what they are of, that they are right, and what they may cost."""

import copy
import datetime
import itertools
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsRest, WarmupScaler
from streamsvm.core.saving.snapshot import SnapshotError
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.validation import (
    Estimate,
    Interval,
    StreamingKFold,
    StreamingLOO,
    cross_validate,
    leave_one_out,
    streaming,
)
from streamsvm.validation.streaming.memory import Example, Memory

LEARNERS = [LASVM, LASVMG, LASVMI, LASVMNC, FullSVM]
WRAPPERS = [StreamingLOO, StreamingKFold]


def noisy(n=120, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    return X, X[:, 0] + X[:, -1] ** 2 + 0.4 * rng.normal(size=n) > 0.7


def flipping(n, seed=0):
    """A stream whose concept is the other way round in its second half."""
    X, y = noisy(n, seed)
    y[n // 2 :] = ~y[n // 2 :]
    return X, y


def taught(wrapper=StreamingLOO, learner=LASVM, n=150, tol=1e-6, seed=0, **parameters):
    X, y = noisy(n, seed)
    estimate = wrapper(learner(C=5.0, gamma=0.3), **{"share": 0, "memory": n} | parameters)
    estimate.learn_many(X, y)
    if tol:
        estimate.model.finish(tol)
    return estimate, X, y


def brute_force(model, X, y):
    """Decision values of the examples, each by a copy that has forgotten it."""
    f = np.empty(len(X))
    for i in range(len(X)):
        rest = copy.copy(model)
        rest.forget(i)
        f[i] = rest.decision_function_many(X[i : i + 1])[0]
    return f


def few(loo, removals):
    """The smallest estimate, if it leaves out so many support vectors."""
    with mock.patch.object(streaming.loo, "FEWEST_REMOVED", removals):
        return loo.estimate(seconds=0.0)


# ------------------------------------------------------------------------------------------------------- leave-one-out


@pytest.mark.parametrize("learner", LEARNERS[1:])  # LASVM drops what the others keep, see below
def test_run_to_the_end_it_is_the_error_of_models_that_have_forgotten(learner):
    loo, X, y = taught(learner=learner)
    f = brute_force(loo.model, X, y)
    estimate = loo.estimate()
    assert estimate.n_undecided == 0
    assert 0 < estimate.n_removed < estimate.n == 150
    assert abs(estimate.error.value - np.mean((f > 0) != y)) <= 2 / 150  # others may take an example's place
    assert estimate.error.low == estimate.error.value == estimate.error.high
    assert estimate.g_mean.low == estimate.g_mean.value == estimate.g_mean.high
    assert estimate.prbep.low <= estimate.prbep.value <= estimate.prbep.high


def test_of_a_model_that_heeds_all_examples_it_is_batch_leave_one_out():
    loo, X, y = taught(n=200)
    for _ in range(20):
        loo.model.learn_many(X, y, ids=np.arange(len(X)))
        loo.model.finish(1e-6)
    batch = leave_one_out(LASVM(C=5.0, gamma=0.3, tol=1e-6), X, y)
    estimate = loo.estimate()
    assert estimate.error.value == pytest.approx(1.0 - batch.accuracy)
    assert estimate.g_mean.value == pytest.approx(batch.g_mean)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(LEARNERS),
    st.sampled_from([1e-5, None]),
    st.sampled_from([0, 1, 7, 30]),
)
def test_the_interval_covers_what_was_not_decided(seed, learner, tol, removals):
    loo, _, _ = taught(learner=learner, n=80, tol=tol, seed=seed)
    some, everything = few(loo, removals), loo.estimate()
    assert some.n_removed <= removals
    assert some.n_removed + some.n_undecided == everything.n_removed
    for name in ("error", "g_mean", "prbep"):
        value, low, high = getattr(some, name)
        whole = getattr(everything, name)
        assert low <= value <= high
        assert low - 1e-9 <= whole.low
        assert whole.high <= high + 1e-9


@pytest.mark.parametrize("keep", ["recent", "sample"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_example_with_a_known_id_replaces_what_is_remembered(wrapper, keep):
    """In the memory as in the model: otherwise the margin of one example would be tested with the label of another."""
    X, y = noisy(300)
    estimate = wrapper(FullSVM(C=5.0, gamma=0.3), share=0, memory=50, keep=keep)
    ids = np.random.default_rng(0).integers(0, 60, 300)
    for t, x in enumerate(X):
        estimate.learn_one(dict(enumerate(x)), bool(y[t]), id=int(ids[t]))
    assert len(set(estimate._memory.ids)) == len(estimate._memory) == 50
    last = {number: t for t, number in enumerate(ids.tolist())}
    for number, example in zip(estimate._memory.ids, estimate._memory.of(estimate._memory.ids), strict=True):
        assert (*example.x.values(), example.y) == (*X[last[number]], y[last[number]])
    found = estimate.estimate().error
    if wrapper is StreamingLOO:
        assert found.low <= found.value <= found.high


def test_examples_without_ids_are_remembered_by_the_models_numbers():
    X, y = noisy(30)
    loo = StreamingLOO(FullSVM(), share=0)
    loo.learn_many(X[:10], y[:10], ids=np.arange(10) + 100)
    loo.learn_many(X[10:20], y[10:20])
    loo.learn_one(dict(enumerate(X[20])), bool(y[20]))
    assert loo._memory.ids == list(range(100, 121))
    assert loo.forget(np.array(120)) == 1
    assert loo.relabel([119], [not y[19]]) == 1
    assert loo._memory.ids == list(range(100, 120))
    with pytest.raises(ValueError, match="ids=b'd'"):
        loo.forget(b"d")
    assert loo._memory.ids == list(range(100, 120))


def test_the_estimate_is_unbiased_over_the_order_of_removals():
    loo, _, _ = taught(n=200)
    whole = loo.estimate().error.value
    some = [few(loo, 8).error.value for _ in range(60)]
    assert np.std(some) > 0.0
    assert np.mean(some) == pytest.approx(whole, abs=3.0 * np.std(some) / np.sqrt(60))


def test_a_bad_guess_does_not_bias_it():
    loo, _, _ = taught(n=200)
    whole, some = loo.estimate().error.value, []
    for turn in range(60):
        loo._slope = (0.0, 1e9)[turn % 2]  # what the guesses go by
        loo._surprises.clear()
        some.append(few(loo, 8).error.value)
    assert np.mean(some) == pytest.approx(whole, abs=3.0 * np.std(some) / np.sqrt(60))


def test_nothing_but_a_look_where_no_example_is_a_support_vector():
    loo, _, _ = taught(n=100, memory=10)
    far = np.array([[9.0, 0.0, 3.0], [-9.0, 0.0, 0.0]] * 5)
    margins = loo.model.decision_function_many(far)
    loo.learn_many(far, margins > 0.0)
    estimate = loo.estimate()
    assert (estimate.n, estimate.n_removed, estimate.n_undecided) == (10, 0, 0)


# -------------------------------------------------------------------------------------------------------------- k folds


@pytest.mark.parametrize("learner", LEARNERS[1:])
def test_folds_are_predicted_by_models_that_have_forgotten_them(learner):
    folds, X, y = taught(StreamingKFold, learner, k=4)
    fold_of = np.array([folds.fold_of(i) for i in range(len(X))])
    wrong = np.zeros(len(X), bool)
    for fold in range(4):
        rest = copy.copy(folds.model)
        rest.forget(np.flatnonzero(fold_of == fold))
        wrong[fold_of == fold] = ((rest.decision_function_many(X) > 0.0) != y)[fold_of == fold]
    estimate = folds.estimate()
    assert estimate.n == 150
    assert estimate.error.value == pytest.approx(wrong.mean(), abs=0.015)
    expected = [wrong[fold_of == fold].mean() for fold in range(4)]
    assert np.allclose(list(folds.fold_errors.values()), expected, atol=0.03)


def test_the_smallest_estimate_tests_some_folds_and_the_next_one_the_others():
    folds, X, _ = taught(StreamingKFold, n=400, k=8)
    sizes = np.bincount([folds.fold_of(i) for i in range(len(X))])
    assert folds.estimate(seconds=0.0).n == sizes[:2].sum(), "a quarter of 400 examples"
    assert folds.estimate(seconds=0.0).n == sizes[:4].sum()
    assert list(folds.fold_errors) == [0, 1, 2, 3]
    assert folds.estimate().n == 400


def test_folds_are_even_and_the_same_for_ever():
    folds = StreamingKFold(LASVM(), k=10)
    counts = np.bincount([folds.fold_of(i) for i in range(10_000)], minlength=10)
    assert counts.min() > 850
    assert [folds.fold_of(i) for i in (0, 1, -1, 2**63 - 1)] == [5, 5, 6, 9]
    other = StreamingKFold(LASVM(), k=10, seed=1)
    assert [other.fold_of(i) for i in range(20)] != [folds.fold_of(i) for i in range(20)]


def test_folds_are_too_high_by_little():
    folds, _, _ = taught(StreamingKFold, n=400, k=5)
    loo, _, _ = taught(n=400)
    estimate = folds.estimate()
    assert abs(estimate.error.value - loo.estimate().error.value) < 0.03
    assert 0.5 < estimate.g_mean.value < 1.0
    assert 0.5 < estimate.prbep.value < 1.0


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_both_wrappers_estimates_are_read_alike(wrapper):
    estimate, _, _ = taught(wrapper, n=200)
    made = estimate.estimate()
    assert estimate.latest is made
    assert type(made) is Estimate
    assert made.seconds > 0.0
    said = f"error {made.error}, g-mean {made.g_mean}, PRBEP {made.prbep}; 200 examples tested after 200 learned"
    assert str(made) == said
    assert str(Interval(0.1, 0.1, 0.1)) == "10.0%"
    assert str(Interval(0.1, 0.05, 0.2)) == "10.0% (5.0% to 20.0%)"
    for interval in (made.error, made.g_mean, made.prbep):
        assert 0.0 <= interval.low <= interval.value <= interval.high <= 1.0


@pytest.mark.parametrize("learner", [LASVM, LASVMG, LASVMI])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_after_drift_the_estimate_is_of_the_model_that_predicts(wrapper, learner):
    """Without a window, the reservoir has examples of the old concept, and `finish` would bring them back."""
    estimate = wrapper(learner(C=5.0, gamma=0.3), share=0, memory=300)
    estimate.learn_many(*flipping(2000))
    X, y = (new[2000:] for new in flipping(4000, 1))
    finished = copy.copy(estimate.model)
    finished.finish(0.1)
    true, other = (np.mean(model.predict_many(X) != y) for model in (estimate, finished))
    assert abs(estimate.estimate().error.value - true) < 0.05
    assert other > true + 0.15, "the stream tells the two models apart"


# ------------------------------------------------------------------------------------------------------- what they cost


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_stream_that_is_learned_again_has_the_same_estimates(wrapper):
    """Also in other batches, and from a snapshot that is taken on the way: no clock and no cache decides."""
    X, y = noisy(900)
    whole = wrapper(LASVM(C=5.0, gamma=0.3), every=100, memory=80, share=20.0)
    again = wrapper(LASVM(C=5.0, gamma=0.3), every=100, memory=80, share=20.0)
    for x, label in zip(X, y, strict=True):
        whole.learn_one(dict(enumerate(x.tolist())), label)
        if whole._since == 0:
            part = slice(again.model.n_seen, whole.model.n_seen)
            again = wrapper.from_bytes(again.to_bytes(), LASVM.from_bytes(again.model.to_bytes()))
            before = again.latest
            again.learn_many(X[part], y[part])
            assert again.latest is not before
            assert again.latest._replace(seconds=0.0) == whole.latest._replace(seconds=0.0)
    assert whole._n_turns >= 5


def test_more_is_left_out_where_more_is_allowed():
    X, y = noisy(400)
    loos = [StreamingLOO(LASVM(C=5.0, gamma=0.3), every=400, share=share) for share in (1e-9, 3.0, 1e9)]
    for loo in loos:
        loo.learn_many(X, y)
    removed = [loo.latest.n_removed for loo in loos]
    assert removed[0] == streaming.loo.FEWEST_REMOVED < removed[1] < removed[2]
    assert [loo.latest.n_undecided for loo in loos] == [removed[2] - n for n in removed]
    assert loos[1].estimate(seconds=1e9).n_undecided == 0


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_estimate_that_costs_more_than_learning_waits(wrapper):
    X, y = noisy(1200)
    often = wrapper(FullSVM(C=5.0, gamma=0.3), every=10, memory=100, share=1e-9)
    places, work = [], []
    for x, label in zip(X, y, strict=True):
        before = often._work
        often.learn_one(dict(enumerate(x.tolist())), label)
        if often._since == 0:
            places.append(often.model.n_seen)
            work.append((often._smallest, before + streaming.cost.of_learning(1, often.model.n_members)))
    assert places[0] == 10, "the first one does not wait"
    assert all(previous <= learned for (previous, _), (_, learned) in itertools.pairwise(work))
    assert np.diff(places).min() > 10
    assert len(places) > 3


@pytest.mark.parametrize("keep", ["recent", "sample"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_flip_of_the_concept_is_seen_within_a_few_hundred_examples(wrapper, keep, seed):
    X, y = flipping(3000, seed)
    window = {} if keep == "recent" else {"window": 500}
    estimate = wrapper(LASVM(C=5.0, gamma=0.3, **window), every=250, memory=300, keep=keep, share=2.0)
    seen = {}
    for x, label in zip(X, y, strict=True):
        estimate.learn_one(dict(enumerate(x.tolist())), label)
        if estimate.latest is not None:
            seen[estimate.latest.n_seen] = estimate.latest.error.value
    before = [error for n, error in seen.items() if 500 <= n <= 1500]
    after = [error for n, error in seen.items() if 1500 < n <= 2250]
    assert len(seen) >= 6, "one for 250 examples, unless learning costs less than the smallest estimate"
    assert max(before) + 0.05 < max(after)


def test_estimates_are_made_along_the_stream_and_only_then():
    X, y = noisy(100)
    loo = StreamingLOO(LASVM(), every=30, share=1e9)
    seen = []
    for x, label in zip(X, y, strict=True):
        loo.learn_one(dict(enumerate(x.tolist())), label)
        seen.append(loo.latest.n_seen if loo.latest else 0)
    assert sorted(set(seen)) == [0, 30, 60, 90]
    idle, _, _ = taught(share=0)
    assert idle.latest is None


# ---------------------------------------------------------------------------------------------------- a model's wrapper


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_model_learns_as_it_would_alone(wrapper):
    X, y = noisy(300)
    alone, wrapped = LASVM(C=5.0, gamma=0.3), wrapper(LASVM(C=5.0, gamma=0.3), every=20, share=1e9)
    for model in (alone, wrapped):
        for i in range(0, 300, 50):
            model.learn_many(X[i : i + 50], y[i : i + 50])
    assert wrapped.latest is not None
    assert wrapped.model.digest() == alone.digest()
    x = dict(enumerate(X[0].tolist()))
    assert wrapped.predict_one(x) == alone.predict_one(x)
    assert wrapped.predict_proba_one(x) == alone.predict_proba_one(x)
    assert (wrapped.predict_many(X) == alone.predict_many(X)).all()
    assert (wrapped.predict_proba_many(X) == alone.predict_proba_many(X)).all()


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_batches_of_all_kinds_are_remembered_alike(wrapper):
    X, y = noisy(40)
    X[np.abs(X) < 0.5] = 0.0
    as_rows = [dict(enumerate(x)) for x in X.tolist()]
    estimates = []
    for batch in (X, as_rows, sp.csr_matrix(X), pd.DataFrame(X)):
        estimate = wrapper(LASVM(C=5.0, gamma=0.3), share=0, **({"k": 2} if wrapper is StreamingKFold else {}))
        estimate.learn_many(batch, pd.Series(y) if isinstance(batch, pd.DataFrame) else y)
        estimates.append(estimate.estimate().error)
    assert estimates.count(estimates[0]) == 4


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, pd.DataFrame])
def test_of_a_large_batch_few_rows_become_dicts(wrapper, kind):
    X, y = noisy(2000, d=100)
    estimate = wrapper(LASVM(budget=10), memory=10, share=0)
    estimate.learn_many(kind(X[:20]), y[:20])
    X = kind(X)
    with mock.patch.object(NamedRows, "__getitem__", autospec=True, side_effect=NamedRows.__getitem__) as row:
        estimate.learn_many(X, y)
    assert row.call_count == 10
    assert estimate._memory.ids == list(range(2010, 2020))


def test_examples_without_weight_are_not_remembered():
    X, y = noisy(20)
    loo = StreamingLOO(LASVM(), share=0)
    loo.learn_many(X, y, w=np.arange(20) % 2)
    assert loo.estimate().n == 10


def test_entries_of_one_place_add_up_as_in_the_model():
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    loo = StreamingLOO(LASVM(), share=0)
    loo.learn_many(X, [True, False])
    assert [e.x for e in loo._memory.of([0, 1])] == [{0: 3.0}, {1: 5.0}]
    assert X.nnz == 3


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_learning_goes_on_while_there_is_nothing_to_estimate_with(wrapper):
    estimate = wrapper(LASVM(), every=1, share=1e9)
    estimate.learn_one({"a": 1.0}, True, w=0.0)
    assert estimate.latest is None
    estimate.learn_one({"a": 1.0}, True)
    estimate.forget([1])
    estimate.learn_many([{"a": 1.0}], [True], w=0.0)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_forgetting_and_correcting_reach_the_memory(wrapper):
    estimate, _, y = taught(wrapper, memory=150, **({"k": 2} if wrapper is StreamingKFold else {}))
    some = estimate.model.support_ids[:3].tolist()
    assert estimate.forget(some) == 3
    assert not set(some) & set(estimate.model.support_ids.tolist())
    assert estimate.forget(some[0]) == 0
    other = int(estimate.model.support_ids[0])
    assert estimate.relabel(other, not y[other]) == 1
    assert len(estimate._memory) == 147
    assert estimate._memory.of([other])[0].y == (not y[other])
    estimate.estimate()


@pytest.mark.parametrize("keep", ["recent", "sample"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_has_left_the_window_is_not_scored(wrapper, keep):
    X, y = flipping(700)
    estimate = wrapper(LASVM(C=5.0, gamma=0.3, window=200), memory=500, share=0, keep=keep)
    estimate.learn_many(X[:600], y[:600])
    estimate.estimate()  # of folds, of which the next examples leave the first ones behind
    for i in range(600, 700):
        estimate.learn_one(dict(enumerate(X[i])), bool(y[i]))
    made = estimate.estimate()
    assert min(estimate._memory.ids) > 700 - 1 - 200
    assert (100 if keep == "recent" else 40) < made.n <= 200
    error = made.error.value
    new, truth = flipping(4000, 1)
    true = np.mean(estimate.predict_many(new[2000:]) != truth[2000:])
    assert abs(error - true) < 0.08


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_window_may_be_one_of_time(wrapper):
    X, y = noisy(60)
    hours = np.datetime64("2026-01-01") + np.arange(60).astype("timedelta64[h]")
    model = LASVM(C=5.0, gamma=0.3, window=datetime.timedelta(hours=20))
    estimate = wrapper(model, memory=50, share=0)
    estimate.learn_many(X[:50], y[:50], t=hours[:50])
    assert estimate._memory.ids == list(range(30, 50))
    for i in range(50, 55):
        estimate.learn_one(dict(enumerate(X[i])), bool(y[i]), t=hours[i])
    assert estimate._memory.ids == list(range(35, 55))
    again = wrapper.from_bytes(estimate.to_bytes(), copy.copy(model))
    again.learn_one(dict(enumerate(X[55])), bool(y[55]), t=hours[55])
    assert again._memory.ids == list(range(36, 56))
    estimate.learn_one({0: 1.0}, True, t=hours[0] + np.timedelta64(900, "h"))
    assert estimate._memory.ids == [55]


def test_folds_that_were_scored_forget_and_are_corrected():
    folds, _, y = taught(StreamingKFold, k=3)
    assert folds.estimate().n == 150
    wrong = [number for number, example in folds._memory.tested() if example.margin < 0.0]
    assert len(wrong) > 3
    folds.forget(wrong[:2])
    folds.relabel({wrong[2]}, not y[wrong[2]])
    after = folds._over_all_folds()
    assert after.n == 148
    assert round(after.error.value * after.n) == len(wrong) - 3


def test_nothing_is_left_when_the_window_is_empty():
    loo = StreamingLOO(LASVM(window=datetime.timedelta(hours=1)), share=0)
    loo.learn_one({"a": 1.0}, True, t=np.datetime64("2026-01-01"))
    loo.learn_one({"a": 1.0}, True, w=0.0, t=np.datetime64("2026-01-02"))
    with pytest.raises(ValueError, match="left the model's window"):
        loo.estimate()


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_snapshot_goes_on_as_the_estimate_would(wrapper):
    estimate, _, _ = taught(wrapper, memory=60, keep="sample", seed=3)
    estimate.estimate()
    twin = wrapper.from_bytes(estimate.to_bytes(), LASVM.from_bytes(estimate.model.to_bytes()))
    assert twin.to_bytes() == estimate.to_bytes()
    assert twin.latest._replace(seconds=0.0) == estimate.latest._replace(seconds=0.0)
    new, labels = noisy(50, 9)
    for each in (estimate, twin):
        each.learn_many(new, labels)
    assert twin._memory.ids == estimate._memory.ids
    a, b = estimate.estimate(), twin.estimate()
    assert (a.error, a.prbep, a.n_seen) == (b.error, b.prbep, b.n_seen)
    with pytest.raises(SnapshotError):
        wrapper.from_bytes(b"nothing", LASVM())


def test_a_snapshot_before_the_first_example_and_with_names():
    for wrapper in WRAPPERS:
        twin = wrapper.from_bytes(wrapper(LASVM()).to_bytes(), LASVM())
        assert twin.latest is None
        twin.learn_one({"a": 1.0, "b": 2.0}, True)
        again = wrapper.from_bytes(twin.to_bytes(), twin.model)
        (kept,) = again._memory.of([0])
        assert kept[:-1] == Example({"a": 1.0, "b": 2.0}, True, 1.0)[:-1]
        assert np.isnan(kept.margin)


def test_an_example_that_is_no_member_takes_the_place_of_one_that_is_left_out():
    """Without memory and reservoir, a finished LASVM has nothing to put in the place of a fold of support vectors."""
    folds, X, y = taught(StreamingKFold, n=400, k=5)
    forgetting = np.zeros(len(X), bool)
    fold_of = np.array([folds.fold_of(i) for i in range(len(X))])
    for fold in range(5):
        rest = copy.copy(folds.model)
        state_of(rest).reservoir = Reservoir(0)
        rest.forget(np.flatnonzero(fold_of == fold))
        forgetting[fold_of == fold] = ((rest.decision_function_many(X) > 0.0) != y)[fold_of == fold]
    remembering = folds.estimate().error.value
    retrained = 1.0 - cross_validate(LASVM(C=5.0, gamma=0.3), X, y, folds=fold_of).accuracy
    assert abs(remembering - retrained) < 0.01
    assert forgetting.mean() > retrained + 0.03


def test_it_takes_a_models_place_in_a_pipeline():
    X, y = noisy(300)
    loo = StreamingLOO(LASVM(C=5.0, gamma=0.3), every=100, share=1e9)
    pipeline = WarmupScaler() | loo
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        pipeline.learn_one(dict(enumerate(x)), label)
    assert loo.latest.n_seen == 300
    assert pipeline.predict_one(dict(enumerate(X[0].tolist()))) in (True, False)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_is_wrong_is_said_at_once(wrapper):
    for other in (WarmupScaler() | LASVM(), OneVsRest(AutoLASVM())):
        with pytest.raises(TypeError, match="it must be an online classifier such as"):
            wrapper(other)
    for parameters, message in (
        ({"every": 0}, "every=0"),
        ({"memory": 0}, "memory=0"),
        ({"keep": "all"}, "keep='all'"),
        ({"share": -0.1}, "share=-0.1"),
        ({"share": float("nan")}, "share=nan"),
    ):
        with pytest.raises(ValueError, match=message):
            wrapper(LASVM(), **parameters)
    for threshold in (0.5, "gmean"):
        with pytest.raises(ValueError, match=r"threshold=.* cannot be estimated"):
            wrapper(LASVM(threshold=threshold))
    with pytest.raises(ValueError, match="no example"):
        wrapper(LASVM()).estimate()


def test_one_fold_is_no_cross_validation():
    with pytest.raises(ValueError, match="k=1"):
        StreamingKFold(LASVM(), k=1)
    with pytest.raises(ValueError, match="at most 1000"):
        StreamingKFold(LASVM(), k=2**62)


# --------------------------------------------------------------------------------------------------------------- memory


def example(i):
    return Example({"a": float(i)}, i % 2 == 0, 1.0)


def test_the_recent_ones_are_the_last():
    memory = Memory(10, "recent", 0)
    for i in range(25):
        memory.add(i, example(i))
    assert memory.ids == list(range(15, 25))
    memory.add(20, example(1))
    assert memory.ids == [*range(15, 20), *range(21, 25), 20], "an id is kept once, where it came last"
    memory.drop(17)
    memory.drop(99)
    memory.add(25, example(25))
    memory.add(26, example(26))
    assert memory.ids == [16, 18, 19, 21, 22, 23, 24, 20, 25, 26]


def test_a_sample_is_uniform():
    counts = np.zeros(100)
    for seed in range(400):
        memory = Memory(10, "sample", seed)
        for i in range(100):
            memory.add(i, example(i))
        assert len(set(memory.ids)) == 10
        counts[memory.ids] += 1
    expected, deviation = 40.0, np.sqrt(400 * 0.1 * 0.9)
    assert abs((counts - expected) / deviation).max() < 4.5
    assert np.sum((counts - expected) ** 2) / deviation**2 < 150


def test_a_sample_stays_uniform_when_examples_are_forgotten():
    kept, alive = np.zeros(200), np.zeros(200)
    for seed in range(600):
        memory, rng, gone = Memory(20, "sample", seed), np.random.default_rng(seed), set()
        for i in range(200):
            memory.add(i, example(i))
            number = int(rng.integers(i + 1))
            if i % 3 == 2 and number not in gone:
                memory.drop(number)
                gone.add(number)
        kept[memory.ids] += 1
        alive += [i not in gone for i in range(200)]
    share = (kept / alive).reshape(4, 50).mean(axis=1)
    assert share.max() < 1.1 * share.min(), "by age"


def test_a_sample_of_a_window_is_uniform():
    """Of 400 examples in a window of 100 each of the last hundred is as likely to be among the 20 kept."""
    kept, sizes = np.zeros(400), []
    for seed in range(200):
        memory = Memory(20, "sample", seed)
        for i in range(400):
            memory.add(i, Example({"a": 1.0}, True, 1.0, i))
            memory.expire(i - 100)
        kept[memory.ids] += 1
        sizes.append(len(memory))
    assert kept[:300].sum() == 0
    quarters = kept[300:].reshape(4, 25).sum(axis=1) / kept.sum()
    assert np.abs(quarters - 0.25).max() < 0.06
    assert np.mean(sizes) > 12


def test_a_corrected_example_has_no_second_chance():
    """It is forgotten and learned anew: it is in the sample if it was, and else it is not."""
    memory = Memory(10, "sample", 0)
    for i in range(100):
        memory.add(i, example(i))
    before = memory.ids
    for i in range(100):
        memory.drop(i)
        memory.add(i, example(i + 1))
    assert sorted(memory.ids) == sorted(before)


@pytest.mark.parametrize("kind", [StreamingLOO, StreamingKFold])
def test_a_missing_value_is_remembered_as_missing(kind):
    estimate = kind(LASVM(), share=0)
    for i in range(60):
        estimate.learn_one({"a": float(i % 7), "b": None if i % 5 == 0 else float(i % 3)}, i % 7 > 3)
    again = kind.from_bytes(estimate.to_bytes(), estimate.model)
    assert again.estimate()[:-1] == estimate.estimate()[:-1]
