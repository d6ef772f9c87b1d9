"""The problems of all pairs of classes of one training set.

A pair's problem is that of `working_set.solver`, over the examples of two classes.  Small classes make many small
problems, and the calls between compiled parts then cost more than the arithmetic.  So small pairs have one compiled
loop, `small_pairs`.
It reads the kernel values of a class with itself, and of a class with the classes after it.  They are computed by a few
matrix products, each value once, though a class is in many pairs.

A pair with more than `LARGEST_SMALL` examples, or with too many for the memory, has `solver` instead, and so has one
whose steps do not come to an end: `solver` works on few active examples, and takes Newton steps.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from streamsvm.batch.kernels.matrix import KernelSource
from streamsvm.batch.multiclass.small_pairs import Found, Work, solve_pairs
from streamsvm.batch.options import FEW_STEPS, SolverOptions
from streamsvm.batch.problem import members_of
from streamsvm.batch.working_set.solver import optimum
from streamsvm.core.threads import one_blas_thread

LARGEST_SMALL = 3000  # examples of a small pair


class PairOptimum(NamedTuple):
    """The solution of the problem of two classes.

    Attributes
    ----------
    first, second
        The classes; the first one is positive.
    members
        Numbers of the examples that the solution rests on, rising in each class: those with a coefficient, and those
        that hold the extremes of the gradient.
    places
        The place of each member among the first class's examples and, after them, the second's.
    alpha, g
        Their coefficients, with their labels' signs, and gradients.
    bias
        The constant of f(x).
    positive, decision_values
        The labels of examples, in the order of their arrival, and f(x) of each by a model that had not seen it.
    n_passes
        Number of passes over all examples of the pair.
    converged
        Whether the solver reached its tolerance.
    """

    first: int
    second: int
    members: np.ndarray
    places: np.ndarray
    alpha: np.ndarray
    g: np.ndarray
    bias: float
    positive: np.ndarray
    decision_values: np.ndarray
    n_passes: int
    converged: bool


def optima(
    features: KernelSource, classes: np.ndarray, box: np.ndarray, options: SolverOptions
) -> Iterator[PairOptimum]:
    """Solve the problems of all pairs of classes, in the order (0, 1), (0, 2), ..., (1, 2), ...

    Parameters
    ----------
    features
        The examples and the kernel.
    classes
        The class of each example, 0 to k - 1 with k at least 2, (n,).  An example of class -1 is left out.
    box
        The largest coefficient of each example, (n,).
    options
        `tol`, `cache_mb`, `max_iterations` and `max_passes` count.

    Examples
    --------
    >>> from streamsvm.batch.kernels.features import Features
    >>> from streamsvm.core.kernels import Linear
    >>> examples = Features(np.array([[0.0], [1.0], [2.0]]), Linear())
    >>> for pair in optima(examples, np.array([0, 1, 2]), np.full(3, 10.0), SolverOptions()):
    ...     print(pair.first, pair.second, pair.members, pair.alpha.round(3))
    0 1 [0 1] [ 2. -2.]
    0 2 [0 2] [ 0.5 -0.5]
    1 2 [1 2] [ 2. -2.]
    """
    for (pair,) in optima_along(features, classes, box, [1.0], options):
        yield pair


def optima_along(
    features: KernelSource,
    classes: np.ndarray,
    box: np.ndarray,
    Cs: list[float],
    options: SolverOptions,
) -> Iterator[list[PairOptimum]]:
    """Solve the problems of all pairs of classes with the box times each of these factors, which rise; see `optima`.

    They share kernel values, and small pairs start from the solution before.  Each pair's solutions come together.
    """
    rows, boxes = _rows_of(classes), [C * box for C in Cs]
    with one_blas_thread():
        small = _SmallPairs(features, rows, box, Cs, options)
        for first in range(len(rows) - 1):
            solved = {(second, k): found for second, k, found in small.solutions(first)}
            for second in range(first + 1, len(rows)):
                pair = rows[first], rows[second]
                yield [
                    solved.get((second, k)) or _large_pair(features, first, second, pair, box, options)
                    for k, box in enumerate(boxes)
                ]


def solved_pair(
    features: KernelSource,
    classes: np.ndarray,
    first: int,
    second: int,
    box: np.ndarray,
    options: SolverOptions,
) -> PairOptimum:
    """The solution for two of the classes alone; for the arguments see `optima`."""
    pair = np.flatnonzero(classes == first), np.flatnonzero(classes == second)
    return _large_pair(features, first, second, pair, box, options)


def _rows_of(classes: np.ndarray) -> list[np.ndarray]:
    """The numbers of the examples of each class, rising."""
    ends = np.cumsum(np.bincount(classes + 1))
    return np.split(np.argsort(classes, kind="stable"), ends[:-1])[1:]


def _large_pair(
    features: KernelSource,
    first: int,
    second: int,
    pair: tuple[np.ndarray, np.ndarray],
    box: np.ndarray,
    options: SolverOptions,
) -> PairOptimum:
    """The solution for two classes by `solver`."""
    rows, y = np.concatenate(pair), np.repeat([1.0, -1.0], [len(of_class) for of_class in pair])
    lo, hi = np.minimum(0.0, y * box[rows]), np.maximum(0.0, y * box[rows])
    part = features.part(rows)
    found, arrived = optimum(part, y, lo, hi, options)
    features.kernel_evaluations += part.kernel_evaluations
    kept = members_of(found.dual_coef, found.g, lo, hi)
    seen = y[arrived.ids] > 0.0, arrived.decision_values
    of_members = rows[kept], kept, found.dual_coef[kept], found.g[kept]
    return PairOptimum(first, second, *of_members, found.bias, *seen, found.n_passes, found.converged)


class _SmallPairs:
    """The pairs of small classes, and the kernel values among the examples of each class."""

    def __init__(
        self,
        features: KernelSource,
        rows: list[np.ndarray],
        box: np.ndarray,
        Cs: list[float],
        options: SolverOptions,
    ) -> None:
        self._features, self._rows, self._box, self._Cs, self._tol = features, rows, box, Cs, options.tol
        self._sizes = sizes = np.array([len(of_class) for of_class in rows])
        self._largest = min(LARGEST_SMALL, math.isqrt(int(options.cache_mb * 2**20) // 8))  # two matrices in float32
        smallest = np.sort(sizes)[:2]
        partner = np.where(sizes == smallest[0], smallest[1], smallest[0])
        squares = np.where(sizes + partner <= self._largest, sizes**2, 0)
        if squares.sum() > options.cache_mb * 2**18:
            self._largest, squares = 0, np.zeros_like(sizes)
        ends = np.cumsum(squares)
        self._at, self._squares = ends - squares, np.empty(ends[-1], np.float32)
        for c in np.flatnonzero(squares):
            K = self._square(int(c))
            self._fill(K, rows[c], rows[c])
            np.fill_diagonal(K, features.diagonal[rows[c]])
        room = min(2 * int(sizes.max()), self._largest)
        self._memory = np.empty((2, room * room), np.float32)  # untouched memory is not taken
        self._work = Work(*np.empty((len(Work._fields), room)))
        self._cross = np.empty(0, np.float32)

    def _square(self, c: int) -> np.ndarray:
        n = int(self._sizes[c])
        return self._squares[self._at[c] : self._at[c] + n * n].reshape(n, n)

    def _fill(self, K: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
        for r, c, P in self._features.kernel_values(rows, columns):
            K[r : r + P.shape[0], c : c + P.shape[1]] = P

    def solutions(self, first: int) -> Iterator[tuple[int, int, PairOptimum]]:
        """The solutions of the pairs of a class and later ones, by the later one and the box.

        Those that do not come to an end are left out.
        """
        later = np.arange(first + 1, len(self._rows))
        later = later[self._sizes[first] + self._sizes[later] <= self._largest]
        n_values = np.cumsum(self._sizes[later]) * self._sizes[first]
        for group in np.split(later, np.flatnonzero(np.diff(n_values // self._largest**2)) + 1):
            if len(group):
                own, others = self._rows[first], np.concatenate([self._rows[c] for c in group])
                K_cross = self._room_for(len(others) * len(own)).reshape(len(others), len(own))
                self._fill(K_cross, others, own)
                of_pairs = np.concatenate([part for second in group for part in (own, self._rows[second])])
                found, before = self._room_for_found(first, group), 0.0
                for k, C in enumerate(self._Cs):
                    growth = C / before if before else 0.0
                    self._solve(first, group, np.concatenate([own, others]), K_cross, C, growth, found)
                    before = C
                    for second, pair in self._optima(first, group, of_pairs, found):
                        yield second, k, pair

    def _optima(
        self, first: int, group: np.ndarray, of_pairs: np.ndarray, found: Found
    ) -> Iterator[tuple[int, PairOptimum]]:
        """The solutions that came to an end, by the later class; `of_pairs` has the examples of each pair."""
        ends = np.cumsum(self._sizes[first] + self._sizes[group])
        kept = np.flatnonzero(found.is_member[: ends[-1]])
        of_members, ends_kept = (of_pairs[kept], kept, found.alpha[kept], found.g[kept]), np.searchsorted(kept, ends)
        positive, f = found.positive.copy(), found.f.copy()  # the next C will overwrite them
        begin = begin_kept = 0
        of_pair = (a.tolist() for a in (group, ends, ends_kept, found.n_arrived, found.bias, found.violation))
        for second, end, end_kept, n_arrived, bias, violation in zip(*of_pair, strict=True):
            if not violation > self._tol:
                members, places, alpha, g = (a[begin_kept:end_kept] for a in of_members)
                seen = positive[begin : begin + n_arrived], f[begin : begin + n_arrived]
                yield second, PairOptimum(first, second, members, places - begin, alpha, g, bias, *seen, 2, True)
            begin, begin_kept = end, end_kept

    def _room_for_found(self, first: int, group: np.ndarray) -> Found:
        """Room for the solutions of the pairs of a class and these others."""
        n_pairs = len(group)
        n = n_pairs * int(self._sizes[first]) + int(self._sizes[group].sum())
        of_examples = np.empty(n), np.empty(n), np.empty(n, bool), np.empty(n), np.empty(n, bool)
        return Found(*of_examples, np.empty(n_pairs, np.int64), np.empty(n_pairs), np.empty(n_pairs))

    def _solve(
        self,
        first: int,
        group: np.ndarray,
        every: np.ndarray,
        K_cross: np.ndarray,
        C: float,
        growth: float,
        found: Found,
    ) -> None:
        """Solve the pairs of a class and these others for a C; `every` has the examples of all of them.

        If C has grown by a factor, they start from what was found before; otherwise it is 0.
        """
        kernel_values = self._square(first), self._squares, self._at[group], K_cross, self._sizes[group]
        of_every, tol = (C * self._box[every], self._features.diagonal[every]), float(self._tol)
        solve_pairs(*kernel_values, *of_every, self._memory, self._work, tol, FEW_STEPS, growth, found)

    def _room_for(self, n_values: int) -> np.ndarray:
        if len(self._cross) < n_values:
            self._cross = np.empty(n_values, np.float32)
        return self._cross[:n_values]
