"""The producer: records that have to become durable, in transactions if the options say so."""

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import kafka.errors
from kafka import KafkaProducer

from ..transport import AccessDenied, Headers, OptionRefused, OutputsLost, TakenOver, TopicMismatch, Unavailable
from .admin import describe_topics
from .client import CLOSE_SECONDS, IDLE_SECONDS, MISSING_SECONDS, KafkaOptions, Offsets, client_options
from .errors import translated, translated_transaction
from .options import CODECS

_FLUSH_SECONDS = 5.0
_MAX_BACKLOG = 32 << 20  # bytes that may be produced and not known to be durable


class Outputs:
    """Writes records; connects with the first one, or by `connect`.

    Parameters
    ----------
    options
        The log's options.
    why_silent
        Says why the broker does not answer, or None if it does; takes the time of the monotonic clock.
    """

    def __init__(self, options: KafkaOptions, why_silent: Callable[[float], str | None]) -> None:
        self._options = options
        self._why_silent = why_silent
        self._producer: KafkaProducer | None = None
        self._backlog = 0
        self._topics: set[str] = set()  # of the backlog
        self._failure: tuple[str, Exception] | None = None  # the topic and the error of the first record that failed
        self.in_transaction = False

    def connect(self) -> KafkaProducer:
        """Make the producer; a named one ends the transaction that a killed process of its name left open."""
        options = {"compression_type": _compression(), **client_options(self._options.client, KafkaProducer)}
        if self._options.is_transactional:
            options["transactional_id"] = f"{self._options.group}-{self._options.instance or uuid.uuid4()}"
            options["transaction_timeout_ms"] = self._options.transaction_timeout_ms
        with translated():
            self._producer = KafkaProducer(**options)
            if self._options.is_transactional:
                self._init_transactions(self._producer)
        return self._producer

    def _init_transactions(self, producer: KafkaProducer) -> None:
        try:
            producer.init_transactions()
        except kafka.errors.KafkaError as error:
            if "InvalidTransactionTimeout" not in str(error):
                raise
            raise OptionRefused(
                f"the broker allows no transaction of {self._options.transaction_timeout_ms} ms: set "
                "kafka.transaction_timeout_ms, and a shorter daemon.checkpoint_seconds, or raise the broker's "
                "transaction.max.timeout.ms"
            ) from None

    def produce(
        self, topic: str, value: bytes | None, *, key: bytes | None, headers: Headers, partition: int | None
    ) -> None:
        """Send a record; wait while the backlog is too large."""
        producer = self._producer or self.connect()
        if self._options.is_transactional:
            self._begin(producer)
        if value is None and key is None:
            value = b""  # Kafka allows such records, but this client cannot send them.
        try:
            try:
                future = producer.send(topic, value, key=key, headers=list(headers), partition=partition)
            except ValueError:  # The client does not know this partition.
                _find_partition(producer, topic, partition)
                future = producer.send(topic, value, key=key, headers=list(headers), partition=partition)
        except kafka.errors.MessageSizeTooLargeError as error:
            raise TopicMismatch(
                f"a record for topic {topic!r} is too large: {error}; see kafka.max_request_size"
            ) from None
        except kafka.errors.KafkaTimeoutError as error:
            self._require_topics({topic})
            raise Unavailable(f"topic {topic!r} does not answer: {error}") from None
        except kafka.errors.KafkaError as error:
            raise OutputsLost(f"topic {topic!r} cannot be written to: {error}") from None
        self._topics.add(topic)
        future.add_errback(partial(self._note_failure, topic))
        self._backlog += len(value or b"") + len(key or b"") + sum(len(content) for _, content in headers)
        while self._backlog > _MAX_BACKLOG:
            with suppress(Unavailable):
                self.flush()

    def flush(self) -> None:
        if self._producer is not None:
            try:
                self._producer.flush(timeout=_FLUSH_SECONDS)
            except kafka.errors.KafkaTimeoutError:
                self._require_topics(self._topics)
                raise Unavailable(f"no acknowledgement within {_FLUSH_SECONDS:g} seconds") from None
            finally:
                self._check_failure()
        self._backlog = 0
        self._topics.clear()

    def close(self) -> None:
        if self.in_transaction:  # Readers of committed records would wait for its end.
            thread = threading.Thread(target=self._abort_quietly, name="abort", daemon=True)
            thread.start()  # Without a broker, the client would wait for ever.
            thread.join(CLOSE_SECONDS)
        if self._producer is not None:
            with suppress(kafka.errors.KafkaError):
                self._producer.close(timeout=CLOSE_SECONDS)

    # --- failures -----------------------------------------------------------------------------------------------------

    def _note_failure(self, topic: str, error: Exception) -> None:
        self._failure = self._failure or (topic, error)

    def _check_failure(self) -> None:
        """Raise what became of a record that failed; the producer is of no use after that."""
        if self._failure is None:
            return
        topic, error = self._failure
        if isinstance(error, kafka.errors.MessageSizeTooLargeError | kafka.errors.RecordListTooLargeError):
            raise TopicMismatch(f"a record is larger than topic {topic!r} takes: raise the topic's max.message.bytes")
        if isinstance(error, kafka.errors.AuthorizationError):
            raise AccessDenied(f"the broker refuses our records for topic {topic!r}: {error}")
        raise OutputsLost(f"the broker refused a record for topic {topic!r}: {error}")

    def _require_topics(self, names: set[str]) -> None:
        """Raise `TopicMismatch` if a topic was deleted: the client would wait for it without end."""
        if self._why_silent(time.monotonic()):
            return
        with suppress(Unavailable):
            missing = names - describe_topics(self._options.client, sorted(names)).keys()
            if missing:
                time.sleep(MISSING_SECONDS)
                missing -= describe_topics(self._options.client, sorted(missing)).keys()
            if missing:
                raise TopicMismatch(
                    f"topic {min(missing)!r} was deleted while we wrote to it; "
                    "`streamsvm topics CONFIG.toml --create` creates it again"
                )

    # --- transactions -------------------------------------------------------------------------------------------------

    def commit(self, offsets: Offsets, membership: Any) -> str | None:
        """End the transaction with these offsets.

        Returns
        -------
        str or None
            None if it is committed; otherwise why the group refused the offsets, and the transaction is still open.
        """
        producer = self._producer
        assert producer is not None
        with translated_transaction():
            self._begin(producer)
            try:
                if offsets:
                    producer.send_offsets_to_transaction(offsets, membership)
            except kafka.errors.CommitFailedError as error:  # The group has a new generation.
                return str(error)
            producer.commit_transaction()  # It has no timeout; the watchdog ends the process if it hangs.
        self._check_failure()
        self.in_transaction = False
        self._backlog = 0
        return None

    def abort(self) -> None:
        """Give the open transaction up, if there is one."""
        if self.in_transaction:
            assert self._producer is not None
            with translated_transaction():
                self._producer.abort_transaction()
            # kafka-python 3.0.12 keeps offsets that the group has refused, and would commit them with the next ones.
            self._producer._transaction_manager._pending_txn_offset_commits.clear()
        self.in_transaction = False
        self._failure = None
        self._backlog = 0

    def _begin(self, producer: KafkaProducer) -> None:
        if not self.in_transaction:
            with translated_transaction():
                producer.begin_transaction()
            self.in_transaction = True

    def _abort_quietly(self) -> None:
        with suppress(TakenOver, OutputsLost):
            self.abort()


def _compression() -> str | None:
    """The best compression that is installed; gzip always is, but takes longer than everything else about a record."""
    return next((name for name, module in CODECS.items() if find_spec(module)), None)


def _find_partition(producer: KafkaProducer, topic: str, partition: int | None) -> None:
    """Wait until the producer hears of a partition, which may be new."""
    until = time.monotonic() + MISSING_SECONDS
    while partition not in producer.partitions_for(topic):
        if time.monotonic() > until:
            raise TopicMismatch(
                f"topic {topic!r} has no partition {partition}, but the events' topic has: give it as many partitions"
            )
        producer._metadata.request_update()
        time.sleep(IDLE_SECONDS)
