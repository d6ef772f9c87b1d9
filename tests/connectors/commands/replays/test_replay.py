"""Replays: another model over a range of the log."""

import itertools
import json
import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from logged import append, read, some_events

from streamsvm.connectors.commands.replays.replay import replay, replay_settings
from streamsvm.connectors.logs import embedded as local_log
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer import trainer as daemon


def digests(states):
    return {number: state.models.digest() for number, state in states.items()}


def replayed(config, app, first=None, last=None, *flags, stop=lambda: False):
    settings = replay_settings(config, {}, flags, app)
    return replay(settings, first, last, stop)


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


def test_a_replay_is_a_run_over_a_part_of_the_log(tmp_path, config):
    events = some_events(400)
    append(tmp_path / "log", events)
    daemon.run(load(config, {}))
    before = content(tmp_path / "state") | content(tmp_path / "log")
    states = replayed(config, "part", 100, 300, "model.C=2")
    after = content(tmp_path)
    assert {path: after[path] for path in before} == before
    assert len(read(tmp_path / "log", "predictions-part")) == 200

    append(tmp_path / "other", events[100:300])
    flags = ["model.C=2", f"log.dir={tmp_path / 'other'}", "daemon.state_dir=other-state"]
    assert digests(states) == digests(daemon.run(load(config, {}, flags)))


def test_a_replay_of_everything_ends_as_the_original(tmp_path, config):
    append(tmp_path / "log", some_events(200))
    original = daemon.run(load(config, {}))
    assert digests(replayed(config, "again")) == digests(original)
    append(tmp_path / "log", some_events(50, seed=1))
    assert digests(replayed(config, "again")) == digests(original)  # the range is that of its beginning


def test_a_replay_with_several_classes_ends_as_the_original(tmp_path, config):
    flags, names = ['label.classes=["ant", "bee", "wasp"]', "model.C=5"], ["ant", "bee", "wasp", "fly"]
    events = [json.loads(value) for value in some_events(200)]
    for i, event in enumerate(events):  # flies are not among the classes
        event["y"] = names[3 if i % 50 == 49 else (event["x"]["a"] > 0) + (event["x"]["b"] > 0)]
    append(tmp_path / "log", [json.dumps(event).encode() for event in events])
    original = daemon.run(load(config, {}, flags))
    again = replayed(config, "again", None, None, *flags)
    assert digests(again) == digests(original)
    assert again[0].classes.labels == ["ant", "bee", "wasp"]
    refused = [dict(record.headers)["sv-dlq-reason"] for record in read(tmp_path / "log", "dlq-again")]
    assert refused == [b"bad-label"] * 4
    rolling = (state[0].metrics.rolling().counts.tolist() for state in (again, original))
    assert next(rolling) == next(rolling)


def test_an_interrupted_replay_goes_on(tmp_path, config):
    append(tmp_path / "log", some_events(400))
    looks = itertools.count()
    some = replayed(config, "two", 50, 350, stop=lambda: next(looks) > 5)
    assert 50 < some[0].offset < 350
    append(tmp_path / "log", some_events(10))
    assert digests(replayed(config, "two", 50, 350)) == digests(replayed(config, "one", 50, 350))
    with pytest.raises(ConfigError, match="two replays from 50 to 350; for another range choose another --app"):
        replayed(config, "two", 50)
    with pytest.raises(ConfigError, match=r"model.C = 10.0, the configuration says 3.0\n.* a replay, another --app"):
        replayed(config, "two", 50, 350, "model.C=3")


def test_labels_of_replayed_events_are_all_read(tmp_path, config):
    with LocalLog(tmp_path / "log") as log:
        for i, value in enumerate(some_events(300)):
            event = json.loads(value)
            log.produce("events", json.dumps({"id": i, "x": event["x"]}).encode())
            log.produce("labels", json.dumps({"id": i, "y": event["y"]}).encode())
    states = replayed(config, "joined", 100, 200, "log.labels=labels")
    assert states[0].counters.learned == states[0].counters.predicted == 100
    assert states[0].labels_offset == 300


def test_a_range_may_be_given_by_times(tmp_path, config, call, monkeypatch):
    noon = datetime(2026, 5, 31, 12, tzinfo=UTC).timestamp()
    clock = SimpleNamespace(time_ns=lambda: int(noon * 1e9), monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr(local_log, "time", clock)
    for hour in range(3):
        clock.time_ns = lambda hour=hour: int((noon + 3600 * hour) * 1e9)
        append(tmp_path / "log", some_events(100, seed=hour))
    code, out, _ = call("replay", config, "--app", "x", "--from", "2026-05-31T13:00", "--to", "2026-05-31T16:00+02:00")
    assert code == 0
    assert out[1].split()[:2] == ["events-0", "200"]
    assert out[-1].startswith("model digest of events-0: ")
    assert len(read(tmp_path / "log", "predictions-x")) == 100


def test_records_without_timestamps_have_no_range_of_times(tmp_path, config, call, monkeypatch):
    monkeypatch.setattr(local_log, "time", SimpleNamespace(time_ns=lambda: -1, monotonic=time.monotonic))
    append(tmp_path / "log", some_events(5))
    code, _, err = call("replay", config, "--app", "x", "--from", "2026-05-31T13:00")
    assert code == 2
    assert "events-0 has records without timestamps: give an offset instead of a time" in " ".join(err)


def test_a_replay_may_not_touch_the_original(config):
    for app, flags, problem in (
        ("streamsvm", [], "--app streamsvm is the original"),
        ("x", ["log.predictions=predictions"], "topic 'predictions' belongs to the original"),
        ("x", ["log.dlq=dlq"], "topic 'dlq' belongs"),
        ("x", ["daemon.state_dir=state"], "belongs to the original"),
    ):
        with pytest.raises(ConfigError, match=problem):
            replay_settings(config, {}, flags, app)
    settings = replay_settings(config, {}, ["daemon.follow=true", "group.id=other"], "x")
    assert (settings.daemon.follow, settings.group.id, settings.log.predictions) == (False, "x", "predictions-x")


def test_a_replay_of_nothing(tmp_path, config, call):
    code, _, err = call("replay", config, "--app", "x")
    assert (code, err[-1].startswith("streamsvm: there is no topic 'events'")) == (4, True)
    assert not (tmp_path / "state-x").exists()
    append(tmp_path / "log", some_events(10))
    code, out, _ = call("replay", config, "--app", "x", "--to", 0)
    assert (code, out) == (0, ["no event of topic 'events' was consumed yet"])
