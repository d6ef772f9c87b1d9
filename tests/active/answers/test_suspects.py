"""Which answers look wrong."""

import naive
import numpy as np
import pytest

from streamsvm.active import suspects
from streamsvm.batch import RowStore
from streamsvm.core.kernels import make_kernel

RNG = np.random.default_rng


def problem(n, seed=0):
    X = RNG(seed).normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] ** 2 > 0.7


def by_naive(X, y, C, gamma, weights):
    """The margins by solving each problem from 0, with the bias half-way between the extremes."""
    K, signs, margins = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(2)), np.where(y, 1.0, -1.0), []
    for i in range(len(y)):
        boxes = C * weights * (np.arange(len(y)) != i)
        lo, hi = np.minimum(0.0, signs * boxes), np.maximum(0.0, signs * boxes)
        alpha = naive.solve(K, signs, lo, hi, 1e-9)[0]
        g = signs - K @ alpha
        margins.append(signs[i] * (K[i] @ alpha + naive.midpoint(alpha, g, lo, hi)))
    return np.array(margins)


@pytest.mark.parametrize("weighted", [False, True])
def test_margins_are_those_of_the_models_without_each_answer(weighted):
    X, y = problem(40)
    weights = RNG(1).uniform(0.5, 2.0, 40) if weighted else np.ones(40)
    found = suspects(X, y, 5.0, 0.4, sample_weight=weights if weighted else None)
    expected = by_naive(X, y, 5.0, 0.4, weights)
    assert [s.margin for s in found] == sorted(s.margin for s in found)
    np.testing.assert_allclose([s.margin for s in found], expected[[s.place for s in found]], atol=5e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_with_several_classes_margins_are_the_leads_of_the_models_without_each_answer(weighted):
    X, y = problem(36)
    y = np.array(["a", "b", "c"])[y.astype(int) + (X[:, 2] > 0.3)]
    weights = RNG(1).uniform(0.5, 2.0, 36) if weighted else np.ones(36)
    values = {k: np.where(y == k, 1, -1) * by_naive(X, y == k, 5.0, 0.4, weights) for k in "abc"}
    own = np.array([values[k][i] for i, k in enumerate(y)])
    best = np.array([max(values[other][i] for other in "abc" if other != k) for i, k in enumerate(y)])
    found = suspects(X, y, 5.0, 0.4, sample_weight=weights if weighted else None)
    places = [s.place for s in found]
    np.testing.assert_allclose([s.margin for s in found], (0.5 * (own - best))[places], atol=5e-3)
    assert suspects(X, y, 5.0, 0.4, 4, sample_weight=weights if weighted else None) == found[:4]


def test_slips_between_several_classes_come_first():
    rng = RNG(3)
    y = rng.integers(0, 4, 160)
    X = np.array([[0, 0], [4, 0], [0, 4], [4, 4]])[y] + rng.normal(size=(160, 2)) * 0.6
    slips = rng.choice(160, 8, replace=False)
    y[slips] = (y[slips] + 1) % 4
    assert {suspect.place for suspect in suspects(X, y, 10.0, 0.3, 8)} == set(slips.tolist())


def test_slips_come_first():
    X, y = problem(200)
    slips = RNG(2).choice(200, 10, replace=False)
    y[slips] ^= True
    first = {suspect.place for suspect in suspects(X, y, 10.0, 0.3, 20)}
    assert len(first & set(slips.tolist())) >= 8


def test_the_number_of_suspects():
    X, y = problem(30)
    everything = suspects(X, y, 1.0, 0.5)
    assert sorted(suspect.place for suspect in everything) == list(range(30))
    assert suspects(X, y, 1.0, 0.5, 7) == everything[:7]
    assert suspects(X, y, 1.0, 0.5, 0) == []


def test_any_kind_of_examples():
    X, y = problem(30)
    expected = suspects(X, y, 2.0, 0.5, 5)
    found = suspects([dict(enumerate(row)) for row in X.tolist()], y, 2.0, 0.5, 5)
    assert [s.place for s in found] == [s.place for s in expected]
    assert suspects(RowStore(X, make_kernel("rbf", gamma=0.5)), np.where(y, 1, -1), 2.0, n=5) == expected


def test_one_label_for_each_example():
    with pytest.raises(ValueError, match=r"y has shape \(3,\)"):
        suspects([[1.0], [2.0]], ["a", "b", "c"])


def test_few_answers():
    assert suspects(np.empty((0, 2)), []) == []
    assert suspects([[1.0]], [True]) == [(0, 0.0)]
    assert suspects([[1.0], [2.0]], [True, False]) == [(0, -1.0), (1, -1.0)]  # each by the other class alone
    assert suspects([[1.0], [2.0]], [True, True]) == [(0, 1.0), (1, 1.0)]


@pytest.mark.parametrize("bad", [{"C": 0.0}, {"gamma": -1.0}, {"n": -1}, {"sample_weight": [1.0, 1.0]}])
def test_refuses(bad):
    X, y = problem(5)
    with pytest.raises(ValueError, match=next(iter(bad))):
        suspects(X, y, **bad)
