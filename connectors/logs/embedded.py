"""The embedded log: a folder of topics, read and written without a broker.

``DIR/TOPIC/PARTITION/`` holds a partition in the files that `segments` describes.  Any number of processes may read,
and one may write.  There are no groups: every consumer has all partitions.
"""

import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from zlib import crc32

from streamsvm.core.saving import snapshot

from ..runtime.folders import lock_folder, naming
from .backend import Backend
from .segments import Appender, Cursor, LogCorruption, begin, end, trim
from .transport import POLL_BYTES, TOPIC_NAME, Committed, Headers, Ownership, Record, Shape

_POLL_INTERVAL = 0.02  # seconds between two looks at the log's end
_PARTITION = re.compile(r"0|[1-9][0-9]{0,8}")


class LocalLog:
    """A folder of topics, as a `transport.Transport`.

    Parameters
    ----------
    folder
        Folder of the topics; the first record creates it.
    segment_bytes
        Bytes of a segment after which a new one begins.
    group
        Name under which offsets are committed.

    Raises
    ------
    LogCorruption
        By any method that meets a damaged record, or a cut or missing segment.
    AlreadyInUse
        By `produce`, if another process writes to the topic.
    """

    def __init__(self, folder: str | os.PathLike[str], segment_bytes: int = 16 << 20, group: str = "streamsvm") -> None:
        self._folder = Path(folder)
        self._segment_bytes = segment_bytes
        self._group = group
        self._cursors: dict[tuple[str, int], Cursor] = {}
        self._paused: set[tuple[str, int]] = set()
        self._at_end: set[tuple[str, int]] = set()  # partitions whose end the last poll met
        self._appenders: dict[tuple[str, int], Appender] = {}
        self._n_partitions: dict[str, int] = {}  # of topics that we write to

    def create(self, topic: str, n_partitions: int) -> None:
        """Create a topic, or give it more partitions; without this, a topic's first record creates one partition."""
        for partition in range(n_partitions):
            self._partition(topic, partition).mkdir(parents=True, exist_ok=True)
        self._n_partitions.pop(topic, None)

    def subscribe(self, topic: str, ownership: Ownership) -> None:
        ownership.assigned(sorted(self._folders(topic)) or [0])

    def topic_id(self, topic: str) -> str:
        return ""

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self.release(topic, partition)
        self._cursors[topic, partition] = Cursor(self._partition(topic, partition), offset)

    def release(self, topic: str, partition: int) -> None:
        cursor = self._cursors.pop((topic, partition), None)
        if cursor is not None:
            cursor.close()
        self._paused.discard((topic, partition))
        self._at_end.discard((topic, partition))

    def poll(self, timeout: float, limit: int) -> list[Record]:
        deadline = time.monotonic() + timeout
        while not (records := self._take(limit)) and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL)
        return records

    def position(self, topic: str, partition: int) -> int:
        return self._cursors[topic, partition].offset

    def known_end(self, topic: str, partition: int) -> int:
        return self.position(topic, partition) + ((topic, partition) not in self._at_end)

    def pause(self, topic: str, partition: int) -> None:
        self._paused.add((topic, partition))

    def resume(self, topic: str, partition: int) -> None:
        self._paused.discard((topic, partition))

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Append a record; other processes see it at once, and `flush` makes it durable."""
        if partition is None:
            partition = 0 if key is None else partition_of(key, self._partitions_of(topic))
        appender = self._appenders.get((topic, partition))
        if appender is None:
            appender = Appender(self._partition(topic, partition), self._segment_bytes)
            self._appenders[topic, partition] = appender
        appender.append(time.time_ns() // 1_000_000, key, value, headers)

    def flush(self) -> None:
        for appender in self._appenders.values():
            appender.sync()

    def can_commit(self) -> bool:
        return True

    def commit(self, offsets: Mapping[tuple[str, int], Committed]) -> bool:
        for (topic, partition), committed in offsets.items():
            path = self._partition(topic, partition) / f"committed-{self._group}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            with naming(path):
                snapshot.write_atomic(path, json.dumps(committed).encode())
        return True

    def committed(self, topic: str, partitions: Collection[int] | None = None) -> dict[int, Committed]:
        name = f"committed-{self._group}.json"
        return {
            partition: _read_committed(folder / name)
            for partition, folder in self._folders(topic).items()
            if (partitions is None or partition in partitions) and (folder / name).exists()
        }

    def start_offsets(self, topic: str) -> dict[int, int]:
        return {partition: begin(folder) for partition, folder in self._folders(topic).items()}

    def end_offsets(self, topic: str, *, unstable: bool = False) -> dict[int, int]:
        return {partition: end(folder)[0] for partition, folder in self._folders(topic).items()}

    def close(self) -> None:
        for key in list(self._cursors):
            self.release(*key)
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

    def _folders(self, topic: str) -> dict[int, Path]:
        parent = self._partition(topic, 0).parent  # checks the name
        return {int(folder.name): folder for folder in parent.glob("[0-9]*") if _PARTITION.fullmatch(folder.name)}

    def _partitions_of(self, topic: str) -> int:
        if topic not in self._n_partitions:
            self._n_partitions[topic] = len(self._folders(topic)) or 1
        return self._n_partitions[topic]

    def _take(self, limit: int) -> list[Record]:
        records: list[Record] = []
        size = 0
        for key, cursor in self._cursors.items():
            if len(records) < limit and size < POLL_BYTES and key not in self._paused:
                taken = cursor.take(*key, limit - len(records), POLL_BYTES - size)
                (self._at_end.add if cursor.is_at_end else self._at_end.discard)(key)
                records += taken
                size += sum(record.nbytes for record in taken)
        return records


def partition_of(key: bytes, n_partitions: int) -> int:
    """The partition in which `LocalLog.produce` puts a key."""
    return crc32(key) % n_partitions


def _read_committed(path: Path) -> Committed:
    try:
        match json.loads(path.read_bytes()):
            case [int(offset), str(metadata)] if type(offset) is int and 0 <= offset < 1 << 63:
                return Committed(offset, metadata)
    except (ValueError, RecursionError):
        pass
    raise LogCorruption(f"{path} must hold an offset and a text; remove the file to begin as if nothing was committed")


class EmbeddedBackend(Backend):
    """A folder of topics, as a `backend.Backend`.

    Parameters
    ----------
    folder, segment_bytes
        As for `LocalLog`.
    """

    has_groups = False
    is_local = True
    makes_topics = True

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self.name = str(folder)
        self._folder = folder
        self._segment_bytes = segment_bytes

    def absence(self) -> str:
        if self._folder.is_dir():
            return ""
        return (
            f"log.dir = {self.name!r}: there is no such folder. Without a [kafka] section, the log is a folder, "
            "which `streamsvm produce` creates"
        )

    def open(
        self, group: str, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> AbstractContextManager[LocalLog]:
        return LocalLog(self._folder, self._segment_bytes, group)

    def sole_labelling(self, topic: str) -> AbstractContextManager[object]:
        return lock_folder(self._folder / topic / "desk", "the labelling of this log")

    def describe(self, names: Iterable[str]) -> dict[str, Shape]:
        with LocalLog(self._folder) as log:
            counts = {name: len(log.start_offsets(name)) for name in names}
        return {name: Shape(n_partitions) for name, n_partitions in counts.items() if n_partitions}

    def create(self, shapes: Mapping[str, Shape], replication: int | None) -> None:
        with LocalLog(self._folder) as log:
            for name, shape in shapes.items():
                log.create(name, shape.n_partitions)

    def search(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        """The starts: a segment does not tell its times."""
        with LocalLog(self._folder) as log:
            return log.start_offsets(topic)

    def trim(self, topic: str, partition: int, offset: int) -> None:
        trim(self._folder / topic / str(partition), offset)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
        with LocalLog(self._folder, group=group) as log:
            log.commit(offsets)

    def partition_of(self, key: bytes, n_partitions: int) -> int:
        return partition_of(key, n_partitions)
