"""The trainer's side of labelling: it asks for the labels of some events, and hears the answers among the labels.

Which events, `streamsvm.active.loop` decides; here its decisions become records of the topic log.questions, on the
partition that the event has.  A question's key is its id, and its value is JSON::

    {"query_id": "...", "id": ..., "x": {name: number, ...}, "event": {...}, "margin": ..., "score": ...,
     "reason": ..., "asked_at": ms, "expires_at": ms, "unusual": {name: deviations, ...},
     "model": {"ver": ..., "n_support": ...}}

x has the features as they came, event what else a JSON event has, unusual the features far from the first events'.
A record without a value takes the question back, or says that it is answered.  The record with the key "status" says
how far the labelling is.  An answer is a label, or has one of the other operations in `wire`.

What to learn is the join's business alone: the loop is told of all labels, whoever gave them, and only what it says of
questions is carried out.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from streamsvm.active import Action, Answer, Ask, Question, SetLabel, Status, Withdraw

from .candidates import Labelling
from .settings import Settings
from .state import State
from .transport import Record, Transport
from .wire import MAX_BYTES, Codec, Event, Label

STATUS = b"status"  # key of the record that is no question

_UNUSUAL = 3.0  # standard deviations of the warm-up
_OWN_FIELDS = ("id", "x", "y", "w")
_STATUS_OF: Mapping[str, Status] = {"set": "label", "retract": "retract", "skip": "skip", "ignore": "ignore"}


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

    def step(
        self, events: Iterable[Event], answers: Iterable[tuple[Record, Label]], state: State, labelling: Labelling
    ) -> None:
        """Hear the answers of a cut, offer its events, and ask.

        Parameters
        ----------
        events, answers
            What the cut had, learned by now as far as possible.
        state
            Of the partition, afterwards.
        labelling
            The state's.
        """
        loop, now = labelling.loop, state.join.clock
        before = replace(loop.counts)
        self._hear(answers, state, labelling)
        for event in events:
            if event.y is not None:
                loop.answer(Answer(event.key, "label", event.y, "", 0), state.model.n_support, now)  # older than others
            labelling.offer(event, now)
        is_any_gone = any(state.join.awaiting(question.key) is None for question in loop.open_questions())
        if is_any_gone or loop.counts.n_labels != before.n_labels:  # which takes time
            self._execute(loop.refresh(state.model), state, labelling)
        self._execute(loop.choose(state.model, now), state, labelling)
        if loop.counts != replace(before, n_offered=loop.counts.n_offered):
            self._publish(STATUS, {"status": status(state, labelling)})

    def _hear(self, answers: Iterable[tuple[Record, Label]], state: State, labelling: Labelling) -> None:
        n_support, now = state.model.n_support, state.join.clock
        for record, label in answers:
            is_open = {question.key: question.id for question in labelling.loop.open_questions()}
            answer = Answer(label.key, _STATUS_OF[label.op], label.y, label.source or "", label.rev or record.timestamp)
            actions = labelling.loop.answer(answer, n_support, now)
            if any(isinstance(action, SetLabel) for action in actions) and label.key in is_open:
                self._publish(is_open[label.key].encode(), None)
            self._execute(actions, state, labelling)

    def _execute(self, actions: Iterable[Action], state: State, labelling: Labelling) -> None:
        for action in actions:
            if isinstance(action, Ask):
                self._publish(action.question.id.encode(), self._question(action.question, state, labelling))
            elif isinstance(action, Withdraw):
                self._publish(action.question.id.encode(), None)

    def _publish(self, key: bytes, value: dict[str, Any] | None) -> None:
        data = None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        self._log.produce(self._topic, data, key=key, partition=self._number)

    # --- what is said -------------------------------------------------------------------------------------------------

    def _question(self, question: Question, state: State, labelling: Labelling) -> dict[str, Any]:
        value = labelling.value_of(question.key)
        x = self._codec.features(value)
        return {
            "query_id": question.id,
            "id": labelling.id_of(question.key),
            "x": x,
            "event": self._other_fields(value),
            "margin": question.margin,
            "score": float(state.model.probability(np.array(question.margin))),
            "reason": question.reason,
            "asked_at": question.asked,
            "expires_at": question.expires,
            "unusual": self._unusual(x, state),
            "model": {"ver": state.counters.learned, "n_support": state.model.n_support},
        }

    def _other_fields(self, value: bytes) -> dict[str, Any]:
        """What a JSON event has for people; nothing of one so large that the question would be too large."""
        if not self._is_json or len(value) > MAX_BYTES // 2:
            return {}
        return {name: field for name, field in json.loads(value).items() if name not in _OWN_FIELDS}

    def _unusual(self, x: dict[str, float], state: State) -> dict[str, float]:
        """Features far from what the first events had, in deviations."""
        if not self._is_standard or state.scaler is None:
            return {}
        return {name: round(z, 1) for name, z in state.scaler.transform_one(x).items() if abs(z) >= _UNUSUAL}


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
        "not_undone": state.join.counters.not_undone,
        "remaining": loop.remaining(),
        "verdict": verdict._asdict(),
        "curve": loop.curve(),
    }
