"""The shadow: what the challengers of a partition do with the records of a cut.

The model that serves goes first, through the whole cut.  The challengers take the same steps with the same rows of
features: predict, then learn.  So a challenger's predictions are as honest, and its state is a function of the log.

They take them later, while no record waits, in slices so short that the next record hardly waits for one.  Until then
the steps stand in a queue, with what was true after the cut: what the model that serves had said, and which events the
join had.  The queue is empty before each checkpoint and whenever anything else changes models.  If it is full, the
challengers take steps after each cut until it is not: then they set the pace.  So they do if they answer a share of
the events: no answer waits for a moment without records.

A challenger that fails, or takes too much time or memory, is dropped.  Nothing that it does changes the model that
serves.
"""

import math
import time
from collections import ChainMap, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from itertools import takewhile
from typing import Any, NamedTuple

from streamsvm.estimators.inputs.named_rows import NamedRows

from ..logs.transport import Record, Transport
from ..records.codec import Codec, Event
from ..records.predictions import (
    ModelVersion,
    Said,
    predictions_of,
    send_prediction,
    source,
    with_verdict,
    write_prediction,
)
from ..settings.sections import Settings
from .inputs import record_size
from .learning import Task, predict_and_teach, teach
from .rows import predicted, rows_at
from .state.challengers import Challenger, Challengers
from .state.lesson import NOTHING_TOLD, Lesson, Told
from .state.quality.arms import Arms
from .state.state import State

_GRACE_SECONDS = 10.0  # of CPU time, before a challenger can be too slow: its first records compile code
_ROOM = 1 << 20  # bytes of records that may wait: about a thousand, which the challengers follow in a second
_SLICE_SECONDS = 0.004  # CPU time of a challenger before it is looked whether a record waits
_FIRST_SLICE, _LARGEST_SLICE, _FEW = 16, 256, 16  # records of its first slice, and the most; lessons of a step in it


class Seen(NamedTuple):
    """An event that the model that serves has predicted."""

    record: Record
    event: Event
    row: int
    said: Said
    value: bytes  # the prediction as it was written
    answering: str  # the name of the model that answers; empty if only one does


Output = tuple[Seen, bytes]  # with the prediction of a challenger


class Step(NamedTuple):
    """Events that were predicted together, and then what was learned, with the rows of features that both refer to."""

    seen: list[Seen]
    rows: NamedRows
    tasks: list[Task]
    rows_to_learn: NamedRows


class Portion(NamedTuple):
    """What a cut leaves to the challengers.

    Attributes
    ----------
    steps
        The steps of the cut.
    champion
        What the model that serves had said about the events whose first labels the steps have, by key.
    answered
        The name of the model that answers each event, by key: of those that wait for their labels, and of the cut.
    asked
        The events of the cut that challengers are to answer, by offset, until they have.
    kept
        Keys of the events that wait for their labels after the cut.
    forgotten
        Keys of the events that the join has forgotten since the cut before.
    arms
        Count what each model answers; None if no challenger has had a share.
    seconds
        CPU time that the model that serves took.
    nbytes
        Memory of the records, about.
    """

    steps: list[Step]
    champion: dict[int, Said]
    answered: ChainMap[int, str]
    asked: dict[int, Seen]
    kept: set[int]
    forgotten: list[int]
    arms: Arms | None
    seconds: float
    nbytes: int


