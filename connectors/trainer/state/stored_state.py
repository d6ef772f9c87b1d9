"""Reads a state folder for others than its trainer, which may be running: nothing is changed or claimed."""

from pathlib import Path
from typing import Any, NamedTuple

from streamsvm import WarmupScaler
from streamsvm.estimators.mixture.mixture import FOR_TWO_CLASSES

from ...records.classes import KnownClasses
from ...records.models import Trained
from ...settings.model import ModelSettings
from ...settings.sections import ConfigError
from .checkpoint import READ_TRIES, Checkpoint, CheckpointError, checkpoint_path, load_newest, reading
from .models import KeyedModels, ModelKind, SingleModel
from .state import CLASSES, read_classes


class Stored(NamedTuple):
    """The newest checkpoint of a partition."""

    number: int  # of the partition
    path: Path
    written: float  # by the clock of its file, in seconds since 1970
    n_bytes: int
    checkpoint: Checkpoint
    models: SingleModel | KeyedModels
    scaler: WarmupScaler | None
    classes: KnownClasses

    @property
    def name(self) -> str:
        """Topic and number of the partition."""
        return f"{self.setting('log.topic')}-{self.number}"

    def setting(self, name: str) -> Any:
        """A setting of the checkpoint's fingerprint, by its dotted name; None if the checkpoint is older than it."""
        return self.checkpoint.fingerprint.get(name)

    def served(self, key: bytes | None) -> Trained:
        """A model with all that it takes to predict by it; `key` is None if the partition has one model."""
        names, found = (self.setting("label.negative"), self.setting("label.positive")), self.models.trained(key)
        return found._replace(made_by=found.made_by or self.scaler, names=() if None in names else names)


def partition_folders(folder: Path) -> list[Path]:
    """The folders of the partitions in a state folder, by number; none if there is no such folder."""
    return sorted((path for path in folder.glob("p*") if path.name[1:].isdecimal()), key=_number)


def _number(folder: Path) -> int:
    return int(folder.name[1:])


def read_state(folder: Path) -> list[Stored]:
    """The partitions of a state folder, by number.

    Parameters
    ----------
    folder
        The folder of the setting daemon.state_dir.

    Raises
    ------
    ConfigError
        If the folder does not exist, or has no checkpoint.
    CheckpointError, SnapshotError
        If a partition's checkpoints or models cannot be read.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; name a trainer's daemon.state_dir, which its first run makes")
    stored = [item for path in partition_folders(folder) if (item := _read(path)) is not None]
    if not stored:
        raise ConfigError(f"{folder}: it has no checkpoint (p0/checkpoint-*.ssvm); name a trainer's daemon.state_dir")
    return stored


def readable_state(folder: Path) -> list[Stored]:
    """As `read_state`; empty if there is nothing that can be read."""
    try:
        return read_state(folder)
    except (ConfigError, CheckpointError):
        return []


def _read(folder: Path) -> Stored | None:
    for _ in range(READ_TRIES - 1):
        try:
            return _read_once(folder)
        except FileNotFoundError:
            continue
    return _read_once(folder)


def _read_once(folder: Path) -> Stored | None:
    found = load_newest(folder)
    if found is None:
        return None
    path, checkpoint = checkpoint_path(folder, found[0]), found[1]
    file = path.stat()
    algorithm = checkpoint.fingerprint.get("model.algorithm")
    if algorithm not in FOR_TWO_CLASSES:
        raise CheckpointError(f"{path}: this version does not know the algorithm {algorithm!r}")
    with reading(path):
        scaler = WarmupScaler.from_bytes(checkpoint.blobs["scaler"]) if "scaler" in checkpoint.blobs else None
        models = _models(folder, checkpoint, ModelSettings(algorithm=algorithm))
        known = KnownClasses(read_classes(checkpoint))
    return Stored(_number(folder), path, file.st_mtime, file.st_size, checkpoint, models, scaler, known)


def _models(folder: Path, checkpoint: Checkpoint, settings: ModelSettings) -> SingleModel | KeyedModels:
    kind = ModelKind(settings, () if CLASSES in checkpoint.blobs else None)
    if "model" in checkpoint.blobs:
        return SingleModel(kind.read(checkpoint.blobs["model"]))
    arrays = checkpoint.part("models")
    models = KeyedModels(kind, folder, 0, max_models=1, keep=1, max_keys=len(arrays["key_ends"]), is_owner=False)
    models.restore(arrays)
    return models


def choose_model(stored: list[Stored], folder: Path, partition: int | None, key: str | None) -> Trained:
    """One of the models of a state folder.

    Parameters
    ----------
    stored
        The partitions of the folder.
    folder
        The folder, for messages.
    partition, key
        The partition, and the record key; None if the folder has only one.

    Raises
    ------
    ConfigError
        If these fit no model, or several.
    """
    numbers = ", ".join(str(item.number) for item in stored)
    chosen = [item for item in stored if partition in (None, item.number)]
    if not chosen:
        raise ConfigError(f"--partition {partition}: {folder} has the partitions {numbers}")
    if len(chosen) > 1:
        raise ConfigError(f"{folder} has the partitions {numbers}, with a model each; choose one by --partition")
    models = chosen[0].models
    if isinstance(models, SingleModel):
        if key is not None:
            raise ConfigError(f"--key {key}: {folder} has one model for all keys; leave --key out")
        return chosen[0].served(None)
    keys = models.keys()
    if key is None and len(keys) > 1:
        raise ConfigError(f"{folder} has {len(keys)} models, one for each record key; choose one by --key")
    wanted = key.encode() if key is not None else next(iter(keys), None)
    if wanted not in keys:
        raise ConfigError(f"--key {key}: {folder} has no model for this key" if key else f"{folder} has no model yet")
    return chosen[0].served(wanted)
