"""Virtual examples: selection finds the variants that matter."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from streamsvm import LASVM
from streamsvm.active import learn_variants


def shifted(rows, rng):
    """Pictures of 8 x 8, each shifted by a pixel to some side, or not."""
    pictures = np.pad(rows.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = rng.integers(3, size=(2, len(rows)))
    return np.stack([p[a : a + 8, b : b + 8].ravel() for p, a, b in zip(pictures, down, right, strict=True)])


def errors(model, X, y):
    return np.mean((model.decision_function_many(X) > 0.0) != y)


def test_a_model_learns_what_a_shift_changes():
    """Selected variants help more than as many random ones."""
    digits, labels = load_digits(return_X_y=True)
    digits, eights = digits / 16.0, labels == 8
    X, y = digits[:900], eights[:900]
    test, test_y = shifted(digits[900:], np.random.default_rng(1)), eights[900:]
    found = {}
    for pool in (None, 1):
        model = LASVM(C=100.0, gamma=0.05)
        model.learn_many(X, y)
        found["before"] = errors(model, test, test_y)
        found[pool] = learn_variants(model, X, y, shifted, 150, pool=pool), errors(model, test, test_y)
    assert found[None][0] > found[1][0]  # those that violate
    assert found[None][1] < found[1][1] < found["before"]


def test_nothing_is_learned_but_n_variants():
    X, y = np.eye(4), [True, False, True, False]
    model = LASVM(gamma=1.0)
    model.learn_many(X, y)
    assert learn_variants(model, X, y, lambda rows, rng: rows, 0) == 0
    assert learn_variants(model, X, y, lambda rows, rng: rows + 0.1, 3, pool=2) <= 3
    assert model.n_seen == 7


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n": -1}, "n=-1"),
        ({"pool": 0}, "pool=0"),
        ({"X": np.zeros(3)}, "X has shape"),
        ({"vary": lambda rows, rng: rows[:, :1]}, "vary returned shape"),
        ({"y": [1, 0, 2]}, "label"),
    ],
)
def test_bad_arguments_are_named(bad, message):
    good = {"X": np.eye(3), "y": [1, 0, 1], "vary": lambda rows, rng: rows, "n": 1}
    with pytest.raises(ValueError, match=message):
        learn_variants(LASVM(gamma=1.0), **good | bad)
