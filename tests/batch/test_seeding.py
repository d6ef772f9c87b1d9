"""Seeds: feasible, with the right gradient, and never another solution than a cold start's."""

from dataclasses import replace
from itertools import pairwise as neighbours

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from streamsvm.batch import RowStore, SolverOptions, seeding, smo
from streamsvm.batch.path import factor
from streamsvm.batch.seeding import along_c, chains, exact, repair
from streamsvm.batch.seeding import full as full_seeds
from streamsvm.batch.seeding import greedy as greedy_seeds
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.kernels import RBF, make_kernel

NOBODY = np.array([], np.int64)
CHAINED = ("reuse", "sir", "mir", "ato", "chained")
FROM_FULL = ("avg", "top", "greedy", "best", "path")


def boxes(y, C, held_out=NOBODY):
    C = np.full(len(y), C)
    C[held_out] = 0.0
    return np.minimum(0.0, y * C), np.maximum(0.0, y * C)


def solved(previous, start, lower, upper):
    return smo.train(previous.store, previous.y, lower, upper, start.alpha, start.g)


def problem(seed, n, d=3, noise=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + X[:, -1] ** 2 + noise * rng.normal(size=n) > 0.7, 1.0, -1.0)


def cancer():
    X, labels = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.where(labels == 1, 1.0, -1.0)


def folds_of(n, k, seed=0):
    return np.array_split(np.random.default_rng(seed).permutation(n), k)


def full_of(X, y, C, kernel, **options):
    return smo.train(RowStore(X, kernel), y, *boxes(y, C), options=SolverOptions(**options))


def gram(previous):
    K = previous.store.rows(np.arange(len(previous.y)))
    return 0.5 * (K + K.T)


def check(start, previous, lower, upper, K):
    """Assert what must hold of every start."""
    C = (upper - lower).sum()
    assert ((lower <= start.alpha) & (start.alpha <= upper)).all()
    assert abs(start.alpha.sum()) <= 1e-12 * (1.0 + C)
    rounding = 1e-12 * (1.0 + max(np.abs(start.alpha).sum(), np.abs(previous.dual_coef).sum()) * np.abs(K).max())
    np.testing.assert_allclose(start.g, naive.gradient(start.alpha, previous.y, K), rtol=0, atol=rounding)
    assert start.objective(previous.y) == pytest.approx(
        naive.dual(start.alpha, previous.y, K), rel=1e-9, abs=rounding * (1.0 + C)
    )


def cross_validate(full, folds, seed, C):
    """The solution of each fold, by one seed, all starts checked."""
    K, previous, beginning = gram(full), full, exact.factor_of(full)
    for fold in folds:
        lower, upper = boxes(full.y, C, fold)
        if seed == "cold":
            yield smo.train(full.store, full.y, lower, upper), None
            continue
        if seed in CHAINED:
            start = seeding.SEEDS[seed](previous, lower, upper)
        else:
            more = {"factor": beginning} if seed == "path" and beginning is not None else {}
            start = seeding.SEEDS[seed](full, lower, upper, **more)
        check(start, previous, lower, upper, K)
        solution = solved(full, start, lower, upper)
        assert (
            naive.violation(solution.dual_coef, naive.gradient(solution.dual_coef, full.y, K), lower, upper)
            <= 1e-3 + 1e-7
        )
        yield solution, start
        previous = solution


def determined(solution):
    """Whether the bias is not anywhere between two bounds."""
    room = np.minimum(solution.hi - solution.dual_coef, solution.dual_coef - solution.lo)
    return bool((room > 1e-9 * (solution.hi - solution.lo)).any())


def assert_same_predictions(found, expected, fold):
    if not determined(expected):
        return
    a, b = found.decision_values[fold], expected.decision_values[fold]
    clear = np.abs(b) > 1e-2
    np.testing.assert_array_equal(a[clear] > 0, b[clear] > 0)


