"""Promotion on a real broker: two trainers, two partitions, transactions and kills; one promotion at one offset."""

import json
import signal

import pytest

from streamsvm.connectors.trainer.state.stored_state import read_state

from .app import settings_of

N = 300  # events of each partition, before and after


def some_events(n, begin):
    values = [(i * 7919 % 1000 / 500 - 1, i * 104729 % 1000 / 500 - 1) for i in range(begin, begin + n)]
    events = ({"id": begin + i, "x": {"a": a, "b": b}, "y": a * b > 0} for i, (a, b) in enumerate(values))
    return [(b"key", json.dumps(event).encode()) for event in events]


@pytest.mark.long
def test_each_partition_promotes_once_whatever_is_killed(topics, start_app):
    log = settings_of(topics, 2)
    log["control"] = f"{log['topic']}-control"
    daemon = {"exactly_once": True, "checkpoint_seconds": 0.5}
    app = start_app("app", log=log, daemon=daemon)
    app.config.write_text(app.config.read_text() + '\n[[challenger]]\nname = "c1"\n[challenger.model]\nC = 1.0\n')
    created = app.start(command="topics", flags=["--create"])
    assert created.wait() == 0, created.said

    for partition in (0, 1):
        topics.produce(log["topic"], some_events(N, 0), partition)
    trainers = [app.start(f"group.instance={name}") for name in "ab"]
    trainers[0].wait_for("assigned partitions")
    asked = app.start(command="promote", flags=["c1"])
    assert asked.wait() == 0, asked.said
    for partition in (0, 1):
        topics.produce(log["topic"], some_events(N, N), partition)
    trainers[0].signal(signal.SIGKILL)
    trainers[1].signal(signal.SIGKILL)
    last = [app.start(f"group.instance={name}") for name in "ab"]  # which end the transactions that were left open
    wanted = {0: 2 * N, 1: 2 * N}

    def is_done():
        found = read_state(app.folder / "state")
        return {item.number: item.checkpoint.offsets["events"] for item in found} == wanted

    last[0].wait_until(is_done)
    assert [process.stop() for process in last] == [0, 0]
    answers = topics.read_all(f"{log['control']}-served", isolation_level="read_committed")
    assert sorted((each.partition, json.loads(each.value)["name"]) for each in answers) == [(0, "c1"), (1, "c1")]
    predictions = topics.read_all(log["predictions"], isolation_level="read_committed")
    said = [json.loads(each.value)["src"] for each in predictions]
    assert len(said) == len(set(said)) == 4 * N
    shadows = topics.read_all(f"{log['predictions']}-c1", isolation_level="read_committed")
    began = {each.partition: json.loads(each.value)["events"] for each in answers}
    for partition in (0, 1):
        assert sum(each.partition == partition for each in shadows) == began[partition]
