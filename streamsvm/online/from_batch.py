"""Makes members of many examples at once: those of a block, or of a solution of the batch solver."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from streamsvm.batch.problem import penalties
from streamsvm.core import storage
from streamsvm.core.blocks import Queries, is_binary_block
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.expansion import SLOTS, WIDTH, Expansion, append, is_binary
from streamsvm.core.kernels import Kernel
from streamsvm.online.arrival import label_of


class Members(NamedTuple):
    """The members of a solution: boxes, coefficients, gradients, ids and ages, (n,) each."""

    lo: np.ndarray
    hi: np.ndarray
    alpha: np.ndarray
    g: np.ndarray
    ids: np.ndarray
    born: np.ndarray


def with_members(
    s: Expansion, kernel: Kernel, blocks: Iterable[Queries], n_features: int, members: Members
) -> Expansion:
    """An expansion without members, with these; their features come in blocks, in the same order."""
    done = 0
    for q in blocks:
        own = slice(done, done + len(q.sq))
        s = append_block(s, kernel, q, n_features, members.lo[own], members.hi[own])
        done = own.stop
    n = int(s.counts[SLOTS])
    s.alpha[:n], s.g[:n], s.ids[:n], s.born[:n] = members.alpha, members.g, members.ids, members.born
    s.up[:n], s.down[:n] = penalties(members.alpha, members.lo, members.hi)
    storage.find_extremes(s)
    return s


def append_block(
    s: Expansion, kernel: Kernel, q: Queries, n_features: int, lo: np.ndarray, hi: np.ndarray
) -> Expansion:
    """Make members of a block of examples with alpha = 0, without their rows; `find_extremes` must follow."""
    binary = is_binary(s) and is_binary_block(q)
    s.counts[WIDTH] = max(int(s.counts[WIDTH]), q.width)
    s = storage.reserve(s, len(q.sq), n_features, binary, len(q.indices), q.width)
    _append_block(s, kernel, *q, lo, hi)
    return s


@compiled
def _append_block(s, kernel, indptr, indices, values, sq, lo, hi):
    for t in range(sq.shape[0]):
        begin, end = indptr[t], indptr[t + 1]
        y = label_of(hi[t])
        append(s, kernel, indices[begin:end], values[begin:end], sq[t], y, lo[t], hi[t], s.counts[SLOTS], t, y)
