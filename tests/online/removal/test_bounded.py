"""Bounded streams: never more members than the budget, none older than the window, and the model stays what it says."""

import datetime
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import gram, kernel_of
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM
from streamsvm.core import storage
from streamsvm.core.expansion import SLOTS
from streamsvm.core.saving.snapshot import pack, unpack
from streamsvm.estimators.learner.learning import learn_batch
from streamsvm.online import arrival
from streamsvm.online.removal import bounded
from streamsvm.online.removal.window import FAR, MICROSECOND, let_old_leave

LEARNERS = [LASVM, LASVMG, LASVMI, LASVMNC, FullSVM]
WAYS = ["remove", "project", "merge"]
START = datetime.datetime(2026, 1, 1)
every_learner = pytest.mark.parametrize("learner", LEARNERS)
every_way = pytest.mark.parametrize("way", WAYS)


def noisy(n=400, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32).astype(float)
    return X, X[:, 0] + X[:, -1] ** 2 + 0.6 * rng.normal(size=n) > 0.7


def wide(n=300, seed=0):
    """Sparse enough to be compressed, after some hundred members."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 6000)) < 0.002) * rng.integers(1, 4, (n, 6000))
    return sp.csr_matrix(X.astype(float)), rng.random(n) < 0.5


def binary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 20)) < 0.4).astype(float)
    return X, X[:, 0] + X[:, 1] + rng.random(n) > 1.2


STORAGES = {"dense": noisy, "bits": binary, "sparse": wide}


def made(learner, **parameters):
    few = {} if learner in (LASVM, FullSVM) else {"clean_every": 50, "max_non_sv": 20}
    ramp = {"ramp_warmup": 30} if learner in (LASVMNC, LASVMI) else {}
    return learner(**{"C": 2.0, "gamma": 0.3, **few, **ramp, **parameters})


def members(model):
    s = state_of(model).expansion
    live = storage.live_slots(s)
    return {name: getattr(s, name)[live] for name in ("alpha", "g", "lo", "hi", "y", "ids", "born")}


def features(model):
    """The members' features as a matrix."""
    s, live = state_of(model).expansion, storage.live_slots(state_of(model).expansion)
    X = np.zeros((len(live), len(model.feature_names)))
    for t, slot in enumerate(live):
        indices, values = storage.features_of(s, slot)
        X[t, indices] = values
    return X


def times(n, seed=0, jitter=0):
    """Hours from `START` on, roughly rising."""
    hours = np.arange(n) + np.random.default_rng(seed).integers(0, jitter + 1, n)
    return [START + datetime.timedelta(hours=int(h)) for h in hours]


# ------------------------------------------------------------------------------------------------- never more, or older


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from(LEARNERS),
    st.sampled_from(WAYS),
    st.integers(3, 40),
    st.sampled_from([0.03, 0.5]),
    st.sampled_from(["rbf", "linear"]),
)
def test_there_are_never_more_members_than_the_budget(seed, learner, way, budget, share, kernel):
    X, y = noisy(150, seed)
    y = np.random.default_rng(seed).random(150) < share if seed % 2 else y
    model = made(learner, budget=budget, on_budget=way, kernel=kernel, pos_weight=2.0)
    for t, x in enumerate(X):
        model.learn_one(dict(enumerate(x)), bool(y[t]))
        assert model.n_members <= budget
    both = {bool(label) for label in y[:2]}
    present = {bool(label > 0) for label in members(model)["y"]}
    assert len(both) < 2 or present == {True, False} or learner is LASVMI


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from(LEARNERS),
    st.integers(1, 120),
    st.sampled_from([None, *WAYS]),
    st.booleans(),
)
def test_no_member_is_older_than_the_window(seed, learner, window, way, by_time):
    X, y = noisy(200, seed)
    bound = {} if way is None else {"budget": 30, "on_budget": way}
    model = made(learner, window=datetime.timedelta(hours=window) if by_time else window, **bound)
    ts, latest = times(200, seed, jitter=20), START
    for t, x in enumerate(X):
        latest = max(latest, ts[t])
        model.learn_one(dict(enumerate(x)), bool(y[t]), t=ts[t] if by_time else None)
        ids = members(model)["ids"]
        ages = [latest - ts[i] for i in ids] if by_time else (t - ids).tolist()
        assert way in WAYS[1:] or all(age < model.window for age in ages)  # merged ones have the id of a part
        if by_time:
            edge = MICROSECOND * int(members(model)["born"].min(initial=FAR))
            assert edge > latest - START + (START - datetime.datetime(1970, 1, 1)) - model.window
        else:
            assert (members(model)["born"] > t - window).all()


