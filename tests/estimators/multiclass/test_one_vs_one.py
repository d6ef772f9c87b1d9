"""One-versus-one: each pair has the model it would have alone, and the pairs vote as those of SVC do."""

import datetime
import functools
import itertools

import four_classes
import naive
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from four_classes import ALONE, DATA, NAMES, OF_PAIRS, problem
from scipy.optimize import minimize
from sklearn.utils.multiclass import _ovr_decision_function
from states import binaries_of, state_of

from streamsvm import LASVM, AutoLASVM, OneVsOne, OneVsRest, SnapshotError
from streamsvm.core import storage
from streamsvm.core.expansion import WIDTH
from streamsvm.online.outputs.coupling import coupled, led_by

MODELS = OF_PAIRS
PAIRS = list(itertools.combinations(NAMES, 2))
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


together = functools.partial(four_classes.together, OneVsOne)


def alone(model, pair, X, y, w=None, **others):
    """The model of a pair, trained alone on the stream in which the other classes have no weight."""
    binary = model.clone()
    binary.learn_many(X, y == pair[0], w=np.isin(y, pair) * (np.ones(len(y)) if w is None else w), **others)
    return binary


def same(one, other):
    """Whether two binary models have the same members, coefficients and bias."""
    a, b = (storage.live_slots(state_of(m).expansion) for m in (one, other))
    return (
        np.array_equal(state_of(one).expansion.alpha[a], state_of(other).expansion.alpha[b])
        and np.array_equal(state_of(one).expansion.g[a], state_of(other).expansion.g[b])
        and one.bias == other.bias
        and np.array_equal(state_of(one).sigmoid, state_of(other).sigmoid)
    )


# --------------------------------------------------------------------------------------------- the models of the pairs


@every_model
@pytest.mark.parametrize("data", ["dense", "few features"])
def test_each_pair_has_the_model_that_it_would_have_alone(model, data):
    X, y = DATA[data]
    w = np.random.default_rng(6).choice([0.0, 1.0, 1.0, 2.0], len(X))
    ovo = together(model, X, y, w=w)
    assert ovo.pairs == PAIRS
    values = ovo.pair_values_many(X)
    for k, pair in enumerate(PAIRS):
        binary = alone(model, pair, X, y, w)
        assert same(binaries_of(ovo)[pair], binary)
        assert np.array_equal(values[:, k], binary.decision_function_many(X))


