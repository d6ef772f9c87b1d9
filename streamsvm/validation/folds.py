"""Which examples are trained on and which are tested, in each split of a cross-validation.

========================= ============================================================= =====================
kind                      splits                                                        every example tested
========================= ============================================================= =====================
`hold_out`                one                                                           at most once
`v_fold`                  k parts, each tested once                                     once
`stratified`              k parts with the same share of every class                    once
`grouped`                 k parts, every group in one of them                           once
`leave_one_out`           n, with one example each                                      once
`leave_p_out`             all n! / (p! (n-p)!) choices of p examples                    often
`repeated`                those of one of the first three kinds, for several seeds      often
`from_numbers`            as given                                                      at most once
========================= ============================================================= =====================

A split is held as the examples it leaves out, so that leaving one out takes n numbers and not n^2.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from streamsvm.core import arguments

MAX_SPLITS = 1_000_000  # of leave_p_out

__all__ = [
    "Folds",
    "folds_of",
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
    """The splits of n examples; iterated over, pairs (train, test) of example numbers, as scikit-learn's `cv` takes.

    Parameters
    ----------
    n
        Number of examples.
    tests
        The numbers of the tested examples of each split.
    left_out
        The numbers of the examples that each split does not train on; default: those it tests.

    Examples
    --------
    >>> for train, test in v_fold(5, 2, seed=None):
    ...     print(train, test)
    [3 4] [0 1 2]
    [0 1 2] [3 4]
    """

    def __init__(self, n: int, tests: Iterable[Any], left_out: Iterable[Any] | None = None) -> None:
        self.n = n
        self.tests = [_numbers(ids, n, f"test part {i}") for i, ids in enumerate(tests)]
        self.left_out = self.tests
        if left_out is not None:
            self.left_out = [_numbers(ids, n, f"what split {i} leaves out") for i, ids in enumerate(left_out)]
        if not self.tests:
            raise ValueError("there are no splits; at least one is needed")
        for i, (test, out) in enumerate(zip(self.tests, self.left_out, strict=True)):
            if len(test) == 0:
                raise ValueError(f"split {i} tests no example")
            if test is not out and not np.isin(test, out).all():
                raise ValueError(f"split {i} trains on examples that it tests")
            if len(out) == n:
                raise ValueError(f"split {i} leaves out all {n} examples; none is left to train on")

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
        """Numbers of the splits that train on one class only, or on nobody.

        Parameters
        ----------
        y
            Labels, (n,) bool.
        used
            Which examples are trained on at all, (n,) bool; default: every one.
        """
        used = np.ones(len(y), bool) if used is None else used
        positives, negatives = used & y, used & ~y
        totals = np.count_nonzero(positives), np.count_nonzero(negatives)
        return [
            i
            for i, out in enumerate(self.left_out)
            if totals[0] == np.count_nonzero(positives[out]) or totals[1] == np.count_nonzero(negatives[out])
        ]


def _numbers(ids: Any, n: int, what: str) -> np.ndarray:
    """Example numbers in ascending order; the array itself if it is that already."""
    arguments.require_unmasked(what, ids)
    numbers = np.asarray(ids)
    if numbers.dtype == bool and numbers.shape == (n,):
        return np.flatnonzero(numbers)
    if numbers.size == 0:
        return np.zeros(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= n:
        raise ValueError(f"{what} is {ids!r}; numbers of examples from 0 to {n - 1} are needed, each once")
    ordered = np.sort(numbers).astype(np.int64)
    if (np.diff(ordered) == 0).any():
        raise ValueError(f"{what} holds an example twice: {int(ordered[:-1][np.diff(ordered) == 0][0])}")
    return ordered


# ------------------------------------------------------------------------------------------------------- kinds of folds


def hold_out(n: int, test: float = 0.25, *, y: Any = None, seed: int | None = 0) -> Folds:
    """One split: a part is tested by a model of all others.

    Parameters
    ----------
    n
        Number of examples.
    test
        How many are tested: a share between 0 and 1, or a whole number.
    y
        Labels; if given, the share of every class is tested.
    seed
        Of the choice.  None: the last ones are tested, as in a stream.

    Raises
    ------
    ValueError
        If nothing would be left to test or to train on.

    Examples
    --------
    >>> [(train, test)] = hold_out(4, seed=None)
    >>> train, test
    (array([0, 1, 2]), array([3]))
    """
    _require_n(n)
    whole = isinstance(test, int | np.integer) and not isinstance(test, bool)
    if whole and not 1 <= test < n:
        raise ValueError(f"test={test!r} of {n} examples: at least one has to be tested, and one trained on")
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
    """k parts of equal size, each tested by a model of all others.

    Parameters
    ----------
    n
        Number of examples.
    k
        Number of parts.
    seed
        Of the order in which the examples are dealt out.  None: the first part has the first examples, and so on.

    Examples
    --------
    >>> [test.tolist() for _, test in v_fold(7, 3, seed=None)]
    [[0, 1, 2], [3, 4], [5, 6]]
    """
    _require_n(n)
    _require_folds(k, n, "examples")
    return Folds(n, np.array_split(_order(n, seed), k))


def stratified(y: Any, k: int = 10, *, seed: int | None = 0) -> Folds:
    """k parts of equal size with the same share of every class: sizes, and counts of a class, differ by 1 at most.

    Parameters
    ----------
    y
        Labels, of any two or more classes.
    k
        Number of parts; every class has at least as many examples.
    seed
        Of the order in which the examples of a class are dealt out.  None: as they come.

    Examples
    --------
    >>> [test.tolist() for _, test in stratified("aaabbb", 3, seed=None)]
    [[0, 3], [1, 4], [2, 5]]
    """
    arguments.require_unmasked("y", y)
    labels = np.asarray(list(y) if isinstance(y, str) else y)
    n = len(labels)
    classes = _classes(labels, n)
    counts = np.bincount(classes)
    if counts.min() == 1:
        raise ValueError(
            "a class has one example only, and stratified folds need two of each class; "
            "v_fold, leave_one_out and hold_out do not"
        )
    _require_folds(k, int(counts.min()), "examples of the smallest class")
    order = _order(n, seed)
    dealt = order[np.argsort(classes[order], kind="stable")]
    return Folds(n, [dealt[i::k] for i in range(k)])


def grouped(groups: Any, k: int = 10) -> Folds:
    """k parts of about equal size, with all examples of a group in the same part.

    The largest group goes first, always to the smallest part so far.

    Parameters
    ----------
    groups
        One value for each example: whose it is.
    k
        Number of parts; there are at least as many groups.

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
        raise ValueError("all examples are of one group; two groups at least are needed")
    _require_folds(k, len(sizes), "groups")
    fold_of, filled = np.zeros(len(sizes), np.int64), np.zeros(k, np.int64)
    for group in np.argsort(-sizes, kind="stable"):
        fold_of[group] = np.argmin(filled)
        filled[fold_of[group]] += sizes[group]
    return from_numbers(fold_of[group_of])


