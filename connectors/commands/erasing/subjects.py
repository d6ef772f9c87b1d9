"""Which records of the log belong to the subjects that are to be forgotten."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ...logs.transport import Record, Transport
from ...records.codec import Codec, Event, key_of, readable
from ...records.erasures import Erasure
from ...records.formats.base import BadRecord
from ...records.labels import Label
from ...settings.sections import Settings
from ..shared.log_access import watched_topic

ID, KEY = "id", "key"


@dataclass
class Found:
    """The records of the subjects in a partition."""

    events: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    examples: dict[bytes | None, dict[int, None]] = field(default_factory=lambda: defaultdict(dict))

    def erasure(self, models: Iterable[bytes]) -> Erasure:
        """The request to forget them, and the models of these keys."""
        examples = {key: tuple(numbers) for key, numbers in self.examples.items()}
        return Erasure(tuple(self.events), tuple(self.labels), examples, tuple(models))


class Subjects:
    """The people whose records are looked for.

    Parameters
    ----------
    settings
        The configuration.
    values
        What names them, as text.
    by
        Where that stands: ``"id"``, the id of an event; ``"key"``, the key of its record; otherwise the dotted name of
        a field.  A dot before it makes ``id`` and ``key`` names of fields, too.

    Attributes
    ----------
    unknown : set of str
        The subjects for which `find` has found no event.
    """

    def __init__(self, settings: Settings, values: Iterable[str], by: str) -> None:
        self._settings = settings
        self.values = frozenset(values)
        self.unknown = set(self.values)
        self._by = by
        self._path = by.removeprefix(".").split(".") if by not in (ID, KEY) else []
        self._is_json = settings.log.format == "json"
        self._is_keyed = settings.daemon.per == "key"

    def find(self, log: Transport) -> dict[int, Found]:
        """Their records, by partition; every partition of the events is there."""
        topics = self._settings.log
        found: dict[int, Found] = {number: Found() for number in log.start_offsets(topics.topic)}
        codec = self._settings.codec()
        for record, event in readable(watched_topic(log, topics.topic, "looking for the events"), codec.decode):
            subject = self._subject(record, event)
            if subject in self.values:
                self.unknown.discard(subject)
                here = found.setdefault(record.partition, Found())
                here.events.append(record.offset)
                here.examples[record.key if self._is_keyed else None][event.key] = None
        if self._by == ID and not self._is_keyed:  # a model may have learned what the log no longer has
            for here in found.values():
                here.examples[None] |= dict.fromkeys(number for text in self.values for number in _numbers(text))
        if topics.labels:
            self._find_labels(log, codec, found)
        return found

    def models(self) -> list[bytes]:
        """Keys whose models are theirs alone."""
        return sorted(value.encode() for value in self.values) if self._is_keyed and self._by == KEY else []

    def _find_labels(self, log: Transport, codec: Codec, found: Mapping[int, Found]) -> None:
        keys = {number for here in found.values() for numbers in here.examples.values() for number in numbers}
        topic = self._settings.log.labels
        for record, label in readable(watched_topic(log, topic, "looking for the labels"), codec.decode_label):
            if isinstance(label, Label) and label.key in keys and record.partition in found:
                found[record.partition].labels.append(record.offset)

    def _subject(self, record: Record, event: Event) -> str | None:
        """Whose event it is."""
        if self._by == ID:
            return str(event.id)
        if self._by == KEY:
            return None if record.key is None else record.key.decode(errors="replace")
        # The record was read as an event, so it is strict JSON.  This parser keeps large integers as they are.
        value: Any = json.loads(record.value or b"{}") if self._is_json else event.x
        for name in self._path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return None if value is None else str(value)


def _numbers(text: str) -> set[int]:
    """The ids as 64 bits that this text may mean: a string, or a whole number."""
    numbers = set()
    for meaning in (str, int):
        with suppress(ValueError, BadRecord):
            numbers.add(key_of(meaning(text)))
    return numbers
