"""A rare class in the trainer and the scorer: weights that follow the stream, a learned threshold, and a warning."""

import json
from dataclasses import replace

import numpy as np
import pytest
from logged import configure as small

from streamsvm import StreamWarning
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.trainer import trainer

RARE = ModelSettings(C=1.0, gamma=0.5, scaling="none", pos_weight="balanced", threshold="gmean")
N_LABELLED, N = 900, 1000


def configure(folder, **model):
    settings = small(folder, log={"model": "model"}, daemon={"batch": 50, "checkpoint_records": 20_000, "window": 1000})
    return replace(settings, model=replace(RARE, **model))


def fill(settings, y=None):
    """Events, one in sixteen positive, the last ones without a label; with one label if `y` says which."""
    rng = np.random.default_rng(0)
    with LocalLog(settings.log.dir) as log:
        for i in range(N if y is None else 1100):
            a, b = rng.normal(size=2).tolist()
            label = bool(np.hypot(a, b) + 0.4 * rng.normal() > 2.5) if y is None else y
            event = {"id": i, "x": {"a": a, "b": b}} | ({"y": label} if i < N_LABELLED or y is not None else {})
            log.produce(settings.log.topic, json.dumps(event).encode())


def read(settings, topic):
    with LocalLog(settings.log.dir) as log:
        log.seek(topic, 0, 0)
        return [json.loads(record.value) for record in log.poll(0, 10**6)]


def test_labels_are_those_of_the_threshold(tmp_path):
    settings = configure(tmp_path)
    fill(settings)
    model = trainer.run(settings).get(0).model
    assert model.decision_threshold < 0.0
    assert sum(model.class_counts) == N_LABELLED
    events = read(settings, "events")
    assert scorer.run(settings) == N
    for found in (read(settings, "scores"), read(settings, "predictions")[N_LABELLED:]):
        rows = [event["x"] for event in events[-len(found) :]]
        f = model.decision_function_many(rows)
        assert [p["label"] for p in found] == model.predict_many(rows).tolist()
        np.testing.assert_allclose([p["margin"] for p in found], f - model.decision_threshold, atol=1e-9)
        np.testing.assert_allclose([p["score"] for p in found], model.probability(f), atol=1e-9)
        assert any(p["label"] and p["score"] < 0.5 for p in found)


def test_metrics_are_those_of_the_labels(tmp_path):
    settings = configure(tmp_path)
    fill(settings)
    state = trainer.run(settings).get(0)
    wrong = [
        event["y"] != p["label"]
        for event, p in zip(read(settings, "events"), read(settings, "predictions"), strict=True)
        if "y" in event
    ]
    assert state.metrics.n_errors == sum(wrong) > 0


def test_it_goes_on_from_a_checkpoint(tmp_path):
    settings = configure(tmp_path)
    fill(settings)
    digest = trainer.run(settings).get(0).model.digest()
    assert trainer.run(settings).get(0).model.digest() == digest


def test_a_warning_of_a_model_is_heard(tmp_path):
    settings = configure(tmp_path)
    fill(settings, y=True)
    with pytest.warns(StreamWarning, match="the first 1000 examples have the label True only"):
        trainer.run(settings)
