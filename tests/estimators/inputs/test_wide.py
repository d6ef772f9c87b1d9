"""Wide, sparse features: compressed members take the place of the feature-major matrix, and nothing else changes."""

import itertools

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from queries import from_dense
from states import state_of

from streamsvm import LASVM, FullSVM, OneVsRest
from streamsvm.core import storage
from streamsvm.core.blocks import prefers_product
from streamsvm.core.expansion import (
    BITS,
    COLUMNS,
    COMPRESSED,
    LISTED,
    SLOTS,
    STORAGE,
    WIDE,
    WIDTH,
    is_binary,
    is_wide,
)
from streamsvm.core.kernels import NAMES
from streamsvm.core.rows import kernel_row

D = 600


@pytest.fixture
def narrow_limit(monkeypatch):
    """Compress members from 20 000 entries on: these streams get there after some 40 members."""
    monkeypatch.setattr(storage.members, "WIDE_BYTES", 80_000)


def stream(n, d=D, nnz=7, binary=False, seed=0):
    """Sparse examples as dicts, some names common and most rare, and labels that follow the common ones."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=d) * np.exp(-np.arange(d) / 30)
    rows, y = [], []
    for _ in range(n):
        columns = np.unique((d * rng.random(nnz) ** 3).astype(int))
        values = np.ones(len(columns)) if binary else rng.normal(size=len(columns))
        rows.append({f"w{c}": float(v) for c, v in zip(columns, values, strict=True)})
        y.append(bool(values @ direction[columns] + 0.1 * rng.normal() > 0))
    return rows, y


def learned(rows, y, cut=None, **parameters):
    model = LASVM(**{"C": 10.0, "gamma": 0.02, **parameters})
    for b in range(0, len(rows), cut or len(rows)):
        model.learn_many(rows[b : b + (cut or len(rows))], y[b : b + (cut or len(rows))])
    return model


def kind(model):
    return int(state_of(model).expansion.counts[STORAGE])


def members(s):
    """The features of all slots, whatever their storage."""
    n, width = int(s.counts[SLOTS]), int(s.counts[WIDTH])
    if s.counts[STORAGE] != COMPRESSED:
        return (s.bits if is_binary(s) else s.columns)[:width, :n].T.astype(np.float32)
    end = s.starts[n]
    return sp.csr_array((s.sparse_values[:end], s.sparse_indices[:end], s.starts[: n + 1]), (n, width)).toarray()


# ----------------------------------------------------------------------------------------------------------- the switch


def test_the_rule_looks_at_size_and_emptiness():
    s = storage.empty(0)
    assert s.counts[WIDE] == 1 << 20
    assert not is_wide(s.counts, 1 << 8, 1 << 12, 0)
    assert is_wide(s.counts, (1 << 8) + 1, 1 << 12, 1 << 15)
    assert not is_wide(s.counts, (1 << 8) + 1, 1 << 12, (1 << 15) + (1 << 7))
    s.counts[STORAGE] = COMPRESSED
    assert not is_wide(s.counts, 1 << 20, 1 << 20, 0)


@pytest.mark.parametrize("binary", [True, False])
def test_members_are_the_same_before_and_after(narrow_limit, binary):
    """The switch comes with the first example with which there are too many entries, and keeps every feature."""
    rows, y = stream(120, binary=binary)
    model, kinds = LASVM(C=10.0, gamma=0.02), []
    for x, label in zip(rows, y, strict=True):
        before = members(state_of(model).expansion)
        slots = int(state_of(model).expansion.counts[SLOTS])
        model.learn_one(x, label)
        entries = slots * int(state_of(model).expansion.counts[WIDTH])  # of this example, too
        after = members(state_of(model).expansion)
        np.testing.assert_array_equal(after[: len(before), : before.shape[1]], before)
        assert (kind(model) == COMPRESSED) == (entries > 20_000)
        kinds.append(kind(model))
    assert kinds == [BITS if binary else COLUMNS] * kinds.index(COMPRESSED) + [COMPRESSED] * kinds.count(COMPRESSED)
    assert 20 < kinds.count(COMPRESSED) < 100


def test_dense_features_are_never_compressed(narrow_limit):
    X = np.random.default_rng(0).normal(size=(500, 100)) * (np.random.default_rng(1).random((500, 100)) < 0.1)
    model = LASVM()
    model.learn_many(X, np.arange(500) % 2 == 0)
    assert state_of(model).expansion.counts[SLOTS] * 100 > state_of(model).expansion.counts[WIDE]
    assert kind(model) == COLUMNS


# ---------------------------------------------------------------------------------------------------------- same values


@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("binary", [True, False])
def test_the_decision_is_the_sum_over_the_members(narrow_limit, kernel, binary):
    rows, y = stream(250, binary=binary)
    model = learned(rows, y, kernel=kernel, degree=2, coef0=0.5, C=1.0)
    s = state_of(model).expansion
    assert kind(model) == COMPRESSED
    queries = [*rows[:40], {"w1": 0.5, "w2": -2.0, "never seen": 3.0}, {}]
    names = list(model._features.columns)
    X = np.array([[x.get(name, 0.0) for name in [*names, "never seen"]] for x in queries])
    Z = np.pad(members(s), ((0, 0), (0, len(names) + 1 - s.counts[WIDTH])))
    expected = naive.gram(naive.kernel_of(model), X, Z) @ s.alpha[: s.counts[SLOTS]] + model.bias
    tolerance = 1e-5 * max(1.0, np.abs(s.alpha).sum() * np.abs(s.self_k).max())
    np.testing.assert_allclose(model.decision_function_many(queries), expected, atol=tolerance)
    np.testing.assert_allclose([model.decision_function_one(x) for x in queries], expected, atol=tolerance)


@pytest.mark.parametrize("binary", [True, False])
def test_a_compressed_model_learns_what_a_feature_major_one_does(monkeypatch, binary):
    """Bit for bit: an inner product is the same chain of additions in every storage."""
    rows, y = stream(400, binary=binary)
    wide = learned(rows, y, gamma=0.5)
    monkeypatch.setattr(storage.members, "WIDE_BYTES", 80_000)
    compressed = learned(rows, y, gamma=0.5)
    for _ in range(2):
        assert (kind(wide), kind(compressed)) == (BITS if binary else COLUMNS, COMPRESSED)
        np.testing.assert_array_equal(compressed.support_ids, wide.support_ids)
        np.testing.assert_array_equal(compressed.dual_coef, wide.dual_coef)
        np.testing.assert_array_equal(members(state_of(compressed).expansion), members(state_of(wide).expansion))
        np.testing.assert_array_equal(compressed.decision_function_many(rows), wide.decision_function_many(rows))
        for model in (wide, compressed):
            model.finish()
            model.learn_many(rows[:100], ~np.array(y[:100]))


@njit
def row_of(s, kernel, indices, values, sq, begin, end, out):
    kernel_row(s, kernel, indices, values, sq, begin, end, out)


@pytest.mark.parametrize("listed", [0, 1, 150, 399, 400])
def test_rows_from_lists_and_from_members_are_alike(narrow_limit, listed):
    """However many slots the lists cover, and whichever part of a row is asked for."""
    rows, y = stream(400)
    model = FullSVM(gamma=0.02)  # which keeps every example
    model.learn_many(rows, y)
    s, n = state_of(model).expansion, 400
    assert s.counts[SLOTS] == n
    columns, values = model._features.example(rows[0], learning=False)
    order = np.argsort(columns)
    query = columns[order].astype(np.int32), values[order].astype(np.float32), np.float32(values @ values)
    expected, found = np.empty(n, np.float32), np.empty(n, np.float32)
    row_of(s, naive.kernel_of(model), *query, 0, n, expected)
    s.counts[SLOTS] = listed
    s = storage.list_features(s)
    s.counts[SLOTS] = n
    assert s.counts[LISTED] == listed
    for begin, end in itertools.pairwise([0, 1, 37, 150, 151, 399, 400]):
        row_of(s, naive.kernel_of(model), *query, begin, end, found)
    np.testing.assert_array_equal(found, expected)


def test_many_queries_have_the_bits_of_a_single_one(narrow_limit):
    """Many queries together list the slots that the model has not listed yet; the model itself stays as it is."""
    rows, y = stream(400)
    model = FullSVM(gamma=0.02)
    model.learn_many(rows, y)
    listed = state_of(model).expansion.counts[LISTED]
    assert listed < state_of(model).expansion.counts[SLOTS]
    expected = [model.decision_function_one(x) for x in rows]
    for at_once in (1, 10, 400):
        found = [f for t in range(0, 400, at_once) for f in model.decision_function_many(rows[t : t + at_once])]
        assert found == expected
    assert state_of(model).expansion.counts[LISTED] == listed


# --------------------------------------------------------------------------------------------------------- same history


@pytest.fixture(scope="module")
def whole():
    """A stream long enough for evictions after the switch, the digest of its model, and where it switched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.members, "WIDE_BYTES", 80_000)
        rows, y = stream(900, seed=1)
        model, switch = LASVM(C=10.0, gamma=0.02), None
        for t, (x, label) in enumerate(zip(rows, y, strict=True)):
            model.learn_one(x, label)
            if switch is None and kind(model) == COMPRESSED:
                switch = t
        assert model.n_members < 0.8 * len(rows)
        return rows, y, model.digest(), switch


