"""Pools of examples without a label, in memory and from a stream."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import wide
from hypothesis import given
from hypothesis import strategies as st

from streamsvm import LASVM
from streamsvm.active import ArrayPool, MixedSelection, StreamPool, label_pool

RNG = np.random.default_rng
KEYS = st.integers(0, 30)


def matrix(n=12, d=3):
    return np.arange(1.0, n * d + 1).reshape(n, d)


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]


def stream_pool(keys, capacity=100, expiry=None):
    pool = StreamPool(capacity, expiry)
    for t, key in enumerate(keys):
        pool.add(key, {"a": float(key)}, t, RNG(0))
    return pool


POOLS = {"array": lambda n: ArrayPool(matrix(n)), "stream": lambda n: stream_pool(range(n))}


@pytest.fixture(params=POOLS)
def new_pool(request):
    return POOLS[request.param]


def stored(state):
    """As it comes back from a file."""
    return json.loads(json.dumps(state))


# -------------------------------------------------------------------------------------------------------------- drawing


@pytest.mark.parametrize("wanted", [0, 1, 5, 12, 13, 1000])
def test_different_members_are_drawn_and_stay(new_pool, wanted):
    pool = new_pool(12)
    drawn = pool.draw(wanted, RNG(1))
    assert len(drawn) == len(set(drawn)) == min(wanted, 12)
    assert set(drawn) <= set(pool.keys())
    assert all(type(key) is int for key in drawn + pool.keys())
    assert len(pool) == 12


def test_every_order_is_as_likely(new_pool):
    """Even if all are drawn: a selection looks at the first ones first."""
    pool, rng = new_pool(4), RNG(2)
    pool.discard(1)
    for wanted, n_orders in ((1, 3), (2, 6), (3, 6), (9, 6)):
        counts = Counter(tuple(pool.draw(wanted, rng)) for _ in range(6000))
        assert len(counts) == n_orders
        assert min(counts.values()) > 0.85 * 6000 / n_orders


def test_what_is_drawn_depends_on_the_state_and_the_generator_alone(new_pool):
    one, other = new_pool(12), new_pool(12)
    for key in (3, 7, 11):
        one.discard(key)
        other.discard(key)
    one.draw(5, RNG(8))
    assert one.draw(5, RNG(9)) == other.draw(5, RNG(9))
    assert one.draw(5, RNG(9)) != other.draw(5, RNG(10))


def test_nothing_is_drawn_from_an_empty_pool():
    assert StreamPool().draw(59, RNG(0)) == []
    assert ArrayPool(matrix(), keys=[]).draw(59, RNG(0)) == []
    assert ArrayPool(np.empty((0, 3))).keys() == []


@pytest.mark.parametrize("wanted", [-1, 2.5, None])
def test_a_strange_number_is_refused(new_pool, wanted):
    with pytest.raises(ValueError, match=r"n=.* must be a whole number, at least 0"):
        new_pool(5).draw(wanted, RNG(0))


# ----------------------------------------------------------------------------------------------------------- membership


@given(st.lists(st.integers(-3, 25)))
def test_who_leaves_is_gone(keys):
    for make in POOLS.values():
        pool, left = make(20), set(range(20))
        for key in keys:
            assert pool.discard(key) is (key in left)
            left.discard(key)
            assert len(pool) == len(left)
            assert sorted(pool.keys()) == sorted(left)
            assert [key in pool for key in range(-3, 25)] == [key in left for key in range(-3, 25)]
            assert set(pool.draw(25, RNG(0))) == left


def test_other_keys_are_not_there(new_pool):
    pool = new_pool(3)
    assert "1" not in pool
    assert None not in pool
    assert np.int64(1) in pool
    assert pool.discard(np.int64(1))
    assert pool.keys() == [0, 2]
    with pytest.raises(KeyError, match="1"):
        pool.rows([0, 1])
    with pytest.raises(KeyError, match="-1"):
        pool.rows([0, -1])


# ------------------------------------------------------------------------------------------------------------ ArrayPool


def frame_of(library):
    return lambda X: library.DataFrame(dict(zip("abc", X.T, strict=True)))


FORMS = {
    "array": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: X.astype(np.uint8),
    "columns first": np.asfortranarray,
    "csr": sp.csr_matrix,
    "csc": sp.csc_array,
    "dicts": dicts,
    "pandas": frame_of(pd),
    "pandas index": lambda X: frame_of(pd)(X).set_index(np.arange(len(X))[::-1]),
    "polars": frame_of(pl),
}


def dense(rows):
    if isinstance(rows, list):
        return np.array([list(x.values()) for x in rows])
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_in_the_order_of_the_keys(form):
    X = FORMS[form](matrix())
    pool = ArrayPool(X)
    pool.discard(4)
    for keys in ([2], [7, 0, 11], pool.keys()):
        rows = pool.rows(keys)
        np.testing.assert_array_equal(dense(rows), matrix()[keys])
        assert isinstance(rows, list if form == "dicts" else sp.csr_matrix if sp.issparse(X) else type(X))


def test_arrays_are_kept_so_that_rows_come_quickly():
    for form in ("array", "columns first", "integers"):
        rows = ArrayPool(FORMS[form](matrix())).rows([3, 1])
        assert rows.dtype == np.float64
        assert rows.flags.c_contiguous
    X = matrix().astype(np.float32)
    assert ArrayPool(X).rows([1]).dtype == np.float32
    assert np.shares_memory(ArrayPool(X)._X, X)


def test_some_rows_have_their_label_already():
    pool = ArrayPool(matrix(), keys=[5, 2, 9])
    assert pool.keys() == [5, 2, 9]
    assert 3 not in pool
    np.testing.assert_array_equal(pool.rows([9, 5]), matrix()[[9, 5]])
    with pytest.raises(KeyError, match="3"):
        pool.rows([3])


@pytest.mark.parametrize(
    ("X", "keys", "message"),
    [
        (np.zeros(5), None, r"X is \(5,\); it must be a 2-D array"),
        (np.zeros((2, 2, 2)), None, r"X is \(2, 2, 2\); it must"),
        ("rows", None, "X is str; it must"),
        (matrix(), [0, 12], "keys holds 12; keys are the numbers of the 12 rows of X, from 0"),
        (matrix(), [-1], "keys holds -1;"),
        (matrix(), [3, 4, 3], "keys holds 3 twice"),
    ],
)
def test_a_bad_argument_is_named(X, keys, message):
    with pytest.raises(ValueError, match=message):
        ArrayPool(X, keys)


@given(st.lists(st.integers(0, 11)), st.lists(st.integers(0, 11)))
def test_an_array_pool_goes_on_from_its_state(before, after):
    pool, other = ArrayPool(matrix()), ArrayPool(matrix(), keys=[3])
    for key in before:
        pool.discard(key)
    other.restore(stored(pool.state()))
    for key in after:
        assert pool.draw(4, RNG(key)) == other.draw(4, RNG(key))
        assert pool.discard(key) == other.discard(key)
        assert pool.keys() == other.keys()


# ----------------------------------------------------------------------------------------------------------- StreamPool


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS),
        st.tuples(st.just("discard"), KEYS),
        st.tuples(st.just("wait"), st.integers(0, 20)),
    )
)


@given(OPERATIONS, st.integers(1, 8), st.none() | st.integers(1, 30))
def test_a_stream_pool_is_what_came_and_did_not_leave(operations, capacity, expiry):
    pool, rng, now, came = StreamPool(capacity, expiry), RNG(0), 0, {}
    for n, (operation, number) in enumerate(operations):
        if operation == "add":
            full, known = len(pool) == capacity, number in pool
            before = set(pool.keys())
            pool.add(number, {"n": n}, now, rng)
            came[number] = came[number] if known else (now, {"n": n})
            assert number in pool
            assert len(before - set(pool.keys())) == (full and not known)
        elif operation == "discard":
            known = number in pool
            assert pool.discard(number) is known
        else:
            now += number
            old = [key for key in sorted(pool.keys()) if expiry is not None and now - came[key][0] >= expiry]
            assert sorted(pool.expire(now)) == old
            assert not set(old) & set(pool.keys())
        keys = pool.keys()
        assert len(pool) == len(keys) == len(set(keys)) <= capacity
        assert pool.rows(keys) == [came[key][1] for key in keys]
        assert sorted(pool.draw(capacity, RNG(1))) == sorted(keys)


def test_the_oldest_expire_first_and_on_time():
    pool = StreamPool(expiry=10)
    for key, now in ((7, 0), (3, 0), (5, 4)):
        pool.add(key, {}, now, RNG(0))
    assert pool.expire(9.99) == []
    assert pool.expire(10) == [7, 3]
    assert pool.expire(10) == []
    assert pool.expire(1000) == [5]
    forever = stream_pool([1])
    assert forever.expire(10**15) == []


def test_who_is_there_already_stays_as_it_is():
    pool = StreamPool(expiry=10)
    pool.add(1, {"a": 1.0}, 0, RNG(0))
    pool.add(1, {"a": 2.0}, 5, RNG(0))
    assert pool.rows([1]) == [{"a": 1.0}]
    assert pool.expire(10) == [1]
    pool.add(1, {"a": 3.0}, 11, RNG(0))  # it may come back
    assert pool.rows([1]) == [{"a": 3.0}]


def test_the_generator_is_only_used_when_somebody_must_go():
    pool, rng = StreamPool(3), RNG(4)
    for key in range(3):
        pool.add(key, {}, key, rng)
    pool.add(2, {}, 3, rng)
    assert rng.bit_generator.state == RNG(4).bit_generator.state
    pool.add(3, {}, 3, rng)
    assert rng.bit_generator.state != RNG(4).bit_generator.state


def test_a_full_pool_prefers_the_recent():
    """The age of what is there has the exponential distribution with mean `capacity`."""
    pool, rng, n = StreamPool(500), RNG(5), 10_000
    for key in range(n):
        pool.add(key, None, key, rng)
    ages = n - 1 - np.array(pool.keys())
    assert len(pool) == 500
    assert 425 < ages.mean() < 575
    assert 250 < np.median(ages) < 450  # 347 is expected


@given(OPERATIONS, OPERATIONS, st.integers(1, 8), st.sampled_from([None, 15]))
def test_a_stream_pool_goes_on_from_its_state(before, after, capacity, expiry):
    pool, rng, rows = StreamPool(capacity, expiry), RNG(0), {}

    def apply(pool, operations, rng):
        now = 0
        for operation, number in operations:
            if operation == "add":
                rows.setdefault(number, {"n": number})
                pool.add(number, rows[number], now, rng)
            elif operation == "discard":
                pool.discard(number)
            else:
                now += number
                pool.expire(now)

    apply(pool, before, rng)
    other = stream_pool([77, 78], capacity, expiry)
    other.restore(stored(pool.state()), rows.get)
    apply(pool, after, RNG(1))
    apply(other, after, RNG(1))
    assert other.state() == pool.state()
    assert other.rows(other.keys()) == pool.rows(pool.keys())
    assert other.draw(5, RNG(2)) == pool.draw(5, RNG(2))


def test_what_was_lost_is_left_out():
    pool, other = stream_pool([4, 9, 2, 6], expiry=10), StreamPool(expiry=10)
    other.restore(stored(pool.state()), lambda key: None if key in (9, 6) else {"a": -1.0})
    assert other.keys() == [4, 2]
    assert other.rows([2]) == [{"a": -1.0}]
    assert other.expire(11) == [4]
    assert other.expire(12) == [2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"capacity": 0}, "capacity=0 must be a whole number, at least 1"),
        ({"capacity": 2.5}, r"capacity=2\.5 must"),
        ({"expiry": 0}, "expiry=0 must be a positive finite number"),
        ({"expiry": -1}, "expiry=-1 must"),
    ],
)
def test_a_bad_parameter_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        StreamPool(**arguments)


def test_a_smaller_pool_takes_the_newest_of_a_larger_one():
    rng = np.random.default_rng(0)
    large, small = StreamPool(10), StreamPool(4)
    for key in range(10):
        large.add(key, float(key), key, rng)
    small.restore(large.state(), float)
    left = small.keys()
    assert sorted(left) == [6, 7, 8, 9]
    assert small.rows(left) == [float(key) for key in left]


def test_the_number_of_columns_of_a_sparse_matrix_costs_nothing():
    many, few, y = wide.matrices()
    one, other = (
        [step.key for step in label_pool(LASVM(gamma=0.5), X, y.__getitem__, selection=MixedSelection())]
        for X in (many, few)
    )
    assert one == other
