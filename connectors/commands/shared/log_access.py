"""Reading a range of a log, and making records durable, for commands that work beside the trainer."""

import time
from collections.abc import Generator, Mapping

from ...logs.transport import Record, Transport, Unavailable

POLL_RECORDS = 500

_POLL_SECONDS = 0.2
_FLUSH_SECONDS = 60.0


def read(
    log: Transport, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Generator[Record, None, None]:
    """Yield the records of a topic between two offsets of each partition, one partition after the other."""
    for partition, start in starts.items():
        log.seek(topic, partition, start)
        try:
            while log.position(topic, partition) < ends[partition]:
                records = log.poll(_POLL_SECONDS, POLL_RECORDS)
                yield from (record for record in records if record.offset < ends[partition])
        finally:
            log.release(topic, partition)


def flush(log: Transport) -> None:
    """Make the produced records durable; retry for a minute while the log is unavailable."""
    until = time.monotonic() + _FLUSH_SECONDS
    while True:
        try:
            return log.flush()
        except Unavailable:
            if time.monotonic() > until:
                raise
