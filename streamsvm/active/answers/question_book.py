"""The question book: which open question is assigned to which annotator, and what their answers change.

Its outcome depends on nothing but the sequence of calls.  These are the rules:

Leases
    A question is assigned to one annotator at a time, the oldest first.  An annotator who asks again gets the same
    question until it is answered or withdrawn, or until they release it.  Each time, the lease starts again.  When it
    has ended, any annotator may get the question; an answer of the first one still counts.
Several answers
    A question may want the answers of several annotators.  As many of them have it at the same time, and it stays open
    until all of them have answered.  No annotator gets it again after their answer.
Answers
    The last answer that it wants closes a question.  A further answer is a repetition if it agrees with the one that
    holds, or with the same annotator's last one (a lost reply).  Otherwise it is a change.  A withdrawn question can
    still be answered: that is late, not wrong.
Undo
    For a minute, annotators can take back their newest answer, then the one before it.  They cannot if another
    annotator has changed it since.  The question is then open again and assigned to them.
Memory
    The book keeps all open questions and the last 10,000 closed ones.  Of each question it keeps the last words of 20
    annotators, and for undoing the newest 20 answers of the last 1000 annotators.  A forgotten question is unknown.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from streamsvm.active.answers.register import ENDED
from streamsvm.core.newest import Newest

KEPT = 20  # annotators of one question, by their last words, and answers of one annotator

Outcome = Literal["first", "repeated", "changed", "unknown"]


class Given(NamedTuple):
    """An answer that an annotator gave; the time is in milliseconds."""

    question_id: str
    y: bool
    time: int


@dataclass(slots=True)
class _Card:
    """A question, open or closed."""

    asked: int
    answers: int = 1  # by different annotators, that it wants
    wanted: int = 1  # of these, the missing ones
    holders: dict[str, int] = field(default_factory=dict)  # the annotators who have it, and the ends of their leases
    y: bool | None = None  # the answer that holds
    by: str | None = None  # the annotator who gave it
    said: Newest[str, bool | None] = field(default_factory=lambda: Newest(KEPT))  # last words; None: no label

    def is_free(self, who: str, now: int) -> bool:
        """Whether an annotator may get it."""
        n_held = sum(until > now for until in self.holders.values())
        return n_held < self.wanted and who not in self.said


class QuestionBook:
    """Assigns open questions to annotators, and says what an answer changes.

    Parameters
    ----------
    lease
        How long a question stays assigned to one annotator, in the unit of `now`: milliseconds; at least 1.

    Raises
    ------
    ValueError
        If the lease is not a positive integer.

    Examples
    --------
    >>> from streamsvm.active import QuestionBook
    >>> book = QuestionBook(lease=1000)
    >>> book.add("q1", asked=0)
    >>> book.add("q2", asked=5)
    >>> book.assign("ann", now=10), book.assign("bob", now=10), book.assign("cem", now=10)
    ('q1', 'q2', None)
    >>> book.answered("q1", "ann", True, now=20), book.answered("q1", "bob", False, now=30)
    ('first', 'changed')
    >>> book.assign("cem", now=1011)  # Bob's lease has ended.
    'q2'
    """

    def __init__(self, lease: int = 120_000) -> None:
        if not isinstance(lease, int) or lease < 1:
            raise ValueError(f"lease={lease!r} must be a positive integer of milliseconds")
        self._lease = lease
        self._open: dict[str, _Card] = {}
        self._closed: Newest[str, _Card] = Newest(ENDED)
        self._held: dict[str, str] = {}  # by annotator: the question assigned to them
        self._given: Newest[str, deque[Given]] = Newest(ENDED)  # by annotator

    def __len__(self) -> int:
        """Number of open questions, assigned or not."""
        return len(self._open)

    # --- questions ----------------------------------------------------------------------------------------------------

    def add(self, question_id: str, asked: int, answers: int = 1) -> None:
        """Open a question, or open a closed one again as if it had no answer.  An open question stays as it is.

        Parameters
        ----------
        question_id
            Its id.
        asked
            When it was asked, in milliseconds.
        answers
            Number of annotators who are to answer it.
        """
        if question_id not in self._open:
            self._closed.pop(question_id, None)
            self._open[question_id] = _Card(asked, answers, answers)

    def withdraw(self, question_id: str) -> None:
        """Close a question if it is open."""
        card = self._open.get(question_id)
        if card is not None:
            self._close(question_id, card)

    def assign(self, who: str, now: int, without: Collection[str] = ()) -> str | None:
        """Assign a question to an annotator.

        Parameters
        ----------
        who
            The annotator.
        now
            The time, in milliseconds.
        without
            Questions that they do not get, beside those that they have answered since they were opened.

        Returns
        -------
        str or None
            The id of the question that the annotator has already, otherwise of the oldest free one; None if there is no
            free question.
        """
        question_id = self._held.get(who)
        if question_id is None:
            oldest_first = sorted(self._open, key=lambda name: self._open[name].asked)
            free = (name for name in oldest_first if name not in without and self._open[name].is_free(who, now))
            question_id = next(free, None)
        if question_id is not None:
            self._lend(question_id, who, now)
        return question_id

    def reserve(self, question_id: str, who: str, now: int) -> None:
        """Assign this open question to an annotator, in place of the one that they have.

        Parameters
        ----------
        question_id
            Its id.
        who
            The annotator.
        now
            The time, in milliseconds.

        Raises
        ------
        KeyError
            If there is no such open question.
        """
        if question_id not in self._open:
            raise KeyError(f"there is no open question {question_id!r}")
        if self._held.get(who) != question_id:
            self.release(who)
        self._lend(question_id, who, now)

    def release(self, who: str) -> None:
        """Free the question that is assigned to an annotator, if any: they have left."""
        question_id = self._held.pop(who, None)
        if question_id is not None:
            del self._open[question_id].holders[who]

    def pass_on(self, who: str, to: str, now: int, without: Collection[str] = ()) -> None:
        """Free the question that is assigned to an annotator, and assign it to another one who may have it.

        Parameters
        ----------
        who
            The annotator.
        to
            Who gets the question, unless they have one.
        now
            The time, in milliseconds.
        without
            Questions that they do not get, beside those that they have answered since they were opened.
        """
        question_id = self._held.get(who)
        self.release(who)
        if question_id is None or to in self._held or question_id in without:
            return
        if to not in self._open[question_id].said:
            self._lend(question_id, to, now)

    def _lend(self, question_id: str, who: str, now: int) -> None:
        holders = self._open[question_id].holders
        if who not in holders and len(holders) >= self._open[question_id].wanted:
            self.release(min(holders, key=holders.__getitem__))
        holders[who] = now + self._lease
        self._held[who] = question_id

    def _close(self, question_id: str, card: _Card) -> None:
        del self._open[question_id]
        for who in card.holders:
            del self._held[who]
        card.holders.clear()
        self._closed[question_id] = card

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self, question_id: str, who: str, y: bool, now: int) -> Outcome:
        """Enter an answer.

        Parameters
        ----------
        question_id
            The question, open or closed.
        who
            The annotator.
        y
            The label.
        now
            The time, in milliseconds.

        Returns
        -------
        str
            "first": the question had no answer.  "changed": this answer replaces another one.  "repeated": nothing
            changes.  "unknown": there is no such question.
        """
        card = self._find(question_id)
        if card is None:
            return "unknown"
        if card.said.get(who) == y:
            return "repeated"
        is_theirs = who not in card.said
        card.said[who] = y
        self._note(who, Given(question_id, y, now))
        if question_id in self._open:
            self._count(question_id, card, who, is_theirs)
        if card.y == y:
            return "repeated"
        outcome: Outcome = "first" if card.y is None else "changed"
        card.y, card.by = y, who
        return outcome

    def _count(self, question_id: str, card: _Card, who: str, is_first: bool) -> None:
        """Count an answer to an open question, if it is the annotator's first one; the last one closes the question."""
        if self._held.get(who) == question_id:
            self.release(who)
        card.wanted -= is_first
        if not card.wanted:
            self._close(question_id, card)

    def passed(self, question_id: str, who: str) -> None:
        """Count an answer that is no label, such as a skip, if the question is open and has no answer of `who` yet."""
        card = self._open.get(question_id)
        if card is not None and who not in card.said:
            card.said[who] = None
            self._count(question_id, card, who, True)

    def newest(self, who: str, now: int, within: int = 60_000) -> Given | None:
        """An annotator's newest answer that was not taken back, whether it still holds or not.

        Parameters
        ----------
        who
            The annotator.
        now
            The time, in milliseconds.
        within
            Largest age of the answer, in milliseconds.

        Returns
        -------
        Given or None
            The answer; None if there is none, or if it is too old.
        """
        given = self._given.get(who)
        return given[-1] if given and now - given[-1].time <= within else None

    def undo(self, who: str, now: int, within: int = 60_000) -> Given | None:
        """Take back an annotator's newest answer, and assign its question to them again.

        Parameters
        ----------
        who, now, within
            As for `newest`.

        Returns
        -------
        Given or None
            The answer that is taken back.  None if there is no answer, if it is too old or forgotten, or if another
            annotator has changed it.
        """
        newest = self.newest(who, now, within)
        if newest is None:
            return None
        question_id = newest.question_id
        card = self._find(question_id)
        if card is None or not (card.said.get(who) == newest.y if card.answers > 1 else card.by == who):
            return None  # it is not the answer that holds, or one of several that the question wants
        self._closed.pop(question_id, None)
        self.release(who)
        self._open[question_id] = _without(card, who)
        self._lend(question_id, who, now)
        return self._given[who].pop()

    def _find(self, question_id: str) -> _Card | None:
        return self._open.get(question_id) or self._closed.get(question_id)

    def _note(self, who: str, answer: Given) -> None:
        others = [given for given in self._given.get(who, ()) if given.question_id != answer.question_id]
        self._given[who] = deque([*others, answer], maxlen=KEPT)


def _without(card: _Card, who: str) -> _Card:
    """The card without the answer of an annotator; without any answer, if one is enough."""
    if card.answers == 1:
        return _Card(card.asked)
    del card.said[who]
    card.wanted = min(card.wanted + 1, card.answers)
    return card