def wide_and_sparse(seed=1, n=900, d=4000):
    """Ten of 4000 words in each example, some of them of its class; later on new words, and counts."""
    rng = np.random.default_rng(seed)
    classes, X = rng.integers(4, size=n), np.zeros((n, d))
    for t in range(n):
        X[t, rng.integers(d // 2 if t < 200 else d, size=6)] = 1.0 if t < 300 else rng.integers(1, 4)
        X[t, 20 * classes[t] + rng.integers(20, size=4)] = 1.0
    return X, np.array(NAMES)[classes]


@pytest.mark.parametrize("cut", [None, 61])
def test_the_storage_of_a_pair_changes_while_pairs_learn_together(cut):
    """From bits to real values, to more columns, and to compressed rows."""
    X, y = wide_and_sparse()
    model = LASVM(**ALONE, C=10.0, gamma=0.02)
    ovo = together(model, sp.csr_matrix(X), y, cut)
    assert any(len(pair.expansion.sparse_values) for pair in ovo._models.values())
    for pair in PAIRS:
        assert same(binaries_of(ovo)[pair], alone(model, pair, sp.csr_matrix(X), y))


def test_a_window_of_time_is_that_of_the_whole_stream():
    X, y = DATA["few features"]
    model = LASVM(**ALONE, C=10.0, gamma=0.05, window=datetime.timedelta(seconds=200))
    seconds = np.arange(len(X)) - 60.0 * (np.arange(len(X)) % 9 == 0)  # some come late, some too late
    t = [datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=s) for s in seconds.tolist()]
    ovo = together(model, X, y, t=t)
    for pair in PAIRS:
        assert same(binaries_of(ovo)[pair], alone(model, pair, X, y, t=t))


def test_members_that_are_too_old_leave_pairs_whose_classes_no_longer_come():
    X, y = DATA["few features"]
    ovo = OneVsOne(LASVM(C=10.0, gamma=0.05, window=100), classes=NAMES)
    ovo.learn_many(X[:300], y[:300])
    assert len(ovo._members_of_class("gold")[0])
    two = np.isin(y, ["red", "blue"])
    ovo.learn_many(X[two][:120], y[two][:120])
    assert not len(ovo._members_of_class("gold")[0])
    assert not len(ovo._members_of_class("green")[0])
    assert binaries_of(ovo)[("green", "gold")].n_members == 0


def test_kernel_values_are_computed_once():
    X, y = problem(4, 2000, noise=1.2)
    ovo, others = together(MODELS["LASVM"], X, y), [alone(MODELS["LASVM"], pair, X, y) for pair in PAIRS]
    ovo.decision_function_many(X)
    for binary in others:
        binary.decision_function_many(X)
    assert ovo.kernel_evaluations < 0.7 * sum(binary.kernel_evaluations for binary in others)


def test_with_raw_features_the_pairs_share_a_scale():
    X, y = problem(11, 2000, 5)
    X = X * np.array([1.0, 100.0, 1e-3, 5.0, 1.0]) + 7.0
    whole, pieces = OneVsOne(LASVM()), OneVsOne(LASVM())
    whole.learn_many(X, y)
    for b in range(0, 2000, 333):
        pieces.learn_many(X[b : b + 333], y[b : b + 333])
    assert whole.digest() == pieces.digest()
    assert len({id(state.scale) for state in whole._models.values()}) == 1
    assert np.mean(whole.predict_many(X) == y) > 0.9


def test_a_pair_may_lack_a_feature_that_the_others_scale():
    """Its members have no room for the feature when all models are scaled."""
    rng = np.random.default_rng(0)
    ovo = OneVsOne(LASVM(C=10.0))
    for t in range(60):
        y = NAMES[t % 2] if t < 4 else NAMES[2]
        x = {"a": rng.normal() + (y == NAMES[1]), "b": rng.normal()} | ({"c": 3.0 + rng.normal()} if t >= 4 else {})
        ovo.learn_one(x, y)
    assert ovo.predict_one({"a": 0.0, "b": 0.0, "c": 3.0}) == NAMES[2]
    assert ovo.predict_one({"a": 0.0, "b": 0.0, "c": -1.0}) in NAMES[:2]


def test_a_pair_has_room_for_many_features_that_only_the_others_learn():
    """Each member then has a value for each of them: 0, shifted and scaled."""
    X, y = problem(11, 500, 5)
    X = X + 7.0
    ovo = OneVsOne(LASVM())
    ovo.learn_many(X[:300], y[:300])
    ovo.learn_many([{f"new {d}": v for d, v in enumerate(np.tile(x, 4))} for x in X[300:]], [y[0]] * 200)
    for state in ovo._models.values():
        s = state.expansion
        assert s.counts[WIDTH] == 25 <= len(s.member_indices)


# ---------------------------------------------------------------------------------------------------------- new classes


def test_the_first_pair_has_learned_its_first_class_from_the_beginning():
    X, y = DATA["dense"]
    order = np.argsort(y != "red", kind="stable")
    order = order[np.isin(y[order], ["red", "blue"])]
    X, y = X[order], y[order]
    ovo = OneVsOne(MODELS["LASVM"])
    ovo.learn_many(X[:50], y[:50])
    assert ovo.labels == ["red"]
    assert (ovo.predict_many(X) == "red").all()
    assert ovo.predict_proba_one(dict(enumerate(X[0]))) == {"red": 1.0}
    ovo.learn_many(X[50:], y[50:])
    assert same(binaries_of(ovo)[("red", "blue")], alone(MODELS["LASVM"], ("red", "blue"), X, y))


def test_a_class_that_appears_learns_its_example_and_then_the_members_of_the_others():
    X, y = DATA["dense"]
    later = np.argsort(y == "gold", kind="stable")
    X, y = X[later], y[later]
    t = int(np.argmax(y == "gold"))
    ovo = OneVsOne(MODELS["LASVM"])
    ovo.learn_many(X[:t], y[:t])
    red = ovo._members_of_class("red")[0]
    assert set(y[red]) == {"red"}
    ovo.learn_many(X[t:], y[t:])
    binary = MODELS["LASVM"].clone()
    binary.learn_one(dict(enumerate(X[t])), False, id=t)
    binary.learn_many(X[red], np.ones(len(red), bool), ids=red)
    binary.learn_many(X[t + 1 :], np.zeros(len(X) - t - 1, bool), ids=np.arange(t + 1, len(X)))
    assert np.array_equal(binaries_of(ovo)[("red", "gold")].dual_coef, binary.dual_coef)
    assert np.mean(ovo.predict_many(X) == y) > 0.95


def test_before_there_are_two_classes_there_are_no_pairs():
    ovo = OneVsOne(LASVM())
    assert ovo.pair_values_many(np.ones((2, 1))).shape == (2, 0)
    ovo.learn_one({"a": 1.0}, 7)
    assert ovo.pair_values_one({"a": 1.0}) == {}


# -------------------------------------------------------------------------------------------------------------- voting


def test_votes_and_decision_values_are_those_of_scikit_learn():
    """From the models' f(x); that these equal SVC's too is a test of `LASVMClassifier`."""
    X, y = problem(12, 500, 3, 1.0)
    ovo = together(MODELS["LASVM"], X, y)
    margins = ovo.pair_values_many(X)
    np.testing.assert_allclose(ovo.decision_function_many(X), _ovr_decision_function(margins < 0, -margins, 4))
    votes = np.zeros((500, 4))
    for k, (i, j) in enumerate(itertools.combinations(range(4), 2)):
        votes[np.arange(500), np.where(margins[:, k] > 0, i, j)] += 1
    assert (ovo.predict_many(X) == np.array(NAMES)[votes.argmax(axis=1)]).all()


def test_ties_go_to_the_first_class():
    ovo = OneVsOne(LASVM(), classes=["a", "b", "c"])
    margins = np.array([[1.0, -1.0, 1.0], [1.0, -1.0, 5.0], [-1.0, -1.0, 2.0]])  # a circle, another one, and b wins
    assert ovo._best(margins).tolist() == [0, 0, 1]
    assert ovo._values(margins).argmax(axis=1).tolist() == [0, 1, 1]  # a tie goes to the class with the larger sum


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_pairwise_coupling_is_the_twins_and_solves_its_equations(n_classes):
    rng = np.random.default_rng(n_classes)
    pairs = list(itertools.combinations(range(n_classes), 2))
    r = rng.random((50, len(pairs)))
    r[0] = np.round(r[0])  # certain pairs
    p = coupled(r, n_classes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0.0).all()
    for one, of_pairs in zip(p[1:], r[1:], strict=True):
        np.testing.assert_allclose(one, naive.coupled(of_pairs, n_classes), atol=1e-6)
    if n_classes == 2:
        np.testing.assert_allclose(p[:, 0], r[:, 0], atol=1e-6)


def test_consistent_pairs_give_their_probabilities():
    p = np.array([0.5, 0.3, 0.15, 0.05])
    r = np.array([p[i] / (p[i] + p[j]) for i, j in itertools.combinations(range(4), 2)])
    np.testing.assert_allclose(coupled(r[np.newaxis], 4)[0], p, atol=1e-7)


def test_probabilities_are_moved_to_the_nearest_of_which_the_given_class_has_the_largest():
    p = np.random.default_rng(3).dirichlet(np.ones(5), 200)
    best = np.arange(200) % 5
    found = led_by(best, p)
    np.testing.assert_array_equal(found.argmax(axis=1), best)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    for one, of_all, place in zip(found, p, best, strict=True):
        most = [{"type": "ineq", "fun": lambda q, k=k, place=place: q[place] - q[k]} for k in range(5)]
        whole = {"type": "eq", "fun": lambda q: q.sum() - 1.0}
        nearest = minimize(lambda q, of_all=of_all: ((q - of_all) ** 2).sum(), of_all, constraints=[whole, *most])
        np.testing.assert_allclose(one, nearest.x, atol=1e-4)
    already = p.argmax(axis=1) == best
    np.testing.assert_array_equal(found[already], p[already])


def test_one_is_predicted_as_many_are():
    X, y = DATA["dense"]
    ovo = together(MODELS["LASVM"], X, y)
    ovo.finish()
    values, p, pairs = ovo.decision_function_many(X), ovo.predict_proba_many(X), ovo.pair_values_many(X)
    predicted = ovo.predict_many(X)
    for t in range(20):
        x = dict(enumerate(X[t]))
        assert [*ovo.decision_function_one(x).values()] == values[t].tolist()
        assert [*ovo.predict_proba_one(x).values()] == p[t].tolist()
        assert [*ovo.pair_values_one(x).values()] == pairs[t].tolist()
        assert ovo.predict_one(x) == predicted[t]
    frame = ovo.predict_proba_many(pd.DataFrame(X))
    assert list(frame.columns) == NAMES


# ------------------------------------------------------------------------------------------------- afterwards


@every_model
def test_finish_and_forget_are_those_of_each_pair(model):
    X, y = DATA["dense"]
    ids = np.arange(len(X)) + 1000
    ovo = together(model, X, y, ids=ids)
    binaries = {pair: alone(model, pair, X, y, ids=ids) for pair in PAIRS}
    ovo.finish(1e-4)
    leaving, n_members = ovo.support_ids[::3], ovo.n_members
    assert ovo.dual_coef.shape == (6, ovo.n_support)
    assert len(ovo.bias) == 6
    assert ovo.forget([*leaving, 5]) == len(leaving)
    assert ovo.n_members == n_members - len(leaving)
    assert not np.isin(leaving, ovo.support_ids).any()
    for pair, binary in binaries.items():
        binary.finish(1e-4)
        binary.forget(leaving)
        assert np.array_equal(binary.dual_coef, binaries_of(ovo)[pair].dual_coef)


@pytest.mark.parametrize("name", ["LASVM", "G", "LASVM, window", "LASVM, budget"])
def test_a_label_is_corrected_in_every_pair(name):
    """By `relabel`, and by an example that comes again with another label."""
    X, y = DATA["dense"]
    ids = np.arange(len(X)) + 1000
    for again in (False, True):
        ovo = together(MODELS[name], X, y, ids=ids)
        chosen = ovo.support_ids[::5]
        right = {number: NAMES[(NAMES.index(y[number - 1000]) + 1) % 4] for number in chosen.tolist()}
        if again:
            ovo.learn_many(X[chosen - 1000], [*right.values()], ids=chosen)
        else:
            assert ovo.relabel([*chosen, 5], [*right.values(), "red"]) == len(chosen)
            assert ovo.n_seen == len(X)
        for pair, binary in ovo._models.items():
            s = binary.expansion
            live = storage.live_slots(s)
            for user_id, sign in zip(ovo._ids_of(s.ids[live]).tolist(), s.y[live].tolist(), strict=True):
                label = right.get(user_id, y[user_id - 1000])
                assert pair[0 if sign > 0 else 1] == label
        assert OneVsOne.from_bytes(ovo.to_bytes()).digest() == ovo.digest()


@pytest.mark.parametrize("cut", [1, 50])
def test_corrections_do_not_depend_on_how_a_stream_is_cut(cut):
    X, y = DATA["dense"]
    rng = np.random.default_rng(8)
    ids = rng.integers(0, 150, len(X))
    X, y = X[ids], y[ids]
    y = np.where(rng.random(len(y)) < 0.2, rng.choice(NAMES, len(y)), y)
    w = rng.choice([0.0, 1.0, 1.0, 2.0], len(X))
    whole, pieces = (together(MODELS["LASVM"], X, y, c, ids=ids, w=w) for c in (None, cut))
    assert whole.digest() == pieces.digest()
    numbers = whole._members()[0]
    assert len(np.unique(whole._ids_of(numbers))) == len(numbers)


def test_a_snapshot_of_one_class():
    ovo = OneVsOne(LASVM())
    ovo.learn_one({"a": 1.0}, "x")
    again = OneVsOne.from_bytes(ovo.to_bytes())
    for model in (ovo, again):
        model.learn_one({"a": -1.0}, "y")
    assert again.digest() == ovo.digest()
    with pytest.raises(SnapshotError, match="'OneVsOne' snapshot, expected 'OneVsRest'"):
        OneVsRest.from_bytes(ovo.to_bytes())


# --------------------------------------------------------------------------------------------------------------- errors


def test_models_that_have_no_meaning_for_pairs_are_refused():
    with pytest.raises(TypeError, match=r"Records\(\) \| OneVsOne\(LASVM\(\)\)"):
        OneVsOne(AutoLASVM())
    with pytest.raises(ValueError, match=r"pos_weight=2.0 has no use for pairs"):
        OneVsOne(LASVM(pos_weight=2.0))
