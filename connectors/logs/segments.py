"""One partition on disk: segment files named by the offset of their first record, ``BASE.log`` with 20 digits.

A record, all integers little-endian::

    uint32   length of the body
    uint32   crc32 of the body
    uint32   crc32 of the eight bytes above
    body     int64 offset, int64 timestamp, int32 length of the key, int32 length of the value (-1: none),
             uint16 number of headers; the key; the value; per header uint16 and uint32 lengths, name, value

The second checksum tells an unfinished record from a damaged length.  An unfinished record reaches past the end of the
file, because its write was cut short or is still going on.  Only an unfinished record may end a log, and only it
is ever truncated.
"""

import errno
import itertools
import logging
import os
import re
import struct
from bisect import bisect_right
from pathlib import Path
from typing import IO
from zlib import crc32

from streamsvm.core.saving import snapshot

from ..runtime.folders import lock_folder, naming
from .transport import Headers, OffsetOutOfRange, Record

logger = logging.getLogger(__name__)

_FRAME = struct.Struct("<III")
_BODY = struct.Struct("<qqiiH")
_HEADER = struct.Struct("<HI")
_READ_BYTES = 1 << 20  # bytes read at once
_SEGMENT = re.compile(r"[0-9]{20}\.log")


class LogCorruption(ValueError):  # noqa: N818 - names the condition
    """A segment, or another file of the log, is damaged, cut or missing."""


# --- reading ----------------------------------------------------------------------------------------------------------


