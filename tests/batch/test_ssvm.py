"""The smooth SVM: its formulas, every solver, the model as users meet it."""

import copy
import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
import wide
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from streamsvm.batch import SmoothSVM
from streamsvm.batch.ssvm.model import SOLVERS, kernel_matrix
from streamsvm.batch.ssvm.newton import Problem, direction, gradient, minimise, objective
from streamsvm.batch.ssvm.removal import Removal
from streamsvm.batch.ssvm.systems import NONE, Cholesky, InverseOfH, InverseOnS, Recomputed, Rows, factor_of
from streamsvm.core.kernel_table import KERNELS
from streamsvm.core.kernels import make_kernel

SYSTEMS = (Recomputed, Cholesky, InverseOfH, InverseOnS)


def noisy(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, -1] ** 2 + 0.3 * rng.normal(size=n) > 0.7


def problem(n=40, d=3, seed=0, C=7.0):
    X, y = noisy(n, d, seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], n)
    return Problem(X, np.where(y, 1.0, -1.0), C * weights)


def solved(of, system=Cholesky, out=NONE, held=NONE, tol=1e-12):
    u, v = np.zeros(of.D.shape[1]), of.e.copy()
    return minimise(of, of.part(out, held), system(Rows(of.D), held), u, v, tol)


# ------------------------------------------------------------------------------------------------------------ formulas


def test_the_objective_is_that_of_the_problem():
    X, y = noisy(30)
    signs, c = np.where(y, 1.0, -1.0), np.linspace(0.0, 5.0, 30)
    of, u = Problem(X, signs, c), np.array([0.3, -1.0, 0.5, 2.0])
    expected = naive.smooth_objective(X, signs, c, u[1:], u[0])
    assert objective(u, of.e - of.D @ u, of.trained) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("C", [0.01, 7.0, 1e3])
def test_gradient_and_hessian_by_finite_differences(C):
    of, rng = problem(C=C), np.random.default_rng(1)
    held = np.array([2])
    u, h = rng.normal(size=4), 1e-6
    u[held] = 0.0

    def f(u):
        return objective(u, of.e - of.D @ u, of.trained)

    def g(u):
        v = of.e - of.D @ u
        return gradient(of.D, u, v, (v > 0.0) & of.trained, held)

    free = np.array([0, 1, 3])
    steps = h * np.eye(4)[free]
    by_differences = [(f(u + s) - f(u - s)) / (2 * h) for s in steps]
    np.testing.assert_allclose(g(u)[free], by_differences, rtol=1e-6, atol=1e-6 * C)
    assert (g(u)[held] == 0.0).all()
    H = np.array([(g(u + s) - g(u - s)) / (2 * h) for s in steps])[:, free]
    support = (of.e - of.D @ u > 0.0) & of.trained
    for system in SYSTEMS:
        one = system(Rows(of.D), held)
        one.move(support)
        inverse = one.solve(np.eye(4)[:, free])[free]
        np.testing.assert_allclose(inverse @ H, np.eye(3), atol=1e-6)


def test_the_gradient_without_the_factor_c_is_another():
    """As the source prints it."""
    X, y = noisy(40)
    of, u = Problem(X, np.where(y, 1.0, -1.0), np.full(40, 7.0)), np.ones(4)
    v = of.e - of.D @ u
    right = gradient(of.D, u, v, v > 0.0, NONE)
    printed = u + (right - u) / 7.0
    assert np.linalg.norm(right - printed) > 10.0


def test_the_factor_where_the_identity_drowns():
    A = 1e9 * np.random.default_rng(0).normal(size=(3, 6))
    R = factor_of(A)
    assert np.isfinite(R).all()
    np.testing.assert_allclose(R.T @ R, A.T @ A, rtol=1e-9, atol=1e9)


# ------------------------------------------------------------------------------------------------------------- systems


