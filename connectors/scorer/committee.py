"""The models that a scorer predicts with: which there are, which of them an event is for, and how newer ones come.

Members of a committee are unpacked before they are put in the place of older ones, and have made a prediction by then.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from streamsvm import WarmupScaler
from streamsvm.estimators.classifier import OnlineSVM

from ..logs.transport import Record, Transport
from ..records.formats.base import BadRecord
from ..records.predictions import ModelVersion, Prediction
from ..records.published import Shelf, Snapshot, Withdrawn, unpack_model
from ..trainer.publication import key_name
from ..trainer.rows import Features, usable_many


class Member(NamedTuple):
    """A model that was published, unpacked."""

    model: OnlineSVM
    scaler: WarmupScaler | None
    version: ModelVersion
    created: float  # seconds since the epoch


class Committee:
    """The models that predict an event together, by the means of their margins and of their probabilities.

    A single one predicts as if it were alone; none predict what a model predicts that has learned nothing.

    Attributes
    ----------
    version : ModelVersion
        The members' sum: how many lessons they have had, of how many records, all together.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = tuple(members)
        versions = [member.version for member in members]
        self.version = ModelVersion(sum(v.ver for v in versions), sum(v.offset for v in versions))

    def predict(self, events: list[Features]) -> list[Prediction | BadRecord]:
        """What the members say of events, given by their features, or why one of them cannot."""
        if not self._members:
            return [Prediction(margin=0.0, score=0.5)] * len(events)
        answers: list[Prediction | BadRecord] = [Prediction(0.0, 0.0)] * len(events)
        rows = [usable_many(events, member.scaler, member.model) for member in self._members]
        for i, row in enumerate(zip(*rows, strict=True)):
            answers[i] = next((x for x in row if isinstance(x, BadRecord)), answers[i])
        good = [i for i, answer in enumerate(answers) if isinstance(answer, Prediction)]
        if good:
            for i, answer in zip(good, self._mean([[row[i] for i in good] for row in rows]), strict=True):
                answers[i] = answer
        return answers

    def _mean(self, rows: list[list[Any]]) -> Iterator[Prediction]:
        margins = np.array(
            [member.model.decision_function_many(own) for member, own in zip(self._members, rows, strict=True)]
        )
        scores = np.array([member.model.probability(own) for member, own in zip(self._members, margins, strict=True)])
        return map(Prediction, margins.mean(axis=0).tolist(), scores.mean(axis=0).tolist())


NOBODY = Committee([])


class Models(Protocol):
    """Which models there are, and which of them an event is for."""

    def __bool__(self) -> bool:
        """Whether there is any."""

    def knows(self, name: str) -> bool:
        """Whether a snapshot of this name can be one of them."""

    def put(self, snapshot: Snapshot, member: Member) -> None:
        """Take a model in the place of an older one."""

    def drop(self, name: str) -> None:
        """Do without a model that was withdrawn."""

    def choose(self, key: bytes | None) -> Committee:
        """Those for an event with this record key."""


class PartitionModels:
    """One model for each partition of the trainers; all of them are a committee for all events."""

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}
        self._committee = NOBODY

    def __bool__(self) -> bool:
        return bool(self._members)

    def knows(self, name: str) -> bool:
        return re.fullmatch("p[0-9]+", name) is not None

    def put(self, snapshot: Snapshot, member: Member) -> None:
        self._members[int(snapshot.name[1:])] = member
        self._gather()

    def drop(self, name: str) -> None:
        self._members.pop(int(name[1:]), None)
        self._gather()

    def _gather(self) -> None:
        self._committee = Committee([self._members[number] for number in sorted(self._members)])

    def choose(self, key: bytes | None) -> Committee:
        return self._committee


class KeyModels:
    """One model for each record key.

    All of them are in memory as they were published, with 2 kB of bookkeeping each; the most recently used are also
    unpacked, which takes twice that memory again and at least 15 kB.

    Parameters
    ----------
    max_unpacked
        How many stay unpacked.
    device
        Where they compute.
    """

    def __init__(self, max_unpacked: int, device: str = "cpu") -> None:
        self._device = device
        self._max_unpacked = max_unpacked
        self._packed: dict[str, Snapshot] = {}
        self._unpacked: OrderedDict[str, Committee] = OrderedDict()

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

    def choose(self, key: bytes | None) -> Committee:
        name = key_name(key or b"")
        if name not in self._packed:
            return NOBODY
        if name not in self._unpacked:
            self._unpacked[name] = Committee([unpack(self._packed[name], self._device)])
        self._unpacked.move_to_end(name)
        if len(self._unpacked) > self._max_unpacked:
            self._unpacked.popitem(last=False)
        return self._unpacked[name]


def unpack(snapshot: Snapshot, device: str = "cpu") -> Member:
    """A model that was published, ready to predict on this device.

    Raises
    ------
    ValueError
        If it cannot be used.
    """
    manifest = snapshot.manifest
    offset, created = manifest.get("offset"), manifest.get("created")
    if not isinstance(offset, int) or not isinstance(created, int | float):
        raise ValueError(f"offset and created must be numbers in its manifest, got {offset!r:.60} and {created!r:.60}")
    model, scaler, _ = unpack_model(snapshot.blob, device)
    return Member(model, scaler, ModelVersion(manifest["ver"], offset), created)


class ModelTopic:
    """Follows the topic of models, in all its partitions and from its beginning.

    Attributes
    ----------
    arrived : dict
        The newest snapshot, or the withdrawal, of each name of which one was read, and none taken from here since.
    refused : int
        What was of no use.
    """

    def __init__(self, log: Transport, topic: str) -> None:
        self.arrived: dict[str, Snapshot | Withdrawn] = {}
        self._log = log
        self._topic = topic
        self._shelf = Shelf()
        self._ends: dict[int, int] = {}  # at the beginning

    @property
    def refused(self) -> int:
        return self._shelf.refused

    def follow(self) -> None:
        """Begin to read, as soon as there is the topic."""
        if not self._ends:
            self._ends = self._log.end_offsets(self._topic)
            for number, start in self._log.start_offsets(self._topic).items():
                self._log.seek(self._topic, number, start)

    def check_positions(self) -> None:
        """After the log has refused a position: begin again, where there is something else by now."""
        ends = self._log.end_offsets(self._topic)
        for number, start in self._log.start_offsets(self._topic).items():
            if number in self._ends and not start <= self._log.position(self._topic, number) <= ends[number]:
                self._log.seek(self._topic, number, start)

    def put(self, record: Record) -> None:
        """Take a record."""
        found = self._shelf.put(record)
        if found is not None:
            self.arrived[found.name] = found

    @property
    def is_read(self) -> bool:
        """Whether everything was read that there was at the beginning."""
        return all(self._log.position(self._topic, number) >= end for number, end in self._ends.items())
