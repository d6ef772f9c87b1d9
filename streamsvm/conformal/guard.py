"""Which labels cannot be excluded, so that at most a share alpha of each class is decided wrongly.

A class is excluded if its probability is small among those that its true members got before they were learned.  The
most probable class is never excluded.  How small is small, the *level*, is steered for each class:

    log level += eta (alpha - wrong),      level <= cap alpha          wrong: decided alone, and for another class

An error divides the level by exp(eta (1 - alpha)); 1 / alpha records without one restore it.  At a level below
1 / (n + 1), with n scores, nothing is excluded and nothing can go wrong.  So among any m successive labelled records of
a class, on any sequence and with any probabilities,

    wrong <= alpha m + K,      K = log(cap alpha (n + 1)) / eta + 1;      alpha .1, .02, .01: K = 20, 15, 12

Proof.  A step raises log level by at most eta (alpha - wrong), so the m steps together give

    eta (wrong - alpha m) <= log level before - log level after the last error.

The first is at most log(cap alpha).  An error needs a level of 1 / (n + 1) or more, and lowers log level by less than
eta.  QED.  Records that were decided while older labels were on their way add their own errors.

The proof asks nothing of the scores.  So a class with few of them may be excluded by others as well: by the scores that
its members get from the model without them, at a level of at most min(level, alpha).

Sources: Gibbs, Candes, "Adaptive conformal inference under distribution shift" (2021): steering by errors; Vovk,
Lindsay, Nouretdinov, Gammerman, "Mondrian confidence machine" (2003): scores for each class.  Ours: a step relative to
the level, the one-sided cap, errors of decisions in place of sets, and the bound for each block.
"""

import math
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from math import exp, log
from typing import NamedTuple

from streamsvm.conformal.decision import Decision
from streamsvm.conformal.scores import WINDOW, Record, Scores

ETA, ETA_OF_AUDIT = 0.3, 0.1  # step; a smaller one if the labels of an audit weigh more than others
CAP, LARGEST_LEVEL = 3.0, 0.5  # largest level: alpha times `CAP`, and never above the other
GAIN = 0.5  # late labels: eta alpha (records of the class on their way) is at most this
MATURE = 100  # labels that a model must know before scores of late labels count: earlier ones mislead
POOLED, LEAST = 3.0, 5  # a common class borrows the scores of all until it has POOLED / alpha, if it has LEAST
FEW = 3.0  # of two classes, one with fewer than FEW / alpha scores uses those by leave-one-out as well


class Tally(NamedTuple):
    """How a class fares.

    n
        Number of its labelled records.
    decided
        How many of them were decided alone.
    wrong
        How many were decided alone, and for another class.
    """

    n: int
    decided: int
    wrong: int


class OfClass:
    """What the guard knows of a class."""

    __slots__ = ("_tally", "level", "log_level", "n", "n_decided", "n_wrong", "records", "scores")

    def __init__(self, alpha: float) -> None:
        self.log_level = log(alpha)
        self.level = alpha  # the same, for the decisions
        self.scores = Scores()
        self.records: deque[Record] = deque(maxlen=WINDOW)
        self.n = self.n_decided = self.n_wrong = 0
        self._tally: Tally | None = None

    def set_level(self, log_level: float) -> None:
        """Take a level into use."""
        self.log_level, self.level = log_level, exp(log_level)

    def count(self, n: int, is_alone: bool, is_wrong: bool) -> None:
        """Count a labelled record, or take it back if n is -1."""
        self.n += n
        if is_alone:
            self.n_decided += n
            self.n_wrong += n * is_wrong
        self._tally = None

    @property
    def tally(self) -> Tally:
        """How the class fares; the same object until that changes."""
        if self._tally is None:
            self._tally = Tally(self.n, self.n_decided, self.n_wrong)
        return self._tally


