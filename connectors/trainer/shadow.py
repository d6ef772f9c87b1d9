"""The shadow: what the challengers of a partition do with the records of a cut.

The model that serves goes first, through the whole cut.  Its answers are on their way when the challengers begin.  They
take the same steps with the same rows of features: predict, then learn.  So a challenger's predictions are as honest,
and its state is a function of the log.

A challenger that fails, or takes too much time or memory, is dropped.  Nothing that it does changes the model that
serves.
"""

import time
from collections import ChainMap, defaultdict
from collections.abc import Mapping
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
from .learning import Task, teach
from .rows import rows_at
from .state.challengers import Challenger
from .state.lesson import Lesson
from .state.state import State

_GRACE_SECONDS = 10.0  # of CPU time, before a challenger can be too slow: its first records compile code


class Seen(NamedTuple):
    """An event that the model that serves has predicted."""

    record: Record
    event: Event
    row: int
    said: Said


class Step(NamedTuple):
    """Events that were predicted together, and then what was learned, with the rows of features that both refer to."""

    seen: list[Seen]
    rows: NamedRows
    tasks: list[Task]
    rows_to_learn: NamedRows


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
        self._forgotten: list[int] = []  # keys of events that the join has forgotten during this cut
        self._seconds: defaultdict[str, float] = defaultdict(float)  # of each challenger
        self._served: defaultdict[str, float] = defaultdict(float)  # of the model that serves, meanwhile

    def attend(self, state: State) -> None:
        """Hear which events the join forgets from now on."""
        state.join.when_forgotten = self._forgotten.append

    def follow(self, steps: list[Step], state: State, seconds: float) -> None:
        """Let every challenger take the steps of a cut, which took the model that serves so much CPU time."""
        fresh: dict[int, Said] = {}
        for seen in (seen for step in steps for seen in step.seen):
            fresh.setdefault(seen.event.key, seen.said)
        champion = ChainMap(state.challengers.said, fresh)
        kept: list[tuple[dict[int, Said], dict[int, Said]]] = [(state.challengers.said, fresh)]
        for challenger in state.challengers.active:
            begin = time.thread_time()
            outputs: list[tuple[Record, bytes]] = []
            try:
                kept.append((challenger.said, self._follow(challenger, steps, champion, outputs)))
            except Exception as error:  # Whatever it is, the model that serves goes on.
                challenger.drop(f"{type(error).__name__}: {error}")
            for record, value in outputs:
                send_prediction(self._log, self._settings.topic_of(challenger.settings), record, value)
            self._seconds[challenger.name] += time.thread_time() - begin
            self._served[challenger.name] += seconds
            self._judge_speed(challenger)
        self._settle(kept, state)

    def _follow(
        self,
        challenger: Challenger,
        steps: list[Step],
        champion: Mapping[int, Said],
        outputs: list[tuple[Record, bytes]],
    ) -> dict[int, Said]:
        """Take the steps; return what was said about the events of the cut."""
        fresh: dict[int, Said] = {}
        for step in _since(challenger.begun or 0, steps):
            for seen, said in self._predicted(challenger, step):
                fresh.setdefault(seen.event.key, said)
                version = ModelVersion(challenger.version, seen.record.offset)
                value = write_prediction(self._codec, seen.event, said, version, source(seen.record))
                outputs.append((seen.record, value))
                challenger.offset = seen.record.offset + 1
            self._learn(challenger, step, ChainMap(challenger.said, fresh), champion)
        return fresh

    def _predicted(self, challenger: Challenger, step: Step) -> list[tuple[Seen, Said]]:
        """Predictions of the events that the challenger can take."""
        model, decider = challenger.models.model, challenger.models.decider(None)
        try:
            found = self._say(model, step.rows, [seen.row for seen in step.seen])
            pairs = [*zip(step.seen, found, strict=True)]
        except ValueError:
            pairs = []
            for seen in step.seen:
                try:
                    pairs.append((seen, self._say(model, step.rows, [seen.row])[0]))
                except ValueError:
                    challenger.counters.bad += 1
        challenger.counters.predicted += len(pairs)
        return [(seen, with_verdict(said, decider)) for seen, said in pairs]

    def _say(self, model: Any, rows: NamedRows, places: list[int]) -> list[Said]:
        return predictions_of(model, rows_at(rows, places), to_be_learned=bool(self._settings.log.labels))

    def _learn(self, challenger: Challenger, step: Step, own: Mapping[int, Said], champion: Mapping[int, Said]) -> None:
        tasks = []
        for task in step.tasks:
            lesson = task.lesson
            said = own.get(lesson.key)
            if lesson.is_first and lesson.y is not None and said is not None and lesson.key in champion:
                challenger.comparison.observe(lesson.y, champion[lesson.key], said)
            tasks.append(task._replace(lesson=_own(lesson, said, challenger, step.rows_to_learn, task.row)))
        if tasks:
            limit = self._settings.limits.model_features
            _, refused = teach(tasks, step.rows_to_learn, None, challenger, limit)
            challenger.counters.bad += len(refused)

    def _judge_speed(self, challenger: Challenger) -> None:
        own, served, limit = self._seconds[challenger.name], self._served[challenger.name], challenger.settings.slowdown
        if not challenger.dropped and own > _GRACE_SECONDS and own - _GRACE_SECONDS > limit * served:
            challenger.drop(
                f"it took {own:.1f} seconds of CPU time, and the model that serves {served:.1f}: more than "
                f"slowdown = {limit:g} times as much"
            )

    def _settle(self, kept: list[tuple[dict[int, Said], dict[int, Said]]], state: State) -> None:
        """Keep what was said about the events that the join still has, and nothing else."""
        for said, fresh in kept:
            for key in self._forgotten:
                said.pop(key, None)
            if self._settings.log.labels:
                for key, each in fresh.items():
                    if state.join.event_of(key) is not None:
                        said.setdefault(key, each)
        self._forgotten.clear()


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
        decider = challenger.models.decider(None)
        if decider is None or row is None:
            return lesson._replace(margin=0.0, predicted=None, decision=None, verdict=None)
        said = with_verdict(predictions_of(challenger.models.model, rows_at(rows, [row]))[0], decider)
    return lesson._replace(
        margin=said.margin,
        predicted=said.class_label,
        decision=None if lesson.decision is None else said.decision,
        verdict=said.verdict and said.verdict._replace(margin=None),
    )
