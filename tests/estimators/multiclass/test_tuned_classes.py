"""`OneVsRest(AutoLASVM())`: the model of each class tunes itself."""

import copy
import pickle

import numpy as np
import pytest
from river import datasets

from streamsvm import LASVM, AutoLASVM, OneVsRest, SnapshotError
from streamsvm.core.saving import snapshot
from streamsvm.estimators.learner.state import slots_of
from tests.helpers.river_checks import hold

NAMES = np.array(["red", "green", "blue", "gold"])


def problem(n=1150, seed=0, late=300):
    """Classes around centres, on features of different sizes; the last class comes late."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(4, size=n)
    classes[:late] %= 3
    centres = np.random.default_rng(1).normal(size=(4, 5))
    return (centres[classes] + 0.6 * rng.normal(size=(n, 5))) * [1.0, 10.0, 1e3, 1.0, 0.1], NAMES[classes]


def learned(X, y, parts=1, model=None, **others):
    model = model or OneVsRest(AutoLASVM())
    for own in np.array_split(np.arange(len(y)), parts):
        model.learn_many(X[own], y[own], **{name: values[own] for name, values in others.items()})
    return model


def in_a_loop(X, y, model=None):
    model = model or OneVsRest(AutoLASVM())
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(x)), label)
    return model


@pytest.mark.parametrize("parts", [2, 37])
def test_batches_may_be_cut_anywhere(parts):
    X, y = problem()
    model, other = learned(X, y), learned(X, y, parts)
    assert model.digest() == other.digest()
    np.testing.assert_array_equal(model.decision_function_many(X), other.decision_function_many(X))


def test_a_loop_gives_the_model_of_a_batch():
    X, y = problem()
    assert in_a_loop(X, y).digest() == learned(X, y).digest()


def test_it_tells_classes_apart():
    records, right = list(datasets.ImageSegments()), 0
    model = OneVsRest(AutoLASVM())
    for x, y in records:
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    assert right / len(records) > 0.93


def test_each_class_reports_what_it_found():
    X, y = problem()
    model = learned(X, y)
    assert model.champions_.keys() == model.histories_.keys() == set(model.labels) == set(NAMES)
    assert model.histories_["gold"] == []  # It came late, and is still in its warm-up.
    for label in ("red", "green", "blue"):
        assert model.histories_[label][0].way == "warm-up"
        assert model.histories_[label][-1].setting == model.champions_[label]


def test_a_class_that_comes_late_has_a_warm_up_of_its_own():
    X, y = problem(1700, late=520)
    model = learned(X, y)
    first = int(np.flatnonzero(y == "gold")[0])
    assert model._models["red"]._tuner.warming_up is False
    (promotion,) = [p for p in model.histories_["gold"] if p.way == "warm-up"]
    assert first + 950 <= promotion.n_seen <= first + 1000


def test_a_class_that_appears_learns_the_others_members_as_negatives():
    X, y = problem(400, late=350)
    before = learned(X[:350], y[:350])
    known = set(before._members()[0].tolist())
    first = 350 + int(np.flatnonzero(y[350:] == "gold")[0])
    model = learned(X[350 : first + 1], y[350 : first + 1], 1, before)
    for own in model._models["gold"]._models.values():
        s = own.expansion
        live = s.y != 0
        assert s.ids[live][s.y[live] > 0].tolist() == [first]
        assert set(s.ids[live][s.y[live] < 0].tolist()) <= known | set(range(350, first))
        assert np.count_nonzero(s.y < 0) > 0
    assert model._models["gold"].n_seen == model.n_seen == first + 1
    assert (model.predict_many(X[:300]) == y[:300]).mean() > 0.9


@pytest.mark.parametrize("cut", [0, 30, 301, 1001])
def test_a_restored_model_continues_bit_for_bit(cut, tmp_path):
    X, y = problem(1100)
    model = in_a_loop(X[:cut], y[:cut])
    model.save(tmp_path / "model")
    loaded = OneVsRest.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.digest() == model.digest()
    assert loaded.champions_ == model.champions_
    learned(X[cut:], y[cut:], 3, model)
    learned(X[cut:], y[cut:], 5, loaded)
    assert loaded.digest() == model.digest()
    np.testing.assert_array_equal(loaded.decision_function_many(X), model.decision_function_many(X))


def test_parameters_survive_a_snapshot():
    model = OneVsRest(AutoLASVM(pos_weight=2.0, budget=50, on_budget="merge", cache_mb=8.0), ["a"])
    loaded = OneVsRest.from_bytes(model.to_bytes())
    assert loaded.model._get_params() == model.model._get_params()
    assert loaded.labels == ["a"]
    assert OneVsRest.from_bytes(model.to_bytes(), cache_mb=3.0).model.cache_mb == 3.0


def test_a_spoiled_snapshot_is_refused():
    meta, arrays = snapshot.unpack(learned(*problem(120)).to_bytes(), "OneVsRest")
    for change in ({"states": []}, {"algorithm": "LASVM"}, {"labels": ["x"] * 3}, {"states": [{}] * 3}):
        with pytest.raises(SnapshotError):
            OneVsRest.from_bytes(snapshot.pack("OneVsRest", meta | change, arrays))


def test_examples_are_forgotten_and_corrected_in_all_classes():
    X, y = problem(300)
    model = learned(X, y, ids=np.arange(300) + 50)
    gone, wrong = model.support_ids[:4], model.support_ids[5:8]
    before = model.n_members
    assert model.forget([*gone.tolist(), 10]) == 4
    assert model.n_members == before - 4
    assert not any(len(slots_of(own, gone)) for own in model._all_states())
    assert model.forget(gone) == 0
    assert model.relabel([*wrong.tolist(), 10], "green") == 3
    for label, own in model._models.items():
        for each in own._models.values():
            slots = slots_of(each, wrong)
            assert ((each.expansion.y[slots] > 0) == (label == "green")).all()


def test_a_correction_may_begin_a_class():
    X, y = problem(200)
    model = learned(X, y)
    number = int(model.support_ids[0])
    assert model.relabel(number, "new") == 1
    assert model.labels[-1] == "new"
    assert model.predict_many(X[[number]]).tolist() == ["new"]


def test_finish_and_coefficients():
    X, y = problem(300)
    model = learned(X, y)
    model.finish()
    assert model.dual_coef.shape == (len(model.labels), model.n_support)
    np.testing.assert_allclose(model.dual_coef.sum(axis=1), 0.0, atol=1e-9)
    assert model.bias.shape == (len(model.labels),)
    with pytest.raises(TypeError, match="no sparsify"):
        model.sparsify()


def test_copies_go_their_own_way():
    X, y = problem(400)
    model = in_a_loop(X[:325], y[:325])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301 - our own bytes
        assert learned(X[325:], y[325:], 1, other).digest() == learned(X[325:], y[325:], 1, copy.copy(model)).digest()
    assert model.n_seen == 325


def test_ids_that_return_replace_examples():
    X, y = problem(300)
    ids = np.arange(300)
    ids[200:250] = ids[100:150]
    model = learned(X, y, ids=ids)
    one = OneVsRest(AutoLASVM())
    for x, label, number in zip(X.tolist(), y.tolist(), ids.tolist(), strict=True):
        one.learn_one(dict(enumerate(x)), label, id=number)
    assert one.digest() == model.digest()
    assert all(len(slots_of(own, ids[200:250])) <= 50 for own in model._all_states())


def test_what_is_refused_changes_nothing():
    model = learned(*problem(120))
    digest = model.digest()
    for x, y, w in (({0: np.inf}, "red", 1.0), ({"new": np.inf}, "else", 1.0), ({0: 1.0}, "red", -1.0)):
        with pytest.raises(ValueError, match=r"finite|w=-1"):
            model.learn_one(x, y, w)
    assert model.digest() == digest
    assert "else" not in model.labels


@pytest.mark.long
def test_every_check_of_river_passes():
    hold(OneVsRest(AutoLASVM()), 62)


def test_it_is_what_one_versus_rest_makes():
    model = OneVsRest(AutoLASVM())
    assert isinstance(model, OneVsRest)
    assert isinstance(model.clone(), type(model))
    assert not hasattr(OneVsRest(LASVM()), "champions_")
