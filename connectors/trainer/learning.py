"""Learning: what the lessons of a cut do to a model.

The model learns a correction in the place of the old label: it forgets the example, then learns the event anew.  A
retraction makes it forget the example.  The probabilities are fitted to the decision value of the prediction: at the
time of a late label the model has learned the event's neighbours and would say more.

If the join has forgotten the event (after its time, or for lack of memory), a label still corrects or removes the
example if the model holds it as a member.  If the model does not hold it, nothing can be learned, and nothing has to be
forgotten.
"""

import itertools
import time
from collections.abc import Hashable
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np

from streamsvm.conformal import ConformalClassifier
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.learner.before import Before
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learner.validation import KernelOverflow
from streamsvm.features import Records

from ..logs.transport import Record
from ..records.formats.base import BadRecord
from ..records.models import MULTICLASS, Model, is_of
from ..records.predictions import WITH_MARGINS, Prediction, Said, margin_of
from .rows import ONE_BY_ONE, Rows, rows_at
from .state.candidates import Labelling
from .state.challengers import Challenger
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


Refused = tuple[Task, BadRecord]


Pupil = State | Challenger  # what has models and counts their lessons


def teach(
    tasks: list[Task], rows: NamedRows, entity: bytes | None, state: Pupil, max_features: int
) -> tuple[list[Estimate], list[Refused]]:
    """Teach the model of an entity: forget what is corrected or taken back, then learn; one lesson after another.

    Examples that are new to the model are learned together, which gives the same bits.

    Parameters
    ----------
    tasks
        The lessons of a cut, in order.
    rows
        The features of their events, as the model takes them; see `numbered`.
    entity
        Whose model learns; see `SingleModel`.
    state
        The state of the partition, or a challenger.
    max_features
        The largest number of features of a model.

    Returns
    -------
    estimates, refused
        The estimates that were made, and the tasks that the model cannot learn, each with the reason.
    """
    found: list[Estimate] = []
    refused: list[Refused] = []
    for are_new, part in itertools.groupby(tasks, lambda task: task.lesson.is_first and task.lesson.value is not None):
        for together in [list(part)] if are_new else [[task] for task in part]:
            more, others = _teach(together, rows, entity, state, max_features)
            found += more
            refused += others
    return found, refused


def _teach(
    tasks: list[Task], rows: NamedRows, entity: bytes | None, state: Pupil, max_features: int
) -> tuple[list[Estimate], list[Refused]]:
    """Teach new examples, or revise one; arguments and results are those of `teach`."""
    trained = state.models.trained(entity)
    if tasks[0].lesson.value is None:
        if _revise_member(tasks[0].lesson, trained.learner, state):
            state.models.to_learn(entity)  # notes that the model has changed
            state.counters.late += 1
        return [], []
    model = state.models.to_learn(entity)
    if not tasks[0].lesson.is_first:
        trained.learner.forget(tasks[0].lesson.key)
        if state.estimates:
            state.estimates.forgotten([tasks[0].lesson.key])
    fitting, refused = _fitting(model, tasks, rows, max_features)
    found, too_large = _learn_events(model, fitting, rows, state, trained.decider)
    refused += too_large
    state.counters.learned += sum(task.lesson.y is not None for task in tasks) - len(refused)
    return found, refused


def foretelling(state: Pupil, rows: NamedRows | list[dict]) -> OnlineSVM | None:
    """The model, if it can predict rows and learn them in one call."""
    model = state.models.trained(None).model
    if isinstance(model, OnlineSVM) and not state.models.trained(None).decider and model.foretells(rows):
        return model
    return None


def predict_and_teach(tasks: list[Task], rows: NamedRows, state: Pupil) -> list[Said]:
    """Let a model predict new examples and learn them, each one before it predicts the next, in one call.

    Parameters
    ----------
    tasks
        The lessons, each with a label that came with the event.
    rows
        Rows of features that the tasks refer to.
    state
        What has the model.

    Returns
    -------
    list
        What the model said of the first so many events: there may be none.  The next one has to be taken alone.
    """
    model = foretelling(state, _rows_of(tasks, rows)) if len(tasks) > ONE_BY_ONE else None
    if model is None:
        return []
    given = _Examples.of(tasks, rows)
    n_seen, before = model.n_seen, Before(len(tasks))
    state.models.to_learn(None)  # notes that the model changes
    with suppress(ValueError):  # The example that is refused is the next one, and says why when it is taken alone.
        model.learn_many(given.xs, given.ys, w=given.ws, ids=given.keys, t=given.times, before=before)
    n = model.n_seen - n_seen
    state.counters.learned += n
    state.counters.predicted += n
    values, probabilities = before.margins[:n], before.probabilities[:n]
    table = (values - before.thresholds[:n]).tolist(), probabilities.tolist(), values.tolist()
    return [*map(Prediction, *table)]


def numbered(tasks: list[Task], rows: Rows, records: Records | None) -> tuple[list[Task], NamedRows]:
    """Tasks, and the rows of numbers that they refer to, which are made now if events are raw."""
    if isinstance(rows, NamedRows):
        return tasks, rows
    places = [task.row for task in tasks if task.row is not None]
    numbers = iter(range(len(places)))
    numbered = [task if task.row is None else task._replace(row=next(numbers)) for task in tasks]
    return numbered, rows.numbers(places, records)


