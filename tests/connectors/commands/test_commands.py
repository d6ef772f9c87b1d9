"""The commands beside the daemon: topics, lag, dead letters, replay, doctor, and the end of a process that hangs."""

import itertools
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.commands.doctor import machine
from streamsvm.connectors.commands.doctor.log import check_log
from streamsvm.connectors.commands.doctor.state import check_state
from streamsvm.connectors.commands.replays.replay import replay, replay_settings
from streamsvm.connectors.logs import embedded as local_log
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import Shape, TopicMismatch
from streamsvm.connectors.runtime.findings import OK, PROBLEM, WARNING
from streamsvm.connectors.settings import topics
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import ConfigError, LimitSettings
from streamsvm.connectors.trainer import trainer as daemon

CONFIG = """
[model]
C = 10.0
[features]
warmup = 20
[daemon]
batch = 16
follow = false
checkpoint_records = 50
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "app.toml"
    path.write_text(CONFIG)
    (tmp_path / "log").mkdir()
    return path


def some_events(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)).round(4).tolist()
    return [
        json.dumps({"id": i, "x": {"a": a, "b": b}, "y": a * a + b * b > 1.4}).encode() for i, (a, b) in enumerate(x)
    ]


def fill(folder, values, topic="events", **options):
    with LocalLog(folder) as log:
        for value in values:
            log.produce(topic, value, **options)


def records(folder, topic="events", partition=0):
    with LocalLog(folder) as log:
        log.seek(topic, partition, 0)
        found = []
        while more := log.poll(0, 10**6):
            found += more
        return found


def digests(states):
    return {number: state.models.digest() for number, state in states.items()}


# --- topics -----------------------------------------------------------------------------------------------------------


def test_topics_of_the_embedded_log_are_made_by_their_first_record(config, call):
    code, out, _ = call("topics", config)
    assert code == 0
    assert out[1].split() == ["events", "-", "missing", "-", "-"]
    assert out[-1] == "note: there is no topic 'dlq' yet; its first record makes it"


def test_topics_are_made_with_as_many_partitions_as_the_events(tmp_path, config, call):
    with LocalLog(tmp_path / "log") as log:
        log.create("events", 3)
    options = (config, "--set", "log.labels=labels", "--set", "log.model=model")
    code, out, _ = call("topics", *options)
    assert code == 4
    wrong = [line for line in out if line.startswith("wrong")]
    assert wrong == [
        "wrong: there is no topic 'labels' yet; its first record would make it with 1 partition, but 'events' has 3"
    ]
    assert out[-1] == "`streamsvm topics CONFIG.toml --create` creates the missing topics"
    code, out, _ = call("topics", *options, "--create")
    assert code == 0
    assert out[:5] == [f"made topic {name}" for name in ("labels", "predictions", "dlq", "model", "scores")]
    assert {line.split()[0]: line.split()[1] for line in out[6:]} == {
        "events": "3",
        "labels": "3",
        "predictions": "3",
        "dlq": "1",
        "model": "1",
        "scores": "3",
    }
    assert call("topics", *options, "--create")[1] == out[5:]
    code, _, err = call("topics", *options, "--create", "--partitions", 2)
    assert (code, err) == (4, ["streamsvm: topic 'events' has 3 partitions already, not 2"])


def test_labels_in_other_partitions_than_events_are_wrong(tmp_path, config, call):
    with LocalLog(tmp_path / "log") as log:
        log.create("labels", 2)
        log.create("events", 3)
    code, out, _ = call("topics", config, "--set", "log.labels=labels")
    assert code == 4
    assert "wrong: topic 'labels' has 2 partitions, but 'events' has 3: give it as many" in out


DAY = 86_400_000
RIGHT = {
    "events": Shape(3, "delete", 7 * DAY, 1 << 20),
    "labels": Shape(3, "delete", 7 * DAY, 1 << 20),
    "predictions": Shape(3, "delete", 7 * DAY, 1 << 20),
    "scores": Shape(3, "delete", 7 * DAY, 1 << 20),
    "dlq": Shape(1, "delete", 30 * DAY, 1 << 20),
    "model": Shape(1, "compact", -1, 1 << 20),
    "questions": Shape(3, "compact", -1, 1 << 20),
}


@pytest.fixture
def with_broker(config):
    """Settings with a broker, which nobody asks for anything."""
    flags = ["kafka.bootstrap_servers=nowhere:1", "log.labels=labels", "log.model=model", "log.questions=questions"]
    return load(config, {}, flags)


def test_topics_as_they_are_made_are_right(with_broker):
    made = topics.wanted(with_broker, 3)
    assert {name: shape[:2] for name, shape in made.items()} == {name: shape[:2] for name, shape in RIGHT.items()}
    assert topics.examine(with_broker, RIGHT, RIGHT) == []
    more = replace(with_broker, limits=LimitSettings(dead_letter_kb=20 << 10))
    assert topics.wanted(more, 3)["dlq"].max_bytes > 20 << 20
    assert topics.examine(more, RIGHT, {**RIGHT, **topics.wanted(more, 3)}) == []


@pytest.mark.parametrize(
    ("name", "shape", "level", "text"),
    [
        ("events", None, PROBLEM, "there is no topic 'events'"),
        ("scores", Shape(1), PROBLEM, "'scores' has 1 partition, but 'events' has 3"),
        ("labels", Shape(4), PROBLEM, "'labels' has 4 partitions, but 'events' has 3"),
        ("predictions", Shape(1), PROBLEM, "'predictions' has 1 partition"),
        ("model", Shape(1, "delete", 7 * DAY), WARNING, "cleanup.policy=delete"),
        ("model", Shape(1, "compact,delete", 7 * DAY), WARNING, "cleanup.policy=compact,delete"),
        ("model", Shape(1, "compact", -1, 500_000), PROBLEM, "max.message.bytes=500000, and needs at least 916384"),
        ("questions", Shape(3, "compact", -1, 500_000), PROBLEM, "max.message.bytes=500000, and needs at least 999424"),
        ("labels", Shape(3, "compact", -1), WARNING, "of each key only the last record stays"),
        ("questions", Shape(3, "delete", 7 * DAY), WARNING, "the newest questions will be removed one day"),
        ("questions", Shape(1, "compact", -1), PROBLEM, "'questions' has 1 partition, but 'events' has 3"),
        ("dlq", Shape(1, "delete", DAY, 500_000), PROBLEM, "max.message.bytes=500000, and needs at least 540672"),
        ("events", Shape(3, "delete", DAY, 1 << 20, is_default=True), OK, "3 partitions, so 3 trainers at most"),
    ],
)
def test_what_is_wrong_with_a_topic_is_found(with_broker, name, shape, level, text):
    found = {**RIGHT, name: shape}
    if shape is None:
        del found[name]
    (finding,) = topics.examine(with_broker, RIGHT, found)
    assert finding.level == level
    assert text in finding.text


def test_the_trainer_refuses_topics_that_it_cannot_work_with(with_broker, monkeypatch, caplog):
    found = dict(RIGHT)
    monkeypatch.setattr(topics, "describe", lambda *_: found)
    names = topics.of_trainers(with_broker.log)
    assert "scores" not in names
    topics.check(with_broker, names)
    assert not caplog.records
    found["dlq"] = Shape(1, "compact", DAY, 1 << 20)
    topics.check(with_broker, names)
    assert [(record.levelno, "'dlq'" in record.message) for record in caplog.records] == [(logging.WARNING, True)]
    found["labels"] = Shape(2)
    with pytest.raises(TopicMismatch, match="'labels' has 2 partitions, but 'events' has 3: give it as many"):
        topics.check(with_broker, names)
    del found["predictions"]
    with pytest.raises(TopicMismatch, match=r"no topic 'predictions'; .*'labels'.*; `streamsvm topics .* --create`"):
        topics.check(with_broker, names)


# --- lag --------------------------------------------------------------------------------------------------------------


def test_lag_of_trainers_and_scorers(tmp_path, config, call):
    fill(tmp_path / "log", some_events(100))
    code, out, _ = call("lag", config)
    assert code == 0
    assert [line.split() for line in out] == [
        ["group", "topic", "partition", "committed", "end", "lag"],
        ["streamsvm", "events", "0", "-", "100", "100"],
    ]
    daemon.run(load(config, {}))
    fill(tmp_path / "log", some_events(5))
    _, out, _ = call("lag", config, "--json", "--set", "log.model=model")
    row = {"topic": "events", "partition": 0, "end": 105}
    assert json.loads(out[0]) == [
        {**row, "group": "streamsvm", "committed": 100, "lag": 5},
        {**row, "group": "streamsvm-score", "committed": None, "lag": 105},
    ]


# --- dead letters -----------------------------------------------------------------------------------------------------

BAD = [b"{", b'{"id": 2, "x": {"a": 1, "b": 1}, "y": 7}', b"]"]  # not-json, bad-label, not-json


@pytest.fixture
def refused(tmp_path, config):
    """A configuration whose daemon has refused three of its events."""
    fill(tmp_path / "log", some_events(60))
    for value in BAD:
        fill(tmp_path / "log", [value], key=b"k", headers=[("trace", b"7")])
    daemon.run(load(config, {}, ["daemon.max_bad=1"]))
    return config


def test_dlq_lists_what_was_refused(refused, call):
    code, out, _ = call("dlq", refused)
    assert (code, len(out)) == (0, 3)
    assert out[0].startswith("0\tevents-0-60\tnot-json: ")
    assert out[1] == (
        "1\tevents-0-61\tbad-label: y must be true/false, 0/1, -1/+1, got 7\t"
        'b\'{"id": 2, "x": {"a": 1, "b": 1}, "y": 7}\''
    )
    assert call("dlq", "list", refused)[1] == out
    assert call("dlq", "list", refused, "--reason", "not-json")[1] == [out[0], out[2]]
    assert call("dlq", refused, "--from", 2)[1] == [out[2]]
    assert call("dlq", refused, "--from", 9)[1] == []


def test_options_may_come_first(refused, call):
    assert len(call("dlq", "--from", 1, refused)[1]) == 2
    assert call("dlq", "--reason", "bad-label", "replay", refused)[1] == ["put 1 record back"]


def test_dlq_of_an_app_that_has_refused_nothing(config, call):
    assert call("dlq", config) == (0, [], ["topic 'dlq' has no dead letter"])
    assert call("dlq", "replay", config) == (0, ["put 0 records back"], [])


def test_dead_letters_go_back_once_as_they_were(tmp_path, refused, call):
    assert call("dlq", "replay", refused, "--dry-run")[1][-1] == "would put 3 records back"
    assert len(records(tmp_path / "log")) == 63
    assert call("dlq", "replay", refused)[1] == ["put 3 records back"]
    back = records(tmp_path / "log")[63:]
    assert [(record.key, record.value) for record in back] == [(b"k", value) for value in BAD]
    assert back[2].headers == (("trace", b"7"), ("sv-dlq-replayed", b"2"), ("sv-dlq-attempts", b"1"))
    assert call("dlq", "replay", refused)[1] == ["put 0 records back"]
    assert call("dlq", "replay", refused, "--from", 1, "--dry-run")[1][-1] == "would put 2 records back"


def test_a_record_that_is_refused_again_says_so(tmp_path, refused, call):
    call("dlq", "replay", refused)
    daemon.run(load(refused, {}, ["daemon.max_bad=1"]))
    again = records(tmp_path / "log", "dlq")[3:]
    assert len(again) == 3
    headers = dict(again[0].headers)
    assert len(headers) == len(again[0].headers) == 10
    assert (headers["sv-dlq-attempts"], headers["sv-dlq-offset"], headers["trace"]) == (b"2", b"63", b"7")
    assert call("dlq", "replay", refused)[1] == ["put 3 records back"]
    assert dict(records(tmp_path / "log")[-1].headers)["sv-dlq-attempts"] == b"2"


def test_one_reason_at_a_time(tmp_path, refused, call):
    assert call("dlq", "replay", refused, "--reason", "not-json")[1] == ["put 2 records back"]
    assert call("dlq", "replay", refused, "--reason", "not-json")[1] == ["put 0 records back"]
    assert call("dlq", "replay", refused)[1] == ["put 1 record back"]
    assert call("dlq", "replay", refused)[1] == ["put 0 records back"]
    assert [record.value for record in records(tmp_path / "log")[63:]] == [BAD[0], BAD[2], BAD[1]]


LARGE = b" " * (600 << 10)


@pytest.fixture
def shortened(tmp_path, config):
    """A configuration whose daemon has refused a record that is too large for a dead letter, and goes on."""
    fill(tmp_path / "log", [*some_events(60), LARGE], key=b"k", headers=[("trace", b"7")])
    fill(tmp_path / "log", some_events(10, seed=1))
    states = daemon.run(load(config, {}))
    assert states[0].counters.predicted == 70
    return config


def test_of_a_large_record_the_dead_letter_has_the_beginning(tmp_path, shortened, call):
    (letter,) = records(tmp_path / "log", "dlq")
    headers = dict(letter.headers)
    assert (letter.key, headers["trace"], headers["sv-dlq-reason"]) == (b"k", b"7", b"not-json")
    assert letter.value == b" " * (64 << 10)
    assert headers["sv-dlq-bytes"] == str(len(LARGE)).encode()
    assert headers["sv-dlq-sha256"] == sha256(LARGE).hexdigest().encode()
    (line,) = call("dlq", shortened)[1]
    assert line.endswith(f"(shortened: {64 << 10} of {len(LARGE)} bytes; replay takes it from events-0-60)")


def test_a_shortened_dead_letter_is_replayed_from_its_topic(tmp_path, shortened, call):
    assert call("dlq", "replay", shortened)[1] == ["put 1 record back"]
    back = records(tmp_path / "log")[-1]
    assert (back.offset, back.key, back.value) == (71, b"k", LARGE)
    assert back.headers == (("trace", b"7"), ("sv-dlq-replayed", b"0"), ("sv-dlq-attempts", b"1"))


@pytest.mark.parametrize("instead", [[], [b"another record"] * 70])
def test_a_shortened_dead_letter_whose_record_is_gone_is_passed_over(tmp_path, shortened, call, caplog, instead):
    """Its topic is made anew, with other records or none."""
    for path in (tmp_path / "log" / "events" / "0").glob("*.log"):
        path.unlink()
    fill(tmp_path / "log", instead)
    assert call("dlq", "replay", shortened)[1] == ["put 0 records back, and passed over 1 that cannot be put back"]
    assert "dlq-0-0 is shortened, and events-0-60 is gone" in caplog.text
    assert len(records(tmp_path / "log")) == len(instead)


@pytest.mark.parametrize("options", [{"headers": [("name", bytes(2 << 20))]}, {"key": bytes(2 << 20)}, {}])
def test_a_dead_letter_of_what_nobody_reads_is_passed_over(tmp_path, config, call, caplog, options):
    value = b"{" if options else bytes(2 << 20)
    fill(tmp_path / "log", some_events(30))
    fill(tmp_path / "log", [value], **options)
    daemon.run(load(config, {}))
    assert call("dlq", "replay", config)[1] == ["put 0 records back, and passed over 1 that cannot be put back"]
    assert "dlq-0-0 is about events-0-30, which has 2097" in caplog.text
    assert len(records(tmp_path / "log")) == 31


def test_dead_letters_go_only_where_this_app_reads(tmp_path, config, call, caplog):
    def dead(topic, partition=b"0"):
        return [("sv-dlq-topic", topic), ("sv-dlq-partition", partition), ("sv-dlq-reason", b"\xff")]

    fill(tmp_path / "log", some_events(1))
    for headers in (dead(b"elsewhere"), dead(b"events", b"9"), dead(b"events", b"x"), [], dead(b"events")):
        fill(tmp_path / "log", [b"v"], "dlq", headers=headers)
    assert call("dlq", "replay", config)[1] == ["put 1 record back, and passed over 4 from elsewhere"]
    assert (
        sum("comes from a topic that this configuration does not read" in record.message for record in caplog.records)
        == 4
    )
    assert len(records(tmp_path / "log")) == 2
    assert call("dlq", config)[1][3] == "3\t?-?-?\t?: ?\tb'v'"


# --- replay -----------------------------------------------------------------------------------------------------------


def replayed(config, app, first=None, last=None, *flags, stop=lambda: False):
    settings = replay_settings(config, {}, flags, app)
    return replay(settings, first, last, stop)


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}


def test_a_replay_is_a_run_over_a_part_of_the_log(tmp_path, config):
    events = some_events(400)
    fill(tmp_path / "log", events)
    daemon.run(load(config, {}))
    before = content(tmp_path / "state") | content(tmp_path / "log")
    states = replayed(config, "part", 100, 300, "model.C=2")
    after = content(tmp_path)
    assert {path: after[path] for path in before} == before
    assert len(records(tmp_path / "log", "predictions-part")) == 200

    fill(tmp_path / "other", events[100:300])
    flags = ["model.C=2", f"log.dir={tmp_path / 'other'}", "daemon.state_dir=other-state"]
    assert digests(states) == digests(daemon.run(load(config, {}, flags)))


def test_a_replay_of_everything_ends_as_the_original(tmp_path, config):
    fill(tmp_path / "log", some_events(200))
    original = daemon.run(load(config, {}))
    assert digests(replayed(config, "again")) == digests(original)
    fill(tmp_path / "log", some_events(50, seed=1))
    assert digests(replayed(config, "again")) == digests(original)  # the range is that of its beginning


def test_an_interrupted_replay_goes_on(tmp_path, config):
    fill(tmp_path / "log", some_events(400))
    looks = itertools.count()
    some = replayed(config, "two", 50, 350, stop=lambda: next(looks) > 5)
    assert 50 < some[0].offset < 350
    fill(tmp_path / "log", some_events(10))
    assert digests(replayed(config, "two", 50, 350)) == digests(replayed(config, "one", 50, 350))
    with pytest.raises(ConfigError, match="two replays from 50 to 350; for another range choose another --app"):
        replayed(config, "two", 50)


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
        fill(tmp_path / "log", some_events(100, seed=hour))
    code, out, _ = call("replay", config, "--app", "x", "--from", "2026-05-31T13:00", "--to", "2026-05-31T16:00+02:00")
    assert code == 0
    assert out[1].split()[:2] == ["events-0", "200"]
    assert out[-1].startswith("model digest of events-0: ")
    assert len(records(tmp_path / "log", "predictions-x")) == 100


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
    fill(tmp_path / "log", some_events(10))
    code, out, _ = call("replay", config, "--app", "x", "--to", 0)
    assert (code, out) == (0, ["no event of topic 'events' was consumed yet"])


# --- doctor -----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _no_process_of_the_doctors(request, monkeypatch):
    """Which takes seconds each time, and is wanted once."""
    if "healthy" not in request.node.name and "believes" not in request.node.name:
        monkeypatch.setattr(machine, "_seconds_to_start", lambda _: 1.0)


@pytest.mark.long
def test_doctor_of_a_healthy_app(tmp_path, config, call):
    fill(tmp_path / "log", some_events(100))
    daemon.run(load(config, {}))
    code, out, err = call("doctor", config)
    assert (code, err) == (0, [])
    text = "\n".join(out)
    assert "checkpoint 3 of p0 is readable" in text
    assert "group 'streamsvm' is 0 records behind" in text
    assert "the times of 100 records agree with this clock" in text
    assert re.search(r"has all compiled code; a process is ready after \d+\.\d seconds", text)
    assert "problem" not in text


def test_doctor_without_a_configuration(call):
    code, out, _ = call("doctor")
    assert code == 0
    assert out[0].startswith("ok       python: Python 3.")
    assert "compile cache" in out[1]


def test_doctor_tells_what_is_wrong_with_the_configuration(config, call):
    config.write_text("[model]\nC = 0\nkernal = 'rbf'\n")
    code, out, err = call("doctor", config)
    assert code == 2
    assert (len(out), len(err)) == (2, 2)


def findings(settings, check):
    return [(finding.level, finding.text) for finding in check(settings)]


def test_doctor_finds_what_is_wrong_with_the_state(tmp_path, config):
    fill(tmp_path / "log", some_events(100))
    daemon.run(load(config, {}))
    assert findings(load(config, {}, ["model.C=1"]), check_state)[-1] == (
        "problem",
        f"{tmp_path / 'state' / 'p0'}: the checkpoint was written with model.C = 10.0, the configuration says 1.0",
    )
    newest, *older = sorted((tmp_path / "state" / "p0").glob("checkpoint-*"), reverse=True)
    newest.write_bytes(newest.read_bytes()[:-1])
    level, text = findings(load(config, {}), check_state)[-1]
    assert (level, text.endswith("old, but it is not the newest")) == ("warning", True)
    for path in older:
        path.write_bytes(b"")
    level, text = findings(load(config, {}), check_state)[-1]
    assert (level, "none of 3 checkpoints can be read" in text) == ("problem", True)


def test_doctor_finds_what_is_wrong_with_the_records(tmp_path, config, monkeypatch):
    settings = load(config, {}, ["log.labels=labels"])
    with LocalLog(tmp_path / "log") as log:
        for name in ("events", "labels"):
            log.create(name, 2)
        log.produce("events", b'{"id": 1, "x": {"a": 1}, "ts": 1}', key=b"k", partition=0)
        log.produce("labels", b'{"id": 1, "y": 1}', key=b"k", partition=1)
        log.produce("labels", b'{"id": 1, "y": 1}', partition=1)
        log.produce("labels", b"{", key=b"other", partition=1)
        log.produce("dlq", b"{")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - 1000)
    found = findings(settings, check_log)
    said = [(level, text.split(":")[0]) for level, text in found if level != "ok"]
    assert said == [
        ("warning", "1 dead letter not put back yet"),
        ("warning", "4 records of 4 from the future, up to 1,000 seconds"),
        (
            "warning",
            "1 record of 4 with a ts that is ignored, because it is more than join.max_skew_seconds from the record's "
            "own time",
        ),
        ("problem", "1 of 3 labels without a key"),
        ("problem", "1 of 3 labels in another partition than events with the same key"),
        ("warning", "1 of 1 record of topic 'events' are not where the log's own partitioner puts their keys"),
        ("warning", "1 of 2 records of topic 'labels' are not where the log's own partitioner puts their keys"),
    ]


def test_doctor_finds_ids_that_never_meet(tmp_path, config, caplog):
    settings = load(config, {}, ["log.labels=labels"])
    fill(tmp_path / "log", [b'{"id": 7, "x": {"a": 1}}', b"{"])
    fill(tmp_path / "log", [b'{"id": 7, "y": 1}', b"{"], "labels")
    assert not [text for _, text in findings(settings, check_log) if "different ids" in text]
    fill(tmp_path / "log", [b'{"id": "7", "y": 1}'], "labels")
    (found,) = [(level, text) for level, text in findings(settings, check_log) if "different ids" in text]
    assert found[0] == "problem"
    assert found[1].startswith("1 of 3 labels with an id such as '7'")
    assert not caplog.records


@pytest.mark.long
def test_doctor_believes_no_files_about_compiled_code(config, monkeypatch):
    """They may be of another processor, or not all that a process needs."""
    settings = load(config, {})
    monkeypatch.setattr(machine, "cache_state", lambda: ("somewhere", True))
    monkeypatch.setattr(machine, "_WARM_SECONDS", 1)
    ((level, text),) = findings(settings, machine.compile_cache)
    assert (level, "the first process compiles" in text) == ("warning", True)


def test_doctor_of_a_format_that_cannot_be_read(tmp_path, config, call):
    fill(tmp_path / "log", some_events(1))
    code, out, err = call("doctor", config, "--set", "log.format=avro")
    assert code == 2
    expected = f"log.format = 'avro': {tmp_path / 'schemas'}: there is no schema file, ID.avsc, in this folder"
    assert any(expected in line for line in (*out, *err))


def test_doctor_without_a_log(tmp_path, config, call):
    (tmp_path / "log").rmdir()
    code, out, _ = call("doctor", config)
    assert code == 1
    assert out[-2:] == [
        f"problem  log: log.dir = {str(tmp_path / 'log')!r}: there is no such folder; without a [kafka] section, the "
        "log is there",
        "         `streamsvm produce` creates it; or correct log.dir",
    ]


def test_doctor_of_a_damaged_log(tmp_path, config, call):
    fill(tmp_path / "log", some_events(10))
    segment = next((tmp_path / "log" / "events" / "0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    code, out, _ = call("doctor", config)
    assert code == 1
    assert segment.name in out[-1]


# --- arguments, and the end -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["dlq", "eat", "x.toml"],
        ["dlq", "x.toml", "--from", "-1"],
        ["replay", "x.toml"],
        ["replay", "x.toml", "--app", "a/b"],
        ["replay", "x.toml", "--app", "a", "--from", "yesterday"],
        ["topics", "x.toml", "--create", "--partitions", "0"],
    ],
)
def test_wrong_arguments_are_exit_code_2(capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "usage: streamsvm" in capsys.readouterr().err


@pytest.mark.long
def test_a_process_that_hangs_is_gone_in_time_after_sigterm(config):
    script = (
        "import sys, time; from streamsvm.connectors.commands import cli, run\n"
        "run.trainer.run = lambda *_: (print('hangs', flush=True), time.sleep(60))\n"
        f"sys.exit(cli.main(['run', {str(config)!r}, '--set', 'daemon.shutdown_seconds=0.5']))"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"hangs\n"
    started = time.monotonic()
    os.kill(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 70
    assert time.monotonic() - started < 5
    assert b"has not ended in the time given after the request to stop" in said
