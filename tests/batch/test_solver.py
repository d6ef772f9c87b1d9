"""The chunked solver: optimal over all examples, whatever the kernel, the boxes, the input and the memory."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from streamsvm.batch.kernels.features import Features
from streamsvm.batch.options import SolverOptions
from streamsvm.batch.steps.conjugate import MAX_MOVED
from streamsvm.batch.working_set import solver
from streamsvm.batch.working_set.members import Active, take_steps
from streamsvm.batch.working_set.solver import optimum
from streamsvm.core.expansion import FORBIDDEN
from streamsvm.core.hashing import row_hashes
from streamsvm.core.kernels import RBF, Linear, Sigmoid, make_kernel

TOL = 1e-3


def problem(seed, n, d, share=0.4, noise=0.3):
    """Examples and labels -1 and +1, with this share of positives at least."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X[:, 0] + X[:, -1] ** 2 + noise * rng.normal(size=n)
    return X, np.where(f >= np.quantile(f, 1.0 - share), 1.0, -1.0)


def boxes(y, C):
    return np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)


def solved(X, y, C, kernel, **options):
    lo, hi = boxes(y, C)
    found, _ = optimum(Features(X, kernel), y, lo, hi, SolverOptions(**({"tol": TOL} | options)))
    return found, lo, hi


def active_of(y, lo, hi):
    """All examples of a problem as members that have not moved yet, for a kernel of values 1 on the diagonal."""
    rises, falls = np.where(hi > 0, 0.0, -FORBIDDEN), np.where(lo < 0, 0.0, FORBIDDEN)
    return Active(np.zeros(len(y)), y.copy(), lo, hi, rises, falls, np.ones(len(y)))


