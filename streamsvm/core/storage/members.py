"""The members of an expansion: an empty one, what it holds, and a copy of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.costs import SECOND_LEVEL
from streamsvm.core.expansion import (
    BITS,
    CACHE_BYTES,
    COLUMNS,
    COMPRESSED,
    COUNTS,
    HOLES,
    MIN_CACHED_ROWS,
    SLOTS,
    STORAGE,
    WIDE,
    WIDTH,
    Expansion,
    find_extremes,
    is_binary,
)
from streamsvm.core.scaling.state import NO_ROWS, RawRows

WIDE_BYTES = 4 * SECOND_LEVEL  # a larger feature-major float32 matrix is compressed if it is sparse
SAVED = ("alpha", "g", "lo", "hi", "up", "down", "y", "ids", "born", "sq", "self_k")  # the arrays of a snapshot
PER_SLOT = (*SAVED, "serial")
CHANGING = (  # when members leave
    *("alpha", "g", "lo", "hi", "up", "down", "y", "row_of", "member_of", "row_length", "recent"),
    *("counts", "extremes", "losses"),
)


def slots_for(needed: int) -> int:
    """Half as many again, as an odd multiple of 64: the features of one slot must not share a cache set."""
    return (needed * 3 // 2 // 64 + 1 | 1) * 64


def doubled(size: int, needed: int) -> int:
    while size < needed:
        size *= 2
    return size


def empty(
    cache_bytes: int,
    n_slots: int = slots_for(0),
    n_features: int = 1,
    width: int = 1,
    binary: bool = True,
    n_raw: int = 0,
) -> Expansion:
    """An expansion without members.

    Parameters
    ----------
    cache_bytes
        Memory for kernel rows.
    n_slots, n_features
        Room for members and for features.
    width
        Rows of the feature matrix.
    binary
        Whether features count as binary until another value arrives.
    n_raw
        How many unscaled features it keeps of each member.
    """
    N, D, R = n_slots, n_features, MIN_CACHED_ROWS
    s = Expansion(
        **{name: np.zeros(N) for name in ("alpha", "g", "lo", "hi", "up", "down", "self_k")},
        y=np.zeros(N, np.int8),
        ids=np.zeros(N, np.int64),
        born=np.zeros(N, np.int64),
        serial=np.zeros(N, np.int64),
        sq=np.zeros(N, np.float32),
        columns=np.zeros((0, 0) if binary else (width, N), np.float32),
        bits=np.zeros((width, N) if binary else (0, 0), np.uint8),
        starts=np.zeros(N + 1, np.int64),
        sparse_indices=np.zeros(0, np.int32),
        sparse_values=np.zeros(0, np.float32),
        lists=np.zeros(1, np.int64),
        list_slots=np.zeros(0, np.int32),
        list_values=np.zeros(0, np.float32),
        raw=np.zeros((N, n_raw)),
        query=np.zeros(0, np.float32),
        rows=np.zeros((R, N), np.float32),
        row_of=np.full(N, -1, np.int32),
        member_of=np.full(R, -1, np.int32),
        row_length=np.zeros(R, np.int32),
        recent=np.zeros(R, np.uint8),
        scratch=np.zeros(N, np.float32),
        sums=np.zeros(N, np.uint8),
        member_indices=np.zeros(D, np.int32),
        member_values=np.zeros(D, np.float32),
        counts=np.zeros(COUNTS, np.int64),
        extremes=np.zeros(2),
        losses=np.zeros(4),
    )
    s.counts[CACHE_BYTES], s.counts[WIDE] = cache_bytes, WIDE_BYTES // 4
    s.counts[STORAGE] = BITS if binary else COLUMNS
    find_extremes(s)
    return s


def n_members(s: Expansion) -> int:
    """The number of examples that the expansion holds."""
    return int(s.counts[SLOTS] - s.counts[HOLES])


def live_slots(s: Expansion) -> np.ndarray:
    """The slots that hold a member, in order of arrival."""
    return np.flatnonzero(s.y[: s.counts[SLOTS]])


def features_of(s: Expansion, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """The non-zero features of a member, int32 columns in order and float32 values."""
    if s.counts[STORAGE] == COMPRESSED:
        own = slice(int(s.starts[slot]), int(s.starts[slot + 1]))
        return s.sparse_indices[own].copy(), s.sparse_values[own].copy()
    column = feature_matrix(s)[:, slot]
    indices = np.flatnonzero(column).astype(np.int32)
    return indices, column[indices].astype(np.float32)


def rows_of(s: Expansion, slots: np.ndarray, n_features: int) -> sp.csr_matrix:
    """The features of some members as the rows of a sparse float32 matrix, (len(slots), n_features)."""
    if s.counts[STORAGE] == COMPRESSED:
        shape = int(s.counts[SLOTS]), n_features
        every = sp.csr_matrix((s.sparse_values, s.sparse_indices, s.starts[: shape[0] + 1]), shape=shape, copy=False)
        return every[slots]
    features = np.ascontiguousarray(feature_matrix(s)[: s.counts[WIDTH], slots].T, np.float32)
    used = features != 0.0
    starts = np.append(0, np.cumsum(np.count_nonzero(used, axis=1)))
    column = np.nonzero(used)[1].astype(np.int32)
    return sp.csr_matrix((features[used], column, starts), shape=(len(slots), n_features))


def raw_rows_of(s: Expansion, slots: np.ndarray) -> RawRows:
    """The unscaled features of some members, by their places; none if features are not scaled."""
    n, P = len(slots), s.raw.shape[1]
    if P == 0:
        return NO_ROWS
    raw = s.raw[slots]
    return RawRows(np.arange(0, n * P + 1, P), np.tile(np.arange(P), n), raw.ravel(), np.square(raw).sum(axis=1))


def feature_matrix(s: Expansion) -> np.ndarray:
    """The feature-major matrix."""
    return s.bits if is_binary(s) else s.columns


def copy(s: Expansion) -> Expansion:
    """A copy to work on while `s` stays as it is; both share the cached rows."""
    own = {name: array.copy() for name, array in s._asdict().items() if name != "rows"}
    return s._replace(**own)


def with_own_coefficients(s: Expansion) -> Expansion:
    """A copy whose members may leave, and to which others may be appended, while `s` stays as it is.

    Both share cached rows and what the members are.  If the copy is given up, `clear_room` of `s` must follow.
    """
    return s._replace(**{name: getattr(s, name).copy() for name in CHANGING})


def clear_room(s: Expansion) -> None:
    """Empty the features of the slots that are not in use: one with the same features may have appended to them."""
    feature_matrix(s)[:, s.counts[SLOTS] :] = 0


def is_stored(s: Expansion, slot: int, indices: np.ndarray, values: np.ndarray) -> bool:
    """Whether these are the features of the member in a slot."""
    own_indices, own_values = features_of(s, slot)
    return np.array_equal(own_indices, indices) and np.array_equal(own_values, values)


def owned(value: Any) -> Any:
    """Copy an array if it is read-only or mapped from a file, as joblib's workers get theirs.

    Does the same to each item of a tuple, a list or a dict; returns anything else as it is.
    """
    if isinstance(value, np.ndarray):
        return value if type(value) is np.ndarray and value.flags.writeable else np.array(value, order="C")
    if isinstance(value, dict):
        return {name: owned(item) for name, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(owned, value))
    return type(value)(map(owned, value)) if type(value) in (list, tuple) else value
