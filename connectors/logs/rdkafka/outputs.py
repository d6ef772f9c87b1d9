"""The producer of librdkafka."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from ...runtime.process import insist
from ..cluster.group import Offsets
from ..cluster.options import IDLE_SECONDS, MISSING_SECONDS
from ..cluster.outputs import Failure, Refusal, no_such_partition, note_failure, too_large
from ..cluster.outputs import Outputs as AnyOutputs
from ..transport import AccessDenied, Headers, OutputsLost, TopicMismatch
from .client import producer_options, to_partitions
from .errors import GENERATIONS, MISSING, TOO_LARGE, is_refusal, translated, translated_transaction

_INIT_SECONDS = 15.0  # for the coordinator of a transactional id
_ANY = -1  # the partition of the key


class Outputs(AnyOutputs):
    """Writes with a producer of librdkafka, which reports only the records that fail."""

    _translated, _translated_transaction = staticmethod(translated), staticmethod(translated_transaction)

    def _new_producer(self) -> Producer:
        options = {**producer_options(self._options.client), "on_delivery": partial(_heard, self._failures)}
        if self._options.is_transactional:
            del options["message.timeout.ms"]  # The transaction's time limits it.
            options["transactional.id"] = self._transactional_id()
            options["transaction.timeout.ms"] = self._options.transaction_timeout_ms
        return Producer(options)

    def _init_transactions(self) -> None:
        try:
            self._producer.init_transactions(_INIT_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise
            raise self._timeout_refused() from None

    def _send(
        self, topic: str, value: bytes | None, key: bytes | None, headers: Headers, partition: int | None
    ) -> None:
        producer = self._producer
        until = time.monotonic() + MISSING_SECONDS
        while True:
            try:
                producer.produce(topic, value, key, _ANY if partition is None else partition, headers=list(headers))
                return
            except BufferError:  # The client holds as much as kafka.queue_buffering_max_kbytes.
                producer.poll(IDLE_SECONDS)
            except KafkaException as exception:
                error = exception.args[0]
                if error.code() != KafkaError._UNKNOWN_PARTITION or time.monotonic() > until:
                    raise self._refused(topic, partition, error) from None
                with translated():
                    producer.list_topics(topic, MISSING_SECONDS)  # The partition may be new.
                time.sleep(IDLE_SECONDS)

    def _wait(self, seconds: float) -> bool:
        return bool(self._producer.flush(seconds) == 0)

    def _close(self, seconds: float) -> None:
        with suppress(KafkaException):  # of a producer that was fenced
            self._producer.flush(seconds)
        self._producer.purge(blocking=False)  # Otherwise the client would wait for what it still holds.

    def _refused(self, topic: str, partition: int | None, error: KafkaError) -> Exception:
        code, text = error.code(), error.str()
        if code == KafkaError._UNKNOWN_PARTITION:
            return no_such_partition(topic, partition)
        if code in MISSING:
            self._require_topics({topic})
        if code in TOO_LARGE:
            is_asked = bool(self._failures)
            return too_large(topic) if is_asked else TopicMismatch(f"a record for topic {topic!r} is too large: {text}")
        if is_refusal(error):
            return AccessDenied(f"the broker refuses our records for topic {topic!r}: {text}")
        return OutputsLost(f"the broker refused a record for topic {topic!r}: {text}")

    # --- transactions -------------------------------------------------------------------------------------------------

    def _commit_transaction(self, offsets: Offsets, membership: object) -> Refusal | None:
        producer = self._producer
        try:
            if offsets:
                _insist(lambda: producer.send_offsets_to_transaction(to_partitions(offsets), membership))
            _insist(producer.commit_transaction)  # It has no timeout; the watchdog ends the process if it hangs.
        except KafkaException as exception:
            error = exception.args[0]
            if error.code() not in GENERATIONS and not error.txn_requires_abort():
                raise
            is_unknown = error.code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH)
            return Refusal(error.str(), is_unknown)
        return None

    def _abort_transaction(self) -> None:
        _insist(self._producer.abort_transaction)


def _insist(step: Callable[[], object]) -> None:
    """Take a step of a transaction again while the client says that this may help, as when a coordinator moves."""
    insist(step, lambda error: isinstance(error, KafkaException) and error.args[0].retriable())


def _heard(failures: list[Failure], error: KafkaError | None, message: Any) -> None:
    if error is not None:
        note_failure(failures, message.topic(), message.partition(), error)
