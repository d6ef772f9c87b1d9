"""Features that examples lack: where their value is unknown, models guess it, and learn nothing from the guess."""

import numpy as np
import pytest
import scipy.sparse as sp
from states import state_of

from streamsvm import LASVM, AutoLASVM, OneVsOne, OneVsRest, merge
from streamsvm.core.saving import snapshot

LEARNERS = {
    "LASVM": LASVM(),
    "window": LASVM(window=150, budget=80),
    "auto": AutoLASVM(),
    "classes": OneVsRest(LASVM()),
    "classes, auto": OneVsRest(AutoLASVM()),
    "pairs": OneVsOne(LASVM()),
}


def stream(n=330, share=0.2, classes=2, seed=0):
    """Records of a sensor that moves slowly, another that jumps and is far from 0, and a bit; with gaps."""
    rng, level, rows, y = np.random.default_rng(seed), 0.0, [], []
    for _ in range(n):
        level = 0.98 * level + 0.2 * rng.normal()
        x = {"slow": 20.0 * level, "far": rng.normal(5e4, 1e3), "bit": float(rng.random() < 0.5)}
        y.append(int(np.digitize(level + (x["far"] - 5e4) / 1e3, [0.0, 1.0][: classes - 1])))
        rows.append({name: v for name, v in x.items() if rng.random() >= share})
    return rows, np.array(y)


def given(name, share=0.2):
    model = LEARNERS[name].clone()
    rows, y = stream(share=share, classes=3 if isinstance(model, OneVsRest | OneVsOne) else 2)
    return model, rows, y


def loop(model, rows, y):
    for x, label in zip(rows, y.tolist(), strict=True):
        model.learn_one(x, label)
    return model


@pytest.mark.parametrize("name", LEARNERS)
def test_learn_many_is_the_loop_and_so_is_what_is_saved(name):
    model, rows, y = given(name)
    expected = loop(model.clone(), rows, y).digest()
    for cut in (7, 200):
        other = model.clone()
        for b in range(0, len(y), cut):
            other.learn_many(rows[b : b + cut], y[b : b + cut])
        assert other.digest() == expected, cut
    saved = type(model).from_bytes(loop(model.clone(), rows[:123], y[:123]).to_bytes())
    assert loop(saved, rows[123:], y[123:]).digest() == expected


@pytest.mark.parametrize("name", LEARNERS)
def test_one_and_many_predict_alike_and_change_nothing(name):
    model, rows, y = given(name)
    model.learn_many(rows, y)
    digest = model.digest()
    one = [model.predict_one(x) for x in rows[:40]]
    assert one == np.asarray(model.predict_many(rows[:40])).tolist()
    assert model.digest() == digest


def test_guesses_are_those_of_the_better_rule_and_no_values():
    """The last value of what moves slowly, the mean of what jumps; means and deviations are those of the values."""
    rows, y = stream(1000)
    model = LASVM().clone()
    model.learn_many(rows, y)
    last = next(x["slow"] for x in reversed(rows) if "slow" in x)
    far = [x["far"] for x in rows[1:] if "far" in x]
    whole = {"slow": last, "far": np.mean(far), "bit": 0.0}
    np.testing.assert_allclose(model.decision_function_one({}), model.decision_function_one(whole), atol=0.02)
    shift, factor = model.scale_of("far")
    np.testing.assert_allclose([shift, 1.0 / factor], [np.mean(far), np.std(far)], rtol=0.2)


def test_gaps_cost_little():
    def accuracy(share):
        model, right = LASVM(), []
        for x, label in zip(*stream(2000, share), strict=True):
            right.append(model.predict_one(x) == bool(label))
            model.learn_one(x, bool(label))
        return np.mean(right[500:])

    assert accuracy(0.0) > 0.95
    assert accuracy(0.2) > 0.85  # with 0 in the place of a gap, 0.66


def test_what_is_left_out_because_it_is_0_stays_0():
    rng = np.random.default_rng(0)
    full = [{f"p{d}": float(v) for d, v in enumerate(row)} for row in rng.integers(0, 4, (300, 12))]
    y = np.array([x["p0"] > x["p1"] for x in full])
    left_out = [{name: v for name, v in x.items() if v} for x in full]
    names = full[0].keys()
    model = LASVM()
    model.learn_many(left_out, y)
    whole = [{name: x.get(name, 0.0) for name in names} for x in left_out]
    np.testing.assert_allclose(model.decision_function_many(left_out), model.decision_function_many(whole))
    for other in (LASVM(gamma=0.1, scaling=None), LASVM()):
        X = sp.csr_matrix([[x[name] - 1.0 for name in names] for x in full])
        other.learn_many(X, y)
        np.testing.assert_allclose(other.decision_function_many(X), other.decision_function_many(X.toarray()))


