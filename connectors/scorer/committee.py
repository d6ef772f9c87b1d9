"""The models that a scorer predicts with: how they arrive, and which of them predict an event."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core.newest import Newest
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.online.outputs.sigmoid import on_side_of

from ..logs.transport import Record, Transport
from ..records.codec import Event
from ..records.decisions import union
from ..records.formats.base import BadRecord
from ..records.models import MULTICLASS, Trained, mean, rows_of, scores, unpack_model
from ..records.predictions import UNTAUGHT, ModelVersion, Prediction, Said, class_predictions, with_verdict
from ..records.published import Shelf, Snapshot, Withdrawn, count_in
from ..runtime.numbers import MAX_INT64
from ..settings.sections import Settings
from ..trainer.publication import MERGED, key_name
from ..trainer.rows import unusable_rows


class Member(NamedTuple):
    """A model that was published, unpacked."""

    served: Trained
    version: ModelVersion
    created: float  # seconds since the epoch


def total(numbers: Iterable[int]) -> int:
    """The sum of numbers in manifests; like these, it has at most 63 bits."""
    return min(sum(numbers), MAX_INT64)


class Committee:
    """Models that predict an event together: by the means of their margins and of their probabilities.

    With two classes, a mean of probabilities that contradicts the mean of the decision values is moved to 1/2.  If the
    members decide, a class is excluded where each of them excludes it.

    All members have two classes, or all have more.  A committee without members predicts as a model that has learned
    nothing.

    Attributes
    ----------
    version : ModelVersion
        The sums of the members' lessons and of their offsets, and their names.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self._served = [member.served for member in members]
        versions = [member.version for member in members]
        names = "+".join(sorted({v.name for v in versions if v.name}))
        self.version = ModelVersion(total(v.ver for v in versions), total(v.offset for v in versions), names)

    def predict(self, events: Sequence[Mapping[str, Any]], untaught: Said = UNTAUGHT) -> list[Said | BadRecord]:
        """The predictions for events, given by their features; for an event that a member cannot take, the reason.

        `untaught` is the prediction of a committee without members.
        """
        if not self._served:
            return [untaught] * len(events)
        shared = events if self._served[0].records else NamedRows.of(events)  # all of them have records, or none
        scaled = [rows_of(shared, each.made_by) for each in self._served]
        unusable: dict[int, BadRecord] = {}
        for each, own in zip(self._served, scaled, strict=True):
            unusable = unusable_rows(own, each.model) | unusable  # the first member's reason counts
        good = [i for i in range(len(events)) if i not in unusable]
        means = iter(self._means([own.take(good) for own in scaled]) if good else ())
        return [unusable[i] if i in unusable else next(means) for i in range(len(events))]

    def _means(self, rows: list[NamedRows]) -> Iterator[Said]:
        """The means of the members' margins and probabilities; each member has its own rows."""
        models: list[Any] = [served.model for served in self._served]
        if isinstance(models[0], MULTICLASS):
            found = [scores(model, own) for model, own in zip(models, rows, strict=True)]
            return self._decided(class_predictions(mean(found)), map(class_predictions, found))
        values = [model.decision_function_many(own) for model, own in zip(models, rows, strict=True)]
        margins = [own - model.decision_threshold for model, own in zip(models, values, strict=True)]
        shares = [model.probability(own) for model, own in zip(models, values, strict=True)]
        probabilities = on_side_of(np.mean(values, axis=0), np.mean(shares, axis=0))
        means: list[Said] = list(map(Prediction, np.mean(margins, axis=0).tolist(), probabilities.tolist()))
        table = zip(*([part.tolist() for part in parts] for parts in (margins, shares, values)), strict=True)
        return self._decided(means, (map(Prediction, *parts) for parts in table))

    def _decided(self, means: Sequence[Said], of_members: Iterable[Iterable[Said]]) -> Iterator[Said]:
        """The mean predictions, with what the members decide on their own ones."""
        if any(served.decider is None for served in self._served):
            return iter(means)
        verdicts = (
            [
                each.verdict
                for served, said in zip(self._served, row, strict=True)
                if (each := with_verdict(said, served.decider)).verdict
            ]
            for row in zip(*of_members, strict=True)
        )
        return (said._replace(verdict=union(row)) for said, row in zip(means, verdicts, strict=True))


