"""Processing: what is done with the records of a cut.

1. Decode the events; refuse bad records.
2. Predict the events.
3. Join the events with the labels.
4. Learn every event whose label is known by now, and follow corrections and retractions (see `learning`).
5. Offer the other events to the labelling loop, which may ask for their labels (see `asking`).

The state afterwards, and the outputs, depend on the state before and on the records alone.  Only the estimates of the
model's error depend on the time that is left for them.
"""

import logging
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ..logs.transport import Record, Transport
from ..records.codec import Codec, Event
from ..records.dead_letters import dead_letter, dead_letter_headers
from ..records.formats.base import BadRecord
from ..records.labels import Label
from ..records.predictions import ModelVersion, Prediction, send_prediction, source, write_prediction
from ..records.times import event_time
from ..settings.sections import Settings
from .asking import Asking
from .learning import Task, teach
from .rows import Features, by_entity, usable_many
from .state.estimates import Estimate
from .state.join import Join, Lesson
from .state.observe import Drift
from .state.state import State

logger = logging.getLogger(__name__)


class Decoded(NamedTuple):
    """An event, with its features in the model's coordinates."""

    record: Record
    event: Event
    x: Features
    entity: bytes | None  # the record key, if each key has its own model


class Processor:
    """Processes the cuts of a partition.

    Parameters
    ----------
    settings
        The configuration.
    codec
        Reads events and labels.
    log
        Takes predictions, dead letters, questions and estimates.
    number
        Number of the partition.

    Attributes
    ----------
    refused : Counter
        Number of refused records, by reason.
    waits : list
        Seconds from events to their labels, until a caller empties the list.
    drift : Drift
        Drift of the features.
    """

    def __init__(self, settings: Settings, codec: Codec, log: Transport, number: int) -> None:
        self._settings = settings
        self._codec = codec
        self._log = log
        self._number = number
        self._joins = bool(settings.log.labels)
        self._is_keyed = settings.daemon.per == "key"
        self._max_skew = int(1000 * settings.join.max_skew_seconds)
        self._max_features = settings.limits.model_features
        self._asking = Asking(settings, codec, log, number) if settings.log.questions else None
        self.refused: Counter[str] = Counter()
        self.waits: list[float] = []
        self.drift = Drift()

    def process(self, events: list[Record], labels: list[Record], state: State) -> None:
        """Predict all events of a cut, then learn from them and from its labels, in order."""
        decoded = self._decode_events(events, state)
        if decoded and self._settings.features.scale == "standard":
            self.drift.observe(decoded[0].x)  # one event of a cut is enough
        margins = self._predict(decoded, state)
        if not self._joins:
            tasks = (self._own_label(item, margin) for item, margin in zip(decoded, margins, strict=True))
            self._learn([task for task in tasks if task], state)
            return
        self._learn(self._join(decoded, margins, self._decode_labels(labels, state), state), state)
        if self._asking and state.labelling:
            self._asking.step([item.event for item in decoded], state, state.labelling)

    def resume(self, state: State) -> bool:
        """After a restart, ask what the settings, which may be new, allow; return whether anything was asked."""
        if self._asking and state.labelling:
            return self._asking.step([], state, state.labelling)
        return False

    def refuse(self, record: Record, stage: str, error: BadRecord, state: State, *, is_whole: bool = True) -> None:
        """Write a dead letter; `is_whole` says whether `record` is complete."""
        why = dead_letter_headers(record, stage, error, self._settings.group.id)
        letter = dead_letter(record, why, self._settings.limits.dead_letter_bytes, is_whole=is_whole)
        self._log.produce(self._settings.log.dlq, letter.value, key=letter.key, headers=letter.headers)
        state.counters.bad += 1
        self.refused[error.reason] += 1

    # --- the parts, in order ------------------------------------------------------------------------------------------

    def _decode_events(self, records: list[Record], state: State) -> list[Decoded]:
        """The events in the model's coordinates; refuse the other records."""
        events = [self._read(record) for record in records]
        rows = self._coordinates(records, events, state)
        decoded = []
        for record, event, x in zip(records, events, rows, strict=True):
            if isinstance(x, BadRecord):
                self.refuse(record, "decode", x, state)
            else:
                assert isinstance(event, Event)
                decoded.append(Decoded(record, event, x, record.key if self._is_keyed else None))
        state.breaker.observe([isinstance(x, BadRecord) for x in rows])
        return decoded

    def _read(self, record: Record) -> Event | BadRecord:
        try:
            return self._codec.decode(record)
        except BadRecord as error:
            return error

    def _coordinates(
        self, records: list[Record], events: list[Event | BadRecord], state: State
    ) -> list[Features | BadRecord]:
        """The features in the coordinates of their models; for a bad record, what is wrong with it."""
        rows: list[Any] = [*events]
        places = [i for i, event in enumerate(events) if not isinstance(event, BadRecord)]
        entities = [records[i].key if self._is_keyed else None for i in places]
        for entity, chosen in by_entity(entities).items():
            own = [places[j] for j in chosen]
            xs = usable_many([rows[i].x for i in own], state.scaler, state.models.to_predict(entity))
            for i, x in zip(own, xs, strict=True):
                rows[i] = x
        return rows

    def _decode_labels(self, records: list[Record], state: State) -> list[tuple[Record, Label]]:
        """The labels, with their records; refuse the other records."""
        decoded = []
        are_bad = [False] * len(records)
        for i, record in enumerate(records):
            try:
                decoded.append((record, self._codec.decode_label(record)))
            except BadRecord as error:
                self.refuse(record, "decode", error, state)
                are_bad[i] = True
        state.breaker.observe(are_bad)
        return decoded

    def _predict(self, decoded: list[Decoded], state: State) -> list[float]:
        """Produce the predictions; return the margins."""
        margins = np.empty(len(decoded))
        scores = np.empty(len(decoded))
        for entity, chosen in by_entity([item.entity for item in decoded]).items():
            model = state.models.to_predict(entity)
            margins[chosen] = model.decision_function_many([decoded[i].x for i in chosen])
            scores[chosen] = model.probability(margins[chosen])
        version = ModelVersion(state.version, state.offset)
        for item, margin, score in zip(decoded, margins.tolist(), scores.tolist(), strict=True):
            value = write_prediction(self._codec, item.event, Prediction(margin, score), version, source(item.record))
            send_prediction(self._log, self._settings.log.predictions, item.record, value)
        state.counters.predicted += len(decoded)
        return margins.tolist()

    def _own_label(self, item: Decoded, margin: float) -> Task | None:
        """What to learn from an event that has its own label."""
        event = item.event
        if event.y is None:
            return None
        lesson = Lesson(event.key, b"", event.y, event.w, margin, item.entity, is_first=True)
        return Task(lesson, item.x, self._time(event.ts, item.record), item.record)

    def _join(
        self, decoded: list[Decoded], margins: list[float], labels: list[tuple[Record, Label]], state: State
    ) -> list[Task]:
        """What to learn from events whose labels are known by now."""
        tasks = []
        at_hand = {}
        for (record, event, x, entity), margin in zip(decoded, margins, strict=True):
            assert record.value is not None  # it is an event
            at_hand[record.value] = x
            time = self._time(event.ts, record)
            lesson = state.join.add_event(
                event.key,
                record.value,
                y=event.y,
                w=event.w,
                margin=margin,
                entity=entity,
                time=time,
                at=record.offset,
            )
            if self._asking:
                self._asking.hear(event.key, "set", "", state.join)
            if lesson:
                tasks.append(Task(lesson, x, state.join.clock - lesson.waited, record))
        for record, label in labels:
            lesson = None
            if label.op in ("set", "retract"):
                lesson = self._add_label(record, label, state.join)
            if self._asking:
                self._asking.hear(label.key, label.op, label.source or "", state.join)
            if lesson:
                features = self._features(lesson, at_hand, state)
                tasks.append(Task(lesson, features, state.join.clock - lesson.waited))
        return tasks

    def _add_label(self, record: Record, label: Label, join: Join) -> Lesson | None:
        """What a label means for its event, or else for an example that the model may still hold."""
        lesson = join.add_label(label, record.offset, self._time(label.ts, record))
        if lesson:
            return lesson
        late = join.without_event(label.key)
        return late and late._replace(entity=record.key if self._is_keyed else None)

    def _features(self, lesson: Lesson, at_hand: dict[bytes, Features], state: State) -> Features | None:
        """The features of an event to be learned, which may have come in an earlier cut."""
        if lesson.value is None or lesson.y is None:
            return None
        x = at_hand.get(lesson.value)
        if x:
            return x
        x = self._codec.features(lesson.value)
        return state.scaler.transform_one(x) if state.scaler else x

    def _learn(self, tasks: list[Task], state: State) -> None:
        first = [task.lesson for task in tasks if task.lesson.is_first]
        self.waits += [lesson.waited / 1000 for lesson in first if lesson.waited]
        if first:
            y = np.array([lesson.y for lesson in first], dtype=bool)
            state.metrics.update(y, np.array([lesson.margin for lesson in first]))
        n_late = state.counters.late
        for entity, chosen in by_entity([lesson.entity for lesson, *_ in tasks]).items():
            estimates, refused = teach([tasks[i] for i in chosen], entity, state, self._max_features)
            self._publish(estimates)
            self._refuse_wide(refused, state)
        if state.counters.late > n_late:
            n = state.counters.late - n_late
            logger.info("%d labels came after their events were forgotten; the model still held the examples", n)

    def _refuse_wide(self, tasks: list[Task], state: State) -> None:
        """Refuse events that would give their model too many features."""
        error = BadRecord("too-many-features", f"the model would have more than {self._max_features} features")
        for lesson, _, when, record in tasks:
            kept = Record(self._settings.log.topic, self._number, lesson.at, when, lesson.entity, lesson.value, ())
            self.refuse(record or kept, "learn", error, state, is_whole=record is not None)
        if tasks:
            logger.warning("%d events are not learned: with their features, %s", len(tasks), error.detail)

    def _publish(self, estimates: list[Estimate]) -> None:
        topic = self._settings.log.estimates
        for estimate in estimates if topic else ():
            self._log.produce(topic, estimate.encode(self._number), key=f"p{self._number}-{estimate.kind}".encode())

    def _time(self, ts: str | int | float | None, record: Record) -> int:
        return record.timestamp if ts is None else event_time(ts, record.timestamp, self._max_skew)
