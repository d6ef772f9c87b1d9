"""Solving over a whole training set, and handing the solution to a model that can go on learning from there.

The batch solver finds the coefficients.  The examples that they rest on become the model's members, as if it had
learned all examples and finished: the support vectors, and the examples that hold the extremes of the gradient, which
fix the bias where no coefficient is between its bounds.
"""

from typing import Any, NamedTuple

import numpy as np

from streamsvm.batch.chunks.features import Features
from streamsvm.batch.chunks.solver import Optimum, optimum
from streamsvm.batch.options import SolverOptions
from streamsvm.batch.steps import penalties
from streamsvm.core import arguments, storage
from streamsvm.core.blocks import LARGEST_SQUARED_NORM
from streamsvm.core.expansion import EVALUATIONS, SLOTS
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, largest_self_product
from streamsvm.estimators.lasvm import LASVM
from streamsvm.online.lasvm import append_block
from streamsvm.online.outputs.calibration import note_margins


class _Solved(NamedTuple):
    """The solution for one model."""

    lo: np.ndarray
    hi: np.ndarray
    found: Optimum

    @property
    def members(self) -> np.ndarray:
        """Numbers of the examples that become members, rising."""
        alpha, g = self.found.alpha, self.found.g
        holders = []
        if (rising := np.flatnonzero(alpha < self.hi)).size:
            holders.append(rising[np.argmax(g[rising])])
        if (falling := np.flatnonzero(alpha > self.lo)).size:
            holders.append(falling[np.argmin(g[falling])])
        return np.union1d(np.flatnonzero(alpha), np.array(holders, np.int64))


def learn_to_optimum(
    model: LASVM, X: Any, positive: np.ndarray, weights: np.ndarray, ids: np.ndarray, max_passes: int
) -> tuple[int, bool]:
    """Let a new model learn a training set up to its tolerance; return the number of passes, and whether that sufficed.

    Raises
    ------
    ValueError
        If a feature or a kernel value is too large.
    """
    features = Features(X, model._kernel)
    _require_finite(model, features, X)
    solved = _solve(model, features, positive, weights, max_passes)
    found = solved.found
    note_margins(model._calibration, positive[found.seen], found.decision_values)
    _place_members(model, X, solved, ids)
    return found.n_passes, found.converged


def _require_finite(model: LASVM, features: Features, X: Any) -> None:
    largest = features.sq.max(initial=0.0)
    if not (
        largest < LARGEST_SQUARED_NORM and largest_self_product(model._kernel, features.sq) <= LARGEST_KERNEL_VALUE
    ):
        model.validate_many(X)  # it names the row


def _solve(model: LASVM, features: Features, positive: np.ndarray, weights: np.ndarray, max_passes: int) -> _Solved:
    box = arguments.boxes_of(model.C, weights, np.ones(len(weights)))
    lo, hi = np.where(positive, 0.0, -box), np.where(positive, box, 0.0)
    options = SolverOptions(tol=model.tol, cache_mb=model.cache_mb)
    return _Solved(lo, hi, optimum(features, np.where(positive, 1.0, -1.0), lo, hi, options, max_passes))


def _place_members(model: LASVM, X: Any, solved: _Solved, ids: np.ndarray) -> None:
    """Make the members of a solution those of a model without members."""
    members, found, s = solved.members, solved.found, model._expansion
    lo, hi = solved.lo[members], solved.hi[members]
    for rows, q in model._batches(X[members], learning=True):
        s = append_block(s, model._kernel, q, len(model._features), lo[rows], hi[rows])
    n = int(s.counts[SLOTS])
    s.alpha[:n], s.g[:n], s.ids[:n], s.born[:n] = found.alpha[members], found.g[members], ids[members], members
    s.up[:n], s.down[:n] = penalties(s.alpha[:n], s.lo[:n], s.hi[:n])
    s.counts[EVALUATIONS] += found.kernel_evaluations
    storage.find_extremes(s)
    model._expansion = s
    counts = int(np.count_nonzero(solved.lo < 0.0)), int(np.count_nonzero(solved.hi > 0.0))
    last = len(ids) - 1
    model._note(last + 1, counts, int(ids.max()), len(model._features), 0, last)
