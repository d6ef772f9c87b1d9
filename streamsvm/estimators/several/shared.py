"""What all models made of several models share: the table of features, the count of examples, and the checks of input.

`_blank` is a model that learns nothing.  It checks arguments and holds what is the same for all models.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from river import base

from streamsvm.core import arguments
from streamsvm.core.blocks import Queries
from streamsvm.core.class_weights import largest_weight
from streamsvm.core.scaling import NO_ROWS, RawRows
from streamsvm.estimators.inputs.checks import n_rows, too_large
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.inputs.raw_rows import one_row
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.estimators.learner.copies import Storable
from streamsvm.estimators.learner.model import LOOK_EVERY


class CommonColumns(FeatureTable):
    """The columns of all classes, as the model of one class sees them: it takes none back."""

    def __init__(self, common: FeatureTable) -> None:
        super().__init__()
        self.columns, self._common = common.columns, common

    @property
    def told_of_lacking(self) -> bool:
        """What the common table knows."""
        return self._common.told_of_lacking

    @told_of_lacking.setter
    def told_of_lacking(self, told: bool) -> None:
        self._common.told_of_lacking = told

    def settle(self) -> None:
        pass

    def lookup(self, names: tuple[Hashable, ...]) -> np.ndarray:
        """The column of each name; the common table knows when its last answer is outdated."""
        return self._common.lookup(names)


class LabelledBlock(NamedTuple):
    """Examples to learn.

    `own_ids` says whether the user gave the ids, `born` holds numbers or times, and `growth` the number of columns
    after each example.  `raw` has the features before they are scaled, as in `Examples`.
    """

    q: Queries
    labels: list[Hashable]
    weights: np.ndarray
    ids: np.ndarray
    own_ids: bool
    born: np.ndarray
    growth: np.ndarray
    raw: RawRows = NO_ROWS

    def part(self, t: int, end: int) -> "LabelledBlock":
        """The examples from t on, before `end`."""
        own = slice(t, end)
        raw = self.raw.part(t, end) if len(self.raw.sq) else self.raw
        of_user = (self.labels[own], self.weights[own], self.ids[own], self.own_ids)
        return LabelledBlock(self.q.part(t, end), *of_user, self.born[own], self.growth[own], raw)

    def rows(self, rows: np.ndarray) -> "LabelledBlock":
        """These examples, in rising order."""
        if len(rows) == len(self.labels):
            return self
        raw = RawRows(*chosen_rows(self.raw, rows)) if len(self.raw.sq) else self.raw
        of_user = ([self.labels[t] for t in rows], self.weights[rows], self.ids[rows], self.own_ids)
        q = Queries(*chosen_rows(self.q, rows))
        return LabelledBlock(q, *of_user, self.born[rows], self.growth[rows], raw)


def chosen_rows(q: Any, rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """The fields of these queries, or of these raw rows."""
    lengths = np.diff(q.indptr)[rows]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    entries = np.arange(indptr[-1]) + np.repeat(q.indptr[rows] - indptr[:-1], lengths)
    return indptr, q[1][entries], q[2][entries], q.sq[rows]


def joined_rows(parts: list[Any]) -> tuple[np.ndarray, ...]:
    """The fields of queries, or of raw rows, that follow one another: where each begins, columns, values and norms."""
    ends = np.cumsum([0, *(part.indptr[-1] for part in parts)])
    indptr = [part.indptr[1:] + end for part, end in zip(parts, ends, strict=False)]
    others = (np.concatenate(arrays) for arrays in zip(*(part[1:] for part in parts), strict=True))
    return np.concatenate([np.zeros(1, np.int64), *indptr]), *others


def joined_blocks(parts: list[LabelledBlock]) -> LabelledBlock:
    """Blocks that follow one another."""
    labels = [label for part in parts for label in part.labels]
    weights, ids, born, growth = (
        np.concatenate(arrays) for arrays in zip(*((p.weights, p.ids, p.born, p.growth) for p in parts), strict=True)
    )
    q, raw = Queries(*joined_rows([p.q for p in parts])), RawRows(*joined_rows([p.raw for p in parts]))
    return LabelledBlock(q, labels, weights, ids, parts[0].own_ids, born, growth, raw)


class SeveralModels(Storable, base.MiniBatchClassifier):
    """Arguments, and what all models share."""

    def __init__(self, blank: OnlineSVM) -> None:
        self._blank = blank
        self._features = blank._features
        self._y_name: Any = None

    @abstractmethod
    def _learn(self, block: LabelledBlock) -> None:
        """Learn a block of examples with all models."""

    @abstractmethod
    def _rescale_if_due(self) -> RunningScale:
        """Take the running scale into use if it is due, and scale the members of all models anew; the scale."""

    @abstractmethod
    def _label_of(self, y: Any) -> Hashable:
        """The label, or an error."""

    @abstractmethod
    def _labels_of(self, X: Any, y: Any, n: int) -> list[Hashable]:
        """The labels of a batch of n examples, or an error."""

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(self, x: dict, y: Hashable, w: float = 1.0, id: int | None = None, t: Any = None) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.  A missing feature counts as 0.
        y
            Label.
        w, id, t
            Weight, id and time, as for `LASVM.learn_one`.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or if the label, the weight, the id or the time is invalid.  The model
            then stays as it was.
        """
        label = self._label_of(y)
        arguments.box_of(self._blank.C, w, largest_weight(self._blank.pos_weight, self.n_seen + 1))
        number = self._blank._number_of(id)
        born, _ = self._blank._age_of(t)
        raw = self._row_of(x, learning=True)
        if too_large(raw.sq):
            raise self._blank._too_large(x)
        self._learn_example(raw, label, float(w), number, id is not None, born)

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, t: Any = None) -> None:
        """Learn a batch of examples in sequence.  The result is that of a loop of `learn_one`, bit for bit.

        Parameters
        ----------
        X
            Examples as rows: a dataframe, a 2-D array, a SciPy sparse matrix, or a list of dicts.
        y
            Labels, one for each row.
        w, ids, t
            Weights, ids and times, as for `LASVM.learn_many`.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, a label is invalid, or lengths differ.  The blocks of rows before the
            block with the fault have then been learned.
        """
        if getattr(X, "ndim", 2) != 2:
            raise ValueError(f"X has shape {X.shape}; a batch is a 2-D array (examples, features)")
        n = n_rows(X)
        labels, weights, born = self._labels_of(X, y, n), arguments.weights_of(w, n), self._blank._ages_of(t, n)
        arguments.boxes_of(self._blank.C, weights, np.array(largest_weight(self._blank.pos_weight, self.n_seen + n)))
        numbers = self._blank._next_ids(n) if ids is None else arguments.ids_of(ids, n)
        self._y_name = getattr(y, "name", None)
        for rows, raw in self._features.raw_batches(X, True, self._blank._notice_lacking):
            others = (weights[rows], numbers[rows], ids is not None, born[rows], self._features.growth)
            self._learn_raw(raw, labels[rows], *others)

    def _row_of(self, x: dict, learning: bool) -> RawRows:
        """One example as the user gave it."""
        raw = one_row(*self._features.example(x, learning))
        if len(raw.columns) < len(self._features.columns):
            self._blank._notice_lacking(raw.columns, 1)
        return raw

    def _learn_example(self, raw: RawRows, label: Hashable, w: float, number: int, own_id: bool, born: int) -> None:
        """Learn one example."""
        one = (np.array([w]), np.array([number]), own_id, np.array([born]))
        self._learn_raw(raw, [label], *one, np.array([len(self._features)]))

    def _learn_raw(
        self,
        raw: RawRows,
        labels: list[Hashable],
        weights: np.ndarray,
        ids: np.ndarray,
        own_ids: bool,
        born: np.ndarray,
        growth: np.ndarray,
    ) -> None:
        """Learn a block, in parts between two changes of the scale; for the arguments see `LabelledBlock`."""
        scale, t, every, first = self._blank._scale, 0, np.ones(len(labels), bool), self.n_seen
        lo, hi, _ = self._blank._boxes_of(every, weights, born)
        counted = lo < hi
        scale.fit_room(self._features)
        while t < len(labels):
            scale = self._rescale_if_due()
            ahead, after = scale.ahead(raw.part(t, len(labels)), counted[t:])
            part, before = raw.part(t, t + ahead), self.n_seen
            q = scale.queries(part)
            self._blank._require_kernel(before, q.sq)
            own = slice(t, t + ahead)
            of_user = (labels[own], weights[own], ids[own], own_ids)
            block = LabelledBlock(q, *of_user, born[own], growth[own], scale.kept(part))
            try:
                self._learn(block)
                scale.state = after
            except BaseException:
                learned = self.n_seen - before
                scale.state = scale.ahead(part.part(0, learned), counted[t : t + learned])[1]
                raise
            t += ahead
        self._rescale_if_due()
        if self.n_seen // LOOK_EVERY > first // LOOK_EVERY:
            self._look()

    def _look(self) -> None:
        """Warn of what is wrong by now."""

    def validate_one(self, x: dict) -> None:
        """Raise the ValueError or TypeError that `learn_one` would raise for these features; learn nothing."""
        self._blank.validate_one(x)

    def validate_many(self, X: Any) -> None:
        """Raise the ValueError or TypeError that `learn_many` would raise for these features; learn nothing."""
        self._blank.validate_many(X)

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def n_seen(self) -> int:
        """Number of examples learned so far."""
        return self._blank.n_seen

    @property
    def next_id(self) -> int:
        """The id that the next example gets unless you give one: 0 at first, then 1 more than the largest id so far."""
        return self._blank.next_id

    @property
    def max_features(self) -> int:
        """The largest number of features, as of `LASVM`."""
        return self._blank.max_features

    @max_features.setter
    def max_features(self, limit: int) -> None:
        self._blank.max_features = limit

    @property
    def feature_names(self) -> list[Hashable]:
        """Names of the features learned so far, in the order of their columns."""
        return self._blank.feature_names

    def scale_of(self, name: Hashable) -> tuple[float, float]:
        """The number subtracted from a feature at present, and the factor of the difference; see `LASVM.scale_of`."""
        return self._blank.scale_of(name)


def by_prefix(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """The arrays in groups: by the part of their names before the first dot, under the rest of their names."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        prefix, _, rest = name.partition(".")
        parts.setdefault(prefix, {})[rest] = array
    return parts


def to_the_end(step: Callable[[], None]) -> None:
    """Take a step.  If it is interrupted, take it again, which goes on where it was, and then raise."""
    try:
        step()
    except BaseException:
        step()
        raise
