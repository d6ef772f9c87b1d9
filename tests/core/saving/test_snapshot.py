"""The snapshot container: what goes in comes out, and nothing damaged or unknown is ever accepted."""

import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import SnapshotError, pack, unpack

DTYPES = ["bool", "int8", "int64", "uint16", "uint64", "float32", "float64"]
HEADER_START = 28
SMALL = pack("Small", {"C": 10.0}, {"alpha": np.array([0.5, -0.5]), "ids": np.array([3, 7])})

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
stored_arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
)


def forged(header, body=b"", number=snapshot.FORMAT):
    """A snapshot with a right checksum around whatever header a strange writer could think of."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    padding = bytes(-(HEADER_START + len(text)) % 64)
    total = HEADER_START + len(text) + len(padding) + len(body) + 32
    content = struct.pack("<8sIQQ", snapshot.MAGIC, number, len(text), total) + text + padding + body
    return content + hashlib.sha256(content).digest()


def one_array(**changes):
    entry = {"name": "a", "dtype": "<f8", "shape": [2], "offset": 0} | changes
    return forged({"kind": "K", "meta": {}, "arrays": [entry]}, body=bytes(64))


def two_arrays(offset, name="b"):
    entries = [{"name": "a", "dtype": "<f8", "shape": [9], "offset": 0}]
    entries.append({"name": name, "dtype": "<f8", "shape": [8], "offset": offset})
    return forged({"kind": "K", "meta": {}, "arrays": entries}, body=bytes(192))


def boolean(byte):
    entry = {"name": "a", "dtype": "|b1", "shape": [1], "offset": 0}
    return forged({"kind": "K", "meta": {}, "arrays": [entry]}, body=bytes([byte]) + bytes(63))


@given(kind=st.text(), meta=st.dictionaries(st.text(), json_values), arrays=st.dictionaries(st.text(), stored_arrays))
def test_what_was_packed_is_unpacked(kind, meta, arrays):
    data = pack(kind, meta, arrays)
    meta_again, arrays_again = unpack(data, kind)
    assert meta_again == meta
    assert arrays_again.keys() == arrays.keys()
    for name, array in arrays.items():
        again = arrays_again[name]
        assert (again.dtype, again.shape, again.tobytes()) == (array.dtype, array.shape, array.tobytes())
        assert again.flags.writeable
        assert again.flags.c_contiguous
    assert pack(kind, meta_again, arrays_again) == data


def test_bytes_do_not_depend_on_the_order_of_names():
    a, b = np.arange(3), np.ones((2, 2))
    assert pack("K", {"x": 1, "y": 2}, {"a": a, "b": b}) == pack("K", {"y": 2, "x": 1}, {"b": b, "a": a})


def test_memory_layout_and_byte_order_of_the_input_do_not_matter():
    matrix = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = pack("K", {}, {"a": matrix})
    assert pack("K", {}, {"a": np.asfortranarray(matrix)}) == expected
    assert pack("K", {}, {"a": matrix.astype(">i4")}) == expected
    assert pack("K", {}, {"a": np.repeat(matrix, 2, axis=1)[:, ::2]}) == expected


def test_arrays_lie_at_multiples_of_64_bytes():
    marker = np.frombuffer(b"sixteen letters!", dtype=np.uint8)
    data = pack("K", {}, {"a": np.ones(3, dtype=np.int8), "b": marker})
    assert data.index(marker.tobytes()) % 64 == 0


def test_the_format_is_the_documented_one():
    """These bytes are on people's disks: if this fails, FORMAT has to change."""
    assert hashlib.sha256(SMALL).hexdigest() == "2f73b4d0818293b958f3307af486555caef6e87cfdd45c962c966471d0ab3afa"
    assert unpack(SMALL, "Small")[0] == {"C": 10.0}


@pytest.mark.parametrize("length", range(len(SMALL)))
def test_every_truncation_is_refused(length):
    with pytest.raises(SnapshotError, match="not a streamsvm snapshot" if length < HEADER_START else "truncated"):
        unpack(SMALL[:length], "Small")


