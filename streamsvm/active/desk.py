"""The desk: which of the open questions is in front of whom.

The rules, whose outcome depends on nothing but the sequence of calls:

Leases
    A question is handed to one person at a time, the oldest first.  Whoever asks again gets the same one until it is
    answered or withdrawn (as when they skip it) or they give it back, each time with a lease as long as at first.  When
    the lease has ended anybody may get the question; what the first person says still counts.
Answers
    The first answer takes the question off the desk.  Another one is a repetition if it says what holds already, or
    what the same person has said before (a reply that got lost); otherwise a change, whoever gives it.  A question that
    was withdrawn can still be answered: that is late, not wrong.
Undo
    A person can take back their newest answer for a minute, then the one before it, unless somebody else has changed
    it.  The question is then in front of them again, as if nobody had answered it.
Memory
    All questions on the desk are kept, and the last 10,000 that have left it; of each, what 20 people said last; of the
    last 1000 people, their newest 20 answers.  A question that is forgotten is unknown.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

MEMORY = 10_000  # questions that are remembered after they have left the desk
VOICES = 20  # people whose words about one question are remembered
PEOPLE = 1000  # whose answers can be undone
UNDOABLE = 20  # answers of each of them

Outcome = Literal["first", "repeated", "changed", "unknown"]


class Given(NamedTuple):
    """An answer that somebody gave."""

    question_id: str
    y: bool
    time: int  # in milliseconds


@dataclass(slots=True)
class _Card:
    """A question, on the desk or not."""

    asked: int
    holder: str | None = None  # who has it in front of them, or had it last
    until: int = 0  # the end of the lease
    y: bool | None = None  # the answer that holds
    by: str | None = None  # who gave it
    said: dict[str, bool] = field(default_factory=dict)  # the last word of each person


class Desk:
    """Hands out questions, and says what an answer is.

    Parameters
    ----------
    lease
        How long a question stays with one person, in the unit of `now`: milliseconds.

    Raises
    ------
    ValueError
        If the lease is not a positive integer.

    Examples
    --------
    >>> from streamsvm.active import Desk
    >>> desk = Desk(lease=1000)
    >>> desk.add("q1", asked=0)
    >>> desk.add("q2", asked=5)
    >>> desk.hand_out("ann", now=10), desk.hand_out("bob", now=10), desk.hand_out("cem", now=10)
    ('q1', 'q2', None)
    >>> desk.answered("q1", "ann", True, now=20), desk.answered("q1", "bob", False, now=30)
    ('first', 'changed')
    >>> desk.hand_out("cem", now=1011)  # bob has been looking at it for too long
    'q2'
    """

    def __init__(self, lease: int = 120_000) -> None:
        if not isinstance(lease, int) or lease < 1:
            raise ValueError(f"lease={lease!r} must be a positive integer of milliseconds")
        self._lease = lease
        self._waiting: dict[str, _Card] = {}
        self._left: OrderedDict[str, _Card] = OrderedDict()
        self._held: dict[str, str] = {}  # by person: the question in front of them
        self._given: OrderedDict[str, deque[Given]] = OrderedDict()  # by person

    def __len__(self) -> int:
        """Number of questions on the desk, handed out or not."""
        return len(self._waiting)

    # --- questions ----------------------------------------------------------------------------------------------------

    def add(self, question_id: str, asked: int) -> None:
        """Put a question on the desk, as one that nobody has answered; one that is there stays as it is.

        Parameters
        ----------
        question_id
            Its id.
        asked
            When it was asked, in milliseconds.
        """
        if question_id not in self._waiting:
            self._left.pop(question_id, None)
            self._waiting[question_id] = _Card(asked)

    def withdraw(self, question_id: str) -> None:
        """Take a question off the desk, if it is there."""
        card = self._waiting.get(question_id)
        if card is not None:
            self._leave(question_id, card)

    def hand_out(self, who: str, now: int) -> str | None:
        """A question for somebody.

        Parameters
        ----------
        who
            The person.
        now
            The time, in milliseconds.

        Returns
        -------
        The id of the one they have already, otherwise of the oldest that nobody has; None if there is none.
        """
        question_id = self._held.get(who)
        if question_id is None:
            free = [name for name, card in self._waiting.items() if card.holder is None or card.until <= now]
            if not free:
                return None
            question_id = min(free, key=lambda name: self._waiting[name].asked)
        self._lend(question_id, who, now)
        return question_id

    def release(self, who: str) -> None:
        """Give back the question that somebody has, if any: they are gone."""
        question_id = self._held.pop(who, None)
        if question_id is not None:
            self._waiting[question_id].holder = None

    def _lend(self, question_id: str, who: str, now: int) -> None:
        card = self._waiting[question_id]
        if card.holder is not None:
            del self._held[card.holder]
        card.holder, card.until = who, now + self._lease
        self._held[who] = question_id

    def _leave(self, question_id: str, card: _Card) -> None:
        del self._waiting[question_id]
        if card.holder is not None:
            del self._held[card.holder]
            card.holder = None
        self._left[question_id] = card
        if len(self._left) > MEMORY:
            self._left.popitem(last=False)

    # --- answers ------------------------------------------------------------------------------------------------------

    def answered(self, question_id: str, who: str, y: bool, now: int) -> Outcome:
        """Enter an answer.

        Parameters
        ----------
        question_id
            The question, on the desk or not.
        who
            The person who answers.
        y
            The label.
        now
            The time, in milliseconds.

        Returns
        -------
        "first": nothing else holds.  "changed": this one holds from now on, in the place of another.  "repeated": there
        is nothing to do.  "unknown": there is no such question.
        """
        card = self._find(question_id)
        if card is None:
            return "unknown"
        if card.said.get(who) == y:
            return "repeated"
        _say(card, who, y)
        self._note(who, Given(question_id, y, now))
        if question_id in self._waiting:
            self._leave(question_id, card)
        if card.y == y:
            return "repeated"
        outcome: Outcome = "first" if card.y is None else "changed"
        card.y, card.by = y, who
        return outcome

    def newest(self, who: str, now: int, within: int = 60_000) -> Given | None:
        """Somebody's newest answer that was not taken back, whether it still holds or not.

        Parameters
        ----------
        who
            The person.
        now
            The time, in milliseconds.
        within
            How old the answer may be, in milliseconds.

        Returns
        -------
        The answer; None if there is none, or it is too old.
        """
        given = self._given.get(who)
        return given[-1] if given and now - given[-1].time <= within else None

    def undo(self, who: str, now: int, within: int = 60_000) -> Given | None:
        """Take back somebody's newest answer.

        Parameters
        ----------
        who
            The person.
        now
            The time, in milliseconds.
        within
            How old the answer may be, in milliseconds.

        Returns
        -------
        What is taken back: its question is in front of them again.  None if there is no answer, it is too old, somebody
        else has changed it, or it is forgotten.
        """
        newest = self.newest(who, now, within)
        if newest is None:
            return None
        question_id = newest.question_id
        card = self._left.get(question_id)
        if card is None or card.by != who:
            return None
        del self._left[question_id]
        self.release(who)
        self._waiting[question_id] = _Card(card.asked)
        self._lend(question_id, who, now)
        return self._given[who].pop()

    def _find(self, question_id: str) -> _Card | None:
        return self._waiting.get(question_id) or self._left.get(question_id)

    def _note(self, who: str, answer: Given) -> None:
        others = [given for given in self._given.pop(who, ()) if given.question_id != answer.question_id]
        self._given[who] = deque([*others, answer], maxlen=UNDOABLE)
        if len(self._given) > PEOPLE:
            self._given.popitem(last=False)


def _say(card: _Card, who: str, y: bool) -> None:
    card.said.pop(who, None)
    card.said[who] = y
    if len(card.said) > VOICES:
        del card.said[next(iter(card.said))]