# --------------------------------------------------------------------------------------------------------------- repair


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), amount=st.floats(-8, 8))
def test_a_shift_is_the_one_found_by_bisection(seed, n, amount):
    rng = np.random.default_rng(seed)
    lower, upper = -rng.integers(0, 2, n) * rng.random(n), rng.integers(0, 2, n) * rng.random(n)
    beta = np.clip(rng.normal(size=n), lower, upper)
    found, expected = repair._shift(beta, lower, upper, amount), naive.shift(beta, lower, upper, amount)
    assert ((lower <= found) & (found <= upper)).all()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_what_the_entering_examples_cannot_take_goes_to_the_free_ones_then_to_all():
    lower, upper = np.array([0, 0, 0, 0, -1.0]), np.array([0.1, 1, 1, 2, 0])
    beta = np.array([0.0, 0.5, 0.0, 0.0, -1.0])
    found = repair.repair(beta, [np.array([0]), np.array([1])], lower, upper)
    np.testing.assert_allclose(found, [0.1, 0.9, 0, 0, -1])
    upper[1] = 0.6
    found = repair.repair(beta, [np.array([0]), np.array([1])], lower, upper)
    np.testing.assert_allclose(found, [0.1, 0.6, 0.1, 0.1, -0.9])
    assert abs(found.sum()) < 1e-15


def test_a_repair_of_nothing_changes_nothing():
    X, y = problem(0, 60)
    full = full_of(X, y, 1.0, RBF(0.3))
    np.testing.assert_array_equal(repair.repair(full.dual_coef, [], full.lo, full.hi), full.dual_coef)


def test_rounding_does_not_make_an_example_free():
    """Its gradient would be the bias of a problem that has none."""
    lower, upper = np.array([0.0, 0.0, -1.0, -1.0]), np.array([1.0, 1.0, 0.0, 0.0])
    found = repair.repair(np.array([1.0 - 1e-15, 1e-16, -1.0 + 3e-16, -1e-17]), [], lower, upper)
    np.testing.assert_array_equal(found, [1, 0, -1, 0])


# ------------------------------------------------------------------------------------------------------------ all seeds


def hard(case, rng):
    """Degenerate examples of several kinds: examples, labels and a kernel."""
    X, y = problem(int(rng.integers(10**6)), 36)
    kernel = RBF(0.5)
    if case == "identity":
        kernel = RBF(1e4)
    elif case == "duplicates":
        X, y = np.repeat(X[:9], 4, axis=0), np.repeat(y[:9], 4)
    elif case == "contradictions":
        X = np.repeat(X[:18], 2, axis=0)
        y[1::2] = -y[::2]
    elif case == "constant":
        X = np.ones_like(X)
    elif case == "one class":
        y = np.ones_like(y)
    elif case == "few of a class":
        y = np.ones_like(y)
        y[rng.integers(36)] = -1.0
    elif case == "sorted":
        order = np.argsort(y)
        X, y = X[order], y[order]
    elif case == "linear":
        kernel = make_kernel("linear")
    elif case == "indefinite":
        kernel = make_kernel("sigmoid", gamma=0.5, coef0=-0.5)
    return X, y, kernel


CASES = [
    "plain",
    "identity",
    "duplicates",
    "contradictions",
    "constant",
    "one class",
    "few of a class",
    "sorted",
    "linear",
    "indefinite",
]


@pytest.mark.long
@pytest.mark.parametrize("seed", [*CHAINED, *FROM_FULL])
@settings(max_examples=20, deadline=None)
@given(
    data=st.integers(0, 10**6),
    n=st.integers(8, 70),
    C=st.sampled_from([0.01, 0.5, 1.0, 20.0, 500.0]),
    gamma=st.sampled_from([0.02, 0.3, 2.0, 30.0]),
    k=st.integers(2, 12),
)
def test_every_seed_gives_the_predictions_of_a_cold_start(seed, data, n, C, gamma, k):
    X, y = problem(data, n)
    full = full_of(X, y, C, RBF(gamma))
    folds = [fold for fold in folds_of(n, k, data) if len(fold)]
    cold = cross_validate(full, folds, "cold", C)
    for fold, (found, _), (expected, _) in zip(folds, cross_validate(full, folds, seed, C), cold, strict=True):
        assert_same_predictions(found, expected, fold)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("case", CASES)
