"""Models in records: their classes in the engine, what they say about events, and models as bytes."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm import OneVsRest, WarmupScaler
from streamsvm.core.saving import snapshot
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learners import LEARNERS

MulticlassModel = OneVsRest  # the only place that chooses it
Model = OnlineSVM | OneVsRest

_SEVERAL = "several"  # its name beside the learners'
_KIND = "served model"


class Scores(NamedTuple):
    """What a model says about events.

    Attributes
    ----------
    labels
        The labels of the classes that it knows.
    values
        Decision values: a row for each event, a column for each class.
    probabilities
        Probabilities, in the same order.
    """

    labels: Sequence[Any]
    values: np.ndarray
    probabilities: np.ndarray


def scores(model: MulticlassModel, rows: NamedRows | list[dict]) -> Scores:
    """What a model says about these events."""
    values = model.decision_function_many(rows)
    if not model.labels:
        return Scores([], values, values)
    return Scores(model.labels, values, model._probabilities(values))  # predict_proba_many would decide again


def mean(parts: Sequence[Scores]) -> Scores:
    """The means of what several models say; a model that does not know a class says -1 about it."""
    labels = list(dict.fromkeys(label for part in parts for label in part.labels))
    numbers = {label: number for number, label in enumerate(labels)}
    shape = (len(parts[0].values), len(labels))
    values, probabilities = np.zeros(shape), np.zeros(shape)
    for part in parts:
        own_values, own = np.full(shape, -1.0), np.zeros(shape)
        columns = [numbers[label] for label in part.labels]
        own_values[:, columns], own[:, columns] = part.values, part.probabilities
        values += own_values / len(parts)
        probabilities += own / len(parts)
    return Scores(labels, values, probabilities)


class ServedModel(NamedTuple):
    """A model that can predict, with its scaler."""

    model: Model
    scaler: WarmupScaler | None
    meta: dict[str, Any]


def pack_model(model: Model, scaler: WarmupScaler | None, meta: Mapping[str, Any]) -> bytes:
    """A model, the scaler of its features and plain values as one blob; equal input gives equal bytes.

    Raises
    ------
    SnapshotError
        If `meta` would not survive JSON unchanged.
    """
    names: dict[type, str] = {implementation: name for name, implementation in LEARNERS.items()}
    algorithm = _SEVERAL if isinstance(model, MulticlassModel) else names[type(model)]
    blobs = {"model": model.to_bytes()}
    if scaler is not None:
        blobs["scaler"] = scaler.to_bytes()
    arrays = {name: np.frombuffer(blob, dtype=np.uint8) for name, blob in blobs.items()}
    return snapshot.pack(_KIND, {"algorithm": algorithm, "meta": dict(meta)}, arrays)


def unpack_model(data: bytes, device: str = "cpu") -> ServedModel:
    """The model that `pack_model` packed, for predictions on this device; it has made a first one.

    Raises
    ------
    SnapshotError
        If the blob is damaged, holds no model, or holds one that this version cannot use.
    """
    header, arrays = snapshot.unpack(data, _KIND)
    try:
        algorithm = header["algorithm"]
        implementation: Any = MulticlassModel if algorithm == _SEVERAL else LEARNERS[algorithm]
        model = implementation.from_bytes(arrays["model"].tobytes(), device=device)
        scaler = WarmupScaler.from_bytes(arrays["scaler"].tobytes()) if "scaler" in arrays else None
        model.predict_proba_one({})  # This fails if a coefficient is not finite; any example will do.
        return ServedModel(model, scaler, header["meta"])
    except snapshot.SnapshotError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise snapshot.SnapshotError(f"a model that cannot be used: {error!r}") from error
