"""What every record log offers, and its errors.

A topic is an append-only sequence of records per partition, numbered by offsets.  Keys, values and headers are bytes;
`records.codec` decodes them, so a log never fails on a strange record.

A log tells through `Ownership` which partitions are this process's own.  The process decides by `seek` where to begin.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

POLL_BYTES = 8 << 20  # A poll ends with the record that reaches this size.
TOPIC_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,200}")  # Kafka's rule, a little shorter
Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """One record as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int  # milliseconds since 1970, as the producer says; may be wrong; -1: there is none
    key: bytes | None
    value: bytes | None  # None: a tombstone
    headers: Headers

    @property
    def nbytes(self) -> int:
        """Size of the key, the value and the headers."""
        size = len(self.key or b"") + len(self.value or b"")
        if self.headers:
            size += sum(len(name) + len(value) for name, value in self.headers)
        return size


class Committed(NamedTuple):
    """A consumer's progress in a partition, as it tells others."""

    offset: int  # of the next record
    note: str = ""  # for the consumer itself after a restart


class Shape(NamedTuple):
    """What a topic is like; None for what is unknown, or does not exist in the embedded log."""

    n_partitions: int
    cleanup: str | None = None  # "delete", "compact" or "compact,delete"
    retention_ms: int | None = None  # -1: for ever
    max_bytes: int | None = None  # of a batch of records
    is_default: bool = False  # No setting of the topic was ever changed.


# --- errors -----------------------------------------------------------------------------------------------------------


class OffsetOutOfRange(ValueError):  # noqa: N818 - named for the condition, as in Kafka
    """The log does not have this position: its records were removed, or the log is another one than before."""


class PositionRefused(OffsetOutOfRange):
    """A partition that is being read no longer has a record at its position; raised by `poll`."""


class TopicMismatch(ValueError):  # noqa: N818 - named for the condition
    """A topic does not exist, or does not have the shape that the configuration needs."""


class OptionRefused(ValueError):  # noqa: N818 - named for the condition
    """The log's client or its broker does not accept an option."""


class AccessDenied(RuntimeError):  # noqa: N818 - named for the condition
    """The log refuses us, because of wrong credentials or missing rights. Trying again does not help."""


class Unavailable(RuntimeError):  # noqa: N818 - named for the condition
    """The log cannot be reached, or does not answer in time. Trying again may help."""


class Stalled(RuntimeError):  # noqa: N818 - named for the condition
    """The log's client does nothing any more. Only a new process may help."""


class OutputsLost(RuntimeError):  # noqa: N818 - named for the condition
    """A record that was produced will never be durable: consume again what it was made from."""


class TakenOver(RuntimeError):  # noqa: N818 - named for the condition
    """Another process owns what this one was about to write."""


def made_again(topic: str) -> TopicMismatch:
    """The error about a topic that was deleted and created again."""
    return TopicMismatch(
        f"topic {topic!r} was deleted and made again: the known offsets, and what was learned, belong to the topic "
        "before. To begin with the new topic and an empty model, choose another daemon.state_dir and another group.id"
    )


def fenced(reason: str, instance: str | None) -> OutputsLost | TakenOver:
    """The error about a transaction that the broker refuses: only of a process with a name there may be another one."""
    late = f"the broker refused the transaction: {reason}; it took longer than kafka.transaction_timeout_ms"
    return (
        OutputsLost(late) if instance is None else TakenOver(f"{late}, or another process has the same group.instance")
    )


# --- the log ----------------------------------------------------------------------------------------------------------


class Ownership(Protocol):
    """Hears about a consumer's partitions, from inside `poll` or `close`."""

    def assigned(self, partitions: list[int]) -> None:
        """These partitions are ours from now on."""

    def revoked(self, partitions: list[int]) -> None:
        """These partitions are ours until this returns: save and commit now."""

    def lost(self, partitions: list[int]) -> None:
        """These partitions have belonged to another process for a while: write nothing about them any more."""


class Transport(Protocol):
    """A record log."""

    def subscribe(self, topic: str, ownership: Ownership) -> None:
        """Take a share of the topic's partitions; `poll` tells `ownership` which ones."""

    def topic_id(self, topic: str) -> str:
        """An id that changes if the topic is deleted and created again; empty if the log has no such id."""

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Read this partition from `offset` on; raises `OffsetOutOfRange` if the log does not have this offset."""

    def release(self, topic: str, partition: int) -> None:
        """Stop reading this partition."""

    def poll(self, timeout: float, limit: int) -> list[Record]:
        """At most `limit` records, each partition's in offset order; empty after `timeout` seconds without one.

        A poll also ends at `POLL_BYTES`.

        Raises
        ------
        PositionRefused
            If records were removed before they were polled. The other partitions can still be polled.
        TopicMismatch
            If a topic was deleted, or deleted and created again.
        Unavailable
            If nothing can be read at the moment.
        """

    def position(self, topic: str, partition: int) -> int:
        """Offset of the next record: all records before it have been polled."""

    def known_end(self, topic: str, partition: int) -> int:
        """The end of the partition as last heard of, without asking the broker."""

    def pause(self, topic: str, partition: int) -> None:
        """Let `poll` skip this partition until `resume`."""

    def resume(self, topic: str, partition: int) -> None:
        """Undo `pause`."""

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Append a record, by default to the partition of its key; it is durable only after `flush`."""

    def flush(self) -> None:
        """Wait until everything produced so far is durable.

        Raises
        ------
        Unavailable
            If it is not durable yet.
        OutputsLost
            If it will never be durable.
        """

    def can_commit(self) -> bool:
        """Whether `commit` would count; with transactions, it would not while `poll` has a loss to tell."""

    def commit(self, offsets: Mapping[tuple[str, int], Committed]) -> bool:
        """Publish how far this consumer is.

        Without transactions a failure is no error, because nothing of ours depends on these offsets.  With
        transactions, this ends one: outputs and offsets count together or not at all.  It returns False if the
        transaction was given up because the group has a new generation.  The next `poll` then tells that the partitions
        are lost, and assigns those that are still ours.

        Raises
        ------
        TakenOver
            If another process writes in our place.
        OutputsLost
            If the transaction had to be given up.
        """

    def committed(self, topic: str, partitions: Collection[int] | None = None) -> dict[int, Committed]:
        """What this consumer's group has committed last, by partition.  Default: all partitions.

        Raises
        ------
        Unavailable
            With transactions, while one that commits for these partitions is unfinished.
        """

    def start_offsets(self, topic: str) -> dict[int, int]:
        """The offset of the first record, by partition; empty for a topic that does not exist."""

    def end_offsets(self, topic: str, *, unstable: bool = False) -> dict[int, int]:
        """The offset behind the last record that can be read, by partition; empty for a topic that does not exist.

        With `unstable`, it is behind what an unfinished transaction still hides, too.
        """

    def close(self) -> None:
        """Leave the group and close all connections; what was not flushed may be lost."""
