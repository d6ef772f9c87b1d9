"""A Kafka cluster as a `backend.Backend`, through kafka-python."""

from importlib.util import find_spec

from ...runtime.findings import Finding, Findings
from ..cluster.backend import ClusterBackend
from ..cluster.log import Client
from . import admin, checks
from .group import Member
from .options import CODECS_HINT
from .outputs import Outputs
from .reader import Reader


class KafkaBackend(ClusterBackend):
    """The topics of a Kafka cluster, through kafka-python."""

    _client = Client(Reader, Outputs, Member, admin)

    def partition_of(self, key: bytes, n_partitions: int) -> int:
        return admin.partition_of(key, n_partitions)

    def installed(self) -> Findings:
        if find_spec("crc32c"):
            yield Finding.ok("crc32c is installed")
        else:
            yield Finding.warning(
                "crc32c is not installed: reading from Kafka takes six times as long", "pip install 'streamsvm[crc]'"
            )
        missing = checks.missing_codecs()
        if missing:
            yield Finding.warning(
                f"records compressed with {' or '.join(missing)} cannot be read: the packages are not installed",
                CODECS_HINT,
            )
        else:
            yield Finding.ok("all of Kafka's compressions can be read")