def check(found, X, y, lo, hi, kernel):
    """Assert what must hold of every solution, computed anew in float64."""
    dense = np.float32(X.toarray() if sp.issparse(X) else X).astype(float)
    K = naive.gram(kernel, dense, dense)
    g, size = naive.gradient(found.dual_coef, y, K), np.abs(found.dual_coef).sum()
    rounding = 1e-5 * (1.0 + size) * max(1.0, np.abs(K).max())
    assert found.converged
    assert (lo <= found.dual_coef).all()
    assert (found.dual_coef <= hi).all()
    assert abs(found.dual_coef.sum()) <= 1e-9 * (1.0 + size)
    assert naive.violation(found.dual_coef, g, lo, hi) <= TOL + 2.0 * rounding
    np.testing.assert_allclose(found.g, g, atol=rounding)
    assert abs(found.bias - naive.midpoint(found.dual_coef, g, lo, hi)) <= TOL + 2.0 * rounding


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 150),
    d=st.integers(1, 5),
    C=st.sampled_from([0.01, 1.0, 30.0]),
    name=st.sampled_from(naive.SEMIDEFINITE),
    weighted=st.booleans(),
    repeated=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_solutions_are_optimal(seed, n, d, C, name, weighted, repeated):
    X, y = problem(seed, n, d)
    if repeated:
        X = X[np.random.default_rng(seed).integers(0, max(1, n // 3), n)]  # with several labels each
    weights = np.random.default_rng(seed).integers(0, 4, n) if weighted else np.ones(n)
    kernel = make_kernel(name, gamma=0.5, degree=2, coef0=1.0)
    found, lo, hi = solved(X, y, C * weights, kernel)
    check(found, X, y, lo, hi, kernel)


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("share", [0.002, 0.3])
def test_decision_values_are_those_of_svc(C, share):
    X, y = problem(1, 1500, 4, share)
    kernel = RBF(0.2)
    found, *_ = solved(X, y, C, kernel, tol=1e-4)
    reference = SVC(C=C, gamma=0.2, tol=1e-5).fit(X, y)
    at_bounds = not (np.abs(reference.dual_coef_) < C).any()  # then the bias is anywhere in a range
    np.testing.assert_allclose(
        y - found.g + found.bias, reference.decision_function(X), rtol=1e-3, atol=0.02 if at_bounds else 3e-3
    )


@pytest.mark.parametrize("cache_mb", [0.02, 0.1, 256.0])
def test_the_memory_does_not_matter(cache_mb):
    """With little of it, most support vectors are not members, and free coefficients leave as well."""
    X, y = problem(2, 600, 3, noise=1.0)
    kernel = RBF(0.5)
    found, lo, hi = solved(X, y, 3.0, kernel, cache_mb=cache_mb)
    check(found, X, y, lo, hi, kernel)
    assert np.count_nonzero(found.dual_coef) > 150


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, np.asarray, np.float32], ids=lambda form: form.__name__)
@pytest.mark.parametrize("d", [40, 6000])
def test_mostly_empty_examples(form, d):
    """They are multiplied in other ways: by a matrix of columns, or by lists if that were large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, d)) * (rng.random((700, d)) < 3.0 / d)
    y = np.where(X.sum(axis=1) + 0.5 * rng.normal(size=700) > 0, 1.0, -1.0)
    kernel = RBF(0.3)
    found, lo, hi = solved(form(X), y, 2.0, kernel)
    check(found, X, y, lo, hi, kernel)


def test_duplicate_entries_of_a_sparse_matrix_add_up():
    X = sp.csr_matrix((np.array([1.0, 2.0, -1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    found, lo, hi = solved(X, np.array([1.0, -1.0]), 10.0, Linear())
    check(found, X, np.array([1.0, -1.0]), lo, hi, Linear())
    assert X.nnz == 3


def test_one_class_alone():
    X, y = problem(0, 50, 2)[0], np.ones(50)
    found, *_ = solved(X, y, 1.0, RBF(1.0))
    assert found.converged
    assert not found.dual_coef.any()
    assert found.bias == 1.0


def test_one_example_of_a_class():
    X, y = problem(3, 700, 2, share=0.0014)  # more than the first chunk
    assert (y > 0).sum() == 1
    found, lo, hi = solved(X, y, 10.0, RBF(1.0))
    check(found, X, y, lo, hi, RBF(1.0))


def test_a_kernel_that_is_not_positive_semidefinite_ends():
    X, y = problem(4, 400, 3)
    found, lo, hi = solved(X, y, 100.0, Sigmoid(2.0, -1.0), max_iterations=20_000)
    assert found.status in ("converged", "max_iterations", "no_progress")
    assert (lo <= found.dual_coef).all()
    assert (found.dual_coef <= hi).all()


def test_limits_are_kept_and_told():
    X, y = problem(5, 500, 3)
    few_steps, *_ = solved(X, y, 100.0, RBF(1.0), max_iterations=50)
    assert (few_steps.status, few_steps.iterations) == ("max_iterations", 50)
    few_passes, *_ = solved(X, y, 100.0, RBF(1.0), max_passes=2)
    assert few_passes.n_passes == 2
    assert few_passes.status in ("max_passes", "converged")


def test_solutions_do_not_depend_on_the_order_of_the_examples_but_for_the_tolerance():
    X, y = problem(6, 900, 3)
    order = np.random.default_rng(0).permutation(900)
    one, other = (solved(X[rows], y[rows], 2.0, RBF(0.5))[0] for rows in (np.arange(900), order))
    np.testing.assert_allclose(one.g[order] - one.bias, other.g - other.bias, atol=5e-3)


def test_decision_values_of_a_chunk_are_those_of_a_model_that_has_not_seen_it():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 2)), np.where(rng.random(900) < 0.5, 1.0, -1.0)  # labels are as good as random
    found, arrived = optimum(Features(X, RBF(20.0)), y, *boxes(y, 100.0))
    right = np.sign(arrived.decision_values) == y[arrived.ids]
    assert sorted(arrived.ids) == sorted(set(arrived.ids))
    assert len(arrived.ids) >= 400
    assert 0.4 < right.mean() < 0.6
    assert (np.sign(y - found.g + found.bias) == y).mean() > 0.8


def test_classes_are_spread_evenly():
    positive = np.arange(1000) < 10
    order = solver.spread(positive)
    assert sorted(order) == list(range(1000))
    for begin in range(0, 1000, 100):
        assert positive[order[begin : begin + 100]].sum() == 1
    assert positive[order[:2]].sum() == 1


@pytest.mark.parametrize(("seed", "C", "n_steps"), [(7, 0.3, 25), (1, 2.0, 40), (2, 50.0, 40)])
def test_steps_are_those_of_the_twin(seed, C, n_steps):
    """After the first step, no two gradients that may rise are the largest in these problems up to rounding."""
    X, y = problem(seed, 60, 2)
    K = naive.gram(RBF(0.5), X, X).astype(np.float32)
    lo, hi = boxes(y, C)
    alpha, g, steps = naive.conjugate_steps(K.astype(float), y, lo, hi, 0.01, n_steps, MAX_MOVED)
    active = active_of(y, lo, hi)
    assert take_steps(K, active, 0.01, n_steps, np.zeros(2)) == steps
    np.testing.assert_allclose(active.alpha, alpha, atol=1e-9)
    np.testing.assert_allclose(active.g, g, atol=1e-9)


def test_conjugate_directions_save_steps_where_many_coefficients_are_free():
    X, y = problem(7, 150, 2)
    K, (lo, hi) = naive.gram(RBF(0.5), X, X).astype(np.float32), boxes(y, 100.0)
    active = active_of(y, lo, hi)
    steps = take_steps(K, active, TOL, 10**6, np.zeros(2))
    assert naive.violation(active.alpha, active.g, lo, hi) <= TOL
    np.testing.assert_allclose(active.g, y - K.astype(float) @ active.alpha, atol=1e-9)
    *_, plain = naive.conjugate_steps(K.astype(float), y, lo, hi, TOL, 10**6, most=0)
    assert steps < 0.75 * plain


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hashes_are_those_of_the_twin(dtype):
    rng = np.random.default_rng(0)
    X, labels = rng.integers(-2, 3, size=(20, 3)).astype(dtype), rng.integers(0, 3, 20)
    expected = [naive.row_hash(label, row.view(np.uint32)) for row, label in zip(X, labels, strict=True)]
    assert row_hashes(X, labels).tolist() == expected
