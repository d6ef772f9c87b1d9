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
from collections.abc import Hashable, Iterable, Mapping
from math import exp, log, nan
from typing import Any, NamedTuple

import numpy as np

from streamsvm.conformal.decision import Decision, new
from streamsvm.conformal.past import Past, decision_of
from streamsvm.online.outputs.past import SAID, SCORE, STEP, WINDOW, note_decision
from streamsvm.online.outputs.recent import corrected, new_recent

ETA, ETA_OF_AUDIT = 0.3, 0.1  # step; a smaller one if the labels of an audit weigh more than others
CAP, LARGEST_LEVEL = 3.0, 0.5  # largest level: alpha times `CAP`, and never above the other
GAIN = 0.5  # late labels: eta alpha (records of the class on their way) is at most this
MATURE = 100  # labels that a model must know before scores of late labels count: earlier ones mislead
FEW = 3.0  # a common class borrows the scores of all until it has FEW / alpha
TWO = {False, True}  # the labels whose probabilities recent errors correct


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

    __slots__ = ("level", "log_level", "n", "n_decided", "n_wrong", "past", "threshold")

    def __init__(self, alpha: float, columns: Mapping[Hashable, int]) -> None:
        self.past = Past(columns)
        self.set_level(log(alpha))
        self.n = self.n_decided = self.n_wrong = 0

    def set_level(self, log_level: float) -> None:
        """Take a level into use."""
        self.log_level, self.level = log_level, exp(log_level)
        self.threshold = self.past.threshold(self.level)

    @property
    def tally(self) -> Tally:
        """How the class fares."""
        return new(Tally, (self.n, self.n_decided, self.n_wrong))


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
        self.columns: dict[Hashable, int] = {}  # the labels that had probabilities, with their numbers
        self.pool = Past({})
        self.n = 0  # labelled records
        self.recent = new_recent()
        self.is_better = False  # whether recent errors correct the probabilities
        self.left_out: dict[Hashable, list[float]] = {}  # scores by leave-one-out, in order, while labels are few
        self.few_until = min(WINDOW, 2.0 * FEW / alpha)  # labels
        self.highest = self._highest(1.0)

    # ------------------------------------------------------------------------------------------------------ deciding

    def decide(self, margin: Any, p: Mapping[Hashable, float]) -> Decision:
        """What is said about an example of which the model says this; see `ConformalClassifier.decide`."""
        own = None
        if p.keys() == TWO:
            own = p[True], corrected(self.recent, p[True])
            if self.is_better:
                p = {False: 1.0 - own[1], True: own[1]}
        return new(Decision, (self.labels(p), p, margin, own, self.n))

    def labels(self, p: Mapping[Hashable, float]) -> tuple[Hashable, ...]:
        """The labels that cannot be excluded, the most probable first."""
        if len(p) == 2:  # the usual case, three times as fast
            (c, p_c), (d, p_d) = p.items()
            best, other, least = (c, d, p_d) if p_c >= p_d else (d, c, p_c)
            own = self.classes.get(other)
            if own is None or self.left_out or len(self.classes) > 2:
                return (best, other) if least >= self.threshold(other) else (best,)
            return (best, other) if least >= own.threshold else (best,)
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
        found = self.pool.threshold(own.level) if self._borrows(own) else own.threshold
        return max(found, self._threshold_of_few(c, own)) if self.left_out else found

    def _threshold_of_few(self, c: Hashable, own: OfClass) -> float:
        """The threshold by leave-one-out, at the level alpha; what is not a member any more has a high score."""
        scores, k = self.left_out.get(c), int(min(own.level, self.alpha) * (own.n + 1))
        return scores[min(k, len(scores)) - 1] if k and scores and self._has_few(own) else -1.0

    def _has_few(self, own: OfClass) -> bool:
        """Whether a class has labels enough for leave-one-out, and too few scores to do without."""
        return 1.0 / self.alpha <= own.n + 1 <= WINDOW and own.past.n_scores < FEW / self.alpha

    @property
    def needs_few(self) -> bool:
        """Whether scores by leave-one-out can help one of two classes; not for long if it is rare."""
        if self.n > self.few_until or len(self.classes) != 2:
            return False
        return any(map(self._has_few, self.classes.values()))

    def _borrows(self, own: OfClass) -> bool:
        """Whether a class is compared with the scores of all: while it has few and is common."""
        k = len(self.classes)
        return k > 2 and 2 * k * own.n >= self.n and 0 < own.past.n_scores < FEW / self.alpha

    def would_decide(self, alpha: float) -> float:
        """The share of records like the last ones of each class that thresholds for this share of errors decide."""
        thresholds = np.full(len(self.columns), -1.0)
        for c, own in self.classes.items():
            if c in self.columns:
                thresholds[self.columns[c]] = own.past.threshold(alpha)
        known = [own for own in self.classes.values() if own.past.n]
        shares = [_alone(own.past.given()[1][SAID:], thresholds).mean() for own in known]
        n = sum(own.n for own in known)
        return float(sum(share * own.n for share, own in zip(shares, known, strict=True)) / n) if n else nan

    # ------------------------------------------------------------------------------------------------------ learning

    def note(self, id: int, said: Decision, y: Hashable, delay: int | None = None, *, counts: bool = True) -> None:
        """Learn that the label of an example is y.

        It came so many labels late, by default as many as came since the decision; and its score may not count.
        """
        if delay is None:
            known = said.known
            delay = self.n - known
            counts = known >= delay or known >= MATURE
        own = self.classes.get(y)
        if own is None:
            own = self.classes[y] = OfClass(self.alpha, self.columns)
        labels, p, columns = said.labels, said.p, self.columns
        for c in p:
            if c not in columns:
                self.know([c])
        is_alone = len(labels) == 1
        is_wrong = is_alone and labels[0] != y
        self.n += 1
        own.n += 1
        step, top = self.eta * (self.alpha - is_wrong), self.highest
        if is_alone:
            own.n_decided += 1
            own.n_wrong += is_wrong
            step /= self.audit
        if delay > 0:
            slow = self._slowed(delay * own.n / self.n)
            step, top = slow * step, self._highest(slow)
        before, after = own.log_level, own.log_level + step
        if after > top:
            after = top
        own.log_level, own.level = after, exp(after)
        score = float(p.get(y, 0.0)) if counts else nan
        alone = columns[labels[0]] if is_alone else -1
        correction = (*said.own, y == 1) if said.own else (nan, nan, False)
        past, step = own.past, after - before
        place = past.write(id, p)
        state = past.table, place, past.n_scores, self.recent
        past.n_scores, own.threshold, self.is_better = note_decision(*state, score, step, alone, own.level, *correction)
        if len(self.classes) > 2 and counts:
            pool = self.pool
            place = pool.write(id, {})
            state = pool.table, place, pool.n_scores, self.recent
            pool.n_scores, _, _ = note_decision(*state, score, 0.0, -1, 0.0, nan, nan, False)

    def know(self, labels: Iterable[Hashable]) -> None:
        """Give numbers to the labels that have none."""
        for c in labels:
            self.columns.setdefault(c, len(self.columns))
        for own in self.classes.values():
            own.past.widen()

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
        for column in self._take_back(id):
            self.note(id, decision_of(column, self.columns), y, 0, counts=not math.isnan(column[SCORE]))

    def _take_back(self, id: int) -> list[np.ndarray]:
        found = []
        for c, own in self.classes.items():
            for column in own.past.take_out(id).T:
                said = decision_of(column, self.columns)
                own.n_decided -= said.decided
                own.n_wrong -= said.is_wrong(c)
                own.set_level(min(self.highest, own.log_level - float(column[STEP])))
                own.n -= 1
                self.n -= 1
                found.append(column)
        if found:
            self.pool.take_out(id)
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


def _alone(p: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Whether these thresholds leave one label, of the probabilities (labels, records), NaN for one that is unknown."""
    known = np.where(np.isnan(p), -1.0, p)
    best = known.argmax(axis=0) == np.arange(len(p))[:, np.newaxis]
    return ((known >= 0.0) & (best | (known >= thresholds[:, np.newaxis]))).sum(axis=0) == 1
