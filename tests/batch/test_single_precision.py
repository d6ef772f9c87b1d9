"""The start from single precision: where it is taken, and that the solution is the one of double precision."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamsvm.batch import RowStore, SolverOptions, smo
from streamsvm.batch.working_set import single_precision
from streamsvm.core.kernels import RBF, Linear, Sigmoid, make_kernel

KERNELS = {"rbf": RBF(0.4), "linear": Linear(), "poly": make_kernel("poly", gamma=0.3, degree=2, coef0=0.5)}


def problem(seed, n, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + X[:, -1] ** 2 + 0.3 * rng.normal(size=n) > 1.0, 1.0, -1.0)


def boxes(y, C):
    return np.minimum(C * y, 0.0), np.maximum(C * y, 0.0)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 120),
    name=st.sampled_from(sorted(KERNELS)),
    C=st.sampled_from([0.01, 1.0, 50.0]),
    tol=st.sampled_from([1e-1, 1e-3, 1e-6]),
    held=st.floats(0.0, 0.5),
    is_sparse=st.booleans(),
)
@example(seed=0, n=94, name="rbf", C=1.0, tol=1e-6, held=0.0, is_sparse=False)  # more rounding than was seen
def test_the_solution_is_optimal_in_double_precision(seed, n, name, C, tol, held, is_sparse):
    X, y = problem(seed, n)
    rng = np.random.default_rng(seed)
    lo, hi = boxes(y, C * rng.choice([0.0, 0.3, 1.0, 3.0], n))
    out = rng.random(n) < held
    lo[out] = hi[out] = 0.0
    store = RowStore(sp.csr_matrix(X) if is_sparse else X, KERNELS[name])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single_precision, "WORTH_TWICE", 1)
        found = smo.train_anew(store, y, lo, hi, SolverOptions(tol=tol))
    g = naive.gradient(found.dual_coef, y, naive.gram(KERNELS[name], X, X))
    rounding = 1e-12 * (1.0 + np.abs(found.dual_coef).sum()) * max(1.0, store.diagonal.max())
    assert found.converged
    assert ((lo <= found.dual_coef) & (found.dual_coef <= hi)).all()
    assert abs(found.dual_coef.sum()) <= 1e-9 * (1.0 + np.abs(found.dual_coef).sum())
    assert naive.violation(found.dual_coef, g, lo, hi) <= tol + rounding
    apart = np.abs(found.g - g)
    assert (apart <= 0.5 * tol + rounding).all()  # then no example violates that was not looked at
    assert (apart[found.dual_coef != 0.0] <= rounding).all()  # and so is the objective


def test_gradients_are_computed_anew_where_rounding_matters():
    X, y = problem(0, 300)
    lo, hi = boxes(y, 10.0)
    K = naive.gram(RBF(0.4), X, X)
    for tol, is_exact in ((1e-2, False), (1e-6, True)):
        known = single_precision.start(RowStore(X, RBF(0.4)), y, lo, hi, SolverOptions(tol=tol))
        apart = np.abs(known.g - naive.gradient(known.dual_coef, y, K))
        assert (apart.max() < 1e-10) == is_exact
        assert apart.max() < single_precision.NEGLIGIBLE * tol


def test_a_large_problem_takes_no_kernel_row_and_a_start_is_solved_by_itself():
    X, y = problem(1, single_precision.WORTH_TWICE)
    found = smo.solve(X, y > 0, C=1.0, gamma=0.4)
    assert found.converged
    assert found.rows_computed == 0
    assert found.kernel_evaluations == found.values_computed > 0
    assert found.iterations > 0
    alone = smo.solve(X, y > 0, C=1.0, gamma=0.4, start=np.zeros(len(y)))
    assert alone.values_computed == 0
    assert alone.rows_computed > 0
    assert found.objective == pytest.approx(alone.objective, rel=1e-4)
    np.testing.assert_allclose(found.decision_values, alone.decision_values, atol=0.02)


def test_the_limit_counts_all_steps():
    X, y = problem(1, single_precision.WORTH_TWICE)
    with pytest.warns(RuntimeWarning, match="max_iterations"):
        found = smo.solve(X, y > 0, C=1.0, gamma=0.4, options=SolverOptions(max_iterations=150))
    assert found.status == "max_iterations"
    assert found.iterations == 150


def pays(store=None, kernel=None, n=single_precision.WORTH_TWICE, C=1.0, held_out=0, **options):
    X, y = problem(2, n)
    lo, hi = boxes(y, C)
    lo[:held_out] = hi[:held_out] = 0.0
    return single_precision.pays(store or RowStore(X, kernel or RBF(0.4)), lo, hi, SolverOptions(**options))


def test_where_single_precision_is_asked():
    assert pays()
    assert pays(tol=1e-6)
    assert pays(C=1000.0)
    assert not pays(C=1e6)  # rounding would be above any tolerance
    assert not pays(n=single_precision.WORTH_TWICE - 1)
    assert not pays(held_out=1)
    assert not pays(kernel=Sigmoid(0.1))


def test_zeros_that_are_skipped_are_worth_more_while_the_rows_fit():
    n, d = single_precision.WORTH_TWICE, single_precision.ZEROS + 20
    X = sp.random(n, d, 0.05, "csr", random_state=0)
    one_row_in_twenty = 8 * n * n / 20 / 2**20 * 3 / 2  # a third of the cache is for other rows
    assert not pays(RowStore(X, RBF(0.4)))
    assert not pays(RowStore(X.toarray(), RBF(0.4)))
    assert pays(RowStore(X, RBF(0.4), one_row_in_twenty))
    assert pays(RowStore(X.toarray() + 1.0, RBF(0.4)))


@pytest.mark.parametrize(
    "option", [{"planning": 0}, {"over_step": 1.1}, {"newton": False}, {"shrinking": False}], ids=str
)
def test_options_of_the_pair_steps_are_for_these_steps(option):
    assert not pays(**option)


def test_known_kernel_rows_are_used():
    store = RowStore(problem(2, single_precision.WORTH_TWICE)[0], RBF(0.4))
    assert pays(store)
    store.fill([0])
    assert not pays(store)
