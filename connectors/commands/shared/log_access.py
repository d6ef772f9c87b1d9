"""Making records durable, for commands that work beside the trainer."""

import time
from collections.abc import Iterable

from tqdm import tqdm

from ...logs.reading import read_all
from ...logs.transport import Record, Transport, Unavailable

_FLUSH_SECONDS = 60.0  # as long as a broker may take to restart


def flush(log: Transport) -> None:
    """Make the produced records durable; retry for a minute while the log is unavailable."""
    until = time.monotonic() + _FLUSH_SECONDS
    while True:
        try:
            return log.flush()
        except Unavailable:
            if time.monotonic() > until:
                raise


def watched(log: Transport, topic: str, what: str) -> Iterable[Record]:
    """All records of a topic, beside a bar that says how many of them were read."""
    total = sum(log.end_offsets(topic).values()) - sum(log.start_offsets(topic).values())
    return tqdm(read_all(log, topic), what, total=total, unit=" records", disable=None)
