"""A Kafka cluster as a `transport.Transport`, whichever client talks to the brokers.

Two consumers share the work.  One is a member of the group (`group.Member`): it reads nothing, and tells which
partitions are ours.  The other (`reader.Reader`) reads these partitions, labels beside events, from where it is told.
So a rebalance changes no position, pause or topic of the reading, and one process has partition N of every topic.

The offsets that we commit show the group's lag; the checkpoints say where to begin.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Self

from ...runtime.process import pause
from ..transport import Committed, Headers, OutputsLost, Ownership, Record, TopicMismatch, Unavailable
from .group import Member, Notice, Offsets
from .options import KafkaOptions, require_answer
from .outputs import Describe, Outputs, Refusal
from .reader import Reader

logger = logging.getLogger(__name__)

_WAITS = (1.0, 2.0, 5.0, 10.0)  # seconds between attempts to reach a broker


class Client(NamedTuple):
    """What a library brings that talks to the brokers."""

    reader: type[Reader]
    outputs: type[Outputs]
    member: type[Any]  # a `Member` of the readers of a topic
    describe: Describe


class ClusterLog:
    """The topics of a Kafka cluster.

    Parameters
    ----------
    options
        The cluster, the group and this process's place in it.
    client
        Talks to the brokers.

    Raises
    ------
    Unavailable
        If no broker answers.
    AccessDenied
        If the broker refuses us.
    """

    def __init__(self, options: KafkaOptions, client: Client) -> None:
        self._options = options
        self._client = client
        self._reader = reader = client.reader(options)
        self.topic_id, self.start_offsets, self.end_offsets = reader.topic_id, reader.start_offsets, reader.end_offsets
        self.seek, self.release, self.pause, self.resume = reader.seek, reader.release, reader.pause, reader.resume
        self.position, self.known_end = reader.position, reader.known_end
        self._outputs = client.outputs(options, reader.why_silent, client.describe)
        self._member: Member | None = None
        self._ownership: Ownership | None = None
        self._untold: deque[Notice] = deque()
        self._notice: Notice | None = None  # what the owner is hearing at the moment
        self._owned: set[int] = set()  # the partitions, as the owner has heard

    @classmethod
    def connect(
        cls, options: KafkaOptions, client: Client, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> Self:
        """Wait for a broker, and connect to it.

        Parameters
        ----------
        options, client
            As for the class.
        stop
            Asked while we wait; if it says True, `Unavailable` is raised.
        tell
            Called with the reason whenever an attempt fails.
        """
        attempts = 0
        while True:
            try:
                require_answer(options.client)
                return cls(options, client)
            except Unavailable as error:
                tell(str(error))
                if attempts == 0 and not stop():
                    logger.warning("%s; waiting for it", error)
                pause(_WAITS[min(attempts, len(_WAITS) - 1)], stop)
                attempts += 1
                if stop():
                    raise

    # --- reading ------------------------------------------------------------------------------------------------------

    def subscribe(self, topic: str, ownership: Ownership) -> None:
        there = self._reader.partitions(topic)
        if not there:
            raise TopicMismatch(
                f"there is no topic {topic!r}; `streamsvm topics CONFIG.toml --create` creates all topics"
            )
        if self._options.assign is not None:
            missing = set(self._options.assign) - set(there)
            if missing:
                raise TopicMismatch(f"group.assign has partitions {sorted(missing)}, but topic {topic!r} has not")
            ownership.assigned(list(self._options.assign))
            return
        self._ownership = ownership
        if self._options.is_transactional:
            self._outputs.connect()  # `committed` waits for the transaction of a killed process, which this ends.
        self._member = self._client.member(self._options, topic)
        self._member.start()

    def poll(self, timeout: float, limit: int) -> list[Record]:
        self._tell_news()
        return self._reader.poll(timeout, limit)

    def committed(self, topic: str, partitions: Collection[int] | None = None) -> dict[int, Committed]:
        numbers = self._reader.partitions(topic) if partitions is None else partitions
        try:
            return self._reader.committed(topic, numbers)
        except Unavailable as error:
            raise Unavailable(
                f"the offsets of group {self._options.group!r} for topic {topic!r} are not known yet ({error}): the "
                "broker does not answer, or the transaction of a killed process has to time out"
            ) from None

    # --- writing ------------------------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Append a record; wait while too much that was produced is not durable yet."""
        self._outputs.produce(topic, value, key=key, headers=headers, partition=partition)

    def flush(self) -> None:
        self._outputs.flush()

    def can_commit(self) -> bool:
        return not self._options.is_transactional or self._membership() is not None

    def commit(self, offsets: Mapping[tuple[str, int], Committed]) -> bool:
        if self._options.is_transactional:
            return self._commit_transaction(offsets)
        if self._notice is not None and self._notice.kind == "revoked":
            self._notice.offsets.update(offsets)
        elif self._member is not None:
            self._member.commit(offsets)
        else:
            self._reader.commit(offsets)
        return True

    def close(self) -> None:
        for notice in self._untold:
            notice.answer()
        if self._member is not None:
            self._member.close()
        self._reader.close()
        self._outputs.close()

    # --- the group ----------------------------------------------------------------------------------------------------

    def _tell_news(self) -> None:
        """Tell the owner what the group has decided."""
        if self._member is None or self._ownership is None:
            return
        self._untold.extend(self._member.news())
        while self._untold:
            self._notice = notice = self._untold[0]
            if notice.kind != "assigned":
                self._owned -= set(notice.numbers)
            elif not set(notice.numbers) <= set(self._reader.partitions(self._member.topic)):
                self._reader.hear_of_new_partitions()
            try:
                getattr(self._ownership, notice.kind)(notice.numbers)
            except Unavailable:
                raise  # The notice stays, and the next poll tells it again.
            except BaseException:
                self._untold.clear()
                raise
            finally:
                self._notice = None
            if notice.kind == "assigned":
                self._owned |= set(notice.numbers)
            self._untold.popleft()
            notice.answer()
            if notice.kind == "revoked" and not self._owned:
                self._reader.hear_of_new_partitions()  # or that a topic is gone, which `Reader.poll` then notices
            if notice.kind == "lost" and self._options.is_transactional:
                self._outputs.abort()
                if self._owned:
                    raise OutputsLost("some, but not all, partitions of an open transaction were lost")

    def _membership(self) -> object | None:
        """What a transaction's offsets are committed with; None while the owner has to hear of a loss first.

        After the member has joined again, the broker would accept an offset of a partition that was lost before.  So
        we look for losses after the membership.
        """
        assert self._member is not None
        membership = self._member.metadata()
        is_losing = self._member.is_losing or any(notice.kind == "lost" for notice in self._untold)
        return None if is_losing else membership

    def _commit_transaction(self, offsets: Offsets) -> bool:
        """End the transaction with these offsets; False if it was given up instead."""
        if not self._outputs.in_transaction and not offsets:
            return True
        membership = self._membership()
        if membership is None:
            return False
        refusal = self._outputs.commit(offsets, membership)
        if refusal is not None:
            self._give_up(refusal)
        return refusal is None

    def _give_up(self, refusal: Refusal) -> None:
        """Abort the transaction, and let the owner begin again at the group's offsets."""
        logger.warning("giving the transaction up, to take its records again: %s", refusal.reason)
        self._outputs.abort()
        owned = sorted(self._owned)
        notices = [Notice("lost", owned)]
        if not refusal.is_unknown:  # An unknown member will hear from the group what it loses and gets.
            notices.append(Notice("assigned", owned))
        rest = list(self._untold)
        at = 1 if self._notice else 0
        self._untold = deque([*rest[:at], *notices, *rest[at:]])
