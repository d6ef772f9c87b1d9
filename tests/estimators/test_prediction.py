"""Predictions of many rows have the bits of single ones, in every form of a batch and with every number of threads."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import streamsvm
from streamsvm import LASVM
from streamsvm.core import decision, threads
from streamsvm.core.device import evaluator
from streamsvm.core.kernel_table import KERNELS


@pytest.fixture(autouse=True)
def default_threads():
    yield
    streamsvm.set_num_threads(None)


def taught(d, n=300, **parameters):
    """A model whose noisy examples are members, and rows to predict."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n, d)).astype(np.float32)
    model = LASVM(gamma=0.5 / d, **parameters)
    model.learn_many(X, rng.random(n) < 0.5)
    return model, rng.normal(size=(150, d)).astype(np.float32)


def one_by_one(model, X):
    return np.array([model.decision_function_one(dict(enumerate(x))) for x in X.tolist()])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("d", [1, 2, 17, 60])
def test_a_table_has_the_bits_of_single_rows(d, kernel):
    model, X = taught(d, kernel=kernel)
    f = one_by_one(model, X)
    frame = pd.DataFrame(X[:, ::-1], columns=list(range(d))[::-1])
    for table in (X, X.astype(np.float64), np.asfortranarray(X), frame, sp.csr_matrix(X), list(map(_as_dict, X))):
        np.testing.assert_array_equal(model.decision_function_many(table), f)
    for n in (0, 1, 7, 8, 9, 33):
        np.testing.assert_array_equal(model.decision_function_many(X[:n]), f[:n])


def _as_dict(x):
    return dict(enumerate(x.tolist()))


def test_columns_that_no_member_has_count_in_the_distance_only():
    model, X = taught(5)
    wide = np.hstack([X, np.ones((len(X), 3), np.float32)])
    np.testing.assert_array_equal(model.decision_function_many(wide), one_by_one(model, wide))
    narrow = X[:, :3]
    np.testing.assert_array_equal(model.decision_function_many(narrow), one_by_one(model, narrow))


def test_a_table_of_mostly_zeros_has_the_same_values():
    model, X = taught(30)
    X[np.random.default_rng(0).random(X.shape) < 0.8] = 0.0
    np.testing.assert_array_equal(model.decision_function_many(X), one_by_one(model, X))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_a_row_that_is_no_example_is_named(value):
    model, X = taught(5)
    X[100, 3] = value
    with pytest.raises(ValueError, match=r"X\[100\]|row 100|example 100|100"):
        model.decision_function_many(X)


def test_predicting_a_table_counts_its_kernel_values():
    model, X = taught(5)
    before = model.kernel_evaluations
    model.predict_many(X)
    one = model.kernel_evaluations - before
    model.predict_one(dict(enumerate(X[0])))
    assert one == len(X) * (model.kernel_evaluations - before - one)


@pytest.mark.parametrize("density", [1.0, 0.1])
@pytest.mark.parametrize("scaling", [None, "standard"])
def test_the_number_of_threads_changes_no_bit(density, scaling, monkeypatch):
    """Dense and sparse rows, tables and blocks, with every share worth a thread."""
    monkeypatch.setattr(threads, "MIN_WORK", 1.0)
    monkeypatch.setattr(decision, "SHARES", 3)
    monkeypatch.setattr(evaluator, "TASK", 0.0)
    model, X = taught(20, scaling=scaling)
    X = np.tile(X, (8, 1))
    X[np.random.default_rng(0).random(X.shape) > density] = 0.0
    found, counted = [], []
    for n_threads in (1, 2, 3):
        streamsvm.set_num_threads(n_threads)
        before = model.kernel_evaluations
        found += [model.decision_function_many(form) for form in (X, sp.csr_matrix(X))]
        counted.append(model.kernel_evaluations - before)
    for f in found:
        np.testing.assert_array_equal(f, found[0])
    assert len(set(counted)) == 1


def test_threads_predict_with_bits_and_compressed_members_alike(monkeypatch):
    """These storages need scratch memory for each query, which threads must not share."""
    monkeypatch.setattr(threads, "MIN_WORK", 1.0)
    monkeypatch.setattr(evaluator, "TASK", 0.0)
    rng = np.random.default_rng(0)
    bits = sp.csr_matrix((rng.random((1500, 30)) < 0.2) * 1.0)
    wide = sp.random(1500, 30_000, density=0.001, random_state=0, format="csr")
    for X in (bits, wide):
        model = LASVM(gamma=0.1)
        model.learn_many(X, rng.random(1500) < 0.5)
        found = []
        for n_threads in (1, 2, 3):
            streamsvm.set_num_threads(n_threads)
            found.append(model.decision_function_many(X))
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
