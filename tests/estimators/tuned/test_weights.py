"""Weights of the features as a candidate of the learner that tunes itself."""

import copy
import json

import naive
import numpy as np
import pytest

from streamsvm import AutoLASVM, OneVsRest, SnapshotError
from streamsvm.core import storage
from streamsvm.core.saving import snapshot
from streamsvm.estimators.tuned import weights
from streamsvm.estimators.tuned.tuner import Tuner
from streamsvm.estimators.tuned.tuning import CHECK, DRIFTS, Candidate, Setting
from streamsvm.export import describe

N, NAMES = 5000, "abcdefghij"


def problem(n=N):
    """One of ten features decides, by a rule that bends often."""
    X = np.random.default_rng(0).normal(size=(n, 10))
    y = np.sin(2.0 * X[:, 0]) > 0.0
    X[:, 1] = 300.0 + 50.0 * X[:, 1]
    return [dict(zip(NAMES, x, strict=True)) for x in X.tolist()], y


def new():
    return AutoLASVM(budget=60, on_budget="merge")


@pytest.fixture(scope="module")
def taught():
    """A model whose champion has weights; copy it before it learns."""
    model = new()
    model.learn_many(*problem())
    assert model.champion_.weights > 0
    return model


def test_the_feature_that_decides_counts_most(taught):
    found = taught.feature_weights_
    assert found.pop("a") == 1.0
    assert 0.0 < max(found.values()) < 0.5
    _, factor = taught.scale_of("b")
    assert factor == pytest.approx(found["b"] * taught._common.scale.of(1)[1])
    assert new().feature_weights_ == {}


def test_weights_are_tried_before_other_settings():
    champion = Setting(1.0, 0.25)
    for drifts in (False, True):
        first = champion._replace(gamma=1.0, weights=1)
        assert champion.neighbours(drifts, weighs=True) == [first, *champion.neighbours(drifts)]
    weighed = champion._replace(weights=2)
    first, *_, last = weighed.neighbours(drifts=True, weighs=True)
    assert (first, last) == (champion._replace(weights=3), champion)


@pytest.mark.parametrize("promotions", [0, DRIFTS])
def test_a_fresh_challenger_has_no_weights_until_they_have_outlasted_drift(promotions):
    tuner = Tuner({0: Candidate(Setting(1.0, 4.0, weights=2))}, warming_up=False, next_number=1)
    tuner.fresh.promotions = promotions
    tuner = tuner.checked(CHECK, {0: 100})
    assert tuner.candidates[tuner.fresh.number].setting == Setting(1.0, 4.0, weights=2 if promotions else 0)


def test_gamma_grows_as_the_largest_weight_shrinks_distances(taught):
    """In the mean, distances are as large as without weights."""
    state = taught._models[taught._tuner.champion]
    setting, unit = taught.champion_, taught._common.kernel.gamma
    w = np.array([state.scale.weight_of(d) for d in range(10)])
    assert state.kernel.gamma * np.square(w).mean() == pytest.approx(unit * setting.gamma, rel=1e-2)


def test_a_loop_and_batches_give_the_same_model(taught):
    X, y = problem()
    model = new()
    for begin, end in ((0, 1), (1, 977), (977, 4800), (4900, N)):
        model.learn_many(X[begin:end], y[begin:end])
        if end == 4800:
            assert model.champion_.weights
            for x, label in zip(X[4800:4900], y[4800:4900], strict=True):
                model.learn_one(x, label)
    assert model.digest() == taught.digest()


def test_new_features_and_gaps_come_to_a_loop_as_to_a_batch(taught):
    X, y = problem(150)
    rows = [
        {k: v for k, v in x.items() if k != NAMES[t % 13 % 10]} | ({"late": float(t)} if t > 60 else {})
        for t, x in enumerate(X)
    ]
    loop, batch = copy.deepcopy(taught), copy.deepcopy(taught)
    values = []
    for x, label in zip(rows, y, strict=True):
        values.append(loop.decision_function_one(x))
        loop.learn_one(x, label)
    for t in range(0, 150, 10):
        assert batch.decision_function_one(rows[t]) == values[t]
        batch.learn_many(rows[t : t + 10], y[t : t + 10])
    assert loop.digest() == batch.digest()
    assert loop.feature_weights_["late"] == 1.0


