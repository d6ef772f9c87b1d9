"""Room for an expansion: making, widening and squeezing its arrays.

Everything that allocates or moves memory is here, in plain numpy, and runs between two calls of compiled code.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from streamsvm.core.blocks import Queries, is_binary_block, spread_out
from streamsvm.core.expansion import (
    APPENDED,
    BITS,
    CACHE_BYTES,
    COLUMNS,
    COMPRESSED,
    COUNTS,
    FORBIDDEN,
    G_DOWN,
    G_UP,
    HAND,
    HOLES,
    LISTED,
    ROWS,
    SLOT_DOWN,
    SLOT_UP,
    SLOTS,
    STORAGE,
    WIDE,
    WIDTH,
    Expansion,
    is_binary,
    is_wide,
    many_unlisted,
    too_many_holes,
)
from streamsvm.core.rows import MIN_ROWS, shift_rows, wants_rows
from streamsvm.core.scaling import NO_ROWS, RawRows

MIN_SLOTS, MIN_FEATURES = 64, 4
WIDE_BYTES = 4 << 20  # a larger feature-major float32 matrix is compressed if it is sparse
SAVED = ("alpha", "g", "lo", "hi", "up", "down", "y", "ids", "born", "sq", "self_k")  # the arrays of a snapshot
PER_SLOT = (*SAVED, "serial")


def empty(cache_bytes: int, n_slots: int = MIN_SLOTS, n_features: int = MIN_FEATURES) -> Expansion:
    """An expansion without members; its features count as binary until another value arrives."""
    N, D, R = n_slots, n_features, MIN_ROWS
    s = Expansion(
        **{name: np.zeros(N) for name in ("alpha", "g", "lo", "hi", "up", "down", "self_k")},
        y=np.zeros(N, np.int8),
        ids=np.zeros(N, np.int64),
        born=np.zeros(N, np.int64),
        serial=np.zeros(N, np.int64),
        sq=np.zeros(N, np.float32),
        columns=np.zeros((0, 0), np.float32),
        bits=np.zeros((D, N), np.uint8),
        starts=np.zeros(N + 1, np.int64),
        sparse_indices=np.zeros(0, np.int32),
        sparse_values=np.zeros(0, np.float32),
        lists=np.zeros(1, np.int64),
        list_slots=np.zeros(0, np.int32),
        list_values=np.zeros(0, np.float32),
        raw=np.zeros((N, 0)),
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
    find_extremes(s)
    return s


def find_extremes(s: Expansion) -> None:
    """Find the most violating pair from scratch: the largest g that may rise, the smallest g that may fall."""
    n = int(s.counts[SLOTS])
    rising, falling = np.flatnonzero(s.up[:n] == 0.0), np.flatnonzero(s.down[:n] == 0.0)
    s.extremes[:] = -FORBIDDEN, FORBIDDEN
    s.counts[SLOT_UP] = s.counts[SLOT_DOWN] = -1
    if len(rising):
        s.counts[SLOT_UP] = i = rising[np.argmax(s.g[rising])]
        s.extremes[G_UP] = s.g[i]
    if len(falling):
        s.counts[SLOT_DOWN] = j = falling[np.argmin(s.g[falling])]
        s.extremes[G_DOWN] = s.g[j]


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
    features = feature_matrix(s)[: s.counts[WIDTH], slots].T
    row, column = np.nonzero(features)
    starts = np.searchsorted(row, np.arange(len(slots) + 1))
    values = features[row, column].astype(np.float32)
    return sp.csr_matrix((values, column.astype(np.int32), starts), shape=(len(slots), n_features))


def raw_rows_of(s: Expansion, slots: np.ndarray) -> RawRows:
    """The unscaled features of some members, by their places; none if features are not scaled."""
    n, P = len(slots), s.raw.shape[1]
    if P == 0:
        return NO_ROWS
    raw = s.raw[slots]
    return RawRows(np.arange(0, n * P + 1, P), np.tile(np.arange(P), n), raw.ravel(), np.square(raw).sum(axis=1))


# ------------------------------------------------------------------------------------------------ room for new members


def reserve(s: Expansion, n_new: int, n_features: int, binary: bool, nnz: int, width: int | None = None) -> Expansion:
    """Make room for `n_new` more slots with `nnz` non-zero features and for `n_features` features in all.

    Squeezes holes out, widens or compresses the features (no longer `binary`, or too wide) and lets the cache grow.
    The matrix gets rows for the features that were noted and for those below `width` (default: all).  Of `s` itself
    only the cached rows change.
    """
    width = max(n_features if width is None else width, int(s.counts[WIDTH]))
    s = s._replace(counts=s.counts.copy())
    if too_many_holes(s.counts):
        s = keep(copy(s), live_slots(s))
    n = int(s.counts[SLOTS])
    if is_wide(s.counts, n, s.counts[WIDTH], s.starts[n]):
        s = _compress(s)
    if not binary and is_binary(s):
        s = _real_valued(s)
    if n + n_new > s.alpha.shape[0]:
        s = _more_slots(s, slots_for(n + n_new))
    if n_features > s.member_indices.shape[0]:
        s = more_features(s, doubled(s.member_indices.shape[0], n_features))
    if s.counts[STORAGE] != COMPRESSED and width > len(feature_matrix(s)):
        s = s._replace(**_grown_features(s, doubled(len(feature_matrix(s)), width), s.alpha.shape[0]))
    if s.counts[STORAGE] == COMPRESSED:
        if s.starts[n] + nnz > s.sparse_indices.shape[0]:
            s = _more_nonzeros(s, int(s.starts[n] + nnz) * 3 // 2)
        if many_unlisted(s.counts) or len(s.lists) <= n_features:
            s = list_features(s)
    if wants_rows(s.counts, s.rows) or s.counts[ROWS] + n_new > s.rows.shape[0]:
        s = _more_rows(s, max(s.rows.shape[0] * 5 // 4, int(s.counts[ROWS]) + n_new))
    return s


def doubled(size: int, needed: int) -> int:
    while size < needed:
        size *= 2
    return size


def slots_for(needed: int) -> int:
    """Half as many again, as an odd multiple of 64: the features of one slot must not share a cache set."""
    return (needed * 3 // 2 // 64 + 1 | 1) * 64


def _more_slots(s: Expansion, N: int) -> Expansion:
    def longer(a: np.ndarray, fill: int = 0, size: int = N) -> np.ndarray:
        out = np.full((*a.shape[:-1], size), fill, a.dtype)
        out[..., : a.shape[-1]] = a
        return out

    s = s._replace(
        **{name: longer(getattr(s, name)) for name in PER_SLOT},
        **_grown_features(s, len(feature_matrix(s)), N),
        starts=longer(s.starts, size=N + 1),
        raw=wider(s.raw, N, s.raw.shape[1]),
        row_of=longer(s.row_of, -1),
        scratch=np.zeros(N, np.float32),
        sums=np.zeros(N, np.uint8),
    )
    return row_width(s, N, s.rows.shape[0])


def row_width(s: Expansion, width: int, n_rows: int) -> Expansion:
    """Give cached rows another width, and the cache room for `n_rows` as far as its bytes allow; drops the others.

    It works in place: fresh memory costs more than the arithmetic on it.
    """
    R, old_width, rows = _allowed_rows(s, width, n_rows), s.rows.shape[1], _own(s.rows)
    used = min(int(s.counts[ROWS]), R)
    dropped = s.member_of[used : s.counts[ROWS]]
    s.row_of[dropped[dropped >= 0]] = -1
    if not used:
        rows = np.empty((R, width), np.float32)  # resizing would write zeros
    elif R * width > rows.size:
        rows.resize((R, width), refcheck=False)
    shift_rows(rows.reshape(-1), used, old_width, width)
    rows.resize((R, width), refcheck=False)
    np.minimum(s.row_length, width, out=s.row_length)
    s.counts[ROWS], s.counts[HAND] = used, 0
    return _with_rows(s, rows)


def _allowed_rows(s: Expansion, width: int, n_rows: int) -> int:
    return max(MIN_ROWS, min(n_rows, int(s.counts[CACHE_BYTES]) // (4 * max(width, 1))))


def _more_rows(s: Expansion, n_rows: int) -> Expansion:
    width = s.rows.shape[1]
    shape = _allowed_rows(s, width, n_rows), width
    if not s.counts[ROWS]:
        return _with_rows(s, np.empty(shape, np.float32))
    rows = _own(s.rows)
    rows.resize(shape, refcheck=False)  # grows in place: no other array shares the memory
    return _with_rows(s, rows)


def _own(rows: np.ndarray) -> np.ndarray:
    """The rows in memory that can be resized; unpickled arrays may borrow theirs."""
    return rows if rows.flags.owndata else rows.copy()


def _with_rows(s: Expansion, rows: np.ndarray) -> Expansion:
    used = min(int(s.counts[ROWS]), rows.shape[0])

    def of_used(a: np.ndarray, fill: int) -> np.ndarray:
        out = np.full(rows.shape[0], fill, a.dtype)
        out[:used] = a[:used]
        return out

    return s._replace(
        rows=rows,
        member_of=of_used(s.member_of, -1),
        row_length=of_used(s.row_length, 0),
        recent=of_used(s.recent, 0),
    )


def wider(a: np.ndarray, n_rows: int, n_columns: int) -> np.ndarray:
    """The matrix with more rows and columns, of zeros."""
    out = np.zeros((n_rows, n_columns), a.dtype)
    out[: a.shape[0], : a.shape[1]] = a
    return out


def with_raw(s: Expansion, n_places: int) -> Expansion:
    """An expansion without members that keeps the unscaled features of those to come."""
    return s._replace(raw=np.zeros((len(s.alpha), n_places)))


def more_features(s: Expansion, D: int) -> Expansion:
    return s._replace(
        member_indices=np.zeros(D, np.int32),
        member_values=np.zeros(D, np.float32),
        query=np.zeros(D if s.query.size else 0, np.float32),
    )


def _grown_features(s: Expansion, D: int, N: int) -> dict[str, np.ndarray]:
    """The feature-major matrix with another shape; it leaves untouched memory untouched, so that none is taken."""
    if s.counts[STORAGE] == COMPRESSED:
        return {}
    a, used = feature_matrix(s), np.s_[: s.counts[WIDTH], : s.counts[SLOTS]]
    out = np.zeros((D, N), a.dtype)
    out[: len(a)][used] = a[used]
    return {"bits" if is_binary(s) else "columns": out}


def _real_valued(s: Expansion) -> Expansion:
    """The features as float32."""
    bits, used = s.bits, np.s_[: s.counts[WIDTH], : s.counts[SLOTS]]
    columns = np.zeros(bits.shape, np.float32)
    columns[used] = bits[used]
    s.counts[STORAGE] = COLUMNS
    return s._replace(columns=columns, bits=np.zeros((0, 0), np.uint8))


def _more_nonzeros(s: Expansion, M: int) -> Expansion:
    def longer(a: np.ndarray) -> np.ndarray:
        out = np.empty(M, a.dtype)
        out[: len(a)] = a
        return out

    return s._replace(sparse_indices=longer(s.sparse_indices), sparse_values=longer(s.sparse_values))


def _compress(s: Expansion) -> Expansion:
    """Keep only the non-zero features."""
    features = feature_matrix(s)[: s.counts[WIDTH], : s.counts[SLOTS]]
    d, slot = np.nonzero(features)
    order = np.argsort(slot, kind="stable")
    s.counts[STORAGE] = COMPRESSED
    return list_features(
        s._replace(
            columns=np.zeros((0, 0), np.float32),
            bits=np.zeros((0, 0), np.uint8),
            sparse_indices=d[order].astype(np.int32),
            sparse_values=features[d, slot][order].astype(np.float32),
            query=np.zeros(s.member_indices.shape[0], np.float32),
        )
    )


def list_features(s: Expansion) -> Expansion:
    """Make the lists of a compressed expansion anew, for all its slots."""
    n, D = int(s.counts[SLOTS]), s.member_indices.shape[0]
    nnz = s.starts[n]
    rows = sp.csr_matrix((s.sparse_values[:nnz], s.sparse_indices[:nnz], s.starts[: n + 1]), shape=(n, D), copy=False)
    by_feature = rows.tocsc()
    s.counts[LISTED] = n
    return s._replace(
        lists=by_feature.indptr.astype(np.int64),
        list_slots=by_feature.indices.astype(np.int32, copy=False),
        list_values=by_feature.data,
    )


def with_features(s: Expansion, q: Queries) -> Expansion:
    """The members of an expansion without holes, each with the features of a query; its cached rows must be empty."""
    n, N, D = len(q.sq), len(s.alpha), q.width
    s = s._replace(
        counts=s.counts.copy(),
        starts=np.concatenate([q.indptr, np.zeros(N - n, np.int64)]),
        sq=fitted(q.sq, N),
        serial=fitted(s.counts[APPENDED] + np.arange(n), N),  # the mirror on a device takes them for new members
        columns=np.zeros((0, 0), np.float32),
        bits=np.zeros((0, 0), np.uint8),
        sparse_indices=np.zeros(0, np.int32),
        sparse_values=np.zeros(0, np.float32),
    )
    s.counts[APPENDED] += n
    s.counts[WIDTH], s.counts[STORAGE] = D, COLUMNS
    if is_wide(s.counts, n, D, s.starts[n]):
        s.counts[STORAGE] = COMPRESSED
        query = np.zeros(s.member_indices.shape[0], np.float32)
        return list_features(s._replace(sparse_indices=q.indices, sparse_values=q.values, query=query))
    matrix = np.zeros((doubled(MIN_FEATURES, D), N), np.float32)
    spread_out(q.indptr, q.indices, q.values, matrix)
    if not is_binary_block(q):
        return s._replace(columns=matrix)
    s.counts[STORAGE] = BITS
    return s._replace(bits=matrix.astype(np.uint8))


def fitted(values: np.ndarray, size: int) -> np.ndarray:
    """The values, and zeros up to this size."""
    out = np.zeros(size, values.dtype)
    out[: len(values)] = values
    return out


def feature_matrix(s: Expansion) -> np.ndarray:
    """The feature-major matrix."""
    return s.bits if is_binary(s) else s.columns


def keep(s: Expansion, order: np.ndarray) -> Expansion:
    """Keep the members in these slots, in this order, and squeeze out everything else.

    Cached rows move along; if the order changes, only complete ones do.
    """
    n, m = int(s.counts[SLOTS]), len(order)
    extremes = np.searchsorted(order, s.counts[[SLOT_UP, SLOT_DOWN]]) if _rising(order) else None
    _move_rows(s, order, n)
    for name in PER_SLOT:
        a = getattr(s, name)
        a[:m] = a[order]
        a[m:n] = 0
    s.raw[:m] = s.raw[order]
    _move_features(s, order, n)
    s.counts[SLOTS], s.counts[HOLES] = m, 0
    if s.counts[STORAGE] == COMPRESSED:
        s = list_features(s)
    if extremes is None:
        find_extremes(s)
    else:
        s.counts[[SLOT_UP, SLOT_DOWN]] = np.where(s.counts[[SLOT_UP, SLOT_DOWN]] >= 0, extremes, -1)
    return s


def _rising(order: np.ndarray) -> bool:
    return bool(np.all(np.diff(order) > 0))


def _move_features(s: Expansion, order: np.ndarray, n: int) -> None:
    """Move the features of slot order[t] to slot t."""
    m, begins, lengths = len(order), s.starts[order], np.diff(s.starts[: n + 1])[order]
    s.starts[1 : m + 1] = np.cumsum(lengths)
    if s.counts[STORAGE] == COMPRESSED:
        source = np.repeat(begins - s.starts[:m], lengths) + np.arange(s.starts[m])
        for a in (s.sparse_indices, s.sparse_values):
            a[: len(source)] = a[source]
        return
    for column in feature_matrix(s):
        column[:m] = column[order]
        column[m:n] = 0


def _move_rows(s: Expansion, order: np.ndarray, n: int) -> None:
    """Move slot order[t] to slot t in the cached rows, and close the gaps between rows."""
    in_order = _rising(order)
    new_slot = np.full(s.alpha.shape[0], -1, np.int32)
    new_slot[order] = np.arange(len(order), dtype=np.int32)
    s.row_of[:] = -1
    q = 0
    for r in range(int(s.counts[ROWS])):
        slot = new_slot[s.member_of[r]] if s.member_of[r] >= 0 else -1
        length = int(s.row_length[r])
        filled = int(np.searchsorted(order, length)) if in_order else len(order) * (length >= n)
        if slot >= 0 and filled > 0:
            s.rows[q, :filled] = s.rows[r].take(order[:filled])
            s.member_of[q], s.row_length[q], s.recent[q], s.row_of[slot] = slot, filled, s.recent[r], q
            q += 1
    s.member_of[q:] = -1
    s.counts[ROWS], s.counts[HAND] = q, 0


def copy(s: Expansion) -> Expansion:
    """A copy to work on while `s` stays as it is; both share the cached rows."""
    own = {name: array.copy() for name, array in s._asdict().items() if name != "rows"}
    return s._replace(**own)


def without_rows(s: Expansion) -> Expansion:
    """The same expansion with an empty row cache; both share the members' arrays."""
    counts = s.counts.copy()
    counts[ROWS] = counts[HAND] = 0
    s = s._replace(counts=counts, row_of=np.full_like(s.row_of, -1))
    return _with_rows(s, np.zeros((MIN_ROWS, s.alpha.shape[0]), np.float32))


def is_stored(s: Expansion, slot: int, indices: np.ndarray, values: np.ndarray) -> bool:
    """Whether these are the features of the member in a slot."""
    own_indices, own_values = features_of(s, slot)
    return np.array_equal(own_indices, indices) and np.array_equal(own_values, values)


def require_room(s: Expansion, n_features: int) -> Expansion:
    """Check that the expansion has room for these features, since compiled code checks no bounds; return it."""
    if n_features > s.member_indices.shape[0]:
        raise AssertionError(f"{n_features} features, but room for {s.member_indices.shape[0]}; please report this")
    return s


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
