"""The scale of a model's features: what the parameters `gamma` and `scaling` mean, and the running scale.

Several models may share one running scale, as the classes of `OneVsRest` do.
"""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.core import scaling
from streamsvm.core.blocks import Queries, from_sparse
from streamsvm.core.kernels import LINEAR_KIND, Kernel, make_kernel
from streamsvm.core.scaling import (
    ACTIVE,
    DUE,
    PER_FEATURE,
    SCALES,
    SEEN,
    SPARSE,
    SPREAD,
    TRACKS,
    WAIT,
    WIDTH,
    RawRows,
    Scaling,
)
from streamsvm.core.snapshot import require, require_array

AUTO, STANDARD = "auto", "standard"
SCALE = "scale"
SAVED = "scale."  # before the names of its arrays in a snapshot


def kernel_of(kernel: str, gamma: Any, degree: int, coef0: float) -> Kernel:
    """The kernel before the first example; ``gamma="scale"`` is 1 then.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range.
    """
    if isinstance(gamma, str) and gamma != SCALE:
        raise ValueError(f'gamma={gamma!r} must be "{SCALE}" or a positive number')
    return make_kernel(kernel, 1.0 if isinstance(gamma, str) else gamma, degree, coef0)


def require_scaling(value: Any) -> None:
    """Raise a ValueError unless this is a value for `scaling`."""
    if value is not None and value not in (AUTO, STANDARD):
        raise ValueError(f'scaling={value!r} must be "{AUTO}", "{STANDARD}" or None')


class RunningScale:
    """The running scale of a stream's features; `core.scaling` has the formulas.

    Parameters
    ----------
    kernel, gamma, scaling
        As of the model.

    Attributes
    ----------
    state
        The moments and the scale in use.
    """

    def __init__(self, kernel: str, gamma: Any, scaling_: str | None) -> None:
        self._follows_gamma = gamma == SCALE
        scales = scaling_ == STANDARD or (scaling_ == AUTO and self._follows_gamma)
        tracks = scales or (self._follows_gamma and make_kernel(kernel).kind != LINEAR_KIND)
        self.state = scaling.empty(tracks, scales)

    @property
    def tracks(self) -> bool:
        """Whether the model's scale or its gamma follows the stream."""
        return bool(self.state.counts[TRACKS])

    @property
    def is_active(self) -> bool:
        """Whether the scale in use changes a feature."""
        return bool(self.state.counts[ACTIVE])

    @property
    def is_due(self) -> bool:
        """Whether the running moments are far from the scale in use."""
        return bool(self.state.counts[DUE])

    def adapted(self, kernel: Kernel) -> Kernel:
        """The kernel with the gamma that belongs to the scale in use."""
        spread = float(self.state.totals[SPREAD])
        return kernel._replace(gamma=1.0 / spread if spread > 0.0 else 1.0) if self._follows_gamma else kernel

    def fit_room(self, n_features: int) -> None:
        """Make room for so many features: compiled code checks no bounds."""
        if self.tracks and n_features > len(self.state.m):
            self.state = scaling.grown(self.state, max(n_features, 2 * len(self.state.m)))

    def ahead(self, raw: RawRows) -> tuple[int, Scaling]:
        """How many of these examples to learn until the scale is due, and the state after them."""
        after = scaling.copy(self.state)
        return scaling.observe_block(after, raw.indptr, raw.columns, raw.values), after

    def copy(self) -> "RunningScale":
        """A scale of its own, which can take in other examples."""
        return self._with(scaling.copy(self.state))

    def renewed(self, n_members: int) -> "RunningScale":
        """A scale whose running moments are in use, for models that have at most so many members."""
        new = self.copy()
        scaling.take_into_use(new.state, n_members)
        return new

    def _with(self, state: Scaling) -> "RunningScale":
        new = copy.copy(self)
        new.state = state
        return new

    def queries(self, raw: RawRows) -> Queries:
        """Examples as the engine's queries."""
        if self.is_active:
            return scaling.scale_block(self.state, raw)
        return from_sparse(raw.indptr, np.arange(len(raw.columns)), raw.values, raw.columns)

    # ------------------------------------------------------------------------------------------------------- snapshots

    def dump(self) -> dict[str, np.ndarray]:
        """The arrays of a snapshot; none if nothing is tracked."""
        if not self.tracks:
            return {}
        width = int(self.state.counts[WIDTH])
        arrays = {name: getattr(self.state, name)[:width].copy() for name in PER_FEATURE}
        arrays |= {"totals": self.state.totals.copy(), "counts": self.state.counts.copy()}
        return {SAVED + name: array for name, array in arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray], n_features: int) -> None:
        """Take over what `dump` gave; a SnapshotError if these are not the arrays of a scale."""
        if not self.tracks:
            return
        counts = require_array(arrays, SAVED + "counts", np.int64, self.state.counts.shape)
        width = int(counts[WIDTH])
        require(0 <= width <= n_features, f"the scale knows {width} of {n_features} features")
        require(counts[TRACKS] == 1 and counts[SCALES] == self.state.counts[SCALES], "the scale is of another kind")
        require(np.isin(counts[[SPARSE, DUE, ACTIVE]], (0, 1)).all(), "a flag of the scale is neither 0 nor 1")
        require(0 <= counts[SEEN] <= 2**62 and 0 <= counts[WAIT] <= 2**62, "a count of the scale is out of range")
        state = scaling.grown(self.state, max(n_features, 4))
        state.counts[:] = counts
        state.totals[:] = require_array(arrays, SAVED + "totals", np.float64, state.totals.shape)
        for name in PER_FEATURE:
            own = getattr(state, name)
            own[:width] = require_array(arrays, SAVED + name, own.dtype, (width,))
        for name in ("m", "S", "shift", "factor", "spread", "totals"):
            require(np.isfinite(getattr(state, name)).all(), f"{name} of the scale is not finite")
        require((state.S >= 0).all() and (state.spread >= 0).all() and (state.factor > 0).all(), "a scale is negative")
        require((state.totals >= 0).all() and (state.named >= 0).all(), "a count of the scale is negative")
        self.state = state
