"""A partition's labelling: the unlabelled events that may be asked about, and the rules that choose among them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from streamsvm import WarmupScaler
from streamsvm.active import (
    Action,
    ActiveSelection,
    AllOf,
    AnyOf,
    Audited,
    AutoActiveSelection,
    EachClass,
    LabellingLoop,
    MarginExhausted,
    MaxFraction,
    MaxLabels,
    MixedSelection,
    NearDuplicates,
    RandomSelection,
    Selection,
    StoppingRule,
    StreamPool,
    SupportStable,
)
from streamsvm.active.choosing.recall_rule import ToRecall
from streamsvm.active.choosing.stopping import inherited_state
from streamsvm.active.choosing.words import MOST, pattern_of
from streamsvm.conformal import Decision
from streamsvm.features import Records

from ...records.classes import ClassLabel
from ...records.codec import Codec, Event
from ...records.labels import Label
from ...records.models import Model
from ...records.people.questions import fits_question, is_recheck
from ...records.people.votes import Votes
from ...settings.labelling import LabellingSettings
from ...settings.sections import Settings
from .join import Join
from .lesson import Lesson
from .rechecks import Rechecks
from .tuning import MOST_LEFT_OUT, Tuning, finished
from .undecided import OPEN, Undecided

EventId = str | int

_OWN_FIELDS = ("id", "y", "w", "ts")  # of each event: copies may differ in them
_IN_CHECKPOINTS = ("votes", "rechecks", "tuning")  # beside the loop


class Candidates(StreamPool):
    """A sample of unlabelled events, kept as the values of their records.

    Parameters
    ----------
    capacity
        The largest number of events.
    codec
        Reads events.
    transformer
        What makes the features of raw events, or the scaler of a run that 0.1.0 began; None: the model takes features
        as they are.
    shown
        The fields with the text and the image; empty: there are none.
    """

    def __init__(
        self, capacity: int, codec: Codec, transformer: Records | WarmupScaler | None, shown: Sequence[str]
    ) -> None:
        super().__init__(capacity)
        self._codec = codec
        self._transformer = transformer
        self._shown = shown
        self._texts = NearDuplicates()

    def alike(self, key: int, value: bytes) -> tuple[list[int], bool]:
        """The copies of an event which was asked about; without any, the events with almost its text or image.

        Parameters
        ----------
        key
            Of the event.
        value
            Of its record.

        Returns
        -------
        tuple
            Their keys, and whether they are only almost the same.
        """
        if not self._shown:
            return [], False
        for other in self.keys():
            if other not in self._texts:
                self._texts.add(other, *_shown_of(super().rows([other])[0], *self._shown))
        self._texts.add(key, *_shown_of(value, *self._shown))
        copies = self._texts.copies(key)
        found = copies or self._texts.like(key)
        self._texts.discard(key)
        return found, bool(found and not copies)

    def discard(self, key: int) -> bool:
        self._texts.discard(key)
        return super().discard(key)

    def rows(self, keys: Sequence[int]) -> list[dict[str, float]]:
        """The features of these events, as the model takes them."""
        return self.features(super().rows(keys))

    def features(self, values: Sequence[bytes]) -> list[dict[str, float]]:
        """The features of events, as the model takes them, from their records' values."""
        rows: Any = [self._codec.features(value) for value in values]
        transformer: Any = self._transformer
        return transformer.transform_many(rows) if transformer else rows


