"""What the daemon asks of a record log, whichever it is.

A topic is an append-only sequence of records per partition, numbered by offsets.  Keys, values and headers are bytes:
decoding them is `wire`'s business, so that no transport ever fails on a strange record.

Which partitions are this process's own is told through `Ownership`; where to begin in them is decided here, by `seek`,
never by the log.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

POLL_BYTES = 8 << 20  # a poll ends with the record that reaches it
TOPIC_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,200}")  # Kafka's rule, a little shorter
Headers = Sequence[tuple[str, bytes]]


class Record(NamedTuple):
    """One record as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int  # milliseconds since the epoch, as told by the producer; never trusted
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
    """What a consumer tells others about its progress in a partition."""

    offset: int  # of the next record
    note: str = ""  # for the consumer itself, after a restart


class OffsetOutOfRange(ValueError):  # noqa: N818 - named for the condition, as in Kafka
    """A position that the log does not have: its records were removed, or it is another log than before."""


class PositionRefused(OffsetOutOfRange):
    """By `poll`: a partition that is being read has no record at its position any more."""


class TopicMismatch(ValueError):  # noqa: N818 - named for the condition
    """A topic does not exist, or has not the shape that the configuration needs."""


class AccessDenied(RuntimeError):  # noqa: N818 - named for the condition
    """The log refuses us: wrong credentials, or rights that are missing. Trying again would not help."""


class Unavailable(RuntimeError):  # noqa: N818 - named for the condition
    """The log cannot be reached, or does not answer in time. Trying again may help."""


class Stalled(RuntimeError):  # noqa: N818 - named for the condition
    """The client of the log does nothing any more. Only a new process may help."""


class OutputsLost(RuntimeError):  # noqa: N818 - named for the condition
    """Something that was produced will never be durable: what it came from has to be consumed again."""


class TakenOver(RuntimeError):  # noqa: N818 - named for the condition
    """Another process owns by now what this one was about to write."""


class Ownership(Protocol):
    """What a consumer is told about its partitions, from inside `poll` or `close`."""

    def assigned(self, partitions: list[int]) -> None:
        """These are ours from now on."""

    def revoked(self, partitions: list[int]) -> None:
        """These are ours until this returns: the time to save and to commit."""

    def lost(self, partitions: list[int]) -> None:
        """These have been somebody else's for a while: nothing about them may be written any more."""


def made_again(topic: str) -> TopicMismatch:
    """The error about a topic that was deleted and made again."""
    return TopicMismatch(
        f"topic {topic!r} was deleted and made again: the offsets that are known belong to the topic before, and so "
        "does what was learned. To begin with what is there now, with an empty model, choose another daemon.state_dir "
        "and another group.id"
    )


class Transport(Protocol):
    """Verbs of a record log."""

    def subscribe(self, topic: str, ownership: Ownership) -> None:
        """Have a share of the topic's partitions, as told to `ownership` during `poll`."""

    def topic_id(self, topic: str) -> str:
        """What tells the topic from one of the same name that is made after it was deleted; empty if nothing does."""

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Read this partition from `offset` on; raises `OffsetOutOfRange` if the log does not reach there."""

    def release(self, topic: str, partition: int) -> None:
        """Read this partition no more."""

    def poll(self, timeout: float, limit: int) -> list[Record]:
        """Up to `limit` records, each partition's in offset order, or none if `timeout` seconds bring none.

        Fewer, if they have `POLL_BYTES` before.

        Raises
        ------
        PositionRefused
            If records were removed before they were polled; those of other partitions can be polled all the same.
        TopicMismatch
            If a topic was deleted, or made again.
        Unavailable
            If nothing can be read for the time being.
        """

    def position(self, topic: str, partition: int) -> int:
        """The next offset to come: all records below it have been polled."""

    def known_end(self, topic: str, partition: int) -> int:
        """The end of the partition as last heard of, without asking."""

    def pause(self, topic: str, partition: int) -> None:
        """Let `poll` pass over this partition until `resume`."""

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
        """Append a record, to the partition of its key unless told; it is durable only after `flush`."""

    def flush(self) -> None:
        """Return when everything produced so far is durable.

        Raises
        ------
        Unavailable
            If it is not yet.
        OutputsLost
            If it never will be.
        """

    def can_commit(self) -> bool:
        """Whether `commit` would count; not while partitions are lost, with transactions, and `poll` has to say so."""

    def commit(self, offsets: Mapping[tuple[str, int], Committed]) -> bool:
        """Say how far this consumer is; failing is no error, for nothing of ours depends on it.

        Of a log with transactions, this ends one, and outputs and offsets count together or not at all. It returns
        False if the transaction was given up because the group has a new generation: the partitions are lost then and,
        if they are still ours, assigned again by the next `poll`. And

        Raises
        ------
        TakenOver
            If another process writes in our place by now.
        OutputsLost
            If the transaction had to be given up.
        """

    def committed(self, topic: str, partitions: Collection[int] | None = None) -> dict[int, Committed]:
        """What was committed last for this consumer's group, per partition; default: of all partitions.

        Raises
        ------
        Unavailable
            Of a log with transactions, while one that commits for these partitions is unfinished.
        """

    def start_offsets(self, topic: str) -> dict[int, int]:
        """The first offset there is, per partition; empty for a topic that does not exist."""

    def end_offsets(self, topic: str) -> dict[int, int]:
        """The offset of the next record, per partition; empty for a topic that does not exist."""

    def close(self) -> None:
        """Leave; what was not flushed may be lost."""


class Shape(NamedTuple):
    """What a topic is like; None where that is not known, or where the embedded log knows no such thing."""

    n_partitions: int
    cleanup: str | None = None  # "delete", "compact" or "compact,delete"
    retention_ms: int | None = None  # -1: for ever
    max_bytes: int | None = None  # of a record, or of a batch of them
    is_default: bool = False  # nobody has ever set anything
