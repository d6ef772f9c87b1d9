"""Writing answers to the topic of labels."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from ..logs.segments import LogCorruption
from ..logs.transport import AccessDenied, OutputsLost, TopicMismatch, Transport, Unavailable
from ..records.class_changes import ClassChange, write_change
from ..records.labels import write_answer
from ..runtime.folders import AlreadyInUse
from ..settings.opening import open_once
from ..settings.sections import Settings
from .answer import Given


class AnswerWriter:
    """Appends answers, and makes them durable; opens the log for its first answer.

    `LabellingService` calls it from one thread at a time.

    Attributes
    ----------
    pending
        Answers that were appended but may not be durable yet, by question.
    """

    def __init__(self, settings: Settings) -> None:
        self.pending: dict[str, Given] = {}
        self._settings = settings
        self._opened: AbstractContextManager[Transport] | None = None
        self._log: Transport | None = None

    def append(self, query_id: str, given: Given) -> None:
        """Append an answer, on the partition of its question; raises `Unavailable` as `flush` does."""
        value = write_answer(query_id, given.place, given.op, given.y, given.rev, given.who, given.like)
        with self._translated():
            self._open().produce(self._settings.log.labels, value, partition=given.place.partition)
        self.pending[query_id] = given

    def append_change(self, change: ClassChange) -> None:
        """Append a change of the classes to every partition; raises `Unavailable` as `flush` does."""
        names = self._settings.log
        with self._translated():
            log = self._open()
            for number in set().union(*map(log.end_offsets, (names.topic, names.questions, names.labels))):
                log.produce(names.labels, write_change(change), partition=number)

    def flush(self) -> dict[str, Given]:
        """Make the pending answers durable, and return them.

        Raises
        ------
        Unavailable
            If that fails. If the log is no longer usable, the pending answers are given up.
        """
        assert self._log is not None
        with self._translated():
            self._log.flush()
        durable, self.pending = self.pending, {}
        return durable

    def _open(self) -> Transport:
        if self._log is None:
            self._opened = open_once(self._settings)
            self._log = self._opened.__enter__()
        return self._log

    def close(self) -> None:
        """Close the log; the next answer opens it again."""
        opened, self._opened, self._log = self._opened, None, None
        self.pending.clear()
        if opened is not None:
            with suppress(OSError):
                opened.__exit__(None, None, None)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn every error into `Unavailable`: the annotator's page keeps the answer and sends it again."""
        try:
            yield
        except Unavailable as error:
            raise Unavailable(f"the answer is not written yet: {error}") from None
        except AlreadyInUse as error:
            raise Unavailable(
                "another process is writing labels to this log, and the embedded log takes one writer at a time: stop "
                f"that process first ({error})"
            ) from None
        except (AccessDenied, LogCorruption, OutputsLost, TopicMismatch, OSError) as error:
            self.close()  # the log may be unusable from now on
            raise Unavailable(f"the answer cannot be written: {error}") from None
