"""What happens to an example on its way into a learner, whichever it is: checks, its kernel row, blocks of examples.

A learner's `learn_block` stops early when room must be made, and returns how many examples it has learned.  So holes
are squeezed out and features compressed at the same examples however a stream is cut into blocks, and sums are made in
the same order.

Each learner has a `learn_example` and a `learn_block` of its own around its `learn_query`: numba cannot cache a
function that is given another one.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
x        features of one example, in the order of `columns`           (d,) float64
lo, hi   boxes of the examples                                        (B,) float64
P, G     inner products with the members, and within the block, or    see `blocks`
         kernel values already, if `mapped`
arrivals the example of the block that is in slot first + k           (B,) int64
margins  f(x) of each example before it was learned                   (B,) float64
======== ============================================================ ================
"""

import numpy as np

from streamsvm.core._jit import compiled, inner
from streamsvm.core.blocks import LARGEST_SQUARED_NORM, Queries, compress_example, expansion_sum, is_binary_block
from streamsvm.core.expansion import (
    BITS,
    COMPRESSED,
    EVALUATIONS,
    SLOTS,
    STORAGE,
    WIDE,
    WIDTH,
    Expansion,
    is_binary,
    is_wide,
    needs_reserve,
    note_features,
)
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, map_row, self_product
from streamsvm.core.rows import all_ones, kernel_row, wants_rows
from streamsvm.core.storage import reserve

LEARNED, NO_ROOM, NOT_FINITE, OVERFLOW = range(4)


@inner
def arrive(s, kernel, columns, x):
    """Compress one example into the member buffers, and put its kernel row into `scratch`.

    Returns a status, the number of its non-zero features and its squared norm.  Nothing has happened if the status is
    NO_ROOM (call `reserve`, then again), NOT_FINITE, or OVERFLOW (of the kernel); LEARNED: the example can be learned.
    """
    nnz, sq = compress_example(s, columns, x)
    if not sq < LARGEST_SQUARED_NORM:  # true for NaN as well
        return NOT_FINITE, nnz, sq
    if abs(self_product(kernel, sq)) > LARGEST_KERNEL_VALUE:
        return OVERFLOW, nnz, sq
    indices, values = s.member_indices[:nnz], s.member_values[:nnz]
    n = s.counts[SLOTS]
    note_features(s, indices)
    if (
        needs_reserve(s)
        or wants_rows(s.counts, s.rows)
        or (s.counts[STORAGE] == BITS and not all_ones(values))
        or (s.counts[STORAGE] == COMPRESSED and s.starts[n] + nnz > s.sparse_indices.shape[0])
    ):
        return NO_ROOM, nnz, sq
    kernel_row(s, kernel, indices, values, sq, 0, n, s.scratch)
    return LEARNED, nnz, sq


@inner
def is_member(ids, y, id):
    """Whether a live member has this id."""
    for t in range(ids.shape[0]):
        if ids[t] == id and y[t] != 0:
            return True
    return False


@inner
def row_of_block(s, kernel, indices, values, sq, P, G, mapped, arrivals, t, first):
    """scratch = kernel row of the block's t-th example, from the products if there are any.

    Those with the slots before `first` are in P; members that joined during the block are examples of the block,
    theirs are in G.  Without products, the row is added up; the bits are the same.  Values that are `mapped` were
    computed, and counted, elsewhere.
    """
    n = s.counts[SLOTS]
    if G.shape[0] == 0:
        kernel_row(s, kernel, indices, values, sq, 0, n, s.scratch)
        return
    for k in range(first):
        s.scratch[k] = P[t, k]
    for k in range(first, n):
        s.scratch[k] = G[t, arrivals[k - first]]
    if not mapped:
        map_row(kernel, s.scratch[:n], s.sq[:n], sq)
        s.counts[EVALUATIONS] += n


@compiled
def decide_example(s, kernel, columns, x, b):
    """f(x) + b for one query, features x (float64) in these columns; NaN if a feature is not finite."""
    n = s.counts[SLOTS]
    nnz, sq = compress_example(s, columns, x)
    if not sq < LARGEST_SQUARED_NORM:
        return np.nan
    kernel_row(s, kernel, s.member_indices[:nnz], s.member_values[:nnz], sq, 0, n, s.scratch)
    return expansion_sum(s.alpha[:n], s.scratch[:n]) + b


def make_room(s: Expansion, q: Queries, n_features: int) -> Expansion:
    """Room for the first of these examples at least, `n_features` being how many features there are so far.

    It is for all of them, unless that takes a matrix that is wide: the members may be compressed before the slots and
    the rows are used.
    """
    s = s._replace(counts=s.counts.copy())
    n, nnz, width = int(s.counts[SLOTS]), len(q.indices), q.width
    s.counts[WIDTH] = max(int(s.counts[WIDTH]), q.part(0, 1).width)
    n_new, widest = len(q.sq), max(width, int(s.counts[WIDTH]))
    if is_wide(s.counts, n + n_new, widest, s.starts[n] + nnz):
        n_new, width = min(n_new, max(1, int(s.counts[WIDE]) // widest - n)), 0
    return reserve(s, n_new, n_features, is_binary(s) and is_binary_block(q), nnz, width)


def n_fitting(s: Expansion, q: Queries) -> int:
    """How many of these examples have features that all fit into the matrix, if there is one."""
    return len(q.sq) if s.counts[STORAGE] == COMPRESSED else q.n_within(max(len(s.bits), len(s.columns)))
