"""The cached kernel rows: how many there is room for, and how wide they are."""

import numpy as np

from streamsvm.core.expansion import (
    CACHE_BYTES,
    HAND,
    ROWS,
    Expansion,
)
from streamsvm.core.rows import MIN_ROWS, shift_rows


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
    return with_rows(s, rows)


def _allowed_rows(s: Expansion, width: int, n_rows: int) -> int:
    return max(MIN_ROWS, min(n_rows, int(s.counts[CACHE_BYTES]) // (4 * max(width, 1))))


def more_rows(s: Expansion, n_rows: int) -> Expansion:
    width = s.rows.shape[1]
    shape = _allowed_rows(s, width, n_rows), width
    if not s.counts[ROWS]:
        return with_rows(s, np.empty(shape, np.float32))
    rows = _own(s.rows)
    rows.resize(shape, refcheck=False)  # grows in place: no other array shares the memory
    return with_rows(s, rows)


def _own(rows: np.ndarray) -> np.ndarray:
    """The rows in memory that can be resized; unpickled arrays may borrow theirs."""
    return rows if rows.flags.owndata else rows.copy()


def with_rows(s: Expansion, rows: np.ndarray) -> Expansion:
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


def without_rows(s: Expansion) -> Expansion:
    """The same expansion with an empty row cache; both share the members' arrays."""
    counts = s.counts.copy()
    counts[ROWS] = counts[HAND] = 0
    s = s._replace(counts=counts, row_of=np.full_like(s.row_of, -1))
    return with_rows(s, np.zeros((MIN_ROWS, s.alpha.shape[0]), np.float32))
