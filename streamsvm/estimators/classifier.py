"""What all online classifiers share: learning, prediction, looking inside, snapshots.

Here and in `features`, names become columns and labels become signs; everything below works on arrays.
"""

import copy
import datetime
import hashlib
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from river import base
from river.utils import dataframe

from streamsvm.batch.steps import penalties
from streamsvm.core import arguments, dumping, snapshot, storage
from streamsvm.core.blocks import BLOCK, Queries, is_binary_block
from streamsvm.core.device.choice import require_device
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import (
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
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, largest_self_product, make_kernel
from streamsvm.core.snapshot import require, require_array
from streamsvm.estimators.features import FeatureTable, culprit, n_rows, not_finite, too_large
from streamsvm.online import arrival, bounded
from streamsvm.online.finish import Problem
from streamsvm.online.forget import forget
from streamsvm.online.lasvm import append_block
from streamsvm.online.leave_out import LeaveOut
from streamsvm.online.sigmoid import MAX_SLOPE, MIN_SLOPE, new_sigmoid, probabilities

AT_LEAST = 16  # examples to prepare together when there is a budget,
EXPECTED = 2  # or so many for each member that there is room for


NO_SLOTS = np.empty(0, np.int64)
NOT_LEARNED = np.array([math.nan])  # the margin of an example, until it has been learned


class Examples(NamedTuple):
    """A block of examples to be learned: features, boxes, ids, whether these are the user's, numbers or times."""

    q: Queries
    lo: np.ndarray
    hi: np.ndarray
    ids: np.ndarray
    own_ids: bool
    born: np.ndarray

    def part(self, t: int, end: int) -> "Examples":
        """The examples from t on, before `end`."""
        own = slice(t, end)
        return Examples(self.q.part(t, end), self.lo[own], self.hi[own], self.ids[own], self.own_ids, self.born[own])


class OnlineSVM(base.MiniBatchClassifier):
    """A river classifier over a kernel expansion.  `streamsvm.estimators` has the algorithms.

    An algorithm names two compiled functions of one signature, `learn_example` and `learn_block` (see `online.lasvm`),
    makes their rule, and says what its bias is and how it finishes.
    """

    _learn_example: Callable[..., int]
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
        tol: float,
        budget: int | None,
        on_budget: str,
        window: int | datetime.timedelta | None,
        cache_mb: float,
        device: str,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.pos_weight = pos_weight
        self.tol = tol
        self.budget = budget
        self.on_budget = on_budget
        self.window = window
        self.cache_mb = cache_mb
        self.device = device
        for name in ("C", "pos_weight", "tol"):
            arguments.require_positive(name, getattr(self, name))
        arguments.require_box(C, pos_weight)
        arguments.require_cache(cache_mb)
        self._kernel = make_kernel(kernel, gamma, degree, coef0)
        arguments.require_bounds(budget, on_budget, window, kernel)
        require_device(device)
        self._evaluator = Evaluator(device)
        self._window = None if window is None else bounded.Window(window)
        self._expansion = storage.empty(int(cache_mb * 2**20))
        self._features = FeatureTable()
        self._sigmoid = new_sigmoid()
        self._n_seen = 0
        self._next_id = 0
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
        """Optimise over the members until no violation is above `tol` (default `tol`)."""

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
            64-bit id of the example; default: `next_id`.  An example whose id a member has takes that member's place,
            as a correction does; where it is the same example, with the same label and weight, nothing changes.
        t
            Time of the example, which a `window` of time needs; one without a zone is taken for UTC.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or the label, the weight, the id or the time is invalid.  The model is
            then as before, as it is after an interruption (Ctrl-C), unless the example was learned by then.
        """
        positive = arguments.label_of(y)
        box = arguments.box_of(self.C, w, self.pos_weight if positive else 1.0)
        number = self._number_of(id)
        born, now = self._age_of(t)
        if self._window and now - born >= self._window.span:  # it came too late, and is not kept
            box, born = 0.0, now
        columns, values = self._features.example(x, learning=True)
        lo, hi = (0.0, box) if positive else (-box, 0.0)
        leaving = NO_SLOTS if id is None else self._replaced(number, lo, hi, lambda: _compressed(columns, values))
        is_due = self._is_due(now)
        if is_due or len(leaving):  # no member leaves for an example that is refused
            self._require_learnable(x, values)
        learned = (self._n_seen + 1, number, len(self._features.columns), born, now)
        before, margin = self._members, NOT_LEARNED.copy()
        try:
            self._forget_slots(leaving)
            if is_due:
                self._make_way(now)
            status = self._learn_values(columns, values, (lo, hi, number, born, id is not None), margin)
            if status == arrival.LEARNED:
                self._note(*learned)
        except BaseException:
            if n_learned(margin):
                self._note(*learned)
            self._recover(before, n_learned(margin))
            raise
        if status != arrival.LEARNED:
            raise self._too_large(x) if status == arrival.NOT_FINITE else self._overflow(self._n_seen)

    def _learn_values(self, columns: np.ndarray, values: np.ndarray, example: tuple, margin: np.ndarray) -> int:
        """Learn one example, if it is not refused; the status of its arrival."""
        given = (self._kernel, self._rule, columns, values, *example, self._sigmoid, margin)
        if len(self._features.columns) > len(self._expansion.member_indices):
            self._make_room(values, is_binary(self._expansion))  # it may still be refused: its storage stays
        status = self._learn_example(self._in_room, *given)
        if status == arrival.NO_ROOM:
            ones = bool(np.isin(values.astype(np.float32), (0.0, 1.0)).all())  # as they will be stored
            self._make_room(values, is_binary(self._expansion) and ones)
            status = self._learn_example(self._in_room, *given)
        return status

    def _make_room(self, values: np.ndarray, binary: bool) -> None:
        nnz = int(np.count_nonzero(values))
        self._expansion = storage.reserve(self._expansion, 1, len(self._features), binary, nnz, 0)

    @property
    def _in_room(self) -> Expansion:
        """The expansion, as it is handed to compiled code."""
        s, n_features = self._expansion, len(self._features.columns)
        return s if n_features <= len(s.member_indices) else storage.require_room(s, n_features)

    # Compiled code is never interrupted, and Python may be anywhere (Ctrl-C, no memory left).  So what compiled code
    # has learned is told from the margins it has written, and noted in a way that can be repeated; and what moves
    # members (`storage`, `forget`, `bounded`) works on copies, but for the cached rows.

    def _note(self, n_seen: int, largest_id: int, n_columns: int, oldest: int, latest: int) -> None:
        """Note how much has been learned; to note it again changes nothing."""
        self._n_seen = n_seen
        self._next_id = max(self._next_id, n_seen, largest_id + 1)
        self._features.n_kept = n_columns
        if self._window:
            self._window.passed(oldest, latest)

    @property
    def _members(self) -> tuple[Expansion, int]:
        """The members, and when the first of them grows too old: what an interruption must not change."""
        return self._expansion, self._window.due if self._window else 0

    def _recover(self, before: tuple[Expansion, int], learned: int) -> None:
        """After an interruption: have the members as before, if nothing was learned.  Cached rows may be spoiled."""
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
        """Whatever ends the block early leaves the expansion that was there: only its rows may be spoiled."""
        try:
            yield
        except BaseException:
            self._expansion = storage.without_rows(self._expansion)
            raise

    def validate_one(self, x: dict) -> None:
        """Raise the ValueError or TypeError that `learn_one` would raise for these features; learn nothing."""
        self._features.require_room(x)
        self._require_learnable(x, self._features.example(x, learning=False)[1])

    def _require_learnable(self, x: dict, values: np.ndarray) -> None:
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
            Ids, one for each row, as for `learn_one`; default: from `next_id` on.
        t
            Times, one datetime for all or one for each row, which a `window` of time needs.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, a label is invalid, or lengths differ.  Blocks of rows before the one
            with the fault have been learned.  After an interruption (Ctrl-C), so have the first `n_seen` examples.
        """
        self._learn_many(X, y, w, ids, t)

    def _learn_many(self, X: Any, y: Any, w: Any, ids: Any, t: Any = None) -> np.ndarray:
        n = n_rows(X)
        self._y_name = getattr(y, "name", None)
        positive = arguments.labels_of(X, y, n)
        lo, hi, born = self._boxes_of(positive, arguments.weights_of(w, n), self._ages_of(t, n))
        numbers = self._next_ids(n) if ids is None else arguments.ids_of(ids, n)
        margins = np.empty(n)
        for rows, q in self._features.batches(X, learning=True):
            if largest_self_product(self._kernel, q.sq) > LARGEST_KERNEL_VALUE:
                raise self._overflow(rows.start + int(np.argmax(q.sq)))
            block = Examples(q, lo[rows], hi[rows], numbers[rows], ids is not None, born[rows])
            self._learn_queries(block, margins[rows], self._features.growth)
        return margins

    def _number_of(self, id: Any) -> int:
        """The id of the next example, which may have been given one."""
        if id is not None:
            return arguments.id_of(id)
        arguments.require_ids_left(self._next_id, 1)
        return self._next_id

    def _next_ids(self, n: int) -> np.ndarray:
        return arguments.next_ids(self._next_id, n)

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
            If an id is not a signed 64-bit integer.

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
        return self._forget_slots(self._slots_of(ids))

    def _forget_slots(self, leaving: np.ndarray) -> int:
        if len(leaving):
            with self._interruptible():
                s = storage.copy(self._expansion)
                self._expansion, _ = forget(s, self._kernel, self._problem, leaving, self.tol)
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
            If an id is not a signed 64-bit integer, or a label is invalid.  Nothing has changed then.
        """
        numbers = arguments.numbers_of(ids)
        labels = arguments.labels_of(None, np.full(len(numbers), y) if np.ndim(y) == 0 else y, len(numbers))
        found = 0
        for number, positive in zip(numbers.tolist(), labels.tolist(), strict=True):
            slots = self._slots_of(number)
            found += bool(len(slots))
            for _ in self._of_label(slots, not positive):  # one at a time: slots may be others afterwards
                self._learn_anew(int(self._of_label(self._slots_of(number), not positive)[0]), positive)
        return found

    def _of_label(self, slots: np.ndarray, positive: bool) -> np.ndarray:
        return slots[(self._expansion.y[slots] > 0) == positive]

    def _learn_anew(self, slot: int, positive: bool) -> None:
        """Forget the member in this slot, and learn its example with the other label and the weight it had."""
        s = self._expansion
        indices, values = storage.features_of(s, slot)
        q = Queries(np.array([0, len(indices)]), indices, values, s.sq[slot : slot + 1].copy())
        before, after = (self.pos_weight, 1.0) if s.y[slot] > 0 else (1.0, self.pos_weight)
        box = np.array([(s.hi[slot] - s.lo[slot]) / before * after])
        lo, hi = (np.zeros(1), box) if positive else (-box, np.zeros(1))
        block = Examples(q, lo, hi, s.ids[[slot]], False, s.born[[slot]])
        members, margin = self._members, NOT_LEARNED.copy()
        try:
            self._forget_slots(np.array([slot]))
            self._learn_queries(block, margin, counts=False)
        except BaseException:
            self._recover(members, n_learned(margin))
            raise

    def _slots_of(self, ids: Any) -> np.ndarray:
        """The slots of the members that have these ids."""
        numbers = arguments.numbers_of(ids)
        live = storage.live_slots(self._expansion)
        return live[np.isin(self._expansion.ids[live], numbers)]

    # ------------------------------------------------------------------------------------------------- ids that return

    def _replaced(
        self, number: int, lo: float, hi: float, features: Callable[[], tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """The slots of the members whose place an example takes: those that have its id, unless one is that example.

        One that is not to be kept, because its box is empty, takes no place.
        """
        if not lo < hi:
            return NO_SLOTS
        s, n = self._expansion, int(self._expansion.counts[SLOTS])
        slots = np.flatnonzero((s.ids[:n] == number) & (s.y[:n] != 0))
        if len(slots) == 1:
            i = int(slots[0])
            same_box = (s.y[i] > 0) == (hi > 0.0) and s.hi[i] - s.lo[i] == hi - lo
            if same_box and storage.is_stored(s, i, *features()):
                return NO_SLOTS
        return slots

    def _replaced_by(self, block: Examples, t: int) -> np.ndarray:
        """The slots of the members whose place the t-th example of a block takes."""
        own = slice(block.q.indptr[t], block.q.indptr[t + 1])
        features = block.q.indices[own], block.q.values[own]
        return self._replaced(int(block.ids[t]), block.lo[t], block.hi[t], lambda: features)

    def _returning(self, block: Examples) -> np.ndarray:
        """Places in a block of the examples whose id a member has, or another example before them."""
        if not block.own_ids:
            return NO_SLOTS
        again = np.isin(block.ids, self._expansion.ids[storage.live_slots(self._expansion)])
        _, first = np.unique(block.ids, return_index=True)
        again[np.setdiff1d(np.arange(len(again)), first)] = True
        return np.flatnonzero(again)

    def _until_replaced(self, block: Examples, t: int, end: int, returning: np.ndarray) -> int:
        """Where the part of a block ends that begins with its t-th example: where one takes the place of a member.

        Of those whose id is in the part already, it is known only then.
        """
        for i in returning[(returning > t) & (returning < end)].tolist():
            if (block.ids[t:i] == block.ids[i]).any() or len(self._replaced_by(block, i)):
                return i
        return end

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
        leave_out = LeaveOut(s, self._kernel, self._problem, self.tol)
        return leave_out, np.array([slot_of[number] for number in numbers.tolist()], np.int64)

    def _beside_members(
        self, s: Expansion, examples: list[Mapping], lo: np.ndarray, hi: np.ndarray, ids: np.ndarray
    ) -> Expansion:
        """The members, and behind them examples with alpha = 0, whose box is empty if they violate."""
        self._problem.note(s)
        b, first = self.bias, int(s.counts[SLOTS])
        top, bottom = max(s.extremes[G_UP], b + self.tol), min(s.extremes[G_DOWN], b - self.tol)
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
        block: Examples,
        margins: np.ndarray,
        growth: np.ndarray | None = None,
        values_of: Callable[[Expansion, slice], tuple[np.ndarray, np.ndarray, bool]] | None = None,
        counts: bool = True,
    ) -> None:
        """Learn a block.

        Parameters
        ----------
        block
            The examples.
        margins
            Where their margins before they were learned are written; NaN until they have been.
        growth
            How many columns there are after each of them; default: as many as before.
        values_of
            Gives the kernel values of a part of the block with the slots, if they are known.
        counts
            Whether these are new examples.
        """
        now = self._window.now(block.born) if self._window else block.born
        n_seen, n_kept = self._n_seen, self._features.n_kept
        largest = np.maximum.accumulate(block.ids)
        returning, done = self._returning(block), 0
        margins[:] = math.nan

        def note(done: int, n: int) -> int:
            """Note that examples have been learned, those from `done` on before the n-th."""
            if n > done:
                seen = (n_seen + n, int(largest[n - 1])) if counts else (n_seen, -1)
                n_columns = n_kept if growth is None else int(growth[n - 1])
                self._note(*seen, n_columns, int(block.born[done:n].min()), int(now[n - 1]))
            return n

        while done < len(margins):
            before = self._members
            try:
                if done in returning:
                    self._forget_slots(self._replaced_by(block, done))
                self._make_way(int(now[done]))
                end = done + self._fitting(block.born[done:], now[done:])
                end = self._until_replaced(block, done, end, returning)
                n = self._learn_part(block.part(done, end), margins[done:end], done, values_of)
                done = note(done, done + n)
            except BaseException:
                n = note(done, done + n_learned(margins[done:])) - done
                self._recover(before, n)
                raise

    def _learn_part(
        self,
        part: Examples,
        margins: np.ndarray,
        first: int,
        values_of: Callable[[Expansion, slice], tuple[np.ndarray, np.ndarray, bool]] | None,
    ) -> int:
        """Learn a part of a block, as far as there is room; how many examples."""
        self._expansion = arrival.make_room(self._expansion, part.q, len(self._features))
        if values_of is None:
            products = (*self._evaluator.products(self._expansion, part.q), False)
        else:
            products = values_of(self._expansion, slice(first, first + len(margins)))
        limit = bounded.FAR if self.budget is None else int(self.budget)
        given = (*part.q, part.lo, part.hi, part.ids, part.born, part.own_ids, *products, self._sigmoid, limit)
        return self._learn_block(self._in_room, self._kernel, self._rule, *given, margins)

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

    @property
    def too_old(self) -> int | None:
        """The last number, or time in microseconds, that has left the window; None without a window."""
        return None if self._window is None else self._window.latest - self._window.span

    def _is_due(self, now: int) -> bool:
        """Whether members may have to leave before the next example."""
        too_many = self.budget is not None and storage.n_members(self._expansion) >= self.budget
        return too_many or (self._window is not None and now >= self._window.due)

    def _make_way(self, now: int) -> None:
        """Before an example is learned: those leave that are too old, and then some if there are as many as may be."""
        engine = (self._kernel, self._problem, self.tol)
        if self._window and now >= self._window.due:
            self._expansion = self._window.forget_old(self._expansion, *engine, now)
            self._window.look(self._expansion)
        if self.budget is not None and storage.n_members(self._expansion) >= self.budget:
            bounds = (int(self.budget), self.on_budget, len(self._features))
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
        margin = arrival.decide_example(self._in_room, self._kernel, columns, values, self.bias)
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
        self._features.settle()
        engine, b = (self._in_room, self._kernel), self.bias
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
        """Examples learned so far, whether they are members or not."""
        return self._n_seen

    @property
    def next_id(self) -> int:
        """The id of the next example, unless it is given one: above all ids so far, from 0."""
        return self._next_id

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
        return storage.rows_of(s, np.flatnonzero(s.alpha), len(self.feature_names))

    @property
    def feature_names(self) -> list[Hashable]:
        """The features that were learned, in the order in which they have their columns."""
        self._features.settle()
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
        """The model as a snapshot; see `streamsvm.core.snapshot` for the format."""
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
        self._expansion = dumping.restore(arrays, int(self.cache_mb * 2**20), self._kernel, len(features))
        self._go_on_above(self._expansion.ids[storage.live_slots(self._expansion)])

    def _restore_counts(self, meta: Mapping[str, Any]) -> None:
        self._n_seen = snapshot.count(meta, "n_seen")
        self._next_id = snapshot.field(meta, "next_id", int) if "next_id" in meta else 0
        require(0 <= self._next_id <= arguments.LARGEST_ID + 1, f"next_id={self._next_id} is not an id")
        if self._window:
            self._window.latest = _latest(meta)

    @classmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        """A model with the stored parameters, which has learned nothing."""
        stored = snapshot.field(meta, "parameters", dict)
        if "tau" in stored:  # of 0.1.0
            stored["tol"] = stored.pop("tau")
            stored.pop("seed", None)
        parameters = {name: _given(stored, name) for name in stored}
        instead = {"cache_mb": cache_mb, "device": device}
        return cls(**parameters | {name: value for name, value in instead.items() if value is not None})

    def _go_on_above(self, ids: np.ndarray) -> None:
        """Have the next example's id be above these: the first snapshots do not tell it."""
        self._next_id = max(self._next_id, self._n_seen, int(ids.max(initial=-1)) + 1)

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
        meta = {
            "parameters": parameters,
            "n_seen": self._n_seen,
            "next_id": self._next_id,
            "features": self._features.names(),
        }
        if self._window:
            meta["latest"] = self._window.latest
        return meta, {**dumping.dump(self._expansion, len(self._features)), "sigmoid": self._sigmoid}

    def __getstate__(self) -> dict:
        """Everything but the cached rows, which can be computed again, and what is on a device."""
        expansion = storage.without_rows(self._expansion)
        return {**self.__dict__, "_expansion": expansion, "_evaluator": Evaluator(self.device)}

    def __setstate__(self, state: dict) -> None:
        """Have arrays of its own: joblib maps those of its workers from files that are read-only."""
        self.__dict__.update({name: storage.owned(value) for name, value in state.items()})

    def __copy__(self) -> Self:
        """A copy that shares nothing: two models with the same arrays and counts of their own would both be wrong."""
        return copy.deepcopy(self)

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


def n_learned(margins: np.ndarray) -> int:
    """How many of these examples have been learned, one after the other: the others have no margin yet."""
    missing = np.isnan(margins)
    return int(np.argmax(missing)) if missing.any() else len(margins)


def _compressed(columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The features of one example as an expansion stores them: non-zero, in single precision, in order."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    order = np.argsort(columns)
    order = order[single[order] != 0.0]
    return columns[order], single[order]


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it: numpy's numbers as Python's, a time span in microseconds."""
    if isinstance(value, datetime.timedelta):
        return {"microseconds": value // bounded.MICROSECOND}
    return value.item() if isinstance(value, np.generic) else value


def _given(parameters: Mapping[str, Any], name: str) -> Any:
    """The parameter that `_plain` wrote."""
    value = snapshot.field(parameters, name, str, int, float, bool, type(None), dict)
    require(type(value) is not int or abs(value) <= arguments.LARGEST_ID, f"the parameter {name!r} is too large")
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
