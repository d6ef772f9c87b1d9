"""Records that were polled but not consumed yet: a queue for each topic of a partition, within a memory limit."""

import logging
from collections import deque
from collections.abc import Iterable
from itertools import islice

from ..logs.transport import OffsetOutOfRange, Record, Transport
from ..records.times import order

logger = logging.getLogger(__name__)

CUT_BYTES = 4 << 20  # a cut ends with the record that reaches it
POLL_RECORDS = 2000  # of all partitions together: about 30 cuts

_BUFFERED = 4000  # records that are polled ahead of one topic, or two cuts if that is more
_RECORD_BYTES, _HEADER_BYTES = 300, 150  # memory for a record's objects, and for a header's, beside their bytes

Head = tuple[int, int, int]  # what a record is ordered by, its size, and its offset


class RecordsLost(OffsetOutOfRange):
    """Records were removed from the log before they were read."""


class ReadAhead:
    """The memory limit for polled records, shared by all inputs of a process.

    Parameters
    ----------
    max_bytes
        Above this, an input polls only what its next cut needs.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0


class Input:
    """The queue of one topic of the partition.

    Parameters
    ----------
    log, topic, number
        The log, and the topic and partition to read.
    end
        Offset to stop at; None: never stop.
    batch
        The most records that a cut has; default 1.
    ahead
        The memory limit; None for an input that keeps no records.
    """

    def __init__(
        self,
        log: Transport,
        topic: str,
        number: int,
        end: int | None,
        batch: int = 1,
        ahead: ReadAhead | None = None,
    ) -> None:
        self.topic = topic
        self._log = log
        self._number = number
        self._end = end
        self._batch = batch
        self._limit = max(_BUFFERED, 2 * batch)
        self._ahead = ahead or ReadAhead(0)
        self._hidden = 0  # records before this offset have to be read before the log is exhausted
        self._wanted = 0  # records before this offset are polled, however much memory they take
        self._bytes = 0
        self.records: deque[Record] = deque()
        self._heads: deque[Head] = deque()  # of these records

    def begin(self, offset: int, on_data_loss: str = "fail") -> int:
        """Poll from `offset` on; return it, or with `on_data_loss` "skip" that of the first record that the log has.

        Raises
        ------
        RecordsLost
            If the log begins after it, unless such a loss is skipped.
        OffsetOutOfRange
            If the log ends before it.
        """
        start = self.start
        end = self._log.end_offsets(self.topic).get(self._number, 0)
        if offset > end:
            raise OffsetOutOfRange(
                f"{self.topic}-{self._number} ends at offset {end}, but was read up to offset {offset} before: the "
                "topic was cut, or deleted and made again. Choose another daemon.state_dir to begin with its content"
            )
        if offset < start:
            lost = RecordsLost(
                f"{self.topic}-{self._number} begins at offset {start}, but offset {offset} is next: {start - offset} "
                'records were removed before they were read. daemon.on_data_loss = "skip" goes on without them'
            )
            if on_data_loss == "fail":
                raise lost
            logger.error("partition %d: %s", self._number, lost)
            return self.begin(start, on_data_loss)
        self._log.seek(self.topic, self._number, offset)
        return offset

    def offer(self, records: Iterable[Record]) -> None:
        """Queue records that were polled, up to the end."""
        n_bytes = 0
        for record in records:
            if self._end is None or record.offset < self._end:
                size = record_size(record)
                self.records.append(record)
                self._heads.append((order(record.timestamp, record.offset), size, record.offset))
                n_bytes += size
        self._count(n_bytes)
        is_full = len(self.records) >= self._limit or self._ahead.nbytes >= self._ahead.max_bytes
        if is_full and self.has_cut and self.has_all_below(self._wanted):
            self._log.pause(self.topic, self._number)

    def wait_for_hidden(self) -> bool:
        """Be exhausted only after what an unfinished transaction hides now; return whether there is one."""
        self._hidden = self._log.end_offsets(self.topic, unstable=True).get(self._number, 0)
        self.extend(self._hidden)
        return self._hidden > self._log.end_offsets(self.topic).get(self._number, 0)

    def extend(self, end: int) -> None:
        """Read on to a later end."""
        if self._end is not None and end > self._end:
            if self.position > self._end:  # what was polled from there on was passed over
                self._log.seek(self.topic, self._number, self._end)
            self._end = end

    @property
    def has_cut(self) -> bool:
        """Whether these records alone would fill a cut."""
        return len(self.records) >= self._batch or self._bytes >= CUT_BYTES

    def _count(self, n_bytes: int) -> None:
        self._bytes += n_bytes
        self._ahead.nbytes += n_bytes

    @property
    def position(self) -> int:
        """The offset of the next record to poll."""
        return self._log.position(self.topic, self._number)

    def has_all_below(self, offset: int) -> bool:
        """Whether every record before `offset` was polled."""
        return self.position >= offset

    @property
    def is_exhausted(self) -> bool:
        """Whether every record that is known to be in the log was polled."""
        if not self.has_all_below(self._hidden):
            return False
        if self._end is None:
            return self.has_all_below(self._log.known_end(self.topic, self._number))
        return self.is_at_end

    @property
    def lag(self) -> int:
        """Number of records that are known to wait."""
        behind = self._log.known_end(self.topic, self._number) - self.position
        return len(self.records) + max(0, behind)

    @property
    def is_at_end(self) -> bool:
        """Whether everything up to `end` was polled."""
        return self._end is not None and self.has_all_below(self._end)

    def heads(self, limit: int, before: int) -> tuple[list[Head], bool]:
        """The heads of the first `limit` records; and whether these are `limit`, or no other can follow them.

        Records from the offset `before` on do not count.
        """
        heads = [head for head in islice(self._heads, limit) if head[2] < before]
        return heads, len(heads) == limit or self.is_exhausted or self.has_all_below(before)

    def reach(self, offset: int) -> bool:
        """Whether every record before `offset` was polled.  If not, ask for them, however much memory they take."""
        if self.has_all_below(offset):
            return True
        self._wanted = offset
        self._log.resume(self.topic, self._number)
        return False

    @property
    def start(self) -> int:
        """The offset of the first record that the log has."""
        return self._log.start_offsets(self.topic).get(self._number, 0)

    def take(self, offset: int) -> list[Record]:
        """Remove and return the records before `offset`."""
        records, taken = self.records, []
        n_bytes = 0
        while records and records[0].offset < offset:
            taken.append(records.popleft())
            n_bytes += self._heads.popleft()[1]
        self._count(-n_bytes)
        has_room = len(records) < self._limit // 2 and self._ahead.nbytes < self._ahead.max_bytes // 2
        if has_room or not self.has_cut:
            self._log.resume(self.topic, self._number)
        return taken

    def close(self) -> None:
        """Stop reading, and drop the queue."""
        self._log.release(self.topic, self._number)
        self._count(-self._bytes)
        self.records.clear()
        self._heads.clear()


def record_size(record: Record) -> int:
    """Memory for a record, in bytes."""
    return record.nbytes + _RECORD_BYTES + _HEADER_BYTES * len(record.headers)
