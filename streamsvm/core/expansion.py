"""The state of a kernel expansion: the examples that a model keeps, as arrays that compiled code edits in place.

    f(x) = sum_s alpha_s k(x_s, x) + b,     g_s = y_s - sum_r alpha_r k(x_r, x_s)

Every member has a *slot*.  Slots are only appended.  A member that leaves becomes a hole, and too many holes are
squeezed out (`storage`).  So no cached kernel row moves a column while examples stream in.

Features have one of three storages:

- *bits*: feature-major bytes, while every feature value seen is 0 or 1;
- *columns*: feature-major float32, from the first other value on.  The inner products of a query with all members are
  then a few long vector additions, and those of a block of queries one matrix product;
- *compressed*: only the non-zero features, once a matrix would be large and mostly empty (text, see `is_wide`).  They
  lie slot after slot, and for all but the youngest slots feature after feature too: a kernel row then visits only the
  members that share a feature with the query.

The matrix has rows for the features that examples have had with another value than 0.  The other D arrays have room for
all names.  An inner product is one chain of additions in the order of the features, so its bits are the same in every
storage, and for a block of queries as for one query.

========== ======================================================= ======== ===========================================
symbol     name                                                    shape    dtype, who changes it
========== ======================================================= ======== ===========================================
alpha      signed coefficient, alpha_s in [lo_s, hi_s]             (N,)     float64, learner
g          gradient y - sum alpha K, without the bias              (N,)     float64, learner
lo, hi     box: min(0, C_s y_s) and max(0, C_s y_s), less beta y_s  (N,)     float64, `append`
up, down   penalty: 0 if alpha may rise (fall), else -/+ FORBIDDEN (N,)     float64, learner
y          label, -1 or +1; 0 marks a hole                         (N,)     int8, `append`, `bury`
ids        the user's id                                           (N,)     int64, `append`
born       number or time, see `online.removal.window`             (N,)     int64, `append`
serial     number of the `append`; unique, unlike an id            (N,)     int64, `append`
sq, self_k squared norm, k(x, x)                                   (N,)     float32 and float64, `append`
columns    real-valued features; empty in another storage          (W, N)   float32, `append`
bits       features that are 0 or 1; empty in another storage      (W, N)   uint8, `append`
starts     slot s has the non-zero features starts[s]..starts[s+1] (N+1,)   int64, `append`; right in every storage
sparse_... those features, compressed; empty in another storage    (M,)     int32 and float32, `append`
lists      feature d is non-zero in slots lists[d]..lists[d+1] of  (D+1,)   int64, of the slots before counts[LISTED]
list_...   these slots, rising, and the feature's values           (L,)     int32 and float32
raw        unscaled features, see `scaling`; empty unless scaled   (N, P)   float64, `store_raw`
query      the query while its row is computed, else 0             (D,)     float32; empty unless compressed
rows       cached kernel rows, see `core.rows`                     (R, N)   float32, `member_row`
row_of     the cached row of a slot, or -1                         (N,)     int32, `member_row`
member_of  the slot of a cached row, or -1                         (R,)     int32, `member_row`
row_length filled values of a row                                  (R,)     int32, `member_row`
recent     used since the clock hand passed (second chance)        (R,)     uint8, `member_row`
scratch    row of the incoming example                             (N,)     float32
sums       byte sums of `bits`                                     (N,)     uint8
member_... the features of one member, gathered                    (D,)     int32 and float32, `gather`
counts     see the names below                                     (20,)    int64
extremes   largest g over up, smallest g over down                 (2,)     float64, learner
losses     sums over the members, see `online.gradient`            (4,)     float64, learners without a bias
========== ======================================================= ======== ===========================================
"""

from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled, inner, shared
from streamsvm.core.compiling._reference import by_reference
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, self_product

FORBIDDEN = LARGEST_KERNEL_VALUE  # larger than any gradient; adding one to it is harmless

# counts; WIDTH: features that examples have had, WIDE: entries beyond which a sparse matrix is compressed
SLOTS, HOLES, ROWS, HAND, EVALUATIONS, SLOT_UP, SLOT_DOWN, SINCE_EVICTION, CACHE_BYTES = range(9)
STORAGE, WIDTH, WIDE = range(9, 12)
# kept by learners without a bias: support vectors of each class, members ever, REPROCESS steps ever
POSITIVE, NEGATIVE, ADMITTED, REPROCESSED = range(12, 16)
LISTED, APPENDED = range(16, 18)  # LISTED: slots that the lists of a compressed expansion cover
AGAIN, COUNTS = range(18, 20)  # AGAIN: steps after removals, in thousandths of those expected, a running mean; 0: none
# counts[STORAGE]
BITS, COLUMNS, COMPRESSED = range(3)
MIN_CACHED_ROWS = 16  # of the row cache, however small its bytes
# extremes
G_UP, G_DOWN = range(2)
# losses
GAP, LOSS, SQUARED_LOSS, BOXES = range(4)

