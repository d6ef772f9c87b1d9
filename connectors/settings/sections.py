"""The configuration: one TOML file, overridden by the environment, overridden by flags.

``[section] key`` of the file is ``STREAMSVM_SECTION_KEY`` in the environment and ``section.key=value`` as a flag.
Relative folders are relative to the file.  Everything that is wrong is reported at once.
"""

import datetime
import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from streamsvm.estimators.classifier import OnlineSVM
from streamsvm.estimators.learners import ALGORITHMS

from ..logs.transport import TOPIC_NAME
from ..records.codec import FORMATS, Codec, Limits
from ..records.formats.avro import AvroMissing, SchemaError
from .layers import Check, Given, collect


class ConfigError(ValueError):
    """A configuration that cannot be used; `problems` has one line for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)


_MAX_COUNT = 2**31 - 1
_MAX_SECONDS = 100 * 365 * 86400.0  # times in milliseconds stay far inside 64 bits
_MAX_MB = 1e9


def _positive(value: float) -> str | None:
    return None if value > 0 and math.isfinite(value) else "a positive number"


def _not_negative(value: float) -> str | None:
    return None if value >= 0 and math.isfinite(value) else "a number, at least 0"


def _finite(value: float) -> str | None:
    return None if math.isfinite(value) else "a finite number"


def _at_most_1(value: float) -> str | None:
    return None if value <= 1 and math.isfinite(value) else "a finite number, at most 1"


def _fraction(value: float) -> str | None:
    return None if 0 <= value <= 1 else "a fraction between 0 and 1"


def _adaptive_or_count(value: str | int) -> str | None:
    return (
        None
        if value == "adaptive" or (isinstance(value, int) and 0 <= value <= _MAX_COUNT)
        else '"adaptive" or a count'
    )


def _topic(value: str) -> str | None:
    return None if TOPIC_NAME.fullmatch(value) else "1 to 200 letters, digits, '.', '_' or '-'"


def _optional_topic(value: str) -> str | None:
    return None if value == "" else _topic(value)


def _partitions(value: str) -> str | None:
    try:
        return None if parse_partitions(value) else 'numbers and ranges such as "0-3,7"'
    except ValueError:
        return 'numbers and ranges such as "0-3,7"'


def parse_partitions(text: str) -> list[int]:
    """``"0-3,7"`` as numbers; raises ValueError if it is anything else."""
    numbers: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part, re.ASCII)
        if found is None:
            raise ValueError(f"{part!r} must be a number of up to 6 digits, or a range of them")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise ValueError(f"{part!r} must rise")
        numbers |= set(range(first, last + 1))
    return sorted(numbers)


def _at_least(minimum: float) -> Check:
    """A count, or a size, which counters of 32 bits can hold."""
    return lambda value: None if minimum <= value <= _MAX_COUNT else f"at least {minimum}, and at most {_MAX_COUNT}"


def _seconds(value: float) -> str | None:
    return None if 0.001 <= value <= _MAX_SECONDS else f"a number of seconds from 0.001 to {_MAX_SECONDS:g}"


def _seconds_or_0(value: float) -> str | None:
    return None if 0 <= value <= _MAX_SECONDS else f"a number of seconds from 0 to {_MAX_SECONDS:g}"


def _megabytes(value: float) -> str | None:
    return None if 1e-6 <= value <= _MAX_MB else f"a number of megabytes from 0.000001 to {_MAX_MB:g}"


def _host(value: str) -> str | None:
    """An empty address would be all of this machine's."""
    is_right = re.fullmatch(r"[\w.:%-]{1,255}", value)
    return None if is_right else "a name or an address, such as '127.0.0.1'; '0.0.0.0' is all of this machine's"


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_WINDOW = 'a count of examples, at least 1, or a time such as "90s", "30m", "12h", "7d" or "2w"'


