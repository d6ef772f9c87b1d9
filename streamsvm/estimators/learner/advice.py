"""Warnings about a stream from which a model cannot learn well: they say what is wrong, and what to try.

A model checks at every 1000th example.  So a warning depends on the examples alone, not on how they were cut into
batches, and the check costs almost nothing.  Models of several classes, and those behind scikit-learn's interface,
check only whether digits are lost.
"""

from collections.abc import Hashable

import numpy as np

from streamsvm.core import storage
from streamsvm.core.expansion import Expansion
from streamsvm.core.inputs import APART, is_apart
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, NAMES, RBF_KIND, Kernel
from streamsvm.core.rounding import DUST, PRECISION
from streamsvm.core.scaling.state import CLIP, SPREAD
from streamsvm.core.stream_warning import StreamWarning as StreamWarning
from streamsvm.core.stream_warning import warn
from streamsvm.estimators.learner.state import LOOK_EVERY, NEVER, State
from streamsvm.online.outputs.calibration import RUN, THRESHOLD
from streamsvm.online.outputs.sigmoid import probability
from streamsvm.online.removal.bounded import AT_ONCE, MERGE

EQUAL_PREDICTIONS = 2 * LOOK_EVERY  # so many in a row, while both classes occur: from two looks on it is no chance
LARGEST_RATIO = 100.0  # of two features' standard deviations: the smaller then has 1e-4 of a squared distance
FULL = 1.0 - 2.0 / AT_ONCE  # of a budget: one that is reached loses half as much at once
CAUTIOUS_C = 1.0  # the largest that loses little to wrong labels with a budget: see docs/bounded.md
SURE = 0.65  # share of the examples at the margin that have the predicted label; where labels are right, over 0.7
LOOKS = 3  # in a row: after a sudden drift, two have it
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
    error = PRECISION * size * float(np.median(values)) if len(live) else 0.0
    if not error > LARGEST_ERROR:
        return False
    warn(
        f"single precision leaves an error of about {error:.2g} in decision values, whose margin is 1: the features "
        f"are too large for the {NAMES[kernel.kind]} kernel; subtract their means and "
        'divide by their deviations, as scaling="standard" does'
    )
    return True


