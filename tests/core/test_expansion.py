"""The kernel expansion: slots, holes, storage of features, and cached rows that never go stale."""

import naive
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit
from queries import from_dense

from streamsvm.core.expansion import (
    EVALUATIONS,
    G_DOWN,
    G_UP,
    HOLES,
    MIN_CACHED_ROWS,
    ROWS,
    SLOT_DOWN,
    SLOT_UP,
    SLOTS,
    WIDTH,
    append,
    bury,
    is_binary,
    too_many_holes,
    wants_rows,
)
from streamsvm.core.kernels import RBF, Linear, Polynomial
from streamsvm.core.rows import gather, kernel_row, member_row
from streamsvm.core.saving.dumping import dump, restore
from streamsvm.core.storage import (
    empty,
    find_extremes,
    keep,
    live_slots,
    n_members,
    reserve,
    without_rows,
)
from streamsvm.core.storage.cached import more_rows
from streamsvm.core.storage.features import compress
from streamsvm.core.storage.members import PER_SLOT

KERNEL = RBF(0.05)
D = 6


@njit
def append_query(s, kernel, q, t, lo, hi, id, g):
    begin, end = q.indptr[t], q.indptr[t + 1]
    return append(
        s, kernel, q.indices[begin:end], q.values[begin:end], q.sq[t], 1.0 if hi > 0.0 else -1.0, lo, hi, id, id, g
    )


@njit
def query_row(s, kernel, q, t, begin, end, out):
    first, last = q.indptr[t], q.indptr[t + 1]
    kernel_row(s, kernel, q.indices[first:last], q.values[first:last], q.sq[t], begin, end, out)


@njit
def row_of_member(s, kernel, i, pinned):
    return member_row(s, kernel, i, pinned)


@njit
def bury_slot(s, i):
    bury(s, i)


@njit
def fresh_row(s, kernel, i, out):
    """The kernel row of slot i from the stored features, without the cache."""
    nnz = gather(s, i)
    kernel_row(s, kernel, s.member_indices[:nnz], s.member_values[:nnz], s.sq[i], 0, out.shape[0], out)
    out[i] = np.float32(s.self_k[i])
    return out


def queries(X):
    return from_dense(np.atleast_2d(X).astype(float), np.arange(np.shape(X)[-1]))


def add(s, X, kernel=KERNEL, first_id=0):
    """Append the rows of X, with boxes and gradients that tell their ids."""
    q = queries(X)
    s = reserve(s, len(q.sq), np.shape(X)[-1], is_binary(s) and bool(np.isin(X, (0, 1)).all()), len(q.indices))
    for t, number in enumerate(range(first_id, first_id + len(q.sq))):
        lo, hi = (0.0, 1.0 + number) if number % 2 else (-1.0 - number, 0.0)
        append_query(s, kernel, q, t, lo, hi, number, np.sin(number))
    return s


def filled(X, cache_bytes=1 << 20, kernel=KERNEL):
    return add(empty(cache_bytes), X, kernel)


def features(s, d):
    return (s.bits if is_binary(s) else s.columns)[:d, : s.counts[SLOTS]].T.astype(float)


def values(s, kernel, x, begin=0, end=None):
    out = np.full(s.alpha.shape[0], np.nan, np.float32)
    end = int(s.counts[SLOTS]) if end is None else end
    query_row(s, kernel, queries(x), 0, begin, end, out)
    return out[begin:end]


def data(rng, n, d, binary):
    return (rng.random((n, d)) < 0.5).astype(float) if binary else rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)


# ---------------------------------------------------------------------------------------------------------- kernel rows


