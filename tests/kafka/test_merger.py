"""Mergers on a real broker: one works, another one takes over when it is killed, and scorers use what they make."""

import json
import signal

from .app import settings_of, some_stream


def test_a_merger_that_was_killed_is_replaced_and_scorers_use_the_merged_model(topics, start_app):
    log = settings_of(topics, partitions=2, merged=topics.create("merged", cleanup_policy="compact"))
    events, labels = some_stream(1200, n_keys=20)
    app = start_app(
        "merged",
        log=log,
        kafka={"session_timeout_ms": 6000},
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
