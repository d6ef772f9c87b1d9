"""LASVM: every step is that of its slow twin, bit for bit, and what is promised holds after every example."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from queries import from_dense
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from states import state_of

from streamsvm import LASVM
from streamsvm.batch.steps.pairs import newton_partner
from streamsvm.core.blocks import expansion_sum
from streamsvm.core.expansion import FORBIDDEN, G_DOWN, G_UP, HOLES, SLOT_DOWN, SLOT_UP, SLOTS
from streamsvm.core.kernels import NAMES, make_kernel
from streamsvm.core.rows import kernel_row
from streamsvm.core.storage import empty, find_extremes, live_slots
from streamsvm.estimators.learner.learning import learn_batch
from streamsvm.online import lasvm
from streamsvm.online.from_batch import append_block
from streamsvm.online.gradient import first_slot
from streamsvm.online.lasvm import RESERVE, delta, pair_step, update_and_scan

SIZES = [1, 7, 511, 512, 513, 1100]  # around the blocks in which gradients are scanned


@njit
def scanned(g, up, down, step, K_i, K_j):
    top, top_block, bottom, bottom_block = update_and_scan(g, up, down, step, K_i, K_j, 0.0)
    return top, first_slot(top, g, up, top_block, 0.0), bottom, first_slot(bottom, g, down, bottom_block, 0.0)


@njit
def partner(g, down, self_k, i, K_i):
    return newton_partner(g, down, self_k, i, K_i)[0]


@njit
def stepped(s, i, j, K_i, K_j):
    pair_step(s, i, j, K_i, K_j)


@njit
def dot(alpha, row):
    return expansion_sum(alpha, row)


@njit
def all_rows(s, kernel, q, K):
    for t in range(K.shape[0]):
        begin, end = q.indptr[t], q.indptr[t + 1]
        kernel_row(s, kernel, q.indices[begin:end], q.values[begin:end], q.sq[t], 0, K.shape[1], K[t])


def candidates(X, y, kernel, C=1.0):
    """All examples as members with alpha = 0, and the engine's kernel matrix of them."""
    n, d = X.shape
    q = from_dense(X, np.arange(d))
    s = append_block(empty(1 << 20), kernel, q, d, np.where(y, 0.0, -C), np.where(y, C, 0.0))
    find_extremes(s)
    K = np.empty((n, n), np.float32)
    all_rows(s, kernel, q, K)
    np.fill_diagonal(K, s.self_k[:n])
    return s, K


