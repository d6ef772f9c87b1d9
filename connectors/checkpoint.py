"""Checkpoints: everything a daemon needs to go on as if it had never stopped, in one atomic file.

The model, the scaler, the metrics and the position in the log are written together, so that after a crash they fit: the
records after that position, and no others, are learned again.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm import snapshot

from .folders import lock_folder
from .settings import ConfigError

logger = logging.getLogger(__name__)

_KIND = "checkpoint"
_NAME = re.compile(r"checkpoint-(\d{10})\.ssvm")


class CheckpointError(ValueError):
    """There are checkpoints, but none of them can be used."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a daemon between two batches.

    Parameters
    ----------
    sequence
        1, 2, 3, ...
    offsets
        The next offset to read, by ``TOPIC-PARTITION``.
    fingerprint
        The settings that the rest depends on.
    counters
        Numbers by name.
    blobs
        What keeps its own format: the model and the scaler.
    arrays
        Metrics and their history.
    """

    sequence: int
    offsets: dict[str, int]
    fingerprint: dict[str, Any]
    counters: dict[str, Any]
    blobs: dict[str, bytes]
    arrays: dict[str, np.ndarray] = field(repr=False)

    def to_bytes(self) -> bytes:
        meta = {
            "sequence": self.sequence,
            "offsets": self.offsets,
            "fingerprint": self.fingerprint,
            "counters": self.counters,
        }
        blobs = {f"blob.{name}": np.frombuffer(blob, dtype=np.uint8) for name, blob in self.blobs.items()}
        return snapshot.pack(_KIND, meta, {**blobs, **{f"array.{name}": array for name, array in self.arrays.items()}})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Checkpoint":
        meta, stored = snapshot.unpack(data, _KIND)
        blobs = {name.removeprefix("blob."): a.tobytes() for name, a in stored.items() if name.startswith("blob.")}
        arrays = {name.removeprefix("array."): a for name, a in stored.items() if name.startswith("array.")}
        return cls(**meta, blobs=blobs, arrays=arrays)


class CheckpointStore:
    """The checkpoints in a folder, which one process at a time may use.

    Parameters
    ----------
    folder
        Made if it does not exist.
    keep
        Number of checkpoints that are kept.

    Raises
    ------
    AlreadyInUse
        If another process uses the folder.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep
        self._lock = lock_folder(folder, "this daemon's state")

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, durably, and remove those that are too old."""
        snapshot.write_atomic(self._folder / f"checkpoint-{checkpoint.sequence:010d}.ssvm", checkpoint.to_bytes())
        for path in checkpoint_files(self._folder)[self._keep :]:
            path.unlink()

    def load(self) -> Checkpoint | None:
        return load_newest(self._folder)

    def close(self) -> None:
        self._lock.close()

    def __enter__(self) -> "CheckpointStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, newest first."""
    return sorted((path for path in folder.glob("checkpoint-*") if _NAME.fullmatch(path.name)), reverse=True)


def load_newest(folder: Path) -> Checkpoint | None:
    """Read the newest checkpoint that is whole; None if there are no checkpoints.

    Raises
    ------
    CheckpointError
        If there are some and none can be read.
    """
    paths = checkpoint_files(folder)
    for path in paths:
        try:
            return Checkpoint.from_bytes(snapshot.read(path))
        except snapshot.SnapshotError as error:
            logger.warning("passing over a checkpoint: %s", error)
    if paths:
        raise CheckpointError(
            f"{folder}: none of {len(paths)} checkpoints can be read; move them away to begin again with an empty model"
        )
    return None


def check_fingerprint(checkpoint: Checkpoint, fingerprint: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on under other settings than the checkpoint's.

    Raises
    ------
    ConfigError
        Naming every setting that differs.
    """
    old = checkpoint.fingerprint
    problems = [
        f"{folder}: the checkpoint was written with {name} = {old.get(name)!r}, the configuration says {value!r}"
        for name, value in fingerprint.items()
        if name not in old or old[name] != value
    ]
    if problems:
        raise ConfigError([*problems, f"{folder}: go back to those settings, or choose another daemon.state_dir"])
