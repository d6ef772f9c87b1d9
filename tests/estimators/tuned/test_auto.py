"""The learner that tunes itself: how it learns, replays and is saved.  Its decisions are tested in test_tuning."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from river import datasets, multiclass

from streamsvm import LASVM, AutoLASVM, OneVsRest, SnapshotError
from streamsvm.core.saving import snapshot
from streamsvm.estimators.learner.state import slots_of
from streamsvm.estimators.tuned import tuning


def problem(n=1700, seed=0, turn=None):
    """Two classes in three dimensions with noise; all labels are turned from one record on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n) > 0.0
    if turn:
        y[turn:] = ~y[turn:]
    return X, y


def learned(X, y, parts=1, model=None, **others):
    model = model or AutoLASVM()
    for own in np.array_split(np.arange(len(y)), parts):
        model.learn_many(X[own], y[own], **{name: values[own] for name, values in others.items()})
    return model


def prequential(model, X, y, at_once=50):
    """Share of records that are predicted rightly before they are learned."""
    right = 0
    for b in range(0, len(y), at_once):
        own = slice(b, b + at_once)
        right += int((model.predict_many(X[own]) == y[own]).sum())
        model.learn_many(X[own], y[own])
    return right / len(y)


@pytest.mark.parametrize("parts", [2, 37])
def test_batches_of_any_size_give_the_same_model(parts):
    X, y = problem()
    model, other = learned(X, y), learned(X, y, parts)
    assert model.digest() == other.digest()
    assert model.history_ == other.history_
    np.testing.assert_array_equal(model.decision_function_many(X), other.decision_function_many(X))


def test_a_loop_gives_the_model_of_a_batch():
    X, y = problem(1300)
    model = AutoLASVM()
    for x, label in zip(X, y, strict=True):
        model.learn_one(dict(enumerate(x)), bool(label))
    assert model.digest() == learned(X, y).digest()


def grown(X):
    """Rows to which features come now and then."""
    return [dict(enumerate(x)) | ({f"new {t // 70}": 1.0} if t % 7 == 0 else {}) for t, x in enumerate(X.tolist())]


def test_new_features_come_to_a_loop_as_to_a_batch():
    X, y = problem(1300)
    model, batch = AutoLASVM(), AutoLASVM()
    for x, label in zip(grown(X), y, strict=True):
        model.learn_one(x, label)
    batch.learn_many(grown(X), y)
    assert model.digest() == batch.digest()


def test_in_a_loop_challengers_learn_at_checks():
    X, y = problem(590)
    model = AutoLASVM()
    for x, label in zip(X.tolist(), y, strict=True):
        model.learn_one(dict(enumerate(x)), label)
    assert model.n_seen == model._state.n_seen == 590
    assert {own.n_seen for own in model._models.values() if own is not model._state} == {550}
    model.digest()
    assert {own.n_seen for own in model._models.values()} == {590}


