"""The compiled parts of `Records` against their slow twins: hashed texts, and the guesses for missing numbers."""

import math
from collections import Counter

import numpy as np
import pytest

from streamsvm.core.guesses import NUMBERS, guess, learn_values
from streamsvm.core.hashed_text import SQUARED_NORM, hash_text


def column(word, basis, width):
    h = basis
    for letter in word:
        h = (h ^ letter) * 0x01000193 % 2**32
    h = (h ^ h >> 16) * 0x85EBCA6B % 2**32
    return (h ^ h >> 13) % width


def naive_text(letters, width):
    words = Counter(column(word, 0x811C9DC5, width) for word in letters.split())
    grams = Counter(
        column(letters[t : t + n], 0x811C9DC5 + n, width) for n in (3, 4) for t in range(len(letters) - n + 1)
    )
    total = Counter()
    for counts, share in ((words, 0.6), (grams, 0.4)):
        norm = math.sqrt(sum(math.log1p(n) ** 2 for n in counts.values()))
        for j, n in counts.items():
            total[j] += math.log1p(n) * math.sqrt(SQUARED_NORM * share) / norm
    return total


@pytest.mark.parametrize("width", [1, 16, 4096])
@pytest.mark.parametrize("text", ["a", "ab cd ab", "the quick brown fox " * 20, "größe ß 42"])
def test_a_text_is_the_twins(text, width):
    letters = f" {' '.join(text.split())} ".encode()
    columns, values = np.empty(4 * len(letters), np.int64), np.empty(4 * len(letters))
    n, n_ordinary = hash_text(np.frombuffer(letters, np.uint8), np.zeros((2, width), np.int32), columns, values)
    expected = naive_text(letters, width)
    found = dict(zip(columns[:n].tolist(), values[:n].tolist(), strict=True))
    assert len(found) == n
    assert found == pytest.approx(expected)
    assert set(values[:n_ordinary]) <= {values[0]}


def test_guesses_are_the_twins():
    rng = np.random.default_rng(0)
    values = np.c_[rng.normal(size=3000), rng.normal(size=3000).cumsum(), np.full(3000, 2.5)]
    values[rng.random(values.shape) < 0.2] = np.nan
    state = np.zeros((4, NUMBERS))
    for row in values:
        learn_values(state, row)
    for f in range(3):
        mean = last = of_mean = of_last = 0.0
        for n, v in enumerate(values[~np.isnan(values[:, f]), f], start=1):
            if n > 1:
                of_mean += max(0.005, 1 / n) * ((v - mean) ** 2 - of_mean)
                of_last += max(0.005, 1 / n) * ((v - last) ** 2 - of_last)
            mean, last = mean + max(0.0005, 1 / n) * (v - mean), v
        np.testing.assert_allclose(state[f], [n, mean, last, of_mean, of_last])
        assert guess(state[f]) == pytest.approx(mean if f == 0 else last)
    assert (state[3] == 0.0).all()
