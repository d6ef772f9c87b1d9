"""The state of a partition between two cuts, and its way into a checkpoint and back."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson

from streamsvm import WarmupScaler
from streamsvm.active import Action
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import LARGEST_COUNT, require_array
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.learner.snapshots import by_prefix
from streamsvm.features import Records

from ...records.class_changes import ClassChange, ClassChanges
from ...records.classes import ClassLabel, KnownClasses, class_of, two_classes
from ...records.formats.base import BadRecord, show
from ...records.models import Model, MulticlassModel, rows_of
from ...settings.checks import parse_window
from ...settings.model import ModelSettings
from ...settings.sections import Settings
from .alarms import Alarms
from .candidates import Labelling
from .challengers import Challengers, read_terms
from .checkpoint import Checkpoint, CheckpointStore, reading
from .counters import Counters as Counters
from .decided import Decided
from .erased import Erased
from .estimates import Estimates
from .join import Join
from .models import KeyedModels, SingleModel, kind_of
from .quality.multiclass import ClassPrequential
from .quality.prequential import History, Prequential

CLASSES = "classes"  # of a checkpoint: the labels of more than two classes
CHANGES = "class changes"  # of a checkpoint: what people have made of them

_BREAKER_WINDOW = 1000  # records
_IN_ARRAYS = ("join", "metrics", "history", "breaker")  # parts that every checkpoint has
_LATER = ("decided", "erased")  # those that some have
_REQUESTS = ("erasures", "control")  # topics of which a checkpoint may not know


class TooManyBadRecords(ValueError):  # noqa: N818 - names the condition
    """So many records are bad that the stream is probably not what the configuration says.

    Attributes
    ----------
    states
        The state of each partition when the trainer stopped.
    """

    states: "Mapping[int, State]" = MappingProxyType({})


class Breaker:
    """Looks at the last 1000 records, and stops the trainer when too many of them are bad.

    Parameters
    ----------
    max_bad
        The largest share of bad records, from 0 to 1.
    """

    def __init__(self, max_bad: float) -> None:
        self._limit = max_bad * _BREAKER_WINDOW
        self._recent: deque[bool] = deque(maxlen=_BREAKER_WINDOW)  # whether each was bad

    def observe(self, are_bad: Sequence[bool]) -> None:
        """Count records; raise `TooManyBadRecords` at a bad record above the limit."""
        for is_bad in are_bad:
            self._recent.append(is_bad)
            if is_bad and (n_bad := sum(self._recent)) > self._limit:
                raise TooManyBadRecords(
                    f"{n_bad} of the last {len(self._recent)} records are bad, more than daemon.max_bad allows. "
                    "The dead-letter topic says why; a larger daemon.max_bad passes over them"
                )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The state, for a checkpoint."""
        return {"recent": np.array(self._recent, dtype=bool)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint."""
        self._recent.extend(require_array(arrays, "recent", "b", (None,)).tolist())


@dataclass
class State:
    """Everything that changes while the trainer runs."""

    models: SingleModel | KeyedModels
    scaler: WarmupScaler | None  # of a run that 0.1.0 began; later models scale features themselves
    join: Join
    classes: KnownClasses
    challengers: Challengers
    metrics: Prequential | ClassPrequential
    breaker: Breaker
    decided: Decided
    history: History = field(default_factory=History)
    alarms: Alarms = field(default_factory=Alarms)
    changes: ClassChanges = field(default_factory=ClassChanges)
    labelling: Labelling | None = None
    estimates: Estimates | None = None
    offset: int = 0  # of the next event
    labels_offset: int = 0  # of the next record of the topic of labels
    sequence: int = 0  # of the last checkpoint
    counters: Counters = field(default_factory=Counters)
    erased: Erased = field(default_factory=Erased)

    @property
    def version(self) -> int:
        """Number of the models' lessons so far: events learned or learned anew, and examples corrected or forgotten.

        A promotion counts as one, so that scorers take the other model for newer.
        """
        counters = self.counters
        n_lessons = counters.learned + self.join.counters.undone + counters.late + counters.erased + counters.renamed
        return n_lessons + len(self.challengers.terms) - 1

    def serve(self, name: str, settings: Settings, request: int) -> None:
        """Let a challenger serve from now on; the model that served goes into the shadow.

        Estimates begin anew.  Labels that are still to come teach the model with what it said itself.
        """
        assert isinstance(self.models, SingleModel)
        records = self.records
        found = self.challengers.swap(name, self.models, self.counters, self.offset, request)
        self.models = found.models.with_records(records)
        self.join.say(found.said)
        self.estimates = _estimates(settings, self.models)

    def admit(self, change: ClassChange) -> None:
        """Make room for a change of the classes, which `change_class` will make.

        Raises
        ------
        BadRecord
            If the class is unknown, if there is no room for the new one, or if no single model can follow.
        """
        if change.old not in self.classes.labels:
            raise BadRecord("bad-label", f"from must be a class that has come, got {show(change.old)}")
        single = self.models.single
        is_one = single and type(single.model) is MulticlassModel and not single.decider
        if not is_one or self.estimates or self.challengers.all:
            raise BadRecord("bad-label", "this trainer cannot change its classes")
        self.classes.make_way(change.old, change.new)

    def change_class(self, change: ClassChange) -> list[Action]:
        """Follow a change of the classes: the model, the metrics and the labels that wait or hold.

        Returns
        -------
        list of Action
            What becomes of the labels that were asked for.
        """
        old, new = change.old, change.new
        assert isinstance(self.models, SingleModel)
        assert isinstance(self.metrics, ClassPrequential)
        self.changes.add(change)
        self.counters.renamed += 1
        if change.op == "restore":
            return []
        model: Any = self.models.to_learn(None)
        place = model.labels.index(old) if old in model.labels else None
        is_left = new is not None and new not in model.labels  # its name alone changes
        self.join.rename_class(old, new, None if is_left else place)
        self.metrics.rename_class(old, new)
        model.rename_class(old, new)
        return self.labelling.rename_class(old, new, self.model.n_support, self.join.clock) if self.labelling else []

    @property
    def model(self) -> Any:
        """The single model of the partition."""
        assert isinstance(self.models, SingleModel)
        return self.models.model

    @property
    def records(self) -> Records | None:
        """What makes the features of the single model; None if events are not raw, or if each key has a model."""
        return self.models.single.records if self.models.single else None

    def replaced_by(self, other: "State") -> "State":
        """Another state of the same place in the stream, as the next one of this partition.

        Its version is larger, because scorers take no older model.  Challengers that were not rebuilt go on: they have
        forgotten what was erased, and keep its traces.
        """
        models = self.models.replaced_by(other.models)
        other.challengers = self.challengers.replaced_by(other.challengers)
        other.counters.erased = max(1, self.version + 1 - other.version)
        other.counters.seconds += self.counters.seconds
        other.join.odd_times = self.join.odd_times  # the rerun has counted its own
        return replace(other, sequence=self.sequence, erased=self.erased, models=models)

    def rows(self, xs: Sequence[Mapping[str, Any]], entity: bytes | None) -> NamedRows:
        """The features of events as the model of an entity takes them, as arrays."""
        return rows_of(xs, self.models.trained(entity).made_by or self.scaler)

    def standardised(self, x: Mapping[Any, Any], entity: bytes | None) -> dict[Any, float]:
        """Those features of an event that the model of an entity has at mean 0 and standard deviation 1, so scaled."""
        trained = self.models.trained(entity)
        x = x if trained.records is None else trained.records.transform_one(x)
        if self.scaler is not None:
            return self.scaler.transform_one(dict(x)) if self.scaler.kind == "standard" else {}
        model = trained.model
        if not model.is_scaling:
            return {}
        weights = getattr(model, "feature_weights_", {})  # of the kernel, which the factors have in them
        scales = ((name, value, *model.scale_of(name)) for name, value in x.items())
        return {
            name: (value - shift) * factor / weights.get(name, 1.0)
            for name, value, shift, factor in scales
            if (shift, factor) != (0, 1)
        }

    @classmethod
    def new(cls, settings: Settings, store: CheckpointStore, number: int, model: Model | None = None) -> "State":
        """The state of a partition before the first record, with an empty model or this one."""
        classes = _known_classes(settings, getattr(model, "labels", []), ClassChanges())
        models: SingleModel | KeyedModels
        if settings.daemon.per == "partition":
            models = SingleModel(kind_of(settings, settings.model).begun(model))
        else:
            models = _keyed(settings, settings.model, store)
        return cls._with(models, settings, number, classes, Challengers(settings, classes))

    @classmethod
    def _with(
        cls,
        models: SingleModel | KeyedModels,
        settings: Settings,
        number: int,
        classes: KnownClasses,
        challengers: Challengers,
        scaler: WarmupScaler | None = None,
    ) -> "State":
        """The state of a partition before the first record, with these models."""
        single = models.single
        join = Join(*_limits(settings), classes, _leap(settings), int(1000 * settings.join.max_skew_seconds))
        return cls(
            models=models,
            scaler=scaler,
            join=join,
            classes=classes,
            challengers=challengers,
            metrics=prequential(classes, settings.daemon.window),
            breaker=Breaker(settings.daemon.max_bad),
            # An older version left the counts to the decider.
            decided=Decided(classes, single.decider.tallies if single and single.decider else None),
            labelling=Labelling(settings, join, single.made_by or scaler, number)
            if settings.log.questions and single
            else None,
            estimates=_estimates(settings, models),
        )

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, settings: Settings, store: CheckpointStore, number: int
    ) -> "State":
        """The state of a partition at a checkpoint, whose fingerprint must be that of the settings.

        Raises
        ------
        CheckpointError, SnapshotError
            If the checkpoint's content is damaged.
        """
        with reading(store.folder):
            parts, blobs = by_prefix(checkpoint.arrays), checkpoint.blobs
            given = dict.fromkeys(_REQUESTS, 0) | checkpoint.offsets
            offsets = {name: snapshot.count(given, name) for name in ("events", "labels", *_REQUESTS)}
            scaler = WarmupScaler.from_bytes(blobs["scaler"]) if "scaler" in blobs else None
            changes = ClassChanges(orjson.loads(blobs[CHANGES]) if CHANGES in blobs else ())
            classes = _known_classes(settings, read_classes(checkpoint), changes)
            challengers = Challengers(settings, classes, read_terms(blobs))
            challengers.restore(blobs)
            challengers.next_request = offsets["control"]
            models: SingleModel | KeyedModels
            if settings.daemon.per == "partition":
                own = settings.serving(challengers.serving).model
                models = SingleModel(kind_of(settings, own).read(blobs["model"]))
            else:
                models = _keyed(settings, replace(settings.model, scaling="none") if scaler else settings.model, store)
                models.restore(parts["models"])
            self = cls._with(models, settings, number, classes, challengers, scaler)
            for name in _IN_ARRAYS:
                getattr(self, name).restore(parts[name])
            for name in _LATER:
                getattr(self, name).restore(parts.get(name, {}))
            self.alarms.restore(blobs)
            if self.labelling and "labelling" in blobs:
                self.labelling.restore(blobs["labelling"])
            if self.estimates:
                self.estimates.restore(blobs, parts.get("estimates", {}))
            self.erased.offset = offsets["erasures"]
            self.offset, self.labels_offset = offsets["events"], offsets["labels"]
            self.changes, self.sequence, self.counters = changes, checkpoint.sequence, _counters(checkpoint.counters)
            return self

    def to_checkpoint(self, settings: Settings) -> tuple[Checkpoint, Iterator[dict[str, bytes]]]:
        """The state under the next sequence number, and what challengers add to its blobs once they are here.

        No array of it changes when the state does.
        """
        of_challengers = self.challengers.to_blobs()
        blobs = self.alarms.to_blobs() | next(of_challengers)
        parts = {name: getattr(self, name).to_arrays() for name in (*_IN_ARRAYS, *_LATER)}
        if not self.classes.are_two:
            blobs[CLASSES] = orjson.dumps(self.classes.labels)
        if self.changes.all:
            blobs[CHANGES] = orjson.dumps(list(map(list, self.changes.all)))
        if isinstance(self.models, SingleModel):
            blobs["model"] = self.models.single.to_bytes()
        else:
            parts["models"] = self.models.save()
        if self.scaler is not None:
            blobs["scaler"] = self.scaler.to_bytes()
        if self.labelling is not None:
            blobs["labelling"] = self.labelling.to_bytes()
        if self.estimates is not None:
            blobs |= self.estimates.to_blobs()
            parts["estimates"] = self.estimates.to_arrays()
        offsets = {"events": self.offset, "labels": self.labels_offset}
        requests = {"erasures": self.erased.offset, "control": self.challengers.next_request}
        offsets |= {topic: offset for topic, offset in requests.items() if offset}
        checkpoint = Checkpoint(
            sequence=self.sequence + 1,
            offsets=offsets,
            fingerprint=settings.serving(self.challengers.serving).fingerprint(),
            counters=asdict(self.counters),
            blobs=blobs,
            arrays={f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()},
        )
        return checkpoint, of_challengers


def prequential(classes: KnownClasses, window: int) -> Prequential | ClassPrequential:
    """The metrics of two classes or of more, at their beginning."""
    return Prequential(window) if classes.are_two else ClassPrequential(window, classes)


def _counters(stored: dict[str, Any]) -> Counters:
    if not all(type(number) in (int, float) and 0 <= number <= LARGEST_COUNT for number in stored.values()):
        raise ValueError(f"the counters of a checkpoint must be numbers from 0 to 2^62, got {stored!r:.100}")
    return Counters(**stored)


def _keyed(settings: Settings, model: ModelSettings, store: CheckpointStore) -> KeyedModels:
    daemon, is_published = settings.daemon, bool(settings.log.model)
    limits = daemon.max_models, daemon.keep, daemon.max_keys
    return KeyedModels(kind_of(settings, model), store.folder, store.epoch, *limits, is_published=is_published)


def read_classes(checkpoint: Checkpoint) -> list[ClassLabel]:
    """The classes of a checkpoint, by their numbers."""
    if CLASSES not in checkpoint.blobs:
        return [False, True]
    labels = orjson.loads(checkpoint.blobs[CLASSES])
    if not isinstance(labels, list) or len({*map(class_of, labels)}) < len(labels):
        raise ValueError(f"a checkpoint's classes must be a list of different labels, got {labels!r:.100}")
    return labels


def _known_classes(settings: Settings, labels: Sequence[ClassLabel], changes: ClassChanges) -> KnownClasses:
    """These classes, and those that the settings, which may be new, list beside them; of two classes, these two."""
    vocabulary = settings.label.vocabulary
    if vocabulary is None:
        return two_classes()
    labels = list(dict.fromkeys([*labels, *vocabulary.listed]))
    n_present = sum(label not in changes.gone for label in labels)
    known = KnownClasses(labels, max(vocabulary.limit, n_present))
    known.gone |= changes.gone
    return known


def _estimates(settings: Settings, models: SingleModel | KeyedModels) -> Estimates | None:
    wanted = settings.estimates.loo or settings.estimates.folds
    return Estimates(settings.estimates, models.single.model) if models.single and wanted else None


def _limits(settings: Settings) -> tuple[int, int, int]:
    join = settings.join
    return int(1000 * join.ttl_seconds), int(join.pending_mb * 2**20), int(join.labels_mb * 2**20)


def _leap(settings: Settings) -> int | None:
    """The largest step of the clock, in milliseconds, for a single record: half of the time that anything is kept."""
    spans = [settings.join.ttl_seconds] if settings.log.labels else []
    window = None if settings.model.window is None else parse_window(settings.model.window)
    if isinstance(window, timedelta):
        spans.append(window.total_seconds())
    return int(500 * min(spans)) if spans else None
