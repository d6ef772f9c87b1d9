"""Models that learn one stream side by side: they share the columns and the scale of its features."""

from collections.abc import Callable, Hashable, Iterable

import numpy as np

from streamsvm.core.class_weights import Counts
from streamsvm.core.expansion import Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.state import NEVER, State, share_scale, take_scale


class CommonColumns(FeatureTable):
    """The columns of all models, as one of them sees them: it takes none back."""

    def __init__(self, common: FeatureTable) -> None:
        super().__init__()
        self.columns, self._common, self.takes_gaps = common.columns, common, common.takes_gaps

    @property
    def told_of_lacking(self) -> bool:
        """What the common table knows."""
        return self._common.told_of_lacking

    @told_of_lacking.setter
    def told_of_lacking(self, told: bool) -> None:
        self._common.told_of_lacking = told

    def settle(self) -> None:
        pass

    def is_whole(self, columns: np.ndarray) -> bool:
        """Whether the last example, which has these columns, names all features."""
        return self._common.is_whole(columns)

    def lookup(self, names: tuple[Hashable, ...]) -> np.ndarray:
        """The column of each name; the common table knows when its last answer is outdated."""
        return self._common.lookup(names)


def begin_beside(state: State, common: State, kernel: Kernel, n_seen: int, next_id: int, counts: Counts) -> State:
    """Let a model that has learned nothing begin in the middle of a stream, after so many examples.

    It does not look at what may be wrong: that is left to the owner of all models.
    """
    state.features = CommonColumns(common.features)
    share_scale(state, common.scale, kernel)
    state.n_seen, state.next_id, state.class_counts = n_seen, next_id, counts
    state.next_look = NEVER
    if state.window:
        state.window.latest = common.window.latest if common.window else n_seen - 1
    return state


def use_scales(rescaled: Iterable[tuple[State, RunningScale, Kernel, Expansion]]) -> None:
    """Take scales into use, with the kernel and the members at this scale of each model."""
    for model in rescaled:
        take_scale(*model)


def to_the_end(step: Callable[[], None]) -> None:
    """Take a step.  If it is interrupted, take it again, which goes on where it was, and then raise."""
    try:
        step()
    except BaseException:
        step()
        raise
