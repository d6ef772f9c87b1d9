"""WarmupScaler: the statistics of the first examples, and then nothing moves."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm import LASVM, SnapshotError, WarmupScaler

KINDS = ["standard", "minmax"]
VALUES = st.floats(-1e6, 1e6)


def problem(seed=0, n=50):
    X = np.random.default_rng(seed).normal(size=(n, 3)) * [1.0, 100.0, 1e-3] + [0.0, 1e4, 5.0]
    return [dict(zip("abc", x, strict=True)) for x in X.tolist()], X


def learned(rows, kind="standard", warmup=300):
    scaler = WarmupScaler(kind, warmup)
    for x in rows:
        scaler.learn_one(x)
    return scaler


def expected(X, kind):
    if kind == "standard":
        return X.mean(axis=0), X.std(axis=0)
    return X.min(axis=0), X.max(axis=0) - X.min(axis=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("warmup", [1, 2, 20, 50, 300])
def test_the_first_examples_set_the_scale(kind, warmup):
    rows, X = problem()
    scaler = learned(rows, kind, warmup)
    shift, width = expected(X[:warmup], kind)
    width[width < 1e-12] = 1.0  # after one example, all features are constant
    scaled = [list(scaler.transform_one(x).values()) for x in rows]
    np.testing.assert_allclose(scaled, (X - shift) / width, rtol=1e-9, atol=1e-9)
    assert scaler.frozen is (warmup <= 50)


@pytest.mark.parametrize("kind", KINDS)
def test_it_stops_moving_after_the_warm_up(kind):
    rows, _ = problem()
    scaler = learned(rows[:10], kind, warmup=10)
    assert scaler.frozen
    before, data = scaler.transform_one(rows[20]), scaler.to_bytes()
    for x in ({"a": 1e9, "b": -1e9}, {"new": 5.0}, *rows):
        scaler.learn_one(x)
    assert scaler.transform_one(rows[20]) == before
    assert scaler.to_bytes() == data


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), max_size=20))
def test_values_that_were_seen_land_in_the_middle(kind, rows):
    """Standard values have mean 0 and standard deviation 1 (or 0), min-max values lie between 0 and 1."""
    scaler = learned(rows, kind)
    for name in "abc":
        values = np.array([x[name] for x in rows if name in x])
        scaled = np.array([scaler.transform_one(x)[name] for x in rows if name in x])
        if len(values) == 0 or np.ptp(values) < 1e-6 * max(1.0, np.abs(values).max()):
            continue
        if kind == "minmax":
            assert (scaled.min(), scaled.max()) == pytest.approx((0.0, 1.0), abs=1e-9)
        else:
            assert (scaled.mean(), scaled.std()) == pytest.approx((0.0, 1.0), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_constant_and_new_features(kind):
    scaler = learned([{"a": 7.0}, {"a": 7.0}, {"a": 7.0}], kind, warmup=3)
    assert scaler.transform_one({"a": 7.0}) == {"a": 0.0}
    assert scaler.transform_one({"a": 9.0, "new": 3.0}) == {"a": 2.0, "new": 3.0}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [1e-15, 1e-9, 1.0, 1e12])
def test_the_unit_of_a_feature_does_not_matter(kind, unit):
    rows, X = problem()
    scaler = learned([{"a": unit * x["a"]} for x in rows], kind)
    assert scaler.transform_one({"a": unit * X[3, 0]})["a"] == pytest.approx(
        learned(rows, kind).transform_one(rows[3])["a"], rel=1e-6
    )


def test_a_missing_feature_stays_missing():
    scaler = learned([{"a": 1.0}, {"b": 4.0}, {"a": 3.0}])
    assert scaler.transform_one({"b": 5.0}) == {"b": 1.0}
    assert scaler.transform_one({}) == {}
    x = {"a": 2.0}
    assert scaler.transform_one(x) is not x
    assert x == {"a": 2.0}


def test_before_learning_everything_passes():
    assert WarmupScaler().transform_one({"a": 3}) == {"a": 3}
    assert not WarmupScaler().frozen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("warmup", [30, 100])
def test_frames_are_learned_and_scaled_as_rows_are(kind, library, warmup):
    rows, X = problem()
    by_row, by_frame = learned(rows, kind, warmup), WarmupScaler(kind, warmup)
    for b in range(0, 50, 20):
        by_frame.learn_many(library.DataFrame(dict(zip("abc", X[b : b + 20].T, strict=True))))
    assert by_frame.to_bytes() == by_row.to_bytes()
    frame = library.DataFrame(dict(zip(["a", "b", "c", "new"], np.column_stack([X, X[:, 0]]).T, strict=True)))
    scaled = by_frame.transform_many(frame)
    assert isinstance(scaled, library.DataFrame)
    assert list(scaled.columns) == ["a", "b", "c", "new"]
    one_by_one = [by_row.transform_one(x | {"new": x["a"]}) for x in rows]
    np.testing.assert_array_equal(scaled.to_numpy(), [list(x.values()) for x in one_by_one])


@pytest.mark.parametrize("kind", KINDS)
def test_dicts_are_scaled_as_each_is_alone(kind):
    rng = np.random.default_rng(3)
    scaler = learned([dict(zip("abc", row, strict=True)) for row in rng.normal(3, 100, (9, 3)).tolist()], kind)
    rows = [dict(zip("abc", row, strict=True)) for row in rng.normal(0, 1e9, (5, 3)).tolist()]
    rows += [{"c": 0.1, "b": 0.2, "a": 0.3}, {"b": 7}, {}, {"a": 1, "b": -0.0, "c": 3, "new": 4.5}]
    scaled = scaler.transform_many(rows)
    assert repr(scaled) == repr([scaler.transform_one(x) for x in rows])
    assert WarmupScaler().transform_many(rows) == rows
    assert not any(x is row for x, row in zip(scaled, rows, strict=True))


def test_a_pandas_frame_keeps_its_index():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 9])
    assert list(WarmupScaler().transform_many(frame).index) == [7, 9]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [0, 5, 10, 30])
def test_a_snapshot_continues_as_the_original_does(kind, at, tmp_path):
    rows, _ = problem()
    scaler = learned(rows[:at], kind, warmup=10)
    scaler.save(tmp_path / "scaler")
    for other in (WarmupScaler.from_bytes(scaler.to_bytes()), WarmupScaler.load(tmp_path / "scaler")):
        assert (other.kind, other.warmup, other.frozen) == (kind, 10, at >= 10)
        assert other.transform_one(rows[-1]) == scaler.transform_one(rows[-1])
        original = learned(rows, kind, warmup=10)
        for x in rows[at:]:
            other.learn_one(x)
        assert other.to_bytes() == original.to_bytes()


def test_a_strange_snapshot_is_refused():
    with pytest.raises(SnapshotError, match="'LASVM' snapshot, expected 'WarmupScaler'"):
        WarmupScaler.from_bytes(LASVM().to_bytes())
    with pytest.raises(SnapshotError, match="damaged"):
        WarmupScaler.from_bytes(WarmupScaler().to_bytes()[:-1] + b"?")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "3"])
def test_a_bad_value_is_named_and_changes_nothing(value):
    scaler = learned([{"a": 1.0}, {"a": 2.0}])
    data = scaler.to_bytes()
    with pytest.raises((ValueError, TypeError), match="feature 'wind' is"):
        scaler.learn_one({"a": 5.0, "wind": value})
    assert scaler.to_bytes() == data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "robust"}, "kind='robust' is unknown; use one of 'standard', 'minmax'"),
        ({"warmup": 0}, "warmup=0 must be a whole number, at least 1"),
        ({"warmup": 2.5}, r"warmup=2\.5 must"),
        ({"warmup": "many"}, "warmup='many' must"),
    ],
)
def test_a_bad_parameter_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupScaler(**arguments)


def test_a_feature_that_is_no_number_is_refused_as_the_learners_refuse_it():
    message = r"^feature 'a' is 'red' \(str\); features must be numbers; .*Records.* makes them"
    with pytest.raises(TypeError, match=message):
        WarmupScaler().learn_one({"a": "red"})
    with pytest.raises(TypeError, match=message):
        LASVM().learn_one({"a": "red"}, True)
