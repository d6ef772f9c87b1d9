"""Membership of a consumer group: which partitions are ours."""

import logging
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Literal

import kafka.errors
from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.future import Future

from ..transport import Unavailable
from .client import CLOSE_MS, CLOSE_SECONDS, KafkaOptions, Offsets, client_options
from .errors import translated

logger = logging.getLogger(__name__)

_POLL_MS = 500  # for one look at the group


class Notice:
    """A decision of the group that the loop has not heard of yet."""

    def __init__(self, kind: Literal["assigned", "revoked", "lost"], numbers: list[int]) -> None:
        self.kind = kind
        self.numbers = numbers
        self.answered: Future = Future()  # The loop sets it, and the group goes on.
        self.offsets: Offsets = {}  # The member commits these before the group goes on.


def new_consumer(options: KafkaOptions) -> KafkaConsumer:
    """A consumer that joins the group; it reads nothing."""
    with translated():
        return KafkaConsumer(
            **{
                **client_options(options.client, KafkaConsumer, is_named=options.instance is not None),
                "isolation_level": "read_uncommitted",
            },
            group_id=options.group,
            group_instance_id=options.instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[CooperativeStickyAssignor],
        )


class Member(AsyncConsumerRebalanceListener):
    """This process's membership of the group; a thread of its own keeps it up while the loop is busy.

    The group's decisions wait until the loop asks for them, and a revocation waits until the loop has saved its state.
    If that takes too long, the group goes on without us; the checkpoints' epochs then keep two owners apart.
    """

    def __init__(self, consumer: KafkaConsumer, topic: str) -> None:
        self._consumer = consumer
        self.topic = topic
        self._notices: queue.SimpleQueue[Notice] = queue.SimpleQueue()
        self._offsets: Offsets = {}  # to commit at the next opportunity
        self._offsets_lock = threading.Lock()
        self._failure: Exception | None = None
        self._n_losses = 0  # how often all partitions were lost
        self._n_told = 0  # how many of these losses the loop has heard of
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._take_part, name="group", daemon=True)
        self._thread.start()

    # --- for the loop -------------------------------------------------------------------------------------------------

    def news(self) -> Iterator[Notice]:
        """The group's decisions since the last call."""
        if self._failure is not None:
            raise self._failure
        while not self._notices.empty():
            notice = self._notices.get()
            self._n_told += notice.kind == "lost"
            yield notice

    @property
    def is_losing(self) -> bool:
        """Whether partitions are lost and the loop has not heard of it; true before the group is joined again."""
        return self._n_losses != self._n_told

    def commit(self, offsets: Offsets) -> None:
        """Commit soon."""
        with self._offsets_lock:
            self._offsets |= offsets

    def metadata(self) -> Any:
        """The membership, as a transaction needs it."""
        return self._consumer.group_metadata()

    def close(self) -> None:
        """Leave the group, except as a named member, which is expected back."""
        self._is_closing.set()
        while not self._notices.empty():
            self._notices.get().answered.success(None)
        self._thread.join(2 * CLOSE_SECONDS)

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _take_part(self) -> None:
        try:
            self._consumer.subscribe([self.topic], listener=self)
            while not self._is_closing.is_set():
                self._poll()
        except Exception as error:
            self._failure = error
        finally:
            with suppress(kafka.errors.KafkaError):
                self._commit()
                self._consumer.close(autocommit=False, timeout_ms=CLOSE_MS)

    def _poll(self) -> None:
        try:
            with translated():
                self._consumer.poll(timeout_ms=_POLL_MS)
                self._commit()
        except Unavailable as error:
            logger.info("the group does not answer: %s", error)
            time.sleep(_POLL_MS / 1000)

    def _commit(self) -> None:
        with self._offsets_lock:
            offsets, self._offsets = self._offsets, {}
        try:
            if offsets:
                self._consumer.commit(offsets, timeout_ms=CLOSE_MS)
        except (kafka.errors.KafkaTimeoutError, kafka.errors.RebalanceInProgressError):
            with self._offsets_lock:
                self._offsets = offsets | self._offsets
            raise

    # --- on the thread of the client, while `_take_part` waits --------------------------------------------------------

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        if assigned:
            self._consumer.pause(*assigned)  # `reader.Reader` reads them
            self._notices.put(Notice("assigned", _numbers(assigned)))

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        if not revoked or self._is_closing.is_set():
            return
        notice = Notice("revoked", _numbers(revoked))
        self._notices.put(notice)
        await notice.answered  # Heartbeats go on meanwhile.
        with suppress(kafka.errors.KafkaError):
            await self._consumer.commit_async(notice.offsets)

    async def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        if lost and not self._is_closing.is_set():
            self._n_losses += 1
            self._notices.put(Notice("lost", _numbers(lost)))


def _numbers(partitions: Iterable[TopicPartition]) -> list[int]:
    return sorted(tp.partition for tp in partitions)