def test_a_saved_model_goes_on(taught):
    X, y = problem(700)
    model, loaded = copy.deepcopy(taught), AutoLASVM.from_bytes(taught.to_bytes())
    assert loaded.digest() == model.digest()
    assert loaded.feature_weights_ == model.feature_weights_
    for own in (model, loaded):
        own.learn_many(X, y)
    assert loaded.digest() == model.digest()


def test_values_slopes_and_exports_are_those_of_weighed_features(taught):
    told = describe(taught)
    for x in problem(20)[0]:
        value = naive.decision_value(taught, naive.scaled_example(taught, x))
        assert taught.decision_function_one(x) == pytest.approx(value, rel=1e-4, abs=1e-4)
        z = np.clip((np.array(list(x.values())) - told.shift) * told.factor, -told.limit, told.limit)
        k = np.exp(-told.gamma * np.square(told.members.toarray() - z).sum(axis=1))
        assert told.coefficients @ k + told.bias == pytest.approx(value, rel=1e-4, abs=1e-4)
        why, side = taught.explain_one(x), 1.0 if value > 0.0 else -1.0
        for name, slope, change in why.features:
            step = 1e-3 / taught._common.scale.of(NAMES.index(name))[1]
            above, below = (
                naive.decision_value(taught, naive.scaled_example(taught, x | {name: x[name] + sign * step}))
                for sign in (1.0, -1.0)
            )
            assert slope == pytest.approx(side * (above - below) / 2e-3, rel=1e-2, abs=1e-2)
            assert slope * change * 1e-3 / step == pytest.approx(-why.margin)


def test_weights_are_the_mean_slopes_of_the_model(taught):
    """The twin: differences of f at the members of the sample."""
    state = taught._models[taught._tuner.champion]
    s, scale, h = state.expansion, taught._common.scale, 1e-4
    slots = storage.live_slots(s)
    members = storage.rows_of(s, slots, 10).toarray().astype(float)
    w = np.array([state.scale.weight_of(d) for d in range(10)])

    def f(Z):
        return naive.gram(state.kernel, Z, members) @ s.alpha[slots]

    squares = [np.mean(((f(members + h * w * e) - f(members - h * w * e)) / (2.0 * h)) ** 2) for e in np.eye(10)]
    expected = np.sqrt((1.0 - weights.EQUAL) * np.array(squares) / np.mean(squares) + weights.EQUAL)
    found = weights.slope_weights(state)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3)
    again = weights.learned_scale(scale, state)
    assert again.weight_of(0) == 1.0


def test_forgotten_examples_leave_all_models(taught):
    model = copy.deepcopy(taught)
    ids = model.support_ids[:3]
    assert model.forget(ids) == 3
    assert not np.isin(ids, model.support_ids).any()
    model.relabel(model.support_ids[:2], True)
    model.finish()
    assert AutoLASVM.from_bytes(model.to_bytes()).digest() == model.digest()


@pytest.mark.long
def test_several_classes_share_a_scale_without_weights():
    X, y = problem()
    model = OneVsRest(new())
    model.learn_many(X, y.astype(int))
    assert {setting.weights for setting in model.champions_.values()} == {0}


def test_spoiled_weights_are_refused(taught):
    meta, arrays = snapshot.unpack(taught.to_bytes(), "AutoLASVM")
    name = next(name for name in arrays if name.endswith(".weights"))
    for wrong in (arrays[name] * 1e5, np.zeros(10), np.ones(11), np.ones(10, np.float32)):
        with pytest.raises(SnapshotError):
            AutoLASVM.from_bytes(snapshot.pack("AutoLASVM", meta, arrays | {name: wrong}))
    before = json.loads(json.dumps(meta["tuner"]).replace(', "weights": 0', ""))
    assert (
        AutoLASVM.from_bytes(snapshot.pack("AutoLASVM", meta | {"tuner": before}, arrays)).digest() == taught.digest()
    )
