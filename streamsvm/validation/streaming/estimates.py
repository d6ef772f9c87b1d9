"""What both wrappers return: an estimate with intervals."""

from typing import NamedTuple

import numpy as np

from streamsvm.ranking import prbep_score
from streamsvm.validation.scores import g_mean


class Interval(NamedTuple):
    """An estimate, and bounds on what the complete computation would give.

    The interval covers what was not computed.  It does not tell how far a sample of examples is from the stream.
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
        Share of wrong predictions; geometric mean of the recalls of both classes; precision-recall break-even point.
        Each is an `Interval` over all outcomes of the undecided examples; without these, low = value = high.  The
        break-even point needs more than signs: for it, `StreamingLOO` counts examples that bounds decided as undecided.
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
        scores = f"error {self.error}, g-mean {self.g_mean}, PRBEP {self.prbep}"
        return f"{scores}; {self.n} examples tested after {self.n_seen} learned"


def exactly(positive: np.ndarray, f: np.ndarray) -> tuple[Interval, Interval, Interval]:
    """Error, g-mean and break-even point of decision values that are all known; NaN where there are none."""
    if not len(f):
        nothing = Interval(np.nan, np.nan, np.nan)
        return nothing, nothing, nothing
    values = float(np.mean(positive != (f > 0.0))), g_mean(positive, f > 0.0), prbep_score(positive, f)
    error, mean, break_even = (Interval(value, value, value) for value in values)
    return error, mean, break_even
