"""The members that a path goes over: which ones, and their kernel values."""

import numpy as np
from naive import gram
from tight import noisy

from streamsvm import LASVM
from streamsvm.batch import path
from streamsvm.batch.cache import NO_ROW, row_at
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.storage import without_rows
from streamsvm.online.removal import near as module
from streamsvm.online.removal.forget import _places, tolerances

CACHES = 0.01, 64.0


@compiled
def fill_all(near):
    for i in range(near.slots.shape[0]):
        row_at(near, i, NO_ROW)


def taught(cache_mb):
    X, y = noisy(300)
    model = LASVM(C=5.0, gamma=0.3, reservoir=0, scaling=None, cache_mb=cache_mb)
    model.learn_many(X, y)
    model.finish()
    return model, X


def near_of(model):
    s = model._expansion
    n = int(s.counts[0])
    place = _places(s)
    M, driven = np.flatnonzero(place == path.FREE), np.flatnonzero(place == path.AT_UPPER)[:2]
    place[driven] = path.OUT
    beside = tolerances(s, s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n], True)
    return module.near_members(without_rows(s), model._kernel, M, place, driven, beside), M, place, driven, beside


def test_they_are_the_free_ones_the_driven_ones_and_the_nearest_to_violating(monkeypatch):
    monkeypatch.setattr(module, "NEAREST", 7)
    monkeypatch.setattr(module, "PER_FREE", 0.0)
    model, _ = taught(64.0)
    near, M, place, driven, (above, below, mu) = near_of(model)
    m, s = len(M), model._expansion
    np.testing.assert_array_equal(near.slots[:m], M)
    np.testing.assert_array_equal(near.slots[m : m + 2], driven)
    slack = {}
    for i in range(len(place)):
        if place[i] == path.AT_LOWER:
            slack[i] = mu + above - s.g[i]
        elif place[i] == path.AT_UPPER:
            slack[i] = s.g[i] - (mu - below)
    count = 7 + 2 * module.PER_DRIVEN
    assert set(near.slots[m + 2 :].tolist()) == set(sorted(slack, key=slack.__getitem__)[:count])
    assert len(near.slots) == module.number_near(len(place), m, 2) == m + 2 + count


def test_they_are_all_members_with_a_box_if_these_are_few(monkeypatch):
    monkeypatch.setattr(module, "NEAREST", 10**6)
    model, _ = taught(64.0)
    near, _, place, driven, _ = near_of(model)
    assert set(near.slots.tolist()) == {*np.flatnonzero(place != path.OUT).tolist(), *driven.tolist()}
    assert len(near.slots) == len(set(near.slots.tolist()))


def test_their_rows_are_kernel_values_however_few_rows_the_expansion_keeps():
    rows = []
    for cache_mb in CACHES:
        model, X = taught(cache_mb)
        near, M, *_ = near_of(model)
        examples = X[model._expansion.ids[near.slots]]
        K = gram(model._kernel, examples, examples)
        assert (near.at[: len(M)] == np.arange(len(M))).all()
        assert (near.at[len(M) :] == -1).all()
        fill_all(near)
        rows.append(near.rows)
        assert (near.at == np.arange(len(near.slots))).all()
        np.testing.assert_allclose(rows[-1], K, atol=1e-5)
    np.testing.assert_array_equal(*rows)
