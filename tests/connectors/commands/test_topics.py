"""The commands about topics: what is wrong with them, and how far the trainers and scorers are."""

import json
import logging
from dataclasses import replace

import pytest
from logged import append, some_events

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import Shape, TopicMismatch
from streamsvm.connectors.runtime.findings import OK, PROBLEM, WARNING
from streamsvm.connectors.settings import topics
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import backend_of
from streamsvm.connectors.settings.sections import LimitSettings
from streamsvm.connectors.trainer import trainer as daemon


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
    "merged": Shape(1, "compact", -1, 1 << 20),
    "state": Shape(3, "delete", -1, 1 << 20),
    "questions": Shape(3, "compact", -1, 1 << 20),
}


@pytest.fixture
def with_broker(config):
    """Settings with a broker, which nobody asks for anything."""
    flags = [f"log.{name}={name}" for name in ("labels", "model", "merged", "questions", "state")]
    return load(config, {}, ["kafka.bootstrap_servers=nowhere:1", "state.store=topic", *flags])


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
        ("merged", Shape(1, "delete", 7 * DAY), WARNING, "the newest models will be removed one day"),
        (
            "state",
            Shape(3, "delete", 7 * DAY),
            PROBLEM,
            "retention.ms=604800000, so checkpoints will be removed one day",
        ),
        ("state", Shape(1, "delete", -1), PROBLEM, "'state' has 1 partition, but 'events' has 3"),
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
    names = topics.of_trainers(with_broker)
    assert "scores" not in names
    apart = replace(with_broker, log=replace(with_broker.log, estimates="estimates", alarms="alarms"))
    assert set(topics.of_trainers(apart)) == {*names, "estimates", "alarms"}
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
    append(tmp_path / "log", some_events(100))
    code, out, _ = call("lag", config)
    assert code == 0
    assert [line.split() for line in out] == [
        ["group", "topic", "partition", "committed", "end", "lag"],
        ["streamsvm", "events", "0", "-", "100", "100"],
    ]
    daemon.run(load(config, {}))
    append(tmp_path / "log", some_events(5))
    _, out, _ = call("lag", config, "--json", "--set", "log.model=model")
    row = {"topic": "events", "partition": 0, "end": 105}
    assert json.loads(out[0]) == [
        {**row, "group": "streamsvm", "committed": 100, "lag": 5},
        {**row, "group": "streamsvm-score", "committed": None, "lag": 105},
    ]


def test_records_that_retention_has_removed_are_no_lag(tmp_path, config, call):
    """A group that has read 10 of 40 records, of which about half are left, is behind those that are left."""
    append(tmp_path / "log", some_events(10))
    daemon.run(load(config, {}))
    with LocalLog(tmp_path / "log", segment_bytes=1) as log:  # each record is a segment of its own
        for event in some_events(30):
            log.produce("events", event)
    settings = load(config, {})
    backend_of(settings).trim("events", 0, 20)
    with LocalLog(tmp_path / "log") as log:
        start = log.start_offsets("events")[0]
    assert 10 < start <= 20
    _, out, _ = call("lag", config, "--json")
    assert json.loads(out[0])[0] == {
        "group": "streamsvm", "topic": "events", "partition": 0, "committed": 10, "end": 40, "lag": 40 - start,
    }  # fmt: skip
