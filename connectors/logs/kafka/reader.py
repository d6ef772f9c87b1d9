"""The consumer that reads: positions, pauses, and what is wrong if no record comes."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import kafka.errors
from kafka import KafkaConsumer, TopicPartition

from ..transport import (
    POLL_BYTES,
    Headers,
    Record,
    Stalled,
    TopicMismatch,
    Unavailable,
    made_again,
)
from .client import (
    CLOSE_MS,
    COMMAND_MS,
    IDLE_SECONDS,
    MISSING_SECONDS,
    KafkaOptions,
    Offsets,
    answers,
    client_options,
    servers,
)
from .errors import telling_refusals, translated

logger = logging.getLogger(__name__)

_AT_ONCE = 20  # records to ask the client for, before we look at their bytes
_MARKS_MS = 50  # for a position, which the client mostly knows
_QUIET_SECONDS = 5.0  # without a record, after which we ask whether there is a broker at all
_ASK_SECONDS = 1.0  # between two such questions
_ANSWER_MS = 3000
_STALL_SECONDS = 60.0  # without a record although some wait, after which we build a new client
_MAX_REBUILDS = 3  # in succession


class Reader:
    """Reads partitions from given offsets, whatever the group does meanwhile."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._consumer = self._new_consumer()
        self._paused: set[TopicPartition] = set()
        self._positions: dict[TopicPartition, int] = {}  # offset of the next record
        self._ends: dict[TopicPartition, int] = {}
        self._moved_at = time.monotonic()  # when a record came, or none was left
        self._asked_at = 0.0  # when we asked whether there is a broker
        self._silence: str | None = None  # why nothing can be read
        self._topic_ids: dict[str, str] = {}  # of the topics that are read
        self._missing: dict[str, float] = {}  # topics that the broker does not know, and since when
        self._n_rebuilds = 0

    def _new_consumer(self) -> KafkaConsumer:
        with translated(), telling_refusals():
            return KafkaConsumer(
                **client_options(self._options.client, KafkaConsumer),
                group_id=self._options.group if self._options.assign is not None else None,
                enable_auto_commit=False,
                auto_offset_reset="none",
            )

    def close(self) -> None:
        with suppress(kafka.errors.KafkaError):
            self._consumer.close(autocommit=False, timeout_ms=CLOSE_MS)

    # --- topics -------------------------------------------------------------------------------------------------------

    def partitions(self, topic: str) -> list[int]:
        """The topic's partitions; empty if the topic does not exist."""
        with translated():
            return sorted(self._consumer.partitions_for_topic(topic) or ())

    def hear_of_new_partitions(self) -> None:
        """Ask the broker again what topics and partitions there are."""
        with translated():
            self._consumer.topics()

    def topic_id(self, topic: str) -> str:
        return self._known_topic_id(topic) if self.partitions(topic) else ""

    def _known_topic_id(self, topic: str) -> str:
        """The id that the client heard last; brokers before 2.8 have none."""
        found = self._consumer._cluster.topic_id(topic)  # No public method tells it without asking the broker again.
        return found.hex if found and found.int else ""

    def start_offsets(self, topic: str) -> dict[int, int]:
        return self._ask(self._consumer.beginning_offsets, topic)

    def end_offsets(self, topic: str) -> dict[int, int]:
        ends = self._ask(self._consumer.end_offsets, topic)
        self._ends |= {TopicPartition(topic, number): offset for number, offset in ends.items()}
        return ends

    def _ask(self, question: Callable[..., dict[TopicPartition, int]], topic: str) -> dict[int, int]:
        with translated():
            partitions = [TopicPartition(topic, number) for number in self.partitions(topic)]
            return {tp.partition: offset for tp, offset in question(partitions, timeout_ms=COMMAND_MS).items()}

    # --- positions ----------------------------------------------------------------------------------------------------

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._topic_ids.setdefault(topic, self.topic_id(topic))
        tp = TopicPartition(topic, partition)
        self._paused.discard(tp)
        with translated():
            self._consumer.assign([*self._consumer.assignment() - {tp}, tp])
            self._consumer.seek(tp, offset)
        self._positions[tp] = offset

    def release(self, topic: str, partition: int) -> None:
        tp = TopicPartition(topic, partition)
        self._paused.discard(tp)
        with translated():
            self._consumer.assign(list(self._consumer.assignment() - {tp}))

    def position(self, topic: str, partition: int) -> int:
        return self._positions[TopicPartition(topic, partition)]

    def known_end(self, topic: str, partition: int) -> int:
        tp = TopicPartition(topic, partition)
        highwater = None if tp in self._paused else self._consumer.highwater(tp)
        return max(self._ends.get(tp, 0), highwater or 0)

    def pause(self, topic: str, partition: int) -> None:
        """Release the partition until `resume`.

        The client's own pause loses records.  kafka-python 3.0.12 puts aside what it has fetched and not returned, and
        mostly neither finds it again nor fetches what follows.
        """
        tp = TopicPartition(topic, partition)
        if tp not in self._paused:
            self._ends[tp] = self.known_end(topic, partition)
            self._paused.add(tp)
            self._consumer.assign(list(self._consumer.assignment() - {tp}))

    def resume(self, topic: str, partition: int) -> None:
        if TopicPartition(topic, partition) in self._paused:
            self.seek(topic, partition, self.position(topic, partition))

    def commit(self, offsets: Offsets) -> None:
        """Commit without waiting; for partitions that are not the group's to assign."""
        with suppress(kafka.errors.KafkaError):
            self._consumer.commit_async(offsets)

    # --- records ------------------------------------------------------------------------------------------------------

    def poll(self, timeout: float, limit: int) -> list[Record]:
        if not self._consumer.assignment():
            time.sleep(min(timeout, IDLE_SECONDS))
            return []
        batches = self._fetched(timeout, limit)
        self._look_for_new_topics()
        records = [
            Record(
                r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, _headers(r.headers) if r.headers else ()
            )
            for batch in batches.values()
            for r in batch
        ]
        self._note_positions(batches)
        self._look_for_stall(bool(records))
        return records

    def _fetched(self, timeout: float, limit: int) -> dict[TopicPartition, list[Any]]:
        """Records that the client has fetched.

        The client unpacks as many as it is asked for, so we ask for few at a time and stop at `POLL_BYTES`.
        """
        batches: dict[TopicPartition, list[Any]] = {}
        n_records = n_bytes = 0
        while n_records < limit and n_bytes < POLL_BYTES:
            n_asked = min(limit - n_records, _AT_ONCE)
            with translated():
                more = self._consumer.poll(timeout_ms=0 if batches else int(1000 * timeout), max_records=n_asked)
            for tp, batch in more.items():
                batches.setdefault(tp, []).extend(batch)
                n_bytes += sum(len(r.value or b"") + len(r.key or b"") for r in batch)
            n_more = sum(map(len, more.values()))
            n_records += n_more
            if n_more < n_asked:
                break
        return batches

    def _note_positions(self, batches: Mapping[TopicPartition, list[Any]]) -> None:
        self._positions |= {tp: batch[-1].offset + 1 for tp, batch in batches.items()}
        for tp in self._consumer.assignment() - batches.keys():
            if self.known_end(*tp) > self._positions[tp]:  # A transaction's mark is no record, nor is a compacted one.
                with suppress(kafka.errors.KafkaError):
                    self._positions[tp] = self._consumer.position(tp, timeout_ms=_MARKS_MS) or self._positions[tp]

    # --- silence ------------------------------------------------------------------------------------------------------

    def _look_for_stall(self, has_moved: bool) -> None:
        """Notice a broker that is away, and a client that has stopped reading."""
        now = time.monotonic()
        if has_moved:
            self._moved_at, self._n_rebuilds, self._silence = now, 0, None
            return
        if now - self._moved_at > _QUIET_SECONDS and now - self._asked_at > _ASK_SECONDS:
            self._silence = self.why_silent(now)
            self._asked_at = time.monotonic()
        if self._silence:
            self._moved_at = now - _QUIET_SECONDS  # The client has not stalled while the broker is away.
            raise Unavailable(self._silence)
        if not any(self.known_end(*tp) > self.position(*tp) for tp in self._consumer.assignment()):
            self._moved_at = max(self._moved_at, now - 2 * _QUIET_SECONDS)
        elif now - self._moved_at > _STALL_SECONDS:
            self._rebuild_consumer()

    def why_silent(self, now: float) -> str | None:
        """Why no record can come; None if the brokers of our partitions answer.

        A broker that hangs still accepts connections, so it has to answer a question.
        """
        where = ", ".join(servers(self._options.client))
        if not answers(self._options.client):
            return f"no broker answers at {where}"
        silence = None
        try:
            with translated():
                self._consumer.end_offsets(list(self._consumer.assignment()), timeout_ms=_ANSWER_MS)
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
        missing = {topic for topic in {tp.topic for tp in self._consumer.assignment()} if not self.partitions(topic)}
        self._missing = {topic: self._missing.get(topic, now) for topic in missing}
        for topic, since in self._missing.items():
            if now - since > MISSING_SECONDS:
                raise TopicMismatch(f"topic {topic!r} was deleted while we read it")

    def _rebuild_consumer(self) -> None:
        """Replace the client by a new one at the same positions."""
        if self._n_rebuilds == _MAX_REBUILDS:
            raise Stalled(
                f"records wait, but {_MAX_REBUILDS} clients have read none in {_STALL_SECONDS:g} seconds each"
            )
        logger.warning("records wait, but none came for %g seconds: building a new client", _STALL_SECONDS)
        old, self._consumer = self._consumer, self._new_consumer()
        self._consumer.assign(list(old.assignment()))
        for tp in old.assignment():
            self._consumer.seek(tp, self._positions[tp])
        with suppress(kafka.errors.KafkaError):
            old.close(autocommit=False, timeout_ms=CLOSE_MS)
        self._n_rebuilds += 1
        self._moved_at = time.monotonic()


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> Headers:
    """A header's value may be null on Kafka; we take it for an empty one."""
    return [(name, value or b"") for name, value in headers]