@pytest.mark.long
@every_learner
@every_way
@pytest.mark.parametrize("form", STORAGES)
def test_a_batch_is_a_loop_and_a_restart_changes_nothing(learner, way, form):
    X, y = STORAGES[form]()
    n = len(y)
    w = np.random.default_rng(1).uniform(0.0, 2.0, n)
    ts = np.array(times(n, jitter=5))
    parameters = {"budget": 25, "on_budget": way, "window": datetime.timedelta(hours=60), "pos_weight": 2.0}
    one, many, again = (made(learner, **parameters) for _ in range(3))
    for t in range(n):
        x = {int(d): float(v) for d, v in zip(X[t].indices, X[t].data, strict=True)} if form == "sparse" else X[t]
        if form != "sparse":
            x = dict(enumerate(x))
        one.learn_one(x, bool(y[t]), w=w[t], t=ts[t])
    many.learn_many(X, y, w, t=ts)
    for begin, end in itertools.pairwise([0, 1, 38, 111, 257, n]):
        again.learn_many(X[begin:end], y[begin:end], w[begin:end], t=ts[begin:end])
        again = learner.from_bytes(again.to_bytes())
    assert again.digest() == many.digest()
    if form == "sparse":  # the features' columns are in another order
        assert one.n_members == many.n_members
        np.testing.assert_array_equal(members(one)["ids"], members(many)["ids"])
    else:
        assert one.digest() == many.digest()


# ---------------------------------------------------------------------------------------------- what becomes of a model


@every_learner
def test_removal_leaves_a_model_as_near_to_its_optimum_as_it_was(learner, monkeypatch):
    X, y = noisy(600)
    model = made(learner, budget=60)
    seen = []
    reduce = bounded.reduce_members

    def watched(s, kernel, problem, *rest):
        problem.note(s)
        before = problem.violation(s)
        s = reduce(s, kernel, problem, *rest)
        seen.append((before, problem.violation(s)))
        return s

    monkeypatch.setattr(bounded, "reduce_members", watched)
    model.learn_many(X, y)
    assert len(seen) > 5
    assert all(after <= max(before, model.tol) + 1e-9 for before, after in seen)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS[1:])
@every_learner
@pytest.mark.parametrize("form", STORAGES)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_handing_over_keeps_coefficients_boxes_and_the_gradient(way, learner, form, kernel, monkeypatch):
    X, y = STORAGES[form]()
    model = made(learner, budget=30, on_budget=way, pos_weight=2.0, kernel=kernel)
    seen = []
    hand_over = bounded.hand_over

    def sums(s):
        support = (s.y != 0) & (s.alpha != 0.0)
        return np.array([a[(s.y == label) & support].sum() for a in (s.alpha, s.lo, s.hi) for label in (-1, 1)])

    def watched(s, kernel, leaving, merges):
        mass, before = s.alpha[leaving] != 0.0, sums(s)
        idle = (s.y != 0) & (s.alpha == 0.0)
        boxes = float((s.hi - s.lo)[idle].sum())
        done = hand_over(s, kernel, leaving, merges)
        seen.append((int(mass.sum()), np.abs(sums(s) - before), boxes))
        return done

    monkeypatch.setattr(bounded, "hand_over", watched)
    model.learn_many(X, y)
    assert sum(count for count, *_ in seen) > 5
    for _, change, boxes_of_idle in seen:
        assert (change[:2] < 1e-9).all()
        assert (change[2:] <= boxes_of_idle + 1e-9).all()  # a receiver that was idle becomes a support vector
    of = members(model)
    K = gram(kernel_of(model), *[features(model)] * 2)
    scale = 1.0 + np.abs(K) @ np.abs(of["alpha"])
    assert (np.abs(of["g"] - (of["y"] - K @ of["alpha"])) / scale < 1e-5).all()
    assert ((of["lo"] <= of["alpha"]) & (of["alpha"] <= of["hi"])).all()
    if learner is LASVM:
        assert abs(of["alpha"].sum()) < 1e-9 * np.abs(of["alpha"]).sum()
    model.finish(1e-4)
    assert model.delta <= 1e-4


