"""Products of many queries with many members: right values, and bits that do not depend on the shapes."""

import numpy as np
import pytest

from streamsvm.core.products import add_rows, products

SHAPES = [(1, 1, 1), (7, 3, 15), (8, 20, 48), (9, 20, 49), (33, 100, 700), (16, 0, 5), (3, 5, 0), (40, 784, 50)]


def problem(B, d, n, dtype):
    rng = np.random.default_rng(0)
    return rng.normal(size=(B, d)).astype(dtype), rng.normal(size=(d, n)).astype(dtype)


def multiplied(X, columns, n):
    out = np.full((len(X), n), np.nan, X.dtype)
    products(np.ascontiguousarray(X), np.ascontiguousarray(columns), out)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("B", "d", "n"), SHAPES)
def test_they_are_inner_products(B, d, n, dtype):
    X, columns = problem(B, d, n, dtype)
    expected = X.astype(np.float64) @ columns.astype(np.float64)
    np.testing.assert_allclose(multiplied(X, columns, n), expected, atol=1e-4 if dtype == np.float32 else 1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_has_the_same_bits_in_every_company(dtype):
    """Other queries, other members, and features that are 0 change nothing; so tiles and their edges agree."""
    X, columns = problem(21, 40, 130, dtype)
    whole = multiplied(X, columns, 130)
    for t in range(21):
        for s in (0, 1, 47, 48, 100, 129):
            np.testing.assert_array_equal(multiplied(X[t : t + 1], columns[:, s : s + 1], 1), whole[t, s])
    np.testing.assert_array_equal(multiplied(X[5:14], columns[:, 30:], 77), whole[5:14, 30:107])
    wider = np.insert(X, [3, 17, 40], 0.0, axis=1)
    taller = np.insert(columns, [3, 17, 40], 1.0, axis=0)
    np.testing.assert_array_equal(multiplied(wider, taller, 130), whole)


def test_members_have_more_slots_than_are_in_use():
    X, columns = problem(10, 6, 64, np.float32)
    np.testing.assert_array_equal(multiplied(X, columns, 50), multiplied(X, columns[:, :50], 50))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_query_by_itself_has_the_same_bits(dtype):
    """Also without its features that are 0."""
    X, columns = problem(9, 100, 700, dtype)
    X[:, ::3] = 0.0
    together, out = multiplied(X, columns, 700), np.empty(700, dtype)
    for query, expected in zip(X, together, strict=True):
        used = np.flatnonzero(query)
        add_rows(columns, used, query[used], out)
        np.testing.assert_array_equal(out, expected)