def _fitting(model: Model, tasks: list[Task], rows: NamedRows, max_features: int) -> tuple[list[Task], list[Refused]]:
    """The tasks whose features the model has room for, and the others, each in order."""
    reason = BadRecord("too-many-features", f"the model would have more than {max_features} features")
    known = model._features.columns  # `feature_names` would copy them for every cut
    if len(known) + len(rows.names) <= max_features:
        return tasks, []
    new: set[Hashable] = set()
    fitting, others = [], []
    for task in tasks:
        names = rows[task.row] if task.row is not None else ()
        added = {name for name in names if name not in known and name not in new}
        if added and len(known) + len(new) + len(added) > max_features:
            others.append((task, reason))
        else:
            new |= added
            fitting.append(task)
    return fitting, others


def _learn_events(
    model: Any, tasks: list[Task], rows: NamedRows, state: Pupil, decider: ConformalClassifier | None
) -> tuple[list[Estimate], list[Refused]]:
    """Learn the events of these tasks; the estimates, and the tasks whose events are too large for the kernel.

    Events were validated when they came.  But a gamma that follows the stream may be another one by now.  After a batch
    that was refused, the next event is learned alone: it may be a later one that is too large.
    """
    rest = [task for task in tasks if task.row is not None]  # a retraction has no row
    found: list[Estimate] = []
    refused: list[Refused] = []
    at_once = len(rest)
    while rest:
        n_seen, begin, done = model.n_seen, time.perf_counter(), min(at_once, len(rest))
        at_once = len(rest)
        try:
            _learn(model, rest[:done], rows, decider, state.labelling)
        except KernelOverflow as error:
            if done == 1:
                refused.append((rest[0], BadRecord("bad-features", str(error))))
                rest = rest[1:]
                continue
            done, at_once = model.n_seen - n_seen, 1
        if state.estimates is not None and done:
            learned = _Examples.of(rest[:done], rows)
            found += state.estimates.learned(
                *learned.for_estimates(), time.perf_counter() - begin, state.offset, learned.times
            )
        rest = rest[done:]
    return found, refused


def _learn(
    model: Any, tasks: list[Task], rows: NamedRows, decider: ConformalClassifier | None, labelling: Labelling | None
) -> None:
    """Learn the events of these tasks, a few of them one by one: the model is the same either way."""
    if decider is not None:
        for lesson, row, when, _ in tasks:
            assert row is not None
            verdict = lesson.told.verdict
            assert verdict is not None  # [decide] is part of the fingerprint
            example = rows[row], lesson.y, lesson.w, lesson.key, np.datetime64(when, "ms")
            margin = _margin_of(lesson, model)
            if labelling is None or labelling.counts(lesson.key, verdict):
                said = verdict if margin is None else verdict._replace(margin=margin)
                decider.learn_one(*example, said=said)
            else:
                model.learn_one(*example, margin=margin)
    elif len(tasks) > ONE_BY_ONE or is_of(model, MULTICLASS):
        given, margins = _Examples.of(tasks, rows), [_margin_of(task.lesson, model) for task in tasks]
        are_late = any(margin is not None for margin in margins)
        others = {"margins": margins} if are_late else {}
        model.learn_many(given.xs, given.ys, w=given.ws, ids=given.keys, t=given.times, **others)
    else:
        for (lesson, _, when, _), x in zip(tasks, _rows_of(tasks, rows), strict=True):
            margin = _margin_of(lesson, model)
            model.learn_one(x, lesson.y, lesson.w, lesson.key, np.datetime64(when, "ms"), margin)


def _margin_of(lesson: Lesson, model: Any) -> Any:
    """What the model said when it predicted the event of a late label, as its `learn_one` takes it; None otherwise."""
    said = lesson.told.decision
    if said is None:
        return None
    if is_of(model, MULTICLASS):
        return margin_of(said, model)
    # Another model may have predicted, and said one thing.
    return said if len(said) > 1 and is_of(model, WITH_MARGINS) else said[0]


def _rows_of(tasks: list[Task], rows: NamedRows) -> NamedRows | list[dict]:
    return rows_at(rows, [task.row for task in tasks if task.row is not None])


class _Examples(NamedTuple):
    """What a model learns from some tasks."""

    xs: NamedRows | list[dict]
    ys: np.ndarray
    ws: np.ndarray
    keys: np.ndarray
    times: np.ndarray

    @classmethod
    def of(cls, tasks: list[Task], rows: NamedRows) -> Self:
        """The examples of these tasks, each of which has a row."""
        lessons = [task.lesson for task in tasks]
        return cls(
            _rows_of(tasks, rows),
            np.array([each.y for each in lessons], bool if isinstance(lessons[0].y, bool) else object),
            np.array([each.w for each in lessons]),
            np.array([each.key for each in lessons], np.int64),
            np.array([task.time for task in tasks], dtype="datetime64[ms]"),
        )

    def for_estimates(self) -> tuple[NamedRows | list[dict], list[bool], list[float], list[int]]:
        """The examples as `Estimates.learned` takes them."""
        return self.xs, self.ys.tolist(), self.ws.tolist(), self.keys.tolist()


def _revise_member(lesson: Lesson, model: Any, state: Pupil) -> int:
    """Correct or forget an example whose event the join has forgotten; return whether the model held it."""
    if lesson.y is None:
        if state.estimates:
            state.estimates.forgotten([lesson.key])
        return model.forget(lesson.key)
    is_held = model.relabel(lesson.key, lesson.y)
    if state.estimates:
        state.estimates.corrected(lesson.key, lesson.y)
    return is_held
