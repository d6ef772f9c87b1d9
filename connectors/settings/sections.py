"""The sections of the configuration, except the model's: what each key means, its type, its default and its range."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..records.codec import FORMATS, Codec, Limits
from . import checks
from .checks import key
from .model import ModelSettings


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
    scores
        Topic of the scorers' predictions.
    questions
        Compacted topic of the events whose label is asked for; see [labelling].  Empty: no label is asked for.
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
    scores: str = key("scores", checks.topic)
    questions: str = key("", checks.optional_topic)
    estimates: str = key("", checks.optional_topic)
    format: str = key("json", checks.one_of(*FORMATS))
    schemas: Path = Path("schemas")

    def topics(self) -> list[str]:
        """The topics that are used."""
        inputs = (self.topic, self.labels)
        names = (*inputs, self.predictions, self.dlq, self.model, self.scores, self.questions, self.estimates)
        return [name for name in names if name]


@dataclass(frozen=True)
class FeatureSettings:
    """How features are scaled, and which features an event must have.

    Parameters
    ----------
    scale
        ``"standard"``: to mean 0 and standard deviation 1; ``"minmax"``: to the range 0..1; ``"none"``: not at all.
    warmup
        Number of first events on which the scale is fitted, at least 1; it does not change afterwards.
    names
        Names of the features that every event must have; an event with others, or without one of them, is refused.
        Empty: any features.
    """

    scale: str = key("standard", checks.one_of("standard", "minmax", "none"))
    warmup: int = key(300, checks.at_least(1))
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelSettings:
    """Names of the two labels, unless they are true and false, 1 and 0, or +1 and -1.

    Parameters
    ----------
    positive, negative
        Name of the positive, and of the negative label.  Give both or neither; they must differ.
    """

    positive: str | None = None
    negative: str | None = None

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
        more.  The scale is fitted on fewer than `features.warmup` events if those would need more memory.
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
        ``"active"``: the event closest to the boundary among `pool` random ones; ``"auto"``: the same, from as many
        events as it needs; ``"all"``: the closest one in the whole reservoir; ``"random"``: any event.
    pool
        Number of events that ``"active"`` chooses from, at least 1.
    explore
        Share of the questions, from 0 to 1, that are chosen at random anyway; they find what the model does not
        suspect.
    seeds
        Number of labelled examples of each class up to which questions are chosen at random.
    open
        Number of questions that may wait for an answer, at least 1.
    reservoir
        Number of unlabelled events to choose from, at least 1.
    expires_seconds
        Seconds, by the events' own times, after which an unanswered question is withdrawn.
    stop
        When to stop asking.  ``"margin"``: when no event is left near the boundary, and a random audit agrees;
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
    series
        Event field with a list of numbers that the page draws.
    """

    selection: str = key("active", checks.one_of("active", "auto", "all", "random"))
    pool: int = key(59, checks.at_least(1))
    explore: float = key(0.1, checks.fraction)
    seeds: int = key(1, checks.at_least(0))
    open: int = key(4, checks.at_least(1))
    reservoir: int = key(10_000, checks.at_least(1))
    expires_seconds: float = key(86400.0, checks.seconds)
    stop: str = key("margin", checks.one_of("margin", "support", "either", "never"))
    max_labels: int = key(0, checks.at_least(0))
    max_fraction: float = key(0.0, checks.fraction)
    lease_seconds: float = key(120.0, checks.seconds)
    host: str = key("127.0.0.1", checks.host)
    port: int = key(8765, checks.port)
    text: str = "text"
    image: str = "image"
    series: str = "series"


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
class GroupSettings:
    """How trainers share a topic on Kafka; scorers share it apart from them.

    Parameters
    ----------
    id
        Name of the trainers' consumer group; the scorers' group is ``ID-score``.
    instance
        Name of this process that outlives it, such as its host's name.  The process's partitions then wait for its
        restart.  Unset: they go to other processes.
    assign
        Partitions to take without joining the group, such as ``"0-3,7"``.  Unset: the group assigns them.
    """

    id: str = key("streamsvm", checks.topic)
    instance: str | None = key(None, checks.topic)
    assign: str | None = key(None, checks.partitions)


