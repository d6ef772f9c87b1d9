"""The trainer's alarms: what they report, where, and that a restart changes nothing."""

import json
import logging

import numpy as np
import pytest
from logged import append, change, read
from logged import configure as small

from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.state.alarms import Alarms, numbers_of

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def configure(folder, **log):
    return small(folder, log=log, daemon={"batch": 64, "checkpoint_records": 300, "window": 1000})


def events(n=1400):
    """A concept that turns at 900, and a feature that moves at 1200."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)).round(3)
    y = (X[:, 0] * X[:, 1] > 0) ^ (np.arange(n) >= 900)
    X[1200:, 1] += 3.0
    records = zip(X.tolist(), y.tolist(), strict=True)
    return [{"id": i, "x": {"a": a, "b": b}, "y": label} for i, ((a, b), label) in enumerate(records)]


def run(settings, values):
    append(settings, values)
    return trainer.run(settings, lambda: False)[0]


def test_alarms_are_log_lines_and_records_and_the_same_after_a_restart(tmp_path, caplog):
    whole, parts = (configure(tmp_path / name, alarms="alarms") for name in ("whole", "parts"))
    with caplog.at_level(logging.WARNING):
        expected = run(whole, events())
    found = [json.loads(record.value) for record in read(whole, "alarms")]
    assert [(alert["kind"], alert["partition"]) for alert in found] == [("errors", 0), ("inputs", 0)]
    assert found[0]["cause"] in (True, False)
    assert 900 <= found[0]["offset"] < 1000
    assert found[1]["cause"] == "b"
    assert 1200 <= found[1]["offset"] < 1230
    said = [record.getMessage() for record in caplog.records]
    assert f"alarm at offset {found[1]['offset']}: feature 'b' has moved" in said
    for values in (events()[:950], events()[950:]):
        state = run(parts, values)
    assert state.alarms.errors.digest() == expected.alarms.errors.digest()
    assert state.alarms.inputs.digest() == expected.alarms.inputs.digest()
    assert [json.loads(record.value) for record in read(parts, "alarms")] == found


def test_a_class_is_called_by_its_name(tmp_path, caplog):
    settings = change(configure(tmp_path, alarms="alarms"), label={"positive": "ripe", "negative": "green"})
    names = {True: "ripe", False: "green"}
    with caplog.at_level(logging.WARNING):
        run(settings, [event | {"y": names[event["y"]]} for event in events(1000)])
    [alert] = [json.loads(record.value) for record in read(settings, "alarms")]
    assert alert["cause"] in names.values()
    [line] = [record.getMessage() for record in caplog.records if "alarm at" in record.getMessage()]
    assert line == f"alarm at offset {alert['offset']}: class {alert['cause']!r} is predicted worse than before"


def test_without_a_topic_nothing_is_written(tmp_path):
    settings = configure(tmp_path)
    state = run(settings, events(1000))
    assert state.alarms.errors.n_alarms == 1
    assert read(settings, "alarms") == []


def test_an_old_checkpoint_begins_with_new_alarms():
    alarms = Alarms()
    alarms.restore({})
    assert alarms.to_blobs() == Alarms().to_blobs()


def test_inputs_that_move_all_the_time_are_said_once(caplog):
    alarms, found = Alarms(), []
    with caplog.at_level(logging.WARNING):
        for n in range(4000):
            found += alarms.see(numbers_of([{"a": float(np.sin(n / 200.0)), "text": "no number"}]), [n])
    assert len(found) == 3
    assert sum("move all the time" in record.getMessage() for record in caplog.records) == 1
