"""Blocks of queries: compressed rows, and decision values by rows or by a matrix product."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from queries import from_dense, from_sparse, queries
from states import state_of

from streamsvm import LASVM
from streamsvm.core import blocks
from streamsvm.core.blocks import is_binary_block, prefers_product
from streamsvm.core.decision import Decision
from streamsvm.core.expansion import EVALUATIONS
from streamsvm.core.kernels import NAMES, RBF
from streamsvm.core.storage import empty, live_slots

FLOATS = st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e-60, 0.1]) | st.floats(-1e3, 1e3)
MATRICES = hnp.arrays(np.float64, st.tuples(st.integers(0, 5), st.integers(0, 7)), elements=FLOATS)


def learned(X, y, **parameters):
    """A model that has learned the rows of X, its kernel and its expansion."""
    model = LASVM(**parameters)
    model.learn_many(X, y)
    return model, naive.kernel_of(model), state_of(model).expansion


def decide(s, kernel, q, b):
    return Decision(s, kernel, b).of_queries(q)


def problem(n, d, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, X[:, 0] + X[:, 1] ** 2 > 0.7


def assert_compressed(q, X, columns):
    assert len(q.indptr) == len(X) + 1
    assert q.indptr[-1] == len(q.indices) == len(q.values)
    for t, x in enumerate(X):
        known, sq = naive.compress(x, columns)
        begin, end = q.indptr[t], q.indptr[t + 1]
        assert dict(zip(q.indices[begin:end].tolist(), q.values[begin:end], strict=True)) == known
        assert list(q.indices[begin:end]) == sorted(known)
        assert q.sq[t] == pytest.approx(sq, rel=1e-6)


@pytest.mark.long
@given(MATRICES, st.randoms(use_true_random=False))
def test_dense_and_sparse_rows_are_compressed_alike(X, random):
    """Without zeros, columns rising, unknown features in the norm only."""
    columns = np.arange(X.shape[1], dtype=np.int64)
    random.shuffle(columns)
    columns[columns % 3 == 2] = -1
    assert_compressed(from_dense(X, columns), X, columns)
    assert_compressed(from_sparse(X, columns), X, columns)


ORDERS = {
    "rising": lambda columns: columns,
    "falling": lambda columns: columns[::-1],
    "by strings": lambda columns: np.array(sorted(columns.tolist(), key=str)),
    "random": lambda columns: np.random.default_rng(0).permutation(columns),
}


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 300, 5000, 70_000])
@pytest.mark.parametrize("order", ORDERS)
def test_features_in_any_order_are_put_into_order(n, order):
    """From the 65th on not by insertion, whose moves grow as n^2."""
    columns = ORDERS[order](np.arange(n) * 3)
    values = np.sin(columns + 1.0)
    for q in (
        from_dense(values[None], columns),
        from_dense(np.stack([values, values]), columns).part(1, 2),
    ):
        np.testing.assert_array_equal(q.indices, np.sort(columns))
        np.testing.assert_array_equal(q.values, np.sin(np.sort(columns) + 1.0).astype(np.float32))


class Counted(np.ndarray):
    """An array that counts what is written to it."""

    writes = 0

    def __setitem__(self, place, value):
        Counted.writes += 1
        super().__setitem__(place, value)


@pytest.mark.parametrize("order", ORDERS)
def test_sorting_costs_the_same_in_any_order(order, monkeypatch):
    """So many moves for a feature and a byte of its number: two bytes here."""
    n = 500
    indices = ORDERS[order](np.arange(n)).astype(np.int32).view(Counted)
    values = indices.astype(np.float32).view(Counted)
    monkeypatch.setattr(Counted, "writes", 0)
    blocks.sort_by_bytes.py_func(indices, values)
    assert list(indices) == list(values) == list(range(n))
    assert Counted.writes == 2 * 2 * n


def test_a_part_of_a_larger_sparse_matrix_can_be_compressed():
    S = sp.random(10, 6, density=0.5, random_state=0, format="csr")
    assert_compressed(from_sparse(S[4:7], np.arange(6)), S[4:7].toarray(), np.arange(6))


def test_the_rest_of_a_block_is_a_block():
    X = np.random.default_rng(0).normal(size=(9, 4)) * (np.random.default_rng(1).random((9, 4)) < 0.5)
    q = from_dense(X, np.arange(4))
    for t in range(10):
        assert_compressed(q.part(t, len(X)), X[t:], np.arange(4))


def test_a_block_knows_its_width_and_which_queries_come_before_a_wider_one():
    q = from_dense(np.array([[0.0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 3, 0]]), np.arange(4))
    assert q.width == 4
    assert [q.n_within(width) for width in range(5)] == [1, 3, 3, 3, 5]
    assert q.part(0, 1).width == 0
    assert q.part(4, 5).n_within(2) == 0


def test_a_binary_block_has_only_0_and_1():
    assert is_binary_block(from_dense(np.eye(3), np.arange(3)))
    assert is_binary_block(from_dense(np.zeros((2, 3)), np.arange(3)))
    assert not is_binary_block(from_dense(np.array([[1.0, 0.0, -1.0]]), np.arange(3)))


@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("d", [3, 40])
def test_decision_values_are_the_sum_over_the_members(kernel, d):
    """A block takes the matrix product, a few queries rows."""
    X, y = problem(120, d)
    model, kernel, s = learned(X, y, kernel=kernel, gamma=0.02, degree=2, coef0=1.0)
    live = live_slots(s)
    K = naive.gram(kernel, X, X[s.ids[live]])
    expected = K @ s.alpha[live] + model.bias
    q = queries(model, X)
    assert prefers_product(s, q)
    few = queries(model, X[:7])
    assert not prefers_product(s, few)
    tolerance = 1e-5 * np.abs(s.alpha).sum() * max(1.0, np.abs(K).max())
    np.testing.assert_allclose(decide(s, kernel, q, model.bias), expected, atol=tolerance)
    np.testing.assert_array_equal(decide(s, kernel, few, model.bias), decide(s, kernel, q, model.bias)[:7])


@pytest.mark.parametrize("binary", [True, False])
def test_products_are_for_dense_real_blocks(binary):
    X, y = problem(60, 64)
    model, _, s = learned(X > 0 if binary else X, y)
    thinned = np.where(np.arange(64) % 5 < 1, X, 0.0)
    assert prefers_product(s, queries(model, X)) == (not binary)
    assert not prefers_product(s, queries(model, thinned))
    assert not prefers_product(s, from_dense(np.zeros((20, 64)), np.arange(64)))


@pytest.mark.parametrize("d", [3, 40])
def test_predicting_counts_kernel_values(d):
    X, y = problem(100, d)
    model, kernel, s = learned(X, y)
    before = s.counts[EVALUATIONS]
    decide(s, kernel, queries(model, X[:50]), 0.0)
    assert s.counts[EVALUATIONS] - before == 50 * s.counts[0]


def test_a_model_without_members_decides_by_its_bias():
    for n in (1, 20):
        q = from_dense(np.ones((n, 50)), np.arange(50))
        np.testing.assert_array_equal(decide(empty(0, n_features=64), RBF(1.0), q, 0.25), [0.25] * n)
