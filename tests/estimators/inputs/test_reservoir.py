"""The reservoir: a uniform sample of each class, and what `finish` and `forget` do with it."""

import copy
import datetime
import json

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example as try_first
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, OneVsRest, SnapshotError
from streamsvm.core import storage
from streamsvm.core.saving import snapshot
from streamsvm.estimators.inputs import reservoir, sample
from streamsvm.estimators.inputs.raw_rows import from_rows
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.estimators.learner import finishing
from streamsvm.online.removal import tracked_values
from streamsvm.sklearn_api import LASVMClassifier

LEARNERS = [LASVM, LASVMG, LASVMNC, LASVMI, FullSVM]
START = datetime.datetime(2026, 1, 1)


def contents(sample):
    return [
        (e.number, e.id, e.born, e.positive, e.box, dict(zip(e.columns.tolist(), e.values.tolist(), strict=True)))
        for e in sample
    ]


def problem(n=600, seed=0, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0


def by_class(n=3000, seed=0):
    """A stream of negatives, then positives; and others to test on."""
    X, y = problem(n + 1000, seed)
    order = np.argsort(y[:n], kind="stable")
    return X[order], y[order], X[n:], y[n:]


def member_ids(model):
    return set(state_of(model).expansion.ids[storage.live_slots(state_of(model).expansion)].tolist())


def accuracy(model, X, y):
    return float(np.mean(model.predict_many(X) == y))


def hinge_loss(model, X, y):
    return float(np.maximum(0.0, 1.0 - np.where(y, 1, -1) * model.decision_function_many(X)).sum())


# ---------------------------------------------------------------------------------------------------------- the sample

NOTES = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 40)),  # an id of the user's own
        st.integers(0, 30),  # how old it arrives
        st.booleans(),
        st.sampled_from([0.0, 1.0, 2.5]),
        st.dictionaries(st.integers(0, 6), st.sampled_from([0.0, 1.0, -0.5]), max_size=5),
        st.sampled_from(["note", "note", "note", "forget", "relabel"]),
    ),
    max_size=120,
)


@settings(max_examples=200)
@given(NOTES, st.integers(0, 15), st.one_of(st.none(), st.integers(1, 60)), st.sampled_from([10, 25, 10**6]))
def test_it_is_its_slow_twin(notes, size, span, max_values):
    fast, slow = Reservoir(size, span), naive.NaiveReservoir(size, span, max_values)
    with pytest.MonkeyPatch.context() as patch:
        for module in (reservoir, sample):
            patch.setattr(module, "MAX_VALUES", max_values)
        for t, (own_id, age, positive, box, x, what) in enumerate(notes):
            number_or_id = 1000 + t if own_id is None else own_id
            if what == "forget":
                fast.forget(np.array([number_or_id]))
                slow.forget([number_or_id])
            elif what == "relabel":
                fast.relabel(number_or_id, positive, 2.0)
                slow.relabel(number_or_id, positive, 2.0)
            columns, values = np.array(list(x), np.int64), np.array(list(x.values()), np.float64)
            fast.note(t, number_or_id, t - age, t, positive, box, columns, values)
            slow.note(t, number_or_id, t - age, t, positive, box, x)
            assert contents(fast) == sorted(slow.kept)
            assert [own.room for own in fast._classes] == slow.rooms


