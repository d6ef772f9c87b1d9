"""Snapshots that version 0.1.0 wrote (a mixture's: a later one) still load, predict as they did, and go on learning.

`data/` holds one for each kind of model.  `told.json` tells what version 0.1.0 said about them: decision values and
counts right after saving, and again after learning the rest of the data and `finish`.  No code here can write such
snapshots; they stay as they are.
"""

import datetime
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, Mixture, OneVsRest, WarmupScaler
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.validation import StreamingKFold, StreamingLOO

DATA = Path(__file__).with_name("data")
TOLD = json.loads((DATA / "told.json").read_text())
FIRST = 60  # examples that had been learned when the snapshots were written
GRID = np.linspace(-2.0, 2.0, 5)
QUERIES = np.stack(np.meshgrid(GRID, GRID), axis=-1).reshape(-1, 2)
LEARNERS = {
    "lasvm": LASVM,
    "lasvm-budget-window": LASVM,
    "lasvm-linear": LASVM,
    "lasvm-words": LASVM,
    "lasvm-g": LASVMG,
    "lasvm-nc": LASVMNC,
    "lasvm-i": LASVMI,
    "full": FullSVM,
    "one-vs-rest": OneVsRest,
    "one-vs-rest-window": OneVsRest,
}


def numbers():
    t = np.arange(110)
    X = np.stack([2.2 * np.sin(0.37 * t) * np.cos(0.011 * t), 1.9 * np.sin(0.53 * t + 1.0)], axis=1).round(3)
    return X, X[:, 0] * X[:, 1] + 0.6 * np.sin(2.7 * t) > 0.2


def words():
    rows = [{f"w{(7 * t * (k + 1) + k * k) % 23}": 1.0 + (t + k) % 2 for k in range(5)} for t in range(120)]
    return rows[:110], np.arange(110) % 3 == 0, rows[110:]


def problem(name):
    """Examples, labels and queries of a snapshot, and the times of the examples."""
    X, y = numbers()
    if name == "lasvm-words":
        return *words(), None
    if name.startswith("one-vs-rest"):
        return X, ["abc"[int(np.digitize(x - 0.4 * z, [-0.7, 0.7]))] for x, z in X], QUERIES, None
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    times = [start + datetime.timedelta(minutes=t) for t in range(len(X))]
    return X, y, QUERIES, times if name == "lasvm-budget-window" else None


def compare(model, queries, told, tolerance):
    counts = {name: getattr(model, name) for name in told if name not in ("decision_values", "after")}
    assert counts == {name: told[name] for name in counts}
    np.testing.assert_allclose(model.decision_function_many(queries), told["decision_values"], atol=tolerance)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_goes_on(name):
    model, told = LEARNERS[name].load(DATA / f"{name}.snapshot"), TOLD[name]
    X, y, queries, times = problem(name)
    compare(model, queries, told, 1e-6)
    if not name.startswith("one-vs-rest"):
        state_of(model).reservoir = Reservoir(0)  # as version 0.1.0 had none
    model.learn_many(X[FIRST:], y[FIRST:], t=None if times is None else times[FIRST:])
    model.finish()
    after = {key: value for key, value in told["after"].items() if key != "n_members"}  # It left candidates earlier.
    n_support = after.pop("n_support")
    assert model.n_support == pytest.approx(n_support, rel=0.05)  # Rounding may decide about single ones.
    compare(model, queries, after, 0.02)
    again = type(model).from_bytes(model.to_bytes())
    assert again.digest() == model.digest()


def test_parameters_have_the_names_of_now():
    model = LASVM.load(DATA / "lasvm-linear.snapshot")
    assert (model.tol, model.kernel, model.reprocess) == (1e-2, "linear", 2)
    assert LASVM.load(DATA / "lasvm-budget-window.snapshot").window == datetime.timedelta(minutes=40)
    several = OneVsRest.load(DATA / "one-vs-rest-window.snapshot")
    assert (several.model.tol, several.model.window, several.classes) == (1e-3, 50, ["c", "a"])


def test_ids_and_weights_of_several_classes_are_those_that_were_given():
    """They are forgotten by their ids; a class that appears now learns the members with their old weights."""
    model = OneVsRest.load(DATA / "one-vs-rest.snapshot")
    ids, w = np.arange(FIRST) * 3 + 11, 1.0 + np.arange(FIRST) % 3
    assert set(model.support_ids) <= set(ids)
    U = model._union
    live = U.live_slots()
    np.testing.assert_array_equal(U.weights[live], w[(U.user_ids[live] - 11) // 3])
    left = model.support_ids[:5]
    assert model.forget(left) == 5
    assert not set(left) & set(model.support_ids)
    model.learn_one({0: 5.0, 1: 5.0}, "new")
    assert model.predict_one({0: 5.0, 1: 5.0}) == "new"


def test_a_mixture_from_before_there_were_several_classes_goes_on():
    """Its spans took in 32 records at once: of 45, the block holds 13."""
    model = Mixture.from_bytes(gzip.decompress((DATA / "mixture.snapshot.gz").read_bytes()))
    said = [model.predict_proba_one({"a": a})[True] for a in (-1.0, 0.1, 0.9)]
    assert said == pytest.approx([0.020686749757556272, 0.7667562102485822, 0.9750673371296747], rel=1e-6)
    fresh = Mixture(LASVM(C=1.0))
    for t in range(300):
        x, y = {"a": (7 * t) % 10 / 5 - 1.0}, (7 * t) % 10 > 4
        fresh.learn_one(x, y)
        if t >= 45:
            model.learn_one(x, y)
    ends = [[m.predict_proba_one({"a": a})[True] for a in (-1.0, 0.1, 0.9)] for m in (model, fresh)]
    assert ends[0] == pytest.approx(ends[1], abs=0.02)


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_a_scaler_goes_on(kind):
    scaler, told = WarmupScaler.load(DATA / f"scaler-{kind}.snapshot"), TOLD[f"scaler-{kind}"]
    for when in ("first", "after"):
        assert scaler.transform_one({0: 1.0, 1: 2.0}) == pytest.approx({int(name): v for name, v in told[when].items()})
        for x in numbers()[0][15:40]:
            scaler.learn_one(dict(enumerate(x.tolist())))
    assert scaler.frozen


@pytest.mark.parametrize(("name", "wrapper"), [("loo", StreamingLOO), ("k-fold", StreamingKFold)])
def test_a_streaming_estimate_goes_on(name, wrapper):
    """The learners of these estimates are those of lasvm.snapshot."""
    model = LASVM.load(DATA / "lasvm.snapshot")
    data, told = (DATA / f"streaming-{name}.snapshot").read_bytes(), TOLD[f"streaming-{name}"]["after"]
    estimate = wrapper.from_bytes(data, model)
    X, y = numbers()
    for x, label in zip(X[FIRST:], y[FIRST:].tolist(), strict=True):
        estimate.learn_one(dict(enumerate(x.tolist())), label)
    found = [estimate.estimate() for _ in range(4 if name == "k-fold" else 1)][-1]
    assert found.n == told["n"]
    assert getattr(found.error, "value", found.error) == pytest.approx(told["error"], abs=0.05)
