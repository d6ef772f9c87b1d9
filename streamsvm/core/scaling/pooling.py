"""One scale from those of several streams: the moments that they would have as one stream.

    p_k = examples of stream k / examples of all
    m = sum_k p_k m_k                               mean
    v = sum_k p_k (v_k + (m_k - m)^2)               variance, with v_k = S_k / w_k
    w = min(sum_k w_k, M),   S = v w

A stream that never named a feature had only zeros there.  The last value is that of the last stream that had one.  The
pooled scale has a place for each feature that has one in some stream.  One without, which stands apart in some stream,
stands apart.  The streams' symbols are those of the folder's table.
"""

from collections.abc import Sequence

import numpy as np

from streamsvm.core.scaling.state import (
    APART,
    FAR_SQUARE,
    NORM,
    OF_PLACES,
    PLACES,
    SCALES,
    SEEN,
    SHARE,
    SPAN,
    SPARSE,
    SPREAD,
    TRACKS,
    WEIGHT,
    ZEROS,
    Scaling,
    copy,
    empty,
)


def pooled(scales: Sequence[Scaling], columns: Sequence[np.ndarray], n_features: int) -> Scaling:
    """The running moments of several streams as those of one; take them into use with `renewed`.

    Parameters
    ----------
    scales
        The scales of the streams, of one kind and memory.
    columns
        For each stream, the pooled column of each of its features.
    n_features
        Number of features of the pooled scale.
    """
    first = scales[0]
    if not first.counts[TRACKS]:
        return copy(first)
    seen = np.array([c.counts[SEEN] for c in scales], np.float64)
    shares = seen / max(1.0, seen.sum())
    has_place, is_apart = np.zeros((2, n_features), bool)
    for c, own in zip(scales, columns, strict=True):
        has_place[own[c.feature[: c.counts[PLACES]]]] = True
        is_apart[own[c.place[: len(own)] == APART]] = True
    feature = np.flatnonzero(has_place)
    n, kind = len(feature), (bool(first.counts[TRACKS]), bool(first.counts[SCALES]))
    new = empty(*kind, max(n_features, 1), max(n, 1), int(first.counts[SPAN]), tuple(first.limits[FAR_SQUARE:]))
    new.place[is_apart] = APART
    new.place[feature], new.feature[:n] = np.arange(n), feature
    new.counts[SEEN], new.counts[PLACES] = int(seen.sum()), n
    new.counts[SPARSE] = shares @ [c.counts[SPARSE] for c in scales] > 0.5
    new.counts[ZEROS] = max(c.counts[ZEROS] for c in scales)
    for total in (SHARE, NORM, SPREAD):
        new.totals[total] = shares @ [c.totals[total] for c in scales]
    new.totals[WEIGHT] = min(sum(c.totals[WEIGHT] for c in scales), float(first.counts[SPAN]))
    _pool_names(new, scales, columns)
    _pool_moments(new, shares, [_moments(c, own, new) for c, own in zip(scales, columns, strict=True)])
    return new


def _pool_names(new: Scaling, scales: Sequence[Scaling], columns: Sequence[np.ndarray]) -> None:
    """How often each feature was named, and since when, as if the streams had followed one another."""
    new.began[:] = new.counts[SEEN]
    for c, own in zip(scales, columns, strict=True):
        known = c.times[: len(own)] > 0
        age = np.where(known, c.counts[SEEN] - c.began[: len(own)], 0)
        new.began[own] -= age
        new.times[own] += c.times[: len(own)]
        new.named[own] = np.where(known & (c.named[: len(own)] == c.counts[SEEN]), new.counts[SEEN], new.named[own])


def _moments(c: Scaling, columns: np.ndarray, new: Scaling) -> np.ndarray:
    """The weights, means, variances `varied` and guesses of one stream by the pooled places, (6, P)."""
    n = int(c.counts[PLACES])
    own, moments = (
        dict(zip(OF_PLACES, (getattr(c, name)[:n] for name in OF_PLACES), strict=True)),
        np.zeros((6, len(new.m))),
    )
    variance = np.divide(own["S"], own["w"], out=np.zeros(n), where=own["w"] > 0.0)
    others = own["varied"], own["last"], own["excess"]
    moments[:, new.place[columns[own["feature"]]]] = own["w"], own["m"], variance, *others
    return moments


def _pool_moments(new: Scaling, shares: np.ndarray, moments: list[np.ndarray]) -> None:
    w, m, v, varied, last, excess = np.stack(moments, axis=1)
    new.w[:] = np.minimum(w.sum(axis=0), float(new.counts[SPAN]))
    new.m[:] = shares @ m
    new.S[:] = new.w * (shares @ (v + (m - new.m) ** 2))
    new.varied[:] = varied.any(axis=0)
    latest = len(w) - 1 - np.argmax(w[::-1] > 0.0, axis=0)
    new.last[:], new.excess[:] = last[latest, np.arange(len(latest))], shares @ excess
