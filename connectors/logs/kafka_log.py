"""Apache Kafka as a `transport.Transport`, with kafka-python.

Two consumers share the work.  One is a member of the group, reads nothing, and tells which partitions are ours; the
other reads those partitions, with the labels beside the events, from where it is told.  So the positions, pauses and
topics of the reading are never a rebalance's business, and the same partition of two topics stays with one process.

Offsets are committed for whoever looks at the group's lag; where to begin is the checkpoints' business.
"""

import logging
import queue
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from typing import Any, Literal

import kafka.errors
from kafka import AsyncConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.consumer.fetcher import Fetcher
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.future import Future
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.partitioner.default import murmur2
from kafka.structs import OffsetAndMetadata

from ..records.codec import MAX_BYTES
from ..settings.layers import Given
from ..settings.sections import ConfigError, Settings, parse_partitions, transaction_timeout_ms
from . import kafka_options
from .transport import (
    POLL_BYTES,
    AccessDenied,
    Committed,
    Headers,
    OutputsLost,
    Ownership,
    PositionRefused,
    Record,
    Shape,
    Stalled,
    TakenOver,
    TopicMismatch,
    Unavailable,
    made_again,
)

logger = logging.getLogger(__name__)
_client_logger = logging.getLogger("kafka")
_client_logger.setLevel(logging.CRITICAL)  # it tells each attempt that fails, dozens a second; we say what it means

_Offsets = dict[TopicPartition, OffsetAndMetadata]

_OURS = {
    "group_id": "group.id",
    "group_instance_id": "group.instance",
    "transactional_id": "daemon.exactly_once",
    "enable_auto_commit": "always off",
    "auto_offset_reset": "daemon.start",
}
_DEFAULTS: dict[str, Any] = {
    "allow_auto_create_topics": False,
    "isolation_level": "read_committed",
    "bootstrap_timeout_ms": 5000,
    "reconnect_backoff_max_ms": 1000,
    "linger_ms": 50,
    "metrics_enabled": False,  # nobody reads them, and we have our own
    "batch_size": 65536,
    "max_block_ms": 15_000,  # for the shape of a topic, which is known unless the topic was deleted
    "max_request_size": 16 << 20,  # what could be read, can be put back by `dlq replay`
    "fetch_max_bytes": 16 << 20,  # of all partitions; they are in memory until they were polled
    "delivery_timeout_ms": 2**31 - 1,  # a broker that is away is waited for: what was produced is never given up
}
_STATIC_SESSION_MS = 10_000  # a named member comes back at once, so its partitions need not wait long for another
_MEMBERSHIP_MS = 500  # for one look at the group
_STABLE_MS = 1000  # for offsets of transactions to be certain, before the loop goes round once more
_MARKS_MS = 50  # for a position, which the client mostly knows
_COMMAND_MS = 10_000  # for questions to the broker
_AT_ONCE = 20  # records that the client is asked for, before their bytes are looked at
_IDLE_SECONDS = 0.1  # of sleep while there is nothing to read from
_ADMIN_TRIES = 10
_FLUSH_SECONDS = 5.0
_CLOSE_SECONDS = 5.0
_MAX_BACKLOG = 32 << 20  # bytes that were produced and are not known to be durable
_REFUSALS = (
    kafka.errors.SaslAuthenticationFailedError,
    kafka.errors.UnsupportedSaslMechanismError,
    kafka.errors.IllegalSaslStateError,
    kafka.errors.AuthorizationError,
)
_WAITS = (1.0, 2.0, 5.0, 10.0)  # seconds between attempts to reach a broker
_QUIET_SECONDS = 5.0  # without a record, before it is asked whether there is a broker at all
_ASK_SECONDS = 1.0
_ANSWER_MS = 3000
_MISSING_SECONDS = 5.0
_STALL_SECONDS = 60.0  # with records to read and none that come, before the client is built anew
_MAX_REBUILDS = 3  # one after the other


