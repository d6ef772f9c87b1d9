"""Spans: kernel expansions over some hundred of the latest records, fitted by least squares, with a learned metric.

    minimise over a:  sum over the records of (y - k(x) a)^2 + lambda a^T K a
    (A + lambda (K + 0.01 I)) a = b,   k(x): kernel values with the basis,   A = sum of k(x)^T k(x),   b = sum of y k(x)

A and b are taken in block by block; a is solved for now and then, for each lambda of `RIDGES`.  The one with the
smallest fading hinge loss predicts.  When the number of records has doubled, and fourfold once there are more than
`BUFFER`, the span begins anew from the latest `BUFFER` records: its scale, its basis, and its metric,

    T T^T = the mean of g g^T, or its diagonal, mixed with a little of the identity; g: the gradients of f there

Several classes share scale, metric, basis and A.  Each has its y, b, a and losses; g are the gradients of all.

========= ==================================================== ================= =======
symbol    name                                                 shape             dtype
========= ==================================================== ================= =======
X, y      the latest records, NaN for missing, and their       (`BUFFER`, D)     float64
          classes: 1, 2 ..., or -1 for none
A, b      sums over the records                                (M, M), (C, M)    float64
losses    fading hinge losses, one for each lambda             (C, 3)            float64
========= ==================================================== ================= =======

Source: Radhakrishnan et al., "Mechanism for feature learning in neural networks and backpropagation-free machine
learning models" (2024), the recursive feature machine.  Deviation: the metric is mixed with the identity.
"""

from typing import Any

import numpy as np

from streamsvm.online.mixture.linear import MEMORY
from streamsvm.online.mixture.spans import BLOCK, Span, new_span

SIZE = BLOCK  # records of a basis: with 96 to 250 as often right, in the mean of 21 streams
BUFFER = 2048  # latest records
RIDGES = (0.1, 1.0, 10.0)  # the one with the smallest errors is used
MIXED_IN = 0.01  # of the identity, in a metric and beside K


def is_time_to_begin(n: int) -> bool:
    """Whether the spans begin anew after so many records."""
    is_doubled, is_fourfold = not n & (n - 1), (n.bit_length() - BUFFER.bit_length()) % 2 == 0
    return is_doubled and (n <= BUFFER or is_fourfold)


class Latest:
    """The latest records."""

    def __init__(self, d: int) -> None:
        self.X, self.y, self.n = np.full((BUFFER, d), np.nan), np.zeros(BUFFER), 0

    def add(self, x: np.ndarray, y: float) -> None:
        """Take in a record in the place of the oldest one."""
        self.X[self.n % BUFFER], self.y[self.n % BUFFER] = x, y
        self.n += 1

    def widen(self, d: int) -> None:
        """Make room for more columns."""
        self.X = np.pad(self.X, ((0, 0), (0, d - self.X.shape[1])), constant_values=np.nan)

    def in_order(self) -> tuple[np.ndarray, np.ndarray]:
        """The records and their labels, from the oldest to the newest."""
        if self.n <= BUFFER:
            return self.X[: self.n], self.y[: self.n]
        order = (self.n + np.arange(BUFFER)) % BUFFER
        return self.X[order], self.y[order]


