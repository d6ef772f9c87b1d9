"""A learned threshold is that of the twin, costs no accuracy where the classes are balanced, and follows the stream."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from states import state_of

from streamsvm import LASVM, LASVMG
from streamsvm.online.outputs.calibration import CUT, THRESHOLD, new_calibration, note_margin
from streamsvm.online.outputs.threshold import HEAD, LARGEST, LARGEST_WEIGHT, VALUE, WEIGHT, new_threshold, note_class

MARGINS = st.floats(-5.0, 5.0) | st.sampled_from([0.0, -0.0, 0.05, -0.05, 2.95, -2.95, 3.0, -3.0, 1e300, -1e300])


@njit
def noted(threshold, positives, margins):
    for t in range(len(margins)):
        note_class(threshold, positives[t], margins[t])


@njit
def noted_all(calibration, positives, margins):
    for t in range(len(margins)):
        note_margin(calibration, positives[t], margins[t])


def after(margins, signs):
    threshold = new_threshold("gmean")
    noted(threshold, np.asarray(signs) > 0, np.asarray(margins, float))
    return threshold


@pytest.mark.long
@settings(deadline=None)
@given(st.lists(st.tuples(MARGINS, st.sampled_from([-1, 1])), min_size=1, max_size=90), st.integers(0, 2**32 - 1))
def test_it_is_that_of_the_twin(some, seed):
    rng = np.random.default_rng(seed)
    signs = np.where(rng.random(150) < 0.3, 1, -1)
    pairs = some + list(zip((rng.normal(size=150) + 0.5 * signs).round(2).tolist(), signs.tolist(), strict=True))
    assert after(*zip(*pairs, strict=True))[VALUE] == naive.threshold(pairs)


def test_it_makes_the_recalls_large_together():
    rng = np.random.default_rng(0)
    signs = np.where(rng.random(20_000) < 0.02, 1, -1)
    found = after(rng.normal(size=20_000) * 0.5 + np.where(signs > 0, -0.2, -1.4), signs)[VALUE]
    assert found == pytest.approx(-0.8, abs=0.2)  # half-way, although negatives are 50 times as many


def test_it_is_zero_where_the_classes_are_apart():
    margins = np.tile([-1.5, 1.0, -2.0, 1.2], 100)
    assert after(margins, margins)[VALUE] == 0.0


def test_it_follows_a_change():
    rng = np.random.default_rng(1)
    signs = np.where(rng.random(60_000) < 0.5, 1, -1)
    shift = np.where(np.arange(60_000) < 20_000, 1.0, -1.0)
    margins = 0.5 * signs + shift + 0.4 * rng.normal(size=60_000)
    assert after(margins[:20_000], signs[:20_000])[VALUE] == pytest.approx(1.0, abs=0.15)
    assert after(margins, signs)[VALUE] == pytest.approx(-1.0, abs=0.15)


def test_it_waits_for_ten_of_each_class():
    margins = [-2.0] * 100 + [-1.0] * 9 + [-2.0] * 11
    assert after(margins, np.array(margins) > -2.0)[VALUE] == 0.0
    margins += [-1.0] + [-2.0] * 19
    assert after(margins, np.where(np.array(margins) > -2.0, 1, -1))[VALUE] == -1.05  # the edge closest to 0


def test_large_weights_are_divided():
    """The threshold goes on as if nothing had happened."""
    rng = np.random.default_rng(2)
    signs = np.where(rng.random(2000) < 0.1, 1, -1)
    margins = rng.normal(size=2000) + signs
    plain, large = new_threshold("gmean"), new_threshold("gmean")
    large[WEIGHT] = 0.9 * LARGEST_WEIGHT
    for part in np.split(np.arange(2000), 100):
        for threshold in (plain, large):
            noted(threshold, signs[part] > 0, margins[part])
        assert large[VALUE] == plain[VALUE]
    assert 1.0 <= large[WEIGHT] < 2.0
    np.testing.assert_allclose(large[HEAD:], plain[HEAD:] / plain[WEIGHT] * large[WEIGHT], rtol=1e-9)


def test_a_number_stays():
    calibration = new_calibration(0.25)
    noted_all(calibration, np.ones(100, bool), np.linspace(-2.0, 2.0, 100))
    assert calibration[CUT] == 0.25
    assert len(calibration) == THRESHOLD + HEAD


@pytest.mark.parametrize("algorithm", [LASVM, LASVMG])
def test_margins_are_those_before_learning(algorithm):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 2))
    y = np.hypot(*X.T) + 0.4 * rng.normal(size=900) > 2.2
    model = algorithm(C=1.0, gamma=0.5, threshold="gmean")
    margins = []
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        example = dict(enumerate(x))
        if len(set(np.sign(state_of(model).expansion.y[state_of(model).expansion.y != 0]))) == 2:
            margins.append((model.decision_function_one(example), 1 if label else -1))
        model.learn_one(example, label)
        assert abs(model.decision_threshold) <= LARGEST
    assert model.decision_threshold == naive.threshold(margins) != 0.0
