"""A model's members on the device, kept up to date by sending only what has changed.

Members are told apart by the `serial` of their slot.  New ones are sent; the last ones of the mirror take the places of
those that have left.  Coefficients are sent for each block of queries.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
serials   the member in each place of the mirror, by its serial number     (n,) int64
places    the place of each live member in the mirror                      (members,) int64
========= ================================================================ ================

`vectors` has the other symbols.
"""

from typing import Any

import numpy as np

from streamsvm.core.blocks import LARGEST_SQUARED_NORM, Queries, by_fours
from streamsvm.core.device.gpu import Gpu, by_halves
from streamsvm.core.device.vectors import Vectors
from streamsvm.core.expansion import EVALUATIONS, SLOTS, WIDTH, Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.storage import live_slots, rows_of


class Mirror:
    """The members of an expansion on the device, kept up to date by sending only what has changed."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.serials = np.zeros(0, np.int64)
        self.sent = 0  # members, so far
        self._X = gpu.xp.zeros((0, 0), np.float32)
        self._sq = gpu.xp.zeros(0, np.float32)
        self._live = self._followed = self._places = np.zeros(0, np.int64)

    def follow(self, s: Expansion) -> None:
        """Bring the mirror up to date with these members."""
        live = live_slots(s)
        wanted = s.serial[live]
        if not np.array_equal(wanted, self._followed):
            new = live[~np.isin(wanted, self.serials)]
            places = self._vacate(np.isin(self.serials, wanted), len(new))
            self._make_room(len(wanted), by_fours(int(s.counts[WIDTH])))
            self._send(s, new, places)
            order = np.argsort(self.serials)
            self._places = order[np.searchsorted(self.serials, wanted, sorter=order)]
        self._live, self._followed = live, wanted

    def _vacate(self, stays: np.ndarray, n_new: int) -> np.ndarray:
        """Free places for new members; if more members left than came, the last ones fill the gaps."""
        gaps, n = np.flatnonzero(~stays), len(stays)
        size = n - len(gaps) + n_new
        if n_new >= len(gaps):
            return np.concatenate([gaps, np.arange(n, size)])
        gaps, moving = gaps[gaps < size], size + np.flatnonzero(stays[size:])
        if len(moving):
            into, source = (self.gpu.xp.asarray(places) for places in (gaps[: len(moving)], moving))
            self._X[into], self._sq[into] = self._X[source], self._sq[source]
            self.serials[gaps[: len(moving)]] = self.serials[moving]
        return gaps[len(moving) :]

    def _make_room(self, n: int, width: int) -> None:
        xp, (capacity, old_width) = self.gpu.xp, self._X.shape
        used = min(n, len(self.serials))
        if n > capacity or width > old_width:
            capacity = capacity if n <= capacity else n + n // 4
            width = old_width if width <= old_width else by_fours(width + old_width // 4)
            X, sq = xp.zeros((capacity, width), np.float32), xp.zeros(capacity, np.float32)
            X[:used, :old_width], sq[:used] = self._X[:used], self._sq[:used]
            self._X, self._sq = X, sq
        self.serials = np.concatenate([self.serials[:used], np.full(n - used, -1)])

    def _send(self, s: Expansion, slots: np.ndarray, places: np.ndarray) -> None:
        width = self._X.shape[1]

        def send(begin: int, end: int) -> None:
            part = slots[begin:end]
            into = self.gpu.xp.asarray(places[begin:end])
            rows = rows_of(s, part, width)
            self._X[into] = self.gpu.dense(rows.indptr, rows.indices, rows.data, width, np.float32)
            self._sq[into] = self.gpu.xp.asarray(s.sq[part])

        by_halves(self.gpu, send, 0, len(slots), self.gpu.chunk(32 * width))
        self.serials[places] = s.serial[slots]
        self.sent += len(slots)

    def decide(self, s: Expansion, kernel: Kernel, q: Queries) -> np.ndarray:
        """sum_s alpha_s k(x_s, x_t) for each query, (B,)."""
        self.follow(s)
        vectors, out, alpha = self._vectors(kernel), np.empty(len(q.sq)), self._alpha(s)

        def decide(begin: int, end: int) -> None:
            values = vectors.weighted_sum(*self._queries(q.part(begin, end)), alpha)
            out[begin:end] = self.gpu.xp.asnumpy(values)

        by_halves(self.gpu, decide, 0, len(out), self.gpu.chunk(vectors.bytes_each))
        s.counts[EVALUATIONS] += len(out) * len(self.serials)
        return out

    def decide_table(self, s: Expansion, kernel: Kernel, table: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The same for the rows of a table whose features have these columns; NaN for too large rows."""
        self.follow(s)
        vectors, out, alpha = self._vectors(kernel), np.empty(len(table)), self._alpha(s)
        width, xp = self._X.shape[1], self.gpu.xp

        def decide(begin: int, end: int) -> None:
            Q, sq = self.gpu.arranged(table[begin:end], columns, width)
            values = vectors.weighted_sum(Q, sq.astype(np.float32)[:, None], alpha)
            out[begin:end] = xp.asnumpy(xp.where(sq < LARGEST_SQUARED_NORM, values, np.nan))

        by_halves(self.gpu, decide, 0, len(out), self.gpu.chunk(vectors.bytes_each + 16 * table.shape[1]))
        s.counts[EVALUATIONS] += len(out) * len(self.serials)
        return out

    def products(self, s: Expansion, q: Queries) -> tuple[np.ndarray, np.ndarray]:
        """P, by slot (the entries of holes mean nothing), and G: see `blocks`."""
        self.follow(s)
        xp, X = self.gpu.xp, self._X[: len(self.serials)]
        place_of = np.zeros(int(s.counts[SLOTS]), np.int64)
        place_of[self._live] = self._places
        places, width = xp.asarray(place_of), max(X.shape[1], int(q.indices.max(initial=-1)) + 1)
        Q = self.gpu.dense(q.indptr, q.indices, q.values, width, np.float32)  # with features that no member has
        P, G = (np.empty((len(q.sq), columns), np.float32) for columns in (len(place_of), len(q.sq)))

        def multiply(begin: int, end: int) -> None:
            P[begin:end] = xp.asnumpy((Q[begin:end, : X.shape[1]] @ X.T)[:, places])
            G[begin:end] = xp.asnumpy(Q[begin:end] @ Q.T)

        by_halves(self.gpu, multiply, 0, len(q.sq), self.gpu.chunk(8 * len(place_of)))
        return P, G

    def _alpha(self, s: Expansion) -> Any:
        """The coefficients by place."""
        alpha = np.empty(len(self.serials))
        alpha[self._places] = s.alpha[self._live]
        return self.gpu.xp.asarray(alpha)

    def _vectors(self, kernel: Kernel) -> Vectors:
        n = len(self.serials)
        return Vectors(self.gpu, kernel, self._X[:n], self._sq[:n])

    def _queries(self, q: Queries) -> tuple[Any, Any]:
        Q = self.gpu.dense(q.indptr, q.indices, q.values, self._X.shape[1], np.float32)
        return Q, self.gpu.xp.asarray(q.sq)[:, None]