class Fit:
    """The span of each class, and the sums that they are fitted from."""

    def __init__(self, *, is_full: bool, memory: float) -> None:
        self.is_full, self.memory = is_full, memory
        self.spans = [new_span(is_full)]
        self.A, self.b, self.losses = np.zeros((0, 0), order="F"), np.zeros((1, 0)), np.zeros((1, len(RIDGES)))

    @property
    def span(self) -> Span:
        """The span of the first class; those of the others differ in `coef`, and in the ridge in use."""
        return self.spans[0]

    def begin_class(self) -> None:
        """Make room for another class, whose f is 0 until the next beginning."""
        first = self.span
        self.spans.append(first._replace(coef=np.zeros_like(first.coef), gamma=first.gamma * (1.0, 0.0)))
        self.b, self.losses = (np.pad(array, ((0, 1), (0, 0))) for array in (self.b, self.losses))

    def widen(self, d: int) -> None:
        """Make room for more columns, which count from the next beginning on: their factors are 0."""
        more = (0, d - len(self.span.mean))
        of_metric = (more if self.is_full else (0, 0), more)
        room: dict[str, Any] = {"mean": more, "factor": more, "metric": of_metric, "basis": (more, (0, 0))}
        self._share(**{name: np.pad(getattr(self.span, name), pads) for name, pads in room.items()})

    def make_room(self, m: int) -> None:
        """Make room for a basis of m records."""
        d, n = len(self.span.mean), len(self.spans)
        self._share(basis=np.zeros((d, m)), squares=np.zeros(m), block=np.zeros((BLOCK, m)))
        self.spans = [span._replace(coef=np.zeros((len(RIDGES), m))) for span in self.spans]
        self.A, self.b = np.zeros((m, m), order="F"), np.zeros((n, m))

    def _share(self, **arrays: np.ndarray) -> None:
        self.spans = [span._replace(**arrays) for span in self.spans]

    def _placed(self, X: np.ndarray) -> np.ndarray:
        """The records in the span's coordinates, (n, D)."""
        span = self.span
        Z = np.where(np.isnan(X), 0.0, (X - span.mean) * span.factor)
        return Z @ span.metric if self.is_full else Z * span.metric

    def _kernel_rows(self, U: np.ndarray) -> np.ndarray:
        """The kernel values of records in the span's coordinates with the basis, (n, M)."""
        span, gamma = self.span, self.span.gamma[0]
        K: np.ndarray = U @ (2.0 * gamma * span.basis)
        K -= gamma * span.squares
        K -= gamma * np.square(U).sum(axis=1, keepdims=True)
        return np.exp(np.minimum(K, 0.0, out=K), out=K)

    def note_basis(self) -> None:
        """Compute the kernel values of the basis with itself."""
        self.kernel = self._kernel_rows(self.span.basis.T).T  # in the order that LAPACK has

    def take_in(self, Y: np.ndarray) -> None:
        """Take in the first rows of the block, whose labels are Y, +1 or -1, (C, n)."""
        n = Y.shape[1]
        K, ages = self.span.block[:n], np.arange(n - 1, -1, -1)
        for c, (y, span) in enumerate(zip(Y, self.spans, strict=True)):
            hinge = np.maximum(0.0, 1.0 - y * (span.coef @ K.T))
            self.losses[c] = self.losses[c] * MEMORY**n + hinge @ MEMORY**ages
        self._add(K, Y)

    def _add(self, K: np.ndarray, Y: np.ndarray) -> None:
        """Add records to the sums, whose kernel rows are K, (n, M), and whose labels are Y, (C, n)."""
        from scipy.linalg.blas import dsyrk  # scipy takes long to load, and most models never need it

        fading, roots = self.memory ** len(K), np.sqrt(self.memory) ** np.arange(len(K) - 1, -1, -1)
        faded = K * roots[:, None]
        self.b = self.b * fading + (Y * roots) @ faded
        self.A = dsyrk(1.0, faded.T, beta=fading, c=self.A, lower=1, overwrite_c=1)

    def solve(self) -> None:
        """Solve for the coefficients, and choose among the ridges."""
        from scipy.linalg import cho_solve

        for i, ridge in enumerate(RIDGES):
            factor = _factor(self.A + ridge * self.kernel, MIXED_IN * ridge)
            for span, coef in zip(self.spans, cho_solve(factor, self.b.T, check_finite=False).T, strict=True):
                span.coef[i] = coef
        for span, losses in zip(self.spans, self.losses, strict=True):
            span.gamma[1] = int(np.argmin(losses))

    def begin_anew(self, X: np.ndarray, Y: np.ndarray) -> None:
        """Choose scale, metric and basis from these records, the latest ones, and fit the spans to them."""
        mean, factor, variance = scale_of(X)
        metric = self._learned_metric(X[-(BUFFER // 4) :])  # as many as lie between two solutions
        size = min(SIZE, len(X))
        self.make_room(size)
        self._share(mean=mean, factor=factor, metric=metric)
        U = self._placed(X)
        basis = np.ascontiguousarray(U[np.arange(size) * len(X) // size].T)
        self._share(basis=basis, squares=np.square(basis).sum(axis=0))
        gamma = 1.0 / max(variance, 1e-12)
        self.spans = [span._replace(gamma=np.array([gamma, span.gamma[1]])) for span in self.spans]
        self.note_basis()
        for begin in range(0, len(X), BLOCK):
            part = slice(begin, begin + BLOCK)  # its kernel values are in a near memory
            self._add(self._kernel_rows(U[part]), Y[:, part])
        self.solve()

    def _learned_metric(self, X: np.ndarray) -> np.ndarray:
        """The metric from the gradients of f at these records."""
        d, U = X.shape[1], self._placed(X)
        M, K = np.zeros((d, d)), self._kernel_rows(U)
        for span in self.spans:
            terms = K * span.coef[int(span.gamma[1])]
            gradients = terms @ span.basis.T - U * terms.sum(axis=1, keepdims=True)
            gradients = gradients @ span.metric.T if self.is_full else gradients * span.metric
            M += gradients.T @ gradients
        trace = np.trace(M)
        if not 0.0 < trace < np.inf:  # at first, f is 0
            return np.eye(d) if self.is_full else np.ones((1, d))
        M = (1.0 - MIXED_IN) * d * (M / trace) + MIXED_IN * np.eye(d)
        if not self.is_full:
            return np.sqrt(np.diagonal(M))[np.newaxis]
        values, vectors = np.linalg.eigh(M)
        T = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.ascontiguousarray(T * np.sqrt(d / np.square(T).sum()))


def scale_of(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and factor of each column, and the sum of the variances at this scale; columns of 0 and 1 keep theirs."""
    known = ~np.isnan(X)
    n = np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, X, 0.0)
    mean = filled.sum(axis=0) / n
    variance = (np.square(filled - mean) * known).sum(axis=0) / n
    is_binary = (np.isnan(X) | (X == 0.0) | (X == 1.0)).all(axis=0)
    factor = np.where((variance > 0.0) & ~is_binary, 1.0 / np.sqrt(np.where(variance > 0.0, variance, 1.0)), 1.0)
    return mean, factor, float((variance * factor**2).sum())


def _factor(matrix: np.ndarray, jitter: float) -> tuple[np.ndarray, bool]:
    """The Cholesky factor of a matrix whose lower half is given, with as much on the diagonal as it takes."""
    from scipy.linalg import cho_factor

    jitter += 1e-10 * float(np.trace(matrix))
    diagonal = np.diag_indices_from(matrix)
    for _ in range(20):
        matrix[diagonal] += jitter
        try:
            return cho_factor(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            jitter *= 10.0
    raise np.linalg.LinAlgError("the sums of a span hold numbers that are not finite")
