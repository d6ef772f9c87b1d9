"""Reading the topics of questions and labels, on a thread, for as long as the labelling service runs."""

import time
from collections.abc import Mapping

from ..logs.reading import POLL_RECORDS
from ..logs.transport import Transport, Unavailable
from ..runtime.numbers import HOUR_MS
from ..runtime.process import LOOK_SECONDS, POLL_SECONDS
from ..settings import topics
from ..settings.opening import backend_of
from ..settings.sections import Settings
from .log_thread import LogThread
from .reader import Reader

_CLOCKS_MS = HOUR_MS  # by which the clocks of trainers and of annotators' machines may differ
_NEVER_MS = 10**15  # later than every record


class Follower(LogThread):
    """Reads questions, then the answers that they may have, then whatever is appended.

    Parameters
    ----------
    settings
        The configuration.
    reader
        Takes what is read; its methods are called on this thread.
    """

    def __init__(self, settings: Settings, reader: Reader) -> None:
        super().__init__(settings, "the questions")
        self._reader = reader
        self._backend = backend_of(settings)
        self._reading: set[tuple[str, int]] = set()  # topic and partition

    def _follow(self, log: Transport) -> None:
        self._load(log)
        looked_at = time.monotonic()
        while not self._closing.is_set():
            self._poll(log)
            if self._backend.makes_topics and time.monotonic() - looked_at > LOOK_SECONDS:
                looked_at = time.monotonic()
                self._begin_new(log)

    def _load(self, log: Transport) -> None:
        names = self._settings.log
        if not self._backend.makes_topics:
            topics.check(self._settings, [names.questions, names.labels])
        self._reading.clear()
        self._reader.begin_questions()
        self._read_to_end(log, names.questions, log.start_offsets(names.questions))
        oldest = self._reader.end_questions()
        self._read_to_end(log, names.labels, self._first_answers(log, oldest))
        if not self._closing.is_set():
            self._reader.loaded()

    def _first_answers(self, log: Transport, oldest: int | None) -> dict[int, int]:
        """The offsets in log.labels from which on there may be an answer to an open question."""
        topic = self._settings.log.labels
        ends = log.end_offsets(topic)
        since = _NEVER_MS if oldest is None else oldest - _CLOCKS_MS
        return {**ends, **self._backend.search(topic, ends, since)}

    def _read_to_end(self, log: Transport, topic: str, starts: Mapping[int, int]) -> None:
        ends = log.end_offsets(topic)
        for number, start in starts.items():
            log.seek(topic, number, start)
            self._reading.add((topic, number))
        while any(log.position(topic, n) < ends[n] for n in starts) and not self._closing.is_set():
            self._poll(log)

    def _begin_new(self, log: Transport) -> None:
        """Start reading partitions that did not exist before."""
        for topic in (self._settings.log.questions, self._settings.log.labels):
            for number, start in log.start_offsets(topic).items():
                if (topic, number) not in self._reading:
                    log.seek(topic, number, start)
                    self._reading.add((topic, number))

    def _poll(self, log: Transport) -> None:
        try:
            records = log.poll(POLL_SECONDS, POLL_RECORDS)
        except Unavailable as error:
            self._trouble(error)
            return
        if self._outage.reason:
            self._outage.ends()
            self._reader.trouble(None)
        if records:
            self._reader.take(records)

    def _trouble(self, error: Exception) -> None:
        self._reader.trouble(str(error))
        super()._trouble(error)

    def _failed(self, error: Exception) -> None:
        self._reader.failed(error)