@pytest.mark.parametrize("cut", [1, 7, 64, 256, 900])
def test_how_the_stream_is_cut_does_not_matter(narrow_limit, whole, cut):
    rows, y, digest, _ = whole
    assert learned(rows, y, cut).digest() == digest


@pytest.mark.parametrize("cache_mb", [0.001, 64.0])
def test_the_size_of_the_cache_does_not_matter(narrow_limit, whole, cache_mb):
    rows, y, digest, _ = whole
    model = learned(rows, y, 100, cache_mb=cache_mb)
    assert model.digest() == digest
    model.finish()
    other = learned(rows, y, 100, cache_mb=1.0)
    other.finish()
    assert model.digest() == other.digest()


@pytest.mark.parametrize("offset", [-20, -1, 0, 1, 2, 150, 400])
def test_a_restored_model_goes_on_alike(narrow_limit, whole, offset):
    """Saved around the switch, and long after it."""
    rows, y, digest, switch = whole
    t = switch + offset
    first = learned(rows[:t], y[:t], 50)
    model = LASVM.from_bytes(first.to_bytes())
    assert kind(model) == kind(first) == (COMPRESSED if offset >= 1 else COLUMNS)
    assert model.digest() == first.digest()
    model.learn_many(rows[t:], y[t:])
    assert model.digest() == digest


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(1, 80), st.sampled_from(["go on", "restore", "finish", "one by one"])), max_size=6)
)
def test_any_cut_and_any_restoring_end_alike(steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage.members, "WIDE_BYTES", 60_000)
        rows, y = stream(480, seed=2)
        model, twin, t = LASVM(C=5.0, gamma=0.2), LASVM(C=5.0, gamma=0.2, cache_mb=0.01), 0
        for n, what in steps:
            part = slice(t, t + n)
            if what == "one by one":
                for x, label in zip(rows[part], y[part], strict=True):
                    model.learn_one(x, label)
            else:
                model.learn_many(rows[part], y[part])
            twin.learn_many(rows[part], y[part])
            if what == "restore":
                model = LASVM.from_bytes(model.to_bytes())
            if what == "finish":
                model.finish()
                twin.finish()
            t += n
        assert model.digest() == twin.digest()


