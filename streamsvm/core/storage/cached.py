"""The cached kernel rows: how many there is room for, and how wide they are.

The rows are the beginning of a larger memory, so that they can grow in place.  Memory that no row has used costs
nothing: the system gives it out when it is written to first.  That costs more than the arithmetic on it, so that
nothing here writes to more than the filled part of a row.
"""

import numpy as np

from streamsvm.core.expansion import CACHE_BYTES, HAND, MIN_CACHED_ROWS, ROWS, Expansion
from streamsvm.core.rows import shift_rows


def row_width(s: Expansion, width: int, n_rows: int) -> Expansion:
    """Give cached rows another width, and the cache room for `n_rows` as far as its bytes allow; drops the others."""
    s.counts[HAND] = 0
    return _with_room(s, width, n_rows)


def more_rows(s: Expansion, n_rows: int) -> Expansion:
    """Give the cache room for `n_rows` as far as its bytes allow, which are at least as many as there are."""
    return _with_room(s, s.rows.shape[1], n_rows)


def _with_room(s: Expansion, width: int, n_rows: int) -> Expansion:
    R, old_width = _allowed_rows(s, width, n_rows), s.rows.shape[1]
    if s.rows.shape == (R, width):
        return s
    used = min(int(s.counts[ROWS]), R)
    dropped = s.member_of[used : s.counts[ROWS]]
    s.row_of[dropped[dropped >= 0]] = -1
    np.minimum(s.row_length, width, out=s.row_length)
    s.counts[ROWS] = used
    memory = _memory(s.rows)
    if R * width <= memory.size:
        shift_rows(memory, s.row_length[:used], old_width, width)
        return with_rows(s, memory[: R * width].reshape(R, width))
    return with_rows(s, _in_more_memory(s, R, width))


def at_least(s: Expansion, width: int, n_rows: int) -> Expansion:
    """Give the cache room for `n_rows` of this width as far as its bytes allow; wider rows stay if that many fit."""
    wide = s.rows.shape[1]
    return row_width(s, wide if wide > width and _allowed_rows(s, wide, n_rows) >= n_rows else width, n_rows)


def _allowed_rows(s: Expansion, width: int, n_rows: int) -> int:
    return max(MIN_CACHED_ROWS, min(n_rows, int(s.counts[CACHE_BYTES]) // (4 * max(width, 1))))


def _memory(rows: np.ndarray) -> np.ndarray:
    """The memory that the rows are the beginning of, flat; unpickled arrays may borrow theirs, which then is copied."""
    owner = rows if rows.base is None else rows.base
    if type(owner) is not np.ndarray or not owner.flags.owndata or owner.dtype != np.float32:
        owner = rows.copy()
    return owner.reshape(-1)


def _in_more_memory(s: Expansion, R: int, width: int) -> np.ndarray:
    """The rows in fresh memory: so many, so wide, and the beginning of more."""
    needed = R * width
    # With twice the memory, moving the rows to more of it took a fifth of the time of a stream.
    size = max(needed, min(8 * needed, int(s.counts[CACHE_BYTES]) // 4))
    rows = np.empty(size, np.float32)[:needed].reshape(R, width)
    used = int(s.counts[ROWS])
    filled = min(width, int(s.row_length[:used].max(initial=0)))
    rows[:used, :filled] = s.rows[:used, :filled]
    return rows


def with_rows(s: Expansion, rows: np.ndarray) -> Expansion:
    R = rows.shape[0]
    used = min(int(s.counts[ROWS]), R)
    member_of, row_length, recent = np.empty(R, np.int32), np.zeros(R, np.int32), np.zeros(R, np.uint8)
    member_of[:used], row_length[:used], recent[:used] = s.member_of[:used], s.row_length[:used], s.recent[:used]
    member_of[used:] = -1
    return s._replace(rows=rows, member_of=member_of, row_length=row_length, recent=recent)


def without_rows(s: Expansion) -> Expansion:
    """The same expansion with an empty row cache; both share the members' arrays."""
    counts = s.counts.copy()
    counts[ROWS] = counts[HAND] = 0
    s = s._replace(counts=counts, row_of=np.full_like(s.row_of, -1))
    return with_rows(s, np.zeros((MIN_CACHED_ROWS, s.alpha.shape[0]), np.float32))
