"""What a learner knows: one plain object that functions take.  A public learner has one, several classes have many.

Compiled code cannot be interrupted, but Python can be anywhere.  Two rules keep a state whole:

- Compiled code writes the margin of each example that it has learned.  The margins tell afterwards how many there were.
- Whatever moves members works on a copy, which then takes the place of the expansion.  Only cached rows are shared.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from streamsvm.core import arguments, class_weights, storage
from streamsvm.core.blocks import BLOCK, Queries
from streamsvm.core.class_weights import Counts
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import EVALUATIONS, SLOTS, WIDTH, Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.saving.snapshot import LARGEST_COUNT
from streamsvm.core.scaling.state import RawRows
from streamsvm.core.stream_warning import warn
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.online import gap, lasvm
from streamsvm.online.arrival import NO_CLOCK, Features
from streamsvm.online.finish import Problem
from streamsvm.online.outputs.calibration import RUN, THRESHOLD, new_calibration
from streamsvm.online.outputs.threshold import new_threshold
from streamsvm.online.removal.forget import forget
from streamsvm.online.removal.window import Window
from streamsvm.online.rescale import rescale

NEVER = LARGEST_COUNT  # of examples in a stream
LOOK_EVERY = 1000  # examples from one look at what may be wrong to the next; see `advice`

RULES = ("problem", "rule", "C", "pos_weight", "tol", "budget", "on_budget", "least_margin")

Solver = Callable[[Expansion], tuple[Expansion, int]]


class State:
    """Rules, which are made once from the parameters, and what was learned by them.

    Attributes
    ----------
    problem, rule
        The optimisation problem over the members, and how a new example is learned.
    C, pos_weight, tol, budget, on_budget
        As of `LASVM`.
    least_margin
        y f(x) below which an example counts as noise.
    expansion, kernel, calibration
        The members, the kernel in use, and the state of probabilities and threshold.
    scale, features
        The scale and the columns of the features.  Models of one stream share them.
    reservoir, window
        A sample of the stream, and how old a member may become, with the stream's clock.
    n_seen, next_id, class_counts
        As of `LASVM`.
    next_look, told_of_equal_predictions, told_of_lost_digits, unsure_looks
        When `advice` looks again, and what it has said.
    evaluator
        Computes kernel values, on a device or not.
    watched
        What `finishing` remembers of the reservoir from one removal to the next.
    """

    __slots__ = (
        *(*RULES, "expansion", "kernel", "calibration", "scale", "features", "reservoir", "window"),
        *("n_seen", "next_id", "class_counts", "next_look", "told_of_equal_predictions", "told_of_lost_digits"),
        *("unsure_looks", "evaluator", "watched"),
    )

    problem: Problem
    rule: lasvm.Rule | gap.Rule

    def __init__(self, learner: Any, kernel: Kernel, scale: RunningScale) -> None:
        self.kernel, self.scale = kernel, scale
        self.C, self.pos_weight, self.tol = learner.C, learner.pos_weight, learner.tol
        self.budget, self.on_budget = learner.budget, learner.on_budget
        self.least_margin = -math.inf

    def begin(self, learner: Any, expansion: Expansion | None = None) -> "State":
        """Have learned nothing, by these parameters; `expansion` has no members, and by default is a new one."""
        self.expansion = storage.empty(int(learner.cache_mb * 2**20)) if expansion is None else expansion
        self.calibration = new_calibration(learner.threshold)
        self.features = FeatureTable()
        self.features.takes_gaps = self.scale.scales
        self.window = None if learner.window is None else Window(learner.window)
        bound = () if self.window is None else (self.window.span, self.window.by_time)
        self.reservoir = Reservoir(int(learner.reservoir), *bound)
        self.n_seen = self.next_id = 0
        self.class_counts: Counts = (0, 0)
        self.next_look = LOOK_EVERY
        self.told_of_equal_predictions = self.told_of_lost_digits = False
        self.unsure_looks = 0
        self.evaluator = Evaluator(learner.device)
        self.watched: Any = None
        return self

    def rules(self) -> "State":
        """The rules with the scale, to `begin` with."""
        new = object.__new__(State)
        for name in (*RULES, "kernel", "scale"):
            setattr(new, name, getattr(self, name))
        return new

    @property
    def bias(self) -> float:
        """The constant term of the decision function."""
        return self.problem.bias(self.expansion)

    @property
    def n_members(self) -> int:
        """Number of examples that are stored."""
        return storage.n_members(self.expansion)

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values computed so far."""
        return int(self.expansion.counts[EVALUATIONS])

    @property
    def sigmoid(self) -> np.ndarray:
        """The state of the sigmoid for probabilities."""
        return self.calibration[:RUN]

    def set_threshold(self, threshold: float) -> None:
        """Predict by this number from now on."""
        self.calibration = np.concatenate([self.calibration[:THRESHOLD], new_threshold(threshold)])

    def __getstate__(self) -> dict:
        """Everything except what can be computed again, as cached rows, and what lies on a device."""
        instead = {
            "expansion": storage.without_rows(self.expansion),
            "evaluator": Evaluator(self.evaluator.device.choice),
            "watched": None,
        }
        return {name: getattr(self, name) for name in self.__slots__} | instead

    def __setstate__(self, stored: dict) -> None:
        """Copy read-only arrays: joblib's workers get theirs mapped from a file."""
        for name in stored.keys() & set(self.__slots__):  # older pickles have others, too
            setattr(self, name, storage.owned(stored[name]))


