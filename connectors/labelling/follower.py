"""Reading the topics of questions and labels, on a thread, for as long as the labelling service runs."""

import logging
import threading
import time
from collections.abc import Mapping
from typing import Protocol

from ..logs.reading import POLL_RECORDS
from ..logs.transport import OffsetOutOfRange, Record, Transport, Unavailable
from ..runtime.numbers import HOUR_MS
from ..runtime.outage import Outage
from ..runtime.process import LOOK_SECONDS, POLL_SECONDS
from ..settings import topics
from ..settings.opening import backend_of, open_once
from ..settings.sections import Settings

logger = logging.getLogger(__name__)

_CLOCKS_MS = HOUR_MS  # by which the clocks of trainers and of annotators' machines may differ
_NEVER_MS = 10**15  # later than every record


class Listener(Protocol):
    """Takes what a `Follower` reads; its methods are called on the follower's thread."""

    def begin_questions(self) -> None:
        """The topic of questions will be read from its start."""

    def end_questions(self) -> int | None:
        """All questions were read; returns the time of the oldest open one."""

    def loaded(self) -> None:
        """Both topics were read to their ends."""

    def take(self, records: list[Record]) -> None:
        """Records of either topic."""

    def trouble(self, reason: str | None) -> None:
        """The log cannot be read for now; None: it can be read again."""

    def failed(self, error: Exception) -> None:
        """Reading has ended for good."""


class Follower:
    """Reads questions, then the answers that they may have, then whatever is appended.

    Parameters
    ----------
    settings
        The configuration.
    listener
        Takes what is read.
    """

    def __init__(self, settings: Settings, listener: Listener) -> None:
        self._settings = settings
        self._listener = listener
        self._backend = backend_of(settings)
        self._closing = threading.Event()
        self._outage = Outage(logger, "the questions can be read again")
        self._reading: set[tuple[str, int]] = set()  # topic and partition
        self._thread = threading.Thread(target=self._run, name="questions", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait for the thread to end."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with open_once(self._settings) as log:
                    self._load(log)
                    self._follow(log)
            except (Unavailable, OffsetOutOfRange) as error:
                self._wait_for_log(error)
            except Exception as error:
                logger.error("the questions cannot be read: %s", error)
                self._listener.failed(error)
                return

    def _follow(self, log: Transport) -> None:
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
        self._listener.begin_questions()
        self._read_to_end(log, names.questions, log.start_offsets(names.questions))
        oldest = self._listener.end_questions()
        self._read_to_end(log, names.labels, self._first_answers(log, oldest))
        if not self._closing.is_set():
            self._listener.loaded()

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
            self._wait_for_log(error)
            return
        if self._outage.reason:
            self._outage.ends()
            self._listener.trouble(None)
        if records:
            self._listener.take(records)

    def _wait_for_log(self, error: Exception) -> None:
        self._outage.goes_on(error)
        self._listener.trouble(str(error))
        self._closing.wait(LOOK_SECONDS)
