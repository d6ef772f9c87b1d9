"""Decision values of examples beside a model: those of the model as it is, whatever has happened to it."""

import numpy as np
import pytest
from naive import gram, kernel_of
from queries import queries
from states import state_of
from tight import noisy

from streamsvm import LASVM
from streamsvm.core import storage
from streamsvm.core.decision import Decision
from streamsvm.online.removal import tracked_values as module
from streamsvm.online.removal.tracked_values import Beside

KERNELS = [("rbf", {"gamma": 0.3}), ("poly", {"gamma": 0.3, "coef0": 1.0, "degree": 2}), ("linear", {"gamma": 1.0})]


def taught(X, y, **options):
    model = LASVM(C=5.0, reservoir=0, scaling=None, **options)
    model.learn_many(X, y)
    return model


def decide(s, kernel, q, b):
    return Decision(s, kernel, b).of_queries(q)


def beside_of(model, X):
    q = queries(model, X)
    return Beside(q, len(model.feature_names), kernel_of(model), decide)


def values(model, X):
    return model.decision_function_many(X) - model.bias


@pytest.mark.parametrize(("kernel", "parameters"), KERNELS)
@pytest.mark.parametrize("form", ["real", "binary", "sparse"])
@pytest.mark.parametrize("cache_mb", [0.01, 64.0])
def test_they_follow_a_model_that_forgets_and_learns(kernel, parameters, form, cache_mb):
    X, y = noisy(200)
    if form != "real":
        X = (X > 0.3).astype(float) * (1.0 if form == "binary" else np.abs(X))
    model = taught(X, y, kernel=kernel, cache_mb=cache_mb, **parameters)
    others = np.round(X[::2] + 1.0) if form == "binary" else X[::2] * 0.9
    beside, rng = beside_of(model, others), np.random.default_rng(0)
    for turn in range(12):
        beside.follow(state_of(model).expansion)
        before = storage.copy(state_of(model).expansion)
        model.forget(rng.choice(model.support_ids, 1 + turn % 3))
        beside.follow(state_of(model).expansion, before)
        assert np.abs(beside.f - values(model, others)).max() <= beside.doubt
        if turn % 5 == 2:
            model.learn_many(X[turn : turn + 3], y[turn : turn + 3], ids=range(turn, turn + 3))
        if turn % 5 == 4:
            model.finish()
    assert 0.0 < beside.doubt < 1e-4


def test_they_are_sums_over_the_members():
    X, y = noisy(100)
    model = taught(X, y, gamma=0.3)
    beside = beside_of(model, X)
    beside.follow(state_of(model).expansion)
    before = storage.copy(state_of(model).expansion)
    model.forget(model.support_ids[:1])
    beside.follow(state_of(model).expansion, before)
    Z = model.support_vectors.toarray().astype(np.float64)
    np.testing.assert_allclose(beside.f, gram(kernel_of(model), X, Z) @ model.dual_coef, atol=1e-4)


def test_rows_of_free_members_are_computed_once(monkeypatch):
    X, y = noisy(200)
    model = taught(X, y, gamma=0.3)
    model.finish()
    beside, computed, original = beside_of(model, X), [], module.add_rows

    def watched(*given):
        computed.append(int(np.count_nonzero(~given[6])))
        original(*given)

    monkeypatch.setattr(module, "add_rows", watched)
    for _ in range(10):
        before = storage.copy(state_of(model).expansion)
        beside.follow(before)
        model.forget(model.support_ids[:1])
        beside.follow(state_of(model).expansion, before)
    free = np.count_nonzero(np.abs(model.dual_coef) < 5.0)
    assert sum(computed) < 2 * free + 60  # and not ten times as many
    assert len(beside._rows) <= 1 + 2 * free + 2 * module.MIN_CACHED_ROWS


def test_after_so_many_additions_they_are_computed_anew(monkeypatch):
    monkeypatch.setattr(module, "MAX_ADDITIONS", 50)
    X, y = noisy(120)
    model = taught(X, y, gamma=0.3)
    asked = []

    def noting(*given):
        asked.append(given)
        return decide(*given)

    q = queries(model, X)
    beside = Beside(q, len(model.feature_names), kernel_of(model), noting)
    for _ in range(20):
        before = storage.copy(state_of(model).expansion)
        beside.follow(before)
        model.forget(model.support_ids[:1])
        beside.follow(state_of(model).expansion, before)
    assert 1 < len(asked) < 20
    assert np.abs(beside.f - values(model, X)).max() <= beside.doubt
