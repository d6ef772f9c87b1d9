"""A ledger in an object store, such as S3: each flush writes one object.

The objects of a partition are numbered 0, 1, 2, ...  An object is created only if there is none with its number yet (a
conditional write), so of two processes that write at once, one hears of the other.  An object holds the records of a
flush: usually a cut with the end of the last one, or a whole checkpoint.

Numbers of old objects, which are removed, become free again.  A process that slept meanwhile could use such a number.
So each object has a token, and names the token of the object before it.  What is not on the chain that ends with the
newest object does not count.

An object ends with a checksum, which has the form of a record, so that older versions pass over it; theirs have none.
"""

import re
import secrets
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, NamedTuple
from zlib import crc32

from ....logs.segments import LogCorruption
from ....logs.transport import (
    AccessDenied,
    OffsetOutOfRange,
    OptionRefused,
    Record,
    TakenOver,
    TopicMismatch,
    Unavailable,
)
from ....runtime.libraries import needing

_TOKEN_BYTES = 16  # as random as a UUID
_HEADER_BYTES = 2 * _TOKEN_BYTES  # the token of the object before, and its own
_NO_TOKEN = bytes(_TOKEN_BYTES)
_SIZES = struct.Struct("<IQ")  # of a record's key and value
_SUM = _SIZES.pack(5, 4) + b"crc32"  # before the checksum of all that comes before this
_SUM_BYTES = len(_SUM) + 4
_AT_ONCE = 16  # objects that are read at the same time
_HINT = "check state.url, and the variables of the environment with the credentials and the server's address"
_NEEDS_HTTP = "an address of a server that begins with http:// needs AWS_ALLOW_HTTP=true, too"
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>\s*(\w+)\s*</Code>")
_MESSAGE = re.compile(r"<Message>\s*(.*?)\s*</Message>", re.DOTALL)
_NO_OBJECT = ("NoSuchKey", "NoSuchVersion", "BlobNotFound", "")  # codes of a 404: the object is missing, and not more
_NOT_KNOWN = re.compile("AccessKey|Auth|Credential|Login|Signature|Token|User")  # in codes: the store does not know us
_PASSING = (408, 409, 425, 429)  # of the 4xx
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}


