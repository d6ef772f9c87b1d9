"""Warnings about a stream from which a model cannot learn well: they say what is wrong, and what to try.

A model checks at every 1000th example.  So a warning depends on the examples alone, not on how they were cut into
batches, and the check costs almost nothing.  Models of several classes, and those behind scikit-learn's interface,
check only whether digits are lost.
"""

import warnings
from collections.abc import Hashable

import numpy as np

from streamsvm.core import storage
from streamsvm.core.expansion import Expansion
from streamsvm.core.kernels import LARGEST_PARAMETER, NAMES, RBF_KIND, Kernel
from streamsvm.core.scaling import SPREAD
from streamsvm.core.stream_warning import StreamWarning as StreamWarning
from streamsvm.estimators.learner.state import LOOK_EVERY, NEVER, OnlineModel
from streamsvm.online.outputs.calibration import RUN, THRESHOLD

EQUAL_PREDICTIONS = 2000  # so many in a row, while both classes occur, are suspicious
LARGEST_RATIO = 100.0  # of two features' standard deviations
CONSTANT = 1e-12  # share of its mean square that the variance of a constant feature may be, by rounding
ROUNDING = 2.0**-24  # of a number in single precision, relative to its size
LARGEST_ERROR = 0.1  # of decision values, by rounding: a tenth of the distance from the boundary to the margin

Spread = tuple[Hashable, float]  # a feature's name and its standard deviation


def warn_of_lost_digits(vectors: Expansion, kernel: Kernel, size: float) -> bool:
    """Warn if decision values lack digits because kernel values are in single precision; return whether they do.

    The errors of the kernel values with all support vectors add up as independent ones do.  A distance is a difference
    of squared norms, and has their rounding.

    Parameters
    ----------
    vectors, kernel
        The members of a model, and the kernel.
    size
        The Euclidean norm of the coefficients.
    """
    live = storage.live_slots(vectors)
    values = 4.0 * kernel.gamma * vectors.sq[live] if kernel.kind == RBF_KIND else np.abs(vectors.self_k[live])
    error = ROUNDING * size * float(np.median(values)) if len(live) else 0.0
    if not error > LARGEST_ERROR:
        return False
    warnings.warn(
        f"single precision leaves an error of about {error:.2g} in decision values, whose margin is 1: the features "
        f"are too large for the {NAMES[kernel.kind]} kernel; subtract their means and "
        'divide by their deviations, as scaling="standard" does',
        StreamWarning,
        stacklevel=4,
    )
    return True


class Advice(OnlineModel):
    """Looking and warning."""

    def _look(self) -> None:
        """Warn of what is wrong by now, each time of something else."""
        self._next_look += LOOK_EVERY
        if self._n_seen == LOOK_EVERY:
            self._warn_of_one_class()
            self._warn_of_scales()
        self._warn_of_equal_predictions()
        if (self._n_seen // LOOK_EVERY).bit_count() == 1:  # after 1000, 2000, 4000, ... examples: it takes 0.1 ms
            self._warn_of_lost_digits()

    def _warn_of_lost_digits(self) -> None:
        """Warn once; a model that does not look at all leaves it to its owner."""
        if self._next_look != NEVER and not self._told_of_lost_digits:
            size = float(np.linalg.norm(self._expansion.alpha))
            self._told_of_lost_digits = warn_of_lost_digits(self._expansion, self._kernel, size)

    def _warn_of_one_class(self) -> None:
        negatives, positives = self._class_counts
        if negatives + positives and not (negatives and positives):
            warnings.warn(
                f"the first {self._n_seen} examples have the label {positives > 0} only, and so have the predictions; "
                "check the labels, or shuffle the examples",
                StreamWarning,
                stacklevel=4,
            )

    def _warn_of_scales(self) -> None:
        is_scaled = self.scaling == "standard" or (self.scaling == "auto" and self.gamma == "scale")
        spread = float(self._scale.state.totals[SPREAD])
        if self._scale.sets_gamma and 0.0 < spread < 1.0 / LARGEST_PARAMETER:
            warnings.warn(
                f"the features are so small (the sum of their variances is {spread:.2g}) that no gamma fits, and all "
                'kernel values are 1; use larger units, or scaling="standard"',
                StreamWarning,
                stacklevel=4,
            )
        found = None if is_scaled else self._extreme_spreads()
        if found is not None and found[1][1] > LARGEST_RATIO * found[0][1]:
            (low, smallest), (high, largest) = found
            self._told_of_lost_digits = True  # the cure is the same
            warnings.warn(
                f"the features have very different scales, and those with large values decide alone: the standard "
                f'deviation of {low!r} is {smallest:.2g}, that of {high!r} {largest:.2g}; use scaling="standard"',
                StreamWarning,
                stacklevel=4,
            )

    def _extreme_spreads(self) -> tuple[Spread, Spread] | None:
        """The features with the smallest and the largest standard deviation among the members.

        Constant features do not count, nor those that are 0 for half of the members, nor those that are only 0 or 1.
        """
        names = list(self._features.columns)  # not `feature_names`: a block that is being learned keeps its new columns
        X = storage.rows_of(self._expansion, storage.live_slots(self._expansion), len(names))
        values, columns = X.data.astype(np.float64), X.indices

        def mean(of: np.ndarray) -> np.ndarray:  # of each feature over the members; SciPy's takes a millisecond
            return np.bincount(columns, of, minlength=len(names)) / max(1, X.shape[0])

        squares = np.square(values)
        mean_square = mean(squares)
        variance = mean_square - np.square(mean(values))
        varied = variance > CONSTANT * mean_square
        varied &= np.bincount(columns, minlength=len(names)) > X.shape[0] / 2
        varied &= mean(np.abs(values - squares)) > 0.0
        found = np.flatnonzero(varied)
        if not len(found):
            return None
        order = found[np.argsort(variance[found], kind="stable")]
        first, last = ((names[k], float(np.sqrt(variance[k]))) for k in (order[0], order[-1]))
        return first, last

    def _warn_of_equal_predictions(self) -> None:
        prediction, *counts = self._calibration[RUN:THRESHOLD].astype(np.int64).tolist()
        if self._told_of_equal_predictions or sum(counts) < EQUAL_PREDICTIONS or 0 in counts:
            return
        self._told_of_equal_predictions = True
        warnings.warn(
            f"the last {sum(counts)} predictions were all {bool(prediction)}, although {counts[1 - prediction]} of the "
            f'examples were {not prediction}; scale the features, or try another gamma or C, pos_weight="balanced" or '
            'threshold="gmean"',
            StreamWarning,
            stacklevel=4,
        )