def test_a_look_between_two_checks_changes_nothing():
    X, y = problem(1300, turn=1100)
    looked, plain = AutoLASVM(), AutoLASVM()
    looks = (AutoLASVM.digest, AutoLASVM.to_bytes, copy.deepcopy, lambda model: model.kernel_evaluations)
    for t, (x, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        plain.learn_one(dict(enumerate(x)), label)
        if t % 130 < 100:
            looked.learn_one(dict(enumerate(x)), label)
        elif t % 130 == 100:
            looked.learn_many(X[t : t + 30], y[t : t + 30])
        if t % 23 == 0 and t % 130 < 100:
            looks[t // 23 % len(looks)](looked)
    assert looked.digest() == plain.digest()
    assert looked.predict_one(dict(enumerate(X[0]))) == plain.predict_one(dict(enumerate(X[0])))


def test_what_a_loop_predicts_is_what_batches_predict():
    X, y = problem(1200)
    model, batch = AutoLASVM(), AutoLASVM()
    for t in range(0, 1200, 30):
        own = slice(t, t + 30)
        before = [model.decision_function_one(dict(enumerate(x))) for x in X[own]]
        np.testing.assert_array_equal(before, batch.decision_function_many(X[own]))
        for x, label in zip(X[own], y[own], strict=True):
            model.learn_one(dict(enumerate(x)), label)
        batch.learn_many(X[own], y[own])


def test_an_example_without_a_known_feature_is_predicted_alike_in_a_batch_and_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(1.0, size=(300, 3))
    model, strange = AutoLASVM(), [{"a": 1.0, "b": 2.0, "c": 3.0}]
    model.learn_many(X, X[:, 0] > X[:, 1])
    alone = [model.decision_function_one(x) for x in strange]
    np.testing.assert_array_equal(model.decision_function_many(strange), alone)


def test_a_sparse_batch_and_dicts_give_the_same_model():
    X, y = problem(300)
    dense, sparse, dicts = learned(X, y), AutoLASVM(), AutoLASVM()
    sparse.learn_many(sp.csr_matrix(X), y)
    dicts.learn_many([dict(enumerate(x)) for x in X], y)
    assert dense.digest() == dicts.digest()
    np.testing.assert_array_equal(dense.decision_function_many(X), sparse.decision_function_many(X))


@pytest.mark.parametrize("cut", [0, 20, 999, 1000, 1001, 1325])
def test_a_saved_model_goes_on_as_the_original(cut):
    X, y = problem(turn=1100)
    model = learned(X[:cut], y[:cut])
    loaded = AutoLASVM.from_bytes(model.to_bytes(), cache_mb=0.5)
    assert loaded.digest() == model.digest()
    assert loaded.to_bytes() == AutoLASVM.from_bytes(model.to_bytes(), cache_mb=0.5).to_bytes()
    learned(X[cut:], y[cut:], 3, model)
    learned(X[cut:], y[cut:], 5, loaded)
    assert loaded.digest() == model.digest()
    assert loaded.history_ == model.history_
    assert loaded.cache_mb == 0.5


def test_the_state_of_a_drifting_stream_survives(tmp_path):
    """With windows among the candidates."""
    X, y = problem(9000)
    y ^= (np.arange(9000) // 1000) % 2 == 1
    cut = 4000
    model = learned(X[:cut], y[:cut])
    while not any(m.window for m in model._models.values()):
        learned(X[cut : cut + 50], y[cut : cut + 50], 1, model)
        cut += 50
    assert {promotion.way for promotion in model.history_} >= {"warm-up", "fresh"}
    model.save(tmp_path / "model")
    loaded = AutoLASVM.load(tmp_path / "model")
    more = problem(1500, seed=1)
    assert learned(*more, 1, loaded).digest() == learned(*more, 4, model).digest()


KILLED = """
import os, signal, sys
import numpy as np
from streamsvm import AutoLASVM
data = np.load(sys.argv[1])
X, y, model = data["X"], data["y"], AutoLASVM()
for b in range(0, len(y), 170):
    model.learn_many(X[b : b + 170], y[b : b + 170])
    model.save(sys.argv[2])
    if b > 1000:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_goes_on_from_its_file(tmp_path):
    X, y = problem()
    np.savez(tmp_path / "data.npz", X=X, y=y)
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "data.npz", tmp_path / "model"], check=False)
    assert done.returncode == -9
    model = AutoLASVM.load(tmp_path / "model")
    assert 0 < model.n_seen < len(y)
    assert learned(X[model.n_seen :], y[model.n_seen :], 2, model).digest() == learned(X, y).digest()


def test_it_is_about_as_good_as_the_best_setting():
    X, y = problem(4000)
    auto = AutoLASVM()
    found = prequential(auto, X, y)
    fixed = [prequential(LASVM(C=s.C, gamma=s.gamma), X, y) for s in tuning.STARTS]
    assert found > max(fixed) - 0.01
    assert auto.history_[0].n_seen == 1000
    assert auto.champion_ == auto.history_[-1].setting


def test_it_follows_a_change():
    X, y = problem(6000, turn=3000)
    after = slice(3000, 6000)
    auto = learned(X[:3000], y[:3000])
    fixed = [learned(X[:3000], y[:3000], 1, LASVM(C=s.C, gamma=s.gamma)) for s in tuning.STARTS]
    found = [prequential(model, X[after], y[after]) for model in fixed]
    assert prequential(auto, X[after], y[after]) > max(found) + 0.02
    again, soon = learned(X[:3000], y[:3000]), False
    for b in range(3000, 3600, 50):
        learned(X[b : b + 50], y[b : b + 50], 1, again)
        soon |= again._tuner.predicting == again._tuner.fresh.number
    assert soon or len(again.history_) > 1  # A challenger without members predicts, or has taken over.


def test_with_a_limit_it_begins_with_a_smaller_c():
    """A large one holds on to wrong labels, which then fill the limit."""
    settings = [[c.setting for c in AutoLASVM(budget=n)._tuner.candidates.values()] for n in (None, 500)]
    assert settings[0] == list(tuning.STARTS)
    assert settings[1] == [tuning.Setting(1.0, 1.0), *tuning.STARTS[1:]]


def test_its_cost_is_bounded():
    """In kernel values, once the warm-up is over."""
    X, y = problem(9000)
    auto = learned(X[:5000], y[:5000])
    fixed = learned(X[:5000], y[:5000], 1, LASVM(*auto.champion_[:1], gamma=auto.champion_.gamma))
    before = auto.kernel_evaluations, fixed.kernel_evaluations
    learned(X[5000:], y[5000:], 1, auto)
    learned(X[5000:], y[5000:], 1, fixed)
    assert auto.kernel_evaluations - before[0] < 2.5 * (fixed.kernel_evaluations - before[1])


def test_examples_are_forgotten_and_corrected_in_all_models():
    X, y = problem(400)
    model = learned(X, y, ids=np.arange(400) + 50)
    kept = np.unique(np.concatenate([m.expansion.ids[m.expansion.y != 0] for m in model._models.values()]))
    gone, wrong = kept[:5], kept[5:8]
    assert model.forget([*gone.tolist(), 10]) == 5
    assert not any(len(slots_of(m, gone)) for m in model._models.values())
    assert model.forget(gone) == 0
    assert model.relabel([*wrong.tolist(), 10], ~np.append(y[wrong - 50], True)) == 3
    for m in model._models.values():
        slots = slots_of(m, wrong)
        np.testing.assert_array_equal(m.expansion.y[slots] > 0, ~y[m.expansion.ids[slots] - 50])


def test_an_id_that_returns_replaces_the_example_everywhere():
    X, y = problem(400)
    model = learned(X, y, ids=np.arange(400))
    number = int(model.support_ids[0])
    model.learn_one(dict(enumerate(X[number] + 1.0)), bool(y[number]), id=number)
    assert all(len(slots_of(m, number)) <= 1 for m in model._models.values())
    assert model.next_id == 401


def test_a_weight_of_zero_neither_teaches_nor_counts():
    X, y = problem(60)
    model = AutoLASVM()
    model.learn_many(X, y, w=np.zeros(60))
    assert model.n_members == 0
    assert model.n_seen == 60
    assert all(sum(candidate.wrong) == 0 for candidate in model._tuner.candidates.values())


@pytest.mark.parametrize(
    ("x", "y", "w", "message"),
    [
        ({0: np.inf}, True, 1.0, "finite"),
        ({"new": np.inf}, True, 1.0, "finite"),
        ({0: 1.0}, 2, 1.0, "binary label"),
        ({0: 1.0}, True, -1.0, "w=-1"),
    ],
)
def test_a_refused_example_leaves_no_trace(x, y, w, message):
    model = learned(*problem(120))
    digest = model.digest()
    with pytest.raises(ValueError, match=message):
        model.learn_one(x, y, w)
    assert model.digest() == digest
    assert model.feature_names == [0, 1, 2]


@pytest.mark.parametrize("pos_weight", [3.0, "balanced"])
def test_weights_of_classes_and_budgets_replay_too(pos_weight):
    X, y = problem(1200)
    y &= X[:, 2] > 0.3
    model = learned(X, y, 1, AutoLASVM(pos_weight=pos_weight, budget=60))
    loop = AutoLASVM(pos_weight=pos_weight, budget=60)
    for x, label in zip(X, y, strict=True):
        loop.learn_one(dict(enumerate(x)), bool(label))
    assert loop.digest() == model.digest()
    assert max(m.n_members for m in model._models.values()) <= 60


def test_several_classes_with_river_s_wrapper():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) * [1.0, 100.0]
    y = np.digitize(X[:, 0] + X[:, 1] / 100.0, [-0.7, 0.7]).tolist()
    model, right = multiclass.OneVsRestClassifier(AutoLASVM()), 0
    for t, (x, label) in enumerate(zip(X.tolist(), y, strict=True)):
        right += t >= 200 and model.predict_one(dict(enumerate(x))) == label
        model.learn_one(dict(enumerate(x)), label)
    assert right > 180


def test_copies_go_their_own_way():
    X, y = problem(1100)
    model = learned(X[:900], y[:900])
    other = copy.deepcopy(model)
    learned(X[900:], y[900:], 1, other)
    assert model.n_seen == 900
    assert learned(X[900:], y[900:], 1, model).digest() == other.digest()


def test_a_model_whose_challengers_come_and_go_can_be_saved():
    """Kernel values that a challenger's parent computed are not counted again when the challenger leaves."""
    model, values = AutoLASVM(), 0
    stream = 2 * list(datasets.Bananas())
    for at in range(0, 7300, 100):
        model.learn_many(*zip(*stream[at : at + 100], strict=True))
        assert model.kernel_evaluations >= values
        values = model.kernel_evaluations
    assert len(model.history_) == 1  # a champion that stays long: every challenger begins as it
    assert AutoLASVM.from_bytes(model.to_bytes()).digest() == model.digest()


def test_a_spoiled_snapshot_is_refused():
    X, y = problem(1100)
    meta, arrays = snapshot.unpack(learned(X, y).to_bytes(), "AutoLASVM")
    for change in ({"tuner": {}}, {"parameters": {"C": 1.0}}, {"features": 3}, {"kernel_values_before": -(2**63)}):
        with pytest.raises(SnapshotError):
            AutoLASVM.from_bytes(snapshot.pack("AutoLASVM", meta | change, arrays))
    with pytest.raises(SnapshotError):
        AutoLASVM.from_bytes(snapshot.pack("AutoLASVM", meta, {}))


def numbers_in(value, path=()):
    """The paths of all whole numbers in a value of JSON."""
    if type(value) is int:
        yield path
    for key, part in value.items() if type(value) is dict else enumerate(value) if type(value) is list else ():
        yield from numbers_in(part, (*path, key))


@pytest.mark.parametrize("number", [51, 10**12, 2**62])
def test_a_snapshot_that_loads_can_be_saved_and_loaded_again(number):
    """Whichever of the tuner's counters it says so large, and after more has been learned."""
    X, y = problem(1130)
    meta, arrays = snapshot.unpack(learned(X, y).to_bytes(), "AutoLASVM")
    n_loaded = 0
    for path in numbers_in(meta["tuner"]):
        changed = copy.deepcopy(meta)
        place = changed["tuner"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = number
        try:
            model = AutoLASVM.from_bytes(snapshot.pack("AutoLASVM", changed, arrays))
        except SnapshotError:
            continue
        n_loaded += 1
        learned(X[:120], y[:120], 1, model)
        again = AutoLASVM.from_bytes(model.to_bytes())
        assert again.digest() == model.digest(), path
    assert n_loaded > 2
    json.dumps(meta)


def test_the_scale_s_memory_is_a_choice():
    X, y = problem(900)
    X[600:] += 3.0
    short, long = learned(X, y, 1, AutoLASVM(scale_memory=100)), learned(X, y)
    means = [model._common.scale.state.m[0] for model in (short, long)]
    assert means[0] > 2.5
    assert means[1] < 1.5
    loaded = AutoLASVM.from_bytes(short.to_bytes())
    assert loaded.scale_memory == 100
    more = problem(200, seed=1)
    assert learned(*more, 1, loaded).digest() == learned(*more, 3, short).digest()
    with pytest.raises(ValueError, match="scale_memory"):
        AutoLASVM(scale_memory=5)


def rare(n=1500, seed=0):
    """Two classes that overlap, of which one is rare."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.random(n) < 0.1
    X[y] += 1.2
    return X, y


def test_models_are_judged_by_the_g_mean():
    X, y = rare()
    model, other = AutoLASVM(metric="gmean"), AutoLASVM()
    assert learned(X, y, 1, model).digest() == learned(X, y, 23, AutoLASVM(metric="gmean")).digest()
    loop = AutoLASVM(metric="gmean")
    for x, label in zip(X, y, strict=True):
        loop.learn_one(dict(enumerate(x)), bool(label))
    assert loop.digest() == model.digest()
    half = learned(X[:730], y[:730], 1, AutoLASVM(metric="gmean"))
    assert learned(X[730:], y[730:], 1, AutoLASVM.from_bytes(half.to_bytes())).digest() == model.digest()
    negatives, positives = model._tuner.judged
    assert positives == np.count_nonzero(y)
    assert negatives <= positives + tuning.AHEAD
    learned(X, y, 1, other)
    (X, y), recalls = rare(2000, 1), {}
    for own in (model, other):
        right = own.predict_many(X) == y
        recalls[own.metric] = float(np.sqrt(right[y].mean() * right[~y].mean()))
    assert recalls["gmean"] > recalls["accuracy"] + 0.1
    with pytest.raises(ValueError, match="metric='f1' must be"):
        AutoLASVM(metric="f1")
    with pytest.raises(ValueError, match="several classes"):
        OneVsRest(AutoLASVM(metric="gmean"))


def test_a_snapshot_from_before_there_was_a_metric():
    X, y = problem(1130)
    model = learned(X, y)
    meta, arrays = snapshot.unpack(model.to_bytes(), "AutoLASVM")
    del meta["parameters"]["metric"], meta["tuner"]["judged"]
    for _, candidate in meta["tuner"]["candidates"]:
        del candidate["bin"]
    assert AutoLASVM.from_bytes(snapshot.pack("AutoLASVM", meta, arrays)).digest() == model.digest()
