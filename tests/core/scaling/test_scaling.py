"""The running scale against its slow twin: moments, places, sparse input, when the scale is due, scaled values."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.core.scaling.moments import fill_block, observe_block
from streamsvm.core.scaling.renewal import AT_ONCE, renewed
from streamsvm.core.scaling.state import (
    ACTIVE,
    APART,
    DUE,
    FAR,
    MEMORY,
    NORM,
    OF_FEATURES,
    OF_PLACES,
    OLD_ENOUGH,
    PLACES,
    SEEN,
    SPARSE,
    SPREAD,
    empty,
)
from streamsvm.core.scaling.values import scale_block
from streamsvm.estimators.inputs import raw_rows

NOT_SHIFTED, WITH_A_NUMBER, WITH_SCALE = (np.inf, 0.0), (FAR / 0.5, 0.0), (0.0, FAR)
KINDS = [(True, NOT_SHIFTED), (False, NOT_SHIFTED), (False, WITH_A_NUMBER), (False, WITH_SCALE)]


class Pair:
    """The compiled scale and its twin, which see the same examples."""

    def __init__(self, scales=True, n_features=40, memory=MEMORY, far=NOT_SHIFTED, apart=()):
        self.fast = empty(True, scales, n_features, memory=memory, far=far)
        self.fast.place[list(apart)] = APART
        self.slow = naive.NaiveScale(scales, memory, far, apart)
        self.n_renewed = self.n_filled = 0

    def observe(self, x, n_members=0, marked=False, counts=True):
        """One example, its gaps filled; a scale that is due is renewed.  Returns whether it was."""
        columns, values = np.array(list(x), np.int64), np.array(list(x.values()), np.float64)
        raw = raw_rows.one_row(columns, values)
        starts, most, counted = np.zeros(2, np.int64), len(x) + len(self.fast.m), np.array([counts])
        filled = np.empty(most, np.int64), np.empty(most)
        given = (raw.indptr, columns, values, counted, np.array([marked]))
        assert fill_block(self.fast, *given, starts, *filled) == 1
        found = dict(zip(*(part[: starts[1]].tolist() for part in filled), strict=True))
        expected = self.slow.filled(x, marked)
        assert list(found) == list(expected)
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-9, atol=1e-12)
        self.n_filled += len(found) - len(x)
        if counts:
            self.slow.observe(x, marked=marked)
        due = bool(self.fast.counts[DUE])
        assert due == self.slow.due, f"example {self.slow.n_seen}"
        if due:
            self.fast = renewed(self.fast, n_members)
            self.slow.renew(n_members)
            self.n_renewed += 1
        return due

    def check(self):
        c, slow = self.fast, self.slow
        n = int(c.counts[PLACES])
        assert c.feature[:n].tolist() == list(slow.moments)
        np.testing.assert_array_equal(c.place[c.feature[:n]], np.arange(n))
        assert np.count_nonzero(c.place >= 0) == n
        assert (c.counts[SEEN], c.counts[SPARSE], c.counts[ACTIVE]) == (slow.n_seen, slow.sparse, slow.is_active)
        for name in ("w", "m", "S", "shift", "spread", "last", "varied"):
            expected = [f[name] for f in slow.moments.values()]
            np.testing.assert_allclose(getattr(c, name)[:n], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(c.totals[[NORM, SPREAD]], [slow.norm, slow.spread], rtol=1e-6, atol=1e-12)

    def check_scaled(self, x):
        """One query, whose columns may be -1; its features as the twin scales them."""
        columns, values = np.array(list(x), np.int64), np.array(list(x.values()), np.float64)
        q = scale_block(self.fast, raw_rows.one_row(columns, values))
        expected = self.slow.scaled({d: v for d, v in x.items() if d >= 0})
        assert q.indices.tolist() == list(expected)
        np.testing.assert_allclose(q.values, list(expected.values()), rtol=1e-5, atol=1e-6)
        unknown = min(abs(x.get(-1, 0.0)), self.slow.cut) ** 2
        np.testing.assert_allclose(q.sq, [np.sum(np.square(q.values, dtype=np.float64)) + unknown], rtol=1e-6)


# ------------------------------------------------------------------------------------------------------------- streams


def dense(rng, t):
    return {
        d: float(v) for d, v in enumerate(rng.normal(size=5) * [1.0, 1e3, 1e-3, 1.0, 5.0] + [0.0, 5e3, 0.0, 7.0, -2.0])
    }


def outliers(rng, t):
    return {d: 1e6 if t > 30 and rng.random() < 0.02 else v for d, v in dense(rng, t).items()}


def constant(rng, t):
    return dense(rng, t) | {5: 3.25, 6: 0.0, 7: 1.0, 8: 1e3 + 1e-8 * rng.normal()}


def bits_that_vary(rng, t):
    x = {d: float(rng.random() < 0.4) for d in range(4)}
    return x | ({2: float(rng.normal())} if t > 60 else {})


def late(rng, t):
    return dense(rng, t) | ({9: float(rng.normal(1000.0, 300.0))} if t > 50 else {})


def missing(rng, t):
    return {d: v for d, v in dense(rng, t).items() if rng.random() < 0.7}


def text(rng, t):
    return {int(d): float(rng.random()) for d in rng.choice(40, 4, replace=False)}


def text_then_dense(rng, t):
    return text(rng, t) if t < 60 else dense(rng, t)


def one_wide(rng, t):
    return dense(rng, t) | (dict.fromkeys(range(10, 40), 1000000.0) if t == 70 else {})


def other_units(rng, t):
    return {d: v * (1000.0 if t > 100 else 1.0) for d, v in dense(rng, t).items()}


def some_empty(rng, t):
    return dense(rng, t) if t % 3 else {}


def large_after_the_first(rng, t):
    return {0: float(rng.normal())} | ({1: float(rng.normal(5e4, 1e4))} if t else {})


def words(rng, t):
    """Beside numbers."""
    return dense(rng, t) | {int(d): float(rng.random()) for d in rng.choice(range(10, 40), 8, replace=False)}


STREAMS = (
    *(dense, outliers, constant, bits_that_vary, late, missing, text, text_then_dense, one_wide, other_units),
    *(some_empty, large_after_the_first, words),
)
WORDS = range(10, 40)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("scales", "far"), KINDS)
def test_it_is_the_twins(stream, scales, far):
    rng, pair = np.random.default_rng(0), Pair(scales, far=far)
    for t in range(300):
        pair.observe(stream(rng, t), n_members=t // 20)
        if t % 10 == 0:
            pair.check()
            if pair.fast.counts[ACTIVE]:
                pair.check_scaled(stream(rng, t))
    pair.check()
    assert pair.n_renewed > 1 or far == WITH_A_NUMBER  # which cares for features far from 0 only


@pytest.mark.parametrize("stream", [words, one_wide])
@pytest.mark.parametrize(("scales", "far"), KINDS)
def test_it_is_the_twins_with_features_apart(stream, scales, far):
    rng, pair = np.random.default_rng(0), Pair(scales, far=far, apart=WORDS)
    for t in range(300):
        pair.observe(stream(rng, t), n_members=t // 20)
        if t % 10 == 0:
            pair.check()
            if pair.fast.counts[ACTIVE]:
                pair.check_scaled(stream(rng, t))
    assert (pair.fast.counts[SPARSE], pair.fast.counts[PLACES]) == (0, 5)


values = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 3.25, 1e6, -1e6, 1e-9, 1e15]),
    st.floats(-100, 100).map(lambda v: round(v, 3)),
    st.integers(-3, 3).map(float),
)
examples = st.dictionaries(st.integers(0, 7), values, max_size=8)


@settings(max_examples=300, derandomize=True)  # rounding may decide a tie
@given(
    *(st.lists(st.tuples(examples, st.integers(0, 5)), max_size=60), st.sampled_from(KINDS), st.integers(1, 5)),
    st.sets(st.integers(0, 7), max_size=4),
)
def test_whatever_comes_it_is_the_twins(stream, kind, repeated, apart):
    pair = Pair(kind[0], 8, far=kind[1], apart=apart)
    for x, n_members in stream * repeated:
        pair.observe(x, n_members)
    pair.check()
    if pair.fast.counts[ACTIVE]:
        for x, _ in stream[:5]:
            pair.check_scaled(x | {-1: 2.0})


# -------------------------------------------------------------------------------------------------------- what it means


def after(stream, n, n_members=0, seed=0):
    rng, pair = np.random.default_rng(seed), Pair()
    for t in range(n):
        pair.observe(stream(rng, t), n_members)
    return pair


def of(pair, d):
    """Mean and deviation of a feature, as they move."""
    c, p = pair.fast, pair.fast.place[d]
    return c.m[p], np.sqrt(c.S[p] / c.w[p])


def test_what_is_lacking_is_not_learned_and_0_where_zeros_are_left_out():
    pair = after(missing, 1500)
    np.testing.assert_allclose(of(pair, 1), (5e3, 1e3), rtol=0.1)
    np.testing.assert_allclose(of(pair, 3), (7.0, 1.0), rtol=0.1)
    assert pair.n_filled > 1500

    def pixels(rng, t):
        return {d: float(rng.integers(1, 9)) for d in range(8) if rng.random() < 0.7}

    pair = after(pixels, 300)
    assert pair.n_filled < 20  # before it is clear that values may be near 0
    assert (pair.fast.counts[SPARSE], pair.fast.counts[ACTIVE]) == (0, 1)
    n_filled = pair.n_filled
    pair.observe({0: 4.0}, marked=True, counts=False)
    assert pair.n_filled == n_filled + 7
    pair.observe({0: 4.0})
    assert pair.n_filled == n_filled + 7  # what does not count leaves no trace
    pair.observe({0: 4.0}, marked=True)
    pair.observe({0: 4.0})
    assert pair.n_filled == n_filled + 21


def test_in_a_sparse_matrix_what_is_lacking_is_0():
    rng, pair, c = np.random.default_rng(0), Pair(), Pair().fast
    for t in range(100):
        x = missing(rng, t) | {4: -2.0}
        columns, values = np.array(list(x)), np.array(list(x.values()))
        pair.slow.observe(x, may_be_unknown=False)
        observe_block(c, np.array([0, len(x)]), columns, values, np.ones(1, bool), False)
        if pair.slow.due:
            c = renewed(c, 0)
            pair.slow.renew(0)
    pair.fast = c
    pair.check()
    assert of(pair, 1)[0] < 4.5e3


def test_the_moments_are_those_of_the_stream():
    pair = after(dense, 1500)
    np.testing.assert_allclose(of(pair, 1), (5e3, 1e3), rtol=0.1)
    np.testing.assert_allclose(of(pair, 2), (0.0, 1e-3), atol=1e-4)
    np.testing.assert_allclose(pair.fast.totals[SPREAD], 5.0, rtol=0.5)


def test_outliers_move_the_moments_a_little_only():
    mean, deviation = of(after(outliers, 1500), 3)
    assert abs(mean - 7.0) < 1.0
    assert deviation < 3.0


def test_another_unit_is_followed():
    mean, deviation = of(after(other_units, 3000), 3)
    assert 6e3 < mean < 8e3
    assert 700.0 < deviation < 2000.0


def test_constant_features_are_scaled_by_1_and_bits_left_alone():
    c = after(constant, 200).fast
    assert c.spread[c.place[5]] == c.spread[c.place[8]] == 1.0
    assert c.spread[c.place[6]] == c.spread[c.place[7]] == 0.0


def test_a_bit_that_has_another_value_is_scaled_at_once():
    rng, pair = np.random.default_rng(0), Pair()
    for _ in range(100):
        assert pair.observe({0: float(rng.random() < 0.5)}, 10**6) == (pair.slow.n_seen == 1)
    assert pair.fast.counts[ACTIVE] == 0
    assert pair.observe({0: 0.5}, 10**6)
    assert pair.fast.counts[ACTIVE] == 1


def test_text_is_left_alone():
    c = after(text, 200).fast
    assert c.counts[SPARSE] == 1
    assert c.counts[ACTIVE] == 0
    np.testing.assert_allclose(c.totals[SPREAD], 4 / 3, rtol=0.5)


def test_a_late_feature_gets_a_place_and_then_its_scale():
    rng, pair = np.random.default_rng(0), Pair()
    for t in range(500):
        pair.observe(late(rng, t), n_members=30)
        assert (pair.fast.place[9] >= 0) == (t > 50 + OLD_ENOUGH), t
    np.testing.assert_allclose(of(pair, 9), (1000.0, 300.0), rtol=0.2)


def test_one_hostile_example_gets_no_places_and_hardly_moves_the_spread():
    rng, pair = np.random.default_rng(0), Pair()
    for t in range(70):
        pair.observe(one_wide(rng, t))
    before = pair.fast.totals[SPREAD]
    for t in range(70, 300):
        pair.observe(one_wide(rng, t))
    assert pair.fast.counts[PLACES] == 5
    np.testing.assert_allclose(pair.fast.totals[SPREAD], before, rtol=0.5)


def test_more_features_than_get_a_place_at_once_deserve_theirs():
    n = AT_ONCE + 1
    pair = Pair(n_features=n)
    x = dict.fromkeys(range(n), 2.0)
    pair.observe(x)
    assert pair.fast.counts[PLACES] == 0
    np.testing.assert_allclose(pair.fast.totals[SPREAD], 4.0 * n)
    while pair.fast.counts[PLACES] == 0:
        pair.observe(x)
    assert (pair.fast.counts[PLACES], pair.fast.counts[SEEN]) == (n, OLD_ENOUGH + 1)


def test_a_scale_that_is_not_due_is_not_renewed():
    """On a stationary stream, the number of renewals grows like the logarithm of its length."""
    rng, pair, renewed = np.random.default_rng(0), Pair(), []
    for t in range(4000):
        pair.observe(dense(rng, t), n_members=t // 4)
        renewed.append(pair.n_renewed)
    assert renewed[-1] < 12
    assert renewed[-1] - renewed[500] <= 2


def test_the_wait_bounds_the_renewals():
    """Whatever comes, between two renewals that nothing forces there are as many examples as there are members."""
    rng, pair, renewals = np.random.default_rng(0), Pair(), []
    for t in range(600):
        if pair.observe({0: float(rng.normal() * 1.05**t)}, n_members=40):
            renewals.append(t)
    assert len(renewals) > 5
    assert min(np.diff(renewals[2:])) >= 40


def test_the_order_of_features_does_not_matter():
    rng, pair, other = np.random.default_rng(0), Pair(), Pair()
    for t in range(100):
        x = late(rng, t)
        pair.observe(x, 5)
        names = list(x)
        rng.shuffle(names)
        other.observe({d: x[d] for d in names}, 5)
    for name in (*OF_FEATURES, *OF_PLACES, "totals", "counts"):
        np.testing.assert_array_equal(getattr(pair.fast, name), getattr(other.fast, name))


def test_a_scale_that_tracks_nothing_stays_as_it_is():
    c = empty(False, False)
    observe_block(c, np.array([0, 1]), np.array([0]), np.array([5.0]), np.ones(1, bool), False)
    assert c.counts[SEEN] == 0


@pytest.mark.parametrize("memory", [20, 500])
def test_a_shorter_memory_follows_faster(memory):
    rng = np.random.default_rng(3)
    pair = Pair(n_features=6, memory=memory)
    for t in range(1500):
        pair.observe({d: rng.normal() + (t > 700) * 3.0 for d in range(5)} | ({5: 1.0 + t} if t > 300 else {}))
    pair.check()
    np.testing.assert_allclose(pair.fast.m[:5], 3.0, atol=1.5)
    assert (pair.fast.w[:5] <= memory).all()
