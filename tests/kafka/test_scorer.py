"""Scorers on a real broker follow a training model and serve every event; mergers make them one model of several."""

import json
import signal

import pytest
from kafka import KafkaProducer

from .app import SHORT_SESSION, settings_of, some_stream
from .conftest import READ_SECONDS


@pytest.fixture
def served(topics, start_app):
    """An app whose trainer has published a first model, and the events after those that it was trained on."""
    log = settings_of(topics, partitions=2)
    events, labels = some_stream(3000, n_keys=20)
    app = start_app("served", log=log, kafka=SHORT_SESSION, daemon={"publish_seconds": 0.5, "checkpoint_seconds": 0.5})
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
        if start % 400 == 0:  # else all events may have come before the next model
            published = trainer.metric("published_total")
            trainer.wait_until(lambda: trainer.metric("published_total") > published)  # noqa: B023 - called at once
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
        producer.flush(READ_SECONDS)
    scorer.wait_until(lambda: scorer.metric("refused_snapshots_total") >= 1)
    topics.produce(log["topic"], events[:100])
    scorer.wait_until(lambda: len(set(ids(topics, log["scores"]))) == 1100)
    versions = [json.loads(record.value)["model"]["ver"] for record in topics.read_all(log["scores"])]
    assert max(versions) < 10**9


def test_a_merger_that_was_killed_is_replaced_and_scorers_use_the_merged_model(topics, start_app):
    log = settings_of(topics, partitions=2, merged=topics.create("merged", cleanup_policy="compact"))
    events, labels = some_stream(1200, n_keys=20)
    app = start_app(
        "merged",
        log=log,
        kafka=SHORT_SESSION,
        daemon={"publish_seconds": 0.5, "checkpoint_seconds": 0.5},
        merger={"seconds": 0.5},
        scorer={"model": "merged"},
    )

    def produce(start, end):
        topics.produce(log["topic"], events[start:end])
        topics.produce(log["labels"], labels[start:end])

    produce(0, 600)
    trainer, first = app.start(), app.start(command="merger")
    first.wait_until(lambda: first.metric("merges_total") >= 1)
    second, scorer = app.start(command="merger"), app.start(command="score")
    scorer.wait_until(lambda: scorer.get("/readyz")[0] == 200)
    second.wait_until(lambda: second.get("/readyz")[0] == 503)
    assert second.metric("merges_total") == 0
    first.signal(signal.SIGKILL)
    produce(600, 1200)
    second.wait_until(lambda: second.metric("merges_total") >= 1)
    assert trainer.stop() == 0, trainer.said
    manifests = [json.loads(r.value) for r in topics.read_all(log["model"]) if r.key.endswith(b"manifest") and r.value]
    newest = {manifest["name"]: [manifest["epoch"], manifest["ver"]] for manifest in manifests}

    def last():
        return json.loads([r for r in topics.read_all(log["merged"]) if r.key == b"merged/manifest"][-1].value)

    second.wait_until(lambda: last()["of"] == newest)
    assert len(newest) == 2
    topics.produce(log["topic"], [(key, value) for key, value, *_ in events[:50]])
    wanted = sum(version for _, version in newest.values())

    def scores():
        return [json.loads(record.value) for record in topics.read_all(log["scores"])]

    scorer.wait_until(lambda: any(score["model"]["ver"] == wanted for score in scores()))
    assert scorer.stop() == second.stop() == 0