def test_a_compressed_model_is_finished_to_its_optimum(narrow_limit):
    rows, y = stream(500)
    model = learned(rows, y, tol=1e-4)
    model.finish()
    s = state_of(model).expansion
    n = int(s.counts[SLOTS])
    signs = np.where(s.y[:n] > 0, 1.0, -1.0)
    K = naive.gram(naive.kernel_of(model), members(s), members(s))
    np.testing.assert_allclose(s.g[:n], naive.gradient(s.alpha[:n], signs, K), atol=1e-4)
    assert kind(model) == COMPRESSED
    assert np.diff(s.starts[: n + 1]).min() > 0
    model.learn_many(rows[:50], y[:50])


# ----------------------------------------------------------------------------------------------------------- any input


@pytest.mark.parametrize("form", ["dicts", "csr", "frame"])
def test_every_kind_of_batch_is_learned(narrow_limit, form):
    rows, y = stream(200)
    names = [f"w{c}" for c in range(D)]
    X = np.array([[x.get(name, 0.0) for name in names] for x in rows])
    batch = {"dicts": rows, "csr": sp.csr_array(X), "frame": pytest.importorskip("pandas").DataFrame(X, columns=names)}
    model = LASVM(C=10.0, gamma=0.02)
    model.learn_many(batch[form], y)
    assert kind(model) == COMPRESSED
    reference = learned(rows, y)
    model.finish(1e-5)
    reference.finish(1e-5)
    margins = np.asarray(model.decision_function_many(batch[form]))
    np.testing.assert_allclose(margins, reference.decision_function_many(rows), atol=1e-3)


