"""What a partition's labelling loop is made of: the unlabelled events it chooses from, and the rules it follows."""

import json
from collections.abc import Sequence

import orjson

from streamsvm import WarmupScaler
from streamsvm.active import (
    ActiveSelection,
    AnyOf,
    AutoActiveSelection,
    LabellingLoop,
    MarginExhausted,
    MaxFraction,
    MaxLabels,
    RandomSelection,
    Selection,
    StoppingRule,
    StreamPool,
    SupportStable,
)
from streamsvm.active.stopping import inherited_state

from ...records.codec import MAX_BYTES, MAX_QUESTION_BYTES, Codec, Event
from ...settings.sections import LabellingSettings, Settings
from .join import Join

EventId = str | int

OUTCOMES = {  # of questions, and where the loop counts them
    "asked": "n_asked",
    "answered": "n_answered",
    "skipped": "skipped",
    "ignored": "ignored",
    "expired": "expired",
    "withdrawn": "withdrawn",
}

_LARGE = MAX_BYTES // 16  # an event that is smaller makes a question that is small enough, however numbers are written


class Candidates(StreamPool):
    """Unlabelled events; what is kept of each is its payload.

    Parameters
    ----------
    capacity
        How many are kept.
    codec
        Reads events.
    scaler
        Gives the coordinates of the model.
    """

    def __init__(self, capacity: int, codec: Codec, scaler: WarmupScaler | None) -> None:
        super().__init__(capacity)
        self._codec = codec
        self._scaler = scaler

    def rows(self, keys: Sequence[int]) -> list[dict[str, float]]:
        """The features in the coordinates of the model."""
        rows = [self._codec.features(value) for value in super().rows(keys)]
        return self._scaler.transform_many(rows) if self._scaler else rows


class Labelling:
    """The labelling of a partition's events, as far as it changes.

    Parameters
    ----------
    settings
        The configuration.
    join
        Where events wait for their labels: those that it has forgotten are not asked about.
    scaler
        Gives the coordinates of the model.
    number
        Of the partition.
    """

    def __init__(self, settings: Settings, join: Join, scaler: WarmupScaler | None, number: int) -> None:
        labelling = settings.labelling
        self._join = join
        self._candidates = Candidates(labelling.reservoir, settings.codec(), scaler)
        self._ids: dict[int, EventId] = {}  # of the candidates and the open questions, and some that were
        self._max_ids = 2 * (labelling.reservoir + labelling.open)
        self._stopping = _stopping(labelling)
        self.loop = LabellingLoop(
            self._candidates,
            selection=_selection(labelling),
            stopping=self._stopping,
            explore=labelling.explore,
            seeds=labelling.seeds,
            n_open=labelling.open,
            expiry=int(1000 * labelling.expires_seconds),
            name=f"{settings.log.topic}-{number}",
            seed=number,
            is_alive=lambda key: join.awaiting(key) is not None,
        )
        join.when_forgotten = self._candidates.discard

    def offer(self, event: Event, now: int) -> None:
        """Keep an event as a candidate, if its label is not known yet and a question can hold its features."""
        value = self._join.awaiting(event.key)
        if value is None or _is_huge(event, value):
            return
        if self.loop.offer(event.key, value, now):
            self._ids[event.key] = event.id
            if len(self._ids) > self._max_ids:
                self._forget()

    def _forget(self) -> None:
        """Keep the ids that are needed."""
        asked = {question.key for question in self.loop.open_questions()}
        self._ids = {key: id_ for key, id_ in self._ids.items() if key in asked or key in self._candidates}

    def id_of(self, key: int) -> EventId:
        """The id of an event with an open question, as the event has it."""
        return self._ids[key]

    def value_of(self, key: int) -> bytes:
        """The payload of an event that was just asked about."""
        value = self._join.awaiting(key)
        assert value is not None  # or the question would not be open
        return value

    def outcomes(self) -> dict[str, int]:
        """How many questions were asked, and what became of them."""
        counts = self.loop.counts
        return {name: getattr(counts, field) for name, field in OUTCOMES.items()}

    def to_bytes(self) -> bytes:
        """The state, for a checkpoint; the payloads are in that of the join."""
        self._forget()
        ids = json.dumps(list(self._ids.items()))  # which may be integers of any size
        return orjson.dumps({"loop": self.loop.state(), "ids": ids})

    def restore(self, data: bytes) -> None:
        """Go on from `to_bytes`, with a join that was restored."""
        state = orjson.loads(data)
        self._ids = dict(json.loads(state["ids"]))
        loop = state["loop"]
        if self._stopping is None:
            stopping = None
        else:
            counts = loop["counts"]
            stopping = inherited_state(self._stopping, loop["stopping"], counts["n_answered"], counts["n_offered"])
        self.loop.restore({**loop, "stopping": stopping}, self._join.awaiting)


def _is_huge(event: Event, value: bytes) -> bool:
    return len(value) > _LARGE and len(json.dumps(event.x)) > MAX_QUESTION_BYTES // 2


def _selection(labelling: LabellingSettings) -> Selection:
    selections: dict[str, Selection] = {
        "active": ActiveSelection(labelling.pool),
        "auto": AutoActiveSelection(),
        "all": ActiveSelection(None),
        "random": RandomSelection(),
    }
    return selections[labelling.selection]


def _stopping(labelling: LabellingSettings) -> AnyOf | None:
    rules: list[StoppingRule] = []
    if labelling.stop in ("margin", "either"):
        rules.append(MarginExhausted(labelling.pool))
    if labelling.stop in ("support", "either"):
        rules.append(SupportStable())
    if labelling.max_labels:
        rules.append(MaxLabels(labelling.max_labels))
    if labelling.max_fraction:
        rules.append(MaxFraction(labelling.max_fraction))
    return AnyOf(*rules) if rules else None
