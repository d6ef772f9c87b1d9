"""The scale of a model's features: what the parameters `gamma` and `scaling` mean, and the running scale.

Several models may share one running scale, as the classes of `OneVsRest` do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core import storage
from streamsvm.core.blocks import LARGEST_SQUARED_NORM, Queries, queries_of
from streamsvm.core.expansion import Expansion
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, Kernel, about, make_kernel
from streamsvm.core.saving.scale import require_scale
from streamsvm.core.saving.snapshot import LARGEST_COUNT, require, require_array
from streamsvm.core.scaling.moments import fill_block, observe_block
from streamsvm.core.scaling.renewal import awakened, renewed
from streamsvm.core.scaling.state import (
    ACTIVE,
    APART,
    CLIP,
    COUNTS,
    DUE,
    FAR,
    FAR_SQUARE,
    MEMORY,
    NO_MARKS,
    NO_ROWS,
    OF_FEATURES,
    OF_PLACES,
    OLD_ENOUGH,
    PLACES,
    RENEWED,
    SCALES,
    SEEN,
    SPAN,
    SPARSE,
    SPREAD,
    TRACKS,
    WAIT,
    ZEROS,
    RawRows,
    Scaling,
    copy,
    empty,
    with_room,
)
from streamsvm.core.scaling.values import scale_block
from streamsvm.core.storage import owned
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.inputs.raw_rows import from_rows

AUTO, STANDARD = "auto", "standard"
SCALE = "scale"
MOST = 0.75  # of the weight that all examples have: between those of a feature that half of them lack, and of all
FIRST_GAMMA = 1.0 / LARGEST_SQUARED_NORM  # before anything is known of the features; kernel values are then small
PREFIX = "scale."  # before the names of its arrays in a snapshot
DTYPES = {name: array.dtype for name, array in empty(False, False)._asdict().items()}


def kernel_of(kernel: str, gamma: Any, degree: int, coef0: float) -> Kernel:
    """The kernel before the first example.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range.
    """
    if isinstance(gamma, str) and gamma != SCALE:
        raise ValueError(f'gamma={gamma!r} must be "{SCALE}" or a positive number')
    return make_kernel(kernel, FIRST_GAMMA if isinstance(gamma, str) else gamma, degree, coef0)


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
    memory
        Number of examples that the moments rest on.

    Attributes
    ----------
    state
        The moments and the scale in use.
    sets_gamma
        Whether gamma is 1 / V.
    """

    _far: tuple[tuple[int, int], dict[int, float]] = ((-1, -1), {})
    weighs = False  # whether it has weights of the features, see `tuned.weights`
    gamma_factor = 1.0  # by how much gamma grows because of them

    def __init__(self, kernel: str, gamma: Any, scaling_: str | None, memory: int = MEMORY) -> None:
        self.sets_gamma = gamma == SCALE
        scales = scaling_ == STANDARD or (scaling_ == AUTO and self.sets_gamma)
        tracks = scales or (self.sets_gamma and "gamma" in about(kernel).parameters)
        far = (np.inf, 0.0)
        if kernel == "rbf" and not scales:
            far = (0.0, FAR) if self.sets_gamma else (FAR / gamma, 0.0)
        self._shifts = far[0] < np.inf
        self.state = empty(tracks, scales, memory=memory, far=far)

    @property
    def scales(self) -> bool:
        """Whether the features are scaled, and not only shifted."""
        return bool(self.state.counts[SCALES])

    @property
    def tracks(self) -> bool:
        """Whether moments are kept: the scale, the shift or gamma follows the stream."""
        return bool(self.state.counts[TRACKS])

    @property
    def is_active(self) -> bool:
        """Whether the scale in use changes a feature."""
        return bool(self.state.counts[ACTIVE])

    @property
    def n_places(self) -> int:
        """Number of features that have moments; see `core.scaling`."""
        return int(self.state.counts[PLACES])

    @property
    def n_raw(self) -> int:
        """Number of unscaled features that a member keeps: those with moments, while the scale is active."""
        return self.n_places if self.is_active else 0

    @property
    def is_due(self) -> bool:
        """Whether the running moments are far from the scale in use."""
        return bool(self.state.counts[DUE])

    def weight_of(self, column: int) -> float:
        """The weight of a feature, at most 1; 1 unless weights are learned."""
        return 1.0

    def weighed(self, c: Scaling) -> Scaling:
        """This state of the scale as the model sees it."""
        return c

    def weights_to_store(self) -> dict[str, np.ndarray]:
        """The weights as a snapshot holds them."""
        return {}

    def over(self, scale: RunningScale) -> RunningScale:
        """What a model that has this scale uses once `scale` is the one of all models."""
        return scale

    def adapted(self, kernel: Kernel) -> Kernel:
        """The kernel with the gamma that belongs to the scale in use."""
        spread = float(self.state.totals[SPREAD])
        gamma = 1.0 / spread if spread * LARGEST_KERNEL_VALUE >= 1.0 else FIRST_GAMMA
        return kernel._replace(gamma=gamma) if self.sets_gamma else kernel

    def fit_room(self, features: FeatureTable) -> None:
        """Make room for all features, since compiled code checks no bounds, and mark new ones that stand apart."""
        n = len(features)
        if (n == features.n_kept and n <= len(self.state.place)) or not (self.tracks or self._shifts):
            return
        if n > len(self.state.place):
            self.state = with_room(self.state, max(n, 2 * len(self.state.place)), len(self.state.m))
        if n > features.n_kept:
            own = self.state.place[features.n_kept : n]
            own[own < 0] = np.where(features.provisional_apart(), APART, -1)[own < 0]

    def ahead(self, raw: RawRows, counted: np.ndarray) -> tuple[RawRows, Scaling]:
        """Those of these examples to learn until the scale is due, with their gaps filled, and the state after them.

        The scale takes in the examples that count.  One that keeps no moments looks only for a feature far from 0.
        """
        largest = 2.0 * raw.sq.max(initial=0.0)  # at least: features are rounded
        if not self.tracks and not (self._shifts and largest >= self.state.limits[FAR_SQUARE]):
            return raw._replace(gaps=False, marks=NO_MARKS), self.state
        after = copy(self.state)
        if raw.gaps and (raw.marks.any() or self.has_gaps(raw.columns, len(raw.sq))):
            return self._filled(raw, counted, after), after
        n = observe_block(after, raw.indptr, raw.columns, raw.values, counted, raw.gaps)
        return raw.part(0, n)._replace(gaps=False, marks=NO_MARKS), after

    def has_gaps(self, columns: np.ndarray, n: int) -> bool:
        """Whether one of n examples, which name these columns, lacks a feature with a place: it may be unknown."""
        c = self.state
        if not self.scales or c.counts[SPARSE]:
            return False
        return bool(np.count_nonzero((c.place[columns] >= 0) & (columns >= 0)) < n * self.n_places)

    def filled_one(self, columns: np.ndarray, values: np.ndarray, marked: bool) -> tuple[np.ndarray, np.ndarray]:
        """The features of one example to predict, with its gaps filled; `marked` tells whether it marks one."""
        if not self.has_gaps(columns, 1):
            return columns, values
        one = np.array([0, len(columns)]), columns, values, np.zeros(1, bool), np.array([marked])
        return self._fill(*one, self.state)[1:]

    def _filled(self, raw: RawRows, counted: np.ndarray, c: Scaling) -> RawRows:
        """Examples until the scale is due, with their gaps filled; c takes in those that count."""
        marks = raw.marks if len(raw.marks) else np.zeros(len(counted), bool)
        return from_rows(*self._fill(raw.indptr, raw.columns, raw.values, counted, marks, c))

    def _fill(
        self,
        starts: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        counted: np.ndarray,
        marks: np.ndarray,
        c: Scaling,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The compressed rows of these examples until the scale is due, with their gaps filled."""
        most, ends = len(columns) + len(counted) * self.n_places, np.zeros(len(starts), np.int64)
        filled = np.empty(most, np.int64), np.empty(most)
        n = fill_block(c, starts, columns, values, counted, marks, ends, *filled)
        return ends[: n + 1], filled[0][: ends[n]].copy(), filled[1][: ends[n]].copy()

    def of(self, column: int) -> tuple[float, float]:
        """Shift and factor in use for a column, which may be unknown; 0 and 1 if it is not scaled."""
        c = self.state
        place = c.place.item(column) if self.is_active and not self._shifts and 0 <= column < len(c.place) else -1
        return (c.shift.item(place), c.factor.item(place)) if place >= 0 else (0.0, 1.0)

    def far_from_0(self) -> dict[int, float]:
        """The columns of scaled features that count as 0 where they are lacking, far from their last values.

        They are found anew when the scale has been renewed, or twice as many examples have been seen.
        """
        when = int(self.state.counts[RENEWED]), int(self.state.counts[SEEN]).bit_length()
        if self._far[0] != when:
            self._far = when, self._found_far()
        return self._far[1]

    def _found_far(self) -> dict[int, float]:
        """The running moments count a feature as 0 where it is lacking, but not unknown; here, only the others count.

        A feature that came late was 0 in the examples before it, so it has to be farther for a few examples.
        """
        c, own = self.state, slice(self.n_places)
        places = np.flatnonzero((c.spread[own] > 0.0) & (c.times[c.feature[own]] >= OLD_ENOUGH))
        columns, w, span = c.feature[places], np.maximum(c.w[places], 1.0), int(c.counts[SPAN])
        age = c.counts[SEEN] - c.began[columns]
        counts_all = w > MOST * span * -np.expm1(-age / span)  # otherwise gaps were passed over
        share = np.where(counts_all, np.minimum(1.0, c.times[columns] / age), 1.0)
        mean = c.m[places] / share
        mean_square = (c.S[places] / w + np.square(c.m[places])) / share
        later = np.where(c.began[columns] > 0, OLD_ENOUGH / w, 0.0)  # 0 before it got its place
        square = np.square(mean) / (1.0 + later)
        is_0 = 2 * c.times[columns] < age  # where it is lacking; see `gaps`
        far = is_0 & (square > CLIP**2 * (mean_square - square))
        return dict(zip(columns[far].tolist(), c.last[places][far].tolist(), strict=True))

    def still(self) -> Scaling:
        """The state as it is, for models that learn an example which the scale takes in only once."""
        counts = self.state.counts.copy()
        counts[TRACKS] = 0
        return self.state._replace(counts=counts)

    def copy(self) -> RunningScale:
        """A scale of its own, which can take in other examples."""
        return self._with(copy(self.state))

    def renewed(self, n_members: int, vectors: Expansion | None = None) -> RunningScale:
        """A scale whose running moments are in use, for models that have at most so many members.

        Those are among the vectors, which are needed if no moments were kept so far.
        """
        scale = self if vectors is None else self.awake(vectors)
        return self._with(renewed(scale.state, n_members))

    def awake(self, vectors: Expansion) -> RunningScale:
        """A scale that keeps moments; if it did not, they are those of the vectors, whose features are as they came."""
        if self.tracks:
            return self
        rows = storage.rows_of(vectors, storage.live_slots(vectors), len(vectors.member_indices))
        return self._with(awakened(self.state, rows.astype(np.float64)))

    def sees_like(self, other: RunningScale) -> bool:
        """Whether both leave all features alone."""
        return not (self.is_active or other.is_active)

    def unshifted(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        """Stored features of examples without the shift that only serves precision."""
        if not (self.is_active and self._shifts):
            return rows
        c, values = self.state, rows.toarray().astype(np.float64)
        n_places = int(c.counts[PLACES])
        values[:, c.feature[:n_places]] += c.shift[:n_places]
        return sp.csr_matrix(values)

    def _with(self, state: Scaling) -> RunningScale:
        new = object.__new__(type(self))  # `copy.copy` takes 8 us
        new.__dict__.update(self.__dict__, state=state)
        return new

    def queries(self, raw: RawRows) -> Queries:
        """Examples as the engine's queries; those that are learned come from `ahead`, without gaps."""
        if self.is_active:
            if raw.gaps and self.has_gaps(raw.columns, len(raw.sq)):
                raw = self._filled(raw, np.zeros(len(raw.sq), bool), self.state)
            return scale_block(self.state, raw)
        return queries_of(raw.indptr, raw.columns, raw.values)

    def kept(self, raw: RawRows) -> RawRows:
        """What an expansion keeps of examples beside their queries: the raw features by place, if they are scaled."""
        return raw._replace(columns=self.state.place[raw.columns]) if self.is_active else NO_ROWS

    def __setstate__(self, state: dict) -> None:
        """Copy read-only arrays: joblib's workers get theirs mapped from a file."""
        self.__dict__.update({name: owned(value) for name, value in state.items()})

    # ------------------------------------------------------------------------------------------------------- snapshots

    def dump(self, n_features: int) -> dict[str, np.ndarray]:
        """The arrays of a snapshot; none if no moments are kept and no feature stands apart."""
        c = self.state
        if not self.tracks and not (c.place == APART).any():
            return {}
        if n_features > len(c.place):
            c = with_room(c, n_features, len(c.m))
        lengths = _lengths(n_features, int(c.counts[PLACES]))
        return {PREFIX + name: getattr(c, name)[:n] for name, n in lengths.items()}

    def restore(self, arrays: Mapping[str, np.ndarray], n_features: int) -> None:
        """Take over what `dump` gave; a SnapshotError if these are not the arrays of a scale."""
        if not self.tracks and not (self._shifts and PREFIX + "counts" in arrays):
            return
        counts = require_array(arrays, PREFIX + "counts", np.int64, (None,))
        if len(counts) == ZEROS and PREFIX + "m" in arrays:  # written before gaps were filled
            unknown = {PREFIX + "last": arrays[PREFIX + "m"], PREFIX + "excess": np.zeros(int(counts[PLACES]))}
            counts = np.append(counts, 0)
            arrays = {**arrays, **unknown, PREFIX + "counts": counts}
        require(counts.shape == self.state.counts.shape, "the counts of the scale have another length")
        given, own_counts = counts.tolist(), self.state.counts.tolist()
        n_places = given[PLACES]
        require(0 <= n_places <= n_features, f"the scale has {n_places} places for {n_features} features")
        is_alike = given[TRACKS] >= own_counts[TRACKS] and given[SCALES] == own_counts[SCALES]
        require(is_alike, "the scale is of another kind")
        require(given[SPAN] == own_counts[SPAN], "the scale has another memory")
        flags = {given[flag] for flag in (TRACKS, SPARSE, DUE, ACTIVE, ZEROS)}
        require(flags <= {0, 1}, "a flag of the scale is neither 0 nor 1")
        for count in (SEEN, WAIT, RENEWED):
            require(0 <= given[count] <= LARGEST_COUNT, "a count of the scale is out of range")
        lengths = _lengths(n_features, n_places)
        own = {name: require_array(arrays, PREFIX + name, DTYPES[name], (n,)).copy() for name, n in lengths.items()}
        c = Scaling(**own, x=np.zeros(n_places), limits=self.state.limits.copy())
        require_scale(c)
        self.state = c


def _lengths(n_features: int, n_places: int) -> dict[str, int]:
    """The lengths of a scale's arrays in a snapshot, by name."""
    of_all = {"totals": SPREAD + 1, "counts": COUNTS}
    return dict.fromkeys(OF_FEATURES, n_features) | dict.fromkeys(OF_PLACES, n_places) | of_all
