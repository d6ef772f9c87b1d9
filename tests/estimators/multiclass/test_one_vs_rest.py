"""One-versus-rest: each class has the model it would have alone, and kernel values are computed once for all."""

import datetime
import functools
import itertools

import four_classes
import numpy as np
import pandas as pd
import polars as pl
import pytest
from four_classes import ALONE, DATA, NAMES, OF_CLASSES, problem
from states import binaries_of, state_of

from streamsvm import LASVM, LASVMG, OneVsRest, SnapshotError
from streamsvm.core import storage
from streamsvm.core.expansion import COMPRESSED, HOLES, SLOTS, STORAGE

MODELS = OF_CLASSES
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
some_models = pytest.mark.parametrize("name", ["LASVM", "G"])


together = functools.partial(four_classes.together, OneVsRest)


def separate(model, X, y, labels, **others):
    """Binary models, each trained alone."""
    models = {}
    for label in labels:
        models[label] = model.clone()
        models[label].learn_many(X, y == label, **others)
    return models


# ------------------------------------------------------------------------------------------- the models of the classes


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "data"),
    [*itertools.product(MODELS, ("dense", "few features", "binary")), ("LASVM", "text"), ("G", "text")],
)
def test_each_class_has_the_model_that_it_would_have_alone(name, data):
    model, (X, y) = MODELS[name], DATA[data]
    ovr, models = together(model, X, y), separate(model, X, y, NAMES)
    for label, alone in models.items():
        assert binaries_of(ovr)[label].digest() == alone.digest()
    values = ovr.decision_function_many(X)
    assert np.array_equal(values, np.column_stack([alone.decision_function_many(X) for alone in models.values()]))
    assert ovr._union.vectors.counts[HOLES] < ovr._union.vectors.counts[SLOTS]


@pytest.mark.long
def test_the_text_is_compressed_and_the_holes_are_squeezed():
    X, y = DATA["text"]
    ovr = together(MODELS["LASVM"], X, y)
    assert ovr._union.vectors.counts[STORAGE] == COMPRESSED
    X, y = problem(3, 4000, 10, 1.5)
    ovr = together(LASVMG(**ALONE, C=10.0, gamma=0.05, clean_every=50, max_non_sv=0), X, y)
    assert ovr._union.vectors.counts[SLOTS] < 4000 * 0.75
    for label, alone in separate(ovr.model, X, y, NAMES).items():
        assert binaries_of(ovr)[label].digest() == alone.digest()


@some_models
def test_kernel_values_are_computed_once(name):
    X, y = problem(4, 3000, noise=1.2)
    model = MODELS[name]
    ovr, models = together(model, X, y), separate(model, X, y, NAMES)
    ovr.decision_function_many(X)
    for alone in models.values():
        alone.decision_function_many(X)
    assert ovr.kernel_evaluations < 0.7 * sum(alone.kernel_evaluations for alone in models.values())


@pytest.mark.long
@every_model
def test_examples_that_come_again_are_known_by_their_ids(model):
    """As they are, in other features, twice in a block: each class heeds those that it has not as members."""
    X, y = DATA["dense"]
    ids = np.arange(len(X)) * 7
    again = X.copy()
    again[::5] += 0.01
    ids_again = ids.copy()
    ids_again[100:200] = ids[:100]
    ovr, models = together(model, X, y, ids=ids), separate(model, X, y, NAMES, ids=ids)
    ovr.learn_many(again, y, ids=ids_again)
    for label, alone in models.items():
        alone.learn_many(again, y == label, ids=ids_again)
        assert np.array_equal(alone.dual_coef, binaries_of(ovr)[label].dual_coef)
    values = np.column_stack([alone.decision_function_many(X) for alone in models.values()])
    assert np.array_equal(ovr.decision_function_many(X), values)