def parse_window(value: int | str) -> int | datetime.timedelta:
    """How far back a model remembers: so many examples, or so much of their time; raises ValueError otherwise."""
    if isinstance(value, int) and 1 <= value <= _MAX_COUNT:
        return value
    found = re.fullmatch(r"([1-9]\d{0,5})([smhdw])", str(value))
    if found is None:
        raise ValueError(f"{value!r} is not {_WINDOW}")
    return datetime.timedelta(**{_UNITS[found[2]]: int(found[1])})


def _window(value: int | str) -> str | None:
    try:
        parse_window(value)
    except ValueError:
        return _WINDOW
    return None


def _port(value: int) -> str | None:
    return None if 0 <= value <= 65535 else "a port: a number from 0 to 65535"


def _one_of(*choices: str) -> Check:
    return lambda value: None if value in choices else f"one of {', '.join(map(repr, choices))}"


def _key(default: Any, check: Check) -> Any:
    return field(default=default, metadata={"check": check})


@dataclass(frozen=True)
class LogSettings:
    """The topics, and for the embedded log (the one that is used without [kafka]) its folder and segment size.

    Parameters
    ----------
    dir
        Folder of the embedded log.
    segment_mb
        Size, in megabytes, at which the embedded log begins a new file.
    topic
        Events.
    labels
        Labels that come on their own, joined with the events by id; empty: labels come with the events.
    predictions
        What the trainer made of events.
    dlq
        The records that the trainer refused, with their bytes and the reason.
    model
        Compacted topic of the snapshots that scorers serve; empty: none are published.
    scores
        What scorers made of events.
    questions
        Compacted topic of the events whose label is asked for; see [labelling]. Empty: nobody is asked.
    estimates
        Estimates of the model's error, see [estimates]; empty: they are metrics only.
    format
        Of events: ``"json"``, ``"float32"`` or ``"avro"``.
    schemas
        Folder of Avro schemas ``ID.avsc``, if the format is Avro.
    """

    dir: Path = Path("log")
    segment_mb: float = _key(16.0, _megabytes)
    topic: str = _key("events", _topic)
    labels: str = _key("", _optional_topic)
    predictions: str = _key("predictions", _topic)
    dlq: str = _key("dlq", _topic)
    model: str = _key("", _optional_topic)
    scores: str = _key("scores", _topic)
    questions: str = _key("", _optional_topic)
    estimates: str = _key("", _optional_topic)
    format: str = _key("json", _one_of(*FORMATS))
    schemas: Path = Path("schemas")

    def topics(self) -> list[str]:
        """Those that are used."""
        inputs = (self.topic, self.labels)
        names = (*inputs, self.predictions, self.dlq, self.model, self.scores, self.questions, self.estimates)
        return [name for name in names if name]


