"""The producer: records that have to become durable, in transactions if the options say so."""

import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any, ClassVar, NamedTuple

from ..transport import Headers, OptionRefused, OutputsLost, Shape, TakenOver, TopicMismatch, Unavailable
from .group import Offsets
from .options import CLOSE_SECONDS, MISSING_SECONDS, KafkaOptions

FLUSH_SECONDS = 5.0  # for acknowledgements, before we look whether a topic is gone
_MAX_BACKLOG = 32 << 20  # bytes that may be produced and not known to be durable
Describe = Callable[[Iterable[str]], dict[str, Shape]]
Failure = tuple[str, int | None, Any]  # of a record: its topic, its partition, and the client's error


class Refusal(NamedTuple):
    """Why the group refuses the offsets of a transaction."""

    reason: str
    is_unknown: bool  # The group no longer knows this member at all.


class Outputs(ABC):
    """Writes records; connects with the first one, or by `connect`.

    Parameters
    ----------
    options
        The log's options.
    why_silent
        Says why the broker does not answer, or None if it does; takes the time of the monotonic clock.
    describe
        Asks the broker for the shapes of those topics that exist.
    """

    def __init__(self, options: KafkaOptions, why_silent: Callable[[float], str | None], describe: Describe) -> None:
        self._options = options
        self._why_silent = why_silent
        self._describe = describe
        self._producer: Any = None  # the client's own
        self._failures: list[Failure] = []  # the first one only
        self._backlog = 0
        self._topics: set[str] = set()  # of the backlog
        self._is_stuck = False  # A topic of the backlog is gone, so it can never be flushed.
        self.in_transaction = False

    # --- what a client brings -----------------------------------------------------------------------------------------

    _translated: "ClassVar[staticmethod[[], AbstractContextManager[None]]]"
    _translated_transaction: "ClassVar[staticmethod[[str | None], AbstractContextManager[None]]]"

    @abstractmethod
    def _new_producer(self) -> Any:
        """Make the client's producer; it gives the first record that fails to `note_failure`."""

    @abstractmethod
    def _init_transactions(self) -> None:
        """End the transaction that a killed process of our name left open."""

    @abstractmethod
    def _send(
        self, topic: str, value: bytes | None, key: bytes | None, headers: Headers, partition: int | None
    ) -> None:
        """Hand a record to the client."""

    @abstractmethod
    def _wait(self, seconds: float) -> bool:
        """Whether every record was acknowledged, or failed, within so many seconds."""

    @abstractmethod
    def _refused(self, topic: str, partition: int | None, error: Any) -> Exception:
        """What became of a record that failed; the producer is of no use after that."""

    @abstractmethod
    def _commit_transaction(self, offsets: Offsets, membership: object) -> Refusal | None:
        """End the transaction with these offsets; or tell why the group refuses them, and leave it open."""

    @abstractmethod
    def _abort_transaction(self) -> None: ...

    @abstractmethod
    def _close(self, seconds: float) -> None: ...

    # --- records ------------------------------------------------------------------------------------------------------

    def connect(self) -> Any:
        """Make the client's producer, and return it.

        A named one ends the transaction that a killed process of its name left open.
        """
        with self._translated():
            self._producer = self._new_producer()
            try:
                if self._options.is_transactional:
                    self._init_transactions()
            except BaseException:
                self._close(0.0)
                self._producer = None
                raise
        return self._producer

    def produce(
        self, topic: str, value: bytes | None, *, key: bytes | None, headers: Headers, partition: int | None
    ) -> None:
        """Send a record; wait while the backlog is too large."""
        if self._producer is None:
            self.connect()
        if self._options.is_transactional:
            self._begin()
        self._send(topic, value, key, headers, partition)
        self._topics.add(topic)
        self._backlog += len(value or b"") + len(key or b"")
        if headers:
            self._backlog += sum(len(content) for _, content in headers)
        while self._backlog > _MAX_BACKLOG:
            with suppress(Unavailable):
                self.flush()

    def flush(self) -> None:
        if self._producer is not None:
            try:
                if not self._wait(FLUSH_SECONDS):
                    silence = self._require_topics(self._topics)
                    raise Unavailable(silence or f"no acknowledgement within {FLUSH_SECONDS:g} seconds")
            finally:
                self._check_failure()
        self._backlog = 0
        self._topics.clear()

    def close(self) -> None:
        if self.in_transaction:  # Readers of committed records would wait for its end.
            close_soon(self._abort_quietly)
        if self._producer is not None:
            self._close(0.0 if self._is_stuck else CLOSE_SECONDS)
            self._producer = None

    def _require_topics(self, names: set[str]) -> str | None:
        """Why the broker does not answer; if it does and a topic was deleted, raise `TopicMismatch`.

        The client would wait for such a topic without end.
        """
        silence = self._why_silent(time.monotonic())
        if silence:
            return silence
        with suppress(Unavailable):
            missing = names - self._describe(names).keys()
            if missing:
                time.sleep(MISSING_SECONDS)
                missing -= self._describe(missing).keys()
            if missing:
                self._is_stuck = True
                raise TopicMismatch(
                    f"topic {min(missing)!r} was deleted while we wrote to it; "
                    "`streamsvm topics CONFIG.toml --create` creates it again"
                )
        return None

    # --- transactions -------------------------------------------------------------------------------------------------

    def commit(self, offsets: Offsets, membership: object) -> Refusal | None:
        """End the transaction with these offsets.

        Returns
        -------
        Refusal or None
            None if it is committed; otherwise why the group refused the offsets, and the transaction is still open.
        """
        self._begin()
        with self._translated_transaction(self._options.instance):
            refusal = self._commit_transaction(offsets, membership)
        if refusal is not None:
            return refusal
        self._check_failure()
        self.in_transaction = False
        self._backlog = 0
        return None

    def abort(self) -> None:
        """Give the open transaction up, if there is one."""
        if self.in_transaction:
            with self._translated_transaction(self._options.instance):
                self._abort_transaction()
        self.in_transaction = False
        self._failures.clear()
        self._backlog = 0

    def _transactional_id(self) -> str:
        return f"{self._options.group}-{self._options.instance or uuid.uuid4()}"

    def _timeout_refused(self) -> OptionRefused:
        return OptionRefused(
            f"the broker allows no transaction of {self._options.transaction_timeout_ms} ms: set "
            "kafka.transaction_timeout_ms, and a shorter daemon.checkpoint_seconds, or raise the broker's "
            "transaction.max.timeout.ms"
        )

    def _begin(self) -> None:
        if not self.in_transaction:
            with self._translated_transaction(self._options.instance):
                self._producer.begin_transaction()
            self.in_transaction = True

    def _check_failure(self) -> None:
        if self._failures:
            raise self._refused(*self._failures[0])

    def _abort_quietly(self) -> None:
        with suppress(TakenOver, OutputsLost):
            self.abort()


def close_soon(close: Callable[[], object], seconds: float = CLOSE_SECONDS) -> None:
    """Close a client; one that waits for a broker is left to itself after so many seconds."""
    thread = threading.Thread(target=close, name="close", daemon=True)
    thread.start()
    thread.join(seconds)


def note_failure(failures: list[Failure], *failure: Any) -> None:
    """Note the first record that failed; no method, because a producer in a cycle would be left to the collector."""
    if not failures:
        failures.append(failure)


def no_such_partition(topic: str, partition: int | None) -> TopicMismatch:
    """The error about a partition that the events' topic has, and one that we write to has not."""
    return TopicMismatch(
        f"topic {topic!r} has no partition {partition}, but the events' topic has: give it as many partitions"
    )


def too_large(topic: str) -> TopicMismatch:
    """The error about a record that the broker refuses for its size."""
    return TopicMismatch(f"a record is larger than topic {topic!r} takes: raise the topic's max.message.bytes")
