"""What the doctor says about the newest events and labels: their times, ids and keys."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ...logs.reading import read
from ...logs.transport import Record, Transport, Unavailable
from ...records.class_changes import ClassChange
from ...records.codec import DIFFERENT_IDS, Event
from ...records.formats.base import BadRecord
from ...records.labels import Label
from ...records.times import event_time, is_known
from ...runtime.findings import Finding, Findings
from ...runtime.text import plural
from ...settings.opening import backend_of
from ...settings.sections import Settings
from .fields import check_features

_SAMPLE = 500  # newest records looked at in each partition
_AHEAD_MS = 300_000  # a record may be so far ahead of this clock

Message = TypeVar("Message")
Decoded = tuple[Record, Event | Label | BadRecord]


def sample(settings: Settings, log: Transport) -> Findings:
    events = _newest(log, settings.log.topic)
    labels = _newest(log, settings.log.labels) if settings.log.labels else []
    read_events, read_labels = settings.codec(_give_up), settings.codec(_give_up)  # one would warn of differing ids
    read_all = _decoded(labels, read_labels.decode_label)
    said = [(record, message) for record, message in read_all if not isinstance(message, ClassChange)]
    found: list[Decoded] = [*_decoded(events, read_events.decode), *said]
    yield from _refused(found)
    yield from check_features(settings, [message for _, message in found if isinstance(message, Event)])
    yield from _clocks(settings, found)
    yield from _ids(found, len(said))
    if len(log.start_offsets(settings.log.topic)) > 1:
        yield from _keys(settings, events, [record for record, _ in said])


def _give_up(reason: str) -> None:
    """A trainer waits for its schema registry; a check does not."""
    raise Unavailable(reason)


def _newest(log: Transport, topic: str) -> list[Record]:
    ends = log.end_offsets(topic)
    starts = {number: max(start, ends[number] - _SAMPLE) for number, start in log.start_offsets(topic).items()}
    return [record for record in read(log, topic, starts, ends) if record.value is not None]


def _decoded(
    records: list[Record], decode: Callable[[Record], Message]
) -> Iterator[tuple[Record, Message | BadRecord]]:
    for record in records:
        try:
            yield record, decode(record)
        except BadRecord as error:
            yield record, error


def _refused(found: Sequence[Decoded]) -> Findings:
    errors = [message for _, message in found if isinstance(message, BadRecord)]
    if errors:
        yield Finding.warning(
            f"{plural(len(errors), 'record')} of {len(found)} that a trainer refuses, the first with {errors[0]}",
            "correct the producer; daemon.max_bad says how many bad records stop the trainer",
        )


def _clocks(settings: Settings, found: Sequence[Decoded]) -> Findings:
    now = time.time() * 1000
    ahead = [record.timestamp for record, _ in found if record.timestamp > now + _AHEAD_MS]
    if ahead:
        seconds = (max(ahead) - now) / 1000
        yield Finding.warning(
            f"{plural(len(ahead), 'record')} of {len(found)} from the future, up to {seconds:,.0f} "
            "seconds: events and labels are read in the order of their times, so these come too late",
            "correct the clocks of the producers, or this one",
        )
    timeless = [message for record, message in found if not is_known(record.timestamp)]
    if timeless:
        n_lacking = sum(isinstance(message, Event | Label) and message.ts is None for message in timeless)
        yield Finding.warning(
            f"{plural(len(timeless), 'record')} of {len(found)} without a timestamp, {n_lacking} of them without a ts: "
            "what has neither counts as of the time of the newest record before it",
            "let the producers set timestamps, or write a ts into each record",
        )
    skew = int(1000 * settings.join.max_skew_seconds)
    n_apart = sum(_is_cut(record, message, skew) for record, message in found)
    if n_apart:
        yield Finding.warning(
            f"{plural(n_apart, 'record')} of {len(found)} with a ts that is ignored, because it is more "
            "than join.max_skew_seconds from the record's own time",
            "for old data, raise join.max_skew_seconds; otherwise correct the clocks of the producers",
        )
    if not ahead and not timeless and not n_apart:
        n_read = sum(not isinstance(message, BadRecord) for _, message in found)
        yield Finding.ok(f"the times of {plural(n_read, 'record')} agree with this clock")


def _is_cut(record: Record, message: Event | Label | BadRecord, max_skew: int) -> bool:
    if isinstance(message, BadRecord) or message.time is None:
        return False
    return event_time(message.time, record.timestamp, max_skew) != message.time


def _ids(found: Sequence[Decoded], n_labels: int) -> Findings:
    """Find labels whose ids have another type than those of the events: they never meet their events."""
    types = {type(message.id) for _, message in found if isinstance(message, Event)}
    labels = [message for _, message in found if isinstance(message, Label)]
    strangers = [label for label in labels if types and type(label.id) not in types]
    if strangers:
        yield Finding.problem(
            f"{len(strangers)} of {plural(n_labels, 'label')} with an id such as {strangers[0].id!r}, whose type "
            f"differs from that of the events' ids: {DIFFERENT_IDS}, so such labels never meet their events",
            "write the ids of events and labels in the same way, as strings or as integers",
        )


def _keys(settings: Settings, events: list[Record], labels: list[Record]) -> Findings:
    """Find labels outside the partition of their event: keys prevent that if all producers place keys alike."""
    keyless = sum(record.key is None for record in labels)
    if keyless:
        yield Finding.problem(
            f"{keyless} of {plural(len(labels), 'label')} without a key: such a label may be in another partition than "
            "its event, and then never meets it",
            "give each label the key of its event",
        )
    places = {record.key: record.partition for record in events if record.key is not None}
    apart = sum(places.get(record.key, record.partition) != record.partition for record in labels if record.key)
    if apart:
        yield Finding.problem(
            f"{apart} of {plural(len(labels), 'label')} in another partition than events with the same key",
            "make the producers of events and labels place keys alike (librdkafka: partitioner=murmur2_random)",
        )
    yield from _partitioner(settings, {settings.log.topic: events, settings.log.labels: labels})


def _partitioner(settings: Settings, samples: dict[str, list[Record]]) -> Findings:
    backend = backend_of(settings)
    counts = {name: shape.n_partitions for name, shape in backend.describe(filter(None, samples)).items()}
    for topic, records in samples.items():
        keyed = [record for record in records if record.key is not None]
        astray = sum(backend.partition_of(record.key or b"", counts[topic]) != record.partition for record in keyed)
        if astray:
            yield Finding.warning(
                f"{astray} of {plural(len(keyed), 'record')} of topic {topic!r} are not where the log's own "
                "partitioner puts their keys",
                "make all producers place keys alike (librdkafka: partitioner=murmur2_random)",
            )
        elif keyed:
            yield Finding.ok(f"the keys of topic {topic!r} are where the log's own partitioner puts them")
