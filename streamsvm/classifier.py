"""What all online classifiers share: learning, prediction, looking inside, snapshots.

Here and in `features`, names become columns and labels become signs; everything below works on arrays.
"""

import datetime
import hashlib
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from river import base
from river.utils import dataframe

from streamsvm import arguments, snapshot, storage
from streamsvm.batch.steps import penalties
from streamsvm.blocks import BLOCK, Queries, is_binary_block
from streamsvm.device import Evaluator, require_device
from streamsvm.expansion import (
    CACHE_BYTES,
    EVALUATIONS,
    G_DOWN,
    G_UP,
    HAND,
    LISTED,
    ROWS,
    SLOTS,
    WIDTH,
    Expansion,
    is_binary,
)
from streamsvm.features import FeatureTable, culprit, n_rows, not_finite, too_large
from streamsvm.integrity import require, require_array
from streamsvm.kernels import LARGEST_KERNEL_VALUE, largest_self_product, make_kernel
from streamsvm.online import arrival, bounded
from streamsvm.online.finish import Problem
from streamsvm.online.forget import forget
from streamsvm.online.lasvm import append_block
from streamsvm.online.leave_out import LeaveOut
from streamsvm.online.sigmoid import MAX_SLOPE, MIN_SLOPE, new_sigmoid, probabilities

AT_LEAST = 16  # examples to prepare together when there is a budget,
EXPECTED = 2  # or so many for each member that there is room for


