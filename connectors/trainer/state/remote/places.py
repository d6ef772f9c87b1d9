"""Where a ledger's records are."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from ....logs.reading import read
from ....logs.transport import Record, TopicMismatch, Transport


class LedgerPlace(Protocol):
    """A sequence of records that several processes may append to; all see the same order.

    Attributes
    ----------
    name : str
        For messages.
    next : int
        Offset of the next record, if no other process appends one before it.
    """

    name: str
    next: int

    def append(self, key: bytes, value: bytes) -> None:
        """Append a record; it is durable only after `flush`."""

    def flush(self) -> None:
        """Wait until everything is durable.

        Raises
        ------
        Unavailable
            If it is not durable yet.
        TakenOver
            If another process has appended a record, and this place tells so.
        """

    def end(self) -> int:
        """Offset of the record to come, also if another process wrote the last one."""

    def records(self, start: int) -> Iterator[Record]:
        """The records from an offset on that are still there; afterwards, `next` is where they end.

        Raises
        ------
        OffsetOutOfRange
            If records are removed while they are read.
        """

    def trim(self, offset: int) -> None:
        """Remove the records before an offset, or most of them."""


class TopicPlace:
    """A partition of a topic: a `LedgerPlace`.

    Parameters
    ----------
    log
        Takes the records; no other part of the process writes to this partition.
    topic, partition
        The partition.
    open_reader
        Opens a log of its own for reading.
    trim
        Removes the records before an offset.
    """

    def __init__(
        self,
        log: Transport,
        topic: str,
        partition: int,
        open_reader: Callable[[], AbstractContextManager[Transport]],
        trim: Callable[[int], None],
    ) -> None:
        self._log = log
        self._topic = topic
        self._partition = partition
        self._open_reader = open_reader
        self.trim = trim
        self.name = f"partition {partition} of {topic!r}"
        self.next = 0

    def append(self, key: bytes, value: bytes) -> None:
        self._log.produce(self._topic, value, key=key, partition=self._partition)
        self.next += 1

    def flush(self) -> None:
        self._log.flush()

    def end(self) -> int:
        return self._end(self._log)

    def records(self, start: int) -> Iterator[Record]:
        with self._open_reader() as reader:
            end = self._end(reader)
            begin = max(start, reader.start_offsets(self._topic).get(self._partition, 0))
            if begin < end:
                yield from read(reader, self._topic, {self._partition: begin}, {self._partition: end})
            self.next = end

    def _end(self, log: Transport) -> int:
        ends = log.end_offsets(self._topic)
        if self._partition in ends:
            return ends[self._partition]
        if self._log.end_offsets(self._topic):
            raise TopicMismatch(f"topic {self._topic!r} has no partition {self._partition}, but the events' has")
        return 0  # An embedded log makes a topic with its first record.
