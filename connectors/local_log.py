"""The embedded log: a folder of topics, read and written without a broker.

``DIR/TOPIC/PARTITION/`` holds a partition as `segments` describes it.  Any number of processes may read, one may write.
"""

import os
import time
from pathlib import Path

from .segments import Appender, Cursor, end
from .transport import TOPIC_NAME, Headers, Record

_POLL_INTERVAL = 0.02  # seconds between two looks at the end of the log


class LocalLog:
    """A folder of topics, as a `transport.Transport`.

    Parameters
    ----------
    folder
        Where the topics are; made when the first record is produced.
    segment_bytes
        Size at which a new segment is begun.

    Raises
    ------
    LogCorruption
        By any method that meets a damaged record, or a segment that is cut or missing.
    AlreadyInUse
        By `produce`, if another process writes to the topic.
    """

    def __init__(self, folder: str | os.PathLike[str], segment_bytes: int = 16 << 20) -> None:
        self._folder = Path(folder)
        self._segment_bytes = segment_bytes
        self._cursors: dict[tuple[str, int], Cursor] = {}
        self._appenders: dict[tuple[str, int], Appender] = {}

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._drop_cursor(topic, partition)
        self._cursors[topic, partition] = Cursor(self._partition(topic, partition), offset)

    def poll(self, timeout: float, limit: int) -> list[Record]:
        deadline = time.monotonic() + timeout
        while not (records := self._take(limit)) and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL)
        return records

    def produce(
        self, topic: str, value: bytes, *, key: bytes | None = None, headers: Headers = (), partition: int = 0
    ) -> None:
        """Append a record; other processes see it at once, `flush` makes it durable."""
        appender = self._appenders.get((topic, partition))
        if appender is None:
            appender = Appender(self._partition(topic, partition), self._segment_bytes)
            self._appenders[topic, partition] = appender
        appender.append(time.time_ns() // 1_000_000, key, value, headers)

    def flush(self) -> None:
        for appender in self._appenders.values():
            appender.sync()

    def end_offsets(self, topic: str) -> dict[int, int]:
        self._partition(topic, 0)  # a topic's name is checked even if there is no such folder
        folders = (self._folder / topic).glob("[0-9]*")
        return {int(folder.name): end(folder)[0] for folder in folders}

    def close(self) -> None:
        for key in list(self._cursors):
            self._drop_cursor(*key)
        for appender in self._appenders.values():
            appender.close()
        self._appenders.clear()

    def __enter__(self) -> "LocalLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _partition(self, topic: str, partition: int) -> Path:
        if not TOPIC_NAME.fullmatch(topic):
            raise ValueError(f"topic {topic!r} must be 1 to 200 letters, digits, '.', '_' or '-'")
        return self._folder / topic / str(partition)

    def _take(self, limit: int) -> list[Record]:
        records: list[Record] = []
        for (topic, partition), cursor in self._cursors.items():
            records += cursor.take(topic, partition, limit - len(records))
        return records

    def _drop_cursor(self, topic: str, partition: int) -> None:
        cursor = self._cursors.pop((topic, partition), None)
        if cursor is not None:
            cursor.close()