# ---------------------------------------------------------------------------------------------------------- the members


def in_room(state: State) -> Expansion:
    """The expansion as compiled code takes it, which checks no bounds: with room for every column."""
    s, n_features = state.expansion, len(state.features.columns)
    return s if n_features <= len(s.member_indices) else storage.require_room(s, n_features)


def slots_of(state: State, ids: Any) -> np.ndarray:
    """The slots of the members that have these ids."""
    numbers = ids if isinstance(ids, np.ndarray) else arguments.numbers_of(ids)
    s, n = state.expansion, int(state.expansion.counts[SLOTS])
    wanted = np.isin(s.ids[:n], numbers)
    return np.flatnonzero(wanted & (s.y[:n] != 0))


def forget_slots(state: State, leaving: np.ndarray) -> None:
    """Forget the members in these slots."""
    if len(leaving):
        with interruptible(state):
            s = storage.with_own_coefficients(state.expansion)
            state.expansion, _ = forget(s, state.kernel, state.problem, leaving, state.tol)


def solve(state: State, solver: Solver, stay: bool = False) -> int:
    """Replace the expansion by what `solver` makes of a copy; return the number of steps it took.

    If the members `stay` in their slots, the copy shares what they are.
    """
    with interruptible(state):
        s = state.expansion
        state.expansion, steps = solver(storage.with_own_coefficients(s) if stay else storage.copy(s))
    return steps


def is_full(state: State) -> bool:
    """Whether the budget is reached: then members leave before the next example."""
    return state.budget is not None and state.n_members >= state.budget


def class_weight(state: State, positive: bool, arriving: bool = False) -> float:
    """The factor on C of a class, by the labels learned so far; of an example that arrives, with its own."""
    negatives, positives = state.class_counts
    if arriving:
        negatives, positives = negatives + (not positive), positives + positive
    return class_weights.class_weight(state.pos_weight, (negatives, positives), positive)


# ----------------------------------------------------------------------------------------------------------- the inputs


def batches(state: State, X: Any, learning: bool, at_once: int = BLOCK) -> Iterator[tuple[slice, Queries]]:
    """X in blocks of queries, as the kernel sees them, each with its place in X."""
    for rows, raw, _ in raw_batches(state, X, learning, at_once):
        state.scale.fit_room(state.features)
        yield rows, state.scale.queries(raw)


def raw_batches(
    state: State, X: Any, learning: bool, at_once: int = BLOCK
) -> Iterator[tuple[slice, RawRows, np.ndarray]]:
    """X in blocks of examples as the user gave them; see `FeatureTable.raw_batches`."""
    return state.features.raw_batches(X, learning, lambda *lacking: notice_lacking(state, *lacking), at_once)


def asked(state: State, x: dict) -> Features:
    """The features of one example to predict, with its gaps filled."""
    features = Features(*state.features.example(x, learning=False))
    if state.features.is_whole(features.columns):
        return features
    notice_lacking(state, features.columns, 1)
    return Features(*state.scale.filled_one(*features, len(features.columns) < len(x)))


