"""The gap family: every step is that of the slow twin, bit for bit, and what is promised holds after every example."""

import copy
import inspect
import itertools
import pickle
from unittest import mock

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from queries import from_dense
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM
from streamsvm.core import blocks, storage
from streamsvm.core.blocks import expansion_sum
from streamsvm.core.expansion import (
    ADMITTED,
    EVALUATIONS,
    FORBIDDEN,
    HOLES,
    NEGATIVE,
    POSITIVE,
    SLOT_DOWN,
    SLOT_UP,
    SLOTS,
)
from streamsvm.core.kernels import NAMES
from streamsvm.core.rows import kernel_row
from streamsvm.core.saving import dumping
from streamsvm.core.storage import empty, live_slots
from streamsvm.estimators.learner.learning import learn_batch
from streamsvm.online import finish, gap, gap_steps
from streamsvm.online.from_batch import append_block
from streamsvm.online.gradient import sum_losses

FAMILY = {"G": LASVMG, "NC": LASVMNC, "I": LASVMI, "FULL": FullSVM}
every_learner = pytest.mark.parametrize("learner", FAMILY.values(), ids=FAMILY.keys())
SIZES = [1, 7, 511, 512, 513, 1100]  # around the blocks in which gradients are scanned


@njit
def scanned(s, c_i, c_j, K_i, K_j):
    gap_steps.scan(s, c_i, c_j, K_i, K_j)


@njit
def moved(g, K, low, high):
    return gap_steps.best_move(g, K, low, high)


@njit
def moved_jointly(g, K, low, high):
    return gap_steps.best_joint_move(g[0], g[1], K[0, 0], K[1, 1], K[0, 1], low[0], high[0], low[1], high[1])


@njit
def partner(s, n, i, K_i):
    return gap_steps.second_order_partner(s.g[:n], s.up[:n], s.down[:n], s.self_k[:n], i, K_i)


@njit
def selected(a, n):
    return gap.select(a, n)


@njit
def dot(alpha, row):
    return expansion_sum(alpha, row)


@njit
def sums(g, alpha, lo, hi):
    return sum_losses(g, alpha, lo, hi)


@njit
def all_rows(s, kernel, q, K):
    for t in range(K.shape[0]):
        begin, end = q.indptr[t], q.indptr[t + 1]
        kernel_row(s, kernel, q.indices[begin:end], q.values[begin:end], q.sq[t], 0, K.shape[1], K[t])


def engine_kernel(X, kernel):
    """The engine's kernel values of all pairs, (n, n) float32, and of each example with itself, (n,) float64."""
    n, d = X.shape
    q = from_dense(X, np.arange(d))
    s = append_block(empty(1 << 20), kernel, q, d, np.zeros(n), np.ones(n))
    K = np.empty((n, n), np.float32)
    all_rows(s, kernel, q, K)
    np.fill_diagonal(K, s.self_k[:n])
    return K, s.self_k[:n]


def problem(seed, n, d, binary=False, noise=0.1):
    """Examples with duplicates and a constant feature, and labels that may be wrong."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < 0.4).astype(float) if binary else rng.normal(size=(n, d))
    X[:, 0] = 1.0
    copied = rng.random(n) < 0.2
    X[copied] = X[rng.integers(n, size=copied.sum())]
    return X, (X @ rng.normal(size=d) > 0) ^ (rng.random(n) < noise)


def learn(model, X, y, w=None, ids=None):
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        w_t, id_t = 1.0 if w is None else float(w[t]), None if ids is None else int(ids[t])
        model.learn_one(dict(enumerate(x)), bool(label), w=w_t, id=id_t)
    return model


def made(learner, parameters):
    """A model with those of the parameters that the learner has."""
    return learner(**{name: parameters[name] for name in inspect.signature(learner).parameters if name in parameters})


def members(n, seed=0, ties=False):
    """An expansion in any state: both kinds of boxes, coefficients at their bounds and between, holes."""
    rng = np.random.default_rng(seed)
    s = empty(0, max(n, 1), 1)
    y, beta = rng.choice([-1.0, 1.0], size=n), rng.random(n) < 0.2
    C = rng.choice([0.5, 1.0, 3.0], size=n)
    s.lo[:n], s.hi[:n] = np.minimum(0, C * y) - beta * C * y, np.maximum(0, C * y) - beta * C * y
    s.alpha[:n] = np.choose(rng.integers(4, size=n), [0 * y, s.lo[:n], s.hi[:n], rng.uniform(s.lo[:n], s.hi[:n])])
    s.g[:n] = rng.integers(-2, 3, n) if ties else rng.normal(size=n)
    s.self_k[:n], s.y[:n], s.ids[:n] = rng.uniform(0.5, 2, size=n), y, np.arange(n)
    holes = rng.random(n) < 0.1
    for a in (s.lo[:n], s.hi[:n], s.alpha[:n], s.y[:n]):
        a[holes] = 0
    s.up[:n] = np.where(s.alpha[:n] < s.hi[:n], 0.0, -FORBIDDEN)
    s.down[:n] = np.where(s.alpha[:n] > s.lo[:n], 0.0, FORBIDDEN)
    s.counts[[SLOTS, HOLES]] = n, holes.sum()
    return s


def state(s):
    """alpha, g, lo and hi of all slots."""
    n = int(s.counts[SLOTS])
    return s.alpha[:n], s.g[:n], s.lo[:n], s.hi[:n]


def assert_noted(s):
    """The extremes, their slots and the sums of the losses are those of the members."""
    alpha, g, lo, hi = state(s)
    slots = naive.extremes(alpha, g, lo, hi)
    assert tuple(s.counts[[SLOT_UP, SLOT_DOWN]]) == tuple(-1 if slot is None else slot for slot in slots)
    none = -FORBIDDEN, FORBIDDEN
    assert tuple(s.extremes) == tuple(none[k] if slot is None else g[slot] for k, slot in enumerate(slots))
    assert_sums(s.losses, g, alpha, lo, hi)


def assert_sums(found, g, alpha, lo, hi):
    """The gap is a difference of terms that may be much larger."""
    h = np.maximum(lo * g, hi * g)
    expected, float64 = naive.loss_sums(g, alpha, lo, hi), 1e-14 * max(1, len(g))
    assert found[0] == pytest.approx(expected[0], rel=0, abs=float64 * np.sum(h + np.abs(alpha * g)))
    np.testing.assert_allclose(found[1:], expected[1:], rtol=float64)


# ---------------------------------------------------------------------------------------------------------- the pieces


@pytest.mark.parametrize("n", [0, *SIZES])
@pytest.mark.parametrize("ties", [False, True])
def test_one_pass_updates_the_gradient_and_notes_extremes_and_losses(n, ties):
    rng, s = np.random.default_rng(n), members(n, n, ties)
    K_i, K_j = rng.integers(0, 2, (2, n)).astype(np.float32) if ties else np.float32(rng.random((2, n)))
    expected = s.g[:n] - (0.5 * np.float64(K_i) - 0.25 * np.float64(K_j))
    scanned(s, 0.5, -0.25, K_i, K_j)
    np.testing.assert_array_equal(s.g[:n], expected)
    assert_noted(s)


@pytest.mark.parametrize("n", SIZES)
def test_where_none_may_move_there_are_no_extremes(n):
    s = members(n)
    s.up[:n], s.down[:n], s.alpha[:n], s.lo[:n], s.hi[:n] = -FORBIDDEN, FORBIDDEN, 0.0, 0.0, 0.0
    gap_steps.rescan(s)
    assert_noted(s)


@pytest.mark.parametrize("n", SIZES)
def test_the_sums_over_a_block_are_those_of_numpy(n):
    alpha, g, lo, hi = state(members(n, n))
    assert_sums(sums(g, alpha, lo, hi), g, alpha, lo, hi)


gradients = st.one_of(st.sampled_from([0.0, 1.0, -1.0]), st.floats(-100, 100))
bounds = st.one_of(st.sampled_from([0.0, 1.0, 1e5]), st.floats(0, 100))


@given(gradients, st.one_of(st.just(0.0), st.floats(1e-3, 100)), bounds, bounds)
def test_a_single_move_is_the_best_in_its_interval(g, K, down, up):
    d = moved(g, K, -down, up)
    assert d == naive.best_move(g, K, -down, up)
    assert -down <= d <= up
    grid = np.linspace(-down, up, 101)
    assert g * d - 0.5 * K * d * d >= (g * grid - 0.5 * K * grid * grid).max() - 1e-9 * (1 + abs(g * d))


def matrices(seed):
    """Kernels of two examples: of any rank, also indefinite ones, as the sigmoid has, and nearly singular ones."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2, 2)) * rng.choice([0.1, 1.0, 10.0], size=(2, 1))
    K = A @ A.T
    kind = rng.choice(["definite", "duplicates", "zero vector", "parallel", "indefinite", "nearly singular"])
    if kind == "duplicates":
        K[:] = K[0, 0]
    elif kind == "zero vector":
        k = rng.integers(2)
        K[k, :] = K[:, k] = 0.0
    elif kind == "parallel":
        a = rng.integers(-3, 4, size=2).astype(float)
        K = np.outer(a, a)
    elif kind == "indefinite":
        K[0, 1] = K[1, 0] = rng.uniform(1.1, 3) * np.sqrt(K[0, 0] * K[1, 1])
    elif kind == "nearly singular":
        K[0, 1] = K[1, 0] = np.sqrt(K[0, 0] * K[1, 1] * (1 - 10 ** rng.uniform(-12, -4)))
    return kind, K