def test_a_linear_model_merges_without_a_change():
    X, y = noisy(60)
    model = made(FullSVM, kernel="linear", budget=61, on_budget="merge")
    model.learn_many(X, y)
    model.finish(1e-6)
    before = model.decision_function_many(X)
    s = storage.copy(state_of(model).expansion)
    s = storage.reserve(s, 60, 3, False, 0)
    support = np.flatnonzero(s.alpha)
    assert bounded.hand_over(s, kernel_of(model), support[:20], True) == 20
    state_of(model).expansion = s
    assert model.n_members == 40
    np.testing.assert_allclose(model.decision_function_many(X), before, atol=1e-5)


def test_the_best_place_is_the_best_on_a_grid():
    X, y = noisy(60)
    model = made(FullSVM, budget=61, on_budget="merge")
    model.learn_many(X, y)
    grid = np.linspace(0.0, 1.0, 2001)
    s = storage.reserve(storage.copy(state_of(model).expansion), 60, 3, False, 0)
    slots = np.flatnonzero(s.alpha)
    for i in slots[:15]:
        n, stays = int(s.counts[SLOTS]), np.flatnonzero(s.y == s.y[i])
        distance = ((np.array(s.columns[:3, stays]) - s.columns[:3, [i]]) ** 2).sum(axis=0)
        distance[stays == i] = np.inf
        j = stays[np.argmin(distance)]
        kappa, m = np.exp(-0.3 * distance.min()), s.alpha[i] / (s.alpha[i] + s.alpha[j])
        x_i, x_j = s.columns[:3, i].copy(), s.columns[:3, j].copy()
        larger = s.ids[i] if abs(s.alpha[i]) > abs(s.alpha[j]) else s.ids[j]
        born = min(s.born[i], s.born[j])
        assert bounded.hand_over(s, kernel_of(model), np.array([i]), True) == 1
        z = s.columns[:3, n]
        near = m * kappa ** ((1 - grid) ** 2) + (1 - m) * kappa ** (grid**2)
        reached = m * np.exp(-0.3 * ((x_i - z) ** 2).sum()) + (1 - m) * np.exp(-0.3 * ((x_j - z) ** 2).sum())
        assert reached == pytest.approx(near.max(), abs=1e-6)
        assert (s.ids[n], s.born[n]) == (larger, born)


def test_what_is_too_far_apart_for_a_place_in_between_joins_the_heavier():
    """What float32 takes for 0 is no nearer in the middle: a model of merged ones would be 0 everywhere."""
    X, y = np.arange(40.0)[:, None] * 100.0, np.arange(40) % 2 == 0
    model = made(LASVM, gamma=1.0, C=1.0, budget=20, on_budget="merge")
    model.learn_many(X, y)
    f = model.decision_function_many(X)
    assert np.count_nonzero(np.abs(f - model.bias) > 0.4) >= 15


def test_who_leaves_and_who_stays():
    X, y = noisy(300)
    model = made(LASVMG, budget=1000, clean_every=1000)
    model.learn_many(X, y)
    s, problem = state_of(model).expansion, state_of(model).problem
    idle = np.count_nonzero(s.alpha[:300] == 0.0)
    leaving = bounded.least_harmful(s, problem, "remove", idle + 30)
    assert (s.alpha[leaving[:idle]] == 0.0).all()
    assert (s.alpha[leaving[idle:]] != 0.0).all()
    margin = s.y[:300] * (s.y[:300] - s.g[:300])
    assert margin[leaving[idle:]].max() <= np.delete(margin, leaving).min() + 1e-12
    merging = bounded.least_harmful(s, problem, "merge", idle + 30)
    assert merging[: idle + 8].tolist() == leaving[: idle + 8].tolist()  # a quarter of 30 are the same
    assert np.abs(s.alpha[merging[idle + 8 :]]).max() <= np.abs(np.delete(s.alpha[:300], merging)).min()