def notice_lacking(state: State, columns: np.ndarray, n: int) -> None:
    """Warn once if one of n examples, which name these columns, lacks a scaled feature that is far from 0.

    A temperature of 0 K among temperatures of 290 K moves the scale, too.  A feature that at least half of the examples
    have is guessed instead.  Words that a text does not have are no fault, so sparse input is left alone.
    """
    features, scale = state.features, state.scale
    if features.told_of_lacking or not scale.is_active:
        return
    far = scale.far_from_0()
    if not far:
        return
    times = np.bincount(columns[columns >= 0], minlength=len(features.columns))
    lacking = [column for column in far if times[column] < n]
    if not lacking:
        return
    name = list(features.columns)[lacking[0]]
    features.told_of_lacking = True
    warn(
        f"an example lacks the feature {name!r}, which then counts as 0, far from its values, such as "
        f"{far[lacking[0]]:.3g}: this spoils the prediction, and the scale if the example is learned; give every "
        "example a value, such as the mean, or 0 if it is meant"
    )


def age_of(state: State, t: Any) -> tuple[int, int]:
    """The number or time of the next example, and the largest so far with it."""
    if state.window is None or not state.window.by_time:
        return state.n_seen, state.n_seen
    born = arguments.time_of(t)
    return born, max(born, state.window.latest)


def ages_of(state: State, t: Any, n: int) -> np.ndarray:
    """The numbers or times of the next examples."""
    if state.window and state.window.by_time:
        return arguments.times_of(t, n)
    return np.arange(state.n_seen, state.n_seen + n)


# ------------------------------------------------------------------------------------------------------------ the scale


def share_scale(state: State, scale: RunningScale, kernel: Kernel) -> None:
    """Use the scale of other models that learn the same stream; this one has no members yet."""
    state.scale, state.kernel = scale, kernel
    if scale.is_active:
        state.expansion = storage.with_raw(state.expansion, len(scale.state.m))


def rescale_if_due(state: State) -> None:
    """Take the running scale into use if it is due, and scale the members anew."""
    if not state.scale.is_due:
        return
    with interruptible(state):
        scale = state.scale.renewed(state.n_members, state.expansion)
        kernel = scale.adapted(state.kernel)
        s = rescaled(state, scale, kernel)
    take_scale(state, scale, kernel, s)


def rescaled(state: State, scale: RunningScale, kernel: Kernel) -> Expansion:
    """The members at another scale."""
    if kernel == state.kernel and scale.sees_like(state.scale):
        return state.expansion
    return rescale(state.expansion, scale.state, state.scale.n_places, kernel, state.problem)


def take_scale(state: State, scale: RunningScale, kernel: Kernel, s: Expansion) -> None:
    """Take a scale into use.  If an interruption comes in between, all three are taken before it goes on."""
    try:
        state.scale, state.kernel, state.expansion = scale, kernel, s
    except BaseException:
        state.scale, state.kernel, state.expansion = scale, kernel, s
        raise


# ------------------------------------------------------------------------------------------------------- interruptions


def note(state: State, n_seen: int, counts: Counts, largest_id: int, n_columns: int, oldest: int, latest: int) -> None:
    """Note how much has been learned.  Noting the same again changes nothing.

    Where compiled code has learned an example, it has set the window's clock.
    """
    state.n_seen = n_seen
    state.class_counts = int(counts[False]), int(counts[True])
    state.next_id = max(state.next_id, n_seen, largest_id + 1)
    state.features.n_kept = n_columns
    if state.window and latest > state.window.latest:
        state.window.passed(oldest, latest)


def clock_of(state: State) -> np.ndarray:
    """The clock of the window; empty without one."""
    return state.window.clock if state.window else NO_CLOCK


def members_of(state: State) -> tuple[Expansion, int]:
    """The members, and when the first of them grows too old: what `recover` brings back."""
    return state.expansion, state.window.due if state.window else 0


def recover(state: State, before: tuple[Expansion, int], learned: int) -> None:
    """After an interruption: restore the members unless an example was learned.  Cached rows may be spoiled."""
    if not learned:
        state.expansion = before[0]
        if state.window:
            state.window.due = before[1]
    storage.clear_room(state.expansion)
    state.expansion = storage.without_rows(state.expansion)
    state.features.settle()
    counts = state.expansion.counts
    counts[WIDTH] = min(counts[WIDTH], len(state.features))


@contextmanager
def interruptible(state: State) -> Iterator[None]:
    """Keep the old expansion if the block ends early; only its cached rows may be spoiled then."""
    try:
        yield
    except BaseException:
        recover(state, members_of(state), learned=1)
        raise
