"""What models made of several models share: the table of features, the count of examples, and the checks of input."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.blocks import Queries
from streamsvm.core.class_weights import largest_weight
from streamsvm.core.scaling.state import RawRows
from streamsvm.estimators.inputs.checks import n_rows, too_large
from streamsvm.estimators.inputs.raw_rows import one_row, with_gaps
from streamsvm.estimators.learner import finishing, forgetting, late, snapshots
from streamsvm.estimators.learner.base import Learner
from streamsvm.estimators.learner.copies import Content
from streamsvm.estimators.learner.examples import LabelledBlock
from streamsvm.estimators.learner.learning import boxes_of, in_parts, number_of
from streamsvm.estimators.learner.sharing import to_the_end
from streamsvm.estimators.learner.state import LOOK_EVERY, State, age_of, ages_of, notice_lacking, raw_batches, slots_of
from streamsvm.estimators.learner.validation import too_large_feature


class CompositeModel(Learner):
    """Arguments, and what all models share: `_common`, the state of a model that learns nothing."""

    def __init__(self, common: State) -> None:
        self._common = common

    @abstractmethod
    def _learn(self, block: LabelledBlock) -> None:
        """Learn a block of examples with all models."""

    def _rescale_if_due(self) -> None:
        """Take the running scale into use if it is due, and scale the members of all models anew."""
        if self._common.scale.is_due:
            to_the_end(self._rescaling())

    @abstractmethod
    def _rescaling(self) -> Callable[[], None]:
        """The step that does so; a second call goes on where the first was interrupted."""

    @abstractmethod
    def _all_states(self) -> Collection[State]:
        """All models, which know all examples."""

    @abstractmethod
    def _label_of(self, y: Any) -> Hashable:
        """The label, or an error."""

    @abstractmethod
    def _said_of(self, margin: Any) -> Any:
        """What a margin that the user gave says of the models, or an error."""

    def _each_margin(self, margins: Any) -> Any:
        """The margins of a batch, each as `learn_one` takes it."""
        return margins

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(
        self, x: dict, y: Hashable, w: float = 1.0, id: int | None = None, t: Any = None, margin: Any = None
    ) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.  A missing feature counts as 0, or is guessed; see `docs/records.md`.
        y
            Label.
        w, id, t
            Weight, id and time, as for `LASVM.learn_one`.
        margin
            What the model said when the example was predicted, if the label came late, as for `LASVM.learn_one`: what
            `decision_function_one` returned, or `pair_values_one` of `OneVsOne`, or `margins_one` of `AutoLASVM`.  What
            `AutoLASVM.decision_function_one` returned will do for the probabilities, but not to judge the models.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or if the label, the weight, the id, the time or the margin is invalid.
            The model then stays as it was.
        """
        label, common = self._label_of(y), self._common
        said = [] if margin is None else [self._said_of(margin)]
        arguments.box_of(common.C, w, largest_weight(common.pos_weight, self.n_seen + 1))
        number = number_of(common, id)
        born, _ = age_of(common, t)
        raw = self._row_of(x, learning=True)
        if too_large(raw.sq):
            raise too_large_feature(common, x)
        self._learn_example(raw, label, float(w), number, id is not None, born, said)

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, t: Any = None, margins: Any = None) -> None:
        """Learn a batch of examples in sequence.  The result is that of a loop of `learn_one`, bit for bit.

        Parameters
        ----------
        X
            Examples as rows: a dataframe, a 2-D array, a SciPy sparse matrix, or a list of dicts.
        y
            Labels, one for each row.
        w, ids, t
            Weights, ids and times, as for `LASVM.learn_many`.
        margins
            What the model said when the rows were predicted, as for `LASVM.learn_many`: what `decision_function_many`
            returned, or `pair_values_many` of `OneVsOne`, or `margins_many` of `AutoLASVM`; or a list of what
            `learn_one` takes, None where it is not known.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, a label is invalid, or lengths differ.  The blocks of rows before the
            block with the fault have then been learned.
        """
        n, common = n_rows(X), self._common
        labels, weights, born = self._labels_of(X, y, n), arguments.weights_of(w, n), ages_of(common, t, n)
        arguments.boxes_of(common.C, weights, np.array(largest_weight(common.pos_weight, self.n_seen + n)))
        numbers = arguments.next_ids(common.next_id, n) if ids is None else arguments.ids_of(ids, n)
        said = [] if margins is None else late.each(self._each_margin(margins), n, self._said_of)
        self._y_name = getattr(y, "name", None)
        for rows, raw, growth in raw_batches(common, X, learning=True):
            of_user = labels[rows], weights[rows], numbers[rows], ids is not None, born[rows]
            self._learn_raw(raw, *of_user, growth, said[rows])

    def _row_of(self, x: dict, learning: bool) -> RawRows:
        """One example as the user gave it."""
        raw = one_row(*self._features.example(x, learning))
        if not self._features.is_whole(raw.columns):
            notice_lacking(self._common, raw.columns, 1)
            return with_gaps(raw, len(raw.columns) < len(x))
        return raw

    def _learn_example(
        self, raw: RawRows, label: Hashable, w: float, number: int, own_id: bool, born: int, said: list
    ) -> None:
        """Learn one example; `said` is empty unless its label came late."""
        one = (np.array([w]), np.array([number]), own_id, np.array([born]))
        self._learn_raw(raw, [label], *one, np.array([len(self._features)]), said)

    def _learn_raw(
        self,
        raw: RawRows,
        labels: list[Hashable],
        weights: np.ndarray,
        ids: np.ndarray,
        own_ids: bool,
        born: np.ndarray,
        growth: np.ndarray,
        said: list,
    ) -> None:
        """Learn a block, in parts between two changes of the scale; for the arguments see `LabelledBlock`."""
        lo, hi, _ = boxes_of(self._common, np.ones(len(labels), bool), weights, born)
        first = self.n_seen

        def learn(own: slice, q: Queries, filled: RawRows) -> None:
            of_user = (labels[own], weights[own], ids[own], own_ids)
            kept = self._common.scale.kept(filled)
            self._learn(LabelledBlock(q, *of_user, born[own], growth[own], kept, filled, said[own]))

        in_parts(self._common, first, raw, lo < hi, self._rescale_if_due, learn)
        if self.n_seen // LOOK_EVERY > first // LOOK_EVERY:
            self._look()

    def _look(self) -> None:
        """Warn of what is wrong by now."""

    # -------------------------------------------------------------------------------------------------- after learning

    def _of_each(self, step: Callable[[State], Any]) -> None:
        """Take a step with each model, after which members may have left."""
        for state in self._all_states():
            step(state)

    def finish(self, tol: float | None = None) -> None:
        """Optimise each model over its members; see `LASVM.finish`."""
        tol = self._tol(tol)
        self._of_each(lambda state: finishing.finish(state, tol))
        self._look()

    def forget(self, ids: Any) -> int:
        """Take examples out of all models exactly, as if they had never kept them; see `LASVM.forget`.

        Parameters
        ----------
        ids
            One id, or several.

        Returns
        -------
        int
            Number of members that left.  An example counts once, however many models had it.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer.
        """
        numbers = self._numbers_of(arguments.numbers_of(ids))
        leaving = self._members_among(numbers)
        to_the_end(lambda: self._of_each(lambda state: forgetting.forget(state, numbers)))
        return len(leaving)

    def _numbers_of(self, ids: np.ndarray) -> np.ndarray:
        """The numbers by which the models know the examples that the user knows by these ids."""
        return ids

    def _members_among(self, numbers: np.ndarray) -> np.ndarray:
        """Those of these numbers that a member of at least one model has, each once."""
        known = [state.expansion.ids[slots_of(state, numbers)] for state in self._all_states()]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *known]))

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _content_with(self, parameters: Mapping[str, Any]) -> Content:
        """What all models have learned, by these parameters, and what they share."""
        meta = snapshots.described(self._common, parameters)
        own, arrays = self._states()
        scale = self._common.scale.dump(len(self._features))
        return meta | own, arrays | {f"common.{name}": array for name, array in scale.items()}

    def _take_over(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        parts = snapshots.by_prefix(arrays)
        snapshots.restore_counts(self._common, meta)
        snapshots.restore_columns(self._common, meta, parts.get("common", {}))
        self._restore_states(meta, parts)

    @abstractmethod
    def _states(self) -> Content:
        """What the models have learned; the names of their arrays begin with the numbers of the models."""

    @abstractmethod
    def _restore_states(self, meta: Mapping[str, Any], parts: Mapping[str, dict[str, np.ndarray]]) -> None:
        """Take over what `_states` gave, with the arrays of each model by its number."""