@dataclass(frozen=True)
class HttpSettings:
    """Where metrics (``/metrics``) and health (``/healthz``, ``/readyz``) are served.

    `connections`, `request_seconds`, `header_bytes` and `body_bytes` also hold for the servers of ``streamsvm label``.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0: nothing is served.
    names
        Names that clients may use for this server, beside ``localhost``, `host` and plain addresses.  Empty: a server
        on a loopback address answers to no other name, and a server on another address answers to any name.
    connections
        Number of connections at once, at least 1; the server answers further ones with the status 503.
    request_seconds
        Seconds for a client to send a whole request, and again to take the answer.  Then the connection is closed.
    header_bytes
        Bytes of a request line with its headers, at least 1024; the server answers larger ones with the status 414 or
        431.
    body_bytes
        Bytes that Label Studio may send in one request, at least 4096; the server answers more with the status 413.
        The labelling page takes 4096 bytes.
    """

    host: str = key("127.0.0.1", checks.host)
    port: int = key(0, checks.port)
    names: tuple[str, ...] = ()
    connections: int = key(100, checks.at_least(1))
    request_seconds: float = key(10.0, checks.seconds)
    header_bytes: int = key(32 << 10, checks.at_least(1024))
    body_bytes: int = key(16 << 20, checks.at_least(4096))


@dataclass(frozen=True)
class DaemonSettings:
    """The trainer's and the scorer's loop: models, checkpoints, transactions and the process itself.

    Parameters
    ----------
    per
        One model for each ``"partition"``, or one for each record ``"key"``.
    max_models
        Number of models of keys in memory, at least 1; the others wait on disk.
    max_keys
        Number of models of keys in a partition, in memory and on disk, at least 1.  Beyond it, the model that has not
        learned for longest is dropped, also from the topic log.model.  The drop is counted, and that key begins anew.
    batch
        Number of records that are predicted together, then learned together, at least 1; a batch also ends at 4 MB.  1:
        each record is learned before the next one is predicted.
    state_dir
        Folder of the checkpoints.  They hold events as they came, so only the folder's owner may enter it.
    start
        Where a partition without a checkpoint begins: at the ``"earliest"`` or the ``"latest"`` record.
    on_data_loss
        What to do if records were removed before they were read: ``"fail"``, or ``"skip"`` and count them.  A topic
        that was deleted and created again always ends the trainer.
    checkpoint_records, checkpoint_seconds
        Number of records, at least 1, or seconds after which the trainer writes a checkpoint, whichever comes first.
    publish_seconds
        Seconds between two snapshots on the topic log.model.
    exactly_once
        Whether to write outputs and offsets in Kafka transactions.  A reader of committed records then sees each output
        once, after the next checkpoint; so make ``checkpoint_seconds`` as short as outputs may be late.  A transaction
        may take ``kafka.transaction_timeout_ms``; default: twice ``checkpoint_seconds``, but 1 to 15 minutes.
    log_format
        ``"text"``, or ``"json"`` with one object a line.
    watchdog_seconds
        Seconds without progress after which the process ends itself; 0: never.
    shutdown_seconds
        Seconds after SIGTERM at which the process ends at the latest.
    keep
        Number of checkpoints to keep, at least 1; at least 2 with ``exactly_once``.
    window
        Number of labelled events in the rolling metrics, at least 1.
    max_bad
        Fraction of bad records among the last 1000, from 0 to 1, above which the trainer stops.
    follow
        Whether to wait for more records at the end of the log; otherwise the process ends there.
    """

    per: str = key("partition", checks.one_of("partition", "key"))
    max_models: int = key(1000, checks.at_least(1))
    max_keys: int = key(100_000, checks.at_least(1))
    batch: int = key(64, checks.at_least(1))
    state_dir: Path = Path("state")
    start: str = key("earliest", checks.one_of("earliest", "latest"))
    on_data_loss: str = key("fail", checks.one_of("fail", "skip"))
    checkpoint_records: int = key(20_000, checks.at_least(1))
    checkpoint_seconds: float = key(30.0, checks.seconds)
    keep: int = key(3, checks.at_least(1))
    window: int = key(1000, checks.at_least(1))
    max_bad: float = key(0.1, checks.fraction)
    follow: bool = True
    publish_seconds: float = key(30.0, checks.seconds)
    exactly_once: bool = False
    log_format: str = key("text", checks.one_of("text", "json"))
    watchdog_seconds: float = key(300.0, checks.seconds_or_0)
    shutdown_seconds: float = key(20.0, checks.seconds)


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
    http: HttpSettings = field(default_factory=HttpSettings)
    kafka: Mapping[str, Any] = field(default_factory=dict, repr=False)  # It may hold secrets. Empty: the embedded log.

    def codec(self) -> Codec:
        """The codec that reads events and writes predictions."""
        label = self.label
        return Codec(
            self.features.names,
            label.positive,
            label.negative,
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
            "label": asdict(self.label),
        }
        values = {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}
        del values["model.cache_mb"]  # It changes the memory, not the model.
        values |= {"log.topic": self.log.topic, "log.labels": self.log.labels, "daemon.per": self.daemon.per}
        return {**values, "features.names": list(self.features.names)}


SECTIONS: dict[str, Any] = {part.name: part.default_factory for part in fields(Settings) if part.name != "kafka"}