# Compressed: at most one entry in so many is non-zero, of bits half as many; otherwise long additions are faster.
SPARSE = 16


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
    raw: np.ndarray
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


# ------------------------------------------------------------------------------------------------------------- editing


@compiled
def too_many_holes(counts):
    """Whether holes cost more than squeezing them out: above a quarter of the slots."""
    return counts[HOLES] * 4 > counts[SLOTS] + 256


@compiled
def is_wide(counts, n_slots, width, nnz):
    """Whether to compress a feature-major matrix of this size with `nnz` non-zero entries.

    Snapshots must not depend on memory or on how a stream is cut.  So the decision falls before each example, from the
    slots in use and the features that examples have had, this one included.
    """
    entries, fewest = n_slots * width, 2 * SPARSE if counts[STORAGE] == BITS else SPARSE
    return counts[STORAGE] != COMPRESSED and entries > counts[WIDE] and fewest * nnz < entries


@compiled
def many_unlisted(counts):
    """Whether it is time to list the features of the youngest slots of a compressed expansion."""
    return counts[STORAGE] == COMPRESSED and (counts[SLOTS] - counts[LISTED]) * 32 > counts[LISTED] + 1024


@compiled
def wants_rows(counts, rows):
    """Whether the row cache is full and may still grow."""
    R, N = rows.shape
    may_grow = max(MIN_CACHED_ROWS, counts[CACHE_BYTES] // (4 * N)) > R
    return counts[ROWS] == R and may_grow


@inner
def note_features(s, indices):
    """Note the features, in order, of an example that is about to be learned; `needs_reserve` must follow."""
    if indices.shape[0] > 0:
        s.counts[WIDTH] = max(s.counts[WIDTH], indices[indices.shape[0] - 1] + 1)


@compiled
def needs_reserve(s):
    """Whether `storage.reserve` must run: to grow, to squeeze holes out, to compress or to list features."""
    n = s.counts[SLOTS]
    return (
        n == s.alpha.shape[0]
        or (s.counts[STORAGE] == BITS and s.counts[WIDTH] > s.bits.shape[0])
        or (s.counts[STORAGE] == COLUMNS and s.counts[WIDTH] > s.columns.shape[0])
        or too_many_holes(s.counts)
        or is_wide(s.counts, n, s.counts[WIDTH], s.starts[n])
        or many_unlisted(s.counts)
    )


@inner
def set_penalties(alpha, lo, hi, up, down, i):
    """Note whether alpha_i may rise and may fall; exact, because steps assign the bounds they reach."""
    up[i] = 0.0 if alpha[i] < hi[i] else -FORBIDDEN
    down[i] = 0.0 if alpha[i] > lo[i] else FORBIDDEN


@by_class
@compiled
def find_extremes(s):
    """Find the most violating pair from scratch: the largest g that may rise, the smallest g that may fall."""
    largest, smallest, i, j = -FORBIDDEN, FORBIDDEN, -1, -1
    for t in range(s.counts[SLOTS]):
        if s.up[t] == 0.0 and (i < 0 or s.g[t] > largest):
            largest, i = s.g[t], t
        if s.down[t] == 0.0 and (j < 0 or s.g[t] < smallest):
            smallest, j = s.g[t], t
    s.extremes[G_UP], s.extremes[G_DOWN] = largest, smallest
    s.counts[SLOT_UP], s.counts[SLOT_DOWN] = i, j


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


@shared
def append(s, kernel, indices, values, sq, y, lo, hi, id, born, g):
    """Give an example a slot, with alpha = 0; return the slot.  `storage.reserve` must have made room."""
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
def store_raw(s, k, places, values):
    """Keep the unscaled features of slot k that have a place in the scale, if there is room for them."""
    if s.raw.shape[1] > 0:
        s.raw[k, :] = 0.0
        for t in range(places.shape[0]):
            if places[t] >= 0:
                s.raw[k, places[t]] = values[t]


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