def test_degenerate_examples_have_an_answer(case, C):
    X, y, kernel = hard(case, np.random.default_rng(3))
    full = full_of(X, y, C, kernel)
    folds = np.array_split(np.arange(36), 4) if case == "sorted" else folds_of(36, 4)
    expected = [solution for solution, _ in cross_validate(full, folds, "cold", C)]
    for seed in (*CHAINED, *FROM_FULL):
        if case == "indefinite":  # there are several local solutions; starts are checked as always
            assert len(list(cross_validate(full, folds, seed, C))) == 4
            continue
        for fold, (found, _), cold in zip(folds, cross_validate(full, folds, seed, C), expected, strict=True):
            assert_same_predictions(found, cold, fold)


@pytest.mark.parametrize("seed", [*CHAINED, *FROM_FULL])
def test_a_cache_of_few_rows_changes_nothing(seed):
    X, y = problem(5, 80)
    solutions = []
    for cache_mb in (8 * 80 * 6 * 1.5 / 2**20, 256.0):
        store = RowStore(X, RBF(0.3), cache_mb)
        full = smo.train(store, y, *boxes(y, 10.0))
        solutions.append([s for s, _ in cross_validate(full, folds_of(80, 4), seed, 10.0)])
    for few, many in zip(*solutions, strict=True):
        np.testing.assert_allclose(few.decision_values, many.decision_values, atol=5e-3)


def test_a_start_needs_the_rows_of_what_changes_only():
    X, y = problem(6, 200)
    for seed in FROM_FULL:
        full = full_of(X, y, 1.0, RBF(0.2))
        fold = np.arange(20)
        lower, upper = boxes(y, 1.0, fold)
        before = full.store.rows_computed
        start = seeding.SEEDS[seed](full, lower, upper)
        support = np.count_nonzero((full.dual_coef != 0) | (start.alpha != 0))
        assert full.store.rows_computed <= before + support


# ------------------------------------------------------------------------------------------------------- each by itself


