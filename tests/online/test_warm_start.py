"""A model that begins with another one's members, beside its definition."""

import numpy as np
import pytest
from states import state_of

from streamsvm import LASVM
from streamsvm.core import storage
from streamsvm.core.expansion import SLOTS
from streamsvm.core.kernels import make_kernel
from streamsvm.online.finish import WithBias
from streamsvm.online.warm_start import descendant


def parent(C=2.0, n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    model = LASVM(C=C, gamma=0.5)
    model.learn_many(X, X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n) > 0.7)
    return X, model


def naive_gradient(X, y, alpha, gamma):
    """g = y - K alpha, in double precision."""
    distances = ((X[:, np.newaxis] - X[np.newaxis]) ** 2).sum(axis=2)
    return y - np.exp(-gamma * distances) @ alpha


@pytest.mark.parametrize("factor", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("gamma", [0.125, 0.5, 2.0])
def test_its_gradient_is_that_of_its_coefficients(factor, gamma):
    X, model = parent()
    live = storage.live_slots(state_of(model).expansion)
    before = model.digest()
    s = descendant(state_of(model).expansion, live, make_kernel("rbf", gamma), WithBias(), factor)
    n = int(s.counts[SLOTS])
    assert n == len(live)
    np.testing.assert_array_equal(s.ids[:n], state_of(model).expansion.ids[live])
    np.testing.assert_array_equal(s.hi[:n] - s.lo[:n], factor * 2.0)
    np.testing.assert_allclose(s.alpha[:n], state_of(model).expansion.alpha[live] * min(1.0, factor), atol=1e-12)
    np.testing.assert_allclose(s.g[:n], naive_gradient(X[s.ids[:n]], s.y[:n], s.alpha[:n], gamma), atol=1e-5)
    assert model.digest() == before


@pytest.mark.parametrize("kept", [1, 2, 20, 60])
def test_the_coefficients_of_some_members_still_sum_to_0_within_their_boxes(kept):
    X, model = parent()
    slots = storage.live_slots(state_of(model).expansion)[-kept:]
    s = descendant(state_of(model).expansion, slots, make_kernel("rbf", 2.0), WithBias(), 0.1)
    n = int(s.counts[SLOTS])
    assert n == kept
    assert abs(s.alpha[:n].sum()) < 1e-12
    assert ((s.lo[:n] <= s.alpha[:n]) & (s.alpha[:n] <= s.hi[:n])).all()
    np.testing.assert_allclose(s.g[:n], naive_gradient(X[s.ids[:n]], s.y[:n], s.alpha[:n], 2.0), atol=1e-5)


def test_members_of_one_class_begin_with_coefficients_of_0():
    _, model = parent()
    s = state_of(model).expansion
    live = storage.live_slots(s)
    s = descendant(s, live[s.y[live] > 0], make_kernel("rbf", 2.0), WithBias(), 10.0)
    assert not s.alpha.any()
