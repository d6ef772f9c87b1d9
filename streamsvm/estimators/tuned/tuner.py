"""What `AutoLASVM` decides: which of its learners predicts, and which settings to try next.

Four settings learn side by side for the first records.  The best one is then the *champion*.  Two challengers learn
beside it: the *tuning challenger* has a neighbouring setting and the champion's members, the *fresh challenger* has the
champion's setting and no members, so it knows no outdated ones.  Until the stream is known to drift, it has no weights
of features either.  `tuning` has the rules for each.

This file knows no kernel and no features.  It hears which records each learner predicted wrongly and how many members
each has.  It decides at *checks*, one after every 50 records, so a decision does not depend on how a stream is cut.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import numpy as np

from streamsvm.core.saving import plain
from streamsvm.core.saving.snapshot import require
from streamsvm.estimators.tuned.tuning import (
    AHEAD,
    CHECK,
    LAST,
    LEAST_AGE,
    LONGEST,
    NO_SCORE,
    RECENT,
    SHORT_LIFE,
    STARTS,
    WARM_UP,
    Candidate,
    FreshChallenger,
    Promotion,
    Score,
    Setting,
    TuningChallenger,
    Work,
    alarm,
    work_of_beginning,
    work_of_check,
    work_of_weighing,
)
from streamsvm.online.outputs.threshold import BINS

MAX_HISTORY = LONGEST // CHECK  # promotions, as many as scores of a challenger


def candidates_with(settings: Sequence[Setting]) -> dict[int, Candidate]:
    """The learners to begin with, by number."""
    return {number: Candidate(setting) for number, setting in enumerate(settings)}


@dataclass
class Tuner:
    """All decisions.  `counted` and `checked` return another tuner and leave this one as it is.

    Attributes
    ----------
    candidates
        The learners that there should be, by number.  `AutoLASVM` makes those that it does not have and drops others.
    champion, predicting
        Numbers of the champion and of the learner that predicts.
    scores
        Scores since the last check, by number.
    judged
        How many examples of the negative and of the positive class count in scores, if both are to count alike.
    lag
        How many records are learned between a prediction and its label: the longest of late, which fades by one with
        each record.
    """

    candidates: dict[int, Candidate] = field(default_factory=lambda: candidates_with(STARTS))
    champion: int = 0
    predicting: int = 0
    next_number: int = len(STARTS)
    warming_up: bool = True
    scores: dict[int, Score] = field(default_factory=dict)
    tuning: TuningChallenger = field(default_factory=TuningChallenger)
    fresh: FreshChallenger = field(default_factory=FreshChallenger)
    work: Work = field(default_factory=Work)
    history: list[Promotion] = field(default_factory=list)
    judged: tuple[int, int] = field(default=(0, 0), metadata=plain.LATER)
    lag: int = field(default=0, metadata=plain.LATER)

    def evenly(self, positive: np.ndarray) -> tuple[Self, np.ndarray]:
        """The tuner after records with these labels, and which of them count: as many of one class as of the other."""
        judged, counts = list(self.judged), np.zeros(len(positive), bool)
        for t, own in enumerate(positive.astype(int).tolist()):
            if judged[own] - judged[1 - own] < AHEAD:
                counts[t] = True
                judged[own] += 1
        return replace(self, judged=(judged[0], judged[1])), counts

    def counted(self, wrong: Mapping[int, np.ndarray], lags: Sequence[int] = ()) -> Self:
        """The tuner after more records, given which of them each learner got wrong.

        Learners that had not begun when the records were predicted are not judged by them.  `lags` are of late labels.
        """
        n = max(map(len, wrong.values()), default=0)
        lag = self.lag if lags else max(0, self.lag - n)
        for own in lags:
            lag = max(own, lag - bool(n))
        if self.champion not in wrong:
            return replace(self, lag=lag)
        reference = wrong[self.champion]
        scores = {n: self.scores.get(n, NO_SCORE).plus(own, reference) for n, own in wrong.items()}
        return replace(self, lag=lag, scores=self.scores | scores)

    def checked(self, n_seen: int, n_members: Mapping[int, int], weighs: bool = False) -> Self:
        """The tuner after a check, given how many members each learner has, and whether features can be weighed."""
        tuner = self._copied()
        for number, score in self.scores.items():
            if number in tuner.candidates:
                tuner.candidates[number].add(score)
        if tuner.warming_up:
            tuner._warm_up(n_seen)
        else:
            tuner._count_work(n_members)
            tuner._judge_tuning(n_seen)
            tuner._start_tuning(n_seen, n_members[tuner.champion], weighs)
            tuner._listen_for_alarm()
            tuner._judge_fresh(n_seen)
        tuner._start_fresh()
        return tuner

    def _copied(self) -> Self:
        """A copy without scores.  Lists are shared: decisions replace them and never change them."""
        candidates = {number: replace(candidate) for number, candidate in self.candidates.items()}
        tuning, fresh, work = replace(self.tuning), replace(self.fresh), replace(self.work)
        return replace(self, candidates=candidates, scores={}, tuning=tuning, fresh=fresh, work=work)

    # --------------------------------------------------------------------------------------------------------- warm-up

    def _warm_up(self, n_seen: int) -> None:
        """Let the best learner predict.  At the end of the warm-up, the second best becomes a challenger."""
        self._let_best_predict()
        if self.candidates[self.champion].age < WARM_UP * CHECK:
            return
        best = sorted(self.candidates, key=lambda n: (sum(self.candidates[n].wrong[-LAST:]), n != self.predicting))
        self.warming_up, self.champion, self.tuning.number = False, *best[:2]
        self.candidates = {n: Candidate(self.candidates[n].setting) for n in best[:2]}
        self._promote(best[0], n_seen, "warm-up")

    def _let_best_predict(self) -> None:
        wrong = {number: sum(candidate.wrong[-RECENT:]) for number, candidate in self.candidates.items()}
        best, now = min(wrong, key=lambda n: wrong[n]), wrong[self.predicting]
        if wrong[best] < now - 0.5 * math.sqrt(max(now, 1)):
            self.predicting = self.champion = best

    # ----------------------------------------------------------------------------------------------------- challengers

    def _count_work(self, n_members: Mapping[int, int]) -> None:
        for number, n in n_members.items():
            kind = "champion" if number == self.champion else "tuning" if number == self.tuning.number else "fresh"
            setattr(self.work, kind, getattr(self.work, kind) + work_of_check(n))

    def _judge_tuning(self, n_seen: int) -> None:
        """Promote the tuning challenger or let it go."""
        number = self.tuning.number
        if number is None:
            return
        challenger, champion = self.candidates[number], self.candidates[self.champion].setting
        if self.tuning.wins(challenger, self.lag):
            C, gamma, *others = challenger.setting
            step = (C / champion.C, gamma / champion.gamma) if tuple(others) == champion[2:] else None
            self.tuning.begin_again([champion], step)
            self._promote(number, n_seen, "tuning")
            self._drop(self.fresh.number)  # Its setting and its score are against the old champion.
        elif self.tuning.ends(challenger, self.lag):
            self.tuning.tried = [*self.tuning.tried, challenger.setting]
            self._drop(number)

    def _start_tuning(self, n_seen: int, n_members: int, weighs: bool) -> None:
        """Start a tuning challenger with the champion's members once the champion's work allows all that it may do."""
        begin = work_of_beginning(n_members)
        if self.tuning.number is not None or not self.work.allows_tuning(begin + self._work_ahead(n_members)):
            return
        champion = self.candidates[self.champion].setting
        setting = self.tuning.next_setting(champion, self.fresh.drifts, n_seen, weighs)
        if setting is not None:
            self.tuning.number = self._add(setting)
            self.work.tuning += begin + (work_of_weighing(n_members) if setting.weights > champion.weights else 0)

    def _work_ahead(self, n_members: int) -> int:
        return self.tuning.life(self.lag) // CHECK * work_of_check(n_members)

    def _listen_for_alarm(self) -> None:
        """If the champion has become much worse, start a fresh challenger at once."""
        number = self.fresh.number
        too_young = number is not None and self.candidates[number].age < LEAST_AGE
        if not too_young and alarm(self.candidates[self.champion].wrong):
            self._drop(number)
            self.fresh.life = SHORT_LIFE
            self._add_fresh()

    def _judge_fresh(self, n_seen: int) -> None:
        """Let the fresh challenger predict, promote it or let it go."""
        number = self.fresh.number
        if number is None:
            return
        challenger = self.candidates[number]
        self.predicting = number if self.fresh.predicts(challenger, self.lag) else self.champion
        if self.fresh.replaces(challenger, self.lag):
            rival = self._tuning_after_fresh()
            self.tuning.begin_again([], self.tuning.step)
            self.tuning.number = rival
            self.fresh.promotions += 1
            self.fresh.life = SHORT_LIFE
            self._promote(number, n_seen, "fresh")
            self._add_fresh()
        elif challenger.age >= self.fresh.life:
            self.fresh.grow_older()
            self._drop(number)

    def _tuning_after_fresh(self) -> int | None:
        """The tuning challenger, if it goes on beside a fresh champion: with a window it forgets old members itself."""
        number = self.tuning.number
        if number is None:
            return None
        setting = self.candidates[number].setting
        if setting.window is None:
            self._drop(number)
            return None
        self.candidates[number] = Candidate(setting)
        return number

    def _start_fresh(self) -> None:
        if not self.warming_up and self.fresh.number is None and self.work.allows_fresh:
            self._add_fresh()

    def _add_fresh(self) -> None:
        """Start a fresh challenger: with the champion's weights of features only where they outlasted what drifts."""
        setting = self.candidates[self.champion].setting
        self.fresh.number = self._add(setting if self.fresh.drifts else setting._replace(weights=0))

    # ------------------------------------------------------------------------------------------- learners come and go

    def _add(self, setting: Setting) -> int:
        """Ask for another learner; return its number."""
        number, self.next_number = self.next_number, self.next_number + 1
        self.candidates[number] = Candidate(setting)
        return number

    def _drop(self, number: int | None) -> None:
        """Let a challenger go."""
        if number is None:
            return
        del self.candidates[number]
        if number == self.tuning.number:
            self.tuning.number = None
        if number == self.fresh.number:
            self.fresh.number = None
        if number == self.predicting:
            self.predicting = self.champion

    def _promote(self, number: int, n_seen: int, way: str) -> None:
        """Make a learner champion, in the place of the one before."""
        if number != self.champion:
            del self.candidates[self.champion]
        if self.predicting != self.fresh.number:
            self.predicting = number
        self.champion = number
        if self.fresh.number == number:
            self.fresh.number, self.predicting = None, number
        promotion = Promotion(n_seen, way, self.candidates[number].setting)
        self.history = [*self.history[1 - MAX_HISTORY :], promotion]

    # ------------------------------------------------------------------------------------------------------- snapshots

    def to_plain(self) -> Any:
        """All state as a snapshot can hold it."""
        return plain.to_plain(self)

    @classmethod
    def of_plain(cls, value: Any) -> Self:
        """A tuner from what `to_plain` gave; a SnapshotError if it is not one."""
        tuner: Self = plain.of_plain(cls, value)
        numbers = set(tuner.candidates)
        challengers = {n for n in (tuner.tuning.number, tuner.fresh.number) if n is not None}
        used = set(range(len(STARTS))) if tuner.warming_up else {tuner.champion} | challengers
        require(numbers == used and {tuner.champion, tuner.predicting} <= numbers, f"there are the learners {numbers}")
        require(max(numbers) < tuner.next_number and set(tuner.scores) <= numbers, "numbers of learners do not fit")
        for candidate in tuner.candidates.values():
            scores = [*candidate.wrong, *candidate.won, *candidate.lost]
            require(max(scores, default=0) <= CHECK and len(scores) <= 3 * LONGEST // CHECK, "scores are too large")
            require(candidate.bin < BINS, "a threshold is too large")
        require(max([0, *chain(*tuner.scores.values())]) <= CHECK, "scores since the last check are too large")
        return tuner
