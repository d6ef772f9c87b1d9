"""Series of problems on one kernel matrix: each optimal, whatever the kernel, the boxes and the start."""

import pickle

import naive
import numpy as np
import pytest
import scipy.sparse as sp

from streamsvm.batch import RowStore, SolverOptions, smo
from streamsvm.batch.kernels.matrix import Gram, Matrices
from streamsvm.batch.problem import too_coarse, violations
from streamsvm.batch.working_set import solver
from streamsvm.batch.working_set.members import Members
from streamsvm.batch.working_set.series import Series, scaled
from streamsvm.core.expansion import FORBIDDEN
from streamsvm.core.kernels import NAMES, RBF, make_kernel

TOL = 1e-3


def problem(seed=0, n=300, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + X[:, -1] ** 2 + 0.3 * rng.normal(size=n) > 0.7, 1.0, -1.0)


def boxes(y, C, out=()):
    lo, hi = np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)
    lo[list(out)] = hi[list(out)] = 0.0
    return lo, hi


def gram_of(X, kernel):
    return Matrices(RowStore(X, kernel)).of(kernel)


def check(found, X, y, kernel, tol=TOL):
    """Assert what must hold of every solution, computed anew in float64."""
    g = naive.gradient(found.dual_coef, y, naive.gram(kernel, X, X))
    rounding = 1e-5 * (1.0 + np.abs(found.dual_coef).sum())
    assert found.converged
    assert (found.lo <= found.dual_coef).all()
    assert (found.dual_coef <= found.hi).all()
    assert abs(found.dual_coef.sum()) <= 1e-9 * (1.0 + np.abs(found.dual_coef).sum())
    assert naive.violation(found.dual_coef, g, found.lo, found.hi) <= tol + 2.0 * rounding
    np.testing.assert_allclose(found.g, g, atol=rounding)


# ------------------------------------------------------------------------------------------------------------- matrices


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_matrices_of_all_gammas_are_exact_to_single_precision(name, form):
    X, _ = problem(n=40)
    X *= np.random.default_rng(1).random(X.shape) < 0.3
    matrices = Matrices(RowStore(form(X), make_kernel(name)))
    for gamma in (0.1, 2.0):
        kernel = make_kernel(name, gamma=gamma)
        gram = matrices.of(kernel)
        np.testing.assert_allclose(gram.K, naive.gram(kernel, X, X), rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(gram.diagonal, naive.gram(kernel, X, X).diagonal(), rtol=1e-12)


def test_far_from_the_origin_distances_stay_exact():
    X, _ = problem(n=40)
    np.testing.assert_allclose(gram_of(X + 1e5, RBF()).K, naive.gram(RBF(), X, X), atol=1e-5)


def test_a_matrix_is_shared_while_it_is_in_use():
    X, _ = problem(n=20)
    matrices = Matrices(RowStore(X, RBF()))
    first = matrices.of(RBF(gamma=0.5))
    assert matrices.of(RBF(gamma=0.5)) is first
    copied = pickle.loads(pickle.dumps(matrices))  # noqa: S301
    np.testing.assert_array_equal(copied.of(RBF(gamma=0.5)).K, first.K)


# ------------------------------------------------------------------------------------------------------------- problems


@pytest.mark.parametrize("kernel", [RBF(gamma=0.5), make_kernel("linear"), make_kernel("poly", 0.3, 2, 1.0)])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_a_solution_is_optimal(kernel, C):
    X, y = problem()
    found = Series(gram_of(X, kernel)).solve(y, *boxes(y, C))
    check(found, X, y, kernel)


@pytest.mark.parametrize("first", [20, 500])
def test_folds_along_c_are_those_of_smo(first, monkeypatch):
    """Whichever members begin."""
    monkeypatch.setattr(solver, "FIRST", first)
    X, y = problem()
    kernel, options = RBF(gamma=0.5), SolverOptions(tol=1e-4)
    folds, found = Series(gram_of(X, kernel), options), None
    for C in (0.1, 0.5, 10.0, 100.0):
        for out in (range(100), range(100, 200)):
            lo, hi = boxes(y, C, out)
            start = None if found is None else np.clip(found.dual_coef, lo, hi)
            if start is not None and abs(start.sum()) > 1e-9:
                start = None
            found = folds.solve(y, lo, hi, start, None if start is None else y - naive.gram(kernel, X, X) @ start)
            check(found, X, y, kernel, 1e-4)
            apart = smo.solve(X, y > 0, C, gamma=0.5, held_out=list(out), options=options)
            np.testing.assert_allclose(y - found.g + found.bias, apart.decision_values, atol=5e-3)


@pytest.fixture
def members(monkeypatch):
    """The number of members after each time that some have come."""
    counts, add = [], Members.add
    monkeypatch.setattr(Members, "add", lambda own, *given: (add(own, *given), counts.append(len(own))))
    return counts


def test_a_rare_class_does_not_make_members_of_most_examples(members):
    """The first members hold few of its examples; the others violate by far, and move the middle of all extremes."""
    X = np.random.default_rng(0).normal(size=(1500, 2))
    y = np.where(X.sum(axis=1) > 3.0, 1.0, -1.0)
    few = Series(gram_of(X, RBF(gamma=0.05)))
    assert few.solve(y, *boxes(y, 1.0)).converged
    assert len(members) > 1
    assert max(members) < 500


def test_few_support_vectors_have_few_members_though_all_examples_are_near_the_margin(members):
    y = np.where(np.arange(600) % 2, 1.0, -1.0)
    X = y[:, None] + 0.05 * np.random.default_rng(0).normal(size=(600, 2))
    few = Series(gram_of(X, RBF(gamma=0.5)))
    before = few.solve(y, *boxes(y, 0.05))
    assert np.count_nonzero(np.abs(before.g - before.bias) < solver.SLACK) == 600
    few.restart()
    members.clear()
    found = few.solve(y, *boxes(y, 0.2), before.dual_coef, before.g)
    check(found, X, y, RBF(gamma=0.5))
    assert 0 < max(members) < 200


def test_a_scaled_solution_keeps_its_bounds_and_its_gradient():
    X, y = problem()
    kernel = RBF(gamma=0.5)
    found = Series(gram_of(X, kernel)).solve(y, *boxes(y, 0.3))
    larger = scaled(found, 7.0)
    np.testing.assert_array_equal(larger.at_bound, found.at_bound)
    np.testing.assert_allclose(larger.g, naive.gradient(larger.dual_coef, y, naive.gram(kernel, X, X)), atol=1e-3)


def test_a_solution_needs_no_step():
    X, y = problem()
    folds = Series(gram_of(X, RBF()))
    found = folds.solve(y, *boxes(y, 1.0))
    again = folds.solve(y, *boxes(y, 1.0), found.dual_coef, found.g)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.dual_coef, found.dual_coef)


