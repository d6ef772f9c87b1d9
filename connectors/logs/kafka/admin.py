"""Questions and orders to a cluster that need no place in a group: topics, offsets and groups.

Every function takes the options of the client, and raises `Unavailable` if no broker answers, and `AccessDenied` if the
broker refuses us.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import kafka.errors
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.partitioner.default import murmur2

from ..cluster.options import require_answer
from ..cluster.topics import config_of, shape_of
from ..transport import Committed, Shape, TopicMismatch
from .client import COMMAND_MS, client_options, to_client
from .errors import translated

Options = Mapping[str, Any]


def describe_topics(options: Options, names: list[str]) -> dict[str, Shape]:
    """The shapes of those topics that exist; without their settings if we may not see these."""
    with _administrator(options) as admin:
        counts = {}
        for topic in admin.describe_topics(names):
            error = kafka.errors.for_code(topic["error_code"])
            if issubclass(error, kafka.errors.AuthorizationError):
                raise error(topic["name"])
            if topic["partitions"]:
                counts[topic["name"]] = len(topic["partitions"])
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in counts]
        configs = admin.describe_configs(resources, config_filter="all").get("topic", {}) if counts else {}
    return {name: _shape(n_partitions, configs.get(name, {})) for name, n_partitions in counts.items()}


def _shape(n_partitions: int, config: Mapping[str, Any]) -> Shape:
    is_default = all(item["config_source"] != "DYNAMIC_TOPIC_CONFIG" for item in config.values())
    return shape_of(n_partitions, {name: item["value"] for name, item in config.items()}, is_default=is_default)


def create_topics(options: Options, shapes: Mapping[str, Shape], replication: int | None = None) -> None:
    """Create topics; one that exists by now stays as it is."""
    topics = {
        name: {
            "num_partitions": shape.n_partitions,
            "replication_factor": replication or -1,
            "configs": config_of(shape),
        }
        for name, shape in shapes.items()
    }
    with _administrator(options) as admin, suppress(kafka.errors.TopicAlreadyExistsError):
        try:
            admin.create_topics(topics, timeout_ms=COMMAND_MS, wait_for_metadata=True)
        except (kafka.errors.InvalidReplicationFactorError, kafka.errors.PolicyViolationError) as error:
            raise TopicMismatch(f"the broker does not create the topics: {error}") from None


def offsets_at(options: Options, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
    """The offset of each partition's first record of that time or later; partitions without one are left out."""
    specs = {TopicPartition(topic, number): time_ms for number in partitions}
    with _administrator(options) as admin:
        found = admin.list_partition_offsets(specs, timeout_ms=COMMAND_MS)
    return {tp.partition: answer.offset for tp, answer in found.items() if answer.offset >= 0}


def delete_records(options: Options, topic: str, partition: int, offset: int) -> None:
    """Delete the records of a partition before an offset."""
    with _administrator(options) as admin:
        admin.delete_records({TopicPartition(topic, partition): offset}, timeout_ms=COMMAND_MS)


def commit_offsets(options: Options, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
    """Commit offsets of a group without members."""
    ours = to_client(offsets)
    with _administrator(options) as admin:
        for error in admin.alter_group_offsets(group, ours).values():
            if error is not kafka.errors.NoError:
                raise error(f"offsets of group {group!r} cannot be committed")


def describe_group(options: Options, group: str) -> tuple[str, int]:
    """The state of a group, as the broker calls it, and the number of its members."""
    with _administrator(options) as admin:
        found = admin.describe_groups([group])[group]
    return found["group_state"], len(found["members"])


def partition_of(key: bytes, n_partitions: int) -> int:
    """The partition in which Kafka's own clients, and most others, put a key."""
    return int((murmur2(key) & 0x7FFFFFFF) % n_partitions)


@contextmanager
def _administrator(options: Options) -> Iterator[KafkaAdminClient]:
    require_answer(options)
    with translated(), closing(KafkaAdminClient(**client_options(options, KafkaAdminClient))) as admin:
        yield admin
