"""A passing example beside the labelled ones, against the definitions."""

import copy
import math

import numpy as np
import pytest

from streamsvm import LASVM
from streamsvm.active.choosing import novelty as room
from streamsvm.active.choosing.novelty import Passing
from streamsvm.active.choosing.span import RIDGE

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))


def dicts(X):
    return [dict(zip("abc", row, strict=True)) for row in np.asarray(X).tolist()]


def filled(X):
    seen = Passing()
    for x in dicts(X):
        seen.add(x)
    return seen


def taught(**options):
    model = LASVM(gamma=0.5, **options)
    for x, y in zip(dicts(X), X[:, 0] > 0, strict=True):
        model.learn_one(x, bool(y))
    return model


def novelty(Z, z, gamma):
    K = np.exp(-gamma * np.sum((Z[:, None] - Z) ** 2, axis=2)) + RIDGE * np.eye(len(Z))
    k = np.exp(-gamma * np.sum((Z - z) ** 2, axis=1))
    return math.sqrt(max(0.0, 1.0 - k @ np.linalg.solve(K, k)))


def test_distance_and_novelty_are_those_of_the_definitions():
    model, seen = taught(), Passing()
    assert seen.distance({"a": 1.0}, model) == math.inf
    for n, x in enumerate(dicts(X[:40]), 1):
        seen.add(x)
        for z, row in zip(dicts(X[40:43]), X[40:43], strict=True):
            near = np.sum((X[:n] - row) ** 2, axis=1).min()
            assert seen.distance(z, model) == pytest.approx(near, rel=1e-5, abs=1e-5)
            assert seen.novelty(z, model) == pytest.approx(novelty(X[:n], row, 0.5), abs=1e-5)


def test_scaled_as_the_model_scales():
    model = taught(scaling="standard")
    shift, factor = np.array([model.scale_of(name) for name in "abc"]).T
    Z = (X - shift) * factor
    seen = filled(X[:30])
    (x,) = dicts(X[50:51])
    assert seen.distance(x, model) == pytest.approx(np.sum((Z[:30] - Z[50]) ** 2, axis=1).min(), rel=1e-5)
    assert seen.novelty(x, model) == pytest.approx(novelty(Z[:30], Z[50], 0.5), abs=1e-5)


def test_unknown_features_and_texts_count():
    seen = filled(X[:1])
    (x,) = dicts(X[:1])
    assert seen.distance(x, taught()) == 0.0
    assert seen.distance(x | {"new": 3.0}, taught()) == pytest.approx(9.0)
    assert seen.distance(x | {"word": "text"}, taught()) == pytest.approx(1.0)
    seen.add(x | {"word": "text"})
    assert seen.distance(x | {"word": "text"}, taught()) == pytest.approx(0.0, abs=1e-12)


def test_examples_of_few_features_out_of_many():
    rng = np.random.default_rng(1)
    texts = [{f"w{i}": 1.0 for i in rng.choice(500, 8, replace=False)} for _ in range(40)]
    seen, model = Passing(), LASVM(gamma=0.5)
    for x in texts[:30]:
        seen.add(x)
    for x in texts[30:]:
        near = min(len(x.keys() ^ other.keys()) for other in texts[:30])
        assert seen.distance(x, model) == pytest.approx(near)


def test_the_older_half_is_forgotten(monkeypatch):
    monkeypatch.setattr(room, "LABELLED", 20)
    model, seen = taught(), Passing()
    for n, x in enumerate(dicts(X), 1):
        seen.add(x)
        kept = n if n <= 20 else 11 + (n - 21) % 10
        near = np.sum((X[n - kept : n] - X[0]) ** 2, axis=1).min()
        assert seen.distance(dicts(X[:1])[0], model) == pytest.approx(near, rel=1e-5, abs=1e-5)


def test_a_copy_goes_on_alike():
    model, seen = taught(), filled(X[:30])
    seen.novelty(dicts(X[40:41])[0], model)
    other = copy.deepcopy(seen)
    for x in dicts(X[30:]):
        assert (other.distance(x, model), other.novelty(x, model)) == (seen.distance(x, model), seen.novelty(x, model))
        seen.add(x)
        other.add(x)