def leave_one_out(n: int) -> Folds:
    """Every example, tested by a model of all others.

    Examples
    --------
    >>> [test.tolist() for _, test in leave_one_out(3)]
    [[0], [1], [2]]
    """
    _require_n(n)
    return Folds(n, np.arange(n)[:, None])


def leave_p_out(n: int, p: int = 2) -> Folds:
    """Every choice of p examples, tested by a model of all others; n! / (p! (n-p)!) splits.

    Raises
    ------
    ValueError
        If there are more than a million of them.

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
    """The splits that `make` returns for `times` seeds, one after the other.

    Parameters
    ----------
    make
        From a seed to folds.
    times
        How often.
    seed
        The first seed; the next is one larger.

    Examples
    --------
    >>> y = [False, True] * 6
    >>> len(repeated(lambda seed: stratified(y, 3, seed=seed), 5))
    15
    """
    arguments.require_count("times", times, 1)
    made = [make(seed + i) for i in range(times)]
    if len({folds.n for folds in made}) > 1:
        raise ValueError(f"make returned folds of {sorted({folds.n for folds in made})} examples; one number is needed")
    tests = [test for folds in made for test in folds.tests]
    left_out = [out for folds in made for out in folds.left_out]
    return Folds(made[0].n, tests, left_out)


def from_numbers(numbers: Any) -> Folds:
    """The folds whose numbers are given.

    Parameters
    ----------
    numbers
        One whole number for each example: the fold that tests it; -1: it is always trained on.

    Examples
    --------
    >>> [(train.tolist(), test.tolist()) for train, test in from_numbers([0, 1, -1, 1])]
    [([1, 2, 3], [0]), ([0, 2], [1, 3])]
    """
    fold_of = np.asarray(numbers)
    if fold_of.ndim != 1 or fold_of.dtype.kind not in "iu" or len(fold_of) == 0 or fold_of.min() < -1:
        raise ValueError(f"the fold numbers are {numbers!r}; one whole number for each example is needed, -1 for none")
    order = np.argsort(fold_of, kind="stable")
    starts = np.flatnonzero(np.diff(fold_of[order], prepend=-1))
    return Folds(len(fold_of), np.split(order, starts)[1:])


# ------------------------------------------------------------------------------------------------------------ any folds


def folds_of(folds: Any, y: np.ndarray) -> Folds:
    """`Folds` from what users give: folds, fold numbers, pairs (train, test), or one of scikit-learn's splitters.

    Parameters
    ----------
    folds
        As above; a splitter is called with the labels, but without groups.
    y
        Labels, (n,).

    Raises
    ------
    ValueError
        If they are not folds of n examples.
    TypeError
        If they are nothing of the kind.
    """
    n = len(y)
    made = folds if isinstance(folds, Folds) else _from_items(_items(folds, y), n)
    if made.n != n:
        raise ValueError(f"the folds are those of {made.n} examples; there are {n}")
    return made


def _items(folds: Any, y: np.ndarray) -> Iterator[Any]:
    """Pairs or fold numbers, one after the other."""
    if isinstance(folds, str) or not (hasattr(folds, "split") or isinstance(folds, Iterable)):
        hint = f"; for {folds} stratified folds use k={folds}" if isinstance(folds, int | np.integer) else ""
        raise TypeError(f"folds={folds!r} must be Folds, fold numbers, pairs (train, test) or a splitter{hint}")
    return _split(folds, y) if hasattr(folds, "split") else iter(folds)


def _split(splitter: Any, y: np.ndarray) -> Iterator[Any]:
    try:
        yield from splitter.split(np.zeros((len(y), 1)), y)
    except (TypeError, ValueError) as error:
        if "Group" not in type(splitter).__name__:
            raise
        raise ValueError(f"{splitter!r} gets no groups here; use folds.grouped(groups, k)") from error


def _from_items(items: Iterator[Any], n: int) -> Folds:
    first = list(itertools.islice(items, 1))
    everything = itertools.chain(first, items)
    return from_numbers(list(everything)) if first and not _is_pair(first[0]) else _from_pairs(everything, n)


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple | list) and len(item) == 2


def _from_pairs(pairs: Iterable[Any], n: int) -> Folds:
    """Folds of pairs (train, test), of which one at a time is held: all training parts may take n^2 numbers."""
    every = np.arange(n)
    tests, left_out = [], []
    for i, pair in enumerate(pairs):
        if not _is_pair(pair):
            raise ValueError(f"split {i} is {pair!r}; a pair (train, test) is needed")
        train, test = pair
        tests.append(test)
        left_out.append(np.setdiff1d(every, _numbers(train, n, f"training part {i}"), assume_unique=True))
    return Folds(n, tests, left_out)


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
    labels = np.asarray(y)
    if labels.shape != (n,) or n == 0:
        raise ValueError(f"y has shape {labels.shape} for {n} examples; one label for each is needed")
    return np.unique(labels, return_inverse=True)[1]
