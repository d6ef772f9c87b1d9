"""Compiled code that a wheel brings: an archive for each target, beside this file.

Code is unpickled, so it must be as trustworthy as the source beside it: an archive counts only if its digest is the one
that the wheel's record has, and if only those may write to it who may write to the source.
"""

import base64
import functools
import hashlib
import os
import stat
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def archive_path(folder: Path, key: str) -> Path:
    """The archive in a folder for one state of the code."""
    return folder / f"code-{key}.zip"


class Archive:
    """The code of one state.

    Parameters
    ----------
    path
        Where it lies.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @functools.cached_property
    def is_usable(self) -> bool:
        """Whether it is there, and as the wheel brought it."""
        try:
            if not _is_guarded(self.path):
                return False
            digest = hashlib.sha256(self.path.read_bytes()).digest()
        except OSError:
            return False
        return _recorded_digest(self.path) == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    @functools.cached_property
    def _zip(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.path)

    def read(self, name: str) -> bytes | None:
        """Return the code of that name; None if there is none."""
        try:
            return self._zip.read(name) if self.is_usable else None
        except (KeyError, OSError, zipfile.BadZipFile):
            return None


def write_archive(path: Path, code: Iterable[tuple[str, Any]]) -> None:
    """Write an archive of code by its names; the same code gives the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(code):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _is_guarded(path: Path) -> bool:
    """Whether only those can write to a file who can write to this source."""
    found, source = path.lstat(), Path(__file__).stat()
    if not stat.S_ISREG(found.st_mode):
        return False
    return os.name == "nt" or (
        found.st_uid == source.st_uid and not found.st_mode & (stat.S_IWOTH | stat.S_IWGRP & ~source.st_mode)
    )


def _recorded_digest(path: Path) -> str | None:
    """The digest of a file in the record of the wheel that it was installed from."""
    try:
        files = metadata.distribution("streamsvm").files or ()
    except metadata.PackageNotFoundError:
        return None
    return next((f.hash.value for f in files if f.name == path.name and f.hash and path.samefile(f.locate())), None)