def boxes(rng):
    """The room of two members: at a bound, near it, or far from both."""
    low, high = -rng.choice([0.0, 0.1, 1.0, 100.0], size=2), rng.choice([0.0, 0.1, 1.0, 100.0], size=2)
    return low * rng.uniform(0.5, 1, 2), high * rng.uniform(0.5, 1, 2)


@settings(max_examples=500)
@given(st.integers(0, 10**9))
def test_no_point_of_the_box_is_better_than_the_joint_move(seed):
    """Edges and grid.  What is nearly singular is solved on the edges: its interior is not worth its rounding."""
    rng, (kind, K) = np.random.default_rng(seed), matrices(seed)
    low, high = boxes(rng)
    g = rng.choice([0.0, 1.0, 10.0]) * rng.normal(size=2)
    d = np.array(moved_jointly(g, K, low, high))
    np.testing.assert_array_equal(d, naive.best_moves(g, K, low, high))
    assert (low <= d).all()
    assert (d <= high).all()
    gained, scale = naive.gain(d, g, K), 1 + np.abs(g) @ np.maximum(-low, high)
    alone = naive.gain((naive.best_move(g[0], K[0, 0], low[0], high[0]), 0.0), g, K)
    assert gained >= alone >= 0
    if kind != "nearly singular":
        points = np.meshgrid(*np.linspace(low, high, 61).T)
        assert gained >= naive.gain(points, g, K).max() - 1e-9 * scale
        other = naive.gain((0.0, naive.best_move(g[1], K[1, 1], low[1], high[1])), g, K)
        assert gained >= other - 1e-9 * scale


@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_a_joint_move_within_the_box_ends_both_gradients(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2, 2))
    K, g = A @ A.T + 0.01 * np.eye(2), rng.normal(size=2)
    d = np.array(moved_jointly(g, K, np.full(2, -1e6), np.full(2, 1e6)))
    np.testing.assert_allclose(K @ d, g, rtol=0, atol=1e-8)


def test_without_positive_curvature_a_move_still_gains():
    """The sigmoid kernel may be negative even between an example and itself."""
    rng = np.random.default_rng(0)
    for _ in range(1000):
        K = np.diag(rng.uniform(-1, 1, size=2)) + rng.uniform(-1.5, 1.5) * (1 - np.eye(2))
        low, high = boxes(rng)
        g = rng.normal(size=2)
        d = np.array(moved_jointly(g, K, low, high))
        assert ((low <= d) & (d <= high)).all()
        assert naive.gain(d, g, K) >= max(0.0, naive.gain((moved(g[0], K[0, 0], low[0], high[0]), 0.0), g, K))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("ties", [False, True])