class Request(NamedTuple):
    """An event, and the committee that predicts it."""

    record: Record
    event: Event
    committee: Committee


NO_MODELS = Committee([])
_OF_PARTITION = re.compile("p([0-9]+)(?:@(.+))?")  # as `publication` names them


class PartitionModels:
    """One model for each partition of the trainers; all of them predict every event.

    A challenger that answers a share of the events has its own models.  Where a partition has none, because the
    challenger was dropped or promoted there, the model that serves takes part.
    """

    def __init__(self) -> None:
        self._members: dict[str, dict[int, Member]] = {"": {}}  # by challenger; empty: those that serve
        self._committees: dict[str, Committee] = {}

    def __bool__(self) -> bool:
        """Whether any model is in use."""
        return bool(self._members[""])

    def knows(self, name: str) -> bool:
        """Whether a model of this name can be one of these."""
        return _OF_PARTITION.fullmatch(name) is not None

    def put(self, snapshot: Snapshot, member: Member) -> None:
        """Put a model into use, in the place of an older one of its name."""
        number, challenger = _parts(snapshot.name)
        self._members.setdefault(challenger, {})[number] = member
        self._committees.clear()

    def drop(self, name: str) -> None:
        """Remove a model that was withdrawn."""
        number, challenger = _parts(name)
        self._members.get(challenger, {}).pop(number, None)
        self._committees.clear()

    def choose(self, key: bytes | None, challenger: str = "") -> Committee:
        """The committee for an event with this record key, which a challenger answers if one is named."""
        if challenger not in self._committees:
            serving = self._members[""]
            chosen = {number: self._members.get(challenger, {}).get(number, serving[number]) for number in serving}
            self._committees[challenger] = Committee([chosen[number] for number in sorted(chosen)])
        return self._committees[challenger]


class MergedModel(PartitionModels):
    """The one model that a merger makes of those of all partitions."""

    def knows(self, name: str) -> bool:
        return name == MERGED


def _parts(name: str) -> tuple[int, str]:
    """The number of the partition, and the challenger, of the name of a published model; 0 for that of a merger."""
    found = _OF_PARTITION.fullmatch(name)
    return (int(found[1]), found[2] or "") if found else (0, "")


class KeyModels:
    """One model for each record key.

    All models stay in memory as they were published, with 2 kB of bookkeeping each.  The most recently used ones are
    also unpacked, which takes twice that memory again, and at least 15 kB.

    Parameters
    ----------
    max_unpacked
        How many models stay unpacked.
    device
        The device that they compute on; default "cpu".
    """

    def __init__(self, max_unpacked: int, device: str = "cpu") -> None:
        self._device = device
        self._max_unpacked = max_unpacked
        self._packed: dict[str, Snapshot] = {}
        self._unpacked: Newest[str, Committee] = Newest(max_unpacked)

    def __bool__(self) -> bool:
        return bool(self._packed)

    def knows(self, name: str) -> bool:
        return name.startswith("k-")

    def put(self, snapshot: Snapshot, member: Member) -> None:
        self._packed[snapshot.name] = snapshot
        if snapshot.name in self._unpacked or len(self._unpacked) < self._max_unpacked:
            self._unpacked[snapshot.name] = Committee([member])

    def drop(self, name: str) -> None:
        self._packed.pop(name, None)
        self._unpacked.pop(name, None)

    def choose(self, key: bytes | None, challenger: str = "") -> Committee:
        name = key_name(key or b"")
        if name not in self._packed:
            return NO_MODELS
        if name not in self._unpacked:
            self._unpacked[name] = Committee([unpack(self._packed[name], self._device)])
        self._unpacked.move_to_end(name)
        return self._unpacked[name]


