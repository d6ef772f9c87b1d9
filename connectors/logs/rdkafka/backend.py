"""A Kafka cluster as a `backend.Backend`, through librdkafka: an administrator answers, which is in no group."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, ConfigSource, NewTopic, ResourceType

from ...runtime.findings import Finding, Findings
from ..cluster.backend import ClusterBackend
from ..cluster.options import COMMAND_SECONDS
from ..cluster.topics import config_of, shape_of
from ..transport import AccessDenied, Committed, Shape, TopicMismatch, Unavailable
from .client import Administrator, asking_consumer, described, offsets_of, require_right, to_partitions
from .errors import ours
from .group import Member
from .outputs import Outputs
from .reader import Reader


class RdKafkaBackend(ClusterBackend):
    """The topics of a Kafka cluster, through librdkafka."""

    _parts = Reader, Outputs, Member

    def describe(self, names: Iterable[str]) -> dict[str, Shape]:
        with Administrator(self._given) as admin:
            found = {name: described(answer) for name, answer in admin.ask_topics(list(names)).items()}
            counts = {name: len(topic.partitions) for name, topic in found.items() if topic is not None}
            configs = _configs(admin, counts)
        return {name: _shape(n_partitions, configs.get(name, {})) for name, n_partitions in counts.items()}

    def create(self, shapes: Mapping[str, Shape], replication: int | None) -> None:
        topics = [
            NewTopic(name, shape.n_partitions, replication or -1, config=config_of(shape))
            for name, shape in shapes.items()
        ]
        with Administrator(self._given) as admin:
            times = {"operation_timeout": COMMAND_SECONDS, "request_timeout": COMMAND_SECONDS}
            for answer in admin.ask(admin.client.create_topics, topics, **times).values():
                _require_created(answer)

    def search(self, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
        # The administrator hears why there is no connection; the consumer would only wait.
        with Administrator(self._given), asking_consumer(self._given) as consumer:
            found = offsets_of(consumer, [(topic, number) for number in partitions], time_ms)
        return {number: offset for (_, number), offset in found.items() if offset >= 0}

    def trim(self, topic: str, partition: int, offset: int) -> None:
        with Administrator(self._given) as admin:
            first = [TopicPartition(topic, partition, offset)]
            for answer in admin.ask(admin.client.delete_records, first, request_timeout=COMMAND_SECONDS).values():
                admin.wait(answer)

    def commit(self, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
        with Administrator(self._given) as admin:
            wanted = [ConsumerGroupTopicPartitions(group, to_partitions(offsets))]
            answers = admin.ask(admin.client.alter_consumer_group_offsets, wanted, request_timeout=COMMAND_SECONDS)
            for answer in answers.values():
                require_right(admin.wait(answer).topic_partitions)

    def partition_of(self, key: bytes, n_partitions: int) -> int:
        from ..kafka.backend import partition_of  # It takes half a second to import, and few commands need it.

        return partition_of(key, n_partitions)

    def _members(self, group: str) -> tuple[str, int]:
        with Administrator(self._given) as admin:
            answers = admin.ask(admin.client.describe_consumer_groups, [group], request_timeout=COMMAND_SECONDS)
            try:
                found = admin.wait(answers[group])
            except Unavailable as error:
                if "GROUP_ID_NOT_FOUND" in str(error) or "not found" in str(error):
                    return "Dead", 0
                raise
        state = "Dead" if found.state == ConsumerGroupState.DEAD else found.state.name.replace("_", " ").capitalize()
        return state, len(found.members)

    def installed(self) -> Findings:
        version = confluent_kafka.libversion()[0]
        yield Finding.ok(f"librdkafka {version} is installed: it computes checksums and reads all of Kafka's codecs")


def _configs(admin: Administrator, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """The settings of those of these topics whose settings we may see."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    answers = admin.ask(admin.client.describe_configs, resources, request_timeout=COMMAND_SECONDS)
    configs: dict[str, Mapping[str, Any]] = {}
    for resource, answer in answers.items():
        with suppress(AccessDenied):
            configs[resource.name] = admin.wait(answer)
    return configs


def _shape(n_partitions: int, config: Mapping[str, Any]) -> Shape:
    is_default = all(item.source != ConfigSource.DYNAMIC_TOPIC_CONFIG.value for item in config.values())
    return shape_of(n_partitions, {name: item.value for name, item in config.items()}, is_default=is_default)


def _require_created(answer: Future) -> None:
    try:
        answer.result(COMMAND_SECONDS)
    except KafkaException as exception:
        error = exception.args[0]
        if error.code() in (KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.POLICY_VIOLATION):
            raise TopicMismatch(f"the broker does not create the topics: {error.str()}") from None
        if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise ours(error) from None