def test_names_that_come_after_the_switch_get_room(narrow_limit):
    rows, y = stream(200)
    model = learned(rows, y)
    model.learn_many([{f"late{t}": 1.0, f"later{t}": 0.5} for t in range(2000)], np.arange(2000) % 2 == 0)
    assert model.decision_function_one({"late3": 1.0, "w1": 1.0}) == pytest.approx(
        model.decision_function_many([{"w1": 1.0, "late3": 1.0}])[0]
    )
    assert members(state_of(model).expansion).shape[1] > 4000


# -------------------------------------------------------------------------------------------------------------- memory


def nbytes(s):
    """Of everything but the cached rows."""
    return sum(a.nbytes for name, a in s._asdict().items() if name != "rows")


def test_memory_follows_the_non_zero_features():
    """2000 members of 50 non-zeros among 50 000 features would be 400 MB feature-major."""
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, 50_000, (2000, 50)), axis=1)
    X = sp.csr_array((rng.normal(size=100_000), indices.ravel(), np.arange(0, 100_001, 50)), (2000, 50_000))
    model = LASVM(C=1.0, gamma=0.01, cache_mb=1.0)
    largest = 0
    for b in range(0, 2000, 100):
        model.learn_many(X[b : b + 100], rng.random(100) < 0.5)
        largest = max(largest, nbytes(state_of(model).expansion))
    assert model.n_members > 1900
    assert kind(model) == COMPRESSED
    assert nbytes(state_of(model).expansion) < 20e6
    assert largest < 4 * storage.members.WIDE_BYTES
    assert nbytes(state_of(LASVM.from_bytes(model.to_bytes())).expansion) < 20e6