def test_the_second_order_partner_gains_most(n, ties):
    rng, s = np.random.default_rng(n), members(n, n, ties)
    if ties:
        s.self_k[:n] = 1.0
    K_i = np.float32(rng.choice([0.0, 0.5], size=n) if ties else rng.random(n))
    for i in {0, n // 2, n - 1, int(np.argmax(s.g[:n])), int(np.argmin(s.g[:n]))}:
        K_i[i] = s.self_k[i]
        expected = naive.joint_partner(*state(s), i, s.self_k[:n], np.float64(K_i))
        assert partner(s, n, i, K_i) == (-1 if expected is None else expected)
        K_i[i] = 0.5


def test_the_partner_is_the_member_whose_free_step_gains_most():
    """By the gain itself, of steps in a box that cuts none, among the members that would go the way they may."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        n = 12
        A = rng.normal(size=(n, 6))
        K, s = A @ A.T, members(n, rng.integers(10**6))
        s.self_k[:n] = np.diag(K)
        i, free = int(rng.integers(n)), np.full(2, 1e9)
        gains = np.full(n, -np.inf)
        for j in set(range(n)) - {i}:
            pair = np.ix_([i, j], [i, j])
            d = naive.best_moves(s.g[[i, j]], K[pair], -free, free)
            if (d[1] > 0 and s.up[j] == 0) or (d[1] < 0 and s.down[j] == 0):
                gains[j] = naive.gain(d, s.g[[i, j]], K[pair])
        found = partner(s, n, i, np.float32(K[i]))
        assert found == (int(np.argmax(gains)) if gains.max() > -np.inf else -1)


def test_a_partner_may_move_however_large_the_kernel_is():
    """Kernel values up to 1e30 are learned; gradients are then as large."""
    s = members(700, 3)
    s.self_k[:700] *= 1e28
    s.g[:700] *= 1e26
    K_i = np.float32(1e28 * np.random.default_rng(4).random(700))
    for i in range(0, 700, 7):
        expected = naive.joint_partner(*state(s), i, s.self_k[:700], np.float64(K_i))
        assert partner(s, 700, i, K_i) == (-1 if expected is None else expected)


@given(st.lists(st.one_of(st.sampled_from([0.0, 1.0, np.inf]), st.floats(0, 10)), min_size=1, max_size=60))
def test_selection_finds_the_nth_smallest(values):
    expected = np.sort(values)
    for n in range(len(values)):
        a = np.array(values)
        assert selected(a, n) == expected[n]
        np.testing.assert_array_equal(np.sort(a), expected)


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "random"])
def test_selection_in_long_arrays(order):
    a = {"rising": np.arange(3000.0), "falling": -np.arange(3000.0), "equal": np.ones(3000)}
    a["random"] = np.random.default_rng(0).normal(size=3000)
    for n in (0, 1, 299, 1500, 2999):
        assert selected(a[order].copy(), n) == np.sort(a[order])[n]


# --------------------------------------------------------------------------------------------------------------- CLEAN


@given(st.integers(0, 10**6), st.integers(0, 60), st.integers(0, 12), st.booleans())
def test_clean_leaves_the_candidates_that_are_nearest_to_moving(seed, n, max_non_sv, ties):
    s = members(n, seed, ties)
    alpha, g, lo, hi = (a.copy() for a in state(s))
    before, y = set(live_slots(s).tolist()), s.y[:n].copy()
    candidates = [t for t in before if alpha[t] == 0]
    away = naive.distances(alpha, g, lo, hi)
    kept = sorted(candidates, key=lambda t: (away[t], t))[:max_non_sv]  # of equals the younger go
    stay = set(kept) | {t for t in before if alpha[t] != 0 or away[t] == 0}  # one that may move never goes
    gap.clean(s, max_non_sv)
    assert set(live_slots(s).tolist()) == stay
    gone = sorted(before - stay)
    assert s.counts[HOLES] == n - len(stay)
    for a, hole in ((s.alpha, 0), (s.lo, 0), (s.hi, 0), (s.up, -FORBIDDEN), (s.down, FORBIDDEN)):
        assert (a[gone] == hole).all()
    live = sorted(stay)
    np.testing.assert_array_equal(s.y[live], y[live])
    for a, old in zip(state(s), (alpha, g, lo, hi), strict=True):
        np.testing.assert_array_equal(a[live], old[live])
    if len(candidates) > max_non_sv:
        assert_noted(s)


def test_clean_never_takes_a_member_that_violates():
    """Though it has the largest |g| of all, and though none is to be left."""
    s = members(0)
    s = storage.reserve(s, 8, 1, True, 0)
    s.y[:4], s.lo[:4], s.hi[:4] = [1, 1, -1, -1], [0, 0, -1, -1], [1, 1, 0, 0]
    s.g[:4], s.counts[SLOTS] = [5.0, -0.1, -5.0, 0.1], 4
    s.up[:4], s.down[:4] = [0, 0, -FORBIDDEN, -FORBIDDEN], [FORBIDDEN, FORBIDDEN, 0, 0]
    gap.clean(s, 0)
    assert live_slots(s).tolist() == [0, 2]
    assert_noted(s)


# ------------------------------------------------------------------------------------------------------- the whole run

PARAMETERS = {
    "C": st.sampled_from([1e-4, 0.1, 1.0, 30.0, 1e5]),
    "kernel": st.sampled_from(NAMES),
    "gamma": st.sampled_from([0.02, 0.3]),
    "degree": st.just(2),
    "coef0": st.sampled_from([0.0, 0.5, -0.5]),  # with the last, the sigmoid of small examples is negative
    "pos_weight": st.sampled_from([0.3, 1.0, 3.0]),
    "tol": st.sampled_from([1e-3, 0.1]),
    "steps": st.sampled_from(["pair", "single"]),
    "clean_every": st.sampled_from([1, 7, 40]),
    "max_non_sv": st.sampled_from([0, 5, 30]),
    "ramp_s": st.sampled_from([-1.0, 0.0, 0.5]),
    "ramp_warmup": st.sampled_from([0, 20]),
}
CONFIGURATIONS = st.fixed_dictionaries(PARAMETERS)
LEARNERS = st.sampled_from(list(FAMILY.values()))
STREAMS = st.tuples(st.integers(0, 10**6), st.integers(1, 100), st.sampled_from([1, 3, 12, 40]), st.booleans())
WEIGHTS = st.sampled_from([None, (0.5, 1.0, 2.0), (0.0, 1.0)])


def assert_equal_run(model, X, y, w=None, ids=None):
    """The engine and its twin learn a stream; afterwards they agree in every slot."""
    K, diagonal = engine_kernel(X, naive.kernel_of(model))
    twin = naive.NaiveGap(K, diagonal, state_of(model).rule, model.C, model.pos_weight, dot, sums=sums)
    said = naive.late_margins(len(y))
    for t, label in enumerate(y):
        w_t, id_t = 1.0 if w is None else w[t], None if ids is None else ids[t]
        twin.said = said[t]
        one = X[t : t + 1], y[t : t + 1], w_t, None if ids is None else [id_t]
        assert twin.learn(1 if label else -1, w_t, id_t) == learn_batch(state_of(model), *one, said=said[t : t + 1])[0]
    s = state_of(model).expansion
    n, live = int(s.counts[SLOTS]), live_slots(s)
    np.testing.assert_array_equal(s.y[:n], twin.y)
    np.testing.assert_array_equal(s.ids[:n], twin.ids)
    np.testing.assert_array_equal(s.alpha[:n], twin.alpha)
    np.testing.assert_array_equal(s.g[live], twin.g[twin.y != 0])
    np.testing.assert_array_equal(s.lo[:n], twin.lo)
    np.testing.assert_array_equal(s.hi[:n], twin.hi)
    assert tuple(s.losses) == (twin.gap, twin.loss, twin.squares, twin.boxes)
    assert model.n_reprocess == twin.n_reprocess
    assert s.counts[ADMITTED] == twin.n_admitted
    np.testing.assert_allclose(model.slopes, naive.slopes(twin.margins), rtol=1e-9)
    return twin


@pytest.mark.long
@settings(max_examples=60)
@given(LEARNERS, CONFIGURATIONS, STREAMS, WEIGHTS, st.integers(0, 99))
def test_a_run_is_that_of_the_twin(learner, parameters, stream, weights, seed):
    X, y = problem(*stream)
    w = None if weights is None else np.random.default_rng(seed).choice(weights, size=len(y))
    assert_equal_run(made(learner, parameters), X, y, w)


@pytest.mark.long
@pytest.mark.parametrize("binary", [True, False])
@every_learner
def test_a_long_run_is_that_of_the_twin(learner, binary):
    """With examples that come twice, and for those that forget: long enough for holes to be squeezed out again."""
    X, y = problem(3, 1500, 12, binary, noise=0.05)
    ids = np.random.default_rng(3).permutation(1500) // 2
    X, y = X[ids], y[ids]
    parameters = {"C": 30.0, "gamma": 0.02, "clean_every": 7, "max_non_sv": 5, "ramp_warmup": 100}
    twin = assert_equal_run(made(learner, parameters), X, y, ids=ids)
    if learner in (LASVMG, LASVMNC):
        assert twin.n_cleaned > 100
        assert twin.n_squeezed >= 2


@pytest.mark.long
@every_learner
def test_a_run_over_several_blocks_of_slots_is_that_of_the_twin(learner):
    """Gradients are scanned in blocks, whose extremes and sums are put together."""
    X, y = problem(4, 1300, 3, noise=0.3)
    parameters = {"C": 1.0, "gamma": 0.3, "max_non_sv": 10**6, "ramp_s": -3.0}
    twin = assert_equal_run(made(learner, parameters), X, y)
    assert len(twin.y) > 512 * (1 if learner is LASVMI else 2)


@every_learner
def test_a_run_with_one_class_at_first_is_that_of_the_twin(learner):
    X, _ = problem(5, 200, 3)
    assert_equal_run(
        made(learner, {"gamma": 1.0, "clean_every": 7, "max_non_sv": 5, "ramp_warmup": 20}), X, np.arange(200) >= 150
    )


# ------------------------------------------------------------------------------------------- what must always be true


def rounding(model, K):
    """What float32 kernel values may do to a gradient."""
    return 1e-5 * (1 + np.abs(model.dual_coef).sum() * np.abs(K).max(initial=0))


def consistent_dual(model, y, K, w=1.0):
    """The dual, after a check that all that is kept up to date is what it would be if it were computed anew."""
    s, live = state_of(model).expansion, live_slots(state_of(model).expansion)
    alpha, g, lo, hi = (a[live] for a in state(s))
    examples, holes = s.ids[live], np.setdiff1d(np.arange(s.counts[SLOTS]), live)
    signs, K = np.where(y[examples], 1.0, -1.0), K[np.ix_(examples, examples)]
    np.testing.assert_array_equal(s.y[live], signs)
    assert s.counts[HOLES] == len(holes)
    for a, value in ((s.alpha, 0), (s.lo, 0), (s.hi, 0), (s.up, -FORBIDDEN), (s.down, FORBIDDEN)):
        assert (a[holes] == value).all()

    C = model.C * np.broadcast_to(w, len(y))[examples] * np.where(signs > 0, model.pos_weight, 1.0)
    beta = np.where(lo == np.minimum(0, C * signs), 0.0, C)
    np.testing.assert_array_equal(lo, np.minimum(0, C * signs) - beta * signs)
    np.testing.assert_array_equal(hi, np.maximum(0, C * signs) - beta * signs)
    assert (beta == 0).all() or type(model) is LASVMNC
    assert ((lo <= alpha) & (alpha <= hi)).all()
    np.testing.assert_array_equal(s.up[live] == 0, alpha < hi)
    np.testing.assert_array_equal(s.down[live] == 0, alpha > lo)
    assert s.counts[POSITIVE] == np.sum((alpha != 0) & (signs > 0))
    assert s.counts[NEGATIVE] == np.sum((alpha != 0) & (signs < 0))

    assert_noted(s)
    float32 = rounding(model, K)
    np.testing.assert_allclose(g, naive.gradient(alpha, signs, K), rtol=0, atol=float32)
    dual = naive.dual(alpha, signs, K)
    between = naive.primal(alpha, signs, K, lo, hi) - dual
    assert model.gap == pytest.approx(between, rel=1e-9, abs=float32 * (hi - lo).sum())
    assert model.gap >= 0
    return dual


@pytest.mark.long
@settings(max_examples=60)
@given(LEARNERS, CONFIGURATIONS, STREAMS, WEIGHTS, st.sampled_from(["learned", "one class", "flipping"]))
def test_the_state_is_consistent_and_the_dual_never_falls(learner, parameters, stream, weights, labels):
    """Along PROCESS and every REPROCESS: an example that joins or leaves with alpha = 0 does not change the dual."""
    X, y = problem(*stream)
    X, y = X[:60], y[:60]
    y = {"learned": y, "one class": np.ones_like(y), "flipping": np.arange(len(y)) % 2 == 0}[labels]
    w = np.ones(len(y)) if weights is None else np.resize(weights, len(y))
    model, best = made(learner, parameters), 0.0
    K = naive.gram(naive.kernel_of(model), X, X)
    for t in range(len(y)):
        learn(model, X[t : t + 1], y[t : t + 1], w[t : t + 1])
        dual = consistent_dual(model, y, K, w)
        assert dual >= best - rounding(model, K) * max(1.0, np.abs(model.dual_coef).sum())
        best = dual


def small_gap(s, box):
    """The spread of the primal's terms, sqrt(l) standard deviations of the losses, and at least the mean box."""
    alpha, g, lo, hi = state(s)
    h, n_support = np.maximum(lo * g, hi * g), np.count_nonzero(alpha)
    target = np.sqrt(max(0.0, np.sum(h * h) - np.sum(h) ** 2 / n_support)) if n_support else 0.0
    members = live_slots(s)
    return max(np.mean(hi[members] - lo[members]) if len(members) else box, target)


@settings(max_examples=60)
@given(LEARNERS, CONFIGURATIONS, STREAMS)
def test_an_example_ends_when_the_gap_is_small_or_nothing_violates(learner, parameters, stream):
    X, y = problem(*stream)
    model = made(learner, parameters)
    for t in range(len(y)):
        s, steps = state_of(model).expansion, model.n_reprocess
        box = model.C * (model.pos_weight if y[t] else 1.0)
        admitted, enough = int(s.counts[ADMITTED]), small_gap(s, box)
        learn(model, X[t : t + 1], y[t : t + 1])
        s, steps = state_of(model).expansion, model.n_reprocess - steps
        closed = model.gap <= enough * (1 + 1e-9) or naive.box_violation(*state(s)) <= model.tol
        assert closed or steps == gap.MAX_REPROCESS or s.counts[ADMITTED] == admitted
        assert steps <= gap.MAX_REPROCESS


def test_reprocess_goes_on_until_the_gap_is_small_and_no_longer():
    """Where the gap was small before the last step, there was none: each example has as many steps as are needed."""
    X, y = problem(6, 400, 3, noise=0.2)
    model, worked = LASVMG(C=10.0, gamma=0.3), 0
    for t in range(400):
        before, enough, steps = model.gap, small_gap(state_of(model).expansion, model.C), model.n_reprocess
        f = model.decision_function_many(X[t : t + 1])[0]
        learn(model, X[t : t + 1], y[t : t + 1])
        worked += model.n_reprocess > steps
        if before <= enough and (1 if y[t] else -1) * f > 1:  # the example adds nothing to the gap
            assert model.n_reprocess == steps
    assert 50 < worked < 350


def test_an_example_takes_no_more_than_so_many_steps():
    X, y = problem(7, 60, 3, noise=0.3)
    model, steps = LASVMG(C=1e5, gamma=0.3, steps="single"), []
    for t in range(60):
        before = model.n_reprocess
        learn(model, X[t : t + 1], y[t : t + 1])
        steps.append(model.n_reprocess - before)
    assert max(steps) == gap.MAX_REPROCESS
    assert steps.count(gap.MAX_REPROCESS) > 5


def test_clean_changes_neither_coefficients_nor_gap():
    X, y = problem(8, 500, 3)
    model = learn(LASVMG(C=10.0, gamma=0.3), X, y)
    s, before, support = state_of(model).expansion, model.gap, (model.support_ids, model.dual_coef)
    f = model.decision_function_many(X)
    gap.clean(s, 3)
    assert model.n_members < 300
    assert model.n_members - model.n_support >= 3
    assert model.gap == pytest.approx(before, rel=1e-12)
    np.testing.assert_array_equal(model.support_ids, support[0])
    np.testing.assert_array_equal(model.dual_coef, support[1])
    np.testing.assert_array_equal(model.decision_function_many(X), f)


@pytest.mark.parametrize("learner", [LASVMG, LASVMNC, LASVMI])
@pytest.mark.parametrize(("clean_every", "max_non_sv"), [(1, 0), (7, 5), (100, 100)])
def test_clean_comes_every_so_many_admitted_examples(learner, clean_every, max_non_sv):
    """It leaves so many candidates, and more only where they may move; between, none leaves."""
    X, y = problem(9, 1000, 3)
    model = learner(C=10.0, gamma=0.3, clean_every=clean_every, max_non_sv=max_non_sv)
    for t in range(1000):
        before, admitted = model.n_members, state_of(model).expansion.counts[ADMITTED]
        learn(model, X[t : t + 1], y[t : t + 1])
        s = state_of(model).expansion
        if s.counts[ADMITTED] > admitted and s.counts[ADMITTED] % clean_every == 0:
            live = live_slots(s)
            alpha, g, lo, hi = (a[live] for a in state(s))
            may_move = (alpha == 0) & (naive.distances(alpha, g, lo, hi) == 0)
            assert np.sum(alpha == 0) <= max(max_non_sv, np.sum(may_move))
        else:
            assert model.n_members == before + s.counts[ADMITTED] - admitted
    assert state_of(model).expansion.counts[ADMITTED] > model.n_members + 20


def test_full_never_forgets():
    X, y = problem(10, 700, 3)
    model = learn(FullSVM(C=10.0, gamma=0.3), X, y)
    for _ in range(2):
        assert state_of(model).expansion.counts[HOLES] == 0
        np.testing.assert_array_equal(np.sort(state_of(model).expansion.ids[: model.n_members]), np.arange(700))
        model.finish()


# ------------------------------------------------------------------------------------------------------------- the ramp


def is_active(model):
    """Whether the ramp is: by the examples that were admitted, and the support vectors of both classes."""
    both = {-1, 1} <= set(state_of(model).expansion.y[np.flatnonzero(state_of(model).expansion.alpha)])
    return both and state_of(model).expansion.counts[ADMITTED] >= model.ramp_warmup


def learned_state(model):
    """All that was learned but the sigmoid, and the kernel values computed so far."""
    found = dumping.dump(state_of(model).expansion, len(model.feature_names), 0)
    arrays = {name: array.copy() for name, array in found.items()}
    arrays["counts"][EVALUATIONS] = 0
    return arrays, model.kernel_evaluations


RAMPS = pytest.mark.parametrize(("ramp_s", "ramp_warmup"), [(-1.0, 0), (-1.0, 100), (0.0, 50), (0.5, 300)])


@pytest.mark.long
@RAMPS
@pytest.mark.parametrize("steps", ["pair", "single"])
def test_i_ignores_the_flat_parts_of_the_ramp(ramp_s, ramp_warmup, steps):
    """All that it costs is the kernel row that f(x) needs."""
    X, y = problem(11, 600, 3, noise=0.2)
    model = LASVMI(C=10.0, gamma=0.3, ramp_s=ramp_s, ramp_warmup=ramp_warmup, steps=steps)
    known, noise = [], []
    for t in range(600):
        z = (1 if y[t] else -1) * model.decision_function_many(X[t : t + 1])[0]
        known.append(z > 1)
        noise.append(z < ramp_s and is_active(model))
        before, evaluations = learned_state(model)
        learn(model, X[t : t + 1], y[t : t + 1])
        s = state_of(model).expansion
        assert s.counts[ADMITTED] == before["counts"][ADMITTED] + (not (known[-1] or noise[-1]))
        if known[-1] or noise[-1]:
            after, evaluations_after = learned_state(model)
            assert evaluations_after == evaluations + s.counts[SLOTS]
            for name, array in before.items():
                np.testing.assert_array_equal(after[name], array)
    assert sum(known) > 50
    assert sum(noise) > 20 or ramp_warmup == 300


@RAMPS
@pytest.mark.parametrize("steps", ["pair", "single"])
def test_nc_gives_noise_the_box_of_the_concave_part(ramp_s, ramp_warmup, steps):
    """The example itself does not move; all other examples have the box of the convex loss."""
    X, y = problem(12, 600, 3, noise=0.2)
    parameters = {"ramp_s": ramp_s, "ramp_warmup": ramp_warmup, "steps": steps, "clean_every": 10**6}
    model, shifted, idle = LASVMNC(C=10.0, gamma=0.3, pos_weight=2.0, **parameters), 0, 0
    for t in range(600):
        sign, C = (1, 20.0) if y[t] else (-1, 10.0)
        f = model.decision_function_many(X[t : t + 1])[0]
        noise = sign * f < ramp_s and is_active(model)
        before, steps_before, gap_before = state_of(model).expansion.alpha[:t].copy(), model.n_reprocess, model.gap
        learn(model, X[t : t + 1], y[t : t + 1])
        s = state_of(model).expansion
        assert (s.lo[t], s.hi[t]) == tuple(sorted((0.0, -sign * C if noise else sign * C)))
        shifted += noise
        if noise and model.n_reprocess == steps_before:
            idle += 1
            assert (s.alpha[t], s.g[t], model.gap) == (0.0, sign - f, gap_before)
            np.testing.assert_array_equal(s.alpha[:t], before)
    assert shifted > 20
    assert idle > 0.3 * shifted


def test_a_coefficient_in_the_concave_box_has_the_other_sign():
    """It appears where f has moved beyond 1 since: the linear part that was subtracted then pays."""
    X, y = problem(13, 800, 2, noise=0.3)
    model = learn(LASVMNC(C=10.0, gamma=1.0, ramp_s=0.5, ramp_warmup=20, clean_every=10**6), X, y)
    s = state_of(model).expansion
    n = int(s.counts[SLOTS])
    shifted = s.y[:n] * (s.lo[:n] + s.hi[:n]) < 0
    assert (s.y[:n] * s.alpha[:n])[shifted].max() <= 0
    assert np.count_nonzero(s.alpha[:n][shifted]) > 3
    assert (s.y[:n] * s.alpha[:n])[~shifted].min() >= 0


def test_the_ramp_waits_for_its_warmup():
    X, y = problem(14, 300, 3, noise=0.3)
    parameters = {"C": 10.0, "gamma": 0.3}
    plain = learn(LASVMG(**parameters), X, y)
    warming = learn(LASVMNC(**parameters, ramp_s=0.5, ramp_warmup=300), X, y)
    np.testing.assert_array_equal(warming.support_ids, plain.support_ids)
    np.testing.assert_array_equal(warming.dual_coef, plain.dual_coef)
    at_once = learn(LASVMNC(**parameters, ramp_s=0.5, ramp_warmup=0), X, y)
    assert at_once.n_support < 0.5 * plain.n_support


@pytest.mark.parametrize("learner", [LASVMNC, LASVMI])
def test_the_ramp_needs_support_vectors_of_both_classes(learner):
    """f(x) = 0 or of one sign is no reason to take all of the other class for noise."""
    X, _ = problem(15, 120, 3)
    model = learn(learner(C=10.0, gamma=0.02, ramp_s=0.5, ramp_warmup=0), X[:60], np.full(60, True))
    assert set(model.dual_coef > 0) == {True}
    learn(model, X[60:61], [False])
    assert model.dual_coef.min() < 0


def test_with_noise_the_ramp_leaves_fewer_support_vectors():
    rng = np.random.default_rng(16)
    X = rng.normal(size=(2500, 2))
    truth = X[:, 0] + X[:, 1] ** 2 > 0.7
    y = truth ^ (rng.random(2500) < 0.2)
    convex, concave, ignoring = (made(learner, {"C": 1.0, "gamma": 1.0}) for learner in (LASVMG, LASVMNC, LASVMI))
    right = []
    for model in (convex, concave, ignoring):
        model.learn_many(X[:2000], y[:2000])
        right.append(np.mean(model.predict_many(X[2000:]) == truth[2000:]))
    assert max(concave.n_support, ignoring.n_support) < 0.7 * convex.n_support
    assert ignoring.kernel_evaluations < 0.8 * convex.kernel_evaluations
    assert min(right) > 0.93


# ---------------------------------------------------------------------------------------------- however a stream is cut

FORGETFUL = {"C": 10.0, "clean_every": 7, "max_non_sv": 5, "ramp_warmup": 100}  # holes, squeezes and a ramp soon


def shaped(kind, X):
    """A batch in a form of its own: with more features than matrix products need, few, only 0 and 1, or sparse."""
    if kind == "few features":
        return X[:, :3]
    if kind == "binary":
        return (X > 0.3).astype(float)
    if kind == "sparse":
        return sp.csr_matrix(np.where(X > 1.0, X, 0.0))
    if kind == "binary, then real":
        return np.concatenate([X[:100] > 0.3, X[100:]]).astype(float)
    return X


@pytest.mark.long
@settings(max_examples=40)
@given(
    st.sampled_from([*FAMILY.values(), LASVM]),
    st.sampled_from(["many features", "few features", "binary", "sparse", "binary, then real"]),
    st.sampled_from(NAMES),
    st.integers(0, 10**6),
    st.lists(st.integers(1, 300), max_size=6),
)
def test_learning_many_is_learning_one_by_one_bit_for_bit(learner, kind, kernel, seed, cuts):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 41))
    y = (X[:, 0] + X[:, 1] > 0) ^ (rng.random(500) < 0.1)
    X, w = shaped(kind, X), rng.choice([0.0, 0.5, 1.0, 2.0], size=500)
    parameters = {**FORGETFUL, "kernel": kernel, "gamma": 0.05, "degree": 2, "coef0": 0.1}
    one_by_one, in_batches = made(learner, parameters), made(learner, parameters)
    for t, x in enumerate(X.toarray() if sp.issparse(X) else X):
        present = np.flatnonzero(x) if sp.issparse(X) else range(len(x))
        one_by_one.learn_one({int(k): x[k] for k in present}, bool(y[t]), w=float(w[t]))
    for begin, end in itertools.pairwise([0, *np.minimum(np.cumsum(cuts, dtype=int), 500), 500]):
        in_batches.learn_many(X[begin:end], y[begin:end], w[begin:end])
    assert in_batches.digest() == one_by_one.digest()


