"""Puts what the labelling service reads from the log into its book, and tells whether the log can be read."""

import threading

from ..logs.transport import Record, Unavailable
from ..records.formats.base import BadRecord
from .book import Book


class Reader:
    """A `Listener` of the follower; it says when anything has changed.

    Parameters
    ----------
    book
        Takes what is read.
    changed
        Guards the book and this reader, and is notified of every change.
    labels
        The topic of labels.

    Attributes
    ----------
    version
        Number of changes so far.
    is_loaded
        Whether both topics were read to their ends.
    failure
        The error that has ended the reading for good, or None.
    """

    def __init__(self, book: Book, changed: threading.Condition, labels: str) -> None:
        self.version = 0
        self.is_loaded = False
        self.failure: Exception | None = None
        self._reason: str | None = None  # why the log cannot be read now
        self._book = book
        self._changed = changed
        self._labels = labels

    def tell(self) -> None:
        """Say that something has changed; the caller holds the lock."""
        self.version += 1
        self._changed.notify_all()

    def why_not(self) -> str | None:
        """Why the log cannot be read; None: it can."""
        return self._reason if self.failure is None else str(self.failure)

    def check(self) -> None:
        """Raise `Unavailable` if the questions cannot be read."""
        if self.failure is not None:
            raise Unavailable(str(self.failure)) from self.failure
        if self._reason is not None and not self.is_loaded:
            raise Unavailable(self._reason)

    # --- what the follower calls --------------------------------------------------------------------------------------

    def begin_questions(self) -> None:
        with self._changed:
            self._book.begin_questions()

    def end_questions(self) -> int | None:
        with self._changed:
            self._book.end_questions()
            return self._book.oldest_question()

    def loaded(self) -> None:
        with self._changed:
            self._book.open_again()
            self.is_loaded = True
            self.tell()

    def take(self, records: list[Record]) -> None:
        with self._changed:
            for record in records:
                try:
                    if record.topic == self._labels:
                        self._book.read_label(record)
                    else:
                        self._book.read_question(record)
                except BadRecord as error:
                    self._book.set_aside(record, error)
            self.tell()

    def trouble(self, reason: str | None) -> None:
        with self._changed:
            self._reason = reason
            self.tell()

    def failed(self, error: Exception) -> None:
        with self._changed:
            self.failure = error
            self.tell()
