"""The sections of the configuration, except the model's: what each key means, its type, its default and its range."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ..records.classes import ClassLabel, KnownClasses, Vocabulary, two_classes
from ..records.codec import FORMATS, MAX_FEATURE_NAME, MAX_TEXT, Codec
from ..records.people.shown import Shown
from ..records.raw import Reading, imported
from ..records.split import Split
from ..runtime.problems import Problems
from . import checks
from .challengers import FIRST, ChallengerSettings, ComparisonSettings, model_fingerprint
from .checks import key
from .estimates import DecideSettings, EstimateSettings
from .labelling import LabellingSettings
from .model import ModelSettings
from .processes import (
    DaemonSettings,
    GroupSettings,
    HttpSettings,
    MergerSettings,
    SchemaSettings,
    ScorerSettings,
    StateSettings,
)

if TYPE_CHECKING:
    from streamsvm.features import Records


class ConfigError(Problems):
    """A configuration, or options of a command, that cannot be used."""


def refuse(problems: Iterable[str]) -> None:
    """Raise `ConfigError` if there are any problems."""
    if found := list(problems):
        raise ConfigError(*found)


@dataclass(frozen=True)
class LogSettings:
    """The topics and, for the embedded log, its folder and the size of its files.

    The embedded log is used unless there is a [kafka] section.  All topics must differ.

    Parameters
    ----------
    dir
        Folder of the embedded log.
    segment_mb
        Megabytes after which the embedded log begins a new file.
    topic
        Topic of the events.
    labels
        Topic of labels that come apart from their events; they are joined by id.  Empty: labels come with the events.
    predictions
        Topic of the trainer's predictions.
    dlq
        Topic of dead letters: records that the trainer refused, with their bytes and the reason.
    model
        Compacted topic of the snapshots that scorers serve.  Empty: no snapshot is published.
    merged
        Compacted topic of the one model that ``streamsvm merger`` makes of these.
    scores
        Topic of the scorers' predictions.
    questions
        Compacted topic of the events whose label is asked for; see [labelling].  Empty: no label is asked for.
    state
        Topic of the trainers' checkpoints and journals; see [state].
    estimates
        Topic of the estimates of the model's error; see [estimates].  Empty: estimates are metrics only.
    alarms
        Topic of the alarms: errors that become frequent, and features that move.  Empty: alarms are log lines and
        metrics only.
    erasures
        Topic of the requests of ``streamsvm erase``: records that models must forget, and never learn again.  Empty:
        nothing can be erased.
    control
        Topic of the requests of ``streamsvm promote`` and ``rollback``.  The trainers answer on the topic of this name
        and ``-served``.  Empty: nothing can be promoted by a request.
    format
        Format of the events: ``"json"``, ``"float32"``, ``"avro"`` or ``"registry"``; see [schema].
    schemas
        Folder of the Avro schemas ``ID.avsc``, for the format ``"avro"``.
    """

    dir: Path = Path("log")
    segment_mb: float = key(16.0, checks.megabytes)
    topic: str = key("events", checks.topic)
    labels: str = key("", checks.optional_topic)
    predictions: str = key("predictions", checks.topic)
    dlq: str = key("dlq", checks.topic)
    model: str = key("", checks.optional_topic)
    merged: str = key("", checks.optional_topic)
    scores: str = key("scores", checks.topic)
    questions: str = key("", checks.optional_topic)
    state: str = key("", checks.optional_topic)
    estimates: str = key("", checks.optional_topic)
    alarms: str = key("", checks.optional_topic)
    erasures: str = key("", checks.optional_topic)
    control: str = key("", checks.optional_topic)
    format: str = key("json", checks.one_of(*FORMATS))
    schemas: Path = Path("schemas")

    @property
    def inputs(self) -> tuple[str, ...]:
        """The topics that a trainer learns from: that of the events, and that of the labels if there is one."""
        return (self.topic, self.labels) if self.labels else (self.topic,)

    @property
    def control_topics(self) -> tuple[str, ...]:
        """The topics of requests to serve, and of the trainers' answers; empty if there are none."""
        return (self.control, f"{self.control}-served") if self.control else ()

    def topics(self) -> list[str]:
        """The topics that are used."""
        is_topic = (checks.topic, checks.optional_topic)
        named = [getattr(self, item.name) for item in fields(self) if item.metadata.get("check") in is_topic]
        return [name for name in (*named, *self.control_topics[1:]) if name]


