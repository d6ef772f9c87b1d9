"""What all clients of librdkafka have in common: our defaults, a connection that tells why it fails, and answers."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import wait as wait_for_all
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from ..cluster.commit_notes import to_metadata
from ..cluster.group import Offsets
from ..cluster.options import COMMAND_SECONDS, DEFAULTS, STATIC_SESSION_MS, no_kafka, require_answer
from ..cluster.outputs import close_soon
from ..transport import AccessDenied, Unavailable
from .errors import MISSING, is_refusal, ours, translated
from .options import CODECS, to_client

T = TypeVar("T")

_client_logger = logging.getLogger("librdkafka")
_client_logger.setLevel(logging.CRITICAL + 1)  # It logs every failed attempt. We log what they mean.

_CONNECT_SECONDS = 5.0  # for a broker to tell the cluster's id
_SERVE_SECONDS = 0.05  # between two looks at the errors of a client that connects
_LAST_ANSWER_SECONDS = 1.0  # to wait for it when an administrator is closed
_DEFAULTS: dict[str, Any] = {
    **DEFAULTS,
    "compression_type": CODECS[0],
    "enable_metrics_push": False,  # We serve our own metrics.
    "queue_buffering_max_messages": 0,  # `cluster.outputs` bounds what is not acknowledged, in bytes.
    "queued_max_messages_kbytes": 16 << 10,  # of each partition, which the client holds until they are polled
    "topic_metadata_propagation_max_ms": 15_000,  # The producer waits this long for a topic, which may be deleted.
}


def defaults(given: Mapping[str, Any], *, is_named: bool) -> dict[str, Any]:
    """Our defaults where they differ from the client's; a named process has a shorter session."""
    is_ours = is_named and given.get("group_protocol") != "consumer"  # In the new protocol, the broker decides.
    return {**_DEFAULTS, "session_timeout_ms": STATIC_SESSION_MS} if is_ours else _DEFAULTS


def consumer_options(given: Mapping[str, Any], *, is_named: bool = False) -> dict[str, Any]:
    """The options of a consumer, with our defaults, as librdkafka takes them."""
    options = to_client({**defaults(given, is_named=is_named), **given})  # It passes over those of a producer.
    return {**options, **_logged(given), "enable.auto.commit": "false", "enable.auto.offset.store": "false"}


def producer_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a producer, with our defaults, as librdkafka takes them."""
    is_idempotent = given.get("acks", "all") in (-1, "all") and given.get("retries") != 0
    options = to_client({**_DEFAULTS, "enable_idempotence": is_idempotent, **given})
    return {**options, **_logged(given), "partitioner": "murmur2_random", "delivery.report.only.error": True}


def _logged(given: Mapping[str, Any]) -> dict[str, Any]:
    """Where the client logs: nowhere, or to standard error if the user asks it to."""
    return {} if "debug" in given or "log_level" in given else {"logger": _client_logger}


def to_partitions(offsets: Offsets) -> list[TopicPartition]:
    """Offsets as the client takes them."""
    return [
        TopicPartition(topic, number, committed.offset, to_metadata(committed.note))
        for (topic, number), committed in offsets.items()
    ]


@contextmanager
def asking_consumer(given: Mapping[str, Any], **options: str) -> Iterator[Consumer]:
    """A consumer that only asks: it joins no group and reads nothing.  In names of options, "_" stands for "."."""
    own = {key.replace("_", "."): value for key, value in options.items()}
    with translated():
        consumer = Consumer({**consumer_options({**given, "group_protocol": "classic"}), "group.id": "none", **own})
        try:
            yield consumer
        finally:
            close_soon(consumer.close)


def offsets_of(
    consumer: Consumer, partitions: Collection[tuple[str, int]], which: int, seconds: float = COMMAND_SECONDS
) -> dict[tuple[str, int], int]:
    """One offset of each partition: of its first record, of the record to come, or of the first record from a time on.

    A consumer asks, and no administrator.  librdkafka 2.16 works on an administrator's `list_offsets` with two threads
    at once, and crashed where it did not know the leader of a partition yet.

    Parameters
    ----------
    which
        OFFSET_BEGINNING, OFFSET_END, or a time in milliseconds.  The answer is -1 if all records are older.

    Raises
    ------
    Unavailable
        If a broker does not answer in time, or there is no such partition.
    """
    asked = [TopicPartition(topic, number, which) for topic, number in partitions]
    if not asked:
        return {}
    with translated():
        found = consumer.offsets_for_times(asked, seconds)
    require_right(found)
    return {(partition.topic, partition.partition): partition.offset for partition in found}


def require_right(partitions: Iterable[TopicPartition]) -> None:
    """Raise the first error among answers."""
    for partition in partitions:
        if partition.error is not None:
            raise ours(partition.error)


def _result(answer: "Future[T]", seconds: float) -> T:
    """The broker's answer; an error if it takes too long."""
    try:
        return answer.result(seconds)
    except FutureTimeoutError:
        raise Unavailable(f"the broker has not answered within {seconds:g} seconds") from None


