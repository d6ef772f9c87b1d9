"""Examples that wait: the model that predicts has learned them, and the challengers learn them later, as one block.

A Python call costs many times what compiled code takes for an example.  So challengers do not learn examples one by
one.  They learn the waiting block at the next check, or when a method needs all models.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from streamsvm.core.class_weights import Counts
from streamsvm.core.scaling.state import RawRows, Scaling
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.examples import LabelledBlock, all_rows, n_learned
from streamsvm.estimators.learner.learning import learn_values
from streamsvm.estimators.learner.state import State, members_of, note, recover


@dataclass(eq=False)
class Waiting:
    """An example that one model learns at once.

    Attributes
    ----------
    raw, positive, w, number, born
        The example: features, label, weight, id and age.
    model, box
        The model that predicts, and the bound on the example's coefficient.
    n_columns, n_seen, class_counts
        Numbers of columns and of examples afterwards.
    margin
        The example's margin, once the model has learned it, and NaN: nothing was said of it before; see
        `online.arrival.Notes`.
    """

    raw: RawRows
    positive: bool
    w: float
    number: int
    born: int
    model: State
    box: float
    n_columns: int
    n_seen: int
    class_counts: Counts
    margin: np.ndarray

    def learn(self, scale: Scaling) -> None:
        """Let the model learn the example, and the scale take it in.  A second call changes nothing."""
        if n_learned(self.margin):
            return
        state, raw = self.model, self.raw
        lo, hi = (0.0, self.box) if self.positive else (-self.box, 0.0)
        learned = (state.n_seen + 1, self.class_counts, self.number, self.n_columns, self.born, self.born)
        before = members_of(state)
        try:
            example = (lo, hi, self.number, self.born, False)
            learn_values(state, state.scale.weighed(scale), raw.columns, raw.values, example, self.margin)
            note(state, *learned)
        except BaseException:
            if n_learned(self.margin):
                note(state, *learned)
            recover(state, before, n_learned(self.margin))
            raise


def block_of(waiting: list[Waiting], scale: RunningScale) -> LabelledBlock:
    """Examples as a block.  The scale in use is the one they came under, whatever it has taken in since."""
    raw = RawRows(*all_rows([example.raw for example in waiting]))
    labels: list[Hashable] = [example.positive for example in waiting]
    weights = np.array([example.w for example in waiting])
    numbers, born, growth = np.array([(e.number, e.born, e.n_columns) for e in waiting], np.int64).T
    return LabelledBlock(
        scale.queries(raw), labels, weights, numbers.copy(), False, born.copy(), growth.copy(), scale.kept(raw), raw
    )
