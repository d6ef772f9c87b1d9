"""The consumer that reads, through librdkafka."""

import time
from collections.abc import Collection
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
    Uuid,
)

from ...runtime.process import LOOK_SECONDS
from ..cluster.commit_notes import to_certain_note
from ..cluster.group import Offsets
from ..cluster.options import COMMAND_SECONDS, IDLE_SECONDS, STABLE_SECONDS, KafkaOptions
from ..cluster.outputs import close_soon
from ..cluster.reader import AT_ONCE, Partition, without_nulls
from ..cluster.reader import Reader as AnyReader
from ..transport import POLL_BYTES, Committed, PositionRefused, Record
from .client import (
    Administrator,
    asking_consumer,
    consumer_options,
    described,
    offsets_of,
    require_right,
    to_partitions,
)
from .errors import MISSING, is_refusal, ours, translated


class _Topic(NamedTuple):
    """What the broker said of a topic last."""

    id: str
    partitions: list[int]


class Reader(AnyReader):
    """Reads with a consumer of librdkafka; another one asks for offsets, and an administrator for the topics' ids."""

    def __init__(self, options: KafkaOptions) -> None:
        super().__init__(options)
        self._admin = Administrator(options.client)
        self._consumer = self._new_consumer()
        self._asking = self._new_consumer()  # for offsets: where one fetches, an answer waits for records
        self._assigned: set[Partition] = set()
        self._at_end: set[Partition] = set()  # partitions whose end the client has met
        self._failure: Exception | None = None  # which the next poll raises
        self._topics: dict[str, _Topic] = {}
        self._asked_topics: dict[str, Future] = {}
        self._looked_at = time.monotonic()

    def _new_consumer(self) -> Consumer:
        with translated():
            return Consumer(
                {
                    **consumer_options({**self._options.client, "group_protocol": "classic"}),
                    "group.id": self._options.group,  # It has to have one, and never joins.
                    "auto.offset.reset": "error",
                    "enable.partition.eof": "true",
                }
            )

    def close(self) -> None:
        close_soon(self._consumer.close)
        close_soon(self._asking.close)
        self._admin.close()

    # --- topics -------------------------------------------------------------------------------------------------------

    def partitions(self, topic: str) -> list[int]:
        if topic not in self._topics:
            self._learn_topics(self._admin.ask_topics([topic]))
        return self._topics[topic].partitions if topic in self._topics else []

    def hear_of_new_partitions(self) -> None:
        self._learn_topics(self._admin.ask_topics(list(self._topics)))

    def _known_topic_id(self, topic: str) -> str:
        return self._topics[topic].id if topic in self._topics else ""

    def _learn_topics(self, answers: dict[str, Future]) -> None:
        for name, answer in answers.items():
            found = described(answer)
            if found is None:
                self._topics.pop(name, None)
            else:
                self._topics[name] = _Topic(_hex(found.topic_id), sorted(part.id for part in found.partitions))

    def _look_at_topics(self) -> None:
        """Ask about the topics now and then, without waiting: the consumer does not tell their ids."""
        now = time.monotonic()
        if self._asked_topics and all(answer.done() for answer in self._asked_topics.values()):
            asked, self._asked_topics = self._asked_topics, {}
            if all(_is_answer(answer) for answer in asked.values()):
                self._learn_topics(asked)
        if not self._asked_topics and now - self._looked_at > LOOK_SECONDS:
            self._looked_at = now
            self._asked_topics = self._admin.ask_topics(sorted({topic for topic, _ in self._assigned}))

    def _know_topics(self) -> bool:
        """Whether all topics that are read exist; one that was missing may be another one of that name by now."""
        missing = sorted({topic for topic, _ in self._assigned} - self._topics.keys())
        if missing:
            self._learn_topics(self._admin.ask_topics(missing))
            self._look_for_new_topics()
        return self._topics.keys() >= set(missing)

    def start_offsets(self, topic: str) -> dict[int, int]:
        return self._ask(self._asking, topic, OFFSET_BEGINNING)

    def end_offsets(self, topic: str, *, unstable: bool = False) -> dict[int, int]:
        if unstable:
            with asking_consumer(self._options.client, isolation_level="read_uncommitted") as consumer:
                return self._ask(consumer, topic, OFFSET_END)
        ends = self._ask(self._asking, topic, OFFSET_END)
        self._ends |= {(topic, number): offset for number, offset in ends.items()}
        return ends

    def _ask(self, consumer: Consumer, topic: str, which: int) -> dict[int, int]:
        found = offsets_of(consumer, [(topic, number) for number in self.partitions(topic)], which)
        return {number: offset for (_, number), offset in found.items()}

    def _ask_brokers(self, seconds: float) -> None:
        self._ends |= offsets_of(self._asking, self._assigned, OFFSET_END, seconds)

    # --- positions ----------------------------------------------------------------------------------------------------

    def known_end(self, topic: str, partition: int) -> int:
        """The end; the client's own may lie behind records of an open transaction, which cannot be read yet."""
        end = self._ends.get((topic, partition), 0)
        if (topic, partition) in self._at_end:
            return max(end, self._positions[topic, partition])
        if (topic, partition) not in self._assigned:
            return end
        _, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)
        return max(end, high)

    def committed(self, topic: str, partitions: Collection[int]) -> dict[int, Committed]:
        """What the group has committed last.

        A consumer asks for it.  An administrator's `list_consumer_group_offsets` ends the process if the broker hangs,
        in librdkafka 2.16.
        """
        asked = [TopicPartition(topic, number) for number in partitions]
        if not asked:
            return {}
        seconds, level = COMMAND_SECONDS, "read_uncommitted"
        if self._options.is_transactional:
            seconds, level = STABLE_SECONDS, "read_committed"
        with asking_consumer(self._options.client, group_id=self._options.group, isolation_level=level) as consumer:
            found = consumer.committed(asked, seconds)
        require_right(found)
        return {one.partition: Committed(one.offset, _note_of(one)) for one in found if one.offset >= 0}

    def commit(self, offsets: Offsets) -> None:
        with suppress(KafkaException):
            self._consumer.commit(offsets=to_partitions(offsets), asynchronous=True)

    def _reading(self) -> Collection[Partition]:
        return self._assigned

    def _fetch_from(self, partition: Partition, offset: int) -> None:
        self._fetch_no_more(partition)
        with translated():
            self._consumer.incremental_assign([TopicPartition(*partition, offset)])
        self._assigned.add(partition)

    def _fetch_no_more(self, partition: Partition) -> None:
        if partition in self._assigned:
            with translated():
                self._consumer.incremental_unassign([TopicPartition(*partition)])
            self._assigned.remove(partition)
            self._at_end.discard(partition)

    def _rebuild(self) -> None:
        old, self._consumer = self._consumer, self._new_consumer()
        with translated():
            self._consumer.incremental_assign(
                [TopicPartition(*partition, self._positions[partition]) for partition in self._assigned]
            )
        self._at_end.clear()
        close_soon(old.close)

    # --- records ------------------------------------------------------------------------------------------------------

    def _take(self, timeout: float, limit: int) -> list[Record]:
        self._look_at_topics()
        self._check_failure()
        if not self._know_topics():
            time.sleep(min(timeout, IDLE_SECONDS))
            return []
        records: list[Record] = []
        n_bytes = 0
        n_asked = min(limit, AT_ONCE)
        with translated():
            # Asked for several, the client waits for all of them.
            messages: list[Any] = self._consumer.consume(n_asked, 0) or self._consumer.consume(1, timeout)
            while messages:
                n_bytes += self._unpack(messages, records)
                n_asked = min(limit - len(records), AT_ONCE)
                if n_asked <= 0 or n_bytes >= POLL_BYTES:
                    break
                messages = self._consumer.consume(n_asked, 0)
        if not records:
            self._check_failure()
        return records

    def _check_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _unpack(self, messages: list[Any], records: list[Record]) -> int:
        """Append the records of messages; return their bytes."""
        n_bytes = 0
        for message in messages:
            error = message.error()
            partition = (message.topic(), message.partition())
            if error is not None:
                self._hear(error, partition, message.offset())
                continue
            offset = message.offset()
            if partition not in self._assigned or offset < self._positions[partition]:
                continue  # It was fetched before a seek.
            key, value, headers = message.key(), message.value(), message.headers()
            kind, stamp = message.timestamp()
            stamp = -1 if kind == TIMESTAMP_NOT_AVAILABLE else stamp
            records.append(Record(*partition, offset, stamp, key, value, without_nulls(headers) if headers else ()))
            n_bytes += len(value or b"") + len(key or b"")
            self._positions[partition] = offset + 1
            self._at_end.discard(partition)
        return n_bytes

    def _hear(self, error: KafkaError, partition: Partition, offset: int) -> None:
        """Note what the client says instead of a record; about outages, the silence tells."""
        if error.code() == KafkaError._PARTITION_EOF:
            if partition in self._assigned and offset >= self._positions[partition]:
                self._positions[partition] = offset  # behind the marks of transactions and the holes of compaction
                self._at_end.add(partition)
            return
        failure = ours(error)
        if isinstance(failure, PositionRefused):
            self._learn_topics(self._admin.ask_topics([partition[0]]))  # It may be another topic of that name.
            self._look_for_new_topics()
        if is_refusal(error) or isinstance(failure, PositionRefused):
            self._failure = failure
        elif error.code() in MISSING:
            self._topics.pop(partition[0], None)


def _hex(topic_id: Uuid) -> str:
    """A topic's id as the other client writes it, since checkpoints hold it; empty for the null of an old broker."""
    parts = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
    return "".join(f"{part % 2**64:016x}" for part in parts) if any(parts) else ""


def _is_answer(answer: Future) -> bool:
    """Whether the broker has said that the topic exists, or that it does not."""
    error = answer.exception()
    return error is None or (isinstance(error, KafkaException) and error.args[0].code() in MISSING)


def _note_of(partition: TopicPartition) -> str:
    try:
        return to_certain_note(partition.metadata or "", partition.partition)
    except UnicodeDecodeError:
        return to_certain_note(None, partition.partition)