@settings(max_examples=150)
@given(
    NOTES,
    st.lists(st.integers(1, 40), max_size=8),
    st.integers(0, 15),
    st.one_of(st.none(), st.integers(1, 10)),
    st.sampled_from([10, 25, 10**6]),
)
def test_blocks_are_its_slow_twin(notes, cuts, size, span, max_values):
    """Blocks and single examples by turns; what is forgotten or relabelled comes before a block."""
    fast, slow = Reservoir(size, span, by_time=False), naive.NaiveReservoir(size, span, max_values)
    ends = [*np.minimum(np.cumsum(cuts), len(notes)).tolist(), len(notes)]
    with pytest.MonkeyPatch.context() as patch:
        for module in (reservoir, sample):
            patch.setattr(module, "MAX_VALUES", max_values)
        for turn, (b, e) in enumerate(zip([0, *ends], ends, strict=False)):
            ids = np.array([1000 + t if notes[t][0] is None else notes[t][0] for t in range(b, e)], np.int64)
            for own_id, note in zip(ids[:1].tolist(), notes[b:e], strict=False):
                if note[5] == "forget":
                    fast.forget(np.array([own_id]))
                    slow.forget([own_id])
                elif note[5] == "relabel":
                    fast.relabel(own_id, note[2], 2.0)
                    slow.relabel(own_id, note[2], 2.0)
            positive, box = (np.array([note[k] for note in notes[b:e]]) for k in (2, 3))
            rows = [(np.array(list(note[4]), np.int64), np.array(list(note[4].values()))) for note in notes[b:e]]
            if turn % 3 == 2:
                for t, own_id in enumerate(ids.tolist()):
                    fast.note(b + t, own_id, b + t, b + t, bool(positive[t]), box[t], *rows[t])
            elif e > b:
                born, lo, hi = np.arange(b, e), np.where(positive, 0.0, -box), np.where(positive, box, 0.0)
                columns, values = map(np.concatenate, zip(*rows, strict=True))
                starts = np.cumsum([0, *(len(own) for own, _ in rows)])
                fast.note_block(b, ids, born, born, lo, hi, from_rows(starts, columns, values))
            for t, own_id in enumerate(ids.tolist()):
                slow.note(b + t, own_id, b + t, b + t, bool(positive[t]), box[t], notes[b + t][4])
            if turn % 3 == 2 or e == len(notes):  # looking joins the parts
                assert contents(fast) == sorted(slow.kept)
                assert [own.room for own in fast._classes] == slow.rooms


@pytest.mark.parametrize("span", [None, 5])
def test_what_has_left_takes_no_memory(span):
    sample = Reservoir(40, span)
    for t in range(2000):
        sample.note(t, t, t, t - (span or t), t % 2 == 0, 1.0, np.zeros(1, np.int64), np.ones(1))
    assert all(len(heap) <= 40 for own in sample._classes for heap in (own._largest, own._oldest))


def test_priorities_are_those_of_split_mix():
    numbers = np.array([0, 1, 2, 255, 256, 2**40, 2**62])
    expected = [naive.split_mix(int(number)) for number in numbers]
    assert sample.priorities(numbers).tolist() == expected
    assert [sample.priority_of(int(number)) for number in numbers] == expected


def test_it_is_uniform_over_each_class():
    """5000 of 50 000 examples, in tenths of the stream; the standard deviation of a count is 20."""
    model = LASVM(C=1.0, gamma=1.0, reservoir=10_000)
    rng = np.random.default_rng(0)

    ones = from_rows(np.arange(1001), np.zeros(1000, np.int64), np.ones(1000))
    for number in range(0, 60_000, 1000):
        positive = rng.random(1000) < 0.3
        block = (np.arange(number, number + 1000), *[np.full(1000, number)] * 2, -1.0 * ~positive, 1.0 * positive)
        state_of(model).reservoir.note_block(number, *block, ones)
    for positive in (False, True):
        numbers = np.array([example.number for example in state_of(model).reservoir if example.positive == positive])
        counts = np.histogram(numbers, 10, (0, 60_000))[0]
        assert len(numbers) == 5000
        assert np.abs(counts - 500).max() < 4 * 20


