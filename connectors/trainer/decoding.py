"""Decoding: the events and labels in the records of a cut; bad records go to the dead letters."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from streamsvm.estimators.inputs.named_rows import NamedRows

from ..logs.transport import Record, Transport
from ..records.class_changes import ClassChange
from ..records.codec import Codec, Event
from ..records.dead_letters import dead_letter, dead_letter_headers
from ..records.formats.base import BadRecord
from ..records.labels import Label
from ..settings.sections import Settings
from .rows import RawRows, Rows, by_owner, have_small_numbers, rows_at, unusable_rows
from .state.state import State

logger = logging.getLogger(__name__)

Message = TypeVar("Message")


class Decoded(NamedTuple):
    """An event of a cut; `entity` is its record's key if each key has its own model."""

    record: Record
    event: Event
    entity: bytes | None


class Decoder:
    """Decodes the records of a partition.

    Parameters
    ----------
    settings
        The configuration.
    codec
        Reads events and labels.
    log
        Takes dead letters.
    number
        Number of the partition.

    Attributes
    ----------
    refused : Counter
        Number of refused records, by reason.
    n_tombstones : int
        Number of records without a value, which are passed over: compaction keeps them for a while.
    n_empty : int
        Number of events without any feature.
    """

    def __init__(self, settings: Settings, codec: Codec, log: Transport, number: int) -> None:
        self._settings, self._codec, self._log, self._number = settings, codec, log, number
        self._is_keyed = settings.daemon.per == "key"
        self.refused: Counter[str] = Counter()
        self.n_tombstones = self.n_empty = 0

    def events(self, records: list[Record], state: State) -> tuple[list[Decoded], Rows]:
        """The events, and their features as the models take them, or raw ones; refuse the other records."""
        records = self._without_tombstones(records)
        good, bad = _read(records, self._event, state)
        rows = self.rows([event.x for _, event, _ in good], state)
        if isinstance(rows, NamedRows):
            unusable = self._unusable(rows, [entity for _, _, entity in good], state)
            if unusable:
                bad |= {good[i].record.offset: problem for i, problem in unusable.items()}
                usable = [i for i in range(len(rows)) if i not in unusable]
                good, rows = [good[i] for i in usable], rows.take(usable)
        self._refuse_bad(records, bad, state)
        self._count_empty([event for _, event, _ in good])
        return good, rows

    def labels(self, records: list[Record], state: State) -> list[tuple[Record, Label | ClassChange]]:
        """The labels and the changes of classes, with their records; refuse the other records."""
        records = self._without_tombstones(records)
        good, bad = _read(records, self._label, state)
        self._refuse_bad(records, bad, state)
        return good

    def rows(self, xs: Sequence[Mapping[str, Any]], state: State) -> Rows:
        """Features as the models take them, made once for all that is done with them; those of raw events are not."""
        return RawRows(xs) if self._settings.features.raw else state.rows(xs, None)

    def entity(self, record: Record) -> bytes | None:
        """The key whose model learns from a record; None if there is only one."""
        return record.key if self._is_keyed else None

    def refuse(self, record: Record, stage: str, error: BadRecord, state: State, *, is_whole: bool = True) -> None:
        """Write a dead letter; `is_whole` says whether `record` is complete."""
        why = dead_letter_headers(record, stage, error, self._settings.group.id)
        letter = dead_letter(record, why, self._settings.limits.dead_letter_bytes, is_whole=is_whole)
        self._log.produce(self._settings.log.dlq, letter.value, key=letter.key, headers=letter.headers)
        state.counters.bad += 1
        self.refused[error.reason] += 1

    def _without_tombstones(self, records: list[Record]) -> list[Record]:
        kept = [record for record in records if record.value is not None]
        self.n_tombstones += len(records) - len(kept)
        return kept

    def _event(self, record: Record, state: State) -> Decoded:
        event = self._codec.decode(record)
        if event.y is not None:
            state.classes.admit(event.y)
        return Decoded(record, event, self.entity(record))

    def _label(self, record: Record, state: State) -> tuple[Record, Label | ClassChange]:
        said = self._codec.decode_label(record)
        if isinstance(said, ClassChange):
            state.admit(said)
        elif said.y is not None:
            state.classes.admit(said.y)
        return record, said

    def _refuse_bad(self, records: list[Record], bad: Mapping[int, BadRecord], state: State) -> None:
        """Refuse the records at these offsets, and let the breaker look at all of them."""
        for record in records if bad else ():
            if record.offset in bad:
                self.refuse(record, "decode", bad[record.offset], state)
        state.breaker.observe([record.offset in bad for record in records])

    def _unusable(self, rows: NamedRows, entities: list[bytes | None], state: State) -> dict[int, BadRecord]:
        """What is wrong with the rows that the models of these entities cannot take, by their places."""
        unusable: dict[int, BadRecord] = {}
        are_plain = have_small_numbers(rows)
        for entity, own in by_owner(dict(enumerate(entities))).items():
            model = state.models.trained(entity).model
            if not (are_plain and model.takes_all(rows.names)):
                problems = unusable_rows(rows_at(rows, own), model)
                unusable |= {own[i]: problem for i, problem in problems.items()}
        return unusable

    def _count_empty(self, events: Sequence[Event]) -> None:
        """Count the events without features, and warn of the first one."""
        empty = [event.id for event in events if not event.x]
        if empty and not self.n_empty:
            logger.warning(
                "partition %d: event %r has no features, and a model learns nothing from such events; "
                "features.raw = true makes features of texts and other fields",
                *(self._number, empty[0]),
            )
        self.n_empty += len(empty)


def _read(
    records: list[Record], decode: Callable[[Record, State], Message], state: State
) -> tuple[list[Message], dict[int, BadRecord]]:
    """What these records say, in order, and why the others cannot be read, by their offsets."""
    good, bad = [], {}
    for record in records:
        try:
            good.append(decode(record, state))
        except BadRecord as error:
            bad[record.offset] = error
    return good, bad
