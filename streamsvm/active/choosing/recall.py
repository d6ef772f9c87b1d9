"""What random answers say about the positives that are still missed, if the examples that they speak of stay the same.

**No valid method does without many random answers.**  If m random ones of n examples hold no positive, about 3 n / m
may still be hidden among the others: with fewer hidden ones, m draws miss all of them in more than one of 20 cases.

- `missed_after_audit`: after a number of answers that was fixed beforehand.
- `RecallProof`: after each answer, as often as one likes.  It is a bet against each number R of positives: the stake
  grows with each answer that R makes unlikely, and R is rejected when it has grown 20-fold.  If R is true, that happens
  in at most one of 20 cases, whenever one looks (Ville's inequality).
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from streamsvm.active.choosing.stopping import CONFIDENCE
from streamsvm.core import arguments

BETS = (0.0, 0.15, 0.4)  # shares of R's rate of positives that the bets expect; the stake is spread over them


def missed_after_audit(n: int, n_audited: int, n_found: int, confidence: float = CONFIDENCE) -> int:
    """How many positives are at most left, after random answers about examples that stayed the same meanwhile.

    Parameters
    ----------
    n
        Number of examples before the first of these answers, such as those that a model takes for negative.
    n_audited
        Number of random ones among them that were labelled, none of them twice; fixed beforehand.
    n_found
        Number of positives among these.
    confidence
        Probability that the bound holds, between 0 and 1.

    Returns
    -------
    int
        The largest number that does not make so few positives improbable, by the hypergeometric distribution, without
        those that were found.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> missed_after_audit(2700, 30, 0), missed_after_audit(2700, 120, 0), missed_after_audit(600, 120, 0)
    (255, 65, 13)
    """
    arguments.require_share("confidence", confidence)
    for name, value in (("n", n), ("n_audited", n_audited), ("n_found", n_found)):
        arguments.require_count(name, value, 0)
    if n_audited > n:
        raise ValueError(f"n_audited={n_audited} must be at most n={n}")
    if n_found > n_audited:
        raise ValueError(f"n_found={n_found} must be at most n_audited={n_audited}")
    from scipy.stats import hypergeom  # takes half a second to load, which the trainer need not wait for

    return _most(n - n_audited, lambda k: hypergeom.cdf(n_found, n, n_found + k, n_audited) > 1.0 - confidence)


def _most(n: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to n that something holds for, which holds for 0 and for all numbers up to this one."""
    return bisect_left(range(1, n + 1), True, key=lambda k: not holds(k))


def answers_for_recall(n: int, n_found: int, recall: float, confidence: float = CONFIDENCE) -> int:
    """How many random answers a promise of recall takes at least: as many as if none of them were positive.

    Parameters
    ----------
    n
        Number of examples that no person has looked at.
    n_found
        Number of positives that are known.
    recall
        Share of all positives that shall be known in the end, between 0 and 1.
    confidence
        Probability that the promise is kept, between 0 and 1.

    Returns
    -------
    int
        Number of answers.  Each positive that they find costs further ones.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> [answers_for_recall(3000, 60, recall) for recall in (0.7, 0.8, 0.9)]
    [327, 513, 1045]
    """
    arguments.require_count("n", n, 0)
    arguments.require_count("n_found", n_found, 0)
    arguments.require_share("recall", recall)
    arguments.require_share("confidence", confidence)
    allowed = math.floor(n_found * (1.0 - recall) / recall + 1e-9)
    return math.ceil(n * (1.0 - (1.0 - confidence) ** (1.0 / (allowed + 1.0))))


