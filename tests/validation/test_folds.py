"""Folds: the invariants of scikit-learn's splitters, what may be given as folds, and what is refused."""

import math
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import model_selection
from sklearn.linear_model import LogisticRegression

from streamsvm.validation import folds
from streamsvm.validation.held_out.given_folds import folds_of

SEEDS = st.one_of(st.none(), st.integers(0, 10**6))


def numbers(splits, n):
    """The number of the split that tests each example, -1 for none; asserts that it is one at most."""
    of = np.full(n, -1)
    for i, (_, test) in enumerate(splits):
        assert (of[test] == -1).all()
        of[test] = i
    return of


def check(splits, n):
    """What holds of any folds."""
    assert len(splits) == len(list(splits))
    for train, test in splits:
        assert len(test)
        assert len(train)
        assert not set(train) & set(test)
        assert ((np.diff(train) > 0).all(), (np.diff(test) > 0).all()) == (True, True)
        assert min(train.min(), test.min()) >= 0
        assert max(train.max(), test.max()) < n


def same(mine, theirs):
    theirs = list(theirs)
    assert len(mine) == len(theirs)
    for (train, test), (their_train, their_test) in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(train, np.sort(their_train))
        np.testing.assert_array_equal(test, np.sort(their_test))


@given(st.integers(2, 60), st.data(), SEEDS)
def test_v_fold(n, data, seed):
    k = data.draw(st.integers(2, n))
    made = folds.v_fold(n, k, seed=seed)
    check(made, n)
    sizes = np.bincount(numbers(made, n), minlength=k)
    theirs = [len(test) for _, test in model_selection.KFold(k).split(np.zeros(n))]
    assert sizes.tolist() == theirs
    if seed is None:
        same(made, model_selection.KFold(k).split(np.zeros(n)))


@given(st.lists(st.integers(0, 2), min_size=6, max_size=80), st.data(), SEEDS)
def test_stratified(y, data, seed):
    y = np.array(y)
    counts = np.unique(y, return_counts=True)[1]
    if counts.min() < 2:
        with pytest.raises(ValueError, match="y has one example of class"):
            folds.stratified(y, 2)
        return
    k = data.draw(st.integers(2, int(counts.min())))
    made = folds.stratified(y, k, seed=seed)
    check(made, len(y))
    fold_of = numbers(made, len(y))
    assert (fold_of >= 0).all()
    assert np.ptp(np.bincount(fold_of, minlength=k)) <= 1
    theirs = numbers(model_selection.StratifiedKFold(k).split(y, y), len(y))
    for c in np.unique(y):
        of_class = np.bincount(fold_of[y == c], minlength=k)
        assert np.ptp(of_class) <= 1
        assert sorted(of_class) == sorted(np.bincount(theirs[y == c], minlength=k))


@given(st.lists(st.integers(0, 12), min_size=2, max_size=80), st.data())
def test_grouped(groups, data):
    groups = np.array(groups)
    count = len(np.unique(groups))
    if count < 2:
        with pytest.raises(ValueError, match="at least two groups are needed"):
            folds.grouped(groups, 2)
        return
    k = data.draw(st.integers(2, count))
    made = folds.grouped(groups, k)
    check(made, len(groups))
    fold_of = numbers(made, len(groups))
    assert (fold_of >= 0).all()
    for group in np.unique(groups):
        assert len(set(fold_of[groups == group])) == 1
    theirs = model_selection.GroupKFold(k).split(groups, groups=groups)
    assert sorted(np.bincount(fold_of)) == sorted(len(test) for _, test in theirs)


@given(st.integers(2, 60), st.floats(0.01, 0.99), SEEDS)
def test_hold_out(n, share, seed):
    made = folds.hold_out(n, share, seed=seed)
    check(made, n)
    [(train, test)] = made
    assert len(train) + len(test) == n
    assert abs(len(test) - n * share) <= 1
    if seed is None:
        assert test.tolist() == list(range(len(train), n))
    assert len(folds.hold_out(n, n - 1).tests[0]) == n - 1


