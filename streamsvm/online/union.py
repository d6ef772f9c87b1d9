"""The union: the vectors of several expansions in one store, so that a kernel value is computed once for all of them.

Each expansion belongs to a model.  All models learn from the same stream, and each keeps those that matter to it.  The
union has a slot for every vector that one of them keeps, in the order of the vectors' numbers.  The kernel values of a
block of examples with the union, and with each other, are one matrix W.  An expansion takes the columns it needs.

=========== ========================================================= ================
symbol      name                                                      shape, dtype
=========== ========================================================= ================
U           the union                                                 `Union`
U.vectors   its features and squared norms, as an expansion without   `Expansion`
            coefficients; `ids` are numbers, rising, the same that
            the models' expansions have as ids
U.user_ids  the ids that the user knows the examples by               (N,) int64
U.weights   weights of the examples                                   (N,) float64
first       slots of the union before the block                       int
W           kernel values of a block's t-th example with the union,   (B, n) float32
            up to slot first + t, which is its own
columns     the columns of W that belong to an expansion's slots      (m,) int64
=========== ========================================================= ================

A row of W is computed by the same code as the rows of a single expansion, and has the same bits.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from streamsvm.core import storage
from streamsvm.core.blocks import Queries, expansion_sum
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import COLUMNS, COMPRESSED, EVALUATIONS, SLOTS, STORAGE, Expansion, append, bury
from streamsvm.core.kernels import Kernel, map_row
from streamsvm.core.rows import kernel_row
from streamsvm.core.saving import dumping
from streamsvm.core.scaling.state import NO_ROWS, RawRows, Scaling
from streamsvm.online import arrival
from streamsvm.online.arrival import NOTHING_SAID, Block, example_of, store_raw_of
from streamsvm.online.rescale import features_anew


class Union(NamedTuple):
    """The vectors of several expansions; the symbol table is in the module's docstring."""

    vectors: Expansion
    user_ids: np.ndarray
    weights: np.ndarray

    @property
    def n_slots(self) -> int:
        """Number of slots, holes included."""
        return int(self.vectors.counts[SLOTS])

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of all slots, rising."""
        return self.vectors.ids[: self.n_slots]

    def live_slots(self) -> np.ndarray:
        """The slots that hold a vector."""
        return storage.live_slots(self.vectors)

    def slots_of(self, numbers: np.ndarray) -> np.ndarray:
        """The slots of the vectors that have these numbers."""
        return np.searchsorted(self.numbers, numbers)

    def raw(self, slots: np.ndarray) -> RawRows:
        """The unscaled features of the vectors in these slots; empty unless features are scaled."""
        return storage.raw_rows_of(self.vectors, slots)

    def queries(self, slots: np.ndarray) -> Queries:
        """The vectors in these slots as queries."""
        rows = storage.rows_of(self.vectors, slots, len(self.vectors.member_indices))
        sq = self.vectors.sq[slots]
        return Queries(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, sq)


def empty() -> Union:
    """A union without vectors."""
    vectors = storage.empty(0)
    return Union(vectors, np.zeros(len(vectors.ids), np.int64), np.zeros(len(vectors.ids)))


def make_room(U: Union, q: Queries, n_features: int) -> Union:
    """Room for the first of these examples at least; see `arrival.make_room`."""
    vectors = arrival.make_room(U.vectors, q, n_features)
    was_squeezed = vectors.counts[SLOTS] < U.n_slots
    if len(vectors.ids) == len(U.user_ids) and not was_squeezed:
        return U._replace(vectors=vectors)
    kept = U.live_slots() if was_squeezed else np.arange(U.n_slots)
    return _with(vectors, U, kept)


def rescaled(U: Union, c: Scaling, n_known: int, kernel: Kernel) -> Union:
    """A copy whose vectors are scaled anew; see `rescale`."""
    return _with(features_anew(U.vectors, c, n_known, kernel), U, U.live_slots())


def _with(vectors: Expansion, U: Union, slots: np.ndarray) -> Union:
    """The union of these vectors, which U has in these slots."""
    room = len(vectors.ids)
    return Union(vectors, storage.grown(U.user_ids[slots], room), storage.grown(U.weights[slots], room))


def dump(U: Union, n_features: int, n_places: int) -> dict[str, np.ndarray]:
    """The arrays from which `restore` makes an equal union; see `dumping.dump`.

    Snapshots store the user's ids as `born` and the weights as `hi`: version 0.1.0 did, and its snapshots are read.
    """
    own = {"born": U.user_ids[: U.n_slots].copy(), "hi": U.weights[: U.n_slots].copy()}
    return dumping.dump(U.vectors, n_features, n_places) | own


def restore(arrays: Mapping[str, np.ndarray], kernel: Kernel, n_features: int, n_raw: int, n_seen: int) -> Union:
    """The union from the arrays of `dump`; a SnapshotError if they are not the arrays of one."""
    vectors = dumping.restore(arrays, 0, kernel, n_features, n_raw, n_seen)
    U = Union(vectors, vectors.born.copy(), vectors.hi.copy())
    vectors.born[:], vectors.hi[:] = 0, 0.0
    return U


# ------------------------------------------------------------------------------------------------------- kernel values


@compiled
def _add_rows(s, kernel, indptr, indices, values, sq, first, W):
    for t in range(sq.shape[0]):
        begin, end = indptr[t], indptr[t + 1]
        kernel_row(s, kernel, indices[begin:end], values[begin:end], sq[t], 0, min(first + t, W.shape[1]), W[t])


@compiled
def _map_rows(s, kernel, sq, first, W):
    for t in range(sq.shape[0]):
        n = min(first + t, W.shape[1])
        map_row(kernel, W[t, :n], s.sq[:n], sq[t])
        s.counts[EVALUATIONS] += n


def kernel_values(U: Union, kernel: Kernel, q: Queries, first: int, evaluator: Evaluator) -> np.ndarray:
    """W for a block whose examples have the slots from `first` on; for queries without slots, first = all slots."""
    W, _ = evaluator.products(U.vectors, q, within=False)
    if len(W):
        _map_rows(U.vectors, kernel, q.sq, first, W)
    else:
        W = np.empty((len(q.sq), U.n_slots), np.float32)
        _add_rows(U.vectors, kernel, *q, first, W)
    return W


def columns_of(U: Union, s: Expansion) -> np.ndarray:
    """The union's slots of the vectors that an expansion has in its slots."""
    return U.slots_of(s.ids[: s.counts[SLOTS]])