@every_learner
def test_matrix_products_are_used_and_squeezes_cut_their_blocks(learner, monkeypatch):
    monkeypatch.setattr(blocks, "MIN_MEMBERS", 0)
    X, y = problem(17, 1200, 41, noise=0.05)
    parameters = {**FORGETFUL, "gamma": 0.02, "C": 1.0}
    rows, whole = made(learner, parameters), made(learner, parameters)
    learn(rows, X, y)
    with (
        mock.patch.object(blocks, "inner_products", wraps=blocks.inner_products) as products,
        mock.patch.object(storage.room, "keep", wraps=storage.keep) as squeezed,
    ):
        whole.learn_many(X, y)
    assert products.call_count >= 3
    assert squeezed.call_count >= 1 or learner in (LASVMI, FullSVM)
    assert whole.digest() == rows.digest()


@every_learner
@pytest.mark.parametrize("steps", ["pair", "single"])
def test_a_small_cache_gives_the_same_model(learner, steps):
    X, y = problem(18, 600, 3)
    small, big = (made(learner, {**FORGETFUL, "gamma": 0.3, "steps": steps, "cache_mb": mb}) for mb in (1e-6, 256.0))
    for model in (small, big):
        model.learn_many(X, y)
    assert small.digest() == big.digest()
    assert small.kernel_evaluations > big.kernel_evaluations


