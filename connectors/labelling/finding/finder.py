"""Reading the topic of events for those who search it, on a thread that begins with the first search."""

import threading
from collections.abc import Iterator

from streamsvm.active.answers.register import question_id

from ...logs.reading import POLL_RECORDS
from ...logs.transport import Record, Transport, Unavailable
from ...records.codec import readable
from ...records.people.questions import FOUND, Question, fits_question
from ...runtime.process import POLL_SECONDS
from ...settings.sections import Settings
from ..log_thread import LogThread
from .index import CAPACITY, EventIndex, Page
from .query import BadQuery, parse

_LOADING = "the events are still being read"
_PATIENCE = 0.05  # seconds that a request waits for the first events
_AT_ONCE = 50  # events, during which a search waits


class Finder(LogThread):
    """Finds the newest events by what people type, and by likeness; any thread may call it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, "the events")
        self._codec = settings.codec()
        self._shown = settings.shown()
        self._index = EventIndex()
        self._loaded = threading.Event()

    def close(self) -> None:
        """Stop, and wait for the thread to end."""
        super().close()
        self._index.close()

    @property
    def is_loaded(self) -> bool:
        """Whether the events that the log had at the first search were read."""
        return self._loaded.is_set()

    def __len__(self) -> int:
        """Number of events that can be found."""
        return len(self._index)

    def search(self, text: str, before: int | None, n: int) -> Page:
        """The newest events that fit what was typed, as `EventIndex.search`.

        Raises
        ------
        BadQuery
            If it is no query, or if no event has such a value.
        Unavailable
            If the events cannot be read.
        """
        query = parse(text)
        self._begin()
        is_loaded = self._loaded.wait(_PATIENCE)
        try:
            return self._index.search(query, before, n)
        except BadQuery:
            if is_loaded:
                raise
            raise Unavailable(_LOADING) from None

    def draw(self) -> Question | None:
        """An event at random of those that were read so far; None: there is none; raises `Unavailable` as `search`."""
        self._begin()
        if not len(self):
            self._loaded.wait(_PATIENCE)
        return self._index.draw()

    def like(self, query_id: str, n: int) -> Page | None:
        """The events that are most like one, as `EventIndex.like`; raises `Unavailable` as `search`."""
        self._begin()
        found = self._index.like(query_id, n)
        if found is None and not self.is_loaded:
            raise Unavailable(_LOADING)
        return found

    def question(self, query_id: str) -> Question | None:
        """The event of this question, if it was found."""
        return self._index.question(query_id)

    def again(self, query_id: str) -> Question | None:
        """The event of this question, which may have been found before a restart; raises `Unavailable` as `like`."""
        self._begin()
        is_loaded = self._loaded.wait(_PATIENCE)
        found = self._index.question(query_id)
        if found is None and not is_loaded:
            raise Unavailable(_LOADING)
        return found

    # --- reading ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.start()
        if self._outage.reason:
            raise Unavailable(self._outage.reason)

    def _follow(self, log: Transport) -> None:
        topic = self._settings.log.topic
        ends = log.end_offsets(topic)
        for number, start in log.start_offsets(topic).items():
            log.seek(topic, number, max(start, ends[number] - CAPACITY))
        while not self._closing.is_set():
            if all(log.position(topic, number) >= end for number, end in ends.items()):
                self._loaded.set()
            records = log.poll(POLL_SECONDS, POLL_RECORDS)
            self._outage.ends()
            for i in range(0, len(records), _AT_ONCE):
                self._index.add(list(self._questions(records[i : i + _AT_ONCE])))

    def _questions(self, records: list[Record]) -> Iterator[Question]:
        """The events as questions; those that the trainer refuses, or would not ask about, are left out."""
        for record, event in readable(records, self._codec.decode):
            value = record.value or b""
            x = self._shown.numbers(event.x)
            if not fits_question(x, len(value)):
                continue
            name = f"{record.topic}-{record.partition}"
            yield Question(
                query_id=question_id(name, event.key),
                id=event.id,
                partition=record.partition,
                x=x,
                event=self._shown.fields(value, event.x),
                margin=0.0,
                reason=FOUND,
                asked_at=max(record.timestamp, 0),
                expires_at=max(record.timestamp, 0),
            )
