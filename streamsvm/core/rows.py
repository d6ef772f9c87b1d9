"""Kernel rows: the kernel values of a query, or of a member, with all members of an expansion; and their cache.

Cached rows take at most `cache_bytes`, and are *extended lazily*: a row ends at the slot count of its last use, and its
missing end is added at the next use.  Kernels are symmetric.  So a missing value is copied from the cached row of its
slot if that is the shorter way.  Otherwise `kernel_row` computes it from the stored features.  Both give the same bits:
values do not depend on what was cached before, and a restored model continues bit for bit.

The symbol table of `expansion` has the arrays.
"""

import numpy as np

from streamsvm.core.compiling._jit import compiled, inner, inner_fma, shared
from streamsvm.core.costs import FIRST_LEVEL
from streamsvm.core.expansion import (
    BITS,
    COLUMNS,
    COMPRESSED,
    EVALUATIONS,
    HAND,
    LISTED,
    ROWS,
    SLOTS,
    STORAGE,
)
from streamsvm.core.kernels import map_row

SLOT_BLOCK = FIRST_LEVEL // 16  # slots whose partial sums in float32 take a quarter of the cache

# ------------------------------------------------------------------------------------------------------ inner products


@inner_fma
def add_columns(columns, indices, values, begin, end, out):
    """out = <x, x_s> for the slots begin..end, from real-valued features; four at a time, in the precision of `out`."""
    nnz = indices.shape[0]
    block = SLOT_BLOCK * 4 // out.itemsize
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
    """out = <x, x_s> for a binary query and binary members: sums of bytes, moved on before they can overflow."""
    nnz = indices.shape[0]
    for b in range(begin, end, SLOT_BLOCK):
        e = min(b + SLOT_BLOCK, end)
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

    Only a prediction needs it, and rarely: learning such an example would widen the storage.
    """
    for t in range(begin, end):
        total = np.float32(0.0)
        for k in range(indices.shape[0]):
            if bits[indices[k], t] != 0:
                total += values[k]
        out[t] = total


@inner
def first_from(rising, begin):
    """Where the first of these numbers is that is at least `begin`; they rise (searchsorted compiles for seconds)."""
    low, high = 0, rising.shape[0]
    while low < high:
        middle = (low + high) // 2
        if rising[middle] < begin:
            low = middle + 1
        else:
            high = middle
    return low


@inner_fma
def add_lists(lists, list_slots, list_values, indices, values, begin, end, out):
    """out += <x, x_s> for the slots begin..end, from the list of slots of each feature of the query."""
    for t in range(indices.shape[0]):
        d, v = indices[t], values[t]
        k, last = lists[d], lists[d + 1]
        if begin > 0:
            k += first_from(list_slots[k:last], begin)
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
    """The number of these rising numbers that are below `width`."""
    n = indices.shape[0]
    while n > 0 and indices[n - 1] >= width:
        n -= 1
    return n


@shared
def kernel_row(s, kernel, indices, values, sq, begin, end, out):
    """out[begin:end] = k(x, x_s) for a query, given by the indices and values of its non-zero features in order.

    The matrix has a row for every feature that a member has.  The query's other features are skipped.
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
            add_lists(s.lists, s.list_slots, s.list_values, indices, values, begin, end, out)
        if end > listed:
            young = max(begin, listed)
            _add_compressed(s.starts, s.sparse_indices, s.sparse_values, s.query, indices, values, young, end, out)
    elif all_ones(values):
        _add_bits(s.bits, indices, s.sums, begin, end, out)
    else:
        _add_scaled_bits(s.bits, indices, values, begin, end, out)
    map_row(kernel, out[begin:end], s.sq[begin:end], sq)
    s.counts[EVALUATIONS] += end - begin


