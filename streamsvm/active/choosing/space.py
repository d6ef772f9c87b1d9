"""What a selection needs to know of every unlabelled example, kept from one question to the next.

A question may look at the whole pool.  So these arrays are kept, and a label or a new example only adds to them:

========= ================================================================ ====================
symbol    name                                                             shape
========= ================================================================ ====================
near      squared Euclidean distance to the nearest labelled example       (n,)
rows      kernel rows of the support vectors over the pool                 (s or more, n) float32
L         Cholesky factor of the labelled examples, see `span`             (l, l)
========= ================================================================ ====================

A label costs one row of n values.  The arrays can be computed again, to the same bits, from the pool, the model and the
labelled examples.  So a checkpoint saves the labelled examples only.
"""

import itertools
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from streamsvm.active.choosing.decisions import learner_of, owner_of_kernel
from streamsvm.active.choosing.pool import Pool
from streamsvm.active.choosing.span import Factor
from streamsvm.active.choosing.vectors import Scale, Table, Vectors, scale_in_use, spread_of
from streamsvm.core import sparse as sp
from streamsvm.core.kernels import RBF_KIND, Kernel, kernel_values, make_kernel, self_products
from streamsvm.core.products import add_rows

LABELLED = 1000  # labelled examples, or members, that an answer may go through; of more, the older half is forgotten
LARGEST_ROWS = 20_000_000  # values of kernel rows, 80 MB
NEEDED = ("support_ids", "dual_coef", "bias", "support_vectors_of", "feature_names", "scale_of", "gamma_in_use")


