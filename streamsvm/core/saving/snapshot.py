"""The container of stored models and checkpoints: named arrays and a JSON header, never pickle.

Layout (all integers little-endian)::

    8 bytes    magic, with bytes that a transfer in text mode would change
    uint32     format number
    uint64     length of the header in bytes
    uint64     length of the whole snapshot in bytes
    header     JSON: kind, meta, and per array its name, dtype, shape and offset from the first array
    arrays     raw, little-endian, C order, each at a multiple of 64 bytes
    32 bytes   sha256 of everything before it

The same input always gives the same bytes, so snapshots can be compared and deduplicated by their digest.
A change of this layout, or of what a kind stores, needs a new ``FORMAT``.
"""

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = b"\x89SSVM\r\n\x1a"
FORMAT = 1
LARGEST_COUNT = 2**62  # of examples: sums of two fit into 64 bits

_PRELUDE = struct.Struct("<8sIQQ")
_DIGEST_SIZE = hashlib.sha256().digest_size
_ALIGNMENT = 64
_MAX_DEPTH = 32  # of the header; beyond that, whether it can be parsed depends on the interpreter
_CONTAINER_BYTES = 6  # of the header for each list and object after the first thousand: one takes 60 in memory
_MAX_DIMENSIONS = 8
_STRING = re.compile(rb'"(?:[^"\\]|\\.?)*"?', re.DOTALL)  # in JSON; an unfinished one goes to the end of the text
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STUMBLES = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
_DTYPES = frozenset({"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"})


Arrays = Mapping[str, np.ndarray]


class SnapshotError(ValueError):
    """The bytes are not a usable snapshot, or a snapshot cannot hold the content."""