def test_every_flipped_byte_is_refused():
    for position in range(len(SMALL)):
        damaged = bytearray(SMALL)
        damaged[position] ^= 0x41
        with pytest.raises(SnapshotError):
            unpack(bytes(damaged), "Small")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a streamsvm snapshot"),
        (b"\x80\x04" + bytes(100), "not a streamsvm snapshot"),
        (SMALL.replace(b"\r\n", b"\n"), "not a streamsvm snapshot"),
        (forged({}, number=7), "newer streamsvm: snapshot format 7, this version reads 3"),
        (forged({}, number=0), "unknown snapshot format 0, this version reads 3"),
        (SMALL[:-1], f"truncated: {len(SMALL) - 1} of {len(SMALL)} bytes"),
        (SMALL + b"x", "do not fit the lengths"),
        (SMALL[:-1] + bytes([SMALL[-1] ^ 1]), "checksum does not match"),
        (SMALL, "this is a 'Small' snapshot, expected 'K'"),
        (forged(b"{"), "header is not JSON"),
        (forged([]), "lacks its kind, meta or arrays"),
        (forged({"kind": "K", "meta": {}}), "lacks its kind, meta or arrays"),
        (one_array(dtype="|O"), r"array 'a' has dtype '\|O'"),
        (one_array(dtype="<U4"), "array 'a' has dtype '<U4'"),
        (one_array(name=3), "invalid array entry"),
        (one_array(shape=[-2]), "must be counts"),
        (one_array(shape=["2"]), "must be counts"),
        (one_array(offset=-8), "must be counts"),
        (one_array(shape=[9]), "lies outside"),
        (one_array(shape=[2**70]), "lies outside"),
        (one_array(offset=64), "does not follow the one before"),
        (one_array(shape=[2**62, 0]), "lies outside"),
        (one_array(shape=[True]), "must be counts"),
        (one_array(shape=[1] * 33), "33 dimensions; at most 32"),
        (two_arrays(0), "does not follow the one before"),
        (two_arrays(128, name="a"), "occurs twice"),
        (boolean(2), "neither true nor false"),
        (forged(b'{"kind":"K","arrays":[],"meta":{"x":' + b"[" * 500 + b"]" * 500 + b"}}"), "more than 32 levels"),
        (forged(b'{"kind":"K","arrays":[],"meta":{"x":' + b"[" * 100_000 + b"}}"), "too many lists and objects"),
        (forged({"kind": "K", "arrays": [], "meta": {"x": [[]] * 100_000}}), "too many lists and objects"),
        (forged(b'{"kind":"K","arrays":[],"meta":{"x":NaN}}'), "NaN is not a number"),
        (forged(b'{"kind":"K","arrays":[],"meta":{"x":"' + rb"\"" * 100_000), "header is not JSON"),
    ],
)
def test_what_is_wrong_is_named(data, message):
    with pytest.raises(SnapshotError, match=message):
        unpack(data, "K")


def test_a_header_longer_than_the_snapshot_is_refused():
    data = bytearray(SMALL)
    data[12:20] = (2**60).to_bytes(8, "little")
    with pytest.raises(SnapshotError, match="do not fit the lengths"):
        unpack(bytes(data), "Small")


@pytest.mark.parametrize("array", [np.array([{}]), np.array(["a"]), np.array([1j]), np.array(["2020-01-01"], "M8[D]")])
def test_arrays_that_need_more_than_raw_numbers_are_not_packed(array):
    with pytest.raises(SnapshotError, match="array 'alpha' has dtype"):
        pack("K", {}, {"alpha": array})


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"x": float("nan")}, "not JSON compliant"),
        ({"x": float("inf")}, "not JSON compliant"),
        ({"x": np.int64(1)}, "not JSON serializable"),
        ({"x": (1, 2)}, "lists for tuples"),
        ({"x": {1: 2}}, "string keys"),
    ],
)
def test_meta_that_json_cannot_hold_is_not_packed(meta, message):
    with pytest.raises(SnapshotError, match=message):
        pack("K", meta, {})


def test_files_are_replaced_and_read_back(tmp_path):
    path = tmp_path / "model.ssvm"
    snapshot.write_atomic(path, b"old and much longer than a snapshot" * 100)
    snapshot.write_atomic(str(path), SMALL)
    assert snapshot.read(path) == SMALL
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.ssvm"
    snapshot.write_atomic(path, SMALL)

    def disk_full(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(snapshot.os, "fsync", disk_full)
    for _ in range(3):
        with pytest.raises(OSError, match="no space left"):
            snapshot.write_atomic(path, b"new")
    assert snapshot.read(path) == SMALL
    assert len(list(tmp_path.iterdir())) <= 2  # attempts do not pile up


def test_data_are_synced_before_and_the_folder_after_the_rename(tmp_path, monkeypatch):
    steps = []
    real_fsync, real_replace = snapshot.os.fsync, snapshot.os.replace
    monkeypatch.setattr(snapshot.os, "fsync", lambda descriptor: (steps.append("sync"), real_fsync(descriptor)))
    monkeypatch.setattr(snapshot.os, "replace", lambda a, b: (steps.append("rename"), real_replace(a, b)))
    snapshot.write_atomic(tmp_path / "model.ssvm", SMALL)
    assert steps == ["sync", "rename", "sync"]


def test_reading_a_damaged_file_names_it(tmp_path):
    path = tmp_path / "model.ssvm"
    path.write_bytes(SMALL[:-5])
    with pytest.raises(SnapshotError, match=r"model\.ssvm: snapshot is truncated"):
        snapshot.read(path)


def levels_and_lists(text):
    """How deeply a header is nested, and how many lists and objects it has; brackets in strings do not count."""
    depth = deepest = n = 0
    in_string = is_escaped = False
    for letter in text:
        if in_string:
            in_string = is_escaped or letter != '"'
            is_escaped = letter == "\\" and not is_escaped
        elif letter == '"':
            in_string = True
        elif letter in "[{":
            depth, n = depth + 1, n + 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth -= 1
    return deepest, n


nested = st.recursive(st.text('a"\\[]{}', max_size=4), lambda inner: st.lists(inner, max_size=3), max_leaves=20)


@given(nested, st.integers(0, 40))
def test_what_is_nested_too_deeply_is_refused_before_it_is_parsed(content, n_around):
    for _ in range(n_around):
        content = [content]
    text = json.dumps({"kind": "K", "arrays": [], "meta": {"x": content}})
    is_fine = levels_and_lists(text)[0] <= 32
    if is_fine:
        assert unpack(forged(text.encode()), "K")[0] == {"x": content}
    else:
        with pytest.raises(SnapshotError, match="more than 32 levels"):
            unpack(forged(text.encode()), "K")
