"""The producer of kafka-python."""

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from importlib.util import find_spec

import kafka.errors
from kafka import KafkaProducer

from ..cluster.group import Offsets
from ..cluster.options import IDLE_SECONDS, MISSING_SECONDS, KafkaOptions
from ..cluster.outputs import Outputs as AnyOutputs
from ..cluster.outputs import Refusal, no_such_partition, too_large
from ..transport import AccessDenied, Headers, OutputsLost, TopicMismatch, Unavailable
from .admin import describe_topics
from .client import client_options, to_client
from .errors import translated, translated_transaction
from .options import CODECS


class Outputs(AnyOutputs[KafkaProducer]):
    """Writes with a producer of kafka-python."""

    def __init__(self, options: KafkaOptions, why_silent: Callable[[float], str | None]) -> None:
        super().__init__(options, why_silent)
        self._failure: tuple[str, Exception] | None = None  # the topic and the error of the first record that failed

    def connect(self) -> KafkaProducer:
        options = {"compression_type": _compression(), **client_options(self._options.client, KafkaProducer)}
        if self._options.is_transactional:
            options["transactional_id"] = self._transactional_id()
            options["transaction_timeout_ms"] = self._options.transaction_timeout_ms
        with translated():
            producer = KafkaProducer(**options)
            try:
                if self._options.is_transactional:
                    self._init_transactions(producer)
            except BaseException:
                self._close(producer, 0.0)
                raise
        self._producer = producer
        return producer

    def _init_transactions(self, producer: KafkaProducer) -> None:
        try:
            producer.init_transactions()
        except kafka.errors.KafkaError as error:
            if "InvalidTransactionTimeout" not in str(error):
                raise
            raise self._timeout_refused() from None

    def _send(
        self,
        producer: KafkaProducer,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
    ) -> None:
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
            silence = self._require_topics({topic})
            raise Unavailable(silence or f"topic {topic!r} does not answer: {error}") from None
        except kafka.errors.KafkaError as error:
            raise OutputsLost(f"topic {topic!r} cannot be written to: {error}") from None
        future.add_errback(partial(self._note_failure, topic))

    def _wait(self, producer: KafkaProducer, seconds: float) -> bool:
        try:
            producer.flush(timeout=seconds)
        except kafka.errors.KafkaTimeoutError:
            return False
        return True

    def _missing(self, names: Collection[str]) -> set[str]:
        return set(names) - describe_topics(self._options.client, sorted(names)).keys()

    def _close(self, producer: KafkaProducer, seconds: float) -> None:
        with suppress(kafka.errors.KafkaError):
            producer.close(timeout=seconds)

    # --- failures -----------------------------------------------------------------------------------------------------

    def _note_failure(self, topic: str, error: Exception) -> None:
        self._failure = self._failure or (topic, error)

    def _forget_failure(self) -> None:
        self._failure = None

    def _check_failure(self) -> None:
        if self._failure is None:
            return
        topic, error = self._failure
        if isinstance(error, kafka.errors.MessageSizeTooLargeError | kafka.errors.RecordListTooLargeError):
            raise too_large(topic)
        if isinstance(error, kafka.errors.AuthorizationError):
            raise AccessDenied(f"the broker refuses our records for topic {topic!r}: {error}")
        raise OutputsLost(f"the broker refused a record for topic {topic!r}: {error}")

    # --- transactions -------------------------------------------------------------------------------------------------

    def _begin_transaction(self, producer: KafkaProducer) -> None:
        with translated_transaction(self._options.instance):
            producer.begin_transaction()

    def _commit_transaction(self, producer: KafkaProducer, offsets: Offsets, membership: object) -> Refusal | None:
        with translated_transaction(self._options.instance):
            try:
                if offsets:
                    producer.send_offsets_to_transaction(to_client(offsets), membership)
            except kafka.errors.CommitFailedError as error:  # The group has a new generation.
                return Refusal(str(error), "UnknownMember" in str(error))
            producer.commit_transaction()  # It has no timeout; the watchdog ends the process if it hangs.
        return None

    def _abort_transaction(self, producer: KafkaProducer) -> None:
        with translated_transaction(self._options.instance):
            producer.abort_transaction()
        # kafka-python 3.0.12 keeps offsets that the group has refused, and would commit them with the next ones.
        producer._transaction_manager._pending_txn_offset_commits.clear()


def _compression() -> str | None:
    """The best compression that is installed; gzip always is, but takes longer than everything else about a record."""
    return next((name for name, module in CODECS.items() if find_spec(module)), None)


def _find_partition(producer: KafkaProducer, topic: str, partition: int | None) -> None:
    """Wait until the producer hears of a partition, which may be new."""
    until = time.monotonic() + MISSING_SECONDS
    while partition not in producer.partitions_for(topic):
        if time.monotonic() > until:
            raise no_such_partition(topic, partition)
        producer._metadata.request_update()
        time.sleep(IDLE_SECONDS)