@given(st.lists(st.booleans(), min_size=4, max_size=80), st.floats(0.05, 0.95), SEEDS)
def test_hold_out_by_class(y, share, seed):
    y = np.array(y)
    [(train, test)] = folds.hold_out(len(y), share, y=y, seed=seed)
    assert len(train) + len(test) == len(y)
    for c in np.unique(y):
        assert abs(np.sum(y[test] == c) - len(test) * np.mean(y == c)) < 1


def test_leave_one_out_and_leave_p_out():
    same(folds.leave_one_out(9), model_selection.LeaveOneOut().split(np.zeros(9)))
    for p in (1, 2, 4):
        made = folds.leave_p_out(7, p)
        same(made, model_selection.LeavePOut(p).split(np.zeros(7)))
        assert len(made) == math.comb(7, p)


def test_leaving_one_out_of_many_takes_little_memory():
    made = folds.leave_one_out(20_000)
    assert sum(test.nbytes for test in made.tests) == 20_000 * 8
    assert made.left_out is made.tests


def test_repeated():
    y = np.arange(40) % 3 == 0
    made = folds.repeated(lambda seed: folds.stratified(y, 4, seed=seed), 3, seed=5)
    check(made, 40)
    assert len(made) == 12
    for r in range(3):
        same(list(made)[4 * r : 4 * r + 4], folds.stratified(y, 4, seed=5 + r))
    tested = np.bincount(np.concatenate(made.tests))
    assert (tested == 3).all()
    assert len({test.tobytes() for test in made.tests}) > 4


def test_a_seed_repeats_and_another_does_not():
    y = np.arange(30) % 2 == 0
    for make in (
        lambda seed: folds.v_fold(30, 3, seed=seed),
        lambda seed: folds.stratified(y, 3, seed=seed),
        lambda seed: folds.hold_out(30, seed=seed),
    ):
        same(make(1), make(1))
        assert make(1).tests[0].tolist() != make(2).tests[0].tolist()


def test_numbers_pairs_and_splitters_are_folds_too():
    y = np.arange(20) % 2 == 0
    given_numbers = np.arange(20) % 4 - 1
    same(folds.from_numbers(given_numbers), model_selection.PredefinedSplit(given_numbers).split())
    same(folds_of(given_numbers, y), model_selection.PredefinedSplit(given_numbers).split())
    splitter = model_selection.ShuffleSplit(3, test_size=0.2, train_size=0.4, random_state=0)  # leaves out more
    same(folds_of(splitter, y), splitter.split(np.zeros(20)))
    same(folds_of(list(splitter.split(np.zeros(20))), y), splitter.split(np.zeros(20)))
    made = folds.v_fold(20, 3)
    assert folds_of(made, y) is made
    mask = np.arange(20) < 5
    same(folds_of([(~mask, mask)], y), [(np.arange(5, 20), np.arange(5))])


def test_the_pairs_of_a_splitter_are_held_one_at_a_time():
    """All training parts of n splits are n^2 numbers."""
    alive, most = weakref.WeakSet(), 0

    class Part(np.ndarray):
        """An array that can be looked for."""

        __hash__ = object.__hash__

    class Splitter:
        def split(self, X, y):
            nonlocal most
            for train, test in model_selection.LeaveOneOut().split(X):
                part = train.view(Part)
                alive.add(part)
                most = max(most, len(alive))
                yield part, test

    y = np.arange(30) % 2 == 0
    splitter = Splitter()
    same(folds_of(splitter, y), folds.leave_one_out(30))
    assert most <= 4
    most = 0
    same(folds_of(splitter.split(y, y), y), folds.leave_one_out(30))
    assert most <= 4


@pytest.mark.parametrize(
    ("given_folds", "message"),
    [
        (5, r"folds=5 must be Folds, .* for 5 stratified folds use k=5"),
        (0.5, r"folds=0.5 must be Folds, fold numbers, pairs \(train, test\) or a splitter$"),
        ("grouped", "folds='grouped' must be Folds"),
    ],
)
def test_what_is_nothing_of_the_kind_is_refused(given_folds, message):
    with pytest.raises(TypeError, match=message):
        folds_of(given_folds, np.arange(20) % 2 == 0)


