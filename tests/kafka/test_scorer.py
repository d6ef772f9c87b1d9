"""Scorers on a real broker: they follow a training model and serve every event, whoever comes and goes."""

import json

import pytest
from kafka import KafkaProducer

from .app import settings_of, some_stream


@pytest.fixture
def served(topics, start_app):
    """An app whose trainer has published a first model, and the events after those that it was trained on."""
    log = settings_of(topics, partitions=2)
    events, labels = some_stream(3000, n_keys=20)
    options = {"session_timeout_ms": 6000}
    app = start_app("served", log=log, kafka=options, daemon={"publish_seconds": 0.5, "checkpoint_seconds": 0.5})
    topics.produce(log["topic"], events[:1000])
    topics.produce(log["labels"], labels[:1000])
    trainer = app.start()
    trainer.wait_until(lambda: trainer.metric("published_total") >= 2)
    return app, log, events[1000:], labels[1000:], trainer


def ids(topics, topic):
    return [json.loads(record.value)["id"] for record in topics.read_all(topic)]


def test_scorers_take_newer_models_without_dropping_a_request(topics, served):
    app, log, events, labels, trainer = served
    scorers = [app.start(command="score"), app.start(command="score")]
    for scorer in scorers:
        scorer.wait_until(lambda: scorer.get("/readyz")[0] == 200)  # noqa: B023 - called at once
    for start in range(0, 2000, 200):
        topics.produce(log["topic"], events[start : start + 200])
        topics.produce(log["labels"], labels[start : start + 200])
        if start == 1000:
            assert scorers[1].stop() == 0
    expected = {f"id-{i}" for i in range(3000)}
    scorers[0].wait_until(lambda: set(ids(topics, log["scores"])) == expected)
    scores = [json.loads(record.value) for record in topics.read_all(log["scores"])]
    assert len({tuple(score["model"].values()) for score in scores}) > 2, "there were newer models in between"
    # A scorer that began again at the first offset would score 1200 events or more twice.
    assert len(scores) < 4000, "only what was not committed when the other scorer left is scored again"
    assert trainer.stop() == 0, trainer.said


def test_a_torn_snapshot_is_refused_and_the_old_model_kept(topics, served):
    app, log, events, _, trainer = served
    assert trainer.stop() == 0, trainer.said
    published = topics.read_all(log["model"])
    manifest = next(record for record in reversed(published) if record.key == b"p0/manifest")
    scorer = app.start(command="score")
    scorer.wait_until(lambda: scorer.get("/readyz")[0] == 200)
    with KafkaProducer(bootstrap_servers=topics.bootstrap) as producer:
        slot = json.loads(manifest.value)["slot"]
        torn = {**json.loads(manifest.value), "ver": 10**9}
        producer.send(log["model"], b"not a model", f"p0/{1 - slot}/0".encode())
        producer.send(log["model"], json.dumps(torn).encode(), b"p0/manifest")
        producer.flush(30)
    scorer.wait_until(lambda: scorer.metric("refused_snapshots_total") >= 1)
    topics.produce(log["topic"], events[:100])
    scorer.wait_until(lambda: len(set(ids(topics, log["scores"]))) == 1100)
    versions = [json.loads(record.value)["model"]["ver"] for record in topics.read_all(log["scores"])]
    assert max(versions) < 10**9