@dataclass
class RecallProof:
    """Counts the positives, until random answers prove that a share of all is known.

    Parameters
    ----------
    recall
        Share of all positives that shall be known, between 0 and 1.
    confidence
        Probability that the promise is kept, between 0 and 1.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    It speaks of a set of `n_left` examples, to which nothing is added.  Random answers about it are evidence; answers
    about others of it, which were chosen, only count as known.

    Examples
    --------
    >>> from streamsvm.active import RecallProof
    >>> proof = RecallProof(recall=0.8)
    >>> proof.begin(n_left=3000, n_known=60)
    >>> for _ in range(800):
    ...     proof.random(False)
    >>> proof.missed_at_most() <= 15, proof.holds()
    (True, True)
    >>> proof.why()
    'at least 84 % of the positives are known, with 95 % confidence: 60 are known, at most 11 are not'
    """

    recall: float
    confidence: float = CONFIDENCE
    n_left: int = field(default=0, init=False)
    n_known: int = field(default=0, init=False)
    _found: int = field(default=0, init=False, repr=False)  # positives of the set
    _doubtful: int = field(default=0, init=False, repr=False)  # answers that are no label: each may be a positive
    _lefts: list[int] = field(default_factory=list, init=False, repr=False)  # at each random answer
    _founds: list[int] = field(default_factory=list, init=False, repr=False)
    _said: list[bool] = field(default_factory=list, init=False, repr=False)
    _hidden: int | None = field(default=None, init=False, repr=False)  # positives that the rest may have

    def __post_init__(self) -> None:
        arguments.require_share("recall", self.recall)
        arguments.require_share("confidence", self.confidence)

    def begin(self, n_left: int, n_known: int, n_doubtful: int = 0) -> None:
        """Begin with a set of so many examples; outside of it, some positives are known, and some answers no label."""
        self.n_left, self.n_known, self._found, self._doubtful = n_left, n_known, 0, n_doubtful
        self._lefts, self._founds, self._said, self._hidden = [], [], [], None

    def random(self, y: bool | None) -> None:
        """Take the answer about a random example of the set; None: it has no label, so it may be positive."""
        self._lefts.append(self.n_left)
        self._founds.append(self._found)
        self._said.append(y is not False)
        self.chosen(y)

    def chosen(self, y: bool | None) -> None:
        """Take the answer about an example of the set that was not drawn at random."""
        self._hidden = None
        self.n_left -= 1
        self._found += y is not False
        self.n_known += y is True
        self._doubtful += y is None

    def missed_at_most(self) -> int:
        """How many positives are at most not known, with this confidence."""
        if self._hidden is None:  # the largest number of positives in the rest that is not rejected
            limit = 1.0 / (1.0 - self.confidence)
            are_all = self._stake(self.n_left) < limit
            self._hidden = self.n_left if are_all else _most(self.n_left, lambda n: self._stake(n) < limit)
        return self._hidden + self._doubtful

    def _stake(self, missed: int) -> float:
        """What the bets against so many positives in the rest have become, from 1."""
        lefts, found, said = np.array(self._lefts), np.array(self._founds), np.array(self._said, bool)
        if not len(lefts):
            return 1.0
        rate = np.clip((self._found + missed - found) / lefts, 1e-12, 1.0 - 1e-12)
        logs = [
            np.sum(np.where(said, math.log(max(bet, 1e-300)), np.log1p(-bet * rate) - np.log1p(-rate))) for bet in BETS
        ]
        return float(np.exp(min(np.logaddexp.reduce(logs) - math.log(len(BETS)), 700.0)))

    def holds(self) -> bool:
        """Whether the promise is proved."""
        return self.n_known >= self.recall * (self.n_known + self.missed_at_most())

    def cost(self) -> int:
        """How many further random answers it takes at least, as if no positive were among them."""
        return answers_for_recall(self.n_left, self.n_known, self.recall, self.confidence)

    def why(self) -> str:
        """What is proved, in a sentence for the annotators."""
        most = self.missed_at_most()
        share = self.n_known / max(1, self.n_known + most)
        return (
            f"at least {math.floor(100 * share + 1e-9)} % of the positives are known, with {100 * self.confidence:g} % "
            f"confidence: {self.n_known} are known, at most {most} are not"
        )