def look(state: State) -> None:
    """Warn of what is wrong by now, each time of something else."""
    state.next_look += LOOK_EVERY
    if state.n_seen == LOOK_EVERY:
        _warn_of_one_class(state)
        _warn_of_scales(state)
        _warn_of_cut_values(state)
    _warn_of_equal_predictions(state)
    _warn_of_a_filled_budget(state)
    if (state.n_seen // LOOK_EVERY).bit_count() == 1:  # after 1000, 2000, 4000, ... examples: it takes 0.1 ms
        look_for_lost_digits(state)


def look_for_lost_digits(state: State) -> None:
    """Warn once; a model that does not look at all leaves it to its owner."""
    if state.next_look != NEVER and not state.told_of_lost_digits:
        size = float(np.linalg.norm(state.expansion.alpha))
        state.told_of_lost_digits = warn_of_lost_digits(state.expansion, state.kernel, size)


def _warn_of_one_class(state: State) -> None:
    negatives, positives = state.class_counts
    if negatives + positives and not (negatives and positives):
        warn(
            f"the first {state.n_seen} examples have the label {positives > 0} only, and so have the predictions; "
            "check the labels, or shuffle the examples"
        )


def _warn_of_scales(state: State) -> None:
    spread = float(state.scale.state.totals[SPREAD])
    if state.scale.sets_gamma and 0.0 < spread < 1.0 / LARGEST_KERNEL_VALUE:
        warn(
            f"the features are so small (the sum of their variances is {spread:.2g}) that no gamma fits, and all "
            'kernel values are 1; use larger units, or scaling="standard"'
        )
    found = None if state.scale.scales else _extreme_spreads(state)
    if found is not None and found[1][1] > LARGEST_RATIO * found[0][1]:
        (low, smallest), (high, largest) = found
        state.told_of_lost_digits = True  # the cure is the same
        warn(
            f"the features have very different scales, and those with large values decide alone: the standard "
            f'deviation of {low!r} is {smallest:.2g}, that of {high!r} {largest:.2g}; use scaling="standard"'
        )


def _warn_of_cut_values(state: State) -> None:
    """A feature of the user's own may happen to begin with the sign of those that are never scaled."""
    names = list(state.features.columns)
    if not (state.scale.is_active and any(map(is_apart, names))):
        return
    X = storage.rows_of(state.expansion, storage.live_slots(state.expansion), len(names))
    cut = np.bincount(X.indices, np.abs(X.data) >= CLIP, minlength=len(names)) > X.shape[0] / 2
    apart = [names[k] for k in np.flatnonzero(cut) if is_apart(names[k])]
    if apart:
        warn(
            f"the feature {apart[0]!r} is cut to -3..3 in most examples: the model does not scale it, because its name "
            f"begins with {APART!r}; give it another name, or values of about 1"
        )


def _extreme_spreads(state: State) -> tuple[Spread, Spread] | None:
    """The features with the smallest and the largest standard deviation among the members.

    Constant features do not count, nor those that are 0 for half of the members, nor those that are only 0 or 1.
    """
    names = list(state.features.columns)  # with the new ones of a block that is being learned
    X = storage.rows_of(state.expansion, storage.live_slots(state.expansion), len(names))
    values, columns = X.data.astype(np.float64), X.indices

    def mean(of: np.ndarray) -> np.ndarray:  # of each feature over the members; SciPy's takes a millisecond
        return np.bincount(columns, of, minlength=len(names)) / max(1, X.shape[0])

    squares = np.square(values)
    mean_square = mean(squares)
    variance = mean_square - np.square(mean(values))
    varied = variance > DUST * mean_square  # others are constant
    varied &= np.bincount(columns, minlength=len(names)) > X.shape[0] / 2
    varied &= mean(np.abs(values - squares)) > 0.0
    found = np.flatnonzero(varied)
    if not len(found):
        return None
    order = found[np.argsort(variance[found], kind="stable")]
    first, last = ((names[k], float(np.sqrt(variance[k]))) for k in (order[0], order[-1]))
    return first, last


def _warn_of_equal_predictions(state: State) -> None:
    prediction, *counts = state.calibration[RUN:THRESHOLD].astype(np.int64).tolist()
    if state.told_of_equal_predictions or sum(counts) < EQUAL_PREDICTIONS or 0 in counts:
        return
    state.told_of_equal_predictions = True
    warn(
        f"the last {sum(counts)} predictions were all {bool(prediction)}, although {counts[1 - prediction]} of the "
        f'examples were {not prediction}; scale the features, or try another gamma or C, pos_weight="balanced" or '
        'threshold="gmean"'
    )


def _warn_of_a_filled_budget(state: State) -> None:
    """Warn of a large C whose model fits each label that is not as predicted, and so fills its budget with them.

    Only of merged members: those that leave by another rule are the ones farthest on the wrong side.
    """
    if state.unsure_looks == LOOKS or state.budget is None or state.on_budget != MERGE or state.C <= CAUTIOUS_C:
        return
    sure = min(1.0 - probability(state.calibration, -1.0), probability(state.calibration, 1.0))
    unsure = sure < SURE and state.n_members >= FULL * state.budget
    state.unsure_looks = state.unsure_looks + 1 if unsure else 0
    if state.unsure_looks == LOOKS:
        warn(
            f"budget={state.budget} has long been full, and {100.0 * (1.0 - sure):.0f} % of the examples at the margin "
            f"have the other label: with C={state.C:g} wrong labels or an outdated concept fill it; "
            f"use C={CAUTIOUS_C:g} or less, a window where the concept moves, or AutoLASVM, which chooses both"
        )