def test_the_limit_of_steps_is_held():
    X, y = problem()
    found = Series(gram_of(X, RBF()), SolverOptions(max_iterations=3)).solve(y, *boxes(y, 10.0))
    assert (found.status, found.iterations) == ("max_iterations", 3)
    assert found.violation > TOL


def test_rounding_grows_with_coefficients_and_kernel_values():
    assert not too_coarse(np.full(100, 10.0), np.ones(100), TOL)
    assert too_coarse(np.full(100, 1e4), np.ones(100), TOL)
    assert too_coarse(np.full(100, 10.0), np.full(100, 1e3), TOL)


# ---------------------------------------------------------------------------------------------------------------- parts


@pytest.mark.parametrize("first", [0, 1, 6, 9])
def test_the_values_among_members_are_those_of_the_matrix(first):
    rng = np.random.default_rng(0)
    K = rng.random((30, 30)).astype(np.float32)
    K += K.T
    ids = rng.permutation(30)[:9]
    out = np.full((12, 12), -1.0, np.float32)
    out[:first, :first] = K[np.ix_(ids[:first], ids[:first])]
    Gram(K, K.diagonal().astype(np.float64)).put_square(ids, first, out)
    np.testing.assert_array_equal(out[:9, :9], K[np.ix_(ids, ids)])
    assert (out[9:] == -1.0).all()


def test_the_memory_of_a_matrix_serves_the_next_one():
    X, _ = problem(n=20)
    matrices = Matrices(RowStore(X, RBF()))
    first, second = matrices.of(RBF(gamma=0.1)), matrices.of(RBF(gamma=0.2))
    assert not np.shares_memory(first.K, second.K)
    known, place = second.K.copy(), first.K.ctypes.data
    del first
    third = matrices.of(RBF(gamma=0.3))
    assert third.K.ctypes.data == place
    np.testing.assert_array_equal(second.K, known)
    np.testing.assert_allclose(third.K, naive.gram(RBF(gamma=0.3), X, X), rtol=2e-5)


def test_the_inner_products_are_kept_for_later():
    X, _ = problem(n=20)
    matrices = Matrices(RowStore(X, RBF()))
    assert not matrices.are_at_hand
    known = matrices.of(RBF()).K.copy()
    assert matrices.are_at_hand
    np.testing.assert_array_equal(matrices.of(RBF()).K, known)
    assert not pickle.loads(pickle.dumps(matrices)).are_at_hand  # noqa: S301


def test_near_is_the_distance_past_the_middle_on_the_side_that_violates():
    y, g = np.array([1.0, 1.0, 1.0, -1.0]), np.array([3.0, 3.0, 3.0, 3.0])
    lo, hi = np.minimum(y, 0.0), np.maximum(y, 0.0)
    hi[2] = 0.0  # held out
    near = violations(np.array([0.0, 1.0, 0.0, -1.0]), g, lo, hi, 1.0, 1.0)
    np.testing.assert_array_equal(near, [2.0, -2.0, -FORBIDDEN, 2.0])