@pytest.mark.parametrize("shape", [(40, 3), (25, 60)])
@pytest.mark.parametrize("system", SYSTEMS)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_systems_follow_any_changes(system, shape, seed):
    """H^-1 r after rows came and went, before and after columns are held."""
    of, rng = problem(*shape, seed=seed % 100), np.random.default_rng(seed)
    n, p = of.D.shape
    support, one = rng.random(n) < 0.6, system(Rows(of.D))
    for turn in range(6):
        if turn == 3:
            held = rng.choice(p, 2, replace=False)
            before, one = one, one.holding(held)
            np.testing.assert_array_equal(before.support, support)
        flipped = rng.choice(n, rng.integers(0, 4), replace=False)
        support = support.copy()
        support[flipped] ^= True
        one.move(support)
        kept = np.ones(p, bool)
        kept[one.held] = False
        A, r = of.D[support][:, kept], np.where(kept, rng.normal(size=p), 0.0)
        expected = np.zeros(p)
        expected[kept] = np.linalg.solve(np.eye(kept.sum()) + A.T @ A, r[kept])
        digits = 1e-5 if system is InverseOnS else 1e-6  # Updates lose digits: 1.4e-7 with seed 201.
        np.testing.assert_allclose(one.solve(r), expected, rtol=0, atol=digits)


def test_updates_are_made_where_they_are_cheap():
    of = problem(200, 10)
    for system in (InverseOfH, InverseOnS):
        one, support = system(Rows(of.D)), of.trained.copy()
        one.move(support)
        one.move(support)
        assert (one.refreshed, one.is_fresh) == (1, True)
        support = support.copy()
        support[np.flatnonzero(support)[:3]] = False
        one.move(support)
        assert (one.refreshed, one.is_fresh) == (1, False)
        one.move(np.zeros(200, bool))
        assert (one.refreshed, one.is_fresh) == (2, True)


