"""The files with the models of keys: where each model lies, and whether its bytes are still those that were written.

Models are read when their keys come, long after the checkpoint that names them.  So a model is a snapshot of its own,
with its own checksum, and an error names the file and the key.
"""

import errno
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamsvm import SnapshotError
from streamsvm.core.saving.layout import DIGEST_SIZE, FORMAT, PRELUDE, sha256
from streamsvm.core.saving.snapshot import require_array

from ...runtime.folders import write_private
from .byte_strings import separated

_NAME = re.compile(r"models-\d{6}-\d{10}")
_GONE = (errno.ENOENT, errno.EIO)  # of a file that was deleted, or that the disk can no longer read


class DamagedModel(SnapshotError):  # noqa: N818 - names the condition
    """The stored model of a key cannot be used; the message names the file and the key."""


class Place(NamedTuple):
    """The newest stored version of a model."""

    file: str
    start: int
    length: int

    def problem(self, folder: Path, key: bytes, reason: object) -> DamagedModel:
        """The error about the model that lies here."""
        where = f"{folder / self.file}, {self.length} bytes from {self.start} on"
        return DamagedModel(f"{where}: the model of key {key[:100]!r} cannot be read: {reason}")


def model_files(folder: Path) -> list[Path]:
    """The files with models of keys in a state folder."""
    return [path for path in folder.glob("models-*") if _NAME.fullmatch(path.name)]


def places_of(arrays: Mapping[str, np.ndarray]) -> dict[bytes, Place]:
    """Where a checkpoint says that the models are, by key; SnapshotError if it names a place that cannot be."""
    names = arrays["names"].tobytes().decode().split()
    for name in names:
        if not _NAME.fullmatch(name):
            raise SnapshotError(
                f"the checkpoint says that models are in {name[:100]!r}, which is not named models-EPOCH-NUMBER"
            )
    places = [Place(names[number], start, length) for number, start, length in arrays["places"].tolist()]
    if any(place.start < 0 or place.length < 0 for place in places):
        raise SnapshotError("the checkpoint says that a model begins before its file, or has a negative length")
    return dict(zip(unpacked_keys(arrays, "keys", "key_ends"), places, strict=True))


def unpacked_keys(arrays: Mapping[str, np.ndarray], name: str, ends: str) -> list[bytes]:
    """Keys that lie end to end in an array, from the places where they end."""
    return separated(arrays, name, np.diff(require_array(arrays, ends, "i", (None,)), prepend=0))


def read_place(folder: Path, key: bytes, place: Place) -> bytes:
    """The bytes at a place.

    Raises
    ------
    DamagedModel
        If the file is gone, or too short.
    """
    path = folder / place.file
    try:
        n_bytes = path.stat().st_size
        if place.start + place.length > n_bytes:
            raise place.problem(folder, key, f"the file is too short for it, with {n_bytes} bytes")
        with open(path, "rb") as file:
            file.seek(place.start)
            return file.read(place.length)
    except OSError as error:
        if error.errno not in _GONE:
            raise
        raise place.problem(folder, key, error.strerror) from None


def read_whole(folder: Path, key: bytes, place: Place) -> bytes:
    """As `read_place`, after a check of the checksum."""
    blob = read_place(folder, key, place)
    if not _is_whole(blob):
        raise place.problem(folder, key, "its sha256 checksum does not match")
    return blob


def is_of_another_version(blob: bytes) -> bool:
    """Whether bytes that cannot be read are a whole snapshot in a format that this version does not know."""
    return _is_whole(blob) and PRELUDE.unpack_from(blob)[1] != FORMAT


def _is_whole(blob: bytes) -> bool:
    return len(blob) >= PRELUDE.size + DIGEST_SIZE and sha256([memoryview(blob)[:-DIGEST_SIZE]]) == blob[-DIGEST_SIZE:]


def damaged_models(folder: Path, arrays: Mapping[str, np.ndarray]) -> Iterator[DamagedModel]:
    """The damage to the models that a checkpoint's arrays name; it takes a second for each gigabyte."""
    for key, place in sorted(places_of(arrays).items(), key=lambda item: item[1]):
        try:
            read_whole(folder, key, place)
        except DamagedModel as damage:
            yield damage


# --- what is left of a model ------------------------------------------------------------------------------------------


def set_aside(folder: Path, key: bytes, place: Place) -> str:
    """Keep what is left of a damaged model in a file of its own; return a text that says where."""
    try:
        blob = read_place(folder, key, place)
    except DamagedModel:
        return "nothing is left of the old one"
    path = folder / f"damaged-{place.file}-{place.start}"
    write_private(path, blob)
    return f"what is left of the old one is in {path}"


def files_set_aside(folder: Path) -> list[Path]:
    """The files that `set_aside` has written to a state folder."""
    return sorted(folder.glob("damaged-models-*"))
