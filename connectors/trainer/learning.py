"""Learning: what the lessons of a cut do to a model.

The model learns a correction in the place of the old label: it forgets the example, then learns the event anew.  A
retraction makes it forget the example.  If the join has forgotten the event (after its time, or for lack of memory), a
label still corrects or removes the example if the model holds it as a member.  If the model does not hold it, nothing
can be learned, and nothing has to be forgotten.
"""

import time
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from streamsvm.estimators.classifier import OnlineSVM
from streamsvm.estimators.named_rows import NamedRows

from ..logs.transport import Record
from .state.estimates import Estimate
from .state.lesson import Lesson
from .state.state import State


class Task(NamedTuple):
    """A lesson, and what it takes to learn it.

    Attributes
    ----------
    lesson
        The lesson.
    row
        Place of the event's features among the rows of the cut; None for a retraction, or if the event is forgotten.
    time
        When the event came, in milliseconds; a model with a window of time needs it.
    record
        The event's record, or None if it came in an earlier cut.
    """

    lesson: Lesson
    row: int | None
    time: int
    record: Record | None = None


def teach(
    tasks: list[Task], rows: NamedRows, entity: bytes | None, state: State, max_features: int
) -> tuple[list[Estimate], list[Task]]:
    """Teach the model of an entity: forget what is corrected or taken back, then learn.

    Of several lessons from one event, only the last counts.  The model forgets all of a cut at once, because forgetting
    many examples takes hardly longer than forgetting one.

    Parameters
    ----------
    tasks
        The lessons of a cut, in order.
    rows
        The features of their events, as the model takes them.
    entity
        Whose model learns; see `Models`.
    state
        The state of the partition.
    max_features
        The largest number of features of a model.

    Returns
    -------
    estimates, refused
        The estimates that were made, and the tasks that would have given the model too many features.
    """
    here = [task for task in tasks if task.lesson.value is not None]
    found: list[Estimate] = []
    refused: list[Task] = []
    if here:
        model = state.models.to_learn(entity)
        revisions = {task.lesson.key: task for task in here if not task.lesson.is_first}  # by event: the last one
        model.forget(list(revisions))
        if state.estimates:
            state.estimates.forgotten(list(revisions))
        holding = [task for task in here if revisions.get(task.lesson.key, task) is task]
        fitting, refused = _fitting(model, holding, rows, max_features)
        found = _learn_events(model, fitting, rows, state)
        state.counters.learned += sum(task.lesson.y is not None for task in here) - len(refused)
    for lesson, *_ in tasks:
        if lesson.value is None and _revise_member(lesson, state.models.to_predict(entity), state):
            state.models.to_learn(entity)  # notes that the model has changed
            state.counters.late += 1
    return found, refused


def _fitting(model: OnlineSVM, tasks: list[Task], rows: NamedRows, max_features: int) -> tuple[list[Task], list[Task]]:
    """The tasks whose features the model has room for, and the others, each in order."""
    known = model._features.columns  # `feature_names` would copy them for every cut
    if len(known) + len(rows.names) <= max_features:
        return tasks, []
    new: set[Hashable] = set()
    fitting, others = [], []
    for task in tasks:
        names = rows[task.row] if task.row is not None else ()
        added = {name for name in names if name not in known and name not in new}
        if added and len(known) + len(new) + len(added) > max_features:
            others.append(task)
        else:
            new |= added
            fitting.append(task)
    return fitting, others


def _learn_events(model: OnlineSVM, tasks: list[Task], rows: NamedRows, state: State) -> list[Estimate]:
    learned = [task for task in tasks if task.row is not None]  # a retraction has no row
    xs = rows.take([task.row for task in learned if task.row is not None])
    times = np.array([task.time for task in learned], dtype="datetime64[ms]")
    lessons = [task.lesson for task in learned]
    keys, ys, ws = [each.key for each in lessons], [bool(each.y) for each in lessons], [each.w for each in lessons]
    begin = time.perf_counter()
    model.learn_many(xs, np.array(ys, dtype=bool), w=np.array(ws), ids=np.array(keys, dtype=np.int64), t=times)
    if state.estimates is None:
        return []
    return state.estimates.learned(xs, ys, ws, keys, time.perf_counter() - begin, state.offset, times)


def _revise_member(lesson: Lesson, model: OnlineSVM, state: State) -> int:
    """Correct or forget an example whose event the join has forgotten; return whether the model held it."""
    if lesson.y is None:
        if state.estimates:
            state.estimates.forgotten([lesson.key])
        return model.forget(lesson.key)
    if state.estimates:
        state.estimates.corrected(lesson.key, lesson.y)
    return model.relabel(lesson.key, lesson.y)
