"""Folds in any form that a caller may give them."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from streamsvm.validation.held_out.folds import Folds, from_numbers, numbers_of, stratified


def splits_of(folds: Any, y: np.ndarray, k: int, seed: int | None) -> Folds:
    """The folds that the caller gave, or k stratified folds if `folds` is None."""
    return stratified(y, k, seed=seed) if folds is None else folds_of(folds, y)


def folds_of(folds: Any, y: np.ndarray) -> Folds:
    """`Folds` from any of these: `Folds`, fold numbers, pairs (train, test), or a splitter of scikit-learn.

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
        If they have another form.

    Examples
    --------
    >>> folds_of([([0, 1], [2]), ([1, 2], [0])], np.array([True, False, True])).tests
    [array([2]), array([0])]
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
    """Folds from pairs (train, test).  Only one pair is held at a time: all training parts could take n^2 numbers."""
    every = np.arange(n)
    tests, left_out = [], []
    for i, pair in enumerate(pairs):
        if not _is_pair(pair):
            raise ValueError(f"split {i} is {pair!r}; a pair (train, test) is needed")
        train, test = pair
        tests.append(test)
        left_out.append(np.setdiff1d(every, numbers_of(train, n, f"training part {i}"), assume_unique=True))
    return Folds(n, tests, left_out)