@every_learner
@pytest.mark.parametrize("steps", ["pair", "single"])
def test_a_copy_goes_on_as_the_model_would(learner, steps):
    """Snapshots, pickles and copies, before anything was learned, within a warm-up and after it."""
    X, y = problem(19, 400, 3)
    model = made(learner, {**FORGETFUL, "gamma": 0.3, "steps": steps})
    for begin, end in itertools.pairwise([0, 50, 203, 400]):
        copies = [
            learner.from_bytes(model.to_bytes()),
            learner.from_bytes(model.to_bytes(), cache_mb=1e-6),
            pickle.loads(pickle.dumps(model)),  # noqa: S301 (its own bytes)
            copy.deepcopy(model),
        ]
        for copied in (model, *copies):
            copied.learn_many(X[begin:end], y[begin:end])
        assert {copied.digest() for copied in copies} == {model.digest()}
        assert {copied.gap for copied in copies} == {model.gap}
        assert {copied.n_reprocess for copied in copies} == {model.n_reprocess}


def test_a_member_is_not_learned_again():
    X, y = problem(20, 100, 3)
    model = learn(FullSVM(C=10.0, gamma=0.3), X, y, ids=np.arange(100))
    before, _ = learned_state(model)
    learn(model, X, y, ids=np.arange(100))
    after, _ = learned_state(model)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


