"""Models in records: their classes in the engine, what they say about events, and models as bytes.

A model of raw records belongs to the `Records` that make its features, and a model that decides to its
`ConformalClassifier`: `Trained` holds them all, and one blob does, too.
"""

from collections.abc import Mapping, Sequence
from functools import cache
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


def is_of(model: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a model is of one of these classes; `isinstance`, which river replaces, takes several times as long."""
    return _is_subclass(type(model), kinds)


_is_subclass: Any = cache(issubclass)  # for abstract classes, it runs Python code


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


def rows_of(xs: NamedRows | Sequence[Mapping[str, Any]], made_by: Records | WarmupScaler | None) -> NamedRows:
    """Features of events as a model takes them: the numbers that `Records` make of them, or scaled numbers."""
    if made_by is not None and isinstance(made_by, Records):
        return NamedRows.of(made_by.transform_many(list(xs)))
    rows = xs if isinstance(xs, NamedRows) else NamedRows.of(xs)
    return rows if made_by is None else made_by.transform_many(rows)


class Trained(NamedTuple):
    """A model that goes on learning, or that others predict by.

    Attributes
    ----------
    model
        The model.
    made_by
        What makes its features: `Records` if events are raw, or the scaler of a run that 0.1.0 began.
    decider
        What decides with its probabilities, around the same model, if [decide] asks for it.
    names
        Names of the negative and of the positive class, for an export; empty: False and True.
    """

    model: Any
    made_by: Records | WarmupScaler | None = None
    decider: ConformalClassifier | None = None
    names: Sequence[Any] = ()

    @property
    def records(self) -> Records | None:
        """What makes its features, if events are raw."""
        made_by = self.made_by
        return made_by if made_by is not None and isinstance(made_by, Records) else None

    @property
    def learner(self) -> Any:
        """What forgets and corrects examples: the decider around the model, or the model alone."""
        return self.decider or self.model

    def whole(self) -> Any:
        """All as one model of this package, which `streamsvm.export` can write."""
        learner = self.learner if self.made_by is None else self.made_by | self.learner
        return Named(learner, *self.names) if self.names else learner

    def to_bytes(self) -> bytes:
        """All as one blob; a model without records as it, or its decider, writes itself."""
        model: bytes = self.learner.to_bytes()
        if self.records is None:
            return model
        return snapshot.pack(_WITH_RECORDS, {}, {"model": model, "records": self.records.to_bytes()})

    @classmethod
    def from_bytes(cls, implementation: Any, data: bytes, cache_mb: float | None = None) -> "Trained":
        """What `to_bytes` wrote, of a model of this class; a SnapshotError if it is damaged or something else."""
        records, found = None, snapshot.opened(data)
        if found.kind == _WITH_RECORDS:
            records = Records.from_bytes(snapshot.blob_of(found.arrays, "records"))
            found = snapshot.opened(snapshot.blob_of(found.arrays, "model"))
        model, decider = _model_of(implementation, found, cache_mb)
        return cls(model, records, decider)

    def digest(self) -> str:
        """The digest of all; of a model without records, its own or its decider's."""
        model: str = self.learner.digest()
        if self.records is None:
            return model
        return blake2b(f"{model} {self.records.digest()}".encode(), digest_size=32).hexdigest()


def _model_of(
    implementation: Any, found: snapshot.Opened, cache_mb: float | None = None, device: str | None = None
) -> tuple[Any, ConformalClassifier | None]:
    """A model of this class, and the decider around it if there is one."""
    if found.kind != _DECIDER:
        return implementation._of_snapshot(found, cache_mb, device), None
    decider = ConformalClassifier._of_snapshot(found, cache_mb, device)
    snapshot.require(isinstance(decider.model, implementation), f"the model is a {type(decider.model).__name__}")
    return decider.model, decider


def pack_model(trained: Trained) -> bytes:
    """A model, what makes its features and what decides as one blob; equal input gives equal bytes."""
    names: dict[type, str] = {implementation: name for name, implementation in FOR_TWO_CLASSES.items()}
    names[MulticlassMixture] = names[Mixture]  # its bytes tell which one it is
    algorithm = _SEVERAL if isinstance(trained.model, MulticlassModel) else names[type(trained.model)]
    blobs = {"model": trained.learner.to_bytes()}
    if trained.made_by is not None:
        blobs["scaler" if trained.records is None else "records"] = trained.made_by.to_bytes()
    return snapshot.pack(_KIND, {"algorithm": algorithm, "meta": {}}, blobs)


def unpack_model(data: bytes, device: str = "cpu") -> Trained:
    """The model that `pack_model` packed, for predictions on this device; it has made a first one.

    Raises
    ------
    SnapshotError
        If the blob is damaged, holds no model, or holds one that this version cannot use.
    """
    header, arrays = snapshot.unpack(data, _KIND)
    with snapshot.guarded("a model that cannot be used"):
        algorithm, blobs = header["algorithm"], {name: snapshot.blob_of(arrays, name) for name in arrays}
        implementation: Any = MulticlassModel if algorithm == _SEVERAL else FOR_TWO_CLASSES[algorithm]
        model, decider = _model_of(implementation, snapshot.opened(blobs["model"]), device=device)
        made_by: Records | WarmupScaler | None = None
        for name, kind in (("scaler", WarmupScaler), ("records", Records)):
            made_by = kind.from_bytes(blobs[name]) if name in blobs else made_by
        model.predict_proba_one(_means(model))  # This fails if a coefficient is not finite; any example will do.
        return Trained(model, made_by, decider)


def _means(model: Model) -> dict[Any, float]:
    """An example that lacks no feature, which the model would warn of."""
    return {name: model.scale_of(name)[0] for name in model.feature_names}
