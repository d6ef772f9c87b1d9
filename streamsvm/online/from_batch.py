"""Turns a solution of the batch solver into an expansion, as if it had been learned from a stream."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from streamsvm.batch.problem import penalties
from streamsvm.core import storage
from streamsvm.core.blocks import Queries
from streamsvm.core.expansion import SLOTS, Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.online.lasvm import append_block


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