def described(answer: Future) -> Any | None:
    """The description of a topic; None if it does not exist."""
    try:
        return _result(answer, COMMAND_SECONDS)
    except KafkaException as error:
        if error.args[0].code() in MISSING:
            return None
        raise ours(error.args[0]) from None


class Administrator:
    """A client that asks and orders, and hears why it cannot connect; a context manager, which closes it.

    librdkafka 2.16 may end the process if such a client is destroyed

    - by Python's collector of garbage: it may run on a thread of librdkafka's, which brings the answers.  So the client
      is part of no cycle of references, and is closed.
    - while an answer is on its way.  So it is closed after the last one.

    Raises
    ------
    Unavailable
        If no broker answers.
    AccessDenied
        If the broker refuses us.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._questions: list[Future] = []  # that were not answered when the last one was asked
        errors: list[KafkaError] = []
        options = to_client({**_DEFAULTS, **given, "enable_idempotence": False})  # It needs no right to write.
        require_answer(given)
        with translated():
            self.client = AdminClient({**options, **_logged(given), "error_cb": errors.append})
            try:
                self._connect(errors)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; if answers are missing, after the last one, which may be after this returns."""
        close_soon(self._close, _LAST_ANSWER_SECONDS)

    def _close(self) -> None:
        wait_for_all(self._questions)  # Each fails after some seconds without an answer.
        self.client.__exit__(None, None, None)  # It has no other door for this.

    def ask(self, question: Callable[..., dict[Any, Future]], *arguments: Any, **options: Any) -> dict[Any, Future]:
        """The answers to a question, one of the client's methods, which may still be on their way."""
        with translated():
            answers = question(*arguments, **options)
        missing = (answer for answer in self._questions if not answer.done())
        self._questions = [*missing, *answers.values()]
        return answers

    def ask_topics(self, names: list[str]) -> dict[str, Future]:
        """The broker's answers about topics, which may still be on their way; `described` tells what they say."""
        if not names:
            return {}
        return self.ask(self.client.describe_topics, TopicCollection(names), request_timeout=COMMAND_SECONDS)

    def _connect(self, errors: list[KafkaError]) -> None:
        """Wait until a broker tells the cluster's id; only the errors that the client hears of tell why none does.

        We do not ask for a description of the cluster: librdkafka 2.16 ends the process if it lists no broker yet.
        """
        until = time.monotonic() + _CONNECT_SECONDS
        while time.monotonic() < until:
            with suppress(KafkaException):
                self.client.cluster_id(_SERVE_SECONDS)
                return
            self.client.poll(0)
            for error in filter(is_refusal, errors):
                raise AccessDenied(f"the broker refuses us: {error.str()}")
        raise no_kafka()

    @staticmethod
    def wait(answer: "Future[T]", seconds: float = COMMAND_SECONDS) -> T:
        """The broker's answer; raises our errors."""
        with translated():
            return _result(answer, seconds)
