"""Problems solved among members have the solution of those solved among all examples."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from streamsvm.batch import RowStore, SolverOptions, seeding, smo
from streamsvm.batch.costs import path_seconds, step_seconds
from streamsvm.core.kernels import make_kernel

KERNELS = [("rbf", {"gamma": 0.5}), ("linear", {}), ("poly", {"gamma": 0.3, "coef0": 1.0, "degree": 2})]


def noisy(n=240, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=n) > 0, 1.0, -1.0)


def boxes(y, C=4.0, seed=1):
    """Boxes of weighted examples; some weights are 0."""
    weights = np.random.default_rng(seed).uniform(0.0, 2.0, len(y)).round(1)
    return np.minimum(0.0, C * weights * y), np.maximum(0.0, C * weights * y)


def require_same(found, expected, tol):
    assert found.converged
    assert found.violation <= tol
    np.testing.assert_allclose(found.decision_values, expected.decision_values, atol=30 * tol)
    K = found.store.rows(np.arange(len(found.y)))
    np.testing.assert_allclose(found.g, found.y - K @ found.dual_coef, atol=1e-8)
    assert ((found.lo <= found.dual_coef) & (found.dual_coef <= found.hi)).all()
    assert found.dual_coef.sum() == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(("kernel", "parameters"), KERNELS)
def test_any_members_lead_to_the_solution(kernel, parameters, is_sparse):
    X, y = noisy()
    store = RowStore(csr_matrix(X) if is_sparse else X, make_kernel(kernel, **parameters))
    (lo, hi), options = boxes(y), SolverOptions(tol=1e-4)
    expected = smo.train(store, y, lo, hi, options=options)
    for ids in ([], [3], np.arange(0, 240, 2), np.arange(240)):
        members = seeding.Members(store, np.array(ids, np.int64))
        found = seeding.train(members, y, lo, hi, options=options)
        require_same(found, expected, 1e-4)
        assert len(members) == len(ids)  # violators join for one training only


def test_folds_from_the_full_solution_are_those_trained_anew():
    X, y = noisy()
    store, (lo, hi), options = RowStore(X, make_kernel("rbf", gamma=0.5)), boxes(y), SolverOptions(tol=1e-4)
    _, rough = seeding.members_of(store, y, lo, hi, options)
    rough = replace(rough, dual_coef=np.zeros(240), g=y)
    members, full = seeding.refined(seeding.Members(store, np.arange(60)), rough, options)
    assert set(full.support) <= set(members.ids)  # Others have joined, and stay for the folds.
    require_same(full, smo.train(store, y, lo, hi, options=options), 1e-4)
    for fold in range(4):
        out = np.arange(fold, 240, 4)
        lower, upper = lo.copy(), hi.copy()
        lower[out] = upper[out] = 0.0
        expected = smo.train(store, y, lower, upper, options=options)
        part, M = members.part(full), members.ids
        for name in ("avg", "greedy", "path"):
            start = seeding.SEEDS[name](part, lower[M], upper[M])
            found = seeding.train(members, y, lower, upper, full, options, start)
            require_same(found, expected, 1e-4)
            assert not found.dual_coef[out].any()


def test_the_kernel_among_members_is_that_of_their_rows():
    X, _ = noisy()
    store = RowStore(X, make_kernel("rbf", gamma=0.5))
    first, later = np.array([5, 3, 100]), np.array([200, 0])
    members = seeding.Members(store, first)
    joined = members.joined_by(later)
    K = store.rows(np.arange(240))
    for some, ids in ((members, first), (joined, np.concatenate([first, later]))):
        np.testing.assert_array_equal(some.store.rows(np.arange(len(ids))), K[np.ix_(ids, ids)])
        np.testing.assert_array_equal(some.store.diagonal, store.diagonal[ids])


@pytest.mark.parametrize(("n_features", "rows"), [(3, 0), (8, 40)])
def test_members_with_few_features_need_no_whole_rows(n_features, rows):
    X = np.random.default_rng(0).normal(size=(240, n_features))
    store = RowStore(X, make_kernel("rbf", gamma=0.5))
    members = seeding.Members(store, np.arange(40))
    assert store.rows_computed == rows
    found = members.store.rows(np.arange(40))
    np.testing.assert_array_equal(found, store.rows(np.arange(40))[:, :40])


def test_a_small_cache_makes_all_examples_members():
    X, y = noisy()
    store = RowStore(X, make_kernel("rbf", gamma=0.5), cache_mb=0.05)
    lo, hi = boxes(y)
    members = seeding.Members(store, np.arange(150))
    assert members.are_all
    assert not seeding.Members(store, np.arange(10)).are_all
    few = seeding.Members(store, np.arange(10))  # others join until there is no room for more
    expected = smo.train(store, y, lo, hi)
    for some in (members, few):
        require_same(seeding.train(some, y, lo, hi), expected, 1e-3)


def test_a_limit_on_steps_holds_for_all_rounds():
    X, y = noisy()
    store, options = RowStore(X, make_kernel("rbf", gamma=0.5)), SolverOptions(max_iterations=20)
    lo, hi = boxes(y)
    members, rough = seeding.members_of(store, y, lo, hi, options)
    assert rough.status == "max_iterations"
    assert seeding.refined(members, rough, options) == (members, rough)
    found = seeding.train(members, y, lo, hi, options=options)
    assert (found.status, found.iterations) == ("max_iterations", 20)


def test_a_path_is_followed_where_it_costs_less_than_steps():
    many, few = step_seconds(20_000, 1000), step_seconds(200, 1000)
    assert few < path_seconds(events=100, m=200, n=1000, k=1) < many
    assert path_seconds(events=100, m=2000, n=4000, k=1) > many
    assert path_seconds(events=0, m=300, n=1000, k=10) < path_seconds(events=0, m=300, n=1000, k=1)