class KafkaLog:
    """The topics of a Kafka cluster.

    Parameters
    ----------
    settings
        The configuration; [kafka] is passed on to the client.
    group
        Of consumers.

    Raises
    ------
    Unavailable
        If no broker answers.
    AccessDenied
        If the broker does not know us.
    """

    def __init__(self, settings: Settings, group: str) -> None:
        self._settings = settings
        self._group = group
        self._assign = parse_partitions(settings.group.assign) if settings.group.assign else None
        self._is_transactional = settings.daemon.exactly_once
        self._reader = self._new_reader()
        self._member: _Member | None = None
        self._ownership: Ownership | None = None
        self._untold: deque[_Notice] = deque()
        self._notice: _Notice | None = None  # that the owner is being told
        self._producer: KafkaProducer | None = None
        self._paused: set[TopicPartition] = set()
        self._positions: dict[TopicPartition, int] = {}  # the next offset to come
        self._ends: dict[TopicPartition, int] = {}
        self._moved_at = time.monotonic()  # a record came, or none was there
        self._asked_at = 0.0  # whether there is a broker
        self._silence: str | None = None  # why nothing can be read
        self._topic_ids: dict[str, str] = {}  # of the topics that are read
        self._missing: dict[str, float] = {}  # topics that the broker does not know, and since when
        self._n_rebuilds = 0
        self._backlog = 0
        self._outputs: set[str] = set()  # topics of what is not known to be durable
        self._failure: Exception | None = None  # of something that was produced
        self._in_transaction = False
        self._owned: set[int] = set()  # the partitions, as the owner was told

    @classmethod
    def connect(
        cls, settings: Settings, group: str, stop: Callable[[], bool], tell: Callable[[str], None]
    ) -> "KafkaLog":
        """Wait for a broker, and connect to it; see `open_log`."""
        attempts = 0
        while True:
            try:
                if not _answers(settings.kafka):  # a client that fails to connect leaves a thread behind
                    raise Unavailable(f"no broker answers at {', '.join(_servers(settings.kafka))}")
                return cls(settings, group)
            except Unavailable as error:
                tell(str(error))
                if attempts == 0 and not stop():
                    logger.warning("%s; waiting for it", error)
                until = time.monotonic() + _WAITS[min(attempts, len(_WAITS) - 1)]
                attempts += 1
                while time.monotonic() < until and not stop():
                    time.sleep(_IDLE_SECONDS)
                if stop():
                    raise

    def __enter__(self) -> "KafkaLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def subscribe(self, topic: str, ownership: Ownership) -> None:
        if not self._partitions(topic):
            raise TopicMismatch(
                f"there is no topic {topic!r}; `streamsvm topics CONFIG.toml --create` makes all topics"
            )
        if self._assign is not None:
            missing = set(self._assign) - set(self._partitions(topic))
            if missing:
                raise TopicMismatch(f"group.assign has partitions {sorted(missing)}, which topic {topic!r} has not")
            ownership.assigned(self._assign)
            return
        self._ownership = ownership
        if self._is_transactional:
            self._new_producer()  # it ends what a killed process of this name has left open: `committed` waits for that
        self._member = _Member(self._new_group_consumer(), topic)

    def topic_id(self, topic: str) -> str:
        if not self._partitions(topic):
            return ""
        return self._known_topic_id(topic)

    def _known_topic_id(self, topic: str) -> str:
        """The id as the client has heard of it last; brokers before 2.8 know none."""
        found = self._reader._cluster.topic_id(topic)  # no public method tells it without asking the broker again
        return found.hex if found and found.int else ""

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._topic_ids.setdefault(topic, self.topic_id(topic))
        tp = TopicPartition(topic, partition)
        self._paused.discard(tp)
        with _translated():
            self._reader.assign([*self._reader.assignment() - {tp}, tp])
            self._reader.seek(tp, offset)
        self._positions[tp] = offset

    def release(self, topic: str, partition: int) -> None:
        tp = TopicPartition(topic, partition)
        self._paused.discard(tp)
        with _translated():
            self._reader.assign(list(self._reader.assignment() - {tp}))

    def poll(self, timeout: float, limit: int) -> list[Record]:
        self._tell_news()
        if not self._reader.assignment():
            time.sleep(min(timeout, _IDLE_SECONDS))
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
        """What the client has fetched; it unpacks what it is asked for, so it is asked for a few records at a time."""
        batches: dict[TopicPartition, list[Any]] = {}
        n_records = n_bytes = 0
        while n_records < limit and n_bytes < POLL_BYTES:
            n_asked = min(limit - n_records, _AT_ONCE)
            with _translated():
                more = self._reader.poll(timeout_ms=0 if batches else int(1000 * timeout), max_records=n_asked)
            for tp, batch in more.items():
                batches.setdefault(tp, []).extend(batch)
                n_bytes += sum(len(r.value or b"") + len(r.key or b"") for r in batch)
            n_more = sum(map(len, more.values()))
            n_records += n_more
            if n_more < n_asked:
                break
        return batches

    def position(self, topic: str, partition: int) -> int:
        return self._positions[TopicPartition(topic, partition)]

    def known_end(self, topic: str, partition: int) -> int:
        tp = TopicPartition(topic, partition)
        highwater = None if tp in self._paused else self._reader.highwater(tp)
        return max(self._ends.get(tp, 0), highwater or 0)

    def pause(self, topic: str, partition: int) -> None:
        """Let the reader forget the partition for a while.

        Its own pause loses the records that it has fetched and not returned: with kafka-python 3.0.12 they are put
        aside, found again only under luck, and nothing after them is fetched.
        """
        tp = TopicPartition(topic, partition)
        if tp not in self._paused:
            self._ends[tp] = self.known_end(topic, partition)
            self._paused.add(tp)
            self._reader.assign(list(self._reader.assignment() - {tp}))

    def resume(self, topic: str, partition: int) -> None:
        if TopicPartition(topic, partition) in self._paused:
            self.seek(topic, partition, self.position(topic, partition))

    def start_offsets(self, topic: str) -> dict[int, int]:
        return self._ask(self._reader.beginning_offsets, topic)

    def end_offsets(self, topic: str) -> dict[int, int]:
        ends = self._ask(self._reader.end_offsets, topic)
        self._ends |= {TopicPartition(topic, number): offset for number, offset in ends.items()}
        return ends

    def _ask(self, question: Callable[..., dict[TopicPartition, int]], topic: str) -> dict[int, int]:
        with _translated():
            partitions = [TopicPartition(topic, number) for number in self._partitions(topic)]
            return {tp.partition: offset for tp, offset in question(partitions, timeout_ms=_COMMAND_MS).items()}

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
        """Append a record; waits while too much that was produced is not durable yet."""
        producer = self._producer or self._new_producer()
        if self._is_transactional and not self._in_transaction:
            with _transaction():
                producer.begin_transaction()
            self._in_transaction = True
        if value is None and key is None:
            value = b""  # others can write such records, which then are refused; this client cannot
        try:
            try:
                future = producer.send(topic, value, key=key, headers=list(headers), partition=partition)
            except ValueError:  # of a partition that is unknown
                _find_partition(producer, topic, partition)
                future = producer.send(topic, value, key=key, headers=list(headers), partition=partition)
        except kafka.errors.MessageSizeTooLargeError as error:
            raise TopicMismatch(
                f"a record for topic {topic!r} is too large: {error}; see kafka.max_request_size"
            ) from None
        except kafka.errors.KafkaTimeoutError as error:
            self._require_topics([topic])
            raise Unavailable(f"topic {topic!r} does not answer: {error}") from None
        except kafka.errors.KafkaError as error:
            raise OutputsLost(f"topic {topic!r} cannot be written to: {error}") from None
        self._outputs.add(topic)
        future.add_errback(self._note_failure)
        self._backlog += len(value or b"") + len(key or b"") + sum(len(content) for _, content in headers)
        while self._backlog > _MAX_BACKLOG:
            with suppress(Unavailable):
                self.flush()

    def flush(self) -> None:
        if self._producer is not None:
            try:
                self._producer.flush(timeout=_FLUSH_SECONDS)
            except kafka.errors.KafkaTimeoutError:
                self._require_topics(self._outputs)
                raise Unavailable(f"no acknowledgement within {_FLUSH_SECONDS:g} seconds") from None
            finally:
                self._check_failure()
        self._backlog = 0
        self._outputs.clear()

    def can_commit(self) -> bool:
        return not self._is_transactional or self._membership() is not None

    def commit(self, offsets: Mapping[tuple[str, int], Committed]) -> bool:
        ours = {
            TopicPartition(*where): OffsetAndMetadata(committed.offset, committed.note, -1)
            for where, committed in offsets.items()
        }
        if self._is_transactional:
            return self._commit_transaction(ours)
        if self._notice is not None and self._notice.kind == "revoked":
            self._notice.offsets.update(ours)
        elif self._member is not None:
            self._member.commit(ours)
        else:
            with suppress(kafka.errors.KafkaError):
                self._reader.commit_async(ours)
        return True

    def committed(self, topic: str, partitions: Collection[int] | None = None) -> dict[int, Committed]:
        """What was committed last.

        With transactions, only what no unfinished one may replace: its owner may be killed, or given up for dead, after
        it has sent offsets and before their transaction ended.
        """
        numbers = self._partitions(topic) if partitions is None else partitions
        options = self._options(KafkaConsumer) | {
            "group_id": self._group,
            "enable_auto_commit": False,
            "isolation_level": "read_committed" if self._is_transactional else "read_uncommitted",
        }
        timeout_ms = _STABLE_MS if self._is_transactional else _COMMAND_MS
        with _translated():
            try:
                with KafkaConsumer(**options) as consumer:
                    answers = {
                        number: consumer.committed(TopicPartition(topic, number), metadata=True, timeout_ms=timeout_ms)
                        for number in numbers
                    }
            except kafka.errors.KafkaTimeoutError:
                raise Unavailable(
                    f"what group {self._group!r} has committed for topic {topic!r} is not known yet: the broker does "
                    "not answer, or the transaction of a killed process has to time out"
                ) from None
        return {number: Committed(found.offset, found.metadata) for number, found in answers.items() if found}

    def close(self) -> None:
        """Leave the group, unless as a named member, which is expected back."""
        for notice in self._untold:
            notice.answered.success(None)
        if self._member is not None:
            self._member.close()
        with suppress(kafka.errors.KafkaError):
            self._reader.close(autocommit=False, timeout_ms=int(1000 * _CLOSE_SECONDS))
        if self._in_transaction:  # readers of committed records would wait for its end
            thread = threading.Thread(target=self._abort_quietly, name="abort", daemon=True)
            thread.start()  # the client waits for ever where there is no broker
            thread.join(_CLOSE_SECONDS)
        if self._producer is not None:
            with suppress(kafka.errors.KafkaError):
                self._producer.close(timeout=_CLOSE_SECONDS)

    # --- the parts ----------------------------------------------------------------------------------------------------

    def _options(self, client: type) -> dict[str, Any]:
        return _client_options(self._settings.kafka, client)

    def _new_reader(self) -> KafkaConsumer:
        with _translated(), _refusals():
            return KafkaConsumer(
                **self._options(KafkaConsumer),
                group_id=self._group if self._assign is not None else None,
                enable_auto_commit=False,
                auto_offset_reset="none",
            )

    def _new_producer(self) -> KafkaProducer:
        options = {"compression_type": _compression(), **self._options(KafkaProducer)}
        if self._is_transactional:
            options["transactional_id"] = f"{self._group}-{self._settings.group.instance or uuid.uuid4()}"
            options["transaction_timeout_ms"] = transaction_timeout_ms(self._settings)
        with _translated():
            self._producer = KafkaProducer(**options)
            if self._is_transactional:
                self._init_transactions(self._producer)
        return self._producer

    def _init_transactions(self, producer: KafkaProducer) -> None:
        try:
            producer.init_transactions()
        except kafka.errors.KafkaError as error:
            if "InvalidTransactionTimeout" not in str(error):
                raise
            raise ConfigError(
                [
                    f"the broker allows no transaction of {transaction_timeout_ms(self._settings)} ms: set "
                    "kafka.transaction_timeout_ms, and a shorter daemon.checkpoint_seconds, or raise the broker's "
                    "transaction.max.timeout.ms"
                ]
            ) from None

    def _partitions(self, topic: str) -> list[int]:
        with _translated():
            return sorted(self._reader.partitions_for_topic(topic) or ())

    def _new_group_consumer(self) -> KafkaConsumer:
        options = {**self._options(KafkaConsumer), "isolation_level": "read_uncommitted"}  # it reads nothing
        if self._settings.group.instance:
            options = {"session_timeout_ms": _STATIC_SESSION_MS, **options}
        with _translated():
            return KafkaConsumer(
                **options,
                group_id=self._group,
                group_instance_id=self._settings.group.instance,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                partition_assignment_strategy=[CooperativeStickyAssignor],
            )

    def _tell_news(self) -> None:
        """Tell what the group has decided."""
        if self._member is None or self._ownership is None:
            return
        self._untold.extend(self._member.news())
        while self._untold:
            self._notice = notice = self._untold[0]
            if notice.kind != "assigned":
                self._owned -= set(notice.numbers)
            elif not set(notice.numbers) <= set(self._partitions(self._member.topic)):
                with _translated():
                    self._reader.topics()  # which hears of the new partitions, of all topics
            try:
                getattr(self._ownership, notice.kind)(notice.numbers)
            except Unavailable:
                raise  # and tell it again
            except BaseException:
                self._untold.clear()
                raise
            finally:
                self._notice = None
            if notice.kind == "assigned":
                self._owned |= set(notice.numbers)
            self._untold.popleft()
            notice.answered.success(None)
            if notice.kind == "lost" and self._is_transactional:
                self._abort()
                if self._owned:
                    raise TakenOver("some partitions were lost in the middle of a transaction of more")

    def _note_positions(self, batches: Mapping[TopicPartition, list[Any]]) -> None:
        self._positions |= {tp: batch[-1].offset + 1 for tp, batch in batches.items()}
        for tp in self._reader.assignment() - batches.keys():
            if self.known_end(*tp) > self._positions[tp]:  # the rest may be marks of transactions, or compacted away
                with suppress(kafka.errors.KafkaError):
                    self._positions[tp] = self._reader.position(tp, timeout_ms=_MARKS_MS) or self._positions[tp]

    def _look_for_stall(self, has_moved: bool) -> None:
        """Notice a broker that is away, and a client that has stopped reading."""
        now = time.monotonic()
        if has_moved:
            self._moved_at, self._n_rebuilds, self._silence = now, 0, None
            return
        if now - self._moved_at > _QUIET_SECONDS and now - self._asked_at > _ASK_SECONDS:
            self._silence = self._why_silent(now)
            self._asked_at = time.monotonic()
        if self._silence:
            self._moved_at = now - _QUIET_SECONDS  # which is no stall of ours
            raise Unavailable(self._silence)
        if not any(self.known_end(*tp) > self.position(*tp) for tp in self._reader.assignment()):
            self._moved_at = max(self._moved_at, now - 2 * _QUIET_SECONDS)
        elif now - self._moved_at > _STALL_SECONDS:
            self._rebuild_reader()

    def _why_silent(self, now: float) -> str | None:
        """Why no record can come; None if the brokers of our partitions answer.

        A broker that hangs accepts connections still, so it is asked something.
        """
        where = ", ".join(_servers(self._settings.kafka))
        if not _answers(self._settings.kafka):
            return f"no broker answers at {where}"
        silence = None
        try:
            with _translated():
                self._reader.end_offsets(list(self._reader.assignment()), timeout_ms=_ANSWER_MS)
        except Unavailable:
            silence = f"the broker at {where} accepts connections and does not answer"
        self._look_for_topics(now)
        return None if self._missing else silence

    def _look_for_new_topics(self) -> None:
        """Notice a topic that was made again, before its records are taken for the old one's."""
        for topic, known in self._topic_ids.items():
            if known and self._known_topic_id(topic) not in ("", known):
                raise made_again(topic)

    def _look_for_topics(self, now: float) -> None:
        """Notice a topic that was deleted; a broker that has just started may not know it for a moment."""
        missing = {topic for topic in {tp.topic for tp in self._reader.assignment()} if not self._partitions(topic)}
        self._missing = {topic: self._missing.get(topic, now) for topic in missing}
        for topic, since in self._missing.items():
            if now - since > _MISSING_SECONDS:
                raise TopicMismatch(f"topic {topic!r} is there no more: it was deleted while it was read")

    def _rebuild_reader(self) -> None:
        """Begin again with a new client, where the old one was."""
        if self._n_rebuilds == _MAX_REBUILDS:
            raise Stalled(f"records wait, and none came from {_MAX_REBUILDS} clients, {_STALL_SECONDS:g} seconds each")
        logger.warning("records wait, and none came for %g seconds: building the client anew", _STALL_SECONDS)
        old, self._reader = self._reader, self._new_reader()
        self._reader.assign(list(old.assignment()))
        for tp in old.assignment():
            self._reader.seek(tp, self._positions[tp])
        with suppress(kafka.errors.KafkaError):
            old.close(autocommit=False, timeout_ms=int(1000 * _CLOSE_SECONDS))
        self._n_rebuilds += 1
        self._moved_at = time.monotonic()

    def _require_topics(self, names: Iterable[str]) -> None:
        """Raise `TopicMismatch` if a topic was deleted, which the client would wait for without end."""
        if self._why_silent(time.monotonic()):  # then a new client would not connect, and leave a thread behind
            return
        with suppress(Unavailable):
            missing = set(names) - describe_topics(self._settings, sorted(names)).keys()
            if missing:
                time.sleep(_MISSING_SECONDS)  # a broker that has just started may not know a topic for a moment
                missing -= describe_topics(self._settings, sorted(missing)).keys()
            if missing:
                raise TopicMismatch(
                    f"topic {min(missing)!r} is there no more: it was deleted while outputs went to it; "
                    "`streamsvm topics CONFIG.toml --create` makes it anew"
                )

    def _note_failure(self, error: Exception) -> None:
        self._failure = self._failure or error

    def _check_failure(self) -> None:
        if isinstance(self._failure, kafka.errors.MessageSizeTooLargeError | kafka.errors.RecordListTooLargeError):
            raise TopicMismatch(
                "an output is larger than its topic takes; most likely a record for the dead-letter topic: "
                f"raise max.message.bytes of {self._settings.log.dlq!r}"
            )
        if isinstance(self._failure, kafka.errors.AuthorizationError):
            raise AccessDenied(f"the broker refuses our outputs: {self._failure}")
        if self._failure is not None:  # the producer is of no use any more, either
            raise OutputsLost(f"an output was refused: {self._failure}")

    def _commit_transaction(self, offsets: _Offsets) -> bool:
        """End the transaction with these offsets; False if it was given up instead."""
        producer = self._producer
        assert producer is not None
        if not self._in_transaction and not offsets:
            return True
        membership = self._membership()
        if membership is None:
            return False
        with _transaction():
            if not self._in_transaction:
                producer.begin_transaction()
                self._in_transaction = True
            try:
                if offsets:
                    producer.send_offsets_to_transaction(offsets, membership)
            except kafka.errors.CommitFailedError as error:  # of a generation that is over
                self._give_up(str(error))
                return False
            producer.commit_transaction()  # which knows no timeout: the watchdog's business
        self._check_failure()
        self._in_transaction = False
        self._backlog = 0
        return True

    def _membership(self) -> Any:
        """What offsets are committed with; None while partitions are lost that the owner believes to have.

        The broker would not look at an offset of a member without a generation, and once the group is joined again it
        would accept one of a partition that was lost before: so the loss is looked for after the membership.
        """
        assert self._member is not None
        membership = self._member.metadata()
        is_losing = self._member.is_losing or any(notice.kind == "lost" for notice in self._untold)
        return None if is_losing or membership.generation_id < 0 else membership

    def _give_up(self, why: str) -> None:
        """Abort the transaction, and let the owner begin again where the group's offsets are."""
        logger.warning("the transaction is given up, and its records are taken again: %s", why)
        self._abort()
        owned = sorted(self._owned)
        notices = [_Notice("lost", owned)]
        if "UnknownMember" not in why:  # or else the group tells us that we have lost them, and what we get anew
            notices.append(_Notice("assigned", owned))
        rest = list(self._untold)
        at = 1 if self._notice else 0
        self._untold = deque([*rest[:at], *notices, *rest[at:]])

    def _abort_quietly(self) -> None:
        with suppress(TakenOver, OutputsLost):
            self._abort()

    def _abort(self) -> None:
        if self._in_transaction:
            assert self._producer is not None
            with _transaction():
                self._producer.abort_transaction()
            # kafka-python 3.0.12 keeps offsets that the group has refused, and would commit them with the next ones.
            self._producer._transaction_manager._pending_txn_offset_commits.clear()
        self._in_transaction = False
        self._failure = None
        self._backlog = 0