FORMS = {"array": np.asarray, "sparse": sp.csr_matrix, "dicts": lambda X: [dict(enumerate(x)) for x in X]}


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 60), max_size=6),
    st.sampled_from(sorted(FORMS)),
    st.sampled_from([None, 30, datetime.timedelta(seconds=40)]),
    st.booleans(),
    st.sampled_from([0, 7, 50]),
)
@try_first(262144, [], "array", datetime.timedelta(seconds=40), False, 0)  # old members leave when there is no room
def test_batches_sample_as_a_loop_does(seed, cuts, form, window, own_ids, size):
    rng = np.random.default_rng(seed)
    n = 150
    X, y = problem(n, seed)
    X[rng.random(X.shape) < 0.3] = 0.0
    X *= 1.0 + 1e-12  # more than single precision holds
    ids, w = rng.permutation(n) // 2 if own_ids else None, rng.choice([0.0, 0.5, 1.0], n)
    times = [START + datetime.timedelta(seconds=float(s)) for s in np.arange(n) - rng.integers(0, 50, n)]
    t = times if isinstance(window, datetime.timedelta) else None
    one, many = (LASVM(C=5.0, gamma=0.3, window=window, reservoir=size) for _ in range(2))
    for i in range(n):
        own = {} if ids is None else {"id": int(ids[i])}
        x = {d: v for d, v in enumerate(X[i]) if v != 0.0 or form != "sparse"}
        one.learn_one(x, y[i], w=w[i], **own, **({} if t is None else {"t": t[i]}))
    for b, e in zip([0, *(ends := np.minimum(np.cumsum(cuts), n))], [*ends, n], strict=True):
        part = slice(b, e)
        own = None if ids is None else ids[part]
        many.learn_many(FORMS[form](X[part]), y[part], w[part], own, None if t is None else t[part])
    assert contents(state_of(one).reservoir) == contents(state_of(many).reservoir)
    assert one.digest() == many.digest()
    assert len(state_of(one).reservoir) <= size
    again = LASVM.from_bytes(many.to_bytes())
    for model in (again, one):
        model.learn_many(X[:40], y[:40], t=None if t is None else [times[-1]] * 40)
        model.finish()
    assert again.digest() == one.digest()


def test_it_holds_the_features_as_they_were_given():
    model = LASVM()
    model.learn_one({"b": 1.0 + 1e-12, "a": 0.0, 3: -2.0}, True, w=0.5)
    example = next(iter(state_of(model).reservoir))
    names = model.feature_names
    assert {names[d]: v for d, v in zip(example.columns, example.values, strict=True)} == {"b": 1.0 + 1e-12, 3: -2.0}
    assert (example.positive, example.box, example.id, example.number) == (True, 5.0, 0, 0)


@pytest.mark.parametrize("size", [-1, 2.5, True, "x"])
def test_its_size_is_a_count(size):
    with pytest.raises((ValueError, TypeError), match="reservoir"):
        LASVM(reservoir=size)


def test_copies_share_nothing_that_changes():
    X, y = problem(100)
    model = LASVM(gamma=0.3, reservoir=40)
    model.learn_many(X[:50], y[:50])
    other, before = copy.deepcopy(model), contents(state_of(model).reservoir)
    other.learn_many(X[50:], y[50:])
    assert contents(state_of(model).reservoir) == before != contents(state_of(other).reservoir)
    assert len(state_of(model.clone()).reservoir) == 0


# ----------------------------------------------------------------------------------------------------------- snapshots


