"""The producer of kafka-python."""

import time
from functools import partial
from importlib.util import find_spec

import kafka.errors
from kafka import KafkaProducer

from ..cluster.group import Offsets
from ..cluster.options import IDLE_SECONDS, MISSING_SECONDS
from ..cluster.outputs import Outputs as AnyOutputs
from ..cluster.outputs import Refusal, no_such_partition, note_failure, too_large
from ..transport import AccessDenied, Headers, OutputsLost, TopicMismatch, Unavailable
from .client import client_options, to_client
from .errors import translated, translated_transaction
from .options import CODECS


class Outputs(AnyOutputs):
    """Writes with a producer of kafka-python."""

    _translated, _translated_transaction = staticmethod(translated), staticmethod(translated_transaction)

    def _new_producer(self) -> KafkaProducer:
        options = {"compression_type": _compression(), **client_options(self._options.client, KafkaProducer)}
        if self._options.is_transactional:
            options["transactional_id"] = self._transactional_id()
            options["transaction_timeout_ms"] = self._options.transaction_timeout_ms
        return KafkaProducer(**options)

    def _init_transactions(self) -> None:
        try:
            self._producer.init_transactions()
        except kafka.errors.KafkaError as error:
            if "InvalidTransactionTimeout" not in str(error):
                raise
            raise self._timeout_refused() from None

    def _send(
        self, topic: str, value: bytes | None, key: bytes | None, headers: Headers, partition: int | None
    ) -> None:
        producer = self._producer
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
        future.add_errback(partial(note_failure, self._failures, topic, partition))

    def _wait(self, seconds: float) -> bool:
        try:
            self._producer.flush(timeout=seconds)
        except kafka.errors.KafkaTimeoutError:
            return False
        return True

    def _close(self, seconds: float) -> None:
        try:
            self._producer.close(timeout=seconds)
        except kafka.errors.KafkaError:  # kafka-python 3.0.12 stops half-way, and would try again as it is destroyed.
            self._producer._sender.force_close()
            self._producer._closed = True

    def _refused(self, topic: str, partition: int | None, error: Exception) -> Exception:
        if isinstance(error, kafka.errors.MessageSizeTooLargeError | kafka.errors.RecordListTooLargeError):
            return too_large(topic)
        if isinstance(error, kafka.errors.AuthorizationError):
            return AccessDenied(f"the broker refuses our records for topic {topic!r}: {error}")
        return OutputsLost(f"the broker refused a record for topic {topic!r}: {error}")

    # --- transactions -------------------------------------------------------------------------------------------------

    def _commit_transaction(self, offsets: Offsets, membership: object) -> Refusal | None:
        try:
            if offsets:
                self._producer.send_offsets_to_transaction(to_client(offsets), membership)
        except kafka.errors.CommitFailedError as error:  # The group has a new generation.
            return Refusal(str(error), "UnknownMember" in str(error))
        self._producer.commit_transaction()  # It has no timeout; the watchdog ends the process if it hangs.
        return None

    def _abort_transaction(self) -> None:
        manager = self._producer._transaction_manager
        self._producer.abort_transaction()
        # kafka-python 3.0.12 keeps offsets that the group has refused, and would commit them with the next ones.
        manager._pending_txn_offset_commits.clear()


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
