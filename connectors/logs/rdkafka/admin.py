"""Questions and orders to a cluster that need no place in a group: topics, offsets and groups.

Every function that takes the options of the client raises `Unavailable` if no broker answers, and `AccessDenied` if the
broker refuses us.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, ConfigSource, NewTopic, ResourceType

from ..cluster.options import COMMAND_SECONDS
from ..cluster.topics import config_of, shape_of
from ..transport import AccessDenied, Committed, Shape, TopicMismatch, Unavailable
from .client import Administrator, asking_consumer, offsets_of, require_right, to_partitions
from .errors import MISSING, ours

Options = Mapping[str, Any]


def ask_topics(admin: Administrator, names: list[str]) -> dict[str, Future]:
    """The broker's answers about topics, which may still be on their way; `described` tells what they say."""
    if not names:
        return {}
    return admin.ask(admin.client.describe_topics, TopicCollection(names), request_timeout=COMMAND_SECONDS)


def described(answer: Future) -> Any | None:
    """The description of a topic; None if it does not exist."""
    try:
        return answer.result(COMMAND_SECONDS)
    except KafkaException as error:
        if error.args[0].code() in MISSING:
            return None
        raise ours(error.args[0]) from None


def topics_there(options: Options, names: Iterable[str]) -> set[str]:
    """Those topics that exist."""
    with Administrator(options) as admin:
        answers = ask_topics(admin, sorted(names))
        return {name for name, answer in answers.items() if described(answer) is not None}


def describe_topics(options: Options, names: list[str]) -> dict[str, Shape]:
    """The shapes of those topics that exist; without their settings if we may not see these."""
    with Administrator(options) as admin:
        found = {name: described(answer) for name, answer in ask_topics(admin, names).items()}
        counts = {name: len(topic.partitions) for name, topic in found.items() if topic is not None}
        configs = _configs(admin, counts)
    return {name: _shape(n_partitions, configs.get(name, {})) for name, n_partitions in counts.items()}


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


def create_topics(options: Options, shapes: Mapping[str, Shape], replication: int | None = None) -> None:
    """Create topics; one that exists by now stays as it is."""
    topics = [
        NewTopic(name, shape.n_partitions, replication or -1, config=config_of(shape)) for name, shape in shapes.items()
    ]
    with Administrator(options) as admin:
        times = {"operation_timeout": COMMAND_SECONDS, "request_timeout": COMMAND_SECONDS}
        for answer in admin.ask(admin.client.create_topics, topics, **times).values():
            _require_created(answer)


def _require_created(answer: Future) -> None:
    try:
        answer.result(COMMAND_SECONDS)
    except KafkaException as exception:
        error = exception.args[0]
        if error.code() in (KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.POLICY_VIOLATION):
            raise TopicMismatch(f"the broker does not create the topics: {error.str()}") from None
        if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise ours(error) from None


def offsets_at(options: Options, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
    """The offset of each partition's first record of that time or later; partitions without one are left out."""
    # The administrator hears why there is no connection; the consumer would only wait.
    with Administrator(options), asking_consumer(options) as consumer:
        found = offsets_of(consumer, [(topic, number) for number in partitions], time_ms)
    return {number: offset for (_, number), offset in found.items() if offset >= 0}


def delete_records(options: Options, topic: str, partition: int, offset: int) -> None:
    """Delete the records of a partition before an offset."""
    with Administrator(options) as admin:
        first = [TopicPartition(topic, partition, offset)]
        for answer in admin.ask(admin.client.delete_records, first, request_timeout=COMMAND_SECONDS).values():
            admin.wait(answer)


def commit_offsets(options: Options, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
    """Commit offsets of a group without members."""
    with Administrator(options) as admin:
        wanted = [ConsumerGroupTopicPartitions(group, to_partitions(offsets))]
        answers = admin.ask(admin.client.alter_consumer_group_offsets, wanted, request_timeout=COMMAND_SECONDS)
        for answer in answers.values():
            require_right(admin.wait(answer).topic_partitions)


def describe_group(options: Options, group: str) -> tuple[str, int]:
    """The state of a group, as the broker calls it, and the number of its members."""
    with Administrator(options) as admin:
        answers = admin.ask(admin.client.describe_consumer_groups, [group], request_timeout=COMMAND_SECONDS)
        try:
            found = admin.wait(answers[group])
        except Unavailable as error:
            if "GROUP_ID_NOT_FOUND" in str(error) or "not found" in str(error):
                return "Dead", 0
            raise
    state = "Dead" if found.state == ConsumerGroupState.DEAD else found.state.name.replace("_", " ").capitalize()
    return state, len(found.members)
