"""Large problems begin at their solution in single precision, and end where they would end without it."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from streamsvm.batch import SolverOptions, smo
from streamsvm.batch.chunks import beginning
from streamsvm.core.kernels import make_kernel

FEWEST = 300  # examples, so that the tests are fast
PARAMETERS = {"gamma": 0.3, "degree": 2, "coef0": 0.5}


@pytest.fixture(autouse=True)
def fewer(monkeypatch):
    monkeypatch.setattr(beginning, "FEWEST", FEWEST)


def problem(n=400, density=1.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + X[:, -1] ** 2 + 0.3 * rng.normal(size=n) > 0.7
    return X * (rng.random((n, 4)) < density), y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_solution_is_optimal_in_double_precision(kernel, form):
    X, y = problem(600, density=0.5)
    rng = np.random.default_rng(1)
    w, held_out = rng.choice([0.0, 0.3, 1.0, 3.0], len(y)), np.arange(len(y)) % 9 == 0
    s, plain = (
        smo.solve(
            form(X), y, 10.0, kernel, **PARAMETERS, sample_weight=w, held_out=held_out, options=SolverOptions(chunks=c)
        )
        for c in (True, False)
    )
    assert s.single_evaluations > 0 == plain.single_evaluations
    assert s.kernel_evaluations == s.rows_computed * len(y) + s.single_evaluations
    assert s.converged
    assert not s.dual_coef[held_out | (w == 0)].any()
    K = naive.gram(make_kernel(kernel, **PARAMETERS), X, X)
    g = naive.gradient(s.dual_coef, s.y, K)
    np.testing.assert_allclose(s.g, g, atol=1e-9 * np.abs(s.dual_coef).sum())
    assert naive.violation(s.dual_coef, g, s.lo, s.hi) <= 1e-3 + 1e-9
    np.testing.assert_allclose(s.decision_values, plain.decision_values, atol=2e-2)
    assert s.objective == pytest.approx(plain.objective, rel=1e-4)


def test_decision_values_are_those_of_svc():
    X, y = problem()
    s, svc = smo.solve(X, y, 3.0, gamma=0.3), SVC(C=3.0, gamma=0.3).fit(X, y)
    assert s.single_evaluations > 0
    np.testing.assert_allclose(s.decision_function(X), svc.decision_function(X), atol=5e-3)


def test_a_small_tolerance_is_reached_in_double_precision():
    X, y = problem()
    s = smo.solve(X, y, 10.0, gamma=0.3, options=SolverOptions(tol=1e-5))
    assert s.single_evaluations > 0
    g = naive.gradient(s.dual_coef, s.y, naive.gram(make_kernel("rbf", gamma=0.3), X, X))
    assert naive.violation(s.dual_coef, g, s.lo, s.hi) <= 1.001e-5


@pytest.mark.parametrize(
    "given",
    [
        {"start": np.zeros(400)},
        {"held_out": np.arange(FEWEST - 200, 400)},  # then few are trained
        {"C": 1e5},  # then rounding in single precision would matter
        {"options": SolverOptions(chunks=False)},
    ],
    ids=str,
)
def test_other_problems_begin_at_their_start_or_at_0(given):
    X, y = problem()
    s = smo.solve(X, y, **{"C": 1.0, "gamma": 0.3} | given)
    assert s.converged
    assert s.single_evaluations == 0


@pytest.mark.parametrize("label", [True, False])
def test_one_class_is_predicted(label):
    X, _ = problem()
    s = smo.solve(X, np.full(400, label), 1.0)
    assert s.converged
    assert ((s.decision_values > 0) == label).all()


def test_the_limit_counts_the_steps_of_both():
    X, y = problem()
    steps = smo.solve(X, y, 10.0, gamma=0.3).iterations
    with pytest.warns(RuntimeWarning, match="max_iterations"):
        s = smo.solve(X, y, 10.0, gamma=0.3, options=SolverOptions(max_iterations=steps // 2))
    assert s.iterations == steps // 2