class _Object(NamedTuple):
    number: int
    before: bytes  # token of the object before it
    token: bytes
    body: memoryview

    def records(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        at = 0
        while at < len(self.body):
            try:
                n_key, n_value = _SIZES.unpack_from(self.body, at)
            except struct.error:
                n_key = len(self.body)
            begin = at + _SIZES.size
            at = begin + n_key + n_value
            if at > len(self.body):
                raise LogCorruption(f"{name}: object {self.number} is damaged: it ends inside a record")
            yield bytes(self.body[begin : begin + n_key]), bytes(self.body[begin + n_key : at])


class ObjectPlace:
    """The objects of a partition: a `places.LedgerPlace`.  An offset is an object's number, which its records share.

    Parameters
    ----------
    store
        A store of obstore.
    prefix
        What the objects' names begin with, such as ``p0``.
    name
        For messages.
    """

    def __init__(self, store: Any, prefix: str, name: str) -> None:
        import obstore

        self._api = obstore
        self._store = store
        self._prefix = prefix
        self.name = name
        self.next = 0
        self._last = _NO_TOKEN  # of the object before the next one
        self._pending: list[bytes] = []
        self._sent = b""  # an object that may have been written, or not
        self._is_exclusive = False  # the store has refused to write an object twice

    def append(self, key: bytes, value: bytes) -> None:
        self._pending += [_SIZES.pack(len(key), len(value)), key, value]

    def flush(self) -> None:
        while self._sent or self._pending:
            if not self._sent:
                content = b"".join([self._last, secrets.token_bytes(_TOKEN_BYTES), *self._pending])
                self._sent = content + _SUM + crc32(content).to_bytes(4)
                self._pending = []
            self._send()

    def _send(self) -> None:
        token = self._sent[_TOKEN_BYTES:_HEADER_BYTES]
        is_new = self._create(self.next, self._sent)
        if not is_new and self._token_at(self.next) != token:  # else a request got through, but not its answer
            self._sent, self._pending = b"", []
            raise TakenOver(f"{self.name} belongs to another process by now")
        self._require_exclusive()
        self._sent, self._last = b"", token
        self.next += 1

    def end(self) -> int:
        return max(self._numbers(self.next), default=self.next - 1) + 1

    def records(self, start: int) -> Iterator[Record]:
        numbers = self._numbers(start)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            chain = _chain(list(pool.map(self._read, numbers)))
        for item in chain:
            for key, value in item.records(self.name):
                yield Record(self.name, 0, item.number, 0, key, value, ())
        if chain:
            self.next, self._last = chain[-1].number + 1, chain[-1].token

    def trim(self, offset: int) -> None:
        paths = [self._path(number) for number in self._numbers(0) if number < offset]
        with _telling(self.name), suppress(FileNotFoundError):  # which another owner has removed
            self._api.delete(self._store, paths)

    # --- single objects -----------------------------------------------------------------------------------------------

    def _path(self, number: int) -> str:
        return f"{self._prefix}/{number:020d}"

    def _numbers(self, start: int) -> list[int]:
        """The numbers of the objects that are there, from `start` on."""
        after = self._path(start - 1) if start else None
        with _telling(self.name):
            pages = list(self._api.list(self._store, self._prefix, offset=after))
        names = [item["path"].rpartition("/")[2] for page in pages for item in page]
        return sorted(number for number in map(int, filter(str.isdecimal, names)) if number >= start)

    def _read(self, number: int) -> _Object:
        try:
            with _telling(self.name):
                content = memoryview(self._api.get(self._store, self._path(number)).bytes())
        except FileNotFoundError:
            raise OffsetOutOfRange(f"object {number} was removed while it was read") from None
        if content[-_SUM_BYTES:-4] == _SUM:
            if crc32(content[:-_SUM_BYTES]).to_bytes(4) != content[-4:]:
                raise LogCorruption(f"{self.name}: object {number} is damaged: its checksum does not match")
            content = content[:-_SUM_BYTES]
        before, token = bytes(content[:_TOKEN_BYTES]), bytes(content[_TOKEN_BYTES:_HEADER_BYTES])
        return _Object(number, before, token, content[_HEADER_BYTES:])

    def _token_at(self, number: int) -> bytes:
        try:
            return self._read(number).token
        except OffsetOutOfRange:
            return b""  # Its owner has removed it, and has written others.

    def _create(self, number: int, content: bytes) -> bool:
        """Write an object; False if there is one with this number."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            with _telling(self.name):
                self._api.put(self._store, self._path(number), content, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            return False
        except FileNotFoundError as error:
            raise TopicMismatch(f"{self.name}: there is no such bucket: {_said(error)}; {_HINT}") from None
        return True

    def _require_exclusive(self) -> None:
        """Refuse a store that writes an object twice: two owners could not tell."""
        if not self._is_exclusive and self._create(self.next, b""):
            raise TopicMismatch(
                f"{self.name}: the object store overwrites an object although it was asked to create it only "
                "(If-None-Match); choose a store with conditional writes"
            )
        self._is_exclusive = True


def open_objects(url: str) -> Any:
    """A store of obstore; credentials and endpoints come from the environment variables of its provider.

    Raises
    ------
    LibraryMissing
        If obstore is not installed.
    OptionRefused
        If it does not accept the URL or the environment.
    """
    with needing("it needs obstore", "objects"):
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    options: dict[str, Any] = {"mkdir": True} if url.startswith("file:") else {"retry_config": _RETRIES}
    try:
        return from_url(url, **options)
    except (BaseError, OSError) as error:  # OSError: the folder cannot be made
        raise OptionRefused(f"{_said(error)}; {_HINT}") from None


def _chain(items: list[_Object]) -> list[_Object]:
    """The objects that follow one another to the newest one."""
    n = 1
    while n < len(items) and items[-n].before == items[-n - 1].token:
        n += 1
    return items[-n:]


@contextmanager
def _telling(name: str) -> Iterator[None]:
    """Raise the errors of logs for those of obstore, except for objects that exist, or do not."""
    from obstore import exceptions as of_obstore

    try:
        yield
    except (of_obstore.AlreadyExistsError, of_obstore.PreconditionError):
        raise
    except (of_obstore.PermissionDeniedError, of_obstore.UnauthenticatedError, PermissionError) as error:
        raise AccessDenied(f"{name}: {_said(error)}; {_HINT}") from None
    except (of_obstore.BaseError, OSError) as error:
        kind = _kind(error)
        if kind is FileNotFoundError:
            raise
        hint = _NEEDS_HTTP if kind is OptionRefused else _HINT
        raise kind(f"{name}: {_said(error)}; {hint}") from None


def _kind(error: Exception) -> type[Exception]:
    """What an error is that obstore has no name for: it knows the answers to requests for a single object only."""
    text = str(error)
    if "BadScheme" in text:
        return OptionRefused
    found = _STATUS.search(text)
    status, code = int(found[1]) if found else 0, _first(_CODE, text)
    if isinstance(error, FileNotFoundError) and code in _NO_OBJECT:
        return FileNotFoundError
    if status in (401, 403) or (400 <= status < 500 and _NOT_KNOWN.search(code)):
        return AccessDenied
    return TopicMismatch if 300 <= status < 500 and status not in _PASSING else Unavailable


def _said(error: Exception) -> str:
    """What the store said, in a line; the rest of an error is for the store's developers."""
    text = str(error).split("\n\nDebug source", 1)[0]
    parts = [re.split(r":?\s*<", text, maxsplit=1)[0], _first(_CODE, text), _first(_MESSAGE, text)]
    return " ".join(": ".join(filter(None, parts)).split())


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""
