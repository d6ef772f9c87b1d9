"""Texts that hold a seed word, and rows that are asked about first."""

import numpy as np
import pytest

from streamsvm import LASVM
from streamsvm.active import MaxLabels, label_pool, rows_with_words

TEXTS = ["You WON a prize", "prizewinner", "free (now)", "carefree", "a prize!", "nothing", "set free."]


def test_whole_words_in_any_case_are_found():
    assert sorted(rows_with_words(TEXTS, ["prize", "free"])) == [0, 2, 4, 6]
    assert rows_with_words(TEXTS, ["c++", "(now)"]) == [2]
    assert rows_with_words(TEXTS, ["won a"]) == [0]
    assert rows_with_words(TEXTS, ["lottery"]) == []


def test_some_of_many_are_taken_at_random():
    texts = ["prize"] * 100
    orders = [rows_with_words(texts, ["prize"], seed=seed) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[0])) == 10
    assert len(rows_with_words(texts, ["prize"], n=3)) == 3


@pytest.mark.parametrize("words", ["prize", [], [""], [7]])
def test_what_is_no_list_of_words_is_refused(words):
    with pytest.raises((TypeError, ValueError), match="must be a list of words"):
        rows_with_words(TEXTS, words)


def test_they_are_asked_about_first_and_are_not_taken_for_random():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.hypot(*X.T) > 2.0
    steps = list(label_pool(LASVM(), X, y.__getitem__, stopping=MaxLabels(20), first=[7, 3, 200], explore=0.5))
    assert [(step.key, step.reason) for step in steps[:3]] == [(7, "seed"), (3, "seed"), (200, "seed")]
    assert len({step.key for step in steps}) == 20


def test_rows_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"first\[1\]=9 must be the number of a row of X, from 0 to 3"):
        label_pool(LASVM(), np.eye(4), lambda row: True, first=[1, 9])
