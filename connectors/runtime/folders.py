"""What folders need beyond the standard library: one writer at a time, durable entries, a message if there is none,
and files that only their owner can read."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from streamsvm.core import snapshot


class AlreadyInUse(RuntimeError):  # noqa: N818 - reads as what it says
    """Another process holds the lock."""


def lock_folder(folder: Path, purpose: str) -> IO[str]:
    """Lock a folder until the returned file is closed; the system releases it too when the process dies.

    Raises
    ------
    AlreadyInUse
        If another process holds it; the message names `purpose`, the folder and the process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = open(folder / "lock", "a+", encoding="ascii")  # noqa: SIM115 - open is locked
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
    """Make a folder that only its owner can enter, and those above it; one that exists stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        folder.chmod(0o700)  # whatever the umask says


def private(path: str, flags: int) -> int:
    """An opener for `open`: of a file that only its owner can read, whatever the umask says."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def touch_private(path: Path) -> None:
    """Make an empty file that only its owner can read, to be written afterwards."""
    with open(path, "wb", opener=private):
        pass


def write_private(path: Path, data: bytes) -> None:
    """As `snapshot.write_atomic`, for a file that only its owner can read."""
    touch_private(path.with_name(f".{path.name}.tmp"))  # with which `write_atomic` goes on
    snapshot.write_atomic(path, data)


def sync_folder(folder: Path) -> None:
    """Make files created in, or renamed into, a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with naming(folder):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an error of the system the file that it lacks, as those of writing do, on a full disk for example."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def require_folder(path: Path | None) -> None:
    """Refuse a file that cannot be written, before the work is done."""
    if path is not None and not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(path.parent)!r}")


class FileError(ValueError):
    """A file that is not what it should be."""