@dataclass(frozen=True)
class ModelSettings:
    """The algorithm and its parameters, with the names and defaults of the class that implements it.

    Those that not every algorithm has are None unless they are given.

    Parameters
    ----------
    algorithm
        ``"lasvm"``; or, without a bias, ``"lasvm-g"``, ``"lasvm-nc"`` and ``"lasvm-i"`` (for noisy labels), ``"full"``.
    window
        Forget what is older: by a count of examples, or by a time such as ``"90s"``, ``"30m"``, ``"12h"``, ``"7d"`` or
        ``"2w"``, which is the events'.
    """

    algorithm: str = _key("lasvm", _one_of(*ALGORITHMS))
    C: float = _key(1.0, _positive)
    kernel: str = _key("rbf", _one_of("rbf", "linear", "poly", "sigmoid"))
    gamma: float = _key(1.0, _positive)
    degree: int = _key(3, _at_least(1))
    coef0: float = _key(0.0, _finite)
    pos_weight: float = _key(1.0, _positive)
    tol: float = _key(1e-3, _positive)
    budget: int | None = _key(None, _at_least(3))
    on_budget: str | None = _key(None, _one_of("remove", "project", "merge"))
    window: int | str | None = _key(None, _window)
    cache_mb: float = _key(256.0, _megabytes)
    reprocess: str | int | None = _key(None, _adaptive_or_count)
    delta_max: float | None = _key(None, _positive)
    clean_every: int | None = _key(None, _at_least(1))
    max_non_sv: int | None = _key(None, _at_least(0))
    steps: str | None = _key(None, _one_of("pair", "single"))
    ramp_s: float | None = _key(None, _at_most_1)
    ramp_warmup: int | None = _key(None, _at_least(0))

    @property
    def implementation(self) -> type[OnlineSVM]:
        """The class of the algorithm."""
        return ALGORITHMS[self.algorithm]

    def parameters(self) -> dict[str, Any]:
        """What the class is made with."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if self.window is not None:
            given["window"] = parse_window(self.window)
        known = inspect.signature(self.implementation).parameters
        return {name: given.get(name, known[name].default) for name in known}

    def bounds(self) -> dict[str, Any]:
        """What bounds the model, as it is written; None for what plays no part."""
        how = None if self.budget is None else self.on_budget or "remove"
        return {"budget": self.budget, "on_budget": how, "window": self.window}

    def superfluous(self) -> list[str]:
        """Names of settings that are given although the algorithm has no such parameter."""
        known = inspect.signature(self.implementation).parameters
        return [name for name, value in asdict(self).items() if value is not None and name not in {"algorithm", *known}]


@dataclass(frozen=True)
class FeatureSettings:
    """How features are scaled, and which ones there must be.

    Parameters
    ----------
    scale
        ``"standard"``: to mean 0 and deviation 1; ``"minmax"``: to 0..1; ``"none"``.
    warmup
        On how many first events the scale is fitted; then it is frozen.
    names
        What every event must have, no more and no less; empty: whatever comes.
    """

    scale: str = _key("standard", _one_of("standard", "minmax", "none"))
    warmup: int = _key(300, _at_least(1))
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelSettings:
    """Names of the two labels, if they are not true/false, 0/1 or -1/+1.

    Parameters
    ----------
    positive, negative
        Either both or none.
    """

    positive: str | None = None
    negative: str | None = None


@dataclass(frozen=True)
class JoinSettings:
    """How events and labels that come on their own are brought together.

    Parameters
    ----------
    ttl_seconds
        How long an event waits for its label and for corrections, and a label for its event, in the time that the
        events tell.
    pending_mb
        Memory, in megabytes, for events that wait; the oldest is dropped when it is full.
    labels_mb
        Memory, in megabytes, for labels that wait for their event; the oldest is dropped when it is full.  It is
        separate, so that labels with made-up ids never cost an event its place.
    max_skew_seconds
        How far an event's own time may be from that of its record before it is not believed.
    """

    ttl_seconds: float = _key(7 * 86400.0, _seconds)
    pending_mb: float = _key(64.0, _megabytes)
    labels_mb: float = _key(64.0, _megabytes)
    max_skew_seconds: float = _key(86400.0, _seconds)


@dataclass(frozen=True)
class LimitSettings:
    """The most that records may ask for; none of it is reached by ordinary streams.

    A record beyond a limit goes to the dead-letter topic with its reason, and is counted.

    Parameters
    ----------
    event_features
        Features of an event.
    model_features
        Features that a model knows.  An event whose new features would be more is predicted and not learned.
    name_length
        Characters of a feature's name.
    text_length
        Characters of an id, a time or a source of labels, and bytes of a record's key.
    read_ahead_mb
        Memory, in megabytes, for records that a trainer has read and not yet consumed.  Each of its partitions may
        have one batch beyond that.  The scale is fitted on fewer than `features.warmup` events if these take more.
    dead_letter_kb
        Kilobytes of the largest record that is put aside whole.  Of a larger one the dead letter has the beginning,
        the size and a SHA-256; ``streamsvm dlq replay`` then takes the record from its topic, if it is still there.
    """

    event_features: int = _key(100_000, _at_least(1))
    model_features: int = _key(1_000_000, _at_least(1))
    name_length: int = _key(256, _at_least(1))
    text_length: int = _key(2048, _at_least(64))
    read_ahead_mb: float = _key(64.0, _megabytes)
    dead_letter_kb: float = _key(512.0, _positive)

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
    """Which events the trainer has labelled, and how they are shown to people; see `streamsvm.active`.

    Numbers of questions and labels count for each partition by itself, which has its own model.

    Parameters
    ----------
    selection
        ``"active"``: of a few random events the one closest to the boundary; ``"auto"``: of as many as it takes;
        ``"all"``: of everything in the reservoir; ``"random"``.
    pool
        How many are "a few".
    explore
        Share of the questions that are chosen at random all the same, which find what the model does not suspect.
    seeds
        Until so many examples of each class have a label, questions are chosen at random.
    open
        How many questions may wait for an answer.
    reservoir
        How many unlabelled events are kept to choose from.
    expires_seconds
        A question without an answer is withdrawn after so much of the events' time.
    stop
        When to stop asking: ``"margin"`` (nothing is left near the boundary, and a random audit agrees), ``"support"``
        (the support vectors have stopped growing), ``"either"``, or ``"never"``.
    max_labels
        The most answers that are asked for; 0: no limit.
    max_fraction
        Likewise, as a fraction of the unlabelled events; 0: no limit.
    lease_seconds
        So long a question belongs to whom it is shown to.
    host
        The page's address.
    port
        0: any that is free.
    text
        Field of an event that the page shows beside the features: a text,
    image
        the address of an image,
    series
        a list of numbers.
    """

    selection: str = _key("active", _one_of("active", "auto", "all", "random"))
    pool: int = _key(59, _at_least(1))
    explore: float = _key(0.1, _fraction)
    seeds: int = _key(1, _at_least(0))
    open: int = _key(4, _at_least(1))
    reservoir: int = _key(10_000, _at_least(1))
    expires_seconds: float = _key(86400.0, _seconds)
    stop: str = _key("margin", _one_of("margin", "support", "either", "never"))
    max_labels: int = _key(0, _at_least(0))
    max_fraction: float = _key(0.0, _fraction)
    lease_seconds: float = _key(120.0, _seconds)
    host: str = _key("127.0.0.1", _host)
    port: int = _key(8765, _port)
    text: str = "text"
    image: str = "image"
    series: str = "series"


@dataclass(frozen=True)
class EstimateSettings:
    """How well the model would do without what it was taught; see `streamsvm.validation.StreamingLOO`.

    Parameters
    ----------
    loo
        Whether there are leave-one-out estimates.
    folds
        How many folds those by folds have, at least 2; 0: there are none.
    every
        Learned events between two estimates, at least; they are made when there is time for them.
    memory
        How many learned events are remembered, and predicted again.
    keep
        ``"recent"`` ones, or a uniform ``"sample"`` of all.
    share
        The share of the time for learning that estimates may take, each kind.
    """

    loo: bool = False
    folds: int = _key(0, lambda value: None if value == 0 or 2 <= value <= _MAX_COUNT else "0 or at least 2")
    every: int = _key(1000, _at_least(1))
    memory: int = _key(500, _at_least(1))
    keep: str = _key("recent", _one_of("recent", "sample"))
    share: float = _key(0.1, _not_negative)


@dataclass(frozen=True)
class GroupSettings:
    """How trainers (and, apart from them, scorers) share a topic on Kafka.

    Parameters
    ----------
    id
        Name of the trainers' consumer group; that of the scorers is ``ID-score``.
    instance
        A name of this process that outlives it, such as its host's: its partitions then wait for its restart.
    assign
        Take these partitions, such as ``"0-3"``, without any group.
    """

    id: str = _key("streamsvm", _topic)
    instance: str | None = _key(None, _topic)
    assign: str | None = _key(None, _partitions)


@dataclass(frozen=True)
class HttpSettings:
    """Where metrics (``/metrics``) and health (``/healthz``, ``/readyz``) are served.

    `connections`, `request_seconds`, `header_bytes` and `body_bytes` hold for the servers of ``streamsvm label``, too.

    Parameters
    ----------
    host
        The address.
    port
        0: nowhere.
    names
        Names that clients may use for this server, beside ``localhost``, its `host` and plain addresses.  If this is
        empty, a server on a loopback address answers to no other name, and a server on another address to any name.
    connections
        Connections at once; the server answers the next ones with the status 503.
    request_seconds
        Time for a client to send a whole request, and again to take the answer; then the connection is closed.
    header_bytes
        Size of a request line with its headers; the server answers larger ones with the status 414 or 431.
    body_bytes
        Size of what Label Studio sends; the server answers more with the status 413.  The labelling page takes 4096.
    """

    host: str = _key("127.0.0.1", _host)
    port: int = _key(0, _port)
    names: tuple[str, ...] = ()
    connections: int = _key(100, _at_least(1))
    request_seconds: float = _key(10.0, _seconds)
    header_bytes: int = _key(32 << 10, _at_least(1024))
    body_bytes: int = _key(16 << 20, _at_least(4096))


@dataclass(frozen=True)
class DaemonSettings:
    """The loop.

    Parameters
    ----------
    per
        One model for each ``"partition"``, or one for each record ``"key"``.
    max_models
        How many models of keys stay in memory; the others wait on disk.
    max_keys
        How many models of keys a partition has, in memory and on disk.  One more, and the model that has not learned
        for longest is dropped, from the topic log.model, too; it is counted, and its key begins anew.
    batch
        The most records that are predicted, then learned, together; 1 learns each record at once.  Fewer, once they
        have 4 MB.
    state_dir
        Folder of the checkpoints.  They hold events as they came, so it is made for its owner's eyes only.
    start
        Where a partition without a checkpoint begins: at the ``"earliest"`` or ``"latest"`` record.
    on_data_loss
        What to do when records were removed before they were read: ``"fail"``, or ``"skip"`` and count them. A topic
        that was deleted and made again always ends the trainer.
    checkpoint_records, checkpoint_seconds
        A checkpoint is written after so many records, or so much time, whichever is first.
    publish_seconds
        Time between two snapshots on the topic log.model.
    exactly_once
        Outputs and offsets in Kafka transactions: a reader of committed records sees each output once, after the next
        checkpoint, so make ``checkpoint_seconds`` as short as the outputs may be late. Unless
        ``kafka.transaction_timeout_ms`` is given, a transaction may take twice ``checkpoint_seconds``, and 60 seconds
        at least.
    log_format
        ``"text"``, or ``"json"`` with one object per line.
    watchdog_seconds
        End the process if nothing moves for so long; 0: never.
    shutdown_seconds
        End the process this long after SIGTERM at the latest.
    keep
        Number of checkpoints kept.
    window
        Number of labelled events in the rolling metrics.
    max_bad
        Stop if more than this fraction of the last 1000 records is bad.
    follow
        Wait for more records at the end of the log; otherwise stop there.
    """

    per: str = _key("partition", _one_of("partition", "key"))
    max_models: int = _key(1000, _at_least(1))
    max_keys: int = _key(100_000, _at_least(1))
    batch: int = _key(64, _at_least(1))
    state_dir: Path = Path("state")
    start: str = _key("earliest", _one_of("earliest", "latest"))
    on_data_loss: str = _key("fail", _one_of("fail", "skip"))
    checkpoint_records: int = _key(20_000, _at_least(1))
    checkpoint_seconds: float = _key(30.0, _seconds)
    keep: int = _key(3, _at_least(1))
    window: int = _key(1000, _at_least(1))
    max_bad: float = _key(0.1, _fraction)
    follow: bool = True
    publish_seconds: float = _key(30.0, _seconds)
    exactly_once: bool = False
    log_format: str = _key("text", _one_of("text", "json"))
    watchdog_seconds: float = _key(300.0, _seconds_or_0)
    shutdown_seconds: float = _key(20.0, _seconds)


@dataclass(frozen=True)
class Settings:
    """A whole configuration; see `load`."""

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
    kafka: Mapping[str, Any] = field(default_factory=dict, repr=False)  # may hold secrets; empty: the embedded log

    def codec(self) -> Codec:
        """What reads the events and writes the predictions."""
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
        """Whether models may have to do without what they have learned."""
        is_bounded = self.model.budget is not None or self.model.window is not None
        return bool(is_bounded or self.log.labels or self.estimates.loo or self.estimates.folds)

    def fingerprint(self) -> dict[str, Any]:
        """What a checkpoint depends on, by dotted name: a model cannot go on under another value of any of these."""
        sections = {
            "model": {"algorithm": self.model.algorithm, **self.model.parameters(), **self.model.bounds()},
            "features": asdict(self.features),
            "label": asdict(self.label),
        }
        values = {f"{name}.{key}": value for name, section in sections.items() for key, value in section.items()}
        del values["model.cache_mb"]  # memory, not meaning
        values |= {"log.topic": self.log.topic, "log.labels": self.log.labels, "daemon.per": self.daemon.per}
        return {**values, "features.names": list(self.features.names)}


SECTIONS: dict[str, Any] = {part.name: part.default_factory for part in fields(Settings) if part.name != "kafka"}
_FOLDERS = (("log", "dir"), ("log", "schemas"), ("daemon", "state_dir"))


def load(
    path: Path, environment: Mapping[str, str], overrides: Sequence[str] = (), *, log_must_exist: bool = False
) -> Settings:
    """Read a configuration.

    Parameters
    ----------
    path
        The TOML file.
    environment
        Environment variables; those of a known section count, such as ``STREAMSVM_MODEL_GAMMA``.
    overrides
        Flags of the form ``section.key=value``.
    log_must_exist
        Whether a missing folder of the log is a problem.

    Raises
    ------
    ConfigError
        With every problem found.
    """
    values, problems = collect(SECTIONS, path, environment, overrides, verbatim="kafka")
    parts = {name: section(**values[name]) for name, section in SECTIONS.items()}
    for name, key in _FOLDERS:
        parts[name] = replace(parts[name], **{key: path.parent / getattr(parts[name], key)})
    given = _with_files(values["kafka"], path.parent, problems)
    settings = Settings(**parts, kafka={key: item.value for key, item in given.items()})
    if given:
        from ..logs.kafka_log import read_options, size_problems  # half a second, for those who use it

        options, wrong = read_options(given, settings)
        settings = replace(settings, kafka=options)
        problems += wrong + size_problems(settings)
        if "bootstrap_servers" not in given:
            problems.append("kafka.bootstrap_servers is missing: the address of a broker, such as 'localhost:9092'")
    problems += _contradictions(settings)
    try:
        settings.codec()
    except (AvroMissing, SchemaError) as error:
        problems.append(f"log.format = {settings.log.format!r}: {error}")
    if log_must_exist and path.is_file() and not settings.kafka and not settings.log.dir.is_dir():
        folder = str(settings.log.dir)
        problems.append(f"log.dir = {folder!r}: there is no such folder; without [kafka], the embedded log is meant")
    if not any("model." in problem for problem in problems):
        try:
            settings.model.implementation(**settings.model.parameters())
        except (ArithmeticError, TypeError, ValueError) as error:
            problems.append(f"[model]: {error}")
    if problems:
        raise ConfigError(problems)
    return settings


def _with_files(given: Mapping[str, Given], folder: Path, problems: list[str]) -> dict[str, Given]:
    """The [kafka] section with ``KEY_file = FILE`` as KEY with the file's content, for secrets; None: it has none."""
    options = {}
    for key, item in given.items():
        if key.endswith("_file"):
            key = key.removesuffix("_file")
            content = None
            try:
                content = (folder / str(item.value)).read_text(encoding="utf-8").strip()
            except (OSError, ValueError) as error:
                problems.append(f"{item.origin}: kafka.{item.key} = {item.value!r} cannot be read: {error}")
            item = item._replace(key=key, value=content, is_text=True)
        options[key] = item
    return options


