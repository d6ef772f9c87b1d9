"""The container of stored models and checkpoints: named arrays and a JSON header, never pickle.

The same input always gives the same bytes, so snapshots can be compared and deduplicated by their digest.  `layout` has
the bytes; here are the container, the files it is kept in, and the checks of what a reader takes out of it.
"""

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from streamsvm.core.arguments import LARGEST_ID
from streamsvm.core.costs import SECOND_LEVEL
from streamsvm.core.saving.layout import (
    DIGEST_SIZE,
    FORMAT,
    MAGIC,
    PRELUDE,
    aligned,
    arrays_of,
    described,
    header_of,
    octets,
    padding,
    raw_of,
    sha256,
    verify,
)
from streamsvm.core.saving.layout import SnapshotError as SnapshotError

LARGEST_COUNT = LARGEST_ID // 2 + 1  # of examples, 2^62: differences of two fit into 64 bits
_STUMBLES = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
Arrays = Mapping[str, np.ndarray]


def pack(kind: str, meta: dict[str, Any], arrays: Mapping[str, np.ndarray | bytes]) -> bytes:
    """Write named arrays and plain values into one self-checking byte string.

    Parameters
    ----------
    kind
        The kind of content, such as ``"LASVM"``; `unpack` must be given the same.
    meta
        Plain values: dicts with string keys, lists, strings, numbers, booleans, None; no NaN or infinity.
    arrays
        Boolean, integer, float32 or float64 arrays of any shape, by name; bytes are an array of uint8.

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
    raw = {name: raw_of(name, arrays[name]) for name in sorted(arrays)}
    header, body_length = header_of(kind, meta, raw)
    body_start = aligned(PRELUDE.size + len(header))
    total = body_start + body_length + DIGEST_SIZE

    chunks: list[bytes | memoryview] = [PRELUDE.pack(MAGIC, FORMAT, len(header), total), header]
    chunks.append(padding(PRELUDE.size + len(header)))
    # A small snapshot is joined before it is hashed: many chunks take longer than a copy within the cache.
    as_bytes: Callable[[np.ndarray], bytes | memoryview] = np.ndarray.tobytes if total <= SECOND_LEVEL else octets
    for array in raw.values():
        chunks += [as_bytes(array), padding(array.nbytes)]
    if total <= SECOND_LEVEL:
        chunks = [b"".join(chunks)]
    return b"".join([*chunks, sha256(chunks)])


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
    return opened(data).of(kind)


class Opened(NamedTuple):
    """What is in a snapshot whose bytes have been checked."""

    kind: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def of(self, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The plain values and the arrays; a SnapshotError if they are of another kind."""
        if self.kind != kind:
            problem = f"this is a {self.kind!r} snapshot, expected {kind!r}; `streamsvm.load` reads all kinds"
            raise SnapshotError(problem)
        return self.meta, self.arrays


def opened(data: bytes) -> Opened:
    """What is in a snapshot of any kind.

    Raises
    ------
    SnapshotError
        As `unpack`, except for the kind.

    Examples
    --------
    >>> opened(pack("Example", {}, {}))
    Opened(kind='Example', meta={}, arrays={})
    """
    header_length = verify(data)
    header, places = described(data[PRELUDE.size : PRELUDE.size + header_length])
    return Opened(header["kind"], header["meta"], arrays_of(data, aligned(PRELUDE.size + header_length), places))


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


def every(condition: np.ndarray) -> bool:
    """Whether all are true, like `all`, which takes three times as long for a few."""
    return bool(np.count_nonzero(condition) == condition.size)


def require_array(arrays: Arrays, name: str, dtype: type | np.dtype | str, shape: tuple[int | None, ...]) -> np.ndarray:
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
    found = arrays.get(name)
    if found is None:
        raise SnapshotError(f"the snapshot's content is invalid: the array {name!r} is missing")
    if not isinstance(dtype, str) and found.shape == shape and found.dtype == dtype:
        return found
    fits = found.dtype.kind == dtype if isinstance(dtype, str) else found.dtype == dtype
    if not (fits and found.ndim == len(shape) and _agree(found.shape, shape)):
        wanted = f"kind {dtype!r}" if isinstance(dtype, str) else str(np.dtype(dtype))
        lengths = str(shape).replace("None", "any")
        require(False, f"the array {name!r} is {found.dtype} of shape {found.shape}; it must be {wanted}, {lengths}")
    return found


def blob_of(arrays: Arrays, name: str) -> bytes:
    """The bytes that `pack` was given under a name; a SnapshotError if they are missing."""
    return require_array(arrays, name, np.uint8, (None,)).tobytes()


def _agree(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return all(length in (None, n) for n, length in zip(shape, wanted, strict=True))


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
        If the folder is missing or cannot be written, or if the path is a folder.
    """
    with replacing(Path(path)) as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Like `write_atomic`, for content that is written in parts: the file is replaced when the block ends.

    An exception inside the block leaves the file as it was.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path.parent))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", str(path))
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


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
        verify(data)
    except SnapshotError as error:
        raise SnapshotError(f"{os.fspath(path)}: {error}") from None
    return data


def sync_folder(folder: Path) -> None:
    """Make the entries of new and renamed files durable; only POSIX systems can open a folder for this."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
