"""Models in records: their classes in the engine, what they say about events, and models as bytes.

A model of raw records belongs to the `Records` that make its features, and a model that decides to its
`ConformalClassifier`: `Trained` holds them all, and one blob does, too.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from streamsvm import Mixture, OneVsRest, WarmupScaler
from streamsvm.conformal import ConformalClassifier
from streamsvm.core.saving import snapshot
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.mixture.mixture import FOR_TWO_CLASSES, MulticlassMixture
from streamsvm.export import Named
from streamsvm.features import Records

MulticlassModel = OneVsRest  # the only place that chooses it
MULTICLASS = OneVsRest, MulticlassMixture  # the models of more than two classes
Model = OnlineSVM | OneVsRest

_SEVERAL = "several"  # its name beside the learners'
_KIND = "served model"
_WITH_RECORDS = "model with records"
_DECIDER = ConformalClassifier.__name__


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


def scores(model: OneVsRest | MulticlassMixture, rows: NamedRows | list[dict]) -> Scores:
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


def rows_of(
    xs: NamedRows | Sequence[Mapping[str, Any]], scaler: WarmupScaler | None, records: Records | None
) -> NamedRows:
    """Features of events as a model takes them: the numbers that `records` makes of them, or scaled numbers."""
    if records is not None:
        return NamedRows.of(records.transform_many(list(xs)))
    rows = xs if isinstance(xs, NamedRows) else NamedRows.of(xs)
    return rows if scaler is None else scaler.transform_many(rows)


class Trained(NamedTuple):
    """A model that goes on learning.

    Attributes
    ----------
    model
        The model.
    records
        What makes its features, if events are raw.
    decider
        What decides with its probabilities, around the same model, if [decide] asks for it.
    """

    model: Any
    records: Records | None = None
    decider: ConformalClassifier | None = None

    @property
    def learner(self) -> Any:
        """What forgets and corrects examples: the decider around the model, or the model alone."""
        return self.decider or self.model

    def to_bytes(self) -> bytes:
        """All as one blob; a model without records as it, or its decider, writes itself."""
        model = self.learner.to_bytes()
        if self.records is None:
            return model
        parts = {"model": model, "records": self.records.to_bytes()}
        return snapshot.pack(_WITH_RECORDS, {}, {name: _array(blob) for name, blob in parts.items()})

    @classmethod
    def from_bytes(cls, implementation: Any, data: bytes, cache_mb: float | None = None) -> "Trained":
        """What `to_bytes` wrote, of a model of this class; a SnapshotError if it is damaged or something else."""
        records = None
        if snapshot.kind_of(data) == _WITH_RECORDS:
            _, arrays = snapshot.unpack(data, _WITH_RECORDS)
            with snapshot.reading(_WITH_RECORDS):
                data, records = arrays["model"].tobytes(), Records.from_bytes(arrays["records"].tobytes())
        model, decider = _model_of(implementation, data, cache_mb=cache_mb)
        return cls(model, records, decider)

    def served(self, scaler: WarmupScaler | None, meta: dict[str, Any] | None = None) -> "ServedModel":
        """The same for others who predict by it; `meta` and the scaler are those of `ServedModel`."""
        return ServedModel(self.model, scaler, meta or {}, self.records, self.decider)

    def digest(self) -> str:
        """The digest of all; of a model without records, its own or its decider's."""
        model = self.learner.digest()
        if self.records is None:
            return model
        return blake2b(f"{model} {self.records.digest()}".encode(), digest_size=32).hexdigest()


def _model_of(implementation: Any, data: bytes, **how: Any) -> tuple[Any, ConformalClassifier | None]:
    """A model of this class, and the decider around it if there is one."""
    if snapshot.kind_of(data) != _DECIDER:
        return implementation.from_bytes(data, **how), None
    decider = ConformalClassifier.from_bytes(data, **how)
    snapshot.require(isinstance(decider.model, implementation), f"the model is a {type(decider.model).__name__}")
    return decider.model, decider


class ServedModel(NamedTuple):
    """A model that can predict, with the scaler of its features or the `Records` that make them, and its decider."""

    model: Model
    scaler: WarmupScaler | None
    meta: dict[str, Any]
    records: Records | None = None
    decider: ConformalClassifier | None = None

    def whole(self) -> Any:
        """All as one model of this package, which `streamsvm.export` can write; `meta` may name its two classes."""
        made_by = self.records or self.scaler
        learner: Any = self.decider or self.model
        learner = learner if made_by is None else made_by | learner
        return Named(learner, *self.meta["names"]) if self.meta.get("names") else learner


def pack_model(
    model: Model,
    scaler: WarmupScaler | None,
    meta: Mapping[str, Any],
    records: Records | None = None,
    decider: ConformalClassifier | None = None,
) -> bytes:
    """A model, what makes its features, what decides, and plain values as one blob; equal input gives equal bytes.

    Raises
    ------
    SnapshotError
        If `meta` would not survive JSON unchanged.
    """
    names: dict[type, str] = {implementation: name for name, implementation in FOR_TWO_CLASSES.items()}
    names[MulticlassMixture] = names[Mixture]  # its bytes tell which one it is
    algorithm = _SEVERAL if isinstance(model, MulticlassModel) else names[type(model)]
    blobs = {"model": (decider or model).to_bytes()}
    if scaler is not None:
        blobs["scaler"] = scaler.to_bytes()
    if records is not None:
        blobs["records"] = records.to_bytes()
    arrays = {name: _array(blob) for name, blob in blobs.items()}
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
        implementation: Any = MulticlassModel if algorithm == _SEVERAL else FOR_TWO_CLASSES[algorithm]
        model, decider = _model_of(implementation, arrays["model"].tobytes(), device=device)
        scaler = WarmupScaler.from_bytes(arrays["scaler"].tobytes()) if "scaler" in arrays else None
        records = Records.from_bytes(arrays["records"].tobytes()) if "records" in arrays else None
        model.predict_proba_one(_means(model))  # This fails if a coefficient is not finite; any example will do.
        return ServedModel(model, scaler, header["meta"], records, decider)
    except snapshot.SnapshotError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise snapshot.SnapshotError(f"a model that cannot be used: {error!r}") from error


def _means(model: Model) -> dict[Any, float]:
    """An example that lacks no feature, which the model would warn of."""
    return {name: model.scale_of(name)[0] for name in model.feature_names}


def _array(blob: bytes) -> np.ndarray:
    return np.frombuffer(blob, dtype=np.uint8)
