"""Kinds of folds: which examples each split of a cross-validation tests, and which it trains on.

========================= ============================================================= =====================
kind                      splits                                                        every example tested
========================= ============================================================= =====================
`hold_out`                one                                                           at most once
`v_fold`                  k parts, each tested once                                     once
`stratified`              k parts with the same share of every class                    once
`grouped`                 k parts, every group in one of them                           once
`leave_one_out`           n, with one example each                                      once
`leave_p_out`             all n! / (p! (n-p)!) choices of p examples                    several times
`repeated`                those of one of the first three kinds, for several seeds      several times
`from_numbers`            as given                                                      at most once
========================= ============================================================= =====================

A split is stored as the examples that it leaves out, so that leaving one out takes n numbers and not n^2.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from streamsvm.core import arguments

MAX_SPLITS = 1_000_000  # more of them would fill the memory

__all__ = [
    "Folds",
    "from_numbers",
    "grouped",
    "hold_out",
    "leave_one_out",
    "leave_p_out",
    "repeated",
    "stratified",
    "v_fold",
]


class Folds:
    """The splits of n examples.

    Iteration gives pairs (train, test) of example numbers; scikit-learn takes the object as `cv`.

    Parameters
    ----------
    n
        Number of examples.
    tests
        For each split, the numbers of the examples that it tests; at least one.
    left_out
        For each split, the numbers of the examples that it does not train on.  Default: those that it tests.

    Raises
    ------
    ValueError
        If a split tests nothing, trains on nothing, or trains on what it tests, or if a number is out of range.

    Examples
    --------
    >>> for train, test in v_fold(5, 2, seed=None):
    ...     print(train, test)
    [3 4] [0 1 2]
    [0 1 2] [3 4]
    """

    def __init__(self, n: int, tests: Iterable[Any], left_out: Iterable[Any] | None = None) -> None:
        self.n = n
        self.tests = [numbers_of(ids, n, f"test part {i}") for i, ids in enumerate(tests)]
        self.left_out = self.tests
        if left_out is not None:
            self.left_out = [numbers_of(ids, n, f"what split {i} leaves out") for i, ids in enumerate(left_out)]
        if not self.tests:
            raise ValueError("there is no split; at least one is needed")
        for i, (test, out) in enumerate(zip(self.tests, self.left_out, strict=True)):
            if len(test) == 0:
                raise ValueError(f"split {i} tests no example")
            if test is not out and not np.isin(test, out).all():
                raise ValueError(f"split {i} trains on examples that it tests")
            if len(out) == n:
                raise ValueError(f"split {i} leaves out all {n} examples; none is left to train on")

    def __repr__(self) -> str:
        return f"Folds({self.n} examples, {len(self)} splits)"

    def __len__(self) -> int:
        return len(self.tests)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for test, out in zip(self.tests, self.left_out, strict=True):
            yield self._train(out), test

    def _train(self, out: np.ndarray) -> np.ndarray:
        chosen = np.ones(self.n, bool)
        chosen[out] = False
        return np.flatnonzero(chosen)

    def of_one_class(self, y: np.ndarray, used: np.ndarray | None = None) -> list[int]:
        """Numbers of the splits whose training part holds one class only, or no example.

        Parameters
        ----------
        y
            Labels, (n,) bool.
        used
            Which examples are trained on at all, (n,) bool.  Default: all.
        """
        used = np.ones(len(y), bool) if used is None else used
        positives, negatives = used & y, used & ~y
        totals = np.count_nonzero(positives), np.count_nonzero(negatives)
        return [
            i
            for i, out in enumerate(self.left_out)
            if totals[0] == np.count_nonzero(positives[out]) or totals[1] == np.count_nonzero(negatives[out])
        ]


def numbers_of(ids: Any, n: int, what: str) -> np.ndarray:
    """The given example numbers (or a mask) as numbers in ascending order."""
    arguments.require_unmasked(what, ids)
    numbers = np.asarray(ids)
    if numbers.dtype == bool and numbers.shape == (n,):
        return np.flatnonzero(numbers)
    if numbers.size == 0:
        return np.zeros(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= n:
        raise ValueError(f"{what} is {ids!r}; it must hold numbers of examples from 0 to {n - 1}, each once")
    ordered = np.sort(numbers).astype(np.int64)
    if (np.diff(ordered) == 0).any():
        raise ValueError(f"{what} holds an example twice: {int(ordered[:-1][np.diff(ordered) == 0][0])}")
    return ordered


# ------------------------------------------------------------------------------------------------------- kinds of folds


def hold_out(n: int, test: float = 0.25, *, y: Any = None, seed: int | None = 0) -> Folds:
    """One split: some examples are tested by a model of all others.

    Parameters
    ----------
    n
        Number of examples.
    test
        Share of the tested examples, between 0 and 1, or their number, from 1 to n - 1.
    y
        Labels, (n,).  With them, the same share of every class is tested.
    seed
        Seed of the random choice.  None: the last examples are tested, as in a stream.

    Raises
    ------
    ValueError
        If nothing would be left to test, or nothing to train on.

    Examples
    --------
    >>> [(train, test)] = hold_out(4, seed=None)
    >>> train, test
    (array([0, 1, 2]), array([3]))
    """
    _require_n(n)
    whole = isinstance(test, int | np.integer) and not isinstance(test, bool)
    if whole and not 1 <= test < n:
        raise ValueError(f"test={test!r} of {n} examples is out of range; test must be from 1 to {n - 1}, or a share")
    if not whole and not (isinstance(test, float | np.floating) and 0 < test < 1):
        raise ValueError(f"test={test!r} must be a share between 0 and 1, or a whole number")
    amount = int(test) if whole else min(max(1, round(n * float(test))), n - 1)
    order = _order(n, seed)
    if y is None:
        return Folds(n, [order[n - amount :]])
    classes = _classes(y, n)
    exact = amount * np.bincount(classes) / n
    each = np.floor(exact).astype(np.int64)
    each[np.argsort(each - exact, kind="stable")[: amount - each.sum()]] += 1
    members = [order[classes[order] == c] for c in range(len(each))]
    return Folds(n, [np.concatenate([m[len(m) - e :] for m, e in zip(members, each, strict=True)])])


def v_fold(n: int, k: int = 10, *, seed: int | None = 0) -> Folds:
    """k parts of equal size; each is tested by a model of all others.

    Parameters
    ----------
    n
        Number of examples.
    k
        Number of parts, from 2 to n.
    seed
        Seed of the order in which the examples are dealt out.  None: the first part has the first examples, and so on.

    Examples
    --------
    >>> [test.tolist() for _, test in v_fold(7, 3, seed=None)]
    [[0, 1, 2], [3, 4], [5, 6]]
    """
    _require_n(n)
    _require_folds(k, n, "examples")
    return Folds(n, np.array_split(_order(n, seed), k))


def stratified(y: Any, k: int = 10, *, seed: int | None = 0) -> Folds:
    """k parts of equal size with the same share of every class.

    The sizes of two parts differ by at most 1, and so do their counts of a class.

    Parameters
    ----------
    y
        Labels of two or more classes.
    k
        Number of parts, from 2 to the number of examples of the smallest class.
    seed
        Seed of the order in which the examples of a class are dealt out.  None: in their own order.

    Examples
    --------
    >>> [test.tolist() for _, test in stratified("aaabbb", 3, seed=None)]
    [[0, 3], [1, 4], [2, 5]]
    """
    labels = arguments.vector_of("y", list(y) if isinstance(y, str) else y)
    n = len(labels)
    classes = _classes(labels, n)
    counts = np.bincount(classes)
    if counts.min() == 1:
        alone = labels[classes == counts.argmin()][0]
        raise ValueError(
            f"y has one example of class {alone!s}, and stratified folds need two of each class; "
            "v_fold, leave_one_out and hold_out do not"
        )
    _require_folds(k, int(counts.min()), "examples of the smallest class")
    order = _order(n, seed)
    dealt = order[np.argsort(classes[order], kind="stable")]
    return Folds(n, [dealt[i::k] for i in range(k)])


def grouped(groups: Any, k: int = 10) -> Folds:
    """k parts of about equal size; all examples of a group are in the same part.

    The groups are dealt out from the largest on, each to the part that is smallest so far.

    Parameters
    ----------
    groups
        The group of each example: any value, such as the name of a patient.
    k
        Number of parts, from 2 to the number of groups.

    Examples
    --------
    >>> [test.tolist() for _, test in grouped(["ann", "bob", "ann", "eve"], 2)]
    [[0, 2], [1, 3]]
    """
    arguments.require_unmasked("groups", groups)
    names = np.asarray(groups)
    if names.ndim != 1 or len(names) == 0:
        raise ValueError(f"groups has shape {names.shape}; one value for each example is needed")
    _, group_of = np.unique(names, return_inverse=True)
    sizes = np.bincount(group_of)
    if len(sizes) == 1:
        raise ValueError(f"groups holds {names[0]!s} only; at least two groups are needed")
    _require_folds(k, len(sizes), "groups")
    fold_of, filled = np.zeros(len(sizes), np.int64), np.zeros(k, np.int64)
    for group in np.argsort(-sizes, kind="stable"):
        fold_of[group] = np.argmin(filled)
        filled[fold_of[group]] += sizes[group]
    return from_numbers(fold_of[group_of])


def leave_one_out(n: int) -> Folds:
    """n splits; each tests one example by a model of all others.

    Examples
    --------
    >>> [test.tolist() for _, test in leave_one_out(3)]
    [[0], [1], [2]]
    """
    _require_n(n)
    return Folds(n, np.arange(n)[:, None])


def leave_p_out(n: int, p: int = 2) -> Folds:
    """Every choice of p examples, tested by a model of all others.

    Parameters
    ----------
    n
        Number of examples.
    p
        Number of examples that a split leaves out, from 1 to n - 1.

    Raises
    ------
    ValueError
        If there are more than a million splits; their number is n! / (p! (n-p)!).

    Examples
    --------
    >>> [test.tolist() for _, test in leave_p_out(3, 2)]
    [[0, 1], [0, 2], [1, 2]]
    """
    _require_n(n)
    if not isinstance(p, int | np.integer) or not 1 <= p < n:
        raise ValueError(f"p={p!r} must be a whole number from 1 to {n - 1}, one less than there are examples")
    if math.comb(n, p) > MAX_SPLITS:
        raise ValueError(
            f"leaving p={p} of {n} examples out has {math.comb(n, p):,} splits, more than {MAX_SPLITS:,}; "
            "use repeated hold_out"
        )
    return Folds(n, np.array(list(itertools.combinations(range(n), p))))


def repeated(make: Callable[[int], Folds], times: int, *, seed: int = 0) -> Folds:
    """The splits that `make` returns for several seeds, one after the other.

    Parameters
    ----------
    make
        Function that takes a seed and returns `Folds`.
    times
        Number of seeds, at least 1.
    seed
        The first seed; each of the others is one larger than the one before.

    Examples
    --------
    >>> y = [False, True] * 6
    >>> len(repeated(lambda seed: stratified(y, 3, seed=seed), 5))
    15
    """
    arguments.require_count("times", times, 1)
    made = [make(seed + i) for i in range(times)]
    if len({folds.n for folds in made}) > 1:
        raise ValueError(f"make returned folds of {sorted({folds.n for folds in made})} examples; n must be the same")
    tests = [test for folds in made for test in folds.tests]
    left_out = [out for folds in made for out in folds.left_out]
    return Folds(made[0].n, tests, left_out)


def from_numbers(numbers: Any) -> Folds:
    """Folds from the number of each example's fold.

    Parameters
    ----------
    numbers
        For each example, the number of the fold that tests it, at least 0.  -1: the example is never tested.

    Examples
    --------
    >>> [(train.tolist(), test.tolist()) for train, test in from_numbers([0, 1, -1, 1])]
    [([1, 2, 3], [0]), ([0, 2], [1, 3])]
    """
    fold_of = np.asarray(numbers)
    if fold_of.ndim != 1 or fold_of.dtype.kind not in "iu" or len(fold_of) == 0 or fold_of.min() < -1:
        raise ValueError(f"the fold numbers are {numbers!r}; each example needs one whole number, at least -1")
    order = np.argsort(fold_of, kind="stable")
    starts = np.flatnonzero(np.diff(fold_of[order], prepend=-1))
    return Folds(len(fold_of), np.split(order, starts)[1:])


def _require_n(n: Any) -> None:
    arguments.require_count("n", n, 2)


def _require_folds(k: Any, most: int, what: str) -> None:
    arguments.require_count("k", k, 2)
    if k > most:
        raise ValueError(f"k={k!r} folds of {most} {what}; k must be at most {most}")


def _order(n: int, seed: int | None) -> np.ndarray:
    return np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)


def _classes(y: Any, n: int) -> np.ndarray:
    """The number of each example's class, (n,)."""
    if n == 0:
        raise ValueError("y has shape (0,); there must be at least one example")
    return np.unique(arguments.classes_of(y, n), return_inverse=True)[1]
