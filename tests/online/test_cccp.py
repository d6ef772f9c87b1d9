"""sparsify: the boxes come to rest, the ramp loss falls, and on noisy data half of the support vectors go."""

from unittest import mock

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM
from streamsvm.core.expansion import HOLES, NEGATIVE, POSITIVE, SLOTS
from streamsvm.core.kernels import NAMES
from streamsvm.core.storage import live_slots
from streamsvm.online import cccp, finish
from streamsvm.online.finish import add_to_gradient

FAMILY = {"G": LASVMG, "NC": LASVMNC, "I": LASVMI, "FULL": FullSVM}
every_learner = pytest.mark.parametrize("learner", FAMILY.values(), ids=FAMILY.keys())


def problem(seed, n, d=2, flipped=0.2):
    """Examples, their true classes, and labels of which some are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = X[:, 0] + X[:, -1] ** 2 > 0.7
    return X, truth, truth ^ (rng.random(n) < flipped)


def learned(learner, X, y, **parameters):
    model = learner(**{"C": 10.0, "gamma": 1.0, **parameters})
    model.learn_many(X, y)
    return model


def by_member(model, X, y):
    """Of the members in their order: signs, alpha, lo, hi, and y f(x) computed anew with the kernel in float64."""
    s, live = state_of(model).expansion, live_slots(state_of(model).expansion)
    ids = s.ids[live]
    signs = np.where(y[ids], 1.0, -1.0)
    K = naive.gram(naive.kernel_of(model), X[ids], X[ids])
    return signs, s.alpha[live], s.lo[live], s.hi[live], signs * (K @ s.alpha[live]), K


def rounding(alpha, K):
    """What float32 kernel values may do to f(x)."""
    return 1e-6 + 2e-6 * np.abs(alpha).sum() * np.abs(K).max(initial=0)


def assert_settled(model, X, y, ramp_s, tol):
    """Every box is that of y f(x), every coefficient is in its box, and no member violates."""
    signs, alpha, lo, hi, z, K = by_member(model, X, y)
    C, float32 = hi - lo, rounding(alpha, K)
    shifted = signs * (lo + hi) < 0
    clear = np.abs(z - ramp_s) > float32  # else rounding decides
    np.testing.assert_array_equal(shifted[clear], (z < ramp_s)[clear])
    beta = np.where(shifted, C, 0.0)
    np.testing.assert_allclose(lo, np.minimum(0, C * signs) - beta * signs, rtol=1e-12)
    np.testing.assert_allclose(hi, np.maximum(0, C * signs) - beta * signs, rtol=1e-12)
    assert ((lo <= alpha) & (alpha <= hi)).all()
    assert naive.box_violation(alpha, naive.gradient(alpha, signs, K), lo, hi) <= tol + float32

    s = state_of(model).expansion
    assert s.counts[HOLES] == 0
    assert s.counts[POSITIVE] == np.sum((alpha != 0) & (signs > 0))
    assert s.counts[NEGATIVE] == np.sum((alpha != 0) & (signs < 0))
    n = int(s.counts[SLOTS])
    assert model.gap == pytest.approx(naive.loss_sums(s.g[:n], s.alpha[:n], s.lo[:n], s.hi[:n])[0], rel=1e-9, abs=1e-9)


def ramp_objective(model, X, y, ramp_s):
    """1/2 ||w||^2 + sum_s C_s min(1 - ramp_s, max(0, 1 - y f(x_s))) over the members."""
    _, alpha, lo, hi, z, K = by_member(model, X, y)
    return 0.5 * alpha @ K @ alpha + ((hi - lo) * np.clip(1 - z, 0.0, 1 - ramp_s)).sum()


# ------------------------------------------------------------------------------------------------------ the fixed point


@settings(max_examples=40)
@given(
    st.sampled_from(list(FAMILY.values())),
    st.sampled_from(NAMES[:3]),  # the sigmoid is not positive definite: its steps need not go down
    st.sampled_from([0.01, 1.0, 30.0]),
    st.sampled_from([-1.0, -0.3, 0.0, 0.5]),
    st.sampled_from([1e-2, 1e-4]),
    st.integers(0, 10**6),
    st.integers(1, 100),
)
def test_the_boxes_come_to_rest(learner, kernel, C, ramp_s, tol, seed, n):
    X, _, y = problem(seed, n)
    X[n // 2 :] = X[: n - n // 2]  # duplicates, with their own labels
    w = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], size=n)
    model = learner(C=C, kernel=kernel, gamma=0.5, degree=2, coef0=1.0 if kernel == "poly" else 0.0, pos_weight=1.5)
    model.learn_many(X, y, w)
    model.sparsify(ramp_s=ramp_s, tol=tol)
    assert_settled(model, X, y, ramp_s, tol)
    assert model.n_members == n or learner is not FullSVM


@settings(max_examples=20)
@given(st.sampled_from([-0.3, 0.0]), st.sampled_from([1.0, 10.0]), st.sampled_from([-1.0, 0.3]), st.integers(0, 10**6))
def test_with_the_sigmoid_kernel_it_ends_in_some_boxes(coef0, C, ramp_s, seed):
    """It is not positive definite, and boxes may change without end.  Coefficients are still solved for."""
    X, _, y = problem(seed, 100)
    model = learned(LASVMG, X, y, C=C, kernel="sigmoid", gamma=0.5, coef0=coef0)
    model.sparsify(ramp_s, 1e-3)
    signs, alpha, lo, hi, _, K = by_member(model, X, y)
    assert ((lo <= alpha) & (alpha <= hi)).all()
    np.testing.assert_array_equal(np.maximum(np.abs(lo), np.abs(hi)), C)
    assert naive.box_violation(alpha, naive.gradient(alpha, signs, K), lo, hi) <= 1e-3 + rounding(alpha, K)


@pytest.mark.long
@every_learner
def test_sparsifying_twice_changes_nothing(learner):
    X, _, y = problem(1, 500)
    model = learned(learner, X, y)
    model.sparsify(tol=1e-4)
    before, gap = [a.tobytes() for a in by_member(model, X, y)], model.gap
    model.sparsify(tol=1e-4)
    assert [a.tobytes() for a in by_member(model, X, y)] == before
    assert model.gap == pytest.approx(gap, rel=1e-9)


@pytest.mark.long
@settings(max_examples=25)
@given(
    st.sampled_from(list(FAMILY.values())),
    st.sampled_from([0.1, 1.0, 30.0]),
    st.sampled_from([-1.0, -0.3, 0.3]),
    st.integers(0, 10**6),
)
def test_the_ramp_loss_does_not_rise(learner, C, ramp_s, seed):
    """Each round minimises a bound on the ramp objective that is met where it starts; all members stay here."""
    X, _, y = problem(seed, 100)
    model = learned(learner, X, y, C=C, **({} if learner is FullSVM else {"max_non_sv": 10**6}))
    model.finish(1e-5)
    before = ramp_objective(model, X, y, ramp_s)
    model.sparsify(ramp_s, 1e-5)
    after = ramp_objective(model, X, y, ramp_s)
    assert after <= before * (1 + 1e-6) + 1e-4 * C  # where finish stops, and float32


def test_the_ramp_loss_falls_where_there_is_noise():
    X, _, y = problem(2, 150)
    model = learned(FullSVM, X, y)
    model.finish(1e-4)
    before = ramp_objective(model, X, y, -1.0)
    model.sparsify(-1.0, 1e-4)
    assert ramp_objective(model, X, y, -1.0) < 0.95 * before


# ------------------------------------------------------------------------------------------------- what it is there for


@pytest.mark.parametrize("learner", [LASVMG, FullSVM])
@pytest.mark.parametrize("C", [1.0, 10.0])
def test_on_noisy_data_half_of_the_support_vectors_go(learner, C):
    """And the true classes are predicted as well as before, up to half a point."""
    X, truth, y = problem(3, 3500)
    model = learned(learner, X[:1500], y[:1500], C=C)
    model.finish()
    n_support, right = model.n_support, np.mean(model.predict_many(X[1500:]) == truth[1500:])
    model.sparsify()
    assert model.n_support < 0.5 * n_support
    assert np.mean(model.predict_many(X[1500:]) == truth[1500:]) > right - 0.005
    assert right > 0.9


@settings(max_examples=20)
@given(st.sampled_from(list(FAMILY.values())), st.sampled_from([1.0, 30.0]), st.integers(0, 10**6))
def test_support_vectors_do_not_become_more(learner, C, seed):
    """Beyond those few that free a place for another."""
    X, _, y = problem(seed, 300, flipped=0.1)
    model = learned(learner, X, y, C=C)
    model.finish()
    before = model.n_support
    model.sparsify()
    assert model.n_support <= 1.05 * before + 3


def test_clean_data_stay_as_they_are():
    """Where no example is far on the wrong side, no box changes: it is finish."""
    X, _, y = problem(4, 500, flipped=0.0)
    finished, sparse = (learned(LASVMG, X, y, C=100.0) for _ in range(2))
    finished.finish()
    assert by_member(finished, X, y)[4].min() > -1
    sparse.sparsify()
    np.testing.assert_array_equal(np.sort(sparse.support_ids), np.sort(finished.support_ids))
    np.testing.assert_allclose(sparse.decision_function_many(X), finished.decision_function_many(X), atol=5e-3)


# ------------------------------------------------------------------------------------------------ parameters and limits


def test_the_ramp_is_the_models_own_or_minus_one():
    X, _, y = problem(5, 400)
    for learner, own in ((LASVMG, -1.0), (FullSVM, -1.0), (LASVMNC, -0.2), (LASVMI, -0.2)):
        parameters = {} if own == -1.0 else {"ramp_s": own}
        default, named, other = (learned(learner, X, y, **parameters) for _ in range(3))
        default.sparsify()
        named.sparsify(ramp_s=own, tol=1e-3)
        other.sparsify(ramp_s=0.3)
        assert default.digest() == named.digest()
        assert default.digest() != other.digest()


@every_learner
def test_a_model_that_has_learned_nothing_stays_empty(learner):
    model = learner()
    model.sparsify()
    assert (model.n_members, model.n_support, model.gap) == (0, 0, 0.0)
    assert model.predict_one({"a": 1.0}) is False


@every_learner
@pytest.mark.parametrize("label", [True, False])
@pytest.mark.parametrize("ramp_s", [-1.0, 0.0])
def test_a_model_of_one_class_still_predicts_it(learner, label, ramp_s):
    X, _, _ = problem(6, 100)
    model = learned(learner, X, np.full(100, label))
    model.sparsify(ramp_s)
    assert (model.predict_many(X) == label).all()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "low"])
def test_a_bad_ramp_is_named(value):
    with pytest.raises(ValueError, match=f"ramp_s={value!r}"):
        LASVMG().sparsify(ramp_s=value)


@pytest.mark.parametrize("tol", [0.0, -1.0, float("nan"), float("inf"), "small"])
def test_a_bad_tolerance_is_named(tol):
    with pytest.raises(ValueError, match=f"tol={tol!r}"):
        LASVMG().sparsify(tol=tol)


def test_a_refused_parameter_leaves_the_model_alone():
    X, _, y = problem(7, 100)
    model = learned(LASVMG, X, y)
    digest = model.digest()
    for parameters in ({"ramp_s": float("nan")}, {"tol": 0.0}):
        with pytest.raises(ValueError, match="must be"):
            model.sparsify(**parameters)
    assert model.digest() == digest


# ---------------------------------------------------------------------------------------------------------- afterwards


@pytest.mark.long
@every_learner
def test_learning_goes_on(learner):
    """From a snapshot as from the model itself, and a later polish settles again."""
    X, truth, y = problem(8, 1300)
    model = learned(learner, X[:200], y[:200], C=1.0)
    model.sparsify()
    again = learner.from_bytes(model.to_bytes())
    for b in (200, 250):
        for other in (model, again):
            other.learn_many(X[b : b + 50], y[b : b + 50])
    assert again.digest() == model.digest()
    signs, alpha, lo, hi, z, K = by_member(model, X, y)
    assert ((lo <= alpha) & (alpha <= hi)).all()
    float32 = rounding(alpha, K)
    s = state_of(model).expansion
    np.testing.assert_allclose(signs - signs * z, s.g[live_slots(s)], rtol=0, atol=float32)
    assert s.counts[POSITIVE] == np.sum((alpha != 0) & (signs > 0))
    model.sparsify(-1.0)
    assert_settled(model, X, y, -1.0, model.tol)
    assert np.mean(model.predict_many(X[300:]) == truth[300:]) > 0.85


def test_cost_is_that_of_a_few_rounds():
    """It starts each round where the last one ended: kernel values are computed once for most members."""
    X, _, y = problem(9, 1000)
    model = learned(LASVMG, X, y)
    model.finish()
    before, n = model.kernel_evaluations, model.n_members
    model.sparsify()
    assert model.kernel_evaluations - before < 10 * n * n


@pytest.mark.parametrize("cache_mb", [1e-6, 256.0])
def test_the_cache_does_not_change_the_end(cache_mb):
    X, _, y = problem(10, 250)
    model, reference = learned(LASVMG, X, y, cache_mb=cache_mb), learned(LASVMG, X, y)
    for other in (model, reference):
        other.sparsify(tol=1e-4)
    assert_settled(model, X, y, -1.0, 1e-4)
    assert model.digest() == reference.digest()


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_the_gradient_is_that_of_the_coefficients(offset):
    """Up to rounding, also where features far from 0 make k(x, x) inexact in single precision."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0) ^ (rng.random(400) < 0.2)
    model = LASVMG(C=100.0)
    model.learn_many(X + offset, y)
    model.sparsify(tol=0.1)
    s = state_of(model).expansion
    alpha, g = s.alpha[: s.counts[SLOTS]].copy(), s.g[: s.counts[SLOTS]].copy()
    s.g[: s.counts[SLOTS]] = s.y[: s.counts[SLOTS]]
    add_to_gradient(s, naive.kernel_of(model), np.flatnonzero(alpha), alpha[alpha != 0], 0, int(s.counts[SLOTS]))
    np.testing.assert_allclose(s.g[: s.counts[SLOTS]], g, rtol=0, atol=1e-9 * np.abs(alpha).sum())


