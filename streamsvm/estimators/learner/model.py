"""The state of an online classifier: its parameters, its members and the columns of its features.

Prediction, learning, forgetting and snapshots have a file each and work on this state.  This file also holds what
replaces the members as a whole, and what an interruption (Ctrl-C, no memory left) leaves behind.

Compiled code cannot be interrupted, but Python can be anywhere.  Two rules keep the model whole:

- Compiled code writes the margin of each example that it has learned.  The margins tell afterwards how many there were.
- Whatever moves members works on a copy, which then takes the place of the expansion.  Only cached rows are shared.
"""

import datetime
import functools
import inspect
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from river import base

from streamsvm.core import arguments, class_weights, storage
from streamsvm.core.blocks import BLOCK, Queries
from streamsvm.core.device.choice import require_device
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import EVALUATIONS, SLOTS, WIDTH, Expansion
from streamsvm.core.ids import occurrences
from streamsvm.core.kernels import Kernel
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.inputs.lacking import warn_of_lacking
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.estimators.inputs.scaling import RunningScale, kernel_of, require_scaling
from streamsvm.estimators.learner.copies import Storable
from streamsvm.online.finish import Problem
from streamsvm.online.outputs.calibration import CUT, RUN, new_calibration
from streamsvm.online.removal import bounded
from streamsvm.online.removal.forget import forget
from streamsvm.online.rescale import rescale

NEVER = 2**62
LOOK_EVERY = 1000  # examples from one look at what may be wrong to the next; see `advice`


@functools.cache
def _parameters_of(model: type) -> tuple[str, ...]:
    return tuple(inspect.signature(model).parameters)


