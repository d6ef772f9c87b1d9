"""The trainer's side of labelling: it asks for the labels of some events, and hears the answers among the labels.

`streamsvm.active.loop` decides which events.  Here its decisions become records of the topic log.questions (see
`records.people.questions`), on the partition of the event.

The join alone decides which label of an event holds, and what is learned.  When that label may have changed, the loop
is told, whatever the source of the label.  Of the loop's decisions, only questions and their ends are carried out.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from streamsvm import active
from streamsvm.active import Action, Answer, Ask, CurvePoint, LabellingLoop, LoopCounts, SetLabel, Withdraw
from streamsvm.active.answers.register import question_id

from ..logs.transport import Record, Transport
from ..records.classes import ClassLabel
from ..records.codec import Codec, Event
from ..records.formats.base import BadRecord
from ..records.people.questions import LOOP_COUNTS, RECHECK, STATUS, Question, recheck_id, write_question, write_status
from ..records.predictions import ClassPrediction, predictions_of
from ..settings.sections import Settings
from .state.candidates import EventId, Labelling
from .state.join import Join
from .state.models import SingleModel
from .state.rechecks import Recheck
from .state.state import State

logger = logging.getLogger(__name__)

_UNUSUAL = 3.0  # standard deviations
_SPEAKING = 3  # labelled events that a question names
_LEAST_LABELS = 20  # labels, from which too little is known of the deviations


class Asking:
    """Carries out what the labelling loop of a partition decides.

    Parameters
    ----------
    settings
        The configuration.
    codec
        Reads events.
    log
        Takes the questions.
    number
        Number of the partition.
    """

    def __init__(self, settings: Settings, codec: Codec, log: Transport, number: int) -> None:
        self._topic, self._events = settings.log.questions, settings.log.topic
        self._shown_parts = settings.shown()
        self._codec = codec
        self._log = log
        self._number = number
        self._name = f"{settings.log.topic}-{number}"
        self._has_stopped: bool | None = None
        # The answers of this cut, each with whether its event was forgotten.  All have the same time, so that the last
        # of several answers holds, as in the join.
        self._heard: list[tuple[Answer, bool]] = []
        self._has_changed = False  # a class

    def hear(self, key: int, operation: str, who: str, join: Join, *, is_alike: bool = False) -> None:
        """Note which label of an event holds after a record.

        Parameters
        ----------
        key
            Id of the event, as 64 bits.
        operation
            The record's operation, one of `labels.OPERATIONS`; "set" for an event.
        who
            The record's source.
        join
            The join, which has taken the record.
        is_alike
            Whether the label was given with that of another event, because they are near-duplicates.
        """
        if operation in ("skip", "ignore"):
            self._heard.append((Answer(key, "skip" if operation == "skip" else "ignore", None, who, 0), False))
            return
        late = join.without_event(key)
        y = late.y if late else join.label_of(key)
        if y is not None:
            self._heard.append((Answer(key, "label", y, who, 0, is_alike), late is not None))
        elif operation == "retract":
            self._heard.append((Answer(key, "retract", None, who, 0), late is not None))

    def change_class(self, old: ClassLabel, new: ClassLabel | None, actions: Iterable[Action], state: State) -> None:
        """Carry out what a change of the classes means to the questions; `actions` are the loop's."""
        self._heard = [
            (answer._replace(y=new) if answer.y == old else answer, is_late)
            for answer, is_late in self._heard
            if new is not None or answer.y != old
        ]
        self._has_changed = True
        if state.labelling:
            self._execute(actions, state, state.labelling)

    def step(self, events: Iterable[Event], state: State, labelling: Labelling) -> bool:
        """Tell the loop what was heard, offer it the events of a cut, and ask its questions.

        Parameters
        ----------
        events
            The events of the cut.
        state
            The state of the partition, which has learned the cut.
        labelling
            The state's labelling.

        Returns
        -------
        bool
            Whether a question was asked, answered or withdrawn.
        """
        loop, now = labelling.loop, state.join.clock
        before = self._shown(loop)
        labelled = loop.counts.n_labels, loop.counts.corrected
        for event in events:
            labelling.offer(event, now)
        self._tell(state, labelling)
        if isinstance(state.models, SingleModel):
            labelling.tuning.step(state.models)
        is_any_gone = any(state.join.awaiting(question.key) is None for question in loop.open_questions())
        if is_any_gone or (loop.counts.n_labels, loop.counts.corrected) != labelled:  # refreshing takes time
            self._execute(labelling.refresh(state.model), state, labelling)
        self._execute(labelling.choose(state.model, now), state, labelling)
        is_news = self._recheck(state, labelling)
        is_news = labelling.votes.take_news() or self._shown(loop) != before or is_news or self._has_changed
        self._has_changed = False
        if is_news:
            self._publish(STATUS, write_status(status(state, labelling)))
            self._log_verdict(loop)
        return is_news

    def _recheck(self, state: State, labelling: Labelling) -> bool:
        """Ask again about answers that look wrong, if it is time; return whether such a question came or went."""
        rechecks, n_before = labelling.rechecks, labelling.rechecks.counts["rechecks"]
        rechecks.expire(state.join.clock)
        closed = rechecks.take_closed()
        for query_id in closed:
            self._publish(query_id.encode(), None)
        if rechecks.is_due(labelling.loop.counts.n_answered):
            self._ask_again(state, labelling)
        return bool(closed) or rechecks.counts["rechecks"] != n_before

    def _ask_again(self, state: State, labelling: Labelling) -> None:
        """Ask again about the answers that look wrong, without the model's guess, which has learned the answer."""
        now = state.join.clock
        unknown: dict[str, Any] = {"score": None, "guess": None, "probabilities": {}, "speaking": ()}
        for key, y in labelling.doubtful(state.model).items():
            value = state.join.event_of(key)
            assert value is not None  # the model has learned it from there
            if (id_ := self._id_of(key, value, state.join)) is None:
                continue  # its answer could not say which event it is about
            query_id = recheck_id(question_id(self._name, key))
            question = active.Question(query_id, key, "audit", 0.0, now, now + labelling.expiry)
            labelling.rechecks.ask(query_id, Recheck(key, y, question.expires))
            asked = self._described(question, value, id_, state)
            self._publish(query_id.encode(), write_question(replace(asked, reason=RECHECK, **unknown)))

    def _log_verdict(self, loop: LabellingLoop) -> None:
        verdict = loop.verdict()
        if verdict.stop is not self._has_stopped:
            stopped = "the label quota is spent" if verdict.spent else "nothing contradicts the model any more"
            what = stopped if verdict.stop else "asking for labels"
            logger.info("partition %d: %s: %s", self._number, what, verdict.why)
        self._has_stopped = verdict.stop

    def _shown(self, loop: LabellingLoop) -> LoopCounts:
        """The counts whose change is worth a status; labels that no question asked for are not."""
        return replace(
            loop.counts, n_offered=0, n_positive=0, n_negative=0, of_classes=[], elsewhere=0, alike=0, refused=0, gone=0
        )

    def _tell(self, state: State, labelling: Labelling) -> None:
        heard, self._heard = self._heard, []
        n_support, now = state.model.n_support, state.join.clock
        for answer, is_late in heard:
            if is_late and answer.status == "label" and labelling.loop.label_of(answer.key) is None:
                continue  # a late label cannot be learned; but it corrects one that was counted, as in the model
            asked = labelling.loop.open_question(answer.key)
            actions = labelling.loop.answer(answer, n_support, now)
            if asked and any(isinstance(action, SetLabel) for action in actions):
                self._publish(asked.id.encode(), None)
            self._execute(actions, state, labelling)
            value = state.join.awaiting(answer.key) if answer.status == "retract" else None
            id_ = None if value is None else self._id_of(answer.key, value, state.join)
            if id_ is not None and labelling.loop.put_back(answer.key, value, now):
                labelling.ids[answer.key] = id_

    def _execute(self, actions: Iterable[Action], state: State, labelling: Labelling) -> None:
        for action in actions:
            if isinstance(action, Ask):
                self._ask(action.question, state, labelling)
            elif isinstance(action, Withdraw):
                self._publish(action.question.id.encode(), None)

    def _publish(self, key: bytes, value: bytes | None) -> None:
        self._log.produce(self._topic, value, key=key, partition=self._number)

    # --- questions and status -----------------------------------------------------------------------------------------

    def _ask(self, question: active.Question, state: State, labelling: Labelling) -> None:
        value = state.join.event_of(question.key)
        assert value is not None  # the question is open
        described = self._described(question, value, labelling.ids[question.key], state)
        found, is_almost = labelling.alike(question.key, value)
        others = [(question_id(self._name, key), labelling.ids[key]) for key in found]
        alike = [{"query_id": query_id, "id": id_} for query_id, id_ in others]
        self._publish(question.id.encode(), write_question(replace(described, alike=alike, almost=is_almost)))

    def _described(self, question: active.Question, value: bytes, id_: EventId, state: State) -> Question:
        """A question with what people need to answer it; `value` is that of the event's record."""
        x = self._codec.features(value)
        (said,) = predictions_of(state.model, state.rows([x], None)) if self._codec.is_multiclass else (None,)
        if isinstance(said, ClassPrediction):
            guess, probabilities = said.label, {str(y): p for y, p in said.probabilities.items()}
            score = None if guess is None else said.probabilities[guess]
        else:
            guess, probabilities, score = None, {}, _score(state.model, question.margin)
        return Question(
            query_id=question.id,
            id=id_,
            partition=self._number,
            x=self._shown_parts.numbers(x),
            event=self._shown_parts.fields(value, x),
            margin=question.margin,
            score=score,
            reason=question.reason,
            asked_at=question.asked,
            expires_at=question.expires,
            unusual=self._unusual(x, state),
            model={"ver": state.version, "n_support": state.model.n_support},
            guess=guess,
            probabilities=probabilities,
            speaking=self._speaking(x, state),
        )

    def _id_of(self, key: int, value: bytes, join: Join) -> EventId | None:
        """The id of an event that is here, as the event has it; None if it was in a header, which is gone."""
        entry = join.entry_of(key)
        assert entry is not None
        place = (self._events, self._number, entry.at)
        with suppress(BadRecord):
            return self._codec.decode(Record(*place, join.clock, None, value, ())).id
        return None

    def _speaking(self, x: Mapping[str, Any], state: State) -> list[dict[str, Any]]:
        """The labelled events that speak most for the guess, as far as they are still here."""
        if not state.model.n_support:
            return []
        found = []
        for member in state.model.explain_one(state.rows([x], None)[0], _SPEAKING).members:
            value = state.join.event_of(member.id)
            id_ = None if value is None else self._id_of(member.id, value, state.join)
            if id_ is not None and member.label is not None:
                label = self._codec.name_of(member.label)
                found.append({"id": id_, "label": label, "share": round(member.share, 3)})
        return found

    def _unusual(self, x: Mapping[str, Any], state: State) -> dict[str, float]:
        """The scaled features that are far from their mean, in standard deviations."""
        if state.model.n_seen < _LEAST_LABELS:
            return {}
        return {name: round(z, 1) for name, z in state.standardised(x, None).items() if abs(z) >= _UNUSUAL}


