"""The kernel expansion: the examples a model keeps, as arrays that compiled code edits in place.

    f(x) = sum_s alpha_s k(x_s, x) + b,     g_s = y_s - sum_r alpha_r k(x_r, x_s)

Every member has a *slot*.  Slots are only appended; a member that leaves becomes a hole (a tombstone), and holes are
squeezed out when there are too many.  So no cached row ever moves a column while examples stream in.

Features are stored *feature-major*: the inner products of a query with all members are then a few long vector
additions, one for each feature the query has, and a block of queries is one matrix product.  While every feature
value seen is 0 or 1 they are bytes, added as bytes (16 to 64 at a time); the first other value turns them into
float32.  The matrix has rows for the features that examples have had with another value than 0, and the other D arrays
have room for all names.  When the matrix would become large and mostly empty (text), the members are *compressed* once
and for all:
only their non-zero features are kept, slot after slot, and for all but the youngest slots feature after feature too: a
kernel row then visits the members that share a feature with the query, and no others.  See `is_wide`.

An inner product is one chain of additions over the features in their order, to which a feature that is 0 adds nothing.
So its bits are the same in every storage, and for a block of queries as for one.

Kernel rows are cached in at most `cache_bytes`, and *extended lazily*: a row ends at the slot count of the time when it
was last used, and its missing end is computed when it is used again.  A cached row is always computed by
`kernel_row`, from the stored features alone, so its values do not depend on what was cached before: a restored model
continues bit for bit.

========== ======================================================= ======== ===========================================
symbol     name                                                    shape    dtype, who changes it
========== ======================================================= ======== ===========================================
alpha      signed coefficient, alpha_s in [lo_s, hi_s]             (N,)     float64, learner
g          gradient y - sum alpha K, without the bias              (N,)     float64, learner
lo, hi     box: min(0, C_s y_s) and max(0, C_s y_s), less beta y_s  (N,)     float64, `append`
up, down   penalty: 0 if alpha may rise (fall), else -/+ FORBIDDEN (N,)     float64, learner
y          label, -1 or +1; 0 marks a hole                         (N,)     int8, `append`, `bury`
ids        the user's id                                           (N,)     int64, `append`
born       number or time (see `online.bounded`) of the example    (N,)     int64, `append`
serial     which `append` it was; never twice, unlike an id        (N,)     int64, `append`
sq, self_k squared norm, k(x, x)                                   (N,)     float32 and float64, `append`
columns    features, real-valued; empty in another storage         (W, N)   float32, `append`
bits       features, all 0 or 1; empty in another storage          (W, N)   uint8, `append`
starts     slot s has the non-zero features starts[s]..starts[s+1] (N+1,)   int64, `append`; right in every storage
sparse_... those features, compressed; empty in another storage    (M,)     int32 and float32, `append`
lists      feature d is non-zero in slots lists[d]..lists[d+1] of  (D+1,)   int64, of the slots before counts[LISTED]
list_...   these slots, rising, and the feature's values           (L,)     int32 and float32
query      0, but for the query while its row is computed          (D,)     float32; empty unless compressed
rows       cached kernel rows                                      (R, N)   float32, `member_row`
row_of     the cached row of a slot, or -1                         (N,)     int32, `member_row`
member_of  the slot of a cached row, or -1                         (R,)     int32, `member_row`
row_length how much of a row is filled                             (R,)     int32, `member_row`
recent     used since the clock hand passed (second chance)        (R,)     uint8, `member_row`
scratch    row of the incoming example                             (N,)     float32
sums       byte sums of `bits`                                     (N,)     uint8
member_... the features of one member, gathered                    (D,)     int32 and float32, `gather`
counts     see the names below                                     (19,)    int64
extremes   largest g over up, smallest g over down                 (2,)     float64, learner
losses     sums over the members, see `online.scan`                (4,)     float64, learners without a bias
========== ======================================================= ======== ===========================================
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core._jit import compiled, inner, inner_fma
from streamsvm.core._reference import by_reference
from streamsvm.core.kernels import map_row, self_product

FORBIDDEN = 1e30  # larger than any gradient, small enough that adding a gradient to it is harmless

# counts; WIDTH: features that examples have had, WIDE: entries beyond which a sparse matrix is compressed
SLOTS, HOLES, ROWS, HAND, EVALUATIONS, SLOT_UP, SLOT_DOWN, SINCE_EVICTION, CACHE_BYTES = range(9)
STORAGE, WIDTH, WIDE = range(9, 12)
# kept by learners without a bias: support vectors of each class, members ever, REPROCESS steps ever
POSITIVE, NEGATIVE, ADMITTED, REPROCESSED = range(12, 16)
LISTED, APPENDED, COUNTS = range(16, 19)  # LISTED: slots that the lists of a compressed expansion cover
# counts[STORAGE]
BITS, COLUMNS, COMPRESSED = range(3)
# extremes
G_UP, G_DOWN = range(2)
# losses
GAP, LOSS, SQUARED_LOSS, BOXES = range(4)

BLOCK = 2048  # slots whose partial sums, in float32, stay in the first-level cache
MIN_ROWS = 16  # of the row cache, however small its bytes
SPARSE = 32  # compressed: at most one entry in so many is non-zero; otherwise long vector additions are faster


@by_reference
class Expansion(NamedTuple):
    """The members of a kernel expansion; the symbol table is in the module's docstring."""

    alpha: np.ndarray
    g: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    up: np.ndarray
    down: np.ndarray
    y: np.ndarray
    ids: np.ndarray
    born: np.ndarray
    serial: np.ndarray
    sq: np.ndarray
    self_k: np.ndarray
    columns: np.ndarray
    bits: np.ndarray
    starts: np.ndarray
    sparse_indices: np.ndarray
    sparse_values: np.ndarray
    lists: np.ndarray
    list_slots: np.ndarray
    list_values: np.ndarray
    query: np.ndarray
    rows: np.ndarray
    row_of: np.ndarray
    member_of: np.ndarray
    row_length: np.ndarray
    recent: np.ndarray
    scratch: np.ndarray
    sums: np.ndarray
    member_indices: np.ndarray
    member_values: np.ndarray
    counts: np.ndarray
    extremes: np.ndarray
    losses: np.ndarray