# ------------------------------------------------------------------------------------------------ pair or single steps


@pytest.mark.parametrize("learner", [LASVMG, LASVMNC])
def test_single_and_pair_steps_end_alike(learner):
    """On binary features with a wide kernel and a large C, where a single step is a hundredth of what is needed."""
    rng = np.random.default_rng(21)
    X = (rng.random((2500, 40)) < 0.2).astype(float)
    y = X @ rng.normal(size=40) + 1.5 * rng.normal(size=2500) > 0
    pair, single = (learner(C=100.0, gamma=0.005, steps=steps) for steps in ("pair", "single"))
    right = []
    for model in (pair, single):
        model.learn_many(X[:1500], y[:1500])
        right.append(np.mean(model.predict_many(X[1500:]) == y[1500:]))
    assert min(right) > 0.75
    assert abs(right[0] - right[1]) < 0.015
    assert pair.n_support == pytest.approx(single.n_support, rel=0.1)
    assert 10 * pair.n_reprocess < single.n_reprocess


def test_a_step_moves_two_members_or_one():
    """PROCESS alone, where the gap is small: at most the example and its partner, or the example."""
    X, y = problem(22, 300, 3)
    for steps, most in (("pair", 2), ("single", 1)):
        model, changed = FullSVM(C=10.0, gamma=0.3, steps=steps), []
        for t in range(300):
            before, worked = state_of(model).expansion.alpha[:t].copy(), model.n_reprocess
            learn(model, X[t : t + 1], y[t : t + 1])
            if model.n_reprocess == worked:
                alpha = state_of(model).expansion.alpha[: t + 1]
                changed.append(np.count_nonzero(alpha != np.append(before, 0.0)))
        assert max(changed) == most
        assert changed.count(most) > 10


