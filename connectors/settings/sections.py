"""The sections of the configuration, except the model's: what each key means, its type, its default and its range."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..records.classes import ClassLabel, KnownClasses, Vocabulary, two_classes
from ..records.codec import FORMATS, Codec, Limits
from . import checks
from .checks import key
from .model import ModelSettings
from .processes import DaemonSettings, GroupSettings, HttpSettings, MergerSettings, ScorerSettings, StateSettings


class ConfigError(ValueError):
    """A configuration that cannot be used; `problems` has one line for each problem."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


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
    format
        Format of the events: ``"json"``, ``"float32"`` or ``"avro"``.
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
    format: str = key("json", checks.one_of(*FORMATS))
    schemas: Path = Path("schemas")

    def topics(self) -> list[str]:
        """The topics that are used."""
        models, others = (self.model, self.merged, self.scores), (self.questions, self.state, self.estimates)
        return [name for name in (self.topic, self.labels, self.predictions, self.dlq, *models, *others) if name]


@dataclass(frozen=True)
class FeatureSettings:
    """Which features an event must have.

    Parameters
    ----------
    names
        Names of the features that every event must have; an event with others, or without one of them, is refused.
        Empty: any features.
    """

    names: tuple[str, ...] = ()


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
        The largest number of classes, at least 3: other classes than the listed ones begin with their first label, and
        an annotator may add one.  0: only the listed ones.
    """

    positive: str | None = None
    negative: str | None = None
    classes: tuple[str | int, ...] = key((), checks.classes)
    max_classes: int = key(0, checks.max_classes)

    def shown_as(self, label: ClassLabel) -> str:
        """A class for people."""
        return self.shown[0 if label else 1] if isinstance(label, bool) else str(label)

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
        Seconds by which an event's own time may differ from its record's time; a larger difference is cut to this.
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
    name_length
        Characters of a feature's name, at least 1.
    text_length
        Characters of an id, a time or a label's source, and bytes of a record's key, at least 64.
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
    name_length: int = key(256, checks.at_least(1))
    text_length: int = key(2048, checks.at_least(64))
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
class LabellingSettings:
    """Which events the trainer asks labels for, and how the page shows them; see `streamsvm.active`.

    Numbers of questions and labels count for each partition separately, because each has its own model.

    Parameters
    ----------
    selection
        ``"mixed"``: by turns the event closest to the boundary in the whole reservoir, one unlike the labelled ones,
        and one far from them.  ``"active"``: the event closest to the boundary among `pool` random ones; ``"auto"``:
        the same, from as many events as it needs; ``"all"``: the closest one in the whole reservoir; ``"random"``: any
        event.
    start
        How ``"mixed"`` begins, until both classes are labelled.  ``"distance"``: with events far from the labelled
        ones; ``"random"``: with any events.
    pool
        Number of random events that ``"active"``, and the questions about unlike events of ``"mixed"``, choose from; at
        least 1.
    explore
        Share of the questions, from 0 to 1, that look for what the model does not suspect: about events far from the
        labelled ones with ``"mixed"``, otherwise about any events.
    audit
        Share of the questions of ``"mixed"``, from 0 to 1, that are about any events from the beginning on.  Their
        answers show how good the model is, and bound how many positives it misses.
    seeds
        Number of labelled examples of each class up to which questions do not look at the model.
    open
        Number of questions that may wait for their first answer; 0: one for each annotator.  More of them cost
        accuracy, because the model chooses each without the answers to the others.
    answers_per_question
        Number of answers, each by another annotator, that a question gets; the majority decides.  After a tie one more
        annotator is asked.
    recheck_every
        Number of answers after which the trainer looks for answers that look wrong, and asks these again; 0: never.
        It looks at the newest 1000 answers.
    recheck
        Number of answers that it asks again at a time, at most.
    reservoir
        Number of unlabelled events to choose from, at least 1.
    expires_seconds
        Seconds, by the events' own times, after which an unanswered question is withdrawn.
    stop
        When to stop asking.  ``"audited"``: when no event is left near the boundary, and the last 120 answers have
        agreed with the model.  ``"margin"``: when 59 questions found no event near the boundary, and 59 random ones
        agree;
        ``"support"``: when the number of support vectors has stopped growing; ``"either"`` of them; or ``"never"``.
    max_labels
        Label quota: number of answers to ask for; 0: no limit.
    max_fraction
        Label quota as a fraction of the unlabelled events, from 0 to 1; 0: no limit.
    lease_seconds
        Seconds that a question stays reserved for the annotator who is viewing it.
    host
        Address that the labelling page listens on.
    port
        Port of the labelling page; 0: any free one.
    text
        Event field with a text that the page shows beside the features.
    image
        Event field with the address of an image that the page shows.
    image_hosts
        Hosts that the page may load images from, such as ``"images.example.org"``, ``"*.example.org"`` or
        ``"http://localhost:9000"``; ``"*"``: any host.  Empty: only images inside events, as ``data:`` addresses.
    series
        Event field with a list of numbers that the page draws.
    instructions
        What the annotators should know, in Markdown; the page shows it above the first question.
    """

    selection: str = key("mixed", checks.one_of("mixed", "active", "auto", "all", "random"))
    start: str = key("distance", checks.one_of("distance", "random"))
    pool: int = key(59, checks.at_least(1))
    explore: float = key(0.1, checks.fraction)
    audit: float = key(0.05, checks.fraction)
    seeds: int = key(1, checks.at_least(0))
    open: int = key(0, checks.at_least(0))
    answers_per_question: int = key(1, checks.at_least(1))
    recheck_every: int = key(0, checks.at_least(0))
    recheck: int = key(5, checks.at_least(1))
    reservoir: int = key(10_000, checks.at_least(1))
    expires_seconds: float = key(86400.0, checks.seconds)
    stop: str = key("audited", checks.one_of("audited", "margin", "support", "either", "never"))
    max_labels: int = key(0, checks.at_least(0))
    max_fraction: float = key(0.0, checks.fraction)
    lease_seconds: float = key(120.0, checks.seconds)
    host: str = key("127.0.0.1", checks.host)
    port: int = key(8765, checks.port)
    text: str = "text"
    image: str = "image"
    image_hosts: tuple[str, ...] = key((), checks.image_hosts)
    series: str = "series"
    instructions: str = ""


@dataclass(frozen=True)
class EstimateSettings:
    """Estimates of the model's error on examples that it leaves out; see `streamsvm.validation.StreamingLOO`.

    Parameters
    ----------
    loo
        Whether to make leave-one-out estimates.
    folds
        Number of folds of the k-fold estimates, at least 2; 0: none are made.
    every
        Number of learned events between two estimates, at least 1; more if an estimate costs more than learning them.
    memory
        Number of learned events that an estimate remembers and predicts again, at least 1.
    keep
        Which events it remembers: the most ``"recent"`` ones, or a uniform ``"sample"`` of all.
    share
        Cost of each kind of estimate as a share of the cost of learning, at least 0.  A small estimate may cost more.
    """

    loo: bool = False
    folds: int = key(0, checks.zero_or_at_least(2))
    every: int = key(1000, checks.at_least(1))
    memory: int = key(500, checks.at_least(1))
    keep: str = key("recent", checks.one_of("recent", "sample"))
    share: float = key(0.1, checks.not_negative)


@dataclass(frozen=True)
class Settings:
    """A whole configuration; `loading.load` reads one."""

    log: LogSettings = field(default_factory=LogSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    features: FeatureSettings = field(default_factory=FeatureSettings)
    label: LabelSettings = field(default_factory=LabelSettings)
    join: JoinSettings = field(default_factory=JoinSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    labelling: LabellingSettings = field(default_factory=LabellingSettings)
    estimates: EstimateSettings = field(default_factory=EstimateSettings)
    daemon: DaemonSettings = field(default_factory=DaemonSettings)
    group: GroupSettings = field(default_factory=GroupSettings)
    state: StateSettings = field(default_factory=StateSettings)
    scorer: ScorerSettings = field(default_factory=ScorerSettings)
    merger: MergerSettings = field(default_factory=MergerSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    kafka: Mapping[str, Any] = field(default_factory=dict, repr=False)  # It may hold secrets. Empty: the embedded log.

    def codec(self) -> Codec:
        """The codec that reads events and writes predictions."""
        label = self.label
        return Codec(
            self.features.names,
            label.positive,
            label.negative,
            classes=label.vocabulary,
            format=self.log.format,
            schemas=self.log.schemas,
            limits=Limits(self.limits.event_features, self.limits.name_length, self.limits.text_length),
        )

    def removes(self) -> bool:
        """Whether models may have to forget or leave out examples."""
        is_bounded = self.model.budget is not None or self.model.window is not None
        return bool(is_bounded or self.log.labels or self.estimates.loo or self.estimates.folds)

    @property
    def transaction_timeout_ms(self) -> int:
        """Milliseconds that a transaction may take: [kafka]'s, or twice daemon.checkpoint_seconds.

        The default is a minute at least, and at most the quarter of an hour that brokers allow by default.
        """
        derived = min(max(60_000, int(2000 * self.daemon.checkpoint_seconds)), 900_000)
        return int(self.kafka.get("transaction_timeout_ms", derived))

    def fingerprint(self) -> dict[str, Any]:
        """The settings that a checkpoint depends on, by dotted name: with another value, a model cannot go on."""
        sections = {
            "model": {"algorithm": self.model.algorithm, **self.model.parameters(), **self.model.bounds()},
            "features": asdict(self.features),
            "label": self.label.fingerprint(),
        }
        values = {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}
        del values["model.cache_mb"]  # It changes the memory, not the model.
        values |= {"log.topic": self.log.topic, "log.labels": self.log.labels, "daemon.per": self.daemon.per}
        return {**values, "features.names": list(self.features.names)}


REMOVED = {  # keys of 0.1.0, and what to do about each
    "features.scale": 'the model scales features itself now; instead, set model.scaling to "standard" or "none"',
    "features.warmup": "the model scales features itself now, from the first event on; remove the key",
}

SECTIONS: dict[str, Any] = {part.name: part.default_factory for part in fields(Settings) if part.name != "kafka"}