class Shadow:
    """Lets the challengers of a partition follow the model that serves.

    Parameters
    ----------
    settings
        The configuration.
    codec
        Names the classes.
    log
        Takes the predictions.
    """

    def __init__(self, settings: Settings, codec: Codec, log: Transport) -> None:
        self._settings = settings
        self._codec = codec
        self._log = log
        self._forgotten: list[int] = []  # keys of events that the join has forgotten since the last cut
        self._waiting: deque[Portion | Iterator[None]] = deque()
        self._nbytes = 0  # of these portions
        self._works: Iterator[None] | None = None  # on what waits, if it has begun
        self._seconds: defaultdict[str, float] = defaultdict(float)  # of each challenger
        self._pauses = True  # between short slices; nothing waits for the end of the work
        self._at_once: defaultdict[str, int] = defaultdict(lambda: _FIRST_SLICE)  # steps of its next slice
        self._served: defaultdict[str, float] = defaultdict(float)  # of the model that serves, meanwhile

    def attend(self, state: State) -> None:
        """Hear which events the join forgets from now on."""
        state.join.when_forgotten.append(self._forgotten.append)

    @property
    def is_behind(self) -> bool:
        """Whether the challengers have not taken all steps."""
        return bool(self._waiting)

    def follow(self, steps: list[Step], state: State, seconds: float) -> None:
        """Queue the steps of a cut, which took the model that serves so much CPU time; make room if there is none."""
        portion = self._portion(steps, state, seconds)
        self._waiting.append(portion)
        self._nbytes += portion.nbytes
        room = 0 if state.challengers.split else _ROOM
        if self._nbytes > room:
            self._pauses = False
            self._work(state, lambda: self._nbytes <= room)

    def follow_with(self, work: Iterator[None]) -> None:
        """Queue work that waits until the challengers have taken all steps before it, and no step after it."""
        self._waiting.append(work)

    def catch_up(self, state: State, seconds: float = math.inf) -> None:
        """Let the challengers take steps for so long, or until they have taken all."""
        end = time.perf_counter() + seconds
        self._pauses = self._settings.daemon.follow and seconds < math.inf  # otherwise no answer is waited for
        self._work(state, lambda: time.perf_counter() >= end)

    def _portion(self, steps: list[Step], state: State, seconds: float) -> Portion:
        """What a cut leaves to the challengers; note what the model that serves has said of events that wait."""
        fresh: dict[int, Said] = {}
        answered: dict[int, str] = {}
        asked: dict[int, Seen] = {}
        for seen in (seen for step in steps for seen in step.seen):
            fresh.setdefault(seen.event.key, seen.said)
            if seen.answering:
                answered.setdefault(seen.event.key, seen.answering)
                if seen.answering != state.challengers.serving:
                    asked[seen.record.offset] = seen
        known = ChainMap(state.challengers.said, fresh)
        tasks = [task for step in steps for task in step.tasks]
        champion = {task.lesson.key: known[task.lesson.key] for task in tasks if task.lesson.key in known}
        joins = bool(self._settings.log.labels)
        kept = {key for key in fresh if joins and state.join.event_of(key) is not None}
        nbytes = sum(record_size(seen.record) for step in steps for seen in step.seen)
        nbytes += sum(len(task.lesson.value or b"") for task in tasks)
        forgotten = self._forgotten.copy()
        self._forgotten.clear()  # the join has its `append`
        all_answered = ChainMap(state.challengers.answered, answered)
        arms = state.challengers.arms
        portion = Portion(steps, champion, all_answered, asked, kept, forgotten, arms, seconds, nbytes)
        _keep(state.challengers.said, fresh, portion)
        return portion

    def _work(self, state: State, is_enough: Callable[[], bool]) -> None:
        self._works = self._works or self._take_all(state.challengers)
        for _ in self._works:
            if is_enough():
                return
        self._works = None

    def _take_all(self, challengers: Challengers) -> Iterator[None]:
        """Take the steps that wait; come back now and then to look at the time."""
        while self._waiting:
            portion = self._waiting[0]
            yield from self._take_portion(portion, challengers) if isinstance(portion, Portion) else portion
            self._waiting.popleft()

    def _take_portion(self, portion: Portion, challengers: Challengers) -> Iterator[None]:
        for challenger in challengers.active:
            yield from self._follow(challenger, portion)
        if portion.arms is not None:
            self._answer_rest(portion, challengers.serving, portion.arms)
            _keep(challengers.answered, portion.answered.maps[1], portion)
        self._nbytes -= portion.nbytes

    def _answer_rest(self, portion: Portion, serving: str, arms: Arms) -> None:
        """Let the model that serves answer for challengers that could not; count its answers, and their labels."""
        own = portion.answered.maps[1]
        for seen in portion.asked.values():
            send_prediction(self._log, self._settings.log.predictions, seen.record, seen.value)
            own[seen.event.key] = serving
        for name in own.values():
            arms.answer(name)
        for lesson in (task.lesson for step in portion.steps for task in step.tasks):
            _count(lesson, portion.champion.get(lesson.key), serving, portion)

    def _follow(self, challenger: Challenger, portion: Portion) -> Iterator[None]:
        """Let a challenger take the steps of a cut."""
        fresh: dict[int, Said] = {}  # what it says about the events of the cut
        self._served[challenger.name] += portion.seconds
        steps = [few for step in portion.steps for few in _few(step)]
        while steps:
            begin, n = time.thread_time(), self._at_once[challenger.name] if self._pauses else _LARGEST_SLICE
            outputs: list[Output] = []
            try:
                self._take(challenger, steps[:n], portion, fresh, outputs)
            except Exception as error:  # Whatever it is, the model that serves goes on.
                challenger.drop(f"{type(error).__name__}: {error}")
            self._send(challenger, outputs, portion)
            seconds = time.thread_time() - begin
            self._seconds[challenger.name] += seconds
            self._at_once[challenger.name] = _slice(len(steps[:n]), seconds)
            steps = steps[n:]
            self._judge_speed(challenger)
            if challenger.dropped:
                return
            yield
        _keep(challenger.said, fresh, portion)

    def _send(self, challenger: Challenger, outputs: list[Output], portion: Portion) -> None:
        """Send the predictions of a challenger: its answers, and what it says in the shadow."""
        for seen, value in outputs:
            is_answer = seen.answering == challenger.name
            topic = self._settings.log.predictions if is_answer else self._settings.topic_of(challenger.settings)
            send_prediction(self._log, topic, seen.record, value)
            if is_answer:
                del portion.asked[seen.record.offset]

    def _take(
        self, challenger: Challenger, steps: list[Step], portion: Portion, fresh: dict[int, Said], outputs: list[Output]
    ) -> None:
        """Take steps: those together that let each of their events be predicted and learned, and the others alone."""
        steps = [*_since(challenger.begun or 0, steps)]
        own, taken = ChainMap(challenger.said, fresh), 0
        while taken < len(steps):
            together = [*takewhile(_is_plain, steps[taken:])]
            version = challenger.version
            found = predict_and_teach([step.tasks[0] for step in together], steps[taken].rows, challenger)
            for step, said in zip(together, found, strict=False):
                [seen], [task] = step.seen, step.tasks
                fresh.setdefault(seen.event.key, said)
                outputs.append((seen, self._written(challenger, seen, said, version)))
                self._compare(challenger, task.lesson, own.get(task.lesson.key), portion)
                version += 1
            taken += len(found)
            if len(found) < max(1, len(together)):
                self._take_alone(challenger, steps[taken], portion, fresh, outputs)
                taken += 1

    def _take_alone(
        self, challenger: Challenger, step: Step, portion: Portion, fresh: dict[int, Said], outputs: list[Output]
    ) -> None:
        for seen, said in self._predicted(challenger, step):
            fresh.setdefault(seen.event.key, said)
            outputs.append((seen, self._written(challenger, seen, said, challenger.version)))
        self._learn(challenger, step, ChainMap(challenger.said, fresh), portion)

    def _written(self, challenger: Challenger, seen: Seen, said: Said, version: int) -> bytes:
        """The record of a prediction by a challenger of this version."""
        challenger.offset = seen.record.offset + 1
        made_by = ModelVersion(version, seen.record.offset, seen.answering and challenger.name)
        return write_prediction(self._codec, seen.event, said, made_by, source(seen.record))

    def _predicted(self, challenger: Challenger, step: Step) -> list[tuple[Seen, Said]]:
        """Predictions of the events that the challenger can take."""
        trained = challenger.models.trained()
        row_of = {place: seen.row for place, seen in enumerate(step.seen)}
        found, refused = predicted(trained, step.rows, row_of, to_be_learned=bool(self._settings.log.labels))
        challenger.counters.bad += len(refused)
        challenger.counters.predicted += len(found)
        return [(step.seen[place], said) for place, said in found.items()]

    def _learn(self, challenger: Challenger, step: Step, own: Mapping[int, Said], portion: Portion) -> None:
        tasks = []
        for task in step.tasks:
            lesson = task.lesson
            said = own.get(lesson.key)
            self._compare(challenger, lesson, said, portion)
            tasks.append(task._replace(lesson=_own(lesson, said, challenger, step.rows_to_learn, task.row)))
        if tasks:
            limit = self._settings.limits.model_features
            _, refused = teach(tasks, step.rows_to_learn, None, challenger, limit)
            challenger.counters.bad += len(refused)

    def _compare(self, challenger: Challenger, lesson: Lesson, said: Said | None, portion: Portion) -> None:
        """Compare what the challenger said with what the model that serves said, if this is the event's first label."""
        champion = portion.champion.get(lesson.key)
        if lesson.is_first and lesson.y is not None and said is not None and champion is not None:
            challenger.comparison.observe(lesson.y, champion, said)
        _count(lesson, said, challenger.name, portion)

    def _judge_speed(self, challenger: Challenger) -> None:
        own, served, limit = self._seconds[challenger.name], self._served[challenger.name], challenger.settings.slowdown
        if not challenger.dropped and own > _GRACE_SECONDS and own - _GRACE_SECONDS > limit * served:
            challenger.drop(
                f"it took {own:.1f} seconds of CPU time, and the model that serves {served:.1f}: more than "
                f"slowdown = {limit:g} times as much"
            )


