"""The problems of pairs of classes: each is optimal over its two classes, in the compiled loop and outside of it."""

import itertools

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.batch.kernels.features import Features
from streamsvm.batch.multiclass import class_pairs as pairs
from streamsvm.batch.options import SolverOptions
from streamsvm.core.kernels import RBF, Linear, make_kernel

TOL = 1e-3


def problem(seed, n, n_classes, d=3, noise=0.7):
    """Classes of unequal sizes around their centres; each has an example at least."""
    rng = np.random.default_rng(seed)
    classes = np.concatenate([np.arange(n_classes), np.minimum(rng.geometric(0.4, n) - 1, n_classes - 1)])
    return rng.normal(size=(n_classes, d))[classes] + noise * rng.normal(size=(len(classes), d)), classes


def problem_of_equal_classes(n_classes, n_each):
    rng, classes = np.random.default_rng(0), np.arange(n_classes * n_each) % n_classes
    return rng.normal(size=(n_classes, 3))[classes] + 0.5 * rng.normal(size=(len(classes), 3)), classes


def solved(X, classes, box, kernel, **options):
    found = pairs.optima(Features(X, kernel), classes, box, SolverOptions(**({"tol": TOL} | options)))
    return {(pair.first, pair.second): pair for pair in found}


def check(found, X, classes, box, kernel):
    """Assert what must hold of every pair's solution, computed anew in float64."""
    dense = np.float32(X.toarray() if sp.issparse(X) else X).astype(float)
    assert list(found) == list(itertools.combinations(range(classes.max() + 1), 2))
    for (first, second), pair in found.items():
        rows = np.concatenate([np.flatnonzero(classes == first), np.flatnonzero(classes == second)])
        assert np.array_equal(rows[pair.places], pair.members)
        y = np.where(classes[rows] == first, 1.0, -1.0)
        lo, hi = np.minimum(0.0, y * box[rows]), np.maximum(0.0, y * box[rows])
        alpha, K = np.zeros(len(rows)), naive.gram(kernel, dense[rows], dense[rows])
        alpha[pair.places] = pair.alpha
        g, size = naive.gradient(alpha, y, K), np.abs(alpha).sum()
        rounding = 1e-5 * (1.0 + size) * max(1.0, np.abs(K).max())
        assert pair.converged
        assert (lo <= alpha).all()
        assert (alpha <= hi).all()
        assert abs(alpha.sum()) <= 1e-9 * (1.0 + size)
        assert naive.violation(alpha, g, lo, hi) <= TOL + 2.0 * rounding
        np.testing.assert_allclose(pair.g, g[pair.places], atol=rounding)
        assert abs(pair.bias - naive.midpoint(alpha, g, lo, hi)) <= TOL + 2.0 * rounding
        assert len(pair.positive) == len(pair.decision_values) <= len(rows)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 120),
    name=st.sampled_from(naive.SEMIDEFINITE),
    Cs=st.lists(st.floats(0.01, 100.0), min_size=2, max_size=4, unique=True).map(sorted),
)
@settings(max_examples=25, deadline=None)
def test_solutions_along_a_rising_bound_are_optimal_for_each(seed, n, name, Cs):
    X, classes = problem(seed, n, 3)
    kernel = make_kernel(name, gamma=0.3, degree=2, coef0=1.0)
    box = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], len(X))
    found = list(pairs.optima_along(Features(X, kernel), classes, box, Cs, SolverOptions(tol=TOL)))
    for k, C in enumerate(Cs):
        of_C = {(of_pair[k].first, of_pair[k].second): of_pair[k] for of_pair in found}
        check(of_C, X, classes, C * box, kernel)


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 120),
    n_classes=st.integers(2, 5),
    C=st.sampled_from([0.01, 1.0, 30.0]),
    name=st.sampled_from(naive.SEMIDEFINITE),
    weighted=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_solutions_are_optimal(seed, n, n_classes, C, name, weighted):
    X, classes = problem(seed, n, n_classes)
    weights = np.random.default_rng(seed).integers(1, 4, len(X)) if weighted else np.ones(len(X))
    kernel = make_kernel(name, gamma=0.5, degree=2, coef0=1.0)
    check(solved(X, classes, C * weights, kernel), X, classes, C * weights, kernel)


@pytest.mark.parametrize(("cache_mb", "n_classes"), [(1e-3, 6), (0.05, 6), (256.0, 6), (0.013, 30)])
def test_neither_the_memory_nor_the_groups_matter(cache_mb, n_classes):
    """With little memory some or all pairs are not small, or the others of a class come in two groups."""
    X, classes = problem(1, 120, 6) if n_classes == 6 else problem_of_equal_classes(n_classes, 10)
    check(
        solved(X, classes, np.full(len(X), 3.0), RBF(0.5), cache_mb=cache_mb),
        X,
        classes,
        np.full(len(X), 3.0),
        RBF(0.5),
    )


def test_a_pair_whose_steps_do_not_come_to_an_end_is_solved_otherwise(monkeypatch):
    X, classes = problem(2, 150, 3)
    box = np.full(len(X), 10.0)
    monkeypatch.setattr(pairs, "FEW_STEPS", 0)
    found = solved(X, classes, box, RBF(0.5))
    check(found, X, classes, box, RBF(0.5))
    monkeypatch.undo()
    for pair, quick in zip(found.values(), solved(X, classes, box, RBF(0.5)).values(), strict=True):
        assert abs(pair.bias - quick.bias) < 0.01


def test_mostly_empty_examples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 300)) * (rng.random((200, 300)) < 0.02)
    classes = np.arange(200) % 3
    X[np.arange(200), classes] += 1.0
    check(solved(sp.csr_matrix(X), classes, np.full(200, 2.0), Linear()), X, classes, np.full(200, 2.0), Linear())


def test_decision_values_are_those_of_a_model_that_has_not_seen_the_examples():
    X, classes = problem(3, 400, 2, noise=0.1)
    pair = solved(X, classes, np.full(len(X), 10.0), RBF(0.3))[0, 1]
    assert len(pair.positive) == sum(n - -(-n // 4) for n in np.bincount(classes))
    right = (pair.decision_values > 0.0) == pair.positive
    assert right.mean() > 0.9