def test_a_snapshot_of_another_sample_is_refused():
    X, y = problem(60)
    model = LASVM(gamma=0.3, reservoir=30)
    model.learn_many(X, y)
    meta, arrays = snapshot.unpack(model.to_bytes(), "LASVM")

    def changed(name, value):
        return snapshot.pack("LASVM", meta, {**arrays, f"reservoir.{name}": value})

    own = {name.removeprefix("reservoir."): array for name, array in arrays.items() if name.startswith("reservoir.")}
    spoiled = {
        "numbers": [own["numbers"][::-1], own["numbers"] + 60],
        "ids": [np.zeros_like(own["ids"]), own["ids"][1:]],
        "born": [own["born"] + 2**62 + 2**61],
        "boxes": [-own["boxes"], own["boxes"] * np.nan, own["boxes"] * 1e30],
        "positive": [~own["positive"] | True, own["positive"].astype(np.int64)],
        "rooms": [own["rooms"] + 1, own["rooms"] - 3, own["rooms"][:1]],
        "starts": [own["starts"] + 1, own["starts"][::-1], own["starts"].astype(np.int32)],
        "columns": [own["columns"] + 1, own["columns"] - 1, own["columns"][::-1].copy()],
        "values": [own["values"] * 0.0, own["values"] * 1e30, own["values"] * np.inf],
    }
    assert set(spoiled) == set(own)
    with np.errstate(all="ignore"):
        for name, values in spoiled.items():
            for value in values:
                with pytest.raises(SnapshotError):
                    LASVM.from_bytes(changed(name, value))
    smaller = json.loads(json.dumps(meta))
    smaller["parameters"]["reservoir"] = 10
    with pytest.raises(SnapshotError, match="room"):
        LASVM.from_bytes(snapshot.pack("LASVM", smaller, arrays))


def test_a_snapshot_without_one_has_an_empty_one():
    X, y = problem(60)
    model = LASVM(gamma=0.3)
    model.learn_many(X, y)
    meta, arrays = snapshot.unpack(model.to_bytes(), "LASVM")
    arrays = {name: array for name, array in arrays.items() if not name.startswith("reservoir.")}
    old = LASVM.from_bytes(snapshot.pack("LASVM", meta, arrays))
    assert len(state_of(old).reservoir) == 0
    old.learn_many(X, y)
    assert len(state_of(old).reservoir) == 60


# -------------------------------------------------------------------------------------------------------------- finish


@pytest.mark.filterwarnings("ignore::streamsvm.StreamWarning")
@pytest.mark.parametrize("learner", LEARNERS)
def test_finish_mends_a_stream_that_is_sorted_by_class(learner):
    X, y, X_test, y_test = by_class()
    model, without = (learner(C=10.0, gamma=0.5, reservoir=size) for size in (4000, 0))
    shuffled, order = learner(C=10.0, gamma=0.5), np.random.default_rng(1).permutation(len(y))
    for m in (model, without):
        m.learn_many(X, y)
        m.finish()
    shuffled.learn_many(X[order], y[order])
    shuffled.finish()
    assert accuracy(model, X_test, y_test) > accuracy(shuffled, X_test, y_test) - 0.01
    if learner is not FullSVM:
        assert hinge_loss(model, X, y) < 0.99 * hinge_loss(without, X, y)
    assert (model.n_seen, model.next_id) == (3000, 3000)
    assert model.delta <= model.tol


@pytest.mark.parametrize("learner", LEARNERS)
def test_after_finish_no_example_of_the_reservoir_violates(learner):
    X, y, *_ = by_class(1500)
    model = learner(C=10.0, gamma=0.5, reservoir=600)
    model.learn_many(X, y, w=np.linspace(0.5, 1.5, len(y)))
    model.finish()
    members, least, late = member_ids(model), getattr(model, "ramp_s", -np.inf), 0
    assert len(state_of(model).reservoir) == 600
    for example in state_of(model).reservoir:
        margin = (1 if example.positive else -1) * model.decision_function_many(X[[example.id]])[0]
        late += not (example.id in members or margin >= 1.0 - model.tol or margin < least)
    assert late == 0
    s = state_of(model).expansion
    for slot in storage.live_slots(s):  # what came back has its own box, age and features
        number = int(s.ids[slot])
        full = 10.0 * np.linspace(0.5, 1.5, len(y))[number]
        assert s.hi[slot] - s.lo[slot] == pytest.approx(full)
        assert s.born[slot] == number
        np.testing.assert_array_equal(storage.features_of(s, slot)[1], X[number].astype(np.float32))


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_finish_with_all_examples_in_the_reservoir_is_the_solution_of_svc(tol):
    """After any number of passes; the classes of these rings overlap."""
    rng = np.random.default_rng(0)
    ring, angle = rng.integers(0, 3, 600), rng.uniform(0.0, 2.0 * np.pi, 600)
    radius = 1.0 + ring + 0.35 * rng.normal(size=600)
    X, y = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), ring == 1
    K = rbf_kernel(X, gamma=0.5)

    def objective(ids, dual_coef):
        alpha = np.zeros(600)
        alpha[ids] = dual_coef
        return np.abs(alpha).sum() - 0.5 * alpha @ K @ alpha

    svc = SVC(C=20.0, gamma=0.5, tol=1e-8).fit(X, y)
    best = objective(svc.support_, svc.dual_coef_[0])
    model = LASVM(C=20.0, gamma=0.5)
    for _ in range(3):
        model.learn_many(X, y, ids=range(600))
        finished = copy.deepcopy(model)
        finished.finish(tol)
        assert best - objective(finished.support_ids, finished.dual_coef) < 10.0 * tol


