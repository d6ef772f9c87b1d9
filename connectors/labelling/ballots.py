"""The answers of several people to the same question, as the labelling service knows them.

The trainer counts the answers, too, and decides (see `trainer.state.answers.votes`).  The service counts them itself,
so that it need not wait for the trainer: it shows a question to further people, and to each person once.
"""

from collections.abc import Callable, Iterable, Mapping

from streamsvm.active import majority
from streamsvm.core.newest import Newest

from ..records.classes import ClassLabel
from ..records.people.annotators import has_decided, person, voter_of
from ..records.people.questions import is_recheck
from .answer import Given

_KEPT_QUESTIONS = 20_000  # with answers of several people; the history has those of others
MAX_VOTERS = 16  # people whose answers to one question are remembered


class Ballots:
    """The last answer of each person, by question.

    Parameters
    ----------
    answers
        Number of answers, each by another person, that a question wants.  With one, nothing is remembered: the newest
        answer replaces the others.
    meaning
        What a class counts as now; None: a removed one.
    """

    def __init__(self, answers: int, meaning: Callable[[ClassLabel], ClassLabel | None]) -> None:
        self.answers = answers
        self._meaning = meaning
        self._given: Newest[str, Newest[str, Given]] = Newest(_KEPT_QUESTIONS)

    def lacks(self, query_id: str) -> bool:
        """Whether answers to a question would be remembered, but none is."""
        return self.answers > 1 and query_id not in self._given

    def voter(self, who: str) -> str:
        """The name under which an annotator counts: their tab, or themselves if several people are asked."""
        return who if self.answers == 1 else person(who)

    def note(self, query_id: str, given: Given) -> None:
        """Remember an answer, or that a person has taken theirs back."""
        if self.answers == 1:
            return
        self._given[query_id] = ballot = self._given.get(query_id, Newest(MAX_VOTERS))
        ballot[voter_of(given.who, given.op, _standing(ballot))] = given

    def of(self, query_id: str, who: str) -> Given | None:
        """The last answer of a person to a question, or what they have decided."""
        ballot: Mapping[str, Given] = self._given.get(query_id, {})
        return ballot.get(voter_of(who, "retract", _standing(ballot)))

    def answered(self, who: str, questions: Iterable[str]) -> set[str]:
        """Those of these questions that a person has answered."""
        voter = self.voter(who)
        return {query_id for query_id in questions if voter in self._votes(query_id)}

    def missing(self, query_id: str) -> int:
        """Number of answers that an open question still wants, at least 1: after a tie one more person is asked."""
        return max(1, self._wanted(query_id) - len(self._votes(query_id)))

    def is_decided(self, query_id: str) -> bool:
        """Whether the majority of enough people has said the same, or a person has decided."""
        if any(map(has_decided, _standing(self._given.get(query_id, {})))):
            return True
        return majority(self._votes(query_id).values(), self._wanted(query_id)) is not None

    def is_tied(self, query_id: str) -> bool:
        """Whether enough people have answered, and disagree."""
        return (
            self.answers > 1 and len(self._votes(query_id)) >= self._wanted(query_id) and not self.is_decided(query_id)
        )

    def _votes(self, query_id: str) -> dict[str, ClassLabel]:
        """What each person says, by name."""
        ballot: Mapping[str, Given] = self._given.get(query_id, {})
        words = {name: self._meaning(ballot[name].word) for name in _standing(ballot) if not has_decided(name)}
        return {voter: word for voter, word in words.items() if word is not None}

    def _wanted(self, query_id: str) -> int:
        return 1 if is_recheck(query_id) else self.answers


def _standing(ballot: Mapping[str, Given]) -> list[str]:
    """The names of the answers that were not taken back, the oldest first."""
    return [voter for voter, given in ballot.items() if given.op != "retract"]
