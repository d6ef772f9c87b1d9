"""The bytes of a snapshot, and the checks that refuse damaged ones.

Layout (all integers little-endian)::

    8 bytes    magic, with bytes that a transfer in text mode would change
    uint32     format number
    uint64     length of the header in bytes
    uint64     length of the whole snapshot in bytes
    header     JSON: kind, meta, and per array its name, dtype, shape and offset from the first array
    arrays     raw, little-endian, C order, each at a multiple of 64 bytes
    32 bytes   sha256 of everything before it

A change of this layout, or of what a kind stores, needs a new ``FORMAT``.
"""

import hashlib
import json
import math
import re
import struct
import sys
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

MAGIC = b"\x89SSVM\r\n\x1a"
FORMAT = 3  # 1 had no scale of a model whose gamma is a number, which did not shift; 1 and 2, no features apart
PRELUDE = struct.Struct("<8sIQQ")
DIGEST_SIZE = hashlib.sha256().digest_size
_ALIGNMENT = 64  # bytes of a cache line
_MAX_DEPTH = 32  # of the header, and of an array: whether more can be read depends on the interpreter and on numpy
_CONTAINER_BYTES = 6  # of the header for each list and object after the first thousand: one takes 60 in memory
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*"?', re.DOTALL)  # in JSON; an unfinished one goes to the end of the text
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_NO_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
_IS_LITTLE_ENDIAN = sys.byteorder == "little"
_CODES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
_DTYPES = {code: np.dtype(code) for code in _CODES}
_NATIVE = {code: dtype.newbyteorder("=") for code, dtype in _DTYPES.items()}
_AS_STORED = {dtype: code for code, dtype in _DTYPES.items() if dtype.isnative}
_ENTRY = {"name", "dtype", "shape", "offset"}
_FEW = 64  # arrays of a list of arrays that is remembered
_SHORT = 128 * _FEW  # bytes of such a list
_BEFORE_ARRAYS, _BEHIND_ARRAYS = b'{"arrays":[', b'],"kind":'
_PADDING = [bytes(n) for n in range(_ALIGNMENT)]


class SnapshotError(ValueError):
    """The bytes are not a usable snapshot, or a snapshot cannot hold the content."""


def _refused(name: str, dtype: str) -> str:
    return f"array {name!r} has dtype {dtype!r}; a snapshot holds bool, integers, float32 and float64"


def raw_of(name: str, array: np.ndarray | bytes) -> np.ndarray:
    """The array in C order and little-endian, copied only if it is not so already."""
    if type(array) is np.ndarray and array.dtype in _AS_STORED and array.flags.c_contiguous:
        return array
    if isinstance(array, bytes):
        return np.frombuffer(array, np.uint8)
    dtype = np.asarray(array).dtype.newbyteorder("<")
    if dtype.str not in _DTYPES:
        raise SnapshotError(_refused(name, dtype.str))
    return np.asarray(array, dtype=dtype, order="C")


def header_of(kind: str, meta: dict[str, Any], raw: dict[str, np.ndarray]) -> tuple[bytes, int]:
    """The JSON header, and the length of its arrays; offsets count from the first array."""
    listed = _listed if len(raw) <= _FEW else _listed.__wrapped__
    entries, offset = listed(tuple([(name, array.dtype, array.shape) for name, array in raw.items()]))
    try:
        written = _written(meta)
    except (TypeError, ValueError) as error:
        raise SnapshotError(f"meta of a {kind!r} snapshot cannot be written as JSON: {error}") from error
    if json.loads(written) != meta:
        raise SnapshotError(f"meta of a {kind!r} snapshot changes in JSON: use string keys, and lists for tuples")
    text = f'{{"arrays":[{entries}],"kind":{_quoted(kind)},"meta":{written}}}'
    return text.encode("ascii"), offset


@lru_cache(maxsize=512)
def _listed(arrays: tuple[tuple[str, np.dtype, tuple[int, ...]], ...]) -> tuple[str, int]:
    """The header's list of these arrays, and their length."""
    entries, offset = [], 0
    for name, dtype, shape in arrays:
        code, lengths = _AS_STORED.get(dtype) or dtype.str, ",".join(map(str, shape))
        entries.append(f'{{"dtype":"{code}","name":{_quoted(name)},"offset":{offset},"shape":[{lengths}]}}')
        offset += aligned(math.prod(shape) * dtype.itemsize)
    return ",".join(entries), offset


_written = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":")).encode
_quoted = lru_cache(maxsize=256)(json.dumps)  # names recur in every snapshot