def test_a_rare_class_keeps_its_members():
    X, _ = noisy(2000)
    y = np.random.default_rng(3).random(2000) < 0.02
    for learner, way in itertools.product([LASVM, LASVMG], WAYS):
        model = made(learner, budget=50, on_budget=way)
        model.learn_many(X, y)
        assert np.count_nonzero(members(model)["y"] > 0) >= 4


def test_merging_does_not_fill_the_model_with_noise():
    """What lies far on the wrong side has to leave as well, or it is all that a budget holds in the end."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 10))
    f = X[:, 0] + 0.5 * X[:, 1] ** 2
    truth = f > np.quantile(f, 0.9)
    y = truth ^ (rng.random(6000) < 0.1)
    model = LASVM(C=10.0, gamma=0.02, budget=100, on_budget="merge")
    with pytest.warns(UserWarning, match="budget=100 has long been full"):
        margins = learn_batch(state_of(model), X, y, None, None)
    assert np.mean((margins[4000:] > 0) == truth[4000:]) > 0.85


# -------------------------------------------------------------------------------------------------------------- windows


@every_learner
@pytest.mark.parametrize("finished", [True, False])
def test_what_is_too_old_leaves_a_model_as_near_to_its_optimum_as_it_was(learner, finished):
    X, y = noisy(300)
    model = made(learner, window=200)
    model.learn_many(X[:200], y[:200])
    if finished:
        model.finish()
    state = model._state
    before, s, kernel = max(model.delta, model.tol), state.expansion, state.kernel
    oldest = int(members(model)["born"].min())
    let_old_leave(state.rule, s, kernel, state.window.clock, oldest + 199)
    assert (members(model)["born"] == oldest).any()
    for now in range(oldest + 200, oldest + 300):
        let_old_leave(state.rule, s, kernel, state.window.clock, now)
        assert (members(model)["born"] > now - 200).all()
        assert model.delta <= before + 1e-9
    K = gram(kernel, X, X)
    own, alpha = members(model)["ids"], members(model)["alpha"]
    np.testing.assert_allclose(members(model)["g"], members(model)["y"] - K[np.ix_(own, own)] @ alpha, atol=1e-4)


def test_a_window_does_not_cut_a_batch(monkeypatch):
    X, y = noisy(400)
    calls, learn_block = [], arrival.learn_block
    monkeypatch.setattr(arrival, "learn_block", lambda *given: calls.append(1) or learn_block(*given))
    made(LASVM, window=100).learn_many(X, y)
    assert len(calls) <= 5


@pytest.mark.parametrize("learner", [LASVM, FullSVM])
def test_a_window_recovers_after_a_drift_and_no_window_does_not(learner):
    X, y = noisy(2600)
    y ^= np.random.default_rng(5).random(2600) < 0.25
    y[2000:] = ~y[2000:]
    new, truth = noisy(1000, 1)
    bounded_by, unbounded = made(learner, C=1.0, window=800), made(learner, C=1.0)
    for model in (bounded_by, unbounded):
        model.learn_many(X, y)
    right = [np.mean(model.predict_many(new) == ~truth) for model in (bounded_by, unbounded)]
    assert right[0] > 0.75
    assert right[1] < right[0] - 0.05


def test_an_example_that_comes_too_late_is_not_kept():
    model = made(FullSVM, window=datetime.timedelta(hours=10))
    model.learn_one({"a": 1.0}, True, t=START)
    model.learn_one({"a": 2.0}, False, t=START - datetime.timedelta(hours=9))
    model.learn_one({"a": 3.0}, False, t=START - datetime.timedelta(hours=10))
    assert members(model)["ids"].tolist() == [0, 1]
    model.learn_many([{"a": 4.0}, {"a": 5.0}], [True, True], t=[START + datetime.timedelta(hours=1), START])
    assert members(model)["ids"].tolist() == [0, 3, 4]


def test_times_of_every_kind():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    X, y = [{"a": float(i)} for i in range(2)], [True, False]
    for t in (
        START,
        START.replace(tzinfo=datetime.UTC),
        START.replace(hour=2, tzinfo=zone),
        np.datetime64(START),
        [START, START],
        np.array([START, START], "datetime64[s]"),
    ):
        model = made(FullSVM, window=datetime.timedelta(days=1))
        model.learn_many(X, y, t=t)
        assert set(members(model)["born"].tolist()) == {int(START.replace(tzinfo=datetime.UTC).timestamp() * 1e6)}


def test_a_correction_keeps_its_age():
    X, y = noisy(100)
    model = made(FullSVM, window=50, budget=200)
    model.learn_many(X, y)
    before = dict(zip(members(model)["ids"].tolist(), members(model)["born"].tolist(), strict=True))
    assert model.relabel([60, 70], ~y[[60, 70]]) == 2
    after = dict(zip(members(model)["ids"].tolist(), members(model)["born"].tolist(), strict=True))
    assert after == before
    model.learn_many(X, y, ids=np.arange(1000, 1100))
    assert not {60, 70} & set(members(model)["ids"].tolist())


def test_a_whole_class_may_grow_too_old():
    X, y = noisy(200)
    y[100:] = True
    model = made(LASVM, window=50)
    model.learn_many(X, y)
    assert (members(model)["y"] > 0).all()
    assert np.isfinite(model.decision_function_many(X)).all()


# ---------------------------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"budget": 2}, "budget=2 must be a whole number, at least 3"),
        ({"budget": 10.0}, "budget=10.0 must be"),
        ({"on_budget": "drop"}, "on_budget='drop' must be"),
        ({"on_budget": "merge", "kernel": "poly"}, "is for the kernels"),
        ({"window": 0}, "window=0 must be"),
        ({"window": True}, "window=True must be"),
        ({"window": "7d"}, "window='7d' must be"),
        ({"window": datetime.timedelta(0)}, "must be a positive time"),
    ],
)
@every_learner
def test_bad_parameters_are_named(learner, parameters, message):
    with pytest.raises(ValueError, match=message):
        learner(**parameters)


def test_a_missing_or_wrong_time_is_named_and_nothing_is_learned():
    model = made(LASVM, window=datetime.timedelta(hours=1), budget=3)
    for t in range(3):
        model.learn_one({"a": float(t)}, t == 1, t=START)
    before = model.digest()
    for t in (None, 12.5, "2026-01-01", np.datetime64("NaT")):
        with pytest.raises(TypeError, match="must be a datetime"):
            model.learn_one({"a": 1.0}, True, t=t)
        with pytest.raises(TypeError, match="must be a datetime"):
            model.learn_many([{"a": 1.0}], [True], t=t)
    with pytest.raises(ValueError, match=r"t has shape \(2,\)"):
        model.learn_many([{"a": 1.0}], [True], t=[START, START])
    with pytest.raises(ValueError, match="must be finite"):
        model.learn_one({"a": np.inf}, True, t=START + datetime.timedelta(days=9))
    assert model.digest() == before


def test_snapshots_and_clones_know_their_bounds():
    window = datetime.timedelta(days=3, microseconds=1)
    model = made(LASVM, budget=20, on_budget="project", window=window)
    for copy in (LASVM.from_bytes(model.to_bytes()), model.clone()):
        assert (copy.budget, copy.on_budget, copy.window) == (20, "project", window)


def test_a_snapshot_from_before_there_were_bounds():
    X, y = noisy()
    model = made(LASVM)
    model.learn_many(X[:200], y[:200])
    meta, arrays = unpack(model.to_bytes(), "LASVM")
    for name in ("budget", "on_budget", "window"):
        del meta["parameters"][name]
    del arrays["born"]
    old = LASVM.from_bytes(pack("LASVM", meta, arrays))
    for either in (old, model):
        either.learn_many(X[200:], y[200:])
    np.testing.assert_array_equal(old.decision_function_many(X), model.decision_function_many(X))


def test_interrupted_it_is_as_before(monkeypatch):
    X, y = noisy(100)
    for way, name in (("remove", "forget"), ("merge", "hand_over")):
        model = made(FullSVM, budget=60, on_budget=way, window=1000)
        model.learn_many(X[:60], y[:60])
        before = model.digest()

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(bounded, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_many(X[60:], y[60:])
        assert model.digest() == before
        monkeypatch.undo()
        model.learn_many(X[60:], y[60:])
