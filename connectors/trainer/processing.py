"""Processing: what is done with the records of a cut.

1. Decode the records; refuse bad ones (see `decoding`).
2. Take them in the order of their timestamps, events before labels of the same time:

   a. Predict an event.
   b. Join it with the labels.
   c. Learn every event whose label is known by now, and follow corrections and retractions (see `learning`), before the
      next event is predicted.

3. Offer the other events to the labelling loop, which may ask for their labels (see `asking`).
4. Leave the same steps to the challengers, which take them later (see `shadow`).

The numbers of raw events are made when they are used.  An event is predicted with what `Records` knows of the events
before it; then `Records` takes note of it.  A model that learns it takes its numbers as `Records` makes them then.

The state afterwards, and the outputs, depend on the state before and on the records alone.  Only the labelling loop
sees where a cut ends.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from streamsvm.alarms.alarm import MOST_NAMES
from streamsvm.conformal import ConformalClassifier, Tally
from streamsvm.estimators.inputs.named_rows import NamedRows

from ..logs.transport import Record, Transport
from ..records.class_changes import ClassChange
from ..records.codec import Codec, Event
from ..records.formats.base import BadRecord
from ..records.labels import Label, as_set
from ..records.predictions import (
    ModelVersion,
    Prediction,
    Said,
    send_prediction,
    source,
    write_prediction,
)
from ..settings.sections import Settings
from .asking import Asking
from .decoding import Decoded, Decoder
from .learning import Refused, Task, foretelling, numbered, predict_and_teach, teach
from .rows import RawRows, Rows, by_owner, predicted, unusable_rows
from .shadow import Seen, Shadow, Step
from .state.alarms import numbers_of
from .state.estimates import Estimate
from .state.join import Join
from .state.lesson import Lesson, Told
from .state.quality.multiclass import ClassPrequential
from .state.quality.prequential import Drift, Prequential
from .state.state import State

logger = logging.getLogger(__name__)

_NO_ROWS = NamedRows.of([])
_NOTHING_SAID = Prediction(0.0, 0.5)


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
    is_silent
        Whether only the models and the join count: nothing is written, measured or watched.

    Attributes
    ----------
    decoder : Decoder
        Decodes the records, and refuses bad ones.
    n_decided : int
        Number of events that were decided.
    times : Times
        Gives the records their times.
    drift : Drift
        Drift of the features.
    shadow : Shadow or None
        Lets the challengers follow; None if there are none.
    """

    def __init__(
        self, settings: Settings, codec: Codec, log: Transport, number: int, *, is_silent: bool = False
    ) -> None:
        self._is_silent = is_silent
        self._drops_outputs = getattr(log, "drops_outputs", False)  # as a `Quiet` says
        # Without late labels and decisions, what a model says of an event changes nothing of what it learns.
        self._only_learns = is_silent and not (settings.log.labels or settings.decide.error or settings.features.raw)
        self._settings = settings
        self._codec = codec
        self._log = log
        self._number = number
        self._joins = bool(settings.log.labels)
        self._is_keyed = settings.daemon.per == "key"
        self._max_features = settings.limits.model_features
        self._asking = Asking(settings, codec, log, number) if settings.log.questions else None
        self.shadow = Shadow(settings, codec, log) if settings.challenger else None
        self.decoder = Decoder(settings, codec, log, number)
        self.n_decided = 0
        self._waits: list[float] = []
        self._judged: dict[int, tuple[ConformalClassifier, dict[Any, Tally]]] = {}  # what learns, and its counts before
        self.drift = Drift()

    def process(self, events: list[Record], labels: list[Record], state: State) -> None:
        """Take the records of a cut in the order of their times; each event is predicted before it is learned."""
        if self._only_learns:
            self._learn_together(events, state)
            return
        begin, steps = time.thread_time(), []
        decoded, rows = self.decoder.events(events, state)
        if decoded and not self._is_silent:  # one event of a cut is enough
            self.drift.observe(state.standardised(decoded[0].event.x, decoded[0].entity))
        given = self.decoder.labels(labels, state) if self._joins else []
        n_late, together = state.counters.late, self._take_together(decoded, rows, state)
        learned = together or []
        for places, answers, change in self._steps(decoded if together is None else [], given, state):
            said, predicted_rows, seen = self._predict({place: decoded[place] for place in places}, rows, state)
            here = [(place, decoded[place], prediction) for place, prediction in said.items()]
            if places:
                state.offset = max(state.offset, decoded[places[-1]].record.offset + 1)
            tasks, known = (
                self._join(here, rows, answers, state) if self._joins else (self._own_labels(here, state.join), rows)
            )
            taught, known_rows = self._learn(tasks, known, state)
            if self.shadow and (seen or taught):
                steps.append(Step(seen, predicted_rows, taught, known_rows))
            learned += [task.lesson for task in tasks if task.lesson.is_first]
            if change:
                self._count_decisions(state)
                self._change_class(change, state)
        self._count_decisions(state)
        if not self._is_silent:
            self._note(learned, state.counters.late - n_late, state)
            self._listen(decoded, rows, learned, state)
        if self._asking and state.labelling:
            self._asking.step([item.event for item in decoded], state, state.labelling)
        if self.shadow:
            self.shadow.follow(steps, state, time.thread_time() - begin)

    def _count_decisions(self, state: State) -> None:
        """Count what the labels have said of decisions since the last call."""
        for decider, before in self._judged.values():
            state.decided.change(before, decider.tallies)
        self._judged.clear()

    def _take_together(self, decoded: list[Decoded], rows: Rows, state: State) -> list[Lesson] | None:
        """Let the model predict and learn the events of a cut in one call, which gives the same bits.

        Return the lessons; None if the events have to be taken in steps.  What is said of an event without a label
        changes nothing.
        """
        has_steps = self._joins or self._is_keyed or self._asking or self.shadow or state.estimates
        if has_steps or not (decoded and self._drops_outputs and isinstance(rows, NamedRows)):
            return None
        if foretelling(state, rows) is None:
            return None
        tasks = self._own_labels([(place, item, _NOTHING_SAID) for place, item in enumerate(decoded)], state.join)
        said: list[Said] = [*predict_and_teach(tasks, rows, state)]
        lessons = [_with(task.lesson, each) for task, each in zip(tasks, said, strict=False)]
        for task in tasks[len(said) :]:  # a few, or from one that the model refuses on
            assert task.row is not None
            for each in self._predict({task.row: decoded[task.row]}, rows, state)[0].values():
                self._learn([task], rows, state)
                lessons.append(_with(task.lesson, each))
        state.counters.predicted += len(decoded) - len(tasks)
        state.offset = max(state.offset, decoded[-1].record.offset + 1)
        return lessons

    def _learn_together(self, events: list[Record], state: State) -> None:
        """Learn the events of a cut that have labels; the model is as if each had been predicted before."""
        decoded, rows = self.decoder.events(events, state)
        here: list[tuple[int, Decoded, Said]] = [(place, item, _NOTHING_SAID) for place, item in enumerate(decoded)]
        self._learn(self._own_labels(here, state.join), rows, state)
        if decoded:
            state.offset = max(state.offset, decoded[-1].record.offset + 1)

    def observe(self, events: list[Record], state: State) -> None:
        """Let `Records` take note of raw events, and do nothing else with them."""
        if events:
            decoded, rows = self.decoder.events(events, state)
            if isinstance(rows, RawRows):
                rows.observed(range(len(decoded)), state.models.to_observe(None))

    def take_waits(self) -> list[float]:
        """Seconds from events to their labels, for the labels that came since the last call."""
        waits, self._waits = self._waits, []
        return waits

    def attend(self, state: State) -> None:
        """Take a state in hand, a new one or that of a checkpoint."""
        if self.shadow:
            self.shadow.attend(state)

    def resume(self, state: State) -> bool:
        """After a restart, ask what the settings, which may be new, allow; return whether anything was asked."""
        if self._asking and state.labelling:
            return self._asking.step([], state, state.labelling)
        return False

    # --- the parts, in order ------------------------------------------------------------------------------------------

    def _change_class(self, change: ClassChange, state: State) -> None:
        actions = state.change_class(change)
        logger.info("partition %d: %s changes the classes: %s", self._number, change.who, change)
        if self._asking:
            self._asking.change_class(change.old, change.new, actions, state)

    def _steps(
        self, decoded: list[Decoded], labels: list[tuple[Record, Label | ClassChange]], state: State
    ) -> Iterator[tuple[list[int], list[tuple[Record, Label]], ClassChange | None]]:
        """The records in the order of their timestamps, in steps: places of events, labels, and a change of classes.

        Only the last event of a step may teach.  So a model can predict the events of a step together, and still each
        of them before it learns the next.  What came before a change of classes is learned before it.
        """
        waiting = deque(labels)
        places: list[int] = []
        for place, until in enumerate([*(item.record.timestamp for item in decoded), math.inf]):
            answers: list[tuple[Record, Label]] = []
            while waiting and waiting[0][0].timestamp < until:
                record, said = waiting.popleft()
                if isinstance(said, ClassChange):
                    yield places, answers, said
                    places, answers = [], []
                else:
                    answers.append((record, said))
            is_last = place == len(decoded)
            if answers or (places and (is_last or self._teaches(decoded[places[-1]].event, state))):
                yield places, answers, None
                places = []
            places.append(place)

    def _teaches(self, event: Event, state: State) -> bool:
        """Whether the label of an event is known when it comes."""
        return event.y is not None or (self._joins and state.join.without_event(event.key) is not None)

    def _predict(
        self, decoded: Mapping[int, Decoded], rows: Rows, state: State
    ) -> tuple[dict[int, Said], NamedRows, list[Seen]]:
        """Produce the predictions of events; return them by place, and for challengers with the rows of the model."""
        found: dict[int, Said] = {}
        own, row_of = _NO_ROWS, dict[int, int]()
        for entity, chosen in by_owner({place: item.entity for place, item in decoded.items()}).items():
            row_of, own = self._taken({place: decoded[place] for place in chosen}, rows, entity, state)
            said, refused = predicted(state.models.trained(entity), own, row_of, to_be_learned=self._joins)
            for place, problem in refused.items():
                self.decoder.refuse(decoded[place].record, "predict", problem, state)
            found |= said
        said_of = {place: found[place] for place in decoded if place in found}
        seen, n_lessons, divides = [], state.version, bool(state.challengers.split)
        for place, prediction in said_of.items():
            record, event, _ = decoded[place]
            if self._is_silent:
                seen.append(Seen(record, event, row_of[place], prediction, b"", ""))
                continue
            answering = state.challengers.answering(record.key, event.key) if divides else ""
            version = ModelVersion(n_lessons, record.offset, answering and state.challengers.serving)
            value = write_prediction(self._codec, event, prediction, version, source(record))
            is_answer = answering == version.name
            topic = self._settings.log.predictions if is_answer else self._settings.topic_of_model(version.name)
            send_prediction(self._log, topic, record, value)
            self.n_decided += prediction.verdict is not None and prediction.verdict.decided
            if self.shadow:
                seen.append(Seen(record, event, row_of[place], prediction, value, answering))
        state.counters.predicted += len(said_of)
        return said_of, own, seen

    def _taken(
        self, decoded: Mapping[int, Decoded], rows: Rows, entity: bytes | None, state: State
    ) -> tuple[dict[int, int], NamedRows]:
        """The row of each event by its place, and rows of numbers, of which `Records` takes note."""
        if isinstance(rows, NamedRows):
            return {place: place for place in decoded}, rows
        numbers = NamedRows.of(rows.observed(decoded, state.models.to_observe(entity)))
        problems = unusable_rows(numbers, state.models.trained(entity).model)
        for row, item in enumerate(decoded.values()):
            if row in problems:
                self.decoder.refuse(item.record, "predict", problems[row], state)
        return {place: row for row, place in enumerate(decoded) if row not in problems}, numbers

    def _own_labels(self, here: list[tuple[int, Decoded, Said]], join: Join) -> list[Task]:
        """What to learn from the events that have their own labels."""
        tasks = []
        for row, (record, event, entity), said in here:
            when = join.pass_time(event.key, join.time_of(event.time, record.timestamp))
            if event.y is not None:
                told = Told.of(said, is_late=False)
                lesson = Lesson(event.key, b"", event.y, event.w, told, entity, is_first=True, at=record.offset)
                tasks.append(Task(lesson, row, when, record))
        return tasks

    def _join(
        self,
        here: list[tuple[int, Decoded, Said]],
        rows: Rows,
        labels: list[tuple[Record, Label]],
        state: State,
    ) -> tuple[list[Task], Rows]:
        """What to learn from events whose labels are known by now: the tasks, and the rows that they refer to."""
        tasks = []
        row_of: dict[bytes | None, int] = {item.record.value: row for row, item, _ in here} if labels else {}
        for row, (record, event, entity), said in here:
            assert record.value is not None  # it is an event
            when = state.join.time_of(event.time, record.timestamp)
            lesson = state.join.add_event(
                event.key,
                record.value,
                y=state.changes.meaning(event.y),
                w=event.w,
                said=said,
                entity=entity,
                time=when,
                at=record.offset,
            )
            if self._asking:
                self._asking.hear(event.key, "set", "", state.join)
            if lesson:
                tasks.append(Task(lesson, row, state.join.clock - lesson.waited, record))
        earlier: list[Mapping[str, Any]] = []  # of events of earlier cuts, whose rows come after those of this one
        for record, given in labels:
            label = self._decided(record, given, state)
            if label is None:
                continue
            lesson = self._add_label(record, label, state.join) if label.op in ("set", "retract") else None
            if self._asking:
                self._asking.hear(label.key, label.op, label.source or "", state.join, is_alike=label.like is not None)
            if lesson is None:
                continue
            known = None
            if lesson.value is not None and lesson.y is not None:
                known = row_of.get(lesson.value)
                if known is None:
                    try:
                        earlier.append(self._codec.features(lesson.value))
                    except BadRecord as error:  # the user's function made features of it before
                        self._refuse([(Task(lesson, None, state.join.clock - lesson.waited), error)], state)
                        continue
                    known = row_of[lesson.value] = len(rows) + len(earlier) - 1
            tasks.append(Task(lesson, known, state.join.clock - lesson.waited))
        more: Any = self.decoder.rows(earlier, state)
        return tasks, rows.beside(more)

    def _decided(self, record: Record, label: Label, state: State) -> Label | None:
        """What the answers to a question say together; None: nothing new.  Any other label decides alone."""
        label = state.changes.as_now(label)
        if state.labelling is None or not label.source or label.query_id is None:
            return as_set(label)
        when = label.rev or max(record.timestamp, 0)
        return state.labelling.hear(label.query_id, label, state.join.label_of(label.key), when)

    def _add_label(self, record: Record, label: Label, join: Join) -> Lesson | None:
        """What a label means for its event, or else for an example that the model may still hold."""
        lesson = join.add_label(label, record.offset, join.time_of(label.time, record.timestamp))
        if lesson:
            return lesson
        late = join.without_event(label.key)
        return late and late._replace(entity=self.decoder.entity(record))

    def _learn(self, tasks: list[Task], rows: Rows, state: State) -> tuple[list[Task], NamedRows]:
        """Teach the models; return the tasks of one model, and the rows of numbers that they refer to."""
        own: list[Task] = []
        numbers = _NO_ROWS
        for entity, chosen in by_owner(dict(enumerate(task.lesson.entity for task in tasks))).items():
            trained = state.models.trained(entity)
            decider = trained.decider
            own, numbers = numbered([tasks[i] for i in chosen], rows, trained.records)
            if decider and id(decider) not in self._judged:
                self._judged[id(decider)] = decider, decider.tallies
            estimates, refused = teach(own, numbers, entity, state, self._max_features)
            self._publish(estimates)
            self._refuse(refused, state)
        return own, numbers

    def _note(self, first: list[Lesson], n_late: int, state: State) -> None:
        """Count what a cut has taught: the first lessons of its events, and labels of events that are forgotten."""
        self._waits += [lesson.waited / 1000 for lesson in first if lesson.waited]
        if first:
            _observe(first, state.metrics)
        if n_late:
            logger.info("%d labels came after their events were forgotten; the model still held the examples", n_late)

    def _listen(self, decoded: list[Decoded], rows: Rows, first: list[Lesson], state: State) -> None:
        """Let the alarms take in the events and the first labels of a cut, and report what they say."""
        if not isinstance(rows, NamedRows) or state.scaler is not None or len(rows.names) > MOST_NAMES:
            rows = numbers_of(item.event.x for item in decoded)
        if state.labelling:
            first = [lesson for lesson in first if state.labelling.is_alike(lesson)]
        seen = state.alarms.see(rows, [item.record.offset for item in decoded])
        for heard in chain(seen, state.alarms.learn(first)):
            alert = heard.named(self._codec.name_of)
            logger.warning("alarm at offset %d: %s", alert.offset, alert)
            if self._settings.log.alarms:
                key = f"p{self._number}-{alert.kind}".encode()
                self._log.produce(self._settings.log.alarms, alert.encode(self._number), key=key)

    def _refuse(self, refused: list[Refused], state: State) -> None:
        """Send events aside that their model cannot learn."""
        for (lesson, _, when, record), error in refused:
            kept = Record(self._settings.log.topic, self._number, lesson.at, when, lesson.entity, lesson.value, ())
            self.decoder.refuse(record or kept, "learn", error, state, is_whole=record is not None)
        if refused:
            logger.warning("%d events are set aside, not learned; the first: %s", len(refused), refused[0][1].detail)

    def _publish(self, estimates: list[Estimate]) -> None:
        topic = self._settings.log.estimates
        for estimate in estimates if topic else ():
            self._log.produce(topic, estimate.encode(self._number), key=f"p{self._number}-{estimate.kind}".encode())


def _with(lesson: Lesson, said: Said) -> Lesson:
    """The lesson of an event of which this was said."""
    return lesson._replace(told=Told.of(said, is_late=False))


def _observe(lessons: list[Lesson], metrics: Prequential | ClassPrequential) -> None:
    """Count the first lessons of events, with the predictions made for them."""
    if isinstance(metrics, Prequential):
        y = np.array([lesson.y for lesson in lessons], dtype=bool)
        metrics.update(y, np.array([lesson.told.margin for lesson in lessons]))
    else:
        metrics.update(
            [lesson.y for lesson in lessons if lesson.y is not None], [each.told.predicted for each in lessons]
        )