def aligned(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


def octets(array: np.ndarray) -> memoryview:
    """The bytes of a C-contiguous array, without copying them."""
    return array.reshape(-1).view(np.uint8).data


def padding(length: int) -> bytes:
    """What follows so many bytes, up to the next multiple of 64."""
    return _PADDING[-length % _ALIGNMENT]


def sha256(chunks: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def verify(data: bytes) -> int:
    """Check the bytes around the header's content; return the header's length."""
    if len(data) < PRELUDE.size or data[: len(MAGIC)] != MAGIC:
        raise SnapshotError(f"not a streamsvm snapshot: {len(data)} bytes beginning with {data[:8]!r}")
    _, number, header_length, total = PRELUDE.unpack_from(data)
    if number > FORMAT:
        raise SnapshotError(f"written by a newer streamsvm: snapshot format {number}, this version reads {FORMAT}")
    if number < 1:
        raise SnapshotError(f"unknown snapshot format {number}, this version reads {FORMAT}")
    if len(data) < total:
        raise SnapshotError(f"snapshot is truncated: {len(data)} of {total} bytes")
    if len(data) != total or aligned(PRELUDE.size + header_length) + DIGEST_SIZE > total:
        raise SnapshotError(f"snapshot is damaged: {len(data)} bytes do not fit the lengths written at its start")
    if sha256([memoryview(data)[:-DIGEST_SIZE]]) != data[-DIGEST_SIZE:]:
        raise SnapshotError("snapshot is damaged: its sha256 checksum does not match")
    return header_length


def parsed(text: bytes) -> dict[str, Any]:
    _require_simple(text)
    try:
        header = _read(text.decode())
    except ValueError as error:
        raise SnapshotError(f"snapshot header is not JSON: {error}") from error
    match header:
        case {"kind": str(), "meta": dict(), "arrays": list()}:
            return header
    raise SnapshotError("snapshot header lacks its kind, meta or arrays")


def _require_simple(text: bytes) -> None:
    """Refuse a header that is nested too deeply, or takes many times its length in memory."""
    marks = text if b"\\" in text else text.translate(None, _NO_MARKS)  # strings end at a quote that is not escaped
    brackets = marks.replace(b'""', b"")  # all strings, if none of them has a bracket
    if b'"' in brackets:
        brackets = _STRING.sub(b"", marks).translate(None, _NO_BRACKETS)
    if len(brackets) // 2 > 1000 + len(text) // _CONTAINER_BYTES:
        raise SnapshotError(f"snapshot header has too many lists and objects for its {len(text)} bytes")
    rest = brackets
    for _ in range(_MAX_DEPTH // 2):  # Each turn takes away one or two levels of a header whose brackets are in pairs.
        rest = rest.replace(b"[]", b"").replace(b"{}", b"")
        if not rest:
            return
    if max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0) > _MAX_DEPTH:
        raise SnapshotError(f"snapshot header is nested more than {_MAX_DEPTH} levels deep")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


_read = json.JSONDecoder(parse_constant=_no_number).decode


class Place(NamedTuple):
    """Where an array lies behind the header, and how to read it."""

    name: str
    code: str
    shape: tuple[int, ...]
    offset: int


class Places(NamedTuple):
    """The places of all arrays, the end of the last one, and the largest length of a dimension."""

    places: tuple[Place, ...]
    end: int
    largest: int


def described(text: bytes) -> tuple[dict[str, Any], Places]:
    """The header, and the places of its arrays.

    Thousands of small models have equally many members, so the part of the header that lists the arrays is often the
    same.  It is then read and checked once.
    """
    end = text.find(_BEHIND_ARRAYS)
    if not (0 < end <= _SHORT and text.startswith(_BEFORE_ARRAYS)):
        header = parsed(text)
        return header, _places_of(header["arrays"])
    places = _places_in(text[:end])
    return parsed(_BEFORE_ARRAYS + text[end:]), places


@lru_cache(maxsize=512)
def _places_in(beginning: bytes) -> Places:
    """The places that the beginning of a header lists, up to the end of its list."""
    return _places_of(parsed(beginning + _BEHIND_ARRAYS + b'"","meta":{}}')["arrays"])


def _places_of(entries: list[Any]) -> Places:
    """The places of the arrays.  They lie end to end, so that they take no more memory than the snapshot."""
    places: list[Place] = []
    names: set[str] = set()
    end = largest = 0
    for entry in entries:
        place, n_bytes = _place(entry)
        if place.name in names or place.offset != end:
            raise SnapshotError(
                f"array {place.name!r} at offset {place.offset} occurs twice, or does not follow the one before"
            )
        places.append(place)
        names.add(place.name)
        end, largest = end + aligned(n_bytes), max((largest, *place.shape))
    return Places(tuple(places), end, largest)


def _place(entry: Any) -> tuple[Place, int]:
    """The place of an array and its length in bytes, after checks against a faulty or hostile writer."""
    if type(entry) is not dict or not entry.keys() >= _ENTRY:
        raise _invalid(entry)
    name, code, shape, offset = entry["name"], entry["dtype"], entry["shape"], entry["offset"]
    if type(name) is not str or type(code) is not str or type(shape) is not list:
        raise _invalid(entry)
    if code not in _DTYPES:
        raise SnapshotError(_refused(name, code))
    if len(shape) > _MAX_DEPTH:
        raise SnapshotError(f"array {name!r} has {len(shape)} dimensions; at most {_MAX_DEPTH} are read")
    if not all(type(n) is int and n >= 0 for n in (offset, *shape)):
        raise SnapshotError(f"array {name!r} has shape {shape} and offset {offset}; these must be counts")
    return Place(name, code, tuple(shape), offset), math.prod(shape) * _DTYPES[code].itemsize


def arrays_of(data: bytes, body_start: int, places: Places) -> dict[str, np.ndarray]:
    """The arrays by name, which lie in one writable copy of the snapshot's bytes."""
    end = len(data) - DIGEST_SIZE
    if body_start + places.end > end or places.largest > end:
        raise SnapshotError(f"an array lies outside the snapshot, whose arrays end at {end - body_start}")
    body = np.ndarray(places.end, np.uint8, data, body_start).copy()
    arrays = {}
    for name, code, shape, offset in places.places:
        array = np.ndarray(shape, _DTYPES[code], body, offset)
        if code == "|b1" and array.view(np.uint8).max(initial=0) > 1:
            raise SnapshotError(f"array {name!r} holds bytes that are neither true nor false")
        arrays[name] = array if _IS_LITTLE_ENDIAN else array.astype(_NATIVE[code])
    return arrays


def _invalid(entry: Any) -> SnapshotError:
    return SnapshotError(f"snapshot header has an invalid array entry: {str(entry)[:200]}")
