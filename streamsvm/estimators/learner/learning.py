"""How examples come into a model: one at a time or in blocks, within its budget and window.

`learn_many` gives what a loop of `learn_one` gives, bit for bit.  Compiled code learns a block in parts.
A part ends where a member has to leave first: because it is too old, because the budget is reached, or because the next
example has its id.
"""

import datetime
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from streamsvm.core import arguments, blocks, class_weights, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.expansion import Expansion, is_binary
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, self_products
from streamsvm.core.scaling import RawRows, Scaling
from streamsvm.estimators.inputs.checks import n_rows
from streamsvm.estimators.inputs.raw_rows import one_row
from streamsvm.estimators.inputs.sample import Rows, RowsOf
from streamsvm.estimators.learner.advice import Advice
from streamsvm.estimators.learner.eviction import NO_SLOTS, Leaving
from streamsvm.estimators.learner.examples import Examples, block_of
from streamsvm.estimators.learner.state import n_learned, no_margins
from streamsvm.online import arrival
from streamsvm.online.arrival import learn_block, learn_example
from streamsvm.online.removal import bounded

# The kernel values of a part of a block with an expansion, if they are known already; see `online.arrival`.
ValuesOf = Callable[[Expansion, slice], tuple[np.ndarray, np.ndarray, bool]]


def _rows_from(rows_of: RowsOf, first: int, places: np.ndarray) -> Rows:
    """The rows in these places of a part that begins at `first`."""
    return rows_of(first + places)


