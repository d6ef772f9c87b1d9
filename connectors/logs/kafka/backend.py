"""A Kafka cluster as a `backend.Backend`, through kafka-python."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib.util import find_spec

from ...runtime.findings import OK, WARNING, Finding, Findings
from ..cluster.backend import ClusterBackend
from ..transport import Committed, Shape
from . import admin, checks
from .log import KafkaLog
from .options import CODECS_HINT


class KafkaBackend(ClusterBackend):
    """The topics of a Kafka cluster, through kafka-python."""

    def open(
        self, group: str, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> AbstractContextManager[KafkaLog]:
        return KafkaLog.connect(replace(self._options, group=group), stop, tell)

    def describe(self, names: Iterable[str]) -> dict[str, Shape]:
        return admin.describe_topics(self._client, list(names))

    def create(self, shapes: Mapping[str, Shape], replication: int | None) -> None:
        admin.create_topics(self._client, shapes, replication)

    def search(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        return admin.offsets_at(self._client, topic, partitions, time_ms)

    def trim(self, topic: str, partition: int, offset: int) -> None:
        admin.delete_records(self._client, topic, partition, offset)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
        """Commit as an administrator, because a log commits only for members of a group."""
        admin.commit_offsets(self._client, group, offsets)

    def _describe_group(self, group: str) -> tuple[str, int]:
        return admin.describe_group(self._client, group)

    def partition_of(self, key: bytes, n_partitions: int) -> int:
        return admin.partition_of(key, n_partitions)

    def installed(self) -> Findings:
        if find_spec("crc32c"):
            yield Finding(OK, "crc32c is installed")
        else:
            yield Finding(
                WARNING,
                "crc32c is not installed: reading from Kafka takes six times as long",
                "pip install 'streamsvm[crc]'",
            )
        missing = checks.missing_codecs()
        if missing:
            yield Finding(
                WARNING,
                f"records compressed with {' or '.join(missing)} cannot be read: the packages are not installed",
                CODECS_HINT,
            )
        else:
            yield Finding(OK, "all of Kafka's compressions can be read")
