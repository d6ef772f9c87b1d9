"""A member of a consumer group, through kafka-python."""

from collections.abc import Collection
from contextlib import suppress

import kafka.errors
from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.future import Future

from ..cluster.group import LOOK_SECONDS, Offsets
from ..cluster.group import Member as AnyMember
from ..cluster.options import KafkaOptions
from .client import CLOSE_MS, client_options, to_client
from .errors import translated


class Member(AnyMember, AsyncConsumerRebalanceListener):
    """A membership that a consumer of kafka-python keeps up."""

    def __init__(self, options: KafkaOptions, topic: str) -> None:
        super().__init__(topic)
        values = {
            **client_options(options.client, KafkaConsumer, is_named=options.instance is not None),
            "group_id": options.group,
            "group_instance_id": options.instance,
            "enable_auto_commit": False,
            "isolation_level": "read_uncommitted",
            "auto_offset_reset": "earliest",
            "partition_assignment_strategy": [CooperativeStickyAssignor],
        }
        with translated():
            self._consumer = KafkaConsumer(**values)  # It reads nothing.

    def metadata(self) -> object | None:
        found = self._consumer.group_metadata()
        return None if found.generation_id < 0 else found  # The broker ignores an offset without a generation.

    def _subscribe(self) -> None:
        self._consumer.subscribe([self.topic], listener=self)

    def _look(self) -> None:
        with translated():
            self._consumer.poll(timeout_ms=int(1000 * LOOK_SECONDS))

    def _commit_now(self, offsets: Offsets) -> bool:
        with translated():
            try:
                self._consumer.commit(to_client(offsets), timeout_ms=CLOSE_MS)
            except (kafka.errors.KafkaTimeoutError, kafka.errors.RebalanceInProgressError):
                return False
        return True

    def _leave(self) -> None:
        with suppress(kafka.errors.KafkaError):
            self._consumer.close(autocommit=False, timeout_ms=CLOSE_MS)

    # --- on the thread of the client, while `_look` waits -------------------------------------------------------------

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        if assigned:
            self._consumer.pause(*assigned)  # `reader.Reader` reads them
            self._tell("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        answered: Future = Future()
        notice = self._tell("revoked", revoked, lambda: answered.success(None))
        if notice is not None:
            await answered  # Heartbeats go on meanwhile.
            with suppress(kafka.errors.KafkaError):
                await self._consumer.commit_async(to_client(notice.offsets))

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self._tell("lost", lost)
