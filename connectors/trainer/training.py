"""What is done with the records of a cut: predict its events, join them with labels, and learn what is complete.

A correction is learned in the place of what was learned before: the model forgets the example, and learns the event
anew.  A retraction has it forgotten.  Where the join has forgotten the event, its time being over or its room needed,
the label still corrects or takes back the example if the model holds it as a member; if not, the model has nothing of
it, and nothing to learn it from.

The state afterwards, and the outputs, are a function of the state before and of the records alone; but for estimates of
the model's error, which are made when there is time.
"""

import logging
import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from streamsvm import WarmupScaler
from streamsvm.estimators.classifier import OnlineSVM

from ..logs.transport import Record, Transport
from ..records.codec import Codec, Event
from ..records.dead_letters import dead_letter, dead_letter_headers
from ..records.formats.base import BadRecord
from ..records.labels import Label
from ..records.predictions import ModelVersion, Prediction, send_prediction, source, write_prediction
from ..settings.sections import Settings
from .asking import Asking
from .state.estimates import Estimate
from .state.join import Join, Lesson, event_time
from .state.observe import Drift
from .state.state import State

logger = logging.getLogger(__name__)

Features = dict[str, float]


class Decoded(NamedTuple):
    """A record that is an event, with its features in the model's coordinates."""

    record: Record
    event: Event
    x: Features
    entity: bytes | None  # whose model is concerned; None if there is but one


class Task(NamedTuple):
    """A lesson and the features to learn, in the model's coordinates."""

    lesson: Lesson
    x: Features | None  # None: there is nothing to learn, or no event to learn it from
    time: int  # when the event came, in milliseconds, for models that forget what is old
    record: Record | None = None  # the event's, where it is at hand


class Training:
    """Consumes cuts.

    Parameters
    ----------
    settings
        The configuration.
    codec
        Reads events and labels.
    log
        Where predictions, refused records, questions and estimates go.
    number
        Of the partition.
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
        self.refused: Counter[str] = Counter()  # by reason
        self.waits: list[float] = []  # seconds from events to their labels, until somebody takes them
        self.drift = Drift()

    def consume(self, events: list[Record], labels: list[Record], state: State) -> None:
        """Predict all events, then learn from them and from the labels, in order."""
        decoded = self._decode_events(events, state)
        if decoded and self._settings.features.scale == "standard":
            self.drift.observe(decoded[0].x)  # one of each cut will do
        margins = self._predict(decoded, state)
        if not self._joins:
            tasks = (self._own_label(item, margin) for item, margin in zip(decoded, margins, strict=True))
            self._learn([task for task in tasks if task], state)
            return
        self._learn(self._join(decoded, margins, self._decode_labels(labels, state), state), state)
        if self._asking and state.labelling:
            self._asking.step([item.event for item in decoded], state, state.labelling)

    def resume(self, state: State) -> bool:
        """Ask what may be asked after a restart, under settings that may be new; whether there was anything."""
        if self._asking and state.labelling:
            return self._asking.step([], state, state.labelling)
        return False

    def refuse(self, record: Record, stage: str, error: BadRecord, state: State, *, is_whole: bool = True) -> None:
        """Put a record aside, with the reason; `is_whole` says whether nothing of it is missing here."""
        why = dead_letter_headers(record, stage, error, self._settings.group.id)
        letter = dead_letter(record, why, self._settings.limits.dead_letter_bytes, is_whole=is_whole)
        self._log.produce(self._settings.log.dlq, letter.value, key=letter.key, headers=letter.headers)
        state.counters.bad += 1
        self.refused[error.reason] += 1

    # --- the parts, in order ------------------------------------------------------------------------------------------

    def _decode_events(self, records: list[Record], state: State) -> list[Decoded]:
        """The events in the model's coordinates; what is none is put aside."""
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
        """Features in the coordinates of the events' models; why not, for what is no event or cannot be learned."""
        rows: list[Any] = [*events]
        places = [i for i, event in enumerate(events) if not isinstance(event, BadRecord)]
        entities = [records[i].key if self._is_keyed else None for i in places]
        for entity, chosen in _by_entity(entities).items():
            own = [places[j] for j in chosen]
            xs = usable_many([rows[i].x for i in own], state.scaler, state.models.to_predict(entity))
            for i, x in zip(own, xs, strict=True):
                rows[i] = x
        return rows

    def _decode_labels(self, records: list[Record], state: State) -> list[tuple[Record, Label]]:
        """The labels, with their records; what is none is put aside."""
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
        """Margins, after the predictions are on their way."""
        margins = np.empty(len(decoded))
        scores = np.empty(len(decoded))
        for entity, chosen in _by_entity([item.entity for item in decoded]).items():
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
        """What can be learned from an event alone."""
        event = item.event
        if event.y is None:
            return None
        lesson = Lesson(event.key, b"", event.y, event.w, margin, item.entity, is_first=True)
        return Task(lesson, item.x, self._time(event.ts, item.record), item.record)

    def _join(
        self, decoded: list[Decoded], margins: list[float], labels: list[tuple[Record, Label]], state: State
    ) -> list[Task]:
        """What can be learned by now, from events whose label is known and from labels whose event is."""
        tasks = []
        at_hand = {}
        for (record, event, x, entity), margin in zip(decoded, margins, strict=True):
            assert record.value is not None  # or it would be no event
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
        """What a label means: for its event, or else for an example that a model may hold."""
        lesson = join.add_label(label, record.offset, self._time(label.ts, record))
        if lesson:
            return lesson
        late = join.without_event(label.key)
        return late and late._replace(entity=record.key if self._is_keyed else None)

    def _features(self, lesson: Lesson, at_hand: dict[bytes, Features], state: State) -> Features | None:
        """Those of an event that was decoded before, if it is to be learned."""
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
        for entity, chosen in _by_entity([lesson.entity for lesson, *_ in tasks]).items():
            estimates, refused = _teach([tasks[i] for i in chosen], entity, state, self._max_features)
            self._publish(estimates)
            self._refuse_wide(refused, state)
        if state.counters.late > n_late:
            n = state.counters.late - n_late
            logger.info("%d labels came when their events were gone; the model still had the examples, and followed", n)

    def _refuse_wide(self, tasks: list[Task], state: State) -> None:
        """Put events aside that would give their model too many features."""
        error = BadRecord("too-many-features", f"the model would have more than {self._max_features} features")
        for lesson, _, when, record in tasks:
            kept = Record(self._settings.log.topic, self._number, lesson.at, when, lesson.entity, lesson.value, ())
            self.refuse(record or kept, "learn", error, state, is_whole=record is not None)
        if tasks:
            logger.warning("%d events were not learned: with their features, %s", len(tasks), error.detail)

    def _publish(self, estimates: list[Estimate]) -> None:
        topic = self._settings.log.estimates
        for estimate in estimates if topic else ():
            self._log.produce(topic, estimate.encode(self._number), key=f"p{self._number}-{estimate.kind}".encode())

    def _time(self, ts: str | int | float | None, record: Record) -> int:
        return record.timestamp if ts is None else event_time(ts, record.timestamp, self._max_skew)


