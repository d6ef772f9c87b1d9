"""Checkpoints: everything a daemon needs to go on as if it had never stopped, in one atomic file.

The model, the scaler, the metrics and the position in the log are written together, so that after a crash they fit: the
records after that position, and no others, are learned again.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm import snapshot

from . import journal
from .folders import sync_folder
from .journal import Cut, Journal
from .settings import ConfigError
from .transport import TakenOver

logger = logging.getLogger(__name__)

_KIND = "checkpoint"
Number = tuple[int, int]  # of a checkpoint: the epoch of its owner, and its place in the sequence

_SUFFIX = {"checkpoint": "ssvm", "journal": "log"}
_NONE = (0, 0)  # number of the checkpoint before the first

_NAME = re.compile(r"(?:checkpoint|journal)-(\d{6})-(\d{10})\.(?:ssvm|log)")


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
        with snapshot.reading(_KIND):
            return cls._of(meta, stored)

    @classmethod
    def _of(cls, meta: dict[str, Any], stored: dict[str, np.ndarray]) -> "Checkpoint":
        for name in ("offsets", "fingerprint", "counters"):
            snapshot.field(meta, name, dict)
        snapshot.count(meta, "sequence")
        blobs = {name.removeprefix("blob."): a.tobytes() for name, a in stored.items() if name.startswith("blob.")}
        arrays = {name.removeprefix("array."): a for name, a in stored.items() if name.startswith("array.")}
        return cls(**meta, blobs=blobs, arrays=arrays)


class CheckpointStore:
    """The checkpoints of one partition, and the journal of what was taken since, in a folder of their own.

    Whoever opens the folder last owns it: each owner claims a higher *epoch*, which is part of every file's name, and
    the files of the highest epoch count.  So a process that was given up for dead, and wakes up, cannot replace the
    state of its successor, even if it does not know of it.

    Parameters
    ----------
    folder
        Made if it does not exist.
    keep
        Number of checkpoints that are kept.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self._keep = keep
        self.epoch = _claim(folder)
        for path in folder.glob(".*.tmp"):  # of owners that were killed while they wrote
            path.unlink(missing_ok=True)
        self._loaded = _NONE  # epoch and sequence number of the checkpoint that was
        self._journal: Journal | None = None

    def load(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; see `load_newest`."""
        found = load_newest(self.folder)
        if found is not None:
            self._loaded = found[0]
        return found[1] if found else None

    def roll_back(self, committed: Number | None) -> None:
        """Remove the checkpoints after the `committed` one; None: all but the first, which is before the first record.

        Of a log with transactions, the outputs that led to the others never were.

        Raises
        ------
        CheckpointError
            If the committed one is not there.
        """
        paths = checkpoint_files(self.folder)
        if committed and committed not in map(_number, paths):
            raise CheckpointError(
                f"{self.folder}: there is no checkpoint {committed[1]} of epoch {committed[0]}, which was committed"
            )
        last = committed or min(map(_number, paths), key=itemgetter(1), default=(0, 0))
        for path in paths:
            if _number(path) > last:
                path.unlink()

    def begin_journal(self) -> tuple[Journal, list[Cut], Cut | None]:
        """The journal of what follows the loaded checkpoint, the cuts to take again, and perhaps a suspect among them.

        See `journal.judge`.
        """
        cuts: list[Cut] = []
        n_tries = 0
        if self._loaded != _NONE:  # or else nothing was taken before, and journals are of checkpoints moved away
            for path in _journals_since(self.folder, self._loaded):
                more, n_tries = journal.read(path)
                cuts += more
        cuts, n_tries, suspect = journal.judge(cuts, n_tries)
        self._journal = Journal(_path(self.folder, "journal", (self.epoch, self._loaded[1])), cuts, n_tries)
        return self._journal, cuts, suspect

    def save(self, checkpoint: bytes, sequence: int) -> Journal:
        """Write a checkpoint, durably, remove those that are too old, and begin the journal of what follows.

        Raises
        ------
        TakenOver
            If another process owns the folder by now.
        """
        if _newest_epoch(self.folder) > self.epoch:
            raise TakenOver(f"{self.folder} belongs to another process by now")
        number = self.epoch, sequence
        snapshot.write_atomic(checkpoint_path(self.folder, number), checkpoint)
        self.close()
        self._journal = Journal(_path(self.folder, "journal", number))
        self._remove_old()
        return self._journal

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _remove_old(self) -> None:
        kept = checkpoint_files(self.folder)[: self._keep]
        oldest = min(map(_number, kept))
        for path in self.folder.glob("*-*-*"):
            if _NAME.fullmatch(path.name) and path not in kept and _number(path) < oldest:
                path.unlink(missing_ok=True)


def checkpoint_path(folder: Path, number: Number) -> Path:
    """The file of a checkpoint in a folder."""
    return _path(folder, "checkpoint", number)


def _path(folder: Path, kind: str, number: Number) -> Path:
    return folder / f"{kind}-{number[0]:06d}-{number[1]:010d}.{_SUFFIX[kind]}"


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, newest first, without those of owners that had been replaced by then."""
    files = {_number(path): path for path in folder.glob("checkpoint-*") if _NAME.fullmatch(path.name)}
    journals = [_number(path) for path in folder.glob("journal-*") if _NAME.fullmatch(path.name)]
    return [
        files[epoch, sequence]
        for epoch, sequence in sorted(files, reverse=True)
        if not any(later > epoch and origin < sequence for later, origin in journals)
    ]


def load_newest(folder: Path) -> tuple[Number, Checkpoint] | None:
    """Read the newest checkpoint that is whole; None if there are no checkpoints.

    Raises
    ------
    CheckpointError
        If there are some and none can be read.
    """
    paths = checkpoint_files(folder)
    for path in paths:
        try:
            return _number(path), Checkpoint.from_bytes(snapshot.read(path))
        except snapshot.SnapshotError as error:
            logger.warning("passing over a checkpoint: %s", error)
    if paths:
        raise CheckpointError(
            f"{folder}: none of {len(paths)} checkpoints can be read; move them away to begin again with an empty model"
        )
    return None


def _claim(folder: Path) -> int:
    """Take a folder over: an epoch that nobody had before."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        epoch = _newest_epoch(folder) + 1
        try:
            (folder / f"epoch-{epoch:06d}").touch(exist_ok=False)
        except FileExistsError:
            continue
        if _newest_epoch(folder) > epoch:  # it had been somebody's, who was replaced already
            continue
        sync_folder(folder)
        for path in folder.glob("epoch-*"):
            if int(path.name[6:]) < epoch:
                path.unlink(missing_ok=True)
        return epoch


def _newest_epoch(folder: Path) -> int:
    return max((int(path.name[6:]) for path in folder.glob("epoch-*")), default=0)


def _number(path: Path) -> Number:
    found = _NAME.fullmatch(path.name)
    assert found
    return int(found[1]), int(found[2])


def _journals_since(folder: Path, loaded: Number) -> list[Path]:
    """The journals that follow a checkpoint, without those of owners that had been replaced by then."""
    journals = {_number(path): path for path in folder.glob("journal-*") if _NAME.fullmatch(path.name)}
    epoch, chosen = loaded[0], []
    for sequence in sorted({number[1] for number in journals if number[1] >= loaded[1]}):
        newest = max(number[0] for number in journals if number[1] == sequence)
        if newest >= epoch:
            epoch = newest
            chosen.append(journals[newest, sequence])
    return chosen


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
        if old.get(name) != value  # those of an older version lack what is off by default
    ]
    if problems:
        raise ConfigError([*problems, f"{folder}: go back to those settings, or choose another daemon.state_dir"])
