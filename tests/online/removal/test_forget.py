"""Forgetting: a model without an example is the one that never kept it, however it got there."""

import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import kernel_of
from sklearn.svm import SVC
from states import state_of
from tight import LEARNERS, TIGHT, learned, noisy

from streamsvm import LASVM, LASVMG, FullSVM
from streamsvm.core import storage
from streamsvm.core.expansion import AGAIN
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.online import finish as finishing
from streamsvm.online.finish import move_members
from streamsvm.online.removal import forget as forgetting


def solved_without(model, ids, tol=TIGHT):
    """The model optimised from 0 over its members but these."""
    again = type(model).from_bytes(model.to_bytes())
    s = state_of(again).expansion
    for i in storage.live_slots(s):
        s.alpha[i] = 0.0
        if s.ids[i] in ids:
            s.lo[i] = s.hi[i] = 0.0
    n = int(s.counts[0])
    s.g[:n] = s.y[:n]
    s.up[:n] = np.where(s.hi[:n] > 0.0, 0.0, -1e30)
    s.down[:n] = np.where(s.lo[:n] < 0.0, 0.0, 1e30)
    state_of(again).problem.note(s)
    again.finish(tol)
    return again


def prefer(s, by_path):
    """Let the steps that an expansion remembers make a path, or steps, the cheaper way."""
    s.counts[AGAIN] = 10**9 if by_path else 1


def dual(model):
    return dict(zip(model.support_ids.tolist(), model.dual_coef.tolist(), strict=True))


def distance(a, b, X):
    return np.abs(a.decision_function_many(X) - b.decision_function_many(X)).max()


# ----------------------------------------------------------------------------------------------------------- exactness


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("C", [0.5, 5.0, 100.0])
def test_a_forgotten_example_leaves_what_training_without_it_gives(learner, C):
    X, y = noisy()
    new, _ = noisy(200, 1)
    model = learned(learner, X, y, C=C)
    for i in np.random.default_rng(0).permutation(model.support_ids)[:12].tolist():
        rest = type(model).from_bytes(model.to_bytes())
        assert rest.forget(i) == 1
        assert rest.n_members == model.n_members - 1
        assert rest.delta <= 1e-6
        assert distance(rest, solved_without(model, {i}), new) < (1e-6 if C < 10 else 1e-5)  # float32 rows set a floor
        assert i not in rest.support_ids


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from(LEARNERS),
    st.sampled_from([0.3, 5.0, 1000.0]),
    st.integers(1, 40),
    st.booleans(),
)
def test_any_of_them_may_leave_together_or_one_by_one(seed, learner, C, count, duplicates):
    X, y = noisy(60, seed)
    if duplicates:
        X, y = np.vstack([X[:30], X[:30]]), np.concatenate([y[:30], y[10:40]])
    model = learned(learner, X, y, C=C)
    ids = np.random.default_rng(seed).permutation(60)[:count]
    together, single = (type(model).from_bytes(model.to_bytes()) for _ in range(2))
    left = together.forget(ids)
    assert left == sum(single.forget(int(i)) for i in ids)
    assert together.n_members == single.n_members == model.n_members - left
    other = solved_without(model, set(ids.tolist()))
    tolerance = 1e-5 * (1.0 + C)
    assert together.delta <= tolerance
    for rest in (together, single):  # without free members, a bias is right anywhere between two gradients
        difference = rest.decision_function_many(X) - other.decision_function_many(X)
        assert np.abs(difference - (rest.bias - other.bias)).max() < tolerance