@pytest.mark.parametrize("system", [InverseOfH, InverseOnS])
def test_drift_is_seen_and_mended(system):
    """An inverse that is wrong gives right directions all the same: refined, or made anew."""
    of = problem(60, 4)
    support = of.trained & (np.arange(60) % 3 > 0)
    g = np.random.default_rng(0).normal(size=5)
    A = of.D[support]
    expected = -np.linalg.solve(np.eye(5) + A.T @ A, g)
    name = "inverse" if system is InverseOfH else "B"
    slight = 1e-6 if system is InverseOfH else 1e-12
    for error, refreshed in ((slight, 1), (0.5, 2)):
        one = system(Rows(of.D))
        one.move(support)
        one.is_fresh = False
        kept = getattr(one, name)
        noise = np.random.default_rng(1).normal(size=kept.shape)
        setattr(one, name, kept + error * np.abs(kept).max() * (noise + noise.T))
        z, Dz = direction(one, of.D, support, g, NONE)
        np.testing.assert_allclose(z, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(Dz, of.D @ z)
        assert one.refreshed == refreshed


def test_many_updates_at_a_large_cost_end_where_a_fresh_factor_does():
    """c = 1e4 and more support vectors than features, where the inverse over them loses its digits."""
    X, y = noisy(150, 4, seed=3)
    of = Problem(X, np.where(y, 1.0, -1.0), np.full(150, 1e4))
    full, system = solved(of), InverseOnS(Rows(of.D))
    system.move(full.support)
    for i in range(0, 150, 7):
        out = np.array([i])
        part = of.part(out)
        expected = solved(of, out=out)
        got = minimise(of, part, system.holding(NONE), full.u, full.v, 1e-12)
        np.testing.assert_allclose(got.v, expected.v, rtol=1e-6, atol=1e-6)


# --------------------------------------------------------------------------------------------------------------- minima


@pytest.mark.long
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
def test_every_solver_ends_at_the_minimum(kernel, C):
    X, y = noisy()
    gamma, coef0 = 0.5, 1.0 if kernel == "poly" else 0.0
    F = X if kernel == "linear" else kernel_matrix(make_kernel(kernel, gamma, 2, coef0), X, X)
    w, b = naive.smooth_svm(F, np.where(y, 1.0, -1.0), np.full(len(y), C))
    for solver in SOLVERS:
        model = SmoothSVM(C, kernel, gamma=gamma, degree=2, coef0=coef0, solver=solver).fit(X, y)
        np.testing.assert_allclose(model.coef_, w, rtol=1e-6, atol=1e-6)
        assert model.intercept_ == pytest.approx(b, rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(model.decision_function(X), F @ w + b, atol=1e-6)
        inside = np.where(y, 1.0, -1.0) * (F @ w + b) < 1.0
        np.testing.assert_array_equal(model.support_, np.flatnonzero(inside))


def test_it_is_the_machine_of_liblinear():
    """Which regularises its bias too, with `intercept_scaling=1`; its C is half of ours."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs = LinearSVC(C=0.5, loss="squared_hinge", dual=True, tol=1e-10, max_iter=1_000_000).fit(X, y)
    ours = SmoothSVM(C=1.0).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda X, y: (np.ones_like(X), y),
        lambda X, y: (np.zeros_like(X), y),
        lambda X, y: (np.vstack([X, X, X]), np.concatenate([y, ~y, y])),
        lambda X, y: (np.tile(X, 40), y),
        lambda X, y: (X[:2], np.array([True, False])),
        lambda X, y: (1e4 * X, y),
        lambda X, y: (1e-6 * X, y),
    ],
    ids=["constant", "zero", "duplicates", "wide", "two examples", "large", "small"],
)
@pytest.mark.parametrize("C", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_degenerate_data(make, C, kernel):
    X, y = make(*noisy(50))
    values = []
    for solver in SOLVERS:
        model = SmoothSVM(C, kernel, gamma=0.5, solver=solver, tol=1e-9).fit(X, y)
        assert model.status_ == "converged"
        values.append(model.decision_function(X))
    for f in values:
        np.testing.assert_allclose(f, values[0], rtol=0, atol=1e-4 * (1.0 + np.abs(values[0]).max()))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(4, 30), st.integers(1, 40), st.floats(-3, 3), st.sampled_from(sorted(SOLVERS))
)
def test_minimum_and_its_properties(seed, n, d, power, solver):
    X, y = noisy(n, d, seed)
    if y.all() or not y.any():
        y[0] = not y[0]
    C = 10.0**power
    weights = np.random.default_rng(seed).choice([0.0, 1.0, 2.0], n)
    model = SmoothSVM(C, solver=solver).fit(X, y, weights)
    signs = np.where(y, 1.0, -1.0)
    f = model.decision_function(X)
    beta = C * weights * signs * np.maximum(0.0, 1.0 - signs * f)  # the minimum is an expansion in the support vectors
    scale = 1.0 + C * weights @ np.linalg.norm(np.column_stack([np.ones(n), X]), axis=1)
    assert abs(model.intercept_ - beta.sum()) <= 1e-11 * scale
    assert np.linalg.norm(model.coef_ - beta @ X) <= 1e-11 * scale
    other = SmoothSVM(C, solver=solver).fit(-X[::-1], ~y[::-1], weights[::-1])  # a mirror image, in another order
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-6 * (1 + np.abs(model.coef_).max()))
    assert other.intercept_ == pytest.approx(-model.intercept_, abs=1e-6 * (1 + abs(model.intercept_)))


def test_examples_without_weight_change_nothing():
    X, y = noisy(60)
    weights = (np.arange(60) % 2).astype(float)
    X[::2] *= 1e6
    for C in (1e-6, 1.0):
        one, rest = SmoothSVM(C).fit(X, y, weights), SmoothSVM(C).fit(X[1::2], y[1::2])
        np.testing.assert_allclose(one.coef_, rest.coef_, rtol=1e-9)
        np.testing.assert_allclose(one.decision_function(X), rest.decision_function(X), rtol=1e-9)


def test_an_example_of_weight_two_is_two_examples():
    X, y = noisy(30)
    weights = np.where(np.arange(30) % 3 == 0, 2.0, 1.0)
    one = SmoothSVM(C=3.0).fit(X, y, weights)
    twice = SmoothSVM(C=3.0).fit(np.vstack([X, X[::3]]), np.concatenate([y, y[::3]]))
    np.testing.assert_allclose(one.coef_, twice.coef_, atol=1e-9)


# -------------------------------------------------------------------------------------------------------------- removal


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans(), st.sampled_from([0.1, 10.0, 1e3]))
def test_removal_starts_at_the_minimum_of_a_part(seed, size, holds, C):
    of, rng = problem(50, 12, seed % 1000, C), np.random.default_rng(seed)
    full = solved(of)
    out = rng.choice(50, size, replace=False)
    held = rng.choice(np.arange(1, 13), size // 3, replace=False) if holds else NONE
    u, v, aimed, aims = Removal(of, full, Cholesky(Rows(of.D)), holds=holds).start(of.part(out, held))
    np.testing.assert_allclose(v, of.e - of.D @ u, atol=1e-9 * (1 + np.abs(v).max()))
    assert (u[held] == 0.0).all()
    expected, system = solved(of, out=out, held=held), Cholesky(Rows(of.D), held)
    finished = minimise(of, of.part(out, held), system, u, v, 1e-10, aimed)
    assert finished.converged
    np.testing.assert_allclose(finished.u, expected.u, rtol=1e-6, atol=1e-6 * np.abs(expected.u).max())
    assert aims > 0 or size + len(held) > 6  # where a factor of one's own is cheaper


@pytest.mark.parametrize("holds", [False, True])
def test_removal_leaves_nothing_to_newton(holds):
    """Also where examples enter the support set, and where there are more features than support vectors."""
    X, y = noisy(80, 3 if holds else 15, seed=1)
    F = kernel_matrix(make_kernel("rbf", 0.5), X, X) if holds else X
    of = Problem(F, np.where(y, 1.0, -1.0), np.full(80, 5.0))
    full, entered, steps = solved(of), 0, []
    removal = Removal(of, full, Cholesky(Rows(of.D)), holds=holds)
    for i in np.flatnonzero(full.support):
        out = np.array([i])
        held = out + 1 if holds else NONE
        part = of.part(out, held)
        u, v, aimed, _ = removal.start(part)
        end = minimise(of, part, Cholesky(Rows(of.D), held), u, v, 1e-12, aimed)
        steps.append(end.steps)
        entered += bool((end.support & ~full.support).any())
    assert steps.count(0) > 0.9 * len(steps)  # in the others many examples change sides
    assert entered > 5


def test_removal_keeps_its_digits_where_features_are_many():
    X, y = noisy(40, 3000)
    of = Problem(X, np.where(y, 1.0, -1.0), np.full(40, 100.0))
    full = solved(of)
    removal = Removal(of, full, Cholesky(Rows(of.D)), holds=False)
    for i in np.flatnonzero(full.support)[:10]:
        out = np.array([i])
        u, *_ = removal.start(of.part(out))
        expected = solved(of, out=out)
        np.testing.assert_allclose(u, expected.u, rtol=0, atol=1e-9 * np.abs(expected.u).max())


def test_one_left_out_without_a_change_is_the_closed_form():
    of = problem(60, 4)
    full = solved(of)
    A, removal = of.D[full.support], Removal(of, full, Cholesky(Rows(of.D)), holds=False)
    inverse, seen = np.linalg.inv(np.eye(5) + A.T @ A), 0
    for j in np.flatnonzero(full.support):
        u, _, _, aims = removal.start(of.part(np.array([j])))
        if aims == 1:
            d = of.D[j]
            closed = full.u - full.v[j] / (1.0 - d @ inverse @ d) * (inverse @ d)
            np.testing.assert_allclose(u, closed, atol=1e-10)
            seen += 1
    assert seen > 10


# ----------------------------------------------------------------------------------------------------------- the model


def test_a_reduced_kernel_is_a_linear_model_of_kernel_values():
    X, y = noisy()
    model = SmoothSVM(C=5.0, kernel="rbf", gamma=0.5, reduced=0.25, seed=3).fit(X, y)
    assert model.basis_.shape == (20, 3)
    F = kernel_matrix(make_kernel("rbf", 0.5), X, model.basis_)
    linear = SmoothSVM(C=5.0).fit(F, y)
    np.testing.assert_allclose(model.coef_, linear.coef_, atol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(F), atol=1e-9)
    assert SmoothSVM(kernel="rbf", reduced=7).fit(X, y).basis_.shape == (7, 3)
    everybody = SmoothSVM(C=5.0, kernel="rbf", gamma=0.5, reduced=1.0).fit(X, y)
    full = SmoothSVM(C=5.0, kernel="rbf", gamma=0.5).fit(X, y)
    np.testing.assert_array_equal(everybody.coef_, full.coef_)


def test_sparse_and_dense_are_one():
    X, y = noisy(60, 6)
    X[np.abs(X) < 0.8] = 0.0
    for kernel in ("linear", "rbf", "poly"):
        dense = SmoothSVM(kernel=kernel, gamma=0.3, degree=2).fit(X, y)
        sparse = SmoothSVM(kernel=kernel, gamma=0.3, degree=2).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(sparse.decision_function(sp.csc_matrix(X)), dense.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("labels", [(False, True), (-1, 1), (0, 1), ("ham", "spam")])
def test_classes_are_the_users(labels):
    X, y = noisy()
    model = SmoothSVM(C=5.0).fit(X, np.array(labels)[y.astype(int)])
    assert set(model.predict(X).tolist()) == set(labels)
    np.testing.assert_array_equal(model.predict(X) == labels[1], model.decision_function(X) > 0)
    assert model.score(X, np.array(labels)[y.astype(int)]) == np.mean((model.decision_function(X) > 0) == y)


def test_scikit_learn_takes_it():
    X, y = noisy()
    model = SmoothSVM(C=2.0, kernel="rbf", gamma=0.5)
    twin = clone(model).set_params(C=3.0)
    assert (model.C, twin.C, twin.gamma) == (2.0, 3.0, 0.5)
    assert repr(twin).startswith("SmoothSVM(C=3.0, kernel='rbf'")
    assert np.mean(cross_val_score(model, X, y, cv=3)) > 0.7
    assert copy.copy(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C=0 must be a positive finite number"),
        ({"C": float("nan")}, "C=nan must be"),
        ({"tol": -1.0}, "tol=-1.0 must be"),
        ({"kernel": "laplace"}, "kernel='laplace' is unknown; use one of"),
        ({"kernel": "rbf", "gamma": 0.0}, "gamma=0.0 must be a positive"),
        ({"solver": "lu"}, "solver='lu' is unknown; use one of 'auto'"),
        ({"reduced": 0.5}, "reduced=0.5 needs a kernel"),
        ({"kernel": "rbf", "reduced": 1.5}, "reduced=1.5 must be a share"),
        ({"kernel": "rbf", "reduced": 0}, "reduced=0 must be a whole number, at least 1"),
        ({"seed": -1}, "seed=-1 must be"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_at_once(parameters, message):
    with pytest.raises(ValueError, match=message):
        SmoothSVM(**parameters)
    with pytest.raises(ValueError, match=message):
        SmoothSVM().set_params(**parameters)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[1.0], [2.0]], [True, True], ValueError, r"y holds \[True\]; there must be examples of two classes"),
        ([[1.0], [2.0]], [True], ValueError, "y has shape"),
        ([[1.0], [2.0], [3.0]], [1, 2, 3], ValueError, "labels must be"),
        ([1.0, 2.0], [True, False], ValueError, r"X has shape \(2,\)"),
        (np.empty((0, 2)), [], ValueError, r"X has shape \(0, 2\)"),
        ([["a"], ["b"]], [True, False], TypeError, "features must be numbers"),
        ([[np.nan], [1.0]], [True, False], ValueError, r"X\[0, 0\] is nan"),
        ([[1e200], [1.0]], [True, False], ValueError, "scale the features"),
    ],
    ids=str,
)
def test_wrong_data_is_refused(X, y, error, message):
    with pytest.raises(error, match=message):
        SmoothSVM().fit(X, y)


def test_other_mistakes():
    X, y = noisy()
    with pytest.raises(ValueError, match="reduced=500 exceeds the 80 examples"):
        SmoothSVM(kernel="rbf", reduced=500).fit(X, y)
    with pytest.raises(ValueError, match="kernel values overflow"):
        SmoothSVM(kernel="poly", degree=9).fit(1e60 * X, y)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        SmoothSVM().fit(X, y, [1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"call fit\(\) first"):
        SmoothSVM().predict(X)
    with pytest.raises(ValueError, match="X has 2 features; the model was fitted on 3"):
        SmoothSVM().fit(X, y).predict(X[:, :2])
    with pytest.raises(ValueError, match="unknown parameters D"):
        SmoothSVM().set_params(D=1)


def test_giving_up_is_said():
    X, y = noisy()
    with pytest.warns(RuntimeWarning, match=r"stopped \(max_iterations\) before tol=1e-300"):
        model = SmoothSVM(C=1e3, tol=1e-300).fit(X, y)
    assert model.status_ == "max_iterations"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.coef_, SmoothSVM(C=1e3).fit(X, y).coef_, rtol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_number_of_columns_of_a_sparse_matrix_costs_nothing(kernel):
    many, few, y = wide.matrices()
    one, other = (SmoothSVM(kernel=kernel, gamma=0.5).fit(X, y) for X in (many, few))
    np.testing.assert_allclose(one.decision_function(many), other.decision_function(few), atol=1e-9)