def test_sir_hands_coefficients_to_the_most_similar_of_the_label():
    X = np.array([[0.0], [1.0], [2.0], [0.1], [1.2], [0.05], [3.0]])
    y = np.array([1.0, 1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    previous = full_of(X, y, 5.0, RBF(1.0))
    lower, upper = boxes(y, 5.0, [3, 4, 5])
    previous = smo.train(previous.store, y, lower, upper)
    after = boxes(y, 5.0, [0, 1])
    start = chains.sir(previous, *after)
    expected = previous.dual_coef.copy()
    expected[[3, 4]] = previous.dual_coef[[0, 1]]
    expected[[0, 1]] = 0.0
    np.testing.assert_allclose(start.alpha, expected, atol=1e-15)


def test_sir_has_an_answer_where_a_label_has_run_out():
    X, y = problem(8, 40)
    enter, leave = np.flatnonzero(y < 0)[:3], np.flatnonzero(y > 0)[:5]
    previous = smo.train(RowStore(X, RBF(0.5)), y, *boxes(y, 1.0, enter))
    lower, upper = boxes(y, 1.0, leave)
    check(chains.sir(previous, lower, upper), previous, lower, upper, gram(previous))


def test_mir_solves_its_least_squares_problem():
    """With boxes so wide that nothing is cut and the sum is kept by its equation, up to the repair of the rest."""
    X, y = problem(9, 60)
    previous = smo.train(RowStore(X, RBF(0.3)), y, *boxes(y, 1.0, np.arange(6)))
    K, T, R = gram(previous), np.arange(6), previous.support[:3]
    lower, upper = np.full(60, -1e6), np.full(60, 1e6)
    lower[R] = upper[R] = 0.0
    start = chains.mir(previous, lower, upper)
    V = T[y[T] * (previous.g[T] - previous.bias) > 0]
    assert len(V) > 1
    M = np.setdiff1d(np.flatnonzero(previous.free), R)
    rows = np.append(M, V)
    wanted = np.append(np.zeros(len(M)), previous.g[V] - previous.bias) + K[np.ix_(rows, R)] @ previous.dual_coef[R]
    A = np.vstack([K[np.ix_(rows, V)], np.ones(len(V))])
    x = np.linalg.lstsq(A, np.append(wanted, previous.dual_coef[R].sum()), rcond=None)[0]
    rest = (previous.dual_coef[R].sum() - x.sum()) / len(T)
    np.testing.assert_allclose(start.alpha[V], x + rest, atol=1e-5)


def test_top_gives_to_the_most_similar_first_and_avg_to_all_alike():
    X, y = problem(10, 80)
    full = full_of(X, y, 10.0, RBF(0.3))
    r = int(full.support[np.argmax(np.abs(full.dual_coef)[full.support] * full.free[full.support])])
    lower, upper = boxes(y, 10.0, [r])
    K, M = gram(full), np.setdiff1d(np.flatnonzero(full.free), [r])
    expected = full.dual_coef.copy()
    for j in sorted(np.setdiff1d(np.arange(80), [r]), key=lambda j: -K[r, j]):
        taken = np.clip(expected[j] + expected[r], lower[j], upper[j]) - expected[j]
        expected[j] += taken
        expected[r] -= taken
    np.testing.assert_allclose(full_seeds.top(full, lower, upper).alpha, expected, atol=1e-12)
    shifted = full.dual_coef.copy()
    shifted[r] = 0.0
    shifted[M] = naive.shift(full.dual_coef[M], lower[M], upper[M], full.dual_coef[r])
    np.testing.assert_allclose(full_seeds.avg(full, lower, upper).alpha, shifted, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(data=st.integers(0, 10**6), r=st.integers(1, 12), C=st.sampled_from([0.3, 3.0, 100.0]))
def test_forced_steps_are_those_of_the_slow_twin(data, r, C):
    X, y = problem(data, 40)
    full = full_of(X, y, C, RBF(0.4))
    leaving = np.sort(np.random.default_rng(data).permutation(40)[:r])
    lower, upper = boxes(y, C, leaving)
    found = greedy_seeds.greedy(full, lower, upper)
    mass = leaving[full.dual_coef[leaving] != 0]
    expected = naive.forced_steps(full.dual_coef, y, gram(full), lower, upper, mass) if len(mass) else full.dual_coef
    np.testing.assert_allclose(found.alpha, expected, atol=1e-10 * C)


def test_forced_steps_empty_both_signs_where_those_that_stay_have_no_room():
    """What leaves has to cancel out, whoever is larger, and whatever small boxes take part in."""
    for seed in range(5):
        X, y = problem(seed, 40)
        C = np.where(np.arange(40) < 6, 100.0, 1e-3)
        lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
        store = RowStore(X, RBF(5.0))
        full = smo.train(store, y, lower, upper)
        beta, g, leaving = full.dual_coef.copy(), full.g.copy(), np.flatnonzero(full.dual_coef[:6])
        lower[leaving] = upper[leaving] = 0.0
        greedy_seeds.forced_steps(store.data, beta, g, lower, upper, leaving)
        largest = np.abs(full.dual_coef).max()
        assert np.abs(beta[leaving]).max() <= 1e-12 * largest
        assert abs(beta.sum()) <= 1e-12 * largest
        assert ((lower - 1e-12 * largest <= beta) & (beta <= upper + 1e-12 * largest)).all()
        np.testing.assert_allclose(g, naive.gradient(beta, y, gram(full)), atol=1e-9)


def test_best_is_the_better_of_two():
    for data in range(5):
        X, y = problem(data, 60)
        full = full_of(X, y, 5.0, RBF(0.3))
        fold = folds_of(60, 5, data)[0]
        lower, upper = boxes(y, 5.0, fold)
        values = [seeding.SEEDS[s](full, lower, upper).objective(y) for s in ("avg", "greedy", "best")]
        assert values[2] == max(values)


# ------------------------------------------------------------------------------------------------------- the exact path


@compiled
def _directions_after(K, F, w, members, m, leaving, entering, jitter, biased, h, k, change):
    """What `factor.directions` finds after members have left and others have entered; how many there are then."""
    for p in leaving:
        factor.leave(F, w, members, m, p)
        m -= 1
    for s in entering:
        if not factor.enter(F, w, members, m, s, K[s], K[s, s] + jitter):
            return -1
        m += 1
    factor.directions(F, w, members, m, biased, h, k, jitter, change, np.empty(len(k)))
    return m


@pytest.mark.parametrize("small", [factor.OWN_LOOP, 0], ids=["own", "LAPACK"])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(
    ("m", "leaving", "entering"),
    [
        (0, [], [3]),
        (1, [], []),
        (7, [], [11, 12, 13]),
        (8, [8, 1], []),
        (9, [4, 4, 1], [2, 0, 15, 14]),
        (14, [1, 7, 12, 2], [0]),
    ],
)
def test_the_factor_solves_what_numpy_solves(m, leaving, entering, biased, small, monkeypatch):
    """The bordered system, and once more for the rest of the jitter; examples leave and enter in between."""
    monkeypatch.setattr(factor, "OWN_LOOP", small)
    rng, jitter, n = np.random.default_rng(m), 0.1, 16
    A = rng.normal(size=(n, 20))
    K, k, h = A @ A.T, rng.normal(size=n), 0.7
    expected, members = list(range(m)), np.arange(n)
    for p in leaving:
        del expected[p - 1]
    expected += entering
    F, w, change = np.empty((n, n)), np.empty(n), np.empty(n + 1)
    F[:m, :m], w[:m] = factor.factorise(K[:m, :m].copy(), jitter)
    args = K, F, w, members, m, np.array(leaving, np.int64), np.array(entering, np.int64), jitter, biased, h, k, change
    size = _directions_after(*args)
    assert members[:size].tolist() == expected
    system = np.zeros((size + 1, size + 1))
    system[1:, 1:] = K[np.ix_(expected, expected)] + jitter * np.eye(size)
    system[0, 1:] = system[1:, 0] = float(biased)
    system[0, 0] = float(not biased)
    right = -np.append(h if biased else 0.0, k[expected])
    x = np.linalg.solve(system, right)
    x += np.linalg.solve(system, np.append(0.0, jitter * x[1:]))
    np.testing.assert_allclose(change[: size + 1], x, atol=1e-10)


@pytest.mark.parametrize("small", [factor.OWN_LOOP, 0], ids=["own", "LAPACK"])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(small, monkeypatch):
    monkeypatch.setattr(factor, "OWN_LOOP", small)
    K = np.diag([1.0, -1.0, 2.0])
    assert factor.factorise(K, 0.1) is None
    assert factor.factorise(np.full((2, 2), np.nan), 0.1) is None
    F, w, members, none = np.ones((2, 2)), np.ones(2), np.zeros(2, np.int64), np.zeros(0, np.int64)
    args = np.ones((2, 2)), F, w, members, 1, none, np.array([1]), 0.0, True, 0.0, np.ones(2), np.empty(3)
    assert _directions_after(*args) == -1  # an example that is equal to the member


@settings(max_examples=40, deadline=None)
@given(
    data=st.integers(0, 10**6),
    r=st.integers(1, 8),
    C=st.sampled_from([0.5, 5.0, 100.0]),
    gamma=st.sampled_from([0.1, 0.5, 3.0]),
    tol=st.sampled_from([1e-6, 1e-3, 0.1]),
)
def test_the_path_is_that_of_the_slow_twin(data, r, C, gamma, tol):
    """Which solves the system anew at each event."""
    X, y = problem(data, 50)
    full = full_of(X, y, C, RBF(gamma), tol=tol)
    leaving = np.random.default_rng(data).permutation(50)[:r]
    lower, upper = boxes(y, C, leaving)
    beginning = exact.factor_of(full)
    start = exact.path(full, lower, upper, beginning)
    staying = np.setdiff1d(np.flatnonzero(full.free), leaving)
    if start.seed != "path" or len(staying) == 0:
        return
    K, jitter, band = gram(full), beginning.jitter, (beginning.above, beginning.below)
    try:
        expected, events = naive.follow(full.dual_coef, y, K, lower, upper, full.bias, leaving, jitter, band)
    except np.linalg.LinAlgError:  # the twin has no answer to an empty free set
        return
    np.testing.assert_allclose(start.alpha, expected, atol=1e-5 * C)
    assert start.events == pytest.approx(events, abs=2)


@pytest.mark.parametrize(
    ("X", "y", "C", "gamma"),
    [
        (*cancer(), 10.0, 0.03),
        (*problem(1, 300, 5, 0.5), 1.0, 0.2),
        (*problem(1, 300, 5, 0.5), 100.0, 0.2),
        (*problem(2, 400, 2, 0.3), 10.0, 1.0),
    ],
    ids=["cancer", "C=1", "C=100", "plane"],
)
@pytest.mark.parametrize("seed", ["path", "chained"])
def test_after_a_path_there_is_nothing_left_to_do(X, y, C, gamma, seed):
    full = full_of(X, y, C, RBF(gamma))
    steps = paths = events = 0
    for solution, start in cross_validate(full, folds_of(len(y), 10), seed, C):
        steps += solution.iterations
        paths += start.seed == "path"
        events += start.events
    assert paths == 10
    assert steps == 0
    assert events > 10


@pytest.mark.parametrize("data", range(4))
def test_ato_takes_the_printed_steps(data):
    """They lead near the optimum only, because equation (10) has no column for the bias."""
    X, y = problem(data, 60)
    full = full_of(X, y, 5.0, RBF(0.5), tol=1e-9)
    first, second = folds_of(60, 6)[:2]
    boxes_before, (lower, upper) = boxes(y, 5.0, first), boxes(y, 5.0, second)
    previous = smo.train(full.store, y, *boxes_before, options=SolverOptions(tol=1e-9))
    K = gram(full)
    start = seeding.SEEDS["ato"](previous, lower, upper)
    alpha = previous.dual_coef
    expected, steps = naive.eta_steps(alpha, y, K, lower, upper, previous.bias, second.tolist(), first.tolist())
    assert (start.events, start.seed) == (steps, "ato")
    assert steps > 3
    groups = [first, np.flatnonzero(previous.free & (lower < upper))]
    np.testing.assert_allclose(start.alpha, repair.repair(expected, groups, lower, upper), atol=1e-5)
    check(start, previous, lower, upper, K)


def test_leave_one_out_by_paths():
    X, y = problem(3, 150, 4)
    full = full_of(X, y, 2.0, RBF(0.3))
    solutions = list(cross_validate(full, np.arange(150)[:, None], "path", 2.0))
    assert sum(solution.iterations for solution, _ in solutions) == 0
    assert {start.seed for _, start in solutions} == {"path"}
    bystanders = np.flatnonzero(full.dual_coef == 0)
    assert all(solutions[i][1].events == 0 for i in bystanders)


def test_events_of_length_0_do_not_go_on_for_ever():
    """Many equal examples: one that has just left M would be the next to enter."""
    for data in range(3):
        rng = np.random.default_rng(data)
        X = rng.integers(0, 3, size=(80, 3)).astype(float)
        y = np.where(X.sum(axis=1) + rng.normal(size=80) > 3, 1.0, -1.0)
        full = full_of(X, y, 30.0, RBF(0.5))
        starts = [start for _, start in cross_validate(full, folds_of(80, 40), "path", 30.0)]
        assert sum(start.seed == "path" for start in starts) >= 38


def test_a_path_that_is_too_long_is_replaced_by_best():
    X, y = problem(4, 120)
    full = full_of(X, y, 5.0, RBF(0.3))
    fold = folds_of(120, 5)[0]
    lower, upper = boxes(y, 5.0, fold)
    start = exact.path(full, lower, upper, max_events=2)
    best = full_seeds.best(full, lower, upper)
    assert (start.seed, start.events) == (best.seed, 3)
    np.testing.assert_array_equal(start.alpha, best.alpha)


def test_without_room_for_the_rows_of_the_free_examples_there_is_no_path():
    X, y = problem(4, 120)
    store = RowStore(X, RBF(0.3), 8 * 120 * 8 * 1.5 / 2**20)
    full = smo.train(store, y, *boxes(y, 5.0))
    assert np.count_nonzero(full.free) > store.capacity
    assert exact.factor_of(full) is None
    fold = np.arange(12)
    assert exact.path(full, *boxes(y, 5.0, fold)).seed in ("avg", "greedy")


def test_with_no_free_example_the_bias_moves_until_one_is():
    """Two equal clusters and a small C: everything is at its bound."""
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, -1.0], 10)
    X = rng.normal(size=(20, 2)) + y[:, None]
    full = full_of(X, y, 1e-2, RBF(0.1))
    assert not full.free.any()
    for fold in ([3], [12], [3, 12], [1, 2, 3]):
        fold = np.array(fold)
        lower, upper = boxes(y, 1e-2, fold)
        start = exact.path(full, lower, upper)
        assert start.seed == "path"
        assert solved(full, start, lower, upper).iterations == 0
        check(start, full, lower, upper, gram(full))


# -------------------------------------------------------------------------------------------------------------- along C


@pytest.mark.parametrize("seed", seeding.C_SEEDS)
@settings(max_examples=15, deadline=None)
@given(data=st.integers(0, 10**6), gamma=st.sampled_from([0.05, 0.5, 5.0]), factor=st.sampled_from([0.5, 2.0, 10.0]))
def test_every_start_along_a_path_gives_the_predictions_of_a_cold_one(seed, data, gamma, factor):
    X, y = problem(data, 50)
    held_out = np.arange(5)
    store = RowStore(X, RBF(gamma))
    previous = smo.train(store, y, *boxes(y, 0.1, held_out))
    for C in (0.1 * factor, 0.1 * factor**2, 0.1 * factor**3):
        lower, upper = boxes(y, C, held_out)
        start = seeding.C_SEEDS[seed](previous, lower, upper)
        check(start, previous, lower, upper, gram(previous))
        previous = solved(previous, start, lower, upper)
        cold = smo.train(store, y, lower, upper)
        assert previous.objective == pytest.approx(cold.objective, rel=1e-3)
        assert_same_predictions(previous, cold, np.arange(50))


def test_starts_for_larger_boxes_are_better_than_none():
    X, y = problem(1, 150, noise=1.0)
    full = full_of(X, y, 0.5, RBF(0.3))
    lower, upper = boxes(y, 1.0)
    values = {name: seed(full, lower, upper).objective(y) for name, seed in seeding.C_SEEDS.items()}
    optimum = smo.train(full.store, y, lower, upper).objective
    assert full.objective == pytest.approx(values["direct"])
    assert values["direct"] < values["averaged"] <= optimum + 1e-9
    assert values["direct"] < values["pairwise"] <= optimum + 1e-9
    assert values["best"] == max(values["direct"], values["scaled"])


def test_the_scaled_start_moves_the_bounded_coefficients_to_their_new_bound():
    X, y = problem(1, 150, noise=1.0)
    full = full_of(X, y, 0.5, RBF(0.3))
    lower, upper = boxes(y, 0.6)
    start = along_c.scaled(full, lower, upper)
    bounded = np.flatnonzero((full.dual_coef != 0) & ~full.free)
    assert np.mean(np.abs(start.alpha[bounded]) == 0.6) > 0.9


def test_with_nothing_at_its_bound_the_solution_is_that_of_every_larger_box():
    X, y = problem(2, 60, noise=0.0)
    solutions = [full_of(X, y, C, RBF(0.5)) for C in (0.1, 1e3, 1e5)]
    assert [bool(s.at_bound.any()) for s in solutions] == [True, False, False]
    for before, after in neighbours(solutions[1:]):
        start = along_c.direct(before, after.lo, after.hi)
        assert solved(before, start, after.lo, after.hi).iterations == 0
        assert start.objective(y) == pytest.approx(after.objective, rel=1e-3)


# -------------------------------------------------------------------------------------------------------- which of them


def test_the_choice_follows_the_costs_and_says_so():
    X, y = problem(1, 300, 5, 0.5)
    hard = full_of(X, y, 100.0, RBF(0.2))
    choice = seeding.choose(hard, effective=10.0, k=10)
    assert choice.seed == "path"
    assert choice.path_seconds < min(choice.cold_seconds, choice.avg_seconds)
    assert "path is the cheapest" in choice.reason
    almost_diagonal = full_of(*problem(1, 500, 5, 0.5), 1e3, RBF(30.0))
    choice = seeding.choose(almost_diagonal, effective=10.0, k=10)
    assert choice.seed != "path"
    assert choice.path_seconds > choice.avg_seconds


def test_a_seed_is_worth_less_where_more_support_vectors_are_free():
    X, y = problem(1, 500, 5, 0.5)
    bounded, free = full_of(X, y, 0.05, RBF(0.2)), full_of(X, y, 1e3, RBF(30.0))
    shares = []
    for full in (bounded, free):
        alike = replace(full, iterations=10**6, newton_steps=0)  # so many that nothing else counts
        choice = seeding.choose(alike, effective=10.0, k=10)
        shares.append(choice.avg_seconds / choice.cold_seconds)
    assert shares[0] < 0.8 < 1.0 < shares[1]
