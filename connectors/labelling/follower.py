"""Reading the topics of questions and labels, on a thread, for as long as the labelling service runs."""

import threading
import time
from collections.abc import Mapping

from ..logs.reading import POLL_RECORDS
from ..logs.transport import Record, Transport, Unavailable
from ..records.formats.base import BadRecord
from ..runtime.numbers import HOUR_MS
from ..runtime.process import LOOK_SECONDS, POLL_SECONDS
from ..settings import topics
from ..settings.opening import backend_of
from ..settings.sections import Settings
from .book import Book
from .log_thread import LogThread

_CLOCKS_MS = HOUR_MS  # by which the clocks of trainers and of annotators' machines may differ
_NEVER_MS = 10**15  # later than every record


class Follower(LogThread):
    """Reads questions, then the answers that they may have, then whatever is appended; says when anything has changed.

    Parameters
    ----------
    settings
        The configuration.
    book
        Takes what is read.
    changed
        Guards the book and what this follower tells, and is notified of every change.

    Attributes
    ----------
    version
        Number of changes so far.
    is_loaded
        Whether both topics were read to their ends.
    failure
        The error that has ended the reading for good, or None.
    """

    def __init__(self, settings: Settings, book: Book, changed: threading.Condition) -> None:
        super().__init__(settings, "the questions")
        self.version = 0
        self.is_loaded = False
        self.failure: Exception | None = None
        self._book = book
        self._changed = changed
        self._backend = backend_of(settings)
        self._reading: set[tuple[str, int]] = set()  # topic and partition

    # --- for the service ----------------------------------------------------------------------------------------------

    def tell(self) -> None:
        """Say that something has changed; the caller holds the lock."""
        self.version += 1
        self._changed.notify_all()

    def why_not(self) -> str | None:
        """Why the log cannot be read; None: it can."""
        return self._outage.reason if self.failure is None else str(self.failure)

    def check(self) -> None:
        """Raise `Unavailable` if the questions cannot be read."""
        if self.failure is not None:
            raise Unavailable(str(self.failure)) from self.failure
        if self._outage.reason is not None and not self.is_loaded:
            raise Unavailable(self._outage.reason)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _follow(self, log: Transport) -> None:
        self._load(log)
        looked_at = time.monotonic()
        while not self._closing.is_set():
            self._poll(log)
            if self._backend.makes_topics and time.monotonic() - looked_at > LOOK_SECONDS:
                looked_at = time.monotonic()
                for topic in (self._settings.log.questions, self._settings.log.labels):
                    self._read_to_end(log, topic, log.start_offsets(topic))

    def _load(self, log: Transport) -> None:
        names = self._settings.log
        if not self._backend.makes_topics:
            topics.check(self._settings, [names.questions, names.labels])
        self._reading.clear()
        with self._changed:
            self._book.begin_questions()
        self._read_to_end(log, names.questions, log.start_offsets(names.questions))
        with self._changed:
            oldest = self._book.end_questions()
        self._read_to_end(log, names.labels, self._first_answers(log, oldest))
        if not self._closing.is_set():
            with self._changed:
                self._book.open_again()
                self.is_loaded = True
                self.tell()

    def _first_answers(self, log: Transport, oldest: int | None) -> dict[int, int]:
        """The offsets in log.labels from which on there may be an answer to an open question."""
        topic = self._settings.log.labels
        ends = log.end_offsets(topic)
        since = _NEVER_MS if oldest is None else oldest - _CLOCKS_MS
        return {**ends, **self._backend.search(topic, ends, since)}

    def _read_to_end(self, log: Transport, topic: str, starts: Mapping[int, int]) -> None:
        """Read partitions to their ends as of now; one that is being read goes on from where it is."""
        ends = log.end_offsets(topic)
        for number, start in starts.items():
            if (topic, number) not in self._reading:
                log.seek(topic, number, start)
                self._reading.add((topic, number))
        while any(log.position(topic, n) < ends[n] for n in starts) and not self._closing.is_set():
            self._poll(log)

    def _poll(self, log: Transport) -> None:
        try:
            records = log.poll(POLL_SECONDS, POLL_RECORDS)
        except Unavailable as error:
            self._trouble(error)
            return
        if not records and not self._outage.reason:
            return
        with self._changed:
            self._outage.ends()
            for record in records:
                self._take(record)
            self.tell()

    def _take(self, record: Record) -> None:
        try:
            if record.topic == self._settings.log.labels:
                self._book.read_label(record)
            else:
                self._book.read_question(record)
        except BadRecord as error:
            self._book.set_aside(record, error)

    def _trouble(self, error: Exception) -> None:
        with self._changed:
            self._outage.goes_on(error)
            self.tell()
        super()._trouble(error)

    def _failed(self, error: Exception) -> None:
        with self._changed:
            self.failure = error
            self.tell()