class Learning(Leaving, Advice):
    """Learning.

    An algorithm makes a rule.  Its class tells the compiled `learn_example` and `learn_block` what to do.
    """

    _learn_block: Callable[..., int] = staticmethod(learn_block)  # `LASVMClassifier` puts another one in its place
    _rule: tuple

    # ----------------------------------------------------------------------------------------------------- one example

    def learn_one(
        self, x: dict, y: Any, w: float = 1.0, id: int | None = None, t: datetime.datetime | None = None
    ) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.  A missing feature counts as 0.
        y
            Label: True or False, 1 or 0, 1 or -1.
        w
            Weight, a factor on the example's `C`; at least 0.  An example of weight 0 is left out.
        id
            64-bit integer that names the example; default: `next_id`.  If a member has this id, the example replaces
            it, as a correction does.  If the two are equal in features, label and weight, the model stays as it is.
        t
            Time of the example, needed if the `window` is a time span.  A time without a zone counts as UTC.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or if the label, the weight, the id or the time is invalid.  The model
            then stays as it was.

        Notes
        -----
        An interruption (Ctrl-C) leaves a model that has learned the example completely, or not at all.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> model.learn_one({"length": 1.0, "width": 2.0}, True)
        >>> model.learn_one({"length": -1.0}, False)  # The width is 0.
        >>> model.predict_one({"length": 0.9, "width": 1.5})
        True
        """
        positive = arguments.label_of(y)
        box = arguments.box_of(self.C, w, self._class_weight(positive, arriving=True))
        number = self._number_of(id)
        born, now = self._age_of(t)
        if self._window and now - born >= self._window.span:  # The example came too late to be kept.
            box, born = 0.0, now
        self._rescale_if_due()
        columns, values = self._features.example(x, learning=True)
        if len(columns) < len(self._features.columns):
            self._notice_lacking(columns, 1)
        self._fit_scale()
        lo, hi = (0.0, box) if positive else (-box, 0.0)
        leaving = NO_SLOTS if id is None else self._replaced(number, lo, hi, lambda: self._stored(columns, values))
        is_due = self._is_due(now)
        if is_due or len(leaving):  # No member leaves for an example that is refused afterwards.
            self._require_learnable(x, columns, values)
        counts = self._class_counts[False] + (lo < 0.0), self._class_counts[True] + (hi > 0.0)
        learned = (self._n_seen + 1, counts, number, len(self._features.columns), born, now)
        noted = (self._n_seen, number, born, now, positive, hi - lo, columns, values)
        before, margin = self._members, no_margins(1)
        try:
            if len(leaving):
                self._forget_slots(leaving)
            if is_due:
                self._make_way(now)
            status = self._learn_values(
                self._scale.state, columns, values, (lo, hi, number, born, id is not None), margin
            )
            if status == arrival.LEARNED:
                self._note(*learned)
                self._reservoir.note(*noted)
        except BaseException:
            if n_learned(margin):
                self._note(*learned)
                self._reservoir.note(*noted)
            self._recover(before, n_learned(margin))
            raise
        if status != arrival.LEARNED:
            raise self._too_large(x) if status == arrival.NOT_FINITE else self._overflow(self._n_seen)
        self._rescale_if_due()
        if self._n_seen == self._next_look:
            self._look()

    def _stored(self, columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features of one example as an expansion stores them: non-zero, in single precision, in order."""
        with np.errstate(over="ignore"):
            q = self._scale.queries(one_row(columns, values))
        return q.indices, q.values

    def _learn_values(
        self, scale: Scaling, columns: np.ndarray, values: np.ndarray, example: tuple, margin: np.ndarray
    ) -> int:
        """Learn one example unless it is refused; return the status of its arrival."""
        features, notes = arrival.Features(columns, values), arrival.Notes(self._calibration, margin)
        given = (scale, self._kernel, self._rule, features, *example, notes)
        if len(self._features.columns) > len(self._expansion.member_indices):
            self._make_room(values, is_binary(self._expansion))  # If the example is refused, its storage stays.
        status = learn_example(self._in_room, *given)
        if status == arrival.NO_ROOM:
            stored = self._stored(columns, values)[1] if self._scale.is_active else values.astype(np.float32)
            ones = bool(np.isin(stored, (0.0, 1.0)).all())
            self._make_room(values, is_binary(self._expansion) and ones)
            status = learn_example(self._in_room, *given)
        return status

    def _make_room(self, values: np.ndarray, binary: bool) -> None:
        nnz = len(self._features) if self._scale.is_active else int(np.count_nonzero(values))
        self._expansion = storage.reserve(self._expansion, 1, len(self._features), binary, nnz, 0)

    # --------------------------------------------------------------------------------------------------------- a batch

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, t: Any = None) -> None:
        """Learn a batch of examples in sequence.  The result is that of a loop of `learn_one`, bit for bit.

        Parameters
        ----------
        X
            Examples as rows: a pandas, polars or other dataframe (features by column name), a 2-D array or a SciPy
            sparse matrix (features named 0, 1, 2, ...), or a list of dicts.
        y
            Labels, one for each row.
        w
            Weights: one number for all rows, or one for each; default: 1.
        ids
            Ids, one for each row, as for `learn_one`; default: numbers from `next_id` on.  A second pass over the same
            rows needs the ids of the first, such as ``range(len(X))``.
        t
            Times: one datetime for all rows, or one for each; needed if the `window` is a time span.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, a label is invalid, or lengths differ.  The blocks of rows before the
            block with the fault have then been learned.

        Notes
        -----
        After an interruption (Ctrl-C), `n_seen` tells how many examples have been learned.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsvm import LASVM
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> model = LASVM(C=10)
        >>> model.learn_many(X, X[:, 0] > 0)
        >>> model.predict_many(np.array([[-2.0, 0.0], [2.0, 0.0]]))
        array([False,  True])
        """
        self._learn_many(X, y, w, ids, t)

    def _learn_many(self, X: Any, y: Any, w: Any, ids: Any, t: Any = None) -> np.ndarray:
        n = n_rows(X)
        self._y_name = getattr(y, "name", None)
        positive = arguments.labels_of(X, y, n)
        lo, hi, born = self._boxes_of(positive, arguments.weights_of(w, n), self._ages_of(t, n))
        numbers = self._next_ids(n) if ids is None else arguments.ids_of(ids, n)
        margins = np.empty(n)
        examples = (lo, hi, numbers, ids is not None, born)
        if self._scale.tracks:
            for rows, raw in self._features.raw_batches(X, True, self._notice_lacking):
                self._learn_raw(rows.start, raw, examples, margins, self._features.growth)
            return margins
        for rows, q in self._features.batches(X, learning=True):
            if self._scale.tracks or self._scale.is_woken_by(q):
                self._learn_raw(rows.start, self._features.raw_of(), examples, margins, self._features.growth)
                continue
            self._require_kernel(rows.start, q.sq)
            block, rows_of = block_of(q, rows, *examples), self._features.rows_of
            self._learn_queries(block, margins[rows], self._features.growth, rows_of=rows_of)
        return margins

    def _learn_raw(self, first: int, raw: RawRows, examples: tuple, margins: np.ndarray, growth: np.ndarray) -> None:
        """Learn a block of a batch whose first row is `first`, in parts between two changes of the scale."""
        self._fit_scale()
        t, n = 0, len(raw.sq)
        lo, hi, *_ = examples
        counted = lo[first : first + n] < hi[first : first + n]
        while t < n:
            self._rescale_if_due()
            q, after = self._until_change(first + t, raw.part(t, n), counted[t:])
            ahead = len(q.sq)
            part, rows = raw.part(t, t + ahead), slice(first + t, first + t + ahead)
            block = block_of(q, rows, *examples)._replace(raw=self._scale.kept(part))
            margins[rows] = math.nan
            try:
                rows_of = partial(_rows_from, self._features.rows_of, t)
                self._learn_queries(block, margins[rows], growth[t : t + ahead], rows_of=rows_of)
                self._scale.state = after
            except BaseException:
                learned = n_learned(margins[rows])
                self._scale.state = self._scale.ahead(part.part(0, learned), counted[t : t + learned])[1]
                raise
            t += ahead
        self._rescale_if_due()

    def _until_change(self, first: int, raw: RawRows, counted: np.ndarray) -> tuple[Queries, Scaling]:
        """The examples to learn until the scale is due, as queries, and the scale's state after them.

        They end before an example whose kernel with itself is too large.  If that is the next one, it is refused.
        """
        ahead, after = self._scale.ahead(raw, counted)
        q = self._scale.queries(raw.part(0, ahead))
        too_large = np.abs(self_products(self._kernel, q.sq)) > LARGEST_KERNEL_VALUE
        if not too_large.any():
            return q, after
        fitting = int(np.argmax(too_large))
        if fitting == 0:
            raise self._overflow(first)
        return q.part(0, fitting), self._scale.ahead(raw.part(0, fitting), counted[:fitting])[1]

    def _number_of(self, id: Any) -> int:
        """The id of the next example, given or not."""
        if id is not None:
            return arguments.id_of(id)
        arguments.require_ids_left(self._next_id, 1)
        return self._next_id

    def _next_ids(self, n: int) -> np.ndarray:
        return arguments.next_ids(self._next_id, n)

    def _boxes_of(
        self, positive: np.ndarray, weights: np.ndarray, born: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The boxes and ages of the next examples.  The box is empty if the example came too late for the window."""
        with np.errstate(over="ignore"):  # `boxes_of` refuses what is too large
            kept = self.C * weights > 0.0
        if self._window:
            now = self._window.now(born)
            too_late = now - born >= self._window.span
            kept, born = kept & ~too_late, np.where(too_late, now, born)
        factors = class_weights.class_weights(self.pos_weight, self._class_counts, positive, kept)
        box = np.where(kept, arguments.boxes_of(self.C, weights, factors), 0.0)
        return np.where(positive, 0.0, -box), np.where(positive, box, 0.0), born

    # --------------------------------------------------------------------------------------------------------- a block

    def _learn_queries(
        self,
        block: Examples,
        margins: np.ndarray,
        growth: np.ndarray | None = None,
        values_of: ValuesOf | None = None,
        counts: bool = True,
        rows_of: RowsOf | None = None,
    ) -> None:
        """Learn a block.

        Parameters
        ----------
        block
            The examples.
        margins
            Receives each example's margin before it was learned; NaN means that it has not been learned.
        growth
            Number of columns after each example; default: as many as before.
        values_of
            Gives the kernel values of a part of the block with the slots, if they are known.
        counts
            Whether the examples count in `n_seen` and `class_counts`.
        rows_of
            Gives the features of examples as the user did, for the reservoir; default: it does not note the block.
        """
        now = self._window.now(block.born) if self._window else block.born
        n_seen, n_kept, (negatives, positives) = self._n_seen, self._features.n_kept, self._class_counts
        largest = np.maximum.accumulate(block.ids)
        returning, done = self._returning(block), 0
        margins[:] = math.nan

        def note(done: int, n: int) -> int:
            """Note that the examples from `done` on, before the n-th, have been learned."""
            if n > done:
                counted = slice(n if counts else 0)
                of_classes = negatives + (block.lo[counted] < 0.0).sum(), positives + (block.hi[counted] > 0.0).sum()
                seen, last = (n_seen + n, int(largest[n - 1])) if counts else (n_seen, -1)
                n_columns = n_kept if growth is None else int(growth[n - 1])
                self._note(seen, of_classes, last, n_columns, int(block.born[done:n].min()), int(now[n - 1]))
            return n

        def note_in_reservoir() -> None:
            """Note the examples that have been learned."""
            if rows_of is not None and done:
                own = (block.ids[:done], block.born[:done], now[:done], block.lo[:done], block.hi[:done])
                self._reservoir.note_block(n_seen, *own, rows_of)

        try:
            while done < len(margins):
                before = self._members
                try:
                    if done in returning:
                        self._forget_slots(self._replaced_by(block, done))
                    self._make_way(int(now[done]))
                    end = done + self._fitting(block.born[done:], now[done:])
                    end = self._until_replaced(block, done, min(end, done + self._next_look - self._n_seen), returning)
                    n = self._learn_part(block.part(done, end), margins[done:end], done, values_of)
                    done = note(done, done + n)
                except BaseException:
                    before_it, done = done, note(done, done + n_learned(margins[done:]))
                    self._recover(before, done - before_it)
                    raise
                if self._n_seen == self._next_look:
                    self._look()
            note_in_reservoir()
        except BaseException:
            note_in_reservoir()
            raise

    def _learn_part(self, part: Examples, margins: np.ndarray, first: int, values_of: ValuesOf | None) -> int:
        """Learn a part of a block as far as there is room; return the number of examples learned."""
        if values_of is None and blocks.prefers_product(self._expansion, part.q, within=True):
            margins = margins[: blocks.BLOCK]
            part = part.part(0, len(margins))
        self._expansion = arrival.make_room(self._expansion, part.q, len(self._features))
        if values_of is None:
            products = (*self._evaluator.products(self._expansion, part.q), False)
        else:
            products = values_of(self._expansion, slice(first, first + len(margins)))
        limit = bounded.FAR if self.budget is None else int(self.budget)
        given = (part.compiled(), part.own_ids, *products, self._calibration, limit)
        return self._learn_block(self._in_room, self._kernel, self._rule, *given, margins)
