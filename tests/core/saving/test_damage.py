"""Snapshots with a right checksum and wrong content: each is refused with a reason, or makes a model that works.

`fuzz_snapshot` has the mutations, and as a script runs more of them.
"""

import fuzz_snapshot
import numpy as np
import pytest

from streamsvm import LASVM, OneVsRest, SnapshotError, WarmupScaler
from streamsvm.core.expansion import HOLES, SLOT_UP, SLOTS, STORAGE, WIDTH
from streamsvm.core.saving.snapshot import field, pack, unpack
from streamsvm.validation import StreamingLOO


@pytest.mark.long
def test_mutations_neither_crash_nor_hang_nor_take_memory():
    """In a process of their own; of 170 mutations some are still models."""
    fates, faults = fuzz_snapshot.run(170, seed=2, seconds=20.0)  # of which none takes a tenth of one
    assert not faults
    assert sum(n for (_, found), n in fates.items() if found == "refused") > 50
    assert sum(n for (_, found), n in fates.items() if found == "loaded") > 10


@pytest.fixture(scope="module")
def dense():
    return fuzz_snapshot.learned(LASVM(C=10.0, gamma=0.5), *fuzz_snapshot.problem(80, 5)).to_bytes()


@pytest.fixture(scope="module")
def compressed():
    return fuzz_snapshot.compressed_model().to_bytes()


def changed(data, name, place, value):
    """The snapshot with another number in an array."""
    kind = "LASVM"
    meta, arrays = unpack(data, kind)
    arrays[name][place] = value
    return pack(kind, meta, arrays)


@pytest.mark.parametrize(
    ("name", "place", "value", "problem"),
    [
        ("counts", SLOTS, 10**6, r"it states 1000000 slots and has \d+"),
        ("counts", HOLES, -1, "it states -1 holes"),
        ("counts", STORAGE, 2, "'sparse_indices' is missing"),
        ("counts", STORAGE, 7, "its storage has the unknown number 7"),
        ("counts", WIDTH, 6, "its members have 6 features of 5"),
        ("counts", SLOT_UP, 10**9, "the extreme slot 1000000000 is not among"),
        ("counts", SLOT_UP, -1, "members may go up, but none is extreme"),
        ("extremes", 0, 5.0, r"slot \d+ is not extreme"),
        ("n_features", 0, 2**45, "it has 35184372088832 features, but 5 names"),
        ("starts", 3, 2**40, "'starts' does not rise from 0"),
        ("starts", -1, 2**40, "'starts' does not fit the features"),
        ("y", -1, 3, "a label is neither -1 nor 1"),
        ("alpha", 0, 1e9, "a coefficient is outside its box"),
        ("alpha", 0, np.nan, "'alpha' holds numbers that are not finite"),
        ("hi", 0, np.inf, "'hi' holds numbers that are not finite"),
        ("lo", slice(None), -1.0, "a box does not begin at 0"),
        ("g", 0, 1e30, "a gradient is too large"),
        ("up", slice(None), 0.0, "'up' does not fit the boxes"),
        ("down", slice(None), 0.0, "'down' does not fit the boxes"),
        ("born", 0, 2**62 + 2**60, "an example's age is too large"),
        ("features", (0, 0), np.nan, "'features' holds numbers that are not finite"),
        ("sq", 0, 1e37, "a squared norm is negative or too large"),
        ("sq", 0, 0.0, "'sq' does not fit the features"),
        ("self_k", 0, 2.0, "'self_k' does not fit the features and the kernel"),
        ("sigmoid", 0, -1.0, "the sigmoid has the slopes"),
    ],
)
def test_what_is_wrong_with_an_array_is_named(dense, name, place, value, problem):
    with pytest.raises(SnapshotError, match=problem):
        LASVM.from_bytes(changed(dense, name, place, value))


@pytest.mark.parametrize(
    ("name", "place", "value", "problem"),
    [
        ("sparse_indices", 0, 2**30, r"a feature is not among \d+"),
        ("sparse_indices", 0, -1, r"a feature is not among \d+"),
        ("sparse_indices", slice(0, 2), 5, "the features of a slot are not in order"),
        ("sparse_values", 0, np.inf, "'sparse_values' holds numbers that are not finite"),
        ("starts", -1, 10**6, "'sparse_indices' is int32 of shape"),
    ],
)
def test_what_is_wrong_with_compressed_features_is_named(compressed, name, place, value, problem):
    with pytest.raises(SnapshotError, match=problem):
        LASVM.from_bytes(changed(compressed, name, place, value))