def test_it_is_what_scikit_learn_trains_without_them():
    X, y = noisy(150)
    model = learned(LASVM, X, y, delta_max=1e-9, tol=1e-6)
    members = np.array(sorted(state_of(model).expansion.ids[storage.live_slots(state_of(model).expansion)].tolist()))
    leaving = members[::5]
    model.forget(leaving)
    stay = np.setdiff1d(members, leaving)
    svc = SVC(C=5.0, gamma=0.3, tol=1e-8).fit(X[stay], y[stay])
    np.testing.assert_allclose(model.decision_function_many(X), svc.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("learner", [LASVM, LASVMG, FullSVM])  # a ramp may give it up now
def test_learned_again_it_is_the_old_model(learner):
    X, y = noisy()
    model = learned(learner, X, y)
    again = type(model).from_bytes(model.to_bytes())
    i = int(again.support_ids[3])
    again.forget(i)
    again.learn_many(X[[i]], y[[i]], ids=[i])
    again.finish(TIGHT)
    assert distance(again, model, X) < 1e-5


@pytest.mark.long
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("how", [forgetting.FOLLOWED, forgetting.HANDED_BACK])
def test_both_ways_lead_to_the_same_model(learner, how, monkeypatch):
    X, y = noisy()
    model = learned(learner, X, y)
    prefer(state_of(model).expansion, how == forgetting.FOLLOWED)
    taken = []
    original = forgetting.forget

    def watched(*arguments):
        s, way = original(*arguments)
        taken.append(way)
        return s, way

    monkeypatch.setattr("streamsvm.estimators.learner.state.forget", watched)
    leaving = model.support_ids[::7]
    expected = solved_without(model, set(leaving.tolist()))
    model.forget(leaving)
    model.finish(TIGHT)
    assert taken == [how]
    assert distance(model, expected, X) < 1e-5


@pytest.mark.parametrize("by_path", [True, False])
def test_what_comes_back_is_solved_for_by_both_ways(by_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = X[:, 0] + X[:, 2] ** 2 + 0.4 * rng.normal(size=1000) > 0.7
    model = LASVM(C=5.0, gamma=0.3, tol=1e-5)
    model.learn_many(X, y)
    model.finish()
    taken, original = [], forgetting._enter

    def watched(*arguments):
        prefer(arguments[0], by_path)
        taken.append(original(*arguments))
        return taken[-1]

    monkeypatch.setattr(forgetting, "_enter", watched)
    gone = rng.choice(model.support_ids, 20, replace=False)
    for i in gone.tolist():
        prefer(state_of(model).expansion, by_path)
        model.forget(i)
        assert model.delta <= 1e-5 * (1.0 + 1e-3)
    assert set(taken) == {by_path}
    state_of(model).reservoir = Reservoir(0)  # `finish` must not look there
    assert distance(model, solved_without(model, set()), X) < 1e-3


# -------------------------------------------------------------------------------------------------------- what it costs


def test_the_steps_after_a_removal_decide_how_the_next_one_is_done(monkeypatch):
    """A copy from a snapshot remembers them, too."""
    X, y = noisy()
    model = learned(LASVM, X, y)
    solve, forget, ways = forgetting.solve_again, forgetting.forget, []

    def watched(*arguments):
        s, way = forget(*arguments)
        ways.append(way)
        return s, way

    monkeypatch.setattr(forgetting, "solve_again", lambda *arguments: (solve(*arguments)[0], 10**8))
    prefer(state_of(model).expansion, by_path=False)
    monkeypatch.setattr("streamsvm.estimators.learner.state.forget", watched)
    first, second = model.support_ids[np.abs(model.dual_coef) == model.C][:2].tolist()
    model.forget(first)
    copied = LASVM.from_bytes(model.to_bytes())
    model.forget(second)
    copied.forget(second)
    assert ways == [forgetting.HANDED_BACK, forgetting.FOLLOWED, forgetting.FOLLOWED]
    assert copied.digest() == model.digest()


def test_what_is_no_support_vector_costs_a_look_up():
    X, y = noisy()
    model = learned(FullSVM, X, y)
    idle = np.setdiff1d(np.arange(120), model.support_ids)
    before, evaluations, coefficients = model.n_members, model.kernel_evaluations, dual(model)
    assert model.forget(idle[:10]) == 10
    assert model.forget([10**9, -5]) == 0
    assert model.forget([]) == 0
    assert (model.n_members, model.kernel_evaluations) == (before - 10, evaluations)
    assert dual(model) == coefficients


def test_a_path_computes_few_kernel_values():
    X, y = noisy(400)
    model = learned(LASVM, X, y)
    before, n = model.kernel_evaluations, model.n_members
    free = int(np.count_nonzero(np.abs(model.dual_coef) < 5.0))
    model.forget(model.support_ids[:1])
    assert model.kernel_evaluations - before <= (free + 30) * n


def test_an_unfinished_model_violates_no_more_than_before():
    X, y = noisy(400)
    for learner in LEARNERS:
        model = learner(C=10.0, gamma=0.3)
        model.learn_many(X, y)
        for i in model.support_ids[::4].tolist():
            before = max(model.delta, model.tol)
            model.forget(i)
            assert model.delta <= before + 1e-6
        model.learn_many(X[:50], y[:50])


# ------------------------------------------------------------------------------------------------------------ the edges


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_whole_class_may_leave_and_everybody(learner):
    X, y = noisy(60)
    model = learned(learner, X, y)
    model.forget(np.flatnonzero(y))
    s = state_of(model).expansion
    assert not (s.y[: s.counts[0]] > 0).any()
    assert np.isfinite(model.decision_function_many(X)).all()
    if learner is LASVM:
        assert model.n_support == 0
    model.forget(range(60))
    assert model.n_members == model.n_support == 0
    assert model.bias == 0.0
    model.learn_many(X, y)
    model.finish()
    assert np.mean(model.predict_many(X) == y) > 0.85


def test_an_empty_model_forgets_nothing():
    assert LASVM().forget([1, 2]) == 0
    assert LASVMG().relabel([1], True) == 0


def test_equal_examples_with_a_singular_kernel():
    X = np.repeat(np.eye(4), 5, axis=0)
    y = np.arange(20) % 3 == 0
    for learner in LEARNERS:
        model = learned(learner, X, y, C=100.0, kernel="linear")
        for i in model.support_ids[:6].tolist():
            expected = solved_without(model, {i})
            model.forget(i)
            assert distance(model, expected, X) < 1e-3


def test_bad_ids_are_named():
    model = LASVM()
    for bad in ("a", 1.5, 2**64, None):
        with pytest.raises(ValueError, match="must be a signed 64-bit integer"):
            model.forget(bad)
    for several in ([1.5], ["x"], [[1]]):
        with pytest.raises(ValueError, match="1 integers are needed"):
            model.forget(several)
    with pytest.raises(ValueError, match=r"y has shape \(2,\)"):
        model.relabel([1, 2, 3], [True, False])
    with pytest.raises(ValueError, match="y"):
        model.relabel([1], "spam")


@pytest.mark.parametrize("form", [np.asarray, "binary", "sparse"])
def test_every_storage_of_features(form):
    rng = np.random.default_rng(0)
    X, y = noisy(100)
    if form == "binary":
        X = (rng.random((100, 20)) < 0.4).astype(float)
        y = X[:, 0] + X[:, 1] + rng.random(100) > 1.2
    if form == "sparse":
        X = (rng.random((100, 3000)) < 0.005) * rng.random((100, 3000))
        y = X.sum(1) + 0.5 * rng.random(100) > 7.7
    model = learned(LASVM, X, y)
    i = int(model.support_ids[0])
    expected = solved_without(model, {i})
    model.forget(i)
    assert distance(model, expected, X) < 1e-5


def test_the_outcome_does_not_depend_on_the_cache_or_a_restart():
    X, y = noisy(300)
    models = [learned(LASVM, X, y, cache_mb=mb, finish_tol=1e-3) for mb in (64.0, 0.001)]
    models.append(LASVM.from_bytes(models[0].to_bytes()))  # without cached rows
    ids = models[0].support_ids
    for model in models:
        for i in ids[:20:3].tolist():
            model.forget(i)
        model.relabel(int(ids[5]), True)
        model.learn_many(X[:20], ~y[:20])
    assert models[0].digest() == models[2].digest()
    np.testing.assert_array_equal(models[0].dual_coef, models[1].dual_coef)


def test_after_forgetting_there_is_room_for_more():
    """Solving the rest again narrows the cached rows to the members that are left; the next ones need theirs."""
    X, y = noisy(300)
    model = LASVM(C=5.0, gamma=0.3)
    for begin in range(0, 300, 10):
        rows = slice(begin, begin + 10)
        model.learn_many(X[rows], y[rows], ids=np.arange(begin, begin + 10))
        model.forget(np.arange(begin - 10, begin, 3))
        assert state_of(model).expansion.rows.shape[1] == len(state_of(model).expansion.alpha)
        model.learn_many(X[rows], ~y[rows], ids=np.arange(1000 + begin, 1010 + begin))


def test_interrupted_it_is_as_before(monkeypatch):
    X, y = noisy(100)
    model = learned(LASVM, X, y)
    before = model.digest()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(forgetting, "mended", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.forget(model.support_ids[:3])
    assert model.digest() == before


def test_interrupted_when_others_come_back_it_leaves_nothing_where_the_next_ones_go(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4)) * (rng.random((1000, 4)) < 0.5)
    y = X[:, 0] + X[:, 2] ** 2 + 0.4 * rng.normal(size=1000) > 0.4
    model = LASVM(C=5.0, gamma=0.3, scaling=None)
    model.learn_many(X[:900], y[:900])
    model.finish()

    def interrupted(*_):
        raise KeyboardInterrupt

    def forget_all():
        for i in model.support_ids.tolist():
            model.forget(i)

    with monkeypatch.context() as patched:
        patched.setattr("streamsvm.estimators.learner.forgetting.admit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            forget_all()
    model.learn_many(X[900:], y[900:], ids=np.arange(900, 1000))
    s = state_of(model).expansion
    live = storage.live_slots(s)
    assert (s.ids[live] >= 900).any()
    np.testing.assert_array_equal(storage.rows_of(s, live, 4).toarray(), X[s.ids[live]].astype(np.float32))


# ---------------------------------------------------------------------------------------------------------- new labels


@pytest.mark.parametrize("learner", [LASVM, LASVMG, FullSVM])
def test_a_corrected_label_is_learned_anew(learner):
    X, y = noisy()
    wrong = y.copy()
    flipped = [3, 17, 40]
    wrong[flipped] = ~wrong[flipped]
    model = learned(learner, X, wrong, pos_weight=3.0)
    members = set(state_of(model).expansion.ids[storage.live_slots(state_of(model).expansion)].tolist())
    n_seen = model.n_seen
    assert model.relabel(flipped, y[flipped]) == len(members & set(flipped))
    assert model.n_seen == n_seen
    model.finish(TIGHT)
    s = state_of(model).expansion
    for i in storage.live_slots(s):
        positive = y[s.ids[i]] if s.ids[i] in flipped else wrong[s.ids[i]]
        assert (s.y[i] > 0) == positive
        assert s.hi[i] - s.lo[i] == pytest.approx(15.0 if positive else 5.0)
    if learner is FullSVM:
        right = learned(learner, X, y, pos_weight=3.0)
        assert distance(model, right, X) < 1e-4


def test_the_right_label_stays_untouched():
    X, y = noisy()
    model = learned(LASVM, X, y)
    before = model.digest()
    ids = model.support_ids
    assert model.relabel(ids, y[ids]) == len(ids)
    assert model.digest() == before


def test_learning_goes_on_after_the_rest_was_solved_again(monkeypatch):
    """The solver narrows the cached rows to the members that there are."""
    monkeypatch.setattr(finishing, "AT_ONCE", 0)
    X, y = noisy(400)
    for learner in LEARNERS:
        model = learned(learner, X[:200], y[:200], finish_tol=1e-3)
        prefer(state_of(model).expansion, by_path=False)
        model.forget(model.support_ids[::3])
        s = state_of(model).expansion
        assert s.rows.shape[1] == len(s.alpha)
        model.learn_many(X[200:], y[200:])
        model.finish(TIGHT)
        assert distance(model, solved_without(model, set()), X) < 1e-5


@pytest.mark.parametrize("seed", range(20))
def test_gradients_are_right_also_where_a_path_runs_out_of_free_members(seed):
    """The next one to be free may have a cached row that ends before the newest members."""
    rng = np.random.default_rng(seed)
    X = (rng.random((40, 8)) < 0.4).astype(float)
    y = X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=40) > 1.2
    model = LASVM(C=0.1, kernel="linear")
    for begin in range(0, 40, 4):
        model.learn_many(X[begin : begin + 4], y[begin : begin + 4])
        model.forget(rng.permutation(model.support_ids)[:1])
        s = state_of(model).expansion
        live = storage.live_slots(s)
        members = X[s.ids[live]]
        np.testing.assert_allclose(s.g[live], s.y[live] - members @ members.T @ s.alpha[live], atol=1e-5)


# ---------------------------------------------------------------------------------------------- the sum of coefficients


def weighted(seed, C=100.0, gamma=10.0, **parameters):
    """A finished model whose boxes differ, its examples and labels, and the generator that they are from."""
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(300, 3)), rng.random(300) < 0.5, rng.random(300)
    model = LASVM(C=C, gamma=gamma, **parameters)
    model.learn_many(X, y, w=w)
    model.finish()
    return model, X, y, rng


def assert_feasible(model):
    s = state_of(model).expansion
    live = storage.live_slots(s)
    assert abs(model.dual_coef.sum()) <= 1e-9 * np.abs(model.dual_coef).sum()
    assert ((s.lo[live] <= s.alpha[live]) & (s.alpha[live] <= s.hi[live])).all()


def test_many_that_leave_together_leave_no_coefficient_without_a_counterpart():
    """Few large boxes leave, many small ones receive: more pair steps than there are coefficients."""
    model, _, _, rng = weighted(41)
    model.forget(rng.choice(model.support_ids, 110, replace=False))
    assert_feasible(model)
    model.finish()
    assert_feasible(model)


@pytest.mark.parametrize("way", ["forget", "relabel", "window", "budget"])
def test_the_sum_stays_0_with_weights(way):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y, w = rng.normal(size=(300, 3)), rng.random(300) < 0.5, rng.choice([1e-4, 1.0], 300, p=[0.9, 0.1])
        hours = np.where(np.arange(300) < 150, 0, 9).astype("timedelta64[h]")
        bounds = {"window": {"window": datetime.timedelta(hours=8)}, "budget": {"budget": 100}}.get(way, {})
        model = LASVM(C=100.0, gamma=10.0, **bounds)
        prefer(state_of(model).expansion, by_path=False)
        model.learn_many(X, y, w=w, t=np.datetime64("2026-01-01") + hours)
        ids = rng.permutation(np.flatnonzero(w == 1.0))[:20]
        prefer(state_of(model).expansion, by_path=False)
        if way == "forget":
            model.forget(ids)
        elif way == "relabel":
            model.relabel(ids, ~y[ids])
        assert_feasible(model)


def test_finish_mends_a_sum_that_is_not_0():
    model, X, *_ = weighted(3)
    right = model.decision_function_many(X)
    s = state_of(model).expansion
    i = int(np.argmax(np.where(s.y[: model.n_members] > 0, s.hi[: model.n_members] - s.alpha[: model.n_members], 0.0)))
    move_members(s, kernel_of(model), np.array([i]), np.array([s.hi[i]]))  # as version 0.1.0 could leave it
    assert abs(model.dual_coef.sum()) > 1.0
    model.finish()
    assert_feasible(model)
    np.testing.assert_allclose(model.decision_function_many(X), right, atol=0.01)