class Guard:
    """The decisions, and what was learned from the labels that came.

    Parameters
    ----------
    alpha
        Largest share of each class that may be decided wrongly.
    audit
        Share of the decided records whose labels come; 1 if all do.
    """

    def __init__(self, alpha: float, audit: float) -> None:
        self.alpha, self.audit = alpha, audit
        self.eta = ETA if audit == 1.0 else ETA_OF_AUDIT
        self.classes: dict[Hashable, OfClass] = {}
        self.pool = Scores()
        self.n = 0  # labelled records
        self.left_out: dict[Hashable, list[float]] = {}  # scores by leave-one-out, in order, while labels are few
        self.highest = self._highest(1.0)

    # ------------------------------------------------------------------------------------------------------ deciding

    def labels(self, p: Mapping[Hashable, float]) -> tuple[Hashable, ...]:
        """The labels that cannot be excluded, the most probable first."""
        if len(p) == 2:  # the usual case, three times as fast
            (c, p_c), (d, p_d) = p.items()
            best, other, least = (c, d, p_d) if p_c >= p_d else (d, c, p_c)
            own = self.classes.get(other)
            if own is None or self.left_out or len(self.classes) > 2:
                return (best, other) if least >= self.threshold(other) else (best,)
            return (best, other) if least >= own.scores.threshold(own.level) else (best,)
        best = max(p, key=p.__getitem__, default=None)
        others = [c for c in p if c != best and p[c] >= self.threshold(c)]
        if best is None:
            return ()
        return (best, *sorted(others, key=p.__getitem__, reverse=True)) if others else (best,)

    def threshold(self, c: Hashable) -> float:
        """A class is excluded if its probability is below this; a class without scores never is."""
        own = self.classes.get(c)
        if own is None:
            return -1.0
        scores = own.scores if len(self.classes) == 2 else self._scores_of(own)
        found = scores.threshold(own.level)
        return max(found, self._threshold_of_few(c, own)) if self.left_out else found

    def _threshold_of_few(self, c: Hashable, own: OfClass) -> float:
        """The threshold by leave-one-out, at the level alpha; what is not a member any more has a high score."""
        scores, k = self.left_out.get(c), int(min(own.level, self.alpha) * (own.n + 1))
        return scores[min(k, len(scores)) - 1] if k and scores and self._has_few(own) else -1.0

    def _has_few(self, own: OfClass) -> bool:
        """Whether a class has labels enough for leave-one-out, and too few scores to do without."""
        return 1.0 / self.alpha <= own.n + 1 <= WINDOW and len(own.scores) < FEW / self.alpha

    @property
    def needs_few(self) -> bool:
        """Whether scores by leave-one-out can help one of two classes; not for long if it is rare."""
        if self.n > WINDOW or self.n > 2.0 * FEW / self.alpha or len(self.classes) != 2:
            return False
        return any(map(self._has_few, self.classes.values()))

    def _scores_of(self, own: OfClass) -> Scores:
        """The scores that a class is compared with: its own, or those of all classes while it has few and is common."""
        k = len(self.classes)
        if k > 2 and 2 * k * own.n >= self.n and LEAST <= len(own.scores) < POOLED / self.alpha:
            return self.pool
        return own.scores

    def would_decide(self, alpha: float) -> float:
        """The share of records like the last ones of each class that thresholds for this share of errors decide."""
        thresholds = {c: own.scores.threshold(alpha) for c, own in self.classes.items()}
        known = [own for own in self.classes.values() if own.records]
        shares = [
            sum(len(_left(record.said.p, thresholds)) == 1 for record in own.records) / len(own.records)
            for own in known
        ]
        n = sum(own.n for own in known)
        return sum(share * own.n for share, own in zip(shares, known, strict=True)) / n if n else math.nan

    # ------------------------------------------------------------------------------------------------------ learning

    def note(self, id: int, said: Decision, y: Hashable) -> None:
        """Learn that the label of an example is y."""
        delay = self.n - said.known
        self._note(id, said, y, delay, counts=said.known >= MATURE or said.known >= delay)

    def _note(self, id: int, said: Decision, y: Hashable, delay: int, *, counts: bool) -> None:
        """Learn a label that came so many labels late; its score may not count."""
        own = self.classes.get(y)
        if own is None:
            own = self.classes[y] = OfClass(self.alpha)
        is_alone = len(said.labels) == 1
        is_wrong = is_alone and said.labels[0] != y
        own.count(1, is_alone, is_wrong)
        self.n += 1
        before = own.log_level
        step, top = self.eta * (self.alpha - is_wrong), self.highest
        if is_alone:
            step /= self.audit
        if delay > 0:
            slow = self._slowed(delay * own.n / self.n)
            step, top = slow * step, self._highest(slow)
        step += before
        own.set_level(step if step < top else top)
        p = said.p.get(y, 0.0) if counts else None
        if p is not None:
            own.scores.add(id, p)
            if len(self.classes) > 2:
                self.pool.add(id, p)
        own.records.append(Record(id, said, p, own.log_level - before))

    def _slowed(self, on_their_way: float) -> float:
        """Factor on the step: the level must not run ahead of the errors that are still on their way."""
        return min(1.0, GAIN / (self.eta * self.alpha * on_their_way))

    def _highest(self, slow: float) -> float:
        """Where log level ends: with late labels, no class may save up much."""
        return log(min((1.0 + (CAP - 1.0) * slow) * self.alpha, LARGEST_LEVEL))

    def forget(self, ids: Iterable[int]) -> None:
        """Take back what was learned from these examples, as far as it is remembered."""
        for number in ids:
            self._take_back(number)

    def relabel(self, id: int, y: Hashable) -> None:
        """Correct the label of an example, if it is remembered."""
        for record in self._take_back(id):
            self._note(id, record.said, y, 0, counts=record.p is not None)

    def _take_back(self, id: int) -> list[Record]:
        found = []
        for c, own in self.classes.items():
            here = [record for record in own.records if record.id == id]
            for record in here:
                own.records.remove(record)
                own.count(-1, record.said.decided, record.said.is_wrong(c))
                own.set_level(min(self.highest, own.log_level - record.step))
                self.n -= 1
            if here:
                own.scores.remove(id)
                self.pool.remove(id)
            found += here
        return found

    # ------------------------------------------------------------------------------------------------------ the promise

    @property
    def excess(self) -> float:
        """K: how many more than alpha m of m successive labelled records of a class can be decided wrongly."""
        return max(0.0, self.highest + log(WINDOW + 1)) / self.eta + 1.0 / self.audit

    def promised(self, m: int) -> float:
        """How many of m successive labelled records of a class are decided wrongly at most.

        In an audit: in 19 of 20 cases, because the audited records are a sample.
        """
        chance = 1.65 * math.sqrt(self.alpha * (1.0 - self.audit) * m / self.audit)
        return self.alpha * m + self.excess + chance


def _left(p: Mapping[Hashable, float], thresholds: Mapping[Hashable, float]) -> list[Hashable]:
    """The labels that these thresholds do not exclude, with the most probable one."""
    best = max(p, key=p.__getitem__, default=None)
    return [c for c in p if c == best or p[c] >= thresholds.get(c, -1.0)]
