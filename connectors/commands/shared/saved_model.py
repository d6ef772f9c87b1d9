"""The model that a command is about: a saved one, or one of a trainer's state folder."""

from pathlib import Path

from river import compose

from streamsvm import OneVsOne, WarmupScaler, load
from streamsvm.conformal import ConformalClassifier
from streamsvm.core.saving import snapshot
from streamsvm.estimators.mixture.mixture import FOR_TWO_CLASSES
from streamsvm.features import Records

from ...records.models import MulticlassModel, Trained
from ...runtime.folders import FileError
from ...settings.sections import ConfigError
from ...trainer.state.stored_state import choose_model, read_state

BEFORE = (WarmupScaler, Records, type(None))  # what may stand before a model in a pipeline


def read_model(path: Path, partition: int | None = None, key: str | None = None) -> Trained:
    """Read a model from a file that `streamsvm.save` wrote, or from a trainer's state folder.

    Parameters
    ----------
    path
        The file or folder.
    partition, key
        The model, in a folder with several; None: the folder has only one.

    Raises
    ------
    FileError
        If there is no such file.
    ConfigError
        If the folder has no model, or several without a choice, or if a choice was made in a file.
    SnapshotError
        If the file is damaged, or holds something other than a model.
    """
    if path.is_dir():
        return choose_model(read_state(path), path, partition, key)
    if partition is not None or key is not None:
        raise ConfigError(f"{path}: --partition and --key go with a state folder only")
    if not path.exists():
        raise FileError(f"{path}: there is no such file or folder")
    found = load(path)
    *before, model = found.steps.values() if isinstance(found, compose.Pipeline) else [found]
    decider = model if isinstance(model, ConformalClassifier) else None
    model = model if decider is None else decider.model
    classes = (*FOR_TWO_CLASSES.values(), MulticlassModel, OneVsOne)
    if not isinstance(model, classes) or len(before) > 1 or not isinstance((*before, None)[0], BEFORE):
        raise snapshot.SnapshotError(
            f"{path}: this is a {snapshot.opened(snapshot.read(path)).kind!r} snapshot, expected a model "
            f"({', '.join(made.__name__ for made in classes)}), also behind Records or a WarmupScaler, or a trainer's "
            "state folder"
        )
    return Trained(model, before[0] if before else None, decider)
