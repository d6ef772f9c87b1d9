"""What a log on a cluster has to know, and the times that all clients keep to."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ...runtime.numbers import MAX_INT32
from ..transport import Unavailable

COMMAND_SECONDS = 10.0  # for an answer of the broker
CLOSE_SECONDS = 5.0  # to close a client; one without a broker is left behind
STABLE_SECONDS = 1.0  # for transactions' offsets to be certain, before the loop goes round once more
IDLE_SECONDS = 0.1  # between two looks at something that does not tell when it changes
MISSING_SECONDS = 5.0  # A broker that has just started may not know a topic or a partition for a moment.
STATIC_SESSION_MS = 10_000  # A named member comes back soon, or its partitions should go to another member soon.

# Our defaults, where they differ from both clients', by the names of Kafka's own clients.
DEFAULTS: dict[str, Any] = {
    "allow_auto_create_topics": False,
    "isolation_level": "read_committed",
    "reconnect_backoff_max_ms": 1000,
    "linger_ms": 50,
    "batch_size": 65536,
    "max_request_size": 16 << 20,  # as large as what a consumer can read, for `dlq replay`
    "fetch_max_bytes": 16 << 20,  # of all partitions together; the client holds them until they are polled
    "delivery_timeout_ms": MAX_INT32,  # The producer waits for a broker that is away, and gives no record up.
}


@dataclass(frozen=True)
class KafkaOptions:
    """What a `log.ClusterLog` has to know.

    Parameters
    ----------
    client
        Options of the client by name, as its folder's `options` describes them.  Others have our defaults.
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


def servers(options: Mapping[str, Any]) -> list[str]:
    """The brokers' addresses."""
    given = options.get("bootstrap_servers", "localhost:9092")
    return given.split(",") if isinstance(given, str) else list(given)


def answers(options: Mapping[str, Any]) -> bool:
    """Whether anything accepts a connection at a broker's address; True behind a proxy, where only the client can tell.

    A client that cannot connect takes long to say so, and may leave a thread behind.
    """
    if any(options.get(name) for name in ("proxy_url", "socks5_proxy")):
        return True
    for server in servers(options):
        host, _, port = server.strip().rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), timeout=1):
            return True
    return False


def require_answer(options: Mapping[str, Any]) -> None:
    """Raise `Unavailable` if nothing accepts a connection at a broker's address."""
    if not answers(options):
        raise Unavailable(f"no broker answers at {', '.join(servers(options))}")


def no_kafka() -> Unavailable:
    """The error about an address where something accepts connections that is no broker, or none of our protocol."""
    return Unavailable(
        "something listens there, but does not answer as a Kafka broker should: see kafka.bootstrap_servers and "
        "kafka.security_protocol"
    )


def not_transactional(values: Mapping[str, Any], transactional_by: str) -> list[str]:
    """The options that contradict transactions, or idempotence; `transactional_by` names the setting that asks."""
    why = transactional_by or ("kafka.enable_idempotence" if values.get("enable_idempotence") is True else "")
    wrong = {
        "acks": values.get("acks", "all") not in (-1, "all"),
        "retries": values.get("retries") == 0,
        "max_in_flight_requests_per_connection": values.get("max_in_flight_requests_per_connection", 5) > 5,
        "enable_idempotence": values.get("enable_idempotence") is False,
    }
    return [f"kafka.{key} = {values[key]!r} contradicts {why}" for key, is_wrong in wrong.items() if why and is_wrong]