@dataclass(frozen=True)
class FeatureSettings:
    """What the features of an event are: numbers by name, or, with ``raw = true``, whatever a record has.

    Raw events need no preparation: `streamsvm.features.Records` finds out what each field is, and makes numbers of
    texts, categories, times and missing values.

    Parameters
    ----------
    names
        Names of the features that every event must have.  An event that lacks one of them, or has others, is refused.
        Empty: any features.
    raw
        Whether events are raw records, whose fields may be anything.
    id, label, time
        Dotted name of the field that is the event's id, its label or its time.  If one is given, the whole record is
        flat: all its other fields are features, and so is the time.  Without `id`, an event's id is
        ``TOPIC-PARTITION-OFFSET``.  Empty: there is no such field; if all are, a raw record is the field x of an event.
    kinds
        The kinds of some fields, such as ``{zip = "category", note = "ignore"}``: ``"number"``, ``"category"``,
        ``"time"``, ``"text"``, ``"list"``, ``"epoch_s"``, ``"epoch_ms"``, ``"epoch_us"`` or ``"ignore"``.  The first 50
        values decide about other fields.
    indicators
        Whether a field that is missing sets a feature of its own, beside the guess in its place.
    thousands
        The sign between thousands in numbers that are written as text, such as ``","``.  Empty: there is none.
    width
        Number of hashed columns of each text, at most 2^20.  More tell the words of long texts better apart; fewer make
        members smaller.
    embed
        The embedders of some texts, such as ``{body = "wordllama"}``, which needs ``streamsvm[embed]``, or
        ``{body = "package.module:NAME"}``, an object or a class of your own, from the configuration's folder or the
        Python path.  Its numbers join the features of the text.
    transform
        A function of your own, ``"package.module:function"``, from the configuration's folder or the Python path.  It
        takes an event as a dict, without its label, and returns the features as a dict.  It must return the same for
        the same event.  Empty: the features are as the event has them.
    """

    names: tuple[str, ...] = ()
    raw: bool = False
    id: str = ""
    label: str = ""
    time: str = ""
    kinds: dict[str, str] = field(default_factory=dict, metadata={"check": checks.kinds})
    indicators: bool = False
    thousands: str = key("", checks.thousands)
    width: int = key(4096, checks.width)
    embed: dict[str, str] = field(default_factory=dict, metadata={"check": checks.embedders})
    transform: str = key("", checks.function)

    @property
    def is_flat(self) -> bool:
        """Whether the whole of an event is its features, apart from its id and its label."""
        return bool(self.id or self.label or self.time)

    def reading(self) -> Reading:
        """How the codec reads the features; `UnusableTransform` if the function cannot be imported."""
        transform = imported(self.transform) if self.transform else None
        return Reading(self.raw, self.id, self.label, self.time, transform)

    def records(self) -> "Records | None":
        """What makes the features of raw events, before the first one; None if they are not raw.

        An ImportError, TypeError or ValueError says which embedder cannot be used.
        """
        if not self.raw:
            return None
        from streamsvm.features import Records  # loads the engine

        return Records(
            dict[Any, str](self.kinds) or None,
            indicators=self.indicators,
            thousands=self.thousands or None,
            width=self.width,
            embed=dict[Any, Any](self.embed) or None,
        )

    def fingerprint(self) -> dict[str, Any]:
        """What a checkpoint depends on; None for what is unset, which older versions lack."""
        given = self.given()
        return {**{name: given.get(name) for name in asdict(self)}, "names": list(self.names)}

    def given(self) -> dict[str, Any]:
        """The settings that differ from their defaults, by name."""
        unset = asdict(FeatureSettings())
        return {name: value for name, value in asdict(self).items() if value != unset[name]}