def _having(parameter: str) -> str:
    having = (name for name, made in ALGORITHMS.items() if parameter in inspect.signature(made).parameters)
    return ", ".join(map(repr, having))


def transaction_timeout_ms(settings: Settings) -> int:
    """How long the broker lets a transaction take: as [kafka] says, or twice daemon.checkpoint_seconds.

    By default it is a minute at least, and at most the quarter of an hour that brokers allow by default.
    """
    derived = min(max(60_000, int(2000 * settings.daemon.checkpoint_seconds)), 900_000)
    return int(settings.kafka.get("transaction_timeout_ms", derived))


def _transaction_problems(settings: Settings) -> list[str]:
    """A transaction ends with a checkpoint, which may be late by as long as it takes to learn and to write."""
    timeout_ms = transaction_timeout_ms(settings)
    longest = settings.daemon.checkpoint_seconds
    if not settings.daemon.exactly_once or timeout_ms >= 1500 * longest:
        return []
    return [
        f"daemon.exactly_once with daemon.checkpoint_seconds = {longest:g} needs transactions of {1.5 * longest:g} "
        f"seconds at least, and kafka.transaction_timeout_ms is {timeout_ms}: write checkpoints more often, or raise "
        "it (and the broker's transaction.max.timeout.ms, which is 900000 by default)"
    ]


