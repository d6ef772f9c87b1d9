"""The trainer's side of labelling: it asks for the labels of some events, and hears the answers among the labels.

Which events, `streamsvm.active.loop` decides; here its decisions become records of the topic log.questions, on the
partition that the event has.  A question's key is its id, and its value is JSON::

    {"query_id": "...", "id": ..., "x": {name: number, ...}, "event": {...}, "margin": ..., "score": ...,
     "reason": ..., "asked_at": ms, "expires_at": ms, "unusual": {name: deviations, ...},
     "model": {"ver": ..., "n_support": ...}}

x has the features as they came, event what else a JSON event has, unusual the features far from the first events'.
A record without a value takes the question back, or says that it is answered.  The record with the key "status" says
how far the labelling is.  An answer is a label, or has one of the other operations in `wire`.

Which label holds, and what is learned, is the join's business alone: the loop is told which label of an event holds
whenever that may have changed, whoever gave it, and only what it says of questions is carried out.
"""

import json
import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from streamsvm.active import Action, Answer, Ask, CurvePoint, LabellingLoop, LoopCounts, Question, SetLabel, Withdraw

from ..logs.transport import Transport
from ..records.codec import MAX_QUESTION_BYTES, Codec, Event
from ..settings.sections import Settings
from .state.candidates import Labelling
from .state.join import Join
from .state.state import State

logger = logging.getLogger(__name__)

STATUS = b"status"  # key of the record that is no question

_UNUSUAL = 3.0  # standard deviations of the warm-up
_OWN_FIELDS = ("id", "x", "y", "w")


