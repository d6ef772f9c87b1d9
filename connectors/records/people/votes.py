"""The answers of several annotators to the same question, which together decide on a label.

An answer is a label that names its question and its source.  These are the rules, for `answers` answers a question:

- With one answer a question, every answer holds at once, and the newest one replaces the others.
- With more, the answers wait until so many people have given one and one word leads: a class, or that they cannot
  tell.  After a tie one more person is asked.  No label is learned before.
- The last answer of each person counts.  An answer that is taken back counts no longer.
- What a person decides, who has seen the answers, holds whatever the others say.  It is no vote.
- Once a label holds, the majority of all answers replaces it at once; a tie leaves it as it is.

The outcome depends on the sequence of calls alone.  The answers to the last 10,000 questions are kept, and the last
1,000 answers for statistics.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from streamsvm.active import majority
from streamsvm.core.newest import Newest

from ..classes import RESERVED, ClassLabel
from ..labels import Label, as_set
from .annotators import Answer, agreement, annotators, has_decided, voter_of

MEMORY = 10_000  # questions that are remembered
RECENT = 1_000  # answers that the statistics look at

_NOW = 30  # the newest answers, whose annotators are at work
_MOST_SHOWN = 100  # annotators in a status, which is one record
_MOST_SHARED = 20  # questions that wait for a further answer and take no place of a new one


class Vote(NamedTuple):
    """The last answer of a person: a class, "skip", "ignore", or None if they took it back; and its revision."""

    word: ClassLabel | None
    rev: int


class Votes:
    """Counts the answers to each question.

    Parameters
    ----------
    answers
        Number of answers that a question wants.
    """

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self._votes: Newest[int, dict[str, Vote]] = Newest(MEMORY)  # by event and person
        self._recent: deque[Answer] = deque(maxlen=RECENT)
        self._has_news = False

    def hear(self, label: Label, holding: ClassLabel | None, time: int) -> Label | None:
        """Take an answer.

        Parameters
        ----------
        label
            The answer.
        holding
            The label of the event that holds; None if there is none.
        time
            When it was given, in milliseconds.

        Returns
        -------
        Label or None
            What the answers say together now; None if they say nothing new, or do not decide yet.
        """
        known = {name for name, vote in self._votes.get(label.key, {}).items() if vote.word is not None}
        who = voter_of(label.source or "", label.op, known)
        if not has_decided(who):
            self._remember(label, who, time)
        self._has_news = True
        if self.answers == 1:
            return as_set(label)
        votes = self._votes[label.key] = self._votes.get(label.key, {})
        before = votes[who].rev if who in votes else 0
        rev = before if label.rev is None else label.rev  # without a revision, a record is newer than those before it
        if rev < before:
            return None
        word = None if label.op == "retract" else label.op if label.y is None else label.y
        votes[who] = Vote(word, rev)
        return self._together(label, votes, holding, is_decision=has_decided(who))

    def _remember(self, label: Label, who: str, time: int) -> None:
        """Note an answer for the statistics; a retraction takes back the person's answers about the event."""
        if label.op != "retract":
            self._recent.append(Answer(label.key, who, label.y, time))
        elif any(answer[:2] == (label.key, who) for answer in self._recent):
            kept = [answer for answer in self._recent if answer[:2] != (label.key, who)]
            self._recent = deque(kept, maxlen=RECENT)

    def _together(
        self, label: Label, votes: Mapping[str, Vote], holding: ClassLabel | None, *, is_decision: bool
    ) -> Label | None:
        decisions = [vote for name, vote in votes.items() if has_decided(name) and vote.word is not None]
        words = [vote.word for name, vote in votes.items() if not has_decided(name) and vote.word is not None]
        if not words and not decisions:
            return label if holding is not None else None  # the last answer was taken back
        word = majority(words, self.answers if holding is None or is_decision else 1)
        if decisions:
            word = max(decisions, key=attrgetter("rev")).word
        elif word is None and is_decision and holding is not None:  # it was taken back, and the others are tied
            return label
        if word is None or word == holding:
            return None
        rev = max(vote.rev for vote in votes.values())
        if word not in RESERVED:
            return label._replace(op="set", y=word, rev=rev)
        return label._replace(op=str(word) if holding is None else "retract", y=None, rev=rev)

    def rename_class(self, old: ClassLabel, new: ClassLabel | None) -> None:
        """Count the votes for a class as votes for another one; None: as taken back."""
        for votes in self._votes.values():
            for who, vote in votes.items():
                if vote.word == old:
                    votes[who] = vote._replace(word=new)
        renamed = [answer._replace(y=new) if answer.y == old else answer for answer in self._recent]
        self._recent = deque(renamed, maxlen=RECENT)

    def erase(self, keys: Iterable[int]) -> None:
        """Forget the answers about these events."""
        gone = set(keys)
        for key in gone & self._votes.keys():
            del self._votes[key]
        self._recent = deque((answer for answer in self._recent if answer[0] not in gone), maxlen=RECENT)

    # --- looking at it ------------------------------------------------------------------------------------------------

    def take_news(self) -> bool:
        """Whether an answer came since the last call, even one that decided nothing; never between two cuts."""
        has_news, self._has_news = self._has_news, False
        return has_news

    def begun(self, keys: Iterable[int]) -> set[int]:
        """Of these events with open questions, those that have an answer."""
        return {key for key in keys if self._n_answers(key)}

    def unresolved(self, keys: Iterable[int]) -> set[int]:
        """Of these events with open questions, those with enough answers, but without a majority."""
        return {key for key in keys if self._n_answers(key) >= self.answers}

    def _n_answers(self, key: int) -> int:
        votes = self._votes.get(key, {}).items()
        return sum(vote.word is not None and not has_decided(name) for name, vote in votes)

    @property
    def n_people(self) -> int:
        """How many people gave the newest answers, at least 1."""
        return max(1, len({answer.who for answer in list(self._recent)[-_NOW:]}))

    def room(self, most: int, keys: Iterable[int]) -> int:
        """How many questions may be open.

        Parameters
        ----------
        most
            How many may wait for their first answer; 0: one for each annotator.
        keys
            The events with open questions.  Those that wait for further answers take no place of a new one, so that
            no annotator waits for another; but of those that are not tied, only 20.
        """
        begun, tied = self.begun(keys), self.unresolved(keys)
        return (most or self.n_people) + min(len(begun - tied), _MOST_SHARED) + len(tied)

    def statistics(self) -> dict[str, Any]:
        """Agreement, and the annotators with the most labels, over the last 1,000 answers, as a status has them."""
        people = sorted(annotators(self._recent), key=lambda one: -one.n_labels)[:_MOST_SHOWN]
        return {"agreement": agreement(self._recent)._asdict(), "annotators": [one._asdict() for one in people]}

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        votes = [[key, [[who, *vote] for who, vote in found.items()]] for key, found in self._votes.items()]
        return {"votes": votes, "recent": list(map(list, self._recent))}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        for key, found in state["votes"]:
            self._votes[key] = {who: Vote(word, rev) for who, word, rev in found}
        self._recent.extend(Answer(*fields) for fields in state["recent"])