def _contradictions(settings: Settings) -> list[str]:
    problems = _transaction_problems(settings)
    log, label, names = settings.log, settings.label, settings.features.names
    repeated = sorted({name for name in log.topics() if log.topics().count(name) > 1})
    if repeated:
        problems.append(f"the topics of [log] must differ; there is more than one {', '.join(map(repr, repeated))}")
    problems += [
        f"{name} needs a [kafka] section: the embedded log has {lack}"
        for name, given, lack in (
            ("group.instance", settings.group.instance, "no groups"),
            ("group.assign", settings.group.assign, "no groups"),
            ("daemon.exactly_once", settings.daemon.exactly_once, "no transactions"),
        )
        if given and not settings.kafka
    ]
    problems += [
        f"log.questions needs {need}"
        for is_wrong, need in (
            (not log.labels, "log.labels, the topic of the answers"),
            (settings.daemon.per == "key", 'daemon.per = "partition": a model of each key would need its own labels'),
        )
        if log.questions and is_wrong
    ]
    estimates = settings.estimates.loo or settings.estimates.folds
    if estimates and settings.daemon.per == "key":
        problems.append('estimates.loo and estimates.folds need daemon.per = "partition": they are of one model')
    if log.estimates and not estimates:
        problems.append("log.estimates needs estimates.loo = true or estimates.folds = 2 or more")
    if settings.daemon.exactly_once and settings.group.assign:
        problems.append(
            "daemon.exactly_once needs a group, whose offsets are part of each transaction, not group.assign"
        )
    if settings.daemon.exactly_once and settings.daemon.keep < 2:
        problems.append(
            "daemon.exactly_once needs daemon.keep = 2 or more: the newest checkpoint may belong to a transaction that "
            "was given up"
        )
    if (label.positive is None) != (label.negative is None) or (label.positive and label.positive == label.negative):
        problems.append("label.positive and label.negative must both be given, and differ")
    if settings.limits.event_features > settings.limits.model_features:
        problems.append("limits.event_features must not be larger than limits.model_features")
    if settings.model.on_budget == "merge" and settings.model.kernel not in ("rbf", "linear"):
        problems.append("model.on_budget = 'merge' needs model.kernel = 'rbf' or 'linear'; others can 'project'")
    problems += [
        f"model.{name} is no setting of {settings.model.algorithm!r}; it belongs to {_having(name)}"
        for name in settings.model.superfluous()
    ]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        problems.append(f"features.names repeats {', '.join(map(repr, repeated))}")
    return problems
