"""Writing down what people say: answers, corrections, what is taken back, and changes of the classes.

`LabellingService` is the door to this room. An answer is durable before a call returns. One thread writes at a time;
what others read, in the book and the history, is guarded by the service's condition.
"""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Literal, Self

from ..logs.transport import Unavailable
from ..records.class_changes import ClassChange
from ..records.classes import ClassLabel
from ..records.labels import Place
from ..settings.opening import backend_of
from ..settings.sections import Settings
from .answer import Given, Unusable, Word
from .book import Book, UnknownQuestion
from .finding.finder import Finder
from .follower import Follower
from .group import for_others
from .history import FILE, History, Step, Undone
from .writer import AnswerWriter

IDLE_SECONDS = 0.5  # without an answer, after which another process may write labels to an embedded log

Outcome = Literal["first", "repeated", "changed", "stale"]


class Answering:
    """What `LabellingService` is built on: it writes answers, and tells those who wait for changes.

    Parameters and errors are those of `LabellingService`.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._changed = threading.Condition()  # guards the book, the history and the follower
        self._is_shared = backend_of(settings).has_groups  # others can write labels while this log is open
        self._writing = threading.Lock()  # guards the next two; taken before _changed if both are
        self._writer = AnswerWriter(settings)
        self._resting: threading.Timer | None = None
        self._is_closing = False
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        backend = backend_of(self._settings)
        self._resources.enter_context(backend.sole_labelling(self._settings.log.labels))
        labelling = self._settings.labelling
        history = History(self._settings.daemon.state_dir / FILE, several=labelling.answers_per_question > 1)
        self._history = self._resources.enter_context(closing(history))
        lease = int(1000 * labelling.lease_seconds)
        self._book = Book(lease, labelling.answers_per_question, self._settings.codec(), self._clock, history)
        self._follower = Follower(self._settings, self._book, self._changed)
        self._follower.start()
        self._finder = self._resources.enter_context(closing(Finder(self._settings)))
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._follower.close()
        with self._writing:
            if self._resting is not None:
                self._resting.cancel()
            self._writer.close()
        self._resources.close()

    # --- answers ------------------------------------------------------------------------------------------------------

    def answer(
        self,
        query_id: str,
        y: ClassLabel | None,
        who: str,
        *,
        at: int | None = None,
        place: Place | None = None,
        alike: bool = False,
    ) -> Outcome:
        """Write a label; it is durable when this returns.

        A question may be answered late, and more than once: the newest answer holds.

        Parameters
        ----------
        query_id
            Id of the question.
        y
            The class; with two, whether the event is positive.  None: it cannot be labelled, see `skip`.
        who
            Name of the annotator.
        at
            Time of the answer, in milliseconds since the epoch; None: now.
        place
            Where the answer goes if the service has forgotten the question; None: such a question is unknown.
        alike
            Whether the label is also for the near-duplicates of the event that nothing was said of, see
            `Question.alike`. They are written first, so that a repetition after a failure completes them.

        Returns
        -------
        Outcome
            "first"; "changed": the label replaces another answer; "repeated": the same answer was given before, by
            `who` or another annotator, and nothing was written; "stale": a newer answer holds, and nothing was written.

        Raises
        ------
        UnknownQuestion
            If there is no such question.
        Unavailable
            If the label cannot be written now: try again.
        """
        return self._write(query_id, Word("skip" if y is None else "set", y, who), at, place, alike=alike)

    def skip(self, query_id: str, who: str) -> Outcome:
        """Say that the event cannot be labelled. It is not asked again, and costs no label; raises as `answer`."""
        return self.answer(query_id, None, who)

    def ignore(self, query_id: str, who: str) -> Outcome:
        """Say that the event is useless, for example damaged; raises as `answer`."""
        return self._write(query_id, Word("ignore", None, who))

    def retract(self, query_id: str, who: str, *, place: Place | None = None) -> Outcome:
        """Take a label back; raises as `answer`."""
        return self._write(query_id, Word("retract", None, who), None, place)

    def correct(self, query_id: str, op: Literal["set", "skip", "ignore"], y: ClassLabel | None, who: str) -> Outcome:
        """Replace whatever was answered; unlike `skip` and `ignore`, this takes a label back; raises as `answer`."""
        with self._writing:
            return self._replace(query_id, Word(op, y, who))

    def decide(self, query_id: str, y: ClassLabel, who: str) -> Outcome:
        """Give the label that holds, whatever the annotators of the question have said or will say; raises as `answer`.

        It is no vote: the statistics of the annotators leave it out. `retract` and `undo` take it back.
        """
        with self._writing:
            return self._say(query_id, Word("decide", y, who), anew=True)

    def _write(
        self, query_id: str, word: Word, at: int | None = None, place: Place | None = None, *, alike: bool = False
    ) -> Outcome:
        """Write an answer as `answer` does."""
        with self._writing:
            if alike:
                self._tell_others(query_id, word, for_all=True)
            if word.y in self._book.changes.gone and self._book.changes.meaning(word.y) is None:
                self._change_class(ClassChange("restore", word.y, word.y, 0, ""), word.who)  # the class comes again
            return self._say(query_id, word, at, place)

    def _tell_others(self, query_id: str, word: Word, *, for_all: bool = False) -> None:
        """Write what an answer means for near-duplicates. These are no steps of their own: an undo takes back all."""
        if self._writer.pending:  # one of these may be about the same events
            self._flush()
        with self._changed:
            self._follower.check()
            listed = list(for_others(self._book, query_id, word, self._now(), for_all=for_all))
        for other, given in listed:
            self._writer.append(other, given)
        if listed:
            self._flush()
        with self._changed:
            for other, _ in listed:
                self._pass_over(other, word.who)

    def _pass_over(self, query_id: str, who: str) -> None:
        """Let the newest answer to a question be no step of its own."""
        newest = self._book.ballots.newest(query_id)
        assert newest is not None  # it was just given
        self._history.pass_over(query_id, newest.rev, who)

    def _replace(self, query_id: str, word: Word) -> Outcome:
        self._tell_others(query_id, word)
        with self._changed:
            self._book.recall(query_id)
            last = self._book.last(query_id, word.who)
        if last is None or not last.excludes(word.op):
            return self._say(query_id, word, anew=True)
        self._say(query_id, Word("retract", None, word.who))
        with self._changed:
            self._pass_over(query_id, word.who)
        self._say(query_id, word)
        return "changed"

    def _say(
        self, query_id: str, word: Word, at: int | None = None, place: Place | None = None, *, anew: bool = False
    ) -> Outcome:
        """Write an answer; `anew`: also if the same person gave it before, and another one holds."""
        with self._changed:
            self._follower.check()
            if not self._follower.is_loaded:
                raise Unavailable("the questions are still being read")
            self._book.recall(query_id)
            place = self._book.place(query_id) or place
        if place is None and word.op == "set" and (found := self._finder.again(query_id)) is not None:
            place = found.place  # an annotator has found the event
            with self._changed:
                self._book.keep(found)
        if place is None:
            raise UnknownQuestion(f"there is no question {query_id!r}, or it was closed long ago")
        self._settle(query_id, word)
        with self._changed:
            last, newest, now = self._book.last(query_id, word.who), self._book.ballots.newest(query_id), self._now()
            is_said = self._book.ballots.has_said(query_id, word)
        if last is not None and (last.says(word) or (is_said and not anew)):
            return "repeated"
        if last is not None and (last.excludes(word.op) or (at is not None and at <= last.rev)):
            return "stale"
        if query_id not in self._writer.pending:
            earliest = 0 if newest is None else newest.rev + 1  # no two answers to a question have the same revision
            self._writer.append(query_id, Given(*word, max(now if at is None else at, earliest), place))
        self._flush()
        return "first" if last is None or last.op == "retract" else "changed"

    def _settle(self, query_id: str, word: Word) -> None:
        """Make a pending answer to this question durable, unless this repeats it: it decides what may follow."""
        pending = self._writer.pending.get(query_id)
        if pending is None or pending.by == word:
            return
        before = self.last_word(query_id, word.who)
        self._flush()
        after = self.last_word(query_id, word.who)
        is_theirs = after == Word("set", pending.y, word.who) and (before is None or before.op != "set")
        # They mean this in place of a label that seemed not to be written.
        if is_theirs and word.op in ("skip", "ignore"):
            self._say(query_id, Word("retract", None, word.who), None, pending.place)

    def last_word(self, query_id: str, who: str | None = None) -> Word | None:
        """The newest answer to a question; None if no answer is remembered.

        If a question wants the answers of several people and `who` is given, it is their newest answer.
        """
        with self._changed:
            given = self._book.ballots.newest(query_id) if who is None else self._book.last(query_id, who)
            return None if given is None else given.by

    # --- taking back --------------------------------------------------------------------------------------------------

    def undo(self, who: str, number: int | None = None) -> Undone | None:
        """Take back the newest answer of `who`: a label, a skip, an ignore or a correction.

        Each further call takes back the one before it. A question without an earlier answer is open again, and
        reserved for `who`; an answer that was corrected holds again.

        Parameters
        ----------
        who
            The annotator.
        number
            Number of the answer, from `undoable`; a repetition of a request then undoes nothing else. None: the newest.

        Returns
        -------
        Undone
            What became of it; None if there is nothing to undo.

        Raises
        ------
        Unavailable
            If this cannot be written now: try again.
        """
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
            is_retracted = is_replaced and self.last_word(query_id, who) == retraction
            if is_replaced and not is_retracted:
                self._history.give_up(step)
                return Undone(step, "replaced")
        is_decision = step.given.op == "decide" and self._book.ballots.answers > 1  # beside which the answers stand
        if earlier is not None and not is_decision:
            self._replace(query_id, earlier.given.by._replace(who=who))
        elif not is_retracted:
            self._tell_others(query_id, retraction)
            self._say(query_id, retraction)
        with self._changed:
            self._history.pass_over(query_id, step.given.rev, who)
            if earlier is None and query_id in self._book.open:  # else its contents are forgotten
                self._book.queue.reserve(query_id, self._book.ballots.voter(who), self._now())
            self._follower.tell()
        return Undone(step, "open" if earlier is None else "restored")

    # --- classes ------------------------------------------------------------------------------------------------------

    def change_class(self, change: ClassChange, who: str) -> None:
        """Rename, merge or remove a class, or let a removed one come again; it is durable when this returns.

        Parameters
        ----------
        change
            What changes; its time and its author are set here.
        who
            Name of the person.

        Raises
        ------
        Unusable
            If the trainer could not follow.
        Unavailable
            If the change cannot be written now: try again.
        """
        settings = self._settings
        has_one = settings.daemon.per == "partition" and settings.model.algorithm != "auto"
        has_more = settings.challenger or settings.decide.error or settings.estimates.loo or settings.estimates.folds
        if has_more or not has_one:
            raise Unusable(
                'classes can be changed with one model for each partition (daemon.per = "partition"), which does not '
                "tune itself, and without [decide], [estimates] and challengers"
            )
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
            self._follower.tell()

    # --- the log ------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        durable = self._writer.flush()
        if not self._is_shared:
            self._rest_soon()
        with self._changed:
            for query_id, given in durable.items():
                self._book.note(query_id, given)
            self._follower.tell()

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

    def _now(self) -> int:
        return int(1000 * self._clock())
