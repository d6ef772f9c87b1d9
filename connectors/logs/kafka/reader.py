"""The consumer that reads, through kafka-python."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

import kafka.errors
from kafka import KafkaConsumer, TopicPartition

from ..cluster.commit_notes import to_note
from ..cluster.group import Offsets
from ..cluster.options import STABLE_SECONDS, KafkaOptions
from ..cluster.reader import AT_ONCE, Partition, without_nulls
from ..cluster.reader import Reader as AnyReader
from ..transport import POLL_BYTES, Committed, Record
from .client import CLOSE_MS, COMMAND_MS, client_options, to_client
from .errors import telling_refusals, translated

_MARKS_MS = 50  # for a position, which the client mostly knows


class Reader(AnyReader):
    """Reads with a consumer of kafka-python."""

    def __init__(self, options: KafkaOptions) -> None:
        super().__init__(options)
        self._consumer = self._new_consumer()

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

    def _known_topic_id(self, topic: str) -> str:
        """The id that the client heard last; brokers before 2.8 have none."""
        found = self._consumer._cluster.topic_id(topic)  # No public method tells it without asking the broker again.
        return found.hex if found and found.int else ""

    def start_offsets(self, topic: str) -> dict[int, int]:
        return self._ask(self._consumer.beginning_offsets, topic)

    def end_offsets(self, topic: str, *, unstable: bool = False) -> dict[int, int]:
        if unstable:
            options = client_options(self._options.client, KafkaConsumer) | {"isolation_level": "read_uncommitted"}
            with translated(), KafkaConsumer(**options) as consumer:
                return self._ask(consumer.end_offsets, topic)
        ends = self._ask(self._consumer.end_offsets, topic)
        self._ends |= {TopicPartition(topic, number): offset for number, offset in ends.items()}
        return ends

    def _ask(self, question: Callable[..., dict[TopicPartition, int]], topic: str) -> dict[int, int]:
        with translated():
            partitions = [TopicPartition(topic, number) for number in self.partitions(topic)]
            return {tp.partition: offset for tp, offset in question(partitions, timeout_ms=COMMAND_MS).items()}

    # --- positions ----------------------------------------------------------------------------------------------------

    def known_end(self, topic: str, partition: int) -> int:
        tp = TopicPartition(topic, partition)
        highwater = None if tp in self._paused else self._consumer.highwater(tp)
        return max(self._ends.get(tp, 0), highwater or 0)

    def committed(self, topic: str, partitions: Collection[int]) -> dict[int, Committed]:
        is_transactional = self._options.is_transactional
        client = client_options(self._options.client, KafkaConsumer) | {
            "group_id": self._options.group,
            "enable_auto_commit": False,
            "isolation_level": "read_committed" if is_transactional else "read_uncommitted",
        }
        timeout_ms = int(1000 * STABLE_SECONDS) if is_transactional else COMMAND_MS
        with translated(), KafkaConsumer(**client) as consumer:
            found = {
                number: consumer.committed(TopicPartition(topic, number), metadata=True, timeout_ms=timeout_ms)
                for number in partitions
            }
        return {
            number: Committed(answer.offset, to_note(answer.metadata)) for number, answer in found.items() if answer
        }

    def commit(self, offsets: Offsets) -> None:
        with suppress(kafka.errors.KafkaError):
            self._consumer.commit_async(to_client(offsets))

    def _reading(self) -> Collection[Partition]:
        return self._consumer.assignment()

    def _fetch_from(self, partition: Partition, offset: int) -> None:
        tp = TopicPartition(*partition)
        with translated():
            self._consumer.assign([*self._consumer.assignment() - {tp}, tp])
            self._consumer.seek(tp, offset)

    def _fetch_no_more(self, partition: Partition) -> None:
        with translated():
            self._consumer.assign(list(self._consumer.assignment() - {TopicPartition(*partition)}))

    def _ask_brokers(self, seconds: float) -> None:
        with translated():
            self._consumer.end_offsets(list(self._consumer.assignment()), timeout_ms=int(1000 * seconds))

    def _rebuild(self) -> None:
        old, self._consumer = self._consumer, self._new_consumer()
        self._consumer.assign(list(old.assignment()))
        for tp in old.assignment():
            self._consumer.seek(tp, self._positions[tp])
        with suppress(kafka.errors.KafkaError):
            old.close(autocommit=False, timeout_ms=CLOSE_MS)

    # --- records ------------------------------------------------------------------------------------------------------

    def _take(self, timeout: float, limit: int) -> list[Record]:
        batches = self._fetched(timeout, limit)
        records = [
            Record(
                r.topic,
                r.partition,
                r.offset,
                -1 if r.timestamp is None else r.timestamp,  # None: in the oldest format of messages
                r.key,
                r.value,
                without_nulls(r.headers) if r.headers else (),
            )
            for batch in batches.values()
            for r in batch
        ]
        self._note_positions(batches)
        return records

    def _fetched(self, timeout: float, limit: int) -> dict[TopicPartition, list[Any]]:
        """Records that the client has fetched.

        The client unpacks as many as it is asked for, so we ask for few at a time and stop at `POLL_BYTES`.
        """
        batches: dict[TopicPartition, list[Any]] = {}
        n_records = n_bytes = 0
        while n_records < limit and n_bytes < POLL_BYTES:
            n_asked = min(limit - n_records, AT_ONCE)
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