class Labelling:
    """The state of a partition's labelling.

    Parameters
    ----------
    settings
        The configuration.
    join
        Keeps the events that wait for labels.  An event that it has forgotten is not asked about.
    made_by
        What makes the model's features, as of `Trained`.
    number
        Number of the partition.
    """

    def __init__(self, settings: Settings, join: Join, made_by: Records | WarmupScaler | None, number: int) -> None:
        labelling, name = settings.labelling, f"{settings.log.topic}-{number}"
        self._join = join
        shown = (labelling.text, labelling.image) if settings.log.format == "json" else ()
        self._candidates = Candidates(labelling.reservoir, settings.codec(), made_by, shown)
        self._is_raw, is_mixed = isinstance(made_by, Records), labelling.selection == "mixed"
        self.ids: dict[int, EventId] = {}  # of the candidates and of the open questions, and some older ones
        self._reservoir = labelling.reservoir
        is_multiclass = settings.label.vocabulary is not None
        is_sample = settings.audit < 1.0  # only some labels come: those that are asked for because of decisions
        self._undecided = Undecided(settings.audit, labelling.max_fraction, name) if is_sample else None
        self._stopping = None if is_sample else _stopping(labelling, is_multiclass)
        self._open = labelling.open or (OPEN if self._undecided else 0)
        has_words = settings.log.format == "json" and self._undecided is None  # other formats have no texts for people
        words = labelling.seed_words if has_words else ()
        self._words = pattern_of(words) if words else None
        self._first = frozenset() if self._undecided else frozenset(labelling.first)
        self._text = labelling.text
        self._n_with_words = 0
        self.promises_recall = labelling.stop == "recall"
        self.votes = Votes(labelling.answers_per_question)
        self.rechecks = Rechecks(labelling.recheck_every, labelling.recheck)
        self.expiry = int(1000 * labelling.expires_seconds)
        self.loop = LabellingLoop(
            self._candidates,
            selection=self._undecided or _selection(labelling),
            stopping=self._stopping,
            explore=0.0 if self._undecided else labelling.audit if is_mixed else labelling.explore,
            seeds=0 if self._undecided else labelling.seeds,
            expiry=self.expiry,
            name=name,
            seed=number,
            is_alive=lambda key: join.awaiting(key) is not None,
            is_several=is_multiclass,
        )
        features = self._candidates.features
        self.tuning = Tuning(settings, join, self.loop, features, is_scaled=isinstance(made_by, WarmupScaler))
        join.when_forgotten.append(self._candidates.discard)

    def offer(self, event: Event, now: int) -> None:
        """Offer an event as a candidate, if it has no label yet and a question has room for its features."""
        value = self._join.awaiting(event.key)
        if value is None or not (self._is_raw or fits_question(event.x, len(value))):
            return
        entry = self._join.entry_of(event.key)
        said = entry and entry.verdict
        if self._undecided and said and not self._undecided.wants(event.key, said):
            return
        if self.loop.offer(event.key, value, now):
            self.ids[event.key] = event.id
            if str(event.id) in self._first:
                self.loop.suggest([event.key])
            self._look_for_words(event.key, value)
            if len(self.ids) > 2 * (self._reservoir + self.loop.counts.n_open + 1):
                self._forget()

    def counts(self, key: int, said: Decision) -> bool:
        """Whether the label of an event, of which this was decided, says how often decisions are wrong."""
        return self._undecided is None or self._undecided.counts(key, said)

    def is_alike(self, lesson: Lesson) -> bool:
        """Whether an alarm may compare a label with earlier ones: those of undecided events become harder to guess."""
        verdict = lesson.told.verdict
        if self._undecided is None or verdict is None:
            return True
        return verdict.decided and self._undecided.counts(lesson.key, verdict)

    def _look_for_words(self, key: int, value: bytes) -> None:
        """Ask about an event first if its text holds a seed word, and few others did."""
        if self._words is None or self._n_with_words >= MOST:
            return
        if self._words.search(_text_of(value, self._text)):
            self._n_with_words += 1
            self.loop.suggest([key])

    def alike(self, key: int, value: bytes) -> tuple[list[int], bool]:
        """The near-duplicates of an event that a question is open about, and whether they are only almost the same."""
        return self._candidates.alike(key, value)

    def erase(self, keys: Sequence[int]) -> None:
        """Forget events that the join has erased; `refresh` withdraws the questions about them."""
        self.votes.erase(keys)
        self.rechecks.erase(keys)

    def _forget(self) -> None:
        """Drop the ids that are no longer needed."""
        asked = set(self._asked())
        self.ids = {key: id_ for key, id_ in self.ids.items() if key in asked or key in self._candidates}

    def doubtful(self, model: Model) -> dict[int, ClassLabel]:
        """The newest answers that look wrong and are worth another question, by event."""
        answers = self.tuning.labelled(self.loop.answered(MOST_LEFT_OUT))
        y = dict(zip(answers.keys, answers.y, strict=True))
        rows = self._candidates.features(answers.values)
        return {key: y[key] for key in self.rechecks.choose(y, rows, answers.weights, model)}

    def refresh(self, model: Model) -> list[Action]:
        """Withdraw the questions that are no longer worth an answer; those that have an answer are."""
        return self.loop.refresh(model, self.votes.begun(self._asked()))

    def choose(self, model: Model, now: int) -> list[Action]:
        """Ask as many questions as the annotators can answer now."""
        self.loop.n_open = self.votes.room(self._open, self._asked())
        model = finished(model) if self.loop.wanted() and not self._undecided else model
        if self.loop.is_review_due():
            self.loop.review(model, self.tuning.line(model))
        return self.loop.choose(model, now)

    def hear(self, query_id: str, label: Label, holding: ClassLabel | None, time: int) -> Label | None:
        """What the answers to a question say together with a new one; None: nothing new, or not enough yet."""
        heard = self.rechecks.hear(query_id, label) if is_recheck(query_id) else label
        label = heard if self.votes.answers == 1 else label
        decided = self.votes.hear(label, holding, time)
        if decided is None and label.op != "retract" and label.like is None:
            self.loop.suggest([label.key])  # found by a person, and others must answer, too
        return decided

    def rename_class(self, old: ClassLabel, new: ClassLabel | None, n_support: int, now: int) -> list[Action]:
        """Let the answers of a class be those of another one; None: take them back."""
        self.votes.rename_class(old, new)
        self.rechecks.rename_class(old, new)
        return self.loop.rename_class(old, new, n_support, now)

    def _asked(self) -> list[int]:
        """The events with open questions."""
        return [question.key for question in self.loop.open_questions()]

    def disputed(self) -> set[int]:
        """The events with open questions whose annotators disagree, so that one more of them is asked."""
        return self.votes.unresolved(self._asked())

    def counted(self, names: Iterable[str]) -> dict[str, int]:
        """These counts of the loop, by their names in a status, which have no "n_"."""
        counts = self.loop.counts
        known = {name.removeprefix("n_"): n for name, n in vars(counts).items()} | {"labels": counts.n_labels}
        return {name: known[name] for name in names}

    def to_bytes(self) -> bytes:
        """The state, for a checkpoint.  The events are in the join's state."""
        self._forget()
        ids = json.dumps(list(self.ids.items()))  # JSON of the standard library: ids are integers of any size
        own = {name: getattr(self, name).state() for name in _IN_CHECKPOINTS}
        return orjson.dumps({"loop": self.loop.state(), "ids": ids, **own, "words": self._n_with_words})

    def restore(self, data: bytes) -> None:
        """Go on from the state that `to_bytes` gave, with a join that was restored."""
        state = orjson.loads(data)
        self.ids = dict(json.loads(state["ids"]))
        for name in _IN_CHECKPOINTS:
            if name in state:  # an older version counted no answers, or tuned nothing
                getattr(self, name).restore(state[name])
        self._n_with_words = state.get("words", 0)
        loop, rule = state["loop"], self._stopping
        counts = loop["counts"]
        stopping = rule and inherited_state(rule, loop["stopping"], counts["n_answered"], counts["n_offered"])
        self.loop.restore({**loop, "stopping": stopping}, self._join.awaiting)


