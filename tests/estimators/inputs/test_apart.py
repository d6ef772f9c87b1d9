"""Features that stand apart, such as words beside numbers; and a large feature that the first example lacks."""

import numpy as np
import pytest

from streamsvm import LASVM, LASVMNC, AutoLASVM, OneVsRest, merge

MODELS = {
    "LASVM": LASVM(C=2.0),
    "spread": LASVM(C=2.0, scaling=None),
    "dormant": LASVM(C=2.0, gamma=0.5),
    "NC": LASVMNC(C=2.0, ramp_warmup=20),
    "classes": OneVsRest(LASVM(C=2.0)),
}


def words_and_numbers(n, sign="~", seed=0):
    """Two numbers whose product makes the label, beside ten words out of 500."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        a, b = rng.normal(5e4, 1e4), rng.normal()
        words = {f"{sign}w{j}": 10**-0.5 for j in rng.choice(500, 10, replace=False)}
        yield {"salary": a, "b": b} | words, bool((a - 5e4) * b > 0)


def with_a_gap(n, lacking):
    """Two numbers whose product makes the label; the first examples lack the large one."""
    rng = np.random.default_rng(0)
    for t in range(n):
        a, b = rng.normal(), rng.normal(5e4, 1e4)
        yield {"a": a} | ({} if t in lacking else {"salary": b}), bool(a * (b - 5e4) > 0)


def accuracy(model, examples, last):
    hits = []
    for x, y in examples:
        hits.append(model.predict_one(x) == y)
        model.learn_one(x, y)
    return np.mean(hits[-last:])


@pytest.mark.long
@pytest.mark.parametrize("kind", [LASVM, AutoLASVM])
def test_numbers_beside_words_are_scaled(kind):
    numbers = [({name: x[name] for name in ("salary", "b")}, y) for x, y in words_and_numbers(2500)]
    clean, model = accuracy(kind(), numbers, 700), kind()
    assert accuracy(model, words_and_numbers(2500), 700) > clean - 0.05
    if kind is LASVM:
        assert model.scale_of("salary") == pytest.approx((5e4, 1e-4), rel=0.1)
        assert model.scale_of("~w1") == (0.0, 1.0)


@pytest.mark.parametrize("kind", [LASVM, AutoLASVM])
@pytest.mark.parametrize("lacking", [(0,), range(5)])
def test_a_large_feature_that_the_first_examples_lack(kind, lacking):
    clean = accuracy(kind(), with_a_gap(1500, ()), 1000)
    assert accuracy(kind(), with_a_gap(1500, lacking), 1000) > clean - 0.01


def test_a_large_feature_that_every_third_example_has():
    """It gets no place.  The square with which it came before there was a scale is not kept."""
    rng, model = np.random.default_rng(0), LASVM()
    examples = [
        ({"a": float(a)} | ({"rare": 5e4} if t % 3 == 1 else {}), bool(a > 0))
        for t, a in enumerate(rng.normal(size=400))
    ]
    assert accuracy(model, examples, 300) > 0.95


@pytest.mark.parametrize("name", MODELS)
def test_a_snapshot_goes_on_bit_for_bit(name):
    model = MODELS[name].clone()
    examples = [
        (x | ({"salary": x["salary"] / 100.0} if t < 50 else {}), y) for t, (x, y) in enumerate(words_and_numbers(160))
    ]
    for t, (x, y) in enumerate(examples):
        if t in (20, 90):
            other = type(model).from_bytes(model.to_bytes())
            assert other.digest() == model.digest()
            model = other if t == 90 else model
        model.learn_one(x, y)
    loop, batch = MODELS[name].clone(), MODELS[name].clone()
    for x, y in examples:
        loop.learn_one(x, y)
    batch.learn_many([x for x, _ in examples], [y for _, y in examples])
    assert model.digest() == loop.digest() == batch.digest()


def test_a_refused_example_marks_no_column():
    """The next example gives the same columns to other features."""
    models = LASVM(), LASVM()
    with pytest.raises(ValueError, match="~w"):
        models[0].learn_one({"~w": np.inf, "~z": 1.0}, True)
    for x, y in with_a_gap(60, ()):
        for model in models:
            model.learn_one(x, y)
    assert models[0].digest() == models[1].digest()
    assert models[0].scale_of("a") != (0.0, 1.0)


@pytest.mark.parametrize("kind", [LASVM(), LASVM(gamma=0.5)])
def test_a_merged_model_knows_what_stands_apart(kind):
    models = [kind.clone(), kind.clone()]
    for seed, model in enumerate(models):
        for x, y in words_and_numbers(60, seed=seed):
            model.learn_one(x, y)
    merged = merge(models, renumber=True)
    again = type(merged).from_bytes(merged.to_bytes())
    for x, y in words_and_numbers(100, seed=2):
        merged.learn_one(x, y)
        again.learn_one(x, y)
    assert again.digest() == merged.digest()
    assert {merged.scale_of(name) for name in merged.feature_names if name[:1] == "~"} == {(0.0, 1.0)}
    if kind.gamma == "scale":
        assert merged.scale_of("salary") == pytest.approx((5e4, 1e-4), rel=0.3)


def test_batches_of_a_model_that_tunes_itself():
    """Its columns stay provisional for longer; features of any unit keep their places."""
    X = np.random.default_rng(0).normal(size=(400, 2)) * [1e-8, 1.0]
    model = AutoLASVM()
    model.learn_many(X[:300], X[:300, 0] > 0)
    assert np.mean(model.predict_many(X[300:]) == (X[300:, 0] > 0)) > 0.9
