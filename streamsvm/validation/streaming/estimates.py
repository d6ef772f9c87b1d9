"""What the wrappers return: estimates with intervals."""

from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """An estimate, and bounds on what the complete computation would give.

    The interval covers what was not computed.  It does not tell how far a sample of examples is from the stream.
    """

    value: float
    low: float
    high: float


class LOOEstimate(NamedTuple):
    """Leave-one-out estimates of a model.

    Attributes
    ----------
    n_seen
        Number of examples that the model had learned.
    n
        Number of examples that were predicted.
    error, g_mean, prbep
        Share of wrong predictions; geometric mean of the recalls of both classes; precision-recall break-even point.
        Each is an `Interval` over all outcomes of the undecided examples; without these, low = value = high.  The
        break-even point needs more than signs: for it, examples that bounds decided count as undecided.
    seconds
        Time that the estimate took.
    n_unchanged, n_bounded, n_removed, n_undecided
        Number of examples that are not support vectors, that bounds decided, left out, or left undecided.
    """

    n_seen: int
    n: int
    error: Interval
    g_mean: Interval
    prbep: Interval
    seconds: float
    n_unchanged: int
    n_bounded: int
    n_removed: int
    n_undecided: int


class FoldEstimate(NamedTuple):
    """Cross-validated estimates of a model, over the last turn of each fold.

    Attributes
    ----------
    n_seen
        Number of examples that the model had learned.
    n
        Number of predictions, of all folds together.
    error, g_mean, prbep
        As in `LOOEstimate`, over all predictions.  Every prediction is computed, so low = value = high; `fold_errors`
        tells how sure the estimate is.
    seconds
        Time that the latest fold took.
    fold_errors
        Error of each fold, (at most k,), the latest last.
    """

    n_seen: int
    n: int
    error: Interval
    g_mean: Interval
    prbep: Interval
    seconds: float
    fold_errors: np.ndarray
