"""What all clients of kafka-python have in common: our defaults, and repairs."""

import logging
from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition
from kafka.consumer.fetcher import Fetcher
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.structs import OffsetAndMetadata

from ..cluster.commit_notes import ZERO, to_metadata
from ..cluster.group import Offsets as OurOffsets
from ..cluster.options import CLOSE_SECONDS, COMMAND_SECONDS, DEFAULTS, STATIC_SESSION_MS

Offsets = dict[TopicPartition, OffsetAndMetadata]

client_logger = logging.getLogger("kafka")
client_logger.setLevel(logging.CRITICAL)  # It logs every failed attempt, dozens a second. We log what they mean.

COMMAND_MS = int(1000 * COMMAND_SECONDS)
CLOSE_MS = int(1000 * CLOSE_SECONDS)

_DEFAULTS: dict[str, Any] = {
    **DEFAULTS,
    "bootstrap_timeout_ms": 5000,
    "metrics_enabled": False,  # We serve our own metrics.
    "max_block_ms": 15_000,  # The producer waits this long for a topic's metadata, which it lacks for deleted topics.
}


def defaults(*, is_named: bool) -> dict[str, Any]:
    """Our defaults where they differ from the client's; a named process has a shorter session."""
    return {**_DEFAULTS, "session_timeout_ms": STATIC_SESSION_MS} if is_named else _DEFAULTS


def client_options(given: Mapping[str, Any], client: Any, *, is_named: bool = False) -> dict[str, Any]:
    """The options, with our defaults, that this class of client knows."""
    options = {**defaults(is_named=is_named), **given}
    return {key: value for key, value in options.items() if key in client.DEFAULT_CONFIG}


def to_client(offsets: OurOffsets) -> Offsets:
    """Offsets as the client takes them."""
    return {
        TopicPartition(*where): OffsetAndMetadata(committed.offset, to_metadata(committed.note) + ZERO, -1)
        for where, committed in offsets.items()
    }


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
