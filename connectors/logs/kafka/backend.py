"""A Kafka cluster as a `backend.Backend`, through kafka-python: an administrator answers, which is in no group."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.partitioner.default import murmur2

from ...runtime.findings import Finding, Findings
from ..cluster.backend import ClusterBackend
from ..cluster.options import require_answer
from ..cluster.topics import config_of, shape_of
from ..transport import Committed, Shape, TopicMismatch
from . import checks
from .client import COMMAND_MS, client_options, to_client
from .errors import translated
from .group import Member
from .options import CODECS_HINT
from .outputs import Outputs
from .reader import Reader


class KafkaBackend(ClusterBackend):
    """The topics of a Kafka cluster, through kafka-python."""

    _parts = Reader, Outputs, Member

    def describe(self, names: Iterable[str]) -> dict[str, Shape]:
        with self._administrator() as admin:
            counts = {}
            for topic in admin.describe_topics(list(names)):
                error = kafka.errors.for_code(topic["error_code"])
                if issubclass(error, kafka.errors.AuthorizationError):
                    raise error(topic["name"])
                if topic["partitions"]:
                    counts[topic["name"]] = len(topic["partitions"])
            resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in counts]
            configs = admin.describe_configs(resources, config_filter="all").get("topic", {}) if counts else {}
        return {name: _shape(n_partitions, configs.get(name, {})) for name, n_partitions in counts.items()}

    def create(self, shapes: Mapping[str, Shape], replication: int | None) -> None:
        topics = {
            name: {
                "num_partitions": shape.n_partitions,
                "replication_factor": replication or -1,
                "configs": config_of(shape),
            }
            for name, shape in shapes.items()
        }
        with self._administrator() as admin, suppress(kafka.errors.TopicAlreadyExistsError):
            try:
                admin.create_topics(topics, timeout_ms=COMMAND_MS, wait_for_metadata=True)
            except (kafka.errors.InvalidReplicationFactorError, kafka.errors.PolicyViolationError) as error:
                raise TopicMismatch(f"the broker does not create the topics: {error}") from None

    def search(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        specs = {TopicPartition(topic, number): time_ms for number in partitions}
        with self._administrator() as admin:
            found = admin.list_partition_offsets(specs, timeout_ms=COMMAND_MS)
        return {tp.partition: answer.offset for tp, answer in found.items() if answer.offset >= 0}

    def trim(self, topic: str, partition: int, offset: int) -> None:
        with self._administrator() as admin:
            admin.delete_records({TopicPartition(topic, partition): offset}, timeout_ms=COMMAND_MS)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
        with self._administrator() as admin:
            for error in admin.alter_group_offsets(group, to_client(offsets)).values():
                if error is not kafka.errors.NoError:
                    raise error(f"offsets of group {group!r} cannot be committed")

    def partition_of(self, key: bytes, n_partitions: int) -> int:
        return partition_of(key, n_partitions)

    def _members(self, group: str) -> tuple[str, int]:
        with self._administrator() as admin:
            found = admin.describe_groups([group])[group]
        return found["group_state"], len(found["members"])

    @contextmanager
    def _administrator(self) -> Iterator[KafkaAdminClient]:
        require_answer(self._given)
        with translated(), closing(KafkaAdminClient(**client_options(self._given, KafkaAdminClient))) as admin:
            yield admin

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


def _shape(n_partitions: int, config: Mapping[str, Any]) -> Shape:
    """The shape of a topic; without its settings if we may not see these."""
    is_default = all(item["config_source"] != "DYNAMIC_TOPIC_CONFIG" for item in config.values())
    return shape_of(n_partitions, {name: item["value"] for name, item in config.items()}, is_default=is_default)


def partition_of(key: bytes, n_partitions: int) -> int:
    """The partition in which Kafka's own clients, and most others, put a key."""
    return int((murmur2(key) & 0x7FFFFFFF) % n_partitions)
