"""Checkpoints: everything that a trainer needs to go on as if it had never stopped, in one atomic file.

The model, the scaler, the metrics and the position in the log are written together.  So they fit after a crash: the
trainer learns the records after that position again, and no others.

Checkpoints hold events, so only the owner of the folder and its files can read them.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm.core.saving import snapshot
from streamsvm.estimators.learner.snapshots import by_prefix

from ...logs.transport import TakenOver, made_again
from ...runtime.folders import make_private, naming, write_private
from ...settings.sections import ConfigError
from . import journal
from .journal import Cut, Journal
from .model_files import damaged_models

logger = logging.getLogger(__name__)

_KIND = "checkpoint"
Number = tuple[int, int]  # of a checkpoint: its owner's epoch, and its place in the sequence

_NONE = (0, 0)  # number of the checkpoint before the first
_RENAMED = {"model.tau": "model.tol"}  # names in fingerprints of 0.1.0 before the parameter was renamed
_ADDED = {"model.threshold": 0.0, "model.reservoir": 4000, "model.admission": "violation"}  # settings that 0.1.0 lacks
READ_TRIES = 5  # to read what its owner, which is running, may be removing

_FIRST_COMMITTED = 2  # in the sequence: the first checkpoint comes before the first commit

_EPOCH = re.compile(r"epoch-\d{6}", re.ASCII)
_NAME = re.compile(r"(?:checkpoint|journal)-(\d{6})-(\d{10})\.(?:ssvm|log)")


class CheckpointError(ValueError):
    """A state folder has checkpoints, but none can be used."""


def reading(where: Path) -> AbstractContextManager[None]:
    """Raise a `CheckpointError` for everything that a checkpoint's damaged content makes its reader raise."""
    problem = f"{where}: the newest checkpoint cannot be used: its content is damaged"
    return snapshot.guarded(problem, CheckpointError, (ConfigError,))