class OnlineSVM(base.MiniBatchClassifier):
    """A river classifier over a kernel expansion.  `streamsvm.estimators` has the algorithms.

    An algorithm names two compiled functions of one signature, `learn_example` and `learn_block` (see `online.lasvm`),
    makes their rule, and says what its bias is and how it finishes.
    """

    _learn_example: Callable[..., tuple[int, float]]
    _learn_block: Callable[..., int]
    _rule: tuple

    def __init__(
        self,
        C: float,
        kernel: str,
        gamma: float,
        degree: int,
        coef0: float,
        pos_weight: float,
        tau: float,
        budget: int | None,
        on_budget: str,
        window: int | datetime.timedelta | None,
        cache_mb: float,
        device: str,
        seed: int | None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.pos_weight = pos_weight
        self.tau = tau
        self.budget = budget
        self.on_budget = on_budget
        self.window = window
        self.cache_mb = cache_mb
        self.device = device
        self.seed = seed
        for name in ("C", "pos_weight", "tau", "cache_mb"):
            arguments.require_positive(name, getattr(self, name))
        arguments.require_box(C, pos_weight)
        self._kernel = make_kernel(kernel, gamma, degree, coef0)
        arguments.require_bounds(budget, on_budget, window, kernel)
        require_device(device)
        self._evaluator = Evaluator(device)
        self._window = None if window is None else bounded.Window(window)
        self._expansion = storage.empty(int(cache_mb * 2**20))
        self._features = FeatureTable()
        self._sigmoid = new_sigmoid()
        self._n_seen = 0
        self._y_name: Any = None

    @property
    @abstractmethod
    def bias(self) -> float:
        """The constant term of the decision function."""

    @property
    @abstractmethod
    def _problem(self) -> Problem:
        """What is optimised over the members."""

    @abstractmethod
    def finish(self, tol: float | None = None) -> None:
        """Optimise over the members until no violation is above `tol` (default `tau`)."""

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(
        self, x: dict, y: Any, w: float = 1.0, id: int | None = None, t: datetime.datetime | None = None
    ) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name; those that are missing are 0.
        y
            Label: True or False (or 1 and 0, or 1 and -1).
        w
            Weight, a factor on the example's C; 0 leaves it out.
        id
            64-bit id of the example; default: its number, from 0.
        t
            Time of the example, which a `window` of time needs; one without a zone is taken for UTC.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or the label, weight or time is none.  The model is then as before.
        """
        positive = arguments.label_of(y)
        box = arguments.box_of(self.C, w, self.pos_weight if positive else 1.0)
        own_id, n_features = id is not None, len(self._features)
        number = self._n_seen if id is None else arguments.id_of(id)
        born, now = self._age_of(t)
        if self._is_due(now):
            self.validate_one(x)
            self._make_way(now)
        if self._window and now - born >= self._window.span:  # it came too late, and is not kept
            box, born = 0.0, now
        columns, values = self._features.example(x, learning=True)
        lo, hi = (0.0, box) if positive else (-box, 0.0)
        example = (self._kernel, self._rule, columns, values, lo, hi, number, born, own_id, self._sigmoid)
        if len(self._features) > len(self._expansion.member_indices):
            self._make_room(values, is_binary(self._expansion))  # it may still be refused: its storage stays
        status, _ = self._learn_example(self._expansion, *example)
        if status == arrival.NO_ROOM:
            self._make_room(values, is_binary(self._expansion) and bool(np.isin(values, (0.0, 1.0)).all()))
            status, _ = self._learn_example(self._expansion, *example)
        if status != arrival.LEARNED:
            self._features.truncate(n_features)
            raise self._too_large(x) if status == arrival.NOT_FINITE else self._overflow(self._n_seen)
        self._n_seen += 1
        if self._window:
            self._window.passed(born, now)

    def _make_room(self, values: np.ndarray, binary: bool) -> None:
        nnz = int(np.count_nonzero(values))
        with self._interruptible():
            self._expansion = storage.reserve(self._expansion, 1, len(self._features), binary, nnz, 0)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Whatever ends the block early (Ctrl-C) leaves the expansion that was there: only its rows may be spoiled.

        What is compiled is never interrupted, and `storage` moves the arrays of members in copies.
        """
        try:
            yield
        except BaseException:
            self._features.truncate(len(self._expansion.member_indices))
            self._expansion = storage.without_rows(self._expansion)
            raise

    def validate_one(self, x: dict) -> None:
        """Raise the ValueError or TypeError that `learn_one` would raise for these features; learn nothing."""
        _, values = self._features.example(x, learning=False)
        self._features.require_room(x)
        with np.errstate(over="ignore", invalid="ignore"):
            sq = np.square(values).sum(keepdims=True)
        if too_large(sq):
            raise self._too_large(x)
        if largest_self_product(self._kernel, sq) > LARGEST_KERNEL_VALUE:
            raise self._overflow(self._n_seen)

    def validate_many(self, X: Any) -> None:
        """Raise the ValueError or TypeError that `learn_many` would raise for these features; learn nothing."""
        for rows, q in self._features.copy().batches(X, learning=True):
            if largest_self_product(self._kernel, q.sq) > LARGEST_KERNEL_VALUE:
                raise self._overflow(rows.start + int(np.argmax(q.sq)))

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, t: Any = None) -> None:
        """Learn a batch of examples, in sequence.

        Parameters
        ----------
        X
            Examples as rows: a pandas, polars or other dataframe (features by column name), a 2-D array or a SciPy
            sparse matrix (features named 0, 1, 2, ...), or a list of dicts.
        y
            Labels, one for each row.
        w
            Weights, one number for all or one for each row.
        ids
            Ids, one for each row; default: the examples' numbers.
        t
            Times, one datetime for all or one for each row, which a `window` of time needs.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, a label is none, or lengths differ.  Blocks of rows before the one
            with the fault have been learned.
        """
        self._learn_many(X, y, w, ids, t)

    def _learn_many(self, X: Any, y: Any, w: Any, ids: Any, t: Any = None) -> np.ndarray:
        n = n_rows(X)
        self._y_name = getattr(y, "name", None)
        positive = arguments.labels_of(X, y, n)
        lo, hi, born = self._boxes_of(positive, arguments.weights_of(w, n), self._ages_of(t, n))
        numbers = np.arange(self._n_seen, self._n_seen + n) if ids is None else arguments.ids_of(ids, n)
        margins = np.empty(n)
        n_features = len(self._features)
        for rows, q in self._features.batches(X, learning=True):
            if largest_self_product(self._kernel, q.sq) > LARGEST_KERNEL_VALUE:
                self._features.truncate(n_features)
                raise self._overflow(rows.start + int(np.argmax(q.sq)))
            self._learn_queries(q, lo[rows], hi[rows], numbers[rows], born[rows], ids is not None, margins[rows])
            n_features = len(self._features)
        return margins

    def _boxes_of(
        self, positive: np.ndarray, weights: np.ndarray, born: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The boxes of the next examples, and their ages; one that came too late for the window is not kept."""
        box = arguments.boxes_of(self.C, weights, np.where(positive, self.pos_weight, 1.0))
        if self._window:
            now = self._window.now(born)
            too_late = now - born >= self._window.span
            box, born = np.where(too_late, 0.0, box), np.where(too_late, now, born)
        return np.where(positive, 0.0, -box), np.where(positive, box, 0.0), born

    # ----------------------------------------------------------------------------------------------------- forgetting

    def forget(self, ids: Any) -> int:
        """Take examples out of the model, as if it had never kept them.

        The other members' coefficients become what they would be had the model been optimised without these: after
        `finish` exactly so, up to its tolerance; before it, with violations as large as they were.  What the examples
        did on their way in stays: which others were kept or dropped, the count of examples seen, the features' order,
        and the slow averages behind `predict_proba_one`.

        Examples that are no support vectors leave at the cost of a look-up, and ids that no member has cost nothing:
        the model rests on its members only.

        Parameters
        ----------
        ids
            One id, or several; see `learn_one`.

        Returns
        -------
        int
            How many members have left.

        Raises
        ------
        ValueError, TypeError
            If an id is no 64-bit whole number.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> X = [{"a": 0.0}, {"a": 1.0}, {"a": 2.0}, {"a": 3.0}]
        >>> model.learn_many(X, [False, False, True, True], ids=[10, 11, 12, 13])
        >>> model.forget([12, 99])
        1
        >>> 12 in model.support_ids
        False
        """
        leaving = self._slots_of(ids)
        if len(leaving):
            with self._interruptible():
                s = storage.copy(self._expansion)
                self._expansion, _ = forget(s, self._kernel, self._problem, leaving, self.tau)
        return len(leaving)

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct labels of examples that have been learned: members with another label are forgotten and learned anew.

        Parameters
        ----------
        ids
            One id, or several.
        y
            The right label for all of them, or one for each.

        Returns
        -------
        int
            How many of the ids are those of members, whose label is right now.  Of the others the model has kept
            nothing but what they changed in passing; learn them again if they matter.

        Raises
        ------
        ValueError, TypeError
            If an id is no 64-bit whole number, or a label is none.  Nothing has changed then.
        """
        numbers = numbers_of(ids)
        labels = arguments.labels_of(None, np.full(len(numbers), y) if np.ndim(y) == 0 else y, len(numbers))
        found = 0
        for number, positive in zip(numbers.tolist(), labels.tolist(), strict=True):
            slots = self._slots_of(number)
            found += bool(len(slots))
            wrong = slots[(self._expansion.y[slots] > 0) != positive]
            if len(wrong):
                self._learn_anew(int(wrong[0]), number, positive)
        return found

    def _learn_anew(self, slot: int, number: int, positive: bool) -> None:
        """Forget the member in this slot, and learn its example with the other label and the weight it had."""
        s = self._expansion
        indices, values = storage.features_of(s, slot)
        q = Queries(np.array([0, len(indices)]), indices, values, s.sq[slot : slot + 1].copy())
        before, after = (self.pos_weight, 1.0) if s.y[slot] > 0 else (1.0, self.pos_weight)
        box = np.array([(s.hi[slot] - s.lo[slot]) / before * after])
        born = s.born[slot : slot + 1].copy()
        self.forget(number)
        lo, hi = (np.zeros(1), box) if positive else (-box, np.zeros(1))
        self._learn_queries(q, lo, hi, np.array([number]), born, True, np.empty(1))
        self._n_seen -= 1

    def _slots_of(self, ids: Any) -> np.ndarray:
        """The slots of the members that have these ids."""
        numbers = numbers_of(ids)
        live = storage.live_slots(self._expansion)
        return live[np.isin(self._expansion.ids[live], numbers)]

    def leave_out(
        self, examples: Sequence[Mapping], y: Any, w: Any = None, ids: Any = None
    ) -> tuple[LeaveOut, np.ndarray]:
        """Examples that were learned, to be predicted by the model without them; for `validation.streaming`.

        Those that are no members stand beside them with a coefficient of 0, which they may leave if another member is
        left out.  Those that the model would have to heed already are held out: it does not.

        Parameters
        ----------
        examples
            Features by name.
        y, w, ids
            As for `learn_many`; an id that a member has stands for that member.

        Returns
        -------
        tuple
            What answers, and the slots that it has put the examples into.
        """
        n = len(examples)
        positive, numbers = arguments.labels_of(None, y, n), arguments.ids_of(ids, n)
        box = arguments.boxes_of(self.C, arguments.weights_of(w, n), np.where(positive, self.pos_weight, 1.0))
        s = storage.copy(storage.without_rows(self._expansion))
        s = storage.keep(s, storage.live_slots(s))
        slot_of = {number: slot for slot, number in enumerate(s.ids[: s.counts[SLOTS]].tolist())}
        new = [i for i, number in enumerate(numbers.tolist()) if number not in slot_of]
        slot_of |= {int(numbers[i]): len(slot_of) + t for t, i in enumerate(new)}
        if new:
            lo, hi = np.where(positive, 0.0, -box)[new], np.where(positive, box, 0.0)[new]
            s = self._beside_members(s, [examples[i] for i in new], lo, hi, numbers[new])
        leave_out = LeaveOut(s, self._kernel, self._problem, self.tau)
        return leave_out, np.array([slot_of[number] for number in numbers.tolist()], np.int64)

    def _beside_members(
        self, s: Expansion, examples: list[Mapping], lo: np.ndarray, hi: np.ndarray, ids: np.ndarray
    ) -> Expansion:
        """The members, and behind them examples with alpha = 0, whose box is empty if they violate."""
        self._problem.note(s)
        b, first = self.bias, int(s.counts[SLOTS])
        top, bottom = max(s.extremes[G_UP], b + self.tau), min(s.extremes[G_DOWN], b - self.tau)
        margins = self._decide_many(examples)
        for rows, q in self._features.batches(examples, learning=False):
            binary = is_binary(s) and is_binary_block(q)
            s.counts[WIDTH] = max(int(s.counts[WIDTH]), q.width)
            s = storage.reserve(s, len(q.sq), len(self._features), binary, len(q.indices), q.width)
            append_block(s, self._kernel, *q, lo[rows], hi[rows])
        own = slice(first, int(s.counts[SLOTS]))
        s.ids[own] = ids
        s.g[own] -= margins - b
        violates = np.where(s.y[own] > 0, s.g[own] > top, s.g[own] < bottom)
        s.lo[own][violates] = s.hi[own][violates] = 0.0
        s.up[own], s.down[own] = penalties(s.alpha[own], s.lo[own], s.hi[own])
        return s

    def _learn_queries(
        self,
        q: Queries,
        lo: np.ndarray,
        hi: np.ndarray,
        ids: np.ndarray,
        born: np.ndarray,
        own_ids: bool,
        margins: np.ndarray,
        values_of: Callable[[Expansion, slice], tuple[np.ndarray, np.ndarray, bool]] | None = None,
    ) -> None:
        """Learn a block; `values_of` gives the kernel values of a part of it with the slots, if they are known."""
        now = self._window.now(born) if self._window else born
        limit = bounded.FAR if self.budget is None else int(self.budget)
        done = 0
        while done < len(q.sq):
            self._make_way(int(now[done]))
            part = slice(done, done + self._fitting(born[done:], now[done:]))
            queries = q.part(part.start, part.stop)
            with self._interruptible():
                self._expansion = arrival.make_room(self._expansion, queries, len(self._features))
                if values_of is None:
                    products = (*self._evaluator.products(self._expansion, queries), False)
                else:
                    products = values_of(self._expansion, part)
            given = (*queries, lo[part], hi[part], ids[part], born[part], own_ids, *products, self._sigmoid, limit)
            learned = self._learn_block(self._expansion, self._kernel, self._rule, *given, margins[part])
            self._n_seen += learned
            done += learned
            if self._window and learned:
                self._window.passed(int(born[part][:learned].min()), int(now[done - 1]))

    # ------------------------------------------------------------------------------------------------ bounded streams

    def _age_of(self, t: Any) -> tuple[int, int]:
        """The number or time of the next example, and the largest that there is with it."""
        if self._window is None:
            return self._n_seen, self._n_seen
        born = arguments.time_of(t) if self._window.by_time else self._n_seen
        return born, max(born, self._window.latest)

    def _ages_of(self, t: Any, n: int) -> np.ndarray:
        """The numbers or times of the next examples."""
        if self._window and self._window.by_time:
            return arguments.times_of(t, n)
        return np.arange(self._n_seen, self._n_seen + n)

    def _is_due(self, now: int) -> bool:
        """Whether somebody may have to leave before the next example."""
        too_many = self.budget is not None and storage.n_members(self._expansion) >= self.budget
        return too_many or (self._window is not None and now >= self._window.due)

    def _make_way(self, now: int) -> None:
        """Before an example is learned: those leave that are too old, and then some if there are as many as may be."""
        engine = (self._kernel, self._problem, self.tau)
        if self._window and now >= self._window.due:
            with self._interruptible():
                self._expansion = self._window.forget_old(self._expansion, *engine, now)
            self._window.look(self._expansion)
        if self.budget is not None and storage.n_members(self._expansion) >= self.budget:
            bounds = (int(self.budget), self.on_budget, len(self._features))
            with self._interruptible():
                self._expansion = bounded.reduce_members(self._expansion, *engine, *bounds)

    def _fitting(self, born: np.ndarray, now: np.ndarray) -> int:
        """How many of these examples to prepare: until a member may be too old, or there are about too many."""
        n = self._window.lasts(born, now) if self._window else len(born)
        if self.budget is None:
            return n
        return min(n, max(AT_LEAST, EXPECTED * (int(self.budget) - storage.n_members(self._expansion))))

    def _too_large(self, x: Mapping[Hashable, Any]) -> ValueError:
        name = list(x)[culprit(self._features.example(x, learning=False)[1])]
        return not_finite(name, x[name])

    def _overflow(self, row: int) -> ValueError:
        limit = f"{LARGEST_KERNEL_VALUE:g}"
        return ValueError(f"the {self.kernel} kernel of example {row} with itself is above {limit}; scale the features")

    # ----------------------------------------------------------------------------------------------------- prediction

    def decision_function_one(self, x: dict) -> float:
        """f(x): positive for the positive class; the margin of the model is at -1 and 1."""
        columns, values = self._features.example(x, learning=False)
        margin = arrival.decide_example(self._expansion, self._kernel, columns, values, self.bias)
        if not math.isfinite(margin):
            self.validate_one(x)
            raise ValueError(f"x={x!r}: the {self.kernel} kernel is too large for single precision; scale the features")
        return margin

    def predict_one(self, x: dict, **kwargs: Any) -> bool:
        """The label of the more probable class; False before anything was learned."""
        return self.decision_function_one(x) > 0.0

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """Probabilities of both labels, from a sigmoid fitted online to margins of examples not yet learned."""
        p = float(self.probability(np.array(self.decision_function_one(x))))
        return {False: 1.0 - p, True: p}

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probability of True for margins that a decision function has given, of the same shape."""
        return probabilities(self._sigmoid, margins)

    def _decide_many(self, X: Any) -> np.ndarray:
        margins = np.empty(n_rows(X))
        engine, b = (self._expansion, self._kernel), self.bias
        at_once = self._evaluator.queries_at_once(self._expansion, len(margins))
        table = self._features.table(X) if at_once > BLOCK else None
        if table is not None:
            found = self._evaluator.decide_table(*engine, *table, b)
            if found is not None and np.isfinite(found).all():
                return found
        for rows, q in self._features.batches(X, learning=False, at_once=at_once):
            margins[rows] = self._evaluator.decide(*engine, q, b)
        if not np.isfinite(margins).all():
            row = int(np.argmin(np.isfinite(margins)))
            raise ValueError(
                f"X[{row}]: the {self.kernel} kernel is too large for single precision; scale the features"
            )
        return margins

    def decision_function_many(self, X: Any) -> Any:
        """f(x) for each row; a series of the frame's kind for a frame, else an array (n,)."""
        return series_like(X, self._decide_many(X), None)

    def predict_many(self, X: Any) -> Any:
        """Labels; a series of the frame's kind for a frame, else an array (n,) of bool."""
        return series_like(X, self._decide_many(X) > 0.0, self._y_name)

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities of False and True: a frame of the kind given, else an array (n, 2)."""
        p = self.probability(self._decide_many(X))
        if is_frame(X):
            return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=dataframe.into_frame(X))
        return np.column_stack([1.0 - p, p])

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def n_seen(self) -> int:
        """Examples learned so far, whether they are members or not; the id of the next one, unless it has its own."""
        return self._n_seen

    @property
    def n_members(self) -> int:
        """Examples in the expansion, support vectors and candidates."""
        return storage.n_members(self._expansion)

    @property
    def n_support(self) -> int:
        """Support vectors: members with a coefficient other than 0."""
        return int(np.count_nonzero(self._expansion.alpha[: self._expansion.counts[SLOTS]]))

    @property
    def support_ids(self) -> np.ndarray:
        """Ids of the support vectors, (n_support,) int64."""
        return self._expansion.ids[np.flatnonzero(self._expansion.alpha)]

    @property
    def dual_coef(self) -> np.ndarray:
        """Signed coefficients of the support vectors, (n_support,) float64, in the order of `support_ids`."""
        return self._expansion.alpha[np.flatnonzero(self._expansion.alpha)]

    @property
    def support_vectors(self) -> sp.csr_matrix:
        """The support vectors in the order of `support_ids`, a column for each of the `feature_names`: float32."""
        s = self._expansion
        return storage.rows_of(s, np.flatnonzero(s.alpha), len(self._features))

    @property
    def feature_names(self) -> list[Hashable]:
        """The features that were learned, in the order in which they have their columns."""
        return list(self._features.columns)

    @property
    def max_features(self) -> int:
        """The largest number of features; an example that would bring more is refused.  It is no part of a snapshot."""
        return self._features.max_features

    @max_features.setter
    def max_features(self, limit: int) -> None:
        arguments.require_count("max_features", limit, 1)
        self._features.max_features = int(limit)

    @property
    def slopes(self) -> tuple[float, float]:
        """Slopes a of the probability of True, 1 / (1 + exp(-a f)), for f <= 0 and for f > 0."""
        return float(self._sigmoid[0]), float(self._sigmoid[2])

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far, in learning and prediction."""
        return int(self._expansion.counts[EVALUATIONS])

    # ------------------------------------------------------------------------------------------------------- snapshots

    def to_bytes(self) -> bytes:
        """The model as a snapshot; see `streamsvm.snapshot` for the format."""
        meta, arrays = self._state()
        return snapshot.pack(type(self).__name__, meta, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, cache_mb: float | None = None, device: str | None = None) -> Self:
        """The model that `to_bytes` stored; it goes on bit for bit as the stored one would.

        Parameters
        ----------
        data
            A snapshot.
        cache_mb
            Another size of the row cache than the stored one.
        device
            Another device than the stored one.

        Raises
        ------
        SnapshotError
            If the data are damaged, of another kind, or from a newer format.
        """
        meta, arrays = snapshot.unpack(data, cls.__name__)
        with snapshot.reading(cls.__name__):
            model = cls._of_meta(meta, cache_mb, device)
            model._restore(meta, arrays, FeatureTable.of_names(snapshot.field(meta, "features", list)))
        return model

    def _restore(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray], features: FeatureTable) -> None:
        """Take over what was learned, as `_state` gave it."""
        self._features = features
        self._restore_counts(meta)
        self._sigmoid = _sigmoid(arrays)
        self._expansion = storage.restore(arrays, int(self.cache_mb * 2**20), self._kernel, len(features))

    def _restore_counts(self, meta: Mapping[str, Any]) -> None:
        self._n_seen = snapshot.count(meta, "n_seen")
        if self._window:
            self._window.latest = _latest(meta)

    @classmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        """A model with the stored parameters, which has learned nothing."""
        stored = snapshot.field(meta, "parameters", dict)
        parameters = {name: _given(stored, name) for name in stored}
        instead = {"cache_mb": cache_mb, "device": device}
        return cls(**parameters | {name: value for name, value in instead.items() if value is not None})

    def save(self, path: str | Path) -> None:
        """Write the snapshot to a file, atomically."""
        snapshot.write_atomic(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path, cache_mb: float | None = None, device: str | None = None) -> Self:
        """The model in a file that `save` wrote; the parameters are those of `from_bytes`."""
        return cls.from_bytes(snapshot.read(path), cache_mb, device)

    def digest(self) -> str:
        """SHA-256 of what was learned; equal for models that continue alike, whatever their caches and counters."""
        meta, arrays = self._state()
        arrays["counts"][[EVALUATIONS, ROWS, HAND, CACHE_BYTES, LISTED]] = 0
        for name in ("cache_mb", "device"):
            meta["parameters"].pop(name)
        return hashlib.sha256(snapshot.pack(type(self).__name__, meta, arrays)).hexdigest()

    def _state(self) -> tuple[dict, dict[str, np.ndarray]]:
        parameters = {name: _plain(value) for name, value in self._get_params().items()}
        meta = {"parameters": parameters, "n_seen": self._n_seen, "features": self._features.names()}
        if self._window:
            meta["latest"] = self._window.latest
        return meta, {**storage.dump(self._expansion, len(self._features)), "sigmoid": self._sigmoid}

    def __getstate__(self) -> dict:
        """Everything but the cached rows, which can be computed again, and what is on a device."""
        expansion = storage.without_rows(self._expansion)
        return {**self.__dict__, "_expansion": expansion, "_evaluator": Evaluator(self.device)}

    @property
    def _mutable_attributes(self) -> set[str]:
        return set()

    def _solve(self, solver: Callable[[Expansion], tuple[Expansion, int]]) -> int:
        """Put the solution in the place of the expansion; return the number of steps."""
        with self._interruptible():
            self._expansion, steps = solver(storage.copy(self._expansion))
        return steps

    def _warn_unless_reached(self, tol: float, left: float, steps: int) -> None:
        if left > tol:
            warnings.warn(
                f"finish stopped after {steps} steps with a violation of {left:.3g}, above tol={tol:g}: "
                "kernel values in single precision allow no more; scale the features or raise tol",
                RuntimeWarning,
                stacklevel=3,
            )