@pytest.mark.long
@every_model
def test_other_labels_and_weights_under_known_ids_are_corrections(model):
    X, y = DATA["dense"]
    rng = np.random.default_rng(8)
    ids, w = rng.integers(0, 200, len(X)), rng.choice([0.0, 1.0, 1.0, 2.0], len(X))
    X, y = X[ids], y[ids]
    y = np.where(rng.random(len(y)) < 0.2, rng.choice(NAMES, len(y)), y)
    ovr, models = together(model, X, y, 37, ids=ids, w=w), separate(model, X, y, NAMES, ids=ids, w=w)
    for label, alone in models.items():
        assert np.array_equal(alone.dual_coef, binaries_of(ovr)[label].dual_coef)
    numbers, _ = ovr._members()
    U, live = ovr._union, ovr._union.live_slots()
    members = U.user_ids[live[np.isin(U.numbers[live], numbers)]]
    assert len(np.unique(members)) == len(numbers) == len(members)
    assert ovr.next_id == ovr.n_seen == len(X)


def test_a_correction_may_begin_a_class():
    X, y = DATA["dense"]
    ovr = OneVsRest(LASVM(C=10.0, gamma=0.05))
    ovr.learn_many(X[:200], y[:200], ids=np.arange(200) + 70)
    number = int(ovr.support_ids[4])
    ovr.learn_one(dict(enumerate(X[number - 70])), "new", id=number)
    assert ovr.predict_one(dict(enumerate(X[number - 70]))) == "new"
    U, live = ovr._union, ovr._union.live_slots()
    for label in NAMES:
        s = state_of(binaries_of(ovr)[label]).expansion
        slots = storage.live_slots(s)
        assert (s.y[slots[np.isin(s.ids[slots], U.numbers[live[U.user_ids[live] == number]])]] < 0).all()
    ovr.learn_one({0: 1.0}, "red")
    assert ovr.next_id == 271
    assert OneVsRest.from_bytes(ovr.to_bytes()).next_id == 271


@every_model
def test_weights_and_times(model):
    X, y = DATA["few features"]
    w = np.random.default_rng(7).choice([0.0, 0.5, 3.0], len(X))
    model = model.clone({"window": datetime.timedelta(seconds=200)})
    start = datetime.datetime(2026, 1, 1)
    t = [start + datetime.timedelta(seconds=float(s)) for s in np.arange(len(X)) - 60.0 * (np.arange(len(X)) % 9 == 0)]
    ovr, models = together(model, X, y, w=w, t=t), separate(model, X, y, NAMES, w=w, t=t)
    for label, alone in models.items():
        assert binaries_of(ovr)[label].digest() == alone.digest()


# ---------------------------------------------------------------------------------------------------------- new classes


def test_a_class_that_appears_learns_its_example_and_then_the_others_members():
    X, y = DATA["dense"]
    first = np.flatnonzero(y == "gold")[30]
    known = (y != "gold") | (np.arange(len(X)) >= first)
    X, y = X[known], y[known]
    t = int(np.flatnonzero(y == "gold")[0])
    ovr = OneVsRest(MODELS["LASVM"])
    ovr.learn_many(X[:t], y[:t])
    assert "gold" not in ovr.labels
    numbers, _ = ovr._members()
    ovr.learn_many(X[t:], y[t:])
    alone = MODELS["LASVM"].clone()
    alone.learn_one(dict(enumerate(X[t])), True, id=t)
    alone.learn_many(X[numbers], np.zeros(len(numbers), bool), ids=numbers)
    alone.learn_many(X[t + 1 :], y[t + 1 :] == "gold", ids=np.arange(t + 1, len(X)))
    assert np.array_equal(binaries_of(ovr)["gold"].dual_coef, alone.dual_coef)
    assert np.mean(ovr.predict_many(X) == y) > 0.95


def test_before_there_is_an_example_the_classes_are_equally_likely():
    assert OneVsRest(LASVM(), classes=["x", "y"]).predict_proba_one({}) == {"x": 0.5, "y": 0.5}


# ---------------------------------------------------------------------------------------------------------- prediction