def _score(model: Any, margin: float) -> float:
    """The probability of a positive; one half before the model has learned both classes, since it knows nothing."""
    return float(model.probability(np.array(margin))) if all(model.class_counts) else 0.5


def status(state: State, labelling: Labelling) -> dict[str, Any]:
    """How far the labelling is."""
    loop = labelling.loop
    verdict, n_labels = loop.verdict(), dict(loop.counts.of_classes)
    of_classes = [[y, n_labels.get(y, 0)] for y in state.classes.labels]
    changes = {"changes": list(map(list, state.changes.all))} if state.changes.all else {}
    classes = {} if state.classes.are_two else {"classes": of_classes, **changes}
    objective = labelling.tuning.objective
    threshold = {"threshold": [objective, state.model.decision_threshold]} if objective else {}
    return {
        **classes,
        **threshold,
        **({"recall": verdict.why} if labelling.promises_recall else {}),
        **labelling.counted(LOOP_COUNTS),
        "unresolved": len(labelling.disputed()),
        **labelling.rechecks.counts,
        **labelling.votes.statistics(),
        "remaining": loop.remaining(),
        "verdict": verdict._asdict(),
        "missed": loop.missed(labelling.disputed())._asdict(),
        "curve": _thinned(loop.curve()),
    }


def _thinned(points: list[CurvePoint]) -> list[CurvePoint]:
    """At most 64 of the points, the last one included."""
    return points[:: -(-len(points) // 64) or 1][:-1] + points[-1:]