@dataclass(frozen=True)
class LabelSettings:
    """What labels are: true and false, 1 and 0, or +1 and -1, unless this section names two labels or more classes.

    Parameters
    ----------
    positive, negative
        Name of the positive, and of the negative label.  Give both or neither; they must differ.
    classes
        The classes, if there are more than two: strings and whole numbers.  A string that is a whole number is that
        number.  A label that is not among them is refused, unless `max_classes` leaves room for it.
    max_classes
        The largest number of classes, at least 3.  Classes that are not listed begin with their first label, and
        annotators may add classes.  0: only the listed classes.
    """

    positive: str | None = None
    negative: str | None = None
    classes: tuple[str | int, ...] = key((), checks.classes)
    max_classes: int = key(0, checks.max_classes)

    def shown_as(self, label: ClassLabel) -> str:
        """A class for people."""
        return self.shown[0 if label else 1] if isinstance(label, bool) else str(label)

    @property
    def meanings(self) -> dict[str, bool]:
        """What the names of two classes mean."""
        return {} if self.positive is None or self.negative is None else {self.positive: True, self.negative: False}

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The classes, if there are more than two."""
        return Vocabulary(self.classes, self.max_classes) if self.classes or self.max_classes else None

    def known(self) -> KnownClasses:
        """The classes that are known before the first record."""
        vocabulary = self.vocabulary
        return vocabulary.begun() if vocabulary else two_classes()

    def fingerprint(self) -> dict[str, Any]:
        """What a checkpoint depends on; which classes there may be can change."""
        several = True if self.vocabulary else None
        return {"positive": self.positive, "negative": self.negative, "several": several}

    @property
    def shown(self) -> tuple[str, str]:
        """Names for people: of the positive label, which is usually the rare one that is looked for, and the other."""
        return self.positive or "positive", self.negative or "negative"


@dataclass(frozen=True)
class JoinSettings:
    """How events are joined with labels that come apart from them.

    Parameters
    ----------
    ttl_seconds
        Seconds, by the events' own times, that an event waits for its label and for corrections, and a label for its
        event.
    pending_mb
        Megabytes of memory for waiting events; when it is full, the oldest event is dropped.
    labels_mb
        Megabytes of memory for waiting labels; when it is full, the oldest label is dropped.  It is separate from
        `pending_mb`, so labels with made-up ids never push out events.
    max_skew_seconds
        Seconds by which the `ts` of an event or a label may differ from its record's timestamp; a larger difference is
        cut to this, and the trainer warns of it.
    """

    ttl_seconds: float = key(7 * 86400.0, checks.seconds)
    pending_mb: float = key(64.0, checks.megabytes)
    labels_mb: float = key(64.0, checks.megabytes)
    max_skew_seconds: float = key(86400.0, checks.seconds)


@dataclass(frozen=True)
class LimitSettings:
    """Limits of what records may ask for; ordinary streams reach none of them.

    A record beyond a limit goes to the dead-letter topic with its reason, and is counted.

    Parameters
    ----------
    event_features
        Features of one event, at least 1 and at most `model_features`.
    model_features
        Features that a model knows, at least 1.  An event whose new features would exceed it is predicted but not
        learned.
    read_ahead_mb
        Megabytes of memory for records that a trainer has read and not yet consumed.  Each partition may hold one batch
        more.
    dead_letter_kb
        Kilobytes of the largest record that a dead letter holds whole.  For a larger record, the dead letter holds its
        beginning, its size and its SHA-256; ``streamsvm dlq replay`` then reads the record from its own topic, if it is
        still there.
    """

    event_features: int = key(100_000, checks.at_least(1))
    model_features: int = key(1_000_000, checks.at_least(1))
    read_ahead_mb: float = key(64.0, checks.megabytes)
    dead_letter_kb: float = key(512.0, checks.positive)

    @property
    def read_ahead_bytes(self) -> int:
        """`read_ahead_mb` in bytes."""
        return int(self.read_ahead_mb * 2**20)

    @property
    def dead_letter_bytes(self) -> int:
        """`dead_letter_kb` in bytes."""
        return int(self.dead_letter_kb * 1024)


@dataclass(frozen=True)
class Settings:
    """A whole configuration; `loading.load` reads one."""

    log: LogSettings = field(default_factory=LogSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    features: FeatureSettings = field(default_factory=FeatureSettings)
    label: LabelSettings = field(default_factory=LabelSettings)
    join: JoinSettings = field(default_factory=JoinSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    schema: SchemaSettings = field(default_factory=SchemaSettings)
    labelling: LabellingSettings = field(default_factory=LabellingSettings)
    decide: DecideSettings = field(default_factory=DecideSettings)
    estimates: EstimateSettings = field(default_factory=EstimateSettings)
    comparison: ComparisonSettings = field(default_factory=ComparisonSettings)
    daemon: DaemonSettings = field(default_factory=DaemonSettings)
    group: GroupSettings = field(default_factory=GroupSettings)
    state: StateSettings = field(default_factory=StateSettings)
    scorer: ScorerSettings = field(default_factory=ScorerSettings)
    merger: MergerSettings = field(default_factory=MergerSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    kafka: Mapping[str, Any] = field(default_factory=dict, repr=False)  # It may hold secrets. Empty: the embedded log.
    challenger: tuple[ChallengerSettings, ...] = ()

    def shown(self) -> Shown:
        """Which parts of an event people see."""
        return Shown(self.features.raw, self.features.is_flat, self.log.format == "json")

    def codec(self, wait: Callable[[str], None] | None = None) -> Codec:
        """The codec that reads events and writes predictions.

        `wait` is called with the reason while the schema registry does not answer.
        """
        label = self.label
        return Codec(
            self.features.names,
            label.positive,
            label.negative,
            classes=label.vocabulary,
            format=self.log.format,
            schemas=self.log.schemas,
            registry=self.schema.place,
            wait=wait,
            max_features=self.limits.event_features,
            reading=self.features.reading(),
        )

    def topic_of(self, challenger: ChallengerSettings) -> str:
        """The topic of a challenger's predictions."""
        return challenger.topic or f"{self.log.predictions}-{challenger.name}"

    def topic_of_model(self, name: str) -> str:
        """The topic of the predictions of a model, given by its name, while it is in the shadow."""
        return self.topic_of(self.models()[name])

    def split(self) -> Split:
        """Which challenger answers an event."""
        shares = {own.name: own.share for own in self.challenger}
        return Split(shares, by_key=self.comparison.split == "key")

    def models(self) -> dict[str, ChallengerSettings]:
        """The challengers by name, and the model of [model], which becomes one if another is promoted."""
        first = [ChallengerSettings(FIRST, model=self.model)] if self.challenger else []
        return {own.name: own for own in (*first, *self.challenger)}

    def topics_of_challengers(self) -> list[str]:
        """The topics of their predictions."""
        return [*map(self.topic_of, self.models().values())]

    def topics(self) -> list[str]:
        """The topics that are used."""
        return [*self.log.topics(), *self.topics_of_challengers()]

    def serving(self, name: str) -> Self:
        """These settings with the model of this name in the place of [model]."""
        own = self.models().get(name)
        return self if own is None else replace(self, model=own.model)

    def removes(self) -> bool:
        """Whether models may have to forget or leave out examples."""
        is_bounded = self.model.budget is not None or self.model.window is not None
        is_estimated = self.estimates.loo or self.estimates.folds or self.decide.error
        return bool(is_bounded or self.log.labels or self.log.erasures or is_estimated)

    @property
    def audit(self) -> float:
        """Share of the decided events whose labels come, at random; 1: those of all."""
        asks = self.log.questions and self.decide.error and self.labelling.selection == "undecided"
        return self.labelling.audit if asks else 1.0

    @property
    def transaction_timeout_ms(self) -> int:
        """Milliseconds that a transaction may take: [kafka]'s, or twice daemon.checkpoint_seconds.

        The default is a minute at least, and at most the quarter of an hour that brokers allow by default.
        """
        derived = min(max(60_000, int(2000 * self.daemon.checkpoint_seconds)), 900_000)
        return int(self.kafka.get("transaction_timeout_ms", derived))

    def fingerprint(self) -> dict[str, Any]:
        """The settings that a checkpoint depends on, by dotted name: with another value, a model cannot go on."""
        sections = {"features": self.features.fingerprint(), "label": self.label.fingerprint()}
        values = model_fingerprint(self.model)
        values |= {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}
        values |= {"log.topic": self.log.topic, "log.labels": self.log.labels, "daemon.per": self.daemon.per}
        values["decide.error"] = self.decide.error or None  # older versions lack it
        values["labelling.audit"] = None if self.audit == 1.0 else self.audit  # of decisions
        return values


REMOVED = {  # keys of 0.1.0, and what to do about each
    "features.scale": 'the model scales features itself now; instead, set model.scaling to "standard" or "none"',
    "features.warmup": "the model scales features itself now, from the first event on; remove the key",
    "http.request_seconds": "a client has 10 seconds for a request; remove the key",
    "http.header_bytes": "a request may have 32 KiB of headers; remove the key",
    "http.body_bytes": "Label Studio may send 16 MiB in a request; remove the key",
    "limits.name_length": f"a feature's name may have {MAX_FEATURE_NAME} characters; remove the key",
    "limits.text_length": f"ids, times, sources and keys may have {MAX_TEXT} characters; remove the key",
}

_OTHERS = ("kafka", "challenger")  # sections that are read apart: another program's keys, and a list of sections
SECTIONS: dict[str, Any] = {part.name: part.default_factory for part in fields(Settings) if part.name not in _OTHERS}