@pytest.mark.parametrize(
    "labels", [["a", "b"], [3, 1], [True, False], [("a", 1), "b"]], ids=["strings", "integers", "bools", "mixed"]
)
def test_labels_of_many_kinds(labels):
    X, _ = problem(8, 200)
    which = (X[:, 0] > 0).astype(int)
    y = [labels[k] for k in which]
    ovr = OneVsRest(LASVM(C=10.0, gamma=0.05), classes=labels)
    ovr.learn_many(X, y)
    ovr.finish()
    values, p = ovr.decision_function_many(X), ovr.predict_proba_many(X)
    predicted = ovr.predict_many(X)
    assert list(predicted) == [labels[k] for k in values.argmax(axis=1)]
    assert np.mean([a == b for a, b in zip(predicted, y, strict=True)]) > 0.95
    assert np.allclose(p.sum(axis=1), 1.0)
    x = dict(enumerate(X[0]))
    assert ovr.predict_one(x) == predicted[0]
    assert ovr.predict_proba_one(x) == dict(zip(labels, p[0], strict=True))


def test_frames_give_frames():
    X, y = DATA["few features"]
    names = ["f", "g", "h"]
    for frame, series in (
        (pd.DataFrame(X, columns=names), pd.Series(y, name="colour")),
        (pl.DataFrame(X, names), pl.Series("colour", y)),
    ):
        ovr = OneVsRest(LASVM(C=10.0, gamma=0.3))
        ovr.learn_many(frame, series)
        predicted = ovr.predict_many(frame)
        assert type(predicted) is type(series)
        assert predicted.name == "colour"
        assert (predicted.to_numpy() == y).mean() > 0.7
        for table in (ovr.decision_function_many(frame), ovr.predict_proba_many(frame)):
            assert type(table) is type(frame)
            assert list(table.columns) == ovr.labels
    assert list(ovr.predict_proba_many(pd.DataFrame(X, columns=names, index=range(5, 605))).index) == [*range(5, 605)]


def test_one_is_predicted_as_many_are():
    X, y = DATA["binary"]
    ovr = together(MODELS["LASVM"], X, y)
    ovr.finish()
    X = X[:20] * np.linspace(0.5, 1.5, 20)[:, np.newaxis]
    values = ovr.decision_function_many(X)
    for x, row in zip(X, values, strict=True):
        assert [*ovr.decision_function_one(dict(enumerate(x)) | {"unknown": 0.0}).values()] == row.tolist()


# ------------------------------------------------------------------------------------------------- afterwards


@every_model
def test_finish_and_forget_are_those_of_each_class(model):
    X, y = DATA["dense"]
    ids = np.arange(len(X)) + 1000
    ovr, models = together(model, X, y, ids=ids), separate(model, X, y, NAMES, ids=ids)
    ovr.finish(1e-4)
    leaving, n_members = ovr.support_ids[::3], ovr.n_members
    for alone in models.values():
        alone.finish(1e-4)
    assert set(ovr.support_ids) == set(np.concatenate([alone.support_ids for alone in models.values()]))
    assert ovr.n_support == len(ovr.support_ids)
    assert ovr.forget([*leaving, 5]) == len(leaving)
    assert ovr.n_members == n_members - len(leaving)
    assert not np.isin(leaving, ovr.support_ids).any()
    assert ovr.forget(leaving) == 0
    ovr.learn_many(X[:50], y[:50])
    for label, alone in models.items():
        alone.forget(leaving)
        alone.learn_many(X[:50], y[:50] == label)
        assert np.array_equal(alone.dual_coef, binaries_of(ovr)[label].dual_coef)


@every_model
def test_coefficients_are_those_of_each_class(model):
    X, y = DATA["few features"]
    ovr = together(model, X, y, ids=np.arange(len(X)) + 1000)
    support, coefficients = ovr.support_ids, ovr.dual_coef
    assert coefficients.shape == (4, len(support)) == (4, ovr.n_support)
    for row, b, model in zip(coefficients, ovr.bias, binaries_of(ovr).values(), strict=True):
        own = np.flatnonzero(row)
        np.testing.assert_array_equal(np.sort(row[own]), np.sort(model.dual_coef))
        assert b == model.bias


