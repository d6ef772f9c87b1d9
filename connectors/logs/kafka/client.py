"""What all clients of a cluster have in common: our defaults, the brokers' addresses, and repairs of kafka-python."""

import logging
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.structs import OffsetAndMetadata

from ..transport import Committed

Offsets = dict[TopicPartition, OffsetAndMetadata]

client_logger = logging.getLogger("kafka")
client_logger.setLevel(logging.CRITICAL)  # It logs every failed attempt, dozens a second. We log what they mean.

COMMAND_MS = 10_000  # for an answer of the broker
CLOSE_SECONDS = 5.0
CLOSE_MS = int(1000 * CLOSE_SECONDS)
IDLE_SECONDS = 0.1  # between two looks at something that does not tell when it changes
MISSING_SECONDS = 5.0  # A broker that has just started may not know a topic or a partition for a moment.

_STATIC_SESSION_MS = 10_000  # A named member comes back soon, or its partitions should go to another member soon.
_DEFAULTS: dict[str, Any] = {
    "allow_auto_create_topics": False,
    "isolation_level": "read_committed",
    "bootstrap_timeout_ms": 5000,
    "reconnect_backoff_max_ms": 1000,
    "linger_ms": 50,
    "metrics_enabled": False,  # We serve our own metrics.
    "batch_size": 65536,
    "max_block_ms": 15_000,  # The producer waits this long for a topic's metadata, which it lacks for deleted topics.
    "max_request_size": 16 << 20,  # as large as what a consumer can read, for `dlq replay`
    "fetch_max_bytes": 16 << 20,  # of all partitions together; the client holds them until they are polled
    "delivery_timeout_ms": 2**31 - 1,  # The producer waits for a broker that is away, and gives no record up.
}


@dataclass(frozen=True)
class KafkaOptions:
    """What a `log.KafkaLog` has to know.

    Parameters
    ----------
    client
        Options of kafka-python's clients by name, as `options` describes them.  Others have our defaults.
    group
        Name of the consumer group.
    instance
        Name of this process that outlives it (``group.instance.id``); None: the process has no name.
    assign
        Partitions to read without joining the group; None: the group assigns them.
    is_transactional
        Whether outputs and offsets are written in transactions.
    transaction_timeout_ms
        Milliseconds after which the broker aborts an unfinished transaction.
    """

    client: Mapping[str, Any] = field(repr=False)  # It may hold secrets.
    group: str
    instance: str | None = None
    assign: tuple[int, ...] | None = None
    is_transactional: bool = False
    transaction_timeout_ms: int = 60_000


def defaults(*, is_named: bool) -> dict[str, Any]:
    """Our defaults where they differ from the client's; a named process has a shorter session."""
    return {**_DEFAULTS, "session_timeout_ms": _STATIC_SESSION_MS} if is_named else _DEFAULTS


def client_options(given: Mapping[str, Any], client: Any, *, is_named: bool = False) -> dict[str, Any]:
    """The options, with our defaults, that this class of client knows."""
    options = {**defaults(is_named=is_named), **given}
    return {key: value for key, value in options.items() if key in client.DEFAULT_CONFIG}


def to_client(offsets: Mapping[tuple[str, int], Committed]) -> Offsets:
    """Offsets as the client takes them."""
    return {
        TopicPartition(*where): OffsetAndMetadata(committed.offset, committed.note, -1)
        for where, committed in offsets.items()
    }


def servers(options: Mapping[str, Any]) -> list[str]:
    """The brokers' addresses."""
    given = options.get("bootstrap_servers", "localhost:9092")
    return given.split(",") if isinstance(given, str) else list(given)


def answers(options: Mapping[str, Any]) -> bool:
    """Whether anything accepts a connection at a broker's address; True behind a proxy, where only the client can tell.

    A client that cannot connect takes long to say so, and leaves a thread behind.
    """
    if any(options.get(name) for name in ("proxy_url", "socks5_proxy")):
        return True
    for server in servers(options):
        host, _, port = server.strip().rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), timeout=1):
            return True
    return False


# --- repairs of kafka-python 3.0.12 -----------------------------------------------------------------------------------


def _deliver_last_words(transport: Any) -> None:
    """Let a transport hand on what a broker said before it closed the connection, which is mostly why.

    kafka-python throws away what it reads together with the end of the connection.  We hide the end from that read;
    the next read meets it again.
    """
    receive = transport._sock_recv

    def receive_all(self: Any) -> tuple[bytes, Exception | None]:
        data, error = receive(self)
        return data, None if data else error

    transport._sock_recv = receive_all


def _end_at_open_transactions(fetcher: Any) -> None:
    """Let `highwater` of a consumer of committed records be the end of what it can read.

    kafka-python keeps the high watermark instead, and an open transaction may hide all records before it.
    """
    parse = fetcher._parse_fetched_data

    def parse_stable(self: Any, fetched: Any) -> Any:
        data = fetched.partition_data
        if self.config["isolation_level"] == "read_committed" and data.last_stable_offset >= 0:
            data.high_watermark = data.last_stable_offset
        return parse(self, fetched)

    fetcher._parse_fetched_data = parse_stable


_end_at_open_transactions(Fetcher)
_deliver_last_words(KafkaTCPTransport)
_deliver_last_words(KafkaSSLTransport)