def _slice(n: int, seconds: float) -> int:
    """How many steps to take at once, when the last so many have taken so much time."""
    return max(1, min(_LARGEST_SLICE, int(n * _SLICE_SECONDS / max(seconds, 1e-6))))


def _few(step: Step) -> Iterator[Step]:
    """A step as steps of a few lessons each."""
    if len(step.tasks) <= _FEW:
        yield step
        return
    for begin in range(0, len(step.tasks), _FEW):
        yield step._replace(seen=[] if begin else step.seen, tasks=step.tasks[begin : begin + _FEW])


def _is_plain(step: Step) -> bool:
    """Whether a step has one event, which came with its label."""
    if len(step.seen) != 1 or len(step.tasks) != 1 or step.rows is not step.rows_to_learn:
        return False
    [seen], [task] = step.seen, step.tasks
    lesson = task.lesson
    is_own = task.row == seen.row and lesson.key == seen.event.key
    return is_own and lesson.is_first and lesson.y is not None and lesson.told.decision is None


def _count(lesson: Lesson, said: Said | None, name: str, portion: Portion) -> None:
    """Count the first label of an event that the model of this name has answered, if it has."""
    if portion.arms is None or not lesson.is_first or lesson.y is None or said is None:
        return
    if portion.answered.get(lesson.key) == name:
        portion.arms.observe(name, lesson.y, said)


