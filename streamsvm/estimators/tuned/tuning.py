"""The parts of `tuner`: settings, scores, the rules of both kinds of challengers, the alarm and the work.

The thresholds were chosen on 17 streams; `benchmarks/defaults.py` runs most of them.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from streamsvm.core.blocks import BLOCK
from streamsvm.core.saving.plain import LATER
from streamsvm.online.outputs.threshold import BINS, PER_UNIT

CHECK = 50  # records between two checks
WARM_UP, RECENT, LAST = 1000 // CHECK, 300 // CHECK, 500 // CHECK  # checks: in all, that show who predicts, who wins
BEFORE, NOW = 2000 // CHECK, 150 // CHECK  # checks that the alarm compares
RINGS = 4.0  # standard errors
STEP = 4  # of gamma and of a window, as a factor.  The windows are 125, 500, 2000, and none.
SHORTEST = 500  # records that a challenger has, at least; the first window has as many
FIRST = STEP * SHORTEST  # the same around the first champion, which 500 records chose, hardly more than by chance
LONGEST = STEP * FIRST  # the same where all neighbours have been tried, again and again
FOR_A_LAG = 4  # lags that a tuning challenger has, at least
LONGEST_LAG = LONGEST // (2 * FOR_A_LAG)  # records that err together, at most
WINS, CERTAIN = 1.5, 2.55  # standard deviations of a tuning challenger's lead: at its end, and before, either way
SHORT_LIFE = 100  # records that a fresh challenger has at first
CAUTION = 4  # records of a fresh challenger's lead beyond chance, until the stream drifts
DRIFTS = 2  # fresh champions after which the stream drifts: windows are tried, and caution ends
AHEAD = 5  # examples of one class that count beyond those of the other, if both are to count alike
LEAST_AGE = RECENT * CHECK  # records of a challenger before it wins or leaves early, and the alarm replaces it
TUNING_SHARE, FRESH_SHARE = 0.8, 0.3  # of the champion's work
A_RECORD = 300  # work of learning one record beside its kernel values, counted in kernel values
LEAST_C, LARGEST_C, LARGEST_GAMMA = 0.1, 1000.0, STEP**3


class Setting(NamedTuple):
    """What is tuned.

    Attributes
    ----------
    C
        As of `LASVM`.
    gamma
        In units of the gamma that ``"scale"`` stands for.
    window
        In records; None without a window.
    weights
        How often weights of the features have been learned, one from the other; 0: all features count alike.
    """

    C: float
    gamma: float
    window: int | None = None
    weights: int = 0

    def neighbours(self, drifts: bool, weighs: bool = False) -> list["Setting"]:
        """The settings one step away, those to try first in front.

        Learned weights come first: where they win, they gain most, and C and gamma are then tuned for them.
        """
        gamma = self.gamma if self.weights else 1.0  # the one before suited features that may hardly count from now on
        learned = [self._replace(gamma=gamma, weights=self.weights + 1)] if weighs else []
        without = [self._replace(weights=0)] if self.weights else []
        return [*learned, *self._steps(drifts), *without]

    def _steps(self, drifts: bool) -> list["Setting"]:
        """The settings with another C, gamma or window."""
        C, gamma, window, _ = self
        steps = [(C, gamma * STEP), (C * 10, gamma), (C, gamma / STEP), (C / 10, gamma)]
        found = [
            self._replace(C=c, gamma=g)
            for c, g in steps
            if LEAST_C <= c <= LARGEST_C and 1 / LARGEST_GAMMA <= g <= LARGEST_GAMMA
        ]
        if window is None:
            return [self._replace(window=SHORTEST), *found] if drifts else found
        shorter = [self._replace(window=window // STEP)] if window >= SHORTEST else []
        longer = self._replace(window=window * STEP if window <= SHORTEST else None)
        return [*shorter, *found, longer]


STARTS = (Setting(10.0, 1.0), Setting(1.0, 0.25), Setting(1.0, 4.0), Setting(10.0, 4.0))
LIMITED_STARTS = (Setting(1.0, 1.0), *STARTS[1:])  # with a limit on members, which a large C fills with wrong labels


class Score(NamedTuple):
    """Of one learner over some records.

    `won` counts the records that it alone got right, of the champion and itself; `lost` those that the champion alone
    got right.
    """

    wrong: int
    won: int
    lost: int

    def plus(self, wrong: np.ndarray, champion_wrong: np.ndarray) -> "Score":
        """The score with more records, given which of them each of the two got wrong."""
        won, lost = np.count_nonzero(champion_wrong & ~wrong), np.count_nonzero(wrong & ~champion_wrong)
        return Score(self.wrong + int(np.count_nonzero(wrong)), self.won + int(won), self.lost + int(lost))


NO_SCORE = Score(0, 0, 0)


class Promotion(NamedTuple):
    """A learner became champion: after how many records, by which way, and its setting."""

    n_seen: int
    way: str  # "warm-up", "tuning" or "fresh"
    setting: Setting


@dataclass
class Candidate:
    """A learner as the decisions see it: its setting and its latest scores, a number for each check.

    `bin` tells above which f(x) it predicts True since the last check: the bin of `online.outputs.threshold`.
    """

    setting: Setting
    wrong: list[int] = field(default_factory=list)
    won: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    bin: int = field(default=BINS // 2, metadata=LATER)

    @property
    def cut(self) -> float:
        """Above this f(x) it predicts True."""
        return (self.bin - BINS // 2) / PER_UNIT

    def cut_at(self, cut: float) -> None:
        """Predict True above another f(x), which is an edge of a bin."""
        self.bin = round(cut * PER_UNIT) + BINS // 2

    @property
    def age(self) -> int:
        """Records that a challenger has learned; no challenger lives longer than `LONGEST`."""
        return CHECK * len(self.won)

    def add(self, score: Score) -> None:
        """Note the score of another check."""
        self.wrong = [*self.wrong[1 - BEFORE - NOW :], score.wrong]
        self.won = [*self.won[1 - LONGEST // CHECK :], score.won]
        self.lost = [*self.lost[1 - LONGEST // CHECK :], score.lost]

    def lead(self, skipped: float, lag: int = 0) -> tuple[int, float]:
        """How many more records than the champion it got right, and the standard deviation of that by chance.

        The first share of its life, `skipped`, does not count.
        """
        first = int(skipped * len(self.won))
        won, lost = self.won[first:], self.lost[first:]
        return sum(won) - sum(lost), deviation(won, lost, lag)


def deviation(won: list[int], lost: list[int], lag: int) -> float:
    """The standard deviation by chance of a lead, by check.

    With late labels, `lag` records in a row are predicted by models that know nothing of each other's labels.  They err
    together, so the leads over so many records at a time tell how far chance goes; one such part alone tells nothing.
    """
    alone = max(sum(won) + sum(lost), 1)
    if not lag:
        return math.sqrt(alone)
    checks = -(-min(lag, LONGEST_LAG) // CHECK)
    n_parts = len(won) // checks
    if n_parts < 2:
        return math.inf
    leads = np.subtract(won, lost)[-n_parts * checks :].reshape(n_parts, checks).sum(axis=1)
    return math.sqrt(max(float(np.square(leads).sum()) * len(won) / (n_parts * checks), alone))


@dataclass
class TuningChallenger:
    """Who has a neighbouring setting, how long it has, and what has been tried around this champion."""

    number: int | None = None
    lasts: int = FIRST
    tried: list[Setting] = field(default_factory=list)
    step: tuple[float, float] | None = None  # factors on C and gamma by which the last winner differed
    rests_until: int | None = None

    def life(self, lag: int) -> int:
        """How many records a challenger has, with labels that are so late."""
        return max(self.lasts, FOR_A_LAG * min(lag, LONGEST_LAG))

    def wins(self, candidate: Candidate, lag: int = 0) -> bool:
        """Whether the challenger becomes champion."""
        surplus, by_chance = candidate.lead(0.25, lag)
        wanted = WINS if candidate.age >= self.life(lag) else CERTAIN
        return candidate.age >= LEAST_AGE and surplus > wanted * by_chance

    def ends(self, candidate: Candidate, lag: int = 0) -> bool:
        """Whether the challenger leaves without having won."""
        surplus, by_chance = candidate.lead(0.25, lag)
        hopeless = surplus < -CERTAIN * by_chance
        return candidate.age >= self.life(lag) or (candidate.age >= LEAST_AGE and hopeless)

    def next_setting(self, champion: Setting, drifts: bool, n_seen: int, weighs: bool = False) -> Setting | None:
        """What to try next; None while all neighbours have been tried: then it rests, and gives them longer."""
        untried = [setting for setting in champion.neighbours(drifts, weighs) if setting not in self.tried]
        if untried:
            C, gamma = self.step or (1.0, 1.0)
            same_step = champion._replace(C=champion.C * C, gamma=champion.gamma * gamma)
            return same_step if same_step in untried else untried[0]
        if self.rests_until is None:
            self.rests_until = n_seen + 4 * self.lasts
        elif n_seen >= self.rests_until:
            self.tried, self.rests_until = [], None
            self.lasts = min(2 * self.lasts, LONGEST)
        return None

    def begin_again(self, tried: list[Setting], step: tuple[float, float] | None) -> None:
        """Begin around a new champion."""
        self.number, self.lasts, self.tried, self.step, self.rests_until = None, SHORTEST, tried, step, None


@dataclass
class FreshChallenger:
    """Who has no old members, how long it lives, and how often one became champion."""

    number: int | None = None
    life: int = SHORT_LIFE
    promotions: int = 0

    @property
    def drifts(self) -> bool:
        """Whether the stream is known to drift."""
        return self.promotions >= DRIFTS

    def predicts(self, candidate: Candidate, lag: int = 0) -> bool:
        """Whether the challenger predicts, on probation."""
        surplus, by_chance = candidate.lead(0.5, lag)
        return candidate.age >= SHORT_LIFE and surplus > by_chance

    def replaces(self, candidate: Candidate, lag: int = 0) -> bool:
        """Whether the challenger becomes champion."""
        surplus, by_chance = candidate.lead(0.5, lag)
        caution = 0 if self.drifts else CAUTION
        return candidate.age >= SHORT_LIFE and surplus > by_chance + caution

    def grow_older(self) -> None:
        """Let the next challenger live longer."""
        self.life = min(2 * self.life, LONGEST)


def alarm(wrong: list[int]) -> bool:
    """Whether the latest errors of the champion, by check, are far more than those before."""
    before, now = wrong[-BEFORE - NOW : -NOW], wrong[-NOW:]
    if len(before) <= WARM_UP:  # too few to tell what is usual
        return False
    usual = (sum(before) + 1 / CHECK) / (len(before) + 2 / CHECK) / CHECK
    share = sum(now) / (NOW * CHECK)
    return share - usual > RINGS * math.sqrt(usual * (1 - usual) / (NOW * CHECK))


@dataclass
class Work:
    """What each kind of learner has cost since the warm-up, in kernel values.

    It is estimated from the numbers of members.  The values that were really computed depend on what is cached, and a
    loaded model begins with an empty cache.
    """

    champion: int = 0
    tuning: int = 0
    fresh: int = 0

    def allows_tuning(self, cost: int) -> bool:
        """Whether a tuning challenger may begin that will cost so much."""
        return self.tuning + cost <= TUNING_SHARE * self.champion

    @property
    def allows_fresh(self) -> bool:
        """Whether a fresh challenger may begin."""
        return self.fresh <= FRESH_SHARE * self.champion


def work_of_check(n_members: int) -> int:
    """What the records of a check cost a learner: a kernel row each, and two thirds more for the solver's steps."""
    return CHECK * (A_RECORD + 5 * n_members // 3)


def work_of_weighing(n_members: int) -> int:
    """What it costs to learn weights of the features from so many members: values and slopes at a block of them."""
    return 2 * BLOCK * n_members


def work_of_beginning(n_members: int) -> int:
    """What it costs to begin with so many members: see `online.warm_start`."""
    return n_members * n_members // 3