# --- the group --------------------------------------------------------------------------------------------------------


class _Notice:
    """A decision of the group that the loop has not been told of."""

    def __init__(self, kind: Literal["assigned", "revoked", "lost"], numbers: list[int]) -> None:
        self.kind = kind
        self.numbers = numbers
        self.answered: Future = Future()  # by the loop: the group may go on
        self.offsets: _Offsets = {}  # to be committed before it does


class _Member(AsyncConsumerRebalanceListener):
    """This process's membership of the group, kept up by a thread of its own, however long the loop is busy.

    The group's decisions wait for the loop to ask for them, and a revocation for the loop to have saved its state.  If
    that takes too long for the group, it goes on without us; the epochs of the checkpoints see to the rest.
    """

    def __init__(self, consumer: KafkaConsumer, topic: str) -> None:
        self._consumer = consumer
        self.topic = topic
        self._notices: queue.SimpleQueue[_Notice] = queue.SimpleQueue()
        self._offsets: _Offsets = {}  # to be committed at the next opportunity
        self._offsets_lock = threading.Lock()
        self._failure: Exception | None = None
        self._n_losses = 0  # how often everything was lost
        self._n_told = 0  # and how often the loop has taken the news
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._take_part, name="group", daemon=True)
        self._thread.start()

    # --- for the loop -------------------------------------------------------------------------------------------------

    def news(self) -> Iterator[_Notice]:
        """What the group has decided since the last call."""
        if self._failure is not None:
            raise self._failure
        while not self._notices.empty():
            notice = self._notices.get()
            self._n_told += notice.kind == "lost"
            yield notice

    @property
    def is_losing(self) -> bool:
        """Whether partitions are lost, and the loop has not heard of it; true before the group is joined anew."""
        return self._n_losses != self._n_told

    def commit(self, offsets: _Offsets) -> None:
        """Commit soon."""
        with self._offsets_lock:
            self._offsets |= offsets

    def metadata(self) -> Any:
        """For transactions."""
        return self._consumer.group_metadata()

    def close(self) -> None:
        self._is_closing.set()
        while not self._notices.empty():
            self._notices.get().answered.success(None)
        self._thread.join(2 * _CLOSE_SECONDS)

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
                self._consumer.close(autocommit=False, timeout_ms=int(1000 * _CLOSE_SECONDS))

    def _poll(self) -> None:
        try:
            with _translated():
                self._consumer.poll(timeout_ms=_MEMBERSHIP_MS)
                self._commit()
        except Unavailable as error:
            logger.info("the group: %s", error)
            time.sleep(_MEMBERSHIP_MS / 1000)

    def _commit(self) -> None:
        with self._offsets_lock:
            offsets, self._offsets = self._offsets, {}
        try:
            if offsets:
                self._consumer.commit(offsets, timeout_ms=int(1000 * _CLOSE_SECONDS))
        except (kafka.errors.KafkaTimeoutError, kafka.errors.RebalanceInProgressError):
            with self._offsets_lock:
                self._offsets = offsets | self._offsets
            raise

    # --- on the thread of the client, while this one waits ------------------------------------------------------------

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        if assigned:
            self._consumer.pause(*assigned)  # the other consumer reads them
            self._notices.put(_Notice("assigned", _numbers(assigned)))

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        if not revoked or self._is_closing.is_set():
            return
        notice = _Notice("revoked", _numbers(revoked))
        self._notices.put(notice)
        await notice.answered  # heartbeats go on meanwhile
        with suppress(kafka.errors.KafkaError):
            await self._consumer.commit_async(notice.offsets)

    async def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        if lost and not self._is_closing.is_set():
            self._n_losses += 1
            self._notices.put(_Notice("lost", _numbers(lost)))