def _text_of(value: bytes, name: str) -> str:
    """The text that people read of an event, from the value of its record; empty without one."""
    text = json.loads(value).get(name)
    return text if isinstance(text, str) else ""


def _shown_of(value: bytes, text: str, image: str) -> tuple[str | list[float], str]:
    """The text of an event, or the grey values of its image, empty without both; and what else people may judge by."""
    event = json.loads(value)
    said, x = event.get(text), event.get("x")
    shown: str | list[float] = ""
    if isinstance(said, str) and said.strip():
        own, shown = {*_OWN_FIELDS, text}, said
        if isinstance(x, dict):  # a raw record has the text again
            event["x"] = {name: field for name, field in x.items() if field != said}
    elif event.get(image) and isinstance(x, list):
        own, shown = {*_OWN_FIELDS, image, "x"}, x
    else:
        return "", ""
    rest = {name: field for name, field in event.items() if name not in own}
    return shown, json.dumps(rest, sort_keys=True)


def _selection(labelling: LabellingSettings) -> Selection:
    rest = 1.0 - labelling.explore
    selections: dict[str, Selection] = {
        "mixed": MixedSelection(
            2 * rest / 3, rest / 3, labelling.explore, labelling.pool, labelling.start, labelling.rare_first
        ),
        "active": ActiveSelection(labelling.pool, labelling.rare_first),
        "auto": AutoActiveSelection(),
        "all": ActiveSelection(None, labelling.rare_first),
        "random": RandomSelection(),
    }
    return selections[labelling.selection]


def _stopping(labelling: LabellingSettings, is_multiclass: bool) -> AnyOf | None:
    by_word: dict[str, list[StoppingRule]] = {
        "audited": [Audited()],
        "recall": [ToRecall(labelling.recall)],
        "margin": [MarginExhausted(labelling.pool)],
        "support": [SupportStable()],
        "either": [MarginExhausted(labelling.pool), SupportStable()],
        "never": [],
    }
    rules = by_word[labelling.stop]
    if rules and is_multiclass:
        rules = [AllOf(AnyOf(*rules), EachClass())]  # a common class must not hide a rare one
    if labelling.max_labels:
        rules.append(MaxLabels(labelling.max_labels))
    if labelling.max_fraction:
        rules.append(MaxFraction(labelling.max_fraction))
    return AnyOf(*rules) if rules else None