# ----------------------------------------------------------------------------------------------------- special streams


@every_learner
@pytest.mark.parametrize("steps", ["pair", "single"])
@pytest.mark.parametrize("label", [True, False])
def test_one_class_is_predicted_while_there_is_no_other(learner, steps, label):
    X = np.random.default_rng(0).normal(size=(400, 2))
    model = made(learner, {"steps": steps})
    learn(model, X, np.full(400, label))
    assert set(model.dual_coef > 0) == {label}
    assert (model.predict_many(X) == label).all()
    assert model.bias == 0.0
    assert state_of(model).expansion.counts[POSITIVE if label else NEGATIVE] == model.n_support
    learn(model, X[:1], [not label])
    assert set(model.dual_coef > 0) == {True, False}


@every_learner
def test_an_example_of_weight_0_is_left_out(learner):
    X, y = problem(23, 60, 3)
    with_zeros, without = learner(), learner()
    learn(with_zeros, X, y, np.arange(60) % 3 != 0)
    learn(without, X[np.arange(60) % 3 != 0], y[np.arange(60) % 3 != 0])
    np.testing.assert_array_equal(with_zeros.dual_coef, without.dual_coef)
    assert not (with_zeros.support_ids % 3 == 0).any()
    assert with_zeros.gap == without.gap


@every_learner
def test_contradicting_duplicates_cancel(learner):
    """Whatever is best for one is worst for the other: f is 0, and both count with all of C = 2."""
    model = learner(C=2.0, tol=1e-6)
    learn(model, np.ones((2, 1)), [True, False])
    model.finish()
    assert model.dual_coef.sum() == pytest.approx(0.0, abs=1e-5)
    assert model.decision_function_one({0: 1.0}) == pytest.approx(0.0, abs=1e-5)
    np.testing.assert_array_equal(np.sort(model.dual_coef), [-2.0, 2.0])


@every_learner
@pytest.mark.parametrize("steps", ["pair", "single"])
def test_a_zero_vector_under_the_linear_kernel_goes_to_its_bound(learner, steps):
    """K_ii = 0: nothing that it does changes f, so that its loss stays 1."""
    X, y = problem(24, 80, 3)
    X[::5] = 0.0
    model = made(learner, {"kernel": "linear", "scaling": None, "C": 2.0, "steps": steps, "ramp_s": -5.0})
    learn(model, X, y)
    coefficients = dict(zip(model.support_ids.tolist(), model.dual_coef.tolist(), strict=True))
    assert [coefficients[t] for t in range(0, 80, 5)] == [2.0 if label else -2.0 for label in y[::5]]
    consistent_dual(model, y, naive.gram(naive.kernel_of(model), X, X))
    assert model.decision_function_one({0: 0.0, 1: 0.0, 2: 0.0}) == 0.0


@every_learner
def test_only_zero_vectors(learner):
    model = learn(learner(kernel="linear", C=2.0), np.zeros((50, 2)), np.arange(50) % 3 > 0)
    assert (np.abs(model.dual_coef) == 2.0).all()
    assert model.n_support == 50
    model.finish()
    assert model.n_support == 50


@every_learner
def test_weights_scale_the_box(learner):
    X, y = problem(25, 200, 3)
    w = np.random.default_rng(9).uniform(0.5, 2.0, size=200)
    model = made(learner, {"C": 0.5, "pos_weight": 3.0, "gamma": 2.0})
    learn(model, X, y, w)
    bound = 0.5 * w[model.support_ids] * np.where(y[model.support_ids], 3.0, 1.0)
    assert (np.abs(model.dual_coef) <= bound).all()
    assert (np.abs(model.dual_coef) == bound).sum() > 20


# -------------------------------------------------------------------------------------------------------------- FINISH


def finished_problem(model, y, K):
    """The problem over the members in their order, and where the model ended: K, signs, lo, hi and alpha."""
    alpha, _, lo, hi = state(state_of(model).expansion)
    ids = state_of(model).expansion.ids[: len(alpha)]
    return K[np.ix_(ids, ids)], np.where(y[ids], 1.0, -1.0), lo, hi, alpha


def noise_of(alpha, K):
    """The size of the rounding of float32 kernel values in a gradient."""
    return 6e-8 * np.abs(alpha).sum() * np.abs(K).max(initial=0)


@pytest.mark.long
@pytest.mark.parametrize("learner", [LASVMG, LASVMNC])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_solution_is_that_of_coordinate_ascent(learner, kernel, C):
    X, y = problem(26, 120, 3, noise=0.2)
    parameters = {"C": C, "kernel": kernel, "gamma": 0.2, "degree": 2, "coef0": 0.5 if kernel == "poly" else 0.0}
    model = made(learner, {**parameters, "max_non_sv": 10**6, "ramp_s": 0.5, "ramp_warmup": 40})
    model.learn_many(X, y)
    model.finish(1e-5)
    K, signs, lo, hi, finished = finished_problem(model, y, naive.gram(naive.kernel_of(model), X, X))
    assert (signs * (lo + hi) < 0).any() == (learner is LASVMNC)  # boxes of the concave part
    alpha, _ = naive.solve_box(K, signs, lo, hi, 1e-5)
    open_ = (2e-5 + 10 * noise_of(alpha, K)) * np.abs(hi - lo).sum()  # the gap that the violations of both may leave
    assert naive.dual(finished, signs, K) == pytest.approx(naive.dual(alpha, signs, K), abs=open_)
    assert naive.primal(finished, signs, K, lo, hi) - naive.dual(alpha, signs, K) <= open_
    w = finished - alpha
    assert w @ K @ w <= 2 * open_  # strong convexity: f is close where the dual is