def _teach(
    tasks: list[Task], entity: bytes | None, state: State, max_features: int
) -> tuple[list[Estimate], list[Task]]:
    """Forget what is corrected or taken back, all together, then learn; of several lessons of an event the last counts.

    Together, because forgetting one example takes nearly as long as forgetting many.  Returns the estimates that there
    was time for, and what was not learned, for the model would have too many features.
    """
    here = [task for task in tasks if task.lesson.value is not None]
    found: list[Estimate] = []
    refused: list[Task] = []
    if here:
        model = state.models.to_learn(entity)
        revisions = {task.lesson.key: task for task in here if not task.lesson.is_first}  # the last of each event
        model.forget(list(revisions))
        if state.estimates:
            state.estimates.forgotten(list(revisions))
        holding = [task for task in here if revisions.get(task.lesson.key, task) is task]
        fitting, refused = _fitting(model, holding, max_features)
        found = _learn_events(model, fitting, state)
        state.counters.learned += sum(task.lesson.y is not None for task in here) - len(refused)
    for lesson, *_ in tasks:
        if lesson.value is None and _revise_member(lesson, state.models.to_predict(entity), state):
            state.models.to_learn(entity)  # or it would not be known that it has changed
            state.counters.late += 1
    return found, refused


def _fitting(model: OnlineSVM, tasks: list[Task], max_features: int) -> tuple[list[Task], list[Task]]:
    """Those that the model has room for in its table of features, in order, and the others."""
    known = model._features.columns  # `feature_names` would copy them for every cut
    if len(known) + sum(len(task.x) for task in tasks if task.x) <= max_features:
        return tasks, []
    new: set[str] = set()
    fitting, others = [], []
    for task in tasks:
        added = {name for name in task.x or () if name not in known and name not in new}
        if added and len(known) + len(new) + len(added) > max_features:
            others.append(task)
        else:
            new |= added
            fitting.append(task)
    return fitting, others


def _learn_events(model: OnlineSVM, tasks: list[Task], state: State) -> list[Estimate]:
    xs = [task.x for task in tasks if task.x is not None]  # what was taken back has none
    lessons = [task.lesson for task in tasks if task.x is not None]
    times = np.array([task.time for task in tasks if task.x is not None], dtype="datetime64[ms]")
    keys, ys, ws = [each.key for each in lessons], [bool(each.y) for each in lessons], [each.w for each in lessons]
    begin = time.perf_counter()
    model.learn_many(xs, np.array(ys, dtype=bool), w=np.array(ws), ids=np.array(keys, dtype=np.int64), t=times)
    if state.estimates is None:
        return []
    return state.estimates.learned(xs, ys, ws, keys, time.perf_counter() - begin, state.offset, times)


def _revise_member(lesson: Lesson, model: OnlineSVM, state: State) -> int:
    """Correct or forget an example whose event is gone, if the model holds it."""
    if lesson.y is None:
        if state.estimates:
            state.estimates.forgotten([lesson.key])
        return model.forget(lesson.key)
    if state.estimates:
        state.estimates.corrected(lesson.key, lesson.y)
    return model.relabel(lesson.key, lesson.y)


def _by_entity(entities: list[bytes | None]) -> dict[bytes | None, list[int]]:
    """Places by entity, in order."""
    if entities and entities.count(entities[0]) == len(entities):
        return {entities[0]: list(range(len(entities)))}
    places: dict[bytes | None, list[int]] = {}
    for i, entity in enumerate(entities):
        places.setdefault(entity, []).append(i)
    return places


def usable_many(rows: list[Features], scaler: WarmupScaler | None, model: OnlineSVM) -> list[Features | BadRecord]:
    """The features in the model's coordinates, or why the model cannot learn from them; for each event."""
    scaled = scaler.transform_many(rows) if scaler else rows
    try:
        model.validate_many(scaled)
    except ValueError:
        return [_usable(x, model) for x in scaled]
    return [*scaled]


def _usable(x: Features, model: OnlineSVM) -> Features | BadRecord:
    try:
        model.validate_one(x)
    except ValueError as error:
        return BadRecord("bad-feature", f"in units of the first events' scale, {error}")
    return x