def problem(seed, n, d, binary=False, noise=0.1):
    """Examples with duplicates and a constant feature, and labels that may be wrong."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < 0.4).astype(float) if binary else rng.normal(size=(n, d))
    X[:, 0] = 1.0
    copied = rng.random(n) < 0.2
    X[copied] = X[rng.integers(n, size=copied.sum())]
    return X, (X @ rng.normal(size=d) > 0) ^ (rng.random(n) < noise)


def learn(model, X, y, w=None):
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        model.learn_one(dict(enumerate(x)), bool(label), w=1.0 if w is None else float(w[t]))


# ---------------------------------------------------------------------------------------------------------- the pieces


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("ties", [False, True])
def test_one_pass_updates_the_gradient_and_finds_its_extremes(n, ties):
    rng = np.random.default_rng(n)
    g = rng.integers(-2, 3, n).astype(float) if ties else rng.normal(size=n)
    up, down = np.where(rng.random((2, n)) < 0.5, 0.0, [[-FORBIDDEN], [FORBIDDEN]])
    K_i, K_j = rng.integers(0, 2, (2, n)).astype(np.float32) if ties else np.float32(rng.random((2, n)))
    expected = g - 0.5 * (np.float64(K_i) - np.float64(K_j))
    top, i, bottom, j = scanned(g, up, down, 0.5, K_i, K_j)
    np.testing.assert_array_equal(g, expected)
    assert i == np.argmax(expected + up)
    assert j == np.argmin(expected + down)
    assert top == (expected + up)[i]
    assert bottom == (expected + down)[j]


@pytest.mark.parametrize("n", SIZES)
def test_the_second_order_partner_gains_most(n):
    rng = np.random.default_rng(n)
    g, diagonal, K_i = rng.normal(size=n), 1.0 + rng.random(n), np.float32(rng.random(n))
    may_fall = rng.random(n) < 0.7
    for i in {0, n // 2, n - 1, int(np.argmax(g)), int(np.argmin(g))}:
        found = partner(g, np.where(may_fall, 0.0, FORBIDDEN), diagonal, i, K_i)
        expected = naive.second_order_partner(0.0, g, np.where(may_fall, -1.0, 0.0), i, diagonal, K_i)
        assert found == (-1 if expected is None else expected)


@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_pair_steps_are_those_of_the_twin(kernel, C):
    """With duplicates, which have no curvature, and from C where every step is cut to C where none is."""
    kernel = make_kernel(kernel, gamma=0.3, degree=2, coef0=0.5)
    X, y = problem(1, 60, 4)
    s, K = candidates(X, y, kernel, C)
    alpha, g, lo, hi, diagonal = (getattr(s, name)[:60].copy() for name in ("alpha", "g", "lo", "hi", "self_k"))
    tie = 0.0
    for _ in range(100):
        i, j = naive.extremes(alpha, g, lo, hi, tie)
        assert (s.counts[SLOT_UP], s.counts[SLOT_DOWN]) == (i, j)
        assert (s.extremes[G_UP], s.extremes[G_DOWN]) == (g[i], g[j])
        if not g[i] - g[j] > 1e-6:  # what is left is rounding
            break
        stepped(s, i, j, K[i], K[j])
        tie = naive.pair_step(alpha, g, lo, hi, i, j, diagonal, np.float64(K[i]), np.float64(K[j]))
        np.testing.assert_array_equal(s.alpha[:60], alpha)
        np.testing.assert_array_equal(s.g[:60], g)


def test_a_bound_that_is_reached_is_met_exactly():
    """C = 0.1 + 0.2 is not the float64 that 0.3 is: a step that came close would leave the member free."""
    X, y = problem(2, 40, 3)
    s, K = candidates(X, y, make_kernel("rbf", gamma=3.0), C=0.1 + 0.2)
    for _ in range(200):
        if not delta(s) > 1e-3:
            break
        stepped(s, s.counts[SLOT_UP], s.counts[SLOT_DOWN], K[s.counts[SLOT_UP]], K[s.counts[SLOT_DOWN]])
    alpha = np.abs(s.alpha[:40])
    assert (alpha == 0.1 + 0.2).sum() > 5
    assert not ((alpha > 0.3 - 1e-9) & (alpha != 0.1 + 0.2)).any()
    assert not ((alpha < 1e-9) & (alpha != 0)).any()


# ------------------------------------------------------------------------------------------------------- the whole run

CONFIGURATIONS = st.fixed_dictionaries(
    {
        "C": st.sampled_from([1e-4, 0.1, 1.0, 30.0, 1e5]),
        "kernel": st.sampled_from(NAMES),
        "gamma": st.sampled_from([0.02, 0.3]),
        "degree": st.just(2),
        "coef0": st.sampled_from([0.0, 0.5]),
        "pos_weight": st.sampled_from([0.3, 1.0, 3.0]),
        "tol": st.sampled_from([1e-3, 0.1]),
        "reprocess": st.sampled_from(["adaptive", 0, 1, 3]),
        "delta_max": st.sampled_from([None, 0.5]),
        "admission": st.sampled_from(["margin", "violation", "all"]),
    }
)
STREAMS = st.tuples(st.integers(0, 10**6), st.integers(1, 150), st.sampled_from([1, 3, 12, 40]), st.booleans())
WEIGHTS = st.sampled_from([None, (0.5, 1.0, 2.0), (0.0, 1.0)])


def assert_equal_run(configuration, X, y, w=None):
    """The engine and its twin learn a stream; afterwards they agree in every slot."""
    model = LASVM(**configuration)
    s, K = candidates(X, y, naive.kernel_of(model))
    diagonal = s.self_k[: len(y)]
    kind = naive.PrintedLASVM if model.admission == "all" else naive.NaiveLASVM
    twin = kind(K, diagonal, state_of(model).rule, model.C, model.pos_weight, dot)
    w = np.ones(len(y)) if w is None else w
    said = naive.late_margins(len(y))
    for x, label, weight, twin.said in zip(X, y, w, said, strict=True):
        margin = learn_batch(state_of(model), x[None], [label], [weight], said=np.array([twin.said]))[0]
        assert twin.learn(1 if label else -1, weight) == margin
    s = state_of(model).expansion
    n = int(s.counts[SLOTS])
    np.testing.assert_array_equal(s.y[:n], twin.y)
    np.testing.assert_array_equal(s.ids[:n], twin.ids)
    np.testing.assert_array_equal(s.alpha[:n], twin.alpha)
    np.testing.assert_array_equal(s.g[live_slots(s)], twin.g[twin.y != 0])
    np.testing.assert_allclose(model.slopes, naive.slopes(twin.margins), rtol=1e-9)
    return twin


@pytest.mark.long
@settings(max_examples=150)
@given(CONFIGURATIONS, STREAMS, WEIGHTS, st.integers(0, 99))
def test_a_run_is_that_of_the_twin(configuration, stream, weights, seed):
    X, y = problem(*stream)
    w = None if weights is None else np.random.default_rng(seed).choice(weights, size=len(y))
    assert_equal_run(configuration, X, y, w)


@pytest.mark.long
@pytest.mark.parametrize("binary", [True, False])
def test_a_run_with_many_evictions_is_that_of_the_twin(binary):
    """Long enough for holes to be squeezed out."""
    X, y = problem(3, 4000, 12, binary, noise=0.01)
    options = {"C": 30.0, "gamma": 0.02, "reprocess": 1, "admission": "violation"}
    assert assert_equal_run(options, X, y).n_squeezed >= 1


@pytest.mark.parametrize("reprocess", [1, "adaptive"])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_algorithm_as_printed_is_that_of_its_twin(reprocess, noise):
    """With evictions of extremes, and one class long before the other."""
    X, y = problem(6, 400, 3, noise=noise)
    y[:20] = True
    for C in (0.05, 100.0):
        twin = assert_equal_run({"C": C, "gamma": 0.5, "admission": "all", "reprocess": reprocess}, X, y)
        assert np.sum(twin.y != 0) < 400


def test_a_snapshot_goes_on_as_printed():
    X, y = problem(7, 120, 3)
    whole = LASVM(C=10.0, gamma=0.5, admission="all", reprocess=1)
    learn(whole, X, y)
    for begin in (6, 60):  # among the seeds, and after them
        model = LASVM(C=10.0, gamma=0.5, admission="all", reprocess=1)
        learn(model, X[:begin], y[:begin])
        model = LASVM.from_bytes(model.to_bytes())
        assert model.admission == "all"
        learn(model, X[begin:], y[begin:])
        np.testing.assert_array_equal(model.decision_function_many(X), whole.decision_function_many(X))


def test_as_printed_five_examples_of_each_class_join_before_the_first_step():
    model = LASVM(C=1.0, gamma=0.5, admission="all", reprocess=1)
    for t in range(16):
        model.learn_one({"a": float(t)}, t % 3 == 0)
        seeds = t < 12  # the fifth positive example is number 12
        assert (model.n_support == 0) == (seeds or t == 12)
    assert model.n_members > 5


def test_a_run_with_one_class_at_first_is_that_of_the_twin():
    X, _ = problem(4, 400, 3)
    assert_equal_run({"C": 1.0, "gamma": 1.0}, X, np.arange(400) >= 350)


@pytest.mark.parametrize("kernel", NAMES)
def test_the_matrix_that_the_twin_was_given_is_the_kernel(kernel):
    kernel = make_kernel(kernel, gamma=0.02, degree=2, coef0=0.5)
    for X, y in (problem(5, 50, 40), problem(5, 50, 40, binary=True)):
        np.testing.assert_allclose(candidates(X, y, kernel)[1], naive.gram(kernel, X, X), rtol=2e-5, atol=2e-6)


# ------------------------------------------------------------------------------------------- what must always be true


def consistent_dual(model, y, K):
    """The dual, after a check that all that is kept up to date is what it would be if it were computed anew."""
    s = state_of(model).expansion
    n, live = int(s.counts[SLOTS]), live_slots(s)
    assert s.counts[HOLES] == n - len(live)
    alpha, lo, hi, members = s.alpha[live], s.lo[live], s.hi[live], s.ids[live]
    assert abs(alpha.sum()) <= 1e-12 * max(1.0, np.abs(alpha).sum())
    assert ((lo <= alpha) & (alpha <= hi)).all()
    np.testing.assert_array_equal(s.up[live] == 0, alpha < hi)
    np.testing.assert_array_equal(s.down[live] == 0, alpha > lo)
    signs, K = np.where(y[members], 1.0, -1.0), K[np.ix_(members, members)]
    np.testing.assert_allclose(s.g[live], naive.gradient(alpha, signs, K), rtol=0, atol=rounding(model, K))
    slots, cached = s.counts[[SLOT_UP, SLOT_DOWN]], s.extremes.copy()
    np.testing.assert_array_equal(cached[slots >= 0], s.g[slots[slots >= 0]])
    find_extremes(s)
    np.testing.assert_allclose(s.extremes, cached, rtol=0, atol=rounding(model, K))
    return naive.dual(alpha, signs, K)


def rounding(model, K):
    """What float32 kernel values may do to a gradient."""
    return 1e-5 * (1 + np.abs(model.dual_coef).sum() * np.abs(K).max(initial=0))


@pytest.mark.long
@settings(max_examples=50)
@given(CONFIGURATIONS, STREAMS, st.sampled_from(["learned", "one class", "flipping"]))
def test_the_state_is_consistent_and_the_dual_never_falls(configuration, stream, labels):
    """Along PROCESS and every REPROCESS: an example that joins or leaves with alpha = 0 does not change the dual."""
    X, y = problem(*stream)
    X, y = X[:60], y[:60]
    y = {"learned": y, "one class": np.ones_like(y), "flipping": np.arange(len(y)) % 2 == 0}[labels]
    model, best = LASVM(**configuration), 0.0
    K = naive.gram(naive.kernel_of(model), X, X)
    for t in range(len(y)):
        learn(model, X[t : t + 1], y[t : t + 1])
        dual = consistent_dual(model, y, K)
        assert dual >= best - rounding(model, K) * max(1.0, np.abs(model.dual_coef).sum())
        best = dual


@pytest.mark.long
@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("cut", [8, 100, 300])
def test_the_state_is_consistent_after_blocks_with_matrix_products(kernel, cut):
    """Whose rows are put together from products with old members and within the block."""
    X, y = problem(10, 300, 40)
    model = LASVM(C=1.0, kernel=kernel, gamma=0.02, degree=2, coef0=0.5)
    K, best = naive.gram(naive.kernel_of(model), X, X), 0.0
    for b in range(0, 300, cut):
        old = model.decision_function_many(X[b : b + 1])
        margins = learn_batch(state_of(model), X[b : b + cut], y[b : b + cut], None, None)
        assert margins[0] == pytest.approx(old[0], abs=1e-4)
        dual = consistent_dual(model, y, K)
        assert dual > best
        best = dual


@pytest.mark.parametrize("delta_max", [None, 0.3])
def test_adaptive_reprocessing_stops_at_delta_max(delta_max):
    X, y = problem(6, 300, 5)
    model = LASVM(C=100.0, gamma=0.3, delta_max=delta_max)
    for t in range(300):
        learn(model, X[t : t + 1], y[t : t + 1])
        assert delta(state_of(model).expansion) <= (1.75 if delta_max is None else delta_max)


def test_reprocess_0_only_processes():
    """Every example that joins takes one step: the coefficients of a pair change."""
    X, y = problem(7, 100, 5)
    model, changed = LASVM(C=1.0, gamma=0.3, reprocess=0), []
    for t in range(100):
        before = dict(zip(model.support_ids, model.dual_coef, strict=True))
        learn(model, X[t : t + 1], y[t : t + 1])
        after = dict(zip(model.support_ids, model.dual_coef, strict=True))
        changed.append(sum(before.get(i, 0.0) != after.get(i, 0.0) for i in before | after))
    assert set(changed) <= {0, 1, 2}
    assert changed.count(2) > 30


def test_members_stay_near_the_support_vectors_where_a_class_is_rare_and_noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = rng.random(3000) < np.where(X[:, 0] > 1.0, 0.2, 0.01)
    members, support = {}, {}
    for admission in ("margin", "violation"):
        model = LASVM(admission=admission)
        model.learn_many(X, y)
        members[admission] = model.n_members
        model.finish()
        support[admission] = model.n_support
    assert members["margin"] <= 1.5 * support["margin"]
    assert members["violation"] > 3 * support["violation"]


# ----------------------------------------------------------------------------------------------------- special streams


@pytest.mark.filterwarnings("ignore::streamsvm.StreamWarning")
@pytest.mark.parametrize("label", [True, False])
def test_one_class_is_predicted_while_there_is_no_other(label):
    X = np.random.default_rng(0).normal(size=(lasvm.ENOUGH_MEMBERS + 50, 2))
    model = LASVM()
    learn(model, X, np.full(len(X), label))
    assert model.n_members == lasvm.ENOUGH_MEMBERS
    assert model.n_support == 0
    assert model.bias == (1.0 if label else -1.0)
    assert model.predict_one({0: 0.1, 1: 0.2}) is label
    learn(model, X[:1], [not label])
    assert model.n_support == 2


def test_an_example_of_weight_0_is_left_out():
    X, y = problem(8, 60, 3)
    with_zeros, without = LASVM(), LASVM()
    learn(with_zeros, X, y, np.arange(60) % 3 != 0)
    learn(without, X[np.arange(60) % 3 != 0], y[np.arange(60) % 3 != 0])
    np.testing.assert_array_equal(with_zeros.dual_coef, without.dual_coef)
    assert not (with_zeros.support_ids % 3 == 0).any()


def test_contradicting_duplicates_end_at_their_bounds():
    model = LASVM(C=2.0)
    learn(model, np.ones((2, 1)), [True, False])
    np.testing.assert_array_equal(np.sort(model.dual_coef), [-2.0, 2.0])
    assert model.decision_function_one({0: 1.0}) == pytest.approx(0.0)


def test_equal_examples_of_both_labels_are_of_the_larger_class():
    """All members are at their bounds, so a newcomer has a partner only if some wait with alpha = 0."""
    for seed, share in ((0, 0.7), (1, 0.7), (2, 0.3)):
        y = np.random.default_rng(seed).random(400) < share
        for reprocess in ("adaptive", 1):
            model = LASVM(C=1.0, reprocess=reprocess)
            learn(model, np.ones((400, 2)), y)
            assert model.decision_function_one({0: 1.0, 1: 1.0}) == pytest.approx(1.0 if share > 0.5 else -1.0)
            few = min(y.sum(), 400 - y.sum())
            assert np.abs(model.dual_coef).sum() == pytest.approx(2.0 * few)  # as in the solution over all examples
            model.finish()
            assert model.decision_function_one({0: 1.0, 1: 1.0}) == pytest.approx(1.0 if share > 0.5 else -1.0)


def digits(seed):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order] / 16.0, y[order] == 8


@pytest.mark.parametrize("reprocess", ["adaptive", 1])
@pytest.mark.parametrize("seed", [1, 2])
def test_with_small_boxes_it_is_as_good_as_a_batch_solver(seed, reprocess):
    X, y = digits(seed)
    model, batch = LASVM(C=1e-3, gamma=0.03, reprocess=reprocess), SVC(C=1e-3, gamma=0.03).fit(X[:1200], y[:1200])
    learn(model, X[:1200], y[:1200])
    model.finish()
    error = np.mean(model.predict_many(X[1200:]) != y[1200:])
    assert error <= np.mean(batch.predict(X[1200:]) != y[1200:]) + 0.005
    assert model.n_support > 0.8 * len(batch.support_)


@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_a_batch_is_a_loop_also_where_members_wait(C):
    X, y = digits(1)
    loop, batch = LASVM(C=C, gamma=0.03), LASVM(C=C, gamma=0.03)
    for x, label in zip(X[:300], y[:300].tolist(), strict=True):
        loop.learn_one(dict(enumerate(x)), label)
    batch.learn_many(X[:300], y[:300])
    assert loop.digest() == batch.digest()


def test_the_reserve_costs_a_model_with_free_members_nothing():
    """Without a reserve there were 850 members at the end, and 2 856 756 kernel values on the way."""
    X, y = problem(3, 4000, 12, noise=0.01)
    model = LASVM(C=30.0, gamma=0.02)
    learn(model, X, y)
    assert np.count_nonzero(np.abs(model.dual_coef) < 30.0) > 2 * RESERVE
    assert model.n_members < 1.1 * 850
    assert model.kernel_evaluations < 1.05 * 2_856_756


def test_weights_scale_the_box():
    X, y = problem(9, 200, 3)
    w = np.random.default_rng(9).uniform(0.5, 2.0, size=200)
    model = LASVM(C=0.5, pos_weight=3.0, gamma=2.0)
    learn(model, X, y, w)
    bound = 0.5 * w[model.support_ids] * np.where(y[model.support_ids], 3.0, 1.0)
    assert (np.abs(model.dual_coef) <= bound).all()
    assert (np.abs(model.dual_coef) == bound).sum() > 20