def narrow_and_wide(how, model, value):
    """A model with many members of few features learns one example with very many more."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 5)).astype(np.float32), rng.random(1500) < 0.5
    rows = [{f"f{k}": float(v) for k, v in enumerate(x)} for x in X]
    event = {"f0": 0.5, **{f"new{k}": value for k in range(70_000)}}
    model.learn_many(rows[:1300], y[:1300])
    n_members = model.n_members
    if how == "alone":
        model.learn_one(event, True)
    else:  # in mid-block
        model.learn_many([*rows[1300:1400], event, *rows[1400:]], [*y[1300:1400], True, *y[1400:]])
    return event, n_members


@pytest.mark.long
@pytest.mark.parametrize("make", [lambda: FullSVM(cache_mb=1.0), lambda: LASVM(cache_mb=1.0)], ids=["full", "lasvm"])
@pytest.mark.parametrize("how", ["alone", "in a block"])
@pytest.mark.parametrize("value", [0.25, 1.0, 0.0])
def test_one_example_with_many_new_features_costs_what_it_has(monkeypatch, make, how, value):
    """70 000 new features beside 1300 members took 1 GB, and a state of 360 MB; where they are 0, too."""
    sizes, grown = [], storage.room.grown_features

    def noted(s, D, N):
        sizes.append(D * N)
        return grown(s, D, N)

    monkeypatch.setattr(storage.room, "grown_features", noted)
    model = make()
    event, n_members = narrow_and_wide(how, model, value)
    assert n_members > 800
    assert max(sizes) * 4 < 2 * storage.members.WIDE_BYTES  # at no time was there a larger matrix
    assert nbytes(state_of(model).expansion) < 12e6
    data = model.to_bytes()
    assert len(data) < 6e6  # of which 1.1 MB are the names, and 2 MB what the scale notes of each feature
    back = type(model).from_bytes(data)
    assert nbytes(state_of(back).expansion) < 12e6
    queries = [event, {"f1": 1.0}, {"new69999": 2.0, "f2": 1.0}, {"never seen": 1.0}]
    for other in (model, back):
        margins = model.decision_function_many(queries)
        np.testing.assert_array_equal([other.decision_function_one(x) for x in queries], margins)


def test_a_wide_example_is_learned_alike_in_a_block_and_alone():
    """The features are compressed at the same example."""
    rows, y = stream(1200, d=30, nnz=12)
    rows[1100] = {**rows[1100], **{f"new{k}": 0.5 for k in range(20_000)}}
    together, parts, alone = LASVM(C=10.0, gamma=0.5), LASVM(C=10.0, gamma=0.5), LASVM(C=10.0, gamma=0.5)
    together.learn_many(rows, y)
    for b in range(0, 1200, 110):
        parts.learn_many(rows[b : b + 110], y[b : b + 110])
    alone.learn_many(rows[:1000], y[:1000])
    for x, label in zip(rows[1000:], y[1000:], strict=True):
        alone.learn_one(x, label)
    assert kind(together) == COMPRESSED
    assert together.digest() == parts.digest() == alone.digest()


def test_several_classes_pay_for_a_wide_example_once():
    rng = np.random.default_rng(0)
    rows = [{f"f{k}": float(v) for k, v in enumerate(x)} for x in rng.normal(size=(900, 5))]
    rows[700] |= {f"new{k}": 0.5 for k in range(50_000)}
    labels = rng.integers(3, size=900).tolist()
    model = OneVsRest(LASVM(C=10.0, cache_mb=1.0))
    model.learn_many(rows, labels)
    assert nbytes(model._union.vectors) < 10e6
    assert sum(nbytes(m.expansion) for m in model._models.values()) < 30e6
    back = OneVsRest.from_bytes(model.to_bytes())
    assert back.predict_many(rows).tolist() == [model.predict_one(x) for x in rows]


@pytest.mark.long
def test_half_a_million_names_in_one_batch_do_not_exhaust_memory():
    rows = [{f"{t}:{k}": 1.5 for k in range(4000)} for t in range(125)]
    model = LASVM(cache_mb=1.0)
    model.learn_many(rows, np.arange(125) % 2 == 0)
    assert kind(model) == COMPRESSED
    assert nbytes(state_of(model).expansion) < 30e6


def test_the_scattered_query_is_wiped(narrow_limit):
    rows, y = stream(300)
    model = learned(rows, y)
    model.predict_many(rows[:10])
    assert not state_of(model).expansion.query.any()


def test_a_dense_block_of_queries_takes_no_product(narrow_limit):
    model = learned(*stream(300))
    assert not prefers_product(state_of(model).expansion, from_dense(np.ones((20, 64)), np.arange(64)))


def test_entries_of_one_place_add_up():
    """SciPy lets a matrix have them; compressed members must not."""
    twice = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([3, 3, 0]), np.array([0, 2, 3])), (2, 5))
    model, once = LASVM(kernel="linear"), LASVM(kernel="linear")
    model.learn_many(twice, [True, False])
    once.learn_many(sp.csr_array(twice.toarray()), [True, False])
    assert model.digest() == once.digest()
    assert twice.nnz == 3