def _keep(said: MutableMapping[int, Any], fresh: Mapping[int, Any], portion: Portion) -> None:
    """Keep what was said about the events that the join still has after the cut, and nothing else."""
    for key in portion.forgotten:
        said.pop(key, None)
    for key, each in fresh.items():
        if key in portion.kept:
            said.setdefault(key, each)


def _since(begun: int, steps: list[Step]) -> list[Step]:
    """The steps without events, and without lessons of events, before an offset."""
    if not begun:
        return steps
    return [
        step._replace(
            seen=[seen for seen in step.seen if seen.record.offset >= begun],
            tasks=[task for task in step.tasks if task.lesson.at >= begun or task.lesson.value is None],
        )
        for step in steps
    ]


def _own(lesson: Lesson, said: Said | None, challenger: Challenger, rows: NamedRows, row: int | None) -> Lesson:
    """The lesson with the challenger's prediction in the place of that of the model that serves.

    If it began after the event came, it predicts the event now, before it learns it.
    """
    if said is None:
        decider = challenger.models.trained(None).decider
        if decider is None or row is None:
            return lesson._replace(told=NOTHING_TOLD)
        said = with_verdict(predictions_of(challenger.models.model, rows_at(rows, [row]))[0], decider)
    return lesson._replace(told=Told.of(said, is_late=lesson.told.decision is not None))