class Cursor:
    """Reads one partition in order, across segments, and stops before an unfinished record."""

    def __init__(self, folder: Path, offset: int) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._path = folder
        self._base = -1  # of the open segment
        self._buffer = b""
        self._position = 0  # of the buffer in the file
        self._index = 0  # of the next record in the buffer
        self._offset = 0  # of the next record
        self.is_at_end = False  # The last `take` met the end.
        bases = _segments(folder)
        if bases and bases[0] > offset:
            raise OffsetOutOfRange(f"{folder}: offset {offset} is not in the log, which begins at {bases[0]}")
        if bases:
            self._open(bases[bisect_right(bases, offset) - 1])
        try:
            self._skip_to(offset)
        except BaseException:
            self.close()
            raise

    @property
    def offset(self) -> int:
        """Offset of the next record."""
        return self._offset

    def take(self, topic: str, partition: int, limit: int, max_bytes: int) -> list[Record]:
        """At most `limit` records; also ends with the record that reaches `max_bytes`."""
        records: list[Record] = []
        size, self.is_at_end = 0, False
        while len(records) < limit and size < max_bytes:
            body = self._next()
            if body is None:
                self.is_at_end = True
                break
            try:
                records.append(_decode(topic, partition, body))
            except ValueError as error:
                self._offset -= 1  # back to the record, whose place the message names
                self._index -= _FRAME.size + len(body)
                raise self._corruption(str(error)) from None
            size += len(body)
        return records

    def skip_to_end(self) -> tuple[int, int]:
        """Skip the rest; return the offset of the record to come and its position in the last segment."""
        while self._next() is not None:
            pass
        return self._offset, self._position + self._index

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self, base: int) -> None:
        self.close()
        self._path = _segment_path(self._folder, base)
        self._file = open(self._path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        self._base = self._offset = base
        self._buffer = b""
        self._position = self._index = 0

    def _skip_to(self, offset: int) -> None:
        while self._offset < offset:
            if self._next() is None:
                raise OffsetOutOfRange(
                    f"{self._folder}: offset {offset} is not in the log, which ends at {self._offset}"
                )

    def _next(self) -> bytes | None:
        """The body of the next record, checked; None at the end of the log."""
        while (length := self._length()) is None:
            if not self._advance():
                return None
        start = self._index + _FRAME.size
        body = self._buffer[start : start + length]
        if crc32(body) != _FRAME.unpack_from(self._buffer, self._index)[1]:
            raise self._corruption("its checksum does not match")
        if length < _BODY.size:
            raise self._corruption(f"it has {length} bytes, which are too few")
        offset = _BODY.unpack_from(body)[0]
        if offset != self._offset:
            raise self._corruption(f"it carries offset {offset}")
        self._index = start + length
        self._offset += 1
        return body

    def _length(self) -> int | None:
        """Length of the next record's body; None if the record is not complete in this segment."""
        if not self._have(_FRAME.size):
            return None
        length, _, check = _FRAME.unpack_from(self._buffer, self._index)
        if crc32(self._buffer[self._index : self._index + 8]) != check:
            raise self._corruption("its length is damaged")
        if self._have(_FRAME.size + length):
            return length
        self._position += self._index
        self._index = 0
        self._buffer = b""  # If its writer was killed, the next writer cuts it off and writes another record here.
        return None

    def _have(self, size: int) -> bool:
        """Whether the segment has `size` more bytes; they are in the buffer then."""
        if len(self._buffer) - self._index < size and self._file is not None:
            self._position += self._index
            self._index = 0
            there = os.fstat(self._file.fileno()).st_size - self._position
            self._buffer = os.pread(self._file.fileno(), min(max(_READ_BYTES, size), max(there, 0)), self._position)
        return len(self._buffer) - self._index >= size

    def _advance(self) -> bool:
        """Go on to the next segment; False if there is none."""
        following = [base for base in _segments(self._folder) if base > self._base]
        if not following:
            return False
        if self._length() is not None:
            return True  # The writer completed this segment after our last look and before the listing.
        if self._file is not None and os.fstat(self._file.fileno()).st_size > self._position + self._index:
            raise self._corruption("it is cut short, but another segment follows")
        if following[0] != self._offset:
            raise self._corruption(f"it is missing: the next segment begins at offset {following[0]}")
        self._open(following[0])
        return True

    def _corruption(self, what: str) -> LogCorruption:
        at = self._position + self._index
        return LogCorruption(f"{self._path}: corrupt record at byte {at}, offset {self._offset}: {what}")


def _segments(folder: Path) -> list[int]:
    """First offsets of the segments of a partition, ascending."""
    return sorted(int(path.stem) for path in folder.glob("*.log") if _SEGMENT.fullmatch(path.name))


def _segment_path(folder: Path, base: int) -> Path:
    return folder / f"{base:020d}.log"


def trim(folder: Path, offset: int) -> None:
    """Remove the segments of a partition that end before an offset; the last one stays."""
    bases = _segments(folder)
    for base, following in itertools.pairwise(bases):
        if following <= offset:
            _segment_path(folder, base).unlink(missing_ok=True)


def begin(folder: Path) -> int:
    """The first offset of a partition."""
    return min(_segments(folder), default=0)


def end(folder: Path) -> tuple[int, int]:
    """The offset of a partition's record to come, and its position in the last segment."""
    cursor = Cursor(folder, max(_segments(folder), default=0))
    try:
        return cursor.skip_to_end()
    finally:
        cursor.close()


def _decode(topic: str, partition: int, body: bytes) -> Record:
    """The record in a body whose checksum is right; raises ValueError if its lengths or names are wrong."""
    offset, timestamp, key_length, value_length, n_headers = _BODY.unpack_from(body)
    if min(key_length, value_length) < -1:
        raise ValueError(f"its key has the length {key_length} and its value {value_length}")
    at = _BODY.size
    key = None
    if key_length >= 0:
        key = body[at : at + key_length]
        at += key_length
    value = None
    if value_length >= 0:
        value = body[at : at + value_length]
        at += value_length
    headers: Headers = ()
    if n_headers:
        headers, at = _headers(body, at, n_headers)
    if at != len(body):
        raise ValueError(f"its parts have {at} bytes and the whole {len(body)}")
    return Record(topic, partition, offset, timestamp, key, value, headers)


def _headers(body: bytes, at: int, count: int) -> tuple[Headers, int]:
    """The headers from position `at` on, and the position of their end."""
    headers = []
    for _ in range(count):
        if at + _HEADER.size > len(body):
            raise ValueError(f"it ends before the last of its {count} headers")
        name_length, value_length = _HEADER.unpack_from(body, at)
        middle = at + _HEADER.size + name_length
        headers.append((body[at + _HEADER.size : middle].decode(), body[middle : middle + value_length]))
        at = middle + value_length
    return tuple(headers), at


# --- writing ----------------------------------------------------------------------------------------------------------


class Appender:
    """Appends to one partition; each record is one write, so a killed process cuts at most the last record."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._lock = lock_folder(folder, "this partition's log")
        try:
            self._offset, self._size = end(folder)
            self._open(max(_segments(folder), default=0))
        except BaseException:
            self._lock.close()
            raise

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        frame = _encode(self._offset, timestamp, key, value, headers)
        if self._size and self._size + len(frame) > self._segment_bytes:
            self._roll()
        with naming(self._folder):
            written = self._file.write(frame)
        if written != len(frame):
            self._file.truncate(self._size)
            raise OSError(errno.ENOSPC, f"only {written} of {len(frame)} bytes could be written", str(self._folder))
        self._offset += 1
        self._size += len(frame)

    def sync(self) -> None:
        with naming(self._folder):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()
        self._lock.close()

    def _roll(self) -> None:
        """Begin a new segment; make the finished one durable first, because only the last one may be cut."""
        self.sync()
        self._file.close()
        self._size = 0
        self._open(self._offset)

    def _open(self, base: int) -> None:
        """Open a segment with `_size` bytes of records; cut off what a killed writer left unfinished after them."""
        path = _segment_path(self._folder, base)
        path.touch()
        rest = path.stat().st_size - self._size
        if rest:
            logger.warning("%s: cutting %d bytes of an unfinished record at offset %d", path, rest, self._offset)
            os.truncate(path, self._size)
        for folder in (self._folder, self._folder.parent, self._folder.parent.parent):
            with naming(folder):
                snapshot.sync_folder(folder)
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()


def _encode(offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    key_length, value_length = (-1 if content is None else len(content) for content in (key, value))
    parts = [_BODY.pack(offset, timestamp, key_length, value_length, len(headers)), key or b"", value or b""]
    for name, content in headers:
        encoded = name.encode()
        parts += [_HEADER.pack(len(encoded), len(content)), encoded, content]
    body = b"".join(parts)
    start = struct.pack("<II", len(body), crc32(body))
    return b"".join((start, struct.pack("<I", crc32(start)), body))