def is_binary(s: Expansion) -> bool:
    """Whether features are still stored as bits."""
    return bool(s.counts[STORAGE] == BITS)


# ----------------------------------------------------------------------------------------------------- compiled editing


@compiled
def too_many_holes(counts):
    """Whether holes cost more than squeezing them out: above a quarter of the slots."""
    return counts[HOLES] * 4 > counts[SLOTS] + 256


@compiled
def is_wide(counts, n_slots, width, nnz):
    """Whether a feature-major matrix of so many slots and features, `nnz` of them non-zero, is to be compressed.

    The moment must not depend on memory or on how a stream is cut, so that snapshots do not: it is decided before each
    example, from the slots in use and the features that examples have had, this one included.  So the matrix is not
    widened first for an example with many new features.
    """
    entries = n_slots * width
    return counts[STORAGE] != COMPRESSED and entries > counts[WIDE] and SPARSE * nnz < entries


@compiled
def many_unlisted(counts):
    """Whether it is time to list the features of the youngest slots of a compressed expansion."""
    return counts[STORAGE] == COMPRESSED and (counts[SLOTS] - counts[LISTED]) * 8 > counts[LISTED] + 512


@inner
def note_features(s, indices):
    """Note the features of an example that is about to be learned, given in order; `needs_reserve` must follow."""
    if indices.shape[0] > 0:
        s.counts[WIDTH] = max(s.counts[WIDTH], indices[indices.shape[0] - 1] + 1)