def pack(kind: str, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Write named arrays and plain values into one self-checking byte string.

    Parameters
    ----------
    kind
        The kind of content, such as ``"LASVM"``; `unpack` must be given the same.
    meta
        Plain values: dicts with string keys, lists, strings, numbers, booleans, None; no NaN or infinity.
    arrays
        Boolean, integer, float32 or float64 arrays of any shape, by name.

    Returns
    -------
    bytes
        The snapshot; equal input gives equal bytes.

    Raises
    ------
    SnapshotError
        If `meta` changes in JSON, or an array has another dtype.

    Examples
    --------
    >>> import numpy as np
    >>> data = pack("Example", {"C": 10.0}, {"alpha": np.array([0.5, -0.5])})
    >>> unpack(data, "Example")
    ({'C': 10.0}, {'alpha': array([ 0.5, -0.5])})
    """
    raw = {name: _raw(name, arrays[name]) for name in sorted(arrays)}
    header, body_length = _header(kind, meta, raw)
    body_start = _aligned(_PRELUDE.size + len(header))
    total = body_start + body_length + _DIGEST_SIZE

    chunks: list[bytes | memoryview] = [_PRELUDE.pack(MAGIC, FORMAT, len(header), total), header]
    chunks.append(bytes(body_start - _PRELUDE.size - len(header)))
    for array in raw.values():
        chunks += [_octets(array), bytes(_aligned(array.nbytes) - array.nbytes)]
    return b"".join([*chunks, _sha256(chunks)])


def unpack(data: bytes, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read back what `pack` wrote.

    Parameters
    ----------
    data
        A snapshot.
    kind
        The kind that the caller can use.

    Returns
    -------
    meta, arrays
        The values given to `pack`; the arrays are writable copies in native byte order.

    Raises
    ------
    SnapshotError
        If `data` is not a snapshot, has an unknown format, is truncated or damaged, is of another kind, or describes
        impossible arrays.
    """
    header_length = _verify(data)
    header = _parse(data[_PRELUDE.size : _PRELUDE.size + header_length])
    if header["kind"] != kind:
        raise SnapshotError(f"this is a {header['kind']!r} snapshot, expected {kind!r}")
    body_start = _aligned(_PRELUDE.size + header_length)
    return header["meta"], _arrays(data, body_start, header["arrays"])


@contextmanager
def guarded(
    problem: str, error: type[ValueError] = SnapshotError, passing: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Raise one kind of error for everything that damaged content makes its reader raise.

    A checksum finds damage to a file.  This finds content that was damaged before it was written, or by intent.

    Parameters
    ----------
    problem
        The beginning of the message, such as a path and what cannot be used.
    error
        The kind of error to raise.
    passing
        Other errors that already say what is wrong; these, `error` and `SnapshotError` pass unchanged.
    """
    try:
        yield
    except _STUMBLES as stumble:
        if isinstance(stumble, (SnapshotError, error, *passing)):
            raise
        reason = f"{stumble} is missing" if isinstance(stumble, KeyError) else str(stumble) or type(stumble).__name__
        raise error(f"{problem}: {reason[:500]}") from stumble


def reading(kind: str) -> AbstractContextManager[None]:
    """Raise a SnapshotError for everything that a snapshot's damaged content makes its reader raise."""
    return guarded(f"the content of this {kind!r} snapshot is invalid")


def require(condition: object, problem: str) -> None:
    """Raise a SnapshotError unless the condition is true."""
    if not condition:
        raise SnapshotError(f"the snapshot's content is invalid: {problem}")


def require_array(arrays: Arrays, name: str, dtype: type | str, shape: tuple[int | None, ...]) -> np.ndarray:
    """Take an array from a snapshot, after a check of its type and shape.

    Parameters
    ----------
    arrays
        The arrays of the snapshot.
    name
        The name of this one.
    dtype
        Its dtype, or the kind of its dtype: ``"b"``, ``"i"``, ``"u"`` or ``"f"``.
    shape
        Its shape; None stands for any length.

    Raises
    ------
    SnapshotError
        If it is missing, or of another dtype or shape.

    Examples
    --------
    >>> require_array({"alpha": np.array([0.5, -0.5])}, "alpha", "f", (None,))
    array([ 0.5, -0.5])
    """
    require(name in arrays, f"the array {name!r} is missing")
    found = arrays[name]
    fits = found.dtype.kind == dtype if isinstance(dtype, str) else found.dtype == dtype
    fits = fits and found.ndim == len(shape)
    if not fits or any(wanted not in (None, n) for wanted, n in zip(shape, found.shape, strict=True)):
        wanted = f"kind {dtype!r}" if isinstance(dtype, str) else str(np.dtype(dtype))
        lengths = str(shape).replace("None", "any")
        require(False, f"the array {name!r} is {found.dtype} of shape {found.shape}; it must be {wanted}, {lengths}")
    return found


def require_finite(arrays: Arrays, *names: str) -> None:
    """Raise a SnapshotError unless all numbers of these arrays are finite."""
    for name in names:
        require(np.isfinite(arrays[name]).all(), f"{name!r} holds numbers that are not finite")


def field(meta: Mapping[str, Any], name: str, *types: type) -> Any:
    """Take a value from a snapshot's meta, after a check of its type.

    Raises
    ------
    SnapshotError
        If it is missing, or of none of these types.

    Examples
    --------
    >>> field({"n_seen": 3}, "n_seen", int)
    3
    """
    value = meta.get(name)
    if name not in meta or type(value) not in types:
        wanted = " or ".join(kind.__name__ for kind in types)
        raise SnapshotError(f"{name!r} in the snapshot is {str(value)[:100]!r}; it must be of type {wanted}")
    return value


def count(meta: Mapping[str, Any], name: str) -> int:
    """Take a count from a snapshot's meta, or raise a SnapshotError."""
    value: int = field(meta, name, int)
    if not 0 <= value <= LARGEST_COUNT:
        raise SnapshotError(f"{name!r} in the snapshot is {value}; it must be a count, at most 2^62")
    return value


def kind_of(data: bytes) -> str:
    """The kind of a snapshot, for `unpack`.

    Raises
    ------
    SnapshotError
        If `data` is not a snapshot, is truncated or is damaged.

    Examples
    --------
    >>> kind_of(pack("Example", {}, {}))
    'Example'
    """
    length = _verify(data)
    return _parse(data[_PRELUDE.size : _PRELUDE.size + length])["kind"]


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file by new content: a crash at any moment leaves either the old file or the new one.

    The data go to a hidden temporary file in the same folder, which is synced and then renamed.  Its name is fixed, so
    crashes leave at most one behind.  Two processes must not write the same path at once.

    Parameters
    ----------
    path
        File to create or replace; its folder must exist.
    data
        The whole new content.

    Raises
    ------
    OSError
        If the folder is missing or cannot be written.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, target)
    _sync_folder(target.parent)


def read(path: str | os.PathLike[str]) -> bytes:
    """Read a snapshot file and check that it is whole.

    Parameters
    ----------
    path
        A file written by `write_atomic`.

    Returns
    -------
    bytes
        The snapshot, for `unpack`.

    Raises
    ------
    SnapshotError
        If the file is not a snapshot, is truncated or is damaged; the message names the file.
    OSError
        If the file cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        _verify(data)
    except SnapshotError as error:
        raise SnapshotError(f"{os.fspath(path)}: {error}") from None
    return data


def _refused(name: str, dtype: str) -> str:
    return f"array {name!r} has dtype {dtype!r}; a snapshot holds bool, integers, float32 and float64"


# --- writing ----------------------------------------------------------------------------------------------------------


def _raw(name: str, array: np.ndarray) -> np.ndarray:
    """The array in C order and little-endian, copied only if it is not so already."""
    dtype = np.asarray(array).dtype.newbyteorder("<")
    if dtype.str not in _DTYPES:
        raise SnapshotError(_refused(name, dtype.str))
    return np.asarray(array, dtype=dtype, order="C")


def _header(kind: str, meta: dict[str, Any], raw: dict[str, np.ndarray]) -> tuple[bytes, int]:
    """The JSON header, and the length of its arrays; offsets count from the first array."""
    entries, offset = [], 0
    for name, array in raw.items():
        entries.append({"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "offset": offset})
        offset += _aligned(array.nbytes)
    content = {"kind": kind, "meta": meta, "arrays": entries}
    try:
        text = json.dumps(content, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise SnapshotError(f"meta of a {kind!r} snapshot cannot be written as JSON: {error}") from error
    if json.loads(text)["meta"] != meta:
        raise SnapshotError(f"meta of a {kind!r} snapshot changes in JSON: use string keys, and lists for tuples")
    return text.encode("ascii"), offset


def _aligned(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


def _octets(array: np.ndarray) -> memoryview:
    """The bytes of a C-contiguous array, without copying them."""
    return array.reshape(-1).view(np.uint8).data


def _sha256(chunks: Iterable[bytes | memoryview]) -> bytes:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.digest()


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder durable; only POSIX systems can open a folder for this."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- reading ----------------------------------------------------------------------------------------------------------


def _verify(data: bytes) -> int:
    """Check the bytes around the header's content; return the header's length."""
    if len(data) < _PRELUDE.size or data[: len(MAGIC)] != MAGIC:
        raise SnapshotError(f"not a streamsvm snapshot: {len(data)} bytes beginning with {data[:8]!r}")
    _, number, header_length, total = _PRELUDE.unpack_from(data)
    if number > FORMAT:
        raise SnapshotError(f"written by a newer streamsvm: snapshot format {number}, this version reads {FORMAT}")
    if number != FORMAT:
        raise SnapshotError(f"unknown snapshot format {number}, this version reads {FORMAT}")
    if len(data) < total:
        raise SnapshotError(f"snapshot is truncated: {len(data)} of {total} bytes")
    if len(data) != total or _aligned(_PRELUDE.size + header_length) + _DIGEST_SIZE > total:
        raise SnapshotError(f"snapshot is damaged: {len(data)} bytes do not fit the lengths written at its start")
    if _sha256([memoryview(data)[:-_DIGEST_SIZE]]) != data[-_DIGEST_SIZE:]:
        raise SnapshotError("snapshot is damaged: its sha256 checksum does not match")
    return header_length


def _parse(text: bytes) -> dict[str, Any]:
    _require_simple(text)
    try:
        header = json.loads(text, parse_constant=_no_number)
    except ValueError as error:
        raise SnapshotError(f"snapshot header is not JSON: {error}") from error
    match header:
        case {"kind": str(), "meta": dict(), "arrays": list()}:
            return header
    raise SnapshotError("snapshot header lacks its kind, meta or arrays")


def _require_simple(text: bytes) -> None:
    """Refuse a header that is nested too deeply, or takes many times its length in memory."""
    brackets = _STRING.sub(b"", text).translate(None, _NO_BRACKETS)
    if len(brackets) // 2 > 1000 + len(text) // _CONTAINER_BYTES:
        raise SnapshotError(f"snapshot header has too many lists and objects for its {len(text)} bytes")
    if max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0) > _MAX_DEPTH:
        raise SnapshotError(f"snapshot header is nested more than {_MAX_DEPTH} levels deep")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _arrays(data: bytes, body_start: int, entries: list[Any]) -> dict[str, np.ndarray]:
    """The arrays by name.  They lie end to end, so that they take no more memory than the snapshot."""
    arrays: dict[str, np.ndarray] = {}
    expected = 0
    for entry in entries:
        name, offset, array = _array(data, body_start, entry)
        if name in arrays or offset != expected:
            raise SnapshotError(f"array {name!r} at offset {offset} occurs twice, or does not follow the one before")
        arrays[name], expected = array, offset + _aligned(array.nbytes)
    return arrays


def _array(data: bytes, body_start: int, entry: Any) -> tuple[str, int, np.ndarray]:
    """Name, place and writable copy of an array, after checks against a faulty or hostile writer."""
    match entry:
        case {"name": str(name), "dtype": str(code), "shape": [*shape], "offset": int(offset)}:
            pass
        case _:
            raise SnapshotError(f"snapshot header has an invalid array entry: {str(entry)[:200]}")
    if code not in _DTYPES:
        raise SnapshotError(_refused(name, code))
    if len(shape) > _MAX_DIMENSIONS:
        raise SnapshotError(f"array {name!r} has {len(shape)} dimensions; at most {_MAX_DIMENSIONS} are read")
    if not all(type(n) is int and n >= 0 for n in [offset, *shape]):
        raise SnapshotError(f"array {name!r} has shape {shape} and offset {offset}; these must be counts")
    dtype, count = np.dtype(code), math.prod(shape)
    if max([body_start + offset + count * dtype.itemsize, *shape]) > len(data) - _DIGEST_SIZE:
        raise SnapshotError(f"array {name!r} of shape {shape} at offset {offset} lies outside the snapshot")
    stored = np.frombuffer(data, dtype, count, body_start + offset).reshape(shape)
    if dtype.kind == "b" and stored.view(np.uint8).max(initial=0) > 1:
        raise SnapshotError(f"array {name!r} holds bytes that are neither true nor false")
    return name, offset, stored.astype(dtype.newbyteorder("="))