@pytest.mark.parametrize("name", ["GroupKFold", "StratifiedGroupKFold", "LeaveOneGroupOut", "GroupShuffleSplit"])
def test_splitters_of_groups_are_told_where_groups_go(name):
    with pytest.raises(ValueError, match=r"gets no groups here; use folds\.grouped"):
        folds_of(getattr(model_selection, name)(), np.arange(20) % 2 == 0)


def test_what_another_splitter_refuses_is_its_own_to_say():
    with pytest.raises(ValueError, match="number of splits"):
        folds_of(model_selection.KFold(30), np.arange(20) % 2 == 0)


def test_a_class_of_one_example_has_other_kinds_of_folds():
    y = np.arange(20) == 3
    with pytest.raises(ValueError, match="v_fold, leave_one_out and hold_out do not"):
        folds.stratified(y, 10)
    for made in (folds.v_fold(20, 10), folds.leave_one_out(20), folds.hold_out(20, y=y)):
        check(made, 20)


def test_folds_are_a_cv_of_scikit_learn():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2 == 0
    made = folds.stratified(y, 3)
    assert len(model_selection.cross_val_score(LogisticRegression(), X, y, cv=made)) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: folds.v_fold(5, 6), "k=6 folds of 5 examples; k must be at most 5"),
        (lambda: folds.v_fold(5, 1), "k=1"),
        (lambda: folds.v_fold(5, 2.0), "k=2.0"),
        (lambda: folds.v_fold(1, 2), "n=1"),
        (lambda: folds.stratified([0, 0, 0, 1, 1], 3), "k=3 folds of 2 examples of the smallest class"),
        (lambda: folds.stratified([], 3), "y has shape"),
        (lambda: folds.grouped([1, 1, 2], 3), "k=3 folds of 2 groups"),
        (lambda: folds.grouped([[1]], 3), "groups has shape"),
        (lambda: folds.hold_out(5, 5), "test=5 of 5 examples"),
        (lambda: folds.hold_out(5, 0), "test=0 of 5 examples"),
        (lambda: folds.hold_out(5, 1.5), "test=1.5"),
        (lambda: folds.hold_out(5, True), "test=True"),
        (lambda: folds.hold_out(5, y=[1, 2]), "y has shape"),
        (lambda: folds.leave_p_out(5, 5), "p=5"),
        (lambda: folds.leave_p_out(5, 0), "p=0"),
        (lambda: folds.leave_p_out(1000, 3), "166,167,000 splits"),
        (lambda: folds.repeated(lambda seed: folds.v_fold(6, 2), 0), "times=0"),
        (lambda: folds.repeated(lambda seed: folds.v_fold(6 + seed, 2), 2), r"folds of \[6, 7\] examples"),
        (lambda: folds.from_numbers([0, 1, -2]), "fold numbers"),
        (lambda: folds.from_numbers([0.5]), "fold numbers"),
        (lambda: folds.from_numbers([-1, -1]), "there is no split"),
        (lambda: folds.from_numbers([0, 0]), "split 0 leaves out all 2 examples"),
        (lambda: folds.Folds(3, [[]]), "split 0 tests no example"),
        (lambda: folds.Folds(3, [[0, 0]]), "twice: 0"),
        (lambda: folds.Folds(3, [[3]]), "from 0 to 2"),
        (lambda: folds.Folds(3, [[0.5]]), "from 0 to 2"),
        (lambda: folds_of([([0, 1], [1])], np.zeros(3)), "split 0 trains on examples that it tests"),
        (lambda: folds_of([], np.zeros(3)), "there is no split"),
        (lambda: folds_of([([0, 1], [2]), 3], np.zeros(3)), "split 1 is 3; a pair"),
        (lambda: folds_of(folds.v_fold(4, 2), np.zeros(3)), "those of 4 examples; there are 3"),
    ],
)
def test_bad_folds_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_splits_that_train_on_one_class_are_found():
    y = np.array([True, False, False, False])
    assert folds.leave_one_out(4).of_one_class(y) == [0]
    assert folds.Folds(4, [[1], [2]]).of_one_class(y) == []
    assert folds.Folds(4, [[1], [2, 3]]).of_one_class(y, np.array([True, False, True, True])) == [1]