class Space:
    """The examples of a pool, and the labelled ones."""

    def __init__(self) -> None:
        self._columns: dict[Hashable, int] = {}
        self._spread = Scale()
        self._measured = 0  # examples that the spread was measured on
        self._labelled = Vectors(self._columns)
        self._labels: list[int] = []  # the keys of the labelled examples
        self._begin()

    def _begin(self) -> None:
        """Forget the pool and what was computed."""
        self._pool = Vectors(self._columns)
        self._slots: dict[int, int] = {}
        self._tables: list[tuple[int, Scale, Table]] = []
        self._near, self._near_of = np.empty(0), 0
        self._view = View()
        self._rows, self._row_of = np.empty((0, 0), np.float32), dict[int, int]()  # by the id of the support vector

    # --- the pool and the labels --------------------------------------------------------------------------------------

    def look(self, pool: Pool, model: Any) -> np.ndarray:
        """Take in the examples that are new in the pool; return the places of all, in the order of `pool.keys()`."""
        keys = pool.keys()
        places = self._places(keys)
        if len(self._slots) > 2 * len(keys) and (places < 0).any():
            self._begin()
            places[:] = -1
        if (places < 0).any():
            new = [keys[i] for i in np.flatnonzero(places < 0).tolist()]
            self._slots.update(zip(new, range(len(self._pool), len(self._pool) + len(new)), strict=True))
            self._pool.add(pool.rows(new))
            places = self._places(keys)
        self._labelled.become_like(self._pool)
        if len(keys) >= 2 * self._measured:
            self._measure(places, scales(model))
        return places

    def _places(self, keys: list[int]) -> np.ndarray:
        """Where the examples with these keys are; -1: they are new."""
        return np.fromiter(map(self._slots.get, keys, itertools.repeat(-1)), np.int64, len(keys))

    def _measure(self, places: np.ndarray, standardise: bool) -> None:
        """Measure the spread of the features, by which distances are scaled if the model scales."""
        self._measured = len(places)
        self._spread = spread_of(self._pool.matrix[places], self._columns, standardise)
        self._near_of = 0

    def note(self, key: int, row: Any) -> None:
        """Take in a labelled example, as a batch of one."""
        if key in self._labels:
            return
        self._labels.append(key)
        self._labelled.add(row)
        if len(self._labels) > LABELLED:
            self._keep(list(range(len(self._labels) // 2, len(self._labels))))

    @property
    def n_labelled(self) -> int:
        """Number of labelled examples that are remembered."""
        return len(self._labels)

    def drop(self, key: int) -> None:
        """Forget a labelled example, if it is known."""
        if key in self._labels:
            self._keep([place for place, other in enumerate(self._labels) if other != key])

    def _keep(self, places: list[int]) -> None:
        self._labels = [self._labels[place] for place in places]
        self._labelled.keep(np.array(places, np.int64))
        self._near_of, self._view.factor = 0, Factor()

    # --- distances ----------------------------------------------------------------------------------------------------

    def distances(self, places: np.ndarray) -> np.ndarray:
        """The squared distance of examples to the nearest labelled one; infinity without labels."""
        table, n = self._table(self._spread), len(self._near)
        if self._near_of == 0:
            n = 0
        if n < len(table):
            known = self._labelled_table(self._spread, 0, self._near_of)
            fresh = Table(self._spread.of(self._pool.matrix[n:]))
            near = fresh.distances(known).min(axis=0, initial=np.inf)
            self._near = np.concatenate([self._near[:n], near])
        if self._near_of < len(self._labels):
            later = self._labelled_table(self._spread, self._near_of, len(self._labels))
            self._near = np.minimum(self._near, table.distances(later).min(axis=0))
            self._near_of = len(self._labels)
        return self._near[places]

    def _labelled_table(self, scale: Scale, begin: int, end: int) -> Table:
        labelled = self._labelled.matrix
        return Table(scale.of(self._pool.matrix[:0] if labelled is None else labelled[begin:end]))

    def _table(self, scale: Scale) -> Table:
        """The pool by this scale; the newest two are kept, one for distances and one for the kernel."""
        for n, own, table in self._tables:
            if n == len(self._pool) and own.is_like(scale):
                return table
        table = Table(scale.of(self._pool.matrix))
        self._tables = [(len(self._pool), scale, table), *self._tables[:1]]
        return table

    # --- the kernel ---------------------------------------------------------------------------------------------------

    def decision_values(self, model: Any, places: np.ndarray) -> np.ndarray | None:
        """f of examples, rounded to single precision; None if it cannot be had from kernel rows.

        That is so if the model is no learner of this package, if it merges its members, or if it has too many.
        """
        if not all(hasattr(type(model), name) for name in NEEDED) or getattr(model, "budget", None) is not None:
            return None
        ids = model.support_ids.tolist()
        if len(ids) * len(self._pool) > LARGEST_ROWS:
            return None
        self._see(model)
        self._bring_rows(model, ids)
        f = np.empty(len(self._pool), np.float32)
        order = np.array([self._row_of[key] for key in ids], np.int64)  # the model's, so a restored loop rounds alike
        add_rows(self._rows, order, model.dual_coef.astype(np.float32), f)
        return f[places].astype(np.float64) + model.bias

    def _see(self, model: Any) -> None:
        """Forget what was computed with another kernel, or on another scale."""
        if self._view.renew(model, self._columns, self._spread):
            self._row_of = {}

    def _bring_rows(self, model: Any, ids: list[int]) -> None:
        """Compute the kernel rows, and parts of rows, that are missing."""
        missing = [key for key in ids if key not in self._row_of]
        if self._rows.shape[1] < len(self._pool) or len(self._row_of) + len(missing) > len(self._rows):
            self._make_room(model, [key for key in ids if key in self._row_of], 2 * len(ids))
        if missing:
            first = len(self._row_of)
            rows = kernel_block(self._view.kernel, self._table(self._view.scale), self._members(model, missing))
            self._rows[first : first + len(missing)] = rows
            self._row_of.update(zip(missing, range(first, first + len(missing)), strict=True))

    def _make_room(self, model: Any, known: list[int], n_rows: int) -> None:
        """Keep the rows of these support vectors only, as wide as the pool is now, with room for others."""
        n = self._rows.shape[1]
        rows = np.empty((n_rows, len(self._pool)), np.float32)
        rows[: len(known), :n] = self._rows[[self._row_of[key] for key in known]]
        if known and n < len(self._pool):
            fresh = Table(self._view.scale.of(self._pool.matrix[n:]))
            rows[: len(known), n:] = kernel_block(self._view.kernel, fresh, self._members(model, known))
        self._rows, self._row_of = rows, dict(zip(known, range(len(known)), strict=True))

    def _members(self, model: Any, ids: list[int]) -> Table:
        """These support vectors as the kernel sees them; a model that does not scale gives them as they came."""
        vectors = model.support_vectors_of(ids)
        columns = [self._columns.setdefault(name, len(self._columns)) for name in model.feature_names]
        own = (vectors.data.astype(np.float64), np.array(columns, np.int64)[vectors.indices], vectors.indptr)
        matrix = sp.csr_matrix(own, shape=(len(ids), len(self._columns)))
        matrix.sort_indices()
        if not sp.issparse(self._pool.matrix):
            matrix = matrix.toarray()
        return Table(matrix if scales(model) else self._view.scale.of(matrix))

    def novelty(self, model: Any, places: np.ndarray) -> np.ndarray:
        """How much of examples the labelled ones do not explain, from 0 to 1: sigma, see `span`."""
        self._see(model)
        scale = self._view.scale
        labelled = self._labelled_table(scale, 0, len(self._labels))
        return self._view.novelty(labelled, Table(scale.of(self._pool.matrix[places])))

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The labelled examples and the spread, as JSON can hold them; the rest is computed again."""
        labelled = sp.csr_matrix((0, 0) if self._labelled.matrix is None else self._labelled.matrix)
        parts = [slice(*bounds) for bounds in itertools.pairwise(labelled.indptr.tolist())]
        return {
            "names": [list(name) if isinstance(name, tuple) else name for name in self._columns],
            "keys": list(self._labels),
            "rows": [[labelled.indices[part].tolist(), labelled.data[part].tolist()] for part in parts],
            "spread": None if self._spread.by is None else self._spread.by.tolist(),
            "measured": self._measured,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        names = [tuple(name) if isinstance(name, list) else name for name in state["names"]]
        self._columns.update(zip(names, range(len(names)), strict=True))
        self._labels = list(state["keys"])
        if self._labels:
            indices, values = ([part for row in state["rows"] for part in row[side]] for side in (0, 1))
            starts = np.cumsum([0, *(len(row[0]) for row in state["rows"])])
            self._labelled.restore(sp.csr_matrix((values, indices, starts), shape=(len(self._labels), len(names))))
        self._spread = Scale(None if state["spread"] is None else np.array(state["spread"], np.float64))
        self._measured = state["measured"]


def scales(model: Any) -> bool:
    """Whether a model scales its features; other models than learners of this package are taken to."""
    owner = owner_of_kernel(model) if hasattr(model, "labels") else model  # a pipeline's own steps may scale
    scaling, gamma = getattr(owner, "scaling", "standard"), getattr(owner, "gamma", None)
    return scaling == "standard" or (scaling == "auto" and gamma == "scale")


def kernel_of(model: Any, n_features: int) -> Kernel:
    """The model's kernel; without one, an RBF kernel as wide as scaled features need."""
    last, gamma = owner_of_kernel(model), getattr(learner_of(model), "gamma_in_use", None)
    if gamma is None:
        return make_kernel("rbf", gamma=1.0 / max(1, n_features))
    return make_kernel(last.kernel, gamma=gamma, degree=last.degree, coef0=last.coef0)


class View:
    """How a model's kernel sees examples, and the span of the labelled ones as it sees them."""

    def __init__(self) -> None:
        self.kernel, self.scale, self.factor = make_kernel("linear"), Scale(), Factor()

    def renew(self, model: Any, columns: Mapping[Hashable, int], spread: Scale) -> bool:
        """See as the model does now; return whether that is another view.

        Parameters
        ----------
        model
            The model.
        columns
            Of the examples.
        spread
            The scale of the examples' own spread, for a model that does not say how it scales.
        """
        kernel = kernel_of(model, len(columns))
        if scales(model):
            scale = scale_in_use(model, columns) if hasattr(model, "scale_of") else spread
        else:
            scale = spread if kernel.kind == RBF_KIND else Scale()
        if kernel == self.kernel and scale.is_like(self.scale):
            return False
        self.kernel, self.scale, self.factor = kernel, scale, Factor()
        return True

    def novelty(self, labelled: Table, asked: Table) -> np.ndarray:
        """How much of some examples the labelled ones do not explain; the factor learns those that it lacks."""
        kernel, factor = self.kernel, self.factor
        own = self_products(kernel, labelled.sq)
        if len(factor) < len(labelled):
            later = Table(labelled.matrix[len(factor) :])
            for i, k in enumerate(kernel_block(kernel, labelled, later), len(factor)):
                factor.add(k[:i], own[i])
        return factor.distances(kernel_block(kernel, asked, labelled), self_products(kernel, asked.sq))


def kernel_block(kernel: Kernel, table: Table, others: Table) -> np.ndarray:
    """Kernel values, (len(others), len(table))."""
    return kernel_values(kernel, table.products(others), table.sq, others.sq[:, None])