@pytest.mark.parametrize("change", ["missing", "type", "size"])
def test_every_array_must_be_there_and_of_its_type_and_size(dense, change):
    meta, arrays = unpack(dense, "LASVM")
    for name in [name for name in arrays if name not in ("born", "losses") or change != "missing"]:
        array = arrays[name]
        longer = np.append(array.ravel(), array.ravel()[:1])
        others = {"missing": None, "type": np.zeros(array.shape, np.int16), "size": longer}
        spoiled = {k: v for k, v in (arrays | {name: others[change]}).items() if v is not None}
        with pytest.raises(SnapshotError):
            LASVM.from_bytes(pack("LASVM", meta, spoiled))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"n_seen": -1}, "'n_seen' in the snapshot is -1; it must be a count"),
        ({"n_seen": 2**70}, "'n_seen' in the snapshot is 1180591620717411303424; it must be a count"),
        ({"n_seen": 3.0}, "'n_seen' in the snapshot is '3.0'; it must be of type int"),
        ({"features": ["f0"] * 5}, "the 5 features of a snapshot are 1 different ones"),
        ({"features": ["a", "b", "c", "d", []]}, r"\[\] among the features of a snapshot is not a string"),
        ({"features": ["a"]}, "it has 5 features, but 1 names of features"),
        ({"parameters": {"C": -1.0}}, "C=-1.0 must be a positive finite number"),
        ({"parameters": {"cache_mb": 1e300}}, "content of this 'LASVM' snapshot is invalid"),
        ({"parameters": {"C": 1e16}}, r"C=1e\+16 with pos_weight=1.0 is too large"),
        ({"parameters": {"reprocess": 10**30}}, "the parameter 'reprocess' is too large"),
        ({"parameters": {"gamma": []}}, "'gamma' in the snapshot is"),
        ({"parameters": {"window": {"weeks": 3}}}, "'microseconds' in the snapshot is"),
        ({"parameters": {"unheard_of": 1}}, "unheard_of"),
        ({"parameters": 3}, "'parameters' in the snapshot is '3'; it must be of type dict"),
        ({"parameters": {"kernel": "poly", "degree": 10**9}}, "degree=1000000000 must be an integer from 1 to 1000"),
    ],
)
def test_what_is_wrong_with_the_header_is_named(dense, changes, problem):
    meta, arrays = unpack(dense, "LASVM")
    with pytest.raises(SnapshotError, match=problem):
        LASVM.from_bytes(pack("LASVM", meta | changes, arrays))


def test_the_vectors_of_a_class_must_be_those_of_all_classes():
    rows, _ = fuzz_snapshot.problem(60, 4)
    model = fuzz_snapshot.learned(OneVsRest(LASVM(C=10.0)), rows, np.arange(60) % 3)
    meta, arrays = unpack(model.to_bytes(), "OneVsRest")
    for name, place, value, problem in (
        ("1.ids", 0, 59_999, "the vectors of 1 are not stored"),
        ("union.ids", 0, 10**9, "do not rise"),
        ("union.ids", -1, 60, "is not below n_seen=60"),
    ):
        spoiled = {key: array.copy() for key, array in arrays.items()}
        spoiled[name][place] = value
        with pytest.raises(SnapshotError, match=problem):
            OneVsRest.from_bytes(pack("OneVsRest", meta, spoiled))
    for changes in ({"labels": [0, 0, 1]}, {"labels": [[], 1, 2]}, {"classes": list(range(1000))}, {"algorithm": []}):
        with pytest.raises(SnapshotError):
            OneVsRest.from_bytes(pack("OneVsRest", meta | changes, arrays))


def test_scalers_and_estimates_are_checked_too():
    rows, y = fuzz_snapshot.problem(60, 4)
    scaler = WarmupScaler()
    for x in rows:
        scaler.learn_one(x)
    meta, arrays = unpack(scaler.to_bytes(), "WarmupScaler")
    arrays["statistics"][0, 1] = np.nan
    with pytest.raises(SnapshotError, match="'statistics' holds numbers that are not finite"):
        WarmupScaler.from_bytes(pack("WarmupScaler", meta, arrays))
    loo = fuzz_snapshot.learned(StreamingLOO(LASVM(), memory=20, share=0), rows, y)
    meta, arrays = unpack(loo.to_bytes(), "StreamingLOO")
    for name, place, value in (("columns", 0, 99), ("columns", 0, -1), ("starts", 1, 10**9), ("w", 0, -1.0)):
        spoiled = {key: array.copy() for key, array in arrays.items()}
        spoiled[name][place] = value
        with pytest.raises(SnapshotError, match="content is invalid"):
            StreamingLOO.from_bytes(pack("StreamingLOO", meta, spoiled), LASVM())
    with pytest.raises(SnapshotError, match="turns"):
        StreamingLOO.from_bytes(pack("StreamingLOO", meta | {"turns": [1, -1, 0]}, arrays), LASVM())


def test_a_field_says_what_it_must_be():
    assert field({"a": None}, "a", int, type(None)) is None
    with pytest.raises(SnapshotError, match="'a' in the snapshot is 'None'; it must be of type int or str"):
        field({}, "a", int, str)
    with pytest.raises(SnapshotError, match="'a' in the snapshot is 'True'"):
        field({"a": True}, "a", int)
