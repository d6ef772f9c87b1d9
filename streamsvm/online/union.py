"""The union: one store of vectors for several expansions, so that a kernel value is computed once for all of them.

The expansions stand for classes that learn from the same examples, each of which keeps those that matter to it.  The
union has a slot for every vector that has one in any of them, in the order of their numbers.  The kernel values of a
block of examples with the union, and with each other, are one matrix; what an expansion needs are columns of it.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
U        the union: an expansion of which only features, `sq` and     `Expansion`
         the next three are in use
U.ids    numbers of the examples, rising: their ids in the classes    (N,) int64
U.born   the users' ids of the examples                               (N,) int64
U.hi     weights of the examples                                      (N,) float64
first    slots of the union before the block                          int
W        kernel values of a block's t-th example with the union, up   (B, n) float32
         to slot first + t, where it has its own
columns  the columns of W that belong to an expansion's slots         (m,) int64
======== ============================================================ ================

A row of W is computed by what computes the rows of a single expansion, and has the same bits.
"""

from collections.abc import Iterable

import numpy as np

from streamsvm.core._jit import compiled, inner
from streamsvm.core.blocks import Queries, expansion_sum
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import COLUMNS, COMPRESSED, EVALUATIONS, SLOTS, STORAGE, Expansion, append, bury
from streamsvm.core.kernels import Kernel, map_row
from streamsvm.core.rows import kernel_row

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


def kernel_values(U: Expansion, kernel: Kernel, q: Queries, first: int, evaluator: Evaluator) -> np.ndarray:
    """W for a block whose examples have the slots from `first` on; for queries that have none, all slots are before."""
    W, _ = evaluator.products(U, q, within=False)
    if len(W):
        _map_rows(U, kernel, q.sq, first, W)
    else:
        W = np.empty((len(q.sq), int(U.counts[SLOTS])), np.float32)
        _add_rows(U, kernel, *q, first, W)
    return W


def columns_of(U: Expansion, s: Expansion) -> np.ndarray:
    """Where the union has the vectors of an expansion's slots."""
    return np.searchsorted(U.ids[: U.counts[SLOTS]], s.ids[: s.counts[SLOTS]])


def values_of(
    U: Expansion, W: np.ndarray, first: int, s: Expansion, part: slice
) -> tuple[np.ndarray, np.ndarray, bool]:
    """P and G of a part of the block for one expansion, mapped; see `arrival`."""
    P = W[part].take(columns_of(U, s), axis=1)
    G = np.ascontiguousarray(W[part, first + part.start : first + part.stop])
    return P, G, True


@compiled
def decide(W, columns, alpha, b, out):
    """out = sum_s alpha_s k(x_s, x) + b for the queries that W has rows of, by one expansion."""
    row = np.empty(columns.shape[0], np.float32)
    for t in range(out.shape[0]):
        for k in range(columns.shape[0]):
            row[k] = W[t, columns[k]]
        out[t] = expansion_sum(alpha, row) + b


# ------------------------------------------------------------------------------------------------------ who has a slot


@compiled
def add_block(s, kernel, indptr, indices, values, sq, numbers, ids, weights):
    """Give a block of examples slots for the time being; room must have been reserved."""
    for t in range(sq.shape[0]):
        begin, end = indptr[t], indptr[t + 1]
        _add(s, kernel, indices[begin:end], values[begin:end], sq[t], numbers[t], ids[t], weights[t])


@inner
def _add(s, kernel, indices, values, sq, number, user_id, weight):
    k = append(s, kernel, indices, values, sq, 1.0, 0.0, 1.0, number, user_id, 0.0)
    s.hi[k] = weight


@compiled
def _bury_others(s, used):
    for t in range(used.shape[0]):
        if not used[t] and s.y[t] != 0:
            bury(s, t)


@compiled
def _settle_block(s, kernel, indptr, indices, values, sq, first, used):
    """Take back the slots from `first` on, which a block of examples has, and give anew to those in use.

    Of the slots before, those that are not in use are holes from now on.
    """
    for t in range(sq.shape[0]):
        for p in range(indptr[t], indptr[t + 1]):
            if s.counts[STORAGE] == COLUMNS:
                s.columns[indices[p], first + t] = 0.0
            elif s.counts[STORAGE] != COMPRESSED:
                s.bits[indices[p], first + t] = 0
    s.counts[SLOTS] = first
    for t in range(sq.shape[0]):
        if used[first + t]:
            begin, end, k = indptr[t], indptr[t + 1], first + t
            _add(s, kernel, indices[begin:end], values[begin:end], sq[t], s.ids[k], s.born[k], s.hi[k])
    _bury_others(s, used[:first])


def settle_block(U: Expansion, kernel: Kernel, q: Queries, first: int, expansions: Iterable[Expansion]) -> None:
    """After a block was learned: those of its examples stay that have a slot in one of the expansions.

    Before the block has its slots, and a second time, nothing happens.
    """
    if U.counts[SLOTS] == first + len(q.sq):
        _settle_block(U, kernel, *q, first, _used(U, expansions))


def settle(U: Expansion, expansions: Iterable[Expansion]) -> None:
    """After members have left: those stay that have a slot in one of the expansions."""
    _bury_others(U, _used(U, expansions))


def _used(U: Expansion, expansions: Iterable[Expansion]) -> np.ndarray:
    used = np.zeros(int(U.counts[SLOTS]), bool)
    for s in expansions:
        used[columns_of(U, s)] = True
    return used
