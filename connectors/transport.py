"""What the daemon asks of a record log, whichever it is.

A topic is an append-only sequence of records per partition, numbered by offsets.  Keys, values and headers are bytes:
decoding them is `wire`'s business, so that no transport ever fails on a strange record.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

TOPIC_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,200}")  # Kafka's rule, a little shorter
Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """One record as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int  # milliseconds since the epoch, as told by the producer; never trusted
    key: bytes | None
    value: bytes
    headers: Headers


class OffsetOutOfRange(ValueError):  # noqa: N818 - named for the condition, as in Kafka
    """A position that the log does not have: its records were removed, or it is another log than before."""


class Transport(Protocol):
    """Verbs of a record log."""

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Read this partition from `offset` on; raises `OffsetOutOfRange` if the log does not reach there."""

    def poll(self, timeout: float, limit: int) -> list[Record]:
        """Up to `limit` records in offset order, or none if `timeout` seconds bring none."""

    def produce(self, topic: str, value: bytes, *, key: bytes | None = None, headers: Headers = ()) -> None:
        """Append a record; it is durable only after `flush`."""

    def flush(self) -> None:
        """Return when everything produced so far is durable."""

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset of the next record, per partition; empty for a topic that does not exist."""
