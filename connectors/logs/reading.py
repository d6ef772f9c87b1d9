"""Reading a range of a log from its start to its end, beside whatever else uses the log."""

import math
import time
from collections.abc import Generator, Mapping
from contextlib import closing

from ..runtime.process import POLL_SECONDS
from .transport import Record, Transport, Unavailable

POLL_RECORDS = 500  # as kafka-python's and Java's consumers take at once


def read(
    log: Transport,
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    deadline: float = math.inf,
    at_once: int = POLL_RECORDS,
) -> Generator[Record, None, None]:
    """Yield the records of a topic between two offsets of each partition, one partition after the other.

    `Unavailable` if the end is not reached at the deadline, by `time.monotonic`.
    """
    for partition, start in starts.items():
        log.seek(topic, partition, start)
        try:
            while log.position(topic, partition) < ends[partition]:
                if time.monotonic() > deadline:
                    raise Unavailable(f"topic {topic!r} could not be read to its end in time")
                records = log.poll(POLL_SECONDS, at_once)
                yield from (record for record in records if record.offset < ends[partition])
        finally:
            log.release(topic, partition)


def read_all(log: Transport, topic: str) -> Generator[Record, None, None]:
    """Yield the records that a topic has now, one partition after the other."""
    return read(log, topic, log.start_offsets(topic), log.end_offsets(topic))


def read_one(log: Transport, topic: str, partition: int, offset: int) -> Record | None:
    """The record at an offset; None if the log does not have it."""
    start, end = log.start_offsets(topic).get(partition, 0), log.end_offsets(topic).get(partition, 0)
    if not start <= offset < end:
        return None
    with closing(read(log, topic, {partition: offset}, {partition: offset + 1})) as records:
        return next(records, None)


def read_partition(log: Transport, topic: str, partition: int, end: int | None = None) -> Generator[Record, None, None]:
    """Yield the records that a partition has now, up to an offset; none if the topic lacks it."""
    starts, ends = log.start_offsets(topic), log.end_offsets(topic)
    if partition in starts:
        yield from read(log, topic, {partition: starts[partition]}, ends if end is None else {partition: end})
