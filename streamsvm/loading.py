"""Reading a stored model whose class is not known."""

from pathlib import Path
from typing import Any

from streamsvm.alarms import ErrorAlarm, InputAlarm
from streamsvm.conformal.classifier import ConformalClassifier
from streamsvm.core.saving import snapshot
from streamsvm.estimators.learners import FOR_TWO_CLASSES
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest
from streamsvm.features.records import Records
from streamsvm.preprocessing import WarmupScaler


def load(path: str | Path, cache_mb: float | None = None, device: str | None = None) -> Any:
    """Read what `save` wrote, of whatever class: a learner, a `Mixture`, a `OneVsRest`, a `OneVsOne`, a
    `ConformalClassifier`, a `WarmupScaler`, a `Records` or an alarm.

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
    data = snapshot.read(path)
    kind = snapshot.kind_of(data)
    for transformer in (WarmupScaler, Records, ErrorAlarm, InputAlarm):
        if kind == transformer.__name__:
            return transformer.from_bytes(data)
    for learner in (*FOR_TWO_CLASSES.values(), OneVsRest, OneVsOne, ConformalClassifier):
        if kind == learner.__name__:
            return learner.from_bytes(data, cache_mb, device)
    raise snapshot.SnapshotError(f"{path}: this is a {kind!r} snapshot; `load` reads what `save` of a model wrote")
