"""The folder for compiled code on disk: where it lies, which code it may hold, and when it is removed.

The folder belongs to one user and one state of the code: its name has streamsvm's version and a key.  Code of another
state lies in another folder, so a process never opens it.  Code is unpickled, so a folder that another user could write
to is not used.
"""

import contextlib
import datetime
import functools
import hashlib
import os
import re
import shutil
import stat
import sys
import time
import uuid
from pathlib import Path

DAY = datetime.timedelta(days=1).total_seconds()
KEPT_DAYS = 30  # without use, after which a folder is removed
KEPT_FOLDERS = 20  # however young the others are: development makes a new folder with every edit
_NAME = re.compile(r"streamsvm-.+-[0-9a-f]{16}")


def user_folder(chosen: str) -> Path | None:
    """Return the folder that the user has chosen, or the user's cache folder; None where there is no home folder.

    Parameters
    ----------
    chosen
        The value of ``NUMBA_CACHE_DIR``; empty if it is not set.
    """
    if chosen:
        return Path(chosen).absolute()
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if sys.platform == "darwin":
            parent = Path.home() / "Library" / "Caches"
        elif sys.platform == "win32":
            parent = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        else:
            parent = Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache"
    except RuntimeError:
        return None
    return parent / "streamsvm"


def key_of(state: object) -> str:
    """A short name for everything that compiled code depends on."""
    return hashlib.sha256(repr(state).encode()).hexdigest()[:16]


class CodeFolder:
    """A private folder of compiled code.

    Parameters
    ----------
    parent
        The folder that holds the folders of all states.
    version
        streamsvm's version, for the reader of the folder's name.
    key
        Names everything that compiled code depends on.
    """

    def __init__(self, parent: Path, version: str, key: str) -> None:
        self.path = parent / f"streamsvm-{version}-{key}"

    @functools.cached_property
    def is_usable(self) -> bool:
        """Whether code may be read from the folder, which is made if it is missing."""
        try:
            is_new = not self.path.exists()
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
            if not _is_private(self.path):
                return False
        except OSError:
            return False
        with contextlib.suppress(OSError):  # a folder that only root may write to can be read
            if is_new or self.path.stat().st_mtime < time.time() - DAY:
                os.utime(self.path)
                remove_old(self.path.parent)
        return True

    def has_code(self) -> bool:
        """Whether the folder has any code."""
        return self.is_usable and any(self.path.glob("*.code"))

    def read(self, name: str) -> bytes | None:
        """Return the code of that name; None if it is missing or damaged."""
        if not self.is_usable:
            return None
        try:
            content = (self.path / f"{name}.code").read_bytes()
        except OSError:
            return None
        return content[32:] if hashlib.sha256(content[32:]).digest() == content[:32] else None

    def write(self, name: str, code: bytes) -> None:
        """Store code at once or not at all; a disk that is full or read-only is no error."""
        if not self.is_usable:
            return
        temporary = self.path / f"{uuid.uuid4().hex}.tmp"
        try:
            temporary.write_bytes(hashlib.sha256(code).digest() + code)
            temporary.replace(self.path / f"{name}.code")
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _is_private(path: Path) -> bool:
    """Whether only this user and root can write to a folder."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: the user's own folder is private
        return True
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def remove_old(parent: Path) -> None:
    """Remove the folders that were not used for `KEPT_DAYS`, and those beyond the newest `KEPT_FOLDERS`.

    Several processes may do so at once.  A process whose folder disappears compiles anew.
    """
    folders = [(path.stat().st_mtime, path) for path in parent.iterdir() if _NAME.fullmatch(path.name)]
    for rank, (used, path) in enumerate(sorted(folders, reverse=True)):
        if rank >= KEPT_FOLDERS or used < time.time() - KEPT_DAYS * DAY:
            doomed = path.with_name(f".{uuid.uuid4().hex}.old")  # a name that no process opens
            with contextlib.suppress(OSError):
                path.rename(doomed)
                shutil.rmtree(doomed, ignore_errors=True)