def values_of(
    U: Union, W: np.ndarray, first: int, rows: np.ndarray, s: Expansion, part: slice
) -> tuple[np.ndarray, np.ndarray, bool]:
    """P and G of a part of the block's examples in these rows for one expansion, mapped; see `arrival`."""
    own = rows[part]
    values = W[own]
    return values.take(columns_of(U, s), axis=1), values.take(first + own, axis=1), True


class Terms(NamedTuple):
    """The sums that several expansions make of a row of W: expansion k has the terms from ends[k] to ends[k + 1]."""

    ends: np.ndarray
    columns: np.ndarray
    alpha: np.ndarray
    bias: np.ndarray


def terms_of(U: Union, parts: list[tuple[np.ndarray, np.ndarray, float]]) -> Terms:
    """The terms of expansions whose vectors have these numbers, with coefficients and constants."""
    numbers, alpha, bias = zip(*parts, strict=True) if parts else ((), (), ())
    ends = np.cumsum([0, *map(len, numbers)])
    columns = U.slots_of(np.concatenate([np.zeros(0, np.int64), *numbers]))
    return Terms(ends, columns, np.concatenate([np.zeros(0), *alpha]), np.array(bias, np.float64))


@compiled
def decide(W, terms, out):
    """out[t, k] = sum_s alpha_s k(x_s, x) + b for the queries t that W has rows of, by expansion k."""
    row = np.empty(terms.columns.shape[0], np.float32)
    for t in range(out.shape[0]):
        for s in range(row.shape[0]):
            row[s] = W[t, terms.columns[s]]
        for k in range(out.shape[1]):
            begin, end = terms.ends[k], terms.ends[k + 1]
            out[t, k] = expansion_sum(terms.alpha[begin:end], row[begin:end]) + terms.bias[k]


# ------------------------------------------------------------------------------------------------- vectors come and go