def test_finish_leaves_the_sigmoid_and_the_reservoir_alone():
    X, y, *_ = by_class(1500)
    model = LASVM(C=10.0, gamma=0.5)
    model.learn_many(X, y)
    slopes, sample = model.slopes, contents(state_of(model).reservoir)
    model.finish()
    assert (model.slopes, contents(state_of(model).reservoir)) == (slopes, sample)


@pytest.mark.parametrize("how", ["remove", "project", "merge"])
def test_finish_keeps_within_the_budget(how):
    X, y, *_ = by_class(1500)
    model = LASVM(C=10.0, gamma=0.5, budget=50, on_budget=how)
    model.learn_many(X, y)
    model.finish()
    assert model.n_members <= 50


def test_what_comes_back_leaves_the_window_in_time():
    X, y, *_ = by_class(900)
    model = LASVM(C=10.0, gamma=0.5, window=500)
    model.learn_many(X[:700], y[:700])
    model.finish()
    for b in range(700, 900, 10):
        model.learn_many(X[b : b + 10], y[b : b + 10])
        live = storage.live_slots(state_of(model).expansion)
        assert state_of(model).expansion.born[live].min() > b + 9 - 500
        assert min(example.born for example in state_of(model).reservoir) > b + 9 - 500


def test_finish_that_is_interrupted_leaves_a_model_that_can_finish(monkeypatch):
    X, y, *_ = by_class(1500)
    model = LASVM(C=10.0, gamma=0.5)
    model.learn_many(X, y)
    again, before = copy.deepcopy(model), model.digest()
    again.finish()

    def interrupted(*given):
        original(*given)
        raise KeyboardInterrupt

    original = finishing.keep_block
    with monkeypatch.context() as patch:
        patch.setattr(finishing, "keep_block", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.finish()
    assert model.digest() == before
    model.finish()
    assert model.digest() == again.digest()


def test_classes_and_fit_have_none():
    X, y = problem(200)
    classes = OneVsRest(LASVM(C=10.0, gamma=0.5))
    classes.learn_many(X, y.astype(int).tolist())
    classes.finish()
    assert all(len(state.reservoir) == 0 for state in classes._models.values())
    fitted = LASVMClassifier(gamma=0.5).fit(X, y)
    assert len(state_of(fitted.model_).reservoir) == 0


# -------------------------------------------------------------------------------------------------- forget and relabel


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_is_forgotten_never_comes_back(learner):
    X, y = problem()
    model = learner(C=10.0, gamma=0.5)
    model.learn_many(X, y)
    model.finish()
    gone = np.arange(0, 600, 7)
    model.forget(gone)
    model.finish()
    assert not set(gone.tolist()) & (member_ids(model) | {example.id for example in state_of(model).reservoir})


@pytest.mark.parametrize("finished", [True, False])
def test_forgetting_brings_back_what_it_uncovers(finished):
    X, y = problem(1500)
    model = LASVM(C=10.0, gamma=0.5)
    model.learn_many(X, y)
    if finished:
        model.finish()
    before, members, violation = model.decision_function_many(X), member_ids(model), max(model.delta, model.tol)
    gone = np.random.default_rng(0).permutation(model.support_ids)[:200]
    model.forget(gone)
    back = sorted(member_ids(model) - members)
    assert len(back) > 5
    assert (np.where(y, 1, -1)[back] * before[back] >= 1.0 - model.tol).all()  # what violated before stays out
    assert model.delta <= violation + 1e-6
    if finished:
        model.finish()
        rest = np.setdiff1d(np.arange(1500), gone)
        retrained = LASVMClassifier(C=10.0, gamma=0.5).fit(X[rest], y[rest])
        assert np.mean(model.predict_many(X) != retrained.predict(X)) < 0.005


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_is_kept_between_two_removals_changes_no_bit(learner):
    X, y = problem(1200)
    model = learner(C=10.0, gamma=0.5, reservoir=500, scaling="standard")
    model.learn_many(X[:800], y[:800])
    model.finish()
    rng = np.random.default_rng(0)
    for turn in range(40):
        gone = rng.choice(model.support_ids, 1 + turn % 3)
        again = learner.from_bytes(model.to_bytes())
        assert state_of(again).watched is None
        assert again.forget(gone) == model.forget(gone)
        assert again.digest() == model.digest()
        if turn == 10:
            model.finish()
        elif turn == 20:
            model.relabel(gone := model.support_ids[:2], rng.random(2) < 0.5)
        elif turn % 10 == 5:
            rows = slice(800 + 10 * turn, 810 + 10 * turn)
            model.learn_many(X[rows], y[rows])


def test_a_removal_looks_only_at_what_is_in_doubt(monkeypatch):
    X, y = problem(1500)
    model = LASVM(C=10.0, gamma=0.5)
    model.learn_many(X, y)
    model.finish()
    model.forget(model.support_ids[:1])
    doubtful, gone = copy.deepcopy(model), model.support_ids[:20].tolist()
    looked_at, original = [], finishing.queries_of

    def watched(state, examples):
        looked_at.append(examples.size)
        return original(state, examples)

    monkeypatch.setattr(finishing, "queries_of", watched)
    before = model.kernel_evaluations
    for i in gone:
        model.forget(i)
    assert sum(looked_at) < 20  # of 20 times 1500
    assert model.kernel_evaluations - before < 20 * 1500 * 100  # and not those with all members
    looked_at.clear()
    monkeypatch.setattr(tracked_values, "SUM_ROUNDING", 1e-5)
    for i in gone:
        doubtful.forget(i)
    assert 100 < sum(looked_at) < 20 * 1500
    assert doubtful.digest() == model.digest()


def test_a_removal_that_is_interrupted_finds_the_reservoir_anew(monkeypatch):
    X, y = problem(900)
    model = LASVM(C=10.0, gamma=0.5)
    model.learn_many(X, y)
    model.finish()
    model.forget(model.support_ids[:1])
    again, gone = copy.deepcopy(model), model.support_ids[:2]

    def interrupted(*given):
        original(*given)
        raise KeyboardInterrupt

    original = finishing.Beside.follow
    with monkeypatch.context() as patch:
        patch.setattr(finishing.Beside, "follow", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.forget(gone)
    assert model.digest() == again.digest()
    assert model.forget(gone) == again.forget(gone) == 2
    assert model.digest() == again.digest()


def test_a_corrected_label_is_corrected_in_the_reservoir():
    X, y = problem()
    model = LASVM(C=10.0, gamma=0.5, pos_weight=3.0)
    model.learn_many(X, y)
    positives = np.flatnonzero(y)[:20]
    model.relabel(positives, False)
    kept = {example.id: example for example in state_of(model).reservoir}
    assert not any(kept[i].positive for i in positives.tolist())
    assert all(kept[i].box == pytest.approx(10.0) for i in positives.tolist())
    model.relabel(positives, True)
    kept = {example.id: example for example in state_of(model).reservoir}
    assert all(kept[i].box == pytest.approx(30.0) for i in positives.tolist())
