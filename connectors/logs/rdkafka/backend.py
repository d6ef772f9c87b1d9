"""A Kafka cluster as a `backend.Backend`, through librdkafka."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

import confluent_kafka

from ...runtime.findings import OK, Finding, Findings
from ..cluster.backend import ClusterBackend
from ..transport import Committed, Shape
from . import admin
from .log import RdKafkaLog


class RdKafkaBackend(ClusterBackend):
    """The topics of a Kafka cluster, through librdkafka."""

    def open(
        self, group: str, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> AbstractContextManager[RdKafkaLog]:
        return RdKafkaLog.connect(replace(self._options, group=group), stop, tell)

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
        from ..kafka.admin import partition_of  # It takes half a second to import, and few commands need it.

        return partition_of(key, n_partitions)

    def installed(self) -> Findings:
        version = confluent_kafka.libversion()[0]
        yield Finding(OK, f"librdkafka {version} is installed: it computes checksums and reads all of Kafka's codecs")
