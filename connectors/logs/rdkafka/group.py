"""A member of a consumer group, through librdkafka."""

import threading
from contextlib import suppress

from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from ..cluster.group import Member as AnyMember
from ..cluster.group import Offsets
from ..cluster.options import IDLE_SECONDS, KafkaOptions
from ..transport import TakenOver
from .client import consumer_options, to_partitions
from .errors import is_refusal, ours, translated

_LATER = {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REBALANCE_IN_PROGRESS, KafkaError._WAIT_COORD}


class Member(AnyMember):
    """A membership that a consumer of librdkafka keeps up; the broker or the members assign, as the protocol says."""

    def __init__(self, options: KafkaOptions, topic: str) -> None:
        super().__init__(topic)
        values = {
            **consumer_options(options.client, is_named=options.instance is not None),
            "group.id": options.group,
            "isolation.level": "read_uncommitted",
            "auto.offset.reset": "latest",
        }
        if options.instance is not None:
            values["group.instance.id"] = options.instance
        if options.client.get("group_protocol") != "consumer":
            values["partition.assignment.strategy"] = "cooperative-sticky"
        with translated():
            self._consumer = Consumer(values)
        self._stranger: object = self._consumer.consumer_group_metadata()  # of one that the group does not know
        self._membership = self._stranger

    def metadata(self) -> object | None:
        """The membership; None while the group does not know us, since the broker takes a stranger's offsets unseen.

        Asked for it while another thread polls, confluent-kafka 2.16 hangs.  So the polling thread notes it, and one
        that is out of date is refused by the broker.
        """
        return None if self._membership == self._stranger else self._membership

    def _subscribe(self) -> None:
        with translated():
            self._consumer.subscribe(
                [self.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )

    def _look(self) -> None:
        with translated():
            message = self._consumer.poll(IDLE_SECONDS)  # `close` waits for it
        self._membership = self._consumer.consumer_group_metadata()
        error = message.error() if message is not None else None
        if error is None:
            return
        if error.fatal() or error.code() == KafkaError.FENCED_INSTANCE_ID:
            raise TakenOver(f"another process has the same group.instance: {error.str()}")
        if is_refusal(error):
            raise ours(error)

    def _commit_now(self, offsets: Offsets) -> bool:
        if self._is_closing.is_set():  # `close` waits for it, as long as the broker is there.
            self._consumer.commit(offsets=to_partitions(offsets), asynchronous=True)
            return True
        try:
            found = self._consumer.commit(offsets=to_partitions(offsets), asynchronous=False)
        except KafkaException as error:
            return error.args[0].code() not in _LATER  # After another failure, the partitions are not ours any more.
        return not any(partition.error and partition.error.code() in _LATER for partition in found)

    def _leave(self) -> None:
        with suppress(KafkaException):
            self._consumer.close()

    # --- inside `_look` -----------------------------------------------------------------------------------------------

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            ours = [TopicPartition(one.topic, one.partition, OFFSET_END) for one in partitions]
            consumer.incremental_assign(ours)
            consumer.pause(ours)  # `reader.Reader` reads them
            self._tell("assigned", partitions)
        self._membership = consumer.consumer_group_metadata()

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        answered = threading.Event()
        notice = self._tell("revoked", partitions, answered.set)
        if notice is None:
            return
        while not answered.wait(IDLE_SECONDS):  # Heartbeats go on meanwhile.
            if self._is_closing.is_set():
                return
        if notice.offsets:
            with suppress(KafkaException):
                consumer.commit(offsets=to_partitions(notice.offsets), asynchronous=False)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._tell("lost", partitions)
