"""Hashes of examples and of numbers.

Equal examples have equal hashes, and the order of the hashes is a shuffle.
"""

from typing import Any

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.compiling._jit import compiled

FACTOR, SHIFT = np.uint64(0xD6E8FEB86659FD93), np.uint64(32)
STEP, MIX, MIX_AGAIN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def spread(numbers):
    """Numbers of 64 bits, (n,) uint64, spread over all 64 bits, each to another one.

    Of the multiples of `STEP`, this is the sequence of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).  Compiled code
    takes `inner(spread)`, which is for one number.
    """
    numbers = (numbers ^ (numbers >> np.uint64(30))) * MIX
    numbers = (numbers ^ (numbers >> np.uint64(27))) * MIX_AGAIN
    return numbers ^ (numbers >> np.uint64(31))


@compiled
def _mix(starts, words, hashes):
    """Mix the words of each row into its hash."""
    for t in range(hashes.shape[0]):
        h = hashes[t]
        for k in range(starts[t], starts[t + 1]):
            h = (h ^ np.uint64(words[k])) * FACTOR
            h ^= h >> SHIFT
        hashes[t] = h * FACTOR


def row_hashes(X: Any, labels: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each row and its label, (n,) uint64.

    Parameters
    ----------
    X
        float32 or float64 in C order, or compressed rows of these, without duplicates and with rising indices.
    labels
        Integers, (n,).
    """
    hashes = labels.astype(np.uint64) + np.uint64(1)
    if sp.issparse(X):
        starts = X.indptr.astype(np.int64)
        _mix(starts, X.indices.astype(np.uint32), hashes)
        _mix(starts * (X.dtype.itemsize // 4), np.ascontiguousarray(X.data).view(np.uint32), hashes)
    else:
        words = np.ascontiguousarray(X).view(np.uint32)
        n, width = words.shape
        _mix(np.arange(n + 1) * width, words.reshape(-1), hashes)
    return hashes