def test_what_an_earlier_version_saved_guesses_by_the_mean():
    rows, y = stream()
    model = LASVM()
    model.learn_many(rows, y)
    meta, arrays = snapshot.unpack(model.to_bytes(), "LASVM")
    arrays = {name: array for name, array in arrays.items() if name not in ("scale.last", "scale.excess")}
    arrays["scale.counts"] = arrays["scale.counts"][:-1]
    loaded = LASVM.from_bytes(snapshot.pack("LASVM", meta, arrays))
    whole = [x for x in rows if len(x) == 3]
    np.testing.assert_array_equal(loaded.decision_function_many(whole), model.decision_function_many(whole))
    loaded.learn_many(rows, y)
    assert LASVM.from_bytes(loaded.to_bytes()).digest() == loaded.digest()


def test_merged_models_guess():
    rows, y = stream(600)
    parts = [LASVM(), LASVM()]
    for model, own in zip(parts, (slice(0, 300), slice(300, 600)), strict=True):
        model.learn_many(rows[own], y[own])
    merged = merge(parts, renumber=True)
    state = state_of(merged).scale.state
    assert state.counts[-1] == 1
    assert np.isfinite(merged.decision_function_many(rows)).all()
    assert np.mean(merged.predict_many(rows) == (y == 1)) > 0.85


@pytest.mark.parametrize("name", LEARNERS)
def test_none_and_nan_are_gaps_like_features_that_are_absent(name):
    model, rows, y = given(name)
    other, names = model.clone(), ("slow", "far", "bit")
    rng = np.random.default_rng(1)
    marked = [{name: x.get(name, rng.choice([None, np.nan])) for name in names} for x in rows]
    rows[0] = marked[0] = {"slow": -1.0, "far": 5e4, "bit": 1.0}  # which gives the columns their order
    assert loop(model, rows, y).digest() == loop(other, marked, y).digest()
    model.learn_many(rows[:100], y[:100])
    other.learn_many(marked[:100], y[:100])
    assert model.digest() == other.digest()
    assert [model.predict_one(x) for x in rows[:30]] == [other.predict_one(x) for x in marked[:30]]
    assert np.asarray(other.predict_many(marked)).tolist() == np.asarray(model.predict_many(rows)).tolist()
    for x, named in (
        ({"far": None, "slow": np.inf}, "slow"),
        ({"far": np.nan, "slow": 1e300}, "slow"),
        ({"far": np.nan, "slow": np.float32("inf")}, "slow"),
        ({"far": "many", "slow": None}, "far"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"feature '{named}' is"):
            other.learn_one(x, 1)


def positive(n=400, share=0.3):
    """A price that moves slowly, and a demand; both are near 0, and never 0 or less."""
    rng, level, rows, y = np.random.default_rng(1), 0.0, [], []
    for _ in range(n):
        level = 0.95 * level + 0.3 * rng.normal()
        x = {"price": np.exp(level), "demand": rng.gamma(2.0)}
        y.append(level > 0.0)
        rows.append({name: v if rng.random() >= share else rng.choice([None, np.nan]) for name, v in x.items()})
    return rows, y


@pytest.mark.parametrize("name", ["LASVM", "auto", "classes"])
def test_none_and_nan_are_not_0_where_all_values_are_positive(name):
    rows, y = positive()
    model, other, right = LEARNERS[name].clone(), LEARNERS[name].clone(), []
    for x, label in zip(rows, y, strict=True):
        if x["price"] is None or np.isnan(x["price"]):
            right.append(model.predict_one(x) == label)
        model.learn_one(x, label)
    assert np.mean(right[10:]) > 0.85  # with 0 in the place of a gap, 0.6
    for b in range(0, len(y), 150):
        other.learn_many(rows[b : b + 150], y[b : b + 150])
    assert other.digest() == model.digest()


def test_none_is_unknown_to_a_model_whose_examples_had_no_gap():
    model = LASVM()
    model.learn_many(*positive(share=0.0))
    rows = [{"price": None, "demand": 1.0}, {"demand": 1.0}, {"price": 0.0, "demand": 1.0}]
    one = [model.decision_function_one(x) for x in rows]
    np.testing.assert_array_equal(model.decision_function_many(rows), one)
    assert one[1] == one[2] != one[0]


def test_models_that_do_not_scale_refuse_what_is_missing():
    for model in (LASVM(scaling=None), LASVM(gamma=0.5), OneVsRest(LASVM(scaling=None))):
        for value, error in ((None, TypeError), (np.nan, ValueError)):
            with pytest.raises(error, match="feature 'a' is"):
                model.learn_one({"a": value, "b": 1.0}, 1)
