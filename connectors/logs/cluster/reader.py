"""The consumer that reads: positions, pauses, and what is wrong if no record comes."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from ...runtime.process import LOOK_SECONDS
from ..transport import Committed, Headers, Record, Stalled, TopicMismatch, Unavailable, made_again
from .group import Offsets
from .options import IDLE_SECONDS, MISSING_SECONDS, KafkaOptions, answers, servers

logger = logging.getLogger(__name__)

AT_ONCE = 20  # records to ask a client for, before we look at their bytes

_QUIET_SECONDS = 5.0  # without a record, after which we ask whether there is a broker at all
_ANSWER_SECONDS = 3.0  # for an answer to such a question
_STALL_SECONDS = 60.0  # without a record although some wait, after which we build a new client
_MAX_REBUILDS = 3  # in succession

Partition = tuple[str, int]  # a topic, and the number of its partition


class Reader(ABC):
    """Reads partitions from given offsets, whatever the group does meanwhile."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._paused: set[Partition] = set()
        self._positions: dict[Partition, int] = {}  # offset of the next record
        self._ends: dict[Partition, int] = {}
        self._moved_at = time.monotonic()  # when a record came, or none was left
        self._asked_at = 0.0  # when we asked whether there is a broker
        self._silence: str | None = None  # why nothing can be read
        self._topic_ids: dict[str, str] = {}  # of the topics that are read, or were
        self._missing: dict[str, float] = {}  # topics that the broker does not know, and since when
        self._n_rebuilds = 0

    # --- what a client brings -----------------------------------------------------------------------------------------

    @abstractmethod
    def partitions(self, topic: str) -> list[int]:
        """The topic's partitions; empty if the topic does not exist."""

    @abstractmethod
    def hear_of_new_partitions(self) -> None:
        """Ask the broker again what topics and partitions there are."""

    @abstractmethod
    def start_offsets(self, topic: str) -> dict[int, int]:
        """The offset of the first record, by partition; empty for a topic that does not exist."""

    @abstractmethod
    def end_offsets(self, topic: str, *, unstable: bool = False) -> dict[int, int]:
        """As of `transport.Transport`."""

    @abstractmethod
    def known_end(self, topic: str, partition: int) -> int:
        """The end of the partition as last heard of, without asking the broker."""

    @abstractmethod
    def committed(self, topic: str, partitions: Collection[int]) -> dict[int, Committed]:
        """What the group has committed last; raises `Unavailable` if that is not known.

        With transactions, only offsets that no unfinished transaction may replace: the process that sent those may have
        been killed, or given up for dead, before their transaction ended.
        """

    @abstractmethod
    def commit(self, offsets: Offsets) -> None:
        """Commit without waiting; for partitions that are not the group's to assign."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    @abstractmethod
    def _known_topic_id(self, topic: str) -> str:
        """The id that the client heard last; empty if it knows none."""

    @abstractmethod
    def _reading(self) -> Collection[Partition]:
        """The partitions that the client fetches."""

    @abstractmethod
    def _fetch_from(self, partition: Partition, offset: int) -> None:
        """Let the client fetch a partition from an offset on, whether or not it does already."""

    @abstractmethod
    def _fetch_no_more(self, partition: Partition) -> None:
        """Let the client forget a partition, and what it has fetched of it."""

    @abstractmethod
    def _take(self, timeout: float, limit: int) -> list[Record]:
        """At most `limit` records that the client has fetched; notes the positions behind them."""

    @abstractmethod
    def _ask_brokers(self, seconds: float) -> None:
        """Ask the brokers of our partitions for anything; raises `Unavailable` if one does not answer."""

    @abstractmethod
    def _rebuild(self) -> None:
        """Replace the client by a new one at the same positions."""

    # --- positions ----------------------------------------------------------------------------------------------------

    def topic_id(self, topic: str) -> str:
        return self._known_topic_id(topic) if self.partitions(topic) else ""

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._topic_ids.setdefault(topic, self.topic_id(topic))
        self._paused.discard((topic, partition))
        self._fetch_from((topic, partition), offset)
        self._positions[topic, partition] = offset

    def release(self, topic: str, partition: int) -> None:
        self._paused.discard((topic, partition))
        self._fetch_no_more((topic, partition))

    def position(self, topic: str, partition: int) -> int:
        return self._positions[topic, partition]

    def pause(self, topic: str, partition: int) -> None:
        """Release the partition until `resume`.

        The client's own pause loses records.  kafka-python 3.0.12 puts aside what it has fetched and not returned, and
        mostly neither finds it again nor fetches what follows.
        """
        if (topic, partition) not in self._paused:
            self._ends[topic, partition] = self.known_end(topic, partition)
            self._paused.add((topic, partition))
            self._fetch_no_more((topic, partition))

    def resume(self, topic: str, partition: int) -> None:
        if (topic, partition) in self._paused:
            self.seek(topic, partition, self.position(topic, partition))

    def poll(self, timeout: float, limit: int) -> list[Record]:
        if not self._reading():
            time.sleep(min(timeout, IDLE_SECONDS))
            self._look_for_topics(time.monotonic())  # The group takes the partitions of a topic that is gone.
            return []
        records = self._take(timeout, limit)
        self._look_for_new_topics()
        self._look_for_stall(bool(records))
        return records

    # --- silence ------------------------------------------------------------------------------------------------------

    def _look_for_stall(self, has_moved: bool) -> None:
        """Notice a broker that is away, and a client that has stopped reading."""
        now = time.monotonic()
        if has_moved:
            self._moved_at, self._n_rebuilds, self._silence = now, 0, None
            return
        if now - self._moved_at > _QUIET_SECONDS and now - self._asked_at > LOOK_SECONDS:
            self._silence = self.why_silent(now)
            self._asked_at = time.monotonic()
        if self._silence:
            self._moved_at = now - _QUIET_SECONDS  # The client has not stalled while the broker is away.
            raise Unavailable(self._silence)
        if not any(self.known_end(*tp) > self.position(*tp) for tp in self._reading()):
            self._moved_at = max(self._moved_at, now - 2 * _QUIET_SECONDS)
        elif now - self._moved_at > _STALL_SECONDS:
            self._begin_again()

    def why_silent(self, now: float) -> str | None:
        """Why no record can come; None if the brokers of our partitions answer.

        A broker that hangs still accepts connections, so it has to answer a question.
        """
        where = ", ".join(servers(self._options.client))
        if not answers(self._options.client):
            return f"no broker answers at {where}"
        silence = None
        try:
            self._ask_brokers(_ANSWER_SECONDS)
        except Unavailable:
            silence = f"the broker at {where} accepts connections and does not answer"
        self._look_for_topics(now)
        return None if self._missing else silence

    def _look_for_new_topics(self) -> None:
        """Notice a topic that was made again, before its records pass for those of the old one."""
        for topic, known in self._topic_ids.items():
            if known and self._known_topic_id(topic) not in ("", known):
                raise made_again(topic)

    def _look_for_topics(self, now: float) -> None:
        """Notice a topic that was deleted."""
        missing = [topic for topic in self._topic_ids if not self.partitions(topic)]
        self._missing = {topic: self._missing.get(topic, now) for topic in missing}
        for topic, since in self._missing.items():
            if now - since > MISSING_SECONDS:
                raise TopicMismatch(f"topic {topic!r} was deleted while we read it")

    def _begin_again(self) -> None:
        if self._n_rebuilds == _MAX_REBUILDS:
            raise Stalled(
                f"records wait, but {_MAX_REBUILDS} clients have read none in {_STALL_SECONDS:g} seconds each"
            )
        logger.warning("records wait, but none came for %g seconds: building a new client", _STALL_SECONDS)
        self._rebuild()
        self._n_rebuilds += 1
        self._moved_at = time.monotonic()


def without_nulls(headers: Sequence[tuple[str, bytes | None]]) -> Headers:
    """A header's value may be null on Kafka; we take it for an empty one."""
    return [(name, value or b"") for name, value in headers]
