"""A Kafka cluster as a `backend.Backend`, through librdkafka."""

import confluent_kafka

from ...runtime.findings import Finding, Findings
from ..cluster.backend import ClusterBackend
from ..cluster.log import Client
from . import admin
from .group import Member
from .outputs import Outputs
from .reader import Reader


class RdKafkaBackend(ClusterBackend):
    """The topics of a Kafka cluster, through librdkafka."""

    _client = Client(Reader, Outputs, Member, admin)

    def partition_of(self, key: bytes, n_partitions: int) -> int:
        from ..kafka.admin import partition_of  # It takes half a second to import, and few commands need it.

        return partition_of(key, n_partitions)

    def installed(self) -> Findings:
        version = confluent_kafka.libversion()[0]
        yield Finding.ok(f"librdkafka {version} is installed: it computes checksums and reads all of Kafka's codecs")