class OnlineModel(Storable, base.MiniBatchClassifier):
    """Parameters, and what was learned."""

    def __init__(
        self,
        C: float,
        kernel: str,
        gamma: float | str,
        scaling: str | None,
        degree: int,
        coef0: float,
        pos_weight: float | str,
        threshold: float | str,
        tol: float,
        budget: int | None,
        on_budget: str,
        window: int | datetime.timedelta | None,
        reservoir: int,
        cache_mb: float,
        device: str,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.scaling = scaling
        self.degree = degree
        self.coef0 = coef0
        self.pos_weight = pos_weight
        self.threshold = threshold
        self.tol = tol
        self.budget = budget
        self.on_budget = on_budget
        self.window = window
        self.reservoir = reservoir
        self.cache_mb = cache_mb
        self.device = device
        for name in ("C", "tol"):
            arguments.require_positive(name, getattr(self, name))
        class_weights.require_pos_weight(pos_weight)
        class_weights.require_box(C, pos_weight)
        arguments.require_threshold(threshold)
        arguments.require_cache(cache_mb)
        require_scaling(scaling)
        self._kernel = kernel_of(kernel, gamma, degree, coef0)
        self._scale = RunningScale(kernel, gamma, scaling)
        arguments.require_bounds(budget, on_budget, window, kernel)
        arguments.require_count("reservoir", reservoir, 0)
        require_device(device)
        self._begin(storage.empty(int(cache_mb * 2**20)))

    def _begin(self, expansion: Expansion) -> None:
        """Have learned nothing; `expansion` has no members."""
        self._evaluator = Evaluator(self.device)
        self._window = None if self.window is None else bounded.Window(self.window)
        self._expansion = expansion
        self._features = FeatureTable()
        self._calibration = new_calibration(self.threshold)
        self._reservoir = Reservoir(int(self.reservoir), None if self._window is None else self._window.span)
        self._n_seen = 0
        self._class_counts: class_weights.Counts = (0, 0)
        self._next_look = LOOK_EVERY
        self._told_of_equal_predictions = self._told_of_lost_digits = False
        self._next_id = 0
        self._y_name: Any = None

    def _untaught(self, expansion: Expansion | None = None) -> Self:
        """A model with the same parameters and scale that has learned nothing; it does not check them again.

        `expansion` has no members; default: a new one.
        """
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__)
        model._begin(storage.empty(int(self.cache_mb * 2**20)) if expansion is None else expansion)
        return model

    @property
    @abstractmethod
    def bias(self) -> float:
        """The constant term b of the decision function f(x)."""

    @property
    @abstractmethod
    def _problem(self) -> Problem:
        """The optimisation problem over the members."""

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def n_seen(self) -> int:
        """Number of examples learned so far, whether they are members or not."""
        return self._n_seen

    @property
    def next_id(self) -> int:
        """The id that the next example gets unless you give one: 0 at first, then 1 more than the largest id so far."""
        return self._next_id

    @property
    def n_members(self) -> int:
        """Number of examples that the model stores: support vectors, and candidates with coefficient 0."""
        return storage.n_members(self._expansion)

    @property
    def n_support(self) -> int:
        """Number of support vectors: members with a coefficient other than 0."""
        return int(np.count_nonzero(self._expansion.alpha[: self._expansion.counts[SLOTS]]))

    @property
    def support_ids(self) -> np.ndarray:
        """Ids of the support vectors, (n_support,) int64."""
        return self._expansion.ids[np.flatnonzero(self._expansion.alpha)]

    @property
    def dual_coef(self) -> np.ndarray:
        """Coefficients of the support vectors, (n_support,) float64, in the order of `support_ids`.

        They carry the sign of the label: f(x) is their sum over the kernel values, plus `bias`.
        """
        return self._expansion.alpha[np.flatnonzero(self._expansion.alpha)]

    @property
    def support_vectors(self) -> sp.csr_matrix:
        """Features of the support vectors as the kernel sees them, that is scaled if the model scales them.

        Rows as in `support_ids`, columns as in `feature_names`.
        """
        return self.support_vectors_of(self.support_ids)

    def support_vectors_of(self, ids: Sequence[int] | np.ndarray) -> sp.csr_matrix:
        """The rows of `support_vectors` with these ids, in the order of `support_ids`; others are left out.

        The cost depends on the number of ids, and hardly on the number of support vectors.
        """
        s = self._expansion
        wanted = occurrences(s.ids, arguments.numbers_of(ids)) & (s.alpha != 0.0)
        return self._scale.unshifted(storage.rows_of(s, np.flatnonzero(wanted), len(self.feature_names)))

    @property
    def feature_names(self) -> list[Hashable]:
        """Names of the features learned so far, in the order of their columns."""
        self._features.settle()
        return list(self._features.columns)

    def scale_of(self, name: Hashable) -> tuple[float, float]:
        """The present shift and factor of a feature: its scaled value is (value - shift) * factor, cut to -3..3.

        They are 0 and 1 if the model does not scale the feature.
        """
        return self._scale.of(self._features.columns.get(name, -1))

    @property
    def max_features(self) -> int:
        """The largest number of features, 2**20 unless you set it; an example that would exceed it is refused.

        Snapshots do not store it.
        """
        return self._features.max_features

    @max_features.setter
    def max_features(self, limit: int) -> None:
        arguments.require_count("max_features", limit, 1)
        self._features.max_features = int(limit)

    @property
    def decision_threshold(self) -> float:
        """Above this f(x) the prediction is True: `threshold`, or what was learned so far if that is ``"gmean"``."""
        return float(self._calibration[CUT])

    @property
    def class_counts(self) -> tuple[int, int]:
        """Numbers of negative and of positive examples learned so far, without those of weight 0 and those too late.

        `forget` and `relabel` do not change them.
        """
        return self._class_counts

    @property
    def slopes(self) -> tuple[float, float]:
        """Slopes a of the probability 1 / (1 + exp(-a f)), for f <= 0 and for f > 0."""
        return float(self._sigmoid[0]), float(self._sigmoid[2])

    @property
    def gamma_in_use(self) -> float:
        """The kernel's factor: `gamma` if that is a number, otherwise what ``"scale"`` stands for at present."""
        return self._kernel.gamma

    @property
    def _sigmoid(self) -> np.ndarray:
        return self._calibration[:RUN]

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values computed so far, while learning and predicting: the model's cost."""
        return int(self._expansion.counts[EVALUATIONS])

    @property
    def too_old(self) -> int | None:
        """The newest number, or time in microseconds, that has left the window; None without a window."""
        return None if self._window is None else self._window.latest - self._window.span

    def _class_weight(self, positive: bool, arriving: bool = False) -> float:
        """The factor on C of a class, by the labels learned so far; of an example that arrives, with its own."""
        negatives, positives = self._class_counts
        if arriving:
            negatives, positives = negatives + (not positive), positives + positive
        return class_weights.class_weight(self.pos_weight, (negatives, positives), positive)

    # ----------------------------------------------------------------------------------------- the members as a whole

    @property
    def _in_room(self) -> Expansion:
        """The expansion as compiled code takes it, which checks no bounds: with room for every column."""
        s, n_features = self._expansion, len(self._features.columns)
        return s if n_features <= len(s.member_indices) else storage.require_room(s, n_features)

    def _get_params(self) -> dict[str, Any]:
        """The parameters, as river wants them; river inspects the signature again for every call."""
        return {name: getattr(self, name) for name in _parameters_of(type(self))}

    def _slots_of(self, ids: Any) -> np.ndarray:
        """The slots of the members that have these ids."""
        numbers = arguments.numbers_of(ids)
        s, n = self._expansion, int(self._expansion.counts[SLOTS])
        wanted = occurrences(s.ids[:n], numbers)
        return np.flatnonzero(wanted & (s.y[:n] != 0))

    def _forget_slots(self, leaving: np.ndarray) -> int:
        """Forget the members in these slots; return their number."""
        if len(leaving):
            with self._interruptible():
                s = storage.copy(self._expansion)
                self._expansion, _ = forget(s, self._kernel, self._problem, leaving, self.tol)
        return len(leaving)

    def _solve(self, solver: Callable[[Expansion], tuple[Expansion, int]]) -> int:
        """Replace the expansion by what `solver` makes of a copy; return the number of steps it took."""
        with self._interruptible():
            self._expansion, steps = solver(storage.copy(self._expansion))
        return steps

    def _share_scale(self, scale: RunningScale, kernel: Kernel) -> None:
        """Use the scale of other models that learn the same stream; this model has no members yet."""
        self._scale, self._kernel = scale, kernel
        if scale.is_active:
            self._expansion = storage.with_raw(self._expansion, len(scale.state.m))

    def _rescale_if_due(self) -> None:
        """Take the running scale into use if it is due, and scale the members anew."""
        if not self._scale.is_due:
            return
        with self._interruptible():
            s = self._expansion
            scale = self._scale.renewed(self.n_members, s)
            kernel = scale.adapted(self._kernel)
            if kernel != self._kernel or not scale.sees_like(self._scale):
                s = rescale(s, scale.state, self._scale.n_places, kernel, self._problem)
        # At once: no interruption may come in between.
        self.__dict__.update(_scale=scale, _kernel=kernel, _expansion=s)

    def _warn_unless_reached(self, tol: float, left: float, steps: int) -> None:
        if left > tol:
            warnings.warn(
                f"finish stopped after {steps} steps with a violation of {left:.3g}, above tol={tol:g}: "
                "kernel values in single precision allow no more; scale the features or raise tol",
                RuntimeWarning,
                stacklevel=3,
            )

    # --------------------------------------------------------------------------------------------------- interruptions

    def _note(
        self, n_seen: int, counts: class_weights.Counts, largest_id: int, n_columns: int, oldest: int, latest: int
    ) -> None:
        """Note how much has been learned.  Noting the same again changes nothing."""
        self._n_seen = n_seen
        self._class_counts = int(counts[False]), int(counts[True])
        self._next_id = max(self._next_id, n_seen, largest_id + 1)
        self._features.n_kept = n_columns
        if self._window:
            self._window.passed(oldest, latest)

    @property
    def _members(self) -> tuple[Expansion, int]:
        """The members, and when the first of them grows too old: what `_recover` brings back."""
        return self._expansion, self._window.due if self._window else 0

    def _recover(self, before: tuple[Expansion, int], learned: int) -> None:
        """After an interruption: restore the members unless an example was learned.  Cached rows may be spoiled."""
        if not learned:
            self._expansion = before[0]
            if self._window:
                self._window.due = before[1]
        self._expansion = storage.without_rows(self._expansion)
        self._features.settle()
        counts = self._expansion.counts
        counts[WIDTH] = min(counts[WIDTH], len(self._features))

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Keep the old expansion if the block ends early; only its cached rows may be spoiled then."""
        try:
            yield
        except BaseException:
            self._expansion = storage.without_rows(self._expansion)
            raise

    # ---------------------------------------------------------------------------------------------------------- copies

    def _batches(self, X: Any, learning: bool, at_once: int = BLOCK) -> Iterator[tuple[slice, Queries]]:
        """X in blocks of queries, as the kernel sees them, each with its place in X."""
        if not self._scale.is_active:
            yield from self._features.batches(X, learning, at_once)
            return
        for rows, raw in self._features.raw_batches(X, learning, self._notice_lacking):
            self._fit_scale()
            yield rows, self._scale.queries(raw)

    def _notice_lacking(self, columns: np.ndarray, n: int) -> None:
        """Look whether n examples that name these columns, and not all features, lack one that matters."""
        warn_of_lacking(self._features, self._scale, columns, n)

    def _fit_scale(self) -> None:
        self._scale.fit_room(self._features)

    def __getstate__(self) -> dict:
        """Everything except what can be computed again, as cached rows, and what lies on a device."""
        expansion = storage.without_rows(self._expansion)
        state = {**self.__dict__, "_expansion": expansion, "_evaluator": Evaluator(self.device)}
        state.pop("_watched", None)
        return state


def n_learned(margins: np.ndarray) -> int:
    """How many of these examples have been learned: the first one without a margin, and all after it, have not."""
    missing = np.isnan(margins)
    return int(np.argmax(missing)) if missing.any() else len(margins)


def no_margins(n: int) -> np.ndarray:
    """Margins of n examples before they are learned."""
    return np.array([math.nan]) if n == 1 else np.full(n, math.nan)  # the first is faster, for one record