def test_it_gives_up_with_a_finish_that_does():
    """Once, not in every round."""
    rng = np.random.default_rng(1)
    X = 30 * rng.normal(size=(60, 5))
    model = LASVMG(kernel="poly", degree=3)
    model.learn_many(X, X[:, 0] * X[:, 1] > 0)
    rounds = mock.patch.object(cccp, "finish_without_bias", wraps=cccp.finish_without_bias)
    warns = pytest.warns(RuntimeWarning, match="violation")
    with mock.patch.object(finish, "STEPS_PER_EXAMPLE", 0), rounds as called, warns:
        model.sparsify()
    assert called.call_count == 2


# ---------------------------------------------------------------------------------------------------------- with a bias


@settings(max_examples=15)
@given(st.sampled_from(NAMES[:3]), st.sampled_from([0.3, 10.0]), st.sampled_from([-1.0, 0.0]), st.integers(0, 10**6))
def test_lasvm_forgets_what_the_ramp_gives_up(kernel, C, ramp_s, seed):
    """What is left is the solution of the hinge loss over the members, and hardly one of them is noise."""
    X, _, y = problem(seed, 120)
    model = learned(LASVM, X, y, C=C, kernel=kernel, gamma=0.5, degree=2, coef0=1.0)
    model.sparsify(ramp_s, tol=1e-4)
    signs, alpha, lo, hi, z, K = by_member(model, X, y)
    np.testing.assert_array_equal(lo, np.minimum(0.0, C * signs))
    np.testing.assert_array_equal(hi, np.maximum(0.0, C * signs))
    assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum()
    float32 = rounding(alpha, K)
    assert model.delta <= 1e-4
    noise = z + signs * model.bias < ramp_s - float32
    assert noise.sum() <= 0.05 * len(noise)  # The rounds may end before the last of it has gone.


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_lasvm_loses_half_of_its_support_vectors_and_keeps_its_accuracy(C):
    X, truth, y = problem(1, 1500)
    model = learned(LASVM, X[:700], y[:700], C=C)
    model.finish()
    before, right = model.n_support, np.mean(model.predict_many(X[700:]) == truth[700:])
    model.sparsify()
    assert model.n_support < 0.5 * before
    assert np.mean(model.predict_many(X[700:]) == truth[700:]) > right - 0.02


def test_what_lasvm_has_given_up_does_not_come_back():
    X, truth, y = problem(2, 1200)
    model = learned(LASVM, X[:600], y[:600])
    model.sparsify()
    sparse = model.n_support
    model.finish()
    assert model.n_support < 1.1 * sparse
    again = LASVM.from_bytes(model.to_bytes())
    for other in (model, again):
        other.learn_many(X[600:700], y[600:700])
        other.finish()
    assert again.digest() == model.digest()
    assert np.mean(model.predict_many(X[700:]) == truth[700:]) > 0.9


@pytest.mark.parametrize("label", [True, False])
def test_lasvm_of_one_class_or_none_can_be_made_sparse(label):
    model = LASVM()
    model.sparsify()
    assert model.n_members == 0
    model.learn_one({"a": 1.0}, label)
    model.sparsify(0.0)
    assert model.predict_one({"a": 2.0}) is label