@compiled
def needs_reserve(s):
    """Whether slots or the matrix's rows have run out, holes are to be squeezed out, features compressed or listed."""
    n = s.counts[SLOTS]
    return (
        n == s.alpha.shape[0]
        or (s.counts[STORAGE] == BITS and s.counts[WIDTH] > s.bits.shape[0])
        or (s.counts[STORAGE] == COLUMNS and s.counts[WIDTH] > s.columns.shape[0])
        or too_many_holes(s.counts)
        or is_wide(s.counts, n, s.counts[WIDTH], s.starts[n])
        or many_unlisted(s.counts)
    )


@compiled
def wants_rows(counts, rows):
    """Whether the row cache is full and may still grow."""
    R, N = rows.shape
    may_grow = max(MIN_ROWS, counts[CACHE_BYTES] // (4 * N)) > R
    return counts[ROWS] == R and may_grow


@inner
def set_penalties(alpha, lo, hi, up, down, i):
    """Note whether alpha_i may rise and may fall; exact, because steps assign the bounds they reach."""
    up[i] = 0.0 if alpha[i] < hi[i] else -FORBIDDEN
    down[i] = 0.0 if alpha[i] > lo[i] else FORBIDDEN


@inner
def _store_features(s, k, indices, values):
    """Make these the features of slot k, the last one."""
    nnz, begin = indices.shape[0], s.starts[k]
    s.starts[k + 1] = begin + nnz
    note_features(s, indices)
    if s.counts[STORAGE] == COLUMNS:
        for t in range(nnz):
            s.columns[indices[t], k] = values[t]
    elif s.counts[STORAGE] == BITS:
        for t in range(nnz):
            s.bits[indices[t], k] = 1
    else:
        for t in range(nnz):
            s.sparse_indices[begin + t], s.sparse_values[begin + t] = indices[t], values[t]


@inner
def append(s, kernel, indices, values, sq, y, lo, hi, id, born, g):
    """Give an example a slot, with alpha = 0; return the slot.  Room must have been reserved."""
    k = s.counts[SLOTS]
    s.counts[SLOTS] = k + 1
    s.alpha[k], s.g[k], s.lo[k], s.hi[k] = 0.0, g, lo, hi
    s.y[k] = np.int8(y)
    s.ids[k], s.born[k], s.sq[k] = id, born, sq
    s.serial[k] = s.counts[APPENDED]
    s.counts[APPENDED] += 1
    s.self_k[k] = self_product(kernel, sq)
    set_penalties(s.alpha, s.lo, s.hi, s.up, s.down, k)
    _store_features(s, k, indices, values)
    return k


@inner
def bury(s, i):
    """Turn the member in slot i into a hole: nothing selects it, it adds nothing, its cached row is free."""
    s.alpha[i], s.lo[i], s.hi[i], s.y[i] = 0.0, 0.0, 0.0, 0
    s.up[i], s.down[i] = -FORBIDDEN, FORBIDDEN
    s.counts[HOLES] += 1
    r = s.row_of[i]
    if r >= 0:
        s.row_of[i] = -1
        s.member_of[r] = -1
        s.recent[r] = 0


# --------------------------------------------------------------------------------------------------------- kernel rows


@inner_fma
def add_columns(columns, indices, values, begin, end, out):
    """out = <x, x_s> for the slots begin..end, from real-valued features; four at a time, in the precision of `out`."""
    nnz = indices.shape[0]
    block = BLOCK * 4 // out.itemsize
    for b in range(begin, end, block):
        e = min(b + block, end)
        o = out[b:e]
        for t in range(o.shape[0]):
            o[t] = 0.0
        k = 0
        while k + 4 <= nnz:
            v0, v1, v2, v3 = values[k], values[k + 1], values[k + 2], values[k + 3]
            c0, c1 = columns[indices[k], b:e], columns[indices[k + 1], b:e]
            c2, c3 = columns[indices[k + 2], b:e], columns[indices[k + 3], b:e]
            for t in range(o.shape[0]):
                o[t] = (((o[t] + v0 * c0[t]) + v1 * c1[t]) + v2 * c2[t]) + v3 * c3[t]
            k += 4
        while k < nnz:
            v0 = values[k]
            c0 = columns[indices[k], b:e]
            for t in range(o.shape[0]):
                o[t] += v0 * c0[t]
            k += 1


@inner
def _add_bits(bits, indices, sums, begin, end, out):
    """out = <x, x_s> for a binary query and binary members: sums of bytes, emptied before they can overflow."""
    nnz = indices.shape[0]
    for b in range(begin, end, BLOCK):
        e = min(b + BLOCK, end)
        o, total = out[b:e], sums[b:e]
        for t in range(o.shape[0]):
            o[t] = np.float32(0.0)
        for first in range(0, nnz, 252):
            for t in range(total.shape[0]):
                total[t] = np.uint8(0)
            last = min(first + 252, nnz)
            k = first
            while k + 4 <= last:
                b0, b1 = bits[indices[k], b:e], bits[indices[k + 1], b:e]
                b2, b3 = bits[indices[k + 2], b:e], bits[indices[k + 3], b:e]
                for t in range(total.shape[0]):
                    total[t] = np.uint8(total[t] + b0[t] + b1[t] + b2[t] + b3[t])
                k += 4
            while k < last:
                b0 = bits[indices[k], b:e]
                for t in range(total.shape[0]):
                    total[t] = np.uint8(total[t] + b0[t])
                k += 1
            for t in range(o.shape[0]):
                o[t] += np.float32(total[t])


@inner
def _add_scaled_bits(bits, indices, values, begin, end, out):
    """out = <x, x_s> for a real-valued query and binary members.

    For prediction only, and rare: learning such an example would widen the storage.
    """
    for t in range(begin, end):
        total = np.float32(0.0)
        for k in range(indices.shape[0]):
            if bits[indices[k], t] != 0:
                total += values[k]
        out[t] = total


@inner
def _first_from(slots, begin):
    """Where the first of these rising slots is that is at least `begin` (numba's searchsorted compiles for seconds)."""
    low, high = 0, slots.shape[0]
    while low < high:
        middle = (low + high) // 2
        if slots[middle] < begin:
            low = middle + 1
        else:
            high = middle
    return low


@inner_fma
def _add_lists(lists, list_slots, list_values, indices, values, begin, end, out):
    """out += <x, x_s> for the slots begin..end, from the slots that each feature of the query is in."""
    for t in range(indices.shape[0]):
        d, v = indices[t], values[t]
        k, last = lists[d], lists[d + 1]
        if begin > 0:
            k += _first_from(list_slots[k:last], begin)
        while k < last and list_slots[k] < end:
            out[list_slots[k]] += v * list_values[k]
            k += 1


@inner_fma
def _add_compressed(starts, member_indices, member_values, query, indices, values, begin, end, out):
    """out += <x, x_s> for the slots begin..end, from the features of each slot; the query is scattered."""
    for t in range(indices.shape[0]):
        query[indices[t]] = values[t]
    for s in range(begin, end):
        a = out[s]
        for k in range(starts[s], starts[s + 1]):
            a += member_values[k] * query[member_indices[k]]
        out[s] = a
    for t in range(indices.shape[0]):
        query[indices[t]] = np.float32(0.0)


@inner
def all_ones(values):
    """Whether every value is 1."""
    for t in range(values.shape[0]):
        if values[t] != 1.0:
            return False
    return True


@inner
def n_below(indices, width):
    """How many of these numbers, which rise, are below `width`."""
    n = indices.shape[0]
    while n > 0 and indices[n - 1] >= width:
        n -= 1
    return n


@inner
def kernel_row(s, kernel, indices, values, sq, begin, end, out):
    """out[begin:end] = k(x, x_s) for a query given by the indices and values of its non-zero features, in order.

    Features that the matrix has no row for are those of no member.
    """
    if s.counts[STORAGE] != COMPRESSED:
        nnz = n_below(indices, max(s.bits.shape[0], s.columns.shape[0]))
        indices, values = indices[:nnz], values[:nnz]
    if s.counts[STORAGE] == COLUMNS:
        add_columns(s.columns, indices, values, begin, end, out)
    elif s.counts[STORAGE] == COMPRESSED:
        listed = s.counts[LISTED]
        out[begin:end] = np.float32(0.0)
        if begin < listed:
            _add_lists(s.lists, s.list_slots, s.list_values, indices, values, begin, end, out)
        if end > listed:
            young = max(begin, listed)
            _add_compressed(s.starts, s.sparse_indices, s.sparse_values, s.query, indices, values, young, end, out)
    elif all_ones(values):
        _add_bits(s.bits, indices, s.sums, begin, end, out)
    else:
        _add_scaled_bits(s.bits, indices, values, begin, end, out)
    map_row(kernel, out[begin:end], s.sq[begin:end], sq)
    s.counts[EVALUATIONS] += end - begin


@inner
def gather(s, i):
    """Copy the non-zero features of slot i to `member_indices` and `member_values`, in order; return their number."""
    nnz = 0
    if s.counts[STORAGE] == COMPRESSED:
        for k in range(s.starts[i], s.starts[i + 1]):
            s.member_indices[nnz], s.member_values[nnz] = s.sparse_indices[k], s.sparse_values[k]
            nnz += 1
    elif s.counts[STORAGE] == BITS:
        for d in range(s.bits.shape[0]):
            if s.bits[d, i] != 0:
                s.member_indices[nnz], s.member_values[nnz] = d, np.float32(1.0)
                nnz += 1
    else:
        for d in range(s.columns.shape[0]):
            if s.columns[d, i] != 0.0:
                s.member_indices[nnz], s.member_values[nnz] = d, s.columns[d, i]
                nnz += 1
    return nnz


@inner
def _vacant_row(s, pinned):
    """A row to fill: a new one while there are any, else the clock's next that was not used lately."""
    if s.counts[ROWS] < s.rows.shape[0]:
        s.counts[ROWS] += 1
        return s.counts[ROWS] - 1
    while True:
        r = s.counts[HAND]
        s.counts[HAND] = (r + 1) % s.rows.shape[0]
        if r == pinned:
            continue
        if s.recent[r] == 0:
            if s.member_of[r] >= 0:
                s.row_of[s.member_of[r]] = -1
            return r
        s.recent[r] = 0


@compiled
def shift_rows(flat, n_rows, old_width, width):
    """Move row r from r * old_width to r * width, in an order that overwrites nothing that is still needed."""
    common = min(old_width, width)
    for q in range(n_rows):
        r = n_rows - 1 - q if width > old_width else q
        source, target = r * old_width, r * width
        for t in range(common):
            k = common - 1 - t if width > old_width else t
            flat[target + k] = flat[source + k]


@inner
def store_row(s, i):
    """Keep the row in `scratch` as the cached row of slot i, if a row is free: others are not evicted for it."""
    n, r = s.counts[SLOTS], s.counts[ROWS]
    if r == s.rows.shape[0]:
        return
    s.counts[ROWS] = r + 1
    s.row_of[i], s.member_of[r], s.row_length[r], s.recent[r] = r, i, n, 1
    row, scratch = s.rows[r, :n], s.scratch[:n]
    for t in range(n):
        row[t] = scratch[t]


@inner
def member_row(s, kernel, i, pinned):
    """The cached row that holds k(x_i, x_s) for all slots, computed as far as it is missing.

    The row numbered `pinned` (-1: none) stays where it is.
    """
    n = s.counts[SLOTS]
    r = s.row_of[i]
    if r < 0:
        r = _vacant_row(s, pinned)
        s.row_of[i], s.member_of[r], s.row_length[r] = r, i, 0
    s.recent[r] = 1
    if s.row_length[r] < n:
        nnz = gather(s, i)
        kernel_row(s, kernel, s.member_indices[:nnz], s.member_values[:nnz], s.sq[i], s.row_length[r], n, s.rows[r])
        if s.row_length[r] <= i:
            s.rows[r, i] = np.float32(s.self_k[i])  # the same as when the row was that of an incoming example
        s.row_length[r] = n
    return r