# --- topics -----------------------------------------------------------------------------------------------------------


def describe_topics(settings: Settings, names: list[str]) -> dict[str, Shape]:
    """Those of the topics that there are; their settings only if we may see them."""
    with _administrator(settings) as admin:
        counts = {}
        for topic in admin.describe_topics(names):
            error = kafka.errors.for_code(topic["error_code"])
            if issubclass(error, kafka.errors.AuthorizationError):
                raise error(topic["name"])
            if topic["partitions"]:
                counts[topic["name"]] = len(topic["partitions"])
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in counts]
        configs = admin.describe_configs(resources, config_filter="all").get("topic", {}) if counts else {}
    return {name: _shape(n_partitions, configs.get(name, {})) for name, n_partitions in counts.items()}


def _shape(n_partitions: int, config: Mapping[str, Any]) -> Shape:
    def number(name: str) -> int | None:
        return int(config[name]["value"]) if name in config else None

    return Shape(
        n_partitions,
        config["cleanup.policy"]["value"] if "cleanup.policy" in config else None,
        number("retention.ms"),
        number("max.message.bytes"),
        bool(config) and not any(item["config_source"] == "DYNAMIC_TOPIC_CONFIG" for item in config.values()),
    )


def create_topics(settings: Settings, shapes: Mapping[str, Shape], replication: int | None = None) -> None:
    """Make topics; one that somebody else has made meanwhile stays as it is."""
    topics = {
        name: {
            "num_partitions": shape.n_partitions,
            "replication_factor": replication or -1,
            "configs": {
                key: str(value)
                for key, value in (
                    ("cleanup.policy", shape.cleanup),
                    ("retention.ms", shape.retention_ms),
                    ("max.message.bytes", shape.max_bytes),
                )
                if value is not None
            },
        }
        for name, shape in shapes.items()
    }
    with _administrator(settings) as admin, suppress(kafka.errors.TopicAlreadyExistsError):
        try:
            admin.create_topics(topics, timeout_ms=_COMMAND_MS, wait_for_metadata=True)
        except (kafka.errors.InvalidReplicationFactorError, kafka.errors.PolicyViolationError) as error:
            raise TopicMismatch(f"the broker does not make the topics: {error}") from None


