"""The sections about a process: its group, its checkpoints and outputs, what it serves, and the services it asks."""

from dataclasses import dataclass, field
from pathlib import Path

from ..records.formats.registry.client import Place
from . import checks
from .checks import key


@dataclass(frozen=True)
class GroupSettings:
    """How trainers share a topic on Kafka; scorers share it apart from them.

    Parameters
    ----------
    id
        Name of the trainers' consumer group; the scorers' group is ``ID-score``.
    instance
        Name of this process that a restart keeps, such as its host's name.  The process's partitions then wait for its
        restart.  Unset: they go to other processes.
    assign
        Partitions to take without joining the group, such as ``"0-3,7"``.  Unset: the group assigns them.
    """

    id: str = key("streamsvm", checks.topic)
    instance: str | None = key(None, checks.topic)
    assign: str | None = key(None, checks.partitions)


@dataclass(frozen=True)
class StateSettings:
    """Where trainers keep their checkpoints, journals and models of keys.

    Parameters
    ----------
    store
        ``"dir"``: in daemon.state_dir, which all trainers of a group share; ``"topic"``: on the topic log.state;
        ``"objects"``: in an object store.  With the last two, daemon.state_dir is a cache that each trainer has for
        itself.
    url
        Address of the object store, and the beginning of the objects' names: ``"s3://bucket/prefix"``,
        ``"gs://bucket/prefix"``, ``"az://container/prefix"`` or ``"file:///folder"``.  Credentials come from the
        environment variables of the provider, such as ``AWS_ACCESS_KEY_ID``.  So does the address of another server,
        such as ``AWS_ENDPOINT_URL``; one that begins with http:// needs ``AWS_ALLOW_HTTP=true``, too.
    """

    store: str = key("dir", checks.one_of("dir", "topic", "objects"))
    url: str = key("", checks.objects_url)


@dataclass(frozen=True)
class ScorerSettings:
    """What the scorers predict with.

    Parameters
    ----------
    model
        ``"mean"``: the models of all partitions, whose decision values are averaged; ``"merged"``: the one model that
        ``streamsvm merger`` makes of them, from the topic log.merged.
    """

    model: str = key("mean", checks.one_of("mean", "merged"))


@dataclass(frozen=True)
class MergerSettings:
    """When ``streamsvm merger`` makes one model of those on the topic log.model.

    Parameters
    ----------
    seconds
        Seconds between the end of one merge and the beginning of the next.
    """

    seconds: float = key(300.0, checks.seconds)


@dataclass(frozen=True)
class HttpSettings:
    """Where metrics (``/metrics``) and health (``/healthz``, ``/readyz``) are served.

    `connections` also holds for the servers of ``streamsvm label``.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0: nothing is served.
    names
        Names that clients may use for this server, beside ``localhost``, `host` and plain addresses, such as that of a
        proxy.  Empty: a server on a loopback address answers to no other name, and a server on another address answers
        to any name.  The labelling page answers to these names and `labelling.host` only.
    connections
        Number of connections at once, at least 1; the server answers further ones with the status 503.
    """

    host: str = key("127.0.0.1", checks.host)
    port: int = key(0, checks.port)
    names: tuple[str, ...] = ()
    connections: int = key(100, checks.at_least(1))


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
        Largest number of records that the trainer reads, writes into its journal and decodes together, at least 1; a
        batch also ends at 4 MB.  Whatever it is, each event is predicted before it is learned, and before the next
        event is predicted.  A scorer predicts up to 500 records (at most 4 MB) together, whatever `batch` is.
    state_dir
        Folder of the checkpoints.  They hold events as they came, so only the folder's owner may enter it.
    start
        Where a partition without a checkpoint begins: at the ``"earliest"`` or the ``"latest"`` record.
    begin
        The first model of a partition without a checkpoint: ``"empty"``; or ``"merged"``, the newest model on the topic
        log.merged if there is one.
    on_data_loss
        What to do if records were removed before they were read: ``"fail"``, or ``"skip"`` and count them.  A topic
        that was deleted and created again always ends the trainer.
    checkpoint_records, checkpoint_seconds
        Number of records, at least 1, or seconds after which the trainer writes a checkpoint, whichever comes first.
        With a model for each key, it waits for ten records for each model that has changed, unless the seconds are up.
    publish_seconds
        Seconds between two snapshots on the topic log.model.
    publish_json
        Whether the topic log.model also gets each model as JSON, for programs in other languages: ``json-p0`` beside
        ``p0``.
    exactly_once
        Whether to write outputs and offsets in Kafka transactions.  A reader of committed records then sees each output
        once, but not before the next checkpoint: lower ``checkpoint_seconds`` if that is too late.  A transaction may
        take ``kafka.transaction_timeout_ms``; default: twice ``checkpoint_seconds``, from 1 to 15 minutes.
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
    begin: str = key("empty", checks.one_of("empty", "merged"))
    on_data_loss: str = key("fail", checks.one_of("fail", "skip"))
    checkpoint_records: int = key(20_000, checks.at_least(1))
    checkpoint_seconds: float = key(30.0, checks.seconds)
    keep: int = key(3, checks.at_least(1))
    window: int = key(1000, checks.at_least(1))
    max_bad: float = key(0.1, checks.fraction)
    follow: bool = True
    publish_seconds: float = key(30.0, checks.seconds)
    publish_json: bool = False
    exactly_once: bool = False
    log_format: str = key("text", checks.one_of("text", "json"))
    watchdog_seconds: float = key(300.0, checks.seconds_or_0)
    shutdown_seconds: float = key(20.0, checks.seconds)


@dataclass(frozen=True)
class SchemaSettings:
    """The registry of the events' schemas, for ``log.format = "registry"``.

    Parameters
    ----------
    registry
        Address of the registry, such as ``"https://registry.example.org:8081"``.
    user, password
        User and password for basic authentication.  Empty: the trainer sends neither.  The environment may have the
        password, as ``STREAMSVM_SCHEMA_PASSWORD``.
    seconds
        Seconds that the trainer waits for an answer of the registry, before it asks again.
    """

    registry: str = key("", checks.registry_url)
    user: str = ""
    password: str = field(default="", repr=False)
    seconds: float = key(10.0, checks.seconds)

    @property
    def place(self) -> Place:
        """The registry, for a client."""
        return Place(self.registry, self.user, self.password, self.seconds)
