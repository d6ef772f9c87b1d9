"""What both wrappers return: an estimate with intervals."""

import math
from typing import NamedTuple

import numpy as np

from streamsvm.ranking import prbep_score


class Interval(NamedTuple):
    """A value, and its bounds; NaN if it is not known.

    Those of an `Estimate` are bounds on what the complete computation would give.  They cover what was not computed,
    and do not tell how far a sample of examples is from the stream.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1%}" if self.low == self.high else f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


class Estimate(NamedTuple):
    """An estimate of a model.  `print` shows it in a line.

    Attributes
    ----------
    n_seen
        Number of examples that the model had learned.
    n
        Number of examples that were tested.
    error, g_mean, prbep
        Share of wrong predictions; geometric mean of the recalls of all classes; precision-recall break-even point,
        which more than two classes do not have (NaN).  Each is an `Interval` over all outcomes of the undecided
        examples; without these, low = value = high.  The break-even point needs more than signs: for it,
        `StreamingLOO` counts examples that bounds decided as undecided.
    n_removed
        Number of tested examples that were left out of the model; the others did not have to be.
    n_undecided
        Number of examples that were too much work to leave out.
    seconds
        Time that the estimate took.  All other fields are the same whenever the same stream is learned again.
    """

    n_seen: int
    n: int
    error: Interval
    g_mean: Interval
    prbep: Interval
    n_removed: int
    n_undecided: int
    seconds: float = 0.0

    def __str__(self) -> str:
        break_even = "" if math.isnan(self.prbep.value) else f", PRBEP {self.prbep}"
        scores = f"error {self.error}, g-mean {self.g_mean}{break_even}"
        return f"{scores}; {self.n} examples tested after {self.n_seen} learned"


NOTHING = Interval(math.nan, math.nan, math.nan)


def exactly(places: np.ndarray, margins: np.ndarray, are_two: bool) -> tuple[Interval, Interval, Interval]:
    """Error, g-mean and break-even point of margins that are all known, by the classes' places; NaN without any."""
    if not len(places):
        return NOTHING, NOTHING, NOTHING
    wrong = margins <= 0.0
    values = float(wrong.mean()), g_mean_of_errors(np.bincount(places, wrong), np.bincount(places))
    break_even = prbep_score(places > 0, values_of(places, margins)) if are_two else math.nan
    error, mean, point = (Interval(value, value, value) for value in (*values, break_even))
    return error, mean, point


def values_of(places: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """The decision values f of examples of two classes."""
    return np.where(places > 0, margins, -margins)


def g_mean_of_errors(errors: np.ndarray, sizes: np.ndarray) -> float:
    """The geometric mean of the recalls of the classes that have examples, from their numbers of errors."""
    recalls = 1.0 - errors[sizes > 0] / sizes[sizes > 0]
    return float(np.prod(recalls) ** (1.0 / len(recalls)))