@every_model
def test_a_label_is_corrected_in_every_class(model):
    X, y = DATA["dense"]
    ids = np.arange(len(X)) + 1000
    ovr, models = together(model, X, y, ids=ids), separate(model, X, y, NAMES, ids=ids)
    chosen, n_seen = ovr.support_ids[::7], ovr.n_seen
    right = {number: str(NAMES[(NAMES.index(y[number - 1000]) + 1) % 4]) for number in chosen.tolist()}
    assert ovr.relabel([*chosen, 5], [*right.values(), "red"]) == len(chosen)
    assert ovr.n_seen == n_seen
    for label, alone in models.items():
        for number, other in right.items():
            if alone.relabel(number, other == label) == 0 and other == label and alone.budget is alone.window is None:
                alone.learn_one(dict(enumerate(X[number - 1000])), True, id=number)
        if ovr.model.budget is None and ovr.model.window is None:
            np.testing.assert_array_equal(alone.dual_coef, binaries_of(ovr)[label].dual_coef)
    assert set(ovr._members()[0]) <= set(ovr._union.numbers[ovr._union.live_slots()])
    for label, of_class in ovr._models.items():
        s = of_class.expansion
        user_ids = ovr._ids_of(s.ids[: s.counts[SLOTS]]).tolist()
        for user_id, sign in zip(user_ids, s.y[: s.counts[SLOTS]].tolist(), strict=True):
            assert sign == 0 or user_id not in right or (sign > 0) == (right[user_id] == label)
    assert OneVsRest.from_bytes(ovr.to_bytes()).digest() == ovr.digest()


def test_several_classes_can_be_made_sparse():
    X, y = DATA["few features"]
    ovr, models = together(MODELS["G"], X, y), separate(MODELS["G"], X, y, NAMES)
    ovr.sparsify()
    for label, alone in models.items():
        alone.sparsify()
        np.testing.assert_array_equal(alone.dual_coef, binaries_of(ovr)[label].dual_coef)


def test_what_a_snapshot_cannot_hold_is_named():
    ovr = OneVsRest(LASVM())
    ovr.learn_one({"a": 1.0}, ("x", "y"))
    with pytest.raises(SnapshotError, match=r"\('x', 'y'\) is a tuple"):
        ovr.to_bytes()
    with pytest.raises(SnapshotError, match=r"expected 'LASVM'; `streamsvm\.load` reads"):
        LASVM.from_bytes(OneVsRest(LASVM()).to_bytes())


# --------------------------------------------------------------------------------------------------------------- errors


REFUSED = {
    "a label that is None": ([1.0], [None], {}, ValueError, r"y\[0\] is None"),
    "a label that is NaN": ([1.0], [float("nan")], {}, ValueError, r"y\[0\] is nan"),
    "a label that is a list": ([1.0], [["a"]], {}, TypeError, r"y\[0\] is \['a'\], a list"),
    "one label": ([1.0], "ab", {}, TypeError, "y='ab' must be a sequence"),
    "too few labels": ([1.0, 2.0], ["a"], {}, ValueError, "y has 1 labels for 2 rows"),
    "a feature that is infinite": ([1.0, np.inf], ["a", "c"], {}, ValueError, "feature 0 in row 1 is inf"),
    "a weight below 0": ([1.0], ["a"], {"w": -1.0}, ValueError, "w holds -1.0"),
    "a weight too large": ([1.0], ["a"], {"w": 1e308}, ValueError, "w holds 1e"),
    "an id that is none": ([1.0], ["a"], {"ids": [0.5]}, ValueError, "integers are needed"),
}