@dataclass(frozen=True)
class Checkpoint:
    """The state of a partition between two cuts, as it is stored.

    Parameters
    ----------
    sequence
        Number of the checkpoint: 1, 2, 3, ...
    offsets
        Offsets of the next records, under "events" and "labels".
    fingerprint
        The settings that the rest depends on.
    counters
        The counters by name.
    blobs
        Parts with their own format, by name: the model, the scaler and others.
    arrays
        The other parts, as arrays under ``PART.NAME``.
    topic_ids
        Kafka's ids of the topics that the offsets belong to, as far as they are known.
    """

    sequence: int
    offsets: dict[str, int]
    fingerprint: dict[str, Any]
    counters: dict[str, Any]
    blobs: dict[str, bytes]
    arrays: dict[str, np.ndarray] = field(repr=False)
    topic_ids: dict[str, str] = field(default_factory=dict)

    def part(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of a part, by name; empty if it lacks the part."""
        return by_prefix(self.arrays).get(name, {})

    def to_bytes(self) -> bytes:
        meta = {name: getattr(self, name) for name in ("sequence", "offsets", "fingerprint", "counters")}
        # Topic ids are arrays, which older versions pass over; they would refuse another entry of meta.
        ids = {name: topic_id.encode() for name, topic_id in self.topic_ids.items()}
        parts: dict[str, Mapping[str, Any]] = {"array": self.arrays, "blob": self.blobs, "topic": ids}
        arrays = {f"{part}.{name}": held for part, all_ in parts.items() for name, held in all_.items()}
        return snapshot.pack(_KIND, meta, arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Checkpoint":
        meta, stored = snapshot.unpack(data, _KIND)
        with snapshot.reading(_KIND):
            for name in ("offsets", "fingerprint", "counters"):
                snapshot.field(meta, name, dict)
            meta["fingerprint"] = {_RENAMED.get(name, name): value for name, value in meta["fingerprint"].items()}
            snapshot.count(meta, "sequence")
            for name in meta["offsets"]:
                snapshot.count(meta["offsets"], name)
            parts = by_prefix(stored)
            blobs = {name: array.tobytes() for name, array in parts.get("blob", {}).items()}
            try:
                ids = {name: array.tobytes().decode() for name, array in parts.get("topic", {}).items()}
                return cls(**meta, blobs=blobs, arrays=parts.get("array", {}), topic_ids=ids)
            except (TypeError, UnicodeDecodeError) as error:
                raise snapshot.SnapshotError(f"the checkpoint has other fields than this version: {error}") from None


class Saving:
    """A checkpoint that is not yet written.

    Parameters
    ----------
    checkpoint
        What the model that serves has.
    of_challengers
        What each challenger adds to its blobs, once it is there.

    Attributes
    ----------
    is_complete : bool
        Whether all have been added.
    """

    def __init__(self, checkpoint: Checkpoint, of_challengers: Iterator[dict[str, bytes]]) -> None:
        self.checkpoint, self._of_challengers, self.is_complete = checkpoint, of_challengers, False

    def complete(self) -> Iterator[None]:
        """Add what challengers have, one after the other."""
        for blobs in self._of_challengers:
            self.checkpoint.blobs.update(blobs)
            yield
        self.is_complete = True


class CheckpointStore:
    """The folder of one partition: its checkpoints, and the journal of the cuts since.

    The process that opened the folder last owns it.  Each owner claims a higher *epoch*, which is part of every file's
    name; the files of the highest epoch count.  So a process that was thought dead, and wakes up, cannot replace the
    state of its successor, even if it has not heard of it.

    Parameters
    ----------
    folder
        The folder; it is made if it does not exist.
    keep
        Number of checkpoints to keep.
    least
        The lowest epoch to claim.
    """

    def __init__(self, folder: Path, keep: int, least: int = 1) -> None:
        self.folder = folder
        self._keep = keep
        self.epoch = _claim(folder, least)
        for path in folder.glob(".*.tmp"):  # of owners that were killed while they wrote
            path.unlink(missing_ok=True)
        self._loaded = _NONE  # number of the checkpoint that was loaded
        self._journal: Journal | None = None
        self._follows = _NONE  # number of the checkpoint that it follows
        self._n_tries = 0  # how often the last of the repeated cuts has killed the process

    @property
    def crowded(self) -> set[str]:
        """Files of models by key whose models had better move to another file."""
        return set()

    def load(self, *, goes_back: bool = True) -> Checkpoint | None:
        """The newest checkpoint that is whole, and with `goes_back` the newest whose models are: see `load_newest`."""
        found = load_newest(self.folder, goes_back=goes_back)
        if found is not None:
            self._loaded = found[0]
        return found[1] if found else None

    def roll_back(self, committed: Number | None) -> None:
        """Remove the checkpoints after the committed one; if that is None, all but the first.

        The outputs that belong to the removed checkpoints were in a transaction that was not committed.

        Raises
        ------
        CheckpointError
            If the committed checkpoint is missing, or if the log has forgotten what was committed.
        """
        paths = checkpoint_files(self.folder)
        if committed is None and max(map(_number, paths), key=itemgetter(1), default=_NONE)[1] > _FIRST_COMMITTED:
            raise CheckpointError(
                f"{self.folder} has checkpoints, but nothing was committed for the partition, so it is unknown which "
                "of them counts. Kafka forgets a group's commits when the topic is deleted, or when the group was away "
                "for offsets.retention.minutes; a new group.id has none. To begin again with an empty model, choose "
                "another daemon.state_dir. To go on from the newest checkpoint, run once with "
                "daemon.exactly_once = false: a few outputs may then come twice or not at all"
            )
        if committed and committed not in map(_number, paths):
            raise CheckpointError(
                f"{self.folder} has no checkpoint {committed[1]} of epoch {committed[0]}, which was committed"
            )
        last = committed or min(map(_number, paths), key=itemgetter(1), default=(0, 0))
        for path in paths:
            if _number(path) > last:
                path.unlink()

    def begin_journal(self) -> tuple[Journal, list[Cut], Cut | None]:
        """The journal after the loaded checkpoint, the cuts to repeat, and a suspect or None; see `journal.judge`."""
        cuts: list[Cut] = []
        n_tries = 0
        if self._loaded != _NONE:  # without a checkpoint, journals belong to one that was moved away
            for path in _journals_since(self.folder, self._loaded):
                more, n_tries = journal.read(path)
                cuts = list(dict.fromkeys([*cuts, *more]))  # it may begin with the last ones of the journal before
        cuts, self._n_tries, suspect = journal.judge(cuts, n_tries)
        self._journal = self._new_journal((self.epoch, self._loaded[1]), cuts, self._n_tries)
        return self._journal, cuts, suspect

    def save(self, checkpoint: bytes, sequence: int, again: Iterable[Cut] = ()) -> Journal:
        """Write a checkpoint durably, remove old ones, and begin a new journal, unless `go_on` has.

        Parameters
        ----------
        checkpoint, sequence
            The checkpoint's content and number.
        again
            Earlier cuts that still have to be repeated; the journal begins with them.

        Raises
        ------
        TakenOver
            If another process owns the folder by now.
        """
        if _newest_epoch(self.folder) > self.epoch:
            raise TakenOver(f"{self.folder} belongs to another process by now")
        number = self.epoch, sequence
        path = checkpoint_path(self.folder, number)
        with naming(path):
            write_private(path, checkpoint)
        if self._follows != number:
            self.go_on(sequence, again)
        assert self._journal
        self._remove_old()
        return self._journal

    def go_on(self, sequence: int, again: Iterable[Cut] = ()) -> Journal:
        """Begin the journal after a checkpoint, which may still have to be written; arguments are those of `save`.

        Until it is, the checkpoint before counts, and both journals.
        """
        self.close()
        cuts = list(again)
        self._follows = self.epoch, sequence
        self._journal = self._new_journal(self._follows, cuts, self._n_tries if cuts else 0)
        return self._journal

    def _new_journal(self, number: Number, past: Sequence[Cut], n_tries: int) -> Journal:
        """Begin the journal after a checkpoint with the cuts to repeat."""
        return Journal(journal_path(self.folder, number), past, n_tries)

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _remove_old(self) -> None:
        kept = checkpoint_files(self.folder)[: self._keep]
        oldest = min(map(_number, kept))
        for path in stored_files(self.folder):
            if path not in kept and _number(path) < oldest:
                path.unlink(missing_ok=True)


def checkpoint_path(folder: Path, number: Number) -> Path:
    """The file of a checkpoint in a folder."""
    return folder / f"checkpoint-{number[0]:06d}-{number[1]:010d}.ssvm"


def journal_path(folder: Path, number: Number) -> Path:
    """The file of the journal after a checkpoint."""
    return folder / f"journal-{number[0]:06d}-{number[1]:010d}.log"


def stored_files(folder: Path, kind: str = "*") -> list[Path]:
    """The checkpoints and the journals in a folder, or those of one kind."""
    return [path for path in folder.glob(f"{kind}-*-*") if _NAME.fullmatch(path.name)]


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, newest first, without those that replaced owners wrote afterwards."""
    files = {_number(path): path for path in stored_files(folder, "checkpoint")}
    journals = [*map(_number, stored_files(folder, "journal"))]
    return [
        files[epoch, sequence]
        for epoch, sequence in sorted(files, reverse=True)
        if not any(later > epoch and origin < sequence for later, origin in journals)
    ]


def _has_whole_models(folder: Path, checkpoint: Checkpoint) -> bool:
    """Whether all models of keys that a checkpoint names can be read; logs the first one that cannot."""
    arrays = checkpoint.part("models")
    damage = next(damaged_models(folder, arrays), None) if arrays else None
    if damage is not None:
        logger.warning("checkpoint %d needs a damaged model: %s", checkpoint.sequence, damage)
    return damage is None


def load_newest(folder: Path, *, goes_back: bool = False) -> tuple[Number, Checkpoint] | None:
    """Read the newest checkpoint that is whole; None if the folder has none.

    Parameters
    ----------
    folder
        The folder.
    goes_back
        Whether a checkpoint that needs a damaged model is passed over.  If each of them does, the newest one counts.

    Raises
    ------
    CheckpointError
        If the folder has checkpoints, but none can be read.
    """
    paths = checkpoint_files(folder)
    newest = None
    for path in paths:
        try:
            found = _number(path), Checkpoint.from_bytes(snapshot.read(path))
            if not goes_back or _has_whole_models(folder, found[1]):
                return found
            newest = newest or found
        except snapshot.SnapshotError as error:
            logger.warning("passing over a checkpoint: %s", error)
    if paths and newest is None:
        raise CheckpointError(
            f"{folder}: none of {len(paths)} checkpoints can be read; move them away to begin again with an empty model"
        )
    return newest


def _claim(folder: Path, least: int) -> int:
    """Take a folder over; return a new epoch, `least` or higher."""
    make_private(folder.parent)
    make_private(folder)
    while True:
        epoch = max(_newest_epoch(folder) + 1, least)
        try:
            (folder / f"epoch-{epoch:06d}").touch(0o600, exist_ok=False)
        except FileExistsError:
            continue
        if _newest_epoch(folder) > epoch:  # it was the epoch of an owner that was replaced
            continue
        with naming(folder):
            snapshot.sync_folder(folder)
        for older, path in _epochs(folder).items():
            if older < epoch:
                path.unlink(missing_ok=True)
        return epoch


def _newest_epoch(folder: Path) -> int:
    return max(_epochs(folder), default=0)


def _epochs(folder: Path) -> dict[int, Path]:
    """The files of the epochs that were claimed; other files are none of ours."""
    return {int(path.name[6:]): path for path in folder.glob("epoch-*") if _EPOCH.fullmatch(path.name)}


def _number(path: Path) -> Number:
    found = _NAME.fullmatch(path.name)
    assert found
    return int(found[1]), int(found[2])


def _journals_since(folder: Path, loaded: Number) -> list[Path]:
    """The journals after a checkpoint, without those that replaced owners wrote afterwards."""
    journals = {_number(path): path for path in stored_files(folder, "journal")}
    epoch, chosen = loaded[0], []
    for sequence in sorted({number[1] for number in journals if number[1] >= loaded[1]}):
        newest = max(number[0] for number in journals if number[1] == sequence)
        if newest >= epoch:
            epoch = newest
            chosen.append(journals[newest, sequence])
    return chosen


def check_topics(checkpoint: Checkpoint, topic_ids: Mapping[str, str]) -> None:
    """Refuse a topic that was deleted and made again since the checkpoint.

    Raises
    ------
    TopicMismatch
        If there is such a topic; the message names it.
    """
    for name, old in checkpoint.topic_ids.items():
        if topic_ids.get(name, old) != old:
            raise made_again(name)


def check_fingerprint(checkpoint: Checkpoint, fingerprint: Mapping[str, Any], folder: Path) -> None:
    """Refuse other settings than those of the checkpoint.

    Raises
    ------
    ConfigError
        If a setting differs; the message names each one.
    """
    old = _ADDED | _with_scaling(checkpoint.fingerprint)
    problems = [
        f"{folder}: the checkpoint was written {_given(name, old.get(name))}, the configuration {_says(value)}"
        for name, value in fingerprint.items()
        if old.get(name) != value  # an older version lacks settings that are unset by default
    ]
    if problems:
        raise ConfigError(
            *problems,
            f"{folder}: go back to those settings, or choose another daemon.state_dir; for a replay, another --app",
        )


def _given(name: str, value: Any) -> str:
    return f"without {name}" if value is None else f"with {name} = {value!r}"


def _says(value: Any) -> str:
    return "leaves it out" if value is None else f"says {value!r}"


def _with_scaling(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """The fingerprint with what `features.scale` of 0.1.0 means now; such a checkpoint has the scaler itself."""
    scale = fingerprint.get("features.scale")
    return {**fingerprint, "model.scaling": None if scale == "none" else "standard"} if scale else {**fingerprint}