class Asking:
    """Carries out what the labelling loop of a partition decides.

    Parameters
    ----------
    settings
        The configuration.
    codec
        Reads events.
    log
        Where questions go.
    number
        Of the partition.
    """

    def __init__(self, settings: Settings, codec: Codec, log: Transport, number: int) -> None:
        self._topic = settings.log.questions
        self._is_standard = settings.features.scale == "standard"
        self._is_json = settings.log.format == "json"
        self._codec = codec
        self._log = log
        self._number = number
        self._has_stopped: bool | None = None
        # In this cut, and whether the event was gone; all of the same time, so that the last holds, as in the join.
        self._heard: list[tuple[Answer, bool]] = []

    def hear(self, key: int, operation: str, who: str, join: Join) -> None:
        """Note what the join has just made of a record: which label of the event holds now, if any does.

        Parameters
        ----------
        key
            Of the event.
        operation
            One of those in `wire`; that of an event is "set".
        who
            Says so.
        join
            After the record.
        """
        if operation in ("skip", "ignore"):
            self._heard.append((Answer(key, "skip" if operation == "skip" else "ignore", None, who, 0), False))
            return
        late = join.without_event(key)
        y = late.y if late else join.label_of(key)
        if y is not None:
            self._heard.append((Answer(key, "label", y, who, 0), late is not None))
        elif operation == "retract":
            self._heard.append((Answer(key, "retract", None, who, 0), late is not None))

    def step(self, events: Iterable[Event], state: State, labelling: Labelling) -> bool:
        """Tell the loop what was heard, offer the events of a cut, and ask.

        Parameters
        ----------
        events
            Of the cut; what was complete has been learned.
        state
            Of the partition, afterwards.
        labelling
            The state's.

        Returns
        -------
        Whether any question was asked, answered or taken back.
        """
        loop, now = labelling.loop, state.join.clock
        before = self._shown(loop)
        labelled = loop.counts.n_labels, loop.counts.corrected
        for event in events:
            labelling.offer(event, now)
        self._tell(state, labelling)
        is_any_gone = any(state.join.awaiting(question.key) is None for question in loop.open_questions())
        if is_any_gone or (loop.counts.n_labels, loop.counts.corrected) != labelled:  # which takes time
            self._execute(loop.refresh(state.model), state, labelling)
        self._execute(loop.choose(state.model, now), state, labelling)
        is_news = self._shown(loop) != before
        if is_news:
            self._publish(STATUS, _dump({"status": status(state, labelling)}))
            self._log_verdict(loop)
        return is_news

    def _log_verdict(self, loop: LabellingLoop) -> None:
        verdict = loop.verdict()
        if verdict.stop is not self._has_stopped:
            what = "enough is labelled" if verdict.stop else "asking for labels"
            logger.info("partition %d: %s: %s", self._number, what, verdict.why)
        self._has_stopped = verdict.stop

    def _shown(self, loop: LabellingLoop) -> LoopCounts:
        """The counts whose change is news; labels from elsewhere alone are none."""
        return replace(loop.counts, n_offered=0, n_positive=0, n_negative=0, elsewhere=0, refused=0, gone=0)

    def _tell(self, state: State, labelling: Labelling) -> None:
        heard, self._heard = self._heard, []
        n_support, now = state.model.n_support, state.join.clock
        for answer, is_late in heard:
            if is_late and answer.status == "label" and labelling.loop.label_of(answer.key) is None:
                continue  # what cannot be learned is no label; one that was counted is corrected, as in the model
            asked = labelling.loop.open_question(answer.key)
            actions = labelling.loop.answer(answer, n_support, now)
            if asked and any(isinstance(action, SetLabel) for action in actions):
                self._publish(asked.id.encode(), None)
            self._execute(actions, state, labelling)

    def _execute(self, actions: Iterable[Action], state: State, labelling: Labelling) -> None:
        for action in actions:
            if isinstance(action, Ask):
                self._publish(action.question.id.encode(), self._question(action.question, state, labelling))
            elif isinstance(action, Withdraw):
                self._publish(action.question.id.encode(), None)

    def _publish(self, key: bytes, value: bytes | None) -> None:
        self._log.produce(self._topic, value, key=key, partition=self._number)

    # --- what is said -------------------------------------------------------------------------------------------------

    def _question(self, question: Question, state: State, labelling: Labelling) -> bytes:
        value = labelling.value_of(question.key)
        x = self._codec.features(value)
        fields = {
            "query_id": question.id,
            "id": labelling.id_of(question.key),
            "x": x,
            "margin": question.margin,
            "score": float(state.model.probability(np.array(question.margin))),
            "reason": question.reason,
            "asked_at": question.asked,
            "expires_at": question.expires,
            "unusual": self._unusual(x, state),
            "model": {"ver": state.version, "n_support": state.model.n_support},
        }
        try:
            whole = _dump({**fields, "event": self._other_fields(value)})
        except ValueError:  # infinity, as 1e999 is read
            return _dump({**fields, "event": {}})
        return whole if len(whole) <= MAX_QUESTION_BYTES else _dump({**fields, "event": {}, "unusual": {}})

    def _other_fields(self, value: bytes) -> dict[str, Any]:
        """What a JSON event has for people."""
        if not self._is_json:
            return {}
        return {name: field for name, field in json.loads(value).items() if name not in _OWN_FIELDS}

    def _unusual(self, x: dict[str, float], state: State) -> dict[str, float]:
        """Features far from what the first events had, in deviations."""
        if not self._is_standard or state.scaler is None:
            return {}
        return {name: round(z, 1) for name, z in state.scaler.transform_one(x).items() if abs(z) >= _UNUSUAL}


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def status(state: State, labelling: Labelling) -> dict[str, Any]:
    """How far the labelling is, for those who label."""
    loop = labelling.loop
    counts, verdict = loop.counts, loop.verdict()
    return {
        **labelling.outcomes(),
        "open": counts.n_open,
        "offered": counts.n_offered,
        "labels": counts.n_labels,
        "positive": counts.n_positive,
        "negative": counts.n_negative,
        "corrected": counts.corrected,
        "retracted": counts.retracted,
        "remaining": loop.remaining(),
        "verdict": verdict._asdict(),
        "curve": _thinned(loop.curve()),
    }


def _thinned(points: list[CurvePoint]) -> list[CurvePoint]:
    """At most 64 of them, with the last."""
    return points[:: -(-len(points) // 64) or 1][:-1] + points[-1:]