@settings(max_examples=40)
@given(LEARNERS, CONFIGURATIONS, st.integers(0, 10**6), st.integers(0, 100), st.sampled_from([1e-2, 1e-4]))
def test_no_member_violates_by_more_than_the_tolerance(learner, parameters, seed, n, tol):
    """Also with duplicates of either label, with the sigmoid, which has no single solution, and where C is large."""
    X, y = problem(seed, max(n, 1), 4)
    X, y = X[:n], y[:n]
    X[n // 2 :] = X[: n - n // 2]
    model = made(learner, {**parameters, "C": min(parameters["C"], 1e3)})
    K = naive.gram(naive.kernel_of(model), X, X)
    model.learn_many(X, y)
    tol = max(
        tol, noise_of(state_of(model).expansion.hi - state_of(model).expansion.lo, K)
    )  # float32 may allow no less
    model.finish(tol)
    s = state_of(model).expansion
    assert s.counts[HOLES] == 0
    assert naive.box_violation(*state(s)) <= tol
    K_s, signs, lo, hi, alpha = finished_problem(model, y, K)
    assert naive.box_violation(alpha, naive.gradient(alpha, signs, K_s), lo, hi) <= tol + 30 * noise_of(alpha, K_s)
    consistent_dual(model, y, K)
    if learner is not FullSVM:
        may_move = naive.distances(*state(s))[alpha == 0] == 0
        assert model.n_members - model.n_support <= max(model.max_non_sv, may_move.sum())


@pytest.mark.parametrize("cache_mb", [1e-6, 256.0])
def test_shrinking_and_newton_steps_do_not_change_where_it_ends(cache_mb, monkeypatch):
    """Both are met here, with a cache of a few rows as with one for all; without them the end is the same."""
    rng = np.random.default_rng(27)
    X = rng.normal(size=(1000, 2))
    y = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=1000) > 0.7
    shrunk, moved = [], []
    keep, move = finish.keep, finish._ActiveSet.move
    monkeypatch.setattr(finish, "keep", lambda s, order: shrunk.append(len(order)) or keep(s, order))
    monkeypatch.setattr(finish._ActiveSet, "move", lambda *a: moved.append(len(a[1])) or move(*a))
    model = LASVMG(C=300.0, gamma=1.0, cache_mb=cache_mb)
    model.learn_many(X, y)
    plain = LASVMG.from_bytes(model.to_bytes())
    model.finish(1e-4)
    assert len(shrunk) > 2
    assert len(moved) > 2
    monkeypatch.setattr(finish._ActiveSet, "shrink", lambda self: None)
    monkeypatch.setattr(finish._ActiveSet, "max_free", 0)
    plain.finish(1e-4)
    for finished in (model, plain):
        K, signs, lo, hi, alpha = finished_problem(finished, y, np.exp(-np.square(X[:, None] - X).sum(axis=2)))
        found = naive.box_violation(alpha, naive.gradient(alpha, signs, K), lo, hi)
        assert found <= 1e-4 + 10 * noise_of(alpha, K)
    np.testing.assert_allclose(model.decision_function_many(X), plain.decision_function_many(X), rtol=0, atol=3e-3)


def test_coefficients_end_on_their_bounds_exactly():
    X, y = problem(28, 800, 2, noise=0.2)
    model = LASVMG(C=0.1 + 0.2, gamma=1.0)
    model.learn_many(X, y)
    for _ in range(2):
        size = np.abs(model.dual_coef)
        assert (size == 0.1 + 0.2).sum() > 50
        assert not ((size < 1e-10) | ((size > 0.3 - 1e-10) & (size != 0.1 + 0.2))).any()
        model.finish(1e-4)


@every_learner
def test_the_default_tolerance_is_tau(learner):
    X, y = problem(29, 200, 3)
    model, to_tau = (made(learner, {"C": 10.0, "gamma": 0.5, "tol": 0.05}) for _ in range(2))
    for finished in (model, to_tau):
        finished.learn_many(X, y)
    model.finish()
    to_tau.finish(0.05)
    assert model.digest() == to_tau.digest()


def test_finishing_twice_changes_nothing():
    """Not even the last bit of the sums of the losses, although members leave in between."""
    X, y = problem(29, 400, 3)
    model = made(LASVMG, {**FORGETFUL, "gamma": 0.5, "reservoir": 0})
    model.learn_many(X, y)
    model.finish(1e-3)
    digest = model.digest()
    model.finish(1e-3)
    assert model.digest() == digest


@pytest.mark.long
@every_learner
def test_learning_goes_on_after_finish(learner):
    """The state stays consistent, and the margins are those of a restored model."""
    X, y = problem(30, 240, 3)
    model = made(learner, {**FORGETFUL, "gamma": 0.3, "ramp_warmup": 50})
    K = naive.gram(naive.kernel_of(model), X, X)
    for begin in (0, 80, 160):
        model.learn_many(X[begin : begin + 80], y[begin : begin + 80])
        model.finish(1e-4)
        again = learner.from_bytes(model.to_bytes())
        best = consistent_dual(model, y, K)
        for t in range(begin + 80, min(begin + 100, 240)):
            learn(again, X[t : t + 1], y[t : t + 1])
            dual = consistent_dual(again, y, K)
            assert dual >= best - rounding(again, K) * max(1.0, np.abs(again.dual_coef).sum())
            best = dual
    assert np.mean(model.predict_many(X) == y) > 0.8


@every_learner
def test_a_model_that_has_learned_nothing_can_be_finished(learner):
    model = learner()
    model.finish()
    assert (model.n_members, model.gap, model.n_reprocess) == (0, 0.0, 0)
    assert model.predict_one({"a": 1.0}) is False


@pytest.mark.parametrize("tol", [0.0, -1.0, float("nan"), float("inf"), "small"])
def test_a_bad_tolerance_is_named(tol):
    with pytest.raises(ValueError, match=f"tol={tol!r}"):
        LASVMG().finish(tol)


@pytest.mark.parametrize("w", [1e-3, 1e3])
def test_a_weight_for_all_is_a_factor_on_c(w):
    """Also in the gap that is small enough."""
    X, y = problem(31, 800, 2, noise=0.1)
    one, other = LASVMG(C=10.0), LASVMG(C=10.0 / w)
    one.learn_many(X, y)
    other.learn_many(X, y, w)
    assert one.n_reprocess > 100
    np.testing.assert_array_equal(one.support_ids, other.support_ids)
    np.testing.assert_allclose(one.dual_coef, other.dual_coef, rtol=1e-6)