@pytest.mark.long
@pytest.mark.parametrize("d", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("members", ["bits", "real"])
@pytest.mark.parametrize("query", ["bits", "real"])
def test_rows_agree_with_the_formula_for_every_storage(d, members, query):
    rng = np.random.default_rng(d)
    X, x = data(rng, 37, d, members == "bits"), data(rng, 1, d, query == "bits")
    s = filled(X)
    assert is_binary(s) == (members == "bits" or d == 0)
    np.testing.assert_allclose(values(s, KERNEL, x), naive.gram(KERNEL, x, X)[0], rtol=2e-6)


@pytest.mark.parametrize("kernel", [RBF(0.05), Linear(), Polynomial(3, 0.5, 1.0)])
@pytest.mark.parametrize("storage", ["bits", "real", "compressed"])
def test_missing_values_of_a_row_are_copied_from_the_rows_of_others_to_the_same_bits(kernel, storage):
    rng = np.random.default_rng(3)
    n, d = 30, 9
    X = data(rng, n + d, d, storage == "bits")
    s = filled(X[:n], kernel=kernel)
    s = compress(s) if storage == "compressed" else s
    s = more_rows(s, n + d)
    for i in range(n):
        row_of_member(s, kernel, i, -1)
    s = add(s, X[n : n + 2], kernel, n)
    for i in (n, n + 1):
        row_of_member(s, kernel, i, -1)
    before = s.counts[EVALUATIONS]
    rows = np.array([s.rows[row_of_member(s, kernel, i, -1), : n + 2] for i in range(n)])
    assert s.counts[EVALUATIONS] == before or storage == "compressed"  # unless an example has fewer than 2 features
    assert rows.tobytes() == np.array([fresh_row(s, kernel, i, s.scratch[: n + 2]).copy() for i in range(n)]).tobytes()


def test_a_row_is_computed_where_fewer_values_are_read_for_it():
    rng = np.random.default_rng(4)
    X = data(rng, 40, 3, False)
    s = more_rows(filled(X[:30]), 40)
    row_of_member(s, KERNEL, 0, -1)
    s = add(s, X[30:], first_id=30)
    for i in range(30, 40):
        row_of_member(s, KERNEL, i, -1)
    before = s.counts[EVALUATIONS]
    row_of_member(s, KERNEL, 0, -1)  # It lacks 10 values, and the examples have room for 4 features.
    assert s.counts[EVALUATIONS] == before + 10


@pytest.mark.parametrize("d", [251, 252, 253, 255, 256, 257, 504, 800])
def test_sums_of_bytes_do_not_overflow(d):
    X = np.tril(np.ones((d, d)))[:: d // 25 or 1]
    s = filled(X, kernel=Linear())
    assert is_binary(s)
    np.testing.assert_array_equal(values(s, Linear(), np.ones(d)), X.sum(axis=1))


@pytest.mark.parametrize("binary", [True, False])
def test_a_row_longer_than_a_block_of_slots_equals_its_parts(binary):
    rng = np.random.default_rng(1)
    n, d = 2 * 2048 + 37, 7
    X, x = data(rng, n, d, binary), data(rng, 1, d, binary)
    s = filled(X)
    whole = values(s, KERNEL, x)
    np.testing.assert_allclose(whole, naive.gram(KERNEL, x, X)[0], rtol=2e-6)
    for cut in (1, 63, 2047, 2048, 2049, n - 1):
        parts = np.concatenate([values(s, KERNEL, x, 0, cut), values(s, KERNEL, x, cut, n)])
        np.testing.assert_array_equal(parts, whole)


def test_kernel_values_are_counted():
    s = filled(np.eye(10))
    before = s.counts[EVALUATIONS]
    values(s, KERNEL, np.ones(10), 3, 10)
    assert s.counts[EVALUATIONS] - before == 7


# ------------------------------------------------------------------------------------------------------ slots and holes


def test_an_appended_example_is_stored_whole():
    X = np.array([[0.0, 2.5, 0.0], [1.0, 0.0, -3.0]])
    s = filled(X, kernel=Polynomial(2, 0.5, 1.0))
    np.testing.assert_array_equal(features(s, 3), X)
    np.testing.assert_array_equal(s.sq[:2], [6.25, 10.0])
    np.testing.assert_allclose(s.self_k[:2], [(0.5 * 6.25 + 1) ** 2, 36.0])
    np.testing.assert_array_equal(s.y[:2], [-1, 1])
    np.testing.assert_array_equal(s.up[:2] == 0, [False, True])  # alpha = 0 is the upper bound of a negative example
    np.testing.assert_array_equal(s.down[:2] == 0, [True, False])


def test_features_become_real_with_their_first_other_value():
    s = filled(np.eye(3))
    assert is_binary(s)
    s = add(s, np.full((1, 3), 0.5))
    assert not is_binary(s)
    np.testing.assert_array_equal(features(s, 3), [*np.eye(3), [0.5] * 3])


@pytest.mark.parametrize("binary", [True, False])
def test_new_features_are_0_in_old_members(binary):
    rng = np.random.default_rng(2)
    X, wide = data(rng, 9, 3, binary), data(rng, 9, 30, binary)
    s = add(filled(X), wide)
    np.testing.assert_array_equal(features(s, 30), np.float32(np.vstack([np.pad(X, ((0, 0), (0, 27))), wide])))


def test_a_buried_member_is_never_an_extreme():
    s = filled(data(np.random.default_rng(3), 12, 4, False))
    for remaining in range(12, 0, -1):
        find_extremes(s)
        live = live_slots(s)
        assert len(live) == n_members(s) == remaining
        i, j = naive.extremes(s.alpha[live], s.g[live], s.lo[live], s.hi[live])
        assert s.counts[SLOT_UP] == (-1 if i is None else live[i])
        assert s.counts[SLOT_DOWN] == (-1 if j is None else live[j])
        bury_slot(s, s.counts[SLOT_UP] if s.counts[SLOT_UP] >= 0 else s.counts[SLOT_DOWN])
    find_extremes(s)
    assert (s.counts[SLOT_UP], s.counts[SLOT_DOWN]) == (-1, -1)
    assert s.extremes[G_UP] < -1e29
    assert s.extremes[G_DOWN] > 1e29


def test_holes_are_squeezed_out_above_a_quarter():
    counts = empty(0).counts
    counts[SLOTS], counts[HOLES] = 1000, 314
    assert not too_many_holes(counts)
    counts[HOLES] = 315
    assert too_many_holes(counts)


# --------------------------------------------------------------------------------- what must hold after every operation


class Rehearsal:
    """An expansion beside a dict of what its members should be, in order: id -> features."""

    def __init__(self, binary, cache_bytes):
        self.binary, self.cache_bytes, self.rng = binary, cache_bytes, np.random.default_rng(0)
        self.s, self.members, self.n_added = empty(cache_bytes), {}, 0

    def add(self, number):
        X = np.float32(data(self.rng, 1 + 2 * number, D, self.binary))
        self.s = add(self.s, X, first_id=self.n_added)
        self.members |= {self.n_added + t: x for t, x in enumerate(X)}
        self.n_added += len(X)

    def bury(self, number):
        i = self._member(number)
        if i is not None:
            del self.members[int(self.s.ids[i])]
            bury_slot(self.s, i)

    def row(self, number):
        i = self._member(number)
        if i is not None:
            row_of_member(self.s, KERNEL, i, -1)

    def squeeze(self, number):
        self.s = keep(self.s, live_slots(self.s))

    def permute(self, number):
        order = np.random.default_rng(number).permutation(live_slots(self.s))
        self.members = {int(k): self.members[int(k)] for k in self.s.ids[order]}
        self.s = keep(self.s, order)

    def save(self, number):
        find_extremes(self.s)
        self.s = restore(dump(self.s, D, 0), self.cache_bytes, KERNEL, D)

    def _member(self, number):
        live = live_slots(self.s)
        return int(live[number % len(live)]) if len(live) else None

    def check(self):
        """Members are as expected, and every cached row is what would be computed now."""
        s, live, ids = self.s, live_slots(self.s), np.array(list(self.members), int)
        np.testing.assert_array_equal(s.ids[live], ids)
        if len(ids):
            np.testing.assert_array_equal(features(s, D)[live], list(self.members.values()))
        np.testing.assert_array_equal(s.g[live], np.sin(ids))
        np.testing.assert_array_equal(s.hi[live] - s.lo[live], 1.0 + ids)
        held = live[s.row_of[live] >= 0]
        np.testing.assert_array_equal(s.member_of[s.row_of[held]], held)
        n, used = int(s.counts[SLOTS]), int(s.counts[ROWS])
        assert sorted(s.row_of[held]) == list(np.flatnonzero(s.member_of[:used] >= 0))
        for i in held:
            length = int(s.row_length[s.row_of[i]])
            fresh = fresh_row(s, KERNEL, i, np.empty(n, np.float32))
            np.testing.assert_array_equal(s.rows[s.row_of[i], :length], fresh[:length])


OPERATIONS = st.tuples(st.sampled_from(["add", "bury", "row", "row", "squeeze", "permute", "save"]), st.integers(0, 15))


@pytest.mark.long
@settings(max_examples=120)
@example([("bury", 5)], False, 1 << 20)
@example([("bury", 2), ("squeeze", 0), ("row", 4), ("permute", 1), ("row", 4)], True, 0)
@given(st.lists(OPERATIONS, max_size=50), st.booleans(), st.sampled_from([0, 1 << 14, 1 << 20]))
def test_cached_rows_are_never_stale(operations, binary, cache_bytes):
    """Whatever joins, leaves, moves or is evicted from the cache, in any order."""
    rehearsal = Rehearsal(binary, cache_bytes)
    for operation, number in [("add", 12), ("row", 5), *operations]:
        getattr(rehearsal, operation)(number)
        rehearsal.check()


def test_a_row_is_extended_not_computed_again():
    rng = np.random.default_rng(4)
    s = filled(data(rng, 50, 5, False))
    row_of_member(s, KERNEL, 7, -1)
    s = add(s, data(rng, 20, 5, False))
    before = s.counts[EVALUATIONS]
    r = row_of_member(s, KERNEL, 7, -1)
    assert s.counts[EVALUATIONS] - before == 20
    np.testing.assert_array_equal(s.rows[r, :70], fresh_row(s, KERNEL, 7, np.empty(70, np.float32)))
    before = s.counts[EVALUATIONS]
    assert row_of_member(s, KERNEL, 7, -1) == r
    assert s.counts[EVALUATIONS] == before


def test_a_pinned_row_stays_in_a_full_cache():
    s = filled(data(np.random.default_rng(5), 60, 3, False), cache_bytes=0)
    pinned = row_of_member(s, KERNEL, 0, -1)
    for i in range(1, 60):
        assert row_of_member(s, KERNEL, i, pinned) != pinned
    assert s.row_of[0] == pinned
    assert s.counts[ROWS] == MIN_CACHED_ROWS


def test_the_cache_grows_up_to_its_bytes():
    cache_bytes = 40 * 4 * 320
    s = filled(data(np.random.default_rng(6), 200, 3, False), cache_bytes)
    assert s.alpha.shape[0] == 320
    for _ in range(3):
        for i in range(200):
            if wants_rows(s.counts, s.rows):
                s = reserve(s, 0, 3, False, 0)
            row_of_member(s, KERNEL, i, -1)
    assert s.rows.nbytes == cache_bytes
    assert s.counts[ROWS] == 40
    assert not wants_rows(s.counts, s.rows)


# ------------------------------------------------------------------------------------------------------------ snapshots


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("n", [0, 1, 100])
def test_restore_gives_back_what_dump_took(binary, n):
    d = 5
    s = filled(data(np.random.default_rng(7), n, d, binary))
    for i in range(0, n, 3):
        bury_slot(s, i)
    find_extremes(s)
    back = restore(dump(s, d, 0), 1 << 16, KERNEL, d)
    for name in PER_SLOT:
        np.testing.assert_array_equal(getattr(back, name)[:n], getattr(s, name)[:n])
    width = int(s.counts[WIDTH])
    np.testing.assert_array_equal(features(back, width), features(s, width))
    np.testing.assert_array_equal(back.extremes, s.extremes)
    np.testing.assert_array_equal(live_slots(back), live_slots(s))


def test_a_copy_without_rows_can_grow_its_cache():
    s = filled(data(np.random.default_rng(8), 100, 3, False))
    for i in range(100):
        s = reserve(s, 0, 3, False, 0)
        row_of_member(s, KERNEL, i, -1)
    bare = without_rows(s)
    assert bare.counts[ROWS] == 0
    for i in range(100):
        bare = reserve(bare, 0, 3, False, 0)
        row_of_member(bare, KERNEL, i, -1)
    np.testing.assert_array_equal(bare.rows[bare.row_of[99], :100], s.rows[s.row_of[99], :100])
    assert s.counts[ROWS] == 100
