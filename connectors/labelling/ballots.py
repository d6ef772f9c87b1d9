"""The answers to each question, of one person or of several, as the labelling service knows them.

The trainer counts the answers, too, and decides (see `records.people.votes`).  The service counts them itself,
so that it need not wait for the trainer: it shows a question to further people, and to each person once.
"""

from collections.abc import Callable, Iterable, Mapping

from streamsvm.active import majority
from streamsvm.core.newest import Newest

from ..records.classes import ClassLabel
from ..records.people.annotators import has_decided, person, voter_of
from ..records.people.questions import is_recheck
from .answer import Given, Word

KEPT_QUESTIONS = 20_000  # with their answers, so that a repetition is recognised; the history has those of others
MAX_VOTERS = 16  # people whose answers to one question are remembered


class Ballots:
    """The last answer of each person, by question.

    Parameters
    ----------
    answers
        Number of answers, each by another person, that a question wants.  With one, the newest answer replaces the
        others, and a retraction takes all of them back.
    meaning
        What a class counts as now; None: a removed one.
    """

    def __init__(self, answers: int, meaning: Callable[[ClassLabel], ClassLabel | None]) -> None:
        self.answers = answers
        self._meaning = meaning
        self._given: Newest[str, Newest[str, Given]] = Newest(KEPT_QUESTIONS)

    def voter(self, who: str) -> str:
        """The name under which an annotator counts: their tab, or themselves if several people are asked."""
        return who if self.answers == 1 else person(who)

    def note(self, query_id: str, given: Given) -> None:
        """Remember an answer, or that a person has taken theirs back."""
        self._given[query_id] = ballot = self._given.get(query_id, Newest(MAX_VOTERS))
        if self.answers == 1 and given.op == "retract":
            ballot.clear()
        ballot[given.who if self.answers == 1 else voter_of(given.who, given.op, _standing(ballot))] = given

    def newest(self, query_id: str) -> Given | None:
        """The newest answer to a question; None if none is remembered."""
        return next(reversed([*self._of_question(query_id).values()]), None)

    def holding(self, query_id: str) -> Given | None:
        """The same, unless it takes back what was said before."""
        newest = self.newest(query_id)
        return None if newest is None or newest.op == "retract" else newest

    def of(self, query_id: str, who: str) -> Given | None:
        """The answer that another one of a person would replace: the newest, or their own if several are wanted."""
        if self.answers == 1:
            return self.newest(query_id)
        ballot = self._of_question(query_id)
        return ballot.get(voter_of(who, "retract", _standing(ballot)))

    def has_said(self, query_id: str, word: Word) -> bool:
        """Whether a person gave this label before, of those that one replaces; they may not have received the reply."""
        given = self._of_question(query_id).get(word.who)
        return word.op == "set" and given is not None and given.y == word.y

    def answered(self, who: str, questions: Iterable[str]) -> set[str]:
        """Those of these questions that a person has answered."""
        voter = self.voter(who)
        # Most questions have no ballot: to count their votes would take most of the time of a request.
        known = (query_id for query_id in questions if voter in self._of_question(query_id))
        return {query_id for query_id in known if voter in self._votes(query_id)}

    def missing(self, query_id: str) -> int:
        """Number of answers that an open question still wants, at least 1: after a tie one more person is asked."""
        return max(1, self._wanted(query_id) - len(self._votes(query_id)))

    def is_decided(self, query_id: str) -> bool:
        """Whether it needs no further answer: enough people have answered and most agree, or one has decided."""
        if self.answers == 1:
            return self.holding(query_id) is not None
        if any(map(has_decided, _standing(self._of_question(query_id)))):
            return True
        return majority(self._votes(query_id).values(), self._wanted(query_id)) is not None

    def is_tied(self, query_id: str) -> bool:
        """Whether enough people have answered, and disagree."""
        return (
            self.answers > 1 and len(self._votes(query_id)) >= self._wanted(query_id) and not self.is_decided(query_id)
        )

    def _votes(self, query_id: str) -> dict[str, ClassLabel]:
        """What each person says, by name."""
        ballot = self._of_question(query_id)
        words = {name: self._meaning(ballot[name].word) for name in _standing(ballot) if not has_decided(name)}
        return {voter: word for voter, word in words.items() if word is not None}

    def _of_question(self, query_id: str) -> Mapping[str, Given]:
        return self._given.get(query_id, {})

    def _wanted(self, query_id: str) -> int:
        return 1 if is_recheck(query_id) else self.answers


def _standing(ballot: Mapping[str, Given]) -> list[str]:
    """The names of the answers that were not taken back, the oldest first."""
    return [voter for voter, given in ballot.items() if given.op != "retract"]
