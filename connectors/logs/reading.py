"""Reading a range of a log from its start to its end, beside whatever else uses the log."""

from collections.abc import Generator, Mapping

from ..runtime.process import POLL_SECONDS
from .transport import Record, Transport

POLL_RECORDS = 500  # as kafka-python's and Java's consumers take at once


def read(
    log: Transport, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Generator[Record, None, None]:
    """Yield the records of a topic between two offsets of each partition, one partition after the other."""
    for partition, start in starts.items():
        log.seek(topic, partition, start)
        try:
            while log.position(topic, partition) < ends[partition]:
                records = log.poll(POLL_SECONDS, POLL_RECORDS)
                yield from (record for record in records if record.offset < ends[partition])
        finally:
            log.release(topic, partition)


def read_all(log: Transport, topic: str) -> Generator[Record, None, None]:
    """Yield the records that a topic has now, one partition after the other."""
    return read(log, topic, log.start_offsets(topic), log.end_offsets(topic))
