"""Writing a model or a pipeline into a file, and reading it without knowing its class."""

from pathlib import Path
from typing import Any

from streamsvm.alarms import ErrorAlarm, InputAlarm
from streamsvm.conformal.classifier import ConformalClassifier
from streamsvm.core.saving import snapshot
from streamsvm.estimators.mixture.mixture import FOR_TWO_CLASSES
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest
from streamsvm.features import pipelines
from streamsvm.features.records import Records
from streamsvm.preprocessing import WarmupScaler


def save(model: Any, path: str | Path) -> None:
    """Write a model, or a pipeline of river with its `Records`, to one file, atomically; `load` reads it.

    Parameters
    ----------
    model
        Whatever has `save` itself, or a pipeline whose steps all have it, such as ``Records() | AutoLASVM()``.
    path
        The file.

    Raises
    ------
    TypeError
        If a step of the pipeline cannot be saved, such as a function.
    SnapshotError
        If a name in the model is of a type that a snapshot cannot hold.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import streamsvm
    >>> from streamsvm.features import Records
    >>> pipeline = Records() | streamsvm.LASVM()
    >>> pipeline.learn_one({"color": "red"}, True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     streamsvm.save(pipeline, f"{folder}/pipeline.ssvm")
    ...     again = streamsvm.load(f"{folder}/pipeline.ssvm")
    >>> again["Records"].transform_one({"color": "red"})
    {'~color=red': 1.0}
    """
    if hasattr(model, "save"):
        model.save(path)
    else:
        snapshot.write_atomic(path, pipelines.packed(model))


def load(path: str | Path, cache_mb: float | None = None, device: str | None = None) -> Any:
    """Read what `save` wrote, of whatever class: a learner, a `Mixture`, a `OneVsRest`, a `OneVsOne`, a
    `ConformalClassifier`, a `WarmupScaler`, a `Records`, an alarm, or a pipeline of these.

    Parameters
    ----------
    path
        The file.
    cache_mb
        Size of each row cache in megabytes; default: the stored one.
    device
        Where kernel values are computed; default: the stored device.

    Raises
    ------
    SnapshotError
        If the file is damaged, was not written by `save`, or is from a newer format.
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import streamsvm
    >>> model = streamsvm.OneVsRest(streamsvm.LASVM())
    >>> model.learn_many([{"a": 1.0}, {"a": 2.0}], ["low", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.svm")
    ...     streamsvm.load(f"{folder}/model.svm").labels
    ['low', 'high']
    """
    return _read(snapshot.opened(snapshot.read(path)), str(path), cache_mb, device)


def _read(found: snapshot.Opened, where: str, *how: Any) -> Any:
    kind = found.kind
    if kind == pipelines.KIND:
        return pipelines.unpacked(found, lambda step: _read(step, where, *how))
    for transformer in (WarmupScaler, Records, ErrorAlarm, InputAlarm):
        if kind == transformer.__name__:
            return transformer._of_snapshot(found)
    for learner in (*FOR_TWO_CLASSES.values(), OneVsRest, OneVsOne, ConformalClassifier):
        if kind == learner.__name__:
            return learner._of_snapshot(found, *how)
    raise snapshot.SnapshotError(f"{where}: this is a {kind!r} snapshot; `load` reads what `save` of a model wrote")
