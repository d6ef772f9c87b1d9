"""The labelling service: it hands the trainer's questions to annotators, and writes their answers down.

Questions come from the topic log.questions (see `records.people.questions`). Answers go to log.labels (see
`records.labels`), on the partition of the question; an answer's rev is its time in milliseconds. The page, the
terminal, Label Studio and oracles all answer through `LabellingService`.

An answer is durable before `LabellingService.answer` returns, and repeating an answer writes nothing. A client that
received no reply therefore sends its answer again. After a restart, the service reads the answers from log.labels,
because the trainer may not have read them yet. What can be undone or corrected is in the file of `history`.

A damaged record of log.questions is counted and passed over with a warning; it is never shown.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from streamsvm.core.newest import Newest

from ..logs.transport import Unavailable
from ..records.class_changes import ClassChange
from ..records.classes import ClassLabel
from ..records.people.annotators import person
from ..records.people.questions import Question, is_recheck, without_recheck
from ..settings.sections import Settings
from .answer import Given
from .answering import Answering
from .book import UnknownQuestion
from .finding.index import Page
from .history import Step, last_words

_LOOKED_AT = 200  # disagreements
_DRAWS = 20  # of random events, until one has no answer
_SPARES = 1000  # annotators who have a random event; some leave without a word


class Found(NamedTuple):
    """Events that were found.

    Attributes
    ----------
    page
        The events.
    given
        The answer about each of them, or None.
    n_events
        Number of events that were searched.
    is_loaded
        Whether these are all; if not, the service still reads the events.
    """

    page: Page
    given: list[Given | None]
    n_events: int
    is_loaded: bool


class Dispute(NamedTuple):
    """Answers that look doubtful.

    Attributes
    ----------
    kind
        "tied": the question waits for a further answer; "settled": it does not, but people disagree; "doubt": the model
        contradicts the answer, and asks again.
    query_id, question
        The question that a decision answers, and what was asked; None if that is forgotten.
    answers
        The last answer of each person, oldest first.
    """

    kind: Literal["tied", "settled", "doubt"]
    query_id: str
    question: Question | None
    answers: list[Step]


class LabellingService(Answering):
    """Hands out questions and writes answers, inside a ``with`` block; any thread may call it.

    Every annotator has a name, such as "page:alice". It becomes the source of the annotator's labels.

    Parameters
    ----------
    settings
        The configuration; it must name log.questions and log.labels.
    clock
        Seconds since the epoch.

    Raises
    ------
    AlreadyInUse
        By the ``with`` statement, if another process answers the questions of the same embedded log.
    OSError, FileError
        By the ``with`` statement, if the history of answers in daemon.state_dir cannot be opened.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        super().__init__(settings, clock)
        # Random events, by annotator: they need not wait for the trainer.
        self._spares: Newest[str, Question] = Newest(_SPARES)

    # --- questions ----------------------------------------------------------------------------------------------------

    def next(self, who: str) -> Question | None:
        """The question that is reserved for `who`, else the oldest free one, which is then reserved; None: no question.

        Raises
        ------
        Unavailable
            If the questions cannot be read.
        """
        with self._changed:
            self._follower.check()
            if not self._follower.is_loaded:
                return None
            spare = self._spares.get(who)
            if spare is not None and self._said(spare.query_id) is None:
                return spare
            self._spares.pop(who, None)
            query_id = self._book.assign(who, self._now())
            if query_id is not None:
                return self._book.open.get(query_id)
            must_wait = bool(self._book.open) and self._book.ballots.answers == 1  # others have the open questions
        return self._spare(who) if must_wait else None

    def _spare(self, who: str) -> Question | None:
        """A random event for an annotator who would have to wait for the trainer; None if there is none."""
        with suppress(Unavailable):
            for _ in range(_DRAWS):
                shown = self._finder.draw()
                if shown is None:
                    return None
                with self._changed:
                    if self._said(shown.query_id) is None and shown.query_id not in self._book.open:
                        self._spares[who] = shown
                        return shown
        return None

    def release(self, who: str) -> None:
        """End the reservation of `who`; those who wait for a question learn of it."""
        with self._changed:
            self._spares.pop(who, None)
            self._book.queue.release(self._book.ballots.voter(who))
            self._follower.tell()

    def rename(self, who: str, to: str) -> None:
        """Let an annotator go on under another name, with their question unless they have answered it by that name."""
        with self._changed:
            spare = self._spares.pop(who, None)
            if spare is not None:
                self._spares[to] = spare
            self._book.pass_on(who, to, self._now())
            self._follower.tell()

    def open(self) -> list[Question]:
        """All questions without an answer, reserved or not, oldest first."""
        with self._changed:
            self._follower.check()
            return (
                sorted(self._book.open.values(), key=lambda shown: shown.asked_at) if self._follower.is_loaded else []
            )

    def wait(self, seconds: float, seen: int = -1) -> int:
        """Wait until something has changed.

        Parameters
        ----------
        seconds
            Wait no longer than this.
        seen
            The number that an earlier call returned: return as soon as anything has changed since then. -1: wait for
            the next change.

        Returns
        -------
        int
            Number of changes so far.
        """
        with self._changed:
            seen = self._follower.version if seen < 0 else seen
            self._changed.wait_for(lambda: self._follower.version != seen or self._is_closing, seconds)
            return self._follower.version

    def check(self) -> None:
        """Raise the error that has ended the reading of questions, if there is one."""
        if self._follower.failure is not None:
            raise self._follower.failure

    # --- disagreements ------------------------------------------------------------------------------------------------

    def is_tied(self, query_id: str) -> bool:
        """Whether enough people have answered a question, and disagree."""
        with self._changed:
            return self._book.ballots.is_tied(query_id)

    def disputes(self, n: int) -> list[Dispute]:
        """The answers that look doubtful: of people who disagree, then those that the model doubts.

        Questions that wait for a further answer come first, then those with the newest answers.

        Parameters
        ----------
        n
            No more than this.
        """
        with self._changed:
            book, history, found = self._book, self._history, []
            for query_id in history.disputes()[:_LOOKED_AT]:
                last = last_words(history.answers(query_id))
                if len({book.changes.meaning(step.given.y) or step.given.op for step in last}) > 1:
                    kind: Literal["tied", "settled"] = "tied" if query_id in book.open else "settled"
                    found.append(Dispute(kind, query_id, book.question(query_id), last))
            for shown in book.open.values():
                if is_recheck(shown.query_id):
                    found.append(Dispute("doubt", shown.query_id, shown, last_words(history.about(shown.place))))
            return sorted(found, key=lambda each: each.kind != "tied")[:n]

    # --- classes ------------------------------------------------------------------------------------------------------

    def class_changes(self) -> list[ClassChange]:
        """How people have changed the classes, in order."""
        with self._changed:
            return self._book.changes.all

    def meaning(self, label: ClassLabel | None) -> ClassLabel | None:
        """The class that a label counts as now; None: it is none, or the class was removed."""
        with self._changed:
            return self._book.changes.meaning(label)

    # --- looking back -------------------------------------------------------------------------------------------------

    def undoable(self, who: str) -> Step | None:
        """The answer that `undo` takes back next."""
        with self._changed:
            return self._history.undoable(who)

    def history(self, who: str | None, before: int | None, n: int) -> list[Step]:
        """The answers that can be corrected: the last one to each question, newest first.

        Parameters
        ----------
        who
            Only those of this annotator, in any tab; None: of all.
        before
            Only steps with a smaller number; None: the newest ones.
        n
            No more than this.
        """
        with self._changed:
            return self._history.page(None if who is None else person(who), before, n)

    def review(self, query_id: str) -> tuple[Question | None, list[Step]]:
        """A question, None if its contents are forgotten, and the answers to it, oldest first."""
        with self._changed:
            shown, answers = self._book.question(query_id), self._history.answers(query_id)
        return shown or self._finder.question(query_id), answers

    # --- finding events -----------------------------------------------------------------------------------------------

    def find(self, text: str, before: int | None, n: int) -> Found:
        """The newest events that fit what a person typed.

        Parameters
        ----------
        text
            Words and values, see `finding.query`; empty: all events fit.
        before
            Only events with a smaller number, as `Page.next` has it; None: from the newest on.
        n
            No more than this.

        Raises
        ------
        BadQuery
            If that is no query, or if no event has such a value.
        Unavailable
            If the events cannot be read.
        """
        return self._found(self._finder.search(text, before, n))

    def find_like(self, query_id: str, n: int) -> Found:
        """The `n` events that are most like the one of a question, asked or found.

        Raises
        ------
        UnknownQuestion
            If the event cannot be found: it is not one of the newest.
        Unavailable
            If the events cannot be read.
        """
        page = self._finder.like(without_recheck(query_id), n)
        if page is None:
            raise UnknownQuestion("this event is too old: only the newest ones can be compared")
        return self._found(page)

    def _found(self, page: Page) -> Found:
        with self._changed:
            given = [self._said(question.query_id) for question in page.questions]
        return Found(page, given, len(self._finder), self._finder.is_loaded)

    def _said(self, query_id: str) -> Given | None:
        """The answer to a question that holds, from the history if the book has forgotten it."""
        self._book.recall(query_id)
        return self._book.ballots.holding(query_id)

    # --- how far the labelling is -------------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """How far the labelling is, over all partitions.

        Returns
        -------
        dict
            The counts of `streamsvm.active.LabellingLoop`, and:

            - "remaining": labels left of the quota, None without a quota
            - "verdict": "stop" if all partitions say so, "audit" if any does, and "why"
            - "curve": of the partition with the most labels
            - "waiting": number of open questions
            - "unheard": number of answers without a reaction of the trainer
            - "refused": number of damaged records that were passed over
            - "disputes": number of disagreements, and of answers that the model doubts
            - "loaded": whether the questions have been read
            - "trainer": a sentence if the trainer is missing, else None
            - "heard_at": time of the trainer's newest record in milliseconds, or None
            - "trouble": why the log cannot be read, or None
        """
        with self._changed:
            return {
                **self._book.stats(),
                "disputes": len(self._history.disputes()) + sum(map(is_recheck, self._book.open)),
                "loaded": self._follower.is_loaded,
                "trainer": self._book.missing_trainer() if self._follower.is_loaded else None,
                "trouble": self._follower.why_not(),
            }