def offsets_at(settings: Settings, topic: str, partitions: Iterable[int], time_ms: int) -> dict[int, int]:
    """The offset of the first record of that time or later, of the partitions that have one."""
    specs = {TopicPartition(topic, number): time_ms for number in partitions}
    with _administrator(settings) as admin:
        found = admin.list_partition_offsets(specs, timeout_ms=_COMMAND_MS)
    return {tp.partition: answer.offset for tp, answer in found.items() if answer.offset >= 0}


def commit_offsets(settings: Settings, group: str, offsets: Mapping[tuple[str, int], Committed]) -> None:
    """Commit for a group without members."""
    ours = {
        TopicPartition(*where): OffsetAndMetadata(committed.offset, committed.note, -1)
        for where, committed in offsets.items()
    }
    with _administrator(settings) as admin:
        for error in admin.alter_group_offsets(group, ours).values():
            if error is not kafka.errors.NoError:
                raise error(f"offsets of group {group!r} cannot be committed")


def describe_group(settings: Settings, group: str) -> tuple[str, int]:
    """The state of a group, in the broker's words, and the number of its members."""
    with _administrator(settings) as admin:
        found = admin.describe_groups([group])[group]
    return found["group_state"], len(found["members"])


def partition_of(key: bytes, n_partitions: int) -> int:
    """Where Kafka's own clients, and most others, put a key."""
    return int((murmur2(key) & 0x7FFFFFFF) % n_partitions)