def models_of(settings: Settings, device: str) -> PartitionModels | KeyModels:
    """The models that these settings want events predicted with, before the first one has come."""
    if settings.scorer.model == "merged":
        return MergedModel()
    return KeyModels(settings.daemon.max_models, device) if settings.daemon.per == "key" else PartitionModels()


def unpack(snapshot: Snapshot, device: str = "cpu") -> Member:
    """A published model, ready to predict on this device.

    Raises
    ------
    ValueError
        If the snapshot is damaged, or its manifest is wrong.
    """
    version = version_of(snapshot)
    created = snapshot.manifest.get("created")
    if not isinstance(created, int | float) or isinstance(created, bool) or not 0 <= created <= MAX_INT64:
        raise ValueError(f"'created' must be seconds since 1970 in a manifest, got {created!r:.60}")
    return Member(unpack_model(snapshot.blob, device), version, created)


def version_of(snapshot: Snapshot) -> ModelVersion:
    """The version that a manifest states; ValueError if it states none."""
    numbers = count_in(snapshot.manifest, "ver"), count_in(snapshot.manifest, "offset")
    return ModelVersion(*numbers, str(snapshot.manifest.get("model", "")))


def misfit(served: Trained, settings: Settings) -> str:
    """Why a published model cannot be one of these settings; empty if it can.

    Models of two classes and of more say different things about an event, so [label] decides which of them count.
    """
    model, is_raw = served.model, served.records is not None
    is_multiclass, wants_several = isinstance(model, MULTICLASS), settings.label.vocabulary is not None
    if is_multiclass != wants_several:
        has, wanted = ("more than two", "two") if is_multiclass else ("two", "more than two")
        return f"it is a model of {has} classes, and the configuration has {wanted}: see [label]"
    if is_raw != settings.features.raw:
        return f"it takes {'raw' if is_raw else 'no raw'} events, and features.raw is {str(not is_raw).lower()}"
    if settings.features.names:
        strangers = [name for name in model.feature_names if name not in settings.features.names]
        if strangers:
            return f"it has learned the feature {strangers[0]!r:.100}, which features.names does not have"
    elif settings.log.format == "float32":
        strangers = [name for name in model.feature_names if not str(name).isdecimal()]
        if strangers:
            return f"it has learned the feature {strangers[0]!r:.100}, and log.format = 'float32' numbers the features"
    return ""


class ModelTopic:
    """Reads the topic of models, all its partitions, from its beginning.

    Attributes
    ----------
    name : str
        The topic's name.
    arrived : dict
        The newest snapshot or withdrawal of each name, until the scorer takes it from here.
    """

    def __init__(self, log: Transport, topic: str) -> None:
        self.name = topic
        self.arrived: dict[str, Snapshot | Withdrawn] = {}
        self._log = log
        self._shelf = Shelf()
        self._n_refused = 0  # as far as was told
        self._ends: dict[int, int] = {}  # at the beginning

    def take_refused(self) -> int:
        """Number of records that were of no use, since the last call."""
        n_before, self._n_refused = self._n_refused, self._shelf.refused
        return self._n_refused - n_before

    def follow(self) -> None:
        """Begin to read, if the topic exists by now."""
        if not self._ends:
            self._ends = self._log.end_offsets(self.name)
            for number, start in self._log.start_offsets(self.name).items():
                self._log.seek(self.name, number, start)

    def check_positions(self) -> None:
        """After the log has refused a position: read partitions again whose records were replaced."""
        ends = self._log.end_offsets(self.name)
        for number, start in self._log.start_offsets(self.name).items():
            if number in self._ends and not start <= self._log.position(self.name, number) <= ends[number]:
                self._log.seek(self.name, number, start)

    def put(self, record: Record) -> None:
        """Take a record of the topic."""
        found = self._shelf.put(record)
        if found is not None:
            self.arrived[found.name] = found

    @property
    def is_read(self) -> bool:
        """Whether every record that the topic had at the beginning was read."""
        return all(self._log.position(self.name, number) >= end for number, end in self._ends.items())
