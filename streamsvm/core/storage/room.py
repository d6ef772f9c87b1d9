"""Room for new members: an expansion grows, and squeezes out the holes of members that have left."""

import numpy as np

from streamsvm.core.expansion import (
    CACHE_BYTES,
    COMPRESSED,
    HAND,
    HOLES,
    ROWS,
    SLOT_DOWN,
    SLOT_UP,
    SLOTS,
    STORAGE,
    WIDTH,
    Expansion,
    find_extremes,
    is_binary,
    is_wide,
    many_unlisted,
    too_many_holes,
    wants_rows,
)
from streamsvm.core.rows import move_rows
from streamsvm.core.storage.cached import more_rows, row_width
from streamsvm.core.storage.features import (
    compress,
    grown,
    grown_features,
    list_features,
    more_features,
    real_valued,
)
from streamsvm.core.storage.members import (
    PER_SLOT,
    copy,
    doubled,
    empty,
    feature_matrix,
    live_slots,
    rows_of,
    slots_for,
)


def reserve(s: Expansion, n_new: int, n_features: int, binary: bool, nnz: int, width: int | None = None) -> Expansion:
    """Make room for `n_new` more slots with `nnz` non-zero features and for `n_features` features in all.

    Squeezes holes out, widens or compresses the features (no longer `binary`, or too wide) and lets the cache grow.
    The matrix gets rows for the features that were noted and for those below `width` (default: all).  Of `s` itself
    only the cached rows change.
    """
    width = max(n_features if width is None else width, int(s.counts[WIDTH]))
    if s.counts[SLOTS] == 0 and s.counts[STORAGE] != COMPRESSED:
        s = _begun(s, n_new, n_features, binary and is_binary(s), width)
    s = s._replace(counts=s.counts.copy())
    if too_many_holes(s.counts):
        s = keep(copy(s), live_slots(s))
    n = int(s.counts[SLOTS])
    if is_wide(s.counts, n, s.counts[WIDTH], s.starts[n]):
        s = compress(s)
    if not binary and is_binary(s):
        s = real_valued(s)
    if n + n_new > s.alpha.shape[0]:
        s = _more_slots(s, slots_for(n + n_new))
    if n_features > s.member_indices.shape[0]:
        s = more_features(s, doubled(s.member_indices.shape[0], n_features))
    if s.counts[STORAGE] != COMPRESSED and width > len(feature_matrix(s)):
        s = s._replace(**grown_features(s, doubled(len(feature_matrix(s)), width), s.alpha.shape[0]))
    if s.counts[STORAGE] == COMPRESSED:
        if s.starts[n] + nnz > s.sparse_indices.shape[0]:
            M = int(s.starts[n] + nnz) * 3 // 2
            s = s._replace(sparse_indices=grown(s.sparse_indices, M), sparse_values=grown(s.sparse_values, M))
        if many_unlisted(s.counts) or len(s.lists) <= n_features:
            s = list_features(s)
    if wants_rows(s.counts, s.rows) or s.counts[ROWS] + n_new > s.rows.shape[0]:
        s = more_rows(s, max(s.rows.shape[0] * 5 // 4, int(s.counts[ROWS]) + n_new))
    return s


def _begun(s: Expansion, n_new: int, n_features: int, binary: bool, width: int) -> Expansion:
    """An expansion without members in the room that it needs, made at once: there is nothing to move."""
    N, D, W = s.alpha.shape[0], s.member_indices.shape[0], len(feature_matrix(s))
    n_slots, size = max(N, slots_for(n_new)), (doubled(D, n_features), doubled(W, width))
    new = empty(int(s.counts[CACHE_BYTES]), n_slots, *size, binary, s.raw.shape[1])
    storage = new.counts[STORAGE]
    new.counts[:], new.extremes[:], new.losses[:] = s.counts, s.extremes, s.losses
    new.counts[[STORAGE, ROWS, HAND]] = storage, 0, 0
    return more_rows(new, n_slots)


def _more_slots(s: Expansion, N: int) -> Expansion:
    s = s._replace(
        **{name: grown(getattr(s, name), N) for name in PER_SLOT},
        **grown_features(s, len(feature_matrix(s)), N),
        starts=grown(s.starts, N + 1),
        raw=grown(s.raw, N, s.raw.shape[1]),
        row_of=grown(s.row_of + 1, N) - 1,  # -1 behind, too
        scratch=np.zeros(N, np.float32),
        sums=np.zeros(N, np.uint8),
    )
    return row_width(s, N, s.rows.shape[0])


def keep(s: Expansion, order: np.ndarray) -> Expansion:
    """Keep the members in these slots, in this order, and squeeze out everything else.

    Cached rows move along; if the order changes, only complete ones do.
    """
    n, m, rising = int(s.counts[SLOTS]), len(order), bool((order[1:] > order[:-1]).all())
    if m == n and rising:
        return s
    extremes = np.searchsorted(order, s.counts[[SLOT_UP, SLOT_DOWN]]) if rising else None
    move_rows(s, order, n, extremes is not None, np.empty(m, np.float32))
    _move_members(s, order, n)
    s.counts[SLOTS], s.counts[HOLES] = m, 0
    if s.counts[STORAGE] == COMPRESSED:
        s = list_features(s)
    if extremes is None:
        find_extremes(s)
    else:
        s.counts[[SLOT_UP, SLOT_DOWN]] = np.where(s.counts[[SLOT_UP, SLOT_DOWN]] >= 0, extremes, -1)
    return s


def _move_members(s: Expansion, order: np.ndarray, n: int) -> None:
    """Move the member in slot order[t] of the n slots to slot t, and empty the slots behind; rows are not moved."""
    m, starts = len(order), np.cumsum(np.diff(s.starts[: n + 1])[order])
    for name in (*PER_SLOT, "raw"):
        of_slots = getattr(s, name)
        of_slots[:m] = of_slots[order]
        of_slots[m:n] = 0
    if s.counts[STORAGE] == COMPRESSED:
        moved = rows_of(s, order, len(s.member_indices))
        s.sparse_indices[: moved.nnz], s.sparse_values[: moved.nnz] = moved.indices, moved.data
    else:
        features = feature_matrix(s)[: s.counts[WIDTH]]
        features[:, :m] = features.take(order, axis=1)
        features[:, m:n] = 0
    s.starts[1 : m + 1] = starts


def require_room(s: Expansion, n_features: int) -> Expansion:
    """Check that the expansion has room for these features, since compiled code checks no bounds; return it."""
    if n_features > s.member_indices.shape[0]:
        raise AssertionError(f"{n_features} features, but room for {s.member_indices.shape[0]}; please report this")
    return s