@contextmanager
def _administrator(settings: Settings) -> Iterator[KafkaAdminClient]:
    if not _answers(settings.kafka):  # which the client would take long to find out
        raise Unavailable(f"no broker answers at {', '.join(_servers(settings.kafka))}")
    with _translated(), closing(KafkaAdminClient(**_client_options(settings.kafka, KafkaAdminClient))) as admin:
        yield admin


# --- errors and options -----------------------------------------------------------------------------------------------


def read_options(given: Mapping[str, Given], settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """A [kafka] section as the clients take it, and a line for everything that is wrong with it."""
    values, problems = kafka_options.interpret(given, _OURS)
    defaults = {**_DEFAULTS, "session_timeout_ms": _STATIC_SESSION_MS} if settings.group.instance else _DEFAULTS
    problems += kafka_options.contradictions(values, given, defaults, is_transactional=settings.daemon.exactly_once)
    return values, problems


def size_problems(settings: Settings) -> list[str]:
    """Whether the producer would refuse an output of ours, one line each."""
    largest = _client_options(settings.kafka, KafkaProducer)["max_request_size"]
    least = max(settings.limits.dead_letter_bytes, MAX_BYTES) + (16 << 10)
    if not isinstance(largest, int) or largest >= least:
        return []
    return [
        f"kafka.max_request_size = {largest} must be at least {least}: for the largest dead letter "
        "(limits.dead_letter_kb), question and piece of a model"
    ]


def _client_options(given: Mapping[str, Any], client: Any) -> dict[str, Any]:
    """The options that a client knows."""
    return {key: value for key, value in {**_DEFAULTS, **given}.items() if key in client.DEFAULT_CONFIG}


def _compression() -> str | None:
    """The best that is installed; gzip, which always is, costs more time than all the rest of a record."""
    return next((name for name, module in kafka_options.CODECS.items() if find_spec(module)), None)


def _servers(options: Mapping[str, Any]) -> list[str]:
    servers = options.get("bootstrap_servers", "localhost:9092")
    return servers.split(",") if isinstance(servers, str) else list(servers)


def _answers(options: Mapping[str, Any]) -> bool:
    """Whether anything listens where the brokers should be; behind a proxy, only the client can tell."""
    if any(options.get(name) for name in ("proxy_url", "socks5_proxy")):
        return True
    for server in _servers(options):
        host, _, port = server.strip().rpartition(":")
        with suppress(OSError, ValueError), socket.create_connection((host.strip("[]"), int(port)), timeout=1):
            return True
    return False


def _retried(ask: Callable[[], Any]) -> Any:
    """An answer of the admin client, which gives up after one attempt even if another would do."""
    for _ in range(_ADMIN_TRIES - 1):
        with suppress(kafka.errors.RetriableError):
            return ask()
        time.sleep(_IDLE_SECONDS)
    return ask()


def _find_partition(producer: KafkaProducer, topic: str, partition: int | None) -> None:
    """Wait for a producer to hear of a partition, which may be new."""
    until = time.monotonic() + _MISSING_SECONDS
    while partition not in producer.partitions_for(topic):
        if time.monotonic() > until:
            raise TopicMismatch(
                f"topic {topic!r} has no partition {partition}, which the events have: give it as many partitions"
            )
        producer._metadata.request_update()
        time.sleep(_IDLE_SECONDS)


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> Headers:
    """A header may be null on Kafka, and is empty then for us."""
    return [(name, value or b"") for name, value in headers]


def _numbers(partitions: Iterable[TopicPartition]) -> list[int]:
    return sorted(tp.partition for tp in partitions)


class _Refusals(logging.Handler):
    """Finds in the client's log why it cannot connect: it raises a timeout, whatever the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.found: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        for item in record.args if isinstance(record.args, tuple) else ():
            if isinstance(item, _REFUSALS) or "CERTIFICATE_VERIFY_FAILED" in str(item):
                self.found = str(item)


def _deliver_last_words(transport: Any) -> None:
    """Let a transport of the client hand on what a broker said before it closed the connection.

    kafka-python 3.0.12 throws away what it reads together with the end of the connection: mostly why it was refused.
    The end is still there when it reads again.
    """
    receive = transport._sock_recv

    def receive_all(self: Any) -> tuple[bytes, Exception | None]:
        data, error = receive(self)
        return data, None if data else error

    transport._sock_recv = receive_all


def _end_at_open_transactions(fetcher: Any) -> None:
    """Let `highwater` of a consumer of committed records tell the end of what it can read.

    kafka-python 3.0.12 keeps the high watermark only, behind which an open transaction may hide everything else.
    """
    parse = fetcher._parse_fetched_data

    def parse_stable(self: Any, fetched: Any) -> Any:
        data = fetched.partition_data
        if self.config["isolation_level"] == "read_committed" and data.last_stable_offset >= 0:
            data.high_watermark = data.last_stable_offset
        return parse(self, fetched)

    fetcher._parse_fetched_data = parse_stable


_end_at_open_transactions(Fetcher)
_deliver_last_words(KafkaTCPTransport)
_deliver_last_words(KafkaSSLTransport)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise `AccessDenied` instead of a timeout, if the broker was there and refused us."""
    handler, level = _Refusals(), _client_logger.level
    _client_logger.addHandler(handler)
    _client_logger.propagate = False
    _client_logger.setLevel(logging.INFO)
    try:
        yield
    except kafka.errors.KafkaTimeoutError:
        if handler.found:
            raise AccessDenied(f"the broker refuses us: {handler.found}") from None
        raise Unavailable(
            "something listens there, but does not answer as a Kafka broker should: see kafka.bootstrap_servers and "
            "kafka.security_protocol"
        ) from None
    finally:
        _client_logger.setLevel(level)
        _client_logger.propagate = True
        _client_logger.removeHandler(handler)


@contextmanager
def _transaction() -> Iterator[None]:
    """The client's errors about a transaction in our words: none of them can be mended in this process."""
    try:
        yield
    except (
        kafka.errors.ProducerFencedError,
        kafka.errors.InvalidProducerEpochError,
        kafka.errors.FencedInstanceIdError,
    ) as error:
        raise TakenOver(
            f"the transaction was refused: {error}; it has taken longer than kafka.transaction_timeout_ms, or another "
            "process has the same group.instance"
        ) from None
    except kafka.errors.KafkaError as error:
        raise OutputsLost(f"the transaction failed: {error}") from None


@contextmanager
def _translated() -> Iterator[None]:
    """The client's errors in our words."""
    try:
        yield
    except (kafka.errors.OffsetOutOfRangeError, kafka.errors.LogTruncationError) as error:
        raise PositionRefused(str(error)) from None
    except kafka.errors.FencedInstanceIdError:
        raise TakenOver("another process has the same group.instance") from None
    except _REFUSALS as error:
        raise AccessDenied(f"the broker refuses us: {error}") from None
    except kafka.errors.KafkaConfigurationError as error:
        raise ConfigError([f"kafka: {error}"]) from None
    except kafka.errors.UnsupportedCodecError as error:
        raise TopicMismatch(f"records cannot be read: {error}; {kafka_options.CODECS_HINT}") from None
    except kafka.errors.KafkaError as error:
        raise Unavailable(str(error)) from None
