"""The comparison of two models on the same labels."""

import json

import numpy as np
import pytest

from streamsvm.connectors.records.predictions import ClassPrediction, Prediction
from streamsvm.connectors.trainer.state.quality.comparison import Comparison, _gains
from streamsvm.connectors.trainer.state.quality.losses import Losses
from streamsvm.validation.always_valid import Interval


def said(rng):
    margin = rng.normal()
    return Prediction(margin, 1 / (1 + np.exp(-margin)), margin)


def compared(n, seed=0):
    rng = np.random.default_rng(seed)
    found = Comparison(0.05, Losses(3.0, are_two=True, decides=False))
    for _ in range(n):
        found.observe(bool(rng.random() < 0.4), said(rng), said(rng))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_the_extremes_of_a_gain_in_g_mean_are_found(seed):
    """The slow twin looks everywhere in the box."""
    rng = np.random.default_rng(seed)
    (a, b), (c, d) = np.sort(rng.random((2, 2)))
    lost, won = rng.uniform(-0.5, 0.5, size=2) * rng.integers(0, 2, size=2)
    found = _gains(Interval(0, a, b), Interval(0, c, d), lost, won)
    n, p = np.meshgrid(np.linspace(a, b, 400), np.linspace(c, d, 400))
    everywhere = np.sqrt(np.maximum(0, n + lost) * np.maximum(0, p + won)) - np.sqrt(n * p)
    assert min(found) <= everywhere.min() + 1e-12
    assert max(found) >= everywhere.max() - 1e-12
    assert min(found) == pytest.approx(everywhere.min(), abs=5e-3)
    assert max(found) == pytest.approx(everywhere.max(), abs=5e-3)


def test_it_goes_on_from_a_checkpoint():
    whole, first, second = compared(300), compared(300), Comparison(0.05, Losses(3.0, are_two=True, decides=False))
    assert second.restore(json.loads(json.dumps(first.to_json())))
    assert list(second.differences()) == list(whole.differences())
    assert {each.metric for each in second.differences()} == {"error", "g-mean", "log loss", "cost"}
    assert not Comparison(0.05, Losses(1.0, are_two=True, decides=False)).restore(first.to_json())


def test_nothing_is_said_without_a_label_and_g_mean_needs_both_classes():
    found = Comparison(0.05, Losses(1.0, are_two=True, decides=False))
    assert not list(found.differences())
    assert not found.is_better("error")
    found.observe(True, Prediction(1.0, 0.9, 1.0), Prediction(-1.0, 0.1, -1.0))
    by_metric = {each.metric: each for each in found.differences()}
    assert np.isnan(by_metric["g-mean"].gain.value)
    assert {each.says for each in by_metric.values()} == {"open"}


def test_a_class_that_a_model_does_not_know_is_an_error():
    found = Comparison(0.05, Losses(1.0, are_two=False, decides=False))
    knows = ClassPrediction("b", 1.0, {"a": -1.0, "b": 1.0}, {"a": 0.1, "b": 0.9})
    for _ in range(400):
        found.observe("b", ClassPrediction(None, 0.0, {}, {}), knows)
    by_metric = {each.metric: each for each in found.differences()}
    assert by_metric["error"][1:3] == (1.0, 0.0)
    assert by_metric["log loss"][1:3] == pytest.approx((-np.log(0.01), -np.log(0.9)))
    assert by_metric["error"].says == by_metric["log loss"].says == "better"
    assert found.is_better("error")