def numbers_of(ids: Any) -> np.ndarray:
    """One id or several, as an array (n,) int64."""
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        return np.array([arguments.id_of(ids)])
    given = ids if isinstance(ids, np.ndarray) else list(ids)
    return arguments.ids_of(given, len(given)) if len(given) else np.zeros(0, np.int64)


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it: numpy's numbers as Python's, a time span in microseconds."""
    if isinstance(value, datetime.timedelta):
        return {"microseconds": value // bounded.MICROSECOND}
    return value.item() if isinstance(value, np.generic) else value


def _given(parameters: Mapping[str, Any], name: str) -> Any:
    """The parameter that `_plain` wrote."""
    value = snapshot.field(parameters, name, str, int, float, bool, type(None), dict)
    require(type(value) is not int or abs(value) <= snapshot.LARGEST_COUNT, f"the parameter {name!r} is too large")
    return datetime.timedelta(microseconds=snapshot.count(value, "microseconds")) if type(value) is dict else value


def _latest(meta: Mapping[str, Any]) -> int:
    """The number or time of the newest example that a window has seen."""
    latest: int = snapshot.field(meta, "latest", int)
    require(abs(latest) <= bounded.FAR, f"the latest example has the number or time {latest}")
    return latest


def _sigmoid(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The state of the sigmoid for probabilities."""
    state = require_array(arrays, "sigmoid", np.float64, (4,))
    slopes, curvatures = state[::2], state[1::2]
    require(np.all((slopes >= MIN_SLOPE) & (slopes <= MAX_SLOPE)), f"the sigmoid has the slopes {slopes}")
    require(np.all(np.isfinite(curvatures) & (curvatures >= 0.0)), f"the sigmoid has the curvatures {curvatures}")
    return state


def is_frame(X: Any) -> bool:
    """Whether a batch is a dataframe."""
    return not isinstance(X, np.ndarray | list | tuple) and hasattr(X, "columns")


def series_like(X: Any, values: np.ndarray, name: Any) -> Any:
    """Values of a batch, as a series of the frame's kind if it is a dataframe."""
    return dataframe.to_native_series(values, name=name, like=dataframe.into_frame(X)) if is_frame(X) else values
