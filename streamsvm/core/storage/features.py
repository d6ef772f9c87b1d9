"""The features of the members: matrices that grow, and the compressed form of wide, sparse ones."""

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.blocks import Queries, is_binary_block
from streamsvm.core.expansion import (
    APPENDED,
    BITS,
    COLUMNS,
    COMPRESSED,
    LISTED,
    SLOTS,
    STORAGE,
    WIDTH,
    Expansion,
    is_binary,
    is_wide,
)
from streamsvm.core.storage.members import doubled, feature_matrix


def grown(a: np.ndarray, *shape: int) -> np.ndarray:
    """The array with zeros behind, up to this shape."""
    out = np.zeros(shape, a.dtype)
    out[tuple(map(slice, a.shape))] = a
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


def grown_features(s: Expansion, D: int, N: int) -> dict[str, np.ndarray]:
    """The feature-major matrix with another shape; it leaves untouched memory untouched, so that none is taken."""
    if s.counts[STORAGE] == COMPRESSED:
        return {}
    used = feature_matrix(s)[: s.counts[WIDTH], : s.counts[SLOTS]]
    return {"bits" if is_binary(s) else "columns": grown(used, D, N)}


def real_valued(s: Expansion) -> Expansion:
    """The features as float32."""
    used = s.bits[: s.counts[WIDTH], : s.counts[SLOTS]]
    s.counts[STORAGE] = COLUMNS
    return s._replace(columns=grown(used.astype(np.float32), *s.bits.shape), bits=np.zeros((0, 0), np.uint8))


def compress(s: Expansion) -> Expansion:
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
    if s.member_indices.shape[0] < D:  # a model of a pair may lack new features
        s = more_features(s, doubled(s.member_indices.shape[0], D))
    s = s._replace(
        counts=s.counts.copy(),
        starts=grown(q.indptr, N + 1),
        sq=grown(q.sq, N),
        serial=grown(s.counts[APPENDED] + np.arange(n), N),  # the mirror on a device takes them for new members
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
    matrix = np.zeros((doubled(1, D), N), np.float32)
    matrix[q.indices, np.repeat(np.arange(n), np.diff(q.indptr))] = q.values
    if not is_binary_block(q):
        return s._replace(columns=matrix)
    s.counts[STORAGE] = BITS
    return s._replace(bits=matrix.astype(np.uint8))
