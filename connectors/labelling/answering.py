"""Writing down what people say: answers, corrections, what is taken back, and changes of the classes.

`LabellingService` is the door to this room. An answer is durable before a call returns. One thread writes at a time;
what others read, in the book and the history, is guarded by the service's condition.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Literal

from ..logs.transport import Unavailable
from ..records.class_changes import ClassChange
from ..records.labels import Place
from ..settings.opening import backend_of
from ..settings.sections import Settings
from .answer import Given, Word
from .book import Book, UnknownQuestion, check_name
from .finding.finder import Finder
from .group import following, with_others
from .history import History, Step, Undone
from .reader import Reader
from .writer import AnswerWriter

IDLE_SECONDS = 0.5  # without an answer, after which another process may write labels to an embedded log

Outcome = Literal["first", "repeated", "changed", "stale"]


class Answering:
    """Writes answers, and tells the book, the history and those who wait for changes.

    Parameters
    ----------
    settings
        The configuration.
    changed
        Guards the book, the history and the reader.
    book, history
        The questions and answers that are remembered.
    reader
        Tells those who wait for changes.
    finder
        The events, of which a person may answer any.
    now
        The time in milliseconds since the epoch.
    """

    def __init__(
        self,
        settings: Settings,
        changed: threading.Condition,
        book: Book,
        history: History,
        reader: Reader,
        finder: Finder,
        now: Callable[[], int],
    ) -> None:
        self._changed = changed
        self._book, self._history, self._reader, self._finder = book, history, reader, finder
        self._now = now
        self._is_shared = backend_of(settings).has_groups  # others can write labels while this log is open
        self._writing = threading.Lock()  # guards the next two; taken before _changed if both are
        self._writer = AnswerWriter(settings)
        self._resting: threading.Timer | None = None

    def close(self) -> None:
        """Close the log."""
        with self._writing:
            if self._resting is not None:
                self._resting.cancel()
            self._writer.close()

    # --- answers ------------------------------------------------------------------------------------------------------

    def say(
        self, query_id: str, word: Word, at: int | None = None, place: Place | None = None, *, alike: bool = False
    ) -> Outcome:
        """Write an answer, as `LabellingService.answer`."""
        check_name(word.who)
        with self._writing:
            if alike:
                self._tell_others(with_others(self._book, query_id, word, self._now()), word.who)
            if word.y in self._book.changes.gone and self._book.changes.meaning(word.y) is None:
                self._change_class(ClassChange("restore", word.y, word.y, 0, ""), word.who)  # the class comes again
            return self._say(query_id, word, at, place)

    def decide(self, query_id: str, word: Word) -> Outcome:
        """Write a decision, also if the same person gave it before, and another answer holds."""
        check_name(word.who)
        with self._writing:
            return self._say(query_id, word, anew=True)

    def correct(self, query_id: str, word: Word) -> Outcome:
        """Replace whatever was answered."""
        check_name(word.who)
        with self._writing:
            return self._replace(query_id, word)

    def _tell_others(self, answers: Iterable[tuple[str, Given]], who: str) -> None:
        """Write answers about near-duplicates. They are no steps of their own: who takes the answer back, takes all."""
        if self._writer.pending:  # one of these may be about the same events
            self._flush()
        with self._changed:
            self._reader.check()
            listed = list(answers)
        for query_id, given in listed:
            self._writer.append(query_id, given)
        if listed:
            self._flush()
        with self._changed:
            for query_id, _ in listed:
                self._history.pass_over(query_id, self._book.given[query_id].rev, who)

    def _replace(self, query_id: str, word: Word) -> Outcome:
        self._tell_others(following(self._book, query_id, word, self._now()), word.who)
        with self._changed:
            self._book.recall(query_id)
            last = self._book.last(query_id, word.who)
        if last is None or not last.excludes(word.op):
            return self._say(query_id, word, anew=True)
        self._say(query_id, Word("retract", None, word.who))
        with self._changed:  # this is no step of its own
            self._history.pass_over(query_id, self._book.given[query_id].rev, word.who)
        self._say(query_id, word)
        return "changed"

    def _say(
        self, query_id: str, word: Word, at: int | None = None, place: Place | None = None, *, anew: bool = False
    ) -> Outcome:
        """Write an answer; `anew`: also if the same person gave it before, and another one holds."""
        if word.op == "set" and place is None:
            self._take_up_found(query_id)
        with self._changed:
            self._reader.check()
            if not self._reader.is_loaded:
                raise Unavailable("the questions are still being read")
            self._book.recall(query_id)
            place = self._book.place(query_id) or place
            if place is None:
                raise UnknownQuestion(f"there is no question {query_id!r}, or it was closed long ago")
        self._settle(query_id, word)
        with self._changed:
            last, newest, now = self._book.last(query_id, word.who), self._book.given.get(query_id), self._now()
        if last is not None and (last.says(word) or (last.said(word) and not anew)):
            return "repeated"
        if last is not None and (last.excludes(word.op) or (at is not None and at <= last.rev)):
            return "stale"
        if query_id not in self._writer.pending:
            earliest = 0 if newest is None else newest.rev + 1  # no two answers to a question have the same revision
            self._writer.append(query_id, Given(*word, max(now if at is None else at, earliest), place))
        self._flush()
        return "first" if last is None or last.op == "retract" else "changed"

    def _take_up_found(self, query_id: str) -> None:
        """Remember the event of a question that the trainer has not asked, if an annotator has found it."""
        with self._changed:
            self._reader.check()
            self._book.recall(query_id)
            if self._book.place(query_id) is not None:
                return
        found = self._finder.again(query_id)
        if found is not None:
            with self._changed:
                self._book.keep(found)

    def _settle(self, query_id: str, word: Word) -> None:
        """Make a pending answer to this question durable, unless this repeats it: it decides what may follow."""
        pending = self._writer.pending.get(query_id)
        if pending is None or pending.by == word:
            return
        before = self._last(query_id, word.who)
        self._flush()
        after = self._last(query_id, word.who)
        is_theirs = after == Word("set", pending.y, word.who) and (before is None or before.op != "set")
        # They mean this in place of a label that seemed not to be written.
        if is_theirs and word.op in ("skip", "ignore"):
            self._say(query_id, Word("retract", None, word.who), None, pending.place)

    def _last(self, query_id: str, who: str) -> Word | None:
        """The newest answer to a question; if it wants those of several people, the newest of `who`."""
        with self._changed:
            given = self._book.last(query_id, who)
            return None if given is None else given.by

    # --- taking back --------------------------------------------------------------------------------------------------

    def undo(self, who: str, number: int | None) -> Undone | None:
        """Take an answer back, as `LabellingService.undo`."""
        with self._writing:
            if self._writer.pending:  # one of these may turn out to be the newest answer of `who`
                self._flush()
            with self._changed:
                step = self._history.undoable(who) if number is None else self._history.step(number, who)
            if step is None:
                return None
            return self._undo(step, who) if step.undoable else Undone(step, "repeated")

    def _undo(self, step: Step, who: str) -> Undone:
        query_id, retraction = step.query_id, Word("retract", None, who)
        with self._changed:
            self._book.recall(query_id)
            earlier = self._history.before(step)
            is_replaced = self._history.is_replaced(step)
            # An earlier attempt may have become durable together with another annotator's answer.
            is_retracted = is_replaced and self._last(query_id, who) == retraction
            if is_replaced and not is_retracted:
                self._history.give_up(step)
                return Undone(step, "replaced")
        is_decision = step.op == "decide" and self._book.ballots.answers > 1  # beside which the answers stand
        if earlier is not None and not is_decision:
            self._replace(query_id, Word(earlier.op, earlier.y, who))
        elif not is_retracted:
            self._tell_others(following(self._book, query_id, retraction, self._now()), who)
            self._say(query_id, retraction)
        with self._changed:
            self._history.pass_over(query_id, step.rev, who)
            if earlier is None and query_id in self._book.open:  # else its contents are forgotten
                self._book.queue.reserve(query_id, self._book.ballots.voter(who), self._now())
            self._reader.tell()
        return Undone(step, "open" if earlier is None else "restored")

    # --- classes ------------------------------------------------------------------------------------------------------

    def change_class(self, change: ClassChange, who: str) -> None:
        """Write a change of the classes, with its time and its author."""
        check_name(who)
        with self._writing:
            self._change_class(change, who)

    def _change_class(self, change: ClassChange, who: str) -> None:
        with self._changed:
            newest = max((each.rev for each in self._book.changes.all), default=0)
        change = change._replace(rev=max(self._now(), newest + 1), who=who)
        self._writer.append_change(change)
        self._flush()
        with self._changed:
            self._book.note_change(change)
            self._reader.tell()

    # --- the log ------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        durable = self._writer.flush()
        if not self._is_shared:
            self._rest_soon()
        with self._changed:
            for query_id, given in durable.items():
                self._book.note(query_id, given)
            self._reader.tell()

    def _rest_soon(self) -> None:
        """Close the log after the last answer: while it is open, no other process can add labels to an embedded one."""
        if self._resting is not None:
            self._resting.cancel()
        self._resting = threading.Timer(IDLE_SECONDS, self._rest)
        self._resting.daemon = True
        self._resting.start()

    def _rest(self) -> None:
        with self._writing:
            if not self._writer.pending:
                self._writer.close()