@pytest.mark.parametrize(("x", "y", "others", "error", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_changes_nothing(x, y, others, error, message):
    X, labels = problem(9, 60, 1)
    ovr = OneVsRest(LASVM(C=100.0))
    ovr.learn_many(X, labels)
    before = ovr.digest()
    with pytest.raises(error, match=message):
        ovr.learn_many(np.array(x)[:, np.newaxis], y, **others)
    assert ovr.digest() == before
    ovr.learn_many(X, labels)


def test_one_example_that_is_refused_changes_nothing():
    X, labels = problem(9, 60, 2)
    ovr, poly = OneVsRest(LASVM(C=100.0)), OneVsRest(LASVM(kernel="poly", scaling=None))
    for model in (ovr, poly):
        model.learn_many(X, labels)
    before = ovr.digest(), poly.digest()
    for x, y, others, error, message in (
        ({"a": float("inf")}, "new", {}, ValueError, "feature 'a' is inf"),
        ({"a": "b"}, "new", {}, TypeError, "feature 'a' is 'b'"),
        ({0: 1.0}, None, {}, ValueError, "y is None"),
        ({0: 1.0}, {}, {}, TypeError, "y is {}, a dict"),
        ({0: 1.0}, "new", {"w": -1.0}, ValueError, "w=-1.0"),
        ({0: 1.0}, "new", {"id": "x"}, ValueError, "id='x'"),
    ):
        with pytest.raises(error, match=message):
            ovr.learn_one(x, y, **others)
    with pytest.raises(ValueError, match="kernel of example 60 with itself"):
        poly.learn_one({0: 1e15}, "new")
    with pytest.raises(ValueError, match=r"X\[1\].*scale the features"):
        poly.predict_many(np.array([[1.0, 1.0], [1e17, 1e17]]))
    for call in (poly.predict_one, poly.predict_proba_one, poly.decision_function_one):
        with pytest.raises(ValueError, match="scale the features"):
            call({0: 1e17})
    with pytest.raises(ValueError, match="tol=0"):
        ovr.finish(0)
    with pytest.raises(ValueError, match="signed 64-bit"):
        ovr.forget("a")
    assert (ovr.digest(), poly.digest()) == before
    assert ovr.labels == sorted(set(ovr.labels), key=ovr.labels.index)


def test_a_correction_of_an_example_that_no_class_keeps_changes_nothing():
    """The union may keep its vector for longer than the classes, until they squeeze their holes out."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = OneVsRest(LASVM(C=10.0, gamma=0.5, budget=30))
    model.learn_many(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    live = model._union.live_slots()
    kept_longer = np.setdiff1d(model._union.numbers[live], model._members()[0])
    assert len(kept_longer)
    before = model.digest()
    assert model.relabel(kept_longer, 1) == 0
    assert model.digest() == before


@pytest.mark.parametrize("new", ["a", "z", None])
def test_a_class_is_renamed_merged_or_removed(new):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 2)) + 4 * np.eye(3)[np.arange(90) % 3][:, :2]
    y = np.array(["a", "b", "c"])[np.arange(90) % 3]
    model = OneVsRest(LASVM(C=10.0, gamma=0.5, admission="all"))
    model.learn_many(X, y)
    before = model.decision_function_many(X)
    of_b = model.class_counts["b"]
    n = model.rename_class("b", new)
    assert 0 < n <= of_b
    assert model.labels == {"a": ["a", "c"], "z": ["a", "z", "c"], None: ["a", "c"]}[new]
    values = model.decision_function_many(X)
    if new == "z":
        np.testing.assert_array_equal(values, before)
    elif new == "a":
        model.finish()
        assert (model.predict_many(X) == np.where(y == "b", "a", y)).mean() > 0.9
    assert type(model).from_bytes(model.to_bytes()).digest() == model.digest()
    model.learn_many(X[y == "b"], ["b"] * 30)  # it may come again
    assert model.labels[-1] == "b"
    assert model.rename_class("no such class", "a") == 0
