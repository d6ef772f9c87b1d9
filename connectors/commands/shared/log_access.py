"""Reading, filling and flushing a log, for commands that work beside the trainer."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TypeVar

from tqdm import tqdm

from ...logs.embedded import LocalLog
from ...logs.reading import read_all
from ...logs.transport import Record, Transport, Unavailable
from ...runtime.process import insist

T = TypeVar("T")


def flush(log: Transport) -> None:
    """Make the produced records durable; retry for a minute while the log is unavailable."""
    insist(log.flush, lambda error: isinstance(error, Unavailable))


def fill(folder: Path, topic: str, values: Iterable[bytes]) -> None:
    """Append the records that a topic of an embedded log does not have yet."""
    with LocalLog(folder) as log:
        for value in islice(values, log.end_offsets(topic).get(0, 0), None):
            log.produce(topic, value)
        log.flush()


def watched(records: Iterable[T], what: str, total: int | None = None) -> Iterable[T]:
    """The records, beside a bar that says how many of them were taken, on a terminal."""
    return tqdm(records, what, total=total, unit=" records", disable=None)


def watched_topic(log: Transport, topic: str, what: str) -> Iterable[Record]:
    """All records of a topic, as `watched`."""
    total = sum(log.end_offsets(topic).values()) - sum(log.start_offsets(topic).values())
    return watched(read_all(log, topic), what, total)