def add_block(
    U: Union,
    kernel: Kernel,
    q: Queries,
    raw: RawRows,
    numbers: np.ndarray,
    user_ids: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Give a block of examples slots until it is settled; room must have been reserved."""
    own = slice(U.n_slots, U.n_slots + len(numbers))
    U.user_ids[own], U.weights[own] = user_ids, weights  # Before the slots exist: an interruption finds no stale ones.
    _add_block(U.vectors, kernel, block_of(q, raw, numbers))


def with_vectors(
    U: Union,
    kernel: Kernel,
    q: Queries,
    numbers: np.ndarray,
    user_ids: np.ndarray,
    weights: np.ndarray,
    n_features: int,
    raw: RawRows = NO_ROWS,
) -> Union:
    """The union with these vectors behind its own; `raw` has their features as they came, if they are scaled."""
    done = 0
    while done < len(q.sq):
        rest = q.part(done, len(q.sq))
        U = make_room(U, rest, n_features)
        n = min(arrival.n_fitting(U.vectors, rest), len(U.user_ids) - U.n_slots)
        own = slice(done, done + n)
        storage.require_room(U.vectors, n_features)
        of_rest = raw.part(done, done + n) if len(raw.sq) else raw
        add_block(U, kernel, rest.part(0, n), of_rest, numbers[own], user_ids[own], weights[own])
        done += n
    return U


def block_of(q: Queries, raw: RawRows, numbers: np.ndarray) -> Block:
    """Examples without boxes."""
    none = np.zeros(len(numbers))
    return Block(*q, none, none, numbers, numbers, NOTHING_SAID, raw.indptr, raw.columns, raw.values)


@compiled
def _add_block(s, kernel, block):
    for t in range(block.sq.shape[0]):
        e = example_of(block, t, 0.0, 1.0, np.nan)
        slot = append(s, kernel, e.indices, e.values, e.sq, e.y, e.lo, e.hi, e.id, 0, 0.0)
        store_raw_of(s, slot, block, t)


@compiled
def _bury_others(s, used):
    for t in range(used.shape[0]):
        if not used[t] and s.y[t] != 0:
            bury(s, t)


@compiled
def _settle_block(s, user_ids, weights, kernel, block, first, used):
    """Take back the slots from `first` on, which a block of examples has, and give new ones to the examples in use.

    Slots before `first` that are not in use become holes.
    """
    for t in range(block.sq.shape[0]):
        for p in range(block.indptr[t], block.indptr[t + 1]):
            if s.counts[STORAGE] == COLUMNS:
                s.columns[block.indices[p], first + t] = 0.0
            elif s.counts[STORAGE] != COMPRESSED:
                s.bits[block.indices[p], first + t] = 0
    s.counts[SLOTS] = first
    for t in range(block.sq.shape[0]):
        if used[first + t]:
            e, k = example_of(block, t, 0.0, 1.0, np.nan), first + t
            slot = append(s, kernel, e.indices, e.values, e.sq, e.y, e.lo, e.hi, s.ids[k], 0, 0.0)
            user_ids[slot], weights[slot] = user_ids[k], weights[k]
            store_raw_of(s, slot, block, t)
    _bury_others(s, used[:first])


def settle_block(U: Union, kernel: Kernel, q: Queries, raw: RawRows, first: int, used: np.ndarray) -> None:
    """After a block was learned: keep the vectors that are `used`, (n_slots,) bool.

    Before the block has its slots, and a second time, nothing happens.
    """
    if U.n_slots == first + len(q.sq):
        block = block_of(q, raw, np.zeros(len(q.sq), np.int64))
        _settle_block(U.vectors, U.user_ids, U.weights, kernel, block, first, used)


def settle(U: Union, expansions: Iterable[Expansion]) -> None:
    """After members have left: keep the vectors that have a slot in one of the expansions."""
    _bury_others(U.vectors, used_by(U, expansions))


def used_by(U: Union, expansions: Iterable[Expansion]) -> np.ndarray:
    """Which vectors have a slot in one of the expansions, holes included, (n_slots,) bool."""
    used = np.zeros(U.n_slots, bool)
    for s in expansions:
        used[columns_of(U, s)] = True
    return used
