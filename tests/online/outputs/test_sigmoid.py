"""Probabilities: they never contradict the prediction, follow the twin's slopes, and say more than 0.5."""

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from river import datasets, metrics
from scipy.special import expit

from streamsvm import LASVM
from streamsvm.online.outputs.sigmoid import new_sigmoid, note_slope, probabilities, probability

MARGINS = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-300, -1e-300, 1e-17, -1e-17])
SIGMOIDS = st.tuples(st.floats(0.02, 50.0), st.floats(0.02, 50.0)).map(lambda a: np.array([a[0], 1.0, a[1], 1.0]))


@njit
def noted(sigmoid, positive, margin):
    note_slope(sigmoid, positive, margin)


@given(SIGMOIDS, MARGINS)
def test_the_more_probable_label_is_the_predicted_one(sigmoid, margin):
    p = float(probabilities(sigmoid, np.array(margin)))
    assert 0.0 <= p <= 1.0
    answer = {False: 1.0 - p, True: p}
    assert max(answer, key=answer.get) is (margin > 0.0)


@given(SIGMOIDS, st.lists(MARGINS, min_size=1, max_size=20))
def test_the_probability_of_one_margin_is_that_of_many(sigmoid, margins):
    every = probabilities(sigmoid, np.array(margins))
    assert [probability(sigmoid, margin) for margin in margins] == every.tolist()


@pytest.mark.long
@given(SIGMOIDS, st.lists(st.floats(-30.0, 30.0), min_size=2, max_size=20))
def test_probabilities_rise_with_the_margin(sigmoid, margins):
    margins = np.sort(margins)
    p = probabilities(sigmoid, margins)
    assert (np.diff(p) >= 0).all()
    np.testing.assert_allclose(p, expit(margins * np.where(margins > 0, sigmoid[2], sigmoid[0])), rtol=0, atol=1e-15)


@pytest.mark.long
@given(st.lists(st.tuples(st.floats(-100.0, 100.0), st.sampled_from([-1, 1])), max_size=50))
def test_slopes_are_those_of_the_twin(margins):
    sigmoid = new_sigmoid()
    for margin, y in margins:
        noted(sigmoid, y > 0, margin)
    np.testing.assert_allclose(sigmoid[[0, 2]], naive.slopes(margins), rtol=1e-9)


def test_slopes_find_those_of_the_stream():
    rng, sigmoid = np.random.default_rng(0), new_sigmoid()
    for margin in rng.normal(size=20_000):
        slope = 4.0 if margin > 0 else 0.7
        noted(sigmoid, rng.random() < 1 / (1 + math.exp(-slope * margin)), margin)
    assert sigmoid[0] == pytest.approx(0.7, rel=0.25)
    assert sigmoid[2] == pytest.approx(4.0, rel=0.25)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from(["rbf", "linear", "sigmoid"]), st.sampled_from([0.1, 100.0]))
def test_a_model_predicts_its_more_probable_label(seed, kernel, C):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 2)).round(1)
    model = LASVM(C=C, kernel=kernel)
    for x, y in zip(X, rng.random(80) < 0.5, strict=True):
        x = dict(enumerate(x))
        p = model.predict_proba_one(x)
        assert sum(p.values()) == pytest.approx(1.0)
        assert max(p, key=p.get) is model.predict_one(x)
        model.learn_one(x, bool(y))
    np.testing.assert_array_equal(model.predict_proba_many(X).argmax(axis=1) == 1, model.predict_many(X))


@pytest.mark.parametrize("pos_weight", [1.0, 5.0])
def test_probabilities_have_less_loss_than_one_half(pos_weight):
    model, loss = LASVM(C=10.0, gamma=0.5, pos_weight=pos_weight), metrics.LogLoss()
    for x, y in datasets.Bananas().take(2000):
        loss.update(y, model.predict_proba_one(x))
        model.learn_one(x, y)
    assert loss.get() < 0.45 < math.log(2)
