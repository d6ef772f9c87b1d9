"""Folders and files: locks, durable entries, files that only their owner can read, and errors that name the file."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from streamsvm.core.saving import snapshot

from .problems import Problems


class AlreadyInUse(RuntimeError):  # noqa: N818 - reads as what it says
    """Another process holds the lock."""


def lock_folder(folder: Path, purpose: str) -> IO[str]:
    """Lock a folder until the returned file is closed; the system also releases the lock when the process dies.

    Raises
    ------
    AlreadyInUse
        If another process holds the lock; the message names `purpose`, the folder and the process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = open(folder / "lock", "a+", encoding="ascii")  # noqa: SIM115 - The open file is the lock.
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise AlreadyInUse(f"{folder}: {purpose} is in use by process {holder}") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter, and its parents; an existing folder stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)  # The umask may have taken rights away.


def private(path: str, flags: int) -> int:
    """An opener for `open`, for a file that only its owner can read, whatever the umask is."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def touch_private(path: Path) -> None:
    """Make an empty file that only its owner can read."""
    with open(path, "wb", opener=private):
        pass


def write_private(path: Path, data: bytes) -> None:
    """Like `snapshot.write_atomic`, for a file that only its owner can read."""
    touch_private(path.with_name(f".{path.name}.tmp"))  # `write_atomic` writes to this file.
    snapshot.write_atomic(path, data)


def replace_private(path: Path, data: bytes) -> None:
    """As `write_private`, for a file that need not be durable yet."""
    temporary = path.with_name(f".{path.name}.tmp")
    with naming(path):
        touch_private(temporary)
        temporary.write_bytes(data)
    temporary.replace(path)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to system errors without one, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def require_folder(path: Path | None) -> None:
    """Refuse a file in a missing folder, before the work for it begins."""
    if path is not None and not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(path.parent)!r}")


class FileError(Problems):
    """A file is missing, or does not hold what it should."""