# ----------------------------------------------------------------------------------------------------------- the cache


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
    """A row to fill: a new one, or else the clock's next row that was not used lately."""
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
def shift_rows(flat, lengths, old_width, width):
    """Move row r from r * old_width to r * width, in an order that overwrites no value before it is moved."""
    n_rows = lengths.shape[0] if width != old_width else 0
    for q in range(n_rows):
        r = n_rows - 1 - q if width > old_width else q
        n = lengths[r]
        source, target = flat[r * old_width : r * old_width + n], flat[r * width : r * width + n]
        if 0 < r * (width - old_width) < n:
            for t in range(n - 1, -1, -1):
                target[t] = source[t]
        else:
            for t in range(n):
                target[t] = source[t]


@compiled
def move_rows(s, order, n, is_rising, moved):
    """Move slot order[t] of the n slots to slot t in the cached rows, and close the gaps between rows.

    If the order changes, only complete rows stay.  `moved` has room for a row.
    """
    m, q = order.shape[0], 0
    s.row_of[:] = -1
    for t in range(m):
        s.row_of[order[t]] = t  # the new slot of an old one, for a while
    for r in range(s.counts[ROWS]):
        i = s.member_of[r]
        slot = s.row_of[i] if i >= 0 else -1
        filled = first_from(order, s.row_length[r]) if is_rising else m * (s.row_length[r] >= n)
        if slot < 0 or filled == 0:
            continue
        source, target = s.rows[r], s.rows[q]
        for t in range(filled):
            moved[t] = source[order[t]]
        for t in range(filled):
            target[t] = moved[t]
        s.member_of[q], s.row_length[q], s.recent[q] = slot, filled, s.recent[r]
        q += 1
    s.row_of[:] = -1
    for r in range(q):
        s.row_of[s.member_of[r]] = r
    s.member_of[q:] = -1
    s.counts[ROWS], s.counts[HAND] = q, 0


@inner
def store_row(s, i):
    """Keep the row in `scratch` as the cached row of slot i if a row is free; it evicts no other row."""
    n, r = s.counts[SLOTS], s.counts[ROWS]
    if r == s.rows.shape[0]:
        return
    s.counts[ROWS] = r + 1
    s.row_of[i], s.member_of[r], s.row_length[r], s.recent[r] = r, i, n, 1
    row, scratch = s.rows[r, :n], s.scratch[:n]
    for t in range(n):
        row[t] = scratch[t]


@inner
def _n_gathered(s, i):
    """How many values `gather` reads, far from each other unless they are compressed."""
    if s.counts[STORAGE] == COMPRESSED:
        return s.starts[i + 1] - s.starts[i]
    return max(s.bits.shape[0], s.columns.shape[0])


@inner
def _copied(s, i, r, n):
    """Extend row r of slot i by values that the cached rows of the missing slots have; where the row ends then.

    A kernel is symmetric, to the bit: k(x_i, x_s) stands in the row of s.  Reading it there is worth it as long as no
    more values are read than `gather` would read.
    """
    begin = s.row_length[r]
    if n - begin > _n_gathered(s, i):
        return begin
    for t in range(begin, n):
        q = s.row_of[t]
        if q < 0 or s.row_length[q] <= i:
            return t
        s.rows[r, t] = s.rows[q, i]
    return n


@shared
def member_row(s, kernel, i, pinned):
    """The number of the cached row with k(x_i, x_s) for all slots; adds what is missing of it.

    Row `pinned` (-1: none) is not evicted.
    """
    n = s.counts[SLOTS]
    r = s.row_of[i]
    if r < 0:
        r = _vacant_row(s, pinned)
        s.row_of[i], s.member_of[r], s.row_length[r] = r, i, 0
    s.recent[r] = 1
    if s.row_length[r] < n:
        begin = _copied(s, i, r, n)
        if begin < n:
            nnz = gather(s, i)
            kernel_row(s, kernel, s.member_indices[:nnz], s.member_values[:nnz], s.sq[i], begin, n, s.rows[r])
            if begin <= i:
                s.rows[r, i] = np.float32(s.self_k[i])  # as in the row of an incoming example
        s.row_length[r] = n
    return r
