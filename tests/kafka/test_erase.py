"""A person is forgotten on a real broker, while trainers serve in transactions and are killed."""

import json

import pytest

from .app import SHORT_SESSION, settings_of, some_stream


@pytest.mark.parametrize("client", ["kafka-python"], indirect=True)
def test_an_erasure_a_rebuild_and_a_receipt_beside_trainers_that_are_killed(topics, start_app, client):
    n, erased = 2000, {f"id-{i}" for i in range(40)}
    log = settings_of(topics, 2)
    log["erasures"] = topics.create("erasures", 2, retention_ms=-1)
    events, labels = some_stream(n, n_keys=20)
    daemon = {"checkpoint_seconds": 0.5, "exactly_once": True}
    app = start_app("erase", log=log, kafka=SHORT_SESSION, daemon=daemon)
    topics.produce(log["topic"], events)
    topics.produce(log["labels"], labels)
    trainer = app.start()
    trainer.wait_until(
        lambda: trainer.metric("records_total") >= len(events) + len(labels) and len(app.partitions()) == 2
    )
    subjects = [part for id_ in sorted(erased) for part in ("--subject", id_)]
    erase = app.start(command="erase", flags=subjects)
    assert erase.wait() == 0, erase.said
    assert "the trainers have forgotten them" in erase.said
    trainer.popen.kill()
    trainer = app.start()
    receipt = app.folder / "receipt.json"
    rebuild = app.start(command="rebuild", flags=["--receipt", receipt])
    assert rebuild.wait(300) == 0, rebuild.said
    assert trainer.stop() == 0, trainer.said
    partitions = json.loads(receipt.read_text())["partitions"]
    assert sorted(partitions) == ["0", "1"]
    assert sum(len(part["erased"]) for part in partitions.values()) >= len(erased)
    assert trainer.said.count("goes on with the rebuilt state") == 2, trainer.said
    found = topics.read_all(log["predictions"], isolation_level="read_committed")
    sources = [json.loads(record.value)["src"] for record in found]
    assert len(sources) == len(set(sources)) == n
